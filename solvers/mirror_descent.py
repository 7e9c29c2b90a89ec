"""Entropic mirror descent over simplices and spectrahedra, its iterates kept as logarithms.

Smooth functions, exponentiated gradients with a line search:

    theta+ = theta - eta g(x),  x+ = mirror(theta+),    g(x+)'(x+ - x) <= g(x)'(x+ - x) / 4,

eta as long as the last inequality holds, so that the function falls along the whole step. Nonsmooth
ones, dual averaging with one of three rules for its steps, and the mean of its tangents as the
lower bound (`klopt.solvers._first_order.dual_averaging`).
"""

from __future__ import annotations

from itertools import count
from typing import NamedTuple

import numpy as np

from klopt.arrays import FloatArray
from klopt.errors import InvalidSettings
from klopt.model.backend import Answer, Backend, Settings, Start
from klopt.model.features import Feature
from klopt.model.forms import Form, SimplexForm
from klopt.numerics.candidate import Candidate, require_finite
from klopt.solvers._first_order.dual_averaging import (
    INTERIOR_SHARE,
    STEP_RULES,
    StepRule,
    dual_averaging,
)
from klopt.solvers._first_order.loop import Steps, due, evaluator, iterate, starting_point
from klopt.solvers._native.options import POSITIVE, check_options, one_of

STEP_GROWTH = 1.3
"""By how much the next step may be longer."""
STEP_SHRINKAGE = 0.5
"""By how much a step that is too long is cut."""
MAX_TRIALS = 100
"""Step lengths that one line search tries."""
OPTIONS = {"step": POSITIVE, "steps": one_of(*STEP_RULES), "lipschitz": POSITIVE}


class MirrorDescent(Backend):
    """Entropic mirror descent, over simplices and spectrahedra.

    Raw options: `steps`, "adaptive" (default), "horizon" or "anytime"; `lipschitz`, a bound of the
    gradients for the last two; `step`, the first step length of the line search that smooth
    functions get with "adaptive".
    """

    name = "mirror_descent"
    offers = frozenset(
        {
            Feature.SIMPLEX,
            Feature.LINEAR,
            Feature.QUADRATIC,
            Feature.SMOOTH,
            Feature.NONSMOOTH,
            Feature.MARGIN,
            Feature.CURVED,
            Feature.SPECTRAL,
            Feature.PRODUCT,
        }
    )
    honours = frozenset({"tol", "time_limit", "max_iter", "seed", "log", "start"})
    rank = 40
    references = ("beck2003",)

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        assert isinstance(form, SimplexForm)
        check_options(self.name, settings.raw, OPTIONS, {})
        options = _options(settings)
        x = starting_point(form.domain, None if start is None else start.x)
        # The line search compares gradients, which a kink makes meaningless.
        smooth = form.objective.feature is not Feature.NONSMOOTH
        if options.rule == "adaptive" and smooth:
            return iterate(_line_search(form, x, options.step), settings)
        rule = StepRule(options.rule, options.lipschitz, settings.max_iter)
        return iterate(dual_averaging(form, x, rule, settings.max_iter), settings)


BACKEND = MirrorDescent()


class _Options(NamedTuple):
    """The raw options of a run."""

    rule: str
    step: float | None
    lipschitz: float | None


def _options(settings: Settings) -> _Options:
    raw = settings.raw
    rule = raw.get("steps", "adaptive")
    if rule == "horizon" and settings.max_iter is None:
        raise InvalidSettings(
            "steps of the kind 'horizon' need max_iter, the number of steps fixed in advance"
        )
    # The line search needs no constant, the other rules no first step.
    unused = "lipschitz" if rule == "adaptive" else "step"
    if unused in raw:
        raise InvalidSettings(
            f"raw option {unused!r} means nothing to steps of the kind {rule!r}; leave it out"
        )
    return _Options(rule, raw.get("step"), raw.get("lipschitz"))


def _line_search(form: SimplexForm, x: FloatArray, first_step: float | None) -> Steps:
    domain = form.domain
    evaluate = evaluator(form.objective)
    f, g = evaluate(x)
    yield Candidate(x, f, form.lower_bound(x, f, g))

    x = (1 - INTERIOR_SHARE) * x + INTERIOR_SHARE * domain.centre()
    theta = domain.mirror_dual(x)
    f, g = evaluate(x)
    eta = first_step or 1.0 / max(domain.dual_norm(g), 1e-300)
    for iteration in count(1):
        for _ in range(MAX_TRIALS):
            there = domain.mirror(theta - eta * g)
            f_there, g_there = evaluate(there)
            move = there - x
            rounding = 1e-15 * (abs(f) + float(np.abs(g) @ np.abs(move)))
            if g_there @ move <= (g @ move) / 4 + rounding:
                break
            eta *= STEP_SHRINKAGE
        require_finite(g_there)
        theta = theta - eta * g
        # Below that, rounding decides which steps pass.
        if -(g @ move) > 100 * rounding:
            eta *= STEP_GROWTH
        x = there
        f = f_there
        g = g_there

        at_rest = not move.any()
        if at_rest or due(iteration) or not np.isfinite(f):
            yield Candidate(x, f, form.lower_bound(x, f, g))
        else:
            yield None
        if at_rest:
            return
