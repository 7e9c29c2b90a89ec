"""The objective ||K||^2 / 2 - <K, T> of sums of rank-one kernels, as quadratics of their weights.

With the columns w_i of W (l x m) and F_ij = (w_i'w_j)^2, K(a) = sum_i a_i w_i w_i' has the norm
||K(a)||^2 = a'Fa. The nonincreasing a >= 0 are the nonnegative combinations of prefixes: a = C s
with s_k = a_k - a_(k+1) >= 0, and K = sum_k s_k P_k with the prefix kernels P_k = sum_(i <= k) w_i
w_i'. C and C' are cumulative sums, and C'FC is <P_j, P_k>.

Where m is more than a few l, F is never formed (`proof.RankOneColumns`), and the few columns of
C'FC that an active set asks for come from the prefix kernels themselves, which are kept.
"""

from __future__ import annotations

from bisect import bisect
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from klopt.arrays import FloatArray, freeze
from klopt.model.features import Feature
from klopt.model.functions import IntArray
from klopt.problems._ordered.proof import COLUMNS_PER_ROW, RankOneColumns

__all__ = [
    "ColumnQuadratic",
    "PrefixKernels",
    "PrefixQuadratic",
    "PrefixStore",
    "falling",
    "rising",
]

MAX_STORE_BYTES = 4e6
"""The memory that kept prefix kernels may take."""
MIN_STORED = 64
"""The number of prefix kernels that may be kept whatever memory they take."""
MAX_STORED = 512
"""The largest number of prefix kernels that is kept."""
MIN_LEADING_COLUMNS = 640
"""The longest prefix of an optimum seldom has more columns than this, or than a quarter of all."""


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
class PrefixKernels:
    """The prefix kernels P_k of some columns and their inner products."""

    columns: RankOneColumns

    def products(self, s: FloatArray) -> FloatArray:
        """Return C'FC s, that is <P_k, K> for K = sum_j s_j P_j."""
        support = np.flatnonzero(s)
        if self.columns.is_small or support.size > self._store.capacity:
            return np.cumsum(self.columns.products(rising(s)))

        # Whoever finds a solution, and whoever checks it, asks for the same sum of kernels.
        weights = s[support]
        last = self._store.last
        if last is not None and last.answers(support, weights, s.size):
            return last.products
        triangle = self._store.triangle(support, weights)
        products = freeze(np.cumsum(self.columns.triangular_forms(triangle)))
        self._store.last = _PrefixProducts(support, weights, products)
        return products

    def block(self, ends: IntArray) -> FloatArray:
        """Return <P_j, P_k> for distinct j, k in ascending order."""
        if not self.columns.is_small and ends.size <= self._store.capacity:
            return self._store.inner(ends)

        F = self.columns.F
        last = int(ends[-1]) + 1
        if ends.size < last:
            # Columns between two ends always come together.
            starts = np.append(0, ends[:-1] + 1)
            merged = np.add.reduceat(F[:last, :last], starts, axis=0)
            F = np.add.reduceat(merged, starts, axis=1)
        return np.asarray(F.cumsum(axis=0).cumsum(axis=1))

    def leading(self) -> PrefixKernels | None:
        """Return the first kernels, where the longest prefix of an optimum may be among them."""
        rows, m = self.columns.W.shape
        count = max(MIN_LEADING_COLUMNS, (COLUMNS_PER_ROW + 1) * rows, m // 4)
        if 2 * count > m:
            return None
        first = PrefixKernels(RankOneColumns(self.columns.W[:, :count]))
        # Its prefixes are those of all columns.
        first.__dict__["_store"] = self._store
        return first

    @cached_property
    def _store(self) -> PrefixStore:
        return PrefixStore(self.columns.W)


@dataclass(frozen=True, eq=False)
class _PrefixProducts:
    """C'FC s for an s given by its nonzeros."""

    support: IntArray
    weights: FloatArray
    products: FloatArray

    def answers(self, support: IntArray, weights: FloatArray, size: int) -> bool:
        """Whether these are the products of the given s."""
        if self.products.size != size:
            return False
        return np.array_equal(support, self.support) and np.array_equal(weights, self.weights)


class PrefixStore:
    """Prefix kernels that were asked for, and their inner products.

    A kernel is a row: one triangle in the packed format of LAPACK, into which BLAS adds products at
    full speed. It is made from the nearest kept one below it. `twice` is 1 on the diagonal and 2
    elsewhere, so that <P_j, P_k> = row_j'(twice row_k). A copy or a pickle starts empty.
    """

    def __init__(self, W: FloatArray) -> None:
        from scipy.linalg.lapack import dtrttf

        self.W = W
        self.twice = 2.0 - dtrttf(np.eye(len(W)))[0]
        fitting = MAX_STORE_BYTES / (8 * self.twice.size)
        self.capacity = int(np.clip(fitting, MIN_STORED, MAX_STORED))
        self.rows = np.empty((self.capacity, self.twice.size))
        self.products = np.empty((self.capacity, self.capacity))
        self.slots: dict[int, int] = {}
        self.last: _PrefixProducts | None = None

    def __reduce__(self) -> tuple[type[PrefixStore], tuple[FloatArray]]:
        return PrefixStore, (self.W,)

    def inner(self, ends: IntArray) -> FloatArray:
        """Return <P_j, P_k> for the given j, k in ascending order."""
        slots = self._slots_of(ends)
        return self.products[np.ix_(slots, slots)]

    def triangle(self, ends: IntArray, weights: FloatArray) -> FloatArray:
        """Return an upper triangle T with w'T w = w'(sum_k weights_k P_k) w, the k ascending."""
        from scipy.linalg.lapack import dtfttr

        packed = (weights @ self.rows[self._slots_of(ends)]) * self.twice
        return cast(FloatArray, dtfttr(len(self.W), packed)[0])

    def _slots_of(self, ends: IntArray) -> list[int]:
        """The slots of the given prefixes, which are made where they are missing."""
        wanted = ends.tolist()
        missing = [k for k in wanted if k not in self.slots]
        if missing:
            if len(self.slots) + len(missing) > self.capacity:
                self._keep_only([k for k in wanted if k in self.slots])
            self._make(missing)
        return [self.slots[k] for k in wanted]

    def _make(self, missing: list[int]) -> None:
        """Add prefixes, given in ascending order, and their inner products with all others."""
        from scipy.linalg.lapack import dsfrk

        first = len(self.slots)
        made = sorted(self.slots)
        for k in missing:
            slot = len(self.slots)
            row = self.rows[slot]
            below = bisect(made, k)
            if below:
                base = made[below - 1]
                row[:] = self.rows[self.slots[base]]
            else:
                base = -1
                row[:] = 0.0
            between = self.W[:, base + 1 : k + 1]
            dsfrk(len(self.W), k - base, 1.0, between, 1.0, row, overwrite_c=1)
            self.slots[k] = slot
            made.insert(below, k)

        last = len(self.slots)
        new = (self.rows[first:last] * self.twice) @ self.rows[:last].T
        self.products[first:last, :last] = new
        self.products[:first, first:last] = self.products[first:last, :first].T

    def _keep_only(self, ends: list[int]) -> None:
        """Forget all other prefixes."""
        kept = [self.slots[k] for k in ends]
        self.rows[: len(kept)] = self.rows[kept]
        self.products[: len(kept), : len(kept)] = self.products[np.ix_(kept, kept)]
        self.slots = {k: slot for slot, k in enumerate(ends)}


@dataclass(frozen=True, eq=False)
class _ScaledQuadratic:
    """f(x) = x'Hx / 2 + linear'x, H = diag(d) G diag(d) with the inner products G of kernels."""

    kernels: RankOneColumns | PrefixKernels
    d: FloatArray
    linear: FloatArray

    @property
    def size(self) -> int:
        """The number of variables."""
        return int(self.linear.size)

    @property
    def feature(self) -> Feature:
        """What a backend must offer."""
        return Feature.QUADRATIC

    def value(self, x: FloatArray) -> float:
        return float(x @ self.matvec(x) / 2 + self.linear @ x)

    def gradient(self, x: FloatArray) -> FloatArray:
        return self.matvec(x) + self.linear

    def matvec(self, x: FloatArray) -> FloatArray:
        return self.d * self.kernels.products(self.d * x)


@dataclass(frozen=True, eq=False)
class ColumnQuadratic(_ScaledQuadratic):
    """f(x) = ||K(d x)||^2 / 2 + linear'x, the quadratic with G = F."""

    kernels: RankOneColumns

    def block(self, rows: IntArray, columns: IntArray) -> FloatArray:
        if "F" in self.kernels.__dict__:
            F = self.kernels.F[np.ix_(rows, columns)]
        else:
            W = self.kernels.W
            F = np.square(W[:, rows].T @ W[:, columns])
        return F * np.outer(self.d[rows], self.d[columns])

    def diagonal(self) -> FloatArray:
        return np.square(self.d * self.kernels.norms)


@dataclass(frozen=True, eq=False)
class PrefixQuadratic(_ScaledQuadratic):
    """f(x) = ||sum_k d_k x_k P_k||^2 / 2 + linear'x, the quadratic with G = C'FC."""

    kernels: PrefixKernels

    def block(self, rows: IntArray, columns: IntArray) -> FloatArray:
        ends = np.unique(rows) if rows is columns else np.union1d(rows, columns)
        if not ends.size:
            return np.zeros((0, 0))
        down = ends.searchsorted(rows)[:, None]
        across = ends.searchsorted(columns)
        return self.kernels.block(ends)[down, across] * self.d[rows, None] * self.d[columns]

    def diagonal(self) -> FloatArray:
        return np.square(self.d * self.kernels.columns.prefix_norms())

    def leading(self) -> PrefixQuadratic | None:
        """Return f of its first variables, if those are likely to be the nonzeros of a solution."""
        first = self.kernels.leading()
        if first is None:
            return None
        count = first.columns.W.shape[1]
        return PrefixQuadratic(first, self.d[:count], self.linear[:count])
