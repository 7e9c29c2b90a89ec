"""Multipliers for a point that came without: those of its active rows that fit best.

At an optimum x of a program with linear rows b - Ax in {0} x R+ there are multipliers y, 0 on rows
that are not active and >= 0 on inequalities, with Px + c + A'y = 0. They are found by nonnegative
least squares over the active rows (Lawson and Hanson, 1974): a proposal, about which the proof
decides.
"""

from __future__ import annotations

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.forms import ConeForm

__all__ = ["fitted_multipliers"]

ACTIVE = 1e-6
"""A row counts as active where its slack is at most this share of its terms."""
MAX_ENTRIES = 4_000_000
"""The largest dense matrix of active rows: beyond it least squares take longer than a solve."""


def fitted_multipliers(form: ConeForm, x: FloatArray) -> FloatArray | None:
    """Return multipliers of the active rows; None where there are too many, or other cones.

    >>> from klopt.model.cones import Cones
    >>> form = ConeForm([1.0, 2.0], [[-1.0, -1.0], [-1.0, 0.0], [0.0, -1.0]], [-1.0, 0.0, 0.0],
    ...                 Cones(0, 3))
    >>> fitted_multipliers(form, np.array([1.0, 0.0]))
    array([1., 0., 1.])
    """
    from scipy.optimize import nnls

    cones = form.cones
    rows, columns = form.shape
    if cones.zero + cones.nonneg != rows:
        return None
    terms = np.abs(form.b) + abs(form.A) @ np.abs(x)
    is_active = np.isfinite(form.b)
    is_active &= np.abs(form.b - form.A @ x) <= ACTIVE * (1 + terms)
    is_active[: cones.zero] = True
    active = np.flatnonzero(is_active)
    # The multiplier of an equation is the difference of two numbers that are not negative.
    equations = active[active < cones.zero]
    unknowns = active.size + equations.size
    if not unknowns or unknowns * columns > MAX_ENTRIES:
        return None
    A = form.A.tocsr()
    design = np.concatenate((A[active].toarray(), -A[equations].toarray())).T
    try:
        found, _ = nnls(design, -(form.curve(x) + form.c), maxiter=30 * unknowns)
    except RuntimeError:  # too many steps
        return None
    y = np.zeros(rows)
    y[active] = found[: active.size]
    y[equations] -= found[active.size :]
    return y
