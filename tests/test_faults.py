"""Sixty faults and the behaviour owed, one row one test, through the public names.

That attempts of one solve with disjoint intervals prove nothing is in test_solve.py.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import subprocess
import sys
import textwrap
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from fractions import Fraction
from itertools import islice

import attrs
import bad_backends as bad
import numpy as np
import pytest
from processes import PATIENCE_S, work_after_interrupt
from recorded import made_run
from scipy import sparse

import klopt
from klopt import (
    ConeForm,
    Cones,
    Gram,
    InvalidProblem,
    InvalidSettings,
    NoRoute,
    Point,
    Settings,
    Stop,
    Verdict,
)
from klopt.bench.scores import agreement, fastest
from klopt.conformance.instances import FormProblem
from klopt.engine.registry import backend_named, problems as problem_classes
from klopt.kernels.nystroem import LowRank
from klopt.problems import (
    LP,
    QCQP,
    SDP,
    AdaptiveKernel,
    EpsilonMargin,
    MultipleKernel,
    NuMargin,
    SaddlePoint,
    SimplexProgram,
    SoftMargin,
)

READY = [backend.name for backend in klopt.backends() if not backend.missing]


def lp(**changes) -> LP:
    """Minimise -x - 2y over x + y <= 4, x + 3y <= 6, x, y >= 0; the optimum is -5 at (3, 1)."""
    return LP(
        **({"c": [-1.0, -2.0], "A_ub": [[1.0, 1.0], [1.0, 3.0]], "b_ub": [4.0, 6.0]} | changes)
    )


def rbf(n: int, width: float = 2.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """An ordinary kernel matrix of points in the plane, and labels with some noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    squares = np.square(X[:, None] - X).sum(axis=2)
    return np.exp(-squares / width), np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)


def svm(n: int = 20, C: float = 1.0) -> SoftMargin:
    K, y = rbf(n)
    return SoftMargin(K, y, C)


class Untouchable(bad.Bad):
    """A backend that must not be called."""

    name = "untouchable"

    def misbehave(self, form):
        raise AssertionError("called")


def raises_refusal(text: str):
    return pytest.raises(InvalidProblem, match=text)


# Numbers and containers


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda: lp(c=[np.nan, 1.0]), r"c\[0\] is nan"),
        (lambda: lp(A_ub=[[1.0, 1.0], [np.nan, 3.0]]), r"A_ub\[1, 0\] is nan"),
        (lambda: lp(A_ub=sparse.csc_array([[1.0, 1.0], [np.nan, 3.0]])), r"A_ub\[1, 0\] is nan"),
        (lambda: QCQP([[np.nan, 0.0], [0.0, 1.0]], [0.0, 0.0]), r"P\[0, 0\] is nan"),
        (lambda: SoftMargin([[1.0, 0.0], [0.0, np.nan]], [1, -1], 1.0), r"K\[1, 1\] is nan"),
        (lambda: SoftMargin(np.eye(2), [np.nan, -1], 1.0), r"y\[0\] is nan"),
    ],
)
def test_fault_01_nan_in_cost_matrix_gram_or_labels_is_refused(build, text) -> None:
    with raises_refusal(text):
        build()


def test_fault_02_nan_in_a_right_hand_side_is_refused() -> None:
    with raises_refusal(r"b_ub\[1\] is nan"):
        lp(b_ub=[4.0, np.nan])
    with raises_refusal(r"b\[0\] is nan"):
        ConeForm([1.0], [[1.0]], [np.nan], Cones(nonneg=1))


@pytest.mark.parametrize("infinity", [np.inf, -np.inf])
def test_fault_03_infinity_in_cost_matrix_or_gram_is_refused(infinity) -> None:
    with raises_refusal(r"c\[1\] is -?inf"):
        lp(c=[1.0, infinity])
    with raises_refusal(r"A_ub\[0, 1\] is -?inf"):
        lp(A_ub=[[1.0, infinity], [1.0, 3.0]])
    with raises_refusal(r"P\[1, 1\] is -?inf"):
        QCQP([[1.0, 0.0], [0.0, infinity]], [0.0, 0.0])
    with raises_refusal(r"K\[0, 1\] is -?inf"):
        SoftMargin([[1.0, infinity], [infinity, 1.0]], [1, -1], 1.0)


def test_fault_04_a_vacuous_inequality_is_dropped_with_multiplier_zero() -> None:
    result = klopt.solve(
        lp(A_ub=[[1.0, 1.0], [5.0, 7.0], [1.0, 3.0]], b_ub=[4.0, np.inf, 6.0])
    ).require()
    assert result.value == pytest.approx(-5.0)
    assert result.duals["ub"] == pytest.approx([0.5, 0.0, 0.5])
    assert "1 rows of A_ub are vacuous (b_ub is inf); their multipliers are 0" in result.explain()
    form = ConeForm([1.0], [[-1.0], [1.0]], [-3.0, np.inf], Cones(nonneg=2))
    result = klopt.solve(FormProblem(form)).require()
    assert result.duals["y"].tolist() == [1.0, 0.0]
    assert "1 trivial rows were left out; their multipliers are 0" in result.explain()


def test_fault_05_minus_infinity_is_a_contradiction_of_one_row_and_in_an_equality_refused() -> None:
    result = klopt.solve(lp(b_ub=[-np.inf, 6.0]), backend=Untouchable())
    assert result.verdict is Verdict.INFEASIBLE
    assert result.duals["ub"].tolist() == [1.0, 0.0]
    for infinity in (np.inf, -np.inf):
        with raises_refusal(r"b_eq\[0\] is -?inf"):
            lp(A_eq=[[1.0, 1.0]], b_eq=[infinity])


def test_fault_06_a_fake_infinity_is_refused_with_advice() -> None:
    with raises_refusal(r"b_ub\[0\] is 1e\+20; write inf for a bound that does not exist"):
        lp(b_ub=[1e20, 6.0])
    with raises_refusal(r"bounds\[0, 1\] is 1e\+30; write inf"):
        lp(bounds=(0, 1e30))


@pytest.mark.parametrize("dtype", [int, np.int8, np.uint16, np.float32, np.float16])
def test_fault_07_other_number_types_are_converted_once_and_left_alone(dtype) -> None:
    c, A, b = np.array([1, 2], dtype), np.array([[1, 1], [1, 3]], dtype), np.array([4, 6], dtype)
    problem = LP(c, -A.astype(float), -b.astype(float))
    assert problem.c.dtype == np.float64
    assert (c.dtype, A.dtype, b.dtype) == (dtype, dtype, dtype)
    assert klopt.solve(LP(c, A, b)).require().value == pytest.approx(0.0)
    flags = LP(np.array([True, False]), np.array([[True, True]]), np.array([True]), sense="max")
    assert klopt.solve(flags).require().value == pytest.approx(1.0)


@pytest.mark.parametrize(
    "wrong", [[1j, 1.0], [object(), 1.0], ["1", "2"], np.array(["a", "b"]), [None, 1.0]]
)
def test_fault_08_complex_objects_and_text_are_refused(wrong) -> None:
    with raises_refusal("c has dtype .*; expected real numbers"):
        lp(c=wrong)
    with raises_refusal(r"labels must be the numbers -1 and \+1"):
        SoftMargin(np.eye(2), wrong, 1.0)


def test_fault_09_lists_tuples_and_array_likes_are_accepted_ragged_lists_refused() -> None:
    class Frame:
        """What pandas offers: an `__array__`."""

        def __init__(self, values):
            self.values = np.array(values)

        def __array__(self, dtype=None, copy=None):
            return np.array(self.values, dtype=dtype)

    for kind in (list, tuple, Frame):
        problem = LP(kind([-1.0, -2.0]), kind([[1.0, 1.0], [1.0, 3.0]]), kind([4.0, 6.0]))
        assert klopt.solve(problem).require().value == pytest.approx(-5.0)
    with raises_refusal("A_ub is ragged"):
        lp(A_ub=[[1.0, 1.0], [1.0]])


def test_fault_09_pandas_objects_are_accepted() -> None:
    pandas = pytest.importorskip("pandas")
    problem = LP(
        pandas.Series([-1.0, -2.0]),
        pandas.DataFrame([[1.0, 1.0], [1.0, 3.0]]),
        pandas.Series([4.0, 6.0]),
    )
    assert klopt.solve(problem).require().value == pytest.approx(-5.0)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"c": [1.0, 2.0, 3.0]}, "A_ub is 2 x 2; expected 2 x 3"),
        ({"c": [[1.0, 2.0]]}, r"c has shape \(1, 2\); expected a vector"),
        ({"b_ub": [1.0]}, "2"),
        (
            {"c": [1.0, 2.0, 3.0], "A_ub": np.ones((3, 2)), "b_ub": [1.0, 1.0]},
            "expected 2 x 3; it looks transposed",
        ),
        ({"bounds": [(0, 1)] * 3}, "bounds must be one pair"),
    ],
)
def test_fault_10_wrong_lengths_and_transposed_matrices_are_refused(changes, text) -> None:
    with raises_refusal(text):
        lp(**changes)


def test_fault_11_every_container_of_a_matrix_gives_the_same_form_and_answer() -> None:
    A = np.array([[1.0, 1.0], [1.0, 3.0]])
    kinds = (
        np.asarray,
        sparse.csr_matrix,
        sparse.coo_matrix,
        sparse.csc_array,
        sparse.csc_matrix,
        sparse.csr_array,
    )
    problems = [lp(A_ub=kind(A)) for kind in kinds]
    for problem in problems:
        np.testing.assert_array_equal(problem.form.A.toarray(), problems[0].form.A.toarray())
        assert isinstance(problem.form.A, sparse.csc_array)
    points = [klopt.solve(problem).require().point.x for problem in problems]
    for point in points:
        np.testing.assert_array_equal(point, points[0])


def test_fault_12_unsorted_wide_and_zero_entries_are_canonicalised() -> None:
    messy = sparse.csc_array(
        (
            np.array([1.0, 0.0, 1.0, 3.0, 1.0]),
            np.array([1, 2, 0, 1, 0], np.int64),
            np.array([0, 3, 5], np.int64),
        ),
        shape=(3, 2),
    )
    problem = lp(A_ub=messy, b_ub=[4.0, 6.0, 1.0])
    form = problem.form
    assert form.A.has_canonical_format
    assert form.A.data.all()
    assert form.A.indices.dtype == np.int32
    assert klopt.solve(problem).require().value == pytest.approx(-5.0)
    assert messy.nnz == 5, "the caller's matrix is untouched"


def test_fault_13_duplicate_entries_are_summed_before_any_backend() -> None:
    twice = sparse.coo_array(
        ([0.25, 0.75, 1, 1, 1, 2], ([0, 0, 0, 1, 1, 1], [0, 0, 1, 0, 1, 1])), shape=(2, 2)
    )
    np.testing.assert_array_equal(lp(A_ub=twice).form.A.toarray(), lp().form.A.toarray())
    for backend in READY:
        if klopt.Feature.CONE in backend_named(backend).offers:
            assert klopt.solve(lp(A_ub=twice), backend=backend).require().value == pytest.approx(
                -5.0, abs=1e-5
            )


def test_fault_14_read_only_and_strided_views_are_accepted() -> None:
    A = np.array([[1.0, 9.0, 1.0, 9.0], [1.0, 9.0, 3.0, 9.0]])
    A.flags.writeable = False
    assert klopt.solve(lp(A_ub=A[:, ::2])).require().value == pytest.approx(-5.0)
    c = np.array([-2.0, -1.0])[::-1]
    assert klopt.solve(lp(c=c, A_ub=np.asfortranarray(A[:, ::2]))).require().value == pytest.approx(
        -5.0
    )
    locked = sparse.csc_array(A[:, ::2])
    locked.data.flags.writeable = False
    assert klopt.solve(lp(A_ub=locked)).require().value == pytest.approx(-5.0)


def test_fault_15_what_the_caller_changes_later_has_no_effect() -> None:
    c, A, b = np.array([-1.0, -2.0]), np.array([[1.0, 1.0], [1.0, 3.0]]), np.array([4.0, 6.0])
    S = sparse.csc_array(A)
    problems = [LP(c, A, b), LP(c, S, b)]
    K, y = rbf(10)
    machine = SoftMargin(K, y, 1.0)
    before = klopt.solve(machine).value
    c[:], A[:], b[:], S.data[:], K[:], y[:] = 7.0, 7.0, 7.0, 7.0, 7.0, 7.0
    for problem in problems:
        assert klopt.solve(problem).require().value == pytest.approx(-5.0)
    assert klopt.solve(machine).value == before
    with pytest.raises(ValueError, match="read-only"):
        machine.K.matrix[0, 0] = 7.0


def test_fault_16_an_unsymmetric_matrix_is_refused_rounding_is_symmetrised() -> None:
    with raises_refusal(
        r"P is not symmetric: P\[0, 1\] = 0.0 but P\[1, 0\] = 1.0; pass \(P \+ P.T\) / 2"
    ):
        QCQP([[2.0, 0.0], [1.0, 2.0]], [1.0, 1.0])
    rough = np.array([[2.0, 1.0], [1.0 + 2e-16, 2.0]])
    ball = (rough, [0.0, 0.0], 1.0)
    program = QCQP(rough, [1.0, 1.0], quadratics=[(np.eye(2), [0.0, 0.0], 2.0), ball])
    for P in (program.P.toarray(), program.quadratics[1].P.toarray()):
        np.testing.assert_array_equal(P, P.T)
    note = "averaged with its transpose, rounding apart: P, quadratics[1] P"
    assert program.repair == note
    assert note in klopt.solve(program).require().certificate.notes
    assert not QCQP([[2.0, 1.0], [1.0, 2.0]], [1.0, 1.0]).repair
    gram = SoftMargin(rough, [1, -1], 1.0).K
    np.testing.assert_array_equal(gram.matrix, gram.matrix.T)
    assert "averaged with its transpose" in gram.repair


def test_fault_17_no_variables_or_no_rows_are_solved_by_klopt_itself() -> None:
    empty = ConeForm([], np.zeros((0, 0)), [], Cones())
    rowless = ConeForm([1.0], np.zeros((0, 1)), [], Cones(), [[2.0]])
    endless = ConeForm([1.0], np.zeros((0, 1)), [], Cones())
    for form, verdict, value in (
        (empty, Verdict.OPTIMAL, 0.0),
        (rowless, Verdict.OPTIMAL, -0.25),
        (endless, Verdict.UNBOUNDED, -np.inf),
    ):
        result = klopt.solve(FormProblem(form), backend=Untouchable())
        assert (result.verdict, result.value) == (verdict, pytest.approx(value))
    assert klopt.solve(LP([])).require().value == 0.0
    assert klopt.solve(LP([1.0, 2.0], bounds=(1, None))).require().value == pytest.approx(3.0)


@pytest.mark.parametrize(
    "backend", [name for name in READY if klopt.Feature.CONE in backend_named(name).offers]
)
def test_fault_18_zero_rows_are_judged_and_never_reach_a_backend(backend) -> None:
    true = lp(A_ub=np.zeros((2, 2)), b_ub=[0.0, 1.0], bounds=(0, 1))
    assert klopt.solve(true, backend=backend).require().value == pytest.approx(-3.0, abs=1e-5)
    for amount in (1.0, 1e-300):
        false = lp(A_ub=np.zeros((2, 2)), b_ub=[0.0, -amount])
        assert klopt.solve(false, backend=backend).verdict is Verdict.INFEASIBLE


def test_fault_19_degenerate_cones_are_rewritten() -> None:
    form = ConeForm([1.0, 1.0], -np.eye(2), [-2.0, -3.0], Cones(soc=(0, 1), psd=(1, 0)))
    for backend in READY:
        if form.needs <= backend_named(backend).offers:
            assert klopt.solve(FormProblem(form), backend=backend).require().value == pytest.approx(
                5.0, abs=1e-5
            )
    assert klopt.solve(SDP([1.0], [[[2.0]], [[1.0]]])).require().value == pytest.approx(2.0)


def test_fault_20_cone_sizes_that_do_not_add_up_are_refused() -> None:
    with raises_refusal("the cones have 3 rows but A and b have 2"):
        ConeForm([1.0], [[1.0], [1.0]], [1.0, 1.0], Cones(nonneg=1, soc=(2,)))
    with raises_refusal("add up to 2 rows"):
        QCQP(None, [1.0], A_soc=[[1.0], [1.0]], b_soc=[1.0, 1.0], soc=(3,))
    with raises_refusal(r"cones.nonneg is -1; a number of rows cannot be negative"):
        Cones(nonneg=-1)


# Kernel data


def test_fault_21_a_gram_that_is_none_is_refused() -> None:
    with raises_refusal(r"K has shape \(2, 3\)|K is 2 x 3"):
        SoftMargin(np.ones((2, 3)), [1, -1], 1.0)
    with raises_refusal(r"K is not symmetric: K\[0, 1\] = 0.5 but K\[1, 0\] = 0.0"):
        SoftMargin([[1.0, 0.5], [0.0, 1.0]], [1, -1], 1.0)
    with raises_refusal("y has 3 entries; expected 2"):
        SoftMargin(np.eye(2), [1, -1, 1], 1.0)


def test_fault_22_an_eigenvalue_negative_by_rounding_is_accepted_and_recorded() -> None:
    K, y = rbf(200, width=50.0)
    assert -1e-12 < np.linalg.eigvalsh(K)[0] < 0
    problem = SoftMargin(K, y, 1.0)
    assert "clipped rounding" in problem.K.repair
    assert klopt.solve(problem).require().verdict is Verdict.OPTIMAL


def test_fault_23_an_indefinite_gram_is_refused_and_three_repairs_are_offered() -> None:
    X = np.random.default_rng(0).normal(size=(20, 2))
    K = np.tanh(X @ X.T - 1.0)
    smallest = np.linalg.eigvalsh(K)[0]
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    with raises_refusal(f"eigenvalues go from {smallest:.6g} .*repair='clip'.*'flip'.*'shift'"):
        SoftMargin(K, y, 1.0)
    for repair, word in (("clip", "clipped"), ("flip", "flipped"), ("shift", "shifted")):
        gram = Gram.of(K, repair=repair)
        assert word in gram.repair
        assert klopt.solve(SoftMargin(gram, y, 1.0)).require().verdict is Verdict.OPTIMAL


def test_fault_24_degenerate_grams_are_solved_and_agree_by_value() -> None:
    y = np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    for K in (np.ones((5, 5)), np.zeros((5, 5))):
        assert klopt.solve(SoftMargin(K, y, 3.0)).require().value == pytest.approx(2 * 3.0 * 2)
    K, labels = rbf(8)
    twice = np.arange(16) // 2
    doubled = klopt.solve(SoftMargin(K[np.ix_(twice, twice)], labels[twice], 1.0)).require()
    assert doubled.value == pytest.approx(
        klopt.solve(SoftMargin(K, labels, 2.0)).require().value, rel=1e-5
    )
    X = np.random.default_rng(0).normal(size=(12, 2))
    flat = SoftMargin(X @ X.T, np.where(X[:, 0] > 0, 1, -1), 1.0)
    values = [
        klopt.solve(flat, backend=name).require().value
        for name in ("highs", "clarabel", "active_set", "libsvm")
    ]
    assert np.ptp(values) <= 2e-6 * (1 + abs(values[0]))


@pytest.mark.parametrize("scale", [1e10, 1e-10])
def test_fault_25_the_units_of_a_gram_do_not_matter(scale) -> None:
    """a -> a / s solves (s K, C / s): the optimum is 1/s times that of (K, C)."""
    K, y = rbf(20)
    reference = klopt.solve(SoftMargin(K, y, 1.0), tol=1e-9).require().value
    for backend in (None, "highs", "clarabel", "active_set"):
        result = klopt.solve(SoftMargin(scale * K, y, 1.0 / scale), backend=backend).require()
        assert result.value * scale == pytest.approx(reference, rel=1e-5)
        assert result.lower <= result.value <= result.upper


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        ([0, 1, 1], r"y\[0\] is 0; labels must be the numbers -1 and \+1 \(2 \* y - 1"),
        (["a", "b", "a"], r"labels must be the numbers -1 and \+1"),
        ([1, 1, 1], r"y has one class only: every label is \+1; a margin needs both"),
        ([1, -1], "y has 2 entries; expected 3"),
        ([1, -1, 2], r"y\[2\] is 2"),
        ([1.0, -1.0, 0.5], r"y\[2\] is 0.5"),
    ],
)
def test_fault_26_only_labels_of_plus_and_minus_one_are_accepted(labels, text) -> None:
    with raises_refusal(text):
        SoftMargin(np.eye(3), labels, 1.0)
    for good in ([1, -1, 1], [1.0, -1.0, 1.0], np.array([1, -1, 1], np.int8)):
        assert SoftMargin(np.eye(3), good, 1.0).y.tolist() == [1.0, -1.0, 1.0]


@pytest.mark.parametrize("C", [0, -1.0, np.nan, -np.inf, "1", None, True])
def test_fault_27_a_penalty_that_is_none_is_refused_and_infinity_is_the_hard_margin(C) -> None:
    with raises_refusal("C is .*; expected a positive number"):
        SoftMargin(np.eye(2), [1, -1], C)
    with raises_refusal("C is .*; expected a positive number"):
        EpsilonMargin(np.eye(2), [1.0, -1.0], C, 0.1)
    hard = klopt.solve(SoftMargin(np.eye(2), [1, -1], np.inf)).require()
    assert hard.value == pytest.approx(1.0)


@pytest.fixture(scope="module")
def nearly_hard() -> klopt.Result:
    """The best that is known of it."""
    return klopt.solve(svm(30, C=1e8), time_limit=10.0)


@pytest.mark.parametrize(
    "backend", [name for name in READY if name not in ("cvxpy", "explicit", "mirror_prox")]
)
def test_fault_28_a_nearly_hard_margin_is_never_called_unbounded(backend, nearly_hard) -> None:
    problem = nearly_hard.problem
    if not any(route.backend.name == backend for route in klopt.plan(problem).routes):
        pytest.skip(f"{backend} takes no SVM")
    result = klopt.solve(problem, backend=backend, time_limit=1.0)
    assert result.verdict in (Verdict.OPTIMAL, Verdict.FEASIBLE, Verdict.UNPROVEN)
    slack = 1e-6 * (1 + abs(nearly_hard.upper))
    assert result.lower - slack <= nearly_hard.upper
    assert nearly_hard.lower - slack <= result.upper


def test_fault_29_a_hard_margin_on_inseparable_data_is_infeasible_with_multipliers_that_show_it() -> (
    None
):
    K, y = rbf(10)
    both = np.append(np.arange(10), 0)  # the first point again, with the other label
    problem = SoftMargin(K[np.ix_(both, both)], np.append(y, -y[0]), np.inf)
    result = klopt.solve(problem)
    assert result.verdict is Verdict.INFEASIBLE
    alpha = result.duals["alpha"]
    z = problem.y * alpha
    assert alpha.sum() > 0
    assert abs(problem.y @ alpha) <= 1e-6 * alpha.sum()
    assert np.abs(problem.K.matrix @ z).max() <= 1e-6 * alpha.sum()


@pytest.mark.parametrize(
    ("nu", "text"), [(0.61, r"at most 2 min / n = 0.6"), (0.0, "nu is 0"), (-0.1, "nu is -0.1")]
)
def test_fault_30_a_nu_out_of_range_is_refused_with_the_largest_feasible_one(nu, text) -> None:
    K, y = rbf(10)[0], np.repeat([1.0, -1.0], [3, 7])
    with raises_refusal(text):
        NuMargin(K, y, nu)
    assert klopt.solve(NuMargin(K, y, 0.6)).verdict is Verdict.OPTIMAL


def mkl() -> MultipleKernel:
    return MultipleKernel(
        [np.eye(4), np.diag([1.0, 2.0, 3.0, 4.0])], [1, -1, 1, -1], 1.0, norm="block-linf"
    )


@pytest.mark.parametrize("norm", ["block-l1", "block-linf"])
def test_fault_31_none_one_identical_and_zero_kernels(norm) -> None:
    y, K = [1, -1, 1, -1], np.diag([1.0, 2.0, 3.0, 4.0])
    with pytest.raises(InvalidProblem, match="kernels is empty; give one kernel at least"):
        MultipleKernel([], y, 1.0, norm=norm)
    single = klopt.solve(SoftMargin(K, y, 1.0), tol=1e-8).require().value
    one, with_zero = (
        klopt.solve(MultipleKernel(kernels, y, 1.0, norm=norm), tol=1e-8).require()
        for kernels in ([K], [K, 0 * K])
    )
    assert one.value == pytest.approx(single, rel=1e-7)
    assert with_zero.value == pytest.approx(single, rel=1e-7)
    assert with_zero.point.weights[1] == 0
    same = klopt.solve(MultipleKernel([K, K], y, 1.0, norm=norm), tol=1e-8).require().value
    alone = (
        klopt.solve(SoftMargin(K if norm == "block-l1" else 4 * K, y, 1.0), tol=1e-8)
        .require()
        .value
    )
    assert same == pytest.approx(alone, rel=1e-7)


def test_fault_32_one_point_and_two_points_are_solved() -> None:
    assert klopt.solve(SoftMargin(np.eye(2), [1, -1], 1.0)).require().value == pytest.approx(1.0)
    assert klopt.solve(EpsilonMargin([[1.0]], [3.0], 1.0, 0.1)).require().value == pytest.approx(
        0.0, abs=1e-6
    )
    assert klopt.solve(LP([1.0], bounds=(2, 3))).require().value == pytest.approx(2.0)
    assert klopt.solve(QCQP([[2.0]], [-2.0])).require().value == pytest.approx(-1.0)
    assert klopt.solve(SaddlePoint.game([[3.0]])).require().value == pytest.approx(3.0)
    for problem in (LP, QCQP, SDP, SimplexProgram, SaddlePoint, SoftMargin, EpsilonMargin):
        for size in (1, 2):
            klopt.solve(problem.sample(np.random.default_rng(size), size)).require()


def test_fault_33_too_large_a_problem_is_refused_with_the_estimate_before_anything_is_allocated() -> (
    None
):
    n = 10**6
    huge = np.broadcast_to(np.float64(1.0), (n, n))  # eight terabytes that take no memory
    with raises_refusal(r"K, 1000000 x 1000000, .* needs 16000.0 GB of memory; .* GB are free"):
        SoftMargin(huge, np.ones(n), 1.0)
    with raises_refusal(r"A_ub of shape \(1000000, 1000000\) needs 8000.0 GB of memory"):
        LP(np.ones(n), huge, np.ones(n))


def test_fault_34_a_start_off_the_simplex_is_projected_and_noted_nan_refused() -> None:
    program = SimplexProgram.of(klopt.Quadratic(np.eye(3), np.zeros(3)), klopt.Simplex(3))
    for backend in ("nesterov", "mirror_descent"):
        result = klopt.solve(
            program, backend=backend, start=Point({"x": [5.0, -1.0, 0.0]})
        ).require()
        assert result.value == pytest.approx(1 / 6, abs=1e-5)
        assert "the start was outside its set and was projected onto it" in result.explain()
        with pytest.raises(InvalidSettings, match=r"start\.x\[1\] is nan"):
            klopt.solve(program, backend=backend, start=Point({"x": [1.0, np.nan, 0.0]}))


# Mathematics


@pytest.mark.parametrize("backend", ["highs", "clarabel", "scs", "ecos"])
def test_fault_35_infeasibility_comes_with_a_verified_vector(backend) -> None:
    problem = LP([1.0, 1.0], [[1.0, 1.0], [-1.0, -1.0]], [1.0, -2.0])
    result = klopt.solve(problem, backend=backend)
    assert result.verdict is Verdict.INFEASIBLE
    y = result.duals
    assert (y["ub"] >= -1e-9).all()
    assert problem.b_ub @ y["ub"] < 0
    gradient = problem.A_ub.T @ y["ub"] - y["lower"] + y["upper"]
    assert np.abs(gradient).max() <= 1e-6 * y["ub"].max()
    with_no_proof = klopt.solve(problem, backend=bad.ClaimsWithoutVectors(Stop.INFEASIBLE))
    assert with_no_proof.verdict is Verdict.UNPROVEN


@pytest.mark.parametrize("backend", ["highs", "clarabel", "scs", "ecos"])
def test_fault_36_unboundedness_comes_with_a_ray_and_a_feasible_point(backend) -> None:
    problem = LP([-1.0, 0.0], [[0.0, 1.0]], [1.0])
    result = klopt.solve(problem, backend=backend, formulation="primal")
    assert result.verdict is Verdict.UNBOUNDED
    assert result.value == -np.inf
    answer, form = result.chosen.answer, problem.form
    assert form.c @ answer.ray < 0
    assert form.cones.distance(-form.A @ answer.ray) <= 1e-6 * np.abs(answer.ray).max()
    assert form.measure(answer.x).primal <= 1e-6


@pytest.mark.parametrize("backend", ["highs", "clarabel", "scs", "ecos"])
def test_fault_37_infeasible_and_dual_infeasible_at_once_is_proven_by_either(backend) -> None:
    problem = LP([-1.0, -1.0], [[1.0, -1.0], [-1.0, 1.0]], [-1.0, -1.0])
    result = klopt.solve(problem, backend=backend, formulation="primal")
    assert result.verdict is Verdict.INFEASIBLE
    if result.stop is Stop.UNBOUNDED:
        assert "dual infeasible as well" in result.explain()


@pytest.mark.parametrize("backend", [None, "clarabel", "scs"])
def test_fault_38_a_weakly_infeasible_sdp_is_unproven(backend) -> None:
    """[[x, 1], [1, 0]] is never positive semidefinite, but ever more nearly so as x grows."""
    problem = SDP([1.0], [[[0.0, -1.0], [-1.0, 0.0]], [[1.0, 0.0], [0.0, 0.0]]])
    result = klopt.solve(problem, backend=backend, time_limit=5.0)
    assert result.verdict is Verdict.UNPROVEN
    assert "times the data" in result.explain()


@pytest.mark.parametrize("backend", [None, "clarabel", "scs"])
def test_fault_39_a_duality_gap_is_unproven_with_a_note_on_the_magnitude(backend) -> None:
    F = [
        -np.diag([0.0, 0.0, 1.0]),
        np.array([[0.0, 1, 0], [1, 0, 0], [0, 0, 1]]),
        np.diag([0.0, 1.0, 0.0]),
    ]
    result = klopt.solve(SDP([1.0, 0.0], F), backend=backend, time_limit=5.0)
    assert result.verdict in (Verdict.UNPROVEN, Verdict.FEASIBLE)
    assert result.lower <= 1e-6
    assert result.upper >= -1e-6
    assert "times the data" in result.explain()


@pytest.mark.parametrize("backend", ["clarabel", "scs"])
def test_fault_40_an_infimum_that_is_not_attained_is_an_interval(backend) -> None:
    """Minimise x subject to [[x, 1], [1, y]] positive semidefinite: 1/y, for y without end."""
    problem = SDP(
        [1.0, 0.0], [[[0.0, -1.0], [-1.0, 0.0]], np.diag([1.0, 0.0]), np.diag([0.0, 1.0])]
    )
    result = klopt.solve(problem, backend=backend, formulation="LMI", time_limit=5.0)
    assert result.verdict is not Verdict.UNBOUNDED
    assert result.lower <= 1e-6
    assert -1e-6 <= result.upper < 1e-2
    if result.certificate.residuals.magnitude > 1e6:
        assert "not attained" in result.explain()


def test_fault_41_many_optima_have_one_value() -> None:
    problem = LP([1.0, 1.0], [[-1.0, -1.0]], [-1.0])
    results = [
        klopt.solve(problem, backend=name).require()
        for name in READY
        if name in ("highs", "clarabel", "scs", "ecos")
    ]
    assert [result.value for result in results] == pytest.approx([1.0] * len(results), abs=2e-6)
    degenerate = LP([-1.0, -1.0], [[1, 0], [0, 1], [1, 1], [1, 1]], [1.0, 1.0, 2.0, 2.0])
    assert klopt.solve(degenerate).require().value == pytest.approx(-2.0)


@pytest.mark.parametrize("backend", ["highs", "clarabel", "scs", "ecos", "cvxpy"])
def test_fault_42_coefficients_spread_over_1e18_are_not_called_unbounded(backend) -> None:
    result = klopt.solve(LP([-1.0, -1.0], [[1e-9, 1e9]], [2.0]), backend=backend, time_limit=5.0)
    assert result.verdict in (Verdict.OPTIMAL, Verdict.FEASIBLE, Verdict.UNPROVEN)
    if result.verdict is Verdict.OPTIMAL:
        assert result.value == pytest.approx(-2e9, rel=1e-6)


def test_fault_43_redundant_equalities_change_multipliers_but_not_their_sum() -> None:
    once = klopt.solve(LP([1.0, 2.0], None, None, [[1.0, 1.0]], [1.0])).require()
    for name in ("highs", "clarabel", "scs"):
        thrice = LP([1.0, 2.0], None, None, [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]], [1.0, 1.0, 1.0])
        result = klopt.solve(thrice, backend=name).require()
        assert result.value == pytest.approx(once.value, abs=1e-5)
        assert result.duals["eq"].sum() == pytest.approx(once.duals["eq"].sum(), abs=1e-4)


@pytest.mark.parametrize("backend", [None, "highs", "clarabel", "scs", "ecos"])
def test_fault_44_contradictory_equalities_are_infeasible_and_the_vector_names_the_two_rows(
    backend,
) -> None:
    A = [[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 1.0, 0.0]]
    problem = LP([1.0, 2.0, 3.0], None, None, A, [1.0, 1.0, 2.0], bounds=(None, None))
    result = klopt.solve(problem, backend=backend)
    assert result.verdict is Verdict.INFEASIBLE
    y = result.duals["eq"]
    assert set(np.flatnonzero(np.abs(y) > 1e-3 * np.abs(y).max())) == {0, 2}
    assert y[0] == pytest.approx(-y[2], rel=1e-3)


def test_fault_44_equalities_that_contradict_each_other_by_rounding_are_estimated() -> None:
    problem = LP([1.0], A_eq=[[1.0], [3.0]], b_eq=[0.1, 0.3])
    assert 3 * Fraction(0.1) != Fraction(0.3)
    result = klopt.solve(problem)
    assert result.verdict is Verdict.ESTIMATED
    assert "units in the last place" in result.certificate.data_change
    assert klopt.solve(problem, exact=True).verdict is Verdict.INFEASIBLE


# Settings


def test_fault_45_two_backends_that_disagree_are_an_error_and_never_averaged() -> None:
    """The intervals of two records that cannot both be true; `test_compare` lets two backends make such records."""
    one = made_run(backend="one", lower=1.0, upper=1.0)
    two = made_run(backend="two", lower=2.0, upper=2.0)
    (found,) = agreement([one, two]).values()
    assert not found.holds
    assert "one" in str(found)
    assert "two" in str(found)
    assert not fastest([one, two])


@pytest.mark.parametrize("tol", [0.0, -1e-6, np.nan, 1e-30, 1e300, np.inf, "1e-6", None, True])
def test_fault_46_a_tolerance_out_of_range_is_refused(tol) -> None:
    with pytest.raises(InvalidSettings, match=r"tol is .*; expected a number in \[1e-13, 0.1\]"):
        klopt.solve(lp(), tol=tol)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        *(("max_iter", value) for value in (0, -1, 1.5, "10", True, np.nan)),
        *(("time_limit", value) for value in (0, -1.0, np.nan, "1", True)),
        *(("threads", value) for value in (0, -1, 1.5, "2")),
        *(("seed", value) for value in (-1, 0.5, "a")),
    ],
)
def test_fault_47_limits_that_are_none_are_refused(setting, value) -> None:
    with pytest.raises(InvalidSettings, match=f"{setting} is .*; expected a"):
        klopt.solve(lp(), **{setting: value})
    with pytest.raises(InvalidSettings, match=f"{setting} is "):
        Settings(**{setting: value})


@pytest.mark.parametrize(
    ("backend", "raw", "text"),
    [
        ("highs", {"presolv": "on"}, r"highs has no option 'presolv'; did you mean .*'presolve'"),
        (
            "highs",
            {"time_limit": 1.0},
            "raw option 'time_limit' of highs is klopt's own 'time_limit'",
        ),
        ("scs", {"max_iter": 5}, r"scs has no option 'max_iter'|is klopt's own 'max_iter'"),
        ("scs", {"eps_abs": 1e-3}, "raw option 'eps_abs' of scs is klopt's own 'tol'"),
        (
            "clarabel",
            {"max_iters": 5},
            r"clarabel has no option 'max_iters'; did you mean .*'max_iter'",
        ),
        ("clarabel", {"verbose": True}, "is klopt's own 'log'"),
        ("ecos", {"abstoll": 1.0}, r"ecos has no option 'abstoll'; did you mean .*'abstol"),
        ("cvxpy:SCS", {"eps": 1.0}, r"cvxpy:SCS has no option 'eps'"),
    ],
)
def test_fault_48_an_unknown_or_clashing_native_option_is_refused(backend, raw, text) -> None:
    with pytest.raises(InvalidSettings, match=text):
        klopt.solve(lp(), backend=backend, raw=raw)


def test_fault_49_the_callers_options_are_neither_modified_nor_remembered() -> None:
    plain = klopt.solve(lp(), backend="scs")
    raw = {"acceleration_lookback": 0, "normalize": False}
    kept = dict(raw)
    other = klopt.solve(lp(), backend="scs", raw=raw)
    assert raw == kept
    assert other.iterations != plain.iterations, "the options were used"
    again = klopt.solve(lp(), backend="scs")
    assert again.iterations == plain.iterations
    np.testing.assert_array_equal(again.point.x, plain.point.x)
    assert dict(again.settings.raw) == {}


@pytest.mark.parametrize(
    "backend", ["nesterov", "mirror_descent", "mirror_prox", "active_set", "explicit"]
)
def test_fault_50_a_seed_makes_home_made_methods_bit_identical(backend) -> None:
    problems = [
        SimplexProgram.sample(np.random.default_rng(0), 8),
        SimplexProgram.of(klopt.Linear([3.0, 1.0, 2.0]), klopt.Simplex(3)),
        SaddlePoint.sample(np.random.default_rng(0), 5),
        svm(12),
    ]
    able = [
        p for p in problems if any(route.backend.name == backend for route in klopt.plan(p).routes)
    ]
    assert able
    for problem in able:
        first, second = (
            klopt.solve(problem, backend=backend, seed=7, tol=1e-4, max_iter=2000) for _ in range(2)
        )
        assert first.settings.seed == 7
        assert "seed 7" in repr(first)
        assert first.iterations == second.iterations
        np.testing.assert_array_equal(first.chosen.answer.x, second.chosen.answer.x)


# Running


@pytest.mark.parametrize("backend", ["ecos", "clarabel"])
def test_fault_51_a_time_limit_is_kept_for_backends_that_have_none_or_overrun(backend) -> None:
    K, y = rbf(700, width=0.01)  # of full rank: seconds of work
    problem = SoftMargin(K, y, 1.0)
    result = klopt.solve(problem, backend=backend, formulation="SOCP epigraph", time_limit=0.2)
    assert result.stop is Stop.TIME_LIMIT
    assert not result.verdict.conclusive
    assert 0.0 <= result.timings.overrun < PATIENCE_S
    if result.point is None:
        assert "ended by klopt after" in result.explain()


def test_fault_52_a_poor_point_of_an_early_stop_is_never_optimal() -> None:
    problem = svm(40)
    optimum = klopt.solve(problem).require().value
    for backend in ("scs", "clarabel", "nesterov", "mirror_descent", "highs"):
        if any(route.backend.name == backend for route in klopt.plan(problem).routes):
            result = klopt.solve(problem, backend=backend, max_iter=2)
            assert result.lower - 1e-6 <= optimum <= result.upper + 1e-6
            if result.verdict is Verdict.OPTIMAL:
                assert result.value == pytest.approx(optimum, rel=2e-6)
            else:
                assert result.verdict in (Verdict.FEASIBLE, Verdict.UNPROVEN)
                assert "inaccurate" not in result.verdict.meaning


INTERRUPTED = """
import sys, threading, time
import numpy as np
import klopt
from klopt.problems import LP, SDP, SoftMargin

rng = np.random.default_rng(0)
if sys.argv[1] == "highs":
    n = 1200
    A = rng.uniform(0.5, 1.5, (n, n))
    problem, options = LP(-rng.uniform(1, 2, n), A, rng.uniform(1, 2, n) * n), {}
elif sys.argv[1] == "highs QP":
    X = rng.normal(size=(1500, 5))
    y = np.where(rng.random(1500) > 0.5, 1.0, -1.0)
    K = np.exp(-np.square(X[:, None] - X).sum(axis=2) / 10)
    problem, options = SoftMargin(K, y, 100.0), {"formulation": "dual QP"}
else:
    n, k = 400, 25  # Clarabel looks for signals once an iteration: many short ones
    F = [np.eye(k), *(M + M.T for M in rng.normal(size=(n, k, k)))]
    problem = SDP(rng.normal(size=n), F, np.vstack([np.eye(n), -np.eye(n)]), np.ones(2 * n))
    options = {"tol": 1e-13}
klopt.solve(LP([1.0], bounds=(1, 2)), backend=sys.argv[1].split()[0])  # load the library
print("ready", flush=True)
try:
    result = klopt.solve(problem, backend=sys.argv[1].split()[0], isolate=False, **options)
    print("done", result.stop, flush=True)
except KeyboardInterrupt:
    end = time.process_time()
    print("interrupted", threading.active_count(), end, flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
@pytest.mark.parametrize("backend", ["highs", "highs QP", "scs", "clarabel"])
def test_fault_53_ctrl_c_reaches_the_caller_within_a_second_of_work(backend) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(INTERRUPTED), backend],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        seconds, said = work_after_interrupt(process, 1.0)
        assert said == "interrupted 1"
        assert seconds < 1.5
        assert process.wait(timeout=PATIENCE_S) == 0
    finally:
        process.kill()
        process.communicate()


def test_fault_54_a_native_crash_is_an_outcome_and_the_next_route_is_taken(monkeypatch) -> None:
    from klopt.engine import registry

    for backend in (bad.Segfaulter(), bad.Aborter()):
        result = klopt.solve(lp(), backend=backend, isolate=True)
        assert result.stop is Stop.CRASHED
        assert "died of SIG" in result.explain()
        first = type("First", (type(backend),), {"rank": 0})()
        monkeypatch.setattr(registry, "_registered", {first.name: first})
        moved_on = klopt.solve(lp())
        assert moved_on.require().value == pytest.approx(-5.0)
        assert moved_on.attempts[0].answer.stop is Stop.CRASHED


def test_fault_55_a_panic_that_is_no_exception_is_caught() -> None:
    for isolate in (False, True):
        result = klopt.solve(
            lp(), backend=bad.Raiser(bad.Panic("index out of bounds")), isolate=isolate
        )
        assert result.stop is Stop.CRASHED
        assert "Panic: index out of bounds" in result.explain()


@pytest.mark.parametrize("isolate", [False, True])
def test_fault_56_what_a_backend_prints_goes_to_its_log(isolate, capfd) -> None:
    result = klopt.solve(lp(), backend=bad.Printer(), isolate=isolate, formulation="primal")
    log = result.chosen.answer.log
    for line in ("hello from python", "hello from C", "error from C"):
        assert line in log
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("backend", READY)
def test_fault_56_no_backend_prints(backend, capfd) -> None:
    problem = mixture(backend)[0]
    klopt.solve(problem, backend=backend, isolate=False)
    assert capfd.readouterr() == ("", "")


def test_fault_57_a_missing_or_broken_library_stops_nothing(tmp_path) -> None:
    pytest.importorskip(
        "ecos", reason="with SCS and Clarabel gone, only ECOS is left for a second-order cone"
    )
    (tmp_path / "clarabel.py").write_text(
        "raise ImportError('libfoo.so.3: cannot open shared object file')"
    )
    script = """
        import sys
        sys.modules["scs"] = None  # not installed
        import klopt
        problem = klopt.problems.LP([1.0, 1.0], [[-1.0, -2.0]], [-1.0])
        assert klopt.solve(problem).verdict.name == "OPTIMAL"
        try:
            klopt.solve(problem, backend="scs")
        except klopt.NoRoute as error:
            print(error)
        print("not available" in klopt.plan(problem).explain())
        broken = klopt.solve(problem, backend="clarabel")
        print(broken.stop.name, "cannot open shared object file" in broken.explain())
        ball = klopt.problems.QCQP(None, [1.0, 1.0], quadratics=[([[2.0, 0.0], [0.0, 2.0]], [0.0, 0.0], 1.0)])
        moved_on = klopt.solve(ball)
        print(moved_on.verdict.name, moved_on.attempts[0].route.backend.name, moved_on.route.backend.name != "clarabel")
    """
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "backend 'scs' cannot run here: scs is not installed; pip install scs",
        "True",
        "CRASHED True",
        "OPTIMAL clarabel True",
    ]
    with pytest.raises(NoRoute, match="no backend 'mosek'"):
        klopt.solve(lp(), backend="mosek")


LIES = [
    bad.Liar(),
    bad.FalseWitness(Stop.INFEASIBLE),
    bad.FalseWitness(Stop.UNBOUNDED),
    bad.ClaimsWithoutVectors(Stop.OPTIMAL),
    bad.ClaimsWithoutVectors(Stop.INFEASIBLE),
    bad.ClaimsWithoutVectors(Stop.UNBOUNDED),
    bad.NanReturner(),
    bad.WrongShaper(),
    bad.Pointless(),
    bad.NoAnswer(),
]


@pytest.mark.parametrize(
    "backend", LIES, ids=lambda backend: f"{backend.name} {getattr(backend, 'stop', '')}"
)
def test_fault_58_a_lie_is_downgraded(backend) -> None:
    """A point may be repaired by klopt and then be right after all; a wrong value is never certified."""
    ball = QCQP(
        np.eye(2), [-3.0, -4.0], quadratics=[(2 * np.eye(2), [0.0, 0.0], 1.0)]
    )  # optimum 1/2 - 5
    for problem, optimum in ((lp(), -5.0), (ball, -4.5), (svm(8), klopt.solve(svm(8)).value)):
        result = klopt.solve(problem, backend=backend)
        assert result.verdict not in (Verdict.INFEASIBLE, Verdict.UNBOUNDED)
        assert result.lower - 1e-5 <= optimum <= result.upper + 1e-5
        if result.verdict is Verdict.OPTIMAL:
            assert result.value == pytest.approx(optimum, rel=1e-5)


def mixture(backend: str) -> list[klopt.Problem]:
    """Small problems of several kinds that the backend can take."""
    rng = np.random.default_rng(0)
    kinds = (LP, QCQP, SDP, SimplexProgram, SaddlePoint, SoftMargin, EpsilonMargin)
    samples = [kind.sample(rng, 6) for kind in kinds for _ in range(2)]
    samples += [SimplexProgram.of(klopt.Linear([3.0, 1.0, 2.0]), klopt.Simplex(3)), mkl()]
    taken = [p for p in samples if takes(backend, p)][:4]
    drawn = (kind.sample(rng, 6) for _ in range(6) for kind in problem_classes())
    taken = taken or list(islice((p for p in drawn if takes(backend, p)), 2))
    features = LowRank(
        rng.normal(size=(6, 2))
    )  # what serves problems at scale takes features, not a kernel matrix
    return taken or [AdaptiveKernel(features, np.array([1.0, -1.0] * 3), 1.0)]


def takes(backend: str, problem: klopt.Problem) -> bool:
    return any(route.backend.name == backend for route in klopt.plan(problem).routes)


def facts(result: klopt.Result) -> tuple:
    x = result.chosen.answer.x
    return result.verdict, result.lower, result.upper, None if x is None else x.tobytes()


@pytest.mark.parametrize("backend", READY)
def test_fault_59_eight_threads_give_what_one_gives(backend) -> None:
    problems = mixture(backend)
    assert problems

    def work(problem: klopt.Problem) -> tuple:
        return facts(klopt.solve(problem, backend=backend, tol=1e-4, max_iter=None))

    serial = [work(problem) for problem in problems]
    repeat = 1 if backend_named(backend).isolate or backend == "cvxpy" else 3
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, problems * repeat)) == serial * repeat


# In the quick pass the children of `isolate=True` stand for fresh interpreters.
@pytest.mark.parametrize("method", [pytest.param("spawn", marks=pytest.mark.slow), "fork"])
def test_fault_59_other_processes_give_what_this_one_gives(method) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    klopt.solve(
        lp(), backend="highs", isolate=True
    )  # a child of this process, which a fork must not take for its own
    names = [
        name
        for name in READY
        if name in ("highs", "clarabel", "scs", "ecos", "nesterov", "active_set")
    ]
    tasks = [(mixture(name)[0], name) for name in names]
    serial = [facts(klopt.solve(problem, backend=name)) for problem, name in tasks]
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as pool:
        futures = [pool.submit(klopt.solve, problem, name) for problem, name in tasks]
        assert [facts(future.result(timeout=600)) for future in futures] == serial


@pytest.mark.parametrize("backend", READY)
def test_fault_59_problems_backends_settings_and_results_pickle(backend) -> None:
    assert pickle.loads(pickle.dumps(backend_named(backend))).name == backend
    problem = mixture(backend)[0]
    again = pickle.loads(pickle.dumps(problem))
    results = [klopt.solve(p, backend=backend, tol=1e-4) for p in (problem, again)]
    assert facts(results[0]) == facts(results[1]) == facts(pickle.loads(pickle.dumps(results[0])))
    assert results[0].settings.threads == 1
    assert pickle.loads(pickle.dumps(attrs.evolve(results[0].settings, raw={"a": 1}))).raw == {
        "a": 1
    }


@pytest.mark.parametrize("isolate", [False, True])
@pytest.mark.parametrize(
    "error",
    [
        MemoryError("cannot allocate 7 GB"),
        RecursionError("too deep"),
        OSError(28, "No space left on device"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_fault_60_exhaustion_inside_a_backend_is_an_outcome_and_harms_nobody(
    error, isolate
) -> None:
    result = klopt.solve(lp(), backend=bad.Raiser(error), isolate=isolate)
    assert result.stop is Stop.CRASHED
    assert f"{type(error).__name__}: {error}" in result.explain()
    assert klopt.solve(lp(), isolate=isolate).require().value == pytest.approx(-5.0)


def test_fault_60_a_real_recursion_is_an_outcome() -> None:
    class Deep(bad.Bad):
        name = "deep"

        def misbehave(self, form):
            return self.misbehave(form)

    result = klopt.solve(lp(), backend=Deep())
    assert result.stop is Stop.CRASHED
    assert "RecursionError" in result.explain()
    assert klopt.solve(lp()).require().value == pytest.approx(-5.0)
