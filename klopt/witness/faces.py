"""Finds blocks whose multipliers have no interior, and integer vectors that span the rest.

If c_j = 0 and F_j = a w w', every multiplier Y has w'Yw = 0, hence Y w = 0: it has the form V Y V' for
any V that spans the vectors orthogonal to w. Graph partition has such a constraint, the sum of all
entries of Y being 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.model.cones import order_of, svec_entries
from klopt.proof.statement import ConeStatement

__all__ = ["Face", "face_of"]


class Face(NamedTuple):
    """A block, the integer matrix V that its multipliers are seen through, and where it comes from."""

    block: int
    rows: slice
    V: FloatArray
    w: FloatArray
    kept: npt.NDArray[np.intp]
    """The rows of V that are the identity."""
    column: int
    """The variable along which the objective stays and the block grows."""
    sign: float


def face_of(statement: ConeStatement) -> Face | None:
    """Return the first face that a single column shows; None without."""
    cones = statement.cones
    if not statement.plain or statement.P is not None or statement.quadratics:
        return None
    blocks = [rows for kind, rows in cones.blocks() if kind == "psd"]
    A = sparse.csc_array(statement.A)
    for column in np.flatnonzero(statement.c == 0).tolist():
        entries = slice(A.indptr[column], A.indptr[column + 1])
        rows = A.indices[entries]
        for block, part in enumerate(blocks):
            if not rows.size or rows.min() < part.start or rows.max() >= part.stop:
                continue
            F = np.zeros(part.stop - part.start)
            F[rows - part.start] = A.data[entries]
            found = _vector(F)
            if found is not None:
                w, pivot = found
                kept = np.delete(np.arange(w.size), pivot)
                V = np.zeros((w.size, w.size - 1))
                V[kept, np.arange(kept.size)] = 1.0
                V[pivot] = -w[kept]
                # s = b - Ax grows where A_j falls.
                sign = -float(np.sign(np.sum(F[svec_diagonal(w.size)])))
                return Face(block, part, V, w, kept, column, sign)
    return None


def svec_diagonal(order: int) -> FloatArray:
    """Which rows of a block are on the diagonal."""
    down, across = svec_entries(order)
    return np.asarray(down == across)


def _vector(F: FloatArray) -> tuple[FloatArray, int] | None:
    """(w, p) with F = a w w' exactly, w of integers and w_p = 1; None where it is of another kind."""
    order = order_of(F.size)
    down, across = svec_entries(order)
    M = np.zeros((order, order))
    M[down, across] = F
    M[across, down] = F
    diagonal = np.abs(M.diagonal())
    if order < 2 or not diagonal.any():
        return None
    pivot = int(np.argmin(np.where(diagonal > 0, diagonal, np.inf)))
    a = M[pivot, pivot]
    w = M[pivot] / a
    if not (np.rint(w) == w).all() or not np.array_equal(a * np.outer(w, w), M):
        return None
    return w, pivot
