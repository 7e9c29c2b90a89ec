"""Which points of a machine without bias are, for certain, at zero or at C in the solution, seen from any alpha.

phi = -h is convex and gap a proven bound of phi(alpha) - phi(alpha*). A move of alpha_i by up to C, for which the slope
changes at a rate of at most

    L_i = K_ii + sum_(j != i) K_ij^2 alpha_j^2 / (4 eta) + 3 c K_ii^2 / (4 eta),     c = C^2 (down) or 4 C^2 (up),

would gain more than the gap if the slope at alpha* differed from that at alpha by more than max((2 L_i gap)^1/2,
2 gap / C). So a slope above that means alpha*_i = 0, one below its negative alpha*_i = C. This replaces Theorem 7 of
Liu et al. (2020), whose condition is never met.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray
from klopt.errors import InvalidProblem
from klopt.problems._dank_bracket import Machine

__all__ = ["screened"]


def screened(machine: Machine, a: FloatArray) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return which alpha* are proven to be 0 and which are proven to be C, from signed coefficients a."""
    if machine.bias:
        raise InvalidProblem("screening needs a machine without bias: with one, points can only move together")
    bracket = machine.bracket(a)
    a, gap = machine.y * bracket.point.alpha, bracket.width
    function, C, weight = machine.function, machine.C, 1 / (4 * machine.eta)
    diagonal, u = function.diagonal, a * a
    around = diagonal + weight * (function.times_squares(u) - diagonal**2 * u)
    slope = machine.y * function.at(a).product - 1

    def most(reach: float) -> FloatArray:
        rate = around + 3 * weight * (reach * diagonal) ** 2
        return np.maximum(np.sqrt(2 * rate * gap), 2 * gap / C)

    return slope > most(C), slope < -most(2 * C)
