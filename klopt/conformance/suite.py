"""`check_backend` and `check_problem`: run what every backend and every problem must pass.

    contract_  it does what it declares, pickles, is silent and deterministic, changes no input
    truth_     instances solved on paper
    proof_     random programs with a known solution are certified; multipliers are gradients
    limit_     with one iteration or hardly any time it returns, and claims nothing false
    meta_      permuted, scaled, split and substituted programs keep their optimum
    start_     a start at the optimum is used and does not hurt; NaN is refused or projected
    agree_     its interval overlaps that of every other backend

Results are data. A check that a backend declares in `exempt` must still fail: an exemption that
passes is reported.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from textwrap import fill, indent
from types import MappingProxyType

from klopt.conformance.backend_checks import backend_checks
from klopt.conformance.checks import Body, Check, Status, expect, run_check
from klopt.conformance.problem_checks import problem_checks
from klopt.engine.format import TEXT_COLUMNS, wrapped
from klopt.errors import InvalidSettings
from klopt.model.backend import Backend, contract_flaw
from klopt.model.problem import Problem

__all__ = ["Check", "Status", "check_backend", "check_problem", "explain_checks"]

HINTS = {
    "contract": "the class does not do what it declares",
    "truth": (
        "programs solved on paper: look at x first (primal), then at the sign and order of y "
        "(dual, cone)"
    ),
    "limit": (
        "at a limit return the best point so far with Stop.ITERATION_LIMIT or Stop.TIME_LIMIT; "
        "do not raise"
    ),
    "start": 'take start.x and start.y, project what is not feasible, or do not honour "start"',
    "agree": (
        "the proven intervals of two backends are disjoint: one of them solves another program"
    ),
    "proof": (
        "multipliers satisfy Px + c + A'y = 0 with y in K* and b - Ax in K; "
        "many libraries return -y"
    ),
    "meta": (
        "the same program written otherwise: is an order of rows, a scale or a sparse format "
        "taken for granted?"
    ),
    "sample": "sample(rng, size) returns an instance that solves, the same one for the same rng",
    "forms": (
        "every formulation states its needs and has the same optimum, and recover undoes lift"
    ),
    "recover": (
        "bracket(point) returns a point that brackets the optimum as narrowly as the one it was "
        "given"
    ),
    "bracket": (
        "lower <= optimum <= upper for any point, computed from the data, never from what a "
        "backend said"
    ),
}
"""Where to look when a check of the group fails."""


def check_backend(backend: Backend, *, show: bool = True) -> list[Check]:
    """Run every check that applies to a backend, print a table and return the results.

    What fails is not raised.

    Parameters
    ----------
    backend : Backend
        An instance; it need not be registered.
    show : bool
        Whether the table is printed.

    Returns
    -------
    list of Check
        Each with `ok`, `name` and the reason in `detail`.

    Examples
    --------
    >>> from klopt.engine.registry import backend_named
    >>> all(check.ok for check in check_backend(backend_named("explicit"), show=False))
    True
    """
    if not isinstance(backend, Backend):
        raise InvalidSettings(
            f"backend is {backend!r}; expected an instance of a class derived from klopt.Backend"
        )
    if flaw := contract_flaw(backend):
        raise InvalidSettings(f"{type(backend).__name__} cannot be checked: {flaw}")
    if backend.missing:
        installed = "contract_installed", partial(expect, False, backend.missing)
        return _run_all(backend.name, iter([installed]), MappingProxyType({}), show)
    return _run_all(backend.name, backend_checks(backend), backend.exempt, show)


def check_problem(problem: type[Problem], *, show: bool = True) -> list[Check]:
    """Run every check that applies to a problem class, print a table and return the results.

    Instances come from the class itself, by `sample(rng, size)`.

    Parameters
    ----------
    problem : type
        A class that inherits from `klopt.Problem`.
    show : bool
        Whether the table is printed.

    Returns
    -------
    list of Check
        Each with `ok`, `name` and the reason in `detail`.

    Examples
    --------
    >>> from klopt.engine.registry import problem_named
    >>> all(check.ok for check in check_problem(problem_named("NuMargin"), show=False))
    True
    """
    if not (isinstance(problem, type) and issubclass(problem, Problem)):
        raise InvalidSettings(
            f"problem is a {type(problem).__name__}; expected a class derived from klopt.Problem"
        )
    return _run_all(problem.__name__, problem_checks(problem), MappingProxyType({}), show)


def explain_checks(who: str, checks: Sequence[Check]) -> str:
    """Return a line for each check, why what failed did, and where to look, in 80 columns.

    >>> print(explain_checks("mine", [Check("limit_one_iteration", Status.FAILED, "it raised")]))
    limit_one_iteration  failed
        it raised
    <BLANKLINE>
    mine: 1 failed
    limit_: at a limit return the best point so far with Stop.ITERATION_LIMIT or
        Stop.TIME_LIMIT; do not raise
    """
    width = max((len(check.name) for check in checks), default=0)
    lines = []
    for check in checks:
        if check.ok:
            lines.append(f"{check.name:{width}}  {check.status.value:7}  {check.detail}".rstrip())
        else:
            lines.append(f"{check.name:{width}}  {check.status.value}")
            lines.append(wrapped(indent(check.detail, "    ")))

    counts = Counter(check.status for check in checks)
    summary = ", ".join(f"{counts[each]} {each.value}" for each in Status if counts[each])
    lines += ["", f"{who}: {summary}"]

    failed = {check.name.partition("_")[0] for check in checks if not check.ok}
    for group, hint in HINTS.items():
        if group in failed:
            lines.append(fill(f"{group}_: {hint}", TEXT_COLUMNS, subsequent_indent="    "))
    return "\n".join(lines)


def _run_all(
    who: str, checks: Iterator[tuple[str, Body]], exempt: Mapping[str, str], show: bool
) -> list[Check]:
    results = [run_check(name, body, exempt.get(name, "")) for name, body in checks]
    unknown = set(exempt) - {check.name for check in results}
    for name in sorted(unknown):
        results.append(Check(name, Status.FAILED, "exempt, but there is no such check"))
    if show:
        sys.stdout.write(f"{explain_checks(who, results)}\n")
    return results
