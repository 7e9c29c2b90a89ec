"""The growing working set: the same optimum as the dense method, few looks into H, no surprise in degenerate cases."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, strategies as st

from klopt.arrays import FloatArray
from klopt.model.backend import Settings, Start, Stop
from klopt.model.features import Feature
from klopt.model.forms import SimplexForm
from klopt.model.functions import IntArray, Quadratic
from klopt.model.sets import BoxPlane
from klopt.numerics.box_qp.active_set import solve_box_qp
from klopt.numerics.box_qp.program import Box, BoxQP, SignedGram
from klopt.numerics.working_set import grow, orthant_minimiser
from klopt.solvers.active_set import BACKEND

seeds = st.integers(0, 10_000)
NONE = np.array([], dtype=np.intp)


@dataclass(eq=False)
class Lazy:
    """x'Hx/2 + c'x with H = A'A, which counts how it is looked into."""

    A: FloatArray
    linear: FloatArray
    passes: int = 0
    blocks: list[int] = field(default_factory=list)

    size = property(lambda self: int(self.linear.size))
    feature = property(lambda self: Feature.QUADRATIC)

    def value(self, x: FloatArray) -> float:
        return float(np.square(self.A @ x).sum() / 2 + self.linear @ x)

    def gradient(self, x: FloatArray) -> FloatArray:
        return self.matvec(x) + self.linear

    def matvec(self, x: FloatArray) -> FloatArray:
        self.passes += 1
        return self.A.T @ (self.A @ x)

    def block(self, rows: IntArray, columns: IntArray) -> FloatArray:
        self.blocks.append(max(rows.size, columns.size))
        return self.A[:, rows].T @ self.A[:, columns]

    def diagonal(self) -> FloatArray:
        return np.square(self.A).sum(axis=0)


def prefixes(n: int, points: int = 40, seed: int = 0) -> Lazy:
    """Cumulated positive columns: neighbours are near duplicates, as prefix kernels are."""
    rng = np.random.default_rng(seed)
    A = np.cumsum(
        rng.exponential(size=(points, n)) * np.exp(-np.arange(n) / n), axis=1
    ) / np.arange(1, n + 1)
    return Lazy(A, -A.T @ np.maximum(rng.normal(1.0, 1.0, points), 0.0))


def residual(f: Lazy | Quadratic, x: FloatArray) -> float:
    """The worst broken condition of optimality over the orthant, relative to the terms of the gradient."""
    g = f.gradient(x)
    scale = np.abs(f.linear).max() + np.abs(g - f.linear).max()
    return float(max(-g.min(), np.abs(g[x > 0]).max(initial=0.0), -x.min()) / (scale or 1.0))


def orthant(n: int) -> FloatArray:
    return np.full(n, np.inf)


@given(seeds, st.sampled_from([10, 100, 300]), st.booleans())
def test_the_conditions_of_optimality_hold_to_rounding(seed: int, n: int, dense: bool) -> None:
    f: Lazy | Quadratic = prefixes(n, seed=seed)
    f = Quadratic(f.A.T @ f.A, f.linear) if dense else f
    found = grow(f, orthant(n), NONE)
    assert found is not None
    assert found.stop is Stop.OPTIMAL
    assert residual(f, found.x) <= 1e-12
    assert found.error <= 1e-12
    assert f.value(found.x) == pytest.approx(found.value, rel=1e-12)


@given(seeds, st.sampled_from([0.3, np.inf]))
def test_it_agrees_with_the_dense_method_on_unstructured_programs(seed: int, top: float) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    A = rng.normal(size=(int(rng.integers(1, 2 * n + 1)), n))
    f, upper = Lazy(A, -A.T @ rng.normal(1.0, 1.0, len(A))), np.full(n, top)
    found = grow(f, upper, NONE)
    assert found is not None
    exact = solve_box_qp(BoxQP(SignedGram(A.T @ A), f.linear, Box(np.zeros(n), upper)))
    assert found.value == pytest.approx(exact.value, rel=1e-9, abs=1e-9)
    assert (found.x >= 0).all()
    assert (found.x <= upper).all()


def test_few_passes_over_all_variables_and_small_blocks_only() -> None:
    f = prefixes(3000)
    found = grow(f, orthant(3000), NONE)
    assert found is not None
    assert found.stop is Stop.OPTIMAL
    assert f.passes == found.iterations <= 8
    assert max(f.blocks) <= 64


@given(seeds)
def test_a_start_at_the_optimum_needs_one_pass(seed: int) -> None:
    f = prefixes(300, seed=seed)
    cold = grow(f, orthant(300), NONE)
    assert cold is not None
    f.passes = 0
    warm = grow(f, orthant(300), np.flatnonzero(cold.x))
    assert warm is not None
    assert f.passes <= 2
    assert warm.value == pytest.approx(cold.value, rel=1e-13)


@given(seeds)
def test_repeated_and_zero_columns_change_nothing(seed: int) -> None:
    f = prefixes(80, seed=seed)
    rng = np.random.default_rng(seed)
    order = rng.permutation(np.repeat(np.arange(81), 3))
    A, c = np.hstack([f.A, np.zeros((len(f.A), 1))]), np.append(f.linear, 0.0)
    twice = Lazy(A[:, order], c[order])
    plain, found = grow(f, orthant(80), NONE), grow(twice, orthant(order.size), NONE)
    assert plain is not None
    assert found is not None
    assert found.value == pytest.approx(plain.value, rel=1e-12)
    assert residual(twice, found.x) <= 1e-12


def test_of_equal_columns_the_cheaper_is_taken() -> None:
    """The null direction leads from one to the other; Cholesky alone would call the block singular."""
    H = np.array([[1.0, 1.0, 0.5], [1.0, 1.0, 0.5], [0.5, 0.5, 1.0]])
    x = orthant_minimiser(H, np.array([-1.0, -1.0 - 1e-3, -0.1]), np.zeros(3))
    assert x == pytest.approx([0.0, 1.001, 0.0], abs=1e-12)


@pytest.mark.parametrize("c", [np.zeros(3), np.ones(3), np.array([0.0, 1.0, 2.0])])
def test_nothing_pays_where_c_is_nonnegative(c: FloatArray) -> None:
    f = Lazy(np.eye(3), c)
    found = grow(f, orthant(3), NONE)
    assert found is not None
    assert found.stop is Stop.OPTIMAL
    assert not found.x.any()
    assert f.passes == 0


def test_a_ray_is_seen() -> None:
    """A column of zeros with a negative cost, and two columns that cancel and have one together."""
    for columns, c in (([1.0, 0.0], [-1.0, -1.0]), ([1.0, 1.0, -1.0], [-1.0, -1.0, 0.5])):
        A, linear = np.zeros((1, 300)), np.ones(300)
        A[0, 100 : 100 + len(c)], linear[100 : 100 + len(c)] = columns, c
        form = SimplexForm(Lazy(A, linear), BoxPlane(np.zeros(300), orthant(300)))
        assert BACKEND.run(form, Settings()).stop is Stop.UNBOUNDED


def test_an_upper_bound_stops_a_ray() -> None:
    f = Lazy(np.array([[1.0, 0.0]]), np.array([-1.0, -1.0]))
    found = grow(f, np.array([np.inf, 7.0]), NONE)
    assert found is not None
    assert found.x == pytest.approx([1.0, 7.0])


def test_many_nonzeros_are_left_to_the_dense_method() -> None:
    rng = np.random.default_rng(0)
    n = 300
    f = Lazy(np.eye(n) + 0.01 * rng.normal(size=(n, n)), -rng.uniform(1.0, 2.0, n))
    assert grow(f, orthant(n), NONE) is None
    form = SimplexForm(f, BoxPlane(np.zeros(n), orthant(n)))
    answer = BACKEND.run(form, Settings())
    assert answer.stop is Stop.OPTIMAL
    assert residual(f, answer.x) <= 1e-11


@pytest.mark.parametrize("seed", range(5))
def test_klopt_proves_the_optimum_over_the_orthant(seed: int) -> None:
    f = prefixes(200, seed=seed)
    form = SimplexForm(f, BoxPlane(np.zeros(200), orthant(200)))
    answer = BACKEND.run(form, Settings())
    assert form.measure(answer.x).gap <= 1e-10
    assert answer.history[-1].upper - answer.history[-1].lower <= 1e-10 * abs(
        answer.history[-1].upper
    )


@given(seeds, st.floats(0.3, 3.0))
def test_the_bound_over_the_orthant_holds_at_any_point(seed: int, length: float) -> None:
    f = prefixes(50, seed=seed)
    form = SimplexForm(f, BoxPlane(np.zeros(50), orthant(50)))
    best = grow(f, orthant(50), NONE)
    assert best is not None
    x = length * (best.x + 0.01 * np.random.default_rng(seed).random(50))
    lower = form.lower_bound(x)
    assert lower > -np.inf
    assert lower <= best.value * (1 - 1e-13)


def test_limits_and_starts() -> None:
    f = prefixes(500)
    form = SimplexForm(f, BoxPlane(np.zeros(500), orthant(500)))
    assert BACKEND.run(form, Settings(max_iter=1)).stop is Stop.ITERATION_LIMIT
    assert BACKEND.run(form, Settings(time_limit=1e-9)).stop is Stop.TIME_LIMIT
    exact = BACKEND.run(form, Settings())
    for start in (exact.x, np.ones(500), np.eye(500)[7]):
        again = BACKEND.run(form, Settings(), Start(start))
        assert again.stop is Stop.OPTIMAL
        assert f.value(again.x) == pytest.approx(f.value(exact.x), rel=1e-12)


@given(seeds, st.sampled_from([1e-10, 1e10]))
def test_units_do_not_matter(seed: int, unit: float) -> None:
    f = prefixes(100, seed=seed)
    first = grow(f, orthant(100), NONE)
    second = grow(Lazy(f.A * unit, f.linear * unit), orthant(100), NONE)
    assert first is not None
    assert second is not None
    assert second.value == pytest.approx(first.value, rel=1e-10)


@dataclass(eq=False)
class Nested(Lazy):
    """A quadratic that takes its first variables for all that matter, rightly or not."""

    count: int = 0
    parts: list[Lazy] = field(default_factory=list)

    def leading(self) -> Lazy:
        self.parts.append(Lazy(self.A[:, : self.count], self.linear[: self.count]))
        return self.parts[-1]


@given(seeds, st.sampled_from([5, 60, 390]))
def test_a_head_start_in_the_first_variables_does_not_change_the_optimum(
    seed: int, count: int
) -> None:
    f = prefixes(400, seed=seed)
    plain = grow(f, orthant(400), NONE)
    found = grow(Nested(f.A, f.linear, count=count), orthant(400), NONE)
    assert plain is not None
    assert found is not None
    assert found.stop is Stop.OPTIMAL
    assert found.value == pytest.approx(plain.value, rel=1e-10)
    assert found.x.size == found.gradient.size == 400


def test_a_right_head_start_leaves_one_pass_over_all_variables() -> None:
    f = prefixes(400)
    plain = grow(f, orthant(400), NONE)
    assert plain is not None
    nested = Nested(f.A, f.linear, count=int(np.flatnonzero(plain.x)[-1]) + 1)
    found = grow(nested, orthant(400), NONE)
    assert found is not None
    assert np.flatnonzero(found.x).tolist() == np.flatnonzero(plain.x).tolist()
    assert nested.passes == 1
    assert nested.parts[0].passes > 1


def test_limits_hold_in_a_head_start_too() -> None:
    f = prefixes(500)
    form = SimplexForm(Nested(f.A, f.linear, count=100), BoxPlane(np.zeros(500), orthant(500)))
    assert BACKEND.run(form, Settings(max_iter=1)).stop is Stop.ITERATION_LIMIT
    assert BACKEND.run(form, Settings(time_limit=1e-9)).stop is Stop.TIME_LIMIT
