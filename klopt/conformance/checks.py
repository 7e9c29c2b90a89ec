"""A conformance check as data: how it ended, and what its body says where it fails.

A check body asserts with `expect`, or raises `Skip` where it does not apply; `why_not` and
`claimed` word what a result lacks.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from klopt.engine.result import Result
from klopt.proof.certificate import Verdict

__all__ = [
    "READ_ONLY",
    "Body",
    "Check",
    "Skip",
    "Status",
    "claimed",
    "expect",
    "run_check",
    "tried_to_write",
    "why_not",
]

READ_ONLY = "the arrays of a form are read-only; give the library a copy: np.array(form.b)"
"""What to tell the author of a backend that writes into its form."""
Body = Callable[[], None]


class Status(StrEnum):
    """How a check ended."""

    PASSED = "passed"
    FAILED = "failed"
    EXEMPT = "exempt"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Check:
    """One check: its name, how it ended, and why."""

    name: str
    status: Status
    detail: str = ""

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return self.status is not Status.FAILED


class Skip(Exception):
    """A check that does not apply, with the reason."""


def expect(condition: object, otherwise: str) -> None:
    """Fail the check unless the condition holds; unlike `assert` it cannot be switched off."""
    if not condition:
        raise AssertionError(otherwise)


def run_check(name: str, body: Body, reason: str = "") -> Check:
    """Run one check; `reason` is given where it is known to fail, and then it must.

    >>> run_check("sum", lambda: expect(1 + 1 == 3, "1 + 1 is 2"))
    Check(name='sum', status=<Status.FAILED: 'failed'>, detail='1 + 1 is 2')
    """
    try:
        body()
    except Skip as skip:
        return Check(name, Status.SKIPPED, str(skip))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of a Rust library is no Exception
        if reason:
            return Check(name, Status.EXEMPT, reason)
        kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
        return Check(name, Status.FAILED, f"{kind}{error}")
    if reason:
        passes = f"passes although it is exempt ({reason}): drop the exemption"
        return Check(name, Status.FAILED, passes)
    return Check(name, Status.PASSED)


def tried_to_write(native: str) -> bool:
    """Return whether a backend's last words are those of NumPy about a read-only array.

    >>> tried_to_write("ValueError: assignment destination is read-only")
    True
    """
    return re.search(r"not writ(e)?able|read-?only|WRITEABLE", native) is not None


def claimed(result: Result) -> str:
    """Return the route and what its backend said, in its own words."""
    answer = result.chosen.answer
    native = f" ({answer.native.strip()})" if answer.native.strip() else ""
    route = f"{result.problem.describe()} by {result.route}"
    text = f"{route}: the backend says {answer.stop.words}{native}"
    if tried_to_write(answer.native):
        return f"{text}\n{READ_ONLY}"
    return text


def why_not(result: Result, wanted: Verdict) -> str:
    """Return what is proven instead of the wanted verdict, and the residuals."""
    proven = f"proven: {result.verdict.name}, expected: {wanted.name}"
    if np.isfinite(result.lower) or np.isfinite(result.upper):
        proven += f"; {result.lower:.9g} <= optimum <= {result.upper:.9g}"
    if result.estimate is not None:
        proven += f"; estimated: {result.estimate[0]:.9g} to {result.estimate[1]:.9g}"
    lines = [claimed(result), proven]
    residuals = result.certificate.residuals
    if residuals is not None:
        lines.append(
            f"residuals: primal {residuals.primal:.1e} (b - Ax in K), "
            f"dual {residuals.dual:.1e} (Px + c + A'y = 0), "
            f"cone {residuals.cone:.1e} (y in K*), gap {residuals.gap:.1e}"
        )
    return "\n".join([*lines, *result.certificate.notes])
