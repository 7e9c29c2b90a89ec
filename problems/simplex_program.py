"""A user's own convex function over a simple set: minimise f(x) over x in the domain.

f is convex, so its tangent at any x lies below it, and the minimum of a tangent over a simple set
is known exactly (the Frank-Wolfe bound),

    f(x) + min over z of g'(z - x)  <=  optimum  <=  f(x),    g the gradient at x.

That f is convex and g its gradient is the user's claim; klopt checks it at the minimiser z of the
tangent, where f may not be lower. The gap closes where f is smooth. At a kink one subgradient gives
a weak bound; there the mean of the tangents at several points (cuts) is used. The maximum of smooth
functions is better stated as a `SaddlePoint`, whose gap closes faster.

Linear and quadratic functions, given as objects (`SimplexProgram.of`), are cone programs as well: f
stays, and the set becomes rows A x = b, A x <= b.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import attrs
import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray, csc, flag, positive
from klopt.errors import InvalidProblem
from klopt.kernels.gram import Gram
from klopt.model.cones import Cones
from klopt.model.features import Feature
from klopt.model.forms import ConeForm, SimplexForm, Start
from klopt.model.functions import (
    KernelQuadratic,
    Linear,
    LocalModel,
    Objective,
    Oracle,
    Quadratic,
    QuadraticLike,
    SmoothFunction,
)
from klopt.model.problem import Bracket, Example, Formulation, Point, Problem, Statement
from klopt.model.sets import SimpleSet, Simplex
from klopt.programs.polyhedra import is_polyhedral, rows_of

if TYPE_CHECKING:
    from klopt.kernels.datasets import Dataset

__all__ = ["SimplexProgram"]

TANGENT_TOLERANCE = 1e-9
"""How far below its own tangent, relative to the bound, a user's function may lie by rounding."""


def _simple_set(domain: SimpleSet) -> SimpleSet:
    if not isinstance(domain, SimpleSet):
        raise InvalidProblem(
            f"domain is a {type(domain).__name__}; expected a simple set such as Simplex(3)"
        )
    return domain


def _smooth(value: bool) -> bool:
    return flag("smooth", value)


def _lipschitz(value: float | None) -> float | None:
    return None if value is None else positive("lipschitz", value)


@attrs.frozen(eq=False, slots=False)
class SimplexProgram(Problem):
    """Minimise a convex function, given by its value and (sub)gradient, over a simple set.

    A function that klopt has as an object is `SimplexProgram.of(klopt.Linear(c), domain)`.
    Solutions have x.

    Parameters
    ----------
    value, gradient
        The function and a (sub)gradient of it.
    domain
        The simple set.
    smooth
        Whether the gradient is continuous.
    lipschitz
        A Lipschitz constant of the gradient, or None where none is known.
    objective
        The function as an object; `SimplexProgram.of` sets it.

    >>> from klopt.model.sets import Simplex
    >>> far = np.array([2.0, 0.0])
    >>> square = lambda x: float((x - far) @ (x - far))
    >>> program = SimplexProgram(square, lambda x: 2 * (x - far), Simplex(2))
    >>> bracket = program.bracket(Point({"x": [1.0, 0.0]}))
    >>> bracket.lower, bracket.upper
    (1.0, 1.0)
    """

    statement = Statement(
        r"\min_{x}\; f(x)\quad\text{subject to}\quad x\in\mathcal{X}",
        words="f is convex, X a simple set.",
    )
    examples = (
        Example("iris", lambda d: _enclosing_ball(d), demo=(150,), full=(50, 100, 150)),
        Example("wine", lambda d: _optimal_design(d), demo=(60,), full=(60, 120, 178)),
    )

    value: Callable[[FloatArray], float]
    gradient: Callable[[FloatArray], FloatArray]
    domain: SimpleSet = attrs.field(converter=_simple_set)
    smooth: bool = attrs.field(default=True, converter=_smooth)
    lipschitz: float | None = attrs.field(default=None, converter=_lipschitz)
    objective: Objective | None = None
    """The function as an object where there is one; `SimplexProgram.of` sets it."""

    def __attrs_post_init__(self) -> None:
        if not (callable(self.value) and callable(self.gradient)):
            raise InvalidProblem(
                "value and gradient must be functions of x; for an object use SimplexProgram.of"
            )
        self._over_the_set()  # refuses a function and a set of different sizes
        _refuse_indefinite(self.function)
        self._ask_once()

    def _ask_once(self) -> None:
        """Evaluate f at the centre once, so that mistakes show before any backend runs."""
        x = self.domain.centre()
        gradient = np.shape(self.gradient(x))
        if gradient != x.shape:
            raise InvalidProblem(
                f"gradient returned shape {gradient} at the centre of the set; expected {x.shape}"
            )
        if np.ndim(self.value(x)) != 0:
            raise InvalidProblem("value must return one number")

    @classmethod
    def of(cls, objective: Objective, domain: SimpleSet) -> Self:
        """Return the program of `Linear`, `Quadratic`, `KernelQuadratic`, `Oracle` or the like.

        >>> from klopt.model.functions import Quadratic
        >>> from klopt.model.sets import Simplex
        >>> program = SimplexProgram.of(Quadratic(np.eye(2), np.zeros(2)), Simplex(2))
        >>> [form.name for form in program.formulations()]
        ['over the set', 'QP']
        """
        if not isinstance(objective, Objective):
            raise InvalidProblem(
                f"objective is a {type(objective).__name__}; expected an object such as klopt.Linear(c), with size, "
                "feature, value and gradient; of plain functions make SimplexProgram(value, gradient, domain)"
            )
        smooth = objective.feature is not Feature.NONSMOOTH
        lipschitz = getattr(objective, "lipschitz", None)
        return cls(objective.value, objective.gradient, domain, smooth, lipschitz, objective)

    def describe(self) -> str:
        """Return one line: the kind of function, the set, the size."""
        domain = f"{type(self.domain).__name__} of {self.domain.size}"
        return f"SimplexProgram({self.function.feature}, {domain})"

    @property
    def function(self) -> Objective:
        """The function as an object."""
        if self.objective is not None:
            return self.objective
        return Oracle(self.domain.size, self.value, self.gradient, self.smooth, self.lipschitz)

    def formulations(self) -> tuple[Formulation, ...]:
        """Return the form over the set and, for a linear or quadratic program, the cone program."""
        function = self.function
        needs = {Feature.SIMPLEX, function.feature} | self.domain.features
        forms = [Formulation("over the set", frozenset(needs), self._over_the_set, _recover, _lift)]
        if is_polyhedral(self.domain) and isinstance(function, Linear):
            forms.append(self._cone_formulation("LP", {Feature.CONE}))
        elif is_polyhedral(self.domain) and isinstance(function, QuadraticLike):
            forms.append(self._cone_formulation("QP", {Feature.CONE, Feature.QUADRATIC}))
        return tuple(forms)

    def _cone_formulation(self, name: str, needs: set[Feature]) -> Formulation:
        because = "the set is a polyhedron: the points that satisfy its rows"
        return Formulation(name, frozenset(needs), self._cone, _recover, _lift, because)

    def _over_the_set(self) -> SimplexForm:
        return SimplexForm(self.function, self.domain)

    def _cone(self) -> ConeForm:
        (A_eq, b_eq), (A_ub, b_ub) = rows_of(self.domain)
        A = sparse.vstack([A_eq, A_ub])
        b = np.concatenate([b_eq, b_ub])
        cones = Cones(zero=b_eq.size, nonneg=b_ub.size)
        radius = self.domain.radius
        function = self.function
        if isinstance(function, Linear):
            return ConeForm(function.c, A, b, cones, radius=radius)
        assert isinstance(function, QuadraticLike)
        return ConeForm(function.linear, A, b, cones, csc("P", _hessian(function)), radius)

    def bracket(self, point: Point) -> Bracket:
        """Return f at the nearest point of the set, and the larger bound of tangent and cuts."""
        x = self.domain.repair(point.x)
        cuts = point.dual.get("cuts")
        form = self._over_the_set()
        upper = form.objective.value(x)
        gradient = form.objective.gradient(x)
        lower = max(form.lower_bound(x, upper, gradient), form.averaged_bound(cuts))
        note = ""
        if lower == -np.inf:
            note = "the set is unbounded where f falls: no lower bound"
        elif self.objective is None and self._contradicts(lower, gradient):
            # Only a user's own function can: those given as objects are convex by construction.
            lower = -np.inf
            note = "f lies below its own tangent: it is not convex, or gradient is not its gradient"
        return Bracket(lower, upper, _recover(x, cuts), note)

    def _contradicts(self, lower: float, gradient: FloatArray) -> bool:
        """Whether f is below the bound at the minimiser of its tangent; it need not exist there."""
        try:
            value = float(self.value(self.domain.linear_minimiser(gradient)))
        except Exception:  # a logarithm of zero, say
            return False
        return value < lower - TANGENT_TOLERANCE * (1 + abs(lower))

    @classmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        """Return a random strongly convex quadratic over the simplex."""
        n = max(size, 1)
        B = rng.normal(size=(n, n))
        return cls.of(Quadratic(B @ B.T / n + 0.1 * np.eye(n), rng.normal(size=n)), Simplex(n))


def _recover(x: FloatArray, y: FloatArray | None) -> Point:
    return Point({"x": x}, {} if y is None else {"cuts": y})


def _lift(point: Point) -> Start:
    return Start(point.x)


def _refuse_indefinite(function: Objective) -> None:
    if isinstance(function, KernelQuadratic):
        Gram.of(function.K, "K")
    elif isinstance(function, QuadraticLike):
        Gram.of(_hessian(function), "H")


def _hessian(function: QuadraticLike) -> FloatArray:
    every = np.arange(function.size)
    return function.block(every, every)


def _enclosing_ball(d: Dataset) -> SimplexProgram:
    """The smallest enclosing ball in feature space: minimise a'Ka - diag(K)'a over the simplex."""
    K = d.kernel() + 0.05 * d.X @ d.X.T
    return SimplexProgram.of(Quadratic(2 * K, -np.diag(K)), Simplex(len(K)))


@dataclass(frozen=True, eq=False)
class _LogDetDesign:
    """-log det(X' diag(x) X), convex in the weights x of the rows of X, with its derivatives."""

    X: FloatArray

    def __call__(self, x: FloatArray) -> LocalModel:
        """Return the function near x; infinite where the weighted rows do not span."""
        sign, size = np.linalg.slogdet(self.X.T @ (x[:, None] * self.X))
        # Outside the domain of the logarithm.
        if sign <= 0:
            return LocalModel(np.inf, np.zeros(x.size), lambda: np.eye(x.size))
        G = self.X @ np.linalg.solve(self.X.T @ (x[:, None] * self.X), self.X.T)
        return LocalModel(-float(size), -np.diag(G), lambda: np.square((G + G.T) / 2))


def _optimal_design(d: Dataset) -> SimplexProgram:
    """D-optimal design: the frequencies of measurements that minimise the confidence ellipsoid."""
    return SimplexProgram.of(SmoothFunction(len(d.X), _LogDetDesign(d.X)), Simplex(len(d.X)))
