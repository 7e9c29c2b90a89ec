"""What multipliers, kernels and gradients prove about kernels learned from similarities.

Losses L of a symmetric matrix and their conjugates L*:

    "l1"          L(X) = sum |X_ij|      L*(Z) = 0 where max |Z_ij| <= 1
    "frobenius"   L(X) = ||X||           L*(Z) = 0 where ||Z|| <= 1
    "squared"     L(X) = ||X||^2         L*(Z) = ||Z||^2 / 4

The nearest kernel. For multipliers a, a share g and a weight w

    psi(a, g, w) = min over K of  w ||K - S||^2 - a'Ka / (2g)

over positive semidefinite K, of trace tau if that is given, is attained at K = V diag(mu) V', where
V and lam are the eigenvectors and eigenvalues of S + c aa', c = 1 / (4 w g), and mu is the
projection of lam: on the simplex of sum tau, or max(lam, 0) without a trace. Clipping first and
rescaling then would be wrong. Where K has to keep the eigenvectors V of S = V diag(lambda) V', mu
is the projection of lambda + c u^2, u = V'a.

One kernel (`SingleKernelProof`). Upper bound: any kernel K = HH' of the right trace, with the value
of its support vector machine bounded by a classifier, f = Ka + b at the best b and the best
multiple, which holds for every a; plus the losses of K. Lower bound: for any a in the box and any
Z_i in the domain of L*

    y'a - rho sum (<Z_i, S_i> + L*(Z_i)) + tau lambda_min(rho sum Z_i - aa'/2)           (1)

is at most  max over a of  y'a - a'Ka/2 + rho sum L(K - S_i)  for every K of trace tau. Without a
trace tau is a bound of the trace of the best kernel. It follows from the upper bound, because the
losses of the best kernel are at most that: z tr X <= L(X) + L*(zI) for every z, hence

    tr K <= tr(mean of the S_i) + (upper / (rho m) + L*(zI)) / z    for every z > 0;     (2)

the eigenvalue counts only where it is negative. Where no z gives a finite bound, kernels are looked
for up to `TRACE_SEARCH_FACTOR` times the usual trace, and nothing is proven but where the
eigenvalue is not negative. For the squared loss the best Z_i for a is known, 2(K - S_i) with the
nearest kernel K, and so is the eigenvalue: the bound is y'a + psi(a).

Several kernels (`SeveralKernelsProof`):

    minimise over K_1, .., K_m
    max over a and g of  y'a - sum_i a'K_i a / (2 g_i)   +   rho sum_i L(K_i - S_i)

with shares g >= 0 of sum 1. The best g for given kernels is g_i = r_i / sum r, r_i = (a'K_i a)^1/2:
the inner problem is block-linf multiple kernel learning. Upper bound: any kernels K_i = H_i H_i' of
the right trace, the classifier f = sum_i K_i a / g_i + b with ||.||^2 = max_i |H_i'a|^2 / g_i^2,
and the losses. Lower bound: for any a in the box and any g > 0 of sum 1

    y'a + sum_i psi_i(a, g_i)                                                            (3)
    y'a - rho sum_i (<Z_i, S_i> + L*(Z_i)) + tau sum_i lambda_min(rho Z_i - aa'/(2 g_i)) (4)
    y'a - tau/2 (sum_i max_j |V_i'a|_j)^2                                                (5)

(3) for the squared loss, (4) for any Z_i in the domain of L*, (5) where rho = 0 and eigenvectors
V_i are kept. It goes to -inf as g_i -> 0: the best g are positive, unless a = 0.

An eigenvalue is known up to n eps ||.||, which is subtracted; sums are right up to n eps times
their terms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from klopt.arrays import EPS, FloatArray
from klopt.model.memo import remember_last
from klopt.model.problem import Bracket, Point
from klopt.model.sets import BoxPlane
from klopt.model.sets.projections import simplex_projection
from klopt.problems._margin.proof import best_shift, hinge_primal, zeros_unless_finite

__all__ = [
    "NAMED_LOSSES",
    "KernelProjection",
    "KernelSpectra",
    "Loss",
    "NearestKernel",
    "NearestSpectra",
    "SeveralKernelsProof",
    "SimilarityData",
    "SingleKernelProof",
    "symmetric_part",
]

NEARLY_CLOSED_GAP = 1e-9
"""Relative gap below which no second choice of gradients is tried."""
MIN_RELATIVE_WEIGHT = 1e-10
"""Replaces rho = 0, relative to values over losses, where the kernel nearest to a is looked for."""
TRACE_SEARCH_FACTOR = 1e3
"""Multiple of the usual trace up to which kernels are looked for where the loss bounds no trace."""
MIN_SHARE = 1e-8
"""Smallest share g_i of a kernel that a bound uses."""
SUPPORT_SCALES = 2.0 ** np.arange(-20, 21)
"""Multiples t of the usual diagonal at which gradients of the loss at tI are tried in (2)."""
NO_CONJUGATE = "the loss has no conjugate(Z): nothing bounds the optimum from below"
OUTSIDE = "the gradients lie outside the domain of conjugate(Z)"


# --- losses


@dataclass(frozen=True, eq=False)
class Loss:
    """A convex function of a symmetric matrix, as bounds use it.

    Parameters
    ----------
    name : str
        "l1", "frobenius", "squared", or "own" for a user's loss.
    value, gradient : callable
        L(X) and a subgradient of L at X.
    conjugate : callable or None
        L*(Z), inf outside its domain; without it nothing bounds the optimum from below.
    inside : callable
        Maps Z to a multiple of it, or a point near it, in the domain of the conjugate.
    """

    name: str
    value: Callable[[FloatArray], float]
    gradient: Callable[[FloatArray], FloatArray]
    conjugate: Callable[[FloatArray], float] | None
    inside: Callable[[FloatArray], FloatArray]

    def supports(self, n: int, scale: float) -> list[tuple[float, float]]:
        """Return pairs (z, L*(zI)), z > 0 and L* finite, for the trace bound (2).

        zI are gradients at multiples of I about as large as `scale`.

        >>> NAMED_LOSSES["l1"].supports(2, 1.0)[0]
        (1.0, 0.0)
        """
        eye = np.eye(n)
        found = []
        # A gradient or value that overflows supports nothing and is left out below.
        with np.errstate(all="ignore"):
            for t in scale * SUPPORT_SCALES:
                z = float(np.trace(self.gradient(t * eye))) / n
                if self.conjugate is None:
                    # L*(zI) = z tr(tI) - L(tI) if zI is a gradient at tI.
                    price = z * n * t - self.value(t * eye)
                else:
                    price = self.conjugate(z * eye)
                if z > 0 and np.isfinite(price):
                    found.append((z, float(price)))
        return found


def _entrywise_norm(X: FloatArray) -> float:
    return float(np.abs(X).sum())


def _frobenius_norm(X: FloatArray) -> float:
    return float(np.linalg.norm(X))


def _squared_norm(X: FloatArray) -> float:
    return float(np.vdot(X, X))


def _quarter_of_square(Z: FloatArray) -> float:
    return _squared_norm(Z) / 4


def _twice(X: FloatArray) -> FloatArray:
    return 2 * X


def _zero(Z: FloatArray) -> float:
    return 0.0


def _into_unit_box(Z: FloatArray) -> FloatArray:
    return np.clip(Z, -1.0, 1.0)


def _into_unit_ball(Z: FloatArray) -> FloatArray:
    return Z / max(1.0, _frobenius_norm(Z) * (1 + 1e-15))


def _direction(X: FloatArray) -> FloatArray:
    return X / (_frobenius_norm(X) or 1.0)


def _unchanged(Z: FloatArray) -> FloatArray:
    return Z


NAMED_LOSSES = {
    "l1": Loss("l1", _entrywise_norm, np.sign, _zero, _into_unit_box),
    "frobenius": Loss("frobenius", _frobenius_norm, _direction, _zero, _into_unit_ball),
    "squared": Loss("squared", _squared_norm, _twice, _quarter_of_square, _unchanged),
}


# --- data


@dataclass(frozen=True, eq=False)
class SimilarityData:
    """Checked similarities, labels and penalties.

    Parameters
    ----------
    S : tuple of (n, n) arrays
        The similarities, symmetric.
    y : (n,) array
        Labels -1 and +1.
    C : float
        Upper bound of the multipliers.
    rho : float
        Weight of the losses.
    trace : float or None
        Trace of each kernel; None leaves it free.
    loss : Loss
        The loss L.
    """

    S: tuple[FloatArray, ...]
    y: FloatArray
    C: float
    rho: float
    trace: float | None
    loss: Loss
    _domains: dict[float, BoxPlane] = field(default_factory=dict, init=False, repr=False)

    @property
    def n(self) -> int:
        return self.y.size

    @cached_property
    def mean(self) -> FloatArray:
        """The mean of the similarities."""
        if len(self.S) == 1:
            return self.S[0]
        return np.asarray(sum(self.S[1:], self.S[0]) / len(self.S))

    @cached_property
    def scale(self) -> float:
        """The size of the diagonal of a kernel."""
        if self.trace is not None:
            return self.trace / self.n
        mean_norm = float(np.mean([np.linalg.norm(S) for S in self.S]))
        return mean_norm / float(np.sqrt(self.n)) or 1.0

    @property
    def weight(self) -> float:
        """rho; where it is 0 a positive number that is negligible."""
        if self.rho:
            return self.rho
        # psi needs a positive weight to have a nearest kernel.
        typical = self.C * self.n + 1 / self.scale
        losses = 1 + self.n * self.scale**2 + sum(float(np.vdot(S, S)) for S in self.S)
        return MIN_RELATIVE_WEIGHT * typical / losses

    @property
    def provable(self) -> bool:
        """Whether the optimum can be bounded from below."""
        return self.loss.conjugate is not None or not self.rho

    def domain(self, length: float = 1.0) -> BoxPlane:
        """Return the set of a / length:  0 <= y_i a_i <= C, 1'a = 0."""
        if length not in self._domains:
            corner = self.y * (self.C / length)
            lower = np.minimum(corner, 0.0)
            upper = np.maximum(corner, 0.0)
            self._domains[length] = BoxPlane(lower, upper, np.ones(self.n))
        return self._domains[length]

    def multipliers(self, alpha: FloatArray) -> FloatArray:
        """Return y o alpha moved into the box and onto the plane."""
        return self.domain().repair(zeros_unless_finite(alpha) * self.y)

    def losses(self, K: FloatArray, S: tuple[FloatArray, ...]) -> float:
        """Return rho sum L(K - S_i)."""
        if not self.rho:
            return 0.0
        return self.rho * sum(self.loss.value(K - Si) for Si in S)


# --- nearest kernels


@dataclass(frozen=True, eq=False)
class NearestKernel:
    """The kernel that attains psi(a, g, w), by its eigenvalues mu and eigenvectors V.

    Parameters
    ----------
    V : (n, n) array
        Eigenvectors of S + c aa', in columns.
    lam, mu : (n,) arrays
        Eigenvalues before and after the projection, smallest first.
    u : (n,) array
        V'a.
    g, w : float
        Share and weight.
    has_trace : bool
        Whether the trace of the kernel is given.
    """

    V: FloatArray
    lam: FloatArray
    mu: FloatArray
    u: FloatArray
    g: float
    w: float
    has_trace: bool

    @cached_property
    def c(self) -> float:
        return 1 / (4 * self.w * self.g)

    @cached_property
    def first(self) -> int:
        """Where P begins: the eigenvalues with mu > 0 are the last ones."""
        return int(np.count_nonzero(self.mu <= 0))

    @cached_property
    def factor(self) -> FloatArray:
        """H with K = HH'."""
        return self.V[:, self.first :] * np.sqrt(self.mu[self.first :])

    @cached_property
    def squares(self) -> FloatArray:
        """u^2."""
        return self.u * self.u

    @cached_property
    def squared_norm(self) -> float:
        """a'Ka, the squared norm of the classifier Ka."""
        return float(self.mu @ self.squares)

    @cached_property
    def distance(self) -> float:
        """||K - S||^2."""
        # S = V diag(lam) V' - c aa', so that nothing of the order n^2 has to be formed.
        change = self.mu - self.lam
        pull = self.c * self.squares
        return max(float(change @ (change + 2 * pull)) + float(pull.sum()) ** 2, 0.0)

    @property
    def value(self) -> float:
        """psi."""
        return self.w * self.distance - self.squared_norm / (2 * self.g)


@dataclass(frozen=True, eq=False)
class KernelProjection:
    """One similarity S and the trace that its kernel has to have, None for any."""

    S: FloatArray
    trace: float | None

    def eigenvalues(self, lam: FloatArray) -> FloatArray:
        """Return the nearest eigenvalues that a kernel may have."""
        if self.trace is None:
            return np.maximum(lam, 0.0)
        return simplex_projection(lam, self.trace)

    def nearest(self, a: FloatArray, g: float, w: float) -> NearestKernel:
        """Return the kernel that attains psi(a, g, w)."""
        return self._nearest(np.concatenate([a, [g, w]]))

    # A proof at the point where a solver stopped needs no second eigendecomposition.
    @remember_last
    def _nearest(self, point: FloatArray) -> NearestKernel:
        a = point[:-2]
        g, w = point[-2:].tolist()
        lam, V = np.linalg.eigh(self.S + np.outer(a / (4 * w * g), a))
        mu = self.eigenvalues(lam)
        return NearestKernel(V, lam, mu, V.T @ a, g, w, self.trace is not None)

    def factor_of(self, K: FloatArray) -> FloatArray:
        """Return H with HH' the kernel nearest to K."""
        lam, V = np.linalg.eigh(symmetric_part(K))
        return _factor(V, self.eigenvalues(lam))


@dataclass(frozen=True, eq=False)
class KernelSpectra:
    """Similarities by their eigenvalues and eigenvectors, which their kernels keep.

    Parameters
    ----------
    values : (m, n) array
        Eigenvalues lambda_i, one row each.
    vectors : (m n, n) array
        Eigenvectors, one row each, those of all similarities below each other.
    trace : float
        Trace of each kernel.
    """

    values: FloatArray
    vectors: FloatArray
    trace: float

    @classmethod
    def of(cls, similarities: Sequence[FloatArray], trace: float) -> KernelSpectra:
        """Return the spectra of symmetric matrices."""
        pairs = [np.linalg.eigh(S) for S in similarities]
        values = np.array([values for values, _ in pairs])
        return cls(values, np.vstack([V.T for _, V in pairs]), trace)

    @property
    def bases(self) -> list[FloatArray]:
        """The V_i."""
        return [rows.T for rows in np.vsplit(self.vectors, len(self.values))]

    @cached_property
    def _counts(self) -> FloatArray:
        return np.arange(1.0, self.values.shape[1] + 1)

    @cached_property
    def ones(self) -> FloatArray:
        return np.ones(self.values.shape[1])

    @cached_property
    def rows(self) -> npt.NDArray[np.intp]:
        """The numbers of the similarities."""
        return np.arange(len(self.values))

    @remember_last
    def along(self, a: FloatArray) -> FloatArray:
        """Return the u_i = V_i'a, one row each."""
        return (self.vectors @ a).reshape(self.values.shape)

    def projected(self, squares: FloatArray, c: FloatArray) -> FloatArray:
        """Return the projections of lambda_i + c_i u_i^2 on the simplex; `squares` are the u^2."""
        lam = self.values + c[:, None] * squares
        # Only differences to the largest eigenvalue matter: the others keep their digits.
        lam -= lam.max(axis=1)[:, None]
        rising = -lam
        rising.sort(axis=1)

        short = rising.cumsum(axis=1) + self.trace
        count = (rising * self._counts < short).sum(axis=1)
        level = short[self.rows, count - 1] / count
        mu: FloatArray = np.maximum(lam + level[:, None], 0.0)
        mu *= (self.trace / (mu @ self.ones))[:, None]
        return mu

    def nearest(self, a: FloatArray, g: FloatArray, w: float) -> NearestSpectra:
        """Return the best eigenvalues for given shares."""
        u = self.along(a)
        return self.at(u, u * u, g, w)

    def at(self, u: FloatArray, squares: FloatArray, g: FloatArray, w: float) -> NearestSpectra:
        """Return the best eigenvalues for given u and u^2."""
        return NearestSpectra(self, u, squares, self.projected(squares, 1 / (4 * w * g)), g, w)


@dataclass(frozen=True, eq=False)
class NearestSpectra:
    """The best eigenvalues of kernels that keep their eigenvectors, for one (a, g).

    Parameters
    ----------
    spectra : KernelSpectra
        The similarities.
    u, squares : (m, n) arrays
        u_i = V_i'a, one row each, and u^2.
    mu : (m, n) array
        The eigenvalues, one row each.
    g : (m,) array
        Shares.
    w : float
        Weight of the squared loss.
    """

    spectra: KernelSpectra
    u: FloatArray
    squares: FloatArray
    mu: FloatArray
    g: FloatArray
    w: float

    @cached_property
    def inside(self) -> npt.NDArray[np.bool_]:
        """Where P is: mu > 0."""
        return self.mu > 0

    @cached_property
    def c(self) -> FloatArray:
        return 1 / (4 * self.w * self.g)

    @cached_property
    def squared_norms(self) -> FloatArray:
        """The q_i = a'K_i a."""
        return np.asarray(np.vecdot(self.mu, self.squares))

    @property
    def value(self) -> float:
        """psi."""
        change = self.mu - self.spectra.values
        squared_norm = float((self.squared_norms / self.g).sum())
        return self.w * float(np.vdot(change, change)) - squared_norm / 2

    @property
    def factors(self) -> list[FloatArray]:
        """The H_i with K_i = H_i H_i'."""
        ends = self.inside.sum(axis=1).cumsum()[:-1]
        return np.split(self.scaled_vectors(self.mu).T, ends, axis=1)

    def scaled_vectors(self, weights: FloatArray) -> FloatArray:
        """Return the eigenvectors that belong to P, one row each, times the roots of weights."""
        P = self.inside.reshape(-1)
        scaled = self.spectra.vectors[P]
        scaled *= np.sqrt(weights.reshape(-1)[P])[:, None]
        return scaled


# --- one kernel


@dataclass(frozen=True, eq=False)
class SingleKernelProof:
    """Bounds of the optimum over one kernel, learned from one or several similarities."""

    data: SimilarityData

    @cached_property
    def projection(self) -> KernelProjection:
        return KernelProjection(self.data.mean, self.data.trace)

    @cached_property
    def spread(self) -> float:
        """sum ||S_i - mean||^2: what the squared loss has beyond m ||K - mean||^2."""
        mean = self.data.mean
        return sum(float(np.vdot(S - mean, S - mean)) for S in self.data.S)

    @property
    def squared(self) -> bool:
        return self.data.loss.name == "squared"

    @cached_property
    def max_trace(self) -> float:
        """A bound of the trace of the best kernel."""
        data = self.data
        if data.trace is not None:
            return data.trace
        # The value of any support vector machine is at most that of the classifier f = b.
        minority = min(np.count_nonzero(data.y > 0), np.count_nonzero(data.y < 0))
        svm_value = data.C * 2 * minority
        lam, V = np.linalg.eigh(data.mean)
        upper = svm_value + data.losses(V * np.maximum(lam, 0.0) @ V.T, data.S)
        bound = self.trace_bound(upper)
        return bound if np.isfinite(bound) else TRACE_SEARCH_FACTOR * data.n * data.scale

    @cached_property
    def _supports(self) -> list[tuple[float, float]]:
        return self.data.loss.supports(self.data.n, self.data.scale)

    def trace_bound(self, upper: float) -> float:
        """Return the bound (2) of the trace of kernels whose losses are at most `upper`.

        It is inf where no bound is known.
        """
        per_loss = upper / (self.data.rho * len(self.data.S))
        excess = min(((per_loss + price) / z for z, price in self._supports), default=np.inf)
        return max(float(np.trace(self.data.mean)) + excess, 0.0)

    def nearest(self, a: FloatArray) -> NearestKernel:
        """Return the best kernel for a under the squared loss."""
        return self.projection.nearest(a, 1.0, self.data.weight * len(self.data.S))

    def factor(self, point: Point, a: FloatArray) -> FloatArray:
        """Return H with HH' the point's kernel made feasible; the nearest to a without one."""
        given = _usable(point.primal.get("kernel"), self.data.mean.shape)
        # Under the squared loss no given kernel is better for a than the nearest one.
        if self.squared or given is None:
            return self.nearest(a).factor
        return self.projection.factor_of(given)

    def gradients(self, point: Point, K: FloatArray) -> FloatArray:
        """Return the Z_i that the point holds, or gradients of the losses at K."""
        loss = self.data.loss
        given = _usable(point.dual.get("gradients"), (len(self.data.S), *K.shape))
        if given is None:
            given = np.array([loss.gradient(K - S) for S in self.data.S])
        return np.array([loss.inside(symmetric_part(Z)) for Z in given])

    def bracket(self, point: Point) -> Bracket:
        """Return what alpha, and kernel and gradients where the point has them, prove."""
        data = self.data
        a = data.multipliers(point.alpha)
        H = self.factor(point, a)
        K = H @ H.T
        inner = H.T @ a

        svm_value, bias = _classifier_value(H @ inner, float(inner @ inner), data.y, data.C)
        loss = data.losses(K, data.S)
        sizes = float(np.abs(a).sum()) * (1 + float(np.abs(K).max()) * data.C)
        rounding = data.n * EPS * (svm_value + loss + sizes)
        upper = svm_value + loss + rounding

        primal: dict[str, object] = {"alpha": data.y * a, "kernel": K, "bias": bias}
        if self.squared and data.rho:
            return Bracket(self._squared_lower(a, rounding), upper, Point(primal))

        Z = self.gradients(point, K)
        lower, note = self._lower(a, Z, upper)
        # At a kink the gradient at K is one of many: those that balance the support vector machine
        # may close the gap.
        if data.rho and upper - lower > NEARLY_CLOSED_GAP * (1 + abs(upper)):
            other = self._subgradients_at_kinks(a)
            other_lower, other_note = self._lower(a, other, upper)
            if other_lower > lower:
                lower, note, Z = other_lower, other_note, other
        return Bracket(lower - rounding, upper, Point(primal, {"gradients": Z}), note)

    def _squared_lower(self, a: FloatArray, rounding: float) -> float:
        """y'a + psi(a) for the squared loss, less the given rounding and that of psi."""
        data = self.data
        near = self.nearest(a)
        size = float(np.linalg.norm(near.lam)) + float(np.linalg.norm(near.mu))
        value = float(data.y @ a) + near.value + data.rho * self.spread
        return value - (rounding + data.n * EPS * 2 * data.rho * len(data.S) * size * size)

    def _subgradients_at_kinks(self, a: FloatArray) -> FloatArray:
        """Gradients with rho sum Z_i = aa'/2 - c I, as far as the domain of L* allows.

        They balance the gradient of the support vector machine; at a kink, K = S_i, the loss has
        many gradients, and these are the ones that close the gap.
        """
        data = self.data
        pull = np.outer(a / 2, a)
        if data.trace is not None:
            pull.flat[:: data.n + 1] -= float(a @ a) / (2 * data.n)
        share = data.loss.inside(pull / (data.rho * len(data.S)))
        return np.array([share] * len(data.S))

    def _lower(self, a: FloatArray, Z: FloatArray, upper: float) -> tuple[float, str]:
        """The bound (1), and why there is none."""
        data = self.data
        if not data.provable:
            searched = "" if data.trace is not None else f"; {self._searched}"
            return -np.inf, NO_CONJUGATE + searched
        total = float(data.y @ a)
        # Without a weight the losses leave no term.
        if data.rho and data.loss.conjugate is not None:
            terms = [
                float(np.vdot(Zi, S)) + float(data.loss.conjugate(Zi))
                for Zi, S in zip(Z, data.S, strict=True)
            ]
            total -= data.rho * sum(terms) + data.n * EPS * data.rho * sum(map(abs, terms))
        if np.isnan(total) or total == -np.inf:
            return -np.inf, OUTSIDE

        smallest = _eigenvalue_floor(data.rho * Z.sum(axis=0) - np.outer(a / 2, a))
        if data.trace is not None:
            return total + data.trace * smallest, ""
        # Without a trace the kernel 0 is feasible: a nonnegative eigenvalue adds nothing.
        if smallest >= 0:
            return total, ""
        note = ""
        if not self._supports:
            note = f"the loss does not bound the trace of the best kernel; {self._searched}"
        return total + self.trace_bound(upper) * smallest, note

    @property
    def _searched(self) -> str:
        return f"kernels were looked for up to trace {self.max_trace:.3g}"


# --- several kernels


@dataclass(frozen=True, eq=False)
class FeasibleKernels:
    """Kernels by their factors and, where they attain psi, sum psi_i and the size of its terms.

    `spectra` has their eigenvalues, one row each, where eigenvectors are kept.
    """

    factors: list[FloatArray]
    spectra: FloatArray | None
    value: float = np.nan
    size: float = np.nan


@dataclass(frozen=True, eq=False)
class SeveralKernelsProof:
    """Bounds of the optimum over one kernel for each similarity.

    `keeps_eigenvectors` says that kernels have the eigenvectors of their similarities.
    """

    data: SimilarityData
    keeps_eigenvectors: bool = False

    @cached_property
    def projections(self) -> tuple[KernelProjection, ...]:
        return tuple(KernelProjection(S, self.data.trace) for S in self.data.S)

    @cached_property
    def spectra(self) -> KernelSpectra:
        """The similarities by their eigenvectors, which kernels keep."""
        assert self.data.trace is not None
        return KernelSpectra.of(self.data.S, self.data.trace)

    @property
    def squared(self) -> bool:
        return self.data.loss.name == "squared"

    @property
    def _has_best_kernels(self) -> bool:
        """Whether the best kernels for (a, g), and with them the bound (3), are known."""
        return self.squared and self.data.rho > 0

    def shares(self, given: FloatArray | None) -> FloatArray:
        """Return shares g >= MIN_SHARE of sum 1 near the given ones."""
        m = len(self.data.S)
        given = _usable(given, (m,))
        if given is None or not (given > 0).any():
            return np.full(m, 1 / m)
        # Shares that are right already stay as they are: the kernels found for them are kept.
        if given.min() >= MIN_SHARE and abs(float(given.sum()) - 1) <= 4 * EPS:
            return given
        g = np.maximum(given / given.max(), MIN_SHARE)
        return np.asarray(g / g.sum())

    def nearest(self, a: FloatArray, g: FloatArray) -> FeasibleKernels:
        """Return the best kernels for (a, g) under the squared loss."""
        weight = self.data.weight
        if self.keeps_eigenvectors:
            spectra = self.spectra.nearest(a, g, weight)
            lam = self.spectra.values + spectra.c[:, None] * spectra.squares
            size = _squared_sizes(lam, spectra.mu)
            return FeasibleKernels(spectra.factors, spectra.mu, spectra.value, size)
        near = [
            projection.nearest(a, float(gi), weight)
            for projection, gi in zip(self.projections, g, strict=True)
        ]
        value = sum(kernel.value for kernel in near)
        size = sum(_squared_sizes(kernel.lam[None], kernel.mu[None]) for kernel in near)
        return FeasibleKernels([kernel.factor for kernel in near], None, value, size)

    def kernels(self, point: Point, a: FloatArray, g: FloatArray) -> FeasibleKernels:
        """Return the point's kernels made feasible, or the best ones for (a, g) where known."""
        shape = (len(self.data.S), self.data.n, self.data.n)
        given = _usable(point.primal.get("kernels"), shape)
        # Under the squared loss no given kernels are better for (a, g) than the nearest ones.
        if self._has_best_kernels or given is None:
            return self.nearest(a, g)
        if not self.keeps_eigenvectors:
            pairs = zip(self.projections, given, strict=True)
            return FeasibleKernels([projection.factor_of(K) for projection, K in pairs], None)

        # The nearest matrix with the eigenvectors V_i has the diagonal of V_i'K_i V_i.
        factors, spectra = [], []
        for V, projection, K in zip(self.spectra.bases, self.projections, given, strict=True):
            diagonal = np.asarray(np.einsum("ij,ij->j", V, symmetric_part(K) @ V))
            mu = projection.eigenvalues(diagonal)
            factors.append(_factor(V, mu))
            spectra.append(mu)
        return FeasibleKernels(factors, np.array(spectra))

    def bracket(self, point: Point) -> Bracket:
        """Return what alpha, and gamma, kernels and gradients where the point has them, prove."""
        data = self.data
        a = data.multipliers(point.alpha)
        g = self.shares(point.primal.get("gamma"))
        best = self.kernels(point, a, g)
        kernels = np.empty((len(best.factors), data.n, data.n))
        for H, K in zip(best.factors, kernels, strict=True):
            np.matmul(H, H.T, out=K)

        inner = [H.T @ a for H in best.factors]
        radii = np.sqrt([float(v @ v) for v in inner])
        share = self.shares(radii)
        parts = zip(best.factors, inner, share, strict=True)
        image = np.asarray(sum((H @ v / s for H, v, s in parts), np.zeros(data.n)))
        squared_norm = float((radii / share).max()) ** 2
        svm_value, bias = _classifier_value(image, squared_norm, data.y, data.C)
        loss = data.rho * sum(data.loss.value(K - S) for K, S in zip(kernels, data.S, strict=True))
        sizes = float(np.abs(a).sum()) + float(np.abs(a) @ np.abs(image))
        rounding = data.n * EPS * (svm_value + loss + sizes)

        # Kernels that are best for (a, g) leave g no freedom to be changed.
        if not self._has_best_kernels:
            g = share
        lower, duals, note = self._lower(point, a, g, kernels, best)
        # Shares of a mean of cuts go with its gradients; the best of both bounds counts.
        given = point.dual.get("shares")
        if given is not None and duals is not None:
            other_g = self.shares(given)
            other_lower, _, other_note = self._lower(point, a, other_g, kernels, best)
            if other_lower > lower:
                lower, note = other_lower, other_note
            duals = {**duals, "shares": other_g}

        primal = {"alpha": data.y * a, "gamma": g, "kernels": kernels, "bias": bias}
        if best.spectra is not None:
            primal["spectra"] = best.spectra
        upper = svm_value + loss + rounding
        return Bracket(lower - rounding, upper, Point(primal, duals), note)

    def _lower(
        self, point: Point, a: FloatArray, g: FloatArray, kernels: FloatArray, best: FeasibleKernels
    ) -> tuple[float, dict[str, FloatArray] | None, str]:
        """The bound (3), (4) or (5), the gradients that prove it, and why there is none."""
        data = self.data
        n = data.n
        total = float(data.y @ a)
        # The bound (3).
        if self._has_best_kernels:
            return total + best.value - n * EPS * 2 * data.rho * best.size, None, ""
        assert data.trace is not None
        # The bound (5): with given eigenvectors the loss is the squared one, so rho = 0 here.
        if self.keeps_eigenvectors:
            largest = np.abs(self.spectra.along(a)).max(axis=1)
            largest = largest + n * EPS * float(np.linalg.norm(a))
            return total - data.trace / 2 * float(largest.sum()) ** 2, None, ""
        if not data.provable:
            return -np.inf, None, NO_CONJUGATE

        # The bound (4).
        Z = self._gradients(point, kernels)
        for Zi, S, gi in zip(Z, data.S, g, strict=True):
            if data.rho and data.loss.conjugate is not None:
                term = data.rho * (float(np.vdot(Zi, S)) + float(data.loss.conjugate(Zi)))
                total -= term + n * EPS * abs(term)
            total += data.trace * _eigenvalue_floor(data.rho * Zi - np.outer(a / (2 * gi), a))
        if not total > -np.inf:
            return -np.inf, {"gradients": Z}, OUTSIDE
        return total, {"gradients": Z}, ""

    def _gradients(self, point: Point, kernels: FloatArray) -> FloatArray:
        loss = self.data.loss
        given = _usable(point.dual.get("gradients"), kernels.shape)
        if given is None:
            pairs = zip(kernels, self.data.S, strict=True)
            given = np.array([loss.gradient(K - S) for K, S in pairs])
        return np.array([loss.inside(symmetric_part(Z)) for Z in given])


# --- what both proofs use


def symmetric_part(M: FloatArray) -> FloatArray:
    """Return (M + M') / 2."""
    return (M + M.T) / 2


def _usable(given: FloatArray | None, shape: tuple[int, ...]) -> FloatArray | None:
    """The array if it is there, finite and of the right shape."""
    if given is None or given.shape != shape or not np.isfinite(given).all():
        return None
    return given


def _factor(V: FloatArray, mu: FloatArray) -> FloatArray:
    """H with HH' = V diag(mu) V', without the columns where mu is 0."""
    return V[:, mu > 0] * np.sqrt(mu[mu > 0])


def _classifier_value(
    f: FloatArray, squared_norm: float, y: FloatArray, C: float
) -> tuple[float, float]:
    """The hinge value of the best multiple of f, of the given squared norm, and its bias."""
    bias = best_shift(y - f, int(np.count_nonzero(y > 0)))
    return hinge_primal(y * (f + bias), squared_norm, C)[0], bias


def _eigenvalue_floor(M: FloatArray) -> float:
    """A lower bound of the eigenvalues of a symmetric matrix."""
    return float(np.linalg.eigvalsh(M)[0]) - len(M) * EPS * float(np.linalg.norm(M))


def _squared_sizes(lam: FloatArray, mu: FloatArray) -> float:
    """sum (|lam_i| + |mu_i|)^2 over the rows."""
    return float(np.square(np.linalg.norm(lam, axis=1) + np.linalg.norm(mu, axis=1)).sum())
