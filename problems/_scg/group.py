"""SCG-LDK where S = I - U R U' with few columns U: one inverse that always exists, the rest is as small as R.

With A = I + gamma K0 and the k orthonormal columns U put

    X = A^-1,   V = X U,   M = K0 X = (I - X) / gamma,   B = M U = K0 V,   Y = gamma U'M U = I - U'V.

The solution lies among the kernels K = M + gamma B H B', H symmetric and k x k, which have the
objective

    f(H) = log det A + tr((I + T)(I - W)) - k - log det(I + T),   T = Y^1/2 H Y^1/2,   W = Y^1/2 R Y^1/2.

It is least at I + T = (I - W)^-1, that is H = (I - R Y)^-1 R, where it is log det A + log det(I -
W). This equals log det(I + gamma S K0), the dual value, which no kernel falls below. K0 is never
inverted and may be singular.

Rounding. The Cholesky factor that was computed is that of A + E, |E_ij| <= g (A_ii A_jj)^1/2 with g
about n u. Since X <= I, that moves log det A by at most g n^1/2 tr A, and by at most g (sum_i (X_ii
A_ii)^1/2)^2. V is measured: with D = U - A V, U'X U = U'V + V'D up to |D|^2, and what was lost when
D was computed moves f by no more than that times 2 |V df/dY|.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from klopt.arrays import UNIT_ROUNDOFF, FloatArray, SparseMatrix, require_memory
from klopt.kernels.gram import Gram
from klopt.model.problem import Bracket, Point
from klopt.problems._scg.split import Split

__all__ = ["GroupModel", "Inverse"]

TINY = float(np.finfo(float).tiny)
SMALL = 0.1
"""Below this gamma K0 the difference I - X has lost digits that the product K0 X keeps."""


@dataclass(frozen=True, eq=False)
class Inverse:
    """X = (I + gamma K0)^-1, exactly symmetric, and the logarithm of the determinant of I + gamma K0."""

    K0: FloatArray
    gamma: float
    X: FloatArray
    logdet: float
    slack: float
    """How far `logdet` may be off."""

    @classmethod
    def of(cls, K0: Gram, gamma: float) -> Inverse:
        """Return the inverse by one Cholesky factorisation, in place: n^3 flops, one matrix."""
        from scipy.linalg.lapack import dpotrf, dpotri

        n = K0.size
        require_memory(16.0 * n * n, f"the kernel of {n} points")
        A = K0.matrix * gamma
        A.flat[:: n + 1] += 1.0
        diagonal = A.diagonal().copy()
        factor, failed = dpotrf(A.T, lower=1, overwrite_a=1, clean=0)
        assert not failed, "I + gamma K0 has eigenvalues of at least 1 up to rounding"
        logdet = 2 * float(np.log(factor.diagonal()).sum())
        X = dpotri(factor, lower=1, overwrite_c=1)[0].T
        _mirror(X)
        g = (n + 5) * UNIT_ROUNDOFF
        spread = min(
            np.sqrt(n) * diagonal.sum(),
            np.sqrt(np.maximum(X.diagonal(), 0.0) * diagonal).sum() ** 2,
        )
        # Negative eigenvalues of K0 within its floor count as 0.
        return cls(
            K0.matrix, gamma, X, logdet, g / (1 - g) * float(spread) + 2 * gamma * n * -K0.floor
        )

    def model(self, parts: Split) -> GroupModel:
        """Return the objective as a function of H."""
        V = cast(FloatArray, (parts.U.T @ self.X).T)
        norm = np.sqrt(len(self.X)) + self.gamma * float(np.linalg.norm(self.K0))
        return GroupModel(
            parts.R, parts.U, V, self.K0 @ V, self.gamma, self.logdet, self.slack, norm
        )

    def kernel(self, model: GroupModel, H: FloatArray) -> FloatArray:
        """Return M + gamma B H B', exactly symmetric."""
        from scipy.linalg.blas import dsyrk

        if self.gamma * float(self.K0.diagonal().max()) < SMALL:
            K = self.K0 @ self.X
            K = (K + K.T) / 2
        else:
            K = self.X / -self.gamma
            K.flat[:: len(K) + 1] += 1 / self.gamma
        values, vectors = np.linalg.eigh(H)
        half = (model.B @ vectors) * np.sqrt(self.gamma * np.abs(values))
        for sign in (1.0, -1.0):
            part = half[:, np.sign(values) == sign]
            if part.shape[1]:
                dsyrk(sign, part, beta=1.0, c=K.T, lower=1, overwrite_c=1)
        _mirror(K)
        return K

    def change(self, model: GroupModel, H: FloatArray) -> FloatArray:
        """Return Q with K = K0 + K0 Q K0, which is -gamma (X - V H V')."""
        Q = model.V @ H @ model.V.T
        return self.gamma * ((Q + Q.T) / 2 - self.X)


@dataclass(frozen=True, eq=False)
class GroupModel:
    """f(H) and its bounds; U, V and B may be given in any orthonormal basis."""

    R: FloatArray
    U: FloatArray | SparseMatrix
    V: FloatArray
    B: FloatArray
    gamma: float
    logdet: float
    """log det A."""
    slack: float
    """How far that may be off."""
    norm: float
    """||A||_F or more."""

    def closed_form(self) -> FloatArray:
        """Return the best H."""
        H = np.linalg.solve(np.eye(len(self.R)) - self.R @ self.Y, self.R)
        return (H + H.T) / 2

    def bracket(self, H: FloatArray) -> Bracket:
        """Return f at H, or on the way from there to H = 0 where H makes no kernel, and the dual value."""
        one, root, R, Y = np.eye(len(self.R)), self._root, self.R, self.Y
        H = np.nan_to_num((H + H.T) / 2)
        T, rest = root @ H @ root, one - root @ R @ root
        least = float(np.linalg.eigvalsh(T)[0])
        if least < -1 + 1e-9:
            H, T = H * (-0.5 / least), T * (-0.5 / least)
        upper = (
            float(np.sum((one + T) * rest))
            - len(one)
            - float(np.log(np.linalg.eigvalsh(one + T)).sum())
        )
        lower = float(np.log(np.maximum(np.linalg.eigvalsh(rest), TINY)).sum())
        gradient = H - R - R @ Y @ H - H @ Y @ R - np.linalg.solve(one + H @ Y, H)
        size = float(np.abs(T).sum() + np.abs(rest).sum() + len(one))
        upper += self.logdet + self._rounding(gradient, size)
        lower += self.logdet - self._rounding(self.closed_form(), size)
        return Bracket(lower, upper, Point({"change": H}))

    @cached_property
    def Y(self) -> FloatArray:
        """gamma U'M U, its eigenvalues between 0 and 1."""
        Y = np.eye(len(self.R)) - self.U.T @ self.V - self.V.T @ self._defect
        return (Y + Y.T) / 2

    @cached_property
    def _defect(self) -> FloatArray:
        return np.asarray(self.U - self.V - self.gamma * self.B)

    @cached_property
    def _root(self) -> FloatArray:
        values, vectors = np.linalg.eigh(self.Y)
        return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)

    def _rounding(self, gradient: FloatArray, size: float) -> float:
        """How far f may be off, given df/dY."""
        n, k = self.V.shape
        g, long = (n + k + 5) * UNIT_ROUNDOFF, float(np.linalg.norm(self.V))
        lost = g * (self.norm * long + np.sqrt(k))
        measured = 2 * lost * float(np.linalg.norm(self.V @ gradient)) + g * long * float(
            np.linalg.norm(gradient)
        )
        squared = float(np.linalg.norm(self._defect)) ** 2 * float(np.linalg.norm(gradient))
        return float(
            self.slack + measured + squared + 8 * k * UNIT_ROUNDOFF * (size + abs(self.logdet))
        )


def _mirror(X: FloatArray) -> None:
    """Copy the upper triangle of a C-ordered matrix to the lower one, block by block."""
    starts = range(0, len(X), 128)
    for i in starts:
        block = X[i : i + 128, i : i + 128]
        block[:] = np.triu(block) + np.triu(block, 1).T
        for j in range(i + 128, len(X), 128):
            X[j : j + 128, i : i + 128] = X[i : i + 128, j : j + 128].T
