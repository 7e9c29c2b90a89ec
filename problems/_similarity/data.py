"""Similarities and losses as they are checked, and the losses' gradients and conjugates.

    "l1"          L(X) = sum |X_ij|      L*(Z) = 0 where max |Z_ij| <= 1
    "frobenius"   L(X) = ||X||           L*(Z) = 0 where ||Z|| <= 1
    "squared"     L(X) = ||X||^2         L*(Z) = ||Z||^2 / 4

A user's own loss is any object with `value(X)`, `subgradient(X)` and, so that a bracket can be had,
`conjugate(Z)`.

A loss bounds the trace: z tr X <= L(X) + L*(zI) for every z, so that where L(X) <= total

    tr X <= (total + L*(zI)) / z         for every z > 0;         L*(zI) = z tr(tI) - L(tI) if zI is a gradient at tI.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, cast, get_args, runtime_checkable

import numpy as np

from klopt.arrays import FloatArray
from klopt.errors import InvalidProblem
from klopt.kernels.gram import Gram
from klopt.kernels.similarities import Similarity

__all__ = [
    "Convex",
    "Loss",
    "Losses",
    "Name",
    "checked_loss",
    "loss_of",
    "noisy_similarities",
    "similarity_list",
    "symmetric_part",
]

Name = Literal["l1", "frobenius", "squared"]
REAL = "fiub"  # kinds of numbers, as NumPy has them
SIZES = 2.0 ** np.arange(
    -20, 21
)  # the t at which gradients are asked how fast the loss grows with the trace


@runtime_checkable
class Convex(Protocol):
    """A convex function of a symmetric matrix; a method `conjugate(Z)`, inf outside its domain, is optional."""

    def value(self, X: FloatArray) -> float: ...

    def subgradient(self, X: FloatArray) -> FloatArray: ...


@dataclass(frozen=True, eq=False)
class Loss:
    """What the problem asks of a loss."""

    name: str
    value: Callable[[FloatArray], float]
    gradient: Callable[[FloatArray], FloatArray]
    conjugate: Callable[[FloatArray], float] | None
    inside: Callable[[FloatArray], FloatArray]
    """A multiple of Z, or a point near it, in the domain of the conjugate."""

    def supports(self, n: int, scale: float) -> list[tuple[float, float]]:
        """Return pairs (z, L*(zI)), z > 0 and L* finite, of gradients zI at multiples of I about as large as `scale`.

        Without a conjugate L*(zI) is that of a gradient which is right.

        >>> loss_of("l1").supports(2, 1.0)[0]
        (1.0, 0.0)
        """
        eye, found = np.eye(n), []
        with np.errstate(all="ignore"):  # what overflows says nothing
            for t in scale * SIZES:
                z = float(np.trace(self.gradient(t * eye))) / n
                price = (
                    z * n * t - self.value(t * eye)
                    if self.conjugate is None
                    else self.conjugate(z * eye)
                )
                found += [(z, float(price))] if z > 0 and np.isfinite(price) else []
        return found


Losses = Name | Convex


def loss_of(given: object) -> Loss:
    """Return a loss by its name, or a user's own.

    >>> loss_of("l1").value(np.array([[1.0, -2.0], [-2.0, 0.0]]))
    5.0
    """
    if isinstance(given, str):
        if given not in get_args(Name):
            raise InvalidProblem(
                f"loss is {given!r}; expected one of {', '.join(get_args(Name))}, or your own object"
            )
        return Loss(given, *cast(Any, _KNOWN[given]))
    if isinstance(given, type):
        raise InvalidProblem(
            f"loss is the class {given.__name__}; give an object of it: {given.__name__}()"
        )
    if not isinstance(given, Convex):
        raise InvalidProblem(
            f"loss is a {type(given).__name__}; expected one of {', '.join(get_args(Name))}, or an object with "
            "value(X), subgradient(X) and, for a bracket, conjugate(Z)"
        )
    conjugate = getattr(given, "conjugate", None)
    for name, method in (
        ("value", given.value),
        ("subgradient", given.subgradient),
        ("conjugate", conjugate),
    ):
        if not (callable(method) or (name == "conjugate" and method is None)):
            raise InvalidProblem(f"loss.{name} is {method!r}; expected a method of a matrix")
    return Loss("own", given.value, given.subgradient, conjugate, _same)


def checked_loss(given: object, n: int) -> Loss:
    """Return a loss whose answers about the unit matrix of order n are of the right kind."""
    loss = loss_of(given)
    if loss.name != "own":
        return loss
    _require_number("value(X) at X = I", loss.value, np.eye(n))
    Z = np.asarray(_answer("subgradient(X) at X = I", loss.gradient, np.eye(n)))
    if Z.shape != (n, n) or Z.dtype.kind not in REAL:
        what = f"{Z.dtype} of shape {Z.shape}"
        raise InvalidProblem(
            f"loss.subgradient(X) at X = I is {what}; expected an array of numbers of shape {(n, n)}"
        )
    if loss.conjugate is not None:
        _require_number("conjugate(Z) at Z = 0", loss.conjugate, np.zeros((n, n)))
        _require_number("conjugate(Z) at the gradient of X = I", loss.conjugate, Z.astype(float))
    return loss


def similarity_list(value: object, many: bool = False) -> tuple[Similarity, ...]:
    """Return one matrix, a list of matrices, or an array with matrices stacked last, as checked similarities."""
    given: Any = value
    if isinstance(value, Similarity | Gram) or (isinstance(value, np.ndarray) and value.ndim == 2):
        given = [value]
    elif isinstance(value, np.ndarray) and value.ndim == 3:
        given = [value[:, :, i] for i in range(value.shape[2])]
    elif isinstance(value, list | tuple) and value and np.ndim(cast(Any, _peek(value[0]))) == 1:
        given = [value]  # rows of numbers: one matrix
    if not isinstance(given, list | tuple):
        raise InvalidProblem(
            f"S is a {type(value).__name__}; expected n x n matrices, or an array (n, n, m) of them"
        )
    if not given:
        raise InvalidProblem("S is empty; give one similarity matrix at least")
    name = "S" if len(given) == 1 and not many else "S[0]"
    first = Similarity.of(given[0], name)
    return (
        first,
        *(Similarity.of(S, f"S[{i}]", size=first.size) for i, S in enumerate(given[1:], 1)),
    )


def noisy_similarities(
    rng: np.random.Generator, n: int, m: int
) -> tuple[list[FloatArray], FloatArray]:
    """Return Gaussian kernels of m widths with noise, which makes them indefinite, and labels of both classes."""
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    X = rng.normal(size=(n, 3)) + y[:, None] / 2
    squares = np.square(X[:, None] - X).sum(axis=2)
    noise = [rng.normal(size=(n, n)) for _ in range(m)]
    return [np.exp(-squares / 3.0 ** (i + 1)) + 0.2 * (E + E.T) for i, E in enumerate(noise)], y


def symmetric_part(M: FloatArray) -> FloatArray:
    """Return (M + M') / 2."""
    return (M + M.T) / 2


def _answer(where: str, method: Callable[[FloatArray], object], X: FloatArray) -> object:
    try:
        with np.errstate(all="ignore"):
            return method(X)
    except Exception as error:  # a user's own function may fail in any way
        cure = (
            "return inf outside its domain, or leave it out"
            if where.startswith("conjugate")
            else "repair it"
        )
        raise InvalidProblem(f"loss.{where} raises {error!r}; {cure}") from error


def _require_number(where: str, method: Callable[[FloatArray], object], X: FloatArray) -> None:
    answer = np.asarray(_answer(where, method, X))
    if answer.shape or answer.dtype.kind not in REAL:
        what = f"of shape {answer.shape}" if answer.shape else f"{answer[()]!r}"
        raise InvalidProblem(f"loss.{where} is {what}; expected a number")


def _peek(first: object) -> object:
    return first.matrix if isinstance(first, Similarity | Gram) else first


def _same(Z: FloatArray) -> FloatArray:
    return Z


def _l1(X: FloatArray) -> float:
    return float(np.abs(X).sum())


def _norm(X: FloatArray) -> float:
    return float(np.linalg.norm(X))


def _square(X: FloatArray) -> float:
    return float(np.vdot(X, X))


def _quarter(Z: FloatArray) -> float:
    return _square(Z) / 4


def _double(X: FloatArray) -> FloatArray:
    return 2 * X


def _none(Z: FloatArray) -> float:
    return 0.0


def _clipped(Z: FloatArray) -> FloatArray:
    return np.clip(Z, -1.0, 1.0)


def _shortened(Z: FloatArray) -> FloatArray:
    return Z / max(1.0, _norm(Z) * (1 + 1e-15))


def _direction(X: FloatArray) -> FloatArray:
    return X / (_norm(X) or 1.0)


_KNOWN: dict[str, tuple[object, ...]] = {
    "l1": (_l1, np.sign, _none, _clipped),
    "frobenius": (_norm, _direction, _none, _shortened),
    "squared": (_square, _double, _quarter, _same),
}
