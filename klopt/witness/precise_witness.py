"""Proves the ends of a small cone program with many digits, where floats did not prove them.

The interior-point method in high precision proposes (`klopt.witness.precise_barrier`). Multipliers
that have no interior may still be made of short numbers, as in relaxations of combinatorial problems:
those are proposed rounded, and the core decides about them in rationals.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from klopt.arrays import FloatArray
from klopt.proof.certificate import is_narrow
from klopt.proof.cone_lower_bound import lower_bound
from klopt.proof.cone_witnesses import DualWitness, ProvenEnd
from klopt.proof.precise_bounds import precise_lower_bound, precise_upper_bound
from klopt.proof.statement import ConeStatement
from klopt.witness.precise_barrier import PrecisePair, is_affordable, precise_pairs

__all__ = ["PreciseProof", "precise_proof", "short_multipliers"]

GAP = 1e-9
"""The gap that is aimed at, relative to 1 + |value|."""
NARROW = 1e-8
"""A relative gap below which no better pair is looked for."""
SHORT_BITS = (0, 1, 2, 4)
"""Binary digits after the point of multipliers that are tried as short numbers ..."""
MAX_ROUNDING = 0.02
"""... if the largest change, relative to the largest entry, is no larger."""


@dataclass(frozen=True, eq=False)
class PreciseProof:
    """Both ends, and the vectors they rest on in floats."""

    lower: ProvenEnd
    upper: ProvenEnd
    x: FloatArray
    y: FloatArray


def precise_proof(statement: ConeStatement) -> PreciseProof | None:
    """Return the ends that many digits prove; None where the program is too large or of another kind.

    >>> from scipy import sparse
    >>> from klopt.model.cones import Cones
    >>> A = sparse.csc_array([[-1.0], [0.0], [-1.0]])
    >>> statement = ConeStatement(np.ones(1), A, np.array([0.0, 3.0, 0.0]), Cones(psd=(2,)), plain=True)
    >>> proof = precise_proof(statement)
    >>> 2.9999999 < proof.lower.value <= 3.0 <= proof.upper.value < 3.0000001
    True
    """
    if not is_affordable(statement):
        return None
    found: PreciseProof | None = None
    for pair in precise_pairs(statement, GAP):
        found = _better(found, _proof(statement, pair))
        if is_narrow(found.lower.value, found.upper.value, NARROW):
            break
    return found


def _proof(statement: ConeStatement, pair: PrecisePair) -> PreciseProof:
    """What one pair proves."""
    upper = precise_upper_bound(statement, pair.x)
    lower = precise_lower_bound(statement, pair.y)
    y = pair.rounded_y
    if not np.isfinite(lower.value):
        for short in short_multipliers(y):
            end = lower_bound(statement, DualWitness(pair.rounded_x, short))
            if end.value > lower.value:
                lower = end
                y = short
    return PreciseProof(lower, upper, pair.rounded_x, y)


def _better(one: PreciseProof | None, other: PreciseProof) -> PreciseProof:
    """The better end of each."""
    if one is None:
        return other
    if one.lower.value >= other.lower.value:
        other = replace(other, lower=one.lower, y=one.y)
    if one.upper.value <= other.upper.value:
        other = replace(other, upper=one.upper, x=one.x)
    return other


def short_multipliers(y: FloatArray) -> Iterator[FloatArray]:
    """Yield multipliers rounded to few binary digits, where that changes them little.

    >>> list(short_multipliers(np.array([0.9999, 0.0001])))[0]
    array([1., 0.])
    """
    size = float(np.max(np.abs(y), initial=0.0))
    last = y
    for bits in SHORT_BITS:
        short = np.ldexp(np.rint(np.ldexp(y, bits)), -bits)
        near = float(np.max(np.abs(short - y), initial=0.0)) <= MAX_ROUNDING * size
        if near and not np.array_equal(short, last):
            yield short + 0.0
            last = short
