"""Quadratics over an orthant or a box at zero whose solution has few nonzeros: the working set grows by pricing.

    minimise  x'Hx/2 + c'x   over   0 <= x <= upper

H is only applied and looked into. Each round prices all variables by one product, g = Hx + c, lets
in those that pay best, solves the program in the few working variables exactly and drops those at
zero, until no g_i is negative beyond rounding. Neighbours are often near duplicates (prefix
kernels, time lags), so those that come in are well separated along the index and, but for the first
ones, local minima of g; where neighbours have nothing in common, that costs a round or two. A
quadratic that knows that its first variables are likely to be all that matters (`leading`) is
solved in them beforehand: then most rounds price these few, and the last one prices all.

The small program is solved by exchanges: minimise on the free variables, take out all that are
negative there, let in all that pay. Where that does not end it is Lawson and Hanson's method, which
does: go towards the minimiser on the free variables until some are at zero, which leave; at the
minimiser let in all that pay, or only the best where all did not help. Where that one depends on
the free ones, H d = 0 for some d with g'd < 0, and the way is along d. If nothing stops it, d is a
ray.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from klopt.arrays import EPS, FloatArray
from klopt.model.backend import Stop
from klopt.model.functions import QuadraticLike
from klopt.numerics.box_qp.active_set import Box, BoxQP, SignedGram, Solved, solve_box_qp
from klopt.numerics.box_qp.quadratic import Indices

__all__ = ["grow", "orthant_minimiser"]

ROUNDING = 64 * EPS
ENTERING = 12
ACCURATE = 1e-12
EXCHANGES = 12
SMALL = 40
"""Up to so many variables one at a time is faster than the whole face at once."""


class _NoMinimum(ArithmeticError):
    """The objective falls for ever along a ray."""


@dataclass(frozen=True, eq=False)
class _Round:
    """The nonzero variables and their values; the gradient of all, and the size of its terms."""

    working: Indices
    values: FloatArray
    g: FloatArray
    scale: float

    @classmethod
    def at(cls, f: QuadraticLike, working: Indices, values: FloatArray) -> _Round:
        """Price all variables at a point."""
        x = np.zeros(f.size)
        x[working] = values
        Hx = f.matvec(x) if working.size else x
        return cls(working, values, Hx + f.linear, _largest(f.linear) + _largest(Hx))

    def entering(self, upper: FloatArray) -> Indices:
        """Return the variables that pay best, well separated: at first anywhere, then among the local minima of g."""
        pay = np.where((self.g < -ROUNDING * self.scale) & (upper > 0), self.g, 0.0)
        pay[self.working] = 0.0
        paying = np.flatnonzero(pay)
        if self.working.size:
            around = np.zeros(pay.size + 2)
            around[1:-1] = pay
            paying = paying[(pay[paying] <= around[paying]) & (pay[paying] < around[paying + 2])]
        most = max(ENTERING, 2 * self.working.size)
        if paying.size <= most:
            return paying
        # The best of each stretch of the index: those beside it are worth little once it is in.
        # Stretches grow with the index, as prefixes, lags and frequencies differ less and less.
        ends = np.expm1(np.arange(1, most) * (np.log1p(pay.size) / most))
        cuts = [0, *np.searchsorted(paying, ends).tolist(), paying.size]
        parts = [paying[low:high] for low, high in pairwise(cuts) if low < high]
        return np.array([part[np.argmin(pay[part])] for part in parts])


def grow(
    f: QuadraticLike,
    upper: FloatArray,
    start: Indices,
    max_iter: int = 100,
    deadline: float = np.inf,
) -> Solved | None:
    """Return the minimiser, or None where it has many nonzeros or no working set stays; `start` may be among them.

    >>> from klopt.model.functions import Quadratic
    >>> f = Quadratic([[2.0, 1.0], [1.0, 2.0]], [-1.0, 1.0])
    >>> grow(f, np.full(2, np.inf), np.array([], dtype=np.intp)).x
    array([0.5, 0. ])
    """
    most = max(64, min(f.size // 4, 400))
    few = None if start.size else getattr(f, "leading", _nothing)()
    first = None if few is None else grow(few, upper[: few.size], start, max_iter, deadline)
    nonzero = start[:0] if first is None else np.flatnonzero(first.x)
    here = _Round.at(f, nonzero, np.zeros(0) if first is None else first.x[nonzero])
    value, rounds = (0.0, 0) if first is None else (first.value, first.iterations)
    while (entering := here.entering(upper) if rounds or not start.size else start).size:
        if rounds >= max_iter or time.perf_counter() >= deadline:
            stop = Stop.ITERATION_LIMIT if rounds >= max_iter else Stop.TIME_LIMIT
            return _solved(f, here, upper, rounds, stop, "the working set still grows")
        working = np.concatenate(
            [here.working, entering[np.argsort(here.g[entering], kind="stable")]]
        )
        if working.size > most:
            return None
        try:
            values, lower = _minimise(
                f, working, np.append(here.values, np.zeros(entering.size)), upper
            )
        except _NoMinimum:
            return _solved(
                f, here, upper, rounds, Stop.UNBOUNDED, "the objective falls for ever along a ray"
            )
        rounds += 1
        if rounds > 1 and not lower < value:
            break
        kept, value = values > 0, lower
        here = _Round.at(f, working[kept], values[kept])
    found = _solved(
        f, here, upper, rounds, Stop.OPTIMAL, "no variable outside the working set pays"
    )
    return found if found.error <= ACCURATE else None


def _minimise(
    f: QuadraticLike, working: Indices, x: FloatArray, upper: FloatArray
) -> tuple[FloatArray, float]:
    """Return the minimiser in the working variables, from the one in those of them that are not zero, and its value."""
    H, c, top = f.block(working, working), f.linear[working], upper[working]
    found = None
    try:
        if c.size <= SMALL and (x < top).all():
            found = _exchanged(H, c)
            found = orthant_minimiser(H, c, x) if found is None else found
    except _NoMinimum:
        if np.isinf(top).all():
            raise
    if found is None or (found > top).any():
        found = solve_box_qp(
            BoxQP(SignedGram(H), c, Box(np.zeros_like(c), top)), np.minimum(x, top)
        ).x
    return found, float(found @ (H @ found)) / 2 + float(c @ found)


def _exchanged(H: FloatArray, c: FloatArray) -> FloatArray | None:
    """Return the minimiser over the orthant by block exchanges, None where they do not end soon."""
    free = np.arange(c.size)
    for _ in range(EXCHANGES):
        target, bad = _on_free(H, c, free)
        if target is None:
            free = np.delete(free, bad)
        elif (target > 0).all():
            x = np.zeros(c.size)
            x[free] = target
            new = _paying(H, c, x)[1]
            if not new.size:
                return x
            free = np.append(free, new)
        else:
            free = free[target > 0]
    return None


def _paying(H: FloatArray, c: FloatArray, x: FloatArray) -> tuple[FloatArray, Indices]:
    """Return the gradient and the variables at zero that pay beyond rounding."""
    Hx = H @ x
    g = Hx + c
    return g, np.flatnonzero((x == 0) & (g < -8 * EPS * (_largest(c) + _largest(Hx))))


def orthant_minimiser(H: FloatArray, c: FloatArray, x: FloatArray) -> FloatArray | None:
    """Return the minimiser of x'Hx/2 + c'x over x >= 0 from x, whose nonzeros come first and are independent.

    None where rounding decides.

    >>> orthant_minimiser(np.eye(2), np.array([-1.0, 2.0]), np.zeros(2))
    array([1., 0.])
    """
    x, free, best, alone = x.copy(), np.arange(c.size), np.inf, -1
    useless = np.zeros(c.size, dtype=bool)
    for _ in range(10 * c.size + 10):
        target, bad = _on_free(H, c, free)
        if target is None:
            if x[free[bad]] > 0:
                return None
            free = _along_null(H, x, free) if free[bad] == alone else np.delete(free, bad)
        elif not (target > 0).all():
            free = _towards(x, free, target)
            # The best variable moves up; one that does not is there by rounding.
            useless[alone] |= alone >= 0 and x[alone] == 0
        else:
            x[free] = target
            g, new = _paying(H, c, x)
            new, value = new[~useless[new]], float(x @ (g + c)) / 2
            if not new.size:
                return x
            new = (
                new[np.argsort(g[new], kind="stable")] if value < best else new[[np.argmin(g[new])]]
            )
            free, best, alone = np.append(free, new), value, int(new[0]) if new.size == 1 else -1
    return None


def _on_free(H: FloatArray, c: FloatArray, free: Indices) -> tuple[FloatArray | None, int]:
    """Return the minimiser on the free variables, or the first of them that depends on those before it."""
    from scipy.linalg.lapack import dposv

    if not free.size:
        return np.zeros(0), 0
    block = H[free[:, None], free]
    limits = 4 * EPS * block.diagonal()
    factor, target, failed = dposv(block.T, -c[free], lower=1, overwrite_a=1)
    small = np.square(factor.diagonal()) <= limits
    if failed:
        small[failed - 1 :] = True
    return (None, int(small.argmax())) if small.any() else (target, 0)


def _towards(x: FloatArray, free: Indices, target: FloatArray) -> Indices:
    """Move x as far as its free variables stay nonnegative and return those that are not at zero then."""
    now, falls = x[free], np.flatnonzero(target <= 0)
    way = now[falls] - target[falls]
    shares = np.divide(now[falls], way, out=np.zeros(falls.size), where=way > 0)
    step = float(shares.min())
    x[free] = np.maximum(now + step * (target - now), 0.0)
    leaving = falls[shares <= step]
    x[free[leaving]] = 0.0
    return np.delete(free, leaving)


def _along_null(H: FloatArray, x: FloatArray, free: Indices) -> Indices:
    """Move along d >= 0 in the last free variable with H d = 0 until another one is at zero; return the rest."""
    before, last = free[:-1], free[-1]
    d = np.append(-np.linalg.solve(H[before[:, None], before], H[before, last]), 1.0)
    falls = np.flatnonzero(d < -1e-12 * _largest(d))
    if not falls.size:
        raise _NoMinimum
    shares = x[free[falls]] / -d[falls]
    x[free] = np.maximum(x[free] + float(shares.min()) * d, 0.0)
    leaving = falls[shares <= shares.min()]
    x[free[leaving]] = 0.0
    return np.delete(free, leaving)


def _solved(
    f: QuadraticLike, here: _Round, upper: FloatArray, rounds: int, stop: Stop, native: str
) -> Solved:
    x, g, c = np.zeros(f.size), here.g, f.linear
    x[here.working] = here.values
    with np.errstate(invalid="ignore"):
        gap = float(np.abs(g) @ np.where(g == 0, 0.0, np.where(g > 0, x, upper - x)))
    gradients = np.where(g > 0, np.where(x > 0, g, 0.0), np.where(x < upper, -g, 0.0))
    terms = float(np.abs(x) @ (np.abs(g - c) / 2 + np.abs(c)))
    return Solved(
        x,
        g,
        nu=0.0,
        value=float(x @ (g + c)) / 2,
        gap=gap,
        relative=gap / (terms or float(np.finfo(float).tiny)),
        error=_largest(gradients) / (here.scale or 1.0),
        iterations=rounds,
        stop=stop,
        native=native,
    )


def _nothing() -> None:
    return None


def _largest(v: FloatArray) -> float:
    return float(np.abs(v).max(initial=0.0))
