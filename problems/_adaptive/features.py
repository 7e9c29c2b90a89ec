"""The function of `klopt.problems._adaptive.function` for a kernel given by features, K = Phi Phi'; n x n is never formed.

    (K o K)u: `klopt.problems._adaptive.squares`                                       two products of n r^2
    11' + Gamma = B B',   B = [1, D_a Phi / (2 eta^1/2)] = Z T   (Z'Z = I)         so its eigenvalues are those of T T'

In the coordinates Z everything has the order r + 1, so that with tau > 0 the rank of F is at most
that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from klopt.arrays import FloatArray, require_memory
from klopt.model.smooth_functions import HessianOperator
from klopt.problems._adaptive.function import Adapted, Reduced
from klopt.problems._adaptive.squares import RoughSquares, forms, moments

__all__ = ["AdaptingFeatures", "Halves", "Quartic", "Shifted"]


@dataclass(frozen=True, eq=False)
class AdaptingFeatures:
    """g for K = scale * Phi Phi', eta > 0 and tau >= 0."""

    Phi: FloatArray
    scale: float
    eta: float
    tau: float
    _last: list[tuple[FloatArray, FloatArray, FloatArray]] = field(
        default_factory=list, init=False, repr=False
    )
    """The last two a without tau and their products: a proof asks where a method stopped or what it tried last."""

    def __getstate__(self) -> dict[str, object]:
        return {"Phi": self.Phi, "scale": self.scale, "eta": self.eta, "tau": self.tau, "_last": []}

    @cached_property
    def diagonal(self) -> FloatArray:
        """The diagonal of K."""
        return np.asarray(self.scale * np.einsum("ik,ik->i", self.Phi, self.Phi))

    def times(self, x: FloatArray) -> FloatArray:
        """Return Kx; x is a vector or has vectors as columns."""
        return np.asarray(self.scale * (self.Phi @ (self.Phi.T @ x)))

    def moments(self, u: FloatArray) -> FloatArray:
        """Return Phi' diag(u) Phi."""
        return moments(self.Phi, u)

    def times_squares(self, u: FloatArray) -> FloatArray:
        """Return (K o K)u."""
        return self.scale**2 * forms(self.Phi, self.moments(u))

    def times_squares_roughly(self, u: FloatArray) -> FloatArray:
        """Return six digits of (K o K)u."""
        return self.scale**2 * self._rough.times(u)

    @cached_property
    def _rough(self) -> RoughSquares:
        return RoughSquares.of(self.Phi)

    def products(self, a: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return Ka and (K o K)(a o a)."""
        for known, linear, squares in self._last:
            if np.array_equal(known, a):
                return linear, squares
        linear, squares = self.times(a), self.times_squares(a * a)
        self._last[:] = [(a.copy(), linear, squares), *self._last[:1]]
        return linear, squares

    def at(self, a: FloatArray) -> Adapted:
        """Return the best F for a."""
        if self.tau:
            return self._cut(a)
        (linear, w), u = self.products(a), a * a
        product = linear + a * w / (4 * self.eta)
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

    def inverse(
        self, diagonal: FloatArray, v: FloatArray | None = None
    ) -> Callable[[FloatArray], FloatArray]:
        """Return the inverse of K + diag(diagonal) + vv', by Woodbury's formula."""
        from scipy.linalg.lapack import dpotrf, dpotrs

        r, root = self.Phi.shape[1], np.sqrt(self.scale)
        v = np.zeros(diagonal.size) if v is None else v
        inner = np.eye(r + 1)
        inner[:r, :r] += self.scale * self.moments(1 / diagonal)
        inner[r, :r] = inner[:r, r] = root * ((v / diagonal) @ self.Phi)
        inner[r, r] += float(v @ (v / diagonal))
        factor, failed = dpotrf(inner.T, overwrite_a=1, clean=0)
        if failed:
            raise np.linalg.LinAlgError("the curvature of the function is not positive definite")

        def solve(b: FloatArray) -> FloatArray:
            x = b / diagonal
            y = dpotrs(factor, np.append(root * (x @ self.Phi), v @ x))[0]
            return np.asarray(x - (root * (self.Phi @ y[:r]) + v * y[r]) / diagonal)

        return solve


class Quartic:
    """The function without tau near one a: H = K + diag(w) / (4 eta) + D_a (K o K) D_a / (2 eta), w = (K o K)(a o a).

    What is inverted has vv', v = a o w / (a'(a o w))^1/2, in place of D_a (K o K) D_a: no larger,
    and equal on a. K o K has no negative entry, so that this is most of it. The inverse takes a
    matrix of order r + 1.
    """

    def __init__(self, function: AdaptingFeatures, a: FloatArray) -> None:
        self.function, self.a = function, a
        linear, self.w = function.products(a)
        self.gradient = linear + a * self.w / (4 * function.eta)
        self.value = float(a @ linear) / 2 + float((a * a) @ self.w) / (16 * function.eta)

    def matvec(self, x: FloatArray) -> FloatArray:
        """Return Hx, of its last term six digits."""
        f = self.function
        mixed = self.a * f.times_squares_roughly(self.a * x) / (2 * f.eta)
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

    inner: HessianOperator
    gain: FloatArray
    a: FloatArray

    @property
    def value(self) -> float:
        """The value."""
        return self.inner.value - float(self.gain @ self.a)

    @property
    def gradient(self) -> FloatArray:
        """The gradient."""
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

    With E = 1 / d_u + 1 / d_v and b = r_u / d_u - r_v / d_v, (S'HS + diag(d))^-1 r is D^-1 (r -
    S'Hp) where p = (H + E^-1)^-1 E^-1 b and Hp = E^-1 (b - p).
    """

    inner: HessianOperator
    gain: FloatArray
    x: FloatArray

    @property
    def value(self) -> float:
        """The value."""
        return self.inner.value - float(self.gain @ self.x)

    @property
    def gradient(self) -> FloatArray:
        """The gradient."""
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
            p = points(b / E)
            x = (r - _both((b - p) / E)) / d
            # Where d is small this difference has no digits left; p has.
            return x + _both((p - _apart(x)) / E) / d

        return solve


def _both(g: FloatArray) -> FloatArray:
    return np.concatenate([g, -g])


def _apart(x: FloatArray) -> FloatArray:
    return x[: x.size // 2] - x[x.size // 2 :]
