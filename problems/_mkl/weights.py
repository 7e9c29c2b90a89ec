"""The optimal value of the support vector machine as a function of the weights of its kernels.

    g(theta) = max over a of   y'a - sum_i theta_i r_i^2 / 2 - ridge a'a / 2         r_i^2 = a'K_i a

is convex in theta. The right hand side with any a of the set is a cut: linear in theta and nowhere
above g, however inexact a is. At the best a it touches g, so -r_i^2 / 2 are the gradients. Without
a box a = K^-1 y, K = sum_i theta_i K_i + ridge I. In a box with 1'a = 0 let F be the points between
the bounds and M the inverse of [K_FF 1; 1' 0] without its last row and column; with u_i = (K_i
a)_F, moving theta moves a_F by -M sum_i u_i dtheta_i, and the second derivatives of g are  u_i' M
u_j.

From one theta to the next the face hardly changes. It is guessed from the last one, at first with
all points free; the quadratic program is solved on it in closed form, points that leave the box go
to its bounds, bounds that push the wrong way let go, until nothing moves. Only the rows of support
vectors are ever mixed. Where the search runs in circles, interior points
(`klopt.numerics.box_qp.multipliers`) find the face.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray
from klopt.model.functions import LocalModel
from klopt.model.memo import lock
from klopt.model.sets import BoxPlane
from klopt.numerics.box_qp.multipliers import best_multipliers
from klopt.problems._mkl.function import KernelNorm

__all__ = ["HingeOptimalValue", "MixtureSolution", "OptimalValue", "RidgeOptimalValue"]

MAX_FACES = 25
"""Faces that are tried from one guess."""
MAX_REMEMBERED = 64
"""Solutions of the last weights that are remembered: a proof asks for them again."""
FACE_TOLERANCE = 1e-5
"""How exactly interior points are solved for, where only their face is wanted."""
FINAL_TOLERANCE = 1e-11
"""How exactly where no face stays and the point itself is the answer."""
MAX_RELATIVE_RESIDUAL = 1e-12
"""A system on a face with a larger residual is refined, once."""
BOUND_TOLERANCE = 1e-12
"""A coefficient closer to its bound than this share of its range is at it."""
GRADIENT_ROUNDING = 1e-13
"""The relative error of a gradient."""

Mask = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.intp]
LinearMap = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class MixtureSolution:
    """The best a against some weights, the points that are free there, and the map M."""

    a: FloatArray
    free: Indices
    across: LinearMap


@dataclass(frozen=True, eq=False)
class OptimalValue:
    """g by its weights; the solutions of the last weights are kept."""

    norm: KernelNorm
    _known: list[tuple[FloatArray, MixtureSolution]] = field(
        default_factory=list, init=False, repr=False
    )

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_known": []}

    def solution(self, theta: FloatArray) -> MixtureSolution:
        """Return the best a against theta with its face, read-only."""
        for known, solution in self._known:
            if np.array_equal(known, theta):
                return solution
        solution = lock(self._solve(theta))
        self._known[:] = [(theta.copy(), solution), *self._known[: MAX_REMEMBERED - 1]]
        return solution

    def _solve(self, theta: FloatArray) -> MixtureSolution:
        raise NotImplementedError

    def near(self, theta: FloatArray) -> LocalModel:
        """Return g near theta."""
        solution = self.solution(theta)
        a = solution.a
        u, q = self.norm.products(a)
        value = float(self.norm.y @ a) - float(theta @ q) / 2 - self.norm.ridge_term(a)
        part = u[:, solution.free]

        def curvature() -> FloatArray:
            # Where no point is free the face, and with it a, stays as it is: g is linear.
            if not part.size:
                return np.zeros((q.size, q.size))
            return np.asarray(part @ solution.across(part.T))

        return LocalModel(value, -q / 2, curvature)

    def value(self, theta: FloatArray) -> float:
        """Return g."""
        return self.near(theta).value

    def gradient(self, theta: FloatArray) -> FloatArray:
        """Return its gradient, a subgradient where several a are best."""
        return self.near(theta).gradient

    def mean_coefficients(self, cuts: FloatArray) -> FloatArray:
        """Return the mean of the best a of cuts, rows (weight, theta).

        It proves what the cuts together do.
        """
        weights = np.maximum(cuts[:, 0], 0.0)
        coefficients = np.array([self.solution(theta).a for theta in cuts[:, 1:]])
        return np.asarray((weights / weights.sum()) @ coefficients)


class RidgeOptimalValue(OptimalValue):
    """g with a ridge and without a box: the squared loss."""

    def _solve(self, theta: FloatArray) -> MixtureSolution:
        K = self.norm.mixed(theta)
        across = _inverse(K)
        return MixtureSolution(across(self.norm.y), np.arange(len(K)), across)


@dataclass(frozen=True, eq=False)
class HingeOptimalValue(OptimalValue):
    """g over a bounded box cut by 1'a = 0: the hinge loss."""

    domain: BoxPlane = field(kw_only=True)

    def _solve(self, theta: FloatArray) -> MixtureSolution:
        mixture = LazyMixture(self.norm, theta)
        if self._known:
            low, high = self._at_bounds(self._known[0][1].a)
        else:
            low = high = np.zeros(self.domain.size, dtype=bool)
        found = self._from_face(mixture, low, high)
        if found is not None:
            return found

        # The search ran in circles: interior points show another face to start from.
        K = mixture.whole()
        y = self.norm.y
        a = best_multipliers(K, y, self.domain, None, FACE_TOLERANCE).a
        found = self._from_face(mixture, *self._shown_bounds(K, a))
        if found is not None:
            return found
        return self._between(K, best_multipliers(K, y, self.domain, a, FINAL_TOLERANCE).a)

    def _at_bounds(self, a: FloatArray) -> tuple[Mask, Mask]:
        """Which coefficients are at their lower bounds, and which at their upper ones."""
        lower = self.domain.lower
        upper = self.domain.upper
        near = BOUND_TOLERANCE * (upper - lower)
        return a - lower <= near, upper - a <= near

    def _shown_bounds(self, K: FloatArray, a: FloatArray) -> tuple[Mask, Mask]:
        """The bounds that a point inside the box shows: the gradient there exceeds the distance."""
        below = a - self.domain.lower
        above = self.domain.upper - a
        distance = np.minimum(below, above)
        gradient = K @ a - self.norm.y
        gradient -= float(distance @ gradient) / (float(distance.sum()) or 1.0)
        scale = float(K.diagonal().max())
        return gradient > scale * below, -gradient > scale * above

    def _between(self, K: FloatArray, a: FloatArray) -> MixtureSolution:
        """The solution where no face stays: what is between the bounds is called free."""
        low, high = self._at_bounds(a)
        free = np.flatnonzero(~(low | high))
        if not free.size:
            return MixtureSolution(a, free, np.copy)
        block = K[np.ix_(free, free)]
        block.flat[:: free.size + 1] += FINAL_TOLERANCE * float(K.diagonal().max())
        return MixtureSolution(a, free, BorderedSystem(block).across)

    def _from_face(self, K: LazyMixture, low: Mask, high: Mask) -> MixtureSolution | None:
        """The best a, from a guess of the points at their bounds; None where it is not found."""
        lower = self.domain.lower
        upper = self.domain.upper
        for _ in range(MAX_FACES):
            try:
                solution, gradient, rounding = self._on_face(K, low, high)
            except np.linalg.LinAlgError:
                return None
            a = solution.a
            is_inside = ~(low | high)
            now_low = np.where(is_inside, a < lower, low & (gradient >= -rounding))
            now_high = np.where(is_inside, a > upper, high & (gradient <= rounding))
            if np.array_equal(now_low, low) and np.array_equal(now_high, high):
                return MixtureSolution(self.domain.repair(a), solution.free, solution.across)
            low = now_low
            high = now_high
        return None

    def _on_face(
        self, K: LazyMixture, low: Mask, high: Mask
    ) -> tuple[MixtureSolution, FloatArray, float]:
        """The best a with some points at their bounds, the gradients, and their rounding."""
        y = self.norm.y
        at_upper = np.where(high, self.domain.upper, 0.0)
        a = np.where(low, self.domain.lower, at_upper)
        free = np.flatnonzero(~(low | high))
        fixed = np.flatnonzero(a)
        image = a[fixed] @ K.rows(fixed)
        total = -float(a.sum())

        if free.size:
            rows = K.rows(free)
            face = BorderedSystem(rows[:, free])
            a[free], price = face.solve(y[free] - image[free], total)
            image += a[free] @ rows
            if self._relative_residual(image + price, free) > MAX_RELATIVE_RESIDUAL:
                # K_FF is nearly singular: one step of iterative refinement.
                left = total - float(a[free].sum())
                step, more = face.solve((y - image - price)[free], left)
                a[free] = a[free] + step
                image = image + step @ rows
                price = price + more
                if self._relative_residual(image + price, free) > MAX_RELATIVE_RESIDUAL:
                    raise np.linalg.LinAlgError("the face is too nearly singular")
            solution = MixtureSolution(a, free, face.across)
        elif abs(total) > BOUND_TOLERANCE * float(np.abs(a).sum()):
            raise np.linalg.LinAlgError("no point is free to bring the sum to zero")
        else:
            # A corner of the box: any price between the two ends makes it optimal.
            ends = (
                np.max((y - image)[low], initial=-np.inf),
                np.min((y - image)[high], initial=np.inf),
            )
            price = float(np.mean([end for end in ends if np.isfinite(end)]))
            solution = MixtureSolution(a, free, np.copy)
        rounding = GRADIENT_ROUNDING * (1.0 + float(np.abs(image + price).max()))
        return solution, image - y + price, rounding

    def _relative_residual(self, f: FloatArray, free: Indices) -> float:
        """The largest gradient of a free point, relative to the sizes of f."""
        return float(np.abs(f - self.norm.y)[free].max()) / (1.0 + float(np.abs(f).max()))


class LazyMixture:
    """sum_i theta_i K_i, whose rows are made when asked for: most are never needed."""

    def __init__(self, norm: KernelNorm, theta: FloatArray) -> None:
        n = norm.y.size
        self.norm = norm
        self.theta = theta
        self.matrix = np.empty((n, n))
        self.is_made = np.zeros(n, dtype=bool)

    def rows(self, chosen: Indices) -> FloatArray:
        """Return some rows."""
        missing = chosen[~self.is_made[chosen]]
        if 2 * missing.size > self.is_made.size:
            self.matrix = self.norm.mixed(self.theta)
            self.is_made[:] = True
        elif missing.size:
            self.matrix[missing] = self.norm.mixed_rows(self.theta, missing)
            self.is_made[missing] = True
        return np.asarray(self.matrix if chosen.size == self.is_made.size else self.matrix[chosen])

    def whole(self) -> FloatArray:
        """Return all of it."""
        return self.rows(np.arange(self.is_made.size))


class BorderedSystem:
    """The system  K x + price 1 = right,  1'x = total;  K > 0 is overwritten."""

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


def _inverse(K: FloatArray) -> LinearMap:
    from scipy.linalg import cho_factor, cho_solve

    factor = cho_factor(K, overwrite_a=True, check_finite=False)
    return lambda right: np.asarray(cho_solve(factor, right, check_finite=False))
