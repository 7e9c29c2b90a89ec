"""A kernel matrix is accepted when it is positive semidefinite up to rounding, and what is said of it is proven."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import sparse
from scipy.linalg import hadamard
from sklearn.metrics.pairwise import rbf_kernel

from klopt.arrays import FloatArray
from klopt.errors import InvalidProblem
from klopt.kernels.gram import Gram, binary_labels, proven_floor
from klopt.kernels.rbf import gaussians

EPS = float(np.finfo(float).eps)
seeds = st.integers(0, 2**32 - 1)


def rbf(n: int, features: int = 5, width: float = 10.0, seed: int = 0) -> FloatArray:
    X = np.random.default_rng(seed).normal(size=(n, features))
    distances = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    return np.exp(-distances / (2 * width**2))


def with_spectrum(values: FloatArray) -> FloatArray:
    """H diag(values) H / n, whose eigenvalues are exactly `values` when these have few bits; n is a power of two."""
    H = hadamard(len(values)).astype(float)
    return (H * values) @ H / len(values)


def sigmoid_kernel(n: int = 40) -> FloatArray:
    X = np.random.default_rng(3).normal(size=(n, 4))
    return np.tanh(X @ X.T - 1)


# --- positive by construction
# ---------------------------------------------------------------------------------------


def is_positive_definite(A: list[list[Fraction]]) -> bool:
    """By Gaussian elimination, exactly."""
    A = [row[:] for row in A]
    for k, pivot in enumerate(A):
        if pivot[k] <= 0:
            return False
        for row in A[k + 1 :]:
            factor = row[k] / pivot[k]
            row[k:] = [x - factor * y for x, y in zip(row[k:], pivot[k:], strict=True)]
    return True


@given(
    seeds,
    st.integers(2, 7),
    st.integers(1, 4),
    st.sampled_from([1e-9, 1e-4, 1.0, 30.0]),
    st.sampled_from([0.0, 1e6]),
)
def test_the_floor_of_a_gaussian_kernel_is_below_its_eigenvalues(
    seed: int, n: int, features: int, gamma: float, away: float
) -> None:
    X = np.random.default_rng(seed).normal(size=(n, features)) + away
    X[1] = X[0]  # singular, so that rounding may make it indefinite
    ((_, _), (K, floor)) = gaussians(X, [2 * gamma, gamma])
    assert np.array_equal(K, K.T)
    assert -1e-12 * (1 + gamma) < floor < 0
    shifted = [[Fraction(float(entry)) for entry in row] for row in K]
    for i in range(n):
        shifted[i][i] -= Fraction(floor)
    assert is_positive_definite(shifted)


@given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.floats(-17, -11))
def test_the_floor_by_the_distance_to_a_known_kernel_is_below_the_eigenvalues(
    seed: int, n: int, exponent: float
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    X[1] = X[0]
    known = Gram.rbf(X, 0.5)
    noise = 10.0**exponent * rng.normal(size=(n, n))
    K = known.matrix + noise + noise.T
    floor = Gram.near(K, known).floor
    shifted = [[Fraction(float(entry)) for entry in row] for row in K]
    for i in range(n):
        shifted[i][i] -= Fraction(floor) - Fraction(1, 2**200)
    assert is_positive_definite(shifted)


def test_far_from_a_known_kernel_a_factorisation_decides() -> None:
    known = Gram.rbf([[0.0], [1.0]], 1.0)
    assert Gram.near([[2.0, 1.0], [1.0, 2.0]], known).floor == 0.0
    with pytest.raises(InvalidProblem, match="not positive semidefinite"):
        Gram.near([[1.0, 2.0], [2.0, 1.0]], known)


@pytest.mark.parametrize("gamma", [None, 0.3])
def test_a_gaussian_kernel_of_points_is_the_one_of_scikit_learn(gamma: float | None) -> None:
    X = np.random.default_rng(0).normal(size=(600, 7)) + 5.0
    K = Gram.rbf(X, gamma)
    assert np.allclose(
        K.matrix, rbf_kernel(X, gamma=gamma or 1 / (7 * X.var())), rtol=1e-12, atol=1e-15
    )
    assert not K.matrix.flags.writeable
    assert K.floor >= -1e-9


@pytest.mark.parametrize("scale", [2.0**1020, 1e200, 1e-200])
def test_a_gaussian_kernel_does_not_depend_on_units_however_far_from_one(scale: float) -> None:
    X = np.random.default_rng(0).normal(size=(20, 3))
    assert np.allclose(Gram.rbf(scale * X).matrix, Gram.rbf(X).matrix, rtol=1e-12, atol=0)
    alike = np.eye(20) if scale > 1 else np.ones((20, 20))
    assert np.array_equal(Gram.rbf(scale * X, 1.0).matrix, alike)


def test_where_distances_are_lost_in_rounding_a_factorisation_decides() -> None:
    X = np.array([[0.0], [1e8], [1e8 + 1]])
    assert gaussians(X, [1.0])[0][1] == -np.inf
    assert Gram.rbf(X, 1.0).floor > -1e-9


@pytest.mark.parametrize(
    ("X", "gamma", "words"),
    [
        (np.zeros((0, 2)), None, "X is 0 x 2; expected points"),
        (np.zeros((2, 0)), None, "X is 2 x 0; expected points"),
        ([[np.nan]], None, r"X\[0, 0\] is nan"),
        ([[1.0], [2.0]], -1.0, "gamma is -1"),
    ],
)
def test_arrays_that_are_not_points_are_refused(X: object, gamma: float | None, words: str) -> None:
    with pytest.raises(InvalidProblem, match=words):
        Gram.rbf(X, gamma)


# --- accepted
# -------------------------------------------------------------------------------------------------------


@given(seeds, st.integers(1, 30), st.integers(0, 30), st.sampled_from([1e-10, 1.0, 1e10]))
def test_every_inner_product_matrix_is_accepted_unchanged(
    seed: int, n: int, features: int, scale: float
) -> None:
    # Small integers, so that the products are exact and K is positive semidefinite without any
    # rounding.
    B = np.random.default_rng(seed).integers(-5, 6, size=(features, n)).astype(float)
    K = Gram.of(scale * (B.T @ B))
    assert np.array_equal(K.matrix, scale * (B.T @ B))
    assert -100 * n * EPS * max(np.trace(K.matrix), np.finfo(float).tiny) <= K.floor <= 0
    assert K.scale > 0


@pytest.mark.parametrize("scale", [1e-10, 1.0, 1e10])
def test_an_rbf_matrix_that_rounding_made_indefinite_is_accepted_and_recorded(scale: float) -> None:
    K = scale * rbf(200, features=2)
    assert np.linalg.eigvalsh(K)[0] < 0
    gram = Gram.of(K)
    assert np.array_equal(gram.matrix, K)
    assert gram.repair.startswith("clipped rounding")
    assert -2 * 200 * EPS * np.trace(K) <= gram.floor < 0


def test_an_eigenvalue_of_minus_8e_14_at_norm_200_is_accepted_and_recorded() -> None:
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(200, 200)))[0]
    K = (Q * np.r_[-8e-14, np.linspace(0.1, 1.0, 198), 200.0]) @ Q.T
    gram = Gram.of((K + K.T) / 2)
    assert gram.repair.startswith("clipped")
    assert gram.floor <= -8e-14


def test_a_definite_matrix_needs_no_repair() -> None:
    assert Gram.of(rbf(60, features=20, width=2.0)).repair == ""


@pytest.mark.parametrize(
    ("K", "rank"),
    [
        (np.zeros((3, 3)), 0),
        (np.ones((70, 70)), 1),
        (np.array([[0.0]]), 0),
        (np.array([[7.0]]), 1),
        (np.array([[1.0, 1.0], [1.0, 1.0]]), 1),
        (np.eye(2), 2),
        (np.diag([1.0, 0.0, 2.0]), 2),
        (np.kron(np.eye(5), np.ones((4, 4))), 5),
    ],
)
@pytest.mark.parametrize("scale", [1e-10, 1.0, 1e10])
def test_zero_constant_tiny_and_rank_deficient_matrices_are_solved(
    K: FloatArray, rank: int, scale: float
) -> None:
    gram = Gram.of(scale * K)
    assert gram.factor().shape == (rank, len(K))
    assert np.linalg.norm(scale * K - gram.factor().T @ gram.factor()) <= gram.factor_error()
    assert gram.scale == (np.mean(np.diag(scale * K)) if K.any() else 1.0)


def test_low_rank_is_proven_sharper_than_by_a_shift() -> None:
    B = np.random.default_rng(0).normal(size=(5, 400))
    K = B.T @ B
    shifted = proven_floor(K, 400 * EPS * float(np.linalg.norm(K)))
    floor = Gram.of(K).floor
    assert shifted is not None
    assert shifted / 5 < floor < 0


def test_duplicate_points_among_many_different_ones_are_accepted() -> None:
    K = rbf(300, features=20, width=2.0)
    repeated = np.r_[0, 0:299]
    assert Gram.of(K[np.ix_(repeated, repeated)]).repair.startswith("clipped rounding")


def test_sparse_lists_integers_and_single_precision_give_the_same_gram() -> None:
    K = [[2, 1, 0], [1, 2, 0], [0, 0, 1]]
    for value in (
        np.array(K),
        np.array(K, dtype=np.float32),
        sparse.csr_array(np.array(K)),
        sparse.coo_matrix(K),
    ):
        assert np.array_equal(Gram.of(value).matrix, np.array(K, dtype=float))


# --- proven
# ---------------------------------------------------------------------------------------------------------


@given(
    st.integers(0, 6),
    st.lists(st.integers(0, 2**46), min_size=64, max_size=64),
    st.integers(0, 100),
)
def test_the_floor_is_below_the_exact_smallest_eigenvalue(
    power: int, large: list[int], negative: int
) -> None:
    # Whole numbers to 2^46 at order 64 or less keep every sum below 2^53: the float matrix has
    # exactly this spectrum.
    values = np.array([-negative, *large[1 : 2**power]], dtype=float)
    rounding = len(values) * EPS * float(np.linalg.norm(values))
    try:
        gram = Gram.of(with_spectrum(values))
    except InvalidProblem:
        assert negative > rounding
    else:
        assert negative <= 5 * rounding
        assert gram.floor <= -negative or gram.repair.startswith("clipped 1 eigenvalue")
        assert gram.floor >= -3 * len(values) * EPS * values.sum() - 5 * rounding


@given(st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=12), st.floats(0.0, 2.0))
def test_a_completed_cholesky_never_proves_too_much(diagonal: list[float], shift: float) -> None:
    floor = proven_floor(np.diag(diagonal), shift)
    if floor is None:
        assert min(diagonal) + shift <= 0
    else:
        assert floor <= min(diagonal)
        assert floor <= -shift


@given(seeds, st.integers(2, 40), st.integers(1, 40), st.sampled_from([1e-8, 1.0, 1e8]))
def test_the_factor_reproduces_the_matrix_within_its_stated_error(
    seed: int, n: int, features: int, scale: float
) -> None:
    B = scale * np.random.default_rng(seed).normal(size=(features, n))
    gram = Gram.of(B.T @ B)
    R = gram.factor()
    assert R.shape == (min(n, features), n)
    assert (
        np.linalg.norm(gram.matrix - R.T @ R, 2)
        <= gram.factor_error()
        <= 10 * n * EPS * np.trace(gram.matrix)
    )


def test_a_smooth_kernel_has_a_short_factor() -> None:
    gram = Gram.of(rbf(300, features=2))
    assert len(gram.factor()) < 40
    assert gram.factor_error() < 1e-9


def test_the_factor_is_computed_once() -> None:
    gram = Gram.of(rbf(50))
    assert gram.factor() is gram.factor()


# --- refused and repaired
# -------------------------------------------------------------------------------------------


def test_an_indefinite_matrix_is_refused_with_its_eigenvalues_and_the_three_repairs() -> None:
    K = sigmoid_kernel()
    values = np.linalg.eigvalsh(K)
    with pytest.raises(InvalidProblem, match="not positive semidefinite") as caught:
        Gram.of(K)
    text = str(caught.value)
    assert f"from {values[0]:.6g} to {values[-1]:.6g}" in text
    assert all(f"'{repair}'" in text for repair in ("clip", "flip", "shift"))


def test_the_three_repairs_change_only_what_they_say() -> None:
    K = sigmoid_kernel()
    values, vectors = np.linalg.eigh(K)
    expected = {
        "clip": (vectors * np.maximum(values, 0)) @ vectors.T,
        "flip": (vectors * np.abs(values)) @ vectors.T,
        "shift": K - values[0] * np.eye(len(K)),
    }
    records = {"clip": "clipped", "flip": "flipped", "shift": "shifted by"}
    for repair, nearest in expected.items():
        gram = Gram.of(K, repair=repair)
        assert np.abs(gram.matrix - nearest).max() < 1e-12
        assert np.array_equal(gram.matrix, gram.matrix.T)
        assert gram.repair.startswith(records[repair])
        assert f"{values[0]:.3g}" in gram.repair
        assert -1e-10 < gram.floor <= 0
    assert f"{(values < 0).sum()} eigenvalues" in Gram.of(K, repair="clip").repair


def test_a_repair_leaves_a_positive_semidefinite_matrix_alone() -> None:
    K = rbf(30, features=10, width=2.0)
    for repair in ("clip", "flip", "shift"):
        gram = Gram.of(K, repair=repair)
        assert np.array_equal(gram.matrix, K)
        assert gram.repair == ""


def test_slight_excess_over_rounding_is_clipped_and_counted() -> None:
    values = np.r_[0.0, np.linspace(1, 2, 63)]
    values[0] = -2 * 64 * EPS * np.linalg.norm(values)
    gram = Gram.of(with_spectrum(values))
    assert gram.repair.startswith("clipped 1 eigenvalue, smallest -")
    assert np.linalg.eigvalsh(gram.matrix)[0] > values[0] / 2


def test_what_is_far_beyond_rounding_is_never_clipped_silently() -> None:
    values = np.r_[-1e-9, np.linspace(1, 2, 63)]
    with pytest.raises(InvalidProblem, match=r"from -9\.9999[0-9]e-10|from -1e-09"):
        Gram.of(with_spectrum(values))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([[1.0, np.nan], [np.nan, 1.0]], r"K\[0, 1\] is nan"),
        ([[1.0, 0.0], [0.0, np.inf]], r"K\[1, 1\] is inf"),
        (np.eye(2) * 1j, "K has dtype complex128"),
        (np.eye(2, dtype=object), "K has dtype object"),
        ([["a", "b"], ["b", "a"]], "K has dtype <U1"),
        ([[1.0, 2.0], [3.0]], "K is ragged"),
        (np.ones((2, 3)), r"K has shape \(2, 3\); expected a square matrix"),
        (np.ones(4), r"K has shape \(4,\); expected a matrix"),
        (np.zeros((0, 0)), "K is 0 x 0"),
        ([[1.0, 0.5], [0.4, 1.0]], r"K is not symmetric: K\[0, 1\] = 0.5 but K\[1, 0\] = 0.4"),
        ([[-1.0]], "eigenvalues go from -1 to -1"),
        ([[0.0, 1e-12], [1e-12, 0.0]], "eigenvalues go from -1e-12 to 1e-12"),
        (np.eye(2) * 1e200, r"entries up to 1e\+200"),
        (np.eye(2) * 1e-200, "entries up to 1e-200"),
        (sparse.csr_array(np.array([[1.0, 0.0], [0.0, np.nan]])), r"K\[1, 1\] is nan"),
    ],
)
def test_what_cannot_be_a_kernel_matrix_is_refused_by_name(value: object, message: str) -> None:
    with pytest.raises(InvalidProblem, match=message):
        Gram.of(value)


def test_the_size_the_caller_expects_is_checked() -> None:
    with pytest.raises(InvalidProblem, match="K1 is 2 x 2; expected 3 x 3"):
        Gram.of(np.eye(2), name="K1", size=3)
    with pytest.raises(InvalidProblem, match="K is 2 x 2; expected 3 x 3"):
        Gram.of(Gram.of(np.eye(2)), size=3)


def test_an_unknown_repair_is_refused() -> None:
    with pytest.raises(InvalidProblem, match="expected one of clip, flip, shift"):
        Gram.of(np.eye(2), repair="mend")  # type: ignore[arg-type]


def test_a_matrix_larger_than_memory_is_refused_before_it_is_copied() -> None:
    huge = np.broadcast_to(1.0, (10**7, 10**7))
    with pytest.raises(
        InvalidProblem, match=r"K, 10000000 x 10000000, .* needs 1600000.0 GB of memory"
    ):
        Gram.of(huge)


# --- kept
# -----------------------------------------------------------------------------------------------------------


def test_a_gram_passes_through_untouched() -> None:
    gram = Gram.of(rbf(10))
    assert Gram.of(gram) is gram
    assert Gram.of(gram, size=10, repair="clip") is gram


def test_later_changes_to_the_callers_array_have_no_effect() -> None:
    K = np.eye(3)
    gram = Gram.of(K)
    K[0, 0] = 5.0
    assert gram.matrix[0, 0] == 1.0
    for kept in (gram.matrix, gram.factor(), Gram.of([[1, 2], [2, 1]], repair="flip").matrix):
        with pytest.raises(ValueError, match="read-only"):
            kept[0] = 1.0


def test_rounding_asymmetry_is_averaged_and_noted() -> None:
    K = rbf(20, features=10, width=2.0)
    K[3, 7] *= 1 + 2 * EPS
    gram = Gram.of(K)
    assert gram.repair == "averaged with its transpose"
    assert np.array_equal(gram.matrix, gram.matrix.T)


def test_a_gram_survives_pickling() -> None:
    gram = Gram.of(rbf(10))
    again = pickle.loads(pickle.dumps(gram))
    assert np.array_equal(again.matrix, gram.matrix)
    assert (again.floor, again.scale, again.repair) == (gram.floor, gram.scale, gram.repair)


# --- labels
# ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", [[1, -1, 1], [1.0, -1.0, 1.0], (1, -1, 1), np.array([1, -1, 1], dtype=np.int8)]
)
def test_labels_of_plus_and_minus_one_are_accepted_in_any_number_type(value: object) -> None:
    labels = binary_labels(value, 3)
    assert labels.dtype == np.float64
    assert labels.tolist() == [1.0, -1.0, 1.0]
    assert not labels.flags.writeable


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([0, 1, 1], r"y\[0\] is 0; labels must be the numbers -1 and \+1 \(2 \* y - 1"),
        ([True, False, True], r"y\[1\] is 0; labels must be"),
        (["a", "b", "a"], r"y has dtype <U1; .*labels must be the numbers -1 and \+1"),
        ([1, 2, -1], r"y\[1\] is 2; labels must be the numbers -1 and \+1$"),
        ([1, 1, 1], r"y has one class only: every label is \+1"),
        ([-1, -1, -1], "y has one class only: every label is -1"),
        ([1, -1], "y has 2 entries; expected 3"),
        ([[1, -1, 1]], r"y has shape \(1, 3\)"),
        ([1, np.nan, -1], r"y\[1\] is nan"),
        ([1, np.inf, -1], r"y\[1\] is inf"),
        (None, "y has dtype object"),
    ],
)
def test_other_labels_are_refused_with_what_to_do(value: object, message: str) -> None:
    with pytest.raises(InvalidProblem, match=message):
        binary_labels(value, 3)
