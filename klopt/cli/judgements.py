"""The command `klopt judge`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from klopt.cli.common import (
    accepted as _accept,
    as_json as _json,
    explained as _verbose,
    tolerance as _tol,
)
from klopt.cli.results import print_judgement

if TYPE_CHECKING:
    from klopt.engine.result import Accept, Result

__all__ = ["judge"]


@click.command(short_help="Prove an answer that was made elsewhere.")
@click.argument("target", metavar="FILE|MODULE:NAME")
@click.argument("solution", metavar="[SOLUTION]", required=False)
@_tol
@click.option(
    "--time",
    "time_limit",
    metavar="DURATION",
    help="Begin no repair of a proof after 30, 30s, 5m or 2h.",
)
@_accept
@_verbose
@_json
def judge(
    target: str,
    solution: str | None,
    tol: float,
    time_limit: str | None,
    accept: Accept,
    verbose: bool,
    as_json: bool,
) -> None:
    """Prove the SOLUTION of a FILE, or an answer in a Python file, without solving again.

    \b
    klopt judge model.mps model.sol   of HiGHS, CPLEX, SCIP, Gurobi or CBC
    klopt judge model.cbf point.npz   the arrays x and y, or .json
    klopt judge script.py:answer      what klopt.judge takes: one object, or a
                                      tuple of arguments such as (svc, X, y)

    Exit code 0 if what the answer claims is proven, 1 if not, 2 for a bad call.
    """
    from klopt.cli.arguments import read_duration
    from klopt.judging.entry import judge as run

    seconds = None if time_limit is None else read_duration(time_limit)
    given, named = _answer(target, solution)
    result = run(*given, tol=tol, time_limit=seconds, **named)
    print_judgement(result, verbose, as_json)
    sys.exit(0 if result.accepted(accept) and _is_confirmed(result) else 1)


def _is_confirmed(result: Result) -> bool:
    """Whether the verdict is what the answer claims: a program without optimum has no optimal answer."""
    from klopt.model.backend import Stop
    from klopt.proof.certificate import Verdict

    has_optimum = result.verdict not in (Verdict.INFEASIBLE, Verdict.UNBOUNDED)
    return has_optimum or result.stop is not Stop.OPTIMAL


def _answer(target: str, solution: str | None) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of `klopt.judge`: two files, or what a Python file has under a name.

    A tuple holds the arguments; if its last one is a dictionary, that has those with names.
    """
    from pathlib import Path

    from klopt.engine.lookup import read_object
    from klopt.errors import InvalidProblem, InvalidSettings

    if solution is not None:
        if not Path(target).is_file():
            raise InvalidProblem(f"no file {target!r}")
        return (target, solution), {}
    if Path(target).is_file():
        raise InvalidSettings(
            f"{target} is a file of a program; give its solution too, or FILE.py:NAME"
        )
    found = read_object(target)
    given = found if isinstance(found, tuple) else (found,)
    if len(given) > 1 and isinstance(given[-1], dict):
        return given[:-1], given[-1]
    return given, {}
