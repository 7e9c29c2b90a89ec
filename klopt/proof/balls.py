"""Matrices of balls (Arb): proofs for small matrices where double precision does not suffice.

A ball is a number of as many bits as asked for, with a radius that bounds every rounding before it
(Johansson, Arb: efficient arbitrary-precision midpoint-radius interval arithmetic, 2017). Floats
are balls of radius 0. A comparison of balls is true where it holds for all numbers in them.

**Lemma B1 (Sylvester).** A symmetric matrix is positive definite if and only if the pivots of its
elimination without exchanges are positive; its determinant is their product.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from klopt.arrays import FloatArray
from klopt.proof.enclosure import Enclosure

__all__ = ["ball_matrix", "definite_log_det", "elimination", "enclosure_of_ball", "working_bits"]


@contextmanager
def working_bits(bits: int) -> Iterator[None]:
    """Compute with so many bits."""
    from flint import ctx

    with ctx.workprec(bits):
        yield


def ball_matrix(A: FloatArray) -> Any:
    """Return a matrix of floats as balls of radius 0."""
    from flint import arb_mat

    return arb_mat(A.tolist())


def definite_log_det(A: Any) -> Any | None:
    """Return log det A of a symmetric matrix by Lemma B1; None where it may not be definite.

    Only the lower triangle is read.

    >>> with working_bits(100):
    ...     found = enclosure_of_ball(definite_log_det(ball_matrix(np.array([[2.0, 1], [1, 2]]))))
    >>> found.contains(np.log(3.0)), bool(found.rad < 1e-15)
    (True, True)
    """
    from flint import arb

    eliminated = elimination(A)
    if eliminated is None:
        return None
    determinant = arb(1)
    for k in range(len(eliminated)):
        determinant *= eliminated[k][k]
    return determinant.log()


def elimination(A: Any) -> list[list[Any]] | None:
    """The lower triangle after elimination: pivots on the diagonal, below them their columns."""
    rows: list[list[Any]] = A.tolist()
    for k in range(len(rows)):
        pivot = rows[k][k]
        if not pivot > 0:
            return None
        for i in range(k + 1, len(rows)):
            row = rows[i]
            share = row[k] / pivot
            for j in range(k + 1, i + 1):
                row[j] -= share * rows[j][k]
    return rows


def enclosure_of_ball(x: Any) -> Enclosure:
    """Return the floats around a ball; all numbers where it is not finite."""
    low = float(x.lower())
    high = float(x.upper())
    if not (math.isfinite(low) and math.isfinite(high)):
        return Enclosure(0.0, math.inf)
    # The conversion rounds to nearest.
    return Enclosure.between(float(np.nextafter(low, -np.inf)), float(np.nextafter(high, np.inf)))
