"""`CVXPY`: klopt as a custom solver of CVXPY, whose status `optimal` is a proof."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache
from typing import Any

from klopt.engine.cvxpy_results import cvxpy_status
from klopt.engine.pipeline import solve
from klopt.engine.registry import problem_named
from klopt.errors import InvalidSettings
from klopt.model.backend import Backend
from klopt.programs.cvxpy_reduction import NAME, ConicData, conic_solver_class

__all__ = ["CVXPY"]

OF_CVXPY = ("use_quad_obj",)
"""Options that CVXPY reads itself and passes on."""


def CVXPY(backend: str | Backend | None = None, **settings: Any) -> Any:
    """Return klopt as a solver for `cvxpy.Problem.solve`, which names it KLOPT.

    The status is `optimal`, `infeasible` or `unbounded` only where klopt has proven it; else
    `optimal_inaccurate` and so on. The `klopt.Result` is
    `problem.solver_stats.extra_stats["result"]`; it is about the cone program that CVXPY minimises,
    without the constant of the objective. `klopt.solve(problem)` has it in the user's units.

    Parameters
    ----------
    backend
        The backend that solves, by name or as an instance; None leaves the choice to klopt.
    **settings
        What `klopt.solve` takes, such as `tol` and `time_limit`. `problem.solve` takes them too.

    Returns
    -------
    cvxpy.reductions.solvers.solver.Solver
        For `problem.solve(solver=...)`. Two with the same arguments are equal, so that CVXPY does
        not compile a problem again.

    Examples
    --------
    >>> import cvxpy, klopt
    >>> x = cvxpy.Variable(2)
    >>> problem = cvxpy.Problem(cvxpy.Maximize(cvxpy.geo_mean(x)), [cvxpy.sum(x) <= 2])
    >>> value = problem.solve(solver=klopt.CVXPY(tol=1e-7))
    >>> problem.status, round(float(value), 6)
    ('optimal', 1.0)
    """
    return _solver_class()(backend, _checked(settings))


def _checked(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by the names that `klopt.solve` has."""
    known = set(inspect.signature(solve).parameters) - {"problem", "backend", "exact"}
    for name in settings:
        if name not in known:
            raise InvalidSettings(
                f"klopt has no setting {name!r}; it has: {', '.join(sorted(known))}"
            )
    return dict(settings)


@cache
def _solver_class() -> Any:
    """The class of these solvers, made where CVXPY is asked for."""
    base = conic_solver_class()

    class KloptSolver(base):  # type: ignore[misc, valid-type]
        """Solves by klopt what CVXPY has reduced."""

        def __init__(self, backend: str | Backend | None, settings: Mapping[str, Any]) -> None:
            super().__init__()
            self.backend = backend
            self.settings = settings

        def _key(self) -> tuple[object, str]:
            return self.backend, repr(sorted(self.settings.items()))

        def __eq__(self, other: object) -> bool:
            return type(other) is type(self) and self._key() == other._key()

        def __hash__(self) -> int:
            return hash(self._key())

        def solve_via_data(
            self,
            data: Mapping[str, Any],
            warm_start: bool,
            verbose: bool,
            solver_opts: Mapping[str, Any],
            solver_cache: dict[str, Any] | None = None,
        ) -> dict[str, Any]:
            """Return klopt's answer in the form that SCS would give it."""
            given = {name: v for name, v in solver_opts.items() if name not in OF_CVXPY}
            settings = {"log": bool(verbose), **self.settings, **_checked(given)}
            conic = ConicData(data, self.ROWS_OF_SVEC)
            make: Any = problem_named("ConeProgram")
            earlier = None if solver_cache is None else solver_cache.get(NAME)
            if warm_start and _fits(earlier, conic):
                settings.setdefault("start", earlier)
            result = solve(make(**conic.arguments), self.backend, **settings)
            if solver_cache is not None and result.point is not None:
                solver_cache[NAME] = result.point

            status = cvxpy_status(result)
            x = None if result.point is None else result.point.primal["x"]
            y = result.duals.get("y")
            answer = conic.answer(status, x, y)
            answer["info"] |= {
                "pobj": result.value,
                "solve_time": 1000 * result.seconds,
                "iter": result.iterations,
            }
            return {**answer, "result": result}

    return KloptSolver


def _fits(point: Any, conic: ConicData) -> bool:
    """Whether an earlier point has the shape of the program."""
    return point is not None and point.primal["x"].shape == conic.data["c"].shape
