"""Support vector machines: brackets that hold from any point, three equivalent forms, LIBSVM."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import assume, given, strategies as st
from strategies import generators, gram, radial_gram, signs

import klopt
from klopt.errors import InvalidProblem
from klopt.kernels.gram import Gram
from klopt.model.backend import Settings, Stop
from klopt.model.forms import SimplexForm
from klopt.model.functions import KernelQuadratic
from klopt.model.problem import Bracket, Point
from klopt.model.sets import BoxPlane
from klopt.numerics.box_qp.active_set import Box, BoxQP, SignedGram, solve_box_qp
from klopt.problems._margin.forms import Units
from klopt.problems._margin.proof import best_shift
from klopt.problems.epsilon_margin import EpsilonMargin
from klopt.problems.soft_margin import SoftMargin
from klopt.solvers._native.svm_structure import SvmDual, as_svm
from klopt.solvers.libsvm import BACKEND as LIBSVM, _fit, _fit_in_public

Margin = SoftMargin | EpsilonMargin
Generator = np.random.Generator
penalties = st.sampled_from([1e-2, 1.0, 30.0])
both = pytest.mark.parametrize("kind", [SoftMargin, EpsilonMargin])


def make(
    kind: type[Margin], K: np.ndarray, rng: Generator, C: float = 1.0, epsilon: float = 0.1
) -> Margin:
    n = len(K)
    return (
        SoftMargin(K, signs(rng, n), C)
        if kind is SoftMargin
        else EpsilonMargin(K, rng.normal(size=n), C, epsilon)
    )


def remade(problem: Margin, K: np.ndarray, y: np.ndarray, C: float) -> Margin:
    return (
        SoftMargin(K, y, C)
        if isinstance(problem, SoftMargin)
        else EpsilonMargin(K, y, C, problem.epsilon)
    )


def coefficients(problem: Margin, x: np.ndarray) -> Point:
    return Point({"alpha" if isinstance(problem, SoftMargin) else "beta": x})


def optimum(problem: Margin) -> float:
    """By CVXPY and Clarabel, from the problem as it is written in its module."""
    n, R = problem.K.size, problem.K.factor()
    R = np.vstack([R, np.zeros(n)])  # CVXPY before 1.7 knows no matrix without rows
    x = cp.Variable(n)
    if isinstance(problem, SoftMargin):
        y, value, box = problem.y, cp.sum(x), [x >= 0, x <= problem.C]
        curve, plane = cp.sum_squares((R * y) @ x), y @ x == 0
    else:
        value, box = problem.y @ x - problem.epsilon * cp.norm1(x), [cp.abs(x) <= problem.C]
        curve, plane = cp.sum_squares(R @ x), cp.sum(x) == 0
    program = cp.Problem(cp.Maximize(value - curve / 2), [*box, plane])
    return float(
        program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    )


def exact(problem: Margin) -> Point:
    """The solution by the active-set method, through the first formulation."""
    formulation = problem.formulations()[0]
    form = formulation.build()
    assert isinstance(form, SimplexForm)
    f, domain = form.objective, form.domain
    assert isinstance(f, KernelQuadratic)
    assert isinstance(domain, BoxPlane)
    solved = solve_box_qp(BoxQP(SignedGram.of(f), f.linear, Box.of(domain)))
    return formulation.recover(solved.x, None)


def relative_width(bracket: Bracket) -> float:
    return bracket.gap / (1 + abs(bracket.upper))


# The bracket


@both
@given(
    rng=generators,
    n=st.integers(2, 12),
    C=penalties,
    size=st.sampled_from([0.0, 0.1, 1.0, 1e6, np.nan]),
)
def test_bracket_holds_the_optimum_from_any_point(
    kind: type[Margin], rng: Generator, n: int, C: float, size: float
) -> None:
    problem = make(kind, radial_gram(rng, n), rng, C)
    value = optimum(problem)
    bracket = problem.bracket(coefficients(problem, size * rng.normal(size=n)))
    slack = 1e-7 * (1 + abs(value))
    assert bracket.lower <= value + slack
    assert bracket.upper >= value - slack


@both
@given(rng=generators, n=st.integers(2, 40), rank=st.integers(1, 8), C=penalties)
def test_bracket_closes_at_the_optimum(
    kind: type[Margin], rng: Generator, n: int, rank: int, C: float
) -> None:
    problem = make(kind, gram(rng, n, rank), rng, C)
    bracket = problem.bracket(exact(problem))
    assert relative_width(bracket) <= 1e-9
    assert relative_width(problem.bracket(bracket.point)) <= 1e-9, "its own point is not certified"
    assert bracket.lower == pytest.approx(optimum(problem), rel=1e-6, abs=1e-6)


@both
@given(rng=generators, n=st.integers(2, 12))
def test_repaired_point_is_feasible_and_attains_the_lower_end(
    kind: type[Margin], rng: Generator, n: int
) -> None:
    problem = make(kind, radial_gram(rng, n), rng)
    bracket = problem.bracket(coefficients(problem, 3 * rng.normal(size=n)))
    if isinstance(problem, SoftMargin):
        a, z = bracket.point.alpha, problem.y * bracket.point.alpha
        assert ((a >= 0) & (a <= problem.C)).all()
        value = a.sum() - z @ problem.K.matrix @ z / 2
    else:
        z = bracket.point.beta
        assert (np.abs(z) <= problem.C).all()
        value = problem.y @ z - problem.epsilon * np.abs(z).sum() - z @ problem.K.matrix @ z / 2
    assert abs(z.sum()) <= 1e-14 * n
    assert bracket.lower == pytest.approx(value, rel=1e-9, abs=1e-12)


@given(rng=generators, n=st.integers(2, 20), count=st.integers(1, 19))
def test_best_shift_is_a_minimiser(rng: Generator, n: int, count: int) -> None:
    breaks, count = rng.normal(size=n).round(1), min(count, n - 1)

    def loss(b: float) -> float:
        return float(np.maximum(b - breaks, 0).sum() - count * b)

    assert loss(best_shift(breaks, count)) <= min(map(loss, breaks)) + 1e-12


@pytest.mark.parametrize("C", [1e4, 1e8])
def test_large_penalty_does_not_multiply_rounding(C: float) -> None:
    """Margins that fall short of 1 by 1e-8 cost C times that; a classifier stretched by as much costs nothing."""
    rng = np.random.default_rng(0)
    K, y = radial_gram(rng, 60, dimension=1), signs(rng, 60)
    K += 0.2 * np.eye(60)
    problem = SoftMargin(K, y, C)
    bracket = problem.bracket(
        Point({"alpha": exact(problem).alpha * (1 + 1e-8 * rng.normal(size=60))})
    )
    z = y * bracket.point.alpha
    plain = z @ K @ z / 2 + C * bracket.point.slack.sum()
    assert relative_width(bracket) <= 1e-6
    assert plain - bracket.lower > 100 * bracket.gap


@both
def test_normal_vector_saves_what_an_epigraph_loses(kind: type[Margin]) -> None:
    """An error of 1e-5 along the face costs 1e-10 in the dual value, but 1e-5 in the primal one."""
    rng = np.random.default_rng(0)
    problem = make(kind, radial_gram(rng, 60), rng)
    (name, x), *_ = exact(problem).primal.items()
    sign = problem.y if isinstance(problem, SoftMargin) else np.ones(60)
    free = (np.abs(x) > 1e-3) & (np.abs(x) < problem.C - 1e-3)
    noise = np.where(free, 1e-5 * rng.normal(size=60), 0.0)
    noise -= np.where(free, sign * (sign @ noise) / free.sum(), 0.0)
    rough = {name: x + noise}
    alone = problem.bracket(Point(rough))
    helped = problem.bracket(Point(rough, {"normal": problem.K.factor() @ (sign * x)}))
    assert relative_width(helped) <= 1e-8 < 1e-7 <= relative_width(alone)
    assert problem.bracket(helped.point).gap == pytest.approx(helped.gap, rel=1e-3)
    nonsense = problem.bracket(Point(rough, {"normal": rng.normal(size=len(problem.K.factor()))}))
    assert nonsense.upper == alone.upper, "a wrong vector must not help"


def test_a_kernel_below_zero_by_rounding_widens_the_bracket() -> None:
    rng = np.random.default_rng(0)
    K = Gram.of(gram(rng, 40, 3))
    # It has rank 3: the other eigenvalues are -1e-6, so that no better floor can be proven.
    below = Gram(K.matrix - 1e-6 * np.eye(40), K.scale, -1.1e-6, "")
    y = signs(rng, 40)
    alpha = exact(SoftMargin(K, y, 1.0))
    sharp, wide = (SoftMargin(kernel, y, 1.0).bracket(alpha) for kernel in (K, below))
    # Less curvature: the optimum is larger by at most 1e-6 ||a||^2 / 2.
    assert sharp.lower <= wide.upper
    assert wide.lower <= sharp.upper + 1e-6 * 40 / 2
    assert 10 * sharp.gap < wide.gap <= 1.1e-6 * (40 + 40), "phi/2 (||a||^2 + ||a* - a||^2)"


# Laws


@both
@given(rng=generators, n=st.integers(2, 12), C=penalties, unit=st.sampled_from([1e-10, 0.3, 1e10]))
def test_kernel_times_s_and_penalty_over_s_divide_the_value_by_s(
    kind: type[Margin], rng: Generator, n: int, C: float, unit: float
) -> None:
    problem = make(kind, radial_gram(rng, n), rng, C)
    scaled = remade(problem, problem.K.matrix * unit, problem.y, C / unit)
    one, other = problem.bracket(exact(problem)), scaled.bracket(exact(scaled))
    assert other.lower * unit == pytest.approx(one.lower, rel=1e-9, abs=1e-12)
    assert other.upper * unit == pytest.approx(one.upper, rel=1e-9, abs=1e-12)


@both
@given(rng=generators, n=st.integers(2, 12))
def test_order_of_points_and_names_of_classes_do_not_matter(
    kind: type[Margin], rng: Generator, n: int
) -> None:
    problem = make(kind, radial_gram(rng, n), rng)
    order = rng.permutation(n)
    value = problem.bracket(exact(problem)).lower
    for K, y in (
        (problem.K.matrix[np.ix_(order, order)], problem.y[order]),
        (problem.K.matrix, -problem.y),
    ):
        other = remade(problem, K, y, problem.C)
        assert other.bracket(exact(other)).lower == pytest.approx(value, rel=1e-9, abs=1e-12)


@given(rng=generators, shift=st.sampled_from([-3.0, 1e6]))
def test_targets_shifted_shift_the_bias_only(rng: Generator, shift: float) -> None:
    K, y = radial_gram(rng, 10), rng.normal(size=10)
    one, other = (EpsilonMargin(K, target, 1.0, 0.1) for target in (y, y + shift))
    left, right = one.bracket(exact(one)), other.bracket(exact(other))
    assert right.lower == pytest.approx(left.lower, rel=1e-8)
    assert right.point.bias - shift == pytest.approx(left.point.bias, abs=1e-8)


def test_bias_and_multipliers_are_those_of_scikit_learn() -> None:
    from sklearn.svm import SVC, SVR

    rng = np.random.default_rng(3)
    K, y, target = radial_gram(rng, 60), signs(rng, 60), rng.normal(size=60)
    soft, tube = SoftMargin(K, y, 2.0), EpsilonMargin(K, target, 2.0, 0.1)
    classifier = SVC(kernel="precomputed", C=2.0, tol=1e-8).fit(K, y)
    regression = SVR(kernel="precomputed", C=2.0, epsilon=0.1, tol=1e-8).fit(K, target)
    for problem, model, name in ((soft, classifier, "alpha"), (tube, regression, "beta")):
        point = problem.bracket(exact(problem)).point
        coefficient = np.zeros(60)
        coefficient[model.support_] = model.dual_coef_[0]
        mine = getattr(point, name) * (problem.y if name == "alpha" else 1.0)
        assert mine == pytest.approx(coefficient, abs=1e-5)
        assert point.bias == pytest.approx(model.intercept_[0], abs=1e-5)


# The forms


@both
@given(rng=generators, n=st.integers(2, 9), C=penalties)
def test_forms_need_what_they_declare_and_carry_points_there_and_back(
    kind: type[Margin], rng: Generator, n: int, C: float
) -> None:
    problem = make(kind, radial_gram(rng, n), rng, C)
    point = problem.bracket(exact(problem)).point
    for formulation in problem.formulations():
        form = formulation.build()
        assert form.needs == formulation.needs
        start = formulation.lift(point)
        back = formulation.recover(start.x, start.y)
        for name in back.primal:
            assert getattr(back, name) == pytest.approx(getattr(point, name), rel=1e-12, abs=1e-14)
        measured = form.measure(start.x)
        assert measured.primal <= 1e-12, "a lifted point is feasible"
        assert formulation.scale * measured.value == pytest.approx(
            problem.bracket(point).lower, rel=1e-8, abs=1e-10
        )


@both
@pytest.mark.parametrize("unit", [1e-10, 1.0, 1e10])
@pytest.mark.parametrize("backend", ["libsvm", "active_set", "clarabel", "highs", "ecos"])
def test_every_form_is_certified_in_any_units(
    kind: type[Margin], unit: float, backend: str
) -> None:
    rng = np.random.default_rng(1)
    problem = make(kind, radial_gram(rng, 30) * unit, rng, 3.0 / unit)
    tried = 0
    for route in klopt.plan(problem).routes:
        if route.backend.name == backend:
            result = klopt.solve(problem, backend, formulation=route.formulation.name)
            assert result.verdict is klopt.Verdict.OPTIMAL, result.explain()
            tried += 1
    assert tried


def test_forms_are_built_without_loss_of_digits() -> None:
    assert Units.of(C=5.0, kappa=3.0) == Units(0.25, 1.0)
    K = np.eye(3) * 7.3
    assert Units(0.25, 1.0).curvature(K)[0, 0] == 7.3 / 4
    assert Units(1.0, 1.0).curvature(K) is K, "no copy where none is needed"


def test_bias_is_the_multiplier_of_the_plane() -> None:
    rng = np.random.default_rng(0)
    for kind in (SoftMargin, EpsilonMargin):
        problem = make(kind, radial_gram(rng, 20), rng)
        formulation = problem.formulations()[1]
        from klopt.solvers.clarabel import BACKEND as CLARABEL

        answer = CLARABEL.run(formulation.build(), Settings(tol=1e-9))
        recovered = formulation.recover(answer.x, answer.y)
        assert recovered.bias == pytest.approx(problem.bracket(recovered).point.bias, abs=1e-4)


# Corners


def test_two_points_have_a_closed_form() -> None:
    """1'a - a'Qa/2 with a = (t, t) is 2t - t^2 d^2/2, d the distance of the points."""
    K = np.array([[2.0, 0.5], [0.5, 1.0]])
    for C in (0.1, np.inf):
        t = min(C, 2 / 2.0)
        bracket = SoftMargin(K, [1, -1], C).bracket(Point({"alpha": [t, t]}))
        assert bracket.lower == pytest.approx(2 * t - t * t)
        assert bracket.upper == pytest.approx(2 * t - t * t)
    assert EpsilonMargin(K, [1.0, -1.0], 10.0, 0.5).bracket(
        Point({"beta": [0.5, -0.5]})
    ).lower == pytest.approx(0.25)


def test_one_target_needs_no_coefficient() -> None:
    bracket = EpsilonMargin([[2.0]], [7.0], 1.0, 0.0).bracket(Point({"beta": [3.0]}))
    assert (bracket.lower, float(bracket.point.bias)) == (0.0, 7.0)
    assert 0.0 <= bracket.upper <= 1e-300


@both
def test_zero_kernel(kind: type[Margin]) -> None:
    rng = np.random.default_rng(0)
    problem = make(kind, np.zeros((6, 6)), rng)
    result = klopt.solve(problem)
    assert result.verdict is klopt.Verdict.OPTIMAL
    assert result.value == pytest.approx(optimum(problem), rel=1e-6)


@both
def test_equal_points(kind: type[Margin]) -> None:
    rng = np.random.default_rng(0)
    K = radial_gram(rng, 8)
    twice = np.tile(np.arange(8), 2)
    problem = make(kind, K[np.ix_(twice, twice)], rng)
    for formulation in problem.formulations():
        result = klopt.solve(problem, formulation=formulation.name)
        assert result.verdict is klopt.Verdict.OPTIMAL, result.explain()


def test_constant_targets_have_value_zero() -> None:
    K = radial_gram(np.random.default_rng(0), 9)
    for epsilon in (0.0, 0.1):
        result = klopt.solve(EpsilonMargin(K, np.full(9, 1e8), 1.0, epsilon))
        assert result.verdict is klopt.Verdict.OPTIMAL
        assert result.value == pytest.approx(0.0, abs=1e-6)
        assert result.point.bias == pytest.approx(1e8, abs=0.2)


def test_nearly_hard_margin_is_certified() -> None:
    rng = np.random.default_rng(0)
    problem = SoftMargin(radial_gram(rng, 100), signs(rng, 100), 1e8)
    result = klopt.solve(problem)
    assert result.verdict is klopt.Verdict.OPTIMAL, result.explain()
    assert np.abs(result.point.alpha).max() < 1e7, (
        "the penalty is never reached: the margin is hard"
    )


def test_hard_margin_is_half_the_squared_norm() -> None:
    rng = np.random.default_rng(0)
    y = signs(rng, 30)
    X = rng.normal(size=(30, 2)) + 6 * y[:, None]
    result = klopt.solve(SoftMargin(X @ X.T, y, np.inf))
    assert result.verdict is klopt.Verdict.OPTIMAL, result.explain()
    w = X.T @ (y * result.point.alpha)
    assert result.value == pytest.approx(w @ w / 2, rel=1e-5)
    assert (y * (X @ w + result.point.bias)).min() == pytest.approx(1.0, abs=1e-4)


def test_hard_margin_on_mixed_classes_is_infeasible() -> None:
    X = np.array([[0.0, 0.0], [1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    result = klopt.solve(SoftMargin(X @ X.T, [1, 1, -1, -1], np.inf))
    assert result.verdict is klopt.Verdict.INFEASIBLE, result.explain()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"C": 0.0}, "C is 0.0; expected a positive number"),
        ({"C": -1.0}, "C is -1.0; expected a positive number"),
        ({"C": np.nan}, "C is nan; expected a positive number"),
        ({"C": 1e30}, "write inf for the hard margin"),
        ({"y": [1, 1]}, "one class only"),
        ({"y": [0, 1]}, "labels must be the numbers -1 and"),
        ({"y": [1, -1, 1]}, "3 entries; expected 2"),
        ({"K": [[1, 2], [2, 1]]}, "not positive semidefinite"),
        ({"K": [[1, np.nan], [np.nan, 1]]}, "finite"),
    ],
)
def test_bad_classification_data_is_refused(arguments: dict, words: str) -> None:
    with pytest.raises(InvalidProblem, match=words):
        SoftMargin(**{"K": np.eye(2), "y": [1, -1], "C": 1.0, **arguments})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"C": np.inf}, "C is inf; expected a positive number"),
        ({"epsilon": -0.1}, "epsilon is -0.1; expected a nonnegative number"),
        ({"y": [1.0, np.inf]}, "y\\[1\\] is inf"),
        ({"y": [1.0]}, "1 entries; expected 2"),
    ],
)
def test_bad_regression_data_is_refused(arguments: dict, words: str) -> None:
    with pytest.raises(InvalidProblem, match=words):
        EpsilonMargin(**{"K": np.eye(2), "y": [1.0, -1.0], "C": 1.0, "epsilon": 0.1, **arguments})


def test_descriptions_name_the_sizes() -> None:
    K = np.eye(2)
    assert SoftMargin(K, [1, -1], 1).describe() == "SoftMargin(n=2, C=1)"
    assert EpsilonMargin(K, [1, -1], 10, 0.1).describe() == "EpsilonMargin(n=2, C=10, epsilon=0.1)"


# LIBSVM


def box_form(
    rng: Generator,
    n: int,
    upper: np.ndarray | None = None,
    gradient: float = 1.0,
    order: np.ndarray | None = None,
) -> SimplexForm:
    sign = signs(rng, n)
    objective = KernelQuadratic(radial_gram(rng, n), sign, np.full(n, -gradient), order)
    return SimplexForm(
        objective, BoxPlane(np.zeros(n), np.full(n, 2.0) if upper is None else upper, 3.0 * sign)
    )


@given(rng=generators, gradient=st.sampled_from([1.0, 1e-6, 250.0]))
def test_libsvm_takes_a_box_for_each_point_any_gradient_and_any_order(
    rng: Generator, gradient: float
) -> None:
    n = 25
    upper = gradient * rng.choice([0.0, 0.5, 3.0], n)
    form = box_form(rng, n, upper, gradient, rng.permutation(n))
    assume(np.ptp(form.objective.sign[upper > 0]) > 0)
    answer = LIBSVM.run(form, Settings(tol=1e-9))
    assert answer.stop is Stop.OPTIMAL
    assert form.domain.violation(answer.x) <= 1e-14 * (1 + gradient)
    value = form.objective.value(answer.x)
    assert form.lower_bound(answer.x) == pytest.approx(value, rel=1e-8, abs=1e-8 * gradient**2)


@given(rng=generators, epsilon=st.sampled_from([0.0, 0.1]), unit=st.sampled_from([1.0, 1e-5, 1e5]))
def test_libsvm_takes_regression_with_its_pairs_in_any_order(
    rng: Generator, epsilon: float, unit: float
) -> None:
    n, order = 15, rng.permutation(30)
    sign, point = np.repeat([1.0, -1.0], n)[order], np.tile(np.arange(n), 2)[order]
    linear = unit * (epsilon - sign * rng.normal(size=n)[point])
    objective = KernelQuadratic(radial_gram(rng, n), sign, linear, point)
    form = SimplexForm(
        objective, BoxPlane(np.zeros(30), unit * rng.uniform(0.5, 2.0, n)[point], sign)
    )
    answer = LIBSVM.run(form, Settings(tol=1e-9))
    assert answer.stop is Stop.OPTIMAL
    value = objective.value(answer.x)
    assert form.lower_bound(answer.x) == pytest.approx(value, rel=1e-8, abs=1e-8 * unit**2)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"upper": np.full(4, np.inf)}, "finite C"),
        ({"lower": np.full(4, -1.0)}, "0 <= x <= C"),
        ({"normal": np.ones(4)}, "normal a multiple"),
        ({"normal": None}, "plane through the origin"),
        ({"linear": [-1.0, -1.0, -1.0, -2.0]}, "same negative gradient"),
        ({"linear": np.ones(4)}, "same negative gradient"),
        ({"sign": np.ones(4), "normal": np.ones(4)}, "points of both signs"),
        ({"upper": [1.0, 0.0, 1.0, 0.0]}, "points of both signs"),
        ({"sign": [1.0, -1.0, 2.0, -1.0]}, "signs of -1 and"),
        ({"point": [0, 0, 1, 2]}, "one variable a point"),
    ],
)
def test_libsvm_says_why_it_does_not_take_a_form(change: dict, words: str) -> None:
    parts = {
        "sign": np.array([1.0, -1.0, 1.0, -1.0]),
        "linear": np.full(4, -1.0),
        "point": None,
        "lower": np.zeros(4),
        "upper": np.ones(4),
        "normal": np.array([1.0, -1.0, 1.0, -1.0]),
        **change,
    }
    objective = KernelQuadratic(np.eye(4), parts["sign"], parts["linear"], parts["point"])
    form = SimplexForm(objective, BoxPlane(parts["lower"], parts["upper"], parts["normal"]))
    answer = LIBSVM.run(form, Settings())
    assert answer.stop is Stop.REJECTED
    assert words in answer.native


def test_libsvm_keeps_its_iteration_limit() -> None:
    form = box_form(np.random.default_rng(0), 200)
    answer = LIBSVM.run(form, Settings(max_iter=3))
    assert answer.stop is Stop.ITERATION_LIMIT
    assert answer.iterations == 3
    assert form.domain.violation(answer.x) <= 1e-12


def test_the_inner_call_and_the_public_one_agree() -> None:
    machine = as_svm(box_form(np.random.default_rng(0), 40))
    assert isinstance(machine, SvmDual)
    inner = _fit(machine, 1e-7, 10_000, {})
    options = {"C": 2.0, "tol": 1e-7, "max_iter": 10_000, "shrinking": 1, "cache_size": 200.0}
    outer = _fit_in_public(
        machine, np.where(machine.target > 0, 1.0, 0.0), np.ones(40), 0.0, options
    )
    assert np.array_equal(inner[0], outer[0])
    assert np.abs(inner[1]) == pytest.approx(np.abs(outer[1]))
    assert inner[2:] == outer[2:]
