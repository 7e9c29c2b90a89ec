"""Simple sets (simplex, ordered simplex, spectrahedron, box∩plane, products): project, minimise, mirror step, repair.

    Simplex          x >= 0, 1'x = total
    OrderedSimplex   x_i >= sigma x_{i+1} >= 0, 1'x = total
    Spectrahedron    smat(x) positive semidefinite of trace total
    OrderedCone      x_i / d_i nonincreasing, x >= 0, price'x <= total
    BoxPlane         lower <= x <= upper, normal'x = offset
    Product          one set after the other

A first-order method needs nothing else: the nearest point, the least value of a linear function
(which is also what turns a gradient into a lower bound) and, for the first and third, the entropy's
mirror map

    mirror(theta) = total exp(theta) / 1'exp(theta),    mirror_dual(x) = log(x / total),

of vectors and of eigenvalues. Every answer is exact up to rounding.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from klopt.arrays import FloatArray, positive
from klopt.errors import InvalidProblem
from klopt.model.cones import Feature, smat, svec, svec_size
from klopt.model.sets.box_plane import BoxPlane
from klopt.model.sets.ordered_cone import OrderedCone
from klopt.model.sets.projections import (
    nearest_ordered,
    prefix_minimiser,
    prefix_weights,
    simplex_projection,
)
from klopt.model.sets.simple_set import SimpleSet

__all__ = [
    "BoxPlane",
    "OrderedCone",
    "OrderedSimplex",
    "Product",
    "SimpleSet",
    "Simplex",
    "Spectrahedron",
    "simplex_projection",
]

# What log(0) is taken to be log of: finite, and after the mirror map back a zero for every purpose.
_FLOOR = 1e-300


@dataclass(frozen=True)
class Simplex(SimpleSet):
    """The points x >= 0 with 1'x = total.

    >>> Simplex(3).project(np.array([2.0, 1.5, -3.0]))
    array([0.75, 0.25, 0.  ])
    """

    n: int
    total: float = 1.0

    _has_mirror = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", _count("n", self.n))
        object.__setattr__(self, "total", positive("total", self.total))

    @property
    def size(self) -> int:
        return self.n

    @property
    def radius(self) -> float:
        return self.total

    @property
    def mirror_depth(self) -> float:
        return float(self.total * np.log(self.n))

    def project(self, x: FloatArray) -> FloatArray:
        return simplex_projection(x, self.total)

    def linear_minimiser(self, g: FloatArray) -> FloatArray:
        z = np.zeros(self.n)
        z[int(np.argmin(g))] = self.total
        return z

    def centre(self) -> FloatArray:
        return np.full(self.n, self.total / self.n)

    def violation(self, x: FloatArray) -> float:
        return max(abs(float(x.sum()) - self.total), -float(x.min()))

    def mirror(self, theta: FloatArray) -> FloatArray:
        return _softmax(theta, self.total)

    def mirror_dual(self, x: FloatArray) -> FloatArray:
        return np.log(np.maximum(x / self.total, _FLOOR))

    def dual_norm(self, g: FloatArray) -> float:
        return float(np.abs(g).max())


@dataclass(frozen=True)
class OrderedSimplex(SimpleSet):
    """The points with x_i >= sigma x_{i+1} >= 0 and 1'x = total; its vertices are the prefixes of sigma^-(i-1).

    >>> OrderedSimplex(3).linear_minimiser(np.array([1.0, -2.0, 5.0]))
    array([0.5, 0.5, 0. ])
    """

    n: int
    sigma: float = 1.0
    total: float = 1.0

    _features = frozenset({Feature.ORDERED})

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", _count("n", self.n))
        object.__setattr__(self, "sigma", positive("sigma", self.sigma))
        if self.sigma < 1:
            raise InvalidProblem(
                f"sigma is {self.sigma}; an order x_i >= sigma x_(i+1) needs sigma >= 1"
            )
        object.__setattr__(self, "total", positive("total", self.total))

    @property
    def size(self) -> int:
        return self.n

    @property
    def radius(self) -> float:
        return self.total

    def project(self, x: FloatArray) -> FloatArray:
        return nearest_ordered(x, self.sigma, self.total)

    def linear_minimiser(self, g: FloatArray) -> FloatArray:
        return prefix_minimiser(g, self.sigma, self.total)

    def centre(self) -> FloatArray:
        weights = prefix_weights(self.n, self.sigma)
        mean_of_vertices = weights * np.cumsum((1.0 / np.cumsum(weights))[::-1])[::-1]
        return mean_of_vertices * (self.total / float(mean_of_vertices.sum()))

    def violation(self, x: FloatArray) -> float:
        order = float((self.sigma * x[1:] - x[:-1]).max(initial=0.0))
        return max(abs(float(x.sum()) - self.total), order, -float(x[-1]))


@dataclass(frozen=True)
class Spectrahedron(SimpleSet):
    """The points x = svec(M) of positive semidefinite matrices M with trace total.

    >>> smat(Spectrahedron(2).linear_minimiser(svec(np.diag([3.0, 1.0]))))
    array([[0., 0.],
           [0., 1.]])
    """

    order: int
    total: float = 1.0

    _features = frozenset({Feature.SPECTRAL})
    _has_mirror = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", _count("order", self.order))
        object.__setattr__(self, "total", positive("total", self.total))

    @property
    def size(self) -> int:
        return svec_size(self.order)

    # The largest of the rank-one matrices, all entries equal: the diagonal, then sqrt(2) times the
    # strict triangle.
    @property
    def radius(self) -> float:
        return float(self.total * (1.0 + (self.order - 1) / np.sqrt(2.0)))

    @property
    def mirror_depth(self) -> float:
        return float(self.total * np.log(self.order))

    def project(self, x: FloatArray) -> FloatArray:
        values, vectors = np.linalg.eigh(smat(x))
        return _from_eigen(simplex_projection(values, self.total), vectors)

    def linear_minimiser(self, g: FloatArray) -> FloatArray:
        vectors = np.linalg.eigh(smat(g))[1]
        return _from_eigen(np.array([self.total]), vectors[:, :1])

    def linear_minimum(self, g: FloatArray) -> float:
        return float(self.total * np.linalg.eigvalsh(smat(g))[0])

    def centre(self) -> FloatArray:
        return svec(np.eye(self.order) * (self.total / self.order))

    def violation(self, x: FloatArray) -> float:
        if np.isnan(x).any():
            return np.nan
        M = smat(x)
        return max(-float(np.linalg.eigvalsh(M)[0]), abs(float(np.trace(M)) - self.total))

    def mirror(self, theta: FloatArray) -> FloatArray:
        values, vectors = np.linalg.eigh(smat(theta))
        return _from_eigen(_softmax(values, self.total), vectors)

    def mirror_dual(self, x: FloatArray) -> FloatArray:
        values, vectors = np.linalg.eigh(smat(x))
        return svec((vectors * np.log(np.maximum(values / self.total, _FLOOR))) @ vectors.T)

    def dual_norm(self, g: FloatArray) -> float:
        return float(np.abs(np.linalg.eigvalsh(smat(g))[[0, -1]]).max())


@dataclass(frozen=True)
class Product(SimpleSet):
    """The concatenations of one point of each set.

    >>> [block.size for block in Product((Simplex(2), Simplex(3))).split(np.zeros(5))]
    [2, 3]
    """

    sets: tuple[SimpleSet, ...]

    def __post_init__(self) -> None:
        if isinstance(self.sets, SimpleSet):
            raise InvalidProblem(
                f"sets is one {type(self.sets).__name__}; expected a tuple of sets"
            )
        object.__setattr__(self, "sets", tuple(self.sets))
        if not self.sets:
            raise InvalidProblem("sets is empty; a product needs at least one set")
        for i, member in enumerate(self.sets):
            if not isinstance(member, SimpleSet):
                raise InvalidProblem(
                    f"sets[{i}] is a {type(member).__name__}; expected a simple set"
                )

    @property
    def features(self) -> frozenset[Feature]:
        return frozenset().union(*(member.features for member in self.sets))

    @property
    def has_mirror(self) -> bool:
        return all(member.has_mirror for member in self.sets)

    @property
    def size(self) -> int:
        return sum(member.size for member in self.sets)

    @property
    def radius(self) -> float:
        return sum(member.radius for member in self.sets)

    @property
    def mirror_depth(self) -> float:
        return sum(member.mirror_depth for member in self.sets)

    def split(self, x: FloatArray) -> tuple[FloatArray, ...]:
        """Return the blocks of x (views, not copies), one for each set."""
        return tuple(np.split(x, np.cumsum([member.size for member in self.sets])[:-1]))

    def project(self, x: FloatArray) -> FloatArray:
        return np.concatenate([member.project(block) for member, block in self._pairs(x)])

    def linear_minimiser(self, g: FloatArray) -> FloatArray:
        return np.concatenate([member.linear_minimiser(block) for member, block in self._pairs(g)])

    def linear_minimum(self, g: FloatArray) -> float:
        return sum(member.linear_minimum(block) for member, block in self._pairs(g))

    def centre(self) -> FloatArray:
        return np.concatenate([member.centre() for member in self.sets])

    def violation(self, x: FloatArray) -> float:
        return float(np.max([member.violation(block) for member, block in self._pairs(x)]))

    def repair(self, x: FloatArray) -> FloatArray:
        return np.concatenate([member.repair(block) for member, block in self._pairs(x)])

    def mirror(self, theta: FloatArray) -> FloatArray:
        return np.concatenate([member.mirror(block) for member, block in self._pairs(theta)])

    def mirror_dual(self, x: FloatArray) -> FloatArray:
        return np.concatenate([member.mirror_dual(block) for member, block in self._pairs(x)])

    def dual_norm(self, g: FloatArray) -> float:
        """Return the root of the sum of the squares of the blocks' norms."""
        return float(np.linalg.norm([member.dual_norm(block) for member, block in self._pairs(g)]))

    def _pairs(self, x: FloatArray) -> Iterator[tuple[SimpleSet, FloatArray]]:
        return zip(self.sets, self.split(x), strict=True)


def _count(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise InvalidProblem(f"{name} is {value!r}; expected a whole number of at least 1")
    return int(value)


def _softmax(theta: FloatArray, total: float) -> FloatArray:
    with np.errstate(under="ignore"):
        weights: FloatArray = np.exp(theta - theta.max())
    return weights * (total / float(weights.sum()))


def _from_eigen(values: FloatArray, vectors: FloatArray) -> FloatArray:
    """svec of V diag(values) V' for nonnegative values."""
    half = vectors * np.sqrt(values)
    return svec(half @ half.T)
