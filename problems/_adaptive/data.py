"""What the user gives to a data-adaptive kernel problem, checked, and the two rules for eta.

|F_ij - 1| <= C^2 max K / (4 eta) + tau/2, since |a_i| <= C: eta = C^2 max K / (4 delta) lets F
deviate by delta.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, MatrixLike, flag, positive, vector
from klopt.errors import InvalidProblem
from klopt.kernels.gram import Gram, binary_labels
from klopt.kernels.nystroem import LowRank
from klopt.problems._margin.forms import refuse_large_penalty

__all__ = [
    "default_eta",
    "eta_for",
    "eta_of_paper",
    "given_eta",
    "given_kernel",
    "given_labels",
    "given_penalties",
    "mean_diagonal",
]

DEVIATION = 0.1
"""By how much F may deviate from 1 where no eta is given, tau/2 apart."""


# The arguments of a problem


def given_kernel(K: Gram | LowRank | MatrixLike) -> Gram | LowRank:
    """Return features as they are, anything else as a kernel matrix."""
    return K if isinstance(K, LowRank) else Gram.of(K)


def given_labels(y: npt.ArrayLike, size: int, bias: bool) -> FloatArray:
    """Return labels -1 and +1; without a bias, one class alone has something to learn too."""
    if bias is not False:
        return binary_labels(y, size)
    labels = vector("y", y, size)
    one_class = (labels == 1).all() or (labels == -1).all()
    return labels if one_class else binary_labels(y, size)


def given_penalties(
    K: Gram | LowRank, C: float, eta: float | None, tau: float, bias: bool
) -> tuple[float, float, float, bool]:
    """Return (C, eta, tau, bias), with the usual eta where none is given.

    Parameters
    ----------
    K
        The kernel, checked.
    C, eta, tau
        The penalty of errors, that of F - 11', and the share of tr F in it.
    bias
        Whether there is one.
    """
    C = positive("C", C)
    tau = positive("tau", tau, zero=True)
    bias = flag("bias", bias)
    eta = default_eta(C, _diagonal(K)) if eta is None else given_eta(eta)
    refuse_large_penalty(C, mean_diagonal(K))
    return C, eta, tau, bias


def mean_diagonal(K: Gram | LowRank) -> float:
    """Return the mean of the diagonal of K, 1.0 for a zero matrix."""
    if isinstance(K, LowRank):
        return float(np.vdot(K.Phi, K.Phi)) / K.size
    return K.scale


def _diagonal(K: Gram | LowRank) -> FloatArray:
    if isinstance(K, LowRank):
        return np.asarray(np.einsum("ik,ik->i", K.Phi, K.Phi))
    return K.matrix.diagonal()


# The rules for eta


def eta_for(deviation: float, C: float, largest: float = 1.0) -> float:
    """Return the eta under which no entry of F differs from 1 by more than `deviation`.

    `largest` is max K_ii.

    >>> eta_for(0.1, C=2.0)
    10.0
    """
    deviation = positive("deviation", deviation)
    C = positive("C", C)
    largest = positive("largest", largest)
    return largest * C * C / (4 * deviation)


def eta_of_paper(alpha: npt.ArrayLike) -> float:
    """Return ||alpha||^2, alpha the multipliers of the SVM (in regression beta) without F.

    Under it F hardly learns: tr Gamma = 1/4 however many points there are.

    >>> eta_of_paper([0.5, 0.5])
    0.5
    """
    multipliers = vector("alpha", alpha)
    return positive("eta", float(multipliers @ multipliers))


def default_eta(C: float, diagonal: FloatArray) -> float:
    """Return the eta for a deviation of `DEVIATION`, from the K_ii of all points."""
    largest = float(diagonal.max(initial=0.0)) or 1.0
    return eta_for(DEVIATION, C, largest)


def given_eta(value: object) -> float:
    """Return eta, refusing what is not a positive number."""
    try:
        return positive("eta", value)
    except InvalidProblem as error:
        raise InvalidProblem(
            f"{error}; leave it out for one that keeps F within {DEVIATION} of 1"
        ) from None
