"""The two cone programs that machines with labels share: a'Qa with Q_ij = y_i y_j K_ij, as a quadratic or a cone.

The rest of such a machine, its polyhedron and its units, is its own.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import partial

import numpy as np

from klopt.arrays import FloatArray
from klopt.cones import Feature
from klopt.forms import ConeForm, Start
from klopt.gram import Gram
from klopt.problem import Formulation, Point, Problem
from klopt.problems._margin import Polyhedron, Units, tied

__all__ = ["LabelledMargin"]


class LabelledMargin(Problem):
    """A machine whose solution `alpha` has one number a point, curved by a'Qa."""

    K: Gram
    y: FloatArray

    @property
    @abstractmethod
    def _units(self) -> Units: ...

    @abstractmethod
    def _polyhedron(self) -> Polyhedron: ...

    @abstractmethod
    def _recover(self, x: FloatArray, y: FloatArray | None) -> Point: ...

    def _cone_formulations(self, make: partial[Formulation]) -> tuple[Formulation, Formulation]:
        return (
            make(
                "dual QP",
                frozenset({Feature.CONE, Feature.QUADRATIC}),
                self._quadratic,
                self._recover,
                self._lift_quadratic,
                "a'Qa = ||Fa||^2 where Q = F'F, which is shorter where F has few rows",
            ),
            make(
                "SOCP epigraph",
                frozenset({Feature.CONE, Feature.SOC}),
                self._epigraph,
                self._recover_epigraph,
                self._lift_epigraph,
                "a'Qa <= 2t if and only if ||(Fa, t - 1/2)|| <= t + 1/2, where Q = F'F",
            ),
        )

    def _quadratic(self) -> ConeForm:
        return self._polyhedron().with_kernel(self.K, self._units, self.y)

    def _epigraph(self) -> ConeForm:
        return self._polyhedron().with_epigraph(self._units.factor(self.K) * self.y)

    def _recover_epigraph(self, x: FloatArray, y: FloatArray | None) -> Point:
        return Point(self._recover(x, y).primal, None if y is None else {"normal": self._units.normal(y, self.K)})

    def _lift(self, point: Point) -> Start:
        return Start(point.alpha / self._units.length)

    def _lift_quadratic(self, point: Point) -> Start:
        return Start(tied(self._lift(point).x, self.K, self._units, self.y))

    def _lift_epigraph(self, point: Point) -> Start:
        z = self.y * point.alpha
        height = float(z @ (self.K.matrix @ z)) / (2 * self._units.value)
        return Start(np.append(self._lift(point).x, height))
