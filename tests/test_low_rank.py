"""The low-rank solver: closed forms of cuts and theta functions, and its derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import klopt
from klopt.engine.registry import backend_named
from klopt.model.backend import Settings
from klopt.model.cones import Cones, smat, svec
from klopt.model.forms import ConeForm
from klopt.problems import SDP
from klopt.solvers._low_rank.minimiser import AugmentedLagrangian, Factors, on_spheres
from klopt.solvers._low_rank.multipliers import lowest_eigenvalue
from klopt.solvers._low_rank.orientation import as_inequality
from klopt.solvers._low_rank.program import FactorProgram


def unit(i: int, n: int) -> sparse.csc_array:
    return sparse.csc_array(([1.0], ([i], [i])), shape=(n, n))


def cut(W: sparse.csr_array, over: str = "x") -> SDP:
    """The semidefinite bound of the maximum cut of a graph, as an inequality or over X."""
    n = W.shape[0]
    L = sparse.csc_array(sparse.diags_array(np.asarray(W.sum(axis=1)).ravel()) - W)
    units = [unit(i, n) for i in range(n)]
    if over == "X":
        return SDP.standard(L / 4, units, np.ones(n), sense="max")
    return SDP(np.ones(n), [L / 4, *units])


def cycle(n: int) -> sparse.csr_array:
    ahead = np.roll(np.eye(n), 1, axis=1)
    return sparse.csr_array(ahead + ahead.T)


def cut_of_cycle(n: int) -> float:
    """The eigenvalue bound, which the semidefinite one meets on graphs like this."""
    return n * (1 + np.cos(np.pi / n)) / 2


@pytest.mark.parametrize("n", [5, 41, 101])
@pytest.mark.parametrize("over", ["x", "X"])
def test_the_bound_of_an_odd_cycle_is_proven(n, over) -> None:
    result = klopt.solve(cut(cycle(n), over), "low_rank_sdp")
    assert result.verdict.name == "OPTIMAL"
    assert result.attempts[0].route.backend.name == "low_rank_sdp"
    assert result.lower - 1e-12 * n <= cut_of_cycle(n) <= result.upper + 1e-12 * n


@pytest.mark.parametrize("formulation", ["LMI", "standard form"])
def test_both_formulations_are_taken_as_the_same_program(formulation) -> None:
    n = 30
    complete = sparse.csr_array(np.ones((n, n)) - np.eye(n))
    result = klopt.solve(cut(complete), "low_rank_sdp", formulation=formulation)
    assert result.verdict.name == "OPTIMAL"
    assert result.lower <= n * n / 4 <= result.upper, "a regular simplex of unit vectors"


def test_the_theta_function_of_the_pentagon_is_the_root_of_five() -> None:
    edges = [(i, (i + 1) % 5) for i in range(5)]
    matrices = [np.eye(5)]
    for i, j in edges:
        E = np.zeros((5, 5))
        E[i, j] = E[j, i] = 1.0
        matrices.append(E)
    theta = SDP([1.0] + [0.0] * 5, [np.ones((5, 5)), *matrices])
    result = klopt.solve(theta, "low_rank_sdp")
    assert result.verdict.name == "OPTIMAL"
    assert result.lower <= np.sqrt(5) <= result.upper


def test_inequalities_over_a_matrix_have_slacks() -> None:
    # The largest X_01 with X_00, X_11 <= 1 and X psd is 1.
    form = ConeForm(
        [0.0, -np.sqrt(0.5), 0.0],
        np.vstack([[[1.0, 0, 0], [0, 0, 2.0]], -np.eye(3)]),
        [1.0, 2.0, 0.0, 0.0, 0.0],
        Cones(nonneg=2, psd=(2,)),
    )
    answer = backend_named("low_rank_sdp").run(form, Settings())
    residuals = form.measure(answer.x, answer.y)
    assert residuals.worst < 1e-6
    assert residuals.value == pytest.approx(-1.0, abs=1e-6)


def mixed_program(rng: np.random.Generator) -> FactorProgram:
    """A program with free multipliers, squares, a block on spheres and general equations."""
    order, m = 4, 7
    A = rng.normal(size=(2 + 3 + 10, m))
    A[:, :order] = 0.0
    diagonal = np.flatnonzero(svec(np.eye(order)))
    A[5 + diagonal, np.arange(order)] = -2.0
    c = np.append(rng.uniform(1, 2, order), rng.normal(size=m - order))
    b = rng.normal(size=len(A))
    return FactorProgram(ConeForm(c, A, b, Cones(zero=2, nonneg=3, psd=(order,))))


def test_equations_of_one_diagonal_entry_are_spheres() -> None:
    program = mixed_program(np.random.default_rng(0))
    np.testing.assert_array_equal(program.fixed, np.arange(4))
    np.testing.assert_allclose(program.lengths[0] ** 2, program.form.c[:4] / 2)


def test_gradient_and_hessian_are_the_derivatives() -> None:
    rng = np.random.default_rng(1)
    program = mixed_program(rng)

    def on_manifold(V: np.ndarray) -> np.ndarray:
        return on_spheres(V, program.lengths[0])

    def random() -> Factors:
        return Factors(rng.normal(size=2), rng.normal(size=3), (rng.normal(size=(4, 3)),))

    at = random()
    at = Factors(at.free, at.roots, (on_manifold(at.matrices[0]),))
    f = AugmentedLagrangian(program, at, rng.normal(size=3), 0.7)
    step = f.tangent(random())

    # Along the retraction, whose second derivative is normal to the spheres.
    t = 1e-4
    there = f.moved(step.times(t)).value
    back = f.moved(step.times(-t)).value
    slope = f.gradient.dot(step)
    curvature = step.dot(f.hessian(step))
    assert (there - back) / (2 * t) == pytest.approx(slope, rel=1e-6)
    assert (there - 2 * f.value + back) / t**2 == pytest.approx(curvature, rel=1e-4)


@pytest.mark.parametrize("order", [20, 150])
def test_the_smallest_eigenvalue_is_estimated_from_below(order) -> None:
    rng = np.random.default_rng(order)
    S = sparse.random(order, order, density=0.1, rng=rng)
    S = sparse.csr_array(S + S.T)
    true = np.linalg.eigvalsh(S.toarray())[0]
    estimate = lowest_eigenvalue(S, 1e-6, 0)
    assert true - 1e-5 <= estimate <= true + 1e-9


def test_a_matrix_inequality_is_left_as_it_is() -> None:
    form = cut(cycle(5)).form
    assert as_inequality(form)[0] is form


def test_multipliers_lie_inside_and_close_their_equations() -> None:
    form = cut(cycle(41)).form
    answer = backend_named("low_rank_sdp").run(form, Settings(tol=1e-6))
    X = smat(answer.y)
    np.testing.assert_array_equal(X.diagonal(), 1.0)
    assert np.linalg.eigvalsh(X)[0] > 1e-10
    assert np.linalg.eigvalsh(smat(form.b - form.A @ answer.x))[0] > 0


def random_graph(n: int) -> sparse.csr_array:
    upper = sparse.triu(sparse.random(n, n, density=4 / n, rng=np.random.default_rng(n)), 1)
    return sparse.csr_array((upper + upper.T) != 0).astype(float)


def test_it_stops_at_its_limits_with_a_point() -> None:
    problem = cut(random_graph(200))
    backend = backend_named("low_rank_sdp")
    few = backend.run(problem.form, Settings(max_iter=2))
    assert (few.stop.name, few.iterations) == ("ITERATION_LIMIT", 2)
    late = backend.run(problem.form, Settings(time_limit=1e-6))
    assert late.stop.name == "TIME_LIMIT"
    assert late.x is not None


def test_the_planner_chooses_it_for_large_cuts_only() -> None:
    def first(problem: SDP) -> str:
        return klopt.plan(problem).routes[0].backend.name

    assert first(cut(random_graph(150))) == "low_rank_sdp"
    assert first(cut(random_graph(150), "X")) == "low_rank_sdp"
    assert first(cut(cycle(9))) != "low_rank_sdp"
    dense = np.random.default_rng(0).normal(size=(20, 30, 30))
    assert first(SDP(np.ones(19), [M + M.T for M in dense])) != "low_rank_sdp"


@pytest.mark.slow
def test_a_cut_of_a_thousand_points_is_proven() -> None:
    result = klopt.solve(cut(random_graph(1000)), tol=1e-4)
    assert result.verdict.name == "OPTIMAL"
    assert result.route.backend.name == "low_rank_sdp"
