"""Labels from a learned kernel or a graph: harmonic functions and regularised least squares.

Y has a column for each class, 1 at the labelled points l of that class and 0 elsewhere. The
unlabelled points u get

    harmonic        (D - W)_uu F_u = W_ul Y_l,  F_l = Y_l             Zhu et al. (2003)
    spread          (I - alpha D^-1/2 W D^-1/2) F = (1 - alpha) Y     Zhou et al. (2004)
    least_squares   F = K_:l (K_ll + I/C)^-1 Y_l                      Belkin et al. (2006)

and all points the class of their largest score. A harmonic score is the mean of those of the
neighbours; label spreading may change given labels; least squares take a kernel matrix or a factor.
For two classes the difference of the columns is what targets of -1 and +1 give. The first two are
sparse, positive definite systems, solved exactly; scikit-learn's `LabelSpreading` iterates towards
the second, and has neither of the others. K = V diag(w) V' is never formed: with B = V_l
diag(w)^1/2 the third is F = V diag(w)^1/2 (B'B + I/C)^-1 B'Y_l, of the order of the smaller side of
B.

Zhu, Ghahramani, Lafferty, Semi-supervised learning using Gaussian fields and harmonic functions,
2003. Zhou, Bousquet, Lal, Weston, Schoelkopf, Learning with local and global consistency, 2004.
Belkin, Niyogi, Sindhwani, Manifold regularization, 2006.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import FloatArray, SparseMatrix, csc, freeze, matrix, positive, symmetric, vector
from klopt.errors import InvalidProblem
from klopt.kernels.graphs import class_labels, laplacian

__all__ = ["Scores", "harmonic", "least_squares", "spread"]

IntArray = npt.NDArray[np.int64]
MAX_RELATIVE_RESIDUAL = 1e-13
"""Relative residual to which systems are solved."""


@dataclass(frozen=True, eq=False)
class Scores:
    """How well each class suits each point."""

    classes: IntArray
    """The classes among the labels, ascending: what the columns stand for."""
    values: FloatArray
    """Points x classes."""

    @property
    def labels(self) -> IntArray:
        """The class of the largest score of each point."""
        return np.asarray(self.classes[np.argmax(self.values, axis=1)], dtype=np.int64)


def harmonic(W: object, labels: object) -> Scores:
    """Return the harmonic function of a graph that keeps the given labels (-1: unlabelled).

    W holds the weights of the graph. The scores of a point are the probabilities that a random walk
    from it meets each class first.

    >>> path = [[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0]]
    >>> scores = harmonic(path, [0, -1, -1, 1])
    >>> scores.values[:, 1].round(6)
    array([0.      , 0.333333, 0.666667, 1.      ])
    >>> scores.labels
    array([0, 0, 1, 1])
    """
    L = laplacian(W, normalised=False)
    labelled = _Labelled.of(labels, L.shape[0])
    _refuse_unreached(L, labelled)
    F = labelled.Y.copy()
    u = labelled.unknown
    if u.size:
        rows = L.tocsr()[u]
        F[u] = _solve(
            csc("L_uu", rows[:, u]), -(rows[:, labelled.known] @ labelled.Y[labelled.known])
        )
    return Scores(labelled.classes, cast(FloatArray, freeze(F)))


def spread(W: object, labels: object, alpha: float = 0.8) -> Scores:
    """Return the limit of label spreading; alpha < 1 is the weight of the neighbours.

    >>> pair = spread([[0, 1, 0], [1, 0, 1], [0, 1, 0]], [0, -1, 1], alpha=0.5)
    >>> pair.values.round(4)
    array([[0.5833, 0.0833],
           [0.2357, 0.2357],
           [0.0833, 0.5833]])
    """
    L = laplacian(W)
    labelled = _Labelled.of(labels, L.shape[0])
    alpha = positive("alpha", alpha)
    if alpha >= 1:
        raise InvalidProblem(
            f"alpha is {alpha}; labels have a say only for alpha < 1 (`harmonic` keeps them as they are)"
        )
    _refuse_unreached(L, labelled)
    system = csc("I - alpha S", alpha * L + (1 - alpha) * sparse.eye_array(L.shape[0]))
    return Scores(
        labelled.classes, cast(FloatArray, freeze((1 - alpha) * _solve(system, labelled.Y)))
    )


def least_squares(K: object, labels: object, C: float) -> Scores:
    """Return the decision of regularised least squares on the labelled points (-1: unlabelled).

    K is a kernel matrix, or the tuple (V, w) of the factor V diag(w) V', w >= 0.

    >>> V, w = np.array([[1.0, 0.5], [1.0, -0.5], [0.0, 1.0]]), np.array([1.0, 2.0])
    >>> labels = [0, 1, -1]
    >>> few, all = least_squares((V, w), labels, C=1.0), least_squares((V * w) @ V.T, labels, C=1.0)
    >>> bool(np.allclose(few.values, all.values)), all.labels
    (True, array([0, 1, 0]))
    """
    C = positive("C", C)
    if isinstance(K, tuple):
        return _by_factor(*_factor(K), labels, C)
    kernel = symmetric("K", matrix("K", K))
    labelled = _Labelled.of(labels, len(kernel))
    known = labelled.known
    inner = kernel[np.ix_(known, known)] + np.eye(known.size) / C
    F = kernel[:, known] @ _definite(inner, labelled.Y[known])
    return Scores(labelled.classes, cast(FloatArray, freeze(F)))


@dataclass(frozen=True, eq=False)
class _Labelled:
    classes: IntArray
    known: npt.NDArray[np.intp]
    unknown: npt.NDArray[np.intp]
    Y: FloatArray
    """All points x classes."""

    @classmethod
    def of(cls, labels: object, size: int) -> _Labelled:
        given = class_labels(labels, size)
        classes = np.unique(given[given >= 0])
        if classes.size < 2:
            found = (
                f"one class only, {classes[0]}"
                if classes.size
                else "no class: every point is unlabelled (-1)"
            )
            raise InvalidProblem(f"labels name {found}; a decision needs at least two classes")
        Y = (given[:, None] == classes).astype(np.float64)
        return cls(classes, np.flatnonzero(given >= 0), np.flatnonzero(given < 0), Y)


def _refuse_unreached(L: SparseMatrix, labelled: _Labelled) -> None:
    from scipy.sparse.csgraph import connected_components

    _, component = connected_components(L, directed=False)
    lost = np.flatnonzero(~np.isin(component, component[labelled.known]))
    if lost.size:
        which = ", ".join(str(i) for i in lost[:5]) + (", .." if lost.size > 5 else "")
        raise InvalidProblem(
            f"{lost.size} of {component.size} points have no way to a labelled point and get no answer: {which}; label "
            "one point of each component, take more neighbours, or leave these points out"
        )


def _solve(A: SparseMatrix, B: FloatArray) -> FloatArray:
    """A^-1 B of a sparse, positive definite A by conjugate gradients or a factorisation."""
    from scipy.sparse.linalg import cg, splu

    scale = sparse.diags_array(1 / A.diagonal())
    columns = []
    for b in B.T:
        x, failed = cg(A, b, rtol=MAX_RELATIVE_RESIDUAL, maxiter=300, M=scale)
        # Long thin graphs are ill-conditioned, but their factors are sparse.
        if failed:
            return np.asarray(
                splu(A, permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True}).solve(B)
            )
        columns.append(x)
    return np.column_stack(columns)


def _factor(K: tuple[object, ...]) -> tuple[FloatArray, FloatArray]:
    if len(K) != 2:
        raise InvalidProblem(
            f"K is a tuple of {len(K)}; expected (V, w) with K = V diag(w) V', or a matrix"
        )
    V = matrix("V", K[0])
    w = vector("w", K[1], V.shape[1])
    if (w < 0).any():
        at = int(np.argmin(w))
        raise InvalidProblem(f"w[{at}] is {w[at]:g}; the weights of a kernel are not negative")
    return V, w


def _by_factor(V: FloatArray, w: FloatArray, labels: object, C: float) -> Scores:
    labelled = _Labelled.of(labels, len(V))
    roots = np.sqrt(w)
    Y = labelled.Y[labelled.known]
    B = V[labelled.known] * roots
    # (B'B + I/C)^-1 B' = B'(BB' + I/C)^-1: the smaller of the two systems is solved.
    if B.shape[0] < B.shape[1]:
        inside = B.T @ _definite(B @ B.T + np.eye(len(B)) / C, Y)
    else:
        inside = _definite(B.T @ B + np.eye(B.shape[1]) / C, B.T @ Y)
    return Scores(labelled.classes, cast(FloatArray, freeze(V @ (roots[:, None] * inside))))


def _definite(A: FloatArray, B: FloatArray) -> FloatArray:
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    try:
        return np.asarray(cho_solve(cho_factor(A), B))
    except LinAlgError:
        raise InvalidProblem(
            "K + I/C is not positive definite on the labelled points; K is no kernel, or C is too large"
        ) from None
