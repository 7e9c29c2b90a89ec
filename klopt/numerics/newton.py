"""Newton's method for smooth convex functions over boxes, planes, simplices and their products.

    z  = the minimiser over the set of   f + g'(z - x) + (z - x)'H(z - x)/2      g, H at x
    x+ = x + t (z - x)                   t = 1, shorter where f did not fall as the model said

The quadratic is minimised exactly and from x, so that the face is the right one after a step or
two; from then on the method is Newton's on that face, and squares its error. The set is convex:
every x+ lies in it. Where steps have to be cut the model promises too much, and a multiple of the
identity (damping) is added to H until it does not.

The tangent's bound of the optimum is off by the gradient, the value by its square. Where f knows a
quadratic below itself, the minimum of that is a bound as good as the value is; it takes a second
quadratic program, tried near the end.

A step's end is judged by its value or, where values differ by rounding only, by its gradient (Hager
and Zhang, 2005).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.forms import SimplexForm
from klopt.model.functions import LocalModel, SmoothFunction
from klopt.numerics.candidate import Candidate, require_finite
from klopt.numerics.newton_step import BoxProduct, minimise_quadratic

__all__ = ["NewtonMove", "newton_iterates", "newton_moves"]

SUFFICIENT_DECREASE = 1e-4
"""The share of the first-order decrease that a step must keep."""
MAX_TRIALS = 60
"""Step lengths that one line search tries."""
MAX_IDLE_ITERATIONS = 50
"""Iterations in which the bounds must come twice as close; at a kink they never do."""
QUADRATIC_BOUND_WITHIN = 0.3
"""The quadratic below f is asked for its bound once the gap is within so many roots of the
tolerance: the square of that is within it."""
MIN_DAMPING = 1e-3
"""The first damping, as a share of the largest diagonal entry of H."""
SHORT_STEP = 0.5
"""A step cut below this length asks for more damping."""
DAMPING_GROWTH = 4.0
"""By how much a short step raises the damping."""
DAMPING_DECAY = 5.0
"""By how much a step that is not short lowers it."""
FAILED_DAMPING_GROWTH = 10.0
"""By how much a search without success raises it."""
START_TOLERANCE = 1e-2
"""How well the start model is minimised: 1e-4 saved no step in any of 112 instances."""


@dataclass(frozen=True, eq=False)
class NewtonMove:
    """The minimiser of the model at the last candidate, and the decrease predicted there."""

    z: FloatArray
    predicted_decrease: float


@dataclass(frozen=True, eq=False)
class _StepEnd:
    """Where a step ended, f there, and the length of the step."""

    x: FloatArray
    model: LocalModel
    length: float


def newton_iterates(
    form: SimplexForm, start: FloatArray | None, tol: float, deadline: float
) -> Iterator[Candidate]:
    """Yield the iterates; the parameters are those of `newton_moves`."""
    moves = newton_moves(form, start, tol, deadline)
    return (step for step in moves if isinstance(step, Candidate))


def newton_moves(
    form: SimplexForm, start: FloatArray | None, tol: float, deadline: float
) -> Iterator[Candidate | NewtonMove]:
    """Yield the iterates, each followed by the next move before it is made.

    It ends where no step decreases f any more. Other methods take a few moves as inner steps.

    Parameters
    ----------
    form
        A `SmoothFunction` over a set that `klopt.numerics.newton_step.supported` takes.
    start
        A point of the set; by default the minimiser of the function's start model.
    tol
        The relative gap that is wanted: the quadratic programs are solved as exactly as it needs.
    deadline
        When the quadratic programs stop, on the clock of `time.perf_counter`.
    """
    f = form.objective
    assert isinstance(f, SmoothFunction)
    boxes = BoxProduct(form.domain)
    x, damping = _first_point(f, boxes, deadline) if start is None else (start, 0.0)
    here = f.near(x)
    smallest_gap = np.inf
    idle = 0
    while idle <= MAX_IDLE_ITERATIONS:
        candidate = _candidate(form, boxes, x, here, tol, deadline)
        yield candidate
        require_finite(here.gradient)
        gap = here.value - candidate.lower
        if gap <= smallest_gap / 2:
            smallest_gap = gap
            idle = 0
        else:
            idle += 1

        H = _damped(here.curvature(), damping)
        qp_tol = _qp_tolerance(gap / (1 + abs(here.value)), tol)
        z = minimise_quadratic(boxes, H, here.gradient - H @ x, x, qp_tol, deadline)
        d = z - x
        yield NewtonMove(z, -float(d @ (here.gradient + H @ d / 2)))

        end = _line_search(f, x, d, z, here) or _closing_step(form, z, here, gap)
        if end is not None:
            x = end.x
            here = end.model
            damping = _next_damping(damping, end.length)
        elif damping < 1.0:  # the model promises too much
            damping = max(FAILED_DAMPING_GROWTH * damping, MIN_DAMPING)
        else:  # it is nearly a gradient step by now: rounding is all that is left
            return


def _first_point(f: SmoothFunction, boxes: BoxProduct, deadline: float) -> tuple[FloatArray, float]:
    """The minimiser of the start model, or the centre of the set, and the first damping."""
    if f.start_model is None:
        return boxes.domain.centre(), 0.0
    model = f.start_model()
    x = minimise_quadratic(boxes, model.H, model.linear, model.guess, START_TOLERANCE, deadline)
    return x, model.damping


def _candidate(
    form: SimplexForm,
    boxes: BoxProduct,
    x: FloatArray,
    here: LocalModel,
    tol: float,
    deadline: float,
) -> Candidate:
    """The point with the best lower bound that is known there.

    The quadratic below f is asked where the tangent is near enough for that to end the search; its
    minimiser then proves the bound.
    """
    at_point = here.value - float(here.gradient @ x)
    tangent = at_point + form.domain.linear_minimum(here.gradient)
    given = Candidate(x, here.value, max(tangent, here.lower))
    gap = (given.upper - given.lower) / (1 + abs(given.upper))
    if here.below is None or given.proves(tol) or not gap <= QUADRATIC_BOUND_WITHIN * tol**0.5:
        return given

    B = here.below()
    qp_tol = max(1e-13, 1e-2 * tol)
    z = minimise_quadratic(boxes, B, here.gradient - B @ x, x, qp_tol, deadline)
    lower = form.bound_below(x, z)
    return Candidate(x, given.upper, lower, z) if lower > given.lower else given


def _damped(H: FloatArray, damping: float) -> FloatArray:
    """H plus a share of its largest diagonal entry times the identity."""
    if not damping:
        return H
    H = H.copy()
    H.flat[:: len(H) + 1] += damping * (float(np.abs(H.diagonal()).max(initial=0.0)) or 1.0)
    return H


def _qp_tolerance(relative_gap: float, tol: float) -> float:
    """How exactly to minimise the model: early steps need few digits, the last ones many."""
    if not np.isfinite(relative_gap):
        return 1e-12
    return max(1e-13, min(1e-6, 1e-3 * relative_gap, 1e-2 * tol))


def _next_damping(damping: float, length: float) -> float:
    """More after a short step, less after a long one, none once it is small."""
    if length < SHORT_STEP:
        return max(DAMPING_GROWTH * damping, MIN_DAMPING)
    return damping / DAMPING_DECAY if damping > MIN_DAMPING else 0.0


def _closing_step(
    form: SimplexForm, z: FloatArray, here: LocalModel, gap: float
) -> _StepEnd | None:
    """z, where values no longer tell it from x up to rounding but its bounds are much closer."""
    assert isinstance(form.objective, SmoothFunction)
    there = form.objective.near(z)
    gap_there = there.value - form.lower_bound(z, there.value, there.gradient)
    if gap_there <= gap / 2 and there.value - here.value <= 1e-3 * gap:
        return _StepEnd(z, there, 1.0)
    return None


def _line_search(
    f: SmoothFunction, x: FloatArray, d: FloatArray, z: FloatArray, here: LocalModel
) -> _StepEnd | None:
    """The end of a step along d = z - x that decreases f enough, None where there is none."""
    descent = float(here.gradient @ d)
    noise = 1e-14 * (abs(here.value) + float(np.abs(here.gradient) @ np.abs(x)))
    if not descent < 0:  # x minimises the model up to rounding
        return None
    t = 1.0
    for _ in range(MAX_TRIALS):
        point = z if t == 1.0 else x + t * d
        there = f.near(point)
        rise = there.value - here.value
        descent_there = float(there.gradient @ d)
        if rise <= SUFFICIENT_DECREASE * t * descent:
            return _StepEnd(point, there, t)
        # The same test by gradients, which have digits left where values do not.
        flat = abs(descent_there) <= (1 - 2 * SUFFICIENT_DECREASE) * -descent
        if rise <= noise and flat:
            return _StepEnd(point, there, t)
        t = _shorter(t, rise, descent, noise)
    return None


def _shorter(t: float, rise: float, descent: float, noise: float) -> float:
    """The minimum of the parabola through both values, kept away from both ends."""
    excess = rise - t * descent
    # Rounding, or an overflow, tells nothing of the parabola.
    if not np.isfinite(excess) or not rise > noise:
        return 0.5 * t
    guess = -descent * t * t / (2 * excess)
    if not np.isfinite(guess):
        return 0.1 * t
    return min(max(guess, 0.1 * t), 0.5 * t)
