"""SCG-LDK on features, K0 = Phi Phi' with r columns: the kernel Phi M Phi', M of order r.

    f(M) = tr(A M) - log det M - r,   A = I + gamma Phi'S Phi,

for every M > 0; kernels whose features are not those of K0 are infinitely far from it. Since tr(A
M) - log det(A M) is at least r, no M falls below log det A, the dual value, and M = A^-1 attains
it. With A = LL' the learned features are

    Psi = Phi C,   C = L^-T,   K = Psi Psi',

O(n r^2 + r^3) and never n x n. If K0 is definite and Phi square this is L0 (I + gamma L0'S L0)^-1
L0', for any S.

The cone program that it saves has logarithms of the diagonal of a triangular Z and Schur's
complement:

    minimise tr(A M) - sum t_i   subject to   [[M, Z], [Z', diag Z]] >= 0,   t_i <= log Z_ii.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
from scipy import sparse

from klopt.arrays import UNIT_ROUNDOFF, FloatArray, require_memory
from klopt.kernels.gram import Gram
from klopt.kernels.nystroem import LowRank
from klopt.kernels.side_information import DenseGraph, SideGraph
from klopt.model.cones import Cones, smat, svec, svec_entries, svec_places, svec_size
from klopt.model.forms import ConeForm
from klopt.model.problem import Bracket, Point
from klopt.problems._scg.split import split

__all__ = ["FactorModel", "change_of", "energy"]

ROWS = 2048
"""Rows that are summed at a time: sums of sums lose fewer digits than one long sum."""


def energy(Phi: FloatArray, graph: SideGraph) -> tuple[FloatArray, float]:
    """Return Phi'S Phi, exactly symmetric, and a bound of its error in the Frobenius norm; S is not formed."""
    n, r = Phi.shape
    length = float(np.linalg.norm(Phi)) ** 2
    if isinstance(graph, DenseGraph):
        B = Phi.T @ (graph.S @ Phi)
        return (B + B.T) / 2, 4 * (n + 5) * UNIT_ROUNDOFF * length
    parts = split(graph)
    assert parts is not None
    U, B, P = parts.U.tocsr(), np.zeros((r, r)), np.zeros((parts.U.shape[1], r))
    for start in range(0, n, ROWS):
        rows = slice(start, start + ROWS)
        B += Phi[rows].T @ Phi[rows]
        P += U[rows].T @ Phi[rows]
    B -= P.T @ (parts.R @ P)
    terms = min(n, ROWS) + n // ROWS + len(P) + 5
    return (B + B.T) / 2, 4 * terms * UNIT_ROUNDOFF * length * (1 + float(np.linalg.norm(parts.R)))


def change_of(K0: FloatArray, graph: SideGraph, gamma: float) -> FloatArray:
    """Return Q = -gamma (I + gamma S K0)^-1 S, with which K = K0 + K0 Q K0 is the solution."""
    n = len(K0)
    require_memory(32.0 * n * n, f"the change of a kernel of {n} points")
    one = np.eye(n)
    Q = np.linalg.solve(one + gamma * graph.apply(K0), -gamma * graph.apply(one))
    return (Q + Q.T) / 2


@dataclass(frozen=True, eq=False)
class FactorModel:
    """f(M) and its bounds, for M = CC'."""

    Phi: FloatArray
    B: FloatArray
    """Phi'S Phi."""
    error: float
    """How far that may be off in the Frobenius norm."""
    missing: float
    """What K0 - Phi Phi' may add to log det(I + gamma S K0), over gamma."""
    gamma: float

    @classmethod
    def of(cls, K0: Gram | LowRank, graph: SideGraph, gamma: float) -> FactorModel:
        """Return the model of features as given, or of the pivoted Cholesky factor of a matrix."""
        if isinstance(K0, LowRank):
            return cls(K0.Phi, *energy(K0.Phi, graph), 0.0, gamma)
        Phi = np.ascontiguousarray(K0.factor().T)
        # |S| <= 2, and negative eigenvalues of K0 within its floor count as 0.
        missing = 2 * (np.sqrt(K0.size) * K0.factor_error() - K0.size * K0.floor)
        return cls(Phi, *energy(Phi, graph), float(missing), gamma)

    def closed_form(self) -> FloatArray:
        """Return the best C, upper triangular."""
        return self._best

    def bracket(self, C: FloatArray) -> Bracket:
        """Return f at M = CC' and the dual value."""
        r, C = len(C), np.nan_to_num(C)
        sign, half = np.linalg.slogdet(C)
        spent = float(np.sum(C * (self.A @ C)))
        upper = spent - 2 * float(half) - r if sign else np.inf
        upper += self.gamma * (self.missing + self.error * float(np.sum(C * C)))
        upper += 8 * (r + 5) * UNIT_ROUNDOFF * (spent + abs(float(half)) + r)
        return Bracket(
            self._dual_value, float(upper), Point({"core": C}), "" if sign else "core is singular"
        )

    @cached_property
    def _dual_value(self) -> float:
        """log det A less what rounding may have added: an error E of A moves it by tr(A^-1 E)."""
        r, value = len(self.A), 2 * float(np.log(self._factor.diagonal()).sum())
        X, g = np.einsum("ij,ij->i", self._best, self._best), (r + 5) * UNIT_ROUNDOFF
        spread = min(np.sqrt(r) * self.A.trace(), float(np.sqrt(X * self.A.diagonal()).sum()) ** 2)
        formed = self.gamma * (self.missing + self.error * min(float(X.sum()), np.sqrt(r)))
        return float(value - formed - g / (1 - g) * spread - 8 * g * abs(value))

    @cached_property
    def _best(self) -> FloatArray:
        from scipy.linalg.lapack import dtrtri

        return cast(FloatArray, np.triu(dtrtri(self._factor.T, lower=0)[0]))

    def kernel(self, C: FloatArray) -> FloatArray:
        """Return Phi CC'Phi'."""
        Psi = self.Phi @ C
        return Psi @ Psi.T

    @cached_property
    def A(self) -> FloatArray:
        """I + gamma Phi'S Phi."""
        return np.eye(len(self.B)) + self.gamma * self.B

    @cached_property
    def _factor(self) -> FloatArray:
        return cast(FloatArray, np.linalg.cholesky(self.A))

    def cone_program(self) -> ConeForm:
        """Return the program in x = (svec M, the triangle of Z by columns, t)."""
        r, size = len(self.B), svec_size(len(self.B))
        require_memory(8.0 * svec_size(2 * r) * 16, f"a cone program of order {2 * r}")
        rows, columns = svec_entries(r)  # the lower triangle by columns, as svec has it
        place = svec_places(2 * r)
        diagonal = size + np.flatnonzero(rows == columns)
        at = [
            (place[rows, columns], np.arange(size), np.ones(size)),  # M
            (
                place[r + columns, rows],
                size + np.arange(size),
                np.full(size, np.sqrt(2.0)),
            ),  # Z' below M
            (place[r + np.arange(r), r + np.arange(r)], diagonal, np.ones(r)),  # diag Z
        ]
        i, j, v = (np.concatenate(part) for part in zip(*at, strict=True))
        big = sparse.csc_array((-v, (i, j)), shape=(svec_size(2 * r), 2 * size + r))
        logs = 3 * np.arange(r)
        i, j = np.concatenate([logs, logs + 2]), np.concatenate([2 * size + np.arange(r), diagonal])
        small = sparse.csc_array((-np.ones(2 * r), (i, j)), shape=(3 * r, 2 * size + r))
        b = np.concatenate([np.zeros(svec_size(2 * r)), np.tile([0.0, 1.0, 0.0], r)])
        cost = np.concatenate([svec(self.A), np.zeros(size), -np.ones(r)])
        return ConeForm(cost, sparse.vstack([big, small]), b, Cones(psd=(2 * r,), exp=r))

    def from_cone(self, x: FloatArray, y: FloatArray | None) -> Point:
        """Return C = M^1/2."""
        values, vectors = np.linalg.eigh(smat(x[: svec_size(len(self.B))]))
        least = 1e-12 * max(float(values[-1]), 1e-12)
        return Point({"core": vectors * np.sqrt(np.maximum(values, least))})
