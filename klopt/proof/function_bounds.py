"""Bounds of the minimum of a convex function over a simple set, and of the value of a game.

For any p, a convex f with gradient g at p and a simple set X with the point p + e,

    f(p) + min over z in X of g'(z - p)  <=  minimum of f over X  <=  f(p + e).

**Lemma F1 (formulas).** The value and the gradient of c'x, x'Hx/2 + c'x, z'Kz/2 + c'x and x'My are evaluated
in enclosures. A matrix H that is only proven to satisfy H + phi I >= 0 costs phi |z - p|^2 / 2 in the
lower bound. For the point next to p, with |e| <= r entry by entry and e'He <= max|H| (1'r)^2,

    f(p + e)  <=  f(p) + |g|'r + max|H| (1'r)^2 / 2.

**Lemma F2 (games).** A pair (x, y) of strategies in their sets bounds the value of the game x'My + l'x + r'y
by the best replies to each: min over z of (My + l)'z + r'y from below, and from above alike.

**A function of the user's own** is known by the floats that it returns. Nothing follows from them
unless the user states how accurate they are (`accuracy`, see `klopt.Oracle`). That statement, and
that the function is convex, are part of the problem.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.model.functions import (
    Bilinear,
    DualFunction,
    KernelQuadratic,
    Linear,
    Objective,
    Quadratic,
    SaddleOracle,
    SmoothFunction,
)
from klopt.model.sets import BoxPlane, Product, SimpleSet
from klopt.proof.convexity import curvature_beside
from klopt.proof.directed import difference_down, product_up, sum_up, total_up
from klopt.proof.enclosure import (
    ETA,
    Enclosure,
    EnclosureLike,
    enclose_kernel_product,
    enclose_product,
    enclose_sum,
    enlarged,
    gamma,
)
from klopt.proof.rational_psd import rational_psd
from klopt.proof.semidefinite import (
    cholesky_shift,
    eigenvalue_floor,
    is_positive_semidefinite,
)
from klopt.proof.set_bounds import Price, feasible_near, linear_floor, squared_reach

__all__ = [
    "NOMINAL_ACCURACY",
    "Ends",
    "bounds_of_game",
    "bounds_of_minimum",
    "declared_accuracy",
    "nonconvexity",
]

NOMINAL_ACCURACY = 2.0**-46
"""What estimates take the accuracy of a function to be that states none: some 100 roundings."""
RATIONAL_WORK = 1e6
"""What an exact factorisation of a singular matrix may cost: milliseconds."""
MAX_RATIONAL_ORDER = 40
"""Larger matrices are not factored exactly: what they lack to be semidefinite is charged."""


@dataclass(frozen=True)
class Ends:
    """Two proven ends, and by which lemma; an infinite end is not proven."""

    lower: float
    upper: float
    lower_by: str = ""
    upper_by: str = ""


def declared_accuracy(function: Objective | Bilinear | SaddleOracle) -> float | None:
    """Return 0 for a function known by its formula, otherwise what it states, None if nothing.

    >>> declared_accuracy(Linear([1.0]))
    0.0
    """
    if _has_formula(function) or type(function) is Bilinear:
        return 0.0
    accuracy = getattr(function, "accuracy", None)
    return None if accuracy is None else float(accuracy)


def nonconvexity(function: Objective) -> float:
    """Return a proven phi >= 0 with H + phi I (K + phi I) positive semidefinite, or inf.

    >>> nonconvexity(Quadratic(np.ones((2, 2)), np.zeros(2)))
    0.0
    """
    matrix = _matrix(function)
    if matrix is None:
        return 0.0
    if not np.array_equal(matrix, matrix.T):
        return math.inf
    if is_positive_semidefinite(matrix):
        return 0.0
    # A singular matrix: exact arithmetic decides where that is cheap.
    if len(matrix) <= MAX_RATIONAL_ORDER and rational_psd(sparse.csc_array(matrix), RATIONAL_WORK):
        return 0.0
    # Semidefinite but for rounding: no eigenvalue need be computed.
    slight = 2 * cholesky_shift(matrix)
    if is_positive_semidefinite(matrix, -slight):
        return slight
    return max(0.0, -eigenvalue_floor(matrix))


def bounds_of_minimum(
    function: Objective,
    domain: SimpleSet,
    x: FloatArray,
    *,
    phi: float = 0.0,
    cuts: FloatArray | None = None,
    accuracy: float | None = None,
    price: Price | None = None,
) -> Ends:
    """Return proven bounds of the minimum of a function over a set.

    Parameters
    ----------
    function, domain
        What is minimised, and over what.
    x
        A point next to the set, otherwise only the lower bound is finite.
    phi
        What `nonconvexity` returned.
    cuts
        Rows (weight, point) of tangents whose mean may say more than that at x.
    accuracy
        That of a function without a formula; by default the one it states.
    price
        Proposes the multipliers of planes.

    >>> from klopt.model.sets import Simplex
    >>> ends = bounds_of_minimum(Linear([1.0, 2.0]), Simplex(2), np.array([1.0, 0.0]))
    >>> ends.lower <= 1.0 <= ends.upper
    True
    """
    if accuracy is None:
        accuracy = declared_accuracy(function)
    if accuracy is None or not np.isfinite(x).all():
        return Ends(-math.inf, math.inf)

    with np.errstate(all="ignore"):
        near = feasible_near(domain, x)
        p = x if near is None else near.mid
        if _has_formula(function):
            return _by_formula(function, domain, p, near, phi, price)
        return _by_oracle(function, domain, p, near, cuts, accuracy, price)


# Lemma F1: functions known by their formula


def _has_formula(function: object) -> bool:
    # A class derived from one of these may compute something else.
    return type(function) in (Linear, Quadratic, KernelQuadratic)


def _matrix(function: object) -> FloatArray | None:
    if type(function) is Quadratic:
        return function.H
    if type(function) is KernelQuadratic:
        return function.K
    return None


def _by_formula(
    function: Objective,
    domain: SimpleSet,
    p: FloatArray,
    near: Enclosure | None,
    phi: float,
    price: Price | None,
) -> Ends:
    """The bounds of the module's formulas at p, the midpoint of `near`; `price` is for planes."""
    value, g, constant = _value_and_gradient(function, p, phi)
    lower = -math.inf
    lower_by = "the tangent, minimised over the set"
    if math.isfinite(phi):
        if type(domain) is BoxPlane or type(domain) is Product:
            lower = _lower_by_tangent(domain, p, value, g, price)
        else:
            lower = float(enclose_sum([constant, linear_floor(domain, g)]).lower)
        if phi:
            charge = 0.5 * product_up(phi, _spread(function, squared_reach(domain, p)))
            lower = difference_down(lower, charge)
            lower_by += ", less what the matrix may lack to be positive semidefinite"
        elif not math.isfinite(lower):
            lower = _lower_by_curvature(function, domain, p, value, g, price)
            lower_by = "a tangent and the curvature, minimised over the set"

    upper = math.inf
    if near is not None:
        terms = [value]
        if near.rad.any():
            first = float((np.abs(g.mid) + g.rad) @ near.rad)
            terms.append(Enclosure(0.0, enlarged(first, p.size)))
            matrix = _matrix(function)
            if matrix is not None:
                size = _weighted(function, total_up(near.rad))
                second = 0.5 * product_up(size, size, _largest_entry(matrix, phi))
                terms.append(Enclosure(0.0, second))
        upper = float(enclose_sum(terms).upper)
    return _ends(lower, upper, lower_by, "the value at a point of the set")


def _largest_entry(matrix: FloatArray, phi: float) -> float:
    """A bound of all |H_ij|: by the diagonal of H + phi I where that is semidefinite."""
    if math.isfinite(phi):
        return sum_up(float(matrix.diagonal().max(initial=0.0)), phi)
    return float(np.abs(matrix).max(initial=0.0))


def _value_and_gradient(
    function: Objective, p: FloatArray, phi: float
) -> tuple[Enclosure, Enclosure, Enclosure]:
    """f(p), its gradient g there, and f(p) - g'p, which is -p'Hp/2."""
    if type(function) is Linear:
        return enclose_product(function.c, p), Enclosure.of(function.c), Enclosure(0.0, 0.0)
    if type(function) is Quadratic:
        Hp = _product(function.H, p, phi)
        half = enclose_product(p, Hp) * 0.5
        return half + enclose_product(function.linear, p), Hp + function.linear, -half

    assert type(function) is KernelQuadratic
    z = _coefficients(function, p)
    Kz = _product(function.K, z, phi)
    half = enclose_product(z, Kz) * 0.5
    value = half + enclose_product(function.linear, p)
    return value, Kz[function.point] * function.sign + function.linear, -half


def _product(K: FloatArray, v: EnclosureLike, phi: float) -> Enclosure:
    """K v, in one product where the matrix is proven semidefinite but for phi."""
    if math.isfinite(phi):
        return enclose_kernel_product(K, v, -phi)
    return enclose_product(K, v)


def _coefficients(function: KernelQuadratic, p: FloatArray) -> Enclosure:
    """z, the signed sums of p over the points."""
    n = len(function.K)
    terms = function.sign * p
    z = np.bincount(function.point, weights=terms, minlength=n).astype(float, copy=False)
    count = int(np.bincount(function.point, minlength=n).max(initial=0))
    if count <= 1 and np.all(np.abs(function.sign) == 1):
        return Enclosure.of(z)
    size = np.bincount(function.point, weights=np.abs(terms), minlength=n)
    # Each term is rounded once, and so is each sum.
    return Enclosure(z, enlarged(size * gamma(count), count))


def _spread(function: Objective, square: float) -> float:
    """A bound of |S'd|^2 for all |d|^2 up to `square`, S' the sums of a `KernelQuadratic`."""
    if type(function) is not KernelQuadratic:
        return square
    # Cauchy-Schwarz: a sum of m terms has at most m times the sum of their squares.
    m = float(np.bincount(function.point).max(initial=1))
    weight = _weighted(function, 1.0)
    return product_up(weight, weight, m, square)


def _weighted(function: Objective, size: float) -> float:
    """A bound of variables as one of the signed sums of them."""
    if type(function) is not KernelQuadratic:
        return size
    return product_up(size, float(np.abs(function.sign).max(initial=0.0)))


def _lower_by_tangent(
    domain: SimpleSet, p: FloatArray, value: Enclosure, g: Enclosure, price: Price | None
) -> float:
    return float(enclose_sum([value, linear_floor(domain, g, p, price=price)]).lower)


def _lower_by_curvature(
    function: Objective,
    domain: SimpleSet,
    p: FloatArray,
    value: Enclosure,
    g: Enclosure,
    price: Price | None,
) -> float:
    """The tangent has no minimum over an unbounded box; with some of the curvature it may have one."""
    if type(function) is not Quadratic:
        return -math.inf
    curvature = curvature_beside([(sparse.csc_array(function.H), 1.0)], np.arange(function.size))
    if curvature is None:
        return -math.inf
    return float(enclose_sum([value, linear_floor(domain, g, p, curvature, price)]).lower)


# A function of the user's own, as accurate as stated


def _by_oracle(
    function: Objective,
    domain: SimpleSet,
    p: FloatArray,
    near: Enclosure | None,
    cuts: FloatArray | None,
    accuracy: float,
    price: Price | None,
) -> Ends:
    """The bounds that hold if the function is as accurate as that.

    Parameters
    ----------
    function, domain
        What is minimised, and over what.
    p, near
        The midpoint of an enclosure that holds a point of the set, and that enclosure.
    cuts
        Tangents whose mean may say more than that at p.
    accuracy
        That of the function.
    price
        Proposes the multipliers of planes.
    """
    value = _stated(float(function.value(p)), accuracy)
    found = []
    if isinstance(function, DualFunction):
        found.append(_stated(function.bound(p), accuracy).lower)
    else:
        g = _stated_vector(function.gradient(p), accuracy)
        found.append(_lower_by_tangent(domain, p, value, g, price))
        if isinstance(function, SmoothFunction):
            found.append(_stated(function.near(p).lower, accuracy).lower)
        found.append(_lower_by_cuts(function, domain, cuts, accuracy, price))
    lower = max((float(end) for end in found if not math.isnan(end)), default=-math.inf)
    upper = math.inf if near is None else float(value.upper)
    stated = (
        f"for a convex function with values right up to {accuracy:.1g} (1 + |value|), as stated"
    )
    return _ends(
        lower,
        upper,
        f"the tangent, minimised over the set, {stated}",
        f"the value at a point of the set, {stated}",
    )


def _stated(value: float, accuracy: float) -> Enclosure:
    if not math.isfinite(value):
        return Enclosure(0.0, math.inf)
    return Enclosure(value, enlarged(accuracy * (1 + abs(value))))


def _stated_vector(g: FloatArray, accuracy: float) -> Enclosure:
    if not np.isfinite(g).all():
        return Enclosure(np.zeros(g.shape), np.full(g.shape, np.inf))
    size = float(np.abs(g).max(initial=0.0))
    return Enclosure(np.asarray(g, float), np.full(g.shape, enlarged(accuracy * (1 + size))))


def _lower_by_cuts(
    function: Objective,
    domain: SimpleSet,
    cuts: FloatArray | None,
    accuracy: float,
    price: Price | None = None,
) -> float:
    """The minimum of the weighted mean of tangents, each at a point of its own."""
    n = domain.size
    if cuts is None or not cuts.size or cuts.size % (n + 1):
        return -math.inf
    rows = cuts.reshape(-1, n + 1)
    rows = rows[rows[:, 0] > 0]
    if not len(rows) or not np.isfinite(rows).all():
        return -math.inf

    constant = Enclosure.of(0.0)
    gradient = Enclosure.of(np.zeros(n))
    for row in rows:
        weight = float(row[0])
        point = row[1:]
        g = _stated_vector(function.gradient(point), accuracy)
        value = _stated(float(function.value(point)), accuracy)
        constant = constant + (value - enclose_product(point, g)) * weight
        gradient = gradient + g * weight
    total = Enclosure.of(rows[:, 0].copy()).sum()
    mean = gradient / Enclosure(np.full(n, total.mid), np.full(n, total.rad))
    return float(enclose_sum([constant / total, linear_floor(domain, mean, price=price)]).lower)


# Lemma F2: games


def bounds_of_game(
    coupling: Bilinear | SaddleOracle,
    left: SimpleSet,
    right: SimpleSet,
    x: FloatArray,
    y: FloatArray,
    accuracy: float | None = None,
    price: Price | None = None,
) -> Ends:
    """Return proven bounds of the value of a game, minimised over x and maximised over y.

    Parameters
    ----------
    coupling
        phi(x, y), convex in x and concave in y.
    left, right
        The sets of x and of y.
    x, y
        A point next to each; an end is finite only where the strategy it needs is.
    accuracy
        That of a coupling without a formula; by default the one it states.
    price
        Proposes the multipliers of planes.

    >>> from klopt.model.sets import Simplex
    >>> half = np.array([0.5, 0.5])
    >>> ends = bounds_of_game(Bilinear([[1.0, -1.0], [-1.0, 1.0]]), Simplex(2), Simplex(2), half, half)
    >>> ends.lower <= 0.0 <= ends.upper
    True
    """
    if accuracy is None:
        accuracy = declared_accuracy(coupling)
    if accuracy is None:
        return Ends(-math.inf, math.inf)
    with np.errstate(all="ignore"):
        X = feasible_near(left, x)
        Y = feasible_near(right, y)
        if type(coupling) is Bilinear:
            return _bilinear_ends(coupling, left, right, X, Y, price)
        if X is None or Y is None:
            return Ends(-math.inf, math.inf)
        return _oracle_ends(coupling, left, right, X.mid, Y.mid, accuracy, price)


def _bilinear_ends(
    phi: Bilinear,
    left: SimpleSet,
    right: SimpleSet,
    X: Enclosure | None,
    Y: Enclosure | None,
    price: Price | None,
) -> Ends:
    """Lemma F2 for points of both sets: enclosures that hold a strategy of each, or None."""
    lower = -math.inf
    upper = math.inf
    sizes = np.abs(phi.M)
    if Y is not None:
        best = _plus(_times(phi.M, sizes, Y), phi.left)
        reply = linear_floor(left, best, price=price)
        lower = float(enclose_sum([_payoff(phi.right, Y), reply]).lower)
    if X is not None:
        best = -_plus(_times(phi.M.T, sizes.T, X), phi.right)
        reply = linear_floor(right, best, price=price)
        upper = float(enclose_sum([_payoff(phi.left, X), -reply]).upper)
    return _ends(lower, upper, "the best reply to y", "the best reply to x")


def _times(M: FloatArray, sizes: FloatArray, v: Enclosure) -> Enclosure:
    """M v, with the sizes |M| at hand: the rounding of the product and the radius in one product."""
    n = v.size
    # Rounded up where it underflows: entries of M may be large.
    terms = sizes @ (gamma(n) * np.abs(v.mid) + v.rad + ETA)
    # A sum of n products of sums of two, and underflow.
    return Enclosure(M @ v.mid, enlarged(terms, n))


def _plus(v: Enclosure, linear: FloatArray) -> Enclosure:
    # Adding 0 is exact.
    return v + linear if linear.any() else v


def _payoff(linear: FloatArray, v: Enclosure) -> EnclosureLike:
    return enclose_product(linear, v) if linear.any() else 0.0


def _oracle_ends(
    phi: Bilinear | SaddleOracle,
    left: SimpleSet,
    right: SimpleSet,
    x: FloatArray,
    y: FloatArray,
    accuracy: float,
    price: Price | None,
) -> Ends:
    """The best replies to the gradients, if the coupling is as accurate as stated.

    Parameters
    ----------
    phi, left, right
        The game.
    x, y
        Points of the sets, up to rounding.
    accuracy
        That of the coupling.
    price
        Proposes the multipliers of planes.
    """
    value = _stated(phi.value(x, y), accuracy)
    gradient_x, gradient_y = phi.gradients(x, y)
    reply = linear_floor(left, _stated_vector(gradient_x, accuracy), x, price=price)
    counter = linear_floor(right, -_stated_vector(gradient_y, accuracy), y, price=price)
    stated = f"for a coupling with values right up to {accuracy:.1g} (1 + |value|), as stated"
    return _ends(
        float(enclose_sum([value, reply]).lower),
        float(enclose_sum([value, -counter]).upper),
        f"the best reply to y, {stated}",
        f"the best reply to x, {stated}",
    )


def _ends(lower: float, upper: float, lower_by: str, upper_by: str) -> Ends:
    """The ends with their lemmas; what is not a number proves nothing."""
    if not math.isfinite(lower):
        lower, lower_by = -math.inf, ""
    if not math.isfinite(upper):
        upper, upper_by = math.inf, ""
    return Ends(lower, upper, lower_by, upper_by)
