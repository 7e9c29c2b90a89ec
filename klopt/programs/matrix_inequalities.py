"""The matrices F_0, F_1, .., F_n of a linear matrix inequality as blocks and linear rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from klopt.arrays import EPS, SparseMatrix, csc
from klopt.errors import InvalidProblem
from klopt.model.cones import svec_index, svec_size
from klopt.programs.formats.model import Block
from klopt.witness.cone_interior import is_sparse

__all__ = ["matrix_blocks"]


def matrix_blocks(F: Any, n: int) -> tuple[tuple[Block, ...], SparseMatrix]:
    """Return the blocks that are not diagonal, and the diagonals of the others as rows.

    The columns of the rows are those of F_0, .., F_n. An empty F states no matrix inequality.

    >>> blocks, rows = matrix_blocks([0, (np.eye(2), [[0, 1], [1, 0]])], 1)
    >>> [block.order for block in blocks], rows.toarray()
    ([2], array([[0., 1.],
           [0., 1.]]))
    """
    if not isinstance(F, Iterable):
        raise InvalidProblem(f"F is {F!r}; expected the list of matrices F_0, F_1, .., F_n")
    found = tuple(F)
    # Blocks come from a file, everything else from a user.
    if not found or not all(isinstance(item, Block) for item in found):
        found = _from_matrices(found, n)
    for index, block in enumerate(found):
        if block.entries.shape[1] != n + 1:
            raise InvalidProblem(
                f"F has {block.entries.shape[1]} matrices in block {index}; expected n + 1 = {n + 1}"
            )
    # A diagonal matrix is positive semidefinite where its entries are nonnegative.
    linear = [block.diagonal() for block in found if block.is_diagonal]
    rows = csc("F", sparse.vstack([sparse.csc_array((0, n + 1)), *linear], format="csc"))
    return tuple(block for block in found if not block.is_diagonal), rows


def _from_matrices(F: Sequence[Any], n: int) -> tuple[Block, ...]:
    if not F:
        return ()
    if len(F) != n + 1:
        raise InvalidProblem(
            f"F has {len(F)} matrices; expected F_0, F_1, .., F_n: {n + 1} of them"
        )
    rows = [_as_blocks(f"F[{index}]", item) for index, item in enumerate(F)]
    count = max(len(row) for row in rows)
    for index, row in enumerate(rows):
        if row and len(row) != count:
            raise InvalidProblem(f"F[{index}] has {len(row)} blocks; the others have {count}")
    return tuple(_block([row[k] if row else 0 for row in rows], k, count) for k in range(count))


def _as_blocks(name: str, item: Any) -> tuple[Any, ...]:
    """The blocks of one matrix; () stands for zero."""
    if is_sparse(item):
        return (item,)
    try:
        # A list of matrices has blocks; a list of lists is one matrix.
        several = isinstance(item, list | tuple)
        if several and any(is_sparse(part) or np.ndim(part) == 2 for part in item):
            return tuple(item)
        is_zero = np.ndim(item) == 0 and not np.any(item)
        return () if is_zero else (item,)
    except ValueError:
        raise InvalidProblem(
            f"{name} is ragged; expected a symmetric matrix, a tuple of blocks, or 0"
        ) from None


def _block(matrices: list[Any], k: int, count: int) -> Block:
    shapes = [M.shape if is_sparse(M) else np.shape(M) for M in matrices]
    order = next((shape[0] for shape in shapes if len(shape) == 2), 0)
    places = [np.zeros(0, int)]
    columns = [np.zeros(0, int)]
    values = [np.zeros(0)]
    for index, M in enumerate(matrices):
        if not is_sparse(M) and np.ndim(M) == 0 and not np.any(M):
            continue
        name = f"F[{index}]" if count == 1 else f"F[{index}] block {k}"
        lower = sparse.tril(_symmetric(name, csc(name, M, (order, order)))).tocoo()
        places.append(svec_index(lower.row, lower.col, order))
        columns.append(np.full(lower.nnz, index))
        values.append(lower.data)
    at = (np.concatenate(places), np.concatenate(columns))
    shape = (svec_size(order), len(matrices))
    return Block(order, sparse.csc_array((np.concatenate(values), at), shape=shape))


def _symmetric(name: str, M: SparseMatrix) -> SparseMatrix:
    gap = abs(M - M.T)
    # Entries computed as products may differ from their mirror images by rounding.
    if gap.nnz and gap.max() > 64 * EPS * abs(M).max():
        worst = gap.tocoo()
        place = int(np.argmax(worst.data))
        row, column = sorted((int(worst.row[place]), int(worst.col[place])))
        raise InvalidProblem(
            f"{name} is not symmetric: [{row}, {column}] is {M[row, column]}, not {M[column, row]}; use (M + M.T) / 2"
        )
    return M
