"""Closed forms and linear minimisers: the answer by its formula.

    ExplicitForm   x, y = rule()
    SimplexForm    minimise c'x over a simple set: x = its linear minimiser

The minimiser is a vertex, found by sorting, or an eigenvector of the smallest eigenvalue.
"""

from __future__ import annotations

import time

import numpy as np

from klopt.model.backend import Answer, Backend, Settings, Start, Step, Stop, check_raw
from klopt.model.features import Feature
from klopt.model.forms import ExplicitForm, Form, SimplexForm


class Explicit(Backend):
    """Closed forms and linear minimisers.

    Nothing iterates: a limit has nothing to cut short, and a process to enforce it would outlast
    the formula.
    """

    name = "explicit"
    offers = frozenset(
        {
            Feature.EXPLICIT,
            Feature.SIMPLEX,
            Feature.LINEAR,
            Feature.BOX,
            Feature.ORDERED,
            Feature.SPECTRAL,
            Feature.PRODUCT,
        }
    )
    honours = frozenset({"tol", "time_limit", "max_iter", "seed", "log"})
    proves = frozenset({"dual"})
    rank = 0

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        check_raw(self.name, settings.raw, (), {})
        if isinstance(form, ExplicitForm):
            return _closed_form(form)
        assert isinstance(form, SimplexForm)
        return _linear_minimiser(form)


BACKEND = Explicit()


def _closed_form(form: ExplicitForm) -> Answer:
    began = time.perf_counter()
    x, y = form.rule()
    seconds = time.perf_counter() - began
    return Answer(Stop.OPTIMAL, x=x, y=y, iterations=0, seconds=seconds, native="closed form")


def _linear_minimiser(form: SimplexForm) -> Answer:
    began = time.perf_counter()
    c = form.objective.gradient(form.domain.centre())
    minimum = form.domain.linear_minimum(c)
    if minimum == -np.inf:
        return Answer(Stop.UNBOUNDED, iterations=0, native="c'x is unbounded below over the set")
    x = form.domain.linear_minimiser(c)
    seconds = time.perf_counter() - began
    # The value at x is the minimum up to rounding, which must not make the bounds cross.
    end = Step(0, seconds, minimum, max(minimum, form.objective.value(x)))
    return Answer(
        Stop.OPTIMAL,
        x=x,
        iterations=0,
        seconds=seconds,
        native="linear minimiser",
        history=(end,),
    )
