"""Kernels by name, by columns and in stacks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.base import clone
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from klopt.errors import InvalidProblem
from klopt.kernels.gram import Gram
from klopt.learners.kernels import as_kernel, blocks, flat, linear, poly, rbf, stack

X = np.random.default_rng(0).normal(size=(30, 4))


def test_kernels_have_the_values_of_their_formulas() -> None:
    np.testing.assert_allclose(linear()(X), X @ X.T)
    np.testing.assert_allclose(
        poly(3, gamma=0.5)(X), polynomial_kernel(X, degree=3, gamma=0.5, coef0=1.0)
    )
    np.testing.assert_allclose(rbf(0.5)(X), rbf_kernel(X, gamma=0.5), rtol=1e-12)
    assert as_kernel("laplacian")(X).shape == (30, 30)
    np.testing.assert_allclose(as_kernel(lambda A, B: A @ B.T)(X), X @ X.T)


def test_a_width_in_words_is_that_of_svc_on_the_training_points() -> None:
    width = 1 / (4 * X.var())
    assert rbf("scale").fix(X).gamma == pytest.approx(width)
    assert rbf("4 scale").fix(X).gamma == pytest.approx(4 * width)
    assert rbf("scale", columns=[0]).fix(X).gamma == pytest.approx(1 / X[:, 0].var())
    new = rbf("scale").fix(X)(X[:3] * 7, X)
    np.testing.assert_allclose(new, rbf_kernel(X[:3] * 7, X, gamma=width), rtol=1e-9)


def test_columns_by_number_slice_and_name() -> None:
    names = ["a", "b", "c", "d"]
    wanted = X[:, [1, 3]] @ X[:, [1, 3]].T
    for columns in ([1, 3], slice(1, None, 2), ["b", "d"], [-3, -1]):
        np.testing.assert_allclose(linear(columns).fix(X, names)(X), wanted)
    assert [rbf(0.1, columns=slice(0, 2)).name, linear(["a"]).name] == [
        "rbf(0.1)[0:2]",
        "linear[a]",
    ]


def test_a_radial_kernel_far_from_the_origin_stays_positive_semidefinite() -> None:
    far = X + 1e6
    assert "eigenvalue" not in Gram.of(rbf(1.0)(far)).repair
    np.testing.assert_allclose(rbf(1.0)(far[:2], far), rbf(1.0)(X[:2], X), atol=1e-8)


def test_a_radial_kernel_is_symmetric_to_the_last_bit_and_proven_without_a_factorisation() -> None:
    kernel = rbf("scale", columns=[0, 2]).fix(X)
    K = kernel.gram(X, "K")
    np.testing.assert_array_equal(K.matrix, K.matrix.T)
    np.testing.assert_array_equal(K.matrix, kernel(X))
    assert (K.repair, K.scale) == ("", 1.0)
    assert -1e-12 < K.floor <= np.linalg.eigvalsh(K.matrix)[0]


def test_a_stack_has_kernels_last_and_fixes_widths_on_the_training_points() -> None:
    given = [linear(), rbf(["scale", "2 scale"])]
    whole, new = stack(given, X), stack(given, X[:5], X)
    assert whole.shape == (30, 30, 3)
    np.testing.assert_allclose(new, whole[:5], atol=1e-14)
    assert stack(given, X, dtype=np.float32).dtype == np.float32
    assert [kernel.name for kernel in flat(given)] == ["linear", "rbf(scale)", "rbf(2 scale)"]


@given(count=st.integers(0, 1000), size=st.integers(0, 2**28))
def test_blocks_are_all_rows_in_order(count: int, size: int) -> None:
    rows = [row for block in blocks(count, size) for row in range(count)[block]]
    assert rows == list(range(count))


def test_a_kernel_is_copied_and_tuned_like_an_estimator() -> None:
    kernel = rbf(0.5, columns=[0])
    copy = clone(kernel)
    assert copy is not kernel
    assert copy.get_params() == kernel.get_params() == {"gamma": 0.5, "columns": [0]}
    assert copy.set_params(gamma=2.0).gamma == 2.0


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (rbf(-1.0), "gamma is -1.0; expected a positive number"),
        (rbf("auto"), "gamma is 'auto'"),
        (rbf("x scale"), "gamma is 'x scale'"),
        (linear([4]), "the data have 4 columns, from 0 to 3"),
        (linear(["z"]), "columns has 'z'; the data have no names"),
        (linear(slice(2, 2)), "picks none of the 4 columns"),
    ],
)
def test_invalid_widths_and_columns_are_refused(kernel: object, text: str) -> None:
    with pytest.raises(InvalidProblem, match=text):
        as_kernel(kernel).fix(X)


def test_what_is_no_kernel_is_refused() -> None:
    with pytest.raises(
        InvalidProblem, match=r"kernel is 3; expected a name, a function, or rbf\(\)"
    ):
        as_kernel(3)
