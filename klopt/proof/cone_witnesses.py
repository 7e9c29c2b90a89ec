"""What bounds of a cone program rest on, and what they are: plain arrays, and a proven end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray

if TYPE_CHECKING:
    from klopt.proof.statement import ConeStatement

__all__ = [
    "ConeClaim",
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


@dataclass(frozen=True, eq=False)
class ConeClaim:
    """A problem stated as a cone program, with a point and multipliers that may prove its optimum.

    Parameters
    ----------
    statement
        The cone program, which minimises.
    x, y, quadratic
        The point, and the multipliers of the rows and of the quadratic constraints.
    scale, shift
        The problem's value is `scale` times that of the cone program, plus `shift`.
    """

    statement: ConeStatement
    x: FloatArray
    y: FloatArray
    quadratic: FloatArray
    scale: float = 1.0
    shift: float = 0.0
