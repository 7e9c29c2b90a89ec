"""PEPs of PEPit: the worst case as a proven interval, and the value that PEPit found beside it."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from klopt.engine.planner import Route
from klopt.engine.result import Attempt, Result, Timings
from klopt.judging.given import Given
from klopt.model.backend import Answer, Settings, Stop
from klopt.model.problem import Point
from klopt.proof.certificate import Certificate, Verdict
from klopt.worst_cases.entry import TIME_LIMIT, WorstCase, worst_case

__all__ = ["judge_pep"]


def judge_pep(pep: Any, *, settings: Settings) -> Result:
    """Return the proven worst case of a PEP.

    PEPit keeps no answer that a proof could rest on as it is: klopt finds multipliers and an example
    of its own. Where the PEP was solved, the verdict is about PEPit's value too: UNPROVEN where it
    lies outside the interval by more than `tol`.

    Parameters
    ----------
    pep
        The PEP, solved or not.
    settings
        The tolerance and the time limit.
    """
    began = time.perf_counter()
    limit = TIME_LIMIT if settings.time_limit is None else settings.time_limit
    found = worst_case(pep, tol=settings.tol, time_limit=limit)
    certificate = _about_pepit(pep, found)
    problem = found.problem
    x = np.array([float(value) for value in found.ends.x]) if found.ends.x else None
    y = np.array([float(value) for value in found.ends.y]) if found.ends.y else None
    point = None
    if x is not None:
        point = Point({"x": x}, {} if y is None else {"y": y})
    timings = Timings(0.0, 0.0, time.perf_counter() - began, 0.0)
    attempt = Attempt(
        Route(problem.formulations()[0], Given()),
        Answer(Stop.OPTIMAL, x, y, native="multipliers and an example as fractions"),
        certificate,
        point,
        timings,
    )
    return Result(problem, settings, (attempt,), attempt, certificate, timings.total)


def _about_pepit(pep: Any, found: WorstCase) -> Certificate:
    """The certificate, with what it says of the value that PEPit holds."""
    certificate = found.certificate
    objective = getattr(pep.objective, "_value", None)
    if objective is None:
        return certificate
    value = float(objective)
    below = found.lower - value
    above = value - found.upper
    off = max(below, above, 0.0)
    if off == 0:
        note = f"PEPit's value {value:.10g} lies in the interval"
    else:
        side = "below" if below > 0 else "above"
        note = f"PEPit's value {value:.10g} lies {off:.1e} {side} the proven interval"
    certificate = replace(certificate, notes=(*certificate.notes, note))
    if off > certificate.tol * (1 + abs(value)):
        return replace(certificate, verdict=Verdict.UNPROVEN, writer=None)
    return certificate
