"""What a solver is: the forms it takes, the settings it honours, the answer it returns.

A backend takes a form, calls its library or runs its algorithm, and returns an `Answer`. The answer
is a claim: klopt measures it and issues the verdict, so a backend neither checks nor corrects its
statuses.
"""

from __future__ import annotations

import difflib
import functools
import importlib.metadata
import importlib.util
import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, ClassVar

import attrs
import numpy as np

from klopt.arrays import FloatArray
from klopt.errors import InvalidSettings
from klopt.model.features import Feature
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
    "memory_limit_of",
    "whole_number",
]

SETTINGS = {"tol", "time_limit", "max_iter", "threads", "seed", "log", "start"}
"""What a backend may honour: the settings that every backend has, and a starting point."""
PROOFS = {"dual", "farkas", "ray"}
"""What a backend may return beyond x."""
MIN_TOL = 1e-13
"""The smallest relative gap that may be asked for: below it is rounding."""
MAX_TOL = 1e-1
"""The largest relative gap that may be asked for."""
MIN_MEMORY_LIMIT_BYTES = 100_000_000
"""What Python, NumPy, SciPy and one library of a solver take before the first number of a problem."""


class Stop(StrEnum):
    """Why a backend says it stopped, with what to do about it.

    `OPTIMAL`, `INFEASIBLE` and `UNBOUNDED` are claims. `ALMOST_OPTIMAL` is none: the solver says itself
    that it met looser tolerances than it was given ("AlmostSolved", "close to optimal",
    "optimal_inaccurate"). One that says the same of infeasibility has `STALLED`.
    """

    OPTIMAL = "OPTIMAL"
    ALMOST_OPTIMAL = "ALMOST_OPTIMAL"
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
    Stop.ALMOST_OPTIMAL: (
        "It met looser tolerances than asked for; read the verdict, loosen tol or rescale the data."
    ),
    Stop.INFEASIBLE: (
        "If klopt proves it, the multipliers show the contradiction; if not, ask another backend."
    ),
    Stop.UNBOUNDED: (
        "If klopt proves it, the ray shows which bound is missing; if not, ask another backend."
    ),
    Stop.INFEASIBLE_OR_UNBOUNDED: (
        "Solve once with a zero objective to learn which of the two it is."
    ),
    Stop.TIME_LIMIT: "Give it more time, or another backend; the best point so far is kept.",
    Stop.ITERATION_LIMIT: "Raise max_iter, or loosen tol; the best point so far is kept.",
    Stop.STALLED: (
        "Rescale the data, loosen tol or try another route: "
        "klopt.plan(problem).explain() lists them."
    ),
    Stop.NUMERICAL: (
        "Rescale the data or try another formulation: klopt.plan(problem).explain() lists them."
    ),
    Stop.INTERRUPTED: "It was stopped from outside.",
    Stop.REJECTED: "The library refused the data; its own words are in result.explain().",
    Stop.CRASHED: (
        "Run with isolate=True so that a crash stays in a child process; "
        "the text is in result.explain()."
    ),
}


@dataclass(frozen=True)
class Step:
    """Certified bounds of the form's optimum after so many iterations and seconds."""

    iteration: int
    seconds: float
    lower: float
    upper: float


def whole_number(name: str, value: object, low: int) -> None:
    """Refuse a setting that is no whole number of at least `low`.

    >>> whole_number("jobs", 0, 1)
    Traceback (most recent call last):
    klopt.errors.InvalidSettings: jobs is 0; expected a whole number of at least 1
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < low:
        raise InvalidSettings(f"{name} is {value!r}; expected a whole number of at least {low}")


def _is_real_between(value: object, low: float, high: float) -> bool:
    # NaN fails the comparison below.
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return False
    try:
        return low <= float(value) <= high
    except OverflowError:  # a whole number beyond all floats
        return False


# The fields of `Settings`. Libraries ask for Python's own integers, hence int().


def _tol(value: float) -> float:
    if not _is_real_between(value, MIN_TOL, MAX_TOL):
        wanted = f"a number in [{MIN_TOL:g}, {MAX_TOL:g}]"
        raise InvalidSettings(f"tol is {value!r}; expected {wanted}")
    return value


def _time_limit(value: float | None) -> float | None:
    if value is None:
        return None
    smallest_positive = math.ulp(0.0)
    if not _is_real_between(value, smallest_positive, math.inf):
        raise InvalidSettings(f"time_limit is {value!r}; expected a positive number of seconds")
    # An infinite limit is none.
    return None if value == math.inf else value


def memory_limit_of(value: int | None) -> int | None:
    """Return a memory limit in bytes, None for none, as 0 is; refuse one that cannot be kept.

    >>> memory_limit_of(5_000_000)
    Traceback (most recent call last):
    klopt.errors.InvalidSettings: memory_limit is 5000000 bytes; the libraries of a backend ...
    """
    if value is None:
        return None
    whole_number("memory_limit", value, 0)
    if 0 < value < MIN_MEMORY_LIMIT_BYTES:
        raise InvalidSettings(
            f"memory_limit is {value} bytes; the libraries of a backend take more by themselves; "
            f"give at least {MIN_MEMORY_LIMIT_BYTES} (100M), or 0 for no limit"
        )
    return int(value) or None


def _max_iter(value: int | None) -> int | None:
    if value is None:
        return None
    whole_number("max_iter", value, 1)
    return int(value)


def _threads(value: int) -> int:
    whole_number("threads", value, 1)
    return int(value)


def _seed(value: int) -> int:
    whole_number("seed", value, 0)
    return int(value)


def _log(value: bool) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise InvalidSettings(f"log is {value!r}; expected True or False")
    return value


def _raw(value: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InvalidSettings(
            f"raw must map the native names of options (text) to their values; it is {value!r}"
        )
    return MappingProxyType(dict(value))


@attrs.frozen(slots=False)
class Settings:
    """What a user may ask of any backend; it means the same for all of them.

    Parameters
    ----------
    tol:
        Relative gap of klopt's bracket that is wanted, not a native tolerance.
    time_limit, max_iter:
        Limits in seconds and iterations; None for no limit.
    threads, seed:
        Number of threads of BLAS and of the library, seed of what is random.
    log:
        Whether the library prints as it goes.
    raw:
        Native options by their native names; unknown ones and ones that a setting here already
        covers are refused.
    memory_limit:
        How many bytes the process of the backend may have, at least 100,000,000; None or 0 for no
        limit. klopt keeps it, a backend need not.

    >>> Settings(tol=2.0)
    Traceback (most recent call last):
    klopt.errors.InvalidSettings: tol is 2.0; expected a number in [1e-13, 0.1]
    """

    tol: float = attrs.field(default=1e-6, converter=_tol)
    time_limit: float | None = attrs.field(default=None, converter=_time_limit)
    max_iter: int | None = attrs.field(default=None, converter=_max_iter)
    threads: int = attrs.field(default=1, converter=_threads)
    seed: int = attrs.field(default=0, converter=_seed)
    log: bool = attrs.field(default=False, converter=_log)
    raw: Mapping[str, Any] = attrs.field(factory=dict, converter=_raw)
    memory_limit: int | None = attrs.field(default=None, converter=memory_limit_of)

    # A mapping proxy cannot be pickled.
    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "raw": dict(self.raw)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, raw=MappingProxyType(state["raw"]))


@dataclass(frozen=True, eq=False)
class Answer:
    """What a backend claims about a form.

    Parameters
    ----------
    stop:
        Why it says it stopped.
    x, y:
        The point and its multipliers in klopt's signs (Px + c + A'y = 0).
    farkas:
        With `Stop.INFEASIBLE`: y in K* with A'y = 0, b'y < 0; without it nothing is proven.
    ray:
        With `Stop.UNBOUNDED`: d with c'd < 0, Pd = 0, -Ad in K; without it nothing is proven.
    iterations, seconds:
        Iterations, and the time of the native call alone.
    native, log:
        The library's own status, and what it printed.
    history:
        Certified bounds along the way.
    notes:
        What a user should know about how the answer came about.
    load:
        Seconds of importing libraries and starting a process before the run; klopt fills it in.

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
    load: float = 0.0


class Backend(ABC):
    """One solver: what it takes, which settings it honours, what it proves, and how to run it.

    Subclasses set the class attributes and implement `run`. They must be picklable, never print,
    never change the form and import their library inside `load` and `run` only. `klopt.check_backend` tests an
    instance, `klopt.register` makes it known; `klopt new backend NAME` writes one to start from.

    Attributes
    ----------
    name : str
        What users call it.
    library : str
        The package that it needs, or nothing.
    rank : int
        Its place in a plan where no expected time is known; smaller is earlier.
    offers : frozenset of Feature
        What forms may need.
    honours : frozenset of str
        The settings that it keeps by itself; klopt enforces or refuses the others.
    proves : frozenset of str
        What it returns beyond a point: "dual", "farkas", "ray".
    references : tuple of str
        What to cite.
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
    """Its place in a plan: 0 closed form, 10 exact, 20 interior point, 30 first order, 50 indirect.

    40 is for general methods without a native library.
    """
    accuracy: ClassVar[float] = 1e-6
    """The smallest `tol` it is meant to reach; the conformance suite asks for no less."""
    isolate: ClassVar[bool] = False
    """Whether klopt runs it in a child process by default, because its library may crash."""
    references: ClassVar[tuple[str, ...]] = ()
    """What to cite: keys of klopt's `references.bib`, or BibTeX entries of one's own."""
    exempt: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Conformance checks it is known to fail, each with the reason."""

    @abstractmethod
    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        """Return what this backend claims about the form."""

    def load(self) -> None:
        """Import what `run` needs: klopt calls it before the clock starts.

        The first use of a library takes seconds that say nothing of the solver. By default `library`
        is imported; a backend whose `run` imports more of it says so here.
        """
        if self.library is not None:
            importlib.import_module(self.library)

    def rate_constant(self, form: Form) -> float:
        """Return c where a theorem bounds the gap after k iterations by c / k, else NaN."""
        return math.nan

    def memory(self, form: Form) -> float:
        """Return the bytes that it needs for the form at least, as far as can be foreseen.

        A route that needs more than there is, or than `memory_limit`, is refused. 0 where nothing
        is known.
        """
        return 0.0

    def repeats(self, needs: frozenset[Feature], tried: frozenset[str]) -> bool:
        """Return whether it would only ask again a library that was asked already.

        Parameters
        ----------
        needs
            What the formulation needs.
        tried
            The names of the backends that were tried in this solve.
        """
        return False

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
            return _installed_version(self.library or "klopt")
        except importlib.metadata.PackageNotFoundError:
            return "unknown"

    def __repr__(self) -> str:
        return f"<backend {self.name}>"


def check_raw(
    backend: str, raw: Mapping[str, Any], known: Iterable[str], reserved: Mapping[str, str]
) -> None:
    """Refuse native options that do not exist or that a setting already covers.

    Parameters
    ----------
    backend:
        Name of the backend, for the message.
    raw:
        Options as the user gave them.
    known:
        Native names of all options.
    reserved:
        Native names that a setting of klopt covers, each with that setting.

    >>> check_raw("clarabel", {"max_iters": 5}, ["max_iter", "verbose"], {})
    Traceback (most recent call last):
    klopt.errors.InvalidSettings: clarabel has no option 'max_iters'; did you mean 'max_iter'?
    """
    names = set(known)
    for key in raw:
        if key in reserved:
            raise InvalidSettings(
                f"raw option {key!r} of {backend} is klopt's own {reserved[key]!r}; "
                "set that instead"
            )
        if key not in names:
            raise InvalidSettings(f"{backend} has no option {key!r}; {_suggestion(key, names)}")


def _suggestion(key: str, names: set[str]) -> str:
    close = difflib.get_close_matches(key, names, n=3)
    if close:
        return f"did you mean {' or '.join(map(repr, close))}?"
    if names:
        return f"it has {', '.join(sorted(names))}"
    return "it has none"


_found: set[str] = set()
"""The libraries that were found: asking the file system is the slowest part of a small plan."""


# Reading it takes a millisecond, and a library that was imported stays what it is.
_installed_version = functools.cache(importlib.metadata.version)


def _is_installed(library: str) -> bool:
    if library in _found:
        return True
    try:
        spec = importlib.util.find_spec(library)
    # The package of a module is not there, or the module is half loaded.
    except (ImportError, ValueError):
        return False
    if spec is None:
        return False
    _found.add(library)
    return True


def contract_flaw(backend: Backend) -> str:
    """Return what is wrong with the attributes of a backend, "" if nothing is."""
    name = getattr(backend, "name", None)
    if not (isinstance(name, str) and name):
        return "it has no name"
    offers = getattr(backend, "offers", None)
    if not (isinstance(offers, frozenset | set) and offers <= set(Feature)):
        return f"{name} offers {offers!r}; expected a set of klopt.Feature"

    for attribute, known in (("honours", SETTINGS), ("proves", PROOFS)):
        value = getattr(backend, attribute)
        if not (isinstance(value, frozenset | set) and value <= known):
            some = ", ".join(sorted(known))
            return f"{name} {attribute} {value!r}; expected a set of some of {some}"

    for attribute, is_right, wanted in _ATTRIBUTES:
        value = getattr(backend, attribute)
        if not is_right(value):
            return f"{name} has {attribute} {value!r}; expected {wanted}"
    return ""


def _is_library(value: object) -> bool:
    return value is None or (isinstance(value, str) and value != "")


def _is_accuracy(value: object) -> bool:
    return isinstance(value, int | float) and value > 0


_ATTRIBUTES: tuple[tuple[str, Callable[[object], bool], str], ...] = (
    ("library", _is_library, "a name, or None"),
    ("rank", lambda value: isinstance(value, int), "a whole number"),
    ("accuracy", _is_accuracy, "a positive number"),
    ("isolate", lambda value: isinstance(value, bool), "True or False"),
)
"""Attributes of a backend, what tells whether a value is right, and how a message says so."""
