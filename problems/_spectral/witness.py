"""Proposals for the proofs about spectral kernels: fits, dual matrices and levels.

With G = (L^-1)_JJ the dual of regularised least squares over all kernels is

    maximise over A   tr A'Y - ||A||^2 / (2C)   subject to   A'G A <= 2 mu I.

K gives the upper bound by way of A = (K_JJ + I/C)^-1 Y, and A, scaled into its constraint, the
lower one. In an eigenspace the directions of Y_g are best: the loss falls with lam as A does,
concave in A, so that to share A among other directions costs more. Mao, Tsang (2010) print 1/C
inside the root of (8), which is not the minimiser.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from klopt.arrays import FloatArray, require_memory
from klopt.errors import InvalidProblem
from klopt.model.problem import Bracket, Point
from klopt.problems._spectral.proof import CurveBounds, FreeBounds, SpectralBounds

__all__ = ["AlignmentCurve", "FreeLeastSquares", "SpectralLeastSquares"]

LEVEL_TIE = 1e-12
"""Relative difference below which two r_i are equal."""


@dataclass(frozen=True, eq=False)
class SpectralLeastSquares(SpectralBounds):
    """Regularised least squares over the kernels that commute with a Laplacian."""

    def witness(self, point: Point) -> Point:
        """Return the nearest spectrum and the multipliers of Lemma S1."""
        lam = np.maximum(_finite(point.spectrum), 0.0)
        return Point({"spectrum": lam}, {"a": self.multipliers})

    def proof(self, witness: Point) -> Bracket:
        """Return the value at the spectrum and the dual value, sums over the directions."""
        return Bracket(
            self.lower,
            self.upper(witness.spectrum),
            witness,
            lower_by="weak duality, direction by direction",
            upper_by="value at an exactly feasible point",
        )


@dataclass(frozen=True, eq=False)
class FreeLeastSquares(FreeBounds):
    """Regularised least squares over all kernels."""

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

    def witness(self, point: Point) -> Point:
        """Return F with the fit of Lemma S2, and the best of the matrices suggested for Lemma S3."""
        F, fit = self.evaluated(point.factor)
        suggested = [fit]
        for name, A in point.dual.items():
            if name != "fit" and A.shape == fit.shape:
                suggested.append(_finite(A))
        best = fit if len(suggested) == 1 else max(suggested, key=self._dual_value)
        return Point({"factor": F}, {"A": best, "fit": fit})

    def proof(self, witness: Point) -> Bracket:
        """Return the value of K = FF' and the dual value of A at its best length."""
        note = ""
        if not self.floor > 0:
            note = "laplacian with its ridge is not proven positive definite; give a larger ridge"
        return Bracket(
            self.lower(witness.A, self.R @ witness.A),
            self.upper(witness.factor, witness.fit),
            witness,
            note,
            lower_by="weak duality: A scaled into A'L^-1 A <= 2 mu I",
            upper_by="value at an exactly feasible point",
        )

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

    def _dual_value(self, A: FloatArray) -> float:
        """About the dual value of A at its best length within the constraint."""
        aligned = float(np.vdot(A, self.Y))
        size = float(np.vdot(A, A)) / self.C
        constrained = A.T @ self.G @ A
        if len(constrained) == 1:
            largest = float(constrained[0, 0])
        else:
            largest = float(np.linalg.eigvalsh(constrained)[-1])
        if not (aligned > 0 and largest > 0):
            return 0.0
        length = min(float(np.sqrt(2 * self.mu / largest)), aligned / size)
        return length * aligned - length * length * size / 2


def _finite(array: FloatArray) -> FloatArray:
    return array if np.isfinite(array).all() else np.nan_to_num(array)


@dataclass(frozen=True, eq=False)
class AlignmentCurve(CurveBounds):
    """The alignment h(t) of spectral kernels with the target."""

    @classmethod
    def of_directions(cls, A: FloatArray, B: FloatArray, target_norm: float) -> AlignmentCurve:
        """Return the curve of r_i = (A_i / (2 B_i))^1/2; those that differ by rounding are equal.

        At the top of the curve they would be told apart.
        """
        r = np.sqrt(A / (2 * B))
        order = np.argsort(-r, kind="stable")
        falling = r[order]
        first = np.append(True, -np.diff(falling) > LEVEL_TIE * falling[:-1])
        r[order] = falling[np.maximum.accumulate(np.where(first, np.arange(r.size), 0))]
        return cls(r, A, target_norm)

    @property
    def best_level(self) -> float:
        """The level of the largest alignment: the best of the ends and stationary points."""
        s = self.pieces
        r = self.r[self._order]
        below = np.append(r[1:], 0.0)
        best = 0.0
        highest = -np.inf
        for x_p, x_q in self.proposals:
            square = x_p * x_p * s.pp + 2 * x_p * x_q * s.pq + x_q * x_q * s.qq
            aligned = x_p * s.a_p + x_q * s.a_q
            with np.errstate(divide="ignore", invalid="ignore"):
                h = np.where(square > 0, aligned / np.sqrt(square), -np.inf)
            k = int(np.argmax(h))
            if h[k] > highest:
                highest = float(h[k])
                best = float((x_p[k] * r[k] + x_q[k] * below[k]) / (x_p[k] + x_q[k]))
        return best

    def witness(self, point: Point) -> Point:
        """Return the nearest level of the curve; one that is not finite is taken as 0."""
        level = float(point.level)
        level = min(max(level, 0.0), self._top) if math.isfinite(level) else 0.0
        return Point({"level": level})

    def proof(self, witness: Point) -> Bracket:
        """Return the alignment at the level and the largest over all pieces."""
        return Bracket(
            self.lower(float(witness.level)),
            self.upper,
            witness,
            note="upper: the largest alignment over all pieces of the curve",
            lower_by="alignment at a level of the curve",
            upper_by="the largest alignment over all pieces of the curve",
        )
