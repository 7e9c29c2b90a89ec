"""Bounds from approximate points enclose the optimum, and are tight where the point is good."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, strategies as st
from proofs import dual_bound, enclose, is_refuted, primal_bound
from scipy import sparse
from strategies import at_most, bounded_pairs, exact_value, generators, known_pairs

from klopt.conformance.instances import Instance
from klopt.model.cones import Cones, svec
from klopt.model.cones.norms import block_column_norms, block_norms, equilibrate
from klopt.model.cones.power import exponents
from klopt.model.forms import ConeForm
from klopt.proof.cone_lower_bound import lower_bound
from klopt.proof.cone_witnesses import DualWitness
from klopt.proof.statement import ConeStatement
from klopt.proof.time_budget import budget
from klopt.witness.cone_interior import centre, scaling_at
from klopt.witness.corrections import DualCorrection
from klopt.witness.least_norm import TooLarge, least_distance, least_norm, nearest

KINDS = ("lp", "qp", "socp", "sdp", "exp", "power")
ROUNDING = 1e-9
"""Curved programs are built with rounding: so much their optimum may differ from the value built."""

anything = st.one_of(
    *map(known_pairs, KINDS),
    bounded_pairs(quadratic=False),
    bounded_pairs(quadratic=True),
)
levels = st.sampled_from((0.0, 1e-12, 1e-9, 1e-6, 1e-3, 1.0, 100.0))
E11, E12, E22 = np.diag([1.0, 0.0]), np.array([[0.0, 1.0], [1.0, 0.0]]), np.diag([0.0, 1.0])


def shaken(
    instance: Instance, rng: np.random.Generator, level: float
) -> tuple[np.ndarray, np.ndarray]:
    assert instance.x is not None
    assert instance.y is not None
    x = instance.x + level * rng.normal(size=instance.x.size)
    y = instance.y + level * rng.normal(size=instance.y.size)
    return x, y


def holds(lower: float, upper: float, instance: Instance) -> bool:
    """Whether the optimum lies between the ends: exactly, where it is known exactly."""
    if not instance.form.cones.features:
        return bool(lower <= exact_value(instance.form, instance.x) <= upper)
    slack = ROUNDING * (1 + abs(instance.value))
    return bool(lower - slack <= instance.value <= upper + slack)


def lmi(c: list[float], F_0: np.ndarray, *F: np.ndarray) -> ConeForm:
    """Minimise c'x subject to sum x_i F_i - F_0 psd."""
    return ConeForm(c, -np.column_stack([svec(M) for M in F]), -svec(F_0), Cones(psd=(len(F_0),)))


E3 = np.diag([0.0, 0.0, 1.0])
ILL_POSED = {
    "duality gap": (lmi([1, 0], -E3, np.pad(E12, (0, 1)) + E3, np.diag([0.0, 1.0, 0.0])), 0.0),
    "weakly infeasible": (lmi([1], -E12, E11), np.inf),
    "not attained": (lmi([1, 0], -E12, E11, E22), 0.0),
    "weakly infeasible cone": (
        ConeForm([1], [[-1], [-1], [0]], [0, 0, 1], Cones(soc=(3,))),
        np.inf,
    ),
    "only point": (
        ConeForm([1, 1], [[-1, 0], [0, 1], [1, 0], [0, 1]], np.zeros(4), Cones(soc=(2, 2))),
        0.0,
    ),
}


class TestTheOptimumIsEnclosed:
    @given(anything, generators, levels)
    def test_from_any_point_near_or_far(
        self, instance: Instance, rng: np.random.Generator, level: float
    ) -> None:
        lower, upper, _, _ = enclose(instance.form, *shaken(instance, rng, level))
        assert holds(lower, upper, instance)

    @given(anything, generators)
    def test_whatever_the_multipliers(self, instance: Instance, rng: np.random.Generator) -> None:
        x, _ = shaken(instance, rng, 0.0)
        bound, _ = dual_bound(instance.form, x, 10 * rng.normal(size=instance.form.b.size))
        assert holds(bound, np.inf, instance)

    @pytest.mark.parametrize(("form", "optimum"), ILL_POSED.values(), ids=ILL_POSED.keys())
    @at_most(10)
    @given(generators, st.integers(0, 12))
    def test_where_rounding_is_worth_much(
        self, form: ConeForm, optimum: float, rng: np.random.Generator, power: int
    ) -> None:
        """Points and multipliers that run off to infinity make wrong values look feasible."""
        x, y = rng.normal(size=form.c.size), rng.normal(size=form.b.size)
        x[-1], y[0] = abs(x[-1]) * 10.0**power, abs(y[0])
        y[-1] = abs(y[-1]) * 10.0**power
        lower, upper, _, _ = enclose(form, x, y)
        assert lower <= optimum <= upper


class TestTheBoundsAreTight:
    @pytest.mark.parametrize("kind", KINDS)
    @given(st.data())
    def test_at_the_solution(self, kind, data) -> None:
        instance = data.draw(known_pairs(kind))
        lower, upper, _, _ = enclose(instance.form, instance.x, instance.y)
        narrow = 1e-11 if kind in ("lp", "qp") else 1e-9
        assert upper - lower <= narrow * (1 + abs(instance.value))

    @pytest.mark.parametrize("quadratic", [False, True])
    @given(st.data(), generators)
    def test_near_the_solution_of_a_linear_or_quadratic_program(self, quadratic, data, rng) -> None:
        """Where P is singular the dual may be degenerate: then only the exact pair is sure to do."""
        instance = data.draw(bounded_pairs(quadratic))
        P = instance.form.P
        singular = P is not None and np.linalg.matrix_rank(P.toarray()) < P.shape[0]
        lower, upper, _, _ = enclose(
            instance.form, *shaken(instance, rng, 0.0 if singular else 1e-10)
        )
        assert upper - lower <= 1e-6 * (1 + abs(instance.value))

    @given(generators, st.integers(2, 8))
    def test_bounds_of_variables_are_used(self, rng, n) -> None:
        """In a box any y proves the minimum of the Lagrangian over the box, less rounding."""
        low, high = -rng.uniform(0, 2, n), rng.uniform(0, 2, n)
        A = np.vstack([rng.normal(size=(1, n)), -np.eye(n), np.eye(n)])
        b = np.concatenate((rng.normal(size=1), -low, high))
        c, y = rng.normal(size=n), np.append(rng.uniform(0, 1), np.zeros(2 * n))
        statement = ConeStatement.of_form(ConeForm(c, A, b, Cones(nonneg=2 * n + 1)))
        bound = lower_bound(statement, DualWitness(np.zeros(n), y)).value
        gradient = c + A[0] * y[0]
        lagrangian = -b[0] * y[0] + np.minimum(gradient * low, gradient * high).sum()
        assert bound == pytest.approx(lagrangian, abs=1e-12)

    @given(generators, st.integers(2, 4))
    def test_near_the_nearest_point_of_a_ball(self, rng: np.random.Generator, n: int) -> None:
        """Minimise |x|^2 / 2 - a'x over |x| <= 1 < |a|: x = a / |a|, y = (|a| - 1) (1, -x), the value 1/2 - |a|."""
        a = rng.normal(size=n)
        size = float(np.linalg.norm(a)) + 1.5
        x = a / np.linalg.norm(a)
        form = ConeForm(
            -size * x,
            np.vstack([np.zeros(n), -np.eye(n)]),
            np.eye(n + 1)[0],
            Cones(soc=(n + 1,)),
            np.eye(n),
        )
        y = (size - 1) * np.concatenate([[1.0], -x])
        ball = Instance("ball", form, value=0.5 - size, x=x, y=y)
        lower, upper, _, _ = enclose(form, *shaken(ball, rng, 1e-4))
        slack = ROUNDING * (1 + size)
        assert ball.value - 1e-2 <= lower <= ball.value + slack
        assert ball.value - slack <= upper <= ball.value + 1e-2


@pytest.mark.parametrize("kind", KINDS)
@at_most(10)
@given(data=st.data(), rng=generators)
def test_a_repair_that_would_cost_too_much_leaves_true_bounds(
    kind: str, data: st.DataObject, rng
) -> None:
    instance = data.draw(known_pairs(kind))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("klopt.witness.corrections.MAX_DENSE_ENTRIES", 0)
        patch.setattr("klopt.witness.least_norm.MAX_SPARSE_ENTRIES", 0)
        patch.setattr("klopt.witness.least_norm.MAX_DENSE_FLOPS", 0.0)
        lower, upper, _, _ = enclose(instance.form, *shaken(instance, rng, 1e-3))
    assert holds(lower, upper, instance)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data(), rng=generators)
def test_a_check_whose_time_budget_is_exhausted_leaves_true_bounds(
    kind: str, data: st.DataObject, rng
) -> None:
    instance = data.draw(known_pairs(kind))
    form, (x, y) = instance.form, shaken(instance, rng, 1e-3)
    with budget(time.perf_counter() - 1.0):
        lower, upper, _, _ = enclose(form, x, y)
    assert holds(lower, upper, instance)
    repaired = DualCorrection(form, np.arange(form.c.size))
    with budget(time.perf_counter() - 1.0):
        assert repaired.step(x, y, form.c, np.zeros(form.b.size, dtype=bool)) is None


def test_a_step_that_could_not_be_factored_is_not_scaled_for() -> None:
    form = ConeForm(np.ones(400), np.ones((7260, 400)), np.ones(7260), Cones(psd=(120,)))
    with pytest.raises(TooLarge):
        DualCorrection(form, np.arange(400)).refuse_costly(np.arange(400), max_flops=1e8)
    DualCorrection(form, np.arange(400)).refuse_costly(np.arange(400))


class TestWhatComesBack:
    @given(anything, generators, levels)
    def test_multipliers_prove_their_bound(self, instance, rng, level) -> None:
        form = instance.form
        x, y = shaken(instance, rng, level)
        bound, better = dual_bound(form, x, y)
        assert form.cones.dual_distance(better) <= 1e-12 * (1 + np.abs(better).max())
        if np.isfinite(bound) and form.P is None:
            again, _ = dual_bound(form, x, better)
            assert again >= bound - 1e-9 * (1 + abs(bound))

    @given(anything, generators, levels)
    def test_the_point_is_feasible_and_has_that_value(self, instance, rng, level) -> None:
        form = instance.form
        value, point = primal_bound(form, shaken(instance, rng, level)[0])
        if np.isfinite(value):
            s = form.b - form.A @ point
            assert form.cones.distance(s) <= 1e-11 * (
                1 + np.abs(form.b).max() + (abs(form.A) @ np.abs(point)).max()
            )
            assert form.value(point) <= value

    @pytest.mark.parametrize("number", [np.nan, np.inf])
    def test_nan_and_infinity_prove_nothing(self, number) -> None:
        form = ConeForm([1.0], [[-1.0]], [0.0], Cones(nonneg=1))
        assert dual_bound(form, np.array([number]), np.ones(1))[0] == -np.inf
        assert dual_bound(form, np.ones(1), np.array([number]))[0] == -np.inf
        assert primal_bound(form, np.array([number]))[0] == np.inf
        assert not is_refuted(form, np.array([number]))

    def test_no_rows_and_no_variables(self) -> None:
        flat = ConeForm([0.0, 0.0], np.zeros((0, 2)), [], Cones(), np.eye(2))
        lower, upper, _, _ = enclose(flat, np.zeros(2), np.zeros(0))
        assert -1e-300 < lower <= 0.0 <= upper < 1e-300
        empty = ConeForm([], np.zeros((1, 0)), [1.0], Cones(nonneg=1))
        assert enclose(empty, np.zeros(0), np.zeros(1))[:2] == (0.0, 0.0)

    def test_what_no_bound_takes_costs_the_radius(self) -> None:
        """Minimise c'x over the unit square stated without its sides: only the radius bounds it."""
        form = ConeForm(
            [1.0, -1.0], [[1.0, 1.0], [-1.0, -1.0]], [1.0, 1.0], Cones(nonneg=2), radius=4.0
        )
        bound, _ = dual_bound(form, np.zeros(2), np.zeros(2))
        assert bound == pytest.approx(-4.0)


class TestFarkas:
    @given(generators, st.integers(2, 8))
    def test_a_combination_of_rows_without_solution_is_recognised(self, rng, n) -> None:
        """y'A = 0 and b'y = -1 exactly, with y = 1; the vector handed in is off."""
        A = rng.integers(-9, 10, size=(n + 2, n)).astype(float)
        A[-1] = -A[:-1].sum(axis=0)
        b = rng.integers(-9, 10, size=n + 2).astype(float)
        b[-1] = -b[:-1].sum() - 1
        form = ConeForm(np.ones(n), A, b, Cones(nonneg=n + 2))
        assert is_refuted(form, 1 + 1e-9 * rng.normal(size=n + 2))

    def test_bounds_that_cross_are_a_proof_by_themselves(self) -> None:
        form = ConeForm([0.0], [[2.0], [-1.0]], [1.0, -1.0], Cones(nonneg=2))  # x <= 1/2, x >= 1
        assert is_refuted(form, np.zeros(2))

    @pytest.mark.parametrize("upper", [1.0, np.nextafter(1.0, 0.0)])
    def test_bounds_that_cross_by_one_unit_in_the_last_place_contradict(self, upper) -> None:
        form = ConeForm([0.0], [[1.0], [-1.0]], [upper, -1.0], Cones(nonneg=2))
        assert is_refuted(form, np.ones(2)) == (upper < 1)

    @given(generators)
    def test_a_feasible_program_has_none(self, rng) -> None:
        form = ConeForm(
            [0.0, 0.0], [[-1.0, -1.0], [1.0, 0.0], [0.0, 1.0]], [-2.0, 1.0, 1.0], Cones(nonneg=3)
        )
        for y in (np.ones(3), np.ones(3) + 1e-15 * rng.normal(size=3), rng.normal(size=3)):
            assert not is_refuted(form, y)


@given(generators)
def test_the_only_point_of_a_polyhedron_is_found(rng) -> None:
    """Nine lines through one point of the plane, three of which leave nothing else: all exact."""
    point = rng.integers(-99, 100, size=2) / 32
    A = np.vstack([[[1, 0], [-3, 2], [-3, -5]], rng.integers(-99, 100, size=(6, 2))]) / 32
    y = rng.integers(0, 9, size=9) / 32
    form = ConeForm(-A.T @ y, A, A @ point, Cones(nonneg=9))
    lower, upper, found, _ = enclose(form, point + 1e-8 * rng.normal(size=2), y)
    assert found.tolist() == point.tolist()
    assert lower == upper == exact_value(form, point)


class TestTheInsideOfTheCones:
    K = Cones(nonneg=2, soc=(1, 4), psd=(3,), exp=2, power=(0.25, (2, 3, 5)))

    def interior(self, rng: np.random.Generator) -> np.ndarray:
        v = self.K.project(rng.normal(size=self.K.size)) + rng.uniform(0.01, 1.0) * centre(self.K)
        return np.asarray(v)

    @given(generators)
    def test_a_unit_ball_fits_into_the_cone(self, rng) -> None:
        v = self.interior(rng)
        u = rng.normal(size=v.size)
        step = scaling_at(self.K, v, np.zeros(0)).apply(0.7 * u / np.linalg.norm(u))
        assert self.K.distance(v + step) <= 1e-12

    @given(generators)
    def test_the_same_holds_for_the_dual_cone(self, rng) -> None:
        v = self.K.project_dual(rng.normal(size=self.K.size)) + 0.1 * centre(self.K)
        u = rng.normal(size=v.size)
        step = scaling_at(self.K, v, np.zeros(0), dual=True).apply(0.7 * u / np.linalg.norm(u))
        assert self.K.dual_distance(v + step) <= 1e-12

    @pytest.mark.parametrize("dual", [False, True])
    @given(generators, st.integers(-13, -6))
    def test_the_ball_fits_however_near_the_boundary_of_an_exponential_cone(
        self, dual, rng, power
    ) -> None:
        """Two of the three curvatures there are 1e13 and 1e26 times the third, which must not drown in them."""
        cone, r = Cones(exp=1), rng.normal()
        edge = np.array([-np.exp(r), (r - 1) * np.exp(r), 1.0] if dual else [r, 1.0, np.exp(r)])
        v = edge + 10.0**power * np.linalg.norm(edge) * centre(cone)
        u = rng.normal(size=3)
        step = scaling_at(cone, v, np.zeros(0), dual=dual).apply(0.7 * u / np.linalg.norm(u))
        outside = cone.dual_distance(v + step) if dual else cone.distance(v + step)
        assert outside <= 1e-15 * np.linalg.norm(v)
        assert np.linalg.norm(step) <= 2 * np.linalg.norm(v)

    @pytest.mark.parametrize("dual", [False, True])
    @given(generators, st.integers(-13, -6))
    def test_the_ball_fits_however_near_the_boundary_of_a_power_cone(
        self, dual, rng, power
    ) -> None:
        cone = Cones(power=(tuple(rng.integers(1, 9, size=rng.integers(2, 5)).tolist()),))
        a = exponents(cone.power[0])
        x = rng.uniform(0.5, 2.0, a.size)
        edge = np.append(x * a if dual else x, rng.choice([-1.0, 1.0]) * np.prod(x**a))
        v = edge + 10.0**power * np.linalg.norm(edge) * centre(cone)
        u = rng.normal(size=v.size)
        step = scaling_at(cone, v, np.zeros(0), dual=dual).apply(0.7 * u / np.linalg.norm(u))
        outside = cone.dual_distance(v + step) if dual else cone.distance(v + step)
        assert outside <= 1e-15 * np.linalg.norm(v)
        assert np.linalg.norm(step) <= 2 * np.linalg.norm(v)

    @given(generators)
    def test_the_inverse_undoes_it(self, rng) -> None:
        v, u = self.interior(rng), rng.normal(size=(self.K.size, 3))
        there = scaling_at(self.K, v, np.zeros(0)).apply(u)
        back = scaling_at(self.K, v, np.zeros(0), inverse=True).apply(there)
        assert np.abs(back - u).max() <= 1e-7

    def test_sparse_and_dense_columns_are_moved_alike(self) -> None:
        rng = np.random.default_rng(0)
        W = scaling_at(self.K, self.interior(rng), np.zeros(0))
        U = rng.normal(size=(self.K.size, 4))
        assert np.allclose(W.apply(sparse.csr_array(U)), W.apply(U), atol=1e-14)
        assert np.allclose(W.apply(U)[:, 0], W.apply(U[:, 0]), atol=1e-14)

    @given(generators)
    def test_products_are_bounded_cone_by_cone(self, rng) -> None:
        A, y = sparse.csc_array(rng.normal(size=(self.K.size, 3))), rng.normal(size=self.K.size)
        assert np.all(
            np.abs(A.T @ y) <= block_column_norms(self.K, A).T @ block_norms(self.K, y) + 1e-12
        )

    @given(generators)
    def test_equilibrated_entries_are_near_one(self, rng) -> None:
        row_scales = 10.0 ** rng.integers(-4, 5, (5, 1))
        column_scales = 10.0 ** rng.integers(-4, 5, 4)
        A = sparse.csc_array(rng.normal(size=(5, 4)) * row_scales * column_scales)
        r, c = equilibrate(Cones(nonneg=5), A)
        scaled = abs(sparse.diags_array(r) @ A @ sparse.diags_array(c)).toarray()
        assert scaled.max() <= 10
        assert scaled.max(axis=0).min() >= 0.1


class TestLeastNorm:
    @given(generators, st.integers(1, 6), st.integers(1, 9))
    def test_the_step_is_the_pseudo_inverse_times_the_right_hand_side(
        self, rng, rows, columns
    ) -> None:
        B = rng.normal(size=(rows, columns))
        B[-1] = B[0]  # rows may depend on each other where they agree
        g = B @ rng.normal(size=columns)
        assert np.allclose(least_norm(B)(g), np.linalg.pinv(B) @ g, atol=1e-8)

    @pytest.mark.slow
    def test_large_sparse_systems_are_solved_too(self) -> None:
        rng = np.random.default_rng(1)
        B = sparse.random_array(
            (1500, 2500), density=0.002, rng=rng, format="csr"
        ) + sparse.eye_array(1500, 2500)
        B = sparse.vstack([B, B[:3]], format="csr")
        g = B @ rng.normal(size=2500)
        u = least_norm(B)(g)
        assert np.abs(B @ u - g).max() <= 1e-12
        by_lsqr = sparse.linalg.lsqr(B, g, atol=1e-14, btol=1e-14, iter_lim=5000)[0]
        assert np.linalg.norm(u) <= np.linalg.norm(by_lsqr) + 1e-6

    @given(generators)
    def test_the_nearest_point_of_a_subspace_is_stationary(self, rng) -> None:
        M = rng.normal(size=(9, 6))
        G = rng.normal(size=(2, 6))
        h = rng.normal(size=9)
        g = rng.normal(size=2)
        for kind in (np.asarray, sparse.csr_array):
            d = nearest(kind(M), kind(G), np.zeros(6))(h, g)
            assert np.allclose(G @ d, g, atol=1e-12)
            gradient = M.T @ (M @ d - h)
            assert np.abs(gradient - G.T @ np.linalg.lstsq(G.T, gradient)[0]).max() <= 1e-10

    @given(generators)
    def test_the_least_distance_is_the_minimum(self, rng) -> None:
        E, G = rng.normal(size=(2, 6)), rng.normal(size=(5, 6))
        inside = rng.normal(size=6)
        e, h = E @ inside, G @ inside - rng.uniform(0, 1, 5)
        z = least_distance(E, e, G, h)
        assert np.allclose(E @ z, e, atol=1e-10)
        assert np.all(G @ z >= h - 1e-9)
        # Optimality: no feasible point makes an acute angle with -z.
        assert z @ (inside - z) >= -1e-8

    def test_what_costs_too_much_is_not_begun(self) -> None:
        with pytest.raises(TooLarge):
            least_distance(np.zeros((1, 5000)), np.zeros(1), np.zeros((1, 5000)), np.ones(1))
