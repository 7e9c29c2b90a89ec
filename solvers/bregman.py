"""Bregman's cyclic projections with correction: one constraint after the other.

    eta = the best change of x_c alone, but x_c + eta >= 0;    x_c += eta

and the primal point follows by rank one. For LogDet kernels this is K -= beta Kz z'K ((5) of Pan et
al., 2016; Kulis et al., 2009). The floor x_c + eta >= 0 is the correction: what an earlier
projection did too much is taken back when its row comes up again. Without it, as printed in Pan et
al. (2016), the method ends at a point that satisfies every constraint and is not the nearest. Raw
options:

    order       "cyclic" or "random", a new order each sweep
    corrected   False for the method as printed; it is not expected to reach the optimum

One iteration is one sweep over all rows. The primal point is computed from the multipliers afresh
between sweeps.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from itertools import count

import attrs
import numpy as np

from klopt.arrays import EPS, FloatArray
from klopt.model.backend import Answer, Backend, Settings, Start
from klopt.model.features import Feature
from klopt.model.forms import Form, SimplexForm
from klopt.model.functions import DualFunction
from klopt.numerics.candidate import Candidate
from klopt.solvers._first_order.dual_rows import UnboundedDual, first_ray, row_start, unbounded
from klopt.solvers._first_order.loop import Steps, deadline_of, due, iterate
from klopt.solvers._native.options import FLAG, check_options, one_of

OPTIONS = {"order": one_of("cyclic", "random"), "corrected": FLAG}
MAX_SWEEPS = 20_000
"""The limit of sweeps where the user sets none."""
MAX_PROJECTIONS = 20_000_000
"""The limit of projections of single rows, which lowers that of the sweeps."""
MIN_MAX_SWEEPS = 100
"""So many sweeps are allowed however many rows there are."""
ROUNDING = 4 * EPS
"""A change of this share of a multiplier is rounding."""
CLOCK_EVERY = 256
"""Projections between two looks at the clock."""
UNCORRECTED = "projections without correction: their limit is feasible, not optimal"


class Bregman(Backend):
    """Cheap where rows are few.

    Where there are many more than variables `sparse_newton` is faster by far.
    """

    name = "bregman"
    offers = frozenset({Feature.SIMPLEX, Feature.ROWS, Feature.BOX})
    honours = frozenset({"tol", "time_limit", "max_iter", "threads", "seed", "log", "start"})
    proves = frozenset({"ray"})
    rank = 40
    references = ("pan2016", "kulis2009")

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        check_options(self.name, settings.raw, OPTIONS, {})
        order = settings.raw.get("order", "cyclic")
        corrected = settings.raw.get("corrected", True)
        assert isinstance(form, SimplexForm)
        f = form.objective
        assert isinstance(f, DualFunction)
        # Rows that contradict each other at sight need no sweep.
        contradiction = first_ray(f)
        if contradiction is not None:
            return contradiction

        rng = np.random.default_rng(settings.seed) if order == "random" else None
        max_sweeps = min(MAX_SWEEPS, max(MIN_MAX_SWEEPS, MAX_PROJECTIONS // max(f.size, 1)))
        settings = attrs.evolve(settings, max_iter=settings.max_iter or max_sweeps)
        deadline = deadline_of(settings)
        try:
            sweeps = _sweeps(f, row_start(form, start), rng, corrected, deadline)
            answer = iterate(sweeps, settings)
        except UnboundedDual as ray:
            return unbounded(ray)
        if not corrected:
            return replace(answer, notes=(*answer.notes, UNCORRECTED))
        return answer


BACKEND = Bregman()


def _sweeps(
    f: DualFunction,
    x: FloatArray,
    rng: np.random.Generator | None,
    corrected: bool,
    deadline: float,
) -> Steps:
    """Yield the multipliers after each sweep.

    Parameters
    ----------
    f
        The dual function.
    x
        The multipliers to start from.
    rng
        Where a random order comes from, None for the cyclic one.
    corrected
        Whether a multiplier may be lowered again.
    deadline
        When to leave a sweep, on the clock of `time.perf_counter`.
    """
    rows = f.rows(x)
    for sweep in count():
        value = f.near(rows.x).value
        if due(sweep):
            yield Candidate(rows.x.copy(), value, f.bound(rows.x))
            found = f.ray(rows.x)
            if found is not None:
                raise UnboundedDual(*found)
        else:
            yield Candidate(rows.x.copy(), value, -np.inf)

        # Rounding of the rank-one updates must not add up.
        rows.refresh()
        moved = False
        order: Iterable[int] = range(f.size)
        if rng is not None:
            order = rng.permutation(f.size).tolist()
        for done, row in enumerate(order):
            eta = rows.project(row, corrected)
            moved |= abs(eta) > ROUNDING * rows.x[row]
            if done % CLOCK_EVERY == 0 and time.perf_counter() > deadline:
                break
        if not moved:  # every further sweep would be the same
            yield Candidate(rows.x.copy(), f.near(rows.x).value, f.bound(rows.x))
            return
