"""The exact quadratic program over a box cut by a plane, by a primal-dual active-set method.

    minimise  x'Hx/2 + c'x   over   lower <= x <= upper,  a'x = offset

Optimality is the fixed point x = P(x - (Hx + c)/sigma) of the exact projection P. A semismooth
Newton step on it reads the face from the right hand side, so that the whole active set moves at
once, and minimises on it: with F the free variables and w the projected point,

    [H_FF + delta I   a_F] [dx]   [-(Hw + c)_F - delta (w - x_before)_F]
    [a_F'               0] [nu] = [offset - a'w                        ]

which takes one Cholesky factorisation. A wrong face throws dx far out of the box, and the next face
is worse still. delta, a proximal term around the last point inside the box, forbids that: it
follows how far the step left the box and vanishes with it, so that the last steps are Newton's and
the answer is exact. It also carries singular blocks (equal points, both halves of a pair).

Where H is so nearly singular that no face is kept, interior points
(`klopt.numerics.box_qp.interior_point`) find it: from a start within a working set of the variables
with the smallest reduced costs, otherwise among all. The face they show is minimised on once more.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import cache
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from klopt.arrays import EPS, FloatArray
from klopt.model.backend import Step, Stop
from klopt.numerics.box_qp.interior_point import interior_point
from klopt.numerics.box_qp.program import Box, BoxQP, Indices, SignedGram

__all__ = ["Box", "BoxQP", "BoxQPSolution", "SignedGram", "solve_box_qp", "solve_on_face"]

Mask = npt.NDArray[np.bool_]

SMALLEST_NORMAL = float(np.finfo(float).tiny)
"""The smallest positive float with all its digits: what a zero is replaced by as a divisor."""

MIN_REGULARISATION = 1e-11
"""The smallest delta, relative to the largest diagonal entry of H."""
COLD_REGULARISATION = 0.1
"""The first delta without a start, in the same unit."""
WARM_REGULARISATION = 1e-3
"""The first delta from a start, in the same unit."""
MAX_REGULARISATION_GROWTH = 3.0
"""The most by which delta grows from one step to the next."""
MIN_REGULARISATION_DECAY = 0.01
"""The most by which delta falls after a step that left the box."""
INSIDE_DECAY = 1e-6
"""By how much delta falls after a step that stayed in the box."""

MAX_FACES = 25
"""Newton steps of one run."""
MAX_FACES_NEAR_OPTIMUM = 6
"""Newton steps of a run that should start on nearly the right face."""
STEPS_PER_LEAP = 8
"""Runs that found their face left the box by more than its own size at most in one of so many
steps."""
INSIDE_TOLERANCE = 1e-7
"""A step that leaves the box by no more than this, relative to its size, is judged."""

GRADIENT_STEPS = 5
"""Projected gradient steps before the first face is guessed."""
MIN_WORKING_SET = 64
"""Variables of the smallest working set that is tried."""
MAX_WORKING_SETS = 4
"""Working sets that are tried one after the other."""


@dataclass(frozen=True, eq=False)
class BoxQPSolution:
    """A point of the set, how good it is proven to be, and how it was found."""

    x: FloatArray
    gradient: FloatArray
    """Hx + c."""
    nu: float
    """The multiplier of the plane."""
    value: float
    gap: float
    """How far the value may be above the optimum."""
    relative: float
    """The gap over the terms of the value."""
    error: float
    """The largest reduced cost over the terms of the gradient.

    It is what counts where an unbounded set has no finite gap.
    """
    iterations: int
    stop: Stop
    native: str
    history: tuple[Step, ...] = ()
    """The bounds at every point of the set that was looked at, seconds from the call on."""


@dataclass
class _Budget:
    """The iterations and the time that are left, the accuracy aimed at, the bounds found so far."""

    iterations: int
    deadline: float
    tol: float
    recorded: BoxQP | None = None
    """The program whose bounds are recorded: those of a part of it mean nothing."""
    used: int = 0
    began: float = field(default_factory=time.perf_counter)
    history: list[Step] = field(default_factory=list)

    def spend(self) -> bool:
        """Count one iteration; False where there is none left."""
        left = self.stop is None
        self.used += left
        return left

    def record(self, qp: BoxQP, value: float, gap: float) -> None:
        """Keep the bounds of a feasible point, of which several may belong to one iteration."""
        if qp is not self.recorded or not isfinite(gap):
            return
        seconds = time.perf_counter() - self.began
        self.history.append(Step(self.used, seconds, value - max(gap, 0.0), value))

    @property
    def stop(self) -> Stop | None:
        if self.used >= self.iterations:
            return Stop.ITERATION_LIMIT
        return Stop.TIME_LIMIT if time.perf_counter() >= self.deadline else None


@dataclass(frozen=True, eq=False)
class Iterate:
    """A point, perhaps outside the box, its gradient, and the last tau of the projection."""

    x: FloatArray
    g: FloatArray
    tau: float = 0.0


def solve_box_qp(
    qp: BoxQP,
    start: FloatArray | None = None,
    tol: float = 1e-12,
    max_iter: int = 500,
    deadline: float = np.inf,
) -> BoxQPSolution:
    """Return the minimiser.

    Parameters
    ----------
    qp
        The program.
    start
        A point to start from; it is projected on the set.
    tol
        The gap aimed at, relative to the terms of the value.
    max_iter
        The limit of the factorisations.
    deadline
        When to stop, on the clock of `time.perf_counter`.

    Examples
    --------
    >>> qp = BoxQP(SignedGram(np.eye(2)), np.array([-3.0, 1.0]), Box(np.zeros(2), np.ones(2)))
    >>> solve_box_qp(qp).x
    array([1., 0.])
    """
    budget = _Budget(max_iter, deadline, tol, qp)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        x, _ = qp.box.project(np.zeros_like(qp.c) if start is None else start)
        iterate = Iterate(x, qp.gradient(x))
        if start is None:
            found = _active_set(qp, _gradient_steps(qp, iterate), budget, COLD_REGULARISATION)
        else:
            found = _from_start(qp, iterate, budget)
        # H is so nearly singular that rounding decides which face is next.
        if found.stop is Stop.STALLED:
            found = _by_interior_points(qp, found, budget)

    if found.stop is Stop.OPTIMAL:
        return found
    return replace(found, stop=budget.stop or found.stop, history=tuple(budget.history))


def solve_on_face(qp: BoxQP, x: FloatArray, tol: float) -> BoxQPSolution:
    """Return x, a point of the box on nearly the right face, or the minimiser nearby.

    x itself is returned if its relative gap is at most `tol` already.
    """
    budget = _Budget(8, np.inf, 1e-12)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        g = qp.gradient(x)
        rough = _judged(qp, x, g, _plane_multiplier(qp, x, g), budget)
        if rough.relative <= tol:
            return replace(rough, stop=Stop.OPTIMAL, native="small gap")
        exact = _active_set(qp, Iterate(rough.x, rough.gradient), budget, WARM_REGULARISATION)
    return min(exact, rough, key=_merit)


def _from_start(qp: BoxQP, iterate: Iterate, budget: _Budget) -> BoxQPSolution:
    """From a start: first hardly regularised, then as without one, then in working sets."""
    # Near the optimum Newton's steps need no holding back.
    found = _active_set(qp, iterate, budget, MIN_REGULARISATION, max_faces=MAX_FACES_NEAR_OPTIMUM)
    # It was not near: held back, as from afar.
    if found.stop is Stop.STALLED:
        found = _active_set(qp, iterate, budget, WARM_REGULARISATION)
    # No face is kept: the variables in doubt alone make a smaller program.
    if found.stop is Stop.STALLED:
        found = _solve_working_set(qp, iterate, found, budget)
    return found


def _gradient_steps(qp: BoxQP, iterate: Iterate) -> Iterate:
    """A few projected gradient steps of the best length: a product each finds most of the face."""
    x = iterate.x
    g = iterate.g
    tau = 0.0
    curvature = qp.H.scale
    for _ in range(GRADIENT_STEPS):
        end, tau = qp.box.project(x - g / curvature, tau)
        step = end - x
        descent = float(g @ step)
        if not descent < 0:  # x is optimal up to rounding
            break

        Hs = qp.H.matvec(step)
        quadratic = float(step @ Hs)
        # The minimum along the step, which must not leave the set.
        length = 1.0
        if quadratic > 0:
            length = min(1.0, -descent / quadratic)
        x = end if length == 1.0 else x + length * step
        g = g + length * Hs
        # Barzilai and Borwein's length for the next step.
        curvature = max(quadratic / float(step @ step), EPS * qp.H.scale)
    return Iterate(x, g, tau)


def _active_set(
    qp: BoxQP,
    iterate: Iterate,
    budget: _Budget,
    delta: float,
    sigma: float | None = None,
    max_faces: int = MAX_FACES,
) -> BoxQPSolution:
    """Newton steps from face to face; `Stop.STALLED` where no face is kept.

    Parameters
    ----------
    qp
        The program.
    iterate
        Where the run starts.
    budget
        What is left of iterations and time.
    delta
        The first regularisation, relative to the largest diagonal entry of H.
    sigma
        The curvature of the projected gradient step that shows the face; by default the largest
        diagonal entry of H.
    max_faces
        The limit of the steps.
    """
    scale = qp.H.scale
    if sigma is None:
        sigma = scale
    centre = qp.box.clipped(iterate.x)
    start = (centre, iterate.g)
    best: BoxQPSolution | None = None
    last_face: bytes | None = None
    leaps = 0

    for _ in range(max_faces):
        if not budget.spend():
            break
        curvature = sigma + delta * scale
        w, tau = qp.box.project(iterate.x - iterate.g / curvature, iterate.tau)
        low = w <= qp.box.lower
        high = w >= qp.box.upper
        nu, x = _minimise_on_face(qp, w, (~(low | high)).nonzero()[0], centre, delta * scale)
        if x is None:  # the block of the face is not positive definite in floats
            delta *= 100
            continue

        iterate = Iterate(x, qp.gradient(x), tau)
        centre = qp.box.clipped(x)
        outside = _distance_outside(qp.box, x, centre)
        # `not <=` counts a NaN as a leap too.
        leaps += not outside <= 1
        # Runs that find their face leap seldom; this one is lost.
        if leaps > max_faces // STEPS_PER_LEAP:
            break

        if outside <= INSIDE_TOLERANCE:
            g = iterate.g if outside <= 8 * EPS else qp.gradient(centre)
            # Without free variables of the plane the projection's own multiplier is the one.
            here = _judged(qp, centre, g, tau * curvature if nu is None else nu, budget)
            best = here if best is None else min(best, here, key=_merit)
            face = low.tobytes() + high.tobytes()
            if _face_is_final(best, delta, face, last_face, budget.tol):
                return _optimal(best, "the face is final", budget)
            last_face = face
        delta = _next_regularisation(delta, outside)

    # The steps may all have been worse than their start.
    first = _judged(qp, *start, 0.0, budget)
    best = first if best is None else min(first, best, key=_merit)
    return replace(best, iterations=budget.used)


def _distance_outside(box: Box, x: FloatArray, clipped: FloatArray) -> float:
    """How far x left the box, relative to the size of the nearest point of the box."""
    outside = float(np.abs(x - clipped).max(initial=0.0))
    if not outside:
        return 0.0
    return outside / (float(np.abs(clipped - box.corner).max(initial=0.0)) or 1.0)


def _face_is_final(
    best: BoxQPSolution, delta: float, face: bytes, last_face: bytes | None, tol: float
) -> bool:
    """Whether the best point so far is exact: its gap is small, or the face did not change.

    Either counts only once delta no longer shows in the reduced costs.
    """
    unregularised = delta <= MIN_REGULARISATION
    if unregularised and face == last_face and best.error <= 1e-12:
        return True
    if not best.relative <= tol:  # NaN and infinity included
        return False
    if best.error <= max(1e-12 if unregularised else 1e-10, tol):
        return True
    # A start may be far enough away for the smallest delta to show: the second step from it is
    # exact.
    return unregularised and last_face is not None


def _next_regularisation(delta: float, outside: float) -> float:
    """delta follows how far the last step left the box, and vanishes once none does."""
    factor = INSIDE_DECAY
    if outside > 8 * EPS:
        factor = min(max(outside, MIN_REGULARISATION_DECAY), MAX_REGULARISATION_GROWTH)
    return max(delta * factor, MIN_REGULARISATION)


def _minimise_on_face(
    qp: BoxQP, w: FloatArray, free: Indices, centre: FloatArray, delta: float
) -> tuple[float | None, FloatArray | None]:
    """Return the plane's multiplier and the minimiser on the face of w.

    Parameters
    ----------
    qp
        The program.
    w
        A point of the set, whose variables at bounds stay.
    free
        The other variables.
    centre, delta
        The proximal term delta ||x - centre||^2 / 2.

    Returns
    -------
    tuple
        nu, None where the face does not tell it, and the minimiser, None where H_FF + delta I is
        not positive definite in floats.
    """
    if not free.size:
        return None, w
    potrf, potrs = _cholesky()
    box = qp.box
    block, gradient = qp.H.block_and_product(free, w)
    block.reshape(-1)[:: free.size + 1] += delta
    gradient += (qp.c + delta * (w - centre))[free]

    largest_normal = 0.0
    if box.normal is not None:
        largest_normal = float(box.normal_sizes[free].max())
    if box.normal is None or not largest_normal:  # the plane does not meet this face
        factor, failed = potrf(block.T, lower=1, overwrite_a=1, clean=0)
        if failed:
            return None, None
        x = w.copy()
        x[free] -= potrs(factor, gradient, lower=1)[0]
        return None, x

    # On the plane rho a a' changes nothing but nu, and H_FF may be singular across it.
    a = box.normal[free]
    rho = qp.H.scale / largest_normal**2
    block += (rho * a)[:, None] * a
    factor, failed = potrf(block.T, lower=1, overwrite_a=1, clean=0)
    if failed:
        return None, None
    both = potrs(factor, np.array([gradient, a]).T, lower=1)[0]
    along_gradient = both[:, 0]
    along_normal = both[:, 1]
    shortfall = box.offset - float(box.normal @ w)
    nu = -(shortfall + float(a @ along_gradient)) / float(a @ along_normal)
    x = w.copy()
    x[free] -= along_gradient + nu * along_normal
    return nu + rho * shortfall, x


@cache
def _cholesky() -> tuple[Any, Any]:
    """LAPACK's factorisation and solution; an import costs more than either for few variables."""
    from scipy.linalg.lapack import dpotrf, dpotrs

    return dpotrf, dpotrs


def _solve_working_set(
    qp: BoxQP, iterate: Iterate, found: BoxQPSolution, budget: _Budget
) -> BoxQPSolution:
    """From a good start: solve again and again in the variables with the smallest reduced costs."""
    x = qp.box.snapped(iterate.x)
    g = iterate.g
    nu: float | None = None
    for _ in range(MAX_WORKING_SETS):
        free = (x > qp.box.lower) & (x < qp.box.upper)
        size = max(MIN_WORKING_SET, 3 * int(free.sum()))
        # The whole program is as cheap as such a part of it.
        if 2 * size > x.size or budget.stop is not None:
            break

        costs = _reduced_costs(qp, x, g, free, nu)
        working = np.sort(np.argpartition(costs, size - 1)[:size])
        part = qp.restricted(working, x)
        inner = _active_set(part, Iterate(x[working], g[working]), budget, WARM_REGULARISATION)
        if inner.stop is Stop.STALLED:
            inner = _by_interior_points(part, inner, budget)

        x = x.copy()
        x[working] = inner.x
        x = qp.box.snapped(x)
        g = qp.gradient(x)
        nu = inner.nu
        found = min(found, _judged(qp, x, g, nu, budget), key=_merit)
        if found.relative <= budget.tol or found.error <= 1e-13:
            return _optimal(found, "the working set is final", budget)
    return found


def _reduced_costs(
    qp: BoxQP, x: FloatArray, g: FloatArray, free: Mask, nu: float | None
) -> FloatArray:
    """What moving each variable off its bound costs, -inf for the free ones."""
    r = g
    if qp.box.normal is not None:
        r = g + (_plane_multiplier(qp, x, g) if nu is None else nu) * qp.box.normal
    costs = np.where(x <= qp.box.lower, r, -r)
    costs[free] = -np.inf
    return costs


def _by_interior_points(qp: BoxQP, found: BoxQPSolution, budget: _Budget) -> BoxQPSolution:
    """The optimum from inside the box, then exactly on the face that this point shows."""
    moving = np.flatnonzero(qp.box.lower < qp.box.upper)
    movable = qp if moving.size == qp.c.size else qp.restricted(moving, qp.box.lower)
    inner = interior_point(movable, 1e-11, budget.spend)
    x = qp.box.lower.copy()
    x[moving] = inner.x
    x, _ = qp.box.project(x)
    g = qp.gradient(x)
    inside = _judged(qp, x, g, inner.nu, budget)

    # A free variable has distance and no reduced cost, the others the reverse: sigma compares the
    # two, each in units of its own largest.
    distance = float(np.abs(x - np.clip(0.0, qp.box.lower, qp.box.upper)).max(initial=0.0)) or 1.0
    sigma = (float(np.abs(qp.c).max(initial=0.0)) or qp.H.scale * distance) / distance
    polished = _active_set(
        qp,
        Iterate(x, g, inner.nu / sigma),
        budget,
        MIN_REGULARISATION,
        sigma,
        MAX_FACES_NEAR_OPTIMUM,
    )
    best = min(polished, inside, found, key=_merit)
    if best.relative <= 1e-8 or best.error <= 1e-9:
        native = polished.native if best is polished else "the interior points converged"
        return _optimal(best, native, budget)
    return replace(best, iterations=budget.used)


def _judged(qp: BoxQP, x: FloatArray, g: FloatArray, nu: float, budget: _Budget) -> BoxQPSolution:
    """The nearest point of the set with its value and gap, not yet called optimal."""
    # Clipping may have moved a point off the plane.
    if not qp.box.on_plane(x):
        x, _ = qp.box.project(x)
        g = qp.gradient(x)
    nu = qp.box.nearest_multiplier(g, nu)
    value = float(x @ (g + qp.c)) / 2
    gap, value_terms, error = qp.optimality_gap(x, g, nu)
    budget.record(qp, value, gap)
    relative = gap / (value_terms or SMALLEST_NORMAL)
    return BoxQPSolution(
        x, g, nu, value, gap, relative, error, budget.used, Stop.STALLED, "no face is kept"
    )


def _optimal(found: BoxQPSolution, native: str, budget: _Budget) -> BoxQPSolution:
    return replace(
        found,
        stop=Stop.OPTIMAL,
        native=native,
        iterations=budget.used,
        history=tuple(budget.history),
    )


def _merit(found: BoxQPSolution) -> float:
    return found.relative if isfinite(found.relative) else found.error


def _plane_multiplier(qp: BoxQP, x: FloatArray, g: FloatArray) -> float:
    """The nu under which the free variables have no reduced cost, as far as one nu can do that."""
    normal = qp.box.normal
    if normal is None:
        return 0.0
    free = np.flatnonzero((x > qp.box.lower) & (x < qp.box.upper) & (normal != 0))
    if not free.size:
        return 0.0
    return -float((g[free] / normal[free]).mean())
