"""What CVXPY drops of a solution, recomputed: auxiliary variables, and multipliers of their rows.

CVXPY replaces each atom by an auxiliary variable t and rows that bound it, such as ||x|| <= t. From
the other variables of these rows t is known: it is the end of an interval that the rows leave it.
So columns are filled in one after the other, each from rows in which it is the only unknown.

The multipliers of rows that belong to no constraint of the user follow from the point. Complementary
to a slack on the smooth boundary of a cone is a ray, and the lengths of all rays are fitted to
Px + c + A'y = 0 by least squares. Both are proposals, about which the proof decides.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.model.cones import order_of, smat, svec
from klopt.model.cones.power import Weights, exponents
from klopt.model.forms import ConeForm

__all__ = ["completed_multipliers", "completed_point"]

Mask = npt.NDArray[np.bool_]
Interval = tuple[float, float]
EVERYTHING: Interval = (-np.inf, np.inf)

ACTIVE = 1e-5
"""A slack counts as 0 where it is at most this share of its terms."""
MAX_ENTRIES = 4_000_000
"""The largest dense matrix of a fit: beyond it least squares take longer than a solve."""


def completed_point(form: ConeForm, x: FloatArray, known: Mask) -> Mask:
    """Fill in entries of x, row by row and cone by cone; return which ones are known then.

    >>> from klopt.model.cones import Cones
    >>> form = ConeForm([0, 0, 1], [[0, 0, -1], [-1, 0, 0], [0, -1, 0]], np.zeros(3), Cones(soc=(3,)))
    >>> x = np.array([3.0, 4.0, 0.0])
    >>> completed_point(form, x, np.array([True, True, False])).all(), x[2]
    (True, 5.0)
    """
    known = known.copy()
    A = form.A.tocsr()
    blocks = _single_blocks(form)
    while not known.all():
        before = int(known.sum())
        unknown_of_row = _unknown_counts(A, known)
        rest = form.b - A @ np.where(known, x, 0.0)
        _solve_equations(form, A, x, known, unknown_of_row, rest)
        intervals = _intervals(form, A, blocks, known, unknown_of_row, rest)
        for column, (low, high, preferred) in intervals.items():
            if known[column]:
                continue
            value = _end(low, high, preferred, float(form.c[column]))
            if np.isfinite(value):
                x[column] = value
                known[column] = True
        if int(known.sum()) == before:
            break
    return known


def _unknown_counts(A: sparse.csr_array, known: Mask) -> FloatArray:
    """How many unknowns each row has."""
    present = sparse.csr_array((np.ones(A.nnz), A.indices, A.indptr), shape=A.shape)
    return np.asarray(present @ (~known).astype(float))


def _single_blocks(form: ConeForm) -> list[tuple[str, slice, Weights]]:
    """The curved cones one by one."""
    found: list[tuple[str, slice, Weights]] = []
    for kind, rows in form.cones.blocks():
        if kind == "exp":
            starts = range(rows.start, rows.stop, 3)
            found += [("exp", slice(start, start + 3), ()) for start in starts]
        elif kind == "power":
            start = rows.start
            for weights in form.cones.power:
                found.append(("power", slice(start, start + len(weights) + 1), weights))
                start += len(weights) + 1
        elif kind in ("soc", "psd"):
            found.append((kind, rows, ()))
    return found


def _solve_equations(
    form: ConeForm,
    A: sparse.csr_array,
    x: FloatArray,
    known: Mask,
    unknown_of_row: FloatArray,
    rest: FloatArray,
) -> None:
    """Solve equations with one unknown for it."""
    for row in np.flatnonzero(unknown_of_row[: form.cones.zero] == 1):
        entries = slice(A.indptr[row], A.indptr[row + 1])
        columns = A.indices[entries]
        place = np.flatnonzero(~known[columns])
        if place.size == 1 and A.data[entries][place[0]]:
            column = columns[place[0]]
            x[column] = rest[row] / A.data[entries][place[0]]
            known[column] = True


def _intervals(
    form: ConeForm,
    A: sparse.csr_array,
    blocks: list[tuple[str, slice, Weights]],
    known: Mask,
    unknown_of_row: FloatArray,
    rest: FloatArray,
) -> dict[int, tuple[float, float, Interval]]:
    """For columns that are the only unknown of rows or cones: what these leave them, and cones alone."""
    found: dict[int, tuple[float, float, Interval]] = {}
    start = form.cones.zero
    single = np.flatnonzero(unknown_of_row[start : start + form.cones.nonneg] == 1) + start
    for row in single.tolist():
        column, entry = _only_unknown(A, slice(row, row + 1), known)
        if column >= 0 and np.isfinite(rest[row]):
            end = rest[row] / entry[0]
            cut = (-np.inf, end) if entry[0] > 0 else (end, np.inf)
            _cut(found, column, cut, curved=False)
    for kind, rows, weights in blocks:
        if not unknown_of_row[rows].any():
            continue
        column, entries = _only_unknown(A, rows, known)
        if column >= 0:
            _cut(found, column, _range(kind, weights, rest[rows], entries), curved=True)
    return found


def _only_unknown(A: sparse.csr_array, rows: slice, known: Mask) -> tuple[int, FloatArray]:
    """The one unknown column of some rows and its entries there; -1 where there are none or more."""
    entries = slice(A.indptr[rows.start], A.indptr[rows.stop])
    columns = A.indices[entries]
    open_ones = columns[~known[columns]]
    if not open_ones.size or (open_ones != open_ones[0]).any():
        return -1, np.zeros(0)
    column = int(open_ones[0])
    values = np.zeros(rows.stop - rows.start)
    lengths = np.diff(A.indptr[rows.start : rows.stop + 1])
    row = np.repeat(np.arange(values.size), lengths)
    own = columns == column
    values[row[own]] = A.data[entries][own]
    return (column, values) if values.any() else (-1, values)


def _cut(
    found: dict[int, tuple[float, float, Interval]], column: int, cut: Interval, *, curved: bool
) -> None:
    low, high, cone = found.get(column, (*EVERYTHING, EVERYTHING))
    if curved:
        cone = (max(cone[0], cut[0]), min(cone[1], cut[1]))
    found[column] = (max(low, cut[0]), min(high, cut[1]), cone)


def _end(low: float, high: float, cone: Interval, cost: float) -> float:
    """The end of its interval that an auxiliary variable takes.

    That of the only side, that of the cone's only side, the cheaper one, the lower one.
    """
    for lower, upper in ((low, high), cone):
        if np.isfinite(lower) != np.isfinite(upper):
            return lower if np.isfinite(lower) else upper
    if not np.isfinite(low):
        return np.nan
    return high if cost < 0 or (cost == 0 and np.isfinite(cone[1])) else low


def _range(kind: str, weights: Weights, s: FloatArray, a: FloatArray) -> Interval:
    """The t with s - a t in one cone; everything where it is not known."""
    with np.errstate(all="ignore"):
        if kind == "soc":
            return _range_in_second_order_cone(s, a)
        if kind == "psd":
            return _range_in_semidefinite_cone(s, a)
        if kind == "exp":
            return _range_in_exponential_cone(s, a)
        return _range_in_power_cone(weights, s, a)


def _half_line(end: float, entry: float) -> Interval:
    """The t with entry t <= end."""
    return (-np.inf, end / entry) if entry > 0 else (end / entry, np.inf)


def _range_in_second_order_cone(s: FloatArray, a: FloatArray) -> Interval:
    if not a[1:].any():
        return _half_line(float(s[0] - np.linalg.norm(s[1:])), float(a[0]))
    # (s_0 - a_0 t)^2 >= ||s_1 - a_1 t||^2
    p = float(a[0] ** 2 - a[1:] @ a[1:])
    q = float(s[0] * a[0] - s[1:] @ a[1:])
    r = float(s[0] ** 2 - s[1:] @ s[1:])
    root = np.sqrt(max(q * q - p * r, 0.0))
    if p < 0:
        ends = sorted(((q + root) / p, (q - root) / p))
        return ends[0], ends[1]
    if p == 0:
        return _half_line(r / 2, q) if q else EVERYTHING
    # s_0 - a_0 t >= 0 picks one of the two branches.
    return _half_line(min(a[0] * (q - root), a[0] * (q + root)) / p, float(a[0]))


def _range_in_semidefinite_cone(s: FloatArray, a: FloatArray) -> Interval:
    M = smat(a)
    entry = float(M[0, 0])
    # t times the identity, as in an eigenvalue; others are not tried.
    if not entry or not np.allclose(M, entry * np.eye(len(M)), rtol=0, atol=1e-12 * abs(entry)):
        return EVERYTHING
    return _half_line(float(np.linalg.eigvalsh(smat(s))[0]), entry)


def _range_in_exponential_cone(s: FloatArray, a: FloatArray) -> Interval:
    x, y, z = s
    if y <= 0 or a[1] or (a[0] and a[2]):
        return EVERYTHING
    if a[2]:
        return _half_line(float(z - y * np.exp(x / y)), float(a[2]))
    # x - a t <= y log(z / y), that is -a t <= y log(z / y) - x.
    return _half_line(float(y * np.log(z / y) - x), -float(a[0])) if z > 0 else EVERYTHING


def _range_in_power_cone(weights: Weights, s: FloatArray, a: FloatArray) -> Interval:
    if np.count_nonzero(a) != 1:
        return EVERYTHING
    e = exponents(weights)
    place = int(np.flatnonzero(a)[0])
    x = np.maximum(s[:-1], 0.0)
    if place == x.size:
        mean = float(np.prod(x**e))
        ends = sorted(((s[-1] - mean) / a[-1], (s[-1] + mean) / a[-1]))
        return float(ends[0]), float(ends[1])
    others = np.delete(np.arange(x.size), place)
    least = (abs(s[-1]) / np.prod(x[others] ** e[others])) ** (1 / e[place])
    return _half_line(float(s[place] - least), float(a[place]))


# Multipliers


def completed_multipliers(form: ConeForm, x: FloatArray, y: FloatArray, known: Mask) -> FloatArray:
    """Return y with the rows that are not known fitted to stationarity at x.

    >>> from klopt.model.cones import Cones
    >>> form = ConeForm([1.0], [[-1.0], [0.0], [0.0]], [0.0, 3.0, 4.0], Cones(soc=(3,)))
    >>> completed_multipliers(form, np.array([5.0]), np.zeros(3), np.zeros(3, bool))
    array([ 1. , -0.6, -0.8])
    """
    from scipy.optimize import lsq_linear

    y = np.where(known, y, 0.0)
    directions, signed = _directions(form, x, known)
    if not directions.shape[1] or directions.shape[1] * form.c.size > MAX_ENTRIES:
        return y
    design = np.asarray((form.A.T @ directions).toarray())
    target = -(form.curve(x) + form.c + form.A.T @ y)
    low = np.where(signed, 0.0, -np.inf)
    found = lsq_linear(design, target, (low, np.full(low.size, np.inf)), tol=1e-14)
    return np.asarray(y + directions @ found.x)


def _directions(form: ConeForm, x: FloatArray, known: Mask) -> tuple[sparse.csc_array, Mask]:
    """The rays and lines that multipliers of unknown rows lie in, and which are rays."""
    terms = np.abs(form.b) + abs(form.A) @ np.abs(x)
    s = form.b - form.A @ x
    cones = form.cones
    columns: list[tuple[npt.NDArray[np.intp], FloatArray]] = []
    signed: list[bool] = []
    for row in np.flatnonzero(~known[: cones.zero + cones.nonneg]):
        is_ray = bool(row >= cones.zero)
        if is_ray and not abs(s[row]) <= ACTIVE * (1 + terms[row]):
            continue
        columns.append((np.array([row]), np.ones(1)))
        signed.append(is_ray)
    for kind, rows, weights in _single_blocks(form):
        if known[rows].all():
            continue
        size = 1 + float(np.max(terms[rows]))
        with np.errstate(all="ignore"):
            vectors, are_rays = _complementary(kind, weights, s[rows], size)
        for vector in vectors:
            if np.isfinite(vector).all():
                columns.append((np.arange(rows.start, rows.stop), vector))
                signed.append(are_rays)
    if not columns:
        return sparse.csc_array((s.size, 0)), np.zeros(0, bool)
    row_of = np.concatenate([rows for rows, _ in columns])
    column_of = np.repeat(np.arange(len(columns)), [rows.size for rows, _ in columns])
    data = np.concatenate([vector for _, vector in columns])
    shape = (s.size, len(columns))
    return sparse.csc_array((data, (row_of, column_of)), shape=shape), np.array(signed)


def _complementary(
    kind: str, weights: Weights, s: FloatArray, size: float
) -> tuple[list[FloatArray], bool]:
    """Vectors of the dual cone that are complementary to s, and whether they are rays."""
    if kind == "psd":
        values, vectors = np.linalg.eigh(smat(s))
        null = vectors[:, values <= ACTIVE * size]
        order = order_of(s.size)
        products = [
            np.outer(null[:, i], null[:, j]) for i in range(null.shape[1]) for j in range(i + 1)
        ]
        return [svec((M + M.T) / 2) for M in products if M.shape == (order, order)], False
    if kind == "soc":
        norm = float(np.linalg.norm(s[1:]))
        if norm > ACTIVE * size:
            return [np.append(norm, -s[1:]) / norm], True
        # At the apex every multiplier is complementary; inside none is.
        return (list(np.eye(s.size)), False) if s[0] <= ACTIVE * size else ([], False)
    if kind == "exp":
        ratio = s[0] / s[1]
        return [np.array([-np.exp(ratio), -(1 - ratio) * np.exp(ratio), 1.0])], True
    e = exponents(weights)
    mean = float(np.prod(np.maximum(s[:-1], 0.0) ** e))
    return [np.append(e * mean / s[:-1], -np.sign(s[-1]))], True
