"""The exact Euclidean projection onto the exponential cone, by case analysis and one scalar root.

    K   = closure {(x, y, z) : y > 0, y exp(x/y) <= z}
    K°  = closure {(u, v, w) : u > 0, u exp(v/u - 1) <= -w}        (the polar cone, -K*)

A point v outside both, and not in the quadrant x, y <= 0, splits as v = t p + s d with t, s > 0 and

    p(rho) = (rho, 1, exp(rho))  in K,
    d(rho) = (exp(rho), (1 - rho) exp(rho), -1)  in K°,    p'd = 0,

so that t p is the projection (Moreau). The first two coordinates give t and S = s exp(rho) in
closed form,

    t = ((rho - 1) x + y) / q,    S = (x - rho y) / q,    q = rho^2 - rho + 1,

and the third is the equation h(rho) = t exp(rho) - S exp(-rho) - z = 0, which increases over the
interval t, S > 0: *Friberg (2021)*, Projection onto the exponential cone: a univariate root-finding
problem.
"""

from __future__ import annotations

import numpy as np

from klopt.arrays import EPS, FloatArray

__all__ = ["project_exponential"]

SMALLEST_ENTRY = 1e-150
"""After a row is scaled to largest entry 1, smaller entries count as zero.

So rho, a quotient of entries, keeps a finite square, and the projection, being nonexpansive, moves
by no more than this.
"""
MAX_DOUBLINGS = 200
"""Doublings of the interval that holds the root, where one of its ends is infinite."""
MAX_NEWTON_STEPS = 200
"""Newton and bisection steps on the equation h(rho) = 0."""
BISECTION_PERIOD = 4
"""Every so many steps is a bisection, so that a slow Newton iteration still ends."""


def project_exponential(v: FloatArray) -> FloatArray:
    """Return the nearest point of the exponential cone to each row (x, y, z) of v.

    >>> project_exponential(np.array([[1.0, 1.0, 3.0], [-1.0, -1.0, 2.0], [1.0, 0.0, -1.0]]))
    array([[ 1.,  1.,  3.],
           [-1.,  0.,  2.],
           [ 0.,  0.,  0.]])
    """
    # K is a cone: each row is projected at size 1 and scaled back.
    scale = np.abs(v).max(axis=1, keepdims=True, initial=0.0)
    scale[scale == 0.0] = 1.0
    unit = v / scale
    unit[np.abs(unit) < SMALLEST_ENTRY] = 0.0
    x, y, z = unit.T

    # A point of K is its own projection, one of K° has the apex, and below the quadrant x, y <= 0
    # lies the face {x <= 0, y = 0, z >= 0}.
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        inside = (y > 0) & (y * np.exp(x / y) <= z)
        polar = (x > 0) & (x * np.exp(y / x - 1.0) <= -z)
    quadrant = (x <= 0) & (y <= 0)
    out = np.where(inside[:, None], v, 0.0)
    out[quadrant] = v[quadrant]
    out[quadrant, 1] = 0.0
    out[quadrant, 2] = np.maximum(v[quadrant, 2], 0.0)

    rest = ~(inside | polar | quadrant)
    if rest.any():
        out[rest] = scale[rest] * _split(x[rest], y[rest], z[rest])
    return out


def _split(x: FloatArray, y: FloatArray, z: FloatArray) -> FloatArray:
    """The part t p(rho) of each v = t p + s d."""
    low, high = _bracket(x, y, z)
    rho = _root(x, y, z, low, high)
    t, S = _coefficients(rho, x, y)
    decay = np.exp(-np.abs(rho))
    # The last entry is t exp(rho) = z + s. For rho > 0 the left side would magnify the rounding of
    # t, which is a difference; the right side is stable, and gives t.
    height = np.where(rho > 0, np.maximum(z + S * decay, 0.0), t * decay)
    t = np.where(rho > 0, height * decay, t)
    return np.column_stack((rho * t, t, height))


def _coefficients(rho: FloatArray, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(t, S) at rho, clipped to the signs they have within the bracket."""
    q = rho * (rho - 1.0) + 1.0
    t = np.maximum((rho - 1.0) * x + y, 0.0) / q
    S = np.maximum(x - rho * y, 0.0) / q
    return t, S


def _equation(
    rho: FloatArray, x: FloatArray, y: FloatArray, z: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """h(rho) exp(-|rho|), which has the sign of h and never overflows, and its derivative."""
    t, S = _coefficients(rho, x, y)
    q = rho * (rho - 1.0) + 1.0
    q_derivative = 2.0 * rho - 1.0
    t_derivative = (x - t * q_derivative) / q
    S_derivative = (-y - S * q_derivative) / q

    # Multiplied by exp(-|rho|), the exponentials exp(rho) and exp(-rho) are 1 and exp(-2 |rho|).
    decay = np.exp(-np.abs(rho))
    square = decay * decay
    right = rho > 0
    value = np.where(right, t - S * square, t * square - S) - z * decay
    derivative_right = t_derivative + (2.0 * S - S_derivative) * square
    derivative_left = (t_derivative + 2.0 * t) * square - S_derivative
    derivative = np.where(right, derivative_right, derivative_left)
    return value, derivative + np.where(right, z, -z) * decay


def _bracket(x: FloatArray, y: FloatArray, z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The interval t, S > 0, cut where it is infinite by doubling until h changes sign."""
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.where(x > 0, 1.0 - y / x, -np.inf)
        high = np.where(y > 0, x / y, np.inf)
    no_low = np.isinf(low)
    no_high = np.isinf(high)

    reach = np.maximum(1.0, np.abs(np.where(no_low, high, low)))
    for _ in range(MAX_DOUBLINGS):
        left = np.where(no_low, high, low)
        left[no_low] -= reach[no_low]
        right = np.where(no_high, low, high)
        right[no_high] += reach[no_high]

        # h increases: an end is too near while h there has the sign of the other end.
        value_left, _ = _equation(left, x, y, z)
        value_right, _ = _equation(right, x, y, z)
        short = (no_low & (value_left > 0)) | (no_high & (value_right < 0))
        if not short.any():
            break
        reach[short] *= 2.0
    return left, right


def _root(
    x: FloatArray, y: FloatArray, z: FloatArray, low: FloatArray, high: FloatArray
) -> FloatArray:
    """The zero of h in [low, high], by Newton steps that bisections keep inside."""
    rho = _middle(low, high)
    for step in range(MAX_NEWTON_STEPS):
        value, derivative = _equation(rho, x, y, z)
        low = np.where(value <= 0, rho, low)
        high = np.where(value >= 0, rho, high)

        # NaN and infinite steps fail the comparisons below.
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            newton = rho - value / derivative
        is_newton_turn = step % BISECTION_PERIOD != BISECTION_PERIOD - 1
        good = (newton >= low) & (newton <= high) & is_newton_turn
        following = np.where(good, newton, _middle(low, high))

        close = 2.0 * EPS * np.maximum(1.0, np.abs(rho))
        exact = value == 0
        converged = good & (np.abs(newton - rho) <= close / 4)
        done = exact | (high - low <= close) | converged
        rho = np.where(exact, rho, following)
        if done.all():
            break
    return rho


def _middle(low: FloatArray, high: FloatArray) -> FloatArray:
    """A midpoint that halves the number of open digits, also of ends many orders apart."""
    middle = np.sinh((np.arcsinh(low) + np.arcsinh(high)) / 2.0)
    return np.clip(middle, low, high)
