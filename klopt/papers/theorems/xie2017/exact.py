"""Runs of the multiplicative update in balls (Xie et al., 2017)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from klopt.papers.theorems.cases import ball
from klopt.papers.theorems.claim import Case
from klopt.papers.theorems.xie2017.quantities import exact_dot, exact_objective

__all__ = ["exact_growth", "exact_sweep"]


def _balls(case: Case) -> tuple[Any, Any, Any]:
    """F, b and the start with b'a = 1."""
    F, b, a = (np.vectorize(ball, otypes=[object])(case[name]) for name in ("F", "b", "a"))
    return F, b, a / exact_dot(b, a)


def exact_growth(case: Case, steps: int, most: float) -> tuple[Any, Any]:
    """Return b'a after so many updates (33) without step (3), and what is called too large."""
    F, b, a = _balls(case)
    for _ in range(steps):
        a = a * exact_objective(F, a) * b / (F @ a)
    return exact_dot(b, a), ball(int(most))


def exact_sweep(case: Case) -> tuple[Any, Any]:
    """Return a'Fa / (b'a)^2 after one pass over the entries, and before.

    lam is computed anew for each entry.
    """
    F, b, a = _balls(case)
    value: Callable[[Any], Any] = lambda x: exact_objective(F, x) / exact_dot(b, x) ** 2  # noqa: E731
    before = value(a)
    a = a.copy()
    for i in range(len(a)):
        a[i] = a[i] * exact_objective(F, a) * b[i] / exact_dot(F[i], a)
    return value(a), before
