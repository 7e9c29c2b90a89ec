"""The equivalent forms of one kernel learned from similarities, and the way back from each.

In the units of `klopt.problems._margin.forms`:  a = length * x,  value = length * (value of the
form) + shift.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.cones import Feature, smat, svec
from klopt.model.forms import ConeForm, SaddleForm, SimplexForm, Start
from klopt.model.functions import Oracle, SaddleOracle
from klopt.model.problem import Formulation, Point
from klopt.problems._margin.forms import Units
from klopt.problems._similarity.cone_forms import SimilarityCone
from klopt.problems._similarity.descent import Descent
from klopt.problems._similarity.proof import Single
from klopt.problems._similarity.sets import Free, Within, kernel_set
from klopt.problems._similarity.smooth import Smooth
from klopt.problems._similarity.split import EntrywiseGame
from klopt.programs.duality import dual_of, from_dual

__all__ = ["Forms"]


@dataclass(frozen=True, eq=False)
class Forms:
    """The forms of a single kernel."""

    single: Single

    @cached_property
    def _length(self) -> float:
        return Units.of(self.single.data.C, self.single.data.scale).length

    @cached_property
    def _smooth(self) -> Smooth:
        data = self.single.data
        count = len(data.S) if self.single.squared else 1
        norm = not self.single.squared
        return Smooth(
            (self.single.block,),
            data.y,
            data.weight * count,
            norm,
            self._length,
            apart=False,
            C=data.C,
        )

    @cached_property
    def _cone(self) -> SimilarityCone:
        data, kappa = self.single.data, self.single.data.scale
        power = 2 if self.single.squared else 1
        total = None if data.trace is None else data.trace / kappa
        root, weight = float(np.sqrt(self._length * kappa)), data.rho * kappa**power / self._length
        groups = (tuple(S / kappa for S in data.S),)
        return SimilarityCone(
            groups, data.y, data.C / self._length, weight, total, root, data.loss.name
        )

    @cached_property
    def _program(self) -> ConeForm:
        return self._cone.form()

    def formulations(self) -> tuple[Formulation, ...]:
        data, found = self.single.data, []
        shift = data.rho * self.single.spread if self.single.squared else 0.0
        down = partial(Formulation, scale=-self._length, shift=shift)
        up = partial(Formulation, scale=self._length)
        norm = data.loss.name == "frobenius" and len(data.S) == 1 and data.trace is not None
        if self.single.squared or norm:
            needs = frozenset({Feature.SIMPLEX, Feature.CURVED, Feature.BOX})
            because = "against given multipliers the best kernel is a projection of eigenvalues"
            found.append(
                down(
                    "smooth", needs, self._build_smooth, self._from_smooth, self._to_smooth, because
                )
            )
        if data.loss.name != "own":
            cones = {Feature.CONE, Feature.PSD} | (
                set() if data.loss.name == "l1" else {Feature.SOC}
            )
            schur = "t >= g'K^-1 g if and only if [[K, g], [g', t]] is positive semidefinite"
            slater = (
                "strong duality: alpha is bounded, and a kernel of full rank is strictly feasible"
            )
            straight = partial(up, shift=shift, needs=frozenset(cones), because=schur)
            found.append(straight("SDP", build=self._build_cone, recover=self._from_cone))
            dual = partial(down, needs=frozenset(cones), because=slater, dual=True)
            found.append(dual("SDP dual", build=self._build_dual, recover=self._from_dual))
        # Without a trace nearly right gradients prove little, and the alternation would take
        # thousands of steps.
        if data.loss.name == "l1" and data.trace is not None:
            split = frozenset({Feature.SPLIT, Feature.BOX, Feature.SPECTRAL})
            because = "|X_ij| = max of Z_ij X_ij over |Z_ij| <= 1"
            found.insert(
                0,
                up(
                    "splitting", split, self._build_split, self._from_split, self._to_split, because
                ),
            )
        if data.loss.name != "l1":
            game = frozenset({Feature.SADDLE, Feature.BOX, Feature.SPECTRAL})
            because = "convex in K, concave in alpha, and both sets are compact"
            found.append(
                up("saddle", game, self._build_saddle, self._from_saddle, self._to_saddle, because)
            )
        ball = frozenset({Feature.SIMPLEX, Feature.NONSMOOTH, Feature.SPECTRAL})
        because = "the machine's value is a convex function of its kernel"
        found.append(
            up(
                "spectrahedron",
                ball,
                self._build_descent,
                self._from_descent,
                self._to_descent,
                because,
            )
        )
        return tuple(found)

    def _build_smooth(self) -> SimplexForm:
        return SimplexForm(self._smooth.objective(), self.single.data.domain(self._length))

    def _from_smooth(self, x: FloatArray, y: FloatArray | None) -> Point:
        alpha = self._length * x * self.single.data.y
        if self.single.squared:
            return Point({"alpha": alpha})
        ((near, _),) = self._smooth.nearest(x)
        return Point({"alpha": alpha, "kernel": near.factor @ near.factor.T})

    def _to_smooth(self, point: Point) -> Start:
        return Start(point.alpha * self.single.data.y / self._length)

    def _build_cone(self) -> ConeForm:
        return self._program

    def _from_cone(self, x: FloatArray, y: FloatArray | None) -> Point:
        data = self.single.data
        kernel = {"kernel": data.scale * self._cone.kernels(x)[0]}
        if y is None:
            return Point({"alpha": np.zeros(data.n), **kernel})
        alpha, Z = self._cone.multipliers(y)
        return Point(
            {"alpha": self._length * alpha, **kernel}, {"gradients": np.array(Z)} if Z else None
        )

    def _build_dual(self) -> ConeForm:
        return dual_of(self._program)

    def _from_dual(self, x: FloatArray, y: FloatArray | None) -> Point:
        return self._from_cone(*from_dual(self._program, x, y))

    @cached_property
    def _game(self) -> EntrywiseGame:
        data, length = self.single.data, self._length
        assert data.trace is not None
        return EntrywiseGame(
            data.S, data.y, data.domain(length), length, data.weight / length, data.trace
        )

    def _build_split(self) -> SaddleForm:
        return self._game.form()

    def _from_split(self, x: FloatArray, y: FloatArray | None) -> Point:
        data = self.single.data
        if y is None:
            return Point({"alpha": np.zeros(data.n), "kernel": smat(x)})
        a, Z = self._game.split(y)
        gradients = np.array([smat(row) for row in Z]) / self._game.weight
        return Point(
            {"alpha": self._length * a * data.y, "kernel": smat(x)}, {"gradients": gradients}
        )

    def _to_split(self, point: Point) -> Start:
        gradients = point.dual.get("gradients")
        Z = (
            np.zeros(0)
            if gradients is None
            else np.concatenate([svec(part) for part in gradients]) * self._game.weight
        )
        start = self._to_saddle(point)
        return Start(
            start.x, None if gradients is None or start.y is None else np.concatenate([start.y, Z])
        )

    @cached_property
    def _descent(self) -> Descent:
        data = self.single.data
        chart = Within(data.n) if data.trace is None else Free(data.n, 1)
        return Descent(data, chart, (data.S,), self._length)

    def _build_descent(self) -> SimplexForm:
        f, home = self._descent, self._descent.chart.home(self.single.most)
        return SimplexForm(Oracle(home.size, f.value, f.gradient, smooth=False), home)

    def _from_descent(self, x: FloatArray, y: FloatArray | None) -> Point:
        data = self.single.data
        kernel = {"kernel": self._descent.chart.kernels(x)[0]}
        if y is None or not y.size:
            return Point({"alpha": data.y * self._descent.settled(x).a, **kernel})
        a, _, Z = self._descent.mean_point(y.reshape(-1, x.size + 1))
        return Point({"alpha": data.y * a, **kernel}, {"gradients": Z})

    def _to_descent(self, point: Point) -> Start:
        return Start(self._descent.chart.vector([smat(self._to_saddle(point).x)]))

    def _build_saddle(self) -> SaddleForm:
        data = self.single.data
        game = SaddleOracle(self._value, self._gradient_kernel, self._gradient_multipliers)
        return SaddleForm(
            game, kernel_set(data.n, data.trace, self.single.most), data.domain(self._length)
        )

    def _value(self, k: FloatArray, x: FloatArray) -> float:
        data, K = self.single.data, smat(k)
        machine = float(data.y @ x) - self._length / 2 * float(x @ (K @ x))
        return machine + data.losses(K, data.S) / self._length

    def _gradient_kernel(self, k: FloatArray, x: FloatArray) -> FloatArray:
        data, K = self.single.data, smat(k)
        gradient = sum((data.loss.gradient(K - S) for S in data.S), np.zeros_like(K))
        return svec(data.rho / self._length * gradient - np.outer(self._length / 2 * x, x))

    def _gradient_multipliers(self, k: FloatArray, x: FloatArray) -> FloatArray:
        return self.single.data.y - self._length * (smat(k) @ x)

    def _from_saddle(self, x: FloatArray, y: FloatArray | None) -> Point:
        data = self.single.data
        a = np.zeros(data.n) if y is None else y
        return Point({"alpha": self._length * a * data.y, "kernel": smat(x)})

    def _to_saddle(self, point: Point) -> Start:
        K = point.primal.get("kernel")
        return Start(svec(self.single.block.S if K is None else K), self._to_smooth(point).x)
