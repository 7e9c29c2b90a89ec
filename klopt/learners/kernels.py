"""A small vocabulary of kernels, alone or in stacks, on all columns or on groups of them.

    linear()                x'y
    poly(2)                 (gamma x'y + coef0)^degree
    rbf(0.1)                exp(-gamma ||x - y||^2)
    rbf([0.01, 0.1, 1])     three of them

gamma "scale" is 1 / (columns x variance of the data), as in scikit-learn's `SVC`; four times it is
written "4 scale". It becomes a number when a kernel is fixed on training points, so that new points
see the same kernel. `columns` is anything that picks columns: a slice, a list of numbers, or a list
of names where the data have names.

A stack of kernels has the shape (points, points, kernels), kernels last: only so can scikit-learn's
cross-validation cut it. It is filled in blocks of rows, in float32 where half the memory matters
more than digits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self, TypeAlias, cast, overload

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.metrics.pairwise import linear_kernel, pairwise_kernels, polynomial_kernel, rbf_kernel

from klopt.arrays import FloatArray
from klopt.errors import InvalidProblem
from klopt.kernels.gram import Gram, Repair
from klopt.kernels.rbf import gamma_scale, gaussians

__all__ = [
    "Kernel",
    "LinearKernel",
    "Polynomial",
    "Radial",
    "as_kernel",
    "blocks",
    "flat",
    "linear",
    "poly",
    "rbf",
    "stack",
]

Columns: TypeAlias = "slice | Sequence[int] | Sequence[str] | None"
Width: TypeAlias = float | str

BLOCK_BYTES = 1 << 26
"""Bytes of a kernel that are computed at a time."""


class Kernel(BaseEstimator):  # type: ignore[misc]
    """A kernel as a description; `fix` makes it a function of points.

    >>> kernel = rbf("scale").fix(np.array([[0.0], [2.0]]))
    >>> kernel, kernel([[0.0]], [[1.0]]).round(4)
    (Radial(gamma=1.0), array([[0.3679]]))
    """

    gamma: Width
    columns: Columns

    is_positive = True
    """Whether it is positive semidefinite on any points: then negative eigenvalues are rounding."""

    @property
    def name(self) -> str:
        """The name of the kernel in tables."""
        if self.columns is None:
            return self._word()
        return self._word() + _columns_word(self.columns)

    def fix(
        self,
        X: npt.ArrayLike,
        names: Sequence[str] | None = None,
        weights: FloatArray | None = None,
    ) -> Self:
        """Return the same kernel with gamma and columns fixed as numbers on training points.

        Parameters
        ----------
        X, names
            The points, and the names of their columns where they have some.
        weights
            How often each point counts for "scale"; None for once.
        """
        points = _rows(X)
        columns = _fixed_columns(self.columns, points.shape[1], names)
        given = self.get_params() | {"columns": columns}
        if "gamma" in given:
            used = points if columns is None else points[:, columns]
            given["gamma"] = _fixed_width(self.gamma, used, weights)
        return type(self)(**given)

    def __call__(self, X: npt.ArrayLike, Y: npt.ArrayLike | None = None) -> FloatArray:
        """Return the kernel of the rows of X with those of Y, by default with themselves."""
        left = self.seen(X)
        return self._values(left, None if Y is None else self.seen(Y))

    def repair(self) -> Repair | None:
        """Return the repair of its matrices: clipping where negative eigenvalues are rounding."""
        return "clip" if self.is_positive else None

    def gram(self, X: npt.ArrayLike, name: str) -> Gram:
        """Return the checked matrix of the rows of X."""
        return Gram.of(self(X), name, self.repair())

    def seen(self, X: npt.ArrayLike) -> FloatArray:
        """Return the columns that it is a kernel of."""
        points = _rows(X)
        if self.columns is None:
            return cast(FloatArray, points)
        some: Any = points[:, cast(Any, self.columns)]
        return cast(FloatArray, np.ascontiguousarray(some) if _is_dense(some) else some)

    def _word(self) -> str:
        raise NotImplementedError

    def _values(self, X: FloatArray, Y: FloatArray | None) -> FloatArray:
        raise NotImplementedError


class LinearKernel(Kernel):
    """x'y."""

    def __init__(self, columns: Columns = None) -> None:
        self.columns = columns

    def _word(self) -> str:
        return "linear"

    def _values(self, X: FloatArray, Y: FloatArray | None) -> FloatArray:
        return cast(FloatArray, linear_kernel(X, Y))


class Polynomial(Kernel):
    """(gamma x'y + coef0)^degree."""

    def __init__(
        self, degree: int = 2, gamma: Width = "scale", coef0: float = 1.0, columns: Columns = None
    ) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.columns = columns

    @property
    def is_positive(self) -> bool:  # type: ignore[override]
        # Products and nonnegative sums of kernels are kernels (Schur).
        return self.coef0 >= 0

    def _word(self) -> str:
        return f"poly({self.degree})"

    def _values(self, X: FloatArray, Y: FloatArray | None) -> FloatArray:
        return cast(
            FloatArray,
            polynomial_kernel(X, Y, degree=self.degree, gamma=self.gamma, coef0=self.coef0),
        )


class Radial(Kernel):
    """exp(-gamma ||x - y||^2)."""

    def __init__(self, gamma: Width = "scale", columns: Columns = None) -> None:
        self.gamma = gamma
        self.columns = columns

    def _word(self) -> str:
        gamma = self.gamma if isinstance(self.gamma, str) else format(self.gamma, ".3g")
        return f"rbf({gamma})"

    def _values(self, X: FloatArray, Y: FloatArray | None) -> FloatArray:
        if Y is None:
            return gaussians(X, [cast(float, self.gamma)])[0][0]
        if not (_is_dense(X) and _is_dense(Y)):
            return cast(FloatArray, rbf_kernel(X, Y, gamma=self.gamma))
        centre = Y.mean(axis=0)  # distances by inner products lose digits far from the origin
        return cast(FloatArray, rbf_kernel(X - centre, Y - centre, gamma=self.gamma))

    def gram(self, X: npt.ArrayLike, name: str) -> Gram:
        """Return the matrix of the rows of X, positive semidefinite by construction."""
        if not _is_dense(X):
            return Gram.gaussian(*gaussians(self.seen(X), [cast(float, self.gamma)])[0])
        return Gram.rbf(self.seen(X), cast(float, self.gamma))


class _Foreign(Kernel):
    """A name that scikit-learn knows, or a function of two sets of points."""

    is_positive = False

    def __init__(self, function: Any, columns: Columns = None) -> None:
        self.function = function
        self.columns = columns

    def _word(self) -> str:
        return str(getattr(self.function, "__name__", self.function))

    def _values(self, X: FloatArray, Y: FloatArray | None) -> FloatArray:
        if isinstance(self.function, str):
            return cast(FloatArray, pairwise_kernels(X, Y, metric=self.function))
        return np.asarray(self.function(X, X if Y is None else Y), dtype=float)


def _rows(X: Any) -> Any:
    """Points by rows: an array, or a sparse matrix as it is."""
    return np.asarray(X) if _is_dense(X) else X.tocsr()


def _is_dense(X: Any) -> bool:
    return not sparse.issparse(X)


def linear(columns: Columns = None) -> LinearKernel:
    """Return x'y.

    >>> linear(columns=[0])([[2.0, 9.0]], [[3.0, 9.0]])
    array([[6.]])
    """
    return LinearKernel(columns)


def poly(
    degree: int = 2, gamma: Width = "scale", coef0: float = 1.0, columns: Columns = None
) -> Polynomial:
    """Return (gamma x'y + coef0)^degree.

    Parameters
    ----------
    degree
        The degree of the polynomial.
    gamma
        The factor of the inner product: a number, "scale", or a multiple such as "4 scale".
    coef0
        The constant term; below 0 the kernel may be indefinite.
    columns
        The columns that it is a kernel of; None for all.

    >>> poly(2, gamma=1.0)([[1.0]], [[2.0]])
    array([[9.]])
    """
    return Polynomial(degree, gamma, coef0, columns)


@overload
def rbf(gamma: Width = "scale", columns: Columns = None) -> Radial: ...
@overload
def rbf(gamma: Sequence[Width], columns: Columns = None) -> list[Radial]: ...
def rbf(gamma: Width | Sequence[Width] = "scale", columns: Columns = None) -> Radial | list[Radial]:
    """Return exp(-gamma ||x - y||^2), or one for each of several gammas.

    >>> [kernel.name for kernel in rbf(["0.25 scale", "4 scale"], columns=slice(0, 2))]
    ['rbf(0.25 scale)[0:2]', 'rbf(4 scale)[0:2]']
    """
    # A text is a sequence, too, but one width.
    if isinstance(gamma, str) or np.isscalar(gamma):
        return Radial(cast(Width, gamma), columns)
    widths: Any = gamma
    return [Radial(width, columns) for width in widths]


def as_kernel(given: object) -> Kernel:
    """Return the kernel that a name, a function of two sets of points or a kernel stands for.

    Names are "rbf", "linear", "poly" and those of scikit-learn's `pairwise_kernels`.

    >>> as_kernel("rbf").name, as_kernel("laplacian").name
    ('rbf(scale)', 'laplacian')
    """
    if isinstance(given, Kernel):
        return given
    words = {"rbf": Radial, "linear": LinearKernel, "poly": Polynomial}
    if isinstance(given, str) and given in words:
        return cast(Kernel, words[given]())
    if isinstance(given, str) or callable(given):
        return _Foreign(given)
    raise InvalidProblem(
        f"kernel is {given!r}; expected a name, a function, or rbf(), poly(), linear()"
    )


def flat(given: object) -> list[Kernel]:
    """Return a list of kernels from what was given: one, or a list whose members may be lists.

    >>> [kernel.name for kernel in flat([linear(), rbf([0.1, 1.0])])]
    ['linear', 'rbf(0.1)', 'rbf(1)']
    """
    if isinstance(given, str | Kernel) or not isinstance(given, Iterable):
        return [as_kernel(given)]
    return [kernel for member in given for kernel in flat(member)]


def stack(
    kernels: object,
    X: npt.ArrayLike,
    Y: npt.ArrayLike | None = None,
    dtype: npt.DTypeLike = np.float64,
) -> npt.NDArray[Any]:
    """Return the kernels of the rows of X with those of Y in one array, kernels last.

    Parameters
    ----------
    kernels
        One kernel or a list of them.
    X
        Points, one in each row.
    Y
        The points that gamma and columns are fixed on, by default X.
    dtype
        Of the result; float32 takes half the memory.

    >>> stack([linear(), poly(2, gamma=1.0)], [[1.0], [2.0]])[:, :, 1]
    array([[ 4.,  9.],
           [ 9., 25.]])
    """
    points = np.asarray(X)
    others = points if Y is None else np.asarray(Y)
    fixed = [kernel.fix(others) for kernel in flat(kernels)]
    found = np.empty((len(points), len(others), len(fixed)), dtype=dtype)
    for rows in blocks(len(points), 8 * len(others)):
        for index, kernel in enumerate(fixed):
            found[rows, :, index] = kernel(points[rows], others)
    return found


def blocks(count: int, size: int) -> Iterator[slice]:
    """Return slices of `count` rows of `size` bytes each, up to `BLOCK_BYTES` in a slice."""
    rows = max(1, BLOCK_BYTES // max(size, 1))
    return (slice(start, min(start + rows, count)) for start in range(0, count, rows))


def _fixed_width(gamma: Width, points: FloatArray, weights: FloatArray | None = None) -> float:
    """gamma as a number: "scale" and its multiples depend on the points."""
    factor: Width = gamma
    rest = ""
    if isinstance(gamma, str):
        factor, _, rest = gamma.rpartition("scale")
    try:
        # Words after "scale" make no sense; an empty factor is 1.
        times = float(factor or 1.0) if not rest else np.nan
    except (TypeError, ValueError):
        times = np.nan
    if not 0 < times < np.inf:
        raise InvalidProblem(
            f"gamma is {gamma!r}; expected a positive number, 'scale', or like '0.5 scale'"
        )
    return times * gamma_scale(points, weights) if isinstance(gamma, str) else times


def _fixed_columns(columns: Columns, width: int, names: Sequence[str] | None) -> list[int] | None:
    if columns is None:
        return None
    picked: Any = columns
    if not isinstance(columns, slice):
        picked = [_place(column, names) for column in _listed(columns)]
    try:
        found = np.arange(width)[picked]
    except IndexError:
        raise InvalidProblem(
            f"columns is {columns!r}; the data have {width} columns, from 0 to {width - 1}"
        ) from None
    if not found.size:
        raise InvalidProblem(f"columns is {columns!r}, which picks none of the {width} columns")
    return cast(list[int], found.tolist())


def _listed(columns: object) -> list[object]:
    if isinstance(columns, str | int | np.integer):
        return [columns]
    return list(cast(Iterable[object], columns))


def _place(column: object, names: Sequence[str] | None) -> object:
    """The number of a column that is given by its number or its name."""
    if not isinstance(column, str):
        return column
    if names is None or column not in names:
        known = "the data have no names"
        if names is not None:
            known = f"there are {', '.join(map(str, names))}"
        raise InvalidProblem(f"columns has {column!r}; {known}")
    return list(names).index(column)


def _columns_word(columns: Columns) -> str:
    if isinstance(columns, slice):
        ends = (columns.start, columns.stop)
        return f"[{':'.join('' if end is None else str(end) for end in ends)}]"
    return f"[{', '.join(map(str, _listed(columns)))}]"
