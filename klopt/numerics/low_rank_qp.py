"""A separable quadratic program with a curvature of low rank added, over an orthant: Newton's method in the low rank.

    minimise  g'd + d'(diag(a) + VV')d / 2   over   d >= lower,     a > 0, V of few columns

VV' is d'Vu - u'u/2 at its largest over u, and with u fixed every d_c is best by itself. What is
left is

    phi(u) = u'u / 2 - sum_c min over d_c >= lower_c of (g + Vu)_c d_c + a_c d_c^2 / 2,     phi'(u) = u - V'd(u),

convex and twice differentiable but for kinks: I + V_F' diag(a_F)^-1 V_F, F the d that are free, is
its curvature.
"""

from __future__ import annotations

import time

import numpy as np

from klopt.arrays import FloatArray

__all__ = ["solve_thin_qp"]

STEPS, TRIALS, ACCURATE = 60, 40, 1e-12


def solve_thin_qp(
    g: FloatArray, a: FloatArray, V: FloatArray, lower: FloatArray, deadline: float = np.inf
) -> FloatArray:
    """Return the minimiser d.

    >>> solve_thin_qp(np.array([-3.0, 1.0]), np.ones(2), np.array([[1.0], [0.0]]), np.zeros(2))
    array([1.5, 0. ])
    """

    def at(u: FloatArray) -> tuple[float, FloatArray]:
        p = g + V @ u
        d = np.maximum(lower, -p / a)
        return float(u @ u) / 2 - float(p @ d + (a * d) @ d / 2), d

    u = np.zeros(V.shape[1])
    phi, d = at(u)
    for _ in range(STEPS):
        gradient = u - V.T @ d
        scale = float(np.abs(u).max(initial=0.0)) + float(
            np.abs(V.T).dot(np.abs(d)).max(initial=0.0)
        )
        if (
            float(np.abs(gradient).max(initial=0.0)) <= ACCURATE * scale
            or time.perf_counter() > deadline
        ):
            break
        free = d > lower
        J = V[free].T @ (V[free] / a[free, None])
        J.flat[:: len(J) + 1] += 1.0
        step, t = -np.linalg.solve(J, gradient), 1.0
        noise = 1e-14 * (1 + abs(phi))
        for _ in range(TRIALS):
            there, moved = at(u + t * step)
            if there <= phi + 1e-4 * t * float(gradient @ step) + noise:
                break
            t /= 2
        u, phi, d = u + t * step, there, moved
    return d
