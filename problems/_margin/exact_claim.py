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
        found = [min(max(v, least), most) for v, least, most in zip(found, low, high, strict=True)]
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

    def reply(
        self, P: Entries, c: Vector, bias: float, *proposals: FloatArray
    ) -> tuple[Vector, float]:
        """Return the best of the proposed coefficients against a played x, polished, and its bias.

        They need not be feasible: they only bound what y can reach.
        """
        n = self.n
        if self.loss == "squared":
            return fractions(rounded(proposals[0])) * 2, 0.0
        Q = np.zeros((n, n))
        for i, j, value in P:
            if i < n:
                Q[i, j] = Q[j, i] = float(value)
        linear = np.array([float(value) for value in c[:n]])
        low, high = (np.array([float(v) for v in side]) for side in self._box())
        found = [(a, bias) for a in proposals]
        if self.loss == "hinge" and Q.any():
            found.append(_active_set(Q, linear, low, high, self.plane, proposals[0]))

        def bound(pair: tuple[FloatArray, float]) -> float:
            a, b = pair
            g = Q @ a + linear + b
            if self.loss == "tube":
                g = np.sign(g) * np.maximum(np.abs(g) - self.epsilon, 0.0)
            return float(np.minimum(g * low, g * high).sum() - a @ Q @ a / 2)

        a, b = max(found, key=bound)
        w = fractions(rounded(a, bits=50))
        return (w + [abs(value) for value in w] if self.loss == "tube" else w), b

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


def _active_set(
    Q: FloatArray, c: FloatArray, low: FloatArray, high: FloatArray, plane: bool, a: FloatArray
) -> tuple[FloatArray, float]:
    """A minimum of a'Qa/2 + c'a over the box and the plane near a, and the plane's multiplier."""
    n = a.size
    a = np.clip(a, low, high)
    span = np.maximum(high - low, 1e-300)
    free = (a - low > 1e-7 * span) & (high - a > 1e-7 * span)
    a = np.where(free, a, np.where(a - low <= 1e-7 * span, low, high))
    H = Q + 1e-13 * max(float(np.diag(Q).max()), 1e-300) * np.eye(n)
    b = 0.0
    for _ in range(3 * n + 20):
        at = np.flatnonzero(free)
        k = at.size
        system = np.zeros((k + 1, k + 1))
        system[:k, :k] = H[np.ix_(at, at)]
        right = np.append(-c[at] - H[at] @ np.where(free, 0.0, a), -a[~free].sum())
        if plane and k:
            system[:k, k] = system[k, :k] = 1.0
        else:
            system[k, k] = 1.0
            right[k] = b
        solution = np.linalg.lstsq(system, right, rcond=None)[0]
        b = float(solution[k]) if plane else 0.0
        target = a.copy()
        target[at] = solution[:k]
        step = target - a
        with np.errstate(divide="ignore", invalid="ignore"):
            rooms = np.where(
                step > 0, (high - a) / step, np.where(step < 0, (low - a) / step, np.inf)
            )
        rooms[~free] = np.inf
        least = float(rooms.min(initial=np.inf))
        if least < 1:
            a = np.clip(a + least * step, low, high)
            free[int(np.argmin(rooms))] = False
            continue
        a = target
        g = H @ a + c + b
        worst = np.where(a <= low, -g, np.where(a >= high, g, 0.0))
        worst[free] = 0.0
        if worst.max(initial=0.0) <= 1e-12 * (1 + float(np.abs(c).max())):
            break
        free[int(np.argmax(worst))] = True
    return a, b


def simplex_multiplier(gradient: Vector, places: range) -> Fraction:
    """Return the multiplier of a sum for which no gradient is negative."""
    return -min(gradient[j] for j in places)


def merged(*given: Mapping[int, Fraction]) -> dict[int, Fraction]:
    """Return all multipliers of several blocks."""
    return {row: value for each in given for row, value in each.items()}
