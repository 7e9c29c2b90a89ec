"""Rigorous bounds of a cone program from a rough point: repaired multipliers from below, a repaired point from above.

For any w, any y in K* and every feasible x, since x'Px/2 >= w'Px - w'Pw/2 and y'(b - Ax) >= 0,

    x'Px/2 + c'x  >=  -w'Pw/2 - b'y + r'x,        r = Pw + c + A'y.

Rows with one entry are bounds of one variable. Whatever the other multipliers are, theirs are
chosen best: r_j > 0 goes to the largest lower bound of x_j, r_j < 0 to the least upper one, and r_j
becomes 0 exactly. Where a bound is missing, (w, y) moves by a least-norm step inside the cone
(`klopt.proof.cone_interior`) until r_j is rounding. What is left after that costs max|r| times
`radius`.

The upper bound is the objective at a point moved in the same way until b - Ax lies in K up to
rounding. "Rounding" is a few eps of the terms that were added up, or of their size after
equilibration: the bounds hold for data changed in their last digits. Under such changes a linear
program moves by as little, but one with curved cones can move by the square root of it, times the
size of x or y (no Slater point: think of [[1, t], [t, eps]]). So x and y are asked to lie inside
curved cones with room to spare; where they cannot, that square root is charged.
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
from klopt.model.forms import ConeForm
from klopt.proof.cone_interior import block_norms, block_sizes, centre
from klopt.proof.repair import DualRepair, PrimalRepair

__all__ = ["dual_bound", "enclose", "farkas_strength", "primal_bound"]

ROUNDING = 64 * EPS
# Rounding of a sum, relative to the largest term of all sums in equilibrated units; then absolute,
# in the data's.
FLOOR = 16 * EPS
NOTHING = 1e-30
# A Farkas vector that repairs took away but for such a share was none: what is left of it is
# rounding.
COLLAPSED = 1e-12
# Terms so many times as large as the data may be rounding's own work.
GROWTH = 1e5
STEPS = 20
PATIENCE = 3


def dual_bound(form: ConeForm, x: FloatArray, y: FloatArray) -> tuple[float, FloatArray]:
    """Return a lower bound of the optimum and the multipliers that prove it; -inf where none can be had.

    >>> from klopt.model.cones import Cones
    >>> form = ConeForm([1.0, 2.0], [[-1.0, -1.0], [-1.0, 0.0], [0.0, -1.0]], [-1.0, 0.0, 0.0], Cones(nonneg=3))
    >>> bound, y = dual_bound(form, np.zeros(2), np.array([0.9, 0.0, 0.0]))
    >>> round(bound, 9), y
    (0.9, array([0.9, 0.1, 1.1]))
    """
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return -np.inf, np.zeros_like(form.b)
    desk = _Desk(form)
    best = desk.polish(desk.improve(desk.settle(x, y)))
    quadratic = float(best.w @ form.curve(best.w)) / 2
    terms = form.b * best.y
    bound = -quadratic - float(terms.sum())
    # Each sum errs by a few eps of its terms; r at rounding level is charged at the point we know.
    bound -= 8 * EPS * (abs(quadratic) + float(np.abs(terms).sum())) + float(
        np.abs(best.dust) @ np.abs(best.w)
    )
    bound -= desk.charge(best)
    if best.left.any():
        bound -= float(np.abs(best.left).max()) * form.radius
    return bound if not np.isnan(bound) else -np.inf, best.y


def farkas_strength(form: ConeForm, y: FloatArray) -> tuple[float, float, FloatArray]:
    """Return (-b'y', what is left of max|A'y'|, y') for multipliers y' in K* made from y, scaled to a largest of 1.

    If -b'y' > 0 and nothing is left (what is rounding counts as 0), or less than -b'y' / radius,
    then no x satisfies b - Ax in K. Bounds of one variable that contradict each other are such
    multipliers by themselves.

    >>> from klopt.model.cones import Cones
    >>> form = ConeForm(c=[0.0], A=[[1.0], [-1.0]], b=[-1.0, 0.0], cones=Cones(nonneg=2))
    >>> farkas_strength(form, np.array([2.0, 1.0]))
    (1.0, 0.0, array([1., 1.]))
    """
    if not np.isfinite(y).all():
        return -np.inf, np.inf, np.zeros_like(form.b)
    desk = _Desk(attrs.evolve(form, c=np.zeros_like(form.c), P=None))
    crossed = desk.box.lower - desk.box.upper
    if np.any(crossed > 0):
        column = int(np.argmax(crossed))
        rows = [desk.box.low[column], desk.box.high[column]]
        contradiction = np.zeros_like(form.b)
        contradiction[rows] = np.array([-1.0, 1.0]) / desk.box.entry[rows]
        return float(crossed[column]), 0.0, contradiction
    size = float(np.abs(y).max(initial=0.0))
    best = desk.settle(np.zeros_like(form.c), y / (size or 1.0))
    if -float(form.b @ best.y) > 0:
        better = desk.improve(best)
        best = better if -float(form.b @ better.y) > 0 else best
    if not np.abs(best.y).max(initial=0.0) > COLLAPSED:
        return -np.inf, np.inf, np.zeros_like(form.b)
    return -float(form.b @ best.y), float(np.abs(best.left).max(initial=0.0)), best.y


def primal_bound(form: ConeForm, x: FloatArray) -> tuple[float, FloatArray]:
    """Return the objective at a feasible point near x, and that point; (inf, x) where none is found.

    >>> from klopt.model.cones import Cones
    >>> form = ConeForm(c=[1.0, 2.0], A=[[1.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], b=[1.0, 0.0, 0.0], cones=Cones(1, 2))
    >>> value, point = primal_bound(form, np.array([0.8, 0.1]))
    >>> point.sum().round(9), bool((point >= 0).all())
    (np.float64(1.0), True)
    """
    box = _Box(form)
    if not np.isfinite(x).all() or (box.lower > box.upper).any():
        return np.inf, x
    cones, repair, sizes = form.cones, PrimalRepair(form), abs(form.A)
    curved, unit = _curved(cones), centre(cones)
    point, best, tries = np.clip(x, box.lower, box.upper), (np.inf, x), 0
    nearest, idle = np.inf, 0
    for _ in range(STEPS):
        terms = block_norms(cones, sizes @ np.abs(point) + np.abs(form.b))
        s = form.b - form.A @ point - np.where(curved, ROUNDING * terms * unit, 0.0)
        off = s - cones.project(s)
        distance = block_norms(cones, off)
        allowed = ROUNDING * terms + NOTHING * (1 + float(np.max(np.abs(form.b), initial=0.0)))
        if np.any(distance > allowed):
            r, c = repair.units
            allowed = allowed + np.where(
                curved, 0.0, FLOOR * float(np.max(np.abs(point) / c, initial=0.0)) / r
            )
        if np.all(distance <= np.where(curved, allowed / 2, allowed)):
            return _value(form, point), point
        # Larger terms than these can make rounding pass for feasibility: [[x, 1], [1, 0]] is "psd"
        # for x above 1e7.
        credible = np.all(terms[curved] <= GROWTH * (1 + np.max(np.abs(form.b), initial=0.0)))
        if credible and np.all(distance <= np.where(curved, 2 * allowed, allowed)):
            whole = form.b - form.A @ point
            error = block_norms(cones, whole - cones.project(whole))
            value = _value(form, point) + repair.charge(error, terms, curved)
            best, tries = min(best, (value, point), key=lambda pair: pair[0]), tries + 1
        excess = float(np.max(distance / allowed))
        nearest, idle = (excess, 0) if excess < 0.7 * nearest else (nearest, idle + 1)
        moved = repair.step(point, s, off) if max(tries, idle) <= PATIENCE else None
        if moved is None:
            break
        point = moved
    return best


def enclose(
    form: ConeForm, x: FloatArray, y: FloatArray
) -> tuple[float, float, FloatArray, FloatArray]:
    """Return (lower, upper, x', y') with lower <= optimum <= upper, x' feasible and y' the multipliers behind `lower`.

    Both ends hold up to rounding, by which they may cross; ends that crossed by more would mean a
    broken proof, so they are returned as they are.
    """
    upper, point = primal_bound(form, x)
    lower, multipliers = dual_bound(form, x, y)
    if np.isfinite(upper):
        s = form.b - form.A @ point
        upper += float(np.abs(multipliers) @ np.abs(s - form.cones.project(s)))
    return lower, upper, point, multipliers


def _value(form: ConeForm, x: FloatArray) -> float:
    """The objective, rounded upwards: each sum errs by a few eps of its terms."""
    Px = form.curve(x)
    return form.value(x) + 8 * EPS * float(np.abs(x) @ (np.abs(Px) / 2 + np.abs(form.c)))


def _curved(cones: Cones) -> npt.NDArray[np.bool_]:
    """Which rows belong to cones that are not polyhedra."""
    return np.arange(cones.size) >= cones.zero + cones.nonneg


class _Box:
    """The bounds of single variables that rows with one entry state, and the row behind each, -1 for none."""

    def __init__(self, form: ConeForm) -> None:
        n, linear = form.c.size, form.cones.zero + form.cones.nonneg
        A = form.A.tocsr()
        self.rows: npt.NDArray[np.intp] = np.flatnonzero(np.diff(A.indptr)[:linear] == 1)
        columns, entries = A.indices[A.indptr[self.rows]], A.data[A.indptr[self.rows]]
        limits = form.b[self.rows] / entries
        fixed = self.rows < form.cones.zero
        self.entry = np.ones(form.b.size)
        self.entry[self.rows] = entries
        self.lower, self.upper = np.full(n, -np.inf), np.full(n, np.inf)
        self.low, self.high = np.full(n, -1), np.full(n, -1)
        rising = np.argsort(limits, kind="stable")
        # Of several assignments to one column the last one stays: the tightest.
        for order, states, bound, row in (
            (rising, fixed | (entries < 0), self.lower, self.low),
            (rising[::-1], fixed | (entries > 0), self.upper, self.high),
        ):
            chosen = order[states[order]]
            bound[columns[chosen]], row[columns[chosen]] = limits[chosen], self.rows[chosen]


@dataclass(frozen=True, eq=False)
class _Settled:
    """A dual pair (w, y) with y in K*; the part of r that no bound takes is `left`, or `dust` where it is rounding."""

    w: FloatArray
    y: FloatArray
    left: FloatArray
    dust: FloatArray


@dataclass(frozen=True)
class _Desk:
    """Where multipliers are settled and repaired; for a Farkas vector the form comes without its objective."""

    form: ConeForm

    @cached_property
    def box(self) -> _Box:
        return _Box(self.form)

    @cached_property
    def sizes(self) -> sparse.csr_array:
        return block_sizes(self.form.cones, self.form.A)

    @cached_property
    def repair(self) -> DualRepair:
        """The repair of columns that lack a bound on some side."""
        lacking = ~(np.isfinite(self.box.lower) & np.isfinite(self.box.upper))
        return DualRepair(self.form, np.flatnonzero(lacking))

    def settle(self, w: FloatArray, y: FloatArray) -> _Settled:
        """Put y into K* and give the rows with one entry their best multipliers."""
        form, box = self.form, self.box
        y = form.cones.project_dual(y)
        y[box.rows] = 0.0
        r = form.curve(w) + form.c + form.A.T @ y
        scale = np.abs(form.c) + self.sizes.T @ block_norms(form.cones, y)
        if form.P is not None:
            scale = scale + abs(form.P) @ np.abs(w)
        side = np.where(r > 0, box.low, box.high)
        taken = (side >= 0) & (r != 0)
        y[side[taken]] = -r[taken] / box.entry[side[taken]]
        left = np.where(taken, 0.0, r)
        allowed = ROUNDING * scale + NOTHING * (1 + float(np.max(np.abs(form.c), initial=0.0)))
        if np.any(np.abs(left) > allowed):
            rows, columns = self.repair.units
            allowed = allowed + FLOOR * float(np.max(np.abs(y) / rows, initial=0.0)) / columns
        rounding = np.abs(left) <= allowed
        return _Settled(w, y, np.where(rounding, 0.0, left), np.where(rounding, left, 0.0))

    def polish(self, pair: _Settled) -> _Settled:
        """Move y off the boundary of curved cones, and the dust out of its equations, where they are charged for."""
        cones = self.form.cones
        for _ in range(PATIENCE):
            cost = self.charge(pair)
            if cost == 0 or pair.left.any():
                break
            room = np.where(
                _curved(cones), 2 * ROUNDING * block_norms(cones, pair.y) * centre(cones), 0.0
            )
            moved = self.repair.step(
                pair.w, pair.y - room, pair.dust, np.zeros(room.size, dtype=bool)
            )
            if moved is None:
                break
            finer = self.settle(moved[0], moved[1] + room)
            if finer.left.any() or self.charge(finer) >= cost:
                break
            pair = finer
        return pair

    def charge(self, pair: _Settled) -> float:
        """What rounding may be worth to curved cones in which y has no room to spare."""
        cones, y = self.form.cones, pair.y
        curved, norms = _curved(cones), block_norms(cones, y)
        away = cones.project(ROUNDING * norms * centre(cones) - y)
        tight = curved & (block_norms(cones, away) > ROUNDING / 2 * norms)
        if np.any(norms[tight] > GROWTH * (1 + np.max(np.abs(self.form.c), initial=0.0))):
            return np.inf
        return self.repair.charge(np.abs(pair.dust), norms, tight)

    def improve(self, pair: _Settled) -> _Settled:
        """Step until nothing is left or no step helps."""
        cones, best, idle = self.form.cones, pair, 0
        inequality = slice(cones.zero, cones.zero + cones.nonneg)
        stuck = np.zeros(self.form.b.size, dtype=bool)
        for _ in range(STEPS):
            if not pair.left.any() or idle > PATIENCE:
                break
            moved = self.repair.step(pair.w, pair.y, pair.left, stuck)
            if moved is None:
                break
            pair = self.settle(*moved)
            # A multiplier that a step would make negative stays 0 from then on, unless its bound
            # takes it up again.
            stuck[inequality] |= moved[1][inequality] < 0
            stuck &= pair.y <= 0
            better = self.repair.size(pair.left) < 0.7 * self.repair.size(best.left)
            best, idle = (pair, 0) if better else (best, idle + 1)
        return best
