"""Runs a solver on the cone programs that a worst case leads to, none of whose answers is trusted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.engine.registry import backend_named
from klopt.engine.run_here import run_here
from klopt.model.backend import Settings
from klopt.model.cones import Cones, svec_entries, svec_weights
from klopt.model.forms import ConeForm

__all__ = ["Pair", "Region", "best_of", "furthest_inside", "solved", "triangle_weights"]

TOL = 1e-12
"""What the solver is asked for: as much as it can."""


class Pair(NamedTuple):
    """A point and multipliers; those of matrices are their entries."""

    x: FloatArray
    y: FloatArray


class Region(NamedTuple):
    """The points with Ex = e and b - Ax in cones, none of which is a zero cone."""

    E: sparse.csr_array
    e: FloatArray
    A: sparse.csr_array
    b: FloatArray
    cones: Cones


def best_of(cost: FloatArray, region: Region, backend: str, seconds: float) -> Pair | None:
    """Return the point of a region where a linear function is least, None without."""
    E, e, A, b, cones = region
    # Equations without entries say nothing, or 0 = 0 up to rounding.
    kept = np.diff(E.indptr) > 0
    rows = sparse.vstack([E[kept], A], format="csr")
    whole = Cones(zero=int(np.count_nonzero(kept)), nonneg=cones.nonneg, psd=cones.psd)
    return solved(cost, rows, np.concatenate([e[kept], b]), whole, backend, seconds)


def furthest_inside(
    region: Region, normal: FloatArray, limit: float, backend: str, seconds: float
) -> tuple[float, FloatArray] | None:
    """Return how far inside a region a point with normal'x <= limit can be, at most 1, and it.

    None where the solver returns no point of the region.
    """
    E, e, A, b, cones = region
    inside = np.zeros(b.size)
    inside[: cones.nonneg] = 1.0
    at = cones.nonneg
    for order in cones.psd:
        i, j = svec_entries(order)
        inside[at : at + i.size] = i == j
        at += i.size
    # A x + t inside <= b,  t <= 1,  normal'x <= limit
    size = normal.size
    limits = np.zeros((2, size + 1))
    limits[0, -1] = 1.0
    limits[1, :-1] = normal
    rows = sparse.vstack(
        [
            sparse.csr_array(limits),
            sparse.hstack([A, sparse.csr_array(inside[:, None])]),
        ],
        format="csr",
    )
    wider = Region(
        sparse.csr_array(sparse.hstack([E, sparse.csr_array((E.shape[0], 1))])),
        e,
        rows,
        np.concatenate([[1.0, limit], b]),
        Cones(nonneg=cones.nonneg + 2, psd=cones.psd),
    )
    cost = np.zeros(size + 1)
    cost[-1] = -1.0
    pair = best_of(cost, wider, backend, seconds)
    if pair is None:
        return None
    x = pair.x[:-1]
    if np.abs(E @ x - e).max(initial=0.0) > 1e-5 * (1 + np.abs(x).max(initial=0.0)):
        return None
    return float(pair.x[-1]), x


def solved(
    c: FloatArray, A: sparse.csr_array, b: FloatArray, cones: Cones, backend: str, seconds: float
) -> Pair | None:
    """Return a solution of min c'x with b - Ax in the cones, matrices by their entries; None without.

    Parameters
    ----------
    c, A, b, cones
        The program.
    backend
        The name of the solver.
    seconds
        What it may take.

    >>> diagonal = sparse.csr_array([[-1.0], [0.0], [-1.0]])
    >>> pair = solved(np.ones(1), diagonal, np.array([0.0, 1.0, 0.0]), Cones(psd=(2,)), "clarabel", 9)
    >>> pair.x.round(6), pair.y.round(6)
    (array([1.]), array([ 0.5, -0.5,  0.5]))
    """
    weights = triangle_weights(cones)
    form = ConeForm(c, sparse.csc_array(sparse.diags_array(weights) @ A), weights * b, cones)
    answer = run_here(backend_named(backend), form, Settings(tol=TOL, time_limit=max(seconds, 0.5)))
    if answer.x is None or answer.y is None:
        return None
    if not (np.isfinite(answer.x).all() and np.isfinite(answer.y).all()):
        return None
    return Pair(answer.x, answer.y / weights)


def triangle_weights(cones: Cones) -> FloatArray:
    """Return what turns rows of entries into rows of `svec`: sqrt(2) off the diagonal of matrices."""
    weights = np.ones(cones.zero + cones.nonneg)
    return np.concatenate([weights, *(svec_weights(order) for order in cones.psd)])
