"""Accelerated projected gradient with backtracking and adaptive restart, over any simple set.

    y  = x + (t - 1) / t+ (x - x_before),     t+ = (1 + sqrt(1 + 4 t^2)) / 2
    x+ = project(y - g(y) / L)                L grows until  (g(x+) - g(y))'(x+ - y) <= L ||x+ - y||^2

The momentum starts anew (t = 1) when it points uphill, (y - x+)'(x+ - x) > 0 (O'Donoghue and
Candes, 2015), which makes the method linear where the function is strongly convex on the face it
has found. L shrinks a little each time, so that it follows the curvature of that face. A quadratic
costs one product with its matrix an iteration: the gradient at y is the same combination of
gradients that y is of points.

The scheme "two sequences" is Nesterov's of 2005, with a constant L of the gradient that is known
beforehand, no search and no restart; Algorithms 1 and 2 of Liu, Huang, Gong, Yang, Li, Learning
data-adaptive non-parametric kernels, 2020, with their sign and projection corrected, are this
method:

    theta_t = project(x_t - g(x_t) / L)                        f(theta_t) - f* <= 2 L |x_0 - x*|^2 / ((t + 1)(t + 2))
    beta_t  = project(x_0 - sum over s <= t of (s + 1) g(x_s) / (2 L))
    x_t+1   = ((t + 1) theta_t + 2 beta_t) / (t + 3)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

import numpy as np

from klopt.arrays import FloatArray
from klopt.errors import InvalidSettings
from klopt.model.backend import Answer, Backend, Settings, Start
from klopt.model.cones import Feature
from klopt.model.forms import Form, SimplexForm
from klopt.model.functions import Linear, Oracle, QuadraticLike
from klopt.model.smooth_functions import SmoothFunction
from klopt.solvers._first_order.loop import (
    Candidate,
    Steps,
    due,
    evaluator,
    iterate,
    require_finite,
    starting_point,
)
from klopt.solvers._native.options import POSITIVE, check_options, one_of

TWO_SEQUENCES = "two sequences"
SCHEMES = "restarted", TWO_SEQUENCES
GROWTH, DECAY, FAST_DECAY = 1.5, 0.95, 0.3
MOST_TRIALS = 100


class Nesterov(Backend):
    """Accelerated projected gradient, for smooth functions over any simple set.

    Raw options: `lipschitz`, a first guess of how fast the gradient changes in the units of the
    form; `scheme`, "restarted" or "two sequences", for which `lipschitz` must be right and is by
    default what the function knows.
    """

    name = "nesterov"
    offers = frozenset(
        {
            Feature.SIMPLEX,
            Feature.LINEAR,
            Feature.QUADRATIC,
            Feature.SMOOTH,
            Feature.CURVED,
            Feature.MARGIN,
        }
        | {Feature.APPLIED, Feature.BOX, Feature.ORDERED, Feature.SPECTRAL}
    )
    honours = frozenset({"tol", "time_limit", "max_iter", "seed", "log", "start"})
    rank = 35
    references = ("nesterov2005",)

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        assert isinstance(form, SimplexForm)
        check_options(
            self.name, settings.raw, {"lipschitz": POSITIVE, "scheme": one_of(*SCHEMES)}, {}
        )
        guess = settings.raw.get(
            "lipschitz", form.objective.lipschitz if isinstance(form.objective, Oracle) else None
        )
        if guess is not None and not (np.isfinite(guess) and guess > 0):
            raise InvalidSettings(
                f"the oracle's lipschitz is {guess!r}; expected a positive number"
            )
        x = starting_point(form.domain, None if start is None else start.x)
        if settings.raw.get("scheme") == TWO_SEQUENCES:
            return iterate(
                _two_sequences(form, x, _constant(form) if guess is None else guess), settings
            )
        return iterate(_steps(form, x, guess, settings.seed), settings)


BACKEND = Nesterov()


@dataclass(frozen=True, eq=False)
class _At:
    """A point with its value and gradient."""

    x: FloatArray
    f: float
    g: FloatArray


def _steps(form: SimplexForm, start: FloatArray, lipschitz: float | None, seed: int) -> Steps:
    evaluate = evaluator(form.objective)
    affine = isinstance(form.objective, QuadraticLike | Linear)
    here = before = _At(start, *evaluate(start))
    yield Candidate(here.x, here.f, form.lower_bound(here.x, here.f, here.g))
    L = lipschitz or _curvature(form, here, seed)
    t = 1.0
    for iteration in count(1):
        t_next = (1 + np.sqrt(1 + 4 * t * t)) / 2
        beta = (t - 1) / t_next
        y, gradient = here.x, here.g
        if beta:
            y = here.x + beta * (here.x - before.x)
            # An oracle may know nothing outside the set; a quadratic is the same everywhere.
            y = y if affine else form.domain.project(y)
            gradient = here.g + beta * (here.g - before.g) if affine else form.objective.gradient(y)
        require_finite(gradient)
        # A quadratic that bends no more than L falls; of an oracle that has to be seen, at least
        # without momentum.
        ceiling = np.inf if beta or affine else here.f
        there, L = _backtrack(form, evaluate, y, gradient, L, ceiling)
        uphill = (y - there.x) @ (there.x - here.x) > 0 or (not affine and there.f > here.f)
        t = 1.0 if uphill else t_next
        still = not beta and np.array_equal(there.x, here.x)
        before, here = here, there
        look = still or due(iteration) or not np.isfinite(here.f)
        yield Candidate(here.x, here.f, form.lower_bound(here.x, here.f, here.g)) if look else None
        if still:
            return


def _two_sequences(form: SimplexForm, start: FloatArray, L: float) -> Steps:
    evaluate = evaluator(form.objective)
    x, gathered = start, np.zeros_like(start)
    value, gradient = evaluate(x)
    yield Candidate(x, value, form.lower_bound(x, value, gradient))
    for t in count():
        require_finite(gradient)
        theta = form.domain.project(x - gradient / L)
        gathered = gathered + (t + 1) * gradient
        beta = form.domain.project(start - gathered / (2 * L))
        if due(t + 1):
            here = _At(theta, *evaluate(theta))
            yield Candidate(theta, here.f, form.lower_bound(theta, here.f, here.g))
        else:
            yield None
        x = ((t + 1) * theta + 2 * beta) / (t + 3)
        gradient = form.objective.gradient(x)


def _constant(form: SimplexForm) -> float:
    """The Lipschitz constant that the function knows of its gradient."""
    if isinstance(form.objective, SmoothFunction) and form.objective.lipschitz is not None:
        return form.objective.lipschitz()
    raise InvalidSettings(
        "the scheme 'two sequences' needs the raw option 'lipschitz': the function knows no constant"
    )


def _backtrack(
    form: SimplexForm,
    evaluate: Callable[[FloatArray], tuple[float, FloatArray]],
    y: FloatArray,
    gradient: FloatArray,
    L: float,
    ceiling: float,
) -> tuple[_At, float]:
    """Return the step from y and the L for the next one: a little below what made this one short enough."""
    given = L
    for _ in range(MOST_TRIALS):
        x = form.domain.project(y - gradient / L)
        there = _At(x, *evaluate(x))
        move = x - y
        bend, room = float((there.g - gradient) @ move), L * float(move @ move)
        noise = 1e-14 * float(np.abs(gradient) @ np.abs(move))
        if bend <= room + noise and there.f <= ceiling + noise + 1e-14 * abs(there.f):
            break
        L *= GROWTH
    if (
        room <= 100 * noise
    ):  # the curvature is lost: neither what passed nor what did not says anything
        return there, given
    return there, L * (FAST_DECAY if bend < 1e-3 * room else DECAY)


def _curvature(form: SimplexForm, here: _At, seed: int) -> float:
    """Return a first guess of L: a few power iterations on H, or how the gradient changes on the way to a far point."""
    if isinstance(form.objective, QuadraticLike):
        v = np.random.default_rng(seed).standard_normal(here.x.size)
        for _ in range(4):
            size = float(np.linalg.norm(v))
            v = form.objective.matvec(v / size) if size else v
        L = float(np.linalg.norm(v))
    else:
        there = form.domain.project(here.x - here.g)
        move = float(np.linalg.norm(there - here.x))
        L = float(np.linalg.norm(form.objective.gradient(there) - here.g)) / move if move else 0.0
    floor = 1e-8 * float(np.linalg.norm(here.g)) / max(1.0, float(np.abs(here.x).sum()))
    return max(L if np.isfinite(L) else 1.0, floor, 1e-300)
