"""A user's own convex quadratic program, with quadratic constraints and second-order cones.

    minimise x'Px/2 + q'x + offset   subject to   x'P_i x/2 + q_i'x <= r_i,   b_soc - A_soc x in second-order cones,
                                                  A_ub x <= b_ub,  A_eq x = b_eq,  lower <= x <= upper

With P_i = F'F each quadratic constraint is a second-order cone
(`klopt.programs.quadratic_constraints`). So is the epigraph of the objective: minimise t + q'x
subject to x'Px/2 <= t, which leaves a linear objective and gives the program a conic dual.

A program that maximises is stated as minimising the negative; the multipliers are those of that
minimisation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Self

import attrs
import numpy as np
import numpy.typing as npt
from scipy import sparse

import klopt.programs.formats as formats
from klopt.arrays import FloatArray, MatrixLike, SparseMatrix, csc, vector
from klopt.errors import InvalidProblem
from klopt.model.cones import Cones, Feature
from klopt.model.forms import ConeForm
from klopt.model.problem import Bracket, Example, Formulation, Point, Sense, Statement
from klopt.programs.formats.model import Model, Names, QuadraticRow
from klopt.programs.program import Program
from klopt.programs.psd_factor import factor, refuse_indefinite
from klopt.programs.quadratic_constraints import QuadraticCone
from klopt.programs.rows import (
    BoundsLike,
    LinearRows,
    bounds_array,
    equalities,
    finite_number,
    inequalities,
)
from klopt.programs.user_input import choice, cone_sizes, listed

if TYPE_CHECKING:
    from klopt.kernels.datasets import Dataset

__all__ = ["QCQP"]


@dataclass(frozen=True, eq=False)
class QCQP(Program):
    """Minimise x'Px/2 + q'x under convex quadratic, second-order cone and linear constraints; x is free by default.

    P is None for a linear objective. `quadratics` holds triples (P_i, q_i, r_i); rows of b_soc -
    A_soc x are cones of the sizes `soc`, largest entry first. Solutions have x and the multipliers
    ub, eq, lower, upper, quadratic, soc.

    >>> ball = QCQP(None, [1.0, 0.0], quadratics=[(2 * np.eye(2), [0.0, 0.0], 1.0)])
    >>> bracket = ball.bracket(Point({"x": [-1.0, 0.0]}, {"quadratic": [0.5]}))
    >>> round(bracket.lower, 9), round(bracket.upper, 9)
    (-1.0, -1.0)
    """

    statement = Statement(
        r"GOAL_{x}\; \tfrac12 x^\top Px+q^\top x\quad\text{subject to}\quad \tfrac12 "
        r"x^\top P_ix+q_i^\top x\le r_i,\quad b-Ax\in\mathcal{K},\quad "
        r"A_{\mathrm{ub}}x\le b_{\mathrm{ub}},\quad A_{\mathrm{eq}}x=b_{\mathrm{eq}},"
        r"\quad l\le x\le u",
        words="K is a product of second-order cones.",
    )
    examples = (
        Example("wine", lambda d: _kernel_mixture(d), demo=(40, 80, 160), full=(60, 120, 178)),
    )

    P: SparseMatrix | None
    q: FloatArray
    quadratics: tuple[QuadraticRow, ...] = ()
    A_ub: SparseMatrix = None  # type: ignore[assignment]
    b_ub: FloatArray = None  # type: ignore[assignment]
    A_eq: SparseMatrix = None  # type: ignore[assignment]
    b_eq: FloatArray = None  # type: ignore[assignment]
    bounds: FloatArray = (None, None)  # type: ignore[assignment]
    A_soc: SparseMatrix = None  # type: ignore[assignment]
    b_soc: FloatArray = None  # type: ignore[assignment]
    soc: tuple[int, ...] = ()
    offset: float = 0.0
    sense: Sense = "min"
    names: Names | None = None
    repair: str = field(default="", init=False)
    """Which matrices were averaged with their transposes, from which they differed by rounding."""

    if (
        TYPE_CHECKING
    ):  # matrices are taken as they come; the fields hold what they were converted to

        def __init__(
            self,
            P: MatrixLike | None,
            q: npt.ArrayLike,
            quadratics: Sequence[QuadraticRow | tuple[MatrixLike, npt.ArrayLike, float]] = (),
            A_ub: MatrixLike | None = None,
            b_ub: npt.ArrayLike | None = None,
            A_eq: MatrixLike | None = None,
            b_eq: npt.ArrayLike | None = None,
            bounds: BoundsLike = (None, None),
            A_soc: MatrixLike | None = None,
            b_soc: npt.ArrayLike | None = None,
            soc: Sequence[int] = (),
            offset: float = 0.0,
            sense: Sense = "min",
            names: Names | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        q = vector("q", self.q)
        n = q.size
        A_ub, b_ub = inequalities(n, self.A_ub, self.b_ub)
        A_eq, b_eq = equalities(n, self.A_eq, self.b_eq)
        A_soc, b_soc = equalities(n, self.A_soc, self.b_soc, "soc")
        soc = cone_sizes("soc", self.soc, b_soc.size)
        choice("sense", self.sense, "min", "max")
        uneven: list[str] = []
        P = None if self.P is None else self._convex("P", self.P, n, uneven, self.sign)
        bounds, offset = bounds_array(n, self.bounds), finite_number("offset", self.offset)
        rows = listed(
            "quadratics", self.quadratics, "a list of triples (P, q, r) of x'Px/2 + q'x <= r"
        )
        quadratics = tuple(self._quadratic(i, row, n, uneven) for i, row in enumerate(rows))
        values = (P, q, quadratics, A_ub, b_ub, A_eq, b_eq, bounds, A_soc, b_soc, soc, offset)
        for name, value in zip(self.__dataclass_fields__, values, strict=False):
            object.__setattr__(self, name, value)
        if uneven:
            object.__setattr__(
                self, "repair", f"averaged with its transpose, rounding apart: {', '.join(uneven)}"
            )
        Names.check(self.names, n, b_ub.size, b_eq.size)

    @staticmethod
    def _convex(
        name: str, P: object, n: int, uneven: list[str], sign: float = 1.0
    ) -> SparseMatrix | None:
        """P checked, None if it is zero; `sign` is -1 where the negative must be positive semidefinite."""
        given = csc(name, P, (n, n))
        matrix = ConeForm(np.zeros(n), sparse.csc_array((0, n)), np.zeros(0), Cones(), given).P
        assert matrix is not None
        uneven += [] if np.array_equal(given.data, matrix.data) else [name]
        refuse_indefinite(
            name if sign > 0 else f"-{name} (a program that maximises)", sign * matrix
        )
        return matrix if matrix.nnz else None

    def _quadratic(self, index: int, row: object, n: int, uneven: list[str]) -> QuadraticRow:
        name = f"quadratics[{index}]"
        parts = listed(name, row, "a triple (P, q, r) of x'Px/2 + q'x <= r")
        if len(parts) != 3:
            raise InvalidProblem(
                f"{name} has {len(parts)} parts; expected P, q and r of x'Px/2 + q'x <= r"
            )
        P = self._convex(f"{name} P", parts[0], n, uneven)
        P = csc("P", sparse.csc_array((n, n))) if P is None else P
        return QuadraticRow(
            P, vector(f"{name} q", parts[1], n), finite_number(f"{name} r", parts[2])
        )

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> Self:
        """Return the program in an .mps, .lp, .cbf or .npz file."""
        model = formats.read(path)
        model.expect(path, "QCQP", ("LP", "QCQP"))
        A_ub, b_ub, A_eq, b_eq, names = model.split()
        linear = (A_ub, b_ub, A_eq, b_eq, model.bounds)
        cones = (model.A_soc, model.b_soc, model.soc)
        return cls(
            model.P, model.c, model.quadratics, *linear, *cones, model.offset, model.sense, names
        )

    def to_file(self, path: str | PathLike[str]) -> None:
        """Write the program to a file; .npz holds all of it, .cbf cones, .mps and .lp a quadratic objective."""
        model = Model.of_rows(self.q, self.rows, self.offset, self.sense, self.names)
        cones = replace(model, A_soc=self.A_soc, b_soc=self.b_soc, soc=self.soc)
        formats.write(path, replace(cones, P=self.P, quadratics=self.quadratics))

    def describe(self) -> str:
        rows, cones = (
            self.rows.b_ub.size + self.rows.b_eq.size,
            len(self.soc) + len(self.quadratics),
        )
        return f"QCQP({rows} rows, {cones} cones, {self.q.size} variables)"

    @cached_property
    def rows(self) -> LinearRows:
        """The linear constraints."""
        return LinearRows(self.A_ub, self.b_ub, self.A_eq, self.b_eq, self.bounds)

    @cached_property
    def balls(self) -> tuple[QuadraticCone, ...]:
        """The quadratic constraints as cones."""
        return tuple(QuadraticCone(factor("P", row.P), row.q, row.r) for row in self.quadratics)

    @cached_property
    def form(self) -> ConeForm:
        """The program with its quadratic objective; quadratic constraints as second-order cones."""
        stack = [
            self.rows.zero,
            self.rows.nonneg,
            (self.A_soc, self.b_soc),
            *(b.rows() for b in self.balls),
        ]
        A = csc("A", sparse.vstack([A for A, _ in stack], format="csc"))
        cones = Cones(
            stack[0][1].size, stack[1][1].size, (*self.soc, *(ball.size for ball in self.balls))
        )
        P = None if self.P is None else csc("P", self.sign * self.P)
        return ConeForm(self.sign * self.q, A, np.concatenate([b for _, b in stack]), cones, P)

    @cached_property
    def top(self) -> QuadraticCone | None:
        """x'Px/2 <= t as a cone in (x, t); None for a linear objective."""
        if self.form.P is None:
            return None
        F = factor("P", self.form.P)
        wide = sparse.hstack([F, sparse.csc_array((F.shape[0], 1))], format="csc")
        return QuadraticCone(csc("F", wide), np.append(np.zeros(self.q.size), -1.0), 0.0)

    @cached_property
    def epigraph(self) -> ConeForm:
        """The program with a linear objective: one variable and one cone more, unless it is linear already."""
        form, top = self.form, self.top
        if top is None:
            return form
        A, b = top.rows()
        above = sparse.hstack([form.A, sparse.csc_array((form.b.size, 1))])
        cones = attrs.evolve(form.cones, soc=(*form.cones.soc, b.size))
        stacked = csc("A", sparse.vstack([above, A], format="csc"))
        return ConeForm(np.append(form.c, 1.0), stacked, np.concatenate((form.b, b)), cones)

    def formulations(self) -> tuple[Formulation, ...]:
        """Return the program with its quadratic objective where it has one, with a linear one, and the dual of that."""
        cones = {Feature.SOC} if self.soc or self.quadratics else set()
        all_cones = cones if self.P is None else {Feature.SOC}
        name = "SOCP" if all_cones else "LP"
        way = (lambda: self.epigraph, self._from_epigraph, self._to_epigraph)
        linear = (
            self.by_form(
                name,
                all_cones,
                "x'Px/2 <= t  <=>  ||(2Fx, 2t/s - s)|| <= 2t/s + s, where P = F'F",
                *way,
            ),
            self.by_dual(
                f"dual {name}",
                all_cones,
                "conic duality, strong where there is a Slater point",
                *way,
            ),
        )
        if self.P is None:
            return linear
        needs = {Feature.QUADRATIC} | cones
        own = (lambda: self.form, self.point, self.pair)
        return (
            self.by_form("conic QP" if cones else "QP", needs, "the program itself", *own),
            *linear,
        )

    def bracket(self, point: Point) -> Bracket:
        found = super().bracket(point)
        return replace(found, note="; ".join(filter(None, (found.note, self.repair))))

    def point(self, x: FloatArray, y: FloatArray | None) -> Point:
        y = np.zeros(self.form.b.size) if y is None else y
        cones = self.form.cones
        zero, nonneg, rest = np.split(y, np.cumsum((cones.zero, cones.nonneg)))
        soc, *balls = np.split(
            rest, np.cumsum((sum(self.soc), *(ball.size for ball in self.balls)))[:-1]
        )
        weights = [ball.multiplier(u) for ball, u in zip(self.balls, balls, strict=True)]
        return Point(
            {"x": x}, {**self.rows.named(zero, nonneg), "quadratic": np.array(weights), "soc": soc}
        )

    def pair(self, point: Point) -> tuple[FloatArray, FloatArray]:
        x, soc = point.primal["x"], point.dual.get("soc", np.zeros(sum(self.soc)))
        weights = np.maximum(point.dual.get("quadratic", np.zeros(len(self.balls))), 0.0)
        balls = [ball.support(weight, x) for ball, weight in zip(self.balls, weights, strict=True)]
        return x, np.concatenate((*self.rows.stacked(point.dual), soc, *balls))

    def _from_epigraph(self, x: FloatArray, y: FloatArray | None) -> Point:
        return self.point(x[: self.q.size], None if y is None else y[: self.form.b.size])

    def _to_epigraph(self, point: Point) -> tuple[FloatArray, FloatArray]:
        x, y = self.pair(point)
        if self.top is None:
            return x, y
        high = np.append(x, float(x @ self.form.curve(x)) / 2)
        return high, np.concatenate((y, self.top.support(1.0, high)))

    @classmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        """Return a program with one ball and one cone, both tight, built from a complementary primal-dual pair."""
        n, m = max(size, 2), max(size // 2, 1)
        x, half = rng.uniform(-1.0, 1.0, n), rng.normal(size=(n, max(n // 2, 1)))
        A_ub, A_soc = rng.normal(size=(m, n)), rng.normal(size=(3, n))
        tight = rng.random(m) < 0.5
        ub = np.where(tight, rng.uniform(0.5, 2.0, m), 0.0)
        angle, weight = rng.uniform(0, 2 * np.pi), rng.uniform(0.5, 2.0)
        edge = np.array([1.0, np.cos(angle), np.sin(angle)])
        P, ball = half @ half.T / n, np.diag(rng.uniform(0.5, 2.0, n))
        q = -P @ x - A_ub.T @ ub - A_soc.T @ (edge * [1.0, -1.0, -1.0]) - weight * ball @ x
        b_ub = A_ub @ x + np.where(tight, 0.0, rng.uniform(0.5, 2.0, m))
        row = (ball, np.zeros(n), float(x @ ball @ x) / 2)
        return cls(P, q, (row,), A_ub, b_ub, A_soc=A_soc, b_soc=A_soc @ x + edge, soc=(3,))


def _kernel_mixture(d: Dataset) -> QCQP:
    """Multiple kernel learning: minimise t - 1'a subject to a'(yy' * K_i)a / 2 <= t, y'a = 0, 0 <= a <= 1."""
    n, y = d.signs.size, d.signs
    rows = []
    for K in d.kernels:
        P = np.zeros((n + 1, n + 1))
        P[:n, :n] = K * np.outer(y, y)
        rows.append((P, np.append(np.zeros(n), -1.0), 0.0))
    bounds = [(0.0, 1.0)] * n + [(0.0, float(n * n))]
    cost = np.append(-np.ones(n), 1.0)
    return QCQP(None, cost, rows, A_eq=np.append(y, 0.0)[None, :], b_eq=[0.0], bounds=bounds)
