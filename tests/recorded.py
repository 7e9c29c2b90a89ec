"""Hand-made runs: records of a comparison that never took place, each field to be chosen."""

from __future__ import annotations

from dataclasses import replace

from klopt.bench.record import Run
from klopt.model.backend import Stop
from klopt.proof.certificate import Verdict

__all__ = ["made_run"]

PROVEN = Run(
    key="0",
    problem="P",
    family="LP",
    size=10,
    data="d",
    sense="min",
    formulation="primal",
    backend="a",
    version="1.0",
    tol=1e-6,
    time_limit=60.0,
    memory_limit=0,
    threads=1,
    seed=0,
    repeat=0,
    says=Stop.OPTIMAL,
    native="solved",
    verdict=Verdict.OPTIMAL,
    lower=1.0,
    upper=1.0 + 1e-7,
    proof="bracket",
    build=0.0,
    solve=1.0,
    certify=0.0,
    wall=1.1,
)


def made_run(**fields: object) -> Run:
    """A certified run of one second, but for the fields given; `seconds` stands for the time of the solve."""
    seconds = fields.pop("seconds", None)
    if seconds is not None:
        fields["solve"] = seconds
    run = replace(PROVEN, **fields)  # type: ignore[arg-type]
    return replace(
        run,
        key="/".join(map(str, (run.problem, run.backend, run.formulation, run.tol, run.repeat))),
    )
