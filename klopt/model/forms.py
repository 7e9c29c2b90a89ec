"""The forms a backend can be given, each of which checks its data and measures a point.

    ConeForm      minimise x'Px/2 + c'x  subject to  s = b - Ax in K
    SimplexForm   minimise f(x)  over x in a simple set
    SaddleForm    minimise over x, maximise over y, phi(x, y)  with both in simple sets
    ExplicitForm  a rule that computes the answer

Signs are the same everywhere: L(x, y) = x'Px/2 + c'x + y'(Ax - b), so that y lies in the dual cone
K*, stationarity is Px + c + A'y = 0, and the optimal value p*(b) has dp*/db = -y.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite, isnan
from typing import TypeAlias, cast

import attrs
import numpy as np

from klopt.arrays import (
    EPS,
    FAKE_INFINITY,
    MAX_ULPS_OF_ASYMMETRY,
    FloatArray,
    MatrixLike,
    SparseMatrix,
    as_bounds,
    as_csc,
    as_vector,
    csc,
    require_shape,
)
from klopt.errors import InvalidProblem
from klopt.model.cones.product import Cones
from klopt.model.features import Feature
from klopt.model.functions.dual import DualFunction
from klopt.model.functions.protocols import Objective, QuadraticLike
from klopt.model.functions.quadratics import KernelQuadratic, Quadratic
from klopt.model.functions.saddle import Bilinear, SaddleOracle, Splitting
from klopt.model.functions.smooth import SmoothFunction
from klopt.model.sets.box_plane import BoxPlane
from klopt.model.sets.simple_set import SimpleSet

__all__ = ["ConeForm", "ExplicitForm", "Form", "Residuals", "SaddleForm", "SimplexForm", "Start"]

MAX_SUMMED_ENTRIES = 50_000
"""Entries of A up to which A'y is summed entry by entry."""


@dataclass(frozen=True)
class Residuals:
    """How far a point is from optimal: measured by klopt, scaled by the data, never the iterate."""

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
        return max(np.inf if isnan(error) else error for error in errors)


def _symmetric_csc(value: MatrixLike) -> SparseMatrix:
    """Return P as a symmetric matrix, refusing asymmetry beyond rounding."""
    P = csc("P", value)
    # A rectangular P is refused by its shape, once the number of variables is known.
    if P.shape[0] != P.shape[1]:
        return P
    # Where every entry is there, column by column, a comparison needs no sparse arithmetic.
    if P.nnz == P.shape[0] ** 2:
        entries = P.data.reshape(P.shape)
        if np.array_equal(entries, entries.T):
            return P

    gap = abs(P - P.T)
    if not gap.nnz:
        return P
    if gap.max() > MAX_ULPS_OF_ASYMMETRY * EPS * abs(P).max():
        coordinates = gap.tocoo()
        worst = int(np.argmax(coordinates.data))
        row, column = sorted((int(coordinates.row[worst]), int(coordinates.col[worst])))
        raise InvalidProblem(
            f"P is not symmetric: P[{row}, {column}] = {P[row, column]} "
            f"but P[{column}, {row}] = {P[column, row]}; "
            "pass (P + P.T) / 2 if that is meant, not one triangle"
        )
    return csc("P", (P + P.T) / 2)


@attrs.frozen(eq=False, slots=False)
class ConeForm:
    """Minimise x'Px/2 + c'x subject to b - Ax in K.

    Parameters
    ----------
    c, A, b:
        Arrays of the program; A is dense or sparse. A nonnegative row with b = inf is vacuous.
    cones:
        K, one cone after the other.
    P:
        Symmetric, positive semidefinite matrix; None for a linear objective.
    radius:
        A bound on ||x||_1 over the feasible set where the problem knows one. It turns nearly right
        multipliers into rigorous bounds and refutes every claim of unboundedness.

    >>> identity = np.eye(2)
    >>> form = ConeForm(c=[1.0, 1.0], A=-identity, b=[-2.0, -3.0], cones=Cones(nonneg=2))
    >>> form.measure(np.array([2.0, 3.0]), np.array([1.0, 1.0])).worst
    0.0
    """

    c: FloatArray = attrs.field(converter=as_vector)
    A: SparseMatrix = attrs.field(converter=as_csc)
    b: FloatArray = attrs.field(converter=as_bounds)
    cones: Cones
    P: SparseMatrix | None = attrs.field(
        default=None, converter=attrs.converters.optional(_symmetric_csc)
    )
    radius: float = np.inf

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.cones, Cones):
            raise InvalidProblem(
                f"cones is {self.cones!r}; expected klopt.Cones, such as Cones(zero=1, nonneg=2)"
            )
        n = self.c.size
        m = self.b.size
        require_shape("A", self.A.shape, (m, n))
        if self.P is not None:
            require_shape("P", self.P.shape, (n, n))
        if self.cones.size != m:
            raise InvalidProblem(
                f"the cones have {self.cones.size} rows but A and b have {m}; give each row a cone"
            )
        self._check_right_hand_side()

    def _check_right_hand_side(self) -> None:
        # An infinite b says that a row s >= 0 is vacuous; no other cone has such a row.
        first = self.cones.zero
        end = first + self.cones.nonneg
        for row in np.flatnonzero(~(np.abs(self.b) < FAKE_INFINITY)):
            if np.isfinite(self.b[row]):
                raise InvalidProblem(
                    f"b[{row}] is {self.b[row]}; write inf for a bound that does not exist"
                )
            if not first <= row < end:
                raise InvalidProblem(
                    f"b[{row}] is {self.b[row]}; only a nonnegative row may have an infinite b"
                )

    @property
    def needs(self) -> frozenset[Feature]:
        """What a backend must offer to take this form."""
        needs = self.cones.features | {Feature.CONE}
        if self.P is not None:
            needs |= {Feature.QUADRATIC}
        return needs

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

    def _transposed_product(self, y: FloatArray) -> FloatArray:
        """A'y; of few entries without a transposed matrix, which takes longer than the product."""
        A = self.A
        starts = A.indptr[:-1]
        # A sum over an empty column would be its neighbour's first entry.
        if A.nnz > MAX_SUMMED_ENTRIES or not (starts < A.indptr[1:]).all():
            return cast(FloatArray, A.T @ y)
        return cast(FloatArray, np.add.reduceat(A.data * y[A.indices], starts))

    def measure(self, x: FloatArray, y: FloatArray | None = None) -> Residuals:
        """Return the residuals of x and its multipliers y; without y the dual ones are infinite."""
        Px = self.curve(x)
        quadratic = float(x @ Px)
        value = quadratic / 2 + float(self.c @ x)

        # A vacuous row has no error and no multiplier.
        vacuous = np.isinf(self.b)
        b = np.where(vacuous, 0.0, self.b)
        slack = np.where(vacuous, 0.0, b - self.A @ x)
        b_scale = 1 + _largest(b)
        c_scale = 1 + _largest(self.c)
        primal = self.cones.distance(slack) / b_scale
        size = float(np.linalg.norm(x)) / b_scale
        if y is None:
            return Residuals(value, -np.inf, primal, np.inf, np.inf, np.inf, size)

        dual_value = -quadratic / 2 - float(b @ y)
        return Residuals(
            value=value,
            dual_value=dual_value,
            primal=primal,
            dual=_largest(Px + self.c + self._transposed_product(y)) / c_scale,
            cone=self.cones.dual_distance(y) / c_scale,
            gap=abs(value - dual_value) / (1 + abs(value)),
            magnitude=max(size, float(np.linalg.norm(y)) / c_scale),
        )


@attrs.frozen(eq=False, slots=False)
class SimplexForm:
    """Minimise a convex function over a simple set.

    Parameters
    ----------
    objective : Objective
        The function f, with value and gradient.
    domain : SimpleSet
        The set.

    Notes
    -----
    With g the gradient at x,  f(x) + min over z of g'(z - x)  is an exact lower bound of the
    optimum, and f(x) minus it the Frank-Wolfe gap: no multipliers are needed. Where they say more,
    y holds

    * of a nonsmooth f, cuts: rows (weight, point) laid end to end. The bound is the minimum of the
      averaged linearisations at those points, where klopt evaluates f afresh.
    * of an f that knows a quadratic below itself (`LocalModel.below`), a point at which that
      quadratic is linearised.
    """

    objective: Objective
    domain: SimpleSet

    def __attrs_post_init__(self) -> None:
        objective = self.objective
        if not (hasattr(objective, "gradient") and hasattr(objective, "feature")):
            raise InvalidProblem(
                f"objective is {objective!r}; make a function one: klopt.Oracle(size, f, gradient)"
            )
        if objective.size != self.domain.size:
            raise InvalidProblem(
                f"the function takes {objective.size} entries, "
                f"the set has {self.domain.size}; make them agree"
            )

    @property
    def needs(self) -> frozenset[Feature]:
        """What a backend must offer to take this form."""
        return self.domain.features | {Feature.SIMPLEX, self.objective.feature}

    @property
    def shape(self) -> tuple[int | None, int]:
        """(entries of y, variables): y is empty, or None where it may hold a proof of any size."""
        takes_proof = self.objective.feature in (Feature.NONSMOOTH, Feature.CURVED)
        return None if takes_proof else 0, self.domain.size

    def lower_bound(
        self, x: FloatArray, value: float | None = None, gradient: FloatArray | None = None
    ) -> float:
        """Return f(x) + min over z of g'(z - x), a lower bound of the optimum for any x.

        A function that knows a better bound at x gives that one. Over a box, such as the orthant,
        the gradient need not be nonnegative before the end, and a multiple of x may prove more.
        """
        # The tangent of a dual function may have no minimum over the orthant; it has its own bound.
        if self.objective.feature is Feature.ROWS and isinstance(self.objective, DualFunction):
            return self.objective.bound(x)

        if value is None:
            value = self.objective.value(x)
        if gradient is None:
            gradient = self.objective.gradient(x)
        bound = value - float(gradient @ x) + self.domain.linear_minimum(gradient)

        if isinstance(self.objective, SmoothFunction):
            return max(bound, self.objective.near(x).lower)
        if isinstance(self.domain, BoxPlane) and self.domain.normal is None:
            return max(bound, self._stretched_bound(x, gradient))
        return bound

    def _stretched_bound(self, x: FloatArray, gradient: FloatArray) -> float:
        """The bound of a quadratic x'Hx/2 + c'x at a multiple t x, -inf where there is none.

        It is -t^2 x'Hx/2 + min over z of (t Hx + c)'z at the smallest t with t Hx + c >= 0 where
        c < 0: there the minimum over an orthant is finite.
        """
        if not isinstance(self.objective, QuadraticLike):
            return -np.inf
        c = self.objective.linear
        Hx = gradient - c
        falls = c < 0
        with np.errstate(divide="ignore", over="ignore"):
            ratios = -c[falls] / np.maximum(Hx[falls], 0.0)
        t = float(np.max(ratios, initial=0.0))
        # Some entry with c < 0 has (Hx)_i <= 0: no multiple of x proves anything.
        if not np.isfinite(t):
            return -np.inf

        # What is zero but for rounding must not meet an infinite bound.
        stretched = t * Hx + c
        rounding = 8 * EPS * (t * np.abs(Hx) + np.abs(c))
        stretched[np.abs(stretched) <= rounding] = 0.0
        return float(self.domain.linear_minimum(stretched) - t * t * float(x @ Hx) / 2)

    def bound_below(self, x: FloatArray, z: FloatArray | None) -> float:
        """Return the minimum of the tangent at z of the quadratic below f that meets it at x.

        -inf where f knows no such quadratic.
        """
        if not isinstance(self.objective, SmoothFunction) or z is None or z.shape != x.shape:
            return -np.inf
        here = self.objective.near(x)
        if here.below is None:
            return -np.inf

        d = z - x
        Bd = here.below() @ d
        value = here.value + float(d @ (here.gradient + Bd / 2))
        gradient = here.gradient + Bd
        return value - float(gradient @ z) + self.domain.linear_minimum(gradient)

    def averaged_bound(self, y: FloatArray | None) -> float:
        """Return the minimum of the weighted mean of the cuts in y, -inf without any.

        The cut of a point p is f(p) + g'(z - p), g a subgradient at p.
        """
        if y is None or not y.size:
            return -np.inf
        n = self.domain.size
        # y holds something else, such as a point for `bound_below`.
        if y.size % (n + 1):
            return -np.inf
        cuts = y.reshape(-1, n + 1)
        weights = np.maximum(cuts[:, 0], 0.0)
        # NaN fails the comparison, too.
        if not weights.sum() > 0:
            return -np.inf

        constant = 0.0
        mean_gradient = np.zeros(n)
        for weight, point in zip(weights / weights.sum(), cuts[:, 1:], strict=True):
            gradient = self.objective.gradient(point)
            constant += weight * (self.objective.value(point) - float(gradient @ point))
            mean_gradient += weight * gradient
        return constant + self.domain.linear_minimum(mean_gradient)

    def measure(self, x: FloatArray, y: FloatArray | None = None) -> Residuals:
        """Return the residuals of x: its violation and its Frank-Wolfe gap."""
        gradient = None
        if isinstance(self.objective, KernelQuadratic | Quadratic):
            # One product with the matrix for both.
            gradient = self.objective.gradient(x)
            value = float(x @ (gradient + self.objective.linear)) / 2
        else:
            value = self.objective.value(x)
        violation = self.domain.violation(x)
        lower = self.lower_bound(x, value, gradient)
        if y is not None:
            lower = max(lower, self.averaged_bound(y), self.bound_below(x, y))
        return _interval_residuals(value, lower, value, violation)


@attrs.frozen(eq=False, slots=False)
class SaddleForm:
    """Minimise over x in `left` and maximise over y in `right` a convex-concave phi(x, y).

    The best responses to the gradients at (x, y) bound the value of the game from both sides,
    exactly.

    Parameters
    ----------
    coupling : Bilinear or SaddleOracle
        The function phi.
    left, right : SimpleSet
        The sets of x and of y.
    """

    coupling: Bilinear | SaddleOracle
    left: SimpleSet
    right: SimpleSet

    def __attrs_post_init__(self) -> None:
        coupling = self.coupling
        if not isinstance(coupling, Bilinear | SaddleOracle):
            raise InvalidProblem(f"coupling is {coupling!r}; expected a Bilinear or SaddleOracle")
        sizes = (self.left.size, self.right.size)
        # An oracle has no sizes of its own.
        if isinstance(coupling, Bilinear) and coupling.M.shape != sizes:
            raise InvalidProblem(f"M is {coupling.M.shape}; the sets ask for {sizes}")

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
        """Return (lower, upper): the value of the game at best responses to the gradients."""
        value = self.coupling.value(x, y)
        gradient_x, gradient_y = self.coupling.gradients(x, y)
        lower = value - float(gradient_x @ x) + self.left.linear_minimum(gradient_x)
        upper = value - float(gradient_y @ y) - self.right.linear_minimum(-gradient_y)
        return lower, upper

    def measure(self, x: FloatArray, y: FloatArray | None = None) -> Residuals:
        """Return the residuals of the pair: violations and the best-response gap."""
        # Without y nothing is known of the value.
        if y is None:
            return Residuals(
                value=np.nan,
                dual_value=-np.inf,
                primal=self.left.violation(x),
                dual=np.inf,
                cone=0.0,
                gap=np.inf,
                magnitude=float(np.linalg.norm(x)),
            )
        lower, upper = self.bounds(x, y)
        violation = max(self.left.violation(x), self.right.violation(y))
        return _interval_residuals(self.coupling.value(x, y), lower, upper, violation)


@attrs.frozen(eq=False, slots=False)
class ExplicitForm:
    """A rule that computes the answer (x, y) in closed form; y may be None.

    Parameters
    ----------
    rule : function without arguments
        Returns x and y. It must be picklable (a bound method of a problem is) so that it can run in
        a child process.
    """

    rule: Callable[[], tuple[FloatArray, FloatArray | None]]

    def __attrs_post_init__(self) -> None:
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
    """Return the residuals of a point that proves lower <= optimum <= upper."""
    gap = np.inf
    if isfinite(upper - lower):
        gap = (upper - lower) / (1 + abs(upper))
    return Residuals(
        value=value,
        dual_value=lower,
        primal=violation,
        dual=0.0,
        cone=0.0,
        gap=max(gap, 0.0),
        magnitude=1.0,
    )


def _largest(v: FloatArray) -> float:
    """Return max|v_i|, 0 of an empty vector."""
    return float(np.abs(v).max()) if v.size else 0.0
