"""The secular equation of regularised least squares over all kernels, for one target or several.

One target. Given G >= 0, y and C, mu > 0, find nu >= 0 with

    h(nu) = a'G a = 2 mu,    a = (I/C + nu G)^-1 y,

or nu = 0 if h(0) <= 2 mu already. h^-1/2 is concave in nu and nearly a line, so that Newton's
method comes from the left and takes few steps, one Cholesky factorisation each: h' = -2 (G a)'b
with b = (I/C + nu G)^-1 G a, and a' = -b.

Several. With the eigenvalues w of G and the rows z_i of Z, the targets in its eigenvectors, find N
>= 0 that minimises

    f(N)     = sum_i z_i (I/C + w_i N)^-1 z_i' / 2 + mu tr N
    gradient = mu I - sum_i w_i a_i'a_i / 2,    a_i = z_i (I/C + w_i N)^-1,

by Newton's method on f(N) - t log det N, which is convex and leaves f at most t times the order of
N above its minimum, while t falls to nothing. For one target this f has the stationary point above.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from klopt.arrays import FloatArray

__all__ = ["Secular", "single_target"]

SHRINK = 0.1
NEWTON_STEPS = 50
SHOWN = 1e-10
SETTLED = 1e-6
"""A step of this relative size leaves about its square as error, and the square of that in the bracket."""
GAP = 1e-13
"""Relative to f; eigenvalues of N that are to vanish fall with it, and below rounding N would not be positive."""


def single_target(G: FloatArray, y: FloatArray, C: float, mu: float) -> tuple[float, FloatArray]:
    """Return nu and a.

    >>> single_target(np.array([[1.0]]), np.array([2.0]), C=1.0, mu=0.5)
    (1.0, array([1.]))
    """
    from scipy.linalg.lapack import dposv, dpotrs

    goal, nu, a = math.sqrt(2 * mu), 0.0, C * y
    image = G @ a
    b = C * image
    for _ in range(NEWTON_STEPS):
        square = float(a @ image)
        if not math.sqrt(square) > goal:
            break
        step = (math.sqrt(square) / goal - 1) * square / float(image @ b)
        nu += step
        if step <= SETTLED * nu:
            return nu, a - step * b
        M = nu * G
        M.flat[:: len(M) + 1] += 1 / C
        factor, a, _ = dposv(M, y, overwrite_a=1)
        image = G @ a
        b = dpotrs(factor, image)[0]
    return nu, a


@dataclass(frozen=True, eq=False)
class Secular:
    """The data of the equation.

    >>> Secular(np.array([1.0]), np.array([[2.0]]), C=1.0, mu=0.5).solve().round(6)
    array([[1.]])
    """

    w: FloatArray
    Z: FloatArray
    C: float
    mu: float

    def solve(self) -> FloatArray:
        """Return N, zero where the gradient of f there already is nonnegative."""
        c = self.Z.shape[1]
        if float(np.linalg.eigvalsh((self.Z.T * self.w) @ self.Z)[-1]) * self.C**2 <= 2 * self.mu:
            return np.zeros((c, c))
        return self._matrix()

    def rows(self, N: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return a_i = z_i (I/C + w_i N)^-1 for all i, and these inverses."""
        inverses = np.asarray(
            np.linalg.inv(np.eye(len(N)) / self.C + self.w[:, None, None] * N), dtype=np.float64
        )
        return np.einsum("ij,ijk->ik", self.Z, inverses), inverses

    @property
    def largest(self) -> float:
        """A number that no eigenvalue of the solution exceeds, since f(N) >= mu tr N and f(0) >= f(N) do."""
        return self.C * float(np.sum(self.Z**2)) / (2 * self.mu)

    def _matrix(self) -> FloatArray:
        c = self.Z.shape[1]
        N: FloatArray = np.eye(c) * np.sqrt(self.largest / self.C) / c
        t = self.mu * float(np.trace(N)) / c
        while c * t > GAP * self._value(N, 0.0):
            t *= SHRINK
            N = self._centred(N, t)
        return N

    def _centred(self, N: FloatArray, t: float) -> FloatArray:
        """The minimiser of f(N) - t log det N."""
        for _ in range(NEWTON_STEPS):
            root = np.asarray(np.linalg.cholesky(N), dtype=np.float64)
            fall, step = self._newton(N, root, t)
            if not fall > 1e-6 * t:
                break
            least = float(np.linalg.eigvalsh(step)[0])
            length = 1.0 if least > -0.95 else -0.95 / least
            value, move = self._value(N, t), root @ step @ root.T
            # Where the fall is below what the value can show, Newton's step is trusted as it is.
            while (
                fall > SHOWN * abs(value)
                and self._value(N + length * move, t) > value - 0.1 * length * fall
            ):
                length /= 2
            N = N + length * move
        return N

    def _newton(self, N: FloatArray, root: FloatArray, t: float) -> tuple[float, FloatArray]:
        """How much Newton's step promises, and the step D of N + root D root': there the barrier's Hessian is t I."""
        c = len(N)
        a, inverses = self.rows(N)
        a, inverses = a @ root, root.T @ inverses @ root
        squares = np.einsum("ij,ik->ijk", a, a).reshape(-1, c * c)
        gradient = self.mu * root.T @ root - (self.w @ squares).reshape(c, c) / 2 - t * np.eye(c)
        mixed = ((squares * self.w[:, None] ** 2).T @ inverses.reshape(-1, c * c)).reshape(
            c, c, c, c
        ) / 2
        hessian = (mixed.transpose(0, 2, 1, 3) + mixed.transpose(2, 0, 3, 1)).reshape(c * c, c * c)
        step = np.linalg.solve(hessian + t * np.eye(c * c), -gradient.ravel()).reshape(c, c)
        return -float(np.sum(gradient * step)), (step + step.T) / 2

    def _value(self, N: FloatArray, t: float) -> float:
        a, _ = self.rows(N)
        return float(np.sum(a * self.Z) / 2 + self.mu * np.trace(N) - t * np.linalg.slogdet(N)[1])
