"""What is given of an ordered kernel, checked."""

from __future__ import annotations

from typing import Literal, cast

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, flag, freeze, matrix, positive
from klopt.kernels.graphs import class_labels

__all__ = [
    "LabelArray",
    "Target",
    "eigenvector_columns",
    "is_ordered",
    "known_classes",
    "order_ratio",
]

LabelArray = npt.NDArray[np.int64]
Target = Literal["indicator", "signed"]


def eigenvector_columns(V: npt.ArrayLike) -> FloatArray:
    """Return V, checked."""
    return matrix("V", V)


def known_classes(labels: npt.ArrayLike) -> LabelArray:
    """Return the class of each point, -1 where it is unlabelled, checked."""
    return cast(LabelArray, freeze(class_labels(labels)))


def order_ratio(sigma: float) -> float:
    """Return sigma, checked."""
    return positive("sigma", sigma)


def is_ordered(ordered: bool) -> bool:
    """Return the flag, checked."""
    return flag("ordered", ordered)
