"""Regularised least squares over all kernels: the best one has the rank of the targets, and a small equation gives it.

    minimise over K >= 0   tr Y'(K_JJ + I/C)^-1 Y / 2 + mu tr(K L)                                  ((6), (7) of [1])

L is positive definite; J are the labelled points, or all points, Y = 0 on the others. With G =
(L^-1)_JJ the dual is

    maximise over A   tr A'Y - ||A||^2 / (2C)   subject to   A'G A <= 2 mu I,

since <K, mu L - AA'/2> is bounded below on K >= 0 only if AA' <= 2 mu L. The multiplier N >= 0 of
the constraint, a matrix of the order of the number of columns of Y, solves a small equation
(`klopt.problems._spectral.secular`), and

    K = R A N A'R' / (2 mu),   R = (L^-1)_:J.

For one column N is a number and K has rank one. The bracket judges: K from above, A, scaled into
its constraint, from below.

[1] Mao, Tsang, Parameter-free spectral kernel learning, 2010. It prints the SDP of (6) with tau for
tau / 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import EPS, FloatArray, SparseMatrix, csc, require_memory
from klopt.errors import InvalidProblem
from klopt.model.cones import Cones, Feature, smat, svec, svec_places, svec_size
from klopt.model.forms import ConeForm, ExplicitForm, Start
from klopt.model.problem import Bracket, Formulation, Point
from klopt.problems._spectral.secular import Secular, single_target

__all__ = ["FreeKernel"]


@dataclass(frozen=True, eq=False)
class FreeKernel:
    """The problem over all kernels; solutions have the array `factor`, F with K = FF'."""

    L: SparseMatrix
    """The Laplacian with its ridge."""
    J: npt.NDArray[np.intp]
    Y: FloatArray
    C: float
    mu: float

    def formulations(self) -> tuple[Formulation, ...]:
        """Return the small equation and the semidefinite program."""
        rule, psd = ExplicitForm(self._closed_form), frozenset({Feature.CONE, Feature.PSD})
        kind = (
            "secular equation"
            if self.Y.shape[1] == 1
            else "equation for a matrix of the number of classes"
        )
        because = f"the dual has one constraint A'GA <= 2 mu I, and its multiplier solves a {kind}"
        schur = "Schur's complement: T >= Y'(K_JJ + I/C)^-1 Y"
        return (
            Formulation("explicit", rule.needs, lambda: rule, self._unflattened, because=because),
            Formulation("SDP", psd, self._sdp, self._from_sdp, self._to_sdp, schur),
        )

    def bracket(self, point: Point) -> Bracket:
        """Return the value of K = FF' and that of the dual point it suggests."""
        F, A = self._evaluated(point.factor)
        upper = float(np.vdot(A, self.Y)) / 2 + self.mu * float(np.vdot(F, self.L @ F))
        suggested = [A, *map(_finite, point.dual.values())]
        lower, A = max((self._dual_value(A) for A in suggested), key=lambda pair: pair[0])
        rounding = EPS * (8 + len(A)) * upper
        return Bracket(lower - rounding, upper + rounding, Point({"factor": F}, {"A": A}))

    def kernel(self, point: Point) -> FloatArray:
        """Return FF'."""
        return point.factor @ point.factor.T

    def decide(self, point: Point, known: npt.NDArray[np.intp]) -> FloatArray:
        """Return K_:l (K_ll + I/C)^-1 Y_l."""
        F_l, Y_l = point.factor[known], self.Y[np.isin(self.J, known)]
        inner = F_l.T @ F_l + np.eye(F_l.shape[1]) / self.C
        scores = point.factor @ np.linalg.solve(inner, F_l.T @ Y_l)
        return np.asarray(scores[:, 0] if scores.shape[1] == 1 else scores)

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

    def _evaluated(self, factor: FloatArray) -> tuple[FloatArray, FloatArray]:
        """F and A = (K_JJ + I/C)^-1 Y; zero and C Y where F is so large that I/C is rounding beside K."""
        from scipy.linalg.lapack import dposv

        F = _finite(factor)
        F_J = F[self.J]
        K = F_J @ F_J.T
        K.flat[:: len(K) + 1] += 1 / self.C
        _, A, failed = dposv(K, self.Y)
        return (0 * F, self.C * self.Y) if failed else (F, np.asarray(A))

    def _dual_value(self, A: FloatArray) -> tuple[float, FloatArray]:
        """The dual value of A at its best length within the constraint, and A of that length."""
        aligned, size, bends = (
            float(np.vdot(A, self.Y)),
            float(np.vdot(A, A)) / self.C,
            A.T @ self.G @ A,
        )
        bend = float(bends[0, 0] if len(bends) == 1 else np.linalg.eigvalsh(bends)[-1])
        if not (aligned > 0 and bend > 0):
            return 0.0, 0 * A
        length = min(float(np.sqrt(2 * self.mu / bend)), aligned / size)
        return length * aligned - length * length * size / 2, length * A

    def _closed_form(self) -> tuple[FloatArray, FloatArray]:
        if self.Y.shape[1] == 1:
            nu, a = single_target(self.G, self.Y[:, 0], self.C, self.mu)
            return self.R @ (float(np.sqrt(nu / (2 * self.mu))) * a), a
        w, Q = np.linalg.eigh(self.G)
        equation = Secular(np.maximum(w, 0.0), Q.T @ self.Y, self.C, self.mu)
        N = equation.solve()
        A = Q @ equation.rows(N)[0]
        values, vectors = np.linalg.eigh(N)
        half = vectors * np.sqrt(np.maximum(values, 0.0) / (2 * self.mu))
        return (self.R @ (A @ half)).ravel(), A.ravel()

    def _unflattened(self, x: FloatArray, y: FloatArray | None) -> Point:
        return Point(
            {"factor": x.reshape(self.L.shape[0], -1)},
            {} if y is None else {"A": y.reshape(self.Y.shape)},
        )

    def _sdp(self) -> ConeForm:
        """Minimise tr T / 2 + mu <L, K>, [[K_JJ + I/C, Y], [Y', T]] >= 0, K >= 0, x = (svec K, svec T)."""
        n, (p, c) = self.L.shape[0], self.Y.shape
        places = svec_places(n)[np.ix_(self.J, self.J)], svec_size(n) + svec_places(c)
        block, columns = svec_places(p + c), svec_size(n) + svec_size(c)
        inside = [(block[:p, :p], places[0]), (block[p:, p:], places[1])]
        lower = [
            (rows[np.tril_indices(len(rows))], at[np.tril_indices(len(at))]) for rows, at in inside
        ]
        rows, at = (np.concatenate(parts) for parts in zip(*lower, strict=True))
        schur = sparse.csc_array(
            (-np.ones(rows.size), (rows, at)), shape=(svec_size(p + c), columns)
        )
        kernel = sparse.hstack(
            [-sparse.eye_array(svec_size(n)), sparse.csc_array((svec_size(n), svec_size(c)))]
        )
        constant = np.zeros((p + c, p + c))
        constant[:p, :p], constant[:p, p:], constant[p:, :p] = np.eye(p) / self.C, self.Y, self.Y.T
        b = np.concatenate([svec(constant), np.zeros(svec_size(n))])
        cost = np.concatenate([self.mu * svec(self.L.toarray()), svec(np.eye(c)) / 2])
        return ConeForm(cost, csc("A", sparse.vstack([schur, kernel])), b, Cones(psd=(p + c, n)))

    def _from_sdp(self, x: FloatArray, y: FloatArray | None) -> Point:
        values, vectors = np.linalg.eigh(smat(x[: svec_size(self.L.shape[0])]))
        primal = {"factor": vectors * np.sqrt(np.maximum(values, 0.0))}
        if y is None:
            return Point(primal)
        p, c = self.Y.shape  # the multiplier of the first block is (A, -I)(A, -I)' / 2
        return Point(primal, {"A": -2 * smat(y[: svec_size(p + c)])[:p, p:]})

    def _to_sdp(self, point: Point) -> Start:
        F, A = self._evaluated(point.factor)
        return Start(np.concatenate([svec(F @ F.T), svec(self.Y.T @ A)]))


def _finite(array: FloatArray) -> FloatArray:
    return array if np.isfinite(array).all() else np.nan_to_num(array)
