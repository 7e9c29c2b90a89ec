"""The exact Euclidean projection onto the exponential cone, by case analysis and one scalar root.

    K   = closure {(x, y, z) : y > 0, y exp(x/y) <= z}
    K°  = closure {(u, v, w) : u > 0, u exp(v/u - 1) <= -w}        (the polar cone, -K*)

A point v outside both, and not in the quadrant x, y <= 0, splits as v = t p + s d with t, s > 0 and

    p(rho) = (rho, 1, exp(rho))  in K,    d(rho) = (exp(rho), (1 - rho) exp(rho), -1)  in K°,    p'd = 0,

so that t p is the projection (Moreau). The first two coordinates give t and S = s exp(rho) in
closed form,

    t = ((rho - 1) x + y) / q,    S = (x - rho y) / q,    q = rho^2 - rho + 1,

and the third is the equation h(rho) = t exp(rho) - S exp(-rho) - z = 0, which increases over the
interval t, S > 0 (H. A. Friberg, Projection onto the exponential cone: a univariate root-finding
problem, 2021).
"""

from __future__ import annotations

import numpy as np

from klopt.arrays import FloatArray

__all__ = ["project_exponential"]

# After a row is scaled to largest entry 1, smaller entries count as zero: rho, a quotient of
# entries, keeps a finite square, and the projection, being nonexpansive, moves by no more than
# this.
_TINY = 1e-150
_STEPS = 200


def project_exponential(v: FloatArray) -> FloatArray:
    """Return the nearest point of the exponential cone to each row (x, y, z) of v.

    >>> project_exponential(np.array([[1.0, 1.0, 3.0], [-1.0, -1.0, 2.0], [1.0, 0.0, -1.0]]))
    array([[ 1.,  1.,  3.],
           [-1.,  0.,  2.],
           [ 0.,  0.,  0.]])
    """
    scale = np.abs(v).max(axis=1, keepdims=True, initial=0.0)
    scale[scale == 0.0] = 1.0
    unit = v / scale
    unit[np.abs(unit) < _TINY] = 0.0
    x, y, z = unit.T
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
    """The part t p(rho) of each v = t p + s d, by whichever of the two formulas for its last entry is stable."""
    rho = _root(x, y, z, *_bracket(x, y, z))
    t, S = _coefficients(rho, x, y)
    decay = np.exp(-np.abs(rho))
    # For rho > 0 t is a difference that exp(rho) would blow up; z + s is not.
    height = np.where(rho > 0, np.maximum(z + S * decay, 0.0), t * decay)
    t = np.where(rho > 0, height * decay, t)
    return np.column_stack((rho * t, t, height))


def _coefficients(rho: FloatArray, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(t, S) at rho, clipped to the signs they have within the bracket."""
    q = rho * (rho - 1.0) + 1.0
    return np.maximum((rho - 1.0) * x + y, 0.0) / q, np.maximum(x - rho * y, 0.0) / q


def _equation(
    rho: FloatArray, x: FloatArray, y: FloatArray, z: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """h(rho) exp(-|rho|) and its derivative: the sign of h, and no exponential of a positive number."""
    t, S = _coefficients(rho, x, y)
    q = rho * (rho - 1.0) + 1.0
    t_gradient, S_gradient = (x - t * (2.0 * rho - 1.0)) / q, (-y - S * (2.0 * rho - 1.0)) / q
    decay = np.exp(-np.abs(rho))
    square = decay * decay
    right = rho > 0
    value = np.where(right, t - S * square, t * square - S) - z * decay
    gradient = np.where(
        right,
        t_gradient + (2.0 * S - S_gradient) * square,
        (t_gradient + 2.0 * t) * square - S_gradient,
    )
    return value, gradient + np.where(right, z, -z) * decay


def _bracket(x: FloatArray, y: FloatArray, z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The interval t, S > 0, cut where it is infinite by doubling until h changes sign."""
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.where(x > 0, 1.0 - y / x, -np.inf)
        high = np.where(y > 0, x / y, np.inf)
    no_low, no_high = np.isinf(low), np.isinf(high)
    reach = np.maximum(1.0, np.abs(np.where(no_low, high, low)))
    for _ in range(_STEPS):
        left, right = np.where(no_low, high, low), np.where(no_high, low, high)
        left[no_low] -= reach[no_low]
        right[no_high] += reach[no_high]
        short = (no_low & (_equation(left, x, y, z)[0] > 0)) | (
            no_high & (_equation(right, x, y, z)[0] < 0)
        )
        if not short.any():
            break
        reach[short] *= 2.0
    return left, right


def _root(
    x: FloatArray, y: FloatArray, z: FloatArray, low: FloatArray, high: FloatArray
) -> FloatArray:
    """The zero of h in [low, high] by Newton steps, with a bisection wherever Newton leaves the bracket or is slow."""
    rho = _middle(low, high)
    for step in range(_STEPS):
        value, gradient = _equation(rho, x, y, z)
        low, high = np.where(value <= 0, rho, low), np.where(value >= 0, rho, high)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            newton = rho - value / gradient
        good = (newton >= low) & (newton <= high) & (step % 4 != 3)
        following = np.where(good, newton, _middle(low, high))
        close = 2.0 * np.finfo(float).eps * np.maximum(1.0, np.abs(rho))
        done = (value == 0) | (high - low <= close) | (good & (np.abs(newton - rho) <= close / 4))
        rho = np.where(value == 0, rho, following)
        if done.all():
            break
    return rho


def _middle(low: FloatArray, high: FloatArray) -> FloatArray:
    """A midpoint that halves the number of digits still open, also when the ends differ by many orders."""
    return np.clip(np.sinh((np.arcsinh(low) + np.arcsinh(high)) / 2.0), low, high)
