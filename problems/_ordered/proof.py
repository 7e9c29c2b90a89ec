"""What a weighting of rank-one kernels proves about the best alignment, in exact arithmetic.

The alignment is rho = <K, T> / (||K|| ||T||) of K = sum_i beta_i w_i w_i' with a target T, ||T|| = 1.
beta >= 0 is nonincreasing where there is an order, b_i = w_i'T w_i and F_ij = (w_i'w_j)^2, so that

    ||K||^2 = beta'F beta,    <w_i w_i', K> = (F beta)_i,    <K, T> = b'beta.

The cone of these K is spanned by rays P_k (with an order the prefix kernels sum_(i <= k) w_i w_i',
without one w_k w_k'), and B_k = <P_k, T>.

**Lemma A1 (polar bound).** Any M with <P_k, M> >= B_k for all k proves <K, T> <= <K, M> <=
||K|| ||M||, hence rho* <= ||M||. For G = sum_i g_i w_i w_i' with any g, and any c >= 0,

    M = c G + delta I    with    delta >= max_k (B_k - c <P_k, G>) / tr P_k,  delta >= 0

is one, and ||M||^2 = c^2 ||G||^2 + 2 c delta tr G + delta^2 l, I of order l. At the optimum K is,
up to its scale, the projection of T on the cone, and c = <K, T> / ||K||^2 with delta = 0 is exact.

**Lemma A2 (rays).** If <P_k, T - s I> <= 0 for all k, then <K, T> / ||K|| <= max_k <P_k, T - s I> /
||P_k|| + s l^1/2: with K = sum_k s_k P_k, ||K|| <= sum_k s_k ||P_k||, and tr K <= l^1/2 ||K||.

**Lemma A3 (one constant for all rounding).** Let W be within the relative error omega of the exact
columns, entry by entry, n_i = ||w_i||^2, tau = sum_i |g_i| n_i. All sums above are sums of products
of entries of W, with terms that add up to at most

    B_k, b'g:  tr P_k, tau        <P_k, G>:  tau tr P_k        ||G||^2:  tau^2        tr G:  tau

(|w_i'T w_i| <= n_i, w_i'w_j <= (n_i n_j)^1/2; those of a signed target thrice as much). By Lemma E2
the errors are at most kappa times these, kappa = 6 omega + 4 gamma_l + 3 gamma_m for l x m columns
and their prefix sums, 10 omega + 11 gamma_l + 3 gamma_m for a signed target. Half a per cent covers
terms of second order. So the ratio in Lemma A1 is off by at most kappa (1 + c tau), whatever k.

**Lemma A4 (columns left out).** With an order, columns behind the last kept one have the trace
`tail` together; they add to a ray a D with ||D|| <= tr D <= tail, so that <D, T - c G> <= tail (1 +
c tau): Lemma A3 with kappa + tail / tr P_m.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Self, cast

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, freeze, require_memory
from klopt.errors import InvalidProblem
from klopt.model.functions import IntArray
from klopt.proof.enclosure import UNIT_ROUNDOFF, gamma

__all__ = ["AlignmentBounds", "RankOneColumns", "target_products"]

VANISHED_SHARE = 1e-12
"""A column of at most this share of its length on the labelled points counts as zero there."""
NEGLIGIBLE_SHARE = 1e-18
"""Kernels behind the last of more than this share of the largest trace are only charged."""
MAX_WEIGHT_RATIO = 1e100
"""The largest weight of a left-out column, in units of that of the first kept one."""
MAX_EXPONENT = 600.0
"""exp(-x) of a larger x may be subnormal, which Lemma E3 leaves out."""
MIN_UNSCALED = 2.0**-20
MAX_UNSCALED = 2.0**20
"""Where the largest entry lies between these two, V is taken as it is."""
COLUMNS_PER_ROW = 4
"""F is formed where W has at most this many columns for each of its rows."""
MIN_DENSE_COLUMNS = 64
"""F is always formed up to this many columns."""
BLOCK_COLUMNS = 512
"""Columns of W that are multiplied at a time, so that a block stays in the cache."""
SECOND_ORDER = 1.01
"""Covers products of errors, each of which is below MAX_KAPPA."""
MAX_KAPPA = 1e-4
"""Beyond this only -1 <= rho <= 1 is said."""
UNDERFLOW = 2.0**-800
"""What underflow adds to any of the sums, where no entry of W or g exceeds 2^20."""
OUTWARDS = 16 * UNIT_ROUNDOFF
"""Covers the relative rounding of the last few operations on scalars."""


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


def target_products(W: FloatArray, classes: IntArray, signed: bool) -> tuple[FloatArray, float]:
    """Return w_i'T w_i for the columns of W, and ||T||.

    T_pq is 1 where p and q have one class, and 0 (signed: -1) otherwise.

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


def _scaled(V: FloatArray, labelled: FloatArray) -> tuple[FloatArray, FloatArray]:
    """V and its labelled rows, times a power of two where squares would leave the range."""
    largest = float(np.abs(labelled).max(initial=0.0))
    if largest == 0 or MIN_UNSCALED <= largest <= MAX_UNSCALED:
        return V, labelled
    exponent = -math.frexp(largest)[1]
    with np.errstate(over="ignore"):
        return np.ldexp(V, exponent), np.ldexp(labelled, exponent)


def _lost_columns(V: FloatArray, known: npt.NDArray[np.bool_], present: IntArray) -> IntArray:
    """Columns of V that do not vanish on the labelled points, though their squares underflow."""
    absent = np.setdiff1d(np.arange(V.shape[1]), present)
    columns = V[:, absent]
    largest = np.abs(columns).max(axis=0)
    unit = columns / np.where(largest > 0, largest, 1.0)
    squares = np.einsum("ij,ij->j", unit[known], unit[known])
    vanishing = VANISHED_SHARE**2 * np.einsum("ij,ij->j", unit, unit)
    return cast(IntArray, absent[squares > vanishing])


def _exponents(count: int, first: int, sigma: float) -> FloatArray:
    """x_i with e_i = exp(-x_i), 0 at the first column that does not vanish on the labelled points."""
    exponents: FloatArray = np.log(sigma) * (np.arange(count) - first)
    if -exponents[0] > np.log(MAX_WEIGHT_RATIO):
        raise InvalidProblem(
            f"the first {first} columns of V vanish on the labelled points, and "
            f"sigma = {sigma:g} makes their weights {sigma:g}^{first} times those of the next; "
            "leave these columns out"
        )
    return exponents


@dataclass(frozen=True, eq=False)
class AlignmentBounds:
    """An alignment problem in the columns that matter, and its bounds.

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
    signed
        Whether the target has negative entries.
    omega
        The relative error of the entries of W.
    tail
        The trace of what follows the last kept column.
    """

    columns: RankOneColumns
    b: FloatArray
    ordered: bool
    kept: IntArray
    steps: FloatArray
    signed: bool = False
    omega: float = 0.0
    tail: float = 0.0

    @classmethod
    def of(
        cls, V: FloatArray, classes: IntArray, sigma: float, ordered: bool, signed: bool
    ) -> Self:
        """Return the alignment of the columns of V with the target of the labelled points.

        Parameters
        ----------
        V
            Eigenvectors as columns, smoothest first.
        classes
            The class of each point, -1 where it is unlabelled.
        sigma
            The ratio of the order alpha_i >= sigma alpha_(i+1); 1 without an order.
        ordered
            Whether there is an order.
        signed
            Whether the target is -1, not 0, for points of two classes.
        """
        known = classes >= 0
        given = V
        V, labelled = _scaled(V, V[known])
        with np.errstate(over="ignore"):
            squares = np.einsum("ij,ij->j", labelled, labelled)
            vanishing = VANISHED_SHARE**2 * np.einsum("ij,ij->j", V, V)
        present = np.flatnonzero(squares > vanishing)
        if not present.size:
            raise InvalidProblem(
                "V is zero on every labelled point; give eigenvectors that reach them, or more "
                "labels"
            )

        # Of rays that underflow has lost nothing is known; behind others an order leaves none.
        lost = _lost_columns(given, known, present)
        has_lost_ray = bool(lost.size and (not ordered or lost[0] < present[0]))

        exponents = _exponents(V.shape[1], int(present[0]), sigma)
        with np.errstate(under="ignore"):
            steps = np.exp(-exponents)
        kept = present
        tail = 0.0
        if ordered:
            # What follows the last column of some size is charged as a whole (Lemma A4).
            share = steps[present] * squares[present]
            counted = np.flatnonzero(share > NEGLIGIBLE_SHARE * share.max())
            last = int(counted[-1]) + 1
            kept = present[:last]
            tail = float(share[last:].sum())

        # `take` gives rows that are contiguous, unlike labelled[:, kept].
        W = np.take(labelled, kept, axis=1)
        omega = 0.0
        if sigma > 1:
            W *= np.sqrt(steps[kept])
            # Lemma E3 twice: log sigma and exp within 8 u, so e_i within (9 x + 8) u at e_i = e^-x.
            farthest = float(exponents[kept[-1]])
            omega = (5 * farthest + 8) * UNIT_ROUNDOFF if farthest < MAX_EXPONENT else math.inf
        if has_lost_ray:
            omega = math.inf
        products, norm = target_products(W, classes[known], signed)
        return cls(
            columns=RankOneColumns(cast(FloatArray, freeze(W))),
            b=cast(FloatArray, freeze(products / norm)),
            ordered=ordered,
            kept=freeze(kept),
            steps=cast(FloatArray, freeze(steps)),
            signed=signed,
            omega=omega,
            tail=2 * tail,
        )

    def at_rays(self, x: FloatArray) -> FloatArray:
        """Return the values at the rays of the linear function of value x_i at w_i w_i'."""
        return np.cumsum(x) if self.ordered else x

    @cached_property
    def B(self) -> FloatArray:
        """<P_k, T>."""
        return cast(FloatArray, freeze(self.at_rays(self.b)))

    @cached_property
    def traces(self) -> FloatArray:
        """tr P_k."""
        return cast(FloatArray, freeze(self.at_rays(self.columns.norms)))

    @cached_property
    def best_trace_ratio(self) -> float:
        """max B_k / tr P_k, as computed."""
        return float(np.max(self.B / self.traces))

    @cached_property
    def kappa(self) -> float:
        """The constant of Lemmas A3 and A4."""
        rows, m = self.columns.W.shape
        of_target = (10, 11) if self.signed else (6, 4)
        sums = of_target[0] * self.omega + of_target[1] * gamma(rows + 8) + 3 * gamma(m + 8)
        kappa = SECOND_ORDER * (sums + self.tail / float(self.traces[-1]))
        return kappa if kappa <= MAX_KAPPA else math.inf

    @cached_property
    def underflow(self) -> float:
        """What underflow adds to a ratio of Lemma A1."""
        return SECOND_ORDER * UNDERFLOW / float(self.traces.min())

    def feasible_beta(self, alpha: FloatArray) -> FloatArray:
        """Return a beta that satisfies the constraints exactly: that of alpha, but for rounding.

        alpha_i = e_i beta_i, with the exact e_i, are the weights whose alignment is proven.
        """
        beta = alpha[self.kept]
        if self.ordered:
            if self.omega:
                with np.errstate(over="ignore"):
                    beta = beta / self.steps[self.kept]
            beta = np.minimum.accumulate(beta)
        return np.maximum(beta, 0.0)

    def bounds(self, beta: FloatArray, *others: FloatArray) -> tuple[float, float]:
        """Return bounds of the best alignment that hold in exact arithmetic.

        Parameters
        ----------
        beta
            A point of the cone: its alignment is the lower bound.
        others
            The g of further matrices sum_i g_i w_i w_i' that may bound the optimum from above.
        """
        at_beta = _Sums.of(self, beta)
        lower = -1.0 if at_beta is None else self._value(at_beta)
        if self.best_trace_ratio <= 0 or self.best_trace_ratio <= self.kappa:
            return lower, min(1.0, self._best_ray_bound())

        uppers = [1.0]
        for sums in (at_beta, *(_Sums.of(self, g) for g in others)):
            if sums is not None:
                uppers += [self._polar_bound(sums, c) for c in self._multiples(sums)]
        return lower, min(uppers)

    def _value(self, sums: _Sums) -> float:
        """A lower bound of rho at K = G."""
        aligned = sums.aligned - self.kappa * sums.tau - UNDERFLOW
        spread = self.kappa * sums.tau * sums.tau + UNDERFLOW
        # A negative number is smaller over a smaller norm.
        square = sums.square + spread if aligned >= 0 else sums.square - spread
        if not square > 0:
            return -1.0
        value = aligned / math.sqrt(square)
        return max(-1.0, value - OUTWARDS * abs(value))

    def _multiples(self, sums: _Sums) -> list[float]:
        """The c to try in Lemma A1: that of the projection, and the smallest with delta = 0."""
        found = []
        if sums.square > 0 and sums.aligned > 0:
            found.append(sums.aligned / sums.square)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            smallest = float(np.max(self.B / sums.prices, where=self.B > 0, initial=0.0))
        if math.isfinite(smallest):
            found.append(smallest)
        return found

    def _polar_bound(self, sums: _Sums, c: float) -> float:
        """||M|| of Lemma A1, all errors charged."""
        ratios = self.B - c * sums.prices
        ratios /= self.traces
        worst = float(ratios.max())
        # NaN and overflow prove nothing.
        if not math.isfinite(worst):
            return math.inf
        delta = max(0.0, worst) + self.kappa * (1 + c * sums.tau) + self.underflow * (1 + c)

        square = max(0.0, sums.square) + self.kappa * sums.tau * sums.tau + UNDERFLOW
        trace = max(0.0, sums.trace) + self.kappa * sums.tau + UNDERFLOW
        order = len(self.columns.W)
        norm = math.sqrt(c * c * square + 2 * c * delta * trace + delta * delta * order)
        return norm * (1 + OUTWARDS) if norm < math.inf else math.inf

    def ray_norms(self) -> FloatArray:
        """Return ||P_k|| as computed."""
        return self.columns.prefix_norms() if self.ordered else self.columns.norms

    def _best_ray_bound(self) -> float:
        """The bound of Lemma A2, all errors charged."""
        norms = self.ray_norms()
        # Errors are relative to the trace, here in units of the norm: at most l^1/2.
        ratio = self.traces / norms
        if not self.kappa * float(ratio.max()) ** 2 <= MAX_KAPPA:
            return math.inf
        error = self.kappa * ratio * (4 + 4 * ratio) + self.underflow * ratio
        # Norms are roots of sums, whose own underflow is relative to their squares.
        error += SECOND_ORDER * UNDERFLOW / (norms * norms)
        bound = float(np.max(self.B / norms + error))

        shift = max(0.0, self.best_trace_ratio + 2 * self.kappa + self.underflow)
        bound += SECOND_ORDER * shift * math.sqrt(len(self.columns.W))
        return bound + OUTWARDS * abs(bound) if math.isfinite(bound) else math.inf


@dataclass(frozen=True, eq=False, slots=True)
class _Sums:
    """The sums of Lemma A3 for one G, as computed."""

    prices: FloatArray
    """<P_k, G>."""
    square: float
    """||G||^2."""
    aligned: float
    """<G, T>."""
    trace: float
    """tr G."""
    tau: float
    """An upper bound of sum_i |g_i| n_i."""

    @classmethod
    def of(cls, problem: AlignmentBounds, g: FloatArray) -> _Sums | None:
        """Return them for a multiple of g, whose largest entry is 1; None where there is none."""
        largest = max(float(g.max()), -float(g.min()))
        # NaN fails the comparison as well.
        if not 0 < largest < math.inf or not problem.kappa < math.inf:
            return None
        # Division is monotone: the order of g stays.
        unit = g / largest
        products = problem.columns.products(unit)
        norms = problem.columns.norms
        trace = float(norms @ unit)
        tau = trace if float(unit.min()) >= 0 else float(norms @ np.abs(unit))
        square = float(unit @ products)
        aligned = float(problem.b @ unit)
        tau = tau * (1 + problem.kappa + OUTWARDS) + UNDERFLOW
        if not math.isfinite(square + tau + aligned):
            return None
        return cls(problem.at_rays(products), square, aligned, trace, tau)
