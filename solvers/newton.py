"""Newton's method for smooth convex functions over boxes, planes, simplices and products of them.

    z  = the minimiser over the set of   f + g'(z - x) + (z - x)'H(z - x)/2       g, H: gradient and curvature at x
    x+ = x + t (z - x)                   t = 1, shorter where the function did not fall as the model said

The quadratic is minimised exactly and from x, so that the face is the right one after a step or
two; from then on the method is Newton's on that face, and squares its error. The set is convex:
every x+ lies in it. Where steps have to be cut the model promises too much, and a multiple of the
identity is added to H until it does not.

The tangent's bound of the optimum is off by the gradient, the value by its square. Where f knows a
quadratic below itself, the least value of that is a bound as good as the value is; it takes a
second quadratic program, tried near the end.

A step's end is judged by its value or, where values differ by rounding only, by its gradient (Hager
and Zhang, 2005).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.backend import Answer, Backend, Settings, Start, Stop, check_raw
from klopt.model.cones import Feature
from klopt.model.forms import Form, SimplexForm
from klopt.model.smooth_functions import LocalModel, SmoothFunction
from klopt.numerics.newton_step import Boxes, minimise_quadratic, supported
from klopt.solvers._first_order.loop import (
    Candidate,
    Steps,
    iterate,
    require_finite,
    starting_point,
)

ENOUGH = 1e-4  # the share of the promised fall that a step must keep
MOST_TRIALS = 60
PATIENCE = 50  # iterations in which the bounds must come twice as close; at a kink they never do
CLOSE = 0.3  # of the root of the tolerance: nearer than that to the tangent's bound, a square is within it
SHORT, DAMPING = (
    0.5,
    1e-3,
)  # a step cut below the first asks for damping, from this share of the curvature
ROUGHLY = (
    1e-2  # how well the model of the start is minimised: 1e-4 saved no step in any of 112 instances
)
CALMER = 5  # a step that is not cut leaves so much less damping to the next


class Newton(Backend):
    """A handful of iterations, each with one quadratic program; takes functions that know their curvature."""

    name = "newton"
    offers = frozenset({Feature.SIMPLEX, Feature.CURVED, Feature.BOX})
    honours = frozenset({"tol", "time_limit", "max_iter", "threads", "seed", "log", "start"})
    rank = 15
    accuracy = 1e-9

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        check_raw(self.name, settings.raw, (), {})
        assert isinstance(form, SimplexForm)
        if not supported(form.domain):
            return Answer(
                Stop.REJECTED, native="only boxes, planes, simplices and products of them"
            )
        deadline = time.perf_counter() + (
            np.inf if settings.time_limit is None else settings.time_limit
        )
        given = None if start is None else starting_point(form.domain, start.x)
        return iterate(newton_steps(form, given, settings.tol, deadline), settings)


BACKEND = Newton()


@dataclass(frozen=True, eq=False)
class Move:
    """Where the model at the last candidate is least, and by how much it says that the value falls on the way."""

    z: FloatArray
    fall: float


def newton_steps(form: SimplexForm, start: FloatArray | None, tol: float, deadline: float) -> Steps:
    """Yield the iterates."""
    return (
        step for step in newton_moves(form, start, tol, deadline) if isinstance(step, Candidate)
    )


def newton_moves(
    form: SimplexForm, start: FloatArray | None, tol: float, deadline: float
) -> Iterator[Candidate | Move]:
    """Yield the iterates, each followed by the next move before it is made: other methods take a few as inner steps."""
    f, boxes = form.objective, Boxes(form.domain)
    assert isinstance(f, SmoothFunction)
    x, damping = _rough_start(f, boxes, deadline) if start is None else (start, 0.0)
    here, narrow, waited = f.near(x), np.inf, 0
    while waited <= PATIENCE:
        lower = max(
            here.value - float(here.gradient @ x) + form.domain.linear_minimum(here.gradient),
            here.lower,
        )
        candidate = _sharpened(form, boxes, here, Candidate(x, here.value, lower), tol, deadline)
        yield candidate
        lower = candidate.lower
        narrow, waited = (
            (here.value - lower, 0) if here.value - lower <= narrow / 2 else (narrow, waited + 1)
        )
        require_finite(here.gradient)
        H = here.curvature()
        if damping:
            H = H.copy()
            H.flat[:: x.size + 1] += damping * (float(np.abs(H.diagonal()).max(initial=0.0)) or 1.0)
        gap = (here.value - lower) / (1 + abs(here.value))
        exact = 1e-12 if not np.isfinite(gap) else max(1e-13, min(1e-6, 1e-3 * gap, 1e-2 * tol))
        z = minimise_quadratic(boxes, H, here.gradient - H @ x, x, exact, deadline)
        d = z - x
        yield Move(z, -float(d @ (here.gradient + H @ d / 2)))
        moved = _search(f, x, d, z, here) or _closing(form, z, here, here.value - lower)
        if moved is None:
            if damping >= 1.0:
                return
            damping = max(10 * damping, DAMPING)
            continue
        x, here, t = moved
        damping = (
            max(4 * damping, DAMPING)
            if t < SHORT
            else damping / CALMER
            if damping > DAMPING
            else 0.0
        )


def _sharpened(
    form: SimplexForm, boxes: Boxes, here: LocalModel, given: Candidate, tol: float, deadline: float
) -> Candidate:
    """The candidate with the bound of the quadratic below f, and what proves it, where that may end the search."""
    x, gap = given.x, (given.upper - given.lower) / (1 + abs(given.upper))
    if here.below is None or given.proves(tol) or not gap <= CLOSE * tol**0.5:
        return given
    B = here.below()
    z = minimise_quadratic(boxes, B, here.gradient - B @ x, x, max(1e-13, 1e-2 * tol), deadline)
    least = form.bound_below(x, z)
    return Candidate(x, given.upper, least, z) if least > given.lower else given


def _rough_start(f: SmoothFunction, boxes: Boxes, deadline: float) -> tuple[FloatArray, float]:
    """The minimiser of the function's own rough model, the centre of the set without one, and the first damping."""
    if f.rough is None:
        return boxes.domain.centre(), 0.0
    rough = f.rough()
    return minimise_quadratic(
        boxes, rough.H, rough.linear, rough.guess, ROUGHLY, deadline
    ), rough.damping


def _closing(
    form: SimplexForm, z: FloatArray, here: LocalModel, gap: float
) -> tuple[FloatArray, LocalModel, float] | None:
    """Return z where values no longer tell it from x, up to rounding, but its bounds are much closer to each other."""
    assert isinstance(form.objective, SmoothFunction)
    there = form.objective.near(z)
    narrow = there.value - form.lower_bound(z, there.value, there.gradient) <= gap / 2
    return (z, there, 1.0) if narrow and there.value - here.value <= 1e-3 * gap else None


def _search(
    f: SmoothFunction, x: FloatArray, d: FloatArray, z: FloatArray, here: LocalModel
) -> tuple[FloatArray, LocalModel, float] | None:
    """Return the end of a step along d that is long enough and falls, and its length; None where there is no such."""
    gradient = float(here.gradient @ d)
    noise = 1e-14 * (abs(here.value) + float(np.abs(here.gradient) @ np.abs(x)))
    if not gradient < 0:
        return None
    t = 1.0
    for _ in range(MOST_TRIALS):
        point = z if t == 1.0 else x + t * d
        there = f.near(point)
        rise = there.value - here.value
        steep = float(there.gradient @ d)
        if rise <= ENOUGH * t * gradient or (
            rise <= noise and abs(steep) <= (1 - 2 * ENOUGH) * -gradient
        ):
            return point, there, t
        # The parabola through both ends, or both gradients where the values do not tell, kept away
        # from the ends.
        bend = rise - t * gradient
        guess = -gradient * t * t / (2 * bend) if np.isfinite(bend) and rise > noise else 0.5 * t
        t = min(max(guess, 0.1 * t), 0.5 * t) if np.isfinite(guess) else 0.1 * t
    return None
