"""The machine of a kernel problem as the player y of a saddle program, in fractions.

    minimise  -targets'a + loss(a) + a'Qa/2   over the coefficients a of the machine

The hinge keeps a in a box, a tube adds epsilon ||a||_1 by t >= |a|, and the squared loss is taken of a
copy e = a, so that multipliers that cancel the gradient exactly need no linear system to be solved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from klopt.arrays import FloatArray
from klopt.errors import NotCertified
from klopt.witness.exact_claims import ConeData, Entries, Vector, fractions

__all__ = ["MAX_POINTS", "Machine", "rounded"]

MAX_POINTS = 130
"""More points make the matrices of a saddle program too long for a certificate."""


def rounded(values: FloatArray, size: float | None = None, bits: int = 40) -> FloatArray:
    """Return values with few digits: multiples of a power of two below the largest one.

    >>> rounded(np.array([1 / 3, 1.0]), bits=2)
    array([0.25, 1.  ])
    """
    largest = float(np.abs(values).max(initial=0.0)) if size is None else size
    if not largest:
        return values
    unit = 2.0 ** (np.ceil(np.log2(largest)) - bits)
    return np.asarray(np.round(values / unit) * unit)


@dataclass(frozen=True, eq=False)
class Machine:
    """The coefficients of a machine and their constraints.

    Parameters
    ----------
    targets
        Labels or targets.
    C
        The penalty of each point.
    loss
        "hinge", "tube" or "squared".
    plane
        Whether 1'a = 0.
    epsilon
        The half-width of a tube.
    """

    targets: FloatArray
    C: FloatArray
    loss: str
    plane: bool
    epsilon: float = 0.0

    @property
    def n(self) -> int:
        return self.targets.size

    @property
    def variables(self) -> int:
        """How many variables the machine takes; a comes first."""
        return self.n if self.loss == "hinge" else 2 * self.n

    def side(self, more: int = 0) -> ConeData:
        """Return the constraints and the loss, with room for more variables at the end."""
        n = self.n
        data = ConeData(self.variables + more)
        every = range(n)
        if self.loss == "squared":
            data.add("zero", n, [{j: 1, n + j: -1} for j in every], [0] * n)
            data.P = [(n + j, n + j, 1 / Fraction(C)) for j, C in enumerate(self.C.tolist())]
            for j, target in enumerate(fractions(self.targets)):
                data.c[n + j] = -target
            return data
        for j, target in enumerate(fractions(self.targets)):
            data.c[j] = -target
        if self.plane:
            data.add("zero", 1, [dict.fromkeys(every, 1)], [0])
        low, high = self._box()
        data.add("nonnegative", n, [{j: -1} for j in every], [-value for value in low])
        data.add("nonnegative", n, [{j: 1} for j in every], high)
        if self.loss == "tube":
            data.add("nonnegative", n, [{j: 1, n + j: -1} for j in every], [0] * n)
            data.add("nonnegative", n, [{j: -1, n + j: -1} for j in every], [0] * n)
            data.c[n : 2 * n] = [Fraction(self.epsilon)] * n
        return data

    def _box(self) -> tuple[Vector, Vector]:
        C = fractions(self.C)
        if self.loss == "tube":
            return [-value for value in C], C
        pairs = list(zip(self.targets.tolist(), C, strict=True))
        zero = Fraction(0)
        return [min(-c, zero) if y < 0 else zero for y, c in pairs], [
            c if y > 0 else zero for y, c in pairs
        ]

    def point(self, a: FloatArray) -> Vector:
        """Return a feasible point near a, with few digits."""
        found = fractions(rounded(a))
        if self.loss == "squared":
            return found + found
        low, high = self._box()
        found = [min(max(v, l), h) for v, l, h in zip(found, low, high, strict=True)]
        left = sum(found, Fraction(0)) if self.plane else Fraction(0)
        for j in sorted(range(self.n), key=lambda j: -min(high[j] - found[j], found[j] - low[j])):
            moved = min(max(found[j] - left, low[j]), high[j])
            left += moved - found[j]
            found[j] = moved
            if not left:
                break
        if left:
            raise NotCertified("the coefficients could not be balanced")
        return found + [abs(value) for value in found] if self.loss == "tube" else found

    def given(
        self, side: ConeData, bias: float, w: Vector, P: Entries, c: Vector
    ) -> tuple[dict[int, Fraction], Vector]:
        """Return multipliers of rows that are no bounds, and w, if x is played.

        Parameters
        ----------
        side
            The constraints.
        bias
            The multiplier of the plane.
        w
            The coefficients.
        P, c
            The objective of y.
        """
        n = self.n
        if self.loss == "squared":
            # Qw + c + mu = 0, and e / C - y - mu = 0.
            inner = [(i, j, value) for i, j, value in P if i < n and j < n]
            gradient = side.curved(w, inner)
            mu = [-(gradient[j] + c[j]) for j in range(n)]
            C = fractions(self.C)
            e = [C[j] * (mu[j] - c[n + j]) for j in range(n)]
            return dict(enumerate(mu)), [*w[:n], *e, *w[2 * n :]]
        given = {0: Fraction(bias)} if self.plane else {}
        if self.loss == "tube":
            first = 2 * n + (1 if self.plane else 0)
            gradient = side.gradient(given, w, P, c)
            epsilon = Fraction(self.epsilon)
            for j in range(n):
                inside = min(max(gradient[j], -epsilon), epsilon)
                given[first + j] = (epsilon - inside) / 2
                given[first + n + j] = (epsilon + inside) / 2
        return given, w


def simplex_multiplier(gradient: Vector, places: range) -> Fraction:
    """Return the multiplier of a sum for which no gradient is negative."""
    return -min(gradient[j] for j in places)


def merged(*given: Mapping[int, Fraction]) -> dict[int, Fraction]:
    """Return all multipliers of several blocks."""
    return {row: value for each in given for row, value in each.items()}
