"""Every term, limit and way of the core is there for a reason: what changes if it is not.

Ends that would be false at underflow or for forged data, bounds that would be larger than the count
of roundings of their lemma, and programs that need the last of several ways. Truth in rationals.
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
from klopt.model.fill import can_be_factored, elimination_cost, fits, product_can_be_factored
from klopt.model.functions import Bilinear, KernelQuadratic, Linear
from klopt.model.sets import BoxPlane, OrderedSimplex, Simplex
from klopt.problems._margin.witness import with_sum
from klopt.proof.balls import enclosure_of_ball, working_bits
from klopt.proof.cone_lower_bound import _Dual, lower_bound
from klopt.proof.cone_membership import block_matrix, in_dual_cone
from klopt.proof.cone_slack import enclose_slack, enclose_value, slack_summed_exactly
from klopt.proof.cone_upper_bound import upper_bound
from klopt.proof.cone_witnesses import DualWitness, PrimalWitness
from klopt.proof.convexity import curvature_beside, negative_curvature
from klopt.proof.dyadic import balanced, exact_sign_of_sum
from klopt.proof.enclosure import UNIT_ROUNDOFF, Enclosure, enclose_dot, enclose_kernel_product
from klopt.proof.exact_rank import dependence
from klopt.proof.exact_sums import exact_dot, two_products
from klopt.proof.faces import turned
from klopt.proof.function_bounds import bounds_of_game, bounds_of_minimum
from klopt.proof.kernel_product import enclose_in_blocks, enclose_in_slices, entry_bounds
from klopt.proof.linear_systems import _by_disjoint_rows, _by_sparse_factor, shortest_correction
from klopt.proof.log_det import enclose_congruence, log_det_change
from klopt.proof.rational import RationalProgram
from klopt.proof.rational_psd import rational_psd
from klopt.proof.rational_systems import RationalMatrix, independent
from klopt.proof.semidefinite import (
    cholesky_shift,
    eigenvalue_floor,
    is_positive_semidefinite,
)
from klopt.proof.set_bounds import feasible_near, linear_floor
from klopt.proof.statement import ConeStatement
from klopt.proof.time_budget import budget
from klopt.witness.tight_rows import doubtful_rows

U = Q(UNIT_ROUNDOFF)


def exact(x: object) -> list[Q]:
    return [Q(float(v)) for v in np.ravel(np.asarray(x, float))]


def integers(A: np.ndarray) -> flint.fmpz_mat:
    return flint.fmpz_mat(A.astype(int).tolist())


# ---- kernel matrices


def test_sizes_that_underflow_are_charged_where_rows_are_large() -> None:
    """r'|v| underflows, and times r_0 = 1e150 it is far above underflow."""
    K = np.array([[1e300, 1e-10], [1e-10, 1e-319]])
    assert Q(1e300) * Q(1e-319) >= Q(1e-10) ** 2
    r = entry_bounds(K, 0.0)
    for v in (1.1e-165, 1.7e-165, 3.3e-164):
        truth = Q(1e-10) * Q(v)
        point = np.array([0.0, v])
        for found in (enclose_in_blocks(K, point, r), enclose_kernel_product(K, point, 0.0)):
            assert abs(Q(float(found.mid[0])) - truth) <= Q(float(found.rad[0]))


@pytest.mark.parametrize("n", [2, 33, 200])
def test_slices_leave_what_their_lemma_says(n: int) -> None:
    """Lemma K2: n 2^(1 - mb) of unit rows is left, and one rounding of the sum."""
    rng = np.random.default_rng(n)
    K = rng.uniform(0.5, 1.0, size=(n, n))
    v = rng.uniform(0.5, 1.0, size=n)
    bits = (53 - math.ceil(math.log2(n))) // 2
    products = np.array(
        [float(sum(a * b for a, b in zip(exact(row), exact(v), strict=True))) for row in K]
    )
    found = enclose_in_slices(K, v, (-products,))
    left = n * Q(2) ** (1 - 4 * bits)
    for row, sum_of, mid, rad in zip(K, products, found.mid, found.rad, strict=True):
        truth = sum(a * b for a, b in zip(exact(row), exact(v), strict=True)) - Q(float(sum_of))
        assert abs(truth - Q(float(mid))) <= Q(float(rad))
        assert left <= Q(float(rad)) <= (left + U * abs(Q(float(mid)))) * (1 + 40 * U)


# ---- slacks and gradients at underflow


@pytest.mark.parametrize("count", [3, 30, 5000])
def test_sums_of_products_that_underflow(count: int) -> None:
    """Each product is 1.96 2^-1076 and is rounded to 0: all errors have one sign."""
    x = np.full(count, 1.4 * 2.0**-538)
    row = sparse.csc_array(x[None, :])
    statement = ConeStatement(np.zeros(count), row, np.zeros(1), Cones(nonneg=1))
    slack = enclose_slack(statement, x)
    truth = -count * Q(x[0]) ** 2
    assert slack.mid[0] == 0.0
    assert abs(truth) <= Q(float(slack.rad[0])) <= 5 * abs(truth)
    column = ConeStatement(np.zeros(1), sparse.csc_array(row.T), np.zeros(count), Cones(zero=count))
    gradient = _Dual(column, DualWitness(np.zeros(1), x)).gradient()
    assert gradient.mid[0] == 0.0
    assert abs(truth) <= Q(float(gradient.rad[0])) <= 5 * abs(truth)


@pytest.mark.parametrize("count", [0, 1, 2, 40, 5000])
def test_radii_of_slacks_and_gradients(count: int) -> None:
    """count + 1 roundings of a slack, count of A'y: no less, and hardly more."""
    rng = np.random.default_rng(count)
    a, x = rng.uniform(1.0, 2.0, size=(2, count))
    columns = max(count, 1)
    row = np.zeros((1, columns))
    row[0, :count] = a
    point = np.zeros(columns)
    point[:count] = x
    statement = ConeStatement(np.zeros(columns), sparse.csc_array(row), np.ones(1), Cones(nonneg=1))
    terms = sum((v * w for v, w in zip(exact(a), exact(x), strict=True)), Q(0))
    found = Q(float(enclose_slack(statement, point).rad[0]))
    assert found == 0 if not count else found >= (count + 1) * U * (terms + 1)
    assert found <= (count + 1) * U * (terms + 1) * Q("1.00001")
    turned = ConeStatement(
        np.zeros(1), sparse.csc_array(row.T), np.zeros(columns), Cones(zero=columns)
    )
    found = Q(float(_Dual(turned, DualWitness(np.zeros(1), point)).gradient().rad[0]))
    assert count * U * terms <= found <= count * U * terms * Q("1.00001")


# ---- curvature


def beside(P: object, *columns: int) -> list[float] | None:
    found = curvature_beside([(sparse.csc_array(np.array(P)), 1.0)], np.array(columns, np.intp))
    return None if found is None else found.tolist()


@pytest.mark.parametrize("power", [1, 4, 8, 14, 20, 28, 36])
def test_the_largest_share_that_the_matrix_allows(power: int) -> None:
    """[[1, 1], [1, 1 + e]] leaves e / (1 + e) beside its first entry."""
    e = 3 * 2.0**-power
    assert beside([[1.0, 1.0], [1.0, 1.0 + e]], 0) == [2.0**-power]


def test_diagonal_matrices_are_judged_entry_by_entry() -> None:
    assert beside([[1e-20, 0.0], [0.0, 1.0]], 0) == [5e-21]
    assert beside([[1.0, 0.0], [0.0, -1e-300]], 0) is None
    assert beside([[1e-300, 0.0], [0.0, 1.0]]) == []


def test_blocks_that_are_too_large_are_not_factored() -> None:
    n = 3001
    path = sparse.csc_array(
        sparse.diags_array([np.full(n, 2.0), -np.ones(n - 1), -np.ones(n - 1)], offsets=[0, 1, -1])
    )
    assert negative_curvature(path) == math.inf
    assert curvature_beside([(path, 1.0)], np.array([0])) is None
    alone = sparse.csc_array(sparse.diags_array(np.linspace(-2.0, 3.0, n)))
    assert negative_curvature(alone) == 2.0


@pytest.mark.parametrize("factor", [0.0, 10.0, 500.0])
def test_eigenvalues_that_are_guessed_too_high(factor: float) -> None:
    """The factorisation decides: a worse guess costs 16 or 1024 of its errors, not 2."""
    A = np.diag([3.0, 5.0, 7.0])
    step = cholesky_shift(A)
    guess = 3.0 + factor * step
    tries = {0.0: 2.0, 10.0: 16.0, 500.0: 1024.0}[factor]
    found = eigenvalue_floor(A, guess)
    assert found == guess - tries * (step + 4 * UNIT_ROUNDOFF * guess)
    assert found <= 3.0
    assert eigenvalue_floor(A, 3.0 + 5000 * step) == -math.inf


# ---- upper ends


def test_the_first_inequality_may_be_met_with_equality() -> None:
    """x + y <= 1/3 of thirds that are too large: an equation next to the point."""
    A = sparse.csc_array(np.array([[3.0, 3.0], [-1.0, 0.0], [0.0, -1.0]]))
    b = np.array([1.0, 0.0, 0.0])
    x = np.full(2, np.nextafter(1 / 6, 1.0))
    for zero in (0, 1):
        cones = Cones(zero=zero, nonneg=3 - zero)
        statement = ConeStatement(np.array([-1.0, -1.0]), A, b, cones)
        found = upper_bound(statement, PrimalWitness(x, np.arange(1 - zero)))
        assert -Q(1, 3) <= Q(found.value) <= -Q(1, 3) + 100 * U
        assert "which exists next to the one shown" in found.by
        # Rows that are no inequalities are none to be met with equality.
        forged = np.array([-1, 0, 3, 7])
        assert upper_bound(statement, PrimalWitness(x, forged)).value == found.value
    assert upper_bound(statement, PrimalWitness(np.zeros(2))).value == math.inf
    inside = ConeStatement(np.array([-1.0, -1.0]), A, b, Cones(nonneg=3))
    assert "next to" not in upper_bound(inside, PrimalWitness(np.zeros(2))).by
    assert upper_bound(inside, PrimalWitness(x)).value == math.inf


def test_rows_that_rounding_leaves_open() -> None:
    """0.1 x <= 0.3 at x = 3: neither side is known in floats."""
    rows = [[0.1], [0.1], [0.1], [0.1], [0.0], [0.1], [0.1], [0.1]]
    b = np.array([0.3, 0.3, 0.4, 0.2, 0.0, np.inf, 0.1 * 3, 0.3])
    cones = Cones(zero=1, nonneg=6, soc=(1,))
    statement = ConeStatement(np.zeros(1), sparse.csc_array(np.array(rows)), b, cones)
    assert doubtful_rows(statement, np.array([3.0])).tolist() == [1, 6]
    # Where all terms are 0 it is decided, at equality, too: x = 0 meets it.
    flat = ConeStatement(np.zeros(1), sparse.csc_array([[1.0]]), np.zeros(1), Cones(nonneg=1))
    assert doubtful_rows(flat, np.zeros(1)).tolist() == [0]


def test_declared_bounds_are_met_at_their_boundary() -> None:
    none = sparse.csc_array((0, 1))
    statement = ConeStatement(np.ones(1), none, np.zeros(0), Cones(), within=5.0)
    assert upper_bound(statement, PrimalWitness(np.array([-5.0]))).value == -5.0
    beyond = np.array([-np.nextafter(5.0, 6.0)])
    assert upper_bound(statement, PrimalWitness(beyond)).value == math.inf


# ---- corrections of linear systems


def test_rows_that_are_too_small_prove_nothing() -> None:
    """Entries next to underflow may have lost digits on their way here."""
    one = Enclosure.of(np.array([0.0]))
    for scale, proven in ((1e-249, True), (1e-251, False), (1e-300, False), (1.0, True)):
        B = np.array([[scale, scale]])
        for rows in (B, sparse.csr_array(B)):
            assert math.isfinite(shortest_correction(rows, one)) is proven


def test_no_time_no_correction() -> None:
    B = np.array([[1.0, 1.0], [1.0, -1.0]])
    right = Enclosure.of(np.ones(2))
    assert shortest_correction(B, right) < 1.1
    with budget(time.perf_counter() - 1.0):
        assert shortest_correction(B, right) == math.inf


def test_rows_that_the_gram_matrix_cannot_tell_apart() -> None:
    """BB' of [[1, 1], [1, 1 + e]] is singular in floats for e = 1e-9, B is not."""
    e = 2.0**-30
    B = np.array([[1.0, 1.0], [1.0, 1.0 + e]])
    r = np.array([0.0, e])
    # d = (1, -1).
    found = shortest_correction(B, Enclosure.of(r))
    assert 2 <= Q(found) ** 2 <= Q("2.1")
    # Over all matrices within an error that makes one of them singular there is no bound.
    assert shortest_correction(B, Enclosure.of(r), e / 2) == math.inf
    near = shortest_correction(B, Enclosure.of(r), e / 2000)
    assert 2 <= Q(near) ** 2 <= Q("2.1")


@pytest.mark.parametrize("h", [2.0**-8, 2.0**-14])
def test_both_shifts_of_sparse_rows_are_needed(h: float) -> None:
    """Blocks [[1, 1], [1, 1 + h]]: the smallest singular value is about h / 2."""
    blocks = 40
    B = sparse.csr_array(sparse.kron(sparse.eye_array(blocks), [[1.0, 1.0], [1.0, 1.0 + h]]))
    r = np.zeros(2 * blocks)
    r[0] = h
    found = _by_sparse_factor(B, Enclosure.of(r), 4 * UNIT_ROUNDOFF)
    # d = (1 + h, -1), within ||r|| / sqrt(t) for the larger t that the matrix allows.
    assert (1 + Q(h)) ** 2 + 1 <= Q(found) ** 2
    t = 1e-6 if h > 2.0**-10 else 1e-11
    assert found <= h / math.sqrt(t) * 1.001
    assert _by_sparse_factor(B, Enclosure.of(r), h / 2) == math.inf


@pytest.mark.parametrize("relative_error", [0.0, 0.125])
def test_rows_with_columns_of_their_own(relative_error: float) -> None:
    """Row i has the entries b_i of norm 5 or 1: ||d|| is that of r_i / b_i, and hardly more."""
    B = sparse.csr_array(
        np.array([[3.0, 4.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 2.0]])
    )
    r = Enclosure.of(np.array([10.0, 3.0, 12.0]))
    found = _by_disjoint_rows(B, r, relative_error)
    least = Q(2 * 2 + 3 * 3 + 6 * 6) / (1 - Q(relative_error)) ** 2
    assert least <= Q(found) ** 2 <= least * Q("1.00001")
    # Half of the rows are enough; the other is solved by what is left, and moves the first.
    half = sparse.csr_array(np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [0.0, 2.0, 1.0]]))
    few = _by_disjoint_rows(half, Enclosure.of(np.ones(3)), 0.0)
    assert few == math.inf
    pair = sparse.csr_array(np.array([[1.0, 2.0], [0.0, 1.0]]))
    # d_2 = -1 with an error of e / (1 - e), then d_1 = -1 - 2 d_2 and what the errors add.
    found = _by_disjoint_rows(pair, Enclosure.of(np.array([1.0, 1.0])), relative_error)
    e = Q(relative_error)
    second = 1 / (1 - e)
    first = (1 + 2 * (1 + e) * second) / (1 - e)
    assert second**2 + first**2 <= Q(found) ** 2 <= (second**2 + first**2) * Q("1.0001")


# ---- sums of floats


def test_splits_of_full_mantissas_are_exact() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(2**52, 2**53, size=(2, 3000)) | 1).astype(float)
    p, e = two_products(a, -b)
    for x, y, high, low in zip(a.tolist(), b.tolist(), p.tolist(), e.tolist(), strict=True):
        assert -int(x) * int(y) == int(high) + int(low)


@pytest.mark.parametrize("a", [1e-160, -1e-160])
@pytest.mark.parametrize("b", [1e-160, -1e-160])
def test_products_that_underflow_have_no_exact_sum(a: float, b: float) -> None:
    assert exact_dot(np.array([a]), np.array([b])).rad == math.inf
    assert exact_dot(np.array([a, 0.0]), np.array([0.0, b])).rad == 0.0
    assert exact_dot(np.array([a * 1e20]), np.array([b])).rad == math.inf
    large = exact_dot(np.array([a * 1e300, 1.0]), np.array([b * 1e300, 1.0]))
    truth = Q(a * 1e300) * Q(b * 1e300) + 1
    assert abs(Q(float(large.mid)) - truth) <= Q(float(large.rad))


def test_as_many_entries_are_balanced_as_it_says() -> None:
    """All entries have one sign: each is taken away whole, 64 of them."""
    assert exact_sign_of_sum(balanced(np.ones(64))) == 0
    assert math.fsum(balanced(np.ones(66)).tolist()) == 2.0
    assert balanced(np.zeros(0)).size == 0
    # 64 ones are at their bound: 64 quarters take what is missing, each of them three of it.
    x = np.full(64, 0.25)
    assert exact_sign_of_sum(with_sum(x, 64.0), 64.0) == 0


# ---- rational systems


@pytest.mark.parametrize("seed", range(40))
def test_independent_rows_are_the_first_ones_of_their_rank(seed: int) -> None:
    """Small integers cancel often: each row is chosen if and only if the rank grows with it."""
    rng = np.random.default_rng(seed)
    m, n = 7, 6
    A = rng.integers(-1, 2, size=(m, n)) * rng.integers(1, 3, size=(m, n))
    A[rng.integers(1, m)] = A[0] + A[rng.integers(0, m)]
    order = rng.permutation(m)
    rows = [[(j, int(v)) for j, v in enumerate(row) if v] for row in A]
    chosen, pivots = independent(rows, order.tolist(), n)
    expected = []
    for index in order.tolist():
        if integers(A[[*expected, index]]).rank() == len(expected) + 1:
            expected.append(index)
    assert chosen == expected
    # The square matrix of these rows and columns is regular.
    assert len(set(pivots)) == len(chosen)
    assert integers(A[np.ix_(chosen, pivots)]).det() != 0
    # Modulo 2 fewer rows may be independent, never more.
    few, _ = independent(rows, order.tolist(), n, prime=2)
    assert len(few) <= len(chosen)
    assert integers(A[few]).rank() == len(few)


@pytest.mark.parametrize("seed", range(6))
def test_triangular_matrices_have_no_kernel(seed: int) -> None:
    """Rows are taken off the front, columns off the back; what is left is the block between."""
    rng = np.random.default_rng(seed)
    front, kernel, back = 4, 3 if seed % 2 else 0, 3
    n = front + kernel + back
    M = np.tril(rng.integers(1, 5, size=(n, n)))
    inside = slice(front, front + kernel)
    M[inside, inside] = rng.integers(1, 5, size=(kernel, kernel)) + 9 * np.eye(kernel, dtype=int)
    M = M[rng.permutation(n)][:, rng.permutation(n)]
    matrix = RationalMatrix([[(j, int(v)) for j, v in enumerate(row) if v] for row in M])
    ahead, rows, columns, behind = matrix.blocks
    assert len(rows) == len(columns) == kernel
    assert len(ahead) + len(behind) == front + back
    r = [flint.fmpq(int(v)) for v in rng.integers(-9, 10, size=n)]
    exact_matrix = flint.fmpq_mat(integers(M))
    right = flint.fmpq_mat(n, 1, r)
    assert matrix.solve(r) == [v for row in exact_matrix.solve(right).tolist() for v in row]
    turned = exact_matrix.transpose().solve(right).tolist()
    assert matrix.solve_transposed(r) == [v for row in turned for v in row]


def test_columns_alone_are_taken_off_the_back() -> None:
    """No row has one entry, one column has."""
    matrix = RationalMatrix([[(0, 1), (1, 2)], [(0, 3), (1, 4)], [(0, 1), (1, 1), (2, 5)]])
    assert matrix.blocks == ([], [0, 1], [0, 1], [(2, 2)])
    # No column has one entry, one row has.
    matrix = RationalMatrix([[(0, 5)], [(0, 1), (1, 2), (2, 1)], [(0, 3), (1, 4), (2, 7)]])
    assert matrix.blocks == ([(0, 0)], [1, 2], [1, 2], [])


# ---- semidefinite matrices in rationals


@pytest.mark.parametrize("seed", range(30))
def test_sparse_semidefinite_matrices_with_fill(seed: int) -> None:
    """F'F of sparse integers is singular; less by one on its diagonal it is not semidefinite."""
    rng = np.random.default_rng(seed)
    n = 6
    F = rng.integers(-2, 3, size=(n - 1, n)) * (rng.uniform(size=(n - 1, n)) < 0.45)
    P = (F.T @ F).astype(float)
    assert rational_psd(sparse.csc_array(P)) is True
    for index in range(n):
        less = P.copy()
        less[index, index] -= 2.0**-40
        definite = P.copy()
        definite[index, index] += 2.0**-20
        assert rational_psd(sparse.csc_array(definite)) is True
        # Without its column F has a smaller rank, or a combination of the others is that column:
        # then less of the entry leaves a negative direction.
        rest = integers(np.delete(F, index, 1))
        if integers(F).rank() == rest.rank() and less[index, index] != P[index, index]:
            assert rational_psd(sparse.csc_array(less)) is False


def test_cycles_have_fill() -> None:
    """The Laplacian of a cycle is semidefinite; nothing can be taken from its diagonal."""
    for n in (3, 4, 5, 8):
        L = 2 * np.eye(n) - np.roll(np.eye(n), 1, axis=0) - np.roll(np.eye(n), -1, axis=0)
        assert rational_psd(sparse.csc_array(L)) is True
        for index in range(n):
            less = L.copy()
            less[index, index] -= 2.0**-50
            assert rational_psd(sparse.csc_array(less)) is False


def test_matrices_that_are_not_square_or_symmetric_are_refused() -> None:
    for P in (np.ones((2, 3)), np.ones((3, 2)), np.array([[1.0, 2.0], [0.0, 1.0]])):
        with pytest.raises(InvalidProblem, match="not symmetric"):
            rational_psd(sparse.csc_array(P))


def test_work_is_counted_before_it_is_begun() -> None:
    """n ones: n (n - 1) (n + 1) / 6 updates of one bit, times the order."""
    for n in (2, 3, 7):
        work = n * (n - 1) * (n + 1) // 6 * n
        P = sparse.csc_array(np.ones((n, n)))
        assert rational_psd(P, max_work=work) is True
        assert rational_psd(P, max_work=work - 1) is None
    # A negative entry of the diagonal needs no work at all.
    assert rational_psd(sparse.csc_array([[1.0, 1.0], [1.0, -1.0]]), max_work=0) is False


# ---- what a factorisation costs


def pattern(n: int, *edges: tuple[int, int]) -> sparse.csr_array:
    K = np.eye(n)
    for i, j in edges:
        K[i, j] = 1.0
    return sparse.csr_array(K)


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_elimination_is_counted_exactly(n: int) -> None:
    """Squares of the degrees: 1 along a path, 4 around a cycle, all that are left of a clique."""
    path = pattern(n, *((i, i + 1) for i in range(n - 1)))
    assert elimination_cost(path) == n - 1
    cycle = pattern(n + 2, *((i, (i + 1) % (n + 2)) for i in range(n + 2)))
    assert elimination_cost(cycle) == 4 * n + 1
    clique = sparse.csr_array(np.ones((n, n)))
    assert elimination_cost(clique) == sum(d * d for d in range(n))
    star = pattern(n + 1, *((i, n) for i in range(n)))
    assert elimination_cost(star) == n
    # The lower or the upper triangle says the same.
    assert elimination_cost(sparse.csr_array(cycle.T)) == 4 * n + 1


def test_counting_ends_where_the_answer_is_known() -> None:
    n = 60
    clique = sparse.csr_array(np.ones((n, n)))
    total = sum(d * d for d in range(n))
    assert elimination_cost(clique, enough=total * 10.0) <= total * 10.0
    assert elimination_cost(clique, enough=100.0) > 100.0
    assert elimination_cost(clique, enough=100.0) < total
    # More entries than are looked at: no more is said than of a dense matrix.
    m = 1733
    assert elimination_cost(sparse.csr_array(np.ones((m, m)))) == m**3 / 3


def test_time_decides_what_is_factored() -> None:
    eye = sparse.eye_array(20_000, format="csr")
    n = 300
    clique = sparse.csr_array(np.ones((n, n)))
    assert can_be_factored(eye)
    assert can_be_factored(clique)
    assert can_be_factored(eye, passes=1e6)
    assert not can_be_factored(clique, passes=1e6)
    # 20 seconds of 1.5e9 products.
    assert fits(3e10)
    assert not fits(3.1e10)
    assert not can_be_factored(eye, -1.0)
    assert not fits(1.0, -1.0)
    assert not fits(3.1e10, 1000.0)
    assert fits(3e10, 1000.0)
    assert not fits(2e10, 10.0)
    assert product_can_be_factored(sparse.csr_array(np.ones((1, 4000))))
    assert not product_can_be_factored(sparse.csr_array(np.ones((1, 5000))))
    assert product_can_be_factored(sparse.csr_array(np.ones((5000, 1))))


# ---- balls


@pytest.mark.parametrize("value", [(1, 3), (2, 3), (1, 10), (-1, 3), (7, 5), (-22, 7)])
def test_floats_around_balls_hold_them(value: tuple[int, int]) -> None:
    with working_bits(200):
        found = enclosure_of_ball(flint.arb(flint.fmpq(*value)))
    assert Q(float(found.lower)) <= Q(*value) <= Q(float(found.upper))
    assert found.rad <= 4 * math.ulp(value[0] / value[1])


def test_balls_with_one_infinite_end() -> None:
    with working_bits(100):
        wide = flint.arb(0, 1e308) * 100 + flint.arb(1e308) * 100
        low = enclosure_of_ball(wide)
        high = enclosure_of_ball(-wide)
    assert low.rad == math.inf
    assert high.rad == math.inf


# ---- simple sets


def least_over_box(g: np.ndarray, x: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> Q | None:
    """The minimum of g'(z - x) over a box in rationals; None where there is none."""
    total = Q(0)
    for slope, at, low, high in zip(*(v.tolist() for v in (g, x, lower, upper)), strict=True):
        side = low if slope > 0 else high
        if not slope:
            continue
        if math.isinf(side):
            return None
        total += Q(slope) * (Q(side) - Q(at))
    return total


@pytest.mark.parametrize("seed", range(30))
def test_linear_functions_of_whole_numbers_over_boxes(seed: int) -> None:
    """Zeros, ones and sides that are infinite or equal: what is special must not be mistaken."""
    rng = np.random.default_rng(seed)
    n = 4
    g = rng.integers(-2, 3, size=n).astype(float)
    x = rng.integers(-2, 3, size=n).astype(float)
    lower = np.where(rng.uniform(size=n) < 0.2, -np.inf, rng.integers(-3, 1, size=n))
    upper = np.where(rng.uniform(size=n) < 0.2, np.inf, lower + rng.integers(0, 3, size=n))
    upper = np.where(np.isnan(upper) | (upper == -np.inf), 2.0, upper)
    box = BoxPlane(lower, upper)
    for start in (None, x):
        truth = least_over_box(g, np.zeros(n) if start is None else x, lower, upper)
        found = linear_floor(box, Enclosure.of(g), start)
        if truth is None:
            assert found == -math.inf
        else:
            assert truth - 200 * U <= Q(found) <= truth


def test_products_of_an_end_and_a_total_are_rounded_twice() -> None:
    """(g - rad) total over a simplex: the smallest of two entries, both roundings against it."""
    rng = np.random.default_rng(0)
    for total in rng.uniform(1.0, 2.0, 20).tolist():
        domain = Simplex(2, total)
        mids = rng.uniform(1.0, 2.0, 60)
        rads = rng.uniform(0.0, 0.5, 60)
        for mid, rad in zip(mids.tolist(), rads.tolist(), strict=True):
            g = Enclosure(np.array([mid, 4.0]), np.array([rad, rad]))
            truth = (Q(mid) - Q(rad)) * Q(total)
            assert truth - 40 * U <= Q(linear_floor(domain, g)) <= truth
    one = OrderedSimplex(1, 2.0)
    assert 2.9999 < linear_floor(one, Enclosure.of(np.array([3.0]))) <= 3.0


def test_points_are_scaled_by_a_factor_that_is_rounded() -> None:
    """x total / (sum of x) lies within the radius, entry by entry, and that is no larger."""
    rng = np.random.default_rng(1)
    for _ in range(300):
        x = rng.uniform(0.1, 1.0, 3)
        total = float(x.sum()) * (1 + float(rng.integers(-9, 10)) * 2.0**-50)
        near = feasible_near(Simplex(3, total), x)
        assert near is not None
        factor = Q(total) / sum(exact(x))
        for v, mid, rad in zip(exact(x), near.mid.tolist(), near.rad.tolist(), strict=True):
            off = abs(v * factor - Q(mid))
            assert off <= Q(rad) <= off * (1 + 16 * U) + Q(2) ** -1070


def test_planes_at_underflow_and_at_equality() -> None:
    """normal'x = offset up to the smallest number there is, and exactly."""
    tiny = 2.0**-1074
    box = BoxPlane(np.zeros(2), np.ones(2), np.ones(2), 0.0)
    near = feasible_near(box, np.array([tiny, 0.0]))
    assert near is None or near.lower[0] <= 0.0
    half = BoxPlane(np.zeros(3), np.ones(3), np.array([1.0, -1.0, 0.0]), 0.5)
    met = feasible_near(half, np.array([0.75, 0.25, 0.0]))
    assert met is not None
    assert not met.rad.any()
    # The third coordinate is not in the plane: it does not move.
    off = feasible_near(half, np.array([0.75, 0.25 + 2.0**-50, 0.5]))
    assert off is not None
    assert off.rad[2] <= 2 * tiny
    assert off.rad[0] + off.rad[1] >= 2.0**-50
    assert feasible_near(half, np.array([0.0, 1.0, 0.5])) is not None


# ---- functions and games


def test_kernel_quadratics_over_unbounded_boxes_have_no_formula_for_curvature() -> None:
    """z^2 / 2 - 2 z over z >= 0 has the minimum -2 at z = 2; nothing above it is a lower end."""
    function = KernelQuadratic(np.eye(1), np.ones(1), np.array([-2.0]))
    domain = BoxPlane(np.zeros(1), np.full(1, np.inf))
    for z in (0.0, 0.5, 1.0, 2.0, 3.0):
        ends = bounds_of_minimum(function, domain, np.array([z]))
        assert ends.lower <= -2.0
        assert Q(ends.upper) >= Q(z) ** 2 / 2 - 2 * Q(z)
    flat = bounds_of_minimum(Linear([-1.0]), domain, np.zeros(1))
    assert flat.lower == -math.inf


def test_games_need_a_strategy_for_each_end() -> None:
    """[[1, -1], [-1, 1]] has the value 0: without a strategy of one side there is no end of it."""
    game = Bilinear([[1.0, -1.0], [-1.0, 1.0]])
    half, none = np.array([0.5, 0.5]), np.array([2.0, -1.0])
    ends = bounds_of_game(game, Simplex(2), Simplex(2), half, none)
    assert ends.lower == -math.inf
    assert 0.0 <= ends.upper < 1e-12
    ends = bounds_of_game(game, Simplex(2), Simplex(2), none, half)
    assert -1e-12 < ends.lower <= 0.0
    assert ends.upper == math.inf


# ---- determinants


@pytest.mark.parametrize("theta", [2.0**-40, 0.1, 0.3, 0.45, 0.49, 0.5, 0.6, 0.9, 0.99, 1.0, 1.4])
def test_relative_changes_of_determinants(theta: float) -> None:
    """-log(1 - theta) <= theta + theta^2 up to 1/2, and nothing beyond."""
    for C, E in ((theta, 1.0), (theta / 3, 3.0)):
        found = log_det_change(C, E)
        if theta >= 0.5:
            assert found.rad == math.inf
            continue
        assert found.mid == 0.0
        product = Q(C) * Q(E)
        assert mpmath.mpf(found.rad) >= -mpmath.log(1 - mpmath.mpf(theta) * (1 - 2.0**-52))
        assert product + product**2 <= Q(found.rad) <= (product + product**2) * (1 + 16 * U)


@pytest.mark.parametrize("n", [1, 2, 5, 30])
@pytest.mark.parametrize("wide", [False, True])
def test_congruences_charge_what_their_lemma_says(n: int, wide: bool) -> None:
    """Lemma D3 with 2 n + 1 roundings, in rationals: no less, and hardly more."""
    rng = np.random.default_rng(n)
    F = rng.normal(size=(2, n))
    A = rng.normal(size=(n, n))
    A = A + A.T
    rad_F = np.abs(rng.normal(size=F.shape)) * (1e-9 if wide else 0.0)
    rad_A = np.full(A.shape, 1e-10 if wide else 0.0)
    found = enclose_congruence(Enclosure(F, rad_F), Enclosure(A, rad_A))
    u = 2.0**-53
    g = Q((2 * n + 1) * u) / (1 - (2 * n + 1) * U)
    H = [
        [abs(a) + r + r / g for a, r in zip(exact(F[i]), exact(rad_F[i]), strict=True)]
        for i in range(2)
    ]
    sizes = [
        [g * abs(Q(float(A[i, j]))) + Q(float(rad_A[i, j])) for j in range(n)] for i in range(n)
    ]
    for i in range(2):
        for j in range(2):
            least = sum((H[i][k] * sizes[k][m] * H[j][m] for k in range(n) for m in range(n)), Q(0))
            assert least <= Q(float(found.rad[i, j])) <= least * Q("1.00001")


# ---- lower ends


@pytest.mark.parametrize("w", [0.0, 0.5, 10.0, -10.0])
@pytest.mark.parametrize("bound", ["within", "radius"])
def test_what_lacks_convexity_is_charged_from_w(w: float, bound: str) -> None:
    """min -x^2 / 2 over |x| <= 1 is -1/2, wherever the tangent is taken."""
    none = sparse.csc_array((0, 1))
    wide = sparse.csc_array(np.array([[1.0], [-1.0]]))
    concave = sparse.csc_array([[-1.0]])
    for A, cones in ((none, Cones()), (wide, Cones(nonneg=2))):
        b = np.full(A.shape[0], 5.0)
        statement = ConeStatement(np.zeros(1), A, b, cones, concave, **{bound: 1.0})
        found = lower_bound(statement, DualWitness(np.array([w]), np.zeros(b.size))).value
        assert found <= -0.5
        # -w^2 / 2 + w^2 - 5 |w| - (5 + |w|)^2 / 2 in the worst case.
        assert found >= -13 - 15 * abs(w)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_one_bound_is_enough_for_a_gradient_of_the_right_sign(sign: float) -> None:
    """min x over x >= 1, and -x over x <= 1: no multiplier and nothing to solve."""
    A = sparse.csc_array([[-sign]])
    statement = ConeStatement(np.array([sign]), A, np.array([-1.0]), Cones(nonneg=1))
    zero = DualWitness(np.zeros(1), np.zeros(1))
    found = lower_bound(statement, zero, solving=False)
    assert 1 - 4 * U <= Q(found.value) <= 1
    assert "bounds of the variables" in found.by
    # The other way round the objective has no bound.
    other = ConeStatement(np.array([-sign]), A, np.array([-1.0]), Cones(nonneg=1))
    assert lower_bound(other, zero).value == -math.inf
    assert lower_bound(other, zero, solving=False).value == -math.inf
    # Multipliers of the wrong sign are none, and those that are no numbers prove nothing.
    assert lower_bound(statement, DualWitness(np.zeros(1), np.array([-1.0]))).value == found.value
    assert lower_bound(statement, DualWitness(np.zeros(1), np.array([np.nan]))).value == -math.inf
    assert lower_bound(statement, DualWitness(np.array([np.inf]), np.zeros(1))).value == -math.inf


# ---- exact ranks and compressions


def equations(first: int, b: tuple[int, int] = (1, 1)) -> RationalProgram:
    """first x + y = b_0, y = b_1: independent, and modulo a divisor of `first` not."""
    rows = (((0, Q(first)), (1, Q(1))), ((1, Q(1)),))
    return RationalProgram((Q(0), Q(0)), rows, tuple(map(Q, b)), zero=2)


def test_a_prime_that_divides_a_minor_is_followed_by_another() -> None:
    primes = [2**61 - 1, 2**31 - 1, 2**89 - 1]
    for first in (1, primes[0], primes[1], primes[0] * primes[1], primes[0] * primes[2]):
        found = dependence(equations(first))
        assert found is not None
        assert found.independent.tolist() == [0, 1]
        assert found.dependent.size == 0
    # Of all three, nothing is said.
    assert dependence(equations(math.prod(primes))) is None


@pytest.mark.parametrize("off", [Q(3), Q(-3), Q(1, 7)])
def test_contradictions_are_farkas_vectors(off: Q) -> None:
    """x + 2 y = 1, x = 2, and 3 x + 4 y = 6 + off: the last is 2 and 1 times the others, but for off."""
    rows = (((0, Q(1)), (1, Q(2))), ((0, Q(1)),), ((0, Q(3)), (1, Q(4))))
    b = (Q(1), Q(2), Q(4) + off)
    found = dependence(RationalProgram((Q(0), Q(0)), rows, b, zero=3))
    assert found is not None
    assert not found.consistent
    (change,) = found.changes
    y = found.farkas
    assert sum(v * w for v, w in zip(y, b, strict=True)) == -abs(change.amount) * abs(y[change.row])
    for j in range(2):
        assert sum(dict(row).get(j, Q(0)) * v for row, v in zip(rows, y, strict=True)) == 0
    # With b changed by the amount, and only then, it agrees.
    for amount, agrees in (
        (change.amount, True),
        (-change.amount, False),
        (2 * change.amount, False),
    ):
        moved = list(b)
        moved[change.row] += amount
        again = dependence(RationalProgram((Q(0), Q(0)), rows, tuple(moved), zero=3))
        assert again is not None
        assert again.consistent is agrees


@pytest.mark.parametrize("a", [2**24, 2**24 + 1])
def test_turned_blocks_stay_far_from_rounding(a: int) -> None:
    """[V w] = [[1, -a], [a, 1]]: its entries times the order may be 2^25, and no more."""
    rows = sparse.csc_array(np.zeros((3, 1)))
    b = np.array([1.0, 0.0, 1.0])
    statement = ConeStatement(np.zeros(1), rows, b, Cones(psd=(2,)), plain=True)
    V, w = np.array([[1.0], [float(a)]]), np.array([-float(a), 1.0])
    found = turned(statement, 0, V, w)
    if a > 2**24:
        assert found is None
        return
    assert found is not None
    # [V w]'[V w] = (1 + a^2) I.
    assert found.b.tolist() == [1.0 + a * a, 0.0, 1.0 + a * a]


# ---- limits that are documented


@pytest.mark.parametrize("n", [1, 2, 9, 60])
def test_factorisations_of_nothing_lose_what_underflows(n: int) -> None:
    """n + 2 operations on each of n entries of a row, each off by eta at most."""
    found = Q(cholesky_shift(np.zeros((n, n))))
    least = n * (n + 2) * Q(2) ** -1074
    assert least <= found <= 4 * least + 16 * Q(2) ** -1074


@pytest.mark.parametrize("n", [100, 101])
def test_as_many_terms_of_a_value_are_summed_exactly_as_it_says(n: int) -> None:
    rng = np.random.default_rng(n)
    x, y = rng.uniform(1.0, 2.0, size=(2, n))
    found = enclose_value(x, y)
    by_lemma = enclose_dot(x, y)
    if n > 100:
        assert (found.mid, found.rad) == (by_lemma.mid, by_lemma.rad)
    else:
        assert found.rad <= math.ulp(found.mid) / 2 < by_lemma.rad


@pytest.mark.parametrize("n", [200_000, 200_001])
def test_as_many_terms_of_a_slack_are_summed_exactly_as_it_says(n: int) -> None:
    rng = np.random.default_rng(n)
    row = sparse.csc_array(rng.uniform(1.0, 2.0, size=(1, n)))
    x = rng.uniform(1.0, 2.0, size=n)
    statement = ConeStatement(np.zeros(n), row, np.zeros(1), Cones(nonneg=1))
    slack = enclose_slack(statement, x)
    exactly = slack_summed_exactly(statement, x, slack, np.array([0]))
    if n > 200_000:
        assert exactly is slack
    else:
        assert exactly.rad[0] <= math.ulp(float(exactly.mid[0])) < slack.rad[0]
        assert abs(exactly.mid[0] - slack.mid[0]) <= slack.rad[0]


def test_a_few_rows_and_many_are_summed_alike() -> None:
    rng = np.random.default_rng(0)
    m, n = 7, 5
    A = rng.normal(size=(m, n))
    x = rng.normal(size=n)
    statement = ConeStatement(np.zeros(n), sparse.csc_array(A), A @ x, Cones(nonneg=m))
    slack = enclose_slack(statement, x)
    for rows in (np.arange(4), np.arange(5), np.array([6]), np.array([1, 3, 5])):
        found = slack_summed_exactly(statement, x, slack, rows)
        for i in range(m):
            truth = Q(float(statement.b[i])) - sum(
                (a * v for a, v in zip(exact(A[i]), exact(x), strict=True)), Q(0)
            )
            assert abs(truth - Q(float(found.mid[i]))) <= Q(float(found.rad[i]))
            if i in rows:
                assert Q(float(found.rad[i])) <= U * abs(truth) * 2
            else:
                assert found.rad[i] == slack.rad[i]


# ---- blocks and errors, each by itself


def test_blocks_do_not_see_each_other() -> None:
    """[[1, 2], [2, 1]] has the eigenvalue -1, whatever stands beside it."""
    large = 1e20 * np.array([[2.0, 1.0], [1.0, 2.0]])
    small = np.array([[1.0, 2.0], [2.0, 1.0]])
    for blocks in ((large, small), (small, large)):
        P = sparse.csc_array(sparse.block_diag(blocks))
        assert 1.0 <= negative_curvature(P) <= 1.0 + 1e-12
    assert negative_curvature(sparse.csc_array(np.diag([1.0, 2.0, 3.0]))) == 0.0


def test_stored_zeros_of_a_diagonal_are_no_curvature() -> None:
    stored = sparse.csc_array((np.array([0.0, 1.0]), np.arange(2), np.arange(3)), shape=(2, 2))
    found = curvature_beside([(stored, 1.0)], np.array([1]))
    assert found is not None
    assert found.tolist() == [0.5]
    assert curvature_beside([(stored, 1.0)], np.array([0])) is None


@pytest.mark.parametrize("share", [2.0**-20, 2.0**-10, 2.0**-5])
def test_errors_of_a_matrix_are_charged_as_the_lemma_says(share: float) -> None:
    """B = (1, 1): alpha is (1 + e)^2 - 1, and ||d|| at most |r| / sqrt(2 (1 - alpha))."""
    r = Enclosure.of(np.array([1.0]))
    alpha = (1 + Q(share)) ** 2 - 1
    found = shortest_correction(np.ones((1, 2)), r, share)
    least = 1 / (2 * (1 - alpha))
    assert least <= Q(found) ** 2 <= least * Q("1.00001")


# ---- upper ends of programs without a point


def test_equations_that_contradict_each_other_have_no_upper_end() -> None:
    """x = 1 and x = 2, and three equations of which two are enough to say so."""
    for A, b in (
        ([[1.0], [1.0]], [1.0, 2.0]),
        ([[1.0, 1.0], [2.0, 2.0], [1.0, 0.0]], [1.0, 3.0, 0.5]),
        ([[1.0, 1.0], [1.0, 0.0], [2.0, 2.0]], [1.0, 0.5, 3.0]),
    ):
        rows = np.array(A)
        statement = ConeStatement(
            np.zeros(rows.shape[1]), sparse.csc_array(rows), np.array(b), Cones(zero=len(b))
        )
        for point in (np.ones(rows.shape[1]), np.full(rows.shape[1], 0.5)):
            assert upper_bound(statement, PrimalWitness(point)).value == math.inf


def test_the_rounding_of_a_slack_adds_to_the_way_to_the_solution() -> None:
    """a'z + x <= b, z >= z_0, x + v = d, v <= 0: feasible if b - a'z_0 >= d, which rounding hides."""
    infeasible = 0
    k = 30
    cones = Cones(zero=1, nonneg=k + 2)
    for seed in range(60):
        rng = np.random.default_rng(seed)
        a, z = rng.uniform(1.0, 2.0, size=(2, k))
        A = np.zeros((k + 3, k + 2))
        A[0, k:] = 1.0
        A[1] = np.concatenate([a, [1.0, 0.0]])
        A[2:-1, :k] = -np.eye(k)
        A[-1, -1] = 1.0
        rows = sparse.csc_array(A)
        point = np.concatenate([z, np.zeros(2)])
        b = float(a @ z) * (1 + 80 * UNIT_ROUNDOFF)
        right = np.concatenate([[0.0, b], -z, [0.0]])
        slack = enclose_slack(ConeStatement(np.zeros(k + 2), rows, right, cones), point)
        # Nearly all of the slack, as rounded, is the way to the solution.
        right[0] = float(slack.mid[1]) * (1 - 1e-5)
        statement = ConeStatement(np.zeros(k + 2), rows, right, cones)
        found = upper_bound(statement, PrimalWitness(point)).value
        left = Q(b) - sum(v * w for v, w in zip(exact(a), exact(z), strict=True))
        if left < Q(float(right[0])):
            infeasible += 1
            assert found == math.inf
        # A sixteenth of it is a way that is proven.
        right[0] = float(slack.mid[1]) / 16
        statement = ConeStatement(np.zeros(k + 2), rows, right, cones)
        assert 0.0 <= upper_bound(statement, PrimalWitness(point)).value < 1e-300
    assert infeasible


@pytest.mark.parametrize("count", [1, 6])
def test_equations_that_no_variable_can_change_are_left_alone(count: int) -> None:
    """z = 1 holds exactly and fixes z; 3 x + 3 y = 1 is solved next to the point."""
    A = np.zeros((count + 1, count + 2))
    A[:count, :count] = np.eye(count)
    A[count, count:] = 3.0
    statement = ConeStatement(
        np.ones(count + 2), sparse.csc_array(A), np.ones(count + 1), Cones(zero=count + 1)
    )
    point = np.concatenate([np.ones(count), np.full(2, 1 / 6)])
    found = upper_bound(statement, PrimalWitness(point)).value
    assert count + Q(1, 3) <= Q(found) <= count + Q(1, 3) + 100 * U * count
    # Where it does not hold, nothing next to the point does.
    point[0] = 1.5
    assert upper_bound(statement, PrimalWitness(point)).value == math.inf


def test_margins_larger_than_the_diagonal_are_charged_for_their_rounding() -> None:
    """[[t, c], [c, t]] with c the next float above t has a negative eigenvalue, and a zero diagonal
    of the matrix it comes from says nothing about the size of its pivots."""
    rng = np.random.default_rng(0)
    for t in rng.uniform(1.0, 4.0, 300).tolist():
        c = math.nextafter(t, math.inf)
        assert not is_positive_semidefinite(np.array([[0.0, c], [c, 0.0]]), -t)
        assert is_positive_semidefinite(np.array([[0.0, t], [t, 0.0]]), -t * (1 + 1e-14))


@pytest.mark.parametrize("units", [-5, -1, 1, 5])
def test_what_is_at_its_bound_stays_there(units: int) -> None:
    """The sum is moved by a few units: the entry that is farthest from its bounds takes all of it."""
    x = np.array([0.0, 0.5, 1.0, 0.125, 1.0, 0.0])
    total = 2.625 + units * 2.0**-50
    found = with_sum(x, total)
    assert exact_sign_of_sum(found, total) == 0
    assert np.flatnonzero(found != x).tolist() == [1]
    # What lies beyond a bound is brought back to it.
    back = with_sum(np.array([1.0 + 2.0**-52, 0.5, -(2.0**-60)]), 1.5)
    assert back.tolist() == [1.0, 0.5, 0.0]


def test_enclosures_contain_their_ends_and_nothing_beyond() -> None:
    wide = Enclosure(np.array([1.0, 2.0]), np.array([0.5, 0.0]))
    assert wide.contains(np.array([0.5, 2.0]))
    assert wide.contains(np.array([1.5, 2.0]))
    for outside in ([0.25, 2.0], [1.75, 2.0], [1.0, 2.5], [1.0, 1.5]):
        assert not wide.contains(np.array(outside))


@pytest.mark.parametrize("value", [-2.0, -1.0, 1.0, 2.0, 3.0, 2.0**-1074])
def test_entries_off_the_diagonal_are_rounded_and_zeros_are_not(value: float) -> None:
    """svec divides by the root of 2: an irrational number, whatever is special about the entry."""
    statement = ConeStatement(
        np.zeros(1), sparse.csc_array((3, 1)), np.zeros(3), Cones(psd=(2,)), plain=False
    )
    M = block_matrix(statement, Enclosure.of(np.array([value, value, value])))
    assert (M.rad[0, 0], M.rad[1, 1]) == (0.0, 0.0)
    mid, rad = abs(Q(float(M.mid[1, 0]))), Q(float(M.rad[1, 0]))
    assert max(mid - rad, Q(0)) ** 2 <= Q(value) ** 2 / 2 <= (mid + rad) ** 2
    assert rad <= 4 * U * mid + Q(2) ** -1070
    assert not block_matrix(statement, Enclosure.of(np.array([value, 0.0, value]))).rad.any()


def test_gradients_of_either_sign_have_no_floor_over_an_infinite_side() -> None:
    """g in [-2, 0] over z >= 0, and in [0, 2] over z <= 0: one end of g is 0, the other decides."""
    above = BoxPlane(np.zeros(1), np.full(1, np.inf))
    below = BoxPlane(np.full(1, -np.inf), np.zeros(1))
    for domain, mid in ((above, -1.0), (below, 1.0)):
        for rad in (1.0, 0.5, 2.0):
            g = Enclosure(np.array([mid]), np.array([rad]))
            assert linear_floor(domain, g) == -math.inf


@pytest.mark.parametrize("w", [0.0, 0.5, 1.0, 3.0])
def test_curvature_pays_for_a_gradient_that_is_not_zero(w: float) -> None:
    """x^2 / 2 - 2 x without bounds: half of the curvature leaves f(w) - g(w)^2 at every w."""
    none = sparse.csc_array((0, 1))
    P = sparse.csc_array([[1.0]])
    statement = ConeStatement(np.array([-2.0]), none, np.zeros(0), Cones(), P)
    found = Q(lower_bound(statement, DualWitness(np.array([w]), np.zeros(0))).value)
    truth = Q(w) ** 2 / 2 - 2 * Q(w) - (Q(w) - 2) ** 2
    assert truth - 1000 * U <= found <= truth <= -2


def test_a_correction_of_one_gradient_moves_the_others() -> None:
    """(x + z)^2 / 2 - x - (1 - d) z over |z| <= 1 / d has the optimum -3/2, and g_z = 0 at w."""
    d = 2.0**-20
    P = sparse.csc_array(np.ones((2, 2)))
    A = sparse.csc_array(np.array([[0.0, 1.0], [0.0, -1.0]]))
    statement = ConeStatement(np.array([-1.0, -(1 - d)]), A, np.full(2, 1 / d), Cones(nonneg=2), P)
    for w in ((1 - d, 0.0), (1.0, 0.0), (0.5, 0.5), (1.0, -d), (-1 / d, 1 / d + 1)):
        found = lower_bound(statement, DualWitness(np.array(w), np.zeros(2))).value
        assert found <= -1.5


def test_points_at_all_their_lower_bounds_can_only_rise() -> None:
    """x + y = 1 from (0, 0) in the unit square: one direction has no room at all, and needs none."""
    near = feasible_near(BoxPlane(np.zeros(2), np.ones(2), np.ones(2), 1.0), np.array([0.0, 0.5]))
    assert near is not None
    assert np.isfinite(near.rad).all()
    assert near.rad.sum() >= 0.5
    assert near.rad[1] <= 0.5 * (1 + 1e-15)


@pytest.mark.parametrize("y", [0.5, 1.0, 2.0])
def test_every_multiplier_counts_in_the_right_hand_side(y: float) -> None:
    """min -x over x <= 1 is -1: multipliers 1 / 2, 1 and 2 prove -1, -1 and -2."""
    A = sparse.csc_array(np.array([[1.0], [1.0], [-1.0]]))
    statement = ConeStatement(np.array([-1.0]), A, np.array([1.0, 4.0, 0.0]), Cones(nonneg=3))
    found = lower_bound(statement, DualWitness(np.zeros(1), np.array([y, 0.0, max(y - 1, 0.0)])))
    truth = -max(Q(1), Q(y))
    assert truth - 100 * U <= Q(found.value) <= truth
    worse = lower_bound(statement, DualWitness(np.zeros(1), np.array([0.0, y, max(y - 1, 0.0)])))
    assert Q(worse.value) <= -1


@pytest.mark.parametrize(
    ("u", "v", "w", "inside"),
    [
        (0.5, 0.0, 0.0, False),
        (0.5, -1.0, 1.0, False),
        (0.0, 1.0, 1.0, True),
        (0.0, -1.0, 1.0, False),
        (0.0, 1.0, -1.0, False),
        (-1.0, 1.0, 1.0, True),
        (-1.0, -1.0, 0.99, False),
        (-1.0, -1.0, 1.01, True),
        (-1.0, 0.0, 0.36, False),
        (-1.0, 0.0, 0.37, True),
    ],
)
def test_the_dual_of_an_exponential_cone(u: float, v: float, w: float, inside: bool) -> None:
    """-u exp(v / u - 1) <= w for u < 0; v, w >= 0 for u = 0; nothing for u > 0."""
    statement = ConeStatement(np.zeros(1), sparse.csc_array((3, 1)), np.zeros(3), Cones(exp=1))
    assert in_dual_cone(statement, "exp", np.array([u, v, w])) is inside
