"""A kernel matrix checked once: finite, symmetric and positive semidefinite up to rounding.

A Cholesky factorisation of A that runs to completion in floating point proves

    lambda_min(A) >= -c,      c of Lemma P1 in `klopt.proof.semidefinite` (Rump, BIT 46, 2006).

It is tried on A = K. Where K is singular or negative by rounding it breaks down. If K has low rank,
a pivoted factor R is cheap and proves more: R'R is PSD, so lambda_min(K) >= -||K - R'R||. Otherwise
A = K + t I is tried, with t = n eps ||K||_F; for few points a smaller t in balls, where a proof asks
for it (Lemma B1 of `klopt.proof.balls`). Eigenvalues are computed only where that fails too: to
refuse K, or to repair it in the way the caller names,

    clip    sum_i max(l_i, 0) v_i v_i'
    flip    sum_i |l_i| v_i v_i'
    shift   K + |l_min| I.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, cast, get_args

import numpy as np

from klopt.arrays import (
    EPS,
    UNIT_ROUNDOFF,
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
from klopt.proof.balls import ball_matrix, definite_log_det, working_bits
from klopt.proof.directed import product_up, sum_up
from klopt.proof.enclosure import ETA, gamma as gamma_n
from klopt.proof.kernel_product import entry_bounds
from klopt.proof.semidefinite import cholesky_shift

__all__ = ["Gram", "Repair", "binary_labels", "proven_floor"]

Repair = Literal["clip", "flip", "shift"]

MAX_RBF_FLOOR = 1e-9
"""A bound further below 0 than this, at a diagonal of 1, is replaced by that of a factorisation.

The factorisation of 2000 points proves half of it.
"""

MAX_BALL_POINTS = 100
"""Up to this many points a floor is proven in balls, where rounding is larger than it."""
BALL_BITS = 160
"""Bits of these balls: three times those of floats."""
MAX_BALL_FACTORS = 10
"""Factorisations at most, each of a matrix ..."""
BALL_STEPS = (8.0, 2.0, 1.25)
"""... with a shift so many times smaller, the first that goes on being tried."""

FACTORS = ("_factor", "_factor_error")
"""What a Gram computes once and shares with its sharpened self."""


@dataclass(frozen=True, eq=False)
class Gram:
    """A kernel matrix that has passed its checks: `Gram.of` a matrix, or `Gram.rbf` of points.

    Give it to any number of problems: that it is positive semidefinite is proven once.

    Attributes
    ----------
    matrix : (n, n) array
        The kernel matrix.
    size : int
        The number n of points.
    scale : float
        The mean of the diagonal, or 1 where that is 0.
    floor : float
        A proven lower bound of the eigenvalues; negative ones above it are rounding.
    repair : str
        What was done to the matrix, or nothing.

    Examples
    --------
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
    """The symmetric matrix, read-only; negative eigenvalues, none below `floor`, are rounding."""
    scale: float
    """The mean of the diagonal; 1.0 for the zero matrix, the only one with a zero diagonal."""
    floor: float
    """A proven lower bound of the smallest eigenvalue: 0, or negative by rounding only."""
    repair: str
    """What was changed in the matrix or ignored as rounding; empty where nothing was."""

    @classmethod
    def of(
        cls, value: object, name: str = "K", repair: Repair | None = None, size: int | None = None
    ) -> Gram:
        """Return `value` as a checked kernel matrix.

        Parameters
        ----------
        value
            An array-like, a sparse matrix, or a `Gram`, which passes unchanged.
        name
            What error messages call the matrix.
        repair
            What to do with negative eigenvalues beyond rounding; None refuses them.
        size
            The number of points that it must have, if that is known.
        """
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

        # What is too large is refused before it is copied.
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
        averaged = "averaged with its transpose" if K is not given else ""
        notes = "; ".join(filter(None, (averaged, record)))
        scale = float(K_psd.diagonal().mean()) or 1.0
        return cls(cast(FloatArray, freeze(K_psd)), scale, floor, notes)

    @classmethod
    def rbf(cls, X: object, gamma: float | None = None) -> Gram:
        """Return exp(-gamma ||x - x'||^2) of the rows of X.

        It is positive semidefinite for any points, so that no factorisation is needed to prove it
        (`klopt.kernels.rbf`). By default gamma is 1 / (columns x variance of X), as scikit-learn's
        "scale".

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
        # X = 2^exponent unit: squares of unit neither overflow nor underflow.
        unit, exponent = scaled_to_one(points)
        if gamma is None:
            scaled_gamma = gamma_scale(unit)
        else:
            scaled_gamma = _times_power(positive("gamma", gamma), 2 * exponent)
        ((K, floor),) = gaussians(unit, [scaled_gamma])
        return cls.gaussian(K, floor)

    @classmethod
    def gaussian(cls, K: FloatArray, floor: float) -> Gram:
        """Return a matrix of `klopt.kernels.rbf.gaussians` with the bound of its eigenvalues."""
        # Distances large against 1 / gamma make that bound loose: Cholesky proves a better one.
        if floor < -MAX_RBF_FLOOR:
            return cls.of(K, repair="clip")
        return cls(cast(FloatArray, freeze(K)), 1.0, floor, "")

    @classmethod
    def near(cls, value: object, known: Gram) -> Gram:
        """Return `value` as a kernel matrix, its floor by the distance to a known one.

        By Weyl's inequality lambda_min(K) >= lambda_min(K') - ||K - K'||: where another program
        computed the matrix of the same kernel, no factorisation is needed.

        >>> K = Gram.rbf([[0.0], [2.0]])
        >>> Gram.near(K.matrix * (1 + 1e-15), K).floor > -1e-13
        True
        """
        given = matrix("K", value, known.matrix.shape)
        K = symmetric("K", given)
        floor = -sum_up(_frobenius_distance(K, known.matrix), -known.floor)
        scale = float(K.diagonal().mean()) or 1.0
        # Further away a factorisation proves more; NaN is caught as well.
        if not floor >= -MAX_RBF_FLOOR * scale:
            return cls.of(value)
        averaged = "averaged with its transpose" if K is not given else ""
        return cls(cast(FloatArray, freeze(K)), scale, floor, averaged)

    @property
    def size(self) -> int:
        """The number of points."""
        return len(self.matrix)

    def factor(self) -> FloatArray:
        """Return R (rank x n) with R'R = K up to `factor_error()`, computed once.

        >>> Gram.of([[1, 2], [2, 4]]).factor()
        array([[1., 2.]])
        """
        return self._factor

    def factor_error(self) -> float:
        """Return a bound of ||K - R'R||_F for R = `factor()`, computed once in n^2 rank flops."""
        return self._factor_error

    @cached_property
    def thin(self) -> bool:
        """Whether the rank is at most n/8, so that `factor()` is cheaper to use than the matrix."""
        return _looks_thin(self.matrix) and 8 * len(self.factor()) <= self.size

    @cached_property
    def entry_bounds(self) -> FloatArray:
        """r with |K_ij| <= r_i r_j, computed once."""
        return cast(FloatArray, freeze(entry_bounds(self.matrix, self.floor)))

    @cached_property
    def sharpened(self) -> Gram:
        """The same matrix with a better floor, where there is one by far; computed once.

        The floor of a Gaussian kernel comes without a factorisation and may be loose: Cholesky
        proves a better one. That of a singular matrix is the rounding of Cholesky: balls know more.

        >>> K = Gram.rbf([[0.0], [2.0]])
        >>> K.floor < 0, K.sharpened.floor
        (True, 0.0)
        """
        if not self.floor:
            return self
        definite = -(self.size + 5) * EPS * float(self.matrix.trace())
        found = proven_floor(self.matrix, definite)
        if found is None:
            found = proven_floor(self.matrix)
        if found is None and self.size <= MAX_BALL_POINTS:
            found = _floor_in_balls(self.matrix, self.floor)
        if found is None or found <= self.floor / 2:
            return self
        better = replace(self, floor=min(found, 0.0))
        # It is as sharp as it gets, and has the factor of this one.
        known = {name: self.__dict__[name] for name in FACTORS if name in self.__dict__}
        better.__dict__.update(known, sharpened=better)
        return better

    @cached_property
    def _factor(self) -> FloatArray:
        return cast(FloatArray, freeze(_pivoted_factor(self.matrix)))

    @cached_property
    def _factor_error(self) -> float:
        return _distance(self.matrix, self.factor())


def proven_floor(K: FloatArray, shift: float = 0.0) -> float | None:
    """Return a proven lower bound of the eigenvalues of a symmetric K by Cholesky.

    K + shift I is factored. None where that breaks down: then K has an eigenvalue below -shift, up
    to rounding. The bound is at or below -shift, by rounding only.

    >>> proven_floor(np.array([[2.0, 1.0], [1.0, 2.0]])) > -1e-14
    True
    >>> proven_floor(np.array([[1.0, 2.0], [2.0, 1.0]])) is None
    True
    """
    from scipy.linalg.lapack import dpotrf

    n = len(K)
    A = K.copy()
    A.flat[:: n + 1] += shift
    # It covers the rounding of the sums K_ii + shift as well.
    rounding = cholesky_shift(A)
    _, failed = dpotrf(A.T, lower=1, overwrite_a=1, clean=0)
    if failed:
        return None
    return -sum_up(shift, rounding)


def _floor_in_balls(K: FloatArray, floor: float) -> float:
    """A floor nearer to 0 than the given one, as far as factorisations in balls prove it (B1)."""
    steps = list(BALL_STEPS)
    with working_bits(BALL_BITS):
        for _ in range(MAX_BALL_FACTORS):
            shift = -floor / steps[0]
            shifted = ball_matrix(K)
            for i in range(len(K)):
                shifted[i, i] += shift
            if definite_log_det(shifted) is not None:
                floor = -shift
                continue
            steps.pop(0)
            if not steps:
                break
    return floor


def _times_power(gamma: float, exponent: int) -> float:
    """gamma 2^exponent, or where that overflows a gamma at which different points have kernel 0."""
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
    """A bound of ||K - R'R||_F that counts the rounding of its own computation.

    A product of rank terms errs by gamma_rank |R|'|R| entry by entry, whose norm is at most ||R||^2
    (Lemma E2 of `klopt.proof.enclosure`), and the difference by one unit of itself.
    """
    n = len(K)
    blocks = (slice(start, start + 256) for start in range(0, n, 256))
    norms = [_norm_up(K[rows] - R[:, rows].T @ R) for rows in blocks]
    measured = _norm_up(np.array(norms)) * (1 + 4 * UNIT_ROUNDOFF)
    length = _norm_up(R)
    return sum_up(measured, product_up(gamma_n(len(R) + 3), length, length), n * (len(R) + 4) * ETA)


def _frobenius_distance(K: FloatArray, other: FloatArray) -> float:
    """A bound of ||K - K'||_F: each difference errs by one unit of itself."""
    blocks = (slice(start, start + 256) for start in range(0, len(K), 256))
    norms = [_norm_up(K[rows] - other[rows]) for rows in blocks]
    return _norm_up(np.array(norms)) * (1 + 4 * UNIT_ROUNDOFF)


def _norm_up(A: FloatArray) -> float:
    """An upper bound of ||A||_F by Lemma E2; squares that underflow are counted."""
    norm = float(np.linalg.norm(A)) * (1 + gamma_n(A.size + 8))
    return sum_up(norm, 2.0**-536 * (1 + math.sqrt(A.size)))


def _looks_thin(K: FloatArray) -> bool:
    """Whether every fourth point, at 1/64 of the cost of a factorisation, has a rank up to n/8."""
    return 8 * len(_pivoted_factor(K[::4, ::4])) <= len(K)


def _low_rank_floor(K: FloatArray, rounding: float) -> float | None:
    """-||K - R'R||, a bound by Weyl's inequality; None if it is not small or the rank is high."""
    # Above rank n/8 a Cholesky factorisation costs less.
    if not _looks_thin(K):
        return None
    R = _pivoted_factor(K)
    if 8 * len(R) > len(K):
        return None
    error = _distance(K, R)
    return -error if error <= rounding else None


def _positive_semidefinite(
    name: str, K: FloatArray, repair: Repair | None
) -> tuple[FloatArray, float, str]:
    """K, or K repaired; its proven floor; what was done."""
    with np.errstate(over="ignore"):
        norm = float(np.linalg.norm(K))
    # Outside this range squares overflow or underflow, and an infinite bound would prove anything.
    if not 1e-140 < norm < 1e140:
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

    # Singular, or negative by rounding only: the module's second and third proof.
    rounding = len(K) * EPS * norm
    floor = _low_rank_floor(K, rounding) or proven_floor(K, rounding)
    if floor is not None:
        note = f"clipped rounding: no eigenvalue is below {floor:.1e}, negative ones count as 0"
        return K, floor, note
    return _repaired(name, K, repair, rounding)


def _repaired(
    name: str, K: FloatArray, repair: Repair | None, rounding: float
) -> tuple[FloatArray, float, str]:
    """K with its negative eigenvalues repaired; the proven floor of the result; what was done."""
    values, vectors = np.linalg.eigh(K)
    smallest = float(values[0])
    negative = values < 0
    # 4: eigenvalues are computed to about n eps ||K||, the rounding that is allowed.
    if repair is None and smallest < -4 * rounding:
        raise InvalidProblem(
            f"{name} is not positive semidefinite: its eigenvalues go from {smallest:.6g} to {values[-1]:.6g}; "
            f"repair it openly: Gram.of({name}, repair='clip') sets negative eigenvalues to 0, 'flip' to their size, "
            f"'shift' adds {-smallest:.3g} to the diagonal"
        )
    plural = "s" if negative.sum() > 1 else ""
    count = f"{negative.sum()} eigenvalue{plural}, smallest {smallest:.3g}"
    if repair == "shift":
        repaired = K + max(-smallest, 0.0) * np.eye(len(K))
        record = f"shifted by {-smallest:.3g}, smallest eigenvalue {smallest:.3g}"
    else:
        # Only the negative part is touched, so that the rest keeps its digits. The lower triangle
        # is mirrored: a BLAS need not return M M' symmetric to the last bit.
        times = 2 if repair == "flip" else 1
        half = vectors[:, negative] * np.sqrt(-values[negative] * times)
        repaired = K + half @ half.T
        repaired = np.tril(repaired) + np.tril(repaired, -1).T
        record = f"{'flipped' if repair == 'flip' else 'clipped'} {count}"

    # The repair itself rounds: the shift that makes the factorisation run is part of the bound.
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
