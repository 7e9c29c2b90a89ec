"""Indefinite similarities: checked, symmetrised on request, repaired, and extended to new points.

A similarity matrix S is square and finite; symmetric unless its owner asks for the mean of S and
S'. Its eigenvalues may have any sign, S = V diag(lam) V'. What makes a kernel of it without
learning is a `Gram` repair:

    denoise   V diag(max(lam, 0)) V'    the nearest positive semidefinite matrix
    flip      V diag(|lam|) V'
    shift     S + |lam_min| I

A kernel K learned from S is carried to a new point x, known by its similarities s to the n training
points, by the linear map that takes the rows of S to those of K, S^+ the pseudoinverse:

    k(x, training) = s S^+ K          k(x, x') = s S^+ K S^+ s'

A training point, whose s is a row of S, gets its own row of K wherever the range of K lies in that
of S, as it does for a regular S, for denoise and flip, and for every K with the eigenvectors of S.
The second is positive semidefinite on any points. Eigenvalues of S below `cutoff` of the largest
count as zero: dividing by them would blow up the noise of s. Several similarities enter by their
mean, S and s alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, cast

import attrs
import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, freeze, matrix, positive, symmetric
from klopt.errors import InvalidProblem
from klopt.kernels.gram import Gram

__all__ = ["LinearExtension", "Similarity"]

REPAIRS: dict[str, Literal["clip", "flip", "shift"]] = {
    "denoise": "clip",
    "flip": "flip",
    "shift": "shift",
}


@dataclass(frozen=True, eq=False)
class Similarity:
    """A symmetric matrix of similarities that has passed its checks; build it with `Similarity.of`.

    >>> Similarity.of([[1, 2], [0, 1]])
    Traceback (most recent call last):
    klopt.errors.InvalidProblem: S is not symmetric: S[0, 1] = 2.0 but S[1, 0] = 0.0; ...
    >>> S = Similarity.of([[1, 2], [0, 1]], symmetrise=True)
    >>> S.matrix, S.record
    (array([[1., 1.],
           [1., 1.]]), 'averaged with its transpose; they differed by up to 2')
    """

    matrix: FloatArray
    record: str = ""
    """What was done to the scores; empty where nothing was."""

    @classmethod
    def of(
        cls, value: object, name: str = "S", size: int | None = None, *, symmetrise: bool = False
    ) -> Similarity:
        """Return `value` as a checked similarity matrix.

        Parameters
        ----------
        value
            An array-like, a sparse matrix, a `Similarity` or a `Gram`; the last two pass unchanged.
        name
            What error messages call the matrix.
        size
            The number of points that it must have, if that is known.
        symmetrise
            Replace an asymmetric S by (S + S') / 2 instead of refusing it.
        """
        # Both were checked when they were made.
        if isinstance(value, Similarity | Gram):
            if size not in (None, value.size):
                raise InvalidProblem(
                    f"{name} is {value.size} x {value.size}; expected {size} x {size}"
                )
            return value if isinstance(value, Similarity) else cls(value.matrix, value.repair)
        S = matrix(name, value, (size, size))
        if S.shape[0] != S.shape[1] or not S.size:
            raise InvalidProblem(
                f"{name} has shape {S.shape}; expected a square matrix of one point at least"
            )
        if not symmetrise:
            try:
                return cls(symmetric(name, S))
            except InvalidProblem as error:
                raise InvalidProblem(
                    f"{error}: Similarity.of({name}, symmetrise=True) does that"
                ) from None

        half = S / 2  # S + S' may overflow
        gap = 2 * float(np.abs(half - half.T).max())
        record = f"averaged with its transpose; they differed by up to {gap:.3g}" if gap else ""
        return cls(cast(FloatArray, freeze(half + half.T)), record)

    @property
    def size(self) -> int:
        """The number of points."""
        return len(self.matrix)

    @cached_property
    def eigen(self) -> tuple[FloatArray, FloatArray]:
        """Eigenvalues, ascending, and eigenvectors; computed once."""
        values, vectors = np.linalg.eigh(self.matrix)
        return values, vectors

    def repaired(self, by: Literal["denoise", "flip", "shift"]) -> Gram:
        """Return the kernel that a repair makes of the similarity.

        >>> Similarity.of([[0, 1], [1, 0]]).repaired("flip").matrix.round(12)
        array([[1., 0.],
               [0., 1.]])
        """
        if not isinstance(by, str) or by not in REPAIRS:
            raise InvalidProblem(f"repair is {by!r}; expected one of {', '.join(REPAIRS)}")
        return Gram.of(self.matrix, "S", repair=REPAIRS[by])


@attrs.frozen(eq=False, slots=False, init=False)
class LinearExtension:
    """k(x, training) = s S^+ K for new points with similarities s to the training points.

    >>> S = Similarity.of([[2, 0], [0, -1]])
    >>> LinearExtension(S, np.diag([2.0, 0.0])).cross([[1.0, 5.0]])
    array([[1., 0.]])
    """

    S: Similarity
    K: FloatArray
    cutoff: float

    def __init__(
        self, S: Similarity | npt.ArrayLike, K: npt.ArrayLike, cutoff: float = 1e-10
    ) -> None:
        similarity = Similarity.of(S)
        shape = (similarity.size, similarity.size)
        kernel = matrix("K", K, shape)
        self.__attrs_init__(similarity, kernel, positive("cutoff", cutoff, zero=True))

    @cached_property
    def map(self) -> FloatArray:
        """S^+ K."""
        values, V = self._kept()
        return np.asarray((V / values) @ (V.T @ self.K))

    def cross(self, s: npt.ArrayLike) -> FloatArray:
        """Return k between new points (rows of s) and training points."""
        return matrix("s", s, (None, self.S.size)) @ self.map

    def among(self, s: npt.ArrayLike) -> FloatArray:
        """Return k among new points, positive semidefinite."""
        given = matrix("s", s, (None, self.S.size))
        values, V = self._kept()
        reduced = (given @ (V / values)) @ V.T
        kernel = reduced @ self.K @ reduced.T
        return (kernel + kernel.T) / 2

    def _kept(self) -> tuple[FloatArray, FloatArray]:
        """The eigenpairs of S that S^+ inverts."""
        values, V = self.S.eigen
        kept = np.abs(values) > self.cutoff * float(np.abs(values).max(initial=0.0))
        return values[kept], V[:, kept]
