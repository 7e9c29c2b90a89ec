"""A semidefinite constraint seen through fewer vectors, for programs whose multipliers have no interior.

**Lemma F1.** S psd implies V'SV psd for every V: replacing a block of the constraints by its compression
is a relaxation, whose lower bounds are lower bounds of the program. Its multipliers Y are those of the
program of the form V Y V'. If all multipliers have V as range, nothing is lost, and there may be some
inside the smaller cone.

If V is square and regular, the two constraints are equivalent, and so are the programs.

**Lemma F2 (exact compressions).** If all entries of F are multiples of a power of two u, V is made of
integers, and (|V|'|F||V|)_ij < 2^53 u, then floating point computes V'FV without rounding, in any order.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.model.cones import svec_entries, svec_size
from klopt.proof.statement import ConeStatement

__all__ = ["compressed", "turned"]


def compressed(statement: ConeStatement, block: int, V: FloatArray) -> ConeStatement | None:
    """Return the statement with V'SV for its semidefinite block S; None where that would round.

    Parameters
    ----------
    statement
        With plain semidefinite blocks and without quadratic terms.
    block
        Which of `cones.psd`.
    V
        An integer matrix with as many rows as the block's order.

    >>> from klopt.model.cones import Cones
    >>> A = sparse.csc_array([[-1.0], [-1.0], [-1.0]])
    >>> statement = ConeStatement(np.zeros(1), A, np.array([2.0, 1.0, 3.0]), Cones(psd=(2,)), plain=True)
    >>> smaller = compressed(statement, 0, np.array([[1.0], [-1.0]]))
    >>> smaller.A.toarray(), smaller.b, smaller.cones.psd
    (array([[0.]]), array([3.]), (1,))
    """
    cones = statement.cones
    order = cones.psd[block]
    if not statement.plain or V.shape[0] != order or not (np.rint(V) == V).all():
        return None
    start = cones.zero + cones.nonneg + sum(cones.soc) + sum(map(svec_size, cones.psd[:block]))
    rows = slice(start, start + svec_size(order))
    small = svec_size(V.shape[1])
    part = sparse.csc_array(statement.rows[rows])
    if not _is_exact(np.concatenate((part.data, statement.b[rows])), V):
        return None
    data: list[FloatArray] = []
    places: list[npt.NDArray[np.intp]] = []
    columns: list[npt.NDArray[np.intp]] = []
    for column in np.flatnonzero(np.diff(part.indptr)).tolist():
        entries = slice(part.indptr[column], part.indptr[column + 1])
        value = _compression(part.indices[entries], part.data[entries], V)
        place = np.flatnonzero(value)
        data.append(value[place])
        places.append(place)
        columns.append(np.full(place.size, column, dtype=np.intp))
    none = np.zeros(0, np.intp)
    inner = sparse.csr_array(
        (
            np.concatenate((np.zeros(0), *data)),
            (np.concatenate((none, *places)), np.concatenate((none, *columns))),
        ),
        shape=(small, part.shape[1]),
    )
    b = _compression(np.arange(svec_size(order)), statement.b[rows], V)
    A = sparse.vstack([statement.rows[: rows.start], inner, statement.rows[rows.stop :]])
    psd = (*cones.psd[:block], V.shape[1], *cones.psd[block + 1 :])
    return replace(
        statement,
        A=sparse.csc_array(A),
        b=np.concatenate((statement.b[: rows.start], b, statement.b[rows.stop :])),
        cones=attrs.evolve(cones, psd=psd),
    )


def turned(
    statement: ConeStatement, block: int, V: FloatArray, w: FloatArray
) -> ConeStatement | None:
    """Return the equivalent statement with [V w]'S[V w] for a semidefinite block S.

    None where that would round, or where [V w] is not seen to be regular: it is if w is orthogonal
    to the columns of V, which have the unit matrix among their rows.

    Parameters
    ----------
    statement, block
        As in `compressed`.
    V, w
        Integers, one row for each of the block's order.
    """
    order = V.shape[0]
    if V.shape != (order, order - 1) or w.shape != (order,) or not w.any():
        return None
    if max(float(np.abs(V).max()), float(np.abs(w).max())) * order > 2.0**25:
        return None
    unit = np.count_nonzero(V, axis=1) == 1
    rows = V[unit]
    is_unit = rows.size and np.array_equal(np.unique(np.nonzero(rows)[1]), np.arange(order - 1))
    if not is_unit or (V.T @ w).any():
        return None
    return compressed(statement, block, np.column_stack((V, w)))


def _compression(places: npt.NDArray[Any], data: FloatArray, V: FloatArray) -> FloatArray:
    """The lower triangle of V'FV, column by column, for F given by entries of its own."""
    down, across = svec_entries(V.shape[0])
    i, j = down[places], across[places]
    half = (V[i] * data[:, None]).T @ V[j]
    off = i != j
    if off.any():
        half = half + (V[j[off]] * data[off, None]).T @ V[i[off]]
    below, beside = svec_entries(V.shape[1])
    return np.asarray(half[below, beside])


def _is_exact(entries: FloatArray, V: FloatArray) -> bool:
    """Lemma F2 for all matrices with such entries, by the largest one and the row sums of |V|."""
    used = entries[np.flatnonzero(entries)]
    if not used.size:
        return True
    if not np.isfinite(used).all():
        return False
    mantissa, exponent = np.frexp(used)
    whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    unit = int(np.min(np.log2((whole & -whole).astype(float)) + exponent - 53))
    # At most |V|'|F||V| <= max|F| (largest column sum of |V|)^2, on the way to each entry too.
    size = Fraction(float(np.max(np.abs(used)))) * Fraction(float(np.abs(V).sum(axis=0).max())) ** 2
    return unit > -1000 and size < 2**53 * Fraction(2) ** unit
