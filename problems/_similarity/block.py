"""The kernel nearest to a similarity for given multipliers, and what it makes of the multipliers: a smooth function.

    psi(a, g, w) = min over K of  w ||K - S||^2 - a'Ka / (2g)          K in the cone, or of trace tau in it

is attained at K = V diag(mu) V', V and lam the eigenvectors and eigenvalues of S + c aa' with c = 1
/ (4 w g), and mu the projection of lam: on the simplex of sum tau, or max(lam, 0) without a trace.
Clipping first and rescaling then would be wrong. With u = V'a, P the k eigenvalues with mu > 0, and
Omega the divided differences of the projection,

    r = (Omega u^2) o u - (sum of u_P^2 / k) u_P             J[aa'] a in the basis V, J the derivative of the projection
    T = diag(Omega u^2) + diag(u) Omega diag(u) - 2 u_P u_P' / k                       (no u_P terms without a trace)

    psi_a = -Ka / g                psi_g = a'Ka / (2 g^2)              psi_w = ||K - S||^2 =: d
    -psi_aa = V (diag(mu) + c T) V' / g      -psi_ag = -(Ka + c V r) / g^2      -psi_gg = (a'Ka + c u'r / 2) / g^3

||X|| = min over t of ||X||^2 / (2t) + t/2 turns the norm itself into a square with w = rho / (2t): psi(a, g, rho/(2t))
+ rho t / 2 is convex in t and least where t^2 = d. Eliminating t adds a rank-one term to the curvature, with

    psi_at = -c V r / (t g)        psi_gt = c u'r / (2 g^2 t)          psi_tt = 2w (d - c^2 u'r) / t^2
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.sets.projections import simplex_projection

__all__ = ["Block", "Nearest"]

ROOTS = 40
EXACT = 1e-9  # of t; the value's error is its square


@dataclass(frozen=True, eq=False)
class Nearest:
    """The best K for one (a, g, w), by its eigenvalues mu and eigenvectors V; lam are those before the projection."""

    V: FloatArray
    lam: FloatArray
    mu: FloatArray
    u: FloatArray
    g: float
    w: float
    traced: bool

    @cached_property
    def c(self) -> float:
        return 1 / (4 * self.w * self.g)

    @cached_property
    def first(self) -> int:
        """Where P begins: the eigenvalues with mu > 0 are the last k."""
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
    def curve(self) -> float:
        """a'Ka."""
        return float(self.mu @ self.squares)

    @cached_property
    def distance(self) -> float:
        """||K - S||^2."""
        away, pull = self.mu - self.lam, self.c * self.squares
        # S = V diag(lam) V' - c aa', so that nothing of the order n^2 has to be formed.
        return max(float(away @ (away + 2 * pull)) + float(pull.sum()) ** 2, 0.0)

    @property
    def value(self) -> float:
        return self.w * self.distance - self.curve / (2 * self.g)

    @cached_property
    def image(self) -> FloatArray:
        """Ka."""
        return self.V @ (self.mu * self.u)

    @cached_property
    def kept(self) -> FloatArray:
        """u_P: the entries of u that belong to mu > 0, zero elsewhere."""
        return np.where(self.mu > 0, self.u, 0.0)

    @cached_property
    def _across(self) -> FloatArray:
        """Omega between P and the other eigenvalues; within P it is 1, among the others 0."""
        mu = self.mu[self.first :, None]
        # Rounding must not make it exceed 1.
        return mu / np.maximum(self.lam[self.first :, None] - self.lam[: self.first], mu)

    def _spread(self, squares: FloatArray) -> FloatArray:
        """Return Omega times a vector."""
        kept, rest = squares[self.first :], squares[: self.first]
        return np.concatenate([kept @ self._across, kept.sum() + self._across @ rest])

    @cached_property
    def _weights(self) -> FloatArray:
        """Omega u^2."""
        return self._spread(self.squares)

    @cached_property
    def _share(self) -> float:
        """1/k, or 0 without a trace."""
        return 1 / max(self.u.size - self.first, 1) if self.traced else 0.0

    @cached_property
    def bend(self) -> FloatArray:
        """r."""
        p = self.kept
        return self._weights * self.u - self._share * float(p @ p) * p

    @property
    def bend_curve(self) -> float:
        """u'r."""
        return self.bend_along(self.squares)

    def bend_along(self, squares: FloatArray) -> float:
        """Return u'r for the squares of another u, were K the best one for it as well."""
        kept = float((self.mu > 0) @ squares)
        return float(squares @ self._spread(squares)) - self._share * kept**2

    def curvature(self) -> FloatArray:
        """Return -psi_aa."""
        gradient, w = self.c / self.g, self.V @ self.kept
        half = self.V * np.sqrt((self.mu + self.c * self._weights) / self.g)
        H, first = half @ half.T, self.first
        rest, kept = (
            self.V[:, :first] * self.u[:first],
            self.V[:, first:] * (gradient * self.u[first:]),
        )
        mixed = kept @ (self._across @ rest.T)
        mixed += np.outer((0.5 - self._share) * gradient * w, w)
        H += mixed
        H += mixed.T
        return H

    def bordered(self) -> tuple[FloatArray, float]:
        """Return -psi_ag and -psi_gg."""
        cross = -(self.image + self.c * (self.V @ self.bend)) / self.g**2
        return cross, (self.curve + self.c * self.bend_curve / 2) / self.g**3

    def by_length(self, t: float) -> tuple[FloatArray, float, float]:
        """Return psi_at, psi_gt and psi_tt for w = rho / (2t)."""
        cross = -self.c / (t * self.g) * (self.V @ self.bend)
        rest = self.distance - self.c**2 * self.bend_curve
        return cross, self.c * self.bend_curve / (2 * self.g**2 * t), 2 * self.w / t**2 * rest


@dataclass(frozen=True, eq=False)
class Block:
    """One similarity S with the trace that its kernel has to have."""

    S: FloatArray
    trace: float | None
    _last: list[tuple[FloatArray, Nearest]] = field(default_factory=list, init=False, repr=False)

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_last": []}  # as large as everything else together

    def projected(self, lam: FloatArray) -> FloatArray:
        """Return the nearest eigenvalues that a kernel may have."""
        return np.maximum(lam, 0.0) if self.trace is None else simplex_projection(lam, self.trace)

    def nearest(self, a: FloatArray, g: float, w: float) -> Nearest:
        """Return the best K; the last one is kept, so that a proof at the same point costs no second decomposition."""
        for point, found in self._last:
            if (found.g, found.w) == (g, w) and np.array_equal(point, a):
                return found
        lam, V = np.linalg.eigh(self.S + np.outer(a / (4 * w * g), a))
        found = Nearest(V, lam, self.projected(lam), V.T @ a, g, w, self.trace is not None)
        self._last[:] = [(a.copy(), found)]
        return found

    def by_norm(
        self, a: FloatArray, g: float, rho: float, t: float, least: float
    ) -> tuple[Nearest, float]:
        """Return the best K for the loss rho ||K - S|| and its t = ||K - S||, at least `least`; t is a first guess."""
        low, high = least, np.inf
        t = max(t, least)
        for _ in range(ROOTS):
            near = self.nearest(a, g, rho / (2 * t))
            length = float(np.sqrt(near.distance))
            short = length - t
            low, high = (t, high) if short > 0 else (low, t)
            if abs(short) <= EXACT * t or (np.isfinite(high) and high - low <= EXACT * high):
                break
            # Newton's step for the root of length(t) - t, kept between what is known to be too
            # short and too long.
            steep = near.c**2 * near.bend_curve / (t * length) - 1 if length > 0 else -1.0
            step = t - short / steep if steep < 0 else t + 2 * short
            t = (
                step
                if low < step < high
                else max(length, least)
                if low < length < high
                else _between(low, high)
            )
        return near, t


def _between(low: float, high: float) -> float:
    return 2 * low if np.isinf(high) else (low + high) / 2
