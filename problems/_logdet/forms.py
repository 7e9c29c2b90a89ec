"""The cone program of a LogDet problem with pairs, the ground truth for few points.

    minimise tr W - sum t_i [+ weight sum_c (u_c - w_c)]   over W, Z, t [, u, w]
    subject to   [[W, Z], [Z', diag Z]] >= 0,   t_i <= log Z_ii,   s_c (q_c(W) - u_c) <= 0   [, w_c <= log u_c]

u_c = 1 where the constraints are hard. The multipliers of the pairs are those of
`klopt.problems._logdet.function`.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray, SparseMatrix
from klopt.model.cones import Cones, svec_entries, svec_size
from klopt.model.forms import ConeForm
from klopt.problems._logdet.data import Pairs
from klopt.problems._scg.forms import log_det_program

__all__ = ["cone_program"]


def cone_program(pairs: Pairs) -> ConeForm:
    """Return the program in x = (svec W, Z, t [, u, w]); its first rows are the pairs."""
    r, c = len(pairs.R), pairs.size
    base = log_det_program(np.eye(r))
    distances = sparse.csc_array(_distances(pairs))
    first = sparse.hstack([distances, sparse.csc_array((c, base.c.size - distances.shape[1]))])
    if pairs.is_hard:
        A = sparse.vstack([first, base.A])
        return ConeForm(
            base.c, A, np.concatenate([pairs.sign, base.b]), _with_pairs(base.cones, c, 0)
        )
    stretch = sparse.diags_array(-pairs.sign)
    logs: SparseMatrix = sparse.csc_array(
        (
            -np.ones(2 * c),
            (np.r_[3 * np.arange(c), 3 * np.arange(c) + 2], np.r_[c + np.arange(c), np.arange(c)]),
        ),
        shape=(3 * c, 2 * c),
    )
    moving = sparse.csc_array(sparse.hstack([stretch, sparse.csc_array((c, c))]))
    A = sparse.block_array([[sparse.csc_array(first), moving], [base.A, None], [None, logs]])
    cost = np.concatenate([base.c, np.full(c, pairs.weight), np.full(c, -pairs.weight)])
    b = np.concatenate([np.zeros(c), base.b, np.tile([0.0, 1.0, 0.0], c)])
    return ConeForm(cost, A, b, _with_pairs(base.cones, c, c))


def _distances(pairs: Pairs) -> FloatArray:
    """The rows s_c svec(a_c a_c') / t_c, a_c = R z_c."""
    a = (pairs.centred[:, pairs.first] - pairs.centred[:, pairs.second]) * np.sqrt(1 / pairs.target)
    rows, columns = svec_entries(len(a))
    entries = a[rows] * a[columns] * np.where(rows == columns, 1.0, np.sqrt(2.0))[:, None]
    assert len(entries) == svec_size(len(a))
    return np.asarray((entries * pairs.sign).T)


def _with_pairs(cones: Cones, rows: int, logs: int) -> Cones:
    return Cones(nonneg=rows, psd=cones.psd, exp=cones.exp + logs)
