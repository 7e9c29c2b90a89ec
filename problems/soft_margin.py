"""The C-SVM dual on a kernel matrix: one multiplier for each point, between 0 and C.

    maximise  1'a - a'Qa/2   over   0 <= a <= C,  y'a = 0         Q_ij = y_i K_ij y_j

C may differ from point to point; C = inf is the hard margin. The dual bound, the primal value of
the classifier s (K(y o a) + b), is in `klopt.problems._margin.proof.soft_margin_proof`.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import Self

import attrs
import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import FloatArray, MatrixLike
from klopt.kernels.gram import Gram, binary_labels
from klopt.model.cones import Cones
from klopt.model.features import Feature
from klopt.model.fill import cholesky_fits
from klopt.model.forms import SimplexForm
from klopt.model.functions import KernelQuadratic
from klopt.model.problem import Bracket, Example, Formulation, Point, Statement
from klopt.model.sets import BoxPlane
from klopt.problems._margin.cone_forms import Polyhedron
from klopt.problems._margin.data import (
    PenaltyLike,
    given_penalty,
    penalty_text,
    require_penalty_of_each_point,
)
from klopt.problems._margin.forms import LabelledMargin, Units, refuse_large_penalty
from klopt.problems._margin.path import PathParts, PenaltyPath, penalty_path
from klopt.problems._margin.path_proof import Targets
from klopt.problems._margin.proof import Penalty, hinge_bias, largest, soft_margin_proof
from klopt.problems._margin.witness import soft_margin_witness
from klopt.proof.cone_witnesses import ConeClaim
from klopt.proof.statement import ConeStatement
from klopt.proof.time_budget import remaining
from klopt.witness.cone_witness import proven_ray

__all__ = ["SoftMargin"]


@attrs.frozen(eq=False, slots=False, init=False)
class SoftMargin(LabelledMargin):
    """The dual of the support vector machine with kernel matrix K, labels y and penalty C.

    Solutions have `alpha`, the multipliers, and `bias`.

    Parameters
    ----------
    K : (n, n) matrix or Gram
        A kernel matrix; `Gram` proves once that it is positive semidefinite.
    y : (n,) array
        Labels -1 and +1.
    C : float or (n,) array
        The penalty of a margin violation, one number or one for each point; inf is the hard margin.

    References
    ----------
    Cortes and Vapnik (1995). Support-Vector Networks.

    Examples
    --------
    >>> problem = SoftMargin([[2, 1], [1, 2]], [1, -1], C=10)
    >>> bracket = problem.bracket(Point({"alpha": [1.0, 1.0]}))
    >>> round(bracket.lower, 9), round(bracket.upper, 9), bracket.point.alpha
    (1.0, 1.0, array([1., 1.]))
    """

    statement = Statement(
        r"\max_{\alpha}\; \mathbf{1}^\top\alpha-\tfrac12\alpha^\top Q\alpha"
        r"\quad\text{subject to}\quad 0\le\alpha\le C,\quad y^\top\alpha=0,\qquad "
        r"Q_{ij}=y_iK_{ij}y_j",
        area="Support vector machines",
    )
    references = ("cortes1995",)
    sense = "max"

    K: Gram
    y: FloatArray
    C: Penalty

    def __init__(self, K: Gram | MatrixLike, y: npt.ArrayLike, C: PenaltyLike) -> None:
        kernel = Gram.of(K)
        labels = binary_labels(y, len(kernel.matrix))
        penalty = given_penalty(C, infinite=True)
        require_penalty_of_each_point(penalty, labels.size)
        refuse_large_penalty(penalty, kernel.scale)
        self.__attrs_init__(kernel, labels, penalty)

    def describe(self) -> str:
        return f"SoftMargin(n={self.K.size}, {penalty_text(self.C)})"

    # The formulations

    @cached_property
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
        n = self.y.size
        objective = KernelQuadratic(self._units.curvature(self.K.matrix), self.y, np.full(n, -1.0))
        domain = BoxPlane(np.zeros(n), np.full(n, self.C / self._units.length), self.y)
        return SimplexForm(objective, domain)

    def _polyhedron(self) -> Polyhedron:
        """minimise -1'u over u >= 0, u <= C / length, y'u = 0."""
        n = self.K.size
        box = np.full(n, self.C / self._units.length)
        rows = [sparse.csr_array(self.y[None, :]), -sparse.eye_array(n)]
        right = [np.zeros(n + 1)]
        if np.isfinite(box).all():
            rows.append(sparse.eye_array(n))
            right.append(box)
        A = sparse.vstack(rows, format="csc")
        b = np.concatenate(right)

        # y'u = 0: both classes have the same sum, at most that of the smaller one at its bounds.
        smaller = min(float(box[self.y > 0].sum()), float(box[self.y < 0].sum()))
        return Polyhedron(np.full(n, -1.0), A, b, zero=1, radius=2 * smaller)

    def _recover(self, x: FloatArray, y: FloatArray | None) -> Point:
        alpha = self._units.length * x[: self.y.size]
        if y is None:
            return Point({"alpha": alpha})
        # The multiplier of the plane is the bias: Qa + bias y = 1 where 0 < a < C.
        return Point({"alpha": alpha, "bias": y[0]})

    # The path

    def path(self, penalties: npt.ArrayLike) -> PenaltyPath[Self]:
        """Return the solutions and proven optima of several penalties, and bounds between them.

        >>> path = SoftMargin([[2, 1], [1, 2]], [1, -1], C=1).path([0.1, 0.5, 2.0])
        >>> path.upper.round(6), [round(end, 6) for end in path.bounds(0.3)]
        (array([0.19, 0.75, 1.  ]), [0.51, 0.51])
        """
        parts = PathParts(
            targets=Targets.of_labels(self.y),
            problem=lambda C: attrs.evolve(self, C=C),
            coefficients=lambda point: self.y * point.alpha,
            point=lambda z, bias: Point({"alpha": self.y * z, "bias": bias}),
            bias=lambda f: hinge_bias(self.y, f),
        )
        return penalty_path(self.K, penalties, parts)

    # The bracket

    def proves_infeasible(self, point: Point) -> bool:
        """Return whether no classifier has a hard margin: some a >= 0, y'a = 0, 1'a > 0 has Qa = 0.

        It is asked of K as stored: the forms by a factor of K, which is computed, may be singular
        where K is not.
        """
        if np.isfinite(largest(self.C)):
            return False
        form = self._polyhedron().with_quadratic(self.y[:, None] * self.K.matrix * self.y)
        return proven_ray(ConeStatement.of_form(form), form, point.alpha)

    def bracket(self, point: Point) -> Bracket:
        return self.proof(self.witness(point))

    def sharper_bracket(self, bracket: Bracket) -> Bracket:
        """Return the bracket by a better floor of K, which takes a factorisation."""
        if not cholesky_fits(self.K.size, remaining()):
            return bracket
        K = self.K.sharpened
        if K is self.K:
            return bracket
        found = soft_margin_proof(K, self.y, self.C, self.witness(bracket.point))
        return found if found.gap < bracket.gap else bracket

    def witness(self, point: Point) -> Point:
        """Return an exactly feasible `alpha` near the point's: a proposal."""
        return soft_margin_witness(self.K, self.y, self.C, point)

    def proof(self, witness: Point) -> Bracket:
        """Return what a witness proves."""
        return soft_margin_proof(self.K, self.y, self.C, witness)

    def cone_claim(self, point: Point) -> ConeClaim | None:
        """Return the dual as a quadratic program over the box and the plane, in the user's units."""
        n = self.y.size
        rows = [sparse.csr_array(self.y[None, :]), -sparse.eye_array(n)]
        b = np.zeros(n + 1)
        if np.isfinite(largest(self.C)):
            rows.append(sparse.eye_array(n))
            b = np.concatenate((b, np.full(n, self.C)))
        Q = sparse.csc_array(self.y[:, None] * self.K.matrix * self.y)
        cones = Cones(zero=1, nonneg=b.size - 1)
        statement = ConeStatement(np.full(n, -1.0), sparse.vstack(rows, format="csc"), b, cones, Q)
        y = np.zeros(b.size)
        y[0] = float(point.bias) if "bias" in tuple(point) else 0.0
        return ConeClaim(statement, point.alpha, y, np.zeros(0), scale=-1.0)

    # The sample and the examples

    @classmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        n = max(size, 2)
        y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
        X = rng.normal(size=(n, 3)) + y[:, None] / 2
        squares = np.square(X[:, None] - X).sum(axis=2)
        return cls(Gram.of(np.exp(-squares / 3)), y, C=float(rng.choice([0.1, 1.0, 10.0])))

    examples = (
        Example(
            "breast",
            lambda d: SoftMargin(d.kernel(), d.signs, 100),
            demo=(100, 200, 400),
            full=(150, 300, 569),
        ),
    )
