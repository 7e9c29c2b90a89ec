"""A kernel matrix checked once: finite, symmetric, PSD up to rounding, its factor, its repair record.

A Cholesky factorisation that runs to its end proves something. In floating point with unit roundoff
u, R'R = A + E with
|E_ij| <= g sqrt(A_ii A_jj) / (1 - g), g = (n + 1) u (Higham, Accuracy and Stability, Theorem 10.3 and (10.7); Rump,
BIT 46 (2006) 433-452), hence

    lambda_min(A) >= -g / (1 - g) tr A.

It is tried on A = K. Where K is singular or negative by rounding it breaks down. If K has low rank,
a pivoted factor R is cheap and proves more: R'R is PSD, so lambda_min(K) >= -||K - R'R||. Otherwise
A = K + t I is tried, with t = n eps ||K||_F. Eigenvalues are computed only where that fails too: to
refuse K, or to repair it in the way the caller names,

    clip   K = sum_i max(l_i, 0) v_i v_i'       flip   K = sum_i |l_i| v_i v_i'       shift   K + |l_min| I.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, cast, get_args

import numpy as np

from klopt.arrays import (
    EPS,
    FloatArray,
    freeze,
    matrix,
    positive,
    require_memory,
    scaled_to_one,
    symmetric,
    vector,
)
from klopt.errors import InvalidProblem
from klopt.kernels.rbf import gamma_scale, gaussians

__all__ = ["Gram", "Repair", "binary_labels", "proven_floor"]

Repair = Literal["clip", "flip", "shift"]

ROUGH = 1e-9
"""A bound this far below 0, at a diagonal of 1, is worth a factorisation; that of 2000 points proves half of it."""


@dataclass(frozen=True, eq=False)
class Gram:
    """A kernel matrix that has passed its checks: `Gram.of` a matrix, or `Gram.rbf` of points.

    >>> K = Gram.of([[2, 1], [1, 2]])
    >>> K.size, K.scale, K.repair
    (2, 2.0, '')
    >>> Gram.of([[1, 2], [2, 1]])
    Traceback (most recent call last):
    klopt.errors.InvalidProblem: K is not positive semidefinite: its eigenvalues go from -1 to 3; repair it openly: ...
    >>> Gram.of([[1, 2], [2, 1]], repair="clip").repair
    'clipped 1 eigenvalue, smallest -1'
    """

    matrix: FloatArray
    """The symmetric matrix, frozen. Negative eigenvalues it may have, none below `floor`, are meant to be 0."""
    scale: float
    """The mean of the diagonal, always positive; 1.0 for the zero matrix (a PSD matrix with zero diagonal is zero)."""
    floor: float
    """A proven lower bound of the smallest eigenvalue of `matrix`: 0 or below it by rounding only."""
    repair: str
    """What was done to the matrix or had to be overlooked; empty where nothing was."""

    @classmethod
    def of(
        cls, value: object, name: str = "K", repair: Repair | None = None, size: int | None = None
    ) -> Gram:
        """Return `value` (an array-like, a sparse matrix or a `Gram`, which passes unchanged) as a checked matrix."""
        if repair not in (None, *get_args(Repair)):
            raise InvalidProblem(
                f"repair is {repair!r}; expected one of {', '.join(get_args(Repair))}, or None"
            )
        if isinstance(value, Gram):
            if size not in (None, value.size):
                raise InvalidProblem(
                    f"{name} is {value.size} x {value.size}; expected {size} x {size}"
                )
            return value
        shape: tuple[int, ...] = getattr(value, "shape", ())
        if len(shape) == 2:
            require_memory(
                16.0 * shape[0] * shape[1],
                f"{name}, {shape[0]} x {shape[1]}, with its Cholesky factor",
            )
        given = matrix(name, value, (size, size))
        K = symmetric(name, given)
        if not K.size:
            raise InvalidProblem(f"{name} is 0 x 0; a kernel matrix needs at least one point")
        K_psd, floor, record = _positive_semidefinite(name, K, repair)
        notes = ("averaged with its transpose" if K is not given else "", record)
        scale = float(K_psd.diagonal().mean()) or 1.0
        return cls(cast(FloatArray, freeze(K_psd)), scale, floor, "; ".join(filter(None, notes)))

    @classmethod
    def rbf(cls, X: object, gamma: float | None = None) -> Gram:
        """Return exp(-gamma ||x - x'||^2) of the rows of X, positive by construction: no factorisation has to prove it.

        By default gamma is 1 / (columns x variance of X), as scikit-learn's "scale".

        >>> K = Gram.rbf([[0.0], [2.0]])
        >>> K.matrix.round(4), K.floor > -1e-13
        (array([[1.    , 0.0183],
               [0.0183, 1.    ]]), True)
        """
        points = matrix("X", X)
        if not points.size:
            raise InvalidProblem(
                f"X is {points.shape[0]} x {points.shape[1]}; expected points with coordinates"
            )
        require_memory(16.0 * len(points) ** 2, f"the kernel of {len(points)} points")
        unit, exponent = scaled_to_one(points)
        narrow = (
            gamma_scale(unit)
            if gamma is None
            else _times_power(positive("gamma", gamma), 2 * exponent)
        )
        ((K, floor),) = gaussians(unit, [narrow])
        return cls.gaussian(K, floor)

    @classmethod
    def gaussian(cls, K: FloatArray, floor: float) -> Gram:
        """Return a matrix of `klopt.kernels.rbf.gaussians` with its bound, or a better one where that says little."""
        if floor < -ROUGH:  # far points, narrow kernel
            return cls.of(K, repair="clip")
        return cls(cast(FloatArray, freeze(K)), 1.0, floor, "")

    @property
    def size(self) -> int:
        """The number of points."""
        return len(self.matrix)

    def factor(self) -> FloatArray:
        """Return R (rank x n) with R'R = K up to `factor_error()`; short where K has low rank. Computed once.

        >>> Gram.of([[1, 2], [2, 4]]).factor()
        array([[1., 2.]])
        """
        return self._factor

    def factor_error(self) -> float:
        """Return a bound of ||K - R'R||_2, measured on R = `factor()` as computed, once, at n^2 rank flops."""
        return self._factor_error

    @cached_property
    def thin(self) -> bool:
        """Whether the rank is so low, at most n/8, that work on `factor()` beats work on the matrix."""
        return _looks_thin(self.matrix) and 8 * len(self.factor()) <= self.size

    @cached_property
    def _factor(self) -> FloatArray:
        return cast(FloatArray, freeze(_pivoted_factor(self.matrix)))

    @cached_property
    def _factor_error(self) -> float:
        return _distance(self.matrix, self.factor())


def proven_floor(K: FloatArray, shift: float = 0.0) -> float | None:
    """Return a proven lower bound of the eigenvalues of a symmetric K from the Cholesky factorisation of K + shift I.

    None where that breaks down: then K has an eigenvalue below -shift, up to rounding. The bound is
    at or below -shift, by rounding only.

    >>> proven_floor(np.array([[2.0, 1.0], [1.0, 2.0]])) > -1e-14
    True
    >>> proven_floor(np.array([[1.0, 2.0], [2.0, 1.0]])) is None
    True
    """
    from scipy.linalg.lapack import dpotrf

    n = len(K)
    A = K.copy()
    A.flat[:: n + 1] += shift
    trace = float(A.trace())
    _, failed = dpotrf(A.T, lower=1, overwrite_a=1, clean=0)
    if failed:
        return None
    # n + 1 roundings as in the module's formula, one for a BLAS that multiplies by the reciprocal
    # of the pivot, one for the sum K_ii + shift, two to spare for the trace and this line.
    g = (n + 5) * EPS / 2
    return -(shift + g / (1 - g) * trace)


def _times_power(gamma: float, exponent: int) -> float:
    """gamma 2^exponent, or a number so large that only equal points are alike."""
    with np.errstate(over="ignore"):
        return float(min(np.ldexp(gamma, exponent), 1e300))


def _pivoted_factor(K: FloatArray) -> FloatArray:
    """R with R'R = K up to rounding, its rows as many as the numerical rank of K."""
    from scipy.linalg.lapack import dpstrf

    # Complete pivoting, until the largest pivot left is rounding. LAPACK's own n u max(diag) is too
    # sharp for small n.
    smallest = max(len(K), 32) * EPS / 2 * float(K.diagonal().max())
    upper, pivots, rank, _ = dpstrf(K.copy().T, tol=smallest, lower=0, overwrite_a=1)
    R = np.zeros((int(rank), len(K)))
    R[:, pivots - 1] = np.triu(upper[: int(rank)])
    return R


def _distance(K: FloatArray, R: FloatArray) -> float:
    """A bound of ||K - R'R||_F that counts the rounding of its own computation."""
    blocks = (slice(start, start + 256) for start in range(0, len(K), 256))
    measured = np.hypot.reduce(
        [float(np.linalg.norm(K[rows] - R[:, rows].T @ R)) for rows in blocks]
    )
    return float(measured) + (len(R) + 3) * EPS / 2 * float(np.linalg.norm(R)) ** 2


def _looks_thin(K: FloatArray) -> bool:
    """Whether every fourth point alone, at 1/64 of the cost of a factorisation, has a rank of at most n/8."""
    return 8 * len(_pivoted_factor(K[::4, ::4])) <= len(K)


def _low_rank_floor(K: FloatArray, rounding: float) -> float | None:
    """-||K - R'R||, or None where it is not small or K has so high a rank that a Cholesky factorisation costs less."""
    if not _looks_thin(K):
        return None
    R = _pivoted_factor(K)
    error = _distance(K, R) if 8 * len(R) <= len(K) else np.inf
    return -error if error <= rounding else None


def _positive_semidefinite(
    name: str, K: FloatArray, repair: Repair | None
) -> tuple[FloatArray, float, str]:
    """K, or K repaired; its proven floor; what was done."""
    with np.errstate(over="ignore"):
        norm = float(np.linalg.norm(K))
    if (
        not 1e-140 < norm < 1e140
    ):  # squares leave the range of floats, and a bound of infinity would prove anything
        if not K.any():
            return K, 0.0, ""
        raise InvalidProblem(
            f"{name} has entries up to {np.abs(K).max():.3g} in size; rescale it towards 1"
        )
    # A matrix that is definite by more than rounding is proven so; the others cost a second
    # factorisation.
    floor = proven_floor(K, -(len(K) + 5) * EPS * float(K.trace()))
    if floor is None:
        floor = proven_floor(K)
    if floor is not None:
        return K, min(floor, 0.0), ""
    rounding = len(K) * EPS * norm
    floor = _low_rank_floor(K, rounding) or proven_floor(K, rounding)
    if floor is not None:
        return (
            K,
            floor,
            f"clipped rounding: no eigenvalue is below {floor:.1e}, negative ones count as 0",
        )
    return _repaired(name, K, repair, rounding)


def _repaired(
    name: str, K: FloatArray, repair: Repair | None, rounding: float
) -> tuple[FloatArray, float, str]:
    values, vectors = np.linalg.eigh(K)
    smallest, negative = float(values[0]), values < 0
    if repair is None and smallest < -4 * rounding:
        raise InvalidProblem(
            f"{name} is not positive semidefinite: its eigenvalues go from {smallest:.6g} to {values[-1]:.6g}; "
            f"repair it openly: Gram.of({name}, repair='clip') sets negative eigenvalues to 0, 'flip' to their size, "
            f"'shift' adds {-smallest:.3g} to the diagonal"
        )
    count = (
        f"{negative.sum()} eigenvalue{'s' if negative.sum() > 1 else ''}, smallest {smallest:.3g}"
    )
    if repair == "shift":
        repaired = K + max(-smallest, 0.0) * np.eye(len(K))
        record = f"shifted by {-smallest:.3g}, smallest eigenvalue {smallest:.3g}"
    else:
        # Only the negative part is touched, so that the rest keeps its digits; M M' is exactly
        # symmetric in BLAS.
        half = vectors[:, negative] * np.sqrt(-values[negative] * (2 if repair == "flip" else 1))
        repaired = K + half @ half.T
        record = f"{'flipped' if repair == 'flip' else 'clipped'} {count}"
    while (floor := proven_floor(repaired, rounding)) is None:
        rounding *= 4
    return repaired, floor, record


def binary_labels(value: object, size: int | None, name: str = "y") -> FloatArray:
    """Return `size` labels as a frozen vector of -1.0 and +1.0, both of which must occur.

    >>> binary_labels([1, -1, 1], 3)
    array([ 1., -1.,  1.])
    >>> binary_labels([0, 1, 1], 3)
    Traceback (most recent call last):
    klopt.errors.InvalidProblem: y[0] is 0; labels must be the numbers -1 and +1 (2 * y - 1 turns 0 and 1 into them)
    """
    try:
        labels = vector(name, value, size)
    except InvalidProblem as error:
        raise InvalidProblem(f"{error}; labels must be the numbers -1 and +1") from None
    odd = np.flatnonzero(np.abs(labels) != 1)
    if odd.size:
        binary = bool(np.isin(labels, (0, 1)).all())
        hint = f" (2 * {name} - 1 turns 0 and 1 into them)" if binary else ""
        raise InvalidProblem(
            f"{name}[{odd[0]}] is {labels[odd[0]]:g}; labels must be the numbers -1 and +1{hint}"
        )
    if labels.size and abs(labels.sum()) == labels.size:
        raise InvalidProblem(
            f"{name} has one class only: every label is {labels[0]:+g}; a margin needs both -1 and +1"
        )
    return labels
