"""Multipliers of rows that free variables have for themselves, chosen after all others.

A modelling language writes |x|, log x or exp x as a variable of its own and rows that nothing else is in. Then
stationarity in these columns is no system to be solved: whatever the other multipliers are, those of
the variable's own rows follow from them, as exact real numbers that an enclosure holds.

**Lemma R1 (pairs of rows).** Let two inequalities have entries in two columns j and k only,

    a_p x_j + e_p x_k <= b_p        a_q x_j + e_q x_k <= b_q        D = a_p e_q - a_q e_p != 0,

and let g_j and g_k be the gradients of Lemma C1 without these rows. The multipliers

    y_p = (a_q g_k - e_q g_j) / D        y_q = (e_p g_j - a_p g_k) / D

make both gradients exactly 0 and move no other column. So |g_j| <= c_k is all that the epigraph of a
1-norm, |x_j| <= x_k, asks for.

**Lemma R2 (single entries).** If a row p has one entry a_p, in column j, then y_p = -g_j / a_p makes the
gradient exactly 0 and moves no other column.

The multipliers so chosen are the ones that count, if all vectors of multipliers that the enclosures
allow lie in K*: nonnegative pairs, and triples in the dual of the exponential cone. What Lemma C1 loses
by them is the sum of b_p y_p.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray
from klopt.proof.cone_membership import in_dual_exponential
from klopt.proof.enclosure import Enclosure, enclose_dot
from klopt.proof.statement import ConeStatement

__all__ = ["OwnRows", "own_rows"]

Indices = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class OwnRows:
    """Rows that solve for the gradients of some columns, one row for each of them.

    Attributes
    ----------
    statement
        The program.
    pair_rows, pair_columns
        Two rows and two columns each, one pair a line (Lemma R1).
    pair_entries
        pair_entries[i, r, c] is the entry of row r of pair i in its column c.
    single_rows, single_columns, single_entries
        Rows of exponential cones with one entry (Lemma R2).
    """

    statement: ConeStatement
    pair_rows: Indices
    pair_columns: Indices
    pair_entries: FloatArray
    single_rows: Indices
    single_columns: Indices
    single_entries: FloatArray

    @property
    def rows(self) -> Indices:
        """All rows whose multipliers are chosen last."""
        return np.concatenate((self.pair_rows.T.ravel(), self.single_rows))

    @property
    def columns(self) -> Indices:
        """The columns whose gradients they make 0."""
        return np.concatenate((self.pair_columns.T.ravel(), self.single_columns))

    @property
    def cone_rows(self) -> Indices:
        """All rows of the cones that have such a row: none of them may move after the choice."""
        start = self._exponential_start
        cone = np.unique((self.single_rows - start) // 3)
        triples = start + 3 * cone[:, None] + np.arange(3)
        return np.concatenate((self.pair_rows.ravel(), triples.ravel()))

    def multipliers(self, gradient: Enclosure) -> Enclosure:
        """Return enclosures of the multipliers of `rows`, from the gradient without them."""
        g_j = gradient[self.pair_columns[:, 0]]
        g_k = gradient[self.pair_columns[:, 1]]
        a_p, e_p = self.pair_entries[:, 0, 0], self.pair_entries[:, 0, 1]
        a_q, e_q = self.pair_entries[:, 1, 0], self.pair_entries[:, 1, 1]
        determinant = Enclosure.of(a_p) * e_q - Enclosure.of(a_q) * e_p
        first = (g_k * a_q - g_j * e_q) / determinant
        second = (g_j * e_p - g_k * a_p) / determinant
        single = -gradient[self.single_columns] / self.single_entries
        parts = (first, second, single)
        return Enclosure(
            np.concatenate([part.mid for part in parts]),
            np.concatenate([part.rad for part in parts]),
        )

    def loss(self, y: FloatArray, gradient: Enclosure) -> Enclosure | None:
        """Return what the bound loses by the multipliers; None where they may leave K*.

        Parameters
        ----------
        y
            The multipliers of the other rows.
        gradient
            The gradient without `rows`.
        """
        chosen = self.multipliers(gradient)
        pairs = chosen[: self.pair_rows.size]
        # Written so that a bound that is no number fails.
        if not (pairs.lower >= 0).all():
            return None
        if self.statement.cones.exp and not self._in_exponential_cones(y, chosen):
            return None
        return enclose_dot(chosen, self.statement.b[self.rows])

    def _in_exponential_cones(self, y: FloatArray, chosen: Enclosure) -> bool:
        """Whether the triples of all exponential cones, those that were chosen included, are in K*."""
        start = self._exponential_start
        stop = start + 3 * self.statement.cones.exp
        mid = y[start:stop].copy()
        rad = np.zeros(mid.size)
        place = self.single_rows - start
        mid[place] = chosen.mid[self.pair_rows.size :]
        rad[place] = chosen.rad[self.pair_rows.size :]
        return bool(in_dual_exponential(Enclosure(mid.reshape(-1, 3), rad.reshape(-1, 3))).all())

    @property
    def _exponential_start(self) -> int:
        """The first row of the exponential cones."""
        cones = self.statement.cones
        blocks = [block for kind, block in cones.blocks() if kind == "exp"]
        return int(blocks[0].start) if blocks else self.statement.b.size


def own_rows(statement: ConeStatement) -> OwnRows | None:
    """Return the rows that free variables have for themselves; None without any.

    >>> from scipy import sparse
    >>> from klopt.model.cones import Cones
    >>> A = sparse.csc_array([[1.0, 2.0, 0.0], [1.0, 0.0, -1.0], [-1.0, 0.0, -1.0]])
    >>> statement = ConeStatement(np.array([0.0, 0.0, 1.0]), A, np.zeros(3), Cones(zero=1, nonneg=2))
    >>> own = own_rows(statement)
    >>> own.rows, own.columns
    (array([1, 2]), array([0, 2]))
    >>> own.multipliers(Enclosure.of(np.array([0.25, 0.0, 1.0]))).mid
    array([0.375, 0.625])
    """
    # Found once: it depends on the statement alone.
    cache = statement.derived
    if "own rows" not in cache:
        cache["own rows"] = _find_own_rows(statement)
    found: OwnRows | None = cache["own rows"]
    return found


def _find_own_rows(statement: ConeStatement) -> OwnRows | None:
    """The same, looked for."""
    pairs = _find_pairs(statement)
    taken = np.zeros(statement.c.size, dtype=bool)
    taken[pairs[1]] = True
    singles = _find_singles(statement, taken)
    if not pairs[0].size and not singles[0].size:
        return None
    return OwnRows(statement, *pairs, *singles)


def _find_pairs(statement: ConeStatement) -> tuple[Indices, Indices, FloatArray]:
    """Rows, columns and entries of pairs of inequalities that have no column in common."""
    cones = statement.cones
    rows = statement.rows
    number = np.arange(rows.shape[0])
    candidate = (np.diff(rows.indptr) == 2) & (number >= cones.zero)
    candidate &= (number < cones.zero + cones.nonneg) & np.isfinite(statement.b)
    row = np.flatnonzero(candidate)

    # Both entries of each row, the smaller column first; an entry that is stored in two parts is left.
    place = rows.indptr[row][:, None] + np.arange(2)
    column = rows.indices[place].astype(np.intp)
    entry = rows.data[place]
    order = np.argsort(column, axis=1, kind="stable")
    column = np.take_along_axis(column, order, axis=1)
    entry = np.take_along_axis(entry, order, axis=1)
    apart = column[:, 0] < column[:, 1]
    row, column, entry = row[apart], column[apart], entry[apart]

    # Rows in the same two columns stand together; neighbours with a determinant are a pair.
    order = np.lexsort((row, column[:, 1], column[:, 0]))
    row, column, entry = row[order], column[order], entry[order]
    same = (column[1:] == column[:-1]).all(axis=1)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        determinant = entry[:-1, 0] * entry[1:, 1] - entry[1:, 0] * entry[:-1, 1]
    first = np.flatnonzero(same & np.isfinite(determinant) & (determinant != 0))

    taken: set[int] = set()
    kept: list[int] = []
    for candidate_pair in first.tolist():
        both = set(column[candidate_pair].tolist())
        if not taken & both:
            taken |= both
            kept.append(candidate_pair)
    chosen = np.array(kept, dtype=np.intp)
    pair = np.stack((row[chosen], row[chosen + 1]), axis=1)
    entries = np.stack((entry[chosen], entry[chosen + 1]), axis=1)
    return pair, column[chosen], entries


def _find_singles(
    statement: ConeStatement, taken: npt.NDArray[np.bool_]
) -> tuple[Indices, Indices, FloatArray]:
    """Rows of exponential cones with one entry, at most one for each column without bounds."""
    none = np.zeros(0, np.intp)
    blocks = [block for kind, block in statement.cones.blocks() if kind == "exp"]
    if not blocks:
        return none, none, np.zeros(0)
    rows = statement.rows
    row = np.arange(blocks[0].start, blocks[0].stop)
    row = row[(np.diff(rows.indptr)[row] == 1) & np.isfinite(statement.b[row])]
    column = rows.indices[rows.indptr[row]].astype(np.intp)
    entry = rows.data[rows.indptr[row]]
    known = statement.stated_range
    free = np.isinf(known.lower) & np.isinf(known.upper) & ~taken
    usable = free[column] & (entry != 0)
    row, column, entry = row[usable], column[usable], entry[usable]
    column, first = np.unique(column, return_index=True)
    return row[first], column, entry[first]
