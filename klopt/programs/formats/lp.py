"""Reads linear and quadratic programs from CPLEX LP files.

    Minimize obj: .. + [ .. ] / 2    Subject To    name: .. <= ..    Bounds    .. <= x <= ..    End

HiGHS reads such files too, but drops a constant on the left of a row, the first of two numbers in
a row and coefficients below 1e-12, names no line, and is compiled code that a stranger's file
should not reach. klopt reads what HiGHS reads, and also rows with two sides.

A term is a sign, a number and a name, of which some may be left out; signs are needed between
terms. Words are told apart by where they stand: `free` after a sign is a variable.

Where spaces stand between all tokens, as most programs write them, the file is cut at spaces, which
is several times as fast as to look for tokens. A file that cannot be read so is read with care.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count, islice
from math import inf, isinf
from typing import NamedTuple

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray, IntArray, SparseMatrix, csc
from klopt.errors import InvalidProblem
from klopt.programs.decimals import decimal
from klopt.programs.formats.model import FileNumbers, Model, Names, floats, from_infinite
from klopt.programs.formats.source import SourceFile
from klopt.proof.rational import Number

__all__ = ["KEEPS_DECIMALS", "read"]

KEEPS_DECIMALS = True
MAX_WORD_IN_MESSAGE = 60
TOKENS_BETWEEN_LOOKS = 100_000
"""How many tokens are read between two looks at the clock."""
BLOCK_CHARACTERS = 1 << 18
"""How much text is cut into tokens between two looks at the clock."""
LOOK_AHEAD = 5
"""How many tokens are looked at together."""

_TOKEN = re.compile(
    r"[+-]"
    r"|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"  # a number
    r"|[!-),;?-Z_-~\x80-\U0010ffff][!-),.;0-9?-Z_-~\x80-\U0010ffff]*"  # a name
    r"|=[<>]|[<>=]=?|\S"
)
_SIGNED_EXPONENTS = ("e+", "e-", "E+", "E-")
_MANTISSA = re.compile(r"[0-9]+\.?[0-9]*|\.[0-9]+")
_SPACE, _WORD, _SIGN, _OTHER = range(4)
_KIND_OF = np.full(256, _OTHER, dtype=np.uint8)
_KIND_OF[list(b" \t\n\r\v\f")] = _SPACE
_KIND_OF[list(b"!\"#$%&'(),;?@_`{|}~.")] = _WORD
_KIND_OF[[letter for letter in range(128) if chr(letter).isalnum()]] = _WORD
_KIND_OF[list(b"<>=:+-*/^[]")] = _SIGN
_NOT_A_NAME = frozenset(["", *"<>=:+-*/^[]0123456789."])
_DIGITS = frozenset("0123456789.")
_SENSES = {"<": "<=", "<=": "<=", "=<": "<=", ">": ">=", ">=": ">=", "=>": ">=", "=": "="}
_MINIMISE = {"min", "minimize", "minimise", "minimum"}
_MAXIMISE = {"max", "maximize", "maximise", "maximum"}
_INFINITE = {"inf", "infinity"}
_BOUNDS = {"bound", "bounds"}
_INTEGERS = {
    "gen", "general", "generals", "int", "integer", "integers", "bin", "binary", "binaries",
    "semi", "semis", "sos", "sos1", "sos2",
}  # fmt: skip
_KEYWORDS = {"subject", "such", "st", "s.t.", "st.", "end"} | _BOUNDS | _INTEGERS
_END = ""
"""What stands after the last token."""


class _Expression(NamedTuple):
    """Terms, as texts of coefficients and numbers of columns, and the texts of constants."""

    coefficients: list[str]
    columns: list[int]
    constants: list[str]


@dataclass
class _LpDraft:
    """What has been read so far; columns are numbered as they come."""

    maximise: bool = False
    columns: defaultdict[str, int] = field(default_factory=lambda: defaultdict(count().__next__))
    plain: dict[str, int] = field(default_factory=dict)
    """Those of the columns that were seen to be names and no words of the format."""
    objective: _Expression = field(default_factory=lambda: _Expression([], [], []))
    squares: list[tuple[int, int, str]] = field(default_factory=list)
    rows: dict[str, int] = field(default_factory=dict)
    coefficients: list[str] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    """Where the terms of each row end."""
    sides: list[tuple[Number, Number]] = field(default_factory=list)
    low: dict[int, Number] = field(default_factory=dict)
    high: dict[int, Number] = field(default_factory=dict)


def read(source: SourceFile) -> Model:
    """Return the model that an LP file states, its decimals beside it if they are kept."""
    text = source.text()
    # The rest of a line after a backslash is a comment.
    if "\\" in text:
        text = re.sub(r"\\[^\n]*", "", text)
    words = _all_words(source, text)
    if words is not None:
        with suppress(InvalidProblem, ValueError):
            return _read(source, text, words)
    tokens: list[str] = []
    for start, end in _blocks(source, text):
        tokens += _TOKEN.findall(text, start, end)
    return _read(source, text, tokens)


def _blocks(source: SourceFile, text: str) -> Iterator[tuple[int, int]]:
    """Where parts of the text start and end; no token goes beyond a line."""
    start = 0
    while start < len(text):
        source.check_time()
        end = text.find("\n", start + BLOCK_CHARACTERS) + 1 or len(text)
        yield start, end
        start = end


def _all_words(source: SourceFile, text: str) -> list[str] | None:
    """The tokens of a text in which spaces stand between them; None for other texts."""
    if not text.isascii():
        return None
    found: list[str] = []
    for start, end in _blocks(source, text):
        words = _words(text[start:end])
        if words is None:
            return None
        found += words
    return found


def _read(source: SourceFile, text: str, tokens: list[str]) -> Model:
    reader = _LpReader(source, text, tokens)
    reader.objective()
    reader.rows()
    reader.bounds()
    reader.end()
    return _model(reader)


def _words(text: str) -> list[str] | None:
    """The tokens of some lines in which spaces stand between them; None for other lines."""
    text = text.replace(":", " : ")
    # HiGHS writes +3 x; the sign of an exponent belongs to its number.
    if not any(sign in text for sign in _SIGNED_EXPONENTS):
        text = text.replace("+", " + ").replace("-", " - ")
    kinds = _KIND_OF[np.frombuffer(text.encode("ascii"), dtype=np.uint8)]
    if kinds.max(initial=0) == _OTHER:
        return None
    touching = (kinds[1:] != _SPACE) & (kinds[:-1] != _SPACE)
    touching &= (kinds[1:] == _SIGN) | (kinds[:-1] == _SIGN)
    exponent_at = -1
    for place in np.flatnonzero(touching).tolist():
        pair = text[place : place + 2]
        if pair in _SENSES or place == exponent_at + 1:
            continue
        exponent_at = place
        # The longest number that is worth a look; a name such as x1e is none.
        start = max(place - 40, 0)
        before = text[start:place].split()[-1:] if text[place] in "eE" else []
        if not before or not _MANTISSA.fullmatch(before[0]) or pair[1] not in "+-":
            return None
    return text.split()


class _LpReader:
    """The tokens of a file and how far they have been read."""

    def __init__(self, source: SourceFile, text: str, tokens: list[str]) -> None:
        self.source = source
        self.text = text
        self.tokens = [*tokens, *[_END] * LOOK_AHEAD]
        if "." in tokens:
            raise self.wrong("a point stands alone; expected a number", tokens.index("."))
        self.at = 0
        self.look_at = TOKENS_BETWEEN_LOOKS
        self.draft = _LpDraft()

    def word(self) -> str:
        """The token that is next, in lower case."""
        return str(self.tokens[self.at]).lower()

    def wrong(self, text: str, at: int | None = None) -> InvalidProblem:
        """The error for what stands at a token, by default the next one."""
        place = self.at if at is None else at
        return self.source.malformed(self.line(place), text)

    def wrong_number(self, text: str, what: str) -> InvalidProblem:
        """The error for a number of which only the text is known."""
        number = text.removeprefix("-")
        return self.wrong(what, self.tokens.index(number) if number in self.tokens else self.at)

    def fraction(self, text: str) -> Fraction:
        """The rational number that a text states."""
        try:
            found = decimal(text)
        except ValueError as error:
            raise self.wrong_number(text, str(error)) from None
        if isinf(found):
            raise self.wrong_number(text, f"{text[:60]} is not a finite number")
        return Fraction(found)

    def line(self, at: int) -> int:
        """The line of a token; looked for only where something is wrong."""
        found = next(islice(_TOKEN.finditer(self.text), at, None), None)
        end = len(self.text.rstrip()) if found is None else found.start()
        return self.text.count("\n", 0, end) + 1

    def show(self, at: int | None = None) -> str:
        token = self.tokens[self.at if at is None else at]
        return repr(token[:MAX_WORD_IN_MESSAGE]) if token else "the end of the file"

    def is_name(self, at: int) -> bool:
        token = self.tokens[at]
        return bool(token) and token[0] not in _NOT_A_NAME

    def label(self) -> str | None:
        """A name and a colon, if they are next."""
        if self.tokens[self.at + 1 : self.at + 2] != [":"]:
            return None
        if not self.is_name(self.at):
            raise self.wrong(f"{self.show()} stands before a colon; expected a name")
        name = self.tokens[self.at]
        self.at += 2
        return str(name)

    def expression(self, found: _Expression | None = None) -> _Expression:
        """Read terms until something else comes, after those that were found."""
        if self.at > self.look_at:
            self.source.check_time()
            self.look_at = self.at + TOKENS_BETWEEN_LOOKS
        tokens = self.tokens
        keywords = _KEYWORDS
        digits = _DIGITS
        not_a_name = _NOT_A_NAME
        columns = self.draft.columns
        plain = self.draft.plain
        found = _Expression([], [], []) if found is None else found
        add_coefficient = found.coefficients.append
        add_column = found.columns.append
        at = self.at
        while True:
            token = tokens[at]
            # Most terms are a sign, a number and a name.
            if token == "+" or token == "-":
                number = tokens[at + 1]
                name = tokens[at + 2]
                if number[:1] in digits and tokens[at + 3] != ":":
                    column = plain.get(name)
                    if (
                        column is None
                        and name[:1] not in not_a_name
                        and name.lower() not in keywords
                    ):
                        column = plain[name] = columns[name]
                    if column is not None:
                        add_coefficient(number if token == "+" else "-" + number)
                        add_column(column)
                        at += 3
                        continue
            following = self.term(at, found)
            if following == at:
                break
            at = following
        self.at = at
        return found

    def term(self, at: int, found: _Expression) -> int:
        """Read a term of any kind that starts at a token; return the token after it, or `at`."""
        sign, start = self.signs(at)
        token = self.tokens[start]
        is_first = not (found.columns or found.constants)
        if token[:1] in _DIGITS:
            if start == at and not is_first:
                raise self.wrong(f"expected a sign before {self.show(at)}", at)
            name = self.tokens[start + 1]
            if name[:1] in _DIGITS:
                raise self.wrong(f"{self.show(start + 1)} follows a number", start + 1)
            # A name after a number is a term, anything else makes it a constant.
            if name[:1] in _NOT_A_NAME or self.opens_statement(start + 1):
                found.constants.append(sign + token)
                return start + 1
            found.coefficients.append(sign + token)
            found.columns.append(self.draft.columns[name])
            return start + 2
        if token and token[0] not in _NOT_A_NAME:
            # Without a sign only the first term may stand.
            if start == at and (not is_first or self.opens_statement(at)):
                return at
            if token.lower() in _INFINITE:
                found.constants.append(sign + "inf")
            else:
                found.coefficients.append(sign + "1")
                found.columns.append(self.draft.columns[token])
            return start + 1
        if start > at and token != "[":
            raise self.wrong(f"{self.show(start)} follows a sign; expected a term", start)
        return at

    def signs(self, at: int) -> tuple[str, int]:
        """The product of signs that start at a token, and the token after them."""
        sign = ""
        while self.tokens[at] in ("+", "-"):
            if self.tokens[at] == "-":
                sign = "" if sign else "-"
            at += 1
        return sign, at

    def opens_statement(self, at: int) -> bool:
        """Whether a name is the label of a row or opens the next section."""
        return self.tokens[at + 1] == ":" or self.starts_section(at)

    def starts_section(self, at: int) -> bool:
        """Whether the token at a place opens the next section."""
        word = self.tokens[at].lower()
        if word not in _KEYWORDS:
            return False
        following = self.tokens[at + 1].lower()
        if word in ("subject", "such"):
            return following == ("to" if word == "subject" else "that")
        return following != ":"  # a name before a colon is a label

    def objective(self) -> None:
        draft = self.draft
        sense = self.word()
        if sense not in _MINIMISE | _MAXIMISE:
            raise self.wrong(f"expected Minimize or Maximize, found {self.show()}")
        draft.maximise = sense in _MAXIMISE
        self.at += 1
        self.label()
        found = draft.objective
        self.expression(found)
        # Quadratic terms may stand between linear ones.
        while self.tokens[self.at] in ("[", "+", "-"):
            self.quadratic()
            self.expression(found)
        if any("inf" in text for text in draft.objective.constants):
            raise self.wrong("the constant of the objective is not a finite number")

    def quadratic(self) -> None:
        """Read [ .. ] / 2."""
        sign, self.at = self.signs(self.at)
        self.take("[")
        while self.tokens[self.at] != "]":
            self.square(sign)
        self.at += 1
        self.take("/")
        if self.tokens[self.at] not in ("2", "2.0"):
            raise self.wrong(f"expected [ .. ] / 2, found {self.show()} after the slash")
        self.at += 1

    def square(self, sign: str) -> None:
        """Read a number and x ^ 2 or x * y, in brackets whose sign is given."""
        inner, self.at = self.signs(self.at)
        sign = "-" if sign != inner else ""
        number = "1"
        if self.tokens[self.at][:1] in _DIGITS:
            number = self.tokens[self.at]
            self.at += 1
            if self.tokens[self.at] == "*":
                self.at += 1
        first = self.name()
        if self.tokens[self.at] == "^":
            self.at += 1
            if self.tokens[self.at] not in ("2", "2.0"):
                raise self.wrong(f"expected the exponent 2, found {self.show()}")
            self.at += 1
            second = first
        else:
            self.take("*")
            second = self.name()
        self.draft.squares.append((first, second, sign + number))

    def name(self) -> int:
        """Read the name of a variable."""
        if not self.is_name(self.at):
            raise self.wrong(f"expected the name of a variable, found {self.show()}")
        self.at += 1
        return self.draft.columns[self.tokens[self.at - 1]]

    def take(self, token: str) -> None:
        if self.tokens[self.at] != token:
            raise self.wrong(f"expected {token!r}, found {self.show()}")
        self.at += 1

    def rows(self) -> None:
        word = self.word()
        if word in ("subject", "such") and self.starts_section(self.at):
            self.at += 2
        elif word in ("st", "s.t.", "st."):
            self.at += 1
        elif not self.starts_section(self.at):
            raise self.wrong(f"expected a sign, a term or Subject To, found {self.show()}")
        while self.tokens[self.at] and not self.starts_section(self.at):
            self.row()

    def row(self) -> None:
        draft = self.draft
        start = self.at
        name = self.label()
        if name is None:
            name = f"R{len(draft.rows)}"
            while name in draft.rows:
                name += "_"
        elif name in draft.rows:
            raise self.wrong(f"the row {name[:MAX_WORD_IN_MESSAGE]!r} was named before", start)
        first = self.at
        left = self.expression()
        if self.tokens[self.at] == "[":
            raise self.wrong("quadratic constraints are not read from LP files; write .npz")
        sense = self.sense()
        # HiGHS writes a row without entries as its name, a sign and a number.
        is_empty = start != first and not (left.columns or left.constants)
        if left.columns or is_empty:
            # One number; what follows it is the next row.
            terms = left
            low, high = self.limits(sense, self.signed_number(), left.constants)
            if self.tokens[self.at] in _SENSES:
                raise self.wrong("a row with two sides starts with a number: 1 <= x + y <= 2")
        else:
            # A number stands first: number <= terms, and perhaps <= number.
            terms = self.expression()
            if len(left.constants) != 1:
                raise self.wrong("expected terms and a number in a row", start)
            low, high = self.limits(_TURNED[sense], left.constants[0], terms.constants)
            if self.tokens[self.at] in _SENSES:
                if self.sense() != sense or sense == "=":
                    raise self.wrong("the two signs of a row differ; write it as two rows", start)
                other = self.limits(sense, self.signed_number(), terms.constants)
                low = max(low, other[0])
                high = min(high, other[1])
        if not (terms.columns or is_empty):
            raise self.wrong("a row has no variable; remove it, or write 0 x", start)
        draft.rows[name] = len(draft.rows)
        draft.coefficients += terms.coefficients
        draft.places += terms.columns
        draft.ends.append(len(draft.places))
        draft.sides.append((low, high))

    def sense(self) -> str:
        token = self.tokens[self.at]
        if token not in _SENSES:
            raise self.wrong(f"expected <=, >= or =, found {self.show()}")
        self.at += 1
        return _SENSES[token]

    def limits(self, sense: str, text: str, moved: list[str]) -> tuple[Number, Number]:
        """The two sides of a row whose terms are `sense` a number; constants move over."""
        value = from_infinite(self.value(text))
        if moved and not isinf(value):
            # The difference is rounded once.
            exact = self.fraction(text) - sum(map(self.fraction, moved), Fraction(0))
            value = exact if self.source.exact else float(exact)
        if sense == "=":
            return value, value
        return (-inf, value) if sense == "<=" else (value, inf)

    def value(self, text: str) -> Number:
        """The number that a text states: as a float or, if that is asked for, as a rational."""
        # Python would read 1_0 as 10.
        if "_" in text:
            raise self.wrong(f"{text!r} is not a number", self.at - 1)
        rounded = float(text)
        # 1e400 is infinite, too.
        return self.fraction(text) if self.source.exact and not isinf(rounded) else rounded

    def bounds(self) -> None:
        if self.word() not in _BOUNDS:
            return
        self.at += 1
        while self.tokens[self.at] and not self.starts_section(self.at):
            self.bound()

    def bound(self) -> None:
        """Read x free, x <= u, l <= x, l <= x <= u or x = v."""
        if self.at > self.look_at:
            self.source.check_time()
            self.look_at = self.at + TOKENS_BETWEEN_LOOKS
        low, first, name, second, high = self.tokens[self.at : self.at + LOOK_AHEAD]
        if (
            low[:1] in _DIGITS
            and high[:1] in _DIGITS
            and first == second == "<="
            and name[:1] not in _NOT_A_NAME
        ):
            column = self.draft.columns[name]
            self.draft.low[column] = from_infinite(self.value(low))
            self.draft.high[column] = from_infinite(self.value(high))
            self.at += LOOK_AHEAD
            return
        if not self.is_name(self.at) or self.word() in _INFINITE:
            value = self.bound_value()
            sense = _TURNED[self.sense()]
            column = self.name()
            self.set_bound(column, sense, value)
            if self.tokens[self.at] in _SENSES:
                self.set_bound(column, self.sense(), self.bound_value())
            return
        column = self.name()
        if self.word() == "free":
            self.at += 1
            self.draft.low[column] = -inf
            self.draft.high[column] = inf
            return
        self.set_bound(column, self.sense(), self.bound_value())

    def signed_number(self) -> str:
        """Read a number, which may be infinite, as text."""
        sign, self.at = self.signs(self.at)
        token = self.tokens[self.at]
        if token[:1] in _DIGITS:
            self.at += 1
            return sign + token
        if self.word() in _INFINITE:
            token = "inf"
        else:
            raise self.wrong(f"expected a number, found {self.show()}")
        self.at += 1
        return sign + token

    def bound_value(self) -> Number:
        return from_infinite(self.value(self.signed_number()))

    def set_bound(self, column: int, sense: str, value: Number) -> None:
        if sense != ">=":
            self.draft.high[column] = value
        if sense != "<=":
            self.draft.low[column] = value

    def end(self) -> None:
        if self.word() in _INTEGERS:
            kind = self.show()
            opened = self.at
            self.at += 1
            if self.tokens[self.at] and not self.starts_section(self.at):
                raise self.wrong(f"section {kind}: klopt solves continuous problems only", opened)
            self.end()
            return
        if not self.tokens[self.at]:
            raise self.wrong("the file ends before End; is it whole?")
        if self.word() != "end":
            raise self.wrong(f"expected another section or End, found {self.show()}")
        if self.tokens[self.at + 1]:
            raise self.wrong(f"{self.show(self.at + 1)} stands after End", self.at + 1)


_TURNED = {"<=": ">=", ">=": "<=", "=": "="}


def _model(reader: _LpReader) -> Model:
    source = reader.source
    draft = reader.draft
    n = len(draft.columns)
    m = len(draft.rows)
    ends = np.array([0, *draft.ends])
    row = np.repeat(np.arange(m), ends[1:] - ends[:-1])
    at = (row, np.array(draft.places, dtype=np.intp))
    none = np.zeros(len(draft.objective.columns), dtype=np.intp)
    costs = (none, np.array(draft.objective.columns, dtype=np.intp))
    A, entries = _summed(reader, draft.coefficients, at, (m, n))
    c, objective = _summed(reader, draft.objective.coefficients, costs, (1, n))
    constants = (reader.fraction(text) for text in draft.objective.constants)
    offset = sum(constants, Fraction(0))
    high = np.full(n, np.inf)
    high[list(draft.high)] = np.array(list(draft.high.values()), dtype=float)
    low = np.zeros(n)
    low[list(draft.low)] = np.array(list(draft.low.values()), dtype=float)
    sides = np.array(draft.sides, dtype=float).reshape(-1, 2)
    numbers = None
    if source.exact:
        bounds = ((draft.low.get(j, Fraction(0)), draft.high.get(j, inf)) for j in range(n))
        costs_of = dict(objective[0] if objective else ())
        numbers = FileNumbers(
            c=tuple(costs_of.get(j, Fraction(0)) for j in range(n)),
            rows=tuple(entries),
            row_lower=tuple(side for side, _ in draft.sides),
            row_upper=tuple(side for _, side in draft.sides),
            bounds=tuple(bounds),
            offset=offset,
        )
    return Model(
        c=c.toarray().ravel(),
        A=csc("A", A),
        row_lower=sides[:, 0],
        row_upper=sides[:, 1],
        lower=low,
        upper=high,
        sense="max" if draft.maximise else "min",
        offset=float(offset),
        P=_curvature(reader, n),
        names=Names(tuple(draft.columns), tuple(draft.rows)),
        numbers=numbers,
    )


Rational = list[tuple[tuple[int, Fraction], ...]]


def _summed(
    reader: _LpReader, texts: list[str], at: tuple[IntArray, IntArray], shape: tuple[int, int]
) -> tuple[SparseMatrix, Rational]:
    """The matrix of the numbers in texts, and its rows in rationals where decimals are kept.

    A variable may stand several times in a row: its coefficients are added before they are
    rounded.
    """
    value = _floats(reader, texts)
    matrix = sparse.csc_array((value, at), shape=shape)
    if matrix.nnz == value.size and not reader.source.exact:
        return matrix, []
    rows: list[dict[int, Fraction]] = [{} for _ in range(shape[0])]
    for text, row, column in zip(texts, at[0].tolist(), at[1].tolist(), strict=True):
        rows[row][column] = rows[row].get(column, Fraction(0)) + reader.fraction(text)
    places = [(i, j) for i, terms in enumerate(rows) for j in terms]
    value = np.array([float(v) for terms in rows for v in terms.values()], dtype=float)
    where = np.array(places, dtype=np.intp).reshape(-1, 2).T
    exact = [tuple((j, v) for j, v in terms.items() if v) for terms in rows]
    return sparse.csc_array((value, (where[0], where[1])), shape=shape), exact


def _floats(reader: _LpReader, texts: list[str]) -> FloatArray:
    value = floats(texts)
    if not np.isfinite(value).all():
        first = texts[int(np.argmin(np.isfinite(value)))]
        raise reader.wrong_number(first, f"the coefficient {first[:60]} is not a finite number")
    return value


def _curvature(reader: _LpReader, n: int) -> SparseMatrix | None:
    """P of x'Px/2 = [ .. ] / 2: squares on the diagonal, half of each product on either side."""
    if not reader.draft.squares:
        return None
    first, second, texts = zip(*reader.draft.squares, strict=True)
    half = _floats(reader, list(texts)) / 2
    upper = sparse.csc_array((half, (np.array(first), np.array(second))), shape=(n, n))
    return csc("P", upper + upper.T)
