"""Pairs near the central path, and the lemmas about short corrections: truth from exact rationals."""

from __future__ import annotations

import math
import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from scipy import sparse

from klopt.model.cones import Cones, svec, svec_entries
from klopt.model.forms import ConeForm
from klopt.problems import SDP
from klopt.proof.cone_lower_bound import lower_bound
from klopt.proof.cone_upper_bound import upper_bound
from klopt.proof.cone_witnesses import DualWitness, PrimalWitness
from klopt.proof.enclosure import Enclosure
from klopt.proof.exact_sums import exact_dot
from klopt.proof.faces import compressed, turned
from klopt.proof.linear_systems import shortest_correction
from klopt.proof.split_columns import merged_columns
from klopt.proof.statement import ConeStatement
from klopt.proof.time_budget import budget
from klopt.witness.centring import central_pairs
from klopt.witness.cone_witness import prove

seeds = st.integers(0, 2**32 - 1)
levels = st.sampled_from((0.0, 1e-12, 1e-9, 1e-6, 1e-3))


def reflected(values: list[int], seed: int) -> np.ndarray:
    """v'v times an integer matrix with these eigenvalues, by the reflection at an integer v."""
    v = np.random.default_rng(seed).integers(-2, 3, size=len(values))
    v[:2] = 1, 2
    square = int(v @ v)
    H = square * np.eye(len(values), dtype=np.int64) - 2 * np.outer(v, v)
    # H H = square^2 I, so that H diag(values) H has the eigenvalues square^2 values.
    return H @ np.diag(values) @ H


def largest_eigenvalue_program(M: np.ndarray) -> SDP:
    """Minimise t subject to t I - M psd."""
    return SDP(c=[1.0], F=[M.astype(float), np.eye(len(M))])


# Semidefinite programs whose optimum is an integer


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(-9, 9), min_size=2, max_size=6), seeds, levels)
def test_largest_eigenvalues_are_enclosed_and_narrow(
    values: list[int], seed: int, level: float
) -> None:
    M = reflected(values, seed)
    # Diagonal blocks are linear rows.
    assume(np.count_nonzero(M - np.diag(M.diagonal())))
    rng = np.random.default_rng(seed)
    program = largest_eigenvalue_program(M)
    eigenvalues, vectors = np.linalg.eigh(M.astype(float))
    size = 1 + abs(eigenvalues).max()
    x = np.array([eigenvalues[-1]]) + level * size * rng.normal(size=1)
    y = svec(np.outer(vectors[:, -1], vectors[:, -1]))
    y = y + level * rng.normal(size=y.size)
    proof = prove(program.cone_statement, program.form, x, y, program.dual_witness)
    square = np.rint(np.trace(M) / sum(values)) if sum(values) else None
    truth = max(Fraction(int(np.rint(value))) for value in eigenvalues)
    if square:
        assert truth == int(square) * max(values)
    assert Fraction(proof.lower.value) <= truth <= Fraction(proof.upper.value)
    assert proof.upper.value - proof.lower.value <= 1e-7 * (1 + abs(float(truth)))


@settings(deadline=None, max_examples=30)
@given(seeds, st.floats(-1e3, 1e3), st.floats(-20, 20))
def test_no_forged_multipliers_prove_too_much(seed: int, w: float, scale: float) -> None:
    """Any w and any y, near feasible or not."""
    M = reflected([1, 2, 4], seed)
    truth = Fraction(int(np.rint(np.linalg.eigvalsh(M.astype(float))[-1])))
    rng = np.random.default_rng(seed)
    statement = largest_eigenvalue_program(M).cone_statement
    factor = rng.normal(size=(3, 3))
    Y = factor @ factor.T
    Y /= np.trace(Y)
    lower = np.tril_indices(3)
    order = np.lexsort(lower)
    y = Y[lower][order] * (1 + 10.0 ** -abs(scale) * rng.normal())
    end = lower_bound(statement, DualWitness(np.array([w]), y))
    assert end.value == -math.inf or Fraction(end.value) <= truth


def test_a_second_order_cone_has_its_closed_form() -> None:
    """Minimise 3 x + 4 y over the unit disc: -5."""
    form = ConeForm(
        c=[3.0, 4.0],
        A=[[0.0, 0.0], [-1.0, 0.0], [0.0, -1.0]],
        b=[1.0, 0.0, 0.0],
        cones=Cones(soc=(3,)),
    )
    proof = prove(
        ConeStatement.of_form(form), form, np.array([-0.6, -0.8]), np.array([5.0, 3.0, 4.0])
    )
    assert proof.lower.value <= -5 <= proof.upper.value
    assert proof.upper.value - proof.lower.value < 1e-7


def test_pairs_lie_on_the_central_path() -> None:
    """Minimise x subject to x >= 0: s y = mu gives y = 1 and x = mu, the gap itself."""
    form = ConeForm(c=[1.0], A=[[-1.0]], b=[0.0], cones=Cones(nonneg=1))
    for pair in central_pairs(form, np.zeros(1), np.ones(1)):
        assert pair.y == pytest.approx([1.0])
        assert pair.x == pytest.approx([pair.gap])


def test_a_pair_is_found_from_far_away() -> None:
    M = reflected([1, 3, 5, 7], 1)
    program = largest_eigenvalue_program(M)
    truth = float(np.rint(np.linalg.eigvalsh(M.astype(float))[-1]))
    pair = next(central_pairs(program.form, np.array([3 * truth]), svec(np.eye(4))))
    assert pair.x[0] == pytest.approx(truth, rel=1e-6)


def test_rows_that_say_nothing_are_left_out() -> None:
    form = ConeForm(
        c=[1.0],
        A=[[-1.0], [-1.0], [0.0], [-1.0]],
        b=[np.inf, 1.0, 0.0, 1.0],
        cones=Cones(nonneg=1, psd=(2,)),
    )
    pair = next(central_pairs(form, np.array([-1.0]), np.array([0.0, 0.5, 0.0, 0.5])))
    assert pair.y[0] == 0
    assert pair.x[0] == pytest.approx(-1.0, abs=1e-6)


def test_nothing_begins_after_the_deadline() -> None:
    rng = np.random.default_rng(0)
    M = rng.integers(-5, 6, size=(60, 60))
    program = largest_eigenvalue_program(M + M.T)
    began = time.process_time()
    with budget(time.perf_counter() - 1.0):
        prove(program.cone_statement, program.form, np.zeros(1), svec(np.eye(60)))
    assert time.process_time() - began < 2.0


# Short corrections


def shortest_square(B: np.ndarray, r: np.ndarray) -> Fraction | None:
    """||d||^2 of the shortest d with B d = -r, in rationals; None where B has dependent rows."""
    rows = [[Fraction(float(value)) for value in row] for row in B]
    right = [Fraction(float(value)) for value in r]
    m = len(rows)
    gram = [
        [sum(a * b for a, b in zip(rows[i], rows[j], strict=True)) for j in range(m)] + [right[i]]
        for i in range(m)
    ]
    for column in range(m):
        pivot = next((i for i in range(column, m) if gram[i][column]), None)
        if pivot is None:
            return None
        gram[column], gram[pivot] = gram[pivot], gram[column]
        head = gram[column][column]
        gram[column] = [value / head for value in gram[column]]
        for i in range(m):
            if i != column and gram[i][column]:
                factor = gram[i][column]
                gram[i] = [a - factor * b for a, b in zip(gram[i], gram[column], strict=True)]
    return sum((a * row[-1] for a, row in zip(right, gram, strict=True)), Fraction(0))


def matrices_of(kind: str, seed: int) -> np.ndarray:
    """Integer matrices that take one lemma each."""
    rng = np.random.default_rng(seed)
    B = rng.integers(-4, 5, size=(4, 7)).astype(float)
    if kind == "own columns":
        B[:, :4] = np.diag(rng.integers(1, 5, size=4))
    if kind == "some own columns":
        B[:, :3] = np.diag(rng.integers(1, 5, size=4))[:, :3]
    if kind == "ill conditioned":
        B[1] = B[0] + 2.0**-25 * B[1]
    if kind == "dependent":
        B[3] = B[0] - B[2]
    if kind == "badly scaled":
        B = np.ldexp(B, rng.integers(-300, 300, size=(4, 1)))
    return B


KINDS = ("any", "own columns", "some own columns", "ill conditioned", "dependent", "badly scaled")


@settings(deadline=None, max_examples=100)
@given(st.sampled_from(KINDS), seeds, st.booleans())
def test_a_correction_is_never_shorter_than_it_is_said(kind: str, seed: int, dense: bool) -> None:
    B = matrices_of(kind, seed)
    r = np.random.default_rng(seed + 1).integers(-9, 10, size=4).astype(float)
    r *= np.abs(B).max(axis=1)
    truth = shortest_square(B, r)
    size = shortest_correction(B if dense else sparse.csr_array(B), Enclosure.of(r))
    if truth is None:
        assert size == math.inf
    elif size < math.inf:
        assert Fraction(size) ** 2 >= truth
        # Own columns need not be the shortest way.
        if dense or kind in ("any", "ill conditioned"):
            assert Fraction(size) ** 2 <= truth * 4 or not truth


@settings(deadline=None, max_examples=20)
@given(seeds)
def test_many_sparse_rows(seed: int) -> None:
    """Blocks of three rows that are far more than a dense factor is made for."""
    rng = np.random.default_rng(seed)
    block = rng.integers(-4, 5, size=(3, 5)).astype(float)
    r = rng.integers(-9, 10, size=3).astype(float)
    truth = shortest_square(block, r)
    copies = 300
    B = sparse.csr_array(sparse.block_diag([block] * copies))
    size = shortest_correction(B, Enclosure.of(np.tile(r, copies)))
    if truth is None:
        assert size == math.inf
    elif size < math.inf:
        assert Fraction(size) ** 2 >= copies * truth


def test_errors_of_a_matrix_are_charged() -> None:
    B = np.array([[1.0, 0.5], [0.5, 1.0]])
    r = Enclosure.of(np.array([1.0, 1.0]))
    exact = shortest_correction(B, r)
    wide = shortest_correction(B, r, 0.05)
    assert exact < wide < math.inf
    # The matrix with all entries smaller by this share is meant as well, and a singular one is not.
    truth = shortest_square(0.95 * B, r.mid)
    assert truth is not None
    assert Fraction(wide) ** 2 >= truth
    assert shortest_correction(B, r, 0.4) == math.inf


@given(st.lists(st.tuples(st.floats(), st.floats()), max_size=5))
def test_exact_products_of_any_floats(pairs: list[tuple[float, float]]) -> None:
    found = exact_dot(np.array([a for a, _ in pairs]), np.array([b for _, b in pairs]))
    mid, rad = float(found.mid), float(found.rad)
    if not all(map(math.isfinite, np.ravel(pairs))):
        assert rad == math.inf
    if rad < math.inf:
        truth = sum((Fraction(a) * Fraction(b) for a, b in pairs), Fraction(0))
        assert abs(truth - Fraction(mid)) <= Fraction(rad)


# Second-order cones, all at once


@settings(deadline=None, max_examples=200)
@given(
    st.lists(
        st.lists(st.floats(-1e150, 1e150), min_size=1, max_size=4).map(lambda block: block),
        min_size=1,
        max_size=4,
    )
)
def test_points_in_second_order_cones(blocks: list[list[float]]) -> None:
    """Minimise 0 where b lies in the cones, or does not: the point 0 is feasible or not."""
    b = np.concatenate(blocks)
    cones = Cones(soc=tuple(map(len, blocks)))
    statement = ConeStatement(np.zeros(1), sparse.csc_array((b.size, 1)), b, cones)
    proven = upper_bound(statement, PrimalWitness(np.zeros(1))).value < math.inf
    truth = all(
        block[0] >= 0
        and Fraction(block[0]) ** 2 >= sum((Fraction(v) ** 2 for v in block[1:]), Fraction(0))
        for block in blocks
    )
    assert truth or not proven
    inside = all(block[0] > 1.001 * math.hypot(*block[1:]) + 1e-300 for block in blocks)
    assert proven or not inside


# Split variables


def split(c: list[float], entry: float = -2.0, bound: float = 0.0) -> ConeStatement:
    """x_0 - x_1 in a row and a second-order cone, both nonnegative."""
    A = np.array(
        [[1.0, -1.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0, 0, 0], [2.0, entry, 0.0]]
    )
    b = np.array([0.0, bound, 0.0, 1.0, 0.0])
    return ConeStatement(np.array(c), sparse.csc_array(A), b, Cones(zero=1, nonneg=2, soc=(2,)))


def test_split_variables_are_merged() -> None:
    merged = merged_columns(split([1.0, -1.0, 0.0]))
    assert merged is not None
    assert (merged.plus.tolist(), merged.minus.tolist()) == ([0], [1])
    assert merged.rows.tolist() == [0, 3, 4]
    assert merged.statement.cones.nonneg == 0
    assert merged.statement.A.toarray().tolist() == [[1.0, 1.0], [0.0, 0.0], [2.0, 0.0]]


@pytest.mark.parametrize(
    "statement",
    [
        split([1.0, -np.nextafter(1.0, 2.0), 0.0]),
        split([1.0, -1.0, 0.0], entry=-np.nextafter(2.0, 3.0)),
        split([1.0, -1.0, 0.0], bound=1e-300),
    ],
)
def test_variables_that_differ_are_not_merged(statement: ConeStatement) -> None:
    assert merged_columns(statement) is None


def test_a_program_with_split_variables_is_proven() -> None:
    """Minimise x_0 - x_1 with |x_0 - x_1| <= 1/2: -1/2, and no multipliers lie inside."""
    statement = split([1.0, -1.0, 0.0])
    form = ConeForm(statement.c, statement.A, statement.b, statement.cones)
    y = np.array([0.0, 0.0, 0.0, 0.5, -0.5])
    proof = prove(statement, form, np.array([0.0, 0.5, 0.5]), y)
    assert proof.lower.value <= -0.5 <= proof.upper.value
    assert proof.upper.value - proof.lower.value < 1e-7
    assert (proof.x[:2] >= 0).all()


# Faces


def partition(weights: np.ndarray) -> SDP:
    """Maximise <C, Y> over Y psd with unit diagonal and e'Ye = 0, as its dual matrix inequality."""
    n = len(weights)
    diagonals = [np.diag((np.arange(n) == k).astype(float)) for k in range(n)]
    return SDP(c=[1.0] * n + [0.0], F=[weights.astype(float), *diagonals, np.ones((n, n))])


def test_multipliers_without_an_interior() -> None:
    """Two nodes: Y = [[1, -1], [-1, 1]] is the only multiplier, and the optimum is <C, Y>."""
    C = np.array([[3.0, 1.0], [1.0, 2.0]])
    program = partition(C)
    truth = Fraction(3 + 2 - 2)
    x = np.array([2.0, 1.0, 1.0])
    y = svec(np.array([[1.0, -1.0], [-1.0, 1.0]]))
    proof = prove(program.cone_statement, program.form, x, y, program.dual_witness)
    assert Fraction(proof.lower.value) <= truth <= Fraction(proof.upper.value)
    assert proof.upper.value - proof.lower.value < 1e-6


@settings(deadline=None, max_examples=30)
@given(seeds, st.sampled_from((1.0, 0.1, 2.0**40)))
def test_compressions_are_exact_or_refused(seed: int, unit: float) -> None:
    rng = np.random.default_rng(seed)
    n = 4
    matrices = rng.integers(-9, 10, size=(3, n, n)) * unit
    matrices = matrices + matrices.transpose(0, 2, 1)
    program = SDP(c=np.ones(2), F=list(matrices))
    V = rng.integers(-3, 4, size=(n, 2)).astype(float)
    smaller = compressed(program.cone_statement, 0, V)
    if smaller is None:
        assert unit == 0.1
        return
    down, across = svec_entries(2)
    for column, sign in ((0, -1), (1, -1)):
        F = matrices[column + 1]
        for row, (i, j) in enumerate(zip(down, across, strict=True)):
            truth = sum(
                Fraction(V[k, i]) * Fraction(F[k, m]) * Fraction(V[m, j])
                for k in range(n)
                for m in range(n)
            )
            assert Fraction(float(smaller.A.toarray()[row, column])) == sign * truth


def test_a_singular_matrix_does_not_turn_a_block() -> None:
    program = partition(np.diag([1, 2, 3]) + 1)
    V = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    statement = program.cone_statement
    assert turned(statement, 0, V, np.ones(3)) is not None
    assert turned(statement, 0, V, np.array([1.0, 0.0, -1.0])) is None
    assert turned(statement, 0, np.column_stack((V[:, 0], V[:, 0])), np.ones(3)) is None
    assert turned(statement, 0, V, np.zeros(3)) is None


@settings(deadline=None, max_examples=50)
@given(seeds, st.integers(-60, 60))
def test_a_scaled_block_is_inside_or_not(seed: int, exponent: int) -> None:
    """Minimise 0 at the point 0 where b is a matrix of order 2, of any scale."""
    rng = np.random.default_rng(seed)
    a, c = rng.integers(1, 50, size=2)
    off = rng.integers(-50, 50)
    D = 2.0**exponent
    b = np.array([a * D * D, off * D, float(c)])
    statement = ConeStatement(np.zeros(1), sparse.csc_array((3, 1)), b, Cones(psd=(2,)), plain=True)
    proven = upper_bound(statement, PrimalWitness(np.zeros(1))).value < math.inf
    assert proven == (a * c > off * off) or (a * c == off * off and not proven)
