"""A graph Laplacian and labels, checked, and the directions of its eigenspaces that the labels see.

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

from klopt.arrays import FloatArray, MatrixLike, SparseMatrix, freeze, positive
from klopt.errors import InvalidProblem
from klopt.kernels.eigenpairs import all_eigenpairs, checked_laplacian, smoothest_eigenpairs
from klopt.kernels.graphs import class_labels
from klopt.numerics.eigenbasis import Eigenbasis

__all__ = [
    "Directions",
    "as_class_labels",
    "as_laplacian",
    "as_ridge",
    "decide_by_factor",
    "require_classes",
    "sample_graph",
    "solve_semidefinite",
    "targets",
]

EIGENVALUE_TIE = 1e-9
"""Eigenvalues closer than this, relative to the largest one, are equal."""
MIN_RELATIVE_ROUGHNESS = 1e-12
"""Smallest roughness, relative to the largest eigenvalue, below which the Laplacian is singular."""
MIN_PIVOT_RATIO = 1e-7
"""Ratio of Cholesky's pivots below which a matrix counts as singular."""
RANK_TOLERANCE = 1e-12
"""Relative size of a pivot that ends the pivoted factorisation of a singular matrix."""

IntArray = npt.NDArray[np.int64]


# --- converters of the problems' fields


def as_laplacian(value: MatrixLike) -> SparseMatrix:
    """Return a Laplacian, checked."""
    return checked_laplacian(value)


def as_class_labels(value: npt.ArrayLike) -> IntArray:
    """Return class labels, -1 for unlabelled points, whatever their number."""
    return freeze(class_labels(value))


def as_ridge(value: float) -> float:
    """Return the ridge, nonnegative."""
    return positive("ridge", value, zero=True)


def require_classes(labels: IntArray, L: SparseMatrix) -> None:
    """Refuse labels that are not one for each point, or name fewer than two classes."""
    class_labels(labels, L.shape[0])
    named = np.unique(labels[labels >= 0])
    if named.size >= 2:
        return
    found = "no class: every point is unlabelled (-1)"
    if named.size:
        found = f"one class only, {named[0]}"
    raise InvalidProblem(f"labels name {found}; a decision needs at least two classes")


def targets(classes: IntArray) -> tuple[npt.NDArray[np.intp], FloatArray]:
    """Return the labelled points and their targets.

    These are -1 and +1 in one column, or one column of indicators for each class.

    >>> targets(np.array([3, -1, 5]))
    (array([0, 2]), array([[-1.],
           [ 1.]]))
    """
    known = np.flatnonzero(classes >= 0)
    named, group = np.unique(classes[known], return_inverse=True)
    if named.size == 2:
        return known, 2.0 * group[:, None].astype(np.float64) - 1.0
    return known, np.eye(named.size, dtype=np.float64)[group]


def sample_graph(rng: np.random.Generator, size: int) -> tuple[FloatArray, IntArray]:
    """Return the weights of a random connected graph, and labels of all points but one."""
    n = max(size, 4)
    W = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.5), 1) + np.eye(n, k=1)
    W += W.T
    return W, np.concatenate([np.arange(n - 1) % (2 + size % 2), [-1]])


# --- directions


@dataclass(frozen=True, eq=False)
class Directions:
    """The directions of all eigenspaces that were kept, smoothest first.

    Parameters
    ----------
    basis : Eigenbasis
        The directions themselves.
    A : array
        Strength: the sum of A over all directions of all eigenspaces is ||Y||^2.
    B : array
        Roughness, positive.
    known : array
        The labelled points.
    seen : array
        The rows of the directions at the labelled points.
    Y : array
        The targets of the labelled points.
    undivided : Directions or None
        All eigenvectors, those of a repeated eigenvalue with the mean of their A; None where each
        eigenvalue is simple, so that these are the directions.
    """

    basis: Eigenbasis
    A: FloatArray
    B: FloatArray
    known: npt.NDArray[np.intp]
    seen: FloatArray
    Y: FloatArray
    undivided: Directions | None = None

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
        norm_bound = float(np.max(abs(L).sum(axis=0)))
        if gamma[0] + ridge <= MIN_RELATIVE_ROUGHNESS * norm_bound:
            raise InvalidProblem(
                f"laplacian has the eigenvalue {gamma[0]:.1e} and ridge is {ridge:g}: a kernel on "
                "that eigenvector costs nothing, so there is no best one; give a positive ridge"
            )
        seen = basis.rows(known)
        shares = seen.T @ Y
        A = np.sum(shares**2, axis=1)
        B = gamma + ridge
        ends = np.append(
            np.flatnonzero(np.diff(gamma) > EIGENVALUE_TIE * norm_bound), gamma.size - 1
        )
        sizes = np.diff(ends, prepend=-1)
        # Simple eigenvalues: the eigenvectors are the directions.
        if sizes.max() == 1:
            return cls(basis, A, B, known, seen, Y)

        # In a repeated eigenspace only the directions of Y_g matter; the others are dropped.
        turns = []
        kept = np.ones(gamma.size, dtype=bool)
        mean_A = A.copy()
        repeated = sizes > 1
        for end, size in zip(ends[repeated] + 1, sizes[repeated], strict=True):
            start = end - size
            q, s, _ = np.linalg.svd(shares[start:end], full_matrices=False)
            turns.append((start, q))
            mean_A[start:end] = A[start:end].mean()
            A[start : start + s.size] = s**2
            B[start:end] = gamma[start:end].mean() + ridge
            kept[start + s.size : end] = False
        undivided = cls(basis, mean_A, B, known, seen, Y)
        seen = Eigenbasis(seen).turned(turns, kept).U
        return cls(basis.turned(turns, kept), A[kept], B[kept], known, seen, Y, undivided)

    def decide(self, weights: FloatArray, ridge: float) -> FloatArray:
        """Return K_:l (K_ll + ridge I)^-1 Y for K = U diag(weights) U', without any n x n matrix.

        Without ridge K_ll may be singular; then the coefficients of least norm are taken.
        """
        roots = np.sqrt(np.maximum(weights, 0.0))
        factor = self.seen * roots
        K = factor @ factor.T
        K.flat[:: len(K) + 1] += ridge
        shares = roots * (solve_semidefinite(K, self.Y).T @ factor)
        return self.basis.times(shares[0] if len(shares) == 1 else shares.T)


def decide_by_factor(F: FloatArray, labels: IntArray, C: float) -> FloatArray:
    """Return K_:l (K_ll + I/C)^-1 Y_l for K = FF'."""
    known, Y = targets(labels)
    F_l = F[known]
    inner = F_l.T @ F_l + np.eye(F_l.shape[1]) / C
    scores = F @ np.linalg.solve(inner, F_l.T @ Y)
    return np.asarray(scores[:, 0] if scores.shape[1] == 1 else scores)


def _whole_eigenspaces(L: SparseMatrix, rank: object) -> tuple[FloatArray, Eigenbasis]:
    """The smoothest eigenpairs, without those of an eigenspace that the rank would cut in two."""
    n = L.shape[0]
    if rank is None or rank == n:
        return all_eigenpairs(L)
    if isinstance(rank, bool) or not isinstance(rank, numbers.Integral) or not 1 <= int(rank) <= n:
        raise InvalidProblem(
            f"rank is {rank!r}; a Laplacian of order {n} has 1 to {n} eigenvectors"
        )
    # One pair more than asked for tells whether the last eigenspace is whole.
    gamma, U = smoothest_eigenpairs(L, int(rank) + 1)
    norm_bound = float(np.max(abs(L).sum(axis=0)))
    gaps = np.flatnonzero(np.diff(gamma) > EIGENVALUE_TIE * norm_bound)
    if not gaps.size:
        raise InvalidProblem(
            f"rank is {rank}, less than the multiplicity of the smallest eigenvalue; raise it"
        )
    count = gaps[-1] + 1
    return gamma[:count], Eigenbasis(U[:, :count])


def solve_semidefinite(K: FloatArray, Y: FloatArray) -> FloatArray:
    """Return K^-1 Y or, where K is singular, the solution of least norm.

    That is Q (R R')^-1 Q'Y where K = G G' and G = Q R has as many columns as K's rank.
    """
    from scipy.linalg.lapack import dposv, dpstrf, dtrtrs

    factor, found, failed = dposv(K, Y, lower=1)
    # Cholesky runs through matrices that are singular up to rounding; its pivots show it.
    pivots = factor.diagonal()
    if not failed and pivots.min() > MIN_PIVOT_RATIO * pivots.max():
        return np.asarray(found)

    tolerance = RANK_TOLERANCE * float(K.diagonal().max())
    factor, order, rank, _ = dpstrf(K, tol=tolerance, lower=1)
    if not rank:
        return np.zeros_like(Y)
    G = np.empty((len(K), rank))
    G[order - 1] = np.tril(factor[:, :rank])
    Q, R = np.linalg.qr(G)
    inner = dtrtrs(R, Q.T @ Y)[0]
    return np.asarray(Q @ dtrtrs(R, inner, trans=1)[0])
