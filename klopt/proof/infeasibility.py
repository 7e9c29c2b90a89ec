"""Farkas vectors and rays, which prove that a cone program has no feasible point or no optimum.

**Farkas' lemma.** If y in K*, A'y = 0 and b'y < 0, then no x satisfies b - Ax in K: such an x would
give 0 <= y'(b - Ax) = b'y < 0. Where ||x||_1 <= radius is known, max|A'y| radius < -b'y will do.

**Rays.** If -Ad in K, Pd = 0 and c'd < 0, then the objective falls without bound along d from any
feasible point.

Vectors of a solver satisfy this up to errors. These are judged without scale: entry by entry, next
to the terms that were added up, and next to what cancellation has left of b'y or c'd.
"""

from __future__ import annotations

import attrs
import numpy as np

from klopt.arrays import EPS, FAKE_INFINITY, FloatArray
from klopt.model.forms import ConeForm
from klopt.proof.cone_bounds import farkas_strength
from klopt.proof.cone_norms import largest_entry

__all__ = ["check_farkas", "check_ray"]

MIN_UNCANCELLED_SHARE = 1e-12
"""A sum that is smaller than its terms by this factor is rounding."""
MIN_STEEPNESS = 1e-4
"""A ray of a curved cone that descends less for its length may be one only in the limit."""
FARKAS_SUM_ERROR = 64 * EPS
"""What b'y loses in summation, relative to the sum of its absolute terms."""
FARKAS_MARGIN = 1e-9
"""The share of -b'y that A'y times the radius must leave."""
NOISE_LEVELS = (0.0, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4)
"""Solvers leave noise in entries that are 0 in exact arithmetic: entries below such a share of the
largest one are dropped, and a vector counts if it passes after dropping them."""
SMALLEST_NORMAL = float(np.finfo(float).tiny)
"""Keeps ratios to terms that are all 0 defined: they are huge, not NaN."""


def check_farkas(form: ConeForm, y: FloatArray, tol: float) -> str:
    """Return "" if y proves that no x satisfies b - Ax in K, else what is wrong with it.

    (A'y)_j is compared with (|A|'|y|)_j as well as with -b'y, since a tiny coefficient on a free
    variable would otherwise pass for zero. Where -b'y is small next to |b|'|y| the terms of b'y
    nearly cancel, and an error in y as small as that would undo the proof: it must be smaller by
    the same factor.
    """
    infinite = np.isinf(form.b)
    if infinite.any():
        # A row that asks for something below -inf is a contradiction by itself.
        impossible = form.b == -np.inf
        if np.any(impossible & (y > 0)):
            return ""
        # A row without a bound must not get a multiplier: a huge b makes b'y positive if it does.
        finite_b = np.where(infinite, FAKE_INFINITY / 10, form.b)
        form = attrs.evolve(form, b=finite_b)

    flaw = "b'y is not negative"
    for level in NOISE_LEVELS:
        strength, left_over, multipliers = farkas_strength(form, _without_noise(y, level))
        share = _uncancelled_share(strength, form.b, multipliers)
        if not share > MIN_UNCANCELLED_SHARE:
            continue

        # Farkas' lemma with a radius. Without one the product is infinite or NaN, never smaller.
        certain = 1 - FARKAS_MARGIN - FARKAS_SUM_ERROR / share
        if left_over * form.radius < strength * certain:
            return ""

        # Farkas' lemma without one: A'y = 0 up to tol of its terms.
        image = np.abs(form.A.T @ multipliers)
        terms = abs(form.A).T @ np.abs(multipliers)
        error = _largest_ratio(image, np.minimum(terms, strength)) / share
        if error <= tol:
            return ""
        flaw = f"A'y is {error:.1e} relative to its terms, not 0"
    return flaw


def check_ray(form: ConeForm, d: FloatArray, tol: float) -> str:
    """Return "" if the objective falls without bound along d, else what is wrong with it.

    As with a Farkas vector, errors must be small next to what is left of c'd when its terms have
    cancelled. A row of a curved cone is measured by its whole cone, where a small entry of d with a
    large cost could hide: there the error is compared with the steepest descent as well.
    """
    if np.isfinite(form.radius):
        return "the feasible set is bounded"

    flaw = "c'd is not negative"
    for level in NOISE_LEVELS:
        ray = _without_noise(d, level)
        descent = -float(form.c @ ray)
        share = _uncancelled_share(descent, form.c, ray)
        if not share > MIN_UNCANCELLED_SHARE:
            continue

        steepness = descent / (largest_entry(form.c) * largest_entry(ray))
        leaving = _cone_error(form, ray, share, steepness)
        bending = _curvature_error(form, ray, share, descent)
        error = max(leaving, bending)
        if error <= tol:
            return ""

        flaw = f"the ray leaves the feasible set: relative error {error:.1e}"
        if error > 1 / SMALLEST_NORMAL**0.5:
            flaw = f"the ray is one only in the limit: it descends by {steepness:.0e} of its length"
    return flaw


def _cone_error(
    form: ConeForm,
    ray: FloatArray,
    share: float,
    steepness: float,
) -> float:
    """How far -Ad is from K, relative to its terms; the largest such error over all rows.

    Parameters
    ----------
    form
        The cone program.
    ray
        The direction d.
    share
        What cancellation has left of c'd, next to its terms.
    steepness
        The descent along d, next to the largest one that d and c could have.
    """
    slack = -(form.A @ ray)
    off = np.abs(slack - form.cones.project(slack))
    magnitude = abs(form.A) @ np.abs(ray)

    # A ray that hardly descends may be one only in the limit (weak infeasibility): then no error
    # in a curved cone is small.
    credit = steepness if steepness > MIN_STEEPNESS else 0.0

    worst = 0.0
    for kind, rows in form.cones.blocks():
        if kind in ("zero", "nonneg"):
            terms = magnitude[rows] * share
        else:
            whole = np.max(magnitude[rows]) * credit + SMALLEST_NORMAL
            terms = np.full_like(magnitude[rows], whole)
        worst = max(worst, _largest_ratio(off[rows], terms))
    return worst


def _curvature_error(
    form: ConeForm,
    ray: FloatArray,
    share: float,
    descent: float,
) -> float:
    """How far Pd is from 0, relative to its terms and to the descent.

    Parameters
    ----------
    form
        The cone program.
    ray
        The direction d.
    share
        What cancellation has left of c'd, next to its terms.
    descent
        -c'd.
    """
    if form.P is None:
        return 0.0
    curvature = np.abs(form.P @ ray)
    terms = abs(form.P) @ np.abs(ray)
    return _largest_ratio(curvature, np.minimum(terms, descent) * share)


def _uncancelled_share(total: float, weights: FloatArray, v: FloatArray) -> float:
    """What cancellation has left of a sum of terms weights_i v_i; 0 where it is not positive."""
    if not total > 0:
        return 0.0
    return total / float(np.abs(weights) @ np.abs(v))


def _largest_ratio(errors: FloatArray, sizes: FloatArray) -> float:
    """The largest error next to its size; an error of 0 is none, whatever its size."""
    ratios = np.divide(errors, sizes, out=np.zeros_like(errors), where=errors != 0)
    largest = float(np.max(ratios, initial=0.0))
    if np.isnan(largest):
        return np.inf
    return largest


def _without_noise(v: FloatArray, level: float) -> FloatArray:
    """The vector without entries up to `level` times its largest one."""
    if not level:
        return v
    noise = np.abs(v) <= level * largest_entry(v)
    return np.where(noise, 0.0, v)
