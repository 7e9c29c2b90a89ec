"""Whatever holds real numbers becomes one frozen float64 array; everything else is refused by name, index and value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from klopt.arrays import csc, matrix, positive, require_memory, scaled_to_one, symmetric, vector
from klopt.errors import InvalidProblem

EPS = float(np.finfo(float).eps)
DENSE = np.array([[1.0, 0.0, -2.0], [0.0, 3.0, 0.0]])
BORDERS: list[Callable[[str, Any], Any]] = [matrix, csc]
finite = st.floats(-1e100, 1e100)


def same_csc(got: sparse.csc_array, want: sparse.csc_array) -> bool:
    parts = ("data", "indices", "indptr")
    return got.shape == want.shape and all(
        np.array_equal(getattr(got, p), getattr(want, p)) for p in parts
    )


# --- faults 1 to 3: NaN, infinite entries
# -----------------------------------------------------------------------------


@given(
    arrays(np.float64, st.integers(1, 20), elements=finite),
    st.sampled_from([np.nan, np.inf, -np.inf]),
    st.data(),
)
def test_the_first_bad_entry_of_a_vector_is_named(
    values: Any, bad: float, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, values.size - 1))
    values[at:] = bad
    with pytest.raises(
        InvalidProblem, match=rf"^c\[{at}\] is {bad}; every entry must be a finite number$"
    ):
        vector("c", values)


@given(st.integers(0, 3), st.integers(0, 4), st.sampled_from([np.nan, np.inf, -np.inf]))
def test_the_bad_entry_of_a_matrix_is_named_dense_or_sparse(
    row: int, column: int, bad: float
) -> None:
    A = np.arange(20.0).reshape(4, 5)
    A[row, column] = bad
    for convert in (np.asarray, sparse.csr_array, sparse.csc_matrix, sparse.coo_array):
        for border in BORDERS:
            with pytest.raises(
                InvalidProblem, match=rf"^A\[{row}, {column}\] is {bad}; every entry"
            ):
                border("A", convert(A))


def test_infinite_bounds_pass_only_where_they_mean_something() -> None:
    assert vector("b", [1.0, np.inf, -np.inf], infinite=True).tolist() == [1.0, np.inf, -np.inf]
    with pytest.raises(InvalidProblem, match=r"b\[2\] is nan; every entry must be a number"):
        vector("b", [np.inf, 1.0, np.nan], infinite=True)


def test_finite_numbers_whose_sum_overflows_are_finite_numbers() -> None:
    assert vector("c", [1e308, 1e308, -1e308]).size == 3


@pytest.mark.parametrize(
    ("value", "where"),
    [
        (np.ma.masked_array(DENSE, DENSE < 0), r"A\[0, 2\]"),
        ([np.ma.masked_array(DENSE[0], DENSE[0] < 0), DENSE[1]], r"A\[0\]\[2\]"),
        (np.ma.masked, "A"),
    ],
)
def test_a_masked_entry_is_missing(value: object, where: str) -> None:
    for border in (*BORDERS, vector):
        with pytest.raises(
            InvalidProblem, match=f"^{where} is masked, that is missing; give every entry a number$"
        ):
            border("A", value)


def test_a_masked_constant_in_a_list_is_missing() -> None:
    with pytest.raises(InvalidProblem, match=r"^c\[1\] is masked"):
        vector("c", [1.0, np.ma.masked])


def test_a_masked_array_without_masked_entries_is_an_array() -> None:
    for border in BORDERS:
        assert np.array_equal(csc("A", border("A", np.ma.masked_array(DENSE))).toarray(), DENSE)


# --- faults 7 to 10: containers and types
# -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype", [np.int8, np.uint64, np.bool_, np.float16, np.float32, np.longdouble, ">f8"]
)
def test_every_real_type_becomes_float64_and_leaves_the_original_alone(dtype: Any) -> None:
    original = np.array([[0, 1], [1, 1]], dtype=dtype)
    before = original.copy()
    for got in (matrix("A", original), csc("A", original).toarray()):
        assert got.dtype == np.float64
        assert got.tolist() == [[0.0, 1.0], [1.0, 1.0]]
    assert original.dtype == before.dtype
    assert np.array_equal(original, before)


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.bool_, np.float32, np.longdouble])
def test_every_real_type_of_a_sparse_matrix_becomes_float64(dtype: Any) -> None:
    original = sparse.csr_array(np.array([[0, 1], [1, 1]], dtype=dtype))
    for got in (matrix("A", original), csc("A", original).toarray()):
        assert got.dtype == np.float64
        assert got.tolist() == [[0.0, 1.0], [1.0, 1.0]]
    assert original.dtype == dtype


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (np.array([[1 + 2j]]), "complex128"),
        (np.array([[1, None]], dtype=object), "object"),
        ([["1", "2"]], "<U1"),
        ([[b"1"]], r"\|S1"),
        (np.array([["2020-01-01"]], dtype="datetime64[D]"), "datetime64"),
    ],
)
def test_what_holds_no_real_numbers_is_refused(value: object, kind: str) -> None:
    for border in BORDERS:
        with pytest.raises(InvalidProblem, match=rf"^A has dtype {kind}.*; expected real numbers"):
            border("A", value)
    with pytest.raises(InvalidProblem, match=f"^c has dtype {kind}"):
        vector("c", np.asarray(value).ravel())


def test_a_complex_sparse_matrix_is_refused() -> None:
    for border in BORDERS:
        with pytest.raises(InvalidProblem, match=r"^A has dtype complex128"):
            border("A", sparse.csr_array(np.array([[1j, 0.0]])))


@pytest.mark.parametrize("value", [None, object(), {1: 2}, "abc"])
def test_what_is_no_array_at_all_is_refused(value: object) -> None:
    for border in (*BORDERS, vector):
        with pytest.raises(InvalidProblem, match=r"^A "):
            border("A", value)


def test_ragged_lists_are_refused() -> None:
    for border in (*BORDERS, vector):
        with pytest.raises(InvalidProblem, match=r"^A is ragged"):
            border("A", [[1.0, 2.0], [3.0]])


def test_lists_tuples_and_ranges_are_accepted() -> None:
    for value in ([1, 2, 3], (1, 2, 3), range(1, 4), [np.float32(1), 2, True + 2]):
        assert vector("c", value).tolist() == [1.0, 2.0, 3.0]
    assert matrix("A", ((1, 0, -2), (0, 3, 0))).tolist() == DENSE.tolist()


def test_pandas_objects_are_accepted() -> None:
    pandas = pytest.importorskip("pandas")
    assert vector("c", pandas.Series([1, 2], index=["a", "b"])).tolist() == [1.0, 2.0]
    assert matrix("A", pandas.DataFrame(DENSE)).tolist() == DENSE.tolist()
    with pytest.raises(InvalidProblem, match="dtype object"):
        vector("c", pandas.Series(["a", "b"]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: vector("c", [1, 2], 3), "^c has 2 entries; expected 3$"),
        (lambda: vector("c", [[1, 2]]), r"^c has shape \(1, 2\); expected a vector"),
        (lambda: vector("c", 1.0), r"^c has shape \(\); expected a vector"),
        (lambda: matrix("A", [1, 2]), r"^A has shape \(2,\); expected a matrix"),
        (lambda: matrix("A", np.ones((1, 1, 1))), r"^A has shape \(1, 1, 1\); expected a matrix"),
        (lambda: csc("A", sparse.coo_array(np.ones(3))), r"^A has shape \(3,\); expected a matrix"),
        (lambda: matrix("A", DENSE, (3, 2)), "^A is 2 x 3; expected 3 x 2; it looks transposed$"),
        (lambda: csc("A", DENSE, (3, 2)), "^A is 2 x 3; expected 3 x 2; it looks transposed$"),
        (
            lambda: csc("A", sparse.coo_array(DENSE), (3, 2)),
            "^A is 2 x 3; expected 3 x 2; it looks transposed$",
        ),
        (lambda: csc("A", DENSE, (None, 4)), "^A is 2 x 3; expected any x 4$"),
    ],
)
def test_a_wrong_shape_is_refused_with_both_shapes(
    call: Callable[[], object], message: str
) -> None:
    with pytest.raises(InvalidProblem, match=message):
        call()


# --- faults 11 to 15: sparse formats, views, later changes
# ------------------------------------------------------------


@given(
    arrays(
        np.float64,
        st.tuples(st.integers(0, 6), st.integers(0, 6)),
        elements=st.sampled_from([0.0, 0.0, 1.5, -2.0]),
    )
)
def test_all_formats_give_the_same_canonical_matrix(A: Any) -> None:
    want = csc("A", A)
    assert np.array_equal(want.toarray(), A)
    for convert in (
        sparse.csr_array,
        sparse.coo_array,
        sparse.csc_array,
        sparse.csc_matrix,
        sparse.lil_array,
    ):
        got = csc("A", convert(A))
        assert type(got) is sparse.csc_array
        assert same_csc(got, want)
        assert np.array_equal(matrix("A", convert(A)), A)


@given(st.data())
def test_duplicate_entries_are_summed_and_zero_sums_vanish(data: st.DataObject) -> None:
    entry = st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(-3, 3))
    entries = data.draw(st.lists(entry, max_size=30))
    dense = np.zeros((3, 4))
    for row, column, value in entries:
        dense[row, column] += value
    rows, columns, values = zip(*entries, strict=True) if entries else ((), (), ())
    messy = sparse.coo_array((np.array(values, dtype=float), (rows, columns)), shape=(3, 4))
    got = csc("A", messy)
    assert same_csc(got, csc("A", dense))
    assert got.nnz == np.count_nonzero(dense)
    assert messy.nnz == len(entries)


def test_unsorted_wide_indices_and_explicit_zeros_become_canonical() -> None:
    indices, indptr = np.array([2, 0, 1, 1], dtype=np.int64), np.array([0, 2, 4], dtype=np.int64)
    messy = sparse.csc_array((np.array([5.0, 0.0, 1.0, 2.0]), indices, indptr), shape=(3, 2))
    got = csc("A", messy)
    assert got.has_canonical_format
    assert got.indices.dtype == got.indptr.dtype == np.int32
    assert (got.indices.tolist(), got.indptr.tolist(), got.data.tolist()) == (
        [2, 1],
        [0, 1, 2],
        [5.0, 3.0],
    )
    assert messy.indices.tolist() == [2, 0, 1, 1]
    assert messy.data.tolist() == [5.0, 0.0, 1.0, 2.0]


def test_read_only_strided_reversed_and_fortran_views_are_accepted() -> None:
    base = np.arange(24.0).reshape(4, 6)
    locked = base.copy()
    locked.flags.writeable = False
    for view in (
        locked,
        base[::2, ::-1],
        base.T,
        np.asfortranarray(base),
        np.broadcast_to(2.0, (2, 2)),
    ):
        got = matrix("A", view)
        assert np.array_equal(got, view)
        assert got.flags.c_contiguous
        assert not np.shares_memory(got, view)
        assert np.array_equal(csc("A", view).toarray(), view)
    assert vector("c", base[:, 3]).tolist() == [3.0, 9.0, 15.0, 21.0]


def test_later_changes_by_the_caller_have_no_effect() -> None:
    c, A, S = np.ones(2), DENSE.copy(), sparse.csc_array(DENSE)
    kept = vector("c", c), matrix("A", A), csc("A", S), csc("A", A)
    c[:], A[:], S.data[:] = 9.0, 9.0, 9.0
    assert kept[0].tolist() == [1.0, 1.0]
    assert (
        kept[1].tolist()
        == kept[2].toarray().tolist()
        == kept[3].toarray().tolist()
        == DENSE.tolist()
    )


def test_what_is_returned_cannot_be_written_to() -> None:
    A = csc("A", DENSE)
    for part in (vector("c", [1.0]), matrix("A", DENSE), A.data, A.indices, A.indptr):
        with pytest.raises(ValueError, match="read-only"):
            part[0] = 0


# --- fault 16: symmetry
# -----------------------------------------------------------------------------------------------


@given(st.integers(0, 300), st.integers(0, 2**32 - 1))
def test_an_exactly_symmetric_matrix_is_returned_itself(n: int, seed: int) -> None:
    B = np.random.default_rng(seed).normal(size=(n, n))
    M = B + B.T
    assert symmetric("P", M) is M


@given(st.integers(2, 300), st.data())
def test_the_largest_asymmetry_is_named_wherever_it_is(n: int, data: st.DataObject) -> None:
    row = data.draw(st.integers(0, n - 2))
    column = data.draw(st.integers(row + 1, n - 1))
    M = np.eye(n)
    M[n - 1, 0] += 0.25  # a smaller one elsewhere
    M[column, row] += 0.5
    where = rf"P\[{row}, {column}\] = 0.0 but P\[{column}, {row}\] = 0\.[57]5?;"
    with pytest.raises(InvalidProblem, match=f"^P is not symmetric: {where}"):
        symmetric("P", M)


@given(st.integers(2, 300), st.integers(0, 2**32 - 1), st.sampled_from([1e-10, 1.0, 1e10]))
def test_rounding_asymmetry_is_averaged_out(n: int, seed: int, scale: float) -> None:
    B = np.random.default_rng(seed).normal(size=(n, n))
    M = scale * (B + B.T)
    nearly = M * (1 + 4 * EPS * np.random.default_rng(seed).uniform(-1, 1, size=(n, n)))
    got = symmetric("P", nearly)
    assert np.array_equal(got, got.T)
    assert np.array_equal(got, (nearly + nearly.T) / 2)
    assert got is nearly or not got.flags.writeable


def test_asymmetry_beyond_rounding_is_refused() -> None:
    M = np.eye(10)
    M[3, 7] = 1000 * EPS
    with pytest.raises(InvalidProblem, match=r"P\[3, 7\]"):
        symmetric("P", M)


# --- single numbers and memory
# ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", [0, -1, float("nan"), float("inf"), True, "1", None, 1j, [1.0], np.array(1.0)]
)
def test_what_is_no_positive_number_is_refused(value: object) -> None:
    with pytest.raises(InvalidProblem, match=r"^C is .*expected a positive number$"):
        positive("C", value)


def test_zero_and_infinity_pass_only_by_name() -> None:
    assert positive("C", 0, zero=True) == 0.0
    assert positive("C", float("inf"), infinite=True) == float("inf")
    assert positive("C", np.float32(0.5)) == 0.5
    assert positive("C", np.int64(2)) == 2.0
    with pytest.raises(InvalidProblem, match="expected a nonnegative number"):
        positive("C", -1, zero=True)


@pytest.mark.parametrize("digits", [400, 5000])  # Python refuses to print more than 4300
def test_a_whole_number_beyond_all_floats_is_refused(digits: int) -> None:
    with pytest.raises(
        InvalidProblem, match=r"^C is beyond the range of floats; expected a positive number$"
    ):
        positive("C", 10**digits, infinite=True)


@given(arrays(np.float64, st.integers(0, 5), elements=st.floats(-1, 1)), st.integers(-1000, 1000))
def test_scaling_by_a_power_of_two_loses_nothing(values: Any, power: int) -> None:
    far = np.ldexp(values, power)
    unit, exponent = scaled_to_one(far)
    assert np.array_equal(np.ldexp(unit, exponent), far)
    assert not far.any() or 0.5 <= np.abs(unit).max() < 1


def test_more_memory_than_is_free_is_refused_with_the_estimate() -> None:
    require_memory(1e3, "a small thing")
    require_memory(1.1e8, "a thing of 110 MB")
    with pytest.raises(
        InvalidProblem, match=r"^the form needs 1000000.0 GB of memory; [0-9.]+ GB are free"
    ):
        require_memory(1e15, "the form")


def test_what_a_function_remembers_does_not_keep_it_alive() -> None:
    """A local model often refers back to its function; both must go when the function does."""
    import gc
    import weakref

    from klopt.model.functions import LocalModel, SmoothFunction

    class Square:
        def __call__(self, x: np.ndarray) -> LocalModel:
            return LocalModel(float(x @ x), 2 * x, lambda: self.hessian(x))

        def hessian(self, x: np.ndarray) -> np.ndarray:
            return 2 * np.eye(x.size)

    f = SmoothFunction(2, Square())
    f.gradient(np.ones(2))
    seen = weakref.ref(f)
    del f
    gc.collect()
    assert seen() is None
