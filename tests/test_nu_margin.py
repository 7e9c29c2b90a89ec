"""The nu-SVM: a bracket that holds from any point, three equivalent forms, and what nu means."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st
from strategies import generators, gram, radial_gram, signs

import klopt
from klopt.errors import InvalidProblem
from klopt.model.problem import Point
from klopt.problems.nu_margin import NuMargin
from klopt.problems.soft_margin import SoftMargin

Generator = np.random.Generator
shares = st.sampled_from([0.05, 0.3, 0.7, 1.0])
FORMS = ("dual QP", "SOCP epigraph", "two capped simplices")


def largest(y: np.ndarray) -> float:
    return 2 * min(np.sum(y > 0), np.sum(y < 0)) / y.size


def make(rng: Generator, n: int, share: float, rank: int | None = None) -> NuMargin:
    y = signs(rng, n)
    return NuMargin(
        radial_gram(rng, n) if rank is None else gram(rng, n, rank), y, share * largest(y)
    )


def value(problem: NuMargin, a: np.ndarray) -> float:
    z = problem.y * a
    return float(z @ problem.K.matrix @ z) / 2


@st.composite
def problems(draw: st.DrawFn) -> NuMargin:
    rng, n = draw(generators), draw(st.integers(2, 25))
    return make(rng, n, draw(shares), draw(st.sampled_from([None, 1, 3])))


@given(problems())
def test_every_form_is_certified_and_all_agree(problem) -> None:
    results = [klopt.solve(problem, formulation=name, tol=1e-8).require() for name in FORMS]
    assert (
        max(result.lower for result in results) <= min(result.upper for result in results) + 1e-12
    )


@given(problems(), generators, st.sampled_from([0.0, 1e-8, 1e-3, 1.0, 1e6]))
def test_the_bracket_holds_from_any_point(problem, rng, noise) -> None:
    best = klopt.solve(problem, tol=1e-9).require()
    rough = Point(
        {"alpha": best.point.alpha + noise * rng.normal(size=problem.K.size) / problem.K.size}
    )
    bracket = problem.bracket(rough)
    assert bracket.lower <= best.upper + 1e-15
    assert bracket.upper >= best.lower - 1e-15
    a = bracket.point.alpha
    assert a.min() >= 0
    assert a.max() <= 1 / problem.K.size
    assert abs(problem.y @ a) <= 1e-14
    assert a.sum() == pytest.approx(problem.nu, rel=1e-14)
    assert value(problem, a) <= bracket.upper


@given(problems(), generators)
def test_any_normal_vector_bounds_the_optimum(problem, rng) -> None:
    best = klopt.solve(problem, tol=1e-9).require()
    normal = problem.K.factor() @ (problem.y * best.point.alpha)
    shaken = normal + 0.1 * rng.normal(size=normal.size) * np.abs(normal).max()
    for w in (normal, shaken, 1e3 * shaken):
        flat = np.full(problem.K.size, problem.nu / problem.K.size)
        assert problem.bracket(Point({"alpha": flat}, {"normal": w})).lower <= best.upper + 1e-15
    tight = problem.bracket(Point({"alpha": best.point.alpha}, {"normal": normal}))
    assert tight.gap <= 1e-9


@pytest.mark.parametrize("n", [2, 5, 40])
@given(generators, shares)
def test_scikit_learn_finds_the_same_classifier(n, rng, share) -> None:
    from sklearn.svm import NuSVC

    problem = make(rng, n, share)
    result = klopt.solve(problem, tol=1e-9).require()
    machine = NuSVC(nu=problem.nu * (1 - 1e-12), kernel="precomputed", tol=1e-8).fit(
        problem.K.matrix, problem.y
    )
    a = np.zeros(n)
    # LIBSVM divides by the margin rho: what is left is the direction.
    a[machine.support_] = np.abs(machine.dual_coef_[0])
    a *= problem.nu / a.sum()
    assert value(problem, a) == pytest.approx(result.value, rel=1e-5, abs=1e-9)
    assert problem.bracket(Point({"alpha": a})).gap <= 1e-6
    # rho is determined where each class has a point between its bounds; else by an interval.
    alpha = result.point.alpha
    free = (alpha > 1e-6 / n) & (alpha < (1 - 1e-6) / n)
    assume(free[problem.y > 0].any() and free[problem.y < 0].any())
    assume(result.point.rho > 1e-3)
    ours = problem.K.matrix @ (problem.y * result.point.alpha) / result.point.rho
    theirs = machine.decision_function(problem.K.matrix) - machine.intercept_
    np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-3)


@given(generators, st.integers(6, 40), shares)
def test_nu_bounds_margin_errors_from_above_and_support_vectors_from_below(rng, n, share) -> None:
    problem = make(rng, n, share)
    point = klopt.solve(problem, tol=1e-10).require().point
    f = problem.K.matrix @ (problem.y * point.alpha)
    margins, slack = problem.y * (f + point.bias), 1e-6 * np.abs(f).max()
    assert np.mean(margins < point.rho - slack) <= problem.nu + 1e-9
    assert np.mean(point.alpha > 1e-9 / n) >= problem.nu - 1e-9


@given(generators, st.integers(6, 30))
def test_it_is_the_soft_margin_with_penalty_one_over_n_rho(rng, n) -> None:
    problem = make(rng, n, 0.5)
    point = klopt.solve(problem, tol=1e-10).require().point
    rho = float(point.rho)
    assume(rho > 1e-3)
    bracket = SoftMargin(problem.K, problem.y, 1 / (n * rho)).bracket(
        Point({"alpha": point.alpha / rho})
    )
    assert bracket.gap <= 1e-6 * (1 + abs(bracket.upper))


@given(generators, st.integers(2, 12))
def test_the_largest_nu_is_feasible_and_anything_above_is_refused(rng, n) -> None:
    y = signs(rng, n)
    most = largest(y)
    K = radial_gram(rng, n)
    alpha = klopt.solve(NuMargin(K, y, most)).require().point.alpha
    assert alpha.sum() == pytest.approx(most)
    with pytest.raises(InvalidProblem, match=f"at most 2 min / n = {most}"):
        NuMargin(K, y, most * (1 + 1e-9))


def test_the_units_of_the_kernel_do_not_matter() -> None:
    rng = np.random.default_rng(3)
    problem = make(rng, 30, 0.5)
    plain = klopt.solve(problem).require()
    for scale in (1e10, 1e-10):
        scaled = klopt.solve(NuMargin(scale * problem.K.matrix, problem.y, problem.nu)).require()
        np.testing.assert_allclose(scaled.point.alpha, plain.point.alpha, atol=1e-6)
        assert scaled.value == pytest.approx(scale * plain.value, rel=1e-6)


def test_two_copies_with_both_labels_have_no_margin() -> None:
    K = np.ones((4, 4))
    result = klopt.solve(NuMargin(K, [1, -1, 1, -1], 0.5)).require()
    assert result.value == pytest.approx(0.0, abs=1e-12)
    assert result.point.rho == pytest.approx(0.0, abs=1e-9)
