"""Both ends of a worst case, as a certificate that the independent checker has accepted.

A solver proposes floats; `multiplier_side` and `example_side` make fractions of them, and
`klopt.checker` decides about these in exact arithmetic. An end that it does not accept is none.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.certificates.encoding import encode_lower_triangle, encode_number, encode_vector
from klopt.checker import klopt_check
from klopt.model.cones import svec_entries
from klopt.proof.rational import floats_around
from klopt.proof.statement import ConeStatement
from klopt.proof.time_budget import budget
from klopt.witness.exact_claims import factor_below
from klopt.witness.precise_barrier import is_affordable, precise_pairs
from klopt.worst_cases.example_side import ExampleSide
from klopt.worst_cases.multiplier_face import multiplier_face
from klopt.worst_cases.multiplier_side import NEAR, SHARES, MultiplierSide, matrix_of
from klopt.worst_cases.program import PerformanceProgram

__all__ = ["Ends", "proven_ends"]

Vector = list[Fraction]
BoolArray = npt.NDArray[np.bool_]
SHARP = Fraction(1, 10**10)
"""The width, relative to the upper end, below which no sharper ends are looked for."""
GOOD_LOSS = 3e-7
"""What an end may lose to be inside, relative to it, before other vectors are tried."""
MAX_PRECISE_ORDER = 17
MAX_PRECISE_CONDITIONS = 110
"""The size up to which vectors of many digits are affordable."""
PRECISE_GAP = 1e-13
"""The gap that vectors of many digits are to have."""


@dataclass
class Ends:
    """What the checker has accepted: an end is None where there is none."""

    program: PerformanceProgram
    upper: Fraction | None = None
    lower: Fraction | None = None
    y: Vector = field(default_factory=list)
    x: Vector = field(default_factory=list)
    y_factors: dict[str, Any] = field(default_factory=dict)
    x_factors: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def is_sharp(self) -> bool:
        """Whether there is nothing to gain from more digits."""
        if self.upper is None or self.lower is None:
            return False
        return self.upper - self.lower <= SHARP * max(abs(self.upper), SHARP)

    @cached_property
    def stated(self) -> dict[str, Any]:
        """The problem of the certificate: minimise -(c'F + <C, G>)."""
        program = self.program
        rows, b = program.exact_rows
        entries = [(i, place, v) for i, row in enumerate(rows) for place, v in row.items()]
        cones = [["zero", program.cones.zero], ["nonnegative", program.cones.nonneg]]
        cones += [["semidefinite", order] for order in program.cones.psd]
        return {
            "rule": "cone program",
            "variables": program.size,
            "scale": encode_number(Fraction(-1)),
            "shift": encode_number(program.objective.constant),
            "c": encode_vector([-value for value in program.exact_cost]),
            "A": {
                "row": _indices([i for i, _, _ in entries]),
                "column": _indices([place for _, place, _ in entries]),
                "value": encode_vector([v for _, _, v in entries]),
            },
            "b": encode_vector(b),
            "cones": [[kind, size] for kind, size in cones if size],
        }

    def certificate(self, tol: float) -> str:
        """Return the text of the certificate of both ends, or of the one there is."""
        assert self.lower is not None
        verdict = "FEASIBLE"
        claim: dict[str, Any] = {"lower": encode_number(floats_around(self.lower)[0])}
        witness: dict[str, Any] = {"x": encode_vector(self.x)}
        if self.upper is not None:
            high = floats_around(self.upper)[1]
            claim["upper"] = encode_number(high)
            witness["y"] = encode_vector(self.y)
            if Fraction(high) - Fraction(floats_around(self.lower)[0]) <= Fraction(tol) * (
                1 + abs(Fraction(high))
            ):
                verdict = "OPTIMAL"
                claim["tol"] = encode_number(tol)
        claim["verdict"] = verdict
        witness["factors"] = self.y_factors | self.x_factors
        problem = self.stated
        parts = {
            "format": klopt_check.FORMAT,
            "problem": problem,
            "digest": klopt_check.digest(problem),
            "claim": claim,
            "witness": witness,
        }
        text = json.dumps(parts, indent=1)
        klopt_check.check(text)
        return text


def proven_ends(program: PerformanceProgram, backend: str, deadline: float) -> Ends:
    """Return the ends that the checker accepts.

    Parameters
    ----------
    program
        The worst case.
    backend
        The solver that proposes.
    deadline
        When to stop, on the clock of `time.perf_counter`.
    """
    ends = Ends(program)
    checked = klopt_check.ConeProgram(ends.stated)
    side = _prove_upper(ends, checked, backend, deadline)
    _prove_lower(ends, checked, backend, deadline)
    if not ends.is_sharp:
        _sharpen(ends, checked, side, deadline)
    return ends


def _sharpen(
    ends: Ends, checked: klopt_check.ConeProgram, side: MultiplierSide, deadline: float
) -> None:
    """Try vectors of many digits, where the program is small enough for that."""
    program = ends.program
    A, b = program.rows
    statement = ConeStatement(-program.cost, sparse.csc_array(A), b, program.cones, plain=True)
    with budget(deadline):
        small = (
            program.order <= MAX_PRECISE_ORDER
            and len(program.conditions) <= MAX_PRECISE_CONDITIONS
            and len(program.matrices) <= 2
        )
        if not (small or is_affordable(statement)):
            return
        for pair in precise_pairs(statement, PRECISE_GAP):
            examples = ExampleSide(program)
            x = [sum(map(Fraction, parts), Fraction(0)) for parts in pair.x.parts.T.tolist()]
            _try_example(ends, checked, examples.exact_near(x, pair.rounded_x))
            if not side.kernel:
                chosen = side.used.tolist()
                parts = pair.y.parts * np.where(_off_diagonal(program), 2.0, 1.0)
                y = [sum(map(Fraction, parts[:, r].tolist()), Fraction(0)) for r in chosen]
                _try_multipliers(ends, checked, side, side.exact_near(y, parts[0, chosen]))
            if ends.is_sharp:
                return


def _off_diagonal(program: PerformanceProgram) -> BoolArray:
    """Which rows are entries beside the diagonal of a matrix."""
    found = [np.zeros(len(program.conditions), bool)]
    for order in program.cones.psd:
        i, j = svec_entries(order)
        found.append(i != j)
    return np.concatenate(found)


def _indices(places: list[int]) -> str:
    """32-bit integers as the format has them."""
    return base64.b64encode(np.array(places, dtype="<i4").tobytes()).decode()


def _left(deadline: float) -> float:
    return deadline - time.perf_counter()


def _prove_upper(
    ends: Ends, checked: klopt_check.ConeProgram, backend: str, deadline: float
) -> MultiplierSide:
    program = ends.program
    side, margin = multiplier_face(program, backend, deadline)
    best = side.best(backend, _left(deadline))
    if best is None:
        ends.notes.append("the solver found no multipliers")
        return side
    if not margin > 0:
        ends.notes.append("no multipliers inside their cones were found")
    A, b, cones = side.cone_rows()

    def is_inside(y: FloatArray) -> bool:
        slack = b - A @ y
        return _is_inside(slack, cones.nonneg, cones.psd)

    def attempt(y: FloatArray) -> bool:
        return _try_multipliers(ends, checked, side, side.exact(y))

    def inner(near: float) -> FloatArray | None:
        return side.inner(best.x, near, backend, _left(deadline))

    _mixed(best.x, inner, is_inside, attempt, deadline)
    return side


def _try_multipliers(
    ends: Ends, checked: klopt_check.ConeProgram, side: MultiplierSide, y: Vector | None
) -> bool:
    """Whether the checker accepts multipliers; those that are better are kept."""
    if y is None:
        ends.notes.append("the equations of the multipliers have no exact solution nearby")
        return False
    whole = side.whole(y)
    factors = _factors(ends.program, "multipliers", whole, side, dual=True)
    witness = {"y": encode_vector(whole), "factors": factors}
    try:
        value = checked.bound_by(witness, objective=True)
    except klopt_check.Rejected as reason:
        ends.notes.append(f"multipliers: {reason}")
        return False
    bound = checked.scale * value + checked.shift
    if ends.upper is None or bound < ends.upper:
        ends.upper = bound
        ends.y = whole
        ends.y_factors = factors
    return True


def _try_example(ends: Ends, checked: klopt_check.ConeProgram, x: Vector | None) -> bool:
    """Whether the checker accepts an example; one that is better is kept."""
    if x is None:
        ends.notes.append("the equations of the example have no exact solution nearby")
        return False
    factors = _factors(ends.program, "slack", ends.program.slack(x), None, dual=False)
    witness = {"x": encode_vector(x), "factors": factors}
    try:
        value = checked.value_at(witness)
    except klopt_check.Rejected as reason:
        ends.notes.append(f"example: {reason}")
        return False
    attained = checked.scale * value + checked.shift
    if ends.lower is None or attained > ends.lower:
        ends.lower = attained
        ends.x = x
        ends.x_factors = factors
    return True


def _prove_lower(
    ends: Ends, checked: klopt_check.ConeProgram, backend: str, deadline: float
) -> None:
    program = ends.program
    side = ExampleSide(program)
    best = side.best(backend, _left(deadline))
    if best is None:
        ends.notes.append("the solver found no example")
        return
    A, b = program.rows
    zero = program.cones.zero

    def is_inside(x: FloatArray) -> bool:
        slack = (b - A @ x)[zero:]
        return _is_inside(slack, program.cones.nonneg, program.cones.psd)

    def attempt(x: FloatArray) -> bool:
        return _try_example(ends, checked, side.exact(x))

    def inner(near: float) -> FloatArray | None:
        return side.inner(best.x, near, backend, _left(deadline))

    _mixed(best.x, inner, is_inside, attempt, deadline)


def _mixed(
    best: FloatArray,
    inner: Callable[[float], FloatArray | None],
    is_inside: Callable[[FloatArray], bool],
    attempt: Callable[[FloatArray], bool],
    deadline: float,
) -> None:
    """Try vectors further and further inside, until an attempt succeeds."""
    if is_inside(best) and attempt(best):
        return
    for near in NEAR:
        if _left(deadline) < 0:
            return
        other = inner(near)
        if other is None:
            continue
        for share in SHARES:
            mixed = (1 - share) * best + share * other
            if is_inside(mixed) and attempt(mixed):
                # A small share of a vector further inside may lose less.
                if near * share <= GOOD_LOSS:
                    return
                break


def _is_inside(slack: FloatArray, nonneg: int, orders: tuple[int, ...]) -> bool:
    """Whether floats say that a slack lies in its cones by more than their rounding."""
    if not (slack[:nonneg] >= 0).all():
        return False
    at = nonneg
    for order in orders:
        size = order * (order + 1) // 2
        M = matrix_of(slack[at : at + size], order)
        values = np.linalg.eigvalsh(M)
        if values[0] < 1e-15 * order * max(values[-1], 1e-300):
            return False
        at += size
    return True


def _factors(
    program: PerformanceProgram,
    name: str,
    rows: Vector,
    side: MultiplierSide | None,
    dual: bool,
) -> dict[str, Any]:
    """Factors of the matrices of a slack or of multipliers, where they have any."""
    found: dict[str, Any] = {}
    lines = len(program.conditions)
    # Cones without rows are not written.
    index = int(program.cones.zero > 0) + int(program.cones.nonneg > 0)
    at = lines
    for number, order in enumerate(program.cones.psd):
        size = order * (order + 1) // 2
        M = matrix_of(np.array([float(value) for value in rows[at : at + size]]), order)
        if dual:
            M = (M + np.diag(np.diag(M))) / 2
        kept = np.flatnonzero(np.diag(M))
        if side is not None and number == 0 and any(sum(map(bool, v)) > 1 for v in side.kernel):
            # A kernel that is no matter of single rows: elimination decides.
            factor = None
        else:
            factor = factor_below(M[np.ix_(kept, kept)])
        if factor is not None:
            wide = np.zeros((order, order))
            wide[np.ix_(kept, kept)] = factor
            found[f"{name} {index + number}"] = encode_lower_triangle(wide)
        at += size
    return found
