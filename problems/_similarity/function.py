"""The objective in the multipliers alone, for free kernels, with gradient and curvature.

    minimise  f(a) = -y'a - psi(a)      psi(a) = min over K of  rho sum L(K - S_i) - a'Ka/2

for the squared loss, where only the mean of the S_i matters, and for the norm itself with one S.
Several kernels have psi(a, g) = sum_i psi_i(a, g_i), over shares g >= 0 of sum 1 as well. The
variables are x = (a / length, g), values in units of length.

Derivatives of psi(a, g, w), the squared loss with weight w (`klopt.problems._similarity.nearest`).
With u = V'a, P the k eigenvalues with mu > 0, and Omega the divided differences of the projection,

    r = (Omega u^2) o u - (sum of u_P^2 / k) u_P
    T = diag(Omega u^2) + diag(u) Omega diag(u) - 2 u_P u_P' / k

(r is J[aa'] a in the basis V, J the derivative of the projection; without a trace there are no u_P
terms), the derivatives are

    psi_a = -Ka / g
    psi_g = a'Ka / (2 g^2)
    psi_w = ||K - S||^2 =: d
    -psi_aa = V (diag(mu) + c T) V' / g
    -psi_ag = -(Ka + c V r) / g^2
    -psi_gg = (a'Ka + c u'r / 2) / g^3

The norm itself: ||X|| = min over t of ||X||^2 / (2t) + t/2 turns it into a square with w = rho /
(2t). psi(a, g, rho/(2t)) + rho t / 2 is convex in t and minimal where t^2 = d. Eliminating t adds a
rank-one term to the curvature, with

    psi_at = -c V r / (t g)
    psi_gt = c u'r / (2 g^2 t)
    psi_tt = 2w (d - c^2 u'r) / t^2

The norm has a kink where K = S; t = ||K - S|| is kept above `MIN_RELATIVE_DISTANCE` times ||S||.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.functions import LocalModel, SmoothFunction, StartModel
from klopt.model.memo import lock
from klopt.numerics.roots import cubic_root
from klopt.problems._margin.proof import Penalty
from klopt.problems._similarity.nearest import KernelProjection, NearestKernel

__all__ = ["KernelDerivatives", "LastEvaluation", "MultiplierObjective", "nearest_by_norm"]

MAX_NORM_ITERATIONS = 40
"""Newton steps for t = ||K - S||."""
NORM_TOLERANCE = 1e-9
"""Relative error of t; the error of the value is its square."""
MIN_RELATIVE_DISTANCE = 1e-9
"""Smallest t relative to ||S||."""
START_ITERATIONS = 3
"""Rounds in which the start's multipliers and ridge are computed from each other."""
MIN_RELATIVE_RIDGE = 1e-8
"""Smallest ridge of the start, relative to the largest eigenvalue or the largest response."""
RESPONSE_EXPONENT = 0.25
"""How far the start's response is moved to its upper bound.

On 44 instances Newton's method took 151 steps, with 0 and with 0.5 160.
"""

Value = TypeVar("Value")


class LastEvaluation(Generic[Value]):
    """The last point and what was found there, read-only: the next search starts from it.

    Unlike what `remember_last` keeps, it is needed at other points too. It is not pickled, being
    as large as everything else together.
    """

    point: FloatArray | None = None
    found: Value | None = None

    def at(self, x: FloatArray) -> Value | None:
        """Return what was found at x, None where the last point was another one."""
        if self.point is None or not np.array_equal(self.point, x):
            return None
        return self.found

    def keep(self, x: FloatArray, found: Value) -> Value:
        """Replace the last evaluation."""
        self.point = x.copy()
        self.found = lock(found)
        return found

    def __reduce__(self) -> tuple[type[LastEvaluation[Value]], tuple[()]]:
        return type(self), ()


# --- derivatives of the nearest kernel


class LengthDerivatives(NamedTuple):
    """Second derivatives of psi with w = rho / (2t) that involve t."""

    at: FloatArray
    gt: float
    tt: float


@dataclass(frozen=True, eq=False)
class KernelDerivatives:
    """The derivatives of psi at the kernel that attains it."""

    near: NearestKernel

    @cached_property
    def image(self) -> FloatArray:
        """Ka."""
        return self.near.V @ (self.near.mu * self.near.u)

    @cached_property
    def _positive_part(self) -> FloatArray:
        """u_P: the entries of u that belong to mu > 0, zero elsewhere."""
        return np.where(self.near.mu > 0, self.near.u, 0.0)

    @cached_property
    def _across(self) -> FloatArray:
        """Omega between P and the other eigenvalues; within P it is 1, among the others 0."""
        first = self.near.first
        lam = self.near.lam
        mu = self.near.mu[first:, None]
        # Rounding must not make it exceed 1.
        return mu / np.maximum(lam[first:, None] - lam[:first], mu)

    def _times_omega(self, v: FloatArray) -> FloatArray:
        """Omega v."""
        inside = v[self.near.first :]
        outside = v[: self.near.first]
        return np.concatenate([inside @ self._across, inside.sum() + self._across @ outside])

    @cached_property
    def _omega_squares(self) -> FloatArray:
        """Omega u^2."""
        return self._times_omega(self.near.squares)

    @cached_property
    def _inverse_count(self) -> float:
        """1/k, or 0 without a trace."""
        if not self.near.has_trace:
            return 0.0
        return 1 / max(self.near.u.size - self.near.first, 1)

    @cached_property
    def response(self) -> FloatArray:
        """r: how the kernel's image of a follows a, in the basis V."""
        p = self._positive_part
        return self._omega_squares * self.near.u - self._inverse_count * float(p @ p) * p

    @property
    def response_along_a(self) -> float:
        """u'r."""
        return self.response_along(self.near.squares)

    def response_along(self, squares: FloatArray) -> float:
        """Return u'r for the squares of another u, were K the best kernel for it as well."""
        inside = float((self.near.mu > 0) @ squares)
        return float(squares @ self._times_omega(squares)) - self._inverse_count * inside**2

    def curvature(self) -> FloatArray:
        """Return -psi_aa."""
        near = self.near
        first = near.first
        weight = near.c / near.g
        p = near.V @ self._positive_part
        half = near.V * np.sqrt((near.mu + near.c * self._omega_squares) / near.g)
        H = half @ half.T
        outside = near.V[:, :first] * near.u[:first]
        inside = near.V[:, first:] * (weight * near.u[first:])
        mixed = inside @ (self._across @ outside.T)
        mixed += np.outer((0.5 - self._inverse_count) * weight * p, p)
        H += mixed
        H += mixed.T
        return H

    def share_derivatives(self) -> tuple[FloatArray, float]:
        """Return -psi_ag and -psi_gg."""
        near = self.near
        cross = -(self.image + near.c * (near.V @ self.response)) / near.g**2
        return cross, (near.squared_norm + near.c * self.response_along_a / 2) / near.g**3

    def length_derivatives(self, t: float) -> LengthDerivatives:
        """Return psi_at, psi_gt and psi_tt for w = rho / (2t)."""
        near = self.near
        at = -near.c / (t * near.g) * (near.V @ self.response)
        gt = near.c * self.response_along_a / (2 * near.g**2 * t)
        rest = near.distance - near.c**2 * self.response_along_a
        return LengthDerivatives(at, gt, 2 * near.w / t**2 * rest)


def nearest_by_norm(
    projection: KernelProjection,
    a: FloatArray,
    g: float,
    rho: float,
    t: float,
    min_t: float,
) -> tuple[KernelDerivatives, float]:
    """Return the best kernel for the loss rho ||K - S||, and t = ||K - S||.

    Parameters
    ----------
    projection : KernelProjection
        The similarity S and the trace.
    a : (n,) array
        Multipliers.
    g : float
        Share.
    rho : float
        Weight of the loss.
    t : float
        A first guess.
    min_t : float
        Smallest t; the norm has a kink at t = 0.
    """
    low = min_t
    high = np.inf
    t = max(t, min_t)
    for _ in range(MAX_NORM_ITERATIONS):
        here = KernelDerivatives(projection.nearest(a, g, rho / (2 * t)))
        length = float(np.sqrt(here.near.distance))
        excess = length - t
        # ||K - S|| - t falls with t: its sign says on which side the root is.
        if excess > 0:
            low = t
        else:
            high = t
        enclosed = np.isfinite(high) and high - low <= NORM_TOLERANCE * high
        if abs(excess) <= NORM_TOLERANCE * t or enclosed:
            break
        t = _next_length(here, t, low, high, min_t)
    return here, t


def _next_length(here: KernelDerivatives, t: float, low: float, high: float, min_t: float) -> float:
    """The next t for the root of ||K - S|| - t, between the bounds low and high of the root."""
    length = float(np.sqrt(here.near.distance))
    excess = length - t
    derivative = -1.0
    if length > 0:
        derivative = here.near.c**2 * here.response_along_a / (t * length) - 1
    newton = t - excess / derivative if derivative < 0 else t + 2 * excess
    if low < newton < high:
        return newton
    # The fixed-point step t = ||K - S|| is inside more often than not; else bisection.
    if low < length < high:
        return max(length, min_t)
    return 2 * low if np.isinf(high) else (low + high) / 2


# --- the objective


@dataclass(frozen=True, eq=False)
class MultiplierObjective:
    """-y'a - sum psi_i as a function of x = (a / length, g).

    Parameters
    ----------
    projections : tuple of KernelProjection
        The similarities and the trace.
    y : (n,) array
        Labels.
    weight : float
        Weight of each loss.
    by_norm : bool
        Whether the loss is the norm, not its square.
    length : float
        Unit of the multipliers and of values.
    has_shares : bool
        Whether each kernel has its own g; else there is one kernel and g = 1.
    C : float or (n,) array
        The box of a, which only the start needs.
    """

    projections: tuple[KernelProjection, ...]
    y: FloatArray
    weight: float
    by_norm: bool
    length: float
    has_shares: bool
    C: Penalty = np.inf
    _last: LastEvaluation[list[tuple[KernelDerivatives, float]]] = field(
        default_factory=LastEvaluation, init=False, repr=False
    )

    @property
    def size(self) -> int:
        return self.y.size + (len(self.projections) if self.has_shares else 0)

    def split(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return a and g."""
        n = self.y.size
        g = x[n:] if self.has_shares else np.ones(1)
        return self.length * x[:n], g

    def nearest(self, x: FloatArray) -> list[tuple[KernelDerivatives, float]]:
        """Return the best kernels for x, each with its t, which is 0 for the squared loss."""
        if not self.by_norm:
            return self._by_square(x)
        # t has to be searched for: the last x is kept, and the search starts from it.
        found = self._last.at(x)
        if found is None:
            found = self._last.keep(x, self._by_norm(x))
        return found

    def _by_square(self, x: FloatArray) -> list[tuple[KernelDerivatives, float]]:
        a, g = self.split(x)
        return [
            (KernelDerivatives(projection.nearest(a, float(gi), self.weight)), 0.0)
            for projection, gi in zip(self.projections, g, strict=True)
        ]

    def _by_norm(self, x: FloatArray) -> list[tuple[KernelDerivatives, float]]:
        a, g = self.split(x)
        sizes = [float(np.linalg.norm(one.S)) or 1.0 for one in self.projections]
        guesses = self._guesses(x) or sizes
        return [
            nearest_by_norm(one, a, float(gi), self.weight, guess, MIN_RELATIVE_DISTANCE * size)
            for one, gi, guess, size in zip(self.projections, g, guesses, sizes, strict=True)
        ]

    def _guesses(self, x: FloatArray) -> list[float]:
        """The t at x by their tangents at the last point: -psi_at / psi_tt and -psi_gt / psi_tt."""
        if self._last.point is None or self._last.found is None:
            return []
        a, g = self.split(x)
        last_a, last_g = self.split(self._last.point)
        guesses = []
        for (here, t), change in zip(self._last.found, g - last_g, strict=True):
            second = here.length_derivatives(t)
            fall = float(second.at @ (a - last_a)) + second.gt * float(change)
            # A tangent that promises less than a quarter of t is not trusted.
            guesses.append(max(t - fall / second.tt, t / 4) if second.tt > 0 else t)
        return guesses

    def near(self, x: FloatArray) -> LocalModel:
        """Return the function near x."""
        a, g = self.split(x)
        # psi goes to -inf as a share goes to 0.
        if self.has_shares and not (g > 0).all():
            zeros = np.zeros((self.size, self.size))
            return LocalModel(np.inf, np.zeros(self.size), lambda: zeros)
        return self.local_model(a, self.nearest(x))

    def local_model(
        self, a: FloatArray, found: list[tuple[KernelDerivatives, float]]
    ) -> LocalModel:
        """Return the function near a and the shares of the best kernels there."""
        n = self.y.size
        value = -float(self.y @ a)
        gradient = np.concatenate([-self.y, np.zeros(self.size - n)])
        for i, (here, t) in enumerate(found):
            near = here.near
            value -= near.value + (self.weight * t / 2 if self.by_norm else 0.0)
            gradient[:n] += here.image / near.g
            if self.has_shares:
                gradient[n + i] -= near.squared_norm / (2 * near.g**2) / self.length
        return LocalModel(value / self.length, gradient, lambda: self._curvature(found))

    def _curvature(self, found: list[tuple[KernelDerivatives, float]]) -> FloatArray:
        # One kernel with the squared loss: the matrix is scaled where it was made.
        if not (self.has_shares or self.by_norm):
            H = found[0][0].curvature()
            H *= self.length
            return H
        n = self.y.size
        H = np.zeros((self.size, self.size))
        for i, (here, t) in enumerate(found):
            H[:n, :n] += here.curvature()
            if self.has_shares:
                cross, corner = here.share_derivatives()
                H[:n, n + i] = H[n + i, :n] = cross
                H[n + i, n + i] = corner
            if self.by_norm:
                self._add_length_term(H, i, here.length_derivatives(t))
        H[:n, :n] *= self.length
        H[n:, n:] /= self.length
        return H

    def _add_length_term(self, H: FloatArray, i: int, second: LengthDerivatives) -> None:
        """Add the rank-one term that eliminating t leaves."""
        # psi_tt = 0 up to rounding: t does not move with a.
        if not second.tt > 0:
            return
        n = self.y.size
        v = np.zeros(self.size)
        v[:n] = second.at
        if self.has_shares:
            v[n + i] = second.gt
        H += np.outer(v / second.tt, v)

    def objective(self) -> SmoothFunction:
        """Return the function with its start."""
        return SmoothFunction(self.size, self.near, self.start_model)

    # --- the start

    def start_model(self) -> StartModel:
        """Return the quadratic program of the kernels nearest to the similarities, with a ridge.

        The ridge stands for how kernels will follow a: that adds c u'r / (4g) to the function, a
        fourth power of a, which near a is as good as a ridge of c u'r / (g u'u). At first a is a
        multiple of the labels, by a cubic equation, then the solution with that ridge, in the box
        only.
        """
        m = len(self.projections)
        n = self.y.size
        d = self.y - self.y.mean()
        kernels = [self._unmoved(projection, 1 / m) for projection in self.projections]
        H = m * np.asarray(sum(here.near.factor @ here.near.factor.T for here in kernels))
        response = self._response(kernels, d)
        length = float(d @ d)
        s = cubic_root(response, float(d @ (H @ d)), length)
        # One kernel is decomposed already.
        if m == 1:
            values, V = kernels[0].near.mu, kernels[0].near.V
        else:
            values, V = np.linalg.eigh(H)
        a, ridge = self._start_multipliers(kernels, values, V, s * s * response / length)

        H.flat[:: n + 1] += ridge
        H *= self.length
        guess = a / self.length
        if not self.has_shares:
            return StartModel(H, -self.y, guess)
        whole = np.eye(self.size)
        whole[:n, :n] = H
        shares = self._start_shares(kernels, a)
        linear = np.concatenate([-self.y, -shares])
        return StartModel(whole, linear, np.concatenate([guess, shares]))

    def _start_shares(self, kernels: list[KernelDerivatives], a: FloatArray) -> FloatArray:
        """The best shares r_i / sum r of kernels that follow a to first order."""
        squared_norms = []
        for here in kernels:
            squares = np.square(here.near.V.T @ a)
            follows = here.near.c * here.response_along(squares)
            squared_norms.append(float(here.near.mu @ squares) + follows)
        radii = np.sqrt(squared_norms)
        return np.asarray(radii / (radii.sum() or 1.0))

    def _start_multipliers(
        self, kernels: list[KernelDerivatives], values: FloatArray, V: FloatArray, ridge: float
    ) -> tuple[FloatArray, float]:
        """The multipliers of the kernel V diag(values) V' and its ridge, each from the other."""
        min_ridge = MIN_RELATIVE_RIDGE * float(values[-1])
        corner = self.C * self.y
        lower = np.minimum(corner, 0.0)
        upper = np.maximum(corner, 0.0)
        values = np.maximum(values, 0.0)
        right = self.y @ V
        sums = V.sum(axis=0)
        for _ in range(START_ITERATIONS):
            # The minimiser on the plane 1'a = 0, with its multiplier `shift`, clipped to the box.
            weights = 1 / (values + max(ridge, min_ridge))
            shift = float(sums @ (weights * right)) / float(sums @ (weights * sums))
            a = np.minimum(np.maximum(V @ (weights * (right - shift * sums)), lower), upper)
            ridge = float(np.sqrt(ridge * self._response(kernels, a) / (float(a @ a) or 1.0)))
        return a, ridge

    def _response(self, kernels: list[KernelDerivatives], a: FloatArray) -> float:
        """sum c u'r / g, moved towards its upper bound sum c |a|^4 / g.

        The sum is that of kernels which hardly follow a, too small for those that will.
        """
        response = sum(
            here.near.c * here.response_along(np.square(here.near.V.T @ a)) / here.near.g
            for here in kernels
        )
        bound = sum(here.near.c / here.near.g for here in kernels) * float(a @ a) ** 2
        share = 1.0 if self.by_norm else RESPONSE_EXPONENT
        moved = float(response ** (1 - share) * bound**share)
        return max(moved, MIN_RELATIVE_RIDGE * bound)

    def _unmoved(self, projection: KernelProjection, g: float) -> KernelDerivatives:
        """The kernel nearest to the similarity alone."""
        near = projection.nearest(np.zeros_like(self.y), g, self.weight)
        # The weight rho / (2t) of the norm at t = ||K - S||.
        if self.by_norm:
            length = float(np.sqrt(near.distance))
            near = replace(near, w=self.weight / (2 * length or 1.0))
        return KernelDerivatives(near)
