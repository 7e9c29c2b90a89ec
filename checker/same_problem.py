#!/usr/bin/env python3
"""Compares the problem that a certificate states with a linear program in an MPS file.

    python same_problem.py PROOF.json MODEL.mps      exit code 0: it proves its claim, about this file

The file is read here again, with nothing but Python's own library and the checker that lies beside
this one. Decimals become float64, each of which is a rational number. The certificate states the
rows in any order and each times any positive number: every row and bound of the file must be there,
and nothing else. Linear programs only, in free or fixed MPS without spaces in names.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections import Counter
from fractions import Fraction
from math import inf
from pathlib import Path

_spec = importlib.util.spec_from_file_location(
    "klopt_check", Path(__file__).with_name("klopt_check.py")
)
klopt_check = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(klopt_check)  # the file beside this one, with or without klopt

SHOWN = 5  # differences that are told
Row = tuple[str, tuple[tuple[int, Fraction], ...], Fraction]


class Unreadable(Exception):
    """The file is no linear program in MPS that this reader knows."""


class Model:
    """A linear program: rows, columns, bounds and the objective, as numbers of the file."""

    def __init__(self) -> None:
        self.maximise = False
        self.objective: str | None = None
        self.kinds: dict[str, str] = {}
        self.columns: dict[str, int] = {}
        self.entries: dict[str, dict[int, float]] = {}
        self.sides: dict[str, float] = {}
        self.ranges: dict[str, float] = {}
        self.lower: dict[int, float] = {}
        self.upper: dict[int, float] = {}

    def rows(self) -> list[tuple[str, Row]]:
        """All that the program asks for: rows of its names, then bounds."""
        found: list[tuple[str, Row]] = []
        for name, kind in self.kinds.items():
            if kind == "N":
                continue
            low, high = self.both_sides(name, kind)
            entries = self.entries[name]
            if low == high:
                found.append((f"row {name}", normal("zero", entries, high)))
                continue
            if high < inf:
                found.append((f"row {name}", normal("nonnegative", entries, high)))
            if low > -inf:
                negated = {j: -value for j, value in entries.items()}
                found.append((f"row {name}", normal("nonnegative", negated, -low)))
        for name, j in self.columns.items():
            # A negative upper bound alone leaves the lower one open.
            default = -inf if self.upper.get(j, 0.0) < 0 else 0.0
            low = self.lower.get(j, default)
            high = self.upper.get(j, inf)
            if low == high:
                found.append((f"value of {name}", normal("zero", {j: 1.0}, high)))
                continue
            if high < inf:
                found.append((f"upper bound of {name}", normal("nonnegative", {j: 1.0}, high)))
            if low > -inf:
                found.append((f"lower bound of {name}", normal("nonnegative", {j: -1.0}, -low)))
        return found

    def both_sides(self, name: str, kind: str) -> tuple[float, float]:
        side = self.sides.get(name, 0.0)
        width = self.ranges.get(name)
        if kind == "L":
            return (-inf if width is None else side - abs(width)), side
        if kind == "G":
            return side, (inf if width is None else side + abs(width))
        if width is None:
            return side, side
        return (side, side + width) if width > 0 else (side + width, side)


def normal(kind: str, entries: dict[int, float], side: float) -> Row:
    """A row divided by the size of its first entry; an equation by that entry itself."""
    exact = [(j, Fraction(value)) for j, value in sorted(entries.items()) if value]
    bound = Fraction(side)
    if not exact:
        return kind, (), bound
    unit = exact[0][1] if kind == "zero" else abs(exact[0][1])
    return kind, tuple((j, value / unit) for j, value in exact), bound / unit


def read_mps(path: str) -> Model:
    """The linear program in a file."""
    model = Model()
    section = ""
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.startswith("*") or not line.strip():
                continue
            words = line.split()
            try:
                if line[0] not in " \t":
                    section = words[0].upper()
                    if section == "OBJSENSE" and len(words) > 1:
                        model.maximise = words[1].upper().startswith("MAX")
                    if section == "ENDATA":
                        break
                    continue
                read_line(model, section, words)
            except (ValueError, KeyError, IndexError) as error:
                raise Unreadable(f"{path}, line {number}: {error}") from None
    return model


def read_line(model: Model, section: str, words: list[str]) -> None:
    if section == "OBJSENSE":
        model.maximise = words[0].upper().startswith("MAX")
    elif section == "ROWS":
        kind, name = words
        model.kinds[name] = kind.upper()
        model.entries[name] = {}
        if kind.upper() == "N" and model.objective is None:
            model.objective = name
    elif section == "COLUMNS":
        if "'MARKER'" in words:
            raise ValueError("it has integer variables; a certificate is about a linear program")
        column = model.columns.setdefault(words[0], len(model.columns))
        for name, value in pairs(words[1:]):
            model.entries[name][column] = float(value)
    elif section == "RHS":
        for name, value in pairs(words[len(words) % 2 :]):
            model.sides[name] = float(value)
    elif section == "RANGES":
        for name, value in pairs(words[len(words) % 2 :]):
            model.ranges[name] = float(value)
    elif section == "BOUNDS":
        read_bound(model, words)
    else:
        raise ValueError(f"the section {section} is none of a linear program")


def read_bound(model: Model, words: list[str]) -> None:
    kind = words[0].upper()
    if kind in ("FR", "MI", "PL"):
        name = words[2] if len(words) > 2 else words[1]
        j = model.columns[name]
        if kind in ("FR", "MI"):
            model.lower[j] = -inf
        if kind in ("FR", "PL"):
            model.upper[j] = inf
        return
    j = model.columns[words[-2]]
    value = float(words[-1])
    if kind not in ("UP", "LO", "FX"):
        raise ValueError(f"the bound {kind} is none of a linear program")
    if kind in ("LO", "FX"):
        model.lower[j] = value
    if kind in ("UP", "FX"):
        model.upper[j] = value


def pairs(words: list[str]) -> list[tuple[str, str]]:
    return list(zip(words[::2], words[1::2], strict=True))


def differences(problem: dict, model: Model) -> list[str]:
    """What is in one of the two only, in words; none where they state the same program."""
    program = klopt_check.ConeProgram(problem)
    names = {j: name for name, j in model.columns.items()}
    found = []
    if program.n != len(names):
        return [f"the certificate has {program.n} variables, the file {len(names)}"]
    if program.P.entries or program.quadratics:
        found.append("the certificate has quadratic terms, the file has none")
    if (program.scale < 0) != model.maximise:
        found.append("one of them minimises, the other maximises")

    objective = model.entries[model.objective] if model.objective else {}
    for j in range(program.n):
        stated = program.scale * program.c[j]
        given = Fraction(objective.get(j, 0.0))
        if stated != given:
            found.append(f"the objective has {given} times {names[j]}, the certificate {stated}")
    constant = -Fraction(model.sides.get(model.objective or "", 0.0))
    if program.shift != constant:
        found.append(f"the constant is {constant}, in the certificate {program.shift}")

    entries: list[dict[int, Fraction]] = [{} for _ in range(program.A.rows)]
    for i, j, value in program.A.entries:
        entries[i][j] = Fraction(value, program.A.over)
    stated_rows: Counter[Row] = Counter()
    first: dict[Row, int] = {}
    for kind, _, start, stop in program.blocks:
        if kind not in ("zero", "nonnegative"):
            found.append(f"the certificate has a cone {kind!r}, the file has none")
            continue
        for i in range(start, stop):
            row = normal(kind, entries[i], program.b[i])  # type: ignore[arg-type]
            stated_rows[row] += 1
            first.setdefault(row, i)
    for name, row in model.rows():
        if stated_rows[row] > 0:
            stated_rows[row] -= 1
        elif not always_holds(row):
            found.append(f"{name} of the file is not in the certificate: {text(row, names)}")
    for row, count in stated_rows.items():
        if count > 0 and not always_holds(row):
            where = f"row {first[row]} of the certificate is not in the file"
            found.append(f"{where}: {text(row, names)}")
    return found


def always_holds(row: Row) -> bool:
    """Whether a row without entries says something true: 0 = 0, or 0 <= a number."""
    kind, entries, side = row
    return not entries and (side == 0 if kind == "zero" else side >= 0)


def text(row: Row, names: dict[int, str]) -> str:
    kind, entries, side = row
    terms = " + ".join(f"{value} {names[j]}" for j, value in entries[:6]) or "0"
    more = " + .." if len(entries) > 6 else ""
    return f"{terms}{more} {'=' if kind == 'zero' else '<='} {side}"


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print(__doc__)
        return 2
    proof, path = arguments
    try:
        with open(proof, encoding="utf-8") as file:
            content = file.read()
        model = read_mps(path)
    except (OSError, UnicodeDecodeError, Unreadable) as error:
        print(f"cannot be read: {error}")
        return 2
    try:
        says = klopt_check.check(content)
        problem = json.loads(content)["problem"]
        if problem.get("rule") != "cone program":
            raise klopt_check.Rejected("the certificate is not about a linear program")
        found = differences(problem, model)
    except klopt_check.Rejected as error:
        print(f"REJECTED: {proof}: {error}")
        return 1
    if found:
        print(f"REJECTED: {proof} is about another problem than {path}")
        for line in found[:SHOWN]:
            print(f"  {line}")
        if len(found) > SHOWN:
            print(f"  and {len(found) - SHOWN} more")
        return 1
    print(f"proven: {proof}: {says}, for {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
