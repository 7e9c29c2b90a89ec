"""What spectra, kernels and levels prove about spectral kernels.

Kernels that commute with the Laplacian (`SpectralLeastSquares`). With the directions U, A, B of
`klopt.problems._spectral.data`, K = U diag(lam) U' and rest = ||Y||^2 - sum A (what the directions
that were left out see of the labels),

    minimise over lam >= 0   sum_i A_i / (lam_i + 1/C) / 2 + mu B_i lam_i  +  C rest / 2
    solution                 lam_i = [(A_i / (2 mu B_i))^1/2 - 1/C]_+
    dual bound               sum_i a_i A_i^1/2 - a_i^2 / (2C)  +  C rest / 2,
                             a_i = min(C A_i^1/2, (2 mu B_i)^1/2).

In an eigenspace the directions of Y_g are best: the loss falls with lam as A does, concave in A, so
that to share A among other directions costs more. Mao, Tsang (2010) print 1/C inside the root of
(8), which is not the minimiser.

All kernels (`FreeLeastSquares`).

    minimise over K >= 0   tr Y'(K_JJ + I/C)^-1 Y / 2 + mu tr(K L)

((6) and (7) of Mao, Tsang). L is positive definite; J are the labelled points, or all points, Y = 0
on the others. With G = (L^-1)_JJ the dual is

    maximise over A   tr A'Y - ||A||^2 / (2C)   subject to   A'G A <= 2 mu I,

since <K, mu L - AA'/2> is bounded below on K >= 0 only if AA' <= 2 mu L. K gives the upper bound,
and A, scaled into its constraint, the lower one.

Alignment (`AlignmentCurve`). With r_i = (A_i / (2 B_i))^1/2 and the target T of the labelled points

    maximise over 0 <= t < max r   h(t) = sum_i lam_i A_i / (||lam|| ||T||),    lam_i = [r_i - t]_+.

On the piece where the k largest r_i exceed t, with their mean m, S = sum (r_i - m)^2, X = sum A_i
(r_i - m), Z = sum A_i and u = m - t,

    h = (X + Z u) / (S + k u^2)^1/2 / ||T||,    h' has the sign of  Z S - k X u,

so that it has one stationary point, u = Z S / (k X), a maximum, if X > 0, and rises with u
otherwise. The best of these points that lie on their piece and of the ends of the pieces is the
maximum: that enumeration, O(n log n), proves the upper bound.

Mao, Tsang (2010), Parameter-free spectral kernel learning, (6), (7), (8) and Propositions 2 to 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from klopt.arrays import EPS, FloatArray, SparseMatrix, require_memory
from klopt.errors import InvalidProblem
from klopt.model.problem import Bracket, Point

__all__ = ["AlignmentCurve", "FreeLeastSquares", "SpectralLeastSquares"]

LEVEL_TIE = 1e-12
"""Relative difference below which two r_i are equal."""


# --- kernels that commute with the Laplacian


@dataclass(frozen=True, eq=False)
class SpectralLeastSquares:
    """Bounds over the kernels that commute with a Laplacian.

    Parameters
    ----------
    A, B : arrays
        Strength and roughness of the directions.
    Y : array
        Targets of the labelled points.
    C, mu : float
        Penalties of errors and of rough kernels.
    """

    A: FloatArray
    B: FloatArray
    Y: FloatArray
    C: float
    mu: float

    @property
    def rest(self) -> float:
        """What is lost for every kernel: C ||Y||^2 / 2 beyond the directions."""
        return self.C * max(float(np.sum(self.Y**2)) - float(self.A.sum()), 0.0) / 2

    def bracket(self, point: Point) -> Bracket:
        """Return the value at the nearest spectrum and the dual value, sums over the directions."""
        lam = np.maximum(np.nan_to_num(point.spectrum), 0.0)
        losses = self.A / (lam + 1 / self.C) / 2
        upper = float(np.sum(losses + self.mu * self.B * lam)) + self.rest

        a = np.minimum(self.C * np.sqrt(self.A), np.sqrt(2 * self.mu * self.B))
        lower = float(np.sum(a * np.sqrt(self.A) - a * a / (2 * self.C))) + self.rest
        solved = Point({"spectrum": lam}, {"a": a})
        return Bracket(lower * (1 - 8 * EPS), upper * (1 + 8 * EPS), solved)


# --- all kernels


@dataclass(frozen=True, eq=False)
class FreeLeastSquares:
    """Bounds over all kernels.

    Parameters
    ----------
    L : sparse matrix
        The Laplacian with its ridge.
    J : array
        The points that are fitted.
    Y : array
        Their targets.
    C, mu : float
        Penalties of errors and of rough kernels.
    """

    L: SparseMatrix
    J: npt.NDArray[np.intp]
    Y: FloatArray
    C: float
    mu: float

    @cached_property
    def R(self) -> FloatArray:
        """(L^-1)_:J."""
        from scipy.linalg.lapack import dposv

        n = self.L.shape[0]
        require_memory(24.0 * n * n, f"the inverse of a Laplacian of order {n}")
        _, R, failed = dposv(self.L.toarray(), np.eye(n)[:, self.J])
        if failed:
            raise InvalidProblem(
                "laplacian is singular, so there is no best kernel; give a positive ridge"
            )
        return np.asarray(R)

    @cached_property
    def G(self) -> FloatArray:
        """(L^-1)_JJ."""
        G = self.R[self.J]
        return (G + G.T) / 2

    def bracket(self, point: Point) -> Bracket:
        """Return the value of K = FF' and the best of the dual values that the point suggests."""
        F, A = self.evaluated(point.factor)
        upper = float(np.vdot(A, self.Y)) / 2 + self.mu * float(np.vdot(F, self.L @ F))
        suggested = [A, *map(_finite, point.dual.values())]
        lower, A = max((self._dual_value(A) for A in suggested), key=lambda pair: pair[0])
        rounding = EPS * (8 + len(A)) * upper
        return Bracket(lower - rounding, upper + rounding, Point({"factor": F}, {"A": A}))

    def evaluated(self, factor: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return F and A = (K_JJ + I/C)^-1 Y.

        They are zero and C Y where F is so large that I/C is rounding beside K.
        """
        from scipy.linalg.lapack import dposv

        F = _finite(factor)
        F_J = F[self.J]
        K = F_J @ F_J.T
        K.flat[:: len(K) + 1] += 1 / self.C
        _, A, failed = dposv(K, self.Y)
        if failed:
            return 0 * F, self.C * self.Y
        return F, np.asarray(A)

    def _dual_value(self, A: FloatArray) -> tuple[float, FloatArray]:
        """The dual value of A at its best length within the constraint, and A of that length."""
        aligned = float(np.vdot(A, self.Y))
        size = float(np.vdot(A, A)) / self.C
        constrained = A.T @ self.G @ A
        if len(constrained) == 1:
            largest = float(constrained[0, 0])
        else:
            largest = float(np.linalg.eigvalsh(constrained)[-1])
        # No multiple of A is better than 0.
        if not (aligned > 0 and largest > 0):
            return 0.0, 0 * A
        length = min(float(np.sqrt(2 * self.mu / largest)), aligned / size)
        return length * aligned - length * length * size / 2, length * A


def _finite(array: FloatArray) -> FloatArray:
    return array if np.isfinite(array).all() else np.nan_to_num(array)


# --- alignment


@dataclass(frozen=True, eq=False)
class AlignmentCurve:
    """The alignment h(t) of spectral kernels with the target, from A, B and ||T||."""

    A: FloatArray
    B: FloatArray
    target_norm: float

    @cached_property
    def r(self) -> FloatArray:
        """The r_i; those that differ by rounding only are made equal.

        At the top of the curve they would be told apart.
        """
        r = np.sqrt(self.A / (2 * self.B))
        order = np.argsort(-r, kind="stable")
        falling = r[order]
        first = np.append(True, -np.diff(falling) > LEVEL_TIE * falling[:-1])
        r[order] = falling[np.maximum.accumulate(np.where(first, np.arange(r.size), 0))]
        return r

    def weights(self, level: float) -> FloatArray:
        """Return [r - level]_+ and, at the top of the curve, its limit: the largest r alone."""
        weights = np.maximum(self.r - level, 0.0)
        # The curve itself ends before its top, where all weights vanish.
        if weights.any():
            return weights
        return np.asarray(self.r == self.r.max(), dtype=np.float64)

    def alignment(self, level: float) -> float:
        """Return h at a level."""
        weights = self.weights(level)
        norm = float(np.linalg.norm(weights)) * self.target_norm
        return float(weights @ self.A) / norm

    @cached_property
    def candidates(self) -> tuple[FloatArray, FloatArray]:
        """Levels that can be best, and their alignments."""
        order = np.argsort(-self.r, kind="stable")
        r = self.r[order]
        A = self.A[order]
        k = np.arange(1.0, r.size + 1)
        below = np.append(r[1:], 0.0)
        Z = np.cumsum(A)
        mean = np.cumsum(r) / k

        # Sums about the mean by their updates: as differences of plain sums they would lose their
        # digits.
        step = r - np.append(r[0], mean[:-1])
        change = A - np.append(A[0], (Z / k)[:-1])
        S = np.cumsum((1 - 1 / k) * step**2)
        X = np.cumsum(change * (1 - 1 / k) * step)

        with np.errstate(divide="ignore", invalid="ignore"):
            u = np.where(X > 0, Z * S / (k * X), np.inf)
            inside = (mean - u > below) & (mean - u < r)
            stationary = np.sqrt(X**2 / S + Z**2 / k)
        # A tie makes a piece of no length.
        ends = below < r
        u_end = mean - below
        at_end = (X + Z * u_end)[ends] / np.sqrt(S + k * u_end**2)[ends]
        levels = np.concatenate([below[ends], (mean - u)[inside]])
        return levels, np.concatenate([at_end, stationary[inside]]) / self.target_norm

    @property
    def best_level(self) -> float:
        """The level of the largest alignment."""
        levels, alignments = self.candidates
        return float(levels[int(np.argmax(alignments))])

    def bracket(self, point: Point) -> Bracket:
        """Return the alignment at the level and the largest over all pieces."""
        # A level that is not finite proves as much as any other: 0 is taken.
        level = 0.0
        if np.isfinite(point.level):
            level = float(np.clip(point.level, 0.0, self.r.max()))
        lower = self.alignment(level) * (1 - 8 * EPS)
        rounding = EPS * (8 + float(np.sqrt(self.r.size)))
        upper = float(self.candidates[1].max()) * (1 + rounding)
        note = "upper: the largest alignment over all pieces of the curve"
        return Bracket(lower, upper, Point({"level": level}), note)
