"""The epsilon-insensitive SVR dual on a kernel matrix: one coefficient a point, between -C and C.

    maximise  y'x - epsilon ||x||_1 - x'Kx/2   over   -C <= x <= C,  1'x = 0

x is called beta. A constant added to y changes nothing but the bias, so the forms use y less the
middle of its range. The dual bound, the primal value of the regression K beta + b, is in
`klopt.problems._margin.proof.epsilon_margin_proof`.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import Self

import attrs
import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.kernels.gram import Gram
from klopt.model.cones import Cones
from klopt.model.features import Feature
from klopt.model.fill import cholesky_fits
from klopt.model.forms import SimplexForm, Start
from klopt.model.functions import KernelQuadratic
from klopt.model.problem import Bracket, Example, Formulation, Point, Statement
from klopt.model.sets import BoxPlane
from klopt.problems._margin.cone_forms import Polyhedron
from klopt.problems._margin.data import (
    given_kernel,
    given_penalty,
    given_targets,
    given_tube,
    penalty_text,
    require_penalty_of_each_point,
    require_target_of_each_point,
)
from klopt.problems._margin.forms import KernelMargin, Units, refuse_large_penalty
from klopt.problems._margin.path import PathParts, PenaltyPath, penalty_path
from klopt.problems._margin.path_proof import Targets
from klopt.problems._margin.proof import Penalty, epsilon_margin_proof, middle_of, tube_bias
from klopt.problems._margin.witness import epsilon_margin_witness
from klopt.proof.cone_witnesses import ConeClaim
from klopt.proof.statement import ConeStatement
from klopt.proof.time_budget import remaining

__all__ = ["EpsilonMargin"]


@attrs.frozen(eq=False, slots=False)
class EpsilonMargin(KernelMargin):
    """The dual of support vector regression with a kernel matrix K and targets y.

    Solutions have `beta`, a signed multiplier for each point, and `bias`.

    Parameters
    ----------
    K : (n, n) matrix or Gram
        A kernel matrix.
    y : (n,) array
        Targets.
    C : float or (n,) array
        The penalty of an error beyond epsilon, one number or one for each point.
    epsilon : float
        The half-width of the tube in which errors cost nothing.

    References
    ----------
    Drucker et al. (1997). Support Vector Regression Machines.

    Examples
    --------
    >>> problem = EpsilonMargin([[2, 1], [1, 2]], [1, -1], C=10, epsilon=0.5)
    >>> bracket = problem.bracket(Point({"beta": [0.5, -0.5]}))
    >>> round(bracket.lower, 9), round(bracket.upper, 9), bracket.point.beta
    (0.25, 0.25, array([ 0.5, -0.5]))
    """

    statement = Statement(
        r"\max_{\beta}\; y^\top\beta-\varepsilon\lVert\beta\rVert_1-\tfrac12\beta^\top "
        r"K\beta\quad\text{subject to}\quad -C\le\beta\le C,\quad \mathbf{1}^\top\beta=0",
        area="Support vector machines",
    )
    references = ("drucker1997",)
    has_optimum = True
    sense = "max"

    K: Gram = attrs.field(converter=given_kernel)
    y: FloatArray = attrs.field(converter=given_targets)
    C: Penalty = attrs.field(converter=given_penalty)
    epsilon: float = attrs.field(converter=given_tube)

    def __attrs_post_init__(self) -> None:
        require_target_of_each_point(self.y, self.K)
        require_penalty_of_each_point(self.C, self.K.size)
        refuse_large_penalty(self.C, self.K.scale)

    def describe(self) -> str:
        sizes = f"n={self.K.size}, {penalty_text(self.C)}, epsilon={self.epsilon:g}"
        return f"EpsilonMargin({sizes})"

    # The formulations

    @property
    def _sign(self) -> float:
        return 1.0

    @cached_property
    def _units(self) -> Units:
        half_range = float(self.y.max() - self.y.min()) / 2
        return Units.of(self.C, self.K.scale, max(half_range, self.epsilon))

    def formulations(self) -> tuple[Formulation, ...]:
        make = partial(Formulation, dual=True, scale=-self._units.value)
        halves = make(
            "box and plane",
            frozenset({Feature.SIMPLEX, Feature.MARGIN, Feature.BOX}),
            self._simplex,
            self._recover_halves,
            self._lift_halves,
            "x = u - v with u, v >= 0 costs epsilon 1'(u + v), "
            "smallest where one of each pair is zero: ||x||_1",
        )
        return (halves, *self._cone_formulations(make))

    def _gradients(self) -> tuple[FloatArray, float]:
        """The targets and epsilon in the form's units."""
        gradient = self._units.gradient
        return (self.y - middle_of(self.y)) / gradient, self.epsilon / gradient

    def _simplex(self) -> SimplexForm:
        n = self.K.size
        y, epsilon = self._gradients()
        sign = np.repeat([1.0, -1.0], n)
        point = np.tile(np.arange(n), 2)
        K = self._units.curvature(self.K.matrix)
        objective = KernelQuadratic(K, sign, epsilon - sign * np.tile(y, 2), point)
        upper = np.tile(np.full(n, self.C / self._units.length), 2)
        return SimplexForm(objective, BoxPlane(np.zeros(2 * n), upper, sign))

    def _polyhedron(self) -> Polyhedron:
        """minimise -y'v + epsilon 1't over |v| <= t <= C / length, 1'v = 0."""
        n = self.K.size
        y, epsilon = self._gradients()
        box = np.full(n, self.C / self._units.length)
        plane = sparse.csr_array(np.repeat([[1.0, 0.0]], n, axis=1))
        tube = sparse.kron(np.array([[1.0, -1.0], [-1.0, -1.0], [0.0, 1.0]]), sparse.eye_array(n))
        A = sparse.vstack([plane, tube], format="csc")
        b = np.concatenate([np.zeros(2 * n + 1), box])
        c = np.concatenate([-y, np.full(n, epsilon)])
        return Polyhedron(c, A, b, zero=1, radius=2 * float(box.sum()))

    def _recover(self, x: FloatArray, y: FloatArray | None) -> Point:
        beta = self._units.length * x[: self.K.size]
        if y is None:
            return Point({"beta": beta})
        # The multiplier of the plane is the bias: K beta + bias = y -+ epsilon at 0 < |beta| < C.
        bias = self._units.gradient * y[0] + middle_of(self.y)
        return Point({"beta": beta, "bias": bias})

    def _recover_halves(self, x: FloatArray, y: FloatArray | None) -> Point:
        return self._recover(x[: self.K.size] - x[self.K.size :], y)

    def _lift(self, point: Point) -> Start:
        v = point.beta / self._units.length
        return Start(np.concatenate([v, np.abs(v)]))

    def _lift_halves(self, point: Point) -> Start:
        v = point.beta / self._units.length
        return Start(np.concatenate([np.maximum(v, 0.0), np.maximum(-v, 0.0)]))

    # The path

    def path(self, penalties: npt.ArrayLike) -> PenaltyPath[Self]:
        """Return the solutions and proven optima of several penalties, and bounds between them.

        >>> path = EpsilonMargin([[1, 0], [0, 1]], [1, -1], C=1, epsilon=0.5).path([0.1, 1.0])
        >>> path.upper.round(6)
        array([0.09, 0.25])
        """
        parts = PathParts(
            targets=Targets.of_tube(self.y, self.epsilon),
            problem=lambda C: attrs.evolve(self, C=C),
            coefficients=lambda point: point.beta,
            point=lambda z, bias: Point({"beta": z, "bias": bias}),
            bias=lambda f: tube_bias(self.y, f, self.epsilon),
        )
        return penalty_path(self.K, penalties, parts)

    # The bracket

    def bracket(self, point: Point) -> Bracket:
        return self.proof(self.witness(point))

    def sharper_bracket(self, bracket: Bracket) -> Bracket:
        """Return the bracket by a better floor of K, which takes a factorisation."""
        if not cholesky_fits(self.K.size, remaining()):
            return bracket
        K = self.K.sharpened
        if K is self.K:
            return bracket
        witness = self.witness(bracket.point)
        found = epsilon_margin_proof(K, self.y, self.C, self.epsilon, witness)
        return found if found.gap < bracket.gap else bracket

    def witness(self, point: Point) -> Point:
        """Return an exactly feasible `beta` near the point's: a proposal."""
        return epsilon_margin_witness(self.K, self.C, point)

    def proof(self, witness: Point) -> Bracket:
        """Return what a witness proves."""
        return epsilon_margin_proof(self.K, self.y, self.C, self.epsilon, witness)

    def cone_claim(self, point: Point) -> ConeClaim | None:
        """Return minimise x'Kx/2 - y'x + epsilon 1't over |x| <= t, -C <= x <= C, 1'x = 0."""
        n = self.K.size
        unit = sparse.eye_array(n)
        none = sparse.csr_array((n, n))
        plane = sparse.csr_array(np.repeat([[1.0, 0.0]], n, axis=1))
        tube = sparse.block_array([[unit, -unit], [-unit, -unit]])
        box = sparse.block_array([[unit, none], [-unit, none]])
        A = sparse.vstack([plane, tube, box], format="csc")
        b = np.concatenate([np.zeros(2 * n + 1), np.tile(np.full(n, self.C), 2)])
        P = sparse.csc_array(sparse.block_diag([self.K.matrix, none]))
        c = np.concatenate([-self.y, np.full(n, self.epsilon)])
        statement = ConeStatement(c, A, b, Cones(zero=1, nonneg=4 * n), P)

        beta = point.beta
        bias = float(point.bias) if "bias" in tuple(point) else 0.0
        # Each point shares epsilon among the two sides of the tube; bounds take what is left.
        above = np.clip(
            (self.epsilon - (self.K.matrix @ beta + bias - self.y)) / 2, 0, self.epsilon
        )
        multipliers = np.concatenate([[bias], above, self.epsilon - above, np.zeros(2 * n)])
        x = np.concatenate([beta, np.abs(beta)])
        return ConeClaim(statement, x, multipliers, np.zeros(0), scale=-1.0)

    # The sample and the examples

    @classmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        n = max(size, 2)
        X = rng.normal(size=(n, 2))
        squares = np.square(X[:, None] - X).sum(axis=2)
        y = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=n)
        C = float(rng.choice([0.1, 1.0, 10.0]))
        epsilon = float(rng.choice([0.0, 0.1]))
        return cls(Gram.of(np.exp(-squares / 2)), y, C, epsilon)

    examples = (
        Example(
            "diabetes",
            lambda d: EpsilonMargin(d.kernel(), d.y, 10, 0.05),
            demo=(100, 200, 400),
            full=(100, 200, 400),
        ),
    )
