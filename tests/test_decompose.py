"""Decomposition into clusters: what it solves, what its bounds prove, processes that die, clusters that are none."""

from __future__ import annotations

import platform
import resource
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from elsewhere import dying_once, gaussian
from hypothesis import example, given, strategies as st
from strategies import at_most, generators

import klopt
from klopt.engine.allocation import freed_memory_kept
from klopt.errors import InvalidProblem, InvalidSettings
from klopt.learners.decomposition import Decomposition, decompose, kmeans, off_blocks
from klopt.model.problem import Point
from klopt.problems import AdaptiveKernel, AdaptiveKernelRegression


def data(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    return rng.normal(size=(n, 2)) + 0.3 * y[:, None], y


@given(generators, st.sampled_from([1.0, 3.0]))
@example(np.random.default_rng(23499), 1.0)  # here h* - H is below -C^4 / (16 eta) sum K_ij^2
@at_most(15)
def test_bounds_hold_and_the_concatenation_solves_the_block_diagonal_problem(
    rng: np.random.Generator, C: float
) -> None:
    X, y = data(rng, 24)
    labels = kmeans(X, 3, seed=1)
    K, eta = gaussian(X, X), 0.5 * C * C
    found = decompose(
        AdaptiveKernel.on_points(gaussian, C, eta, bias=False), X, y, labels, tol=1e-8
    )
    blocks = np.where(labels[:, None] == labels, K, 0.0)
    apart = klopt.solve(AdaptiveKernel(blocks, y, C, eta, bias=False), tol=1e-8).require()
    assert found.lower <= apart.upper + 1e-9
    assert found.upper >= apart.lower - 1e-9
    whole = AdaptiveKernel(K, y, C, eta, bias=False)
    best = klopt.solve(whole, tol=1e-8).require()
    off = off_blocks(gaussian, X, labels)
    least, most = off.bounds(C, eta)
    slack = 1e-6 * (1 + abs(best.value))
    assert least - slack <= best.value - found.lower <= most + slack
    value = whole.bracket(found.point).lower
    assert -slack <= best.value - value <= -least + slack


def linear(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    return X @ Y.T


def test_clusters_share_the_eta_of_all_points_where_none_is_given() -> None:
    g, y = np.random.default_rng(8).normal(size=(2, 10)), np.tile([1.0, -1.0], 10)
    X = np.r_[
        np.c_[g[0], 0 * g[0]], np.c_[0 * g[1], 10 * g[1]]
    ]  # orthogonal clusters: the parts add up to the whole
    whole = AdaptiveKernel(linear(X, X), y, 1.0, bias=False)
    factory = AdaptiveKernel.on_points(linear, 1.0, bias=False)
    labels = np.repeat([0, 1], 10)
    found = decompose(factory, X, y, labels, tol=1e-9, whole=whole, polish=True, bounds=True)
    assert factory.fix(X, y).eta == pytest.approx(whole.eta, rel=1e-14)
    assert found.bounds == (0.0, 0.0)
    assert found.polished is not None
    assert found.polished.value == pytest.approx(found.lower, rel=1e-8)


@given(generators, st.sampled_from([0.0, 0.05]), st.booleans())
@at_most(10)
def test_a_regression_is_decomposed_as_a_classification_is(
    rng: np.random.Generator, tau: float, bias: bool
) -> None:
    X, _ = data(rng, 24)
    y, labels = np.sin(2 * X[:, 0]), kmeans(X, 3, seed=1)
    whole = AdaptiveKernelRegression(gaussian(X, X), y, 1.0, 0.1, tau=tau, bias=bias)
    best = klopt.solve(whole, tol=1e-8).require()
    factory = AdaptiveKernelRegression.on_points(gaussian, 1.0, 0.1, tau=tau, bias=bias)
    bounded = not (tau or bias)
    found = decompose(factory, X, y, labels, tol=1e-8, whole=whole, polish=True, bounds=bounded)
    assert found.certified
    for bracket in (found.whole, found.polished):
        assert bracket is not None
        assert max(bracket.lower, best.lower) <= min(bracket.upper, best.upper) + 1e-9
    if bounded:
        assert found.bounds == pytest.approx(off_blocks(gaussian, X, labels).bounds(1.0, whole.eta))
        assert found.bounds[0] - 1e-6 <= best.value - found.lower <= found.bounds[1] + 1e-6


def test_off_blocks_are_the_sums_over_pairs_of_different_clusters() -> None:
    X, _ = data(np.random.default_rng(0), 30)
    labels = np.arange(30) % 3
    K = np.where(labels[:, None] == labels, 0.0, gaussian(X, X))
    off = off_blocks(gaussian, X, labels)
    assert (off.absolute, off.squares) == pytest.approx((np.abs(K).sum(), np.sum(K * K)))


def test_completed_weights_are_one_between_clusters_and_positive_semidefinite() -> None:
    X, y = data(np.random.default_rng(1), 20)
    labels = np.arange(20) // 10
    found = decompose(AdaptiveKernel.on_points(gaussian, 2.0, 1.0, bias=False), X, y, labels)
    parts = [
        AdaptiveKernel(gaussian(X[p.points], X[p.points]), y[p.points], 2.0, 1.0, bias=False)
        for p in found.parts
    ]
    F = found.completed(
        problem.weights(Point({"alpha": part.primal["alpha"]}))
        for problem, part in zip(parts, found.parts, strict=True)
    )
    assert (F[:10, 10:] == 1).all()
    assert np.linalg.eigvalsh(F)[0] > -1e-10
    # Zeros between clusters, as printed, cost eta for each entry: K = I, two points alone.
    alone = decompose(
        AdaptiveKernel.on_points(lambda X, Y: np.eye(len(X)), 1.0, 1.0, bias=False),
        np.eye(2),
        [1, -1],
        [0, 1],
    )
    whole = klopt.solve(
        AdaptiveKernel(np.eye(2), [1, -1], 1.0, 1.0, bias=False), tol=1e-9
    ).require()
    assert alone.point.alpha == pytest.approx([0.847708, 0.847708], abs=1e-5)
    assert alone.lower == pytest.approx(whole.value, abs=1e-5) == pytest.approx(0.912257, abs=1e-5)


def test_polishing_gives_the_optimum_of_the_whole() -> None:
    X, y = data(np.random.default_rng(2), 60)
    whole = AdaptiveKernel(gaussian(X, X), y, 1.0, 2.0)
    found = decompose(
        AdaptiveKernel.on_points(gaussian, 1.0, 2.0), X, y, 4, tol=1e-8, whole=whole, polish=True
    )
    assert found.polished is not None
    assert found.whole is not None
    best = klopt.solve(whole, tol=1e-8).require()
    assert found.polished.value == pytest.approx(best.value, rel=1e-7)
    assert found.whole.lower <= best.upper
    assert found.whole.upper >= best.lower


def same(one: Decomposition, other: Decomposition) -> bool:
    return np.array_equal(one.point.alpha, other.point.alpha) and one.lower == other.lower


def test_one_class_and_empty_clusters_are_solved() -> None:
    X, y = data(np.random.default_rng(3), 12)
    groups = [np.arange(0, 12, 2), np.arange(1, 12, 2), np.zeros(0, dtype=int)]
    with_bias = decompose(AdaptiveKernel.on_points(gaussian, 1.0), X, y, groups)
    assert with_bias.certified
    assert (with_bias.lower, with_bias.upper) == (0.0, 0.0)  # y'alpha = 0 leaves nothing else
    without = decompose(AdaptiveKernel.on_points(gaussian, 1.0, bias=False), X, y, groups)
    assert without.certified
    assert (without.point.alpha > 0).any()


@pytest.mark.parametrize("tau", [0.0, 0.1])
def test_clusters_of_one_class_alone_leave_zero_and_a_bracket_of_the_whole(tau: float) -> None:
    y = np.repeat([1.0, -1.0], 10)
    X = np.random.default_rng(9).normal(size=(20, 2)) + 5 * y[:, None]
    whole = AdaptiveKernel(gaussian(X, X), y, 1.0, tau=tau)
    found = decompose(
        AdaptiveKernel.on_points(gaussian, 1.0, tau=tau), X, y, y, whole=whole, polish=True
    )
    assert (found.point.alpha == 0).all()
    assert found.whole is not None
    assert found.polished is not None
    assert found.whole.lower <= found.polished.value <= found.whole.upper
    eta, t = Fraction(whole.eta), Fraction(tau) / 2
    twice = 2 * eta * (100 - (10 - t) ** 2)  # h(0) of each
    assert Fraction(found.lower) <= twice <= Fraction(found.upper)
    assert found.lower == pytest.approx(found.upper, rel=1e-14)
    silent = decompose(
        lambda X, y: None, X, y, y, whole=whole, polish=True
    )  # does not say which arrays are zero
    assert silent.whole is None
    assert silent.polished is not None
    assert silent.polished.value == pytest.approx(found.polished.value, rel=1e-5)


def test_processes_give_the_same_answer() -> None:
    X, y = data(np.random.default_rng(4), 40)
    factory = AdaptiveKernel.on_points(gaussian, 1.0)
    assert same(decompose(factory, X, y, 4, jobs=2), decompose(factory, X, y, 4))


@pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="the memory of a process is read from /proc"
)
def test_freed_memory_stays_while_a_worker_solves_and_goes_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def resident() -> float:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20

    def grown() -> float:
        before = resident()
        array = np.ones(3_000_000)  # 23 MiB
        del array
        return resident() - before

    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "65536")
    with freed_memory_kept():
        grown()
        kept = resident()
        assert grown() < 1  # the same pages again
    if platform.libc_ver()[0] == "glibc":
        assert kept - resident() > 12


@pytest.mark.slow
def test_a_killed_process_costs_time_and_nothing_else(tmp_path: Path) -> None:
    X, y = data(np.random.default_rng(5), 40)
    there = decompose(partial(dying_once, tmp_path / "died"), X, y, 4, jobs=2)
    assert (tmp_path / "died").exists()
    assert same(there, decompose(partial(dying_once, tmp_path / "died"), X, y, 4))


@pytest.mark.slow
def test_a_lost_dask_worker_costs_time_and_nothing_else(tmp_path: Path) -> None:
    distributed = pytest.importorskip(
        "distributed", reason="dask is not installed; pip install 'klopt[dask]'"
    )
    X, y = data(np.random.default_rng(6), 40)
    options: dict[str, Any] = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "processes": True,
        "dashboard_address": None,
    }
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        there = decompose(partial(dying_once, tmp_path / "died"), X, y, 4, jobs=client)
    assert (tmp_path / "died").exists()
    assert same(there, decompose(partial(dying_once, tmp_path / "died"), X, y, 4))


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"clusters": [[0, 1], [1, 2, 3]]}, InvalidProblem, "point 1 is in 2 of them"),
        ({"clusters": [[0, 1], [3]]}, InvalidProblem, "point 2 is in 0 of them"),
        ({"clusters": [[0, 1, 2, 3], [4]]}, InvalidProblem, "has the point 4"),
        ({"clusters": [[0.5, 1], [2, 3]]}, InvalidProblem, "has the point 0.5; expected indices"),
        (
            {"clusters": [[True, False], [2, 3]]},
            InvalidProblem,
            "has the point True; expected indices",
        ),
        (
            {"clusters": [[np.nan, 1], [2, 3]]},
            InvalidProblem,
            "has the point nan; expected indices",
        ),
        ({"clusters": [0, 1, np.nan, 0]}, InvalidProblem, r"clusters\[2\] is nan"),
        ({"clusters": [0, 1]}, InvalidProblem, "a label for each of 4 points"),
        ({"clusters": 0}, InvalidProblem, "from 1 to 4"),
        ({"clusters": 5}, InvalidProblem, "from 1 to 4"),
        ({"jobs": 0}, InvalidSettings, "jobs is 0"),
        ({"polish": True}, InvalidSettings, "pass whole="),
        ({"y": [1.0, -1.0]}, InvalidProblem, "one each"),
        ({"retries": -1}, InvalidSettings, "retries is -1"),
        (
            {"bounds": True},
            InvalidSettings,
            "without bias and tau only; the factory has bias=True and tau=0",
        ),
        ({"y": [0.0, 2.0, 0.0, 2.0]}, InvalidProblem, r"y\[0\] is 0; labels must be"),
    ],
)
def test_bad_input_is_refused(options: dict[str, Any], error: type[Exception], text: str) -> None:
    X, y = data(np.random.default_rng(7), 4)
    with pytest.raises(error, match=text):
        decompose(
            AdaptiveKernel.on_points(gaussian, 1.0), **({"X": X, "y": y, "clusters": 2} | options)
        )


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: AdaptiveKernel.on_points("rbf", 1.0),
            "kernel is 'rbf'; expected a function of two sets of points",
        ),
        (lambda: AdaptiveKernel.on_points(gaussian, -1.0), "C is -1.0"),
        (lambda: AdaptiveKernel.on_points(gaussian, 1.0, eta=0.0), "eta is 0.0; .*leave it out"),
        (lambda: AdaptiveKernel.on_points(gaussian, 1.0, tau=-1.0), "tau is -1.0"),
        (lambda: AdaptiveKernelRegression.on_points(gaussian, 1.0, None), "epsilon is None"),
        (
            lambda: AdaptiveKernel.on_points(gaussian, 1.0)(np.eye(3), [3, 0, 0]),
            r"y\[0\] is 3; labels must be",
        ),
        (
            lambda: AdaptiveKernel.on_points(gaussian, 1.0)(np.eye(3), [1, -1]),
            "y has 2 entries; expected 3",
        ),
        (
            lambda: AdaptiveKernel.on_points(lambda P, Q: gaussian(P, Q) + P[:, :1], 1.0)(
                np.eye(3), [1, -1, 1]
            ),
            r"kernel\(X, X\) is not symmetric: kernel\(X, X\)\[0, ",
        ),
        (
            lambda: AdaptiveKernel.on_points(lambda P, Q: P[0], 1.0)(np.eye(3), [1, -1, 1]),
            "expected a matrix",
        ),
        (
            lambda: decompose(lambda X, y: None, np.eye(2), [1, -1], [0, 1], bounds=True),
            "does not tell; make it by",
        ),
    ],
)
def test_factories_that_cannot_work_are_refused(call: Any, text: str) -> None:
    with pytest.raises((InvalidProblem, InvalidSettings), match=text):
        call()


def test_a_kernel_that_is_asymmetric_by_rounding_is_taken_and_lists_are_labels() -> None:
    X, noise = np.random.default_rng(10).normal(size=(2, 3, 3))
    found = AdaptiveKernel.on_points(lambda P, Q: gaussian(P, Q) + 1e-10 * noise, 1.0)(
        X, [1, -1, 1]
    )
    assert found is not None
    np.testing.assert_allclose(found.K.matrix, gaussian(X, X), atol=1e-9)
