"""Solver statuses against what is proven: how many are confirmed, and how far off the others are.

A claim is a status that says optimal, infeasible or unbounded. It is confirmed if klopt proves the
same. "Almost solved", limits and failures claim nothing. How far off a claim of optimality is, is
told in one unit for all: the relative gap that klopt proves for the solver's (repaired) point, over
the tolerance that klopt asked for. That is not the criterion by which the solver stopped, so that a
ratio of 2 is no fault of the solver; a ratio of 1000 is an answer not to be used as it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from klopt.bench.record import Run
from klopt.bench.trials import grouped
from klopt.model.backend import Stop

__all__ = ["StatusScore", "status_scores"]


@dataclass(frozen=True)
class StatusScore:
    """The statuses of one backend."""

    backend: str
    confirmed: int
    """Claims that klopt confirms."""
    claimed: int
    """Claims that klopt can judge; where it asked twice both count, the first as not confirmed."""
    almost: int
    """Runs that end in "almost optimal", which is no claim."""
    excess: tuple[float, ...]
    """Of each claim of optimality, proven relative gap over tolerance, ascending: at most 1 is
    confirmed, infinite is one without a proven interval."""

    @property
    def missed(self) -> tuple[float, ...]:
        """The ratios above 1."""
        return tuple(ratio for ratio in self.excess if ratio > 1)

    def quantile(self, share: float) -> float:
        """Return the ratio that so many of all claims of optimality keep; NaN without claims."""
        if not self.excess:
            return math.nan
        # Ratios may be infinite, between which nothing can be interpolated.
        return float(np.quantile(self.excess, share, method="inverted_cdf"))


def status_scores(runs: Sequence[Run]) -> Mapping[str, StatusScore]:
    """Return by backend how its statuses compare with what is proven."""
    return {name: _score(name, own) for name, own in grouped(runs, _backend).items()}


def _score(name: str, runs: Sequence[Run]) -> StatusScore:
    claims = [claim for run in runs for claim in run.claims]
    ratios = [gap / run.tol for run in runs for gap in run.claimed_gaps]
    return StatusScore(
        backend=name,
        confirmed=sum(claims),
        claimed=len(claims),
        almost=sum(run.says is Stop.ALMOST_OPTIMAL for run in runs),
        excess=tuple(sorted(ratios)),
    )


def _backend(run: Run) -> str:
    return run.backend
