r"""Leaves out points and values that nothing depends on, such as the place of the minimiser.

Distances do not change when all points are moved, nor does a sum of functions when a linear function
is taken from one and added to another. So for multipliers y of the conditions that cancel the
function values, S = sum y_i A_i - C has a kernel N, whatever y is.

**Lemma W1.** Let P be rows with N_P = I, and T = I - N E_P' the projection along N that makes them
0. If sum z_i A_i N = 0 for every z with sum z_i a_i = 0, then T'A_iT - A_i = sum_k (a_i)_k M_k with
some M_k for all i. So (F, G) -> (F_k - <M_k, G>, TGT') keeps every expression as it is, and the worst
case does not change when the points P are 0.

*Proof.* The map z -> sum z_i (T'A_iT - A_i) is 0 on the kernel of z -> sum z_i a_i, as B N = 0 for a
symmetric B implies T'BT = B; so it factors through the latter.

**Lemma W2.** If a condition says <A, G> <= 0 with a positive semidefinite A, then AG = 0: the points
that A is definite on are 0. A positive semidefinite matrix with an entry 0 in its diagonal is 0 in
that row.

N is found in floats. Where factors are rounded the premise holds up to that rounding, and what is
stated is the program with these points at 0.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from klopt.arrays import FloatArray
from klopt.proof.rational_psd import rational_psd
from klopt.worst_cases.program import (
    Affine,
    Condition,
    MatrixCondition,
    PerformanceProgram,
)

__all__ = ["echelon", "with_origin"]

RANK_TOL = 1e-10
"""Singular values below this share of the largest one are 0."""


def with_origin(program: PerformanceProgram) -> PerformanceProgram:
    """Return the program without the points and values that nothing depends on (Lemma W1).

    >>> from fractions import Fraction
    >>> one = Fraction(1)
    >>> distance = Affine({}, {(0, 0): one, (1, 0): -2 * one, (1, 1): one}, -one)
    >>> program = PerformanceProgram(("x", "z"), (), distance, (Condition("start", distance, False),))
    >>> len(with_origin(program).points)
    1
    """
    n = program.order
    expressions = list(program.expressions())
    factors = np.zeros((len(expressions), len(program.values)))
    for i, expression in enumerate(expressions):
        for k, factor in expression.values.items():
            factors[i, k] = float(factor)
    matrices = np.array([expression.matrix(n) for expression in expressions])
    left_kernel = _kernel(factors.T)
    combined = _few_combinations(np.tensordot(left_kernel.T, matrices, axes=1))
    points, _ = echelon(_kernel(combined.reshape(-1, n)))
    values, _ = echelon(_kernel(factors))
    found = _without(program, set(points), set(values))
    while True:
        zeros = _points_that_are_zero(found)
        if not zeros:
            return _without_empty_rows(found)
        found = _without(found, zeros, set())


def _points_that_are_zero(program: PerformanceProgram) -> set[int]:
    """Points that a condition forces to be 0 (Lemma W2)."""
    for condition in program.conditions:
        expression = condition.expression
        if expression.constant or any(expression.values.values()):
            continue
        places = sorted({i for pair, v in expression.gram.items() if v for i in pair})
        if not places:
            continue
        A = expression.matrix(program.order)[np.ix_(places, places)]
        if condition.is_equation and A[0, 0] < 0:
            A = -A
        if rational_psd(A - np.diag(np.diag(A)) / 2**20):
            return set(places)
    return set()


def _without_empty_rows(program: PerformanceProgram) -> PerformanceProgram:
    """The program without conditions 0 <= 0, and without rows of matrices that are 0 (Lemma W2)."""
    conditions = list(program.conditions)
    matrices = []
    for matrix in program.matrices:
        kept = [i for i in range(matrix.order) if not matrix.entries[i][i].is_zero]
        for i in range(matrix.order):
            for j in range(i):
                entry = matrix.entries[i][j]
                if not (i in kept and j in kept) and not entry.is_zero:
                    conditions.append(Condition(f"{matrix.name} at {i}, {j}", entry, True))
        if kept:
            entries = tuple(tuple(matrix.entries[i][j] for j in kept if j <= i) for i in kept)
            matrices.append(MatrixCondition(matrix.name, entries))
    used = tuple(condition for condition in conditions if not condition.expression.is_zero)
    return replace(program, conditions=used, matrices=tuple(matrices))


def _few_combinations(matrices: FloatArray) -> FloatArray:
    """As many random combinations of matrices as decide about their common kernel."""
    n = matrices.shape[1]
    size = np.abs(matrices).max(axis=(1, 2), initial=0.0)
    scaled = matrices[size > 0] / size[size > 0, None, None]
    few = 3 * n + 5
    if len(scaled) <= few:
        return np.asarray(scaled, dtype=float)
    weights = np.random.default_rng(0).normal(size=(few, len(scaled)))
    mixed: FloatArray = np.tensordot(weights, scaled, axes=1) / np.sqrt(len(scaled))
    return mixed


def _kernel(matrix: FloatArray) -> FloatArray:
    """An orthonormal basis of the kernel."""
    if not matrix.size or not matrix.any():
        return np.eye(matrix.shape[1])
    _, sizes, right = np.linalg.svd(matrix, full_matrices=matrix.shape[0] < matrix.shape[1])
    rank = int(np.count_nonzero(sizes > RANK_TOL * sizes[0]))
    kernel: FloatArray = right[rank:].T
    return kernel


def echelon(basis: FloatArray) -> tuple[list[int], FloatArray]:
    """Return rows P and the basis N of the same space with N_P = I.

    >>> echelon(np.array([[2.0], [-2.0], [1.0]]))
    ([0], array([[ 1. ],
           [-1. ],
           [ 0.5]]))
    """
    N = np.array(basis, dtype=float)
    chosen: list[int] = []
    for column in range(N.shape[1]):
        sizes = np.abs(N[:, column:])
        sizes[chosen] = -1.0
        # Of rows of about the same size the first: a rounding must not choose.
        row, offset = divmod(int(np.argmax(sizes > 0.999 * sizes.max())), sizes.shape[1])
        N[:, [column, column + offset]] = N[:, [column + offset, column]]
        N[:, column] /= N[row, column]
        for other in range(N.shape[1]):
            if other != column:
                N[:, other] -= N[row, other] * N[:, column]
        chosen.append(row)
    return chosen, N


def _without(program: PerformanceProgram, points: set[int], values: set[int]) -> PerformanceProgram:
    """The program with these points and values at 0."""
    kept_points = [i for i in range(program.order) if i not in points]
    kept_values = [k for k in range(len(program.values)) if k not in values]
    point_at = {old: new for new, old in enumerate(kept_points)}
    value_at = {old: new for new, old in enumerate(kept_values)}

    def kept(expression: Affine) -> Affine:
        return expression.kept(point_at, value_at)

    return PerformanceProgram(
        tuple(program.points[i] for i in kept_points),
        tuple(program.values[k] for k in kept_values),
        kept(program.objective),
        tuple(
            replace(condition, expression=kept(condition.expression))
            for condition in program.conditions
        ),
        tuple(
            MatrixCondition(
                matrix.name, tuple(tuple(kept(entry) for entry in row) for row in matrix.entries)
            )
            for matrix in program.matrices
        ),
    )
