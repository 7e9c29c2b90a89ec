"""The cone program of a LogDet problem with pairs, the ground truth for few points.

    minimise tr W - sum t_i [+ weight sum_c (u_c - w_c)]   over W, Z, t [, u, w]
    subject to   [[W, Z], [Z', diag Z]] >= 0,   t_i <= log Z_ii,
                 s_c (q_c(W) - u_c) <= 0   [, w_c <= log u_c]

u_c = 1 where the constraints are hard. The multipliers of the pairs are those of `function`.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray, SparseMatrix
from klopt.model.cones import Cones, svec_entries
from klopt.model.forms import ConeForm
from klopt.problems._logdet.constraints import DistanceConstraints
from klopt.problems._scg.forms import log_det_program

__all__ = ["pair_program"]


def pair_program(constraints: DistanceConstraints) -> ConeForm:
    """Return the program in x = (svec W, Z, t [, u, w]); its first rows are the pairs."""
    count = constraints.size
    base = log_det_program(np.eye(len(constraints.R)))
    distances = sparse.csc_array(_distance_rows(constraints))
    others = sparse.csc_array((count, base.c.size - distances.shape[1]))
    pairs = sparse.hstack([distances, others])
    if constraints.is_hard:
        A = sparse.vstack([pairs, base.A])
        b = np.concatenate([constraints.sign, base.b])
        return ConeForm(base.c, A, b, Cones(nonneg=count, psd=base.cones.psd, exp=base.cones.exp))

    moving = sparse.hstack(
        [sparse.diags_array(-constraints.sign), sparse.csc_array((count, count))]
    )
    A = sparse.block_array(
        [
            [sparse.csc_array(pairs), sparse.csc_array(moving)],
            [base.A, None],
            [None, _logarithms(count)],
        ]
    )
    prices = np.full(count, constraints.weight)
    cost = np.concatenate([base.c, prices, -prices])
    b = np.concatenate([np.zeros(count), base.b, np.tile([0.0, 1.0, 0.0], count)])
    cones = Cones(nonneg=count, psd=base.cones.psd, exp=base.cones.exp + count)
    return ConeForm(cost, A, b, cones)


def _distance_rows(constraints: DistanceConstraints) -> FloatArray:
    """The rows s_c svec(a_c a_c') / t_c, a_c = R z_c."""
    R = constraints.centred
    differences = R[:, constraints.first] - R[:, constraints.second]
    a = differences * np.sqrt(1 / constraints.target)
    rows, columns = svec_entries(len(a))
    weights = np.where(rows == columns, 1.0, np.sqrt(2.0))
    entries = a[rows] * a[columns] * weights[:, None]
    return np.asarray((entries * constraints.sign).T)


def _logarithms(count: int) -> SparseMatrix:
    """Rows that put (w_c, 1, u_c) into exponential cones, for x = (u, w)."""
    every = np.arange(count)
    rows = np.concatenate([3 * every, 3 * every + 2])
    columns = np.concatenate([count + every, every])
    shape = (3 * count, 2 * count)
    return sparse.csc_array((-np.ones(2 * count), (rows, columns)), shape=shape)
