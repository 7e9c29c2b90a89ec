"""Convex quadratics over simple sets by projected gradient.

This file passes `klopt check-backend` as it stands. Replace the method by yours.

Minimise f(x) = x'Hx/2 + linear'x over x in D by

    x <- project(x - grad f(x) / L),    L = the largest eigenvalue of H,

until the gap f(x) - min over z in D of f(x) + grad f(x)'(z - x) is small: the optimum lies between
the two.
"""

from __future__ import annotations

import time

import numpy as np

from klopt import Answer, Backend, Feature, Settings, SimplexForm, Start, Stop
from klopt.model.backend import check_raw
from klopt.model.forms import Form
from klopt.model.functions import QuadraticLike

__all__ = ["BACKEND", "ProjectedGradient"]

MAX_ITER = 100_000


class ProjectedGradient(Backend):
    """The simplest method that can be certified."""

    name, rank = "projected_gradient", 45
    offers = frozenset(
        {Feature.SIMPLEX, Feature.QUADRATIC, Feature.BOX}
    )  # quadratics over the simplex and boxes
    honours = frozenset(
        {"tol", "time_limit", "max_iter", "seed", "start"}
    )  # settings that it keeps by itself

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        """Return the point where the gap is a tenth of what is asked for, or the last one before a limit."""
        check_raw(self.name, settings.raw, known=(), reserved={})
        # klopt hands over only what `offers` covers
        assert isinstance(form, SimplexForm)
        assert isinstance(form.objective, QuadraticLike)
        f, domain = form.objective, form.domain
        began = time.perf_counter()
        deadline = began + (settings.time_limit or np.inf)
        everything = np.arange(f.size)
        curvature = float(np.linalg.norm(f.block(everything, everything), 2)) or 1.0
        x = domain.project(domain.centre() if start is None else start.x)
        iterations = 0
        while True:
            value, gradient = f.value(x), f.gradient(x)
            gap = value - form.lower_bound(x, value, gradient)
            if gap <= settings.tol / 10 * (1 + abs(value)):
                stop = Stop.OPTIMAL
            elif iterations >= (settings.max_iter or MAX_ITER):
                stop = Stop.ITERATION_LIMIT
            elif time.perf_counter() >= deadline:
                stop = Stop.TIME_LIMIT
            else:
                x = domain.project(x - gradient / curvature)
                iterations += 1
                continue
            return Answer(stop, x, iterations=iterations, seconds=time.perf_counter() - began)


BACKEND = ProjectedGradient()
