"""A user's own function over a simple set and a user's own saddle point: every formulation, one bracket."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, strategies as st

from klopt.engine.pipeline import solve
from klopt.engine.planner import plan
from klopt.errors import InvalidProblem
from klopt.model.cones import svec
from klopt.model.features import Feature
from klopt.model.forms import ConeForm
from klopt.model.functions import (
    Bilinear,
    KernelQuadratic,
    Linear,
    LocalModel,
    Oracle,
    Quadratic,
    SaddleOracle,
    SmoothFunction,
)
from klopt.model.problem import Point, Problem
from klopt.model.sets import BoxPlane, OrderedSimplex, Product, SimpleSet, Simplex, Spectrahedron
from klopt.problems.saddle_point import SaddlePoint
from klopt.problems.simplex_program import SimplexProgram
from klopt.programs.polyhedra import is_polyhedral, rows_of
from klopt.proof.certificate import Verdict

seeds = st.integers(0, 2**32 - 1)


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def polyhedra(n: int, seed: int) -> list[SimpleSet]:
    box = BoxPlane(-np.ones(n), np.ones(n), rng(seed).choice([-1.0, 1.0], n), 0.0)
    half = Product((Simplex(n, 2.0), BoxPlane(np.zeros(2), [1.0, 3.0]), OrderedSimplex(3, 1.5)))
    return [Simplex(n, 3.0), OrderedSimplex(n, 1.2), box, half]


# --- the rows of a set


@given(seed=seeds, n=st.integers(1, 6))
def test_a_point_satisfies_the_rows_exactly_where_it_is_in_the_set(seed: int, n: int) -> None:
    for domain in polyhedra(n, seed):
        (A, b), (B, c) = rows_of(domain)
        for x in (
            domain.project(rng(seed).normal(size=domain.size)),
            rng(seed + 1).normal(size=domain.size),
        ):
            off = max(np.abs(A @ x - b).max(initial=0.0), (B @ x - c).max(initial=0.0))
            assert off == pytest.approx(domain.violation(x), abs=1e-12)


def test_infinite_bounds_are_no_rows_and_a_spectrahedron_has_none() -> None:
    (A, _), (B, c) = rows_of(BoxPlane([0.0, -np.inf, -np.inf], [np.inf, 1.0, np.inf]))
    assert A.shape == (0, 3)
    assert B.toarray().tolist() == [[0, 1, 0], [-1, 0, 0]]
    assert c.tolist() == [1, 0]
    assert not is_polyhedral(Product((Simplex(2), Spectrahedron(2))))


# --- functions over simple sets


@given(seed=seeds, n=st.integers(1, 6))
def test_quadratic_program_and_form_over_the_set_bracket_the_same_optimum(
    seed: int, n: int
) -> None:
    for domain in polyhedra(n, seed):
        B = rng(seed).normal(size=(domain.size, domain.size))
        problem = SimplexProgram.of(
            Quadratic(B @ B.T, rng(seed + 1).normal(size=domain.size)), domain
        )
        agree(problem, [("nesterov", "over the set"), ("highs", "QP")])


@given(seed=seeds, n=st.integers(1, 6))
def test_linear_program_and_linear_minimiser_bracket_the_same_optimum(seed: int, n: int) -> None:
    for domain in polyhedra(n, seed):
        problem = SimplexProgram.of(Linear(rng(seed).normal(size=domain.size)), domain)
        agree(problem, [("explicit", "over the set"), ("highs", "LP")])


def agree(problem: Problem, routes: list[tuple[str, str]]) -> None:
    intervals = []
    for backend, formulation in routes:
        result = solve(problem, backend, formulation=formulation)
        assert result.verdict is Verdict.OPTIMAL, result.explain()
        intervals.append((result.lower, result.upper))
    assert max(lower for lower, _ in intervals) <= min(upper for _, upper in intervals)


def test_forms_say_what_they_need_before_they_are_built() -> None:
    kernel = KernelQuadratic(np.eye(2), np.array([1.0, -1.0]), np.zeros(2))
    box = BoxPlane(np.zeros(2), np.ones(2), [1.0, -1.0])
    programs: list[Problem] = [
        SimplexProgram.of(kernel, box),
        SimplexProgram.of(Linear(svec(np.eye(3))), Spectrahedron(3)),
        SimplexProgram(lambda x: float(x @ x), lambda x: 2 * x, OrderedSimplex(3)),
        SimplexProgram(np.max, lambda x: np.eye(3)[np.argmax(x)], Simplex(3), smooth=False),
        SaddlePoint.game(np.eye(3)),
        SaddlePoint.game(np.eye(2), box, Simplex(2)),
    ]
    for program in programs:
        for formulation in program.formulations():
            assert formulation.build().needs == formulation.needs
    assert programs[0].formulations()[0].needs == {Feature.SIMPLEX, Feature.MARGIN, Feature.BOX}
    assert programs[0].formulations()[1].needs == {Feature.CONE, Feature.QUADRATIC}
    assert len(programs[1].formulations()) == 1


def test_smallest_eigenvalue_is_a_program_over_the_spectrahedron() -> None:
    S = np.array([[2.0, 1.0], [1.0, 2.0]])
    result = solve(SimplexProgram.of(Linear(svec(S)), Spectrahedron(2)))
    assert result.verdict is Verdict.OPTIMAL
    assert result.value == pytest.approx(1.0, abs=1e-9)
    assert result.route.backend.name == "explicit"


def test_maximum_entropy_is_certified_through_its_oracle() -> None:
    c = np.array([0.3, 1.0, 2.0])
    problem = SimplexProgram(
        lambda x: float(x @ np.log(np.maximum(x, 1e-300)) + c @ x),
        lambda x: np.log(np.maximum(x, 1e-300)) + 1 + c,
        Simplex(3),
        accuracy=1e-14,
    )
    for backend in ("nesterov", "mirror_descent"):
        result = solve(problem, backend)
        assert result.verdict is Verdict.OPTIMAL, result.explain()
        assert "as stated" in result.certificate.upper_by
        assert result.lower <= -np.log(np.exp(-c).sum()) <= result.upper


def test_a_function_that_states_no_accuracy_proves_nothing() -> None:
    """Its floats may be off by anything: what follows from them is an estimate."""
    c = np.array([0.25, 0.5])
    program = SimplexProgram(lambda x: float(x @ x + c @ x), lambda x: 2 * x + c, Simplex(2))
    game = SaddlePoint(
        lambda x, y: float(x @ y), lambda x, y: y, lambda x, y: x, Simplex(2), Simplex(2)
    )
    for problem in (program, game):
        assert not problem.provable
        result = solve(problem)
        assert result.verdict is Verdict.ESTIMATED
        assert (result.lower, result.upper) == (-np.inf, np.inf)
        assert "accuracy" in result.explain()
    with pytest.raises(InvalidProblem, match="accuracy is -1"):
        SimplexProgram(lambda x: 0.0, lambda x: x, Simplex(2), accuracy=-1)
    with pytest.raises(InvalidProblem, match="accuracy is 'high'"):
        Oracle(2, lambda x: 0.0, lambda x: x, accuracy="high")  # type: ignore[arg-type]


def test_an_end_is_as_wide_as_the_stated_accuracy() -> None:
    """f is off by up to 1e-4 (1 + |f|): the interval holds whichever way it is."""
    for error in (-1e-4, 1e-4):
        program = SimplexProgram(
            lambda x, error=error: float(x @ x) * (1 + error),  # type: ignore[misc]
            lambda x: 2 * x,
            Simplex(2),
            accuracy=1e-4,
        )
        bracket = program.bracket(Point({"x": [0.5, 0.5]}))
        assert bracket.lower <= 0.5 <= bracket.upper
        assert bracket.gap < 1e-3


def test_a_nonsmooth_function_is_feasible_and_its_maximum_form_optimal() -> None:
    A = rng(0).normal(size=(4, 3))
    kink = SimplexProgram(
        lambda x: (A @ x).max(),
        lambda x: A[np.argmax(A @ x)],
        Simplex(3),
        smooth=False,
        accuracy=1e-14,
    )
    coarse = solve(kink, tol=1e-2)
    assert coarse.verdict in (Verdict.FEASIBLE, Verdict.OPTIMAL)
    exact = solve(SaddlePoint.game(A.T))
    assert exact.verdict is Verdict.OPTIMAL
    assert coarse.lower <= exact.upper
    assert exact.lower <= coarse.upper <= exact.upper + 2e-2


@given(seed=seeds, noise=st.sampled_from([0.0, 1e-3, 10.0]))
def test_bracket_of_an_inaccurate_point_holds_the_optimum(seed: int, noise: float) -> None:
    problem = SimplexProgram.sample(rng(seed), 5)
    best = solve(problem, "nesterov")
    assert best.point is not None
    bracket = problem.bracket(Point({"x": best.point.x + noise * rng(seed).normal(size=5)}))
    assert bracket.lower <= best.upper
    assert bracket.upper >= best.lower
    assert problem.domain.violation(bracket.point.x) < 1e-12


def test_an_unbounded_set_leaves_the_lower_side_open() -> None:
    free = BoxPlane([-np.inf], [np.inf])
    bracket = SimplexProgram.of(Linear([1.0]), free).bracket(Point({"x": [0.0]}))
    assert bracket.lower == -np.inf
    assert "unbounded" in bracket.note


def test_a_quadratic_that_is_not_convex_is_refused() -> None:
    with pytest.raises(InvalidProblem, match="H is not positive semidefinite"):
        SimplexProgram.of(Quadratic([[1.0, 2.0], [2.0, 1.0]], np.zeros(2)), Simplex(2))
    with pytest.raises(InvalidProblem, match="K is not positive semidefinite"):
        SimplexProgram.of(KernelQuadratic(-np.eye(2), np.ones(2), np.zeros(2)), Simplex(2))


def test_a_function_that_does_not_fit_its_set_is_refused() -> None:
    with pytest.raises(InvalidProblem, match="takes 3 entries, the set has 2"):
        SimplexProgram.of(Linear([1.0, 2.0, 3.0]), Simplex(2))
    with pytest.raises(InvalidProblem, match=r"gradient returned shape \(3,\)"):
        SimplexProgram(lambda x: 0.0, lambda x: np.zeros(3), Simplex(2))
    with pytest.raises(InvalidProblem, match="value must return one number"):
        SimplexProgram(lambda x: x, lambda x: x, Simplex(2))
    with pytest.raises(InvalidProblem, match="domain is a int"):
        SimplexProgram(lambda x: 0.0, lambda x: x, 3)  # type: ignore[arg-type]
    with pytest.raises(InvalidProblem, match=r"SimplexProgram\.of"):
        SimplexProgram(Linear([1.0]), Linear([1.0]), Simplex(1))  # type: ignore[arg-type]
    with pytest.raises(InvalidProblem, match="lipschitz is -1"):
        SimplexProgram(lambda x: 0.0, lambda x: x, Simplex(2), lipschitz=-1)
    with pytest.raises(
        InvalidProblem, match=r"objective is a function; expected an object such as klopt\.Linear"
    ):
        SimplexProgram.of(lambda x: 0.0, Simplex(3))  # type: ignore[arg-type]


@pytest.mark.parametrize("smooth", ["False", None, 1, np.array([True, False])])
def test_smooth_is_true_or_false(smooth: object) -> None:
    with pytest.raises(InvalidProblem, match=r"^smooth is .*; expected True or False$"):
        SimplexProgram(lambda x: 0.0, lambda x: x, Simplex(2), smooth=smooth)  # type: ignore[arg-type]


# --- saddle points


def test_rock_paper_scissors_has_value_zero() -> None:
    game = SaddlePoint.game([[0, 1, -1], [-1, 0, 1], [1, -1, 0]])
    for route in plan(game).routes:
        result = solve(game, route.backend, formulation=route.formulation.name)
        assert result.verdict is Verdict.OPTIMAL, result.explain()
        assert result.lower <= 0 <= result.upper


@given(
    seed=seeds,
    rows=st.integers(1, 6),
    columns=st.integers(1, 6),
    totals=st.sampled_from([(1, 1), (20, 0.1)]),
)
def test_multipliers_of_the_row_players_lp_are_the_column_players_strategy(
    seed: int, rows: int, columns: int, totals: tuple[float, float]
) -> None:
    phi = Bilinear(
        rng(seed).normal(size=(rows, columns)), rng(seed + 1).normal(size=rows), np.ones(columns)
    )
    game = SaddlePoint.game(phi, Simplex(rows, totals[0]), Simplex(columns, totals[1]))
    agree(game, [("highs", "row player's LP"), ("mirror_prox", "saddle point")])


@given(seed=seeds, size=st.integers(1, 6))
def test_an_equilibrium_lifts_to_an_optimal_pair_of_the_lp(seed: int, size: int) -> None:
    game = SaddlePoint.sample(rng(seed), size)
    result = solve(game, "mirror_prox", tol=1e-9)
    assert result.point is not None
    lp = game.formulations()[1]
    assert lp.lift is not None
    start = lp.lift(result.point)
    form = lp.build()
    assert isinstance(form, ConeForm)
    assert form.measure(start.x, start.y).worst <= 1e-8
    back = lp.recover(start.x, start.y)
    np.testing.assert_array_equal(back.x, result.point.x)
    np.testing.assert_array_equal(back.y, result.point.y)


def test_transposing_a_game_changes_the_sign_of_its_value() -> None:
    M = rng(1).normal(size=(4, 6))
    one, other = solve(SaddlePoint.game(M)), solve(SaddlePoint.game(-M.T))
    assert one.lower <= -other.lower
    assert -other.upper <= one.upper


def test_a_saddle_by_oracle_is_certified() -> None:
    A = rng(0).normal(size=(3, 4))
    problem = SaddlePoint(
        lambda x, y: float(x @ x + x @ A @ y - y @ y),
        lambda x, y: 2 * x + A @ y,
        lambda x, y: x @ A - 2 * y,
        OrderedSimplex(3),
        BoxPlane(np.zeros(4), np.ones(4)),
        accuracy=1e-14,
    )
    result = solve(problem)
    assert result.verdict is Verdict.OPTIMAL, result.explain()
    assert len(problem.formulations()) == 1


@given(seed=seeds, noise=st.sampled_from([1e-6, 1.0, 100.0]))
def test_bracket_of_an_inaccurate_pair_holds_the_value(seed: int, noise: float) -> None:
    game = SaddlePoint.sample(rng(seed), 4)
    value = solve(game)
    shaken = Point(
        {"x": noise * rng(seed).normal(size=4)}, {"y": noise * rng(seed + 1).normal(size=5)}
    )
    bracket = game.bracket(shaken)
    assert bracket.lower <= value.upper
    assert bracket.upper >= value.lower


def test_a_saddle_that_does_not_fit_its_sets_is_refused() -> None:
    with pytest.raises(InvalidProblem, match="the sets ask for"):
        SaddlePoint.game(np.eye(2), Simplex(3))
    with pytest.raises(InvalidProblem, match=r"gradient_y returned shape \(2,\)"):
        SaddlePoint(lambda x, y: 0.0, lambda x, y: x, lambda x, y: x, Simplex(2), Simplex(3))
    with pytest.raises(InvalidProblem, match=r"SaddlePoint\.game"):
        SaddlePoint(np.eye(2), np.eye(2), np.eye(2), Simplex(2), Simplex(2))  # type: ignore[arg-type]
    with pytest.raises(InvalidProblem, match=r"M\[0, 1\] is masked"):
        SaddlePoint.game(np.ma.masked_array(np.eye(2), [[False, True], [False, False]]))
    with pytest.raises(InvalidProblem, match="right is a NoneType"):
        SaddlePoint(lambda x, y: 0.0, lambda x, y: x, lambda x, y: y, Simplex(2), None)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [SimplexProgram, SaddlePoint])
def test_samples_are_described_in_a_line_and_travel_to_other_processes(kind: type[Problem]) -> None:
    problem = kind.sample(rng(0), 3)
    assert "\n" not in problem.describe()
    again = pickle.loads(pickle.dumps(problem))
    assert solve(again).value == solve(problem).value


def test_nothing_that_a_function_keeps_can_be_written() -> None:
    """A backend that works in place on what it is given cannot change what the proof reads."""
    x = np.array([1.0, 2.0])
    hessian = 2 * np.eye(2)
    own = np.array([1, 0])
    curved = SmoothFunction(
        2, lambda x: LocalModel(float(x @ x), 2 * x, lambda: hessian, below=lambda: hessian)
    )
    handed_out = [
        Linear(x).gradient(x),
        Oracle(2, lambda z: float(x @ z), lambda _: x).gradient(x),
        SaddleOracle(lambda a, b: 0.0, lambda a, b: x, lambda a, b: x).gradients(x, x)[0],
        KernelQuadratic(np.eye(2), [1.0, 1.0], x, own).point,
        KernelQuadratic(np.eye(2), [1.0, 1.0], x).point,
        curved.gradient(x),
        curved.near(x).curvature(),
        curved.near(x).below(),  # type: ignore[misc]
    ]
    assert not any(array.flags.writeable for array in handed_out)
    assert x.flags.writeable
    assert own.flags.writeable


def test_an_oracle_object_keeps_its_constant() -> None:
    oracle = Oracle(2, lambda x: float(x @ x), lambda x: 2 * x, True, 2.0)
    assert SimplexProgram.of(oracle, Simplex(2)).lipschitz == 2.0


def test_a_function_that_contradicts_its_gradient_is_never_optimal() -> None:
    """Convexity and the gradient are the user's word; klopt looks at the minimiser of a tangent."""
    costs = np.array([1.0, 2.0, 3.0])
    M = np.diag([1.0, 5.0])
    for problem in (
        SimplexProgram(lambda x: float(costs @ x), lambda x: 0 * x, Simplex(3)),
        SimplexProgram(lambda x: -float(x @ x), lambda x: -2 * x, Simplex(3)),
        SaddlePoint(
            lambda x, y: float(x @ M @ y),
            lambda x, y: 0 * x,
            lambda x, y: 0 * y,
            Simplex(2),
            Simplex(2),
        ),
    ):
        result = solve(problem, time_limit=5.0)
        assert result.verdict in (Verdict.FEASIBLE, Verdict.UNPROVEN)
        assert "its own tangent" in result.explain()


def test_a_function_that_is_infinite_at_the_edge_is_still_solved() -> None:
    def value(x: np.ndarray) -> float:
        return -sum(math.log(part) for part in x.tolist())  # raises at 0

    result = solve(SimplexProgram(value, lambda x: -1 / x, Simplex(3), accuracy=1e-14))
    assert result.verdict is Verdict.OPTIMAL
    assert result.value == pytest.approx(3 * math.log(3))
