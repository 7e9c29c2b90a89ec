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

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from textwrap import fill, indent
from types import MappingProxyType

from klopt.conformance.backend_checks import backend_checks
from klopt.conformance.checks import (
    READ_ONLY,
    Body,
    Check,
    Status,
    expect,
    run_check,
    tried_to_write,
)
from klopt.conformance.problem_checks import problem_checks
from klopt.engine.format import TEXT_COLUMNS, wrapped
from klopt.engine.progress import counting
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


ERROR = re.compile(r"\b[A-Za-z_.]*(?:Error|Exception|Panic)\w*: [^\n]*")
"""An error with its text, as native statuses and details have it."""


def check_backend(backend: Backend, *, show: bool = True) -> list[Check]:
    """Run every check that applies to a backend, print each as it ends and return the results.

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
    """Run every check that applies to a problem class, print each as it ends and return the results.

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

    What several checks fail for is told in full once.

    >>> print(explain_checks("mine", [Check("limit_one_iteration", Status.FAILED, "it raised")]))
    limit_one_iteration  failed
        it raised
    <BLANKLINE>
    mine: 1 failed
    limit_: at a limit return the best point so far with Stop.ITERATION_LIMIT or
        Stop.TIME_LIMIT; do not raise
    """
    width = max((len(check.name) for check in checks), default=0)
    seen: dict[str, str] = {}
    lines = [_line(check, width, seen) for check in checks]
    return "\n".join([*lines, "", _closing(who, checks)])


def _line(check: Check, width: int, seen: dict[str, str]) -> str:
    """A check as text; `seen` are the causes told so far, each with the check that had it."""
    if check.ok:
        return f"{check.name:{width}}  {check.status.value:7}  {check.detail}".rstrip()
    head = f"{check.name:{width}}  {check.status.value}"
    cause = _cause(check)
    if cause in seen:
        return f"{head}   as {seen[cause]}"
    seen[cause] = check.name
    detail = check.detail
    # Told with the first failure of this kind: the later ones only point to it.
    if tried_to_write(cause) and READ_ONLY not in detail:
        detail = f"{detail}\n{READ_ONLY}"
    return f"{head}\n{wrapped(indent(detail, '    '))}"


def _cause(check: Check) -> str:
    """What two failures have in common: the error that a library or a backend raised, or all."""
    found = ERROR.search(check.detail)
    # A place in brackets may follow, and the bracket of the sentence around it.
    return found[0].partition(" (")[0].rstrip(")") if found else check.detail


def _closing(who: str, checks: Sequence[Check]) -> str:
    """The counts, the causes that several checks share, and where to look."""
    counts = Counter(check.status for check in checks)
    summary = ", ".join(f"{counts[each]} {each.value}" for each in Status if counts[each])
    lines = [f"{who}: {summary}"]
    failed = [check for check in checks if not check.ok]
    for cause, number in Counter(map(_cause, failed)).items():
        if number > 1:
            lines.append(wrapped(f"  {number} of them for one reason: {cause.splitlines()[0]}"))
    groups = {check.name.partition("_")[0] for check in failed}
    for group, hint in HINTS.items():
        if group in groups:
            lines.append(fill(f"{group}_: {hint}", TEXT_COLUMNS, subsequent_indent="    "))
    return "\n".join(lines)


def _run_all(
    who: str, checks: Iterator[tuple[str, Body]], exempt: Mapping[str, str], show: bool
) -> list[Check]:
    """Run the checks; with `show` each is printed as soon as it is done."""
    every = list(checks)
    width = max((len(name) for name, _ in every), default=0)
    seen: dict[str, str] = {}
    results: list[Check] = []
    with counting(len(every)) as count:

        def done(check: Check) -> None:
            results.append(check)
            if show:
                count.write(_line(check, width, seen))
            count.advance(check.name)

        for name, body in every:
            done(run_check(name, body, exempt.get(name, "")))
        for name in sorted(set(exempt) - {check.name for check in results}):
            done(Check(name, Status.FAILED, "exempt, but there is no such check"))
        if show:
            count.write(f"\n{_closing(who, results)}")
    return results
