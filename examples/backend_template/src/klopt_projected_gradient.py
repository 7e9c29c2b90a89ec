"""Convex quadratics over simple sets by projected gradient.

This file passes `klopt check-backend` as it is. Replace the method by yours.

Minimise f(x) = x'Hx/2 + linear'x over x in D by

    x <- project(x - grad f(x) / L),    L = the largest eigenvalue of H,

until the gap f(x) - min over z in D of f(x) + grad f(x)'(z - x) is small: it bounds the error.
"""

from __future__ import annotations

import time

import numpy as np

from klopt.model.backend import Answer, Backend, Settings, Stop, check_raw
from klopt.model.features import Feature
from klopt.model.forms import Form, SimplexForm, Start
from klopt.model.functions import QuadraticLike

__all__ = ["BACKEND", "ProjectedGradient"]

MAX_ITERATIONS = 100_000
"""The last iteration where the user sets no limit."""
GAP_FRACTION = 0.1
"""It stops at this fraction of the relative gap that is asked for."""


class ProjectedGradient(Backend):
    """The simplest method that can be certified."""

    name = "projected_gradient"
    # 10 exact, 20 interior point, 30 first order, 40 a method of your own
    rank = 45
    # quadratics over the simplex and boxes
    offers = frozenset({Feature.SIMPLEX, Feature.QUADRATIC, Feature.BOX})
    # the settings that it keeps by itself
    honours = frozenset({"tol", "time_limit", "max_iter", "seed", "start"})
    # what to cite: keys of klopt's references.bib, or BibTeX entries
    references = ()

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        """Return the point where the gap is small enough, or the last one before a limit."""
        check_raw(self.name, settings.raw, known=(), reserved={})
        assert isinstance(form, SimplexForm)  # klopt hands over only what `offers` covers
        assert isinstance(form.objective, QuadraticLike)
        f = form.objective
        domain = form.domain
        began = time.perf_counter()
        deadline = began + (settings.time_limit or np.inf)
        max_iterations = settings.max_iter or MAX_ITERATIONS

        variables = np.arange(f.size)
        largest_eigenvalue = float(np.linalg.norm(f.block(variables, variables), 2)) or 1.0
        x = domain.project(domain.centre() if start is None else start.x)
        iterations = 0
        while True:
            value = f.value(x)
            gradient = f.gradient(x)
            gap = value - form.lower_bound(x, value, gradient)
            if gap <= GAP_FRACTION * settings.tol * (1 + abs(value)):
                stop = Stop.OPTIMAL
                break
            if iterations >= max_iterations:
                stop = Stop.ITERATION_LIMIT
                break
            if time.perf_counter() >= deadline:
                stop = Stop.TIME_LIMIT
                break
            x = domain.project(x - gradient / largest_eigenvalue)
            iterations += 1
        return Answer(stop, x, iterations=iterations, seconds=time.perf_counter() - began)


BACKEND = ProjectedGradient()
