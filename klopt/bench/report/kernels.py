"""Learned kernels side by side: weights as bars, kernel matrices as small pictures.

A picture is a PNG in a data URI of at most 48 x 48 cells, each the mean of the entries it stands
for. White is 0, blue negative, orange positive. All pictures of a problem share the scale of their
largest entry, so that they can be compared.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray
from klopt.bench.report.charts import bars
from klopt.bench.report.figures import short_name, shown
from klopt.bench.report.statements import statement_of
from klopt.bench.report.styles import StyleMap
from klopt.bench.scores import Trial, route
from klopt.engine.words import counted

__all__ = ["Learned", "Picture", "block_means", "learned", "thumbnail"]

MAX_EDGE = 48
"""Cells along the edge of a picture."""
AGREEMENT = 1e-3
"""The fraction of the largest entry by which arrays may differ and still be called equal."""
MAX_WEIGHTS = 40
"""Bars of a chart."""
MAX_BYTES = 16_000
"""Those of all pictures on a page."""
SHADES = 15
"""Shades between white and either colour."""
NEGATIVE = np.array([0, 114, 178])
POSITIVE = np.array([213, 94, 0])
"""The colours of -1 and 1: red, green, blue."""
Stored = list[tuple[Trial, FloatArray]]
"""Trials with the array that each has learned."""


@dataclass(frozen=True)
class Picture:
    """One route's weights or kernel: its name, what to show, and in words what it is."""

    name: str
    html: str
    certified: bool


@dataclass(frozen=True)
class Learned:
    """What the routes learned on one problem, and whether they agree."""

    problem: str
    pictures: tuple[Picture, ...]
    remark: str

    @property
    def size(self) -> int:
        """Bytes of all pictures."""
        return sum(len(picture.html) for picture in self.pictures)


def learned(
    found: Sequence[Trial],
    arrays: Callable[[str], Mapping[str, FloatArray]],
    styles: StyleMap,
    left: int = MAX_BYTES,
) -> Learned | None:
    """Return what the routes learned on one problem, or None where that is nothing.

    Parameters
    ----------
    found
        The trials on one problem.
    arrays
        The arrays of a run's point, by the run's key.
    styles
        The colour of each route.
    left
        Bytes that the page has left for pictures. What does not fit is left out and counted;
        matrices of certified routes that agree are one picture.
    """
    run = found[0].first
    name = statement_of(run.family).weights
    stored = [(trial, arrays(shown(trial).key)) for trial in found]
    weights = [(trial, own[name]) for trial, own in stored if _is_vector(own.get(name))]
    matrices = [(trial, own["kernel"]) for trial, own in stored if _is_matrix(own.get("kernel"))]
    if not weights and not matrices:
        return None

    drawn = [*_bars(weights, found, styles), *_thumbnails(matrices, found)]
    sizes = np.cumsum([len(picture.html) for picture in drawn])
    fit = int(np.searchsorted(sizes, left, side="right"))
    remarks = [
        _agreement(weights, "weights"),
        _agreement(matrices, "kernels"),
        _cut(weights, name),
    ]
    if fit < len(drawn):
        left_out = counted(len(drawn) - fit, "picture")
        remarks.append(f"{left_out} left out to keep the page small.")
    return Learned(run.problem, tuple(drawn[:fit]), " ".join(filter(None, remarks)))


def _is_vector(found: FloatArray | None) -> bool:
    return found is not None and found.ndim == 1 and found.size > 0


def _is_matrix(found: FloatArray | None) -> bool:
    return found is not None and found.ndim == 2 and found.shape[0] == found.shape[1] > 0


def _bars(weights: Stored, found: Sequence[Trial], styles: StyleMap) -> list[Picture]:
    top = max((float(np.nanmax(values[:MAX_WEIGHTS])) for _, values in weights), default=1.0)
    certified = [trial for trial, _ in weights if trial.certified]
    agreed = len(certified) > 1 and _spread(weights) <= AGREEMENT
    pictures = []
    for trial, values in weights:
        name = short_name(trial, found)
        if agreed and trial.certified:
            if trial is not certified[0]:
                continue  # the first of those that agree stands for all
            name = f"all {len(certified)} certified routes"
        heights = np.nan_to_num(values[:MAX_WEIGHTS])
        title = f"{route(trial.first)}: weights"
        svg = bars(heights, title, styles.of(trial.first), top)
        pictures.append(Picture(name, svg, trial.certified))
    return pictures


def _thumbnails(matrices: Stored, found: Sequence[Trial]) -> list[Picture]:
    small = [(trial, block_means(matrix)) for trial, matrix in matrices]
    top = max((float(np.abs(matrix).max()) for _, matrix in small), default=1.0)
    certified = [trial for trial, _ in matrices if trial.certified]
    agreed = len(certified) > 1 and _spread(matrices) <= AGREEMENT
    pictures = []
    for trial, matrix in small:
        name = short_name(trial, found)
        if agreed and trial.certified:
            if trial is not certified[0]:
                continue  # the first of those that agree stands for all
            name = f"all {len(certified)} certified routes"
        image = thumbnail(matrix, f"{route(trial.first)}: learned kernel", top)
        pictures.append(Picture(name, image, trial.certified))
    return pictures


def _cut(weights: Stored, name: str) -> str:
    longest = max((values.size for _, values in weights), default=0)
    if longest <= MAX_WEIGHTS:
        return ""
    return f"Shown are the first {MAX_WEIGHTS} of {longest} entries of {name}."


def _spread(stored: Stored) -> float:
    """The largest difference of certified arrays, relative to their largest entry.

    NaN where there are no two of the same shape.
    """
    certified = [values for trial, values in stored if trial.certified]
    # Formulations may differ in what they learn: arrays of other shapes cannot be compared.
    if len(certified) < 2 or len({values.shape for values in certified}) > 1:
        return float("nan")
    spread = float(np.max(np.max(certified, axis=0) - np.min(certified, axis=0)))
    return spread / (float(np.max(np.abs(certified))) or 1.0)


def _agreement(stored: Stored, noun: str) -> str:
    spread = _spread(stored)
    if np.isnan(spread):
        return ""
    if spread <= AGREEMENT:
        return f"The {noun} of all certified routes agree to {spread:.0e} of the largest entry."
    return (
        f"The {noun} of certified routes differ by up to {spread:.2g} of the largest entry; the "
        "objective does not determine them better at this tolerance."
    )


def block_means(matrix: FloatArray) -> FloatArray:
    """Return a matrix of at most 48 rows, by means over blocks where it has more."""
    n = len(matrix)
    edge = min(n, MAX_EDGE)
    cuts = np.arange(edge) * n // edge
    sums = np.add.reduceat(np.add.reduceat(np.nan_to_num(matrix), cuts, axis=0), cuts, axis=1)
    sizes = np.diff(np.append(cuts, n))
    return np.asarray(sums / np.outer(sizes, sizes))


def thumbnail(matrix: FloatArray, title: str, top: float | None = None) -> str:
    """Return an `<img>` of a matrix, one pixel a cell of `matrix` or of its block means.

    >>> thumbnail(np.eye(2), "identity").startswith('<img src="data:image/png;base64,')
    True
    """
    small = block_means(matrix)
    scale = top or float(np.abs(small).max()) or 1.0
    share = np.clip(small / scale, -1, 1)
    shades = np.rint((share + 1) * SHADES).astype(np.uint8)
    encoded = base64.b64encode(_png(shades)).decode()
    label = escape(title)
    source = f'src="data:image/png;base64,{encoded}"'
    return f'<img {source} alt="{label}" title="{label}" width="144" height="144">'


def _palette() -> bytes:
    """The colours from -1 by 0, which is white, to 1."""
    share = np.linspace(-1, 1, 2 * SHADES + 1)[:, None]
    ends = np.where(share < 0, NEGATIVE, POSITIVE)
    return bytes(np.rint(255 + (ends - 255) * np.abs(share)).astype(np.uint8).tobytes())


def _png(indices: npt.NDArray[np.uint8]) -> bytes:
    """The smallest PNG file there is: header, palette, rows with filter 0, end."""
    height, width = indices.shape
    rows = b"".join(b"\0" + row.tobytes() for row in indices)
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = (
        (b"IHDR", header),
        (b"PLTE", _palette()),
        (b"IDAT", zlib.compress(rows, 9)),
        (b"IEND", b""),
    )
    chunks = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)
