"""What coefficients prove about a support vector machine: both ends of each dual, in enclosures.

One end is the value at an exactly feasible point. The other is weak duality: the primal value of
a classifier f = Kz + b, whatever z and b are. Nothing is assumed of the witness: an array that is
not feasible to the last bit proves less, never something false.

K is proven positive semidefinite only down to its floor -phi. Let Q' = Q + phi I, which is. The
ends hold for the problem with K as stored, and also for K + E with 0 <= E <= phi I, such as K
with its negative eigenvalues set to 0. From any z with f' = (K + phi I) z and q = z'f', for every
feasible a*, s >= 0 and b, with the margins m_i = y_i (f'_i + b),

    1'a* - a*'Qa*/2  <=  s^2 q/2 + sum_i a*_i (1 - s m_i) + phi/2 ||a*||^2
                     <=  B + phi/2 ||a*||^2,        B = s^2 q/2 + C sum_i max(0, 1 - s m_i).

**Lemma M1 (length).** Let T = 1'a* and a* be optimal. No smaller multiple is better, so a*'Qa* <=
T and the optimum is at least T/2. With ||a*||^2 <= C T this gives T <= 2B / (1 - phi C). With
Cauchy's inequality, a*'Q'a* >= (a*'Q'z)^2 / q >= (T - sum)_+^2 / (s^2 q), sum = C sum_i max(0, 1 -
s m_i), and ||a*|| <= T it gives T <= 2B / (1 - phi s^2 q). Both hold where the denominators are
positive, and T <= n C. Then ||a*||^2 <= min(n C^2, C T, T^2).

C may differ from point to point: a*_i <= C_i, and B has C_i max(0, 1 - s m_i) in its sum. Where C
stands alone, as in Lemma M1, the largest C_i takes its place.

A witness may hold a normal vector w (from the multipliers of an epigraph). With K = R'R + E' it
stands for f' = R'w and q = ||w||^2, and ||E'|| takes the place of phi.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from klopt.arrays import FloatArray
from klopt.kernels.gram import Gram
from klopt.model.fill import cholesky_fits
from klopt.model.problem import Bracket, Point
from klopt.proof.directed import difference_down, product_up, quotient_up, sum_up, total_up
from klopt.proof.dyadic import balanced, exact_sign_of_sum
from klopt.proof.enclosure import (
    ETA,
    UNIT_ROUNDOFF,
    Enclosure,
    enclose_dot,
    enclose_norm,
    gamma,
    round_down,
    round_up,
)
from klopt.proof.kernel_product import enclose_in_blocks, enclose_in_slices, entry_bounds
from klopt.proof.time_budget import remaining

__all__ = [
    "HingeBound",
    "Penalty",
    "balanced_multiple",
    "best_scale",
    "best_shift",
    "best_stretch",
    "best_tube",
    "class_sum",
    "epsilon_margin_proof",
    "hinge_bias",
    "hinge_bound",
    "hinge_primal",
    "is_within",
    "largest",
    "largest_nu",
    "length_charge",
    "middle_of",
    "narrow_dot",
    "normal_classifier",
    "nu_margin_proof",
    "penalised_up",
    "proof_from_values",
    "soft_margin_proof",
    "total_bound",
    "tube_bias",
    "tube_bound",
    "tube_misses",
    "tube_stretch",
    "value_below",
    "weighted_shift",
    "zeros_unless_finite",
]

Penalty = float | FloatArray
"""One number, or one for each point."""

NARROW = 1e-9
"""A product whose error moves the ends by a larger share than this is computed in slices."""
MAX_CHARGE = 1e-7
"""A charge for the floor that is a larger share than this is worth a factorisation of K.

Who asks for less than that gets it by `sharper_bracket`.
"""
MIN_RELATIVE_GAIN = 1e-9
"""A multiple that improves the value by a smaller share than this is not taken: it is rounding."""
STRETCH = 1 + 2.0**-48
"""A classifier longer by this pays nothing for margins that fall short of 1 by rounding."""

AT_A_POINT = "value at an exactly feasible point"
BY_COEFFICIENTS = "weak duality: primal value of the classifier"
BY_NORMAL = "weak duality: primal value of the normal vector"


# Any classifier


def is_narrow(f: Enclosure, size: float, value: float) -> bool:
    """Return whether the error of f, times the size ||z||_1, is small against a value."""
    return not float(np.max(f.rad)) * size > NARROW * (1 + abs(value))


def normal_classifier(K: Gram, w: FloatArray) -> tuple[Enclosure, float]:
    """Return R'w and an upper bound of ||w||^2 for the factor R of K.

    |R_i|'|w| <= ||R_i|| ||w|| and ||R_i||^2 = K_ii - E'_ii.
    """
    R = K.factor()
    length = enclose_norm(w).upper
    bounds = entry_bounds(K.matrix, -K.factor_error())
    # The share may underflow where a bound is large: it is rounded up.
    share = product_up(1 + 2.0**-40, gamma(len(R)), length)
    rad = share * bounds + (len(R) + 4) * ETA
    return Enclosure(w @ R, rad), product_up(length, length)


def largest(C: Penalty) -> float:
    """Return the largest penalty of a point.

    >>> largest(2.0), largest(np.array([1.0, 3.0]))
    (2.0, 3.0)
    """
    return float(C.max()) if isinstance(C, np.ndarray) else C


def penalised_up(C: Penalty, losses: FloatArray) -> float:
    """Return an upper bound of sum_i C_i losses_i; no loss is negative.

    >>> penalised_up(np.array([0.1, 0.2]), np.array([3.0, 4.0])) > 1.1
    True
    """
    if isinstance(C, np.ndarray):
        return total_up(round_up(C * losses))
    return product_up(C, total_up(losses))


def is_within(s: float, a: FloatArray, C: Penalty) -> bool:
    """Return whether s a_i <= C_i for all i, in exact arithmetic; s and a are not negative."""
    return bool((round_up(s * a) <= C).all())


@dataclass(frozen=True, eq=False)
class HingeBound:
    """B, and the multiple s that gives it, with s^2 q."""

    value: float
    squared_norm: float
    scale: float


def hinge_bound(margins: FloatArray, squared_norm: float, C: Penalty) -> HingeBound:
    """Return B at a good s from lower bounds of the margins and an upper bound of q.

    >>> hinge_bound(np.array([0.5, 2.0]), squared_norm=1.0, C=10.0).value - 2.0 < 1e-12
    True
    """
    nothing = HingeBound(math.inf, math.inf, 1.0)
    if not (np.isfinite(margins).all() and math.isfinite(squared_norm)):
        return nothing
    q = max(squared_norm, 0.0)
    if largest(C) == math.inf:
        # Hard margin: s = 1 / (smallest margin).
        smallest = float(margins.min())
        if not smallest > 0:
            return nothing
        stretched = quotient_up(quotient_up(q, smallest), smallest)
        # Half of the smallest number is 0.
        return HingeBound(product_up(stretched, 0.5), stretched, 1 / smallest)

    s = best_scale(margins, q, C) * STRETCH
    if not math.isfinite(s):
        s = 1.0
    products = s * margins
    # Two roundings, that of the product and that of the difference, and those of this line.
    losses = (1 - products) + 4 * UNIT_ROUNDOFF * (1 + np.abs(products))
    stretched = product_up(s, s, q)
    value = sum_up(penalised_up(C, np.maximum(losses, 0.0)), stretched / 2)
    return HingeBound(value, stretched, s)


def total_bound(bound: HingeBound, n: int, C: float, phi: float) -> float:
    """Return an upper bound of T = 1'a*, by Lemma M1.

    Parameters
    ----------
    bound
        B and s^2 q.
    n, C
        The number of points and the largest penalty.
    phi
        What Q lacks at most of being positive semidefinite.
    """
    totals = [product_up(C, n)]
    share = product_up(phi, min(C, bound.squared_norm)) if phi else 0.0
    if share < 1:
        totals.append(quotient_up(2 * bound.value, difference_down(1.0, share)))
    return min(totals)


def length_charge(total: float, n: int, C: float, phi: float) -> float:
    """Return an upper bound of phi/2 ||a*||^2 from one of T = 1'a*.

    Parameters
    ----------
    total
        The bound of T.
    n, C, phi
        As in `total_bound`.
    """
    if not phi:
        return 0.0
    squares = [product_up(total, total), product_up(C, total), product_up(C, C, n)]
    return product_up(phi, min(squares)) / 2


def balanced_multiple(z: FloatArray, stretch: float) -> FloatArray:
    """Return stretch z with the sum 0 exactly, from a z that has it; zeros for the multiple 0."""
    if stretch == 1.0:
        return z
    return balanced(stretch * z) if stretch else np.zeros_like(z)


def narrow_dot(a: FloatArray, x: Enclosure) -> Enclosure:
    """Return a'x (Lemma E2), its radius by one product."""
    n = a.size
    # Each radius is rounded up where it underflows: an a_i may be large.
    spread = float(np.abs(a) @ (x.rad + gamma(n + 1) * np.abs(x.mid) + ETA))
    return Enclosure(float(a @ x.mid), spread * (1 + gamma(2 * n + 16)) + (2 * n + 4) * ETA)


def _margins_below(y: FloatArray, shifted: Enclosure) -> FloatArray:
    """Lower bounds of y o (f + b)."""
    return np.asarray(round_down(y * shifted.mid - shifted.rad))


# The C-SVM


def soft_margin_proof(K: Gram, y: FloatArray, C: Penalty, witness: Point) -> Bracket:
    """Return the ends that a witness proves of  max 1'a - a'Qa/2  over  0 <= a <= C,  y'a = 0.

    Lower: the value at the best multiple of alpha. Upper: the bound of the module's docstring.

    Parameters
    ----------
    K, y, C
        The kernel matrix, labels -1 and +1, and the penalty: one number, which may be infinite, or
        one for each point.
    witness
        Holds `alpha`, and maybe the normal vector `normal`.
    """
    n = y.size
    C_max = largest(C)
    a = witness.alpha
    z = y * a
    is_feasible = _is_feasible(y, C, a)
    size = float(np.abs(a).sum())

    f = enclose_in_blocks(K.matrix, z, K.entry_bounds)
    ends = _soft_margin_ends(-K.floor, y, C, a, f, is_feasible)
    if not is_narrow(f, size, ends.lower):
        f = enclose_in_slices(K.matrix, z)
        ends = _soft_margin_ends(-K.floor, y, C, a, f, is_feasible)

    normal = witness.dual.get("normal")
    by_normal = None
    total = math.inf
    if K.floor or normal is not None:
        total = total_bound(ends.bound, n, C_max, -K.floor)
    if normal is not None:
        g, squared_norm = normal_classifier(K, normal)
        margins = _margins_below(y, g + hinge_bias(y, g.mid, C))
        by_normal = hinge_bound(margins, squared_norm, C)
        total = min(total, total_bound(by_normal, n, C_max, K.factor_error()))

    charge = length_charge(total, n, C_max, -K.floor)
    # A sharper floor takes a factorisation, which is not begun where there is no time for it.
    loose = charge > MAX_CHARGE * (1 + ends.lower) and cholesky_fits(K.size, remaining())
    if loose and K.sharpened is not K:
        return soft_margin_proof(K.sharpened, y, C, witness)
    upper = sum_up(ends.bound.value, charge)
    upper_by = BY_COEFFICIENTS
    duals = {"slack": np.maximum(1 - ends.margins, 0.0)}
    if by_normal is not None and normal is not None:
        other = sum_up(by_normal.value, length_charge(total, n, C_max, K.factor_error()))
        if other < upper:
            upper = other
            upper_by = BY_NORMAL
            duals["normal"] = normal

    note = ""
    if not np.isfinite(upper):
        note = "this point separates nothing, so it bounds nothing from above"
    alpha = a if ends.stretch == 1.0 else y * balanced_multiple(z, ends.stretch)
    solved = Point({"alpha": alpha, "bias": ends.bias}, duals)
    return Bracket(ends.lower, upper, solved, note, AT_A_POINT, upper_by)


def _is_feasible(y: FloatArray, C: Penalty, a: FloatArray) -> bool:
    """Whether 0 <= a <= C and y'a = 0 exactly."""
    in_box = bool((a >= 0).all() and (a <= C).all() and np.isfinite(a).all())
    return in_box and not exact_sign_of_sum(y * a)


def proof_from_values(y: FloatArray, C: Penalty, a: FloatArray, f: Enclosure) -> Bracket:
    """Return the ends from f = K(y o a), for a K that is positive semidefinite but not at hand.

    Parameters
    ----------
    y, C
        Labels -1 and +1, and the penalty.
    a
        The coefficients.
    f
        The enclosure of K(y o a).
    """
    ends = _soft_margin_ends(0.0, y, C, a, f, _is_feasible(y, C, a))
    alpha = a if ends.stretch == 1.0 else y * balanced_multiple(y * a, ends.stretch)
    point = Point({"alpha": alpha, "bias": ends.bias})
    return Bracket(ends.lower, ends.bound.value, point, "", AT_A_POINT, BY_COEFFICIENTS)


@dataclass(frozen=True, eq=False)
class _SoftMarginEnds:
    """The lower end with its multiple, B without the charge for the floor, and what gave it."""

    lower: float
    stretch: float
    bound: HingeBound
    bias: float
    margins: FloatArray


def _soft_margin_ends(
    phi: float, y: FloatArray, C: Penalty, a: FloatArray, f: Enclosure, is_feasible: bool
) -> _SoftMarginEnds:
    """Both ends from f = K(y o a)."""
    z = y * a
    bias = hinge_bias(y, f.mid, C)
    shifted = f + bias
    # 1'z = 0 exactly: then z'f = z'(f + b), whose terms cancel less.
    curvature = narrow_dot(z, shifted if is_feasible else f)
    charged = curvature
    margins = _margins_below(y, shifted)
    if phi:
        charged = curvature + enclose_dot(a, a) * phi
        margins = round_down(margins + round_down(phi * a))

    # The zero vector is feasible and has the value 0.
    lower = 0.0
    stretch = 0.0
    if is_feasible:
        stretch = best_stretch(a, charged.mid, C)
        if not is_within(stretch, a, C):
            stretch = 1.0
        # Lemma E2 for a sum without negative terms.
        total = float(a.sum()) * (1 - gamma(a.size + 4))
        lower = max(0.0, value_below(total, charged.upper, stretch))
    bound = hinge_bound(margins, charged.upper, C)
    return _SoftMarginEnds(lower, stretch, bound, bias, y * shifted.mid)


def value_below(gain: float, curvature: float, stretch: float) -> float:
    """Return s gain - s^2 q/2 from below, from a lower bound of the gain and an upper one of q.

    >>> 0.0 <= 2.5 - value_below(gain=3.0, curvature=1.0, stretch=1.0) < 1e-14
    True
    """
    once = math.nextafter(stretch * gain, -math.inf)
    return difference_down(once, product_up(stretch, stretch, max(curvature, 0.0)) / 2)


# The nu-SVM


def largest_nu(y: FloatArray) -> float:
    """Return 2 min(n+, n-) / n, rounded: the largest nu for which the nu-SVM has a feasible point."""
    return 2 * float(_smaller_class(y)) / y.size


def _smaller_class(y: FloatArray) -> int:
    return int(min(np.count_nonzero(y > 0), np.count_nonzero(y < 0)))


def class_sum(y: FloatArray, nu: float) -> tuple[float, float]:
    """Return bounds of nu n / 2, the least sum of n a over a class: two floats side by side.

    Where nu n / 2 exceeds the size of the smaller class, that size is meant.

    >>> class_sum(np.array([1.0, -1.0, 1.0]), 2 / 3)
    (0.9999999999999999, 1.0)
    """
    return _class_sum(y.size, _smaller_class(y), float(nu))


@lru_cache
def _class_sum(n: int, smaller: int, nu: float) -> tuple[float, float]:
    exact = min(Fraction(nu) * n / 2, Fraction(smaller))
    near = float(exact)
    low = near if Fraction(near) <= exact else float(round_down(near))
    high = near if Fraction(near) >= exact else float(round_up(near))
    return low, high


def nu_margin_proof(K: Gram, y: FloatArray, nu: float, witness: Point) -> Bracket:
    """Return the ends a witness proves of  min a'Qa/2  over  0 <= a <= 1/n,  y'a = 0,  1'a >= nu.

    nu stands for 2 min(n+, n-) / n where it is larger. In the units x = n a the bounds are floats:
    0 <= x <= 1 and each class has the sum S = nu n / 2 or more. Upper: the value at x. Lower: with
    f' and q of x as in the module's docstring, for any feasible X, any bias b and any rho >= 0

        X'Q'x  =  sum_i X_i m_i  >=  rho 1'X - sum_i X_i (rho - m_i)
                                 >=  2 rho S - sum_i max(0, rho - m_i)  =  g
        X'QX/2 >=  s X'Q'x - s^2 q/2 - phi/2 ||X||^2  >=  g^2 / (2q) - phi min(n+, n-)

    for g >= 0, as ||X||^2 <= 1'X <= 2 min(n+, n-).

    Parameters
    ----------
    K, y, nu
        The kernel matrix, labels -1 and +1, and 0 < nu.
    witness
        Holds `shares`, the x above, and maybe the normal vector `normal`.
    """
    n = y.size
    phi = -K.floor
    x = witness.shares
    z = y * x
    S, enough = class_sum(y, nu)
    is_feasible = bool(
        (x >= 0).all()
        and (x <= 1).all()
        and not exact_sign_of_sum(z)
        and exact_sign_of_sum(x, 2 * enough) >= 0
    )

    f = enclose_in_blocks(K.matrix, z, K.entry_bounds)
    size = float(np.abs(x).sum())
    if not is_narrow(f, size / n / n, 0.0):
        f = enclose_in_slices(K.matrix, z)
    bias, rho = _prices(y, nu, f.mid)
    curvature = enclose_dot(z, f + bias if is_feasible else f)
    margins = _margins_below(y, f + bias)
    if phi:
        curvature = curvature + enclose_dot(x, x) * phi
        margins = round_down(margins + round_down(phi * x))

    upper = math.inf
    if is_feasible:
        upper = product_up(quotient_up(quotient_up(max(curvature.upper, 0.0), n), n), 0.5)
    lower = _nu_margin_lower(S, margins, rho, curvature.upper)
    charge = product_up(phi, _smaller_class(y)) if phi else 0.0
    lower = _over_square(difference_down(lower, charge) if charge else lower, n)
    lower_by = BY_COEFFICIENTS

    duals = {"slack": np.maximum(rho - y * (f.mid + bias), 0.0) / n}
    normal = witness.dual.get("normal")
    if normal is not None:
        g, squared_norm = normal_classifier(K, normal)
        normal_bias, normal_rho = _prices(y, nu, g.mid)
        below = _margins_below(y, g + normal_bias)
        by_normal = _nu_margin_lower(S, below, normal_rho, squared_norm)
        charge = product_up(K.factor_error(), _smaller_class(y))
        other = _over_square(difference_down(by_normal, charge), n)
        if other > lower:
            lower = other
            lower_by = BY_NORMAL
            duals["normal"] = normal / n

    solved = Point({"alpha": x / n, "bias": bias / n, "rho": rho / n}, duals)
    return Bracket(lower, upper, solved, "", lower_by, AT_A_POINT)


def _nu_margin_lower(S: float, margins: FloatArray, rho: float, squared_norm: float) -> float:
    """g^2 / (2q) at some rho >= 0 from lower bounds of the margins, 0 where g is not positive."""
    losses = np.maximum(round_up(rho - margins), 0.0)
    g = difference_down(math.nextafter(2 * rho * S, -math.inf), total_up(losses))
    if not (g > 0 and 0 < squared_norm < math.inf):
        return 0.0
    # g^2 / q from below: the reciprocal of q / g^2 from above.
    ratio = quotient_up(quotient_up(squared_norm, g), g)
    return max(0.0, math.nextafter(0.5 / ratio, 0.0))


def _over_square(x: float, n: int) -> float:
    """A lower bound of x / n^2."""
    if not math.isfinite(x):
        return -math.inf
    once = math.nextafter(x / n, -math.inf)
    return math.nextafter(once / n, -math.inf)


def _prices(y: FloatArray, nu: float, f: FloatArray) -> tuple[float, float]:
    """A good bias and a good rho >= 0: the multipliers of the sums of the two classes."""
    plus = _price(np.sort(f[y == 1.0]), nu * y.size / 2)
    minus = _price(np.sort(-f[y == -1.0]), nu * y.size / 2)
    return (minus - plus) / 2, max((minus + plus) / 2, 0.0)


def _price(m: FloatArray, capacity: float) -> float:
    """The multiplier of 1'x = capacity at the minimum of x'm over 0 <= x <= 1, for rising m.

    Where it may be anything between two m, their middle.
    """
    whole = min(int(capacity), m.size)
    after = float(m[min(whole, m.size - 1)])
    before = after if capacity > whole else float(m[whole - 1])
    return (before + after) / 2


# The epsilon-SVR


def epsilon_margin_proof(
    K: Gram, y: FloatArray, C: Penalty, epsilon: float, witness: Point
) -> Bracket:
    """Return the ends a witness proves of max y'x - epsilon ||x||_1 - x'Kx/2 over |x| <= C, 1'x = 0.

    Lower: the value at the best multiple of beta. Upper: with f' = (K + phi I) beta, q = beta'f' and
    any bias b, for every feasible x

        y'x - epsilon ||x||_1 - x'Kx/2
            <=  q/2 + (y - f' - b)'x - epsilon ||x||_1 + phi/2 ||x||^2
            <=  q/2 + C sum_i max(0, |y_i - f'_i - b| - epsilon + phi C/2),

    since what is to be maximised in each |x_i| is convex: the maximum is at 0 or at C. Where C
    differs from point to point, C_i weighs the loss of point i, and phi C/2 has the largest one.

    Parameters
    ----------
    K, y, C, epsilon
        The kernel matrix, targets, the penalty (one number, or one for each point) and the
        half-width of the tube.
    witness
        Holds `beta`, and maybe the normal vector `normal`.
    """
    x = witness.beta
    is_feasible = bool((np.abs(x) <= C).all() and not exact_sign_of_sum(x))
    size = float(np.abs(x).sum())

    f = enclose_in_blocks(K.matrix, x, K.entry_bounds)
    bias = tube_bias(y, f.mid, epsilon, C)
    misses = tube_misses(y, bias, f)
    ends = _epsilon_margin_ends(K, y, C, epsilon, x, misses, bias, is_feasible, f)
    # An error of f costs C in each point that it moves out of the tube.
    cost = float((C * f.rad).sum())
    if not (is_narrow(f, size, ends.lower) and cost <= NARROW * (1 + abs(ends.lower))):
        bias = tube_bias(y, enclose_in_slices(K.matrix, x).mid, epsilon, C)
        misses = enclose_in_slices(K.matrix, -x, (y, -bias))
        ends = _epsilon_margin_ends(K, y, C, epsilon, x, misses, bias, is_feasible)

    charge = product_up(-K.floor, largest(C), largest(C), K.size) if K.floor else 0.0
    # A sharper floor takes a factorisation, which is not begun where there is no time for it.
    loose = charge > MAX_CHARGE * (1 + ends.lower) and cholesky_fits(K.size, remaining())
    if loose and K.sharpened is not K:
        return epsilon_margin_proof(K.sharpened, y, C, epsilon, witness)
    upper = ends.upper
    upper_by = BY_COEFFICIENTS
    duals = {"slack": np.maximum(np.abs(misses.mid) - epsilon, 0.0)}
    normal = witness.dual.get("normal")
    if normal is not None:
        g, squared_norm = normal_classifier(K, normal)
        misses = tube_misses(y, tube_bias(y, g.mid, epsilon, C), g)
        other = tube_bound(misses, squared_norm, C, epsilon, K.factor_error())
        if other < upper:
            upper = other
            upper_by = BY_NORMAL
            duals["normal"] = normal

    beta = balanced_multiple(x, ends.stretch)
    solved = Point({"beta": beta, "bias": bias}, duals)
    return Bracket(ends.lower, upper, solved, "", AT_A_POINT, upper_by)


def tube_misses(y: FloatArray, bias: float, f: Enclosure) -> Enclosure:
    """Return y - b - f: two roundings (Lemma E1)."""
    centred = y - bias
    mid = centred - f.mid
    rad = f.rad + UNIT_ROUNDOFF * (np.abs(centred) + np.abs(mid))
    return Enclosure(mid, rad * (1 + 8 * UNIT_ROUNDOFF) + ETA)


@dataclass(frozen=True)
class _TubeEnds:
    """Both ends, and the multiple that gives the lower one."""

    lower: float
    stretch: float
    upper: float


def _epsilon_margin_ends(
    K: Gram,
    y: FloatArray,
    C: Penalty,
    epsilon: float,
    x: FloatArray,
    misses: Enclosure,
    bias: float,
    is_feasible: bool,
    product: Enclosure | None = None,
) -> _TubeEnds:
    """Both ends from the misses y - Kx - b, and from Kx where it is as well known as they are."""
    phi = -K.floor
    centred = y - bias
    # One rounding each.
    centred_rad = UNIT_ROUNDOFF * (1 + 4 * UNIT_ROUNDOFF) * np.abs(centred)
    if product is None:
        product = Enclosure(centred, centred_rad) - misses
    curvature = narrow_dot(x, product)
    if phi:
        curvature = curvature + enclose_dot(x, x) * phi
        misses = misses - Enclosure.of(x) * phi

    # The zero vector is feasible and has the value 0.
    lower = 0.0
    stretch = 0.0
    if is_feasible:
        # 1'x = 0 exactly: y'x = x'(y - b).
        length = total_up(np.abs(x))
        along = narrow_dot(x, Enclosure(centred, centred_rad)).lower
        gain = difference_down(along, product_up(epsilon, length))
        stretch = tube_stretch(x, gain, curvature.mid, C)
        if not is_within(stretch, np.abs(x), C):
            stretch = 1.0
        lower = max(0.0, value_below(gain, curvature.upper, stretch))
    upper = tube_bound(misses, curvature.upper, C, epsilon, phi)
    return _TubeEnds(lower, stretch, upper)


def tube_bound(
    misses: Enclosure, squared_norm: float, C: Penalty, epsilon: float, phi: float
) -> float:
    """Return the upper end q/2 + sum_i C_i max(0, |misses_i| - epsilon + phi max C/2).

    Parameters
    ----------
    misses
        y - f' - b.
    squared_norm
        An upper bound of q.
    C, epsilon
        The penalty and the half-width of the tube.
    phi
        What K lacks at most of being positive semidefinite.
    """
    distances = round_up(np.abs(misses.mid) + misses.rad)
    free = difference_down(epsilon, product_up(phi, largest(C)) / 2) if phi else epsilon
    excess = round_up(distances - free)
    return sum_up(penalised_up(C, np.maximum(excess, 0.0)), max(squared_norm, 0.0) / 2)


# Choices in floating point: nothing above rests on them, any multiple and any bias prove a bound


def zeros_unless_finite(x: FloatArray) -> FloatArray:
    """Return x, or zeros where x has a NaN or infinite entry: a bracket holds from there too."""
    return x if np.isfinite(x).all() else np.zeros_like(x)


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


def weighted_shift(breaks: FloatArray, weights: FloatArray, total: float) -> float:
    """Return the same where the derivative, -total on the left, goes up by a weight at each break.

    >>> weighted_shift(np.array([3.0, 0.0, 2.0]), np.array([1.0, 1.0, 2.0]), 2.0)
    2.0
    """
    order = np.argsort(breaks)
    passed = weights[order].cumsum()
    at = min(int(passed.searchsorted(total * (1 - 4 * UNIT_ROUNDOFF))), breaks.size - 1)
    # A derivative of 0 beyond this break makes every shift up to the next one as good.
    after = at + int(at + 1 < breaks.size and passed[at] <= total * (1 + 4 * UNIT_ROUNDOFF))
    left = breaks[order[at]]
    return float(left + (breaks[order[after]] - left) / 2)


def hinge_bias(y: FloatArray, f: FloatArray, C: Penalty = 1.0) -> float:
    """Return the b that minimises sum_i C_i max(0, 1 - y_i (f_i + b)): a median of y - f."""
    if isinstance(C, np.ndarray):
        return weighted_shift(y - f, C, float(C[y > 0].sum()))
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
        return max(squared_norm, 0.0) / 2 / smallest / smallest, 1 / smallest

    scale = best_scale(margins, squared_norm, C)
    at_one = squared_norm / 2 + C * float(np.maximum(1 - margins, 0.0).sum())
    losses = float(np.maximum(1 - scale * margins, 0.0).sum())
    value = scale * scale * (squared_norm / 2) + C * losses
    # The scale 1 stays where the other one, by rounding, is no better.
    return (value, scale) if value < at_one else (at_one, 1.0)


def best_scale(margins: FloatArray, squared_norm: float, C: Penalty) -> float:
    """Return the best multiple s >= 0 of a classifier with given margins and squared norm.

    There s squared_norm - (sum of the C_i m_i with m_i < 1/s), the derivative, changes sign.
    """
    if isinstance(C, np.ndarray):
        order = np.argsort(margins, kind="stable")
        m = margins[order]
        pulls = C[order] * m
    else:
        m = np.sort(margins)
        pulls = C * m
    lost = pulls.cumsum()
    first = int(m.searchsorted(0.0, "right"))  # margins up to here have no break at s > 0
    with np.errstate(all="ignore"):
        breaks = 1 / m[first:]
        # Beyond the break 1 / m_j only the points before j lose: the derivative falls with j.
        j = first + int(np.count_nonzero(squared_norm * breaks > (lost - pulls)[first:]))

    # Between the breaks `low` and `high` the derivative is linear, with this zero.
    pull = float(lost[j - 1]) if j > first else 0.0
    if squared_norm > 0:
        zero = pull / squared_norm
    else:
        zero = np.inf if pull > 0 else 0.0
    low = float(breaks[j - first]) if j < m.size else 0.0
    high = float(breaks[j - first - 1]) if j > first else np.inf
    return min(max(zero, low), high)


def _room(a: FloatArray, C: Penalty) -> float:
    """The largest s with s a_i <= C_i, for a >= 0 with a positive entry, rounded."""
    if not isinstance(C, np.ndarray):
        return C / float(a.max())
    used = a > 0
    return float((C[used] / a[used]).min())


def best_stretch(a: FloatArray, curvature: float, C: Penalty) -> float:
    """Return the s that maximises s 1'a - s^2 curvature / 2, s a <= C; 1 where it gains little."""
    total = float(a.sum())
    if not float(a.max()) > 0:
        return 1.0
    unbounded = total / curvature if curvature > 0 else np.inf
    factor = min(unbounded, _room(a, C))
    # (factor - 1) total - (factor^2 - 1) curvature / 2, whose square may overflow.
    gain = (factor - 1) * (total - (factor + 1) * curvature / 2)
    return factor if gain > MIN_RELATIVE_GAIN * total else 1.0


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


def tube_bias(y: FloatArray, f: FloatArray, epsilon: float, C: Penalty = 1.0) -> float:
    """Return the best bias of a regression f of the targets y, whose losses C_i weighs."""
    middle = middle_of(y)
    residuals = y - middle - f
    breaks = np.concatenate([residuals - epsilon, residuals + epsilon])
    if isinstance(C, np.ndarray):
        return weighted_shift(breaks, np.tile(C, 2), float(C.sum())) + middle
    return best_shift(breaks, residuals.size) + middle


def tube_stretch(beta: FloatArray, gain: float, curvature: float, C: Penalty) -> float:
    """Return the s of largest s gain - s^2 curvature / 2 in the box; 1 where it gains little."""
    if gain < 0:
        return 0.0
    sizes = np.abs(beta)
    if gain == 0 or not (curvature > 0 and float(sizes.max()) > 0):
        return 1.0
    factor = min(gain / curvature, _room(sizes, C))
    more = (factor - 1) * (gain - (factor + 1) * curvature / 2)
    return factor if more > MIN_RELATIVE_GAIN * gain else 1.0
