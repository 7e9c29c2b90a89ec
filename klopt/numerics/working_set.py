"""Quadratics over an orthant or a box at zero with few nonzeros, by column generation.

    minimise  x'Hx/2 + c'x   over   0 <= x <= upper

H is only applied and looked into. Each round prices all variables by one product, g = Hx + c, lets
those with the most negative reduced costs enter the working set, solves the program in the few
working variables exactly and drops those at zero, until no g_i is negative beyond rounding.
Neighbours are often near duplicates (prefix kernels, time lags), so those that enter are well
separated along the index and, but for the first ones, local minima of g; where neighbours have
nothing in common, that costs a round or two. A quadratic that knows that its first variables are
likely to be all that matters (`leading`) is solved in them beforehand: then most rounds price these
few, and the last one prices all.

The program of the working set is solved by exchanges: minimise on the free variables, take out all
that are negative there, let in all with a negative reduced cost. Where that does not end it is
Lawson and Hanson's method, which does: go towards the minimiser on the free variables until some
are at zero, which leave; at the minimiser let in all with a negative reduced cost, or only the most
negative where all did not help. Where that one depends on the free ones, H d = 0 for some d with
g'd < 0, and the way is along d. If nothing stops it, d is a ray along which the objective is
unbounded below.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from klopt.arrays import EPS, FloatArray
from klopt.model.backend import Stop
from klopt.model.functions import QuadraticLike
from klopt.numerics.box_qp.active_set import SMALLEST_NORMAL, BoxQPSolution, solve_box_qp
from klopt.numerics.box_qp.program import Box, BoxQP, Indices, SignedGram

__all__ = ["grow", "orthant_minimiser"]

COST_TOLERANCE = 64 * EPS
"""A reduced cost smaller than this, relative to the terms of the gradient, is rounding."""
MIN_ENTERING = 12
"""So many variables may enter in any round; later ones let twice the working set in."""
ACCEPTED_ERROR = 1e-12
"""The reduced cost of an optimum, relative to the terms of the gradient."""
MAX_EXCHANGES = 12
"""Block exchanges before Lawson and Hanson's method takes over."""
MAX_EXCHANGED_VARIABLES = 40
"""With more variables the whole face at once is faster than exchanges."""
MIN_MAX_WORKING_SET = 64
"""Working sets may always grow to so many variables."""
MAX_WORKING_SET = 400
"""No working set grows beyond so many variables; the dense method is faster then."""


class _UnboundedBelow(ArithmeticError):
    """The objective decreases without limit along a ray."""


@dataclass(frozen=True, eq=False)
class _PricedPoint:
    """The nonzero variables and their values; the gradient of all, and the size of its terms."""

    working: Indices
    values: FloatArray
    g: FloatArray
    gradient_terms: float

    @classmethod
    def at(cls, f: QuadraticLike, working: Indices, values: FloatArray) -> _PricedPoint:
        """Price all variables at a point."""
        x = np.zeros(f.size)
        x[working] = values
        Hx = f.matvec(x) if working.size else x
        return cls(working, values, Hx + f.linear, _largest(f.linear) + _largest(Hx))

    def entering(self, upper: FloatArray) -> Indices:
        """Return the variables with the most negative reduced costs, well separated.

        At first they may lie anywhere, then among the local minima of g.
        """
        negative = (self.g < -COST_TOLERANCE * self.gradient_terms) & (upper > 0)
        costs = np.where(negative, self.g, 0.0)
        costs[self.working] = 0.0
        candidates = np.flatnonzero(costs)
        if self.working.size:  # strict on one side, so that of equal neighbours one enters
            padded = np.zeros(costs.size + 2)
            padded[1:-1] = costs
            not_above_left = costs[candidates] <= padded[candidates]
            below_right = costs[candidates] < padded[candidates + 2]
            candidates = candidates[not_above_left & below_right]
        most = max(MIN_ENTERING, 2 * self.working.size)
        if candidates.size <= most:
            return candidates

        # The best of each stretch of the index: those beside it are worth little once it is in.
        # Stretches grow with the index, as prefixes, lags and frequencies differ less and less.
        ends = np.expm1(np.arange(1, most) * (np.log1p(costs.size) / most))
        cuts = [0, *np.searchsorted(candidates, ends).tolist(), candidates.size]
        stretches = [candidates[low:high] for low, high in pairwise(cuts) if low < high]
        return np.array([stretch[np.argmin(costs[stretch])] for stretch in stretches])


def grow(
    f: QuadraticLike,
    upper: FloatArray,
    start: Indices,
    max_iter: int = 100,
    deadline: float = np.inf,
) -> BoxQPSolution | None:
    """Return the minimiser, None where it has many nonzeros or rounding decides.

    Parameters
    ----------
    f
        The quadratic.
    upper
        The upper bounds, which may be infinite.
    start
        Variables that may be among the nonzeros.
    max_iter
        The limit of the rounds.
    deadline
        When to stop, on the clock of `time.perf_counter`.

    Examples
    --------
    >>> from klopt.model.functions import Quadratic
    >>> f = Quadratic([[2.0, 1.0], [1.0, 2.0]], [-1.0, 1.0])
    >>> grow(f, np.full(2, np.inf), np.array([], dtype=np.intp)).x
    array([0.5, 0. ])
    """
    max_working_set = max(MIN_MAX_WORKING_SET, min(f.size // 4, MAX_WORKING_SET))
    here, value, rounds = _first_point(f, upper, start, max_iter, deadline)
    while True:
        entering = start if start.size and not rounds else here.entering(upper)
        if not entering.size:
            break
        limit = _limit_reached(rounds, max_iter, deadline)
        if limit is not None:
            return _solution(f, here, upper, rounds, limit, "the working set still grows")

        best_first = entering[np.argsort(here.g[entering], kind="stable")]
        working = np.concatenate([here.working, best_first])
        if working.size > max_working_set:  # the dense method is faster
            return None
        x = np.append(here.values, np.zeros(entering.size))
        try:
            values, new_value = _minimise(f, working, x, upper)
        except _UnboundedBelow:
            native = "the objective is unbounded below along a ray"
            return _solution(f, here, upper, rounds, Stop.UNBOUNDED, native)

        rounds += 1
        # What entered gained nothing: the rest is rounding.
        if rounds > 1 and not new_value < value:
            break
        value = new_value
        kept = values > 0
        here = _PricedPoint.at(f, working[kept], values[kept])

    native = "no variable outside the working set has a negative reduced cost"
    found = _solution(f, here, upper, rounds, Stop.OPTIMAL, native)
    return found if found.error <= ACCEPTED_ERROR else None


def _first_point(
    f: QuadraticLike, upper: FloatArray, start: Indices, max_iter: int, deadline: float
) -> tuple[_PricedPoint, float, int]:
    """The minimiser in the leading variables, if f knows any and there is no start; else zero.

    With it come its value and the rounds it took.
    """
    leading = None
    if not start.size and hasattr(f, "leading"):
        leading = f.leading()
    first = None
    if leading is not None:
        first = grow(leading, upper[: leading.size], start, max_iter, deadline)
    if first is None:
        return _PricedPoint.at(f, start[:0], np.zeros(0)), 0.0, 0
    nonzero = np.flatnonzero(first.x)
    return _PricedPoint.at(f, nonzero, first.x[nonzero]), first.value, first.iterations


def _limit_reached(rounds: int, max_iter: int, deadline: float) -> Stop | None:
    if rounds >= max_iter:
        return Stop.ITERATION_LIMIT
    return Stop.TIME_LIMIT if time.perf_counter() >= deadline else None


def _minimise(
    f: QuadraticLike, working: Indices, x: FloatArray, upper: FloatArray
) -> tuple[FloatArray, float]:
    """Return the minimiser in the working variables and its value.

    x is the minimiser in those of them that are not zero.
    """
    H = f.block(working, working)
    c = f.linear[working]
    top = upper[working]
    found = None
    try:
        if c.size <= MAX_EXCHANGED_VARIABLES and (x < top).all():
            found = _by_exchanges(H, c)
            if found is None:
                found = orthant_minimiser(H, c, x)
    except _UnboundedBelow:
        # Over the orthant; a finite bound may stop it.
        if np.isinf(top).all():
            raise
    # Exchanges know no upper bounds.
    if found is None or (found > top).any():
        qp = BoxQP(SignedGram(H), c, Box(np.zeros_like(c), top))
        found = solve_box_qp(qp, np.minimum(x, top)).x
    return found, float(found @ (H @ found)) / 2 + float(c @ found)


def _by_exchanges(H: FloatArray, c: FloatArray) -> FloatArray | None:
    """Return the minimiser over the orthant by block exchanges, None where they do not end soon."""
    free = np.arange(c.size)
    for _ in range(MAX_EXCHANGES):
        target, dependent = _on_free(H, c, free)
        if target is None:  # it repeats those before it
            free = np.delete(free, dependent)
        elif (target > 0).all():
            x = np.zeros(c.size)
            x[free] = target
            _, entering = _priced(H, c, x)
            if not entering.size:
                return x
            free = np.append(free, entering)
        else:
            free = free[target > 0]
    return None


def _priced(H: FloatArray, c: FloatArray, x: FloatArray) -> tuple[FloatArray, Indices]:
    """Return the gradient and the variables at zero whose reduced cost is negative."""
    Hx = H @ x
    g = Hx + c
    rounding = 8 * EPS * (_largest(c) + _largest(Hx))
    return g, np.flatnonzero((x == 0) & (g < -rounding))


def orthant_minimiser(H: FloatArray, c: FloatArray, x: FloatArray) -> FloatArray | None:
    """Return the minimiser of x'Hx/2 + c'x over x >= 0 by Lawson and Hanson's method.

    The nonzeros of the start x come first and are independent. None where rounding decides.

    >>> orthant_minimiser(np.eye(2), np.array([-1.0, 2.0]), np.zeros(2))
    array([1., 0.])
    """
    x = x.copy()
    free = np.arange(c.size)
    best_value = np.inf
    entered_alone = -1
    entered_by_rounding = np.zeros(c.size, dtype=bool)
    for _ in range(10 * c.size + 10):
        target, dependent = _on_free(H, c, free)
        if target is None:
            # The nonzeros were independent: rounding decides.
            if x[free[dependent]] > 0:
                return None
            # A null vector of H along which the objective falls, or a variable too many.
            if free[dependent] == entered_alone:
                free = _along_null_vector(H, x, free)
            else:
                free = np.delete(free, dependent)
        elif not (target > 0).all():
            free = _towards(x, free, target)
            # A variable that entered alone moves up; one that does not is there by rounding.
            if entered_alone >= 0 and x[entered_alone] == 0:
                entered_by_rounding[entered_alone] = True
        else:
            x[free] = target
            g, entering = _priced(H, c, x)
            entering = entering[~entered_by_rounding[entering]]
            if not entering.size:
                return x
            value = float(x @ (g + c)) / 2
            if value < best_value:
                entering = entering[np.argsort(g[entering], kind="stable")]
            else:  # all of them did not help: only the best
                entering = entering[[np.argmin(g[entering])]]
            free = np.append(free, entering)
            best_value = value
            entered_alone = int(entering[0]) if entering.size == 1 else -1
    return None


def _on_free(H: FloatArray, c: FloatArray, free: Indices) -> tuple[FloatArray | None, int]:
    """Return the minimiser on the free variables, or the first that depends on those before it."""
    from scipy.linalg.lapack import dposv

    if not free.size:
        return np.zeros(0), 0
    block = H[free[:, None], free]
    smallest_pivots = 4 * EPS * block.diagonal()
    factor, target, failed = dposv(block.T, -c[free], lower=1, overwrite_a=1)
    dependent = np.square(factor.diagonal()) <= smallest_pivots
    if failed:
        dependent[failed - 1 :] = True
    if dependent.any():
        return None, int(dependent.argmax())
    return target, 0


def _towards(x: FloatArray, free: Indices, target: FloatArray) -> Indices:
    """Move x as far as its free variables stay nonnegative; return those that are not zero then."""
    now = x[free]
    falling = np.flatnonzero(target <= 0)
    way = now[falling] - target[falling]
    lengths = np.divide(now[falling], way, out=np.zeros(falling.size), where=way > 0)
    step = float(lengths.min())
    x[free] = np.maximum(now + step * (target - now), 0.0)
    leaving = falling[lengths <= step]
    x[free[leaving]] = 0.0
    return np.delete(free, leaving)


def _along_null_vector(H: FloatArray, x: FloatArray, free: Indices) -> Indices:
    """Move along d with H d = 0 and d = 1 in the last free variable until another is at zero.

    Return the free variables that are left.
    """
    before = free[:-1]
    last = free[-1]
    d = np.append(-np.linalg.solve(H[before[:, None], before], H[before, last]), 1.0)
    falling = np.flatnonzero(d < -1e-12 * _largest(d))
    if not falling.size:
        raise _UnboundedBelow
    lengths = x[free[falling]] / -d[falling]
    x[free] = np.maximum(x[free] + float(lengths.min()) * d, 0.0)
    leaving = falling[lengths <= lengths.min()]
    x[free[leaving]] = 0.0
    return np.delete(free, leaving)


def _solution(
    f: QuadraticLike, here: _PricedPoint, upper: FloatArray, rounds: int, stop: Stop, native: str
) -> BoxQPSolution:
    x = np.zeros(f.size)
    x[here.working] = here.values
    g = here.g
    c = f.linear
    with np.errstate(invalid="ignore"):
        distance = np.where(g > 0, x, upper - x)
        gap = float(np.abs(g) @ np.where(g == 0, 0.0, distance))
    movable = np.where(g > 0, x > 0, x < upper)
    costs = np.where(movable, np.abs(g), 0.0)
    value_terms = float(np.abs(x) @ (np.abs(g - c) / 2 + np.abs(c)))
    return BoxQPSolution(
        x,
        g,
        nu=0.0,
        value=float(x @ (g + c)) / 2,
        gap=gap,
        relative=gap / (value_terms or SMALLEST_NORMAL),
        error=_largest(costs) / (here.gradient_terms or 1.0),
        iterations=rounds,
        stop=stop,
        native=native,
    )


def _largest(v: FloatArray) -> float:
    return float(np.abs(v).max(initial=0.0))
