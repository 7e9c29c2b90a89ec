"""A conformance check as data: `Check`, how it ended, and the words a check body speaks: `expect` and `Skip`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Body", "Check", "Skip", "Status", "expect", "run_check"]

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
    except BaseException as error:
        if reason:
            return Check(name, Status.EXEMPT, reason)
        kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
        return Check(name, Status.FAILED, f"{kind}{error}")
    if reason:
        return Check(
            name, Status.FAILED, f"passes although it is exempt ({reason}): drop the exemption"
        )
    return Check(name, Status.PASSED)
