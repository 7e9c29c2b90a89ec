"""What a problem is: its data, its equivalent formulations and a bracket of its optimum.

From any point, however inaccurate, a problem makes an exactly feasible one and a dual bound: the
two sides of

    lower <= optimum <= upper,     in the user's units and sense (min or max).

A formulation carries the problem to a form and its answer back; a form minimises, so that

    value of the problem = scale * value of the form + shift,     scale < 0 where it maximises.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self

import numpy as np

from klopt.arrays import FloatArray
from klopt.errors import InvalidProblem
from klopt.model.features import Feature
from klopt.model.forms import Form, Start
from klopt.model.html import formula, html_table

__all__ = [
    "Bracket",
    "Example",
    "Formulation",
    "Point",
    "Problem",
    "Sense",
    "Statement",
]

Sense = Literal["min", "max"]
NO_ARRAYS: Mapping[str, FloatArray] = MappingProxyType({})
"""The multipliers of a point that has none."""


class Point:
    """The named arrays of a problem's solution, primal and dual, read as attributes.

    Parameters
    ----------
    primal : dict of arrays
        The solution.
    dual : dict of arrays or None
        The multipliers.

    Examples
    --------
    >>> point = Point({"alpha": np.array([0.5, 0.5])}, {"margin": np.zeros(2)})
    >>> point.alpha
    array([0.5, 0.5])
    """

    __slots__ = ("dual", "primal")
    primal: Mapping[str, FloatArray]
    dual: Mapping[str, FloatArray]

    def __init__(self, primal: Mapping[str, Any], dual: Mapping[str, Any] | None = None) -> None:
        object.__setattr__(self, "primal", _named_arrays("primal", primal))
        object.__setattr__(self, "dual", _named_arrays("dual", dual) if dual else NO_ARRAYS)

    # Called for names that are no attributes: those of the arrays.
    def __getattr__(self, name: str) -> FloatArray:
        for arrays in (self.primal, self.dual):
            if name in arrays:
                return arrays[name]
        raise AttributeError(f"this point has {', '.join(self) or 'no arrays'}; not {name!r}")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a point is frozen; make a new one")

    def __iter__(self) -> Iterator[str]:
        yield from self.primal
        yield from self.dual

    # A mapping proxy cannot be pickled.
    def __reduce__(self) -> tuple[Any, ...]:
        return Point, (dict(self.primal), dict(self.dual))

    def __repr__(self) -> str:
        shapes = (f"{name}: {getattr(self, name).shape}" for name in self)
        return f"Point({', '.join(shapes)})"


def _named_arrays(part: str, given: object) -> Mapping[str, FloatArray]:
    # A dictionary, which it mostly is, is seen without asking an abstract class.
    if not isinstance(given, dict) and not isinstance(given, Mapping):
        raise InvalidProblem(
            f"{part} of a point is {type(given).__name__}; "
            "expected arrays by name, {'alpha': array}"
        )
    try:
        arrays = {name: np.asarray(value, float) for name, value in given.items()}
        return MappingProxyType(arrays)
    except (TypeError, ValueError) as error:
        raise InvalidProblem(
            f"{part} of a point has something that is no array of numbers: {error}"
        ) from None


@dataclass(frozen=True, eq=False)
class Bracket:
    """lower <= optimum <= upper in the user's units, and the feasible point that attains one side.

    Finite ends hold in exact arithmetic for the data as stored.

    Parameters
    ----------
    lower, upper:
        The bounds; an infinite one means that nothing is proven on that side.
    point:
        The feasible point: its value is `upper` of a minimisation, `lower` of a maximisation.
    note:
        Why nothing is proven, where that is so.
    lower_by, upper_by:
        The lemma that proves each end, in a short phrase.
    data_change:
        The smallest change of data for which `estimate` is proven, where there is one.
    estimate:
        An interval that holds only up to rounding, or for the changed data.
    no_optimum:
        "infeasible" or "unbounded" where that is proven.
    """

    lower: float
    upper: float
    point: Point
    note: str = ""
    lower_by: str = ""
    upper_by: str = ""
    data_change: str = ""
    estimate: tuple[float, float] | None = None
    no_optimum: Literal["", "infeasible", "unbounded"] = ""

    @property
    def gap(self) -> float:
        """upper - lower."""
        return self.upper - self.lower


@dataclass(frozen=True, eq=False)
class Formulation:
    """One of a problem's equivalent forms and the way back.

    Parameters
    ----------
    name:
        How a plan and `klopt.solve(formulation=..)` call it.
    needs:
        What a backend must offer; declared, so that planning builds nothing.
    build:
        Makes the form.
    recover:
        Carries an answer (x, y) back to a point of the problem.
    lift:
        Carries a point of the problem to the form, for a warm start.
    because:
        The theorem that makes it equivalent.
    dual:
        Whether the form is the dual of the problem: where the form is unbounded the problem is
        infeasible.
    scale, shift:
        The problem's value is `scale` times the form's plus `shift`.
    """

    name: str
    needs: frozenset[Feature]
    build: Callable[[], Form]
    recover: Callable[[FloatArray, FloatArray | None], Point]
    lift: Callable[[Point], Start] | None = None
    because: str = ""
    dual: bool = False
    scale: float = 1.0
    shift: float = 0.0

    def to_user(self, lower: float, upper: float) -> tuple[float, float]:
        """Return an interval of the form's values in the problem's units, ordered."""
        one_end = self.scale * lower + self.shift
        other_end = self.scale * upper + self.shift
        # A negative scale swaps the ends.
        return min(one_end, other_end), max(one_end, other_end)


@dataclass(frozen=True)
class Statement:
    """What a problem states, for people: the program in LaTeX, `GOAL` standing for max or min."""

    latex: str = ""
    words: str = ""
    """A line beside the formula where its notation needs one."""
    data: str = ""
    """What the bounds are about, where it is not simply the numbers given."""
    weights: str = ""
    """The array of a solution that says how much each kernel counts; "" where there is none."""
    area: str = ""
    """The kind of problems among which comparisons show it; "" where it stands by itself."""


@dataclass(frozen=True)
class Example:
    """Instances of a problem on a data set of scikit-learn, for the suite of comparisons."""

    data: str
    """breast, diabetes, digits, iris or wine."""
    make: Callable[[Any], Problem]
    """The problem of a `klopt.kernels.datasets.Dataset`."""
    demo: tuple[int, ...]
    """Numbers of points that take all backends together seconds."""
    full: tuple[int, ...]
    """Numbers of points that show differences between backends and take minutes."""


class Problem(ABC):
    """What a person means: data, equivalent forms and a bracket of the optimum.

    A subclass is a frozen class that checks its data at construction, implements `formulations`,
    `bracket` and `sample`, and says `sense = "max"` if it maximises. `klopt.check_problem` tests
    it; `klopt new problem NAME` writes one to start from.
    """

    sense: Sense = "min"
    statement: ClassVar[Statement] = Statement()
    """The program as reports typeset it; empty where a class states none."""
    references: ClassVar[tuple[str, ...]] = ()
    """What to cite: keys of klopt's `references.bib`, or BibTeX entries of one's own."""
    examples: ClassVar[tuple[Example, ...]] = ()
    """Instances on real data; `sample` stands in where there are none."""
    trusts_residuals: ClassVar[bool] = False
    """Whether small residuals make an estimate, as of a user's own general program."""
    has_optimum: ClassVar[bool] = False
    """Whether every instance has an optimum, so that claims of the contrary are false."""
    data_changed = False
    """Whether a backend has changed the data: klopt then refuses to solve the problem again."""

    def mark_data_changed(self) -> None:
        """Say that a backend has changed the data, which all formulations share; it stays so."""
        object.__setattr__(self, "data_changed", True)

    @property
    def provable(self) -> bool:
        """Whether both sides of the optimum can be bounded.

        Where not, the first answer that converged is the last.
        """
        return True

    def stated_form(self) -> Form | None:
        """Return the form that is the problem's own statement; None where one has to be built."""
        return None

    @abstractmethod
    def formulations(self) -> tuple[Formulation, ...]:
        """Return the equivalent forms, the one to prefer first."""

    @abstractmethod
    def bracket(self, point: Point) -> Bracket:
        """Return certified bounds of the optimum from any point of the right shape."""

    def sharper_bracket(self, bracket: Bracket) -> Bracket:
        """Return a bracket that is too wide with better ends, where more effort finds some."""
        return bracket

    def proves_infeasible(self, point: Point) -> bool | None:
        """Return whether the multipliers of a point prove, exactly, that there is no feasible point.

        None leaves that to the form that a backend was given, which then states the problem.
        """
        return None

    def proves_unbounded(self, direction: Point) -> bool | None:
        """Return whether the objective improves without end along a direction, exactly; or None."""
        return None

    @classmethod
    @abstractmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        """Return a random instance of about the given size, solvable by every formulation."""

    def kernel(self, point: Point) -> FloatArray | None:
        """Return the kernel matrix that the point has learned, None where there is none."""
        return None

    def describe(self) -> str:
        """Return one line: the class and its sizes."""
        return type(self).__name__

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        # Decorators that write a `__repr__` of all arrays leave one alone that a class has itself.
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = Problem.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        return self.describe()

    def _repr_html_(self) -> str:
        stated = self.statement
        words = f"<p>{escape(stated.words)}</p>" if stated.words else ""
        rows = [(formulation.name, formulation.because) for formulation in self.formulations()]
        table = html_table("Formulations", ["formulation", "equivalent because"], rows)
        title = f"<p><b>{escape(self.describe())}</b></p>"
        return title + formula(stated.latex, self.sense) + words + table
