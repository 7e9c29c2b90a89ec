"""What a dual function of many constraints answers: value, gradient, coordinate steps, its proofs.

A problem with one multiplier x_c >= 0 for each of its constraints ("rows") is solved by

    minimise f(x) over x >= 0,     f(x) = - min over W of the Lagrangian L(W, x)

so that f is minus the dual function. It is infinite outside its domain and, unlike other functions,
brings proofs of its own:

    bound(x)      a lower bound of min f: minus the value of a feasible W that is made from x
    ray(x)        a direction d >= 0 along which f decreases without bound, so that the constraints
                  contradict each other
    ray_flaw(d)   what is wrong with such a direction, "" if nothing is

An `Evaluation` is f near one x: f(x), f'(x) and, for chosen variables, a positive semidefinite
model of f''(x). A `CoordinateState` is x with the W that belongs to it, while f is minimised over
one coordinate of x after the other.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from klopt.arrays import FloatArray, IntArray
from klopt.model.functions.protocols import Objective

__all__ = ["CoordinateState", "DualFunction", "Evaluation"]


class Evaluation(Protocol):
    """f near one point: value, gradient and a model of its curvature in some variables.

    The model tends to the second derivatives where f tends to its minimum.
    """

    @property
    def value(self) -> float: ...

    @property
    def gradient(self) -> FloatArray: ...

    def model(self, chosen: IntArray) -> FloatArray: ...

    def thin_model(self, chosen: IntArray) -> tuple[FloatArray, FloatArray] | None:
        """Return (a, V), the model being diag(a) + VV' with a > 0 and few columns of V, or None."""
        ...


class CoordinateState(Protocol):
    """Multipliers x and the primal point they belong to, updated together."""

    x: FloatArray

    def project(self, row: int, corrected: bool = True) -> float:
        """Move x[row] to the minimum along it and return by how much.

        Uncorrected, x[row] may only grow.
        """
        ...

    def refresh(self) -> None:
        """Compute the primal point from x afresh."""
        ...


@runtime_checkable
class DualFunction(Objective, Protocol):
    """Minus the dual function of a problem with many constraints, over the nonnegative orthant."""

    def near(self, x: FloatArray) -> Evaluation: ...

    def rows(self, x: FloatArray) -> CoordinateState: ...

    def bound(self, x: FloatArray) -> float: ...

    def ray(self, x: FloatArray | None = None) -> tuple[FloatArray, str] | None:
        """Return a ray and why it is one, found at x or, without one, where it is cheap to find."""
        ...

    def ray_flaw(self, ray: FloatArray) -> str: ...
