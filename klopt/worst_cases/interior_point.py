"""Runs a solver on the cone programs that a worst case leads to, none of whose answers is trusted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.engine.registry import backend_named
from klopt.engine.run_here import run_here
from klopt.model.backend import Settings
from klopt.model.cones import Cones, svec_weights
from klopt.model.forms import ConeForm

__all__ = ["Pair", "solved", "triangle_weights"]

TOL = 1e-12
"""What the solver is asked for: as much as it can."""


class Pair(NamedTuple):
    """A point and multipliers; those of matrices are their entries."""

    x: FloatArray
    y: FloatArray


def solved(
    c: FloatArray, A: sparse.sparray, b: FloatArray, cones: Cones, backend: str, seconds: float
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
