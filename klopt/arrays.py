"""Arrays checked once at the border: float64, finite, of the right shape, copied and frozen.

Everything behind these functions trusts its arrays: no backend ever sees a NaN, a duplicate sparse
entry or a caller's own memory. The caller's array is never modified and later changes to it have no
effect.
"""

from __future__ import annotations

import numbers
import os
from collections.abc import Iterator
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.errors import InvalidProblem

__all__ = [
    "EPS",
    "FAKE_INFINITY",
    "UNIT_ROUNDOFF",
    "FloatArray",
    "SparseMatrix",
    "csc",
    "flag",
    "freeze",
    "is_locked",
    "matrix",
    "positive",
    "read_only",
    "reals",
    "refuse_masked",
    "require_memory",
    "scaled_to_one",
    "symmetric",
    "vector",
]

FloatArray = npt.NDArray[np.float64]
SparseMatrix = sparse.csc_array
MatrixLike: TypeAlias = npt.ArrayLike | sparse.sparray | sparse.spmatrix

EPS = float(np.finfo(np.float64).eps)
"""The distance from 1 to the next float, 2^-52."""
UNIT_ROUNDOFF = EPS / 2
"""The largest relative error of one rounding to nearest, 2^-53."""

# HiGHS and Clarabel read numbers this large as infinite, SCS does not: nobody may mean them.
FAKE_INFINITY = 1e20


def freeze(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Make the array read-only and return a view of it, which, unlike the array, cannot be unlocked again."""
    array.flags.writeable = False
    return array.view()


def read_only(value: npt.ArrayLike) -> FloatArray:
    """Return a float64 array as one that nobody can write: itself if it is so already, else a copy.

    >>> mine = np.zeros(2)
    >>> theirs = read_only(mine)
    >>> theirs.flags.writeable, mine.flags.writeable, read_only(theirs) is theirs
    (False, True, True)
    """
    if isinstance(value, np.ndarray) and value.dtype == np.float64 and is_locked(value):
        return value
    return cast(FloatArray, freeze(np.array(value, dtype=float)))


def is_locked(array: npt.NDArray[Any]) -> bool:
    """Whether nobody who holds the array can write it: a view, as `freeze` returns, of a locked array."""
    base = array.base
    if array.flags.writeable or not isinstance(base, np.ndarray):
        return False
    return not base.flags.writeable


def vector(
    name: str, value: object, size: int | None = None, *, infinite: bool = False
) -> FloatArray:
    """Return `value` as a frozen float64 vector of the given size.

    Infinities are refused unless `infinite`; NaN always.

    >>> vector("c", [1, 2, 3], 3)
    array([1., 2., 3.])
    >>> vector("c", [1.0, float("nan")])
    Traceback (most recent call last):
    klopt.errors.InvalidProblem: c[1] is nan; every entry must be a finite number
    """
    array = reals(name, value)
    if array.ndim != 1:
        raise InvalidProblem(f"{name} has shape {array.shape}; expected a vector (one dimension)")
    if size is not None and array.size != size:
        raise InvalidProblem(f"{name} has {array.size} entries; expected {size}")
    _refuse_non_numbers(name, array, infinite)
    return cast(FloatArray, freeze(array))


def matrix(
    name: str, value: object, shape: tuple[int | None, int | None] = (None, None)
) -> FloatArray:
    """Return `value` as a frozen, C-ordered, finite float64 matrix; `None` in `shape` leaves a side free."""
    array = reals(name, cast(Any, value).toarray() if sparse.issparse(value) else value)
    if array.ndim != 2:
        raise InvalidProblem(f"{name} has shape {array.shape}; expected a matrix (two dimensions)")
    _expect_shape(name, array.shape, shape)
    _refuse_non_numbers(name, array, infinite=False)
    return cast(FloatArray, freeze(array))


def csc(
    name: str, value: object, shape: tuple[int | None, int | None] = (None, None)
) -> SparseMatrix:
    """Return `value` (dense or any sparse format) as a frozen, canonical, finite CSC matrix.

    Canonical means: sorted 32-bit indices, duplicates summed, no explicit zeros.

    >>> csc("A", [[1, 0], [0, 2]]).data
    array([1., 2.])
    """
    if not sparse.issparse(value):
        dense = matrix(name, value, shape)
        return _frozen_csc(sparse.csc_array(dense))
    given = cast(Any, value)
    if given.dtype.kind not in "fiub":
        raise InvalidProblem(f"{name} has dtype {given.dtype}; expected real numbers")
    if given.ndim != 2:
        raise InvalidProblem(f"{name} has shape {given.shape}; expected a matrix (two dimensions)")
    _expect_shape(name, given.shape, shape)
    result = sparse.csc_array(given, dtype=np.float64, copy=True)
    bad = np.flatnonzero(~np.isfinite(result.data))
    if bad.size:
        row, column = (
            int(result.indices[bad[0]]),
            int(np.searchsorted(result.indptr, bad[0], side="right") - 1),
        )
        raise InvalidProblem(
            f"{name}[{row}, {column}] is {result.data[bad[0]]}; every entry must be a finite number"
        )
    return _frozen_csc(result)


def symmetric(name: str, value: FloatArray) -> FloatArray:
    """Return the symmetric part of a square matrix, refusing asymmetry beyond rounding.

    >>> symmetric("P", np.array([[1.0, 2.0], [0.0, 1.0]]))
    Traceback (most recent call last):
    klopt.errors.InvalidProblem: P is not symmetric: P[0, 1] = 2.0 but P[1, 0] = 0.0; pass (P + P.T) / 2 if that is ...
    """
    if value.shape[0] != value.shape[1]:
        raise InvalidProblem(f"{name} has shape {value.shape}; expected a square matrix")
    # Most matrices are exactly symmetric, and comparing block by block is several times cheaper
    # than |M - M'|.
    uneven = [
        (rows, columns)
        for rows, columns in _mirrored_blocks(len(value))
        if not (value[rows, columns] == value[columns, rows].T).all()
    ]
    if not uneven:
        return value
    gap, row, column = max(_largest_gap(value, rows, columns) for rows, columns in uneven)
    if gap > max(64, len(value)) * np.finfo(float).eps * max(value.max(), -value.min()):
        row, column = sorted((row, column))
        raise InvalidProblem(
            f"{name} is not symmetric: {name}[{row}, {column}] = {value[row, column]} but "
            f"{name}[{column}, {row}] = {value[column, row]}; pass ({name} + {name}.T) / 2 if that is meant"
        )
    result = value.copy()
    for rows, columns in uneven:
        mean = (value[rows, columns] + value[columns, rows].T) / 2
        result[rows, columns], result[columns, rows] = mean, mean.T
    return cast(FloatArray, freeze(result))


def positive(name: str, value: object, *, zero: bool = False, infinite: bool = False) -> float:
    """Return `value` as a positive float (or nonnegative with `zero`, or possibly infinite with `infinite`).

    >>> positive("C", -1)
    Traceback (most recent call last):
    klopt.errors.InvalidProblem: C is -1; expected a positive number
    """
    kind = "nonnegative" if zero else "positive"
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidProblem(f"{name} is {value!r}; expected a {kind} number")
    try:
        number = float(value)
    except OverflowError:  # a whole number with too many digits to be shown
        raise InvalidProblem(
            f"{name} is beyond the range of floats; expected a {kind} number"
        ) from None
    if (
        np.isnan(number)
        or number < 0
        or (number == 0 and not zero)
        or (np.isinf(number) and not infinite)
    ):
        raise InvalidProblem(f"{name} is {value}; expected a {kind} number")
    return number


def flag(name: str, value: object) -> bool:
    """Return `value` as True or False, refusing everything else: a text such as "no" would count as true.

    >>> flag("bias", "no")
    Traceback (most recent call last):
    klopt.errors.InvalidProblem: bias is 'no'; expected True or False
    """
    if not isinstance(value, bool | np.bool_):
        raise InvalidProblem(f"{name} is {value!r}; expected True or False")
    return bool(value)


def reals(name: str, value: object) -> FloatArray:
    """Return a float64, C-ordered copy, of any shape, of anything array-like that holds real numbers."""
    refuse_masked(name, value)
    try:
        raw = np.asarray(value)
    except ValueError as error:
        raise InvalidProblem(f"{name} is ragged: {error}; give rows of one length") from None
    if raw.dtype.kind not in "fiub":
        raise InvalidProblem(f"{name} has dtype {raw.dtype}; expected real numbers")
    require_memory(8.0 * raw.size, f"{name} of shape {raw.shape}")
    return np.array(raw, dtype=np.float64, order="C", copy=True)


def refuse_masked(name: str, value: object) -> None:
    """Refuse masked entries: they are missing, and a plain array would bring back what lies under the mask.

    >>> refuse_masked("c", np.ma.masked_array([1.0, -99.0], [False, True]))
    Traceback (most recent call last):
    klopt.errors.InvalidProblem: c[1] is masked, that is missing; give every entry a number
    """
    if isinstance(value, list | tuple):
        for index, row in enumerate(value):
            if isinstance(row, np.ma.MaskedArray):
                refuse_masked(f"{name}[{index}]", row)
    elif isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        where = np.argwhere(np.ma.getmaskarray(value))[0].tolist() or ""
        raise InvalidProblem(f"{name}{where} is masked, that is missing; give every entry a number")


def scaled_to_one(values: FloatArray) -> tuple[FloatArray, int]:
    """Return values / 2^e and e, with the largest size between 1/2 and 1: exact, and squares stay within floats.

    >>> scaled_to_one(np.array([3.0, -6.0]))
    (array([ 0.375, -0.75 ]), 3)
    """
    exponent = int(np.frexp(np.abs(values).max(initial=0.0))[1])
    return np.ldexp(values, -exponent), exponent


def require_memory(needed: float, what: str) -> None:
    """Refuse `what` before anything of it is allocated when it needs more bytes than the machine has free.

    >>> require_memory(1e18, "K of order 250000000")
    Traceback (most recent call last):
    klopt.errors.InvalidProblem: K of order 250000000 needs 1000000000.0 GB of memory; ...
    """
    if needed < 1e8:  # always there, and asking costs as much as solving a small problem
        return
    free = _free_memory()
    if needed > free:
        raise InvalidProblem(
            f"{what} needs {needed / 1e9:.1f} GB of memory; {free / 1e9:.1f} GB are free; use less data"
        )


def _free_memory() -> float:
    try:
        with open(
            "/proc/meminfo", encoding="ascii"
        ) as lines:  # counts caches as free, which sysconf does not
            return next(
                1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")
            )
    except (OSError, StopIteration):
        pass
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return float("inf")


def _mirrored_blocks(size: int) -> Iterator[tuple[slice, slice]]:
    """Row and column ranges that cover the lower triangle; a block and its mirror fit into a cache together."""
    starts = range(0, size, 128)
    return ((slice(i, i + 128), slice(j, j + 128)) for i in starts for j in starts if j <= i)


def _largest_gap(value: FloatArray, rows: slice, columns: slice) -> tuple[float, int, int]:
    """The largest |M_ij - M_ji| over a block, and its i and j."""
    gap = np.abs(value[rows, columns] - value[columns, rows].T)
    i, j = divmod(int(np.argmax(gap)), gap.shape[1])
    return float(gap[i, j]), rows.start + i, columns.start + j


def _expect_shape(name: str, got: tuple[int, ...], shape: tuple[int | None, int | None]) -> None:
    if any(want is not None and want != have for want, have in zip(shape, got, strict=True)):
        wanted = " x ".join("any" if want is None else str(want) for want in shape)
        hint = "; it looks transposed" if got[::-1] == shape else ""
        raise InvalidProblem(f"{name} is {got[0]} x {got[1]}; expected {wanted}{hint}")


def _refuse_non_numbers(name: str, array: npt.NDArray[Any], infinite: bool) -> None:
    # One pass in the good case: a sum is finite only if no entry is NaN or infinite (or it
    # overflows, then we look).
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(array.sum()):
            return
    bad = np.isnan(array) if infinite else ~np.isfinite(array)
    if bad.any():
        where = np.unravel_index(int(np.argmax(bad)), array.shape)
        kind = "a number" if infinite else "a finite number"
        raise InvalidProblem(
            f"{name}{[int(i) for i in where]} is {array[where]}; every entry must be {kind}"
        )


def _frozen_csc(result: SparseMatrix) -> SparseMatrix:
    result.sum_duplicates()
    result.eliminate_zeros()
    result.sort_indices()
    result.data = freeze(result.data)
    result.indices, result.indptr = (
        freeze(result.indices.astype(np.int32)),
        freeze(result.indptr.astype(np.int32)),
    )
    return result
