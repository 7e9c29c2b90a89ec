"""`Backend`, `Settings`, `Answer`, `Stop`: what a solver file must provide.

A backend takes a form, calls its library or runs its algorithm, and returns an `Answer`. The answer
is a claim: klopt measures it and issues the verdict, so a backend neither checks nor polishes its
statuses.
"""

from __future__ import annotations

import difflib
import importlib.metadata
import importlib.util
import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import nan
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from klopt.arrays import FloatArray
from klopt.errors import InvalidSettings
from klopt.model.cones import Feature
from klopt.model.forms import Form, Start

__all__ = [
    "Answer",
    "Backend",
    "Settings",
    "Start",
    "Step",
    "Stop",
    "check_raw",
    "contract_flaw",
    "whole_number",
]

SETTINGS = {"tol", "time_limit", "max_iter", "threads", "seed", "log", "start"}
PROOFS = {"dual", "farkas", "ray"}


class Stop(StrEnum):
    """Why a backend says it stopped: a claim, with what to do about it."""

    OPTIMAL = "OPTIMAL"
    INFEASIBLE = "INFEASIBLE"
    UNBOUNDED = "UNBOUNDED"
    INFEASIBLE_OR_UNBOUNDED = "INFEASIBLE_OR_UNBOUNDED"
    TIME_LIMIT = "TIME_LIMIT"
    ITERATION_LIMIT = "ITERATION_LIMIT"
    STALLED = "STALLED"
    NUMERICAL = "NUMERICAL"
    INTERRUPTED = "INTERRUPTED"
    REJECTED = "REJECTED"
    CRASHED = "CRASHED"

    @property
    def words(self) -> str:
        """The member as a person would write it."""
        return self.value.replace("_", " ").lower()

    @property
    def advice(self) -> str:
        """What a user can do next, in one sentence."""
        return _ADVICE[self]


_ADVICE = {
    Stop.OPTIMAL: "Read the verdict: only klopt's bracket says whether it is.",
    Stop.INFEASIBLE: "If klopt proves it, the multipliers show the contradiction; if not, ask another backend.",
    Stop.UNBOUNDED: "If klopt proves it, the ray shows which bound is missing; if not, ask another backend.",
    Stop.INFEASIBLE_OR_UNBOUNDED: "Solve once with a zero objective to learn which of the two it is.",
    Stop.TIME_LIMIT: "Give it more time, or another backend; the best point so far is kept.",
    Stop.ITERATION_LIMIT: "Raise max_iter, or loosen tol; the best point so far is kept.",
    Stop.STALLED: "Rescale the data, loosen tol or try another route: klopt.plan(problem).explain() lists them.",
    Stop.NUMERICAL: "Rescale the data or try another formulation: klopt.plan(problem).explain() lists them.",
    Stop.INTERRUPTED: "It was stopped from outside.",
    Stop.REJECTED: "The library refused the data; its own words are in result.explain().",
    Stop.CRASHED: "Run with isolate=True so that a crash stays in a child process; the text is in result.explain().",
}


@dataclass(frozen=True)
class Step:
    """One line of a history: certified bounds of the form's optimum after so many iterations and seconds."""

    iteration: int
    seconds: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Settings:
    """What a user may ask of any backend; it means the same for all of them.

    `tol` is the relative width of klopt's bracket that is wanted, not a native tolerance.
    `time_limit` is in seconds; without it, or without `max_iter`, there is none. `log` lets the
    library print as it goes. `raw` passes native options by their native names; unknown ones and
    ones that a setting here already covers are refused.

    >>> Settings(tol=2.0)
    Traceback (most recent call last):
    klopt.errors.InvalidSettings: tol is 2.0; expected a number in [1e-13, 0.1]
    """

    tol: float = 1e-6
    time_limit: float | None = None
    max_iter: int | None = None
    threads: int = 1
    seed: int = 0
    log: bool = False
    raw: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _number("tol", self.tol, 1e-13, 1e-1)
        if self.time_limit is not None:
            _number("time_limit", self.time_limit, math.ulp(0.0), np.inf)
            if self.time_limit == np.inf:
                object.__setattr__(self, "time_limit", None)
        if self.max_iter is not None:
            whole_number("max_iter", self.max_iter, 1)
        whole_number("threads", self.threads, 1)
        whole_number("seed", self.seed, 0)
        if not isinstance(self.log, bool | np.bool_):
            raise InvalidSettings(f"log is {self.log!r}; expected True or False")
        if not isinstance(self.raw, Mapping) or not all(isinstance(key, str) for key in self.raw):
            raise InvalidSettings(
                f"raw must map the native names of options (text) to their values; it is {self.raw!r}"
            )
        for name in ("max_iter", "threads", "seed"):
            if isinstance(getattr(self, name), np.integer):  # libraries ask for Python's own
                object.__setattr__(self, name, int(getattr(self, name)))
        object.__setattr__(self, "raw", MappingProxyType(dict(self.raw)))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "raw": dict(self.raw)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, raw=MappingProxyType(state["raw"]))


@dataclass(frozen=True, eq=False)
class Answer:
    """What a backend claims about a form.

    `y` holds the multipliers in klopt's signs (Px + c + A'y = 0). With `Stop.INFEASIBLE` comes a
    `farkas` vector (y in K*, A'y = 0, b'y < 0), with `Stop.UNBOUNDED` a `ray` (c'd < 0, Pd = 0, -Ad
    in K); without them the claim cannot be verified. `native` is the library's own status, `log`
    what it printed, `seconds` the time of the native call alone. `notes` is for what a user should
    know about how the answer came about.

    >>> Answer(Stop.ITERATION_LIMIT, x=np.array([0.5, 0.5]), iterations=100).stop.words
    'iteration limit'
    """

    stop: Stop
    x: FloatArray | None = None
    y: FloatArray | None = None
    farkas: FloatArray | None = None
    ray: FloatArray | None = None
    iterations: int | None = None
    seconds: float = 0.0
    native: str = ""
    log: str = ""
    history: tuple[Step, ...] = ()
    notes: tuple[str, ...] = ()


class Backend(ABC):
    """One solver: what it takes, which settings it keeps by itself, what it proves, and how to run it.

    Subclasses set the class attributes and implement `run`. They must be picklable, never print,
    never change the form and import their library inside `run` only. `klopt.check_backend` tests an
    instance, `klopt.register` makes it known; `klopt new backend NAME` writes one to start from.
    """

    name: ClassVar[str]
    """Equal to the file's name."""
    library: ClassVar[str | None] = None
    """The importable name of the native library; None for klopt's own methods."""
    install_hint: ClassVar[str] = ""
    """How to get the library where `pip install LIBRARY` is not how."""
    offers: ClassVar[frozenset[Feature]]
    """Everything a form may need."""
    honours: ClassVar[frozenset[str]] = frozenset()
    """The settings it keeps by itself, of tol, time_limit, max_iter, threads, seed, log, start."""
    proves: ClassVar[frozenset[str]] = frozenset()
    """What it returns beyond x, of dual, farkas, ray."""
    rank: ClassVar[int] = 50
    """Its place in a plan: 0 closed form, 10 exact, 20 interior point, 30 first order, 40 home-made, 50 indirect."""
    accuracy: ClassVar[float] = 1e-6
    """The smallest `tol` it is meant to reach; the conformance suite asks for no less."""
    isolate: ClassVar[bool] = False
    """Whether klopt runs it in a child process unless told otherwise, because its library is known to crash."""
    references: ClassVar[tuple[str, ...]] = ()
    """What to cite: keys of klopt's `references.bib`, or BibTeX entries of one's own."""
    exempt: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Conformance checks it is known to fail, each with the reason."""

    @abstractmethod
    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        """Return what this backend claims about the form."""

    def rate_constant(self, form: Form) -> float:
        """Return c where a theorem bounds the gap after k iterations by c / k, NaN where none does."""
        return nan

    @property
    def missing(self) -> str:
        """Why it cannot run here ("" if it can), found without importing the library."""
        if self.library is None or _is_installed(self.library):
            return ""
        hint = self.install_hint or f"pip install {self.library}"
        return f"{self.library} is not installed; {hint}"

    @property
    def version(self) -> str:
        """The version of the library, or of klopt for its own methods."""
        try:
            return importlib.metadata.version(self.library or "klopt")
        except importlib.metadata.PackageNotFoundError:
            return "unknown"

    def __repr__(self) -> str:
        return f"<backend {self.name}>"


def check_raw(
    backend: str, raw: Mapping[str, Any], known: Iterable[str], reserved: Mapping[str, str]
) -> None:
    """Refuse native options that do not exist or that a setting already covers.

    `reserved` maps a native name to the setting that covers it.

    >>> check_raw("clarabel", {"max_iters": 5}, ["max_iter", "verbose"], {})
    Traceback (most recent call last):
    klopt.errors.InvalidSettings: clarabel has no option 'max_iters'; did you mean 'max_iter'?
    """
    names = set(known)
    for key in raw:
        if key in reserved:
            raise InvalidSettings(
                f"raw option {key!r} of {backend} is klopt's own {reserved[key]!r}; set that instead"
            )
        if key not in names:
            near = difflib.get_close_matches(key, names, n=3)
            known_ones = f"it has {', '.join(sorted(names))}" if names else "it has none"
            hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else f"; {known_ones}"
            raise InvalidSettings(f"{backend} has no option {key!r}{hint}")


_found: set[str] = set()


def _is_installed(library: str) -> bool:
    # Asking the file system is the dearest part of a small plan; what was there once stays.
    if library not in _found:
        try:
            if importlib.util.find_spec(library) is None:
                return False
        except (
            ImportError,
            ValueError,
        ):  # a module inside a package that is not there, or one that is half loaded
            return False
        _found.add(library)
    return True


def whole_number(name: str, value: object, low: int) -> None:
    """Refuse a setting that is no whole number of at least `low`.

    >>> whole_number("jobs", 0, 1)
    Traceback (most recent call last):
    klopt.errors.InvalidSettings: jobs is 0; expected a whole number of at least 1
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < low:
        raise InvalidSettings(f"{name} is {value!r}; expected a whole number of at least {low}")


def _number(name: str, value: object, low: float, high: float) -> None:
    try:
        right = (
            not isinstance(value, bool)
            and isinstance(value, numbers.Real)
            and low <= float(value) <= high
        )
    except OverflowError:  # a whole number beyond all floats
        right = False
    if not right:
        wanted = (
            "a positive number of seconds" if high == np.inf else f"a number in [{low:g}, {high:g}]"
        )
        raise InvalidSettings(f"{name} is {value!r}; expected {wanted}")


def contract_flaw(backend: Backend) -> str:
    """Return what klopt would stumble over in the attributes of a backend, "" if nothing."""
    name, offers = getattr(backend, "name", None), getattr(backend, "offers", None)
    if not (isinstance(name, str) and name):
        return "it has no name"
    if not (isinstance(offers, frozenset | set) and offers <= set(Feature)):
        return f"{name} offers {offers!r}; expected a set of klopt.Feature"
    for attribute, known in (("honours", SETTINGS), ("proves", PROOFS)):
        value = getattr(backend, attribute)
        if not (isinstance(value, frozenset | set) and value <= known):
            return f"{name} {attribute} {value!r}; expected a set of some of {', '.join(sorted(known))}"
    for attribute, right, wanted in (
        (
            "library",
            backend.library != "" and isinstance(backend.library, str | None),
            "a name, or None",
        ),
        ("rank", isinstance(backend.rank, int), "a whole number"),
        (
            "accuracy",
            isinstance(backend.accuracy, int | float) and backend.accuracy > 0,
            "a positive number",
        ),
        ("isolate", isinstance(backend.isolate, bool), "True or False"),
    ):
        if not right:
            return f"{name} has {attribute} {getattr(backend, attribute)!r}; expected {wanted}"
    return ""
