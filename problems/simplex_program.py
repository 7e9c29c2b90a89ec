"""A user's own convex function over a simple set: minimise f(x) over x in the domain.

f is convex, so its tangent at any x lies below it, and the minimum of a tangent over a simple set
is known exactly (the Frank-Wolfe bound),

    f(x) + min over z of g'(z - x)  <=  optimum  <=  f(x),    g the gradient at x.

Linear and quadratic functions, given as objects, are evaluated in enclosures: their bounds hold in
exact arithmetic (`klopt.proof.function_bounds`). Of a user's own function klopt sees floats only.
What they prove rests on the user's word: that f is convex, that g is its gradient, and how accurate
both are computed (`accuracy`). Without an accuracy the interval is an estimate. klopt checks the
first two at the minimiser z of the tangent, where f may not be lower.

The gap closes where f is smooth. At a kink one subgradient gives a weak bound; there the mean of
the tangents at several points (cuts) is used. The maximum of smooth functions is better stated as a
`SaddlePoint`, whose gap closes faster.

Linear and quadratic functions, given as objects (`SimplexProgram.of`), are cone programs as well: f
stays, and the set becomes rows A x = b, A x <= b.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Self

import attrs
import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray, accuracy_or_none, csc, flag, positive
from klopt.errors import InvalidProblem, NotCertified
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
from klopt.programs.exact_sets import exact_point_of, multipliers_over, rows_in_fractions
from klopt.programs.polyhedra import is_polyhedral, rows_of
from klopt.proof.function_bounds import MAX_RATIONAL_ORDER, declared_accuracy, nonconvexity
from klopt.proof.set_bounds import is_known
from klopt.witness.exact_claims import ConeVectors, ExactClaim, fractions, lower_entries
from klopt.witness.over_sets import bracket_over_set, point_next_to

if TYPE_CHECKING:
    from klopt.kernels.datasets import Dataset

__all__ = ["SimplexProgram"]

TANGENT_TOLERANCE = 1e-9
"""How far below its own tangent, relative to the bound, a user's function may lie by rounding."""
DESIGN_ACCURACY = 1e-12
"""What the example of an optimal design states: its matrices have condition numbers below 200."""


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


def _own(objective: Objective | None) -> Objective | None:
    """The function with a kernel matrix that nobody else can write, exactly symmetric."""
    if isinstance(objective, KernelQuadratic):
        return attrs.evolve(objective, K=Gram.of(objective.K, "K").matrix)
    return objective


@attrs.frozen(eq=False, slots=False)
class SimplexProgram(Problem):
    """Minimise a convex function, given by its value and (sub)gradient, over a simple set.

    A function that klopt has as an object is `SimplexProgram.of(klopt.Linear(c), domain)`.
    Solutions have x.

    Parameters
    ----------
    value, gradient : functions of x
        The function and a (sub)gradient of it.
    domain : SimpleSet
        The simple set.
    smooth : bool
        Whether the gradient is continuous.
    lipschitz : float or None
        A Lipschitz constant of the gradient, or None where none is known.
    objective : Objective or None
        The function as an object; `SimplexProgram.of` sets it.
    accuracy : float or None
        By how much value and gradient may be off, as of a `klopt.Oracle`; None makes what is found
        an estimate.

    Examples
    --------
    >>> from klopt.model.sets import Simplex
    >>> far = np.array([2.0, 0.0])
    >>> square = lambda x: float((x - far) @ (x - far))
    >>> program = SimplexProgram(square, lambda x: 2 * (x - far), Simplex(2), accuracy=1e-14)
    >>> bracket = program.bracket(Point({"x": [1.0, 0.0]}))
    >>> bracket.lower < 1.0 < bracket.upper, bracket.gap < 1e-12
    (True, True)
    """

    statement = Statement(
        r"\min_{x}\; f(x)\quad\text{subject to}\quad x\in\mathcal{X}",
        words="f is convex, X a simple set.",
        area="Functions over simple sets",
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
    objective: Objective | None = attrs.field(default=None, converter=_own)
    """The function as an object where there is one; `SimplexProgram.of` sets it."""
    accuracy: float | None = attrs.field(default=None, converter=accuracy_or_none)

    def __attrs_post_init__(self) -> None:
        if not (callable(self.value) and callable(self.gradient)):
            raise InvalidProblem(
                "value and gradient must be functions of x; for an object use SimplexProgram.of"
            )
        self._over_the_set()  # refuses a function and a set of different sizes
        declared = _declared_matrix(self.function)
        # Declaring a matrix has proven how far from semidefinite it may be; exact arithmetic, which
        # may prove more, is for small ones.
        if declared is not None and (not declared.floor or declared.size > MAX_RATIONAL_ORDER):
            function = self.function
            if type(function) is Quadratic and np.array_equal(declared.matrix, function.H):
                vars(self)["_phi"] = max(0.0, -declared.floor)
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
        return Oracle(
            self.domain.size, self.value, self.gradient, self.smooth, self.lipschitz, self.accuracy
        )

    @property
    def provable(self) -> bool:
        """Whether the function has a formula or states its accuracy, and klopt knows the set."""
        return declared_accuracy(self.function) is not None and is_known(self.domain)

    @cached_property
    def _phi(self) -> float:
        """By how much the function may fail to be convex, proven once."""
        return nonconvexity(self.function)

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
        return self.proof(self.witness(point))

    def witness(self, point: Point) -> Point:
        """Return a point of the set, up to rounding, and the cuts."""
        return _recover(point_next_to(self.domain, point.x), point.dual.get("cuts"))

    def proof(self, witness: Point) -> Bracket:
        """Return what a witness proves: any vectors of the right sizes."""
        x = witness.x
        form = self._over_the_set()
        bracket = bracket_over_set(form, x, witness.dual.get("cuts"), self._phi, witness)
        lower = bracket.lower if bracket.estimate is None else bracket.estimate[0]
        if lower == -np.inf:
            note = "the set is unbounded where f falls: no lower bound"
            return replace(bracket, note=note, estimate=None)
        # Only a user's own function can: those given as objects are convex by construction.
        if self.objective is None and self._contradicts(lower, form.objective.gradient(x)):
            note = "f lies below its own tangent: it is not convex, or gradient is not its gradient"
            return replace(bracket, lower=-np.inf, note=note, lower_by="", estimate=None)
        return bracket

    def exact_claim(self, point: Point, verdict: str) -> ExactClaim:
        """Return a linear or quadratic program over a polyhedron; other functions have no formula."""
        function = self.function
        if not isinstance(function, Linear | QuadraticLike):
            raise NotCertified(
                f"{type(function).__name__} is a function that only klopt can evaluate: "
                "a certificate states linear and quadratic ones (klopt.Linear, klopt.Quadratic)"
            )
        data = rows_in_fractions(self.domain)
        if isinstance(function, Linear):
            data.c = fractions(function.c)
        else:
            data.c = fractions(function.linear)
            data.P = lower_entries(_hessian(function))
        x = exact_point_of(self.domain, point.x)
        w = x if data.P else None
        y = multipliers_over(data, data.gradient({}, w), self._corner(data.gradient({}, w)))
        return ExactClaim(data, ConeVectors(x, y, w))

    def _corner(self, gradient: list[Fraction]) -> FloatArray:
        floats = np.array([float(value) for value in gradient])
        return np.asarray(self.domain.linear_minimiser(floats))

    def _contradicts(self, lower: float, gradient: FloatArray) -> bool:
        """Whether f is below the bound at the minimiser of its tangent; it need not exist there."""
        try:
            value = float(self.value(self.domain.linear_minimiser(gradient)))
        except Exception:  # a logarithm of zero, say
            return False
        tolerance = max(TANGENT_TOLERANCE, 4 * (self.accuracy or 0.0))
        return value < lower - tolerance * (1 + abs(lower))

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


def _declared_matrix(function: Objective) -> Gram | None:
    """The matrix of a quadratic function, refused where it is indefinite; None of another one."""
    # The matrix of a `KernelQuadratic` was checked when it came in.
    if isinstance(function, QuadraticLike) and not isinstance(function, KernelQuadratic):
        return Gram.of(_hessian(function), "H")
    return None


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
    design = SmoothFunction(len(d.X), _LogDetDesign(d.X), accuracy=DESIGN_ACCURACY)
    return SimplexProgram.of(design, Simplex(len(d.X)))
