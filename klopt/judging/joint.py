"""The result of an answer with several parts that are judged apart: that of the weakest part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from klopt.engine.result import Result
from klopt.proof.certificate import Verdict

__all__ = ["JointResult", "joined"]

STRENGTH = (
    Verdict.UNPROVEN,
    Verdict.ESTIMATED,
    Verdict.FEASIBLE,
    Verdict.INFEASIBLE,
    Verdict.UNBOUNDED,
    Verdict.OPTIMAL,
)
"""Verdicts, the one that says least of an answer first."""


@dataclass(frozen=True, eq=False, repr=False)
class JointResult(Result):
    """What is proven of several answers at once: the result of the part of which least is proven.

    Its verdict is OPTIMAL only where that of every part is. `parts` has the result of each.
    """

    parts: Mapping[str, Result] = field(default_factory=dict)

    def explain(self) -> str:
        """Return what is proven of the weakest part in full, and of each part in one line."""
        name = next(name for name, part in self.parts.items() if part.chosen is self.chosen)
        lines = [
            f"{len(self.parts)} parts, each judged by itself; least is proven of {name}:",
            super().explain(),
        ]
        lines += [
            f"  {name}: {part.verdict.name}, {part.lower:.10g} <= optimum <= {part.upper:.10g}"
            for name, part in self.parts.items()
        ]
        return "\n".join(lines)

    def __reduce__(self) -> tuple[Any, ...]:
        return joined, (dict(self.parts),)


def joined(parts: Mapping[str, Result]) -> Result:
    """Return the result of several parts; that of a single one is its own."""
    weakest = min(
        parts.values(),
        key=lambda part: (STRENGTH.index(part.verdict), -part.certificate.relative_gap),
    )
    if len(parts) == 1:
        return weakest
    same = {each.name: getattr(weakest, each.name) for each in fields(Result)}
    return JointResult(**same, parts=dict(parts))
