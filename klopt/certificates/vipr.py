"""Writes the certificate of a linear program in the format VIPR 1.0, which `viprchk` checks.

VIPR (Cheung, Gleixner and Steffy, 2017) is the format in which exact solvers of mixed-integer linear
programs prove their answers. A linear program needs one step of it. With multipliers y of the rows
Ax <= b and Ax = b, for which c + A'y = 0, the rows times -y add up to

    c'x = -y'Ax >= -b'y,

a linear combination (`lin`) of constraints; where the sum is 0 >= -b'y > 0, there is no point.
VIPR's objective has no constant: that of the problem stands in a comment.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from klopt.checker import klopt_check
from klopt.errors import NotCertified

__all__ = ["vipr_text"]

CHUNK = 10**2000
"""Integers are written in parts of so many digits: Python refuses to write very long ones."""


@dataclass(frozen=True)
class _Row:
    """One constraint: <= or =, its right-hand side and its entries."""

    name: str
    sense: str
    side: Fraction
    entries: Mapping[int, Fraction]
    number: int
    """That of the row in the certificate."""


def vipr_text(text: str) -> str:
    """Return the certificate of a linear program as a VIPR file; others are refused.

    It is checked before it is written.

    >>> vipr_text("{}")
    Traceback (most recent call last):
    klopt.errors.NotCertified: this is no certificate: this is no 'klopt certificate 1'
    """
    try:
        klopt_check.check(text)
    except klopt_check.Rejected as error:
        raise NotCertified(f"this is no certificate: {error}") from None
    parts = json.loads(text)
    problem = parts["problem"]
    if problem["rule"] != "cone program":
        raise NotCertified("VIPR holds linear programs only")
    program = klopt_check.ConeProgram(problem)
    is_linear = all(kind in ("zero", "nonnegative") for kind, *_ in program.blocks)
    if not is_linear or program.P.entries or program.quadratics:
        raise NotCertified("VIPR holds linear programs only")
    verdict = parts["claim"]["verdict"]
    if verdict not in ("OPTIMAL", "INFEASIBLE"):
        raise NotCertified(f"VIPR has no way to say {verdict}")
    return "\n".join(_lines(program, parts["witness"], verdict)) + "\n"


def _lines(
    program: klopt_check.ConeProgram, witness: dict[str, Any], verdict: str
) -> Iterator[str]:
    rows = _rows(program)
    objective = {j: value for j in range(program.n) if (value := program.scale * program.c[j])}
    y = klopt_check.Vector.read("y", witness["y"], program.A.rows)
    # The sum of the rows times these is the objective, or 0.
    sign = Fraction(-1) if verdict == "INFEASIBLE" else -program.scale
    factors = {k: sign * y[row.number] for k, row in enumerate(rows) if y[row.number]}
    total = sum((factor * rows[k].side for k, factor in factors.items()), Fraction(0))

    yield f"% a linear program proven by klopt; the constant {_number(program.shift)} of the objective is left out"
    yield "VER 1.0"
    yield f"VAR {program.n}"
    yield " ".join(f"x{j}" for j in range(program.n))
    yield "INT 0"
    yield f"OBJ {'min' if program.scale > 0 else 'max'}"
    yield _entries(objective)
    bounds = sum(row.name.startswith("B") for row in rows)
    yield f"CON {len(rows)} {bounds}"
    for row in rows:
        yield f"{row.name} {row.sense} {_number(row.side)} {_entries(row.entries)}"
    combination = " ".join(f"{k} {_number(factor)}" for k, factor in factors.items())
    reason = f"{{ lin {len(factors)} {combination} }} -1"
    if verdict == "INFEASIBLE":
        yield "RTP infeas"
        yield "SOL 0"
        yield "DER 1"
        yield f"contradiction G {_number(total)} 0 {reason}"
        return
    x = klopt_check.Vector.read("x", witness["x"], program.n)
    point = {j: x[j] for j in range(program.n) if x[j]}
    value = sum((objective[j] * x[j] for j in objective), Fraction(0))
    if program.scale > 0:
        yield f"RTP range {_number(total)} {_number(value)}"
    else:
        yield f"RTP range {_number(value)} {_number(total)}"
    yield "SOL 1"
    yield f"point {_entries(point)}"
    yield "DER 1"
    yield f"bound {'G' if program.scale > 0 else 'L'} {_number(total)} OBJ {reason}"


def _rows(program: klopt_check.ConeProgram) -> list[_Row]:
    """The constraints, those that bound a variable first, as VIPR asks for."""
    entries: list[dict[int, Fraction]] = [{} for _ in range(program.A.rows)]
    for i, j, value in program.A.entries:
        if value:
            entries[i][j] = Fraction(value, program.A.over)
    bounds: list[_Row] = []
    others: list[_Row] = []
    for kind, _, start, stop in program.blocks:
        sense = "E" if kind == "zero" else "L"
        for i in range(start, stop):
            is_bound = len(entries[i]) == 1
            name = f"{'B' if is_bound else 'C'}{i}"
            (bounds if is_bound else others).append(_Row(name, sense, program.b[i], entries[i], i))
    return bounds + others


def _entries(entries: Mapping[int, Fraction]) -> str:
    pairs = (f"{j} {_number(value)}" for j, value in sorted(entries.items()))
    return " ".join([str(len(entries)), *pairs])


def _number(value: Fraction) -> str:
    above = _digits(value.numerator)
    return above if value.denominator == 1 else f"{above}/{_digits(value.denominator)}"


def _digits(whole: int) -> str:
    if abs(whole) < CHUNK:
        return str(whole)
    sign = "-" if whole < 0 else ""
    rest = abs(whole)
    parts = []
    while rest >= CHUNK:
        rest, part = divmod(rest, CHUNK)
        parts.append(f"{part:0{len(str(CHUNK)) - 1}d}")
    return sign + str(rest) + "".join(reversed(parts))
