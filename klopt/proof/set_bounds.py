"""What is proven about a simple set: a linear function over it, and points of it next to floats.

X is a simple set (`klopt.model.sets`) whose data are the stored floats, read as exact numbers.

**Lemma S1 (linear functions).** The minimum of g'z over X is at least

    Simplex          total min_i g_i
    OrderedSimplex   total min_k (e_1 g_1 + .. + e_k g_k) / (e_1 + .. + e_k),   e_i = sigma^(1-i)
    OrderedCone      min(0, total min_k (d_1 g_1 + .. + d_k g_k) / (d_1 p_1 + .. + d_k p_k))
    Spectrahedron    total lambda,    smat(g) - lambda I positive semidefinite
    BoxPlane         lam offset + sum_i min over lower_i <= z_i <= upper_i of (g_i - lam normal_i) z_i
    Product          the sum over its members

where the first three are the minima over the vertices and the others weak duality, for any lambda
that the factorisation proves and for any multiplier lam of the plane.

**Lemma S2 (curvature).** If m_i >= 0, the minimum over t in R of r t + m_i t^2 / 2 is -r^2 / (2 m_i): a
term of a box with an infinite side has a finite bound where the function is curved.

**Lemma S3 (points).** Floats rarely satisfy 1'x = total. The point t x, t = total / 1'x, does, and keeps
signs, order and semidefiniteness. In a box, the error of normal'x = offset is shared among the
coordinates in proportion to the room they have, which leaves none of them outside.

Every bound holds for all g of an enclosure. Sets are recognised by their own class: nothing is proven
of a class derived from one, which may be another set.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.cones import svec_entries, svec_weights
from klopt.model.sets import (
    BoxPlane,
    OrderedCone,
    OrderedSimplex,
    Product,
    SimpleSet,
    Simplex,
    Spectrahedron,
)
from klopt.proof.directed import difference_down, norm_up, product_up, quotient_up, sum_up
from klopt.proof.enclosure import (
    ETA,
    INFLATION,
    UNIT_ROUNDOFF,
    Enclosure,
    enclose_product,
    enclose_sum,
    enlarged,
    gamma,
    round_down,
    round_up,
)
from klopt.proof.semidefinite import (
    cholesky_shift,
    eigenvalue_floor,
    is_positive_semidefinite,
    radius_norm,
)

__all__ = ["Price", "feasible_near", "is_known", "linear_floor", "squared_reach"]

ROOT_TWO = Enclosure(math.sqrt(2.0), math.ulp(1.0))
"""The square root of 2, which scales the entries of `svec` off the diagonal."""
Price: TypeAlias = Callable[[BoxPlane, Enclosure, FloatArray | None], float]
"""Proposes the multiplier of a plane for a linear function and curvatures; any is right."""
SHIFTS = (0.0, 2.0, 64.0)
"""Multiples of the shift of Rump's test that a matrix may need to be proven semidefinite."""


def is_known(domain: SimpleSet) -> bool:
    """Return whether the lemmas are about this set.

    >>> is_known(Product((Simplex(2), Spectrahedron(2))))
    True
    """
    if type(domain) is Product:
        return all(is_known(member) for member in domain.sets)
    return type(domain) in (Simplex, OrderedSimplex, OrderedCone, Spectrahedron, BoxPlane)


# Lemma S1: linear functions


def linear_floor(
    domain: SimpleSet,
    g: Enclosure,
    x: FloatArray | None = None,
    curvature: FloatArray | None = None,
    price: Price | None = None,
) -> float:
    """Return a lower bound of g'(z - x) over all z of the set; -inf where none is proven.

    Parameters
    ----------
    domain
        The set.
    g
        The linear function, known up to its radius.
    x
        Any vector, by default 0.
    curvature
        Entries m_i >= 0: the bound is that of g'(z - x) + sum_i m_i (z_i - x_i)^2 / 2 instead. Only
        boxes use it.
    price
        Proposes the multipliers of planes (`klopt.witness.plane_prices`); 0 without.

    >>> linear_floor(Simplex(3), Enclosure.of(np.array([2.0, 1.0, 3.0]))) <= 1.0
    True
    >>> box = BoxPlane([0.0, 0.0], [1.0, np.inf])
    >>> -1.0 - 1e-14 < linear_floor(box, Enclosure.of(np.array([-1.0, 2.0]))) <= -1.0
    True
    >>> linear_floor(box, Enclosure.of(np.array([-1.0, -2.0])))
    -inf
    """
    if type(domain) is Product:
        return _floor_of_product(domain, g, x, curvature, price)
    if type(domain) is BoxPlane:
        start = np.zeros(domain.size) if x is None else x
        return _floor_of_box(domain, g, start, curvature, price)

    minimum = _minimum(domain, g)
    if x is not None:
        minimum = enclose_sum([minimum, -enclose_product(x, g)])
    return float(_number(minimum.lower))


def _minimum(domain: SimpleSet, g: Enclosure) -> Enclosure:
    """An enclosure whose lower end is at or below g'z for all z of the set."""
    nothing = Enclosure(0.0, math.inf)
    if type(domain) is Simplex:
        # The smallest of rounded differences, moved down by one more rounding.
        least = math.nextafter(float((g.mid - g.rad).min()), -math.inf)
        if not g.rad.any():
            least = float(g.mid.min())
        return Enclosure(least, 0.0) * domain.total
    if type(domain) is OrderedSimplex:
        # The level of g is taken out of the means and costs no digits there.
        level = float(g.mid[0])
        e = _powers(domain.n, domain.sigma)
        means = _prefix_sums(e * (g - level)) / _prefix_sums(e)
        return (means.minimum() + level) * domain.total
    if type(domain) is OrderedCone:
        d = Enclosure.of(domain.steps)
        values = _prefix_sums(d * g) / _prefix_sums(d * domain.price)
        lowest = float((values.minimum() * domain.total).lower)
        return Enclosure.of(min(lowest, 0.0))
    if type(domain) is Spectrahedron:
        G = _smat(g, domain.order)
        smallest = eigenvalue_floor(G.mid)
        if not math.isfinite(smallest):
            return nothing
        return (Enclosure.of(smallest) - radius_norm(G.rad)) * domain.total
    # A set of somebody's own: nothing is known of it.
    return nothing


def _floor_of_product(
    domain: Product,
    g: Enclosure,
    x: FloatArray | None,
    curvature: FloatArray | None,
    price: Price | None,
) -> float:
    mids = domain.split(g.mid)
    rads = domain.split(g.rad)
    none = (None,) * len(mids)
    starts = none if x is None else domain.split(x)
    curvatures = none if curvature is None else domain.split(curvature)
    parts = [
        linear_floor(member, Enclosure(mid, rad), start, bend, price)
        for member, mid, rad, start, bend in zip(
            domain.sets, mids, rads, starts, curvatures, strict=True
        )
    ]
    return float(enclose_sum(parts).lower)


def _floor_of_box(
    domain: BoxPlane,
    g: Enclosure,
    x: FloatArray,
    curvature: FloatArray | None,
    price: Price | None,
) -> float:
    """Lemma S1 for a box in the variable d = z - x, with Lemma S2 where there is curvature."""
    constant = Enclosure.of(0.0)
    r = g
    if domain.normal is not None and price is not None:
        lam = float(price(domain, Enclosure(g.mid.copy(), g.rad.copy()), curvature))
        r = g - Enclosure.of(domain.normal) * lam
        # lam (offset - normal'x), which is 0 up to rounding for an x of the set.
        constant = (domain.offset - enclose_product(domain.normal, x)) * lam

    # d_i runs from at least `low` to at most `high`.
    low = np.where(x == 0, domain.lower, round_down(domain.lower - x))
    low = np.where(domain.lower == x, 0.0, low)
    high = np.where(x == 0, domain.upper, round_up(domain.upper - x))
    high = np.where(domain.upper == x, 0.0, high)
    terms = np.minimum(_lowest_product(r, low), _lowest_product(r, high))
    if curvature is not None:
        with np.errstate(divide="ignore"):
            dips = -round_up(round_up(r.magnitude**2) / (2 * curvature))
        # What is not a number bounds nothing.
        terms = np.fmax(terms, dips)
    # An infinite term leaves nothing known.
    return float(enclose_sum([constant], terms).lower)


def _lowest_product(r: Enclosure, d: FloatArray) -> FloatArray:
    """A lower bound of r_i d_i over the enclosure of r; d_i may be infinite, and 0 times it is 0."""
    # A product with 0 is 0, even that of an infinite side with an r_i that is known to be 0.
    vanishes = (d == 0) | (r.rad == 0) & (r.mid == 0)
    ends = []
    for end in (r.mid - r.rad, r.mid + r.rad):
        with np.errstate(invalid="ignore", over="ignore"):
            product = end * d
        # One rounding of the end, one of the product, and those of this line.
        slack = np.where(np.isfinite(product), 2 * UNIT_ROUNDOFF * np.abs(product), 0.0)
        ends.append(round_down(round_down(product - slack)))
    lowest = np.where(vanishes, 0.0, np.minimum(*ends))
    return np.where(np.isnan(lowest), -np.inf, lowest)


# Lemma S3: points of the set


def feasible_near(domain: SimpleSet, x: FloatArray) -> Enclosure | None:
    """Return an enclosure next to x that holds a point of the set, exactly; None without a proof.

    >>> near = feasible_near(Simplex(3), np.full(3, 1 / 3))
    >>> near is not None and bool(near.rad.max() < 1e-15)
    True
    >>> feasible_near(Simplex(2), np.array([1.5, -0.5])) is None
    True
    """
    if not np.isfinite(x).all():
        return None
    if type(domain) is Product:
        parts = [
            feasible_near(member, block)
            for member, block in zip(domain.sets, domain.split(x), strict=True)
        ]
        proven = [part for part in parts if part is not None]
        if len(proven) < len(parts):
            return None
        return Enclosure(
            np.concatenate([part.mid for part in proven]),
            np.concatenate([part.rad for part in proven]),
        )
    if type(domain) is Simplex:
        if not (x >= 0).all():
            return None
        return _scaled(x, x, domain.total)
    if type(domain) is OrderedSimplex:
        if not ((x >= 0).all() and _is_ordered(x, domain.sigma)):
            return None
        return _scaled(x, x, domain.total)
    if type(domain) is OrderedCone:
        return _in_ordered_cone(domain, x)
    if type(domain) is Spectrahedron:
        return _in_spectrahedron(domain, x)
    if type(domain) is BoxPlane:
        return _in_box(domain, x)
    return None


def _scaled(x: FloatArray, parts: FloatArray, total: float) -> Enclosure | None:
    """x times total / (sum of the parts), a factor that is 1 up to a few roundings."""
    terms = parts.tolist()
    terms.append(-total)
    missing = -math.fsum(terms)
    # `fsum` is correctly rounded: the sum is the total, exactly.
    if missing == 0:
        return Enclosure.of(x)
    # |total / sum - 1| = |total - sum| / sum, the numerator known up to one rounding.
    rounding = UNIT_ROUNDOFF * abs(missing)
    least_sum = difference_down(total, sum_up(missing, rounding))
    most = quotient_up(sum_up(abs(missing), rounding), least_sum)
    # A sum that may be 0 has an infinite share.
    if not math.isfinite(most):
        return None
    return Enclosure(x, round_up(np.abs(x) * most))


def _is_ordered(x: FloatArray, sigma: float) -> bool:
    """Whether x_i >= sigma x_{i+1} for nonnegative x, exactly."""
    if sigma == 1.0:
        return bool(np.all(x[:-1] >= x[1:]))
    following = Enclosure.of(x[1:]) * sigma
    return bool(np.all((x[:-1] >= following.upper) | (x[1:] == 0)))


def _in_ordered_cone(domain: OrderedCone, x: FloatArray) -> Enclosure | None:
    """x_i d_{i+1} >= x_{i+1} d_i, and price'x <= total, by a factor below 1 where it is not."""
    d = domain.steps
    if not (x >= 0).all():
        return None
    same = (d[1:] == d[:-1]) & (x[:-1] >= x[1:])
    before = Enclosure.of(x[:-1]) * d[1:]
    after = Enclosure.of(x[1:]) * d[:-1]
    if not np.all(same | (before.lower >= after.upper) | (x[1:] == 0)):
        return None
    price = float(enclose_product(domain.price, x).upper)
    if price <= domain.total:
        return Enclosure.of(x)
    if not math.isfinite(price):
        return None
    return Enclosure.of(x) * float(round_down(domain.total / price))


def _in_spectrahedron(domain: Spectrahedron, x: FloatArray) -> Enclosure | None:
    """smat of x with a little more on its diagonal; a factor makes its trace the total."""
    rows, columns = svec_entries(domain.order)
    diagonal = rows == columns
    M = _smat(Enclosure.of(x), domain.order)
    unit = cholesky_shift(M.mid) + radius_norm(M.rad)
    for multiple in SHIFTS:
        moved = x + np.where(diagonal, multiple * unit, 0.0)
        M = _smat(Enclosure.of(moved), domain.order)
        # Lemma P2: the matrix of the midpoints, less the norm of the radii.
        if is_positive_semidefinite(M.mid, radius_norm(M.rad)):
            return _scaled(moved, moved[diagonal], domain.total)
    return None


def _in_box(domain: BoxPlane, x: FloatArray) -> Enclosure | None:
    if not ((domain.lower <= x) & (x <= domain.upper)).all():
        return None
    if domain.normal is None:
        return Enclosure.of(x)

    # e = normal'x - offset, up to the roundings of the products.
    normal = domain.normal
    terms = normal * x
    error = math.fsum([*terms.tolist(), -domain.offset])
    rounded = (np.abs(normal) != 1) & (x != 0)
    spread = 0.0
    if rounded.any():
        spread = enlarged(UNIT_ROUNDOFF * float(np.abs(terms[rounded]).sum()), x.size)
    e = Enclosure(error, 2 * UNIT_ROUNDOFF * abs(error) + spread)

    # By how much each coordinate can move so that its term falls, and so that it rises.
    size = float(np.abs(x).max(initial=0.0)) or 1.0
    to_lower = np.minimum(np.maximum(round_down(x - domain.lower), 0.0), size)
    to_upper = np.minimum(np.maximum(round_down(domain.upper - x), 0.0), size)
    falls = np.where(normal > 0, to_lower, to_upper)
    rises = np.where(normal > 0, to_upper, to_lower)
    radius = np.zeros(x.size)
    for rooms, needed in ((falls, float(e.upper)), (rises, -float(e.lower))):
        if needed <= 0:
            continue
        rooms = np.where(normal == 0, 0.0, rooms)
        there_is = float(enclose_product(np.abs(normal), rooms).lower)
        if not needed <= there_is:
            return None
        share = round_up(needed / there_is)
        radius = np.maximum(radius, round_up(rooms * share))
    return Enclosure(x, radius)


def squared_reach(domain: SimpleSet, x: FloatArray) -> float:
    """Return an upper bound of |z - x|^2 over all z of the set; infinite where it is unbounded.

    >>> squared_reach(Simplex(2), np.array([1.0, 0.0])) >= 2.0
    True
    """
    if type(domain) is Product:
        parts = [
            squared_reach(member, block)
            for member, block in zip(domain.sets, domain.split(x), strict=True)
        ]
        return float(enclose_sum(parts).upper)
    if type(domain) is BoxPlane:
        far = round_up(np.maximum(np.abs(domain.lower - x), np.abs(domain.upper - x)))
        if not np.isfinite(far).all():
            return math.inf
        return float(Enclosure.of(far).square().sum().upper)
    # |z| is at most the sum of the entries, or of the eigenvalues.
    if type(domain) is Simplex or type(domain) is OrderedSimplex or type(domain) is Spectrahedron:
        size = domain.total
    elif type(domain) is OrderedCone:
        size = quotient_up(domain.total, float(domain.price.min()))
    else:
        return math.inf
    reach = sum_up(size, norm_up(x))
    return product_up(reach, reach)


# Parts


def _smat(v: Enclosure, order: int) -> Enclosure:
    """The symmetric matrix with svec v, off the diagonal divided by the square root of 2."""
    rows, columns = svec_entries(order)
    divided = v / ROOT_TWO
    on_diagonal = svec_weights(order) == 1.0
    mid = np.empty((order, order))
    rad = np.empty((order, order))
    mid[rows, columns] = np.where(on_diagonal, v.mid, divided.mid)
    rad[rows, columns] = np.where(on_diagonal, v.rad, divided.rad)
    mid[columns, rows] = mid[rows, columns]
    rad[columns, rows] = rad[rows, columns]
    return Enclosure(mid, rad)


def _powers(n: int, sigma: float) -> Enclosure:
    """sigma^0, sigma^-1, .., sigma^(1-n)."""
    if sigma == 1.0:
        return Enclosure.of(np.ones(n))
    factors = np.full(n, 1.0 / sigma)
    factors[0] = 1.0
    with np.errstate(under="ignore"):
        mid = np.cumprod(factors)
        # 1 / sigma is rounded once and each product once more.
        relative = np.array([gamma(2 * i) for i in range(n)])
        rad = mid * relative * INFLATION + np.arange(n) * ETA
    return Enclosure(mid, rad)


def _prefix_sums(v: Enclosure) -> Enclosure:
    """v_1, v_1 + v_2, .. (Lemma E2)."""
    n = v.size
    terms = np.cumsum(np.abs(v.mid))
    spread = np.cumsum(v.rad)
    return Enclosure(np.cumsum(v.mid), enlarged(gamma(n) * terms + spread, n))


def _number(lower: float) -> float:
    return -math.inf if math.isnan(lower) else lower
