"""What bounds of a cone program rest on, and what they are: plain arrays, and a proven end."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray

__all__ = [
    "DualWitness",
    "PrimalWitness",
    "ProvenEnd",
]

Indices = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class DualWitness:
    """What proves a lower bound: any w, y in K* and multipliers of the quadratic constraints."""

    w: FloatArray
    y: FloatArray
    quadratic: FloatArray = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True, eq=False)
class PrimalWitness:
    """What proves an upper bound: a point, and inequalities to be met with equality next to it."""

    x: FloatArray
    tight: Indices = field(default_factory=lambda: np.zeros(0, np.intp))


@dataclass(frozen=True)
class ProvenEnd:
    """A proven end of the interval, infinite where there is none, and the lemma or the obstacle."""

    value: float
    by: str
