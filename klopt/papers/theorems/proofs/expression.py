"""`Expression`: polynomials as they are written down, for certificates of the rule `polynomial program`.

Arrays of expressions are NumPy arrays of objects, so that matrix products are written as usual.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from klopt.certificates.encoding import encode_number

__all__ = ["Expression", "Rational", "as_expression", "grid", "symbols", "total"]

Rational: TypeAlias = "int | Fraction"


@dataclass(frozen=True, eq=False)
class Expression:
    """A number, a variable, or a sum, product or power of expressions."""

    kind: str
    """"number", "variable", "+", "*" or "^"."""
    parts: tuple[Any, ...]

    def __add__(self, other: Expression | Rational) -> Expression:
        return Expression("+", (self, as_expression(other)))

    def __radd__(self, other: Rational) -> Expression:
        return as_expression(other) + self

    def __neg__(self) -> Expression:
        return as_expression(-1) * self

    def __sub__(self, other: Expression | Rational) -> Expression:
        return self + -as_expression(other)

    def __rsub__(self, other: Rational) -> Expression:
        return as_expression(other) + -self

    def __mul__(self, other: Expression | Rational) -> Expression:
        return Expression("*", (self, as_expression(other)))

    def __rmul__(self, other: Rational) -> Expression:
        return as_expression(other) * self

    def __truediv__(self, other: Rational) -> Expression:
        return self * (1 / Fraction(other))

    def __pow__(self, exponent: int) -> Expression:
        return Expression("^", (self, exponent))

    def names(self) -> dict[str, None]:
        """Return the variables, in the order in which they are met."""
        if self.kind == "variable":
            return {self.parts[0]: None}
        found: dict[str, None] = {}
        for part in self.parts:
            if isinstance(part, Expression):
                found |= part.names()
        return found

    def written(self, places: Mapping[str, int]) -> Any:
        """Return the expression as a certificate has it.

        >>> x = Expression("variable", ("x",))
        >>> (x**2 - 1).written({"x": 0})
        ['+', ['^', 0, 2], '-0x1']
        """
        if self.kind == "number":
            return encode_number(self.parts[0])
        if self.kind == "variable":
            return places[self.parts[0]]
        if self.kind == "^":
            return ["^", self.parts[0].written(places), self.parts[1]]
        written: list[Any] = [self.kind]
        for part in self.parts:
            each = part.written(places)
            # (a + b) + c is a + b + c, and (-1) 2 is -2.
            written += each[1:] if isinstance(each, list) and each[0] == self.kind else [each]
        numbers = [part for part in self.parts if part.kind == "number"]
        if len(numbers) == len(self.parts):
            return encode_number(self.value({}))
        return written

    def value(self, at: Mapping[str, Fraction]) -> Fraction:
        """Return the value where the variables have these values, 0 where none is given."""
        if self.kind == "number":
            return Fraction(self.parts[0])
        if self.kind == "variable":
            return Fraction(at.get(self.parts[0], 0))
        if self.kind == "^":
            return Fraction(self.parts[0].value(at) ** self.parts[1])
        found = Fraction(0) if self.kind == "+" else Fraction(1)
        for part in self.parts:
            each = part.value(at)
            found = found + each if self.kind == "+" else found * each
        return found


def as_expression(value: Expression | Rational) -> Expression:
    """Return a number as an expression, and an expression as it is."""
    return value if isinstance(value, Expression) else Expression("number", (Fraction(value),))


def symbols(names: str) -> tuple[Expression, ...]:
    """Return variables of these names.

    >>> [v.parts[0] for v in symbols("x y")]
    ['x', 'y']
    """
    return tuple(Expression("variable", (name,)) for name in names.split())


def grid(name: str, *shape: int, symmetric: bool = False) -> Any:
    """Return an array of variables.

    >>> grid("a", 2, 2, symmetric=True)[1, 0].parts
    ('a[0,1]',)
    """
    made = np.empty(shape, dtype=object)
    for place in np.ndindex(*shape):
        named = tuple(sorted(place)) if symmetric else place
        made[place] = Expression("variable", (f"{name}[{','.join(map(str, named))}]",))
    return made


def total(parts: Iterable[Expression | Rational]) -> Expression:
    """Return the sum."""
    return sum((as_expression(part) for part in parts), as_expression(0))
