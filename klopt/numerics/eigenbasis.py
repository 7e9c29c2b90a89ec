"""Eigenvectors of a symmetric matrix that are multiplied out only where that is asked for.

    H = Q T Q',    T = Z diag(values) Z' tridiagonal,    U = Q Z

Q is a product of reflections. U itself takes 2 n^3 operations, a quarter of the time of a
decomposition; some rows of U and a product U x are had from the factors in O(n^2) each. That U is
orthogonal and U diag(values) U' = H is checked by fixed random vectors x: ||E x|| is hardly ever
much smaller than ||E||, and never for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, SparseMatrix

__all__ = ["Eigenbasis", "Reflections", "decomposed"]

PROBES = 4
"""Random vectors that a decomposition is checked by."""


@dataclass(frozen=True, eq=False)
class Reflections:
    """Q, the product of the reflections 1 - tau_j v_j v_j', each v_j below the diagonal.

    Q leaves the first coordinate alone.
    """

    below: FloatArray
    tau: FloatArray

    def times(self, X: FloatArray, *, transposed: bool = False) -> FloatArray:
        """Return Q X or Q'X for a matrix X."""
        from scipy.linalg.lapack import dormqr

        operation = "T" if transposed else "N"
        workspace = dormqr("L", operation, self.below, self.tau, X[1:, :1], -1)[1]
        work = int(workspace[0]) * X.shape[1]
        result = np.empty(X.shape, order="F")
        result[0] = X[0]
        result[1:] = dormqr("L", operation, self.below, self.tau, X[1:], work)[0]
        return result


class Eigenbasis:
    """Orthonormal columns U, given as they are or as Q Z.

    >>> basis = Eigenbasis(np.eye(3))
    >>> basis.times(np.array([1.0, 2.0, 3.0]))
    array([1., 2., 3.])
    """

    def __init__(self, Z: FloatArray, Q: Reflections | None = None) -> None:
        self._factors = Z, Q
        self._used = False

    @property
    def U(self) -> FloatArray:
        """The vectors as columns, kept in rows: decisions pick those of the labelled points."""
        Z, Q = self._factors
        if Q is not None:
            Z = np.ascontiguousarray(Q.times(Z))
            self._factors = Z, None
        return Z

    def rows(self, which: npt.NDArray[np.intp]) -> FloatArray:
        """Return some rows of U, which may be changed."""
        Z, Q = self._factors
        if Q is None:
            return Z[which]
        unit = np.zeros((len(Z), which.size))
        unit[which, np.arange(which.size)] = 1.0
        return Q.times(unit, transposed=True).T @ Z

    def times(self, x: FloatArray) -> FloatArray:
        """Return U x, at first by the factors: only who comes back has a use for U."""
        Z, Q = self._factors
        if Q is None or self._used:
            return self.U @ x
        self._used = True
        image = Z @ x
        if x.ndim == 2:
            return Q.times(image)
        return Q.times(image[:, None])[:, 0]

    def turned(
        self, turns: list[tuple[int, FloatArray]], kept: npt.NDArray[np.bool_]
    ) -> Eigenbasis:
        """Return the kept columns, some of them turned among themselves.

        A turn (first, q) replaces the columns from `first` on that q has rows for by their products
        with q.
        """
        Z, Q = self._factors
        if Z.flags.f_contiguous:
            chosen = np.compress(kept, Z.T, axis=0).T
        else:
            chosen = np.compress(kept, Z, axis=1)
        for first, q in turns:
            at = int(kept[:first].sum())
            chosen[:, at : at + q.shape[1]] = Z[:, first : first + len(q)] @ q
        return Eigenbasis(chosen, Q)

    def off(self, H: SparseMatrix, values: FloatArray) -> tuple[float, float]:
        """Return how far U is from orthogonal and U diag(values) U' from H, by random vectors.

        The second number means something only where all columns are given.
        """
        Z, Q = self._factors
        X = np.random.default_rng(0).standard_normal((len(Z), PROBES))
        coefficients = Z.T @ (X if Q is None else Q.times(X, transposed=True))
        both = Z @ np.hstack([coefficients, values[:, None] * coefficients])
        images = both if Q is None else Q.times(both)
        errors = images - np.hstack([X, H @ X])
        sizes = np.linalg.norm(errors, axis=0) / np.linalg.norm(X, axis=0).min()
        return float(sizes[:PROBES].max()), float(sizes[PROBES:].max())


def decomposed(H: FloatArray) -> tuple[FloatArray, Eigenbasis] | None:
    """Return the eigenvalues in ascending order and all eigenvectors of a symmetric matrix.

    H is overwritten. None where LAPACK fails, or an old SciPy does not give access to it.

    >>> values, basis = decomposed(np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 5.0]]))
    >>> values.round(12)
    array([1., 3., 5.])
    """
    from scipy.linalg import lapack

    if not hasattr(lapack, "dstevd"):
        return None
    work = int(lapack.dsytrd_lwork(len(H), lower=1)[0])
    reduced, diagonal, beside, tau, _ = lapack.dsytrd(H.T, lower=1, lwork=work, overwrite_a=1)
    values, Z, failed = lapack.dstevd(diagonal, beside)
    if failed:
        return None
    return values, Eigenbasis(Z, Reflections(np.asfortranarray(reduced[1:, :-1]), tau))
