"""Linear programs in rational numbers, and checks of their proofs without rounding.

    minimise c'x   subject to   s = b - Ax,  s = 0 in the first `zero` rows,  s >= 0 in the others

Every float64 is a rational number m 2^e, and so is every decimal. A program whose data are read in
this way has an exact optimum, and each of its proofs is a finite list of rationals. With
L(x, y) = c'x + y'(Ax - b) the four lemmas are these.

**Primal bound.** If x is feasible, then optimum <= c'x.

**Dual bound** (weak duality). If c + A'y = 0 and y >= 0 in the inequality rows, then every feasible
x has c'x = -y'Ax = y's - b'y >= -b'y, so optimum >= -b'y.

**Farkas.** If A'y = 0, y >= 0 in the inequality rows and b'y < 0, then no x is feasible: one would
give 0 <= y's = b'y < 0. A row s_i >= 0 with b_i = -inf is a contradiction by itself.

**Ray.** If Ad = 0 in the equality rows, Ad <= 0 in the others and c'd < 0, then the objective falls
without bound along d from any feasible point.

Each check multiplies a row by the least common denominator of its entries and a vector by that of
its own, so that all sums are sums of integers. `klopt.witness.exact_simplex` searches for the
vectors; nothing rests on how they were found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import gcd, inf, isinf, lcm, nextafter
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from klopt.arrays import SparseMatrix
from klopt.errors import InvalidProblem

if TYPE_CHECKING:
    from klopt.model.forms import ConeForm

__all__ = [
    "Entries",
    "IntegerRow",
    "Number",
    "RationalProgram",
    "as_rational",
    "check_rational_dual",
    "check_rational_farkas",
    "check_rational_primal",
    "check_rational_ray",
    "floats_around",
    "is_linear",
    "rational_rows",
]

Number: TypeAlias = Fraction | float
"""A rational number; of floats only inf and -inf, for a right-hand side that does not exist."""
Entries: TypeAlias = tuple[tuple[int, Fraction], ...]
"""The entries (column, value) of one row that are not 0."""


class IntegerRow(NamedTuple):
    """A row times its scale, which makes all its entries and its right-hand side integers."""

    scale: int
    entries: tuple[tuple[int, int], ...]
    b: int
    """0 where the right-hand side is infinite."""


@dataclass(frozen=True, eq=False)
class RationalProgram:
    """Minimise c'x subject to b - Ax = 0 in the first rows and b - Ax >= 0 in the others.

    Parameters
    ----------
    c
        The objective.
    rows
        The entries of each row of A that are not 0.
    b
        The right-hand sides; inf leaves an inequality out, -inf makes it impossible.
    zero
        How many rows are equations.

    >>> half = Fraction(1, 2)
    >>> program = RationalProgram((half,), (((0, Fraction(-1)),),), (Fraction(-3),), zero=0)
    >>> program.value([Fraction(3)]), program.dual_value([half])
    (Fraction(3, 2), Fraction(3, 2))
    """

    c: tuple[Fraction, ...]
    rows: tuple[Entries, ...]
    b: tuple[Number, ...]
    zero: int

    @cached_property
    def integer_rows(self) -> tuple[IntegerRow, ...]:
        """All rows, each times its scale."""
        return tuple(map(_integer_row, self.rows, self.b))

    def value(self, x: Sequence[Fraction]) -> Fraction:
        """Return c'x."""
        return _dot(self.c, x)

    def dual_value(self, y: Sequence[Fraction]) -> Fraction:
        """Return -b'y; a row without a bound must have no multiplier."""
        return -_dot([_finite(side) for side in self.b], y)

    def is_bound(self, row: int) -> bool:
        """Whether a row says anything: b is not inf."""
        return self.b[row] != inf


def is_linear(form: ConeForm) -> bool:
    """Return whether a cone program is a linear program.

    >>> import numpy as np
    >>> from klopt.model.cones import Cones
    >>> from klopt.model.forms import ConeForm
    >>> is_linear(ConeForm([1.0], [[1.0]], [1.0], Cones(nonneg=1)))
    True
    """
    cones = form.cones
    return form.P is None and cones.zero + cones.nonneg == cones.size


def as_rational(form: ConeForm | RationalProgram) -> RationalProgram:
    """Return a linear cone program in rationals, every float64 as the number that it is.

    >>> from klopt.model.cones import Cones
    >>> from klopt.model.forms import ConeForm
    >>> as_rational(ConeForm([0.5], [[0.1]], [1.0], Cones(nonneg=1))).rows[0][0][1]
    Fraction(3602879701896397, 36028797018963968)
    """
    if isinstance(form, RationalProgram):
        return form
    if not is_linear(form):
        raise InvalidProblem(
            "exact arithmetic is for linear programs: zero and nonnegative rows and no P"
        )
    c = tuple(Fraction(value) for value in form.c.tolist())
    b = tuple(value if isinf(value) else Fraction(value) for value in form.b.tolist())
    return RationalProgram(c, rational_rows(form.A), b, form.cones.zero)


def rational_rows(A: SparseMatrix) -> tuple[Entries, ...]:
    """Return the entries of each row that are not 0, every float64 as the number that it is.

    >>> from scipy import sparse
    >>> rational_rows(sparse.csc_array([[0.0, 0.5], [0.0, 0.0]]))
    (((1, Fraction(1, 2)),), ())
    """
    by_row = A.tocsr()
    columns = by_row.indices.tolist()
    values = [Fraction(value) for value in by_row.data.tolist()]
    rows = []
    for start, end in pairwise(by_row.indptr.tolist()):
        entries = zip(columns[start:end], values[start:end], strict=True)
        rows.append(tuple((column, value) for column, value in entries if value))
    return tuple(rows)


def floats_around(value: Fraction) -> tuple[float, float]:
    """Return the largest float64 <= value and the smallest one >= value.

    >>> low, high = floats_around(Fraction(1, 10))
    >>> low < Fraction(1, 10) < high == 0.1
    True
    >>> floats_around(Fraction(-3))
    (-3.0, -3.0)
    """
    try:
        nearest = float(value)  # rounds correctly
    except OverflowError:
        nearest = inf if value > 0 else -inf
    if isinf(nearest):
        beyond = nextafter(nearest, 0.0)
        return (beyond, inf) if nearest > 0 else (-inf, beyond)
    rounded = Fraction(nearest)
    if rounded == value:
        return nearest, nearest
    if rounded < value:
        return nearest, nextafter(nearest, inf)
    return nextafter(nearest, -inf), nearest


# The four checks


def check_rational_primal(form: ConeForm | RationalProgram, x: Sequence[Fraction]) -> str:
    """Return "" if b - Ax lies in the cone exactly, else the first row that does not.

    >>> program = RationalProgram((Fraction(1),), (((0, Fraction(3)),),), (Fraction(1),), zero=1)
    >>> check_rational_primal(program, [Fraction(1, 3)])
    ''
    >>> check_rational_primal(program, [Fraction(1 / 3)])
    'row 0 is an equation and off by 5.6e-17'
    """
    program = as_rational(form)
    flaw = _length_flaw("x", x, len(program.c))
    if flaw:
        return flaw
    numerators, denominator = _over_one_denominator(x)
    for index, row in enumerate(program.integer_rows):
        if not program.is_bound(index):
            continue
        if program.b[index] == -inf:
            return f"row {index} has the right-hand side -inf"
        # slack = s_i times the scale of the row and the denominator of x
        slack = row.b * denominator - sum(value * numerators[j] for j, value in row.entries)
        if index < program.zero and slack != 0:
            off = Fraction(abs(slack), row.scale * denominator)
            return f"row {index} is an equation and off by {float(off):.1e}"
        if slack < 0:
            off = Fraction(-slack, row.scale * denominator)
            return f"row {index} is violated by {float(off):.1e}"
    return ""


def check_rational_dual(form: ConeForm | RationalProgram, y: Sequence[Fraction]) -> str:
    """Return "" if c + A'y = 0 and y >= 0 in inequality rows exactly, else what is wrong.

    >>> program = RationalProgram((Fraction(1),), (((0, Fraction(-1)),),), (Fraction(0),), zero=0)
    >>> check_rational_dual(program, [Fraction(1)]), check_rational_dual(program, [Fraction(2)])
    ('', "c + A'y is -1.0e+00 in variable 0, not 0")
    """
    program = as_rational(form)
    return _multiplier_flaw(program, y) or _gradient_flaw(program, program.c, y, "c + A'y")


def check_rational_farkas(form: ConeForm | RationalProgram, y: Sequence[Fraction]) -> str:
    """Return "" if y proves exactly that no x is feasible, else what is wrong with it.

    >>> one, two = Fraction(1), Fraction(2)
    >>> rows = (((0, one),), ((0, -one),))
    >>> program = RationalProgram((one,), rows, (one, -two), zero=0)  # x <= 1, x >= 2
    >>> check_rational_farkas(program, [one, one])
    ''
    >>> check_rational_farkas(program, [one, two])
    "A'y is -1.0e+00 in variable 0, not 0"
    """
    program = as_rational(form)
    flaw = _length_flaw("y", y, len(program.b))
    if flaw:
        return flaw
    # Such a row needs no other one.
    inequalities = range(program.zero, len(y))
    if any(program.b[index] == -inf and y[index] > 0 for index in inequalities):
        return ""

    flaw = _multiplier_flaw(program, y)
    if flaw:
        return flaw
    flaw = _gradient_flaw(program, (Fraction(0),) * len(program.c), y, "A'y")
    if flaw:
        return flaw
    if not program.dual_value(y) > 0:
        return "b'y is not negative"
    return ""


def check_rational_ray(form: ConeForm | RationalProgram, d: Sequence[Fraction]) -> str:
    """Return "" if the objective falls without bound along d exactly, else what is wrong with it.

    >>> program = RationalProgram((Fraction(-1),), (((0, Fraction(-1)),),), (Fraction(0),), zero=0)
    >>> check_rational_ray(program, [Fraction(1)]), check_rational_ray(program, [Fraction(-1)])
    ('', 'the ray leaves row 0')
    """
    program = as_rational(form)
    flaw = _length_flaw("the ray", d, len(program.c))
    if flaw:
        return flaw
    numerators, _ = _over_one_denominator(d)
    for index, row in enumerate(program.integer_rows):
        if not program.is_bound(index):
            continue
        change = sum(value * numerators[j] for j, value in row.entries)
        if change > 0 or (index < program.zero and change != 0):
            return f"the ray leaves row {index}"
    if not program.value(d) < 0:
        return "c'd is not negative"
    return ""


def _multiplier_flaw(program: RationalProgram, y: Sequence[Fraction]) -> str:
    """Return "" if y is nonnegative in inequality rows and 0 where there is no bound."""
    flaw = _length_flaw("y", y, len(program.b))
    if flaw:
        return flaw
    for index, value in enumerate(y):
        if index >= program.zero and value < 0:
            return f"y[{index}] is {float(value):.1e}, not nonnegative"
        if value and isinf(program.b[index]):
            return f"y[{index}] is not 0, but its row has an infinite right-hand side"
    return ""


def _gradient_flaw(
    program: RationalProgram,
    c: Sequence[Fraction],
    y: Sequence[Fraction],
    name: str,
) -> str:
    """Return "" if c + A'y = 0, else the first variable where it is not.

    Parameters
    ----------
    program
        The program that has the rows A.
    c
        Its objective, or 0.
    y
        The multipliers.
    name
        What the sum is called.
    """
    # A_i y_i = (scale_i A_i) (y_i / scale_i), of which the first factor is integer.
    rows = program.integer_rows
    weights = [value / row.scale for value, row in zip(y, rows, strict=True)]
    numerators, denominator = _over_one_denominator(weights)
    image = [0] * len(c)
    for row, weight in zip(rows, numerators, strict=True):
        if weight:
            for column, value in row.entries:
                image[column] += value * weight
    for column, (cost, total) in enumerate(zip(c, image, strict=True)):
        # cost = -total / denominator, without a division
        if cost.numerator * denominator + total * cost.denominator != 0:
            off = float(cost + Fraction(total, denominator))
            return f"{name} is {off:.1e} in variable {column}, not 0"
    return ""


def _length_flaw(name: str, values: Sequence[Fraction], length: int) -> str:
    if len(values) != length:
        return f"{name} has {len(values)} entries; expected {length}"
    return ""


# Integers


def _integer_row(entries: Entries, b: Number) -> IntegerRow:
    side = _finite(b)
    scale = lcm(side.denominator, *(value.denominator for _, value in entries))
    integers = tuple(
        (column, value.numerator * (scale // value.denominator)) for column, value in entries
    )
    return IntegerRow(scale, integers, side.numerator * (scale // side.denominator))


def _finite(b: Number) -> Fraction:
    return b if isinstance(b, Fraction) else Fraction(0)


def _over_one_denominator(values: Sequence[Fraction]) -> tuple[list[int], int]:
    """The numerators of the values over their least common denominator, and that."""
    denominator = 1
    for value in values:
        own = value.denominator
        # Most entries of a vertex share one denominator: no product is formed for them.
        if own != denominator and own != 1:
            denominator *= own // gcd(denominator, own)
    return [value.numerator * (denominator // value.denominator) for value in values], denominator


def _dot(weights: Sequence[Fraction], values: Sequence[Fraction]) -> Fraction:
    """The sum of products, over one denominator."""
    products = [w * v for w, v in zip(weights, values, strict=True) if w and v]
    numerators, denominator = _over_one_denominator(products)
    return Fraction(sum(numerators), denominator)
