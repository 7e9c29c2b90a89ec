"""Interior points for smooth convex functions of very many variables over a finite box and a plane.

    minimise  f(x)   over   lower <= x <= upper,  a'x = offset

with multipliers z of x - lower = s, v of upper - x = t and nu of the plane. A Newton step towards s
z = t v = mu solves

    [H + D  a] [dx ]   [mu / s - mu / t - g - nu a]
    [a'     0] [dnu] = [offset - a'x              ],     D = z / s + v / t  (diagonal)

with H and g at x, by conjugate gradients on the plane, preconditioned with what the function knows
of (H + D)^-1: H is never formed. First it is solved roughly for mu = 0, which tells how far mu can
be lowered, then for that mu and the products left out (Mehrotra, 1992)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from klopt.arrays import EPS, FloatArray
from klopt.model.backend import Answer, Backend, Settings, Start, Stop, check_raw
from klopt.model.features import Feature
from klopt.model.forms import Form, SimplexForm
from klopt.model.functions import HessianOperator, MatrixFreeFunction
from klopt.model.sets import BoxPlane
from klopt.numerics.candidate import Candidate, require_finite
from klopt.numerics.conjugate_gradients import Mask, PlaneConjugateGradients
from klopt.solvers._first_order.loop import Steps, iterate, starting_point

MAX_STEPS = 200
MAX_IDLE_STEPS = 12
"""Steps in which the gap must shrink by a tenth."""
BOUNDARY_FRACTION = 0.995
"""The share of the way to the boundary that a step may go."""
SNAP_WITHIN = 10.0
"""Variables are put on their bounds once the gap is within this factor of the tolerance."""
CG_TOLERANCE = 3e-2
"""How exactly the system of a step is solved, times the part of the predictor that was cut off."""
MIN_CG_TOLERANCE = 1e-3
"""How exactly it is solved where nothing cuts the step short."""
START_INSET = 0.02
"""How far a start is moved towards the centre of the box."""
FIRST_SHARE = 0.05
"""Without a start: the share of the way from the origin to the centre that is tried first."""
MAX_QUARTERINGS = 8
"""How often that share is divided by 4."""
MAX_GRADIENT_STEPS_AWAY = 100.0
"""It is no longer than so many of the best gradient steps."""
MAX_GRADIENT_GROWTH = 8.0
"""The gradient at a start is at most so many times that at the origin."""
MULTIPLIER_LIFT = 0.2
"""The smallest multiplier of a start, as a share of the mean gradient."""
SMALLEST_NORMAL = float(np.finfo(float).tiny)
"""The smallest positive float with all its digits: multipliers stay positive."""


class InteriorPoint(Backend):
    """About 20 iterations, whatever the number of variables.

    Takes functions that nearly invert their Hessians.
    """

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
class _PrimalDual:
    """A point strictly inside the box with its multipliers."""

    x: FloatArray
    z: FloatArray
    v: FloatArray
    nu: float


class _BarrierDirection(NamedTuple):
    """A Newton direction; that of s is dx, that of t is -dx."""

    dx: FloatArray
    dnu: float
    dz: FloatArray
    dv: FloatArray


def _steps(form: SimplexForm, domain: BoxPlane, start: FloatArray | None, tol: float) -> Steps:
    f = form.objective
    assert isinstance(f, MatrixFreeFunction)
    movable = domain.upper > domain.lower
    x = _first_point(f, domain, start)
    local = f.near(x)
    at = _with_multipliers(x, local.gradient, movable)
    smallest_gap = np.inf
    idle = 0
    for _ in range(MAX_STEPS):
        require_finite(local.gradient)
        lower = form.lower_bound(at.x, local.value, local.gradient)
        gap = (local.value - lower) / (1 + abs(local.value))
        inside = Candidate(at.x, local.value, lower)
        # An interior point has no exact zeros; near the end they may be what is asked for.
        if gap <= SNAP_WITHIN * tol:
            yield _snapped_candidate(form, domain, at, inside, tol)
        else:
            yield inside

        if gap < 0.9 * smallest_gap:
            smallest_gap = gap
            idle = 0
        else:
            idle += 1
        if idle > MAX_IDLE_STEPS:
            return
        at = _move(domain, at, local, movable)
        local = f.near(at.x)


def _first_point(f: MatrixFreeFunction, domain: BoxPlane, start: FloatArray | None) -> FloatArray:
    """The start a little inside the box, or a point near the origin with no large gradient yet."""
    centre = domain.centre()
    if start is not None:
        return (1 - START_INSET) * start + START_INSET * centre

    origin = domain.project(np.zeros_like(centre))
    way = centre - origin
    local = f.near(origin)
    gradient = local.gradient
    mean_gradient = float(np.abs(gradient).mean())
    length = float(np.abs(way).mean())
    curvature = float(gradient @ local.matvec(gradient))
    share = FIRST_SHARE
    # The best gradient step is of the size of the solution or smaller.
    if curvature > 0 and length > 0:
        best_step = MAX_GRADIENT_STEPS_AWAY * mean_gradient * float(gradient @ gradient) / curvature
        share = min(share, best_step / length)
    for _ in range(MAX_QUARTERINGS):
        x = origin + share * way
        if float(np.abs(f.gradient(x)).mean()) <= MAX_GRADIENT_GROWTH * mean_gradient:
            break
        share /= 4
    return x


def _with_multipliers(x: FloatArray, gradient: FloatArray, movable: Mask) -> _PrimalDual:
    """The point with multipliers that balance its gradient, z - v = g, each well above zero."""
    lift = MULTIPLIER_LIFT * float(np.abs(gradient[movable]).mean()) if movable.any() else 0.0
    z = np.where(movable, np.maximum(gradient, 0.0) + (lift or 1.0), 0.0)
    v = np.where(movable, np.maximum(-gradient, 0.0) + (lift or 1.0), 0.0)
    return _PrimalDual(x, z, v, 0.0)


def _snapped_candidate(
    form: SimplexForm, domain: BoxPlane, at: _PrimalDual, inside: Candidate, tol: float
) -> Candidate:
    """The point with variables on their bounds, where that is as good as what is asked for.

    Parameters
    ----------
    form, domain
        The function and its set.
    at, inside
        The point inside the box, with its multipliers and with its bounds.
    tol
        The relative gap that is asked for.
    """
    x = _snapped(domain, at)
    value = form.objective.value(x)
    gradient = form.objective.gradient(x)
    snapped = Candidate(x, value, form.lower_bound(x, value, gradient))
    return snapped if snapped.proves(tol) else inside


def _snapped(domain: BoxPlane, at: _PrimalDual) -> FloatArray:
    """The point with those variables on a bound whose multiplier outweighs their distance."""
    largest_side = float((domain.upper - domain.lower).max(initial=0.0)) or 1.0
    largest_multiplier = float(max(at.z.max(initial=0.0), at.v.max(initial=0.0))) or 1.0
    low = (at.x - domain.lower) * largest_multiplier < at.z * largest_side
    high = (domain.upper - at.x) * largest_multiplier < at.v * largest_side
    return domain.project(np.where(low, domain.lower, np.where(high, domain.upper, at.x)))


class _BarrierSystem(PlaneConjugateGradients):
    """The system of one step, solved roughly for the predictor and well for the corrector."""

    def without_products(self, r: FloatArray, shortfall: float) -> tuple[FloatArray, float]:
        """Return dx and dnu by what is known of (H + D)^-1, without a product with H."""
        dx, dnu = self._preconditioned(np.where(self.movable, r, 0.0))
        share = shortfall / self.normal_curvature if self.normal_curvature > 0 else 0.0
        return dx + share * self.along_normal, dnu


def _move(domain: BoxPlane, at: _PrimalDual, local: HessianOperator, movable: Mask) -> _PrimalDual:
    """One predictor-corrector step.

    Parameters
    ----------
    domain
        The set.
    at
        The point with its multipliers.
    local
        The function near it.
    movable
        The variables whose bounds differ.
    """
    n = at.x.size
    a = np.zeros(n) if domain.normal is None else domain.normal
    smallest_slack = EPS * (domain.upper - domain.lower)
    s = np.where(movable, np.maximum(at.x - domain.lower, smallest_slack), 1.0)
    t = np.where(movable, np.maximum(domain.upper - at.x, smallest_slack), 1.0)
    # A variable that cannot move has an infinite weight.
    D = np.where(movable, at.z / s + at.v / t, np.inf)
    system = _BarrierSystem(local, D, a, movable)
    gradient = local.gradient + at.nu * a
    shortfall = _shortfall(domain, a, at.x)
    mu = float(s @ at.z + t @ at.v) / max(2 * int(movable.sum()), 1)

    def direction(
        of_lower: FloatArray, of_upper: FloatArray, tol: float | None
    ) -> _BarrierDirection:
        """The direction in which s z and t v change by what is given, to first order."""
        right = of_lower / s - of_upper / t - gradient + at.z - at.v
        if tol is None:
            dx, dnu = system.without_products(right, shortfall)
        else:
            dx, dnu = system(right, shortfall, tol)
        dz = np.where(movable, (of_lower - at.z * dx) / s, 0.0)
        dv = np.where(movable, (of_upper + at.v * dx) / t, 0.0)
        return _BarrierDirection(dx, dnu, dz, dv)

    # Predictor: mu = 0, by the preconditioner alone.
    dx, _, dz, dv = direction(-s * at.z, -t * at.v, None)
    reach = min(1.0, _longest((s, dx), (t, -dx), (at.z, dz), (at.v, dv)))
    products = (s + reach * dx) @ (at.z + reach * dz) + (t - reach * dx) @ (at.v + reach * dv)
    mu_ahead = float(products) / max(2 * n, 1)
    # Mehrotra's rule: the better the predictor, the nearer to 0 the corrector aims.
    target = mu * min(mu_ahead / mu, 1.0) ** 3 if mu else 0.0

    # Corrector: the target, less the products that the predictor left out.
    # A step that is cut anyway need not be exact.
    tol = max(MIN_CG_TOLERANCE, CG_TOLERANCE * (1 - reach))
    of_lower = target - s * at.z - dx * dz
    of_upper = target - t * at.v + dx * dv
    dx, dnu, dz, dv = direction(of_lower, of_upper, tol)
    length = _longest((s, dx), (t, -dx), (at.z, dz), (at.v, dv))
    length = min(1.0, BOUNDARY_FRACTION * length)

    x = np.clip(at.x + length * dx, domain.lower, domain.upper)
    z = np.where(movable, np.maximum(at.z + length * dz, SMALLEST_NORMAL), 0.0)
    v = np.where(movable, np.maximum(at.v + length * dv, SMALLEST_NORMAL), 0.0)
    return _PrimalDual(x, z, v, at.nu + length * dnu)


def _shortfall(domain: BoxPlane, a: FloatArray, x: FloatArray) -> float:
    """offset - a'x, or 0 where that is rounding, which is not worth a product with H."""
    shortfall = domain.offset - float(a @ x)
    terms = abs(domain.offset) + float(np.abs(a) @ np.abs(x))
    return 0.0 if abs(shortfall) <= 4 * EPS * terms else shortfall


def _longest(*moves: tuple[FloatArray, FloatArray]) -> float:
    """The longest step that keeps all variables nonnegative."""
    return min(float(np.min(-x[d < 0] / d[d < 0], initial=np.inf)) for x, d in moves)
