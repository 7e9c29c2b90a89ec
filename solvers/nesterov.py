"""Accelerated projected gradient with backtracking and adaptive restart, over any simple set.

    y  = x + (t - 1) / t+ (x - x_before),     t+ = (1 + sqrt(1 + 4 t^2)) / 2
    x+ = project(y - g(y) / L)

L grows until (g(x+) - g(y))'(x+ - y) <= L ||x+ - y||^2. The momentum starts anew (t = 1) when it
points uphill, (y - x+)'(x+ - x) > 0 (O'Donoghue and Candes, 2015), which makes the method linear
where the function is strongly convex on the face it has found. L shrinks a little each time, so
that it follows the curvature of that face. A quadratic costs one product with its matrix an
iteration: the gradient at y is the same combination of gradients that y is of points.

The scheme "two sequences" is that of Nesterov (2005), with a constant L of the gradient that is
known beforehand, no search and no restart; Algorithms 1 and 2 of Liu et al. (2020), with their sign
and projection corrected, are this method:

    theta_t = project(x_t - g(x_t) / L)
    beta_t  = project(x_0 - sum over s <= t of (s + 1) g(x_s) / (2 L))
    x_t+1   = ((t + 1) theta_t + 2 beta_t) / (t + 3)

    f(theta_t) - f* <= 2 L |x_0 - x*|^2 / ((t + 1)(t + 2))
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

import numpy as np

from klopt.arrays import FloatArray
from klopt.errors import InvalidSettings
from klopt.model.backend import Answer, Backend, Settings, Start
from klopt.model.features import Feature
from klopt.model.forms import Form, SimplexForm
from klopt.model.functions import Linear, Oracle, QuadraticLike, SmoothFunction
from klopt.numerics.candidate import Candidate, require_finite
from klopt.solvers._first_order.loop import (
    Evaluate,
    Steps,
    due,
    evaluator,
    iterate,
    starting_point,
)
from klopt.solvers._native.options import POSITIVE, check_options, one_of

TWO_SEQUENCES = "two sequences"
SCHEMES = ("restarted", TWO_SEQUENCES)
OPTIONS = {"lipschitz": POSITIVE, "scheme": one_of(*SCHEMES)}
GROWTH = 1.5
"""By how much L grows where a step is too long."""
DECAY = 0.95
"""By how much L shrinks after a step."""
FAST_DECAY = 0.3
"""By how much L shrinks where hardly any curvature was met."""
MAX_TRIALS = 100
"""Values of L that one step tries."""
POWER_ITERATIONS = 4
"""Products with H for a first guess of L."""


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
            Feature.APPLIED,
            Feature.BOX,
            Feature.ORDERED,
            Feature.SPECTRAL,
            Feature.PRODUCT,
        }
    )
    honours = frozenset({"tol", "time_limit", "max_iter", "seed", "log", "start"})
    rank = 35
    references = ("nesterov2005",)

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        assert isinstance(form, SimplexForm)
        check_options(self.name, settings.raw, OPTIONS, {})
        lipschitz = _given_lipschitz(form, settings)
        x = starting_point(form.domain, None if start is None else start.x)
        if settings.raw.get("scheme") == TWO_SEQUENCES:
            L = _known_lipschitz(form) if lipschitz is None else lipschitz
            return iterate(_two_sequences(form, x, L), settings)
        return iterate(_restarted(form, x, lipschitz, settings.seed), settings)


BACKEND = Nesterov()


@dataclass(frozen=True, eq=False)
class _Evaluated:
    """A point with its value and gradient."""

    x: FloatArray
    f: float
    g: FloatArray


def _given_lipschitz(form: SimplexForm, settings: Settings) -> float | None:
    """The constant that the user gave, as an option or with the oracle."""
    given: float | None = settings.raw.get("lipschitz")
    if "lipschitz" not in settings.raw and isinstance(form.objective, Oracle):
        given = form.objective.lipschitz
    if given is not None and not (np.isfinite(given) and given > 0):
        raise InvalidSettings(f"the oracle's lipschitz is {given!r}; expected a positive number")
    return given


def _known_lipschitz(form: SimplexForm) -> float:
    """The Lipschitz constant that the function knows of its gradient."""
    if isinstance(form.objective, SmoothFunction) and form.objective.lipschitz is not None:
        return form.objective.lipschitz()
    needs = "the scheme 'two sequences' needs the raw option 'lipschitz'"
    raise InvalidSettings(f"{needs}: the function knows no constant")


def _restarted(form: SimplexForm, start: FloatArray, lipschitz: float | None, seed: int) -> Steps:
    """Yield the iterates of the scheme with backtracking and restarts.

    Parameters
    ----------
    form
        The function and its set.
    start
        Where to start.
    lipschitz
        A first guess of L.
    seed
        For the power iterations that guess it otherwise.
    """
    evaluate = evaluator(form.objective)
    # The gradient of a quadratic is affine: an oracle's is not.
    affine = isinstance(form.objective, QuadraticLike | Linear)
    here = _Evaluated(start, *evaluate(start))
    before = here
    yield Candidate(here.x, here.f, form.lower_bound(here.x, here.f, here.g))

    L = lipschitz or _first_curvature(form, here, seed)
    t = 1.0
    for iteration in count(1):
        t_next = (1 + np.sqrt(1 + 4 * t * t)) / 2
        momentum = (t - 1) / t_next
        y, gradient = _extrapolated(form, here, before, momentum, affine)
        require_finite(gradient)
        # A quadratic whose curvature is at most L falls; of an oracle that has to be seen, at least
        # without momentum.
        ceiling = np.inf if momentum or affine else here.f
        there, L = _backtrack(form, evaluate, _Evaluated(y, ceiling, gradient), L)

        against_momentum = bool((y - there.x) @ (there.x - here.x) > 0)
        uphill = against_momentum or (not affine and there.f > here.f)
        t = 1.0 if uphill else t_next
        at_rest = not momentum and np.array_equal(there.x, here.x)
        before = here
        here = there
        if at_rest or due(iteration) or not np.isfinite(here.f):
            yield Candidate(here.x, here.f, form.lower_bound(here.x, here.f, here.g))
        else:
            yield None
        # Without momentum every further step would be the same.
        if at_rest:
            return


def _extrapolated(
    form: SimplexForm, here: _Evaluated, before: _Evaluated, momentum: float, affine: bool
) -> tuple[FloatArray, FloatArray]:
    """The point y of the momentum and the gradient there.

    Parameters
    ----------
    form
        The function and its set.
    here, before
        The last two iterates.
    momentum
        (t - 1) / t+.
    affine
        Whether the gradient is affine.
    """
    if not momentum:
        return here.x, here.g
    y = here.x + momentum * (here.x - before.x)
    if affine:
        return y, here.g + momentum * (here.g - before.g)
    # An oracle may know nothing outside the set; a quadratic is the same everywhere.
    y = form.domain.project(y)
    return y, form.objective.gradient(y)


def _backtrack(
    form: SimplexForm, evaluate: Evaluate, start: _Evaluated, L: float
) -> tuple[_Evaluated, float]:
    """Return the step from y and the L for the next one: a little below what made this one short.

    Parameters
    ----------
    form, evaluate
        The function and its set.
    start
        y with its gradient, and the value above which no step may end.
    L
        The curvature that is tried first.
    """
    y = start.x
    gradient = start.g
    first_L = L
    for _ in range(MAX_TRIALS):
        x = form.domain.project(y - gradient / L)
        there = _Evaluated(x, *evaluate(x))
        move = x - y
        curvature = float((there.g - gradient) @ move)
        allowed = L * float(move @ move)
        noise = 1e-14 * float(np.abs(gradient) @ np.abs(move))
        falls = there.f <= start.f + noise + 1e-14 * abs(there.f)
        if curvature <= allowed + noise and falls:
            break
        L *= GROWTH
    # The curvature is lost in rounding: neither what passed nor what did not says anything.
    if allowed <= 100 * noise:
        return there, first_L
    return there, L * (FAST_DECAY if curvature < 1e-3 * allowed else DECAY)


def _first_curvature(form: SimplexForm, here: _Evaluated, seed: int) -> float:
    """Return a first guess of L.

    It comes from a few power iterations on H, or from how the gradient changes on the way to a far
    point.
    """
    # The largest eigenvalue of H, from below.
    if isinstance(form.objective, QuadraticLike):
        v = np.random.default_rng(seed).standard_normal(here.x.size)
        for _ in range(POWER_ITERATIONS):
            size = float(np.linalg.norm(v))
            v = form.objective.matvec(v / size) if size else v
        L = float(np.linalg.norm(v))
    else:
        there = form.domain.project(here.x - here.g)
        distance = float(np.linalg.norm(there - here.x))
        L = 0.0
        if distance:
            change = np.linalg.norm(form.objective.gradient(there) - here.g)
            L = float(change) / distance
    floor = 1e-8 * float(np.linalg.norm(here.g)) / max(1.0, float(np.abs(here.x).sum()))
    return max(L if np.isfinite(L) else 1.0, floor, 1e-300)


def _two_sequences(form: SimplexForm, start: FloatArray, L: float) -> Steps:
    """Yield theta_t of the scheme of Nesterov (2005)."""
    evaluate = evaluator(form.objective)
    x = start
    gradient_sum = np.zeros_like(start)
    value, gradient = evaluate(x)
    yield Candidate(x, value, form.lower_bound(x, value, gradient))
    for t in count():
        require_finite(gradient)
        theta = form.domain.project(x - gradient / L)
        gradient_sum = gradient_sum + (t + 1) * gradient
        beta = form.domain.project(start - gradient_sum / (2 * L))
        if due(t + 1):
            here = _Evaluated(theta, *evaluate(theta))
            yield Candidate(theta, here.f, form.lower_bound(theta, here.f, here.g))
        else:
            yield None
        x = ((t + 1) * theta + 2 * beta) / (t + 3)
        gradient = form.objective.gradient(x)
