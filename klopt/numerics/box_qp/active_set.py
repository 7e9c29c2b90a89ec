"""The exact quadratic program over a box cut by a plane: a primal-dual active-set method that cannot run away.

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

Where H is so nearly singular that no face stays, interior points
(`klopt.numerics.box_qp.interior_point`) find it: from a start among the variables that are loose
there, otherwise among all. The face they show is minimised on once more.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import cache, partial
from math import isfinite
from typing import Any

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.backend import Step, Stop
from klopt.numerics.box_qp.interior_point import interior_point
from klopt.numerics.box_qp.quadratic import Box, BoxQP, Indices, SignedGram

__all__ = ["Box", "BoxQP", "SignedGram", "Solved", "solve_box_qp", "solve_on_face"]

EPS, TINY = float(np.finfo(float).eps), float(np.finfo(float).tiny)
# Relative to the largest diagonal entry of H: the least regularisation, and the first one without
# and with a start.
LEAST, COLD, WARM = 1e-11, 0.1, 1e-3
# Runs that found their face left the box by more than its own size at most twice: in one of LEAPS
# steps.
MOST_FACES, FEW_FACES, LEAPS = 25, 6, 8
GRADIENT_STEPS = 5
FEWEST_LOOSE, MOST_ROUNDS = 64, 4


@dataclass(frozen=True, eq=False)
class Solved:
    """A point of the set, Hx + c there, the plane's multiplier, and how far the value may be above the optimum."""

    x: FloatArray
    gradient: FloatArray
    nu: float
    value: float
    gap: float
    relative: float
    """The gap over the terms of the value."""
    error: float
    """The largest gradient left over the terms of the gradient: what counts where an unbounded set has no finite gap."""
    iterations: int
    stop: Stop
    native: str
    history: tuple[Step, ...] = ()
    """The bounds at every point of the set that was looked at, seconds from the call on."""


@dataclass
class _Budget:
    """What is left of iterations and time, the accuracy that ends a run, and the bounds found so far."""

    iterations: int
    deadline: float
    tol: float
    whole: BoxQP | None = None
    """The program that is recorded: the bounds of a part of it mean nothing."""
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
        if qp is self.whole and isfinite(gap):
            self.history.append(
                Step(self.used, time.perf_counter() - self.began, value - max(gap, 0.0), value)
            )

    @property
    def stop(self) -> Stop | None:
        if self.used >= self.iterations:
            return Stop.ITERATION_LIMIT
        return Stop.TIME_LIMIT if time.perf_counter() >= self.deadline else None


@dataclass(frozen=True, eq=False)
class _Place:
    """A point, perhaps outside the box, with its gradient; `tau` is the last shift of the projection."""

    x: FloatArray
    g: FloatArray
    tau: float = 0.0


def solve_box_qp(
    qp: BoxQP,
    start: FloatArray | None = None,
    tol: float = 1e-12,
    max_iter: int = 500,
    deadline: float = np.inf,
) -> Solved:
    """Return the minimiser. `tol` is the gap aimed at relative to the terms of the value; `deadline` is a perf_counter.

    >>> qp = BoxQP(SignedGram(np.eye(2)), np.array([-3.0, 1.0]), Box(np.zeros(2), np.ones(2)))
    >>> solve_box_qp(qp).x
    array([1., 0.])
    """
    budget = _Budget(max_iter, deadline, tol, qp)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        x, _ = qp.box.project(np.zeros_like(qp.c) if start is None else start)
        place = _Place(x, qp.gradient(x))
        if start is None:
            found = _active_set(qp, _gradient_steps(qp, place), budget, COLD)
        else:
            found = _from_start(qp, place, budget)
        if found.stop is Stop.STALLED:
            found = _by_barrier(qp, found, budget)
    if found.stop is Stop.OPTIMAL:
        return found
    return replace(found, stop=budget.stop or found.stop, history=tuple(budget.history))


def solve_on_face(qp: BoxQP, x: FloatArray, tol: float) -> Solved:
    """Return x, in the box and on nearly the right face, if its gap is small already, else the minimiser nearby."""
    budget = _Budget(8, np.inf, 1e-12)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        g = qp.gradient(x)
        rough = _solved(qp, x, g, _level(qp, x, g), budget)
        if rough.relative <= tol:
            return replace(rough, stop=Stop.OPTIMAL, native="small gap")
        exact = _active_set(qp, _Place(rough.x, rough.gradient), budget, WARM)
    return min(exact, rough, key=_merit)


def _from_start(qp: BoxQP, place: _Place, budget: _Budget) -> Solved:
    """Boldly at first: near the optimum Newton's steps need no holding back; then as if it were far away."""
    found = _active_set(qp, place, budget, LEAST, most=FEW_FACES)
    found = _active_set(qp, place, budget, WARM) if found.stop is Stop.STALLED else found
    return _among_loose(qp, place, found, budget) if found.stop is Stop.STALLED else found


def _gradient_steps(qp: BoxQP, place: _Place) -> _Place:
    """A few projected gradient steps, each as long as is best: they find most of the face at a product each."""
    x, g, tau, curvature = place.x, place.g, 0.0, qp.H.scale
    for _ in range(GRADIENT_STEPS):
        there, tau = qp.box.project(x - g / curvature, tau)
        step = there - x
        gradient = float(g @ step)
        if not gradient < 0:
            break
        Hs = qp.H.matvec(step)
        bend = float(step @ Hs)
        length = min(1.0, -gradient / bend) if bend > 0 else 1.0
        x = there if length == 1.0 else x + length * step
        g = g + length * Hs
        curvature = max(bend / float(step @ step), EPS * qp.H.scale)
    return _Place(x, g, tau)


def _active_set(
    qp: BoxQP,
    place: _Place,
    budget: _Budget,
    delta: float,
    sigma: float | None = None,
    most: int = MOST_FACES,
) -> Solved:
    """At most so many Newton steps from face to face, `Stop.STALLED` where none stays."""
    scale = qp.H.scale
    sigma = scale if sigma is None else sigma
    centre, last, leaps = qp.box.clipped(place.x), b"", 0
    first = partial(_solved, qp, centre, place.g, 0.0, budget)
    best = None
    for _ in range(most):
        if not budget.spend():
            break
        w, tau = qp.box.project(place.x - place.g / (sigma + delta * scale), place.tau)
        low, high = w <= qp.box.lower, w >= qp.box.upper
        nu, x = _on_face(qp, w, (~(low | high)).nonzero()[0], centre, delta * scale)
        if x is None:
            delta *= 100
            continue
        place = _Place(x, qp.gradient(x), tau)
        centre = qp.box.clipped(x)
        outside = float(np.abs(x - centre).max(initial=0.0))
        if outside:
            outside /= float(np.abs(centre - qp.box.corner).max(initial=0.0)) or 1.0
        leaps += not outside <= 1
        if leaps > most // LEAPS:
            break
        if outside <= 1e-7:
            g = place.g if outside <= 8 * EPS else qp.gradient(centre)
            nu = tau * (sigma + delta * scale) if nu is None else nu
            here = _solved(qp, centre, g, nu, budget)
            best = here if best is None else min(best, here, key=_merit)
            face, final = low.tobytes() + high.tobytes(), delta <= LEAST
            # A start may be far enough away for the least delta to show: the second step from it is
            # exact.
            settled = best.error <= max(1e-12 if final else 1e-10, budget.tol) or (
                final and last != b""
            )
            if (best.relative <= budget.tol and settled) or (
                final and face == last and best.error <= 1e-12
            ):
                return _optimal(best, "the face is final", budget)
            last = face
        delta = max(delta * (min(max(outside, 0.01), 3.0) if outside > 8 * EPS else 1e-6), LEAST)
    best = first() if best is None else min(first(), best, key=_merit)
    return replace(best, iterations=budget.used)


def _on_face(
    qp: BoxQP, w: FloatArray, free: Indices, centre: FloatArray, delta: float
) -> tuple[float | None, FloatArray | None]:
    """Return nu, if the face tells it, and the minimiser on the face of w, if H_FF is positive definite."""
    if not free.size:
        return None, w
    (potrf, potrs), box = _cholesky(), qp.box
    block, gradient = qp.H.face(free, w)
    block.reshape(-1)[:: free.size + 1] += delta
    gradient += (qp.c + delta * (w - centre))[free]
    steepest = 0.0 if box.normal is None else float(box.sizes[free].max())
    if box.normal is None or not steepest:
        factor, failed = potrf(block.T, lower=1, overwrite_a=1, clean=0)
        if failed:
            return None, None
        x = w.copy()
        x[free] -= potrs(factor, gradient, lower=1)[0]
        return None, x
    # On the plane rho a a' changes nothing but nu, and H_FF may be singular across it.
    a, rho = box.normal[free], qp.H.scale / steepest**2
    block += (rho * a)[:, None] * a
    factor, failed = potrf(block.T, lower=1, overwrite_a=1, clean=0)
    if failed:
        return None, None
    both = potrs(factor, np.array([gradient, a]).T, lower=1)[0]
    short = box.offset - float(box.normal @ w)
    x = w.copy()
    nu = -(short + float(a @ both[:, 0])) / float(a @ both[:, 1])
    x[free] -= both[:, 0] + nu * both[:, 1]
    return nu + rho * short, x


@cache
def _cholesky() -> tuple[Any, Any]:
    """LAPACK's factorisation and solution; an import costs more than either for few variables."""
    from scipy.linalg.lapack import dpotrf, dpotrs

    return dpotrf, dpotrs


def _among_loose(qp: BoxQP, place: _Place, found: Solved, budget: _Budget) -> Solved:
    """From a good start: solve again and again in the variables that are free or least firm at their bounds."""
    x, g = qp.box.snapped(place.x), place.g
    nu: float | None = None
    for _ in range(MOST_ROUNDS):
        free = (x > qp.box.lower) & (x < qp.box.upper)
        size = max(FEWEST_LOOSE, 3 * int(free.sum()))
        if 2 * size > x.size or budget.stop is not None:
            break
        gradient = g + (_level(qp, x, g) if nu is None else nu) * (
            0.0 if qp.box.normal is None else qp.box.normal
        )
        firm = np.where(free, -np.inf, np.where(x <= qp.box.lower, gradient, -gradient))
        loose = np.sort(np.argpartition(firm, size - 1)[:size])
        part = qp.restricted(loose, x)
        inner = _active_set(part, _Place(x[loose], g[loose]), budget, WARM)
        inner = _by_barrier(part, inner, budget) if inner.stop is Stop.STALLED else inner
        x = x.copy()
        x[loose] = inner.x
        x = qp.box.snapped(x)
        g, nu = qp.gradient(x), inner.nu
        found = min(found, _solved(qp, x, g, nu, budget), key=_merit)
        if found.relative <= budget.tol or found.error <= 1e-13:
            return _optimal(found, "the loose variables are final", budget)
    return found


def _by_barrier(qp: BoxQP, found: Solved, budget: _Budget) -> Solved:
    """From inside the box to its best point, then exactly on the face that this point shows."""
    moving = np.flatnonzero(qp.box.lower < qp.box.upper)
    inner = interior_point(
        qp if moving.size == qp.c.size else qp.restricted(moving, qp.box.lower), 1e-11, budget.spend
    )
    x = qp.box.lower.copy()
    x[moving] = inner.x
    x, _ = qp.box.project(x)
    place = _Place(x, qp.gradient(x), 0.0)
    inside = _solved(qp, x, place.g, inner.nu, budget)
    # A free variable has room and no gradient, the others gradient and no room: each is measured in
    # its own units.
    room = float(np.abs(x - np.clip(0.0, qp.box.lower, qp.box.upper)).max(initial=0.0)) or 1.0
    sigma = (float(np.abs(qp.c).max(initial=0.0)) or qp.H.scale * room) / room
    polished = _active_set(
        qp, replace(place, tau=inner.nu / sigma), budget, LEAST, sigma, FEW_FACES
    )
    best = min(polished, inside, found, key=_merit)
    if best.relative <= 1e-8 or best.error <= 1e-9:
        return _optimal(
            best, polished.native if best is polished else "the interior points converged", budget
        )
    return replace(best, iterations=budget.used)


def _solved(qp: BoxQP, x: FloatArray, g: FloatArray, nu: float, budget: _Budget) -> Solved:
    if not qp.box.on_plane(x):
        x, _ = qp.box.project(x)
        g = qp.gradient(x)
    nu = qp.box.price(g, nu)
    value = float(x @ (g + qp.c)) / 2
    gap, terms, error = qp.measured(x, g, nu)
    budget.record(qp, value, gap)
    relative = gap / (terms or TINY)
    return Solved(x, g, nu, value, gap, relative, error, budget.used, Stop.STALLED, "no face stays")


def _optimal(solved: Solved, native: str, budget: _Budget) -> Solved:
    found = tuple(budget.history)
    return replace(solved, stop=Stop.OPTIMAL, native=native, iterations=budget.used, history=found)


def _merit(solved: Solved) -> float:
    return solved.relative if isfinite(solved.relative) else solved.error


def _level(qp: BoxQP, x: FloatArray, g: FloatArray) -> float:
    """The nu under which the free variables have no gradient, as far as one nu can do that."""
    if qp.box.normal is None:
        return 0.0
    free = np.flatnonzero((x > qp.box.lower) & (x < qp.box.upper) & (qp.box.normal != 0))
    return -float((g[free] / qp.box.normal[free]).mean()) if free.size else 0.0
