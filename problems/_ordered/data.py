"""What is given of an ordered kernel, checked, and the columns of it that can matter.

Columns of V that vanish on the labelled points are no part of any ray of `proof`. They, and with an
order those that e_i = sigma^-(i-1) has made rounding beside the others, are left out of the forms
and come back in `Alignment.alpha`.
"""

from __future__ import annotations

from typing import Literal, cast

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, flag, freeze, matrix, positive
from klopt.errors import InvalidProblem
from klopt.kernels.graphs import class_labels
from klopt.problems._ordered.proof import Alignment, RankOneColumns

__all__ = [
    "LabelArray",
    "Target",
    "aligned_columns",
    "eigenvector_columns",
    "is_ordered",
    "known_classes",
    "order_ratio",
    "target_products",
]

LabelArray = npt.NDArray[np.int64]
Target = Literal["indicator", "signed"]

VANISHED_SHARE = 1e-12
"""A column of at most this share of its length on the labelled points vanishes there."""
NEGLIGIBLE_SHARE = 1e-18
"""Kernels of at most this share of the largest trace are rounding beside it."""
MAX_WEIGHT_RATIO = 1e100
"""The largest weight of a left-out column, in units of that of the first kept one."""


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


def target_products(W: FloatArray, classes: LabelArray, signed: bool) -> tuple[FloatArray, float]:
    """Return w_i'T w_i for the columns of W, and ||T||.

    T_pq is 1 where p and q have one class, and 0 (signed: -1) otherwise.

    >>> target_products(np.array([[1.0], [2.0], [4.0]]), np.array([0, 0, 1]), signed=True)
    (array([1.]), 3.0)
    """
    _, group, sizes = np.unique(classes, return_inverse=True, return_counts=True)
    sums = np.zeros((sizes.size, W.shape[1]))
    for index in range(sizes.size):
        sums[index] = W[group == index].sum(axis=0)
    same = np.einsum("ij,ij->j", sums, sums)
    if not signed:
        return same, float(np.linalg.norm(sizes))
    return 2 * same - sums.sum(axis=0) ** 2, float(classes.size)


def aligned_columns(
    V: FloatArray, classes: LabelArray, sigma: float, ordered: bool, signed: bool
) -> Alignment:
    """Return the alignment of the columns of V with the target of the labelled points.

    Parameters
    ----------
    V
        Eigenvectors as columns, smoothest first.
    classes
        The class of each point, -1 where it is unlabelled.
    sigma
        The ratio of the order alpha_i >= sigma alpha_(i+1); 1 without an order.
    ordered
        Whether there is an order.
    signed
        Whether the target is -1, not 0, for points of two classes.
    """
    known = classes >= 0
    labelled = V[known]
    squares = np.einsum("ij,ij->j", labelled, labelled)
    vanishing = VANISHED_SHARE**2 * np.einsum("ij,ij->j", V, V)
    present = np.flatnonzero(squares > vanishing)
    if not present.size:
        raise InvalidProblem(
            "V is zero on every labelled point; give eigenvectors that reach them, or more labels"
        )

    steps = _steps(V.shape[1], int(present[0]), sigma)
    kept = present
    if ordered:
        # What follows the last column of some size is rounding; alpha gives it its place again.
        share = steps[present] * squares[present]
        counted = np.flatnonzero(share > NEGLIGIBLE_SHARE * share.max())
        kept = present[: int(counted[-1]) + 1]

    # `take` gives rows that are contiguous, unlike labelled[:, kept].
    W = np.take(labelled, kept, axis=1) * np.sqrt(steps[kept])
    products, norm = target_products(W, classes[known], signed)
    return Alignment(RankOneColumns(W), products / norm, ordered, kept, steps)


def _steps(count: int, first: int, sigma: float) -> FloatArray:
    """Return e_i of all columns, 1 at the first that does not vanish on the labelled points."""
    exponent = np.log(sigma) * (np.arange(count) - first)
    if -exponent[0] > np.log(MAX_WEIGHT_RATIO):
        raise InvalidProblem(
            f"the first {first} columns of V vanish on the labelled points, and "
            f"sigma = {sigma:g} makes their weights {sigma:g}^{first} times those of the next; "
            "leave these columns out"
        )
    with np.errstate(under="ignore"):
        return np.asarray(np.exp(-exponent))
