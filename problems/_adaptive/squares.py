"""Products with K o K for a kernel given by features, K = Phi Phi': two products of n r^2, a few rows at a time.

    (K o K)u = (phi_i' S phi_i)_i,     S = Phi' diag(u) Phi
             = (phi_i' T phi_i)_i      T the lower triangle of S, twice what is below the diagonal

S is M'M for u > 0 less N'N for u < 0, of which BLAS computes one half, and so is the product with
the triangle. What is only used inside an iteration that corrects itself may be computed in single
precision, at half the cost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray

__all__ = ["RoughSquares", "forms", "moments"]

ROWS = 512
"""Points that are worked on at a time."""

Real = TypeVar("Real", np.float64, np.float32)


def moments(Phi: npt.NDArray[Real], u: npt.NDArray[Real]) -> npt.NDArray[Real]:
    """Return Phi' diag(u) Phi."""
    S = np.zeros((Phi.shape[1],) * 2, Phi.dtype)
    for positive in (True, False):
        chosen = np.flatnonzero(u > 0 if positive else u < 0)
        roots = np.sqrt(np.abs(u[chosen]))[:, None]
        everything = chosen.size == u.size
        for start in range(0, chosen.size, ROWS):
            rows = slice(start, start + ROWS)
            part = (Phi[rows] if everything else Phi[chosen[rows]]) * roots[rows]
            square = part.T @ part
            S = S + square if positive else S - square
    return S


def forms(Phi: npt.NDArray[Real], S: npt.NDArray[Real]) -> FloatArray:
    """Return phi_i' S phi_i for all i, S symmetric."""
    from scipy.linalg.blas import dtrmm, strmm

    if not S.any():
        return np.zeros(len(Phi))
    multiply: Callable[..., npt.NDArray[Any]] = dtrmm if Phi.dtype == np.float64 else strmm
    T = np.asfortranarray(np.tril(S) + np.tril(S, -1))
    found = np.empty(len(Phi))
    for start in range(0, found.size, ROWS):
        part = Phi[start : start + ROWS]
        found[start : start + ROWS] = np.einsum(
            "ik,ik->i", multiply(1.0, T, part.T, lower=1).T, part
        )
    return found


@dataclass(frozen=True, eq=False)
class RoughSquares:
    """(K o K)u in single precision: Phi and u are divided by their size, so that no scale is lost."""

    Phi: npt.NDArray[np.float32]
    size: float

    @classmethod
    def of(cls, Phi: FloatArray) -> RoughSquares:
        """Return the products of K = Phi Phi'."""
        size = float(np.abs(Phi).max(initial=0.0)) or 1.0
        return cls((Phi / size).astype(np.float32), size)

    def times(self, u: FloatArray) -> FloatArray:
        """Return (K o K)u, six digits of it."""
        size = float(np.abs(u).max(initial=0.0)) or 1.0
        S = moments(self.Phi, (u / size).astype(np.float32))
        return (size * self.size**4) * forms(self.Phi, S)
