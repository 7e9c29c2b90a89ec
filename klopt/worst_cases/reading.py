"""Reads the program that PEPit makes of a method, a class of functions and a criterion.

PEPit computes in floats: a step size 1/3 times 3 may be 0.9999999999999999, and what should cancel
does not. So each factor is read as the simplest fraction within its rounding, where there is a short
one, and as the float that it is otherwise.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from klopt.errors import InvalidProblem
from klopt.worst_cases.program import Affine, Condition, MatrixCondition, PerformanceProgram

__all__ = ["is_pep", "read_pep", "short_fraction"]

MAX_DENOMINATOR = 10**6
"""Denominators of short fractions."""
ROUNDING = Fraction(1, 2**48)
"""The relative error that sums and products of floats may have."""


def is_pep(given: object) -> bool:
    """Return whether something is a PEP of PEPit, without importing it."""
    return any(
        cls.__name__ == "PEP" and cls.__module__.partition(".")[0] == "PEPit"
        for cls in type(given).__mro__
    )


def short_fraction(value: float) -> Fraction:
    """Return the short fraction that a float is the rounding of, or the float itself.

    >>> short_fraction(0.1), short_fraction(0.1 + 0.2), short_fraction(2**0.5).denominator > 10**6
    (Fraction(1, 10), Fraction(3, 10), True)
    """
    exact = Fraction(value)
    near = exact.limit_denominator(MAX_DENOMINATOR)
    return near if abs(near - exact) <= ROUNDING * abs(exact) else exact


def read_pep(pep: Any) -> PerformanceProgram:
    """Return the program of a PEP."""
    from PEPit.expression import Expression
    from PEPit.point import Point

    if not pep.list_of_performance_metrics:
        raise InvalidProblem("the PEP has no performance metric: set_performance_metric first")
    for metric in pep.list_of_performance_metrics:
        _require_current(metric)
    if pep.objective is None:
        pep._prepare_constraints(verbose=0)
    conditions = [
        Condition(
            constraint.get_name() or f"constraint {constraint.counter}",
            read_expression(constraint.expression),
            constraint.equality_or_inequality == "equality",
        )
        for constraint in pep._list_of_prepared_constraints
        if constraint.activated
    ]
    matrices = []
    for psd in pep._list_of_prepared_psd:
        if psd.activated:
            matrix, symmetry = _read_matrix(psd)
            matrices.append(matrix)
            conditions += symmetry
    return PerformanceProgram(
        tuple(_name(point, "point", i) for i, point in enumerate(Point.list_of_leaf_points)),
        tuple(
            _name(value, "value", k) for k, value in enumerate(Expression.list_of_leaf_expressions)
        ),
        read_expression(pep.objective),
        tuple(conditions),
        tuple(matrices),
    )


def _require_current(expression: Any) -> None:
    """Refuse an expression of an earlier PEP: PEPit numbers points in one list, which a new PEP begins again."""
    from PEPit.expression import Expression
    from PEPit.point import Point

    for key in expression.decomposition_dict:
        for leaf in key if isinstance(key, tuple) else (key,):
            known = Point.list_of_leaf_points
            if isinstance(leaf, Expression):
                known = Expression.list_of_leaf_expressions
            elif not isinstance(leaf, Point):
                continue
            if leaf.counter >= len(known) or known[leaf.counter] is not leaf:
                raise InvalidProblem("another PEP was made since: only the last PEP can be read")


def _name(leaf: Any, kind: str, place: int) -> str:
    return str(leaf.get_name() or f"{kind} {place}")


def read_expression(expression: Any) -> Affine:
    """Return an expression of PEPit with short fractions."""
    from PEPit.tools.expressions_to_matrices import expression_to_sparse_matrices

    rows, columns, factors, values, weights, constant = expression_to_sparse_matrices(expression)
    gram: dict[tuple[int, int], Fraction] = {}
    for i, j, factor in zip(rows.tolist(), columns.tolist(), factors.tolist(), strict=True):
        place = (int(max(i, j)), int(min(i, j)))
        # PEPit splits a factor between G_ij and G_ji.
        part = short_fraction(float(factor)) * (1 if i == j else 2)
        gram[place] = gram.get(place, Fraction(0)) + part
    found: dict[int, Fraction] = {}
    for k, weight in zip(values.tolist(), weights.tolist(), strict=True):
        found[int(k)] = found.get(int(k), Fraction(0)) + short_fraction(float(weight))
    return Affine(found, gram, short_fraction(float(constant)))


def _read_matrix(psd: Any) -> tuple[MatrixCondition, list[Condition]]:
    """A matrix condition, and the equations that make it symmetric where its halves differ."""
    order = psd.shape[0]
    name = psd.get_name() or f"matrix {psd.counter}"
    entries = []
    symmetry = []
    for i in range(order):
        row = []
        for j in range(i + 1):
            one = read_expression(psd[i, j])
            other = read_expression(psd[j, i])
            row.append(one)
            difference = _difference(one, other)
            if difference is not None:
                symmetry.append(Condition(f"{name} is symmetric at {i}, {j}", difference, True))
        entries.append(tuple(row))
    return MatrixCondition(name, tuple(entries)), symmetry


def _difference(one: Affine, other: Affine) -> Affine | None:
    """The difference of two expressions; None where it is no more than rounding."""

    def apart(a: Any, b: Any) -> Any:
        return {
            key: a.get(key, 0) - b.get(key, 0)
            for key in a.keys() | b.keys()
            if _differ(a.get(key, Fraction(0)), b.get(key, Fraction(0)))
        }

    values = apart(one.values, other.values)
    gram = apart(one.gram, other.gram)
    constant = Fraction(0)
    if _differ(one.constant, other.constant):
        constant = one.constant - other.constant
    return Affine(values, gram, constant) if values or gram or constant else None


def _differ(a: Fraction, b: Fraction) -> bool:
    return abs(a - b) > 4 * ROUNDING * max(abs(a), abs(b))
