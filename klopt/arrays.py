"""Arrays checked once at the border: float64, finite, of the right shape, copied and frozen.

Everything behind these functions trusts its arrays: no backend ever sees a NaN, a duplicate sparse
entry or a caller's own memory. The caller's array is never modified and later changes to it have no
effect.

    vector, matrix, csc, symmetric, positive, ..      check one value under a given name
    as_vector, as_matrix, as_csc, as_symmetric, ..    do so for a field of an `attrs` class

An `as_..` is a converter: `c: FloatArray = attrs.field(converter=as_vector)` takes anything
array-like, holds a frozen vector, and a refusal names the field. `same_size("c")` is a validator:
the field has as many entries as c.
"""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import attrs
import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.errors import InvalidProblem

__all__ = [
    "EPS",
    "FAKE_INFINITY",
    "UNIT_ROUNDOFF",
    "FloatArray",
    "IntArray",
    "MatrixLike",
    "SparseMatrix",
    "accuracy_or_none",
    "as_bounds",
    "as_csc",
    "as_matrix",
    "as_number",
    "as_positive",
    "as_positive_integer",
    "as_symmetric",
    "as_vector",
    "csc",
    "flag",
    "freeze",
    "is_locked",
    "matrix",
    "positive",
    "positive_integer",
    "read_only",
    "reals",
    "refuse_masked",
    "require_memory",
    "require_shape",
    "require_size",
    "same_size",
    "scaled_to_one",
    "symmetric",
    "vector",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
SparseMatrix = sparse.csc_array
MatrixLike: TypeAlias = npt.ArrayLike | sparse.sparray | sparse.spmatrix

EPS = float(np.finfo(np.float64).eps)
"""The distance from 1 to the next float, 2^-52."""
UNIT_ROUNDOFF = EPS / 2
"""The largest relative error of one rounding to nearest, 2^-53."""

FAKE_INFINITY = 1e20
"""HiGHS and Clarabel read numbers from here on as infinite, SCS does not: nobody may mean them."""
MAX_ULPS_OF_ASYMMETRY = 64
"""The asymmetry of a small matrix that counts as rounding, in EPS times its largest entry."""
BLOCK_ORDER = 128
"""The order of blocks that are compared with their mirror images: two of them fit into a cache."""
ALWAYS_FREE_BYTES = 1e8
"""Memory that is always there: asking for less costs as much as solving a small problem."""


def freeze(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Make the array read-only and return a view of it.

    Unlike the array itself, the view cannot be made writable again.
    """
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
    """Whether nobody who holds the array can write it."""
    # Who holds an array that owns its data can make it writable; a view of a locked array, such as
    # `freeze` returns, stays locked.
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
    if size is not None:
        require_size(name, array, size)
    _refuse_not_finite(name, array, infinite)
    return cast(FloatArray, freeze(array))


def matrix(
    name: str, value: object, shape: tuple[int | None, int | None] = (None, None)
) -> FloatArray:
    """Return `value` as a frozen, C-ordered, finite float64 matrix.

    `None` in `shape` leaves a side free.
    """
    dense = cast(Any, value).toarray() if sparse.issparse(value) else value
    array = reals(name, dense)
    if array.ndim != 2:
        raise InvalidProblem(f"{name} has shape {array.shape}; expected a matrix (two dimensions)")
    require_shape(name, array.shape, shape)
    _refuse_not_finite(name, array, infinite=False)
    return cast(FloatArray, freeze(array))


def csc(
    name: str, value: object, shape: tuple[int | None, int | None] = (None, None)
) -> SparseMatrix:
    """Return `value` (dense or any sparse format) as a frozen, canonical, finite CSC matrix.

    Canonical means: sorted 32-bit indices, duplicates summed, no explicit zeros.

    >>> csc("A", [[1, 0], [0, 2]]).data
    array([1., 2.])
    """
    # A dense matrix is checked as such: its index and value are at hand for a message.
    if not sparse.issparse(value):
        dense = matrix(name, value, shape)
        return _frozen_csc(sparse.csc_array(dense))
    given = cast(Any, value)
    if given.dtype.kind not in "fiub":
        raise InvalidProblem(f"{name} has dtype {given.dtype}; expected real numbers")
    if given.ndim != 2:
        raise InvalidProblem(f"{name} has shape {given.shape}; expected a matrix (two dimensions)")
    require_shape(name, given.shape, shape)

    result = sparse.csc_array(given, dtype=np.float64, copy=True)
    bad = np.flatnonzero(~np.isfinite(result.data))
    if bad.size:
        first = bad[0]
        row = int(result.indices[first])
        # Column j holds the entries indptr[j] to indptr[j + 1] - 1.
        column = int(np.searchsorted(result.indptr, first, side="right") - 1)
        raise InvalidProblem(
            f"{name}[{row}, {column}] is {result.data[first]}; every entry must be a finite number"
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
    # Most matrices are exactly symmetric, and comparing them block by block is several times
    # cheaper than |M - M'|.
    uneven = [
        (rows, columns)
        for rows, columns in _mirrored_blocks(len(value))
        if not (value[rows, columns] == value[columns, rows].T).all()
    ]
    if not uneven:
        return value

    gap, row, column = max(_largest_gap(value, rows, columns) for rows, columns in uneven)
    largest_entry = max(value.max(), -value.min())
    # A sum of n products rounds n times: a product K'K of a large matrix is less symmetric.
    if gap > max(MAX_ULPS_OF_ASYMMETRY, len(value)) * EPS * largest_entry:
        row, column = sorted((row, column))
        raise InvalidProblem(
            f"{name} is not symmetric: {name}[{row}, {column}] = {value[row, column]} but "
            f"{name}[{column}, {row}] = {value[column, row]}; "
            f"pass ({name} + {name}.T) / 2 if that is meant"
        )

    result = value.copy()
    for rows, columns in uneven:
        mean = (value[rows, columns] + value[columns, rows].T) / 2
        result[rows, columns] = mean
        result[columns, rows] = mean.T
    return cast(FloatArray, freeze(result))


def accuracy_or_none(value: float | None) -> float | None:
    """Return the stated accuracy of a function, a nonnegative number, or None where none is stated.

    >>> accuracy_or_none(-1.0)
    Traceback (most recent call last):
    klopt.errors.InvalidProblem: accuracy is -1.0; expected a nonnegative number
    """
    return None if value is None else positive("accuracy", value, zero=True)


def positive(name: str, value: object, *, zero: bool = False, infinite: bool = False) -> float:
    """Return `value` as a positive float.

    With `zero` it may also be zero, with `infinite` also infinite.

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
    # NaN fails both comparisons.
    large_enough = number >= 0 if zero else number > 0
    if not large_enough or (np.isinf(number) and not infinite):
        raise InvalidProblem(f"{name} is {value}; expected a {kind} number")
    return number


def positive_integer(name: str, value: object) -> int:
    """Return `value` as an int of at least 1.

    >>> positive_integer("n", 0)
    Traceback (most recent call last):
    klopt.errors.InvalidProblem: n is 0; expected a whole number of at least 1
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise InvalidProblem(f"{name} is {value!r}; expected a whole number of at least 1")
    return int(value)


def flag(name: str, value: object) -> bool:
    """Return `value` as True or False and refuse everything else: a text would count as true.

    >>> flag("bias", "no")
    Traceback (most recent call last):
    klopt.errors.InvalidProblem: bias is 'no'; expected True or False
    """
    if not isinstance(value, bool | np.bool_):
        raise InvalidProblem(f"{name} is {value!r}; expected True or False")
    return bool(value)


def reals(name: str, value: object) -> FloatArray:
    """Return a float64, C-ordered copy of anything array-like that holds real numbers."""
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
    """Refuse masked entries: they are missing, and a plain array would hold what the mask covers.

    >>> refuse_masked("c", np.ma.masked_array([1.0, -99.0], [False, True]))
    Traceback (most recent call last):
    klopt.errors.InvalidProblem: c[1] is masked, that is missing; give every entry a number
    """
    # A list of masked rows becomes a plain array, too.
    if isinstance(value, list | tuple):
        for index, row in enumerate(value):
            if isinstance(row, np.ma.MaskedArray):
                refuse_masked(f"{name}[{index}]", row)
    elif isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        where = np.argwhere(np.ma.getmaskarray(value))[0].tolist() or ""
        raise InvalidProblem(f"{name}{where} is masked, that is missing; give every entry a number")


def scaled_to_one(values: FloatArray) -> tuple[FloatArray, int]:
    """Return values / 2^e and e, where the largest absolute value is between 1/2 and 1.

    The division is exact, and squares of the result do not overflow.

    >>> scaled_to_one(np.array([3.0, -6.0]))
    (array([ 0.375, -0.75 ]), 3)
    """
    _, power = np.frexp(np.abs(values).max(initial=0.0))
    exponent = int(power)
    return np.ldexp(values, -exponent), exponent


def require_memory(needed: float, what: str) -> None:
    """Refuse `what` before it is allocated when it needs more bytes than are free.

    >>> require_memory(1e18, "K of order 250000000")
    Traceback (most recent call last):
    klopt.errors.InvalidProblem: K of order 250000000 needs 1000000000.0 GB of memory; ...
    """
    if needed < ALWAYS_FREE_BYTES:
        return
    free = _free_memory()
    if needed > free:
        raise InvalidProblem(
            f"{what} needs {needed / 1e9:.1f} GB of memory; "
            f"{free / 1e9:.1f} GB are free; use less data"
        )


def require_size(name: str, array: npt.NDArray[Any], size: int) -> None:
    """Refuse an array that has not `size` entries.

    >>> require_size("c", np.zeros(2), 3)
    Traceback (most recent call last):
    klopt.errors.InvalidProblem: c has 2 entries; expected 3
    """
    if array.size != size:
        raise InvalidProblem(f"{name} has {array.size} entries; expected {size}")


def same_size(other: str) -> Callable[[Any, attrs.Attribute[Any], npt.NDArray[Any]], None]:
    """Return a validator of a field: it has as many entries as the field `other`."""

    def validate(instance: Any, field: attrs.Attribute[Any], value: npt.NDArray[Any]) -> None:
        require_size(field.name, value, getattr(instance, other).size)

    return validate


def require_shape(
    name: str, shape: tuple[int, ...], expected: tuple[int | None, int | None]
) -> None:
    """Refuse the shape of a matrix that is not the expected one; `None` leaves a side free.

    >>> require_shape("A", (2, 3), (3, 2))
    Traceback (most recent call last):
    klopt.errors.InvalidProblem: A is 2 x 3; expected 3 x 2; it looks transposed
    """
    sides = zip(shape, expected, strict=True)
    if all(want is None or have == want for have, want in sides):
        return
    wanted = " x ".join("any" if want is None else str(want) for want in expected)
    hint = "; it looks transposed" if shape[::-1] == expected else ""
    raise InvalidProblem(f"{name} is {shape[0]} x {shape[1]}; expected {wanted}{hint}")


if TYPE_CHECKING:
    # What a type checker reads of the converters below: what a field takes and what it holds. Its
    # plug-in for `attrs` knows functions of the value alone, not those that also see the field.

    def as_vector(value: npt.ArrayLike) -> FloatArray:
        """Take a frozen, finite vector."""
        ...

    def as_bounds(value: npt.ArrayLike) -> FloatArray:
        """Take a frozen vector whose entries may be infinite."""
        ...

    def as_matrix(value: MatrixLike) -> FloatArray:
        """Take a frozen, finite, dense matrix."""
        ...

    def as_symmetric(value: MatrixLike) -> FloatArray:
        """Take a frozen symmetric matrix."""
        ...

    def as_csc(value: MatrixLike) -> SparseMatrix:
        """Take a frozen, canonical CSC matrix."""
        ...

    def as_number(value: float) -> float:
        """Take a finite number."""
        ...

    def as_positive(value: float) -> float:
        """Take a positive number."""
        ...

    def as_positive_integer(value: int) -> int:
        """Take a whole number of at least 1."""
        ...

else:

    def _converter(check: Callable[[str, Any], Any]) -> Any:
        """Return a converter of a field: `check` of the field's name and value."""
        return attrs.Converter(lambda value, field: check(field.name, value), takes_field=True)

    as_vector = _converter(vector)
    as_bounds = _converter(lambda name, value: vector(name, value, infinite=True))
    as_matrix = _converter(matrix)
    as_symmetric = _converter(lambda name, value: symmetric(name, matrix(name, value)))
    as_csc = _converter(csc)
    as_number = _converter(lambda name, value: float(vector(name, [value])[0]))
    as_positive = _converter(positive)
    as_positive_integer = _converter(positive_integer)


def _free_memory() -> float:
    # Linux counts the caches that it would give back as free, which sysconf does not.
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            available = next(line for line in lines if line.startswith("MemAvailable:"))
            return 1024.0 * int(available.split()[1])
    except (OSError, StopIteration):
        pass
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return float("inf")


def _mirrored_blocks(size: int) -> Iterator[tuple[slice, slice]]:
    """The row and column ranges of blocks that cover the lower triangle."""
    for i in range(0, size, BLOCK_ORDER):
        for j in range(0, i + 1, BLOCK_ORDER):
            yield slice(i, i + BLOCK_ORDER), slice(j, j + BLOCK_ORDER)


def _largest_gap(value: FloatArray, rows: slice, columns: slice) -> tuple[float, int, int]:
    """The largest |M_ij - M_ji| over a block, and its i and j."""
    gap = np.abs(value[rows, columns] - value[columns, rows].T)
    i, j = divmod(int(np.argmax(gap)), gap.shape[1])
    return float(gap[i, j]), rows.start + i, columns.start + j


def _refuse_not_finite(name: str, array: npt.NDArray[Any], infinite: bool) -> None:
    """Refuse NaN and, unless `infinite`, infinite entries."""
    # One pass in the good case: a finite sum has finite terms. Where it is not finite a sum of
    # finite terms may have overflowed: then the entries are looked at.
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
    # Native solvers take 32-bit indices.
    result.data = freeze(result.data)
    result.indices = freeze(result.indices.astype(np.int32))
    result.indptr = freeze(result.indptr.astype(np.int32))
    return result
