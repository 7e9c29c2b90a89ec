"""Dual averaging with the entropy (Nesterov, 2009): three rules for its steps, and the mean of its tangents.

    x_t = mirror(-eta_t (g_1 + .. + g_(t-1)))

with D the depth of the set, w the largest total of its members, L a bound of the gradients in the
dual norm (the steepest so far where none is given) and T the iteration limit:

    adaptive   eta_t = D / sum_s g_s'(x_s - x_(s+1)) / 2    AdaHedge (de Rooij, van Erven, Grunwald, Koolen, 2014)
    horizon    eta_t = sqrt(2 D / (w T)) / L                gap <= L sqrt(2 D w / T) after T steps: mirror descent
    anytime    eta_t = sqrt(D / (w t)) / L                  gap <= 2 L sqrt(D w / t) after any t

Each tangent is a lower bound, so is their mean, and its least value over the set meets the values
at the mean of the x_t as 1 / sqrt(t). The x_t go with the answer as cuts, so that klopt can take
the mean of the tangents itself; there is room for so many, then a new mean begins.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.cones import Feature
from klopt.model.forms import SimplexForm
from klopt.model.sets import Product, SimpleSet, Simplex, Spectrahedron
from klopt.solvers._first_order.loop import Candidate, Steps, evaluator

__all__ = ["INTERIOR", "KINDS", "Lengths", "dual_averaging"]

KINDS = ("adaptive", "horizon", "anytime")
FAR = 1e8  # the first adaptive step goes to the best vertex: all the way, in effect
LOOK = 100  # iterations between two looks at the cuts, which are copied each time
MOST_CUTS = 500_000  # entries of all cuts together
INTERIOR = 1e-6  # how much of the centre a start is mixed with: from a face there is no way back


@dataclass(frozen=True)
class Lengths:
    """A rule for the steps, one of `KINDS`; `lipschitz` bounds the gradients, `horizon` is the number of steps."""

    kind: str
    lipschitz: float | None = None
    horizon: int | None = None

    def after(self, t: int, domain: SimpleSet, regret: float, steepest: float) -> float:
        """Return the step after t gradients, from what they have lost so far and the steepest of them."""
        depth = max(domain.mirror_depth, 1e-300)
        if self.kind == "adaptive":
            return depth / regret if regret > 0 else FAR / max(steepest, 1e-300)
        room = 2 / max(self.horizon or 1, 1) if self.kind == "horizon" else 1 / (t + 1)
        return float(np.sqrt(room * depth / _width(domain))) / max(
            self.lipschitz or steepest, 1e-300
        )

    def measures(self, regret: float) -> bool:
        """Whether the steepness of the gradients, on a spectrahedron a decomposition, has to be known."""
        return self.lipschitz is None and (self.kind != "adaptive" or regret == 0)


def _width(domain: SimpleSet) -> float:
    if isinstance(domain, Product):
        return max(_width(member) for member in domain.sets)
    assert isinstance(domain, Simplex | Spectrahedron)
    return domain.total


def dual_averaging(form: SimplexForm, x: FloatArray, lengths: Lengths, last: int | None) -> Steps:
    """Yield the iterates; the bounds are looked at now and then, and at the `last` of them."""
    domain, evaluate, kinks = (
        form.domain,
        evaluator(form.objective),
        form.objective.feature is Feature.NONSMOOTH,
    )
    f, g = evaluate(x)
    low, point = f, x
    yield Candidate(x, f, form.lower_bound(x, f, g))
    x = (1 - INTERIOR) * x + INTERIOR * domain.centre()
    origin = domain.mirror_dual(x)
    total, steepest, regret = np.zeros_like(x), 0.0, 0.0
    cuts, best = _Cuts(x.size), _Cuts(x.size)
    for t in count(1):
        f, g = evaluate(x)
        low, point = (
            (f, x) if not f >= low else (low, point)
        )  # with `not`, so that the loop sees a NaN
        total += g
        if lengths.measures(regret):
            steepest = max(steepest, domain.dual_norm(g))
        if cuts.full:
            cuts = _Cuts(x.size)
        cuts.add(x, f, g)
        there = domain.mirror(origin - lengths.after(t, domain, regret, steepest) * total)
        regret += max(float(g @ (x - there)) / 2, 0.0)
        if t < 10 or t % LOOK == 0 or t == last or cuts.full or not np.isfinite(f):
            value = form.objective.value(cuts.mean)
            low, point = (value, cuts.mean) if not value >= low else (low, point)
            lower = form.lower_bound(point, low)
            if kinks:
                best = max(best, cuts, key=lambda kept: kept.bound(form))
                yield Candidate(point, low, max(best.bound(form), lower), best.rows())
            else:
                yield Candidate(point, low, lower)
        else:
            yield None
        x = there


class _Cuts:
    """Points with the mean of their tangents, height + gradient'z."""

    def __init__(self, size: int) -> None:
        self.points: list[FloatArray] = []
        self.most = max(MOST_CUTS // (size + 1), 100)
        self.mean, self.gradient, self.height = np.zeros(size), np.zeros(size), 0.0

    @property
    def full(self) -> bool:
        return len(self.points) >= self.most

    def add(self, x: FloatArray, f: float, g: FloatArray) -> None:
        self.points.append(x)
        t = len(self.points)
        self.mean = self.mean + (x - self.mean) / t
        self.gradient = self.gradient + (g - self.gradient) / t
        self.height += (f - float(g @ x) - self.height) / t

    def bound(self, form: SimplexForm) -> float:
        return self.height + form.domain.linear_minimum(self.gradient) if self.points else -np.inf

    def rows(self) -> FloatArray:
        """The points as klopt takes them: a weight, then the entries, end to end."""
        points = np.stack(self.points)
        return np.hstack([np.ones((len(points), 1)), points]).ravel()
