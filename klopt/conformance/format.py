"""Why a result fails a conformance check, in two or three lines: `why_not` and `claimed`."""

from __future__ import annotations

import re

import numpy as np

from klopt.engine.result import Result
from klopt.proof.certificate import Verdict

__all__ = ["claimed", "why_not"]


def claimed(result: Result) -> str:
    """Return the route and what its backend said, in its own words."""
    answer = result.chosen.answer
    native = f" ({answer.native.strip()})" if answer.native.strip() else ""
    said = f"{result.problem.describe()} by {result.route}: the backend says {answer.stop.words}{native}"
    refused = re.search(r"not writ(e)?able|read-?only", answer.native)
    return (
        f"{said}\nthe arrays of a form are read-only; give the library a copy: np.array(form.b)"
        if refused
        else said
    )


def why_not(result: Result, wanted: Verdict) -> str:
    """Return what is proven instead of the wanted verdict, and the residuals that stand in the way."""
    certificate, residuals = result.certificate, result.certificate.residuals
    lines = [claimed(result), f"proven: {result.verdict.name}, expected: {wanted.name}"]
    if np.isfinite(result.lower) or np.isfinite(result.upper):
        lines[-1] += f"; {result.lower:.9g} <= optimum <= {result.upper:.9g}"
    if residuals is not None:
        lines.append(
            f"residuals: primal {residuals.primal:.1e} (b - Ax in K), dual {residuals.dual:.1e} (Px + c + A'y = 0), "
            f"cone {residuals.cone:.1e} (y in K*), gap {residuals.gap:.1e}"
        )
    return "\n".join([*lines, *certificate.notes])
