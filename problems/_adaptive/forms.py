"""The equivalent forms of learning a data-adaptive kernel, and the way back from each.

In the units of `klopt.problems._margin.data`: a = length * (the form's a), value = length *
gradient * (value of the form). The form has K length / gradient and eta / (length * gradient) for K
and eta; F and tau stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property, partial

import numpy as np

from klopt.arrays import FloatArray
from klopt.kernels.gram import Gram
from klopt.kernels.nystroem import LowRank
from klopt.model.cones import Feature, smat, svec
from klopt.model.forms import ConeForm, SaddleForm, SimplexForm, Start
from klopt.model.functions import SaddleOracle
from klopt.model.problem import Formulation, Point
from klopt.model.sets import BoxPlane, Spectrahedron
from klopt.model.smooth_functions import (
    HessianOperator,
    LocalModel,
    MatrixFreeFunction,
    SmoothFunction,
    StartModel,
)
from klopt.problems._adaptive.cone_forms import AdaptiveCone
from klopt.problems._adaptive.cut import near
from klopt.problems._adaptive.features import AdaptingFeatures, Halves, Shifted
from klopt.problems._adaptive.function import Adapting
from klopt.problems._adaptive.proof import Machine
from klopt.problems._margin.forms import Units

__all__ = ["Forms"]

MOST_POINTS = 100
"""Semidefinite programs of more points than this are not offered: they have n^2 variables."""


@dataclass(frozen=True, eq=False)
class Forms:
    """The forms of a machine."""

    machine: Machine

    @cached_property
    def _units(self) -> Units:
        machine, epsilon = self.machine, self.machine.epsilon
        gradient = 1.0 if epsilon is None else max(float(np.abs(machine.targets).max()), epsilon)
        return Units.of(machine.C, machine.scale, gradient)

    @cached_property
    def _function(self) -> Adapting:
        units, machine = self._units, self.machine
        assert isinstance(machine.K, Gram)
        if units.length == units.gradient == 1.0 and isinstance(machine.function, Adapting):
            return machine.function
        return Adapting(units.curvature(machine.K.matrix), machine.eta / units.value, machine.tau)

    @cached_property
    def _by_features(self) -> AdaptingFeatures:
        units, machine = self._units, self.machine
        assert isinstance(machine.K, LowRank)
        if units.length == units.gradient == 1.0 and isinstance(machine.function, AdaptingFeatures):
            return machine.function
        return AdaptingFeatures(
            machine.K.Phi, units.length / units.gradient, machine.eta / units.value, machine.tau
        )

    @cached_property
    def _sign(self) -> FloatArray:
        n = self.machine.y.size
        return self.machine.y if self.machine.epsilon is None else np.repeat([1.0, -1.0], n)

    @cached_property
    def _gain(self) -> FloatArray:
        """What each x >= 0 gains."""
        targets, epsilon = self.machine.targets, self.machine.epsilon
        if epsilon is None:
            return np.ones(targets.size)
        return np.concatenate([targets - epsilon, -targets - epsilon]) / self._units.gradient

    @cached_property
    def _box(self) -> BoxPlane:
        """The set of x >= 0."""
        upper = np.full(self._sign.size, self.machine.C / self._units.length)
        return BoxPlane(np.zeros(upper.size), upper, self._sign if self.machine.bias else None)

    @cached_property
    def _cone(self) -> AdaptiveCone:
        f = self._function
        assert isinstance(self.machine.K, Gram)
        return AdaptiveCone(
            f.K, self._units.factor(self.machine.K), f.eta, f.tau, self._gain, self._sign, self._box
        )

    def _sums(self, x: FloatArray) -> FloatArray:
        """The a of an x >= 0."""
        n = self.machine.y.size
        signed = self._sign * x
        return signed if signed.size == n else signed[:n] + signed[n:]

    def formulations(self) -> tuple[Formulation, ...]:
        units, machine = self._units, self.machine
        down, up = (
            partial(Formulation, dual=True, scale=-units.value),
            partial(Formulation, scale=units.value),
        )
        curved = frozenset({Feature.SIMPLEX, Feature.CURVED, Feature.BOX})
        because = (
            "the best F for given coefficients is the positive part of 11' + Gamma - (tau/2) I"
        )
        quartic = "11' + Gamma is positive semidefinite, so that F = 11' + Gamma: no eigenvalues"
        name = "smooth" if machine.tau else "quartic"
        if isinstance(machine.K, LowRank):
            needs, why = (
                frozenset({Feature.SIMPLEX, Feature.APPLIED, Feature.BOX}),
                because if machine.tau else quartic,
            )
            return (down(name, needs, self._many, self._recover, self._lift, why),)
        found = [
            down(
                name,
                curved,
                self._smooth,
                self._recover,
                self._lift,
                because if machine.tau else quartic,
            )
        ]
        if machine.y.size > MOST_POINTS:
            return tuple(found)
        soc = frozenset({Feature.CONE, Feature.QUADRATIC, Feature.SOC})
        psd = frozenset({Feature.CONE, Feature.QUADRATIC, Feature.PSD})
        if not machine.tau:
            squares = "K o K is positive semidefinite and has no negative entry, so that u = a o a may be relaxed"
            found.append(
                down("SOCP", soc, self._socp, self._recover_split, self._lift_socp, squares)
            )
        shift = machine.tau * machine.eta * machine.y.size
        schur = "W >= M and W psd have M_+ as the least W in the Frobenius norm; Gamma is a Schur complement"
        game = "the game is convex in F, concave in a, and the coefficients lie in a compact set (Sion)"
        primal = "a'(F o K)a / 2 and its conjugate: a Schur complement"
        saddle = frozenset({Feature.SADDLE, Feature.BOX, Feature.SPECTRAL})
        found += [
            down("SDP dual", psd, self._sdp_dual, self._recover_split, self._lift_sdp, schur),
            up(
                "SDP primal", psd, self._sdp_primal, self._recover_primal, None, primal, shift=shift
            ),
            up("saddle", saddle, self._saddle, self._recover_saddle, self._lift_saddle, game),
        ]
        return tuple(found)

    def _smooth(self) -> SimplexForm:
        if self.machine.epsilon is None:
            objective = SmoothFunction(
                self._sign.size, self._near_margin, self._rough_margin, self._lipschitz
            )
            return SimplexForm(objective, self.machine.domain(self._units.length))
        return SimplexForm(
            SmoothFunction(self._sign.size, self._near_tube, self._rough_tube, self._lipschitz),
            self._box,
        )

    def _many(self) -> SimplexForm:
        """The form of a kernel given by features."""
        margin = self.machine.epsilon is None
        domain = self.machine.domain(self._units.length) if margin else self._box
        return SimplexForm(
            MatrixFreeFunction(domain.size, self._bent_margin if margin else self._bent_tube),
            domain,
        )

    def _bent_margin(self, a: FloatArray) -> HessianOperator:
        return Shifted(near(self._by_features, a), self.machine.y, a)

    def _bent_tube(self, x: FloatArray) -> HessianOperator:
        return Halves(near(self._by_features, self._sums(x)), self._gain, x)

    def _near_margin(self, a: FloatArray) -> LocalModel:
        here, y = self._function.near(a), self.machine.y
        return LocalModel(
            here.value - float(y @ a), here.gradient - y, here.curvature, below=here.below
        )

    def _near_tube(self, x: FloatArray) -> LocalModel:
        here = self._function.near(self._sums(x))
        gradient = np.concatenate([here.gradient, -here.gradient]) - self._gain
        value, below = here.value - float(self._gain @ x), here.below
        doubled = None if below is None else cache(lambda: _doubled(below()))
        return LocalModel(value, gradient, lambda: _doubled(here.curvature()), below=doubled)

    def _rough_margin(self) -> StartModel:
        return StartModel(self._rough, -self.machine.y)

    def _rough_tube(self) -> StartModel:
        return StartModel(_doubled(self._rough), -self._gain)

    @property
    def _rough(self) -> FloatArray:
        gradient = float(np.abs(self.machine.targets).mean()) / self._units.gradient
        return self._function.rough(gradient, self.machine.C / self._units.length)

    def _lipschitz(self) -> float:
        """lambda_max(K) + C^2 / (4 eta) lambda_max(K o K) + C^2 / (2 eta) max_i sum_j K_ij^2; twice that for a tube."""
        f, box = self._function, self.machine.C / self._units.length
        squares, bend = f.K * f.K, box * box / (4 * f.eta)
        largest = float(np.linalg.eigvalsh(f.K)[-1]) + bend * float(np.linalg.eigvalsh(squares)[-1])
        L = largest + 2 * bend * float(squares.sum(axis=1).max())
        return L if self.machine.epsilon is None else 2 * L

    def _socp(self) -> ConeForm:
        return self._cone.quartic()

    def _sdp_dual(self) -> ConeForm:
        return self._cone.dual()

    def _sdp_primal(self) -> ConeForm:
        return self._cone.primal()

    @property
    def _largest_trace(self) -> float:
        """A bound of tr F: that of 11' + Gamma."""
        f, box = self._function, self.machine.C / self._units.length
        return len(f.K) + box * box * float(f.K.trace()) / (4 * f.eta)

    def _saddle(self) -> SaddleForm:
        n = self.machine.y.size
        coupling = SaddleOracle(self._game, self._gradient_weights, self._gradient_split)
        return SaddleForm(coupling, Spectrahedron(n + 1, self._largest_trace), self._box)

    def _game(self, x: FloatArray, y: FloatArray) -> float:
        F, f, a = smat(x)[:-1, :-1], self._function, self._sums(y)
        off = F - 1.0
        penalty = f.eta * (float(np.vdot(off, off)) + f.tau * float(F.trace()))
        return float(self._gain @ y) - float(a @ ((F * f.K) @ a)) / 2 + penalty

    def _gradient_weights(self, x: FloatArray, y: FloatArray) -> FloatArray:
        M, f, a = smat(x), self._function, self._sums(y)
        gradient = np.zeros_like(M)
        gradient[:-1, :-1] = 2 * f.eta * (M[:-1, :-1] - 1.0) - np.multiply.outer(a, a) * f.K / 2
        gradient[:-1, :-1].flat[:: len(M)] += f.tau * f.eta
        return svec(gradient)

    def _gradient_split(self, x: FloatArray, y: FloatArray) -> FloatArray:
        product = (smat(x)[:-1, :-1] * self._function.K) @ self._sums(y)
        return self._gain - self._sign * (
            product if product.size == y.size else np.tile(product, 2)
        )

    def _point(self, a: FloatArray, machine: FloatArray | None = None) -> Point:
        a = self._units.length * a
        proof = None if machine is None else {"machine": self._units.length * machine}
        return Point(
            {"alpha": self.machine.y * a} if self.machine.epsilon is None else {"beta": a}, proof
        )

    def _recover(self, x: FloatArray, y: FloatArray | None) -> Point:
        if self.machine.epsilon is None:
            return self._point(x, y)
        return self._point(self._sums(x), None if y is None else self._sums(y))

    def _recover_split(self, x: FloatArray, y: FloatArray | None) -> Point:
        return self._point(self._sums(x[: self._sign.size]))

    def _recover_primal(self, x: FloatArray, y: FloatArray | None) -> Point:
        return self._point(
            self._sums(np.zeros(self._sign.size) if y is None else y[: self._sign.size])
        )

    def _recover_saddle(self, x: FloatArray, y: FloatArray | None) -> Point:
        return self._recover_primal(x, y)

    def _coefficients(self, point: Point) -> FloatArray:
        return self.machine.coefficients(point) / self._units.length

    def _split(self, a: FloatArray) -> FloatArray:
        return (
            self.machine.y * a
            if self.machine.epsilon is None
            else np.concatenate([np.maximum(a, 0), np.maximum(-a, 0)])
        )

    def _lift(self, point: Point) -> Start:
        a = self._coefficients(point)
        return Start(a if self.machine.epsilon is None else self._split(a))

    def _lift_socp(self, point: Point) -> Start:
        return Start(self._cone.lift_quartic(self._split(self._coefficients(point))))

    def _lift_sdp(self, point: Point) -> Start:
        a = self._coefficients(point)
        return Start(self._cone.lift_dual(self._split(a), self._function.weights(a)))

    def _lift_saddle(self, point: Point) -> Start:
        a = self._coefficients(point)
        F = np.zeros((a.size + 1, a.size + 1))
        F[:-1, :-1] = self._function.weights(a)
        F[-1, -1] = max(self._largest_trace - float(F.trace()), 0.0)
        return Start(svec(F), self._split(a))


def _doubled(H: FloatArray) -> FloatArray:
    """The curvature of u - v in (u, v)."""
    return np.block([[H, -H], [-H, H]])
