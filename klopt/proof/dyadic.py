"""Vectors of floats whose sum is a given number exactly.

Floats of about one size are whole multiples of a power of two, their unit, and whole numbers up to
2^53 are added and compared without rounding. `math.fsum` is correctly rounded, and every sum of
floats is a multiple of 2^-1074: so it returns 0 if and only if the exact sum is 0, and its sign is
the sign of the exact sum.
"""

from __future__ import annotations

import math

import numpy as np

from klopt.arrays import FloatArray

__all__ = ["balanced", "exact_sign_of_sum"]

MAX_STEPS = 64
"""Entries that are moved at most; the first one takes all of it unless it is small."""


def exact_sign_of_sum(x: FloatArray, minus: float = 0.0) -> int:
    """Return the sign of (sum of x) - minus in exact arithmetic; x is finite.

    >>> exact_sign_of_sum(np.array([1e16, 1.0, -1e16])), exact_sign_of_sum(np.full(10, 0.1), 1.0)
    (1, 1)
    """
    total = math.fsum([*x.tolist(), -minus])
    return (total > 0) - (total < 0)


def balanced(z: FloatArray) -> FloatArray:
    """Return z moved by rounding so that its sum is exactly 0; no entry grows or changes its sign.

    The sum of z must be small against its largest entry, else what is returned is not near z.

    >>> z = balanced(np.array([0.1, 0.2, -0.3]))
    >>> z, exact_sign_of_sum(z)
    (array([ 0.1,  0.2, -0.3]), 0)
    """
    # The largest entry becomes a whole number of 53 bits, and stays as it is.
    _, exponent = np.frexp(np.abs(z).max(initial=0.0))
    whole = np.trunc(np.ldexp(z, 53 - int(exponent)))
    for _ in range(MAX_STEPS):
        excess = math.fsum(whole.tolist())
        if not excess:
            break
        # The side that has too much is lowered, its largest entry first.
        index = int(np.argmax(whole if excess > 0 else -whole))
        whole[index] -= math.copysign(min(abs(excess), abs(whole[index])), excess)
    return np.asarray(np.ldexp(whole, int(exponent) - 53))
