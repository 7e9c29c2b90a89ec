"""`ConeStatement`: a cone program read as exact numbers, and what its rows imply for each variable.

    minimise     x'Px/2 + c'x
    subject to   s = b - Ax in K,    x'P_i x/2 + q_i'x <= r_i,    ||x|| <= within

Every float is the rational number it stands for. The rows of a semidefinite block are the entries
of the lower triangle, column by column: as they are (`plain`), or with those off the diagonal times
sqrt(2) (`svec`). The trace product of two matrices is then

    <Y, S> = sum_i weight_i y_i s_i,     weight = 2 off the diagonal of a plain block, else 1.

**Lemma B1 (bounds of variables).** From sum_j a_j x_j <= b and lower <= x <= upper follows, for
a_k > 0, x_k <= (b - sum_{j != k} min(a_j lower_j, a_j upper_j)) / a_k, and for a_k < 0 likewise a
lower bound. Rounded outwards, such bounds hold for every feasible x; rows with a single entry are
the case without a sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import FloatArray, SparseMatrix
from klopt.model.cones import Cones, order_of, svec_entries
from klopt.proof.convexity import negative_curvature
from klopt.proof.enclosure import (
    ETA,
    UNIT_ROUNDOFF,
    Enclosure,
    enlarged,
    gamma,
    round_down,
    round_up,
)
from klopt.proof.exact_rank import RowDependence, independent_rows

if TYPE_CHECKING:
    from klopt.model.forms import ConeForm

__all__ = ["ConeStatement", "QuadraticConstraint", "TermProducts", "VariableRange"]

Mask = npt.NDArray[np.bool_]
MAX_DENSE = 4096
"""Entries up to which a matrix is multiplied as a dense one."""
MAX_ENTRIES = 20_000
"""Stored entries up to which a sparse matrix is multiplied entry by entry."""
PROPAGATION_PASSES = 4
"""How often Lemma B1 is applied to all rows; bounds that follow from bounds need several."""


@dataclass(frozen=True, eq=False)
class QuadraticConstraint:
    """x'Px/2 + q'x <= r with P positive semidefinite."""

    P: SparseMatrix
    q: FloatArray
    r: float


@dataclass(frozen=True, eq=False)
class VariableRange:
    """lower <= x <= upper for every feasible x; infinite where nothing is known."""

    lower: FloatArray
    upper: FloatArray


class TermProducts:
    """Products of a matrix with vectors, and the sizes of their terms row by row.

    Small matrices are kept dense, which is faster; the zeros that fill them add no rounding.
    """

    def __init__(self, rows: Any, count: Any) -> None:
        self.count = count
        """The number of terms of each row."""
        self._rows = rows
        self._sizes = abs(rows)

    def of(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the product and the sums of the absolute values of its terms."""
        return self._rows @ x, self._sizes @ np.abs(x)

    def are_zeros(self, x: FloatArray) -> Mask:
        """Return which rows have no term but 0."""
        return np.asarray(self._sizes @ (x != 0).astype(float) == 0)


class EntryProducts:
    """The same from the entries of a sparse matrix: no second matrix of their sizes is made."""

    def __init__(self, row: Any, column: Any, entry: FloatArray, count: Any) -> None:
        self.count = count
        self._row = row
        self._column = column
        self._entry = entry

    def of(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the product and the sums of the absolute values of its terms."""
        terms = self._entry * x[self._column]
        sizes = np.abs(terms)
        rows = len(self.count)
        # Each row is added term by term: Lemma E2, whatever the order.
        total = np.bincount(self._row, terms, rows)
        return np.asarray(total, float), np.asarray(np.bincount(self._row, sizes, rows), float)

    def are_zeros(self, x: FloatArray) -> Mask:
        """Return which rows have no term but 0."""
        nonzero = (x != 0)[self._column] & (self._entry != 0)
        return np.asarray(np.bincount(self._row[nonzero], minlength=len(self.count)) == 0)


@dataclass(frozen=True, eq=False)
class ConeStatement:
    """A cone program as exact numbers.

    Parameters
    ----------
    c, A, b, cones, P
        As in `klopt.model.forms.ConeForm`.
    quadratics
        Constraints x'P_i x/2 + q_i'x <= r_i.
    plain
        Whether rows of semidefinite blocks are plain entries of matrices, not those of `svec`.
    within
        A declared bound of the Euclidean norm of x, part of the statement.
    radius
        A bound of ||x||_1 over the feasible set that the problem has proven.
    """

    c: FloatArray
    A: SparseMatrix
    b: FloatArray
    cones: Cones
    P: SparseMatrix | None = None
    quadratics: tuple[QuadraticConstraint, ...] = ()
    plain: bool = False
    within: float = np.inf
    radius: float = np.inf

    @classmethod
    def of_form(cls, form: ConeForm) -> ConeStatement:
        """Return what a form states."""
        return cls(form.c, form.A, form.b, form.cones, form.P, radius=form.radius)

    @cached_property
    def rows(self) -> sparse.csr_array:
        """A, row by row."""
        return sparse.csr_array(self.A)

    @cached_property
    def entries(self) -> tuple[Any, Any, FloatArray]:
        """(row, column, entry) of all stored entries of A."""
        A = self.A
        return A.indices, np.repeat(np.arange(A.shape[1]), np.diff(A.indptr)), A.data

    @cached_property
    def row_products(self) -> TermProducts | EntryProducts:
        """Ax and |A||x|."""
        row, column, entry = self.entries
        count = np.bincount(row, minlength=self.b.size)
        if self._dense is not None:
            return TermProducts(self._dense, count)
        if entry.size <= MAX_ENTRIES:
            return EntryProducts(row, column, entry, count)
        return TermProducts(self.rows, count)

    @cached_property
    def column_products(self) -> TermProducts | EntryProducts:
        """A'y and |A|'|y|."""
        row, column, entry = self.entries
        count = np.diff(self.A.indptr)
        if self._dense is not None:
            return TermProducts(self._dense.T, count)
        if entry.size <= MAX_ENTRIES:
            return EntryProducts(column, row, entry, count)
        return TermProducts(self.A.T, count)

    @cached_property
    def independent_columns(self) -> dict[bytes, npt.NDArray[np.intp] | None]:
        """Of columns whose dependence has been looked for, the independent ones."""
        return {}

    @cached_property
    def derived(self) -> dict[str, Any]:
        """Other statements that have been derived from this one."""
        return {}

    @cached_property
    def _dense(self) -> FloatArray | None:
        m, n = self.A.shape
        return self.A.toarray() if m * n <= MAX_DENSE else None

    @cached_property
    def vacuous(self) -> Mask:
        """Rows with b = inf, which say nothing."""
        return np.asarray(self.b == np.inf)

    @cached_property
    def weight(self) -> FloatArray:
        """The weight of each row in the product of multipliers and slacks."""
        weight = np.ones(self.b.size)
        if self.plain:
            for kind, block in self.cones.blocks():
                if kind == "psd":
                    weight[block] = np.where(_off_diagonal(block), 2.0, 1.0)
        return weight

    @property
    def curvatures(self) -> tuple[SparseMatrix, ...]:
        """P, where there is one, and the matrices of the quadratic constraints."""
        own = () if self.P is None else (self.P,)
        return (*own, *(row.P for row in self.quadratics))

    def enclose_curvature(self, index: int, x: FloatArray) -> Enclosure:
        """Return the product of one of `curvatures` with a vector."""
        known = self._curvature_products
        if index not in known:
            matrix = self.curvatures[index]
            n = self.c.size
            is_dense = n * n <= max(MAX_DENSE, 2 * matrix.nnz)
            count = int(np.max(np.diff(matrix.indptr), initial=0))
            known[index] = TermProducts(matrix.toarray() if is_dense else matrix, count)
        products = known[index]
        mid, terms = products.of(x)
        count = products.count
        # Lemma E2, and the rounding of the sums of sizes.
        return Enclosure(mid, enlarged(gamma(count) * terms, count))

    @cached_property
    def _curvature_products(self) -> dict[int, TermProducts]:
        """The matrices that have been multiplied, with the sizes of their entries."""
        return {}

    def few_rows(self, rows: npt.NDArray[np.intp]) -> FloatArray:
        """Return some rows of A as a dense matrix."""
        row, column, entry = self.entries
        found = np.zeros((rows.size, self.c.size))
        for index, wanted in enumerate(rows.tolist()):
            places = np.flatnonzero(row == wanted)
            np.add.at(found[index], column[places], entry[places])
        return found

    def nonconvexity(self, index: int) -> float:
        """Return a proven phi with matrix + phi I positive semidefinite, for one of `curvatures`."""
        known = self._nonconvexities
        if index not in known:
            known[index] = negative_curvature(self.curvatures[index])
        return known[index]

    @cached_property
    def _nonconvexities(self) -> dict[int, float]:
        """What has been proven so far."""
        return {}

    @property
    def stated_range(self) -> VariableRange:
        """The bounds that rows with a single entry state, rounded outwards."""
        return self._single_bounds[0]

    @property
    def inner_range(self) -> VariableRange:
        """The same bounds rounded inwards: a float between them meets these rows exactly."""
        return self._single_bounds[1]

    @cached_property
    def _single_bounds(self) -> tuple[VariableRange, VariableRange]:
        """The bounds of rows with a single entry, rounded outwards and inwards."""
        row, column, entry = self.linear_entries
        counts = np.bincount(row, minlength=self.b.size)
        single = (counts == 1)[row]
        row, column, entry = row[single], column[single], entry[single]
        b = self.b[row]
        with np.errstate(over="ignore", invalid="ignore"):
            value = b / entry
            # The quotient is exact for a power of two, in particular for 1.
            exact = _is_power_of_two(entry) & (np.abs(value) > 2.0**-1000)
            exact |= b == 0
            down = np.where(exact, value, round_down(value))
            up = np.where(exact, value, round_up(value))
        equation = row < self.cones.zero
        states_lower = equation | (entry < 0)
        states_upper = equation | (entry > 0)
        ranges = []
        for below, above in ((down, up), (up, down)):
            lower = np.full(self.c.size, -np.inf)
            upper = np.full(self.c.size, np.inf)
            np.maximum.at(lower, column[states_lower], below[states_lower])
            np.minimum.at(upper, column[states_upper], above[states_upper])
            ranges.append(VariableRange(lower, upper))
        return ranges[0], ranges[1]

    @cached_property
    def implied_range(self) -> VariableRange:
        """The bounds that Lemma B1 derives from all linear rows, a few times over."""
        lower = self.stated_range.lower.copy()
        upper = self.stated_range.upper.copy()
        limit = min(self.within, self.radius)
        if np.isfinite(limit):
            lower = np.maximum(lower, -limit)
            upper = np.minimum(upper, limit)
        row, column, entry = self.linear_entries
        equation = row < self.cones.zero
        b = self.b
        # An equation is two inequalities.
        row = np.concatenate((row, row[equation] + b.size))
        column = np.concatenate((column, column[equation]))
        entry = np.concatenate((entry, -entry[equation]))
        b = np.concatenate((b, -b))
        for _ in range(PROPAGATION_PASSES):
            if not (np.isinf(lower).any() or np.isinf(upper).any()):
                break
            tighter = _propagate(row, column, entry, b, lower, upper)
            # Only missing bounds are added: repeated tightening need not end.
            new_lower = np.where(np.isinf(lower), tighter[0], lower)
            new_upper = np.where(np.isinf(upper), tighter[1], upper)
            if np.array_equal(new_lower, lower) and np.array_equal(new_upper, upper):
                break
            lower, upper = new_lower, new_upper
        return VariableRange(lower, upper)

    @cached_property
    def independent_equations(self) -> RowDependence | None:
        """How the equations depend on each other, in exact arithmetic; None where it takes too long."""
        zero = self.cones.zero
        return independent_rows(sparse.csc_array(self.rows[:zero]), self.b[:zero])

    @cached_property
    def linear_entries(self) -> tuple[Any, Any, FloatArray]:
        """(row, column, entry) of the zero and nonnegative rows that are not vacuous."""
        row, column, entry = self.entries
        kept = (row < self.cones.zero + self.cones.nonneg) & ~self.vacuous[row] & (entry != 0)
        return row[kept], column[kept], entry[kept]


def _off_diagonal(block: slice) -> Mask:
    """Which rows of a semidefinite block are off the diagonal."""
    rows, columns = svec_entries(order_of(block.stop - block.start))
    return np.asarray(rows != columns)


def _is_power_of_two(x: FloatArray) -> Mask:
    mantissa, _ = np.frexp(x)
    return np.asarray(np.abs(mantissa) == 0.5)


def _propagate(
    row: Any, column: Any, entry: FloatArray, b: FloatArray, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Lemma B1 for all entries of all rows sum_j a_j x_j <= b, rounded outwards."""
    count = b.size
    with np.errstate(invalid="ignore", over="ignore"):
        least = np.where(entry > 0, entry * lower[column], entry * upper[column])
    unknown = ~np.isfinite(least)
    known = np.where(unknown, 0.0, least)
    missing = np.bincount(row[unknown], minlength=count)
    total = np.bincount(row, weights=known, minlength=count)
    terms = np.bincount(row, weights=np.abs(known), minlength=count)
    number = np.bincount(row, minlength=count)
    # Rounding of the sum, of the products in it and of what follows.
    share = 2 * (number + 6) * UNIT_ROUNDOFF
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        error = share * (terms + np.abs(b)) * 2 + (number + 2) * ETA
        # The sum without the entry itself is known if nothing else is missing.
        others = missing[row] - unknown
        rest = b[row] - (total[row] - known) + error[row]
        bound = rest / entry
        widened = bound + 4 * UNIT_ROUNDOFF * np.abs(bound) * np.sign(entry) + np.sign(entry) * ETA
        usable = (others == 0) & np.isfinite(widened)
    new_lower = np.full_like(lower, -np.inf)
    new_upper = np.full_like(upper, np.inf)
    positive = usable & (entry > 0)
    negative = usable & (entry < 0)
    np.minimum.at(new_upper, column[positive], widened[positive])
    np.maximum.at(new_lower, column[negative], widened[negative])
    return new_lower, new_upper
