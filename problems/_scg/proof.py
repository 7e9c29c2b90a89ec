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

None of this needs orthonormal columns: Y = U'U - U'XU, and S is I - U R U' with U and R as stored.

Rounding. The Cholesky factor that was computed is that of A + E, |E_ij| <= g (A_ii A_jj)^1/2, g =
gamma_(n+5) / (1 - gamma_(n+5)) (Higham, Theorem 10.3, with room for how A is formed). With A >= a I,
a = 1 + gamma floor, tau = g tr A / a bounds ||A^-1/2 E A^-1/2||_F, so that log det A moves by n^1/2
tau + tau^2 at most. V is any matrix: with D = U - A V enclosed, U'XU = U'V + V'D + D'XD, and
0 <= D'XD <= D'D / a. f(H) and the dual value follow from the enclosure of Y, in k x k matrices. A
stored K0 with negative eigenvalues stands for K0 + N, 0 <= N <= -floor I.

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

from klopt.arrays import FloatArray, SparseMatrix, require_memory
from klopt.kernels.gram import Gram
from klopt.model.problem import Bracket, Point
from klopt.proof.directed import norm_up
from klopt.proof.enclosure import (
    ETA,
    UNIT_ROUNDOFF,
    Enclosure,
    enclose_norm,
    enclose_sum,
    gamma as gamma_n,
)
from klopt.proof.log_det import (
    enclose_congruence,
    enclose_log_det,
    enclose_relative_log_det,
    log_det_change,
)

__all__ = [
    "FeatureObjective",
    "GroupObjective",
    "LowRankLaplacian",
    "ShiftedInverse",
    "TridiagonalKernel",
    "laplacian_energy",
    "mirror_upper",
]

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
    floor
        A lower bound of the eigenvalues of K0, 0 or below it by rounding.
    """

    K0: FloatArray
    gamma: float
    X: FloatArray
    logdet: float
    logdet_error: float
    floor: float

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
        logs = Enclosure.of(factor.diagonal().copy()).log().sum() * 2.0
        X = dpotri(factor, lower=1, overwrite_c=1)[0].T
        mirror_upper(X)

        # Enclosed: the logarithms, and how far the factor is off.
        error = logs.rad + factored_log_det_error(diagonal, 1 + gamma * K0.floor)
        return cls(K0.matrix, gamma, X, logs.mid, float(error), K0.floor)

    def objective(self, laplacian: LowRankLaplacian) -> GroupObjective:
        """Return the objective as a function of H."""
        V = cast(FloatArray, (laplacian.U.T @ self.X).T)
        B = _kernel_columns(self.K0, V, self.floor)
        return GroupObjective(
            R=laplacian.R,
            U=laplacian.U,
            V=V,
            B=B.mid,
            gamma=self.gamma,
            logdet=self.logdet,
            logdet_error=self.logdet_error,
            B_error=B.rad,
            floor=self.floor,
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
        # The reflections are those of a matrix within about n u of K0: the one bound here that is
        # taken from practice (Higham, section 19.3, leaves its constant open).
        reflection_error = 8 * np.sqrt(n) * (n + 5) * UNIT_ROUNDOFF * norm
        product_error = 4 * (n + 5) * UNIT_ROUNDOFF * self.norm / np.sqrt(n)
        B = self.multiply(V)
        return GroupObjective(
            R=self.laplacian.R,
            U=self.QU,
            V=V,
            B=B,
            gamma=gamma,
            logdet=logdet,
            logdet_error=float(reflection_error),
            B_error=np.broadcast_to(product_error * np.linalg.norm(V, axis=0), B.shape),
            floor=self.floor,
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
    B_error
        How far each entry of B may be off.
    floor
        A lower bound of the eigenvalues of K0, 0 or below it by rounding.
    """

    R: FloatArray
    U: FloatArray | SparseMatrix
    V: FloatArray
    B: FloatArray
    gamma: float
    logdet: float
    logdet_error: float
    B_error: FloatArray
    floor: float

    def minimiser(self) -> FloatArray:
        """Return the best H."""
        H = np.linalg.solve(np.eye(len(self.R)) - self.R @ self.Y, self.R)
        return (H + H.T) / 2

    def bracket(self, H: FloatArray) -> Bracket:
        """Return the dual value, and f at H or, where H makes no kernel, on the way to H = 0."""
        return self.proof(self.witness(H))

    def witness(self, H: FloatArray) -> FloatArray:
        """Return H, symmetric, and nearer to 0 where it makes no kernel."""
        from scipy.linalg.lapack import dpotrf

        H = (H + H.T) / 2
        if not np.isfinite(H).all():
            H = np.nan_to_num(H)
        M = self._root.T @ H @ self._root
        _, failed = dpotrf(M - MIN_EIGENVALUE * np.eye(len(M)))
        if not failed:
            return H
        # f is infinite there; halfway to the boundary it is not.
        smallest = float(np.linalg.eigvalsh(M)[0])
        return H * (-0.5 / smallest) if smallest < MIN_EIGENVALUE else H

    def proof(self, H: FloatArray) -> Bracket:
        """Return the two bounds."""
        point = Point({"change": H})
        if not np.isfinite(H).all() or (H != H.T).any():
            return Bracket(-np.inf, np.inf, point, "change is not symmetric")
        root = self._root.T
        remainder = self._remainder
        below = enclose_relative_log_det(-self.R, root, remainder)
        above = enclose_relative_log_det(H, root, remainder)
        return Bracket(
            float(enclose_sum([self._logdet, below]).lower),
            float(enclose_sum([self._logdet, self._traces(H), -above]).upper),
            point,
            lower_by="weak duality: log det(I + gamma S K0)",
            upper_by="objective of a positive definite kernel",
        )

    @cached_property
    def _remainder(self) -> float:
        """A bound of ||Y - B'B||_F for the root B of Y: Lemma E2 by Frobenius norms."""
        Y = self._enclosed_Y
        B = self._root
        distance = norm_up(Y.mid - B @ B.T)
        rounding = gamma_n(len(B) + 4) * norm_up(B) ** 2
        return (distance + rounding + norm_up(Y.rad)) * (1 + 16 * UNIT_ROUNDOFF)

    def _traces(self, H: FloatArray) -> Enclosure:
        """tr Y(H - R) - tr RYHY: Lemma E2 by Frobenius norms."""
        Y = self._enclosed_Y
        order = len(Y)
        change = H - self.R
        RY = self.R @ Y.mid
        HY = H @ Y.mid
        mid = float(np.vdot(Y.mid, change)) - float(np.vdot(RY, HY.T))

        g = gamma_n(order * order + 8)
        size = norm_up(Y.mid)
        spread = norm_up(Y.rad)
        each = gamma_n(order + 4) * size + spread
        RY_error = norm_up(self.R) * each
        HY_error = norm_up(H) * each
        RY_size = norm_up(RY)
        HY_size = norm_up(HY)
        rad = (g * size + spread) * norm_up(change)
        rad += g * RY_size * HY_size + RY_error * (HY_size + HY_error) + RY_size * HY_error
        return Enclosure(mid, (rad + UNIT_ROUNDOFF * abs(mid)) * (1 + 32 * UNIT_ROUNDOFF) + ETA)

    @property
    def _logdet(self) -> Enclosure:
        """log det A, for the K0 that a stored one stands for."""
        # log(1 + gamma floor) for each negative eigenvalue.
        below = max(-self.gamma * self.floor, 0.0)
        error = 2 * len(self.V) * below if below < 0.5 else np.inf
        return Enclosure(self.logdet, (self.logdet_error + error) * (1 + 4 * UNIT_ROUNDOFF))

    @cached_property
    def _enclosed_Y(self) -> Enclosure:
        """U'U - U'V - V'D - D'XD, for the K0 that a stored one stands for."""
        U = self.U if isinstance(self.U, np.ndarray) else self.U.toarray()
        columns = Enclosure.of(U)
        V = Enclosure.of(self.V)
        D = columns - V - Enclosure(self.B, self.B_error) * self.gamma
        Y = U.T @ (columns - V) - V.T @ D
        smallest = 1 + self.gamma * self.floor
        size = (D * D).sum(axis=0).sqrt().upper
        if not smallest > 0.5:
            return Enclosure(Y.mid, np.full(Y.shape, np.inf))
        # |D'XD| entry by entry, and what N does to U'XU: at most gamma floor ||u_i|| ||u_j|| / a.
        rest = np.outer(size, size) * (2 * (1 + 8 * UNIT_ROUNDOFF))
        norms = (columns * columns).sum(axis=0).sqrt().upper
        moved = np.outer(norms, norms) * (-4 * self.gamma * self.floor)
        rad = Y.rad + (rest + moved) * (1 + 8 * UNIT_ROUNDOFF)
        mid = (Y.mid + Y.mid.T) / 2
        return Enclosure(
            mid, np.maximum(rad, rad.T) + 2 * UNIT_ROUNDOFF * np.abs(mid) + np.abs(Y.mid - Y.mid.T)
        )

    @cached_property
    def Y(self) -> FloatArray:
        """gamma U'M U, its eigenvalues between 0 and 1."""
        return cast(FloatArray, self._enclosed_Y.mid)

    @cached_property
    def _root(self) -> FloatArray:
        """About Y^1/2."""
        values, vectors = np.linalg.eigh(self.Y)
        return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def factored_log_det_error(diagonal: FloatArray, smallest: float) -> float:
    """How far 2 sum log L_ii of a computed Cholesky factor of A may be from log det A.

    `diagonal` is that of A, and no eigenvalue of A is below `smallest`.
    """
    n = len(diagonal)
    if not smallest > 0.5:
        return np.inf
    g = gamma_n(n + 5)
    trace = float(diagonal.sum()) * (1 + gamma_n(n + 5))
    tau = g / (1 - g) * trace / smallest * (1 + 16 * UNIT_ROUNDOFF)
    if not tau < 0.5:
        return np.inf
    return float((np.sqrt(n) * tau + tau * tau) * (1 + 16 * UNIT_ROUNDOFF))


def _kernel_columns(K0: FloatArray, V: FloatArray, floor: float) -> Enclosure:
    """K0 V, by |K_ij| <= r_i r_j as in `enclose_kernel_product`."""
    n = len(K0)
    r = np.sqrt(K0.diagonal() - floor) * (1 + 8 * UNIT_ROUNDOFF)
    size = r @ np.abs(V)
    rad = gamma_n(n + 8) * np.outer(r, size) * (1 + 2 * gamma_n(n + 16))
    return Enclosure(K0 @ V, rad)


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
        # |S| <= I + D^-1/2 W D^-1/2, entry by entry, has a norm of at most 2.
        return (B + B.T) / 2, 5 * (n + 5) * UNIT_ROUNDOFF * square

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
        return self.proof(np.nan_to_num(C))

    def proof(self, C: FloatArray) -> Bracket:
        """Return the two bounds."""
        r = len(C)
        size = float(enclose_norm(C).upper)
        # tr(AM) with what the energy is off by, and log det M by that of CC'.
        trace = (Enclosure.of(self.A @ C) * C).sum(axis=1).sum()
        formed = gamma_n(r + 8) * float(enclose_norm(self.A).upper) * size**2
        formed += self._energy_error * size**2
        M = enclose_congruence(C, np.eye(r))
        upper = trace - enclose_log_det(M).value - float(r)
        upper = upper + Enclosure(0.0, (formed + self._missing_error) * (1 + 16 * UNIT_ROUNDOFF))
        note = "" if np.isfinite(upper.rad) else "core is singular"
        return Bracket(
            float(self._dual_value.lower),
            float(upper.upper),
            Point({"core": C}),
            note,
            lower_by="weak duality: log det(I + gamma S K0)",
            upper_by="objective of a positive definite kernel",
        )

    @cached_property
    def _dual_value(self) -> Enclosure:
        """log det A, with what A is off by (Lemma D2) and what the features miss."""
        found = enclose_log_det(self.A)
        if found.X is None:
            return found.value
        inverse = float(enclose_norm(found.X).upper) ** 2 / (1 - found.defect)
        change = log_det_change(inverse * (1 + 8 * UNIT_ROUNDOFF), self._energy_error)
        return found.value + change + Enclosure(0.0, self._missing_error)

    @property
    def _energy_error(self) -> float:
        """How far A may be off in the Frobenius norm: its energy, and its own two roundings."""
        rounding = 4 * UNIT_ROUNDOFF * float(enclose_norm(self.A).upper)
        return (self.gamma * self.energy_error + rounding) * (1 + 8 * UNIT_ROUNDOFF)

    @property
    def _missing_error(self) -> float:
        """What K0 - Phi Phi' may add: |log det(I + CE)|, |C| <= 2 gamma, with room for C's own."""
        share = self.gamma * self.missing
        return share * (1 + 2 * share) if share < 0.5 else float("inf")

    @cached_property
    def _factor(self) -> FloatArray:
        """L with A = LL'."""
        return cast(FloatArray, np.linalg.cholesky(self.A))

    @cached_property
    def _best(self) -> FloatArray:
        """L^-T."""
        from scipy.linalg.lapack import dtrtri

        return cast(FloatArray, np.triu(dtrtri(self._factor.T, lower=0)[0]))
