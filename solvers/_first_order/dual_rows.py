"""What methods on dual functions of many rows share: where they start, and what they say when rows contradict."""

from __future__ import annotations

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.backend import Answer, Start, Stop
from klopt.model.forms import SimplexForm
from klopt.model.functions import DualFunction
from klopt.solvers._first_order.loop import starting_point

__all__ = ["Receding", "first_ray", "row_start", "unbounded"]


class Receding(Exception):
    """The rows contradict each other: the ray that proves it, and why in words."""

    def __init__(self, ray: FloatArray, words: str) -> None:
        super().__init__(words)
        self.ray, self.words = ray, words


def unbounded(found: Receding) -> Answer:
    """Return the claim that the dual function falls for ever."""
    return Answer(
        Stop.UNBOUNDED, ray=found.ray, native="the rows contradict each other", notes=(found.words,)
    )


def first_ray(f: DualFunction) -> Answer | None:
    """Return the claim if the rows contradict each other in a way that shows before any iteration."""
    found = f.ray()
    return None if found is None else unbounded(Receding(*found))


def row_start(form: SimplexForm, start: Start | None) -> FloatArray:
    """Return the given multipliers, halved until the function is finite there; zeros without any."""
    x = np.zeros(form.domain.size) if start is None else starting_point(form.domain, start.x)
    for _ in range(60):
        if np.isfinite(form.objective.value(x)):
            return x
        x = x / 2
    return np.zeros(form.domain.size)
