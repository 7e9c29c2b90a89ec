"""What every backend and every problem must pass; usable from outside.

    contract_  it is what it says: names, pickling, silence, determinism, inputs untouched, unknown options refused
    truth_     instances solved on paper
    proof_     random programs with a known solution certify; multipliers match finite differences
    limit_     one iteration or next to no time: it returns, and nothing false is said
    meta_      permuted, scaled, shifted, split, substituted programs keep their optimum
    start_     a start at the optimum is taken and not worse; rubbish is refused or projected
    agree_     its interval overlaps that of every other backend

Results are data. A check that a backend declares in `exempt` must still fail: an exemption that passes is reported.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from klopt.backend import Backend
from klopt.backend_checks import backend_checks
from klopt.checks import Body, Check, Status, run_check
from klopt.problem import Problem
from klopt.problem_checks import problem_checks

__all__ = ["Check", "Status", "check_backend", "check_problem"]


def check_backend(backend: Backend, *, show: bool = True) -> list[Check]:
    """Run every check that applies to a backend; print a table unless `show` is false; return the results.

    >>> from klopt.registry import backend_named
    >>> all(check.ok for check in check_backend(backend_named("explicit"), show=False))
    True
    """
    return _run_all(backend.name, backend_checks(backend), backend.exempt, show)


def check_problem(problem: type[Problem], *, show: bool = True) -> list[Check]:
    """Run every check that applies to a problem class; print a table unless `show` is false; return the results."""
    return _run_all(problem.__name__, problem_checks(problem), MappingProxyType({}), show)


def _run_all(who: str, checks: Iterator[tuple[str, Body]], exempt: Mapping[str, str], show: bool) -> list[Check]:
    results = [run_check(name, body, exempt.get(name, "")) for name, body in checks]
    unknown = set(exempt) - {check.name for check in results}
    results += [Check(name, Status.FAILED, "exempt, but there is no such check") for name in sorted(unknown)]
    if show:
        sys.stdout.write(_table(who, results))
    return results


def _table(who: str, results: list[Check]) -> str:
    wide = max((len(check.name) for check in results), default=0)
    lines = [f"{check.name:{wide}}  {check.status.value:7}  {check.detail}".rstrip() for check in results]
    counts = ", ".join(f"{sum(check.status is status for check in results)} {status.value}" for status in Status)
    return "\n".join([*lines, f"{who}: {counts}", ""])
