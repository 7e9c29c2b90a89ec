"""Small forms that were solved on paper, on which every backend is judged."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray
from klopt.conformance.planted import Instance, planted_cone_program
from klopt.conformance.split_game import huber_and_modulus
from klopt.engine.presolve import reduce_rows
from klopt.model.cones import Cones, svec
from klopt.model.forms import ConeForm, ExplicitForm, Form, SaddleForm, SimplexForm
from klopt.model.functions import Bilinear, KernelQuadratic, Linear, Oracle, Quadratic
from klopt.model.problem import Bracket, Formulation, Point, Problem
from klopt.model.sets import BoxPlane, OrderedSimplex, Simplex, Spectrahedron
from klopt.model.smooth_functions import (
    DenseHessian,
    LocalModel,
    MatrixFreeFunction,
    SmoothFunction,
)
from klopt.problems._logdet.function import LogDetDual
from klopt.problems._logdet.proof import DistanceConstraints
from klopt.programs.psd_factor import refuse_indefinite
from klopt.proof.certificate import Verdict
from klopt.proof.cone_bounds import dual_bound, primal_bound

__all__ = ["FormProblem", "Instance", "reference_instances"]


@dataclass(frozen=True, eq=False, repr=False)
class FormProblem(Problem):
    """A form taken as a problem of its own, so that the pipeline can solve and certify it."""

    form: Form
    name: str = "form"
    trusts_residuals = True

    def __post_init__(self) -> None:
        if isinstance(self.form, ConeForm) and self.form.P is not None:
            refuse_indefinite("P", self.form.P)

    def formulations(self) -> tuple[Formulation, ...]:
        """Return the form itself."""
        return (Formulation("as given", self.form.needs, lambda: self.form, _as_point),)

    def bracket(self, point: Point) -> Bracket:
        """Return the bounds the form gives by itself."""
        form = self.form
        if isinstance(form, SimplexForm):
            x, cuts = form.domain.repair(point.x), point.dual.get("y")
            lower = max(form.lower_bound(x), form.averaged_bound(cuts))
            return Bracket(lower, form.objective.value(x), _as_point(x, cuts))
        if isinstance(form, SaddleForm):
            x, y = form.left.repair(point.x), form.right.repair(point.y)
            return Bracket(*form.bounds(x, y), _as_point(x, y))
        if isinstance(form, ExplicitForm):
            return Bracket(-np.inf, np.inf, point, "a closed form alone has no bracket")
        reduced = reduce_rows(form)
        y = point.dual.get("y", np.zeros(form.b.size))
        upper, x = primal_bound(reduced.form, point.x)
        lower, _ = dual_bound(reduced.form, point.x, y[reduced.rows])
        return Bracket(lower, upper, _as_point(x, y))

    @classmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        """Return a linear program with a known solution."""
        return cls(planted_cone_program(rng, "lp", size, 2 * size).form)

    def describe(self) -> str:
        """Return the name and size."""
        return (
            f"{self.name} ({self.form.shape[1]} variables)"
            if not isinstance(self.form, ExplicitForm)
            else self.name
        )


def _as_point(x: FloatArray, y: FloatArray | None) -> Point:
    return Point({"x": x}, {} if y is None else {"y": y})


def reference_instances() -> tuple[Instance, ...]:
    """Return the instances solved on paper, of every shape."""
    return (*_linear(), *_conic(), *_hopeless(), *_over_sets(), *_games())


def _rows(
    c: npt.ArrayLike,
    A: npt.ArrayLike,
    b: npt.ArrayLike,
    P: npt.ArrayLike | None = None,
    *,
    zero: int = 0,
    nonneg: int = 0,
    soc: tuple[int, ...] = (),
    psd: tuple[int, ...] = (),
    exp: int = 0,
) -> ConeForm:
    return ConeForm(c, A, b, Cones(zero, nonneg, soc, psd, exp), P)


def _linear() -> tuple[Instance, ...]:
    eye = -np.eye(2)
    return (
        Instance(
            "lp_unique",
            _rows([-1, -2], np.vstack([[[1, 1], [1, 3]], eye]), [4, 6, 0, 0], nonneg=4),
            value=-5.0,
        ),
        Instance(
            "lp_degenerate",
            _rows([-1, -1], [[1, 0], [0, 1], [1, 1], [1, 1]], [1, 1, 2, 2], nonneg=4),
            value=-2.0,
        ),
        Instance(
            "lp_many_optima",
            _rows([1, 1], np.vstack([[[-1, -1]], eye]), [-1, 0, 0], nonneg=3),
            value=1.0,
        ),
        Instance(
            "lp_redundant_rows",
            _rows([1, 1], [[1, 1], [2, 2], [-1, 0], [0, -1]], [1, 2, 0, 0], zero=2, nonneg=2),
            value=1.0,
        ),
        Instance(
            "lp_fixed_variable",
            _rows([1, 1], [[1, 0], [0, -1]], [3, -2], zero=1, nonneg=1),
            value=5.0,
        ),
        Instance("lp_one_variable", _rows([1], [[-1]], [-3], nonneg=1), value=3.0),
        Instance("lp_vacuous_row", _rows([1], [[-1], [1]], [-3, np.inf], nonneg=2), value=3.0),
        Instance("lp_no_rows", _rows([0, 0], np.zeros((0, 2)), []), value=0.0),
        Instance(
            "qp_unique",
            _rows([-2, -5], np.vstack([[[1, 1]], eye]), [2, 0, 0], [[2, 0], [0, 2]], nonneg=3),
            value=-6.125,
        ),
        Instance("qp_equality", _rows([0, 0], [[1, 1]], [1], [[1, 0], [0, 1]], zero=1), value=0.25),
        Instance(
            "qp_singular",
            _rows([1, -1], [[-1, 0], [0, 1]], [0, 2], [[1, 0], [0, 0]], nonneg=2),
            value=-2.0,
        ),
        Instance("qp_one_variable", _rows([-4], [[1]], [1], [[2]], nonneg=1), value=-3.0),
    )


def _conic() -> tuple[Instance, ...]:
    root = np.sqrt(2.0)
    # The largest eigenvalue of [[2, 1], [1, 2]] is 3: minimise t subject to tI - M PSD.
    shifted = svec(np.array([[-2.0, -1.0], [-1.0, -2.0]]))
    # Minimise <C, X> over trace-one PSD X: the smallest eigenvalue of [[1, 2], [2, 1]] is -1; x =
    # svec(X).
    trace = np.vstack([[1.0, 0.0, 1.0], -np.eye(3)])
    return (
        Instance(
            "socp_disc", _rows([1, 1], [[0, 0], [-1, 0], [0, -1]], [1, 0, 0], soc=(3,)), value=-root
        ),
        Instance("socp_distance", _rows([1], [[-1], [0], [0]], [0, 3, 4], soc=(3,)), value=5.0),
        Instance("socp_of_size_one", _rows([1], [[-1]], [-2], soc=(1,)), value=2.0),
        Instance(
            "sdp_largest_eigenvalue",
            _rows([1], -svec(np.eye(2))[:, None], shifted, psd=(2,)),
            value=3.0,
        ),
        Instance(
            "sdp_smallest_eigenvalue",
            _rows([1, 2 * root, 1], trace, [1, 0, 0, 0], zero=1, psd=(2,)),
            value=-1.0,
        ),
        Instance("sdp_of_order_one", _rows([1], [[-1]], [-2], psd=(1,)), value=2.0),
        Instance(
            "exp_of_one",
            _rows([0, 1], [[1, 0], [-1, 0], [0, 0], [0, -1]], [1, 0, 1, 0], zero=1, exp=1),
            value=math.e,
        ),
    )


def _hopeless() -> tuple[Instance, ...]:
    no, endless = Verdict.INFEASIBLE, Verdict.UNBOUNDED
    return (
        Instance("lp_infeasible", _rows([1, 1], [[1, 1], [-1, -1]], [1, -2], nonneg=2), no),
        Instance(
            "lp_contradictory_equalities", _rows([1, 1], [[1, 1], [1, 1]], [1, 2], zero=2), no
        ),
        Instance("lp_false_empty_row", _rows([1], [[0], [-1]], [-1, 0], nonneg=2), no),
        Instance("lp_unbounded", _rows([-1, 0], [[-1, 0], [0, 1]], [0, 1], nonneg=2), endless),
        Instance("lp_unbounded_without_rows", _rows([1], np.zeros((0, 1)), []), endless),
        Instance(
            "qp_unbounded",
            _rows([0, -1], [[-1, 0], [0, -1]], [0, 0], [[1, 0], [0, 0]], nonneg=2),
            endless,
        ),
        Instance("socp_infeasible", _rows([0], [[0], [-1]], [-1, 0], soc=(2,)), no),
        Instance("sdp_infeasible", _rows([0], [[1], [0], [-1]], [-1, 0, -1], psd=(2,)), no),
    )


def _over_sets() -> tuple[Instance, ...]:
    K = np.array([[2.0, 1.0], [1.0, 2.0]])
    far = np.array([3.0, 0.0, 0.0])
    return (
        Instance(
            "simplex_quadratic",
            SimplexForm(Quadratic(np.diag([1.0, 2.0, 4.0]), np.zeros(3)), Simplex(3)),
            value=2 / 7,
        ),
        Instance("simplex_linear", SimplexForm(Linear([3.0, 1.0, 2.0]), Simplex(3)), value=1.0),
        Instance(
            "simplex_smooth",
            SimplexForm(
                Oracle(3, lambda x: float((x - far) @ (x - far)) / 2, lambda x: x - far, True, 1.0),
                Simplex(3),
            ),
            value=2.0,
        ),
        Instance(
            "simplex_nonsmooth",
            SimplexForm(
                Oracle(3, lambda x: float(np.max(x)), lambda x: np.eye(3)[np.argmax(x)], False),
                Simplex(3),
            ),
            value=1 / 3,
        ),
        # By symmetry (x'x)^2 is least at (1, 1) on x_1 + x_2 = 2.
        Instance(
            "box_curved",
            SimplexForm(
                SmoothFunction(2, _quartic), BoxPlane(np.zeros(2), np.full(2, 3.0), np.ones(2), 2.0)
            ),
            value=4.0,
        ),
        Instance(
            "box_applied",
            SimplexForm(
                MatrixFreeFunction(2, lambda x: DenseHessian(_quartic(x))),
                BoxPlane(np.zeros(2), np.full(2, 3.0), np.ones(2), 2.0),
            ),
            value=4.0,
        ),
        Instance(
            "simplex_curved", SimplexForm(SmoothFunction(3, _quartic), Simplex(3, 3.0)), value=9.0
        ),
        # Two points at squared distance 2 come to distance 1: one eigenvalue of the kernel is
        # halved.
        Instance("orthant_rows", _pair_rows([0], [1], [1.0], [1.0]), value=0.5 - np.log(2.0)),
        # The bound may move: -log(1 + 2x) - log(1 - x) is least at x = 1/4.
        Instance(
            "orthant_rows_with_slack", _pair_rows([0], [1], [1.0], [1.0], 1.0), value=-np.log(9 / 8)
        ),
        # 0 - 1 - 2 with steps of length 1 at most, yet 0 and 2 at a distance of 3.
        Instance(
            "orthant_rows_contradict",
            _pair_rows([0, 1, 0], [1, 2, 2], [1.0, 1.0, -1.0], [1.0, 1.0, 9.0]),
            Verdict.UNBOUNDED,
        ),
        Instance(
            "ordered_linear", SimplexForm(Linear([2.0, 0.0, 5.0]), OrderedSimplex(3)), value=1.0
        ),
        Instance(
            "ordered_quadratic",
            SimplexForm(Quadratic(np.eye(2), [0.0, -1.0]), OrderedSimplex(2)),
            value=-0.25,
        ),
        Instance(
            "box_quadratic",
            SimplexForm(Quadratic(np.eye(2), [-3.0, 1.0]), BoxPlane(np.zeros(2), np.ones(2))),
            value=-2.5,
        ),
        Instance(
            "orthant_quadratic",
            SimplexForm(
                Quadratic(np.eye(3) + np.ones((3, 3)), [-4.0, -5.0, 1.0]),
                BoxPlane(np.zeros(3), np.full(3, np.inf)),
            ),
            value=-7.0,
        ),
        Instance(
            "box_margin",
            SimplexForm(
                KernelQuadratic(K, np.array([1.0, -1.0]), -np.ones(2)),
                BoxPlane(np.zeros(2), np.full(2, 10.0), np.array([1.0, -1.0])),
            ),
            value=-1.0,
        ),
        Instance(
            "spectrahedron_linear",
            SimplexForm(Linear(svec(np.array([[1.0, 2.0], [2.0, 1.0]]))), Spectrahedron(2)),
            value=-1.0,
        ),
        Instance(
            "spectrahedron_quadratic",
            SimplexForm(Quadratic(np.eye(3), np.zeros(3)), Spectrahedron(2)),
            value=0.25,
        ),
    )


def _pair_rows(
    first: list[int],
    second: list[int],
    sign: list[float],
    target: list[float],
    weight: float = np.inf,
) -> SimplexForm:
    i, j = np.array(first), np.array(second)
    pairs = DistanceConstraints(np.eye(max(second) + 1), i, j, sign, target, weight)
    dual = LogDetDual(pairs)
    return SimplexForm(dual, BoxPlane(np.zeros(dual.size), np.full(dual.size, np.inf)))


def _quartic(x: FloatArray) -> LocalModel:
    square = float(x @ x)
    return LocalModel(
        square**2, 4 * square * x, lambda: 4 * square * np.eye(x.size) + 8 * np.outer(x, x)
    )


def _games() -> tuple[Instance, ...]:
    paper = np.array([[0.0, 1.0, -1.0], [-1.0, 0.0, 1.0], [1.0, -1.0, 0.0]])
    mixed = np.array([[3.0, -1.0], [-2.0, 4.0]])
    return (
        Instance(
            "game_rock_paper_scissors",
            SaddleForm(Bilinear(paper), Simplex(3), Simplex(3)),
            value=0.0,
        ),
        Instance("game_mixed", SaddleForm(Bilinear(mixed), Simplex(2), Simplex(2)), value=1.0),
        Instance(
            "game_with_saddle_entry",
            SaddleForm(Bilinear(np.array([[1.0, 2.0], [3.0, 4.0]])), Simplex(2), Simplex(2)),
            value=2.0,
        ),
        Instance("game_that_splits", huber_and_modulus(), value=1.375),
    )
