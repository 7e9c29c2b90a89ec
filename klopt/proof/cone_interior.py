"""The inside of the cones: a centre, and for each interior point the scaling that says how far one may move from it.

For v inside K the symmetric map W stretches the unit ball to a ball around v that fits into K (up
to a constant):

    nonneg   W u = v * u
    soc      W u = 2 w (w'u) - det(w) J u,   w = v^(1/2), det(w) = w_0^2 - ||w_1||^2, J = diag(1, -1, .., -1)
    psd      W U = V^(1/2) U V^(1/2)
    exp      W = H^(-1/2),   H the Hessian at v of F = -log(v_1 log(v_2 / v_1) - v_0) - log v_1 - log v_2

The dual exponential cone is {y : T y in K} with T y = (y_0 - y_1, -y_0, y_2), so F(T y) serves
there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import FloatArray, SparseMatrix
from klopt.model.cones import Cones, order_of, smat, svec_entries, svec_size, svec_weights

__all__ = ["Scaling", "block_norms", "block_sizes", "centre", "equilibrate", "is_sparse", "scaling"]

# The point of the exponential cone with F'(v) = -v; it lies inside the dual cone too.
_EXP_CENTRE = np.array([-1.051383945322714, 0.556409619469370, 1.258967884768947])
_T = np.array([[1.0, -1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
_MAX_ENTRIES = 1e7


@dataclass(frozen=True, eq=False)
class Scaling:
    """W as a sparse map of all rows but the PSD ones, and V^(1/2) for each PSD block."""

    flat: sparse.csr_array
    roots: tuple[tuple[slice, FloatArray], ...]

    def apply(self, U: Any) -> Any:
        """Return W U for a vector or for the columns of a (sparse) matrix; dense where there are PSD rows."""
        out = self.flat @ U
        if not self.roots:
            return out
        out = out.toarray() if is_sparse(out) else out
        for rows, root in self.roots:
            part = U[rows]
            part = part.toarray() if is_sparse(part) else part
            out[rows] = _congruence(part.reshape(part.shape[0], -1), root).reshape(out[rows].shape)
        return out


def is_sparse(value: Any) -> bool:
    """Whether the value is a sparse matrix, said so that a type checker learns nothing from it."""
    return bool(sparse.issparse(value))


def scaling(
    cones: Cones, v: FloatArray, free: FloatArray, *, dual: bool = False, inverse: bool = False
) -> Scaling:
    """Return W at a point v inside K (inside K* with `dual`), or its inverse; zero rows are scaled by `free`.

    Nonnegative rows may be 0: there W is 0, and so is what stands for its inverse.

    >>> K = Cones(nonneg=1, psd=(2,))
    >>> v = np.array([2.0, 1.0, 0.0, 4.0])
    >>> scaling(K, v, np.zeros(0)).apply(centre(K))
    array([2., 1., 0., 4.])
    """
    diagonal, low_rank = np.zeros(v.size), sparse.csr_array((v.size, v.size))
    roots = []
    diagonal[: cones.zero] = 1 / free if inverse else free
    linear = slice(cones.zero, cones.zero + cones.nonneg)
    diagonal[linear] = (
        np.divide(1.0, v[linear], out=np.zeros(cones.nonneg), where=v[linear] > 0)
        if inverse
        else v[linear]
    )
    start = linear.stop
    if cones.soc:
        rows = slice(start, start + sum(cones.soc))
        diagonal[rows], low_rank = _soc_scaling(cones.soc, v[rows], rows, v.size, inverse)
        start = rows.stop
    for order in cones.psd:
        rows = slice(start, start + svec_size(order))
        values, vectors = np.linalg.eigh(smat(v[rows]))
        power = -0.5 if inverse else 0.5
        roots.append(
            (rows, (vectors * np.maximum(values, np.finfo(float).tiny) ** power) @ vectors.T)
        )
        start = rows.stop
    flat = sparse.diags_array(diagonal) + low_rank
    if cones.exp:
        W = _exp_scaling(v[start:].reshape(-1, 3), dual, inverse)
        index = np.arange(start, v.size).reshape(-1, 3)
        at = np.repeat(index, 3, axis=1).ravel(), np.tile(index, 3).ravel()
        flat = flat + sparse.csr_array((W.ravel(), at), shape=flat.shape)
    return Scaling(sparse.csr_array(flat), tuple(roots))


def centre(cones: Cones) -> FloatArray:
    """Return the unit element of the cones: 1, (1, 0, .., 0), svec(I), the self-dual point of the exponential cone.

    >>> centre(Cones(zero=1, nonneg=1, soc=(2,)))
    array([0., 1., 1., 0.])
    """
    e = np.zeros(cones.size)
    e[cones.zero : cones.zero + cones.nonneg] = 1.0
    start = cones.zero + cones.nonneg
    sizes = np.array(cones.soc, dtype=int)
    e[start + (np.cumsum(sizes) - sizes)[sizes > 0]] = 1.0
    start += int(sizes.sum())
    for order in cones.psd:
        e[start + np.cumsum(np.concatenate(([0], np.arange(order, 1, -1))))[:order]] = 1.0
        start += svec_size(order)
    e[start:] = np.tile(_EXP_CENTRE, cones.exp)
    return e


def equilibrate(cones: Cones, A: SparseMatrix) -> tuple[FloatArray, FloatArray]:
    """Return positive (r, c) that bring the largest entries of rows and columns of diag(r) A diag(c) near 1 (Ruiz).

    They are the units in which rows and variables can be compared; a cone of several rows has one
    unit.

    >>> r, c = equilibrate(Cones(nonneg=2), sparse.csc_array([[4.0, 0.0], [0.0, 100.0]]))
    >>> r * c * [4, 100]
    array([1., 1.])
    """
    entries = A.tocoo()
    size, row, column = np.abs(entries.data), entries.row, entries.col
    r, c = np.ones(A.shape[0]), np.ones(A.shape[1])
    for _ in range(4 if size.any() else 0):
        scaled = size * r[row] * c[column]
        rows, columns = np.zeros(r.size), np.zeros(c.size)
        np.maximum.at(rows, row, scaled)
        np.maximum.at(columns, column, scaled)
        rows = block_norms(cones, rows)
        r /= np.sqrt(np.where(rows > 0, rows, 1.0))
        c /= np.sqrt(np.where(columns > 0, columns, 1.0))
    return r, c


def block_norms(cones: Cones, v: FloatArray) -> FloatArray:
    """Return for each row the Euclidean norm of v over its cone; a zero or nonnegative row is a cone of its own.

    >>> block_norms(Cones(nonneg=1, soc=(2,)), np.array([-1.0, 3.0, 4.0]))
    array([1., 5., 5.])
    """
    largest = (
        float(np.abs(v).max(initial=0.0)) or 1.0
    )  # squares of tiny or huge entries would leave the range of floats
    block = _block_of_row(cones)
    squares = np.bincount(block, weights=(v / largest) ** 2, minlength=1)
    return largest * np.sqrt(squares[block])


def block_sizes(cones: Cones, A: SparseMatrix) -> sparse.csr_array:
    """Return a matrix like |A| whose product with `block_norms(y)` bounds |A'y| cone by cone (Cauchy and Schwarz).

    The norm of a column over a cone stands in the first row of the cone.

    >>> block_sizes(Cones(nonneg=1, soc=(2,)), sparse.csc_array([[-1.0], [3.0], [4.0]])).toarray().ravel()
    array([1., 5., 0.])
    """
    if not (cones.soc or cones.psd or cones.exp):
        return sparse.csr_array(abs(A))
    block = _block_of_row(cones)
    first = np.flatnonzero(np.diff(block, prepend=-1))
    rows = first[np.searchsorted(block[first], block)]
    gather = sparse.csr_array(
        (np.ones(rows.size), (rows, np.arange(rows.size))), shape=(rows.size, rows.size)
    )
    return sparse.csr_array(gather @ A.power(2)).sqrt()


def _block_of_row(cones: Cones) -> npt.NDArray[np.intp]:
    sizes = (
        [1] * (cones.zero + cones.nonneg)
        + [*cones.soc, *map(svec_size, cones.psd)]
        + [3] * cones.exp
    )
    return np.repeat(np.arange(len(sizes)), sizes)


def _soc_scaling(
    sizes: tuple[int, ...], v: FloatArray, rows: slice, m: int, inverse: bool
) -> tuple[FloatArray, sparse.csr_array]:
    """-det(w) J as a diagonal, and 2 w w' for all blocks as one sparse matrix."""
    lengths = np.array([size for size in sizes if size])
    block = np.repeat(np.arange(lengths.size), lengths)
    heads = np.cumsum(lengths) - lengths
    tail = v.copy()
    tail[heads] = 0.0
    norm = np.sqrt(np.bincount(block, weights=tail**2))
    tiny = np.finfo(float).tiny
    power = -0.5 if inverse else 0.5
    high, low = (
        np.maximum(v[heads] + norm, tiny) ** power,
        np.maximum(v[heads] - norm, tiny) ** power,
    )
    w = tail * ((high - low) / (2 * np.maximum(norm, tiny)))[block]
    w[heads] = (high + low) / 2
    diagonal = (high * low)[block]
    diagonal[heads] *= -1
    V = sparse.csr_array((w, (np.arange(rows.start, rows.stop), block)), shape=(m, lengths.size))
    return diagonal, 2 * (V @ V.T)


def _exp_scaling(v: FloatArray, dual: bool, inverse: bool) -> npt.NDArray[Any]:
    """W for each row of v."""
    a, b, c = (v @ _T.T if dual else v).T
    # On the boundary F is infinite; a step that small is no step.
    least = 1e-14 * np.linalg.norm(v, axis=1) + np.finfo(float).tiny ** 0.25
    b, c = np.maximum(b, least), np.maximum(c, least)
    psi = np.maximum(b * np.log(c / b) - a, least)
    # H = M'M; near the boundary H itself would drown its small eigenvalues in the rounding of its
    # large one.
    M = np.zeros((len(v), 4, 3))
    M[:, 0] = np.stack([-np.ones_like(a), np.log(c / b) - 1, b / c], axis=1) / psi[:, None]
    M[:, 1, 1], M[:, 1, 2] = 1 / np.sqrt(b * psi), -np.sqrt(b / psi) / c
    M[:, 2, 1], M[:, 3, 2] = 1 / b, 1 / c
    _, roots, vectors = np.linalg.svd(M @ _T if dual else M, full_matrices=False)
    power = np.maximum(roots, np.finfo(float).tiny)[:, :, None] ** (1 if inverse else -1)
    return cast("npt.NDArray[Any]", vectors.transpose(0, 2, 1) @ (power * vectors))


def _congruence(columns: FloatArray, root: FloatArray) -> FloatArray:
    """R smat(u) R for each column u, as svec; by pieces, so that the matrices never fill the memory."""
    order = order_of(columns.shape[0])
    down, across = svec_entries(order)
    weight = svec_weights(order)
    out = np.empty_like(columns)
    step = max(1, int(_MAX_ENTRIES / max(order**2, 1)))
    for first in range(0, columns.shape[1], step):
        piece = columns[:, first : first + step].T / weight
        M = np.empty((piece.shape[0], order, order))
        M[:, down, across] = M[:, across, down] = piece
        out[:, first : first + step] = ((root @ M @ root)[:, down, across] * weight).T
    return out
