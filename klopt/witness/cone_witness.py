"""Proposes points and multipliers of a cone program until the trusted core proves both ends.

Cheap proposals come first: the answer as it is, then with its doubtful inequalities as equations,
then moved inside by more and more. The core (`klopt.proof`) decides about each of them;
nothing here can make a false statement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np
from scipy import sparse

from klopt.arrays import EPS, FloatArray
from klopt.model.cones import Cones, smat, svec, svec_size, svec_weights
from klopt.model.cones.norms import block_norms
from klopt.model.forms import ConeForm
from klopt.proof.cone_infeasibility import is_infeasible
from klopt.proof.cone_lower_bound import lower_bound
from klopt.proof.cone_upper_bound import NO_SOLUTION, upper_bound
from klopt.proof.cone_witnesses import DualWitness, PrimalWitness, ProvenEnd
from klopt.proof.exact_rank import dependence
from klopt.proof.faces import compressed, turned
from klopt.proof.rational import RationalProgram, as_rational, floats_around, is_linear
from klopt.proof.split_columns import Merged, merged_columns
from klopt.proof.statement import ConeStatement
from klopt.proof.time_budget import exhausted
from klopt.witness.active_rows import on_active_rows
from klopt.witness.centring import GAPS, central_pairs
from klopt.witness.cone_interior import centre
from klopt.witness.cone_repair import (
    DualRepair,
    farkas_multipliers,
    repaired_multipliers,
    repaired_point,
)
from klopt.witness.exact_simplex import ExactStatus, exact_farkas, exact_ray, exact_vertex
from klopt.witness.faces import Face, face_of
from klopt.witness.inward import inward_point, weighted_step
from klopt.witness.lifting import lifted_point, raised_point
from klopt.witness.own_multipliers import beside_own_rows
from klopt.witness.polish import polished
from klopt.witness.precise_witness import short_multipliers
from klopt.witness.relative_interior import RelativeInterior, relative_interior
from klopt.witness.stationary import stationary_witness
from klopt.witness.sufficient import sufficient_gap
from klopt.witness.tight_rows import doubtful_rows, is_ray_nearby

__all__ = ["ConeProof", "prove", "proven_infeasible", "proven_ray"]

NoOptimum = Literal["", "infeasible", "unbounded"]
AsWitness = Callable[[FloatArray, FloatArray], DualWitness]

MARGINS = (64 * EPS, 1e-12, 1e-10, 1e-8)
"""Shares of the terms by which points and multipliers are moved inside, in this order."""
SHRINKING = (1e-15, 1e-13, 1e-11, 1e-9)
"""Shares by which multipliers are shortened: gradients of positive costs become positive."""
NOISE_LEVELS = (1e-12, 1e-9, 1e-6)
"""Solvers leave noise in entries that are 0: shares of the largest entry that are dropped."""
INWARD_SHARES = (1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6)
"""Shares of the way to an interior point that a point is moved, in this order."""
SMALL_PROGRAM = 300
"""Entries of A up to which rationals are tried from any vector, however far off."""
MAX_PIVOTS = 60
"""Steps of the simplex method in rationals: a good answer needs few, a bad one too many."""
NEARLY_SOLVED = 1e-3
"""Residuals up to which an answer to a linear program is worth rational arithmetic."""
ROUNDING = 1e-13
"""A share by which multipliers are shortened that their own rounding hardly exceeds."""
MAX_ULPS = 1e4
"""Equations that disagree by more units in the last place contradict each other in earnest."""
MAX_CLAIMED_GAP = 0.05
"""The largest relative gap of an answer that pairs near the central path are looked for."""
SMALL = 300
"""Rows up to which an answer is always tried as it is, too."""
CENTRED_GAP = 2e-8
"""A relative gap below which no other point near the central path is looked for."""
DISTANCES = (1e2, 1e4, 1e6, 1e8, 1e10, 1e12)
"""How far a point is moved along a face, relative to its size."""
GOOD_ENOUGH = 1e-9
"""A relative gap below which no better witness is looked for."""
RAISES = (1e-13, 1e-11, 1e-9)
"""Margins that variables which bound others are moved by, relative to the terms of their rows."""
MAX_UNBOUNDED = 60
"""Variables without a bound up to which multipliers at the edge of curved cones are tried."""


@dataclass(frozen=True, eq=False)
class ConeProof:
    """Both ends of the optimum of a cone program, and the arrays they rest on."""

    lower: ProvenEnd
    upper: ProvenEnd
    x: FloatArray
    y: FloatArray
    no_optimum: NoOptimum = ""
    data_change: str = ""
    estimate: tuple[float, float] | None = None

    @property
    def is_narrow(self) -> bool:
        """Whether both ends are proven and so close that no better ones are looked for."""
        return np.isfinite(self.upper.value) and _is_close(self.lower.value, self.upper.value)


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
    if sufficient_gap():
        direct = _direct_proof(statement, form, x, y, as_witness)
        if direct is not None:
            return direct
    if is_linear(form) and np.isinf(statement.within):
        quick = _bounded_proof(statement, form, x, y, as_witness)
        if quick is not None:
            return quick
        found = _prove(statement, form, x, y, as_witness, thorough=False)
        # Rational arithmetic finds the optimum itself, mostly faster than repairs find a proof.
        if not found.is_narrow:
            found = _exact_proof(form, x, y, found)
        if found.is_narrow or found.no_optimum or found.estimate is not None:
            return found
    if statement.quadratics and not statement.cones.soc:
        quick = _stationary_proof(statement, x, y, as_witness)
        if quick is not None:
            return quick
    merged = None if form.cones.is_polyhedral else merged_columns(statement)
    if merged is not None and form.A.shape == statement.A.shape:
        return _merged_proof(merged, form, x, y, as_witness)
    face = None if form.cones.is_polyhedral else face_of(statement)
    if face is not None and form.A.shape == statement.A.shape:
        found = _face_proof(statement, form, x, y, face)
        if _gap(found) <= _centred_gap() or exhausted():
            return found
        return _better(_as_it_is(statement, form, x, y, as_witness, found), found)
    found = _prove(statement, form, x, y, as_witness, thorough=True)
    if found.is_narrow or form.P is None or statement.quadratics or not form.cones.is_polyhedral:
        return found
    again = polished(form, x, y) if np.isfinite(x).all() and np.isfinite(y).all() else None
    if again is None or exhausted():
        return found
    return _better(found, _prove(statement, form, *again, as_witness, thorough=True))


def _merged_proof(
    merged: Merged, form: ConeForm, x: FloatArray, y: FloatArray, as_witness: AsWitness
) -> ConeProof:
    """The proof about the program without split variables, which has the same optimum."""
    rows, columns = merged.rows, merged.columns
    A = sparse.csc_array(form.A.tocsr()[rows][:, columns])
    smaller = ConeForm(form.c[columns], A, form.b[rows], merged.statement.cones)

    def expanded(w: FloatArray, multipliers: FloatArray) -> tuple[FloatArray, FloatArray]:
        both = np.zeros_like(x)
        both[columns] = w
        all_rows = np.zeros_like(y)
        all_rows[rows] = multipliers
        return both, all_rows

    def witness(w: FloatArray, multipliers: FloatArray) -> DualWitness:
        full = as_witness(*expanded(w, multipliers))
        return replace(full, w=full.w[columns], y=full.y[rows])

    difference = x.copy()
    difference[merged.plus] -= x[merged.minus]
    found = _prove(merged.statement, smaller, difference[columns], y[rows], witness, thorough=True)
    point, multipliers = expanded(found.x, found.y)
    free = point[merged.plus]
    point[merged.plus] = np.maximum(free, 0.0)
    point[merged.minus] = np.maximum(-free, 0.0)
    return replace(found, x=point, y=multipliers)


def _face_proof(
    statement: ConeStatement, form: ConeForm, x: FloatArray, y: FloatArray, face: Face
) -> ConeProof:
    """The ends by the program seen through a face: multipliers inside it, points moved along it."""
    nothing = "no point near the central path was found"
    found = ConeProof(ProvenEnd(-np.inf, nothing), ProvenEnd(np.inf, nothing), x, y)
    smaller = compressed(statement, face.block, face.V)
    if smaller is None or not (np.isfinite(x).all() and np.isfinite(y).all()):
        return found
    if not _is_near_optimal(form, x, y):
        return found
    whole = turned(statement, face.block, face.V, face.w) or statement
    weights = _svec_scale(smaller.cones)
    rows = sparse.diags_array(weights) @ smaller.rows
    inner = ConeForm(smaller.c, sparse.csc_array(rows), weights * smaller.b, smaller.cones)
    part = smat(y[face.rows])[np.ix_(face.kept, face.kept)]
    start = np.concatenate((y[: face.rows.start], svec(part), y[face.rows.stop :]))
    stop = face.rows.start + svec_size(face.kept.size)
    for pair in central_pairs(inner, x, start):
        lower = lower_bound(smaller, DualWitness(pair.x, pair.y / weights))
        Y = face.V @ smat(pair.y[face.rows.start : stop]) @ face.V.T
        multipliers = np.concatenate((pair.y[: face.rows.start], svec(Y), pair.y[stop:]))
        found = _better(found, ConeProof(lower, ProvenEnd(np.inf, nothing), x, multipliers))
        # Far enough along the face, the whole block is inside.
        size = 1.0 + float(np.max(np.abs(pair.x)))
        for share in DISTANCES:
            point = pair.x.copy()
            point[face.column] = face.sign * share * size
            upper = upper_bound(whole, PrimalWitness(point))
            if np.isfinite(upper.value) or exhausted():
                found = _better(found, ConeProof(found.lower, upper, point, found.y))
                break
        if np.isfinite(_gap(found)) or exhausted():
            break
    return found


def _svec_scale(cones: Cones) -> FloatArray:
    """1 for each row, sqrt(2) off the diagonal of semidefinite blocks."""
    plain = np.ones(cones.zero + cones.nonneg + sum(cones.soc))
    scale = np.concatenate((plain, *(svec_weights(order) for order in cones.psd)))
    return np.append(scale, np.ones(cones.size - scale.size))


def _direct_proof(
    statement: ConeStatement,
    form: ConeForm,
    x: FloatArray,
    y: FloatArray,
    as_witness: AsWitness,
) -> ConeProof | None:
    """Both ends from the answer as it is, its bounding variables moved by a margin at most.

    None where that does not prove an interval as narrow as is wanted.
    """
    if statement.quadratics or not (np.isfinite(x).all() and np.isfinite(y).all()):
        return None
    if not _is_near_optimal(form, x, y):
        return None
    multipliers = form.cones.project_dual(y)
    if form.cones.is_polyhedral:
        multipliers = (1 - ROUNDING) * multipliers
    else:
        multipliers = _with_room(form.cones, multipliers, 1e-15)
    multipliers = beside_own_rows(statement, x, multipliers)
    witness = as_witness(x, multipliers)
    lower = lower_bound(statement, witness, solving=False)
    if not np.isfinite(lower.value) and _is_worth_solving(statement, form, x, y):
        lower = lower_bound(statement, witness)
    if not np.isfinite(lower.value):
        return None

    inner = statement.inner_range
    first = np.clip(x, inner.lower, np.maximum(inner.lower, inner.upper))
    for point in _direct_points(statement, form, first):
        upper = upper_bound(statement, PrimalWitness(point))
        found = ConeProof(lower, upper, point, multipliers)
        if _gap(found) <= sufficient_gap():
            return found
        # A point that is feasible and still too far away needs more than a margin.
        if np.isfinite(upper.value) or exhausted():
            return None
    return None


def _direct_points(statement: ConeStatement, form: ConeForm, x: FloatArray) -> Iterator[FloatArray]:
    """The point, then with more and more room in its rows and cones."""
    yield x
    for margin in RAISES:
        moved = raised_point(form, x, margin)
        if moved is None:
            break
        yield moved
    for margin in RAISES:
        moved = weighted_step(form, x, statement.inner_range, margin)
        if moved is None:
            return
        yield moved


def _is_worth_solving(
    statement: ConeStatement, form: ConeForm, x: FloatArray, y: FloatArray
) -> bool:
    """Whether stationarity is likely to be solved from multipliers at the edge of their cones."""
    if form.cones.is_polyhedral:
        return True
    known = statement.stated_range
    unbounded = np.isinf(known.lower) | np.isinf(known.upper)
    return int(np.count_nonzero(unbounded)) <= MAX_UNBOUNDED


def _bounded_proof(
    statement: ConeStatement,
    form: ConeForm,
    x: FloatArray,
    y: FloatArray,
    as_witness: AsWitness,
) -> ConeProof | None:
    """Both ends without an equation to solve: where every variable has the bounds that it needs.

    Multipliers a little shorter leave the gradients of variables at their bounds a sign, and a point
    is lifted into its inequalities. None where that does not prove a narrow interval.
    """
    if form.cones.zero or not (np.isfinite(x).all() and np.isfinite(y).all()):
        return None
    inner = statement.inner_range
    first = np.clip(x, inner.lower, np.maximum(inner.lower, inner.upper))
    shorter = (1 - ROUNDING) * form.cones.project_dual(y)
    lower = lower_bound(statement, as_witness(x, shorter), solving=False)
    if not np.isfinite(lower.value):
        return None
    # A point that is feasible as it is stays where it is.
    point = first
    upper = upper_bound(statement, PrimalWitness(point))
    if not np.isfinite(upper.value):
        point = lifted_point(statement, first)
        upper = upper_bound(statement, PrimalWitness(point))
    found = ConeProof(lower, upper, point, shorter)
    return found if found.is_narrow else None


def _stationary_proof(
    statement: ConeStatement, x: FloatArray, y: FloatArray, as_witness: AsWitness
) -> ConeProof | None:
    """Both ends of a program with quadratic constraints from multipliers made stationary.

    None where that does not prove a narrow interval.
    """
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return None
    witness = stationary_witness(statement, as_witness(x, y))
    if witness is None:
        return None
    lower = lower_bound(statement, witness, solving=False)
    if not np.isfinite(lower.value):
        return None
    inner = statement.inner_range
    point = np.clip(x, inner.lower, np.maximum(inner.lower, inner.upper))
    found = ConeProof(lower, upper_bound(statement, PrimalWitness(point)), point, y)
    return found if _gap(found) <= _centred_gap() else None


def _better(one: ConeProof, other: ConeProof) -> ConeProof:
    """The better end of each of two proofs about the same program."""
    if other.lower.value > one.lower.value:
        one = replace(one, lower=other.lower, y=other.y)
    if other.upper.value < one.upper.value:
        one = replace(one, upper=other.upper, x=other.x)
    # Of two obstacles the later one counts.
    if np.isinf(one.lower.value) and np.isinf(other.lower.value):
        one = replace(one, lower=other.lower)
    if np.isinf(one.upper.value) and np.isinf(other.upper.value):
        one = replace(one, upper=other.upper)
    return one


def _prove(
    statement: ConeStatement,
    form: ConeForm,
    x: FloatArray,
    y: FloatArray,
    as_witness: AsWitness,
    thorough: bool,
) -> ConeProof:
    """The two ends, from proposals that cost next to nothing or from all of them."""
    if thorough and not form.cones.is_polyhedral:
        quick = _inward_proof(statement, form, x, y, as_witness)
        if quick is not None:
            return quick
        found = _central_proof(statement, form, x, y, as_witness)
        if _gap(found) <= _centred_gap() or exhausted():
            return found
        return _better(found, _repaired_proof(statement, form, x, y, as_witness, found))
    upper, point = _best_point(statement, form, x, thorough)
    proposals = _multipliers(form, x, y) if thorough else _cheap_multipliers(form, x, y)
    lower, multipliers = _best_multipliers(statement, y, proposals, as_witness, upper.value)
    if thorough and not np.isfinite(lower.value):
        starts = list(_cheap_multipliers(form, x, y))[:1]
        lower, multipliers = _interior_multipliers(statement, starts, as_witness, upper.value)
    return ConeProof(lower, upper, point, multipliers)


def _inward_proof(
    statement: ConeStatement,
    form: ConeForm,
    x: FloatArray,
    y: FloatArray,
    as_witness: AsWitness,
) -> ConeProof | None:
    """Both ends from the answer as it is, its point moved into the cones.

    None where that does not prove an interval as narrow as pairs near the central path do.
    """
    if form.cones.zero or not (np.isfinite(x).all() and np.isfinite(y).all()):
        return None
    if not _is_near_optimal(form, x, y):
        return None
    point = inward_point(form, x)
    if point is None:
        return None
    upper = upper_bound(statement, PrimalWitness(point))
    if not np.isfinite(upper.value):
        return None
    lower = lower_bound(statement, as_witness(x, y))
    found = ConeProof(lower, upper, point, y)
    return found if _gap(found) <= _centred_gap() else None


def _central_proof(
    statement: ConeStatement,
    form: ConeForm,
    x: FloatArray,
    y: FloatArray,
    as_witness: AsWitness,
) -> ConeProof:
    """The two ends from pairs near the central path, then from the answer as it is."""
    nothing = "no point near the central path was found"
    found = ConeProof(ProvenEnd(-np.inf, nothing), ProvenEnd(np.inf, nothing), x, y)
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return found
    pairs = central_pairs(form, x, y) if _is_near_optimal(form, x, y) else ()
    for pair in pairs:
        upper = upper_bound(statement, PrimalWitness(pair.x))
        lower = lower_bound(statement, as_witness(pair.x, pair.y))
        found = _better(found, ConeProof(lower, upper, pair.x, pair.y))
        # An end without room near the central path may be had from the answer itself.
        if not np.isfinite(_gap(found)) and pair.gap <= GAPS[0]:
            found = _as_it_is(statement, form, x, y, as_witness, found)
        if np.isfinite(_gap(found)) or exhausted():
            break
    # Closed forms may be exact: worth a try where it costs nothing.
    if _gap(found) <= _centred_gap() and form.b.size > SMALL:
        return found
    return _as_it_is(statement, form, x, y, as_witness, found)


def _as_it_is(
    statement: ConeStatement,
    form: ConeForm,
    x: FloatArray,
    y: FloatArray,
    as_witness: AsWitness,
    found: ConeProof,
) -> ConeProof:
    """The ends from the answer itself, where they are missing, or better at no great cost."""
    cheap = not form.cones.zero
    if cheap or (np.isinf(found.upper.value) and found.upper.by != NO_SOLUTION):
        inner = statement.inner_range
        point = np.clip(x, inner.lower, np.maximum(inner.lower, inner.upper))
        upper = upper_bound(statement, PrimalWitness(point))
        if upper.value < found.upper.value or np.isinf(found.upper.value):
            found = replace(found, upper=upper, x=point)
    if cheap or np.isinf(found.lower.value):
        multipliers = form.cones.project_dual(y)
        lower = lower_bound(statement, as_witness(x, multipliers))
        if lower.value > found.lower.value or np.isinf(found.lower.value):
            found = replace(found, lower=lower, y=multipliers)
    # Multipliers of slack cones are 0, which a solver only nears.
    for kept in _without_noise(y)[1:] if np.isinf(found.lower.value) else ():
        multipliers = form.cones.project_dual(kept)
        lower = lower_bound(statement, as_witness(x, multipliers))
        if np.isfinite(lower.value):
            return replace(found, lower=lower, y=multipliers)
    # Those of combinatorial problems may be short numbers, at the edge of their cones.
    if np.isinf(found.lower.value) and form.cones.psd and not exhausted():
        witness = as_witness(x, y)
        for short in short_multipliers(witness.y):
            lower = lower_bound(statement, replace(witness, y=short))
            if np.isfinite(lower.value):
                return replace(found, lower=lower, y=y)
    return found


def _repaired_proof(
    statement: ConeStatement,
    form: ConeForm,
    x: FloatArray,
    y: FloatArray,
    as_witness: AsWitness,
    found: ConeProof,
) -> ConeProof:
    """The ends that are missing from the answer repaired by least changes."""
    if not np.isfinite(found.upper.value) and found.upper.by != NO_SOLUTION:
        upper, point = _best_point(statement, form, x, thorough=True)
        found = replace(found, upper=upper, x=point)
    if not np.isfinite(found.lower.value):
        lower, multipliers = _best_multipliers(
            statement, y, _multipliers(form, x, y), as_witness, found.upper.value
        )
        found = replace(found, lower=lower, y=multipliers)
    return found


def _is_near_optimal(form: ConeForm, x: FloatArray, y: FloatArray) -> bool:
    """Whether an answer is one to be proven, not one to be improved."""
    stated = np.isfinite(form.b)
    value = float(form.c @ x)
    gap = value + float(x @ form.curve(x)) + float(form.b[stated] @ y[stated])
    return abs(gap) <= MAX_CLAIMED_GAP * (1 + abs(value))


def _centred_gap() -> float:
    """The gap below which no other point near the central path is looked for."""
    return max(CENTRED_GAP, sufficient_gap())


def _gap(found: ConeProof) -> float:
    """The gap relative to 1 + |value|; inf where an end is missing."""
    if not (np.isfinite(found.lower.value) and np.isfinite(found.upper.value)):
        return np.inf
    return (found.upper.value - found.lower.value) / (1 + abs(found.upper.value))


def _exact_proof(form: ConeForm, x: FloatArray, y: FloatArray, found: ConeProof) -> ConeProof:
    """The ends of a linear program in rational arithmetic, where they are better."""
    if not (np.isfinite(x).all() and np.isfinite(y).all()) or exhausted():
        return found
    # Rationals finish what a solver has begun; they do not solve in its place.
    if not form.measure(x, y).worst <= NEARLY_SOLVED:
        return found
    outcome = exact_vertex(form, x, y, MAX_PIVOTS)
    program = as_rational(form)
    lower, upper = found.lower, found.upper
    if outcome.y:
        value = floats_around(program.dual_value(outcome.y))[0]
        if value > lower.value:
            lower = ProvenEnd(value, "exact multipliers in rational arithmetic")
            found = replace(found, y=np.array([float(v) for v in outcome.y]))
    if outcome.x:
        value = floats_around(program.value(outcome.x))[1]
        if value < upper.value:
            upper = ProvenEnd(value, "an exactly feasible point in rational arithmetic")
            found = replace(found, x=np.array([float(v) for v in outcome.x]))
    found = replace(found, lower=lower, upper=upper)
    if outcome.status is ExactStatus.UNBOUNDED:
        return replace(found, no_optimum="unbounded")
    if outcome.status is ExactStatus.INFEASIBLE:
        return _nearly_feasible(program, x, y, replace(found, no_optimum="infeasible"))
    return found


def _nearly_feasible(
    program: RationalProgram, x: FloatArray, y: FloatArray, found: ConeProof
) -> ConeProof:
    """An infeasible program whose equations contradict each other by rounding alone.

    With the smallest change of b in dependent rows it may have an optimum, which is then the
    estimate: true of the changed data, not of those given.
    """
    rows = dependence(program)
    if rows is None or rows.consistent:
        return found
    if any(abs(change.ulps) > MAX_ULPS for change in rows.changes):
        return found
    b = list(program.b)
    for change in rows.changes:
        b[change.row] = Fraction(b[change.row]) + change.amount
    outcome = exact_vertex(replace(program, b=tuple(b)), x, y, MAX_PIVOTS)
    if outcome.value is None:
        return found
    worst = max(rows.changes, key=lambda change: abs(change.ulps))
    text = (
        f"{len(rows.changes)} right-hand sides of equations that depend on others, "
        f"by {abs(worst.ulps):.2g} units in the last place at most (equation {worst.row})"
    )
    return replace(
        found,
        no_optimum="",
        data_change=text,
        estimate=floats_around(outcome.value),
    )


# Points


def _best_point(
    statement: ConeStatement, form: ConeForm, x: FloatArray, thorough: bool
) -> tuple[ProvenEnd, FloatArray]:
    """The first point that is proven feasible."""
    end = ProvenEnd(np.inf, "the point is not finite")
    if not np.isfinite(x).all():
        return end, x
    tried: list[FloatArray] = []
    for point in _points(statement, form, x):
        tried.append(point)
        end = upper_bound(statement, PrimalWitness(point))
        if not np.isfinite(end.value) and not thorough:
            moved = on_active_rows(statement, point)
            return upper_bound(statement, PrimalWitness(*moved)), moved[0]
        if not np.isfinite(end.value):
            tight = doubtful_rows(statement, point)
            if tight.size and not exhausted():
                end = upper_bound(statement, PrimalWitness(point, tight))
        if np.isfinite(end.value) or not thorough or exhausted():
            return end, point

    # Polyhedra without an interior: on the way to a relatively interior point.
    interior = _interior(statement, tried[0])
    if interior is None:
        return end, tried[0]
    tight = interior.tight + statement.cones.zero
    for share in INWARD_SHARES:
        for start in (*tried[:2], tried[-1]):
            point = (1 - share) * start + share * interior.x
            end = upper_bound(statement, PrimalWitness(point, tight))
            if np.isfinite(end.value) or exhausted():
                return end, point
    return end, tried[0]


def _interior(statement: ConeStatement, x: FloatArray) -> RelativeInterior | None:
    """A relatively interior point of a polyhedron; None where there are other cones."""
    cones = statement.cones
    if not cones.is_polyhedral or statement.quadratics:
        return None
    rows = statement.rows
    kept = np.flatnonzero(~statement.vacuous[cones.zero :])
    G = rows[cones.zero :][kept]
    gradient = statement.c if statement.P is None else statement.c + statement.P @ x
    found = relative_interior(
        rows[: cones.zero], statement.b[: cones.zero], G, statement.b[cones.zero :][kept], gradient
    )
    if found is None:
        return None
    return RelativeInterior(found.x, kept[found.tight])


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
    y: FloatArray,
    proposals: Iterable[tuple[FloatArray, FloatArray]],
    as_witness: AsWitness,
    upper: float,
) -> tuple[ProvenEnd, FloatArray]:
    """The multipliers with the largest proven bound, until it is near the upper end."""
    best = ProvenEnd(-np.inf, "the multipliers are not finite")
    chosen = np.zeros_like(y)
    for w, multipliers in proposals:
        end = lower_bound(statement, as_witness(w, multipliers))
        if end.value > best.value or not np.isfinite(best.value):
            best = end
            chosen = multipliers
        if _is_close(best.value, upper) or exhausted():
            break
    return best, chosen


def _interior_multipliers(
    statement: ConeStatement,
    starts: list[tuple[FloatArray, FloatArray]],
    as_witness: AsWitness,
    upper: float,
) -> tuple[ProvenEnd, FloatArray]:
    """The first multipliers that prove a bound, on the way to relatively interior ones."""
    interior = _dual_interior(statement, *starts[0]) if starts else None
    if interior is None:
        y = np.zeros(statement.b.size) if not starts else starts[0][1]
        return ProvenEnd(-np.inf, "no multipliers were found that prove a bound"), y
    w, y = starts[0]
    n = statement.c.size
    end = ProvenEnd(-np.inf, "")
    for share in INWARD_SHARES:
        moved = (1 - share) * y + share * interior.x[n:]
        end = lower_bound(statement, as_witness((1 - share) * w + share * interior.x[:n], moved))
        if np.isfinite(end.value) or exhausted():
            return end, moved
    return end, y


def _dual_interior(
    statement: ConeStatement, w: FloatArray, y: FloatArray
) -> RelativeInterior | None:
    """Relatively interior (w, y) with the gradient signs that the bounds of x ask for."""
    cones = statement.cones
    if not cones.is_polyhedral or statement.quadratics:
        return None
    known = statement.implied_range
    n = statement.c.size
    P = sparse.csr_array((n, n)) if statement.P is None else sparse.csr_array(statement.P)
    gradient = sparse.csr_array(sparse.hstack([P, statement.rows.T], format="csr"))
    below = np.isfinite(known.lower)
    above = np.isfinite(known.upper)
    free = np.flatnonzero(~below & ~above)
    rising = np.flatnonzero(below & ~above)
    falling = np.flatnonzero(above & ~below)
    inequality = np.arange(cones.zero, statement.b.size)
    signs = sparse.eye_array(n + statement.b.size, format="csr")[n + inequality]
    c = statement.c
    return relative_interior(
        gradient[free],
        -c[free],
        sparse.csr_array(sparse.vstack([-gradient[rising], gradient[falling], -signs])),
        np.concatenate((c[rising], -c[falling], np.zeros(inequality.size))),
        np.append(np.asarray(P @ w), np.where(np.isinf(statement.b), 1e15, statement.b)),
    )


def _is_close(lower: float, upper: float) -> bool:
    if not np.isfinite(lower):
        return False
    enough = max(GOOD_ENOUGH, sufficient_gap())
    return not np.isfinite(upper) or upper - lower <= enough * (1 + abs(upper))


def _cheap_multipliers(
    form: ConeForm, x: FloatArray, y: FloatArray
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """The multipliers as they are, in K*, and a little shorter."""
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return
    cones = form.cones
    inside = cones.project_dual(y)
    if not cones.is_polyhedral:
        yield x, _with_room(cones, inside, 1e-15)
        yield x, _with_room(cones, inside, 1e-13)
        return
    yield x, inside
    for share in SHRINKING:
        yield x, (1 - share) * inside


def _multipliers(
    form: ConeForm, x: FloatArray, y: FloatArray
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Multipliers in K* with ever more room, each with the point w that goes with it."""
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return
    yield from _cheap_multipliers(form, x, y)
    cones = form.cones
    curved = not cones.is_polyhedral
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
    proposals = [form.cones.project_dual(kept) for kept in _without_noise(y)]
    for inside in proposals:
        for candidate in (inside, _with_room(form.cones, inside, 1e-14)):
            if is_infeasible(statement, as_witness(zero, candidate)):
                return True
    is_small = statement.A.nnz <= SMALL_PROGRAM
    promising = is_small or not _is_hopeless(statement, y)
    if is_linear(form) and not exhausted() and promising and exact_farkas(form, y) is not None:
        return True
    for inside in proposals:
        for candidate in _repaired_farkas(statement, finite, inside):
            if is_infeasible(statement, as_witness(zero, candidate)):
                return True
    return False


def _without_noise(v: FloatArray) -> list[FloatArray]:
    """The vector as it is, and without entries that may be noise, where that makes a difference."""
    size = np.abs(v)
    largest = float(np.max(size, initial=0.0))
    found = [v]
    for level in NOISE_LEVELS:
        kept = np.where(size <= level * largest, 0.0, v)
        if not np.array_equal(kept, found[-1]):
            found.append(kept)
    return found


def _is_hopeless(statement: ConeStatement, y: FloatArray) -> bool:
    """Whether the multipliers are so far from a contradiction that none is near.

    A'y must be 0 in columns without bounds; errors of a hundredth of its terms are no rounding.
    """
    # Quadratic constraints are rows of the form, not of the statement: A'y is not all there is.
    if y.shape != statement.b.shape:
        return False
    known = statement.stated_range
    g, terms = statement.column_products.of(y)
    off = ((g > 0) & np.isinf(known.lower)) | ((g < 0) & np.isinf(known.upper))
    return bool(np.any(np.abs(g)[off] > 0.01 * terms[off]))


def _repaired_farkas(
    statement: ConeStatement, form: ConeForm, y: FloatArray
) -> Iterator[FloatArray]:
    if exhausted() or _is_hopeless(statement, y):
        return
    repaired = farkas_multipliers(form, y)
    yield repaired
    for share in (1e-14, 1e-12, 1e-9):
        yield _with_room(form.cones, repaired, share)


def proven_ray(statement: ConeStatement, form: ConeForm, d: FloatArray) -> bool:
    """Return whether a direction near d is one along which the objective falls without bound."""
    if d.shape != statement.c.shape or not np.isfinite(d).all() or not d.any():
        return False
    # Nothing falls without bound where x is bounded.
    if np.isfinite(min(statement.within, statement.radius)):
        return False
    unit = d / float(np.max(np.abs(d)))
    if not statement.c @ unit < 0:
        return False
    for kept in _without_noise(unit):
        # Few digits first: rays of programs with small integers are short dyadic numbers.
        for digits in (6, 20, 40, None):
            rounded = kept if digits is None else np.round(kept * 2.0**digits) / 2.0**digits
            if rounded.any() and is_ray_nearby(statement, rounded):
                return True
    if not is_linear(form) or exhausted() or not _is_nearly_ray(statement, unit):
        return False
    return exact_ray(form, d) is not None


def _is_nearly_ray(statement: ConeStatement, d: FloatArray) -> bool:
    """Whether a direction keeps the rows of a large program up to a hundredth of their terms."""
    if statement.A.nnz <= SMALL_PROGRAM:
        return True
    image, terms = statement.row_products.of(d)
    violation = np.where(np.arange(image.size) < statement.cones.zero, np.abs(image), image)
    return bool(np.all((violation <= 0.01 * terms) | statement.vacuous))
