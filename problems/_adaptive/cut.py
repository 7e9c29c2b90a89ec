"""The function of `klopt.problems._adaptive.function` with tau near one a, for features: its curvature is applied, never formed.

K = Phi Phi', F = sum_k f_k q_k q_k' (few k), r_k = K D_a q_k, s_k = f_k / (f_k + tau/2), c = 1 - s.
With the matrices P_x = sum x_k q_k q_k', R_x = sum x_k r_k r_k', X_x = sum x_k q_k r_k' the
(generalised) Hessian is

    H = F o K + {P_1 R_c + P_s (K D_a^2 K - R_1) + X_c X_c' - X_s X_s' + X_s K D_a + D_a K X_s' + diag(R_s)} / (4 eta)

with entrywise products in the braces but for K D_a^2 K. An entrywise product with a sum of rank-one
matrices is applied term by term, so that Hx takes products with Phi for each k and matrices Q'
diag(x) R: n r k + n k^2 in all.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from klopt.arrays import FloatArray
from klopt.problems._adaptive.features import AdaptingFeatures, Quartic

__all__ = ["Cut", "near"]


def near(function: AdaptingFeatures, a: FloatArray) -> Cut | Quartic:
    """Return the function near a, with tau or without."""
    return Cut(function, a) if function.tau else Quartic(function, a)


class Cut:
    """The function near one a."""

    def __init__(self, function: AdaptingFeatures, a: FloatArray) -> None:
        here = function.at(a)
        assert here.Q is not None
        assert here.f is not None
        self.function, self.a, self.value, self.gradient = function, a, here.value, here.product
        self.Q, self.f, self.weight = here.Q, here.f, 1 / (4 * function.eta)
        self.s = self.f / (self.f + function.tau / 2)
        self.R = function.times(a[:, None] * self.Q)
        self.diagonal = self.weight * ((self.R * self.R) @ self.s)
        self.squares = function.scale**2 * function.moments(a * a)

    def matvec(self, x: FloatArray) -> FloatArray:
        """Return Hx."""
        Phi, scale, weight, a = self.function.Phi, self.function.scale, self.weight, self.a
        Q, R, s, c = self.Q, self.R, self.s, 1 - self.s
        one = Phi.T @ (Q * x[:, None])
        other = weight * (scale * (Phi.T @ (R * (a * x)[:, None])) + self.squares @ one)
        K_one = scale * (Phi @ one)
        mixed = Q.T @ (R * x[:, None])
        Hx = (Q * K_one) @ self.f + weight * a * ((R * K_one) @ s) + (Q * (Phi @ other)) @ s
        inner = (
            (R * c) @ mixed.T - (R @ mixed.T) * s - ((R * s) @ mixed) * s + ((R * c) @ mixed) * c
        )
        return np.asarray(Hx + weight * np.einsum("ik,ik->i", Q, inner) + self.diagonal * x)

    def solver(self, d: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Return the inverse of K + diag(R_s) / (4 eta) + diag(d): F is near 11' where it counts."""
        return self.function.inverse(self.diagonal + d)
