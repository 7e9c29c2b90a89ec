"""The function of `klopt.problems._dank` for a kernel given by features, K = Phi Phi'; n x n is never formed.

    (K o K)u = (phi_i' S phi_i)_i,   S = Phi' diag(u) Phi                          two products of n r^2
    11' + Gamma = B B',   B = [1, D_a Phi / (2 eta^1/2)] = Z T   (Z'Z = I)         so its eigenvalues are those of T T'

In the coordinates Z everything has the order r + 1, so that with tau > 0 the rank of F is at most that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from klopt.arrays import FloatArray, require_memory
from klopt.objectives import Bend
from klopt.problems._dank import Adapted, Reduced

__all__ = ["AdaptingFeatures", "Halves", "Quartic", "Shifted"]

ROWS = 512
"""Points that are worked on at a time."""


@dataclass(frozen=True, eq=False)
class AdaptingFeatures:
    """g for K = scale * Phi Phi', eta > 0 and tau >= 0."""

    Phi: FloatArray
    scale: float
    eta: float
    tau: float

    @cached_property
    def diagonal(self) -> FloatArray:
        """The diagonal of K."""
        return np.asarray(self.scale * np.einsum("ik,ik->i", self.Phi, self.Phi))

    def times(self, x: FloatArray) -> FloatArray:
        """Return Kx; x is a vector or has vectors as columns."""
        return np.asarray(self.scale * (self.Phi @ (self.Phi.T @ x)))

    def moments(self, u: FloatArray) -> FloatArray:
        """Return Phi' diag(u) Phi, as M'M for u > 0 less N'N for u < 0: BLAS then computes one half of each."""
        S = np.zeros((self.Phi.shape[1],) * 2)
        for sign in (1.0, -1.0):
            chosen = np.flatnonzero(sign * u > 0)
            roots = np.sqrt(np.abs(u[chosen]))[:, None]
            for start in range(0, chosen.size, ROWS):
                rows = chosen[start : start + ROWS]
                part = self.Phi[rows] * roots[start : start + ROWS]
                S += sign * (part.T @ part)
        return S

    def times_squares(self, u: FloatArray) -> FloatArray:
        """Return (K o K)u."""
        S, found = self.scale**2 * self.moments(u), np.empty(len(self.Phi))
        for start in range(0, found.size, ROWS):
            part = self.Phi[start : start + ROWS]
            found[start : start + ROWS] = np.einsum("ik,ik->i", part @ S, part)
        return found

    def at(self, a: FloatArray) -> Adapted:
        """Return the best F for a."""
        if self.tau:
            return self._cut(a)
        u = a * a
        w = self.times_squares(u)
        product = self.times(a) + a * w / (4 * self.eta)
        diagonal = 1 + u * self.diagonal / (4 * self.eta)
        return Adapted(product, float(a @ product), float(u @ w) / (16 * self.eta), diagonal)

    def _cut(self, a: FloatArray) -> Adapted:
        b = a * np.sqrt(self.scale / (4 * self.eta))
        Z, T = np.linalg.qr(np.column_stack([np.ones(a.size), self.Phi * b[:, None]]))
        reduced = Reduced(np.arange(len(T)), len(T), T[:, 1:] @ T[:, 1:].T, T[:, 0].copy())
        w, V = reduced.above(self.tau / 2)
        f, Q = w - self.tau / 2, Z @ V
        product = (Q * self.times(a[:, None] * Q)) @ f
        off = (V * f) @ V.T - np.multiply.outer(reduced.j, reduced.j)
        penalty = self.eta * (float(np.vdot(off, off)) + self.tau * float(f.sum()))
        return Adapted(product, float(a @ product), penalty, (Q * Q) @ f, Q, f, reduced, V)

    def weights(self, a: FloatArray, here: Adapted | None = None) -> FloatArray:
        """Return F, n x n."""
        require_memory(16.0 * a.size**2, f"F of {a.size} points")
        here = self.at(a) if here is None else here
        if here.Q is not None and here.f is not None:
            half = here.Q * np.sqrt(here.f)
            return half @ half.T
        half = self.Phi * (a * np.sqrt(self.scale / (4 * self.eta)))[:, None]
        F: FloatArray = half @ half.T
        F += 1.0
        return F

    def kernel(self, a: FloatArray, here: Adapted | None = None) -> FloatArray:
        """Return F o K, n x n."""
        F = self.weights(a, here)
        F *= self.scale * (self.Phi @ self.Phi.T)
        return F

    def lipschitz(self, box: float) -> float:
        """Return a bound of how fast the gradient changes for |a_i| <= box: that of `Adapting`, lambda_max exact."""
        values = np.linalg.eigvalsh(self.Phi.T @ self.Phi)
        rows = self.times_squares(np.ones(len(self.Phi)))
        return self.scale * float(values[-1]) + box * box * 0.75 / self.eta * float(rows.max())

    def inverse(self, diagonal: FloatArray, v: FloatArray | None = None) -> Callable[[FloatArray], FloatArray]:
        """Return the inverse of K + diag(diagonal) + vv', by Woodbury's formula."""
        from scipy.linalg import cho_factor, cho_solve

        r, root = self.Phi.shape[1], np.sqrt(self.scale)
        v = np.zeros(diagonal.size) if v is None else v
        inner = np.eye(r + 1)
        inner[:r, :r] += self.scale * self.moments(1 / diagonal)
        inner[r, :r] = inner[:r, r] = root * ((v / diagonal) @ self.Phi)
        inner[r, r] += float(v @ (v / diagonal))
        factor = cho_factor(inner, check_finite=False)

        def solve(b: FloatArray) -> FloatArray:
            x = b / diagonal
            y = cho_solve(factor, np.append(root * (x @ self.Phi), v @ x), check_finite=False)
            return np.asarray(x - (root * (self.Phi @ y[:r]) + v * y[r]) / diagonal)

        return solve


class Quartic:
    """The function without tau near one a: H = K + diag(w) / (4 eta) + D_a (K o K) D_a / (2 eta), w = (K o K)(a o a).

    What is inverted has vv', v = a o w / (a'(a o w))^1/2, in place of D_a (K o K) D_a: no larger, and equal on a. K o K
    has no negative entry, so that this is most of it. The inverse takes a matrix of order r + 1.
    """

    def __init__(self, function: AdaptingFeatures, a: FloatArray) -> None:
        self.function, self.a = function, a
        self.w = function.times_squares(a * a)
        linear = function.times(a)
        self.gradient = linear + a * self.w / (4 * function.eta)
        self.value = float(a @ linear) / 2 + float((a * a) @ self.w) / (16 * function.eta)

    def matvec(self, x: FloatArray) -> FloatArray:
        """Return Hx."""
        f = self.function
        mixed = self.a * f.times_squares(self.a * x) / (2 * f.eta)
        return f.times(x) + self.w * x / (4 * f.eta) + mixed

    def solver(self, d: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Return the inverse of K + diag(w) / (4 eta) + diag(d) + vv' / (2 eta)."""
        weight = 1 / (4 * self.function.eta)
        size = float((self.a * self.a) @ self.w)
        v = self.a * self.w * np.sqrt(2 * weight / size) if size > 0 else None
        return self.function.inverse(weight * self.w + d, v)


@dataclass(frozen=True, eq=False)
class Shifted:
    """A function near a point less gain'a."""

    inner: Bend
    gain: FloatArray
    a: FloatArray

    @property
    def value(self) -> float:
        """The value."""
        return self.inner.value - float(self.gain @ self.a)

    @property
    def gradient(self) -> FloatArray:
        """The slope."""
        return self.inner.gradient - self.gain

    def matvec(self, x: FloatArray) -> FloatArray:
        """Return Hx."""
        return self.inner.matvec(x)

    def solver(self, d: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Return nearly (H + diag(d))^-1."""
        return self.inner.solver(d)


@dataclass(frozen=True, eq=False)
class Halves:
    """A function of a = u - v near one (u, v), less gain'(u, v).

    With E = 1 / d_u + 1 / d_v and b = r_u / d_u - r_v / d_v, (S'HS + diag(d))^-1 r is D^-1 (r - S'Hp) where
    p = (H + E^-1)^-1 E^-1 b and Hp = E^-1 (b - p).
    """

    inner: Bend
    gain: FloatArray
    x: FloatArray

    @property
    def value(self) -> float:
        """The value."""
        return self.inner.value - float(self.gain @ self.x)

    @property
    def gradient(self) -> FloatArray:
        """The slope."""
        return _both(self.inner.gradient) - self.gain

    def matvec(self, x: FloatArray) -> FloatArray:
        """Return Hx."""
        return _both(self.inner.matvec(_apart(x)))

    def solver(self, d: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Return nearly (H + diag(d))^-1."""
        n = d.size // 2
        E = 1 / d[:n] + 1 / d[n:]
        points = self.inner.solver(1 / E)

        def solve(r: FloatArray) -> FloatArray:
            b = _apart(r / d)
            return (r - _both((b - points(b / E)) / E)) / d

        return solve


def _both(g: FloatArray) -> FloatArray:
    return np.concatenate([g, -g])


def _apart(x: FloatArray) -> FloatArray:
    return x[: x.size // 2] - x[x.size // 2 :]
