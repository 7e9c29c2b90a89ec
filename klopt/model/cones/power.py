"""Power cones: their exponents as exact numbers, and the exact Euclidean projection onto them.

    K   = {(x, z) : x_1^a_1 .. x_k^a_k >= |z|,  x >= 0},      a > 0,  a_1 + .. + a_k = 1
    K*  = {(u, v) : (u_1/a_1)^a_1 .. (u_k/a_k)^a_k >= |v|,  u >= 0}

The exponents of a cone are kept as whole numbers without a common divisor, a_i = w_i / (w_1 + .. +
w_k): so they sum to 1 exactly, which floats mostly do not.

A point outside K and outside its polar cone -K* is projected to (x(r), sign(z) r) with

    x_i(r) = (x_i + sqrt(x_i^2 + 4 a_i r (|z| - r))) / 2,     0 < r < |z|,

where r solves sum_i a_i log x_i(r) = log r: *Hien (2015)*, Differential properties of Euclidean
projection onto power cone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from numbers import Real

import numpy as np

from klopt.arrays import FloatArray
from klopt.errors import InvalidProblem

__all__ = ["Weights", "exponents", "power_sizes", "power_weights", "project_power"]

Weights = tuple[int, ...]
"""The exponents of one power cone, each times their common denominator."""

BISECTIONS = 70
"""Halvings of an interval of length 780 that leave nothing of it in double precision."""
LOG_SMALLEST = -740.0
LOG_LARGEST = 40.0


def power_weights(value: object) -> tuple[Weights, ...]:
    """Return the exponents of power cones as whole numbers.

    A number alpha stands for the cone of three rows with the exponents alpha and 1 - alpha, a
    sequence for exponents that are divided by their sum.

    >>> power_weights([0.25, (1, 2, 3)])
    ((1, 3), (1, 2, 3))
    """
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidProblem(
            f"cones.power is {value!r}; expected the exponents of the cones, such as (0.5,)"
        )
    return tuple(_weights(f"cones.power[{index}]", cone) for index, cone in enumerate(value))


def _weights(name: str, cone: object) -> Weights:
    if isinstance(cone, Real):
        alpha = _positive(name, cone)
        if alpha >= 1:
            raise InvalidProblem(f"{name} is {cone}; expected an exponent between 0 and 1")
        found = [alpha, 1 - alpha]
    elif isinstance(cone, Iterable) and not isinstance(cone, str):
        found = [_positive(f"{name}[{index}]", part) for index, part in enumerate(cone)]
    else:
        raise InvalidProblem(f"{name} is {cone!r}; expected a number or a sequence of numbers")
    if not found:
        raise InvalidProblem(f"{name} is empty; a power cone has at least one exponent")
    denominator = math.lcm(*(part.denominator for part in found))
    whole = [part.numerator * (denominator // part.denominator) for part in found]
    divisor = math.gcd(*whole)
    return tuple(part // divisor for part in whole)


def _positive(name: str, value: object) -> Fraction:
    if not isinstance(value, Real) or not math.isfinite(value):
        raise InvalidProblem(f"{name} is {value!r}; expected a finite number")
    exact = Fraction(value) if isinstance(value, int | Fraction) else Fraction(float(value))
    if exact <= 0:
        raise InvalidProblem(f"{name} is {value}; expected a positive exponent")
    return exact


def exponents(weights: Weights) -> FloatArray:
    """Return the exponents a_i of a cone as floats, each rounded once.

    >>> exponents((1, 3))
    array([0.25, 0.75])
    """
    total = sum(weights)
    return np.array([float(Fraction(weight, total)) for weight in weights])


def power_sizes(cones: Sequence[Weights]) -> list[int]:
    """Return the number of rows of each cone."""
    return [len(weights) + 1 for weights in cones]


def project_power(cones: Sequence[Weights], s: FloatArray) -> FloatArray:
    """Return the nearest point of a product of power cones, whose rows follow each other in s.

    >>> project_power([(1, 1)], np.array([0.0, 0.0, 2.0]))
    array([0.66666667, 0.66666667, 0.66666667])
    """
    sizes = power_sizes(cones)
    ends = np.cumsum(sizes)
    last = ends - 1
    # One row of a table for each cone, filled up by entries 1 with exponent 0.
    width = max(sizes) - 1
    a = np.zeros((len(cones), width))
    x = np.ones((len(cones), width))
    places = np.zeros((len(cones), width), dtype=np.intp)
    for row, weights in enumerate(cones):
        k = len(weights)
        places[row, :k] = np.arange(ends[row] - k - 1, ends[row] - 1)
        a[row, :k] = exponents(weights)
        x[row, :k] = s[places[row, :k]]
    # K is a cone: each point is projected at size 1 and scaled back.
    scale = np.maximum(np.abs(np.where(a > 0, x, 0.0)).max(axis=1), np.abs(s[last]))
    scale[scale == 0.0] = 1.0
    x = np.where(a > 0, x / scale[:, None], 1.0)
    z = s[last] / scale

    projected, height = _projected(a, x, np.abs(z))
    inside = (x >= 0).all(axis=1) & (_mean(a, x) >= np.abs(z))
    out = s.copy()
    used = (a > 0) & ~inside[:, None]
    out[places[used]] = (projected * scale[:, None])[used]
    out[last[~inside]] = (np.sign(z) * height * scale)[~inside]
    return out


def _mean(a: FloatArray, x: FloatArray) -> FloatArray:
    """The weighted geometric mean of each row of entries that are not negative."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(a > 0, a * np.log(np.maximum(x, 0.0)), 0.0)
    return np.asarray(np.exp(logs.sum(axis=1)))


def _projected(a: FloatArray, x: FloatArray, z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The projections (x(r), r) of points (x, z), z >= 0, that do not lie in K."""
    # -(x, z) in K* means the apex; z = 0 outside K means x_+, which is also the limit r -> 0.
    with np.errstate(divide="ignore", invalid="ignore"):
        in_polar = ((x <= 0) | (a == 0)).all(axis=1)
        in_polar &= _mean(a, np.where(a > 0, -x / a, 1.0)) >= z
    flat = in_polar | (z == 0)

    # r = z / (1 + exp(-t)) and z - r = z / (1 + exp(t)) are both accurate for every t.
    low = np.full(len(z), LOG_SMALLEST)
    high = np.full(len(z), LOG_LARGEST)
    r = np.zeros_like(z)
    moved = np.maximum(x, 0.0)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        with np.errstate(over="ignore", under="ignore"):
            r = z / (1 + np.exp(-middle))
            rest = z / (1 + np.exp(middle))
        moved = _moved(a, x, r * rest)
        short = _mean(a, moved) < r
        high = np.where(short, middle, high)
        low = np.where(short, low, middle)
    moved = np.where(flat[:, None], np.maximum(x, 0.0), moved)
    return moved, np.where(flat, 0.0, r)


def _moved(a: FloatArray, x: FloatArray, product: FloatArray) -> FloatArray:
    """x_i(r) for the product r (|z| - r), without cancellation where x_i < 0."""
    c = a * product[:, None]
    root = np.sqrt(x * x + 4 * c)
    with np.errstate(divide="ignore", invalid="ignore"):
        below = np.where(c > 0, 2 * c / (root - x), 0.0)
    return np.where(x >= 0, (x + root) / 2, below)
