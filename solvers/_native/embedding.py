"""The answer of a solver that works on the homogeneous embedding: a point, a proof or a ray."""

from __future__ import annotations

from klopt.arrays import FloatArray
from klopt.model.backend import Answer, Stop

__all__ = ["claim"]


def claim(
    stop: Stop,
    x: FloatArray,
    y: FloatArray,
    iterations: int,
    seconds: float,
    native: str,
    *,
    nearly: Stop | None = None,
) -> Answer:
    """Return the answer with x and y in their places.

    Where the solver says "infeasible" y is the proof of that, where it says "unbounded" x is a ray.
    The same holds where it says "almost infeasible", which is no claim, but a vector to be judged.

    Parameters
    ----------
    stop
        What the solver says.
    x, y
        The vectors that it returns, in klopt's signs.
    iterations, seconds, native
        Those of the answer.
    nearly
        What the vectors show almost, where the solver does not claim it.

    Examples
    --------
    >>> import numpy as np
    >>> claim(Stop.UNBOUNDED, np.array([1.0]), np.array([0.0]), 9, 0.1, "").ray
    array([1.])
    """
    shown = stop if nearly is None else nearly
    if shown is Stop.INFEASIBLE:
        return Answer(stop, farkas=y, iterations=iterations, seconds=seconds, native=native)
    if shown is Stop.UNBOUNDED:
        return Answer(stop, ray=x, iterations=iterations, seconds=seconds, native=native)
    return Answer(stop, x, y, iterations=iterations, seconds=seconds, native=native)
