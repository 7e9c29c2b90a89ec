"""Nearest points and linear minimisers of the simplex and the ordered simplex, by sorting and pooling.

    simplex    {x >= 0, 1'x = total}                       max(x - lam, 0)
    ordered    {x_i >= sigma x_{i+1} >= 0, 1'x = total}    e beta, beta = max(PAVA((x - lam) / e, weights e^2), 0)

with e_i = sigma^-(i-1), PAVA the nonincreasing regression (pooled adjacent violators) and lam the
multiplier of the sum, which is a nonincreasing piecewise linear function of it: the root is solved
for on its piece.
"""

from __future__ import annotations

import numpy as np

from klopt.arrays import FloatArray

__all__ = ["nearest_ordered", "prefix_minimiser", "prefix_weights", "simplex_projection"]

# Below this an entry of a sigma-ordered vector is nothing beside the first one; its weight,
# squared, still is a number.
_NEGLIGIBLE = 1e-100
_STEPS = 100


def _rescaled(x: FloatArray, total: float) -> FloatArray:
    """Return x scaled to the given sum: the last rounding of a nonnegative point, which leaves its order alone."""
    return x * (total / float(x.sum()))


def simplex_projection(x: FloatArray, total: float = 1.0) -> FloatArray:
    """Return the nearest point of {x >= 0, 1'x = total}.

    >>> simplex_projection(np.array([2.0, 1.5, -3.0]))
    array([0.75, 0.25, 0.  ])
    """
    # The answer does not change with a constant added to x, and beside the largest entry only gaps
    # < total matter.
    x = x - x.max()
    falling = np.sort(x)[::-1]
    excess = falling.cumsum() - total
    count = np.count_nonzero(falling * np.arange(1, x.size + 1) > excess)
    return _rescaled(np.maximum(x - excess[count - 1] / count, 0.0), total)


def prefix_weights(n: int, sigma: float) -> FloatArray:
    """Return sigma^-(i-1) for i = 1..n; the vertices of the ordered simplex are its prefixes, scaled to the total."""
    with np.errstate(under="ignore"):
        return np.asarray(np.exp(-np.log(sigma) * np.arange(n)))


def prefix_minimiser(g: FloatArray, sigma: float, total: float) -> FloatArray:
    """Return the vertex of the ordered simplex that minimises g'x: the prefix of least weighted mean."""
    weights = prefix_weights(g.size, sigma)
    # Means of g - g_1 rather than g, for the sake of the digits that a common level of g would
    # cost.
    last = int(np.argmin(np.cumsum(weights * (g - g[0])) / np.cumsum(weights)))
    weights[last + 1 :] = 0.0
    return _rescaled(weights, total)


def nearest_ordered(x: FloatArray, sigma: float, total: float) -> FloatArray:
    """Return the nearest point of {x_i >= sigma x_{i+1} >= 0, 1'x = total}.

    With x_i = e_i beta_i, e_i = sigma^-(i-1), the order is beta_1 >= beta_2 >= .. >= 0: for a given
    lam a weighted isotonic regression, whose blocks say how the sum changes with lam.
    """
    from scipy.optimize import isotonic_regression

    if sigma == 1.0:
        return simplex_projection(isotonic_regression(x, increasing=False).x, total)
    kept = min(x.size, 1 + int(-np.log(_NEGLIGIBLE) / np.log(sigma)))
    e = prefix_weights(kept, sigma)
    means = np.cumsum(e * x[:kept]) / np.cumsum(e)
    best = int(np.argmax(means))
    v = (x[:kept] - means[best]) / total
    # At lam = 0 nothing is left. At the other end the sum is at least 1: the nearest point p of v -
    # lam satisfies (v - lam)'z <= p'z for the best prefix z, whose entries are at most its first.
    low, high = -1.0 / float(e[: best + 1].sum()), 0.0
    lam = low
    for _ in range(_STEPS):
        fit = isotonic_regression((v - lam) / e, weights=e * e, increasing=False)
        starts = fit.blocks[:-1]
        first, second = np.add.reduceat(e, starts), np.add.reduceat(e * e, starts)
        beta = np.maximum(np.add.reduceat(e * (v - lam), starts) / second, 0.0)
        gap = float(beta @ first) - 1.0
        low, high = (lam, high) if gap > 0 else (low, lam)
        gradient = float((first * first / second)[beta > 0].sum())
        newton = lam + gap / gradient if gradient > 0 else low
        following = newton if low < newton < high else (low + high) / 2
        if abs(gap) <= 4 * np.finfo(float).eps or not low < following < high:
            break
        lam = following
    out = np.zeros_like(x)
    out[:kept] = e * np.repeat(beta, np.diff(fit.blocks))
    return _rescaled(out, total)
