"""The best machine as a function of the weights of the kernels, for methods that look for the weights alone.

    g(theta) = max over a of   y'a - sum_i theta_i r_i^2 / 2 - ridge a'a / 2         r_i^2 = a'K_i a

is convex in theta. The right hand side with any a of the set is a cut: linear in theta and nowhere
above g, however inexact a is. At the best a it touches g, so -r_i^2 / 2 are the gradients. Without
a box a = K^-1 y, K = sum_i theta_i K_i + ridge I. In a box with 1'a = 0 let F be the points between
the bounds and M the inverse of [K_FF 1; 1' 0] without its last row and column; with u_i = (K_i
a)_F, moving theta moves a_F by -M sum_i u_i dtheta_i, and the second derivatives of g are  u_i' M
u_j.

From one theta to the next the face hardly changes. It is guessed from the last one, at first with
all points free; the machine is solved on it in closed form, points that leave the box go to its
bounds, bounds that push the wrong way let go, until nothing moves. Only the rows of support vectors
are ever mixed. Where the search runs in circles interior points
(`klopt.numerics.box_qp.multipliers`) find the face.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray
from klopt.model.sets import BoxPlane
from klopt.model.smooth_functions import LocalModel
from klopt.numerics.box_qp.multipliers import best_multipliers
from klopt.problems._mkl.function import KernelNorm

__all__ = ["BoxedMachines", "FreeMachines", "Machines"]

MOST_FACES = 25
KEPT = 64  # machines of the last weights that are remembered: whoever proves an answer asks for them again
ROUGH, EXACT = 1e-5, 1e-11
ACCURATE = 1e-12
Mask = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.intp]
Map = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class Reply:
    """The best a against some weights, the points that are free there, and the map M."""

    a: FloatArray
    free: Indices
    across: Map


@dataclass(frozen=True, eq=False)
class Machines:
    """The machines of one problem by their weights; those of the last weights are kept."""

    norm: KernelNorm
    _known: list[tuple[FloatArray, Reply]] = field(default_factory=list, init=False, repr=False)

    def reply(self, theta: FloatArray) -> FloatArray:
        """Return the a that is best against theta."""
        return self._reply(theta).a

    def near(self, theta: FloatArray) -> LocalModel:
        """Return g near theta."""
        reply = self._reply(theta)
        a, (u, q) = reply.a, self.norm.products(reply.a)
        value = float(self.norm.y @ a) - float(theta @ q) / 2 - self.norm.ridge * float(a @ a) / 2
        part = u[:, reply.free]
        flat = np.zeros((q.size, q.size))
        return LocalModel(
            value, -q / 2, lambda: np.asarray(part @ reply.across(part.T)) if part.size else flat
        )

    def value(self, theta: FloatArray) -> float:
        """Return g."""
        return self.near(theta).value

    def gradient(self, theta: FloatArray) -> FloatArray:
        """Return its gradient, a subgradient where several a are best."""
        return self.near(theta).gradient

    def mean_reply(self, cuts: FloatArray) -> FloatArray:
        """Return the mean of the a that belong to cuts, rows (weight, theta): it proves what the cuts together do."""
        weights = np.maximum(cuts[:, 0], 0.0)
        return np.asarray(
            (weights / weights.sum()) @ np.array([self.reply(theta) for theta in cuts[:, 1:]])
        )

    def _reply(self, theta: FloatArray) -> Reply:
        for known, reply in self._known:
            if np.array_equal(known, theta):
                return reply
        reply = self._solve(theta)
        self._known[:] = [(theta.copy(), reply), *self._known[: KEPT - 1]]
        return reply

    def _solve(self, theta: FloatArray) -> Reply:
        raise NotImplementedError

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_known": []}


class FreeMachines(Machines):
    """Machines with a ridge and without a box."""

    def _solve(self, theta: FloatArray) -> Reply:
        K = self.norm.mixed(theta)
        across = _inverse(K)
        return Reply(across(self.norm.y), np.arange(len(K)), across)


@dataclass(frozen=True, eq=False)
class BoxedMachines(Machines):
    """Machines whose a lies in a bounded box and has the sum zero."""

    domain: BoxPlane = field(kw_only=True)

    def _solve(self, theta: FloatArray) -> Reply:
        mixture, nowhere = _Mixture(self.norm, theta), np.zeros(self.domain.size, dtype=bool)
        found = self._from_face(
            mixture, *(self._at_bounds(self._known[0][1].a) if self._known else (nowhere, nowhere))
        )
        if found is not None:
            return found
        K, y, box = mixture.whole(), self.norm.y, self.domain
        a = best_multipliers(K, y, box, None, ROUGH).a
        found = self._from_face(mixture, *self._shown(K, a))
        return self._between(K, best_multipliers(K, y, box, a, EXACT).a) if found is None else found

    def _at_bounds(self, a: FloatArray) -> tuple[Mask, Mask]:
        near = 1e-12 * (self.domain.upper - self.domain.lower)
        return a - self.domain.lower <= near, self.domain.upper - a <= near

    def _shown(self, K: FloatArray, a: FloatArray) -> tuple[Mask, Mask]:
        """The bounds that a point inside the box shows: there the gradient is larger than the room."""
        below, above = a - self.domain.lower, self.domain.upper - a
        gradient, room = K @ a - self.norm.y, np.minimum(below, above)
        gradient -= float(room @ gradient) / (float(room.sum()) or 1.0)
        scale = float(K.diagonal().max())
        return gradient > scale * below, -gradient > scale * above

    def _between(self, K: FloatArray, a: FloatArray) -> Reply:
        """The reply where no face stays: what is between the bounds is called free."""
        free = np.flatnonzero(~np.logical_or(*self._at_bounds(a)))
        block = K[np.ix_(free, free)]
        block.flat[:: free.size + 1] += EXACT * float(K.diagonal().max())
        return Reply(a, free, _Bordered(block).across if free.size else np.copy)

    def _from_face(self, K: _Mixture, low: Mask, high: Mask) -> Reply | None:
        """The best a, looked for from a guess of the points at their bounds; None where it is not found."""
        lower, upper = self.domain.lower, self.domain.upper
        for _ in range(MOST_FACES):
            try:
                reply, gradient, rounding = self._on_face(K, low, high)
            except np.linalg.LinAlgError:
                return None
            a, inside = reply.a, ~(low | high)
            now_low = np.where(inside, a < lower, low & (gradient >= -rounding))
            now_high = np.where(inside, a > upper, high & (gradient <= rounding))
            if np.array_equal(now_low, low) and np.array_equal(now_high, high):
                return Reply(self.domain.repair(a), reply.free, reply.across)
            low, high = now_low, now_high
        return None

    def _on_face(self, K: _Mixture, low: Mask, high: Mask) -> tuple[Reply, FloatArray, float]:
        """The best a with some points at their bounds, the gradients there, and how exact these are."""
        a, y = np.where(low, self.domain.lower, np.where(high, self.domain.upper, 0.0)), self.norm.y
        free, fixed = np.flatnonzero(~(low | high)), np.flatnonzero(a)
        image, total = a[fixed] @ K.rows(fixed), -float(a.sum())
        if free.size:
            rows = K.rows(free)
            face = _Bordered(rows[:, free])
            a[free], price = face.solve(y[free] - image[free], total)
            image += a[free] @ rows
            if self._off(image + price, free) > ACCURATE:  # K_FF is nearly singular
                step, more = face.solve((y - image - price)[free], total - float(a[free].sum()))
                a[free], image, price = a[free] + step, image + step @ rows, price + more
                if self._off(image + price, free) > ACCURATE:
                    raise np.linalg.LinAlgError("the face is too nearly singular")
            reply = Reply(a, free, face.across)
        elif abs(total) > 1e-12 * float(np.abs(a).sum()):
            raise np.linalg.LinAlgError("no point is free to bring the sum to zero")
        else:
            ends = (
                np.max((y - image)[low], initial=-np.inf),
                np.min((y - image)[high], initial=np.inf),
            )
            price = float(np.mean([end for end in ends if np.isfinite(end)]))
            reply = Reply(a, free, np.copy)
        return reply, image - y + price, 1e-13 * (1.0 + float(np.abs(image + price).max()))

    def _off(self, f: FloatArray, free: Indices) -> float:
        """The largest gradient of a free point, relative to the sizes of f."""
        return float(np.abs(f - self.norm.y)[free].max()) / (1.0 + float(np.abs(f).max()))


class _Mixture:
    """sum_i theta_i K_i, whose rows are made when they are asked for: a machine needs those of its support vectors."""

    def __init__(self, norm: KernelNorm, theta: FloatArray) -> None:
        self.norm, self.theta = norm, theta
        self.matrix, self.made = np.empty((norm.y.size,) * 2), np.zeros(norm.y.size, dtype=bool)

    def rows(self, chosen: Indices) -> FloatArray:
        """Return some rows."""
        missing = chosen[~self.made[chosen]]
        if 2 * missing.size > self.made.size:
            self.matrix, self.made[:] = self.norm.mixed(self.theta), True
        elif missing.size:
            self.matrix[missing] = self.norm.mixed_rows(self.theta, missing)
            self.made[missing] = True
        return np.asarray(self.matrix if chosen.size == self.made.size else self.matrix[chosen])

    def whole(self) -> FloatArray:
        """Return all of it."""
        return self.rows(np.arange(self.made.size))


def _inverse(K: FloatArray) -> Map:
    from scipy.linalg import cho_factor, cho_solve

    factor = cho_factor(K, overwrite_a=True, check_finite=False)
    return lambda right: np.asarray(cho_solve(factor, right, check_finite=False))


class _Bordered:
    """The system  K x + price 1 = right,  1'x = total;  K is overwritten and must be positive definite."""

    def __init__(self, K: FloatArray) -> None:
        self.inverse = _inverse(K)
        self.side = self.inverse(np.ones(len(K)))

    def solve(self, right: FloatArray, total: float) -> tuple[FloatArray, float]:
        """Return x and the price."""
        x = self.inverse(right)
        price = (float(x.sum()) - total) / float(self.side.sum())
        return x - price * self.side, price

    def across(self, right: FloatArray) -> FloatArray:
        """Return M times the columns of a matrix: the x that have the sum zero."""
        x = self.inverse(right)
        return np.asarray(x - np.outer(self.side, x.sum(axis=0) / float(self.side.sum())))
