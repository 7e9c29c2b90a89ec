"""The nu-SVM dual on a kernel matrix: one multiplier for each point, between 0 and 1/n, of sum nu.

    minimise  a'Qa/2   over   0 <= a <= 1/n,  y'a = 0,  1'a >= nu         Q_ij = y_i K_ij y_j

nu bounds the share of points on the wrong side of the margin from above and that of the support
vectors from below (Schoelkopf, Smola, Williamson and Bartlett, 2000). The set has a point if and
only if nu <= 2 min(n+, n-) / n. Since a'Qa falls where a shrinks, 1'a = nu may be asked for: then
each class has the sum nu/2, and the optimum is half the squared distance of the two reduced convex
hulls, scaled. The dual bound is in `klopt.problems._margin.proof.nu_margin_proof`.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import Self

import attrs
import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import EPS, FloatArray, MatrixLike, positive
from klopt.errors import InvalidProblem
from klopt.kernels.gram import Gram, binary_labels
from klopt.model.cones import Cones
from klopt.model.features import Feature
from klopt.model.forms import SimplexForm, Start
from klopt.model.functions import KernelQuadratic, Oracle
from klopt.model.problem import Bracket, Example, Formulation, Point, Statement
from klopt.problems._margin.cone_forms import Polyhedron
from klopt.problems._margin.forms import LabelledMargin, Units
from klopt.problems._margin.proof import largest_nu, nu_margin_proof
from klopt.problems._margin.witness import class_order, class_simplices, nu_margin_witness
from klopt.proof.cone_witnesses import ConeClaim
from klopt.proof.statement import ConeStatement

__all__ = ["NuMargin"]


@attrs.frozen(eq=False, slots=False, init=False)
class NuMargin(LabelledMargin):
    """The dual of the nu-SVM with kernel matrix K, labels y and 0 < nu <= 2 min(n+, n-) / n.

    Solutions have `alpha`, `bias` and the margin `rho`.

    Parameters
    ----------
    K : (n, n) matrix or Gram
        A kernel matrix.
    y : (n,) array
        Labels -1 and +1.
    nu : float
        An upper bound of the fraction of margin errors and a lower bound of the fraction of support
        vectors.

    References
    ----------
    Schölkopf et al. (2000). New Support Vector Algorithms.

    Examples
    --------
    >>> problem = NuMargin([[2, 1], [1, 2]], [1, -1], nu=1.0)
    >>> bracket = problem.bracket(Point({"alpha": [0.5, 0.5]}))
    >>> round(bracket.lower, 9), round(bracket.upper, 9), bracket.point.rho
    (0.25, 0.25, array(0.5))
    """

    statement = Statement(
        r"\min_{\alpha}\; \tfrac12\alpha^\top Q\alpha\quad\text{subject to}\quad "
        r"0\le\alpha\le 1/n,\quad y^\top\alpha=0,\quad \mathbf{1}^\top\alpha\ge\nu,"
        r"\qquad Q_{ij}=y_iK_{ij}y_j",
        area="Support vector machines",
    )
    references = ("scholkopf2000",)
    has_optimum = True

    K: Gram
    y: FloatArray
    nu: float

    def __init__(self, K: Gram | MatrixLike, y: npt.ArrayLike, nu: float) -> None:
        kernel = Gram.of(K)
        labels = binary_labels(y, kernel.size)
        self.__attrs_init__(kernel, labels, _given_nu(nu, labels))

    def describe(self) -> str:
        return f"NuMargin(n={self.K.size}, nu={self.nu:g})"

    # The formulations

    @cached_property
    def _units(self) -> Units:
        """a in units of about 1/n, K in units of its mean diagonal."""
        return Units.of(1 / self.K.size, self.K.scale, 2 * self.K.scale / self.K.size)

    def formulations(self) -> tuple[Formulation, ...]:
        make = partial(Formulation, scale=self._units.value)
        simplices = make(
            "two capped simplices",
            frozenset({Feature.SIMPLEX, Feature.SMOOTH, Feature.BOX, Feature.PRODUCT}),
            self._simplices,
            self._recover_simplices,
            self._lift_simplices,
            "a'Qa falls where a shrinks, so 1'a = nu at some optimum; "
            "with y'a = 0 each class has the sum nu/2",
        )
        return (*self._cone_formulations(make), simplices)

    def _polyhedron(self) -> Polyhedron:
        """u >= 0, u <= 1 / (n length), 1'u >= nu / length, y'u = 0."""
        n = self.K.size
        length = self._units.length
        unit = sparse.eye_array(n)
        one = sparse.csr_array(np.ones((1, n)))
        A = sparse.vstack([sparse.csr_array(self.y[None, :]), -unit, unit, -one], format="csc")
        b = np.concatenate([np.zeros(n + 1), np.full(n, 1 / n), [-self.nu]]) / length
        return Polyhedron(np.zeros(n), A, b, zero=1, radius=largest_nu(self.y) / length)

    def _simplices(self) -> SimplexForm:
        n = self.K.size
        order = class_order(self.y)
        K = self._units.curvature(self.K.matrix)
        f = KernelQuadratic(K, self.y[order], np.zeros(n), order)
        domain = class_simplices(self.y, self.nu, self._units.length)
        return SimplexForm(Oracle(n, f.value, f.gradient), domain)

    def _recover(self, x: FloatArray, y: FloatArray | None) -> Point:
        return Point({"alpha": self._units.length * x[: self.K.size]})

    def _recover_simplices(self, x: FloatArray, y: FloatArray | None) -> Point:
        alpha = np.empty(self.K.size)
        alpha[class_order(self.y)] = self._units.length * x
        return Point({"alpha": alpha})

    def _lift_simplices(self, point: Point) -> Start:
        return Start(point.alpha[class_order(self.y)] / self._units.length)

    # The bracket

    def bracket(self, point: Point) -> Bracket:
        return self.proof(self.witness(point))

    def witness(self, point: Point) -> Point:
        """Return `shares`, n times a feasible alpha near the point's: a proposal."""
        return nu_margin_witness(self.K, self.y, self.nu, point)

    def proof(self, witness: Point) -> Bracket:
        """Return what a witness proves."""
        return nu_margin_proof(self.K, self.y, self.nu, witness)

    def cone_claim(self, point: Point) -> ConeClaim | None:
        """Return the problem as a quadratic program; n a <= 1 stands for a <= 1/n, which rounds."""
        n = self.K.size
        unit = sparse.eye_array(n)
        one = sparse.csr_array(np.ones((1, n)))
        A = sparse.vstack([sparse.csr_array(self.y[None, :]), -unit, n * unit, -one], format="csc")
        b = np.concatenate([np.zeros(n + 1), np.ones(n), [-self.nu]])
        Q = sparse.csc_array(self.y[:, None] * self.K.matrix * self.y)
        statement = ConeStatement(np.zeros(n), A, b, Cones(zero=1, nonneg=2 * n + 1), Q)
        multipliers = np.zeros(b.size)
        multipliers[0] = float(point.bias)
        multipliers[-1] = max(float(point.rho), 0.0)
        return ConeClaim(statement, point.alpha, multipliers, np.zeros(0))

    # The sample and the examples

    @classmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        n = max(size, 2)
        y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
        X = rng.normal(size=(n, 3)) + y[:, None] / 2
        squares = np.square(X[:, None] - X).sum(axis=2)
        share = float(rng.choice([0.2, 0.5, 1.0]))
        return cls(Gram.of(np.exp(-squares / 3)), y, nu=2 * (n // 2) / n * share)

    examples = (
        Example(
            "wine", lambda d: NuMargin(d.kernel(), d.signs, 0.2), demo=(150,), full=(50, 100, 178)
        ),
    )


def _given_nu(nu: float, y: FloatArray) -> float:
    """Return nu, at most the largest one: what is above it by rounding is taken for it."""
    given = positive("nu", nu)
    largest = largest_nu(y)
    if given > largest * (1 + 4 * EPS):
        positives = np.count_nonzero(y > 0)
        counts = f"{positives} of {y.size} points are +1, {y.size - positives} are -1"
        raise InvalidProblem(
            f"nu is {given:g}; {counts}, so nu can be at most 2 min / n = {largest!r}"
        )
    return min(given, largest)
