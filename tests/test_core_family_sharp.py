"""Bounds of matrices, sets, functions and cones are those of their lemmas: no term more, none less.

A radius is compared with the formula of its lemma, evaluated here in rationals or with many digits;
an end next to its limit is compared with the truth in rationals.
"""

from __future__ import annotations

import math
import time
from fractions import Fraction as Q

import flint
import mpmath
import numpy as np
import pytest
from scipy import sparse

from klopt.errors import InvalidProblem
from klopt.model.cones import Cones
from klopt.model.forms import ConeForm, SimplexForm
from klopt.model.functions import KernelQuadratic, Linear, Oracle, Quadratic, SaddleOracle
from klopt.model.problem import Point
from klopt.model.sets import (
    BoxPlane,
    OrderedCone,
    OrderedSimplex,
    Product,
    Simplex,
    Spectrahedron,
)
from klopt.numerics.householder import householder
from klopt.proof.balls import ball_matrix, definite_log_det, enclosure_of_ball, working_bits
from klopt.proof.band_form import (
    BandForm,
    _Step,
    _symmetric_product,
    _tall_product,
    cholesky_log_det_error,
    norm_below,
)
from klopt.proof.certificate import Certificate, Verdict
from klopt.proof.directed import norm_up
from klopt.proof.enclosure import ETA, INFLATION, Enclosure
from klopt.proof.exact_rank import independent_rows
from klopt.proof.function_bounds import (
    _by_formula,
    _coefficients,
    _largest_entry,
    bounds_of_game,
    bounds_of_minimum,
    nonconvexity,
)
from klopt.proof.log_det import (
    _plus_identity,
    enclose_congruence,
    enclose_log_det,
    enclose_relative_log_det,
    log_det_change,
)
from klopt.proof.power_cones import dual_power_room, in_dual_power_cones, in_power_cones
from klopt.proof.precise_bounds import PreciseWitness, precise_lower_bound, precise_upper_bound
from klopt.proof.rational import (
    RationalProgram,
    as_rational,
    check_rational_dual,
    check_rational_farkas,
    check_rational_primal,
    check_rational_ray,
    floats_around,
    is_linear,
)
from klopt.proof.rational_systems import RationalMatrix, as_fractions
from klopt.proof.semidefinite import (
    cholesky_shift,
    eigenvalue_floor,
    is_positive_semidefinite,
    spectral_norm_bound,
)
from klopt.proof.set_bounds import _powers, feasible_near, linear_floor, squared_reach
from klopt.proof.statement import ConeStatement, EntryProducts, TermProducts, _propagate
from klopt.proof.time_budget import budget, exhausted, remaining
from klopt.witness.over_sets import bracket_over_set
from klopt.witness.plane_prices import plane_price

U = Q(1, 2**53)
SMALL = Q(ETA)
WIDE = 1 + 2.0**-40


def gamma(n: int) -> Q:
    return n * U / (1 - n * U)


def rationals(A: object) -> np.ndarray:
    """The numbers of an array as fractions."""
    return np.vectorize(Q, otypes=[object])(np.asarray(A, float))


def is_between(low: Q | float, value: float, high: Q | float) -> bool:
    return bool(Q(low) <= Q(float(value)) <= Q(high))


# ---- log det


@pytest.mark.parametrize("with_radii", [False, True])
@pytest.mark.parametrize("shape", [(2, 3), (5, 1), (4, 4)])
def test_a_congruence_has_the_radius_of_its_lemma(shape: tuple[int, int], with_radii: bool) -> None:
    """Lemma D3: H (g |A| + rad A) H' with H = |F| + rad F (1 + 1/g), g = gamma_{2n+1}."""
    rng = np.random.default_rng(shape)
    n = shape[1]
    F = rng.normal(size=shape)
    A = rng.normal(size=(n, n))
    A += A.T
    F_rad = 1e-16 * rng.uniform(size=shape) * with_radii
    A_rad = 1e-16 * rng.uniform(size=(n, n)) * with_radii
    A_rad += A_rad.T
    found = enclose_congruence(Enclosure(F, F_rad), Enclosure(A, A_rad))
    g = gamma(2 * n + 1)
    H = abs(rationals(F)) + rationals(F_rad) * (1 + 1 / g)
    lemma = H @ (g * abs(rationals(A)) + rationals(A_rad)) @ H.T
    for mid, rad, exact, bound in zip(
        found.mid.flat,
        found.rad.flat,
        (rationals(F) @ rationals(A) @ rationals(F).T).flat,
        lemma.flat,
        strict=True,
    ):
        assert abs(Q(mid) - exact) <= Q(rad)
        assert is_between(bound, rad, bound * (1 + Q(25, 10**7)))


@pytest.mark.parametrize("n", [1, 3])
def test_a_congruence_charges_underflow(n: int) -> None:
    """Sums of n products lose n eta: 4 n eta in H (..), which H' multiplies, and 4 n + 2 in the end."""
    A = np.full((n, n), 2.0**-600)
    tiny = enclose_congruence(np.full((1, n), 2.0**-600), A)
    assert not tiny.mid.any()
    assert (tiny.rad == (4 * n + 2) * ETA).all()
    # The radius of the inner product times a large F.
    F = np.full((1, n), 2.0**600)
    large = enclose_congruence(F, np.zeros((n, n)))
    inner = SMALL * n * Q(2) ** 1200 * n
    lost = 4 * n * SMALL * n * Q(2) ** 600
    assert is_between(inner + lost, large.rad[0, 0], (inner + lost) * Q(INFLATION) * (1 + 9 * U))
    # H of 2^-600 leaves nothing of eta, and the sums lose 4 n eta, which 2^20 multiplies.
    mixed = np.concatenate((np.full((1, n), 2.0**-30), np.full((1, n), 2.0**20)))
    both = enclose_congruence(mixed, np.zeros((n, n)))
    assert both.rad[0, 1] >= float(SMALL * 2 * n * n * 2**20)


def test_a_log_det_has_the_radius_of_its_lemma() -> None:
    """Lemma D1: tau^2 and the radius of tr T, and 16 u of each logarithm (Lemma E3)."""
    rng = np.random.default_rng(3)
    for scale in (1e-200, 1.0, 1e150):
        for spread in (0.0, 1e-12, 0.04):
            B = rng.normal(size=(4, 4))
            A = scale * (B @ B.T + np.eye(4))
            rad = np.full((4, 4), scale * spread)
            found = enclose_log_det(Enclosure(A, rad))
            assert found.X is not None
            T = enclose_congruence(found.X, Enclosure(A, rad))
            # |T_ij - [i = j]| entry by entry, one more rounding on the diagonal.
            off = rationals(np.abs(T.mid - np.eye(4)) + T.rad)
            length = math.sqrt(sum(entry * entry for entry in off.flat))
            assert length * (1 - 1e-15) <= found.defect <= length * (1 + 1e-6) + 1e-15
            logs = [abs(mpmath.log(mpmath.mpf(float(x)))) for x in found.X.diagonal()]
            tau = Q(found.defect)
            lemma = sum(rationals(T.rad.diagonal())) + tau * tau
            lemma += 16 * U * Q(float(mpmath.fsum(logs)))
            # The midpoint is rounded once.
            off = U * abs(Q(found.value.mid))
            assert is_between(
                lemma * (1 - 9 * U), found.value.rad, (lemma + off) * (1 + 64 * U) + U
            )
            with mpmath.workdps(60):
                truth = mpmath.log(mpmath.det(mpmath.matrix(A.tolist())))
                assert abs(truth - mpmath.mpf(found.value.mid)) <= mpmath.mpf(found.value.rad)


def test_logarithms_are_charged_where_nothing_else_is() -> None:
    """A power of 4 has an exact factor: T is 0 but for its own rounding, and the logarithm is not."""
    for power in (2.0**400, 2.0**-400):
        found = enclose_log_det(np.full((1, 1), power)).value
        off = 16 * U * Q(float(mpmath.log(2))) * 200
        assert is_between(off, found.rad, off + 16 * U)
        assert abs(mpmath.mpf(found.mid) - mpmath.log(mpmath.mpf(power))) <= found.rad


def test_a_defect_of_one_half_proves_nothing() -> None:
    proven, unproven = 0.4, 0.5
    while math.nextafter(proven, 1.0) < unproven:
        middle = (proven + unproven) / 2
        one = enclose_log_det(Enclosure(np.ones((1, 1)), np.full((1, 1), middle)))
        assert math.isinf(one.value.rad) == (one.X is None)
        proven, unproven = (proven, middle) if one.X is None else (middle, unproven)
    last = enclose_log_det(Enclosure(np.ones((1, 1)), np.full((1, 1), proven)))
    assert 0.5 - 2.0**-50 < last.defect < 0.5
    # An end that is no float is no end.
    largest = np.full((1, 1), 1.7e308)
    assert enclose_log_det(Enclosure(largest, np.full((1, 1), 1e293))).X is not None
    assert enclose_log_det(Enclosure(largest, np.full((1, 1), 1e307))).X is None
    bad_ones = [Enclosure(np.eye(2), np.full((2, 2), np.inf)), np.array([[np.nan]]), -np.eye(2)]
    for bad in bad_ones:
        assert enclose_log_det(bad).X is None


@pytest.mark.parametrize("shape", [(1, 1), (3, 2), (40, 1)])
def test_the_response_is_that_of_its_lemma(shape: tuple[int, int]) -> None:
    """Lemma D4, and the truth for the worst G."""
    rng = np.random.default_rng(shape)
    r, n = shape
    F = rng.normal(size=shape)
    F *= 1e3 / np.linalg.norm(F)
    A = -0.2e-6 * np.eye(n)
    F_rad = np.full(shape, 1e-6)
    A_rad = np.full((n, n), 1e-10)
    # A radius of F is charged with its square over gamma: it must be small.
    for rads in ((0 * F_rad, 0 * A_rad), (F_rad, 0 * A_rad), (0 * F_rad, A_rad)):
        given = (Enclosure(A, rads[1]), Enclosure(F, rads[0]))
        plain = enclose_relative_log_det(*given)
        remainder = 1e4
        found = enclose_relative_log_det(*given, remainder=remainder)
        change = found.rad - plain.rad
        M = enclose_congruence(given[1], given[0])
        M = Enclosure(M.mid + np.eye(r), M.rad)
        one = enclose_log_det(M)
        assert one.X is not None
        spread = [float(np.linalg.norm(rad)) for rad in rads]
        f = float(np.linalg.norm(F)) + spread[0]
        a = float(np.linalg.norm(A)) + spread[1]
        error = f * spread[1] + a * spread[0] + float(gamma(n + r)) * f * a
        half = float(np.linalg.norm(one.X @ F @ A)) + float(np.linalg.norm(one.X)) * error
        theta = (a + half**2 / (1 - one.defect)) * remainder
        assert theta + theta**2 <= change * (1 + 1e-12) <= (theta + theta**2) * (1 + 1e-11)
        # log(1 + a (f^2 + e)) with e the whole remainder, for one row and one column.
        if shape == (1, 1):
            for sign in (-1, 1):
                square = (F[0, 0] + sign * rads[0][0, 0]) ** 2
                truth = math.log1p((A[0, 0] - rads[1][0, 0]) * (square + remainder))
                assert found.lower <= truth <= found.upper


def test_no_remainder_costs_nothing() -> None:
    F = np.array([[0.3, 0.7]])
    A = np.array([[2.0, 0.1], [0.1, 1.0]])
    plain = enclose_log_det(_plus_identity(enclose_congruence(F, A), 1.0)).value
    assert enclose_relative_log_det(A, F).rad == plain.rad
    assert enclose_relative_log_det(A, F, 1e-300).rad > plain.rad
    empty = enclose_log_det(np.zeros((0, 0)))
    assert empty.X is not None
    assert empty.X.shape == (0, 0)
    assert (empty.value.mid, empty.value.rad, empty.defect) == (0.0, 0.0, 0.0)


def test_a_change_of_log_det_at_its_limits() -> None:
    last = 0.5 - 2.0**-53
    assert math.isfinite(log_det_change(1.0, last - 2.0**-53).rad)
    assert all(math.isinf(log_det_change(1.0, last + k * 2.0**-54).rad) for k in range(6))
    for theta in (1e-9, 0.1, 0.4):
        exact = Q(theta) + Q(theta) ** 2
        assert is_between(exact, log_det_change(theta, 1.0).rad, exact * (1 + 16 * U))
    assert log_det_change(3.0, 0.0).rad == 0.0


# ---- bands


def steps() -> list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Matrices and panels with reflections, exact to rounding and far from it."""
    found = []
    for seed, (m, k, off) in enumerate([(7, 2, 0.0), (5, 3, 1e-6), (300, 2, 0.0), (4, 1, 0.1)]):
        rng = np.random.default_rng(seed)
        P = rng.normal(size=(m, k))
        A = rng.normal(size=(m, m))
        A += A.T
        V, T = householder(P)
        found.append((A, P, V + off * rng.normal(size=V.shape), T))
    return found


@pytest.mark.parametrize("case", range(4))
def test_a_step_has_the_errors_of_its_lemmas(case: int) -> None:
    """Lemmas W1 and W2; sums over m rows pass through min(m, 128) + m / 128 + 4 roundings."""
    A, P, V, T = steps()[case]
    m, k = V.shape
    norm = float(np.linalg.norm(A)) * 1.5
    step = _Step.of(np.asfortranarray(A), P, norm, V, T)
    size = np.linalg.norm

    def g(n: int) -> float:
        return float(gamma(n))

    long = g(min(m, 128) + m // 128 + 4)
    F = V @ T
    N = F.T @ F
    spectral_V = math.sqrt(np.abs(V.T @ V).sum(axis=1).max() + long * size(V) ** 2)
    spectral_F = math.sqrt(np.abs(N).sum(axis=1).max() + long * size(F) ** 2)
    skew = size(N - T - T.T) + long * size(F) ** 2 + g(4) * (size(N) + 2 * size(T))
    G = g(k + 2) * size(V) * size(T)
    defect = math.sqrt(k) * (spectral_V**2 * skew + 2 * spectral_V * G)
    # N - T - T' is a few roundings where V and T are those of Householder.
    noise = 1e-11 if case in (1, 3) else 2e-1
    assert defect * (1 - noise) <= step.defect <= defect * (1 + noise)

    X = F.T @ P
    left = P - V @ X
    triangle = np.triu(left[:k])
    left[:k] -= triangle
    dropped = size(left) + spectral_V * long * size(F) * size(P)
    dropped += g(k + 4) * (size(P) + size(V) * size(X))
    Z = A @ F
    S = F.T @ Z
    W = Z - V @ S / 2
    z = long * norm * size(F)
    s = spectral_F * z + long * size(F) * size(Z) + 2 * g(1) * size(S)
    w = z + spectral_V * s / 2 + g(k + 4) * (size(Z) + size(V) * size(S) / 2)
    product = g(2 * k + 4) * (norm + 2 * size(V) * size(W)) + 2 * spectral_V * w
    error = math.sqrt(2) * dropped + product
    # What is dropped below the triangle is rounding, too, where the reflections are right.
    wide = 1e-11 if case in (1, 3) else 5e-2
    assert error * (1 - wide) <= step.error <= error * (1 + wide)
    # H'P and H'AH themselves.
    H = np.eye(m) - F @ V.T
    assert np.abs(H.T @ A @ H - _full(step.below)).max() <= step.error
    assert np.abs(triangle - step.triangle).max() <= 1e-12


def _full(lower: np.ndarray) -> np.ndarray:
    return np.tril(lower) + np.tril(lower, -1).T


@pytest.mark.parametrize("case", range(3))
def test_a_step_without_reflections_has_the_terms_of_its_lemma(case: int) -> None:
    """V of few bits and no residual: products are exact, so that every term can be told apart."""
    m, k = ((3, 1), (5, 2), (300, 2))[case]
    V = np.zeros((m, k))
    V[:k] = 2.0 * np.eye(k)
    T = 0.125 * np.eye(k)
    F = 0.25
    P = np.zeros((m, k))
    P[-1] = 8.0
    A = 4.0 * np.eye(m)
    norm = 1024.0
    step = _Step.of(np.asfortranarray(A), P, norm, V, T)
    root = math.sqrt(k)

    def g(n: int) -> float:
        return float(gamma(n))

    long = g(min(m, 128) + m // 128 + 4)
    # N = F'F = I / 16, T + T' = I / 4
    spectral_V = math.sqrt(4 + long * 4 * k)
    spectral_F = math.sqrt(F * F + long * F * F * k)
    skew = root * (0.25 - 0.0625) + long * F * F * k + g(4) * (root * 0.0625 + 2 * root * 0.125)
    formed = g(k + 2) * 2 * root * 0.125 * root
    defect = root * (spectral_V**2 * skew + 2 * spectral_V * formed)
    assert defect <= step.defect <= defect * (1 + 2.0**-38)

    size_P = 8.0 * root
    dropped = size_P + spectral_V * long * F * root * size_P + g(k + 4) * size_P
    Z = 4.0 * F * root
    S = F * 4.0 * F * root
    W = root * (4.0 * F - 2.0 * F * 4.0 * F / 2)
    z = long * norm * F * root
    s = spectral_F * z + long * F * root * Z + 2.0**-52 * S
    w = z + spectral_V * s / 2 + g(k + 4) * (Z + 2 * root * S / 2)
    product = g(2 * k + 4) * (norm + 4 * root * W) + 2 * spectral_V * w
    error = math.sqrt(2) * dropped + product
    assert error <= step.error <= error * (1 + 2.0**-39)
    # P falls out: what is left are terms of rounding.
    P[:] = 0.0
    step = _Step.of(np.asfortranarray(4.0 * np.eye(m)), P, norm, V, T)
    assert product <= step.error <= product * (1 + 2.0**-38)


def test_a_step_charges_underflow() -> None:
    """64 (m + k)^3 (1 + all norms)^3 eta, where everything else vanishes."""
    m, k = 4, 2
    zero = np.zeros((m, k))
    nothing = _Step.of(np.zeros((m, m), order="F"), zero, 0.0, zero, np.zeros((k, k)))
    assert nothing.defect == 64 * (m + k) ** 3 * ETA
    assert nothing.error == 64 * (m + k) ** 3 * ETA
    # V of 1e-150 and T of 1e151 have the product 10, and no defect to speak of.
    V = np.zeros((3, 1))
    V[0] = 2.0**-500
    T = np.full((1, 1), 2.0**503)
    for a, p, norm in ((2.0**330, 0.0, 0.0), (0.0, 2.0**330, 0.0), (0.0, 0.0, 2.0**330)):
        A = np.asfortranarray(a * np.eye(3))
        P = np.zeros((3, 1))
        P[2] = p
        step = _Step.of(A, P, norm, V, T)
        size = 1 + norm + 2.0**-500 + 8 + p + 8 * a + 64 * a
        charge = 64 * 4**3 * Q(size) ** 3 * SMALL
        assert is_between(charge * (1 - 40 * U), step.defect, charge * (1 + Q(1, 10**9)))
    step = _Step.of(np.zeros((3, 3), order="F"), np.zeros((3, 1)), 0.0, 2.0**830 * V, 0 * T)
    charge = 64 * 4**3 * (1 + Q(2) ** 330) ** 3 * SMALL
    assert is_between(charge * (1 - 40 * U), step.defect, charge * (1 + Q(1, 10**9)))


def test_errors_of_steps_add_up() -> None:
    """Reflections by 1 + s stretch what is left of the matrix: its norm grows with their defect."""
    n, s = 6, 0.05
    A = 4.0 * np.eye(n) + np.eye(n, k=1) + np.eye(n, k=-1)

    def stretching(P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.eye(len(P), 1), np.full((1, 1), -s)

    form = BandForm.of(A, stretching, 1)
    rest, norm = A, norm_up(A)
    defect = error = 0.0
    while len(rest) > 2:
        norm = norm_below(norm, rest[:1, :1], rest[1:, :1])
        P = rest[1:, :1].copy()
        step = _Step.of(np.asfortranarray(rest[1:, 1:]), P, norm, *stretching(P))
        assert norm * WIDE >= math.sqrt((_full(np.array(rest[1:, 1:])) ** 2).sum())
        defect += step.defect
        error += step.error
        norm = norm * (1 + step.defect) + step.error
        rest = step.below
    assert defect <= form.defect <= defect * (1 + 2.0**-38)
    assert error <= form.error <= error * (1 + 2.0**-36)
    # H'P = (1 + s) P and the first row and column of H'AH by as much.
    assert np.allclose(form.band[1, :-1], [1.05, *[1.05**2] * 3, 1.05], rtol=1e-12)
    assert np.allclose(form.band[0], [4.0, *[4 * 1.05**2] * 4, 4.0], rtol=1e-12)
    C = np.arange(12.0).reshape(n, 2)
    Q_matrix = form.rotate_back(np.eye(n))
    assert np.allclose(Q_matrix.T @ A @ Q_matrix, form.multiply(np.eye(n)), rtol=1e-12)
    assert np.allclose(form.rotate(C), Q_matrix.T @ C, rtol=1e-12)


def test_reflections_of_another_shape_are_refused() -> None:
    rng = np.random.default_rng(0)
    A = rng.normal(size=(7, 7))
    A += A.T
    for forged in (
        lambda P: (P[:, :1], np.eye(1)),
        lambda P: (P, np.eye(1)),
        lambda P: (P[:1], np.eye(2)),
        lambda P: (P, np.eye(3)),
        lambda P: (P, np.ones((2, 3))),
    ):
        with pytest.raises(ValueError, match="do not belong to the panel"):
            BandForm.of(A, forged, 2)


def test_a_proposal_cannot_change_the_matrix() -> None:
    """One that writes into its panel proposes badly, and the band stays true."""
    rng = np.random.default_rng(5)
    B = rng.normal(size=(6, 6))
    A = B @ B.T

    def scribble(P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        V, T = householder(P)
        P[:] = 0.0
        return V, T

    found = BandForm.of(A, scribble, 2)
    right = BandForm.of(A, householder, 2)
    assert np.array_equal(found.band, right.band)
    assert found.error == right.error


@pytest.mark.parametrize("m", [5, 128, 129, 300])
def test_products_by_blocks_of_rows_miss_none(m: int) -> None:
    rng = np.random.default_rng(m)
    X = rng.integers(-9, 9, size=(m, 3)).astype(float)
    Y = rng.integers(-9, 9, size=(m, 2)).astype(float)
    A = rng.integers(-9, 9, size=(m, m)).astype(float)
    lower = np.tril(A)
    assert np.array_equal(_tall_product(X, Y), X.T @ Y)
    # The upper triangle is not read.
    assert np.array_equal(
        _symmetric_product(lower + np.triu(A, 1), X), (lower + np.tril(A, -1).T) @ X
    )


def test_what_a_panel_leaves_of_a_norm() -> None:
    """Next to nothing is left: 4 + 4 u of the square, and 2 gamma of what is taken."""
    corner = np.array([[2.0]])
    panel = np.zeros((3, 1))
    assert 2.0**-23 <= norm_below(2.0, corner, panel) <= 2.0**-23 * (1 + 1e-10)
    # A column of 1, counted twice, and a corner of 1 on both sides of its diagonal.
    panel[0] = 1.0
    assert norm_below(2.0, corner, np.array([[2.0]]) ** 0.5) == pytest.approx(0, abs=1e-6)
    taken = norm_below(10.0, np.zeros((1, 1)), panel)
    assert math.sqrt(98) <= taken <= math.sqrt(98) * (1 + 2.0**-39)
    full = np.array([[3.0, 77.0], [4.0, 5.0]])
    taken = norm_below(20.0, full, np.zeros((3, 2)))
    assert math.sqrt(400 - 34 - 32) <= taken <= math.sqrt(400 - 34 - 32) * (1 + 2.0**-39)
    # Nothing taken: one factor for the rounding of all.
    assert WIDE <= norm_below(1.0, np.zeros((1, 1)), np.zeros((2, 1))) <= 1 + 1.5 * 2.0**-40
    # Squares outside of the range of floats.
    for norm in (1e140, 1e-140, 1e200, 1e-200):
        assert norm_below(norm, np.full((1, 1), norm), np.zeros((2, 1))) == norm
    for norm in (0.99e140, 1.01e-140):
        assert norm_below(norm, np.full((1, 1), norm), np.zeros((2, 1))) < 1e-6 * norm


@pytest.mark.parametrize("n", [1, 4, 50])
def test_a_cholesky_factor_has_the_error_of_its_lemma(n: int) -> None:
    """Lemma W4: tau = g / (1 - g) tr M / a, off by sqrt(n) tau + tau^2."""
    rng = np.random.default_rng(n)
    for smallest, terms, scale in ((1.0, 8, 1.0), (0.3, 70, 1e3), (0.5, n + 7, 1e12 / n)):
        diagonal = rng.uniform(1.0, 2.0, size=n) * scale
        g = gamma(terms)
        tau = g / (1 - g) * sum(rationals(diagonal)) / Q(smallest)
        assert tau < Q(1, 2)
        with mpmath.workdps(40):
            exact = mpmath.sqrt(n) * mpmath.mpf(tau.numerator) / tau.denominator
            exact += (mpmath.mpf(tau.numerator) / tau.denominator) ** 2
            found = mpmath.mpf(cholesky_log_det_error(diagonal, smallest, terms))
            assert exact * (1 + mpmath.mpf(2) ** -40) <= found
            assert found <= exact * (1 + 2.5 * mpmath.mpf(2) ** -40)
    assert math.isinf(cholesky_log_det_error(np.ones(n), 0.25, 8))
    assert math.isfinite(cholesky_log_det_error(np.ones(n), math.nextafter(0.25, 1.0), 8))
    large = float(Q(1, 2) * (1 - gamma(8)) / gamma(8)) / n
    assert math.isinf(cholesky_log_det_error(np.full(n, large), 1.0, 8))
    assert math.isfinite(cholesky_log_det_error(np.full(n, large * (1 - 1e-11)), 1.0, 8))


@pytest.mark.parametrize(
    ("defect", "error", "floor", "g"),
    [
        (0.0, 0.0, 0.0, 0.5),
        (1e-3, 0.0, 0.0, 0.5),
        (0.0, 1e-3, 0.0, 0.5),
        (1e-2, 1e-3, -0.1, 2.0),
        (1e-2, 1e-3, 0.1, 2.0),
    ],
)
def test_a_band_has_the_error_of_its_lemma(
    defect: float, error: float, floor: float, g: float
) -> None:
    """Lemma W3: theta = d + g sqrt(n) e / (1 - g f'), f' = (f + e)(1 + 2 d)."""
    n = 9
    band = np.zeros((2, n), order="F")
    band[0] = 4.0
    band[1, :-1] = 1.0
    form = BandForm(band, (), defect, error)
    factor = form.factor(g)
    found = factor.log_det(floor)
    below = (max(-floor, 0.0) + error) * (1 + 2 * defect)
    smallest = 1 - g * below
    theta = defect + g * math.sqrt(n) * error / smallest
    M = np.eye(n) + g * (4 * np.eye(n) + np.eye(n, k=1) + np.eye(n, k=-1))
    pivots = np.linalg.cholesky(M).diagonal()
    logs = (Enclosure.of(pivots.copy()).log().sum() * 2.0).rad
    cholesky = cholesky_log_det_error(M.diagonal().copy(), smallest, 9)
    radius = theta + theta**2 + logs + cholesky
    assert radius * (1 - 1e-9) <= found.rad <= radius * (1 + 1e-2 * (theta == 0) + 1e-11 / radius)
    truth = float(np.linalg.slogdet(M)[1])
    assert abs(found.mid - truth) <= 1e-13 * (1 + abs(truth))
    assert found.contains(truth)


def test_a_band_that_is_too_far_off_proves_nothing() -> None:
    band = np.ones((1, 3), order="F")
    for defect, finite in ((0.5, False), (0.49, True), (0.6, False)):
        found = BandForm(band, (), defect, 0.0).factor(1e-3).log_det(0.0)
        # The bound is theta + theta^2 up to 1/2, and theta is the defect.
        assert math.isfinite(found.rad) == finite
    # 1 - g f' at 1/2, f' = 1 up to its inflation.
    form = BandForm(band, (), 0.0, 0.0)
    for g, finite in ((0.5 * (1 - 2.0**-38), True), (0.5, False), (0.75, False)):
        assert math.isfinite(form.factor(g).log_det(-1.0).rad) == finite
    broken = BandForm(-band, (), 0.0, 0.0).factor(2.0)
    assert math.isinf(broken.log_det(0.0).rad)
    unknown = BandForm(np.full((1, 3), np.nan, order="F"), (), 0.0, 0.0).factor(1.0)
    assert math.isinf(unknown.log_det(0.0).rad)


# ---- positive semidefinite matrices


@pytest.mark.parametrize("n", [1, 2, 7, 60])
def test_the_shift_is_that_of_its_lemma(n: int) -> None:
    """phi_{n+5} tr A + 2 u max a_ii + 4 n (n + 2) (max a_ii + 1) eta."""
    rng = np.random.default_rng(n)
    phi = gamma(n + 5) / (1 - gamma(n + 5))
    for diagonal in (rng.uniform(1.0, 2.0, size=n), np.zeros(n), np.full(n, -3.0)):
        sizes = abs(rationals(diagonal))
        top = max(sizes)
        charge = 4 * n * (n + 2) * (top + 1) * SMALL
        exact = phi * sum(sizes) + 2 * U * top + charge
        found = cholesky_shift(np.diag(diagonal))
        assert is_between(exact, found, exact * (1 + (4 * n + 60) * U) + 4 * SMALL)
    # Underflow grows with the largest entry.
    huge = np.zeros((n, n))
    huge[0, 0] = 1e300
    assert cholesky_shift(huge) >= 1e300 * float(phi)


@pytest.mark.parametrize("n", [1, 6, 20])
def test_a_margin_costs_what_its_lemma_says(n: int) -> None:
    """A = a I passes with the margin m where a > m + |m| gamma_{n+8} (n + 1) + shift."""
    for sign in (1, -1):
        A = np.eye(n) * sign
        share = 1 + sign * gamma(n + 8) * (n + 1)
        limit = (Q(sign) - Q(cholesky_shift(A))) / share
        near = 3 * U if sign == 1 else 5 * U
        assert is_positive_semidefinite(A, float(limit - near))
        assert not is_positive_semidefinite(A, float(limit + near))


def test_an_eigenvalue_is_found_from_a_guess_that_is_off() -> None:
    """Off by 1022 shifts the last trial proves it, by half a shift the first."""
    A = np.eye(5)
    step = cholesky_shift(A) + 4 * 2.0**-53
    for factor in (2.0, 16.0, 1024.0):
        guess = 1 + (factor - 2.5) * step
        floor = eigenvalue_floor(A, guess)
        assert 1 - 2.6 * step < floor <= 1
    assert eigenvalue_floor(A, 1 + 1100 * step) == -math.inf
    assert eigenvalue_floor(np.zeros((0, 0))) == math.inf
    assert eigenvalue_floor(np.array([[np.nan]])) == -math.inf
    rough = eigenvalue_floor(np.diag([5.0, -3.0, 2.0]))
    assert -3 - 1e-12 < rough <= -3
    # The guess counts: 4 u of it, where it is far larger than the matrix.
    assert spectral_norm_bound(np.zeros((0, 0))) == 0.0


def test_a_pivot_that_is_not_a_number_proves_nothing() -> None:
    A = np.array([[1e-300, 1e300], [1e300, 1e-300]])
    assert not is_positive_semidefinite(A)
    for bad in (np.inf, np.nan):
        assert not is_positive_semidefinite(np.array([[bad]]))
        assert not is_positive_semidefinite(np.eye(2), bad)
    assert is_positive_semidefinite(np.eye(2), -1e308)
    row_sums = spectral_norm_bound(np.array([[1.0, 2.0], [2.0, 9.0]]), 0.5)
    assert 12.0 <= row_sums <= 12.0 + 1e-13


# ---- power cones


def test_ends_of_power_cones_are_rounded_outwards() -> None:
    """A radius below the rounding of 1 is enough to leave the cone."""
    cones = ((1, 1),)
    tiny = 2.0**-60
    for place in range(3):
        rad = np.zeros(3)
        assert in_power_cones(cones, Enclosure(np.ones(3), rad))
        rad[place] = tiny
        assert not in_power_cones(cones, Enclosure(np.ones(3), rad))
        assert not in_power_cones(cones, Enclosure(np.array([1.0, 1.0, -1.0]), rad))


def test_a_radius_of_the_last_entry_counts() -> None:
    for mid in (0.5, -0.5):
        s = np.array([1.0, 1.0, mid])
        assert in_power_cones(((1, 1),), Enclosure(s, np.array([0.0, 0.0, 0.4])))
        assert not in_power_cones(((1, 1),), Enclosure(s, np.array([0.0, 0.0, 0.6])))
        assert not in_power_cones(((1, 1),), Enclosure(s, np.array([0.0, 0.9, 0.0])))


def test_powers_are_compared_without_rounding() -> None:
    """x_1 x_2 and t^2 differ by 2^-104, in either direction."""
    e = 2.0**-52
    above = np.array([1 + 3 * e, 1 + e, 1 + 2 * e])
    assert Q(above[0]) * Q(above[1]) < Q(above[2]) ** 2
    assert not in_power_cones(((1, 1),), Enclosure.of(above))
    below = np.array([1 + 4 * e, 1 + 2 * e, 1 + 3 * e - e])
    assert Q(below[0]) * Q(below[1]) > Q(below[2]) ** 2
    assert in_power_cones(((1, 1),), Enclosure.of(below))
    # The dual of (1, 3): (4 u_1) (4 u_2 / 3)^3 against v^4.
    for v, inside in ((4.0, True), (math.nextafter(4.0, 5.0), False)):
        assert in_dual_power_cones(((1, 3),), Enclosure.of(np.array([1.0, 3.0, v]))) == inside
    for v, inside in ((4.0, False), (3.0, True)):
        assert in_dual_power_cones(((1, 3),), Enclosure.of(np.array([3.0, 1.0, v]))) == (
            12 * Q(4, 3) ** 3 >= Q(v) ** 4
        )
        del inside


def test_large_powers_are_decided_by_logarithms_but_for_equality() -> None:
    for weights, x in (((32, 32), 4.0), ((33, 33), 4.0), ((13, 52), 32.0)):
        s = np.array([x, 1.0, 2.0])
        is_small = sum(weights) <= 64
        assert in_power_cones((weights,), Enclosure.of(s)) == is_small
        s[2] = math.nextafter(2.0, 1.0)
        assert in_power_cones((weights,), Enclosure.of(s))
        s[2] = math.nextafter(2.0, 3.0)
        assert not in_power_cones((weights,), Enclosure.of(s))
    # The dual: (2 u_1)^(1/2) (2 u_2)^(1/2), and u of weights (100, 300).
    for v, inside in ((3.999, True), (4.001, False)):
        assert in_dual_power_cones(((50, 50),), Enclosure.of(np.array([1.0, 4.0, v]))) == inside
        assert in_dual_power_cones(((100, 300),), Enclosure.of(np.array([1.0, 3.0, v]))) == inside


def test_several_power_cones_are_read_in_order() -> None:
    cones = ((1, 1), (1, 2, 3), (2, 1))
    good = np.array([2.0, 2.0, 2.0, 1.0, 1.0, 1.0, -1.0, 3.0, 3.0, 3.0])
    assert in_power_cones(cones, Enclosure.of(good))
    for last in (2, 6, 9):
        bad = good.copy()
        bad[last] = math.copysign(5.0, bad[last])
        assert not in_power_cones(cones, Enclosure.of(bad))
    for entry in range(10):
        bad = good.copy()
        bad[entry] = np.nan
        assert not in_power_cones(cones, Enclosure.of(bad))
        bad[entry] = np.inf
        assert not in_power_cones(cones, Enclosure.of(bad))
    # 0 belongs to the cone, and a mean of 0 is at least 0 only.
    assert in_power_cones(((1, 1),), Enclosure.of(np.zeros(3)))
    assert in_power_cones(((1, 1),), Enclosure.of(np.array([0.0, 5.0, 0.0])))
    assert not in_power_cones(((1, 1),), Enclosure.of(np.array([0.0, 5.0, 1e-300])))
    assert not in_power_cones(((1, 1),), Enclosure.of(np.array([-1.0, -5.0, 0.0])))
    assert not in_power_cones(((1, 1),), Enclosure.of(np.array([-1.0, -5.0, 1.0])))
    # A negative entry is not made good by an even power.
    assert not in_power_cones(((1, 2),), Enclosure.of(np.array([2.0, -2.0, 1.0])))
    assert not in_power_cones(((2, 1),), Enclosure.of(np.array([-2.0, 2.0, 1.0])))


def test_room_is_an_eighth_to_a_power_and_proven() -> None:
    """The largest 8^-k of the smallest entry within which everything stays in the dual cone."""
    cones = ((1, 1), (1, 1), (1, 1))
    near = 2 - 2.0**-50
    y = np.array([1.0, 1.0, 0.5, 4.0, 4.0, near * 4.0, 1.0, 1.0, 2.0])
    room = dual_power_room(cones, y)
    assert room.tolist()[:3] == [0.125] * 3
    # 2 (u - r) >= v + r in the second cone: 3 r <= 4 2^-50, up to rounding.
    assert room[3] == 4.0 * 8.0**-18
    assert 3 * Q(room[3]) <= 4 * Q(2) ** -50 < 3 * 8 * Q(room[3])
    assert room.tolist()[6:] == [0.0] * 3
    assert not dual_power_room(((1, 1),), np.array([0.0, 1.0, 0.0])).any()
    assert not dual_power_room(((1, 1),), np.array([-1.0, 1.0, 0.0])).any()


# ---- rationals


def linear(
    rows: list[list[int]], b: list[float], zero: int, c: list[int] | None = None
) -> RationalProgram:
    """minimise c'x subject to b - Ax = 0 in the first rows, >= 0 in the others."""
    entries = tuple(tuple((j, Q(value)) for j, value in enumerate(row) if value) for row in rows)
    sides = tuple(side if math.isinf(side) else Q(side) for side in b)
    cost = tuple(map(Q, c if c is not None else [0] * len(rows[0])))
    return RationalProgram(cost, entries, sides, zero)


def test_points_are_checked_row_by_row() -> None:
    """x + y = 1, x - y <= 3, -x <= 0, and a row that says nothing."""
    program = linear([[1, 1], [1, -1], [-1, 0], [5, 5]], [1, 3, 0, math.inf], zero=1)
    assert not check_rational_primal(program, [Q(1, 3), Q(2, 3)])
    assert not check_rational_primal(program, [Q(0), Q(1)])
    assert not check_rational_primal(program, [Q(2), Q(-1)])
    tiny = Q(1, 3**50)
    assert "row 0 is an equation" in check_rational_primal(program, [Q(1, 3), Q(2, 3) + tiny])
    assert "row 0 is an equation" in check_rational_primal(program, [Q(1, 3), Q(2, 3) - tiny])
    assert "row 1 is violated by 2.0e+00" in check_rational_primal(program, [Q(3), Q(-2)])
    assert "row 2 is violated by 5.0e-01" in check_rational_primal(program, [Q(-1, 2), Q(3, 2)])
    assert "off by 2.5e-01" in check_rational_primal(program, [Q(1, 2), Q(1, 4)])
    assert "expected 2" in check_rational_primal(program, [Q(1)])
    assert "expected 2" in check_rational_primal(program, [Q(1), Q(0), Q(0)])
    impossible = linear([[1, 1], [1, 0]], [1, -math.inf], zero=1)
    assert "right-hand side -inf" in check_rational_primal(impossible, [Q(0), Q(1)])


def test_multipliers_are_checked_entry_by_entry() -> None:
    """c = (-2, -1) is -A'y for y = (1, 1) of x + y <= 1 and x <= 1."""
    program = linear([[1, 1], [1, 0], [0, 7]], [1, 1, math.inf], zero=0, c=[-2, -1])
    assert not check_rational_dual(program, [Q(1), Q(1), Q(0)])
    assert program.dual_value([Q(1), Q(1), Q(0)]) == -2
    assert "in variable 0" in check_rational_dual(program, [Q(1), Q(1) + Q(1, 3**50), Q(0)])
    assert "not nonnegative" in check_rational_dual(program, [Q(2), Q(-1), Q(0)])
    assert "infinite right-hand side" in check_rational_dual(program, [Q(1), Q(1), Q(1)])
    assert "expected 3" in check_rational_dual(program, [Q(1), Q(1)])
    # An equation has multipliers of any sign.
    free = linear([[1, 1], [1, 0]], [1, 1], zero=1, c=[0, 1])
    assert not check_rational_dual(free, [Q(-1), Q(1)])
    assert "y[1] is -1.0e+00" in check_rational_dual(free, [Q(-1), Q(-1)])
    halves = linear([[2, 0], [0, 3]], [1, 1], zero=0, c=[-1, -1])
    assert not check_rational_dual(halves, [Q(1, 2), Q(1, 3)])


def test_contradictions_are_checked_without_tolerance() -> None:
    """x <= 1 and -x <= -1 - e contradict each other for e > 0 only."""
    for e, wrong in ((Q(1, 3**60), ""), (Q(0), "b'y is not negative"), (Q(-1), "b'y is not")):
        program = RationalProgram((Q(1),), (((0, Q(1)),), ((0, Q(-1)),)), (Q(1), Q(-1) - e), zero=0)
        found = check_rational_farkas(program, [Q(1), Q(1)])
        assert (not found) == (not wrong)
        assert wrong in found
        assert check_rational_farkas(program, [Q(-1), Q(-1)])
        assert check_rational_farkas(program, [Q(1), Q(2)])
    # The first row is an equation: a negative multiplier is right there, and nowhere else.
    program = linear([[1], [1]], [2, 1], zero=1)
    assert not check_rational_farkas(program, [Q(-1), Q(1)])
    assert check_rational_farkas(linear([[1], [1]], [2, 1], zero=0), [Q(-1), Q(1)])
    # A row of -inf needs no other, but a positive multiplier and no equation.
    alone = linear([[1], [1]], [2, -math.inf], zero=0)
    assert not check_rational_farkas(alone, [Q(0), Q(1)])
    assert check_rational_farkas(alone, [Q(0), Q(0)])
    assert check_rational_farkas(alone, [Q(0), Q(-1)])
    equation = linear([[1], [1]], [-math.inf, 2], zero=1)
    assert check_rational_farkas(equation, [Q(1), Q(0)])
    assert "expected 2" in check_rational_farkas(alone, [Q(1)])


def test_rays_are_checked_row_by_row() -> None:
    """x = 0, y >= 0 and a row without a bound; the objective falls with y and z."""
    rows = [[1, 0, 0], [0, -1, 0], [9, 9, 9], [0, 0, 1]]
    program = linear(rows, [0, 5, math.inf, 1], zero=1, c=[0, -1, 0])
    assert not check_rational_ray(program, [Q(0), Q(1), Q(0)])
    assert not check_rational_ray(program, [Q(0), Q(1), Q(-1, 3)])
    assert check_rational_ray(program, [Q(1), Q(1), Q(0)]) == "the ray leaves row 0"
    assert check_rational_ray(program, [Q(-1), Q(1), Q(0)]) == "the ray leaves row 0"
    assert check_rational_ray(program, [Q(0), Q(-1), Q(0)]) == "the ray leaves row 1"
    assert check_rational_ray(program, [Q(0), Q(1), Q(1, 3**50)]) == "the ray leaves row 3"
    assert check_rational_ray(program, [Q(0), Q(0), Q(-1)]) == "c'd is not negative"
    assert check_rational_ray(program, [Q(0), Q(0), Q(0)]) == "c'd is not negative"
    assert "expected 3" in check_rational_ray(program, [Q(0), Q(1)])
    rising = linear([[0, -1]], [5], zero=0, c=[0, 1])
    assert check_rational_ray(rising, [Q(0), Q(1)]) == "c'd is not negative"


@pytest.mark.parametrize("sign", [1, -1])
def test_floats_around_a_fraction(sign: int) -> None:
    for value in (Q(1, 3), Q(2, 3), Q(1, 10), Q(7, 10**30), Q(10) ** 300 / 7):
        low, high = floats_around(sign * value)
        assert Q(low) < sign * value < Q(high)
        assert math.nextafter(low, math.inf) == high
    for value in (0.1, 3.0, 5e-324):
        assert floats_around(sign * Q(value)) == (sign * value, sign * value)
    top = Q(1.7976931348623157e308)
    beyond = (float(top), math.inf) if sign == 1 else (-math.inf, -float(top))
    assert floats_around(sign * top * 2) == beyond
    assert floats_around(sign * Q(10) ** 400) == beyond
    below = (0.0, 5e-324) if sign == 1 else (-5e-324, 0.0)
    assert floats_around(sign * Q(1, 10**400)) == below


def test_which_programs_are_linear() -> None:
    c, A, b = [1.0], [[1.0], [2.0], [3.0]], [1.0, 2.0, 3.0]
    for cones, is_it in (
        (Cones(zero=3), True),
        (Cones(nonneg=3), True),
        (Cones(zero=1, nonneg=2), True),
        (Cones(zero=2, nonneg=1), True),
        (Cones(soc=(3,)), False),
        (Cones(zero=1, soc=(2,)), False),
    ):
        form = ConeForm(c, A, b, cones)
        assert is_linear(form) == is_it
        if is_it:
            program = as_rational(form)
            assert program.zero == cones.zero
            assert program.b == (1, 2, 3)
            assert as_rational(program) is program
        else:
            with pytest.raises(InvalidProblem):
                as_rational(form)
    curved = ConeForm(c, A, b, Cones(nonneg=3), P=np.eye(1))
    assert not is_linear(curved)
    one_sided = linear([[1], [1], [1]], [math.inf, -math.inf, 0], zero=0)
    assert [one_sided.is_bound(row) for row in range(3)] == [False, True, True]


# ---- the rank of equations


def test_rows_that_depend_on_some_of_the_others() -> None:
    """Row 2 is twice row 0 and has nothing of row 1; b agrees, is too large, is too small."""
    A = [[1.0, 0.0, 0.0], [0.0, 1.0, 3.0], [2.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    agree = independent_rows(A, [1.0, 5.0, 2.0, 1.0])
    assert agree is not None
    assert agree.consistent
    assert not agree.farkas
    assert len(agree.independent) == 2
    assert sorted([*agree.independent.tolist(), *agree.dependent.tolist()]) == [0, 1, 2, 3]
    for side in (1.5, 2.5):
        found = independent_rows(A, [1.0, 5.0, side, 1.0])
        assert found is not None
        assert not found.consistent
        y = found.farkas
        for column in range(3):
            assert sum(Q(row[column]) * v for row, v in zip(A, y, strict=True)) == 0
        b = [Q(1), Q(5), Q(side), Q(1)]
        assert sum(v * w for v, w in zip(b, y, strict=True)) < 0
        (change,) = found.changes
        changed = list(b)
        changed[change.row] += change.amount
        again = independent_rows(A, [float(v) for v in changed])
        assert again is not None
        assert again.consistent
        assert change.ulps == abs(change.amount) / Q(math.ulp(float(b[change.row])))


def test_every_contradicting_row_is_named() -> None:
    A = [[1.0], [1.0], [1.0], [4.0]]
    found = independent_rows(A, [1.0, 2.0, 1.0, 3.0])
    assert found is not None
    assert [(change.row, change.amount) for change in found.changes] == [(1, -1), (3, 1)]
    assert found.farkas[2:] == (0, 0)


# ---- parts


def test_the_edges_of_a_ball_are_floats_outside_of_it() -> None:
    with working_bits(200):
        for sign in (1, -1):
            # Next to a float of odd last digit: a midpoint is rounded away from it.
            found = enclosure_of_ball(1.5 + flint.arb(2) ** -52 + sign * flint.arb(2) ** -61)
            exact = Q(3, 2) + Q(1, 2**52) + sign * Q(1, 2**61)
            assert abs(exact - Q(found.mid)) <= Q(found.rad) <= 8 * U
        three = definite_log_det(ball_matrix(np.array([[2.0, 1.0], [1.0, 2.0]])))
        assert abs(three - flint.arb(3).log()) < flint.arb(2) ** -150
    assert math.isinf(enclosure_of_ball(flint.arb("nan")).rad)


def test_a_certificate_shows_and_compares_what_it_states() -> None:
    def writer(path: object) -> None:
        raise AssertionError(path)

    one = Certificate(Verdict.OPTIMAL, 1.0, 1.0, 1e-6, "bracket", writer=writer)
    other = Certificate(Verdict.OPTIMAL, 1.0, 1.0, 1e-6, "bracket")
    assert "writer" not in repr(one)
    assert one == other


def test_a_radius_that_is_a_number_is_no_radius_of_a_matrix() -> None:
    """It would have to be one for each entry; to leave it out would be wrong."""
    with pytest.raises(ValueError, match="matmul"):
        Enclosure(np.eye(2), 0.5) @ np.ones(2)
    with pytest.raises(ValueError, match="matmul"):
        np.eye(2) @ Enclosure(np.ones(2), 0.5)


# ---- simple sets


@pytest.mark.parametrize("sigma", [1.5, 3.0, 1e300])
def test_powers_have_the_radius_of_their_roundings(sigma: float) -> None:
    """sigma^-i passes through 2 i roundings and may lose i eta."""
    n = 7
    found = _powers(n, sigma)
    for i, (mid, rad) in enumerate(zip(found.mid.tolist(), found.rad.tolist(), strict=True)):
        lemma = gamma(2 * i) * Q(mid)
        assert abs(Q(mid) - 1 / Q(sigma) ** i) <= Q(rad)
        assert is_between(lemma + i * SMALL, rad, lemma * (1 + Q(11, 10**7)) + (i + 1) * SMALL)
    assert not _powers(3, 1.0).rad.any()


def test_order_is_decided_without_rounding() -> None:
    """x_1 >= sigma x_2: at the float above the product, between it and the product, and below."""
    sigma = 1.1
    above = float((Enclosure.of(np.array([1.0])) * sigma).upper[0])
    domain = OrderedSimplex(2, sigma, 1.0 + above)
    assert feasible_near(domain, np.array([above, 1.0])) is not None
    assert feasible_near(domain, np.array([1.05, 1.0])) is None
    assert feasible_near(domain, np.array([2.1, 0.0])) is not None
    assert feasible_near(domain, np.array([3.0, -0.5])) is None
    assert feasible_near(OrderedSimplex(3, sigma), np.array([1.0, 0.0, 0.0])) is not None
    assert feasible_near(OrderedCone([1.0, 2.0, 3.0], np.ones(3)), np.zeros(3)) is not None
    plain = OrderedSimplex(3, 1.0, 1.0)
    assert feasible_near(plain, np.array([0.5, 0.25, 0.25])) is not None
    assert feasible_near(plain, np.array([0.5, 0.2, 0.3])) is None
    assert feasible_near(plain, np.array([0.2, 0.5, 0.3])) is None


@pytest.mark.parametrize(
    ("steps", "x", "inside"),
    [
        ([1.0, 1.0, 1.0], [0.5, 0.3, 0.3], True),
        ([1.0, 1.0, 1.0], [0.3, 0.5, 0.2], False),
        ([1.0, 1.0, 1.0], [0.5, 0.2, 0.3], False),
        ([2.0, 1.0, 1.0], [0.5, 0.25, 0.1], False),
        ([2.0, 1.0, 1.0], [0.5, 0.24, 0.1], True),
        ([2.0, 1.0, 1.0], [0.5, 0.4, 0.1], False),
        ([1.0, 2.0, 3.0], [0.1, 0.19, 0.28], True),
        ([1.0, 2.0, 3.0], [0.1, 0.19, 0.3], False),
        ([1.0, 2.0, 3.0], [0.1, 0.0, 0.0], True),
        ([1.0, 2.0, 3.0], [0.1, -0.1, -0.2], False),
    ],
)
def test_points_of_ordered_cones(steps: list[float], x: list[float], inside: bool) -> None:
    """x_i / d_i falls, and price'x is at most the total: by a factor where it is not."""
    domain = OrderedCone(steps, [1.0, 2.0, 1.0], 2.0)
    near = feasible_near(domain, np.array(x))
    # A ratio that is met with equality is not proven; 0.25 / 1 = 0.5 / 2 is one.
    assert (near is not None) == inside
    if inside:
        assert near is not None
        assert np.array_equal(near.mid, np.array(x))
        large = feasible_near(domain, 10 * np.array(x))
        assert large is not None
        price = [Q(1), Q(2), Q(1)]
        cost = sum(p * v for p, v in zip(price, rationals(10 * np.array(x)), strict=True))
        factor = min(Q(2) / cost, Q(1))
        for v, mid, rad in zip(x, large.mid.tolist(), large.rad.tolist(), strict=True):
            assert abs(Q(10 * v) * factor - Q(mid)) <= Q(rad) + 20 * U * Q(10 * v)
        assert sum(p * Q(m) for p, m in zip(price, large.mid.tolist(), strict=True)) <= 2 + 9 * U


def test_linear_functions_over_ordered_sets() -> None:
    """The minimum over the vertices, in rationals, times the total."""
    rng = np.random.default_rng(7)
    for _ in range(40):
        g = rng.normal(size=4)
        rad = rng.uniform(0, 1e-3, size=4)
        d = rng.uniform(0.5, 2.0, size=4)
        price = rng.uniform(0.5, 2.0, size=4)
        total = float(rng.uniform(1.5, 4.0))
        low = rationals(g) - rationals(rad)
        tops = np.cumsum(rationals(d) * low)
        truth = min(Q(0), Q(total) * min(tops / np.cumsum(rationals(d) * rationals(price))))
        found = linear_floor(OrderedCone(d, price, total), Enclosure(g, rad))
        assert truth - Q(1, 10**12) <= Q(found) <= truth
        sigma = float(rng.uniform(1.1, 2.0))
        e = np.array([1 / Q(sigma) ** i for i in range(4)], dtype=object)
        truth = Q(total) * min(np.cumsum(e * low) / np.cumsum(e))
        found = linear_floor(OrderedSimplex(4, sigma, total), Enclosure(g, rad))
        assert truth - Q(1, 10**12) <= Q(found) <= truth


def test_a_spectrahedron_charges_the_radius_of_a_function() -> None:
    """diag(1, 2) with a radius of 1/4 in each entry: the smallest eigenvalue is below 3/4."""
    g = Enclosure(np.array([1.0, 0.0, 2.0]), np.array([0.25, 0.0, 0.25]))
    found = linear_floor(Spectrahedron(2, 2.0), g)
    assert 1.5 - 1e-12 < found <= 1.5
    start = linear_floor(Spectrahedron(2, 2.0), g, np.array([1.0, 0.0, 1.0]))
    assert -2.0 - 1e-12 < start <= -2.0
    nothing = Enclosure(np.array([1.0, np.nan, 2.0]), np.zeros(3))
    assert linear_floor(Spectrahedron(2), nothing) == -math.inf


def test_planes_and_curvature_in_a_box() -> None:
    """lam (offset - normal'x) + sum of the least terms, for any price; -r^2 / (2 m) where curved."""
    box = BoxPlane([0.0, -1.0], [1.0, 2.0], [1.0, 2.0], 1.0)
    g = Enclosure.of(np.array([3.0, -1.0]))
    for x in (np.zeros(2), np.array([0.5, -0.5]), np.array([-1.0, 3.0])):
        for lam in (0.0, 0.5, -2.0):
            r = [3 - Q(lam), -1 - 2 * Q(lam)]
            d = [[Q(0) - Q(x[0]), Q(1) - Q(x[0])], [Q(-1) - Q(x[1]), Q(2) - Q(x[1])]]
            truth = Q(lam) * (1 - Q(x[0]) - 2 * Q(x[1]))
            truth += sum(min(a * end for end in ends) for a, ends in zip(r, d, strict=True))
            found = linear_floor(box, g, x, price=lambda *_, lam=lam: lam)
            assert truth - 400 * U <= Q(found) <= truth
    for forged in (math.nan, math.inf):
        with np.errstate(invalid="ignore"):
            assert linear_floor(box, g, price=lambda *_, lam=forged: lam) == -math.inf
    line = BoxPlane([-np.inf], [np.inf])
    for slope, m in ((1.0, 1.0), (-3.0, 0.5), (1e-3, 2.0)):
        truth = -(Q(slope) ** 2) / (2 * Q(m))
        one = Enclosure.of(np.array([slope]))
        found = linear_floor(line, one, np.zeros(1), np.array([m]))
        assert truth * (1 + 16 * U) <= Q(found) <= truth
        assert linear_floor(line, one, np.zeros(1), np.zeros(1)) == -math.inf
    # A side that is bounded may say more than the curvature.
    half = BoxPlane([-0.125], [np.inf])
    found = linear_floor(half, Enclosure.of(np.array([1.0])), np.zeros(1), np.ones(1))
    assert -0.125 - 1e-15 < found <= -0.125


def test_a_price_cannot_change_the_function() -> None:
    box = BoxPlane([0.0, 0.0], [1.0, 1.0], [1.0, 1.0], 1.0)
    g = Enclosure(np.array([1.0, 2.0]), np.array([0.25, 0.25]))

    def scribble(_: BoxPlane, function: Enclosure, __: object) -> float:
        function.mid[:] = 9.0
        function.rad[:] = 0.0
        return 0.0

    assert linear_floor(box, g, price=scribble) == linear_floor(box, g, price=lambda *_: 0.0)
    assert -1e-300 < linear_floor(box, g, price=scribble) <= 0.0
    assert linear_floor(box, g, price=plane_price) <= 0.75


def test_products_of_sets_are_added_up() -> None:
    both = Product((Simplex(2), BoxPlane([0.0], [2.0])))
    found = linear_floor(both, Enclosure.of(np.array([3.0, 1.0, -1.0])))
    assert -1.0 - 1e-14 < found <= -1.0
    start = np.array([1.0, 0.0, 1.0])
    found = linear_floor(both, Enclosure.of(np.array([3.0, 1.0, -1.0])), start)
    assert -3.0 - 1e-14 < found <= -3.0
    near = feasible_near(both, np.array([0.5, 0.5, 2.0]))
    assert near is not None
    assert near.mid.tolist() == [0.5, 0.5, 2.0]
    assert not near.rad.any()
    assert feasible_near(both, np.array([0.5, 0.5, 2.5])) is None
    assert feasible_near(both, np.array([-0.5, 1.5, 2.0])) is None
    assert 2.0**2 <= squared_reach(both, np.array([0.0, 0.0, 0.0])) < 6.0


def test_a_plane_that_is_missed_by_the_smallest_number() -> None:
    """Nothing can fall, and nothing need: what rises meets the plane."""
    tiny = 1e-323
    box = BoxPlane([0.0, 0.0], [1.0, 1.0], [1.0, 1.0], tiny)
    near = feasible_near(box, np.zeros(2))
    assert near is not None
    assert near.rad.sum() >= tiny
    # 1.5 is too much by 1/2: each coordinate falls by 1/4 of what it can.
    plane = BoxPlane([0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [1.0, -1.0, 0.0], 0.25)
    near = feasible_near(plane, np.array([0.75, 0.25, 0.5]))
    assert near is not None
    # The first can fall by 3/4, the second rise by 3/4, limited by the size of x: 1/4 in all.
    for entry in near.rad[:2].tolist():
        assert is_between(0.125, entry, 0.125 + 1e-15)
    assert near.rad[2] <= 5e-324
    # A coordinate moves by no more than the largest one.
    assert feasible_near(BoxPlane([0.0], [1.0], [2.0], 2.0), np.array([0.1])) is None


@pytest.mark.parametrize(("shifts", "multiple"), [(0.0, 2), (61.5, 64), (-4.0, 0), (70.0, None)])
def test_a_matrix_is_moved_by_as_little_as_its_proof_needs(
    shifts: float, multiple: int | None
) -> None:
    """Multiples 0, 2 and 64 of the shift are tried on the diagonal, in this order."""
    base = np.array([0.5, 0.0, 0.0])
    unit = cholesky_shift(np.diag([0.5, 0.0]))
    x = base.copy()
    x[2] = -shifts * unit
    # The shift hardly depends on the small entry.
    near = feasible_near(Spectrahedron(2, 0.5), x)
    if multiple is None:
        assert near is None
        return
    assert near is not None
    moved = (near.mid[2] - x[2]) / unit
    assert abs(moved - multiple) < 0.5


# ---- functions and games over sets


def test_signed_sums_are_exact_where_nothing_is_rounded() -> None:
    K = np.eye(3)

    def found(sign: list[float], point: list[int], p: list[float]) -> Enclosure:
        function = KernelQuadratic(
            K, np.array(sign), np.zeros(len(sign)), np.array(point, dtype=int)
        )
        return _coefficients(function, np.array(p))

    once = found([1.0, -1.0], [2, 0], [0.1, 0.3])
    assert once.mid.tolist() == [-0.3, 0.0, 0.1]
    assert not once.rad.any()
    assert not found([], [], []).rad.any()
    twice = found([1.0, 1.0], [1, 1], [1.0, 2.0**-60])
    assert abs(1 + Q(2) ** -60 - Q(twice.mid[1])) <= Q(twice.rad[1]) <= 5 * U
    for sign in (0.1, 3.0, -0.7):
        for p in (0.1, 0.3, 0.7):
            one = found([sign], [0], [p])
            assert abs(Q(sign) * Q(p) - Q(one.mid[0])) <= Q(one.rad[0])
            assert one.rad[0] > 0


def test_what_the_largest_entry_of_a_matrix_is() -> None:
    """H + phi I is positive semidefinite: its diagonal bounds all entries."""
    assert _largest_entry(np.array([[-0.9]]), 1.0) >= 0.9
    assert 3.5 <= _largest_entry(np.array([[3.0, 2.0], [2.0, 1.0]]), 0.5) <= 3.5 + 1e-14
    assert _largest_entry(np.array([[1.0, -7.0], [-7.0, 1.0]]), math.inf) == 7.0


def test_the_value_at_a_point_of_the_set_charges_its_radius() -> None:
    """f(p) + |g|'r + max|H| (1'r)^2 / 2, and the sum of many small terms is not lost."""
    domain = BoxPlane(np.full(2, -9.0), np.full(2, 9.0))
    H = np.array([[2.0, 1.0], [1.0, 4.0]])
    c = np.array([1.0, -3.0])
    p = np.array([0.5, 0.25])
    r = np.array([0.125, 0.5])
    found = _by_formula(Quadratic(H, c), domain, p, Enclosure(p, r), 0.0, None)
    g = H @ p + c
    lemma = p @ H @ p / 2 + c @ p + np.abs(g) @ r + 4.0 * r.sum() ** 2 / 2
    assert lemma <= found.upper <= lemma + 1e-13
    for corner in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
        z = p + r * corner
        assert z @ H @ z / 2 + c @ z <= found.upper
    n = 20000
    small = np.full(n, 2.0**-54)
    small[0] = 1.0
    zero = np.zeros(n)
    box = BoxPlane(np.full(n, -9.0), np.full(n, 9.0))
    many = _by_formula(Linear(np.ones(n)), box, zero, Enclosure(zero, small), 0.0, None)
    assert Q(many.upper) >= 1 + (n - 1) * Q(2) ** -54


def test_what_a_matrix_lacks_is_charged_over_the_set() -> None:
    """phi |z - p|^2 / 2 over the simplex, where |z - p| <= 1 + |p|."""
    function = Quadratic(np.eye(2), np.zeros(2))
    p = np.array([0.5, 0.5])
    plain = bounds_of_minimum(function, Simplex(2), p)
    for phi in (1e-3, 0.25):
        charged = bounds_of_minimum(function, Simplex(2), p, phi=phi)
        expected = 0.5 * phi * (1 + math.sqrt(0.5)) ** 2
        assert plain.lower - charged.lower == pytest.approx(expected, rel=1e-9)
        assert "lack" in charged.lower_by
        assert charged.upper >= 0.25
    assert 0.25 - 1e-14 < plain.lower <= 0.25
    doubled = KernelQuadratic(np.eye(1), np.array([2.0, 2.0]), np.zeros(2), np.zeros(2, int))
    base = bounds_of_minimum(doubled, Simplex(2), p)
    charged = bounds_of_minimum(doubled, Simplex(2), p, phi=1e-3)
    # z = 2 (p_1 + p_2): |z|^2 <= 4 * 2 |p|^2.
    expected = 0.5e-3 * 8 * (1 + math.sqrt(0.5)) ** 2
    assert base.lower - charged.lower == pytest.approx(expected, rel=1e-9)


def test_a_matrix_of_which_nothing_is_known_has_a_value() -> None:
    """x_1 x_2 is not convex: no lower end, and the value 1/4 at a point of the simplex."""
    function = Quadratic(np.array([[0.0, 1.0], [1.0, 0.0]]), np.zeros(2))
    ends = bounds_of_minimum(function, Simplex(2), np.array([0.5, 0.5]), phi=math.inf)
    assert ends.lower == -math.inf
    assert 0.25 <= ends.upper < 0.25 + 1e-15
    off = np.array([0.5, 0.5 + 2.0**-40])
    ends = bounds_of_minimum(function, Simplex(2), off, phi=math.inf)
    assert 0.25 - 1e-11 <= ends.upper < 0.25 + 1e-11


def test_convexity_is_decided_exactly_up_to_an_order() -> None:
    for n, is_exact in ((2, True), (40, True), (41, False)):
        phi = nonconvexity(Quadratic(np.ones((n, n)), np.zeros(n)))
        assert (phi == 0.0) == is_exact
        assert 0.0 <= phi < 1e-10
    assert 1.0 <= nonconvexity(Quadratic(-np.eye(3), np.zeros(3))) < 1.0 + 1e-12
    assert nonconvexity(Linear([1.0])) == 0.0


def test_a_game_without_formulas_needs_both_strategies() -> None:
    """x y on [0, 1]^2: at a point outside nothing is said, and the value 0 lies between the ends."""
    game = SaddleOracle(
        lambda x, y: float(x @ y), lambda x, y: y, lambda x, y: x, accuracy=2.0**-40
    )
    unit = BoxPlane([0.0], [1.0])
    good, bad = np.array([0.5]), np.array([2.0])
    for x, y in ((good, bad), (bad, good), (bad, bad)):
        ends = bounds_of_game(game, unit, unit, x, y)
        assert (ends.lower, ends.upper) == (-math.inf, math.inf)
        assert not ends.lower_by
        assert not ends.upper_by
    ends = bounds_of_game(game, unit, unit, np.zeros(1), np.ones(1))
    assert -1e-11 < ends.lower <= 0.0 <= ends.upper < 1e-11
    # (1 + |value|) accuracy of the value, and as much of each gradient.
    far = bounds_of_game(game, unit, unit, np.ones(1), np.ones(1))
    assert far.lower == pytest.approx(-4 * 2.0**-40, rel=1e-3)
    assert far.upper == pytest.approx(1 + 2 * 2.0**-40, abs=2.0**-44)


def test_a_function_of_ones_own_is_as_accurate_as_stated() -> None:
    """x'x / 2 over the simplex: 1/4, from values and gradients that may be off by 2^-30 (1 + size)."""
    function = Oracle(2, lambda x: float(x @ x) / 2, lambda x: x, accuracy=2.0**-30)
    half = np.array([0.5, 0.5])
    ends = bounds_of_minimum(function, Simplex(2), half)
    off = 2.0**-30
    assert ends.upper == pytest.approx(0.25 + 1.25 * off, rel=1e-13)
    # The gradient is off in each entry, at the minimum and at p.
    assert ends.lower == pytest.approx(0.25 - 1.25 * off - 2 * 1.5 * off, rel=1e-12)
    assert "as stated" in ends.lower_by
    outside = bounds_of_minimum(function, Simplex(2), np.array([2.0, -1.0]))
    assert outside.upper == math.inf
    assert outside.lower <= 0.25
    broken = Oracle(2, lambda x: math.nan, lambda x: x, accuracy=2.0**-30)
    nothing = bounds_of_minimum(broken, Simplex(2), half)
    assert (nothing.lower, nothing.upper) == (-math.inf, math.inf)
    silent = Oracle(2, lambda x: float(x @ x) / 2, lambda x: x)
    nothing = bounds_of_minimum(silent, Simplex(2), half)
    assert (nothing.lower, nothing.upper) == (-math.inf, math.inf)


def test_stretching_proves_a_lower_end_over_an_orthant() -> None:
    """(x_1 + x_2)^2 / 2 - x_1 - x_2 over x >= 0: -1/2, and the gradient at x lacks a little."""
    function = Quadratic(np.ones((2, 2)), np.array([-1.0, -1.0]))
    domain = BoxPlane(np.zeros(2), np.full(2, np.inf))
    x = np.array([0.5, 0.5 - 2.0**-30])
    assert bounds_of_minimum(function, domain, x).lower == -math.inf
    form = SimplexForm(function, domain)
    found = bracket_over_set(form, x, None, 0.0, Point({"x": x}))
    assert -0.5 - 1e-8 < found.lower <= -0.5


# ---- cone programs as stated


def test_products_of_entries_see_every_sign() -> None:
    products = EntryProducts(
        np.array([0, 1, 1, 2]), np.array([0, 0, 1, 1]), np.array([1.0, 2.0, 3.0, 0.0]), np.ones(3)
    )
    for x, zeros in (
        ([-1.0, 0.0], [False, False, True]),
        ([1.0, 0.0], [False, False, True]),
        ([0.0, -1.0], [True, False, True]),
        ([0.0, 0.0], [True, True, True]),
    ):
        assert products.are_zeros(np.array(x)).tolist() == zeros
    product, sizes = products.of(np.array([-1.0, 2.0]))
    assert product.tolist() == [-1.0, 4.0, 0.0]
    assert sizes.tolist() == [1.0, 8.0, 0.0]
    dense = TermProducts(np.array([[1.0, 0.0], [2.0, 3.0]]), np.ones(2))
    assert dense.are_zeros(np.array([0.0, -1.0])).tolist() == [True, False]


def test_bounds_that_follow_at_underflow() -> None:
    """3/4 of 2 eta is rounded up in each of ten terms: that is charged before it is taken off."""
    n = 11
    row = np.zeros(n, dtype=int)
    entry = np.append(np.full(n - 1, 0.75), 1.0)
    lower = np.append(np.full(n - 1, 2 * ETA), -np.inf)
    upper = np.full(n, np.inf)
    found = _propagate(row, np.arange(n), entry, np.zeros(1), lower, upper)
    # x_n <= -15 eta, in exact arithmetic.
    assert -15 * SMALL <= Q(found[1][-1]) <= 0
    assert np.isinf(found[1][:-1]).all()


def test_bounds_that_underflow_are_rounded_outwards() -> None:
    """100 x <= 40 eta: the quotient underflows to 0, and x may be 0.4 eta."""
    for sign in (1.0, -1.0):
        lower, upper = _propagate(
            np.zeros(1, int),
            np.zeros(1, int),
            np.array([sign * 100.0]),
            np.array([40 * ETA]),
            np.full(1, -np.inf),
            np.full(1, np.inf),
        )
        assert (sign * (upper if sign > 0 else lower))[0] >= ETA


def test_entries_off_the_diagonal_count_twice_where_they_are_plain() -> None:
    cones = Cones(nonneg=1, psd=(2, 3))
    rows = np.zeros((10, 1))
    for plain, weights in (
        (True, [1, 1, 2, 1, 1, 2, 2, 1, 2, 1]),
        (False, [1] * 10),
    ):
        statement = ConeStatement(
            np.zeros(1), sparse.csc_array(rows), np.zeros(10), cones, plain=plain
        )
        assert statement.weight.tolist() == weights


def test_rows_that_say_nothing_and_rows_that_cannot_hold() -> None:
    """x >= 1 beside x <= inf, and beside x <= -inf."""
    A = sparse.csc_array([[-1.0], [1.0]])
    point = PreciseWitness(np.array([[1.5]]), np.zeros(0, np.intp))
    y = PreciseWitness(np.array([[1.0, 0.0]]), np.array([0]))
    for side, finite in ((math.inf, True), (-math.inf, False)):
        statement = ConeStatement(np.ones(1), A, np.array([-1.0, side]), Cones(nonneg=2))
        upper = precise_upper_bound(statement, point)
        lower = precise_lower_bound(statement, y)
        assert math.isfinite(upper.value) == math.isfinite(lower.value) == finite
        if finite:
            assert is_between(1.5, upper.value, 1.5 + 1e-15)
            assert is_between(1 - 1e-15, lower.value, 1.0)
        else:
            assert upper.by == lower.by == "a row asks for something below -inf"


def test_places_of_a_precise_witness() -> None:
    statement = ConeStatement(np.ones(1), sparse.csc_array([[-1.0]]), -np.ones(1), Cones(nonneg=1))
    for moved, known in (([0], True), ([-1], False), ([1], False), ([0, 5], False)):
        witness = PreciseWitness(np.array([[1.0]]), np.array(moved, dtype=np.intp))
        found = precise_lower_bound(statement, witness)
        assert math.isfinite(found.value) == known
        assert ("does not exist" in found.by) != known


def test_a_pivot_of_minus_one_divides() -> None:
    matrix = RationalMatrix([[(0, -1)], [(0, 3), (1, -1)]])
    assert as_fractions(matrix.solve([flint.fmpq(2), flint.fmpq(1)])) == (-2, -7)
    assert as_fractions(matrix.solve_transposed([flint.fmpq(2), flint.fmpq(1)])) == (-5, -1)


def test_a_moment_is_over_when_it_has_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "perf_counter", lambda: 5.0)
    for moment, is_over in ((4.0, True), (5.0, False), (6.0, False)):
        with budget(moment):
            assert exhausted() == is_over
            assert remaining() == moment - 5.0
    assert not exhausted()
