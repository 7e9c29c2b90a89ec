"""The units of a support vector machine's forms, and the two cone programs that all of them share.

The duals maximise over a bounded set a concave quadratic with a kernel matrix K of mean diagonal
kappa, box C and gradients of size lam. In the units

    x = length * v,    value = length * lam * (value of the form),    length = min(C, lam / kappa)

the form has the curvature (length / lam) K, of size at most 1, gradients of size 1 and the box C /
length >= 1, whatever the units of K and C are. Both factors are rounded to powers of two: no digit
changes on the way.

The cone programs minimise z'Kz/2, z = sign o x, plus what the problem's own polyhedron adds: as a
quadratic, or as an epigraph t with ||Rz||^2 <= 2t, K = R'R. An epigraph only ties z to the value,
to the square of which f = Kz is right: a gap of 1e-10 leaves 1e-5 in f. Its multipliers hold the
normal vector w = Rz itself, right to the first order (`klopt.problems._margin.proof` uses it).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial

import numpy as np

from klopt.arrays import FloatArray
from klopt.errors import InvalidProblem
from klopt.kernels.gram import Gram
from klopt.model.features import Feature
from klopt.model.forms import ConeForm, Start
from klopt.model.problem import Formulation, Point, Problem
from klopt.problems._margin.cone_forms import Polyhedron
from klopt.problems._margin.proof import Penalty, largest

__all__ = ["KernelMargin", "LabelledMargin", "Units", "refuse_large_penalty"]


MAX_PENALTY_TIMES_KERNEL = 1e18
"""The largest finite C times mean K_ii: beyond it no solver can tell C from infinity."""


@dataclass(frozen=True)
class Units:
    """Powers of two between the problem's units and the form's."""

    length: float
    gradient: float

    @classmethod
    def of(cls, C: Penalty, kappa: float, gradient: float = 1.0) -> Units:
        """Return the units of a box C, a kernel of mean diagonal kappa and gradients of a size.

        >>> Units.of(C=10.0, kappa=1e10)
        Units(length=5.820766091346741e-11, gradient=1.0)
        """
        gradient = _power_of_two(gradient or 1.0)
        length = _power_of_two(min(largest(C), gradient / kappa))
        return cls(length, gradient)

    @property
    def value(self) -> float:
        """The problem's value of one unit of the form's."""
        return self.length * self.gradient

    def curvature(self, K: FloatArray) -> FloatArray:
        """Return K in the form's units: K itself where that changes nothing."""
        factor = self.length / self.gradient
        return K if factor == 1.0 else K * factor

    def factor(self, K: Gram) -> FloatArray:
        """Return R with R'R = K in the form's units."""
        return K.factor() * float(np.sqrt(self.length / self.gradient))

    def normal(self, y: FloatArray, K: Gram) -> FloatArray:
        """Return w = Rz from the multipliers y of an epigraph, the last of which are -Fx."""
        of_cone = y[y.size - len(K.factor()) :]
        return -float(np.sqrt(self.value)) * of_cone


def refuse_large_penalty(C: Penalty, kappa: float) -> None:
    """Refuse a finite C that no solver can tell from an infinite one; kappa is the mean K_ii."""
    worst = largest(C)
    if np.isfinite(worst) and worst * kappa > MAX_PENALTY_TIMES_KERNEL:
        raise InvalidProblem(
            f"C is {worst:g}, which times K is {worst * kappa:.0e}; write inf for the hard margin"
        )


def _power_of_two(number: float) -> float:
    return float(np.exp2(np.floor(np.log2(number))))


class KernelMargin(Problem):
    """A support vector machine whose solution has one number for each point."""

    K: Gram

    @property
    @abstractmethod
    def _units(self) -> Units: ...

    @property
    @abstractmethod
    def _sign(self) -> FloatArray | float: ...

    @abstractmethod
    def _polyhedron(self) -> Polyhedron: ...

    @abstractmethod
    def _recover(self, x: FloatArray, y: FloatArray | None) -> Point: ...

    @abstractmethod
    def _lift(self, point: Point) -> Start: ...

    def _cone_formulations(self, make: partial[Formulation]) -> tuple[Formulation, Formulation]:
        quadratic = make(
            "dual QP",
            frozenset({Feature.CONE, Feature.QUADRATIC}),
            self._quadratic,
            self._recover,
            self._lift_quadratic,
            "z'Kz = ||Rz||^2 where K = R'R, which is shorter where R has few rows",
        )
        epigraph = make(
            "SOCP epigraph",
            frozenset({Feature.CONE, Feature.SOC}),
            self._epigraph,
            self._recover_epigraph,
            self._lift_epigraph,
            "z'Kz <= 2t if and only if ||(Rz, t - 1/2)|| <= t + 1/2, where K = R'R",
        )
        return quadratic, epigraph

    def _quadratic(self) -> ConeForm:
        # A kernel of low rank is given by its factor: n x rank numbers in place of n x n.
        if self.K.thin:
            return self._polyhedron().with_factor(self._units.factor(self.K) * self._sign)
        H = self._units.curvature(self.K.matrix) * self._sign
        return self._polyhedron().with_quadratic((H.T * self._sign).T)

    def _epigraph(self) -> ConeForm:
        return self._polyhedron().with_epigraph(self._units.factor(self.K) * self._sign)

    def _recover_epigraph(self, x: FloatArray, y: FloatArray | None) -> Point:
        primal = self._recover(x, y).primal
        if y is None:
            return Point(primal)
        return Point(primal, {"normal": self._units.normal(y, self.K)})

    def _lift_quadratic(self, point: Point) -> Start:
        x = self._lift(point).x
        if not self.K.thin:
            return Start(x)
        z = self._sign * x[: self.K.size]
        return Start(np.concatenate([x, self._units.factor(self.K) @ z]))

    def _lift_epigraph(self, point: Point) -> Start:
        x = self._lift(point).x
        z = self._sign * x[: self.K.size]
        t = float(z @ (self._units.curvature(self.K.matrix) @ z)) / 2
        return Start(np.append(x, t))


class LabelledMargin(KernelMargin):
    """A support vector machine whose solution `alpha` belongs to labels: z = y o alpha."""

    y: FloatArray

    @property
    def _sign(self) -> FloatArray:
        return self.y

    def _lift(self, point: Point) -> Start:
        return Start(point.alpha / self._units.length)
