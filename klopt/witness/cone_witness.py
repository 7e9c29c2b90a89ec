"""Proposes points and multipliers of a cone program until the trusted core proves both ends.

Cheap proposals come first: the answer as it is, then with its doubtful inequalities as equations,
then moved inside by more and more. The core (`klopt.proof.cone_bounds`) decides about each of them;
nothing here can make a false statement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from klopt.arrays import EPS, FloatArray
from klopt.model.cones import Cones
from klopt.model.cones.norms import block_norms
from klopt.model.forms import ConeForm
from klopt.proof.cone_bounds import (
    DualWitness,
    PrimalWitness,
    ProvenEnd,
    doubtful_rows,
    is_infeasible,
    is_ray,
    lower_bound,
    upper_bound,
)
from klopt.proof.statement import ConeStatement
from klopt.proof.time_budget import exhausted
from klopt.witness.cone_interior import centre
from klopt.witness.cone_repair import (
    DualRepair,
    farkas_multipliers,
    repaired_multipliers,
    repaired_point,
)

__all__ = ["ConeProof", "prove", "proven_infeasible", "proven_ray"]

AsWitness = Callable[[FloatArray, FloatArray], DualWitness]

MARGINS = (64 * EPS, 1e-12, 1e-10, 1e-8)
"""Shares of the terms by which points and multipliers are moved inside, in this order."""
SHRINKING = (1e-15, 1e-13, 1e-11, 1e-9)
"""Shares by which multipliers are shortened: gradients of positive costs become positive."""
NOISE_LEVELS = (0.0, 1e-12, 1e-9, 1e-6)
"""Solvers leave noise in entries that are 0: shares of the largest entry that are dropped."""
GOOD_ENOUGH = 1e-9
"""A relative gap below which no better witness is looked for."""


@dataclass(frozen=True, eq=False)
class ConeProof:
    """Both ends of the optimum of a cone program, and the arrays they rest on."""

    lower: ProvenEnd
    upper: ProvenEnd
    x: FloatArray
    y: FloatArray


def prove(
    statement: ConeStatement,
    form: ConeForm,
    x: FloatArray,
    y: FloatArray,
    as_witness: AsWitness = DualWitness,
) -> ConeProof:
    """Return the best ends that can be proven from an approximate solution.

    Parameters
    ----------
    statement
        What is to be proven, as exact numbers.
    form
        The same as a cone program, on which repairs are computed.
    x, y
        An approximate solution of the form.
    as_witness
        Makes a dual witness of the statement from (w, y) of the form.
    """
    upper, point = _best_point(statement, form, x)
    lower, multipliers = _best_multipliers(statement, form, x, y, as_witness, upper.value)
    return ConeProof(lower, upper, point, multipliers)


# Points


def _best_point(
    statement: ConeStatement, form: ConeForm, x: FloatArray
) -> tuple[ProvenEnd, FloatArray]:
    """The first point that is proven feasible."""
    end = ProvenEnd(np.inf, "the point is not finite")
    best = x
    if not np.isfinite(x).all():
        return end, x
    for point in _points(statement, form, x):
        end = upper_bound(statement, PrimalWitness(point))
        if not np.isfinite(end.value):
            tight = doubtful_rows(statement, point)
            if tight.size:
                end = upper_bound(statement, PrimalWitness(point, tight))
        best = point
        if np.isfinite(end.value) or exhausted():
            break
    return end, best


def _points(statement: ConeStatement, form: ConeForm, x: FloatArray) -> Iterator[FloatArray]:
    """The point between the bounds of its variables, then repaired with more and more margin."""
    inner = statement.inner_range
    first = np.clip(x, inner.lower, np.maximum(inner.lower, inner.upper))
    yield first
    for margin in MARGINS:
        if exhausted():
            return
        moved = repaired_point(form, first, margin)
        yield np.clip(moved, inner.lower, np.maximum(inner.lower, inner.upper))


# Multipliers


def _best_multipliers(
    statement: ConeStatement,
    form: ConeForm,
    x: FloatArray,
    y: FloatArray,
    as_witness: AsWitness,
    upper: float,
) -> tuple[ProvenEnd, FloatArray]:
    """The multipliers with the largest proven bound, until it is near the upper end."""
    best = ProvenEnd(-np.inf, "the multipliers are not finite")
    chosen = y
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return best, np.zeros_like(y)
    for w, multipliers in _multipliers(form, x, y):
        end = lower_bound(statement, as_witness(w, multipliers))
        if end.value > best.value or not np.isfinite(best.value):
            best = end
            chosen = multipliers
        if _is_close(best.value, upper) or exhausted():
            break
    return best, chosen


def _is_close(lower: float, upper: float) -> bool:
    if not np.isfinite(lower):
        return False
    return not np.isfinite(upper) or upper - lower <= GOOD_ENOUGH * (1 + abs(upper))


def _multipliers(
    form: ConeForm, x: FloatArray, y: FloatArray
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Multipliers in K* with ever more room, each with the point w that goes with it."""
    cones = form.cones
    inside = cones.project_dual(y)
    curved = bool(cones.soc or cones.psd or cones.exp)
    if not curved:
        yield x, inside
        for share in SHRINKING:
            yield x, (1 - share) * inside
    else:
        yield x, _with_room(cones, inside, 1e-15)
        yield x, _with_room(cones, inside, 1e-13)
    if exhausted():
        return
    pair = repaired_multipliers(form, x, y)
    yield pair.w, pair.y
    repair = DualRepair(form)
    fixed = np.zeros(form.b.size, dtype=bool)
    for margin in MARGINS:
        if exhausted():
            return
        pushed = _with_room(cones, pair.y, margin)
        moved = repair.assign_bound_multipliers(pair.w, pushed)
        if moved.residual.any() or curved:
            residual = moved.residual + moved.rounding_residual
            step = repair.correction.step(pair.w, pushed, residual, fixed)
            if step is not None:
                moved = repair.assign_bound_multipliers(*step)
        yield moved.w, _with_room(cones, moved.y, EPS)


def _with_room(cones: Cones, y: FloatArray, share: float) -> FloatArray:
    """The multipliers moved inside every curved cone by a share of their size."""
    start = cones.zero + cones.nonneg
    inward = share * block_norms(cones, y) * centre(cones)
    inward[:start] = 0.0
    return y + inward


# No optimum


def proven_infeasible(
    statement: ConeStatement, form: ConeForm, y: FloatArray, as_witness: AsWitness = DualWitness
) -> bool:
    """Return whether multipliers near y prove that there is no feasible point.

    Parameters
    ----------
    statement, form
        What is to be proven, as exact numbers and as a cone program.
    y
        An approximate Farkas vector of the form.
    as_witness
        Makes a dual witness of the statement from (w, y) of the form.
    """
    if not np.isfinite(y).all() or y.shape != form.b.shape:
        return False
    zero = np.zeros_like(form.c)
    finite = ConeForm(
        zero, form.A, np.where(np.isinf(form.b), 1e15, form.b), form.cones, None, form.radius
    )
    for level in NOISE_LEVELS:
        largest = float(np.max(np.abs(y), initial=0.0))
        kept = np.where(np.abs(y) <= level * largest, 0.0, y) if level else y
        inside = form.cones.project_dual(kept)
        for candidate in (
            inside,
            _with_room(form.cones, inside, 1e-14),
            *_repaired_farkas(finite, inside),
        ):
            if is_infeasible(statement, as_witness(zero, candidate)):
                return True
    return False


def _repaired_farkas(form: ConeForm, y: FloatArray) -> Iterator[FloatArray]:
    if exhausted():
        return
    repaired = farkas_multipliers(form, y)
    yield repaired
    for share in (1e-14, 1e-12, 1e-9):
        yield _with_room(form.cones, repaired, share)


def proven_ray(statement: ConeStatement, d: FloatArray) -> bool:
    """Return whether a direction near d is one along which the objective falls without bound."""
    if d.shape != statement.c.shape or not np.isfinite(d).all() or not d.any():
        return False
    unit = d / float(np.max(np.abs(d)))
    for level in NOISE_LEVELS:
        kept = np.where(np.abs(unit) <= level, 0.0, unit)
        # Few digits first: rays of programs with small integers are short dyadic numbers.
        for digits in (6, 20, 40, None):
            rounded = kept if digits is None else np.round(kept * 2.0**digits) / 2.0**digits
            if rounded.any() and is_ray(statement, rounded):
                return True
    return False
