"""The equivalent forms of several kernels learned from similarities, and the way back from each.

In the units of `klopt.problems._margin.forms`:  a = length * x,  value = length * (value of the
form).
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
from klopt.model.sets import Product, SimpleSet, Simplex
from klopt.problems._margin.forms import Units
from klopt.problems._similarity.cone_forms import SimilarityCone
from klopt.problems._similarity.descent import Descent
from klopt.problems._similarity.sets import Chart, Free, Kept
from klopt.problems._similarity.several import Several
from klopt.problems._similarity.shares import Eliminated
from klopt.problems._similarity.smooth import Smooth
from klopt.problems._similarity.spectra_cone import SpectraCone
from klopt.programs.duality import dual_of, from_dual

__all__ = ["Forms"]

SMALLEST = 1e-12


@dataclass(frozen=True, eq=False)
class Forms:
    """The forms of several kernels."""

    several: Several

    @cached_property
    def _length(self) -> float:
        # The machine's kernel is sum K_i / g_i, m^2 times as large as one of them where all g are
        # the same.
        data = self.several.data
        return Units.of(data.C, data.scale * len(data.S) ** 2).length

    @cached_property
    def _smooth(self) -> Smooth:
        data = self.several.data
        norm = data.loss.name == "frobenius"
        return Smooth(
            self.several.blocks, data.y, data.weight, norm, self._length, apart=True, C=data.C
        )

    @cached_property
    def _cone(self) -> SimilarityCone | SpectraCone:
        data, kappa = self.several.data, self.several.data.scale
        assert data.trace is not None
        root, total = float(np.sqrt(self._length * kappa)), data.trace / kappa
        box, weight = (
            data.C / self._length,
            data.rho * kappa ** (2 if self.several.squared else 1) / self._length,
        )
        if self.several.fixed:
            spectra = self.several.spectra
            return SpectraCone(
                spectra.values / kappa, np.array(spectra.bases), data.y, box, weight, total, root
            )
        groups = tuple((S / kappa,) for S in data.S)
        return SimilarityCone(groups, data.y, box, weight, total, root, data.loss.name)

    @cached_property
    def _program(self) -> ConeForm:
        return self._cone.form()

    def formulations(self) -> tuple[Formulation, ...]:
        name, found = self.several.data.loss.name, []
        up, down = (
            partial(Formulation, scale=self._length),
            partial(Formulation, scale=-self._length),
        )
        kinks = self.several.fixed and not self.several.data.rho  # max_j |V_i'a|_j
        if name in ("squared", "frobenius") and not kinks:
            needs = frozenset({Feature.SIMPLEX, Feature.CURVED, Feature.BOX})
            because = "against given multipliers and shares the best kernels are projections of eigenvalues"
            found.append(
                down(
                    "smooth", needs, self._build_smooth, self._from_smooth, self._to_smooth, because
                )
            )
        if name != "own":
            cones = {Feature.CONE} | (set() if self.several.fixed else {Feature.PSD})
            cones |= set() if name == "l1" else {Feature.SOC}
            kind = "SOCP" if self.several.fixed else "SDP"
            schur = "t >= g_i'K_i^-1 g_i if and only if [[K_i, g_i], [g_i', t]] is positive semidefinite"
            slater = (
                "strong duality: alpha is bounded, and kernels of full rank are strictly feasible"
            )
            found.append(up(kind, frozenset(cones), self._build_cone, self._from_cone, None, schur))
            dual = partial(down, dual=True)
            found.append(
                dual(
                    f"{kind} dual",
                    frozenset(cones),
                    self._build_dual,
                    self._from_dual,
                    None,
                    slater,
                )
            )
        if name != "l1":  # its kinks, one for each entry, leave nothing of a game's smoothness
            game = frozenset(
                {Feature.SADDLE, Feature.BOX}
                | (set() if self.several.fixed else {Feature.SPECTRAL})
            )
            because = "convex in the kernels, concave in alpha, and both sets are compact"
            found.append(
                up("saddle", game, self._build_saddle, self._from_saddle, self._to_saddle, because)
            )
        sets = {Feature.SIMPLEX, Feature.NONSMOOTH} | (
            set() if self.several.fixed else {Feature.SPECTRAL}
        )
        called = "simplices" if self.several.fixed else "spectrahedra"
        because = "the machine's value is a convex function of its kernels"
        descent = partial(up, called, frozenset(sets), because=because)
        found.append(
            descent(build=self._build_descent, recover=self._from_descent, lift=self._to_descent)
        )
        return tuple(found)

    @cached_property
    def _alone(self) -> Eliminated:
        data = self.several.data
        return Eliminated(self.several.spectra, data.y, data.weight, self._length)

    def _build_smooth(self) -> SimplexForm:
        data = self.several.data
        if self.several.fixed:
            return SimplexForm(self._alone.objective(), data.domain(self._length))
        return SimplexForm(
            self._smooth.objective(), Product((data.domain(self._length), Simplex(len(data.S))))
        )

    def _from_smooth(self, x: FloatArray, y: FloatArray | None) -> Point:
        data = self.several.data
        gamma = self._alone.nearest(x).g if self.several.fixed else self.several.shares(x[data.n :])
        point = {"alpha": self._length * x[: data.n] * data.y, "gamma": gamma}
        if self.several.squared:
            return Point(point)
        factors = [
            near.factor for near, _ in self._smooth.nearest(np.concatenate([x[: data.n], gamma]))
        ]
        return Point({**point, "kernels": np.array([H @ H.T for H in factors])})

    def _to_smooth(self, point: Point) -> Start:
        x = point.alpha * self.several.data.y / self._length
        return Start(x if self.several.fixed else np.concatenate([x, point.gamma]))

    def _build_cone(self) -> ConeForm:
        return self._program

    def _from_cone(self, x: FloatArray, y: FloatArray | None) -> Point:
        data = self.several.data
        kernels = data.scale * np.array(self._cone.kernels(x))
        if y is None:
            return Point({"alpha": np.zeros(data.n), "kernels": kernels})
        alpha, Z = self._cone.multipliers(y)
        a = self._length * alpha * data.y
        r = np.sqrt(np.maximum(np.einsum("i,kij,j->k", a, kernels, a), 0.0))
        duals = {"gradients": np.array(Z)} if Z else None
        return Point(
            {"alpha": a * data.y, "kernels": kernels, "gamma": self.several.shares(r)}, duals
        )

    def _build_dual(self) -> ConeForm:
        return dual_of(self._program)

    def _from_dual(self, x: FloatArray, y: FloatArray | None) -> Point:
        return self._from_cone(*from_dual(self._program, x, y))

    # --- the game of kernels and machine; its left side holds svec of the kernels, or their
    # eigenvalues

    @cached_property
    def _chart(self) -> Chart:
        data = self.several.data
        return Kept(self.several.spectra.bases) if self.several.fixed else Free(data.n, len(data.S))

    def _home(self) -> SimpleSet:
        assert self.several.data.trace is not None
        return self._chart.home(self.several.data.trace)

    def _build_saddle(self) -> SaddleForm:
        game = SaddleOracle(self._value, self._gradient_kernels, self._gradient_multipliers)
        return SaddleForm(game, self._home(), self.several.data.domain(self._length))

    def _radii(self, kernels: list[FloatArray], x: FloatArray) -> FloatArray:
        q = np.array([float(x @ (K @ x)) for K in kernels])
        return np.asarray(np.sqrt(np.maximum(q, SMALLEST * self.several.data.scale)))

    def _value(self, k: FloatArray, x: FloatArray) -> float:
        data, kernels = self.several.data, self._chart.kernels(k)
        loss = data.rho * sum(data.loss.value(K - S) for K, S in zip(kernels, data.S, strict=True))
        machine = float(data.y @ x) - self._length / 2 * float(self._radii(kernels, x).sum()) ** 2
        return machine + loss / self._length

    def _gradient_kernels(self, k: FloatArray, x: FloatArray) -> FloatArray:
        data, kernels = self.several.data, self._chart.kernels(k)
        r = self._radii(kernels, x)
        gradients = [
            data.rho / self._length * data.loss.gradient(K - S)
            - np.outer(self._length / 2 * r.sum() / ri * x, x)
            for K, S, ri in zip(kernels, data.S, r, strict=True)
        ]
        return self._chart.vector(gradients)

    def _gradient_multipliers(self, k: FloatArray, x: FloatArray) -> FloatArray:
        kernels = self._chart.kernels(k)
        r = self._radii(kernels, x)
        images = sum(
            (r.sum() / ri * (K @ x) for K, ri in zip(kernels, r, strict=True)), np.zeros(x.size)
        )
        return np.asarray(self.several.data.y - self._length * images)

    def _from_saddle(self, x: FloatArray, y: FloatArray | None) -> Point:
        data, kernels = self.several.data, self._chart.kernels(x)
        a = np.zeros(data.n) if y is None else y
        gamma = self.several.shares(self._radii(kernels, a))
        return Point(
            {"alpha": self._length * a * data.y, "kernels": np.array(kernels), "gamma": gamma}
        )

    def _to_saddle(self, point: Point) -> Start:
        return Start(
            self._chart.vector(point.kernels), point.alpha * self.several.data.y / self._length
        )

    # --- descent over the kernels alone, which are held as in the game

    @cached_property
    def _descent(self) -> Descent:
        data = self.several.data
        return Descent(data, self._chart, tuple((S,) for S in data.S), self._length)

    def _build_descent(self) -> SimplexForm:
        f, home = self._descent, self._home()
        return SimplexForm(Oracle(home.size, f.value, f.gradient, smooth=False), home)

    def _from_descent(self, x: FloatArray, y: FloatArray | None) -> Point:
        data, kernels = self.several.data, np.array(self._chart.kernels(x))
        if y is None or not y.size:
            there = self._descent.settled(x)
            return Point({"alpha": data.y * there.a, "gamma": there.g, "kernels": kernels})
        a, g, Z = self._descent.mean_point(y.reshape(-1, x.size + 1))
        return Point(
            {"alpha": data.y * a, "gamma": g, "kernels": kernels}, {"gradients": Z, "shares": g}
        )

    def _to_descent(self, point: Point) -> Start:
        return Start(self._chart.vector(point.kernels))
