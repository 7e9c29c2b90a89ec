"""Mutants of the checks of claims: every number that a check computes, replaced by nonsense in turn.

A check compares numbers that functions of its paper return: optima, intervals, constants, matrices.
Each such function is replaced, one at a time and everywhere, by one that returns nonsense of the
same kind, another one in each call; so is the interval of every solve. A check that still holds
whatever the nonsense does not depend on that number: it cannot fail on its account. Where a check
calls no function of its paper, the numbers in its own text are replaced.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count, product
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

import klopt.papers.theorems
from klopt.papers.theorems.claim import Case, Claim, Outcome
from klopt.papers.theorems.evidence import Evidence, Interval
from klopt.papers.theorems.verification import _cases

TIME_LIMIT_S = 5.0
"""CPU time that the few cases of a check may take; without nonsense they take less than a second."""
SHORT_RUN = 10
"""Steps of a run that solves a problem in each: a mutant of a long one would take minutes."""
NONSENSE = (42.0, -42.0, 4.2e12, -4.2e12, 4.2e-12)
"""One of these must matter: the first two are of the wrong size, the others of none."""
COMPARISONS = {"evidence", "claim", "cases", "catalogue", "verification", "format", "page"}
"""Modules that compare, draw the verdict or write it, and compute nothing of a paper's."""


def modules() -> list[ModuleType]:
    """The modules with the mathematics of the papers."""
    package = klopt.papers.theorems
    names = [info.name for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    kept = [name for name in names if name.rpartition(".")[2] not in {*COMPARISONS, "exact"}]
    return [importlib.import_module(name) for name in kept]


MODULES = modules()


def functions() -> dict[str, Callable[..., Any]]:
    """What the checks call: the functions of those modules, and `solve`."""
    found: dict[str, Callable[..., Any]] = {}
    for module in MODULES:
        for name, value in vars(module).items():
            own = isinstance(value, FunctionType) and value.__module__ == module.__name__
            # A draw makes the instance, on which the statement holds whatever it is.
            drawing = name.startswith(("random_", "no_case", "exact_"))
            if own and not drawing and not inspect.isgeneratorfunction(value):
                found[f"{module.__name__.partition('theorems.')[2]}.{name}"] = value
            elif name == "solve":
                found["solve"] = value
    return found


FUNCTIONS = functions()


@contextmanager
def replaced(name: str, stand_in: Callable[..., Any]) -> Iterator[None]:
    """Put another function in the place of one, in every module that has it."""
    original = FUNCTIONS[name]
    places = [
        (module, key)
        for module in MODULES
        for key, value in vars(module).items()
        if value is original
    ]
    for module, key in places:
        setattr(module, key, stand_in)
    try:
        yield
    finally:
        for module, key in places:
            setattr(module, key, original)


def varied(end: float, call: int, *, rises: bool) -> float:
    """Nonsense of one call: two calls differ, in either order."""
    factor = 1 + 0.5 * (call % 7)
    return end * factor if rises else end / factor


class Solved:
    """A result whose interval is nonsense and whose other attributes are as they were."""

    def __init__(
        self, result: Any, end: float | None = None, on_use: Callable[[], Any] | None = None
    ) -> None:
        self._result = result
        self._end = end
        self._on_use = on_use

    def __getattr__(self, name: str) -> Any:
        if name in ("lower", "upper"):
            if self._on_use is not None:
                self._on_use()
            if self._end is not None:
                return self._end
        return getattr(self._result, name)


def nonsense(value: Any, end: float, call: int = 0) -> Any:
    """Nonsense of the kind of a value, or the value itself where it is of no numerical kind."""
    if isinstance(value, bool | np.bool_):
        return not value
    if isinstance(value, int | np.integer):
        return int(min(max(end, -(10**6)), 10**6))
    if isinstance(value, float | np.floating):
        return end
    if isinstance(value, Interval):
        return Interval(end, end)
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiu":
        # Not constant: ranks and directions must be wrong too.
        noise = np.random.default_rng(call).normal(size=value.shape)
        return (end * (1 + noise / 2)).astype(value.dtype)
    if isinstance(value, tuple):
        parts = [nonsense(part, end, call) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, list):
        return [nonsense(part, varied(end, i, rises=True), i) for i, part in enumerate(value)]
    if isinstance(value, np.ndarray) and value.dtype.kind == "b":
        return ~value
    if isinstance(value, set):
        return {*value, "nonsense"}
    if hasattr(value, "verdict"):
        return Solved(value, end)
    return value


def is_number(value: Any) -> bool:
    """Whether nonsense can be made of it."""
    if isinstance(value, tuple | list):
        return any(map(is_number, value))
    numbers = bool | int | float | np.generic | np.ndarray | set
    return isinstance(value, numbers) or hasattr(value, "verdict")


class Calls(NamedTuple):
    """What a check calls: functions that return numbers, and functions that compare them."""

    numbers: list[str]
    comparisons: list[str]


def called(check: Callable[[Case], Evidence], cases: list[Case]) -> Calls:
    """What a check calls on these cases."""
    seen: dict[str, None] = {}
    comparing: dict[str, None] = {}

    def recorder(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def record(*arguments: Any, **named: Any) -> Any:
            value = original(*arguments, **named)
            if name == "solve":
                # Some checks take the point of a solve and not its interval.
                return Solved(value, on_use=lambda: seen.setdefault(name))
            if not isinstance(value, Evidence) and is_number(value):
                seen[name] = None
            if isinstance(value, Evidence):
                comparing[name] = None
            return value

        return record

    originals = {id(function): name for name, function in FUNCTIONS.items()}
    places = [
        (module, key, value, originals[id(value)])
        for module in MODULES
        for key, value in vars(module).items()
        if id(value) in originals
    ]
    for module, key, value, name in places:
        setattr(module, key, recorder(name, value))
    try:
        for case in cases:
            check(case)
    finally:
        for module, key, value, _ in places:
            setattr(module, key, value)
    return Calls(list(seen), list(comparing))


class EndlessError(BaseException):
    """A check did not come to an end; no check catches it."""


@contextmanager
def limited() -> Iterator[None]:
    """Interrupt what does not come to an end: a mutant may loop until a number is what it is not."""

    def stop(*_: object) -> None:
        raise EndlessError

    # CPU time, not the clock's: a mutant is not endless because the computer is busy.
    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, TIME_LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def holds(check: Callable[[Case], Evidence], cases: list[Case]) -> bool:
    """Whether a check holds on all cases that it measures; one that breaks does not."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings(), limited():
            warnings.simplefilter("ignore")
            found = [check(case) for case in cases]
    except (Exception, EndlessError):
        return False
    measured = [evidence for evidence in found if evidence.measured]
    return bool(measured) and all(evidence.holds for evidence in measured)


def deciding(claim: Claim) -> Callable[[Case], Evidence]:
    """The check by which a claim holds: that of its correction, if it has one."""
    is_corrected = claim.expected in (Outcome.CORRECTED, Outcome.PROVEN_CORRECTED)
    check = claim.corrected if is_corrected else claim.printed
    assert check is not None
    return check


def survivors(claim: Claim, cases: list[Case]) -> tuple[int, list[str]]:
    """How many functions a claim's check rests on, and those whose nonsense it does not notice."""
    check = deciding(claim)
    names = called(check, cases).numbers
    return len(names), [name for name in names if not noticed(check, cases, name)]


def noticed(check: Callable[[Case], Evidence], cases: list[Case], name: str) -> bool:
    """Whether some nonsense of that function makes the check stop holding."""
    kinds = product((True, False), NONSENSE)
    return any(_noticed(check, cases, name, end, rises) for rises, end in kinds)


def _noticed(
    check: Callable[[Case], Evidence], cases: list[Case], name: str, end: float, rises: bool
) -> bool:
    """Whether the check stops holding when that function returns nonsense."""
    calls = count()

    def mutant(*arguments: Any, **named: Any) -> Any:
        call = next(calls)
        wrong = varied(end, call, rises=rises)
        return nonsense(FUNCTIONS[name](*arguments, **named), wrong, call)

    with replaced(name, mutant):
        return not holds(check, cases)


def noticed_constants(claim: Claim, cases: list[Case]) -> list[Any]:
    """The numbers in the text of a claim's check whose nonsense it notices."""
    check = deciding(claim)
    found = [number for mutant, number in _texts(check) if not holds(mutant, cases)]
    for name in called(check, cases).comparisons:
        for mutant, number in _texts(FUNCTIONS[name]):
            with replaced(name, mutant):
                if not holds(check, cases):
                    found.append(number)
    return found


def _texts(function: Any) -> Iterator[tuple[Callable[..., Any], Any]]:
    """The function with each number of its text replaced in turn, and that number."""
    code = function.__code__
    for place, value in enumerate(code.co_consts):
        if type(value) in (int, float, tuple) and is_number(value):
            for end in NONSENSE[:2]:
                constants = list(code.co_consts)
                constants[place] = nonsense(value, end)
                changed = code.replace(co_consts=tuple(constants))
                mutant = FunctionType(
                    changed, function.__globals__, function.__name__, function.__defaults__
                )
                mutant.__kwdefaults__ = function.__kwdefaults__
                yield mutant, value


def few_cases(claim: Claim, trials: int) -> list[Case]:
    """So many cases that the check measures, at least one; runs are made short."""
    check = deciding(claim)
    drawn = [_shorter(case) for case in _cases(claim, min(trials, claim.most or trials), 0)]
    measured = [case for case in drawn if check(case).measured]
    return measured if measured or trials > 30 else few_cases(claim, 4 * trials)


def _shorter(case: Case) -> Case:
    """A case whose run, if it solves a problem in each step, ends after a few of them.

    The bound of a run holds after each step.
    """
    solves = "steps" in case and "S" in case
    return {**case, "steps": min(case["steps"], SHORT_RUN)} if solves else case
