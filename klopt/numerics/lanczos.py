"""The largest eigenpairs of a symmetric operator by a block Lanczos method with thick restarts.

A basis Q is grown by a block of BLOCK vectors at a time, W = A Q_j made orthogonal to Q, so that H
= Q'A Q is a band. Its largest eigenpairs (theta, s) give Ritz pairs (theta, Q s), and with the next
block Q_(j+1) R

    ||A Q s - theta Q s|| = ||R s_j||,    s_j the last entries of s,

so that residuals cost nothing. When the basis is full it is replaced by its best Ritz vectors, and
H by their thetas bordered by R s_j. A block finds up to BLOCK copies of an eigenvalue, which a
single vector does not.

In exact arithmetic W is orthogonal to all blocks but the last two. Rounding spoils that slowly: W
is made orthogonal to the whole basis in two of PERIOD steps, and in all of them once more than
TOLERATED had to be removed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from klopt.arrays import EPS, FloatArray

__all__ = ["BLOCK", "largest_eigenpairs"]

BLOCK = 8
PERIOD = 4
TOLERATED = 1e-12
CONVERGED = 1e-12
"""Of a residual, relative to the norm of the operator."""
CYCLES = 50

Operator = Callable[[FloatArray], FloatArray]


def largest_eigenpairs(
    apply: Operator, n: int, r: int, norm: float
) -> tuple[FloatArray, FloatArray] | None:
    """Return the r largest eigenvalues, largest first, and orthonormal eigenvectors; None where it does not converge.

    `apply` takes and returns n x BLOCK arrays, n at least r + 5 BLOCK; `norm` bounds the size of
    the eigenvalues. The start is random but fixed.

    >>> values, V = largest_eigenpairs(lambda X: np.arange(100.0)[:, None] * X, 100, 3, norm=100.0)
    >>> values.round(9)
    array([99., 98., 97.])
    """
    room = min(max(3 * r + 10 * BLOCK, 25 * BLOCK), n - BLOCK)
    Q, H = np.empty((n, room + BLOCK), order="F"), np.zeros((room, room))
    basis = _Basis(apply, Q, H, np.random.default_rng(0), norm)
    size, R = 0, basis.start()
    for _ in range(CYCLES):
        size, R = basis.grow(size, R)
        theta, s = np.linalg.eigh(basis.H[:size, :size])
        off = np.linalg.norm(R @ s[-BLOCK:], axis=0)
        if off[-r:].max() <= CONVERGED * norm:
            return theta[-r:][::-1], (basis.Q[:, :size] @ s[:, -r:])[:, ::-1]
        keep = min(max(int(1.3 * r) + BLOCK, 5 * BLOCK), size - 2 * BLOCK)
        size, R = basis.restart(theta[-keep:], s[:, -keep:], R)
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
        """Fill the first block; nothing lies before it."""
        self.Q[:, :BLOCK] = np.linalg.qr(self.random.standard_normal((len(self.Q), BLOCK)))[0]
        return np.zeros((BLOCK, 0))

    def grow(self, size: int, border: FloatArray) -> tuple[int, FloatArray]:
        """Extend the basis, whose next block is bordered by `border`, to its room; return its size and the last R."""
        step, careful, first, R = 0, False, size - border.shape[1], border
        while size + BLOCK <= len(self.H):
            end = size + BLOCK
            self.H[size:end, first:size] = R
            self.H[first:size, size:end] = R.T
            whole, near = self.Q[:, :end], self.Q[:, first:end]
            W = self.apply(np.ascontiguousarray(self.Q[:, size:end]))
            h = near.T @ W
            self.H[size:end, size:end] = (h[-BLOCK:] + h[-BLOCK:].T) / 2
            W -= near @ h
            last = end + 2 * BLOCK > len(self.H)  # a restart begins from orthogonal blocks
            against = whole if careful or last or not step or step % PERIOD >= PERIOD - 2 else near
            removed = against.T @ W
            W -= against @ removed
            careful |= float(np.abs(removed).max()) > TOLERATED * self.norm
            self.Q[:, end : end + BLOCK], R = self._orthonormal(W, whole)
            first, size, step = size, end, step + 1
        return size, R

    def restart(self, theta: FloatArray, s: FloatArray, R: FloatArray) -> tuple[int, FloatArray]:
        """Replace the basis by Ritz vectors; return how many there are and what couples the next block to them."""
        size, keep = s.shape
        following = self.Q[:, size : size + BLOCK].copy()
        self.Q[:, :keep] = self.Q[:, :size] @ s
        self.Q[:, keep : keep + BLOCK] = following
        self.H[:] = 0.0
        np.fill_diagonal(self.H[:keep, :keep], theta)
        return keep, R @ s[-BLOCK:]

    def _orthonormal(self, W: FloatArray, whole: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Q_(j+1) and R with W = Q_(j+1) R; random directions stand in for those that W lacks."""
        block, R = np.linalg.qr(W)
        sizes = np.abs(np.diag(R))
        if (
            sizes.min() < 1e-3 * self.norm
        ):  # what rounding left of the basis in W has grown with 1 / size
            lost = sizes < 100 * EPS * self.norm
            block[:, lost] = self.random.standard_normal((len(W), int(lost.sum()))) / np.sqrt(
                len(W)
            )
            R[lost] = 0.0
            for _ in range(2):
                block, more = np.linalg.qr(block - whole @ (whole.T @ block))
                R = more @ R
        return np.asarray(block, dtype=np.float64), np.asarray(R, dtype=np.float64)
