"""Newton's method on a dual function of many rows, few of which matter: a working set grows by pricing.

    F  = rows with x_c > 0, and those of the others that pay best, f'_c < 0
    d  = the minimiser of  f'_F d + d'H d / 2  over  x_F + d >= 0,  H a model of f''_FF     an exact quadratic program
    x += t d                                                              t = 1, shorter where f does not fall

The quadratic program finds the face, so that the last steps are Newton's on it and square the
error. Its size is that of F, a few times the number of rows that are tight at the optimum; the cost
of pricing is that of one gradient. All pairs of 398 points are 79,003 rows, of which about 1,800
are tight.
"""

from __future__ import annotations

import time
from itertools import count

import attrs
import numpy as np

from klopt.arrays import FloatArray
from klopt.model.backend import Answer, Backend, Settings, Start, check_raw
from klopt.model.cones import Feature
from klopt.model.forms import Form, SimplexForm
from klopt.model.functions import DualFunction, Evaluation, IntArray
from klopt.numerics.box_qp.active_set import Box, BoxQP, SignedGram, solve_box_qp
from klopt.numerics.low_rank_qp import solve_thin_qp
from klopt.solvers._first_order.dual_rows import Receding, first_ray, row_start, unbounded
from klopt.solvers._first_order.loop import Candidate, Steps, iterate, require_finite

FEWEST, GROWTH, MOST = 100, 0.4, 5000
"""How many rows may enter at once, at least and as a share of those that are in; how many are worked on at most."""
ENOUGH, MORE, TRIALS = 1e-4, 0.6, 60
"""The share of the first-order fall that a step must keep, and the one from which it is tried to go on."""
NOISE = 1e-14
NEAR = 30.0
"""Bounds are looked at when the estimated gap is within this factor of what is asked for."""
PATIENCE, MOST_STEPS = 100, 1000
"""So many steps that together gain less than what is asked for are the last; so many are done at most."""
SEARCH = 5
"""Every so many iterations a contradiction among the rows is looked for."""


class SparseNewton(Backend):
    """The route for many pairs: its cost hardly depends on how many there are, only on how many are tight."""

    name = "sparse_newton"
    offers = frozenset({Feature.SIMPLEX, Feature.ROWS, Feature.BOX})
    honours = frozenset({"tol", "time_limit", "max_iter", "threads", "seed", "log", "start"})
    proves = frozenset({"ray"})
    rank = 10
    accuracy = 1e-9

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        check_raw(self.name, settings.raw, (), {})
        assert isinstance(form, SimplexForm)
        f = form.objective
        assert isinstance(f, DualFunction)
        deadline = time.perf_counter() + (
            np.inf if settings.time_limit is None else settings.time_limit
        )
        if (found := first_ray(f)) is not None:
            return found
        try:
            settings = attrs.evolve(settings, max_iter=settings.max_iter or MOST_STEPS)
            return iterate(_steps(f, row_start(form, start), settings.tol, deadline), settings)
        except Receding as ray:
            return unbounded(ray)


BACKEND = SparseNewton()


def _steps(f: DualFunction, x: FloatArray, tol: float, deadline: float) -> Steps:
    here, left, before = f.near(x), np.inf, np.inf
    for iteration in count():
        g = here.gradient
        near = min(left, _estimated_gap(x, g) / NEAR) <= tol * (1 + abs(here.value))
        yield Candidate(x, here.value, f.bound(x) if near else -np.inf)
        require_finite(g)
        if iteration % SEARCH == SEARCH - 1 and (found := f.ray(x)) is not None:
            raise Receding(*found)
        rows = np.flatnonzero((x > 0) | (g < 0))
        thin = here.thin_model(rows)
        rows = _working(x, g) if thin is None else rows
        if not rows.size:
            return
        if thin is not None:
            step = solve_thin_qp(g[rows], *thin, -x[rows], deadline)
        else:
            step = _newton(here.model(rows), g[rows], -x[rows], deadline)
        left = -float(g[rows] @ step)
        moved = _search(f, x, rows, step, here)
        if iteration % PATIENCE == 0:
            idle, before = before - here.value <= tol * (1 + abs(here.value)), here.value
        if moved is None or idle or not _better(*moved, x, here):
            yield Candidate(x, here.value, f.bound(x))
            return
        x, here = moved


def _newton(H: FloatArray, g: FloatArray, lower: FloatArray, deadline: float) -> FloatArray:
    """The step, found in units in which every row bends alike: multipliers may differ by ten orders of magnitude."""
    unit = np.sqrt(np.where(H.diagonal() > 0, H.diagonal(), 1.0))
    H /= unit[:, None]
    H /= unit
    qp = BoxQP(SignedGram(H), g / unit, Box(lower * unit, np.full(g.size, np.inf)))
    return np.asarray(solve_box_qp(qp, np.zeros(g.size), 1e-8, 40, deadline).x / unit)


def _better(x: FloatArray, there: Evaluation, before: FloatArray, here: Evaluation) -> bool:
    """Whether the value fell or, where that is rounding, the gradients that should vanish did."""
    if there.value < here.value - NOISE * (1 + abs(here.value)):
        return True
    off, was = np.abs(np.minimum(x, there.gradient)), np.abs(np.minimum(before, here.gradient))
    return bool(off.max(initial=0.0) < was.max(initial=0.0) / 2)


def _estimated_gap(x: FloatArray, g: FloatArray) -> float:
    """What complementarity leaves, and what the broken rows may cost at the largest multiplier."""
    return float(np.abs(g) @ np.maximum(x, np.where(g < 0, x.max(initial=0.0) or 1.0, 0.0)))


def _working(x: FloatArray, g: FloatArray) -> IntArray:
    """The rows in use and those that pay best; where these are too many, those that are farthest from their best."""
    used, paying = np.flatnonzero(x > 0), np.flatnonzero((x <= 0) & (g < 0))
    most = max(FEWEST, int(GROWTH * used.size))
    if paying.size > most:
        paying = paying[np.argpartition(g[paying], most)[:most]]
    rows = np.concatenate((used, paying))
    if rows.size > MOST:
        off = np.abs(np.minimum(x[rows], g[rows]))
        rows = rows[np.argpartition(-off, MOST)[:MOST]]
    return rows


def _search(
    f: DualFunction, x: FloatArray, rows: IntArray, step: FloatArray, here: Evaluation
) -> tuple[FloatArray, Evaluation] | None:
    """Return the end of a step that falls enough; None where no step falls beyond rounding."""
    gradient, t = float(here.gradient[rows] @ step), 1.0
    noise = NOISE * (1 + abs(here.value))
    if not gradient < 0:
        return None

    def end(t: float) -> tuple[FloatArray, Evaluation]:
        point = x.copy()
        point[rows] = np.maximum(x[rows] + t * step, 0.0)
        return point, f.near(point)

    for _ in range(TRIALS):
        point, there = end(t)
        if there.value <= here.value + ENOUGH * t * gradient + noise:
            break
        t /= 2
    else:
        return None
    # A fall by half the gradient is what the model says; where it is much more, the model is too
    # steep to be trusted.
    while t >= 1 and there.value < here.value + MORE * t * gradient - noise:
        farther, beyond = end(2 * t)
        if not beyond.value < there.value:
            break
        point, there, t = farther, beyond, 2 * t
    return point, there
