"""Entropic mirror descent over simplices and spectrahedra, its iterates kept as logarithms.

Smooth functions, exponentiated gradients with a line search:

    theta+ = theta - eta g(x),  x+ = mirror(theta+),    eta as long as  g(x+)'(x+ - x) <= g(x)'(x+ - x) / 4,

so that the function falls along the whole step. Nonsmooth ones, dual averaging (Nesterov, 2009) with the step of
AdaHedge (de Rooij, van Erven, Grunwald and Koolen, 2014), which needs no Lipschitz constant:

    x_t = mirror(-eta_t (g_1 + .. + g_(t-1))),    eta_t = depth / sum_s g_s'(x_s - x_(s+1)) / 2.

Each tangent is a lower bound, so is their mean, and its least value over the set meets the values at the mean of the
x_t as 1 / sqrt(t). The x_t go with the answer as cuts, so that klopt can take the mean of the tangents itself; there
is room for so many, then a new mean begins.
"""

from __future__ import annotations

from itertools import count

import numpy as np

from klopt.arrays import FloatArray
from klopt.backend import Answer, Backend, Settings, Start, check_raw
from klopt.cones import Feature
from klopt.errors import InvalidSettings
from klopt.forms import Form, SimplexForm
from klopt.solvers._iterate import Candidate, Steps, due, evaluator, iterate, require_finite, starting_point

GROWTH, SHRINK = 1.3, 0.5
MOST_TRIALS = 100
FAR = 1e8  # the first step of dual averaging goes to the best vertex: all the way, in effect
LOOK = 100  # iterations between two looks at the cuts, which are copied each time
MOST_CUTS = 500_000  # entries of all cuts together
INTERIOR = 1e-6  # how much of the centre a start is mixed with: from a face there is no way back


class MirrorDescent(Backend):
    """Raw option: `step`, the first step length of the line search."""

    name = "mirror_descent"
    offers = frozenset(
        {Feature.SIMPLEX, Feature.LINEAR, Feature.QUADRATIC, Feature.SMOOTH, Feature.NONSMOOTH, Feature.MARGIN}
        | {Feature.CURVED, Feature.SPECTRAL}
    )
    honours = frozenset({"tol", "time_limit", "max_iter", "seed", "log", "start"})
    rank = 40

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        assert isinstance(form, SimplexForm)
        check_raw(self.name, settings.raw, ("step",), {})
        step = settings.raw.get("step")
        if step is not None and not (np.isfinite(step) and step > 0):
            raise InvalidSettings(f"raw option 'step' is {step!r}; expected a positive number")
        x = starting_point(form.domain, None if start is None else start.x)
        if form.objective.feature is Feature.NONSMOOTH:
            return iterate(_dual_averaging(form, x), settings)
        return iterate(_line_search(form, x, step), settings)


BACKEND = MirrorDescent()


def _line_search(form: SimplexForm, x: FloatArray, step: float | None) -> Steps:
    domain, evaluate = form.domain, evaluator(form.objective)
    f, g = evaluate(x)
    yield Candidate(x, f, form.lower_bound(x, f, g))
    x = (1 - INTERIOR) * x + INTERIOR * domain.centre()
    theta = domain.mirror_dual(x)
    f, g = evaluate(x)
    eta = step or 1.0 / max(domain.dual_norm(g), 1e-300)
    for iteration in count(1):
        for _ in range(MOST_TRIALS):
            there = domain.mirror(theta - eta * g)
            f_there, g_there = evaluate(there)
            move = there - x
            rounding = 1e-15 * (abs(f) + float(np.abs(g) @ np.abs(move)))
            if g_there @ move <= (g @ move) / 4 + rounding:
                break
            eta *= SHRINK
        require_finite(g_there)
        theta = theta - eta * g
        eta *= GROWTH if -(g @ move) > 100 * rounding else 1.0  # below that, noise decides what passes
        x, f, g = there, f_there, g_there
        still = not move.any()
        yield Candidate(x, f, form.lower_bound(x, f, g)) if still or due(iteration) or not np.isfinite(f) else None
        if still:
            return


def _dual_averaging(form: SimplexForm, x: FloatArray) -> Steps:
    domain, evaluate = form.domain, evaluator(form.objective)
    f, g = evaluate(x)
    low, point = f, x
    yield Candidate(x, f, form.lower_bound(x, f, g))
    x = (1 - INTERIOR) * x + INTERIOR * domain.centre()
    origin = domain.mirror_dual(x)
    total, depth, regret = np.zeros_like(x), max(domain.mirror_depth, 1e-300), 0.0
    cuts, best = _Cuts(x.size), _Cuts(x.size)
    for t in count(1):
        f, g = evaluate(x)
        total += g
        if cuts.full:
            cuts = _Cuts(x.size)
        cuts.add(x, f, g)
        eta = depth / regret if regret > 0 else FAR / max(domain.dual_norm(g), 1e-300)
        there = domain.mirror(origin - eta * total)
        regret += max(float(g @ (x - there)) / 2, 0.0)
        if t < 10 or t % LOOK == 0 or cuts.full or not np.isfinite(f):
            best = max(best, cuts, key=lambda kept: kept.bound(form))
            for value, candidate in ((f, x), (form.objective.value(cuts.mean), cuts.mean)):
                low, point = (value, candidate) if not value >= low else (low, point)
            yield Candidate(point, low, max(best.bound(form), form.lower_bound(point, low)), best.rows())
        else:
            yield None
        x = there


class _Cuts:
    """Points with the mean of their tangents, height + slope'z."""

    def __init__(self, size: int) -> None:
        self.points: list[FloatArray] = []
        self.most = max(MOST_CUTS // (size + 1), 100)
        self.mean, self.slope, self.height = np.zeros(size), np.zeros(size), 0.0

    @property
    def full(self) -> bool:
        return len(self.points) >= self.most

    def add(self, x: FloatArray, f: float, g: FloatArray) -> None:
        self.points.append(x)
        t = len(self.points)
        self.mean = self.mean + (x - self.mean) / t
        self.slope = self.slope + (g - self.slope) / t
        self.height += (f - float(g @ x) - self.height) / t

    def bound(self, form: SimplexForm) -> float:
        return self.height + form.domain.linear_minimum(self.slope) if self.points else -np.inf

    def rows(self) -> FloatArray:
        """The points as klopt takes them: a weight, then the entries, end to end."""
        points = np.stack(self.points)
        return np.hstack([np.ones((len(points), 1)), points]).ravel()
