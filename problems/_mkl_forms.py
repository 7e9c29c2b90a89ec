"""The equivalent forms of multiple kernel learning, and the way back from each.

In the units of `klopt.problems._margin`:  a = length * x,  value = length * slope * (value of the form).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from klopt.arrays import FloatArray
from klopt.cones import Feature
from klopt.forms import ConeForm, SaddleForm, SimplexForm, Start
from klopt.objectives import Curved, Oracle, SaddleOracle
from klopt.problem import Formulation, Point
from klopt.problems._margin import Units
from klopt.problems._mkl import KernelNorm, Mixtures, dual_norm
from klopt.problems._mkl_bracket import Machine
from klopt.problems._mkl_cone import NormCone
from klopt.sets import Simplex

__all__ = ["Forms"]


@dataclass(frozen=True, eq=False)
class Forms:
    """The forms of a machine."""

    machine: Machine

    @cached_property
    def _units(self) -> Units:
        scale = dual_norm(np.sqrt([K.scale for K in self.machine.present]), self.machine.s) ** 2
        slope = float(np.abs(self.machine.y).max()) or 1.0
        return Units.of(self.machine.C * (1.0 if self.machine.hinge else slope), scale, slope)

    @cached_property
    def _function(self) -> KernelNorm:
        units, kernels = self._units, self.machine.present
        ridge = 0.0 if self.machine.hinge else units.length / (units.slope * self.machine.C)
        scales, matrices = np.array([K.scale for K in kernels]), tuple(K.matrix for K in kernels)
        return KernelNorm(
            matrices, scales, self.machine.y / units.slope, self.machine.s, units.length / units.slope, ridge
        )

    @cached_property
    def _cone(self) -> NormCone:
        factors, domain = (
            tuple(self._units.factor(K) for K in self.machine.present),
            self.machine.domain(self._units.length),
        )
        return NormCone(factors, self._function.y, domain, self._function.ridge, apart=self.machine.s == 1)

    def formulations(self) -> tuple[Formulation, ...]:
        s, value = self.machine.s, self._units.value
        down, up = partial(Formulation, dual=True, scale=-value), partial(Formulation, scale=value)
        box = {Feature.SIMPLEX, Feature.BOX}
        smooth = down("smooth", frozenset(box | {Feature.CURVED}), self._smooth, self._recover, self._lift)
        if 1 < s < np.inf:
            return (smooth,)
        because = "K_i = R_i'R_i, |R_i a| <= r_i and |r|^2 <= 2t are second-order cones"
        needs = frozenset({Feature.CONE, Feature.SOC})
        cone = down("SOCP", needs, self._socp, self._recover_socp, self._lift_socp, because)
        if s == 1:
            return (smooth, cone)
        saddle = frozenset({Feature.SADDLE, Feature.BOX})
        weights = frozenset({Feature.SIMPLEX, Feature.CURVED})
        kinks = frozenset(box | {Feature.NONSMOOTH})
        because = "the game is linear in the weights, concave in a, and both sets are compact"
        inverse = "against given weights the best a is (sum theta_i K_i + I/C)^-1 y"
        most = "a convex function, the largest of m quadratics"
        by_weights = up("weights", weights, self._weights, self._recover_weights, self._lift_weights, inverse)
        return (
            *(() if self.machine.hinge else (by_weights,)),
            cone,
            up("saddle", saddle, self._saddle, self._recover_saddle, self._lift_saddle, because),
            down("cutting planes", kinks, self._kinks, self._recover_cuts, self._lift, most),
        )

    def _smooth(self) -> SimplexForm:
        return SimplexForm(self._function.objective(), self.machine.domain(self._units.length))

    def _socp(self) -> ConeForm:
        return self._cone.form()

    def _weights(self) -> SimplexForm:
        m = len(self.machine.present)
        return SimplexForm(Curved(m, Mixtures(self._function).near_weights), Simplex(m))

    def _saddle(self) -> SaddleForm:
        game = Mixtures(self._function)
        coupling = SaddleOracle(game.value, game.slope_weights, game.slope_a)
        return SaddleForm(coupling, Simplex(len(self.machine.present)), self.machine.domain(self._units.length))

    def _kinks(self) -> SimplexForm:
        game = Mixtures(self._function)
        largest = Oracle(self.machine.y.size, game.largest, game.slope_of_largest, smooth=False)
        return SimplexForm(largest, self.machine.domain(self._units.length))

    def _point(self, a: FloatArray, theta: FloatArray | None = None, beta: FloatArray | None = None) -> Point:
        length, sign = self._units.length, self.machine.y if self.machine.hinge else 1.0
        weights = {} if theta is None else {"weights": self.machine.of_all(theta)}
        coefficients = {} if beta is None else {"coefficients": self.machine.of_all(length * beta)}
        return Point({"alpha": length * a * sign, **weights}, coefficients)

    def _recover(self, x: FloatArray, y: FloatArray | None) -> Point:
        return self._point(x)

    def _recover_weights(self, x: FloatArray, y: FloatArray | None) -> Point:
        return self._point(Mixtures(self._function).reply(x), x)

    def _recover_saddle(self, x: FloatArray, y: FloatArray | None) -> Point:
        return self._point(np.zeros(self.machine.y.size) if y is None else y, x)

    def _recover_socp(self, x: FloatArray, y: FloatArray | None) -> Point:
        a = x[: self.machine.y.size]
        if y is None:
            return self._point(a)
        theta, beta = self._cone.multipliers(y)
        return self._point(a, theta, beta)

    def _recover_cuts(self, x: FloatArray, y: FloatArray | None) -> Point:
        """Each cut belongs to one kernel; the cuts' weights add up to the kernels'."""
        if y is None or not y.size:
            return self._point(x)
        cuts, game = y.reshape(-1, self.machine.y.size + 1), Mixtures(self._function)
        return self._point(x, np.sum([weight[0] * game.corner(weight[1:]) for weight in cuts], axis=0))

    def _lift(self, point: Point) -> Start:
        return Start(point.alpha * (self.machine.y if self.machine.hinge else 1.0) / self._units.length)

    def _lift_weights(self, point: Point) -> Start:
        return Start(point.weights[self.machine.there])

    def _lift_saddle(self, point: Point) -> Start:
        return Start(self._lift_weights(point).x, self._lift(point).x)

    def _lift_socp(self, point: Point) -> Start:
        return Start(self._cone.lifted(self._lift(point).x))
