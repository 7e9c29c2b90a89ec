"""What `klopt solve` and `klopt judge` print: the verdict, and what it rests on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from klopt.engine.result import Result

__all__ = ["print_judgement", "print_result"]

ARGUMENTS = {
    "bracket": "a feasible point and a dual bound, both computed by klopt",
    "estimate": "an interval up to rounding, which is evidence and no proof",
    "residuals": "small residuals, which are evidence and no proof",
    "farkas": "multipliers that add the constraints up to a contradiction",
    "ray": "a feasible point and a direction in which the objective improves without end",
    "none": "none",
}
"""What a verdict rests on, by the word that a certificate has for it."""


def print_result(result: Result, pinned: bool, verbose: bool, as_json: bool) -> None:
    """Print the result of `klopt solve`.

    Parameters
    ----------
    result
        What was proven.
    pinned
        Whether the user named the backend.
    verbose
        Whether all of `explain()` is printed.
    as_json
        Whether it is one JSON document.
    """
    from klopt.engine.format import document, result_data

    if as_json:
        click.echo(document("solve", result_data(result)))
        return
    print_summary(result, f"{result.route}: {_reason(result, pinned)}", verbose)


def print_judgement(result: Result, verbose: bool, as_json: bool) -> None:
    """Print the result of `klopt judge`, and of each part of an answer that has several."""
    from klopt.engine.format import document, result_data

    parts: dict[str, Result] = dict(getattr(result, "parts", {}))
    if as_json:
        content = result_data(result)
        if parts:
            content["parts"] = {name: result_data(part) for name, part in parts.items()}
        click.echo(document("judge", content))
        return
    print_summary(result, f"{result.route}, without solving again", verbose)
    for name, part in parts.items():
        ends = f"{part.lower:.10g} <= optimum <= {part.upper:.10g}"
        click.echo(f"{part.verdict.name:12}{name}: {ends}")


def print_summary(result: Result, route: str, verbose: bool) -> None:
    """Print the verdict and what it rests on, with a text about the route."""
    from klopt.engine.format import VERDICT_STYLES, console, lines, wrapped

    out = console()
    out.print(f"{result.verdict.name:12}", style=VERDICT_STYLES[result.verdict], end="")
    out.print(lines([("", result.problem.describe())]).lstrip())
    out.print(lines(_summary(result, route)))
    if verbose:
        out.print("\n" + wrapped(result.explain()))


def _summary(result: Result, route: str) -> Iterator[tuple[str, str]]:
    """What is proven, by which route and why that one, and where the time went."""
    from math import isfinite

    from klopt.engine.format import largest
    from klopt.engine.words import counted
    from klopt.proof.certificate import Verdict

    certificate = result.certificate
    answer = result.chosen.answer
    if isfinite(result.lower) or isfinite(result.upper):
        yield "interval", f"{result.lower:.10g} <= optimum <= {result.upper:.10g}"
        yield "gap", f"{certificate.relative_gap:.1e} relative, asked for {certificate.tol:.0e}"
    else:
        yield "meaning", result.verdict.meaning
    if certificate.estimate is not None:
        below, above = certificate.estimate
        yield "estimate", f"{below:.10g} to {above:.10g}, not proven"
        if certificate.data_change:
            yield "changed", f"the estimate is proven for other data: {certificate.data_change}"
    yield "proof", ARGUMENTS[certificate.proof]
    # What proves it: the multipliers of the contradiction, the direction without end.
    if result.verdict is Verdict.INFEASIBLE:
        yield "multipliers", largest(result.duals)
    if result.verdict is Verdict.UNBOUNDED and answer.ray is not None:
        yield "ray", largest(result.route.formulation.recover(answer.ray, None).primal)
    yield "solver", route
    native = f" ({answer.native})" if answer.native else ""
    count = "" if answer.iterations is None else f", {counted(answer.iterations, 'iteration')}"
    yield "its status", f"{answer.stop.words}{native}{count}"
    yield "time", result.timings.words()
    for note in certificate.notes:
        yield "note", note
    if not result.verdict.conclusive:
        yield "advice", answer.stop.advice


def _reason(result: Result, pinned: bool) -> str:
    from klopt.engine.planner import plan

    place = len(result.attempts)
    if pinned:
        return "asked for" if place == 1 else f"asked for; {place} formulations tried"
    if place == 1:
        return f"first choice of {len(plan(result.problem).routes)} ({result.route.why})"
    others = [attempt for attempt in result.attempts if attempt is not result.chosen]
    tried = ", ".join(f"{each.route} {each.certificate.verdict.name}" for each in others)
    return f"also tried: {tried}"
