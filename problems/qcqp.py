"""A user's own convex quadratic program, with quadratic constraints and second-order cones.

    minimise     x'Px/2 + q'x + offset
    subject to   x'P_i x/2 + q_i'x <= r_i,   b_soc - A_soc x in second-order cones,
                 A_ub x <= b_ub,  A_eq x = b_eq,  lower <= x <= upper

With P_i = F'F each quadratic constraint is a second-order cone
(`klopt.programs.quadratic_constraints`). So is the epigraph of the objective: minimise t + q'x
subject to x'Px/2 <= t, which leaves a linear objective and gives the program a conic dual.

A program that maximises is stated as minimising the negative; the multipliers are those of that
minimisation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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
from klopt.model.features import Feature
from klopt.model.forms import ConeForm
from klopt.model.problem import Example, Formulation, Point, Sense, Statement
from klopt.programs.epigraph import Epigraph
from klopt.programs.formats.model import Model, Names, QuadraticRow
from klopt.programs.program import Program
from klopt.programs.psd_factor import averaged_note, convex_matrix, factor
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
from klopt.proof.cone_witnesses import DualWitness
from klopt.proof.statement import ConeStatement, QuadraticConstraint

if TYPE_CHECKING:
    from klopt.kernels.datasets import Dataset

__all__ = ["QCQP"]


@attrs.frozen(eq=False, slots=False, init=False)
class QCQP(Program):
    """Minimise x'Px/2 + q'x under convex quadratic, second-order cone and linear constraints.

    Solutions have x and the multipliers ub, eq, lower, upper, quadratic, soc.

    Parameters
    ----------
    P, q : (n, n) matrix or None, (n,) array
        The objective; P is None for a linear one.
    quadratics : sequence of triples
        Triples (P_i, q_i, r_i) of the constraints x'P_i x/2 + q_i'x <= r_i.
    A_ub, b_ub, A_eq, b_eq : arrays, dense or sparse
        The linear rows, as in `scipy.optimize.linprog`.
    bounds : pair or sequence of pairs
        A pair (low, high) for all variables or one for each; x is free by default.
    A_soc, b_soc, soc : (m, n) matrix, (m,) array, sequence of int
        The rows b_soc - A_soc x are second-order cones of the sizes `soc`, largest entry first.
    offset : float
        A constant that is added to the value.
    sense : "min" or "max"
        Whether the objective is minimised or maximised.
    names : Names or None
        What columns and rows are called in a file.
    within : float
        A declared bound of the Euclidean norm of x, part of the statement: what is proven is proven
        of the points within it. Programs whose optimum is not attained need one for a lower bound.

    Examples
    --------
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
        area="Quadratic programs",
    )
    examples = (
        Example("wine", lambda d: _kernel_mixture(d), demo=(40, 80, 160), full=(60, 120, 178)),
    )

    P: SparseMatrix | None
    q: FloatArray
    quadratics: tuple[QuadraticRow, ...]
    A_ub: SparseMatrix
    b_ub: FloatArray
    A_eq: SparseMatrix
    b_eq: FloatArray
    bounds: FloatArray
    A_soc: SparseMatrix
    b_soc: FloatArray
    soc: tuple[int, ...]
    offset: float
    sense: Sense
    names: Names | None
    repair: str
    """Which matrices were averaged with their transposes, from which they differed by rounding."""
    within: float
    """The declared bound of the norm of x."""

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
        within: float = np.inf,
    ) -> None:
        linear = vector("q", q)
        n = linear.size
        ub = inequalities(n, A_ub, b_ub)
        eq = equalities(n, A_eq, b_eq)
        cone_rows = equalities(n, A_soc, b_soc, "soc")
        sizes = cone_sizes("soc", soc, cone_rows[1].size)
        choice("sense", sense, "min", "max")
        # What is maximised must be concave: -P is positive semidefinite.
        uneven: list[str] = []
        sign = 1.0 if sense == "min" else -1.0
        quadratic = None if P is None else convex_matrix("P", P, n, uneven, sign)
        limits = bounds_array(n, bounds)
        constant = finite_number("offset", offset)
        what = "a list of triples (P, q, r) of x'Px/2 + q'x <= r"
        triples = listed("quadratics", quadratics, what)
        rows = tuple(_quadratic_row(i, row, n, uneven) for i, row in enumerate(triples))
        Names.check(names, n, ub[1].size, eq[1].size)
        self.__attrs_init__(
            quadratic,
            linear,
            rows,
            *ub,
            *eq,
            limits,
            *cone_rows,
            sizes,
            constant,
            sense,
            names,
            averaged_note(uneven),
            positive("within", within, infinite=True),
        )

    @classmethod
    def from_model(cls, model: Model, path: str | PathLike[str]) -> Self:
        """Return the program that was read from a file."""
        model.expect(path, "QCQP", ("LP", "QCQP"))
        A_ub, b_ub, A_eq, b_eq, names = model.split()
        linear = (A_ub, b_ub, A_eq, b_eq, model.bounds)
        cones = (model.A_soc, model.b_soc, model.soc)
        return cls(
            model.P, model.c, model.quadratics, *linear, *cones, model.offset, model.sense, names
        )

    def to_file(self, path: str | PathLike[str]) -> None:
        """Write the program to a file.

        An .npz file holds all of it, .cbf cones, .mps and .lp a quadratic objective.
        """
        model = Model.of_rows(self.q, self.rows, self.offset, self.sense, self.names)
        cones = replace(model, A_soc=self.A_soc, b_soc=self.b_soc, soc=self.soc)
        formats.write(path, replace(cones, P=self.P, quadratics=self.quadratics))

    def describe(self) -> str:
        rows = self.rows.b_ub.size + self.rows.b_eq.size
        cones = len(self.soc) + len(self.quadratics)
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
        zero = self.rows.zero
        nonneg = self.rows.nonneg
        balls = [ball.rows() for ball in self.balls]
        parts = [zero, nonneg, (self.A_soc, self.b_soc), *balls]
        A = csc("A", sparse.vstack([A for A, _ in parts], format="csc"))
        b = np.concatenate([b for _, b in parts])
        soc = (*self.soc, *(ball.size for ball in self.balls))
        cones = Cones(zero[1].size, nonneg[1].size, soc)
        P = None if self.P is None else csc("P", self.sign * self.P)
        return ConeForm(self.sign * self.q, A, b, cones, P)

    @cached_property
    def cone_statement(self) -> ConeStatement:
        """The program with its quadratic constraints as they are, which `form` factors."""
        form = self.form
        kept = form.b.size - sum(ball.size for ball in self.balls)
        cones = attrs.evolve(form.cones, soc=self.soc)
        rows = tuple(QuadraticConstraint(row.P, row.q, row.r) for row in self.quadratics)
        A = csc("A", form.A.tocsr()[:kept])
        return ConeStatement(form.c, A, form.b[:kept], cones, form.P, rows, within=self.within)

    def dual_witness(self, w: FloatArray, y: FloatArray) -> DualWitness:
        """Return (w, y) with one multiplier for each quadratic constraint."""
        kept = self.cone_statement.b.size
        parts = np.split(y[kept:], np.cumsum([ball.size for ball in self.balls])[:-1])
        weights = [ball.multiplier(u) for ball, u in zip(self.balls, parts, strict=False)]
        return DualWitness(w, y[:kept], np.array(weights))

    @cached_property
    def epigraph(self) -> Epigraph:
        """The program with a linear objective, that is with t and the cone x'Px/2 <= t added."""
        return Epigraph(self.form)

    def formulations(self) -> tuple[Formulation, ...]:
        """Return the program itself, the one with a linear objective, and the dual of that."""
        cones = {Feature.SOC} if self.soc or self.quadratics else set()
        all_cones = cones if self.P is None else {Feature.SOC}
        name = "SOCP" if all_cones else "LP"
        way = (lambda: self.epigraph.form, self._from_epigraph, self._to_epigraph)
        rotated = "x'Px/2 <= t  <=>  ||(2Fx, 2t/s - s)|| <= 2t/s + s, where P = F'F"
        duality = "conic duality, strong where there is a Slater point"
        linear = (
            self.by_form(name, all_cones, rotated, *way),
            self.by_dual(f"dual {name}", all_cones, duality, *way),
        )
        # Without P the epigraph is the program itself.
        if self.P is None:
            return linear
        needs = {Feature.QUADRATIC} | cones
        name = "conic QP" if cones else "QP"
        own = (lambda: self.form, self.point, self.pair)
        return (self.by_form(name, needs, "the program itself", *own), *linear)

    def point(self, x: FloatArray, y: FloatArray | None) -> Point:
        y = np.zeros(self.form.b.size) if y is None else y
        cones = self.form.cones
        zero, nonneg, rest = np.split(y, np.cumsum((cones.zero, cones.nonneg)))
        sizes = (sum(self.soc), *(ball.size for ball in self.balls))
        soc, *balls = np.split(rest, np.cumsum(sizes)[:-1])
        weights = [ball.multiplier(u) for ball, u in zip(self.balls, balls, strict=True)]
        linear = self.rows.named(zero, nonneg)
        return Point({"x": x}, {**linear, "quadratic": np.array(weights), "soc": soc})

    def pair(self, point: Point) -> tuple[FloatArray, FloatArray]:
        x = point.primal["x"]
        soc = point.dual.get("soc", np.zeros(sum(self.soc)))
        weights = np.maximum(point.dual.get("quadratic", np.zeros(len(self.balls))), 0.0)
        balls = [ball.support(weight, x) for ball, weight in zip(self.balls, weights, strict=True)]
        return x, np.concatenate((*self.rows.stacked(point.dual), soc, *balls))

    def _from_epigraph(self, x: FloatArray, y: FloatArray | None) -> Point:
        return self.point(*self.epigraph.lower(x, y))

    def _to_epigraph(self, point: Point) -> tuple[FloatArray, FloatArray]:
        return self.epigraph.lift(*self.pair(point))

    @classmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        """Return a program built from a complementary pair, its ball and its cone active."""
        # With at most n active constraints, of normals in general position, there is an interior.
        n = max(size, 4)
        m = n // 2
        x = rng.uniform(-1.0, 1.0, n)
        half = rng.normal(size=(n, max(n // 2, 1)))
        A_ub = rng.normal(size=(m, n))
        A_soc = rng.normal(size=(3, n))
        tight = rng.random(m) < 0.5
        ub = np.where(tight, rng.uniform(0.5, 2.0, m), 0.0)
        angle = rng.uniform(0, 2 * np.pi)
        weight = rng.uniform(0.5, 2.0)
        # The slack lies on the boundary of the cone, its multiplier on the opposite ray.
        edge = np.array([1.0, np.cos(angle), np.sin(angle)])
        soc = edge * [1.0, -1.0, -1.0]
        P = half @ half.T / n
        ball = np.diag(rng.uniform(0.5, 2.0, n))
        q = -P @ x - A_ub.T @ ub - A_soc.T @ soc - weight * ball @ x  # stationarity
        b_ub = A_ub @ x + np.where(tight, 0.0, rng.uniform(0.5, 2.0, m))
        row = (ball, np.zeros(n), float(x @ ball @ x) / 2)
        return cls(P, q, (row,), A_ub, b_ub, A_soc=A_soc, b_soc=A_soc @ x + edge, soc=(3,))


def _quadratic_row(index: int, row: object, n: int, uneven: list[str]) -> QuadraticRow:
    """One constraint x'Px/2 + q'x <= r checked."""
    name = f"quadratics[{index}]"
    parts = listed(name, row, "a triple (P, q, r) of x'Px/2 + q'x <= r")
    if len(parts) != 3:
        raise InvalidProblem(
            f"{name} has {len(parts)} parts; expected P, q and r of x'Px/2 + q'x <= r"
        )
    P = convex_matrix(f"{name} P", parts[0], n, uneven)
    if P is None:
        P = csc("P", sparse.csc_array((n, n)))
    return QuadraticRow(P, vector(f"{name} q", parts[1], n), finite_number(f"{name} r", parts[2]))


def _kernel_mixture(d: Dataset) -> QCQP:
    """Multiple kernel learning: minimise t - 1'a subject to a'(yy' o K_i)a / 2 <= t.

    Further, y'a = 0 and 0 <= a <= 1.
    """
    n = d.size
    y = d.signs
    rows = []
    for K in d.kernels:
        P = np.zeros((n + 1, n + 1))
        P[:n, :n] = K * np.outer(y, y)
        rows.append((P, np.append(np.zeros(n), -1.0), 0.0))
    bounds = [(0.0, 1.0)] * n + [(0.0, float(n * n))]
    cost = np.append(-np.ones(n), 1.0)
    return QCQP(None, cost, rows, A_eq=np.append(y, 0.0)[None, :], b_eq=[0.0], bounds=bounds)
