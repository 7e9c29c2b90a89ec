"""The arguments of data-adaptive kernel problems, checked, and the two rules for eta.

|F_ij - 1| <= C^2 max K / (4 eta) + tau/2, since |a_i| <= C: eta = C^2 max K / (4 delta) lets F deviate by delta.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, positive, vector
from klopt.errors import InvalidProblem
from klopt.kernels.gram import Gram, binary_labels
from klopt.kernels.nystroem import LowRank

__all__ = ["checked_eta", "checked_labels", "default_eta", "eta_for", "eta_of_paper", "given_eta"]

DEVIATION = 0.1
"""By how much F may deviate from 1 where no eta is given, tau/2 apart."""


def eta_for(deviation: float, C: float, largest: float = 1.0) -> float:
    """Return the eta under which no entry of F differs from 1 by more than `deviation`; `largest` is max K_ii.

    >>> eta_for(0.1, C=2.0)
    10.0
    """
    deviation, C, largest = (
        positive("deviation", deviation),
        positive("C", C),
        positive("largest", largest),
    )
    return largest * C * C / (4 * deviation)


def eta_of_paper(alpha: npt.ArrayLike) -> float:
    """Return ||alpha||^2, alpha the multipliers of the plain machine (in regression beta): F hardly learns under it.

    >>> eta_of_paper([0.5, 0.5])
    0.5
    """
    multipliers = vector("alpha", alpha)
    return positive("eta", float(multipliers @ multipliers))


def checked_eta(value: object, C: float, K: Gram | LowRank) -> float:
    """Return the given eta or, where there is none, the usual one."""
    if value is not None:
        return given_eta(value)
    return default_eta(
        C, np.einsum("ik,ik->i", K.Phi, K.Phi) if isinstance(K, LowRank) else K.matrix.diagonal()
    )


def default_eta(C: float, diagonal: FloatArray) -> float:
    """Return the eta for a deviation of `DEVIATION`, from the K_ii of all points."""
    return eta_for(DEVIATION, C, float(diagonal.max(initial=0.0)) or 1.0)


def given_eta(value: object) -> float:
    """Return eta, refusing what is not a positive number."""
    try:
        return positive("eta", value)
    except InvalidProblem as error:
        raise InvalidProblem(
            f"{error}; leave it out for one that keeps F within {DEVIATION} of 1"
        ) from None


def checked_labels(y: object, size: int, bias: bool) -> FloatArray:
    """Return labels -1 and +1; one class alone is a machine without a bias, which has something to learn."""
    if bias is not False:
        return binary_labels(y, size)
    labels = vector("y", y, size)
    return labels if (labels == 1).all() or (labels == -1).all() else binary_labels(y, size)
