"""The certificate: what is proven about a problem by one answer.

The problem is the one whose data are the numbers as stored (float64, read as exact rationals, or
the decimals of a file that a problem keeps), and "proven" means in exact arithmetic.

    OPTIMAL     lower <= optimum <= upper, and upper - lower <= tol (1 + |upper|)
    INFEASIBLE  no point satisfies the constraints
    UNBOUNDED   there is a feasible point, and the objective improves without bound
    FEASIBLE    there is a feasible point, so its side of the interval is proven
    ESTIMATED   evidence without proof: an interval that holds up to rounding, for data changed in
                their last digits, or as far as residuals can be trusted
    UNPROVEN    everything else; the notes say what is missing

Every finite `lower` and `upper` is proven, whatever the verdict; what is only estimated stands in
`estimate`. `klopt.engine.certify` decides which verdict it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from klopt.errors import NotCertified

if TYPE_CHECKING:
    from klopt.model.forms import Residuals

__all__ = [
    "Argument",
    "Certificate",
    "Verdict",
    "contradict",
    "is_narrow",
    "within",
]

Argument = Literal["bracket", "estimate", "residuals", "farkas", "ray", "none"]
"""What a certificate rests on."""


def contradict(lower: float, upper: float) -> bool:
    """Return whether a lower and an upper bound cannot both be proven: lower > upper, or NaN.

    >>> contradict(0.0, 1.0), contradict(1.0, 0.0), contradict(np.inf, -np.inf)
    (False, True, True)
    """
    return not lower <= upper


def is_narrow(lower: float, upper: float, tol: float) -> bool:
    """Return whether upper - lower <= tol (1 + |upper|), decided without rounding.

    >>> is_narrow(1.0, 1.5, 0.2), is_narrow(1.0, 1.5, 0.1999), is_narrow(-np.inf, 0.0, 0.1)
    (True, False, False)
    """
    if not (math.isfinite(lower) and math.isfinite(upper)):
        return False
    # Floats are fractions of integers: both sides times their denominators.
    a, b = float(lower).as_integer_ratio()
    c, d = float(upper).as_integer_ratio()
    t, s = float(tol).as_integer_ratio()
    return (c * b - a * d) * s <= t * (d + abs(c)) * b


def within(estimate: tuple[float, float], lower: float, upper: float) -> tuple[float, float] | None:
    """Return the part of an estimate that proven ends allow; None where it is empty or NaN.

    >>> within((0.0, 2.0), 1.0, np.inf), within((0.0, 2.0), 3.0, np.inf)
    ((1.0, 2.0), None)
    """
    # First, since max and min may lose a NaN.
    if not estimate[0] <= estimate[1]:
        return None
    below = max(lower, estimate[0])
    above = min(upper, estimate[1])
    return (below, above) if below <= above else None


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
        "For the data as stored, in exact arithmetic, the optimum lies in the interval "
        "shown, which is as narrow as was asked for.",
    )
    INFEASIBLE = (
        "INFEASIBLE",
        True,
        "For the data as stored, no point satisfies the constraints: in exact arithmetic, "
        "multipliers add them up to a contradiction.",
    )
    UNBOUNDED = (
        "UNBOUNDED",
        True,
        "For the data as stored, in exact arithmetic, there is a feasible point and a ray "
        "along which the objective improves without bound.",
    )
    FEASIBLE = (
        "FEASIBLE",
        False,
        "For the data as stored, there is a feasible point, and the finite ends of the "
        "interval hold in exact arithmetic; the interval is wider than was asked for.",
    )
    ESTIMATED = (
        "ESTIMATED",
        False,
        "Evidence without proof: the estimate is as narrow as was asked for, but it may be wrong "
        "for the data as stored. Only finite ends of the interval are proven.",
    )
    UNPROVEN = (
        "UNPROVEN",
        False,
        "Nothing is proven about the optimum beyond the finite ends of the interval, if any.",
    )


@dataclass(frozen=True)
class Certificate:
    """What is proven by one answer: a verdict, an interval in the user's units, and the argument.

    Parameters
    ----------
    verdict
        What is proven.
    lower, upper
        The proven interval that holds the optimum; an infinite end is not proven. Both are the same
        infinity where there is no optimum.
    tol
        The relative gap that was asked for.
    proof
        The argument: "bracket" (a feasible point and a dual bound), "estimate" (an interval that
        the problem itself calls an estimate), "residuals" (of a user's own program), "farkas"
        (infeasible), "ray" (unbounded) or "none".
    residuals
        How far the answer is from optimal, where its form can measure it.
    notes
        What is missing, and what else a user should know.
    estimate
        An interval that is evidence and no proof; None where there is none.
    lower_by, upper_by
        Which lemma proves each end; "" where it is not told.
    data_change
        The smallest change of data for which the estimate is a proof; "" where none is known.
    writer
        Writes a file that strangers can check; None where nothing is proven.
    """

    verdict: Verdict
    lower: float
    upper: float
    tol: float
    proof: Argument
    residuals: Residuals | None = None
    notes: tuple[str, ...] = ()
    estimate: tuple[float, float] | None = None
    lower_by: str = ""
    upper_by: str = ""
    data_change: str = ""
    writer: Callable[[str | PathLike[str]], None] | None = field(
        default=None, repr=False, compare=False
    )

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

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: not the function, which a result makes anew."""
        return {**self.__dict__, "writer": None}

    def save(self, path: str | PathLike[str]) -> None:
        """Write a certificate that anybody can check in exact arithmetic, without klopt.

        `klopt check FILE` checks it, and so does `checker/klopt_check.py`, which needs nothing but
        Python. Its interval may differ from `lower` and `upper` in the last digits: it is what the
        exact vectors in the file prove.
        """
        if self.writer is None:
            raise NotCertified(
                f"the verdict is {self.verdict.name}: only a conclusive verdict of `klopt.solve` "
                "has a certificate"
            )
        self.writer(path)

    def explain(self) -> str:
        """Return the verdict, the interval and the argument in plain words."""
        lines = [f"{self.verdict.name}: {self.verdict.meaning}"]
        if np.isfinite(self.lower) or np.isfinite(self.upper):
            lines.append(f"  {self.lower:.10g} <= optimum <= {self.upper:.10g}")
            lines.append(f"  relative gap {self.relative_gap:.1e}, asked for {self.tol:.0e}")
        if self.lower_by and np.isfinite(self.lower):
            lines.append(f"  lower end: {self.lower_by}")
        if self.upper_by and np.isfinite(self.upper):
            lines.append(f"  upper end: {self.upper_by}")
        if self.estimate is not None:
            lines.append(f"  estimate: {self.estimate[0]:.10g} to {self.estimate[1]:.10g}")
            if self.data_change:
                lines.append(f"  the estimate is proven for changed data: {self.data_change}")
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
    "estimate": "not proven: the estimate holds up to rounding, or for changed data",
    "residuals": "not proven: the estimate rests on small residuals, which bound no error",
    "farkas": "proven by multipliers that klopt verified",
    "ray": "proven by a feasible point and a ray that klopt verified",
    "none": "no proof",
}
