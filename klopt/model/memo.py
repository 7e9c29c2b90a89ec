"""Methods of one point that keep their last answer, read-only.

Value, gradient and curvature at one point are three questions and one evaluation. What is kept is
handed out again, to the backend and later to the proof: so all of it is read-only, and nothing a
backend does to its gradient can change what the proof reads. It is no part of the object: it is
neither pickled nor compared, and goes with it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.records import field_names

__all__ = ["LastAnswer", "lock", "remember_last"]

Self_ = TypeVar("Self_")
Value = TypeVar("Value")


def remember_last(
    method: Callable[[Self_, FloatArray], Value],
) -> Callable[[Self_, FloatArray], Value]:
    """Return the method with the last answer of each object kept while the object lives.

    >>> class Square:
    ...     @remember_last
    ...     def gradient(self, x):
    ...         return 2 * x
    >>> f = Square()
    >>> x = np.array([1.0, 2.0])
    >>> f.gradient(x) is f.gradient(x.copy()), f.gradient(x).flags.writeable
    (True, False)
    """
    attribute = f"_last_{method.__qualname__}"

    @wraps(method)
    def remembered(self: Self_, x: FloatArray) -> Value:
        # In the object's own dictionary: answers often refer back to their object, and a table
        # outside of it would then keep both alive.
        kept = vars(self).setdefault(attribute, LastAnswer())
        # Read and written as one pair: a Ctrl-C, or another thread, must find no answer beside
        # the point of another one.
        pair: tuple[FloatArray, Value] | None = kept.value
        if pair is None or not np.array_equal(pair[0], x):
            # The caller may write into its x afterwards: a copy of it is kept.
            point = np.array(x)
            pair = (point, lock(method(self, x)))
            kept.value = pair
        return pair[1]

    return remembered


class LastAnswer:
    """Where a method was asked last and what it answered; a pickled one comes back empty."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        return LastAnswer, ()


def lock(value: Value) -> Value:
    """Make an array read-only, and those of a tuple, a list or an object's fields.

    >>> lock((np.zeros(2), 1.0))[0].flags.writeable
    False
    """
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    elif isinstance(value, tuple | list):
        for part in value:
            lock(part)
    elif isinstance(value, float | int | str):
        return value
    # What has no declared fields, such as a number or a function, is left alone.
    else:
        for name in field_names(type(value)):
            lock(getattr(value, name))
    return value
