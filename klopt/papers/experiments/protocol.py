"""An experiment as data: table rows, methods with their grids, splits and comparisons.

A method is a function. It gets all points, the labels it may see (-1 where it may not) and the
points it is asked about, and returns their classes, once for each cost C. A supervised method uses
the labelled points only; one on a graph uses all. Whatever is hidden, for the test or in
cross-validation, is not passed at all. In regression labels are numbers (NaN where hidden), and the
score is the share of the variance that is explained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray
from klopt.errors import InvalidSettings

__all__ = [
    "Asks",
    "Choice",
    "Decide",
    "Graph",
    "IntArray",
    "Labels",
    "LearningTask",
    "Method",
    "PaperFigure",
    "Protocol",
    "Reason",
    "Scale",
    "TableRow",
    "choices",
]

T = TypeVar("T")
IntArray = npt.NDArray[np.int64]
Labels = npt.NDArray[Any]
"""Classes 0, 1, .. or, in regression, numbers."""
Asks = Literal["unlabelled", "labelled", "withheld"]
"""Points without label that a method may see, labelled ones, or points that it has not seen."""
Scale = Literal["deviation", "range", "none", "all points"]
"""Whether features get mean 0 and deviation 1, or the range from 0 to 1, on the labelled points.

"all points" is mean 0 and deviation 1 over all points, labelled or not: no label enters.
"""


@dataclass(frozen=True)
class Graph:
    """The neighbour graph of a data set."""

    neighbours: int = 5
    weights: Literal["binary", "gaussian"] = "binary"
    power: int = 1
    """The power of the Laplacian."""


@dataclass(frozen=True)
class Choice:
    """A point of the grid of hyperparameters besides the cost C."""

    width: float = 1.0
    """gamma of the Gaussian kernel times features x variance, unless the method says otherwise."""
    weight: float = 1.0
    """What a method weighs its graph or its labels by, or what the method says."""


def choices(
    width: tuple[float, ...] = (1.0,), weight: tuple[float, ...] = (1.0,)
) -> tuple[Choice, ...]:
    """Return the grid of all pairs.

    >>> choices(weight=(0.1, 1.0))
    (Choice(width=1.0, weight=0.1), Choice(width=1.0, weight=1.0))
    """
    return tuple(Choice(*pair) for pair in product(width, weight))


@dataclass(frozen=True, eq=False)
class LearningTask:
    """The points, the labels a method may see and the points it has to decide."""

    X: FloatArray
    labels: Labels
    """Classes 0, 1, .. and -1 where the label is hidden; in regression numbers and NaN."""
    asked: IntArray
    """The points to be decided."""
    graph: Graph
    seed: int = 0
    withheld: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Points that a method must not learn from, labels or not."""
    kept: dict[str, Any] = field(default_factory=dict, repr=False)
    """What methods cache about the points and the graph, never about labels."""

    @property
    def known(self) -> IntArray:
        """The points whose labels are told."""
        return np.flatnonzero(
            self.labels >= 0 if self.labels.dtype.kind == "i" else ~np.isnan(self.labels)
        )

    def once(self, name: str, make: Callable[[], T]) -> T:
        """Return what `make` makes of the points and the graph, made once."""
        if name not in self.kept:
            self.kept[name] = make()
        found: T = self.kept[name]
        return found


Decide = Callable[[LearningTask, Choice, tuple[float, ...]], Labels]
"""Returns classes or numbers, costs x points asked about."""


@dataclass(frozen=True)
class Method:
    """A column of the table; a grid of one point needs no cross-validation."""

    name: str
    decide: Decide
    choices: tuple[Choice, ...] = (Choice(),)
    costs: tuple[float, ...] = (1.0,)
    chosen_by: Decide | None = None
    """The method that cross-validation evaluates in place of this one, where this one is slow."""
    asks: Asks = "unlabelled"
    """Which points it is scored on."""


@dataclass(frozen=True)
class PaperFigure:
    """Accuracy and deviation that the paper reports of a method, in percent; NaN where missing."""

    method: str
    mean: float
    deviation: float


@dataclass(frozen=True)
class TableRow:
    """A data set of the table."""

    data: str
    labelled: float | int
    """The share of labelled points, or their number."""
    graph: Graph = Graph()
    reported: tuple[PaperFigure, ...] = ()
    balanced: bool = False
    """Whether as many points of each class are labelled, whatever splits are published."""
    noise: float = 0.0
    """Deviation of the noise added to a Gaussian kernel, an indefinite similarity; 0 for points."""
    widths: tuple[float, ...] = (1.0,)
    """Of the Gaussian kernels with noise, one similarity each."""
    scale: Scale | None = None
    """The scaling of this set where it is not the protocol's."""
    withheld: float = 0.0
    """The share of the points that no method sees before it is asked about them."""
    group: str = ""
    """What sets of its kind are called, where a test is made over each kind."""

    @property
    def name(self) -> str:
        """The name of the set, with the number of labels where that is the protocol's."""
        return self.data if isinstance(self.labelled, float) else f"{self.data} ({self.labelled})"

    def figure(self, method: str) -> PaperFigure | None:
        """Return what the paper reports of the method."""
        return next((figure for figure in self.reported if figure.method == method), None)


@dataclass(frozen=True)
class Reason:
    """Why a method's figures differ from the paper's, on one set or ("") on all."""

    method: str
    why: str
    row: str = ""


@dataclass(frozen=True)
class Protocol:
    """An experiment."""

    name: str
    title: str
    rows: tuple[TableRow, ...]
    methods: tuple[Method, ...]
    reference: str
    """The method that the others are compared with."""
    splits: int = 10
    folds: int = 5
    fit_on: Literal["rest", "fold"] = "rest"
    """Whether cross-validation fits on all folds but one, or on one alone."""
    chosen_on: Literal["labelled", "asked"] = "labelled"
    """Whether cross-validation chooses, or what is best on the points asked about.

    The second bounds what any choice reaches: it explains a paper's figure and is never a result.
    """
    scale: Scale = "deviation"
    regression: bool = False
    score: Literal["accuracy", "f-score"] = "accuracy"
    """What is reported; parameters are chosen by accuracy in any case."""
    level: float = 0.05
    notes: tuple[str, ...] = ()
    """Where the protocol is not the paper's, and why."""
    reasons: tuple[Reason, ...] = ()
    """What is known of differences from the paper, the particular ones first."""
    learned: tuple[str, ...] = ()
    """The methods that learn a kernel."""
    comparisons: tuple[tuple[str, str], ...] = ()
    """Pairs of methods that are tested over the sets, besides each learned one and the reference."""

    def why(self, row: str, method: str) -> str:
        """Return what is known of a difference from the paper, "" where nothing is."""
        mine = (
            reason.why
            for reason in self.reasons
            if reason.method == method and reason.row in (row, "")
        )
        return next(mine, "")

    def rows_of(self, method: str, names: Iterable[str]) -> tuple[TableRow, ...]:
        """Return the rows with the paper's figure of a method, repeated under each of the names."""
        known = list(names)
        found = ((row, row.figure(method)) for row in self.rows)
        return tuple(
            replace(row, reported=tuple(replace(own, method=x) for x in known))
            for row, own in found
            if own
        )

    def __post_init__(self) -> None:
        names = [method.name for method in self.methods]
        if self.reference not in names:
            raise InvalidSettings(
                f"reference is {self.reference!r}; expected one of {', '.join(names)}"
            )
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise InvalidSettings(f"two methods are called {twice.pop()!r}")
