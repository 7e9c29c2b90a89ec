"""Simple sets as rows of a cone program in fractions, with points and multipliers that are exact."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from klopt.arrays import FloatArray
from klopt.errors import NotCertified
from klopt.model.sets import BoxPlane, OrderedSimplex, Product, SimpleSet, Simplex
from klopt.programs.polyhedra import is_polyhedral, rows_of
from klopt.proof.rational import RationalProgram
from klopt.witness.exact_claims import ConeData, Vector, fractions
from klopt.witness.exact_simplex import ExactStatus, exact_vertex

__all__ = ["exact_point_of", "multipliers_over", "rows_in_fractions"]


def rows_in_fractions(domain: SimpleSet) -> ConeData:
    """Return the rows of a polyhedron; simplices also state the upper bounds that follow.

    >>> rows_in_fractions(Simplex(2)).cones
    [('zero', 1), ('nonnegative', 2), ('nonnegative', 2)]
    """
    if not is_polyhedral(domain):
        raise NotCertified(
            f"a {type(domain).__name__} is no polyhedron: programs over it have no certificate that travels yet"
        )
    data = ConeData(domain.size)
    for kind, (A, b) in zip(("zero", "nonnegative"), rows_of(domain), strict=True):
        rows = A.tocsr()
        entries = [
            dict(zip(rows[[i]].indices.tolist(), rows[[i]].data.tolist(), strict=True))
            for i in range(b.size)
        ]
        if b.size:
            data.add(kind, b.size, entries, b.tolist())
    if isinstance(domain, Simplex | OrderedSimplex):
        data.bound(range(domain.size), None, [domain.total] * domain.size)
    return data


def exact_point_of(domain: SimpleSet, x: FloatArray) -> Vector:
    """Return a point of the set next to x.

    >>> sum(exact_point_of(Simplex(3), np.full(3, 1 / 3)))
    Fraction(1, 1)
    """
    if isinstance(domain, Product):
        sizes = np.cumsum([part.size for part in domain.sets])[:-1]
        pairs = zip(domain.sets, np.split(x, sizes), strict=True)
        return [value for part, piece in pairs for value in exact_point_of(part, piece)]
    if isinstance(domain, OrderedSimplex):
        return _ordered(domain, x)
    total = Fraction(0)
    normal: FloatArray | None
    if isinstance(domain, Simplex):
        low: list[Fraction | None] = [Fraction(0)] * domain.size
        high: list[Fraction | None] = [None] * domain.size
        normal, total = np.ones(domain.size), Fraction(domain.total)
    else:
        assert isinstance(domain, BoxPlane)
        low = [Fraction(v) if np.isfinite(v) else None for v in domain.lower.tolist()]
        high = [Fraction(v) if np.isfinite(v) else None for v in domain.upper.tolist()]
        normal, total = domain.normal, Fraction(domain.offset)
    point = [
        _clipped(value, least, most)
        for value, least, most in zip(fractions(x), low, high, strict=True)
    ]
    if normal is None:
        return point
    left = total - sum(
        (Fraction(a) * v for a, v in zip(normal.tolist(), point, strict=True)), Fraction(0)
    )
    for j in np.argsort(-np.abs(x * normal)).tolist():
        if not left:
            break
        if normal[j]:
            moved = _clipped(point[j] + left / Fraction(float(normal[j])), low[j], high[j])
            left -= (moved - point[j]) * Fraction(float(normal[j]))
            point[j] = moved
    if left:
        raise NotCertified("no point of the set was found next to the answer")
    return point


def _clipped(value: Fraction, low: Fraction | None, high: Fraction | None) -> Fraction:
    value = value if low is None else max(value, low)
    return value if high is None else min(value, high)


def _ordered(domain: OrderedSimplex, x: FloatArray) -> Vector:
    """x_i >= sigma x_(i+1), made from the last one up."""
    sigma = Fraction(domain.sigma)
    point = fractions(x)
    point[-1] = max(point[-1], Fraction(0))
    for i in range(len(point) - 2, -1, -1):
        point[i] = max(point[i], sigma * point[i + 1])
    total = sum(point, Fraction(0))
    if not total:
        raise NotCertified("no point of the set was found next to the answer")
    return [value * Fraction(domain.total) / total for value in point]


def multipliers_over(data: ConeData, gradient: Sequence[Fraction], x: FloatArray) -> Vector:
    """Return y with gradient + A'y = 0 that bounds gradient'z over the rows as well as can be."""
    rows: list[list[tuple[int, Fraction]]] = [[] for _ in data.b]
    for i, j, value in data.A:
        rows[i].append((j, value))
    zero = sum(size for kind, size in data.cones if kind == "zero")
    program = RationalProgram(
        tuple(gradient), tuple(tuple(row) for row in rows), tuple(data.b), zero
    )
    outcome = exact_vertex(program, x)
    if outcome.status is not ExactStatus.OPTIMAL:
        raise NotCertified("the bound over the set was not found exactly")
    return list(outcome.y)
