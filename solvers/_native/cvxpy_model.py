"""A cone form as CVXPY constraints and their dual values as multipliers; what CVXPY's solvers take and may be told."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.model.backend import check_raw
from klopt.model.cones import Feature, order_of, smat, svec
from klopt.model.forms import ConeForm
from klopt.solvers import ecos, scs
from klopt.solvers._native.highs_model import set_raw
from klopt.solvers._native.options import check_options, option_names, set_options

__all__ = ["check_options_of", "constraints_of", "multipliers_of", "offers_of"]

KINDS = {"ECOS": ecos.OPTIONS, "SCS": scs.OPTIONS}


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
    return frozenset(
        {Feature.CONE} | found | ({Feature.QUADRATIC} if names & {"Quadratic", "SOC"} else set())
    )


def check_options_of(
    solver: str, backend: str, raw: Mapping[str, Any], reserved: Mapping[str, str]
) -> None:
    """Refuse options that a solver does not have and values that its library does not take."""
    if solver in KINDS:
        check_options(backend, raw, KINDS[solver], reserved)
    elif solver == "HIGHS":
        highs = import_module("highspy").Highs()
        highs.setOptionValue("log_to_console", False)
        set_raw(backend, highs, raw, reserved)
    else:
        options = (
            _osqp_options() if solver == "OSQP" else import_module("clarabel").DefaultSettings()
        )
        check_raw(backend, raw, option_names(options), reserved)
        set_options(backend, options, raw)


def _osqp_options() -> Any:
    osqp = import_module("osqp").OSQP().ext
    options = osqp.OSQPSettings()
    osqp.osqp_set_default_settings(options)
    return options
