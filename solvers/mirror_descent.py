"""Entropic mirror descent over simplices and spectrahedra, its iterates kept as logarithms.

Smooth functions, exponentiated gradients with a line search:

    theta+ = theta - eta g(x),  x+ = mirror(theta+),    eta as long as  g(x+)'(x+ - x) <= g(x)'(x+ - x) / 4,

so that the function falls along the whole step. Nonsmooth ones, dual averaging with one of three
rules for its steps, and the mean of its tangents as the lower bound
(`klopt.solvers._first_order.dual_averaging`).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

import numpy as np

from klopt.arrays import FloatArray
from klopt.errors import InvalidSettings
from klopt.model.backend import Answer, Backend, Settings, Start
from klopt.model.cones import Feature
from klopt.model.forms import Form, SimplexForm
from klopt.solvers._first_order.dual_averaging import INTERIOR, KINDS, Lengths, dual_averaging
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

GROWTH, SHRINK = 1.3, 0.5
MOST_TRIALS = 100
OPTIONS = {"step": POSITIVE, "steps": one_of(*KINDS), "lipschitz": POSITIVE}


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
        }
        | {Feature.CURVED, Feature.SPECTRAL}
    )
    honours = frozenset({"tol", "time_limit", "max_iter", "seed", "log", "start"})
    rank = 40
    references = ("beck2003",)

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        assert isinstance(form, SimplexForm)
        check_options(self.name, settings.raw, OPTIONS, {})
        kind, step, lipschitz = _options(settings)
        x = starting_point(form.domain, None if start is None else start.x)
        if kind == "adaptive" and form.objective.feature is not Feature.NONSMOOTH:
            return iterate(_line_search(form, x, step), settings)
        lengths = Lengths(kind, lipschitz, settings.max_iter)
        return iterate(dual_averaging(form, x, lengths, settings.max_iter), settings)


BACKEND = MirrorDescent()


def _options(settings: Settings) -> tuple[str, float | None, float | None]:
    raw: Mapping[str, Any] = settings.raw
    kind = raw.get("steps", "adaptive")
    if kind == "horizon" and settings.max_iter is None:
        raise InvalidSettings(
            "steps of the kind 'horizon' need max_iter, the number of steps fixed in advance"
        )
    for name, fits in (("step", kind == "adaptive"), ("lipschitz", kind != "adaptive")):
        if name in raw and not fits:
            raise InvalidSettings(
                f"raw option {name!r} means nothing to steps of the kind {kind!r}; leave it out"
            )
    return kind, raw.get("step"), raw.get("lipschitz")


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
        eta *= (
            GROWTH if -(g @ move) > 100 * rounding else 1.0
        )  # below that, noise decides what passes
        x, f, g = there, f_there, g_there
        still = not move.any()
        yield (
            Candidate(x, f, form.lower_bound(x, f, g))
            if still or due(iteration) or not np.isfinite(f)
            else None
        )
        if still:
            return
