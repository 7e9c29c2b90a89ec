"""Certification keeps its limits: fill is estimated before a factorisation, and the deadline binds.

Two large programs are generated in the shape of public ones whose checks once took minutes and
gigabytes: POWELL20 (a quadratic program with a chain of differences) and dfl001 (a staircase of network
stages whose factors fill).
"""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy import sparse

import klopt
from klopt.model import fill
from klopt.model.backend import Settings, Stop
from klopt.model.cones import Cones
from klopt.model.fill import bandwidth, can_be_factored, cholesky_fits, elimination_cost, fits
from klopt.model.forms import ConeForm
from klopt.problems import LP, QCQP
from klopt.proof.enclosure import Enclosure
from klopt.proof.kernel_product import enclose_in_slices
from klopt.proof.linear_systems import shortest_correction
from klopt.proof.rational_psd import rational_psd
from klopt.proof.time_budget import budget
from klopt.solvers import highs
from klopt.witness.cone_repair import farkas_multipliers

SLACK_S = 15.0
"""What a busy machine may add to a limit."""


def powell20(n: int) -> QCQP:
    """Minimise ||x||^2 / 2 subject to x_{k+1} - x_k >= (-1)^k k - 1/2 and x_1 - x_n >= n - 1/2."""
    k = np.arange(1, n)
    chain = sparse.diags_array([-np.ones(n - 1), np.ones(n - 1)], offsets=[0, 1], shape=(n - 1, n))
    last = sparse.csr_array(([1.0, -1.0], ([0, 0], [0, n - 1])), shape=(1, n))
    A = sparse.vstack([chain, last])
    b = np.append((-1.0) ** k * k - 0.5, n - 0.5)
    return QCQP(sparse.eye_array(n, format="csc"), np.zeros(n), A_ub=-A, b_ub=-b)


def staircase(rows: int, columns: int, stages: int) -> tuple[LP, float]:
    """Return a linear program of stages with an optimum from complementary integers, and its value."""
    rng = np.random.default_rng(0)
    m, n = rows // stages, columns // stages
    places: list[tuple[int, int]] = []
    for stage in range(stages):
        for j in range(n):
            places += [(stage * m + i, stage * n + j) for i in rng.choice(m, 3, replace=False)]
            if stage + 1 < stages and j % 2 == 0:
                places.append(((stage + 1) * m + int(rng.integers(m)), stage * n + j))
    i, j = np.array(places).T
    A = sparse.csc_array((rng.choice([-1.0, 1.0], i.size), (i, j)), shape=(m * stages, n * stages))
    x = rng.integers(0, 4, A.shape[1]) * (rng.random(A.shape[1]) < 0.4)
    y = rng.integers(-5, 6, A.shape[0])
    c = A.T @ y + np.where(x > 0, 0, rng.integers(0, 5, A.shape[1]))
    return LP(c, A_eq=A, b_eq=A @ x.astype(float)), float(c @ x)


# What a factorisation will cost


def products_of_elimination(K: np.ndarray, order: list[int]) -> int:
    """Return sum d^2 over the nodes in an order, by elimination of a dense pattern."""
    pattern = (K != 0) | (K.T != 0)
    left = list(order)
    total = 0
    for node in order:
        left.remove(node)
        around = [j for j in left if pattern[node, j]]
        total += len(around) ** 2
        pattern[np.ix_(around, around)] = True
    return total


def test_cost_of_a_band_and_of_an_arrow() -> None:
    n = 50
    band = sparse.diags_array([np.ones(n - 1), np.ones(n), np.ones(n - 1)], offsets=[-1, 0, 1])
    assert elimination_cost(band) == n - 1
    assert elimination_cost(band) == products_of_elimination(band.toarray(), list(range(n)))
    arrow = np.eye(n)
    arrow[0] = arrow[:, 0] = 1.0
    assert elimination_cost(sparse.csr_array(arrow)) == n - 1


def test_cost_of_a_dense_matrix_is_that_of_any_order() -> None:
    full = np.ones((20, 20))
    expected = products_of_elimination(full, list(range(20)))
    assert elimination_cost(sparse.csr_array(full)) == expected


@pytest.mark.parametrize("seed", range(5))
def test_cost_is_no_larger_than_in_the_given_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    K = sparse.random_array((40, 40), density=0.05, rng=rng) + sparse.eye_array(40)
    found = elimination_cost(K)
    assert found <= products_of_elimination(K.toarray(), list(range(40)))
    # A count that ends early is never below what decides.
    assert elimination_cost(K, found / 2) > found / 2
    assert elimination_cost(K, 2 * found + 1) <= max(2 * found + 1, 40**3 / 3)


def test_no_time_no_factor() -> None:
    K = sparse.csr_array(np.ones((5, 5)))
    assert can_be_factored(K)
    assert fits(1e9)
    assert not can_be_factored(K, -1.0)
    assert not fits(1.0, -1.0)
    assert not can_be_factored(K, 1.0, passes=1e12)
    assert not cholesky_fits(100_000, 1.0)
    assert cholesky_fits(1000, 1.0)
    assert cholesky_fits(100_000)
    # Beyond any time limit.
    assert not fits(1e12)


def test_what_there_is_no_time_for_is_left_open() -> None:
    K, one = np.ones((3, 3)), np.ones(3)
    assert np.array_equal(enclose_in_slices(K, one).mid, 3 * one)
    assert rational_psd(K) is True
    with budget(time.perf_counter() - 1):
        assert np.isinf(enclose_in_slices(K, one).rad).all()
        assert rational_psd(K) is None
    # 190 entries above the diagonal, in a matrix of order 20, of one bit each.
    assert rational_psd(np.ones((20, 20)), max_work=190 * 20 - 1) is None
    assert rational_psd(np.ones((20, 20))) is True


def test_a_hessian_that_cannot_be_set_up_in_time_is_not_begun() -> None:
    n = 900
    P = np.ones((n, n))
    form = ConeForm(np.zeros(n), sparse.eye_array(n, format="csc"), np.ones(n), Cones(nonneg=n), P)
    answer = highs.BACKEND.run(form, Settings(time_limit=0.1))
    assert answer.stop is Stop.TIME_LIMIT
    assert "not begun" in answer.native


@pytest.mark.parametrize("beside", [0, 1, 3])
def test_a_band_is_found_in_any_order(beside: int) -> None:
    n = 400
    offsets = list(range(-beside, beside + 1))
    band = sparse.diags_array([np.ones(n - abs(k)) for k in offsets], offsets=offsets).tocsr()
    order = np.random.default_rng(0).permutation(n)
    found = bandwidth(band[order][:, order])
    assert beside <= found <= 2 * beside
    assert bandwidth(sparse.csr_array((3, 3))) == 0


def test_a_long_chain_is_factored_without_counting(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 200_000
    chain = sparse.diags_array([np.ones(n - 1), np.ones(n), np.ones(n - 1)], offsets=[-1, 0, 1])
    monkeypatch.setattr(fill, "elimination_cost", lambda *_: pytest.fail("entries are counted"))
    assert can_be_factored(chain.tocsr())


def test_a_count_ends_with_the_time() -> None:
    rng = np.random.default_rng(0)
    K = sparse.random_array((2000, 2000), density=0.003, rng=rng)
    # Nothing was counted: no more is said than of a dense matrix.
    assert elimination_cost(K, 1.0, -1.0) == 2000**3 / 3


def test_a_factor_that_fills_is_not_begun() -> None:
    rng = np.random.default_rng(0)
    m = 3000
    B = sparse.csr_array(sparse.random_array((m, 2 * m), density=4 / m, rng=rng))
    began = time.perf_counter()
    with budget(began + 0.5):
        assert shortest_correction(B, Enclosure.of(rng.normal(size=m))) == np.inf
    assert time.perf_counter() - began < SLACK_S


@pytest.mark.slow
def test_a_repair_of_multipliers_keeps_its_limit() -> None:
    """One sparse factorisation took 24 s under a limit of 1 s."""
    m = 4000
    rng = np.random.default_rng(0)
    A = sparse.random_array(
        (m, 2 * m),
        density=3 / m,
        rng=rng,
        format="csc",
        data_sampler=lambda size: rng.choice([-1.0, 1.0], size),
    )
    form = LP(np.ones(2 * m), A_eq=A, b_eq=A @ np.ones(2 * m)).form
    y = rng.normal(size=form.b.size)
    began = time.perf_counter()
    with budget(began + 1.0):
        farkas_multipliers(form, -np.sign(form.b @ y) * y)
    assert time.perf_counter() - began < 1.0 + SLACK_S


# Whole solves


@pytest.mark.slow
@pytest.mark.parametrize("backend", [None, "clarabel"])
def test_a_chain_of_ten_thousand_differences(backend: str | None) -> None:
    limit = 8.0
    began = time.perf_counter()
    result = klopt.solve(powell20(10_000), backend, time_limit=limit)
    assert time.perf_counter() - began < limit + SLACK_S
    # The optimum that Maros and Meszaros (1999) publish for POWELL20.
    assert result.lower <= 5.208958285e10
    assert result.upper >= 5.208958275e10


@pytest.mark.slow
@pytest.mark.parametrize("backend", [None, "clarabel"])
def test_a_staircase_whose_factors_fill(backend: str | None) -> None:
    limit = 8.0
    problem, value = staircase(6000, 12_000, 12)
    began = time.perf_counter()
    result = klopt.solve(problem, backend, time_limit=limit)
    assert time.perf_counter() - began < limit + SLACK_S
    assert result.lower <= value <= result.upper
