"""The interior of the cones: a central point, and the scaling by the barrier's local norm.

For v inside K let H be the Hessian at v of the logarithmic barrier F of K. The symmetric map
W = H^(-1/2) takes the unit ball to the Dikin ellipsoid around v, {v + W u : ||u|| <= 1}, which lies
in K (Nesterov and Nemirovskii, 1994); so ||W^-1 d|| says how far a step d goes to the boundary.

    nonneg   F = - sum log v_i             W u = v * u
    soc      F = - log(v_0^2 - ||v_1||^2)  W u = 2 w (w'u) - det(w) J u,  w = v^(1/2)
    psd      F = - log det V               W U = V^(1/2) U V^(1/2)
    exp      F = - log(v_1 log(v_2 / v_1) - v_0) - log v_1 - log v_2,     W = H^(-1/2)
    power    F = - log(m^2 - z^2) - sum_i (1 - a_i) log x_i,  m = x^a,    W = H^(-1/2)

with det(w) = w_0^2 - ||w_1||^2 and J = diag(1, -1, .., -1). On the first three, the symmetric
cones, W is the quadratic representation of v^(1/2), the scaling of Nesterov and Todd (1997) whose
scaling point is v: W e = v for the unit element e. (On soc it is sqrt(2) H^(-1/2), so that the ball
of radius 1/sqrt(2) fits.) Exponential and power cones are not symmetric; there W is H^(-1/2) itself.

The dual exponential cone is {y : T y in K} with T y = (y_0 - y_1, -y_0, y_2), so F(T y) is its
barrier; for the power cone T y = (u_1/a_1, .., u_k/a_k, v) with y = (u, v).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import FloatArray, freeze
from klopt.model.cones import Cones, order_of, smat, svec_entries, svec_size, svec_weights
from klopt.model.cones.power import Weights, exponents, power_sizes

__all__ = ["Scaling", "centre", "is_sparse", "scaling_at"]

EXP_CENTRE = freeze(np.array([-1.051383945322714, 0.556409619469370, 1.258967884768947]))
"""The point of the exponential cone with F'(v) = -v; it lies inside the dual cone too."""
EXP_DUAL_TO_PRIMAL = freeze(np.array([[1.0, -1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]))
"""T: y lies in the dual exponential cone where T y lies in the primal one."""
MIN_DEPTH = 1e-14
"""The smallest depth inside an exponential or a power cone, relative to the norm of the point."""
MAX_CHUNK_ENTRIES = 1e7
"""How many numbers `_congruence` holds at a time, as stacked square matrices."""
SMALLEST_NORMAL = float(np.finfo(float).tiny)
"""Eigenvalues are raised to this: by rounding they can be 0 or negative next to the boundary."""


@dataclass(frozen=True, eq=False)
class Scaling:
    """The map W: sparse on all rows but the PSD ones, the factor V^(1/2) for each PSD block."""

    flat: sparse.csr_array
    psd_roots: tuple[tuple[slice, FloatArray], ...]

    def apply(self, U: Any) -> Any:
        """Return W U for a vector or the columns of a matrix; dense where there are PSD rows."""
        out = self.flat @ U
        if not self.psd_roots:
            return out

        # A congruence fills its block, so sparsity is lost here.
        if is_sparse(out):
            out = out.toarray()
        for rows, root in self.psd_roots:
            part = U[rows]
            if is_sparse(part):
                part = part.toarray()
            columns = part.reshape(part.shape[0], -1)
            out[rows] = _congruence(columns, root).reshape(out[rows].shape)
        return out


def is_sparse(value: Any) -> bool:
    """Return whether the value is a sparse matrix, in a way that does not narrow its type."""
    return bool(sparse.issparse(value))


def centre(cones: Cones) -> FloatArray:
    """Return the unit element e of the cones; 0 on zero rows.

    It is 1 on a nonnegative row, (1, 0, .., 0) on a second-order cone, svec(I) on a PSD cone and
    the self-dual point of the barrier, F'(e) = -e, on an exponential or a power cone.

    >>> centre(Cones(zero=1, nonneg=1, soc=(2,)))
    array([0., 1., 1., 0.])
    """
    e = np.zeros(cones.size)

    start = cones.zero + cones.nonneg
    e[cones.zero : start] = 1.0

    sizes = np.array(cones.soc, dtype=int)
    heads = np.cumsum(sizes) - sizes
    e[start + heads[sizes > 0]] = 1.0
    start += int(sizes.sum())

    for order in cones.psd:
        # svec stacks columns of order, order - 1, .., 1 entries; each begins with its diagonal one.
        lengths = np.arange(order, 0, -1)
        diagonal = np.cumsum(lengths) - lengths
        e[start + diagonal] = 1.0
        start += svec_size(order)

    e[start : start + 3 * cones.exp] = np.tile(EXP_CENTRE, cones.exp)
    start += 3 * cones.exp

    for weights in cones.power:
        e[start : start + len(weights)] = np.sqrt(1 + exponents(weights))
        start += len(weights) + 1
    return e


def scaling_at(
    cones: Cones,
    v: FloatArray,
    free: FloatArray,
    *,
    dual: bool = False,
    inverse: bool = False,
) -> Scaling:
    """Return W at a point inside the cones, or its inverse.

    Parameters
    ----------
    cones
        The product K.
    v
        A point inside K, or inside K* with `dual`. Nonnegative rows may be 0: there W is 0, and 0
        stands for its inverse.
    free
        What zero rows are scaled by: these have no interior, their multipliers no boundary.
    dual
        Whether v lies in K*. Only exponential and power cones differ from their duals.
    inverse
        Whether to return W^-1 instead.

    >>> K = Cones(nonneg=1, psd=(2,))
    >>> v = np.array([2.0, 1.0, 0.0, 4.0])
    >>> scaling_at(K, v, np.zeros(0)).apply(centre(K))
    array([2., 1., 0., 4.])
    """
    diagonal = np.zeros(v.size)
    low_rank = sparse.csr_array((v.size, v.size))
    psd_roots = []

    # Zero rows: the scale is the caller's.
    diagonal[: cones.zero] = 1 / free if inverse else free

    # Nonnegative rows: diagonal.
    linear = slice(cones.zero, cones.zero + cones.nonneg)
    diagonal[linear] = _nonneg_scaling(v[linear], inverse)
    start = linear.stop

    # Second-order cones: diagonal plus rank one each.
    if cones.soc:
        rows = slice(start, start + sum(cones.soc))
        diagonal[rows], low_rank = _soc_scaling(cones.soc, v[rows], rows, v.size, inverse)
        start = rows.stop

    # PSD cones: dense, kept as factors.
    for order in cones.psd:
        rows = slice(start, start + svec_size(order))
        psd_roots.append((rows, _psd_root(v[rows], inverse)))
        start = rows.stop

    # Exponential cones: blocks of order 3.
    flat: Any = sparse.diags_array(diagonal) + low_rank
    if cones.exp:
        stop = start + 3 * cones.exp
        blocks = _exp_scaling(v[start:stop].reshape(-1, 3), dual, inverse)
        index = np.arange(start, stop).reshape(-1, 3)
        rows_of_entries = np.repeat(index, 3, axis=1).ravel()
        columns_of_entries = np.tile(index, 3).ravel()
        places = (rows_of_entries, columns_of_entries)
        flat = flat + sparse.csr_array((blocks.ravel(), places), shape=flat.shape)
        start = stop

    # Power cones: a block each.
    if cones.power:
        ends = start + np.cumsum(power_sizes(cones.power))
        made = [
            _power_scaling(weights, v[end - len(weights) - 1 : end], dual, inverse)
            for weights, end in zip(cones.power, ends.tolist(), strict=True)
        ]
        before = sparse.csr_array((start, start))
        flat = flat + sparse.block_diag([before, *made], format="csr")
    return Scaling(sparse.csr_array(flat), tuple(psd_roots))


def _nonneg_scaling(v: FloatArray, inverse: bool) -> FloatArray:
    """The diagonal of W, or of its pseudo-inverse."""
    if not inverse:
        return v
    return np.divide(1.0, v, out=np.zeros(v.size), where=v > 0)


def _soc_scaling(
    sizes: tuple[int, ...],
    v: FloatArray,
    rows: slice,
    m: int,
    inverse: bool,
) -> tuple[FloatArray, sparse.csr_array]:
    """W = 2 w w' - det(w) J for all second-order cones at once.

    v = (v_0, v_1) has the spectral values v_0 +- ||v_1||, of which w has the square roots (their
    reciprocals for the inverse).

    Parameters
    ----------
    sizes
        The sizes of the cones.
    v
        The rows of the interior point that belong to them.
    rows
        Where these rows lie among all rows.
    m
        The number of all rows.
    inverse
        Whether to return W^-1.

    Returns
    -------
    -det(w) J as a diagonal over `rows`, and 2 w w' as a sparse matrix over all rows.
    """
    lengths = np.array([size for size in sizes if size])
    block = np.repeat(np.arange(lengths.size), lengths)
    heads = np.cumsum(lengths) - lengths
    tail = v.copy()
    tail[heads] = 0.0
    norm = np.sqrt(np.bincount(block, weights=tail**2))

    power = -0.5 if inverse else 0.5
    high = np.maximum(v[heads] + norm, SMALLEST_NORMAL) ** power
    low = np.maximum(v[heads] - norm, SMALLEST_NORMAL) ** power
    shrink = (high - low) / (2 * np.maximum(norm, SMALLEST_NORMAL))
    w = tail * shrink[block]
    w[heads] = (high + low) / 2

    diagonal = (high * low)[block]
    diagonal[heads] *= -1
    places = (np.arange(rows.start, rows.stop), block)
    w_by_block = sparse.csr_array((w, places), shape=(m, lengths.size))
    return diagonal, 2 * (w_by_block @ w_by_block.T)


def _psd_root(v: FloatArray, inverse: bool) -> FloatArray:
    """V^(1/2), or V^(-1/2), for V = smat(v)."""
    values, vectors = np.linalg.eigh(smat(v))
    power = -0.5 if inverse else 0.5
    positive = np.maximum(values, SMALLEST_NORMAL)
    root = (vectors * positive**power) @ vectors.T
    return cast(FloatArray, root)


def _exp_scaling(v: FloatArray, dual: bool, inverse: bool) -> npt.NDArray[Any]:
    """H^(-1/2), or H^(1/2), for each row of v.

    H = M'M with four rows, by psi = v_1 log(v_2 / v_1) - v_0 and its gradient: psi' / psi, the rank
    one part of -psi'' / psi, and 1 / v_1, 1 / v_2 on the axes. The root comes from the singular
    values of M: near the boundary H would drown its small eigenvalues in the rounding of its large
    one.
    """
    primal = v @ EXP_DUAL_TO_PRIMAL.T if dual else v
    a, b, c = primal.T

    # On the boundary F is infinite, so the point is moved inside, by about rounding.
    depth = MIN_DEPTH * np.linalg.norm(v, axis=1) + SMALLEST_NORMAL**0.25
    b = np.maximum(b, depth)
    c = np.maximum(c, depth)
    psi = np.maximum(b * np.log(c / b) - a, depth)

    M = np.zeros((len(v), 4, 3))
    psi_gradient = np.stack([-np.ones_like(a), np.log(c / b) - 1, b / c], axis=1)
    M[:, 0] = psi_gradient / psi[:, None]
    M[:, 1, 1] = 1 / np.sqrt(b * psi)
    M[:, 1, 2] = -np.sqrt(b / psi) / c
    M[:, 2, 1] = 1 / b
    M[:, 3, 2] = 1 / c
    if dual:
        M = M @ EXP_DUAL_TO_PRIMAL

    _, singular, vectors = np.linalg.svd(M, full_matrices=False)
    power = 1 if inverse else -1
    positive = np.maximum(singular, SMALLEST_NORMAL)
    scaled = positive[:, :, None] ** power * vectors
    return cast("npt.NDArray[Any]", vectors.transpose(0, 2, 1) @ scaled)


def _power_scaling(weights: Weights, v: FloatArray, dual: bool, inverse: bool) -> FloatArray:
    """H^(-1/2), or H^(1/2), at a point of one power cone.

    With m = x^a, F = - log(m - z) - log(m + z) - sum_i (1 - a_i) log x_i, and -m'' in the units x is
    m (diag(a) - a a'): H = M'M by the gradients of the two logarithms, by a root of -m'' times
    1 / (m - z) + 1 / (m + z), and by sqrt(1 - a_i) / x_i on the axes.
    """
    a = exponents(weights)
    k = a.size
    to_primal = np.append(1 / a, 1.0) if dual else np.ones(k + 1)
    primal = v * to_primal
    z = primal[-1]

    # On the boundary F is infinite, so the point is moved inside, by about rounding.
    depth = MIN_DEPTH * float(np.linalg.norm(primal)) + SMALLEST_NORMAL**0.25
    x = np.maximum(primal[:-1], depth)
    m = float(np.exp(a @ np.log(x)))
    low = max(m - abs(z), depth)
    high = m + abs(z)

    M = np.zeros((2 * k + 2, k + 1))
    M[0, :k] = m * a / x / low
    towards = -1.0 if z < 0 else 1.0
    M[0, k] = -towards / low
    M[1, :k] = m * a / x / high
    M[1, k] = towards / high
    root = np.sqrt(a)
    across = np.eye(k) - np.outer(root, root)
    M[2 : 2 + k, :k] = np.sqrt(m * (1 / low + 1 / high)) * across * (root / x)
    M[2 + k :, :k] = np.diag(np.sqrt(1 - a) / x)
    M *= to_primal

    _, singular, vectors = np.linalg.svd(M, full_matrices=False)
    positive = np.maximum(singular, SMALLEST_NORMAL)
    scaled = positive[:, None] ** (1 if inverse else -1) * vectors
    return cast(FloatArray, vectors.T @ scaled)


def _congruence(columns: FloatArray, root: FloatArray) -> FloatArray:
    """svec(R smat(u) R) for each column u, by chunks that bound the memory."""
    order = order_of(columns.shape[0])
    down, across = svec_entries(order)
    weight = svec_weights(order)

    out = np.empty_like(columns)
    step = max(1, int(MAX_CHUNK_ENTRIES / max(order**2, 1)))
    for first in range(0, columns.shape[1], step):
        chunk = slice(first, first + step)
        entries = columns[:, chunk].T / weight
        U = np.empty((entries.shape[0], order, order))
        U[:, down, across] = entries
        U[:, across, down] = entries
        moved = root @ U @ root
        out[:, chunk] = (moved[:, down, across] * weight).T
    return out
