"""Exact optima of linear programs: a vertex guessed from floats, then simplex steps in rationals.

    minimise c'x   subject to   s = b - Ax,  s = 0 in equation rows,  s >= 0 in the others

A **basis** W is a set of n independent rows. It has one point x and one vector of multipliers y:

    A_W x = b_W,      A_W' y_W = -c,  y = 0 in the other rows.

If s >= 0 and y_W >= 0 in inequality rows, both are optimal with the same value. Where too few rows
are active, rows x_j = float complete W; they are no rows of the program, and their multipliers must
be 0. So a point inside the optimal face, as interior-point methods return it, needs no vertex.

**Guess.** Equations first, then the others by the ratio of slack to multiplier, smallest first: on
the central path s_i y_i is the same for all rows, and the ratio tends to 0 or to infinity. Where x
and y are those of a vertex, W has the same x and y.

**Refinement.** Where a solver in floats is at hand, it solves for the error of x in units of its own
size, which tells active rows from others where float64 is too coarse.

**Steps.** From there, the simplex method in rationals (Bland 1977: it ends).
*Dual step*, for a row k with s_k < 0 (or an equation that is off): with A_W'u = A_k', the
multipliers y_W - t u, y_k = t stay stationary; t grows until one of them is 0, and that row leaves.
If none falls, y_k = 1, y_W = -u is a Farkas vector.
*Primal step*, for y_i < 0: along A_W d = -e_i the objective falls; the first row that is met enters.
If there is none, d is a ray.
Where neither x nor y is feasible, negative multipliers count as 0 until x is (which shifts c).

What is returned has passed the checks of `klopt.proof.rational`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import FloatArray, SparseMatrix
from klopt.model.cones import Cones
from klopt.model.forms import ConeForm
from klopt.proof.rational import (
    Number,
    RationalProgram,
    as_rational,
    check_rational_dual,
    check_rational_farkas,
    check_rational_primal,
    check_rational_ray,
)
from klopt.proof.rational_systems import (
    RationalMatrix,
    TooLarge,
    as_fractions,
    independent,
    over_one_denominator,
)
from klopt.proof.time_budget import exhausted

if TYPE_CHECKING:
    from flint import fmpq

FloatSolver: TypeAlias = Callable[[ConeForm], tuple[FloatArray | None, FloatArray | None]]
"""Solves a linear program in floats; nothing rests on what it returns."""

__all__ = [
    "ExactOutcome",
    "ExactStatus",
    "FloatSolver",
    "exact_farkas",
    "exact_ray",
    "exact_vertex",
]

MAX_PIVOTS = 1000
GREEDY_PIVOTS = 100
"""So many steps take the largest violation; further ones follow Bland's rule, which cannot cycle."""


FLOAT_NOISE = 1e-13
"""Relative slacks and multipliers below this one say nothing."""
MAX_ACTIVE_RATIO = 1e3
"""Rows with a larger ratio of slack to multiplier are not guessed to be active."""
MAX_REFINEMENTS = 4
MAX_BITS_GAINED = 40
"""A refinement gains at most so many binary digits: what the solver itself is precise to."""
MAX_REFINED_SIDE = 1e10
"""A slack of this size, in units of the error of x, cannot become 0."""
FARKAS_TRIALS = 8
"""So many rows are tried as the last one of a contradiction."""


class ExactStatus(StrEnum):
    """What is proven of a linear program in exact arithmetic."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    UNKNOWN = "unknown"


@dataclass(frozen=True, eq=False)
class ExactOutcome:
    """What an exact solve proves; all vectors have passed their checks.

    Parameters
    ----------
    status
        What is proven.
    value
        The optimum c'x = -b'y; None where there is none or it is not known.
    x
        An optimal point, or a feasible one where the program is unbounded or the search ended with
        one; empty otherwise.
    y
        Optimal multipliers; where the status is UNKNOWN those of a dual bound, or empty.
    farkas, ray
        What proves that there is no feasible point, no optimum; empty otherwise.
    pivots
        How many steps of the simplex method were taken.
    violated
        The rows that the last basis violates, where the status is UNKNOWN.
    why
        Why nothing is proven.
    """

    status: ExactStatus
    value: Fraction | None = None
    x: tuple[Fraction, ...] = ()
    y: tuple[Fraction, ...] = ()
    farkas: tuple[Fraction, ...] = ()
    ray: tuple[Fraction, ...] = ()
    pivots: int = 0
    violated: tuple[int, ...] = ()
    why: str = ""


def exact_vertex(
    form: ConeForm | RationalProgram,
    x: npt.ArrayLike | None = None,
    y: npt.ArrayLike | None = None,
    max_pivots: int = MAX_PIVOTS,
    solve: FloatSolver | None = None,
) -> ExactOutcome:
    """Return the exact optimum of a linear program, or an exact proof that it has none.

    Parameters
    ----------
    form
        A cone program without P whose rows are zero or nonnegative, or a program in rationals.
    x, y
        A point and multipliers of `form` that are nearly optimal, such as those of a solver. The
        better they are the fewer steps are needed; None, NaN and nonsense cost only time.
    max_pivots
        How many steps of the simplex method are allowed. The search also ends when the time budget
        of `klopt.proof.time_budget` is exhausted.
    solve
        A solver in floats, which returns (x, y) of a program, or None for what it does not find. It
        refines a guess that is not optimal, where b or c decide by their last digits.

    >>> from klopt.model.cones import Cones
    >>> form = ConeForm([1.0, 1.0], [[-3.0, -1.0], [-1.0, -3.0]], [-1.0, -1.0], Cones(nonneg=2))
    >>> outcome = exact_vertex(form, [0.2501, 0.2499], [0.25, 0.25])
    >>> outcome.value, outcome.x
    (Fraction(1, 2), (Fraction(1, 4), Fraction(1, 4)))
    """
    program = as_rational(form)
    for index, side in enumerate(program.b):
        if side == -inf:
            return _infeasible(program, {index: Fraction(1)}, 0)
    search = _Search(program)
    point = _floats(x, len(program.c))
    b = np.array([float(side) for side in program.b], dtype=float)
    try:
        start = [_exactly(value) for value in point.tolist()]
        basis = search.guess(point, _floats(y, len(program.b)), b, start)
        if solve is not None:
            basis = search.refine(basis, start, solve)
        return search.run(basis, max_pivots)
    except TooLarge as error:
        return ExactOutcome(ExactStatus.UNKNOWN, why=str(error))


def exact_farkas(form: ConeForm | RationalProgram, y: npt.ArrayLike) -> tuple[Fraction, ...] | None:
    """Return an exact Farkas vector with the support of a nearly right one; None if there is none.

    Of the rows with the largest |y| all but the last are independent. That last row k is
    violated where the others are equations, for b'y = y_k s_k < 0, and in a dual step it finds no
    row to replace.

    >>> from klopt.model.cones import Cones
    >>> form = ConeForm([0.0], [[3.0], [-0.5]], [1.0, -1.0], Cones(nonneg=2))  # 3x <= 1, x >= 2
    >>> exact_farkas(form, [0.3333, 2.0001])
    (Fraction(1, 1), Fraction(6, 1))
    """
    from flint import fmpq

    program = as_rational(form)
    if any(side == -inf for side in program.b):
        return exact_vertex(program).farkas
    weights = _floats(y, len(program.b))
    search = _Search(program)
    no_multipliers = [fmpq(0)] * len(program.c)
    try:
        basis = search.basis(-np.abs(weights) * search.norms, inf)
        outside = sorted(search.violated(basis), key=lambda index: -abs(weights[index]))
        for index in outside[:FARKAS_TRIALS]:
            step = search.dual_step(basis, no_multipliers, [index], True, 0)
            if isinstance(step, ExactOutcome):
                return step.farkas or None
    except TooLarge:
        pass
    return None


def exact_ray(form: ConeForm | RationalProgram, d: npt.ArrayLike) -> tuple[Fraction, ...] | None:
    """Return an exact ray next to a nearly right one; None where there is none.

    Rays are the points with c'd = -1 of the recession cone; their program is

        minimise c'd   subject to   Ad = 0 or Ad <= 0,  -c'd <= 1.

    >>> from klopt.model.cones import Cones
    >>> form = ConeForm([-1.0, 0.0], [[1.0, -3.0]], [0.0], Cones(nonneg=1))
    >>> exact_ray(form, [1.0, 0.333])
    (Fraction(1, 1), Fraction(1, 3))
    """
    program = as_rational(form)
    direction = _floats(d, len(program.c))
    descent = -sum(float(cost) * step for cost, step in zip(program.c, direction, strict=True))
    if not descent > 0:
        return None
    sides: list[Number] = [Fraction(0) if side != inf else inf for side in program.b]
    last = tuple((column, -cost) for column, cost in enumerate(program.c) if cost)
    recession = RationalProgram(
        program.c, (*program.rows, last), (*sides, Fraction(1)), program.zero
    )
    y = np.zeros(len(program.b) + 1)
    y[-1] = 1.0
    ray = exact_vertex(recession, direction / descent, y).x
    if not ray or check_rational_ray(program, ray):
        return None
    return ray


def _floats(values: npt.ArrayLike | None, length: int) -> npt.NDArray[np.float64]:
    """The values as floats, 0 where there are none."""
    if values is None:
        return np.zeros(length)
    array = np.asarray(values, dtype=float)
    if array.shape != (length,):
        raise ValueError(f"expected {length} entries, got an array of shape {array.shape}")
    finite: npt.NDArray[np.float64] = np.nan_to_num(array, nan=0.0, posinf=0.0, neginf=0.0)
    return finite


@dataclass(eq=False)
class _Basis:
    """n independent rows, with their point and their multipliers."""

    search: _Search
    members: list[int]

    @cached_property
    def matrix(self) -> RationalMatrix:
        return RationalMatrix([self.search.rows[index] for index in self.members])

    @cached_property
    def x(self) -> list[fmpq]:
        return self.matrix.solve([self.search.b[index] for index in self.members])

    def multipliers(self, c: Sequence[fmpq]) -> list[fmpq]:
        """One for each member, of the rows as integers."""
        return self.matrix.solve_transposed([-cost for cost in c])

    @cached_property
    def slacks(self) -> dict[int, fmpq]:
        """s_i of all rows outside the basis, as integers."""
        inside = set(self.members)
        outside = [index for index in self.search.bound_rows if index not in inside]
        images = self.search.times(outside, self.x)
        return {
            index: self.search.b[index] - image
            for index, image in zip(outside, images, strict=True)
        }

    def exchanged(self, leaving: int, entering: int) -> _Basis:
        members = list(self.members)
        members[leaving] = entering
        return _Basis(self.search, members)


@dataclass(eq=False)
class _Search:
    """The program as integers of python-flint; rows m .. m + n - 1 are x_j = float."""

    program: RationalProgram
    rows: list[list[tuple[int, int]]] = field(init=False)
    b: list[fmpq] = field(init=False)
    c: list[fmpq] = field(init=False)
    bound_rows: list[int] = field(init=False)

    def __post_init__(self) -> None:
        from flint import fmpq

        program = self.program
        self.m = len(program.b)
        n = len(program.c)
        self.rows = [list(row.entries) for row in program.integer_rows]
        self.rows += [[(column, 1)] for column in range(n)]
        self.b = [fmpq(row.b) for row in program.integer_rows] + [fmpq(0)] * n
        self.c = [fmpq(cost.numerator, cost.denominator) for cost in program.c]
        self.bound_rows = [index for index in range(self.m) if program.is_bound(index)]

    def times(self, rows: Iterable[int], x: Sequence[fmpq]) -> list[fmpq]:
        """A_i x of some rows i, as integers."""
        from flint import fmpq

        numerators, denominator = over_one_denominator(x)
        totals = (
            sum(value * numerators[column] for column, value in self.rows[index]) for index in rows
        )
        return [fmpq(total, denominator) for total in totals]

    @cached_property
    def A(self) -> SparseMatrix:
        """The rows in floats."""
        places = [
            (i, j, float(value)) for i, row in enumerate(self.program.rows) for j, value in row
        ]
        rows, columns, values = zip(*places, strict=True) if places else ((), (), ())
        return sparse.csc_array((values, (rows, columns)), shape=(self.m, len(self.c)), dtype=float)

    @cached_property
    def norms(self) -> FloatArray:
        """The largest entry of each row."""
        largest = [max((abs(value) for _, value in row), default=1) for row in self.program.rows]
        return np.array([float(value) for value in largest], dtype=float)

    def guess(self, x: FloatArray, y: FloatArray, b: FloatArray, free: Sequence[fmpq]) -> _Basis:
        """The basis that floats suggest.

        Parameters
        ----------
        x, y, b
            A point, its multipliers and the right-hand sides, from which slacks are computed.
        free
            Where the coordinates of x stay that the active rows do not determine.
        """
        with np.errstate(all="ignore"):
            slack = np.nan_to_num(np.abs(b - self.A @ x) / self.norms, posinf=1e300)
            slack /= 1 + np.abs(x).max(initial=0.0)
            weight = np.nan_to_num(y * self.norms)
            weight = np.maximum(
                weight / max(weight[self.program.zero :].max(initial=0.0), 1e-300), 0
            )
            ratio = (slack + FLOAT_NOISE) / (weight + FLOAT_NOISE)
        ratio[: self.program.zero] = -1.0
        self.b[self.m :] = free
        return self.basis(ratio, MAX_ACTIVE_RATIO)

    def basis(self, rank: FloatArray, limit: float) -> _Basis:
        """The first independent rows with the smallest ranks below a limit, completed."""
        # The shortest rows come first among equals, which keeps the fill small.
        order = [index for index in self.bound_rows if rank[index] < limit]
        order.sort(key=lambda index: (rank[index], len(self.rows[index]), index))
        order += range(self.m, len(self.rows))
        members, _ = independent(self.rows, order, len(self.c))
        return _Basis(self, members)

    def refine(self, basis: _Basis, x: Sequence[fmpq], solve: FloatSolver) -> _Basis:
        """A better basis, by solving for the error of x in units of its size.

        With x = x_k + z / scale, the error z solves the same program with the right-hand sides
        scale (b - A x_k), which are exact before they are rounded (Gleixner, Steffy, Wolter 2016).

        Parameters
        ----------
        basis
            The basis that x suggests.
        x
            The point.
        solve
            Solves a linear program in floats.
        """
        zero = self.program.zero
        scales = [row.scale for row in self.program.integer_rows]
        cones = Cones(zero, self.m - zero)
        c = np.array([float(cost) for cost in self.program.c])
        bits = 0
        for _ in range(MAX_REFINEMENTS):
            if exhausted() or not (
                self.violated(basis) or self.negative(basis, basis.multipliers(self.c))
            ):
                break
            images = self.times(self.bound_rows, x)
            slacks = [
                (self.b[index] - image) / scales[index]
                for index, image in zip(self.bound_rows, images, strict=True)
            ]
            pairs = zip(self.bound_rows, slacks, strict=True)
            worst = max((abs(s) if i < zero else -s for i, s in pairs), default=_exactly(0.0))
            gained = MAX_BITS_GAINED
            if worst > 0:
                gained = min(-math.frexp(_nearest(worst))[1] - bits, MAX_BITS_GAINED)
            bits += max(gained, 1)
            # Rows that are far from active take no part.
            b = np.full(self.m, np.inf)
            for index, slack in zip(self.bound_rows, slacks, strict=True):
                side = _nearest(slack * 2**bits)
                if index < zero or side < MAX_REFINED_SIDE:
                    b[index] = side
            # A point that is so far off is no point to start from.
            if np.any(b <= -MAX_REFINED_SIDE) or np.any(b[:zero] >= MAX_REFINED_SIDE):
                break
            z, y = solve(ConeForm(c, self.A, b, cones))
            if z is None or y is None or not np.isfinite(z).all():
                break
            steps = zip(x, z.tolist(), strict=True)
            x = [old + _exactly(step) / 2**bits for old, step in steps]
            basis = self.guess(z, y, b, x)
        return basis

    def run(self, basis: _Basis, max_pivots: int) -> ExactOutcome:
        """Steps until the basis is optimal, or proves that none is."""
        shifted: list[fmpq] | None = None  # the objective while neither x nor y is feasible
        pivots = 0
        while True:
            off_rows = self.violated(basis)
            c = self.c if shifted is None else shifted
            y = basis.multipliers(c)
            off_multipliers = self.negative(basis, y)
            if not off_rows and shifted is not None:
                shifted = None
                continue
            if not off_rows and not off_multipliers:
                return self.optimal(basis, y, pivots)
            if off_rows and off_multipliers:
                shifted = self.shift(basis, y, off_multipliers)
                continue
            if pivots >= max_pivots or exhausted():
                return self.unknown(basis, y, off_rows, off_multipliers, shifted, pivots)

            bland = pivots >= GREEDY_PIVOTS
            step = (
                self.dual_step(basis, y, off_rows, bland, pivots)
                if off_rows
                else self.primal_step(basis, y, off_multipliers, bland, pivots)
            )
            if isinstance(step, ExactOutcome):
                return step
            basis = step
            pivots += 1

    def violated(self, basis: _Basis) -> list[int]:
        """The rows that x violates."""
        zero = self.program.zero
        return [
            index
            for index, slack in basis.slacks.items()
            if slack < 0 or (index < zero and slack != 0)
        ]

    def negative(self, basis: _Basis, y: Sequence[fmpq]) -> list[int]:
        """The places in the basis whose multipliers have a wrong sign."""
        wrong = []
        for place, index in enumerate(basis.members):
            is_inequality = self.program.zero <= index < self.m
            if (is_inequality and y[place] < 0) or (index >= self.m and y[place] != 0):
                wrong.append(place)
        return wrong

    def shift(self, basis: _Basis, y: Sequence[fmpq], wrong: Sequence[int]) -> list[fmpq]:
        """The objective for which multipliers of a wrong sign are 0."""
        from flint import fmpq

        dropped = set(wrong)
        c = [fmpq(0)] * len(self.c)
        for place, index in enumerate(basis.members):
            if place not in dropped and y[place] != 0:
                for column, value in self.rows[index]:
                    c[column] -= value * y[place]
        return c

    def dual_step(
        self, basis: _Basis, y: Sequence[fmpq], off: Sequence[int], bland: bool, pivots: int
    ) -> _Basis | ExactOutcome:
        """A violated row enters; without a row that can leave, there is no feasible point.

        Parameters
        ----------
        basis, y
            The basis and its multipliers, which have the right signs.
        off
            The violated rows.
        bland
            Whether to follow Bland's rule.
        pivots
            How many steps have been taken.
        """
        from flint import fmpq

        slacks = basis.slacks
        entering = min(off)
        if not bland:
            entering = max(off, key=lambda index: _size(slacks[index], self.rows[index]))
        sign = -1 if slacks[entering] > 0 else 1
        right = [fmpq(0)] * len(self.c)
        for column, value in self.rows[entering]:
            right[column] = fmpq(sign * value)
        u = basis.matrix.solve_transposed(right)

        # (t, row, place) of the first multiplier that becomes 0; that of a row x_j = float is 0.
        first: tuple[fmpq, int, int] | None = None
        for place, index in enumerate(basis.members):
            if index < self.program.zero:
                continue
            if index >= self.m and u[place] != 0:
                first = (fmpq(-1), index, place)
                break
            if u[place] > 0:
                candidate = (y[place] / u[place], index, place)
                if first is None or candidate[:2] < first[:2]:
                    first = candidate
        if first is None:
            farkas = {entering: Fraction(sign)}
            for index, weight in zip(basis.members, as_fractions(u), strict=True):
                if weight:
                    farkas[index] = -weight
            return _infeasible(self.program, self.unscaled(farkas), pivots)
        return basis.exchanged(first[2], entering)

    def primal_step(
        self, basis: _Basis, y: Sequence[fmpq], wrong: Sequence[int], bland: bool, pivots: int
    ) -> _Basis | ExactOutcome:
        """A row with a multiplier of a wrong sign leaves; if no row is met, there is no optimum.

        Parameters
        ----------
        basis, y
            The basis, whose x is feasible, and its multipliers.
        wrong
            The places of multipliers with wrong signs.
        bland
            Whether to follow Bland's rule.
        pivots
            How many steps have been taken.
        """
        from flint import fmpq

        leaving = min(wrong, key=lambda place: basis.members[place])
        if not bland:
            leaving = max(wrong, key=lambda place: abs(y[place]))
        right = [fmpq(0)] * len(self.c)
        right[leaving] = fmpq(1 if y[leaving] > 0 else -1)
        d = basis.matrix.solve(right)

        first: tuple[fmpq, int] | None = None
        speeds = self.times(basis.slacks, d)
        for (index, slack), speed in zip(basis.slacks.items(), speeds, strict=True):
            if index < self.program.zero and speed != 0:
                first = (fmpq(-1), index)
                break
            if speed > 0:
                candidate = (slack / speed, index)
                if first is None or candidate < first:
                    first = candidate
        if first is None:
            return self.unbounded(basis, d, pivots)
        return basis.exchanged(leaving, first[1])

    # What is proven, after its check

    def unscaled(self, multipliers: dict[int, Fraction]) -> dict[int, Fraction]:
        """Multipliers of the rows as given, from those of the rows as integers."""
        scales = self.program.integer_rows
        return {i: value * scales[i].scale for i, value in multipliers.items() if i < self.m}

    def given_multipliers(self, basis: _Basis, y: Sequence[fmpq]) -> tuple[Fraction, ...]:
        pairs = zip(basis.members, as_fractions(y), strict=True)
        return _dense(self.unscaled({index: value for index, value in pairs if value}), self.m)

    def optimal(self, basis: _Basis, y: Sequence[fmpq], pivots: int) -> ExactOutcome:
        x = as_fractions(basis.x)
        multipliers = self.given_multipliers(basis, y)
        flaw = check_rational_primal(self.program, x)
        flaw = flaw or check_rational_dual(self.program, multipliers)
        value = self.program.value(x)
        if flaw or value != self.program.dual_value(multipliers):
            return ExactOutcome(ExactStatus.UNKNOWN, pivots=pivots, why=flaw or "values differ")
        return ExactOutcome(ExactStatus.OPTIMAL, value, x, multipliers, pivots=pivots)

    def unbounded(self, basis: _Basis, d: Sequence[fmpq], pivots: int) -> ExactOutcome:
        x = as_fractions(basis.x)
        ray = as_fractions(d)
        flaw = check_rational_primal(self.program, x) or check_rational_ray(self.program, ray)
        if flaw:
            return ExactOutcome(ExactStatus.UNKNOWN, pivots=pivots, why=flaw)
        return ExactOutcome(ExactStatus.UNBOUNDED, x=x, ray=ray, pivots=pivots)

    def unknown(
        self,
        basis: _Basis,
        y: Sequence[fmpq],
        off_rows: Sequence[int],
        wrong: Sequence[int],
        shifted: Sequence[fmpq] | None,
        pivots: int,
    ) -> ExactOutcome:
        """What the last basis proves: a feasible point, or a dual bound, or neither.

        Parameters
        ----------
        basis, y
            The last basis and its multipliers.
        off_rows, wrong
            The rows that x violates and the places of multipliers with wrong signs.
        shifted
            The objective that y belongs to, if it is not c.
        pivots
            How many steps have been taken.
        """
        x: tuple[Fraction, ...] = ()
        multipliers: tuple[Fraction, ...] = ()
        if not off_rows:
            x = as_fractions(basis.x)
            assert not check_rational_primal(self.program, x)
        elif shifted is None and not wrong:
            multipliers = self.given_multipliers(basis, y)
            assert not check_rational_dual(self.program, multipliers)
        why = f"the search ended after {pivots} steps of the simplex method"
        return ExactOutcome(
            ExactStatus.UNKNOWN,
            x=x,
            y=multipliers,
            pivots=pivots,
            violated=tuple(off_rows),
            why=why,
        )


def _exactly(value: float) -> fmpq:
    """A float64 as the rational number that it is."""
    from flint import fmpq

    return fmpq(*value.as_integer_ratio())


def _nearest(value: fmpq) -> float:
    """The nearest float64, infinite beyond the largest."""
    try:
        return int(value.p) / int(value.q)
    except OverflowError:
        return inf if value > 0 else -inf


def _size(slack: fmpq, row: Sequence[tuple[int, int]]) -> float:
    """How large a violation is, next to the row's largest entry."""
    largest = max((abs(value) for _, value in row), default=1)
    return _nearest(abs(slack) / largest)


def _dense(entries: dict[int, Fraction], length: int) -> tuple[Fraction, ...]:
    zero = Fraction(0)
    return tuple(entries.get(index, zero) for index in range(length))


def _infeasible(
    program: RationalProgram, multipliers: dict[int, Fraction], pivots: int
) -> ExactOutcome:
    farkas = _dense(multipliers, len(program.b))
    flaw = check_rational_farkas(program, farkas)
    if flaw:
        return ExactOutcome(ExactStatus.UNKNOWN, pivots=pivots, why=flaw)
    return ExactOutcome(ExactStatus.INFEASIBLE, farkas=farkas, pivots=pivots)
