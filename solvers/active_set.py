"""Quadratics over a box cut by a plane, the orthant or a simplex by an exact primal-dual active-set method.

The whole active set moves at once, one Cholesky factorisation of the free block a step, and a start
is worth most of the work. Where the curvature is too nearly singular for that, interior points find
the face (`klopt.numerics.box_qp.active_set`). A program of many variables at a lower bound of zero,
without a plane, may have a solution with few nonzeros: then a working set grows by pricing, and H,
which may be lazy, is never formed (`klopt.numerics.working_set`).
"""

from __future__ import annotations

import time
from typing import cast

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.backend import Answer, Backend, Settings, Step, Stop, check_raw
from klopt.model.cones import Feature
from klopt.model.forms import Form, SimplexForm, Start
from klopt.model.functions import KernelQuadratic, Quadratic, QuadraticLike
from klopt.model.sets import BoxPlane, Simplex
from klopt.numerics.box_qp.active_set import Box, BoxQP, SignedGram, Solved, solve_box_qp
from klopt.numerics.working_set import grow
from klopt.solvers._first_order.loop import starting_point

MAX_ITER = 500
FEW = 100
"""Up to so many variables the whole matrix is not worth a search for the nonzeros."""


class ActiveSet(Backend):
    """An exact active-set method for quadratics over simple sets.

    Exact, so `tol` hardly matters: it aims at a gap of 1e-12 of the terms of the value.
    """

    name = "active_set"
    offers = frozenset({Feature.SIMPLEX, Feature.QUADRATIC, Feature.MARGIN, Feature.BOX})
    honours = frozenset({"tol", "time_limit", "max_iter", "threads", "seed", "log", "start"})
    rank = 10
    accuracy = 1e-9

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        check_raw(self.name, settings.raw, (), {})
        began = time.perf_counter()
        assert isinstance(form, SimplexForm)
        if not isinstance(form.domain, BoxPlane | Simplex):
            return Answer(Stop.REJECTED, native="one box, one plane: products of sets have several")
        x = None if start is None else starting_point(form.domain, start.x)
        deadline = began + (np.inf if settings.time_limit is None else settings.time_limit)
        steps = settings.max_iter or MAX_ITER
        found = _sparse(form, x, steps, deadline)
        if found is None:
            found = solve_box_qp(_program(form), x, min(settings.tol, 1e-12), steps, deadline)
        seconds = time.perf_counter() - began
        lower = found.value - found.gap if np.isfinite(found.gap) else form.lower_bound(found.x)
        end = Step(found.iterations, seconds, min(lower, found.value), found.value)
        history = (*(step for step in found.history if step.iteration < end.iteration), end)
        log = (
            f"{found.iterations} steps, gap {found.gap:.1e}: {found.native}" if settings.log else ""
        )
        return Answer(
            found.stop,
            found.x,
            None,
            None,
            None,
            found.iterations,
            seconds,
            found.native,
            log,
            history,
        )


BACKEND = ActiveSet()


def _sparse(form: SimplexForm, x: FloatArray | None, steps: int, deadline: float) -> Solved | None:
    """The answer by a growing working set where it may pay: many variables, a lazy H or an orthant, no dense start."""
    f, domain = cast(QuadraticLike, form.objective), form.domain
    if not isinstance(domain, BoxPlane) or domain.normal is not None or domain.lower.any():
        return None
    at_hand = isinstance(f, Quadratic | KernelQuadratic)
    if f.size < FEW or (at_hand and np.isfinite(domain.upper).any()):
        return None
    nonzero = np.flatnonzero(np.zeros(0) if x is None else x)
    return grow(f, domain.upper, nonzero, steps, deadline) if 4 * nonzero.size <= f.size else None


def _program(form: SimplexForm) -> BoxQP:
    f, domain = form.objective, form.domain
    assert isinstance(f, QuadraticLike)
    if isinstance(domain, BoxPlane):
        return BoxQP(SignedGram.of(f), f.linear, Box.of(domain))
    assert isinstance(domain, Simplex)
    n = domain.size
    return BoxQP(
        SignedGram.of(f), f.linear, Box(np.zeros(n), np.full(n, np.inf), np.ones(n), domain.total)
    )
