"""The dual of a small Burg entropy problem, a function of many multipliers with a known minimum.

    minimise over w > 0   phi(w) = sum_j (w_j - log w_j - 1)   subject to   A w <= b

The Lagrangian phi(w) + x'(Aw - b) is minimal at w = 1 / (1 + A'x). What is left to minimise is

    f(x) = -sum_j log(1 + (A'x)_j) + b'x   over   x >= 0,

    gradient  b - Aw,     Hessian  A diag(w^2) A',

and f is infinite unless 1 + A'x > 0. Its proofs are those of weak duality:

    bound   f(x) >= -phi(w) for every feasible w
    ray     x >= 0 with A'x >= 0 and b'x < 0: no w > 0 has 0 <= x'Aw <= b'x < 0 (Farkas), and f
            decreases along x without bound

Soft rows may be violated by v >= 0 at the price weight |v|^2 / 2; that adds |x|^2 / (2 weight) to
f.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import attrs
import numpy as np
import numpy.typing as npt

from klopt.arrays import EPS, FloatArray, matrix, vector
from klopt.model.features import Feature
from klopt.model.functions import IntArray

__all__ = ["EntropyDual"]

NEWTON_STEPS = 100
"""At most so many damped Newton steps along one row; about ten are needed."""
FARKAS_TOLERANCE = 1e-12
"""What rounding may add to the entries of A'x and to b'x, relative to the terms of their sums."""


def _rows(A: npt.ArrayLike) -> FloatArray:
    return matrix("A", A)


def _right_side(b: npt.ArrayLike) -> FloatArray:
    return vector("b", b)


def _point(w: npt.ArrayLike | None) -> FloatArray | None:
    return None if w is None else vector("interior", w)


@attrs.frozen(eq=False, slots=False)
class EntropyDual:
    """f for the rows Aw <= b, hard where the weight is infinite.

    `interior` is a w > 0 with Aw < b, from which lower bounds of f are made; None where there is
    none.

    >>> dual = EntropyDual([[1.0]], [0.5], interior=[0.25])
    >>> round(dual.value(np.array([1.0])), 6), round(dual.bound(np.array([1.0])), 6)
    (-0.193147, -0.193147)
    """

    A: FloatArray = attrs.field(converter=_rows)
    b: FloatArray = attrs.field(converter=_right_side)
    interior: FloatArray | None = attrs.field(default=None, converter=_point)
    weight: float = np.inf

    accuracy: ClassVar[float] = 1e-13
    """By how much values and bounds may be off: they have fewer than 100 roundings."""

    @property
    def size(self) -> int:
        """The number of rows."""
        return int(self.b.size)

    @property
    def feature(self) -> Feature:
        """What a backend must offer."""
        return Feature.ROWS

    @property
    def is_hard(self) -> bool:
        """Whether no row may be violated."""
        return self.weight == np.inf

    def near(self, x: FloatArray) -> EntropyEvaluation:
        """Return the function near x."""
        return EntropyEvaluation(self, x.copy())

    def value(self, x: FloatArray) -> float:
        return self.near(x).value

    def gradient(self, x: FloatArray) -> FloatArray:
        return self.near(x).gradient

    def rows(self, x: FloatArray) -> EntropyRows:
        """Return x with its primal point, ready to move one multiplier after the other."""
        return EntropyRows(self, x)

    def bound(self, x: FloatArray) -> float:
        """Return -phi(w) of a feasible w near that of x, -inf where none is known."""
        w = self.near(x).primal
        # With a price for violations every w > 0 is feasible; otherwise w must move inside.
        if not self.is_hard and w is not None:
            violation = np.maximum(self.A @ w - self.b, 0.0)
            return -_entropy(w) - self.weight * float(violation @ violation) / 2
        if self.interior is None:
            return -np.inf
        return -_entropy(self.interior if w is None else self._moved_inside(w, self.interior))

    def _moved_inside(self, w: FloatArray, interior: FloatArray) -> FloatArray:
        """The first point of the segment from w to the interior point that satisfies every row."""
        margin = self.b - self.A @ interior
        rounding = 8 * EPS * (np.abs(self.A) @ w + np.abs(self.b))
        violation = np.maximum(self.A @ w - self.b + rounding, 0.0)
        t = float(np.max(violation / (violation + margin)))
        return (1 - t) * w + t * interior

    def ray(self, x: FloatArray | None = None) -> tuple[FloatArray, str] | None:
        """Return Farkas multipliers in [0, 1], found by a linear program, and what they prove."""
        from scipy.optimize import linprog

        found = linprog(self.b, A_ub=-self.A.T, b_ub=np.zeros(self.A.shape[1]), bounds=(0, 1))
        if found.x is None or self.ray_flaw(found.x):
            return None
        return found.x, "the rows contradict each other: a sum of them reads 0 <= b'x < 0"

    def ray_flaw(self, ray: FloatArray) -> str:
        """Return "" if the ray proves that no w > 0 satisfies the rows, else its flaw."""
        if not self.is_hard:
            return "rows that may be violated at a price never contradict each other"
        if ray.shape != (self.size,) or not np.isfinite(ray).all() or (ray < 0).any():
            return "a ray must hold one finite multiplier for each row, none of them negative"
        column_rounding = FARKAS_TOLERANCE * (np.abs(self.A.T) @ ray)
        if (self.A.T @ ray < -column_rounding).any():
            return "A'x has a negative entry"
        if not self.b @ ray < -FARKAS_TOLERANCE * (np.abs(self.b) @ ray):
            return "b'x is not negative"
        return ""


@dataclass(frozen=True, eq=False)
class EntropyEvaluation:
    """The function near x: its value, gradient and Hessian by blocks, all by the primal point w."""

    dual: EntropyDual
    x: FloatArray

    @property
    def primal(self) -> FloatArray | None:
        """Return w = 1 / (1 + A'x), None outside the domain of f."""
        inverse = 1 + self.dual.A.T @ self.x
        return 1 / inverse if (inverse > 0).all() else None

    @property
    def value(self) -> float:
        w = self.primal
        if w is None:
            return np.inf
        price = float(self.x @ self.x) / (2 * self.dual.weight)
        return float(np.log(w).sum() + self.dual.b @ self.x) + price

    @property
    def gradient(self) -> FloatArray:
        w = self.primal
        if w is None:
            return np.full(self.x.size, np.nan)
        gradient: FloatArray = self.dual.b - self.dual.A @ w + self.x / self.dual.weight
        return gradient

    def model(self, chosen: IntArray) -> FloatArray:
        """Return the block of the Hessian that belongs to the chosen multipliers."""
        half = self._half(chosen)
        return half @ half.T + np.eye(chosen.size) / self.dual.weight

    def thin_model(self, chosen: IntArray) -> tuple[FloatArray, FloatArray] | None:
        """Return (a, V) with diag(a) + VV' the block; None for hard rows, which have a = 0."""
        if self.dual.is_hard:
            return None
        return np.full(chosen.size, 1 / self.dual.weight), self._half(chosen)

    def _half(self, chosen: IntArray) -> FloatArray:
        w = self.primal
        assert w is not None, "there is no curvature outside the domain"
        half: FloatArray = self.dual.A[chosen] * w
        return half


class EntropyRows:
    """Multipliers x, and 1 + A'x = 1 / w, which moves with them."""

    def __init__(self, dual: EntropyDual, x: FloatArray) -> None:
        self.dual = dual
        self.x = x.copy()
        self.refresh()

    def refresh(self) -> None:
        """Compute 1 / w from x afresh: what is added step by step collects rounding."""
        self._inverse = 1 + self.dual.A.T @ self.x

    def project(self, row: int, corrected: bool = True) -> float:
        """Move x[row] to the minimum of f along it and return by how much.

        Uncorrected it may only grow. Along a row f is self-concordant, so the damped Newton steps
        -g / (h + |g| sqrt(h)), g and h the derivatives, stay in the domain and converge (Nesterov
        and Nemirovskii, 1994).
        """
        a = self.dual.A[row]
        step = 0.0
        for _ in range(NEWTON_STEPS):
            scaled = a / (self._inverse + step * a)
            multiplier = self.x[row] + step
            gradient = float(self.dual.b[row] - scaled.sum() + multiplier / self.dual.weight)
            curvature = float(scaled @ scaled + 1 / self.dual.weight)
            change = -gradient / (curvature + abs(gradient) * np.sqrt(curvature))
            step += change
            if abs(change) <= EPS * (1 + abs(step)):
                break
        step = max(step, -self.x[row] if corrected else 0.0)
        self.x[row] += step
        self._inverse = self._inverse + step * a
        return float(step)


def _entropy(w: FloatArray) -> float:
    """Return phi(w)."""
    return float((w - np.log(w) - 1).sum())
