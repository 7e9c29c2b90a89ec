"""The certificate: what is proven about a problem by one answer.

    OPTIMAL     lower <= optimum <= upper, and upper - lower <= tol (1 + |upper|)
    INFEASIBLE  no point satisfies the constraints
    UNBOUNDED   there is a feasible point, and the objective improves without bound
    FEASIBLE    there is a feasible point, so one side of the interval is proven
    UNPROVEN    everything else; the notes say what is missing

`klopt.proof.certify` decides which one it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import numpy as np

from klopt.model.forms import Residuals

__all__ = ["Argument", "Certificate", "Verdict"]

Argument = Literal["bracket", "residuals", "farkas", "ray", "none"]
"""What a certificate rests on."""


class Verdict(StrEnum):
    """What klopt has proven, with what it means in words.

    >>> Verdict.OPTIMAL.conclusive, Verdict.FEASIBLE.conclusive
    (True, False)
    """

    conclusive: bool
    """Whether nothing is left to find out."""
    meaning: str
    """What is proven, in one sentence."""

    def __new__(cls, name: str, conclusive: bool, meaning: str) -> Verdict:
        member = str.__new__(cls, name)
        member._value_ = name
        member.conclusive = conclusive
        member.meaning = meaning
        return member

    OPTIMAL = (
        "OPTIMAL",
        True,
        "The optimum lies in the interval shown, which is as narrow as was asked for.",
    )
    INFEASIBLE = (
        "INFEASIBLE",
        True,
        "No point satisfies the constraints: the multipliers shown add them up to a contradiction.",
    )
    UNBOUNDED = (
        "UNBOUNDED",
        True,
        "The objective improves without end along the ray shown, from a feasible point.",
    )
    FEASIBLE = (
        "FEASIBLE",
        False,
        "The point is feasible, so one side of the interval is proven; "
        "how far it is from the optimum is not.",
    )
    UNPROVEN = (
        "UNPROVEN",
        False,
        "Nothing is proven about the optimum beyond the interval shown.",
    )


@dataclass(frozen=True)
class Certificate:
    """What is proven by one answer: a verdict, an interval in the user's units, and the argument.

    Parameters
    ----------
    verdict
        What is proven.
    lower, upper
        The interval that holds the optimum; an infinite end is not proven. Both are the same
        infinity where there is no optimum.
    tol
        The relative gap that was asked for.
    proof
        The argument: "bracket" (a feasible point and a dual bound), "residuals" (of a user's own
        program that has no bracket), "farkas" (infeasible), "ray" (unbounded) or "none".
    residuals
        How far the answer is from optimal, where its form can measure it.
    notes
        What is missing, and what else a user should know.
    """

    verdict: Verdict
    lower: float
    upper: float
    tol: float
    proof: Argument
    residuals: Residuals | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def unproven(
        cls,
        tol: float,
        *notes: str,
    ) -> Certificate:
        """Return the certificate of an answer that proves nothing."""
        return cls(Verdict.UNPROVEN, -np.inf, np.inf, tol, "none", None, notes)

    @property
    def gap(self) -> float:
        """The optimality gap upper - lower; 0 for infinite ends that agree."""
        if self.lower == self.upper:
            return 0.0
        return self.upper - self.lower

    @property
    def relative_gap(self) -> float:
        """The relative gap (upper - lower) / (1 + |upper|): what `tol` is compared with."""
        if not np.isfinite(self.gap):
            return self.gap
        return self.gap / (1 + abs(self.upper))

    def explain(self) -> str:
        """Return the verdict, the interval and the argument in plain words."""
        lines = [f"{self.verdict.name}: {self.verdict.meaning}"]
        if np.isfinite(self.lower) or np.isfinite(self.upper):
            lines.append(f"  {self.lower:.10g} <= optimum <= {self.upper:.10g}")
            lines.append(f"  relative gap {self.relative_gap:.1e}, asked for {self.tol:.0e}")
        lines.append(f"  {self._argument}")
        if self.residuals is not None:
            r = self.residuals
            lines.append(
                f"  residuals: primal {r.primal:.1e}, dual {r.dual:.1e}, "
                f"cone {r.cone:.1e}, gap {r.gap:.1e}"
            )
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)

    @property
    def _argument(self) -> str:
        one_sided = not np.isfinite(self.gap)
        if self.proof == "bracket" and one_sided:
            return "one side is proven, by a feasible point whose value klopt computed"
        return _ARGUMENT[self.proof]


_ARGUMENT = {
    "bracket": "proven by a feasible point and a dual bound, both computed by klopt",
    "residuals": "judged by residuals: no rigorous bound could be had, "
    "so the interval is an estimate",
    "farkas": "proven by multipliers that klopt verified",
    "ray": "proven by a feasible point and a ray that klopt verified",
    "none": "no proof",
}
