"""Results and plans as text: tables of 80 columns for people, one JSON document for programs.

A document opens with {"klopt": version, "schema": 3, "command": ...}. Infinities, which JSON lacks,
are written as the texts "inf" and "-inf", and NaN as null. The schema number changes when a field
changes its meaning or goes away.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from klopt.model.features import Feature
from klopt.proof.certificate import Certificate, Verdict

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from klopt.arrays import FloatArray
    from klopt.engine.planner import Plan, Route
    from klopt.engine.result import Attempt, Result
    from klopt.model.backend import Backend
    from klopt.model.forms import Residuals
    from klopt.model.problem import Problem

__all__ = [
    "PROGRAM_CLASSES",
    "VERDICT_STYLES",
    "backend_data",
    "console",
    "document",
    "largest",
    "lines",
    "plan_data",
    "result_data",
    "table",
    "wrapped",
]

SCHEMA = 3
"""The version of the fields of a document."""

TEXT_COLUMNS = 80
"""Columns of text."""

LABEL_COLUMNS = 12
"""Columns of the labels in `lines`."""

VERDICT_STYLES = {
    Verdict.OPTIMAL: "bold green",
    Verdict.INFEASIBLE: "bold cyan",
    Verdict.UNBOUNDED: "bold cyan",
    Verdict.FEASIBLE: "bold yellow",
    Verdict.ESTIMATED: "bold magenta",
    Verdict.UNPROVEN: "bold red",
}
"""How a terminal shows a verdict."""

PROGRAM_CLASSES = {
    "LP": {Feature.CONE},
    "QP": {Feature.CONE, Feature.QUADRATIC},
    "SOCP": {Feature.CONE, Feature.SOC},
    "SDP": {Feature.CONE, Feature.PSD},
    "EXP": {Feature.CONE, Feature.EXP},
    "sets": {Feature.SIMPLEX},
    "saddle": {Feature.SADDLE},
    "split": {Feature.SPLIT},
}
"""The classes of programs people think in, by what a backend must offer to take them."""


def console() -> Console:
    """Return where people read: 80 columns, colours only on a terminal that wants them."""
    from rich.console import Console

    terminal = Console()
    width = min(TEXT_COLUMNS, terminal.width) if terminal.is_terminal else TEXT_COLUMNS
    return Console(highlight=False, markup=False, emoji=False, width=width)


def table(columns: Sequence[str], *, right: Iterable[str] = ()) -> Table:
    """Return an empty table without lines; the columns in `right` are aligned to the right."""
    from rich.table import Table

    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        side: Literal["left", "right"] = "right" if column in right else "left"
        made.add_column(column, justify=side, overflow="fold")
    return made


def wrapped(text: str) -> str:
    """Return the text with lines of at most 80 columns; what an indented line wraps is indented.

    >>> len(max(wrapped("  note: " + "word " * 40).splitlines(), key=len)) <= 80
    True
    """
    wrapped_lines: list[str] = []
    for line in text.splitlines():
        indent = " " * (len(line) - len(line.lstrip()))
        below = f"{indent}    " if indent else ""
        parts = textwrap.wrap(line, TEXT_COLUMNS, subsequent_indent=below, break_on_hyphens=False)
        wrapped_lines += parts or [""]
    return "\n".join(wrapped_lines)


def lines(pairs: Iterable[tuple[str, str]]) -> str:
    """Return labels and texts as two columns; long texts continue below themselves."""
    below = " " * LABEL_COLUMNS
    fill = textwrap.TextWrapper(TEXT_COLUMNS, subsequent_indent=below, break_on_hyphens=False)
    block: list[str] = []
    for label, text in pairs:
        fill.initial_indent = f"{label:{LABEL_COLUMNS}}"
        block += fill.wrap(text)
    return "\n".join(block)


def largest(arrays: Mapping[str, FloatArray], count: int = 6) -> str:
    """Return the largest entries of named arrays, and how many are left out.

    >>> largest({"ub": np.array([0.0, 2.0]), "eq": np.array([-3.0])})
    'eq[0] = -3, ub[1] = 2'
    """
    entries = [
        (name, index, value)
        for name, array in arrays.items()
        for index, value in np.ndenumerate(array)
        if value
    ]
    entries.sort(key=lambda entry: -abs(entry[2]))
    shown = [
        f"{name}[{', '.join(map(str, index))}] = {value:.4g}"
        for name, index, value in entries[:count]
    ]
    if len(entries) > count:
        shown.append(f"and {len(entries) - count} more")
    return ", ".join(shown)


def document(command: str, content: Mapping[str, Any]) -> str:
    """Return one JSON document; content may hold arrays, enums and infinities.

    >>> document("x", {"upper": np.inf, "alpha": np.array([1.0])}).split('"upper"')[1].split()
    [':', '"inf",', '"alpha":', '[', '1.0', ']', '}']
    """
    from importlib.metadata import PackageNotFoundError, version

    try:
        release = version("klopt")
    except PackageNotFoundError:
        release = "0+unknown"
    head = {"klopt": release, "schema": SCHEMA, "command": command}
    return json.dumps(head | plain(content), indent=1, allow_nan=False)


def plain(value: Any) -> Any:
    """Return the value in what JSON has: infinities as text, NaN as null, sets as sorted lists."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, frozenset | set):
        return sorted(plain(item) for item in value)
    if isinstance(value, np.ndarray) and np.isfinite(value).all():
        return value.tolist()
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(item) for item in value]
    if isinstance(value, float | np.floating):
        return _plain_number(float(value))
    if isinstance(value, np.integer | np.bool_):
        return value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)


def _plain_number(number: float) -> float | str | None:
    if np.isnan(number):
        return None
    return number if np.isfinite(number) else str(number)


def problem_data(problem: Problem) -> dict[str, Any]:
    """Return what an instance says of itself as data."""
    return {"class": type(problem).__name__, "describe": problem.describe(), "sense": problem.sense}


def route_data(route: Route) -> dict[str, Any]:
    """Return a route as data."""
    formulation = route.formulation
    return {
        "backend": route.backend.name,
        "formulation": formulation.name,
        "why": route.why,
        "because": formulation.because,
        "version": route.backend.version,
    }


def residuals_data(residuals: Residuals | None) -> dict[str, float] | None:
    """Return residuals as data."""
    return None if residuals is None else vars(residuals)


def certificate_data(certificate: Certificate) -> dict[str, Any]:
    """Return a certificate as data; `lower` and `upper` are proven, `estimate` is not."""
    return {
        "verdict": certificate.verdict.name,
        "lower": certificate.lower,
        "upper": certificate.upper,
        "relative_gap": certificate.relative_gap,
        # The former name, until 0.4.
        "relative_width": certificate.relative_gap,
        "proof": certificate.proof,
        "lower_by": certificate.lower_by,
        "upper_by": certificate.upper_by,
        "estimate": certificate.estimate,
        "data_change": certificate.data_change,
        "residuals": residuals_data(certificate.residuals),
        "notes": certificate.notes,
    }


def attempt_data(attempt: Attempt) -> dict[str, Any]:
    """Return one attempt as data: what the backend says and what klopt proves."""
    answer = attempt.answer
    timings = attempt.timings
    return {
        "route": route_data(attempt.route),
        "stop": answer.stop.name,
        "native": answer.native,
        "iterations": answer.iterations,
        **certificate_data(attempt.certificate),
        "timings": {**vars(timings), "total": timings.total},
    }


def result_data(result: Result) -> dict[str, Any]:
    """Return a result as data: the verdict and what it rests on, the point, every attempt."""
    answer = result.chosen.answer
    point = result.point
    return {
        "problem": problem_data(result.problem),
        "settings": {**vars(result.settings), "raw": dict(result.settings.raw)},
        "certified": result.verdict.conclusive,
        "value": result.value,
        **attempt_data(result.chosen),
        **certificate_data(result.certificate),
        "seconds": result.seconds,
        "point": None if point is None else {"primal": point.primal, "dual": point.dual},
        "duals": result.duals,
        "farkas": answer.farkas,
        "ray": answer.ray,
        "attempts": [attempt_data(attempt) for attempt in result.attempts],
    }


def plan_data(plan: Plan) -> dict[str, Any]:
    """Return a plan as data."""
    return {
        "problem": problem_data(plan.problem),
        "routes": [route_data(route) for route in plan.routes],
        "refusals": [
            {"backend": r.backend.name, "formulation": r.formulation.name, "missing": r.missing}
            for r in plan.refusals
        ],
        "absent": [
            {"backend": backend.name, "missing": backend.missing} for backend in plan.absent
        ],
        "broken": [vars(item) for item in plan.broken],
    }


def backend_data(backend: Backend) -> dict[str, Any]:
    """Return what a backend says of itself as data."""
    return {
        "name": backend.name,
        "status": "not installed" if backend.missing else "ready",
        "missing": backend.missing,
        "library": backend.library,
        "version": None if backend.missing else backend.version,
        "takes": {name: needs <= backend.offers for name, needs in PROGRAM_CLASSES.items()},
        "offers": {feature.name for feature in backend.offers},
        "honours": backend.honours,
        "proves": backend.proves,
        "rank": backend.rank,
        "accuracy": backend.accuracy,
        "isolate": backend.isolate,
        "exempt": backend.exempt,
    }
