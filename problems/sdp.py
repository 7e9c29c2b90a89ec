"""A user's own semidefinite program, as a linear matrix inequality or in standard form.

    over x   minimise c'x + offset
             subject to  sum_i x_i F_i - F_0 psd,  A_ub x <= b_ub,  A_eq x = b_eq
    over X   minimise <C, X> + offset
             subject to  <A_i, X> = b_i,  X psd

Each is the dual of the other: with c = -b, F_i = -A_i, F_0 = -C the first has the negative of the
second's optimum wherever one of them has an interior point. Matrices may be made of blocks; blocks
that are diagonal are linear rows. A program that maximises is stated as minimising the negative;
the multipliers are those of that minimisation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Self

import attrs
import numpy as np
import numpy.typing as npt
from scipy import sparse

import klopt.programs.formats as formats
from klopt.arrays import FloatArray, MatrixLike, SparseMatrix, csc, positive, vector
from klopt.errors import InvalidProblem
from klopt.model.cones import Cones, smat, svec, svec_size
from klopt.model.features import Feature
from klopt.model.forms import ConeForm
from klopt.model.problem import Example, Formulation, Point, Sense, Statement
from klopt.programs.formats.model import Block, Model
from klopt.programs.matrix_inequalities import matrix_blocks
from klopt.programs.program import Program
from klopt.programs.rows import LinearRows, bounds_array, equalities, finite_number, inequalities
from klopt.programs.user_input import choice, matrices, refuse_no_matrix
from klopt.proof.cone_witnesses import DualWitness
from klopt.proof.statement import ConeStatement

if TYPE_CHECKING:
    from klopt.kernels.datasets import Dataset

__all__ = ["SDP"]


@attrs.frozen(eq=False, slots=False, init=False)
class SDP(Program):
    """Minimise c'x subject to x_1 F_1 + .. + x_n F_n - F_0 psd and linear rows; x is free.

    Solutions have x and the multipliers ub, eq, X0, X1, .. (one for each block); those of
    `SDP.standard` have X0, X1, .., diagonal and the multipliers eq.

    Parameters
    ----------
    c : (n,) array
        The objective, or b of the program over X.
    F : sequence of n + 1 symmetric matrices
        The list F_0, F_1, .., F_n of dense or sparse symmetric matrices, or tuples of blocks; 0
        stands for a zero matrix. They are kept as a tuple of `Block`s; diagonal blocks become the
        last rows of A_ub.
    A_ub, b_ub, A_eq, b_eq : arrays, dense or sparse
        The linear rows, as in `scipy.optimize.linprog`.
    offset : float
        A constant that is added to the value.
    sense : "min" or "max"
        Whether the objective is minimised or maximised.
    within : float
        A declared bound of the Euclidean norm of x, part of the statement: what is proven is proven
        of the points within it. Programs whose optimum is not attained need one for a lower bound.
    over : "x" or "X"
        "x" for the matrix inequality, "X" for the standard form; `SDP.standard` makes the latter.

    Examples
    --------
    >>> sdp = SDP(c=[1.0], F=[[[0, -1], [-1, 0]], np.eye(2)])  # the largest eigenvalue of -F_0 is 1
    >>> bracket = sdp.bracket(Point({"x": [1.0]}, {"X0": [[0.5, -0.5], [-0.5, 0.5]]}))
    >>> round(bracket.lower, 6), round(bracket.upper, 6)
    (1.0, 1.0)
    """

    statement = Statement(
        r"GOAL_{x}\; c^\top x\quad\text{subject to}\quad \sum_i x_iF_i-F_0\succeq 0,"
        r"\quad A_{\mathrm{ub}}x\le b_{\mathrm{ub}},\quad "
        r"A_{\mathrm{eq}}x=b_{\mathrm{eq}}",
        words=(
            "Or over X: <C, X> subject to <A_i, X> = b_i, X positive semidefinite, which "
            "is its dual."
        ),
        area="Semidefinite programs",
    )
    examples = (
        Example("iris", lambda d: _largest_cut(d), demo=(12, 24, 40), full=(50, 100, 150)),
        Example("breast", lambda d: _minimum_trace_factors(d), demo=(569,), full=(569,)),
    )

    c: FloatArray
    F: tuple[Block, ...]
    A_ub: SparseMatrix
    b_ub: FloatArray
    A_eq: SparseMatrix
    b_eq: FloatArray
    offset: float
    sense: Sense
    over: Literal["x", "X"]
    """Which of the two programs is meant; "X" reads c as b and F as (C, A_1, .., A_n)."""
    within: float
    """The declared bound of the norm of x."""

    def __init__(
        self,
        c: npt.ArrayLike,
        F: Sequence[Any],
        A_ub: MatrixLike | None = None,
        b_ub: npt.ArrayLike | None = None,
        A_eq: MatrixLike | None = None,
        b_eq: npt.ArrayLike | None = None,
        offset: float = 0.0,
        sense: Sense = "min",
        over: Literal["x", "X"] = "x",
        within: float = np.inf,
    ) -> None:
        cost = vector("c", c)
        choice("sense", sense, "min", "max")
        choice("over", over, "x", "X")
        eq = equalities(cost.size, A_eq, b_eq)
        if over == "X" and eq[1].size:
            raise InvalidProblem(
                "over is 'X', whose equalities are F; leave out A_eq and b_eq, or write over='x'"
            )
        given = matrices("F", F, "the list of matrices F_0, F_1, .., F_n")
        blocks, diagonal = matrix_blocks(given, cost.size)
        A, b = inequalities(cost.size, A_ub, b_ub)
        if diagonal.shape[0]:
            # sum_i x_i F_i - F_0 >= 0 on the diagonal is -F x <= -F_0; over X, a row of the dual.
            turn = -1.0 if over == "x" else 1.0
            right_hand_sides = turn * diagonal[:, [0]].toarray()
            A = csc("A_ub", sparse.vstack([A, turn * diagonal[:, 1:]], format="csc"))
            b = vector("b_ub", np.append(b, right_hand_sides), infinite=True)
        constant = finite_number("offset", offset)
        reach = positive("within", within, infinite=True)
        if over == "X" and np.isfinite(reach):
            raise InvalidProblem("within bounds x; a program over X has none: leave it out")
        self.__attrs_init__(cost, blocks, A, b, *eq, constant, sense, over, reach)

    @classmethod
    def standard(
        cls, C: Any, A: Sequence[Any], b: npt.ArrayLike, offset: float = 0.0, sense: Sense = "min"
    ) -> Self:
        """Return the program: minimise <C, X> subject to <A_i, X> = b_i, X positive semidefinite.

        Parameters
        ----------
        C, A
            The symmetric matrices of the objective and of the equalities.
        b
            The right-hand sides.
        offset
            A constant that is added to the value.
        sense
            "min" or "max".

        >>> SDP.standard(np.eye(2), [[[0, 1], [1, 0]]], [1.0]).describe()
        'SDP(1 equality, X of order 2)'
        """
        refuse_no_matrix("C", C)
        F = (C, *matrices("A", A, "the list of matrices A_1, .., A_n"))
        return cls(b, F, offset=offset, sense=sense, over="X")

    @classmethod
    def from_model(cls, model: Model, path: str | PathLike[str]) -> Self:
        """Return the program that was read from a file."""
        model.expect(path, "SDP", ("LP", "SDP"))
        A_ub, b_ub, A_eq, b_eq, _ = model.split()
        # An SDP has no bounds of variables: they become rows.
        limits_of_x = bounds_array(model.c.size, model.bounds)
        bounds = LinearRows(A_ub[:0], b_ub[:0], A_eq[:0], b_eq[:0], limits_of_x)
        A_fixed, fixed = bounds.zero
        A_bounded, limits = bounds.nonneg
        return cls(
            model.c,
            model.blocks,
            sparse.vstack([A_ub, A_bounded]),
            np.append(b_ub, limits),
            sparse.vstack([A_eq, A_fixed]),
            np.append(b_eq, fixed),
            model.offset,
            model.sense,
            model.over,
        )

    def to_file(self, path: str | PathLike[str]) -> None:
        """Write the program to a .dat-s or .cbf file; reading it gives the same numbers."""
        model = Model.of_rows(self.c, self.rows, self.offset, self.sense)
        formats.write(path, replace(model, blocks=self.F, over=self.over))

    def describe(self) -> str:
        orders = " + ".join(str(block.order) for block in self.F) or "0"
        rows = self.rows.b_ub.size + self.rows.b_eq.size
        if self.over == "X":
            more = f", {rows} nonnegative entries" if rows else ""
            equalities = "1 equality" if self.c.size == 1 else f"{self.c.size} equalities"
            return f"SDP({equalities}, X of order {orders}{more})"
        return f"SDP({self.c.size} variables, blocks of order {orders}, {rows} linear rows)"

    @property
    def scale(self) -> float:
        """The program over X is the dual of `form`."""
        return self.sign if self.over == "x" else -self.sign

    @cached_property
    def rows(self) -> LinearRows:
        """The linear constraints."""
        free = bounds_array(self.c.size, (None, None))
        return LinearRows(self.A_ub, self.b_ub, self.A_eq, self.b_eq, free)

    @cached_property
    def form(self) -> ConeForm:
        """The matrix inequality as a cone program in x; for a program over X that of its dual."""
        over_x = self.over == "x"
        turn = -1.0 if over_x else 1.0
        goal = 1.0 if over_x else self.sign
        cost = self.sign * self.c if over_x else -self.c

        A_zero, b_zero = self.rows.zero
        A_nonneg, b_nonneg = self.rows.nonneg
        scaled = [sparse.diags_array(block.weights) @ block.entries for block in self.F]
        A_psd = [turn * entries[:, 1:] for entries in scaled]
        b_psd = [turn * goal * entries[:, [0]].toarray().ravel() for entries in scaled]

        A = sparse.vstack([A_zero, A_nonneg, *A_psd], format="csc")
        b = np.concatenate([b_zero, goal * b_nonneg, *b_psd])
        cones = Cones(b_zero.size, b_nonneg.size, psd=tuple(block.order for block in self.F))
        return ConeForm(cost, csc("A", A), b, cones)

    @cached_property
    def cone_statement(self) -> ConeStatement:
        """The matrix inequality in the entries of its matrices, which `form` multiplies by roots."""
        form = self.form
        scaled = form.cones.zero + form.cones.nonneg
        over_x = self.over == "x"
        turn = -1.0 if over_x else 1.0
        goal = 1.0 if over_x else self.sign
        A_psd = [turn * block.entries[:, 1:] for block in self.F]
        b_psd = [turn * goal * block.entries[:, [0]].toarray().ravel() for block in self.F]
        A = sparse.vstack([form.A.tocsr()[:scaled], *A_psd], format="csc")
        b = np.concatenate([form.b[:scaled], *b_psd])
        return ConeStatement(form.c, csc("A", A), b, form.cones, plain=True, within=self.within)

    def dual_witness(self, w: FloatArray, y: FloatArray) -> DualWitness:
        """Return (w, y) with the entries of the matrices X instead of their `svec`."""
        scaled = self.form.cones.zero + self.form.cones.nonneg
        weights = np.concatenate([np.ones(scaled), *(block.weights for block in self.F)])
        return DualWitness(w, y / weights)

    def formulations(self) -> tuple[Formulation, ...]:
        """Return the program itself, then its dual."""
        needs = {Feature.PSD} if self.F else set()
        reason = "conic duality, strong where one of the two programs has an interior point"
        way = (lambda: self.form, self.point, self.pair)
        inequality = self.by_form("LMI", needs, reason, *way, dual=self.over == "X")
        standard = self.by_dual("standard form", needs, reason, *way, dual=self.over == "x")
        return (inequality, standard) if self.over == "x" else (standard, inequality)

    def point(self, x: FloatArray, y: FloatArray | None) -> Point:
        y = np.zeros(self.form.b.size) if y is None else y
        cones = self.form.cones
        sizes = [svec_size(block.order) for block in self.F]
        zero, nonneg, *parts = np.split(y, np.cumsum((cones.zero, cones.nonneg, *sizes))[:-1])
        matrices = {f"X{index}": smat(part) for index, part in enumerate(parts)}
        named = self.rows.named(zero, nonneg)
        # The program over X is the dual of the form: X are its multipliers, and -x those of X.
        if self.over == "X":
            return Point({**matrices, "diagonal": named["ub"]}, {"eq": -x})
        return Point({"x": x}, {"ub": named["ub"], "eq": named["eq"], **matrices})

    def pair(self, point: Point) -> tuple[FloatArray, FloatArray]:
        arrays = {**point.primal, **point.dual}
        if self.over == "X":
            arrays = {
                **point.primal,
                "x": -point.dual.get("eq", np.zeros(self.c.size)),
                "ub": point.primal["diagonal"],
            }
        found = [
            arrays.get(f"X{index}", np.zeros((block.order,) * 2))
            for index, block in enumerate(self.F)
        ]
        rows = self.rows.stacked({name: arrays[name] for name in ("ub", "eq") if name in arrays})
        return arrays["x"], np.concatenate((*rows, *(svec((M + M.T) / 2) for M in found)))

    @classmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        """Return a program in a box, built from a complementary slack S and multiplier X."""
        n = max(size // 2, 1)
        order = max(size // 2, 2)
        x = rng.uniform(-1.0, 1.0, n)
        vectors = np.linalg.qr(rng.normal(size=(order, order)))[0]
        high = rng.uniform(0.5, 2.0, order)
        # S X = 0: common eigenvectors, and in each of them one eigenvalue is 0.
        kept = np.arange(order) < order // 2
        S, X = (vectors * np.where(mask, high, 0.0) @ vectors.T for mask in (kept, ~kept))
        F = [M + M.T for M in rng.normal(size=(n, order, order))]
        F_0 = sum((value * M for value, M in zip(x, F, strict=True)), -S)
        box = np.vstack((np.eye(n), -np.eye(n)))
        return cls([float(np.sum(M * X)) for M in F], [F_0, *F], box, np.full(2 * n, 3.0))


def _largest_cut(d: Dataset) -> SDP:
    """The semidefinite bound on the maximum cut: minimise 1'x subject to diag(x) - L/4 psd."""
    L = d.graph_laplacian.toarray()
    return SDP(np.ones(len(L)), [L / 4, *(np.diag(row) for row in np.eye(len(L)))])


def _minimum_trace_factors(d: Dataset) -> SDP:
    """Minimum trace factor analysis: maximise 1'x over x >= 0 with covariance - diag(x) psd."""
    covariance = d.X.T @ d.X / len(d.X)
    order = len(covariance)
    F = [-covariance, *(-np.diag(row) for row in np.eye(order))]
    return SDP(-np.ones(order), F, A_ub=-np.eye(order), b_ub=np.zeros(order))
