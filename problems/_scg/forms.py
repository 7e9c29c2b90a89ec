"""The cone program that minimises tr(A M) - log det M, which the closed forms save.

Logarithms of the diagonal of a triangular Z and Schur's complement say log det M:

    minimise tr(A M) - sum_i t_i   subject to   [[M, Z], [Z', diag Z]] >= 0,   t_i <= log Z_ii.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray, require_memory
from klopt.model.cones import Cones, smat, svec, svec_entries, svec_places, svec_size
from klopt.model.forms import ConeForm
from klopt.model.problem import Point

__all__ = ["core_of_program", "log_det_program"]

MIN_EIGENVALUE_SHARE = 1e-12
"""Eigenvalues of M below this share of the largest are raised to it."""


def log_det_program(A: FloatArray) -> ConeForm:
    """Return the program in x = (svec M, the triangle of Z by columns, t)."""
    r = len(A)
    size = svec_size(r)
    order = svec_size(2 * r)
    require_memory(8.0 * order * 16, f"a cone program of order {2 * r}")

    # The lower triangle by columns, as svec has it.
    rows, columns = svec_entries(r)
    place = svec_places(2 * r)
    every = np.arange(r)
    diagonal = size + np.flatnonzero(rows == columns)
    M_entries = (place[rows, columns], np.arange(size), np.ones(size))
    Z_entries = (place[r + columns, rows], size + np.arange(size), np.full(size, np.sqrt(2.0)))
    diagonal_entries = (place[r + every, r + every], diagonal, np.ones(r))
    parts = zip(M_entries, Z_entries, diagonal_entries, strict=True)
    i, j, values = (np.concatenate(part) for part in parts)
    schur = sparse.csc_array((-values, (i, j)), shape=(order, 2 * size + r))

    # (t_i, 1, Z_ii) in the exponential cone.
    first = 3 * every
    i = np.concatenate([first, first + 2])
    j = np.concatenate([2 * size + every, diagonal])
    logs = sparse.csc_array((-np.ones(2 * r), (i, j)), shape=(3 * r, 2 * size + r))

    b = np.concatenate([np.zeros(order), np.tile([0.0, 1.0, 0.0], r)])
    cost = np.concatenate([svec(A), np.zeros(size), -np.ones(r)])
    return ConeForm(cost, sparse.vstack([schur, logs]), b, Cones(psd=(2 * r,), exp=r))


def core_of_program(x: FloatArray, order: int) -> Point:
    """Return C = M^1/2, M of the given order made positive definite."""
    values, vectors = np.linalg.eigh(smat(x[: svec_size(order)]))
    smallest = MIN_EIGENVALUE_SHARE * max(float(values[-1]), MIN_EIGENVALUE_SHARE)
    return Point({"core": vectors * np.sqrt(np.maximum(values, smallest))})
