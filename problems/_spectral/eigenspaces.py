"""The eigenspaces of a graph Laplacian as labelled points see them: directions, their roughness, their strength.

Targets Y (labelled points x columns) are one column of -1 and +1 for two classes, indicators for
more. In an eigenspace of L of eigenvalue gamma with orthonormal basis U_g let Y_g = U_g'Y (0 on
unlabelled points) have the singular value decomposition sum_j s_j q_j w_j'. What a kernel that
commutes with L can do there depends on the directions U_g q_j, of roughness B = gamma + ridge and
strength A = s_j^2: for a simple eigenvalue the eigenvector u and A = |u'Y|^2. The directions,
unlike eigenvectors of a repeated eigenvalue, do not depend on the basis that a solver happens to
return.
"""

from __future__ import annotations

import numbers
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, SparseMatrix, positive
from klopt.errors import InvalidProblem
from klopt.kernels.eigenpairs import all_eigenpairs, checked_laplacian, smoothest_eigenpairs
from klopt.kernels.graphs import class_labels
from klopt.numerics.eigenbasis import Eigenbasis

__all__ = ["Directions", "check_graph", "targets"]

TIED = 1e-9
"""Eigenvalues closer than this, relative to the largest one, are equal."""
SINGULAR = 1e-12

IntArray = npt.NDArray[np.int64]


def check_graph(
    laplacian: object, labels: object, ridge: object
) -> tuple[SparseMatrix, IntArray, float]:
    """Return a Laplacian, labels of its points that name at least two classes, and a ridge, all checked."""
    L = checked_laplacian(laplacian)
    classes = class_labels(labels, L.shape[0])
    named = np.unique(classes[classes >= 0])
    if named.size < 2:
        found = (
            f"one class only, {named[0]}"
            if named.size
            else "no class: every point is unlabelled (-1)"
        )
        raise InvalidProblem(f"labels name {found}; a decision needs at least two classes")
    return L, classes, positive("ridge", ridge, zero=True)


def targets(classes: IntArray) -> tuple[npt.NDArray[np.intp], FloatArray]:
    """Return the labelled points and their targets: -1 and +1 in one column, or one indicator column a class.

    >>> targets(np.array([3, -1, 5]))
    (array([0, 2]), array([[-1.],
           [ 1.]]))
    """
    known = np.flatnonzero(classes >= 0)
    named, group = np.unique(classes[known], return_inverse=True)
    if named.size == 2:
        return known, 2.0 * group[:, None].astype(np.float64) - 1.0
    return known, np.eye(named.size, dtype=np.float64)[group]


@dataclass(frozen=True, eq=False)
class Directions:
    """The directions of all eigenspaces that were kept, smoothest first."""

    basis: Eigenbasis
    """The directions themselves."""
    A: FloatArray
    """Strength: the sum of A over all directions of all eigenspaces is ||Y||^2."""
    B: FloatArray
    """Roughness, positive."""
    known: npt.NDArray[np.intp]
    seen: FloatArray
    """The rows of the directions at the labelled points."""
    Y: FloatArray

    @property
    def U(self) -> FloatArray:
        """The directions as orthonormal columns."""
        return self.basis.U

    @classmethod
    def of(cls, L: SparseMatrix, classes: IntArray, ridge: float, rank: int | None) -> Directions:
        """Return the directions of the `rank` smoothest eigenvectors, of all without a rank."""
        known, Y = targets(classes)
        gamma, basis = _whole_eigenspaces(L, rank)
        gamma = np.maximum(gamma, 0.0)
        reach = float(np.max(abs(L).sum(axis=0)))
        if gamma[0] + ridge <= SINGULAR * reach:
            raise InvalidProblem(
                f"laplacian has the eigenvalue {gamma[0]:.1e} and ridge is {ridge:g}: a kernel on that eigenvector "
                "costs nothing, so there is no best one; give a positive ridge"
            )
        seen = basis.rows(known)
        shares = seen.T @ Y
        A, B, kept = np.sum(shares**2, axis=1), gamma + ridge, np.ones(gamma.size, dtype=bool)
        ends = np.append(np.flatnonzero(np.diff(gamma) > TIED * reach), gamma.size - 1)
        sizes = np.diff(ends, prepend=-1)
        if sizes.max() == 1:
            return cls(basis, A, B, known, seen, Y)
        turns = []
        for end, size in zip(ends[sizes > 1] + 1, sizes[sizes > 1], strict=True):
            q, s, _ = np.linalg.svd(shares[end - size : end], full_matrices=False)
            first = end - size + s.size
            turns.append((end - size, q))
            A[end - size : first], B[end - size : end] = (
                s**2,
                gamma[end - size : end].mean() + ridge,
            )
            kept[first:end] = False
        return cls(
            basis.turned(turns, kept),
            A[kept],
            B[kept],
            known,
            Eigenbasis(seen).turned(turns, kept).U,
            Y,
        )

    def decide(self, weights: FloatArray, ridge: float) -> FloatArray:
        """Return K_:l (K_ll + ridge I)^-1 Y for K = U diag(weights) U', without any n x n matrix.

        Without ridge K_ll may be singular; then the least-norm coefficients are taken.
        """
        roots = np.sqrt(np.maximum(weights, 0.0))
        B = self.seen * roots
        K = B @ B.T
        K.flat[:: len(K) + 1] += ridge
        shares = roots * (_solve(K, self.Y).T @ B)
        return self.basis.times(shares[0] if len(shares) == 1 else shares.T)


def _whole_eigenspaces(L: SparseMatrix, rank: object) -> tuple[FloatArray, Eigenbasis]:
    """The smoothest eigenpairs, without those of an eigenspace that the rank would cut in two."""
    n = L.shape[0]
    if rank is None or rank == n:
        return all_eigenpairs(L)
    if isinstance(rank, bool) or not isinstance(rank, numbers.Integral) or not 1 <= int(rank) <= n:
        raise InvalidProblem(
            f"rank is {rank!r}; a Laplacian of order {n} has 1 to {n} eigenvectors"
        )
    gamma, U = smoothest_eigenpairs(L, int(rank) + 1)
    gaps = np.flatnonzero(np.diff(gamma) > TIED * float(np.max(abs(L).sum(axis=0))))
    if not gaps.size:
        raise InvalidProblem(
            f"rank is {rank}, less than the multiplicity of the smallest eigenvalue; raise it"
        )
    return gamma[: gaps[-1] + 1], Eigenbasis(U[:, : gaps[-1] + 1])


def _solve(K: FloatArray, Y: FloatArray) -> FloatArray:
    """K^-1 Y, or the least-norm solution Q (R R')^-1 Q'Y where K = G G' and G = Q R has as many columns as K's rank."""
    from scipy.linalg.lapack import dposv, dpstrf, dtrtrs

    factor, found, failed = dposv(K, Y, lower=1)
    # Cholesky runs through matrices that are singular up to rounding; its pivots show it.
    pivots = factor.diagonal()
    if not failed and pivots.min() > 1e-7 * pivots.max():
        return np.asarray(found)
    factor, order, rank, _ = dpstrf(K, tol=1e-12 * float(K.diagonal().max()), lower=1)
    if not rank:
        return np.zeros_like(Y)
    G = np.empty((len(K), rank))
    G[order - 1] = np.tril(factor[:, :rank])
    Q, R = np.linalg.qr(G)
    return np.asarray(Q @ dtrtrs(R, dtrtrs(R, Q.T @ Y)[0], trans=1)[0])
