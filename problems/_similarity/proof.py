"""What multipliers, kernels and gradients prove about kernels learned from similarities.

    minimise  max over a and g of  y'a - sum_i a'K_i a / (2 g_i)  +  rho sum_i sum_j L(K_i - S_ij)

over positive semidefinite K_i, of trace tau if that is given; 0 <= y_i a_i <= C, 1'a = 0; shares
g >= 0 of sum 1. `SimilarityKernel` has one K and g = 1, the others one K_i for each S_i.

    "l1"          L(X) = sum |X_ij|      L*(Z) = 0 where max |Z_ij| <= 1
    "frobenius"   L(X) = ||X||           L*(Z) = 0 where ||Z|| <= 1
    "squared"     L(X) = ||X||^2         L*(Z) = ||Z||^2 / 4

The data are the float64 numbers as stored; all that follows holds for them in exact arithmetic.

**Lemma S1 (feasible kernel).** For any matrix H of floats K = s HH', s = tau / ||H||^2, is positive
semidefinite of trace tau exactly. With the row norms h of H and k columns the computed product G
has |K - G|_ij <= (|s - 1| + gamma_k) h_i h_j + k eta, and sum h_i^2 = ||H||^2.

**Lemma S2 (upper end).** For any vectors w_i and any b, f = sum_i H_i w_i, the inner maximum is at
most   max_i |w_i|^2 / (2 s_i) + C sum_j max(0, 1 - y_j (f_j + b)).
Proof: a'H_i w_i <= (a'K_i a / s_i)^1/2 |w_i| =: r_i N_i, so that the right side is at least
N^2 / 2 + y'a - N sum r_i >= y'a - (sum r_i)^2 / 2, which is the maximum over g.

**Lemma S3 (lower end).** For any a in the box and on the plane, any g > 0 of sum at most 1 and any
symmetric Z_ij in the domain of L* the optimum is at least

    y'a - rho sum (<Z_ij, S_ij> + L*(Z_ij)) + tau sum_i lambda_min(rho sum_j Z_ij - aa'/(2 g_i)),

by L(X) >= <Z, X> - L*(Z). The eigenvalues are bounded by Lemmas P1 to P3 of
`klopt.proof.semidefinite`; eigenvectors are nowhere trusted.

**Lemma S4 (trace).** Without a trace the eigenvalue counts only where it is negative, times a bound
of the trace of all kernels whose value is at most the upper end U: their losses add up to at most
U / rho, and tr X <= L(X) for l1, tr X <= n^1/2 ||X|| for the others.

**Lemma S5 (given eigenvectors).** Where K_i = V_i diag(mu_i) V_i' with given V_i, mu_i >= 0 of sum
tau, and the loss is |mu_i - lambda_i|^2, S2 holds for f = sum_i V_i p_i with
sum_j p_ij^2 / mu_ij in place of |w_i|^2 / s_i, and for any z_i the optimum is at least

    y'a + sum_i {tau min_j(2 rho z_ij - (V_i'a)_j^2 / (2 g_i)) - rho (2 z_i'lambda_i + z_i'z_i)}.

Where the loss is |mu_i - lambda_i| itself ("frobenius", as it is ||K_i - S_i|| for orthonormal V_i),
every z_i with |z_i| <= 1 has |x| >= z_i'x, and the optimum is at least

    y'a + sum_i {tau min_j(rho z_ij - (V_i'a)_j^2 / (2 g_i)) - rho z_i'lambda_i};

so it is where the loss is sum_j |mu_ij - lambda_ij| ("l1") for every z_i with max_j |z_ij| <= 1.

V_i and lambda_i are data of that problem: floats, whatever they are the eigenpairs of.

**Lemma S6 (bounds of nonnegative sums).** A sum of products of nonnegative floats that takes at
most 64 operations, none of which underflows, is right up to the factor 1 +- 2^-46. `_above` makes
it an upper bound; bounds below 2^-300 are raised to that, so that products of three of them and a
gamma do not underflow. Radii are such sums; long sums have a gamma of their own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import eigvalsh

from klopt.arrays import FloatArray
from klopt.model.problem import Bracket, Point
from klopt.proof.enclosure import UNIT_ROUNDOFF, gamma
from klopt.proof.semidefinite import eigenvalue_floor

__all__ = ["GivenSpectra", "SimilarityProgram", "prove_kernels", "prove_spectra"]

NEARLY_CLOSED_GAP = 1e-9
"""Relative gap below which no second choice of gradients is tried."""
INFLATION = 1 + 2.0**-46
SMALLEST_BOUND = 2.0**-300
LARGEST_BOUND = 2.0**300
"""Lemma S6; an end that needs larger numbers is infinite."""
OWN_LOSS = "the values of a loss of one's own are floats of unknown accuracy: they prove nothing"
LOWER_BY = "weak duality: multipliers, shares and gradients of the losses"
UPPER_BY = "value at exactly feasible kernels: a classifier and the losses"


@dataclass(frozen=True, eq=False)
class SimilarityProgram:
    """The data of the problem.

    Parameters
    ----------
    groups : tuple of tuples of (n, n) arrays
        The similarities S_ij of each kernel, symmetric.
    y : (n,) array
        Labels -1 and +1.
    C : float or (n,) array
        Upper bound of the multipliers.
    rho : float
        Weight of the losses.
    trace : float or None
        Trace of each kernel; None leaves that of a single kernel free.
    loss : str
        "l1", "frobenius", "squared"; any other is a user's own.
    """

    groups: tuple[tuple[FloatArray, ...], ...]
    y: FloatArray
    C: float | FloatArray
    rho: float
    trace: float | None
    loss: str

    @property
    def n(self) -> int:
        return self.y.size

    @cached_property
    def similarities(self) -> tuple[FloatArray, ...]:
        """All S_ij, group after group."""
        return tuple(S for group in self.groups for S in group)

    @cached_property
    def norms(self) -> tuple[float, ...]:
        """Upper bounds of the ||S_ij||."""
        return tuple(_norm_bound(S) for S in self.similarities)

    @property
    def has_formulas(self) -> bool:
        """Whether the losses leave no term, or one that can be enclosed."""
        return not self.rho or self.loss in ("l1", "frobenius", "squared")


# --- free kernels


# What overflows ends in an infinite end, and needs no warning.
@np.errstate(all="ignore")
def prove_kernels(program: SimilarityProgram, witness: Point) -> Bracket:
    """Return the bounds of Lemmas S2 and S3.

    Parameters
    ----------
    program
        The data.
    witness
        Primal `factors` (the H_i side by side), `ranks` (their numbers of columns), `classifier`
        (the w_i), `offset` (b); dual `multipliers` (a), `shares` (g, rows of which each is tried),
        and where at hand `levels` (guesses of the eigenvalues), `gradients` (Z) and
        `kink_gradient` (one Z for all, tried where the others leave a gap).

    Examples
    --------
    >>> eye = np.eye(2)
    >>> program = SimilarityProgram(((eye,),), np.array([1.0, -1.0]), 1.0, 1.0, 2.0, "squared")
    >>> w = np.array([1.0, -1.0])
    >>> primal = {"factors": eye, "ranks": [2], "classifier": w, "offset": 0.0}
    >>> bracket = prove_kernels(program, Point(primal, {"multipliers": w, "shares": [[1.0]]}))
    >>> bool(bracket.lower <= 1 <= bracket.upper < 1 + 1e-12)
    True
    """
    kernels = _kernels(program, witness)
    if kernels is None:
        return Bracket(-math.inf, math.inf, _reported(witness), "the witness has no kernels")
    if not program.has_formulas:
        solution = _solution(witness, kernels, witness.dual.get("gradients"))
        return Bracket(-math.inf, math.inf, solution, OWN_LOSS, estimate=_estimate(witness))

    differences = [
        kernel.product - S
        for kernel, group in zip(kernels, program.groups, strict=True)
        for S in group
    ]
    upper = _finite_or(math.inf, _kernels_value(program, witness, kernels, differences))
    lower, Z = _best_lower(program, witness, kernels, differences, upper)
    # Those of the squared loss are known with the kernel.
    solution = _solution(witness, kernels, None if program.loss == "squared" else Z)
    return Bracket(lower, upper, solution, lower_by=LOWER_BY, upper_by=UPPER_BY)


class FactoredKernel:
    """K = s HH' of Lemma S1; without a trace s = 1.

    Attributes
    ----------
    product : (n, n) array
        G, the computed HH', symmetric.
    row_norms : (n,) array
        Upper bounds of the h_i.
    square : float
        An upper bound of ||H||^2 = sum h_i^2.
    scale : float
        About s.
    inverse_scale : float
        An upper bound of 1 / s.
    spread : float
        An upper bound of |s - 1| + gamma_k.
    """

    def __init__(self, H: FloatArray, trace: float | None) -> None:
        n, k = H.shape
        G = H @ H.T
        if not np.array_equal(G, G.T):
            G = np.tril(G) + np.tril(G, -1).T
        self.H = H
        self.product = G
        squares = G.diagonal()
        # Lemma E2 for sums of squares: |computed - exact| <= gamma exact + k eta.
        self.row_norms = np.sqrt(squares) * (1 + 2 * gamma(k + 4)) + SMALLEST_BOUND
        relative = 2 * gamma(n + k + 4)
        square = float(squares.sum())
        self.square = _above(square * (1 + relative))
        self.scale = 1.0
        self.inverse_scale = 1.0
        self.spread = _above(gamma(k))
        if trace is None:
            return
        # eta is negligible only where numbers are not that small.
        if not SMALLEST_BOUND <= square <= LARGEST_BOUND:
            self.inverse_scale = math.inf
            self.spread = math.inf
            return
        self.scale = trace / square
        self.inverse_scale = _above(self.square / trace)
        change = abs(trace - square) / square
        self.spread = _above(change + 2 * relative * self.scale + gamma(k))


def _kernels(program: SimilarityProgram, witness: Point) -> list[FactoredKernel] | None:
    """The kernels of Lemma S1; None where the witness has no factors for them."""
    ranks = _given(witness.primal, "ranks", (len(program.groups),))
    factors = witness.primal.get("factors")
    if ranks is None or factors is None or not np.isfinite(ranks).all():
        return None
    columns = [int(rank) for rank in ranks]
    if factors.shape != (program.n, sum(columns)) or min(columns) < 0:
        return None
    return [FactoredKernel(H, program.trace) for H in _split(factors, columns)]


def _kernels_value(
    program: SimilarityProgram,
    witness: Point,
    kernels: list[FactoredKernel],
    differences: list[FloatArray],
) -> float:
    """Lemma S2 and the losses: the upper end."""
    columns = [kernel.H.shape[1] for kernel in kernels]
    classifier = _given(witness.primal, "classifier", (sum(columns),))
    offset = _given(witness.primal, "offset", ())
    if classifier is None or offset is None:
        return math.inf

    f = np.full(program.n, float(offset))
    # By Cauchy and Schwarz the terms of (Hw)_i add up to at most h_i |w|.
    sizes = np.full(program.n, 1 + abs(float(offset)))
    largest = 0.0
    for kernel, w in zip(kernels, _split(classifier[None], columns), strict=True):
        norm = _norm_bound(w)
        f += kernel.H @ w[0]
        sizes += norm * kernel.row_norms
        # NaN and inf must not be lost in a maximum.
        largest = max(largest, _finite_or(math.inf, norm * norm * kernel.inverse_scale))
    operations = max(columns) + len(columns) + 8
    total = largest / 2 + _hinge_sum(program, f, sizes, operations)

    if program.rho:
        owners = [
            kernel for kernel, group in zip(kernels, program.groups, strict=True) for _ in group
        ]
        pairs = zip(owners, differences, strict=True)
        losses = _fsum([_loss_bound(program.loss, kernel, X) for kernel, X in pairs])
        total += program.rho * losses
    return _above(total)


def _hinge_sum(
    program: SimilarityProgram, f: FloatArray, sizes: FloatArray, operations: int
) -> float:
    """An upper bound of sum_j C_j max(0, 1 - y_j f_j).

    Entry j of f is a sum, computed by at most so many operations in a row, of terms whose sizes,
    with 1, add up to at most `sizes` (Lemma E2).
    """
    shortfalls = np.maximum(1 - program.y * f + 2 * gamma(operations) * sizes, 0.0)
    # The product is one operation more, and may underflow.
    penalties = program.C * shortfalls
    return _above(float(penalties.sum()) * (1 + 2 * gamma(f.size + 6)) + SMALLEST_BOUND)


def _loss_bound(loss: str, kernel: FactoredKernel, X: FloatArray) -> float:
    """An upper bound of L(K - S) where X is the computed G - S (Lemma S1)."""
    # Each entry of X was rounded once.
    if loss == "l1":
        rows = _above(float(kernel.row_norms.sum()) * (1 + 2 * gamma(len(X) + 4)))
        size = _fsum(np.abs(X).sum(axis=1)) * (1 + 2 * gamma(len(X) + 4))
        return _above(size + kernel.spread * rows * rows)
    # The norm of hh' is the sum of the h_i^2.
    size = _above(_norm_bound(X) + kernel.spread * kernel.square)
    return _above(size * size) if loss == "squared" else size


def _best_lower(
    program: SimilarityProgram,
    witness: Point,
    kernels: list[FactoredKernel],
    differences: list[FloatArray],
    upper: float,
) -> tuple[float, Sequence[FloatArray] | None]:
    """The best bound of Lemma S3 that the witness has, and its gradients."""
    a = _multipliers(program, witness)
    if a is None:
        return -math.inf, None
    m = len(differences)
    n = program.n
    given = _given(witness.dual, "gradients", (m, n, n))
    if given is None:
        Z = [_gradient(program.loss, X) for X in differences]
    else:
        Z = list(given)
    levels = _given(witness.dual, "levels", (len(program.groups),))
    shares = _shares(program, witness)
    lower = max((_lower(program, a, g, Z, levels, upper) for g in shares), default=-math.inf)

    # At a kink the gradient at K is one of many: one that balances the support vector machine may
    # close the gap.
    other = _given(witness.dual, "kink_gradient", (n, n))
    if other is None or upper - lower <= NEARLY_CLOSED_GAP * (1 + abs(upper)):
        return lower, Z
    if _promise(program, a, kernels[0].product, differences, other) > lower:
        same = [other] * m
        found = max((_lower(program, a, g, same, None, upper) for g in shares), default=-math.inf)
        if found > lower:
            return found, same
    return lower, Z


def _promise(
    program: SimilarityProgram,
    a: FloatArray,
    K: FloatArray,
    differences: list[FloatArray],
    Z: FloatArray,
) -> float:
    """About the most that one Z for all similarities of a single kernel can prove: that at K."""
    losses = sum(float(np.vdot(Z, X)) for X in differences)
    return float(program.y @ a) - float(a @ (K @ a)) / 2 + program.rho * losses


def _lower(
    program: SimilarityProgram,
    a: FloatArray,
    g: FloatArray,
    Z: Sequence[FloatArray],
    levels: FloatArray | None,
    upper: float,
) -> float:
    """The bound of Lemma S3; -inf where Z is outside of the domain of the conjugate."""
    terms = [_fsum(program.y * a)]
    radius = 0.0
    norms = [0.0] * len(Z)
    if program.rho:
        norms = [_norm_bound(Zi) for Zi in Z]
        for Zi, norm, S, size in zip(Z, norms, program.similarities, program.norms, strict=True):
            term = _conjugate_term(program, Zi, norm, S, size)
            if term is None:
                return -math.inf
            terms.append(term[0])
            radius += term[1]

    trace = program.trace
    if trace is None:
        trace = _trace_bound(program, upper)
    first = 0
    for i, group in enumerate(program.groups):
        members = slice(first, first + len(group))
        first += len(group)
        guess = None if levels is None else float(levels[i])
        smallest = _eigenvalue(program, Z[members], sum(norms[members]), a, float(g[i]), guess)
        # Without a trace the kernel 0 is feasible: a positive eigenvalue adds nothing. NaN counts.
        if program.trace is not None or not smallest >= 0:
            terms.append(trace * smallest)
    return _sum_below(terms, radius)


def _conjugate_term(
    program: SimilarityProgram, Z: FloatArray, norm: float, S: FloatArray, size: float
) -> tuple[float, float] | None:
    """-rho (<Z, S> + L*(Z)) and a radius; None where L*(Z) may be inf.

    `norm` and `size` bound ||Z|| and ||S||.
    """
    n = len(Z)
    if not norm < LARGEST_BOUND or not np.array_equal(Z, Z.T):
        return None
    if program.loss == "l1" and not np.abs(Z).max() <= 1:
        return None
    if program.loss == "frobenius" and not norm <= 1:
        return None
    # Row by row, for a small gamma; by Cauchy and Schwarz the terms add up to at most ||Z|| ||S||.
    rows = np.vecdot(Z, S)
    total = norm * size
    if program.loss == "squared":
        rows += 0.25 * np.vecdot(Z, Z)
        total += norm * norm
    mid = program.rho * _fsum(rows)
    return -mid, _above(program.rho * _above(total) * gamma(n + 6))


def _gradient(loss: str, X: FloatArray) -> FloatArray:
    """A gradient of L at X, with room for rounding; a proposal like any other."""
    if loss == "l1":
        return np.sign(X)
    if loss == "frobenius":
        return X / (_norm_bound(X) * (1 + 8 * gamma(len(X) + 4)))
    return 2 * X


def _eigenvalue(
    program: SimilarityProgram,
    Z: Sequence[FloatArray],
    norm: float,
    a: FloatArray,
    g: float,
    guess: float | None,
) -> float:
    """A lower bound of the smallest eigenvalue of rho sum Z_j - aa'/(2g); `norm` >= sum ||Z_j||."""
    size = _norm_bound(a[None])
    pull = _above(size * size / (2 * g))
    if not program.rho:
        return -pull
    M = program.rho * (Z[0] if len(Z) == 1 else np.sum(Z, axis=0))
    M -= np.multiply.outer(a / (2 * g), a)
    # Lemma E2 for each entry; the matrix of the terms has at most the sum of their norms.
    error = _above((program.rho * max(norm, SMALLEST_BOUND) + pull) * gamma(len(Z) + 8))
    if guess is None:
        if not np.isfinite(M).all():
            return -math.inf
        guess = float(eigvalsh(M, subset_by_index=(0, 0), check_finite=False)[0])
    return math.nextafter(_floor_near(M, guess) - error, -math.inf)


def _floor_near(M: FloatArray, guess: float) -> float:
    """A lower bound of the smallest eigenvalue of M, which is about `guess`; M is overwritten.

    M - guess I is nearly singular and has a smaller trace, by which Lemma P1 is sharper.
    """
    M.flat[:: len(M) + 1] -= guess
    floor = eigenvalue_floor(M, 0.0)
    # A guess that is too high is no loss: the eigenvalue is computed.
    if floor == -math.inf:
        floor = eigenvalue_floor(M)
    rounding = _above(UNIT_ROUNDOFF * float(np.abs(M.diagonal()).max()))
    below = math.nextafter(floor - rounding, -math.inf)
    return math.nextafter(below + guess, -math.inf)


def _trace_bound(program: SimilarityProgram, upper: float) -> float:
    """Lemma S4: a bound of the trace of all kernels of a value of at most `upper`."""
    n = program.n
    m = len(program.similarities)
    traces = math.nextafter(
        _fsum(np.concatenate([S.diagonal() for S in program.similarities])), math.inf
    )
    losses = _above(max(upper, 0.0) / program.rho)
    if program.loss == "frobenius":
        losses = _above(math.sqrt(n) * losses)
    elif program.loss == "squared":
        # The m norms add up to at most the root of m times their squares.
        losses = _above(math.sqrt(_above(n * m * losses)))
    return _above(max(math.nextafter(traces + losses, math.inf), 0.0) / m)


# --- given eigenvectors


@dataclass(frozen=True, eq=False)
class GivenSpectra:
    """The lambda_i, (m, n), one row each, and the columns of all V_i, (m n, n), one row each."""

    values: FloatArray
    vectors: FloatArray

    @cached_property
    def longest(self) -> float:
        """An upper bound of the norms of the columns of the V_i."""
        count = self.vectors.shape[1]
        largest = float(np.vecdot(self.vectors, self.vectors).max())
        return _above(math.sqrt(largest) * (1 + 2 * gamma(count + 4)))

    @cached_property
    def row_norms(self) -> FloatArray:
        """Upper bounds of the norms of the rows of [V_1, .., V_m]."""
        count = len(self.vectors)
        squares = np.einsum("ij,ij->j", self.vectors, self.vectors)
        norms: FloatArray = np.sqrt(squares) * (1 + 2 * gamma(count + 4)) + SMALLEST_BOUND
        return norms


@np.errstate(all="ignore")
def prove_spectra(program: SimilarityProgram, given: GivenSpectra, witness: Point) -> Bracket:
    """Return the bounds of Lemma S5.

    Parameters
    ----------
    program
        The data; its similarities are not read.
    given
        The eigenvalues and eigenvectors.
    witness
        Primal `spectra` (the mu_i, which are scaled to the trace), `classifier` (the p_i), `offset`
        (b); dual `multipliers` (a), `shares` (g, rows of which each is tried) and, where they are
        not mu - lambda, `differences` (z).

    Examples
    --------
    >>> program = SimilarityProgram(((),), np.array([1.0, -1.0]), 1.0, 1.0, 2.0, "squared")
    >>> w = np.array([1.0, -1.0])
    >>> primal = {"spectra": [[1.0, 1.0]], "classifier": w[None], "offset": 0.0}
    >>> witness = Point(primal, {"multipliers": w, "shares": [[1.0]]})
    >>> bracket = prove_spectra(program, GivenSpectra(np.ones((1, 2)), np.eye(2)), witness)
    >>> bool(bracket.lower <= 1 <= bracket.upper < 1 + 1e-12)
    True
    """
    m, n = given.values.shape
    if program.rho and program.loss not in ("squared", "frobenius", "l1"):
        return Bracket(-math.inf, math.inf, _reported(witness), "there is no formula for this loss")
    mu = _given(witness.primal, "spectra", (m, n))
    if mu is None or program.trace is None or not (mu >= 0).all():
        return Bracket(-math.inf, math.inf, _reported(witness), "the witness has no spectra")

    sums = np.array([_fsum(row) for row in mu])
    upper = _finite_or(math.inf, _spectra_value(program, given, witness, sums))
    lower = _spectra_lower(program, given, witness)
    primal = dict(_reported(witness).primal)
    primal["spectra"] = mu * (program.trace / sums)[:, None]
    primal["kernels"] = np.empty((m, n, n))
    rows = zip(given.vectors.reshape(m, n, n), primal["spectra"], primal["kernels"], strict=True)
    for V, spectrum, K in rows:
        inside = spectrum > 0
        half = V[inside].T * np.sqrt(spectrum[inside])
        np.matmul(half, half.T, out=K)
    return Bracket(lower, upper, Point(primal), lower_by=LOWER_BY, upper_by=UPPER_BY)


def _spectra_value(
    program: SimilarityProgram, given: GivenSpectra, witness: Point, sums: FloatArray
) -> float:
    """The upper end; `sums` has the sums of the mu_i, correctly rounded."""
    mu = witness.primal["spectra"]
    p = _given(witness.primal, "classifier", mu.shape)
    offset = _given(witness.primal, "offset", ())
    if p is None or offset is None or program.trace is None:
        return math.inf
    # An eigenvector that a kernel lacks is none of its functions. Small numbers could underflow.
    lacks = mu < SMALLEST_BOUND
    if p[lacks].any() or not np.abs(p).max() < LARGEST_BOUND:
        return math.inf
    # Nor may the factor to the trace lose its digits where a spectrum is large.
    if not ((sums >= SMALLEST_BOUND) & (sums <= LARGEST_BOUND)).all():
        return math.inf
    m, n = mu.shape
    quotients = np.divide(p, mu, where=~lacks, out=np.zeros_like(p))
    squared_norms = np.vecdot(quotients, p) * (1 + 2 * gamma(n + 4)) + SMALLEST_BOUND
    largest = float((squared_norms * sums).max()) / program.trace

    f = p.reshape(-1) @ given.vectors + float(offset)
    # By Cauchy and Schwarz the terms of f_j add up to at most |p| times row j.
    sizes = _norm_bound(p) * given.row_norms + (1 + abs(float(offset)))
    total = largest / 2 + _hinge_sum(program, f, sizes, m * n + 8)

    if program.rho:
        scaled = mu * (program.trace / sums)[:, None]
        # The factor was rounded twice, the product once.
        rounding = _norm_bound(scaled) * gamma(6)
        change = scaled - given.values
        if program.loss == "squared":
            distance = _above(_norm_bound(change) + rounding)
            total += program.rho * distance * distance
        elif program.loss == "l1":
            # Each difference was rounded once; the roundings of `scaled` add up to a part of it.
            size = _fsum(np.abs(change).reshape(-1)) * (1 + 2 * gamma(4))
            total += program.rho * _above(size + _fsum(scaled.reshape(-1)) * gamma(8))
        else:
            distances = _fsum([_norm_bound(row[None]) for row in change])
            total += program.rho * _above(distances + m * rounding)
    return _above(total)


def _spectra_lower(program: SimilarityProgram, given: GivenSpectra, witness: Point) -> float:
    """The lower end of Lemma S5."""
    a = _multipliers(program, witness)
    if a is None or program.trace is None:
        return -math.inf
    values = given.values
    m, n = values.shape
    z = _given(witness.dual, "differences", (m, n))
    if z is None:
        z = witness.primal["spectra"] - values
    # Cauchy and Schwarz for V_i'a.
    error = _above(gamma(n + 2) * _norm_bound(a[None]) * given.longest)
    u = np.abs(given.vectors @ a).reshape(m, n) + error
    pull = u * u * (1 + 8 * UNIT_ROUNDOFF)
    if program.loss == "squared":
        gradient = 2 * program.rho * z
        parts = z * (2 * values + z)
        sizes = np.abs(z) * (2 * np.abs(values) + np.abs(z))
    else:
        if program.loss == "l1":
            inside = bool((np.abs(z) <= 1).all())
        else:
            inside = all(_norm_bound(row[None]) <= 1 for row in z)
        if not inside:
            return -math.inf
        gradient = program.rho * z
        parts = z * values
        sizes = np.abs(parts)
    size = _above(float(sizes.sum()) * (1 + 2 * gamma(m * n + 4)))
    loss = program.rho * _fsum(parts.reshape(-1))
    radius = _above(program.rho * size * gamma(8))
    total = _fsum(program.y * a)

    found = -math.inf
    for g in _shares(program, witness):
        prices = gradient - pull / (2 * g)[:, None]
        # Three roundings of each term.
        rounding = gamma(6) * (np.abs(gradient) + pull / (2 * g)[:, None]).max(axis=1)
        smallest = prices.min(axis=1) - rounding - SMALLEST_BOUND
        terms = [total, -loss, *(program.trace * smallest).tolist()]
        found = max(found, _sum_below(terms, radius))
    return found


# --- what a witness holds


def _given(
    arrays: Mapping[str, FloatArray], name: str, shape: tuple[int, ...]
) -> FloatArray | None:
    """The array of this name if it is there and of the right shape.

    It may hold NaN or inf, which every formula here carries on to an infinite end.
    """
    found = arrays.get(name)
    if found is None or found.shape != shape:
        return None
    return found


def _multipliers(program: SimilarityProgram, witness: Point) -> FloatArray | None:
    """The a of the witness if they are exactly feasible: 0 <= y_i a_i <= C and 1'a = 0."""
    a = _given(witness.dual, "multipliers", (program.n,))
    if a is None:
        return None
    alpha = program.y * a
    # `fsum` is correctly rounded: it is 0 only where the exact sum is.
    if not (alpha >= 0).all() or not (alpha <= program.C).all() or _fsum(a) != 0:
        return None
    return a


def _shares(program: SimilarityProgram, witness: Point) -> list[FloatArray]:
    """The rows g of the witness that are positive and add up to at most 1 exactly."""
    rows = witness.dual.get("shares")
    if rows is None or rows.ndim != 2 or rows.shape[1] != len(program.groups):
        return []
    return [g for g in rows if (g > SMALLEST_BOUND).all() and _fsum([*g, -1.0]) <= 0]


def _estimate(witness: Point) -> tuple[float, float] | None:
    """The interval that the witness calls an estimate."""
    given = witness.primal.get("estimate")
    if given is None or given.shape != (2,):
        return None
    return float(given[0]), float(given[1])


def _reported(witness: Point) -> Point:
    """What the witness wants to be told to the user."""
    names = ("alpha", "gamma", "bias")
    return Point({name: witness.primal[name] for name in names if name in witness.primal})


def _solution(
    witness: Point, kernels: list[FactoredKernel], Z: Sequence[FloatArray] | FloatArray | None
) -> Point:
    """The point with its kernels, of which a single one has no shares, and its gradients."""
    primal = dict(_reported(witness).primal)
    products = [kernel.product * kernel.scale for kernel in kernels]
    if "gamma" in primal:
        primal["kernels"] = np.array(products)
    else:
        primal["kernel"] = products[0]
    dual = {} if Z is None else {"gradients": np.asarray(Z)}
    # The last shares are those that came with given gradients.
    shares = witness.dual.get("shares")
    if Z is not None and shares is not None and len(shares) > 1:
        dual["shares"] = shares[-1]
    return Point(primal, dual)


# --- sums


def _finite_or(infinite: float, value: float) -> float:
    return float(value) if math.isfinite(value) else infinite


def _above(bound: float) -> float:
    """Lemma S6: an upper bound of what was computed as `bound`; NaN stays."""
    return max(bound * INFLATION, SMALLEST_BOUND)


def _norm_bound(X: FloatArray) -> float:
    """An upper bound of ||X|| of a matrix (Lemma E2, row by row)."""
    squares = _fsum(np.vecdot(X, X))
    return _above(math.sqrt(squares) * (1 + gamma(X.shape[1] + 4)))


def _sum_below(terms: list[float], radius: float) -> float:
    """A lower bound of a sum of terms, each right up to one rounding and all up to `radius`."""
    total = _fsum(terms)
    sizes = _fsum([abs(term) for term in terms])
    below = total - _above(radius + 4 * UNIT_ROUNDOFF * sizes)
    return math.nextafter(below, -math.inf) if math.isfinite(below) else -math.inf


def _fsum(terms: Sequence[float] | FloatArray) -> float:
    """`math.fsum`, which raises where a sum overflows: NaN there."""
    try:
        # Entries of an array are slow to take one by one.
        return math.fsum(terms.tolist() if isinstance(terms, np.ndarray) else terms)
    except (OverflowError, ValueError):
        return math.nan


def _split(matrix: FloatArray, columns: list[int]) -> list[FloatArray]:
    """The matrix cut into parts of so many columns."""
    ends = np.cumsum(columns).tolist()
    return [matrix[:, end - count : end] for end, count in zip(ends, columns, strict=True)]
