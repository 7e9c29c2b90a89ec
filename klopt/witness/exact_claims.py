"""Problems and the vectors that prove their optima in fractions, as certificates hold them.

A cone program is built row by row from exact numbers. A saddle program has two of them, one for each
player, and terms that couple them:

    min over x, max over y of   f(x) + x'My - g(y) - sum_p y'Q_p(x)y / (2 d_p)

Q_p(x) = sum_k x_k Q_pk, and d_p is 1 or a variable of y. If y is played a cone program in x is left,
whose multipliers bound the value from below, and if x is played one in y, which bounds it from above.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np

from klopt.arrays import EPS, FloatArray
from klopt.errors import NotCertified

__all__ = [
    "ConeData",
    "ConeVectors",
    "EnergyData",
    "ExactClaim",
    "GraphData",
    "LevelData",
    "LogDet",
    "Part",
    "SaddleData",
    "SaddleVectors",
    "factor_below",
    "fractions",
    "long_factor",
    "lower_entries",
    "negativity",
    "product",
]

SHIFTS = (4096.0, 256.0, 16.0, 1.0)
"""Multiples of the expected rounding by which a matrix is made smaller before it is factored."""

Number = Fraction | int | float
Vector = list[Fraction]
Entries = list[tuple[int, int, Fraction]]
Rows = list[Vector]


def fractions(values: Any) -> Vector:
    """Return numbers as the fractions that they are.

    >>> fractions([0.5, 2])
    [Fraction(1, 2), Fraction(2, 1)]
    """
    given = values.tolist() if isinstance(values, np.ndarray) else values
    return [Fraction(value) for value in given]


def lower_entries(matrix: FloatArray) -> Entries:
    """Return the entries of the lower triangle that are not 0, column by column."""
    n = len(matrix)
    return [
        (i, j, Fraction(float(matrix[i, j]))) for j in range(n) for i in range(j, n) if matrix[i, j]
    ]


@dataclass(frozen=True, eq=False)
class LogDet:
    """-weight log det of a semidefinite cone's slack, or of a constant matrix."""

    weight: Fraction
    cone: int | None = None
    matrix: Entries | None = None
    order: int = 0


@dataclass(eq=False)
class ConeData:
    """minimise x'Px/2 + c'x over b - Ax in K, built block by block."""

    n: int
    c: Vector = field(default_factory=list)
    A: Entries = field(default_factory=list)
    b: Vector = field(default_factory=list)
    cones: list[tuple[str, Any]] = field(default_factory=list)
    P: Entries = field(default_factory=list)
    quadratics: list[tuple[Entries, Vector, Fraction]] = field(default_factory=list)
    log_dets: list[LogDet] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.c = self.c or [Fraction(0)] * self.n

    def add(
        self, kind: str, size: Any, rows: Sequence[Mapping[int, Number]], b: Sequence[Number]
    ) -> int:
        """Append a cone with its rows, each by its entries; return its first row.

        >>> data = ConeData(2)
        >>> data.add("zero", 1, [{0: 1, 1: 1}], [1])
        0
        """
        start = len(self.b)
        for at, row in enumerate(rows):
            self.A += [(start + at, j, Fraction(value)) for j, value in row.items() if value]
        self.b += fractions(b)
        self.cones.append((kind, size))
        return start

    def bound(
        self, places: Sequence[int], low: Number | None, high: Sequence[Number] | None
    ) -> None:
        """Append low <= x_j and x_j <= high_j for the places."""
        if low is not None and places:
            self.add("nonnegative", len(places), [{j: -1} for j in places], [-low] * len(places))
        if high is not None and places:
            self.add("nonnegative", len(places), [{j: 1} for j in places], high)

    def curved(self, w: Sequence[Fraction], P: Entries | None = None) -> Vector:
        """Return Pw."""
        return _curved(self.P if P is None else P, w, self.n)

    def value(self, x: Sequence[Fraction]) -> Fraction:
        """Return x'Px/2 + c'x."""
        return _dot(self.curved(x), x) / 2 + _dot(self.c, x)

    def slack(self, x: Sequence[Fraction]) -> Vector:
        """Return b - Ax."""
        found = list(self.b)
        for i, j, value in self.A:
            found[i] -= value * x[j]
        return found

    def multipliers(
        self,
        given: Mapping[int, Fraction],
        w: Sequence[Fraction] | None = None,
        P: Entries | None = None,
        c: Sequence[Fraction] | None = None,
    ) -> Vector:
        """Return multipliers that cancel the gradient at w: those given, and bounds take the rest.

        Parameters
        ----------
        given
            Multipliers by row; others are 0 so far.
        w
            Where the gradient of the quadratic part is taken.
        P, c
            Another objective, if there is one.
        """
        gradient = self.gradient(given, w, P, c)
        y = [given.get(i, Fraction(0)) for i in range(len(self.b))]
        up, down = self.bound_rows
        for j, value in enumerate(gradient):
            if value:
                rows = up if value < 0 else down
                if j not in rows:
                    raise NotCertified(f"the gradient of variable {j} has the wrong sign")
                i, entry = rows[j]
                y[i] -= value / entry
        return y

    def gradient(
        self,
        given: Mapping[int, Fraction],
        w: Sequence[Fraction] | None = None,
        P: Entries | None = None,
        c: Sequence[Fraction] | None = None,
    ) -> Vector:
        """Return Pw + c + A'y."""
        gradient = list(self.c if c is None else c)
        if w is not None:
            gradient = [a + b for a, b in zip(gradient, self.curved(w, P), strict=True)]
        for i, j, value in self.A:
            if i in given:
                gradient[j] += value * given[i]
        return gradient

    @property
    def bound_rows(
        self,
    ) -> tuple[dict[int, tuple[int, Fraction]], dict[int, tuple[int, Fraction]]]:
        """The nonnegative rows a x_j <= b with a > 0 and with a < 0, by variable."""
        count = [0] * len(self.b)
        for i, _, _ in self.A:
            count[i] += 1
        plain = self._nonnegative()
        up = {j: (i, v) for i, j, v in self.A if v > 0 and count[i] == 1 and i in plain}
        down = {j: (i, v) for i, j, v in self.A if v < 0 and count[i] == 1 and i in plain}
        return up, down

    def _nonnegative(self) -> set[int]:
        rows: set[int] = set()
        start = 0
        for kind, size in self.cones:
            length = rows_of(kind, size)
            if kind == "nonnegative":
                rows.update(range(start, start + length))
            start += length
        return rows


def rows_of(kind: str, size: Any) -> int:
    """Return how many rows a cone has.

    >>> rows_of("semidefinite", 3), rows_of("power", [1, 1])
    (6, 3)
    """
    if kind == "power":
        return len(size) + 1
    return size * (size + 1) // 2 if kind in ("semidefinite", "svec") else int(size)


@dataclass(eq=False)
class ConeVectors:
    """A point of a cone program, multipliers that bound its objective, and a direction without end."""

    x: Vector | None = None
    y: Vector | None = None
    w: Vector | None = None
    lam: Vector | None = None
    phi: Fraction = Fraction(0)
    ray: Vector | None = None


@dataclass(eq=False)
class Part:
    """y'Q(x)y / (2 d): entries (k, i, j, value) of Q_k with i >= j; d is the variable `over`, or 1."""

    entries: list[tuple[int, int, int, Fraction]]
    over: int | None = None
    positive: bool = False
    """Whether each Q_k stands for its positive part."""

    @property
    def variables(self) -> list[int]:
        """The k of matrices that stand for their positive part."""
        return sorted({k for k, *_ in self.entries}) if self.positive else []

    def support(self, k: int) -> list[int]:
        """The variables that Q_k has entries of."""
        return sorted({index for at, i, j, _ in self.entries if at == k for index in (i, j)})

    def matrix(self, x: Sequence[Fraction]) -> Entries:
        """Return Q(x)."""
        total: dict[tuple[int, int], Fraction] = {}
        for k, i, j, value in self.entries:
            if x[k]:
                total[i, j] = total.get((i, j), Fraction(0)) + value * x[k]
        return [(i, j, value) for (i, j), value in total.items() if value]

    def forms(self, y: Sequence[Fraction]) -> dict[int, Fraction]:
        """Return y'Q_k y for each k."""
        total: dict[int, Fraction] = {}
        for k, i, j, value in self.entries:
            if y[i] and y[j]:
                term = value * y[i] * y[j] * (1 if i == j else 2)
                total[k] = total.get(k, Fraction(0)) + term
        return total


@dataclass(eq=False)
class SaddleVectors:
    """What proves both ends of a saddle program."""

    left: ConeVectors
    right: ConeVectors
    parts: list[Vector] = field(default_factory=list)
    phi: dict[tuple[int, int], Fraction] = field(default_factory=dict)


@dataclass(eq=False)
class SaddleData:
    """min over x, max over y of f(x) + x'My - g(y) - sum of parts."""

    left: ConeData
    right: ConeData
    parts: list[Part] = field(default_factory=list)
    M: Entries = field(default_factory=list)

    def cost_of_x(
        self, y: Sequence[Fraction], phi: Mapping[tuple[int, int], Fraction] | None = None
    ) -> Vector:
        """Return the linear objective of x if y is played."""
        cost = list(self.left.c)
        for i, j, value in self.M:
            cost[i] += value * y[j]
        for p, part in enumerate(self.parts):
            below = Fraction(1) if part.over is None else y[part.over]
            for k, form in part.forms(y).items():
                shift = Fraction(0)
                if part.positive:
                    shift = (phi or {})[p, k] * sum(y[j] ** 2 for j in part.support(k))
                cost[k] -= (form + shift) / below / 2
        return cost

    def program_of_y(
        self,
        x: Sequence[Fraction],
        parts: Sequence[Vector] = (),
        phi: Mapping[tuple[int, int], Fraction] | None = None,
    ) -> tuple[Entries, Vector]:
        """Return P and c of what y minimises if x is played."""
        P: dict[tuple[int, int], Fraction] = {(i, j): value for i, j, value in self.right.P}
        c = list(self.right.c)
        for i, j, value in self.M:
            c[j] -= value * x[i]
        for p, part in enumerate(self.parts):
            Q = part.matrix(x)
            if part.over is None:
                for i, j, value in Q:
                    P[i, j] = P.get((i, j), Fraction(0)) + value
                continue
            w = parts[p]
            product = _curved(Q, w, self.right.n)
            square = _dot(product, w)
            for k in part.variables:
                size = sum((w[j] ** 2 for j in part.support(k)), Fraction(0))
                square += x[k] * (phi or {})[p, k] * size
            c = [a + b for a, b in zip(c, product, strict=True)]
            c[part.over] -= square / 2
        return [(i, j, value) for (i, j), value in P.items() if value], c


@dataclass(eq=False)
class LevelData:
    """max over 0 <= t < max r of sum_i [r_i - t]_+ A_i / (norm ||[r - t]_+||)."""

    r: Vector
    A: Vector
    norm: Fraction
    level: Fraction


@dataclass(eq=False)
class EnergyData:
    """min of sum_i mu_i v_i'Sv_i over ordered mu of sum 1, S the Laplacian of weights exp(T)."""

    V: list[Vector]
    T: Entries
    sigma: Fraction


@dataclass(eq=False)
class GraphData:
    """min over K of D(K, G) + gamma tr(KS), G standing for its positive part."""

    G: FloatArray
    S: list[Vector]
    gamma: Fraction
    phi: Fraction
    epsilon: Fraction


@dataclass(eq=False)
class ExactClaim:
    """A statement in exact numbers with the vectors that prove it, for a certificate.

    Parameters
    ----------
    data
        The program.
    vectors
        What proves both ends of its optimum, or that it has none.
    scale, shift
        The problem's value is `scale` times that of the program, plus `shift`.
    """

    data: ConeData | SaddleData | LevelData | EnergyData | GraphData
    vectors: ConeVectors | SaddleVectors | None = None
    scale: Fraction = Fraction(1)
    shift: Fraction = Fraction(0)


def _curved(P: Entries, w: Sequence[Fraction], n: int) -> Vector:
    found = [Fraction(0)] * n
    for i, j, value in P:
        found[i] += value * w[j]
        if i != j:
            found[j] += value * w[i]
    return found


def _dot(a: Sequence[Fraction], b: Sequence[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


def product(A: Rows, B: Rows) -> Rows:
    """Return AB without rounding.

    >>> product([[Fraction(1, 2)]], [[Fraction(1, 3)]])
    [[Fraction(1, 6)]]
    """
    found = _flint(A) * _flint(B)
    return [
        [Fraction(int(found[i, j].p), int(found[i, j].q)) for j in range(found.ncols())]
        for i in range(found.nrows())
    ]


def _flint(A: Rows) -> Any:
    from flint import fmpq, fmpq_mat

    return fmpq_mat([[fmpq(v.numerator, v.denominator) for v in row] for row in A])


# Matrices that must be positive semidefinite


def factor_below(matrix: FloatArray) -> FloatArray | None:
    """Return L with matrix - LL' diagonally dominant, as far as floats can tell; None if none is found.

    >>> factor_below(np.array([[1.0, -1.0], [-1.0, 1.0]])) is None  # it has no room
    True
    """
    n = len(matrix)
    diagonal = np.diag(matrix)
    if n == 0 or not (diagonal > 0).all():
        return None
    # Rows and columns of very different size: the same factor, scaled.
    scale = np.exp2(np.round(np.log2(diagonal) / 2))
    scaled = matrix / scale[:, None] / scale
    for multiple in SHIFTS:
        shift = multiple * 8 * np.sqrt(n) * n * EPS
        try:
            factor = np.linalg.cholesky(scaled - shift * np.eye(n))
        except np.linalg.LinAlgError:
            continue
        # Few digits keep the exact products short.
        unit = 2.0 ** np.floor(np.log2(shift / (16 * n)))
        factor = np.tril(np.round(factor / unit) * unit)
        rest = scaled - factor @ factor.T
        off = np.abs(rest).sum(axis=1) - np.abs(np.diag(rest))
        # Not only in the scaled matrix: dominance is asked for in the matrix itself.
        weights = off_diagonal_sums(rest, scale)
        if (np.diag(rest) * scale > 2 * weights).all() and (np.diag(rest) > 2 * off).all():
            return np.asarray(factor * scale[:, None])
    return None


def off_diagonal_sums(rest: FloatArray, scale: FloatArray) -> FloatArray:
    """Return sum_j |rest_ij| scale_j over j != i."""
    return np.asarray(np.abs(rest) @ scale - np.abs(np.diag(rest)) * scale)


LONG_BITS = 220
"""Bits after the point of a long factor, in units of the largest diagonal entry."""
LONG_SHIFT = 150
"""The bit by which a matrix is moved before a long factor is taken."""


def long_factor(matrix: Rows, up: bool) -> Rows:
    """Return a lower triangle L of many digits, LL' next to the matrix and above it, or below.

    >>> [row[0] for row in long_factor([[Fraction(4)]], up=False)][0] < 2
    True
    """
    n = len(matrix)
    largest = max(matrix[i][i] for i in range(n))
    exponent = largest.numerator.bit_length() - largest.denominator.bit_length()
    root = Fraction(2) ** ((exponent + 1) // 2)
    scale = root * root
    one = 1 << LONG_BITS
    shift = 1 << (LONG_BITS - LONG_SHIFT)
    A = [[int(matrix[i][j] / scale * one) for j in range(i + 1)] for i in range(n)]
    L: list[list[int]] = []
    for i in range(n):
        row: list[int] = []
        for j in range(i + 1):
            rest = A[i][j] + (0 if i != j else shift if up else -shift)
            rest -= (
                sum(a * b for a, b in zip(row, L[j] if j < i else row, strict=False)) >> LONG_BITS
            )
            if i == j:
                if rest <= 0:
                    raise NotCertified("a matrix is too near to a singular one")
                row.append(isqrt(rest << LONG_BITS))
            else:
                row.append((rest << LONG_BITS) // L[j][j])
        L.append(row)
    return [[Fraction(value, one) * root for value in row] for row in L]


def negativity(matrix: FloatArray) -> Fraction:
    """Return phi with matrix + phi I that has a factor; 0 where the matrix has one.

    >>> negativity(np.eye(2))
    Fraction(0, 1)
    """
    if factor_below(matrix) is not None:
        return Fraction(0)
    n = len(matrix)
    for multiple in (*reversed(SHIFTS), 65536.0):
        phi = multiple * 64 * np.sqrt(n) * n * EPS * max(float(np.diag(matrix).max()), 1e-300)
        phi = 2.0 ** np.ceil(np.log2(phi))
        if factor_below(matrix + phi * np.eye(n)) is not None:
            return Fraction(phi)
    raise NotCertified("a kernel is not shown to be positive semidefinite up to rounding")


def root_between(value: Fraction, up: bool) -> Fraction:
    """Return the square root rounded up or down to about 60 digits after the point.

    >>> root_between(Fraction(4), up=False)
    Fraction(2, 1)
    """
    scaled = (value.numerator << 400) // value.denominator
    root = isqrt(scaled)
    exact = root * root == scaled and (value.numerator << 400) % value.denominator == 0
    return Fraction(root + (1 if up and not exact else 0), 1 << 200)
