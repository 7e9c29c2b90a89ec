"""Cones (zero, nonnegative, second-order, PSD, exponential): sizes, projections, distances, the one svec convention.

A `Cones` is the product K that the slack s = b - Ax of a cone program lies in. Its rows come in a
fixed order:

    zero          s = 0                              dual: free
    nonneg        s >= 0                             dual: itself
    soc           s_0 >= ||(s_1, .., s_k)||          dual: itself
    psd           smat(s) is positive semidefinite   dual: itself
    exp           s_2 >= s_1 exp(s_0 / s_1), s_1 > 0 (closure), three rows each

`svec` stacks the lower triangle by columns with off-diagonals times sqrt(2), so that <M, N> =
svec(M)'svec(N).
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import cast

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, freeze
from klopt.errors import InvalidProblem
from klopt.model.exponential_cone import project_exponential

__all__ = [
    "Cones",
    "Feature",
    "order_of",
    "smat",
    "svec",
    "svec_entries",
    "svec_index",
    "svec_places",
    "svec_size",
    "svec_weights",
]

IntArray = npt.NDArray[np.intp]


class Feature(StrEnum):
    """The whole vocabulary of what a form needs and a backend offers; the text is how a refusal names it.

    A form needs one shape, then what its parts ask for. A backend takes a form when it offers all
    of it.
    """

    CONE = "cone programs"
    SIMPLEX = "functions over simple sets"
    SADDLE = "saddle points"
    SPLIT = "saddle points that split into two proximal steps"
    EXPLICIT = "closed forms"
    # of a cone program
    QUADRATIC = "a quadratic objective"
    SOC = "second-order cones"
    PSD = "semidefinite cones"
    EXP = "exponential cones"
    # of a function over a simple set, exactly one of these or QUADRATIC
    LINEAR = "a linear objective"
    MARGIN = "a kernel-machine quadratic"
    SMOOTH = "a smooth function by oracle"
    CURVED = "a smooth function that knows its curvature"
    APPLIED = "a smooth function whose curvature can be applied and nearly inverted"
    NONSMOOTH = "a nonsmooth function by oracle"
    ROWS = "a dual function that moves one row at a time"
    # of a simple set other than the plain simplex
    BOX = "boxes cut by a plane"
    ORDERED = "ordered simplices"
    SPECTRAL = "spectrahedra"


def svec_size(order: int) -> int:
    """Return the number of entries of svec(M) for M of the given order."""
    return order * (order + 1) // 2


def order_of(size: int) -> int:
    """Return the order of the matrix whose svec has `size` entries."""
    order = int((np.sqrt(8.0 * size + 1.0) - 1.0) / 2.0 + 0.5)
    if svec_size(order) != size:
        raise InvalidProblem(
            f"{size} entries are no triangle; svec of an order-k matrix has k(k+1)/2"
        )
    return order


def svec(M: FloatArray) -> FloatArray:
    """Return the lower triangle of a symmetric matrix by columns, off-diagonals times sqrt(2).

    >>> svec(np.array([[1.0, 2.0], [2.0, 3.0]])).round(3)
    array([1.   , 2.828, 3.   ])
    """
    order = M.shape[0]
    rows, columns = svec_entries(order)
    return M[rows, columns] * svec_weights(order)


def smat(v: FloatArray) -> FloatArray:
    """Return the symmetric matrix whose `svec` is v.

    >>> smat(svec(np.array([[1.0, 2.0], [2.0, 3.0]]))).round(12)
    array([[1., 2.],
           [2., 3.]])
    """
    order = order_of(v.size)
    rows, columns = svec_entries(order)
    M = np.empty((order, order))
    M[rows, columns] = M[columns, rows] = v / svec_weights(order)
    return M


@lru_cache(maxsize=8)
def svec_entries(order: int) -> tuple[IntArray, IntArray]:
    """Return the rows and the columns of the entries of `svec`: the lower triangle by columns.

    >>> rows, columns = svec_entries(2)
    >>> rows, columns
    (array([0, 1, 1]), array([0, 0, 1]))
    """
    columns, rows = np.triu_indices(order)
    return freeze(rows), freeze(columns)


@lru_cache(maxsize=8)
def svec_weights(order: int) -> FloatArray:
    """Return what `svec` multiplies each entry by: 1 on the diagonal, sqrt(2) off it."""
    rows, columns = svec_entries(order)
    return freeze(np.where(rows == columns, 1.0, np.sqrt(2.0)))


def svec_index(row: IntArray, column: IntArray, order: int) -> IntArray:
    """Return the place in `svec` of the entries (row, column), above or below the diagonal.

    >>> svec_index(np.array([0, 1, 1]), np.array([0, 0, 1]), 2)
    array([0, 1, 2])
    """
    low = np.minimum(row, column)
    high = np.maximum(row, column)
    return cast(IntArray, low * order - low * (low - 1) // 2 + high - low)


def svec_places(order: int) -> IntArray:
    """Return the matrix whose entry (i, j) is the place of that entry in `svec`.

    >>> svec_places(2)
    array([[0, 1],
           [1, 2]])
    """
    rows, columns = svec_entries(order)
    places = np.empty((order, order), dtype=np.intp)
    places[rows, columns] = places[columns, rows] = np.arange(rows.size)
    return places


@dataclass(frozen=True)
class Cones:
    """The product of cones that a slack vector lies in, in the order of the fields.

    `zero` and `nonneg` count rows, `soc` lists the sizes of second-order cones (largest entry
    first), `psd` the orders of semidefinite ones (rows by `svec`), `exp` counts exponential cones
    of three rows each.

    >>> K = Cones(nonneg=2, soc=(3,))
    >>> K.size
    5
    >>> K.project(np.array([-1.0, 2.0, 0.0, 3.0, 4.0]))
    array([0. , 2. , 2.5, 1.5, 2. ])
    """

    zero: int = 0
    nonneg: int = 0
    soc: tuple[int, ...] = ()
    psd: tuple[int, ...] = ()
    exp: int = 0

    def __post_init__(self) -> None:
        for name in ("zero", "nonneg", "exp"):
            object.__setattr__(
                self, name, _count(f"cones.{name}", getattr(self, name), "a number of rows")
            )
        for name in ("soc", "psd"):
            sizes = getattr(self, name)
            if not isinstance(sizes, Iterable):
                raise InvalidProblem(
                    f"cones.{name} is {sizes!r}; expected the sizes of the cones, such as (3,)"
                )
            counts = (
                _count(f"cones.{name}[{index}]", size, "a size") for index, size in enumerate(sizes)
            )
            object.__setattr__(self, name, tuple(counts))

    @property
    def size(self) -> int:
        """The number of rows."""
        return (
            self.zero + self.nonneg + sum(self.soc) + sum(map(svec_size, self.psd)) + 3 * self.exp
        )

    @property
    def features(self) -> frozenset[Feature]:
        """What a backend must offer to take these cones."""
        present = ((Feature.SOC, self.soc), (Feature.PSD, self.psd), (Feature.EXP, self.exp))
        return frozenset(feature for feature, cone in present if cone)

    def blocks(self) -> Iterator[tuple[str, slice]]:
        """Yield (kind, rows) for each cone in order; kind is the field's name."""
        sizes = [("zero", self.zero), ("nonneg", self.nonneg), *(("soc", k) for k in self.soc)]
        sizes += [*(("psd", svec_size(k)) for k in self.psd), ("exp", 3 * self.exp)]
        start = 0
        for kind, size in sizes:
            if size:
                yield kind, slice(start, start + size)
            start += size

    def project(self, s: FloatArray) -> FloatArray:
        """Return the nearest point of K."""
        out = np.empty_like(s)
        for kind, rows in self.blocks():
            out[rows] = _PROJECT[kind](s[rows])
        return out

    def project_dual(self, y: FloatArray) -> FloatArray:
        """Return the nearest point of the dual cone K*, by Moreau: y + P_K(-y)."""
        return y + self.project(-y)

    def distance(self, s: FloatArray) -> float:
        """Return how far s is from K: the largest distance over the single cones."""
        return self._largest(s - self.project(s))

    def dual_distance(self, y: FloatArray) -> float:
        """Return how far y is from K*."""
        return self._largest(self.project(-y))

    def _largest(self, error: FloatArray) -> float:
        worst = 0.0
        for kind, rows in self.blocks():
            part = error[rows]
            if kind in ("zero", "nonneg"):
                worst = max(worst, float(np.abs(part).max()))
            elif kind == "exp":
                worst = max(worst, float(np.linalg.norm(part.reshape(-1, 3), axis=1).max()))
            else:
                worst = max(worst, float(np.linalg.norm(part)))
        return worst


def _project_soc(s: FloatArray) -> FloatArray:
    head, tail = s[0], s[1:]
    norm = float(np.linalg.norm(tail))
    if norm <= head:
        return s
    if norm <= -head:
        return np.zeros_like(s)
    height = (head + norm) / 2
    return np.concatenate(([height], tail * (height / norm)))


def _project_psd(s: FloatArray) -> FloatArray:
    values, vectors = np.linalg.eigh(smat(s))
    if values[0] >= 0:
        return s
    kept = vectors[:, values > 0] * np.sqrt(values[values > 0])
    return svec(kept @ kept.T)


_PROJECT: Mapping[str, Callable[[FloatArray], FloatArray]] = {
    "zero": np.zeros_like,
    "nonneg": lambda s: np.maximum(s, 0.0),
    "soc": _project_soc,
    "psd": _project_psd,
    "exp": lambda s: project_exponential(s.reshape(-1, 3)).ravel(),
}


def _count(name: str, value: object, what: str) -> int:
    """A Python integer: a NumPy one is refused by SCS."""
    if not isinstance(value, numbers.Integral):
        raise InvalidProblem(f"{name} is {value!r}; expected a whole number")
    if value < 0:
        raise InvalidProblem(f"{name} is {value}; {what} cannot be negative")
    return int(value)
