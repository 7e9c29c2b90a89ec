"""What every simple set answers, from its size to its mirror map.

A simple set X is a nonempty closed convex set of vectors. A first-order method asks it for nothing
but

    project(x)            argmin over z in X of ||z - x||
    linear_minimiser(g)   argmin over z in X of g'z,     linear_minimum(g) its value
    mirror(theta)         argmax over z in X of theta'z - h(z),   h the entropy of X

The second also turns a gradient into a lower bound: a convex f has f(z) >= f(x) + g'(z - x), so
that its minimum over X is at least f(x) - g'x + linear_minimum(g).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from klopt.arrays import FloatArray
from klopt.errors import InvalidProblem
from klopt.model.features import Feature

__all__ = ["SimpleSet"]


class SimpleSet(ABC):
    """A convex set that is cheap to project onto and to minimise linear functions over.

    A set without a mirror map leaves the questions from `has_mirror` on alone.
    """

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of entries of a point."""

    @property
    def features(self) -> frozenset[Feature]:
        """What a backend must offer beyond the plain simplex."""
        return frozenset()

    @property
    @abstractmethod
    def radius(self) -> float:
        """An upper bound on ||x||_1 over the set; infinite where the set is unbounded."""

    @abstractmethod
    def project(self, x: FloatArray) -> FloatArray:
        """Return the nearest point of the set."""

    @abstractmethod
    def linear_minimiser(self, g: FloatArray) -> FloatArray:
        """Return a point of the set that minimises g'x; raise where g'x is unbounded below."""

    def linear_minimum(self, g: FloatArray) -> float:
        """Return the minimum of g'x over the set, -inf where it is unbounded below."""
        return float(g @ self.linear_minimiser(g))

    @abstractmethod
    def centre(self) -> FloatArray:
        """Return a point of the relative interior, always the same."""

    @abstractmethod
    def violation(self, x: FloatArray) -> float:
        """Return the largest violation of the set's constraints at x; 0 inside."""

    def repair(self, x: FloatArray) -> FloatArray:
        """Return a point near x that is in the set up to the last rounding."""
        return self.project(x)

    @property
    def has_mirror(self) -> bool:
        """Whether there is a mirror map."""
        return False

    def mirror(self, theta: FloatArray) -> FloatArray:
        """Return the point of the set at which the entropy has gradient theta, up to a constant."""
        raise self._no_mirror()

    def mirror_dual(self, x: FloatArray) -> FloatArray:
        """Return a theta with mirror(theta) = x; where x is on the boundary, one very far away."""
        raise self._no_mirror()

    @property
    def mirror_depth(self) -> float:
        """The maximum Bregman divergence of a point from the centre (total log n for a simplex)."""
        raise self._no_mirror()

    def dual_norm(self, g: FloatArray) -> float:
        """Return the norm of a gradient that is dual to the norm of the mirror map.

        The entropy is strongly convex in that norm; without a mirror map it is the Euclidean one.
        """
        return float(np.linalg.norm(g))

    def _no_mirror(self) -> InvalidProblem:
        name = type(self).__name__
        return InvalidProblem(f"{name} has no mirror map; use a method that projects")
