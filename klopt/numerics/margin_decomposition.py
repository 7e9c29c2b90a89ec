"""Support vector machines of many points by decomposition: a working set at a time, K never stored.

    maximise  y'z - z'Kz/2   over   1'z = 0,  0 <= y_i z_i <= C

With f = Kz kept, optimality is a threshold b between the y_i - f_i of all points whose z may rise and
of those whose z may fall. A round takes the points that violate this most, of either kind,
solves the quadratic program in them exactly, and adds what changed to f. A third of them are points
between their bounds, which give way to the others.

The start comes from a sample of the points, on which each stands for n / (sample size) of them: C is
larger by that factor. Its coefficients are then shared out. A point belongs to the nearest support
vector of its class, and in each such group those with the smallest margin get C until the
coefficient of the group is used up. So each part of the space keeps its mass, and f its shape.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray
from klopt.numerics.box_qp.active_set import solve_box_qp
from klopt.numerics.box_qp.program import Box, BoxQP, SignedGram

__all__ = ["Decomposition", "KernelTiles", "Round", "decompose", "from_sample"]

Indices = npt.NDArray[np.intp]

SAMPLE = 3000
"""Points of the sample that the start comes from."""
WORKING_SET = 1200
"""Points of a working set."""
QP_TOLERANCE = 1e-7
"""The relative gap of the program of a working set."""
SUPPORT_AT_ONCE = 512
"""Points whose nearest support vector is looked for at a time."""


class KernelTiles(Protocol):
    """A kernel matrix of which tiles and products are computed when they are asked for."""

    @property
    def size(self) -> int:
        """The number of points."""
        ...

    def tile(self, rows: Any, columns: Any) -> FloatArray:
        """Return the entries of these rows and columns."""
        ...

    def product(self, columns: Indices, values: FloatArray) -> FloatArray:
        """Return K z for a z with these values in these columns."""
        ...


@dataclass(frozen=True)
class Round:
    """The state after a round: an estimate of the relative gap, and the points that changed."""

    number: int
    seconds: float
    value: float
    relative_gap: float
    changed: int


@dataclass(frozen=True, eq=False)
class Decomposition:
    """The coefficients z, f = Kz up to rounding, and all rounds."""

    z: FloatArray
    f: FloatArray
    rounds: tuple[Round, ...]


Report = Callable[[Round], None]


def from_sample(kernel: KernelTiles, y: FloatArray, C: float, seed: int) -> FloatArray:
    """Return feasible coefficients z from the machine of a sample of the points."""
    n = y.size
    rng = np.random.default_rng(seed)
    size = min(n, SAMPLE)
    # Both classes in their shares, so that the sample has both.
    parts = [np.flatnonzero(y > 0), np.flatnonzero(y < 0)]
    counts = [max(1, round(size * part.size / n)) for part in parts]
    sample = np.concatenate(
        [rng.permutation(part)[:count] for part, count in zip(parts, counts, strict=True)]
    )
    signs = y[sample]
    upper = np.full(sample.size, C * n / sample.size)
    program = BoxQP(
        SignedGram(kernel.tile(sample, sample), signs),
        np.full(sample.size, -1.0),
        Box(np.zeros(sample.size), upper, signs),
    )
    coefficients = solve_box_qp(program, None, QP_TOLERANCE).x
    if n == sample.size:
        z = np.zeros(n)
        z[sample] = signs * coefficients
        return z

    used = coefficients > 0
    support = sample[used]
    masses = coefficients[used]
    f = kernel.product(support, y[support] * masses)
    a = np.zeros(n)
    for part in parts:
        own = y[support] == y[part[0]]
        a[part] = _shared_out(kernel, part, support[own], masses[own], (y * f)[part], C)
    return y * _with_equal_sums(a, y)


def _shared_out(
    kernel: KernelTiles,
    points: Indices,
    support: Indices,
    masses: FloatArray,
    margins: FloatArray,
    C: float,
) -> FloatArray:
    """The mass of each support vector for the points nearest to it, those of small margin first."""
    group = np.concatenate(
        [
            np.argmax(kernel.tile(points[start : start + SUPPORT_AT_ONCE], support), axis=1)
            for start in range(0, points.size, SUPPORT_AT_ONCE)
        ]
    )
    order = np.lexsort((margins, group))
    starts = np.searchsorted(group[order], np.arange(support.size))
    rank = np.arange(points.size) - starts[group[order]]
    a = np.empty(points.size)
    a[order] = np.clip(masses[group[order]] - C * rank, 0.0, C)
    return a


def _with_equal_sums(a: FloatArray, y: FloatArray) -> FloatArray:
    """The class with the larger sum, scaled down to that of the other."""
    plus = float(a[y > 0].sum())
    minus = float(a[y < 0].sum())
    smaller = min(plus, minus)
    return np.where(y > 0, a * (smaller / (plus or 1.0)), a * (smaller / (minus or 1.0)))


def decompose(
    kernel: KernelTiles,
    y: FloatArray,
    C: float,
    z: FloatArray,
    tol: float,
    deadline: float = np.inf,
    report: Report | None = None,
) -> Decomposition:
    """Return coefficients whose relative gap is about `tol` or less, or those at the deadline.

    Parameters
    ----------
    kernel
        The kernel matrix.
    y, C
        Labels -1 and +1, and the penalty.
    z
        Feasible coefficients to start from.
    tol
        The relative gap aimed at, as estimated in floating point.
    deadline
        When to stop, on the clock of `time.perf_counter`.
    report
        Called after each round.
    """
    began = time.perf_counter()
    z = z.copy()
    low = np.where(y > 0, 0.0, -C)
    high = np.where(y > 0, C, 0.0)
    support = np.flatnonzero(z)
    f = kernel.product(support, z[support])
    rounds: list[Round] = []
    changed = support.size
    while True:
        value, gap = _relative_gap(y, C, z, f)
        rounds.append(Round(len(rounds), time.perf_counter() - began, value, gap, changed))
        if report is not None:
            report(rounds[-1])
        if gap <= tol or not changed or time.perf_counter() >= deadline:
            return Decomposition(z, f, tuple(rounds))
        working = _working_set(y - f, z, low, high, C)
        step = _step(kernel, working, z, f, y, low, high)
        moved = np.flatnonzero(step)
        changed = moved.size
        z[working] += step
        f += kernel.product(working[moved], step[moved])


def _relative_gap(y: FloatArray, C: float, z: FloatArray, f: FloatArray) -> tuple[float, float]:
    """The dual value and an estimate of the gap, relative to the primal value."""
    square = float(z @ f)
    breaks = np.sort(y - f)
    count = int(np.count_nonzero(y > 0))
    bias = (breaks[count - 1] + breaks[min(count, y.size - 1)]) / 2
    primal = square / 2 + C * float(np.maximum(1 - y * (f + bias), 0.0).sum())
    dual = float(y @ z) - square / 2
    return dual, (primal - dual) / max(primal, np.finfo(float).tiny)


def _working_set(
    v: FloatArray, z: FloatArray, low: FloatArray, high: FloatArray, C: float
) -> Indices:
    """The points that most want to rise or fall."""
    inside = 1e-12 * C
    may_rise = z < high - inside
    may_fall = z > low + inside
    rise = np.where(may_rise, v, -np.inf)
    fall = np.where(may_fall, v, np.inf)
    third = min(WORKING_SET // 3, v.size - 1)
    top = np.argpartition(-rise, third)[:third]
    bottom = np.argpartition(fall, third)[:third]
    # Points between their bounds give way to both: without them a round moves little.
    free = np.flatnonzero(may_rise & may_fall)
    if free.size > third:
        middle = np.median(v[free])
        nearest = np.argpartition(np.abs(v[free] - middle), third)[:third]
        free = free[nearest]
    return np.union1d(np.union1d(top, bottom), free)


def _step(
    kernel: KernelTiles,
    working: Indices,
    z: FloatArray,
    f: FloatArray,
    y: FloatArray,
    low: FloatArray,
    high: FloatArray,
) -> FloatArray:
    """How far the working set goes to its optimum."""
    K = kernel.tile(working, working)
    now = z[working]
    box = Box(low[working], high[working], np.ones(working.size), float(now.sum()))
    program = BoxQP(SignedGram(K), f[working] - K @ now - y[working], box)
    found = solve_box_qp(program, now, QP_TOLERANCE)
    step = found.x - now
    # Rounding is no step.
    step[np.abs(step) <= 1e-14 * np.abs(now)] = 0.0
    return step
