"""The equivalent forms of kernels learned from similarities, and the way back from each.

In the units of `klopt.problems._margin.forms`

    a = length * x,    value = length * (value of the form) + shift,

with the sign of length changed where the form is a dual.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.cones import smat, svec
from klopt.model.features import Feature
from klopt.model.forms import ConeForm, SaddleForm, SimplexForm, Start
from klopt.model.functions import Oracle, SaddleOracle
from klopt.model.problem import Formulation, Point
from klopt.model.sets import Product, SimpleSet, Simplex
from klopt.problems._margin.forms import Units
from klopt.problems._margin.proof import Penalty
from klopt.problems._similarity.cone_programs import KernelConeProgram, SpectraConeProgram
from klopt.problems._similarity.function import MultiplierObjective
from klopt.problems._similarity.inner_svm import KernelObjective
from klopt.problems._similarity.instance import SimilarityData
from klopt.problems._similarity.kernel_sets import (
    BoundedTraceCoordinates,
    EigenvalueCoordinates,
    KernelCoordinates,
    SvecCoordinates,
    kernel_set,
)
from klopt.problems._similarity.spectra import SpectraObjective
from klopt.problems._similarity.splitting import EntrywiseSplitting
from klopt.problems._similarity.witness import SeveralKernels, SingleKernel
from klopt.programs.duality import dual_of, from_dual

__all__ = ["SeveralKernelsForms", "SingleKernelForms"]

MIN_RELATIVE_NORM = 1e-12
"""Smallest x'Kx relative to the diagonal of a kernel, where a gradient divides by its root."""

SMOOTH_NEEDS = frozenset({Feature.SIMPLEX, Feature.CURVED, Feature.BOX})
CONE_BECAUSE_ONE = "t >= g'K^-1 g if and only if [[K, g], [g', t]] is positive semidefinite"
CONE_BECAUSE_MANY = (
    "t >= g_i'K_i^-1 g_i if and only if [[K_i, g_i], [g_i', t]] is positive semidefinite"
)


class KernelForms(ABC):
    """What the forms of one kernel and those of several have in common."""

    @property
    @abstractmethod
    def data(self) -> SimilarityData:
        """The checked data."""

    @property
    @abstractmethod
    def length(self) -> float:
        """The unit of the multipliers."""

    @property
    @abstractmethod
    def cone(self) -> KernelConeProgram | SpectraConeProgram:
        """The cone program in the form's units."""

    @property
    @abstractmethod
    def objective(self) -> KernelObjective:
        """The value of the best support vector machine as a function of the kernels."""

    @property
    @abstractmethod
    def max_trace(self) -> float:
        """The trace of the kernels, or a bound of it."""

    @cached_property
    def _scaling(self) -> tuple[Penalty, float, float]:
        """The penalties box and weight of the cone program, and the root of its margins."""
        data = self.data
        power = 2 if data.loss.name == "squared" else 1
        weight = data.rho * data.scale**power / self.length
        return data.C / self.length, weight, float(np.sqrt(self.length * data.scale))

    @cached_property
    def _program(self) -> ConeForm:
        return self.cone.form()

    def _build_cone(self) -> ConeForm:
        return self._program

    def _build_dual(self) -> ConeForm:
        return dual_of(self._program)

    @abstractmethod
    def _from_cone(self, x: FloatArray, y: FloatArray | None) -> Point: ...

    def _from_dual(self, x: FloatArray, y: FloatArray | None) -> Point:
        return self._from_cone(*from_dual(self._program, x, y))

    def _build_descent(self) -> SimplexForm:
        f = self.objective
        domain = f.coordinates.domain(self.max_trace)
        return SimplexForm(Oracle(domain.size, f.value, f.gradient, smooth=False), domain)

    def _build_saddle(self) -> SaddleForm:
        coupling = SaddleOracle(self._value, self._kernel_gradient, self._multiplier_gradient)
        return SaddleForm(coupling, self._saddle_kernels(), self.data.domain(self.length))

    @abstractmethod
    def _saddle_kernels(self) -> SimpleSet:
        """The set of kernels of the saddle form."""

    @abstractmethod
    def _value(self, k: FloatArray, x: FloatArray) -> float: ...

    @abstractmethod
    def _kernel_gradient(self, k: FloatArray, x: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _multiplier_gradient(self, k: FloatArray, x: FloatArray) -> FloatArray: ...


@dataclass(frozen=True, eq=False)
class SingleKernelForms(KernelForms):
    """The forms of a single kernel."""

    best: SingleKernel

    @property
    def data(self) -> SimilarityData:
        return self.best.data

    @cached_property
    def length(self) -> float:
        return Units.of(self.data.C, self.data.scale).length

    @property
    def max_trace(self) -> float:
        return self.best.max_trace

    @cached_property
    def shift(self) -> float:
        """What the squared losses of several similarities have beyond that of their mean."""
        return self.data.rho * self.best.spread if self.best.squared else 0.0

    def formulations(self) -> tuple[Formulation, ...]:
        """Return the forms that the loss and the trace allow, the one to prefer first."""
        data = self.data
        loss = data.loss.name
        found = []
        # Without a trace nearly right gradients prove little, and the alternation would take
        # thousands of steps.
        if loss == "l1" and data.trace is not None:
            found.append(self._split_formulation())
        # One norm of a matrix of given trace is made smooth by its length t.
        one_norm = loss == "frobenius" and len(data.S) == 1 and data.trace is not None
        if self.best.squared or one_norm:
            found.append(self._smooth_formulation())
        if loss != "own":
            found += self._cone_formulations()
        # The kinks of l1, one for each entry, leave nothing of a saddle form's smoothness.
        if loss != "l1":
            found.append(self._saddle_formulation())
        found.append(self._descent_formulation())
        return tuple(found)

    # --- the multipliers alone

    def _smooth_formulation(self) -> Formulation:
        return Formulation(
            "smooth",
            SMOOTH_NEEDS,
            self._build_smooth,
            self._from_smooth,
            self._to_smooth,
            "against given multipliers the best kernel is a projection of eigenvalues",
            scale=-self.length,
            shift=self.shift,
        )

    @cached_property
    def _smooth(self) -> MultiplierObjective:
        data = self.data
        count = len(data.S) if self.best.squared else 1
        return MultiplierObjective(
            (self.best.projection,),
            data.y,
            data.weight * count,
            by_norm=not self.best.squared,
            length=self.length,
            has_shares=False,
            C=data.C,
        )

    def _build_smooth(self) -> SimplexForm:
        return SimplexForm(self._smooth.objective(), self.data.domain(self.length))

    def _from_smooth(self, x: FloatArray, y: FloatArray | None) -> Point:
        alpha = self.length * x * self.data.y
        if self.best.squared:
            return Point({"alpha": alpha})
        ((here, _),) = self._smooth.nearest(x)
        H = here.near.factor
        return Point({"alpha": alpha, "kernel": H @ H.T})

    def _to_smooth(self, point: Point) -> Start:
        return Start(point.alpha * self.data.y / self.length)

    # --- the semidefinite program and its dual

    def _cone_formulations(self) -> list[Formulation]:
        cones = {Feature.CONE, Feature.PSD}
        if self.data.loss.name != "l1":
            cones.add(Feature.SOC)
        slater = "strong duality: alpha is bounded, and a kernel of full rank is strictly feasible"
        program = partial(Formulation, needs=frozenset(cones), shift=self.shift)
        return [
            program(
                "SDP",
                build=self._build_cone,
                recover=self._from_cone,
                because=CONE_BECAUSE_ONE,
                scale=self.length,
            ),
            program(
                "SDP dual",
                build=self._build_dual,
                recover=self._from_dual,
                because=slater,
                dual=True,
                scale=-self.length,
            ),
        ]

    @cached_property
    def cone(self) -> KernelConeProgram:
        data = self.data
        box, weight, root = self._scaling
        groups = (tuple(S / data.scale for S in data.S),)
        total = None if data.trace is None else data.trace / data.scale
        return KernelConeProgram(groups, data.y, box, weight, total, root, data.loss.name)

    def _from_cone(self, x: FloatArray, y: FloatArray | None) -> Point:
        data = self.data
        K = data.scale * self.cone.kernels(x)[0]
        if y is None:
            return Point({"alpha": np.zeros(data.n), "kernel": K})
        alpha, Z = self.cone.multipliers(y)
        duals = {"gradients": np.array(Z)} if Z else None
        return Point({"alpha": self.length * alpha, "kernel": K}, duals)

    # --- the entrywise loss as a splitting

    def _split_formulation(self) -> Formulation:
        return Formulation(
            "splitting",
            frozenset({Feature.SPLIT, Feature.BOX, Feature.SPECTRAL, Feature.PRODUCT}),
            self._build_split,
            self._from_split,
            self._to_split,
            "|X_ij| = max of Z_ij X_ij over |Z_ij| <= 1",
            scale=self.length,
        )

    @cached_property
    def _splitting(self) -> EntrywiseSplitting:
        data = self.data
        assert data.trace is not None
        weight = data.weight / self.length
        box = data.domain(self.length)
        return EntrywiseSplitting(data.S, data.y, box, self.length, weight, data.trace)

    def _build_split(self) -> SaddleForm:
        return self._splitting.form()

    def _from_split(self, x: FloatArray, y: FloatArray | None) -> Point:
        data = self.data
        if y is None:
            return Point({"alpha": np.zeros(data.n), "kernel": smat(x)})
        a, Z = self._splitting.split(y)
        gradients = np.array([smat(row) for row in Z]) / self._splitting.weight
        alpha = self.length * a * data.y
        return Point({"alpha": alpha, "kernel": smat(x)}, {"gradients": gradients})

    def _to_split(self, point: Point) -> Start:
        start = self._to_saddle(point)
        gradients = point.dual.get("gradients")
        if gradients is None or start.y is None:
            return Start(start.x)
        Z = np.concatenate([svec(part) for part in gradients]) * self._splitting.weight
        return Start(start.x, np.concatenate([start.y, Z]))

    # --- a kernel against a support vector machine

    def _saddle_formulation(self) -> Formulation:
        return Formulation(
            "saddle",
            frozenset({Feature.SADDLE, Feature.BOX, Feature.SPECTRAL}),
            self._build_saddle,
            self._from_saddle,
            self._to_saddle,
            "convex in K, concave in alpha, and both sets are compact",
            scale=self.length,
        )

    def _saddle_kernels(self) -> SimpleSet:
        return kernel_set(self.data.n, self.data.trace, self.max_trace)

    def _value(self, k: FloatArray, x: FloatArray) -> float:
        data = self.data
        K = smat(k)
        svm_value = float(data.y @ x) - self.length / 2 * float(x @ (K @ x))
        return svm_value + data.losses(K, data.S) / self.length

    def _kernel_gradient(self, k: FloatArray, x: FloatArray) -> FloatArray:
        data = self.data
        K = smat(k)
        gradient = sum((data.loss.gradient(K - S) for S in data.S), np.zeros_like(K))
        return svec(data.rho / self.length * gradient - np.outer(self.length / 2 * x, x))

    def _multiplier_gradient(self, k: FloatArray, x: FloatArray) -> FloatArray:
        return self.data.y - self.length * (smat(k) @ x)

    def _from_saddle(self, x: FloatArray, y: FloatArray | None) -> Point:
        a = np.zeros(self.data.n) if y is None else y
        return Point({"alpha": self.length * a * self.data.y, "kernel": smat(x)})

    def _to_saddle(self, point: Point) -> Start:
        K = point.primal.get("kernel")
        # A point from the smooth form has no kernel.
        if K is None:
            K = self.data.mean
        return Start(svec(K), self._to_smooth(point).x)

    # --- descent over the kernel alone

    def _descent_formulation(self) -> Formulation:
        return Formulation(
            "spectrahedron",
            frozenset({Feature.SIMPLEX, Feature.NONSMOOTH, Feature.SPECTRAL}),
            self._build_descent,
            self._from_descent,
            self._to_descent,
            "the support vector machine's value is a convex function of its kernel",
            scale=self.length,
        )

    @cached_property
    def objective(self) -> KernelObjective:
        data = self.data
        coordinates: KernelCoordinates = SvecCoordinates(data.n, 1)
        # Traces up to a bound are those of a spectrahedron of one order more.
        if data.trace is None:
            coordinates = BoundedTraceCoordinates(data.n)
        return KernelObjective(data, coordinates, (data.S,), self.length)

    def _from_descent(self, x: FloatArray, y: FloatArray | None) -> Point:
        data = self.data
        K = self.objective.coordinates.kernels(x)[0]
        if y is None or not y.size:
            return Point({"alpha": data.y * self.objective.answer(x).a, "kernel": K})
        a, _, Z = self.objective.mean_point(y.reshape(-1, x.size + 1))
        return Point({"alpha": data.y * a, "kernel": K}, {"gradients": Z})

    def _to_descent(self, point: Point) -> Start:
        K = smat(self._to_saddle(point).x)
        x = self.objective.coordinates.vector([K])
        if self.data.trace is None:
            # The last entry of the diagonal is what the kernel leaves of the largest trace.
            M = smat(x)
            M[-1, -1] = max(self.max_trace - float(np.trace(K)), 0.0)
            x = svec(M)
        return Start(x)


@dataclass(frozen=True, eq=False)
class SeveralKernelsForms(KernelForms):
    """The forms of several kernels, free or with the eigenvectors of their similarities."""

    best: SeveralKernels

    @property
    def data(self) -> SimilarityData:
        return self.best.data

    @cached_property
    def length(self) -> float:
        # The kernel of the support vector machine is sum K_i / g_i, m^2 times as large as one of
        # them where all g are the same.
        return Units.of(self.data.C, self.data.scale * len(self.data.S) ** 2).length

    @property
    def max_trace(self) -> float:
        assert self.data.trace is not None
        return self.data.trace

    @property
    def _spectral(self) -> set[Feature]:
        """What kernels ask of a method: free ones spectrahedra, given eigenvectors simplices."""
        if self.best.keeps_eigenvectors:
            return {Feature.PRODUCT}
        several = {Feature.PRODUCT} if len(self.data.S) > 1 else set()
        return {Feature.SPECTRAL} | several

    def formulations(self) -> tuple[Formulation, ...]:
        """Return the forms that the loss allows, the one to prefer first."""
        loss = self.data.loss.name
        found = []
        # Without a loss and with given eigenvectors the value has the kinks of max_j |V_i'a|_j; for
        # the norm it is not known in closed form.
        has_kinks = self.best.keeps_eigenvectors and (not self.data.rho or loss != "squared")
        if loss in ("squared", "frobenius") and not has_kinks:
            found.append(self._smooth_formulation())
        if loss != "own":
            found += self._cone_formulations()
        # The sum of absolute values of eigenvalues is no loss of the matrix K - S entry by entry.
        if loss == "l1" and self.best.keeps_eigenvectors:
            return tuple(found)
        # The kinks of l1, one for each entry, leave nothing of a saddle form's smoothness.
        if loss != "l1":
            found.append(self._saddle_formulation())
        found.append(self._descent_formulation())
        return tuple(found)

    # --- the multipliers and shares; of given eigenvectors the multipliers alone

    def _smooth_formulation(self) -> Formulation:
        return Formulation(
            "smooth",
            SMOOTH_NEEDS if self.best.keeps_eigenvectors else SMOOTH_NEEDS | {Feature.PRODUCT},
            self._build_smooth,
            self._from_smooth,
            self._to_smooth,
            "against given multipliers and shares the best kernels are projections of eigenvalues",
            scale=-self.length,
        )

    @cached_property
    def _free_objective(self) -> MultiplierObjective:
        data = self.data
        return MultiplierObjective(
            self.best.projections,
            data.y,
            data.weight,
            by_norm=data.loss.name == "frobenius",
            length=self.length,
            has_shares=True,
            C=data.C,
        )

    @cached_property
    def _spectra_objective(self) -> SpectraObjective:
        return SpectraObjective(self.best.spectra, self.data.y, self.data.weight, self.length)

    def _build_smooth(self) -> SimplexForm:
        multipliers = self.data.domain(self.length)
        if self.best.keeps_eigenvectors:
            return SimplexForm(self._spectra_objective.objective(), multipliers)
        domain = Product((multipliers, Simplex(len(self.data.S))))
        return SimplexForm(self._free_objective.objective(), domain)

    def _from_smooth(self, x: FloatArray, y: FloatArray | None) -> Point:
        n = self.data.n
        alpha = self.length * x[:n] * self.data.y
        if self.best.keeps_eigenvectors:
            return Point({"alpha": alpha, "gamma": self._spectra_objective.nearest(x).near.g})
        gamma = self.best.shares(x[n:])
        if self.best.squared:
            return Point({"alpha": alpha, "gamma": gamma})
        found = self._free_objective.nearest(np.concatenate([x[:n], gamma]))
        factors = [here.near.factor for here, _ in found]
        kernels = np.array([H @ H.T for H in factors])
        return Point({"alpha": alpha, "gamma": gamma, "kernels": kernels})

    def _to_smooth(self, point: Point) -> Start:
        x = point.alpha * self.data.y / self.length
        if self.best.keeps_eigenvectors:
            return Start(x)
        return Start(np.concatenate([x, point.gamma]))

    # --- the cone program and its dual

    def _cone_formulations(self) -> list[Formulation]:
        cones = {Feature.CONE}
        if not self.best.keeps_eigenvectors:
            cones.add(Feature.PSD)
        if self.data.loss.name != "l1" or self.best.keeps_eigenvectors:
            cones.add(Feature.SOC)
        kind = "SOCP" if self.best.keeps_eigenvectors else "SDP"
        slater = "strong duality: alpha is bounded, and kernels of full rank are strictly feasible"
        program = partial(Formulation, needs=frozenset(cones))
        return [
            program(
                kind,
                build=self._build_cone,
                recover=self._from_cone,
                because=CONE_BECAUSE_MANY,
                scale=self.length,
            ),
            program(
                f"{kind} dual",
                build=self._build_dual,
                recover=self._from_dual,
                because=slater,
                dual=True,
                scale=-self.length,
            ),
        ]

    @cached_property
    def cone(self) -> KernelConeProgram | SpectraConeProgram:
        data = self.data
        box, weight, root = self._scaling
        total = self.max_trace / data.scale
        if self.best.keeps_eigenvectors:
            values = self.best.spectra.values / data.scale
            bases = np.array(self.best.spectra.bases)
            loss = data.loss.name
            return SpectraConeProgram(values, bases, data.y, box, weight, total, root, loss)
        groups = tuple((S / data.scale,) for S in data.S)
        return KernelConeProgram(groups, data.y, box, weight, total, root, data.loss.name)

    def _from_cone(self, x: FloatArray, y: FloatArray | None) -> Point:
        data = self.data
        kernels = data.scale * np.array(self.cone.kernels(x))
        if y is None:
            return Point({"alpha": np.zeros(data.n), "kernels": kernels})
        alpha, Z = self.cone.multipliers(y)
        a = self.length * alpha * data.y
        radii = np.sqrt(np.maximum(np.einsum("i,kij,j->k", a, kernels, a), 0.0))
        primal = {"alpha": a * data.y, "kernels": kernels, "gamma": self.best.shares(radii)}
        name = "differences" if self.best.keeps_eigenvectors else "gradients"
        return Point(primal, {name: np.array(Z)} if Z else None)

    # --- kernels, by svec or by their eigenvalues, against a support vector machine

    def _saddle_formulation(self) -> Formulation:
        return Formulation(
            "saddle",
            frozenset({Feature.SADDLE, Feature.BOX} | self._spectral),
            self._build_saddle,
            self._from_saddle,
            self._to_saddle,
            "convex in the kernels, concave in alpha, and both sets are compact",
            scale=self.length,
        )

    @cached_property
    def _coordinates(self) -> KernelCoordinates:
        if self.best.keeps_eigenvectors:
            return EigenvalueCoordinates(self.best.spectra.bases)
        return SvecCoordinates(self.data.n, len(self.data.S))

    def _saddle_kernels(self) -> SimpleSet:
        return self._coordinates.domain(self.max_trace)

    def _radii(self, kernels: list[FloatArray], x: FloatArray) -> FloatArray:
        """(x'K_i x)^1/2, kept positive."""
        q = np.array([float(x @ (K @ x)) for K in kernels])
        return np.asarray(np.sqrt(np.maximum(q, MIN_RELATIVE_NORM * self.data.scale)))

    def _value(self, k: FloatArray, x: FloatArray) -> float:
        data = self.data
        kernels = self._coordinates.kernels(k)
        loss = data.rho * sum(data.loss.value(K - S) for K, S in zip(kernels, data.S, strict=True))
        squared_norm = float(self._radii(kernels, x).sum()) ** 2
        return float(data.y @ x) - self.length / 2 * squared_norm + loss / self.length

    def _kernel_gradient(self, k: FloatArray, x: FloatArray) -> FloatArray:
        data = self.data
        kernels = self._coordinates.kernels(k)
        r = self._radii(kernels, x)
        gradients = [
            data.rho / self.length * data.loss.gradient(K - S)
            - np.outer(self.length / 2 * r.sum() / ri * x, x)
            for K, S, ri in zip(kernels, data.S, r, strict=True)
        ]
        return self._coordinates.vector(gradients)

    def _multiplier_gradient(self, k: FloatArray, x: FloatArray) -> FloatArray:
        kernels = self._coordinates.kernels(k)
        r = self._radii(kernels, x)
        images = [r.sum() / ri * (K @ x) for K, ri in zip(kernels, r, strict=True)]
        return np.asarray(self.data.y - self.length * sum(images, np.zeros(x.size)))

    def _from_saddle(self, x: FloatArray, y: FloatArray | None) -> Point:
        kernels = self._coordinates.kernels(x)
        a = np.zeros(self.data.n) if y is None else y
        alpha = self.length * a * self.data.y
        gamma = self.best.shares(self._radii(kernels, a))
        return Point({"alpha": alpha, "kernels": np.array(kernels), "gamma": gamma})

    def _to_saddle(self, point: Point) -> Start:
        x = point.alpha * self.data.y / self.length
        return Start(self._coordinates.vector(point.kernels), x)

    # --- descent over the kernels alone

    def _descent_formulation(self) -> Formulation:
        return Formulation(
            "simplices" if self.best.keeps_eigenvectors else "spectrahedra",
            frozenset({Feature.SIMPLEX, Feature.NONSMOOTH} | self._spectral),
            self._build_descent,
            self._from_descent,
            self._to_descent,
            "the support vector machine's value is a convex function of its kernels",
            scale=self.length,
        )

    @cached_property
    def objective(self) -> KernelObjective:
        data = self.data
        groups = tuple((S,) for S in data.S)
        return KernelObjective(data, self._coordinates, groups, self.length)

    def _from_descent(self, x: FloatArray, y: FloatArray | None) -> Point:
        data = self.data
        kernels = np.array(self._coordinates.kernels(x))
        if y is None or not y.size:
            there = self.objective.answer(x)
            return Point({"alpha": data.y * there.a, "gamma": there.g, "kernels": kernels})
        a, g, Z = self.objective.mean_point(y.reshape(-1, x.size + 1))
        primal = {"alpha": data.y * a, "gamma": g, "kernels": kernels}
        return Point(primal, {"gradients": Z, "shares": g})

    def _to_descent(self, point: Point) -> Start:
        return Start(self._coordinates.vector(point.kernels))
