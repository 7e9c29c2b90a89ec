"""Cutting planes with a level: convex functions with kinks, by value and subgradient, over boxes, planes and simplices.

Each point x_j that was looked at gives a cut, f >= f_j + g_j'(z - x_j). From the best point c the
next one is

    z = the minimiser over the set of   max_j f_j + g_j'(z - x_j)  +  |z - c|^2 / (2t)

and its multipliers, one a cut, make of the cuts one lower bound: the least value over the set of
the mean of the cuts with these weights. They go with the answer, so that klopt can take the mean
itself. t is as long as makes the model promise a fixed share of the gap, the level of Lemarechal,
Nemirovskii and Nesterov (1995) by way of the proximal term: with t infinite, Kelley's method, z
leaps from vertex to vertex; with a short t it creeps.
"""

from __future__ import annotations

import time

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.backend import Answer, Backend, Settings, Start, Stop
from klopt.model.cones import Feature
from klopt.model.forms import Form, SimplexForm
from klopt.numerics.newton_step import supported
from klopt.solvers._first_order.bundle import Bundle
from klopt.solvers._first_order.loop import (
    Candidate,
    Steps,
    iterate,
    require_finite,
    starting_point,
)
from klopt.solvers._native.options import between, check_options

LEVEL = 0.5
ENOUGH = 0.1  # the share of the promised fall that moves the centre
LONGEST = 4.0  # the most by which t changes at once


class CuttingPlanes(Backend):
    """Cutting planes with a level, for convex functions with kinks.

    Raw option: `level`, the share of the gap that a step aims at, between 0 and 1.
    """

    name = "cutting_planes"
    offers = frozenset({Feature.SIMPLEX, Feature.NONSMOOTH, Feature.BOX})
    honours = frozenset({"tol", "time_limit", "max_iter", "threads", "seed", "log", "start"})
    rank = 30
    references = ("lemarechal1995",)

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        assert isinstance(form, SimplexForm)
        check_options(self.name, settings.raw, {"level": between(0, 1)}, {})
        level = settings.raw.get("level", LEVEL)
        if not supported(form.domain):
            return Answer(
                Stop.REJECTED, native="only boxes, planes, simplices and products of them"
            )
        x = starting_point(form.domain, None if start is None else start.x)
        deadline = time.perf_counter() + (
            np.inf if settings.time_limit is None else settings.time_limit
        )
        return iterate(_steps(form, x, level, deadline), settings)


BACKEND = CuttingPlanes()


def _steps(form: SimplexForm, centre: FloatArray, level: float, deadline: float) -> Steps:
    f, domain = form.objective, form.domain
    best, gradient = f.value(centre), f.gradient(centre)
    lower, proof = form.lower_bound(centre, best, gradient), np.concatenate([[1.0], centre])
    yield Candidate(centre, best, lower, proof)
    require_finite(gradient)
    bundle = Bundle(domain, centre, best, gradient)
    way = (
        float(np.linalg.norm(domain.linear_minimiser(gradient) - centre))
        if np.isfinite(lower)
        else 1.0
    )
    t = way / (float(np.linalg.norm(gradient)) or 1.0)
    while True:
        step = bundle.step(centre, best, t, deadline)
        bound = bundle.lower_bound(step.weights)
        if bound > lower:
            lower, proof = bound, bundle.rows(step.weights)
        z, value, promised = step.point, f.value(step.point), best - step.model
        gradient = f.gradient(z)
        require_finite(gradient, np.array(value))
        bundle.add(z, value, gradient, step.weights)
        still = np.array_equal(z, centre)
        if value <= best - ENOUGH * promised:
            centre, best = z, value
        yield Candidate(centre, best, lower, proof)
        if still and t > 1e12:
            return
        share = level * (best - lower) / promised if promised > 0 else LONGEST
        t *= min(max(share, 1 / LONGEST), LONGEST) if np.isfinite(share) else LONGEST
