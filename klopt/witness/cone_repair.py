"""Repairs of approximate points and multipliers of a cone program, for a proof to rest on.

    minimise  x'Px/2 + c'x   subject to  b - Ax in K

**Lemma 1 (weak duality).** For any w, any y in K* and every feasible x,

    x'Px/2 + c'x  >=  -w'Pw/2 - b'y + r'x,        r = Pw + c + A'y,

since x'Px/2 >= w'Px - w'Pw/2 (P is positive semidefinite) and y'(b - Ax) >= 0.

**Lemma 2 (bounds of variables).** Rows with one entry are bounds of one variable. Whatever the
other multipliers are, the best multipliers of these rows are known: r_j > 0 goes to the largest
lower bound of x_j, r_j < 0 to the smallest upper one, and r_j becomes 0 (Neumaier and Shcherbina,
2004).

**Lemma 3 (radius).** Where ||x||_1 <= radius over the feasible set, r'x >= -max|r| radius (Jansson,
Chaykin and Keil, 2007).

Where a bound is missing, (w, y) moves by minimum-norm steps inside the cone
(`klopt.witness.corrections`) until r_j is rounding; what is left after that costs max|r| times the
radius. The upper bound is the objective at a point moved in the same way until b - Ax lies in K up
to rounding.

"Rounding" is a few eps of the terms that were added up, or of their size after equilibration: the
bounds hold for data changed in their last digits. Under such changes a linear program moves by as
little, but one with curved cones can move by the square root of it, times the size of x or y (no
Slater point: think of [[1, t], [t, eps]]). So x and y are asked to lie inside curved cones with a
margin; where they cannot, that square root is charged (`perturbation_cost`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import attrs
import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import EPS, FloatArray
from klopt.model.cones import Cones
from klopt.model.cones.norms import block_column_norms, block_norms, largest_entry
from klopt.model.forms import ConeForm
from klopt.model.single_entry_rows import single_entry_rows
from klopt.witness.cone_interior import centre
from klopt.witness.corrections import DualCorrection, PrimalCorrection

__all__ = ["DualPair", "DualRepair", "farkas_multipliers", "repaired_multipliers", "repaired_point"]

Mask = npt.NDArray[np.bool_]

RELATIVE_ROUNDING = 64 * EPS
"""A residual counts as rounding up to this share of the terms that were added up."""
EQUILIBRATED_ROUNDING = 16 * EPS
"""... or of the largest term of all sums in equilibrated units."""
ABSOLUTE_ROUNDING = 1e-30
"""... or of 1 plus the largest entry of b or c."""
SUM_ERROR = 8 * EPS
"""What the objective loses in summation, relative to the sum of the absolute terms."""
MIN_FARKAS_SHARE = 1e-12
"""A Farkas vector of which repairs leave less than this share is rounding and proves nothing."""
MAX_GROWTH = 1e5
"""Terms that exceed the data by this factor may be large by rounding alone."""
MAX_CORRECTIONS = 20
"""Correction steps per repair."""
MAX_IDLE_CORRECTIONS = 3
"""Steps without progress before a repair stops."""
PROGRESS_FACTOR = 0.7
"""A step makes progress if it brings the error below this multiple of the smallest one so far."""


def repaired_multipliers(form: ConeForm, x: FloatArray, y: FloatArray) -> DualPair:
    """Return (w, y) with y in K* and a stationarity residual at rounding level, where possible.

    >>> from klopt.model.cones import Cones
    >>> A = [[-1.0, -1.0], [-1.0, 0.0], [0.0, -1.0]]
    >>> form = ConeForm(c=[1.0, 2.0], A=A, b=[-1.0, 0.0, 0.0], cones=Cones(nonneg=3))
    >>> repaired_multipliers(form, np.zeros(2), np.array([0.9, 0.0, 0.0])).y
    array([0.9, 0.1, 1.1])
    """
    repair = DualRepair(form)
    pair = repair.assign_bound_multipliers(x, y)
    pair = repair.reduce_residual(pair)
    return repair.move_inside(pair)


def farkas_multipliers(form: ConeForm, y: FloatArray) -> FloatArray:
    """Return y' in K* with A'y' = 0 up to rounding made from y, of largest entry 1.

    >>> from klopt.model.cones import Cones
    >>> A = [[1.0, 1.0], [-1.0, -1.0]]
    >>> form = ConeForm(c=[0.0, 0.0], A=A, b=[1.0, -2.0], cones=Cones(nonneg=2))
    >>> farkas_multipliers(form, np.array([2.0, 2.0 + 1e-9])).round(6)
    array([1., 1.])
    """
    repair = DualRepair(attrs.evolve(form, c=np.zeros_like(form.c), P=None))
    size = largest_entry(y) or 1.0
    pair = repair.assign_bound_multipliers(np.zeros_like(form.c), y / size)
    return repair.reduce_residual(pair).y


def repaired_point(form: ConeForm, x: FloatArray, margin: float = RELATIVE_ROUNDING) -> FloatArray:
    """Return a point near x that is feasible up to rounding, or the best one found.

    In curved cones it keeps a margin, a share of the terms of b - Ax.

    >>> from klopt.model.cones import Cones
    >>> A = [[1.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]
    >>> form = ConeForm(c=[1.0, 2.0], A=A, b=[1.0, 0.0, 0.0], cones=Cones(zero=1, nonneg=2))
    >>> point = repaired_point(form, np.array([0.8, 0.1]))
    >>> point.sum().round(9), bool((point >= 0).all())
    (np.float64(1.0), True)
    """
    bounds = BoundRows(form)
    repair = PrimalRepair(form, margin)
    point = np.clip(x, bounds.lower, np.maximum(bounds.lower, bounds.upper))
    best = point
    smallest_excess = np.inf
    idle = 0
    for _ in range(MAX_CORRECTIONS):
        slack = repair.measure(point)
        if repair.is_inside(slack):
            return point
        excess = float(np.max(slack.distance / slack.allowed))
        if excess < PROGRESS_FACTOR * smallest_excess:
            smallest_excess = excess
            best = point
            idle = 0
        else:
            idle += 1
        # Further steps would get nowhere.
        if idle > MAX_IDLE_CORRECTIONS:
            break
        moved = repair.correction.step(point, slack.s, slack.off)
        if moved is None:
            break
        point = moved
    return best


def _curved_rows(cones: Cones) -> Mask:
    """Which rows belong to cones that are not polyhedra."""
    return np.arange(cones.size) >= cones.zero + cones.nonneg


class BoundRows:
    """The bounds of single variables that rows with one entry state, and the row behind each.

    Attributes
    ----------
    rows
        The rows with one entry among the zero and nonnegative rows.
    entry
        That entry by row, 1 for all other rows.
    lower, upper
        The tightest bounds of each variable, infinite where there is none.
    lower_row, upper_row
        The rows that state them, -1 where there is none.
    """

    def __init__(self, form: ConeForm) -> None:
        single = single_entry_rows(form)
        bounds = single.bounds()
        self.rows = np.sort(single.row)
        self.entry = np.ones(form.b.size)
        self.entry[single.row] = single.entry
        self.lower = bounds.lower
        self.upper = bounds.upper
        self.lower_row = bounds.lower_row
        self.upper_row = bounds.upper_row

    def contradiction(self, column: int) -> FloatArray:
        """Return the multipliers of crossed bounds: they add up to 0 <= upper - lower < 0."""
        rows = [self.lower_row[column], self.upper_row[column]]
        y = np.zeros(self.entry.size)
        y[rows] = np.array([-1.0, 1.0]) / self.entry[rows]
        return y


@dataclass(frozen=True, eq=False)
class DualPair:
    """A dual pair (w, y) with y in K*, and r = Pw + c + A'y where no bound of a variable takes it.

    Attributes
    ----------
    w, y
        The pair.
    residual
        The entries of r that are more than rounding, else 0.
    rounding_residual
        The entries of r that are rounding, else 0.
    """

    w: FloatArray
    y: FloatArray
    residual: FloatArray
    rounding_residual: FloatArray


@dataclass(frozen=True, eq=False)
class DualRepair:
    """Makes dual pairs that prove a bound; for a Farkas vector the form comes without objective."""

    form: ConeForm

    @cached_property
    def bounds(self) -> BoundRows:
        """The bounds of single variables."""
        return BoundRows(self.form)

    @cached_property
    def column_norms(self) -> sparse.csr_array:
        """The norms of the columns of A, cone by cone."""
        return block_column_norms(self.form.cones, self.form.A)

    @cached_property
    def correction(self) -> DualCorrection:
        """The correction of columns whose variable lacks a bound on some side."""
        two_sided = np.isfinite(self.bounds.lower) & np.isfinite(self.bounds.upper)
        return DualCorrection(self.form, np.flatnonzero(~two_sided))

    def assign_bound_multipliers(self, w: FloatArray, y: FloatArray) -> DualPair:
        """Put y into K* and give the rows with one entry their best multipliers (Lemma 2)."""
        form = self.form
        bounds = self.bounds
        y = form.cones.project_dual(y)
        y[bounds.rows] = 0.0
        r = form.curve(w) + form.c + form.A.T @ y

        # The terms that each r_j was added up from, before y of the bounds is known.
        terms = np.abs(form.c) + self.column_norms.T @ block_norms(form.cones, y)
        if form.P is not None:
            terms = terms + abs(form.P) @ np.abs(w)

        # r_j > 0 is taken by the lower bound, r_j < 0 by the upper one, where there is one.
        row = np.where(r > 0, bounds.lower_row, bounds.upper_row)
        taken = (row >= 0) & (r != 0)
        rows = row[taken]
        y[rows] = -r[taken] / bounds.entry[rows]
        left = np.where(taken, 0.0, r)

        is_rounding = self._is_rounding(left, terms, y)
        return DualPair(
            w,
            y,
            residual=np.where(is_rounding, 0.0, left),
            rounding_residual=np.where(is_rounding, left, 0.0),
        )

    def _is_rounding(self, residual: FloatArray, terms: FloatArray, y: FloatArray) -> Mask:
        """Which entries of the residual are no larger than the rounding of their terms."""
        allowed = RELATIVE_ROUNDING * terms + ABSOLUTE_ROUNDING * (1 + largest_entry(self.form.c))
        # Equilibration costs a pass over A: only where the residual is not small without it.
        if np.any(np.abs(residual) > allowed):
            r, c = self.correction.units
            allowed = allowed + EQUILIBRATED_ROUNDING * largest_entry(y / r) / c
        return np.abs(residual) <= allowed

    def reduce_residual(self, pair: DualPair) -> DualPair:
        """Correct the pair until no residual is left or no step helps."""
        cones = self.form.cones
        correction = self.correction
        inequality = slice(cones.zero, cones.zero + cones.nonneg)
        fixed = np.zeros(self.form.b.size, dtype=bool)
        best = pair
        idle = 0
        for _ in range(MAX_CORRECTIONS):
            if not pair.residual.any() or idle > MAX_IDLE_CORRECTIONS:
                break
            moved = correction.step(pair.w, pair.y, pair.residual, fixed)
            if moved is None:
                break
            w, y = moved
            pair = self.assign_bound_multipliers(w, y)

            # A multiplier that a step would make negative stays 0 from then on, unless its bound
            # takes it up again.
            fixed[inequality] |= y[inequality] < 0
            fixed &= pair.y <= 0

            error = correction.largest_error(pair.residual)
            if error < PROGRESS_FACTOR * correction.largest_error(best.residual):
                best = pair
                idle = 0
            else:
                idle += 1
        return best

    def move_inside(self, pair: DualPair) -> DualPair:
        """Move y off the boundary of curved cones, while that lowers the perturbation cost."""
        cones = self.form.cones
        movable = np.zeros(self.form.b.size, dtype=bool)
        for _ in range(MAX_IDLE_CORRECTIONS):
            cost = self.perturbation_cost(pair)
            # Without a cost there is nothing to gain; with a residual the bound is lost anyway.
            if cost == 0 or pair.residual.any():
                break

            # A step that corrects y - margin instead of y leaves y a margin.
            inward = 2 * RELATIVE_ROUNDING * block_norms(cones, pair.y) * centre(cones)
            margin = np.where(_curved_rows(cones), inward, 0.0)
            moved = self.correction.step(pair.w, pair.y - margin, pair.rounding_residual, movable)
            if moved is None:
                break
            w, y = moved
            finer = self.assign_bound_multipliers(w, y + margin)
            if finer.residual.any() or self.perturbation_cost(finer) >= cost:
                break
            pair = finer
        return pair

    def perturbation_cost(self, pair: DualPair) -> float:
        """Return what rounding may be worth to curved cones in which y has no margin."""
        cones = self.form.cones
        norms = block_norms(cones, pair.y)
        margin = RELATIVE_ROUNDING * norms * centre(cones)
        missing = block_norms(cones, cones.project(margin - pair.y))
        tight = _curved_rows(cones) & (missing > RELATIVE_ROUNDING / 2 * norms)

        # Multipliers this large on the boundary may lie in K* by rounding alone.
        largest_credible = MAX_GROWTH * (1 + largest_entry(self.form.c))
        if np.any(norms[tight] > largest_credible):
            return np.inf
        return self.correction.perturbation_cost(np.abs(pair.rounding_residual), norms, tight)


@dataclass(frozen=True, eq=False)
class SlackError:
    """How far s = b - Ax, less a margin in curved cones, is from K.

    Attributes
    ----------
    s
        The slack less the margin.
    off
        s less its projection onto K.
    distance
        `block_norms` of `off`.
    terms
        `block_norms` of the terms of b - Ax.
    allowed
        The distance that counts as rounding.
    """

    s: FloatArray
    off: FloatArray
    distance: FloatArray
    terms: FloatArray
    allowed: FloatArray


class PrimalRepair:
    """Measures how far points are from feasible, and what is missing costs."""

    def __init__(self, form: ConeForm, margin: float = RELATIVE_ROUNDING) -> None:
        self.form = form
        self.margin = margin
        self.correction = PrimalCorrection(form)
        self._A_sizes = abs(form.A)
        self._curved = _curved_rows(form.cones)
        self._centre = centre(form.cones)

    def measure(self, point: FloatArray) -> SlackError:
        """Return the slack of a point, its error and what of it is rounding."""
        form = self.form
        cones = form.cones
        absolute_terms = self._A_sizes @ np.abs(point) + np.abs(form.b)
        terms = block_norms(cones, absolute_terms)
        inward = self.margin * terms * self._centre
        equations = np.arange(form.b.size) < cones.zero
        s = form.b - form.A @ point - np.where(equations, 0.0, inward)
        off = s - cones.project(s)
        distance = block_norms(cones, off)

        share = np.where(equations, RELATIVE_ROUNDING, self.margin)
        allowed = share * terms + ABSOLUTE_ROUNDING * (1 + largest_entry(form.b))
        return SlackError(s, off, distance, terms, allowed)

    def is_inside(self, slack: SlackError) -> bool:
        """Return whether the slack lies in K by half the margin, equations up to rounding."""
        return bool(np.all(slack.distance <= slack.allowed / 2))
