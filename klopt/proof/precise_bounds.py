"""Ends of a cone program from points and multipliers of many digits, in balls.

    minimise  c'x   subject to  s = b - Ax in K

Where the optimum lies at the rounding of floats from the edge of its cones, no float proves it. A
witness may then be a sum of floats, and everything is evaluated in balls of as many bits as it
needs (`klopt.proof.balls`): a comparison of balls is true where it holds for all numbers in them.

**Lemma D1 (solutions in balls).** If elimination in balls ends for a square matrix B and a right-hand
side r, B is regular, and the ball it returns holds the exact solution of Bd = r. So x, moved in as
many columns as there are equations, meets all equations exactly, and y, moved in as many rows as
there are columns without both bounds, has A'y = -c exactly in these columns; where the moved ball lies in its cones,
so does the exact vector in it.

**Lemma D2 (cones in balls).** A vector is in the nonnegative or a second-order cone if s_i >= 0 or
s_0 >= 0 and s_0^2 >= sum s_i^2 hold for all numbers in its balls, and a matrix is positive definite by
Lemma B1. Such a point bounds the optimum from above, such multipliers bound it from below (Lemmas C1
and C2).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.model.cones import order_of, svec_entries
from klopt.proof.balls import definite_log_det, enclosure_of_ball, working_bits
from klopt.proof.cone_witnesses import ProvenEnd
from klopt.proof.statement import ConeStatement
from klopt.proof.time_budget import exhausted

__all__ = ["PreciseWitness", "open_columns", "precise_lower_bound", "precise_upper_bound"]

Indices = npt.NDArray[np.intp]
Ball = Any
"""A number of python-flint's type `arb`."""


@dataclass(frozen=True, eq=False)
class PreciseWitness:
    """A vector of many digits, and where it may be moved to solve equations exactly.

    Parameters
    ----------
    parts
        Floats of the shape (number of parts, size); the vector is the exact sum over the first axis.
    moved
        For a point as many columns as there are equations, for multipliers as many rows as there
        are `open_columns`.
    """

    parts: FloatArray
    moved: Indices = field(default_factory=lambda: np.zeros(0, np.intp))


def precise_upper_bound(
    statement: ConeStatement, witness: PreciseWitness, bits: int = 640
) -> ProvenEnd:
    """Return an upper bound of the optimum from a point of many digits (Lemmas D1 and D2).

    >>> from klopt.model.cones import Cones
    >>> A = sparse.csc_array([[3.0], [-1.0]])
    >>> statement = ConeStatement(np.array([1.0]), A, np.array([1.0, 0.0]), Cones(zero=1, nonneg=1))
    >>> point = PreciseWitness(np.array([[0.3], [0.03]]), np.array([0]))
    >>> abs(precise_upper_bound(statement, point).value - 1 / 3) < 1e-15
    True
    """
    flaw = _flaw(statement, witness, statement.c.size)
    if flaw:
        return ProvenEnd(np.inf, flaw)
    with working_bits(bits):
        x = _balls(witness.parts)
        zero = statement.cones.zero
        if zero:
            residual = _slack(statement, x)[:zero]
            B = statement.rows[:zero]
            if not _solved(x, B, witness.moved, residual):
                return ProvenEnd(np.inf, "no exact solution of the equations is proven next to x")
        slack = _slack(statement, x)
        flaw = _outside(statement, slack)
        if not flaw and np.isfinite(statement.within):
            square = sum((v * v for v in x), _ball(0.0))
            if not square <= _ball(statement.within) ** 2:
                flaw = "the point is not within the declared bound of x"
        if flaw:
            return ProvenEnd(np.inf, flaw)
        value = sum((_ball(c) * v for c, v in zip(statement.c.tolist(), x, strict=True)), _ball(0))
        end = enclosure_of_ball(value).upper
    return ProvenEnd(float(end), "value at an exactly feasible point of many digits (Lemma D2)")


def precise_lower_bound(
    statement: ConeStatement, witness: PreciseWitness, bits: int = 640
) -> ProvenEnd:
    """Return a lower bound of the optimum from multipliers of many digits (Lemmas D1 and D2).

    >>> from klopt.model.cones import Cones
    >>> A = sparse.csc_array([[-3.0]])
    >>> statement = ConeStatement(np.array([1.0]), A, np.array([-1.0]), Cones(nonneg=1))
    >>> precise_lower_bound(statement, PreciseWitness(np.array([[0.3]]), np.array([0]))).value
    0.3333333333333...
    """
    flaw = _flaw(statement, witness, statement.b.size)
    if flaw:
        return ProvenEnd(-np.inf, flaw)
    with working_bits(bits):
        y = _balls(np.where(statement.vacuous, 0.0, witness.parts))
        known = statement.stated_range
        unbounded = open_columns(statement)
        weighted = sparse.csr_array(sparse.diags_array(statement.weight) @ statement.rows)
        columns = sparse.csr_array(weighted.T)
        if unbounded.size and np.isinf(statement.within):
            if statement.vacuous[witness.moved].any():
                return ProvenEnd(-np.inf, "a row that says nothing has a multiplier")
            residual = [-g for g in _gradient(statement, columns, y)]
            if not _solved(y, columns[unbounded], witness.moved, [residual[j] for j in unbounded]):
                return ProvenEnd(-np.inf, "no multipliers without a gradient are proven next to y")
        flaw = _outside(statement, y)
        if flaw:
            return ProvenEnd(-np.inf, flaw)
        gradient = _gradient(statement, columns, y)
        total = _ball(0.0)
        for j in np.setdiff1d(np.arange(statement.c.size), unbounded).tolist():
            g = gradient[j]
            # The least of g x lies at a bound of x.
            total += (g * _ball(known.lower[j])).min(g * _ball(known.upper[j]))
        if np.isfinite(statement.within):
            # The gradients of the other columns are exactly 0 otherwise, by Lemma D1.
            square = sum((gradient[j] * gradient[j] for j in unbounded), _ball(0.0))
            total -= square.sqrt() * _ball(statement.within)
        used = np.flatnonzero(~statement.vacuous & (statement.b != 0))
        for i in used.tolist():
            total -= _ball(statement.weight[i]) * y[i] * _ball(statement.b[i])
        end = enclosure_of_ball(total).lower
    by = "weak duality (Lemma C1) with multipliers of many digits (Lemma D1)"
    return ProvenEnd(float(end), by)


def open_columns(statement: ConeStatement) -> Indices:
    """Return the columns that lack a lower or an upper bound of their own."""
    known = statement.stated_range
    return np.flatnonzero(np.isinf(known.lower) | np.isinf(known.upper))


def _flaw(statement: ConeStatement, witness: PreciseWitness, size: int) -> str:
    """What keeps the lemmas from being applied; "" without."""
    if statement.P is not None or statement.quadratics or not statement.cones.is_symmetric:
        return "the program has curved terms that are not evaluated with many digits"
    if (statement.b == -np.inf).any():
        return "a row asks for something below -inf"
    if (np.isinf(statement.b) & (np.arange(statement.b.size) < statement.cones.zero)).any():
        return "an equation has no finite right-hand side"
    parts = witness.parts
    if parts.ndim != 2 or parts.shape[1] != size or not np.isfinite(parts).all():
        return "the witness is not finite"
    moved = witness.moved
    if ((moved < 0) | (moved >= size)).any():
        return "the witness names a place that does not exist"
    return ""


def _ball(value: float) -> Ball:
    from flint import arb

    return arb(float(value))


def _balls(parts: FloatArray) -> list[Ball]:
    """The exact sums over the first axis, in balls."""
    return [sum(map(_ball, column), _ball(0.0)) for column in parts.T.tolist()]


def _slack(statement: ConeStatement, x: list[Ball]) -> list[Ball]:
    """b - Ax row by row; 0 for rows that say nothing."""
    rows = statement.rows
    slack = []
    for i, b in enumerate(statement.b.tolist()):
        total = _ball(0.0 if statement.vacuous[i] else b)
        for place in range(rows.indptr[i], rows.indptr[i + 1]):
            total -= _ball(rows.data[place]) * x[rows.indices[place]]
        slack.append(_ball(0.0) if statement.vacuous[i] else total)
    return slack


def _gradient(statement: ConeStatement, columns: sparse.csr_array, y: list[Ball]) -> list[Ball]:
    """c + A'y, the weights of rows being part of `columns`."""
    gradient = []
    for j, c in enumerate(statement.c.tolist()):
        total = _ball(c)
        for place in range(columns.indptr[j], columns.indptr[j + 1]):
            total += _ball(columns.data[place]) * y[columns.indices[place]]
        gradient.append(total)
    return gradient


def _solved(v: list[Ball], rows: sparse.csr_array, moved: Indices, residual: list[Ball]) -> bool:
    """Whether v was moved, in the places named, to an exact solution of rows v' = rows v + residual."""
    from flint import arb_mat

    count = rows.shape[0]
    if moved.size != count or np.unique(moved).size != count:
        return False
    B = arb_mat(rows[:, moved].toarray().tolist())
    try:
        step = B.solve(arb_mat(count, 1, residual))
    except ZeroDivisionError:
        # The matrix may be singular.
        return False
    for place, index in enumerate(moved.tolist()):
        v[index] = v[index] + step[place, 0]
    return True


def _outside(statement: ConeStatement, s: list[Ball]) -> str:
    """Name a cone in which a vector is not proven to lie (Lemma D2); "" without."""
    cones = statement.cones
    for i in range(cones.zero, cones.zero + cones.nonneg):
        if not s[i] >= 0:
            return f"row {i} is not proven nonnegative"
    for kind, block in cones.blocks():
        if kind not in ("soc", "psd") or block.start == block.stop:
            continue
        if exhausted():
            return "there was no time for balls"
        part = s[block]
        if kind == "soc":
            tail = sum((v * v for v in part[1:]), _ball(0.0))
            if not (part[0] >= 0 and part[0] * part[0] >= tail):
                return "a cone (soc) is not proven"
        elif not _is_definite(part, statement.plain):
            return "a cone (psd) is not proven"
    return ""


def _is_definite(part: list[Ball], plain: bool) -> bool:
    """Whether the matrix of the rows of a block is positive definite, or exactly 0."""
    from flint import arb, arb_mat

    if all(v == 0 for v in part):
        return True
    order = order_of(len(part))
    down, across = svec_entries(order)
    half = arb(1) if plain else arb(0.5).sqrt()
    matrix = [[arb(0)] * order for _ in range(order)]
    for v, i, j in zip(part, down.tolist(), across.tolist(), strict=True):
        matrix[i][j] = matrix[j][i] = v if i == j else v * half
    return definite_log_det(arb_mat(matrix)) is not None
