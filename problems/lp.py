"""A user's own linear program, with the arguments and the meaning of SciPy's linprog.

    minimise (or maximise)   c'x + offset
    subject to               A_ub x <= b_ub,  A_eq x = b_eq,  lower <= x <= upper

Its dual, with multipliers eq free and ub, lower, upper >= 0, has the same optimum (strong duality):

    maximise -b_ub'ub - b_eq'eq + lower'lower - upper'upper + offset
    subject to c + A_ub'ub + A_eq'eq - lower + upper = 0.

A program that maximises is stated as minimising -c'x; the multipliers are those of that
minimisation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Self

import attrs
import numpy as np
import numpy.typing as npt
from scipy import sparse

import klopt.programs.formats as formats
from klopt.arrays import FloatArray, MatrixLike, SparseMatrix, csc, positive, vector
from klopt.errors import InvalidProblem
from klopt.model.cones import Cones
from klopt.model.forms import ConeForm
from klopt.model.problem import Bracket, Example, Formulation, Point, Sense, Statement
from klopt.programs.decimals import Decimals
from klopt.programs.formats.model import Model, Names
from klopt.programs.program import Program
from klopt.programs.rows import (
    BoundsLike,
    LinearRows,
    bounds_array,
    equalities,
    finite_number,
    inequalities,
)
from klopt.programs.user_input import choice
from klopt.proof.rational import RationalProgram
from klopt.witness.certify_exact import bracket_exact

if TYPE_CHECKING:
    from klopt.kernels.datasets import Dataset

__all__ = ["LP"]


@attrs.frozen(eq=False, slots=False, init=False)
class LP(Program):
    """Minimise c'x subject to A_ub x <= b_ub, A_eq x = b_eq and bounds.

    Solutions have the array x and the multipliers ub, eq, lower, upper.

    Parameters
    ----------
    c, A_ub, b_ub, A_eq, b_eq : arrays, dense or sparse
        The objective and the rows, as in `scipy.optimize.linprog`.
    bounds : pair or sequence of pairs
        A pair (low, high) for all variables or one for each, None for no bound; x >= 0 by default.
    offset : float
        A constant that is added to the value.
    sense : "min" or "max"
        Whether the objective is minimised or maximised.
    names : Names or None
        What columns and rows are called in a file.
    within : float
        A declared bound of the Euclidean norm of x, part of the statement: what is proven is proven
        of the points within it. Programs whose optimum is not attained need one for a lower bound.
    decimals : Decimals or None
        The data as rationals, of which the arrays are the rounding. `from_file(path, exact=True)`
        and `in_rationals` give them.

    Examples
    --------
    >>> lp = LP(c=[1, 2], A_ub=[[-1, -1]], b_ub=[-1])
    >>> bracket = lp.bracket(Point({"x": [1, 0]}, {"ub": [1]}))
    >>> round(bracket.lower, 9), round(bracket.upper, 9)
    (1.0, 1.0)
    """

    statement = Statement(
        r"GOAL_{x}\; c^\top x\quad\text{subject to}\quad A_{\mathrm{ub}}x\le "
        r"b_{\mathrm{ub}},\quad A_{\mathrm{eq}}x=b_{\mathrm{eq}},\quad l\le x\le u",
        area="Linear programs",
    )
    examples = (
        Example(
            "diabetes",
            lambda d: _least_absolute_deviations(d),
            demo=(110, 220, 440),
            full=(200, 300, 442),
        ),
    )

    c: FloatArray
    A_ub: SparseMatrix
    b_ub: FloatArray
    A_eq: SparseMatrix
    b_eq: FloatArray
    bounds: FloatArray
    """One row (lower, upper) for each variable."""
    offset: float
    sense: Sense
    names: Names | None
    """What columns and rows are called in a file."""
    decimals: Decimals | None
    """The data as rationals: then the program is theirs, and proofs are in exact arithmetic."""
    within: float
    """The declared bound of the norm of x."""

    def __init__(
        self,
        c: npt.ArrayLike,
        A_ub: MatrixLike | None = None,
        b_ub: npt.ArrayLike | None = None,
        A_eq: MatrixLike | None = None,
        b_eq: npt.ArrayLike | None = None,
        bounds: BoundsLike = (0, None),
        offset: float = 0.0,
        sense: Sense = "min",
        names: Names | None = None,
        decimals: Decimals | None = None,
        within: float = np.inf,
    ) -> None:
        cost = vector("c", c)
        variables = cost.size
        ub = inequalities(variables, A_ub, b_ub)
        eq = equalities(variables, A_eq, b_eq)
        limits = bounds_array(variables, bounds)
        constant = finite_number("offset", offset)
        choice("sense", sense, "min", "max")
        Names.check(names, variables, ub[1].size, eq[1].size)
        if decimals is not None:
            decimals.check(cost, LinearRows(*ub, *eq, limits), constant)
        reach = positive("within", within, infinite=True)
        if decimals is not None and np.isfinite(reach):
            raise InvalidProblem(
                "within is given for a program in decimals, which are proven in rationals; "
                "leave out one of the two"
            )
        self.__attrs_init__(cost, *ub, *eq, limits, constant, sense, names, decimals, reach)

    @classmethod
    def from_file(
        cls,
        path: str | PathLike[str],
        exact: bool = False,
        *,
        time_limit: float | None = None,
        memory_limit: float | None = None,
    ) -> Self:
        """Return the linear program in an .mps, .lp, .cbf or .npz file.

        Parameters
        ----------
        path
            Where the file is.
        exact
            Whether the decimals of an .mps or .lp file are kept as rationals: what is proven then
            is proven of the program in the file, not of its rounding to float64.
        time_limit, memory_limit
            The seconds that reading may take and the bytes that it may ask for; see
            `klopt.programs.formats.read`.
        """
        with formats.opened(path, exact, time_limit=time_limit, memory_limit=memory_limit) as model:
            lp = cls.from_model(model, path)
            return lp.in_rationals() if exact else lp

    @classmethod
    def from_model(cls, model: Model, path: str | PathLike[str]) -> Self:
        """Return the linear program that was read from a file."""
        model.expect(path, "LP", ("LP",))
        A_ub, b_ub, A_eq, b_eq, names = model.split()
        return cls(
            model.c,
            A_ub,
            b_ub,
            A_eq,
            b_eq,
            model.bounds,
            model.offset,
            model.sense,
            names,
            model.decimals(),
        )

    def to_file(self, path: str | PathLike[str]) -> None:
        """Write the program to an .mps, .lp, .cbf or .npz file, numbers with all their digits."""
        formats.write(path, Model.of_rows(self.c, self.rows, self.offset, self.sense, self.names))

    def describe(self) -> str:
        return f"LP({self.rows.b_ub.size + self.rows.b_eq.size} rows, {self.c.size} variables)"

    @cached_property
    def rows(self) -> LinearRows:
        """The constraints."""
        return LinearRows(self.A_ub, self.b_ub, self.A_eq, self.b_eq, self.bounds)

    @cached_property
    def form(self) -> ConeForm:
        """The program as a cone program."""
        A_zero, b_zero = self.rows.zero
        A_nonneg, b_nonneg = self.rows.nonneg
        A = csc("A", sparse.vstack([A_zero, A_nonneg], format="csc"))
        b = np.concatenate((b_zero, b_nonneg))
        return ConeForm(self.sign * self.c, A, b, Cones(b_zero.size, b_nonneg.size))

    def in_rationals(self) -> Self:
        """Return the program whose proofs are in exact arithmetic; float64 are rationals, too."""
        if self.decimals is not None:
            return self
        return attrs.evolve(self, decimals=Decimals.of_floats(self.c, self.rows, self.offset))

    @cached_property
    def rational(self) -> RationalProgram | None:
        """`form` in rationals; None where the program is one of float64."""
        if self.decimals is None:
            return None
        return self.decimals.program(self.rows, int(self.sign))

    @property
    def rational_offset(self) -> Fraction:
        """The constant of the objective, as a rational."""
        return Fraction(self.offset) if self.decimals is None else self.decimals.offset

    def rational_multipliers(self, y: Sequence[Fraction]) -> Mapping[str, tuple[Fraction, ...]]:
        """Return exact multipliers of `rational` by the names of the constraints."""
        assert self.decimals is not None
        return self.decimals.named(self.rows, y)

    def formulations(self) -> tuple[Formulation, ...]:
        """Return the program itself and its dual."""
        way = (lambda: self.form, self.point, self.pair)
        primal = self.by_form("primal", set(), "the program itself", *way)
        return primal, self.by_dual("dual", set(), "strong duality of linear programming", *way)

    def bracket(self, point: Point) -> Bracket:
        """Return bounds of the optimum; in rationals, those of the vertex that the point suggests."""
        if self.rational is not None:
            return bracket_exact(self, point)
        return super().bracket(point)

    def point(self, x: FloatArray, y: FloatArray | None) -> Point:
        y = np.zeros(self.form.b.size) if y is None else y
        equalities = self.form.cones.zero
        return Point({"x": x}, self.rows.named(y[:equalities], y[equalities:]))

    def pair(self, point: Point) -> tuple[FloatArray, FloatArray]:
        return point.primal["x"], np.concatenate(self.rows.stacked(point.dual))

    @classmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        """Return a bounded, feasible program built from a complementary primal-dual pair."""
        n = max(size, 1)
        m = max(size // 2, 1)
        p = size // 4

        # Complementary slackness: of each variable and its multiplier, of each slack and its
        # multiplier, exactly one is 0.
        x = np.where(rng.random(n) < 0.5, rng.uniform(0.5, 2.0, n), 0.0)
        A_ub = rng.normal(size=(m, n))
        A_eq = rng.normal(size=(p, n))
        tight = rng.random(m) < 0.5
        ub = np.where(tight, rng.uniform(0.5, 2.0, m), 0.0)
        eq = rng.normal(size=p)
        lower = np.where(x == 0.0, rng.uniform(0.5, 2.0, n), 0.0)
        b_ub = A_ub @ x + np.where(tight, 0.0, rng.uniform(0.5, 2.0, m))
        c = lower - A_ub.T @ ub - A_eq.T @ eq  # stationarity
        return cls(c, A_ub, b_ub, A_eq, A_eq @ x, bounds=(0.0, 10.0))


def _least_absolute_deviations(d: Dataset) -> LP:
    """Regression by least absolute deviations: minimise mean t subject to |Xw + b - y| <= t."""
    n, features = d.X.shape
    design = np.hstack([d.X, np.ones((n, 1))])
    A = np.block([[design, -np.eye(n)], [-design, -np.eye(n)]])
    cost = np.concatenate([np.zeros(features + 1), np.full(n, 1 / n)])
    bounds = [(-10.0, 10.0)] * (features + 1) + [(0.0, None)] * n
    return LP(cost, A, np.concatenate([d.y, -d.y]), bounds=bounds)
