"""Bregman's cyclic projections with correction: one constraint after the other, its multiplier moved to its best place.

    eta = the best change of x_c alone, but x_c + eta >= 0;    x_c += eta;    the primal point follows by rank one

For LogDet kernels this is K -= beta Kz z'K ((5) of [1], [2]). The floor x_c + eta >= 0 is the
correction: what an earlier projection did too much is taken back when its row comes up again.
Without it, as printed in [1], the method ends at a point that satisfies every constraint and is not
the nearest. Raw options:

    order       "cyclic" or "random", a new order each sweep
    corrected   False for the method as printed, to see what it does; it is not expected to reach the optimum

One iteration is one sweep over all rows. The primal point is computed from the multipliers afresh
between sweeps.

[1] Pan, Chen, Chen, Xu, Efficient learning of supervised kernels with a graph-based loss function, 2016.
[2] Kulis, Sustik, Dhillon, Low-rank kernel learning with Bregman matrix divergences, 2009.
"""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import count

import attrs
import numpy as np

from klopt.arrays import FloatArray
from klopt.model.backend import Answer, Backend, Settings, Start
from klopt.model.cones import Feature
from klopt.model.forms import Form, SimplexForm
from klopt.model.functions import DualFunction
from klopt.solvers._first_order.dual_rows import Receding, first_ray, row_start, unbounded
from klopt.solvers._first_order.loop import Candidate, Steps, due, iterate
from klopt.solvers._native.options import FLAG, check_options, one_of

ORDERS = ("cyclic", "random")
MOST_SWEEPS, FEWEST_SWEEPS, PROJECTIONS = 20_000, 100, 20_000_000
"""The sweeps that are done at most: fewer where they make more than so many projections."""
STILL = 4 * float(np.finfo(float).eps)
"""A change of this share of a multiplier is rounding."""
BATCH = 256
"""So many projections are done before the clock is looked at."""


class Bregman(Backend):
    """Cheap where rows are few; where there are many more than variables `sparse_newton` is faster by far."""

    name = "bregman"
    offers = frozenset({Feature.SIMPLEX, Feature.ROWS, Feature.BOX})
    honours = frozenset({"tol", "time_limit", "max_iter", "threads", "seed", "log", "start"})
    proves = frozenset({"ray"})
    rank = 40
    references = ("pan2016", "kulis2009")

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        check_options(self.name, settings.raw, {"order": one_of(*ORDERS), "corrected": FLAG}, {})
        order, corrected = settings.raw.get("order", "cyclic"), settings.raw.get("corrected", True)
        assert isinstance(form, SimplexForm)
        f = form.objective
        assert isinstance(f, DualFunction)
        if (found := first_ray(f)) is not None:
            return found
        rng = np.random.default_rng(settings.seed) if order == "random" else None
        until = time.perf_counter() + (
            np.inf if settings.time_limit is None else settings.time_limit
        )
        most = min(MOST_SWEEPS, max(FEWEST_SWEEPS, PROJECTIONS // max(f.size, 1)))
        settings = attrs.evolve(settings, max_iter=settings.max_iter or most)
        try:
            answer = iterate(_sweeps(f, row_start(form, start), rng, corrected, until), settings)
        except Receding as ray:
            return unbounded(ray)
        if not corrected:
            note = "projections without correction: their limit is feasible, not optimal"
            return replace(answer, notes=(*answer.notes, note))
        return answer


BACKEND = Bregman()


def _sweeps(
    f: DualFunction, x: FloatArray, rng: np.random.Generator | None, corrected: bool, until: float
) -> Steps:
    rows = f.rows(x)
    for sweep in count():
        value = f.near(rows.x).value
        if due(sweep):
            yield Candidate(rows.x.copy(), value, f.bound(rows.x))
            if (found := f.ray(rows.x)) is not None:
                raise Receding(*found)
        else:
            yield Candidate(rows.x.copy(), value, -np.inf)
        rows.refresh()
        moved = False
        order = range(f.size) if rng is None else rng.permutation(f.size).tolist()
        for done, row in enumerate(order):
            moved |= abs(rows.project(row, corrected)) > STILL * rows.x[row]
            if done % BATCH == 0 and time.perf_counter() > until:
                break
        if not moved:
            yield Candidate(rows.x.copy(), f.near(rows.x).value, f.bound(rows.x))
            return
