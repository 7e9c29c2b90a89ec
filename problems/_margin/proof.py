"""What coefficients prove about a support vector machine: both bounds of each dual in closed form.

One bound is the value at a feasible point, made from the given one. The other is weak duality: the
primal value of a classifier, for which the dual coefficients are only a place to take it from.
Each dual has a function `*_bracket` that states its inequality; before them come the parts they
share with other families.

K is known to be positive semidefinite only up to its floor -phi: what is meant is K + E with 0 <= E
<= phi I. Let z be the coefficients of a feasible point, z* the best ones, f = Kz. Weak duality uses
(z* - z)'K(z* - z) >= 0, so its bound errs by at most either of

    phi/2 ||z* - z||^2                                     small where C is
    phi/2 ||z||^2  and phi ||z|| in each entry of f        does not know C

A point may hold a normal vector w (from the multipliers of an epigraph). With K = R'R + E' it
stands for f = R'w and ||w||^2; as a bound that is as good as any other f, up to ||E'||/2 ||z*||^2.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from klopt.arrays import EPS, FloatArray
from klopt.kernels.gram import Gram
from klopt.model.problem import Bracket, Point
from klopt.model.sets import BoxPlane, Product

__all__ = [
    "best_shift",
    "best_stretch",
    "best_tube",
    "class_order",
    "class_simplices",
    "epsilon_margin_bracket",
    "hinge_bias",
    "hinge_primal",
    "largest_nu",
    "middle_of",
    "normal_of",
    "nu_margin_bracket",
    "soft_margin_bracket",
    "tube_upper",
    "zeros_unless_finite",
]

ROUNDING = 8 * EPS
"""The relative error of a sum as it is computed here, with a factor to spare."""
MIN_RELATIVE_GAIN = 1e-9
"""A multiple that improves the value by a smaller share than this is not taken: it is rounding."""


# Any point


def zeros_unless_finite(x: FloatArray) -> FloatArray:
    """Return x, or zeros where x has a NaN or infinite entry: a bracket holds from there too."""
    return x if np.isfinite(x).all() else np.zeros_like(x)


def normal_of(point: Point, K: Gram) -> FloatArray | None:
    """Return the normal vector that the point holds; None where it has none of the right shape."""
    normal = point.dual.get("normal")
    if normal is None or normal.shape != (len(K.factor()),) or not np.isfinite(normal).all():
        return None
    return normal


# The hinge loss


def best_shift(breaks: FloatArray, count: int) -> float:
    """Return a minimiser of a convex piecewise linear function with given breaks.

    Its derivative is -count on the left and goes up by 1 at each break, so that a minimiser lies
    between the break number `count` and the next one: the middle is taken.

    >>> best_shift(np.array([3.0, 0.0, 2.0]), 2)
    2.5
    """
    ordered = np.partition(breaks, [count - 1, count])
    left = ordered[count - 1]
    right = ordered[count]
    return float(left + (right - left) / 2)


def hinge_bias(y: FloatArray, f: FloatArray) -> float:
    """Return the b that minimises sum_i max(0, 1 - y_i (f_i + b)): a median of y - f."""
    return best_shift(y - f, int(np.count_nonzero(y > 0)))


def hinge_primal(margins: FloatArray, squared_norm: float, C: float) -> tuple[float, float]:
    """Return the primal value of the best multiple s of a classifier with margins m, and s.

        minimum over s >= 0 of    s^2 squared_norm / 2 + C sum_i max(0, 1 - s m_i)

    It is convex in s with breaks at 1 / m_i, so that sorting the margins finds its minimiser. The
    multiple matters where C is large: a classifier whose margins fall short of 1 by 1e-12 pays C
    times for that, one stretched by 1e-12 does not.

    >>> hinge_primal(np.array([0.5, 2.0]), squared_norm=1.0, C=10.0)
    (2.0, 2.0)
    """
    if np.isinf(C):
        # Hard margin: the smallest margin must reach 1.
        smallest = float(margins.min())
        if not smallest > 0:
            return np.inf, 1.0
        return max(squared_norm, 0.0) / 2 / smallest**2, 1 / smallest

    m = np.sort(margins)
    scales = np.array([1.0, _best_scale(m, squared_norm, C)])
    losses = np.maximum(1 - np.multiply.outer(scales, m), 0.0).sum(axis=1)
    values = scales * scales * (squared_norm / 2) + C * losses
    # The scale 1 stays where the other one, by rounding, is no better.
    better = int(values[1] < values[0])
    return float(values[better]), float(scales[better])


def _best_scale(m: FloatArray, squared_norm: float, C: float) -> float:
    """The s >= 0 where the derivative, s squared_norm - C (sum of the m_i < 1/s), changes sign."""
    lost = m.cumsum()
    first = int(m.searchsorted(0.0, "right"))  # margins up to here have no break at s > 0
    with np.errstate(all="ignore"):
        breaks = 1 / m[first:]
        # Beyond the break 1 / m_j only the points before j lose: the derivative falls with j.
        j = first + int(np.count_nonzero(squared_norm * breaks > C * (lost - m)[first:]))

    # Between the breaks `low` and `high` the derivative is linear, with this zero.
    pull = C * float(lost[j - 1]) if j > first else 0.0
    if squared_norm > 0:
        zero = pull / squared_norm
    else:
        zero = np.inf if pull > 0 else 0.0
    low = float(breaks[j - first]) if j < m.size else 0.0
    high = float(breaks[j - first - 1]) if j > first else np.inf
    return min(max(zero, low), high)


def best_stretch(a: FloatArray, curvature: float, C: float) -> float:
    """Return the s that maximises s 1'a - s^2 curvature / 2, s a <= C; 1 where it gains little."""
    total = float(a.sum())
    largest = float(a.max())
    if not largest > 0:
        return 1.0
    unbounded = total / curvature if curvature > 0 else np.inf
    factor = min(unbounded, C / largest)
    gain = (factor - 1) * total - (factor**2 - 1) * curvature / 2
    return factor if gain > MIN_RELATIVE_GAIN * total else 1.0


# The C-SVM


def soft_margin_bracket(K: Gram, y: FloatArray, C: float, point: Point) -> Bracket:
    """Return the bounds that alpha proves of  max 1'a - a'Qa/2  over  0 <= a <= C,  y'a = 0.

    Lower: the value at the nearest feasible point, stretched to its best multiple. Upper: let a be
    that point, f = K(y o a), b any bias and s >= 0. For every feasible a*

        1'a* - a*'Qa*/2  <=  1'a* - s a*'Qa + s^2 a'Qa/2              (a* - sa)'Q(a* - sa) >= 0
                          =  s^2 a'Qa/2 + sum_i a*_i (1 - s m_i)      y'a* = 0
                         <=  s^2 a'Qa/2 + C sum_i max(0, 1 - s m_i)   0 <= a* <= C

    with the margins m_i = y_i (f_i + b).

    Parameters
    ----------
    K, y, C
        The kernel matrix, labels -1 and +1, and the penalty, which may be infinite.
    point
        Holds `alpha`, any vector, and maybe the normal vector `normal`.
    """
    n = y.size
    phi = -K.floor
    feasible = BoxPlane(np.zeros(n), np.full(n, C), y)
    a = feasible.project(zeros_unless_finite(point.alpha))
    f = K.matrix @ (y * a)

    stretch = best_stretch(a, float(a @ (y * f)), C)
    if stretch != 1.0:
        a = stretch * a
        f = stretch * f
    total = float(a.sum())
    curvature = float(a @ (y * f))
    squared_length = float(a @ a)
    rounding = ROUNDING * (total + float(a @ np.abs(f)))
    lower = total - curvature / 2 - phi / 2 * squared_length - rounding

    bias = hinge_bias(y, f)
    margins = y * (f + bias)
    upper = _soft_margin_upper(a, margins, curvature, C, phi)
    duals = {"slack": np.maximum(1 - margins, 0.0)}
    normal = normal_of(point, K)
    if normal is not None:
        by_normal = _soft_margin_upper_by_normal(K, y, C, normal, upper)
        if by_normal < upper:
            upper = by_normal
            duals["normal"] = normal

    note = ""
    if not np.isfinite(upper):
        note = "this point separates nothing, so it bounds nothing from above"
    return Bracket(lower, upper + rounding, Point({"alpha": a, "bias": bias}, duals), note)


def _soft_margin_upper(
    a: FloatArray, margins: FloatArray, curvature: float, C: float, phi: float
) -> float:
    """The dual bound of the C-SVM dual: a primal value, with the smaller charge for the floor.

    The classifier is the best multiple of the one that the multipliers a make; phi = -floor of K
    is charged in one of two ways.
    """
    squared_length = float(a @ a)
    # The charge that does not know C: phi ||a|| in each margin, phi ||a||^2 in the norm.
    shorter = margins - phi * np.sqrt(squared_length)
    upper, _ = hinge_primal(shorter, curvature + phi * squared_length, C)

    near, scale = hinge_primal(margins, curvature, C)
    if not phi:
        return min(upper, near)
    # The other charge, phi/2 ||a* - sa||^2: by the box, or by what is known of ||a*||.
    reach = np.maximum(scale * a, np.abs(C - scale * a))
    by_length = scale**2 * squared_length + _max_squared_length(upper, a.size, C)
    distance = min(float(reach @ reach), by_length)
    return min(upper, near + phi / 2 * distance)


def _soft_margin_upper_by_normal(
    K: Gram, y: FloatArray, C: float, normal: FloatArray, upper: float
) -> float:
    """The primal value of the classifier f = R'w with ||w||^2, charged for K - R'R."""
    f = normal @ K.factor()
    margins = y * (f + hinge_bias(y, f))
    value, _ = hinge_primal(margins, float(normal @ normal), C)
    return value + K.factor_error() / 2 * _max_squared_length(upper, y.size, C)


def _max_squared_length(upper: float, n: int, C: float) -> float:
    """A bound of ||a*||^2, where the optimum is at most `upper`.

    a*'Qa* <= 1'a*, else a smaller multiple were better: so 1'a* is at most twice the optimum. Both
    ||a*|| <= 1'a* and ||a*||^2 <= C 1'a* hold, and 1'a* <= n C.
    """
    if not upper:
        return 0.0
    return min(4 * upper * upper, C * min(2 * upper, n * C))


# The nu-SVM


def largest_nu(y: FloatArray) -> float:
    """Return 2 min(n+, n-) / n, the largest nu for which the nu-SVM has a feasible point."""
    smaller_class = min(np.count_nonzero(y > 0), np.count_nonzero(y < 0))
    return 2 * float(smaller_class) / y.size


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


def nu_margin_bracket(K: Gram, y: FloatArray, nu: float, point: Point) -> Bracket:
    """Return the bounds alpha proves of  min a'Qa/2  over  0 <= a <= 1/n,  y'a = 0,  1'a >= nu.

    Upper: the value at a feasible point a with the sum nu/2 in each class. Lower: with f = K(y o a)
    and g = min z'(y o f) over the feasible z of these sums, for every such z and s >= 0

        z'Qz/2  >=  s z'Qa - s^2 a'Qa/2  >=  s g - s^2 a'Qa/2        (z - sa)'Q(z - sa) >= 0

    and the best s makes that g^2 / (2 a'Qa). Sorting gives g class by class (`_knapsack`); the
    prices at which the two sums are met are rho - b and rho + b, of the classifier f + b with the
    margin rho.

    Parameters
    ----------
    K, y, nu
        The kernel matrix, labels -1 and +1, and 0 < nu <= `largest_nu(y)`.
    point
        Holds `alpha`, any vector, and maybe the normal vector `normal`.
    """
    n = y.size
    phi = -K.floor
    order = class_order(y)
    a = np.maximum(zeros_unless_finite(point.alpha), 0.0)
    # Too long a vector is shortened first: the nearest feasible point need not be its multiple.
    a *= min(1.0, nu / (float(a.sum()) or 1.0))
    a[order] = class_simplices(y, nu).repair(a[order])
    f = K.matrix @ (y * a)

    # |K_ij| <= r_i r_j, so that the terms of f_i add up to at most r_i size: they may cancel, their
    # rounding does not.
    r = np.sqrt(np.maximum(K.matrix.diagonal(), 0.0))
    largest = float(r.max())
    size = float(r @ a)
    curvature = float(a @ (y * f)) + phi * float(a @ a) + ROUNDING * size * size
    lower = _nu_margin_lower(y, nu, f, curvature, ROUNDING * size * largest)

    duals: dict[str, FloatArray] = {}
    normal = normal_of(point, K)
    if normal is not None:
        size = float(np.linalg.norm(normal))
        squared_norm = size * size * (1 + ROUNDING)
        error = ROUNDING * size * largest
        by_normal = _nu_margin_lower(y, nu, normal @ K.factor(), squared_norm, error)
        # ||z||^2 <= 1'z / n = nu / n.
        by_normal -= K.factor_error() / 2 * nu / n
        if by_normal > lower:
            lower = by_normal
            duals["normal"] = normal

    _, plus, minus = _class_prices(y, nu, f)
    bias = (minus - plus) / 2
    rho = (minus + plus) / 2
    slack = np.maximum(rho - y * (f + bias), 0.0)
    solved = Point({"alpha": a, "bias": bias, "rho": rho}, {"slack": slack, **duals})
    # (z - sa)'Q(z - sa) >= 0 errs by phi (||z||^2 + s^2 ||a||^2) at most, ||z||^2 by nu/n; that
    # a'Qa falls where a shrinks errs too, by phi ||z||^2 where it is below 0.
    return Bracket(lower - phi * largest_nu(y) / n, curvature / 2, solved)


def _nu_margin_lower(
    y: FloatArray, nu: float, f: FloatArray, curvature: float, error: float
) -> float:
    """The maximum of s g - s^2 curvature / 2 over s >= 0, f known up to an error in each entry."""
    value, _, _ = _class_prices(y, nu, f)
    g = max(value - nu * error, 0.0)
    if not curvature > 0:
        return 0.0
    return g * g / (2 * curvature) * (1 - ROUNDING)


def _class_prices(y: FloatArray, nu: float, f: FloatArray) -> tuple[float, float, float]:
    """The minimum of z'(y o f) over the class simplices, and the price of each class's sum."""
    n = y.size
    in_plus, plus = _knapsack(np.sort(f[y == 1.0]), nu, n)
    in_minus, minus = _knapsack(np.sort(-f[y == -1.0]), nu, n)
    return in_plus + in_minus, plus, minus


def _knapsack(m: FloatArray, nu: float, n: int) -> tuple[float, float]:
    """The minimum of z'm over 0 <= z <= 1/n, 1'z = nu/2 for rising m, and the price there.

    The price is the multiplier of the sum; where it may be anything between two m, their middle.
    """
    capacity = nu * n / 2  # in units of 1/n
    whole = min(int(capacity), m.size)
    after = float(m[min(whole, m.size - 1)])
    before = after if capacity > whole else float(m[whole - 1])
    value = (float(m[:whole].sum()) + (capacity - whole) * after) / n
    return value, (before + after) / 2


# The epsilon-SVR


def middle_of(y: FloatArray) -> float:
    """Return the middle of the range of the targets."""
    return float(y.min() / 2 + y.max() / 2)


def best_tube(residuals: FloatArray, epsilon: float) -> tuple[float, FloatArray]:
    """Return the best bias, and by how much each residual leaves the tube under it.

    The sum of the losses max(0, |r_i - b| - epsilon) has its breaks at r_i -+ epsilon.
    """
    breaks = np.concatenate([residuals - epsilon, residuals + epsilon])
    bias = best_shift(breaks, residuals.size)
    return bias, np.abs(residuals - bias) - epsilon


def tube_upper(a: FloatArray, excess: FloatArray, curvature: float, C: float, phi: float) -> float:
    """Return the primal value of a regression, with the smaller of the two charges for the floor.

    Parameters
    ----------
    a
        The coefficients, between -C and C.
    excess
        By how much each residual leaves the tube.
    curvature
        a'Ka.
    C, phi
        The penalty, and minus the floor of K.
    """
    reach = C + np.abs(a)
    near = _tube_primal(excess, curvature, C) + phi / 2 * float(reach @ reach)
    squared_length = float(a @ a)
    wider = excess + phi * np.sqrt(squared_length)
    return min(near, _tube_primal(wider, curvature + phi * squared_length, C))


def epsilon_margin_bracket(
    K: Gram, y: FloatArray, C: float, epsilon: float, point: Point
) -> Bracket:
    """Return the bounds beta proves of max y'x - epsilon ||x||_1 - x'Kx/2 over |x| <= C, 1'x = 0.

    Lower: the value at the nearest feasible point, stretched to its best multiple. Upper: with beta
    that point, f = K beta and any bias b, for every feasible x

        y'x - epsilon ||x||_1 - x'Kx/2
            <=  beta'K beta/2 + (y - f - b)'x - epsilon ||x||_1          (x - beta)'K(x - beta) >= 0
            <=  beta'K beta/2 + C sum_i max(0, |y_i - f_i - b| - epsilon).

    A constant added to y changes nothing but b, so the sums use y less the middle of its range.

    Parameters
    ----------
    K, y, C, epsilon
        The kernel matrix, targets, the penalty and the half-width of the tube.
    point
        Holds `beta`, any vector, and maybe the normal vector `normal`.
    """
    n = y.size
    phi = -K.floor
    middle = middle_of(y)
    y = y - middle
    feasible = BoxPlane(np.full(n, -C), np.full(n, C), np.ones(n))
    beta = feasible.project(zeros_unless_finite(point.beta))
    f = K.matrix @ beta
    gain = float(y @ beta) - epsilon * float(np.abs(beta).sum())

    stretch = _tube_stretch(beta, gain, float(beta @ f), C)
    if stretch != 1.0:
        beta = stretch * beta
        f = stretch * f
        gain = stretch * gain
    curvature = float(beta @ f)
    squared_length = float(beta @ beta)
    rounding = ROUNDING * float(np.abs(beta) @ (np.abs(f) + np.abs(y) + epsilon))
    lower = gain - curvature / 2 - phi / 2 * squared_length - rounding

    bias, excess = best_tube(y - f, epsilon)
    upper = tube_upper(beta, excess, curvature, C, phi)
    duals = {"slack": np.maximum(excess, 0.0)}
    normal = normal_of(point, K)
    if normal is not None:
        _, excess = best_tube(y - normal @ K.factor(), epsilon)
        by_normal = _tube_primal(excess, float(normal @ normal), C)
        # ||x||^2 <= n C^2.
        by_normal += K.factor_error() / 2 * n * C * C
        if by_normal < upper:
            upper = by_normal
            duals["normal"] = normal
    return Bracket(lower, upper + rounding, Point({"beta": beta, "bias": bias + middle}, duals))


def _tube_primal(excess: FloatArray, squared_norm: float, C: float) -> float:
    return squared_norm / 2 + C * float(np.maximum(excess, 0.0).sum())


def _tube_stretch(beta: FloatArray, gain: float, curvature: float, C: float) -> float:
    """The s that maximises s gain - s^2 curvature / 2 inside the box; 1 where it gains little."""
    if gain < 0:
        return 0.0
    largest = float(np.abs(beta).max())
    if gain == 0 or not (curvature > 0 and largest > 0):
        return 1.0
    factor = min(gain / curvature, C / largest)
    more = (factor - 1) * gain - (factor**2 - 1) * curvature / 2
    return factor if more > MIN_RELATIVE_GAIN * gain else 1.0
