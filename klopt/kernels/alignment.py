"""How well two kernel matrices agree: alignment, the Hilbert-Schmidt criterion, polarisation.

    alignment      <K, L> / (||K|| ||L||)                Cristianini et al. (2002)
    centred        the same of HKH and HLH               Cortes, Mohri, Rostamizadeh (2012)
    hsic           <HKH, HLH> / (n - 1)^2                Gretton et al. (2005)
    polarisation   <HKH, YY'>                            Baram (2005); Tian, Wang (2015)

<K, L> is the sum of the products of entries and H = I - 11'/n takes the mean off. All but the first
are linear in K. Labels enter as the ideal kernel: 1 for two points of one class, otherwise 0, or -1
for two classes with `signed` (`ideal_kernel`).

Cristianini, Shawe-Taylor, Elisseeff, Kandola, On kernel-target alignment, 2002. Cortes, Mohri,
Rostamizadeh, Algorithms for learning kernels based on centered alignment, 2012. Gretton, Bousquet,
Smola, Schoelkopf, Measuring statistical dependence with Hilbert-Schmidt norms, 2005. Tian, Wang, An
efficient Gaussian kernel optimization based on centered kernel polarization criterion, 2015.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, matrix, scaled_to_one, symmetric
from klopt.errors import InvalidProblem
from klopt.kernels.gram import Gram

__all__ = ["alignment", "centred", "hsic", "ideal_kernel", "polarisation"]


def alignment(K: object, L: object, *, centre: bool = False) -> float:
    """Return the cosine of the angle between two symmetric matrices.

    It is 1 for positive multiples of one matrix; between kernels it is never negative.

    Parameters
    ----------
    K, L
        Kernel matrices of the same points.
    centre
        Take the mean off both first: then a constant added to a kernel changes nothing.

    >>> round(alignment([[2, 1], [1, 2]], [[4, 2], [2, 4]]), 12)
    1.0
    >>> round(alignment([[1, 0], [0, 1]], [[1, 1], [1, 1]]), 6)
    0.707107
    """
    first, second = _pair(K, L, centre)
    # Entries are divided by powers of two: squares neither overflow nor underflow.
    first, _ = scaled_to_one(first)
    second, _ = scaled_to_one(second)
    sizes = float(np.linalg.norm(first)), float(np.linalg.norm(second))
    for name, size in zip("KL", sizes, strict=True):
        if not size:
            hint = " once its mean is taken off" if centre else ""
            raise InvalidProblem(f"{name} is zero{hint}; it has no direction to be aligned with")
    cosine = float(np.vdot(first, second)) / (sizes[0] * sizes[1])
    return min(max(cosine, -1.0), 1.0)


def hsic(K: object, L: object) -> float:
    """Return the Hilbert-Schmidt independence criterion of two kernels of the same points.

    >>> round(hsic([[1, 0], [0, 1]], [[1, -1], [-1, 1]]), 6)
    2.0
    """
    first, second = _pair(K, L, centre=False)
    if len(first) < 2:
        raise InvalidProblem(f"K has {len(first)} point; independence needs at least two")
    # H is a projection: one of the two centred matrices is enough.
    return float(np.vdot(centred(first), second)) / (len(first) - 1) ** 2


def polarisation(K: object, labels: npt.ArrayLike, *, centre: bool = True) -> float:
    """Return <K, YY'>, for two classes with targets -1 and +1, for more with their indicators.

    >>> polarisation([[1, 0], [0, 1]], [0, 1], centre=False)
    2.0
    """
    target = ideal_kernel(labels, signed=True)
    kernel, target = _pair(K, target, centre=False)
    return float(np.vdot(centred(kernel) if centre else kernel, target))


def centred(K: FloatArray) -> FloatArray:
    """Return HKH: the inner products after the mean of the points is taken off.

    >>> centred(np.array([[2.0, 0.0], [0.0, 0.0]]))
    array([[ 0.5, -0.5],
           [-0.5,  0.5]])
    """
    means = K.mean(axis=0)
    return np.asarray(K - means - means[:, None] + means.mean())


def ideal_kernel(labels: npt.ArrayLike, *, signed: bool = False) -> FloatArray:
    """Return the matrix of labels: 1 for two points of one class, 0 or, signed, -1 otherwise.

    More than two classes have no signs: other pairs are 0 for them in both cases.

    >>> ideal_kernel(["a", "b", "a"])
    array([[1., 0., 1.],
           [0., 1., 0.],
           [1., 0., 1.]])
    """
    given = np.asarray(labels)
    if given.ndim != 1:
        raise InvalidProblem(f"labels have shape {given.shape}; expected one label for each point")
    classes, codes = np.unique(given, return_inverse=True)
    same = codes[:, None] == codes
    other = -1.0 if signed and classes.size == 2 else 0.0
    return np.where(same, 1.0, other)


def _pair(K: object, L: object, centre: bool) -> tuple[FloatArray, FloatArray]:
    first = _symmetric("K", K)
    second = _symmetric("L", L)
    if first.shape != second.shape:
        raise InvalidProblem(
            f"K is {len(first)} x {len(first)} and L is {len(second)} x {len(second)}; "
            "expected kernels of the same points"
        )
    return (centred(first), centred(second)) if centre else (first, second)


def _symmetric(name: str, K: object) -> FloatArray:
    return K.matrix if isinstance(K, Gram) else symmetric(name, matrix(name, K))
