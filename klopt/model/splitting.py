"""Saddle points that split into two functions of x, each of which is easy to minimise next to a square.

    minimise over x   max over z of h(x, z)   +   max over w of  w'(x's images) - ..        =: f(x) + g(x)

A `Splitting` is the coupling phi(x, (z, w)) of a `SaddleForm` whose right side is a product, z's
set first. Besides value and gradients it knows both proximal steps:

    inner(v, sigma)   argmin over x of the left set of  f(x) + sigma/2 |x - v|^2, by its dual: a smooth problem in z
    outer(v, sigma)   argmin over all x of              g(x) + sigma/2 |x - v|^2, and the w that go with it

so that methods which alternate between the two need nothing else, and the form measures what they
find.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from klopt.arrays import FloatArray
from klopt.model.functions import SaddleOracle
from klopt.model.smooth_functions import SmoothFunction

__all__ = ["Inner", "Splitting"]


@dataclass(frozen=True, eq=False)
class Inner:
    """A proximal step of f: minimise `dual` over z's set, then take x = primal(z)."""

    dual: SmoothFunction
    primal: Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class Splitting(SaddleOracle):
    """A coupling with its two proximal steps, where to start and a first sigma."""

    inner: Callable[[FloatArray, float], Inner]
    outer: Callable[[FloatArray, float], tuple[FloatArray, FloatArray]]
    start: FloatArray
    sigma: float
