"""Interior points for smooth convex functions of very many variables over a finite box cut by a plane.

    minimise  f(x)   over   lower <= x <= upper,  a'x = offset

with multipliers z of x - lower = s, v of upper - x = t and nu of the plane. A Newton step towards s
z = t v = mu solves

    [H + D  a] [dx ]   [mu / s - mu / t - g - nu a]
    [a'     0] [dnu] = [offset - a'x              ],     D = z / s + v / t  (diagonal),  H and g at x

by conjugate gradients on the plane, preconditioned with what the function knows of (H + D)^-1: H is
never formed. First it is solved roughly for mu = 0, which tells how far mu can be lowered, then for
that mu and the products left out (Mehrotra).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from klopt.arrays import EPS, FloatArray
from klopt.model.backend import Answer, Backend, Settings, Start, Stop, check_raw
from klopt.model.cones import Feature
from klopt.model.forms import Form, SimplexForm
from klopt.model.sets import BoxPlane
from klopt.model.smooth_functions import HessianOperator, MatrixFreeFunction
from klopt.numerics.conjugate_gradients import Mask, PlaneSolver
from klopt.solvers._first_order.loop import (
    Candidate,
    Steps,
    iterate,
    require_finite,
    starting_point,
)

MOST_STEPS, PATIENCE = 200, 12
FINE, FINER = (
    3e-2,
    1e-3,
)  # how exactly the system of a step is solved: the last where nothing cuts the step short
EDGE = 0.02  # the least distance of a start from its bounds, as a share of the box
FIRST, NEARER = (
    0.05,
    8,
)  # a start without a hint is so far from the origin, a quarter of that the next times
FAR, STEEP = (
    100.0,
    8.0,
)  # at most so many steps downhill away, gradients larger than at the origin by at most this factor
LIFT = 0.2  # the least multiplier of a start as a share of the mean gradient


class InteriorPoint(Backend):
    """About 20 iterations, whatever the number of variables; takes functions that nearly invert their curvature."""

    name = "interior_point"
    offers = frozenset({Feature.SIMPLEX, Feature.APPLIED, Feature.BOX})
    honours = frozenset({"tol", "time_limit", "max_iter", "threads", "seed", "log", "start"})
    rank = 16
    references = ("mehrotra1992",)
    accuracy = 1e-8

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        check_raw(self.name, settings.raw, (), {})
        assert isinstance(form, SimplexForm)
        domain = form.domain
        if not isinstance(domain, BoxPlane) or not np.isfinite([domain.lower, domain.upper]).all():
            return Answer(Stop.REJECTED, native="only a finite box, with or without a plane")
        x = None if start is None else starting_point(domain, start.x)
        return iterate(_steps(form, domain, x, settings.tol), settings)


BACKEND = InteriorPoint()


@dataclass(frozen=True, eq=False)
class _Inside:
    """A point strictly inside the box with its multipliers."""

    x: FloatArray
    z: FloatArray
    v: FloatArray
    nu: float


def _steps(form: SimplexForm, domain: BoxPlane, start: FloatArray | None, tol: float) -> Steps:
    f, wide = form.objective, domain.upper > domain.lower
    assert isinstance(f, MatrixFreeFunction)
    inner = _inner(f, domain, start)
    bend = f.near(inner)
    at = _with_multipliers(inner, bend.gradient, wide)
    best, waited = np.inf, 0
    for _ in range(MOST_STEPS):
        require_finite(bend.gradient)
        lower = form.lower_bound(at.x, bend.value, bend.gradient)
        gap = (bend.value - lower) / (1 + abs(bend.value))
        inside = Candidate(at.x, bend.value, lower)
        yield _tidied(form, domain, at, inside, tol) if gap <= 10 * tol else inside
        best, waited = (gap, 0) if gap < 0.9 * best else (best, waited + 1)
        if waited > PATIENCE:
            return
        at = _move(domain, at, bend, wide)
        bend = f.near(at.x)


def _inner(f: MatrixFreeFunction, domain: BoxPlane, start: FloatArray | None) -> FloatArray:
    """The start a little inside the box, or without one a point near the origin at which no gradient is large yet."""
    centre = domain.centre()
    if start is not None:
        return (1 - EDGE) * start + EDGE * centre
    origin = domain.project(np.zeros_like(centre))
    bend, way = f.near(origin), centre - origin
    gradient, length = float(np.abs(bend.gradient).mean()), float(np.abs(way).mean())
    curve = float(bend.gradient @ bend.matvec(bend.gradient))
    share = FIRST
    if curve > 0 and length > 0:  # the best step downhill is of the size of the solution or smaller
        share = min(share, FAR * gradient * float(bend.gradient @ bend.gradient) / curve / length)
    for _ in range(NEARER):
        x = origin + share * way
        if float(np.abs(f.gradient(x)).mean()) <= STEEP * gradient:
            break
        share /= 4
    return x


def _with_multipliers(x: FloatArray, gradient: FloatArray, wide: Mask) -> _Inside:
    """The point with multipliers that balance its gradient, z - v = g, each some way above zero."""
    lift = LIFT * float(np.abs(gradient[wide]).mean()) if wide.any() else 0.0
    z, v = (
        np.where(wide, np.maximum(side, 0.0) + (lift or 1.0), 0.0) for side in (gradient, -gradient)
    )
    return _Inside(x, z, v, 0.0)


def _tidied(
    form: SimplexForm, domain: BoxPlane, at: _Inside, inside: Candidate, tol: float
) -> Candidate:
    """The point with what is next to a bound on it, where that is as good as what is asked for."""
    x = _snapped(domain, at)
    value, gradient = form.objective.value(x), form.objective.gradient(x)
    snapped = Candidate(x, value, form.lower_bound(x, value, gradient))
    return snapped if snapped.proves(tol) else inside


def _snapped(domain: BoxPlane, at: _Inside) -> FloatArray:
    """The point with those variables on a bound whose multiplier outweighs their distance from it."""
    room = float((domain.upper - domain.lower).max(initial=0.0)) or 1.0
    size = float(max(at.z.max(initial=0.0), at.v.max(initial=0.0))) or 1.0
    low, high = (
        (at.x - domain.lower) * size < at.z * room,
        (domain.upper - at.x) * size < at.v * room,
    )
    return domain.project(np.where(low, domain.lower, np.where(high, domain.upper, at.x)))


class _Directions(PlaneSolver):
    """The system of a step, which what is known of (H + D)^-1 solves well enough to tell how far mu can be lowered."""

    def nearly(self, r: FloatArray, miss: float) -> tuple[FloatArray, float]:
        """Return dx and dnu without a product with H."""
        dx, dnu = self._onto(np.where(self.wide, r, 0.0))
        return dx + (miss / self.bend_of_plane if self.bend_of_plane > 0 else 0.0) * self.plane, dnu


def _move(domain: BoxPlane, at: _Inside, bend: HessianOperator, wide: Mask) -> _Inside:
    """One predictor-corrector step."""
    n, a = at.x.size, np.zeros(at.x.size) if domain.normal is None else domain.normal
    least = EPS * (domain.upper - domain.lower)
    s = np.where(wide, np.maximum(at.x - domain.lower, least), 1.0)
    t = np.where(wide, np.maximum(domain.upper - at.x, least), 1.0)
    D = np.where(wide, at.z / s + at.v / t, np.inf)
    solve = _Directions(bend, D, a, wide)
    gradient = bend.gradient + at.nu * a
    miss = domain.offset - float(a @ at.x)
    if abs(miss) <= 4 * EPS * (abs(domain.offset) + float(np.abs(a) @ np.abs(at.x))):
        miss = 0.0  # rounding, not worth a product with H
    mu = float(s @ at.z + t @ at.v) / max(2 * int(wide.sum()), 1)

    def direction(
        low: FloatArray, high: FloatArray, tol: float | None
    ) -> tuple[FloatArray, float, FloatArray, FloatArray]:
        right = low / s - high / t - gradient + at.z - at.v
        dx, dnu = solve.nearly(right, miss) if tol is None else solve(right, miss, tol)
        return (
            dx,
            dnu,
            np.where(wide, (low - at.z * dx) / s, 0.0),
            np.where(wide, (high + at.v * dx) / t, 0.0),
        )

    dx, _, dz, dv = direction(-s * at.z, -t * at.v, None)
    reach = min(1.0, _longest((s, dx), (t, -dx), (at.z, dz), (at.v, dv)))
    then = float(
        (s + reach * dx) @ (at.z + reach * dz) + (t - reach * dx) @ (at.v + reach * dv)
    ) / max(2 * n, 1)
    aim = mu * min(then / mu, 1.0) ** 3 if mu else 0.0
    exact = max(FINER, FINE * (1 - reach))
    dx, dnu, dz, dv = direction(aim - s * at.z - dx * dz, aim - t * at.v + dx * dv, exact)
    length = min(1.0, 0.995 * _longest((s, dx), (t, -dx), (at.z, dz), (at.v, dv)))
    tiny = np.finfo(float).tiny
    x = np.clip(at.x + length * dx, domain.lower, domain.upper)
    z, v = (
        np.where(wide, np.maximum(old + length * step, tiny), 0.0)
        for old, step in ((at.z, dz), (at.v, dv))
    )
    return _Inside(x, z, v, at.nu + length * dnu)


def _longest(*moves: tuple[FloatArray, FloatArray]) -> float:
    """The longest step that keeps all variables nonnegative."""
    return min(float(np.min(-x[d < 0] / d[d < 0], initial=np.inf)) for x, d in moves)
