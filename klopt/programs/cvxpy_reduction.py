"""CVXPY's own reduction of its problems to cone programs, and the way back for values and duals.

CVXPY reduces a problem for one of its solvers: it adds auxiliary variables, turns attributes into
constraints and flips what is maximised. klopt takes part as a conic solver whose conventions are
klopt's: s = b - Ax in zero, nonnegative, second-order, semidefinite, exponential and power cones, in
this order. The rows of a semidefinite cone are entries of the lower triangle as they are, so that
nothing is rounded on the way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.errors import InvalidProblem
from klopt.model.cones import Cones, svec_weights

__all__ = [
    "NAME",
    "ConicData",
    "CvxpyProblem",
    "CvxpyReduction",
    "conic_solver_class",
    "is_cvxpy_problem",
    "reduced_by_cvxpy",
    "refuse_others",
]

NAME = "KLOPT"
"""What CVXPY calls klopt among its solvers."""


class CvxpyProblem(Protocol):
    """What klopt needs of a `cvxpy.Problem`, which is imported only where one is given."""

    def get_problem_data(self, *args: Any, **options: Any) -> Any:
        """Return data, chain and inverse data of the reduction for a solver."""
        ...

    def unpack(self, solution: Any) -> None:
        """Take the values of a solution."""
        ...


def is_cvxpy_problem(given: object) -> bool:
    """Return whether something is a problem of CVXPY, without importing it.

    >>> is_cvxpy_problem("a text")
    False
    """
    return any(
        kind.__name__ == "Problem" and kind.__module__.startswith("cvxpy.")
        for kind in type(given).__mro__
    )


@cache
def conic_solver_class() -> Any:
    """Return klopt as a class of CVXPY's conic solvers, which reduces but does not solve."""
    constraints = import_module("cvxpy.constraints")
    settings = import_module("cvxpy.settings")
    scs_conif = import_module("cvxpy.reductions.solvers.conic_solvers.scs_conif")
    base = scs_conif.SCS

    matrix_stuffing = import_module("cvxpy.reductions.dcp2cone.cone_matrix_stuffing")
    supported = list(base.SUPPORTED_CONSTRAINTS)
    # Older versions of CVXPY split long power cones for all solvers.
    if hasattr(matrix_stuffing.ConeDims, "PND_DIM"):
        supported.append(constraints.PowConeND)

    # What klopt says is a status of CVXPY already.
    known = (*settings.SOLUTION_PRESENT, *settings.INF_OR_UNB, *settings.ERROR)
    statuses = {status: status for status in known}

    class KloptConic(base):  # type: ignore[misc, valid-type]
        """SCS has klopt's order of cones, signs and triangles."""

        SUPPORTED_CONSTRAINTS = supported
        REQUIRES_CONSTR = False
        BOUNDED_VARIABLES = True
        PSD_SQRT2_SCALING = False
        STATUS_MAP = statuses

        def name(self) -> str:
            return NAME

        def import_solver(self) -> None:
            """There is nothing to import: klopt is running."""

        def supports_quad_obj(self) -> bool:
            return True

        def cite(self, data: object) -> str:
            return ""

    # In older versions of CVXPY the rows of SCS are those of svec, whatever a class says.
    KloptConic.ROWS_OF_SVEC = not hasattr(base, "PSD_SQRT2_SCALING")
    return KloptConic


@cache
def _reducing_solver() -> Any:
    """The one instance for which problems are reduced, so that CVXPY's cache knows it again."""
    return conic_solver_class()()


@dataclass(frozen=True, eq=False)
class ConicData:
    """What CVXPY hands to a conic solver, and the way back.

    Parameters
    ----------
    data
        The dictionary that CVXPY makes.
    svec
        Whether rows of semidefinite cones are those of `svec`.
    """

    data: Mapping[str, Any]
    svec: bool

    @cached_property
    def arguments(self) -> dict[str, Any]:
        """The arguments of a `ConeProgram` that minimises."""
        data = self.data
        c = data["c"]
        dims = data["dims"]
        A_bounds, b_bounds = self._bounds
        # Without constraints CVXPY has no rows of the right width.
        A = data["A"] if data["b"].size else sparse.csc_array((0, c.size))
        b = data["b"]
        if b_bounds.size:
            place = self.place
            rows = sparse.csr_array(A)
            A = sparse.vstack([rows[:place], A_bounds, rows[place:]], format="csc")
            b = np.concatenate((b[:place], b_bounds, b[place:]))
        cones = Cones(
            zero=dims.zero,
            nonneg=dims.nonneg + b_bounds.size,
            soc=tuple(dims.soc),
            psd=tuple(dims.psd),
            exp=dims.exp,
            power=(*dims.p3d, *getattr(dims, "pnd", ())),
        )
        return {"P": data.get("P"), "c": c, "A": A, "b": b, "cones": cones, "svec": self.svec}

    @property
    def place(self) -> int:
        """Where the rows of bounds begin: after the other inequalities."""
        dims = self.data["dims"]
        return int(dims.zero + dims.nonneg)

    @cached_property
    def _bounds(self) -> tuple[sparse.csr_array, FloatArray]:
        """Bounds of the variables as rows: -x <= -lower, then x <= upper."""
        n = self.data["c"].size
        program = self.data["param_prob"]
        if all(getattr(program, f"{side}_bounds", None) is None for side in ("lower", "upper")):
            return sparse.csr_array((0, n)), np.zeros(0)
        unit = sparse.eye_array(n, format="csr")
        matrices = [sparse.csr_array((0, n))]
        sides = [np.zeros(0)]
        for name, sign in (("lower_bounds", -1.0), ("upper_bounds", 1.0)):
            bounds = getattr(program, name, None)
            if bounds is not None:
                finite = np.flatnonzero(np.isfinite(bounds))
                matrices.append(sign * unit[finite])
                sides.append(sign * bounds[finite])
        return sparse.csr_array(sparse.vstack(matrices)), np.concatenate(sides)

    def with_bound_multipliers(self, x: FloatArray | None, y: FloatArray) -> FloatArray:
        """Return multipliers of the rows with those of the bounds of variables, which follow.

        What is left of Px + c + A'y is the multiplier of a lower bound where it is positive, of an
        upper one where it is negative. Without x they are multipliers of a contradiction, in which
        the objective has no part.
        """
        A, b = self._bounds
        if not b.size:
            return y
        g = self.data["A"].T @ y
        if x is not None:
            P = self.data.get("P")
            g = g + self.data["c"] + (0.0 if P is None else P @ x)
        # The entries of A are -1 for lower bounds and 1 for upper ones.
        multipliers = np.maximum(-(A @ g), 0.0)
        return np.concatenate((y[: self.place], multipliers, y[self.place :]))

    def answer(self, status: str, x: FloatArray | None, y: FloatArray | None) -> dict[str, Any]:
        """Return a solution of the cone program as SCS would, which CVXPY knows how to take back.

        Parameters
        ----------
        status
            One of CVXPY's.
        x, y
            The solution; None where there is none.
        """
        cones = self.arguments["cones"]
        multipliers = np.full(cones.size, np.nan) if y is None else np.array(y, float)
        if not self.svec:
            # CVXPY expects the entries of matrices; a row off the diagonal stands for two of them.
            orders = iter(order for order in cones.psd if order)
            for kind, rows in cones.blocks():
                if kind == "psd":
                    multipliers[rows] /= svec_weights(next(orders)) ** 2
        stop = self.place + self._bounds[1].size
        info = {"status_val": status, "solve_time": 0.0, "setup_time": 0.0, "iter": 0}
        return {
            "info": {**info, "pobj": np.nan},
            "x": x,
            "y": np.delete(multipliers, np.s_[self.place : stop]),
        }


@dataclass(frozen=True, eq=False)
class CvxpyReduction:
    """A problem of CVXPY, reduced to a cone program."""

    problem: Any
    conic: ConicData
    chain: Any
    inverse: Any

    @cached_property
    def arguments(self) -> dict[str, Any]:
        """The arguments of `ConeProgram`."""
        offset = float(np.asarray(self.inverse[-1]["offset"]).item())
        maximises = type(self.problem.objective).__name__ == "Maximize"
        arguments = self.conic.arguments
        if not maximises:
            return {**arguments, "offset": offset}
        # CVXPY minimises the negative.
        P = arguments["P"]
        flipped = {"P": None if P is None else -P, "c": -arguments["c"], "offset": -offset}
        return {**arguments, **flipped, "sense": "max"}

    def unpack(self, status: str, x: FloatArray | None, y: FloatArray | None) -> None:
        """Set the values of the problem's variables, duals, status and value.

        Parameters
        ----------
        status
            One of CVXPY's.
        x, y
            A solution of the cone program; None where there is none.
        """
        if status in import_module("cvxpy.settings").ERROR:
            self.problem._clear_solution()
            return
        answer = self.conic.answer(status, x, y)
        self.problem.unpack(self.chain.invert(answer, self.inverse))


def reduced_by_cvxpy(problem: Any) -> CvxpyReduction:
    """Return the cone program that CVXPY makes of a problem, at the values of its parameters.

    >>> import cvxpy
    >>> x = cvxpy.Variable(2)
    >>> found = reduced_by_cvxpy(cvxpy.Problem(cvxpy.Minimize(cvxpy.norm(x - 1)), [x[0] == 0]))
    >>> found.arguments["cones"].soc
    (3,)
    """
    if not is_cvxpy_problem(problem):
        raise InvalidProblem(f"a {type(problem).__name__} is no cvxpy.Problem")
    refuse_others(problem)
    solver = _reducing_solver()
    try:
        data, chain, inverse = problem.get_problem_data(solver)
    except import_module("cvxpy.error").SolverError as error:
        raise InvalidProblem(f"CVXPY cannot reduce the problem to cones: {error}") from None
    return CvxpyReduction(problem, ConicData(data, solver.ROWS_OF_SVEC), chain, inverse)


def refuse_others(problem: Any) -> None:
    """Refuse problems that are not convex programs with values for all parameters.

    >>> import cvxpy
    >>> x = cvxpy.Variable(integer=True)
    >>> refuse_others(cvxpy.Problem(cvxpy.Minimize(x), [x >= 0.5]))
    Traceback (most recent call last):
    klopt.errors.InvalidProblem: the CVXPY problem has integer variables (...
    """
    if not problem.variables():
        raise InvalidProblem("the CVXPY problem has no variables; there is nothing to solve")
    if problem.is_mixed_integer():
        names = [
            variable.name()
            for variable in problem.variables()
            if variable.attributes["integer"] or variable.attributes["boolean"]
        ]
        raise InvalidProblem(
            f"the CVXPY problem has integer variables ({', '.join(names) or 'a finite set'}); "
            "klopt solves convex problems: relax them"
        )
    if not problem.is_dcp():
        advice = "see cvxpy.org/tutorial/dcp for the rules"
        if problem.is_dgp():
            advice = "it is a geometric program: problem.solve(solver=klopt.CVXPY(), gp=True)"
        elif problem.is_dqcp():
            advice = "it is quasiconvex: problem.solve(solver=klopt.CVXPY(), qcp=True)"
        raise InvalidProblem(f"the CVXPY problem is not convex by CVXPY's rules (DCP); {advice}")
    for parameter in problem.parameters():
        if parameter.value is None:
            raise InvalidProblem(
                f"the parameter {parameter.name()} of the CVXPY problem has no value; set it first"
            )
