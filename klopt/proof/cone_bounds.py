"""Bounds of the optimum of a cone program that hold in exact arithmetic.

    minimise  x'Px/2 + c'x   subject to  s = b - Ax in K,  x'P_i x/2 + q_i'x <= r_i

The two ends rest on arrays that anybody may propose; what is false of them costs width, never truth.

**Lemma C1 (weak duality).** For any w, any y in K* and any l >= 0, with H = P + sum_i l_i P_i and
g = Hw + c + sum_i l_i q_i + A'y, every feasible x has

    x'Px/2 + c'x  >=  -w'Hw/2 - b'y - l'r + g'x,

since H is positive semidefinite. If H >= -phi I is all that is known, phi ||x - w||^2 / 2 is lost.

**Lemma C2 (safe bound; Neumaier and Shcherbina, 2004; Jansson, 2004).** g'x >= sum_j min g_j x_j over
what is known of x_j. A column without a bound on the side that counts needs g_j = 0 exactly: the sum
is exactly 0 (Lemma S3), or a y (and w) next to the given one makes it so and stays in K* (Lemma S1),
or the statement declares how large x can be. Otherwise there is no bound.

If H - M is positive semidefinite for a diagonal M >= 0, the square that C1 drops is at least
(x - w)'M(x - w) / 2, so that a column with m_j > 0 needs no bound: there
g_j x_j + m_j (x_j - w_j)^2 / 2 >= g_j w_j - g_j^2 / (2 m_j).

**Lemma C3 (a feasible point exists).** If the equations have a solution within D_j t of x (Lemma S1)
and every other constraint holds with a margin for all such points, there is a feasible point, and
the objective at x plus its change over that neighbourhood bounds the optimum from above.

**Lemma C4 (Farkas).** If C1 and C2 prove a bound > 0 for the objective 0, no x is feasible.

**Lemma C5 (ray).** If -Ad in K, Pd = 0, P_i d = 0, q_i'd <= 0 and c'd < 0 hold exactly, the objective
falls without bound along d from any feasible point.

No tolerance enters: every radius is made of the terms of the sum it bounds.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.model.cones import Cones, order_of, svec_entries
from klopt.proof.convexity import curvature_beside
from klopt.proof.enclosure import (
    ETA,
    UNIT_ROUNDOFF,
    Enclosure,
    enclose_dot,
    enclose_norm,
    enclose_product,
    enclose_sum,
    round_down,
    round_up,
)
from klopt.proof.exact_rank import independent_rows
from klopt.proof.linear_systems import exact_sums, shortest_correction
from klopt.proof.rational_psd import rational_psd
from klopt.proof.row_sums import exact_row_sums
from klopt.proof.semidefinite import eigenvalue_floor, is_positive_semidefinite, radius_norm
from klopt.proof.statement import ConeStatement, QuadraticConstraint, VariableRange
from klopt.proof.time_budget import exhausted

__all__ = [
    "NO_SOLUTION",
    "DualWitness",
    "PrimalWitness",
    "ProvenEnd",
    "doubtful_rows",
    "is_infeasible",
    "is_ray",
    "lower_bound",
    "upper_bound",
]

Mask = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.intp]

MAX_EXACT_TERMS = 200_000
"""Terms that are summed exactly where a sum may be 0: it takes a tenth of a second."""
MAX_EXACT_RANK = 2_000
"""Entries of stationarity conditions whose dependence is decided in rationals."""
MAX_EXACT_ROWS = 120
"""Rows of a cone that are decided in rationals at its boundary."""
MAX_EXACT_DOT = 100
"""Terms of a value that are summed exactly: it takes some ten microseconds."""
FEW_EQUATIONS = 4
"""Up to so many rows are solved as a dense matrix."""
MAX_WIDENINGS = 4
"""How often columns that a correction has moved join the system that it solves."""
ROOM_TRIALS = 20
"""How often the room around multipliers of an exponential cone is tried, each time an eighth."""
NO_SOLUTION = "no exact solution of the equations is proven next to x"
"""What keeps a point from proving an upper end where the equations are the obstacle."""
MAX_DENSE_CURVATURE = 1000
"""Variables up to which the curvature of all terms is summed to one dense matrix."""


@dataclass(frozen=True, eq=False)
class DualWitness:
    """What proves a lower bound: any w, y in K* and multipliers of the quadratic constraints."""

    w: FloatArray
    y: FloatArray
    quadratic: FloatArray = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True, eq=False)
class PrimalWitness:
    """What proves an upper bound: a point, and inequalities to be met with equality next to it."""

    x: FloatArray
    tight: Indices = field(default_factory=lambda: np.zeros(0, np.intp))


@dataclass(frozen=True)
class ProvenEnd:
    """A proven end of the interval, infinite where there is none, and the lemma or the obstacle."""

    value: float
    by: str


# The lower end


def lower_bound(
    statement: ConeStatement, witness: DualWitness, *, solving: bool = True
) -> ProvenEnd:
    """Return a lower bound of the optimum by Lemmas C1 and C2.

    Without `solving` there is none where a gradient must be exactly 0: that costs next to nothing.

    >>> from klopt.model.cones import Cones
    >>> A = sparse.csc_array([[-1.0, -1.0], [-1.0, 0.0], [0.0, -1.0]])
    >>> b = np.array([-1.0, 0.0, 0.0])
    >>> statement = ConeStatement(np.array([1.0, 2.0]), A, b, Cones(nonneg=3))
    >>> lower_bound(statement, DualWitness(np.zeros(2), np.array([0.9, 0.0, 0.0])))
    ProvenEnd(value=0.8999999999999..., by='weak duality (Lemma C1) with the bounds of ...')
    """
    # What overflows is infinite or no number, which proves nothing.
    with np.errstate(over="ignore", invalid="ignore"):
        return _Dual(statement, witness, solving).bound()


class _Dual:
    """The pieces of Lemma C1 at one witness."""

    def __init__(
        self, statement: ConeStatement, witness: DualWitness, solving: bool = True
    ) -> None:
        self.statement = statement
        self.solving = solving
        cones = statement.cones
        y = np.where(statement.vacuous, 0.0, witness.y)
        inequality = slice(cones.zero, cones.zero + cones.nonneg)
        y[inequality] = np.maximum(y[inequality], 0.0)
        self.y = y
        self.w = witness.w
        self.multipliers = np.maximum(witness.quadratic, 0.0)

    def bound(self) -> ProvenEnd:
        """Return the end that the witness proves."""
        statement = self.statement
        finite = np.isfinite(self.y).all() and np.isfinite(self.w).all()
        if not finite or not np.isfinite(self.multipliers).all():
            return ProvenEnd(-np.inf, "the multipliers are not finite")
        if (statement.b == -np.inf).any():
            return ProvenEnd(-np.inf, "a row asks for something below -inf")

        if not _in_second_order_cones(statement, self.y):
            return ProvenEnd(-np.inf, "the multipliers of a cone (soc) are not proven in it")
        for kind, block in statement.cones.blocks():
            if kind in ("psd", "exp") and not _in_dual_cone(statement, kind, self.y[block]):
                return ProvenEnd(
                    -np.inf, f"the multipliers of a cone ({kind}) are not proven in it"
                )

        gradient = self.gradient()
        value = [-self._half_curvature(), -self._right_hand_side()]
        end = self._close(gradient, value, statement.stated_range)
        if np.isfinite(min(statement.within, statement.radius)):
            # Bounds of the norm of x are worth less column by column than together.
            together = self._close(*self._taken_by_norm(gradient, value), statement.stated_range)
            if together.value > end.value:
                by = "weak duality (Lemma C1) over the declared bound of x (Lemma C2)"
                return ProvenEnd(together.value, by)
        return end

    def _taken_by_norm(
        self, gradient: Enclosure, value: list[Enclosure]
    ) -> tuple[Enclosure, list[Enclosure]]:
        """g without columns that lack a bound: they lose at most max|g| ||x||_1 or ||g|| ||x||."""
        statement = self.statement
        lacking = _lacking(gradient, statement.stated_range)
        if not lacking.any():
            return gradient, value
        size = gradient.magnitude[lacking]
        # A product with an infinite bound is infinite, since sizes are positive.
        by_sum = float(np.max(size)) * statement.radius
        by_square = float(enclose_norm(size).upper) * statement.within
        loss = float(round_up(min(by_sum, by_square)))
        mid = np.where(lacking, 0.0, gradient.mid)
        rad = np.where(lacking, 0.0, gradient.rad)
        return Enclosure(mid, rad), [*value, Enclosure.of(-loss)]

    def _close(
        self, gradient: Enclosure, value: list[Enclosure], known: VariableRange
    ) -> ProvenEnd:
        """Lemma C2: the bound of g'x from what is known of x, with more and more effort."""
        statement = self.statement
        # Of what has overflowed nothing is known, its sign included.
        if not (np.isfinite(gradient.mid).all() and np.isfinite(gradient.rad).all()):
            return ProvenEnd(-np.inf, "the gradient overflows")
        by = "weak duality (Lemma C1) with the bounds of the variables (Lemma C2)"
        lacking = _lacking(gradient, known)
        if lacking.any() and not self.solving:
            return ProvenEnd(-np.inf, "a variable without a bound may have a gradient")
        corrected = None
        if lacking.any() and _is_curved(statement.cones):
            # Inside curved cones a correction has room; exact sums can wait.
            corrected = self._solved(gradient, known, lacking)
        if lacking.any() and corrected is None:
            gradient = self._summed_exactly(gradient, np.flatnonzero(lacking))
            lacking = _lacking(gradient, known)
        if lacking.any():
            known = statement.implied_range
            lacking = _lacking(gradient, known)
        is_convex = False
        if lacking.any() and corrected is None and statement.curvatures:
            curved = self._taken_by_curvature(gradient, np.flatnonzero(lacking))
            if curved is not None:
                gradient, gain = curved
                value = [*value, gain]
                lacking = np.zeros_like(lacking)
                is_convex = True
                by = "weak duality (Lemma C1) with the curvature of the objective (Lemma C2)"
        if lacking.any():
            corrected = corrected or self._solved(gradient, known, lacking)
            limit = min(statement.within, statement.radius)
            if corrected is not None:
                gradient, change = corrected
                value = [*value, Enclosure(0.0, change)]
                by = "weak duality (Lemma C1), stationarity solved exactly (Lemma S1)"
            elif np.isfinite(limit):
                known = VariableRange(
                    np.maximum(known.lower, -limit), np.minimum(known.upper, limit)
                )
                by = "weak duality (Lemma C1) over the declared bound of x (Lemma C2)"
            else:
                worst = int(np.flatnonzero(lacking)[0])
                return ProvenEnd(
                    -np.inf, f"variable {worst} has no bound, and its gradient is not exactly 0"
                )

        loss = 0.0 if is_convex else self._nonconvexity(known)
        if loss and self.multipliers.any():
            # Where matrices are not convex by rounding, another one may make up for it.
            none = np.zeros(0, np.intp)
            loss = loss if curvature_beside(self._curvatures(), none) is None else 0.0
        if not np.isfinite(loss):
            return ProvenEnd(-np.inf, "the objective is not proven convex, and x is unbounded")
        least = _least_products(gradient, known)
        total = enclose_sum([*value, *least.tolist(), -loss])
        found = total.lower
        if np.isnan(found):
            return ProvenEnd(-np.inf, "the bound overflows")
        return ProvenEnd(float(found), by)

    def gradient(self) -> Enclosure:
        """g = Hw + c + sum_i l_i q_i + A'y, entry by entry."""
        statement = self.statement
        weighted = statement.weight * self.y
        products = statement.column_products
        count = products.count
        mid, terms = products.of(weighted)
        # Lemma E2 column by column: each has its own number of terms.
        share = (count + 2) * UNIT_ROUNDOFF * (1 + 2.0**-20)
        rad = share * terms * (1 + (count + 4) * 2 * UNIT_ROUNDOFF) + (count + 2) * 2.0**-1074
        g = Enclosure(mid, np.where(count == 0, 0.0, rad))
        # Adding 0 is exact.
        if statement.c.any():
            g = g + statement.c
        for product, factor in self._curved_products:
            g = g + factor * product
        for row, factor in zip(statement.quadratics, self.multipliers, strict=True):
            if factor:
                g = g + factor * Enclosure.of(row.q)
        return g

    def _curvatures(self) -> list[tuple[Any, float]]:
        """The matrices of H and their factors."""
        matrices = self.statement.curvatures
        factors = [1.0] * (len(matrices) - self.multipliers.size) + self.multipliers.tolist()
        return [pair for pair in zip(matrices, factors, strict=True) if pair[1]]

    def _half_curvature(self) -> Enclosure:
        total = Enclosure.of(0.0)
        for product, factor in self._curved_products:
            total = total + enclose_dot(self.w, product) * (factor / 2)
        return total

    @cached_property
    def _curved_products(self) -> list[tuple[Enclosure, float]]:
        """The products of the matrices of H with w, and their factors."""
        pairs = self._curvatures()
        return [(enclose_product(matrix, self.w), factor) for matrix, factor in pairs]

    def _right_hand_side(self) -> Enclosure:
        """b'y + l'r."""
        statement = self.statement
        used = self.y != 0
        total = _dot((statement.weight * self.y)[used], statement.b[used])
        for row, factor in zip(statement.quadratics, self.multipliers, strict=True):
            total = total + Enclosure.of(float(factor)) * row.r
        return total

    def _nonconvexity(self, known: VariableRange) -> float:
        """phi ||x - w||^2 / 2 for H >= -phi I, over the variables that H knows."""
        statement = self.statement
        total = 0.0
        matrices = statement.curvatures
        factors = [1.0] * (len(matrices) - self.multipliers.size) + self.multipliers.tolist()
        for index, (matrix, factor) in enumerate(zip(matrices, factors, strict=True)):
            phi = statement.nonconvexity(index) if factor else 0.0
            if not phi:
                continue
            support = np.flatnonzero(np.diff(matrix.indptr))
            w = self.w[support]
            reach = np.maximum(known.upper[support] - w, w - known.lower[support])
            limit = min(statement.within, statement.radius)
            if np.isfinite(limit):
                reach = np.minimum(reach, limit + np.abs(w))
            with np.errstate(over="ignore"):
                square = float(np.sum(reach * reach))
            total += phi * factor * square * 0.500001
        # One matrix may make up for what another one lacks by rounding.
        if total and not np.isfinite(total) and self._is_convex():
            return 0.0
        return total

    def _is_convex(self) -> bool:
        """Whether H itself is proven positive semidefinite."""
        H = self._curvature()
        return H is not None and is_positive_semidefinite(
            H.mid, float(round_up(radius_norm(H.rad)))
        )

    def _curvature(self) -> Enclosure | None:
        """H as one dense matrix; None where it is too large."""
        n = self.w.size
        if n > MAX_DENSE_CURVATURE:
            return None
        H = Enclosure.of(np.zeros((n, n)))
        for matrix, factor in self._curvatures():
            H = H + Enclosure.of(matrix.toarray()) * factor
        # Rows of zeros are zeros of all matrices, not what is left of larger entries.
        entries = np.zeros(n, dtype=bool)
        for matrix, _ in self._curvatures():
            entries |= np.asarray(abs(matrix) @ np.ones(n)) > 0
        if (entries & ~H.mid.any(axis=1)).any():
            return None
        return H

    # Gradients that are exactly 0

    def _summed_exactly(self, gradient: Enclosure, columns: Indices) -> Enclosure:
        """The gradient with some of its entries summed without rounding (Lemma S3)."""
        statement = self.statement
        curvatures = self._curvatures()
        # A product of three factors, a multiplier times P_i w, is not summed exactly.
        if any(factor != 1.0 for _, factor in curvatures) or self.multipliers.any():
            return gradient
        A = statement.A
        sizes = np.diff(A.indptr)[columns]
        P = None if statement.P is None else statement.P
        terms = int(sizes.sum()) + (0 if P is None else int(np.diff(P.indptr)[columns].sum()))
        if terms > MAX_EXACT_TERMS:
            return gradient
        products = [(sparse.csr_array(A[:, columns].T), statement.weight * self.y)]
        if P is not None:
            products.append((sparse.csr_array(P[:, columns].T), self.w))
        sums = exact_row_sums(products, statement.c[columns])
        mid = gradient.mid.copy()
        rad = gradient.rad.copy()
        better = sums.rad < rad[columns]
        mid[columns[better]] = sums.mid[better]
        rad[columns[better]] = sums.rad[better]
        return Enclosure(mid, rad)

    def _taken_by_curvature(
        self, gradient: Enclosure, columns: Indices
    ) -> tuple[Enclosure, Enclosure] | None:
        """g without some columns, whose products with x the curvature of H bounds; and that bound.

        H is then proven positive semidefinite: no nonconvexity is left to charge.
        """
        curvatures = self._curvatures()
        curvature = curvature_beside(curvatures, columns) if curvatures else None
        if curvature is None:
            return None
        g = gradient[columns]
        loss = g.square() / (2 * Enclosure.of(curvature))
        gain = (g * self.w[columns]).sum() - loss.sum()
        mid = gradient.mid.copy()
        rad = gradient.rad.copy()
        mid[columns] = 0.0
        rad[columns] = 0.0
        return Enclosure(mid, rad), gain

    def _solved(
        self, gradient: Enclosure, known: VariableRange, lacking: Mask
    ) -> tuple[Enclosure, float] | None:
        """g after a correction that leaves no column without a bound; None without a proof."""
        columns = lacking
        bounded = np.flatnonzero(~lacking)
        if 0 < bounded.size <= np.count_nonzero(lacking):
            # With all columns in the system, those that need no correction can be held.
            corrected = self._corrected(gradient, np.arange(lacking.size), bounded)
            if corrected is not None:
                return corrected
        for _ in range(MAX_WIDENINGS):
            corrected = self._corrected(gradient, np.flatnonzero(columns))
            if corrected is None:
                return None
            # The correction moves other columns, some of which may now need to be solved as well.
            moved = _lacking(corrected[0], known)
            if not moved.any():
                return corrected
            columns = columns | moved
        return None

    def _corrected(
        self, gradient: Enclosure, columns: Indices, held: Indices | None = None
    ) -> tuple[Enclosure, float] | None:
        """g with exact zeros in some columns, by a y and w next to the given ones (Lemma S1).

        Returned with what the change of y and w may cost. That grows with the largest room, so
        that all rooms are first cut down to the smallest of a curved cone. Columns that are held
        keep their g.
        """
        room = _dual_room(self.statement, self.y)
        curved = room[self.statement.cones.zero + self.statement.cones.nonneg :]
        least = float(np.min(curved[curved > 0], initial=np.inf))
        if np.isfinite(least):
            found = self._corrected_within(gradient, columns, np.minimum(room, 8 * least), held)
            if found is not None:
                return found
        return self._corrected_within(gradient, columns, room, held)

    def _corrected_within(
        self, gradient: Enclosure, columns: Indices, room: FloatArray, held: Indices | None
    ) -> tuple[Enclosure, float] | None:
        """The same by a change that is no longer than the room of each cone."""
        statement = self.statement
        known = gradient
        if held is not None:
            mid, rad = gradient.mid.copy(), gradient.rad.copy()
            mid[held] = rad[held] = 0.0
            gradient = Enclosure(mid, rad)
        used = np.flatnonzero(room > 0)
        # In the scale of the room, a change of norm 1 stays in K*; off-diagonal entries of plain
        # blocks count twice in the norm, so that their unit is 1 / sqrt(2).
        scale = np.where(np.isinf(room), _free_scale(statement, self.y), room)[used]
        root = np.sqrt(statement.weight[used])
        B = sparse.csr_array(statement.A[:, columns].T)[:, used]
        B = sparse.csr_array(B @ sparse.diags_array(scale * root))
        # w moves too, where H is P alone.
        P = None if statement.P is None else sparse.csr_array(statement.P)
        if self.multipliers.any():
            P = None
        w_scale = np.zeros(0)
        if P is not None:
            w_scale = 1.0 + np.abs(self.w)
            beside = P[columns] @ sparse.diags_array(w_scale)
            B = sparse.hstack([B, beside], format="csr")
        size = shortest_correction(B, gradient[columns], 4 * UNIT_ROUNDOFF)
        # Blocks and inequalities have room for a change of norm 1.
        if not size <= 1.0:
            # Entries follow from others where all of them are 0, which held ones are not.
            kept = None if held is not None else self._independent_columns(columns)
            if kept is None:
                return None
            size = shortest_correction(B[kept], gradient[columns[kept]], 4 * UNIT_ROUNDOFF)
            if not size <= 1.0:
                return None

        # What y may change by, entry by entry in norm: the other columns of A'y ...
        moved = sparse.diags_array(scale * root) @ statement.rows[used]
        reach = _row_norms(sparse.csr_array(moved.T)) * size
        # ... and b'y.
        cost = float(enclose_norm(statement.b[used] * scale * root).upper) * size * 1.000001
        if P is None:
            cost = min(cost, self._cost_by_slack(gradient, columns, used, scale * root, size))
        if P is not None:
            side = sparse.csr_array(P @ sparse.diags_array(w_scale))
            reach = reach + _row_norms(side) * size
            # -(w + d)'P(w + d)/2 changes by at most |w'Pd| + d'Pd/2.
            Pw = enclose_product(P, self.w)
            cost += float(enclose_norm(Pw * w_scale).upper) * size * 1.000001
            double = sparse.csr_array(sparse.diags_array(w_scale) @ side)
            norm = float(enclose_norm(double.data).upper)
            cost += norm * size * size * 0.500001
        mid = gradient.mid.copy()
        rad = gradient.rad + reach
        mid[columns] = 0.0
        rad[columns] = 0.0
        if held is not None:
            mid[held] = known.mid[held]
            rad[held] = known.rad[held]
        if not np.isfinite(cost) or not np.isfinite(rad).all():
            return None
        return Enclosure(mid, rad), cost

    def _independent_columns(self, columns: Indices) -> Indices | None:
        """Which entries of stationarity the others follow from; None where that is all of them.

        An entry of g that depends on others, c included, is 0 where they are, for any w and y.
        """
        statement = self.statement
        # With quadratic constraints g is not linear in the multipliers and w.
        if self.multipliers.any() or exhausted():
            return None
        cache = statement.independent_columns
        key = columns.tobytes()
        if key not in cache:
            cache[key] = self._find_independent_columns(columns)
        return cache[key]

    def _find_independent_columns(self, columns: Indices) -> Indices | None:
        """The same in rationals."""
        statement = self.statement
        parts = [sparse.csr_array(statement.A[:, columns].T)]
        if statement.P is not None:
            parts.append(sparse.csr_array(statement.P)[columns])
        M = sparse.csc_array(sparse.hstack(parts, format="csc"))
        if M.nnz > MAX_EXACT_RANK or columns.size > M.shape[1]:
            return None
        found = independent_rows(M, -statement.c[columns])
        if found is None or not found.consistent or not found.dependent.size:
            return None
        return found.independent

    def _cost_by_slack(
        self, gradient: Enclosure, columns: Indices, used: Indices, unit: FloatArray, size: float
    ) -> float:
        """What b'y may change by: (b - Au)'dy + u'A'dy for any u, and A'dy = -g is known.

        With u = w, next to an optimum, the slack b - Au is small where y is large.
        """
        u = np.zeros_like(self.w)
        u[columns] = self.w[columns]
        slack = _slack(self.statement, u)[used]
        far = float(enclose_norm(slack * unit).upper) * size
        near = float(enclose_dot(u[columns], gradient[columns]).magnitude)
        return (far + near) * 1.000001


def _is_curved(cones: Cones) -> bool:
    return bool(cones.soc or cones.psd or cones.exp)


def _lacking(gradient: Enclosure, known: VariableRange) -> Mask:
    """Columns whose g_j x_j has no lower bound: g_j may have the sign of a missing bound."""
    falls = (gradient.lower < 0) & np.isinf(known.upper) & ~_is_zero(gradient)
    rises = (gradient.upper > 0) & np.isinf(known.lower) & ~_is_zero(gradient)
    return np.asarray(falls | rises)


def _is_zero(x: Enclosure) -> Mask:
    return np.asarray((x.mid == 0) & (x.rad == 0))


def _least_products(gradient: Enclosure, known: VariableRange) -> FloatArray:
    """A lower bound of g_j x_j for each column: the smallest of four corners, rounded down."""
    g_low = gradient.lower
    g_high = gradient.upper
    with np.errstate(invalid="ignore", over="ignore"):
        corners = np.stack(
            [
                g_low * known.lower,
                g_low * known.upper,
                g_high * known.lower,
                g_high * known.upper,
            ]
        )
    # Where one side of x is unknown, its corners do not count: `_lacking` has made sure of the sign.
    corners = np.where(np.isnan(corners), 0.0, corners)
    below = np.isinf(known.lower)
    above = np.isinf(known.upper)
    corners[0] = np.where(below, np.inf, corners[0])
    corners[2] = np.where(below, np.inf, corners[2])
    corners[1] = np.where(above, np.inf, corners[1])
    corners[3] = np.where(above, np.inf, corners[3])
    least = np.min(corners, axis=0, initial=np.inf)
    # A free column has gradient 0; so has one that is exactly 0.
    nothing = _is_zero(gradient) | (below & above)
    least = np.where(nothing, 0.0, round_down(least))
    return np.asarray(least[least != 0.0], float)


def _free_scale(statement: ConeStatement, y: FloatArray) -> FloatArray:
    """A unit for multipliers without a sign: any will do, one of their size is well scaled."""
    return np.asarray(1.0 + np.abs(y))


def _dual_room(statement: ConeStatement, y: FloatArray) -> FloatArray:
    """How far y may move in norm, cone by cone, without leaving K*: inf for zero rows."""
    cones = statement.cones
    room = np.where(statement.vacuous, 0.0, np.inf)
    inequality = slice(cones.zero, cones.zero + cones.nonneg)
    room[inequality] = np.where(statement.vacuous, 0.0, y)[inequality]
    start = inequality.stop
    sizes = np.array([size for size in cones.soc if size], dtype=np.intp)
    depth = np.maximum(_soc_depths(cones, Enclosure.of(y)), 0.0)
    room[start : start + int(sizes.sum())] = np.repeat(depth / 1.415, sizes)
    for kind, block in cones.blocks():
        if kind == "psd":
            M = _matrix(statement, Enclosure.of(y[block]))
            floor = eigenvalue_floor(M.mid) - radius_norm(M.rad)
            room[block] = max(floor * (1 - 4 * UNIT_ROUNDOFF), 0.0)
        elif kind == "exp":
            room[block] = np.repeat(_dual_exponential_room(y[block].reshape(-1, 3)), 3)
    return room


def _dual_exponential_room(y: FloatArray) -> FloatArray:
    """How far each row (u, v, w) may move without leaving the dual exponential cone: a trial proves it."""
    size = np.where(y[:, 0] < 0, np.max(np.abs(y), axis=1, initial=0.0), 0.0)
    trials = size * 8.0 ** -np.arange(1, ROOM_TRIALS + 1)[:, None]
    around = Enclosure(
        np.broadcast_to(y, (ROOM_TRIALS, *y.shape)).reshape(-1, 3),
        np.repeat(trials.reshape(-1, 1), 3, axis=1),
    )
    proven = _in_dual_exponential(around).reshape(trials.shape)
    return np.asarray(np.max(np.where(proven, trials, 0.0), axis=0))


def _dot(x: FloatArray, y: FloatArray) -> Enclosure:
    """x'y, without rounding but the last where there are few terms (Lemma S3)."""
    if x.size <= MAX_EXACT_DOT:
        total = exact_sums([[(x, y)]])
        if np.isfinite(total.rad[0]):
            return Enclosure(float(total.mid[0]), float(total.rad[0]))
    return enclose_dot(x, y)


# Membership


def _matrix(statement: ConeStatement, v: Enclosure) -> Enclosure:
    """The symmetric matrix of the rows of one semidefinite block."""
    order = order_of(v.size)
    rows, columns = svec_entries(order)
    if not statement.plain:
        half = np.where(rows == columns, 1.0, np.sqrt(0.5))
        # sqrt(1/2) is rounded once; the diagonal is exact.
        scaled = v.mid * half
        rounding = np.where(rows == columns, 0.0, 3 * UNIT_ROUNDOFF * np.abs(scaled))
        v = Enclosure(scaled, (v.rad * half + rounding) * (1 + 8 * UNIT_ROUNDOFF))
    mid = np.zeros((order, order))
    rad = np.zeros((order, order))
    for full, part in ((mid, v.mid), (rad, v.rad)):
        full[rows, columns] = part
        full[columns, rows] = part
    return Enclosure(mid, rad)


def _soc_depths(cones: Cones, s: Enclosure) -> FloatArray:
    """For each second-order cone a lower bound of s_0 - ||s_1|| over every s enclosed."""
    start = cones.zero + cones.nonneg
    sizes = np.array([size for size in cones.soc if size], dtype=np.intp)
    if not sizes.size:
        return np.zeros(0)
    rows = slice(start, start + int(sizes.sum()))
    heads = np.cumsum(sizes) - sizes
    tails = s.magnitude[rows].copy()
    tails[heads] = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        difference = s.lower[rows][heads] - _norms_of_blocks(tails, heads, sizes)
        # The sign of a rounded difference is right.
        depth = np.where(difference >= 0, np.maximum(round_down(difference), 0.0), -np.inf)
    return np.where(np.isfinite(depth), depth, -np.inf)


def _norms_of_blocks(v: FloatArray, heads: Indices, sizes: Indices) -> FloatArray:
    """Upper bounds of the norms of consecutive blocks of a vector."""
    largest = np.maximum.reduceat(np.abs(v), heads)
    # Powers of two, so that squares do not overflow and scaling is exact.
    unit = np.ldexp(1.0, np.clip(np.frexp(largest)[1], -1000, 1000))
    squares = np.add.reduceat((v / np.repeat(unit, sizes)) ** 2, heads)
    norm = np.sqrt(squares) * unit * (1 + (sizes + 8) * 2 * UNIT_ROUNDOFF)
    # A single entry is its own norm.
    alone = np.add.reduceat((v != 0).astype(np.intp), heads) <= 1
    return np.where(alone, largest, norm + 4 * ETA)


def _in_second_order_cones(statement: ConeStatement, y: FloatArray) -> bool:
    """Whether y lies in the second-order cones, at their boundary by exact numbers."""
    short = ~(_soc_depths(statement.cones, Enclosure.of(y)) >= 0)
    if not short.any():
        return True
    blocks = [block for kind, block in statement.cones.blocks() if kind == "soc"]
    failed = [blocks[index] for index in np.flatnonzero(short)]
    return all(_is_in_cone_exactly(statement, "soc", y[block]) for block in failed)


def _in_dual_cone(statement: ConeStatement, kind: str, y: FloatArray) -> bool:
    """Whether y lies in the dual of a semidefinite or an exponential cone."""
    if not y.any():
        return True
    if kind == "exp":
        return bool(_in_dual_exponential(Enclosure.of(y.reshape(-1, 3))).all())
    if _in_cone(statement, kind, Enclosure.of(y), 0.0):
        return True
    return _is_in_cone_exactly(statement, kind, y)


def _in_cone(statement: ConeStatement, kind: str, s: Enclosure, margin: float) -> bool:
    """Whether every s enclosed, moved by at most `margin` in norm, lies in a curved cone."""
    if not (np.isfinite(s.mid).all() and np.isfinite(s.rad).all() and np.isfinite(margin)):
        return False
    if kind == "psd":
        M = _matrix(statement, s)
        lost = radius_norm(M.rad) + margin
        # A zero matrix has no Cholesky factor but is positive semidefinite.
        if not M.mid.any() and not lost:
            return True
        if is_positive_semidefinite(M.mid, float(round_up(lost))):
            return True
        return _is_scaled_semidefinite(M, margin)
    return all(_in_exponential(s[3 * i : 3 * i + 3], margin) for i in range(s.size // 3))


def _in_cone_exactly(
    statement: ConeStatement, kind: str, block: slice, x: FloatArray, slack: Enclosure
) -> bool:
    """Whether the slack of a curved cone at x is a vector of floats and lies in it."""
    exact = _slack_summed_exactly(statement, x, slack, np.arange(block.start, block.stop))[block]
    if exact.rad.any():
        return False
    if kind != "soc" and _in_cone(statement, kind, exact, 0.0):
        return True
    return _is_in_cone_exactly(statement, kind, exact.mid)


def _is_in_cone_exactly(statement: ConeStatement, kind: str, v: FloatArray) -> bool:
    """Whether exact numbers lie in a cone of a few rows, its boundary included, in rationals."""
    if v.size > MAX_EXACT_ROWS or not np.isfinite(v).all():
        return False
    if kind == "soc":
        head, *tail = (Fraction(entry) for entry in v.tolist())
        return head >= 0 and head * head >= sum((entry * entry for entry in tail), Fraction(0))
    if kind == "psd":
        M = _matrix(statement, Enclosure.of(v))
        diagonal = M.mid.diagonal()
        if np.count_nonzero(M.mid) == np.count_nonzero(diagonal):
            return bool((diagonal >= 0).all())
        return not M.rad.any() and bool(rational_psd(sparse.csc_array(M.mid)))
    return False


def _is_scaled_semidefinite(M: Enclosure, margin: float) -> bool:
    """The same by DMD, for powers of two D that make its diagonal about 1."""
    diagonal = M.mid.diagonal()
    if not (diagonal > 0).all():
        return False
    exponent = -(np.frexp(diagonal)[1] // 2)
    if np.max(np.abs(exponent)) > 400:
        return False
    # Scaling by powers of two is exact away from underflow, which ETA covers.
    D = np.ldexp(1.0, exponent)
    mid = M.mid * D[:, None] * D
    lost = radius_norm(M.rad * D[:, None] * D + 4 * ETA)
    lost += margin * float(np.max(D)) ** 2 * 1.000001
    return is_positive_semidefinite(mid, float(round_up(lost)))


def _in_exponential(s: Enclosure, margin: float) -> bool:
    """Whether y exp(x / y) <= z, y > 0, or x <= 0, y = 0, z >= 0 for all (x, y, z) enclosed."""
    wide = Enclosure(s.mid, (s.rad + margin) * (1 + 4 * UNIT_ROUNDOFF))
    x, y, z = wide[0], wide[1], wide[2]
    if y.mid == 0 and y.rad == 0:
        return bool(x.upper <= 0 and z.lower >= 0)
    if not y.lower > 0:
        return False
    return bool((y * (x / y).exp()).upper <= z.lower)


def _in_dual_exponential(y: Enclosure) -> Mask:
    """Whether -u exp(v / u - 1) <= w, u < 0, or u = 0, v >= 0, w >= 0, row by row of (u, v, w)."""
    u, v, w = y[:, 0], y[:, 1], y[:, 2]
    negative = u.upper < 0
    # Another divisor where it may be 0, so that nothing is divided by it.
    divisor = Enclosure(np.where(negative, u.mid, -1.0), np.where(negative, u.rad, 0.0))
    with np.errstate(over="ignore", invalid="ignore"):
        least = -divisor * (v / divisor - 1.0).exp()
        inside = negative & (least.upper <= np.where(w.rad == 0, w.mid, w.lower))
    # At u = 0 exactly; where radii are 0 the numbers are compared as they are.
    flat = _is_zero(u) & (v.mid >= v.rad) & (w.mid >= w.rad)
    return np.asarray(inside | flat)


# The upper end


def upper_bound(statement: ConeStatement, witness: PrimalWitness) -> ProvenEnd:
    """Return an upper bound of the optimum: an exactly feasible point lies next to x (Lemma C3).

    >>> from klopt.model.cones import Cones
    >>> A = sparse.csc_array([[1.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    >>> cones = Cones(zero=1, nonneg=2)
    >>> statement = ConeStatement(np.array([1.0, 2.0]), A, np.array([1.0, 0.0, 0.0]), cones)
    >>> upper_bound(statement, PrimalWitness(np.array([1.0, 0.0]))).value < 1 + 1e-15
    True
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return _upper_bound(statement, witness)


def _upper_bound(statement: ConeStatement, witness: PrimalWitness) -> ProvenEnd:
    x = witness.x
    if not np.isfinite(x).all():
        return ProvenEnd(np.inf, "the point is not finite")
    if (statement.b == -np.inf).any():
        return ProvenEnd(np.inf, "a row asks for something below -inf")
    slack = _slack(statement, x)
    cones = statement.cones
    # A witness may name any rows: those that are no inequalities are none to be met with equality.
    tight = np.unique(np.asarray(witness.tight, np.intp))
    tight = tight[(tight >= cones.zero) & (tight < cones.zero + cones.nonneg)]
    tight = tight[~statement.vacuous[tight]]
    equations = np.concatenate((np.arange(cones.zero, dtype=np.intp), tight))

    # Sums that may be 0 are summed exactly: the equations, and inequalities without a margin.
    inequality = np.arange(cones.zero, cones.zero + cones.nonneg)
    doubtful = inequality[(slack.lower[inequality] < 0) & ~statement.vacuous[inequality]]
    slack = _slack_summed_exactly(statement, x, slack, np.concatenate((equations, doubtful)))

    step = _Neighbourhood(np.zeros(x.size), 0.0)
    if not _is_zero(slack[equations]).all():
        found = _solve_rows(statement, x, slack, equations)
        if found is None:
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
        """A bound of |rows D d| row by row: their norms times the size."""
        if not self.size:
            return np.zeros(rows.shape[0])
        D = self.D[rows.indices]
        # Products that underflow are kept by a term of their own, in rows that can move at all.
        moves = (rows.data != 0) & (D > 0)
        row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        moving = np.bincount(row[moves], minlength=rows.shape[0])
        norms = _norms_by_rows(rows.data * D, row, rows.shape[0])
        return np.asarray(norms * self.size + moving * ETA)


def _row_norms(rows: sparse.csr_array) -> FloatArray:
    """Upper bounds of the Euclidean norms of the rows; 0 for a row of zeros."""
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    return _norms_by_rows(rows.data, row, rows.shape[0])


def _norms_by_rows(entries: FloatArray, row: Indices, count: int) -> FloatArray:
    """The same from entries and the row of each."""
    size = np.abs(entries)
    largest = float(np.max(size, initial=0.0))
    if not 0.0 < largest < np.inf:
        return np.full(count, 0.0 if largest == 0.0 else np.inf)
    squares = np.bincount(row, weights=(size / largest) ** 2, minlength=count)
    # Squares of entries below 1e-150 of the largest one may underflow.
    number = np.bincount(row[size > 0], minlength=count)
    return np.asarray(largest * (np.sqrt(squares) * 1.000001 + 1e-150 * number))


def _slack(statement: ConeStatement, x: FloatArray) -> Enclosure:
    """b - Ax, row by row; vacuous rows have slack 0."""
    b = np.where(statement.vacuous, 0.0, statement.b)
    products = statement.row_products
    count = products.count
    image, terms = products.of(x)
    mid = b - image
    terms = terms + np.abs(b)
    share = (count + 3) * UNIT_ROUNDOFF * (1 + 2.0**-20)
    rad = share * terms * (1 + (count + 4) * 2 * UNIT_ROUNDOFF) + (count + 2) * 2.0**-1074
    # Sums of zeros are exact; a product of numbers that are not 0 may be 0 by underflow.
    known = (count == 0) | products.are_zeros(x) & (b == 0)
    return Enclosure(mid, np.where(known, 0.0, rad))


def _slack_summed_exactly(
    statement: ConeStatement, x: FloatArray, slack: Enclosure, rows: Indices
) -> Enclosure:
    """The slack with some rows summed without rounding (Lemma S3)."""
    A = statement.rows
    if not rows.size or int(np.diff(A.indptr)[rows].sum()) > MAX_EXACT_TERMS:
        return slack
    sums = exact_row_sums([(sparse.csr_array(A[rows]), -x)], statement.b[rows])
    mid = slack.mid.copy()
    rad = slack.rad.copy()
    better = sums.rad < rad[rows]
    mid[rows[better]] = sums.mid[better]
    rad[rows[better]] = sums.rad[better]
    return Enclosure(mid, rad)


def _solve_rows(
    statement: ConeStatement,
    x: FloatArray,
    slack: Enclosure,
    equations: Indices,
) -> _Neighbourhood | None:
    """Points next to x among which the equations have an exact solution; None without a proof."""
    stated = statement.stated_range
    with np.errstate(invalid="ignore"):
        room = np.minimum(x - stated.lower, stated.upper - x)
    room = np.where(np.isinf(room), 1.0 + np.abs(x), room)
    room = np.minimum(room, 1.0 + np.abs(x)) * (1 - 8 * UNIT_ROUNDOFF)
    # A variable at its bound stays there.
    room = np.where(room > 8 * UNIT_ROUNDOFF * np.abs(x), room, 0.0)
    # All equations are solved together, since the exact ones must stay so; those that no variable
    # can change do.
    movable = np.flatnonzero(room > 0)
    B: Any
    if equations.size <= FEW_EQUATIONS:
        few = statement.rows[equations].toarray()[:, movable]
        moved = few.any(axis=1)
        B = few[moved] * room[movable]
    else:
        touched = sparse.csr_array(statement.rows[equations][:, movable])
        moved = np.diff(touched.indptr) > 0
        B = sparse.csr_array(touched[moved] @ sparse.diags_array(room[movable]))
    if not _is_zero(slack[equations[~moved]]).all():
        return None
    size = shortest_correction(B, -slack[equations[moved]], 4 * UNIT_ROUNDOFF)
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
    none = np.zeros(0, np.intp)
    A = statement.rows[equations]
    if A.nnz > MAX_EXACT_TERMS or exhausted():
        return None, none
    if equations.size == zero:
        found = statement.independent_equations
    else:
        found = independent_rows(sparse.csc_array(A), statement.b[equations])
    if found is None:
        return None, none
    refuted = equations[[change.row for change in found.changes]] if found.changes else none
    # Equations of the program that contradict each other have no solution.
    if (refuted < zero).any():
        return None, none
    # Independent ones have been tried all together.
    if not found.dependent.size:
        return None, none
    kept = equations[found.independent]
    tight = np.setdiff1d(equations[equations >= zero], refuted)
    return _solve_rows(statement, x, slack, kept), np.asarray(tight, np.intp)


def _violated(
    statement: ConeStatement,
    x: FloatArray,
    slack: Enclosure,
    tight: Indices,
    step: _Neighbourhood,
) -> str:
    """Name a constraint that is not proven for all points of the neighbourhood; "" without."""
    cones = statement.cones
    spread = step.spread(statement.rows)
    wide = Enclosure(slack.mid, slack.rad + spread)
    inequality = slice(cones.zero, cones.zero + cones.nonneg)
    exactly = ~(spread > 0) & (slack.mid >= 0) & (slack.rad <= np.abs(slack.mid))
    sure = (wide.lower >= 0) | statement.vacuous | exactly
    sure[tight] = True
    if not sure[inequality].all():
        row = cones.zero + int(np.flatnonzero(~sure[inequality])[0])
        return f"inequality {row} is not proven at the point"
    heads = np.array([block.start for kind, block in cones.blocks() if kind == "soc"], np.intp)
    if heads.size:
        sizes = np.array([size for size in cones.soc if size], np.intp)
        start = cones.zero + cones.nonneg
        moves = _norms_of_blocks(spread[start : start + int(sizes.sum())], heads - start, sizes)
        # s_0 - ||s_1|| changes by at most sqrt(2) times the norm of the change.
        short = ~(_soc_depths(cones, slack) >= 1.5 * moves)
        for index in np.flatnonzero(short).tolist():
            block = slice(heads[index], heads[index] + sizes[index])
            # At the boundary, where nothing moves, exact numbers may still decide.
            if moves[index] or not _in_cone_exactly(statement, "soc", block, x, slack):
                return "a cone (soc) is not proven at the point"
    for kind, block in cones.blocks():
        if kind not in ("psd", "exp"):
            continue
        move = 0.0
        if step.size:
            move = float(enclose_norm(spread[block] * np.sqrt(statement.weight[block])).upper)
        if _in_cone(statement, kind, slack[block], move * 1.000001):
            continue
        # At the boundary, where nothing moves, exact numbers may still decide.
        if move or not _in_cone_exactly(statement, kind, block, x, slack):
            return f"a cone ({kind}) is not proven at the point"
    for index, ball in enumerate(statement.quadratics):
        Px = enclose_product(ball.P, x)
        value = enclose_dot(x, Px) * 0.5 + enclose_dot(ball.q, x) - ball.r
        change = _change(ball.P, Px + ball.q, step)
        if value.upper + change * 1.000001 <= 0:
            continue
        # At the boundary, where nothing moves, exact numbers may still decide.
        if step.size or not _is_met_exactly(ball, x):
            return f"quadratic constraint {index} is not proven at the point"
    if np.isfinite(statement.within):
        far = enclose_norm(x).upper + step.size * float(enclose_norm(step.D).upper)
        if not far * 1.000001 <= statement.within:
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
    first = float(enclose_norm(gradient * step.D).upper) * step.size
    if P is None:
        return first * 1.000001
    # The entries of DPD, row by row or column by column.
    other = np.repeat(step.D, np.diff(P.indptr))
    norm = float(enclose_norm(P.data * step.D[P.indices] * other).upper)
    return (first + norm * step.size**2) * 1.000001


def _objective(statement: ConeStatement, x: FloatArray, step: _Neighbourhood) -> float:
    """An upper bound of the objective over the neighbourhood."""
    value = _dot(statement.c, x)
    gradient = Enclosure.of(statement.c)
    if statement.P is not None:
        Px = enclose_product(statement.P, x)
        value = value + enclose_dot(x, Px) * 0.5
        gradient = gradient + Px
    change = _change(statement.P, gradient, step)
    return float(round_up(value.upper + change)) if change else float(value.upper)


# No optimum


def is_infeasible(statement: ConeStatement, witness: DualWitness) -> bool:
    """Return whether the multipliers prove that no x is feasible (Lemma C4).

    >>> from klopt.model.cones import Cones
    >>> A = sparse.csc_array([[1.0], [-1.0]])
    >>> statement = ConeStatement(np.array([0.0]), A, np.array([-1.0, 0.0]), Cones(nonneg=2))
    >>> is_infeasible(statement, DualWitness(np.zeros(1), np.array([2.0, 2.0])))
    True
    """
    if _has_false_row(statement):
        return True
    known = statement.stated_range
    if (known.lower > known.upper).any():
        return True
    homogeneous = replace(statement, c=np.zeros_like(statement.c), P=None)
    zero = replace(witness, w=np.zeros_like(witness.w))
    if statement.quadratics:
        zero = witness
    return lower_bound(homogeneous, zero).value > 0


def _has_false_row(statement: ConeStatement) -> bool:
    """Whether a row without entries is wrong by itself, or one asks for something below -inf."""
    zero = statement.cones.zero
    b = statement.b[: zero + statement.cones.nonneg]
    empty = np.diff(statement.rows.indptr)[: b.size] == 0
    wrong = empty & (b < 0)
    wrong[:zero] |= empty[:zero] & (b[:zero] != 0)
    return bool(wrong.any() or (statement.b == -np.inf).any())


def is_ray(statement: ConeStatement, d: FloatArray) -> bool:
    """Return whether the objective falls without bound along d (Lemma C5), all of it exactly.

    >>> from klopt.model.cones import Cones
    >>> A = sparse.csc_array([[1.0, -1.0]])
    >>> statement = ConeStatement(np.array([-1.0, 0.0]), A, np.zeros(1), Cones(nonneg=1))
    >>> is_ray(statement, np.array([1.0, 1.0])), is_ray(statement, np.array([1.0, 0.999]))
    (True, False)
    """
    if not np.isfinite(d).all() or np.isfinite(min(statement.within, statement.radius)):
        return False
    recession = _recession_program(statement)
    # A ray is a feasible point of the recession program at which its objective is negative. Rows
    # that d meets with equality, up to rounding, are tried as equations too.
    if upper_bound(recession, PrimalWitness(d)).value < 0:
        return True
    tight = doubtful_rows(recession, d)
    return bool(tight.size) and upper_bound(recession, PrimalWitness(d, tight)).value < 0


def _recession_program(statement: ConeStatement) -> ConeStatement:
    """minimise c'd over -Ad in K, Pd = 0, P_i d = 0, q_i'd <= 0."""
    cones = statement.cones
    linear = cones.zero + cones.nonneg
    A = statement.rows
    flat = [sparse.csr_array(matrix) for matrix in statement.curvatures]
    flat = [matrix[np.diff(matrix.indptr) > 0] for matrix in flat]
    normals = [sparse.csr_array(row.q[None, :]) for row in statement.quadratics]
    stacked = [*flat, A[:linear], *normals, A[linear:]]
    flat_rows = sum(matrix.shape[0] for matrix in flat)
    b = np.where(statement.vacuous, np.inf, 0.0)
    right = (np.zeros(flat_rows), b[:linear], np.zeros(len(normals)), b[linear:])
    return ConeStatement(
        statement.c,
        sparse.csc_array(sparse.vstack(stacked, format="csc")),
        np.concatenate(right),
        attrs.evolve(cones, zero=cones.zero + flat_rows, nonneg=cones.nonneg + len(normals)),
        plain=statement.plain,
    )


def doubtful_rows(statement: ConeStatement, x: FloatArray) -> Indices:
    """Return the inequalities of which rounding leaves open whether x meets them.

    A witness may ask for them to be met with equality.
    """
    cones = statement.cones
    with np.errstate(over="ignore", invalid="ignore"):
        slack = _slack(statement, x)
        lower, upper = slack.lower, slack.upper
    row = np.arange(statement.b.size)
    inequality = (row >= cones.zero) & (row < cones.zero + cones.nonneg)
    open_rows = inequality & ~statement.vacuous & (lower <= 0) & (upper >= 0)
    return np.asarray(np.flatnonzero(open_rows & (np.diff(statement.rows.indptr) > 0)), np.intp)
