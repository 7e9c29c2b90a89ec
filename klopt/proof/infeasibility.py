"""Farkas vectors and rays of a cone program, checked in exact arithmetic.

See Lemmas C4 and C5 of `klopt.proof.cone_bounds`. No tolerance enters: a vector proves its claim
about the numbers as they are, or it proves nothing.
"""

from __future__ import annotations

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.forms import ConeForm
from klopt.proof.cone_bounds import DualWitness, is_infeasible, is_ray
from klopt.proof.statement import ConeStatement

__all__ = ["check_farkas", "check_ray"]


def check_farkas(form: ConeForm, y: FloatArray, tol: float = 0.0) -> str:
    """Return "" if y proves that no x satisfies b - Ax in K, else what is wrong with it."""
    statement = ConeStatement.of_form(form)
    if is_infeasible(statement, DualWitness(np.zeros(form.c.size), y)):
        return ""
    return "the multipliers do not add the constraints up to a contradiction, exactly"


def check_ray(form: ConeForm, d: FloatArray, tol: float = 0.0) -> str:
    """Return "" if the objective falls without bound along d, else what is wrong with it."""
    if np.isfinite(form.radius):
        return "the feasible set is bounded"
    if is_ray(ConeStatement.of_form(form), d):
        return ""
    return "the direction is no ray, exactly"
