"""Support vector machines of the true Gaussian kernel: products and ends against balls of many bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flint import arb, ctx

import klopt
from klopt.errors import InvalidProblem, InvalidSettings
from klopt.kernels.gram import Gram
from klopt.learners import large
from klopt.learners.large import solve_rbf_margin
from klopt.numerics import margin_decomposition
from klopt.problems import SoftMargin
from klopt.problems._margin.proof import proof_from_values
from klopt.proof.enclosure import Enclosure
from klopt.proof.gaussian_product import GaussianPoints

BITS = 400


def exact_kernel(X: np.ndarray, gamma: float) -> list[list[arb]]:
    """Return the kernel of the points as stored, in balls."""
    rows = [[arb(float(x)) for x in row] for row in X]
    g = arb(float(gamma))

    def entry(a: list[arb], b: list[arb]) -> arb:
        return (-g * sum(((p - q) ** 2 for p, q in zip(a, b, strict=True)), arb(0))).exp()

    return [[entry(a, b) for b in rows] for a in rows]


def exact_product(K: list[list[arb]], z: np.ndarray) -> list[arb]:
    weights = [arb(float(each)) for each in z]
    return [sum((k * w for k, w in zip(row, weights, strict=True)), arb(0)) for row in K]


def hard_points(kind: str) -> tuple[np.ndarray, float]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(14, 3))
    gamma = 0.4
    if kind == "nearly coinciding":
        X[7:] = X[:7] * (1 + 2.0**-50)
    elif kind == "far from the origin":
        X += 1e7
    elif kind == "one far point":
        X[0] = 1e6
    elif kind == "narrow":
        gamma = 300.0
    elif kind == "wide":
        gamma = 1e-12
    elif kind == "huge units":
        X, gamma = X * 1e160, 0.4e-320 * 1e0
    elif kind == "tiny units":
        X, gamma = X * 1e-150, 0.4e300
    return X, gamma


KINDS = ["plain", "nearly coinciding", "far from the origin", "one far point", "narrow", "wide"]


@pytest.fixture(autouse=True)
def many_bits() -> Any:
    before = ctx.prec
    ctx.prec = BITS
    yield
    ctx.prec = before


@pytest.mark.parametrize("kind", [*KINDS, "huge units", "tiny units"])
@pytest.mark.parametrize("scale", [1.0, 1e12, 1e-300])
def test_products_enclose_those_of_the_stored_points(kind: str, scale: float) -> None:
    X, gamma = hard_points(kind)
    z = scale * np.random.default_rng(4).normal(size=len(X))
    found = GaussianPoints.of(X, gamma).enclose_product(z)
    exact = exact_product(exact_kernel(X, gamma), z)
    for mid, rad, truth in zip(found.mid, found.rad, exact, strict=True):
        assert abs(truth - arb(float(mid))) <= arb(float(rad))
    # Elsewhere gamma times the squares of the points, which the bound counts, is large.
    if kind in ("plain", "wide", "nearly coinciding"):
        assert found.rad.max() < 1e-12 * np.abs(z).sum()


def test_tiles_add_up_to_the_same_product(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several tiles and calls, and rows in another order."""
    monkeypatch.setattr("klopt.proof.gaussian_product.TILE_ROWS", 3)
    monkeypatch.setattr("klopt.proof.gaussian_product.TILE_COLUMNS", 4)
    monkeypatch.setattr("klopt.proof.gaussian_product.ROWS_PER_CALL", 5)
    X, gamma = hard_points("plain")
    z = np.random.default_rng(0).normal(size=len(X))
    found = GaussianPoints.of(X, gamma).enclose_product(z)
    exact = exact_product(exact_kernel(X, gamma), z)
    assert all(
        abs(t - arb(float(m))) <= arb(float(r))
        for t, m, r in zip(exact, found.mid, found.rad, strict=True)
    )
    order = np.array([5, 0, 13])
    few = GaussianPoints.of(X, gamma).product(np.arange(len(X)), z, order)
    assert few == pytest.approx(found.mid[order])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e9])
def test_ends_are_those_of_the_exact_values(kind: str, C: float) -> None:
    """The lower end is at most the value at alpha, the upper one at least that of any other point."""
    X, gamma = hard_points(kind)
    y = np.where(np.arange(len(X)) % 2, 1.0, -1.0)
    found = solve_rbf_margin(X, y, C, gamma=gamma)
    K = exact_kernel(X, gamma)
    assert arb(found.lower) <= exact_value(K, y, found.alpha, C)
    # Any feasible point has a value that is at most the optimum.
    other = klopt.solve(SoftMargin(Gram.rbf(X, gamma), y, C), tol=1e-9).point.alpha
    assert exact_value(K, y, other, C) <= arb(found.upper)
    assert found.lower <= found.upper


def exact_value(K: list[list[arb]], y: np.ndarray, alpha: np.ndarray, C: float) -> arb:
    """Return 1'a - a'Qa/2 of coefficients that must be exactly feasible."""
    z = y * alpha
    assert sum((arb(float(each)) for each in z), arb(0)) == 0
    assert alpha.min() >= 0
    assert alpha.max() <= C
    f = exact_product(K, z)
    square = sum((arb(float(each)) * v for each, v in zip(z, f, strict=True)), arb(0))
    return sum((arb(float(each)) for each in alpha), arb(0)) - square / 2


def test_the_optimum_is_that_of_the_stored_matrix() -> None:
    rng = np.random.default_rng(0)
    y = np.where(np.arange(400) % 2, 1.0, -1.0)
    X = rng.normal(size=(400, 4)) + 0.5 * y[:, None]
    found = solve_rbf_margin(X, y, 2.0, gamma=0.3, tol=1e-6)
    stored = klopt.solve(SoftMargin(Gram.rbf(X, 0.3), y, 2.0))
    assert found.relative_gap <= 1e-6
    assert found.lower <= stored.upper + 1e-9
    assert stored.lower - 1e-9 <= found.upper
    assert "for the Gaussian kernel of the 400 points as stored" in found.explain()


@pytest.fixture
def small_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples and working sets much smaller than the data, as for many points."""
    monkeypatch.setattr(margin_decomposition, "SAMPLE", 60)
    monkeypatch.setattr(margin_decomposition, "WORKING_SET", 90)
    monkeypatch.setattr("klopt.proof.gaussian_product.ROWS_PER_CALL", 100)


@pytest.mark.usefixtures("small_sets")
@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
def test_working_sets_reach_the_same_optimum(C: float) -> None:
    from sklearn.svm import SVC

    rng = np.random.default_rng(1)
    y = np.where(rng.random(500) < 0.3, 1.0, -1.0)
    X = rng.normal(size=(500, 3)) + 0.6 * y[:, None]
    seen: list[float] = []
    found = solve_rbf_margin(X, y, C, gamma=0.5, tol=1e-4, progress=lambda r: seen.append(r.value))
    assert found.relative_gap <= 1e-4
    # A round never loses.
    assert (np.diff(seen) >= -1e-9 * seen[-1]).all()
    model = SVC(C=C, gamma=0.5, tol=1e-6).fit(X, y)
    values = found.decision_function(X)
    assert values == pytest.approx(model.decision_function(X), abs=0.2)

    again = solve_rbf_margin(X, y, C, gamma=0.5, tol=1e-4, threads=2)
    assert np.array_equal(again.alpha, found.alpha)
    warm = solve_rbf_margin(X, y, C, gamma=0.5, tol=1e-4, start=found.alpha)
    assert len(warm.rounds) == 1
    assert warm.relative_gap <= 1e-4


@pytest.mark.usefixtures("small_sets")
def test_what_time_allows_is_proven() -> None:
    rng = np.random.default_rng(1)
    y = np.where(np.arange(500) % 2, 1.0, -1.0)
    X = rng.normal(size=(500, 3)) + 0.2 * y[:, None]
    found = solve_rbf_margin(X, y, 10.0, tol=1e-6, time_limit=1e-9)
    assert len(found.rounds) == 1
    assert found.relative_gap > 1e-6
    done = solve_rbf_margin(X, y, 10.0, tol=1e-6)
    assert found.lower <= done.upper
    assert done.lower <= found.upper


def test_infeasible_coefficients_prove_nothing_from_below() -> None:
    y = np.array([1.0, -1.0])
    f = Enclosure.of(np.array([1.0, 0.0]))
    assert proof_from_values(y, 1.0, np.array([1.0, 0.5]), f).lower == 0.0
    assert proof_from_values(y, 1.0, np.array([2.0, 2.0]), f).lower == 0.0


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"C": 1e30}, InvalidProblem, "expected at most 1e.18"),
        ({"C": -1.0}, InvalidProblem, "C is -1"),
        ({"y": [1, 1, 1]}, InvalidProblem, "one class only"),
        ({"start": [1.0]}, InvalidProblem, "expected 3 finite numbers"),
        ({"threads": 0}, InvalidSettings, "threads is 0"),
        ({"X": np.zeros((3, 0))}, InvalidProblem, "expected points with coordinates"),
        ({"X": [[1e200], [2e200], [0.0]], "gamma": 1.0}, InvalidProblem, "rescale the points"),
    ],
)
def test_bad_calls_say_what_is_wrong(change: dict[str, Any], error: Any, text: str) -> None:
    call: dict[str, Any] = {"X": [[0.0], [1.0], [2.0]], "y": [1, -1, 1], "gamma": 1.0} | change
    with pytest.raises(error, match=text):
        solve_rbf_margin(**call)


@pytest.mark.slow
def test_a_cluster_gives_the_same_answer() -> None:
    distributed = pytest.importorskip("distributed")
    y = np.where(np.arange(300) % 2, 1.0, -1.0)
    X = np.random.default_rng(0).normal(size=(300, 3)) + 0.5 * y[:, None]
    here = solve_rbf_margin(X, y)
    with distributed.Client(processes=False, n_workers=1, dashboard_address=None) as client:
        there = solve_rbf_margin(X, y, cluster=client)
    assert np.array_equal(here.alpha, there.alpha)
    assert (here.lower, here.upper) == (there.lower, there.upper)


def test_all_names_are_public() -> None:
    assert klopt.learners.large is large
