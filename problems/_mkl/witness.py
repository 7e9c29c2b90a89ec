"""From any point to a witness of multiple kernel learning: exactly feasible coefficients.

What a witness proves is in `klopt.problems._mkl.proof`.
"""

from __future__ import annotations

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.problem import Point
from klopt.problems._margin.proof import zeros_unless_finite
from klopt.problems._margin.witness import is_balanced
from klopt.problems._mkl.proof import MultipleKernelDual
from klopt.proof.dyadic import balanced

__all__ = ["multiple_kernel_witness"]


def multiple_kernel_witness(dual: MultipleKernelDual, point: Point) -> Point:
    """Return the nearest feasible `signed` coefficients, with the point's weights if they count.

    `classifier` holds coefficients of their own for each kernel, where the point has some.
    """
    a = zeros_unless_finite(point.alpha) * (dual.y if dual.hinge else 1.0)
    if dual.has_plane:
        domain = dual.domain()
        near = np.minimum(np.maximum(a, domain.lower), domain.upper)
        a = balanced(near if is_balanced(near) else domain.project(a))
    else:
        a = np.clip(a, -dual.max_norm, dual.max_norm)
    primal = {"signed": a}
    m = len(dual.kernels)
    if np.isinf(dual.s):
        theta = _simplex_weights(point.primal.get("weights"), m)
        if theta is not None:
            primal["weights"] = theta
    beta = point.dual.get("coefficients")
    if beta is None or beta.shape != (m, a.size) or not np.isfinite(beta).all():
        return Point(primal)
    return Point(primal, {"classifier": beta})


def _simplex_weights(given: FloatArray | None, m: int) -> FloatArray | None:
    """Given weights made nonnegative with sum 1."""
    if given is None or given.shape != (m,) or not np.isfinite(given).all():
        return None
    theta = np.maximum(given, 0.0)
    total = theta.sum()
    return theta / total if total > 0 else np.full(m, 1 / m)
