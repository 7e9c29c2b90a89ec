"""A point of the problem as the start of a form: checked, lifted, and moved into the form's set."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from klopt.arrays import FloatArray
from klopt.engine.planner import Route
from klopt.errors import InvalidSettings
from klopt.model.forms import Form, SaddleForm, SimplexForm, Start
from klopt.model.problem import Formulation, Point
from klopt.model.sets.simple_set import SimpleSet

__all__ = ["check_point", "lifted"]

MAX_RELATIVE_VIOLATION = 1e-9
"""A start may lie this far outside its set, relative to 1 + max|x|: that is rounding."""


def check_point(point: object) -> Point:
    """Return a user's start as the `Point` it must be, every entry finite."""
    if not isinstance(point, Point):
        raise InvalidSettings(
            f"start is a {type(point).__name__}; expected a klopt.Point or an earlier Result"
        )
    for name in point:
        array = getattr(point, name)
        bad = np.argwhere(~np.isfinite(array))
        if bad.size:
            index = [int(i) for i in bad[0]]
            value = array[tuple(bad[0])]
            raise InvalidSettings(
                f"start.{name}{index} is {value}; every entry must be a finite number"
            )
    return point


def lifted(route: Route, form: Form, point: Point) -> tuple[Start | None, tuple[str, ...]]:
    """Return the point as a start of the form, inside its set, and what the user should know.

    The start is None where the route has no use for one. Its arrays are copies: a backend may work
    in place on them, and an earlier attempt still owns the point.
    """
    if "start" not in route.backend.honours:
        return None, (f"the start was not used: {route.backend.name} takes none",)
    if route.formulation.lift is None:
        name = route.formulation.name
        return None, (f"the start was not used: no way from a point to the form {name!r}",)

    # From here on a start that does not fit is the user's mistake, not the route's.
    start = _lift(route.formulation, point)
    _check_shapes(route.formulation, form, start)
    start = Start(np.array(start.x), None if start.y is None else np.array(start.y))

    domain = _domain(form)
    if domain is None or _is_inside(domain, start.x):
        return start, ()
    inside = replace(start, x=domain.project(start.x))
    return inside, ("the start was outside its set and was projected onto it",)


def _lift(formulation: Formulation, point: Point) -> Start:
    """The formulation's own map; what it misses in a point of another problem is a bad call."""
    assert formulation.lift is not None
    try:
        return formulation.lift(point)
    except (AttributeError, LookupError) as error:
        missing = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise InvalidSettings(f"start does not fit {formulation.name!r}: {missing}") from error
    except ValueError as error:
        raise InvalidSettings(
            f"start does not fit {formulation.name!r}, by its shapes: {error}"
        ) from error


def _check_shapes(formulation: Formulation, form: Form, start: Start) -> None:
    rows, columns = form.shape
    _check_shape("start has", start.x, columns, formulation)
    _check_shape("start's multipliers have", start.y, rows, formulation)


def _check_shape(
    what: str, vector: FloatArray | None, size: int | None, formulation: Formulation
) -> None:
    if vector is None or size is None or vector.shape == (size,):
        return
    raise InvalidSettings(
        f"{what} shape {vector.shape} for {formulation.name!r}; expected ({size},)"
    )


def _domain(form: Form) -> SimpleSet | None:
    """The simple set that x must lie in; None where the form has rows instead."""
    if isinstance(form, SimplexForm):
        return form.domain
    if isinstance(form, SaddleForm):
        return form.left
    return None


def _is_inside(domain: SimpleSet, x: FloatArray) -> bool:
    size = 1 + float(np.abs(x).max(initial=0.0))
    return domain.violation(x) <= MAX_RELATIVE_VIOLATION * size
