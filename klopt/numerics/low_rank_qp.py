"""A separable quadratic program with a curvature of low rank added, over an orthant.

    minimise  g'd + d'(diag(a) + VV')d / 2   over   d >= lower,     a > 0, V of few columns

d'VV'd/2 is the maximum over u of u'V'd - u'u/2, and with u fixed every d_c is best by itself. What
is left is to minimise

    phi(u) = u'u / 2 - sum_c min over d_c >= lower_c of (g + Vu)_c d_c + a_c d_c^2 / 2

with the gradient u - V'd(u), by Newton's method: phi is convex and twice differentiable but for
kinks, and its Hessian is I + V_F' diag(a_F)^-1 V_F, F the d that are free.
"""

from __future__ import annotations

import time

import numpy as np

from klopt.arrays import FloatArray

__all__ = ["solve_low_rank_qp"]

MAX_NEWTON_STEPS = 60
MAX_HALVINGS = 40
"""How often a step may be halved."""
GRADIENT_TOLERANCE = 1e-12
"""The gradient that ends the method, relative to its terms."""
SUFFICIENT_DECREASE = 1e-4
"""The share of the first-order decrease that a step must keep."""


def solve_low_rank_qp(
    g: FloatArray, a: FloatArray, V: FloatArray, lower: FloatArray, deadline: float = np.inf
) -> FloatArray:
    """Return the minimiser d.

    Parameters
    ----------
    g, a, V, lower
        The program.
    deadline
        When to stop, on the clock of `time.perf_counter`.

    Examples
    --------
    >>> solve_low_rank_qp(np.array([-3.0, 1.0]), np.ones(2), np.array([[1.0], [0.0]]), np.zeros(2))
    array([1.5, 0. ])
    """

    def evaluate(u: FloatArray) -> tuple[float, FloatArray]:
        p = g + V @ u
        d = np.maximum(lower, -p / a)
        return float(u @ u) / 2 - float(p @ d + (a * d) @ d / 2), d

    u = np.zeros(V.shape[1])
    phi, d = evaluate(u)
    for _ in range(MAX_NEWTON_STEPS):
        gradient = u - V.T @ d
        image_terms = np.abs(V.T).dot(np.abs(d))
        terms = float(np.abs(u).max(initial=0.0)) + float(image_terms.max(initial=0.0))
        if float(np.abs(gradient).max(initial=0.0)) <= GRADIENT_TOLERANCE * terms:
            break
        if time.perf_counter() > deadline:
            break

        free = d > lower
        hessian = V[free].T @ (V[free] / a[free, None])
        hessian.flat[:: len(hessian) + 1] += 1.0
        step = -np.linalg.solve(hessian, gradient)
        # Near the end values differ by rounding only, and the full step is right.
        noise = 1e-14 * (1 + abs(phi))
        length = 1.0
        for _ in range(MAX_HALVINGS):
            phi_there, d_there = evaluate(u + length * step)
            decrease = SUFFICIENT_DECREASE * length * float(gradient @ step)
            if phi_there <= phi + decrease + noise:
                break
            length /= 2
        u = u + length * step
        phi = phi_there
        d = d_there
    return d
