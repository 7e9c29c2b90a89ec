"""Newton's method on a dual function of many rows, few of which matter, by column generation.

    F  = rows with x_c > 0, and those of the others with the most negative derivatives f'_c
    d  = the minimiser of  f'_F d + d'H d / 2  over  x_F + d >= 0,  H a model of f''_FF
    x += t d                                   t = 1, shorter where f does not fall

The quadratic program is solved exactly and finds the face, so that the last steps are Newton's on
it and square the error. Its size is that of F, a few times the number of rows that are tight at the
optimum; the cost of pricing is that of one gradient. All pairs of 398 points are 79,003 rows, of
which about 1,800 are tight.
"""

from __future__ import annotations

from itertools import count

import attrs
import numpy as np

from klopt.arrays import FloatArray
from klopt.model.backend import Answer, Backend, Settings, Start, check_raw
from klopt.model.features import Feature
from klopt.model.forms import Form, SimplexForm
from klopt.model.functions import DualFunction, Evaluation, IntArray
from klopt.numerics.box_qp.active_set import solve_box_qp
from klopt.numerics.box_qp.program import Box, BoxQP, SignedGram
from klopt.numerics.candidate import Candidate, require_finite
from klopt.numerics.low_rank_qp import solve_low_rank_qp
from klopt.solvers._first_order.dual_rows import UnboundedDual, first_ray, row_start, unbounded
from klopt.solvers._first_order.loop import Steps, deadline_of, iterate

MIN_ENTERING = 100
"""So many rows may enter at once, however few are in use."""
ENTERING_SHARE = 0.4
"""How many may enter, as a share of those in use."""
MAX_WORKING_ROWS = 5000
"""How many rows are worked on at most."""
SUFFICIENT_DECREASE = 1e-4
"""The share of the first-order decrease that a step must keep."""
LARGE_DECREASE = 0.6
"""The share of it from which a longer step is tried."""
MAX_HALVINGS = 60
"""How often a step may be halved."""
NOISE = 1e-14
"""Differences of values smaller than this, relative to the value, are rounding."""
BOUND_WITHIN = 30.0
"""The bound is looked at when the estimated gap is within this factor of what is asked for."""
MAX_STEPS = 1000
"""The limit of steps where the user sets none."""
PROGRESS_EVERY = 100
"""So many steps that together gain less than what is asked for are the last."""
RAY_EVERY = 5
"""Every so many iterations a contradiction among the rows is looked for."""
QP_TOLERANCE = 1e-8
MAX_QP_ITERATIONS = 40


class SparseNewton(Backend):
    """The route for many pairs.

    Its cost hardly depends on how many there are, only on how many are tight.
    """

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
        deadline = deadline_of(settings)
        contradiction = first_ray(f)
        if contradiction is not None:
            return contradiction
        settings = attrs.evolve(settings, max_iter=settings.max_iter or MAX_STEPS)
        try:
            return iterate(_steps(f, row_start(form, start), settings.tol, deadline), settings)
        except UnboundedDual as ray:
            return unbounded(ray)


BACKEND = SparseNewton()


def _steps(f: DualFunction, x: FloatArray, tol: float, deadline: float) -> Steps:
    """Yield the multipliers after each step.

    Parameters
    ----------
    f
        The dual function.
    x
        The multipliers to start from.
    tol
        The relative gap that is asked for.
    deadline
        When the quadratic programs stop, on the clock of `time.perf_counter`.
    """
    here = f.near(x)
    predicted_decrease = np.inf
    value_at_check = np.inf
    for iteration in count():
        g = here.gradient
        wanted_gap = tol * (1 + abs(here.value))
        estimated_gap = min(predicted_decrease, _estimated_gap(x, g) / BOUND_WITHIN)
        yield Candidate(x, here.value, f.bound(x) if estimated_gap <= wanted_gap else -np.inf)
        require_finite(g)
        if iteration % RAY_EVERY == RAY_EVERY - 1:
            found = f.ray(x)
            if found is not None:
                raise UnboundedDual(*found)

        rows, step = _newton_step(here, x, deadline)
        if not rows.size:  # x = 0 is optimal
            return
        predicted_decrease = -float(g[rows] @ step)
        end = _line_search(f, x, rows, step, here)
        if iteration % PROGRESS_EVERY == 0:
            idle = value_at_check - here.value <= wanted_gap
            value_at_check = here.value
        # No step gains anything any more: the bound is looked at once more.
        if end is None or idle or not _better(*end, x, here):
            yield Candidate(x, here.value, f.bound(x))
            return
        x, here = end


def _newton_step(here: Evaluation, x: FloatArray, deadline: float) -> tuple[IntArray, FloatArray]:
    """The working rows and the Newton step in them."""
    g = here.gradient
    rows = np.flatnonzero((x > 0) | (g < 0))
    thin = here.thin_model(rows)
    if thin is not None:  # a model of low rank takes all rows at once
        return rows, solve_low_rank_qp(g[rows], *thin, -x[rows], deadline)
    rows = _working_rows(x, g)
    if not rows.size:
        return rows, np.zeros(0)
    return rows, _dense_step(here.model(rows), g[rows], -x[rows], deadline)


def _dense_step(H: FloatArray, g: FloatArray, lower: FloatArray, deadline: float) -> FloatArray:
    """The minimiser of g'd + d'Hd/2 over d >= lower; H is overwritten.

    It is found in units in which H has a diagonal of ones: multipliers may differ by ten orders of
    magnitude.
    """
    unit = np.sqrt(np.where(H.diagonal() > 0, H.diagonal(), 1.0))
    H /= unit[:, None]
    H /= unit
    qp = BoxQP(SignedGram(H), g / unit, Box(lower * unit, np.full(g.size, np.inf)))
    found = solve_box_qp(qp, np.zeros(g.size), QP_TOLERANCE, MAX_QP_ITERATIONS, deadline)
    return np.asarray(found.x / unit)


def _better(x: FloatArray, there: Evaluation, before: FloatArray, here: Evaluation) -> bool:
    """Whether the value fell or, where that is rounding, the optimality residual halved."""
    if there.value < here.value - NOISE * (1 + abs(here.value)):
        return True
    return _residual(x, there.gradient) < _residual(before, here.gradient) / 2


def _residual(x: FloatArray, g: FloatArray) -> float:
    """The largest entry of |min(x, g)|, zero at an optimum."""
    return float(np.abs(np.minimum(x, g)).max(initial=0.0))


def _estimated_gap(x: FloatArray, g: FloatArray) -> float:
    """What complementarity leaves, and what broken rows may cost at the largest multiplier."""
    largest = x.max(initial=0.0) or 1.0
    return float(np.abs(g) @ np.maximum(x, np.where(g < 0, largest, 0.0)))


def _working_rows(x: FloatArray, g: FloatArray) -> IntArray:
    """The rows in use and those with the most negative derivatives.

    Where these are too many, those that are farthest from their optimality condition.
    """
    used = np.flatnonzero(x > 0)
    entering = np.flatnonzero((x <= 0) & (g < 0))
    most = max(MIN_ENTERING, int(ENTERING_SHARE * used.size))
    if entering.size > most:
        entering = entering[np.argpartition(g[entering], most)[:most]]
    rows = np.concatenate((used, entering))
    if rows.size > MAX_WORKING_ROWS:
        residuals = np.abs(np.minimum(x[rows], g[rows]))
        rows = rows[np.argpartition(-residuals, MAX_WORKING_ROWS)[:MAX_WORKING_ROWS]]
    return rows


def _line_search(
    f: DualFunction, x: FloatArray, rows: IntArray, step: FloatArray, here: Evaluation
) -> tuple[FloatArray, Evaluation] | None:
    """Return the end of a step that falls enough; None where no step falls beyond rounding.

    Parameters
    ----------
    f
        The dual function.
    x, here
        The multipliers, and f near them.
    rows, step
        The rows that move, and how far.
    """
    descent = float(here.gradient[rows] @ step)
    noise = NOISE * (1 + abs(here.value))
    if not descent < 0:
        return None

    def end(t: float) -> tuple[FloatArray, Evaluation]:
        point = x.copy()
        point[rows] = np.maximum(x[rows] + t * step, 0.0)
        return point, f.near(point)

    t = 1.0
    for _ in range(MAX_HALVINGS):
        point, there = end(t)
        if there.value <= here.value + SUFFICIENT_DECREASE * t * descent + noise:
            break
        t /= 2
    else:
        return None

    # Half the first-order decrease is what the model says; where it is much more, its curvature is
    # too large.
    while t >= 1 and there.value < here.value + LARGE_DECREASE * t * descent - noise:
        farther, beyond = end(2 * t)
        if not beyond.value < there.value:
            break
        point = farther
        there = beyond
        t = 2 * t
    return point, there
