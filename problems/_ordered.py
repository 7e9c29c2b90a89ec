"""Sums of rank-one kernels, K(a) = sum_i a_i w_i w_i', and the quadratics ||K||^2 / 2 - <K, T> in their coefficients.

With the columns w_i of W (l x m) and F_ij = (w_i'w_j)^2,

    ||K(a)||^2 = a'Fa,    <w_i w_i', K(a)> = w_i'K(a) w_i = (F a)_i.

The nonincreasing a >= 0 are the nonnegative combinations of prefixes: a = C s with s_k = a_k - a_(k+1) >= 0, and
K = sum_k s_k P_k with the prefix kernels P_k = sum_(i <= k) w_i w_i'. C and C' are cumulative sums; C'FC is <P_j, P_k>.

F takes m^2 numbers. Where m is larger than a few l it is never formed: F a costs 2 m l^2 by way of K, and the few
columns of C'FC that an active set asks for come from the prefix kernels themselves, which are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from klopt.arrays import FloatArray, require_memory
from klopt.cones import Feature
from klopt.objectives import IntArray
from klopt.problem import Formulation

__all__ = ["ColumnQuadratic", "Columns", "PrefixQuadratic", "Rooted", "falling", "rising"]

DENSE = 4
"""F is formed up to so many columns a row of W."""
CHUNK = 512
STORE = 6e6
"""Bytes of prefix kernels that are kept."""


def rising(s: FloatArray) -> FloatArray:
    """Return C s, the sums of s from each entry to the last.

    >>> rising(np.array([1.0, 2.0, 3.0]))
    array([6., 5., 3.])
    """
    sums: FloatArray = np.cumsum(s[::-1])[::-1]
    return sums


def falling(a: FloatArray) -> FloatArray:
    """Return the s with a = C s: the differences to the next entry.

    >>> falling(np.array([6.0, 5.0, 3.0]))
    array([1., 2., 3.])
    """
    steps: FloatArray = a - np.append(a[1:], 0.0)
    return steps


@dataclass(frozen=True, eq=False)
class Rooted(Formulation):
    """A formulation whose value is -(rho / scale)^2 / 2, where the problem's is rho >= 0."""

    def to_user(self, lower: float, upper: float) -> tuple[float, float]:
        """Return an interval of the form's values as one of rho."""
        ends = self.scale * np.sqrt(np.maximum(-2 * np.array([upper, lower]), 0.0))
        return float(ends[0]), float(ends[1])


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns w_i of W and the inner products of their rank-one kernels."""

    W: FloatArray

    @property
    def is_small(self) -> bool:
        """Whether F may be formed."""
        return self.norms.size <= max(DENSE * len(self.W), 64)

    @cached_property
    def norms(self) -> FloatArray:
        """||w_i||^2, the traces of the rank-one kernels."""
        return cast(FloatArray, np.einsum("ij,ij->j", self.W, self.W))

    @cached_property
    def F(self) -> FloatArray:
        """(w_i'w_j)^2."""
        require_memory(16.0 * self.W.shape[1] ** 2, f"F of order {self.W.shape[1]}")
        F = self.W.T @ self.W
        return np.square(F, out=F)

    def kernel(self, a: FloatArray) -> FloatArray:
        """Return K(a)."""
        used = np.flatnonzero(a)
        span = slice(0, 0) if not used.size else slice(int(used[0]), int(used[-1]) + 1)
        if a.min() < 0:
            return (self.W[:, span] * a[span]) @ self.W[:, span].T
        half = self.W[:, span] * np.sqrt(a[span])
        return half @ half.T  # a symmetric product takes half the time

    def price(self, K: FloatArray) -> FloatArray:
        """Return w_i'K w_i for all i, by blocks that fit into a cache."""
        W, out = self.W, np.empty(self.W.shape[1])
        for start in range(0, out.size, CHUNK):
            part = W[:, start : start + CHUNK]
            out[start : start + CHUNK] = np.einsum("ij,ij->j", part, K @ part)
        return out

    def products(self, a: FloatArray) -> FloatArray:
        """Return F a."""
        return self.F @ a if self.is_small else self.price(self.kernel(a))

    def block(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return F[rows, columns]."""
        if "F" in self.__dict__:
            return self.F[np.ix_(rows, columns)]
        return np.square(self.W[:, rows].T @ self.W[:, columns])

    def prefix_block(self, ends: IntArray) -> FloatArray:
        """Return <P_j, P_k> for distinct j, k in ascending order."""
        if not self.is_small and ends.size <= self._store.most:
            flat: FloatArray = np.array([P.ravel() for P in self._store.prefixes(ends)])
            return flat @ flat.T
        F, last = self.F, int(ends[-1]) + 1
        if ends.size < last:
            starts = np.append(0, ends[:-1] + 1)
            F = np.add.reduceat(np.add.reduceat(F[:last, :last], starts, axis=0), starts, axis=1)
        return cast(FloatArray, F.cumsum(axis=0).cumsum(axis=1))

    def prefix_norms(self) -> FloatArray:
        """Return ||P_k|| for all k in O(m l^2), or O(m^2) with F at hand."""
        if self.is_small:
            grown: FloatArray = 2 * np.tril(self.F).sum(axis=1) - np.diagonal(self.F)
            return np.sqrt(np.cumsum(grown))
        W, m = self.W, self.W.shape[1]
        grown, P = np.empty(m), np.zeros((len(W), len(W)))
        for start in range(0, m, CHUNK):
            part = W[:, start : start + CHUNK]
            inside = np.square(part.T @ part)
            among = 2 * np.tril(inside).sum(axis=1) - np.diagonal(inside)
            grown[start : start + CHUNK] = among + 2 * np.einsum("ij,ij->j", part, P @ part)
            P += part @ part.T
        return np.sqrt(np.cumsum(grown))

    def prefix_products(self, s: FloatArray) -> FloatArray:
        """Return C'FC s, that is <P_k, K> for K = sum_j s_j P_j."""
        support = np.flatnonzero(s)
        if self.is_small or support.size > self._store.most:
            return np.cumsum(self.products(rising(s)))
        K = np.zeros((len(self.W), len(self.W)))
        for k, P in zip(support, self._store.prefixes(support), strict=True):
            K += s[k] * P
        return np.cumsum(self.price(K))

    @cached_property
    def _store(self) -> _Prefixes:
        return _Prefixes(self.W)


class _Prefixes:
    """Prefix kernels that were asked for lately; each is made from the nearest one below it."""

    def __init__(self, W: FloatArray) -> None:
        self.W = W
        self.most = max(16, int(STORE / (8 * len(W) ** 2)))
        self.kept: dict[int, FloatArray] = {}

    def __reduce__(self) -> tuple[type[_Prefixes], tuple[FloatArray]]:
        return _Prefixes, (self.W,)

    def prefixes(self, ends: IntArray) -> Sequence[FloatArray]:
        """Return P_k for the given k in ascending order."""
        found = []
        for k in map(int, ends):
            if k not in self.kept:
                base = max((j for j in self.kept if j < k), default=-1)
                part = self.W[:, base + 1 : k + 1]
                grown = part @ part.T
                self.kept[k] = grown if base < 0 else self.kept[base] + grown
            found.append(self.kept.pop(k))
            self.kept[k] = found[-1]  # last in the order of use
        for k in list(self.kept)[: -self.most]:
            del self.kept[k]
        return found


@dataclass(frozen=True, eq=False)
class ColumnQuadratic:
    """f(x) = ||K(d x)||^2 / 2 + linear'x, the quadratic with H = diag(d) F diag(d)."""

    columns: Columns
    d: FloatArray
    linear: FloatArray

    size = property(lambda self: int(self.linear.size))
    feature = property(lambda self: Feature.QUADRATIC)

    def value(self, x: FloatArray) -> float:
        return float(x @ self.matvec(x) / 2 + self.linear @ x)

    def gradient(self, x: FloatArray) -> FloatArray:
        return self.matvec(x) + self.linear

    def matvec(self, x: FloatArray) -> FloatArray:
        return self.d * self.columns.products(self.d * x)

    def block(self, rows: IntArray, columns: IntArray) -> FloatArray:
        return self.columns.block(rows, columns) * np.outer(self.d[rows], self.d[columns])

    def diagonal(self) -> FloatArray:
        return np.square(self.d * self.columns.norms)


@dataclass(frozen=True, eq=False)
class PrefixQuadratic(ColumnQuadratic):
    """f(x) = ||sum_k d_k x_k P_k||^2 / 2 + linear'x, the quadratic with H = diag(d) C'FC diag(d)."""

    def matvec(self, x: FloatArray) -> FloatArray:
        return self.d * self.columns.prefix_products(self.d * x)

    def block(self, rows: IntArray, columns: IntArray) -> FloatArray:
        ends = np.union1d(rows, columns)
        if not ends.size:
            return np.zeros((0, 0))
        among = self.columns.prefix_block(ends)
        block = among[np.ix_(np.searchsorted(ends, rows), np.searchsorted(ends, columns))]
        return block * np.outer(self.d[rows], self.d[columns])

    def diagonal(self) -> FloatArray:
        return np.square(self.d * self.columns.prefix_norms())
