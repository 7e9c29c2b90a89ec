"""Products of a Gaussian kernel matrix with a vector, in tiles: the n x n matrix is never stored.

K_ij = exp(-g d_ij^2), d_ij = ||x_i - x_j||, is the kernel of the points as stored, in exact
arithmetic. It is positive semidefinite for any points (Schoenberg, 1938), and 0 < K_ij <= 1. Points
have p columns and are first divided by a power of two, so that no entry is above 1 in size.

**Lemma G1 (distances).** Let c be any vector, p_i = fl(x_i - c) and N_i = fl(p_i'p_i). Each p_i is
off by at most u ||p_i|| / (1 - u), so that ||p_i - p_j||^2 differs from d_ij^2 by at most 4.1 u (N_i +
N_j), and fl(N_i + N_j - 2 p_i'p_j) from that by at most (2p + 5) u (N_i + N_j), up to terms of order
u^2. With the product by g the exponent is off by at most

    g t,     t = (2p + 16) u (N_i + N_j) + 16 (p + 2)^2 eta.

**Lemma G2 (entries).** With e = exp(g t) - 1 + 16 u the computed entry is within e K_ij + 2^-1022 of
K_ij: 8 u are for an exponential within 4 units in the last place (Lemma E3), the rest for this bound.

**Lemma G3 (product).** If each term of a sum passes through at most m roundings, the computed (Kz)_i is
off by at most (e + gamma_m (1 + e)) (K|z|)_i + 2^-1022 ||z||_1, and the computed (K|z|)_i bounds the
exact one by the same share.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, freeze, matrix, positive, scaled_to_one
from klopt.errors import InvalidProblem
from klopt.proof.directed import total_up
from klopt.proof.enclosure import ETA, UNIT_ROUNDOFF, Enclosure, gamma as gamma_n

__all__ = ["GaussianPoints", "Mapper"]

Indices = npt.NDArray[np.intp]
Mapper = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
"""`map` itself, or another way to call a function for each item, in the order of the items."""

TILE_ROWS = 512
"""Rows of a tile."""
TILE_COLUMNS = 2048
"""Columns of a tile: with its rows it fits into a cache."""
ROWS_PER_CALL = 4096
"""Rows that are one item for a mapper."""
SMALLEST_NORMAL = 2.0**-1022


@dataclass(frozen=True, eq=False)
class GaussianPoints:
    """Points and the Gaussian kernel of them, of which only tiles are ever computed.

    >>> kernel = GaussianPoints.of([[0.0], [1.0], [1e8]], gamma=1.0)
    >>> kernel.tile([0, 1], [0, 1]).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    >>> bool(kernel.enclose_product(np.array([1.0, -1.0, 0.0])).contains(
    ...     np.array([1 - np.exp(-1), np.exp(-1) - 1, 0.0])))
    True
    """

    points: FloatArray
    """p_i, the rows of X less their mean, over a power of two."""
    squares: FloatArray
    """N_i."""
    gamma: float
    """g in the units of the points."""

    @classmethod
    def of(cls, X: npt.ArrayLike, gamma: float) -> GaussianPoints:
        """Return the kernel exp(-gamma ||x - x'||^2) of the rows of X."""
        given = matrix("X", X)
        if not given.size:
            raise InvalidProblem(
                f"X is {given.shape[0]} x {given.shape[1]}; expected points with coordinates"
            )
        unit, exponent = scaled_to_one(given)
        with np.errstate(over="ignore", under="ignore"):
            scaled = float(np.ldexp(positive("gamma", gamma), 2 * exponent))
        if not SMALLEST_NORMAL <= scaled < math.inf:
            raise InvalidProblem(
                f"gamma is {gamma:g} for points up to {np.abs(given).max():g}; rescale the points"
            )
        points = unit - unit.mean(axis=0)
        squares = np.einsum("ij,ij->i", points, points)
        return cls(freeze(points), freeze(squares), scaled)

    @property
    def size(self) -> int:
        """The number of points."""
        return len(self.points)

    @property
    def entry_error(self) -> float:
        """The e of Lemma G2 for all pairs; infinite where it would be of no use."""
        p = self.points.shape[1]
        largest = 2 * float(self.squares.max())
        t = (2 * p + 16) * UNIT_ROUNDOFF * largest + 16 * (p + 2) ** 2 * ETA
        exponent = self.gamma * t * (1 + 8 * UNIT_ROUNDOFF)
        if not exponent < 0.1:
            return math.inf
        return float(np.expm1(exponent)) * (1 + 16 * UNIT_ROUNDOFF) + 16 * UNIT_ROUNDOFF

    def tile(self, rows: Any, columns: Any) -> FloatArray:
        """Return the entries of these rows and columns."""
        return self._tile(self.points[rows], self.squares[rows], columns)

    def _tile(self, points: FloatArray, squares: FloatArray, columns: Any) -> FloatArray:
        """The entries of points with the points of these columns."""
        found = points @ self.points[columns].T
        found *= 2.0
        found -= squares[:, None]
        found -= self.squares[columns]
        # The exact one is not positive.
        np.minimum(found, 0.0, out=found)
        found *= self.gamma
        np.exp(found, out=found)
        return np.asarray(found)

    def product(
        self,
        columns: Indices,
        values: FloatArray,
        rows: Indices | None = None,
        mapper: Mapper = map,
    ) -> FloatArray:
        """Return K z of these rows, or of all, for a z with these values in these columns.

        `values` may be a matrix: one product for each of its columns.
        """
        if rows is None:
            rows = np.arange(self.size)
        parts = [
            rows[start : start + ROWS_PER_CALL] for start in range(0, rows.size, ROWS_PER_CALL)
        ]
        found = list(mapper(partial(self._product_of, columns, values), parts))
        return np.concatenate([np.zeros((0, *values.shape[1:])), *found])

    def _product_of(self, columns: Indices, values: FloatArray, rows: Indices) -> FloatArray:
        """The product of these rows, tile by tile."""
        found = np.zeros((rows.size, *values.shape[1:]))
        for start in range(0, rows.size, TILE_ROWS):
            part = slice(start, start + TILE_ROWS)
            points = self.points[rows[part]]
            squares = self.squares[rows[part]]
            for first in range(0, columns.size, TILE_COLUMNS):
                chosen = slice(first, first + TILE_COLUMNS)
                found[part] += self._tile(points, squares, columns[chosen]) @ values[chosen]
        return found

    def enclose_product(self, z: FloatArray, mapper: Mapper = map) -> Enclosure:
        """Return Kz by Lemma G3."""
        support = np.flatnonzero(z)
        if not support.size:
            return Enclosure.of(np.zeros(self.size))
        values = z[support]
        both = self.product(support, np.stack([values, np.abs(values)], axis=1), mapper=mapper)
        length = total_up(np.abs(values))
        tiles = -(-support.size // TILE_COLUMNS)
        rounding = gamma_n(min(support.size, TILE_COLUMNS) + tiles + 1)
        e = self.entry_error
        share = e + rounding * (1 + e)
        # Entries, exact and computed, lie between 0 and 1: no sum is off by more than 2 ||z||_1.
        if not share < 0.5:
            return Enclosure(both[:, 0].copy(), np.full(self.size, 4 * length))
        terms = (both[:, 1] + SMALLEST_NORMAL * length) / (1 - share) * (1 + 8 * UNIT_ROUNDOFF)
        rad = (share * terms + SMALLEST_NORMAL * length) * (1 + 8 * UNIT_ROUNDOFF) + 4 * ETA
        return Enclosure(both[:, 0].copy(), rad)
