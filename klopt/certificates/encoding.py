"""Numbers and arrays as a certificate writes them: float64 as they are, fractions in hex digits."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray

__all__ = [
    "encode_entries",
    "encode_integers",
    "encode_lower_triangle",
    "encode_number",
    "encode_triples",
    "encode_vector",
]


def encode_number(value: Fraction | float) -> str:
    """Return a number in hexadecimal digits.

    >>> encode_number(-0.75), encode_number(Fraction(1, 3))
    ('-0x3/0x4', '0x1/0x3')
    """
    exact = Fraction(value)
    above = hex(exact.numerator)
    return above if exact.denominator == 1 else f"{above}/{hex(exact.denominator)}"


def encode_vector(values: FloatArray | Sequence[Fraction]) -> dict[str, Any]:
    """Return a vector, as float64 where that is exact.

    >>> encode_vector([Fraction(1, 3), Fraction(1, 2)])
    {'over': '0x6', 'of': ['0x2', '0x3']}
    """
    if isinstance(values, np.ndarray):
        return {"float64": _base64(values, "<f8")}
    if all(_is_float(value) for value in values):
        return {"float64": _base64(np.array([float(value) for value in values]), "<f8")}
    over = lcm(*(value.denominator for value in values))
    numerators = (value.numerator * (over // value.denominator) for value in values)
    return {"over": hex(over), "of": [hex(part) for part in numerators]}


def encode_entries(matrix: Any) -> dict[str, Any]:
    """Return the entries of a sparse matrix that are not 0."""
    found = matrix.tocoo()
    kept = found.data != 0
    return {
        "row": _base64(found.row[kept], "<i4"),
        "column": _base64(found.col[kept], "<i4"),
        "value": encode_vector(np.asarray(found.data[kept], float)),
    }


def encode_triples(entries: Sequence[tuple[int, int, Fraction]]) -> dict[str, Any]:
    """Return the entries of a matrix in fractions, each (row, column, value); equal places are added.

    >>> encode_triples([(0, 0, Fraction(1, 3)), (0, 0, Fraction(1, 3))])["value"]
    {'over': '0x3', 'of': ['0x2']}
    """
    total: dict[tuple[int, int], Fraction] = {}
    for i, j, value in entries:
        total[i, j] = total.get((i, j), Fraction(0)) + value
    kept = [(i, j, value) for (i, j), value in total.items() if value]
    return {
        "row": encode_integers([i for i, _, _ in kept]),
        "column": encode_integers([j for _, j, _ in kept]),
        "value": encode_vector([value for _, _, value in kept]),
    }


def encode_integers(values: Sequence[int]) -> str:
    """Return indices as 32-bit integers in base 64."""
    return _base64(np.array(values, dtype=np.int64), "<i4")


def encode_lower_triangle(matrix: FloatArray) -> dict[str, Any]:
    """Return the lower triangle of a dense matrix, column by column."""
    # Row by row in the upper triangle of the transpose is column by column in the lower one.
    places = np.triu_indices(len(matrix))
    return {"lower": len(matrix), "value": encode_vector(matrix.T[places])}


def _base64(values: npt.NDArray[Any], code: str) -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype=code).tobytes()).decode()


def _is_float(value: Fraction) -> bool:
    below = value.denominator
    if below & (below - 1) or below.bit_length() > 1074 or value.numerator.bit_length() > 1024 + 53:
        return False
    try:
        return Fraction(float(value)) == value
    except OverflowError:
        return False
