"""The equivalent forms of multiple kernel learning, and the way back from each.

In the units of `klopt.problems._margin.data`:  a = length * x,  value = length * gradient * (value
of the form).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.cones import Feature
from klopt.model.forms import ConeForm, SaddleForm, SimplexForm, Start
from klopt.model.functions import Oracle, SaddleOracle
from klopt.model.problem import Formulation, Point
from klopt.model.sets import Simplex
from klopt.model.smooth_functions import SmoothFunction
from klopt.problems._margin.forms import Units
from klopt.problems._mkl.cone_forms import NormCone
from klopt.problems._mkl.function import KernelNorm, Mixtures, dual_norm
from klopt.problems._mkl.proof import Machine
from klopt.problems._mkl.weights import BoxedMachines, FreeMachines, Machines

__all__ = ["Forms"]


@dataclass(frozen=True, eq=False)
class Forms:
    """The forms of a machine."""

    machine: Machine

    @cached_property
    def _units(self) -> Units:
        scale = dual_norm(np.sqrt([K.scale for K in self.machine.present]), self.machine.s) ** 2
        gradient = float(np.abs(self.machine.y).max()) or 1.0
        return Units.of(self.machine.C * (1.0 if self.machine.hinge else gradient), scale, gradient)

    @cached_property
    def _function(self) -> KernelNorm:
        units, kernels = self._units, self.machine.present
        ridge = 0.0 if self.machine.hinge else units.length / (units.gradient * self.machine.C)
        scales, matrices = np.array([K.scale for K in kernels]), tuple(K.matrix for K in kernels)
        return KernelNorm(
            matrices,
            scales,
            self.machine.y / units.gradient,
            self.machine.s,
            units.length / units.gradient,
            ridge,
        )

    @cached_property
    def _cone(self) -> NormCone:
        factors, domain = (
            tuple(self._units.factor(K) for K in self.machine.present),
            self.machine.domain(self._units.length),
        )
        return NormCone(
            factors, self._function.y, domain, self._function.ridge, apart=self.machine.s == 1
        )

    def formulations(self) -> tuple[Formulation, ...]:
        s, value = self.machine.s, self._units.value
        down, up = partial(Formulation, dual=True, scale=-value), partial(Formulation, scale=value)
        box = {Feature.SIMPLEX, Feature.BOX}
        smooth = down(
            "smooth", frozenset(box | {Feature.CURVED}), self._smooth, self._recover, self._lift
        )
        if 1 < s < np.inf:
            return (smooth,)
        because = "K_i = R_i'R_i, |R_i a| <= r_i and |r|^2 <= 2t are second-order cones"
        needs = frozenset({Feature.CONE, Feature.SOC})
        cone = down("SOCP", needs, self._socp, self._recover_socp, self._lift_socp, because)
        if s == 1:
            return (smooth, cone)
        saddle = frozenset({Feature.SADDLE, Feature.BOX})
        weights, kinks = (
            frozenset({Feature.SIMPLEX, feature}) for feature in (Feature.CURVED, Feature.NONSMOOTH)
        )
        game = "the game is linear in the weights, concave in a, and both sets are compact"
        reply = (
            "against given weights there is a best a, by linear equations once its face is known"
        )
        cuts = "the value of the best machine is convex in the weights, and each a is a cut of it"
        return (
            up("weights", weights, self._weights, self._recover_weights, self._lift_weights, reply),
            cone,
            up("saddle", saddle, self._saddle, self._recover_saddle, self._lift_saddle, game),
            up(
                "cutting planes", kinks, self._cuts, self._recover_weights, self._lift_weights, cuts
            ),
        )

    @cached_property
    def _machines(self) -> Machines:
        if self.machine.hinge:
            return BoxedMachines(self._function, domain=self.machine.domain(self._units.length))
        return FreeMachines(self._function)

    def _smooth(self) -> SimplexForm:
        return SimplexForm(self._function.objective(), self.machine.domain(self._units.length))

    def _socp(self) -> ConeForm:
        return self._cone.form()

    def _weights(self) -> SimplexForm:
        m = len(self.machine.present)
        return SimplexForm(SmoothFunction(m, self._machines.near), Simplex(m))

    def _cuts(self) -> SimplexForm:
        m, machines = len(self.machine.present), self._machines
        return SimplexForm(Oracle(m, machines.value, machines.gradient, smooth=False), Simplex(m))

    def _saddle(self) -> SaddleForm:
        game = Mixtures(self._function)
        coupling = SaddleOracle(game.value, game.gradient_weights, game.gradient_a)
        return SaddleForm(
            coupling, Simplex(len(self.machine.present)), self.machine.domain(self._units.length)
        )

    def _point(
        self, a: FloatArray, theta: FloatArray | None = None, beta: FloatArray | None = None
    ) -> Point:
        length, sign = self._units.length, self.machine.y if self.machine.hinge else 1.0
        weights = {} if theta is None else {"weights": self.machine.of_all(theta)}
        coefficients = {} if beta is None else {"coefficients": self.machine.of_all(length * beta)}
        return Point({"alpha": length * a * sign, **weights}, coefficients)

    def _recover(self, x: FloatArray, y: FloatArray | None) -> Point:
        return self._point(x)

    def _recover_weights(self, x: FloatArray, y: FloatArray | None) -> Point:
        """The machine of the weights; where these come with cuts, the mean of their machines proves the other side."""
        best = self._machines.reply(x)
        if y is None or not y.size:
            return self._point(best, x)
        return self._point(
            self._machines.mean_reply(y.reshape(-1, x.size + 1)), x, np.outer(x, best)
        )

    def _recover_saddle(self, x: FloatArray, y: FloatArray | None) -> Point:
        return self._point(np.zeros(self.machine.y.size) if y is None else y, x)

    def _recover_socp(self, x: FloatArray, y: FloatArray | None) -> Point:
        a = x[: self.machine.y.size]
        if y is None:
            return self._point(a)
        theta, beta = self._cone.multipliers(y)
        return self._point(a, theta, beta)

    def _lift(self, point: Point) -> Start:
        return Start(
            point.alpha * (self.machine.y if self.machine.hinge else 1.0) / self._units.length
        )

    def _lift_weights(self, point: Point) -> Start:
        return Start(point.weights[self.machine.there])

    def _lift_saddle(self, point: Point) -> Start:
        return Start(self._lift_weights(point).x, self._lift(point).x)

    def _lift_socp(self, point: Point) -> Start:
        return Start(self._cone.lifted(self._lift(point).x))
