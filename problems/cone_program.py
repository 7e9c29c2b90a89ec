"""A user's own cone program, with all the cones that klopt knows.

    minimise x'Px/2 + c'x + offset  subject to  s = b - Ax in K

K is a product of zero, nonnegative, second-order, semidefinite, exponential and power cones
(`klopt.Cones`). Multipliers y lie in the dual cone K*, and Px + c + A'y = 0 at an optimum. A
program that maximises is stated as minimising the negative; the multipliers are those of that
minimisation.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from os import PathLike
from typing import Any, Self

import attrs
import numpy as np
import numpy.typing as npt
from scipy import sparse

import klopt.programs.formats as formats
from klopt.arrays import FloatArray, MatrixLike, SparseMatrix, csc, positive, vector
from klopt.errors import InvalidProblem
from klopt.model.cones import Cones, svec_diagonal, svec_size, svec_weights
from klopt.model.features import Feature
from klopt.model.forms import ConeForm
from klopt.model.problem import Formulation, Point, Sense, Statement
from klopt.programs.cvxpy_reduction import reduced_by_cvxpy
from klopt.programs.epigraph import Epigraph
from klopt.programs.formats.model import Block, Model
from klopt.programs.program import Program
from klopt.programs.psd_factor import averaged_note, convex_matrix
from klopt.programs.rows import LinearRows, bounds_array, finite_number
from klopt.programs.user_input import choice
from klopt.proof.cone_witnesses import DualWitness
from klopt.proof.statement import ConeStatement

__all__ = ["ConeProgram"]


@attrs.frozen(eq=False, slots=False, init=False)
class ConeProgram(Program):
    """Minimise x'Px/2 + c'x subject to b - Ax in a product of cones.

    Solutions have x and the multipliers y of the rows.

    Parameters
    ----------
    P, c : (n, n) matrix or None, (n,) array
        The objective; P is None for a linear one.
    A, b : (m, n) matrix, (m,) array
        The rows; a nonnegative row with b = inf is vacuous.
    cones : Cones
        The product K, one cone after the other.
    offset : float
        A constant that is added to the value.
    sense : "min" or "max"
        Whether the objective is minimised or maximised.
    svec : bool
        Whether rows of semidefinite cones are those of `svec`, off the diagonal times sqrt(2); else
        they are the entries of the lower triangle as they are, which floats hold exactly.
    within : float
        A declared bound of the Euclidean norm of x, part of the statement: what is proven is proven
        of the points within it. Programs whose optimum is not attained need one for a lower bound.

    Examples
    --------
    >>> means = Cones(zero=1, power=(0.5,))  # maximise sqrt(x_1 x_2) on x_1 + x_2 = 2
    >>> A = [[1, 1, 0], [-1, 0, 0], [0, -1, 0], [0, 0, -1]]
    >>> program = ConeProgram(None, [0, 0, 1], A, [2, 0, 0, 0], means, sense="max")
    >>> bracket = program.bracket(Point({"x": [1, 1, 1]}, {"y": [0.5, 0.5, 0.5, -1]}))
    >>> round(bracket.lower, 9), round(bracket.upper, 9)
    (1.0, 1.0)
    """

    statement = Statement(
        r"GOAL_{x}\; \tfrac12 x^\top Px+c^\top x\quad\text{subject to}\quad b-Ax\in\mathcal{K}",
        words=(
            "K is a product of zero, nonnegative, second-order, semidefinite, exponential and "
            "power cones."
        ),
        area="Cone programs",
    )

    P: SparseMatrix | None
    c: FloatArray
    A: SparseMatrix
    b: FloatArray
    cones: Cones
    offset: float
    sense: Sense
    svec: bool
    """Whether rows of semidefinite cones off the diagonal are multiplied by sqrt(2)."""
    repair: str
    """Whether P was averaged with its transpose, from which it differed by rounding."""
    within: float
    """The declared bound of the norm of x."""

    def __init__(
        self,
        P: MatrixLike | None,
        c: npt.ArrayLike,
        A: MatrixLike,
        b: npt.ArrayLike,
        cones: Cones,
        offset: float = 0.0,
        sense: Sense = "min",
        svec: bool = True,
        within: float = np.inf,
    ) -> None:
        cost = vector("c", c)
        right = vector("b", b, infinite=True)
        rows = csc("A", A, (right.size, cost.size))
        # A cone form checks that the cones have as many rows, and where b may be infinite.
        ConeForm(cost, rows, right, cones)
        choice("sense", sense, "min", "max")
        # What is maximised must be concave: -P is positive semidefinite.
        uneven: list[str] = []
        sign = 1.0 if sense == "min" else -1.0
        quadratic = None if P is None else convex_matrix("P", P, cost.size, uneven, sign)
        self.__attrs_init__(
            quadratic,
            cost,
            rows,
            right,
            cones,
            finite_number("offset", offset),
            sense,
            bool(svec),
            averaged_note(uneven),
            positive("within", within, infinite=True),
        )

    @classmethod
    def from_cvxpy(cls, problem: Any) -> Self:
        """Return the cone program that CVXPY reduces a problem to, at its parameters' values.

        Its variables are those of the reduction, CVXPY's auxiliary ones included; `klopt.solve` of
        the CVXPY problem itself sets the values of its variables and constraints.

        >>> import cvxpy
        >>> x = cvxpy.Variable(2)
        >>> problem = cvxpy.Problem(cvxpy.Maximize(cvxpy.geo_mean(x)), [cvxpy.sum(x) <= 2, x >= 0])
        >>> ConeProgram.from_cvxpy(problem).sense
        'max'
        """
        return cls(**reduced_by_cvxpy(problem).arguments)

    @classmethod
    def from_model(cls, model: Model, path: str | PathLike[str]) -> Self:
        """Return the program that was read from a file."""
        if model.quadratics or model.over == "X":
            what = "quadratic constraints" if model.quadratics else "a program over X"
            reader = "QCQP" if model.quadratics else "SDP"
            raise InvalidProblem(
                f"{path} has {what}, which ConeProgram does not hold; use {reader}.from_file"
            )
        A_ub, b_ub, A_eq, b_eq, _ = model.split()
        linear = LinearRows(A_ub, b_ub, A_eq, b_eq, bounds_array(model.c.size, model.bounds))
        parts = [linear.zero, linear.nonneg]
        for A, b in ((model.A_soc, model.b_soc), (model.A_curved, model.b_curved)):
            if A is not None and b is not None:
                parts.append((A, b))
        # sum_j x_j F_j - F_0 is b - Ax with A_j = -F_j and b = -F_0, entry by entry.
        blocks = [
            (csc("F", -block.entries[:, 1:]), -block.entries[:, [0]].toarray().ravel())
            for block in model.blocks
        ]
        place = 3 if model.soc else 2
        parts[place:place] = blocks
        return cls(
            model.P,
            model.c,
            sparse.vstack([A for A, _ in parts], format="csc"),
            np.concatenate([b for _, b in parts]),
            Cones(
                zero=linear.zero[1].size,
                nonneg=linear.nonneg[1].size,
                soc=model.soc,
                psd=tuple(block.order for block in model.blocks),
                exp=model.exp,
                power=model.power,
            ),
            model.offset,
            model.sense,
            svec=not model.blocks,
        )

    def to_file(self, path: str | PathLike[str]) -> None:
        """Write the program to a .cbf file; reading it gives the same numbers.

        A format that holds no cones (.mps, .lp) takes a program without any.
        """
        if self.svec and self.cones.psd:
            raise InvalidProblem(
                f"{path}: rows times sqrt(2) cannot be written without rounding; "
                "state the program by the entries of its matrices, svec=False"
            )
        A = self.A.tocsr()
        cones = self.cones
        soc = slice(cones.zero + cones.nonneg, cones.zero + cones.nonneg + sum(cones.soc))
        blocks = []
        start = soc.stop
        for order in cones.psd:
            rows = slice(start, start + svec_size(order))
            constant = sparse.csc_array(-self.b[rows][:, None])
            entries = sparse.hstack([constant, -A[rows].tocsc()], format="csc")
            blocks.append(Block(order, entries))
            start = rows.stop
        model = Model.of_rows(self.c, self.rows, self.offset, self.sense)
        curved = bool(cones.exp or cones.power)
        model = replace(
            model,
            P=self.P,
            A_soc=csc("A_soc", A[soc]) if cones.soc else None,
            b_soc=self.b[soc] if cones.soc else None,
            soc=cones.soc,
            A_curved=csc("A_curved", A[start:]) if curved else None,
            b_curved=self.b[start:] if curved else None,
            exp=cones.exp,
            power=cones.power,
            blocks=tuple(blocks),
        )
        formats.write(path, model)

    def describe(self) -> str:
        cones = self.cones
        count = len(cones.soc) + len(cones.psd) + cones.exp + len(cones.power)
        linear = cones.zero + cones.nonneg
        return f"ConeProgram({linear} rows, {count} cones, {self.c.size} variables)"

    @cached_property
    def rows(self) -> LinearRows:
        """The linear rows."""
        A = self.A.tocsr()
        zero = self.cones.zero
        linear = zero + self.cones.nonneg
        free = bounds_array(self.c.size, (None, None))
        inequalities = (csc("A_ub", A[zero:linear]), self.b[zero:linear])
        return LinearRows(*inequalities, csc("A_eq", A[:zero]), self.b[:zero], free)

    @property
    def rows_note(self) -> str:
        """What is reported of the linear rows, which need not be taken apart where all say something."""
        return "" if np.isfinite(self.b).all() else self.rows.note

    @cached_property
    def weights(self) -> FloatArray:
        """What turns the rows into those of `svec`."""
        weights = np.ones(self.b.size)
        if not self.svec:
            blocks = [rows for kind, rows in self.cones.blocks() if kind == "psd"]
            orders = [order for order in self.cones.psd if order]
            for order, rows in zip(orders, blocks, strict=True):
                weights[rows] = svec_weights(order)
        return weights

    @cached_property
    def form(self) -> ConeForm:
        """The program as a minimisation, with the rows of `svec`."""
        A = self.A
        b = self.b
        if not self.svec and self.cones.psd:
            A = csc("A", sparse.diags_array(self.weights) @ A)
            b = self.weights * b
        P = None if self.P is None else csc("P", self.sign * self.P)
        return ConeForm(self.sign * self.c, A, b, self.cones, P)

    @cached_property
    def cone_statement(self) -> ConeStatement:
        """The program with its rows as they were given."""
        form = self.form
        plain = not self.svec
        return ConeStatement(
            form.c, self.A, self.b, self.cones, form.P, plain=plain, within=self.within
        )

    def dual_witness(self, w: FloatArray, y: FloatArray) -> DualWitness:
        """Return (w, y) with the entries of matrices where the rows are entries."""
        return DualWitness(w, y / self.weights)

    @cached_property
    def epigraph(self) -> Epigraph:
        """The program with a linear objective, that is with t and the cone x'Px/2 <= t added."""
        return Epigraph(self.form)

    def formulations(self) -> tuple[Formulation, ...]:
        """Return the program itself, the one with a linear objective, and the dual of that."""
        cones = set(self.cones.features)
        all_cones = cones if self.P is None else cones | {Feature.SOC}
        way = (lambda: self.epigraph.form, self._from_epigraph, self._to_epigraph)
        own = (lambda: self.form, self.point, self.pair)
        if self.P is None:
            found = [self.by_form("cone program", cones, "the program itself", *own)]
        else:
            rotated = "x'Px/2 <= t  <=>  ||(2Fx, 2t/s - s)|| <= 2t/s + s, where P = F'F"
            needs = {Feature.QUADRATIC} | cones
            found = [
                self.by_form("cone program", needs, "the program itself", *own),
                self.by_form("linear objective", all_cones, rotated, *way),
            ]
        # Other cones are not their own duals.
        if self.cones.is_symmetric:
            duality = "conic duality, strong where there is a Slater point"
            found.append(self.by_dual("dual", all_cones, duality, *way))
        return tuple(found)

    def point(self, x: FloatArray, y: FloatArray | None) -> Point:
        return Point({"x": x}, {} if y is None else {"y": y * self.weights})

    def pair(self, point: Point) -> tuple[FloatArray, FloatArray]:
        y = point.dual.get("y", np.zeros(self.b.size))
        return point.primal["x"], y / self.weights

    def _from_epigraph(self, x: FloatArray, y: FloatArray | None) -> Point:
        return self.point(*self.epigraph.lower(x, y))

    def _to_epigraph(self, point: Point) -> tuple[FloatArray, FloatArray]:
        return self.epigraph.lift(*self.pair(point))

    @classmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        """Return a quadratic program in a box with a cone of each kind and an interior point."""
        n = max(size, 4)
        x = rng.uniform(-1.0, 1.0, n)
        curved = Cones(soc=(3,), psd=(2,), exp=1, power=(0.25, (1, 1, 2)))
        box = np.vstack((np.eye(n), -np.eye(n)))
        A_curved = rng.normal(size=(curved.size, n))
        inside = np.concatenate(
            (
                [1.0, 0.0, 0.0],
                np.isin(np.arange(3), svec_diagonal(2)).astype(float),
                [-1.0, 0.5, 1.0],
                [1.0, 1.0, 0.0],
                [1.0, 1.0, 1.0, 0.0],
            )
        )
        b = np.concatenate((np.full(2 * n, 3.0), A_curved @ x + inside))
        half = rng.normal(size=(n, max(n // 2, 1)))
        cones = attrs.evolve(curved, nonneg=2 * n)
        return cls(half @ half.T / n, rng.normal(size=n), np.vstack((box, A_curved)), b, cones)
