"""Rigorous bounds of a cone program from a rough point: repaired multipliers from below, a repaired point from above.

For any w, any y in K* and every feasible x, since x'Px/2 >= w'Px - w'Pw/2 and y'(b - Ax) >= 0,

    x'Px/2 + c'x  >=  -w'Pw/2 - b'y + r'x,        r = Pw + c + A'y.

Rows with one entry are bounds of one variable. Whatever the other multipliers are, theirs are chosen best:
r_j > 0 goes to the largest lower bound of x_j, r_j < 0 to the least upper one, and r_j becomes 0 exactly.
Where a bound is missing, (w, y) moves by a least-norm step inside the cone (`klopt.scaling`) until r_j is rounding.
What is left after that costs max|r| times `radius`.

The upper bound is the objective at a point moved in the same way until b - Ax lies in K up to rounding.
"Rounding" is 64 eps of the terms that were added up: the bounds hold for data changed in their last digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import FloatArray, SparseMatrix
from klopt.forms import ConeForm
from klopt.leastnorm import TooLarge, least_norm, nearest
from klopt.scaling import block_norms, centre, scaling

__all__ = ["dual_bound", "enclose", "farkas_strength", "primal_bound"]

EPS = float(np.finfo(float).eps)
ROUNDING = 64 * EPS
STEPS = 8
# How far towards the centre a step may go on its way: the least that keeps it inside the cone is taken.
PULLS = (0.0, 0.05, 0.2, 1.0, 4.0)
# Steps through PSD rows are dense.
MOST_ENTRIES = 4e7


def dual_bound(form: ConeForm, x: FloatArray, y: FloatArray) -> tuple[float, FloatArray]:
    """Return a lower bound of the optimum and the multipliers that prove it; -inf where none can be had.

    >>> from klopt.cones import Cones
    >>> form = ConeForm([1.0, 2.0], [[-1.0, -1.0], [-1.0, 0.0], [0.0, -1.0]], [-1.0, 0.0, 0.0], Cones(nonneg=3))
    >>> bound, y = dual_bound(form, np.zeros(2), np.array([0.9, 0.0, 0.0]))
    >>> round(bound, 9), y
    (0.9, array([0.9, 0.1, 1.1]))
    """
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return -np.inf, np.zeros_like(form.b)
    desk = _Desk(form)
    best = desk.settle(x, y)
    for _ in range(STEPS):
        if not best.left.any():
            break
        step = desk.step(best)
        if step is None:
            break
        best = min(best, step, key=lambda pair: pair.worst)
    quadratic = float(best.w @ form.curve(best.w)) / 2
    terms = form.b * best.y
    bound = -quadratic - float(terms.sum())
    # Each sum errs by a few eps of its terms; r at rounding level is charged at the point we know.
    bound -= 8 * EPS * (abs(quadratic) + float(np.abs(terms).sum())) + float(best.dust @ np.abs(best.w))
    if best.left.any():
        bound -= float(np.abs(best.left).max()) * form.radius
    return bound if not np.isnan(bound) else -np.inf, best.y


def farkas_strength(form: ConeForm, y: FloatArray) -> tuple[float, float, FloatArray]:
    """Return (-b'y', what is left of max|A'y'|, y') for multipliers y' in K* made from y.

    If -b'y' > 0 and nothing is left (what is rounding counts as 0), or less than -b'y' / radius, then no x satisfies
    b - Ax in K. Bounds of one variable that contradict each other are such multipliers by themselves.

    >>> from klopt.cones import Cones
    >>> form = ConeForm(c=[0.0], A=[[1.0], [-1.0]], b=[-1.0, 0.0], cones=Cones(nonneg=2))
    >>> farkas_strength(form, np.array([2.0, 1.0]))
    (1.0, 0.0, array([1., 1.]))
    """
    if not np.isfinite(y).all():
        return -np.inf, np.inf, np.zeros_like(form.b)
    desk = _Desk(form, homogeneous=True)
    crossed = desk.box.lower - desk.box.upper
    if np.any(crossed > 0):
        column = int(np.argmax(crossed))
        rows = [desk.box.low[column], desk.box.high[column]]
        contradiction = np.zeros_like(form.b)
        contradiction[rows] = np.array([-1.0, 1.0]) / desk.box.entry[rows]
        return float(crossed[column]), 0.0, contradiction
    best = desk.settle(np.zeros_like(form.c), y)
    for _ in range(STEPS):
        if not best.left.any() or not -float(form.b @ best.y) > 0:
            break
        step = desk.step(best)
        if step is None or not -float(form.b @ step.y) > 0:
            break
        best = min(best, step, key=lambda pair: pair.worst)
    return -float(form.b @ best.y), float(np.abs(best.left).max(initial=0.0)), best.y


def primal_bound(form: ConeForm, x: FloatArray) -> tuple[float, FloatArray]:
    """Return the objective at a point near x that is feasible up to rounding, and that point; (inf, x) if none is found.

    >>> from klopt.cones import Cones
    >>> form = ConeForm(c=[1.0, 2.0], A=[[1.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], b=[1.0, 0.0, 0.0], cones=Cones(1, 2))
    >>> value, point = primal_bound(form, np.array([0.8, 0.1]))
    >>> point.sum().round(9), bool((point >= 0).all())
    (np.float64(1.0), True)
    """
    box = _Box(form)
    if not np.isfinite(x).all() or (box.lower > box.upper).any():
        return np.inf, x
    best = np.clip(x, box.lower, box.upper)
    sizes = abs(form.A)
    for _ in range(STEPS):
        terms = sizes @ np.abs(best) + np.abs(form.b)
        s = form.b - form.A @ best
        off = s - form.cones.project(s)
        if np.all(block_norms(form.cones, off) <= ROUNDING * block_norms(form.cones, terms)):
            Px = form.curve(best)
            summands = 8 * EPS * float(np.abs(best) @ (np.abs(Px) / 2 + np.abs(form.c)))
            return float(best @ Px) / 2 + float(form.c @ best) + summands, best
        step = _enter(form, best, s, off, terms)
        if step is None or not np.isfinite(step).all():
            break
        best = np.clip(step, box.lower, box.upper)
    return np.inf, x


def enclose(form: ConeForm, x: FloatArray, y: FloatArray) -> tuple[float, float, FloatArray, FloatArray]:
    """Return (lower, upper, x', y') with lower <= optimum <= upper, x' feasible and y' the multipliers behind `lower`.

    Both ends hold up to rounding; where rounding makes them cross they are taken apart again.
    """
    upper, point = primal_bound(form, x)
    lower, multipliers = dual_bound(form, x if np.isinf(upper) else point, y)
    if np.isfinite(upper):
        s = form.b - form.A @ point
        upper += float(np.abs(multipliers) @ np.abs(s - form.cones.project(s)))
    return min(lower, upper), max(lower, upper), point, multipliers


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
    scale: FloatArray

    @property
    def worst(self) -> float:
        """The largest relative entry of `left`."""
        return float(np.max(np.abs(self.left) / self.scale, initial=0.0, where=self.left != 0))


@dataclass(frozen=True)
class _Desk:
    """What every round of a dual repair needs of the form; `homogeneous` drops the objective (Farkas)."""

    form: ConeForm
    homogeneous: bool = False

    @cached_property
    def box(self) -> _Box:
        return _Box(self.form)

    @cached_property
    def sizes(self) -> SparseMatrix:
        return abs(self.form.A)

    @cached_property
    def P(self) -> SparseMatrix | None:
        return None if self.homogeneous else self.form.P

    @cached_property
    def open(self) -> npt.NDArray[np.intp]:
        """The columns that lack a bound on some side."""
        return np.flatnonzero(~(np.isfinite(self.box.lower) & np.isfinite(self.box.upper)))

    def settle(self, w: FloatArray, y: FloatArray) -> _Settled:
        """Put y into K* and give the rows with one entry their best multipliers."""
        form, box = self.form, self.box
        c = np.zeros_like(form.c) if self.homogeneous else form.c
        y = form.cones.project_dual(y)
        y[box.rows] = 0.0
        r = c + form.A.T @ y
        scale = np.abs(c) + self.sizes.T @ block_norms(form.cones, y)
        if self.P is not None:
            r, scale = r + self.P @ w, scale + abs(self.P) @ np.abs(w)
        side = np.where(r > 0, box.low, box.high)
        taken = (side >= 0) & (r != 0)
        y[side[taken]] = -r[taken] / box.entry[side[taken]]
        left = np.where(taken, 0.0, r)
        rounding = np.abs(left) <= ROUNDING * scale
        floor = np.maximum(scale, 1e-8 * scale.max(initial=0.0)) + np.finfo(float).tiny
        return _Settled(w, y, np.where(rounding, 0.0, left), np.where(rounding, np.abs(left), 0.0), floor)

    def step(self, pair: _Settled) -> _Settled | None:
        """Move (w, y) by the least step, measured inside the cone, that cancels what is left."""
        form, J = self.form, self.open
        cones, m = form.cones, form.b.size
        if cones.psd and m * J.size > MOST_ENTRIES:
            return None
        natural = _natural(self.sizes, pair.scale)
        natural = 1 / np.maximum(1 / natural, block_norms(cones, 1 / natural))
        unit = centre(cones)
        v = pair.y + pair.worst * natural * unit
        W = scaling(cones, v, natural[: cones.zero], dual=True)
        B = W.apply(form.A[:, J].tocsr()).T
        weight = np.zeros(0)
        if self.P is not None:
            weight = _natural(abs(self.P), pair.scale)
            curve = self.P.tocsr()[J] @ sparse.diags_array(weight)
            B = sparse.hstack([B, curve], format="csr") if sparse.issparse(B) else np.hstack([B, curve.toarray()])
        try:
            solve = least_norm(B)
        except TooLarge:
            return None
        pull = np.concatenate((W.pull, np.zeros(weight.size)))
        fix, inward = solve(-pair.left[J]), pull - solve(B @ pull)
        moved = pair
        for theta in PULLS:
            u = fix + theta * inward
            y = pair.y + W.apply(u[:m])
            w = pair.w + weight * u[m:] if weight.size else pair.w
            if not np.isfinite(y).all():
                return None
            moved = self.settle(w, y)
            if not moved.left.any():
                break
        return moved


def _natural(sizes: SparseMatrix, scale: FloatArray) -> FloatArray:
    """For each row of |A|, the multiplier at which it matters to some column as much as the column's other terms do."""
    share = (sizes @ sparse.diags_array(1 / scale)).max(axis=1)
    share = np.asarray(share.todense()).ravel() if sparse.issparse(share) else np.asarray(share).ravel()
    return cast(FloatArray, 1 / np.where(share > 0, share, 1.0))


def _enter(form: ConeForm, x: FloatArray, s: FloatArray, off: FloatArray, terms: FloatArray) -> FloatArray | None:
    """x moved onto its equalities and into its cones by the least step, measured inside the cones."""
    cones, p = form.cones, form.cones.zero
    if cones.psd and form.A.shape[0] * x.size > MOST_ENTRIES:
        return None
    inner = type(cones)(0, cones.nonneg, cones.soc, cones.psd, cones.exp)
    scale = block_norms(cones, terms) + np.finfo(float).tiny
    relative = float(np.max(np.abs(off[:p]) / scale[:p], initial=0.0))
    room = 2 * block_norms(cones, off) + (relative + ROUNDING) * scale
    v = (s - off + room * centre(cones))[p:]
    W = scaling(inner, v, np.zeros(0), inverse=True)
    A = form.A.tocsr()
    M = W.apply(A[p:]) * -1.0
    try:
        solve = nearest(M, A[:p], 1e-4 / (1 + np.abs(x)))
    except TooLarge:
        return None
    fix, inward = solve(np.zeros(v.size), off[:p]), solve(W.pull, np.zeros(p))
    step = x
    for theta in PULLS:
        step = x + fix + theta * inward
        rest = form.b - A @ step
        outside = block_norms(inner, rest[p:] - inner.project(rest[p:]))
        if np.all(outside <= ROUNDING * scale[p:]):
            break
    return step
