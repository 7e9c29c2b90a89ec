"""Entropic mirror descent over simplices and spectrahedra, its iterates kept as logarithms.

Smooth functions, exponentiated gradients with a line search:

    theta+ = theta - eta g(x),  x+ = mirror(theta+),    eta as long as  g(x+)'(x+ - x) <= g(x)'(x+ - x) / 4,

so that the function falls along the whole step. Nonsmooth ones, dual averaging (Nesterov, 2009) with the step of
AdaHedge (de Rooij, van Erven, Grunwald and Koolen, 2014), which needs no Lipschitz constant:

    x_t = mirror(-eta_t (g_1 + .. + g_(t-1))),    eta_t = depth / sum_s g_s'(x_s - x_(s+1)) / 2.

Each tangent is a lower bound, so is their mean, and its least value over the set meets the values at the mean of the
x_t as 1 / sqrt(t).
"""

from __future__ import annotations

from itertools import count
from types import MappingProxyType

import numpy as np

from klopt.arrays import FloatArray
from klopt.backend import Answer, Backend, Settings, Start, check_raw
from klopt.cones import Feature
from klopt.errors import InvalidSettings
from klopt.forms import Form, SimplexForm
from klopt.solvers._iterate import Candidate, Steps, due, evaluator, iterate, starting_point

GROWTH, SHRINK = 1.3, 0.5
MOST_TRIALS = 100
FAR = 1e8  # the first step of dual averaging goes to the best vertex: all the way, in effect
INTERIOR = 1e-6  # how much of the centre a start is mixed with: from a face there is no way back


class MirrorDescent(Backend):
    """Raw option: `step`, the first step length of the line search."""

    name = "mirror_descent"
    offers = frozenset(
        {Feature.SIMPLEX, Feature.LINEAR, Feature.QUADRATIC, Feature.SMOOTH, Feature.NONSMOOTH, Feature.MARGIN}
        | {Feature.SPECTRAL}
    )
    honours = frozenset({"tol", "time_limit", "max_iter", "seed", "log", "start"})
    rank = 40
    exempt = MappingProxyType(
        {"truth_simplex_nonsmooth": "at a kink the proof is a mean of many tangents, and a point carries only one"}
    )

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
        if not move.any():
            return
        theta = theta - eta * g
        x, f, g = there, f_there, g_there
        eta *= GROWTH
        yield Candidate(x, f, form.lower_bound(x, f, g)) if due(iteration) or not np.isfinite(f) else None


def _dual_averaging(form: SimplexForm, x: FloatArray) -> Steps:
    domain, evaluate = form.domain, evaluator(form.objective)
    f, g = evaluate(x)
    yield Candidate(x, f, -np.inf, also=form.lower_bound(x, f, g), enough=True)
    x = (1 - INTERIOR) * x + INTERIOR * domain.centre()
    origin = domain.mirror_dual(x)
    mean, slope, height = np.zeros_like(x), np.zeros_like(x), 0.0
    depth, regret = max(domain.mirror_depth, 1e-300), 0.0
    for t in count(1):
        f, g = evaluate(x)
        mean += (x - mean) / t
        slope += (g - slope) / t
        height += (f - float(g @ x) - height) / t
        eta = depth / regret if regret > 0 else FAR / max(domain.dual_norm(g), 1e-300)
        there = domain.mirror(origin - eta * t * slope)
        regret += max(float(g @ (x - there)) / 2, 0.0)
        if due(t) or not np.isfinite(f):
            bound = max(height + domain.linear_minimum(slope), form.lower_bound(x, f, g))
            f_mean = form.objective.value(mean)
            point, value = (mean, f_mean) if f_mean < f else (x, f)
            yield Candidate(point.copy(), value, -np.inf, also=bound, enough=True)
        else:
            yield None
        x = there
