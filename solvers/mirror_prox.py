"""Mirror-prox (extragradient) with restarts for saddle points over simple sets.

With z = (x, y) and F(z) = (gradient in x, minus gradient in y), a look ahead and then a step, both
from z:

    z_ahead = step(z, F(z)),    z+ = step(z, F(z_ahead)),    step = project(z - eta g)  or  mirror(theta - eta g)

eta is as long as  eta <F(z_ahead) - F(z), z_ahead - z+> <= D(z+, z_ahead) + D(z_ahead, z)  allows,
D the Bregman divergence (Nemirovski, 2004). The mean of the z_ahead closes the gap as 1/t. Starting
anew from the mean, or from z where that is better, each time the gap has shrunk enough makes the
Euclidean method linear on polyhedral games (Applegate, Hinder, Lu and Lubin, 2023). It is the
default also where there is a mirror map: on random games of 20 to 1000 strategies the entropy took
2 to 20 times as many iterations, or ran out of time, from tol 0.1 to tol 1e-6.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from math import nan

import numpy as np

from klopt.arrays import FloatArray
from klopt.errors import InvalidSettings
from klopt.model.backend import Answer, Backend, Settings, Start
from klopt.model.cones import Feature
from klopt.model.forms import Form, SaddleForm
from klopt.model.functions import Bilinear
from klopt.model.sets import Simplex
from klopt.solvers._first_order.geometry import Side, balance, rebalanced, side_at
from klopt.solvers._first_order.loop import (
    Candidate,
    Steps,
    due,
    iterate,
    require_finite,
    starting_point,
)
from klopt.solvers._native.options import check_options, one_of

GROWTH, SHRINK, CAUTION = 1.1, 0.7, 0.95
MOST_TRIALS = 60
MAX_ENTRIES_FOR_NORM = 4_000_000
"""Entries of a matrix whose largest singular value is worth its time."""
MUCH, SOME, LONG = (
    0.2,
    0.8,
    0.36,
)  # when to restart: the gap has shrunk to 0.2, or to 0.8 and grows; or it is time


class MirrorProx(Backend):
    """Mirror-prox, for saddle points over simple sets.

    Raw option: `geometry`, "euclidean" (any set) or "entropy" (simplices and spectrahedra).
    """

    name = "mirror_prox"
    offers = frozenset({Feature.SADDLE, Feature.BOX, Feature.ORDERED, Feature.SPECTRAL})
    honours = frozenset({"tol", "time_limit", "max_iter", "seed", "log", "start"})
    proves = frozenset({"dual"})
    rank = 40
    references = ("nemirovski2004",)

    def rate_constant(self, form: Form) -> float:
        """Return ||M|| total_x total_y, by Nemirovski (2004), for a bilinear game over two simplices.

        With constant steps 1 / ||M|| from the centres, the mean of the points looked ahead to has
        after k iterations a gap of at most that over k. The steps here are found by a line search
        and the method restarts, which the theorem does not cover: it is the bound to beat.

        >>> game = SaddleForm(Bilinear(np.diag([3.0, 4.0])), Simplex(2), Simplex(2))
        >>> MirrorProx().rate_constant(game)
        4.0
        """
        if not (isinstance(form, SaddleForm) and isinstance(form.coupling, Bilinear)):
            return nan
        left, right, M = form.left, form.right, form.coupling.M
        if not (isinstance(left, Simplex) and isinstance(right, Simplex)):
            return nan
        if M.size > MAX_ENTRIES_FOR_NORM:
            return nan
        return float(np.linalg.norm(M, 2)) * left.total * right.total

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        assert isinstance(form, SaddleForm)
        check_options(self.name, settings.raw, {"geometry": one_of("euclidean", "entropy")}, {})
        mirror = settings.raw.get("geometry") == "entropy"
        if mirror and not (form.left.has_mirror and form.right.has_mirror):
            raise InvalidSettings(
                "geometry 'entropy' needs simplices or spectrahedra on both sides; use 'euclidean'"
            )
        x = starting_point(form.left, None if start is None else start.x)
        y = starting_point(form.right, None if start is None else start.y, "y")
        return iterate(
            _steps(form, side_at(form.left, x, mirror), side_at(form.right, y, mirror), mirror),
            settings,
        )


BACKEND = MirrorProx()


class _Best:
    """The pair with the narrowest bounds; in a bilinear game each player's best point, whenever it came."""

    def __init__(self, form: SaddleForm) -> None:
        self.form = form
        self.apart = isinstance(form.coupling, Bilinear)
        self.lower, self.upper = -np.inf, np.inf
        self.x = self.y = np.zeros(0)

    def offer(self, x: FloatArray, y: FloatArray) -> float:
        """Return the gap of a pair after having looked whether it is better."""
        lower, upper = self.form.bounds(x, y)
        # Written with `not` so that a NaN is taken and the loop sees it; of equals the later one.
        narrower = not upper - lower > self.upper - self.lower
        if not upper > self.upper if self.apart else narrower:
            self.x, self.upper = x, upper
        if not lower < self.lower if self.apart else narrower:
            self.y, self.lower = y, lower
        return upper - lower

    def candidate(self) -> Candidate:
        return Candidate(self.x, self.upper, self.lower, self.y)


@dataclass(frozen=True, eq=False)
class _Move:
    """Where an extragradient step looked, where it went, how long it was, and what share of that length it needed."""

    ahead: tuple[Side, Side]
    to: tuple[Side, Side]
    eta: float
    used: float


def _extragradient(form: SaddleForm, at: tuple[Side, Side], eta: float, weight: float) -> _Move:
    gx, gy = form.coupling.gradients(at[0].point, at[1].point)
    require_finite(gx, gy)
    for _ in range(MOST_TRIALS):
        one, other = eta * weight, eta / weight
        ahead = at[0].step(gx, one), at[1].step(-gy, other)
        hx, hy = form.coupling.gradients(ahead[0].point, ahead[1].point)
        require_finite(hx, hy)
        to = at[0].step(hx, one), at[1].step(-hy, other)
        need = float(
            (hx - gx) @ (ahead[0].point - to[0].point) - (hy - gy) @ (ahead[1].point - to[1].point)
        )
        room = sum(
            (a.divergence(z) + b.divergence(a)) / length
            for z, a, b, length in zip(at, ahead, to, (one, other), strict=True)
        )
        if need <= CAUTION * room:
            break
        eta *= SHRINK
    return _Move(ahead, to, eta, need / room if room > 0 else 0.0)


def _steps(form: SaddleForm, left: Side, right: Side, mirror: bool) -> Steps:
    best = _Best(form)
    gap_then = best.offer(left.point, right.point)
    yield best.candidate()
    at = origin = (left, right)
    eta, weight = 1.0, balance(form, at)
    first = weight
    gap_before, length, since = np.inf, 0.0, 0
    mean_x, mean_y = left.point, right.point
    for iteration in count(1):
        move = _extragradient(form, at, eta, weight)
        if all(
            np.array_equal(a.point, b.point)
            for a, b in zip((*at, *at), (*move.ahead, *move.to), strict=True)
        ):
            best.offer(at[0].point, at[1].point)
            yield best.candidate()
            return
        at, since = move.to, since + 1
        length += move.eta
        mean_x = mean_x + (move.eta / length) * (move.ahead[0].point - mean_x)
        mean_y = mean_y + (move.eta / length) * (move.ahead[1].point - mean_y)
        eta = move.eta * (2.0 if move.used < 0.25 else GROWTH)
        if not due(iteration):
            yield None
            continue
        gap_mean, gap_last = best.offer(mean_x, mean_y), best.offer(at[0].point, at[1].point)
        yield best.candidate()
        gap = min(gap_mean, gap_last)
        if (
            gap <= MUCH * gap_then
            or (gap <= SOME * gap_then and gap > gap_before)
            or since >= LONG * iteration
        ):
            if gap_mean < gap_last:
                at = side_at(form.left, mean_x, mirror), side_at(form.right, mean_y, mirror)
            weight = rebalanced(weight, origin, at, first)
            origin, gap_then, gap_before, length, since = at, gap, np.inf, 0.0, 0
        else:
            gap_before = gap
