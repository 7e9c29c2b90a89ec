"""Enclosures: numbers known up to a radius, with the speed of BLAS.

An `Enclosure` stands for every number (array of numbers) x with |x - mid| <= rad, entry by entry.
Whatever is computed from enclosures encloses what exact arithmetic would have given, for every
choice of the numbers enclosed. A float is the enclosure of itself, with radius 0.

With unit roundoff u = 2^-53 and the smallest positive number eta = 2^-1074, in rounding to nearest:

**Lemma E1 (one operation).** |fl(a + b) - (a + b)| <= u |fl(a + b)|, and for products, quotients
and roots |fl(a op b) - (a op b)| <= u |fl(a op b)| + eta.

**Lemma E2 (sums of products).** In any order of summation, with or without fused operations,
|fl(x'y) - x'y| <= gamma_n |x|'|y| + n eta, gamma_n = n u / (1 - n u) (Higham, Accuracy and
Stability, section 3.1; Jeannerod and Rump, 2013). So the radius of a product of enclosures is

    gamma_k |A||B| + |A| rad B + rad A (|B| + rad B),

evaluated in floating point and enlarged by (1 + (2k + 16) u), which covers its own rounding.

**Lemma E3 (elementary functions).** NumPy's exp and log are within 4 units in the last place.

Radii charge the terms before they cancel, never what is left of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray

__all__ = [
    "ETA",
    "INFLATION",
    "UNIT_ROUNDOFF",
    "Enclosure",
    "EnclosureLike",
    "enclose_dot",
    "enclose_kernel_product",
    "enclose_norm",
    "enclose_product",
    "enclose_sum",
    "enlarged",
    "gamma",
    "round_down",
    "round_up",
]

UNIT_ROUNDOFF = 2.0**-53
"""u: the largest relative error of one operation in rounding to nearest."""
ETA = 2.0**-1074
"""The smallest positive number: the largest absolute error of a product that underflows."""
INFLATION = 1.000001
"""Covers the roundings in the evaluation of a bound of errors: a hundred million in a row, and more."""
SAFE_SQUARES = 1e-280
"""Sums of squares from here to its reciprocal: their underflow is below their rounding."""
ELEMENTARY_ULPS = 4.0
"""Lemma E3, in units in the last place (one of them is at most 2 u of the result)."""

EnclosureLike: TypeAlias = "Enclosure | FloatArray | float"


def gamma(n: int) -> float:
    """Return an upper bound of gamma_n = n u / (1 - n u).

    >>> gamma(1) > 2.0**-53
    True
    """
    share = n * UNIT_ROUNDOFF
    if not share < 0.5:
        return math.inf
    return share / (1 - share) * (1 + 8 * UNIT_ROUNDOFF)


def round_up(x: Any) -> Any:
    """Return the next float above x, entry by entry: after one rounding, an upper bound."""
    return np.nextafter(x, np.inf)


def round_down(x: Any) -> Any:
    """Return the next float below x, entry by entry: after one rounding, a lower bound."""
    return np.nextafter(x, -np.inf)


def enlarged(radius: Any, operations: int = 0) -> Any:
    """Return an upper bound of a radius computed by a few operations, or by so many more in a row.

    Each of up to four sums of so many products may lose eta / 2 per product.
    """
    return radius * (1 + (2 * operations + 16) * UNIT_ROUNDOFF) + (2 * operations + 4) * ETA


@dataclass(frozen=True, eq=False, slots=True)
class Enclosure:
    """Every x with |x - mid| <= rad, entry by entry; `mid` and `rad` are floats or arrays.

    >>> third = Enclosure.of(1.0) / 3.0
    >>> third.lower < 1 / 3 < third.upper
    True
    >>> (Enclosure.of(np.array([1e16, 1.0, -1e16])).sum()).contains(1.0)
    True
    """

    mid: Any
    rad: Any

    # NumPy leaves array + Enclosure to this class.
    __array_ufunc__ = None

    # Making one

    @classmethod
    def of(cls, x: EnclosureLike) -> Enclosure:
        """Return x itself, or the enclosure of numbers that are known exactly."""
        if isinstance(x, Enclosure):
            return x
        if isinstance(x, np.ndarray):
            return cls(x, np.zeros(x.shape))
        return cls(float(x), 0.0)

    @classmethod
    def between(cls, lower: Any, upper: Any) -> Enclosure:
        """Return the enclosure of all numbers from lower to upper."""
        mid = lower + (upper - lower) / 2
        if isinstance(mid, float):
            return cls(mid, enlarged(max(upper - mid, mid - lower)))
        reach = np.maximum(upper - mid, mid - lower)
        return cls(mid, enlarged(reach))

    # Its ends

    @property
    def lower(self) -> Any:
        """A float (array) at or below every number enclosed."""
        if isinstance(self.rad, float):
            if self.rad == 0.0:
                return self.mid
            if isinstance(self.mid, float):
                return math.nextafter(self.mid - self.rad, -math.inf)
        return _moved(self.mid - self.rad, -math.inf, self.rad)

    @property
    def upper(self) -> Any:
        """A float (array) at or above every number enclosed."""
        if isinstance(self.rad, float):
            if self.rad == 0.0:
                return self.mid
            if isinstance(self.mid, float):
                return math.nextafter(self.mid + self.rad, math.inf)
        return _moved(self.mid + self.rad, math.inf, self.rad)

    @property
    def magnitude(self) -> Any:
        """A float (array) at or above the absolute value of every number enclosed."""
        if isinstance(self.mid, float) and isinstance(self.rad, float):
            return math.nextafter(abs(self.mid) + self.rad, math.inf)
        return _plain(round_up(np.abs(self.mid) + self.rad))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return np.shape(self.mid)

    @property
    def size(self) -> int:
        """The number of entries."""
        return int(np.size(self.mid))

    @property
    def T(self) -> Enclosure:
        """The transpose."""
        return Enclosure(self.mid.T, self.rad.T)

    def contains(self, x: Any) -> bool:
        """Return whether no entry of x lies outside what the ends leave."""
        return bool(np.all((self.lower <= x) & (x <= self.upper)))

    def __getitem__(self, index: Any) -> Enclosure:
        return Enclosure(self.mid[index], self.rad[index])

    def __len__(self) -> int:
        return len(self.mid)

    # Lemma E1

    def __neg__(self) -> Enclosure:
        return Enclosure(-self.mid, self.rad)

    def __abs__(self) -> Enclosure:
        return Enclosure(np.abs(self.mid), self.rad)

    def __add__(self, other: EnclosureLike) -> Enclosure:
        if isinstance(other, Enclosure):
            mid = self.mid + other.mid
            spread = self.rad + other.rad
        else:
            mid = self.mid + other
            spread = self.rad
        return Enclosure(mid, enlarged(spread + UNIT_ROUNDOFF * abs(mid)))

    __radd__ = __add__

    def __sub__(self, other: EnclosureLike) -> Enclosure:
        return self + (-other)

    def __rsub__(self, other: EnclosureLike) -> Enclosure:
        return (-self) + other

    def __mul__(self, other: EnclosureLike) -> Enclosure:
        if isinstance(other, Enclosure):
            mid = self.mid * other.mid
            spread = abs(self.mid) * other.rad + self.rad * (abs(other.mid) + other.rad)
        else:
            mid = self.mid * other
            spread = self.rad * abs(other)
        return Enclosure(mid, enlarged(UNIT_ROUNDOFF * abs(mid) + spread))

    __rmul__ = __mul__

    def __truediv__(self, other: EnclosureLike) -> Enclosure:
        """Divide; the radius is infinite where the divisor may be 0."""
        b = Enclosure.of(other)
        if all(isinstance(part, float) for part in (self.mid, self.rad, b.mid, b.rad)):
            return _quotient(self, b)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            mid = np.divide(self.mid, b.mid)
            size = np.abs(mid)
            # The least absolute value of the divisor, rounded down.
            least = (np.abs(b.mid) - b.rad) * (1 - 4 * UNIT_ROUNDOFF)
            # Radius over divisor first: their product with a small quotient may underflow.
            spread = self.rad / least + (size + ETA) * (b.rad / least)
            rad = enlarged(UNIT_ROUNDOFF * size + spread)
            sure = (least > 0) & np.isfinite(rad)
        return Enclosure(_plain(np.where(sure, mid, 0.0)), _plain(np.where(sure, rad, np.inf)))

    def __rtruediv__(self, other: EnclosureLike) -> Enclosure:
        return Enclosure.of(other) / self

    def square(self) -> Enclosure:
        """Return the squares, entry by entry."""
        return self * self

    def sqrt(self) -> Enclosure:
        """Return the roots; numbers below 0 count as 0, so the argument must be known to be >= 0."""
        if isinstance(self.mid, float) and isinstance(self.rad, float):
            return _root(self)
        low = np.sqrt(np.maximum(self.lower, 0.0))
        high = np.sqrt(np.maximum(self.upper, 0.0))
        return Enclosure.between(np.maximum(round_down(low), 0.0), round_up(high))

    def log(self) -> Enclosure:
        """Return the logarithms; -inf is enclosed where the argument may be 0 or less."""
        low = self.lower
        with np.errstate(divide="ignore", invalid="ignore"):
            below = np.where(low > 0, np.log(np.where(low > 0, low, 1.0)), -np.inf)
            above = np.log(np.maximum(self.upper, 0.0))
        return _elementary(below, above)

    def exp(self) -> Enclosure:
        """Return the exponentials."""
        with np.errstate(over="ignore"):
            below = np.exp(self.lower)
            above = np.exp(self.upper)
        # An exponential underflows to 0 but is positive: eta is above it.
        return _elementary(below, above)

    # Lipschitz with constant 1: the radius stays.

    def positive_part(self) -> Enclosure:
        """Return max(x, 0), entry by entry."""
        return Enclosure(np.maximum(self.mid, 0.0), self.rad)

    def maximum(self) -> Enclosure:
        """Return the largest of all entries."""
        return Enclosure.between(float(np.max(self.lower)), float(np.max(self.upper)))

    def minimum(self) -> Enclosure:
        """Return the smallest of all entries."""
        return Enclosure.between(float(np.min(self.lower)), float(np.min(self.upper)))

    # Lemma E2

    def sum(self, axis: int | None = None) -> Enclosure:
        """Return the sum of all entries, or along an axis."""
        count = self.size if axis is None else np.shape(self.mid)[axis]
        mid = np.add.reduce(self.mid, axis)
        terms = np.add.reduce(abs(self.mid), axis)
        spread = np.add.reduce(self.rad, axis)
        rad = enlarged(gamma(count) * terms + spread, count)
        return Enclosure(_plain(mid), _plain(rad))

    def __matmul__(self, other: Any) -> Enclosure:
        b = other if isinstance(other, Enclosure) else _exact_factor(other)
        terms = self.mid.shape[-1]
        mid = self.mid @ b.mid
        # The built-in abs keeps sparse matrices sparse.
        A = abs(self.mid)
        B = abs(b.mid)
        rad = gamma(terms) * (A @ B)
        if _has_radius(b.rad):
            rad = rad + A @ b.rad
        if _has_radius(self.rad):
            rad = rad + self.rad @ (B + b.rad)
        return Enclosure(_plain(mid), _plain(enlarged(rad, terms)))

    def __rmatmul__(self, other: Any) -> Enclosure:
        return _exact_factor(other) @ self


def _moved(end: Any, outwards: float, rad: Any) -> Any:
    """The end of an enclosure after its one rounding; what is known exactly needs none."""
    if isinstance(end, np.ndarray):
        return np.nextafter(end, outwards, out=end, where=rad != 0)
    return float(end) if rad == 0 else math.nextafter(end, outwards)


def _quotient(a: Enclosure, b: Enclosure) -> Enclosure:
    """a / b of numbers; the radius is infinite where the divisor may be 0."""
    least = (abs(b.mid) - b.rad) * (1 - 4 * UNIT_ROUNDOFF)
    if not least > 0:
        return Enclosure(0.0, math.inf)
    mid = float(a.mid) / float(b.mid)
    size = abs(mid)
    # Radius over divisor first: their product with a small quotient may underflow.
    spread = a.rad / least + (size + ETA) * (b.rad / least)
    rad = float(enlarged(UNIT_ROUNDOFF * size + spread))
    return Enclosure(mid, rad) if math.isfinite(rad) else Enclosure(0.0, math.inf)


def _root(x: Enclosure) -> Enclosure:
    """The root of a number that is known to be >= 0."""
    low = x.lower
    high = x.upper
    # Of what is not a number nothing is known.
    if math.isnan(low) or not high < math.inf:
        return Enclosure(0.0, math.inf)
    below = math.nextafter(math.sqrt(max(low, 0.0)), -math.inf)
    above = math.nextafter(math.sqrt(max(high, 0.0)), math.inf)
    return Enclosure.between(max(below, 0.0), above)


def _exact_factor(A: Any) -> Enclosure:
    """A dense or sparse matrix as a factor: the radius 0.0 stands for no error anywhere."""
    if not isinstance(A, np.ndarray) and sparse.issparse(A):
        return Enclosure(A, 0.0)
    return Enclosure(np.asarray(A, float), 0.0)


def _has_radius(rad: Any) -> bool:
    return not isinstance(rad, float) or rad != 0.0


def _elementary(below: Any, above: Any) -> Enclosure:
    """The ends of a rising function, moved outwards by Lemma E3."""
    slack = 2 * ELEMENTARY_ULPS * UNIT_ROUNDOFF
    low = below - slack * np.abs(below) - ETA
    high = above + slack * np.abs(above) + ETA
    with np.errstate(invalid="ignore"):
        found = Enclosure.between(round_down(low), round_up(high))
    # An infinite end leaves nothing known.
    known = np.isfinite(found.mid) & np.isfinite(found.rad)
    mid = np.where(known, found.mid, 0.0)
    rad = np.where(known, found.rad, np.inf)
    return Enclosure(_plain(mid), _plain(rad))


def _plain(x: Any) -> Any:
    """A scalar as a Python float, an array as it is."""
    if isinstance(x, np.ndarray) and x.ndim:
        return x
    return float(x) if np.ndim(x) == 0 else x


def enclose_sum(terms: Sequence[EnclosureLike], plus: FloatArray | None = None) -> Enclosure:
    """Return the sum of a few scalars, its midpoint correctly rounded (`math.fsum`).

    What is left of the sum after its midpoint is taken away is the error: 0 where there is none. The
    entries of `plus`, which may be many, are added too.

    >>> enclose_sum([1e16, 1.0, -1e16])
    Enclosure(mid=1.0, rad=0.0)
    """
    midpoints: list[float] = []
    radii: list[float] = []
    for term in terms:
        if isinstance(term, Enclosure):
            midpoints.append(term.mid)
            radii.append(term.rad)
        else:
            midpoints.append(float(term))
    if plus is not None:
        midpoints += plus.tolist()
    # `fsum` refuses infinities of both signs; an infinite term leaves nothing known.
    if not (all(map(math.isfinite, midpoints)) and all(map(math.isfinite, radii))):
        return Enclosure(0.0, math.inf)
    try:
        mid = math.fsum(midpoints)
        error = math.fsum([*midpoints, -mid])
        spread = math.fsum(radii)
    except OverflowError:
        return Enclosure(0.0, math.inf)
    if not error and not spread:
        return Enclosure(mid, 0.0)
    return Enclosure(mid, enlarged(spread + abs(error)))


def enclose_dot(x: EnclosureLike, y: EnclosureLike) -> Enclosure:
    """Return x'y of two vectors.

    >>> enclose_dot(np.array([1.0, 2.0]), np.array([3.0, 4.0])).contains(11.0)
    True
    """
    return enclose_product(x, y)


def enclose_product(A: Any, B: Any) -> Enclosure:
    """Return the matrix product AB; each factor is an enclosure, an array or a sparse matrix.

    A sparse matrix on the left of `@` does not leave the product to its right factor.

    >>> A = sparse.csr_array([[1.0, 2.0]])
    >>> enclose_product(A, Enclosure.of(np.array([3.0, 4.0]))).contains(11.0)
    True
    """
    if _is_float_vector(A):
        if _is_float_vector(B):
            return _dot(A, B, None)
        if isinstance(B, Enclosure) and _is_float_vector(B.mid) and isinstance(B.rad, np.ndarray):
            return _dot(A, B.mid, B.rad)
    left = A if isinstance(A, Enclosure) else _exact_factor(A)
    return left.__matmul__(B)


def _is_float_vector(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.ndim == 1 and x.dtype == np.float64


def _dot(x: FloatArray, y: FloatArray, rad: FloatArray | None) -> Enclosure:
    """x'y of vectors by Lemma E2, y known up to a radius where there is one."""
    n = x.size
    mid = float(x @ y)
    sizes = np.abs(x)
    # The terms of a square are not negative: they are their own sizes.
    terms = mid if x is y else float(sizes @ np.abs(y))
    total = gamma(n) * terms
    if rad is not None:
        total += float(sizes @ rad)
    return Enclosure(mid, enlarged(total, n))


def enclose_norm(x: EnclosureLike) -> Enclosure:
    """Return the Euclidean norm of all entries.

    >>> enclose_norm(np.array([3.0, 4.0])).contains(5.0)
    True
    """
    if isinstance(x, np.ndarray) and x.size > 1:
        # The rule: nothing but a sum of squares is needed.
        squares = _sum_of_squares(x)
        if SAFE_SQUARES < squares < 1 / SAFE_SQUARES:
            return _norm(squares, x.size)
    v = Enclosure.of(x)
    if v.size == 1:
        only = float(np.ravel(v.mid)[0])
        return Enclosure(abs(only), float(np.ravel(v.rad)[0]))
    # Sums of squares this far from both ends of the range lose nothing to underflow.
    squares = _sum_of_squares(v.mid)
    if not squares and not v.mid.any() and not np.any(v.rad):
        return Enclosure(0.0, 0.0)
    if SAFE_SQUARES < squares < 1 / SAFE_SQUARES and isinstance(v.rad, np.ndarray):
        spread = _sum_of_squares(v.rad)
        if not spread:
            return _norm(squares, v.size)
        if SAFE_SQUARES < spread < 1 / SAFE_SQUARES:
            # | ||x|| - ||mid|| | <= ||rad||.
            length = _norm(squares, v.size)
            reach = _norm(spread, v.size)
            return Enclosure(length.mid, enlarged(length.rad + reach.mid + reach.rad))
    # A power of two, so that squares neither overflow nor underflow and scaling is exact.
    largest = float(np.max(v.magnitude, initial=0.0))
    if not 0.0 < largest < math.inf:
        return Enclosure(0.0, largest)
    unit = 2.0 ** math.frexp(largest)[1] if largest < 2.0**1000 else 2.0**1000
    scaled = Enclosure(v.mid / unit, enlarged(v.rad / unit))
    return (scaled * scaled).sum().sqrt() * unit


def _sum_of_squares(x: FloatArray) -> float:
    # An overflow is seen by the caller: `vdot` does not warn of it.
    return float(np.vdot(x, x))


def _norm(squares: float, size: int) -> Enclosure:
    """The root of a computed sum of squares: Lemma E2, whose relative error the root halves."""
    length = math.sqrt(squares)
    return Enclosure(length, enlarged(gamma(size + 4) * length))


def enclose_kernel_product(
    K: FloatArray, v: EnclosureLike, floor: float, diagonal: FloatArray | None = None
) -> Enclosure:
    """Return K v for a symmetric K with K - floor I positive semidefinite, in one product.

    |K_ij| <= r_i r_j with r_i^2 = K_ii - floor, so that the terms of (Kv)_i add up to at most
    r_i r'|v|: Lemma E2 without a second product by |K|. A negative K_ii is at most -floor in size,
    which the larger of K_ii - floor and |K_ii| covers.

    Parameters
    ----------
    K, v
        The matrix and the vector, which may be an enclosure.
    floor
        A proven lower bound of the smallest eigenvalue of K, at most 0.
    diagonal
        The diagonal of K, where it is at hand.

    >>> K = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> enclose_kernel_product(K, np.array([1.0, -1.0]), 0.0).contains(np.array([1.0, -1.0]))
    True
    """
    n = len(K)
    d = K.diagonal() if diagonal is None else diagonal
    r = round_up(np.sqrt(round_up(np.maximum(d - floor, np.abs(d)))))
    mid = v.mid if isinstance(v, Enclosure) else v
    # In this order: gamma times a size next to underflow would be 0, where r may be large.
    rad = gamma(n) * r * enlarged(float(r @ np.abs(mid)), n)
    if isinstance(v, Enclosure):
        rad += r * enlarged(float(r @ v.rad), n)
    return Enclosure(cast(FloatArray, K @ mid), enlarged(rad, n))
