#!/usr/bin/env python3
"""Checks certificates of cone programs in exact arithmetic, with nothing but Python's own library.

    python klopt_check.py FILE [FILE ..]          exit code 0: every certificate proves its claim

The format is described in docs/certificate-format.md. All numbers are integers over one common
denominator for each array; nothing is ever rounded, except outwards in the bounds of exp and log. The rule:

    minimise  x'Px/2 + c'x   subject to   b - Ax in K,   x'P_i x/2 + q_i'x <= r_i

    point        x with b - Ax in K and x'P_i x/2 + q_i'x <= r_i:  optimum <= x'Px/2 + c'x
    multipliers  y in K*, lam >= 0, w with Hw + c + A'y + sum lam_i q_i = 0, H = P + sum lam_i P_i psd:
                 optimum >= -w'Hw/2 - b'y - lam'r
    no point     the same with P = 0 and c = 0, and a bound above 0
    no optimum   a point, and d with Pd = 0, P_i d = 0, q_i'd <= 0, -Ad in K, c'd < 0

If only H + phi D is positive semidefinite, D = 1 on the diagonal for the variables that H has
entries of, and lower <= x <= upper for these by nonnegative rows with a single entry, the bound is
less by phi/2 times the sum over them of max((lower_j - w_j)^2, (upper_j - w_j)^2).

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
from fractions import Fraction
from math import isqrt, lcm

FORMAT = "klopt certificate 1"
MAX_EXPONENT = 20_000  # of a number written in hexadecimal digits
MAX_ELIMINATION = 100  # the order up to which a matrix needs no factor
MAX_ARGUMENT = 5_000  # of exp
MAX_POWER = 32  # the sum of the weights of a power cone up to which powers are compared themselves
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
    # S - LL' times both denominators.
    square = L.over * L.over
    rest = product_with_transpose(L)
    for key, value in rest.items():
        rest[key] = -value * S.over
    for i, j, value in S.entries:
        rest[i, j] = rest.get((i, j), 0) + value * square
    room = [0] * S.rows
    for (i, j), value in rest.items():
        if i == j:
            room[i] += value
        else:
            room[i] -= abs(value)
            room[j] -= abs(value)
    need(all(value >= 0 for value in room), f"{name} is not shown to be positive semidefinite")


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
        self.scale = number(data.get("scale", "0x1"))
        self.shift = number(data.get("shift", "0x0"))
        need(self.scale != 0, "the objective is multiplied by 0")
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

    def in_cones(self, name: str, s: Vector, dual: bool, factors: dict) -> None:
        for index, (kind, size, start, stop) in enumerate(self.blocks):
            where = f"{name} {index}"
            need_in_cone(where, kind, size, s.part(start, stop), dual, factors.get(where))

    def value_at(self, witness: dict) -> Fraction:
        """The value of the form at a feasible point: an upper bound of its optimum."""
        x = Vector.read("x", witness.get("x"), self.n)
        slack = self.b.plus(self.A.times(x), Fraction(-1))
        self.in_cones("slack", slack, False, factors_of(witness))
        for index, (P, q, r) in enumerate(self.quadratics):
            need(P.times(x).dot(x) / 2 + q.dot(x) <= r, f"quadratic constraint {index} is violated")
        return self.P.times(x).dot(x) / 2 + self.c.dot(x)

    def bound_by(self, witness: dict, objective: bool) -> Fraction:
        """The lower bound by multipliers, of the objective or of 0."""
        y = Vector.read("y", witness.get("y"), self.A.rows)
        factors = factors_of(witness)
        self.in_cones("multipliers", y, True, factors)
        H = self.P if objective else Symmetric(self.n, self.n, [], 1)
        gradient = self.A.transposed_times(y)
        if objective:
            gradient = gradient.plus(self.c)
        value = -self.b.dot(y)
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

    def largest_square(self, w: Vector, curved: list[int]) -> Fraction:
        """The largest sum of (x_j - w_j)^2 over the box that rows with a single entry state."""
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
        need(all(j in below and j in above for j in curved), "phi needs bounds of the variables")
        return sum(
            (max((below[j] - w[j]) ** 2, (above[j] - w[j]) ** 2) for j in curved), Fraction(0)
        )

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


def listed(name: str, data: object) -> list:
    need(isinstance(data, list), f"{name} is no list")
    return data


def factors_of(witness: dict) -> dict:
    found = witness.get("factors", {})
    need(isinstance(found, dict), "factors are given by name")
    return found


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


def check(text: str) -> str:
    """Return what is proven, in a sentence; raise `Rejected` where it is not."""
    data = read(text)
    problem, claim, witness = data["problem"], data["claim"], data["witness"]
    need(problem.get("rule") == "cone program", f"there is no rule {problem.get('rule')!r}")
    need(data.get("digest") == digest(problem), "the digest is that of another problem")
    program = ConeProgram(problem)
    verdict = claim.get("verdict")
    if verdict == "INFEASIBLE":
        need(
            program.bound_by(witness, objective=False) > 0, "the multipliers prove no contradiction"
        )
        return "INFEASIBLE: no point satisfies the constraints"
    if verdict == "UNBOUNDED":
        program.value_at(witness)
        program.need_ray(witness)
        return "UNBOUNDED: from a feasible point the objective improves without end"
    need(verdict in ("OPTIMAL", "FEASIBLE"), f"there is no verdict {verdict!r}")
    need("x" in witness, "no point is given")
    ends = [program.bound_by(witness, objective=True)] if "y" in witness else [None]
    ends.append(program.value_at(witness))
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
