"""Bregman's projections and Newton's method on dual functions of many rows."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, strategies as st
from strategies import generators, radial_gram

import klopt
from klopt.engine.registry import backend_named
from klopt.errors import InvalidSettings
from klopt.model.backend import Settings, Stop
from klopt.model.features import Feature
from klopt.model.forms import SimplexForm, Start
from klopt.model.functions import DualFunction
from klopt.model.sets import BoxPlane
from klopt.numerics.low_rank_qp import solve_low_rank_qp
from klopt.problems import LogDetPairs
from klopt.problems._logdet.constraints import DistanceConstraints
from klopt.problems._logdet.function import LogDetDual
from klopt.proof.certificate import Verdict

BOTH = ["bregman", "sparse_newton"]


def two_pairs() -> LogDetPairs:
    """After d_13 <= 0.1 the constraint d_12 <= 1.9 holds by itself: its multiplier must return to 0."""
    return LogDetPairs(np.eye(3), [(0, 1), (0, 2)], [], [1.9, 0.1], 1.0)


def classes(rng: np.random.Generator, n: int, slack: float | None = None) -> LogDetPairs:
    i, j = np.triu_indices(n, 1)
    same, pairs = i % 2 == j % 2, np.column_stack((i, j))
    return LogDetPairs(radial_gram(rng, n), pairs[same], pairs[~same], 0.5, 1.4, slack)


@dataclass(frozen=True, eq=False)
class Halfspaces:
    """Minus the dual of: the nearest point to p with Gx <= h. Its rows are projected onto by Hildreth's method."""

    G: np.ndarray
    h: np.ndarray
    p: np.ndarray
    feature: ClassVar[Feature] = Feature.ROWS

    @property
    def size(self) -> int:
        return len(self.h)

    def point(self, x: np.ndarray) -> np.ndarray:
        return self.p - self.G.T @ x

    def value(self, x: np.ndarray) -> float:
        return float(np.sum((self.G.T @ x) ** 2) / 2 - x @ (self.G @ self.p - self.h))

    def gradient(self, x: np.ndarray) -> np.ndarray:
        return self.h - self.G @ self.point(x)

    def near(self, x: np.ndarray) -> HalfspaceSpot:
        return HalfspaceSpot(self, x)

    def rows(self, x: np.ndarray) -> HalfspaceRows:
        return HalfspaceRows(self, x)

    def bound(self, x: np.ndarray) -> float:
        # 0 is strictly feasible (h > 0): the way to it meets the set.
        z = self.point(x)
        t = min(
            1.0,
            float(
                np.min(np.where(self.G @ z > self.h, self.h / np.maximum(self.G @ z, 1e-300), 1.0))
            ),
        )
        return -float(np.sum((t * z - self.p) ** 2) / 2)

    def ray(self, x: np.ndarray | None = None) -> None:
        return None

    def ray_flaw(self, ray: np.ndarray) -> str:
        return "0 is feasible"


@dataclass(frozen=True, eq=False)
class HalfspaceSpot:
    f: Halfspaces
    x: np.ndarray

    @property
    def value(self) -> float:
        return self.f.value(self.x)

    @property
    def gradient(self) -> np.ndarray:
        return self.f.gradient(self.x)

    def model(self, chosen: np.ndarray) -> np.ndarray:
        return self.f.G[chosen] @ self.f.G[chosen].T

    def thin_model(self, chosen: np.ndarray) -> None:
        return None


class HalfspaceRows:
    def __init__(self, f: Halfspaces, x: np.ndarray) -> None:
        self.f, self.x = f, x.copy()
        self.refresh()

    def refresh(self) -> None:
        self.z = self.f.point(self.x)

    def project(self, row: int, corrected: bool = True) -> float:
        g = self.f.G[row]
        eta = max(
            float(g @ self.z - self.f.h[row]) / float(g @ g), -self.x[row] if corrected else 0.0
        )
        self.x[row] += eta
        self.z = self.z - eta * g
        return eta


class TestProjections:
    @given(generators, st.sampled_from(["cyclic", "random"]), st.sampled_from([None, 1.0]))
    def test_every_order_reaches_the_optimum(
        self, rng: np.random.Generator, order: str, slack: float | None
    ) -> None:
        problem = classes(rng, 6, slack)
        best = klopt.solve(problem, "sparse_newton", tol=1e-9).require()
        result = klopt.solve(problem, "bregman", tol=1e-7, raw={"order": order}, seed=3).require()
        assert result.lower <= best.upper + 1e-9
        assert best.lower <= result.upper + 1e-9

    def test_without_correction_the_limit_is_feasible_but_not_optimal(self) -> None:
        # 2.046496 against the optimum 2.045732: the multiplier of the first pair never returns to
        # 0.
        problem = two_pairs()
        right = klopt.solve(problem, "bregman", tol=1e-9).require()
        assert right.value == pytest.approx(2.045732, abs=1e-6)
        assert right.point.similar[0] == pytest.approx(0.0, abs=1e-9)
        wrong = klopt.solve(problem, "bregman", tol=1e-9, raw={"corrected": False})
        assert wrong.verdict is Verdict.FEASIBLE
        assert wrong.upper == pytest.approx(2.046496, abs=1e-6)
        assert wrong.point.similar[0] > 1e-3
        assert wrong.lower <= right.value <= wrong.upper
        assert "without correction" in wrong.explain()

    @given(generators)
    def test_without_correction_it_never_ends_below_the_optimum(
        self, rng: np.random.Generator
    ) -> None:
        problem = classes(rng, 6)
        best = klopt.solve(problem, "sparse_newton", tol=1e-8).require()
        printed = klopt.solve(problem, "bregman", tol=1e-8, max_iter=2000, raw={"corrected": False})
        assert printed.upper >= best.lower - 1e-8

    def test_a_projection_is_the_nearest_kernel_that_satisfies_one_constraint(self) -> None:
        rng = np.random.default_rng(0)
        K0 = radial_gram(rng, 4)
        half = K0[0, 0] - K0[0, 1]
        problem = LogDetPairs(K0, [(0, 1)], [], half, 1.0)
        rows = problem.dual.rows(np.zeros(1))
        assert rows.project(0) > 0
        clarabel = klopt.solve(problem, "clarabel", tol=1e-7).require()
        assert rows.x[0] / half == pytest.approx(clarabel.point.similar[0], rel=1e-4)

    @given(generators)
    def test_rank_one_changes_keep_up_with_the_multipliers(self, rng: np.random.Generator) -> None:
        dual = classes(rng, 6).dual
        rows = dual.rows(np.zeros(dual.size))
        for row in rng.integers(dual.size, size=50).tolist():
            rows.project(row)
        np.testing.assert_allclose(rows._K, dual.near(rows.x).kernel, atol=1e-10)

    @pytest.mark.parametrize("backend", BOTH)
    def test_each_sweep_or_step_falls(self, backend: str) -> None:
        result = klopt.solve(classes(np.random.default_rng(5), 8), backend, tol=1e-9)
        lows = [step.lower for step in result.history]
        assert np.all(np.diff(lows) >= -1e-12)


class TestOtherRows:
    @given(generators, st.integers(2, 6), st.integers(1, 30))
    def test_nearest_point_of_a_polyhedron(self, rng: np.random.Generator, n: int, m: int) -> None:
        f = Halfspaces(rng.normal(size=(m, n)), rng.uniform(0.1, 1.0, m), 3 * rng.normal(size=n))
        assert isinstance(f, DualFunction)
        form = SimplexForm(f, BoxPlane(np.zeros(m), np.full(m, np.inf)))
        values = []
        for name in BOTH:
            answer = backend_named(name).run(form, Settings(tol=1e-8))
            assert answer.stop is Stop.OPTIMAL, answer.native
            assert (f.G @ f.point(answer.x) <= f.h + 1e-3).all()
            values.append(f.value(answer.x))
        assert values[0] == pytest.approx(values[1], abs=1e-6 * (1 + abs(values[1])))


class TestThin:
    @given(generators, st.integers(1, 40), st.integers(1, 6))
    def test_program_of_low_rank_is_solved_as_the_dense_one(
        self, rng: np.random.Generator, n: int, k: int
    ) -> None:
        g, a, V, lower = (
            rng.normal(size=n),
            rng.uniform(0.1, 2, n),
            rng.normal(size=(n, k)),
            -rng.uniform(0, 1, n),
        )
        d = solve_low_rank_qp(g, a, V, lower)
        gradient = g + a * d + V @ (V.T @ d)
        np.testing.assert_allclose(np.minimum(d - lower, gradient), 0.0, atol=1e-9)

    def test_thin_and_full_models_are_one(self) -> None:
        dual = classes(np.random.default_rng(0), 12, slack=2.0).dual
        all_rows = dual.constraints
        few_rows = DistanceConstraints(
            all_rows.R[:3], all_rows.first, all_rows.second, all_rows.sign, all_rows.target, 2.0
        )
        thin = LogDetDual(few_rows)
        evaluation, every = thin.near(np.full(thin.size, 0.05)), np.arange(thin.size)
        a, V = evaluation.thin_model(every)
        np.testing.assert_allclose(np.diag(a) + V @ V.T, evaluation.model(every), atol=1e-12)
        assert dual.near(np.zeros(dual.size)).thin_model(every) is None


class TestSettings:
    @pytest.mark.parametrize("raw", [{"order": "sideways"}, {"corrected": 1}, {"sweeps": 3}])
    def test_bad_options_are_refused(self, raw: dict[str, object]) -> None:
        with pytest.raises(InvalidSettings, match=next(iter(raw))):
            klopt.solve(two_pairs(), "bregman", raw=raw)

    @pytest.mark.parametrize("backend", BOTH)
    def test_a_start_at_the_optimum_stays(self, backend: str) -> None:
        problem = classes(np.random.default_rng(1), 8)
        result = klopt.solve(problem, backend, tol=1e-8).require()
        again = klopt.solve(problem, backend, tol=1e-6, start=result).require()
        assert again.iterations == 0

    @pytest.mark.parametrize("backend", BOTH)
    def test_a_start_outside_the_domain_is_shortened(self, backend: str) -> None:
        problem = classes(np.random.default_rng(1), 6)
        form = problem.formulations()[0].build()
        answer = backend_named(backend).run(
            form, Settings(tol=1e-6), Start(np.full(problem.dual.size, 1e3))
        )
        assert answer.stop is Stop.OPTIMAL

    @pytest.mark.parametrize("backend", BOTH)
    def test_limits_are_kept(self, backend: str) -> None:
        problem = classes(np.random.default_rng(2), 40)
        assert klopt.solve(problem, backend, max_iter=2).iterations <= 2
        began = time.process_time()
        quick = klopt.solve(problem, backend, time_limit=0.05)
        assert time.process_time() - began < 5
        assert quick.lower > -np.inf
