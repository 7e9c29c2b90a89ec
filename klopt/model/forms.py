"""The shapes a backend can be given, each of which checks its data and measures a point.

    ConeForm      minimise x'Px/2 + c'x  subject to  s = b - Ax in K
    SimplexForm   minimise f(x)  over x in a simple set
    SaddleForm    minimise over x, maximise over y, phi(x, y)  with both in simple sets
    ExplicitForm  a rule that computes the answer

Signs, once and for all: L(x, y) = x'Px/2 + c'x + y'(Ax - b), so that y lies in the dual cone K*,
stationarity is Px + c + A'y = 0, and the optimal value p*(b) has dp*/db = -y.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from klopt.arrays import FAKE_INFINITY, FloatArray, MatrixLike, SparseMatrix, csc, vector
from klopt.errors import InvalidProblem
from klopt.model.cones import Cones, Feature
from klopt.model.functions import Bilinear, DualFunction, Objective, QuadraticLike, SaddleOracle
from klopt.model.sets import BoxPlane, SimpleSet
from klopt.model.smooth_functions import SmoothFunction
from klopt.model.splitting import Splitting

__all__ = ["ConeForm", "ExplicitForm", "Form", "Residuals", "SaddleForm", "SimplexForm", "Start"]


@dataclass(frozen=True)
class Residuals:
    """How far a point is from optimal: measured by klopt, scaled by the data only, never by the iterate."""

    value: float
    """The objective at x."""
    dual_value: float
    """The objective of the multipliers; a lower bound where primal, dual and cone errors vanish."""
    primal: float
    """Distance of b - Ax from K (or of x from its set), over 1 + max|b|."""
    dual: float
    """max|Px + c + A'y| over 1 + max|c|."""
    cone: float
    """Distance of y from K*, over 1 + max|c|."""
    gap: float
    """|value - dual_value| over 1 + |value|."""
    magnitude: float
    """max(||x|| / (1 + max|b|), ||y|| / (1 + max|c|)): large where the optimum is not attained."""

    @property
    def worst(self) -> float:
        """The largest of the four errors; NaN counts as infinite."""
        errors = (self.primal, self.dual, self.cone, self.gap)
        return max(error if error == error else np.inf for error in errors)


@dataclass(frozen=True, eq=False)
class ConeForm:
    """Minimise x'Px/2 + c'x subject to b - Ax in K.

    `radius` bounds ||x||_1 over the feasible set where the problem knows one; it turns nearly right
    multipliers into rigorous bounds and refutes every claim of unboundedness.

    >>> form = ConeForm(c=[1.0, 1.0], A=[[-1.0, 0.0], [0.0, -1.0]], b=[-2.0, -3.0], cones=Cones(nonneg=2))
    >>> form.measure(np.array([2.0, 3.0]), np.array([1.0, 1.0])).worst
    0.0
    """

    c: FloatArray
    A: SparseMatrix
    b: FloatArray
    cones: Cones
    P: SparseMatrix | None = None
    radius: float = np.inf

    if TYPE_CHECKING:  # any array-like is taken; the fields hold what it was converted to

        def __init__(
            self,
            c: npt.ArrayLike,
            A: MatrixLike,
            b: npt.ArrayLike,
            cones: Cones,
            P: MatrixLike | None = None,
            radius: float = np.inf,
        ) -> None: ...

    def __post_init__(self) -> None:
        if not isinstance(self.cones, Cones):
            raise InvalidProblem(
                f"cones is {self.cones!r}; expected klopt.Cones, such as Cones(zero=1, nonneg=2)"
            )
        object.__setattr__(self, "c", vector("c", self.c))
        object.__setattr__(self, "b", vector("b", self.b, infinite=True))
        n, m = self.c.size, self.b.size
        object.__setattr__(self, "A", csc("A", self.A, (m, n)))
        if self.P is not None:
            object.__setattr__(self, "P", _symmetric_csc(csc("P", self.P, (n, n))))
        if self.cones.size != m:
            raise InvalidProblem(
                f"the cones have {self.cones.size} rows but A and b have {m}; give each row a cone"
            )
        self._check_right_hand_side()

    def _check_right_hand_side(self) -> None:
        inequality = slice(self.cones.zero, self.cones.zero + self.cones.nonneg)
        for row in np.flatnonzero(~(np.abs(self.b) < FAKE_INFINITY)):
            if np.isfinite(self.b[row]):
                raise InvalidProblem(
                    f"b[{row}] is {self.b[row]}; write inf for a bound that does not exist"
                )
            if not inequality.start <= row < inequality.stop:
                raise InvalidProblem(
                    f"b[{row}] is {self.b[row]}; only a nonnegative row may have an infinite b"
                )

    @property
    def needs(self) -> frozenset[Feature]:
        """What a backend must offer to take this form."""
        return (
            self.cones.features
            | {Feature.CONE}
            | ({Feature.QUADRATIC} if self.P is not None else set())
        )

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, variables)."""
        return self.b.size, self.c.size

    def curve(self, x: FloatArray) -> FloatArray:
        """Return Px, zero where there is no P."""
        return np.zeros_like(x) if self.P is None else self.P @ x

    def value(self, x: FloatArray) -> float:
        """Return x'Px/2 + c'x."""
        return float(x @ self.curve(x) / 2 + self.c @ x)

    def measure(self, x: FloatArray, y: FloatArray | None = None) -> Residuals:
        """Return the residuals of x and its multipliers y; without y the dual ones are infinite."""
        Px = self.curve(x)
        quadratic = float(x @ Px)
        value = quadratic / 2 + float(self.c @ x)
        vacuous = np.isinf(self.b)
        b = np.where(vacuous, 0.0, self.b)
        b_scale, c_scale = 1 + _largest(b), 1 + _largest(self.c)
        primal = self.cones.distance(np.where(vacuous, 0.0, b - self.A @ x)) / b_scale
        size = float(np.linalg.norm(x)) / b_scale
        if y is None:
            return Residuals(value, -np.inf, primal, np.inf, np.inf, np.inf, size)
        dual_value = -quadratic / 2 - float(b @ y)
        return Residuals(
            value=value,
            dual_value=dual_value,
            primal=primal,
            dual=_largest(Px + self.c + self.A.T @ y) / c_scale,
            cone=self.cones.dual_distance(y) / c_scale,
            gap=abs(value - dual_value) / (1 + abs(value)),
            magnitude=max(size, float(np.linalg.norm(y)) / c_scale),
        )


@dataclass(frozen=True, eq=False)
class SimplexForm:
    """Minimise a convex function over a simple set.

    The Frank-Wolfe gap f(x) + min g'(z - x) over the set, g the gradient at x, is an exact lower
    bound: no multipliers. Where f is nonsmooth one subgradient says little; then y may hold cuts,
    rows (weight, point) laid end to end, and the averaged linearisation at those points is the
    bound. klopt evaluates f there afresh. Where f knows a quadratic below itself
    (`klopt.model.smooth_functions.LocalModel`) y may be a point, at which that quadratic is
    linearised.
    """

    objective: Objective
    domain: SimpleSet

    def __post_init__(self) -> None:
        if not (hasattr(self.objective, "gradient") and hasattr(self.objective, "feature")):
            raise InvalidProblem(
                f"objective is {self.objective!r}; make a function one: klopt.Oracle(size, f, gradient)"
            )
        if self.objective.size != self.domain.size:
            raise InvalidProblem(
                f"the function takes {self.objective.size} entries, the set has {self.domain.size}; make them agree"
            )

    @property
    def needs(self) -> frozenset[Feature]:
        """What a backend must offer to take this form."""
        return self.domain.features | {Feature.SIMPLEX, self.objective.feature}

    @property
    def shape(self) -> tuple[int | None, int]:
        """(rows, variables): there are no rows, but y may hold a proof where f is nonsmooth or curved."""
        proven = self.objective.feature in (Feature.NONSMOOTH, Feature.CURVED)
        return None if proven else 0, self.domain.size

    def lower_bound(
        self, x: FloatArray, value: float | None = None, gradient: FloatArray | None = None
    ) -> float:
        """Return f(x) + min over z of g'(z - x), a lower bound of the optimum for any x of the domain of f.

        Over a box, an orthant say, where g >= 0 does not hold before the end, a multiple of x may
        prove more.
        """
        if self.objective.feature is Feature.ROWS and isinstance(self.objective, DualFunction):
            return self.objective.bound(x)
        value = self.objective.value(x) if value is None else value
        gradient = self.objective.gradient(x) if gradient is None else gradient
        bound = value - float(gradient @ x) + self.domain.linear_minimum(gradient)
        if isinstance(self.objective, SmoothFunction):
            return max(bound, self.objective.near(x).lower)
        box = isinstance(self.domain, BoxPlane) and self.domain.normal is None
        return max(bound, self._stretched_bound(x, gradient)) if box else bound

    def _stretched_bound(self, x: FloatArray, gradient: FloatArray) -> float:
        """The bound -t^2 x'Hx/2 + min over z of (t Hx + c)'z at the least t with t Hx + c >= 0 where c < 0."""
        if not isinstance(self.objective, QuadraticLike):
            return -np.inf
        c = self.objective.linear
        Hx, falls = gradient - c, c < 0
        with np.errstate(divide="ignore", over="ignore"):
            t = float(np.max(-c[falls] / np.maximum(Hx[falls], 0.0), initial=0.0))
        if not np.isfinite(t):
            return -np.inf
        stretched = t * Hx + c
        rounding = 8 * np.finfo(float).eps * (t * np.abs(Hx) + np.abs(c))
        stretched[np.abs(stretched) <= rounding] = 0.0
        return float(self.domain.linear_minimum(stretched) - t * t * float(x @ Hx) / 2)

    def bound_below(self, x: FloatArray, z: FloatArray | None) -> float:
        """Return the least value of the tangent at z of the quadratic that is below f and meets it at x, else -inf."""
        if not isinstance(self.objective, SmoothFunction) or z is None or z.shape != x.shape:
            return -np.inf
        here, d = self.objective.near(x), z - x
        if here.below is None:
            return -np.inf
        bend = here.below() @ d
        gradient = here.gradient + bend
        value = here.value + float(d @ (here.gradient + bend / 2))
        return value - float(gradient @ z) + self.domain.linear_minimum(gradient)

    def averaged_bound(self, y: FloatArray | None) -> float:
        """Return min over z of the weighted mean of f(x_s) + g_s'(z - x_s) over the cuts in y, -inf without any."""
        n = self.domain.size
        if y is None or not y.size or y.size % (n + 1):
            return -np.inf
        cuts = y.reshape(-1, n + 1)
        weights = np.maximum(cuts[:, 0], 0.0)
        if not weights.sum() > 0:
            return -np.inf
        constant, mean_gradient = 0.0, np.zeros(n)
        for weight, point in zip(weights / weights.sum(), cuts[:, 1:], strict=True):
            gradient = self.objective.gradient(point)
            constant += weight * (self.objective.value(point) - float(gradient @ point))
            mean_gradient += weight * gradient
        return constant + self.domain.linear_minimum(mean_gradient)

    def measure(self, x: FloatArray, y: FloatArray | None = None) -> Residuals:
        """Return the residuals of x: its violation and its Frank-Wolfe gap."""
        value = self.objective.value(x)
        lower = max(self.lower_bound(x, value), self.averaged_bound(y), self.bound_below(x, y))
        return _interval_residuals(value, lower, value, self.domain.violation(x))


@dataclass(frozen=True, eq=False)
class SaddleForm:
    """Minimise over x in `left` and maximise over y in `right` a convex-concave phi(x, y).

    The best responses to the gradients at (x, y) bound the value of the game from both sides,
    exactly.
    """

    coupling: Bilinear | SaddleOracle
    left: SimpleSet
    right: SimpleSet

    def __post_init__(self) -> None:
        if not isinstance(self.coupling, Bilinear | SaddleOracle):
            raise InvalidProblem(
                f"coupling is {self.coupling!r}; expected a Bilinear or SaddleOracle"
            )
        if isinstance(self.coupling, Bilinear) and self.coupling.M.shape != (
            self.left.size,
            self.right.size,
        ):
            raise InvalidProblem(
                f"M is {self.coupling.M.shape}; the sets ask for {(self.left.size, self.right.size)}"
            )

    @property
    def needs(self) -> frozenset[Feature]:
        """What a backend must offer to take this form."""
        shape = Feature.SPLIT if isinstance(self.coupling, Splitting) else Feature.SADDLE
        return self.left.features | self.right.features | {shape}

    @property
    def shape(self) -> tuple[int, int]:
        """(entries of y, entries of x)."""
        return self.right.size, self.left.size

    def bounds(self, x: FloatArray, y: FloatArray) -> tuple[float, float]:
        """Return (lower, upper): what x's and y's best replies, to first order, leave of the value."""
        value = self.coupling.value(x, y)
        gradient_x, gradient_y = self.coupling.gradients(x, y)
        lower = value - float(gradient_x @ x) + self.left.linear_minimum(gradient_x)
        upper = value - float(gradient_y @ y) - self.right.linear_minimum(-gradient_y)
        return lower, upper

    def measure(self, x: FloatArray, y: FloatArray | None = None) -> Residuals:
        """Return the residuals of the pair: violations and the best-response gap."""
        if y is None:
            return Residuals(
                np.nan,
                -np.inf,
                self.left.violation(x),
                np.inf,
                0.0,
                np.inf,
                float(np.linalg.norm(x)),
            )
        lower, upper = self.bounds(x, y)
        violation = max(self.left.violation(x), self.right.violation(y))
        return _interval_residuals(self.coupling.value(x, y), lower, upper, violation)


@dataclass(frozen=True, eq=False)
class ExplicitForm:
    """A rule that computes the answer (x, y) in closed form; y is None where it gives no multipliers.

    The rule must be picklable (a bound method of a problem is) so that it can run in a child
    process.
    """

    rule: Callable[[], tuple[FloatArray, FloatArray | None]]

    def __post_init__(self) -> None:
        if not callable(self.rule):
            raise InvalidProblem(
                f"rule is {self.rule!r}; expected a function without arguments that returns (x, y)"
            )

    @property
    def needs(self) -> frozenset[Feature]:
        """What a backend must offer to take this form."""
        return frozenset({Feature.EXPLICIT})

    @property
    def shape(self) -> tuple[None, None]:
        """Unknown before the rule has run."""
        return None, None

    def measure(self, x: FloatArray, y: FloatArray | None = None) -> None:
        """Return nothing: a closed form is judged by its problem's bracket alone."""
        return


Form: TypeAlias = ConeForm | SimplexForm | SaddleForm | ExplicitForm


@dataclass(frozen=True, eq=False)
class Start:
    """Where a backend may start: a primal point and, where known, its multipliers."""

    x: FloatArray
    y: FloatArray | None = None


def _interval_residuals(value: float, lower: float, upper: float, violation: float) -> Residuals:
    gap = (upper - lower) / (1 + abs(upper)) if np.isfinite(upper - lower) else np.inf
    return Residuals(value, lower, violation, 0.0, 0.0, max(gap, 0.0), 1.0)


def _largest(v: FloatArray) -> float:
    return float(np.abs(v).max()) if v.size else 0.0


def _symmetric_csc(P: SparseMatrix) -> SparseMatrix:
    """Return the symmetric part of P, refusing asymmetry beyond rounding."""
    if P.nnz == P.shape[0] ** 2:  # every entry is there, column by column
        entries = P.data.reshape(P.shape)
        if np.array_equal(entries, entries.T):
            return P
    gap = abs(P - P.T)
    if not gap.nnz:
        return P
    if gap.max() > 64 * np.finfo(float).eps * abs(P).max():
        coordinates = gap.tocoo()
        worst = int(np.argmax(coordinates.data))
        row, column = sorted((int(coordinates.row[worst]), int(coordinates.col[worst])))
        raise InvalidProblem(
            f"P is not symmetric: P[{row}, {column}] = {P[row, column]} but P[{column}, {row}] = {P[column, row]}; "
            "pass (P + P.T) / 2 if that is meant, not one triangle"
        )
    return csc("P", (P + P.T) / 2)
