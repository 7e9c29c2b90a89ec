"""The function g for a kernel given by features, K = Phi Phi', with its Hessian as an operator.

Without tau, with w = (K o K)(a o a), the Hessian is

    H = K + diag(w) / (4 eta) + D_a (K o K) D_a / (2 eta).

With tau let F = sum_k f_k q_k q_k' (few k), r_k = K D_a q_k, s_k = f_k / (f_k + tau/2), c = 1 - s.
With the matrices P_x = sum x_k q_k q_k', R_x = sum x_k r_k r_k', X_x = sum x_k q_k r_k' the
(generalised) Hessian is

    H = F o K + {P_1 R_c + P_s (K D_a^2 K - R_1) + X_c X_c' - X_s X_s'
                 + X_s K D_a + D_a K X_s' + diag(R_s)} / (4 eta)

with entrywise products in the braces but for K D_a^2 K. An entrywise product with a sum of rank-one
matrices is applied term by term, so that Hx takes products with Phi for each k and matrices Q'
diag(x) R: n r k + n k^2 in all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, require_memory
from klopt.model.functions import HessianOperator
from klopt.problems._adaptive.proof import moments, quadratic_forms
from klopt.problems._adaptive.weights import BestWeights, WeightedFeatures

__all__ = [
    "AdaptiveFeatureFunction",
    "CutOffOperator",
    "LinearlyShifted",
    "QuarticOperator",
    "SinglePrecisionSquares",
    "SplitVariables",
]

Solve = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class SinglePrecisionSquares:
    """(K o K)u in single precision, for iterations that correct themselves, at half the cost.

    Phi and u are divided by their size, so that no scale is lost.
    """

    Phi: npt.NDArray[np.float32]
    size: float

    @classmethod
    def of(cls, Phi: FloatArray) -> SinglePrecisionSquares:
        """Return the products of K = Phi Phi'."""
        size = float(np.abs(Phi).max(initial=0.0)) or 1.0
        return cls((Phi / size).astype(np.float32), size)

    def times(self, u: FloatArray) -> FloatArray:
        """Return (K o K)u, six digits of it."""
        size = float(np.abs(u).max(initial=0.0)) or 1.0
        S = moments(self.Phi, (u / size).astype(np.float32))
        return (size * self.size**4) * quadratic_forms(self.Phi, S)


class AdaptiveFeatureFunction(WeightedFeatures):
    """g for K = scale * Phi Phi', eta > 0 and tau >= 0."""

    @cached_property
    def _single_precision(self) -> SinglePrecisionSquares:
        return SinglePrecisionSquares.of(self.Phi)

    def near(self, a: FloatArray) -> CutOffOperator | QuarticOperator:
        """Return g near a, with its Hessian as an operator."""
        return CutOffOperator(self, a) if self.tau else QuarticOperator(self, a)

    def times_squares_roughly(self, u: FloatArray) -> FloatArray:
        """Return six digits of (K o K)u."""
        return self.scale**2 * self._single_precision.times(u)

    def weights(self, a: FloatArray, best: BestWeights | None = None) -> FloatArray:
        """Return F, n x n."""
        require_memory(16.0 * a.size**2, f"F of {a.size} points")
        best = self.at(a) if best is None else best
        if best.Q is not None and best.f is not None:
            half = best.Q * np.sqrt(best.f)
            return half @ half.T
        half = self.Phi * (a * np.sqrt(self.scale / (4 * self.eta)))[:, None]
        F: FloatArray = half @ half.T
        F += 1.0
        return F

    def kernel(self, a: FloatArray, best: BestWeights | None = None) -> FloatArray:
        """Return F o K, n x n."""
        F = self.weights(a, best)
        F *= self.scale * (self.Phi @ self.Phi.T)
        return F

    def lipschitz(self, box: float) -> float:
        """Return a bound of how fast the gradient changes for |a_i| <= box, lambda_max(K) exact."""
        values = np.linalg.eigvalsh(self.Phi.T @ self.Phi)
        rows = self.times_squares(np.ones(len(self.Phi)))
        return self.scale * float(values[-1]) + box * box * 0.75 / self.eta * float(rows.max())

    def inverse(self, diagonal: FloatArray, v: FloatArray | None = None) -> Solve:
        """Return the inverse of K + diag(diagonal) + vv', by Woodbury's formula."""
        from scipy.linalg.lapack import dpotrf, dpotrs

        r = self.Phi.shape[1]
        root = np.sqrt(self.scale)
        v = np.zeros(diagonal.size) if v is None else v
        inner = np.eye(r + 1)
        inner[:r, :r] += self.scale * moments(self.Phi, 1 / diagonal)
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


class QuarticOperator:
    """g without tau near one a.

    What is inverted has vv', v = a o w / (a'(a o w))^1/2, in place of D_a (K o K) D_a: no larger,
    and equal on a. K o K has no negative entry, so that this is most of it. The inverse takes a
    matrix of order r + 1.
    """

    def __init__(self, function: AdaptiveFeatureFunction, a: FloatArray) -> None:
        self.function = function
        self.a = a
        linear, self.w = function.products(a)
        self.gradient = linear + a * self.w / (4 * function.eta)
        self.value = float(a @ linear) / 2 + float((a * a) @ self.w) / (16 * function.eta)

    def matvec(self, x: FloatArray) -> FloatArray:
        """Return Hx, of its last term six digits."""
        f = self.function
        mixed = self.a * f.times_squares_roughly(self.a * x) / (2 * f.eta)
        return f.times(x) + self.w * x / (4 * f.eta) + mixed

    def solver(self, d: FloatArray) -> Solve:
        """Return the inverse of K + diag(w) / (4 eta) + diag(d) + vv' / (2 eta)."""
        weight = 1 / (4 * self.function.eta)
        size = float((self.a * self.a) @ self.w)
        v = self.a * self.w * np.sqrt(2 * weight / size) if size > 0 else None
        return self.function.inverse(weight * self.w + d, v)


class CutOffOperator:
    """g with tau near one a: eigenvalues up to tau/2 are cut off."""

    def __init__(self, function: AdaptiveFeatureFunction, a: FloatArray) -> None:
        best = function.at(a)
        assert best.Q is not None
        assert best.f is not None
        self.function = function
        self.a = a
        self.value = best.value
        self.gradient = best.product
        self.Q = best.Q
        self.f = best.f
        self.weight = 1 / (4 * function.eta)
        self.s = self.f / (self.f + function.tau / 2)
        self.R = function.times(a[:, None] * self.Q)
        self.diagonal = self.weight * ((self.R * self.R) @ self.s)
        self.squares = function.scale**2 * moments(function.Phi, a * a)

    def matvec(self, x: FloatArray) -> FloatArray:
        """Return Hx."""
        Phi = self.function.Phi
        scale = self.function.scale
        a = self.a
        weight = self.weight
        Q = self.Q
        R = self.R
        s = self.s
        c = 1 - s

        # F o K and the terms with K: products with Phi for each k.
        one = Phi.T @ (Q * x[:, None])
        other = weight * (scale * (Phi.T @ (R * (a * x)[:, None])) + self.squares @ one)
        K_one = scale * (Phi @ one)
        Hx = (Q * K_one) @ self.f + weight * a * ((R * K_one) @ s) + (Q * (Phi @ other)) @ s

        # The terms with R_x and X_x alone: matrices of order k.
        mixed = Q.T @ (R * x[:, None])
        inner = (R * c) @ mixed.T - (R @ mixed.T) * s
        inner = inner - ((R * s) @ mixed) * s + ((R * c) @ mixed) * c
        return np.asarray(Hx + weight * np.einsum("ik,ik->i", Q, inner) + self.diagonal * x)

    def solver(self, d: FloatArray) -> Solve:
        """Return the inverse of K + diag(R_s) / (4 eta) + diag(d), as F is near 11'."""
        return self.function.inverse(self.diagonal + d)


@dataclass(frozen=True, eq=False)
class LinearlyShifted:
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

    def solver(self, d: FloatArray) -> Solve:
        """Return nearly (H + diag(d))^-1."""
        return self.inner.solver(d)


@dataclass(frozen=True, eq=False)
class SplitVariables:
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
        return _with_negative(self.inner.gradient) - self.gain

    def matvec(self, x: FloatArray) -> FloatArray:
        """Return Hx."""
        return _with_negative(self.inner.matvec(_difference(x)))

    def solver(self, d: FloatArray) -> Solve:
        """Return nearly (H + diag(d))^-1."""
        n = d.size // 2
        E = 1 / d[:n] + 1 / d[n:]
        inner_solve = self.inner.solver(1 / E)

        def solve(r: FloatArray) -> FloatArray:
            b = _difference(r / d)
            p = inner_solve(b / E)
            x = (r - _with_negative((b - p) / E)) / d
            # Where d is small this difference has no digits left; p has.
            return x + _with_negative((p - _difference(x)) / E) / d

        return solve


def _with_negative(g: FloatArray) -> FloatArray:
    return np.concatenate([g, -g])


def _difference(x: FloatArray) -> FloatArray:
    n = x.size // 2
    return x[:n] - x[n:]
