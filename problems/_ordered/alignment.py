"""The alignment rho = <K, T> / (||K|| ||T||) of sums of rank-one kernels with a target, and what bounds it.

K = sum_i beta_i w_i w_i' with beta >= 0, nonincreasing where there is an order; T has ||T|| = 1,
and b_i = w_i'T w_i. The cone of these K is spanned by rays P_k (prefix kernels with an order, w_k
w_k' without), with B_k = <P_k, T>.

Upper bounds. Any M with <P_k, M> >= B_k for all k proves <K, T> <= <K, M> <= ||K|| ||M||, so rho*
<= ||M||. Taken are

    M = t K,  t = max B_k / <P_k, K>        M = c K + delta I,  c = <K, T> / ||K||^2        M = T  (rho* <= 1),

for K and for any other matrix sum_i g_i w_i w_i' that a dual solution suggests. The first is exact
at the optimum: there K is, up to its scale, the projection of T on the cone.

If some B_k > 0, the optimum is the QP  minimise ||K||^2 / 2 - <K, T>,  of value -rho*^2 / 2. If all
B_k <= 0, rho <= 0 and on the base <K, T> = -1 the largest norm is wanted, a convex function: the
optimum is a ray P_k, and the enumeration of B_k / ||P_k|| is the proof.

A sigma-order alpha_i >= sigma alpha_(i+1) is the plain order of beta_i = alpha_i / e_i, e_i =
sigma^-(i-1), on the columns w_i = e_i^1/2 v_i: nothing overflows. Columns that vanish on the
labelled points are no part of any ray. They, and those that e_i has made rounding beside the
others, are left out of the forms and come back in `alpha`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from klopt.arrays import EPS, FloatArray
from klopt.errors import InvalidProblem
from klopt.model.sets.ordered_cone import pooled
from klopt.problems._ordered.function import Columns

__all__ = ["Alignment", "target_products"]

VANISHED = 1e-12
NEGLIGIBLE = 1e-18
LONGEST = 1e100


def target_products(
    W: FloatArray, classes: npt.NDArray[np.int64], signed: bool
) -> tuple[FloatArray, float]:
    """Return w_i'T w_i for the columns of W and ||T||, where T_pq is 1 for one class and 0 (signed: -1) for two.

    >>> target_products(np.array([[1.0], [2.0], [4.0]]), np.array([0, 0, 1]), signed=True)
    (array([1.]), 3.0)
    """
    _, group, sizes = np.unique(classes, return_inverse=True, return_counts=True)
    sums = np.zeros((sizes.size, W.shape[1]))
    for index in range(sizes.size):
        sums[index] = W[group == index].sum(axis=0)
    same = np.einsum("ij,ij->j", sums, sums)
    if not signed:
        return same, float(np.linalg.norm(sizes))
    return 2 * same - sums.sum(axis=0) ** 2, float(classes.size)


@dataclass(frozen=True, eq=False)
class Alignment:
    """The columns that matter, the target's products with them, and the way between beta and alpha."""

    columns: Columns
    b: FloatArray
    ordered: bool
    kept: npt.NDArray[np.intp]
    """The columns of V that W is made of."""
    steps: FloatArray
    """e_i of every column of V, 1 at the first kept one."""

    @classmethod
    def of(
        cls,
        V: FloatArray,
        classes: npt.NDArray[np.int64],
        sigma: float,
        ordered: bool,
        signed: bool,
    ) -> Alignment:
        """Return the alignment of the columns of V with the target of the labelled points (class >= 0)."""
        known = classes >= 0
        VL = V[known]
        weight = np.einsum("ij,ij->j", VL, VL)
        present = np.flatnonzero(weight > VANISHED**2 * np.einsum("ij,ij->j", V, V))
        if not present.size:
            raise InvalidProblem(
                "V is zero on every labelled point; give eigenvectors that reach them, or more labels"
            )
        exponent = np.log(sigma) * (np.arange(V.shape[1]) - present[0])
        if -exponent[0] > np.log(LONGEST):
            raise InvalidProblem(
                f"the first {present[0]} columns of V vanish on the labelled points, and sigma = {sigma:g} makes "
                f"their weights {sigma:g}^{present[0]} times those of the next; leave these columns out"
            )
        with np.errstate(under="ignore"):
            steps = np.exp(-exponent)
        share = steps[present] * weight[present]
        kept = (
            present[: int(np.flatnonzero(share > NEGLIGIBLE * share.max())[-1]) + 1]
            if ordered
            else present
        )
        W = np.take(VL, kept, axis=1) * np.sqrt(steps[kept])  # in rows, unlike VL[:, kept]
        b, norm = target_products(W, classes[known], signed)
        return cls(Columns(W), b / norm, ordered, kept, steps)

    def sums(self, x: FloatArray) -> FloatArray:
        """Return C'x: the values at the rays of what has the value x_i at each column."""
        return np.cumsum(x) if self.ordered else x

    @cached_property
    def B(self) -> FloatArray:
        """<P_k, T>."""
        return self.sums(self.b)

    @cached_property
    def traces(self) -> FloatArray:
        """tr P_k."""
        return self.sums(self.columns.norms)

    @cached_property
    def is_positive(self) -> bool:
        """Whether the optimum is positive beyond rounding: whether a quadratic program finds it."""
        return bool(np.max(self.B / self.traces) > 64 * EPS)

    @cached_property
    def unit(self) -> float:
        """A power of two u near min tr P_k / B_k: with u T as target the optimal K has a norm from 1 to 2 l^1/2."""
        return (
            float(np.exp2(np.ceil(-np.log2(np.max(self.B / self.traces)))))
            if self.is_positive
            else 1.0
        )

    @cached_property
    def is_diagonal(self) -> bool:
        """Whether the columns of W are orthogonal, up to rounding: asked by one product with a fixed vector."""
        W, norms = self.columns.W, self.columns.norms
        if W.shape[1] > W.shape[0]:
            return False
        z = np.random.default_rng(0).uniform(1, 2, norms.size)
        return bool(np.max(np.abs(W.T @ (W @ z) - norms * z)) <= 1e-9 * float(norms.min()))

    def tops(self) -> FloatArray:
        """Return bounds of s_k tr P_k at the optimum, where ||K|| <= ||T|| = 1 and ||P_k|| >= tr P_k / rank^1/2."""
        m, rank = self.kept.size, min(self.columns.W.shape)
        return np.sqrt(np.minimum(np.arange(1.0, m + 1), rank)) if self.ordered else np.ones(m)

    def ray(self, k: int) -> FloatArray:
        """Return the beta of P_k."""
        beta = np.zeros(self.kept.size)
        beta[0 if self.ordered else k : k + 1] = 1.0
        return beta

    def best_ray(self) -> tuple[int, float]:
        """Return the k of the largest B_k / ||P_k|| and that alignment."""
        norms = self.columns.prefix_norms() if self.ordered else self.columns.norms
        k = int(np.argmax(self.B / norms))
        return k, float(self.B[k] / norms[k])

    def orthogonal(self) -> FloatArray:
        """Return the optimal beta where the columns are orthogonal: F is diagonal, and pooling solves the QP."""
        norms = self.columns.norms
        return pooled(self.b / norms, norms) if self.ordered else np.maximum(self.b, 0.0) / norms**2

    def beta(self, alpha: FloatArray) -> FloatArray:
        """Return the nearest beta of the cone; a ray where that is zero."""
        given = alpha[self.kept] / (float(np.abs(alpha[self.kept]).max()) or 1.0)
        beta = pooled(given, self.steps[self.kept]) if self.ordered else np.maximum(given, 0.0)
        if beta.any():
            return beta
        return self.ray(
            int(np.argmax(self.B / self.traces)) if self.is_positive else self.best_ray()[0]
        )

    def spread(self, g: FloatArray) -> FloatArray:
        """Return the coefficients of sum_i g_i w_i w_i' in the columns of V."""
        full = np.zeros(self.steps.size)
        full[self.kept] = self.steps[self.kept] * g
        return full

    def gathered(self, full: FloatArray) -> FloatArray:
        """Return the g of which `full` is the spread."""
        return full[self.kept] / self.steps[self.kept]

    def alpha(self, beta: FloatArray) -> FloatArray:
        """Return the weights of all columns of V, of sum 1."""
        full = self.spread(beta)
        if self.ordered:  # what vanishes or is negligible has to keep the order, too
            full = (
                self.steps * np.append(beta, 0.0)[np.searchsorted(self.kept, np.arange(full.size))]
            )
        return full / (float(full.sum()) or 1.0)

    def bounds(self, beta: FloatArray, *others: FloatArray) -> tuple[float, float]:
        """Return (lower, upper) of the best alignment: that of beta != 0 in the cone, the least ||M|| it suggests."""
        products, rounding = self.columns.products(beta), EPS * (8 + float(np.sqrt(beta.size)))
        rho = float(self.b @ beta) / float(np.sqrt(float(beta @ products)))
        if not self.is_positive:
            spare = max(0.0, float(np.max(self.B / self.traces))) * float(
                np.sqrt(len(self.columns.W))
            )
            return rho - rounding, self.best_ray()[1] + spare + rounding
        bounds = [self._upper(g, self.columns.products(g)) for g in others]
        return rho - rounding, min(1.0, self._upper(beta, products), *bounds) + rounding

    def _upper(self, g: FloatArray, products: FloatArray) -> float:
        """The least ||M|| of the matrices made from M = sum_i g_i w_i w_i', given F g."""
        square, inner, prices = float(g @ products), float(self.b @ g), self.sums(products)
        if not square > 0:
            return np.inf
        positive = self.B > 0
        with np.errstate(divide="ignore"):
            ratio = float(np.max(self.B[positive] / np.maximum(prices[positive], 0.0)))
        c = max(inner / square, 0.0)
        delta = max(0.0, float(np.max((self.B - c * prices) / self.traces)))
        trace, order = float(self.columns.norms @ g), len(self.columns.W)
        mixed = c * c * square + 2 * c * delta * trace + delta * delta * order
        return min(ratio * float(np.sqrt(square)), float(np.sqrt(mixed)))
