"""The epsilon-insensitive SVR dual on a kernel matrix: one signed coefficient a point, between -C and C.

    maximise  y'x - epsilon ||x||_1 - x'Kx/2   over   -C <= x <= C,  1'x = 0

x is called beta. With f = K beta and any bias b, weak duality bounds the optimum by the primal
value of f + b,

    beta'K beta/2 + C sum_i max(0, |y_i - f_i - b| - epsilon)

and the best b is a median of the breaks y_i - f_i -+ epsilon. A constant added to y changes nothing
but b, so the forms and the sums here use y less the middle of its range.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import EPS, FloatArray, MatrixLike, positive, vector
from klopt.kernels.gram import Gram
from klopt.model.cones import Feature
from klopt.model.forms import SimplexForm, Start
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
from klopt.problems._margin.forms import KernelMargin

__all__ = ["EpsilonMargin"]


@dataclass(frozen=True, eq=False)
class EpsilonMargin(KernelMargin):
    """The dual of support vector regression with kernel matrix K, targets y, penalty C and tube half-width epsilon.

    Errors up to epsilon cost nothing, beyond it C for each unit. Solutions have `beta`, a signed
    number a point, and `bias`.

    >>> problem = EpsilonMargin([[2, 1], [1, 2]], [1, -1], C=10, epsilon=0.5)
    >>> bracket = problem.bracket(Point({"beta": [0.5, -0.5]}))
    >>> round(bracket.lower, 9), round(bracket.upper, 9), bracket.point.beta
    (0.25, 0.25, array([ 0.5, -0.5]))
    """

    statement = Statement(
        r"\max_{\beta}\; y^\top\beta-\varepsilon\lVert\beta\rVert_1-\tfrac12\beta^\top "
        r"K\beta\quad\text{subject to}\quad -C\le\beta\le C,\quad \mathbf{1}^\top\beta=0",
    )
    references = ("drucker1997",)
    examples = (
        Example(
            "diabetes",
            lambda d: EpsilonMargin(d.kernel(), d.y, 10, 0.05),
            demo=(100, 200, 400),
            full=(100, 200, 400),
        ),
    )

    K: Gram
    y: FloatArray
    C: float
    epsilon: float

    sense = "max"

    if (
        TYPE_CHECKING
    ):  # matrices are taken as they come; the fields hold what they were converted to

        def __init__(
            self, K: Gram | MatrixLike, y: npt.ArrayLike, C: float, epsilon: float
        ) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "K", Gram.of(self.K))
        object.__setattr__(self, "y", vector("y", self.y, self.K.size))
        object.__setattr__(self, "C", positive("C", self.C))
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon, zero=True))
        refuse_large(self.C, self.K.scale)

    def describe(self) -> str:
        return f"EpsilonMargin(n={self.K.size}, C={self.C:g}, epsilon={self.epsilon:g})"

    @property
    def _middle(self) -> float:
        return float(self.y.min() / 2 + self.y.max() / 2)

    @property
    def _sign(self) -> float:
        return 1.0

    @property
    def _units(self) -> Units:
        return Units.of(
            self.C, self.K.scale, max(float(self.y.max() - self.y.min()) / 2, self.epsilon)
        )

    def formulations(self) -> tuple[Formulation, ...]:
        make = partial(Formulation, dual=True, scale=-self._units.value)
        box = frozenset({Feature.SIMPLEX, Feature.MARGIN, Feature.BOX})
        return (
            make(
                "box and plane",
                box,
                self._simplex,
                self._recover_halves,
                self._lift_halves,
                _HALVES,
            ),
            *self._cone_formulations(make),
        )

    def _gradients(self) -> tuple[FloatArray, float]:
        """The targets and epsilon in the form's units."""
        return (self.y - self._middle) / self._units.gradient, self.epsilon / self._units.gradient

    def _simplex(self) -> SimplexForm:
        n, (y, epsilon) = self.K.size, self._gradients()
        sign = np.repeat([1.0, -1.0], n)
        K, point = self._units.curvature(self.K.matrix), np.tile(np.arange(n), 2)
        objective = KernelQuadratic(K, sign, epsilon - sign * np.tile(y, 2), point)
        return SimplexForm(
            objective, BoxPlane(np.zeros(2 * n), np.full(2 * n, self.C / self._units.length), sign)
        )

    def _polyhedron(self) -> Polyhedron:
        """minimise -y'v + epsilon 1't over |v| <= t <= C / length, 1'v = 0."""
        n, (y, epsilon) = self.K.size, self._gradients()
        box = self.C / self._units.length
        plane = sparse.csr_array(np.repeat([[1.0, 0.0]], n, axis=1))
        tube = sparse.kron(np.array([[1.0, -1.0], [-1.0, -1.0], [0.0, 1.0]]), sparse.eye_array(n))
        b = np.concatenate([np.zeros(2 * n + 1), np.full(n, box)])
        c = np.concatenate([-y, np.full(n, epsilon)])
        return Polyhedron(
            c, sparse.vstack([plane, tube], format="csc"), b, zero=1, radius=2 * n * box
        )

    def _recover(self, x: FloatArray, y: FloatArray | None) -> Point:
        beta = self._units.length * x[: self.K.size]
        # The multiplier of the plane is the bias: K beta + bias = y -+ epsilon where 0 < |beta| <
        # C.
        bias = {} if y is None else {"bias": self._units.gradient * y[0] + self._middle}
        return Point({"beta": beta, **bias})

    def _recover_halves(self, x: FloatArray, y: FloatArray | None) -> Point:
        return self._recover(x[: self.K.size] - x[self.K.size :], y)

    def _lift(self, point: Point) -> Start:
        v = point.beta / self._units.length
        return Start(np.concatenate([v, np.abs(v)]))

    def _lift_halves(self, point: Point) -> Start:
        v = point.beta / self._units.length
        return Start(np.concatenate([np.maximum(v, 0.0), np.maximum(-v, 0.0)]))

    def bracket(self, point: Point) -> Bracket:
        n, y = self.K.size, self.y - self._middle
        beta = BoxPlane(np.full(n, -self.C), np.full(n, self.C), np.ones(n)).repair(
            finite(point.beta)
        )
        f = self.K.matrix @ beta
        gain = float(y @ beta) - self.epsilon * float(np.abs(beta).sum())
        stretch = self._stretch(beta, gain, float(beta @ f))
        beta, f, gain = (
            (beta, f, gain) if stretch == 1.0 else (stretch * beta, stretch * f, stretch * gain)
        )
        curve, length, phi = float(beta @ f), float(beta @ beta), -self.K.floor
        rounding = 8 * EPS * float(np.abs(beta) @ (np.abs(f) + np.abs(y) + self.epsilon))
        bias, excess = self._tube(f)
        reach = self.C + np.abs(beta)
        near = self._primal(excess, curve) + phi / 2 * float(reach @ reach)
        upper = min(near, self._primal(excess + phi * np.sqrt(length), curve + phi * length))
        duals = {"slack": np.maximum(excess, 0.0)}
        normal = normal_of(point, self.K)
        if normal is not None:
            value = self._primal(self._tube(normal @ self.K.factor())[1], float(normal @ normal))
            value += self.K.factor_error() / 2 * n * self.C * self.C
            upper, duals = (value, {**duals, "normal": normal}) if value < upper else (upper, duals)
        solved = Point({"beta": beta, "bias": bias + self._middle}, duals)
        return Bracket(gain - curve / 2 - phi / 2 * length - rounding, upper + rounding, solved)

    def _tube(self, f: FloatArray) -> tuple[float, FloatArray]:
        """The best bias, and by how much each residual leaves the tube under it."""
        residual = self.y - self._middle - f
        bias = best_shift(
            np.concatenate([residual - self.epsilon, residual + self.epsilon]), f.size
        )
        return bias, np.abs(residual - bias) - self.epsilon

    def _primal(self, excess: FloatArray, curve: float) -> float:
        return curve / 2 + self.C * float(np.maximum(excess, 0.0).sum())

    def _stretch(self, beta: FloatArray, gain: float, curve: float) -> float:
        """The factor that raises the dual value most inside the box; 1 where that is rounding."""
        most = float(np.abs(beta).max())
        if gain <= 0 or not (curve > 0 and most > 0):
            return 0.0 if gain < 0 else 1.0
        factor = min(gain / curve, self.C / most)
        more = (factor - 1) * gain - (factor**2 - 1) * curve / 2
        return factor if more > 1e-9 * gain else 1.0

    @classmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        n = max(size, 2)
        X = rng.normal(size=(n, 2))
        squares = np.square(X[:, None] - X).sum(axis=2)
        y = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=n)
        C, epsilon = float(rng.choice([0.1, 1.0, 10.0])), float(rng.choice([0.0, 0.1]))
        return cls(Gram.of(np.exp(-squares / 2)), y, C, epsilon)


_HALVES = "x = u - v with u, v >= 0 costs epsilon 1'(u + v), least where one of each pair is zero: ||x||_1"
