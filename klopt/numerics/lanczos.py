"""The largest eigenpairs of a symmetric operator by a block Lanczos method with thick restarts.

A basis Q is grown by a block of BLOCK vectors at a time, W = A Q_j made orthogonal to Q, so that H
= Q'A Q is a band. Its largest eigenpairs (theta, s) give Ritz pairs (theta, Q s), and with the next
block Q_(j+1) R

    ||A Q s - theta Q s|| = ||R s_j||,    s_j the last entries of s,

so that residuals cost nothing. When the basis is full it is replaced by its best Ritz vectors, and
H by their thetas bordered by R s_j. A block finds up to BLOCK copies of an eigenvalue, which a
single vector does not.

In exact arithmetic W is orthogonal to all blocks but the last two. Rounding spoils that slowly: W
is made orthogonal to the whole basis in two of ORTHOGONALISATION_PERIOD steps, and in all of them
once more than LOSS_OF_ORTHOGONALITY had to be removed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from klopt.arrays import EPS, FloatArray

__all__ = ["BLOCK", "largest_eigenpairs"]

BLOCK = 8
"""Vectors of a block."""
ORTHOGONALISATION_PERIOD = 4
"""Two of so many blocks are made orthogonal to the whole basis."""
LOSS_OF_ORTHOGONALITY = 1e-12
"""What of the basis may be left in a block, relative to the norm of the operator."""
RESIDUAL_TOLERANCE = 1e-12
"""The residual of a converged pair, relative to the norm of the operator."""
MAX_RESTARTS = 50

Operator = Callable[[FloatArray], FloatArray]


def largest_eigenpairs(
    apply: Operator, n: int, r: int, norm: float
) -> tuple[FloatArray, FloatArray] | None:
    """Return the r largest eigenvalues, largest first, and orthonormal eigenvectors.

    None where the method does not converge. The start is random but fixed.

    Parameters
    ----------
    apply
        The operator, which takes and returns n x BLOCK arrays.
    n
        Its order, at least r + 5 BLOCK.
    r
        How many eigenpairs are wanted.
    norm
        A bound of the size of the eigenvalues.

    Examples
    --------
    >>> values, V = largest_eigenpairs(lambda X: np.arange(100.0)[:, None] * X, 100, 3, norm=100.0)
    >>> values.round(9)
    array([99., 98., 97.])
    """
    capacity = min(max(3 * r + 10 * BLOCK, 25 * BLOCK), n - BLOCK)
    Q = np.empty((n, capacity + BLOCK), order="F")
    H = np.zeros((capacity, capacity))
    basis = _Basis(apply, Q, H, np.random.default_rng(0), norm)
    size = 0
    R = basis.start()
    for _ in range(MAX_RESTARTS):
        size, R = basis.grow(size, R)
        theta, s = np.linalg.eigh(basis.H[:size, :size])
        residuals = np.linalg.norm(R @ s[-BLOCK:], axis=0)
        if residuals[-r:].max() <= RESIDUAL_TOLERANCE * norm:
            vectors = basis.Q[:, :size] @ s[:, -r:]
            return theta[-r:][::-1], vectors[:, ::-1]

        kept = min(max(int(1.3 * r) + BLOCK, 5 * BLOCK), size - 2 * BLOCK)
        size, R = basis.restart(theta[-kept:], s[:, -kept:], R)
    return None


@dataclass(frozen=True, eq=False)
class _Basis:
    apply: Operator
    Q: FloatArray
    """The basis, then the next block, in columns."""
    H: FloatArray
    random: np.random.Generator
    norm: float

    def start(self) -> FloatArray:
        """Fill the first block; nothing comes before it."""
        self.Q[:, :BLOCK] = np.linalg.qr(self.random.standard_normal((len(self.Q), BLOCK)))[0]
        return np.zeros((BLOCK, 0))

    def grow(self, size: int, border: FloatArray) -> tuple[int, FloatArray]:
        """Extend the basis, whose next block is bordered by `border`, until it is full.

        Return its size and the last R.
        """
        R = border
        first = size - border.shape[1]
        step = 0
        lost_orthogonality = False
        while size + BLOCK <= len(self.H):
            end = size + BLOCK
            self.H[size:end, first:size] = R
            self.H[first:size, size:end] = R.T

            whole = self.Q[:, :end]
            near = self.Q[:, first:end]
            W = self.apply(np.ascontiguousarray(self.Q[:, size:end]))
            h = near.T @ W
            self.H[size:end, size:end] = (h[-BLOCK:] + h[-BLOCK:].T) / 2
            W -= near @ h

            # A restart begins and ends with blocks that are orthogonal to all of the basis.
            last = end + 2 * BLOCK > len(self.H)
            due = step % ORTHOGONALISATION_PERIOD >= ORTHOGONALISATION_PERIOD - 2
            against = whole if lost_orthogonality or last or not step or due else near
            removed = against.T @ W
            W -= against @ removed
            largest_removed = float(np.abs(removed).max())
            lost_orthogonality |= largest_removed > LOSS_OF_ORTHOGONALITY * self.norm

            self.Q[:, end : end + BLOCK], R = self._orthonormal(W, whole)
            first = size
            size = end
            step += 1
        return size, R

    def restart(self, theta: FloatArray, s: FloatArray, R: FloatArray) -> tuple[int, FloatArray]:
        """Replace the basis by Ritz vectors.

        Return how many there are and what couples the next block to them.
        """
        size, kept = s.shape
        following = self.Q[:, size : size + BLOCK].copy()
        self.Q[:, :kept] = self.Q[:, :size] @ s
        self.Q[:, kept : kept + BLOCK] = following
        self.H[:] = 0.0
        np.fill_diagonal(self.H[:kept, :kept], theta)
        return kept, R @ s[-BLOCK:]

    def _orthonormal(self, W: FloatArray, whole: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Q_(j+1) and R with W = Q_(j+1) R; random directions stand in for those that W lacks."""
        block, R = np.linalg.qr(W)
        sizes = np.abs(np.diag(R))
        # What rounding left of the basis in W has grown with 1 / size.
        if sizes.min() < 1e-3 * self.norm:
            lost = sizes < 100 * EPS * self.norm
            random = self.random.standard_normal((len(W), int(lost.sum())))
            block[:, lost] = random / np.sqrt(len(W))
            R[lost] = 0.0
            for _ in range(2):
                block, more = np.linalg.qr(block - whole @ (whole.T @ block))
                R = more @ R
        return np.asarray(block, dtype=np.float64), np.asarray(R, dtype=np.float64)
