"""`Run` and `Trace`: a finished run as plain numbers and text, and the bounds along its way.

A record holds no problem, no backend and no array, so that it goes unchanged into a database, a
page and a table. Numbers that are not known are NaN, counts that are not known None, texts that are
not known empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, isinf, isnan, nan
from typing import TypeAlias

from klopt.model.backend import Step, Stop
from klopt.proof.certificate import Verdict

__all__ = ["KILLED", "Run", "Trace", "printable"]

KILLED = "the child process died of SIGKILL"
"""How a native status begins where something else than klopt, which ends children at their limits
only, has killed the child: a user, or the kernel when memory is short."""

Trace: TypeAlias = tuple[Step, ...]
"""Certified bounds in the user's units after so many iterations and seconds."""


@dataclass(frozen=True)
class Run:
    """One route on one problem, run once in a child process.

    `key` is the hash of all that determines the outcome: the problem's data, class and version, the
    formulation, the backend and its version, the settings, the seed, the threads and the number of
    the repeat. `says` is the backend's claim, `verdict` what klopt proves; `lower` <= optimum <=
    `upper` is proven, in the user's units. Seconds are measured inside the child: `build`, `solve` and
    `certify` by klopt, `native` by the backend itself.
    """

    key: str
    problem: str
    """A short label, unique in a comparison: `SoftMargin breast n=200`."""
    family: str
    """The name of the problem's class."""
    size: int
    """What growth is measured in: the number of points or variables."""
    data: str
    """The hash of the problem's data."""
    sense: str
    formulation: str
    backend: str
    version: str
    """The version of the backend's library."""
    tol: float
    time_limit: float
    memory_limit: int
    """Bytes; 0 for none."""
    threads: int
    seed: int
    repeat: int
    says: Stop
    native: str
    """What the backend's own status says."""
    verdict: Verdict
    lower: float
    upper: float
    proof: str
    estimate_lower: float = nan
    estimate_upper: float = nan
    """An interval that is evidence and no proof, where there is one."""
    primal: float = nan
    dual: float = nan
    gap: float = nan
    build: float = nan
    solve: float = nan
    certify: float = nan
    native_seconds: float = nan
    wall: float = nan
    """Seconds that the parent waited for the child, however the run ended."""
    first_width: float = nan
    """The relative gap of the first claim of optimality, where klopt had to ask again by a finer
    tolerance; NaN where once was enough."""
    promise: float = nan
    """c where a theorem bounds the gap after k iterations by c / k; NaN where there is none."""
    iterations: int | None = None
    memory: int | None = None
    """Bytes of the child's peak resident memory during the run."""
    unenforced: str = ""
    """Limits that this system could not enforce, in words."""
    notes: str = ""
    log: str = ""
    """The tail of what the backend printed."""
    began: str = ""
    """UTC, ISO 8601."""
    machine: str = ""
    """The key of the environment that the run was made in."""
    source: str = ""
    """The digest of the backend's source text: an edited file is another version."""

    @property
    def seconds(self) -> float:
        """build + solve + certify."""
        return self.build + self.solve + self.certify

    @property
    def value(self) -> float:
        """The feasible side of the interval or, where that is not proven, of the estimate."""
        proven = self.upper if self.sense == "min" else self.lower
        estimated = self.estimate_upper if self.sense == "min" else self.estimate_lower
        return proven if isfinite(proven) or isnan(estimated) else estimated

    @property
    def estimated(self) -> bool:
        """Whether there is evidence of an optimum and no proof."""
        return self.verdict is Verdict.ESTIMATED

    @property
    def was_killed(self) -> bool:
        """Whether something else than klopt killed its child: the run says nothing of the route."""
        return self.says is Stop.CRASHED and self.native.startswith(KILLED)

    @property
    def relative_width(self) -> float:
        """The width of the interval over 1 + |upper|: what `tol` is compared with."""
        if self.lower == self.upper:
            return 0.0
        width = self.upper - self.lower
        return width if isinf(width) else width / (1 + abs(self.upper))

    @property
    def claims(self) -> tuple[bool, ...]:
        """Whether klopt confirms each claim of the backend: the last, and the first of two.

        A first claim of optimality that klopt could not confirm stays false, even where the second
        one is true. A claim of optimality that is only estimated is neither confirmed nor refuted:
        it is not counted here.
        """
        if self.estimated and self.says is Stop.OPTIMAL:
            return ()
        meant = {
            Stop.OPTIMAL: Verdict.OPTIMAL,
            Stop.INFEASIBLE: Verdict.INFEASIBLE,
            Stop.UNBOUNDED: Verdict.UNBOUNDED,
        }
        last = (meant[self.says] is self.verdict,) if self.says in meant else ()
        return last if isnan(self.first_width) else (False, *last)

    @property
    def only_first_false(self) -> bool:
        """Whether the first of two claims is false and the second, if there is one, is true."""
        return not isnan(self.first_width) and all(self.claims[1:])

    @property
    def honest(self) -> bool | None:
        """Whether all claims agree with the verdict; None without a claim that can be judged."""
        return all(self.claims) if self.claims else None

    @property
    def claimed_width(self) -> float:
        """The largest relative gap that the backend called optimal."""
        if isnan(self.first_width):
            return self.relative_width
        return max(self.first_width, self.relative_width)


def printable(text: str) -> str:
    """Return a text from outside so that it does nothing to a terminal but be read.

    >>> printable("status: \\x1b[2J")
    'status: ?[2J'
    """
    kept = "\n\t"
    return "".join(each if each.isprintable() or each in kept else "?" for each in text)
