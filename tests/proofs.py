"""Bounds, contradictions and rays of a bare cone form, as the engine proves them."""

from __future__ import annotations

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.forms import ConeForm
from klopt.proof.statement import ConeStatement
from klopt.witness.cone_witness import prove, proven_infeasible


def enclose(
    form: ConeForm, x: FloatArray, y: FloatArray
) -> tuple[float, float, FloatArray, FloatArray]:
    """Return (lower, upper, x', y') with lower <= optimum <= upper."""
    proof = prove(ConeStatement.of_form(form), form, np.asarray(x, float), np.asarray(y, float))
    return proof.lower.value, proof.upper.value, proof.x, proof.y


def dual_bound(form: ConeForm, x: FloatArray, y: FloatArray) -> tuple[float, FloatArray]:
    """Return the proven lower end and the multipliers behind it."""
    lower, _, _, multipliers = enclose(form, x, y)
    return lower, multipliers


def primal_bound(form: ConeForm, x: FloatArray) -> tuple[float, FloatArray]:
    """Return the proven upper end and the point next to which a feasible one exists."""
    _, upper, point, _ = enclose(form, x, np.zeros(form.b.size))
    return upper, point


def is_refuted(form: ConeForm, y: FloatArray) -> bool:
    """Return whether multipliers near y prove that the form has no feasible point."""
    return proven_infeasible(ConeStatement.of_form(form), form, np.asarray(y, float))
