"""What the brackets of ordered spectral kernels run: bounds of alignments, and means of prefixes.

**Alignment** rho = <K, T> / (||K|| ||T||) of K = sum_i beta_i w_i w_i' with a target T, ||T|| = 1.
beta >= 0 is nonincreasing where there is an order, b_i = w_i'T w_i and F_ij = (w_i'w_j)^2, so that

    ||K||^2 = beta'F beta,    <w_i w_i', K> = (F beta)_i,    <K, T> = b'beta.

The cone of these K is spanned by rays P_k (with an order the prefix kernels sum_(i <= k) w_i w_i',
without one w_k w_k'), and B_k = <P_k, T>. Any M with <P_k, M> >= B_k for all k proves <K, T> <=
<K, M> <= ||K|| ||M||, hence rho* <= ||M||. Three are tried,

    M = t K,               t = max B_k / <P_k, K>,
    M = c K + delta I,     c = <K, T> / ||K||^2,
    M = T,                 that is rho* <= 1,

for K and for any other matrix sum_i g_i w_i w_i' that a dual solution suggests. The first is exact
at the optimum, where K is, up to its scale, the projection of T on the cone.

If some B_k > 0, the optimum is that of the QP min ||K||^2 / 2 - <K, T>, of value -rho*^2 / 2. If
all B_k <= 0, then rho <= 0, and on the base <K, T> = -1 the convex ||K|| is maximised: the optimum
is a ray P_k, and the enumeration of B_k / ||P_k|| is the proof.

**Ordered linear program**  min c'mu  subject to  sum_i mu_i = 1,  mu_i >= sigma mu_(i+1),  mu >= 0.
With e_i = sigma^-(i-1) and E_k = e_1 + .. + e_k its vertices are the prefixes (e_1, .., e_k, 0, ..,
0) / E_k, so that the optimum is nu = min_k R_k with R_k = sum_(i <= k) e_i c_i / E_k, in O(r). For
every feasible mu,

    c'mu - nu = sum_k z_k (mu_k - sigma mu_(k+1)) / e_k,    z_k = (R_k - nu) E_k >= 0,

which proves it; z_k / e_k are the multipliers of the order, and unlike these the z_k do not
overflow.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from klopt.arrays import EPS, FloatArray, freeze, require_memory
from klopt.model.functions import IntArray
from klopt.model.sets import OrderedSimplex
from klopt.model.sets.ordered_cone import pooled
from klopt.model.sets.projections import prefix_weights

__all__ = ["Alignment", "PrefixMeans", "RankOneColumns"]

COLUMNS_PER_ROW = 4
"""F is formed where W has at most this many columns for each of its rows."""
MIN_DENSE_COLUMNS = 64
"""F is always formed up to this many columns."""
BLOCK_COLUMNS = 512
"""Columns of W that are multiplied at a time, so that a block stays in the cache."""
POSITIVE_ROUNDING = 64 * EPS
"""An alignment <P_k, T> / tr P_k up to this size is rounding."""
SUM_TOLERANCE = 1e-9
"""Weights whose sum is this near to 1 are rescaled, others are projected."""


@dataclass(frozen=True, eq=False)
class RankOneColumns:
    """The columns w_i of W (l x m), and sums K(a) = sum_i a_i w_i w_i' of their rank-one kernels.

    F takes m^2 numbers. Where m is more than a few l it is never formed: F a costs 2 m l^2 flops by
    way of K(a).
    """

    W: FloatArray

    @property
    def is_small(self) -> bool:
        """Whether F may be formed."""
        return bool(self.W.shape[1] <= max(COLUMNS_PER_ROW * len(self.W), MIN_DENSE_COLUMNS))

    @cached_property
    def norms(self) -> FloatArray:
        """||w_i||^2, the traces of the rank-one kernels."""
        return cast(FloatArray, freeze(np.einsum("ij,ij->j", self.W, self.W)))

    @cached_property
    def F(self) -> FloatArray:
        """(w_i'w_j)^2."""
        require_memory(16.0 * self.W.shape[1] ** 2, f"F of order {self.W.shape[1]}")
        F = self.W.T @ self.W
        return cast(FloatArray, freeze(np.square(F, out=F)))

    def kernel(self, a: FloatArray) -> FloatArray:
        """Return K(a)."""
        nonzero = np.flatnonzero(a)
        if not nonzero.size:
            return np.zeros((len(self.W), len(self.W)))

        span = slice(int(nonzero[0]), int(nonzero[-1]) + 1)
        W = self.W[:, span]
        if a.min() < 0:
            return (W * a[span]) @ W.T
        # BLAS forms a product M M' in half the time of a general one.
        half = W * np.sqrt(a[span])
        return half @ half.T

    def quadratic_forms(self, K: FloatArray) -> FloatArray:
        """Return w_i'K w_i for all i and a symmetric K."""
        upper = np.tril(K, -1).T * 2.0
        upper.flat[:: len(upper) + 1] = K.diagonal()
        return self.triangular_forms(upper)

    def triangular_forms(self, upper: FloatArray) -> FloatArray:
        """Return w_i'T w_i for an upper triangle T: half the work of a full matrix."""
        from scipy.linalg.blas import dtrmm

        forms = np.empty(self.W.shape[1])
        for start in range(0, forms.size, BLOCK_COLUMNS):
            block = self.W[:, start : start + BLOCK_COLUMNS]
            image = dtrmm(1.0, upper, block.copy().T, side=1, overwrite_b=1).T
            forms[start : start + BLOCK_COLUMNS] = np.einsum("ij,ij->j", block, image)
        return forms

    def products(self, a: FloatArray) -> FloatArray:
        """Return F a, that is <w_i w_i', K(a)> for all i."""
        if self.is_small:
            return self.F @ a
        return self.quadratic_forms(self.kernel(a))

    def prefix_norms(self) -> FloatArray:
        """Return ||P_k|| for all prefix kernels, in O(m l^2), or O(m^2) with F at hand."""
        # ||P_k||^2 - ||P_(k-1)||^2 = F_kk + 2 sum_(i < k) F_ki
        if self.is_small:
            growth: FloatArray = 2 * np.tril(self.F).sum(axis=1) - np.diagonal(self.F)
            return np.sqrt(np.cumsum(growth))

        rows, m = self.W.shape
        growth = np.empty(m)
        P = np.zeros((rows, rows))
        for start in range(0, m, BLOCK_COLUMNS):
            block = self.W[:, start : start + BLOCK_COLUMNS]
            inner = np.square(block.T @ block)
            among = 2 * np.tril(inner).sum(axis=1) - np.diagonal(inner)
            before = 2 * np.einsum("ij,ij->j", block, P @ block)
            growth[start : start + BLOCK_COLUMNS] = among + before
            P += block @ block.T
        return np.sqrt(np.cumsum(growth))


@dataclass(frozen=True, eq=False)
class Alignment:
    """An alignment problem in the columns that matter, its bounds, and the way from beta to alpha.

    A sigma-order alpha_i >= sigma alpha_(i+1) is the plain order of beta_i = alpha_i / e_i, e_i =
    sigma^-(i-1), on the columns w_i = e_i^1/2 v_i: nothing overflows.

    Parameters
    ----------
    columns
        w_i, the kept columns of V on the labelled points, scaled.
    b
        w_i'T w_i.
    ordered
        Whether beta is nonincreasing.
    kept
        The columns of V that W is made of.
    steps
        e_i of every column of V, 1 at the first kept one.
    """

    columns: RankOneColumns
    b: FloatArray
    ordered: bool
    kept: IntArray
    steps: FloatArray

    def at_rays(self, x: FloatArray) -> FloatArray:
        """Return the values at the rays of the linear function of value x_i at w_i w_i'."""
        return np.cumsum(x) if self.ordered else x

    @cached_property
    def B(self) -> FloatArray:
        """<P_k, T>."""
        return self.at_rays(self.b)

    @cached_property
    def traces(self) -> FloatArray:
        """tr P_k."""
        return self.at_rays(self.columns.norms)

    @cached_property
    def best_trace_ratio(self) -> float:
        """max B_k / tr P_k."""
        return float(np.max(self.B / self.traces))

    @cached_property
    def is_positive(self) -> bool:
        """Whether the optimum is positive beyond rounding: whether a quadratic program finds it."""
        return self.best_trace_ratio > POSITIVE_ROUNDING

    def ray(self, k: int) -> FloatArray:
        """Return the beta of P_k."""
        beta = np.zeros(self.kept.size)
        first = 0 if self.ordered else k
        beta[first : k + 1] = 1.0
        return beta

    def best_ray(self) -> tuple[int, float]:
        """Return the k of the largest B_k / ||P_k|| and that alignment."""
        norms = self.columns.prefix_norms() if self.ordered else self.columns.norms
        k = int(np.argmax(self.B / norms))
        return k, float(self.B[k] / norms[k])

    def beta(self, alpha: FloatArray) -> FloatArray:
        """Return the beta of the cone that is nearest to alpha; a ray where that is zero."""
        kept = alpha[self.kept]
        largest = float(np.abs(kept).max()) or 1.0
        given = kept / largest
        if self.ordered:
            beta = pooled(given, self.steps[self.kept])
        else:
            beta = np.maximum(given, 0.0)
        if beta.any():
            return beta

        # Every beta of the cone has an alignment but 0 itself.
        if self.is_positive:
            return self.ray(int(np.argmax(self.B / self.traces)))
        return self.ray(self.best_ray()[0])

    def alpha(self, beta: FloatArray) -> FloatArray:
        """Return the weights of all columns of V, of sum 1."""
        if self.ordered:
            # Columns that were left out keep the order, too, by the beta of the next kept one.
            following = np.searchsorted(self.kept, np.arange(self.steps.size))
            full: FloatArray = self.steps * np.append(beta, 0.0)[following]
        else:
            full = self.to_all_columns(beta)
        return full / (float(full.sum()) or 1.0)

    def to_all_columns(self, g: FloatArray) -> FloatArray:
        """Return the coefficients of sum_i g_i w_i w_i' in the columns of V."""
        full = np.zeros(self.steps.size)
        full[self.kept] = self.steps[self.kept] * g
        return full

    def from_all_columns(self, full: FloatArray) -> FloatArray:
        """Return the g of which `full` holds the coefficients."""
        return full[self.kept] / self.steps[self.kept]

    def bounds(self, beta: FloatArray, *others: FloatArray) -> tuple[float, float]:
        """Return proven bounds of the best alignment.

        Parameters
        ----------
        beta
            A point of the cone, not 0: its alignment is the lower bound.
        others
            The g of further matrices sum_i g_i w_i w_i' that may bound the optimum from above.

        Returns
        -------
        The lower and the upper bound, widened by what rounding may have done.
        """
        products = self.columns.products(beta)
        norm = float(np.sqrt(float(beta @ products)))
        rho = float(self.b @ beta) / norm
        rounding = EPS * (8 + float(np.sqrt(beta.size)))
        if not self.is_positive:
            # The best ray is optimal where all B_k <= 0; a B_k that is positive by rounding adds no
            # more than B_k / ||P_k|| <= l^1/2 B_k / tr P_k.
            spare = max(0.0, self.best_trace_ratio) * float(np.sqrt(len(self.columns.W)))
            return rho - rounding, self.best_ray()[1] + spare + rounding

        uppers = [self._upper(g, self.columns.products(g)) for g in others]
        upper = min(1.0, self._upper(beta, products), *uppers)
        return rho - rounding, upper + rounding

    def _upper(self, g: FloatArray, products: FloatArray) -> float:
        """The smallest ||M|| of the matrices made from G = sum_i g_i w_i w_i', given F g."""
        square = float(g @ products)
        if not square > 0:
            return np.inf
        prices = self.at_rays(products)

        # M = t G
        positive = self.B > 0
        with np.errstate(divide="ignore"):
            t = float(np.max(self.B[positive] / np.maximum(prices[positive], 0.0)))
        scaled = t * float(np.sqrt(square))

        # M = c G + delta I
        c = max(float(self.b @ g) / square, 0.0)
        delta = max(0.0, float(np.max((self.B - c * prices) / self.traces)))
        trace = float(self.columns.norms @ g)
        order = len(self.columns.W)
        shifted = c * c * square + 2 * c * delta * trace + delta * delta * order
        return min(scaled, float(np.sqrt(shifted)))


@dataclass(frozen=True, eq=False)
class PrefixMeans:
    """The ordered linear program by its vertices, its multipliers and its bounds.

    Long vectors are worked on in place: fresh memory takes longer than the sums.

    >>> program = PrefixMeans(np.array([3.0, 1.0, 5.0]), 1.0)
    >>> program.means, program.prefix(program.best)
    (array([3., 2., 3.]), array([0.5, 0.5, 0. ]))
    """

    c: FloatArray
    sigma: float

    @cached_property
    def e(self) -> FloatArray:
        """e_i."""
        return prefix_weights(self.c.size, self.sigma)

    @cached_property
    def sums(self) -> FloatArray:
        """E_k."""
        if self.sigma == 1:
            return np.arange(1.0, self.c.size + 1)
        return np.cumsum(self.e)

    @cached_property
    def means(self) -> FloatArray:
        """R_k, computed from c - c_1 so that a common level of c costs no digits."""
        means: FloatArray = self.c - self.c[0]
        if self.sigma > 1:
            means *= self.e
        np.cumsum(means, out=means)
        means /= self.sums
        means += self.c[0]
        return means

    @cached_property
    def best(self) -> int:
        """The number of entries of the best prefix."""
        return int(np.argmin(self.means)) + 1

    @property
    def optimum(self) -> float:
        """nu, the smallest mean."""
        return float(self.means[self.best - 1])

    def prefix(self, size: int) -> FloatArray:
        """Return the vertex of that many entries."""
        mu = np.zeros(self.c.size)
        if self.sigma == 1:
            mu[:size] = 1 / size
        else:
            mu[:size] = self.e[:size] / float(self.e[:size].sum())
        return mu

    def multipliers(self) -> tuple[float, FloatArray]:
        """Return nu and z."""
        nu = self.optimum
        z = self.means - nu
        z *= self.sums
        return nu, z

    def bounds(self, mu: FloatArray) -> tuple[float, float]:
        """Return nu and c'mu for a feasible mu, widened by what rounding may have done."""
        largest = max(float(self.c.max()), -float(self.c.min()))
        lower = self.optimum - EPS * (8 + float(np.sqrt(self.c.size))) * largest
        upper = float(self.c @ mu) + 16 * EPS * largest
        return lower, upper

    def nearest_feasible(self, mu: FloatArray) -> FloatArray:
        """Return the nearest feasible mu: mu itself, but for rounding, if it is one."""
        total = float(mu.sum())
        if abs(total - 1) < SUM_TOLERANCE and self._is_ordered(mu):
            return mu if abs(total - 1) <= 4 * EPS else mu / total

        # A prefix is short, mu may be long: only the entries up to the last nonzero are projected.
        last = mu.size - int(np.argmax(mu[::-1] != 0)) if mu.any() else mu.size
        repaired = OrderedSimplex(last, self.sigma).repair(mu[:last])
        return np.append(repaired, np.zeros(mu.size - last))

    def _is_ordered(self, mu: FloatArray) -> bool:
        """Whether mu >= 0 keeps the order up to rounding."""
        if mu[-1] < 0:
            return False
        later = mu[1:] if self.sigma == 1 else self.sigma * mu[1:]
        # Exact order first: it is the rule, and needs one pass instead of two.
        return bool((later <= mu[:-1]).all() or (later <= (1 + 4 * EPS) * mu[:-1]).all())
