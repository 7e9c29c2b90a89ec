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

Many gammas share K0 = Q B Q' with a band B and Q nearly orthogonal, by how much is proven
(`klopt.proof.band_form`): I + gamma B is factored in O(n) for a band of fixed width, which gives
log det(I + gamma K0) and a V = Q (I + gamma B)^-1 Q'U. All else is as above.

**By features**, K0 = Phi Phi' with r columns. With A = I + gamma Phi'S Phi the kernels Phi M Phi',
M > 0 of order r, have the objective

    f(M) = tr(A M) - log det M - r;

kernels whose features are not those of K0 are infinitely far from it. Since tr(A M) - log det(A M)
is at least r, no M falls below log det A, the dual value, and M = A^-1 attains it. With A = LL' and
M = CC' the solution is C = L^-T, in O(n r^2 + r^3).

**Lemma L3 (energy).** By Lemma E2 of `klopt.proof.enclosure` and Cauchy's inequality the computed
product of matrices X (a x m) and Y is off by gamma_m || |X||Y| ||_F <= gamma_m ||X||_F ||Y||_F in
the Frobenius norm; || |X||Y| ||_F <= || |X| ||_2 ||Y||_F where that is known to be smaller. What a
factor is off by is multiplied by the norm of the other one.

**Lemma L4 (missing features).** Let -d I <= S <= s I with d >= 0, G = Phi Phi' and A > 0. For every
symmetric E with s' ||E||_* < 1, ||E||_* the sum of its absolute eigenvalues,

    |log det(I + gamma S (G + E)) - log det(I + gamma S G)| <= -log(1 - s' ||E||_*),
    s' = gamma max(s, d (1 + gamma s ||Phi||^2 ||A^-1||)^2).

For C = gamma S (I + gamma G S)^-1 = gamma S - gamma^2 S Phi A^-1 Phi'S is symmetric and at most gamma
S; with y = (I + gamma G S)^-1 x, x'Cx = gamma y'Sy + gamma^2 y'SGSy >= -gamma d ||y||^2, and ||y|| is
at most (1 + gamma s ||Phi||^2 ||A^-1||) ||x||. The rest is Lemma D2 of `klopt.proof.log_det`. (d <=
s is taken as well, so that ||S|| <= s.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from klopt.arrays import FloatArray, SparseMatrix, require_memory
from klopt.kernels.gram import Gram
from klopt.model.problem import Bracket, Point
from klopt.proof.band_form import BandFactor, BandForm, Proposal, cholesky_log_det_error
from klopt.proof.directed import norm_up, product_up, quotient_up, sum_up
from klopt.proof.enclosure import (
    ETA,
    UNIT_ROUNDOFF,
    Enclosure,
    enclose_norm,
    enclose_sum,
    gamma as gamma_n,
)
from klopt.proof.log_det import (
    LogDet,
    enclose_congruence,
    enclose_log_det,
    enclose_relative_log_det,
    log_det_change,
)
from klopt.proof.semidefinite import eigenvalue_floor, spectral_norm_bound

__all__ = [
    "BandKernel",
    "FeatureObjective",
    "GroupObjective",
    "LowRankLaplacian",
    "ShiftedInverse",
    "factored_objective",
    "laplacian_energy",
    "laplacian_range",
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
        The logarithm of the determinant of I + gamma K0, enclosed.
    floor
        A lower bound of the eigenvalues of K0, 0 or below it by rounding.
    """

    K0: FloatArray
    gamma: float
    X: FloatArray
    logdet: Enclosure
    floor: float

    @classmethod
    def of(cls, K0: Gram, gamma: float) -> ShiftedInverse:
        """Return the inverse by one Cholesky factorisation, in place: n^3 flops, one matrix."""
        from scipy.linalg.lapack import dpotri

        factor, logdet = _factored(K0, gamma)
        X = dpotri(factor, lower=1, overwrite_c=1)[0].T
        mirror_upper(X)
        return cls(K0.matrix, gamma, X, logdet, K0.floor)

    def objective(self, laplacian: LowRankLaplacian) -> GroupObjective:
        """Return the objective as a function of H."""
        V = cast(FloatArray, (laplacian.U.T @ self.X).T)
        return _objective(self.K0, V, laplacian, self.gamma, self.logdet, self.floor)


def factored_objective(K0: Gram, gamma: float, laplacian: LowRankLaplacian) -> GroupObjective:
    """Return the objective by one Cholesky factorisation, without the inverse: n^3 / 3 flops."""
    from scipy.linalg.lapack import dpotrs

    factor, logdet = _factored(K0, gamma)
    V = np.ascontiguousarray(dpotrs(factor, laplacian.U.toarray(), lower=1)[0])
    return _objective(K0.matrix, V, laplacian, gamma, logdet, K0.floor)


def _factored(K0: Gram, gamma: float) -> tuple[FloatArray, Enclosure]:
    """The lower Cholesky factor of I + gamma K0, and log det(I + gamma K0)."""
    from scipy.linalg.lapack import dpotrf

    n = K0.size
    require_memory(16.0 * n * n, f"the kernel of {n} points")
    A = K0.matrix * gamma
    A.flat[:: n + 1] += 1.0
    diagonal = A.diagonal().copy()

    factor, failed = dpotrf(A.T, lower=1, overwrite_a=1, clean=0)
    assert not failed, "I + gamma K0 has eigenvalues of at least 1 up to rounding"
    logs = Enclosure.of(factor.diagonal().copy()).log().sum() * 2.0
    # Enclosed: the logarithms, and how far the factor is off.
    error = logs.rad + cholesky_log_det_error(diagonal, 1 + gamma * K0.floor, n + 5)
    return factor, Enclosure(logs.mid, error * (1 + 4 * UNIT_ROUNDOFF))


def _objective(
    K0: FloatArray,
    V: FloatArray,
    laplacian: LowRankLaplacian,
    gamma: float,
    logdet: Enclosure,
    floor: float,
) -> GroupObjective:
    """The objective for any V, about (I + gamma K0)^-1 U."""
    B = _kernel_columns(K0, V, floor)
    return GroupObjective(laplacian.R, laplacian.U, V, B, gamma, logdet, floor)


@dataclass(frozen=True, eq=False)
class BandKernel:
    """K0 as a band, which many gammas share.

    Parameters
    ----------
    K0
        The given kernel.
    laplacian
        S = I - U R U'.
    form
        K0 = Q B Q', nearly.
    """

    K0: Gram
    laplacian: LowRankLaplacian
    form: BandForm

    @classmethod
    def of(cls, K0: Gram, laplacian: LowRankLaplacian, propose: Proposal) -> BandKernel:
        """Return the band, by proposed reflections: 4/3 n^3 flops."""
        n = K0.size
        require_memory(24.0 * n * n, f"the band form of a kernel of {n} points")
        return cls(K0, laplacian, BandForm.of(K0.matrix, propose))

    def objectives(self, bands: Sequence[BandFactor]) -> tuple[GroupObjective, ...]:
        """Return the objectives, as functions of H, for the gammas of some factors."""
        U = self.laplacian.U
        groups = U.shape[1]
        for band in bands:
            assert band.complete, "I + gamma K0 has eigenvalues of at least 1 up to rounding"
        # All gammas at once, so that Q and K0 are read from memory once.
        rotated = self.form.rotate(U.toarray())
        solved = [band.solve(rotated) for band in bands]
        V = self.form.rotate_back(np.concatenate([np.zeros((self.K0.size, 0)), *solved], axis=1))
        KV = _kernel_columns(self.K0.matrix, V, self.K0.floor)

        objectives = []
        for i, band in enumerate(bands):
            own = slice(i * groups, (i + 1) * groups)
            objectives.append(
                GroupObjective(
                    self.laplacian.R,
                    U,
                    np.ascontiguousarray(V[:, own]),
                    Enclosure(
                        np.ascontiguousarray(KV.mid[:, own]), np.ascontiguousarray(KV.rad[:, own])
                    ),
                    band.gamma,
                    band.log_det(self.K0.floor),
                    self.K0.floor,
                )
            )
        return tuple(objectives)


@dataclass(frozen=True, eq=False)
class GroupObjective:
    """f(H) and its bounds.

    Parameters
    ----------
    R, U
        S = I - U R U'.
    V
        A^-1 U, as computed: any matrix.
    KV
        K0 V, enclosed.
    gamma
        The weight of the graph.
    logdet
        log det A, enclosed.
    floor
        A lower bound of the eigenvalues of K0, 0 or below it by rounding.
    """

    R: FloatArray
    U: FloatArray | SparseMatrix
    V: FloatArray
    KV: Enclosure
    gamma: float
    logdet: Enclosure
    floor: float

    @property
    def B(self) -> FloatArray:
        """K0 V, as computed."""
        return cast(FloatArray, self.KV.mid)

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
        size = norm_up(B)
        rounding = product_up(size, gamma_n(len(B) + 4), size)
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
        # Y may be at underflow and H large.
        each = gamma_n(order + 4) * size + spread + ETA
        RY_error = norm_up(self.R) * each
        HY_error = norm_up(H) * each
        RY_size = norm_up(RY)
        HY_size = norm_up(HY)
        rad = (g * size + spread + ETA) * norm_up(change)
        rad += g * RY_size * HY_size + RY_error * (HY_size + HY_error) + RY_size * HY_error
        return Enclosure(mid, (rad + UNIT_ROUNDOFF * abs(mid)) * (1 + 32 * UNIT_ROUNDOFF) + ETA)

    @property
    def _logdet(self) -> Enclosure:
        """log det A, for the K0 that a stored one stands for."""
        # log(1 + gamma floor) for each negative eigenvalue.
        below = max(-self.gamma * self.floor, 0.0)
        error = 2 * len(self.V) * below if below < 0.5 else np.inf
        return Enclosure(self.logdet.mid, (self.logdet.rad + error) * (1 + 4 * UNIT_ROUNDOFF))

    @cached_property
    def _enclosed_Y(self) -> Enclosure:
        """U'U - U'V - V'D - D'XD, for the K0 that a stored one stands for."""
        U = self.U if isinstance(self.U, np.ndarray) else self.U.toarray()
        columns = Enclosure.of(U)
        V = Enclosure.of(self.V)
        D = columns - V - self.KV * self.gamma
        Y = U.T @ (columns - V) - V.T @ D
        smallest = 1 + self.gamma * self.floor
        size = (D * D).sum(axis=0).sqrt().upper
        if not smallest > 0.5:
            return Enclosure(Y.mid, np.full(Y.shape, np.inf))
        # |D'XD| entry by entry, and what N does to U'XU: at most gamma floor ||u_i|| ||u_j|| / a.
        rest = np.outer(size, size) * (2 * (1 + 8 * UNIT_ROUNDOFF))
        norms = (columns * columns).sum(axis=0).sqrt().upper
        moved = np.outer(norms, norms) * product_up(4.0, self.gamma, -self.floor)
        rad = Y.rad + (rest + moved) * (1 + 8 * UNIT_ROUNDOFF) + 2 * ETA
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


def _kernel_columns(K0: FloatArray, V: FloatArray, floor: float) -> Enclosure:
    """K0 V, by |K_ij| <= r_i r_j as in `enclose_kernel_product`."""
    n = len(K0)
    r = np.sqrt(K0.diagonal() - floor) * (1 + 8 * UNIT_ROUNDOFF)
    # A product that underflows may be one with a large r_i.
    size = r @ np.abs(V) + n * ETA
    rad = gamma_n(n + 8) * np.outer(r, size) * (1 + 2 * gamma_n(n + 16)) + 2 * n * ETA
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
    """Return Phi'S Phi, exactly symmetric, and a bound of its error in the Frobenius norm (L3)."""
    if isinstance(laplacian, LowRankLaplacian):
        B, error = _low_rank_energy(Phi, laplacian)
    else:
        B, error = _dense_energy(Phi, laplacian)
    energy = (B + B.T) / 2
    # The last addition, the sums of this function, and what may underflow in each entry.
    n, r = Phi.shape
    error += UNIT_ROUNDOFF * norm_up(energy) + 8 * (n + r) * r * ETA
    return energy, error * (1 + 32 * UNIT_ROUNDOFF)


def _dense_energy(Phi: FloatArray, S: FloatArray) -> tuple[FloatArray, float]:
    g = gamma_n(len(S))
    size = norm_up(Phi)
    SPhi = S @ Phi
    # What underflows here is multiplied by Phi, too.
    SPhi_error = product_up(size, spectral_norm_bound(S), g) + _lost(len(S), SPhi)
    return Phi.T @ SPhi, g * size * norm_up(SPhi) + size * SPhi_error


def _low_rank_energy(Phi: FloatArray, laplacian: LowRankLaplacian) -> tuple[FloatArray, float]:
    """Phi'Phi - (U'Phi)'R (U'Phi): S is not formed."""
    n, r = Phi.shape
    U = laplacian.U.tocsr()
    R = laplacian.R
    k = len(R)
    squares = np.zeros((r, r))
    P = np.zeros((k, r))
    for start in range(0, n, SUMMED_ROWS):
        rows = slice(start, start + SUMMED_ROWS)
        squares += Phi[rows].T @ Phi[rows]
        P += U[rows].T @ Phi[rows]
    RP = R @ P
    B = squares - P.T @ RP

    size = norm_up(Phi)
    # A term passes through the sum of its block and the sum of the blocks.
    g = gamma_n(min(n, SUMMED_ROWS) + n // SUMMED_ROWS + 1)
    P_error = g * np.sqrt(_columns_norm(laplacian.U)) * size + _lost(n, P)
    P_size = norm_up(P)
    RP_error = product_up(P_size, norm_up(R), gamma_n(k)) + _lost(k, RP)
    error = g * size * size + gamma_n(k) * P_size * norm_up(RP) + P_size * RP_error
    error += norm_up(R) * P_error * (2 * P_size + P_error)
    return B, float(error + UNIT_ROUNDOFF * norm_up(B))


def _lost(terms: int, product: FloatArray) -> float:
    """What underflow may take from a product of so many terms an entry, in the Frobenius norm."""
    return (terms + 4) * sum(product.shape) * ETA


def _columns_norm(U: SparseMatrix) -> float:
    """A bound of || |U| ||_2^2: the row sums of |U|'|U|, which is diagonal for disjoint groups."""
    sizes = abs(U)
    products = np.asarray((sizes.T @ sizes).toarray())
    return spectral_norm_bound(products) * (1 + 2 * gamma_n(U.shape[0] + 4))


def laplacian_range(laplacian: LowRankLaplacian | FloatArray) -> tuple[float, float]:
    """Return d >= 0 and s >= d with -d I <= S <= s I."""
    if isinstance(laplacian, LowRankLaplacian):
        # R <= t I gives U R U' <= max(t, 0) |U'U|, and alike from below.
        columns = _columns_norm(laplacian.U)
        above = max(-eigenvalue_floor(-laplacian.R), 0.0)
        below = max(-eigenvalue_floor(laplacian.R), 0.0)
        d = above * columns * (1 + 4 * UNIT_ROUNDOFF) - 1
        s = (1 + below * columns) * (1 + 8 * UNIT_ROUNDOFF)
    else:
        d = -eigenvalue_floor(laplacian, guess=0.0)
        s = spectral_norm_bound(laplacian)
    d = max(d, 0.0)
    return d, max(s, d)


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
        A bound of the sum of the absolute eigenvalues of K0 - Phi Phi'.
    spectrum
        d and s with -d I <= S <= s I, where something is missing.
    gamma
        The weight of the graph.
    """

    Phi: FloatArray
    energy: FloatArray
    energy_error: float
    missing: float
    spectrum: tuple[float, float]
    gamma: float

    @classmethod
    def of_features(
        cls, Phi: FloatArray, laplacian: LowRankLaplacian | FloatArray, gamma: float
    ) -> FeatureObjective:
        """Return the objective for the kernel Phi Phi'."""
        return cls(Phi, *laplacian_energy(Phi, laplacian), 0.0, (0.0, 0.0), gamma)

    @classmethod
    def of_matrix(
        cls, K0: Gram, laplacian: LowRankLaplacian | FloatArray, gamma: float
    ) -> FeatureObjective:
        """Return the objective for a matrix, by its pivoted Cholesky factor."""
        Phi = np.ascontiguousarray(K0.factor().T)
        # Negative eigenvalues of K0 within its floor count as 0.
        missing = np.sqrt(K0.size) * K0.factor_error() - K0.size * K0.floor
        missing *= 1 + 8 * UNIT_ROUNDOFF
        energy = laplacian_energy(Phi, laplacian)
        return cls(Phi, *energy, float(missing), laplacian_range(laplacian), gamma)

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
        formed = gamma_n(r + 8) * float(enclose_norm(self.A).upper) + self._energy_error
        formed = product_up(size, formed, size)
        M = enclose_congruence(C, np.eye(r))
        upper = trace - enclose_log_det(M).value - float(r)
        upper = upper + Enclosure(0.0, formed * (1 + 16 * UNIT_ROUNDOFF)) + self._missing_change
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
        found = self._log_det
        change = log_det_change(self._inverse_norm, self._energy_error)
        return found.value + change + self._missing_change

    @cached_property
    def _log_det(self) -> LogDet:
        return enclose_log_det(self.A)

    @cached_property
    def _inverse_norm(self) -> float:
        """A bound of the sum of the eigenvalues of A^-1; infinite where A is not proven definite."""
        found = self._log_det
        if found.X is None:
            return np.inf
        size = norm_up(found.X)
        return quotient_up(product_up(size, size), (1 - found.defect) * (1 - 4 * UNIT_ROUNDOFF))

    @property
    def _energy_error(self) -> float:
        """How far A may be off in the Frobenius norm: its energy, and its own two roundings."""
        rounding = 4 * UNIT_ROUNDOFF * norm_up(self.A)
        return (self.gamma * self.energy_error + rounding) * (1 + 8 * UNIT_ROUNDOFF)

    @cached_property
    def _missing_change(self) -> Enclosure:
        """What K0 - Phi Phi' may add to log det(I + gamma S K0): Lemma L4."""
        if not self.missing:
            return Enclosure(0.0, 0.0)
        # A is known up to its error: 1 / (lambda_min - error) bounds the inverse of the exact one.
        inverse = self._inverse_norm
        kept = 1 - inverse * self._energy_error
        if not kept > 0.5:
            return Enclosure(0.0, np.inf)
        d, s = self.spectrum
        size = norm_up(self.Phi)
        stretch = sum_up(1.0, product_up(2.0, self.gamma, s, size, size, inverse))
        norm = product_up(self.gamma, max(s, product_up(d, stretch, stretch)))
        return log_det_change(norm, self.missing)

    @cached_property
    def _factor(self) -> FloatArray:
        """L with A = LL'."""
        return cast(FloatArray, np.linalg.cholesky(self.A))

    @cached_property
    def _best(self) -> FloatArray:
        """L^-T."""
        from scipy.linalg.lapack import dtrtri

        return cast(FloatArray, np.triu(dtrtri(self._factor.T, lower=0)[0]))
