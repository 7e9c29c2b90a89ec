"""What methods on dual functions of many rows share: their start, and rows that contradict."""

from __future__ import annotations

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.backend import Answer, Start, Stop
from klopt.model.forms import SimplexForm
from klopt.model.functions import DualFunction
from klopt.solvers._first_order.loop import starting_point

__all__ = ["UnboundedDual", "first_ray", "row_start", "unbounded"]

MAX_START_HALVINGS = 60
"""How often a start is halved until the function is finite there."""


class UnboundedDual(Exception):
    """The rows contradict each other: the ray that proves it, and why in words."""

    def __init__(self, ray: FloatArray, words: str) -> None:
        super().__init__(words)
        self.ray = ray
        self.words = words


def unbounded(found: UnboundedDual) -> Answer:
    """Return the claim that the dual function is unbounded below."""
    return Answer(
        Stop.UNBOUNDED, ray=found.ray, native="the rows contradict each other", notes=(found.words,)
    )


def first_ray(f: DualFunction) -> Answer | None:
    """Return the claim if the rows contradict each other in a way that shows at once."""
    found = f.ray()
    return None if found is None else unbounded(UnboundedDual(*found))


def row_start(form: SimplexForm, start: Start | None) -> FloatArray:
    """Return the given multipliers, halved until the function is finite there, or zeros."""
    if start is None:
        x = np.zeros(form.domain.size)
    else:
        x = starting_point(form.domain, start.x)
    for _ in range(MAX_START_HALVINGS):
        if np.isfinite(form.objective.value(x)):
            return x
        x = x / 2
    return np.zeros(form.domain.size)
