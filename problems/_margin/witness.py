"""From any point to a witness of a support vector machine: exactly feasible where that is possible.

The nearest feasible point is found in floating point and then moved by its rounding, so that its
sums are exact (`klopt.proof.dyadic`). What a witness proves is in `klopt.problems._margin.proof`.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray
from klopt.kernels.gram import Gram
from klopt.model.problem import Point
from klopt.model.sets import BoxPlane, Product
from klopt.problems._margin.proof import Penalty, class_sum, zeros_unless_finite
from klopt.proof.dyadic import MAX_STEPS, balanced

__all__ = [
    "class_order",
    "class_simplices",
    "epsilon_margin_witness",
    "is_balanced",
    "normal_of",
    "nu_margin_witness",
    "soft_margin_witness",
    "with_sum",
]

ROUNDING = 1e-12
"""A sum that is off by a smaller share of its terms is put right by moving one of them."""


def normal_of(point: Point, K: Gram, unit: float = 1.0) -> dict[str, FloatArray]:
    """Return the normal vector that the point holds, times a unit, by its name.

    Nothing where it has none of the right shape.
    """
    normal = point.dual.get("normal")
    if normal is None or normal.shape != (len(K.factor()),) or not np.isfinite(normal).all():
        return {}
    return {"normal": unit * normal}


def soft_margin_witness(K: Gram, y: FloatArray, C: Penalty, point: Point) -> Point:
    """Return the nearest `alpha` with 0 <= alpha <= C and y'alpha = 0."""
    a = zeros_unless_finite(point.alpha)
    z = y * np.minimum(np.maximum(a, 0.0), C)
    if not is_balanced(z):
        n = y.size
        z = y * BoxPlane(np.zeros(n), np.full(n, C), y).project(a)
    return Point({"alpha": np.abs(balanced(z))}, normal_of(point, K))


def epsilon_margin_witness(K: Gram, C: Penalty, point: Point) -> Point:
    """Return the nearest `beta` with |beta| <= C and 1'beta = 0."""
    x = zeros_unless_finite(point.beta)
    beta = np.minimum(np.maximum(x, -C), C)
    if not is_balanced(beta):
        n = K.size
        beta = BoxPlane(np.full(n, -C), np.full(n, C), np.ones(n)).project(x)
    return Point({"beta": balanced(beta)}, normal_of(point, K))


def is_balanced(z: FloatArray) -> bool:
    """Return whether a point of the box lies in the plane 1'z = 0 but for rounding."""
    return abs(float(z.sum())) <= ROUNDING * float(np.abs(z).sum())


# The nu-SVM


def class_order(y: FloatArray) -> npt.NDArray[np.intp]:
    """Return the points of class +1, then those of class -1."""
    return np.argsort(-y, kind="stable")


def class_simplices(y: FloatArray, nu: float, length: float = 1.0) -> Product:
    """Return 0 <= a <= 1/n, 1'a = nu/2 in each class, for a / length in `class_order`."""
    parts = []
    for count in (np.count_nonzero(y > 0), np.count_nonzero(y < 0)):
        cap = np.full(count, 1 / y.size / length)
        parts.append(BoxPlane(np.zeros(count), cap, np.ones(count), nu / 2 / length))
    return Product(tuple(parts))


def nu_margin_witness(K: Gram, y: FloatArray, nu: float, point: Point) -> Point:
    """Return `shares`, n times the nearest alpha with the sum nu/2 in each class."""
    n = y.size
    a = np.maximum(zeros_unless_finite(point.alpha), 0.0)
    # Too long a vector is shortened first: the nearest feasible point need not be its multiple.
    a *= min(1.0, nu / (float(a.sum()) or 1.0))
    _, enough = class_sum(y, nu)
    shares = np.minimum(n * a, 1.0)
    plus = y > 0
    sums = (float(shares[plus].sum()), float(shares[~plus].sum()))
    if not all(abs(total - enough) <= ROUNDING * enough for total in sums):
        order = class_order(y)
        a[order] = class_simplices(y, nu).repair(a[order])
        shares = n * a
    for in_class in (plus, ~plus):
        shares[in_class] = with_sum(shares[in_class], enough)
    return Point({"shares": shares}, normal_of(point, K, float(n)))


def with_sum(x: FloatArray, total: float) -> FloatArray:
    """Return x, 0 <= x <= 1, moved by rounding within these bounds to the sum `total` or above.

    The sum exceeds `total` by less than 2^-53 of the larger of `total` and the largest entry. It is
    smaller where x has no space for more.

    >>> math.fsum(with_sum(np.array([0.3, 0.7, 0.0]), 1.0))
    1.0
    """
    _, exponent = np.frexp(min(total, 1.0))
    shift = 53 - int(exponent)
    full = np.ldexp(1.0, shift)
    whole = np.rint(np.ldexp(np.clip(x, 0.0, 1.0), shift))
    target = np.ceil(np.ldexp(total, shift))
    for _ in range(MAX_STEPS):
        excess = math.fsum([*whole.tolist(), -float(target)])
        if not excess:
            break
        room = whole if excess > 0 else full - whole
        # An entry between its bounds, where one has the space.
        inside = np.minimum(whole, full - whole)
        index = int(np.argmax(np.where(room >= abs(excess), inside, -1.0)))
        if room[index] < abs(excess):
            index = int(np.argmax(room))
        whole[index] -= math.copysign(min(abs(excess), room[index]), excess)
    return np.asarray(np.ldexp(whole, -shift))
