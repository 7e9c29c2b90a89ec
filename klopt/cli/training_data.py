"""A kernel problem on data of one's own: the arguments of its class by their names.

An argument is, in this order, an array of that name in the file, made of the points X and their y, an
option of that name, or the default of the class.

    K, K0         the kernel matrix of X          kernels, S        those of all kernels asked for
    V             the smoothest eigenvectors of the graph of neighbours of X
    laplacian     the normalised Laplacian of that graph
    y             -1 and +1 of two classes, or the targets of a regression
    labels, side  the classes by number, -1 where y is missing
    similar, dissimilar   all pairs of points of one class, of two classes

A CSV file has one point a row, y in its last column; a first row of names is skipped. An .npz file
has X and y, or the arrays themselves.
"""

from __future__ import annotations

import ast
import csv
import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray
from klopt.errors import InvalidProblem, InvalidSettings
from klopt.kernels.datasets import NEIGHBOURS, SMOOTH_EIGENVECTORS
from klopt.kernels.eigenpairs import smoothest_eigenpairs
from klopt.kernels.gram import Gram
from klopt.kernels.graphs import UNLABELLED, knn_graph, laplacian
from klopt.model.problem import Problem
from klopt.programs.formats.source import SourceFile, reading

__all__ = ["TrainingData", "problem_of", "read_options", "read_training_data"]

MISSING = ("", "?", "nan", "NaN", "NA")
"""How a cell says that a label is not known."""


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Points with labels or targets, or arrays by name, and the kernels to make of them.

    Parameters
    ----------
    path
        Where they come from, for messages.
    arrays
        The arrays of an .npz file; of a CSV file X and y.
    kernels
        NAME or NAME:PARAMETER, as `klopt solve --kernel` takes them.
    positive
        The label that is +1 where there are more than two; "" where there are two.
    """

    path: Path
    arrays: Mapping[str, npt.NDArray[Any]]
    kernels: tuple[str, ...]
    positive: str

    @cached_property
    def X(self) -> FloatArray:
        """The points."""
        if "X" not in self.arrays:
            raise InvalidProblem(f"{self.path} has no X; it has {', '.join(self.arrays)}")
        points = np.asarray(self.arrays["X"])
        if points.ndim != 2 or points.dtype.kind not in "biuf":
            raise InvalidProblem(f"X of {self.path} is no table of numbers")
        return points.astype(float)

    @property
    def targets(self) -> npt.NDArray[Any]:
        """Labels or targets as they stand in the file."""
        if "y" not in self.arrays:
            raise InvalidProblem(f"{self.path} has no y; it has {', '.join(self.arrays)}")
        return np.asarray(self.arrays["y"])

    @property
    def numbers(self) -> FloatArray:
        """The targets of a regression."""
        try:
            return self.targets.astype(float)
        except ValueError:
            raise InvalidProblem(f"y of {self.path} is no list of numbers") from None

    @property
    def signs(self) -> FloatArray:
        """-1 and +1: of two classes the second is +1, of more the one that was named."""
        labels, counts = np.unique(self.targets, return_counts=True)
        if self.positive:
            positive = self.targets.astype(str) == self.positive
            if not positive.any():
                raise InvalidSettings(
                    f"--positive is {self.positive!r}; y of {self.path} has {_some(labels)}"
                )
            return np.where(positive, 1.0, -1.0)
        if counts.size != 2:
            raise InvalidProblem(
                f"y of {self.path} has {counts.size} classes ({_some(labels)}); "
                "--positive LABEL makes one of them +1 and the others -1"
            )
        return np.where(self.targets == labels[1], 1.0, -1.0)

    @property
    def classes(self) -> npt.NDArray[np.int64]:
        """The classes by number, -1 where the label is missing; whole numbers stay what they are."""
        given = self.targets
        if given.dtype.kind in "biu":
            return given.astype(np.int64)
        texts = np.array([str(value).strip() for value in given.tolist()])
        is_known = ~np.isin(texts, MISSING)
        numbers = np.full(texts.size, UNLABELLED, dtype=np.int64)
        numbers[is_known] = np.unique(texts[is_known], return_inverse=True)[1]
        return numbers

    def kernel(self, spec: str) -> FloatArray | Gram:
        """Return the kernel matrix that NAME or NAME:PARAMETER means."""
        from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

        name, colon, text = spec.partition(":")
        known = ("precomputed", *PAIRWISE_KERNEL_FUNCTIONS)
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(known)}"
            raise InvalidSettings(f"there is no kernel {name!r}{hint}")
        if name == "precomputed":
            return self.X
        parameter = _number(f"--kernel {spec}", text) if colon else None
        if name == "rbf":
            return Gram.rbf(self.X, parameter)
        options = {} if parameter is None else {"degree" if name == "poly" else "gamma": parameter}
        K = pairwise_kernels(self.X, metric=name, filter_params=True, **options)
        return np.asarray(K, dtype=float)

    @cached_property
    def graph(self) -> Any:
        """The normalised Laplacian of the graph of neighbours."""
        return laplacian(knn_graph(self.X, NEIGHBOURS))

    @property
    def smooth(self) -> FloatArray:
        """The smoothest eigenvectors of that graph, as columns."""
        return smoothest_eigenpairs(self.graph, min(SMOOTH_EIGENVECTORS, len(self.X) - 1))[1]

    def pairs(self, is_same: bool) -> npt.NDArray[np.int64]:
        """Return all pairs of points whose labels are known, those of one class or of two."""
        classes = self.classes
        known = np.flatnonzero(classes != UNLABELLED)
        i, j = known[np.array(np.triu_indices(known.size, 1))]
        chosen = (classes[i] == classes[j]) == is_same
        pairs: npt.NDArray[np.int64] = np.column_stack((i, j))[chosen]
        return pairs


MADE: Mapping[str, Callable[[TrainingData], Any]] = {
    "K": lambda data: data.kernel(data.kernels[0]),
    "K0": lambda data: data.kernel(data.kernels[0]),
    "kernels": lambda data: [data.kernel(spec) for spec in data.kernels],
    "S": lambda data: [_matrix(data.kernel(spec)) for spec in data.kernels],
    "V": lambda data: data.smooth,
    "laplacian": lambda data: data.graph,
    "labels": lambda data: data.classes,
    "side": lambda data: data.classes,
    "similar": lambda data: data.pairs(is_same=True),
    "dissimilar": lambda data: data.pairs(is_same=False),
}
"""How an argument is made of points and labels."""


def _matrix(kernel: FloatArray | Gram) -> FloatArray:
    return kernel.matrix if isinstance(kernel, Gram) else kernel


def problem_of(cls: type[Problem], data: TrainingData, options: Mapping[str, str]) -> Problem:
    """Return the problem of a class on the data, with options for its other arguments.

    Parameters
    ----------
    cls
        The class of the problem.
    data
        The points and their labels.
    options
        Texts by the names of arguments.
    """
    parameters = inspect.signature(cls).parameters
    if not (MADE.keys() & parameters.keys() or parameters.keys() & data.arrays.keys()):
        raise InvalidSettings(
            f"{cls.__name__} is no problem about points with labels; give a file that states it"
        )
    for name in options:
        if name not in parameters or name in MADE:
            free = [each for each in parameters if each not in MADE and each != "y"]
            near = difflib.get_close_matches(name, free, n=1)
            hint = f"did you mean --{near[0]}?" if near else f"it has {_listed(free)}"
            raise InvalidSettings(f"{cls.__name__} has no --{name}; {hint}")
    arguments: dict[str, Any] = {}
    for name, parameter in parameters.items():
        if name in data.arrays and name != "y":
            arguments[name] = data.arrays[name]
        elif name in options:
            arguments[name] = _literal(options[name])
        elif name == "y":
            tube = parameters.get("epsilon")
            # With a default it is for one of several losses.
            is_regression = tube is not None and tube.default is tube.empty
            is_regression = is_regression or options.get("loss") in ("squared", "epsilon")
            # The squared loss of similarities is no loss of the labels.
            is_regression = is_regression and "S" not in parameters
            arguments[name] = data.numbers if is_regression else data.signs
        elif name in MADE:
            arguments[name] = MADE[name](data)
        elif parameter.default is parameter.empty:
            raise InvalidSettings(f"{cls.__name__} needs {name}; give --{name} VALUE")
    return cls(**arguments)


def read_options(words: Sequence[str]) -> dict[str, str]:
    """Return --NAME VALUE and --NAME=VALUE as texts by name.

    >>> read_options(["--C", "1", "--loss=squared"])
    {'C': '1', 'loss': 'squared'}
    """
    options: dict[str, str] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--"):
            raise InvalidSettings(f"{word!r} is no option; write --NAME VALUE")
        name, equals, value = word.removeprefix("--").partition("=")
        if not equals:
            if not rest:
                raise InvalidSettings(f"--{name} has no value; write --{name} VALUE")
            value = rest.pop(0)
        options[name] = value
    return options


def _literal(text: str) -> Any:
    """A Python literal, or the text itself."""
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return np.inf if text == "inf" else text


def _number(what: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidSettings(f"{what}: {text!r} is not a number") from None


def _some(labels: npt.NDArray[Any]) -> str:
    shown = [str(label) for label in labels[:5].tolist()]
    return ", ".join(shown) + (", ..." if labels.size > len(shown) else "")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"--{name}" for name in names) or "no options"


# Files


def read_training_data(path: str, kernels: Sequence[str], positive: str) -> TrainingData:
    """Return the data in an .npz or .csv file.

    Parameters
    ----------
    path
        Where the file is.
    kernels, positive
        As in `TrainingData`.
    """
    place = Path(path)
    if not place.exists():
        raise InvalidProblem(f"no file {path!r}")
    suffix = place.suffix.lower()
    with reading(place) as source:
        if suffix == ".npz":
            with np.load(source.path, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
        elif suffix == ".csv":
            arrays = _table(source)
        else:
            raise InvalidProblem(f"{path} is no .npz and no .csv file")
    return TrainingData(place, arrays, tuple(kernels) or ("rbf",), positive)


def _table(source: SourceFile) -> dict[str, npt.NDArray[Any]]:
    """X and y of a CSV file: numbers, and in the last column labels or targets."""
    rows = [row for row in csv.reader(source.lines()) if any(cell.strip() for cell in row)]
    if not rows:
        raise source.malformed(None, "it has no rows")
    # A row of names has none that is a number.
    first = 1 if not any(_is_number(cell) for cell in rows[0]) else 0
    width = len(rows[first]) if len(rows) > first else 0
    if width < 2:
        raise source.malformed(first + 1, "expected points and, in the last column, their y")
    X = np.empty((len(rows) - first, width - 1))
    for place, row in enumerate(rows[first:]):
        if len(row) != width:
            raise source.malformed(first + place + 1, f"expected {width} cells, found {len(row)}")
        for column, cell in enumerate(row[:-1]):
            if not _is_number(cell):
                raise source.malformed(
                    first + place + 1, f"{cell!r} in column {column + 1} is not a number"
                )
            X[place, column] = float(cell)
    last = [row[-1].strip() for row in rows[first:]]
    y: npt.NDArray[Any] = np.array(last)
    if all(_is_number(cell) for cell in last):
        y = np.array([float(cell) for cell in last])
        # Whole numbers are classes: -1 stays -1.
        if np.array_equal(y, np.round(y)):
            y = y.astype(np.int64)
    return {"X": X, "y": y}


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False
