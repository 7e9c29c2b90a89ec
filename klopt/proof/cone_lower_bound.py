"""A lower bound of the optimum of a cone program that holds in exact arithmetic.

    minimise  x'Px/2 + c'x   subject to  s = b - Ax in K,  x'P_i x/2 + q_i'x <= r_i

It rests on arrays that anybody may propose; what is false of them costs width, never truth.

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

Columns that have rows for themselves need no g_j = 0 from the witness: Lemmas R1 and R2 choose the
multipliers of these rows after everything else.

No tolerance enters: every radius is made of the terms of the sum it bounds.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.proof.cone_membership import dual_room, in_dual_cone, in_second_order_cones
from klopt.proof.cone_slack import MAX_EXACT_TERMS, enclose_slack, enclose_value, is_zero
from klopt.proof.cone_witnesses import DualWitness, ProvenEnd
from klopt.proof.convexity import curvature_beside
from klopt.proof.directed import norm_up, product_up, row_norms, sum_up
from klopt.proof.enclosure import (
    ETA,
    INFLATION,
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
from klopt.proof.exact_sums import exact_row_sums
from klopt.proof.linear_systems import shortest_correction
from klopt.proof.own_rows import OwnRows, own_rows
from klopt.proof.statement import ConeStatement, VariableRange
from klopt.proof.time_budget import exhausted

__all__ = [
    "lower_bound",
]

Mask = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.intp]

MAX_EXACT_RANK = 2_000
"""Entries of stationarity conditions whose dependence is decided in rationals."""
MAX_TRIED_TWICE = 2_000
"""Entries of A up to which multipliers are tried as they are beside those of own rows."""
MAX_WIDENINGS = 4
"""How often columns that a correction has moved join the system that it solves."""


def lower_bound(
    statement: ConeStatement, witness: DualWitness, *, solving: bool = True, ranking: bool = True
) -> ProvenEnd:
    """Return a lower bound of the optimum by Lemmas C1 and C2.

    Without `solving` there is none where a gradient must be exactly 0: that costs next to nothing.
    Without `ranking` there is none where columns of A depend on each other: that takes rationals.

    >>> from klopt.model.cones import Cones
    >>> A = sparse.csc_array([[-1.0, -1.0], [-1.0, 0.0], [0.0, -1.0]])
    >>> b = np.array([-1.0, 0.0, 0.0])
    >>> statement = ConeStatement(np.array([1.0, 2.0]), A, b, Cones(nonneg=3))
    >>> lower_bound(statement, DualWitness(np.zeros(2), np.array([0.9, 0.0, 0.0])))
    ProvenEnd(value=0.8999999999999..., by='weak duality (Lemma C1) with the bounds of ...')
    """
    # What overflows is infinite or no number, which proves nothing.
    with np.errstate(over="ignore", invalid="ignore"):
        return _Dual(statement, witness, solving, ranking).bound()


class _Dual:
    """The pieces of Lemma C1 at one witness.

    With `own` rows, which then have no multipliers yet, their columns may have any gradient until Lemmas
    R1 and R2 are applied.
    """

    def __init__(
        self,
        statement: ConeStatement,
        witness: DualWitness,
        solving: bool = True,
        ranking: bool = True,
        own: OwnRows | None = None,
    ) -> None:
        self.statement = statement
        self.solving = solving
        self.ranking = ranking
        self.own = own
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

        if not in_second_order_cones(statement, self.y):
            return ProvenEnd(-np.inf, "the multipliers of a cone (soc) are not proven in it")
        outside = self._outside(("psd", "power"))
        if outside is not None:
            return outside

        gradient = self.gradient()
        chosen = ProvenEnd(-np.inf, "")
        if self._lacking(gradient, statement.stated_range).any():
            chosen = self._bound_by_own_rows()
            # Of a small program the multipliers as they are may be exact, and cost next to nothing.
            if np.isfinite(chosen.value) and statement.A.nnz > MAX_TRIED_TWICE:
                return chosen
        as_given = self._bound_as_given(gradient)
        return chosen if chosen.value > as_given.value else as_given

    def _bound_as_given(self, gradient: Enclosure) -> ProvenEnd:
        """The end with all multipliers as they are, or next to these."""
        statement = self.statement
        outside = self._outside(("exp",))
        if outside is not None:
            return outside
        value = [-self._half_curvature(), -self._right_hand_side()]
        end = self._close(gradient, value, statement.stated_range)
        if np.isfinite(min(statement.within, statement.radius)):
            # Bounds of the norm of x are worth less column by column than together.
            together = self._close(*self._taken_by_norm(gradient, value), statement.stated_range)
            if together.value > end.value:
                by = "weak duality (Lemma C1) over the declared bound of x (Lemma C2)"
                return ProvenEnd(together.value, by)
        return end

    def _outside(self, kinds: tuple[str, ...]) -> ProvenEnd | None:
        """Name a cone of these kinds that the multipliers are not proven in; None without."""
        for kind, block in self.statement.cones.blocks():
            if kind in kinds and not in_dual_cone(self.statement, kind, self.y[block]):
                return ProvenEnd(
                    -np.inf, f"the multipliers of a cone ({kind}) are not proven in it"
                )
        return None

    def _bound_by_own_rows(self) -> ProvenEnd:
        """The end with the multipliers of own rows chosen at last (Lemmas R1 and R2)."""
        statement = self.statement
        own = own_rows(statement)
        if own is None or np.isfinite(min(statement.within, statement.radius)):
            return ProvenEnd(-np.inf, "no variable has rows for itself")
        y = self.y.copy()
        y[own.rows] = 0.0
        witness = DualWitness(self.w, y, self.multipliers)
        others = _Dual(statement, witness, self.solving, self.ranking, own)
        value = [-others._half_curvature(), -others._right_hand_side()]
        return others._close(others.gradient(), value, statement.stated_range)

    def _taken_by_norm(
        self, gradient: Enclosure, value: list[Enclosure]
    ) -> tuple[Enclosure, list[Enclosure]]:
        """g without columns that lack a bound: they lose at most max|g| ||x||_1 or ||g|| ||x||."""
        statement = self.statement
        lacking = self._lacking(gradient, statement.stated_range)
        if not lacking.any():
            return gradient, value
        size = gradient.magnitude[lacking]
        # A product with an infinite bound is infinite, since sizes are positive.
        by_sum = float(np.max(size)) * statement.radius
        by_square = norm_up(size) * statement.within
        loss = float(round_up(min(by_sum, by_square)))
        mid = np.where(lacking, 0.0, gradient.mid)
        rad = np.where(lacking, 0.0, gradient.rad)
        return Enclosure(mid, rad), [*value, Enclosure.of(-loss)]

    def _close(
        self,
        gradient: Enclosure,
        value: list[Enclosure],
        known: VariableRange,
    ) -> ProvenEnd:
        """Lemma C2: the bound of g'x from what is known of x, with more and more effort."""
        statement = self.statement
        # Of what has overflowed nothing is known, its sign included.
        if not (np.isfinite(gradient.mid).all() and np.isfinite(gradient.rad).all()):
            return ProvenEnd(-np.inf, "the gradient overflows")
        by = "weak duality (Lemma C1) with the bounds of the variables (Lemma C2)"
        lacking = self._lacking(gradient, known)
        if lacking.any() and not self.solving:
            return ProvenEnd(-np.inf, "a variable without a bound may have a gradient")
        corrected = None
        if lacking.any() and not statement.cones.is_polyhedral:
            # Inside curved cones a correction has room; exact sums can wait.
            corrected = self._solved(gradient, known, lacking)
        if lacking.any() and corrected is None:
            gradient = self._summed_exactly(gradient, np.flatnonzero(lacking))
            lacking = self._lacking(gradient, known)
        if lacking.any():
            known = statement.implied_range
            lacking = self._lacking(gradient, known)
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
        if self.own is not None:
            cost = self.own.loss(self.y, gradient)
            if cost is None:
                return ProvenEnd(-np.inf, "multipliers of a variable's own rows may leave K*")
            value = [*value, -cost]
            gradient = _with_zeros(gradient, self.own.columns)
            by = f"{by}, multipliers of own rows chosen exactly (Lemmas R1 and R2)"
        least = _least_products(gradient, known)
        total = enclose_sum([*value, -loss], least)
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
        g = Enclosure(mid, count * terms * (UNIT_ROUNDOFF * INFLATION) + count * ETA)
        # Adding 0 is exact.
        if statement.c.any():
            g = g + statement.c
        for product, factor in self._curved_products:
            g = g + factor * product
        for row, factor in zip(statement.quadratics, self.multipliers, strict=True):
            if factor:
                g = g + factor * Enclosure.of(row.q)
        return g

    @cached_property
    def _factors(self) -> list[float]:
        """The factor of each of the statement's matrices in H."""
        own = len(self.statement.curvatures) - self.multipliers.size
        return [1.0] * own + [float(factor) for factor in self.multipliers]

    def _curvatures(self) -> list[tuple[Any, float]]:
        """The matrices of H and their factors."""
        pairs = zip(self.statement.curvatures, self._factors, strict=True)
        return [pair for pair in pairs if pair[1]]

    def _half_curvature(self) -> Enclosure:
        total = Enclosure.of(0.0)
        for product, factor in self._curved_products:
            # Half of a factor may underflow, and w'Pw is large: the product is halved instead.
            total = total + enclose_dot(self.w, product) * factor * 0.5
        return total

    @cached_property
    def _curved_products(self) -> list[tuple[Enclosure, float]]:
        """The products of the matrices of H with w, and their factors."""
        statement = self.statement
        return [
            (statement.enclose_curvature(index, self.w), factor)
            for index, factor in enumerate(self._factors)
            if factor
        ]

    def _right_hand_side(self) -> Enclosure:
        """b'y + l'r."""
        statement = self.statement
        used = self.y != 0
        total = enclose_value((statement.weight * self.y)[used], statement.b[used])
        for row, factor in zip(statement.quadratics, self.multipliers, strict=True):
            total = total + Enclosure.of(float(factor)) * row.r
        return total

    def _nonconvexity(self, known: VariableRange) -> float:
        """phi ||x - w||^2 / 2 for H >= -phi I, over the variables that H knows."""
        statement = self.statement
        total = 0.0
        pairs = zip(statement.curvatures, self._factors, strict=True)
        for index, (matrix, factor) in enumerate(pairs):
            phi = statement.nonconvexity(index) if factor else 0.0
            if not phi:
                continue
            support = np.flatnonzero(np.diff(matrix.indptr))
            w = self.w[support]
            reach = np.maximum(known.upper[support] - w, w - known.lower[support])
            limit = min(statement.within, statement.radius)
            if np.isfinite(limit):
                reach = np.minimum(reach, limit + np.abs(w))
            # Each product rounded up: phi times a small factor may underflow, its reach be large.
            if reach.any():
                size = norm_up(reach)
                total += product_up(phi, factor, size, size, 0.5)
        return total

    # Gradients that are exactly 0

    def _summed_exactly(self, gradient: Enclosure, columns: Indices) -> Enclosure:
        """The gradient with some of its entries summed without rounding (Lemma S3)."""
        statement = self.statement
        # A product of three factors, a multiplier times P_i w, is not summed exactly.
        if self.multipliers.any():
            return gradient
        products = [(sparse.csr_array(statement.A[:, columns].T), statement.weight * self.y)]
        if statement.P is not None:
            products.append((sparse.csr_array(statement.P[:, columns].T), self.w))
        if sum(matrix.nnz for matrix, _ in products) > MAX_EXACT_TERMS:
            return gradient
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
        return _with_zeros(gradient, columns), gain

    def _lacking(self, gradient: Enclosure, known: VariableRange) -> Mask:
        """Columns whose g_j x_j has no lower bound: g_j may have the sign of a missing bound."""
        falls = (gradient.lower < 0) & np.isinf(known.upper) & ~is_zero(gradient)
        rises = (gradient.upper > 0) & np.isinf(known.lower) & ~is_zero(gradient)
        lacking = np.asarray(falls | rises)
        if self.own is not None:
            lacking[self.own.columns] = False
        return lacking

    def _solved(
        self, gradient: Enclosure, known: VariableRange, lacking: Mask
    ) -> tuple[Enclosure, float] | None:
        """g after a correction that leaves no column without a bound; None without a proof."""
        columns = lacking
        bounded = np.flatnonzero(~lacking)
        if 0 < bounded.size <= np.count_nonzero(lacking) and self.own is None:
            # With all columns in the system, those that need no correction can be held.
            corrected = self._corrected(gradient, np.arange(lacking.size), bounded)
            if corrected is not None:
                return corrected
        for _ in range(MAX_WIDENINGS):
            corrected = self._corrected(gradient, np.flatnonzero(columns))
            if corrected is None:
                return None
            # The correction moves other columns, some of which may now need to be solved as well.
            moved = self._lacking(corrected[0], known)
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
        room = dual_room(self.statement, self.y)
        if self.own is not None:
            # What is chosen last is judged beside multipliers that have stayed as they are.
            room[self.own.cone_rows] = 0.0
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
        used = np.flatnonzero(room)
        # In the scale of the room, a change of norm 1 stays in K*; off-diagonal entries of plain
        # blocks count twice in the norm, so that their unit is 1 / sqrt(2).
        # Multipliers without a sign may move by any unit: one of their size is well scaled.
        scale = np.where(np.isinf(room), 1.0 + np.abs(self.y), room)[used]
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
        size = shortest_correction(B, gradient[columns])
        # Entries follow from others where all of them are 0, which held ones are not.
        if size == np.inf and held is None and self.ranking:
            kept = self._independent_columns(columns)
            if kept is not None:
                size = shortest_correction(B[kept], gradient[columns[kept]])
        # Blocks and inequalities have room for a change of norm 1.
        if not size <= 1.0:
            return None

        # What y may change by, entry by entry in norm: the other columns of A'y ...
        rows = statement.rows[used]
        reach = row_norms(sparse.csr_array((sparse.diags_array(scale * root) @ rows).T))
        count = np.bincount(rows.indices, minlength=reach.size)
        # ... and b'y.
        # INFLATION covers the rounding of the root.
        unit = Enclosure.of(scale) * root
        cost = product_up(_length(unit * statement.b[used]), size, INFLATION)
        if P is None:
            cost = min(cost, self._cost_by_slack(gradient, columns, used, unit, size))
        if P is not None:
            side = sparse.csr_array(P @ sparse.diags_array(w_scale))
            reach = reach + row_norms(side)
            count = count + np.diff(P.indptr)
            # -(w + d)'P(w + d)/2 changes by at most |w'Pd| + d'Pd/2.
            Pw = enclose_product(P, self.w)
            cost = sum_up(cost, product_up(_length(Pw * w_scale), size))
            double = (
                Enclosure.of(P.data) * w_scale[P.indices] * np.repeat(w_scale, np.diff(P.indptr))
            )
            cost = sum_up(cost, product_up(_length(double), size, size, 0.5))
        mid = gradient.mid.copy()
        # Products that underflow are kept by a term of their own: bounds of x may be large.
        rad = gradient.rad + reach * size + count * ETA
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
        if M.nnz > MAX_EXACT_RANK:
            return None
        found = independent_rows(M, -statement.c[columns])
        if found is None or not found.consistent or not found.dependent.size:
            return None
        return found.independent

    def _cost_by_slack(
        self, gradient: Enclosure, columns: Indices, used: Indices, unit: Enclosure, size: float
    ) -> float:
        """What b'y may change by: (b - Au)'dy + u'A'dy for any u, and A'dy = -g is known.

        With u = w, next to an optimum, the slack b - Au is small where y is large.
        """
        u = np.zeros_like(self.w)
        u[columns] = self.w[columns]
        slack = enclose_slack(self.statement, u)[used]
        near = float(enclose_dot(u[columns], gradient[columns]).magnitude)
        return sum_up(product_up(_length(slack * unit), size, INFLATION), near)


def _length(x: Enclosure) -> float:
    """An upper bound of the norm."""
    return float(enclose_norm(x).upper)


def _with_zeros(gradient: Enclosure, columns: Indices) -> Enclosure:
    """The gradient with exact zeros in some columns."""
    mid = gradient.mid.copy()
    rad = gradient.rad.copy()
    mid[columns] = 0.0
    rad[columns] = 0.0
    return Enclosure(mid, rad)


def _least_products(gradient: Enclosure, known: VariableRange) -> FloatArray:
    """A lower bound of g_j x_j for each column: the smallest of four corners, rounded down."""
    g_low = gradient.lower
    g_high = gradient.upper
    with np.errstate(invalid="ignore", over="ignore"):
        at_lower = np.minimum(g_low * known.lower, g_high * known.lower)
        at_upper = np.minimum(g_low * known.upper, g_high * known.upper)
    # Where one side of x is unknown, its corners do not count: `_Dual._lacking` has made sure of the sign.
    below = np.isinf(known.lower)
    above = np.isinf(known.upper)
    least = np.minimum(np.where(below, np.inf, at_lower), np.where(above, np.inf, at_upper))
    # A free column has gradient 0.
    least = np.where(is_zero(gradient) | (below & above), 0.0, round_down(least))
    return np.asarray(least[np.flatnonzero(least)], float)
