"""Finds the kernel that S has for all multipliers, and the conditions that no proof can use.

Let X be a direction in which the examples are unbounded without a gain: (f, X) with X positive
semidefinite, a_i'f + <A_i, X> <= 0 (= 0 for equations) and c'f + <C, X> >= 0. For multipliers y,

    0 <= <S, X> = sum y_i (a_i'f + <A_i, X>) - c'f - <C, X> <= 0,

so SX = 0, and y_i = 0 where the inequality is strict. Directions of single points are read off the
factors; others come from a solver and are rounded to short fractions. They are proposals: what is
proven with them is proven by the multipliers alone.
"""

from __future__ import annotations

import time
from dataclasses import replace
from fractions import Fraction

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.model.cones import Cones, svec_diagonal, svec_entries
from klopt.worst_cases.interior_point import solved
from klopt.worst_cases.multiplier_side import MultiplierSide, matrix_of
from klopt.worst_cases.origin import echelon
from klopt.worst_cases.program import Indices, PerformanceProgram

__all__ = ["multiplier_face"]

MARGIN = 1e-7
"""Multipliers this far inside their cones need no smaller face."""
ROUNDS = 12
DIRECTION_ERROR = 1e-7
"""The largest error of a direction relative to it."""
STRICT = 1e-3
"""What is above this share of the largest is above 0."""


def multiplier_face(
    program: PerformanceProgram, backend: str, deadline: float
) -> tuple[MultiplierSide, float]:
    """Return the multipliers' program on its smallest face, and how far inside multipliers can be."""
    side = _by_single_points(MultiplierSide(program))
    for rounds in range(ROUNDS):
        margin = side.margin(backend, deadline - time.perf_counter())
        if margin > MARGIN or time.perf_counter() > deadline or rounds == ROUNDS - 1:
            break
        smaller = _by_recession(side, backend, deadline)
        if smaller is None or not _is_consistent(smaller):
            break
        side = _by_single_points(smaller)
    return side, margin


def _is_consistent(side: MultiplierSide) -> bool:
    """Whether the equations of the multipliers have a solution: a wrong direction leaves none."""
    E, e = side.equations
    if not side.used.size:
        return not e.any()
    y, *_ = np.linalg.lstsq(E.toarray(), e)
    return bool(np.abs(E @ y - e).max(initial=0.0) <= 1e-9 * (1 + np.abs(e).max(initial=0.0)))


def _by_single_points(side: MultiplierSide) -> MultiplierSide:
    """Take out points whose S_pp is 0 for all multipliers."""
    program = side.program
    m = len(program.values)
    cost = program.cost[m:][svec_diagonal(program.order)]
    A = sparse.csr_array(program.rows[0])[:, m + svec_diagonal(program.order)].tocsr()
    zero = program.equations
    lines = len(program.conditions)
    while True:
        found = None
        used = set(side.used.tolist())
        for p in range(program.order):
            if p in side.pivots or cost[p] < 0:
                continue
            column = A[:, [p]].tocoo()
            entries = [
                (r, v)
                for r, v in zip(column.row.tolist(), column.data.tolist(), strict=True)
                if r in used and v
            ]
            if all(zero <= r < lines and v < 0 for r, v in entries):
                found = p, frozenset(r for r, _ in entries)
                break
        if found is None:
            return side
        point, rows = found
        vector = tuple(Fraction(int(i == point)) for i in range(program.order))
        side = replace(
            side,
            unused=side.unused | rows,
            pivots=(*side.pivots, point),
            kernel=(*(_cleared(v, point) for v in side.kernel), vector),
        )


def _cleared(vector: tuple[Fraction, ...], point: int) -> tuple[Fraction, ...]:
    """A vector of the kernel without the part along a single point of the kernel."""
    return tuple(Fraction(0) if i == point else v for i, v in enumerate(vector))


def _by_recession(side: MultiplierSide, backend: str, deadline: float) -> MultiplierSide | None:
    """Take out a direction that a solver finds; None where it finds none."""
    program = side.program
    A, _ = program.rows
    m = len(program.values)
    n = program.order
    zero = program.equations
    lines = len(program.conditions)
    used = side.used
    inequalities = used[(used >= zero) & (used < lines)]
    equations = used[used < zero]
    # X = PGP' in the points that are not in the kernel yet.
    others = side.other_points
    i, j = svec_entries(n)
    places = np.flatnonzero(np.isin(i, others) & np.isin(j, others))
    gram = A[program.gram_rows][places]
    lower = A[program.gram_rows.stop :]
    trace = np.zeros(program.size)
    trace[m + places[i[places] == j[places]]] = 1.0
    slack = np.asarray(A[inequalities].sum(axis=0)).ravel()
    normal = trace - slack / max(1, inequalities.size)
    rows = sparse.vstack(
        [
            sparse.csr_array(normal[None]),
            A[equations],
            A[inequalities],
            sparse.csr_array(-program.cost[None]),
            gram,
            lower,
        ],
        format="csr",
    )
    right = np.zeros(rows.shape[0])
    right[0] = 1.0
    orders = tuple(order for order in (others.size, *program.cones.psd[1:]) if order)
    cones = Cones(zero=1 + equations.size, nonneg=inequalities.size + 1, psd=orders)
    pair = solved(
        np.zeros(program.size), rows, right, cones, backend, deadline - time.perf_counter()
    )
    if pair is None:
        return None
    strict = -(A[inequalities] @ pair.x)
    X = matrix_of(pair.x[m + places], others.size)
    largest = max(1.0, float(np.abs(X).max(initial=0.0)), float(strict.max(initial=0.0)))
    # A solver that finds no direction may return anything.
    errors = [
        abs(float(normal @ pair.x) - 1.0),
        float(np.abs(A[equations] @ pair.x).max(initial=0.0)),
        -float(strict.min(initial=0.0)),
        -float(program.cost @ pair.x),
        -float(np.linalg.eigvalsh(X).min(initial=0.0)),
    ]
    if max(errors) > DIRECTION_ERROR * largest:
        return None
    return _rounded(side, X, inequalities, strict)


def _rounded(
    side: MultiplierSide, X: FloatArray, inequalities: Indices, strict: FloatArray
) -> MultiplierSide | None:
    """The face of a direction whose range is spanned by short vectors."""
    n = side.program.order
    others = side.other_points
    values, vectors = np.linalg.eigh(X)
    largest = max(float(values.max(initial=0.0)), float(strict.max(initial=0.0)))
    unused = frozenset(inequalities[strict > STRICT * largest].tolist())
    # The largest eigenvalues with a clear gap below them.
    for gap in range(1, len(values) + 1):
        at = len(values) - gap
        if values[at] <= STRICT * largest:
            break
        below = values[at - 1] if at else 0.0
        if below > 1e-2 * values[at]:
            continue
        pivots, N = echelon(vectors[:, at:])
        short = [[Fraction(v).limit_denominator(12) for v in column] for column in N.T.tolist()]
        error = np.abs(np.array(short, dtype=float).T - N).max()
        if error > 5e-3:
            continue
        kernel: list[tuple[Fraction, ...]] = []
        for column in short:
            entries = [Fraction(0)] * n
            for place, value in zip(others.tolist(), column, strict=True):
                entries[place] = value
            kernel.append(tuple(entries))
        points = tuple(int(others[p]) for p in pivots)
        old = []
        for earlier in side.kernel:
            changed = list(earlier)
            for p, vector in zip(points, kernel, strict=True):
                share = changed[p]
                changed = [a - share * b for a, b in zip(changed, vector, strict=True)]
            old.append(tuple(changed))
        return replace(
            side,
            unused=side.unused | unused,
            pivots=(*side.pivots, *points),
            kernel=(*old, *kernel),
        )
    # The direction may leave the Gram matrix as it is, or all that is left of it.
    return replace(side, unused=side.unused | unused) if unused else None
