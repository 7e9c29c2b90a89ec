"""Free variables that are written as differences of nonnegative ones, merged again.

**Lemma V1.** Let x_j >= 0 and x_k >= 0 be rows of their own, let c_k = -c_j, and let column k of A be
the negative of column j in all other rows. The program depends on x_j - x_k alone, which takes every
real value: with x_j free and without x_k it has the same optimum.

It matters since no multipliers lie inside their cones as long as both rows are there: theirs add up
to 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import attrs
import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.proof.statement import ConeStatement

__all__ = ["Merged", "merged_columns"]

Indices = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Merged:
    """A statement with the same optimum, and where its rows and columns come from.

    Attributes
    ----------
    statement
        The program without the columns `minus` and the two bounds of each pair.
    rows, columns
        Those of the original that are left, in order.
    plus, minus
        The pairs: x[plus] is the free variable, x[plus] - x[minus] of the original.
    """

    statement: ConeStatement
    rows: Indices
    columns: Indices
    plus: Indices
    minus: Indices


def merged_columns(statement: ConeStatement) -> Merged | None:
    """Return the statement with all split variables merged; None where there are none.

    >>> from klopt.model.cones import Cones
    >>> A = sparse.csc_array([[1.0, -1.0], [-1.0, 0.0], [0.0, -1.0]])
    >>> statement = ConeStatement(np.array([2.0, -2.0]), A, np.zeros(3), Cones(zero=1, nonneg=2))
    >>> merged = merged_columns(statement)
    >>> merged.statement.A.toarray(), merged.statement.cones.nonneg
    (array([[1.]]), 0)
    """
    # Found once: what is proven about the merged program stays with it.
    cache = statement.derived
    if "merged" not in cache:
        cache["merged"] = _merged(statement)
    found: Merged | None = cache["merged"]
    return found


def _merged(statement: ConeStatement) -> Merged | None:
    """The same, looked for."""
    cones = statement.cones
    # Curvature and norms of x see the two variables apart.
    if statement.P is not None or statement.quadratics:
        return None
    if np.isfinite(statement.within) or np.isfinite(statement.radius):
        return None
    counts = np.diff(statement.rows.indptr)
    row = np.arange(counts.size)
    bound = (row >= cones.zero) & (row < cones.zero + cones.nonneg) & (counts == 1)
    bound &= statement.b == 0
    bound_rows = np.flatnonzero(bound)
    places = statement.rows.indptr[bound_rows]
    falling = statement.rows.data[places] < 0
    bound_rows = bound_rows[falling]
    of_column = statement.rows.indices[places[falling]]
    # One bound each: a second one of the same column stays and says that they do not match.
    column, first = np.unique(of_column, return_index=True)
    own = np.zeros(statement.c.size, dtype=np.intp)
    own[column] = bound_rows[first]

    seen: dict[bytes, int] = {}
    pairs: list[tuple[int, int]] = []
    A = sparse.csc_array(statement.A)
    for j in column.tolist():
        entries = slice(A.indptr[j], A.indptr[j + 1])
        other = A.indices[entries] != own[j]
        indices = A.indices[entries][other]
        order = np.argsort(indices)
        # Adding 0 takes the sign from a zero.
        data = np.append(A.data[entries][other][order], statement.c[j]) + 0.0
        head = indices[order].tobytes()
        partner = seen.pop(head + (-data + 0.0).tobytes(), None)
        if partner is None:
            seen[head + data.tobytes()] = j
        else:
            pairs.append((partner, j))
    if not pairs:
        return None
    plus, minus = np.array(pairs, dtype=np.intp).T
    rows = np.setdiff1d(row, own[np.concatenate((plus, minus))])
    columns = np.setdiff1d(np.arange(statement.c.size), minus)
    smaller = replace(
        statement,
        c=statement.c[columns],
        A=sparse.csc_array(statement.rows[rows][:, columns]),
        b=statement.b[rows],
        cones=attrs.evolve(cones, nonneg=cones.nonneg - 2 * plus.size),
    )
    return Merged(smaller, rows, columns, plus, minus)
