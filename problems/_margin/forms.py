"""The two cone programs that all margin machines share: z'Kz, z = sign o (their solution), as a quadratic or a cone.

The rest of such a machine, its polyhedron and its units, is its own.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import partial

import numpy as np

from klopt.arrays import FloatArray
from klopt.kernels.gram import Gram
from klopt.model.cones import Feature
from klopt.model.forms import ConeForm, Start
from klopt.model.problem import Formulation, Point, Problem
from klopt.problems._margin.data import Polyhedron, Units, tied

__all__ = ["KernelMargin", "LabelledMargin"]


class KernelMargin(Problem):
    """A machine whose solution has one number a point."""

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
        return (
            make(
                "dual QP",
                frozenset({Feature.CONE, Feature.QUADRATIC}),
                self._quadratic,
                self._recover,
                self._lift_quadratic,
                "z'Kz = ||Rz||^2 where K = R'R, which is shorter where R has few rows",
            ),
            make(
                "SOCP epigraph",
                frozenset({Feature.CONE, Feature.SOC}),
                self._epigraph,
                self._recover_epigraph,
                self._lift_epigraph,
                "z'Kz <= 2t if and only if ||(Rz, t - 1/2)|| <= t + 1/2, where K = R'R",
            ),
        )

    def _quadratic(self) -> ConeForm:
        return self._polyhedron().with_kernel(self.K, self._units, self._sign)

    def _epigraph(self) -> ConeForm:
        return self._polyhedron().with_epigraph(self._units.factor(self.K) * self._sign)

    def _recover_epigraph(self, x: FloatArray, y: FloatArray | None) -> Point:
        return Point(
            self._recover(x, y).primal,
            None if y is None else {"normal": self._units.normal(y, self.K)},
        )

    def _lift_quadratic(self, point: Point) -> Start:
        return Start(tied(self._lift(point).x, self.K, self._units, self._sign))

    def _lift_epigraph(self, point: Point) -> Start:
        x = self._lift(point).x
        z = self._sign * x[: self.K.size]
        return Start(np.append(x, float(z @ (self._units.curvature(self.K.matrix) @ z)) / 2))


class LabelledMargin(KernelMargin):
    """A machine whose solution `alpha` belongs to labels: z = y o alpha."""

    y: FloatArray

    @property
    def _sign(self) -> FloatArray:
        return self.y

    def _lift(self, point: Point) -> Start:
        return Start(point.alpha / self._units.length)
