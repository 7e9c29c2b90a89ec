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

BARRIER_REDUCTION = 0.1
"""Factor of the barrier's weight t from one centre to the next."""
MAX_NEWTON_STEPS = 50
CENTRING_TOLERANCE = 1e-6
"""Decrease, relative to t, that Newton's step promises at a centre."""
BOUNDARY_FRACTION = 0.95
"""Share of the way to the boundary of the cone that a step may go."""
ARMIJO_FRACTION = 0.1
"""Share of the promised decrease that a step must attain."""
MIN_VISIBLE_DECREASE = 1e-10
"""Decrease, relative to the value, below which rounding hides it."""
FINAL_STEP = 1e-6
"""Relative step that leaves about its square as error, and the square of that in the bracket."""
RELATIVE_GAP = 1e-13
"""Gap relative to f at which the path ends.

Eigenvalues of N that are to vanish fall with it; below rounding N would not be positive.
"""


def single_target(G: FloatArray, y: FloatArray, C: float, mu: float) -> tuple[float, FloatArray]:
    """Return nu and a of one target.

    Parameters
    ----------
    G : (p, p) array
        Positive semidefinite.
    y : (p,) array
        The target.
    C, mu : float
        Penalties of errors and of rough kernels.

    Examples
    --------
    >>> single_target(np.array([[1.0]]), np.array([2.0]), C=1.0, mu=0.5)
    (1.0, array([1.]))
    """
    from scipy.linalg.lapack import dposv, dpotrs

    goal = math.sqrt(2 * mu)
    nu = 0.0
    a = C * y
    image = G @ a
    b = C * image
    for _ in range(MAX_NEWTON_STEPS):
        square = float(a @ image)
        # h(nu) <= 2 mu: the constraint holds, so nu is large enough.
        if not math.sqrt(square) > goal:
            break
        step = (math.sqrt(square) / goal - 1) * square / float(image @ b)
        nu += step
        # The last step needs no factorisation: a' = -b.
        if step <= FINAL_STEP * nu:
            return nu, a - step * b
        M = nu * G
        M.flat[:: len(M) + 1] += 1 / C
        factor, a, _ = dposv(M, y, overwrite_a=1)
        image = G @ a
        b = dpotrs(factor, image)[0]
    return nu, a


@dataclass(frozen=True, eq=False)
class Secular:
    """The equation of several targets.

    Parameters
    ----------
    w : array
        Eigenvalues of G.
    Z : array
        Targets in the eigenvectors of G, one row each.
    C, mu : float
        Penalties of errors and of rough kernels.

    Examples
    --------
    >>> Secular(np.array([1.0]), np.array([[2.0]]), C=1.0, mu=0.5).solve().round(6)
    array([[1.]])
    """

    w: FloatArray
    Z: FloatArray
    C: float
    mu: float

    def solve(self) -> FloatArray:
        """Return N, zero where the gradient of f there already is nonnegative."""
        # The gradient of f at N = 0 is mu I - C^2 Z' diag(w) Z / 2.
        weighted = (self.Z.T * self.w) @ self.Z
        if float(np.linalg.eigvalsh(weighted)[-1]) * self.C**2 <= 2 * self.mu:
            return np.zeros_like(weighted)
        return self._follow_path()

    def rows(self, N: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return a_i = z_i (I/C + w_i N)^-1 for all i, and these inverses."""
        matrices = np.eye(len(N)) / self.C + self.w[:, None, None] * N
        inverses = np.asarray(np.linalg.inv(matrices), dtype=np.float64)
        return np.einsum("ij,ijk->ik", self.Z, inverses), inverses

    @property
    def max_eigenvalue(self) -> float:
        """A bound of the eigenvalues of the solution, since mu tr N <= f(N) <= f(0)."""
        return self.C * float(np.sum(self.Z**2)) / (2 * self.mu)

    def _follow_path(self) -> FloatArray:
        """The solution along the central path: t falls until c t, the gap, is small."""
        c = self.Z.shape[1]
        N: FloatArray = np.eye(c) * np.sqrt(self.max_eigenvalue / self.C) / c
        t = self.mu * float(np.trace(N)) / c
        while c * t > RELATIVE_GAP * self._value(N, 0.0):
            t *= BARRIER_REDUCTION
            N = self._centred(N, t)
        return N

    def _centred(self, N: FloatArray, t: float) -> FloatArray:
        """The minimiser of f(N) - t log det N."""
        for _ in range(MAX_NEWTON_STEPS):
            root = np.asarray(np.linalg.cholesky(N), dtype=np.float64)
            decrease, step = self._newton(N, root, t)
            if not decrease > CENTRING_TOLERANCE * t:
                break
            smallest = float(np.linalg.eigvalsh(step)[0])
            length = 1.0
            if not smallest > -BOUNDARY_FRACTION:
                length = -BOUNDARY_FRACTION / smallest
            move = root @ step @ root.T
            N = N + self._step_length(N, move, t, decrease, length) * move
        return N

    def _step_length(
        self, N: FloatArray, move: FloatArray, t: float, decrease: float, length: float
    ) -> float:
        """The length, halved until the step attains its share of the promised decrease.

        Parameters
        ----------
        N, move : (c, c) arrays
            Where the step starts, and the full step.
        t : float
            Weight of the barrier.
        decrease : float
            What the full step promises.
        length : float
            The longest length that stays in the cone.
        """
        value = self._value(N, t)
        # Where rounding hides the decrease, Newton's step is taken as it is.
        if not decrease > MIN_VISIBLE_DECREASE * abs(value):
            return length
        while self._value(N + length * move, t) > value - ARMIJO_FRACTION * length * decrease:
            length /= 2
        return length

    def _newton(self, N: FloatArray, root: FloatArray, t: float) -> tuple[float, FloatArray]:
        """The decrease that Newton's step promises, and the step D of N + root D root'.

        In these coordinates the barrier's Hessian is t I.
        """
        c = len(N)
        a, inverses = self.rows(N)
        a = a @ root
        inverses = root.T @ inverses @ root
        squares = np.einsum("ij,ik->ijk", a, a).reshape(-1, c * c)
        gradient = self.mu * root.T @ root - (self.w @ squares).reshape(c, c) / 2 - t * np.eye(c)
        weighted = squares * self.w[:, None] ** 2
        mixed = (weighted.T @ inverses.reshape(-1, c * c)).reshape(c, c, c, c) / 2
        hessian = (mixed.transpose(0, 2, 1, 3) + mixed.transpose(2, 0, 3, 1)).reshape(c * c, c * c)
        step = np.linalg.solve(hessian + t * np.eye(c * c), -gradient.ravel()).reshape(c, c)
        return -float(np.sum(gradient * step)), (step + step.T) / 2

    def _value(self, N: FloatArray, t: float) -> float:
        a, _ = self.rows(N)
        return float(np.sum(a * self.Z) / 2 + self.mu * np.trace(N) - t * np.linalg.slogdet(N)[1])
