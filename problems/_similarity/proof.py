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

V_i and lambda_i are data of that problem: floats, whatever they are the eigenpairs of.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.problem import Bracket, Point
from klopt.proof.enclosure import (
    ETA,
    UNIT_ROUNDOFF,
    Enclosure,
    enclose_norm,
    enclose_product,
    enclose_sum,
    gamma,
    round_up,
)
from klopt.proof.semidefinite import eigenvalue_floor

__all__ = ["SimilarityProgram", "prove_kernels", "prove_spectra"]

NEARLY_CLOSED_GAP = 1e-9
"""Relative gap below which no second choice of gradients is tried."""
OWN_LOSS = "the values of a loss of one's own are floats of unknown accuracy: they prove nothing"
LOWER_BY = "weak duality: multipliers, shares and gradients of the losses"
UPPER_BY = "value at exactly feasible kernels, of a classifier and the losses"


@dataclass(frozen=True, eq=False)
class SimilarityProgram:
    """The data of the problem.

    Parameters
    ----------
    groups : tuple of tuples of (n, n) arrays
        The similarities S_ij of each kernel, symmetric.
    y : (n,) array
        Labels -1 and +1.
    C, rho : float
        Upper bound of the multipliers, weight of the losses.
    trace : float or None
        Trace of each kernel; None leaves that of a single kernel free.
    loss : str
        "l1", "frobenius", "squared"; any other is a user's own.
    """

    groups: tuple[tuple[FloatArray, ...], ...]
    y: FloatArray
    C: float
    rho: float
    trace: float | None
    loss: str

    @property
    def n(self) -> int:
        return self.y.size

    @property
    def similarities(self) -> list[FloatArray]:
        """All S_ij, group after group."""
        return [S for group in self.groups for S in group]

    @property
    def has_formulas(self) -> bool:
        """Whether the losses leave a term, and then one that can be enclosed."""
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
    products = np.array([kernel.product * kernel.scale.mid for kernel in kernels])
    if not program.has_formulas:
        solution = _solution(witness, products, witness.dual.get("gradients"))
        return Bracket(-math.inf, math.inf, solution, OWN_LOSS, estimate=_estimate(witness))

    differences = [K.product - S for K, group in _pairs(kernels, program) for S in group]
    upper = _finite_or(math.inf, _kernels_value(program, witness, kernels, differences))
    lower, Z = _best_lower(program, witness, differences, upper)
    # Those of the squared loss are known with the kernel.
    solution = _solution(witness, products, None if program.loss == "squared" else Z)
    return Bracket(lower, upper, solution, lower_by=LOWER_BY, upper_by=UPPER_BY)


@dataclass(frozen=True, eq=False)
class FactoredKernel:
    """K = s HH' of Lemma S1; `trace` None has s = 1."""

    H: FloatArray
    trace: float | None

    @property
    def _columns(self) -> int:
        return int(self.H.shape[1])

    @cached_property
    def product(self) -> FloatArray:
        """G, the computed HH', symmetric."""
        G = self.H @ self.H.T
        if not np.array_equal(G, G.T):
            G = np.tril(G) + np.tril(G, -1).T
        return G

    @cached_property
    def squares(self) -> Enclosure:
        """The squared norms of the rows of H."""
        return _sum_of_nonnegative(self.product.diagonal(), self._columns)

    @cached_property
    def scale(self) -> Enclosure:
        """The factor s."""
        if self.trace is None:
            return Enclosure.of(1.0)
        return Enclosure.of(self.trace) / self.squares.sum()

    @cached_property
    def row_norms(self) -> FloatArray:
        """Upper bounds of the h_i."""
        norms: FloatArray = round_up(np.sqrt(self.squares.upper))
        return norms

    @cached_property
    def spread(self) -> Enclosure:
        """|s - 1| + gamma_k: K differs from G by at most so many times hh'."""
        return Enclosure.of((self.scale - 1.0).magnitude) + gamma(self._columns)

    @property
    def underflow(self) -> float:
        """What an entry of G may lack beyond that."""
        return (self._columns + 1) * ETA

    def image(self, w: FloatArray) -> Enclosure:
        """Return Hw: by Cauchy and Schwarz the terms of entry i add up to at most h_i |w|."""
        size = enclose_norm(w).upper
        rad = Enclosure.of(self.row_norms) * (gamma(self._columns) * size) + 2 * self.underflow
        return Enclosure(self.H @ w, rad.upper)


def _kernels(program: SimilarityProgram, witness: Point) -> list[FactoredKernel] | None:
    """The kernels of Lemma S1; None where the witness has no factors for them."""
    ranks = _given(witness.primal, "ranks", (len(program.groups),))
    factors = witness.primal.get("factors")
    if ranks is None or factors is None or factors.ndim != 2 or not np.isfinite(factors).all():
        return None
    if factors.shape != (program.n, int(ranks.sum())) or not (ranks >= 0).all():
        return None
    ends = ranks.astype(int).cumsum()[:-1]
    parts = np.split(factors, ends, axis=1)
    return [FactoredKernel(H, program.trace) for H in parts]


def _pairs(
    kernels: list[FactoredKernel], program: SimilarityProgram
) -> Iterator[tuple[FactoredKernel, tuple[FloatArray, ...]]]:
    return zip(kernels, program.groups, strict=True)


def _kernels_value(
    program: SimilarityProgram,
    witness: Point,
    kernels: list[FactoredKernel],
    differences: list[FloatArray],
) -> float:
    """Lemma S2 and the losses: the upper end."""
    ends = np.cumsum([kernel.H.shape[1] for kernel in kernels])
    classifier = _given(witness.primal, "classifier", (int(ends[-1]),))
    offset = _given(witness.primal, "offset", ())
    if classifier is None or offset is None:
        return math.inf

    f = Enclosure.of(np.full(program.n, float(offset)))
    largest = 0.0
    for kernel, w in zip(kernels, np.split(classifier, ends[:-1]), strict=True):
        f = f + kernel.image(w)
        squared_norm = enclose_norm(w).square() / kernel.scale
        # NaN stays.
        largest = float(np.maximum(largest, squared_norm.upper))
    total = _hinge_value(program, f, largest)

    if program.rho:
        owners = [K for K, group in _pairs(kernels, program) for _ in group]
        pairs = zip(owners, differences, strict=True)
        losses = enclose_sum([_loss_bound(program.loss, K, X) for K, X in pairs])
        total = total + losses * program.rho
    return float(total.upper)


def _hinge_value(program: SimilarityProgram, f: Enclosure, squared_norm: float) -> Enclosure:
    """squared_norm / 2 + C sum_j max(0, 1 - y_j f_j)."""
    shortfalls = (1.0 - f * program.y).positive_part()
    return Enclosure.of(squared_norm) * 0.5 + shortfalls.sum() * program.C


def _loss_bound(loss: str, kernel: FactoredKernel, X: FloatArray) -> float:
    """An upper bound of L(K - S) where X is the computed G - S (Lemma S1)."""
    n = len(X)
    # One rounding made each entry of X.
    rounded = 1 + 4 * UNIT_ROUNDOFF
    if loss == "l1":
        rows = Enclosure.of(kernel.row_norms).sum()
        size = _entrywise_norm(X) * rounded + kernel.spread * rows.square()
        return float((size + kernel.underflow * (n * n)).upper)
    # The norm of hh' is the sum of the h_i^2.
    spread = kernel.spread * kernel.squares.sum()
    size = _squared_norm(X).sqrt() * rounded + spread + kernel.underflow * n
    return float((size.square() if loss == "squared" else size).upper)


def _best_lower(
    program: SimilarityProgram, witness: Point, differences: list[FloatArray], upper: float
) -> tuple[float, FloatArray | None]:
    """The best bound of Lemma S3 that the witness has, and its gradients."""
    a = _multipliers(program, witness)
    m = len(differences)
    n = program.n
    if a is None:
        return -math.inf, None
    Z = _given(witness.dual, "gradients", (m, n, n))
    if Z is None:
        Z = np.array([_gradient(program.loss, X) for X in differences])
    levels = _given(witness.dual, "levels", (len(program.groups),))
    shares = _shares(program, witness)
    lower = max((_lower(program, a, g, Z, levels, upper) for g in shares), default=-math.inf)

    # At a kink the gradient at K is one of many: one that balances the support vector machine may
    # close the gap.
    other = _given(witness.dual, "kink_gradient", (n, n))
    if other is not None and not upper - lower <= NEARLY_CLOSED_GAP * (1 + abs(upper)):
        same = np.broadcast_to(other, (m, n, n))
        found = max((_lower(program, a, g, same, None, upper) for g in shares), default=-math.inf)
        if found > lower:
            return found, same
    return lower, Z


def _lower(
    program: SimilarityProgram,
    a: FloatArray,
    g: FloatArray,
    Z: FloatArray,
    levels: FloatArray | None,
    upper: float,
) -> float:
    """The bound of Lemma S3; -inf where Z is outside of the domain of the conjugate."""
    terms = [_exact_sum(program.y * a)]
    if program.rho:
        for Zi, S in zip(Z, program.similarities, strict=True):
            if not np.array_equal(Zi, Zi.T) or not np.isfinite(Zi).all():
                return -math.inf
            size = _squared_norm(Zi)
            if not _is_in_domain(program.loss, Zi, size):
                return -math.inf
            conjugate = size * 0.25 if program.loss == "squared" else Enclosure.of(0.0)
            terms.append((_inner_product(Zi, S) + conjugate) * -program.rho)

    trace = program.trace
    if trace is None:
        trace = _trace_bound(program, upper)
    first = 0
    for i, group in enumerate(program.groups):
        guess = None if levels is None else float(levels[i])
        smallest = _eigenvalue(program, Z[first : first + len(group)], a, float(g[i]), guess)
        first += len(group)
        # Without a trace the kernel 0 is feasible: a positive eigenvalue adds nothing.
        if program.trace is not None or smallest < 0:
            terms.append(Enclosure.of(trace) * smallest)
    return _finite_or(-math.inf, enclose_sum(terms).lower)


def _gradient(loss: str, X: FloatArray) -> FloatArray:
    """A gradient of L at X, with room for rounding; a proposal like any other."""
    if loss == "l1":
        return np.sign(X)
    if loss == "frobenius":
        room = 1 - 8 * (len(X) + 4) * UNIT_ROUNDOFF
        return X * (room / (float(np.linalg.norm(X)) or 1.0))
    return 2 * X


def _is_in_domain(loss: str, Z: FloatArray, squared_norm: Enclosure) -> bool:
    """Whether L*(Z) is finite."""
    if loss == "l1":
        return bool(np.abs(Z).max(initial=0.0) <= 1)
    return loss == "squared" or bool(squared_norm.upper <= 1)


def _eigenvalue(
    program: SimilarityProgram, Z: FloatArray, a: FloatArray, g: float, guess: float | None
) -> float:
    """A lower bound of the smallest eigenvalue of rho sum Z_j - aa'/(2g)."""
    pull = enclose_norm(a).square() / (2 * g)
    if not program.rho:
        return float((-pull).lower)
    M = program.rho * (Z[0] if len(Z) == 1 else Z.sum(axis=0))
    M -= np.multiply.outer(a / (2 * g), a)
    # Each entry takes len(Z) sums, two divisions and products, and a difference: Lemma E2 for its
    # terms, whose matrix has at most the sum of their norms.
    norms = enclose_sum([_squared_norm(Zj).sqrt() for Zj in Z]) * program.rho
    operations = len(Z) + 6
    underflow = 4 * len(a) * operations * ETA * (2 + float(np.abs(a).max()))
    error = (norms + pull) * gamma(operations) + underflow
    floor = eigenvalue_floor(M, guess)
    # A guess that is too high is no loss: the eigenvalue is computed.
    if floor == -math.inf and guess is not None:
        floor = eigenvalue_floor(M)
    return float((floor - error).lower) if math.isfinite(floor) else -math.inf


def _trace_bound(program: SimilarityProgram, upper: float) -> float:
    """Lemma S4: a bound of the trace of all kernels of a value of at most `upper`."""
    n = program.n
    m = len(program.similarities)
    if not math.isfinite(upper):
        return math.inf
    given = enclose_sum([Enclosure.of(S.diagonal()).sum() for S in program.similarities])
    losses = Enclosure.of(max(upper, 0.0)) / program.rho
    if program.loss == "frobenius":
        losses = losses * Enclosure.of(float(n)).sqrt()
    elif program.loss == "squared":
        # The m norms add up to at most the root of m times their squares.
        losses = (losses * float(n * m)).sqrt()
    return max(float(((given + losses) / float(m)).upper), 0.0)


# --- given eigenvectors


@np.errstate(all="ignore")
def prove_spectra(
    program: SimilarityProgram, values: FloatArray, vectors: FloatArray, witness: Point
) -> Bracket:
    """Return the bounds of Lemma S5.

    Parameters
    ----------
    program
        The data; its similarities are not read.
    values : (m, n) array
        The lambda_i, one row each.
    vectors : (m n, n) array
        The columns of all V_i, one row each.
    witness
        Primal `spectra` (the mu_i, which are scaled to the trace), `classifier` (the p_i), `offset`
        (b); dual `multipliers` (a) and `shares` (g, rows of which each is tried).
    """
    m, n = values.shape
    point = _reported(witness)
    mu = _given(witness.primal, "spectra", (m, n))
    if mu is None or program.trace is None or not (mu >= 0).all():
        return Bracket(-math.inf, math.inf, point, "the witness has no spectra")

    scale = Enclosure.of(program.trace) / _exact_sums(mu)
    upper = _finite_or(math.inf, _spectra_value(program, values, vectors, witness, mu, scale))
    lower = _spectra_lower(program, values, vectors, witness, mu - values)
    spectra = mu * scale.mid[:, None]
    kernels = np.empty((m, n, n))
    for V, row, K in zip(np.vsplit(vectors, m), spectra, kernels, strict=True):
        half = V[row > 0].T * np.sqrt(row[row > 0])
        np.matmul(half, half.T, out=K)
    solution = Point({**point.primal, "spectra": spectra, "kernels": kernels})
    return Bracket(lower, upper, solution, lower_by=LOWER_BY, upper_by=UPPER_BY)


def _spectra_value(
    program: SimilarityProgram,
    values: FloatArray,
    vectors: FloatArray,
    witness: Point,
    mu: FloatArray,
    scale: Enclosure,
) -> float:
    """The upper end; `scale` has the factors s_i that give the mu_i the trace exactly."""
    p = _given(witness.primal, "classifier", mu.shape)
    offset = _given(witness.primal, "offset", ())
    # An eigenvector that a kernel lacks is none of its functions.
    if p is None or offset is None or p[mu == 0].any():
        return math.inf
    quotients = Enclosure.of(p).square() / np.where(mu > 0, mu, 1.0)
    squared_norms = quotients.sum(axis=1) / scale
    f = enclose_product(p.reshape(-1), vectors) + float(offset)
    total = _hinge_value(program, f, float(squared_norms.maximum().upper))
    if program.rho:
        column = Enclosure(scale.mid[:, None], scale.rad[:, None])
        losses = (column * mu - values).square().sum(axis=1).sum()
        total = total + losses * program.rho
    return float(total.upper)


def _spectra_lower(
    program: SimilarityProgram,
    values: FloatArray,
    vectors: FloatArray,
    witness: Point,
    z: FloatArray,
) -> float:
    """The lower end of Lemma S5."""
    a = _multipliers(program, witness)
    if a is None or program.trace is None:
        return -math.inf
    u = enclose_product(vectors, a)
    squares = u.square()
    pull = Enclosure(squares.mid.reshape(z.shape), squares.rad.reshape(z.shape))
    gradient = Enclosure.of(z) * (2 * program.rho)
    losses = (Enclosure.of(z) * (Enclosure.of(values) * 2.0 + z)).sum(axis=1) * -program.rho

    found = -math.inf
    for g in _shares(program, witness):
        prices = gradient - pull / (2 * g)[:, None]
        smallest = Enclosure.of(prices.lower.min(axis=1)) * program.trace
        parts = smallest + losses
        terms = [Enclosure(mid, rad) for mid, rad in zip(parts.mid, parts.rad, strict=True)]
        value = enclose_sum([_exact_sum(program.y * a), *terms])
        found = max(found, _finite_or(-math.inf, value.lower))
    return found


# --- what a witness holds


def _given(
    arrays: Mapping[str, FloatArray], name: str, shape: tuple[int, ...]
) -> FloatArray | None:
    """The array of this name if it is there, finite and of the right shape."""
    found = arrays.get(name)
    if found is None or found.shape != shape or not np.isfinite(found).all():
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
    return [g for g in rows if (g > 0).all() and _fsum([*g, -1.0]) <= 0]


def _estimate(witness: Point) -> tuple[float, float] | None:
    """The interval that the witness calls an estimate."""
    given = witness.primal.get("estimate")
    if given is None or given.shape != (2,):
        return None
    return float(given[0]), float(given[1])


def _reported(witness: Point) -> Point:
    """What the witness wants to be told to the user."""
    primal = {
        name: witness.primal[name] for name in ("alpha", "gamma", "bias") if name in witness.primal
    }
    return Point(primal)


def _solution(witness: Point, products: FloatArray, Z: FloatArray | None) -> Point:
    """The point with its kernels, one of which has no shares, and its gradients."""
    primal = dict(_reported(witness).primal)
    if "gamma" in primal:
        primal["kernels"] = products
    else:
        primal["kernel"] = products[0]
    dual = {} if Z is None else {"gradients": Z}
    # The last shares are those that came with given gradients.
    shares = witness.dual.get("shares")
    if Z is not None and shares is not None and len(shares) > 1:
        dual["shares"] = shares[-1]
    return Point(primal, dual)


# --- sums


def _finite_or(infinite: float, value: float) -> float:
    return float(value) if math.isfinite(value) else infinite


def _sum_of_nonnegative(computed: FloatArray | float, count: int) -> Enclosure:
    """Sums of `count` nonnegative terms, each of at most one rounding, as they were computed.

    By Lemma E2 |computed - exact| <= gamma exact + count eta, so that it is at most
    2 gamma computed + 4 count eta.
    """
    size: FloatArray | float = np.abs(computed)
    return Enclosure(computed, 2 * gamma(count + 2) * size + 4 * (count + 2) * ETA)


def _squared_norm(X: FloatArray) -> Enclosure:
    """||X||^2."""
    n = len(X)
    rows = _sum_of_nonnegative(np.vecdot(X, X), n)
    return _total(rows)


def _entrywise_norm(X: FloatArray) -> Enclosure:
    """sum |X_ij|."""
    return _total(_sum_of_nonnegative(np.abs(X).sum(axis=1), len(X)))


def _inner_product(Z: FloatArray, S: FloatArray) -> Enclosure:
    """<Z, S>: the terms of the rows add up to at most ||Z|| ||S|| (Cauchy and Schwarz)."""
    n = len(Z)
    rows = np.vecdot(Z, S)
    if not np.isfinite(rows).all():
        return Enclosure(0.0, math.inf)
    size = (_squared_norm(Z) * _squared_norm(S)).sqrt() * gamma(n + 1) + 2 * n * (n + 1) * ETA
    mid = _fsum(rows)
    return Enclosure(mid, (size + 2 * UNIT_ROUNDOFF * abs(mid)).upper)


def _total(parts: Enclosure) -> Enclosure:
    """The sum of all entries, its midpoint correctly rounded."""
    if not np.isfinite(parts.mid).all():
        return Enclosure(0.0, math.inf)
    mid = _fsum(parts.mid)
    rad = Enclosure.of(parts.rad).sum() + 2 * UNIT_ROUNDOFF * abs(mid)
    return Enclosure(mid, rad.upper)


def _exact_sum(terms: FloatArray) -> Enclosure:
    """The sum of floats, correctly rounded."""
    mid = _fsum(terms)
    return Enclosure(mid, 2 * UNIT_ROUNDOFF * abs(mid))


def _exact_sums(rows: FloatArray) -> Enclosure:
    """The sum of each row, correctly rounded."""
    mid = np.array([_fsum(row) for row in rows])
    return Enclosure(mid, 2 * UNIT_ROUNDOFF * np.abs(mid))


def _fsum(terms: Sequence[float] | FloatArray) -> float:
    """`math.fsum`, which raises where a sum overflows: inf there."""
    try:
        return math.fsum(terms)
    except OverflowError:
        return math.inf
