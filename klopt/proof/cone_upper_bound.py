"""An upper bound of the optimum of a cone program that holds in exact arithmetic.

    minimise  x'Px/2 + c'x   subject to  s = b - Ax in K,  x'P_i x/2 + q_i'x <= r_i

**Lemma C3 (a feasible point exists).** If the equations have a solution within D_j t of x (Lemma S1)
and every other constraint holds with a margin for all such points, there is a feasible point, and
the objective at x plus its change over that neighbourhood bounds the optimum from above.

No tolerance enters: every radius is made of the terms of the sum it bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.proof.cone_membership import (
    in_cone,
    in_cone_exactly,
    norms_of_blocks,
    second_order_depths,
)
from klopt.proof.cone_slack import (
    FEW_ROWS,
    MAX_EXACT_DOT,
    MAX_EXACT_TERMS,
    enclose_slack,
    enclose_value,
    is_zero,
    slack_summed_exactly,
)
from klopt.proof.cone_witnesses import PrimalWitness, ProvenEnd
from klopt.proof.directed import norm_up, norms_by_rows, product_up, sum_up
from klopt.proof.enclosure import (
    ETA,
    Enclosure,
    enclose_dot,
    enclose_norm,
)
from klopt.proof.exact_rank import independent_rows
from klopt.proof.linear_systems import shortest_correction
from klopt.proof.statement import ConeStatement, QuadraticConstraint
from klopt.proof.time_budget import exhausted

__all__ = [
    "NO_SOLUTION",
    "upper_bound",
]

Indices = npt.NDArray[np.intp]

FEW_EQUATIONS = 4
"""Up to so many rows are solved as a dense matrix."""
NO_SOLUTION = "no exact solution of the equations is proven next to x"
"""What keeps a point from proving an upper end where the equations are the obstacle."""
NO_TIME = "the time limit is over"
"""What keeps it where the checks were stopped."""


def upper_bound(
    statement: ConeStatement, witness: PrimalWitness, *, ranking: bool = True
) -> ProvenEnd:
    """Return an upper bound of the optimum: an exactly feasible point lies next to x (Lemma C3).

    Without `ranking` there is none where equations depend on each other: that takes rationals.

    >>> from klopt.model.cones import Cones
    >>> A = sparse.csc_array([[1.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    >>> cones = Cones(zero=1, nonneg=2)
    >>> statement = ConeStatement(np.array([1.0, 2.0]), A, np.array([1.0, 0.0, 0.0]), cones)
    >>> upper_bound(statement, PrimalWitness(np.array([1.0, 0.0]))).value < 1 + 1e-15
    True
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return _upper_bound(statement, witness, ranking)


def _upper_bound(statement: ConeStatement, witness: PrimalWitness, ranking: bool) -> ProvenEnd:
    x = witness.x
    if not np.isfinite(x).all():
        return ProvenEnd(np.inf, "the point is not finite")
    if (statement.b == -np.inf).any():
        return ProvenEnd(np.inf, "a row asks for something below -inf")
    slack = enclose_slack(statement, x)
    cones = statement.cones
    # A witness may name any rows: those that are no inequalities are none to be met with equality.
    tight = np.asarray(witness.tight, np.intp)
    if tight.size:
        # `unique` takes a fifth of a second for half a million rows.
        if not (np.diff(tight) > 0).all():
            tight = np.unique(tight)
        tight = tight[(tight >= cones.zero) & (tight < cones.zero + cones.nonneg)]
        tight = tight[~statement.vacuous[tight]]
    equations = np.concatenate((np.arange(cones.zero, dtype=np.intp), tight))

    # Sums that may be 0 are summed exactly: the equations, and inequalities without a margin.
    inequality = np.arange(cones.zero, cones.zero + cones.nonneg)
    doubtful = inequality[(slack.lower[inequality] < 0) & ~statement.vacuous[inequality]]
    met = doubtful if not tight.size else np.setdiff1d(doubtful, tight, assume_unique=True)
    flaw = _surely_violated(statement, x, slack, met)
    if flaw:
        return ProvenEnd(np.inf, flaw)
    if exhausted():
        return ProvenEnd(np.inf, NO_TIME)
    slack = slack_summed_exactly(statement, x, slack, np.concatenate((equations, doubtful)))
    if exhausted():
        return ProvenEnd(np.inf, NO_TIME)

    step = _Neighbourhood(np.zeros(x.size), 0.0)
    if not is_zero(slack[equations]).all():
        found = _solve_rows(statement, x, slack, equations)
        if found is None and ranking:
            # Dependent equations have no room to be solved one by one: those that follow exactly
            # from the others are left out.
            found, tight = _solve_independent_rows(statement, x, slack, equations)
        if found is None:
            return ProvenEnd(np.inf, NO_SOLUTION)
        step = found

    flaw = _violated(statement, x, slack, tight, step)
    if flaw:
        return ProvenEnd(np.inf, flaw)
    value = _objective(statement, x, step)
    if not np.isfinite(value):
        return ProvenEnd(np.inf, "the objective overflows")
    by = "value at an exactly feasible point"
    if step.size:
        by += ", which exists next to the one shown (Lemma S1)"
    return ProvenEnd(value, by)


@dataclass(frozen=True, eq=False)
class _Neighbourhood:
    """All x + D d with ||d|| <= size."""

    D: FloatArray
    size: float

    def spread(self, rows: Any) -> FloatArray:
        """A bound of |rows D d| row by row: their norms times the size.

        `norms_by_rows` leaves space for the roundings of what follows.
        """
        D = self.D[rows.indices]
        # Products that underflow are kept by a term of their own, in rows that can move at all.
        moves = (rows.data != 0) & (D > 0)
        row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        moving = np.bincount(row[moves], minlength=rows.shape[0])
        norms = norms_by_rows(rows.data * D, row, rows.shape[0])
        return np.asarray(norms * self.size + moving * ETA)


def _solve_rows(
    statement: ConeStatement,
    x: FloatArray,
    slack: Enclosure,
    equations: Indices,
) -> _Neighbourhood | None:
    """Points next to x among which the equations have an exact solution; None without a proof."""
    stated = statement.stated_range
    # Any room is right: whether all of the neighbourhood is feasible is decided later.
    room = np.minimum(np.minimum(x - stated.lower, stated.upper - x), 1.0 + np.abs(x))
    room = np.maximum(room, 0.0)
    # All equations are solved together, since the exact ones must stay so; those that no variable
    # can change do.
    movable = np.flatnonzero(room)
    B: Any
    if equations.size <= FEW_EQUATIONS:
        few = statement.few_rows(equations)[:, movable]
        moved = few.any(axis=1)
        B = few[moved] * room[movable]
    else:
        touched = sparse.csr_array(statement.rows[equations][:, movable])
        moved = np.diff(touched.indptr).astype(bool)
        B = sparse.csr_array(touched[moved] @ sparse.diags_array(room[movable]))
    if not is_zero(slack[equations[~moved]]).all():
        return None
    # As long as that of the slack with the other sign.
    size = shortest_correction(B, slack[equations[moved]])
    if not size <= 1.0:
        return None
    return _Neighbourhood(room, size)


def _solve_independent_rows(
    statement: ConeStatement, x: FloatArray, slack: Enclosure, equations: Indices
) -> tuple[_Neighbourhood | None, Indices]:
    """The same for a largest independent set of the equations, and which inequalities are in it.

    Returned with the inequalities that hold with equality: those in the set and those that follow
    from it. An inequality that contradicts the equations is not asked to hold with equality.
    """
    zero = statement.cones.zero
    A = statement.rows[equations]
    if A.nnz > MAX_EXACT_TERMS or exhausted():
        return None, equations
    if equations.size == zero:
        found = statement.independent_equations
    else:
        found = independent_rows(sparse.csc_array(A), statement.b[equations])
    # Independent ones have been tried all together.
    if found is None or not found.dependent.size:
        return None, equations
    refuted = equations[[change.row for change in found.changes]]
    # Equations of the program that contradict each other have no solution.
    if (refuted < zero).any():
        return None, equations
    kept = equations[found.independent]
    return _solve_rows(statement, x, slack, kept), np.setdiff1d(equations, refuted)


def _surely_violated(
    statement: ConeStatement, x: FloatArray, slack: Enclosure, rows: Indices
) -> str:
    """Name an inequality that x itself violates: no neighbourhood of x proves that one.

    The worst few are summed exactly first. Of a vertex in floats about half of the rows that hold
    with equality are violated by rounding, so that these few mostly decide.
    """
    if rows.size <= FEW_ROWS:
        return ""
    worst = rows[np.argsort(slack.mid[rows])[:FEW_ROWS]]
    violated = worst[slack_summed_exactly(statement, x, slack, worst)[worst].upper < 0]
    return f"inequality {violated[0]} is not proven at the point" if violated.size else ""


def _violated(
    statement: ConeStatement,
    x: FloatArray,
    slack: Enclosure,
    tight: Indices,
    step: _Neighbourhood,
) -> str:
    """Name a constraint that is not proven for all points of the neighbourhood; "" without."""
    cones = statement.cones
    spread = step.spread(statement.rows) if step.size else np.zeros(statement.b.size)
    wide = Enclosure(slack.mid, slack.rad + spread)
    inequality = slice(cones.zero, cones.zero + cones.nonneg)
    sure = (wide.lower >= 0) | statement.vacuous
    sure[tight] = True
    if not sure[inequality].all():
        row = cones.zero + int(np.flatnonzero(~sure[inequality])[0])
        return f"inequality {row} is not proven at the point"
    heads = np.array([block.start for kind, block in cones.blocks() if kind == "soc"], np.intp)
    if heads.size:
        sizes = np.array([size for size in cones.soc if size], np.intp)
        start = cones.zero + cones.nonneg
        moves = norms_of_blocks(spread[start : start + int(sizes.sum())], heads - start, sizes)
        # s_0 - ||s_1|| changes by at most sqrt(2) times the norm of the change.
        short = ~(second_order_depths(cones, slack) >= 1.5 * moves)
        for index in np.flatnonzero(short).tolist():
            block = slice(heads[index], heads[index] + sizes[index])
            # At the boundary, where nothing moves, exact numbers may still decide.
            if moves[index] or not in_cone_exactly(statement, "soc", block, x, slack):
                return "a cone (soc) is not proven at the point"
    for kind, block in cones.blocks():
        if kind not in ("psd", "exp", "power"):
            continue
        move = 0.0
        if step.size:
            move = float(enclose_norm(spread[block] * np.sqrt(statement.weight[block])).upper)
        if in_cone(statement, kind, slack[block], move):
            continue
        # At the boundary, where nothing moves, exact numbers may still decide.
        if move or not in_cone_exactly(statement, kind, block, x, slack):
            return f"a cone ({kind}) is not proven at the point"
    first = len(statement.curvatures) - len(statement.quadratics)
    for index, ball in enumerate(statement.quadratics):
        Px = statement.enclose_curvature(first + index, x)
        value = enclose_dot(x, Px) * 0.5 + enclose_dot(ball.q, x) - ball.r
        change = _change(ball.P, Px + ball.q, step)
        if value.upper + change <= 0:
            continue
        # At the boundary, where nothing moves, exact numbers may still decide.
        if step.size or not _is_met_exactly(ball, x):
            return f"quadratic constraint {index} is not proven at the point"
    if np.isfinite(statement.within):
        far = float(enclose_norm(x).upper)
        if step.size:
            far = sum_up(far, product_up(step.size, norm_up(step.D)))
        if not far <= statement.within:
            return "the point is not within the declared bound of x"
    return ""


def _is_met_exactly(ball: QuadraticConstraint, x: FloatArray) -> bool:
    """Whether x'Px/2 + q'x <= r in rationals, where there are few terms."""
    entries = sparse.coo_array(ball.P)
    if entries.nnz > MAX_EXACT_DOT:
        return False
    point = [Fraction(entry) for entry in x.tolist()]
    places = zip(entries.row.tolist(), entries.col.tolist(), entries.data.tolist(), strict=True)
    square = sum((point[i] * point[j] * Fraction(v) for i, j, v in places), Fraction(0))
    linear = sum(
        (a * Fraction(b) for a, b in zip(point, ball.q.tolist(), strict=True)), Fraction(0)
    )
    return square / 2 + linear <= Fraction(ball.r)


def _change(P: Any, gradient: Enclosure, step: _Neighbourhood) -> float:
    """How much x'Px/2 + q'x, with this gradient at x, may change over the neighbourhood."""
    if not step.size:
        return 0.0
    first = product_up(float(enclose_norm(gradient * step.D).upper), step.size)
    if P is None:
        return first
    # The entries of DPD, row by row or column by column.
    other = np.repeat(step.D, np.diff(P.indptr))
    norm = float(enclose_norm(Enclosure.of(P.data) * step.D[P.indices] * other).upper)
    return sum_up(first, product_up(norm, step.size, step.size))


def _objective(statement: ConeStatement, x: FloatArray, step: _Neighbourhood) -> float:
    """An upper bound of the objective over the neighbourhood."""
    value = enclose_value(statement.c, x)
    gradient = Enclosure.of(statement.c)
    if statement.P is not None:
        Px = statement.enclose_curvature(0, x)
        value = value + enclose_dot(x, Px) * 0.5
        gradient = gradient + Px
    change = _change(statement.P, gradient, step)
    return sum_up(float(value.upper), change) if change else float(value.upper)
