"""A user's own programs: what they mean is what SciPy and CVXPY say, for every formulation, sense and sign."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import sparse
from scipy.optimize import linprog
from strategies import generators

import klopt
from klopt.model.features import Feature
from klopt.model.problem import Point, Problem
from klopt.problems import LP, QCQP, SDP
from klopt.programs.formats.model import Block, Names

CLASSES = (LP, QCQP, SDP)
RAGGED = [[1.0], [1.0, 2.0]]
HALF_MASKED = np.ma.masked_array([1.0, -99.0], [False, True])
seeds = st.integers(0, 2**32 - 1)


def solved(problem: Problem, formulation: str | None = None, tol: float = 1e-7) -> klopt.Result:
    return klopt.solve(problem, formulation=formulation, tol=tol).require()


def random_lp(rng: np.random.Generator) -> LP:
    """Bounded, feasible, with every kind of row and bound, in either sense."""
    n = int(rng.integers(2, 7))
    inside = rng.uniform(-1, 1, n)
    A_ub, A_eq = rng.normal(size=(3, n)), rng.normal(size=(1, n))
    bounds = [(v - rng.uniform(0, 1), v + rng.uniform(0, 1)) for v in inside]
    bounds[0] = (inside[0], inside[0])
    sense = "min" if rng.random() < 0.5 else "max"
    b_ub = A_ub @ inside + rng.uniform(0, 1, 3)
    b_ub[2] = np.inf
    return LP(
        rng.normal(size=n),
        A_ub,
        b_ub,
        A_eq,
        A_eq @ inside,
        bounds,
        offset=rng.normal(),
        sense=sense,
    )


class TestEveryFormulationIsTheProblem:
    @pytest.mark.parametrize("problem", CLASSES)
    @given(seed=seeds, size=st.integers(2, 10))
    def test_declared_needs_are_the_needs_of_the_form(self, problem, seed, size) -> None:
        for formulation in problem.sample(np.random.default_rng(seed), size).formulations():
            assert formulation.build().needs == formulation.needs

    @pytest.mark.parametrize("problem", CLASSES)
    @given(seed=seeds)
    def test_recover_undoes_lift(self, problem, seed) -> None:
        instance = problem.sample(np.random.default_rng(seed), 6)
        point = solved(instance).point
        for formulation in instance.formulations():
            start = formulation.lift(point)
            again = formulation.recover(start.x, start.y)
            for name in point:
                assert np.allclose(getattr(again, name), getattr(point, name), atol=1e-6)

    @pytest.mark.parametrize("problem", CLASSES)
    @given(seed=seeds)
    def test_all_give_the_same_optimum(self, problem, seed) -> None:
        instance = problem.sample(np.random.default_rng(seed), 6)
        results = [solved(instance, formulation.name) for formulation in instance.formulations()]
        assert max(r.lower for r in results) <= min(r.upper for r in results) + 1e-9

    @pytest.mark.parametrize("problem", CLASSES)
    def test_a_form_and_its_dual_say_so(self, problem) -> None:
        formulations = problem.sample(np.random.default_rng(0), 5).formulations()
        assert [f.dual for f in formulations if f.dual] == [True]
        assert all(f.because for f in formulations)

    @pytest.mark.parametrize("problem", CLASSES)
    def test_a_point_without_multipliers_is_still_bounded_on_its_side(self, problem) -> None:
        instance = problem.sample(np.random.default_rng(1), 6)
        result = solved(instance)
        bracket = instance.bracket(Point({"x": result.point.x}))
        assert bracket.upper <= result.upper + 1e-6
        assert bracket.lower <= result.upper + 1e-9


class TestLP:
    @given(generators)
    def test_it_is_what_linprog_solves(self, rng) -> None:
        lp = random_lp(rng)
        kept = np.isfinite(lp.b_ub)
        sign = 1 if lp.sense == "min" else -1
        A_ub, A_eq = lp.A_ub.toarray()[kept], lp.A_eq.toarray()
        theirs = linprog(sign * lp.c, A_ub, lp.b_ub[kept], A_eq, lp.b_eq, bounds=lp.bounds)
        result = solved(lp)
        assert result.value == pytest.approx(sign * theirs.fun + lp.offset, abs=1e-7)
        # SciPy's marginals are the gradients of the optimum; klopt's multipliers are their
        # negatives in the minimisation.
        y = result.point
        assert lp.c * sign + A_ub.T @ y.ub[
            kept
        ] + A_eq.T @ y.eq - y.lower + y.upper == pytest.approx(0, abs=1e-9)
        assert y.ub[~kept] == pytest.approx(0)

    def test_multipliers_are_minus_the_marginals_of_linprog(self) -> None:
        c, A, b = [-1.0, -2.0], [[1.0, 1.0], [1.0, 3.0]], [4.0, 6.0]
        theirs, ours = linprog(c, A, b), solved(LP(c, A, b)).point
        assert ours.ub == pytest.approx(-theirs.ineqlin.marginals)
        assert ours.lower == pytest.approx(theirs.lower.marginals)

    @pytest.mark.parametrize(("bounds", "expected"), [
        ((0, None), [[0, np.inf]] * 2),
        (None, [[0, np.inf]] * 2),
        ([(0, 1)], [[0, 1]] * 2),
        ([(0, None), (None, 3)], [[0, np.inf], [-np.inf, 3]]),
        (np.array([[0.0, np.inf], [-np.inf, 2.0]]), [[0, np.inf], [-np.inf, 2]]),
    ])  # fmt: skip
    def test_bounds_are_read_as_linprog_reads_them(self, bounds, expected) -> None:
        assert np.array_equal(LP([1, 1], bounds=bounds).bounds, expected)

    @pytest.mark.parametrize(("arguments", "message"), [
        ({"c": [1.0, np.nan]}, r"c\[1\] is nan"),
        ({"c": [1.0], "A_ub": [[1.0]]}, "A_ub is given without b_ub"),
        ({"c": [1.0], "A_ub": [[1.0]], "b_ub": [1e30]}, r"b_ub\[0\] is 1e\+30; write inf"),
        ({"c": [1.0], "A_ub": [[1.0]], "b_ub": [np.nan]}, r"b_ub\[0\] is nan"),
        ({"c": [1.0], "A_eq": [[1.0]], "b_eq": [np.inf]}, r"b_eq\[0\] is inf; expected a finite number"),
        ({"c": [1.0], "A_ub": [[1.0, 2.0]], "b_ub": [1.0]}, "A_ub is 1 x 2; expected 1 x 1"),
        ({"c": [1.0], "bounds": (0, 1e25)}, r"bounds\[0, 1\] is 1e\+25; write inf"),
        ({"c": [1.0], "bounds": (np.nan, 1)}, r"bounds\[0, 0\] is nan"),
        ({"c": [1.0], "bounds": (np.inf, np.inf)}, r"bounds\[0, 0\] is inf"),
        ({"c": [1.0, 2.0], "bounds": [(0, 1)] * 3}, "one pair .* or 2 of them"),
        ({"c": [1.0], "bounds": "free"}, "one pair"),
        ({"c": [1.0], "sense": "maximise"}, "sense is 'maximise'"),
        ({"c": [1.0], "offset": np.inf}, r"offset\[0\] is inf"),
        ({"c": [1.0], "names": Names(("x", "y"))}, "names.columns holds 2 names; expected 1"),
        ({"c": [1.0], "names": Names("x")}, "names.columns is 'x'; expected a tuple of 1 texts"),
        ({"c": [1.0], "names": ["x"]}, r"names is \['x'\]; expected klopt.programs.formats.model.Names"),
        ({"c": HALF_MASKED}, r"c\[1\] is masked"),
        ({"c": [1.0], "A_ub": [[1.0], [1.0]], "b_ub": HALF_MASKED}, r"b_ub\[1\] is masked"),
        ({"c": [1.0], "bounds": HALF_MASKED}, r"bounds\[1\] is masked"),
        ({"c": [1.0], "bounds": (0, 10**400)}, "bounds has a number beyond the range of floats"),
        ({"c": [1.0], "offset": np.ma.masked}, "offset is masked"),
        ({"c": [1.0], "offset": RAGGED}, "offset is ragged"),
        ({"c": [1.0], "A_ub": [[1.0]], "b_ub": RAGGED}, "b_ub is ragged"),
        ({"c": [1.0], "A_eq": [[1.0]], "b_eq": RAGGED}, "b_eq is ragged"),
        ({"c": [1.0], "sense": np.array(["min", "max"])}, "sense is array.*; expected 'min' or 'max'"),
    ])  # fmt: skip
    def test_bad_data_are_refused(self, arguments, message) -> None:
        with pytest.raises(klopt.InvalidProblem, match=message):
            LP(**arguments)

    def test_crossed_bounds_are_infeasible(self) -> None:
        assert solved(LP([1.0], bounds=(2, 1))).verdict is klopt.Verdict.INFEASIBLE

    def test_describe_counts(self) -> None:
        assert LP([1, 2], [[1, 1]], [1]).describe() == "LP(1 rows, 2 variables)"


class TestQCQP:
    def test_a_ball_is_left_where_the_objective_points(self) -> None:
        ball = QCQP(None, [3.0, 4.0], [(np.eye(2), [0, 0], 0.5)])
        result = solved(ball)
        assert result.value == pytest.approx(-5)
        assert result.point.x == pytest.approx([-0.6, -0.8], abs=1e-6)
        assert result.point.quadratic == pytest.approx([5.0], abs=1e-5)

    @given(generators)
    def test_it_is_what_cvxpy_solves(self, rng) -> None:
        problem = QCQP.sample(rng, 5)
        x, row = cp.Variable(5), problem.quadratics[0]
        soc = problem.b_soc - problem.A_soc.toarray() @ x
        constraints = [
            cp.quad_form(x, cp.psd_wrap(row.P.toarray())) / 2 + row.q @ x <= row.r,
            problem.A_ub.toarray() @ x <= problem.b_ub,
            cp.SOC(soc[0], soc[1:]),
        ]
        objective = cp.quad_form(x, cp.psd_wrap(problem.P.toarray())) / 2 + problem.q @ x
        theirs = cp.Problem(cp.Minimize(objective), constraints).solve(solver="CLARABEL")
        assert solved(problem, tol=1e-6).value == pytest.approx(theirs, abs=1e-5)

    def test_variables_are_free_unless_bounded(self) -> None:
        assert solved(QCQP([[2.0]], [2.0])).value == pytest.approx(-1)
        assert solved(QCQP([[2.0]], [2.0], bounds=(0, None))).value == pytest.approx(0, abs=1e-6)

    def test_a_concave_function_is_maximised(self) -> None:
        result = solved(QCQP([[-2.0]], [2.0], offset=3.0, sense="max"))
        assert result.value == pytest.approx(4)

    @pytest.mark.parametrize(("arguments", "message"), [
        ({"P": [[1, 2], [2, 1]], "q": [0, 0]}, "P is not positive semidefinite: its smallest eigenvalue is -1"),
        ({"P": np.eye(2), "q": [0, 0], "sense": "max"}, r"-P .* smallest eigenvalue is -1"),
        ({"P": [[1, 2], [0, 1]], "q": [0, 0]}, r"P is not symmetric: P\[0, 1\] = 2.0"),
        ({"P": None, "q": [0], "quadratics": [([[-1.0]], [0], 1)]}, r"quadratics\[0\] P is not positive semidefinite"),
        ({"P": None, "q": [0], "quadratics": [([[1.0]], [0])]}, r"quadratics\[0\] has 2 parts"),
        ({"P": None, "q": [0], "quadratics": [([[1.0]], [0], np.inf)]}, r"quadratics\[0\] r"),
        ({"P": None, "q": [0], "A_soc": [[1], [1]], "b_soc": [0, 0], "soc": (3,)}, r"soc has sizes \(3,\)"),
        ({"P": None, "q": [0], "A_soc": [[1]], "b_soc": [np.inf], "soc": (1,)}, r"b_soc\[0\] is inf"),
        ({"P": None, "q": [0], "A_soc": [[1]], "b_soc": RAGGED, "soc": (1,)}, "b_soc is ragged"),
        ({"P": None, "q": [0], "quadratics": None}, "quadratics is None; expected a list of triples"),
        ({"P": None, "q": [0], "quadratics": {}}, "quadratics is {}; expected a list"),
        ({"P": None, "q": [0], "quadratics": [1, 2]}, r"quadratics\[0\] is 1; expected a triple \(P, q, r\)"),
        ({"P": None, "q": [0], "quadratics": [([[1.0]], [0], RAGGED)]}, r"quadratics\[0\] r is ragged"),
        ({"P": None, "q": [0], "sense": np.array([1, 2])}, "sense is array"),
        ({"P": None, "q": [0], "names": ["x"]}, "names is "),
    ])  # fmt: skip
    def test_bad_data_are_refused(self, arguments, message) -> None:
        with pytest.raises(klopt.InvalidProblem, match=message):
            QCQP(**arguments)

    @pytest.mark.parametrize(("soc", "message"), [
        (2, "soc is 2; expected a list of whole numbers"),
        ("11", "soc is '11'; expected a list of whole numbers"),
        (None, "soc is None; expected a list of whole numbers"),
        (["a"], r"soc\[0\] is 'a'; expected a whole number of at least 1"),
        ([2.7], r"soc\[0\] is 2.7; expected a whole number"),
        ([True, True], r"soc\[0\] is True; expected a whole number"),
        ([2, 0], r"soc\[1\] is 0; expected a whole number"),
    ])  # fmt: skip
    def test_sizes_of_cones_are_whole_numbers(self, soc, message) -> None:
        cones = {"A_soc": np.eye(2), "b_soc": [1.0, 0.0]}
        assert QCQP(None, [1.0, 1.0], **cones, soc=np.array([2])).soc == (2,)
        with pytest.raises(klopt.InvalidProblem, match=message):
            QCQP(None, [1.0, 1.0], **cones, soc=soc)

    def test_an_eigenvalue_negative_by_rounding_is_no_matter(self) -> None:
        factor = np.random.default_rng(0).normal(size=(30, 2))
        QCQP(factor @ factor.T - 1e-15 * np.eye(30), np.zeros(30))

    def test_a_separable_matrix_is_checked_without_a_dense_copy(self) -> None:
        n = 200_000
        P = sparse.diags_array(np.ones(n), format="csc")
        assert QCQP(P, np.zeros(n)).epigraph.cone.F.nnz == n
        P = sparse.diags_array(np.append(np.ones(n - 1), -1e-9), format="csc")
        with pytest.raises(klopt.InvalidProblem, match="smallest eigenvalue is -1e-09"):
            QCQP(P, np.zeros(n))

    def test_a_zero_matrix_is_a_linear_objective(self) -> None:
        problem = QCQP(np.zeros((2, 2)), [1, 1], bounds=(0, 1))
        assert problem.P is None
        assert [f.name for f in problem.formulations()] == ["LP", "dual LP"]
        assert problem.formulations()[0].needs == {Feature.CONE}

    def test_needs_follow_the_constraints(self) -> None:
        names = {
            f.name: f.needs
            for f in QCQP(np.eye(2), [1, 1], [(np.eye(2), [0, 0], 1.0)]).formulations()
        }
        assert names["conic QP"] == {Feature.CONE, Feature.QUADRATIC, Feature.SOC}
        assert names["SOCP"] == names["dual SOCP"] == {Feature.CONE, Feature.SOC}
        assert {f.name for f in QCQP(np.eye(2), [1, 1]).formulations()} == {
            "QP",
            "SOCP",
            "dual SOCP",
        }


class TestSDP:
    def test_the_largest_eigenvalue(self) -> None:
        M = np.array([[2.0, 1.0], [1.0, 2.0]])
        result = solved(SDP([1.0], [M, np.eye(2)]))
        assert result.value == pytest.approx(3)
        assert pytest.approx(np.full((2, 2), 0.5), abs=1e-4) == result.point.X0

    def test_the_smallest_eigenvalue_in_standard_form(self) -> None:
        M = np.array([[2.0, 1.0], [1.0, 2.0]])
        least = solved(SDP.standard(M, [np.eye(2)], [1.0]))
        assert least.value == pytest.approx(1)
        assert pytest.approx(np.array([[0.5, -0.5], [-0.5, 0.5]]), abs=1e-4) == least.point.X0
        assert least.point.eq == pytest.approx([-1.0], abs=1e-6)
        assert solved(
            SDP.standard(M, [np.eye(2)], [1.0], offset=1.0, sense="max")
        ).value == pytest.approx(4)

    def test_the_feasible_side_of_a_standard_form_is_that_of_X(self) -> None:
        sdp = SDP.standard([[1.0, 0.5], [0.5, 2.0]], [np.eye(2)], [1.0])
        bracket = sdp.bracket(
            Point({"X0": np.diag([0.0, 1.0]), "diagonal": np.zeros(0)}, {"eq": [0.0]})
        )
        assert bracket.upper == pytest.approx(2)
        assert bracket.lower <= (3 - np.sqrt(2)) / 2

    def test_infeasible_means_infeasible_in_either_form(self) -> None:
        J = np.array([[0.0, 1.0], [1.0, 0.0]])
        assert solved(SDP.standard(J, [np.eye(2)], [-1.0])).verdict is klopt.Verdict.INFEASIBLE
        assert solved(SDP([0.0], [np.eye(2) + 0.5 * J, J])).verdict is klopt.Verdict.INFEASIBLE

    @given(generators)
    def test_it_is_what_cvxpy_solves(self, rng) -> None:
        problem = SDP.sample(rng, 6)
        x = cp.Variable(problem.c.size)
        block = problem.F[0]
        matrix = sum((x[i] * block.matrix(i + 1) for i in range(x.size)), -block.matrix(0))
        constraints = [(matrix + matrix.T) / 2 >> 0, problem.A_ub.toarray() @ x <= problem.b_ub]
        theirs = cp.Problem(cp.Minimize(problem.c @ x), constraints).solve(solver="CLARABEL")
        assert solved(problem, tol=1e-6).value == pytest.approx(theirs, abs=1e-5)

    def test_diagonal_blocks_are_linear_rows(self) -> None:
        sdp = SDP([1.0], [(np.diag([1.0, 2.0]), [[0, -1], [-1, 0]]), (np.eye(2), np.eye(2))])
        assert [block.order for block in sdp.F] == [2]
        assert sdp.A_ub.toarray().ravel() == pytest.approx([-1, -1])
        assert sdp.b_ub == pytest.approx([-1, -2])
        assert solved(sdp).value == pytest.approx(2)

    def test_sparse_and_dense_matrices_mean_the_same(self) -> None:
        rng = np.random.default_rng(3)
        F = [M + M.T for M in rng.normal(size=(3, 4, 4))]
        dense, thin = SDP([1.0, 2.0], F), SDP([1.0, 2.0], [sparse.coo_array(M) for M in F])
        assert (dense.F[0].entries != thin.F[0].entries).nnz == 0
        for i in range(3):
            assert np.array_equal(dense.F[0].matrix(i), F[i])

    @pytest.mark.parametrize(("arguments", "message"), [
        ({"c": [1.0], "F": [np.eye(2)]}, r"F has 1 matrices; expected F_0, F_1, .., F_n: 2"),
        ({"c": [1.0], "F": [np.eye(2), np.eye(3)]}, r"F\[1\] is 3 x 3; expected 2 x 2"),
        ({"c": [1.0], "F": [np.eye(2), [[0, 1], [2, 0]]]}, r"F\[1\] is not symmetric: \[0, 1\] is 1.0, not 2.0"),
        ({"c": [1.0], "F": [(np.eye(2), np.eye(2)), (np.eye(2),)]}, r"F\[1\] has 1 blocks; the others have 2"),
        ({"c": [1.0], "F": [np.eye(2), [[np.nan, 0], [0, 1]]]}, r"F\[1\]\[0, 0\] is nan"),
        ({"c": [1.0], "F": [Block(2, sparse.csc_array((3, 5)))]}, "expected n \\+ 1 = 2"),
        ({"c": [1.0], "F": [0, np.eye(2)], "over": "y"}, "over is 'y'"),
        ({"c": [1.0], "F": [0, np.eye(2)], "over": np.array(["x", "X"])}, "over is array.*; expected 'x' or 'X'"),
        ({"c": [1.0], "F": [0, np.eye(2)], "over": "X", "A_eq": [[1]], "b_eq": [1]}, "over is 'X'.*; leave out A_eq"),
        ({"c": [1.0], "F": [0, np.eye(2)], "sense": np.array([1, 2])}, "sense is array"),
        ({"c": [1.0], "F": [0, np.eye(2)], "offset": RAGGED}, "offset is ragged"),
        ({"c": [1.0], "F": {}}, "F is {}; expected the list of matrices F_0, F_1"),
        ({"c": [1.0], "F": [None, np.eye(2)]}, r"F\[0\] is None; expected a symmetric matrix"),
        ({"c": [1.0], "F": [(np.eye(2), None), (np.eye(2), np.eye(2))]}, r"F\[0\] is .*None.*; expected a symmetric"),
    ])  # fmt: skip
    def test_bad_data_are_refused(self, arguments, message) -> None:
        with pytest.raises(klopt.InvalidProblem, match="(?s)" + message):
            SDP(**arguments)

    @pytest.mark.parametrize(("C", "A", "message"), [
        (None, [np.eye(2)], "C is None; expected a symmetric matrix, a tuple of blocks, or 0 for zero"),
        ({}, [np.eye(2)], "C is {}; expected a symmetric matrix"),
        (np.eye(2), None, "A is None; expected the list of matrices A_1, .., A_n"),
        (np.eye(2), [None], r"A\[0\] is None; expected a symmetric matrix"),
    ])  # fmt: skip
    def test_a_standard_form_without_its_matrices_is_refused(self, C, A, message) -> None:
        with pytest.raises(klopt.InvalidProblem, match=message):
            SDP.standard(C, A, [1.0])

    def test_describe_counts(self) -> None:
        J = [[0, 1], [1, 0]]
        assert (
            SDP([1.0], [0, J], [[1]], [2]).describe()
            == "SDP(1 variables, blocks of order 2, 1 linear rows)"
        )
        assert SDP.standard(J, [J], [1.0]).describe() == "SDP(1 equality, X of order 2)"
