"""A cone form as CVXPY constraints and their dual values as multipliers; what CVXPY's solvers take and may be told."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.cones import Feature, order_of, smat, svec
from klopt.forms import ConeForm
from klopt.solvers import ecos, scs

__all__ = ["constraints_of", "multipliers_of", "offers_of", "options_of"]


def constraints_of(form: ConeForm, x: Any) -> list[Any]:
    """Return one CVXPY constraint on b - Ax for each block of rows."""
    cvxpy = import_module("cvxpy")  # its stubs lack most of its names

    made = []
    for kind, rows in form.cones.blocks():
        s = form.b[rows] - form.A[rows] @ x
        if kind == "zero":
            made.append(-s == 0)
        elif kind == "nonneg":
            made.append(s >= 0)
        elif kind == "soc":
            made.append(cvxpy.SOC(s[0], s[1:]))
        elif kind == "psd":
            size = rows.stop - rows.start
            unpack = sparse.csr_array(np.array([smat(unit).ravel() for unit in np.eye(size)]).T)
            k = order_of(size)
            made.append(cvxpy.reshape(unpack @ s, (k, k), order="C") >> 0)
        else:
            made.append(cvxpy.ExpCone(s[0::3], s[1::3], s[2::3]))
    return made


def multipliers_of(form: ConeForm, constraints: list[Any]) -> FloatArray | None:
    """Return the dual values of all blocks as klopt's multipliers, None where CVXPY has none."""
    y = np.zeros(form.b.size)
    for (kind, rows), constraint in zip(form.cones.blocks(), constraints, strict=True):
        dual = constraint.dual_value
        parts = dual if isinstance(dual, list) else [dual]
        if any(part is None for part in parts):
            return None
        if kind == "psd":
            y[rows] = svec((dual + dual.T) / 2)
        elif kind == "exp":
            y[rows] = np.column_stack([np.ravel(part) for part in parts]).ravel()
        else:
            y[rows] = np.concatenate([np.ravel(part) for part in parts])
    return y


def offers_of(solver: str) -> frozenset[Feature]:
    """Return what a solver takes, as CVXPY knows it."""
    from cvxpy.reductions.solvers.defines import SOLVER_MAP_CONIC, SOLVER_MAP_QP

    conic = SOLVER_MAP_CONIC[solver].SUPPORTED_CONSTRAINTS if solver in SOLVER_MAP_CONIC else ()
    names = {"Quadratic"} if solver in SOLVER_MAP_QP else set()
    names |= {kind.__name__ for kind in conic}
    marks = {"SOC": Feature.SOC, "PSD": Feature.PSD, "SvecPSD": Feature.PSD, "ExpCone": Feature.EXP}
    found = {feature for mark, feature in marks.items() if mark in names}
    return frozenset({Feature.CONE} | found | ({Feature.QUADRATIC} if names & {"Quadratic", "SOC"} else set()))


def options_of(solver: str) -> Iterable[str] | None:
    """Return the options of a solver as its library lists them; None where only the library can say."""
    if solver == "CLARABEL":
        import clarabel

        return dir(clarabel.DefaultSettings())
    if solver == "HIGHS":
        import highspy

        return dir(highspy.HighsOptions())
    if solver == "OSQP":
        return dir(import_module("osqp").OSQP().ext.OSQPSettings)
    return {"ECOS": ecos.OPTIONS, "SCS": scs.OPTIONS}.get(solver)
