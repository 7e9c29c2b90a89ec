"""Arrays checked once at the border: float64, finite, of the right shape, copied and frozen.

Everything behind these functions trusts its arrays: no backend ever sees a NaN, a duplicate sparse
entry or a caller's own memory. The caller's array is never modified and later changes to it have no
effect. SciPy's compiled code follows the indices of a sparse array without looking whether they lie
inside it, so they are looked at first.

    vector, matrix, csc, symmetric, positive, ..      check one value under a given name
    as_vector, as_matrix, as_csc, as_symmetric, ..    do so for a field of an `attrs` class

An `as_..` is a converter: `c: FloatArray = attrs.field(converter=as_vector)` takes anything
array-like, holds a frozen vector, and a refusal names the field. `same_size("c")` is a validator:
the field has as many entries as c.
"""

from __future__ import annotations

import numbers
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import attrs
import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.errors import InvalidProblem, InvalidSettings

__all__ = [
    "EPS",
    "FAKE_INFINITY",
    "MAX_INDEX",
    "MEMORY_VARIABLE",
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
    "bytes_of",
    "csc",
    "flag",
    "freeze",
    "frozen_csc",
    "is_locked",
    "matrix",
    "memory_budget",
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
    "sound_sparse",
    "sparse_of_parts",
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
"""Memory that is always there unless a limit is stated: to ask costs as much as a small solve."""
MAX_INDEX = 2**31 - 1
"""The largest index of a sparse matrix: native solvers take 32 bits."""
MEMORY_VARIABLE = "KLOPT_MEMORY_LIMIT"
"""The environment variable that says how much memory klopt may ask for at once: 500M, 8G."""

_BYTES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_AMOUNT = re.compile(r"(\d+\.?\d*|\.\d+)\s*([kmgt]?)i?b?")
_stated: ContextVar[float | None] = ContextVar("stated", default=None)
_share: ContextVar[float] = ContextVar("share", default=1.0)


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
    dense = _dense(name, value, shape) if sparse.issparse(value) else value
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
        return frozen_csc(sparse.csc_array(dense))
    result = sparse.csc_array(_real_sparse(name, value, shape))
    bad = np.flatnonzero(~np.isfinite(result.data))
    if bad.size:
        first = bad[0]
        row = int(result.indices[first])
        # Column j holds the entries indptr[j] to indptr[j + 1] - 1.
        column = int(np.searchsorted(result.indptr, first, side="right") - 1)
        raise InvalidProblem(
            f"{name}[{row}, {column}] is {result.data[first]}; every entry must be a finite number"
        )
    return frozen_csc(result)


def sound_sparse(name: str, value: object) -> Any:
    """Return a float64 copy of a sparse array whose indices and pointers are proven to lie inside it.

    It is in the format of the array, or for formats without arrays of indices in coordinates.

    >>> A = sparse.csc_array(([1.0, 2.0], [0, 1], [0, 1, 2]), shape=(2, 2))
    >>> A.indices[1] = 40
    >>> sound_sparse("A", A)
    Traceback (most recent call last):
    klopt.errors.InvalidProblem: A.indices[1] is 40; expected 0 to 1: the sparse array is corrupt; build it anew, ...
    """
    given = cast(Any, value)
    kind = given.format
    if kind in ("csc", "csr", "bsr"):
        _refuse_corrupt_pointers(name, given)
        return _COMPRESSED[kind](_parts(given), shape=given.shape)
    if kind == "lil":
        _refuse_corrupt_lists(name, given)
    elif kind == "dia":
        _refuse_corrupt_diagonals(name, given)
    try:
        coordinates = given if kind == "coo" else given.tocoo()
    except (IndexError, OverflowError, TypeError, ValueError) as error:
        raise _corrupt(name, None, f"a {kind} array: {error}", "sound indices") from None
    _refuse_corrupt_coordinates(name, coordinates)
    places = tuple(index.astype(np.int32) for index in coordinates.coords)
    data = np.array(coordinates.data, dtype=np.float64)
    return sparse.coo_array((data, places), shape=given.shape)


_COMPRESSED: dict[str, Any] = {
    "csc": sparse.csc_array,
    "csr": sparse.csr_array,
    "bsr": sparse.bsr_array,
}


def _parts(given: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    """Copies of data, indices and pointers, without room for entries that were never made."""
    used = int(given.indptr[-1])
    data = np.array(given.data[:used], dtype=np.float64)
    return data, given.indices[:used].astype(np.int32), given.indptr.astype(np.int32)


def sparse_of_parts(
    name: str,
    kind: Literal["csc", "csr"],
    data: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    indptr: npt.NDArray[Any],
    shape: npt.NDArray[Any],
) -> SparseMatrix:
    """Return the frozen CSC matrix of a CSC or CSR array that a file holds in parts.

    Parameters
    ----------
    name
        What error messages call it.
    kind
        How the parts are meant.
    data, indices, indptr, shape
        The attributes of the sparse array.

    >>> sparse_of_parts("A", "csr", *map(np.array, ([3.0], [1], [0, 1], [1, 2]))).toarray()
    array([[0., 3.]])
    """
    sides = tuple(_whole_numbers(f"{name}.shape", shape).ravel().tolist())
    if len(sides) != 2 or min(sides) < 0:
        raise _corrupt(f"{name}.shape", None, sides, "two sizes")
    given = SimpleNamespace(
        format=kind, data=data, indices=indices, indptr=indptr, shape=sides, dtype=data.dtype
    )
    given.ndim = 2
    return csc(name, _real_sparse(name, given, (None, None)))


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
    """Refuse `what` before it is allocated when it needs more bytes than it may have.

    That is what `memory_budget` says, else the environment variable KLOPT_MEMORY_LIMIT, else what
    is free.

    >>> require_memory(1e18, "K of order 250000000")
    Traceback (most recent call last):
    klopt.errors.InvalidProblem: K of order 250000000 needs 1000000000.0 GB of memory; ...
    """
    stated = _stated.get()
    text = os.environ.get(MEMORY_VARIABLE)
    # To look how much is free takes as long as reading a small file.
    if needed < ALWAYS_FREE_BYTES and stated is None and text is None:
        return
    if stated is not None:
        allowed, word = stated, "allowed"
    elif text is not None:
        allowed, word = _stated_in_environment(text), "allowed"
    else:
        allowed, word = _share.get() * _free_memory(), "free"
    if needed > allowed:
        raise InvalidProblem(
            f"{what} needs {_amount(needed)} of memory; {_amount(allowed)} are {word}; "
            f"use less data, or raise the limit (memory_limit, or {MEMORY_VARIABLE}=8G)"
        )


@contextmanager
def memory_budget(limit: float | None, share: float = 1.0) -> Iterator[None]:
    """Let nothing in the block that asks `require_memory` have more than `limit` bytes.

    Without a limit, nor one in KLOPT_MEMORY_LIMIT, it may have a share of what is free.

    >>> with memory_budget(1e6):
    ...     require_memory(1e7, "a matrix")
    Traceback (most recent call last):
    klopt.errors.InvalidProblem: a matrix needs 10.0 MB of memory; 1.0 MB are allowed; ...
    """
    of_limit = _stated.set(limit)
    of_share = _share.set(share)
    try:
        yield
    finally:
        _stated.reset(of_limit)
        _share.reset(of_share)


def _stated_in_environment(text: str) -> float:
    try:
        return bytes_of(text)
    except InvalidSettings as error:
        raise InvalidSettings(f"{MEMORY_VARIABLE}: {error}") from None


def bytes_of(text: str) -> int:
    """Return the bytes that a text like 500M or 2G means.

    >>> bytes_of("1.5G")
    1500000000
    """
    found = _AMOUNT.fullmatch(text.strip().lower())
    if found is None:
        raise InvalidSettings(f"{text!r} is no amount of memory; write bytes, or 500M, 2G")
    number, unit = found.groups()
    return int(float(number) * _BYTES[unit])


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


def _amount(size: float) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:.1f} MB"


def _free_memory() -> float:
    """The smallest of what the machine, the container and the limits of this process leave."""
    return min(_free_in_machine(), _free_in_container(), _free_in_process())


def _free_in_machine() -> float:
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


def _free_in_container() -> float:
    try:
        with open("/sys/fs/cgroup/memory.max", encoding="ascii") as most:
            limit = float(most.read())
        with open("/sys/fs/cgroup/memory.current", encoding="ascii") as used:
            return max(limit - float(used.read()), 0.0)
    except (OSError, ValueError):  # no container, or one without a limit ("max")
        return float("inf")


def _free_in_process() -> float:
    try:
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit == resource.RLIM_INFINITY:
            return float("inf")
        with open("/proc/self/statm", encoding="ascii") as pages:
            used = float(pages.read().split()[0]) * resource.getpagesize()
        return max(limit - used, 0.0)
    except (ImportError, OSError, ValueError):  # not Linux
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


def _real_sparse(name: str, value: object, shape: tuple[int | None, int | None]) -> Any:
    """A sparse array of real numbers and the expected shape whose indices are sound."""
    given = cast(Any, value)
    if given.dtype.kind not in "fiub":
        raise InvalidProblem(f"{name} has dtype {given.dtype}; expected real numbers")
    if given.ndim != 2:
        raise InvalidProblem(f"{name} has shape {given.shape}; expected a matrix (two dimensions)")
    require_shape(name, given.shape, shape)
    if max(given.shape) > MAX_INDEX:
        raise InvalidProblem(
            f"{name} is {given.shape[0]} x {given.shape[1]}; indices go up to {MAX_INDEX}; "
            "state a smaller problem"
        )
    # A matrix of few entries may have many columns, each with its pointer.
    require_memory(8.0 * (given.shape[0] + given.shape[1]), f"{name} of shape {given.shape}")
    return sound_sparse(name, given)


def _dense(name: str, value: object, shape: tuple[int | None, int | None]) -> FloatArray:
    """A sparse array with all its zeros."""
    given = _real_sparse(name, value, shape)
    rows, columns = given.shape
    require_memory(16.0 * rows * columns, f"{name}, {rows} x {columns}, with its zeros")
    return cast(FloatArray, given.toarray())


def _corrupt(name: str, index: object, found: object, expected: str) -> InvalidProblem:
    place = "" if index is None else f"[{index}]"
    return InvalidProblem(
        f"{name}{place} is {found}; expected {expected}: the sparse array is corrupt; "
        "build it anew, for instance from coordinates (scipy.sparse.coo_array)"
    )


def _refuse_corrupt_pointers(name: str, given: Any) -> None:
    """Refuse CSC, CSR and BSR arrays whose pointers or indices lead outside them."""
    rows, columns = given.shape
    dimensions = 1
    if given.format == "bsr":
        if given.data.ndim != 3:
            raise _corrupt(f"{name}.data.ndim", None, given.data.ndim, "3")
        height, width = given.data.shape[1:]
        if not (height and width) or rows % height or columns % width:
            raise _corrupt(f"{name}.blocksize", None, (height, width), "divisors of the shape")
        rows //= height
        columns //= width
        dimensions = 3
    lines, size = (columns, rows) if given.format == "csc" else (rows, columns)
    for part in ("indptr", "indices", "data"):
        array = getattr(given, part)
        wanted = dimensions if part == "data" else 1
        if not isinstance(array, np.ndarray) or array.ndim != wanted:
            raise _corrupt(f"{name}.{part}", None, type(array).__name__, f"{wanted} dimensions")
    indptr = _whole_numbers(f"{name}.indptr", given.indptr)
    indices = _whole_numbers(f"{name}.indices", given.indices)
    entries = len(given.data)
    if indptr.size != lines + 1:
        raise _corrupt(f"{name}.indptr.size", None, indptr.size, f"{lines + 1}")
    if indices.size != entries:
        raise _corrupt(f"{name}.indices.size", None, indices.size, f"{entries}, as data has")
    if indptr[0] != 0:
        raise _corrupt(f"{name}.indptr", 0, indptr[0], "0")
    falls = indptr[1:] < indptr[:-1]
    if falls.any():
        first = int(np.argmax(falls)) + 1
        raise _corrupt(f"{name}.indptr", first, indptr[first], f"{indptr[first - 1]} or more")
    used = int(indptr[-1])
    if used > entries:
        raise _corrupt(f"{name}.indptr", lines, used, f"at most {entries}, the number of entries")
    _refuse_outside(f"{name}.indices", indices[:used], size)


def _refuse_corrupt_coordinates(name: str, given: Any) -> None:
    if len(given.coords) != 2:
        raise _corrupt(f"{name}.coords", None, f"of length {len(given.coords)}", "2")
    for part, index, size in zip(("row", "col"), given.coords, given.shape, strict=True):
        _whole_numbers(f"{name}.{part}", index)
        if index.shape != given.data.shape or index.ndim != 1:
            raise _corrupt(f"{name}.{part}.shape", None, index.shape, f"{given.data.shape}")
        _refuse_outside(f"{name}.{part}", index, size)


def _refuse_corrupt_diagonals(name: str, given: Any) -> None:
    rows, columns = given.shape
    offsets = _whole_numbers(f"{name}.offsets", given.offsets)
    if given.data.ndim != 2 or offsets.shape != given.data.shape[:1]:
        raise _corrupt(f"{name}.data.shape", None, given.data.shape, f"{offsets.size} diagonals")
    for index, offset in enumerate(offsets.tolist()):
        if not -rows < offset < columns:
            raise _corrupt(f"{name}.offsets", index, offset, f"{1 - rows} to {columns - 1}")
    if np.unique(offsets).size < offsets.size:
        raise _corrupt(f"{name}.offsets", None, offsets.tolist(), "each diagonal once")


def _refuse_corrupt_lists(name: str, given: Any) -> None:
    rows, columns = given.shape
    if len(given.rows) != rows or len(given.data) != rows:
        found = (len(given.rows), len(given.data))
        raise _corrupt(f"{name}, its lists of rows and data", None, found, f"{rows} of each")
    for row, (index, values) in enumerate(zip(given.rows, given.data, strict=True)):
        if len(index) != len(values):
            raise _corrupt(f"{name}.rows", row, f"of length {len(index)}", f"{len(values)}")
        for column in index:
            if not isinstance(column, numbers.Integral) or not 0 <= int(column) < columns:
                raise _corrupt(f"{name}.rows", row, index, f"columns from 0 to {columns - 1}")


def _whole_numbers(name: str, array: Any) -> npt.NDArray[Any]:
    if array.dtype.kind not in "iu":
        raise _corrupt(f"{name}.dtype", None, array.dtype, "whole numbers")
    return cast(npt.NDArray[Any], array)


def _refuse_outside(name: str, indices: npt.NDArray[Any], size: int) -> None:
    if indices.size and (indices.min() < 0 or indices.max() >= size):
        first = int(np.argmax((indices < 0) | (indices >= size)))
        raise _corrupt(name, first, indices[first], f"0 to {size - 1}")


def frozen_csc(result: SparseMatrix) -> SparseMatrix:
    """Make a CSC matrix of finite numbers, which klopt itself has built, canonical and read-only.

    >>> frozen_csc(sparse.csc_array([[0.0, 2.0]])).data.flags.writeable
    False
    """
    result.sum_duplicates()
    result.eliminate_zeros()
    result.sort_indices()
    # Native solvers take 32-bit indices; the shape was compared with MAX_INDEX.
    if result.nnz > MAX_INDEX:
        raise InvalidProblem(f"a matrix has {result.nnz} entries; at most {MAX_INDEX} can be held")
    result.data = freeze(result.data)
    result.indices = freeze(result.indices.astype(np.int32, copy=False))
    result.indptr = freeze(result.indptr.astype(np.int32, copy=False))
    return result
