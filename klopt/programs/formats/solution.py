"""Files with a solution: those of HiGHS, of CPLEX, and lines of names and values as of SCIP, Gurobi and CBC.

    HiGHS    "Model status", then primal and dual values of columns and rows (its raw style)
    CPLEX    XML, <CPLEXSolution> with the attributes name, value, reducedCost and dual
    others   one column a line: NAME VALUE; a number before the name and what follows the value
             (CBC's index and reduced cost, SCIP's objective coefficient) are left out

The kind is told by the content. Values that a file leaves out are 0: SCIP writes no others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

from klopt.programs.formats.model import LINES_AT_A_TIME, number
from klopt.programs.formats.source import SourceFile, reading

__all__ = ["SolutionFile", "read_solution"]

STATUS = re.compile(
    r"(?:#\s*)?(?:solution status|objective value|objective|obj|status|model status)\b\s*[:=]?\s*(.*)",
    re.IGNORECASE,
)
"""Lines beside the values: of SCIP, Gurobi and others."""
CBC_STATUS = re.compile(r"(.*?) - objective value\b.*", re.IGNORECASE)


@dataclass(eq=False)
class SolutionFile:
    """What a file says of a solution, by the names of columns and rows.

    Parameters
    ----------
    status
        The solver's own word; "" where the file has none.
    columns
        The values of the variables.
    reduced_costs, row_duals
        The change of the optimum with a bound and with a right-hand side; None where there are
        none.
    lines
        Where each column stands, for messages.
    """

    status: str = ""
    columns: dict[str, float] = field(default_factory=dict)
    reduced_costs: dict[str, float] | None = None
    row_duals: dict[str, float] | None = None
    lines: dict[str, int] = field(default_factory=dict)


def read_solution(
    path: str | PathLike[str],
    *,
    time_limit: float | None = None,
    memory_limit: float | None = None,
) -> SolutionFile:
    """Return the solution in a file; errors name the file and the line.

    Parameters
    ----------
    path
        Where the file is.
    time_limit, memory_limit
        The seconds that reading may take and the bytes that it may ask for.
    """
    place = Path(path)
    if not place.exists():
        raise FileNotFoundError(f"there is no file {place}")
    with reading(place, False, time_limit, memory_limit) as source:
        text = source.text()
        if text.lstrip().startswith("<"):
            found = _cplex(source, text)
        else:
            lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
            is_highs = lines[0].strip() == "Model status"
            found = _highs(source, lines) if is_highs else _names_and_values(source, lines)
        if not found.columns and not found.status:
            raise source.malformed(
                None, "no values are in it; klopt reads files of HiGHS, CPLEX, SCIP, Gurobi and CBC"
            )
        return found


def _lines_with_words(source: SourceFile, lines: list[str]) -> Iterator[tuple[int, str, list[str]]]:
    """Number, text and words of each line that is not empty."""
    for place, line in enumerate(lines, 1):
        if place % LINES_AT_A_TIME == 0:
            source.check_time()
        words = line.split()
        if words:
            yield place, line, words


def _highs(source: SourceFile, lines: list[str]) -> SolutionFile:
    """The raw style of HiGHS: `highs --solution_file`, or `writeSolution(file)`."""
    found = SolutionFile()
    part = ""
    values: dict[str, float] | None = None
    for place, line, words in _lines_with_words(source, lines):
        if words[0] == "#":
            heading = " ".join(words[1:])
            if heading.startswith("Columns"):
                values = _columns_of(found, part)
            elif heading.startswith("Rows"):
                values = _rows_of(found, part)
            else:
                part = heading
                values = None
            # What follows is no solution any more.
            if part == "Basis":
                break
        elif values is not None:
            # The last word is the value: a list of few entries has their numbers before it.
            if len(words) < 2:
                raise source.malformed(place, f"expected a name and a value, found {line!r}")
            values[words[0]] = number(source, place, words[-1])
            if values is found.columns:
                found.lines[words[0]] = place
        elif place > 1 and not found.status:
            found.status = line.strip()
    return found


def _columns_of(found: SolutionFile, part: str) -> dict[str, float]:
    """Where the values of columns go in a part of the file."""
    if part.startswith("Primal"):
        return found.columns
    found.reduced_costs = {}
    return found.reduced_costs


def _rows_of(found: SolutionFile, part: str) -> dict[str, float] | None:
    """Where the values of rows go; those of the rows themselves follow from the columns."""
    if part.startswith("Primal"):
        return {}
    found.row_duals = {}
    return found.row_duals


def _cplex(source: SourceFile, text: str) -> SolutionFile:
    """The XML of CPLEX."""
    from xml.etree import ElementTree

    # Entities could make a small file large.
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise source.malformed(None, "its XML defines a document type; a solution has none")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise source.malformed(error.position[0], f"its XML is broken: {error}") from None
    solution = root if root.tag == "CPLEXSolution" else root.find(".//CPLEXSolution")
    if solution is None:
        raise source.malformed(None, f"its XML holds <{root.tag}>; expected <CPLEXSolution>")
    header = solution.find("header")
    found = SolutionFile(status="" if header is None else header.get("solutionStatusString", ""))
    for variable in solution.iterfind("variables/variable"):
        name = variable.get("name", "")
        found.columns[name] = number(source, 1, variable.get("value", ""))
        cost = variable.get("reducedCost")
        if cost is not None:
            found.reduced_costs = found.reduced_costs or {}
            found.reduced_costs[name] = number(source, 1, cost)
    for row in solution.iterfind("linearConstraints/constraint"):
        dual = row.get("dual")
        if dual is not None:
            found.row_duals = found.row_duals or {}
            found.row_duals[row.get("name", "")] = number(source, 1, dual)
    return found


def _names_and_values(source: SourceFile, lines: list[str]) -> SolutionFile:
    """One column a line, beside comments and the lines of a status."""
    found = SolutionFile()
    for place, line, words in _lines_with_words(source, lines):
        status = STATUS.fullmatch(line.strip()) or CBC_STATUS.fullmatch(line.strip())
        if status is not None and (words[0] in ("#", "solution") or not found.columns):
            if not re.fullmatch(r"[-+.\deE]*|inf|infinity", status[1].strip(), re.IGNORECASE):
                found.status = status[1].strip()
            continue
        if words[0].startswith("#"):
            continue
        # CBC marks a column that violates its bounds, and numbers all of them.
        if words[0] == "**":
            words = words[1:]
        if len(words) >= 3 and words[0].isdigit() and not _is_number(words[1]):
            words = words[1:]
        if len(words) < 2:
            raise source.malformed(place, f"expected a name and a value, found {line.strip()!r}")
        found.columns[words[0]] = number(source, place, words[1])
        found.lines[words[0]] = place
    return found


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
