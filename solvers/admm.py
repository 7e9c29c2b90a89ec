"""Alternating proximal steps (Douglas-Rachford, ADMM) for saddle points that split into two functions f + g.

    p, w = the proximal step of g from u            sigma (u - p) is a gradient of g at p
    x, z = the proximal step of f from 2p - u       by a few of Newton's steps for its smooth dual, from the last z
    u   <- u + RELAX (x - p)

(Eckstein and Bertsekas, 1992). f's step is only as exact as the distance of x and p asks for, the
first one as rough as its start, which costs one or two evaluations an iteration. sigma is moved,
ever more rarely, towards equal progress of both sides. (x, z, w) is feasible for the game at any
time, so its best replies bound the optimum.
"""

from __future__ import annotations

import time

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.backend import Answer, Backend, Settings, Start, Stop, check_raw
from klopt.model.cones import Feature
from klopt.model.forms import Form, SaddleForm, SimplexForm
from klopt.model.sets import Product
from klopt.model.splitting import Splitting
from klopt.numerics.newton_step import supported
from klopt.solvers._first_order.loop import (
    Candidate,
    Steps,
    iterate,
    require_finite,
    starting_point,
)
from klopt.solvers.newton import newton_moves

RELAX = 1.6
# Of sigma |x - p|^2, which is what an iteration is about: the gap that f's step may leave, or what
# Newton's model says.
GAP, FALL = 0.3, 0.03
MOST_NEWTON = 10
ROUGH = 1e-4  # what f's quadratic programs are told to aim at
LOOK = 5  # iterations between two looks at the bounds
FIRST, LATER = (
    10,
    1.5,
)  # sigma is looked at after 10 iterations and again whenever there are 1.5 times as many
UNEVEN, FASTEST = 8.0, 5.0
PATIENCE = (
    300  # iterations in which the bounds must come twice as close; another method may do better
)


class Admm(Backend):
    """For nonsmooth losses with simple proximal steps; converges linearly in practice, to 1e-6 in a hundred steps."""

    name = "admm"
    offers = frozenset({Feature.SPLIT, Feature.BOX, Feature.SPECTRAL})
    honours = frozenset({"tol", "time_limit", "max_iter", "threads", "seed", "log", "start"})
    proves = frozenset({"dual"})
    rank = 18
    references = ("eckstein1992",)

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        check_raw(self.name, settings.raw, (), {})
        assert isinstance(form, SaddleForm)
        right = form.right
        if not (
            isinstance(form.coupling, Splitting)
            and isinstance(right, Product)
            and supported(right.sets[0])
        ):
            return Answer(
                Stop.REJECTED, native="only games that split, with z in a box, a plane or a simplex"
            )
        deadline = time.perf_counter() + (
            np.inf if settings.time_limit is None else settings.time_limit
        )
        x = None if start is None else starting_point(form.left, start.x)
        both = None if start is None or start.y is None else starting_point(right, start.y, "y")
        z = None if both is None else right.split(both)[0]
        return iterate(_steps(form, form.coupling, x, z, deadline), settings)


BACKEND = Admm()


def _steps(
    form: SaddleForm, game: Splitting, x: FloatArray | None, z: FloatArray | None, deadline: float
) -> Steps:
    assert isinstance(form.right, Product)
    home = form.right.sets[0]
    u, sigma = (game.start if x is None else x), game.sigma
    p, w = game.outer(u, sigma)
    apart, iteration, before, turn = np.inf, 0, p, FIRST
    narrow, since = np.inf, 0
    while iteration <= since + PATIENCE:
        inner = game.inner(2 * p - u, sigma)
        good, z = _inner_step(SimplexForm(inner.dual, home), z, sigma * apart**2, deadline)
        x = inner.primal(good)
        require_finite(x, z)
        still, apart = apart == 0, float(np.linalg.norm(x - p))
        if iteration % LOOK == 0 or apart == 0:
            y = np.concatenate([z, w])
            lower, upper = form.bounds(x, y)
            yield Candidate(x, upper, lower, y)
            narrow, since = (
                (upper - lower, iteration) if upper - lower <= narrow / 2 else (narrow, since)
            )
        else:
            yield None
        if still and apart == 0:
            return
        iteration += 1
        u = u + RELAX * (x - p)
        before, (p, w) = p, game.outer(u, sigma)
        if iteration == turn:
            turn = max(turn + FIRST, int(LATER * turn))
            moved = _rebalanced(sigma, apart / _size(x), _size(p - before) / _size(u - p))
            u, sigma = p + (u - p) * (sigma / moved), moved


def _inner_step(
    form: SimplexForm, start: FloatArray | None, size: float, deadline: float
) -> tuple[FloatArray, FloatArray]:
    """The z that gives x, good to a share of `size`, and a better one, if known, for the next iteration."""
    best: Candidate | None = None
    for count, step in enumerate(newton_moves(form, start, ROUGH, deadline)):
        if isinstance(step, Candidate):
            best = step
            if step.upper - step.lower <= GAP * size or count >= 2 * MOST_NEWTON:
                break
        elif best is not None and step.fall <= FALL * size:
            return best.x, step.z
    assert best is not None
    return best.x, best.x


def _rebalanced(sigma: float, primal: float, dual: float) -> float:
    """sigma moved towards equal relative residuals where they are uneven."""
    ratio = primal / dual if dual > 0 else 1.0
    if 1 / UNEVEN <= ratio <= UNEVEN:
        return sigma
    return sigma * min(max(float(np.sqrt(ratio)), 1 / FASTEST), FASTEST)


def _size(v: FloatArray) -> float:
    return float(np.linalg.norm(v)) or float(np.finfo(float).tiny)
