"""LogDet kernels with pairs: optimality, the labelled block, slack, contradictions, new points, and bad input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st
from strategies import generators, gram, radial_gram

import klopt
from klopt.errors import InvalidProblem, UncertifiedFit
from klopt.kernels.nystroem import LowRank
from klopt.learners import LDK
from klopt.problems import LogDetPairs
from klopt.problems._logdet.constraints import (
    DistanceConstraints,
    PairEvaluation,
    squared_distances,
)
from klopt.proof.certificate import Verdict


def class_pairs(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of labelled points (label >= 0): of one class, of two."""
    known = np.flatnonzero(labels >= 0)
    i, j = np.triu_indices(known.size, 1)
    pairs, same = np.column_stack((known[i], known[j])), labels[known[i]] == labels[known[j]]
    return pairs[same], pairs[~same]


def by_classes(
    rng: np.random.Generator, n: int, slack: float | None = None, K0: np.ndarray | None = None
) -> LogDetPairs:
    """Two classes, some points without label, bounds that half of the pairs break."""
    K0 = radial_gram(rng, n) if K0 is None else K0
    labels = rng.permutation(np.arange(n) % 3) - 1
    labels[:4] = [0, 0, 1, 1]
    similar, dissimilar = class_pairs(labels)
    return LogDetPairs(K0, similar, dissimilar, upper=0.5, lower=1.4, slack=slack)


def divergence(K: np.ndarray, K0: np.ndarray) -> float:
    X = np.linalg.solve(K0, K)
    return float(np.trace(X) - np.linalg.slogdet(X)[1] - len(K))


def violation(problem: LogDetPairs, K: np.ndarray) -> float:
    above = squared_distances(K, *problem.similar.T) / problem.upper - 1
    below = 1 - squared_distances(K, *problem.dissimilar.T) / problem.lower
    return max(above.max(initial=0.0), below.max(initial=0.0))


def solved(problem: LogDetPairs, backend: str | None = None, tol: float = 1e-8) -> klopt.Result:
    return klopt.solve(problem, backend, tol=tol).require()


class TestOptimality:
    @given(generators, st.integers(6, 14))
    def test_conditions_of_optimality(self, rng: np.random.Generator, n: int) -> None:
        problem = by_classes(rng, n)
        result = solved(problem)
        K, K0, lam = result.kernel, problem.K0.matrix, result.point
        assert violation(problem, K) <= 1e-9
        assert divergence(K, K0) == pytest.approx(result.upper, abs=1e-6)
        # stationarity: K^-1 - K0^-1 is the signed Laplacian of the multipliers
        A = np.zeros_like(K)
        for pairs, weights, sign in (
            (problem.similar, lam.similar, 1),
            (problem.dissimilar, lam.dissimilar, -1),
        ):
            assert (weights >= 0).all()
            for (i, j), weight in zip(pairs, weights, strict=True):
                z = np.eye(n)[i] - np.eye(n)[j]
                A += sign * weight * np.outer(z, z)
        np.testing.assert_allclose(K + K0 @ A @ K, K0, atol=1e-6 * (1 + np.abs(A).max()))
        slack = lam.similar * (problem.upper - squared_distances(K, *problem.similar.T))
        assert np.abs(slack).max() <= 1e-6

    @given(generators)
    def test_no_feasible_kernel_is_nearer(self, rng: np.random.Generator) -> None:
        problem = by_classes(rng, 8)
        result = solved(problem)
        W = rng.normal(size=(8, 8))
        other = result.kernel + 0.02 * W @ W.T
        t = 1.0
        while violation(problem, (1 - t) * result.kernel + t * other) > 1e-12 and t > 1e-6:
            t /= 2
        near = (1 - t) * result.kernel + t * other
        assert (
            violation(problem, near) > 1e-12
            or divergence(near, problem.K0.matrix) >= result.lower - 1e-9
        )

    def test_one_pair_on_paper(self) -> None:
        # The squared distance 2 is halved: one eigenvalue 1/2, D = 1/2 - log 1/2 - 1.
        result = solved(LogDetPairs(np.eye(3), [(0, 1)], [], 1.0, 1.0))
        assert result.value == pytest.approx(np.log(2) - 0.5, abs=1e-8)
        np.testing.assert_allclose(
            result.kernel, [[0.75, 0.25, 0], [0.25, 0.75, 0], [0, 0, 1]], atol=1e-9
        )

    def test_satisfied_constraints_leave_the_kernel_alone(self) -> None:
        problem = LogDetPairs(np.eye(3), [(0, 1)], [(1, 2)], 3.0, 1.0)
        result = solved(problem)
        assert result.value == pytest.approx(0.0, abs=1e-12)
        np.testing.assert_allclose(result.kernel, np.eye(3), atol=1e-12)

    @pytest.mark.parametrize("slack", [None, 0.5, 5.0])
    def test_all_routes_agree(self, slack: float | None) -> None:
        problem = by_classes(np.random.default_rng(3), 8, slack)
        results = [
            solved(problem, name, 1e-6) for name in ("sparse_newton", "bregman", "clarabel", "scs")
        ]
        assert max(r.lower for r in results) <= min(r.upper for r in results) + 1e-8

    @given(generators)
    def test_order_of_points_and_pairs_does_not_matter(self, rng: np.random.Generator) -> None:
        problem = by_classes(rng, 9)
        order = rng.permutation(9)
        place = np.argsort(order)
        shuffled = LogDetPairs(
            problem.K0.matrix[np.ix_(order, order)],
            rng.permutation(place[problem.similar][:, ::-1]),
            rng.permutation(place[problem.dissimilar]),
            0.5,
            1.4,
        )
        one, other = solved(problem), solved(shuffled)
        assert one.value == pytest.approx(other.value, rel=1e-7)
        np.testing.assert_allclose(one.kernel[np.ix_(order, order)], other.kernel, atol=1e-5)

    @given(generators, st.integers(-6, 6))
    def test_units_do_not_matter(self, rng: np.random.Generator, power: int) -> None:
        problem, unit = by_classes(rng, 8), 10.0**power
        scaled = LogDetPairs(
            unit * problem.K0.matrix, problem.similar, problem.dissimilar, 0.5 * unit, 1.4 * unit
        )
        assert solved(scaled).value == pytest.approx(solved(problem).value, rel=1e-7)

    @given(generators)
    def test_the_block_of_the_pairs_is_the_whole_problem(self, rng: np.random.Generator) -> None:
        whole = by_classes(rng, 10)
        block = LogDetPairs(
            whole.K0.matrix[np.ix_(whole.points, whole.points)],
            np.searchsorted(whole.points, whole.similar),
            np.searchsorted(whole.points, whole.dissimilar),
            0.5,
            1.4,
        )
        one, other = solved(whole), solved(block)
        assert one.value == pytest.approx(other.value, rel=1e-7)
        np.testing.assert_allclose(
            one.kernel[np.ix_(whole.points, whole.points)], other.kernel, atol=1e-6
        )


class TestSlack:
    def test_slack_tends_to_hard_as_its_weight_grows(self) -> None:
        hard = solved(by_classes(np.random.default_rng(0), 9)).value
        values = [
            solved(by_classes(np.random.default_rng(0), 9, slack)).value
            for slack in (0.1, 1.0, 10.0, 1e3, 1e5)
        ]
        assert values == sorted(values)
        assert all(value <= hard + 1e-7 for value in values)
        assert values[-1] == pytest.approx(hard, rel=1e-3)

    def test_contradictory_pairs_have_an_optimum_with_slack(self) -> None:
        problem = LogDetPairs(np.eye(3), [(0, 1), (1, 2)], [(0, 2)], 0.1, 3.0, slack=1.0)
        results = [solved(problem, name, 1e-6) for name in ("sparse_newton", "bregman", "clarabel")]
        assert max(r.lower for r in results) <= min(r.upper for r in results) + 1e-9

    @given(generators)
    def test_slack_moves_each_bound_by_its_multiplier(self, rng: np.random.Generator) -> None:
        problem = by_classes(rng, 7, slack=2.0)
        result = solved(problem)
        # 1/xi = 1/xi_0 - multiplier/slack, and the moved bound is where a broken constraint ends
        # up.
        d = squared_distances(result.kernel, *problem.similar.T)
        moved = 1 / (1 / problem.upper - result.point.similar / 2.0)
        tight = result.point.similar > 1e-4
        np.testing.assert_allclose(d[tight], moved[tight], rtol=1e-4)


class TestContradiction:
    @pytest.mark.parametrize("backend", ["sparse_newton", "bregman"])
    def test_violated_triangle_is_named(self, backend: str) -> None:
        problem = LogDetPairs(np.eye(5), [(4, 1), (1, 2)], [(4, 2)], 0.1, 1.0)
        result = klopt.solve(problem, backend)
        assert result.verdict is Verdict.INFEASIBLE
        assert result.value == np.inf
        assert "violated triangle 4 - 1 - 2" in result.explain()
        assert "at most 0.4" in result.explain()

    def test_longer_way_round_is_named(self) -> None:
        n = 7
        problem = LogDetPairs(
            np.eye(n), [(i, i + 1) for i in range(n - 1)], [(0, n - 1)], 0.01, 1.0
        )
        assert "violated cycle 0 - 1 - 2 - 3 - 4 - 5 - 6" in klopt.solve(problem).explain()

    def test_pair_both_near_and_far(self) -> None:
        problem = LogDetPairs(np.eye(3), [(0, 1)], [(1, 0)], 1.0, 2.0)
        result = klopt.solve(problem)
        assert result.verdict is Verdict.INFEASIBLE
        assert "violated pair 1 - 0" in result.explain()
        assert (
            solved(LogDetPairs(np.eye(3), [(0, 1)], [(1, 0)], 1.5, 1.0)).value > 0
        )  # an interval is no contradiction

    @pytest.mark.parametrize("backend", ["sparse_newton", "bregman"])
    def test_contradiction_without_a_violated_triangle(self, backend: str) -> None:
        # Three points within 1 of a centre are at most 3 apart in squared distance on average;
        # triangles allow 4.
        star, rim = [(0, 1), (0, 2), (0, 3)], [(1, 2), (1, 3), (2, 3)]
        assert (
            klopt.solve(LogDetPairs(np.eye(4), star, rim, 1.0, 3.2), backend).verdict
            is Verdict.INFEASIBLE
        )
        assert (
            klopt.solve(LogDetPairs(np.eye(4), star, rim, 1.0, 2.8), backend).verdict
            is Verdict.OPTIMAL
        )

    def test_points_that_the_given_kernel_cannot_tell_apart(self) -> None:
        K0 = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
        result = klopt.solve(LogDetPairs(K0, [], [(0, 1)], 1.0, 0.5))
        assert result.verdict is Verdict.INFEASIBLE
        assert "distance 0" in result.explain()

    @given(generators, st.integers(3, 8), st.floats(0.3, 0.97))
    def test_every_violated_cycle_is_found_and_proven(
        self, rng: np.random.Generator, n: int, share: float
    ) -> None:
        lengths = rng.uniform(0.1, 2.0, n - 1)
        path = [(i, i + 1) for i in range(n - 1)]
        reach = float(np.sqrt(lengths).sum()) ** 2
        K0 = gram(rng, n, n) + np.eye(n)
        far = LogDetPairs(K0, path, [(0, n - 1)], lengths, reach / share)
        assert klopt.solve(far).verdict is Verdict.INFEASIBLE
        near = LogDetPairs(K0, path, [(0, n - 1)], lengths, reach * share)
        assert klopt.solve(near).verdict is Verdict.OPTIMAL

    def test_a_ray_that_proves_nothing_is_refused(self) -> None:
        dual = LogDetPairs(np.eye(3), [(0, 1), (1, 2)], [(0, 2)], 1.0, 3.0).dual
        assert "not proven positive semidefinite" in dual.ray_flaw(np.array([0.1, 0.1, 1.0]))
        assert "not negative" in dual.ray_flaw(np.array([1.0, 1.0, 0.1]))
        assert "finite multiplier" in dual.ray_flaw(np.array([1.0, -1.0, 0.1]))


def twins(gap: float) -> LowRank:
    """Four points on a line and off it, the first two `gap` apart in squared distance."""
    return LowRank([[1.0, 0.0], [1.0, np.sqrt(gap)], [-1.0, 0.0], [0.0, 2.0]])


class TestEqualPoints:
    @pytest.mark.parametrize("slack", [None, 1.0])
    @pytest.mark.parametrize("backend", ["sparse_newton", "bregman", None])
    @pytest.mark.parametrize("given", [twins(0.0), twins(0.0).Phi @ twins(0.0).Phi.T])
    def test_dissimilar_ones_are_named_with_and_without_slack(
        self, given: object, backend: str | None, slack: float | None
    ) -> None:
        problem = LogDetPairs(given, [(0, 2)], [(2, 3), (1, 0), (0, 3)], 1.0, 1.0, slack)
        assert problem.inseparable.tolist() == [1]
        result = klopt.solve(problem, backend)
        assert result.verdict is Verdict.INFEASIBLE
        assert (
            "violated pair 1 - 0: dissimilar, but the given kernel has them at distance 0"
            in result.explain()
        )
        assert ("price" in result.explain()) is (slack is not None)

    def test_rounding_of_a_kernel_matrix_does_not_part_them(self) -> None:
        X = np.random.default_rng(0).normal(size=(40, 3))
        X[1] = X[0]
        K0 = np.exp(-np.sum((X[:, None] - X) ** 2, axis=2) / 3)
        K0[0, 1] = K0[1, 0] = 1 - 1e-15
        pairs = [(0, 1), *((i, i + 1) for i in range(2, 39))]
        assert LogDetPairs(K0, [], pairs, 1.0, 1.0, 1.0).inseparable.tolist() == [0]

    @pytest.mark.parametrize("slack", [None, 1.0])
    def test_similar_ones_are_as_if_not_given(self, slack: float | None) -> None:
        with_them = LogDetPairs(twins(0.0), [(0, 1), (0, 2)], [(2, 3)], [0.5, 1.0], 9.0, slack)
        without = LogDetPairs(twins(0.0), [(0, 2)], [(2, 3)], 1.0, 9.0, slack)
        one, other = solved(with_them), solved(without)
        assert one.value == pytest.approx(other.value, rel=1e-12)
        assert one.point.similar[0] == 0
        start = klopt.Point({}, {"similar": [5.0, 0.1], "dissimilar": [0.0]})
        assert klopt.solve(with_them, start=start).verdict is Verdict.OPTIMAL

    @pytest.mark.parametrize("slack", [None, 1.0])
    @pytest.mark.parametrize("K0", [np.ones((3, 3)), np.zeros((3, 3))])
    def test_all_distances_zero(self, K0: np.ndarray, slack: float | None) -> None:
        similar, apart = [(0, 1), (1, 2)], [(0, 2)]
        assert solved(LogDetPairs(K0, similar, apart, 1.0, 0.0, slack)).value == pytest.approx(
            0.0, abs=1e-9
        )
        assert (
            klopt.solve(LogDetPairs(K0, similar, apart, 1.0, 0.1, slack)).verdict
            is Verdict.INFEASIBLE
        )
        assert (
            klopt.solve(LogDetPairs(K0, [(0, 2)], apart, 1.0, 0.1, slack)).verdict
            is Verdict.INFEASIBLE
        )

    @pytest.mark.parametrize("gap", [1e-4, 1e-8, 1e-12, 1e-16, 1e-20])
    @pytest.mark.parametrize("slack", [0.01, 1.0, 100.0])
    def test_nearly_equal_ones_on_paper(self, gap: float, slack: float) -> None:
        # One eigenvalue l is left: l - log l - 1 + slack (u - log u - 1) with u = l gap / lower,
        # least at this l.
        problem = LogDetPairs(twins(gap), [], [(0, 1)], 1.0, 2.0, slack)
        stretch = (1 + slack) / (1 + slack * gap / 2)
        u = stretch * gap / 2
        value = stretch - np.log(stretch) - 1 + slack * (u - np.log(u) - 1)
        assert solved(problem).value == pytest.approx(value, rel=1e-10)
        hard = solved(LogDetPairs(twins(gap), [], [(0, 1)], 1.0, 2.0))
        assert hard.value == pytest.approx(2 / gap - np.log(2 / gap) - 1, rel=1e-8)

    @pytest.mark.parametrize("slack", [0.01, 1.0, 100.0])
    @pytest.mark.parametrize("gap", [1e-12, 1e-10, 1e-6])
    def test_nearly_equal_ones_among_others_need_few_steps(self, gap: float, slack: float) -> None:
        result = solved(among_others(gap, slack), "sparse_newton")
        assert result.verdict is Verdict.OPTIMAL
        assert result.iterations <= 100

    def test_what_cannot_be_proven_ends_with_a_bracket(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("klopt.solvers.sparse_newton.MAX_STEPS", 20)
        result = klopt.solve(among_others(1e-10, None), "sparse_newton")
        assert result.verdict is Verdict.FEASIBLE
        assert 0 < result.lower < result.upper < np.inf

    def test_learner_warns_where_the_optimum_is_not_proven(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("klopt.solvers.sparse_newton.MAX_STEPS", 1)
        X = np.random.default_rng(0).normal(size=(30, 2))
        with pytest.warns(UncertifiedFit, match="LDK is not certified"):
            assert LDK(random_state=0).fit(X, np.arange(30) % 2).result_.verdict is Verdict.FEASIBLE

    def test_bracket_holds_for_equal_points_that_rounding_parts(self) -> None:
        K0 = np.array([[1.0, 1 - 2e-15, 0.5], [1 - 2e-15, 1.0, 0.4], [0.5, 0.4, 1.0]])
        K0[1, 2] = K0[2, 1] = 0.5 + 1e-9
        problem = LogDetPairs(K0, [], [(0, 1)], 1.0, 1.0, 1.0)
        assert problem.inseparable.tolist() == [0]
        assert (
            problem.bracket(klopt.Point({}, {"similar": [], "dissimilar": [1.0]})).upper == np.inf
        )

    def test_a_ray_needs_them_where_there_is_slack(self) -> None:
        dual = LogDetPairs(twins(0.0), [], [(0, 1), (0, 2)], 1.0, 9.0, 1.0).dual
        assert dual.ray_flaw(np.array([1.0, 0.0])) == ""
        assert "with slack" in dual.ray_flaw(np.array([0.0, 1.0]))

    @pytest.mark.parametrize("rank", [None, 12])
    def test_learner_leaves_them_out_where_there_is_slack(self, rank: int | None) -> None:
        X = np.repeat(np.random.default_rng(0).normal(size=(15, 2)), 2, axis=0)
        y = np.tile([0, 1], 15)
        learner = LDK(n_pairs=435, random_state=0, rank=rank).fit(X, y)
        assert learner.result_.verdict is Verdict.OPTIMAL
        problem = learner.result_.problem
        assert len(problem.similar) + len(problem.dissimilar) == 435 - 15
        with pytest.raises(InvalidProblem, match="violated pair 0 - 1"):
            LDK(n_pairs=435, random_state=0, rank=rank, slack=None).fit(X, y)


def among_others(gap: float, slack: float | None) -> LogDetPairs:
    """Pairs of 20 points of two classes, of which three pairs are `gap` apart in squared distance."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 4))
    X[1:6:2] = X[0:6:2]
    X[1:6:2, 0] += np.sqrt(2 * gap)
    K0 = np.exp(-np.sum((X[:, None] - X) ** 2, axis=2) / 4)
    similar, dissimilar = class_pairs(np.arange(20) % 2)
    return LogDetPairs(K0, similar[::3], dissimilar[np.r_[0:30, 31:100:3]], 0.5, 1.9, slack)


class TestSingular:
    @given(generators, st.integers(3, 6))
    def test_kernel_of_low_rank_keeps_its_range(self, rng: np.random.Generator, rank: int) -> None:
        F = rng.normal(size=(10, rank))
        K0 = F @ F.T
        similar, dissimilar = class_pairs(np.arange(10) % 2)
        d = squared_distances(K0, *similar.T)
        problem = LogDetPairs(
            K0, similar[d > np.median(d)], dissimilar, float(np.median(d)) + 1.0, 1e-3
        )
        result = klopt.solve(problem, tol=1e-6)
        # A kernel of low rank up to rounding: in a few cases neither floats nor balls prove both
        # ends to 1e-6 of the kernel as stored.
        assume(result.verdict is Verdict.OPTIMAL)
        assert np.linalg.matrix_rank(result.kernel, tol=1e-8 * np.trace(K0)) <= rank
        assert violation(problem, result.kernel) <= 1e-8
        by_features = LogDetPairs(
            LowRank(F), problem.similar, problem.dissimilar, problem.upper, problem.lower
        )
        again = solved(by_features, tol=1e-6)
        assert again.value == pytest.approx(result.value, rel=1e-5, abs=1e-6)
        np.testing.assert_allclose(again.kernel, result.kernel, atol=1e-3 * np.abs(K0).max())

    def test_nearly_singular_kernel(self) -> None:
        x = np.linspace(0, 1, 12)
        K0 = np.exp(-((x[:, None] - x) ** 2))  # condition 1e17
        similar, _ = class_pairs((x > 0.5).astype(int))
        problem = LogDetPairs(K0, similar, [(0, 11), (1, 10)], 0.2, 1.5)
        result = solved(problem, tol=1e-6)
        # In 320 bits the optimum is near 982413.32; a factor of rank 10 had 982413.55.
        assert result.lower <= 982413.4104
        assert result.upper >= 982413.3208
        # The proof is about an exact kernel: that of floats is as near as this condition allows.
        assert violation(problem, result.kernel) <= 1e-5
        assert np.linalg.eigvalsh(result.kernel)[0] >= -1e-10


class TestNewPoints:
    @given(generators, st.booleans())
    def test_kernel_function_recovers_training_points_and_stays_psd(
        self, rng: np.random.Generator, slack: bool
    ) -> None:
        everything = radial_gram(rng, 14)
        problem = by_classes(rng, 10, 1.0 if slack else None, everything[:10, :10])
        result = solved(problem)
        function = problem.extend(result.point)
        np.testing.assert_allclose(function.cross(everything[:10, :10]), result.kernel, atol=1e-9)
        cross, new = (
            function.cross(everything[10:, :10]),
            function.among(everything[10:, :10], everything[10:, 10:]),
        )
        joint = np.block([[result.kernel, cross.T], [cross, new]])
        assert np.linalg.eigvalsh(joint)[0] >= -1e-10

    def test_features_give_the_same_function(self) -> None:
        rng = np.random.default_rng(1)
        F = rng.normal(size=(12, 12)) / 4
        K = F @ F.T
        similar, dissimilar = class_pairs(np.arange(9) % 2)
        matrix = LogDetPairs(K[:9, :9], similar, dissimilar, 1.0, 1.2)
        features = LogDetPairs(LowRank(F[:9]), similar, dissimilar, 1.0, 1.2)
        one = matrix.extend(solved(matrix, tol=1e-10).point).cross(K[9:, :9])
        other = features.extend(solved(features, tol=1e-10).point).cross(F[9:], F[:9])
        np.testing.assert_allclose(one, other, atol=1e-5)


class TestDual:
    @given(generators, st.booleans())
    def test_gradients_and_curvature_are_derivatives(
        self, rng: np.random.Generator, slack: bool
    ) -> None:
        dual = by_classes(rng, 6, 3.0 if slack else None).dual
        x, step = rng.uniform(0, 0.1, dual.size), 1e-5
        every = np.arange(dual.size)
        g = dual.gradient(x).copy()
        H = PairEvaluation.at(dual.constraints, x).hessian(every)
        for c in every[:4]:
            e = step * (every == c)
            assert (dual.value(x + e) - dual.value(x - e)) / (2 * step) == pytest.approx(
                g[c], abs=1e-6
            )
            np.testing.assert_allclose(
                (dual.gradient(x + e) - dual.gradient(x - e)) / (2 * step), H[c], atol=1e-5
            )

    @given(generators, st.booleans())
    def test_model_gives_each_pair_alone_its_exact_step(
        self, rng: np.random.Generator, slack: bool
    ) -> None:
        dual = by_classes(rng, 6, 3.0 if slack else None).dual
        evaluation = dual.near(rng.uniform(0, 0.1, dual.size))
        for c in range(dual.size):
            rows = dual.rows(evaluation.x)
            moved = rows.project(c)
            newton = -evaluation.gradient[c] / evaluation.model(np.array([c]))[0, 0]
            assert moved == pytest.approx(max(newton, -evaluation.x[c]), rel=1e-9, abs=1e-12)

    @given(generators, st.floats(0, 3), st.booleans())
    def test_bracket_holds_from_anywhere(
        self, rng: np.random.Generator, size: float, slack: bool
    ) -> None:
        problem = by_classes(rng, 8, 2.0 if slack else None)
        result = solved(problem)
        rough = klopt.Point(
            {}, {n: v + size * rng.normal(size=v.shape) for n, v in result.point.dual.items()}
        )
        bracket = problem.bracket(rough)
        assert bracket.lower <= result.upper + 1e-9
        assert bracket.upper >= result.lower - 1e-9
        assert np.isfinite(bracket.upper)
        if not slack:
            assert violation(problem, problem.kernel(bracket.point)) <= 1e-8


@pytest.mark.slow
def test_many_pairs_are_proven_optimal() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=150)
    X = rng.normal(size=(150, 10)) + 0.7 * y[:, None]
    K0 = np.exp(-np.sum((X[:, None] - X) ** 2, axis=2) / 20)
    similar, dissimilar = class_pairs(y)
    d = squared_distances(K0, *np.triu_indices(150, 1))
    problem = LogDetPairs(K0, similar, dissimilar, *np.percentile(d, [10, 90]))
    assert len(similar) + len(dissimilar) == 11175
    result = solved(problem, "sparse_newton", 1e-8)
    tight = np.count_nonzero(result.point.similar) + np.count_nonzero(result.point.dissimilar)
    assert tight < 1500
    assert violation(problem, result.kernel) <= 1e-8


BAD = [
    ({"K0": [[1.0, 0.5], [0.4, 1.0]]}, "K0 is not symmetric"),
    ({"K0": [[1.0, 2.0], [2.0, 1.0]]}, "K0 is not positive semidefinite"),
    ({"K0": [[1.0, np.nan], [np.nan, 1.0]]}, "K0"),
    ({"similar": [(1, 1)]}, r"similar\[0\] is \(1, 1\); expected two different points from 0 to 1"),
    ({"similar": [(0, 1), (0, 2)]}, r"similar\[1\] is \(0, 2\)"),
    ({"similar": [(0, -1)]}, r"similar\[0\] is \(0, -1\)"),
    ({"similar": [(0.0, 1.0)]}, "expected a list of pairs"),
    ({"dissimilar": [(0, 5)]}, r"dissimilar\[0\] is \(0, 5\)"),
    ({"similar": [], "dissimilar": []}, "both lists of pairs are empty"),
    ({"upper": -1.0}, "upper is -1; no kernel"),
    ({"upper": 0.0}, "upper is 0; no kernel"),
    ({"upper": [1.0, 2.0]}, "upper"),
    ({"upper": np.nan}, "upper"),
    ({"lower": -0.5}, "lower is -0.5; a squared distance is not negative"),
    ({"slack": 0.0}, "slack is 0.0; expected a positive number"),
    ({"slack": -1.0}, "slack is -1.0; expected a positive number"),
    ({"slack": np.nan}, "slack is nan"),
]


@pytest.mark.parametrize(("change", "words"), BAD)
def test_bad_input_is_named(change: dict[str, object], words: str) -> None:
    good = {
        "K0": np.eye(2),
        "similar": [(0, 1)],
        "dissimilar": [],
        "upper": 1.0,
        "lower": 1.0,
        "slack": None,
    }
    with pytest.raises(InvalidProblem, match=words):
        LogDetPairs(**{**good, **change})


def test_bad_constraints_are_named() -> None:
    one = np.array([1.0])
    with pytest.raises(InvalidProblem, match="must name the 1 pairs"):
        DistanceConstraints(np.eye(2), np.array([0, 1]), np.array([1, 0]), one, one)
    with pytest.raises(InvalidProblem, match="sign must hold"):
        DistanceConstraints(np.eye(2), np.array([0]), np.array([1]), 2 * one, one)
