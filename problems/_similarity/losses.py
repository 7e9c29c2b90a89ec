"""Losses of a symmetric matrix in floating point: values, gradients, conjugates.

"l1"          L(X) = sum |X_ij|      L*(Z) = 0 where max |Z_ij| <= 1
"frobenius"   L(X) = ||X||           L*(Z) = 0 where ||Z|| <= 1
"squared"     L(X) = ||X||^2         L*(Z) = ||Z||^2 / 4
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from klopt.arrays import EPS, FloatArray

__all__ = ["NAMED_LOSSES", "Loss"]

SUPPORT_SCALES = 2.0 ** np.arange(-20, 21)
"""Multiples t of the usual diagonal at which gradients of the loss at tI are tried."""


@dataclass(frozen=True, eq=False)
class Loss:
    """A convex function of a symmetric matrix, as bounds use it.

    Parameters
    ----------
    name : str
        "l1", "frobenius", "squared", or "own" for a user's loss.
    value, gradient : callable
        L(X) and a subgradient of L at X.
    conjugate : callable or None
        L*(Z), inf outside its domain; without it nothing bounds the optimum from below.
    inside : callable
        Maps Z to a multiple of it, or a point near it, in the domain of the conjugate.
    """

    name: str
    value: Callable[[FloatArray], float]
    gradient: Callable[[FloatArray], FloatArray]
    conjugate: Callable[[FloatArray], float] | None
    inside: Callable[[FloatArray], FloatArray]

    def supports(self, n: int, scale: float) -> list[tuple[float, float]]:
        """Return pairs (z, L*(zI)), z > 0 and L* finite, for a bound of traces, z tr X <= L(X) + L*(zI).

        zI are gradients at multiples of I about as large as `scale`.

        >>> NAMED_LOSSES["l1"].supports(2, 1.0)[0]
        (1.0, 0.0)
        """
        eye = np.eye(n)
        found = []
        # A gradient or value that overflows supports nothing and is left out below.
        with np.errstate(all="ignore"):
            for t in scale * SUPPORT_SCALES:
                z = float(np.trace(self.gradient(t * eye))) / n
                if self.conjugate is None:
                    # L*(zI) = z tr(tI) - L(tI) if zI is a gradient at tI.
                    price = z * n * t - self.value(t * eye)
                else:
                    price = self.conjugate(z * eye)
                if z > 0 and np.isfinite(price):
                    found.append((z, float(price)))
        return found


def _entrywise_norm(X: FloatArray) -> float:
    return float(np.abs(X).sum())


def _frobenius_norm(X: FloatArray) -> float:
    return float(np.linalg.norm(X))


def _squared_norm(X: FloatArray) -> float:
    return float(np.vdot(X, X))


def _quarter_of_square(Z: FloatArray) -> float:
    return _squared_norm(Z) / 4


def _twice(X: FloatArray) -> FloatArray:
    return 2 * X


def _zero(Z: FloatArray) -> float:
    return 0.0


def _into_unit_box(Z: FloatArray) -> FloatArray:
    return np.clip(Z, -1.0, 1.0)


def _into_unit_ball(Z: FloatArray) -> FloatArray:
    # The bound of the norm by which a proof decides is larger than the norm by less than that.
    return Z / max(1.0, _frobenius_norm(Z) * (1 + 4 * (len(Z) + 64) * EPS))


def _direction(X: FloatArray) -> FloatArray:
    return X / (_frobenius_norm(X) or 1.0)


def _unchanged(Z: FloatArray) -> FloatArray:
    return Z


NAMED_LOSSES = {
    "l1": Loss("l1", _entrywise_norm, np.sign, _zero, _into_unit_box),
    "frobenius": Loss("frobenius", _frobenius_norm, _direction, _zero, _into_unit_ball),
    "squared": Loss("squared", _squared_norm, _twice, _quarter_of_square, _unchanged),
}
