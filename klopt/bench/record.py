"""`Run` and `Trace`: a finished run as plain numbers and text, and the bounds along its way.

A record holds no problem, no backend and no array, so that it goes unchanged into a database, a
page and a table. Numbers that are not known are NaN, counts that are not known None, texts that are
not known empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite, isinf, isnan, nan
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
    `certify` by klopt, `native_seconds` by the backend itself. `load` and `cpu` say how busy the
    computer was: a time taken beside other work is too long.
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
    gap_residual: float = nan
    """Primal, dual and gap residuals of the backend's own vectors, not klopt's interval."""
    build: float = nan
    solve: float = nan
    certify: float = nan
    native_seconds: float = nan
    wall: float = nan
    """Seconds that the parent waited for the child, however the run ended."""
    cpu: float = nan
    """Seconds of processor time of the child during the run."""
    load: float = nan
    """Processes that wanted to run in the minute before, for each core; 1 is fully busy."""
    first_gap: float = nan
    """The relative gap of the first claim of optimality, where klopt had to ask again by a finer
    tolerance; NaN where once was enough."""
    promise: float = nan
    """c where a theorem bounds the gap after k iterations by c / k; NaN where there is none."""
    iterations: int | None = None
    memory: int | None = None
    """Bytes by which the child's resident memory rose during the run, at its peak."""
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
    def processor_share(self) -> float:
        """Processor seconds over seconds: below 1 other work had the processor; NaN if unknown."""
        return self.cpu / self.seconds if self.seconds > 0 else nan

    @property
    def relative_gap(self) -> float:
        """(upper - lower) / (1 + |upper|): the proven optimality gap that `tol` is compared with."""
        if self.lower == self.upper:
            return 0.0
        width = self.upper - self.lower
        return width if isinf(width) else width / (1 + abs(self.upper))

    @property
    def claims(self) -> tuple[bool, ...]:
        """Whether klopt confirms each claim of the backend: the last, and the first of two.

        A first claim of optimality that klopt could not confirm stays false, even where the second
        one is true. A claim of optimality that is only estimated is neither confirmed nor refuted:
        it is not counted here. "Almost optimal" and limits are no claims.
        """
        if self.estimated and self.says is Stop.OPTIMAL:
            return ()
        meant = {
            Stop.OPTIMAL: Verdict.OPTIMAL,
            Stop.INFEASIBLE: Verdict.INFEASIBLE,
            Stop.UNBOUNDED: Verdict.UNBOUNDED,
        }
        last = (meant[self.says] is self.verdict,) if self.says in meant else ()
        return last if isnan(self.first_gap) else (False, *last)

    @property
    def only_first_false(self) -> bool:
        """Whether the first of two claims is false and the second, if there is one, is true."""
        return not isnan(self.first_gap) and all(self.claims[1:])

    @property
    def status_confirmed(self) -> bool | None:
        """Whether klopt confirms every claim; None without a claim that can be judged."""
        return all(self.claims) if self.claims else None

    @property
    def claimed_gaps(self) -> tuple[float, ...]:
        """The proven relative gap behind each claim of optimality, the first of two first.

        A claim that is only estimated has none, one that klopt refutes has an infinite one.
        """
        gaps = () if isnan(self.first_gap) else (self.first_gap,)
        if self.says is not Stop.OPTIMAL or self.estimated:
            return gaps
        refuted = self.verdict in (Verdict.INFEASIBLE, Verdict.UNBOUNDED)
        return (*gaps, inf if refuted else self.relative_gap)


def printable(text: str) -> str:
    """Return a text from outside so that it does nothing to a terminal but be read.

    >>> printable("status: \\x1b[2J")
    'status: ?[2J'
    """
    kept = "\n\t"
    return "".join(each if each.isprintable() or each in kept else "?" for each in text)
