"""The rules of VIPR 1.0 for linear programs, written from its specification: a second `viprchk`.

It knows the sections VER to DER and the reasons `asm` and `lin`, and returns what a file proves.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

Row = tuple[int, Fraction, dict[int, Fraction]]
"""The sense (1 for >=, 0 for =, -1 for <=), the right-hand side, the entries."""


class Refused(Exception):
    """The file does not prove what it says."""


def need(condition: bool, why: str) -> None:
    if not condition:
        raise Refused(why)


def vipr_proves(text: str) -> str:
    """Return "infeasible", or the proven range of the optimum; raise `Refused` otherwise."""
    lines = [line for line in text.splitlines() if not line.startswith("%")]
    words = iter(" ".join(lines).split())
    need([next(words), next(words)] == ["VER", "1.0"], "VER 1.0 is expected")
    need(next(words) == "VAR", "VAR is expected")
    n = int(next(words))
    names = [next(words) for _ in range(n)]
    need(len(set(names)) == n, "a name stands twice")
    need([next(words), next(words)] == ["INT", "0"], "a linear program has no integers")
    need(next(words) == "OBJ", "OBJ is expected")
    sense = next(words)
    need(sense in ("min", "max"), "an objective is min or max")
    objective = entries(words, n, {})
    need(next(words) == "CON", "CON is expected")
    count, bounds = int(next(words)), int(next(words))
    rows = [constraint(words, n, objective) for _ in range(count)]
    need(all(len(row[2]) == 1 for row in rows[:bounds]), "bounds come first")

    need(next(words) == "RTP", "RTP is expected")
    kind = next(words)
    need(kind in ("infeas", "range"), "infeas or range")
    low, high = (next(words), next(words)) if kind == "range" else ("-inf", "inf")
    need(next(words) == "SOL", "SOL is expected")
    values = []
    for _ in range(int(next(words))):
        next(words)
        x = entries(words, n, objective)
        need(all(holds(row, x) for row in rows), "a solution breaks a constraint")
        values.append(product(objective, x))
    if sense == "min" and high != "inf":
        need(any(value <= Fraction(high) for value in values), "no solution is that good")
    if sense == "max" and low != "-inf":
        need(any(value >= Fraction(low) for value in values), "no solution is that good")

    need(next(words) == "DER", "DER is expected")
    assumed: list[set[int]] = [set() for _ in rows]
    for _ in range(int(next(words))):
        row = constraint(words, n, objective)
        need(next(words) == "{", "a reason begins with {")
        reason = next(words)
        used: set[int] = set()
        if reason == "asm":
            used = {len(rows)}
        else:
            need(reason == "lin", f"the reason {reason} is none of a linear program")
            derived, used = combination(words, rows, assumed)
            need(dominates(derived, row), "the combination does not imply the constraint")
        need(next(words) == "}", "a reason ends with }")
        next(words)
        rows.append(row)
        assumed.append(used)
    need(next(words, None) is None, "something follows")
    need(not assumed[-1], "assumptions are left")
    if kind == "infeas":
        need(is_absurd(rows[-1]), "the last constraint is no contradiction")
        return "infeasible"
    wanted = (1, Fraction(low), objective) if sense == "min" else (-1, Fraction(high), objective)
    need(dominates(rows[-1], wanted), "the bound is not derived")
    return f"{low} {high}"


def entries(words: Iterator[str], n: int, objective: dict[int, Fraction]) -> dict[int, Fraction]:
    first = next(words)
    if first == "OBJ":
        return dict(objective)
    found: dict[int, Fraction] = {}
    for _ in range(int(first)):
        j = int(next(words))
        need(0 <= j < n and j not in found, "an index is outside, or stands twice")
        found[j] = Fraction(next(words))
    return {j: value for j, value in found.items() if value}


def constraint(words: Iterator[str], n: int, objective: dict[int, Fraction]) -> Row:
    next(words)
    letter = next(words)
    need(letter in "EGL", "a sense is E, G or L")
    side = Fraction(next(words))
    return {"E": 0, "G": 1, "L": -1}[letter], side, entries(words, n, objective)


def product(a: dict[int, Fraction], x: dict[int, Fraction]) -> Fraction:
    return sum((value * x.get(j, Fraction(0)) for j, value in a.items()), Fraction(0))


def holds(row: Row, x: dict[int, Fraction]) -> bool:
    sense, side, a = row
    value = product(a, x)
    return value == side if sense == 0 else sense * value >= sense * side


def combination(
    words: Iterator[str], rows: list[Row], assumed: list[set[int]]
) -> tuple[Row, set[int]]:
    """A suitable linear combination: all factors times senses have one sign."""
    total: dict[int, Fraction] = {}
    side = Fraction(0)
    senses = set()
    used: set[int] = set()
    for _ in range(int(next(words))):
        i, factor = int(next(words)), Fraction(next(words))
        need(0 <= i < len(rows), "a constraint is used before it is there")
        if factor == 0:
            continue
        sense, right, a = rows[i]
        if sense:
            senses.add(sense if factor > 0 else -sense)
        side += factor * right
        for j, value in a.items():
            total[j] = total.get(j, Fraction(0)) + factor * value
        used |= assumed[i]
    need(len(senses) <= 1, "a factor has the wrong sign")
    return (senses.pop() if senses else 0, side, {j: v for j, v in total.items() if v}), used


def is_absurd(row: Row) -> bool:
    sense, side, a = row
    return not a and ((sense <= 0 and side < 0) or (sense >= 0 and side > 0))


def dominates(one: Row, other: Row) -> bool:
    if is_absurd(one):
        return True
    if one[2] != other[2]:
        return False
    if other[0] == 0:
        return one[0] == 0 and one[1] == other[1]
    return one[0] in (0, other[0]) and other[0] * one[1] >= other[0] * other[1]
