"""The fields of frozen objects, whether `attrs` or `dataclasses` made their class."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any
from weakref import WeakKeyDictionary

import attrs

__all__ = ["field_defaults", "field_names"]


def field_names(kind: type) -> tuple[str, ...]:
    """Return the names of the fields of a class, none where it has no declared ones.

    >>> from klopt.model.problem import Statement
    >>> field_names(Statement), field_names(int)
    (('latex', 'words', 'data', 'weights', 'area'), ())
    """
    known = _names.get(kind)
    if known is None:
        known = _declared(kind)
        _names[kind] = known
    return known


_names: WeakKeyDictionary[type, tuple[str, ...]] = WeakKeyDictionary()
"""The names found so far: arrays are locked at every evaluation of a function."""


def _declared(kind: type) -> tuple[str, ...]:
    if attrs.has(kind):
        return tuple(field.name for field in attrs.fields(kind))
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    return ()


def field_defaults(kind: type) -> dict[str, Any]:
    """Return the default of each argument of the constructor; `...` where it must be given.

    >>> from klopt.model.backend import Step
    >>> field_defaults(Step)
    {'iteration': Ellipsis, 'seconds': Ellipsis, 'lower': Ellipsis, 'upper': Ellipsis}
    """
    arguments = inspect.signature(kind).parameters.values()
    return {
        argument.name: ... if argument.default is argument.empty else argument.default
        for argument in arguments
    }
