"""The product of cones that the slack of a cone program lies in: projections and distances.

The rows of K come in a fixed order:

    zero      s = 0                                                     dual: free
    nonneg    s >= 0                                                    dual: itself
    soc       s_0 >= ||(s_1, .., s_k)||                                 dual: itself
    psd       smat(s) is positive semidefinite                          dual: itself
    exp       s_2 >= s_1 exp(s_0 / s_1), s_1 > 0 (closure), three rows each
    power     s_1^a_1 .. s_k^a_k >= |s_{k+1}|, s_1 .. s_k >= 0 (`klopt.model.cones.power`)

Only projections P onto K are computed; those onto the dual cone K* = {y : y's >= 0 for all s in K}
follow from Moreau's decomposition  y = P*(y) - P(-y).
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Iterator, Mapping

import attrs
import numpy as np

from klopt.arrays import FloatArray
from klopt.errors import InvalidProblem
from klopt.model.cones.exponential import project_exponential
from klopt.model.cones.power import Weights, power_sizes, power_weights, project_power
from klopt.model.cones.svec import smat, svec, svec_size
from klopt.model.features import Feature

__all__ = ["Cones"]


def _count(name: str, value: object, what: str) -> int:
    """Return a nonnegative Python integer: a NumPy one is refused by SCS."""
    if not isinstance(value, numbers.Integral):
        raise InvalidProblem(f"{name} is {value!r}; expected a whole number")
    if value < 0:
        raise InvalidProblem(f"{name} is {value}; {what} cannot be negative")
    return int(value)


def _sizes(name: str, value: object) -> tuple[int, ...]:
    if not isinstance(value, Iterable):
        raise InvalidProblem(f"{name} is {value!r}; expected the sizes of the cones, such as (3,)")
    return tuple(_count(f"{name}[{index}]", size, "a size") for index, size in enumerate(value))


def _zero(value: int) -> int:
    return _count("cones.zero", value, "a number of rows")


def _nonneg(value: int) -> int:
    return _count("cones.nonneg", value, "a number of rows")


def _exp(value: int) -> int:
    return _count("cones.exp", value, "a number of rows")


def _soc(value: Iterable[int]) -> tuple[int, ...]:
    return _sizes("cones.soc", value)


def _psd(value: Iterable[int]) -> tuple[int, ...]:
    return _sizes("cones.psd", value)


@attrs.frozen(slots=False)
class Cones:
    """The product of cones that a slack vector lies in, in the order of the fields.

    Parameters
    ----------
    zero, nonneg:
        Numbers of rows.
    soc:
        Sizes of the second-order cones, each with its largest entry first.
    psd:
        Orders of the semidefinite cones, whose rows are those of `svec`.
    exp:
        Number of exponential cones of three rows each.
    power:
        Exponents of the power cones: a number alpha for (alpha, 1 - alpha), else as many positive
        numbers as there are, which are divided by their sum. They are kept as whole numbers.

    >>> K = Cones(nonneg=2, soc=(3,))
    >>> K.size
    5
    >>> K.project(np.array([-1.0, 2.0, 0.0, 3.0, 4.0]))
    array([0. , 2. , 2.5, 1.5, 2. ])
    """

    zero: int = attrs.field(default=0, converter=_zero)
    nonneg: int = attrs.field(default=0, converter=_nonneg)
    soc: tuple[int, ...] = attrs.field(default=(), converter=_soc)
    psd: tuple[int, ...] = attrs.field(default=(), converter=_psd)
    exp: int = attrs.field(default=0, converter=_exp)
    power: tuple[Weights, ...] = attrs.field(default=(), converter=power_weights)

    @property
    def size(self) -> int:
        """The number of rows."""
        psd_rows = sum(map(svec_size, self.psd))
        power_rows = sum(power_sizes(self.power))
        return self.zero + self.nonneg + sum(self.soc) + psd_rows + 3 * self.exp + power_rows

    @property
    def is_polyhedral(self) -> bool:
        """Whether there are zero and nonnegative rows only."""
        return not (self.soc or self.psd or self.exp or self.power)

    @property
    def is_symmetric(self) -> bool:
        """Whether all cones but the zero rows are symmetric: linear, second-order, semidefinite."""
        return not (self.exp or self.power)

    @property
    def features(self) -> frozenset[Feature]:
        """What a backend must offer to take these cones."""
        present = (
            (Feature.SOC, self.soc),
            (Feature.PSD, self.psd),
            (Feature.EXP, self.exp),
            (Feature.POWER, self.power),
            (Feature.GENERAL_POWER, any(len(weights) != 2 for weights in self.power)),
        )
        return frozenset(feature for feature, cone in present if cone)

    def blocks(self) -> Iterator[tuple[str, slice]]:
        """Yield (kind, rows) for each cone in order; kind is the field's name.

        All exponential cones are one block, and so are all power cones.
        """
        sizes = [
            ("zero", self.zero),
            ("nonneg", self.nonneg),
            *(("soc", size) for size in self.soc),
            *(("psd", svec_size(order)) for order in self.psd),
            ("exp", 3 * self.exp),
            ("power", sum(power_sizes(self.power))),
        ]
        start = 0
        for kind, size in sizes:
            if size:
                yield kind, slice(start, start + size)
            start += size

    def project(self, s: FloatArray) -> FloatArray:
        """Return the nearest point of K."""
        out = np.empty_like(s)
        for kind, rows in self.blocks():
            if kind == "power":
                out[rows] = project_power(self.power, s[rows])
            else:
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
        """Return the largest norm of the error over the single cones."""
        largest = 0.0
        for kind, rows in self.blocks():
            if kind == "power":
                heads = np.cumsum([0, *power_sizes(self.power)[:-1]])
                squares = np.add.reduceat(error[rows] ** 2, heads)
                largest = max(largest, float(np.sqrt(squares.max())))
            else:
                largest = max(largest, _norm(kind, error[rows]))
        return largest


def _norm(kind: str, error: FloatArray) -> float:
    # A block of zero or nonneg rows is one cone a row, a block of exp rows one cone every three.
    if kind in ("zero", "nonneg"):
        return float(np.abs(error).max())
    if kind == "exp":
        return float(np.linalg.norm(error.reshape(-1, 3), axis=1).max())
    return float(np.linalg.norm(error))


def _project_nonneg(s: FloatArray) -> FloatArray:
    return np.maximum(s, 0.0)


def _project_soc(s: FloatArray) -> FloatArray:
    head = s[0]
    tail = s[1:]
    norm = float(np.linalg.norm(tail))
    # s lies in K.
    if norm <= head:
        return s
    # s lies in the polar cone, whose nearest point of K is the apex.
    if norm <= -head:
        return np.zeros_like(s)
    height = (head + norm) / 2
    return np.concatenate(([height], tail * (height / norm)))


LARGE_ORDER = 200
"""From this order on it pays to ask first whether a matrix is definite."""


def _project_psd(s: FloatArray) -> FloatArray:
    M = smat(s)
    if len(M) >= LARGE_ORDER:
        # A factor costs a tenth of the eigenvalues, which a definite matrix does not need.
        if _has_cholesky_factor(M):
            return s
        if _has_cholesky_factor(-M):
            return np.zeros_like(s)
    lam, V = np.linalg.eigh(M)
    # s lies in K: no rounding is added to it.
    if lam[0] >= 0:
        return s
    kept = lam > 0
    half = V[:, kept] * np.sqrt(lam[kept])
    return svec(half @ half.T)


def _has_cholesky_factor(M: FloatArray) -> bool:
    try:
        np.linalg.cholesky(M)
    except np.linalg.LinAlgError:
        return False
    return True


def _project_exp(s: FloatArray) -> FloatArray:
    return project_exponential(s.reshape(-1, 3)).ravel()


_PROJECT: Mapping[str, Callable[[FloatArray], FloatArray]] = {
    "zero": np.zeros_like,
    "nonneg": _project_nonneg,
    "soc": _project_soc,
    "psd": _project_psd,
    "exp": _project_exp,
}
