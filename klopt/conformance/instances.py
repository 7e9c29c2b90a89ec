"""Small forms that were solved on paper, on which every backend is tested."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Self

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray
from klopt.conformance.entropy_dual import EntropyDual
from klopt.conformance.planted import Instance, planted_cone_program
from klopt.engine.presolve import reduce_rows
from klopt.model.cones import Cones, svec
from klopt.model.forms import ConeForm, ExplicitForm, Form, SaddleForm, SimplexForm
from klopt.model.functions import (
    Bilinear,
    DenseHessian,
    KernelQuadratic,
    Linear,
    LocalModel,
    MatrixFreeFunction,
    Oracle,
    ProximalStep,
    Quadratic,
    SmoothFunction,
    Splitting,
)
from klopt.model.problem import Bracket, Formulation, Point, Problem
from klopt.model.sets import BoxPlane, OrderedSimplex, Product, Simplex, Spectrahedron
from klopt.programs.program import with_better_ends
from klopt.programs.psd_factor import refuse_indefinite
from klopt.proof.certificate import Verdict
from klopt.proof.function_bounds import nonconvexity
from klopt.proof.statement import ConeStatement
from klopt.witness.cone_witness import prove
from klopt.witness.over_sets import bracket_of_game, bracket_over_set, point_next_to
from klopt.witness.precise_witness import precise_proof

__all__ = ["FormProblem", "Instance", "reference_instances"]

FEW_ROUNDINGS = 1e-14
"""What functions of two or three variables state as their accuracy: fewer than 40 roundings."""


@dataclass(frozen=True, eq=False, repr=False)
class FormProblem(Problem):
    """A form taken as a problem of its own, so that klopt can solve and certify it."""

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
            x = point_next_to(form.domain, point.x)
            cuts = point.dual.get("y")
            return bracket_over_set(form, x, cuts, self._phi, _as_point(x, cuts))
        if isinstance(form, SaddleForm):
            x = point_next_to(form.left, point.x)
            y = point_next_to(form.right, point.y)
            return bracket_of_game(form, x, y, _as_point(x, y))
        if isinstance(form, ExplicitForm):
            return Bracket(-np.inf, np.inf, point, "a closed form alone has no bracket")
        # Rows that are vacuous or repeated are left out: bounds are proven on the others.
        reduced = reduce_rows(form)
        y = point.dual.get("y", np.zeros(form.b.size))
        statement = ConeStatement.of_form(reduced.form)
        proof = prove(statement, reduced.form, point.x, y[reduced.rows])
        return Bracket(
            proof.lower.value,
            proof.upper.value,
            _as_point(proof.x, y),
            lower_by=proof.lower.by,
            upper_by=proof.upper.by,
            data_change=proof.data_change,
            estimate=proof.estimate,
            no_optimum=proof.no_optimum,
        )

    def sharper_bracket(self, bracket: Bracket) -> Bracket:
        """Return the better ones of these ends and those that many digits prove."""
        if bracket.data_change or not isinstance(self.form, ConeForm):
            return bracket
        found = precise_proof(ConeStatement.of_form(self.form))
        if found is None:
            return bracket
        other = Bracket(
            found.lower.value,
            found.upper.value,
            _as_point(found.x, found.y),
            lower_by=found.lower.by,
            upper_by=found.upper.by,
        )
        return with_better_ends(bracket, other)

    @cached_property
    def _phi(self) -> float:
        """By how much the function over a set may fail to be convex, proven once."""
        return nonconvexity(self.form.objective) if isinstance(self.form, SimplexForm) else 0.0

    @classmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        """Return a linear program with a known solution."""
        return cls(planted_cone_program(rng, "lp", size, 2 * size).form)

    def describe(self) -> str:
        """Return the name and size."""
        if isinstance(self.form, ExplicitForm):
            return self.name
        return f"{self.name} ({self.form.shape[1]} variables)"


def _as_point(x: FloatArray, y: FloatArray | None) -> Point:
    return Point({"x": x}, {} if y is None else {"y": y})


def reference_instances() -> tuple[Instance, ...]:
    """Return the instances solved on paper, of every shape."""
    return (
        *_linear_and_quadratic(),
        *_conic(),
        *_infeasible_or_unbounded(),
        *_over_sets(),
        *_dual_functions(),
        *_games(),
    )


def _cone(
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
    power: tuple[float | tuple[float, ...], ...] = (),
) -> ConeForm:
    return ConeForm(c, A, b, Cones(zero, nonneg, soc, psd, exp, power), P)


def _linear_and_quadratic() -> tuple[Instance, ...]:
    nonnegative = -np.eye(2)
    return (
        Instance(
            "lp_unique",
            _cone([-1, -2], np.vstack([[[1, 1], [1, 3]], nonnegative]), [4, 6, 0, 0], nonneg=4),
            value=-5.0,
        ),
        Instance(
            "lp_degenerate",
            _cone([-1, -1], [[1, 0], [0, 1], [1, 1], [1, 1]], [1, 1, 2, 2], nonneg=4),
            value=-2.0,
        ),
        Instance(
            "lp_many_optima",
            _cone([1, 1], np.vstack([[[-1, -1]], nonnegative]), [-1, 0, 0], nonneg=3),
            value=1.0,
        ),
        Instance(
            "lp_redundant_rows",
            _cone([1, 1], [[1, 1], [2, 2], [-1, 0], [0, -1]], [1, 2, 0, 0], zero=2, nonneg=2),
            value=1.0,
        ),
        Instance(
            "lp_fixed_variable",
            _cone([1, 1], [[1, 0], [0, -1]], [3, -2], zero=1, nonneg=1),
            value=5.0,
        ),
        Instance("lp_one_variable", _cone([1], [[-1]], [-3], nonneg=1), value=3.0),
        Instance("lp_vacuous_row", _cone([1], [[-1], [1]], [-3, np.inf], nonneg=2), value=3.0),
        Instance("lp_no_rows", _cone([0, 0], np.zeros((0, 2)), []), value=0.0),
        Instance(
            "qp_unique",
            _cone(
                [-2, -5], np.vstack([[[1, 1]], nonnegative]), [2, 0, 0], [[2, 0], [0, 2]], nonneg=3
            ),
            value=-6.125,
        ),
        Instance("qp_equality", _cone([0, 0], [[1, 1]], [1], [[1, 0], [0, 1]], zero=1), value=0.25),
        Instance(
            "qp_singular",
            _cone([1, -1], [[-1, 0], [0, 1]], [0, 2], [[1, 0], [0, 0]], nonneg=2),
            value=-2.0,
        ),
        Instance("qp_one_variable", _cone([-4], [[1]], [1], [[2]], nonneg=1), value=-3.0),
    )


def _conic() -> tuple[Instance, ...]:
    root = np.sqrt(2.0)
    # Minimise t subject to tI - M PSD: the largest eigenvalue of M = [[2, 1], [1, 2]] is 3.
    negative = svec(np.array([[-2.0, -1.0], [-1.0, -2.0]]))
    # Minimise <C, X> over PSD X of trace one: the smallest eigenvalue of [[1, 2], [2, 1]] is -1.
    trace = np.vstack([[1.0, 0.0, 1.0], -np.eye(3)])
    return (
        Instance(
            "socp_disc", _cone([1, 1], [[0, 0], [-1, 0], [0, -1]], [1, 0, 0], soc=(3,)), value=-root
        ),
        Instance("socp_distance", _cone([1], [[-1], [0], [0]], [0, 3, 4], soc=(3,)), value=5.0),
        Instance("socp_of_size_one", _cone([1], [[-1]], [-2], soc=(1,)), value=2.0),
        Instance(
            "sdp_largest_eigenvalue",
            _cone([1], -svec(np.eye(2))[:, None], negative, psd=(2,)),
            value=3.0,
        ),
        Instance(
            "sdp_smallest_eigenvalue",
            _cone([1, 2 * root, 1], trace, [1, 0, 0, 0], zero=1, psd=(2,)),
            value=-1.0,
        ),
        Instance("sdp_of_order_one", _cone([1], [[-1]], [-2], psd=(1,)), value=2.0),
        Instance(
            "exp_of_one",
            _cone([0, 1], [[1, 0], [-1, 0], [0, 0], [0, -1]], [1, 0, 1, 0], zero=1, exp=1),
            value=math.e,
        ),
        # Maximise 2^(1/4) 3^(3/4), and the mean of three numbers.
        Instance(
            "power_of_constants",
            _cone([-1], [[0], [0], [-1]], [2, 3, 0], power=(0.25,)),
            value=-(2**0.25) * 3**0.75,
        ),
        Instance(
            "power_of_three",
            _cone([-1], [[0], [0], [0], [-1]], [1, 2, 4, 0], power=((1, 1, 1),)),
            value=-2.0,
        ),
    )


def _infeasible_or_unbounded() -> tuple[Instance, ...]:
    infeasible = Verdict.INFEASIBLE
    unbounded = Verdict.UNBOUNDED
    return (
        Instance("lp_infeasible", _cone([1, 1], [[1, 1], [-1, -1]], [1, -2], nonneg=2), infeasible),
        Instance(
            "lp_contradictory_equalities",
            _cone([1, 1], [[1, 1], [1, 1]], [1, 2], zero=2),
            infeasible,
        ),
        Instance("lp_false_empty_row", _cone([1], [[0], [-1]], [-1, 0], nonneg=2), infeasible),
        Instance("lp_unbounded", _cone([-1, 0], [[-1, 0], [0, 1]], [0, 1], nonneg=2), unbounded),
        Instance("lp_unbounded_without_rows", _cone([1], np.zeros((0, 1)), []), unbounded),
        Instance(
            "qp_unbounded",
            _cone([0, -1], [[-1, 0], [0, -1]], [0, 0], [[1, 0], [0, 0]], nonneg=2),
            unbounded,
        ),
        Instance("socp_infeasible", _cone([0], [[0], [-1]], [-1, 0], soc=(2,)), infeasible),
        Instance("sdp_infeasible", _cone([0], [[1], [0], [-1]], [-1, 0, -1], psd=(2,)), infeasible),
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
                Oracle(
                    3,
                    lambda x: float((x - far) @ (x - far)) / 2,
                    lambda x: x - far,
                    lipschitz=1.0,
                    accuracy=FEW_ROUNDINGS,
                ),
                Simplex(3),
            ),
            value=2.0,
        ),
        Instance(
            "simplex_nonsmooth",
            SimplexForm(
                Oracle(
                    3,
                    lambda x: float(np.max(x)),
                    lambda x: np.eye(3)[np.argmax(x)],
                    smooth=False,
                    accuracy=FEW_ROUNDINGS,
                ),
                Simplex(3),
            ),
            value=1 / 3,
        ),
        # By symmetry (x'x)^2 is minimal at (1, 1) on x_1 + x_2 = 2.
        Instance(
            "box_curved",
            SimplexForm(
                SmoothFunction(2, _quartic, accuracy=FEW_ROUNDINGS),
                BoxPlane(np.zeros(2), np.full(2, 3.0), np.ones(2), 2.0),
            ),
            value=4.0,
        ),
        Instance(
            "box_applied",
            SimplexForm(
                MatrixFreeFunction(2, lambda x: DenseHessian(_quartic(x)), FEW_ROUNDINGS),
                BoxPlane(np.zeros(2), np.full(2, 3.0), np.ones(2), 2.0),
            ),
            value=4.0,
        ),
        Instance(
            "simplex_curved",
            SimplexForm(SmoothFunction(3, _quartic, accuracy=FEW_ROUNDINGS), Simplex(3, 3.0)),
            value=9.0,
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
        *_over_products(),
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


def _over_products() -> tuple[Instance, ...]:
    """Sums of a function of each block, so that the optimum is the sum of the blocks' optima."""
    two = Product((Simplex(2), Simplex(3, 2.0)))
    mixed = Product((Simplex(2), BoxPlane([0.0], [3.0])))
    # x_1^2 + x_2^2 is 1/2 at least over the first simplex, and the rest 4/3 over the second.
    squares = Quadratic(2 * np.eye(5), np.zeros(5))
    return (
        Instance("product_linear", SimplexForm(Linear([2.0, 1.0, 5.0, 4.0, 3.0]), two), value=7.0),
        Instance("product_quadratic", SimplexForm(squares, two), value=11 / 6),
        Instance(
            "product_smooth",
            SimplexForm(
                Oracle(
                    5,
                    lambda x: float(x @ x),
                    lambda x: 2 * x,
                    lipschitz=2.0,
                    accuracy=FEW_ROUNDINGS,
                ),
                two,
            ),
            value=11 / 6,
        ),
        # Minimise (x'x)^2: x = (1/2, 1/2, 0), where x'x = 1/2.
        Instance(
            "product_curved",
            SimplexForm(SmoothFunction(3, _quartic, accuracy=FEW_ROUNDINGS), mixed),
            value=0.25,
        ),
        # Minimise the largest entry: the first block leaves 1/2.
        Instance(
            "product_nonsmooth",
            SimplexForm(
                Oracle(
                    3,
                    lambda x: float(np.max(x)),
                    lambda x: np.eye(3)[np.argmax(x)],
                    smooth=False,
                    accuracy=FEW_ROUNDINGS,
                ),
                mixed,
            ),
            value=0.5,
        ),
        # The row player meets each column with its own simplex: the sum of two games.
        Instance(
            "product_game",
            SaddleForm(
                Bilinear(np.array([[3.0, -1.0], [-2.0, 4.0], [1.0, 1.0], [2.0, 2.0]])),
                Product((Simplex(2), Simplex(2))),
                Simplex(2),
            ),
            value=2.0,
        ),
    )


def _dual_functions() -> tuple[Instance, ...]:
    """Duals of Burg entropy problems over x >= 0, by rows on w: infinite outside their domain."""
    # w = (1/4, 3/4, 2) is nearest to (1, 1, 1) under w_1 + w_2 <= 1, w_1 <= 1/4 and w_3 >= 2, where
    # phi(w) = log(8/3). The first full Newton step from 0 leaves the domain, and the multiplier of
    # the first row shrinks again when the second row takes over: x = (1/3, 8/3, 1/2, 0).
    hard = EntropyDual(
        A=[[1, 1, 0], [1, 0, 0], [0, 0, -1], [0, 1, -1]],
        b=[1, 0.25, -2, 1],
        interior=[0.125, 0.25, 3],
    )
    # w >= 5/2 may be violated at the price |v|^2 / 2: w = 2, v = 1/2, phi(2) + 1/8 = 9/8 - log 2.
    soft = EntropyDual(A=[[-1]], b=[-2.5], weight=1.0)
    # w_1 + w_2 <= 1, yet w_1 >= 1 and w_2 >= 1: the sum of the rows reads 0 <= -1.
    contradictory = EntropyDual(A=[[1, 1], [-1, 0], [0, -1]], b=[1, -1, -1])
    return (
        Instance("orthant_rows", _over_orthant(hard), value=-math.log(8 / 3)),
        Instance("orthant_rows_with_slack", _over_orthant(soft), value=math.log(2) - 9 / 8),
        Instance("orthant_rows_contradict", _over_orthant(contradictory), Verdict.UNBOUNDED),
    )


def _over_orthant(dual: EntropyDual) -> SimplexForm:
    return SimplexForm(dual, BoxPlane(np.zeros(dual.size), np.full(dual.size, np.inf)))


def _quartic(x: FloatArray) -> LocalModel:
    square = float(x @ x)
    return LocalModel(
        square**2, 4 * square * x, lambda: 4 * square * np.eye(x.size) + 8 * np.outer(x, x)
    )


def _games() -> tuple[Instance, ...]:
    rock_paper_scissors = np.array([[0.0, 1.0, -1.0], [-1.0, 0.0, 1.0], [1.0, -1.0, 0.0]])
    mixed = np.array([[3.0, -1.0], [-2.0, 4.0]])
    return (
        Instance(
            "game_rock_paper_scissors",
            SaddleForm(Bilinear(rock_paper_scissors), Simplex(3), Simplex(3)),
            value=0.0,
        ),
        Instance("game_mixed", SaddleForm(Bilinear(mixed), Simplex(2), Simplex(2)), value=1.0),
        Instance(
            "game_with_saddle_entry",
            SaddleForm(Bilinear(np.array([[1.0, 2.0], [3.0, 4.0]])), Simplex(2), Simplex(2)),
            value=2.0,
        ),
        Instance("game_that_splits", _huber_and_modulus(), value=1.375),
    )


def _huber_and_modulus() -> SaddleForm:
    """A game that splits into two proximal steps, with the optimum 1.375 at x = 2.5.

        minimise  h(x - 3) + |x| / 2   over -5 <= x <= 5
        h(t) = max over |z| <= 1 of  z t - z^2 / 2

    h is Huber's function, and |x| / 2 = max over |w| <= 1/2 of w x.
    """
    coupling = Splitting(
        function=_game_value,
        gradient_x=_game_gradient_x,
        gradient_y=_game_gradient_y,
        inner=_huber_step,
        outer=_modulus_step,
        start=np.zeros(1),
        sigma=1.0,
        accuracy=FEW_ROUNDINGS,
    )
    return SaddleForm(coupling, _interval(5.0), Product((_interval(1.0), _interval(0.5))))


def _interval(radius: float) -> BoxPlane:
    return BoxPlane(np.array([-radius]), np.array([radius]))


def _game_value(x: FloatArray, y: FloatArray) -> float:
    z, w = y
    return float(z * (x[0] - 3) - z**2 / 2 + w * x[0])


def _game_gradient_x(x: FloatArray, y: FloatArray) -> FloatArray:
    return y[:1] + y[1:]


def _game_gradient_y(x: FloatArray, y: FloatArray) -> FloatArray:
    return np.array([x[0] - 3 - y[0], x[0]])


def _huber_step(v: FloatArray, sigma: float) -> ProximalStep:
    """The proximal step of h(x - 3) by its dual, a quadratic of z; then x = v - z / sigma."""
    return ProximalStep(SmoothFunction(1, partial(_huber_dual, v, sigma)), lambda z: v - z / sigma)


def _huber_dual(v: FloatArray, sigma: float, z: FloatArray) -> LocalModel:
    curvature = 1 + 1 / sigma
    value = curvature * z[0] ** 2 / 2 - z[0] * (v[0] - 3)
    gradient = curvature * z - (v - 3)
    return LocalModel(float(value), gradient, lambda: np.array([[curvature]]))


def _modulus_step(v: FloatArray, sigma: float) -> tuple[FloatArray, FloatArray]:
    """The proximal step of |x| / 2, which is soft thresholding, and its w."""
    w = np.clip(sigma * v, -0.5, 0.5)
    return v - w / sigma, w
