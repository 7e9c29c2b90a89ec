"""Cutting planes with a level: convex functions with kinks, by value and subgradient.

Each point x_j that was looked at gives a cut, f >= f_j + g_j'(z - x_j). From the best point c the
next one is

    z = the minimiser over the set of   max_j f_j + g_j'(z - x_j)  +  |z - c|^2 / (2t)

and its multipliers, one a cut, make of the cuts one lower bound: the minimum over the set of the
mean of the cuts with these weights. They go with the answer, so that klopt can take the mean
itself. t is as long as makes the model promise a fixed share of the gap, the level of Lemarechal,
Nemirovskii and Nesterov (1995) by way of the proximal term: with t infinite, Kelley's method, z
leaps from vertex to vertex; with a short t it creeps. The sets are boxes, planes, simplices and
products of them.
"""

from __future__ import annotations

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.backend import Answer, Backend, Settings, Start, Stop
from klopt.model.features import Feature
from klopt.model.forms import Form, SimplexForm
from klopt.numerics.candidate import Candidate, require_finite
from klopt.numerics.newton_step import supported
from klopt.solvers._first_order.bundle import Bundle
from klopt.solvers._first_order.loop import Steps, deadline_of, iterate, starting_point
from klopt.solvers._native.options import between, check_options

LEVEL = 0.5
"""The share of the gap that a step aims at."""
SUFFICIENT_DECREASE = 0.1
"""The share of the promised decrease that moves the centre."""
MAX_CHANGE_OF_T = 4.0
"""The most by which t changes at once."""
MAX_T_AT_REST = 1e12
"""A step that does not move though t is this long ends the method."""


class CuttingPlanes(Backend):
    """Cutting planes with a level, for convex functions with kinks.

    Raw option: `level`, the share of the gap that a step aims at, between 0 and 1.
    """

    name = "cutting_planes"
    offers = frozenset({Feature.SIMPLEX, Feature.NONSMOOTH, Feature.BOX, Feature.PRODUCT})
    honours = frozenset({"tol", "time_limit", "max_iter", "threads", "seed", "log", "start"})
    rank = 30
    references = ("lemarechal1995",)

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        assert isinstance(form, SimplexForm)
        check_options(self.name, settings.raw, {"level": between(0, 1)}, {})
        level = settings.raw.get("level", LEVEL)
        if not supported(form.domain):
            only = "only boxes, planes, simplices and products of them"
            return Answer(Stop.REJECTED, native=only)
        x = starting_point(form.domain, None if start is None else start.x)
        return iterate(_steps(form, x, level, deadline_of(settings)), settings)


BACKEND = CuttingPlanes()


def _steps(form: SimplexForm, centre: FloatArray, level: float, deadline: float) -> Steps:
    """Yield the centre after each step.

    Parameters
    ----------
    form
        The function and its set.
    centre
        Where to start.
    level
        The share of the gap that a step aims at.
    deadline
        When the programs stop, on the clock of `time.perf_counter`.
    """
    f = form.objective
    best = f.value(centre)
    gradient = f.gradient(centre)
    lower = form.lower_bound(centre, best, gradient)
    proof = np.concatenate([[1.0], centre])
    yield Candidate(centre, best, lower, proof)
    require_finite(gradient)

    bundle = Bundle(form.domain, centre, best, gradient)
    t = _first_t(form, centre, gradient, lower)
    while True:
        step = bundle.step(centre, best, t, deadline)
        bound = bundle.lower_bound(step.weights)
        if bound > lower:
            lower = bound
            proof = bundle.rows(step.weights)

        z = step.point
        value = f.value(z)
        gradient = f.gradient(z)
        require_finite(gradient, np.array(value))
        bundle.add(z, value, gradient, step.weights)
        promised = best - step.model
        at_rest = np.array_equal(z, centre)
        # Else the centre stays, and the new cut makes the model better (a null step).
        if value <= best - SUFFICIENT_DECREASE * promised:
            centre = z
            best = value
        yield Candidate(centre, best, lower, proof)
        if at_rest and t > MAX_T_AT_REST:
            return
        t *= _change_of_t(level * (best - lower), promised)


def _first_t(form: SimplexForm, centre: FloatArray, gradient: FloatArray, lower: float) -> float:
    """The t with which a gradient step goes as far as the best point of the tangent."""
    way = 1.0
    if np.isfinite(lower):
        way = float(np.linalg.norm(form.domain.linear_minimiser(gradient) - centre))
    return way / (float(np.linalg.norm(gradient)) or 1.0)


def _change_of_t(wanted: float, promised: float) -> float:
    """The factor of t that makes the model promise what is wanted, within limits."""
    if not promised > 0:  # the cuts are exact here: look farther
        return MAX_CHANGE_OF_T
    ratio = wanted / promised
    if not np.isfinite(ratio):
        return MAX_CHANGE_OF_T
    return min(max(ratio, 1 / MAX_CHANGE_OF_T), MAX_CHANGE_OF_T)
