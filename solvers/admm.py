"""Douglas-Rachford splitting (ADMM) for saddle points that split into two functions f + g.

    p, w = the proximal step of g from u            sigma (u - p) is a gradient of g at p
    x, z = the proximal step of f from 2p - u       by Newton's method for its smooth dual
    u   <- u + RELAXATION (x - p)

(Eckstein and Bertsekas, 1992). f's step starts from the last z and is only as exact as the distance
of x and p asks for, the first one as rough as its start, which costs one or two evaluations an
iteration. sigma is moved, ever more rarely, towards equal progress of both sides. (x, z, w) is
feasible for the game at any time, so its best replies bound the optimum.
"""

from __future__ import annotations

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.backend import Answer, Backend, Settings, Start, Stop, check_raw
from klopt.model.features import Feature
from klopt.model.forms import Form, SaddleForm, SimplexForm
from klopt.model.functions import Splitting
from klopt.model.sets import Product
from klopt.numerics.candidate import Candidate, require_finite
from klopt.numerics.newton import newton_moves
from klopt.numerics.newton_step import supported
from klopt.solvers._first_order.loop import Steps, deadline_of, iterate, starting_point

RELAXATION = 1.6
INNER_GAP_SHARE = 0.3
"""The gap that f's step may leave, as a share of sigma |x - p|^2, what an iteration is about."""
INNER_DECREASE_SHARE = 0.03
"""The predicted decrease below which f's step needs no further move, likewise."""
MAX_INNER_STEPS = 10
"""Newton steps for one proximal step of f."""
INNER_QP_TOLERANCE = 1e-4
"""What f's quadratic programs are told to aim at."""
LOOK_EVERY = 5
"""Iterations between two looks at the bounds."""
FIRST_REBALANCING = 10
"""The iteration in which sigma is looked at for the first time."""
REBALANCING_SPACING = 1.5
"""It is looked at again whenever there are so many times as many iterations."""
MAX_RESIDUAL_RATIO = 8.0
"""Primal and dual residual may differ by this factor before sigma is moved."""
MAX_SIGMA_CHANGE = 5.0
"""The most by which sigma is moved at once."""
MAX_IDLE_ITERATIONS = 300
"""Iterations in which the bounds must come twice as close; another method may do better."""


class Admm(Backend):
    """For nonsmooth losses with simple proximal steps.

    Converges linearly in practice, to 1e-6 in a hundred steps.
    """

    name = "admm"
    offers = frozenset({Feature.SPLIT, Feature.BOX, Feature.SPECTRAL, Feature.PRODUCT})
    honours = frozenset({"tol", "time_limit", "max_iter", "threads", "seed", "log", "start"})
    proves = frozenset({"dual"})
    rank = 18
    references = ("eckstein1992",)

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        check_raw(self.name, settings.raw, (), {})
        assert isinstance(form, SaddleForm)
        game = form.coupling
        right = form.right
        if not (
            isinstance(game, Splitting) and isinstance(right, Product) and supported(right.sets[0])
        ):
            only = "only games that split, with z in a box, a plane or a simplex"
            return Answer(Stop.REJECTED, native=only)

        x = None
        z = None
        if start is not None:
            x = starting_point(form.left, start.x)
            if start.y is not None:
                z = right.split(starting_point(right, start.y, "y"))[0]
        return iterate(_steps(form, game, x, z, deadline_of(settings)), settings)


BACKEND = Admm()


def _steps(
    form: SaddleForm, game: Splitting, x: FloatArray | None, z: FloatArray | None, deadline: float
) -> Steps:
    """Yield the iterates.

    Parameters
    ----------
    form, game
        The saddle point, and its two proximal steps.
    x, z
        Where to start, both optional.
    deadline
        When the inner steps stop, on the clock of `time.perf_counter`.
    """
    assert isinstance(form.right, Product)
    home = form.right.sets[0]
    u = game.start if x is None else x
    sigma = game.sigma
    p, w = game.outer(u, sigma)
    distance = np.inf
    iteration = 0
    rebalancing = FIRST_REBALANCING
    smallest_gap = np.inf
    last_progress = 0
    while iteration <= last_progress + MAX_IDLE_ITERATIONS:
        inner = game.inner(2 * p - u, sigma)
        dual = SimplexForm(inner.dual, home)
        z_of_x, z = _inner_step(dual, z, sigma * distance**2, deadline)
        x = inner.primal(z_of_x)
        require_finite(x, z)
        was_still = distance == 0
        distance = float(np.linalg.norm(x - p))

        if iteration % LOOK_EVERY == 0 or distance == 0:
            y = np.concatenate([z, w])
            lower, upper = form.bounds(x, y)
            yield Candidate(x, upper, lower, y)
            if upper - lower <= smallest_gap / 2:
                smallest_gap = upper - lower
                last_progress = iteration
        else:
            yield None
        if was_still and distance == 0:  # a fixed point: every further iteration is the same
            return

        iteration += 1
        u = u + RELAXATION * (x - p)
        last_p = p
        p, w = game.outer(u, sigma)
        if iteration == rebalancing:
            rebalancing = max(
                rebalancing + FIRST_REBALANCING, int(REBALANCING_SPACING * rebalancing)
            )
            primal_residual = distance / _norm(x)
            dual_residual = _norm(p - last_p) / _norm(u - p)
            last_sigma = sigma
            sigma = _rebalanced(sigma, primal_residual, dual_residual)
            # sigma (u - p) is a gradient of g, which must not change.
            u = p + (u - p) * (last_sigma / sigma)


def _inner_step(
    form: SimplexForm, start: FloatArray | None, size: float, deadline: float
) -> tuple[FloatArray, FloatArray]:
    """The z that gives x, and a better one, if known, for the next iteration.

    Parameters
    ----------
    form
        The smooth dual of f's proximal step.
    start
        The last z.
    size
        sigma |x - p|^2, of a share of which the first z is good.
    deadline
        That of Newton's method.
    """
    best: Candidate | None = None
    for count, step in enumerate(newton_moves(form, start, INNER_QP_TOLERANCE, deadline)):
        if isinstance(step, Candidate):
            best = step
            # A candidate and a move are one step.
            last = count >= 2 * MAX_INNER_STEPS
            if step.upper - step.lower <= INNER_GAP_SHARE * size or last:
                break
        elif best is not None and step.predicted_decrease <= INNER_DECREASE_SHARE * size:
            return best.x, step.z
    assert best is not None
    return best.x, best.x


def _rebalanced(sigma: float, primal: float, dual: float) -> float:
    """sigma moved towards equal relative residuals where they are uneven."""
    ratio = primal / dual if dual > 0 else 1.0
    if 1 / MAX_RESIDUAL_RATIO <= ratio <= MAX_RESIDUAL_RATIO:
        return sigma
    change = float(np.sqrt(ratio))
    return sigma * min(max(change, 1 / MAX_SIGMA_CHANGE), MAX_SIGMA_CHANGE)


def _norm(v: FloatArray) -> float:
    """|v|, the smallest float instead of zero."""
    return float(np.linalg.norm(v)) or float(np.finfo(float).tiny)
