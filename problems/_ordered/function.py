"""Sums of rank-one kernels, K(a) = sum_i a_i w_i w_i', and the quadratics ||K||^2 / 2 - <K, T> in their coefficients.

With the columns w_i of W (l x m) and F_ij = (w_i'w_j)^2,

    ||K(a)||^2 = a'Fa,    <w_i w_i', K(a)> = w_i'K(a) w_i = (F a)_i.

The nonincreasing a >= 0 are the nonnegative combinations of prefixes: a = C s with s_k = a_k -
a_(k+1) >= 0, and K = sum_k s_k P_k with the prefix kernels P_k = sum_(i <= k) w_i w_i'. C and C'
are cumulative sums; C'FC is <P_j, P_k>.

F takes m^2 numbers. Where m is larger than a few l it is never formed: F a costs 2 m l^2 by way of
K, and the few columns of C'FC that an active set asks for come from the prefix kernels themselves,
which are kept.
"""

from __future__ import annotations

from bisect import bisect
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from klopt.arrays import FloatArray, require_memory
from klopt.model.cones import Feature
from klopt.model.functions import IntArray
from klopt.model.problem import Formulation

__all__ = ["ColumnQuadratic", "Columns", "PrefixQuadratic", "Rooted", "falling", "rising"]

DENSE = 4
"""F is formed up to so many columns a row of W."""
CHUNK = 512
STORE = 4e6
"""Bytes of prefix kernels that are kept."""
KEPT = 64, 512
"""At least and at most so many are."""
LEADING = 640
"""The longest prefix of an optimum is seldom longer than this or a quarter of the columns."""


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
        return bool(self.W.shape[1] <= max(DENSE * len(self.W), 64))

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
        """Return w_i'K w_i for all i and a symmetric K."""
        T = np.tril(K, -1).T * 2.0
        T.flat[:: len(T) + 1] = K.diagonal()
        return self._price(T)

    def _price(self, T: FloatArray) -> FloatArray:
        """The w_i'T w_i for an upper triangle: half the work of a full matrix, by blocks that fit into a cache."""
        from scipy.linalg.blas import dtrmm

        W, out = self.W, np.empty(self.W.shape[1])
        for start in range(0, out.size, CHUNK):
            part = W[:, start : start + CHUNK]
            image = dtrmm(1.0, T, part.copy().T, side=1, overwrite_b=1).T
            out[start : start + CHUNK] = np.einsum("ij,ij->j", part, image)
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
            return self._store.inner(ends)
        F, last = self.F, int(ends[-1]) + 1
        if ends.size < last:
            starts = np.append(0, ends[:-1] + 1)
            F = np.add.reduceat(np.add.reduceat(F[:last, :last], starts, axis=0), starts, axis=1)
        return np.asarray(F.cumsum(axis=0).cumsum(axis=1))

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
        asked, last = (support, s[support]), self._store.last
        if last is None or last[2].size != s.size or not all(map(np.array_equal, asked, last[:2])):
            last = self._store.last = (*asked, np.cumsum(self._price(self._store.triangle(*asked))))
        return last[2]

    def leading(self) -> Columns | None:
        """Return so many of the first columns that the longest prefix of an optimum may be among them."""
        count = max(LEADING, (DENSE + 1) * len(self.W), self.W.shape[1] // 4)
        if 2 * count > self.W.shape[1]:
            return None
        first = Columns(self.W[:, :count])
        first.__dict__["_store"] = self._store  # its prefixes are those of all columns
        return first

    @cached_property
    def _store(self) -> _Prefixes:
        return _Prefixes(self.W)


class _Prefixes:
    """Prefix kernels that were asked for and their inner products; each is made from the nearest one below it.

    A kernel is kept as a row, one triangle in the packed format of LAPACK into which BLAS adds
    products at full speed. `twice` is 1 on the diagonal and 2 elsewhere, so that <P_j, P_k> =
    row_j'(twice row_k). Whoever finds a solution, and whoever checks it, prices the same sum of
    kernels: `last` is that one, s and C'FC s.
    """

    def __init__(self, W: FloatArray) -> None:
        from scipy.linalg.lapack import dtrttf

        self.W = W
        self.twice = 2.0 - dtrttf(np.eye(len(W)))[0]
        self.most = int(np.clip(STORE / (8 * self.twice.size), *KEPT))
        self.rows = np.empty((self.most, self.twice.size))
        self.products = np.empty((self.most, self.most))
        self.slots: dict[int, int] = {}
        self.last: tuple[IntArray, FloatArray, FloatArray] | None = None

    def __reduce__(self) -> tuple[type[_Prefixes], tuple[FloatArray]]:
        return _Prefixes, (self.W,)

    def inner(self, ends: IntArray) -> FloatArray:
        """Return <P_j, P_k> for the given j, k in ascending order."""
        at = self._at(ends)
        return self.products[np.ix_(at, at)]

    def triangle(self, ends: IntArray, weights: FloatArray) -> FloatArray:
        """Return an upper triangle T with w'T w = w'(sum_k weights_k P_k) w, the k in ascending order."""
        from scipy.linalg.lapack import dtfttr

        return cast(
            FloatArray, dtfttr(len(self.W), (weights @ self.rows[self._at(ends)]) * self.twice)[0]
        )

    def _at(self, ends: IntArray) -> list[int]:
        """The slots of the given prefixes, which are made where they are missing."""
        from scipy.linalg.lapack import dsfrk

        wanted = ends.tolist()
        missing = [k for k in wanted if k not in self.slots]
        if not missing:
            return [self.slots[k] for k in wanted]
        if len(self.slots) + len(missing) > self.most:
            self._keep([k for k in wanted if k in self.slots])
        first, made = len(self.slots), sorted(self.slots)
        for k in missing:
            at = bisect(made, k)
            base = made[at - 1] if at else -1
            row = self.rows[len(self.slots)]
            row[:] = self.rows[self.slots[base]] if at else 0.0
            dsfrk(len(self.W), k - base, 1.0, self.W[:, base + 1 : k + 1], 1.0, row, overwrite_c=1)
            self.slots[k] = len(self.slots)
            made.insert(at, k)
        last = len(self.slots)
        self.products[first:last, :last] = (self.rows[first:last] * self.twice) @ self.rows[:last].T
        self.products[:first, first:last] = self.products[first:last, :first].T
        return [self.slots[k] for k in wanted]

    def _keep(self, ends: list[int]) -> None:
        """Forget all but some."""
        at = [self.slots[k] for k in ends]
        self.rows[: len(at)] = self.rows[at]
        self.products[: len(at), : len(at)] = self.products[np.ix_(at, at)]
        self.slots = {k: slot for slot, k in enumerate(ends)}


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
        ends = np.unique(rows) if rows is columns else np.union1d(rows, columns)
        if not ends.size:
            return np.zeros((0, 0))
        down, across = ends.searchsorted(rows)[:, None], ends.searchsorted(columns)
        return self.columns.prefix_block(ends)[down, across] * self.d[rows, None] * self.d[columns]

    def diagonal(self) -> FloatArray:
        return np.square(self.d * self.columns.prefix_norms())

    def leading(self) -> PrefixQuadratic | None:
        """Return the quadratic in its first variables, where those are likely to be the nonzeros of a solution."""
        first = self.columns.leading()
        if first is None:
            return None
        count = first.W.shape[1]
        return PrefixQuadratic(first, self.d[:count], self.linear[:count])
