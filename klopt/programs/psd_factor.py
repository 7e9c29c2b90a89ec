"""Sparse positive semidefinite matrices: checked and factored one connected component at a time.

A symmetric P is, after a permutation, block diagonal over the components of its graph. Each block
is proven positive semidefinite up to rounding, or refused with its smallest eigenvalue, and P = F'F
is put together from its blocks.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import EPS, FloatArray, SparseMatrix, csc, require_memory
from klopt.errors import InvalidProblem
from klopt.kernels.gram import proven_floor
from klopt.model.cones import Cones
from klopt.model.forms import ConeForm

__all__ = ["averaged_note", "convex_matrix", "factor", "refuse_indefinite"]

Index = npt.NDArray[np.intp]


def refuse_indefinite(name: str, P: SparseMatrix) -> None:
    """Refuse a symmetric matrix with an eigenvalue that is negative beyond rounding.

    >>> refuse_indefinite("P", csc("P", [[1.0, 2.0], [2.0, 1.0]]))
    Traceback (most recent call last):
    klopt.errors.InvalidProblem: P is not positive semidefinite: its smallest eigenvalue is -1, so the problem ...
    """
    alone, components = _components(P)
    smallest = float(np.min(P.diagonal()[alone], initial=0.0))
    allowed = 0.0
    for index in components:
        block = _dense(name, P, index)
        rounding = index.size * EPS * float(np.linalg.norm(block))
        # Eigenvalues are computed only where a Cholesky factorisation proves nothing.
        if proven_floor(block) is not None or proven_floor(block, rounding) is not None:
            continue
        minimum = float(np.linalg.eigvalsh(block)[0])
        if minimum + 4 * rounding < min(smallest + allowed, 0.0):
            smallest = minimum
            allowed = 4 * rounding
    if smallest < -allowed:
        raise InvalidProblem(
            f"{name} is not positive semidefinite: its smallest eigenvalue is {smallest:.6g}, so the problem is not "
            "convex; klopt solves convex problems"
        )


def convex_matrix(
    name: str, P: object, n: int, uneven: list[str], sign: float = 1.0
) -> SparseMatrix | None:
    """Return P checked, None if it is zero; sign P must be positive semidefinite.

    A matrix that differs from its transpose by rounding is averaged with it and listed in `uneven`.

    >>> convex_matrix("P", [[2.0, 0.0], [0.0, 0.0]], 2, []).toarray()
    array([[2., 0.],
           [0., 0.]])
    """
    given = csc(name, P, (n, n))
    matrix = ConeForm(np.zeros(n), sparse.csc_array((0, n)), np.zeros(0), Cones(), given).P
    assert matrix is not None
    if not np.array_equal(given.data, matrix.data):
        uneven.append(name)
    label = name if sign > 0 else f"-{name} (a program that maximises)"
    refuse_indefinite(label, sign * matrix)
    return matrix if matrix.nnz else None


def averaged_note(uneven: list[str]) -> str:
    """Return what is reported of matrices that were averaged with their transposes."""
    return f"averaged with its transpose, rounding apart: {', '.join(uneven)}" if uneven else ""


def factor(name: str, P: SparseMatrix) -> SparseMatrix:
    """Return F with F'F = P up to rounding, with as many rows as P has rank.

    >>> F = factor("P", csc("P", [[4.0, 0.0], [0.0, 0.0]]))
    >>> F.toarray()
    array([[2., 0.]])
    """
    alone, components = _components(P)
    # The factor of a 1 x 1 block is its root; a zero block has rank 0.
    alone = alone[P.diagonal()[alone] > 0]
    rows = [np.arange(alone.size)]
    columns = [alone]
    data = [np.sqrt(P.diagonal()[alone])]
    count = alone.size
    for index in components:
        values, vectors = np.linalg.eigh(_dense(name, P, index))
        kept = values > index.size * EPS * abs(values[-1])
        F = (vectors[:, kept] * np.sqrt(values[kept])).T

        rows.append(np.repeat(np.arange(count, count + len(F)), index.size))
        columns.append(np.tile(index, len(F)))
        data.append(F.ravel())
        count += len(F)
    at = (np.concatenate(rows), np.concatenate(columns))
    return csc("F", sparse.csc_array((np.concatenate(data), at), shape=(count, P.shape[0])))


def _components(P: SparseMatrix) -> tuple[Index, list[Index]]:
    """The variables in components of their own, and those of each larger component."""
    from scipy.sparse.csgraph import connected_components

    _, labels = connected_components(P, directed=False)
    sizes = np.bincount(labels, minlength=1)
    tied = np.flatnonzero(sizes[labels] > 1)
    order = tied[np.argsort(labels[tied], kind="stable")]
    groups = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1) if order.size else []
    return np.flatnonzero(sizes[labels] == 1), groups


def _dense(name: str, P: SparseMatrix, index: Index) -> FloatArray:
    require_memory(32.0 * index.size**2, f"{name}, with a component of {index.size} variables")
    return cast(FloatArray, P.tocsr()[index][:, index].toarray())
