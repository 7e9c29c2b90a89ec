"""Points of simple sets, and the brackets that `klopt.proof.function_bounds` proves at them.

The nearest point of a set is found up to rounding. Signs and bounds then hold exactly, an order of
the entries need not: entries before others are raised by a few units in the last place.

A function of the user's own that states no accuracy proves nothing. Its bracket has an estimate
instead: the ends that hold if its values are right up to some 100 roundings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from klopt.arrays import EPS, FloatArray
from klopt.model.forms import SaddleForm, SimplexForm
from klopt.model.functions import KernelQuadratic, Objective, Quadratic
from klopt.model.problem import Bracket, Point
from klopt.model.sets import OrderedCone, OrderedSimplex, Product, SimpleSet, Simplex
from klopt.proof.function_bounds import (
    NOMINAL_ACCURACY,
    Ends,
    bounds_of_game,
    bounds_of_minimum,
    declared_accuracy,
)
from klopt.proof.set_bounds import is_known
from klopt.witness.plane_prices import plane_price

__all__ = ["bracket_of_game", "bracket_over_set", "point_next_to"]

NO_ACCURACY = (
    "the function states no accuracy, so that its floats prove nothing: an estimate; "
    "accuracy= states by how much its values may be off"
)
UNKNOWN_SET = "the set is a class of its own, of which klopt proves nothing: an estimate"

NEAR_TOTAL = 1e-9
"""How far from its total, relative to it, a sum of weights may be that are only scaled."""
STRETCH = 2.0**-40
"""By how much more than needed a point is stretched, so that rounding does not undo it."""
ROUNDINGS_PER_STEP = 8
"""By how many roundings an entry is raised above the one after it."""


def point_next_to(domain: SimpleSet, x: FloatArray) -> FloatArray:
    """Return a point near x that is in the set but for the rounding of its sums.

    >>> x = point_next_to(OrderedSimplex(3, 3.0), np.array([0.5, 0.4, 0.4]))
    >>> bool(np.all(x[:-1] >= 3.0 * x[1:]))
    True
    """
    if type(domain) is Simplex:
        # Weights of a sum next to the total are scaled, which is cheaper than to project them.
        total = float(x.sum())
        if abs(total - domain.total) <= NEAR_TOTAL * domain.total and x.min() >= 0:
            return np.asarray(x * (domain.total / total))
    if isinstance(domain, Product):
        blocks = zip(domain.sets, domain.split(x), strict=True)
        return np.concatenate([point_next_to(member, block) for member, block in blocks])
    repaired = domain.repair(x)
    if isinstance(domain, OrderedSimplex):
        if domain.sigma == 1.0:
            return _falling(repaired)
        return _raised(np.maximum(repaired, 0.0))
    if isinstance(domain, OrderedCone):
        if np.all(domain.steps == domain.steps[0]):
            return _falling(repaired)
        return _raised(np.maximum(repaired, 0.0))
    return repaired


def _falling(x: FloatArray) -> FloatArray:
    """The smallest nonincreasing vector above max(x, 0)."""
    return np.maximum.accumulate(np.maximum(x, 0.0)[::-1])[::-1]


def _raised(x: FloatArray) -> FloatArray:
    """x with each entry raised a little more than the next, relative to itself."""
    steps = np.arange(x.size)[::-1]
    return x * (1 + ROUNDINGS_PER_STEP * EPS * steps)


def bracket_over_set(
    form: SimplexForm, x: FloatArray, cuts: FloatArray | None, phi: float, point: Point
) -> Bracket:
    """Return the bracket of a form at a point next to its set, or its estimate.

    Parameters
    ----------
    form
        The function and the set.
    x, cuts
        What `klopt.proof.function_bounds.bounds_of_minimum` takes: a point, and tangents or None.
    phi
        What `klopt.proof.function_bounds.nonconvexity` has proven of the function.
    point
        x as the problem names it.
    """
    f = form.objective

    def ends(accuracy: float | None) -> Ends:
        found = bounds_of_minimum(
            f, form.domain, x, phi=phi, cuts=cuts, accuracy=accuracy, price=plane_price
        )
        if np.isfinite(found.lower) or phi:
            return found
        stretched = _stretched(f, x)
        if stretched is None:
            return found
        other = bounds_of_minimum(f, form.domain, stretched, phi=phi, price=plane_price)
        return replace(found, lower=other.lower, lower_by=other.lower_by)

    def in_floats() -> tuple[float, float]:
        value = f.value(x)
        return max(form.lower_bound(x, value), form.averaged_bound(cuts)), value

    known = is_known(form.domain)
    return _bracket(declared_accuracy(f), known, ends, in_floats, point)


def _stretched(function: Objective, x: FloatArray) -> FloatArray | None:
    """A multiple t x at which the gradient t Hx + c is positive where c is negative; None without.

    Over an orthant the minimum of the tangent there is finite, however little the gradient at x
    lacks.
    """
    if not isinstance(function, Quadratic | KernelQuadratic):
        return None
    c = function.linear
    falls = c < 0
    with np.errstate(all="ignore"):
        curved = np.maximum(function.gradient(x) - c, 0.0)[falls]
        t = float(np.max(-c[falls] / curved, initial=0.0)) * (1 + STRETCH)
    return t * x if np.isfinite(t) else None


def bracket_of_game(
    form: SaddleForm,
    x: FloatArray,
    y: FloatArray,
    point: Point,
) -> Bracket:
    """Return the bracket of a game at points next to its sets, or its estimate.

    Parameters
    ----------
    form
        The game.
    x, y
        The strategies.
    point
        x and y as the problem names them.
    """

    def ends(accuracy: float | None) -> Ends:
        return bounds_of_game(form.coupling, form.left, form.right, x, y, accuracy, plane_price)

    known = is_known(form.left) and is_known(form.right)
    return _bracket(declared_accuracy(form.coupling), known, ends, lambda: form.bounds(x, y), point)


def _bracket(
    accuracy: float | None,
    known: bool,
    ends: Callable[[float | None], Ends],
    in_floats: Callable[[], tuple[float, float]],
    point: Point,
) -> Bracket:
    """The proven ends, or an estimate where there can be none.

    Parameters
    ----------
    accuracy
        What the function states.
    known
        Whether `klopt.proof` knows the set.
    ends
        The ends for an accuracy, None for that of the function.
    in_floats
        The ends in plain floats, for sets that are not known.
    point
        The point of the bracket.
    """
    if not known:
        lower, upper = in_floats()
        estimate = (min(lower, upper), max(lower, upper))
        return Bracket(-np.inf, np.inf, point, UNKNOWN_SET, estimate=estimate)
    if accuracy is None:
        guess = ends(NOMINAL_ACCURACY)
        estimate = (guess.lower, guess.upper)
        return Bracket(-np.inf, np.inf, point, NO_ACCURACY, estimate=estimate)
    proven = ends(None)
    return Bracket(
        proven.lower,
        proven.upper,
        point,
        lower_by=proven.lower_by,
        upper_by=proven.upper_by,
    )
