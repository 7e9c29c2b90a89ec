"""Dual averaging with the entropy (Nesterov, 2009): its three step rules, the mean of its tangents.

    x_t = mirror(-eta_t (g_1 + .. + g_(t-1)))

with D the depth of the set, w the largest total of its members, L a bound of the gradients in the
dual norm (the largest so far where none is given) and T the iteration limit:

    adaptive   eta_t = D / sum_s g_s'(x_s - x_(s+1)) / 2    AdaHedge (de Rooij et al., 2014)
    horizon    eta_t = sqrt(2 D / (w T)) / L                gap <= L sqrt(2 D w / T) after T steps
    anytime    eta_t = sqrt(D / (w t)) / L                  gap <= 2 L sqrt(D w / t) after any t

Each tangent is a lower bound, so is their mean, and its minimum over the set meets the values at
the mean of the x_t as 1 / sqrt(t). The x_t go with the answer as cuts, so that klopt can take the
mean of the tangents itself; of them a limited number is kept, then a new mean begins.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.features import Feature
from klopt.model.forms import SimplexForm
from klopt.model.sets import Product, SimpleSet, Simplex, Spectrahedron
from klopt.numerics.candidate import Candidate
from klopt.solvers._first_order.loop import Steps, evaluator

__all__ = ["INTERIOR_SHARE", "STEP_RULES", "StepRule", "dual_averaging"]

STEP_RULES = ("adaptive", "horizon", "anytime")
FIRST_ADAPTIVE_STEP = 1e8
"""The first adaptive step over the gradient: all the way to the best vertex, in effect."""
LOOK_EVERY = 100
"""Iterations between two looks at the cuts, which are copied each time."""
MAX_CUT_ENTRIES = 500_000
"""Entries of all cuts together."""
MIN_CUTS = 100
"""So many cuts are kept however large they are."""
INTERIOR_SHARE = 1e-6
"""How much of the centre a start is mixed with: from a face there is no way back."""
SMALLEST_DIVISOR = 1e-300


@dataclass(frozen=True)
class StepRule:
    """A rule for the steps.

    Parameters
    ----------
    kind
        One of `STEP_RULES`.
    lipschitz
        A bound of the gradients in the dual norm.
    horizon
        The number of steps.
    """

    kind: str
    lipschitz: float | None = None
    horizon: int | None = None

    def after(self, t: int, domain: SimpleSet, regret: float, largest_gradient: float) -> float:
        """Return the step after t gradients.

        Parameters
        ----------
        t
            The number of gradients.
        domain
            The set.
        regret
            What the gradients have lost so far.
        largest_gradient
            The largest of them in the dual norm.
        """
        depth = max(domain.mirror_depth, SMALLEST_DIVISOR)
        if self.kind == "adaptive":
            if regret > 0:
                return depth / regret
            return FIRST_ADAPTIVE_STEP / max(largest_gradient, SMALLEST_DIVISOR)
        share = 2 / max(self.horizon or 1, 1) if self.kind == "horizon" else 1 / (t + 1)
        length = float(np.sqrt(share * depth / _largest_total(domain)))
        return length / max(self.lipschitz or largest_gradient, SMALLEST_DIVISOR)

    def needs_norm(self, regret: float) -> bool:
        """Whether the norm of the gradients, on a spectrahedron a decomposition, must be known."""
        return self.lipschitz is None and (self.kind != "adaptive" or regret == 0)


def _largest_total(domain: SimpleSet) -> float:
    if isinstance(domain, Product):
        return max(_largest_total(member) for member in domain.sets)
    assert isinstance(domain, Simplex | Spectrahedron)
    return domain.total


def dual_averaging(form: SimplexForm, x: FloatArray, rule: StepRule, last: int | None) -> Steps:
    """Yield the iterates; the bounds are looked at now and then, and at the `last` of them."""
    domain = form.domain
    evaluate = evaluator(form.objective)
    has_kinks = form.objective.feature is Feature.NONSMOOTH
    f, g = evaluate(x)
    lowest = f
    point = x
    yield Candidate(x, f, form.lower_bound(x, f, g))

    x = (1 - INTERIOR_SHARE) * x + INTERIOR_SHARE * domain.centre()
    origin = domain.mirror_dual(x)
    gradient_sum = np.zeros_like(x)
    largest_gradient = 0.0
    regret = 0.0
    cuts = _TangentMean(x.size)
    best_cuts = _TangentMean(x.size)
    for t in count(1):
        f, g = evaluate(x)
        if not f >= lowest:  # with `not`, so that the loop sees a NaN
            lowest = f
            point = x
        gradient_sum += g
        # AdaHedge measures the regret instead.
        if rule.needs_norm(regret):
            largest_gradient = max(largest_gradient, domain.dual_norm(g))
        # A new mean begins; the best of the old ones is kept.
        if cuts.full:
            cuts = _TangentMean(x.size)
        cuts.add(x, f, g)
        eta = rule.after(t, domain, regret, largest_gradient)
        there = domain.mirror(origin - eta * gradient_sum)
        regret += max(float(g @ (x - there)) / 2, 0.0)
        x = there

        if not (t < 10 or t % LOOK_EVERY == 0 or t == last or cuts.full or not np.isfinite(f)):
            yield None
            continue
        value = form.objective.value(cuts.mean)
        if not value >= lowest:
            lowest = value
            point = cuts.mean
        lower = form.lower_bound(point, lowest)
        if has_kinks:  # the tangent at one point proves little, their mean more
            best_cuts = max(best_cuts, cuts, key=lambda kept: kept.lower_bound(form))
            lower = max(best_cuts.lower_bound(form), lower)
            yield Candidate(point, lowest, lower, best_cuts.rows())
        else:
            yield Candidate(point, lowest, lower)


class _TangentMean:
    """Points with the mean of their tangents, height + gradient'z."""

    def __init__(self, size: int) -> None:
        self.points: list[FloatArray] = []
        self.capacity = max(MAX_CUT_ENTRIES // (size + 1), MIN_CUTS)
        self.mean = np.zeros(size)
        self.gradient = np.zeros(size)
        self.height = 0.0

    @property
    def full(self) -> bool:
        return len(self.points) >= self.capacity

    def add(self, x: FloatArray, f: float, g: FloatArray) -> None:
        self.points.append(x)
        t = len(self.points)
        self.mean = self.mean + (x - self.mean) / t
        self.gradient = self.gradient + (g - self.gradient) / t
        self.height += (f - float(g @ x) - self.height) / t

    def lower_bound(self, form: SimplexForm) -> float:
        if not self.points:
            return -np.inf
        return self.height + form.domain.linear_minimum(self.gradient)

    def rows(self) -> FloatArray:
        """The points as klopt takes them: a weight, then the entries, end to end."""
        points = np.stack(self.points)
        return np.hstack([np.ones((len(points), 1)), points]).ravel()
