"""Quadratics over a box cut by a plane, the orthant or a simplex by an exact primal-dual active-set method.

The whole active set moves at once, one Cholesky factorisation of the free block a step, and a start is worth most of
the work. Where the curvature is too nearly singular for that, interior points find the face. The mathematics is in
`klopt.solvers._boxqp`; this file hands it the form and takes the answer back.
"""

from __future__ import annotations

import time

import numpy as np

from klopt.backend import Answer, Backend, Settings, Step, Stop, check_raw
from klopt.cones import Feature
from klopt.forms import Form, SimplexForm, Start
from klopt.objectives import QuadraticLike
from klopt.sets import BoxPlane, Simplex
from klopt.solvers._boxqp import BoxQP, SignedGram, solve_box_qp
from klopt.solvers._iterate import starting_point

MAX_ITER = 500


class ActiveSet(Backend):
    """Exact, so `tol` hardly matters: it aims at a gap of 1e-12 of the terms of the value."""

    name = "active_set"
    offers = frozenset({Feature.SIMPLEX, Feature.QUADRATIC, Feature.MARGIN, Feature.BOX})
    honours = frozenset({"tol", "time_limit", "max_iter", "threads", "seed", "log", "start"})
    rank = 10
    accuracy = 1e-9

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        check_raw(self.name, settings.raw, (), {})
        began = time.perf_counter()
        assert isinstance(form, SimplexForm)
        qp = _program(form)
        if qp is None:
            return Answer(Stop.REJECTED, native="one box, one plane: products of sets have several")
        x = None if start is None else starting_point(form.domain, start.x)
        deadline = began + (np.inf if settings.time_limit is None else settings.time_limit)
        found = solve_box_qp(qp, x, min(settings.tol, 1e-12), settings.max_iter or MAX_ITER, deadline)
        seconds = time.perf_counter() - began
        history = (Step(found.iterations, seconds, found.value - found.gap, found.value),)
        log = f"{found.iterations} steps, gap {found.gap:.1e}: {found.native}" if settings.log else ""
        return Answer(found.stop, found.x, None, None, None, found.iterations, seconds, found.native, log, history)


BACKEND = ActiveSet()


def _program(form: SimplexForm) -> BoxQP | None:
    f, domain = form.objective, form.domain
    assert isinstance(f, QuadraticLike)
    if isinstance(domain, BoxPlane):
        return BoxQP(SignedGram.of(f), f.linear, domain.lower, domain.upper, domain.normal, domain.offset)
    if isinstance(domain, Simplex):
        n = domain.size
        return BoxQP(SignedGram.of(f), f.linear, np.zeros(n), np.full(n, np.inf), np.ones(n), domain.total)
    return None
