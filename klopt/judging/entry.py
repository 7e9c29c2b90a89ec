"""`klopt.judge`: what is proven of an answer made elsewhere, whatever made it.

A table says which file reads which kind of answer, by the package and the name of its class. So the
library that an answer comes from is never imported for any other answer.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

from klopt.engine.result import Result
from klopt.errors import InvalidProblem, InvalidSettings
from klopt.model.backend import Settings
from klopt.model.problem import Problem

__all__ = ["SOURCES", "judge"]

Reader = Callable[..., Result]

SOURCES = {
    ("klopt", "Problem"): "named_arrays:judge_point",
    ("sklearn", "SVC"): "scikit_learn:judge_svc",
    ("sklearn", "NuSVC"): "scikit_learn:judge_nu_svc",
    ("sklearn", "SVR"): "scikit_learn:judge_svr",
    ("sklearn", "NuSVR"): "scikit_learn:judge_nu_svr",
    ("sklearn", "KernelRidge"): "scikit_learn:judge_kernel_ridge",
    ("scipy", "OptimizeResult"): "scipy_linear:judge_linear",
    ("qpsolvers", "Solution"): "qpsolvers_solution:judge_solution",
    ("builtins", "str"): "solution_files:judge_files",
    ("pathlib", "PurePath"): "solution_files:judge_files",
    ("cvxpy", "Problem"): "cvxpy_answers:judge_problem",
    ("PEPit", "PEP"): "pepit_program:judge_pep",
}
"""For the package and the class of an answer: the file of this folder, and its function."""


def judge(
    answer: object, *data: Any, tol: float = 1e-6, time_limit: float | None = None, **named: Any
) -> Result:
    """Return what is proven of an answer made elsewhere, without solving again.

    The verdict is about the problem that the answer belongs to, and about the answer: OPTIMAL says
    that lower <= optimum <= upper is proven with upper - lower <= tol (1 + abs(upper)), and that
    the answer as given satisfies its constraints and has a value in that interval, up to `tol`.
    Where it does not the verdict is UNPROVEN; the interval holds all the same.

    Parameters
    ----------
    answer
        A klopt problem, whose point follows, or what another library returned.
    *data, **named
        What the answer does not hold itself:

        =============================  ========================================================
        answer                         data
        =============================  ========================================================
        klopt problem                  `x` and `y`, the point and its multipliers, vectors or
                                       arrays by name
        fitted `SVC`, `NuSVC`, `SVR`,  `X`, `y` and maybe `sample_weight`, as they were given to
        `NuSVR`, `KernelRidge` of      `fit`; a classifier of many classes is judged machine by
        scikit-learn                   machine, and `result.parts` has the results
        result of SciPy's `linprog`    `c`, `A_ub`, `b_ub`, `A_eq`, `b_eq`, `bounds`, as given to it
        result of SciPy's `milp`       `c`, `bounds=`, `constraints=`, `integrality=`; judged is
                                       the relaxation
        `Solution` of qpsolvers        nothing
        path of a program              `solution`, the path of a file of HiGHS, CPLEX, SCIP, Gurobi
                                       or CBC, or of an .npz or .json file with the arrays
        solved `Problem` of CVXPY      nothing; `klopt.solve` solves it instead
        `PEP` of PEPit                 nothing; the worst case is proven by klopt's own multipliers
        =============================  ========================================================
    tol
        The relative gap between the proven bounds that counts as optimal, from 1e-13 to 0.1.
    time_limit
        Seconds after which no further repair of a proof begins. None sets no limit.

    Returns
    -------
    Result
        The verdict, the proven interval and the point behind it. `result.explain()` says in words
        what is proven and what is wrong; `result.problem` is what was judged.

    Examples
    --------
    >>> from klopt.engine.registry import problem_named
    >>> lp = problem_named("LP")(c=[1.0, 2.0], A_ub=[[-1.0, -1.0]], b_ub=[-1.0])
    >>> judge(lp, x=[1.0, 0.0], y={"ub": [1.0]}).verdict.name
    'OPTIMAL'
    >>> result = judge(lp, x=[0.5, 0.0], y={"ub": [1.0]})
    >>> print(result.verdict.name, "but", round(result.lower, 9), "<= optimum")
    UNPROVEN but 1.0 <= optimum
    """
    settings = Settings(tol, time_limit)
    read = _reader(answer)
    try:
        inspect.signature(read).bind(answer, *data, settings=settings, **named)
    except TypeError as error:
        raise InvalidSettings(
            f"{error}; judge({type(answer).__name__}, ...) takes {_parameters(read)}"
        ) from None
    return read(answer, *data, settings=settings, **named)


def _reader(answer: object) -> Reader:
    """The function that reads this kind of answer, from the file that is for it."""
    name = None
    if isinstance(answer, Problem):
        name = SOURCES["klopt", "Problem"]
    # A class of one's own that inherits from a known one is read as that.
    for cls in type(answer).__mro__:
        package = cls.__module__.partition(".")[0]
        name = name or SOURCES.get((package, cls.__name__))
    if name is None:
        known = [f"{package}'s {cls}" for package, cls in SOURCES if package != "builtins"]
        raise InvalidProblem(
            f"klopt cannot judge a {type(answer).__name__}; it can judge {', '.join(known)} "
            "and the path of a file"
        )
    module, _, function = name.partition(":")
    reader: Reader = getattr(importlib.import_module(f"klopt.judging.{module}"), function)
    return reader


def _parameters(read: Reader) -> str:
    """What a reader takes after the answer, as a person would write it."""
    names = [name for name in inspect.signature(read).parameters if name != "settings"]
    return ", ".join(names[1:]) or "nothing else"
