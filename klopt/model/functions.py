"""Functions that are minimised over simple sets: linear, quadratic, of a kernel machine, smooth, nonsmooth.

Each gives `value(x)`, `gradient(x)` (a subgradient where it is nonsmooth) and says its one
`Feature`. The quadratics also open up: f(x) = x'Hx/2 + c'x with H x by `matvec` and any block of H
by `block`. Functions that know their curvature are in `klopt.model.smooth_functions`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, MatrixLike, matrix, read_only, symmetric, vector
from klopt.errors import InvalidProblem
from klopt.model.cones import Feature

__all__ = [
    "DualFunction",
    "Evaluation",
    "KernelQuadratic",
    "Linear",
    "Objective",
    "Oracle",
    "Quadratic",
    "QuadraticLike",
    "Rows",
]


IntArray: TypeAlias = npt.NDArray[np.intp]


@runtime_checkable
class Objective(Protocol):
    """A convex function of a vector of `size` entries."""

    @property
    def size(self) -> int: ...

    @property
    def feature(self) -> Feature: ...

    def value(self, x: FloatArray) -> float: ...

    def gradient(self, x: FloatArray) -> FloatArray: ...


@runtime_checkable
class QuadraticLike(Objective, Protocol):
    """A convex quadratic x'Hx/2 + linear'x whose H can be applied and looked into."""

    @property
    def linear(self) -> FloatArray: ...

    def matvec(self, x: FloatArray) -> FloatArray: ...

    def block(self, rows: IntArray, columns: IntArray) -> FloatArray: ...

    def diagonal(self) -> FloatArray: ...


class Rows(Protocol):
    """Multipliers and the primal point they belong to, kept together while one row after the other moves."""

    x: FloatArray

    def project(self, row: int, corrected: bool = True) -> float:
        """Move x[row] to its best place and return by how much; uncorrected it may only grow."""
        ...

    def refresh(self) -> None:
        """Compute the primal point from x afresh."""
        ...


class Evaluation(Protocol):
    """A function near one point: value, gradient and a positive semidefinite model of its curvature in some variables.

    The model tends to the second derivatives where the function tends to its least value.
    """

    @property
    def value(self) -> float: ...

    @property
    def gradient(self) -> FloatArray: ...

    def model(self, chosen: IntArray) -> FloatArray: ...

    def thin_model(self, chosen: IntArray) -> tuple[FloatArray, FloatArray] | None:
        """Return (a, V) with diag(a) + VV' the model, a > 0 and V of few columns; None where there is no such."""
        ...


@runtime_checkable
class DualFunction(Objective, Protocol):
    """Minus the dual of a problem with many constraints, one multiplier a row, over the nonnegative orthant.

    Such a function is infinite outside its domain and, unlike others, knows its own proofs: `bound`
    is a lower bound of its least value, from a feasible point of the problem; `ray` a direction
    along which it falls for ever (the rows contradict each other) and why, looked for at x or,
    without one, where it is cheap; `ray_flaw` checks such a ray.
    """

    def near(self, x: FloatArray) -> Evaluation: ...

    def rows(self, x: FloatArray) -> Rows: ...

    def bound(self, x: FloatArray) -> float: ...

    def ray(self, x: FloatArray | None = None) -> tuple[FloatArray, str] | None: ...

    def ray_flaw(self, ray: FloatArray) -> str: ...


@dataclass(frozen=True, eq=False)
class Linear:
    """f(x) = c'x."""

    c: FloatArray

    if TYPE_CHECKING:

        def __init__(self, c: npt.ArrayLike) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "c", vector("c", self.c))

    size = property(lambda self: int(self.c.size))
    feature = property(lambda self: Feature.LINEAR)

    def value(self, x: FloatArray) -> float:
        return float(self.c @ x)

    def gradient(self, x: FloatArray) -> FloatArray:
        return self.c


@dataclass(frozen=True, eq=False)
class Quadratic:
    """f(x) = x'Hx/2 + linear'x with an explicit symmetric matrix H, which must be positive semidefinite.

    >>> Quadratic([[2.0, 0.0], [0.0, 2.0]], [0.0, -2.0]).gradient(np.array([1.0, 1.0]))
    array([2., 0.])
    """

    H: FloatArray
    linear: FloatArray

    if TYPE_CHECKING:

        def __init__(self, H: MatrixLike, linear: npt.ArrayLike) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "linear", vector("linear", self.linear))
        n = self.linear.size
        object.__setattr__(self, "H", symmetric("H", matrix("H", self.H, (n, n))))

    size = property(lambda self: int(self.linear.size))
    feature = property(lambda self: Feature.QUADRATIC)

    def value(self, x: FloatArray) -> float:
        return float(x @ (self.H @ x) / 2 + self.linear @ x)

    def gradient(self, x: FloatArray) -> FloatArray:
        return self.H @ x + self.linear

    def matvec(self, x: FloatArray) -> FloatArray:
        return self.H @ x

    def block(self, rows: IntArray, columns: IntArray) -> FloatArray:
        block: FloatArray = self.H[np.ix_(rows, columns)]
        return block

    def diagonal(self) -> FloatArray:
        return np.diagonal(self.H)


@dataclass(frozen=True, eq=False)
class KernelQuadratic:
    """f(x) = z'Kz/2 + linear'x with z = the signed sums of x over the points it belongs to: H = S K S'.

    Variable i belongs to point `point[i]` with sign `sign[i]`. An SVM has one variable a point, its
    sign the label; an SVR has two, with signs +1 and -1. H is never formed, so a doubled variable
    costs nothing.
    """

    K: FloatArray
    sign: FloatArray
    linear: FloatArray
    point: IntArray = None  # type: ignore[assignment]

    if TYPE_CHECKING:

        def __init__(
            self,
            K: FloatArray,
            sign: npt.ArrayLike,
            linear: npt.ArrayLike,
            point: npt.ArrayLike | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "linear", vector("linear", self.linear))
        object.__setattr__(self, "sign", vector("sign", self.sign, self.linear.size))
        point = (
            np.arange(self.sign.size)
            if self.point is None
            else np.asarray(self.point, dtype=np.intp)
        )
        if point.size != self.sign.size or (
            point.size and (point.min() < 0 or point.max() >= self.K.shape[0])
        ):
            raise InvalidProblem("point must give, for each variable, the row of K it belongs to")
        object.__setattr__(self, "point", point)

    size = property(lambda self: int(self.linear.size))
    feature = property(lambda self: Feature.MARGIN)

    def coefficients(self, x: FloatArray) -> FloatArray:
        """Return z, the coefficients of the points: z_p = sum of sign_i x_i over the variables of p."""
        weights: FloatArray = self.sign * x
        return np.bincount(self.point, weights=weights, minlength=self.K.shape[0]).astype(
            float, copy=False
        )

    def value(self, x: FloatArray) -> float:
        z = self.coefficients(x)
        return float(z @ (self.K @ z) / 2 + self.linear @ x)

    def gradient(self, x: FloatArray) -> FloatArray:
        return self.matvec(x) + self.linear

    def matvec(self, x: FloatArray) -> FloatArray:
        return self.sign * (self.K @ self.coefficients(x))[self.point]

    def block(self, rows: IntArray, columns: IntArray) -> FloatArray:
        K = self.K[np.ix_(self.point[rows], self.point[columns])]
        return K * np.outer(self.sign[rows], self.sign[columns])

    def diagonal(self) -> FloatArray:
        return np.diagonal(self.K)[self.point] * self.sign**2


@dataclass(frozen=True, eq=False)
class Oracle:
    """A user's own convex function of `size` variables, by its value and (sub)gradient.

    `smooth=False` says that the gradient jumps. `lipschitz` bounds its change per unit step where
    that is known (None: it is not); a backend may otherwise backtrack.

    >>> Oracle(2, lambda x: float(x @ x), lambda x: 2 * x).gradient(np.array([1.0, -1.0]))
    array([ 2., -2.])
    """

    size: int
    function: Callable[[FloatArray], float]
    gradient_function: Callable[[FloatArray], FloatArray]
    smooth: bool = True
    lipschitz: float | None = None

    def __post_init__(self) -> None:
        if not (callable(self.function) and callable(self.gradient_function)):
            raise InvalidProblem(
                "function and gradient must be functions of x: its value and its (sub)gradient"
            )

    @property
    def feature(self) -> Feature:
        return Feature.SMOOTH if self.smooth else Feature.NONSMOOTH

    def value(self, x: FloatArray) -> float:
        return float(self.function(x))

    def gradient(self, x: FloatArray) -> FloatArray:
        return read_only(self.gradient_function(x))


@dataclass(frozen=True, eq=False)
class Bilinear:
    """phi(x, y) = x'My + left'x + right'y, minimised over x and maximised over y; zero linear terms by default."""

    M: FloatArray
    left: FloatArray = None  # type: ignore[assignment]
    right: FloatArray = None  # type: ignore[assignment]

    if TYPE_CHECKING:

        def __init__(
            self,
            M: MatrixLike,
            left: npt.ArrayLike | None = None,
            right: npt.ArrayLike | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "M", matrix("M", self.M))
        for name, size in (("left", self.M.shape[0]), ("right", self.M.shape[1])):
            given = getattr(self, name)
            object.__setattr__(
                self, name, vector(name, np.zeros(size) if given is None else given, size)
            )

    def value(self, x: FloatArray, y: FloatArray) -> float:
        return float(x @ (self.M @ y) + self.left @ x + self.right @ y)

    def gradients(self, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradients (in x, in y)."""
        return self.M @ y + self.left, x @ self.M + self.right


@dataclass(frozen=True, eq=False)
class SaddleOracle:
    """A user's own phi(x, y), convex in x and concave in y, by its value and both (sub)gradients."""

    function: Callable[[FloatArray, FloatArray], float]
    gradient_x: Callable[[FloatArray, FloatArray], FloatArray]
    gradient_y: Callable[[FloatArray, FloatArray], FloatArray]

    def value(self, x: FloatArray, y: FloatArray) -> float:
        return float(self.function(x, y))

    def gradients(self, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradients (in x, in y)."""
        return read_only(self.gradient_x(x, y)), read_only(self.gradient_y(x, y))
