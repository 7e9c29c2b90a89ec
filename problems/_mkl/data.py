"""What the user gives to multiple kernel learning, checked: kernels of one size, a loss, a norm."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, MatrixLike, vector
from klopt.errors import InvalidProblem
from klopt.kernels.gram import Gram, binary_labels

__all__ = ["Kernels", "Loss", "Norm", "given_kernels", "given_loss", "given_y", "primal_exponent"]

Loss = Literal["hinge", "squared", "epsilon"]
Norm = Literal["block-l1", "block-linf"] | float
Kernels = Sequence[Gram | MatrixLike] | npt.NDArray[Any]

EXPONENTS = {"block-l1": 1.0, "block-linf": np.inf}
"""The p of the norms that have a name."""


def given_kernels(kernels: Kernels) -> tuple[Gram, ...]:
    """Return a list of matrices, or an array with kernels stacked last, as checked kernels."""
    given: object = kernels
    if isinstance(kernels, np.ndarray) and kernels.ndim == 3:
        m, rows, columns = kernels.shape
        if rows == columns != m:
            raise InvalidProblem(
                f"kernels has shape {kernels.shape}, with the kernels first; "
                "expected (n, n, m), kernels last: np.moveaxis(kernels, 0, -1), or list(kernels)"
            )
        given = [kernels[:, :, i] for i in range(kernels.shape[2])]
    if not isinstance(given, list | tuple):
        shape = f" of shape {kernels.shape}" if isinstance(kernels, np.ndarray) else ""
        raise InvalidProblem(
            f"kernels is a {type(kernels).__name__}{shape}; "
            "expected a list of n x n matrices or an array (n, n, m)"
        )
    if not given:
        raise InvalidProblem("kernels is empty; give one kernel at least")
    first = Gram.of(given[0], "kernels[0]")
    others = (Gram.of(K, f"kernels[{i}]", size=first.size) for i, K in enumerate(given[1:], 1))
    return (first, *others)


def given_loss(loss: Loss) -> Loss:
    """Return the name of a loss."""
    if loss not in get_args(Loss):
        raise InvalidProblem(f"loss is {loss!r}; expected one of {', '.join(get_args(Loss))}")
    return loss


def given_y(y: npt.ArrayLike, size: int, loss: Loss) -> FloatArray:
    """Return labels -1 and +1 for the hinge loss, any numbers for the others."""
    return binary_labels(y, size) if loss == "hinge" else vector("y", y, size)


def primal_exponent(norm: object) -> float:
    """Return p for the name or the exponent p of a norm.

    >>> primal_exponent("block-l1"), primal_exponent("block-linf"), primal_exponent(4)
    (1.0, inf, 4.0)
    """
    given = EXPONENTS.get(norm, norm) if isinstance(norm, str) else norm
    if isinstance(given, bool) or not isinstance(given, numbers.Real) or not float(given) >= 1:
        raise InvalidProblem(
            f"norm is {norm!r}; expected 'block-l1', 'block-linf' or an exponent of at least 1"
        )
    return float(given)
