"""What the brackets of SCG-LDK run: the objective in few unknowns, its dual value, and rounding.

The optimum log det(I + gamma S K0) is computed apart from any kernel, and no kernel falls below it.
K0 is never inverted and may be singular.

**By groups**, where S = I - U R U' with k orthonormal columns U. With A = I + gamma K0 put

    X = A^-1,   V = X U,   M = K0 X = (I - X) / gamma,
    B = M U = K0 V,   Y = gamma U'M U = I - U'V.

The solution is among the kernels K = M + gamma B H B', H symmetric and k x k. Their objective is

    f(H) = log det A + tr((I + T)(I - W)) - k - log det(I + T),

T = Y^1/2 H Y^1/2 and W = Y^1/2 R Y^1/2. Its minimum is at I + T = (I - W)^-1, that is H = (I - R
Y)^-1 R, and is log det A + log det(I - W) = log det(I + gamma S K0), the dual value.

Rounding. The Cholesky factor that was computed is that of A + E, |E_ij| <= g (A_ii A_jj)^1/2 with g
about n u. Since X <= I, that moves log det A by at most g n^1/2 tr A, and by at most g (sum_i (X_ii
A_ii)^1/2)^2. V is measured: with D = U - A V, U'X U = U'V + V'D up to |D|^2, and what was lost when
D was computed moves f by no more than that times 2 |V df/dY|.

Many gammas share K0 = Q t Q' with t tridiagonal and Q orthogonal: I + gamma K0 = Q (I + gamma t) Q'
is solved in O(n) a column, and all of the above is the same with t and Q'U for K0 and U. An
eigendecomposition would serve as well, at two to three times the cost.

**By features**, K0 = Phi Phi' with r columns. With A = I + gamma Phi'S Phi the kernels Phi M Phi',
M > 0 of order r, have the objective

    f(M) = tr(A M) - log det M - r;

kernels whose features are not those of K0 are infinitely far from it. Since tr(A M) - log det(A M)
is at least r, no M falls below log det A, the dual value, and M = A^-1 attains it. With A = LL' and
M = CC' the solution is C = L^-T, in O(n r^2 + r^3).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from klopt.arrays import UNIT_ROUNDOFF, FloatArray, SparseMatrix, require_memory
from klopt.kernels.gram import Gram
from klopt.model.problem import Bracket, Point

__all__ = [
    "FeatureObjective",
    "GroupObjective",
    "LowRankLaplacian",
    "ShiftedInverse",
    "TridiagonalKernel",
    "laplacian_energy",
    "mirror_upper",
]

SMALLEST_NORMAL = float(np.finfo(float).tiny)
"""The smallest eigenvalue whose logarithm is taken."""
MIN_EIGENVALUE = -1 + 1e-9
"""I + T counts as positive definite where no eigenvalue of T is below this."""
SUMMED_ROWS = 2048
"""Rows that are summed at a time: sums of sums lose fewer digits than one long sum."""
MIRRORED_ROWS = 128
"""Rows and columns of a block that is mirrored at a time: it and its mirror fit into a cache."""


@dataclass(frozen=True, eq=False)
class LowRankLaplacian:
    """S = I - U R U' with orthonormal columns U."""

    U: SparseMatrix
    R: FloatArray


# ---- by groups


@dataclass(frozen=True, eq=False)
class ShiftedInverse:
    """X = (I + gamma K0)^-1, exactly symmetric, and log det(I + gamma K0).

    Parameters
    ----------
    K0
        The given kernel.
    gamma
        The weight of the graph.
    X
        The inverse.
    logdet
        The logarithm of the determinant of I + gamma K0.
    logdet_error
        How far `logdet` may be off.
    """

    K0: FloatArray
    gamma: float
    X: FloatArray
    logdet: float
    logdet_error: float

    @classmethod
    def of(cls, K0: Gram, gamma: float) -> ShiftedInverse:
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
        mirror_upper(X)

        by_trace = np.sqrt(n) * diagonal.sum()
        by_entries = np.sqrt(np.maximum(X.diagonal(), 0.0) * diagonal).sum() ** 2
        g = (n + 5) * UNIT_ROUNDOFF
        factor_error = g / (1 - g) * float(min(by_trace, by_entries))
        # Negative eigenvalues of K0 within its floor count as 0.
        floor_error = 2 * gamma * n * -K0.floor
        return cls(K0.matrix, gamma, X, logdet, factor_error + floor_error)

    def objective(self, laplacian: LowRankLaplacian) -> GroupObjective:
        """Return the objective as a function of H."""
        V = cast(FloatArray, (laplacian.U.T @ self.X).T)
        norm = np.sqrt(len(self.X)) + self.gamma * float(np.linalg.norm(self.K0))
        return GroupObjective(
            R=laplacian.R,
            U=laplacian.U,
            V=V,
            B=self.K0 @ V,
            gamma=self.gamma,
            logdet=self.logdet,
            logdet_error=self.logdet_error,
            norm=norm,
        )


@dataclass(frozen=True, eq=False)
class TridiagonalKernel:
    """K0 = Q t Q', t tridiagonal, as LAPACK has it.

    Parameters
    ----------
    diagonal, beside
        The diagonal of t and the one beside it.
    reflectors, scales
        Q as Householder reflections.
    laplacian
        S = I - U R U'.
    QU
        Q'U.
    norm
        The Frobenius norm of K0.
    floor
        A lower bound of the eigenvalues of K0, 0 or below it by rounding.
    """

    diagonal: FloatArray
    beside: FloatArray
    reflectors: FloatArray
    scales: FloatArray
    laplacian: LowRankLaplacian
    QU: FloatArray
    norm: float
    floor: float

    @classmethod
    def of(cls, K0: Gram, laplacian: LowRankLaplacian) -> TridiagonalKernel:
        """Return the tridiagonal form: 4/3 n^3 flops, one matrix."""
        from scipy.linalg.lapack import dsytrd

        n = K0.size
        require_memory(8.0 * n * n, f"the tridiagonal form of a kernel of {n} points")
        work = np.array(K0.matrix, order="F")
        reflectors, diagonal, beside, scales, _ = dsytrd(work, lower=1, overwrite_a=1, lwork=64 * n)
        return cls(
            diagonal=diagonal,
            beside=beside,
            reflectors=reflectors,
            scales=scales,
            laplacian=laplacian,
            QU=_reflected(reflectors, scales, laplacian.U.toarray(), transposed=True),
            norm=float(np.linalg.norm(K0.matrix)),
            floor=K0.floor,
        )

    def rotate(self, C: FloatArray) -> FloatArray:
        """Return Q'C."""
        return _reflected(self.reflectors, self.scales, C, transposed=True)

    def rotate_back(self, C: FloatArray) -> FloatArray:
        """Return Q C."""
        return _reflected(self.reflectors, self.scales, C, transposed=False)

    def solve(self, gamma: float, C: FloatArray) -> tuple[FloatArray, float]:
        """Return (I + gamma t)^-1 C and log det(I + gamma t)."""
        from scipy.linalg.lapack import dpttrf, dpttrs

        pivots, lower, failed = dpttrf(1 + gamma * self.diagonal, gamma * self.beside)
        assert not failed, "I + gamma K0 has eigenvalues of at least 1 up to rounding"
        return dpttrs(pivots, lower, C)[0], float(np.log(pivots).sum())

    def multiply(self, C: FloatArray) -> FloatArray:
        """Return t C."""
        product = self.diagonal[:, None] * C
        product[:-1] += self.beside[:, None] * C[1:]
        product[1:] += self.beside[:, None] * C[:-1]
        return product

    def objective(self, gamma: float) -> GroupObjective:
        """Return the objective as a function of H."""
        n = self.diagonal.size
        V, logdet = self.solve(gamma, self.QU)
        norm = np.sqrt(n) + gamma * self.norm
        # The reflections are those of a matrix within about n u of K0.
        reflection_error = 8 * np.sqrt(n) * (n + 5) * UNIT_ROUNDOFF * norm
        # Negative eigenvalues of K0 within its floor count as 0.
        floor_error = 2 * gamma * n * -self.floor
        return GroupObjective(
            R=self.laplacian.R,
            U=self.QU,
            V=V,
            B=self.multiply(V),
            gamma=gamma,
            logdet=logdet,
            logdet_error=float(reflection_error + floor_error),
            norm=norm,
        )


def _reflected(
    reflectors: FloatArray, scales: FloatArray, C: FloatArray, *, transposed: bool
) -> FloatArray:
    """Q C, or Q'C."""
    from scipy.linalg.lapack import dormqr

    rotated = np.array(C, order="F")
    # Q leaves the first coordinate alone.
    if len(rotated) > 1:
        which = "T" if transposed else "N"
        work = 64 * max(rotated.shape[1], 1)
        rotated[1:] = dormqr("L", which, reflectors[1:, :-1], scales, rotated[1:], work)[0]
    return rotated


@dataclass(frozen=True, eq=False)
class GroupObjective:
    """f(H) and its bounds; U, V and B may be given in any orthonormal basis.

    Parameters
    ----------
    R, U
        S = I - U R U'.
    V, B
        A^-1 U and K0 V, as computed.
    gamma
        The weight of the graph.
    logdet
        log det A.
    logdet_error
        How far that may be off.
    norm
        The Frobenius norm of A, or more.
    """

    R: FloatArray
    U: FloatArray | SparseMatrix
    V: FloatArray
    B: FloatArray
    gamma: float
    logdet: float
    logdet_error: float
    norm: float

    def minimiser(self) -> FloatArray:
        """Return the best H."""
        H = np.linalg.solve(np.eye(len(self.R)) - self.R @ self.Y, self.R)
        return (H + H.T) / 2

    def bracket(self, H: FloatArray) -> Bracket:
        """Return the dual value, and f at H or, where H makes no kernel, on the way to H = 0."""
        one = np.eye(len(self.R))
        root = self._root
        H = np.nan_to_num((H + H.T) / 2)
        T = root @ H @ root
        smallest = float(np.linalg.eigvalsh(T)[0])
        if smallest < MIN_EIGENVALUE:
            # f is infinite there; halfway to the boundary it is not.
            shrink = -0.5 / smallest
            H = H * shrink
            T = T * shrink

        rest = one - root @ self.R @ root
        log_det = float(np.log(np.linalg.eigvalsh(one + T)).sum())
        upper = float(np.sum((one + T) * rest)) - len(one) - log_det
        eigenvalues = np.maximum(np.linalg.eigvalsh(rest), SMALLEST_NORMAL)
        lower = float(np.log(eigenvalues).sum())

        size = float(np.abs(T).sum() + np.abs(rest).sum() + len(one))
        upper += self.logdet + self._rounding(self._gradient(H), size)
        # At the minimum df/dY is -H.
        lower += self.logdet - self._rounding(self.minimiser(), size)
        return Bracket(lower, upper, Point({"change": H}))

    def _gradient(self, H: FloatArray) -> FloatArray:
        """df/dY at H."""
        R = self.R
        Y = self.Y
        inner = np.linalg.solve(np.eye(len(R)) + H @ Y, H)
        return np.asarray(H - R - R @ Y @ H - H @ Y @ R - inner)

    @cached_property
    def Y(self) -> FloatArray:
        """gamma U'M U, its eigenvalues between 0 and 1."""
        Y = np.eye(len(self.R)) - self.U.T @ self.V - self.V.T @ self._defect
        return (Y + Y.T) / 2

    @cached_property
    def _defect(self) -> FloatArray:
        """D = U - A V."""
        return np.asarray(self.U - self.V - self.gamma * self.B)

    @cached_property
    def _root(self) -> FloatArray:
        """Y^1/2."""
        values, vectors = np.linalg.eigh(self.Y)
        return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)

    def _rounding(self, gradient: FloatArray, size: float) -> float:
        """How far f may be off, given df/dY and the size of its terms."""
        n, k = self.V.shape
        g = (n + k + 5) * UNIT_ROUNDOFF
        V_norm = float(np.linalg.norm(self.V))
        gradient_norm = float(np.linalg.norm(gradient))

        lost = g * (self.norm * V_norm + np.sqrt(k))
        measured = 2 * lost * float(np.linalg.norm(self.V @ gradient)) + g * V_norm * gradient_norm
        squared = float(np.linalg.norm(self._defect)) ** 2 * gradient_norm
        summed = 8 * k * UNIT_ROUNDOFF * (size + abs(self.logdet))
        return float(self.logdet_error + measured + squared + summed)


def mirror_upper(X: FloatArray) -> None:
    """Copy the upper triangle of a C-ordered matrix to the lower one, block by block."""
    size = MIRRORED_ROWS
    for i in range(0, len(X), size):
        block = X[i : i + size, i : i + size]
        block[:] = np.triu(block) + np.triu(block, 1).T
        for j in range(i + size, len(X), size):
            X[j : j + size, i : i + size] = X[i : i + size, j : j + size].T


# ---- by features


def laplacian_energy(
    Phi: FloatArray, laplacian: LowRankLaplacian | FloatArray
) -> tuple[FloatArray, float]:
    """Return Phi'S Phi, exactly symmetric, and a bound of its error in the Frobenius norm."""
    n, r = Phi.shape
    square = float(np.linalg.norm(Phi)) ** 2
    if not isinstance(laplacian, LowRankLaplacian):
        B = Phi.T @ (laplacian @ Phi)
        return (B + B.T) / 2, 4 * (n + 5) * UNIT_ROUNDOFF * square

    # Phi'Phi - (U'Phi)'R (U'Phi): S is not formed.
    U = laplacian.U.tocsr()
    R = laplacian.R
    B = np.zeros((r, r))
    P = np.zeros((U.shape[1], r))
    for start in range(0, n, SUMMED_ROWS):
        rows = slice(start, start + SUMMED_ROWS)
        B += Phi[rows].T @ Phi[rows]
        P += U[rows].T @ Phi[rows]
    B -= P.T @ (R @ P)
    terms = min(n, SUMMED_ROWS) + n // SUMMED_ROWS + len(P) + 5
    error = 4 * terms * UNIT_ROUNDOFF * square * (1 + float(np.linalg.norm(R)))
    return (B + B.T) / 2, error


@dataclass(frozen=True, eq=False)
class FeatureObjective:
    """f(M) and its bounds, for M = CC'.

    Parameters
    ----------
    Phi
        The features of the points.
    energy
        Phi'S Phi.
    energy_error
        How far that may be off in the Frobenius norm.
    missing
        What K0 - Phi Phi' may add to log det(I + gamma S K0), over gamma.
    gamma
        The weight of the graph.
    """

    Phi: FloatArray
    energy: FloatArray
    energy_error: float
    missing: float
    gamma: float

    @classmethod
    def of_features(
        cls, Phi: FloatArray, laplacian: LowRankLaplacian | FloatArray, gamma: float
    ) -> FeatureObjective:
        """Return the objective for the kernel Phi Phi'."""
        return cls(Phi, *laplacian_energy(Phi, laplacian), 0.0, gamma)

    @classmethod
    def of_matrix(
        cls, K0: Gram, laplacian: LowRankLaplacian | FloatArray, gamma: float
    ) -> FeatureObjective:
        """Return the objective for a matrix, by its pivoted Cholesky factor."""
        Phi = np.ascontiguousarray(K0.factor().T)
        # |S| <= 2, and negative eigenvalues of K0 within its floor count as 0.
        missing = 2 * (np.sqrt(K0.size) * K0.factor_error() - K0.size * K0.floor)
        return cls(Phi, *laplacian_energy(Phi, laplacian), float(missing), gamma)

    @cached_property
    def A(self) -> FloatArray:
        """I + gamma Phi'S Phi."""
        return np.eye(len(self.energy)) + self.gamma * self.energy

    def minimiser(self) -> FloatArray:
        """Return the best C, upper triangular."""
        return self._best

    def bracket(self, C: FloatArray) -> Bracket:
        """Return the dual value and f at M = CC'."""
        r = len(C)
        C = np.nan_to_num(C)
        sign, half_log_det = np.linalg.slogdet(C)
        trace = float(np.sum(C * (self.A @ C)))
        upper = trace - 2 * float(half_log_det) - r if sign else np.inf
        upper += self.gamma * (self.missing + self.energy_error * float(np.sum(C * C)))
        upper += 8 * (r + 5) * UNIT_ROUNDOFF * (trace + abs(float(half_log_det)) + r)
        note = "" if sign else "core is singular"
        return Bracket(self._dual_value, float(upper), Point({"core": C}), note)

    @cached_property
    def _dual_value(self) -> float:
        """log det A less what rounding may have added: an error E of A moves it by tr(A^-1 E)."""
        r = len(self.A)
        value = 2 * float(np.log(self._factor.diagonal()).sum())
        inverse_diagonal = np.einsum("ij,ij->i", self._best, self._best)

        by_trace = np.sqrt(r) * self.A.trace()
        by_entries = float(np.sqrt(inverse_diagonal * self.A.diagonal()).sum()) ** 2
        g = (r + 5) * UNIT_ROUNDOFF
        factor_error = g / (1 - g) * min(by_trace, by_entries)
        # |tr(A^-1 E)| <= ||A^-1||_F ||E||_F, and A^-1 <= I has a norm of at most trace and r^1/2.
        inverse_size = min(float(inverse_diagonal.sum()), np.sqrt(r))
        formed_error = self.gamma * (self.missing + self.energy_error * inverse_size)
        return float(value - formed_error - factor_error - 8 * g * abs(value))

    @cached_property
    def _factor(self) -> FloatArray:
        """L with A = LL'."""
        return cast(FloatArray, np.linalg.cholesky(self.A))

    @cached_property
    def _best(self) -> FloatArray:
        """L^-T."""
        from scipy.linalg.lapack import dtrtri

        return cast(FloatArray, np.triu(dtrtri(self._factor.T, lower=0)[0]))
