"""Whether a vector proves a form infeasible or unbounded, exactly, as `certify` asks it."""

from __future__ import annotations

import numpy as np

from klopt.model.forms import ConeForm
from klopt.proof.statement import ConeStatement
from klopt.witness.cone_witness import proven_infeasible, proven_ray

__all__ = ["falls_along", "is_contradicted_by"]


def is_contradicted_by(form: ConeForm, y: np.ndarray) -> bool:
    """Whether multipliers near y add the rows of the form up to a contradiction, exactly."""
    return proven_infeasible(ConeStatement.of_form(form), form, y)


def falls_along(form: ConeForm, d: np.ndarray) -> bool:
    """Whether the objective falls without bound along a direction near d, exactly."""
    return proven_ray(ConeStatement.of_form(form), form, d)
