"""A user's own saddle point: min over x, max over y of a convex-concave phi over simple sets.

Each player's best reply to the other's gradient bounds the value from its side, for any pair (x, y):

    phi + min over z of phi_x'(z - x)  <=  value of the game  <=  phi + max over z of phi_y'(z - y).

For a bilinear phi the bounds hold in exact arithmetic (`klopt.proof.function_bounds`); for a user's
own phi they rest on the accuracy that the user states, and are an estimate without one.

A matrix game, phi = x'My + left'x + right'y over simplices, is a linear program too (von Neumann,
1928): the row player's worst loss is a maximum over columns,

    minimise left'x + total t   subject to   (M'x + right)_j <= t for each column j,

and the multipliers of its rows are the column player's strategy: they are nonnegative and their sum
is y's total.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isfinite
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray, MatrixLike, accuracy_or_none, csc
from klopt.errors import InvalidProblem, NotCertified
from klopt.model.cones import Cones
from klopt.model.features import Feature
from klopt.model.forms import ConeForm, SaddleForm, Start
from klopt.model.functions import Bilinear, SaddleOracle
from klopt.model.problem import Bracket, Example, Formulation, Point, Problem, Statement
from klopt.model.sets import SimpleSet, Simplex
from klopt.programs.exact_sets import exact_point_of, multipliers_over, rows_in_fractions
from klopt.proof.function_bounds import declared_accuracy
from klopt.proof.set_bounds import is_known
from klopt.witness.exact_claims import ConeVectors, ExactClaim, SaddleData, SaddleVectors, fractions
from klopt.witness.over_sets import bracket_of_game, point_next_to

if TYPE_CHECKING:
    from klopt.kernels.datasets import Dataset

__all__ = ["SaddlePoint"]

TANGENT_TOLERANCE = 1e-9
"""How far across its own tangent, relative to the bound, a user's function may be by rounding."""

Gradient = Callable[[FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class SaddlePoint(Problem):
    """Minimise over x in `left` and maximise over y in `right` a convex-concave phi(x, y).

    A matrix game is `SaddlePoint.game(M)`. Solutions have x and, as the multiplier, y.

    Parameters
    ----------
    value : function of (x, y)
        phi, convex in x and concave in y.
    gradient_x, gradient_y : functions of (x, y)
        Its (sub)gradients.
    left, right : SimpleSet
        The simple sets of x and of y.
    bilinear : Bilinear or None
        phi as an object where it is bilinear; `SaddlePoint.game` sets it.
    accuracy : float or None
        By how much value and gradients may be off, as of a `klopt.Oracle`; None makes what is found
        an estimate. A bilinear phi is evaluated in enclosures.

    Examples
    --------
    >>> game = SaddlePoint.game([[0, 1, -1], [-1, 0, 1], [1, -1, 0]])
    >>> bracket = game.bracket(Point({"x": np.full(3, 1 / 3)}, {"y": np.full(3, 1 / 3)}))
    >>> bool(max(abs(bracket.lower), abs(bracket.upper)) < 1e-15)
    True
    """

    statement = Statement(
        r"\min_{x\in\mathcal{X}}\;\max_{y\in\mathcal{Y}}\; \varphi(x,y)",
        words="The function is convex in x and concave in y; both sets are simple.",
        area="Functions over simple sets",
    )
    examples = (
        Example("breast", lambda d: _boosting_game(d), demo=(100, 200, 400), full=(100, 200, 400)),
    )

    value: Callable[[FloatArray, FloatArray], float]
    gradient_x: Gradient
    gradient_y: Gradient
    left: SimpleSet
    right: SimpleSet
    bilinear: Bilinear | None = None
    """phi as an object where it is bilinear; `SaddlePoint.game` sets it."""
    accuracy: float | None = None

    def __post_init__(self) -> None:
        for name in ("left", "right"):
            if not isinstance(getattr(self, name), SimpleSet):
                raise InvalidProblem(
                    f"{name} is a {type(getattr(self, name)).__name__}; expected a simple set"
                )
        for name in ("value", "gradient_x", "gradient_y"):
            if not callable(getattr(self, name)):
                raise InvalidProblem(
                    f"{name} must be a function of (x, y); for a matrix use SaddlePoint.game"
                )
        object.__setattr__(self, "accuracy", accuracy_or_none(self.accuracy))
        form = self._saddle()
        gradients = form.coupling.gradients(self.left.centre(), self.right.centre())
        for name, gradient, home in zip(
            ("gradient_x", "gradient_y"), gradients, (self.left, self.right), strict=True
        ):
            if gradient.shape != (home.size,):
                raise InvalidProblem(
                    f"{name} returned shape {gradient.shape} at the centres; expected ({home.size},)"
                )

    @classmethod
    def game(
        cls, M: Bilinear | MatrixLike, left: SimpleSet | None = None, right: SimpleSet | None = None
    ) -> Self:
        """Return the matrix game x'My, or that of a `Bilinear`, by default with mixed strategies.

        >>> [form.name for form in SaddlePoint.game(np.eye(2)).formulations()]
        ['saddle point', "row player's LP"]
        """
        phi = M if isinstance(M, Bilinear) else Bilinear(M)
        rows, columns = phi.M.shape
        if left is None:
            left = Simplex(rows)
        if right is None:
            right = Simplex(columns)
        return cls(phi.value, _GradientOf(phi, 0), _GradientOf(phi, 1), left, right, phi)

    def describe(self) -> str:
        """Return one line: the sizes of both sides."""
        kind = "by oracle" if self.bilinear is None else "bilinear"
        return f"SaddlePoint({kind}, {self.left.size} x {self.right.size})"

    def formulations(self) -> tuple[Formulation, ...]:
        """Return the saddle form and, for a matrix game, the row player's linear program."""
        needs = frozenset({Feature.SADDLE} | self.left.features | self.right.features)
        forms = [Formulation("saddle point", needs, self._saddle, self._recover, _lift)]
        mixed = isinstance(self.left, Simplex) and isinstance(self.right, Simplex)
        if self.bilinear is not None and mixed:
            forms.append(
                Formulation(
                    "row player's LP",
                    frozenset({Feature.CONE}),
                    self._lp,
                    self._from_lp,
                    self._to_lp,
                    "von Neumann's minimax theorem: "
                    "a worst case over mixed columns is one over columns",
                )
            )
        return tuple(forms)

    def _saddle(self) -> SaddleForm:
        if self.bilinear is not None:
            return SaddleForm(self.bilinear, self.left, self.right)
        phi = SaddleOracle(self.value, self.gradient_x, self.gradient_y, accuracy=self.accuracy)
        return SaddleForm(phi, self.left, self.right)

    def _lp(self) -> ConeForm:
        """Variables (x, t); rows 1'x = total, then M'x - t <= -right, then x >= 0."""
        phi = self.bilinear
        left = self.left
        right = self.right
        assert phi is not None
        assert isinstance(left, Simplex)
        assert isinstance(right, Simplex)
        m, n = phi.M.shape
        total = csc("A", np.ones((1, m)))
        signs = -sparse.eye_array(m, format="csc")
        of_x = sparse.vstack([total, csc("A", phi.M.T), signs])
        of_t = csc("A", np.repeat([0.0, -1.0, 0.0], [1, n, m])[:, None])
        A = sparse.hstack([of_x, of_t])
        b = np.concatenate([[left.total], -_given(phi.right), np.zeros(m)])
        return ConeForm(np.append(_given(phi.left), right.total), A, b, Cones(zero=1, nonneg=n + m))

    def _recover(self, x: FloatArray, y: FloatArray | None) -> Point:
        return Point({"x": x}, {"y": self.right.centre() if y is None else y})

    def _from_lp(self, x: FloatArray, y: FloatArray | None) -> Point:
        return self._recover(x[: self.left.size], None if y is None else y[1 : 1 + self.right.size])

    def _to_lp(self, point: Point) -> Start:
        """The point of the LP, with the multipliers of the best replies to (x, y)."""
        assert self.bilinear is not None
        gradient_x, gradient_y = self.bilinear.gradients(point.x, point.y)
        value = float(gradient_x.min())
        return Start(
            np.append(point.x, gradient_y.max()),
            np.concatenate([[-value], point.y, gradient_x - value]),
        )

    def bracket(self, point: Point) -> Bracket:
        """Return the best-reply bounds at the nearest points of both sets."""
        return self.proof(self.witness(point))

    def witness(self, point: Point) -> Point:
        """Return points of both sets, up to rounding."""
        x = point_next_to(self.left, point.x)
        y = point_next_to(self.right, point.y)
        return Point({"x": x}, {"y": y})

    def proof(self, witness: Point) -> Bracket:
        """Return what a witness proves: any vectors of the right sizes."""
        x = witness.x
        y = witness.y
        bracket = bracket_of_game(self._saddle(), x, y, witness)
        ends = bracket.estimate or (bracket.lower, bracket.upper)
        if not (isfinite(ends[0]) and isfinite(ends[1])):
            note = "a set is unbounded where phi improves: no bound on that side"
            return replace(bracket, note=note, estimate=None)
        # Only a user's own function can: a bilinear one is convex-concave by construction.
        if self.bilinear is None and self._contradicts(x, y, *ends):
            note = (
                "phi crosses its own tangent: it is not convex in x and concave in y, "
                "or a gradient is not its gradient"
            )
            return Bracket(-np.inf, np.inf, witness, note)
        return bracket

    def exact_claim(self, point: Point, verdict: str) -> ExactClaim:
        """Return the bilinear game over polyhedra; other functions have no formula."""
        phi = self.bilinear
        if phi is None:
            raise NotCertified(
                "a function of one's own is no part of a certificate; a matrix game is SaddlePoint.game(M)"
            )
        left = rows_in_fractions(self.left)
        right = rows_in_fractions(self.right)
        left.c = fractions(_given(phi.left))
        right.c = [-value for value in fractions(_given(phi.right))]
        M = csc("M", phi.M).tocoo()
        entries = zip(M.row.tolist(), M.col.tolist(), fractions(M.data), strict=True)
        data = SaddleData(left, right, M=list(entries))
        x = exact_point_of(self.left, point.x)
        y = exact_point_of(self.right, point.y)
        cost = data.cost_of_x(y)
        _, price = data.program_of_y(x)
        below = multipliers_over(left, cost, self.left.linear_minimiser(_floats(cost)))
        above = multipliers_over(right, price, self.right.linear_minimiser(_floats(price)))
        return ExactClaim(data, SaddleVectors(ConeVectors(x, below), ConeVectors(y, above)))

    @property
    def provable(self) -> bool:
        """Whether phi has a formula or states its accuracy, and klopt knows both sets."""
        known = is_known(self.left) and is_known(self.right)
        return known and declared_accuracy(self._saddle().coupling) is not None

    def _contradicts(self, x: FloatArray, y: FloatArray, lower: float, upper: float) -> bool:
        """Whether phi crosses a bound at the reply that attains it; it need not be finite there."""
        gradient_x, gradient_y = self._saddle().coupling.gradients(x, y)
        left = self.left.linear_minimiser(gradient_x)
        right = self.right.linear_minimiser(-gradient_y)
        try:
            below = self.value(left, y) - lower
            above = self.value(x, right) - upper
        except Exception:  # a logarithm of zero, say
            return False
        tolerance = max(TANGENT_TOLERANCE, 4 * (self.accuracy or 0.0))
        too_low = below < -tolerance * (1 + abs(lower))
        too_high = above > tolerance * (1 + abs(upper))
        return bool(too_low or too_high)

    @classmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        """Return a random matrix game of size x (size + 1) strategies."""
        n = max(size, 1)
        return cls.game(rng.normal(size=(n, n + 1)))


@dataclass(frozen=True, eq=False)
class _GradientOf:
    """One of the two gradients of a bilinear function, as a function that can be pickled."""

    phi: Bilinear
    side: int

    def __call__(self, x: FloatArray, y: FloatArray) -> FloatArray:
        return self.phi.gradients(x, y)[self.side]


def _floats(values: list[Fraction]) -> FloatArray:
    return np.array([float(value) for value in values])


def _lift(point: Point) -> Start:
    return Start(point.x, point.y)


def _given(linear: FloatArray | None) -> FloatArray:
    assert linear is not None, "Bilinear fills its linear terms in"
    return linear


def _boosting_game(d: Dataset) -> SaddlePoint:
    """The boosting game: features and their negatives against the points they classify worst."""
    votes = np.clip(d.signs[:, None] * d.X, -2.0, 2.0)
    return SaddlePoint.game(np.hstack([votes, -votes]))
