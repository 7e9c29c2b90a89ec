"""A cone form as CVXPY constraints, their dual values, and what CVXPY's solvers may be told."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray, IntArray
from klopt.model.backend import check_raw
from klopt.model.cones import order_of, svec, svec_places, svec_size, svec_weights
from klopt.model.cones.power import Weights, exponents
from klopt.model.features import Feature
from klopt.model.forms import ConeForm
from klopt.solvers import ecos, scs
from klopt.solvers._native.highs_model import set_raw
from klopt.solvers._native.options import check_options, option_names, set_options

__all__ = ["check_options_of", "constraints_of", "multipliers_of", "offers_of"]

OPTION_KINDS = {"ECOS": ecos.OPTIONS, "SCS": scs.OPTIONS}
"""The options of the solvers whose libraries do not check them."""
FEATURE_OF_CONE = {
    "SOC": Feature.SOC,
    "PSD": Feature.PSD,
    "SvecPSD": Feature.PSD,
    "ExpCone": Feature.EXP,
    "PowCone3D": Feature.POWER,
    "PowConeND": Feature.GENERAL_POWER,
}


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
            order = order_of(rows.stop - rows.start)
            made.append(cvxpy.reshape(_unpacking(order) @ s, (order, order), order="C") >> 0)
        elif kind == "exp":
            made.append(cvxpy.ExpCone(s[0::3], s[1::3], s[2::3]))
        else:
            for weights, places in _power_groups(form.cones.power):
                made.append(_power_constraint(weights, s, places))
    return made


def _power_groups(cones: tuple[Weights, ...]) -> list[tuple[list[Weights], IntArray]]:
    """The cones that make one constraint of CVXPY, and their rows: those of three rows together."""
    groups: dict[int, tuple[list[Weights], list[IntArray]]] = {}
    start = 0
    for index, weights in enumerate(cones):
        size = len(weights) + 1
        group, rows = groups.setdefault(0 if size == 3 else index + 1, ([], []))
        group.append(weights)
        rows.append(np.arange(start, start + size))
        start += size
    return [(group, np.array(rows)) for group, rows in groups.values()]


def _power_constraint(cones: list[Weights], s: Any, places: IntArray) -> Any:
    cvxpy = import_module("cvxpy")  # its stubs lack most of its names

    if places.shape[1] == 3:
        alpha = [float(exponents(weights)[0]) for weights in cones]
        x, y, z = (s[column] for column in places.T)
        return cvxpy.PowCone3D(x, y, z, alpha)
    (weights,) = cones
    (rows,) = places
    # CVXPY has no power cone with one exponent, which is |z| <= x.
    if len(weights) == 1:
        return cvxpy.SOC(s[rows[0]], s[rows[1:]])
    return cvxpy.PowConeND(s[rows[:-1]], s[rows[-1]], exponents(weights))


def _unpacking(order: int) -> sparse.csr_array:
    """The matrix that makes the rows of a matrix, one after the other, of its `svec`."""
    places = svec_places(order).ravel()
    value = 1.0 / svec_weights(order)[places]
    shape = (places.size, svec_size(order))
    return sparse.csr_array((value, (np.arange(places.size), places)), shape=shape)


def multipliers_of(form: ConeForm, constraints: list[Any]) -> FloatArray | None:
    """Return the dual values of all blocks as klopt's multipliers.

    None where CVXPY has none, or not one real number a row: NumPy would repeat a single number and
    drop an imaginary part.
    """
    y = np.zeros(form.b.size)
    rest = iter(constraints)
    for kind, rows in form.cones.blocks():
        if kind == "power":
            for _, places in _power_groups(form.cones.power):
                parts = _dual_parts(next(rest))
                if parts is None:
                    return None
                if places.shape[1] == 3:
                    y[rows][places] = np.column_stack(parts)
                else:
                    y[rows][places[0]] = np.concatenate(parts)
            continue
        parts = _dual_parts(next(rest))
        if parts is None:
            return None
        found = np.concatenate([np.ravel(part) for part in parts])
        size = rows.stop - rows.start
        order = order_of(size) if kind == "psd" else 0
        expected = order**2 if kind == "psd" else size
        if found.size != expected or not np.isrealobj(found):
            return None
        if kind == "psd":
            M = found.reshape(order, order)
            found = svec((M + M.T) / 2)
        elif kind == "exp":
            # CVXPY has the entries of all cones together: first all x, then all y, then all z.
            found = found.reshape(3, -1).T.ravel()
        y[rows] = found
    return y


def _dual_parts(constraint: Any) -> list[FloatArray] | None:
    """The dual values of the arguments of a constraint as vectors; None where one is missing."""
    dual = constraint.dual_value
    parts = dual if isinstance(dual, list) else [dual]
    if any(part is None for part in parts):
        return None
    return [np.ravel(part) for part in parts]


def offers_of(solver: str) -> frozenset[Feature]:
    """Return what a solver takes, as CVXPY knows it."""
    from cvxpy.reductions.solvers.defines import SOLVER_MAP_CONIC, SOLVER_MAP_QP

    names = set()
    if solver in SOLVER_MAP_QP:
        names.add("Quadratic")
    if solver in SOLVER_MAP_CONIC:
        names |= {kind.__name__ for kind in SOLVER_MAP_CONIC[solver].SUPPORTED_CONSTRAINTS}

    offered = {Feature.CONE}
    offered |= {feature for cone, feature in FEATURE_OF_CONE.items() if cone in names}
    # CVXPY splits long power cones into short ones, and second-order cones from approximations are
    # not what is asked for.
    if Feature.POWER in offered:
        offered.add(Feature.GENERAL_POWER)
    # A quadratic objective is a second-order cone constraint where a solver has no quadratics.
    if names & {"Quadratic", "SOC"}:
        offered.add(Feature.QUADRATIC)
    return frozenset(offered)


def check_options_of(
    solver: str, backend: str, raw: Mapping[str, Any], reserved: Mapping[str, str]
) -> None:
    """Refuse options that a solver does not have and values that its library does not take.

    Parameters
    ----------
    solver
        CVXPY's name of the solver.
    backend
        The name of the backend, for the message.
    raw
        The options that the user gave.
    reserved
        The native names that a setting of klopt covers, with that setting.
    """
    if solver in OPTION_KINDS:
        check_options(backend, raw, OPTION_KINDS[solver], reserved)
    elif solver == "HIGHS":
        highs = import_module("highspy").Highs()
        highs.setOptionValue("log_to_console", False)
        set_raw(backend, highs, raw, reserved)
    else:
        options = _osqp_options() if solver == "OSQP" else _clarabel_options()
        check_raw(backend, raw, option_names(options), reserved)
        set_options(backend, options, raw)


def _clarabel_options() -> Any:
    return import_module("clarabel").DefaultSettings()


def _osqp_options() -> Any:
    osqp = import_module("osqp").OSQP().ext
    options = osqp.OSQPSettings()
    osqp.osqp_set_default_settings(options)
    return options
