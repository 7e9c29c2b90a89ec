"""SCG-LDK: the closed forms without an inverse of K0, their proof, and what they do where the printed form breaks."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, strategies as st
from strategies import generators

import klopt
from klopt.errors import InvalidProblem
from klopt.kernels.gram import Gram
from klopt.kernels.graphs import supervised_targets
from klopt.kernels.nystroem import LowRank
from klopt.kernels.out_of_sample import ExtendedFeatures, ExtendedKernel
from klopt.kernels.side_information import side_graph
from klopt.model.problem import Point
from klopt.problems import ScgLogDet
from klopt.problems._scg.data import laplacian_of
from klopt.proof.certificate import Verdict

kinds = st.sampled_from(["labels", "pairs", "T"])
gammas = st.floats(-3, 2).map(lambda power: 10.0**power)


def side_of(kind, rng, n):
    labels = rng.integers(-1, 3, n)
    labels[0] = 0
    if kind == "labels":
        return labels
    if kind == "T":
        T = rng.uniform(-1, 1, (n, n))
        return (T + T.T) / 2
    i, j = np.triu_indices(n, 1)
    chosen = rng.permutation(i.size)[: max(2, n // 2)]
    pairs = list(zip(i[chosen].tolist(), j[chosen].tolist(), strict=True))
    return pairs[::2], pairs[1::2]


def draw(rng, kind, n=None, rank=None):
    """K0, side information and the dense S."""
    n = int(rng.integers(4, 14)) if n is None else n
    F = rng.normal(size=(n, rank or n)) / np.sqrt(n)
    side = side_of(kind, rng, n)
    return F @ F.T, side, side_graph(side, n).apply(np.eye(n))


def residual(K, K0, S, gamma):
    """The stationarity of (29) without an inverse of K0."""
    return np.linalg.norm(K + gamma * K @ S @ K0 - K0) / np.linalg.norm(K0)


def objective(K, K0, S, gamma):
    """(27) by its definition."""
    ratio = np.linalg.solve(K0, K)
    return np.trace(ratio) - np.linalg.slogdet(ratio)[1] - len(K) + gamma * np.sum(K * S)


# the solution


@given(rng=generators, kind=kinds, gamma=gammas)
def test_every_closed_form_is_stationary_and_proven(rng, kind, gamma):
    K0, side, S = draw(rng, kind, rank=int(rng.integers(2, 14)))
    problem = ScgLogDet(K0, side, gamma)
    for formulation in problem.formulations():
        if formulation.name.startswith("by"):
            result = klopt.solve(problem, formulation=formulation.name, tol=1e-9).require()
            assert residual(result.kernel, K0, S, gamma) <= 1e-12
            assert (result.kernel == result.kernel.T).all()
            assert np.linalg.eigvalsh(result.kernel)[0] >= -1e-13 * np.trace(K0)
            assert result.value == pytest.approx(
                np.linalg.slogdet(np.eye(len(K0)) + gamma * S @ K0)[1], abs=1e-9
            )


@given(rng=generators, kind=kinds, gamma=gammas)
def test_no_kernel_nearby_is_better(rng, kind, gamma):
    K0, side, S = draw(rng, kind)
    K0 = K0 + 0.1 * np.eye(len(K0))
    result = klopt.solve(ScgLogDet(K0, side, gamma)).require()
    value = objective(result.kernel, K0, S, gamma)
    assert value == pytest.approx(result.value, abs=1e-8)
    half = np.linalg.cholesky(result.kernel)
    for size in (1e-3, 1e-1):
        D = rng.normal(size=K0.shape)
        other = half @ (np.eye(len(K0)) + size * (D + D.T) / np.linalg.norm(D)) @ half.T
        assert objective(other, K0, S, gamma) > value


@given(rng=generators, kind=kinds)
def test_the_cone_program_agrees(rng, kind):
    K0, side, _ = draw(rng, kind, n=int(rng.integers(3, 7)))
    problem = ScgLogDet(K0, side, 1.5)
    truth = klopt.solve(
        problem, backend="clarabel", formulation="log det program", tol=1e-6
    ).require()
    best = klopt.solve(problem, tol=1e-9).require()
    form = truth.route.formulation
    objective_of_cone = form.build().value(truth.attempts[-1].answer.x) + form.shift
    assert objective_of_cone == pytest.approx(best.value, abs=1e-5)
    np.testing.assert_allclose(truth.kernel, best.kernel, atol=1e-3)


@given(rng=generators, kind=st.sampled_from(["labels", "pairs"]))
def test_few_columns_are_the_dense_laplacian(rng, kind):
    _, side, S = draw(rng, kind)
    parts = laplacian_of(side_graph(side, len(S)))
    U = parts.U.toarray()
    np.testing.assert_allclose(U.T @ U, np.eye(U.shape[1]), atol=1e-14)
    np.testing.assert_allclose(np.eye(len(S)) - U @ parts.R @ U.T, S, atol=1e-14)


def test_all_pairs_of_labels_are_the_labels():
    rng = np.random.default_rng(0)
    K0, labels, _ = draw(rng, "labels", n=10)
    labels = np.abs(labels)
    i, j = np.triu_indices(10, 1)
    same = labels[i] == labels[j]
    pairs = np.stack([i[same], j[same]], 1), np.stack([i[~same], j[~same]], 1)
    by_labels, by_pairs = (
        klopt.solve(ScgLogDet(K0, side, 3.0)).require() for side in (labels, pairs)
    )
    np.testing.assert_allclose(by_labels.kernel, by_pairs.kernel, atol=1e-13)


def test_the_loss_of_the_graph_is_twice_the_trace():
    # (10) of the paper prints tr(KS) for the sum over all pairs.
    rng = np.random.default_rng(1)
    _, side, S = draw(rng, "T", n=6)
    W = np.exp(side)
    phi = rng.normal(size=(6, 3)) / np.sqrt(W.sum(axis=0))[:, None]
    loss = sum(W[i, j] * np.sum((phi[i] - phi[j]) ** 2) for i in range(6) for j in range(6))
    features = phi * np.sqrt(W.sum(axis=0))[:, None]
    assert loss == pytest.approx(2 * np.sum((features @ features.T) * S))


# laws


@given(rng=generators, kind=kinds)
def test_the_loss_falls_as_gamma_grows(rng, kind):
    K0, side, S = draw(rng, kind)
    K0 = K0 + 0.01 * np.eye(len(K0))
    half = np.linalg.cholesky(K0)
    s = np.linalg.eigvalsh(half.T @ S @ half)
    losses = []
    for gamma in (0.01, 0.1, 1.0, 10.0, 100.0):
        losses.append(np.sum(klopt.solve(ScgLogDet(K0, side, gamma)).require().kernel * S))
        assert losses[-1] == pytest.approx(np.sum(s / (1 + gamma * s)), rel=1e-6, abs=1e-9)
    assert (np.diff(losses) < 0).all()


@given(rng=generators, kind=kinds)
def test_the_order_of_points_does_not_matter(rng, kind):
    K0, side, _ = draw(rng, kind)
    n = len(K0)
    order = rng.permutation(n)
    place = np.argsort(order)
    if kind == "labels":
        moved = side[order]
    elif kind == "T":
        moved = side[np.ix_(order, order)]
    else:
        moved = tuple([(int(place[i]), int(place[j])) for i, j in pairs] for pairs in side)
    K = klopt.solve(ScgLogDet(K0, side, 2.0)).require().kernel
    again = klopt.solve(ScgLogDet(K0[np.ix_(order, order)], moved, 2.0)).require().kernel
    np.testing.assert_allclose(again, K[np.ix_(order, order)], atol=1e-12)


@given(rng=generators, kind=kinds, power=st.integers(-6, 6))
def test_scaling_the_kernel_scales_gamma(rng, kind, power):
    K0, side, _ = draw(rng, kind)
    scale = 10.0**power
    one = klopt.solve(ScgLogDet(K0, side, 0.7)).require()
    other = klopt.solve(ScgLogDet(K0 * scale, side, 0.7 / scale)).require()
    np.testing.assert_allclose(other.kernel / scale, one.kernel, atol=1e-12)
    assert other.value == pytest.approx(one.value, abs=1e-9)


@pytest.mark.parametrize("kind", ["labels", "pairs", "T"])
def test_a_singular_kernel_is_the_limit_of_definite_ones(kind):
    K0, side, S = draw(np.random.default_rng(3), kind, n=12, rank=5)
    K = klopt.solve(ScgLogDet(K0, side, 2.0)).require().kernel
    assert np.linalg.matrix_rank(K, tol=1e-10) == 5
    off = []
    for e in (1e-3, 1e-6):
        shifted = K0 + e * np.eye(12)
        off.append(np.abs(np.linalg.inv(np.linalg.inv(shifted) + 2.0 * S) - K).max())
    assert off[0] < 3e-3
    assert off[1] < 3e-6


def test_the_printed_form_is_garbage_where_the_kernel_is_nearly_singular():
    rng = np.random.default_rng(4)
    Q = np.linalg.qr(rng.normal(size=(80, 80)))[0]
    K0 = (Q * np.geomspace(1, 2.5e-19, 80)) @ Q.T
    K0 = (K0 + K0.T) / 2
    labels = rng.integers(0, 3, 80)
    S = side_graph(labels, 80).apply(np.eye(80))
    result = klopt.solve(ScgLogDet(K0, labels, 1.0), tol=1e-8).require()
    printed = np.linalg.inv(np.linalg.inv(K0) + S)
    assert np.abs(printed - result.kernel).max() / np.abs(result.kernel).max() > 1e-3
    assert np.linalg.eigvalsh(printed)[0] < -1e-3
    assert residual(result.kernel, K0, S, 1.0) <= 1e-12
    assert np.linalg.eigvalsh(result.kernel)[0] >= -1e-14


def test_a_tiny_gamma_keeps_its_digits():
    K0, labels, S = draw(np.random.default_rng(5), "labels", n=20)
    K = klopt.solve(ScgLogDet(K0, labels, 1e-9)).require().kernel
    np.testing.assert_allclose(K, K0 - 1e-9 * K0 @ S @ K0, rtol=0, atol=1e-15)


# the bracket


@given(rng=generators, noise=st.sampled_from([1e-8, 1e-3, 1.0, 1e3]), kind=kinds)
def test_rough_points_bracket_the_optimum(rng, noise, kind):
    K0, side, S = draw(rng, kind)
    problem = ScgLogDet(K0, side, 1.0)
    optimum = np.linalg.slogdet(np.eye(len(K0)) + S @ K0)[1]
    for formulation in problem.formulations()[:2]:
        if not formulation.name.startswith("by"):
            continue
        point = formulation.recover(*formulation.build().rule())
        name = next(iter(point))
        rough = Point(
            {name: getattr(point, name) + noise * rng.normal(size=getattr(point, name).shape)}
        )
        bracket = problem.bracket(rough)
        assert bracket.lower <= optimum + 1e-10
        assert bracket.upper >= optimum - 1e-10
        if noise >= 1:
            assert bracket.gap > 1e-4
        repaired = problem.kernel(bracket.point)
        assert np.linalg.eigvalsh(repaired)[0] >= -1e-10 * max(1.0, np.abs(repaired).max())


def test_the_upper_bound_is_the_objective_of_the_point():
    rng = np.random.default_rng(6)
    K0, labels, S = draw(rng, "labels", n=9)
    K0 += 0.1 * np.eye(9)
    problem = ScgLogDet(K0, labels, 1.3)
    H = klopt.solve(problem).require().point.change
    for noise in (0.0, 0.05):
        D = rng.normal(size=H.shape)
        bracket = problem.bracket(Point({"change": H + noise * (D + D.T)}))
        K = problem.kernel(bracket.point)
        assert objective(K, K0, S, 1.3) == pytest.approx(bracket.upper, abs=1e-9)


def long_logdet(A):
    """log det by elimination in extended precision."""
    A, total = A.copy(), np.longdouble(0)
    for k in range(len(A)):
        pivot = k + int(np.argmax(np.abs(A[k:, k])))
        A[[k, pivot]] = A[[pivot, k]]
        total += np.log(np.abs(A[k, k]))
        A[k + 1 :] -= np.outer(A[k + 1 :, k] / A[k, k], A[k])
    return total


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="long double is double here")
@pytest.mark.parametrize("seed", range(12))
def test_the_optimum_in_extended_precision_lies_in_the_bracket(seed):
    rng = np.random.default_rng(seed)
    n, gamma = int(rng.integers(5, 50)), 10 ** rng.uniform(-4, 6)
    labels = rng.integers(-1, 4, n)
    labels[0] = 0
    W = np.exp(supervised_targets(labels).astype(np.longdouble))
    S = np.eye(n) - W / np.sqrt(np.outer(W.sum(axis=0), W.sum(axis=0)))
    F = rng.normal(size=(n, int(rng.integers(1, n + 1)))) * 10.0 ** rng.uniform(-5, 0, size=(n, 1))
    exact = F.astype(np.longdouble) @ F.T.astype(np.longdouble)
    for K0, long in ((F @ F.T, (F @ F.T).astype(np.longdouble)), (LowRank(F), exact)):
        optimum = long_logdet(np.eye(n) + np.longdouble(gamma) * (S @ long))
        problem = ScgLogDet(K0, labels, gamma)
        for tried in (problem, problem.path([gamma])[0]):
            for formulation in tried.formulations():
                if formulation.name.startswith("by"):
                    bracket = tried.bracket(formulation.recover(*formulation.build().rule()))
                    assert bracket.lower <= optimum <= bracket.upper
                    assert bracket.gap <= 1e-6 * (1 + bracket.upper)


def test_a_wide_spectrum_is_still_proven():
    rng = np.random.default_rng(7)
    K0, labels, _ = draw(rng, "labels", n=200)
    result = klopt.solve(ScgLogDet(1e4 * K0, labels, 10.0), tol=1e-7)
    assert result.verdict is Verdict.OPTIMAL


# low rank and many gammas


@given(rng=generators, kind=kinds)
def test_features_give_the_kernel_of_their_product(rng, kind):
    Phi = rng.normal(size=(12, 4))
    side = side_of(kind, rng, 12)
    low, full = (
        klopt.solve(ScgLogDet(K0, side, 0.8)).require() for K0 in (LowRank(Phi), Phi @ Phi.T)
    )
    np.testing.assert_allclose(low.kernel, full.kernel, atol=1e-11)
    assert low.value == pytest.approx(full.value, abs=1e-9)
    C = rng.normal(size=(12, 3))
    np.testing.assert_allclose(low.problem.apply(low.point, C), full.kernel @ C, atol=1e-10)


def test_a_thin_matrix_is_worked_on_by_its_features():
    rng = np.random.default_rng(8)
    Phi = rng.normal(size=(80, 3))
    result = klopt.solve(ScgLogDet(Phi @ Phi.T, rng.integers(0, 2, 80), 1.0)).require()
    assert result.route.formulation.name == "by features"
    assert result.point.core.shape == (3, 3)


def test_many_points_of_low_rank_need_no_square_matrix():
    n, r = 20_000, 20
    rng = np.random.default_rng(9)
    problem = ScgLogDet(LowRank(rng.normal(size=(n, r))), rng.integers(-1, 3, n), 1.0)
    tracemalloc.start()
    result = klopt.solve(problem).require()
    vector = problem.apply(result.point, np.ones(n))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert vector.shape == (n,)
    assert peak < 4 * 8 * n * r
    assert result.certificate.relative_gap < 1e-10
    assert type(result.lower) is type(result.upper) is float


@pytest.mark.parametrize("kind", ["labels", "pairs", "T"])
@pytest.mark.parametrize("rank", [3, 40])
def test_many_gammas_at_once_are_the_same_as_one_by_one(kind, rank):
    rng = np.random.default_rng(10)
    K0, side, _ = draw(rng, kind, n=40, rank=rank)
    path = ScgLogDet(K0, side, 1.0).path([0.01, 1.0, 30.0])
    results = [klopt.solve(problem, tol=1e-9).require() for problem in path]
    C = rng.normal(size=(40, 2))
    products = path.apply([result.point for result in results], C)
    for gamma, result, product in zip((0.01, 1.0, 30.0), results, products, strict=True):
        alone = klopt.solve(ScgLogDet(K0, side, gamma)).require()
        assert result.value == pytest.approx(alone.value, abs=1e-9)
        np.testing.assert_allclose(result.kernel, alone.kernel, atol=1e-12)
        np.testing.assert_allclose(product, alone.kernel @ C, atol=1e-11)
        np.testing.assert_allclose(
            alone.problem.apply(alone.point, C), alone.kernel @ C, atol=1e-11
        )
    with pytest.raises(InvalidProblem, match="1 points for 3 gammas"):
        path.apply([results[0].point], C)


# new points


@given(rng=generators, kind=kinds, gamma=gammas)
def test_new_points_extend_the_kernel(rng, kind, gamma):
    K_all, _, _ = draw(rng, kind, n=14)
    K0, side = K_all[:10, :10], side_of(kind, rng, 10)
    result = klopt.solve(ScgLogDet(K0, side, gamma)).require()
    learned = result.problem.extend(result.point)
    assert isinstance(learned, ExtendedKernel)
    np.testing.assert_allclose(learned.cross(K0), result.kernel, atol=1e-11)
    np.testing.assert_allclose(learned.among(K0, K0), result.kernel, atol=1e-11)
    cross = learned.cross(K_all[10:, :10])
    joint = np.block(
        [[result.kernel, cross.T], [cross, learned.among(K_all[10:, :10], K_all[10:, 10:])]]
    )
    assert np.linalg.eigvalsh(joint)[0] >= -1e-11 * np.trace(joint)


@given(rng=generators, kind=kinds)
def test_new_points_of_low_rank_extend_the_same_kernel(rng, kind):
    Phi = rng.normal(size=(14, 5))
    side = side_of(kind, rng, 10)
    low = klopt.solve(ScgLogDet(LowRank(Phi[:10]), side, 2.0)).require()
    full = klopt.solve(ScgLogDet(Phi[:10] @ Phi[:10].T, side, 2.0)).require()
    features, kernel = low.problem.extend(low.point), full.problem.extend(full.point)
    assert isinstance(features, ExtendedFeatures)
    cross0, new0 = Phi[10:] @ Phi[:10].T, Phi[10:] @ Phi[10:].T
    np.testing.assert_allclose(features.cross(Phi[10:], Phi[:10]), kernel.cross(cross0), atol=1e-10)
    np.testing.assert_allclose(features.among(Phi[10:]), kernel.among(cross0, new0), atol=1e-10)
    np.testing.assert_allclose(features.among(Phi[:10]), low.kernel, atol=1e-13)


# bad input


@pytest.mark.parametrize("gamma", [0.0, -1.0, np.nan, np.inf, "1", True])
def test_gamma_must_be_a_positive_number(gamma):
    with pytest.raises(InvalidProblem, match="gamma is"):
        ScgLogDet(np.eye(3), [0, 0, 1], gamma)


@pytest.mark.parametrize(
    ("K0", "side", "message"),
    [
        ([[1.0, 2.0], [0.0, 1.0]], [0, 1], "K0 is not symmetric"),
        ([[1.0, 2.0], [2.0, 1.0]], [0, 1], "K0 is not positive semidefinite"),
        ([[1.0, np.nan], [np.nan, 1.0]], [0, 1], "K0"),
        (np.ones((2, 3)), [0, 1], "K0"),
        (np.zeros((2, 2)), [0, 1], "no entry but 0"),
        (np.eye(3), [0, 1], "expected 3"),
        (np.eye(3), [-1, -1, -1], "none of the 3 points is labelled"),
        (np.eye(3), [0, 0.5, 1], r"labels\[1\] is 0.5"),
        (np.eye(3), ([(0, 0)], []), r"similar\[0\] is \(0, 0\)"),
        (np.eye(3), ([(0, 1)], [(1, 3)]), r"dissimilar\[0\] is \(1, 3\)"),
        (np.eye(3), ([(0, 1)], [(1, 0)]), "both similar and dissimilar"),
        (np.eye(3), ([], []), "empty"),
        (np.eye(3), np.eye(2), "T is 2 x 2"),
        (np.eye(2), [[0.0, 1.0], [0.0, 0.0]], "T is not symmetric"),
        (np.eye(2), [[0.0, 2.0], [2.0, 0.0]], "T"),
        (LowRank(np.ones((3, 1))), [0, 1], "expected 3"),
    ],
)
def test_bad_data_are_refused_with_a_reason(K0, side, message):
    with pytest.raises(InvalidProblem, match=message):
        ScgLogDet(K0, side, 1.0)


def test_a_graph_of_other_points_is_refused():
    with pytest.raises(InvalidProblem, match="side is about 4 points"):
        ScgLogDet(np.eye(3), side_graph([0, 0, 1, 1], 4), 1.0)


def test_products_refuse_columns_of_another_length():
    result = klopt.solve(ScgLogDet(np.eye(3), [0, 0, 1], 1.0)).require()
    with pytest.raises(InvalidProblem, match="C is 4 x 1"):
        result.problem.apply(result.point, np.ones(4))


def test_one_point_keeps_its_kernel():
    result = klopt.solve(ScgLogDet([[2.0]], [0], 5.0)).require()
    assert result.kernel == pytest.approx(np.array([[2.0]]))
    assert result.value == pytest.approx(0.0, abs=1e-12)


def test_a_checked_matrix_is_taken_as_it_is():
    K0 = Gram.of(np.eye(3))
    assert ScgLogDet(K0, [0, 0, 1], 1.0).K0 is K0
