"""Learned kernels side by side: weights as bars, kernel matrices as small pictures.

A picture is a PNG in a data URI, at most 48 x 48 cells, each the mean of the entries it stands for.
White is 0, blue negative, orange positive, in the scale of the largest entry of all pictures of a
problem, so that they can be compared.
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
from klopt.bench.report.styles import Looks
from klopt.bench.scores import Trial, route

__all__ = ["Learned", "Picture", "block_means", "learned", "thumbnail"]

EDGE = 48
AGREE = 1e-3
"""The share of the largest entry by which arrays may differ and still look the same."""
MOST_WEIGHTS = 40
PICTURES = 36_000
"""Bytes of pictures on a page."""
SHADES = 15
NEGATIVE, POSITIVE = np.array([0, 114, 178]), np.array([213, 94, 0])


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
    looks: Looks,
    left: int = PICTURES,
) -> Learned | None:
    """Return what the routes learned on one problem, or None where nothing is.

    Matrices of certified routes that agree are one picture; pictures beyond `left` bytes are left
    out and counted.
    """
    run = found[0].first
    name = statement_of(run.family).weights
    stored = [(trial, arrays(shown(trial).key)) for trial in found]
    weights = [
        (trial, own[name])
        for trial, own in stored
        if name in own and own[name].ndim == 1 and own[name].size
    ]
    matrices = [(trial, own["kernel"]) for trial, own in stored if _is_matrix(own.get("kernel"))]
    if not weights and not matrices:
        return None
    drawn = [*_bars(weights, found, looks), *_thumbnails(matrices, found)]
    fit = int(
        np.searchsorted(np.cumsum([len(picture.html) for picture in drawn]), left, side="right")
    )
    more = (
        f"{len(drawn) - fit} pictures are left out to keep the page small."
        if fit < len(drawn)
        else ""
    )
    remarks = (
        _agreement(weights, "weights"),
        _agreement(matrices, "kernels"),
        _cut(weights, name),
        more,
    )
    return Learned(run.problem, tuple(drawn[:fit]), " ".join(filter(None, remarks)))


def _is_matrix(found: FloatArray | None) -> bool:
    return found is not None and found.ndim == 2 and found.shape[0] == found.shape[1] > 0


def _bars(
    weights: list[tuple[Trial, FloatArray]], found: Sequence[Trial], looks: Looks
) -> list[Picture]:
    top = max((float(np.nanmax(values[:MOST_WEIGHTS])) for _, values in weights), default=1.0)
    return [
        Picture(
            short_name(trial, found),
            bars(
                np.nan_to_num(values[:MOST_WEIGHTS]),
                f"{route(trial.first)}: weights",
                looks.of(trial.first),
                top,
            ),
            trial.certified,
        )
        for trial, values in weights
    ]


def _thumbnails(matrices: list[tuple[Trial, FloatArray]], found: Sequence[Trial]) -> list[Picture]:
    small = [(trial, block_means(matrix)) for trial, matrix in matrices]
    top = max((float(np.abs(matrix).max()) for _, matrix in small), default=1.0)
    certified = [trial for trial, _ in matrices if trial.certified]
    agreed = len(certified) > 1 and _apart(matrices) <= AGREE
    shown_ones = [item for item in small if not (agreed and item[0] in certified[1:])]
    return [
        Picture(
            f"all {len(certified)} certified routes"
            if agreed and trial.certified
            else short_name(trial, found),
            thumbnail(matrix, f"{route(trial.first)}: learned kernel", top),
            trial.certified,
        )
        for trial, matrix in shown_ones
    ]


def _cut(weights: list[tuple[Trial, FloatArray]], name: str) -> str:
    most = max((values.size for _, values in weights), default=0)
    return (
        f"Shown are the first {MOST_WEIGHTS} of {most} entries of {name}."
        if most > MOST_WEIGHTS
        else ""
    )


def _apart(stored: list[tuple[Trial, FloatArray]]) -> float:
    """How far the arrays of certified routes lie apart, in the scale of the largest entry; NaN without two alike."""
    certified = [values for trial, values in stored if trial.certified]
    if len(certified) < 2 or len({values.shape for values in certified}) > 1:
        return float("nan")
    spread = float(np.max(np.max(certified, axis=0) - np.min(certified, axis=0)))
    return spread / (float(np.max(np.abs(certified))) or 1.0)


def _agreement(stored: list[tuple[Trial, FloatArray]], noun: str) -> str:
    apart = _apart(stored)
    if np.isnan(apart):
        return ""
    if apart <= AGREE:
        return f"The {noun} of all certified routes agree to {apart:.0e} of the largest entry."
    return f"The {noun} are not unique: certified routes differ by up to {apart:.2g} of the largest entry."


def block_means(matrix: FloatArray) -> FloatArray:
    """Return a matrix of at most 48 rows: that of the means over blocks where it has more."""
    n = len(matrix)
    edge = min(n, EDGE)
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
    share = np.clip(small / (top or float(np.abs(small).max()) or 1.0), -1, 1)
    encoded = base64.b64encode(_png(np.rint((share + 1) * SHADES).astype(np.uint8))).decode()
    label = escape(title)
    return f'<img src="data:image/png;base64,{encoded}" alt="{label}" title="{label}" width="144" height="144">'


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
