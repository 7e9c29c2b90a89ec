"""Nearest points and linear minimisers of simplex and ordered simplex, by sorting and pooling.

    simplex    {x >= 0, 1'x = total}                       max(x - lam, 0)
    ordered    {x_i >= sigma x_{i+1} >= 0, 1'x = total}    e beta

with e_i = sigma^-(i-1) and beta = max(PAVA((x - lam) / e, weights e^2), 0), PAVA the nonincreasing
regression (pooled adjacent violators). lam is the multiplier of the sum, which is a nonincreasing
piecewise linear function of it: the root is solved for on its piece.
"""

from __future__ import annotations

import numpy as np

from klopt.arrays import EPS, FloatArray

__all__ = [
    "MAX_NEWTON_STEPS",
    "nearest_ordered",
    "newton_in_bracket",
    "prefix_minimiser",
    "prefix_weights",
    "simplex_projection",
]

NEGLIGIBLE_WEIGHT = 1e-100
"""A weight sigma^-(i-1) that is lost to rounding beside the first, 1, but has a normal square."""
MAX_NEWTON_STEPS = 100
"""Steps of Newton's method on a multiplier, which is exact once it is on the piece of the root."""


def _rescaled(x: FloatArray, total: float) -> FloatArray:
    """Return x scaled to the given sum: the last rounding, which leaves signs and order alone."""
    return x * (total / float(x.sum()))


def simplex_projection(x: FloatArray, total: float = 1.0) -> FloatArray:
    """Return the nearest point of {x >= 0, 1'x = total}.

    >>> simplex_projection(np.array([2.0, 1.5, -3.0]))
    array([0.75, 0.25, 0.  ])
    """
    # The answer does not change with a constant added to x; beside the largest entry only gaps
    # below the total matter.
    x = x - x.max()
    falling = np.sort(x)[::-1]
    excess = falling.cumsum() - total
    count = np.count_nonzero(falling * np.arange(1, x.size + 1) > excess)
    lam = excess[count - 1] / count
    return _rescaled(np.maximum(x - lam, 0.0), total)


def prefix_weights(n: int, sigma: float) -> FloatArray:
    """Return sigma^-(i-1) for i = 1..n.

    The vertices of the ordered simplex are its prefixes, scaled to the total.
    """
    with np.errstate(under="ignore"):
        return np.asarray(np.exp(-np.log(sigma) * np.arange(n)))


def prefix_minimiser(g: FloatArray, sigma: float, total: float) -> FloatArray:
    """Return the vertex of the ordered simplex that minimises g'x.

    It is the prefix with the smallest weighted mean of g.
    """
    weights = prefix_weights(g.size, sigma)
    # Means of g - g_1 rather than of g: a common level of g would cost digits.
    means = np.cumsum(weights * (g - g[0])) / np.cumsum(weights)
    last = int(np.argmin(means))
    weights[last + 1 :] = 0.0
    return _rescaled(weights, total)


def nearest_ordered(x: FloatArray, sigma: float, total: float) -> FloatArray:
    """Return the nearest point of {x_i >= sigma x_{i+1} >= 0, 1'x = total}.

    With x_i = e_i beta_i, e_i = sigma^-(i-1), the order is beta_1 >= beta_2 >= .. >= 0: for a given
    lam a weighted isotonic regression, whose blocks say how the sum changes with lam.
    """
    from scipy.optimize import isotonic_regression

    # For sigma = 1 the projection onto the simplex keeps an order: pooling first is exact.
    if sigma == 1.0:
        return simplex_projection(isotonic_regression(x, increasing=False).x, total)

    # Entries whose weight is negligible are zero in the answer.
    kept = min(x.size, 1 + int(-np.log(NEGLIGIBLE_WEIGHT) / np.log(sigma)))
    e = prefix_weights(kept, sigma)
    means = np.cumsum(e * x[:kept]) / np.cumsum(e)
    best = int(np.argmax(means))
    v = (x[:kept] - means[best]) / total
    # At lam = 0 the sum is 0. At the other end it is at least 1: the nearest point p of v - lam
    # satisfies (v - lam)'z <= p'z for the best prefix z, whose entries are at most its first.
    low = -1.0 / float(e[: best + 1].sum())
    high = 0.0
    lam = low
    for _ in range(MAX_NEWTON_STEPS):
        fit = isotonic_regression((v - lam) / e, weights=e * e, increasing=False)
        starts = fit.blocks[:-1]
        weight = np.add.reduceat(e, starts)
        square = np.add.reduceat(e * e, starts)
        beta = np.maximum(np.add.reduceat(e * (v - lam), starts) / square, 0.0)

        # The sum falls with lam: the sign of the excess says on which side of the root lam is.
        excess = float(beta @ weight) - 1.0
        if excess > 0:
            low = lam
        else:
            high = lam
        # On this piece the blocks stay as they are, and beta changes by -weight / square.
        decrease = float((weight * weight / square)[beta > 0].sum())
        following = newton_in_bracket(lam, excess, decrease, low, high)
        if abs(excess) <= 4 * EPS or not low < following < high:
            break
        lam = following

    out = np.zeros_like(x)
    out[:kept] = e * np.repeat(beta, np.diff(fit.blocks))
    return _rescaled(out, total)


def newton_in_bracket(lam: float, excess: float, decrease: float, low: float, high: float) -> float:
    """Return the next lam: Newton's, or the middle of the bracket where Newton's leaves it.

    Parameters
    ----------
    lam, excess, decrease:
        The multiplier, the function at it and minus its derivative there.
    low, high:
        The bracket of the root.
    """
    # A flat piece has no Newton step.
    if decrease > 0:
        newton = lam + excess / decrease
        if low < newton < high:
            return newton
    return (low + high) / 2
