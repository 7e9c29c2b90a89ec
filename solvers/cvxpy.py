"""Cone programs by any solver that CVXPY finds, or by the one that `cvxpy:NAME` names.

The blocks of s = b - Ax become CVXPY constraints, whose dual values are klopt's multipliers.
Infeasibility and unboundedness come without vectors. CVXPY takes its time to build a program, so it
stands last in every plan.
"""

from __future__ import annotations

import difflib
import time
import warnings
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from klopt.errors import InvalidSettings
from klopt.model.backend import Answer, Backend, Settings, Start, Stop
from klopt.model.features import CURVED_CONES, Feature
from klopt.model.forms import ConeForm, Form
from klopt.solvers import clarabel
from klopt.solvers._native.cvxpy_model import (
    check_options_of,
    constraints_of,
    multipliers_of,
    offers_of,
)
from klopt.solvers._native.memory import dense_blocks, matrix_bytes
from klopt.solvers._native.options import INT32_MAX

__all__ = ["BACKEND", "Cvxpy"]


class _OptionNames(NamedTuple):
    """What a solver calls its tolerances and limits, "" for a limit that it does not have."""

    tolerances: tuple[str, ...] = ()
    max_iter: str = ""
    time_limit: str = ""


OPTION_NAMES = {
    "CLARABEL": _OptionNames(
        ("tol_gap_abs", "tol_gap_rel", "tol_feas"), max_iter="max_iter", time_limit="time_limit"
    ),
    "ECOS": _OptionNames(("abstol", "reltol", "feastol"), max_iter="max_iters"),
    "HIGHS": _OptionNames(
        ("primal_feasibility_tolerance", "dual_feasibility_tolerance"), time_limit="time_limit"
    ),
    "OSQP": _OptionNames(("eps_abs", "eps_rel"), max_iter="max_iter", time_limit="time_limit"),
    "SCS": _OptionNames(
        ("eps_abs", "eps_rel", "eps_infeas"), max_iter="max_iters", time_limit="time_limit_secs"
    ),
}
MIN_TOLERANCE = 1e-10
"""The smallest tolerance that a solver is given."""
STOPS = {
    "optimal": Stop.OPTIMAL,
    "optimal_inaccurate": Stop.ALMOST_OPTIMAL,
    "infeasible": Stop.INFEASIBLE,
    "infeasible_inaccurate": Stop.STALLED,
    "unbounded": Stop.UNBOUNDED,
    "unbounded_inaccurate": Stop.STALLED,
    "infeasible_or_unbounded": Stop.INFEASIBLE_OR_UNBOUNDED,
    "user_limit": Stop.ITERATION_LIMIT,
}

CHOICES = frozenset({"clarabel", "scs"})
"""The solvers that CVXPY chooses for cone programs by itself."""


@dataclass(frozen=True, repr=False)
class Cvxpy(Backend):
    """The way to solvers that klopt has no file for, such as MOSEK.

    It is named as in `klopt.solve(problem, backend="cvxpy:MOSEK")`.
    """

    solver: str | None = None

    name = "cvxpy"
    library = "cvxpy"
    rank = 50
    references = ("diamond2016", "agrawal2018")
    offers = CURVED_CONES | {Feature.CONE, Feature.QUADRATIC}
    honours = frozenset({"tol", "seed"})
    proves = frozenset({"dual"})

    def __post_init__(self) -> None:
        # Of one solver both are its own, which the class cannot know.
        if self.solver is not None:
            object.__setattr__(self, "name", f"cvxpy:{self.solver}")
            object.__setattr__(self, "offers", offers_of(self.solver))

    def variant(self, name: str) -> Backend:
        """Return the backend that uses the solver of that name."""
        cvxpy = import_module("cvxpy")  # its stubs lack most of its names

        known = cvxpy.installed_solvers()
        if name.upper() not in known:
            near = difflib.get_close_matches(name.upper(), known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else "."
            raise InvalidSettings(
                f"CVXPY finds no solver {name!r}{hint} It has: {', '.join(known)}"
            )
        return Cvxpy(name.upper())

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        """Return what CVXPY's solver claims about a cone program."""
        cvxpy = import_module("cvxpy")  # its stubs lack most of its names

        assert isinstance(form, ConeForm)
        _check_raw(self.name, self.solver, settings)
        x = cvxpy.Variable(form.c.size)
        constraints = constraints_of(form, x)
        cost = form.c @ x
        if form.P is not None:
            cost = cost + cvxpy.quad_form(x, cvxpy.psd_wrap(form.P)) / 2
        problem = cvxpy.Problem(cvxpy.Minimize(cost), constraints)

        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on accuracy: klopt measures
            try:
                data, chain, inverse = problem.get_problem_data(self.solver, solver_opts={})
                options = _options(chain.solver.name(), settings)
                began = time.perf_counter()
                raw = chain.solve_via_data(problem, data, False, settings.log, options)
                seconds = time.perf_counter() - began
                problem.unpack_results(raw, chain, inverse)
            except cvxpy.SolverError as error:
                native = f"{self.solver or self.name}: {error}"
                return Answer(Stop.NUMERICAL, seconds=time.perf_counter() - began, native=native)

        stop = STOPS.get(problem.status, Stop.NUMERICAL)
        native = f"{chain.solver.name()}: {problem.status}"
        iterations = problem.solver_stats.num_iters
        y = multipliers_of(form, constraints)
        # Some solvers leave their proof in the dual values.
        if problem.status in ("infeasible", "infeasible_inaccurate"):
            return Answer(stop, farkas=y, iterations=iterations, seconds=seconds, native=native)
        point = None if x.value is None else np.array(x.value)
        return Answer(stop, point, y, iterations=iterations, seconds=seconds, native=native)

    def repeats(self, needs: frozenset[Feature], tried: frozenset[str]) -> bool:
        """Return whether CVXPY's choice for such a program was tried without it."""
        if self.solver is not None:
            return self.solver.lower() in tried
        # For quadratic objectives CVXPY takes OSQP, which klopt has no file for.
        if Feature.QUADRATIC in needs:
            return False
        return tried >= CHOICES

    def memory(self, form: Form) -> float:
        """Return the bytes that CVXPY needs at least, and of its solvers Clarabel."""
        # CVXPY's own choice for semidefinite cones is SCS, which has no dense blocks.
        blocks = dense_blocks(form) if self.solver == "CLARABEL" else 0.0
        return clarabel.BYTES_PER_DENSE_ENTRY * blocks + matrix_bytes(form, 50, 70)


def _check_raw(backend: str, solver: str | None, settings: Settings) -> None:
    if not settings.raw:
        return
    if solver is None:
        raise InvalidSettings(
            "raw options belong to one solver; name it, as in backend='cvxpy:SCS'"
        )
    # What other solvers are told goes through CVXPY as it is.
    if solver in OPTION_NAMES:
        names = OPTION_NAMES[solver]
        reserved = dict.fromkeys(names.tolerances, "tol") | {
            names.max_iter: "max_iter",
            names.time_limit: "time_limit",
            "verbose": "log",
        }
        check_options_of(solver, backend, settings.raw, reserved)


def _options(solver: str, settings: Settings) -> dict[str, Any]:
    names = OPTION_NAMES.get(solver, _OptionNames())
    tol = max(MIN_TOLERANCE, settings.tol / 100)
    options: dict[str, Any] = dict.fromkeys(names.tolerances, tol)
    if names.max_iter and settings.max_iter:
        options[names.max_iter] = min(settings.max_iter, INT32_MAX)
    if names.time_limit and settings.time_limit:
        options[names.time_limit] = settings.time_limit
    return options | dict(settings.raw)


BACKEND = Cvxpy()
