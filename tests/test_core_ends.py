"""Ends that would be false if a term of the core were missing, with their truth in rationals.

The programs have one feasible point, or none: what an end says of them is decided exactly. Data at
underflow, at equality, and factors that are not what they claim to be.
"""

from __future__ import annotations

import math
from fractions import Fraction as Q
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.linalg.lapack
import scipy.sparse.linalg
from scipy import sparse

from klopt.model.cones import Cones
from klopt.model.functions import KernelQuadratic, Quadratic
from klopt.model.sets import BoxPlane, OrderedCone, OrderedSimplex, Simplex
from klopt.proof.cone_infeasibility import is_infeasible
from klopt.proof.cone_lower_bound import lower_bound
from klopt.proof.cone_membership import in_dual_cone
from klopt.proof.cone_upper_bound import upper_bound
from klopt.proof.cone_witnesses import DualWitness, PrimalWitness
from klopt.proof.convexity import curvature_beside
from klopt.proof.enclosure import ELEMENTARY_ULPS, ETA, UNIT_ROUNDOFF, Enclosure, enclose_norm
from klopt.proof.function_bounds import (
    _coefficients,
    _lower_by_cuts,
    _stated,
    _stated_vector,
    _times,
    bounds_of_minimum,
)
from klopt.proof.linear_systems import _smallest_singular_value, shortest_correction
from klopt.proof.log_det import (
    _plus_identity,
    enclose_congruence,
    enclose_log_det,
    enclose_relative_log_det,
)
from klopt.proof.precise_bounds import PreciseWitness, precise_lower_bound, precise_upper_bound
from klopt.proof.set_bounds import _number, _powers, feasible_near, squared_reach
from klopt.proof.statement import ConeStatement, QuadraticConstraint

U = Q(UNIT_ROUNDOFF)


def gamma_n(n: int) -> Q:
    return n * U / (1 - n * U)


def holds(found: Enclosure, *truth: Q) -> bool:
    """Whether an enclosure of a vector holds these numbers."""
    pairs = zip(np.ravel(found.mid).tolist(), np.ravel(found.rad).tolist(), truth, strict=True)
    return all(rad == math.inf or abs(Q(mid) - t) <= Q(rad) for mid, rad, t in pairs)


# ---- lower ends of cone programs


def fixed_at(x: float, P: float, r: float) -> ConeStatement:
    """Minimise 0 for x as given, with P x^2 / 2 <= r: the optimum is 0 if that holds."""
    assert Q(P) * Q(x) ** 2 / 2 <= Q(r)
    rows = sparse.csc_array(np.array([[1.0], [-1.0]]))
    ball = QuadraticConstraint(sparse.csc_array([[P]]), np.zeros(1), r)
    return ConeStatement(np.zeros(1), rows, np.array([x, -x]), Cones(nonneg=2), quadratics=(ball,))


@pytest.mark.parametrize("factor", [5e-324, 1.5e-323, 1e-310, 1e-300])
def test_multipliers_at_underflow_prove_nothing_false(factor: float) -> None:
    """Half of the smallest multiplier is 0 in floats; times w'Pw = 1e308 it is not."""
    curved = fixed_at(1e154, 1.0, 5.05e307), 1e154, factor
    # Not convex: the tangent at 0 lies above -0.2 x^2, by more than underflow says.
    hollow = fixed_at(1e154, -0.4, -1e307), 0.0, factor
    # The square of the reach underflows, the matrix is large.
    small = fixed_at(1e-170, -1e308, -4e-33), 0.0, 1.0
    for statement, w, multiplier in (curved, hollow, small):
        witness = DualWitness(np.array([w]), np.zeros(2), np.array([multiplier]))
        assert lower_bound(statement, witness).value <= 0
        assert not is_infeasible(statement, witness)


@pytest.mark.parametrize("unit", [5e-324, 1e-322, 1e-300, 1.0])
def test_matrices_of_multipliers_at_underflow(unit: float) -> None:
    """svec (1, 2, 1) is [[1, sqrt(2)], [sqrt(2), 1]], at underflow, too: not semidefinite.

    (1, -1.4142, 1) is, so that every x is feasible.
    """
    b = np.array([1e308, -1.4142e308, 1e308]) * (1.0 if unit < 1 else 1e-300)
    statement = ConeStatement(np.zeros(1), sparse.csc_array((3, 1)), b, Cones(psd=(2,)))
    y = unit * np.array([1.0, 2.0, 1.0])
    assert not in_dual_cone(statement, "psd", y)
    assert not is_infeasible(statement, DualWitness(np.zeros(1), y))
    assert lower_bound(statement, DualWitness(np.zeros(1), y)).value <= 0
    # At the boundary, off the diagonal only zeros are floats: (1, 0, 0).
    assert in_dual_cone(statement, "psd", unit * np.array([1.0, 0.0, 0.0]))


@pytest.mark.parametrize("off", [-0.1, -0.01, 0.1])
def test_corrected_points_are_charged_in_the_objective(off: float) -> None:
    """(x + z)^2 / 2 - (x + z), whose minimum is -1/2, from a w with x + z = 1 + off."""
    P = sparse.csc_array(np.ones((2, 2)))
    statement = ConeStatement(-np.ones(2), sparse.csc_array((0, 2)), np.zeros(0), Cones(), P)
    found = lower_bound(statement, DualWitness(np.array([0.5 + off, 0.5]), np.zeros(0)))
    assert -2.0 < found.value <= -0.5


@pytest.mark.parametrize("y", [2.0, 3.0, 3.5, 4.0])
def test_corrected_multipliers_are_charged_in_the_objective(y: float) -> None:
    """10 x with 3 x >= 1 is at least 10/3: the multiplier is 10/3, whatever the witness says."""
    A = sparse.csc_array(np.array([[-3.0]]))
    statement = ConeStatement(np.array([10.0]), A, np.array([-1.0]), Cones(nonneg=1))
    for w in (0.0, 1.0):
        found = lower_bound(statement, DualWitness(np.array([w]), np.array([y])))
        assert Q(1) <= Q(found.value) <= Q(10, 3)


# ---- upper ends of cone programs: the equations have the only solution x = z = 1/3


def moved_by_equations(**parts: object) -> float:
    """The upper end at x = z = 1/4, a twelfth away in both, of programs with more constraints."""
    A = np.array([[3.0, 0.0], [0.0, 3.0]])
    mixed = np.array([[1.0, 1.0], [1.0, -1.0]])
    rows = np.vstack([mixed @ A, np.asarray(parts.pop("A", np.zeros((0, 2))))])
    b = np.concatenate([[2.0, 0.0], np.asarray(parts.pop("b", np.zeros(0)))])
    sizes = parts.pop("cones", {})
    assert isinstance(sizes, dict)
    c = np.asarray(parts.pop("c", np.zeros(2)))
    statement = ConeStatement(
        c,
        sparse.csc_array(rows),
        b,
        Cones(zero=2, **sizes),
        **parts,  # type: ignore[arg-type]
    )
    return upper_bound(statement, PrimalWitness(np.array([0.25, 0.25]))).value


NEAR = (0.5, 0.9, 0.999)
"""Shares of the move: margins that it exceeds."""


@pytest.mark.parametrize("share", NEAR)
def test_inequalities_that_the_solution_violates(share: float) -> None:
    """x + z <= 1/2 + share / 6, and x + z is 2/3."""
    row = {"A": [[1.0, 1.0]], "cones": {"nonneg": 1}}
    assert moved_by_equations(**row, b=[0.5 + share / 6]) == math.inf
    assert moved_by_equations(**row, b=[1.5]) < 1e-300


@pytest.mark.parametrize("share", NEAR)
def test_second_order_cones_that_the_solution_leaves(share: float) -> None:
    """s = (h - x, z): its depth h - x - z falls by 1/6."""
    block = {"A": [[1.0, 0.0], [0.0, -1.0]], "cones": {"soc": (2,)}}
    assert moved_by_equations(**block, b=[0.5 + share / 6, 0.0]) == math.inf
    assert moved_by_equations(**block, b=[1.5, 0.0]) < 1e-300


@pytest.mark.parametrize("share", NEAR)
@pytest.mark.parametrize("plain", [False, True])
def test_semidefinite_cones_that_the_solution_leaves(share: float, plain: bool) -> None:
    """[[h, x + z], [x + z, h]] with x + z = 1/2 at the point shown, and 2/3 at the solution."""
    scale = 1.0 if plain else math.sqrt(2.0)
    block = {"A": [[0.0, 0.0], [-scale, -scale], [0.0, 0.0]], "cones": {"psd": (2,)}}
    edge = 0.5 + share / 6
    assert moved_by_equations(**block, b=[edge, 0.0, edge], plain=plain) == math.inf
    assert moved_by_equations(**block, b=[2.0, 0.0, 2.0], plain=plain) < 1e-300


@pytest.mark.parametrize("share", NEAR)
def test_quadratic_constraints_that_the_solution_violates(share: float) -> None:
    """x^2 / 2 + x + z / 2, linear or not, between its values at 1/4 and at 1/3."""
    q = np.array([1.0, 0.5])
    for p in (0.0, 1.0, 12.0):
        P = sparse.csc_array(np.diag([p, 0.0]))
        here = Q(p) / 32 + Q(3, 8)
        there = Q(p) / 18 + Q(1, 2)
        edge = float(here + Q(share) * (there - here))
        assert moved_by_equations(quadratics=(QuadraticConstraint(P, q, edge),)) == math.inf
        assert moved_by_equations(quadratics=(QuadraticConstraint(P, q, 10.0 + p),)) < 1e-300


@pytest.mark.parametrize("share", NEAR)
def test_declared_bounds_that_the_solution_exceeds(share: float) -> None:
    edge = math.sqrt(2) * (0.25 + share / 12)
    assert moved_by_equations(within=edge) == math.inf
    assert moved_by_equations(within=1.5) < 1e-300


@pytest.mark.parametrize("p", [0.0, 1.0, 100.0])
def test_objectives_change_on_the_way_to_the_solution(p: float) -> None:
    """p x^2 / 2 + c'x at 1/3 in rationals, whatever it is at 1/4."""
    P = sparse.csc_array(np.diag([p, 0.0]))
    for c in ([0.0, 0.0], [1.0, 1.0], [1.0, 0.0], [-4.0, 0.5]):
        truth = Q(p) / 18 + (Q(c[0]) + Q(c[1])) / 3
        assert truth <= Q(moved_by_equations(c=c, P=P))
        assert truth <= Q(moved_by_equations(c=c)) + Q(p) / 18


def test_the_second_order_of_an_objective_is_charged() -> None:
    """p (x - 10)^2 / 2 - 50 p at x = 32/3, from x = 10, where its gradient is 0."""
    A = sparse.csc_array(np.array([[3.0, 3.0], [3.0, -3.0]]))
    P = sparse.csc_array(np.diag([6.0, 0.0]))
    statement = ConeStatement(np.array([-60.0, 0.0]), A, np.array([64.0, 0.0]), Cones(zero=2), P)
    found = upper_bound(statement, PrimalWitness(np.full(2, 10.0))).value
    assert Q(found) >= 3 * Q(2, 3) ** 2 - 300


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_products_that_underflow_still_move_alone(sign: float) -> None:
    """eta (x - z) <= 0 at x = z = 0, z by its bounds; 6 x = 1 moves x, of either sign."""
    rows = np.zeros((7, 3))
    rows[0] = [6.0, 1.0, 0.0]
    rows[1] = [6.0, -1.0, 0.0]
    rows[2] = [sign * ETA, 0.0, -sign * ETA]
    rows[3:5, 0] = 1.0, -1.0
    rows[5:7, 2] = 1.0, -1.0
    for right, proven in ((0.0, False), (1e-300, True)):
        b = np.array([sign, sign, right, 0.3, 0.3, 0.0, 0.0])
        statement = ConeStatement(np.zeros(3), sparse.csc_array(rows), b, Cones(zero=2, nonneg=5))
        found = upper_bound(statement, PrimalWitness(np.zeros(3)))
        assert (found.value < math.inf) is proven


def test_products_that_underflow_still_move() -> None:
    """eta (x - z) <= 0 holds with equality at the point, and is eta / 12 at the solution."""
    rows = [[3.0, 1.0, 0.0], [3.0, -1.0, 0.0], [0.0, 1.0, 4.0], [0.0, -1.0, 4.0]]
    rows += [[ETA, 0.0, -ETA], [1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]
    b = np.array([1.0, 1.0, 1.0, 1.0, 0.0, 0.45, 0.0])
    statement = ConeStatement(
        np.zeros(3), sparse.csc_array(np.array(rows)), b, Cones(zero=4, nonneg=3)
    )
    found = upper_bound(statement, PrimalWitness(np.array([0.25, 0.0, 0.25])))
    assert found.value == math.inf


def test_inequalities_that_contradict_dependent_equations_are_not_met() -> None:
    """x + z = 1, twice, and x + z <= 1/2, which a witness may call an equality."""
    statement = ConeStatement(
        np.zeros(2),
        sparse.csc_array(np.ones((3, 2))),
        np.array([1.0, 1.0, 0.5]),
        Cones(zero=2, nonneg=1),
    )
    for x in ([0.25, 0.25], [0.5, 0.5], [0.5, 0.375]):
        assert upper_bound(statement, PrimalWitness(np.array(x), np.array([2]))).value == math.inf


# ---- corrections of linear systems


def test_the_smallest_singular_value_of_a_diagonal_matrix() -> None:
    """diag(1, 1, c), whose last entry is off by a radius: c - rad at worst, which Lemma S2 attains."""
    rng = np.random.default_rng(0)
    for c in rng.uniform(0.8, 1.0, 200).tolist():
        for rad in (0.0, 0.125):
            radius = np.zeros((3, 3))
            radius[2, 2] = rad
            found = _smallest_singular_value(Enclosure(np.diag([1.0, 1.0, c]), radius))
            assert Q(c) - Q(rad) - 400 * U <= Q(found) <= Q(c) - Q(rad)


def test_singular_values_of_long_rows_charge_each_term() -> None:
    k = 400
    row = np.full((1, k), 0.05 * (1 - 1e-3))
    found = _smallest_singular_value(Enclosure(row, np.zeros_like(row)))
    square = k * Q(float(row[0, 0])) ** 2
    lack = 1 - Q(float((row @ row.T)[0, 0]))
    assert Q(found) ** 2 <= 1 - lack - gamma_n(k) * square
    # The norm of the radii is 1e-3 sqrt(k) = 0.02.
    wide = _smallest_singular_value(Enclosure(row, np.full_like(row, 1e-3)))
    assert Q(wide) <= Q(found) - Q("0.02")


@pytest.mark.parametrize("bits", [18, 20, 21])
def test_nearly_dependent_rows_are_charged_by_the_norm_of_the_inverse(bits: int) -> None:
    """B = [[1, 0], [1, e]]: T = L^-1 exactly, alpha is all rounding, which grows like 1 / e^2."""
    e = 2.0**-bits
    # Halves, as rows of unit size are in [1/2, 1).
    B = np.array([[0.5, 0.0], [0.5, 0.5 * e]])
    r = Enclosure.of(np.array([0.0, 0.5]))
    found = shortest_correction(B, r)
    # ||T||^2, ||B||^2 and ||G|| of Lemma S2, with gamma_2 of BB' and of two products.
    T = 4 * (1 + 2 * Q(2) ** (2 * bits))
    squares = Q(1, 2) + Q(e) ** 2 / 4
    size = Q(1, 2)
    alpha = T * (gamma_n(2) * squares + 2 * gamma_n(2) * size)
    length = Q(2) ** bits
    assert Q(found) ** 2 * (1 - alpha) >= length**2
    assert Q(found) <= length * 2


def test_long_rows_that_are_nearly_dependent() -> None:
    """256 terms a sum, all exact: Lemma S2 charges gamma_256 ||B||^2 ||T||^2 all the same."""
    k, e = 256, 2.0**-21
    B = np.full((2, k), 0.5)
    B[1] += e * (-1.0) ** np.arange(k)
    found = shortest_correction(B, Enclosure.of(np.array([0.0, 1.0])))
    # L = [[8, 0], [8, 16 e]] in BB' = LL', and d = e-sums: ||d|| = 1 / (16 e).
    length = 1 / (16 * Q(e))
    T = Q(1, 64) + 2 * length**2
    assert Q(found) ** 2 * (1 - T * gamma_n(k) * 128) >= length**2
    # One row, off by a tenth of itself: 1 / (0.9 * 8) at worst.
    wide = shortest_correction(np.full((1, k), 0.5), Enclosure.of(np.ones(1)), 0.1)
    assert Q(10, 72) <= Q(wide) * (1 + 10 * U) < 1


def test_sparse_rows_that_are_nearly_dependent() -> None:
    """Blocks [[1, 1], [1, 1 + h]]: the solution of (0, 1) is (-1, 1) / h, of norm sqrt(2) / h."""
    blocks = 302
    h = 2.0**-14
    B = sparse.csr_array(
        sparse.kron(sparse.eye_array(blocks), np.array([[1.0, 1.0], [1.0, 1 + h]]))
    )
    r = np.zeros(2 * blocks)
    r[1] = 1.0
    found = shortest_correction(B, Enclosure.of(r))
    assert Q(found) ** 2 >= 2 / Q(h) ** 2
    # Of well conditioned rows it says what they are worth.
    good = sparse.csr_array(
        sparse.kron(sparse.eye_array(blocks), np.array([[1.0, 1.0], [1.0, -1.0]]))
    )
    assert 0.7071 <= shortest_correction(good, Enclosure.of(r)) < math.inf


def test_forged_sparse_factors_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """BB' of pairs of equal rows is singular: no factor may say otherwise."""
    m = 604
    B = sparse.csr_array(sparse.kron(sparse.eye_array(m // 2), np.ones((2, 2))))
    ones = Enclosure.of(np.ones(m))
    for scale in (1e-6, 1.0, 2.0, 4.0):
        factor = SimpleNamespace(
            L=sparse.csc_array(sparse.eye_array(m)),
            U=sparse.csc_array(scale * sparse.eye_array(m)),
            perm_r=np.arange(m),
            perm_c=np.arange(m),
        )
        monkeypatch.setattr(scipy.sparse.linalg, "splu", lambda *_, f=factor, **__: f)
        assert shortest_correction(B, ones) == math.inf


def test_forged_inverses_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows (1, 1) and (1, 1): whatever is called the inverse of a factor."""
    B = np.ones((2, 2))
    for T in (np.eye(2), np.eye(2) * 0.7, np.array([[0.7, 0.0], [-0.7, 0.7]]), np.zeros((2, 2))):
        monkeypatch.setattr(scipy.linalg.lapack, "dpotrf", lambda *_, **__: (np.eye(2), 0))
        monkeypatch.setattr(scipy.linalg.lapack, "dtrtri", lambda *_, T=T, **__: (T, 0))
        assert shortest_correction(B, Enclosure.of(np.array([0.0, 1.0]))) == math.inf


def test_rows_of_their_own_are_moved_by_the_others() -> None:
    """d_1 = -1 of the second row adds to what the first one lacks: d = (2, -1), the only solution."""
    B = sparse.csr_array(np.array([[1.0, 1.0], [0.0, 1.0]]))
    found = shortest_correction(B, Enclosure.of(np.array([-1.0, 1.0])))
    assert Q(found) ** 2 >= 5
    assert found < 3


# ---- curvature


def test_sums_of_many_matrices_are_charged_for_their_roundings() -> None:
    """300 matrices each take 0.9 u of an entry that stays what it was: [[1, 1], [1, H]] with H < 1."""
    u = UNIT_ROUNDOFF
    first = np.array([[2.0, 1.0], [1.0, 1 + 200 * u]])
    terms = [(sparse.csc_array(first), 1.0)]
    terms += [(sparse.csc_array(np.diag([0.0, -0.9 * u])), 1.0)] * 300
    found = curvature_beside(terms, np.array([0]))
    assert found is not None
    H = Q(float(first[1, 1])) - 300 * Q(0.9 * u)
    assert H < 1
    assert found[0] > 0
    assert (2 - Q(float(found[0]))) * H >= 1


# ---- sets


def test_points_of_a_plane_whose_products_are_rounded() -> None:
    """normal'x is the offset in floats, not in rationals: a point of the plane lies beside x."""
    for x in (-3.0, 3.0, -7.0, 7.0):
        normal = np.array([0.1, 1.0])
        point = np.array([x, 0.0])
        offset = 0.1 * x
        domain = BoxPlane(np.full(2, -10.0), np.full(2, 10.0), normal, offset)
        near = feasible_near(domain, point)
        assert near is not None
        middle = Q(0.1) * Q(x)
        assert middle != Q(offset)
        room = Q(0.1) * Q(float(near.rad[0])) + Q(float(near.rad[1]))
        assert abs(middle - Q(offset)) <= room <= 100 * U * abs(middle)


def test_points_of_ordered_cones() -> None:
    """x / steps must not increase: (1, 1, 1) does not for equal steps, and does for falling ones."""
    x = np.ones(3)
    price = np.full(3, 0.1)
    for steps, inside in (
        ([1.0, 1.0, 1.0], True),
        ([1.0, 2.0, 3.0], True),
        ([3.0, 2.0, 1.0], False),
        ([1.0, 1.0, 0.5], False),
        ([2.0, 1.0, 1.0], False),
    ):
        near = feasible_near(OrderedCone(np.array(steps), price), x)
        assert (near is not None) is inside
    for outside in ([1.0, 0.5, -1.0], [-1.0, -1.0, -1.0], [math.nan, 0.0, 0.0]):
        assert feasible_near(OrderedCone(np.ones(3), price), np.array(outside)) is None
    # (10, 0, 0) is a point of the cone, as price'x = 1.
    assert Q(squared_reach(OrderedCone(np.ones(3), price), np.zeros(3))) >= (1 / Q(0.1)) ** 2


@pytest.mark.parametrize("sigma", [1.1, 3.0, 1e5, 1e200])
def test_powers(sigma: float) -> None:
    n = 12
    truth = [1 / Q(sigma) ** i for i in range(n)]
    found = _powers(n, sigma)
    assert holds(found, *truth)
    assert all(
        Q(float(rad)) <= 60 * U * t + 100 * Q(ETA) for rad, t in zip(found.rad, truth, strict=True)
    )


def test_points_of_ordered_simplices() -> None:
    """x_i >= 2 x_{i+1}, at any size."""
    for x, inside in (
        ([1.0, 0.25], True),
        ([2.5, 1.0], True),
        ([1.0, 1.0], False),
        ([1.5, 1.0], False),
        ([1.0, 0.0], True),
        ([0.0, 1.0], False),
    ):
        domain = OrderedSimplex(2, 2.0, total=sum(x))
        assert (feasible_near(domain, np.array(x)) is not None) is inside


def test_what_is_no_number_bounds_nothing() -> None:
    assert _number(math.nan) == -math.inf
    assert _number(1.5) == 1.5


# ---- functions


def test_tangents_of_kernel_quadratics_over_a_simplex() -> None:
    """z'z / 2 over the simplex is at least 1/4, at its middle; elsewhere a tangent says less."""
    function = KernelQuadratic(np.eye(2), np.ones(2), np.zeros(2))
    found = bounds_of_minimum(function, Simplex(2), np.full(2, 0.5))
    assert Q(1, 4) - 10 * U <= Q(found.lower) <= Q(1, 4) <= Q(found.upper) <= Q(1, 4) + 10 * U
    for p in (0.25, 0.625, 1.0):
        x = np.array([p, 1 - p])
        found = bounds_of_minimum(function, Simplex(2), x)
        value = (Q(p) ** 2 + (1 - Q(p)) ** 2) / 2
        tangent = min(Q(p), 1 - Q(p)) - value
        assert tangent - 10 * U <= Q(found.lower) <= tangent
        assert value <= Q(found.upper) <= value + 10 * U


@pytest.mark.parametrize("seed", range(5))
def test_means_of_cuts(seed: int) -> None:
    """The mean of tangents of x'x / 2 + c'x, minimised over a box, in rationals."""
    rng = np.random.default_rng(seed)
    n = 3
    c = rng.normal(size=n)
    function = Quadratic(np.eye(n), c)
    domain = BoxPlane(np.full(n, -1.0), np.full(n, 2.0))
    accuracy = 2.0**-40
    cuts = rng.normal(size=(4, n + 1))
    cuts[:, 0] = [0.5, 3.0, 0.0, -1.0]
    constant, gradient, total = Q(0), [Q(0)] * n, Q(0)
    for row in cuts[:2].tolist():
        weight, point = Q(row[0]), [Q(v) for v in row[1:]]
        g = [a + Q(float(b)) for a, b in zip(point, c, strict=True)]
        constant -= weight * sum(a * a for a in point) / 2
        gradient = [a + weight * b for a, b in zip(gradient, g, strict=True)]
        total += weight
    truth = (constant + sum(min(-g, 2 * g) for g in gradient)) / total
    found = Q(_lower_by_cuts(function, domain, cuts.ravel(), accuracy))
    assert truth - 100 * Q(accuracy) <= found <= truth
    for forged in (cuts[2:], np.full((1, n + 1), math.nan), np.full((1, n + 1), math.inf)):
        assert not _lower_by_cuts(function, domain, forged.ravel(), accuracy) > -math.inf
    assert _lower_by_cuts(function, domain, cuts.ravel()[1:], accuracy) == -math.inf


def test_signed_sums_of_variables() -> None:
    rng = np.random.default_rng(1)
    for count in (1, 2, 3, 6):
        for _ in range(20):
            sign = rng.uniform(-1, 1, count)
            p = rng.uniform(-1, 1, count)
            function = KernelQuadratic(np.eye(1), sign, np.zeros(count), np.zeros(count, int))
            truth = sum((Q(a) * Q(b) for a, b in zip(sign.tolist(), p.tolist(), strict=True)), Q(0))
            assert holds(_coefficients(function, p), truth)
    half = KernelQuadratic(np.eye(1), np.full(3, 0.5), np.zeros(3), np.zeros(3, int))
    assert holds(_coefficients(half, np.full(3, ETA)), 3 * Q(ETA) / 2)
    # All products lose what they can.
    third = KernelQuadratic(np.eye(1), np.full(4, 1 / 3), np.zeros(4), np.zeros(4, int))
    z = _coefficients(third, np.full(4, 0.7))
    size = 4 * Q(1 / 3) * Q(0.7)
    assert Q(float(z.rad[0])) >= gamma_n(4) * size


def test_products_of_games_at_underflow() -> None:
    """100 products of 0.49 eta are 0 in floats, and 49 eta."""
    n = 100
    M = np.full((1, n), 0.49 * 2.0**-500)
    v = Enclosure(np.full(n, 2.0**-574), np.zeros(n))
    truth = n * Q(float(M[0, 0])) * Q(2.0**-574)
    assert truth > 40 * Q(ETA)
    assert holds(_times(M, np.abs(M), v), truth)


def test_stated_accuracies_are_absolute_next_to_zero() -> None:
    for size in (0.0, 0.5, -3.0):
        least = Q(1e-3) * (1 + abs(Q(size)))
        assert Q(float(_stated(size, 1e-3).rad)) >= least
        found = _stated_vector(np.array([size, 0.0]), 1e-3)
        assert all(Q(rad) >= least for rad in found.rad.tolist())
    assert _stated(math.nan, 1e-3).rad == math.inf
    assert np.isinf(_stated_vector(np.array([1.0, math.inf]), 1e-3).rad).all()


# ---- logarithms of determinants


def test_determinants_of_nothing() -> None:
    found = enclose_log_det(np.zeros((0, 0)))
    assert (found.value.mid, found.value.rad, found.defect) == (0.0, 0.0, 0.0)


def test_a_remainder_without_a_factor() -> None:
    """log det(I + AG) for F = 0 and G = diag(e, 0): log(1 + 2 e), by the norm of A alone."""
    for e in (0.01, 0.1):
        found = enclose_relative_log_det(2.0 * np.eye(2), np.zeros((1, 2)), e)
        assert math.log1p(2 * e) * (1 + 1e-12) <= found.upper < 1.0
        # And for F = (1, 0): log det(I + AG) = log(3 + 2 e).
        found = enclose_relative_log_det(2.0 * np.eye(2), np.array([[1.0, 0.0]]), e)
        assert math.log(3 + 2 * e) * (1 + 1e-12) <= found.upper < 2.5
        # Both terms of C are charged: 2 sqrt(2) and (2 / sqrt(3))^2.
        assert found.upper - math.log(3) >= (2 * math.sqrt(2) + 4 / 3) * e


@pytest.mark.parametrize("x", [0.1, 0.3, 0.5, 1.0, 1.1, 1.5])
def test_forged_inverses_of_determinants(x: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """log det of (1) is 0, whatever is called the inverse of its factor."""
    monkeypatch.setattr(scipy.linalg.lapack, "dtrtri", lambda *_, **__: (np.array([[x]]), 0))
    found = enclose_log_det(np.eye(1)).value
    assert found.lower <= 0 <= found.upper


def test_quotients_by_divisors_that_may_be_small() -> None:
    """eta / [0.1, 19.9] reaches 10 eta."""
    wide = Enclosure(10.0, 9.9)
    for a, b in ((ETA, wide), (np.array([ETA]), Enclosure(np.array([10.0]), np.array([9.9])))):
        found = Enclosure.of(a) / b
        least = Q(10.0) - Q(9.9)
        assert Q(float(np.ravel(found.mid)[0])) + Q(float(np.ravel(found.rad)[0])) >= Q(ETA) / least


def test_norms_with_small_radii_charge_the_rounding_of_the_sum() -> None:
    """The root halves gamma_n, whatever the radii add to it."""
    n = 1000
    found = enclose_norm(Enclosure(np.full(n, 0.1), np.full(n, 1e-20)))
    assert Q(found.rad) >= gamma_n(n // 2) * Q(found.mid)


def test_elementary_functions_are_as_accurate_as_assumed_on_both_sides() -> None:
    """Lemma E3: libm may be wrong by so many units in either direction."""
    share = ELEMENTARY_ULPS * U
    for x in np.linspace(0.5, 20.0, 40):
        point = Enclosure.of(np.array([x]))
        for found, value in ((point.exp(), np.exp(x)), (point.log(), np.log(x))):
            size = share * abs(Q(float(value)))
            assert Q(float(found.lower[0])) <= Q(float(value)) - size
            assert Q(float(found.upper[0])) >= Q(float(value)) + size


def test_adding_the_identity_rounds() -> None:
    tiny = 2.0**-60
    for factor in (1.0, -1.0):
        found = _plus_identity(Enclosure(np.array([[tiny]]), np.zeros((1, 1))), factor)
        assert holds(found, Q(tiny) + Q(factor))


def test_congruences_at_underflow() -> None:
    """The inner products are 0 in floats; the outer factor makes 2^-577 n^2 of what they are."""
    n = 50
    F = np.vstack([np.full(n, 2.0**-540), np.full(n, 2.0**500)])
    A = np.full((n, n), 2.0**-537)
    found = enclose_congruence(F, A)
    truth = n * n * Q(2) ** (-540 - 537 + 500)
    assert abs(Q(float(found.mid[0, 1])) - truth) <= Q(float(found.rad[0, 1]))
    # Both products underflow: what is left is positive.
    truth = n * n * Q(2) ** (-540 - 537 - 540)
    assert abs(Q(float(found.mid[0, 0])) - truth) <= Q(float(found.rad[0, 0]))


# ---- ends from witnesses of many digits


def thirds(cones: Cones, rows: list[list[float]], b: list[float], **parts: object) -> ConeStatement:
    """3 x = 1 and 3 z = 1, in rows of both, and what follows."""
    A = np.array([[3.0, 3.0], [3.0, -3.0], *rows])
    return ConeStatement(
        np.array([1.0, 2.0]),
        sparse.csc_array(A),
        np.array([2.0, 0.0, *b]),
        cones,
        **parts,  # type: ignore[arg-type]
    )


NOT_THIRDS = PreciseWitness(np.array([[0.25, 0.25], [0.0625, 0.0]]), np.array([0, 1]))


def test_points_of_many_digits_are_checked_where_they_were_moved_to() -> None:
    """The solution is 1/3, 1/3, whatever the witness says; cones count there."""

    def end(cones: Cones, rows: list[list[float]], b: list[float], **parts: object) -> float:
        return precise_upper_bound(thirds(cones, rows, b, **parts), NOT_THIRDS).value

    assert Q(1) <= Q(end(Cones(zero=2), [], [])) <= 1 + 4 * U
    edge = float(np.nextafter(2 / 3, 0.0))
    for b, inside in ((0.75, True), (0.67, True), (edge, False), (0.6, False)):
        row = [[1.0, 1.0]]
        assert (end(Cones(zero=2, nonneg=1), row, [b]) < math.inf) is inside
        block = [[1.0, 0.0], [0.0, -1.0]]
        assert (end(Cones(zero=2, soc=(2,)), block, [b, 0.0]) < math.inf) is inside
        matrix = [[0.0, 0.0], [-1.0, -1.0], [0.0, 0.0]]
        cones = Cones(zero=2, psd=(2,))
        assert (end(cones, matrix, [b, 0.0, b], plain=True) < math.inf) is inside
    for within, inside in ((0.5, True), (0.4715, True), (0.4714, False), (0.1, False)):
        assert (end(Cones(zero=2), [], [], within=within) < math.inf) is inside
    # A second-order cone has a positive head, and a singular matrix of zeros is semidefinite.
    assert end(Cones(zero=2, soc=(2,)), [[0.0, 0.0], [0.0, 0.0]], [-1.0, 0.5]) == math.inf
    zeros = [[0.0, 0.0]] * 3
    assert end(Cones(zero=2, psd=(2,)), zeros, [0.0, 0.0, 0.0], plain=True) < math.inf
    assert end(Cones(zero=2, psd=(2,)), zeros, [0.0, 0.0, -1.0], plain=True) == math.inf


def test_places_that_cannot_be_moved_are_refused() -> None:
    statement = thirds(Cones(zero=2), [], [])
    parts = np.array([[0.25, 0.25]])
    for moved in ([], [0], [0, 0], [0, 2], [-1, 0], [0, 1, 1]):
        witness = PreciseWitness(parts, np.array(moved, np.intp))
        assert precise_upper_bound(statement, witness).value == math.inf
    for wrong in (np.array([[0.25]]), np.array([0.25, 0.25]), np.array([[math.nan, 0.0]])):
        assert (
            precise_upper_bound(statement, PreciseWitness(wrong, np.array([0, 1]))).value
            == math.inf
        )


def test_multipliers_of_many_digits_are_those_of_weak_duality() -> None:
    """Minimise x + 2 z with 3 x >= 1 and bounds of z: -b'y plus the least of what is left over z."""
    A = np.array([[-3.0, 0.5], [0.0, 1.0], [0.0, -1.0]])
    for low, high in ((-2.0, 5.0), (1.0, 5.0), (-3.0, -1.0)):
        b = np.array([-1.0, high, -low])
        statement = ConeStatement(np.array([1.0, 2.0]), sparse.csc_array(A), b, Cones(nonneg=3))
        for parts in ([0.3, 0.0, 0.0], [0.2, 0.5, 0.0], [0.3, 0.25, 4.0]):
            y = [Q(1, 3), Q(parts[1]), Q(parts[2])]
            g = 2 + y[0] / 2 + y[1] - y[2]
            truth = min(g * Q(low), g * Q(high)) + y[0] - y[1] * Q(high) + y[2] * Q(low)
            found = precise_lower_bound(statement, PreciseWitness(np.array([parts]), np.array([0])))
            assert truth - 40 * U * (1 + abs(truth)) <= Q(found.value) <= truth
        wrong = PreciseWitness(np.array([[0.3, -0.5, 0.0]]), np.array([0]))
        assert precise_lower_bound(statement, wrong).value == -math.inf


def test_multipliers_of_many_digits_over_a_declared_ball() -> None:
    """c'x over norm(x) <= R is -R norm(c); with y = 1 of x_0 >= 1 it is 1 - R |c_1|."""
    c = np.array([1.0, 2.0])
    A = sparse.csc_array(np.array([[-1.0, 0.0]]))
    statement = ConeStatement(c, A, np.array([-1.0]), Cones(nonneg=1), within=3.0)
    for y, constant, square in ((0.0, Q(0), Q(5)), (1.0, Q(1), Q(4)), (0.5, Q(1, 2), Q(17, 4))):
        found = Q(precise_lower_bound(statement, PreciseWitness(np.array([[y]]))).value)
        assert found < constant
        assert 9 * square <= (constant - found) ** 2 <= 9 * square * (1 + 100 * U)


def test_equations_without_a_finite_side_prove_nothing() -> None:
    statement = thirds(Cones(zero=3), [[1.0, 1.0]], [math.inf])
    point = PreciseWitness(np.array([[0.25, 0.25]]), np.array([0, 1]))
    assert precise_upper_bound(statement, point).value == math.inf
    point = PreciseWitness(np.array([[0.25, 0.25]]), np.array([0, 1, 1]))
    assert precise_upper_bound(statement, point).value == math.inf
    multipliers = PreciseWitness(np.zeros((1, 3)), np.array([0, 1]))
    assert precise_lower_bound(statement, multipliers).value == -math.inf
