"""Similarities and losses as a user gives them, checked.

A user's own loss is any object with `value(X)`, `subgradient(X)` and, for a lower bound of the
optimum, `conjugate(Z)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, TypeAlias, cast, get_args, runtime_checkable

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, MatrixLike, positive
from klopt.errors import InvalidProblem
from klopt.kernels.gram import Gram, binary_labels
from klopt.kernels.similarities import Similarity
from klopt.problems._similarity.losses import NAMED_LOSSES, Loss

__all__ = [
    "Convex",
    "LossName",
    "Losses",
    "SimilarityInput",
    "as_labels",
    "as_optional_trace",
    "as_rho",
    "as_several_similarities",
    "as_similarities",
    "as_trace",
    "checked_loss",
    "loss_name",
    "noisy_similarities",
    "require_labels",
]

LossName = Literal["l1", "frobenius", "squared"]
REAL_KINDS = "fiub"
"""Kinds of numbers that a user's loss may return, as NumPy names them."""


@runtime_checkable
class Convex(Protocol):
    """A convex function of a symmetric matrix.

    A method `conjugate(Z)`, inf outside its domain, is optional.
    """

    def value(self, X: FloatArray) -> float: ...

    def subgradient(self, X: FloatArray) -> FloatArray: ...


Losses: TypeAlias = LossName | Convex
SimilarityInput: TypeAlias = Similarity | MatrixLike | Sequence[Similarity | MatrixLike]


# --- converters of the problems' fields


def as_similarities(value: SimilarityInput) -> tuple[Similarity, ...]:
    """Return one matrix, a list of matrices, or an array (n, n, m), as checked similarities."""
    return _similarities(value, "S")


def as_several_similarities(
    value: Sequence[Similarity | MatrixLike] | npt.NDArray[Any],
) -> tuple[Similarity, ...]:
    """Return a list of matrices, or an array (n, n, m), as checked similarities."""
    return _similarities(value, "S[0]")


def as_labels(value: npt.ArrayLike) -> FloatArray:
    """Return labels of -1 and +1, whatever their number; `require_labels` checks that."""
    return binary_labels(value, None)


def as_rho(value: float) -> float:
    """Return the weight of the losses, nonnegative."""
    return positive("rho", value, zero=True)


def as_trace(value: float) -> float:
    """Return the trace of a kernel, positive."""
    return positive("trace", value)


def as_optional_trace(value: float | None) -> float | None:
    """Return the trace of a kernel, positive, or None for any."""
    return None if value is None else as_trace(value)


def require_labels(y: FloatArray, S: tuple[Similarity, ...]) -> None:
    """Refuse labels that are not one for each point of the similarities."""
    binary_labels(y, S[0].size)


def _similarities(value: object, alone: str) -> tuple[Similarity, ...]:
    """Checked similarities; `alone` is what errors call a single one."""
    given = _matrix_list(value)
    if not given:
        raise InvalidProblem("S is empty; give one similarity matrix at least")
    first = Similarity.of(given[0], alone if len(given) == 1 else "S[0]")
    rest = [Similarity.of(S, f"S[{i}]", size=first.size) for i, S in enumerate(given[1:], 1)]
    return (first, *rest)


def _matrix_list(value: object) -> Sequence[object]:
    if isinstance(value, Similarity | Gram):
        return [value]
    if isinstance(value, np.ndarray) and value.ndim == 2:
        return [value]
    # Matrices are stacked along the last axis.
    if isinstance(value, np.ndarray) and value.ndim == 3:
        return [value[:, :, i] for i in range(value.shape[2])]
    if not isinstance(value, list | tuple):
        raise InvalidProblem(
            f"S is a {type(value).__name__}; expected n x n matrices, or an array (n, n, m) of them"
        )
    if value and _is_row(value[0]):
        return [value]
    return value


def _is_row(first: object) -> bool:
    """Whether the first member of a list is a row of numbers: then the list is one matrix."""
    if isinstance(first, Similarity | Gram):
        return False
    return np.ndim(cast(Any, first)) == 1


# --- losses


def loss_name(loss: Losses) -> str:
    """Return the name of a loss, that of its class for a user's own."""
    return loss if isinstance(loss, str) else type(loss).__name__


def checked_loss(given: object, n: int) -> Loss:
    """Return a loss by its name, or a user's own, checked on matrices of order n.

    >>> checked_loss("l1", 2).value(np.array([[1.0, -2.0], [-2.0, 0.0]]))
    5.0
    """
    if isinstance(given, str):
        if given not in NAMED_LOSSES:
            raise InvalidProblem(f"loss is {given!r}; expected one of {_NAMES}, or your own object")
        return NAMED_LOSSES[given]
    loss = _own_loss(given)
    _require_answers(loss, n)
    return loss


def _own_loss(given: object) -> Loss:
    """A user's own loss, whose methods are methods."""
    if isinstance(given, type):
        name = given.__name__
        raise InvalidProblem(f"loss is the class {name}; give an object of it: {name}()")
    if not isinstance(given, Convex):
        raise InvalidProblem(
            f"loss is a {type(given).__name__}; expected one of {_NAMES}, or an object with "
            "value(X), subgradient(X) and, for a bracket, conjugate(Z)"
        )
    conjugate = getattr(given, "conjugate", None)
    methods = {"value": given.value, "subgradient": given.subgradient}
    if conjugate is not None:
        methods["conjugate"] = conjugate
    for name, method in methods.items():
        if not callable(method):
            raise InvalidProblem(f"loss.{name} is {method!r}; expected a method of a matrix")
    return Loss("own", given.value, given.subgradient, conjugate, _unchanged)


def _require_answers(loss: Loss, n: int) -> None:
    """Refuse a loss whose answers about the unit matrix of order n are not of the right kind."""
    _require_number("value(X) at X = I", loss.value, np.eye(n))
    Z = np.asarray(_answer("subgradient(X) at X = I", loss.gradient, np.eye(n)))
    if Z.shape != (n, n) or Z.dtype.kind not in REAL_KINDS:
        raise InvalidProblem(
            f"loss.subgradient(X) at X = I is {Z.dtype} of shape {Z.shape}; "
            f"expected an array of numbers of shape {(n, n)}"
        )
    if loss.conjugate is not None:
        _require_number("conjugate(Z) at Z = 0", loss.conjugate, np.zeros((n, n)))
        _require_number("conjugate(Z) at the gradient of X = I", loss.conjugate, Z.astype(float))


def _require_number(where: str, method: Callable[[FloatArray], object], X: FloatArray) -> None:
    answer = np.asarray(_answer(where, method, X))
    if answer.shape or answer.dtype.kind not in REAL_KINDS:
        what = f"of shape {answer.shape}" if answer.shape else f"{answer[()]!r}"
        raise InvalidProblem(f"loss.{where} is {what}; expected a number")


def _answer(where: str, method: Callable[[FloatArray], object], X: FloatArray) -> object:
    try:
        with np.errstate(all="ignore"):
            return method(X)
    except Exception as error:  # a user's own function may fail in any way
        remedy = "repair it"
        if where.startswith("conjugate"):
            remedy = "return inf outside its domain, or leave it out"
        raise InvalidProblem(f"loss.{where} raises {error!r}; {remedy}") from error


def _unchanged(Z: FloatArray) -> FloatArray:
    return Z


_NAMES = ", ".join(get_args(LossName))


# --- samples


def noisy_similarities(
    rng: np.random.Generator, n: int, m: int
) -> tuple[list[FloatArray], FloatArray]:
    """Return m Gaussian kernels with noise, which makes them indefinite, and labels."""
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    X = rng.normal(size=(n, 3)) + y[:, None] / 2
    squares = np.square(X[:, None] - X).sum(axis=2)
    noise = [rng.normal(size=(n, n)) for _ in range(m)]
    S = [np.exp(-squares / 3.0 ** (i + 1)) + 0.2 * (E + E.T) for i, E in enumerate(noise)]
    return S, y
