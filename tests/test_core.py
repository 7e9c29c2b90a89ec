"""The core charges what its lemmas say: in rationals, never less, and hardly more.

Less would be a false statement; much more, a proof that gives up. The right-hand sides of the lemmas
are evaluated exactly on random data, at boundaries, and where all errors have one sign.
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

from klopt.model.cones import Cones
from klopt.problems._logdet.witness import nearest_factor
from klopt.problems._margin.witness import with_sum
from klopt.proof.balls import (
    ball_matrix,
    definite_log_det,
    enclosure_of_ball,
    working_bits,
)
from klopt.proof.certificate import Certificate, Verdict, is_narrow, within
from klopt.proof.cone_infeasibility import is_infeasible, is_ray
from klopt.proof.cone_lower_bound import _Dual, lower_bound
from klopt.proof.cone_membership import (
    block_matrix,
    dual_room,
    in_cone,
    in_dual_cone,
    in_second_order_cones,
    norms_of_blocks,
    second_order_depths,
)
from klopt.proof.cone_slack import (
    enclose_slack,
    enclose_value,
    is_zero,
    slack_summed_exactly,
)
from klopt.proof.cone_upper_bound import upper_bound
from klopt.proof.cone_witnesses import DualWitness, PrimalWitness
from klopt.proof.convexity import curvature_beside, negative_curvature
from klopt.proof.directed import (
    difference_down,
    norm_up,
    norms_by_rows,
    product_up,
    quotient_up,
    row_norms,
    sum_up,
    total_up,
)
from klopt.proof.dyadic import balanced, exact_sign_of_sum
from klopt.proof.enclosure import (
    ETA,
    Enclosure,
    enclose_kernel_product,
    enclose_norm,
    enclose_product,
    enclose_sum,
    gamma,
)
from klopt.proof.exact_sums import exact_dot, exact_row_sums, two_products
from klopt.proof.faces import compressed, turned
from klopt.proof.kernel_product import enclose_in_blocks, enclose_in_slices, entry_bounds
from klopt.proof.linear_systems import shortest_correction
from klopt.proof.rational import RationalProgram, check_rational_farkas, check_rational_ray
from klopt.proof.semidefinite import (
    cholesky_shift,
    eigenvalue_floor,
    is_positive_semidefinite,
    radius_norm,
    spectral_norm_bound,
)
from klopt.proof.split_columns import merged_columns
from klopt.proof.statement import ConeStatement, QuadraticConstraint
from klopt.proof.time_budget import budget, exhausted, remaining

U = Q(2) ** -53
SEEDS = range(8)
TINY = Q(2) ** -1074


def gamma_n(n: int) -> Q:
    return n * U / (1 - n * U)


def exact(x: object) -> list[Q]:
    return [Q(float(v)) for v in np.ravel(np.asarray(x, float))]


def between(rad: float, least: Q, units: float, of: Q | None = None, tiny: int = 400) -> bool:
    """Whether least <= rad <= least + `units` u `of`, beyond underflow; `of` is `least` itself."""
    most = least + Q(units) * U * (least if of is None else of) + tiny * TINY
    return least <= Q(float(rad)) <= most


def draw(rng: np.random.Generator, *shape: int, decades: float = 3.0) -> np.ndarray:
    return rng.normal(size=shape) * 10.0 ** rng.uniform(-decades, decades, size=shape)


# ---- enclosures


@pytest.mark.parametrize("n", [0, 1, 2, 7, 1000, 10**9])
def test_gamma_is_that_of_the_books(n: int) -> None:
    assert gamma_n(n) <= Q(gamma(n)) <= gamma_n(n) * (1 + 16 * U)


def test_gamma_ends_at_a_half() -> None:
    assert gamma(2**52) == math.inf
    assert gamma(2**52 - 1) < math.inf


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e100])
def test_radii_of_single_operations(seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    a, b = (draw(rng, 2) * scale).tolist()
    ra, rb = (np.abs(draw(rng, 2)) * scale * 1e-3).tolist()
    x, y = Enclosure(a, ra), Enclosure(b, rb)
    for found, sign in ((x + y, 1), (x - y, -1)):
        assert found.mid == a + sign * b
        assert between(found.rad, Q(ra) + Q(rb) + U * abs(Q(found.mid)), 40)
    found = x * y
    spread = abs(Q(a)) * Q(rb) + Q(ra) * (abs(Q(b)) + Q(rb))
    # An error of a subnormal product is eta / 2 at most, and is charged.
    assert found.mid == a * b
    assert between(found.rad, U * abs(Q(found.mid)) + spread + TINY / 2, 60)


@pytest.mark.parametrize("seed", SEEDS)
def test_radii_of_quotients(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = draw(rng, 2).tolist()
    ra, rb = abs(a) * 1e-9, abs(b) * 0.25
    found = Enclosure(a, ra) / Enclosure(b, rb)
    ends = [(Q(a) + s * Q(ra)) / (Q(b) + t * Q(rb)) for s in (-1, 1) for t in (-1, 1)]
    worst = max(abs(end - Q(found.mid)) for end in ends)
    assert between(found.rad, worst, 100, worst + abs(Q(found.mid)))
    for divisor in (Enclosure(0.0, 0.0), Enclosure(1.0, 1.0), Enclosure(-1.0, 1.5)):
        assert (Enclosure(a, 0.0) / divisor).rad == math.inf
    # A divisor that is nearly 0 at its end, by less than the rounding of a difference.
    near = Enclosure(1.0, np.nextafter(1.0, 0.0))
    assert (Enclosure(1.0, 0.0) / near).upper >= 2.0**53 or (1.0 / near).rad == math.inf


@pytest.mark.parametrize("n", [1, 2, 9, 130])
def test_radii_of_sums(n: int) -> None:
    rng = np.random.default_rng(n)
    mid, rad = draw(rng, n), np.abs(draw(rng, n)) * 1e-12
    found = Enclosure(mid, rad).sum()
    terms = sum(map(abs, exact(mid)))
    least = gamma_n(n) * terms + sum(exact(rad))
    assert between(found.rad, least, 2 * n + 30)
    assert abs(Q(found.mid) - sum(exact(mid))) <= gamma_n(n) * terms
    table = Enclosure(np.vstack([mid, 2 * mid]), np.vstack([rad, rad]))
    by_rows = table.sum(axis=1)
    assert by_rows.mid.tolist() == [float(np.sum(mid)), float(np.sum(2 * mid))]
    assert between(by_rows.rad[0], least, 2 * n + 30)
    assert table.sum(axis=0).shape == (n,)


@pytest.mark.parametrize("k", [1, 3, 20])
def test_radii_of_products(k: int) -> None:
    rng = np.random.default_rng(k)
    A, B = draw(rng, 2, k), draw(rng, k, 3)
    rA, rB = np.abs(draw(rng, 2, k)) * 1e-9, np.abs(draw(rng, k, 3)) * 1e-9
    size = [
        [
            sum(x * y for x, y in zip(map(abs, exact(row)), map(abs, exact(column)), strict=True))
            for column in B.T
        ]
        for row in A
    ]
    for a, b in (
        (Enclosure(A, rA), Enclosure(B, rB)),
        (Enclosure(A, rA), B),
        (A, Enclosure(B, rB)),
        (A, B),
        (sparse.csr_array(A), B),
        (sparse.csr_array(A), Enclosure(B, rB)),
    ):
        found = enclose_product(a, b)
        ra = exact(a.rad) if isinstance(a, Enclosure) else [Q(0)] * (2 * k)
        rb = exact(b.rad) if isinstance(b, Enclosure) else [Q(0)] * (3 * k)
        for i in range(2):
            for j in range(3):
                least = gamma_n(k) * size[i][j]
                for t in range(k):
                    x, y = abs(Q(A[i, t])), abs(Q(B[t, j]))
                    dx, dy = ra[i * k + t], rb[t * 3 + j]
                    least += x * dy + dx * (y + dy)
                assert between(found.rad[i, j], least, 2 * k + 30)


def test_radius_of_products_below_underflow() -> None:
    x = np.full(30, 1.4 * 2.0**-538)
    # Each product is 1.96 2^-1076 and is rounded to 0: all errors have one sign.
    found = Enclosure.of(x) @ x
    truth = 30 * Q(x[0]) ** 2
    assert abs(truth - Q(float(found.mid))) <= Q(float(found.rad))
    assert found.rad <= 200 * ETA
    dot = (Enclosure.of(x) * x).sum()
    assert dot.lower <= truth <= dot.upper


@pytest.mark.parametrize("n", [1, 2, 5, 64])
@pytest.mark.parametrize("scale", [1.0, 1e-170, 1e170, 2.0**-1074])
def test_norms(n: int, scale: float) -> None:
    rng = np.random.default_rng(n)
    x = rng.integers(1, 1000, n) * scale
    rad = rng.integers(0, 2, n) * scale
    square = sum(v * v for v in exact(x))
    for found in (enclose_norm(x), enclose_norm(Enclosure.of(x))):
        assert Q(max(float(found.lower), 0.0)) ** 2 <= square <= Q(float(found.upper)) ** 2
        assert (
            Q(float(found.upper)) ** 2
            <= square * (1 + (6 * n + 200) * U) + 9 * TINY * Q(scale) * n * 2000
        )
    wide = enclose_norm(Enclosure(x, rad))
    most = sum((v + r) ** 2 for v, r in zip(exact(x), exact(rad), strict=True))
    least = sum((v - r) ** 2 for v, r in zip(exact(x), exact(rad), strict=True))
    assert Q(max(float(wide.lower), 0.0)) ** 2 <= least
    assert most <= Q(float(wide.upper)) ** 2
    # ||mid|| + ||rad|| and little more.
    reach = math.sqrt(float(np.sum((rad / scale) ** 2)))
    length = math.sqrt(float(np.sum((x / scale) ** 2)))
    slack = 20 if scale < 1e-300 else 0
    assert float(wide.upper) / scale <= (length + reach) * (1 + 1e-12) + slack
    assert norm_up(x) >= 0
    assert (
        square
        <= Q(norm_up(x)) ** 2
        <= square * (1 + (6 * n + 200) * U) + 9 * TINY * Q(scale) * n * 2000
    )


def test_norms_of_nothing_and_of_infinities() -> None:
    assert enclose_norm(np.zeros(3)).upper == 0.0
    assert enclose_norm(np.zeros((0,))).upper == 0.0
    assert enclose_norm(Enclosure(np.zeros(2), np.array([3.0, 4.0]))).upper >= 5.0
    assert norm_up(np.array([1.0, np.inf])) == math.inf
    assert norm_up(np.array([1.0, np.nan])) == math.inf
    huge = np.full(4, 1e308)
    assert norm_up(huge) == math.inf or Q(norm_up(huge)) ** 2 >= 4 * Q(1e308) ** 2


@pytest.mark.parametrize("seed", SEEDS)
def test_products_with_kernels(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    F = rng.normal(size=(n, n))
    K = F @ F.T
    K = (K + K.T) / 2
    floor = -0.5 if seed % 2 else 0.0
    v, rv = draw(rng, n), np.abs(draw(rng, n)) * 1e-10
    roots = np.sqrt(K.diagonal() - floor)
    for x in (Enclosure.of(v), Enclosure(v, rv)):
        found = enclose_kernel_product(K, x, floor)
        again = enclose_kernel_product(K, x, floor, K.diagonal())
        assert (found.rad == again.rad).all()
        size = sum(Q(float(r)) * abs(w) for r, w in zip(roots, exact(v), strict=True))
        spread = sum(Q(float(r)) * w for r, w in zip(roots, exact(x.rad), strict=True))
        for i in range(n):
            least = Q(float(roots[i])) * (gamma_n(n) * size + spread)
            # The roots themselves are rounded.
            assert between(found.rad[i], least * (1 - 8 * U), 8 * n + 120)
    r = entry_bounds(K, floor)
    for i in range(n):
        assert (
            Q(K[i, i]) - Q(floor) <= Q(float(r[i])) ** 2 <= (Q(K[i, i]) - Q(floor)) * (1 + 10 * U)
        )


def test_a_negative_diagonal_is_covered() -> None:
    K = np.array([[-1e-3, 0.0], [0.0, 1.0]])
    found = enclose_kernel_product(K, np.array([1.0, 1.0]), -1e-3)
    assert found.rad[0] > 0
    assert entry_bounds(K, -1e-3).tolist()[0] >= 0


@pytest.mark.parametrize("n", [1, 63, 64, 65, 129, 300])
@pytest.mark.parametrize("dense", [True, False])
def test_products_in_blocks(n: int, dense: bool) -> None:
    rng = np.random.default_rng(n)
    F = rng.normal(size=(n, 3))
    K = F @ F.T + np.eye(n)
    K = (K + K.T) / 2
    v = draw(rng, n)
    if not dense:
        v[rng.permutation(n)[: max(n - 2, 0)]] = 0.0
    r = entry_bounds(K, 0.0)
    found = enclose_in_blocks(K, v, r)
    size = sum(a * abs(b) for a, b in zip(exact(r), exact(v), strict=True))
    terms = n if 4 * np.count_nonzero(v) >= n else max(np.count_nonzero(v), 1)
    parts = -(-terms // 64)
    for i in range(0, n, 7):
        truth = sum(a * b for a, b in zip(exact(K[i]), exact(v), strict=True))
        assert abs(truth - Q(float(found.mid[i]))) <= Q(float(found.rad[i]))
        least = gamma_n(min(n, 64) + parts) * Q(float(r[i])) * size
        assert between(found.rad[i], least, 4 * n + 120, tiny=2 * n + 20)


@pytest.mark.parametrize("n", [1, 2, 30, 70])
def test_products_in_slices(n: int) -> None:
    """Rows of all scales, and sums that cancel to their last bits: one rounding, and hardly more."""
    rng = np.random.default_rng(n)
    K = draw(rng, n, n, decades=8)
    v = draw(rng, n, decades=8)
    products = np.array(
        [float(sum(a * b for a, b in zip(exact(K[i]), exact(v), strict=True))) for i in range(n)]
    )
    for plus in ((), (-products,), (-products, 1e-3)):
        found = enclose_in_slices(K, v, plus)
        for i in range(n):
            truth = sum(a * b for a, b in zip(exact(K[i]), exact(v), strict=True))
            for term in plus:
                truth += Q(float(np.broadcast_to(term, n)[i]))
            assert abs(truth - Q(float(found.mid[i]))) <= Q(float(found.rad[i]))
            size = Q(float(np.abs(K[i]).max())) * Q(float(np.abs(v).max()))
            assert Q(float(found.rad[i])) <= U * abs(truth) * 2 + n * size * Q(2) ** -70
    # Products that underflow or overflow.
    small = enclose_in_slices(np.full((2, 2), 2.0**-600), np.full(2, 1.5 * 2.0**-475))
    assert abs(3 * Q(2) ** -1075 - Q(float(small.mid[0]))) <= Q(float(small.rad[0])) <= 40 * TINY
    assert (
        enclose_in_slices(np.full((2, 2), 1e300), np.full(2, 1e300)).rad.tolist() == [math.inf] * 2
    )


# ---- directed scalars, dyadic sums


@pytest.mark.parametrize("seed", SEEDS)
def test_directed_operations_are_next_to_the_exact_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b, c = np.abs(draw(rng, 3)).tolist()
    pairs = [
        (sum_up(a, -b, c), Q(a) - Q(b) + Q(c)),
        (difference_down(a, b), Q(a) - Q(b)),
        (product_up(a, b, c), Q(a) * Q(b) * Q(c)),
        (quotient_up(a, b), Q(a) / Q(b)),
    ]
    for (found, truth), side in zip(pairs, (1, -1, 1, 1), strict=True):
        assert 0 <= side * (Q(found) - truth) <= 8 * U * abs(truth) + 4 * TINY
    x = np.abs(draw(rng, 50))
    assert between(total_up(x), sum(exact(x)), 200)
    # 1 and many halves of its last place: each is lost by one sum from left to right.
    lost = np.array([1.0] + [float(U)] * 400)
    assert sum(exact(lost)) <= Q(total_up(lost))


def test_directed_operations_at_their_ends() -> None:
    assert sum_up(math.inf, 1.0) == sum_up(1.0, -math.inf) == sum_up(math.nan) == math.inf
    assert product_up(1e200, 1e200) == product_up(math.nan, 1.0) == math.inf
    assert product_up(5e-324, 0.25) > 0
    assert quotient_up(1.0, 0.0) == quotient_up(1.0, -1.0) == quotient_up(1.0, math.nan) == math.inf
    assert quotient_up(1e300, 1e-300) == math.inf
    assert quotient_up(1.0, 5e-324) == math.inf
    assert total_up(np.array([1e308, 1e308])) == math.inf
    assert total_up(np.zeros(0)) >= 0
    assert sum_up() > 0 or sum_up() == 0


@pytest.mark.parametrize("seed", range(30))
def test_balanced_vectors(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    z = draw(rng, n, decades=float(rng.choice([0.0, 1.0, 8.0])))
    index = int(np.argmax(np.abs(z)))
    z[index] = 0.0
    z[index] = -float(sum(exact(z)))
    found = balanced(z)
    assert sum(exact(found)) == 0
    assert exact_sign_of_sum(found) == 0
    largest = float(np.abs(z).max())
    assert (np.abs(found) <= np.abs(z)).all()
    assert (found * z >= 0).all()
    assert np.abs(found - z).max() <= (n + 2) * 2.0**-52 * largest
    assert balanced(np.zeros(3)).tolist() == [0.0, 0.0, 0.0]


def test_balancing_takes_from_both_sides() -> None:
    for z in (np.array([1.0, 1.0, -1.0]), np.array([-1.0, -1.0, 1.0]), np.array([3.0, -1.0, -1.0])):
        found = balanced(z)
        assert sum(exact(found)) == 0
        assert (np.abs(found) <= np.abs(z)).all()


@pytest.mark.parametrize("seed", range(30))
def test_vectors_of_a_given_sum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 30))
    total = float(rng.uniform(0.1, 0.9)) * n
    x = rng.uniform(size=n)
    x = np.clip(x * total / x.sum(), 0.0, 1.0)
    found = with_sum(x, total)
    excess = sum(exact(found)) - Q(total)
    assert 0 <= excess <= 2 * U * max(Q(total), 1)
    assert exact_sign_of_sum(found, total) == (excess > 0)
    assert ((found >= 0) & (found <= 1)).all()
    assert with_sum(np.ones(3), 4.0).tolist() == [1.0, 1.0, 1.0]
    assert sum(exact(with_sum(np.array([1.0, 1.0, 0.25]), 1.0))) == 1
    assert exact_sign_of_sum(np.array([1.0, 2.0**-60]), 1.0) == 1
    assert exact_sign_of_sum(np.array([1.0, -(2.0**-60)]), 1.0) == -1


# ---- semidefinite


@pytest.mark.parametrize("n", [1, 2, 5, 60])
@pytest.mark.parametrize("scale", [1.0, 1e-300, 1e200])
def test_the_shift_of_cholesky_is_that_of_rump(n: int, scale: float) -> None:
    rng = np.random.default_rng(n)
    A = np.diag(rng.uniform(size=n) * scale)
    diagonal = exact(A.diagonal())
    found = Q(cholesky_shift(A))

    def phi(k: int) -> Q:
        return gamma_n(k) / (1 - gamma_n(k))

    least = sum((phi(i + 2) * d for i, d in enumerate(diagonal)), Q(0)) + U * max(diagonal)
    most = phi(n + 5) * sum(diagonal) + 2 * U * max(diagonal)
    underflow = n * (n + 2) * (max(diagonal) + 1) * TINY
    assert least + underflow <= found <= (most + 4 * underflow) * (1 + Q(2) ** -39) + 16 * TINY
    # The sign of a diagonal entry saves nothing.
    assert Q(cholesky_shift(-A)) == found


def laplacian(n: int, t: float) -> np.ndarray:
    """n I - 11' + t I: integers beside t, and the smallest eigenvalue is t."""
    return n * np.eye(n) - np.ones((n, n)) + t * np.eye(n)


@pytest.mark.parametrize("n", [2, 3, 8, 40])
@pytest.mark.parametrize("t", [0.0, 1.0, 1024.0, -1.0, -1024.0, 2.0**-30])
def test_no_eigenvalue_is_overstated(n: int, t: float) -> None:
    A = laplacian(n, t)
    for margin in (np.nextafter(t, np.inf), t + 1e-13, t):
        assert not is_positive_semidefinite(A, float(margin))
    step = cholesky_shift(A) + 2 * abs(t) * n * gamma(n + 8) + 4 * float(U) * abs(t)
    assert is_positive_semidefinite(A, t - 3 * step)
    found = eigenvalue_floor(A)
    assert t - 20 * step <= found < t
    assert t - 20 * step <= eigenvalue_floor(A, t) < t
    assert eigenvalue_floor(A, t - 1e-3) <= t - 1e-3
    assert eigenvalue_floor(A, t + 1.0) == -math.inf
    # Garbage above the diagonal is not read.
    garbage = A + np.triu(np.full((n, n), 7.0), 1)
    assert is_positive_semidefinite(garbage, t - 3 * step)


def test_small_and_broken_matrices() -> None:
    assert is_positive_semidefinite(np.zeros((0, 0)))
    assert eigenvalue_floor(np.zeros((0, 0))) == math.inf
    assert eigenvalue_floor(np.array([[np.nan]])) == -math.inf
    assert not is_positive_semidefinite(np.array([[np.inf]]))
    assert not is_positive_semidefinite(np.array([[1.0]]), math.nan)
    assert not is_positive_semidefinite(np.array([[1e300, 1e300], [1e300, 1e-300]]))
    assert not is_positive_semidefinite(np.array([[0.0]]))
    assert is_positive_semidefinite(np.array([[1e-300]]))
    assert not is_positive_semidefinite(np.array([[1e-323]]), 1e-323)
    assert spectral_norm_bound(np.zeros((0, 0))) == 0.0


@pytest.mark.parametrize("n", [1, 4, 30])
def test_row_sums_bound_norms(n: int) -> None:
    rng = np.random.default_rng(n)
    A = draw(rng, n, n)
    R = np.abs(draw(rng, n, n)) * 1e-6
    sums = [sum(map(abs, exact(A[i]))) + sum(exact(R[i])) for i in range(n)]
    assert between(spectral_norm_bound(A, R), max(sums), 4 * n + 60)
    assert between(radius_norm(R), max(sum(exact(R[i])) for i in range(n)), 4 * n + 60)
    assert between(
        spectral_norm_bound(A, 0.5),
        max(sum(map(abs, exact(A[i]))) + Q(n, 2) for i in range(n)),
        4 * n + 60,
    )


# ---- balls and exact sums


def test_floats_around_balls() -> None:
    with working_bits(300):
        for centre in (1.0, -3.0, 1e20, 0.1):
            shift = flint.arb(2) ** -200
            for ball, truth in (
                (flint.arb(centre) + shift, Q(centre) + Q(2) ** -200),
                (flint.arb(centre) - shift, Q(centre) - Q(2) ** -200),
            ):
                found = enclosure_of_ball(ball)
                assert Q(float(found.lower)) <= truth <= Q(float(found.upper))
                assert found.upper - found.lower <= 12 * abs(np.spacing(centre))
        for ball in (flint.arb("inf"), flint.arb("nan"), flint.arb(0, "inf")):
            assert enclosure_of_ball(ball).rad == math.inf
            assert not math.isfinite(enclosure_of_ball(ball).upper)
        # One end beyond the floats.
        assert enclosure_of_ball(flint.arb(2) ** 2000).rad == math.inf


def test_factors_and_determinants_of_balls() -> None:
    rng = np.random.default_rng(2)
    F = rng.integers(-4, 5, size=(5, 5)) + 6.0 * np.eye(5)
    A = F @ F.T
    with working_bits(200):
        R = nearest_factor(ball_matrix(A))
        assert np.allclose(R.T @ R, A, rtol=1e-13, atol=1e-13)
        assert np.array_equal(R, np.triu(R))
        truth = flint.fmpz_mat(A.astype(int).tolist()).det()
        assert definite_log_det(ball_matrix(A)).overlaps(flint.arb(truth).log())
        for singular in (np.zeros((1, 1)), np.ones((2, 2)), -np.eye(2), laplacian(4, 0.0)):
            assert definite_log_det(ball_matrix(singular)) is None
            assert nearest_factor(ball_matrix(singular)) is None


@pytest.mark.parametrize("seed", SEEDS)
def test_sums_without_rounding(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = draw(rng, 12, decades=6), draw(rng, 12, decades=6)
    p, e = two_products(a, b)
    for x, y, high, low in zip(exact(a), exact(b), exact(p), exact(e), strict=True):
        assert x * y == high + low
    truth = sum(x * y for x, y in zip(exact(a), exact(b), strict=True))
    found = exact_dot(a, b)
    assert found.mid == float(truth)
    left = abs(truth - Q(float(found.mid)))
    assert left <= Q(float(found.rad)) <= left * (1 + 8 * U)
    A = sparse.csr_array(np.vstack([a, np.where(np.arange(12) % 3, 0.0, b)]))
    c = np.array([-float(truth), 0.1])
    rows = exact_row_sums(
        [(A, b), (sparse.csr_array(np.array([[1.0], [0.0]])), np.array([3.0]))], c
    )
    truths = [
        truth + Q(float(c[0])) + 3,
        Q(float(c[1])) + sum(x * x for i, x in enumerate(exact(b)) if not i % 3),
    ]
    for i in range(2):
        assert rows.mid[i] == float(truths[i])
        left = abs(truths[i] - Q(float(rows.mid[i])))
        assert left <= Q(float(rows.rad[i])) <= left * (1 + 8 * U)


def test_sums_that_cannot_be_exact_say_so() -> None:
    for a, b in (
        (1e-160, 1e-160),
        (1e200, 1e100),
        (1e300, 1.0),
        (1.0, 1e300),
        (1e-300, 1e-5),
        (np.inf, 1.0),
        (np.nan, 1.0),
    ):
        assert exact_dot(np.array([a]), np.array([b])).rad == math.inf
        rows = exact_row_sums(
            [(sparse.csr_array(np.array([[1.0, 0.0], [0.0, a]])), np.array([1.0, b]))], np.zeros(2)
        )
        assert rows.rad.tolist() == [0.0, math.inf]
    for a, b in ((1e-139, 1e-139), (1e140, 1e149), (0.0, 1e289), (1e289, 0.0)):
        assert math.isfinite(exact_dot(np.array([a]), np.array([b])).rad)
    assert exact_row_sums([], np.array([np.inf, 1.0])).rad.tolist() == [math.inf, 0.0]
    assert enclose_sum([1.0, Enclosure(0.0, math.inf)]).rad == math.inf
    assert enclose_sum([math.inf, 1.0]).rad == math.inf
    assert enclose_sum([1e308, 1e308]).rad == math.inf
    kept = enclose_sum([1.0, 2.0**-80, Enclosure(2.0, 1e-3)])
    assert kept.mid == 3.0
    assert between(kept.rad, Q(2) ** -80 + Q(1e-3), 40)


# ---- slacks and norms of cone programs


@pytest.mark.parametrize("seed", SEEDS)
def test_slacks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, n = 9, 7
    A = np.where(rng.uniform(size=(m, n)) < 0.6, draw(rng, m, n), 0.0)
    A[2] = 0.0
    A[3] = 0.0
    A[4] = np.abs(A[4])
    b = draw(rng, m)
    b[3] = 0.0
    b[7] = np.inf
    x = draw(rng, n)
    x[A[6] != 0] = 0.0
    b[6] = 0.0
    statement = ConeStatement(np.zeros(n), sparse.csc_array(A), b, Cones(nonneg=m))
    found = enclose_slack(statement, x)
    exactly = slack_summed_exactly(statement, x, found, np.arange(7))
    for i in range(m):
        if i == 7:
            continue
        pairs = [(Q(a), v) for a, v in zip(A[i].tolist(), exact(x), strict=True) if a]
        truth = Q(float(b[i])) - sum((a * v for a, v in pairs), Q(0))
        assert abs(truth - Q(float(found.mid[i]))) <= Q(float(found.rad[i]))
        count = len(pairs)
        terms = sum((abs(a * v) for a, v in pairs), Q(0)) + abs(Q(float(b[i])))
        if count == 0 or (i == 6):
            assert found.rad[i] == 0.0
            assert is_zero(found)[i] == (b[i] == 0)
        else:
            # A sum of count products and b: count + 1 roundings at most.
            assert (
                gamma_n(count + 1) * terms
                <= Q(float(found.rad[i]))
                <= (count + Q("3.1")) * U * terms + 20 * TINY
            )
        if i < 7:
            left = abs(truth - Q(float(exactly.mid[i])))
            assert (
                left <= Q(float(exactly.rad[i])) <= left * (1 + 8 * U)
                or exactly.rad[i] == found.rad[i]
            )
    assert exactly.rad[8] == found.rad[8]


@pytest.mark.parametrize("n", [1, 5, 99, 100, 101, 150])
def test_values(n: int) -> None:
    rng = np.random.default_rng(n)
    x, y = draw(rng, n), draw(rng, n)
    truth = sum(a * b for a, b in zip(exact(x), exact(y), strict=True))
    found = enclose_value(x, y)
    assert abs(truth - Q(float(found.mid))) <= Q(float(found.rad))
    if n <= 100:
        assert found.rad <= abs(np.spacing(found.mid))
    small = enclose_value(np.full(n, 1e-160), np.full(n, 1e-160))
    assert Q(float(small.lower)) <= n * Q(1e-160) ** 2 <= Q(float(small.upper))


@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200])
def test_norms_of_rows_and_blocks(scale: float) -> None:
    rng = np.random.default_rng(1)
    A = np.where(rng.uniform(size=(6, 5)) < 0.7, draw(rng, 6, 5), 0.0) * scale
    A[1] = 0.0
    A[2] = 1e-160 * A[2]
    found = row_norms(sparse.csr_array(A))
    largest = Q(float(np.abs(A).max()))
    for i in range(6):
        square = sum(v * v for v in exact(A[i]))
        assert square <= Q(float(found[i])) ** 2
        assert Q(float(found[i])) <= Q(math.sqrt(float(square / largest**2))) * largest * Q(
            "1.000003"
        ) + 10 * largest * Q("1e-150")
    assert found[1] == 0.0
    assert norms_by_rows(np.zeros(2), np.array([0, 1]), 3).tolist() == [0.0, 0.0, 0.0]
    assert norms_by_rows(np.array([np.inf]), np.array([0]), 2).tolist() == [math.inf, math.inf]
    sizes = np.array([1, 3, 2, 4])
    heads = np.cumsum(sizes) - sizes
    v = draw(rng, 10) * scale
    v[4] = 0.0
    blocks = norms_of_blocks(v, heads, sizes)
    for head, size, norm in zip(heads, sizes, blocks, strict=True):
        part = exact(v[head : head + size])
        square = sum(x * x for x in part)
        alone = sum(1 for x in part if x) <= 1
        assert square <= Q(float(norm)) ** 2 <= square * (1 + 4 * (size + 12) * U)
        if alone:
            assert Q(float(norm)) ** 2 == square
    ones = np.ones(7)
    assert norms_of_blocks(ones, np.array([0]), np.array([7]))[0] ** 2 >= 7


# ---- membership in cones


@pytest.mark.parametrize("seed", SEEDS)
def test_depths_in_second_order_cones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cones = Cones(zero=1, nonneg=2, soc=(1, 3, 4, 2))
    s = draw(rng, 13, decades=1)
    s[[3, 4, 7]] = np.abs(s[[3, 4, 7]]) + 20.0
    rad = np.abs(rng.normal(size=13)) * (1e-3 if seed % 2 else 0.0)
    # The last one is on its boundary.
    s[11], s[12] = 2.5, -2.5
    rad[11:] = 0.0
    depths = second_order_depths(cones, Enclosure(s, rad))
    start = 3
    for size, depth in zip(cones.soc, depths, strict=True):
        head = Q(float(s[start])) - Q(float(rad[start]))
        tail = sum(
            (abs(Q(float(s[i]))) + Q(float(rad[i]))) ** 2 for i in range(start + 1, start + size)
        )
        if depth > -math.inf:
            gap = head - Q(float(depth))
            assert gap >= 0
            assert gap * gap >= tail
            assert float(depth) >= float(head) - math.sqrt(float(tail)) - 1e-13 * float(head)
        else:
            assert head < 0 or head * head < tail * (1 + 100 * U)
        start += size
    assert -1e-14 < depths[3] <= 0.0
    assert second_order_depths(Cones(nonneg=2), Enclosure.of(np.ones(2))).size == 0


def test_the_boundary_of_second_order_cones_is_decided_exactly() -> None:
    statement = ConeStatement(np.zeros(1), sparse.csc_array((6, 1)), np.zeros(6), Cones(soc=(3, 3)))
    inside = np.array([5.0, 3.0, 4.0, 13.0, 5.0, -12.0])
    assert in_second_order_cones(statement, inside)
    assert in_second_order_cones(statement, np.zeros(6))
    for index in (0, 3):
        outside = inside.copy()
        outside[index] = np.nextafter(outside[index], 0.0)
        assert not in_second_order_cones(statement, outside)
        outside[index] = -inside[index]
        assert not in_second_order_cones(statement, outside)
    for index in (1, 2, 4, 5):
        outside = inside.copy()
        outside[index] *= 1 + 2.0**-50
        assert not in_second_order_cones(statement, outside)


@pytest.mark.parametrize("plain", [True, False])
def test_matrices_of_blocks(plain: bool) -> None:
    rng = np.random.default_rng(0)
    statement = ConeStatement(
        np.zeros(1), sparse.csc_array((6, 1)), np.zeros(6), Cones(psd=(3,)), plain=plain
    )
    v, rad = draw(rng, 6), np.abs(draw(rng, 6)) * 1e-6
    M = block_matrix(statement, Enclosure(v, rad))
    # By columns of the lower triangle.
    places = [(0, 0), (1, 0), (2, 0), (1, 1), (2, 1), (2, 2)]
    for (i, j), value, r in zip(places, v.tolist(), rad.tolist(), strict=True):
        assert M.mid[i, j] == M.mid[j, i]
        assert M.rad[i, j] == M.rad[j, i]
        if plain or i == j:
            assert M.mid[i, j] == value
            assert between(M.rad[i, j], Q(r), 20)
        else:
            with mpmath.workdps(60):
                exact_value = mpmath.mpf(value) / mpmath.sqrt(2)
                off = abs(exact_value - mpmath.mpf(float(M.mid[i, j]))) + mpmath.mpf(
                    r
                ) / mpmath.sqrt(2)
                assert (
                    off
                    <= mpmath.mpf(float(M.rad[i, j]))
                    <= off + abs(exact_value) * 4 * 2.0**-53 + r * 1e-14
                )
    known = block_matrix(statement, Enclosure.of(v))
    assert (known.rad.diagonal() == 0).all()


@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
def test_membership_of_matrices(scale: float) -> None:
    cones = Cones(psd=(2,))
    statement = ConeStatement(np.zeros(1), sparse.csc_array((3, 1)), np.zeros(3), cones, plain=True)

    def inside(a: float, b: float, d: float, margin: float = 0.0, rad: float = 0.0) -> bool:
        return in_cone(
            statement,
            "psd",
            Enclosure(np.array([a, b, d]) * scale, np.full(3, rad * scale)),
            margin * scale,
        )

    assert inside(2.0, 1.0, 2.0, 0.99)
    assert not inside(2.0, 1.0, 2.0, 1.0)
    assert not inside(2.0, 1.0, 2.0, 1.01)
    assert inside(2.0, 1.0, 2.0, 0.0, 0.49)
    assert not inside(2.0, 1.0, 2.0, 0.0, 0.51)
    assert not inside(2.0, 1.0, 2.0, 0.5, 0.3)
    assert not inside(1.0, 1.0, 1.0)
    assert not inside(0.0, 0.0, 0.0, 1e-9)
    assert not inside(math.nan, 0.0, 1.0)
    assert not inside(1.0, 0.0, 1.0, math.inf)
    # Badly scaled: only a scaling shows it, and it does not show what is not so.
    assert inside(1e30, 1e-1, 1e-30)
    assert not inside(1e30, 1.1, 1e-30)
    assert not inside(1e30, 1e-1, 1e-30, 1e-30)
    # In the dual cone the boundary is decided exactly.
    decided = (
        ([1.0, 1.0, 1.0], True),
        ([1.0, 1.0, np.nextafter(1.0, 0.0)], False),
        ([4.0, 2.0, 1.0], True),
        ([0.0, 0.0, 1.0], True),
        ([0.0, 0.0, -1.0], False),
        ([0.0, 0.5, 1.0], False),
        ([0.0, 0.0, 0.0], True),
    )
    for v, true in decided:
        assert in_dual_cone(statement, "psd", np.array(v) * scale) is true


@pytest.mark.parametrize("seed", range(20))
def test_membership_of_exponentials(seed: int) -> None:
    """y exp(x / y) <= z, and -u exp(v / u - 1) <= w, by 60 digits, one unit inside and outside."""
    rng = np.random.default_rng(seed)
    statement = ConeStatement(np.zeros(1), sparse.csc_array((3, 1)), np.zeros(3), Cones(exp=1))
    x, y = rng.normal() * 3, abs(rng.normal()) + 0.1
    with mpmath.workdps(60):
        z = mpmath.mpf(y) * mpmath.exp(mpmath.mpf(x) / mpmath.mpf(y))
        w = mpmath.mpf(y) * mpmath.exp(-mpmath.mpf(x) / mpmath.mpf(y) - 1)

    def primal(factor: float, margin: float = 0.0) -> bool:
        return in_cone(statement, "exp", Enclosure.of(np.array([x, y, float(z) * factor])), margin)

    assert primal(1 + 1e-12)
    assert not primal(1 - 1e-15)
    assert not primal(1 + 1e-12, 1e-6)
    assert primal(1.5, 1e-3 * min(y, float(z)))
    assert not in_cone(statement, "exp", Enclosure.of(np.array([x, -y, 1e9])), 0.0)
    assert in_dual_cone(statement, "exp", np.array([-y, x, float(w) * (1 + 1e-12)]))
    assert not in_dual_cone(statement, "exp", np.array([-y, x, float(w) * (1 - 1e-15)]))
    assert not in_dual_cone(statement, "exp", np.array([y, x, 1e9]))
    for point, true in (
        ([-1.0, 0.0, 0.0], True),
        ([0.0, 0.0, 1.0], True),
        ([1e-300, 0.0, 1.0], False),
        ([-1.0, 0.0, -1e-300], False),
    ):
        assert in_cone(statement, "exp", Enclosure.of(np.array(point)), 0.0) is true
    for point, true in (
        ([0.0, 1.0, 1.0], True),
        ([0.0, 0.0, 0.0], True),
        ([0.0, -1e-300, 1.0], False),
        ([0.0, 1.0, -1e-300], False),
    ):
        assert in_dual_cone(statement, "exp", np.array(point)) is true


@pytest.mark.parametrize("seed", SEEDS)
def test_the_room_around_multipliers(seed: int) -> None:
    """No change of the length of the room leaves its cone, and a few times that does."""
    rng = np.random.default_rng(seed)
    cones = Cones(zero=1, nonneg=3, soc=(3,), psd=(2,), exp=1)
    statement = ConeStatement(
        np.zeros(1),
        sparse.csc_array((13, 1)),
        np.array([0, 1, np.inf, 1.0] + [0.0] * 9),
        cones,
        plain=True,
    )
    F = rng.normal(size=(2, 2)) + 2 * np.eye(2)
    M = F @ F.T
    u, v = -abs(rng.normal()) - 0.1, rng.normal()
    y = np.array(
        [
            rng.normal(),
            0.7,
            0.3,
            0.0,
            3.0,
            1.0,
            -1.5,
            M[0, 0],
            M[1, 0],
            M[1, 1],
            u,
            v,
            -u * math.exp(v / u - 1) * 2,
        ]
    )
    room = dual_room(statement, y)
    assert room[:4].tolist() == [math.inf, 0.7, 0.0, 0.0]
    depth = 3.0 - math.hypot(1.0, 1.5)
    assert depth / math.sqrt(2) * 0.99 <= room[4] <= depth / math.sqrt(2)
    assert (room[4:7] == room[4]).all()
    smallest = float(np.linalg.eigvalsh(np.array([[M[0, 0], M[1, 0]], [M[1, 0], M[1, 1]]]))[0])
    assert smallest * (1 - 1e-9) <= room[7] <= smallest * (1 + 1e-12)
    assert (room[7:10] == room[7]).all()
    assert 0 < room[10] == room[11] == room[12]
    with mpmath.workdps(40):
        for _ in range(200):
            d = rng.normal(size=3)
            a, b, c = (
                mpmath.mpf(p) + mpmath.mpf(q)
                for p, q in zip(y[10:], d / np.linalg.norm(d) * room[10] * (1 - 1e-12), strict=True)
            )
            assert a < 0
            assert -a * mpmath.exp(b / a - 1) <= c
    # What lies outside has no room.
    for block, value in ((4, -3.0), (7, -1.0), (12, -1.0)):
        outside = y.copy()
        outside[block] = value
        assert dual_room(statement, outside)[block] == 0.0


# ---- lower ends


@pytest.mark.parametrize("seed", range(16))
def test_lower_ends_are_those_of_weak_duality(seed: int) -> None:
    """-w'Pw/2 - b'y + sum_j min g_j x_j over the box in rationals: never above it, and next to it."""
    rng = np.random.default_rng(seed)
    n, m, zero = 4, 5, 1
    # Two entries or more: a row of one is a bound of its variable.
    A = np.where(rng.uniform(size=(m, n)) < 0.5, draw(rng, m, n, decades=1), 0.0)
    A[:, :2] = draw(rng, m, 2, decades=1)
    b = draw(rng, m, decades=1)
    low, high = -np.abs(draw(rng, n, decades=1)), np.abs(draw(rng, n, decades=1))
    c = draw(rng, n, decades=1)
    F = rng.integers(-3, 4, size=(n, n)).astype(float)
    P = F.T @ F + np.eye(n) if seed % 2 else None
    rows = np.vstack([A, np.eye(n), -np.eye(n)])
    right = np.concatenate([b, high, -low])
    statement = ConeStatement(
        c,
        sparse.csc_array(rows),
        right,
        Cones(zero=zero, nonneg=m - zero + 2 * n),
        None if P is None else sparse.csc_array(P),
    )
    y = np.concatenate([draw(rng, m, decades=1), np.zeros(2 * n)])
    w = draw(rng, n, decades=0)
    used = y.copy()
    used[zero:] = np.maximum(used[zero:], 0.0)
    g = []
    terms = []
    for j in range(n):
        parts = [Q(float(c[j]))]
        parts += [Q(float(A[i, j])) * Q(float(used[i])) for i in range(m) if A[i, j]]
        if P is not None:
            parts += [Q(float(P[j, k])) * Q(float(w[k])) for k in range(n)]
        g.append(sum(parts, Q(0)))
        terms.append(sum(map(abs, parts), Q(0)))
    value = -sum((Q(float(b[i])) * Q(float(used[i])) for i in range(m)), Q(0))
    if P is not None:
        value -= (
            sum(
                (
                    Q(float(P[i, j])) * Q(float(w[i])) * Q(float(w[j]))
                    for i in range(n)
                    for j in range(n)
                ),
                Q(0),
            )
            / 2
        )
    for j in range(n):
        value += min(g[j] * Q(float(low[j])), g[j] * Q(float(high[j])))
    found = Q(lower_bound(statement, DualWitness(w, y)).value)
    reach = sum(
        (
            t * max(abs(Q(float(lo))), Q(float(hi)))
            for t, lo, hi in zip(terms, low, high, strict=True)
        ),
        Q(0),
    )
    assert (
        value - 40 * U * (reach + abs(value) + sum(map(abs, exact(b * used[:m])), Q(0)) + 100)
        <= found
        <= value
    )
    gradient = _Dual(statement, DualWitness(w, y)).gradient()
    for j in range(n):
        off = abs(Q(float(gradient.mid[j])) - g[j])
        assert off <= Q(float(gradient.rad[j])) <= 20 * U * terms[j]


def test_radii_of_gradients_charge_each_column_by_itself() -> None:
    A = np.array([[0.1, 0.0, 0.3], [0.7, 0.0, 1e9], [0.0, 0.0, -1e9]])
    statement = ConeStatement(np.zeros(3), sparse.csc_array(A), np.zeros(3), Cones(zero=3))
    y = np.array([0.3, 0.9, 0.9])
    found = _Dual(statement, DualWitness(np.zeros(3), y)).gradient()
    assert found.rad[1] == 0.0
    for j, count in ((0, 2), (2, 3)):
        terms = sum((abs(Q(float(a)) * Q(float(v))) for a, v in zip(A[:, j], y, strict=True)), Q(0))
        assert (
            gamma_n(count) * terms
            <= Q(float(found.rad[j]))
            <= (count + Q("2.1")) * U * terms + 20 * TINY
        )


# ---- the certificate


def test_narrow_is_decided_at_equality() -> None:
    # 0.5 <= tol 2.5, and 0.2 as a float is above 1/5.
    assert is_narrow(1.0, 1.5, 0.2)
    assert not is_narrow(1.0, 1.5, float(np.nextafter(0.2, 0.0)))
    assert is_narrow(-2.0, -1.0, 0.5)
    assert not is_narrow(float(np.nextafter(-2.0, -3.0)), -1.0, 0.5)
    assert is_narrow(0.0, 2.0**-30, 2.0**-30)
    assert is_narrow(1e300, 1e300, 1e-13)
    assert is_narrow(5e-324, 5e-324, 1e-13)
    assert is_narrow(0.0, 1e-320, 1e-13)
    assert not is_narrow(-1e308, 1e308, 1.0)
    for ends in (
        (-math.inf, 0.0),
        (0.0, math.inf),
        (math.inf, math.inf),
        (math.nan, 0.0),
        (0.0, math.nan),
    ):
        assert not is_narrow(*ends, 0.1)


def test_estimates_are_cut_to_proven_ends() -> None:
    assert within((0.0, 2.0), 0.0, 2.0) == (0.0, 2.0)
    assert within((0.0, 2.0), 2.0, 3.0) == (2.0, 2.0)
    assert within((0.0, 2.0), -1.0, 0.0) == (0.0, 0.0)
    assert within((0.0, 2.0), 2.5, 3.0) is None
    assert within((1.0, 0.0), -1.0, 3.0) is None
    assert within((math.nan, 1.0), 0.0, 3.0) is None
    assert within((1.0, math.nan), 0.0, 3.0) is None
    assert within((1.0, 1.0), 0.0, 3.0) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("lower", "upper", "shown", "hidden"),
    [
        (
            1.0,
            2.0,
            ("1 <= optimum <= 2", "lower end: L", "upper end: U", "relative gap 3.3e-01"),
            ("one side",),
        ),
        (
            1.0,
            math.inf,
            ("1 <= optimum <= inf", "lower end: L", "one side is proven"),
            ("upper end",),
        ),
        (
            -math.inf,
            2.0,
            ("-inf <= optimum <= 2", "upper end: U", "one side is proven"),
            ("lower end",),
        ),
        (-math.inf, math.inf, ("one side is proven",), ("optimum <=", "lower end", "upper end")),
    ],
)
def test_explanations_name_the_lemmas_of_finite_ends(lower, upper, shown, hidden) -> None:
    text = Certificate(
        Verdict.FEASIBLE, lower, upper, 1e-6, "bracket", lower_by="L", upper_by="U"
    ).explain()
    for words in shown:
        assert words in text
    for words in hidden:
        assert words not in text


def test_explanations_without_lemmas_and_verdicts_that_end_a_search() -> None:
    text = Certificate(Verdict.FEASIBLE, 1.0, 2.0, 1e-6, "bracket").explain()
    assert "lower end" not in text
    assert "upper end" not in text
    assert "note" not in text
    conclusive = {verdict.name for verdict in Verdict if verdict.conclusive}
    assert conclusive == {"OPTIMAL", "INFEASIBLE", "UNBOUNDED"}


def test_gaps() -> None:
    def made(lower: float, upper: float) -> Certificate:
        return Certificate(Verdict.UNPROVEN, lower, upper, 1e-6, "none")

    assert (
        made(math.inf, math.inf).gap == made(2.0, 2.0).gap == made(-math.inf, -math.inf).gap == 0.0
    )
    assert made(1.0, 3.0).gap == 2.0
    assert made(1.0, 3.0).relative_gap == 0.5
    assert made(1.0, -3.0).relative_gap == -1.0
    assert made(0.0, math.inf).gap == made(0.0, math.inf).relative_gap == math.inf


# ---- lower and upper ends beyond polyhedra


def separable_minimum(p: list[Q], c: list[Q], low: list[Q], high: list[Q]) -> Q:
    """The minimum of sum p_j x_j^2 / 2 + c_j x_j over a box: at an end, or where the slope is 0."""
    total = Q(0)
    for a, b, lo, hi in zip(p, c, low, high, strict=True):
        points = [lo, hi]
        if a > 0 and lo <= -b / a <= hi:
            points.append(-b / a)
        total += min(a * x * x / 2 + b * x for x in points)
    return total


@pytest.mark.parametrize("seed", range(12))
def test_what_is_not_convex_is_charged(seed: int) -> None:
    """P = diag(p) with a negative entry over a box, at any w: the charge is phi ||x - w||^2 / 2."""
    rng = np.random.default_rng(seed)
    n = 3
    p = np.array([1.0, 2.0, -0.25]) if seed % 3 else np.array([1.0, -0.25, -0.25])
    c, w = rng.integers(-4, 5, n) / 4.0, rng.integers(-8, 9, n) / 4.0
    low, high = -rng.integers(1, 9, n) / 4.0, rng.integers(1, 9, n) / 4.0
    rows = np.vstack([np.eye(n), -np.eye(n)])
    statement = ConeStatement(
        c,
        sparse.csc_array(rows),
        np.concatenate([high, -low]),
        Cones(nonneg=2 * n),
        sparse.csc_array(np.diag(p)),
    )
    P, C, W, L, H = map(exact, (p, c, w, low, high))
    best = separable_minimum(P, C, L, H)
    found = Q(lower_bound(statement, DualWitness(w, np.zeros(2 * n))).value)
    assert found <= best
    g = [a * x + b for a, x, b in zip(P, W, C, strict=True)]
    value = -sum(a * x * x for a, x in zip(P, W, strict=True)) / 2
    value += sum(min(a * lo, a * hi) for a, lo, hi in zip(g, L, H, strict=True))
    reach = sum(max(hi - x, x - lo) ** 2 for x, lo, hi in zip(W, L, H, strict=True))
    assert value - Q("0.2501") * reach / 2 <= found <= value - Q("0.2499") * reach / 2


@pytest.mark.parametrize("t", [0.5, 1.0, 3.0])
def test_a_declared_bound_is_a_bound_from_zero_not_from_w(t: float) -> None:
    """min -x_2^2 / 8 over ||x|| <= 2 is -1/2; w on the other side of the ball adds to the distance."""
    P = sparse.csc_array(np.diag([1.0, -0.25]))
    empty = sparse.csc_array((0, 2))
    statement = ConeStatement(np.zeros(2), empty, np.zeros(0), Cones(), P, within=2.0)
    for w in (np.array([0.0, t]), np.array([0.0, -t]), np.zeros(2)):
        assert lower_bound(statement, DualWitness(w, np.zeros(0))).value <= -0.5
    assert lower_bound(statement, DualWitness(np.zeros(2), np.zeros(0))).value >= -1.1


@pytest.mark.parametrize("seed", SEEDS)
def test_linear_functions_over_a_declared_ball(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    c = draw(rng, n)
    statement = ConeStatement(c, sparse.csc_array((0, n)), np.zeros(0), Cones(), within=3.0)
    found = lower_bound(statement, DualWitness(np.zeros(n), np.zeros(0)))
    square = 9 * sum(v * v for v in exact(c))
    assert square <= Q(found.value) ** 2 <= square * (1 + 400 * U)
    assert found.value < 0
    assert "declared bound" in found.by


@pytest.mark.parametrize("seed", SEEDS)
def test_multipliers_of_quadratic_constraints(seed: int) -> None:
    """-w'Hw/2 - l'r + g'x with H = P + sum l_i P_i and g = Hw + c + sum l_i q_i, in rationals."""
    rng = np.random.default_rng(seed)
    n = 3
    F = rng.integers(-2, 3, size=(n, n)).astype(float)
    matrices = [np.eye(n), F.T @ F + np.eye(n), 2.0 * np.eye(n)]
    q = [np.zeros(n), draw(rng, n, decades=0), draw(rng, n, decades=0)]
    r = [0.0, 1.5, float(rng.normal())]
    c, w = draw(rng, n, decades=0), draw(rng, n, decades=0)
    factors = np.array([0.7, 0.0 if seed % 2 else 1.3])
    rows = np.vstack([np.eye(n), -np.eye(n)])
    statement = ConeStatement(
        c,
        sparse.csc_array(rows),
        np.full(2 * n, 2.0),
        Cones(nonneg=2 * n),
        sparse.csc_array(matrices[0]),
        quadratics=tuple(
            QuadraticConstraint(sparse.csc_array(matrices[i]), q[i], r[i]) for i in (1, 2)
        ),
    )
    weights = [Q(1), *exact(factors)]
    W = exact(w)
    g = exact(c)
    value = Q(0)
    for weight, matrix, linear, right in zip(weights, matrices, q, r, strict=True):
        Hw = [sum(Q(float(a)) * x for a, x in zip(row, W, strict=True)) for row in matrix]
        value -= weight * (sum(x * h for x, h in zip(W, Hw, strict=True)) / 2 + Q(float(right)))
        g = [a + weight * (h + b) for a, h, b in zip(g, Hw, exact(linear), strict=True)]
    value -= 2 * sum(map(abs, g))
    found = Q(lower_bound(statement, DualWitness(w, np.zeros(2 * n), factors)).value)
    assert value - 2000 * U * (abs(value) + 50) <= found <= value
    # Of a wrong sign, a multiplier counts as 0.
    wrong = lower_bound(statement, DualWitness(w, np.zeros(2 * n), -factors)).value
    none = lower_bound(statement, DualWitness(w, np.zeros(2 * n), np.zeros(2))).value
    assert wrong == none


@pytest.mark.parametrize("seed", SEEDS)
def test_upper_ends_are_values_of_points(seed: int) -> None:
    """x'Px/2 + c'x in rationals at a point inside: never below it, and next to it."""
    rng = np.random.default_rng(seed)
    n = 4
    F = rng.integers(-3, 4, size=(n, n)).astype(float)
    P = F.T @ F if seed % 2 else None
    c, x = draw(rng, n, decades=1), rng.uniform(-0.4, 0.4, n)
    ball = QuadraticConstraint(sparse.csc_array(np.eye(n)), np.zeros(n), 0.5)
    A = np.vstack([np.eye(n), np.zeros(n), -np.eye(n)])
    b = np.concatenate([np.full(n, 0.5), [1.0], np.zeros(n)])
    cones = Cones(nonneg=n, soc=(n + 1,))
    statement = ConeStatement(
        c,
        sparse.csc_array(A),
        b,
        cones,
        None if P is None else sparse.csc_array(P),
        quadratics=(ball,),
        within=1.0,
    )
    X = exact(x)
    value = sum(a * v for a, v in zip(exact(c), X, strict=True))
    if P is not None:
        value += sum(Q(float(P[i, j])) * X[i] * X[j] for i in range(n) for j in range(n)) / 2
    found = Q(upper_bound(statement, PrimalWitness(x)).value)
    size = sum(abs(a * v) for a, v in zip(exact(c), X, strict=True)) + 100
    assert value <= found <= value + 100 * U * size
    # Each constraint alone refuses what violates it.
    for index in range(n):
        outside = x.copy()
        outside[index] = np.nextafter(0.5, 1.0)
        assert upper_bound(statement, PrimalWitness(outside)).value == math.inf
        outside[index] = -1.0
        assert upper_bound(statement, PrimalWitness(outside)).value == math.inf
    assert upper_bound(statement, PrimalWitness(np.full(n, math.nan))).value == math.inf


def test_upper_ends_at_boundaries_are_decided_exactly() -> None:
    def bound(x: list[float], **parts: object) -> float:
        statement = ConeStatement(np.array([1.0, 1.0]), **parts)  # type: ignore[arg-type]
        return upper_bound(statement, PrimalWitness(np.array(x))).value

    empty = {"A": sparse.csc_array((0, 2)), "b": np.zeros(0), "cones": Cones()}
    disc = (QuadraticConstraint(sparse.csc_array(np.eye(2)), np.zeros(2), 12.5),)
    assert bound([3.0, 4.0], **empty, quadratics=disc) == 7.0
    assert bound([3.0, np.nextafter(4.0, 5.0)], **empty, quadratics=disc) == math.inf
    cone = {
        "A": sparse.csc_array(np.array([[0.0, 0.0], [-1.0, 0.0], [0.0, -1.0]])),
        "b": np.array([5.0, 0.0, 0.0]),
        "cones": Cones(soc=(3,)),
    }
    assert bound([3.0, 4.0], **cone) == 7.0
    assert bound([3.0, np.nextafter(4.0, 5.0)], **cone) == math.inf
    assert bound([3.0, 3.0], **empty, within=5.0) == 6.0
    assert bound([3.0, 4.1], **empty, within=5.0) == math.inf
    row = {"A": sparse.csc_array(np.array([[1.0, 1.0]])), "b": np.array([7.0])}
    assert bound([3.0, 4.0], **row, cones=Cones(nonneg=1)) == 7.0
    assert bound([3.0, np.nextafter(4.0, 5.0)], **row, cones=Cones(nonneg=1)) == math.inf
    assert bound([3.0, 4.0], **row, cones=Cones(zero=1)) == 7.0
    # Next to a solution of an equation there is one; far from it, too, at its price.
    assert 7.0 <= bound([3.0, np.nextafter(4.0, 5.0)], **row, cones=Cones(zero=1)) <= 7.0 + 1e-12
    assert bound([3.0, 3.5], **row, cones=Cones(zero=1)) >= 7.0


@pytest.mark.parametrize("kind", ["zero", "nonneg"])
def test_rows_without_entries(kind: str) -> None:
    """0 = b or 0 <= b: decided by b alone, whatever stands before it."""
    for b, false in ((-5e-324, True), (0.0, False), (5e-324, kind == "zero"), (-1.0, True)):
        for first in (0, 2):
            A = sparse.csc_array(np.vstack([np.ones((first, 1)), np.zeros((1, 1))]))
            cones = Cones(**{kind: first + 1})
            statement = ConeStatement(np.zeros(1), A, np.append(np.ones(first), b), cones)
            none = DualWitness(np.zeros(1), np.zeros(first + 1))
            assert is_infeasible(statement, none) is false
    A = sparse.csc_array(np.array([[1.0], [0.0]]))
    mixed = ConeStatement(np.zeros(1), A, np.array([1.0, -1.0]), Cones(zero=1, nonneg=1))
    assert is_infeasible(mixed, DualWitness(np.zeros(1), np.zeros(2)))
    below = ConeStatement(
        np.zeros(1), sparse.csc_array(np.ones((1, 1))), np.array([-np.inf]), Cones(nonneg=1)
    )
    assert is_infeasible(below, DualWitness(np.zeros(1), np.zeros(1)))
    # An empty row of a curved cone is no inequality: (1, -1) is not in the cone, (2, -1) is.
    for head in (1.0, 2.0):
        soc = ConeStatement(
            np.zeros(1), sparse.csc_array((2, 1)), np.array([head, -1.0]), Cones(soc=(2,))
        )
        assert not is_infeasible(soc, DualWitness(np.zeros(1), np.zeros(2)))


def test_bounds_that_cross_leave_nothing() -> None:
    A = sparse.csc_array(np.array([[1.0], [-1.0]]))
    for b, false in (((1.0, -1.0), False), ((1.0, -np.nextafter(1.0, 2.0)), True)):
        statement = ConeStatement(np.zeros(1), A, np.array(b), Cones(nonneg=2))
        assert is_infeasible(statement, DualWitness(np.zeros(1), np.zeros(2))) is false


def test_farkas_vectors_of_quadratic_constraints() -> None:
    """x^2 / 2 + x <= -1 has no solution: its minimum is -1/2, at w = -1."""
    for r, false in ((-1.0, True), (-0.5, False), (-0.25, False), (-0.5000001, True)):
        ball = QuadraticConstraint(sparse.csc_array(np.eye(1)), np.ones(1), r)
        statement = ConeStatement(
            np.zeros(1), sparse.csc_array((0, 1)), np.zeros(0), Cones(), quadratics=(ball,)
        )
        found = is_infeasible(statement, DualWitness(-np.ones(1), np.zeros(0), np.ones(1)))
        assert found is false
        assert not is_infeasible(statement, DualWitness(-np.ones(1), np.zeros(0), np.zeros(1)))


def test_rays_meet_every_condition_exactly() -> None:
    ball = QuadraticConstraint(
        sparse.csc_array(np.diag([0.0, 0.0, 1.0])), np.array([-1.0, 1.0, 0.0]), 1.0
    )
    A = np.array(
        [[1.0, -1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]]
    )
    statement = ConeStatement(
        np.array([-1.0, 0.0, 0.0]),
        sparse.csc_array(A),
        np.array([3.0, 1.0, 0.0, 0.0, 0.0]),
        Cones(zero=1, nonneg=1, soc=(3,)),
        sparse.csc_array(np.diag([0.0, 0.0, 2.0])),
        quadratics=(ball,),
    )
    # The cone asks for 0 >= ||(d_1, d_2)||: no ray; without it (1, 1, 0) is one.
    d = np.array([1.0, 1.0, 0.0])
    assert not is_ray(statement, d)
    free = ConeStatement(
        statement.c,
        sparse.csc_array(A[:2]),
        np.array([3.0, 1.0]),
        Cones(zero=1, nonneg=1),
        statement.P,
        quadratics=(ball,),
    )
    assert is_ray(free, d)
    assert is_ray(free, 1e9 * d)
    assert not is_ray(free, -d)
    assert not is_ray(free, np.zeros(3))
    assert not is_ray(free, np.array([math.inf, math.inf, 0.0]))
    within_ball = ConeStatement(
        free.c, free.A, free.b, free.cones, free.P, quadratics=(ball,), within=9.0
    )
    assert not is_ray(within_ball, d)
    # q'd <= 0 and P_i d = 0.
    for q, P_i, true in (
        ([-1.0, 0.5, 0.0], 1.0, True),
        ([-1.0, 1.5, 0.0], 1.0, False),
        ([-1.0, 1.0, 0.0], 0.0, True),
    ):
        other = QuadraticConstraint(sparse.csc_array(np.diag([0.0, 0.0, P_i])), np.array(q), 1.0)
        again = ConeStatement(free.c, free.A, free.b, free.cones, quadratics=(other,))
        assert is_ray(again, d) is true
    curved = ConeStatement(
        free.c, free.A, free.b, free.cones, sparse.csc_array(np.diag([1e-9, 0.0, 0.0]))
    )
    assert not is_ray(curved, d)
    # A vacuous row asks for nothing.
    open_row = ConeStatement(
        np.array([-1.0]), sparse.csc_array(np.ones((1, 1))), np.array([np.inf]), Cones(nonneg=1)
    )
    assert is_ray(open_row, np.ones(1))


# ---- curvature


def is_semidefinite(M: list[list[Q]]) -> bool:
    """By Schur complements in rationals."""
    rows = [list(row) for row in M]
    for k in range(len(rows)):
        pivot = rows[k][k]
        if pivot < 0 or (not pivot and any(rows[i][k] for i in range(k + 1, len(rows)))):
            return False
        for i in range(k + 1, len(rows)):
            for j in range(k + 1, len(rows)):
                rows[i][j] -= rows[i][k] * rows[k][j] / pivot if pivot else Q(0)
    return True


@pytest.mark.parametrize("seed", range(12))
def test_curvature_that_is_left_beside_a_diagonal(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 5
    F = rng.normal(size=(n - 1, n - 1))
    first = np.zeros((n, n))
    first[: n - 1, : n - 1] = F @ F.T * 10.0 ** rng.uniform(-4, 4)
    first = (first + first.T) / 2
    second = np.diag([0.0, 1.0, 0.0, 3.0, 0.0])
    terms = [(first, 1.0)] if seed % 3 else [(first, 0.7), (second, 1.3)]
    columns = np.sort(rng.permutation(n - 1)[: 1 + seed % 3])
    found = curvature_beside([(sparse.csc_array(P), factor) for P, factor in terms], columns)
    assert found is not None
    assert (found > 0).all()
    H = [[sum(Q(float(P[i, j])) * Q(f) for P, f in terms) for j in range(n)] for i in range(n)]
    for column, m in zip(columns.tolist(), found.tolist(), strict=True):
        H[column][column] -= Q(m)
    assert is_semidefinite(H)
    # Of the last column nothing is known.
    assert curvature_beside([(sparse.csc_array(P), f) for P, f in terms], np.array([n - 1])) is None


def test_curvature_at_its_boundary() -> None:
    def beside(P: list[list[float]], *columns: int) -> list[float] | None:
        found = curvature_beside([(sparse.csc_array(np.array(P)), 1.0)], np.array(columns, np.intp))
        return None if found is None else found.tolist()

    assert beside([[2.0, 0.0], [0.0, 3.0]], 1) == [1.5]
    assert beside([[2.0, 0.0], [0.0, -1.0]], 0) is None
    assert beside([[-2.0, 0.0], [0.0, 1.0]], 0) is None
    # Singular: nothing can be taken away from it.
    assert beside([[1.0, 1.0], [1.0, 1.0]], 0) is None
    assert beside([[1.0, 2.0], [2.0, 1.0]], 0) is None
    # 1 - 1 / 1.01 is left: a share of 1/2 is too much, of 2^-8 it is not.
    assert beside([[1.0, 1.0], [1.0, 1.01]], 0) == [2.0**-8]
    assert beside([[2.0, 1.0], [1.0, 2.0]]) == []
    assert beside([[1.0, 2.0], [2.0, 1.0]]) is None


@pytest.mark.parametrize("seed", range(12))
def test_negative_curvature_of_blocks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b, d = draw(rng, 3, decades=1).tolist()
    e = float(rng.choice([2.0, 0.0, -1.5]))
    P = np.array([[a, 0.0, b], [0.0, e, 0.0], [b, 0.0, d]])
    phi = negative_curvature(sparse.csc_array(P))
    shifted = [[Q(float(P[i, j])) + (Q(phi) if i == j else 0) for j in range(3)] for i in range(3)]
    assert is_semidefinite(shifted)
    smallest = float(np.linalg.eigvalsh(P)[0])
    assert phi <= max(-smallest, 0.0) * (1 + 1e-9) + 1e-9
    if smallest >= 1e-9:
        assert phi == 0.0


def test_semidefinite_matrices_have_no_negative_curvature() -> None:
    for P in ([[1.0, 1.0], [1.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]], [[4.0, 2.0], [2.0, 1.0]]):
        assert negative_curvature(sparse.csc_array(np.array(P))) == 0.0
    assert negative_curvature(sparse.csc_array(np.diag([1.0, -3.0, 2.0]))) == 3.0
    assert negative_curvature(sparse.csc_array(np.array([[1.0, 1.0], [1.0, 1.0 - 2.0**-52]]))) > 0.0
    both = np.zeros((4, 4))
    both[:2, :2] = [[1.0, 2.0], [2.0, 1.0]]
    both[2, 2] = -0.5
    assert 1.0 <= negative_curvature(sparse.csc_array(both)) <= 1.0 + 1e-9


# ---- compressions


def full(v: np.ndarray, order: int) -> list[list[Q]]:
    """The symmetric matrix of a lower triangle by columns."""
    M = [[Q(0)] * order for _ in range(order)]
    values = iter(exact(v))
    for j in range(order):
        for i in range(j, order):
            M[i][j] = M[j][i] = next(values)
    return M


def congruence(V: np.ndarray, M: list[list[Q]]) -> list[Q]:
    """The lower triangle of V'MV by columns."""
    rows = [exact(row) for row in V]
    n, k = V.shape
    return [
        sum(rows[s][i] * M[s][t] * rows[t][j] for s in range(n) for t in range(n))
        for j in range(k)
        for i in range(j, k)
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_compressions_are_exact(seed: int) -> None:
    """The second of three blocks is replaced; all other rows stay as they are."""
    rng = np.random.default_rng(seed)
    cones = Cones(zero=1, nonneg=2, soc=(3,), psd=(2, 3, 1))
    A = rng.integers(-9, 10, size=(16, 3)) / 8.0
    A[:, 1] *= rng.uniform(size=16) < 0.3
    A[9:15, 2] = 0.0
    b = rng.integers(-9, 10, 16) / 8.0
    statement = ConeStatement(np.zeros(3), sparse.csc_array(A), b, cones, plain=True)
    V = rng.integers(-3, 4, size=(3, 2)).astype(float)
    found = compressed(statement, 1, V)
    assert found is not None
    assert found.cones.psd == (2, 2, 1)
    B = found.A.toarray()
    assert np.array_equal(B[:9], A[:9])
    assert np.array_equal(B[12:], A[15:])
    assert np.array_equal(found.b[:9], b[:9])
    assert np.array_equal(found.b[12:], b[15:])
    assert exact(found.b[9:12]) == congruence(V, full(b[9:15], 3))
    for j in range(3):
        assert exact(B[9:12, j]) == congruence(V, full(A[9:15, j], 3))


def test_compressions_that_would_round_are_refused() -> None:
    def of(entries: list[float], V: list[list[float]], plain: bool = True) -> ConeStatement | None:
        A = sparse.csc_array(np.zeros((3, 1)))
        statement = ConeStatement(np.zeros(1), A, np.array(entries), Cones(psd=(2,)), plain=plain)
        return compressed(statement, 0, np.array(V))

    ones = [[1.0], [1.0]]
    assert of([1.0, 2.0, 3.0], ones).b.tolist() == [8.0]
    assert of([1.0, 2.0, 3.0], ones, plain=False) is None
    assert of([1.0, 2.0, 3.0], [[1.0], [1.0], [1.0]]) is None
    assert of([1.0, 2.0, 3.0], [[0.5], [1.0]]) is None
    assert of([0.0, 0.0, 0.0], ones).b.tolist() == [0.0]
    assert of([1.0, math.inf, 0.0], ones) is None
    # 1 + 2^-48 takes 49 bits, |V|'|F||V| four times as much: exact; with 2^-52 it would round.
    assert exact(of([1.0, 0.0, 2.0**-48], ones).b) == [1 + Q(2) ** -48]
    assert of([1.0, 0.0, 2.0**-52], ones) is None
    assert of([2.0**-1040, 0.0, 0.0], ones) is None
    assert of([2.0**40, 0.0, 2.0**-20], ones) is None


def test_turned_blocks_need_a_regular_matrix() -> None:
    A = sparse.csc_array(np.zeros((6, 1)))
    b = np.array([2.0, 1.0, 0.0, 2.0, 1.0, 2.0])
    statement = ConeStatement(np.zeros(1), A, b, Cones(psd=(3,)), plain=True)
    V = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    w = np.ones(3)
    found = turned(statement, 0, V, w)
    assert found is not None
    assert exact(found.b) == congruence(np.column_stack((V, w)), full(b, 3))
    flat = np.array([[1.0, 0.0], [0.0, 0.0], [-1.0, -1.0]])
    for columns, last in (
        (V, np.array([1.0, 1.0, 1.5])),
        (V, np.zeros(3)),
        (V, np.ones(2)),
        (V[:, :1], w),
        (flat, np.array([0.0, 1.0, 0.0])),
        (V, w * 2.0**25),
        (V * 2.0**25, w),
    ):
        assert turned(statement, 0, columns, last) is None


# ---- existence of solutions


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("as_sparse", [False, True])
def test_shortest_corrections_are_hardly_overestimated(seed: int, as_sparse: bool) -> None:
    """||d||^2 = r'(BB')^-1 r in rationals; with a radius, for the worst r of its corners."""
    rng = np.random.default_rng(seed)
    m, k = int(rng.integers(1, 4)), int(rng.integers(4, 7))
    B = rng.integers(-5, 6, size=(m, k)) + 0.125
    if as_sparse:
        B = np.where(rng.uniform(size=(m, k)) < 0.5, B, 0.0)
        B[np.arange(m), np.arange(m)] = 3.0
    B *= 10.0 ** rng.integers(-3, 4, size=(m, 1))
    mid = draw(rng, m, decades=1)
    rad = np.abs(mid) * (0.1 if seed % 2 else 0.0)
    rows = flint.fmpq_mat([[flint.fmpq(*x.as_integer_ratio()) for x in row] for row in B.tolist()])
    G = rows * rows.transpose()
    if G.det() == 0:
        return
    inverse = G.inv()
    worst = Q(0)
    for corner in range(2**m):
        signs = [1 if corner >> i & 1 else -1 for i in range(m)]
        r = [a + sign * s for a, sign, s in zip(exact(mid), signs, exact(rad), strict=True)]
        square = Q(0)
        for i in range(m):
            for j in range(m):
                square += r[i] * r[j] * Q(int(inverse[i, j].p), int(inverse[i, j].q))
        worst = max(worst, square)
    found = shortest_correction(sparse.csr_array(B) if as_sparse else B, Enclosure(mid, rad))
    assert worst <= Q(found) ** 2
    # The radius is charged entry by entry, through an inverse: a few times what it is worth.
    assert Q(found) ** 2 <= worst * (Q("1.0001") if not rad.any() and not as_sparse else 400)
    looser = shortest_correction(sparse.csr_array(B) if as_sparse else B, Enclosure(mid, rad), 1e-6)
    assert found <= looser * (1 + 1e-12)


def test_corrections_for_every_matrix_within_its_error() -> None:
    """B = (1, 1) with entries off by a share e: |d| = |r| / (sqrt(2) (1 - e)) at worst."""
    r = Enclosure.of(np.array([1.0]))
    for share in (0.0, 1e-3, 1e-2):
        for B in (np.ones((1, 2)), sparse.csr_array(np.ones((1, 2)))):
            found = shortest_correction(B, r, share)
            assert (
                1 / (math.sqrt(2) * (1 - share)) * (1 - 1e-15) <= found <= 0.7072 * (1 + 6 * share)
            )
    rows = sparse.csr_array(np.eye(3, 5) + np.eye(3, 5, 1) * 0.5)
    found = shortest_correction(rows, Enclosure.of(np.array([1.0, 0.0, 0.0])), 1e-3)
    d = np.linalg.lstsq(rows.toarray() * (1 - 1e-3), np.array([1.0, 0.0, 0.0]), rcond=None)[0]
    assert np.linalg.norm(d) <= found


# ---- statements: split variables, ranges, exact vectors


def split_program(**changes: object) -> ConeStatement:
    """minimise 2 p - 2 q + z over 3 p - 3 q + z = 1, 1 - p + q >= z, p, q >= 0: p - q is free."""
    parts: dict[str, object] = {
        "c": np.array([2.0, -2.0, 1.0]),
        "A": np.array([[3.0, -3.0, 1.0], [1.0, -1.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -2.0, 0.0]]),
        "b": np.array([1.0, 1.0, 0.0, 0.0]),
        "cones": Cones(zero=1, nonneg=3),
    }
    parts.update(changes)
    parts["A"] = sparse.csc_array(parts["A"])
    return ConeStatement(**parts)  # type: ignore[arg-type]


def test_split_variables_are_merged() -> None:
    found = merged_columns(split_program())
    assert found is not None
    assert (found.plus.tolist(), found.minus.tolist()) == ([0], [1])
    assert (found.rows.tolist(), found.columns.tolist()) == ([0, 1], [0, 2])
    assert found.statement.A.toarray().tolist() == [[3.0, 1.0], [1.0, 1.0]]
    assert found.statement.b.tolist() == [1.0, 1.0]
    assert found.statement.c.tolist() == [2.0, 1.0]
    assert (found.statement.cones.zero, found.statement.cones.nonneg) == (1, 1)


def test_what_is_not_split_is_not_merged() -> None:
    A = split_program().A.toarray()

    def changed(i: int, j: int, value: float) -> np.ndarray:
        other = A.copy()
        other[i, j] = value
        return other

    eye = sparse.csc_array(np.eye(3))
    ball = QuadraticConstraint(eye, np.zeros(3), 1.0)
    for changes in (
        {"c": np.array([2.0, -2.5, 1.0])},
        {"c": np.array([2.0, 2.0, 1.0])},
        {"A": changed(0, 1, 3.0)},
        {"A": changed(1, 1, 0.0)},
        {"A": changed(2, 0, 1.0)},
        {"A": changed(3, 1, 2.0)},
        {"A": changed(2, 2, 1.0)},
        {"b": np.array([1.0, 1.0, 1.0, 0.0])},
        {"b": np.array([1.0, 1.0, -1.0, 0.0])},
        {"b": np.array([1.0, 1.0, 0.0, 1.0])},
        {"P": eye},
        {"quadratics": (ball,)},
        {"within": 9.0},
        {"radius": 9.0},
        # The bounds are equations, or rows of a cone.
        {"cones": Cones(zero=3, nonneg=1)},
        {"cones": Cones(zero=4)},
        {"cones": Cones(zero=1, nonneg=1, soc=(2,))},
        {"cones": Cones(zero=1, nonneg=2, soc=(1,))},
    ):
        assert merged_columns(split_program(**changes)) is None
    # A second bound of p stays where it is and is not matched by one of q.
    twice = np.vstack([A, [-1.0, 0.0, 0.0]])
    assert (
        merged_columns(split_program(A=twice, b=np.zeros(5), cones=Cones(zero=1, nonneg=4))) is None
    )
    # The same entries in other rows.
    moved = A.copy()
    moved[:2, 1] = [-1.0, -3.0]
    assert merged_columns(split_program(A=moved)) is None


def test_ranges_of_single_rows_are_rounded_outwards_and_inwards() -> None:
    A = np.array(
        [[3.0, 0.0, 0.0], [-7.0, 0.0, 0.0], [0.0, 0.1, 0.0], [0.0, 0.0, 4.0], [1.0, 1.0, 0.0]]
    )
    b = np.array([1.0, 1.0, 0.3, -3.0, 1.0])
    order = [2, 0, 1, 3, 4]
    rows = sparse.csc_array(A[order])
    statement = ConeStatement(np.zeros(3), rows, b[order], Cones(zero=1, nonneg=4))
    outer, inner = statement.stated_range, statement.inner_range
    third, seventh, three = Q(1, 3), -Q(1, 7), Q(0.3) / Q(0.1)
    assert Q(inner.upper[0]) < third < Q(outer.upper[0]) <= third * (1 + 4 * U)
    assert Q(outer.lower[0]) < seventh < Q(inner.lower[0]) <= seventh * (1 - 4 * U)
    assert Q(outer.lower[1]) < three < Q(outer.upper[1])
    # Division by a power of two is exact.
    assert outer.upper[2] == inner.upper[2] == -0.75
    assert outer.lower[2] == inner.lower[2] == -math.inf


@pytest.mark.parametrize("seed", range(12))
def test_implied_ranges_hold_at_vertices(seed: int) -> None:
    """x + .. over a row: the bound of the free variable is the exact one, rounded outwards."""
    rng = np.random.default_rng(seed)
    n = 4
    a = draw(rng, n, decades=2)
    low, high = -np.abs(draw(rng, n - 1, decades=2)), np.abs(draw(rng, n - 1, decades=2))
    b = float(rng.normal())
    box = np.vstack([np.eye(n - 1, n), -np.eye(n - 1, n)])
    is_equation = bool(seed % 2)
    A = np.vstack([a, box])
    right = np.concatenate([[b], high, -low])
    cones = Cones(zero=int(is_equation), nonneg=2 * n - 1 - int(is_equation))
    found = ConeStatement(np.zeros(n), sparse.csc_array(A), right, cones).implied_range
    terms = [
        (Q(float(c)) * Q(float(lo)), Q(float(c)) * Q(float(hi)))
        for c, lo, hi in zip(a, low, high, strict=False)
    ]
    least, most = sum(map(min, terms)), sum(map(max, terms))
    last = Q(float(a[-1]))
    ends = sorted(((Q(b) - least) / last, (Q(b) - most) / last))
    size = (sum(max(map(abs, pair)) for pair in terms) + abs(Q(b))) / abs(last)
    room = 200 * U * size
    if last > 0 or is_equation:
        assert ends[1] <= Q(float(found.upper[-1])) <= ends[1] + room
    else:
        assert found.upper[-1] == math.inf
    if last < 0 or is_equation:
        assert ends[0] - room <= Q(float(found.lower[-1])) <= ends[0]
    else:
        assert found.lower[-1] == -math.inf
    # Two missing bounds in a row imply nothing.
    open_box = ConeStatement(np.zeros(n), sparse.csc_array(A[:1]), right[:1], Cones(nonneg=1))
    assert np.isinf(open_box.implied_range.lower).all()
    assert np.isinf(open_box.implied_range.upper).all()


def test_exact_vectors_of_the_wrong_sign_are_refused() -> None:
    one = Q(1)
    # x = 1 and x = 2: (1, -1) and (-1, 1) both cancel A; one of them has b'y < 0.
    program = RationalProgram((Q(0),), (((0, one),), ((0, one),)), (one, Q(2)), zero=2)
    assert check_rational_farkas(program, [one, -one]) == ""
    assert check_rational_farkas(program, [-one, one]) == "b'y is not negative"
    assert check_rational_farkas(program, [Q(0), Q(0)]) == "b'y is not negative"
    assert "2" in check_rational_farkas(program, [one])
    assert check_rational_farkas(program, [one, -one, Q(0)])
    free = RationalProgram((one,), (), (), zero=0)
    assert check_rational_ray(free, [-one]) == ""
    assert (
        check_rational_ray(free, [one]) == check_rational_ray(free, [Q(0)]) == "c'd is not negative"
    )
    assert check_rational_ray(free, [])
    assert check_rational_ray(free, [-one, -one])


def test_time_that_is_left() -> None:
    now = time.perf_counter()
    with budget(now + 1000.0):
        assert 900.0 < remaining() <= 1000.0
        assert not exhausted()
    with budget(now - 1000.0):
        assert remaining() <= -1000.0
        assert exhausted()
    assert remaining() == math.inf
