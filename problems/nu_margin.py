"""The nu-SVM dual on a kernel matrix: one multiplier a point, between 0 and 1/n, at least nu in sum.

    minimise  a'Qa/2   over   0 <= a <= 1/n,  y'a = 0,  1'a >= nu         Q_ij = y_i K_ij y_j

nu bounds the share of points on the wrong side of the margin from above and that of the support
vectors from below (Schoelkopf, Smola, Williamson and Bartlett, 2000). The set has a point if and
only if nu <= 2 min(n+, n-) / n. Since a'Qa falls where a shrinks, 1'a = nu may be asked for: then
each class has the sum nu/2, and the optimum is half the squared distance of the two reduced convex
hulls, scaled.

With f = K(y o a) and g = the least z'(y o f) over the set, which sorting gives class by class, any
s >= 0 bounds the optimum from below by  s g - s^2 a'Qa/2;  the best s makes that g^2 / (2 a'Qa).
The prices at which the two sums are met are rho - b and rho + b, of the classifier f + b with the
margin rho.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import EPS, FloatArray, MatrixLike, positive
from klopt.errors import InvalidProblem
from klopt.kernels.gram import Gram, binary_labels
from klopt.model.cones import Feature
from klopt.model.forms import SimplexForm, Start
from klopt.model.functions import KernelQuadratic, Oracle
from klopt.model.problem import Bracket, Example, Formulation, Point, Statement
from klopt.model.sets import BoxPlane, Product
from klopt.problems._margin.data import Polyhedron, Units, finite, normal_of
from klopt.problems._margin.forms import LabelledMargin

__all__ = ["NuMargin"]


@dataclass(frozen=True, eq=False)
class NuMargin(LabelledMargin):
    """The dual of the nu-SVM with kernel matrix K, labels y of -1 and +1, and 0 < nu <= 2 min(n+, n-) / n.

    At most a share nu of the points is on the wrong side of the margin, at least that share are
    support vectors. Solutions have `alpha`, `bias` and the margin `rho`.

    >>> problem = NuMargin([[2, 1], [1, 2]], [1, -1], nu=1.0)
    >>> bracket = problem.bracket(Point({"alpha": [0.5, 0.5]}))
    >>> round(bracket.lower, 9), round(bracket.upper, 9), bracket.point.rho
    (0.25, 0.25, array(0.5))
    """

    statement = Statement(
        r"\min_{\alpha}\; \tfrac12\alpha^\top Q\alpha\quad\text{subject to}\quad "
        r"0\le\alpha\le 1/n,\quad y^\top\alpha=0,\quad \mathbf{1}^\top\alpha\ge\nu,"
        r"\qquad Q_{ij}=y_iK_{ij}y_j",
    )
    references = ("scholkopf2000",)
    examples = (
        Example(
            "wine", lambda d: NuMargin(d.kernel(), d.signs, 0.2), demo=(150,), full=(50, 100, 178)
        ),
    )

    K: Gram
    y: FloatArray
    nu: float

    if (
        TYPE_CHECKING
    ):  # matrices are taken as they come; the fields hold what they were converted to

        def __init__(self, K: Gram | MatrixLike, y: npt.ArrayLike, nu: float) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "K", Gram.of(self.K))
        object.__setattr__(self, "y", binary_labels(self.y, self.K.size))
        nu, most, n = positive("nu", self.nu), self._most, self.K.size
        if nu > most * (1 + 4 * EPS):
            counts = f"{np.count_nonzero(self.y > 0)} of {n} points are +1, {np.count_nonzero(self.y < 0)} are -1"
            raise InvalidProblem(
                f"nu is {nu:g}; {counts}, so nu can be at most 2 min / n = {most!r}"
            )
        object.__setattr__(self, "nu", min(nu, most))

    @property
    def _most(self) -> float:
        smaller_class = min(np.count_nonzero(self.y > 0), np.count_nonzero(self.y < 0))
        return 2 * float(smaller_class) / self.K.size

    def describe(self) -> str:
        return f"NuMargin(n={self.K.size}, nu={self.nu:g})"

    @property
    def _units(self) -> Units:
        """a in units of about 1/n, K in units of its mean diagonal."""
        return Units.of(1 / self.K.size, self.K.scale, 2 * self.K.scale / self.K.size)

    @property
    def _order(self) -> npt.NDArray[np.intp]:
        """The points of class +1, then those of class -1."""
        return np.argsort(-self.y, kind="stable")

    def formulations(self) -> tuple[Formulation, ...]:
        make = partial(Formulation, scale=self._units.value)
        return (
            *self._cone_formulations(make),
            make(
                "two capped simplices",
                frozenset({Feature.SIMPLEX, Feature.SMOOTH, Feature.BOX}),
                self._simplices,
                self._recover_simplices,
                self._lift_simplices,
                "a'Qa falls where a shrinks, so 1'a = nu at some optimum; with y'a = 0 each class has the sum nu/2",
            ),
        )

    def _polyhedron(self) -> Polyhedron:
        """u >= 0, u <= 1 / (n length), 1'u >= nu / length, y'u = 0."""
        n, length = self.K.size, self._units.length
        unit, one = sparse.eye_array(n), sparse.csr_array(np.ones((1, n)))
        A = sparse.vstack([sparse.csr_array(self.y[None, :]), -unit, unit, -one], format="csc")
        b = np.concatenate([np.zeros(n + 1), np.full(n, 1 / n), [-self.nu]]) / length
        return Polyhedron(np.zeros(n), A, b, zero=1, radius=self._most / length)

    def _hulls(self, length: float = 1.0) -> Product:
        """The two classes' parts of the set, in order; a is measured in lengths."""
        n, parts = self.K.size, []
        for count in (np.count_nonzero(self.y > 0), np.count_nonzero(self.y < 0)):
            box = np.full(count, 1 / n / length)
            parts.append(BoxPlane(np.zeros(count), box, np.ones(count), self.nu / 2 / length))
        return Product(tuple(parts))

    def _simplices(self) -> SimplexForm:
        order, units = self._order, self._units
        f = KernelQuadratic(
            units.curvature(self.K.matrix), self.y[order], np.zeros(self.K.size), order
        )
        return SimplexForm(Oracle(self.K.size, f.value, f.gradient), self._hulls(units.length))

    def _recover(self, x: FloatArray, y: FloatArray | None) -> Point:
        return Point({"alpha": self._units.length * x[: self.K.size]})

    def _recover_simplices(self, x: FloatArray, y: FloatArray | None) -> Point:
        alpha = np.empty(self.K.size)
        alpha[self._order] = self._units.length * x
        return Point({"alpha": alpha})

    def _lift_simplices(self, point: Point) -> Start:
        return Start(point.alpha[self._order] / self._units.length)

    def bracket(self, point: Point) -> Bracket:
        n, y, order, phi = self.K.size, self.y, self._order, -self.K.floor
        a = np.maximum(finite(point.alpha), 0.0)
        a *= min(
            1.0, self.nu / (float(a.sum()) or 1.0)
        )  # nearest to a longer one need not be its own multiple
        a[order] = self._hulls().repair(a[order])
        f = self.K.matrix @ (y * a)
        # |K_ij| <= r_i r_j, so that the terms of f_i add up to at most r_i size: they may cancel,
        # their rounding not.
        r = np.sqrt(np.maximum(self.K.matrix.diagonal(), 0.0))
        size = float(r @ a)
        curve = float(a @ (y * f)) + phi * float(a @ a) + 8 * EPS * size * size
        lower = self._below(f, curve, 8 * EPS * size * float(r.max()))
        duals: dict[str, FloatArray] = {}
        normal = normal_of(point, self.K)
        if normal is not None:
            image, size = normal @ self.K.factor(), float(np.linalg.norm(normal))
            value = self._below(image, size * size * (1 + 8 * EPS), 8 * EPS * size * float(r.max()))
            value -= self.K.factor_error() / 2 * self.nu / n
            lower, duals = (value, {"normal": normal}) if value > lower else (lower, duals)
        _, plus, minus = self._margin(f)
        bias, rho = (minus - plus) / 2, (minus + plus) / 2
        slack = np.maximum(rho - y * (f + bias), 0.0)
        solved = Point({"alpha": a, "bias": bias, "rho": rho}, {"slack": slack, **duals})
        # (z - sa)'Q(z - sa) >= 0 errs by phi (||z||^2 + s^2 ||a||^2) at most, ||z||^2 by nu/n; that
        # a'Qa falls where a shrinks errs too, by phi ||z||^2 where it is below 0.
        return Bracket(lower - phi * self._most / n, curve / 2, solved)

    def _below(self, f: FloatArray, curve: float, error: float) -> float:
        """The largest s g - s^2 curve / 2 over s >= 0, f being known up to an error in each entry."""
        gain = max(self._margin(f)[0] - self.nu * error, 0.0)
        return gain * gain / (2 * curve) * (1 - 8 * EPS) if curve > 0 else 0.0

    def _margin(self, f: FloatArray) -> tuple[float, float, float]:
        """The least z'(y o f) over the set, and the price at which each class has its sum."""
        (one, plus), (other, minus) = (
            self._knapsack(np.sort(s * f[self.y == s])) for s in (1.0, -1.0)
        )
        return one + other, plus, minus

    def _knapsack(self, m: FloatArray) -> tuple[float, float]:
        """The least z'm over 0 <= z <= 1/n, 1'z = nu/2 for rising m, and the price there: between two, the middle."""
        room = self.nu * self.K.size / 2
        whole = min(int(room), m.size)
        after = float(m[min(whole, m.size - 1)])
        before = after if room > whole else float(m[whole - 1])
        return (float(m[:whole].sum()) + (room - whole) * after) / self.K.size, (before + after) / 2

    @classmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        n = max(size, 2)
        y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
        X = rng.normal(size=(n, 3)) + y[:, None] / 2
        squares = np.square(X[:, None] - X).sum(axis=2)
        most = 2 * (n // 2) / n
        return cls(Gram.of(np.exp(-squares / 3)), y, nu=most * float(rng.choice([0.2, 0.5, 1.0])))
