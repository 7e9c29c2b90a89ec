#!/usr/bin/env python3
"""Checks certificates of optima in exact arithmetic, with nothing but Python's own library.

    python klopt_check.py FILE [FILE ..]          exit code 0: every certificate proves its claim

The format is described in docs/certificate-format.md. All numbers are integers over one common
denominator for each array; nothing is ever rounded, except outwards in the bounds of exp, log and roots.
The rule of cone programs:

    minimise  x'Px/2 + c'x   subject to   b - Ax in K,   x'P_i x/2 + q_i'x <= r_i

    point        x with b - Ax in K and x'P_i x/2 + q_i'x <= r_i:  optimum <= x'Px/2 + c'x
    multipliers  y in K*, lam >= 0, w with Hw + c + A'y + sum lam_i q_i = 0, H = P + sum lam_i P_i psd:
                 optimum >= -w'Hw/2 - b'y - lam'r
    no point     the same with P = 0 and c = 0, and a bound above 0
    no optimum   a point, and d with Pd = 0, P_i d = 0, q_i'd <= 0, -Ad in K, c'd < 0

If only H + phi D is positive semidefinite, D = 1 on the diagonal for the variables that H has
entries of, and lower <= x <= upper for these by nonnegative rows with a single entry, the bound is
less by phi/2 times the sum over them of max((lower_j - w_j)^2, (upper_j - w_j)^2).

The other rules (saddle programs, three closed forms, polynomials) are in their classes.

A matrix S is shown to be positive semidefinite by a factor L for which S - LL' has diagonal entries
that are at least the sum of the sizes of the others in their row; without one, by elimination.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import struct
import sys
from copy import copy
from fractions import Fraction
from math import isqrt, lcm, prod

FORMAT = "klopt certificate 1"
MAX_EXPONENT = 20_000  # of a number written in hexadecimal digits
MAX_ELIMINATION = 100  # the order up to which a matrix needs no factor
MAX_ARGUMENT = 5_000  # of exp
MAX_POWER = (
    32  # an exponent; the weights of a power cone up to which powers are compared themselves
)
MAX_TERMS = 200_000  # of a product of polynomials, before like ones are added
MAX_DEGREE = 64  # of a monomial
MAX_DEPTH = 50  # of an expression
BITS = 256  # of the bounds of exp, log and of the square root of 2


class Rejected(Exception):
    """The certificate does not prove its claim, or is no certificate."""


def need(condition: bool, why: str) -> None:
    if not condition:
        raise Rejected(why)


# Numbers and arrays

NUMBER = re.compile(
    r"(-?)0x([0-9a-f]+)(?:\.([0-9a-f]+))?(?:p([+-]?[0-9]{1,5}))?(?:/0x([0-9a-f]+))?"
)


def number(text: object) -> Fraction:
    """-0x1.8p-3 or -0x3/0x10."""
    found = NUMBER.fullmatch(text) if isinstance(text, str) else None
    need(found is not None, f"{str(text)[:40]!r} is no number")
    sign, whole, part, power, below = found.groups()
    value = Fraction(int(whole + (part or ""), 16), 16 ** len(part or ""))
    exponent = int(power or 0)
    need(abs(exponent) <= MAX_EXPONENT, f"{text!r} has an exponent beyond {MAX_EXPONENT}")
    value *= Fraction(2) ** exponent
    if below is not None:
        need(int(below, 16) > 0, f"{text!r} has no denominator")
        value /= int(below, 16)
    return -value if sign else value


class Vector:
    """Integers over one denominator."""

    def __init__(self, of: list[int], over: int = 1) -> None:
        self.of = of
        self.over = over

    @classmethod
    def read(cls, name: str, data: object, size: int) -> Vector:
        need(isinstance(data, dict), f"{name} is missing")
        if "float64" in data:
            vector = cls.of_floats(name, doubles(name, data))
        else:
            parts = data.get("of")
            need(isinstance(parts, list), f"{name} has no entries")
            numbers = [number(part) for part in parts]
            over = number(data.get("over", "0x1"))
            need(over.denominator == 1 and over > 0, f"{name} has no denominator")
            need(all(part.denominator == 1 for part in numbers), f"{name} has fractions in it")
            vector = cls([part.numerator for part in numbers], over.numerator)
        need(len(vector.of) == size, f"{name} has {len(vector.of)} entries, not {size}")
        return vector

    @classmethod
    def of_floats(cls, name: str, values: tuple[float, ...]) -> Vector:
        need(all(value - value == 0 for value in values), f"{name} has an entry that is not finite")
        ratios = [value.as_integer_ratio() for value in values]
        over = max((below for _, below in ratios), default=1)  # all are powers of 2
        return cls([above * (over // below) for above, below in ratios], over)

    def __getitem__(self, index: int) -> Fraction:
        return Fraction(self.of[index], self.over)

    def part(self, start: int, stop: int) -> Vector:
        return Vector(self.of[start:stop], self.over)

    def dot(self, other: Vector) -> Fraction:
        total = sum(a * b for a, b in zip(self.of, other.of, strict=True))
        return Fraction(total, self.over * other.over)

    def plus(self, other: Vector, factor: Fraction = Fraction(1)) -> Vector:
        over = lcm(self.over, other.over * factor.denominator)
        mine = over // self.over
        theirs = over // (other.over * factor.denominator) * factor.numerator
        return Vector([mine * a + theirs * b for a, b in zip(self.of, other.of, strict=True)], over)

    @property
    def is_zero(self) -> bool:
        return not any(self.of)


def unpacked(name: str, text: object, code: str, width: int) -> tuple:
    need(isinstance(text, str), f"{name} is no text of base 64")
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Rejected(f"{name} is no text of base 64") from None
    need(len(data) % width == 0, f"{name} is cut off")
    return struct.unpack(f"<{len(data) // width}{code}", data)


def doubles(name: str, data: dict) -> tuple[float, ...]:
    return unpacked(name, data["float64"], "d", 8)


def whole(name: str, value: object, least: int = 0) -> int:
    need(
        type(value) is int and value >= least,
        f"{name} is {value!r}, no whole number of at least {least}",
    )
    return value


class Matrix:
    """Entries (row, column, integer) over one denominator."""

    def __init__(
        self, rows: int, columns: int, entries: list[tuple[int, int, int]], over: int
    ) -> None:
        self.rows = rows
        self.columns = columns
        self.entries = entries
        self.over = over

    @classmethod
    def read(cls, name: str, data: object, rows: int, columns: int) -> Matrix:
        need(isinstance(data, dict), f"{name} is missing")
        if "lower" in data:
            # The lower triangle, column by column: of a symmetric matrix, or of a factor.
            size = whole(f"{name}.lower", data["lower"])
            need(rows == columns == size, f"{name} has another size")
            value = Vector.read(name, data.get("value"), size * (size + 1) // 2)
            places = [(i, j) for j in range(size) for i in range(j, size)]
            return cls(
                size,
                size,
                [(i, j, v) for (i, j), v in zip(places, value.of, strict=True) if v],
                value.over,
            )
        row = unpacked(f"{name}.row", data.get("row"), "i", 4)
        column = unpacked(f"{name}.column", data.get("column"), "i", 4)
        need(len(row) == len(column), f"{name} has rows without columns")
        need(all(0 <= i < rows for i in row), f"{name} has a row outside")
        need(all(0 <= j < columns for j in column), f"{name} has a column outside")
        need(len(set(zip(row, column, strict=True))) == len(row), f"{name} has an entry twice")
        value = Vector.read(name, data.get("value"), len(row))
        return cls(rows, columns, list(zip(row, column, value.of, strict=True)), value.over)

    def times(self, x: Vector) -> Vector:
        total = [0] * self.rows
        of = x.of
        for i, j, value in self.entries:
            total[i] += value * of[j]
        return Vector(total, self.over * x.over)

    def transposed_times(self, y: Vector) -> Vector:
        total = [0] * self.columns
        of = y.of
        for i, j, value in self.entries:
            total[j] += value * of[i]
        return Vector(total, self.over * y.over)


class Symmetric(Matrix):
    """A symmetric matrix by its lower triangle."""

    @classmethod
    def read(cls, name: str, data: object, size: int, columns: int = 0) -> Symmetric:
        found = Matrix.read(name, data, size, size)
        need(all(i >= j for i, j, _ in found.entries), f"{name} has an entry above the diagonal")
        return cls(size, size, found.entries, found.over)

    def times(self, x: Vector) -> Vector:
        total = [0] * self.rows
        of = x.of
        for i, j, value in self.entries:
            total[i] += value * of[j]
            if i != j:
                total[j] += value * of[i]
        return Vector(total, self.over * x.over)

    def plus(self, other: Symmetric, factor: Fraction) -> Symmetric:
        over = lcm(self.over, other.over * factor.denominator)
        mine = over // self.over
        theirs = over // (other.over * factor.denominator) * factor.numerator
        total = {(i, j): mine * value for i, j, value in self.entries}
        for i, j, value in other.entries:
            total[i, j] = total.get((i, j), 0) + theirs * value
        return Symmetric(self.rows, self.rows, [(i, j, v) for (i, j), v in total.items()], over)


# Positive semidefinite matrices


def need_semidefinite(name: str, S: Symmetric, factor: object) -> None:
    if factor is None:
        need(
            S.rows <= MAX_ELIMINATION or all(i == j for i, j, _ in S.entries),
            f"{name} needs a factor",
        )
        need(eliminates(S), f"{name} is not positive semidefinite")
        return
    L = Matrix.read(f"the factor of {name}", factor, S.rows, S.rows)
    need(dominates(S, L, 1), f"{name} is not shown to be positive semidefinite")


def dominates(S: Symmetric, L: Matrix, sign: int) -> bool:
    """Whether S - LL', or LL' - S for sign = -1, has diagonal entries that outweigh their rows."""
    # Times both denominators.
    square = L.over * L.over
    rest = product_with_transpose(L)
    for key, value in rest.items():
        rest[key] = -value * S.over
    for i, j, value in S.entries:
        rest[i, j] = rest.get((i, j), 0) + value * square
    room = [0] * S.rows
    for (i, j), value in rest.items():
        if i == j:
            room[i] += sign * value
        else:
            room[i] -= abs(value)
            room[j] -= abs(value)
    return all(value >= 0 for value in room)


def eliminates(S: Symmetric) -> bool:
    """Whether elimination of S meets no negative pivot."""
    rows: list[dict[int, Fraction]] = [{} for _ in range(S.rows)]
    for i, j, value in S.entries:
        if value:
            rows[i][j] = rows[j][i] = Fraction(value)
    for k in range(S.rows):
        pivot = rows[k].pop(k, Fraction(0))
        others = rows[k]
        if pivot < 0 or (pivot == 0 and others):
            return False
        for i, left in others.items():
            row = rows[i]
            del row[k]
            share = left / pivot
            for j, value in others.items():
                new = row.get(j, 0) - share * value
                if new:
                    row[j] = new
                else:
                    row.pop(j, None)
    return True


def log_det(name: str, S: Symmetric, factor: object, up: int) -> Fraction:
    """log det of a positive definite matrix, or more (up = 1), or less."""
    if factor is None:
        need(S.rows <= MAX_ELIMINATION, f"{name} needs a factor")
        return log_of(determinant(name, S), up)
    L = Matrix.read(f"the factor of {name}", factor, S.rows, S.rows)
    need(dominates(S, L, -1 if up else 1), f"{name} is not shown to be on this side of its factor")
    need(all(i >= j for i, j, _ in L.entries), f"the factor of {name} is not triangular")
    pivots = [value for i, j, value in L.entries if i == j and value > 0]
    need(len(pivots) == S.rows, f"the factor of {name} has a diagonal entry that is not positive")
    return 2 * log_of(Fraction(prod(pivots), L.over**S.rows), up)


def determinant(name: str, S: Symmetric) -> Fraction:
    """The determinant of a positive definite matrix, by elimination in integers (Bareiss)."""
    n = S.rows
    rows = [[0] * n for _ in range(n)]
    for i, j, value in S.entries:
        rows[i][j] = rows[j][i] = value
    last = 1
    for k in range(n):
        pivot = rows[k][k]
        need(pivot > 0, f"{name} is not positive definite")
        for i in range(k + 1, n):
            row, left = rows[i], rows[i][k]
            for j in range(i, n):
                # Symmetric: the entry of column k and row j stands in row k.
                row[j] = (row[j] * pivot - left * rows[k][j]) // last
        for i in range(k + 1, n):
            for j in range(i, n):
                rows[j][i] = rows[i][j]
        last = pivot
    return Fraction(last, S.over**n)


def product_with_transpose(L: Matrix) -> dict[tuple[int, int], int]:
    """The lower triangle of LL' without its denominators.

    A column of a dense factor becomes one long integer, whose digits in a large base are its
    entries: a row of LL' is then a sum of few products of long integers by short ones.
    """
    columns: list[list[tuple[int, int]]] = [[] for _ in range(L.columns)]
    for i, j, value in L.entries:
        if value:
            columns[j].append((i, value))
    if sum(len(column) ** 2 for column in columns) <= 40 * L.rows**2:
        total: dict[tuple[int, int], int] = {}
        for column in columns:
            for i, left in column:
                for j, right in column:
                    if j <= i:
                        total[i, j] = total.get((i, j), 0) + left * right
        return total
    size = L.rows
    largest = max(abs(value) for _, _, value in L.entries)
    width = 8 * ((2 * largest.bit_length() + size.bit_length() + 2) // 8 + 1)  # bits of a digit
    packed = [sum(value << (width * i) for i, value in column) for column in columns]
    by_row: list[list[tuple[int, int]]] = [[] for _ in range(size)]
    for j, column in enumerate(columns):
        for i, value in column:
            by_row[i].append((j, value))
    half = 1 << (width - 1)
    shift = sum(half << (width * i) for i in range(size))  # makes all digits positive
    step = width // 8
    total = {}
    for i, row in enumerate(by_row):
        digits = sum(value * packed[j] for j, value in row) + shift
        data = digits.to_bytes(step * (size + 1), "little")
        for j in range(i + 1):
            value = int.from_bytes(data[step * j : step * (j + 1)], "little") - half
            if value:
                total[i, j] = value
    return total


# Cones


def exp_above(t: Fraction) -> Fraction:
    """An upper bound of exp(t), close to it."""
    need(t <= MAX_ARGUMENT, "an exponential is out of range")
    return 1 / exp_of(min(-t, Fraction(MAX_ARGUMENT)), up=0) if t < 0 else exp_of(t, up=1)


def exp_of(t: Fraction, up: int) -> Fraction:
    """exp(t) for t >= 0, each step rounded up (up = 1) or down (up = 0)."""
    one = 1 << BITS
    halvings = (t.numerator // t.denominator).bit_length() + 1
    x = t.numerator * one // (t.denominator << halvings) + up  # at most 1/2
    total = term = one
    k = 0
    while term > up:
        k += 1
        term = term * x // (one * k) + up
        total += term
    total += 2 * up  # all terms that follow together, each at most half of the one before
    for _ in range(halvings):
        total = (total * total >> BITS) + up
    return Fraction(total, one)


def log_of(q: Fraction, up: int) -> Fraction:
    """log(q) for q > 0, rounded up (up = 1) or down (up = 0): 2 artanh((m - 1) / (m + 1)) + e log 2."""
    exponent = q.numerator.bit_length() - q.denominator.bit_length()
    m = q / Fraction(2) ** exponent  # between 1/2 and 2
    if m < 1:
        m, exponent = 2 * m, exponent - 1
    log_two = 2 * artanh(Fraction(1, 3), up if exponent > 0 else 1 - up)
    return exponent * log_two + 2 * artanh((m - 1) / (m + 1), up)


def artanh(u: Fraction, up: int) -> Fraction:
    """u + u^3/3 + u^5/5 + .. for 0 <= u <= 1/3, each step rounded up or down."""
    one = 1 << BITS
    x = u.numerator * one // u.denominator + up
    square = (x * x >> BITS) + up
    total = 0
    power = x
    k = 1
    while power > up:
        total += power // k + up
        power = (power * square >> BITS) + up
        k += 2
    return Fraction(
        total + 2 * up, one
    )  # all terms that follow, each at most 1/8 of the one before


def need_in_cone(name: str, kind: str, size: object, s: Vector, dual: bool, factor: object) -> None:
    """s in the cone, or in its dual cone."""
    if kind == "zero":
        need(dual or s.is_zero, f"{name}: an equation does not hold")
    elif kind == "nonnegative":
        need(all(value >= 0 for value in s.of), f"{name}: an entry is negative")
    elif kind == "second order":
        squares = sum(value * value for value in s.of[1:])
        need(s.of[0] >= 0 and s.of[0] ** 2 >= squares, f"{name} is not in the second-order cone")
    elif kind in ("semidefinite", "svec"):
        need_semidefinite(name, triangle(kind, size, s, dual), factor)
    elif kind == "power":
        need_in_power(name, size, s, dual)
    else:
        need_in_exponential(name, s, dual)


def triangle(kind: str, order: int, s: Vector, dual: bool) -> Symmetric:
    """The matrix of a semidefinite block; of svec, the square root of 2 times it, or less.

    Rows are entries of the lower triangle. Multipliers of plain entries belong to both triangles.
    Those of svec are off the diagonal times the square root of 2: on the diagonal a number below
    that root takes its place, which makes the matrix smaller.
    """
    diagonal, other, over = 1, 1, s.over
    if kind == "semidefinite" and dual:
        diagonal, over = 2, 2 * over
    elif kind == "svec":
        diagonal, other, over = isqrt(2 << (2 * BITS)), 1 << BITS, over << BITS
    entries = []
    at = 0
    for j in range(order):
        for i in range(j, order):
            value = s.of[at] * (diagonal if i == j else other)
            need(i != j or value >= 0, "a diagonal entry is negative")
            if value:
                entries.append((i, j, value))
            at += 1
    return Symmetric(order, order, entries, over)


def need_in_exponential(name: str, s: Vector, dual: bool) -> None:
    """y exp(x/y) <= z with y > 0, or x <= 0, y = 0, z >= 0; dual: -u exp(v/u - 1) <= w, u < 0."""
    a, b, c = s[0], s[1], s[2]
    if dual:
        if a == 0:
            need(b >= 0 and c >= 0, f"{name} is not in the dual exponential cone")
            return
        need(a < 0 and c > 0, f"{name} is not in the dual exponential cone")
        need(-a * exp_above(b / a - 1) <= c, f"{name} is not in the dual exponential cone")
        return
    if b == 0:
        need(a <= 0 and c >= 0, f"{name} is not in the exponential cone")
        return
    need(b > 0 and c > 0, f"{name} is not in the exponential cone")
    need(b * exp_above(a / b) <= c, f"{name} is not in the exponential cone")


def need_in_power(name: str, weights: list[int], s: Vector, dual: bool) -> None:
    """x >= 0 and x_1^a_1 .. x_k^a_k >= |z|, a_i = w_i / W; dual: with x_i / a_i."""
    total = sum(weights)
    x = [s[index] for index in range(len(weights))]
    z = abs(s[len(weights)])
    need(all(value >= 0 for value in x), f"{name}: an entry of a power cone is negative")
    if dual:
        x = [value * total / weight for value, weight in zip(x, weights, strict=True)]
    if z == 0 or z <= min(x):
        return
    need(all(x), f"{name} is not in the power cone")
    if total <= MAX_POWER:
        product = Fraction(1)
        for value, weight in zip(x, weights, strict=True):
            product *= value**weight
        need(product >= z**total, f"{name} is not in the power cone")
        return
    below = sum(weight * log_of(value, up=0) for value, weight in zip(x, weights, strict=True))
    need(below >= total * log_of(z, up=1), f"{name} is not in the power cone")


# The rule of cone programs

SIZES = {
    "zero": lambda k: k,
    "nonnegative": lambda k: k,
    "second order": lambda k: k,
    "semidefinite": lambda k: k * (k + 1) // 2,
    "svec": lambda k: k * (k + 1) // 2,
    "exponential": lambda k: k,
}


class ConeProgram:
    """The problem of a certificate."""

    def __init__(self, data: dict) -> None:
        n = self.n = whole("variables", data.get("variables"))
        self.scale, self.shift = units(data)
        self.c = Vector.read("c", data.get("c"), n)
        self.P = Symmetric.read("P", data["P"], n) if "P" in data else Symmetric(n, n, [], 1)
        self.blocks = []
        rows = 0
        for entry in listed("cones", data.get("cones", [])):
            need(isinstance(entry, list) and len(entry) == 2, "a cone is a kind and a size")
            kind, size = entry
            if kind == "power":
                weights = [number(weight) for weight in listed("the weights of a power cone", size)]
                good = weights and all(w.denominator == 1 and w > 0 for w in weights)
                need(bool(good), "the weights of a power cone are positive integers")
                self.blocks.append(
                    (kind, [w.numerator for w in weights], rows, rows + len(weights) + 1)
                )
                rows += len(weights) + 1
                continue
            need(isinstance(kind, str) and kind in SIZES, f"there is no cone {kind!r}")
            length = SIZES[kind](whole("the size of a cone", size, 1))
            need(kind != "exponential" or size == 3, "an exponential cone has three rows")
            self.blocks.append((kind, size, rows, rows + length))
            rows += length
        self.A = Matrix.read("A", data.get("A"), rows, n)
        self.b = Vector.read("b", data.get("b"), rows)
        self.quadratics = []
        for index, row in enumerate(listed("quadratics", data.get("quadratics", []))):
            need(isinstance(row, dict), "a quadratic constraint has P, q and r")
            P = Symmetric.read(f"P of quadratic {index}", row.get("P"), n)
            q = Vector.read(f"q of quadratic {index}", row.get("q"), n)
            self.quadratics.append((P, q, number(row.get("r"))))
        self.log_dets: list[tuple[int, Fraction]] = []
        self.constants: list[tuple[Symmetric, Fraction]] = []
        for term in listed("log det", data.get("log det", [])):
            self.read_log_det(term)

    def read_log_det(self, term: object) -> None:
        need(isinstance(term, dict), "a log det has a cone or a matrix, and a weight")
        weight = number(term.get("weight"))
        if "cone" in term:
            index = whole("the cone of a log det", term["cone"])
            kinds = [kind for kind, *_ in self.blocks]
            need(
                kinds[index : index + 1] == ["semidefinite"], "a log det is of a semidefinite cone"
            )
            need(all(index != other for other, _ in self.log_dets), "a cone has two log dets")
            need(weight > 0, "the weight of a log det is not positive")
            self.log_dets.append((index, weight))
            return
        order = whole("the order of a log det", term.get("order"), 1)
        need(order <= MAX_ELIMINATION, "a constant log det is of too high an order")
        self.constants.append((Symmetric.read("a log det", term.get("matrix"), order), weight))

    def in_cones(
        self, name: str, s: Vector, dual: bool, factors: dict, definite: bool = False
    ) -> None:
        later = [index for index, _ in self.log_dets] if definite else []
        for index, (kind, size, start, stop) in enumerate(self.blocks):
            if index in later:  # its log det is taken, which needs a positive definite matrix
                continue
            where = f"{name} {index}"
            need_in_cone(where, kind, size, s.part(start, stop), dual, factors.get(where))

    def log_det_sum(self, name: str, s: Vector, dual: bool, factors: dict) -> Fraction:
        """A lower bound of the sum of w log det S, or of w (k + log det(Y / w)), over the cones."""
        total = Fraction(0)
        for index, weight in self.log_dets:
            kind, order, start, stop = self.blocks[index]
            where = f"{name} {index}"
            matrix = triangle(kind, order, s.part(start, stop), dual)
            total += weight * log_det(where, matrix, factors.get(where), 0)
            if dual:
                total += weight * order * (1 - log_of(weight, up=1))
        return total

    def constant(self, up: int) -> Fraction:
        """The sum of -w log det of the constants, rounded up or down."""
        total = Fraction(0)
        for matrix, weight in self.constants:
            total -= weight * log_det("a constant", matrix, None, 1 - up if weight > 0 else up)
        return total

    def point(self, witness: dict) -> Vector:
        """A point that satisfies all constraints."""
        x = Vector.read("x", witness.get("x"), self.n)
        self.in_cones("slack", self.slack(x), False, factors_of(witness), definite=True)
        for index, (P, q, r) in enumerate(self.quadratics):
            need(P.times(x).dot(x) / 2 + q.dot(x) <= r, f"quadratic constraint {index} is violated")
        return x

    def slack(self, x: Vector) -> Vector:
        return self.b.plus(self.A.times(x), Fraction(-1))

    def objective(self, x: Vector) -> Fraction:
        return self.P.times(x).dot(x) / 2 + self.c.dot(x)

    def value_at(self, witness: dict) -> Fraction:
        """The value of the form at a feasible point: an upper bound of its optimum."""
        x = self.point(witness)
        value = self.objective(x) + self.constant(up=1)
        return value - self.log_det_sum("slack", self.slack(x), False, factors_of(witness))

    def with_objective(self, P: Symmetric, c: Vector) -> ConeProgram:
        """The same constraints with another objective."""
        other = copy(self)
        other.P, other.c = P, c
        return other

    def bound_by(self, witness: dict, objective: bool) -> Fraction:
        """The lower bound by multipliers, of the objective or of 0."""
        y = Vector.read("y", witness.get("y"), self.A.rows)
        factors = factors_of(witness)
        self.in_cones("multipliers", y, True, factors, definite=objective)
        H = self.P if objective else Symmetric(self.n, self.n, [], 1)
        gradient = self.A.transposed_times(y)
        if objective:
            gradient = gradient.plus(self.c)
        value = -self.b.dot(y)
        if objective:
            value += self.constant(up=0) + self.log_det_sum("multipliers", y, True, factors)
        count = len(self.quadratics)
        lam = Vector.read("lam", witness.get("lam"), count) if count else Vector([])
        need(
            all(part >= 0 for part in lam.of), "a multiplier of a quadratic constraint is negative"
        )
        for index, (P, q, r) in enumerate(self.quadratics):
            if lam.of[index]:
                H = H.plus(P, lam[index])
                gradient = gradient.plus(q, lam[index])
                value -= lam[index] * r
        if not H.entries:
            need(gradient.is_zero, "the multipliers do not cancel the gradient")
            return value
        w = Vector.read("w", witness.get("w"), self.n)
        product = H.times(w)
        need(gradient.plus(product).is_zero, "the multipliers do not cancel the gradient")
        phi = number(witness.get("phi", "0x0"))
        need(phi >= 0, "phi is negative")
        value -= product.dot(w) / 2
        if phi:
            # Only along variables that H has entries of.
            curved = sorted({index for i, j, entry in H.entries if entry for index in (i, j)})
            diagonal = [(j, j, phi.numerator) for j in curved]
            H = H.plus(Symmetric(self.n, self.n, diagonal, phi.denominator), Fraction(1))
            value -= phi / 2 * self.largest_square(w, curved)
        need_semidefinite("the curvature", H, factors.get("curvature"))
        return value

    def bounds(self) -> tuple[dict[int, Fraction], dict[int, Fraction]]:
        """The tightest bounds of variables that nonnegative rows with a single entry state."""
        entries: dict[int, list[tuple[int, int]]] = {}
        for i, j, value in self.A.entries:
            if value:
                entries.setdefault(i, []).append((j, value))
        below: dict[int, Fraction] = {}
        above: dict[int, Fraction] = {}
        for kind, _, start, stop in self.blocks:
            if kind != "nonnegative":
                continue
            for i in range(start, stop):
                if len(entries.get(i, ())) == 1:
                    ((j, value),) = entries[i]
                    bound = self.b[i] * self.A.over / value
                    if value > 0:
                        above[j] = min(bound, above.get(j, bound))
                    else:
                        below[j] = max(bound, below.get(j, bound))
        return below, above

    def largest_square(self, w: Vector, curved: list[int]) -> Fraction:
        """The largest sum of (x_j - w_j)^2 over the box that rows with a single entry state."""
        below, above = self.bounds()
        need(all(j in below and j in above for j in curved), "phi needs bounds of the variables")
        return sum(
            (max((below[j] - w[j]) ** 2, (above[j] - w[j]) ** 2) for j in curved), Fraction(0)
        )

    def ends(self, witness: dict) -> tuple[Fraction | None, Fraction]:
        """What the witness proves of the optimum: a lower bound, if it has one, and an upper one."""
        need("x" in witness, "no point is given")
        low = self.bound_by(witness, objective=True) if "y" in witness else None
        return low, self.value_at(witness)

    def need_ray(self, witness: dict) -> None:
        d = Vector.read("ray", witness.get("ray"), self.n)
        need(self.P.times(d).is_zero, "the objective is curved along the ray")
        for P, q, _ in self.quadratics:
            need(P.times(d).is_zero and q.dot(d) <= 0, "the ray leaves a quadratic constraint")
        down = self.A.times(d)
        self.in_cones(
            "ray", Vector([-value for value in down.of], down.over), False, factors_of(witness)
        )
        need(self.c.dot(d) < 0, "the objective does not improve along the ray")


def units(data: dict) -> tuple[Fraction, Fraction]:
    """The problem's value is scale times that of the form, plus shift."""
    scale = number(data.get("scale", "0x1"))
    need(scale != 0, "the objective is multiplied by 0")
    return scale, number(data.get("shift", "0x0"))


def listed(name: str, data: object) -> list:
    need(isinstance(data, list), f"{name} is no list")
    return data


def factors_of(witness: dict) -> dict:
    found = witness.get("factors", {})
    need(isinstance(found, dict) and None not in found.values(), "factors are given by name")
    return found


# The rule of saddle programs


class Part:
    """y'Q(x)y / (2 d), Q(x) = sum_k x_k Q_k: entries (k, i, j, integer) over one denominator."""

    def __init__(self, data: object, left: int, right: int) -> None:
        need(isinstance(data, dict), "a part has left, row, column and value")
        k = unpacked("left of a part", data.get("left"), "i", 4)
        i = unpacked("row of a part", data.get("row"), "i", 4)
        j = unpacked("column of a part", data.get("column"), "i", 4)
        need(len(k) == len(i) == len(j), "a part has indices of different lengths")
        places = list(zip(k, i, j, strict=True))
        need(all(0 <= a < left and 0 <= c <= b < right for a, b, c in places), "a part is outside")
        need(len(set(places)) == len(places), "a part has an entry twice")
        value = Vector.read("value of a part", data.get("value"), len(places))
        self.entries = [(*at, v) for at, v in zip(places, value.of, strict=True) if v]
        self.over = value.over
        self.below = None
        if "over" in data:
            self.below = whole("over", data["over"])
            need(self.below < right, "a part is over a variable that is not there")
        self.positive = data.get("positive part", False)
        need(type(self.positive) is bool, "positive part is true or false")
        self.variables = sorted({at[0] for at in self.entries}) if self.positive else []
        self.right = right

    def matrix(self, x: Vector) -> Symmetric:
        """Q(x)."""
        total: dict[tuple[int, int], int] = {}
        for k, i, j, value in self.entries:
            total[i, j] = total.get((i, j), 0) + value * x.of[k]
        entries = [(i, j, value) for (i, j), value in total.items() if value]
        return Symmetric(self.right, self.right, entries, self.over * x.over)

    def forms(self, y: Vector) -> dict[int, Fraction]:
        """y'Q_k y for each k."""
        total: dict[int, int] = {}
        for k, i, j, value in self.entries:
            total[k] = total.get(k, 0) + value * y.of[i] * y.of[j] * (1 if i == j else 2)
        return {k: Fraction(value, self.over * y.over**2) for k, value in total.items()}

    def single(self, k: int) -> Symmetric:
        """Q_k."""
        entries = [(i, j, value) for at, i, j, value in self.entries if at == k]
        return Symmetric(self.right, self.right, entries, self.over)

    def support(self, k: int) -> list[int]:
        """The variables that Q_k has entries of."""
        return sorted({index for at, i, j, _ in self.entries if at == k for index in (i, j)})


def squares(y: Vector, places: list[int]) -> Fraction:
    return Fraction(sum(y.of[j] ** 2 for j in places), y.over**2)


def root_above(value: Fraction) -> Fraction:
    """A number above the square root."""
    return Fraction(isqrt((value.numerator << (2 * BITS)) // value.denominator) + 1, 1 << BITS)


def vector_of(values: list[Fraction]) -> Vector:
    over = lcm(*(value.denominator for value in values))
    return Vector([value.numerator * (over // value.denominator) for value in values], over)


class SaddleProgram:
    """min over x, max over y of f(x) + x'My - g(y) - sum of parts; both sides are cone programs."""

    def __init__(self, data: dict) -> None:
        for side in ("left", "right"):
            need(isinstance(data.get(side), dict), f"{side} is missing")
            need("log det" not in data[side], "a side has a log det")
        self.scale, self.shift = units(data)
        self.left, self.right = ConeProgram(data["left"]), ConeProgram(data["right"])
        rows, columns = self.left.n, self.right.n
        self.M = Matrix(rows, columns, [], 1)
        if "M" in data:
            self.M = Matrix.read("M", data["M"], rows, columns)
        self.parts = [Part(part, rows, columns) for part in listed("parts", data.get("parts", []))]
        below = self.left.bounds()[0]
        signed = all(below.get(k, -1) >= 0 for part in self.parts for k in part.variables)
        need(signed, "the weight of a positive part may be negative")
        below = self.right.bounds()[0]
        signed = all(part.below is None or below.get(part.below, -1) >= 0 for part in self.parts)
        need(signed, "what a part is over may be negative")

    def ends(self, witness: dict) -> tuple[Fraction, Fraction]:
        sides = []
        for side in ("left", "right"):
            need(isinstance(witness.get(side), dict), f"the witness has no {side}")
            sides.append(witness[side])
        self.factors = factors_of(witness)
        self.phi = self.read_phi(witness)
        x, y = self.left.point(sides[0]), self.right.point(sides[1])
        low = self.program_of_x(y).bound_by(sides[0], objective=True) - self.right.objective(y)
        program, lost = self.program_of_y(x, witness)
        high = self.left.objective(x) + lost - program.bound_by(sides[1], objective=True)
        return low, high

    def read_phi(self, witness: dict) -> dict[tuple[int, int], Fraction]:
        """A number for each positive part, by which its matrix is from positive semidefinite at most."""
        pairs = [(p, k) for p, part in enumerate(self.parts) for k in part.variables]
        if not pairs:
            return {}
        given = Vector.read("phi", witness.get("phi"), len(pairs))
        need(all(value >= 0 for value in given.of), "phi is negative")
        for index, (p, k) in enumerate(pairs):
            part, phi = self.parts[p], given[index]
            diagonal = [(j, j, phi.numerator) for j in part.support(k)]
            shift = Symmetric(part.right, part.right, diagonal, phi.denominator)
            name = f"kernel {p} {k}"
            need_semidefinite(name, part.single(k).plus(shift, Fraction(1)), self.factors.get(name))
        return {pair: given[index] for index, pair in enumerate(pairs)}

    def program_of_x(self, y: Vector) -> ConeProgram:
        """What is left to minimise over x if y is played, or less."""
        change = [Fraction(0)] * self.left.n
        for p, part in enumerate(self.parts):
            below = Fraction(1)
            if part.below is not None:
                below = y[part.below]
                need(below > 0, "what a part is over is 0")
            for k, value in part.forms(y).items():
                if part.positive:
                    value += self.phi[p, k] * squares(y, part.support(k))
                change[k] -= value / below / 2
        c = self.left.c.plus(self.M.times(y)).plus(vector_of(change))
        return self.left.with_objective(self.left.P, c)

    def program_of_y(self, x: Vector, witness: dict) -> tuple[ConeProgram, Fraction]:
        """What is left to minimise over y if x is played, or less, and by how much."""
        P = self.right.P
        c = self.right.c.plus(self.M.transposed_times(x), Fraction(-1))
        lost = Fraction(0)
        given = listed("parts", witness.get("parts", []))
        for p, part in enumerate(self.parts):
            Q = part.matrix(x)
            if part.below is None:
                P = P.plus(Q, Fraction(1))
                continue
            need(len(given) == len(self.parts), "parts of the witness are one for each part")
            w = Vector.read("a part", given[p], part.right)
            product = Q.times(w)
            square = product.dot(w)
            if part.positive:
                for k in part.variables:
                    places = part.support(k)
                    size, phi = squares(w, places), x[k] * self.phi[p, k]
                    if phi:
                        square += phi * size
                        largest = self.right.largest_square(Vector([0] * part.right), places)
                        lost += phi * root_above(size * largest)
            else:
                need_semidefinite(f"part {p}", Q, self.factors.get(f"part {p}"))
            change = [Fraction(0)] * part.right
            change[part.below] = -square / 2
            c = c.plus(product).plus(vector_of(change))
        return self.right.with_objective(P, c), lost


# The rule of graphs


class GraphLogDet:
    """min over K of D(K, G+) + gamma tr(KS), G+ the positive part of G: log det(I + gamma S G+)."""

    def __init__(self, data: dict) -> None:
        self.scale, self.shift = units(data)
        self.n = whole("points", data.get("points"), 1)
        self.G = Symmetric.read("G", data.get("G"), self.n)
        self.S = Symmetric.read("S", data.get("S"), self.n)
        self.gamma = number(data.get("gamma"))
        need(self.gamma > 0, "gamma is not positive")

    def shifted(self, matrix: Symmetric, by: Fraction) -> Symmetric:
        need(by >= 0, "a shift is negative")
        diagonal = [(i, i, by.numerator) for i in range(self.n)]
        return matrix.plus(Symmetric(self.n, self.n, diagonal, by.denominator), Fraction(1))

    def ends(self, witness: dict) -> tuple[Fraction, Fraction]:
        """By H = G + phi I: log det(I + gamma S H), and what phi may change of it."""
        n, gamma = self.n, self.gamma
        phi = number(witness.get("phi", "0x0"))
        H = self.shifted(self.G, phi)
        columns = [H.times(Vector([int(i == j) for i in range(n)])) for j in range(n)]
        images = [self.S.times(column) for column in columns]
        # H + gamma H S H; all products have one denominator.
        over = H.over * images[0].over
        of = {}
        for j in range(n):
            for i in range(j, n):
                of[i, j] = sum(a * b for a, b in zip(columns[i].of, images[j].of, strict=True))
        smooth = Symmetric(n, n, [(i, j, v) for (i, j), v in of.items() if v], over)
        Y = H.plus(smooth, gamma)
        factors = factors_of(witness)
        sides = ("below", "above")
        # Those below show that both matrices are positive definite.
        ends = [
            log_det("H + gamma H S H", Y, factors.get(f"Y {side}"), up)
            - log_det("H", H, factors.get(f"H {sides[1 - up]}"), 1 - up)
            for up, side in enumerate(sides)
        ]
        if phi:
            epsilon = number(witness.get("epsilon", "0x0"))
            S = self.shifted(self.S, epsilon)
            need_semidefinite("S + epsilon I", S, factors.get("S"))
            trace = sum(Fraction(value, S.over) for i, j, value in S.entries if i == j)
            size = sum(Fraction(value, H.over) for i, j, value in H.entries if i == j)
            small = gamma * epsilon
            need(small * size < 1, "epsilon is too large")
            ends[0] -= gamma * phi * trace
            ends[1] += n * phi * small / (1 - small * size)
        return ends[0], ends[1]


# The rule of levels


def root_below(value: Fraction) -> Fraction:
    """The square root, or less."""
    return Fraction(isqrt((value.numerator << (2 * BITS)) // value.denominator), 1 << BITS)


class Levels:
    """max over 0 <= t < max r of sum_i [r_i - t]_+ A_i / (norm (sum_i [r_i - t]_+^2)^1/2)."""

    def __init__(self, data: dict) -> None:
        self.scale, self.shift = units(data)
        n = whole("directions", data.get("directions"), 1)
        r = Vector.read("r", data.get("r"), n)
        A = Vector.read("A", data.get("A"), n)
        self.norm = number(data.get("norm"))
        need(self.norm > 0 and max(r.of) > 0, "the norm, or every r, is not positive")
        need(all(value >= 0 for value in (*r.of, *A.of)), "r or A has a negative entry")
        self.pairs = sorted(((r[i], A[i]) for i in range(n)), reverse=True)

    def ends(self, witness: dict) -> tuple[Fraction, Fraction]:
        level = number(witness.get("level"))
        need(0 <= level < self.pairs[0][0], "the level is not on the curve")
        above = [(r, A) for r, A in self.pairs if r > level]
        N = sum(((r - level) * A for r, A in above), Fraction(0))
        D = sum(((r - level) ** 2 for r, _ in above), Fraction(0))
        return root_below(N * N / D) / self.norm, root_above(self.largest_square()) / self.norm

    def largest_square(self) -> Fraction:
        """The largest N^2 / D, N = a0 - a1 t, D = d0 - 2 d1 t + k t^2, over all pieces."""
        best = a0 = a1 = d0 = d1 = Fraction(0)
        for k, (r, A) in enumerate(self.pairs, 1):
            a0, a1, d0, d1 = a0 + r * A, a1 + A, d0 + r * r, d1 + r
            low = self.pairs[k][0] if k < len(self.pairs) else Fraction(0)
            if low == r:
                continue
            places = [low]
            turn = a1 * d1 - a0 * k
            if turn and low < (a1 * d0 - a0 * d1) / turn < r:
                places.append((a1 * d0 - a0 * d1) / turn)
            for t in places:
                best = max(best, (a0 - a1 * t) ** 2 / (d0 - 2 * d1 * t + k * t * t))
        return best


# The rule of ordered energies


class Interval:
    """Two ends of a positive number."""

    def __init__(self, low: Fraction, high: Fraction) -> None:
        self.low, self.high = low, high


class Energies:
    """min of sum_i mu_i v_i'Sv_i over sum mu = 1, mu_i >= sigma mu_(i+1), mu >= 0.

    S = I - D^-1/2 W D^-1/2, W_pq = exp(T_pq), D the diagonal matrix of the sums of its rows.
    """

    def __init__(self, data: dict) -> None:
        self.scale, self.shift = units(data)
        n = whole("points", data.get("points"), 1)
        self.sigma = number(data.get("sigma"))
        need(self.sigma >= 1, "sigma is below 1")
        T = Symmetric.read("T", data.get("T"), n)
        columns = listed("V", data.get("V"))
        need(len(columns) > 0, "V has no columns")
        self.V = [Vector.read("a column of V", column, n) for column in columns]
        values: dict[int, Interval] = {}
        for value in {0, *(value for _, _, value in T.entries)}:
            t = Fraction(value, T.over)
            need(abs(t) <= 64, "an entry of T is out of range")
            low, high = (exp_of(abs(t), up) for up in (0, 1))
            values[value] = Interval(low, high) if t >= 0 else Interval(1 / high, 1 / low)
        W = [[values[0]] * n for _ in range(n)]
        for i, j, value in T.entries:
            W[i][j] = W[j][i] = values[value]
        # 1 / D^1/2 in units of 2^-BITS, rounded down and up.
        sums = [(sum(w.low for w in row), sum(w.high for w in row)) for row in W]
        below = [isqrt((1 << (2 * BITS)) * high.denominator // high.numerator) for _, high in sums]
        above = [isqrt((1 << (2 * BITS)) * low.denominator // low.numerator) + 1 for low, _ in sums]
        one = 1 << BITS
        low = {key: int(w.low * one) for key, w in values.items()}
        high = {key: int(w.high * one) + 1 for key, w in values.items()}
        keys = [[0] * n for _ in range(n)]
        for i, j, value in T.entries:
            keys[i][j] = keys[j][i] = value
        # W_pq / (D_p D_q)^1/2 in units of 2^-(3 BITS).
        self.low = [[low[keys[i][j]] * below[i] * below[j] for j in range(i + 1)] for i in range(n)]
        self.high = [
            [high[keys[i][j]] * above[i] * above[j] for j in range(i + 1)] for i in range(n)
        ]

    def energy(self, v: Vector) -> Interval:
        least = most = 0
        for i, left in enumerate(v.of):
            for j in range(i + 1):
                term = left * v.of[j] * (1 if i == j else 2)
                if term > 0:
                    least += term * self.low[i][j]
                    most += term * self.high[i][j]
                elif term < 0:
                    least += term * self.high[i][j]
                    most += term * self.low[i][j]
        over = v.over**2 << (3 * BITS)
        square = v.dot(v)
        return Interval(square - Fraction(most, over), square - Fraction(least, over))

    def ends(self, witness: dict) -> tuple[Fraction, Fraction]:
        """The smallest weighted mean of the first energies: the vertices are these prefixes."""
        weight, total = Fraction(1), Fraction(0)
        low = high = Fraction(0)
        best: tuple[Fraction, Fraction] | None = None
        for v in self.V:
            found = self.energy(v)
            low, high, total = low + weight * found.low, high + weight * found.high, total + weight
            ends = (low / total, high / total)
            best = ends if best is None else (min(best[0], ends[0]), min(best[1], ends[1]))
            weight /= self.sigma
        assert best is not None
        return best


# The rule of polynomial programs

Polynomial = dict  # the factor of each monomial, by the exponents of all variables


def poly_plus(p: Polynomial, q: Polynomial, factor: Fraction = Fraction(1)) -> Polynomial:
    total = dict(p)
    for key, value in q.items():
        total[key] = total.get(key, Fraction(0)) + factor * value
    return {key: value for key, value in total.items() if value}


def poly_times(p: Polynomial, q: Polynomial) -> Polynomial:
    need(len(p) * len(q) <= MAX_TERMS, f"a product has more than {MAX_TERMS} terms")
    total: Polynomial = {}
    for one, a in p.items():
        for other, b in q.items():
            key = tuple(i + j for i, j in zip(one, other, strict=True))
            need(sum(key) <= MAX_DEGREE, f"a monomial has a degree beyond {MAX_DEGREE}")
            total[key] = total.get(key, Fraction(0)) + a * b
    return {key: value for key, value in total.items() if value}


class PolynomialProgram:
    """inf f(x) over all real x with g_i(x) >= 0 and h_j(x) = 0; f - lower = sum w s^2 g.. + sum q h."""

    def __init__(self, data: dict) -> None:
        self.scale, self.shift = units(data)
        names = listed("variables", data.get("variables"))
        need(all(isinstance(name, str) for name in names), "a variable has no name")
        self.n = len(names)
        self.objective = self.expanded(data.get("objective"))
        self.nonnegative = [self.expanded(g) for g in listed("g", data.get("nonnegative", []))]
        self.zero = [self.expanded(h) for h in listed("h", data.get("zero", []))]

    def expanded(self, part: object, depth: int = 0) -> Polynomial:
        """A number, the index of a variable, or ["+", ..], ["*", ..], ["^", expression, exponent]."""
        need(depth <= MAX_DEPTH, "an expression is nested too deeply")
        if isinstance(part, str):
            value = number(part)
            return {(0,) * self.n: value} if value else {}
        if not isinstance(part, list):
            k = whole("a variable", part)
            need(k < self.n, "there is no such variable")
            return {tuple(int(i == k) for i in range(self.n)): Fraction(1)}
        need(len(part) > 1 and part[0] in ("+", "*", "^"), "an expression has no operator")
        if part[0] == "^":
            need(len(part) == 3, "a power has one exponent")
            times = whole("an exponent", part[2], 1)
            need(times <= MAX_POWER, f"an exponent is beyond {MAX_POWER}")
            parts = [self.expanded(part[1], depth + 1)] * times
        else:
            parts = [self.expanded(each, depth + 1) for each in part[1:]]
        total = parts[0]
        for each in parts[1:]:
            total = poly_plus(total, each) if part[0] == "+" else poly_times(total, each)
        return total

    def value(self, p: Polynomial, x: Vector) -> Fraction:
        total = Fraction(0)
        for key, factor in p.items():
            total += factor * prod(x[i] ** power for i, power in enumerate(key))
        return total

    def ends(self, witness: dict) -> tuple[Fraction, Fraction]:
        x = Vector.read("x", witness.get("x"), self.n)
        need(
            all(self.value(g, x) >= 0 for g in self.nonnegative), "the point violates a constraint"
        )
        need(all(self.value(h, x) == 0 for h in self.zero), "the point violates an equation")
        rest = self.objective
        for square in listed("squares", witness.get("squares", [])):
            need(isinstance(square, dict), "a square is no object")
            weight = number(square.get("weight", "0x1"))
            need(weight >= 0, "a square has a negative weight")
            root = self.expanded(square.get("of"))
            term = poly_times(root, root)
            for k in listed("times", square.get("times", [])):
                term = poly_times(term, self.chosen(self.nonnegative, k))
            rest = poly_plus(rest, term, -weight)
        for zero in listed("zeros", witness.get("zeros", [])):
            need(isinstance(zero, dict), "a multiple of an equation is no object")
            term = poly_times(
                self.expanded(zero.get("of")), self.chosen(self.zero, zero.get("times"))
            )
            rest = poly_plus(rest, term, Fraction(-1))
        constant = (0,) * self.n
        need(rest.keys() <= {constant}, "the squares do not add up to the objective")
        return rest.get(constant, Fraction(0)), self.value(self.objective, x)

    def chosen(self, parts: list[Polynomial], index: object) -> Polynomial:
        k = whole("a constraint", index)
        need(k < len(parts), "there is no such constraint")
        return parts[k]


# Certificates


def without_repetition(pairs: list[tuple[str, object]]) -> dict:
    keys = [key for key, _ in pairs]
    need(len(set(keys)) == len(keys), "a key stands there twice")
    return dict(pairs)


def no_float(text: str) -> float:
    raise Rejected(f"{text[:40]} is a decimal number; numbers are written in hexadecimal digits")


def read(text: str) -> dict:
    try:
        found = json.loads(
            text,
            object_pairs_hook=without_repetition,
            parse_float=no_float,
            parse_constant=no_float,
        )
    except (ValueError, RecursionError) as error:
        raise Rejected(f"this is no JSON: {error}") from None
    need(isinstance(found, dict) and found.get("format") == FORMAT, f"this is no {FORMAT!r}")
    for name in ("problem", "claim", "witness"):
        need(isinstance(found.get(name), dict), f"{name} is missing")
    return found


def digest(problem: dict) -> str:
    text = json.dumps(problem, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


RULES: dict[str, type] = {
    "cone program": ConeProgram,
    "saddle program": SaddleProgram,
    "graph log det": GraphLogDet,
    "alignment level": Levels,
    "ordered energies": Energies,
    "polynomial program": PolynomialProgram,
}


def check(text: str) -> str:
    """Return what is proven, in a sentence; raise `Rejected` where it is not."""
    data = read(text)
    problem, claim, witness = data["problem"], data["claim"], data["witness"]
    rule = problem.get("rule")
    need(isinstance(rule, str) and rule in RULES, f"there is no rule {rule!r}")
    need(data.get("digest") == digest(problem), "the digest is that of another problem")
    program = RULES[rule](problem)
    verdict = claim.get("verdict")
    if isinstance(program, ConeProgram) and verdict == "INFEASIBLE":
        need(
            program.bound_by(witness, objective=False) > 0, "the multipliers prove no contradiction"
        )
        return "INFEASIBLE: no point satisfies the constraints"
    if isinstance(program, ConeProgram) and verdict == "UNBOUNDED":
        program.value_at(witness)
        program.need_ray(witness)
        return "UNBOUNDED: from a feasible point the objective improves without end"
    need(verdict in ("OPTIMAL", "FEASIBLE"), f"there is no verdict {verdict!r}")
    ends = program.ends(witness)
    proven = [None if end is None else program.scale * end + program.shift for end in ends]
    lower, upper = proven if program.scale > 0 else proven[::-1]
    said = []
    for name, end, sign in (("lower", lower, 1), ("upper", upper, -1)):
        if claim.get(name) is None:
            said.append(None)
            continue
        value = number(claim[name])
        need(end is not None, f"nothing proves the {name} end")
        need(sign * (end - value) >= 0, f"the {name} end that is claimed is not what is proven")
        said.append(value)
    low, high = said
    need(low is not None or high is not None, "nothing is claimed")
    if verdict == "OPTIMAL":
        need(low is not None and high is not None, "an end is missing")
        tol = number(claim.get("tol"))
        need(high - low <= tol * (1 + abs(high)), "the interval is wider than the tolerance says")
    shown = " <= ".join(
        part
        for part in (
            low is not None and shown_number(low),
            "optimum",
            high is not None and shown_number(high),
        )
        if part
    )
    return f"{verdict}: {shown}"


def shown_number(value: Fraction) -> str:
    """About the value, for reading."""
    try:
        return f"{float(value):.12g}"
    except OverflowError:
        return "a number beyond float64"


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 2
    worst = 0
    for path in arguments:
        try:
            with open(path, encoding="utf-8") as file:
                print(f"{path}: proven: {check(file.read())}")
        except Rejected as reason:
            print(f"{path}: REJECTED: {reason}")
            worst = max(worst, 1)
        except (OSError, UnicodeDecodeError) as error:
            print(f"{path}: cannot be read: {error}")
            worst = 2
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
