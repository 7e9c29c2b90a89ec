"""The C-SVM dual on a kernel matrix: one multiplier a point, between 0 and C.

    maximise  1'a - a'Qa/2   over   0 <= a <= C,  y'a = 0         Q_ij = y_i K_ij y_j

C = inf is the hard margin. With f = K(y o a), any bias b and any s >= 0, weak duality bounds the
optimum by

    s^2 a'Qa/2 + C sum_i max(0, 1 - s m_i),     m_i = y_i (f_i + b)

the primal value of the classifier s (f + b). The best b is a median of the breaks y_i - f_i. The
best s matters where C is large: a classifier whose margins fall short of 1 by 1e-12 pays C times
for that, one stretched by 1e-12 does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import EPS, FloatArray, MatrixLike, positive
from klopt.kernels.gram import Gram, binary_labels
from klopt.model.cones import Feature
from klopt.model.forms import SimplexForm
from klopt.model.functions import KernelQuadratic
from klopt.model.problem import Bracket, Example, Formulation, Point, Statement
from klopt.model.sets import BoxPlane
from klopt.problems._margin.data import (
    Polyhedron,
    Units,
    best_shift,
    finite,
    normal_of,
    refuse_large,
)
from klopt.problems._margin.forms import LabelledMargin
from klopt.problems._margin.proof import best_stretch, hinge_primal

__all__ = ["SoftMargin"]


@dataclass(frozen=True, eq=False)
class SoftMargin(LabelledMargin):
    """The dual of the support vector machine with kernel matrix K, labels y of -1 and +1, and penalty C.

    C is what a point pays for each unit of margin that it lacks; inf allows none. Solutions have
    `alpha` and `bias`.

    >>> problem = SoftMargin([[2, 1], [1, 2]], [1, -1], C=10)
    >>> bracket = problem.bracket(Point({"alpha": [1.0, 1.0]}))
    >>> round(bracket.lower, 9), round(bracket.upper, 9), bracket.point.alpha
    (1.0, 1.0, array([1., 1.]))
    """

    statement = Statement(
        r"\max_{\alpha}\; \mathbf{1}^\top\alpha-\tfrac12\alpha^\top Q\alpha"
        r"\quad\text{subject to}\quad 0\le\alpha\le C,\quad y^\top\alpha=0,\qquad "
        r"Q_{ij}=y_iK_{ij}y_j",
    )
    references = ("cortes1995",)
    examples = (
        Example(
            "breast",
            lambda d: SoftMargin(d.kernel(), d.signs, 100),
            demo=(100, 200, 400),
            full=(150, 300, 569),
        ),
    )

    K: Gram
    y: FloatArray
    C: float

    sense = "max"

    if (
        TYPE_CHECKING
    ):  # matrices are taken as they come; the fields hold what they were converted to

        def __init__(self, K: Gram | MatrixLike, y: npt.ArrayLike, C: float) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "K", Gram.of(self.K))
        object.__setattr__(self, "y", binary_labels(self.y, self.K.size))
        object.__setattr__(self, "C", positive("C", self.C, infinite=True))
        refuse_large(self.C, self.K.scale)

    def describe(self) -> str:
        return f"SoftMargin(n={self.K.size}, C={self.C:g})"

    @property
    def _units(self) -> Units:
        return Units.of(self.C, self.K.scale)

    def formulations(self) -> tuple[Formulation, ...]:
        make = partial(Formulation, dual=True, scale=-self._units.value)
        box = frozenset({Feature.SIMPLEX, Feature.MARGIN, Feature.BOX})
        return (
            make("box and plane", box, self._simplex, self._recover, self._lift),
            *self._cone_formulations(make),
        )

    def _simplex(self) -> SimplexForm:
        n = self.K.size
        objective = KernelQuadratic(self._units.curvature(self.K.matrix), self.y, np.full(n, -1.0))
        return SimplexForm(
            objective, BoxPlane(np.zeros(n), np.full(n, self.C / self._units.length), self.y)
        )

    def _polyhedron(self) -> Polyhedron:
        """minimise -1'u over u >= 0, u <= C / length, y'u = 0."""
        n, box = self.K.size, self.C / self._units.length
        bounds = [-sparse.eye_array(n)] + [sparse.eye_array(n)] * int(np.isfinite(box))
        A = sparse.vstack([sparse.csr_array(self.y[None, :]), *bounds], format="csc")
        b = np.concatenate([np.zeros(n + 1), np.full(n if np.isfinite(box) else 0, box)])
        smaller_class = min(np.count_nonzero(self.y > 0), np.count_nonzero(self.y < 0))
        return Polyhedron(np.full(n, -1.0), A, b, zero=1, radius=2 * smaller_class * box)

    def _recover(self, x: FloatArray, y: FloatArray | None) -> Point:
        alpha = self._units.length * x[: self.K.size]
        # The multiplier of the plane is the bias: Qa + bias y = 1 where 0 < a < C.
        return Point({"alpha": alpha} if y is None else {"alpha": alpha, "bias": y[0]})

    def bracket(self, point: Point) -> Bracket:
        n, y, phi = self.K.size, self.y, -self.K.floor
        a = BoxPlane(np.zeros(n), np.full(n, self.C), y).repair(finite(point.alpha))
        f = self.K.matrix @ (y * a)
        stretch = best_stretch(a, float(a @ (y * f)), self.C)
        a, f = (a, f) if stretch == 1.0 else (stretch * a, stretch * f)
        total, curve, length = float(a.sum()), float(a @ (y * f)), float(a @ a)
        rounding = 8 * EPS * (total + float(a @ np.abs(f)))
        bias = self._bias(f)
        margins = y * (f + bias)
        upper, _ = hinge_primal(margins - phi * np.sqrt(length), curve + phi * length, self.C)
        near, scale = hinge_primal(margins, curve, self.C)
        reach = np.maximum(scale * a, np.abs(self.C - scale * a))
        apart = min(float(reach @ reach), scale**2 * length + self._farthest(upper))
        upper = min(upper, near + phi / 2 * apart if phi else near)
        duals = {"slack": np.maximum(1 - margins, 0.0)}
        normal = normal_of(point, self.K)
        if normal is not None:
            value = self._by_normal(normal, upper)
            upper, duals = (value, {**duals, "normal": normal}) if value < upper else (upper, duals)
        note = (
            ""
            if np.isfinite(upper)
            else "this point separates nothing, so it bounds nothing from above"
        )
        solved = Point({"alpha": a, "bias": bias}, duals)
        return Bracket(
            total - curve / 2 - phi / 2 * length - rounding, upper + rounding, solved, note
        )

    def _bias(self, f: FloatArray) -> float:
        return best_shift(self.y - f, int(np.count_nonzero(self.y > 0)))

    def _farthest(self, upper: float) -> float:
        """A bound of ||a*||^2: as a*'Qa* <= 1'a*, else a smaller multiple were better, 1'a* is at most 2 optimum."""
        return (
            min(4 * upper * upper, self.C * min(2 * upper, self.K.size * self.C)) if upper else 0.0
        )

    def _by_normal(self, normal: FloatArray, upper: float) -> float:
        f = normal @ self.K.factor()
        value, _ = hinge_primal(self.y * (f + self._bias(f)), float(normal @ normal), self.C)
        return value + self.K.factor_error() / 2 * self._farthest(upper)

    @classmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        n = max(size, 2)
        y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
        X = rng.normal(size=(n, 3)) + y[:, None] / 2
        squares = np.square(X[:, None] - X).sum(axis=2)
        return cls(Gram.of(np.exp(-squares / 3)), y, C=float(rng.choice([0.1, 1.0, 10.0])))
