"""What every simple set answers: nearest point, least linear value, centre, violation, repair, mirror map."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from klopt.arrays import FloatArray
from klopt.errors import InvalidProblem
from klopt.model.cones import Feature

__all__ = ["SimpleSet"]


class SimpleSet(ABC):
    """A nonempty closed convex set of vectors that is cheap to project onto and to minimise linear functions over."""

    _features: ClassVar[frozenset[Feature]] = frozenset()
    _has_mirror: ClassVar[bool] = False

    @property
    def features(self) -> frozenset[Feature]:
        """What a backend must offer beyond the plain simplex."""
        return self._features

    @property
    def has_mirror(self) -> bool:
        """Whether there is a mirror map."""
        return self._has_mirror

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of entries of a point."""

    @property
    @abstractmethod
    def radius(self) -> float:
        """An upper bound on ||x||_1 over the set; infinite where the set is unbounded."""

    @property
    def mirror_depth(self) -> float:
        """The largest Bregman divergence of a point from the centre (total log n for a simplex)."""
        raise self._no_mirror()

    @abstractmethod
    def project(self, x: FloatArray) -> FloatArray:
        """Return the nearest point of the set."""

    @abstractmethod
    def linear_minimiser(self, g: FloatArray) -> FloatArray:
        """Return a point of the set where g'x is least; raise where g'x is unbounded below."""

    def linear_minimum(self, g: FloatArray) -> float:
        """Return the least value of g'x over the set, -inf where there is none."""
        return float(g @ self.linear_minimiser(g))

    @abstractmethod
    def centre(self) -> FloatArray:
        """Return a point of the relative interior, always the same."""

    @abstractmethod
    def violation(self, x: FloatArray) -> float:
        """Return by how much x breaks the worst of the set's conditions; 0 inside."""

    def repair(self, x: FloatArray) -> FloatArray:
        """Return a point near x that is in the set up to the last rounding."""
        return self.project(x)

    def mirror(self, theta: FloatArray) -> FloatArray:
        """Return the point of the set whose entropy has gradient theta (up to a constant)."""
        raise self._no_mirror()

    def mirror_dual(self, x: FloatArray) -> FloatArray:
        """Return a theta with mirror(theta) = x; where x is on the boundary, one very far away."""
        raise self._no_mirror()

    def dual_norm(self, g: FloatArray) -> float:
        """Return the size of a gradient: dual to the norm the entropy is convex in, Euclidean without a mirror."""
        return float(np.linalg.norm(g))

    def _no_mirror(self) -> InvalidProblem:
        return InvalidProblem(
            f"{type(self).__name__} has no mirror map; use a method that projects"
        )
