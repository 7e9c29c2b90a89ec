"""The equivalent forms of multiple kernel learning, and the way back from each.

In the units of `klopt.problems._margin.forms`:  a = length * x,  value = length * gradient * (value
of the form).

The epsilon-insensitive loss has epsilon ||a||_1, which is no smooth function. There x has two
halves, u >= 0 and v <= 0 with a = u + v: 1'x = 0 and x'[K K; K K]x = a'Ka, and the loss is linear,
(y - epsilon)'u + (y + epsilon)'v. Of each pair one entry is 0 at the best point, as epsilon (u - v)
costs least then.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.features import Feature
from klopt.model.forms import ConeForm, SaddleForm, SimplexForm, Start
from klopt.model.functions import Oracle, SaddleOracle, SmoothFunction
from klopt.model.problem import Formulation, Point
from klopt.model.sets import BoxPlane, Simplex
from klopt.problems._margin.forms import Units
from klopt.problems._margin.proof import middle_of
from klopt.problems._mkl.cone_forms import NormCone
from klopt.problems._mkl.function import KernelNorm, WeightGame
from klopt.problems._mkl.proof import MultipleKernelDual, dual_norm
from klopt.problems._mkl.weights import HingeOptimalValue, OptimalValue, RidgeOptimalValue

__all__ = ["MultipleKernelForms"]

SECOND_ORDER = "K_i = R_i'R_i, |R_i a| <= r_i and |r|^2 <= 2t are second-order cones"
BEST_RESPONSE = (
    "against given weights there is a best a, by linear equations once its face is known"
)
MINIMAX = "the game is linear in the weights, concave in a, and both sets are compact"
CUTS = "the optimal value is convex in the weights, and each a is a cut of it"


@dataclass(frozen=True, eq=False)
class MultipleKernelForms:
    """The forms of one dual."""

    dual: MultipleKernelDual

    def formulations(self) -> tuple[Formulation, ...]:
        s = self.dual.s
        if s == np.inf:
            # ||r||_inf has kinks: the weights of the kernels are variables of their own.
            return self._weights_formulation(), self._socp_formulation(), *self._game_formulations()
        smooth = Formulation(
            "smooth",
            frozenset({Feature.SIMPLEX, Feature.BOX, Feature.CURVED}),
            self._smooth,
            self._recover,
            self._lift,
            dual=True,
            scale=-self._units.value,
        )
        # Between 1 and inf the norm is no second-order cone.
        return (smooth, self._socp_formulation()) if s == 1 else (smooth,)

    def _socp_formulation(self) -> Formulation:
        return Formulation(
            "SOCP",
            frozenset({Feature.CONE, Feature.SOC}),
            self._socp,
            self._recover_socp,
            self._lift_socp,
            SECOND_ORDER,
            dual=True,
            scale=-self._units.value,
        )

    def _weights_formulation(self) -> Formulation:
        return Formulation(
            "weights",
            frozenset({Feature.SIMPLEX, Feature.CURVED}),
            self._weights,
            self._recover_weights,
            self._lift_weights,
            BEST_RESPONSE,
            scale=self._units.value,
        )

    def _game_formulations(self) -> tuple[Formulation, Formulation]:
        saddle = Formulation(
            "saddle",
            frozenset({Feature.SADDLE, Feature.BOX}),
            self._saddle,
            self._recover_saddle,
            self._lift_saddle,
            MINIMAX,
            scale=self._units.value,
        )
        cuts = Formulation(
            "cutting planes",
            frozenset({Feature.SIMPLEX, Feature.NONSMOOTH}),
            self._cutting_planes,
            self._recover_weights,
            self._lift_weights,
            CUTS,
            scale=self._units.value,
        )
        return saddle, cuts

    # The data in the form's units

    @cached_property
    def _units(self) -> Units:
        roots = np.sqrt([K.scale for K in self.dual.present])
        scale = dual_norm(roots, self.dual.s) ** 2
        if self.dual.epsilon is not None:
            half_range = float(self.dual.y.max() - self.dual.y.min()) / 2
            return Units.of(self.dual.C, scale, max(half_range, self.dual.epsilon))
        gradient = float(np.abs(self.dual.y).max()) or 1.0
        # The squared loss has |a_i| of the size C |y_i| where errors are large.
        box = self.dual.C if self.dual.hinge else self.dual.C * gradient
        return Units.of(box, scale, gradient)

    @property
    def _domain(self) -> BoxPlane:
        domain = self.dual.domain(self._units.length)
        if self.dual.epsilon is None:
            return domain
        none = np.zeros(self.dual.y.size)
        lower = np.concatenate([none, domain.lower])
        upper = np.concatenate([domain.upper, none])
        return BoxPlane(lower, upper, np.ones(lower.size))

    @cached_property
    def _slopes(self) -> FloatArray:
        """The linear terms of x, in the form's units."""
        y = self.dual.y
        if self.dual.epsilon is None:
            return y / self._units.gradient
        # 1'x = 0: a constant changes nothing.
        centred = y - middle_of(y)
        halves = np.concatenate([centred - self.dual.epsilon, centred + self.dual.epsilon])
        return halves / self._units.gradient

    def _halves(self, M: FloatArray, times: tuple[int, int]) -> FloatArray:
        """A matrix over the points as one over the entries of x."""
        return M if self.dual.epsilon is None else np.tile(M, times)

    @property
    def _weight_simplex(self) -> Simplex:
        return Simplex(len(self.dual.present))

    @property
    def _sign(self) -> FloatArray | float:
        """What turns alpha into a, and a into alpha."""
        return self.dual.y if self.dual.hinge else 1.0

    @cached_property
    def _function(self) -> KernelNorm:
        kernels = self.dual.present
        length = self._units.length
        gradient = self._units.gradient
        return KernelNorm(
            kernels=tuple(self._halves(K.matrix, (2, 2)) for K in kernels),
            scales=np.array([K.scale for K in kernels]),
            y=self._slopes,
            s=self.dual.s,
            unit=length / gradient,
            ridge=0.0 if self.dual.has_plane else length / (gradient * self.dual.C),
        )

    @cached_property
    def _cone(self) -> NormCone:
        factors = tuple(self._halves(self._units.factor(K), (1, 2)) for K in self.dual.present)
        f = self._function
        return NormCone(factors, f.y, self._domain, f.ridge, is_sum=self.dual.s == 1)

    @cached_property
    def _optimal_value(self) -> OptimalValue:
        if self.dual.has_plane:
            return HingeOptimalValue(self._function, domain=self._domain)
        return RidgeOptimalValue(self._function)

    # The forms

    def _smooth(self) -> SimplexForm:
        return SimplexForm(self._function.objective(), self._domain)

    def _socp(self) -> ConeForm:
        return self._cone.form()

    def _weights(self) -> SimplexForm:
        simplex = self._weight_simplex
        return SimplexForm(SmoothFunction(simplex.size, self._optimal_value.near), simplex)

    def _cutting_planes(self) -> SimplexForm:
        simplex = self._weight_simplex
        g = self._optimal_value
        return SimplexForm(Oracle(simplex.size, g.value, g.gradient, smooth=False), simplex)

    def _saddle(self) -> SaddleForm:
        game = WeightGame(self._function)
        coupling = SaddleOracle(game.value, game.gradient_weights, game.gradient_a)
        return SaddleForm(coupling, self._weight_simplex, self._domain)

    # The way back

    def _point(
        self, a: FloatArray, theta: FloatArray | None = None, beta: FloatArray | None = None
    ) -> Point:
        """The point of coefficients a, weights theta and the beta_i that prove its upper bound."""
        length = self._units.length
        a = self._whole(a)
        primal = {"alpha": length * a * self._sign}
        if theta is not None:
            primal["weights"] = self.dual.of_all(theta)
        if beta is None:
            return Point(primal)
        return Point(primal, {"coefficients": self.dual.of_all(length * self._whole(beta))})

    def _whole(self, x: FloatArray) -> FloatArray:
        """The coefficients of the points, in the last axis, from those of x."""
        if self.dual.epsilon is None:
            return x
        n = self.dual.y.size
        return np.asarray(x[..., :n] + x[..., n:])

    def _recover(self, x: FloatArray, y: FloatArray | None) -> Point:
        return self._point(x)

    def _recover_weights(self, x: FloatArray, y: FloatArray | None) -> Point:
        """The best a of the weights; where these come with cuts, the mean over the cuts.

        The mean proves one side of the optimum, the best a of the weights the other.
        """
        g = self._optimal_value
        best = g.solution(x).a
        if y is None or not y.size:
            return self._point(best, x)
        cuts = y.reshape(-1, x.size + 1)
        return self._point(g.mean_coefficients(cuts), x, np.outer(x, best))

    def _recover_saddle(self, x: FloatArray, y: FloatArray | None) -> Point:
        return self._point(np.zeros(self._slopes.size) if y is None else y, x)

    def _recover_socp(self, x: FloatArray, y: FloatArray | None) -> Point:
        a = x[: self._slopes.size]
        if y is None:
            return self._point(a)
        theta, beta = self._cone.multipliers(y)
        return self._point(a, theta, beta)

    # Points lifted to the forms

    def _lift(self, point: Point) -> Start:
        a = point.alpha * self._sign / self._units.length
        if self.dual.epsilon is None:
            return Start(a)
        return Start(np.concatenate([np.maximum(a, 0.0), np.minimum(a, 0.0)]))

    def _lift_weights(self, point: Point) -> Start:
        return Start(point.weights[self.dual.is_present])

    def _lift_saddle(self, point: Point) -> Start:
        return Start(self._lift_weights(point).x, self._lift(point).x)

    def _lift_socp(self, point: Point) -> Start:
        return Start(self._cone.lifted(self._lift(point).x))
