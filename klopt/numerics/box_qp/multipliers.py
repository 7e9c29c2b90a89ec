"""The best multipliers of a kernel machine, for functions of the kernel that need them again and again.

    minimise  a'Ka/2 - y'a   over   lower <= a <= upper,  normal'a = offset

Multipliers of the last kernel that are still good enough are kept. Otherwise a primal-dual interior
point method with a predictor step (Mehrotra, 1992), which does not mind a kernel of low rank, takes
8 to 20 factorisations of K plus a diagonal. How far the value may still be from the best is
measured, not assumed:

    gap = g'a - min over z of g'z,    g = Ka - y.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.sets.box_plane import BoxPlane

__all__ = ["Multipliers", "best_multipliers"]

MOST = 60
SHY = 0.995  # how much of the way to the boundary a step may go


@dataclass(frozen=True, eq=False)
class Multipliers:
    """Multipliers a, the value y'a - a'Ka/2 of the machine, at most `gap` below the best."""

    a: FloatArray
    value: float
    gap: float


def best_multipliers(
    K: FloatArray, y: FloatArray, box: BoxPlane, start: FloatArray | None, tol: float
) -> Multipliers:
    """Return multipliers whose gap is at most tol (1 + |value|), or the best that were met; the box must be bounded.

    >>> box = BoxPlane([0.0, -5.0], [5.0, 0.0], [1.0, 1.0])
    >>> best_multipliers(np.eye(2), np.array([1.0, -1.0]), box, None, 1e-9).a.round(6)
    array([ 1., -1.])
    """
    best = _judged(K, y, box, box.centre() if start is None else box.project(start))
    normal = np.zeros_like(y) if box.normal is None else box.normal
    wide = box.upper - box.lower
    a, price = (box.lower + box.upper) / 2, 0.0
    low = high = np.full(y.size, float(np.abs(K @ a - y).max()) + 1.0)
    for _ in range(MOST):
        if best.gap <= tol * (1 + abs(best.value)):
            break
        below, above = a - box.lower, box.upper - a
        gradient, short = K @ a - y + price * normal - low + high, box.offset - float(normal @ a)
        solve = _Solver(K, low / below + high / above, normal)
        mean = float(low @ below + high @ above) / (2 * y.size)
        da, dp, dl, dh = solve.step(
            gradient, short, -low * below, -high * above, low, high, below, above
        )
        reach = SHY * _longest((below, da), (above, -da), (low, dl), (high, dh))
        after = float(
            (low + reach * dl) @ (below + reach * da) + (high + reach * dh) @ (above - reach * da)
        )
        aim = (after / (2 * y.size) / mean) ** 3 * mean
        left, right = aim - low * below - dl * da, aim - high * above + dh * da
        da, dp, dl, dh = solve.step(gradient, short, left, right, low, high, below, above)
        reach = SHY * _longest((below, da), (above, -da), (low, dl), (high, dh))
        if not (np.isfinite(da).all() and reach > 0):
            break
        a, price, low, high = (
            a + reach * da,
            price + reach * dp,
            low + reach * dl,
            high + reach * dh,
        )
        a = np.clip(a, box.lower + 1e-16 * wide, box.upper - 1e-16 * wide)
        best = min(best, _judged(K, y, box, box.project(a)), key=lambda one: one.gap)
    return best


class _Solver:
    """K + diag(weights), bordered by the plane, factored once for both steps."""

    def __init__(self, K: FloatArray, weights: FloatArray, normal: FloatArray) -> None:
        self.matrix = K.copy()
        self.matrix.flat[:: len(K) + 1] += weights
        self.normal = normal
        self.across = np.linalg.solve(self.matrix, normal)

    def step(
        self,
        gradient: FloatArray,
        short: float,
        left: FloatArray,
        right: FloatArray,
        low: FloatArray,
        high: FloatArray,
        below: FloatArray,
        above: FloatArray,
    ) -> tuple[FloatArray, float, FloatArray, FloatArray]:
        """Return the Newton step in a, the plane's price and the bounds' multipliers."""
        along = np.linalg.solve(self.matrix, left / below - right / above - gradient)
        bend = float(self.normal @ self.across)
        dp = (float(self.normal @ along) - short) / bend if bend > 0 else 0.0
        da = along - dp * self.across
        return da, dp, (left - low * da) / below, (right + high * da) / above


def _longest(*pairs: tuple[FloatArray, FloatArray]) -> float:
    """The longest step, 1 at most, that leaves all values positive."""
    return min(1.0, *(float(np.min(-v[d < 0] / d[d < 0], initial=np.inf)) for v, d in pairs))


def _judged(K: FloatArray, y: FloatArray, box: BoxPlane, a: FloatArray) -> Multipliers:
    image = K @ a
    g = image - y
    return Multipliers(
        a, float(y @ a - a @ image / 2), max(float(g @ a) - box.linear_minimum(g), 0.0)
    )
