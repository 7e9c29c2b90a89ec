"""Products of a kernel matrix with a vector: narrow at the cost of one, and as good as exact.

**Lemma K1 (blocks).** Let K be symmetric with K - floor I positive semidefinite, so that |K_ij| <=
r_i r_j with r_i^2 = K_ii - floor. If the n terms of (Kv)_i are added in blocks of B and then over
the N blocks, each passes through at most B + N roundings:

    |fl((Kv)_i) - (Kv)_i|  <=  gamma_{B+N} r_i r'|v| + n eta,

with 2 sqrt(n) in the place of n where B is near sqrt(n) (Higham, Accuracy and Stability, section
4.2).

**Lemma K2 (slices).** Scaled by powers of two to entries of at most 1, a row of K and the vector v
are cut into slices of b bits: slice p has entries that are multiples of 2^-pb, at most 2^-(p-1)b in
size. With n 2^2b <= 2^53 the product of two slices has no rounding at all, in any order of
summation (Ozaki, Ogita, Oishi and Rump, Numerical Algorithms 59, 2012). What m slices leave of each
is at most 2^-mb, so the products of all slices differ from Kv by at most n 2^(1-mb) in these units,
and `math.fsum` adds them with one rounding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from klopt.arrays import FloatArray
from klopt.proof.enclosure import ETA, UNIT_ROUNDOFF, Enclosure, enlarged, gamma, round_up
from klopt.proof.time_budget import exhausted

__all__ = ["enclose_in_blocks", "enclose_in_slices", "entry_bounds"]

BLOCK = 64
"""Terms that are added before the sums of the blocks are."""
SPARSE = 4
"""A vector with fewer entries than one in so many is multiplied by the rows of these alone."""
SLICES = 4
"""Slices of K and of v in Lemma K2."""
ROWS = 64
"""Rows of K that are cut at a time: they fit into a cache."""


def entry_bounds(K: FloatArray, floor: float) -> FloatArray:
    """Return r with |K_ij| <= r_i r_j for a symmetric K with K - floor I positive semidefinite.

    >>> bool(np.all(entry_bounds(np.array([[4.0, 1.0], [1.0, 9.0]]), 0.0) >= [2.0, 3.0]))
    True
    """
    squares = round_up(np.maximum(K.diagonal() - floor, 0.0))
    return np.asarray(round_up(np.sqrt(squares)))


def enclose_in_blocks(K: FloatArray, v: FloatArray, r: FloatArray) -> Enclosure:
    """Return K v of a symmetric K with the `entry_bounds` r, by Lemma K1.

    >>> K = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> r = entry_bounds(K, 0.0)
    >>> enclose_in_blocks(K, np.array([1.0, -1.0]), r).contains(np.array([1.0, -1.0]))
    True
    """
    n = len(K)
    size = enlarged(float(r @ np.abs(v)), n)
    support = np.flatnonzero(v)
    if SPARSE * support.size < n:
        # Terms that are 0 cost nothing and err by nothing.
        K = K[support]
        v = v[support]
    starts = range(0, max(len(v), 1), BLOCK)
    # K is symmetric: rows of it, which lie together in memory, stand for columns.
    parts = [v[start : start + BLOCK] @ K[start : start + BLOCK] for start in starts]
    mid = parts[0]
    for part in parts[1:]:
        mid += part
    # In this order: gamma times a size next to underflow would be 0, where r may be large.
    return Enclosure(mid, enlarged(gamma(min(n, BLOCK) + len(parts)) * r * size, n))


def enclose_in_slices(
    K: FloatArray, v: FloatArray, plus: Sequence[FloatArray | float] = ()
) -> Enclosure:
    """Return K v + sum of `plus`, its error relative to the result, by Lemma K2.

    Parameters
    ----------
    K, v
        A matrix and a vector, both finite.
    plus
        Vectors or numbers that are added before the one rounding.

    >>> K = np.array([[1.0, 1.0 - 2.0**-50], [1.0 - 2.0**-50, 1.0]])
    >>> enclose_in_slices(K, np.array([2.0**50, -(2.0**50)])).mid
    array([ 1., -1.])
    """
    n = len(K)
    bits = (53 - math.ceil(math.log2(max(len(v), 2)))) // 2
    scaled_v, v_exponent = _scaled(v[None, :])
    slices_v = np.stack(_slices(scaled_v[0], bits), axis=1)
    addends = [np.broadcast_to(np.asarray(term, float), n) for term in plus]

    mid = np.empty(n)
    rad = np.empty(n)
    left = len(v) * 2.0 ** (1 - SLICES * bits)
    for start in range(0, n, ROWS):
        # What there is no time for may be any number.
        if exhausted():
            mid[start:] = 0.0
            rad[start:] = np.inf
            break
        rows = slice(start, min(start + ROWS, n))
        scaled, exponents = _scaled(K[rows])
        shifts = exponents + v_exponent[0]
        terms = [part @ slices_v for part in _slices(scaled, bits)]
        # An exact product scaled back loses eta at most, where it underflows.
        columns = [np.ldexp(term, shifts[:, None]) for term in terms]
        columns += [term[rows, None] for term in addends]
        table = np.hstack(columns)
        mid[rows] = [_sum(row) for row in table.tolist()]
        rad[rows] = np.ldexp(left, shifts) + table.shape[1] * ETA
    # This covers the underflow of the first term.
    rad = enlarged(rad + UNIT_ROUNDOFF * np.abs(mid))
    sure = np.isfinite(mid) & np.isfinite(rad)
    return Enclosure(np.where(sure, mid, 0.0), np.where(sure, rad, np.inf))


def _scaled(A: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Each row over a power of two, at most 1 in size, and the exponents of these powers."""
    _, exponents = np.frexp(np.abs(A).max(axis=1))
    return np.ldexp(A, -exponents[:, None]), exponents


def _slices(A: FloatArray, bits: int) -> list[FloatArray]:
    """Slices of A, |A| <= 1: slice p in multiples of 2^(-p bits); each subtraction is exact."""
    parts = []
    for p in range(1, SLICES + 1):
        part = np.rint(A * 2.0 ** (p * bits)) * 2.0 ** (-p * bits)
        parts.append(part)
        A = A - part
    return parts


def _sum(terms: list[float]) -> float:
    """The correctly rounded sum; NaN where there is none."""
    try:
        return math.fsum(terms)
    except (OverflowError, ValueError):
        return math.nan
