"""Which coefficients are proven to be 0 or at their bounds in the solution, seen from any point.

Without a bias only: with one, coefficients can only move together. What is minimised is s(a) +
psi(a): s = g - y'a smooth and convex (g as in `klopt.problems._adaptive.function`), psi the box and
epsilon ||a||_1. If gap is a proven bound of what a is above the optimum, s(a) - s(a*) - <s'(a*), a
- a*> <= gap, so that a move of a_i by t, 0 < t <= C up or down, for which the gradient of s changes
at a rate of at most

    L_i = K_ii + sum_(j != i) K_ij^2 a_j^2 / (4 eta) + 3 z_i^2 K_ii^2 / (4 eta),

z_i the largest |a_i| on the way, shows that s'_i(a*) is above s'_i(a) (t up) or below it (t down)
by at most the minimum over t of gap/t + L_i t/2, that is max((2 L_i gap)^1/2, 2 gap/C). The force
r_i = -s'_i(a*) on a*_i, so far known, decides: a*_i = 0 where it is inside what psi resists at
zero, C where it is above that and -C where it is below,

    SVM   r_i <= 0 for y_i = 1,  r_i >= 0 for y_i = -1            SVR   |r_i| <= epsilon.

All of it is computed outwards, so that it holds in exact arithmetic: for K itself where it is
positive semidefinite, else for K with its negative eigenvalues, all of them rounding, set to 0.

This replaces Theorem 7 of Liu et al. (2020), whose condition is never met.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray
from klopt.errors import InvalidProblem
from klopt.model.problem import Point
from klopt.problems._adaptive.witness import AdaptiveDual
from klopt.proof.enclosure import Enclosure, round_down, round_up

__all__ = ["Mask", "screened"]

Mask: TypeAlias = npt.NDArray[np.bool_]

ROUNDED_UP = 1 + 2.0**-30
"""Covers the few roundings of a bound, none of whose terms is negative."""


def screened(dual: AdaptiveDual, point: Point) -> tuple[Mask, Mask, Mask]:
    """Return which coefficients a* are proven to be 0, which to be C and which to be -C."""
    if dual.bias:
        raise InvalidProblem(
            "screening needs a problem without bias: with one, points can only move together"
        )
    proof = dual.proof
    witness = dual.witness(point)
    bracket = proof.bracket(witness)
    gradient = proof.gradient(witness)
    nothing = np.zeros(dual.y.size, bool)
    if gradient is None or not np.isfinite(bracket.gap):
        return nothing, nothing.copy(), nothing.copy()
    a = proof.coefficients(witness)
    gap = ROUNDED_UP * bracket.gap

    # Upper bounds all: K_ii + phi is above K_ii, and the row i of E has no norm above phi.
    kernel = proof.kernel
    weight = proof.weight.upper
    diagonal = kernel.diagonal
    own = np.maximum(diagonal / ROUNDED_UP - 2 * kernel.phi, 0.0) ** 2 * (a * a) / ROUNDED_UP
    others = np.maximum(kernel.times_squares(a, a).upper - own, 0.0)
    reach = np.sqrt(others) + kernel.phi * float(np.abs(a).max())
    # A square may underflow, and its weight be large: products are rounded up one by one.
    around = diagonal + round_up(round_up(weight * reach) * reach)

    def change(move: float) -> FloatArray:
        """By how much the gradient at a* can differ, from moves of up to so much."""
        largest = np.maximum(np.abs(a), np.abs(a + move))
        pull = round_up(largest * diagonal)
        rate = around + 3 * round_up(round_up(weight * pull) * pull)
        square = round_up(2 * rate * gap)
        return np.asarray(ROUNDED_UP * np.maximum(np.sqrt(square), 2 * gap / dual.C))

    force = Enclosure.of(dual.y) - gradient
    min_force = round_down(force.lower - change(dual.C))
    max_force = round_up(force.upper + change(-dual.C))
    low, high = _resisted(dual)
    at_zero = (low < min_force) & (max_force < high)
    return at_zero, min_force > high, max_force < low


def _resisted(dual: AdaptiveDual) -> tuple[FloatArray, FloatArray]:
    """The forces, from and to, that leave a coefficient at zero."""
    if dual.epsilon is not None:
        edge = np.full(dual.y.size, dual.epsilon)
        return -edge, edge
    low = np.where(dual.y > 0, -np.inf, 0.0)
    high = np.where(dual.y > 0, 0.0, np.inf)
    return low, high
