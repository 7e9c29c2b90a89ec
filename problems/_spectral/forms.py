"""Closed forms and cone programs of regularised least squares over kernels on a graph.

Spectral kernels have the closed form lam_i = [(A_i / (2 mu B_i))^1/2 - 1/C]_+ for each direction,
and the second-order cone program of  v_i >= 1 / root_i,  v_i w_i >= 1,  v = (1 + C lam) / root.

Of all kernels the best one has the rank of the targets. The multiplier N >= 0 of the dual's
constraint A'G A <= 2 mu I (`klopt.problems._spectral.proof`), a matrix of the order of the number
of columns of Y, solves a small equation (`klopt.problems._spectral.secular`), and

    K = R A N A'R' / (2 mu),   R = (L^-1)_:J.

For one column N is a number and K has rank one. Mao, Tsang (2010) print the semidefinite program of
(6) with tau for tau / 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import FloatArray, csc
from klopt.model.cones import Cones, smat, svec, svec_places, svec_size
from klopt.model.features import Feature
from klopt.model.forms import ConeForm, ExplicitForm, Start
from klopt.model.problem import Formulation, Point
from klopt.problems._spectral.secular import Secular, single_target
from klopt.problems._spectral.witness import FreeLeastSquares, SpectralLeastSquares

__all__ = ["FreeKernelForms", "SpectralKernelForms"]

MIN_ROOT = 1e-4
"""Directions whose root is smaller certainly have lam = 0 and stay out of the cone program."""


# --- spectral kernels


@dataclass(frozen=True, eq=False)
class SpectralKernelForms:
    """The forms over spectral kernels; solutions have `spectrum`, lam of each direction."""

    proof: SpectralLeastSquares

    def formulations(self) -> tuple[Formulation, ...]:
        """Return the closed form and the cone program."""
        rule = ExplicitForm(self._closed_form)
        closed = Formulation(
            "explicit",
            rule.needs,
            lambda: rule,
            _spectrum_point,
            because="each term is convex with one stationary point, lam = (A / (2 mu B))^1/2 - 1/C",
        )
        program = Formulation(
            "SOCP",
            frozenset({Feature.CONE, Feature.SOC}),
            self._socp,
            self._from_socp,
            self._to_socp,
            "the hyperbola v w >= 1 is a second-order cone",
            scale=self._units.scale,
            shift=self._units.shift,
        )
        return closed, program

    def _closed_form(self) -> tuple[FloatArray, None]:
        return np.maximum(self._roots - 1, 0.0) / self.proof.C, None

    @cached_property
    def _roots(self) -> FloatArray:
        """C (A / (2 mu B))^1/2, which is 1 + C lam where that is more than 1."""
        proof = self.proof
        return proof.C * np.sqrt(proof.A / (2 * proof.mu * proof.B))

    @cached_property
    def _units(self) -> SocpUnits:
        proof = self.proof
        used = np.flatnonzero(self._roots > MIN_ROOT)
        costs = np.sqrt(proof.mu * proof.A[used] * proof.B[used] / 2)
        scale = float(np.minimum(costs, costs * self._roots[used]).sum()) or 1.0
        unused = proof.C * (float(proof.A.sum()) - float(proof.A[used].sum())) / 2
        shift = proof.rest + unused - proof.mu * float(proof.B[used].sum()) / proof.C
        return SocpUnits(used, costs / scale, scale, shift)

    def _socp(self) -> ConeForm:
        """Minimise sum_i cost_i (v_i + w_i) subject to v_i >= 1 / root_i, v_i w_i >= 1."""
        used = self._units.used
        m = used.size
        identity = sparse.eye_array(m)
        zero = sparse.csc_array((m, m))
        v = sparse.hstack([identity, zero])
        w = sparse.hstack([zero, identity])
        # (v + w, v - w, 2) for each i, its three rows together.
        rows = sparse.vstack([-(v + w), w - v, 0 * v], format="csr")
        together = np.arange(3 * m).reshape(3, m).T.ravel()
        A = sparse.vstack([-v, rows[together]], format="csc")
        b = np.concatenate([-1 / self._roots[used], np.tile([0.0, 0.0, 2.0], m)])
        return ConeForm(np.tile(self._units.costs, 2), A, b, Cones(nonneg=m, soc=(3,) * m))

    def _from_socp(self, x: FloatArray, y: FloatArray | None) -> Point:
        used = self._units.used
        lam = np.zeros(self._roots.size)
        lam[used] = (self._roots[used] * x[: used.size] - 1) / self.proof.C
        return Point({"spectrum": lam})

    def _to_socp(self, point: Point) -> Start:
        used = self._units.used
        v = (1 + self.proof.C * point.spectrum[used]) / self._roots[used]
        return Start(np.concatenate([v, 1 / v]))


@dataclass(frozen=True, eq=False)
class SocpUnits:
    """The directions in the cone program, their costs, and its value in the problem's units."""

    used: npt.NDArray[np.intp]
    costs: FloatArray
    scale: float
    shift: float


def _spectrum_point(x: FloatArray, y: FloatArray | None) -> Point:
    return Point({"spectrum": x})


# --- all kernels


@dataclass(frozen=True, eq=False)
class FreeKernelForms:
    """The forms over all kernels; solutions have the array `factor`, F with K = FF'."""

    proof: FreeLeastSquares

    def formulations(self) -> tuple[Formulation, ...]:
        """Return the small equation and the semidefinite program."""
        rule = ExplicitForm(self._closed_form)
        kind = "equation for a matrix of the number of classes"
        if self.proof.Y.shape[1] == 1:
            kind = "secular equation"
        constraint = "the dual has one constraint A'GA <= 2 mu I"
        closed = Formulation(
            "explicit",
            rule.needs,
            lambda: rule,
            self._from_closed_form,
            because=f"{constraint}, and its multiplier solves a {kind}",
        )
        program = Formulation(
            "SDP",
            frozenset({Feature.CONE, Feature.PSD}),
            self._sdp,
            self._from_sdp,
            self._to_sdp,
            "Schur's complement: T >= Y'(K_JJ + I/C)^-1 Y",
        )
        return closed, program

    def _closed_form(self) -> tuple[FloatArray, FloatArray]:
        proof = self.proof
        if proof.Y.shape[1] == 1:
            nu, a = single_target(proof.G, proof.Y[:, 0], proof.C, proof.mu)
            return proof.R @ (float(np.sqrt(nu / (2 * proof.mu))) * a), a
        w, Q = np.linalg.eigh(proof.G)
        equation = Secular(np.maximum(w, 0.0), Q.T @ proof.Y, proof.C, proof.mu)
        N = equation.solve()
        A = Q @ equation.rows(N)[0]
        values, vectors = np.linalg.eigh(N)
        half = vectors * np.sqrt(np.maximum(values, 0.0) / (2 * proof.mu))
        return (proof.R @ (A @ half)).ravel(), A.ravel()

    def _from_closed_form(self, x: FloatArray, y: FloatArray | None) -> Point:
        primal = {"factor": x.reshape(self.proof.L.shape[0], -1)}
        if y is None:
            return Point(primal)
        return Point(primal, {"A": y.reshape(self.proof.Y.shape)})

    def _sdp(self) -> ConeForm:
        """Minimise tr T / 2 + mu <L, K>, [[K_JJ + I/C, Y], [Y', T]] >= 0, K >= 0.

        The variables are x = (svec K, svec T).
        """
        proof = self.proof
        n = proof.L.shape[0]
        p, c = proof.Y.shape
        kernel_size = svec_size(n)
        target_size = svec_size(c)

        # The places of K_JJ and T among the rows of the first block and among the columns.
        block = svec_places(p + c)
        kernel_columns = svec_places(n)[np.ix_(proof.J, proof.J)]
        target_columns = kernel_size + svec_places(c)
        kernel_triangle = np.tril_indices(p)
        target_triangle = np.tril_indices(c)
        rows = [block[:p, :p][kernel_triangle], block[p:, p:][target_triangle]]
        columns = [kernel_columns[kernel_triangle], target_columns[target_triangle]]
        places = (np.concatenate(rows), np.concatenate(columns))
        shape = (svec_size(p + c), kernel_size + target_size)
        schur = sparse.csc_array((-np.ones(places[0].size), places), shape=shape)
        no_target = sparse.csc_array((kernel_size, target_size))
        kernel = sparse.hstack([-sparse.eye_array(kernel_size), no_target])

        constant = np.zeros((p + c, p + c))
        constant[:p, :p] = np.eye(p) / proof.C
        constant[:p, p:] = proof.Y
        constant[p:, :p] = proof.Y.T
        b = np.concatenate([svec(constant), np.zeros(kernel_size)])
        cost = np.concatenate([proof.mu * svec(proof.L.toarray()), svec(np.eye(c)) / 2])
        return ConeForm(cost, csc("A", sparse.vstack([schur, kernel])), b, Cones(psd=(p + c, n)))

    def _from_sdp(self, x: FloatArray, y: FloatArray | None) -> Point:
        values, vectors = np.linalg.eigh(smat(x[: svec_size(self.proof.L.shape[0])]))
        primal = {"factor": vectors * np.sqrt(np.maximum(values, 0.0))}
        if y is None:
            return Point(primal)
        # The multiplier of the first block is (A, -I)(A, -I)' / 2.
        p, c = self.proof.Y.shape
        return Point(primal, {"A": -2 * smat(y[: svec_size(p + c)])[:p, p:]})

    def _to_sdp(self, point: Point) -> Start:
        F, A = self.proof.evaluated(point.factor)
        return Start(np.concatenate([svec(F @ F.T), svec(self.proof.Y.T @ A)]))
