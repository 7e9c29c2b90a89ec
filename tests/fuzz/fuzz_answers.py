"""Hostile answers: whatever a backend returns or raises becomes numbers and text, and no verdict is false.

    python tests/fuzz/fuzz_answers.py 2000               in this process
    python tests/fuzz/fuzz_answers.py 2000 --isolate     in child processes

Each answer begins as the right one to a linear program whose optimum is 1; then some of its parts are
exchanged for things that raise, lie about their type, are too large, or cannot be printed.
"""

from __future__ import annotations

import argparse
import collections
import ctypes
import datetime
import decimal
import fractions
import random
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

import klopt
from klopt import Answer, Backend, Feature, Stop, Verdict
from klopt.engine.format import document, result_data
from klopt.model.backend import Step

OPTIMUM = 1.0
"""That of the program of `problem`."""
LIMIT_S = 30.0
"""What a solve may take; none takes a second by itself."""

ERRORS: tuple[type[BaseException], ...] = (
    RuntimeError, OSError, ValueError, TypeError, AttributeError, KeyError, MemoryError,
    RecursionError, OverflowError, StopIteration, GeneratorExit, BufferError, AssertionError,
    UnicodeError,
)  # fmt: skip
METHODS = (
    "__array__", "__str__", "__repr__", "__int__", "__index__", "__float__", "__eq__", "__hash__",
    "__len__", "__iter__", "__bool__", "__getitem__", "__format__", "__class__", "__getattribute__",
    "__array_interface__", "__array_struct__", "__array_finalize__", "__array_ufunc__", "__lt__",
    "__neg__", "__abs__", "__reduce__", "__reduce_ex__", "__dlpack__", "__buffer__",
)  # fmt: skip
BASES: tuple[tuple[type, ...], ...] = ((), (int,), (float,), (str,), (list,), (tuple,), (dict,))
TEXTS = (
    "\ud800", "\udfff\ud800", "\0", "a\0b", "\x1b[2J\x1b]0;title\x07", "\r\n" * 50, "\u202e", "x" * 10**6,
    "<script>alert(1)</script>", "=1+1", "', DROP TABLE runs; --", "\ufeff", "%s%n{0.__class__}", "",
)  # fmt: skip
NUMBERS = (
    2**70, -(2**70), 10**400, float("nan"), float("inf"), -float("inf"), 1e308, 5e-324, -1, True,
    1j, fractions.Fraction(1, 3), decimal.Decimal("1e1000"), np.float16(3), np.int8(-1),
    np.longdouble("1e4000"), np.datetime64("2020-01-01"), datetime.timedelta(1), None, NotImplemented, ...,
)  # fmt: skip


class Panic(BaseException):
    """What a Rust panic looks like from Python: no Exception."""


def problem() -> klopt.Problem:
    """Minimise x + y over x + 2 y >= 2, x, y >= 0; the optimum is 1, at (0, 1)."""
    return klopt.problems.LP([1, 1], A_ub=[[-1, -2]], b_ub=[-2])


def raising(rng: random.Random) -> object:
    """An object of some class, one or two of whose methods raise something."""
    error = rng.choice((*ERRORS, Panic))

    def method(self: object, *_: object, **__: object) -> object:
        raise error("boo")

    names = rng.sample(METHODS, rng.choice((1, 1, 2)))
    # What prevents the object from being made would be no answer.
    members = {name: method for name in names if name != "__getattribute__" or rng.random() < 0.5}
    if "__class__" in members:
        members["__class__"] = property(method)  # type: ignore[assignment]
    if rng.random() < 0.2:
        members["__array_interface__"] = property(method)  # type: ignore[assignment]
    return type("Raises", rng.choice(BASES), members)()


class Strange(np.ndarray):
    """A subclass of an array that raises where NumPy asks it."""

    def __array_ufunc__(self, *_: object, **__: object) -> Any:
        raise RuntimeError("no ufunc")

    def __array_function__(self, *_: object, **__: object) -> Any:
        raise RuntimeError("no function")

    def __getitem__(self, key: Any) -> Any:
        raise RuntimeError("no entry")

    def astype(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("no type")

    @property
    def shape(self) -> Any:  # type: ignore[override]
        return (2,)


def array(rng: random.Random, size: int) -> object:
    """Something that looks like a vector of so many numbers, and mostly is none."""
    good = np.array([0.0, 1.0, *np.zeros(max(size - 2, 0))])[:size]
    buffer = (ctypes.c_double * size)(*good)
    makers: tuple[Callable[[], object], ...] = (
        lambda: np.ma.array(good, mask=[rng.random() < 0.5 for _ in good]),
        lambda: np.rec.array([(entry,) for entry in good], dtype=[("a", float)]),
        lambda: np.array([(entry, 1) for entry in good], dtype=[("a", float), ("b", int)]),
        lambda: good.astype("datetime64[s]"),
        lambda: good.astype("timedelta64[s]"),
        lambda: good.astype("S8"),
        lambda: good.astype(str),
        lambda: good.astype(object),
        lambda: good.astype(complex),
        lambda: good.astype(np.longdouble) * np.longdouble("1e4000"),
        lambda: good.astype(np.float16),
        lambda: good.astype(">f8"),
        lambda: good.astype(bool),
        lambda: good.view(Strange),
        lambda: np.matrix(good),
        lambda: np.broadcast_to(good[:1], 10**12),
        lambda: np.lib.stride_tricks.as_strided(good, (size,), (-8,))[:0],
        lambda: np.full(size, rng.choice((np.nan, np.inf, 1e300, 1e-320, -0.0))),
        lambda: np.array(float("nan")),
        lambda: np.zeros((size, 0)),
        lambda: np.zeros((1,) * 20),
        lambda: [rng.choice(NUMBERS) for _ in range(size)],
        lambda: [10**400] * size,
        lambda: [raising(rng)] * size,
        lambda: list(good),
        lambda: tuple(good),
        lambda: set(good),
        lambda: dict(enumerate(good)),
        lambda: iter(good),
        lambda: (entry for entry in good),
        lambda: memoryview(good),
        lambda: buffer,
        lambda: bytes(8 * size),
        lambda: range(size),
        lambda: [[0.0], [1.0, 2.0]],
        lambda: "0 1",
        lambda: np,
        lambda: np.zeros,
        lambda: type,
        lambda: raising(rng),
    )
    return rng.choice(makers)()


def nested(rng: random.Random) -> object:
    """A list in itself, or one too deep to walk."""
    value: list[object] = []
    if rng.random() < 0.5:
        value.append(value)
        return value
    for _ in range(100_000):
        value = [value]
    return value


def thing(rng: random.Random) -> object:
    """Anything."""
    return rng.choice((
        lambda: raising(rng),
        lambda: rng.choice(TEXTS),
        lambda: rng.choice(NUMBERS),
        lambda: array(rng, rng.choice((0, 1, 2, 3))),
        lambda: nested(rng),
        lambda: b"\xff\xfe",
        lambda: object(),
        lambda: Exception("value"),
        lambda: rng.choice(list(Stop)),
    ))()  # fmt: skip


def text(rng: random.Random) -> object:
    """Something in the place of a text."""
    if rng.random() < 0.5:
        return rng.choice(TEXTS)
    return thing(rng)


def count(rng: random.Random) -> object:
    """Something in the place of a number."""
    if rng.random() < 0.5:
        return rng.choice(NUMBERS)
    return thing(rng)


def steps(rng: random.Random) -> object:
    """Something in the place of a history."""
    if rng.random() < 0.3:
        return thing(rng)
    kinds = (lambda: Step(*(count(rng) for _ in range(4))), lambda: thing(rng))  # type: ignore[arg-type]
    entries = [rng.choice(kinds)() for _ in range(rng.randrange(4))]
    return rng.choice((list, tuple))(entries)


def stop(rng: random.Random) -> object:
    return rng.choice((*Stop, "OPTIMAL", "optimal", "", 0, None, raising(rng), thing(rng)))


class Evil(Answer):
    """An answer whose parts raise when they are asked for."""

    def __getattribute__(self, name: str) -> Any:
        if name in ("x", "native", "history"):
            raise Panic(name)
        return super().__getattribute__(name)


def answer(rng: random.Random, rows: int, columns: int) -> object:
    """What the backend returns; it may raise instead."""
    chance = rng.random()
    if chance < 0.05:
        return thing(rng)
    if chance < 0.1:
        error = rng.choice((*ERRORS, Panic, klopt.InvalidProblem))
        raise type("Unprintable", (error,), {"__str__": lambda self: 1 / 0})("boo")
    parts: dict[str, Any] = {
        "stop": Stop.OPTIMAL,
        "x": np.array([0.0, 1.0]),
        "y": np.r_[0.5, np.zeros(rows - 1)],
    }
    kinds: dict[str, Callable[[], object]] = {
        "stop": lambda: stop(rng),
        "x": lambda: array(rng, columns),
        "y": lambda: array(rng, rows),
        "farkas": lambda: array(rng, rows),
        "ray": lambda: array(rng, columns),
        "iterations": lambda: count(rng),
        "seconds": lambda: count(rng),
        "native": lambda: text(rng),
        "log": lambda: text(rng),
        "history": lambda: steps(rng),
        "notes": lambda: rng.choice((lambda: thing(rng), lambda: [text(rng) for _ in range(3)]))(),
    }
    for name in rng.sample(sorted(kinds), rng.choice((1, 1, 2, 3, 11))):
        parts[name] = kinds[name]()
    return (Evil if chance < 0.15 else Answer)(**parts)


class Hostile(Backend):
    """Returns the hostile answer of its seed."""

    name: ClassVar[str] = "hostile"
    offers = frozenset({Feature.CONE})
    honours = frozenset({"tol", "time_limit", "log"})

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def run(self, form: Any, settings: Any, start: Any = None) -> Any:
        rows, columns = form.shape
        return answer(random.Random(self.seed), rows, columns)


def flaw(result: klopt.Result) -> str:
    """What is wrong with a result, "" if nothing is: a false statement, or a part that is no data."""
    if result.verdict in (Verdict.INFEASIBLE, Verdict.UNBOUNDED):
        return f"false verdict {result.verdict.name}"
    if not result.lower <= OPTIMUM <= result.upper:
        return f"false interval [{result.lower}, {result.upper}]"
    (result.explain() + repr(result) + document("solve", result_data(result))).encode()
    for attempt in result.attempts:
        for name, value in vars(attempt.answer).items():
            if type(value) not in (Stop, np.ndarray, int, float, str, tuple, type(None)):
                return f"{name} is a {type(value).__name__}"
    return ""


def outcomes(seeds: range, *, isolate: bool) -> Iterator[tuple[int, str, float]]:
    """What came of each seed, and the seconds it took."""
    for seed in seeds:
        began = time.perf_counter()
        try:
            result = klopt.solve(
                problem(), Hostile(seed), formulation="primal", isolate=isolate, time_limit=LIMIT_S
            )
            said = flaw(result) or result.stop.name
        except BaseException as error:
            said = f"raised {type(error).__name__}"
        yield seed, said, time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--isolate", action="store_true")
    wanted = parser.parse_args()
    seeds = range(wanted.seed, wanted.seed + wanted.count)
    seen: collections.Counter[str] = collections.Counter()
    slow = 0
    for seed, said, seconds in outcomes(seeds, isolate=wanted.isolate):
        seen[said] += 1
        slow += seconds > LIMIT_S
        if said not in Stop.__members__:
            print("seed", seed, said, flush=True)
    bad = sum(number for said, number in seen.items() if said not in Stop.__members__)
    where = "in child processes" if wanted.isolate else "in process"
    print(f"{wanted.count} hostile answers {where}: {bad} failures, {slow} over {LIMIT_S:g} s")
    print(", ".join(f"{said} {number}" for said, number in seen.most_common()))
    sys.exit(bool(bad or slow))


if __name__ == "__main__":
    main()
