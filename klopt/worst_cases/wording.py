"""The proof of a worst case as a person reads it: a combination of inequalities.

criterion  =  bound + sum y_i (expression i) - <S, G> - ..  <=  bound
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from klopt.model.cones import svec_entries
from klopt.worst_cases.program import Affine, PerformanceProgram

__all__ = ["proof_text"]

SHORT = 10**6
"""Numerators and denominators up to this are shown as fractions, others as decimals."""


def proof_text(program: PerformanceProgram, upper: Fraction, y: Sequence[Fraction]) -> str:
    """Return the proof that multipliers of all rows make.

    Parameters
    ----------
    program
        The worst case.
    upper
        The bound that is proven.
    y
        The multipliers of the rows of the program.
    """
    lines = [
        f"The worst case is at most {shown(upper)}. Proof:",
        "  Multiply each condition by its weight and add them up.",
    ]
    for condition, weight in zip(program.sorted_conditions, y, strict=False):
        if weight:
            relation = "= 0" if condition.is_equation else "<= 0"
            lines.append(
                f"  {shown(weight)} x [{condition.name}]:  "
                f"{written(program, condition.expression)} {relation}"
            )
    for matrix in program.matrices:
        lines.append(f"  a positive semidefinite weight x [{matrix.name}], positive semidefinite")
    lines.append(
        "  The sum is the criterion minus the bound, plus a sum of squares: the quadratic form"
    )
    order = program.order
    i, j = (part.tolist() for part in svec_entries(order))
    S = y[program.gram_rows]
    form = {(p, q): value for p, q, value in zip(i, j, S, strict=True) if value}
    lines.append(f"  {written(program, Affine({}, form))}")
    squares = _squares(program, form)
    lines.append("  which is " + (" + ".join(squares) if squares else "0") + ".")
    return "\n".join(lines)


def _squares(program: PerformanceProgram, form: dict[tuple[int, int], Fraction]) -> list[str]:
    """The form as a sum of squares, by completing one after the other."""
    n = program.order
    M = [[Fraction(0)] * n for _ in range(n)]
    for (p, q), value in form.items():
        M[p][q] = M[q][p] = value if p == q else value / 2
    found = []
    for k in range(n):
        pivot = M[k][k]
        if not pivot:
            continue
        row = [value / pivot for value in M[k]]
        terms = [(value, program.points[p]) for p, value in enumerate(row) if value]
        found.append(f"{shown(pivot)} |{_sum(terms)}|^2")
        for p in range(n):
            for q in range(n):
                M[p][q] -= pivot * row[p] * row[q]
    return found


def written(program: PerformanceProgram, expression: Affine) -> str:
    """Return an expression with the names of points and values."""
    terms = [(factor, program.values[k]) for k, factor in expression.values.items() if factor]
    for (i, j), factor in expression.gram.items():
        if factor and i == j:
            terms.append((factor, f"|{program.points[i]}|^2"))
        elif factor:
            terms.append((factor, f"<{program.points[i]}, {program.points[j]}>"))
    text = _sum(terms)
    if expression.constant:
        text = f"{text} {'-' if expression.constant < 0 else '+'} {shown(abs(expression.constant))}"
    return text


def _sum(terms: Sequence[tuple[Fraction, str]]) -> str:
    """Terms with their signs."""
    text = ""
    for factor, name in terms:
        size = "" if abs(factor) == 1 else f"{shown(abs(factor))} "
        sign = "-" if factor < 0 else "+"
        text += f" {sign} {size}{name}"
    text = text.strip()
    return text.removeprefix("+ ") or "0"


def shown(value: Fraction) -> str:
    """Return a short fraction as it is, another one to 12 digits.

    >>> shown(Fraction(1, 3)), shown(Fraction(10**20 + 1, 3 * 10**20))
    ('1/3', '0.333333333333..')
    """
    if abs(value.numerator) <= SHORT and value.denominator <= SHORT:
        return str(value)
    return f"{float(value):.12g}.."
