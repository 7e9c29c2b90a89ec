"""Both ends of a worst case, as a certificate that the independent checker has accepted.

A solver proposes floats; `multiplier_side` and `example_side` make fractions of them, and
`klopt.checker` decides about these in exact arithmetic. An end that it does not accept is none.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from klopt.arrays import FloatArray
from klopt.certificates.cone_certificate import ExactProgram, factor_below
from klopt.certificates.encoding import encode_lower_triangle, encode_number, encode_vector
from klopt.checker import klopt_check
from klopt.proof.rational import floats_around
from klopt.worst_cases.example_side import ExampleSide
from klopt.worst_cases.multiplier_face import multiplier_face
from klopt.worst_cases.multiplier_side import NEAR, SHARES, MultiplierSide, matrix_of
from klopt.worst_cases.program import PerformanceProgram

__all__ = ["Ends", "proven_ends"]

Vector = list[Fraction]
GOOD_SHARE = 1e-9
"""An end whose distance from the solver's value is below this, relative to it, is not improved."""


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
    def stated(self) -> dict[str, Any]:
        """The problem of the certificate."""
        statement: Any = self.program.cone_program
        exact = ExactProgram.of(statement.cone_statement)
        return exact.encoded(Fraction(-1), Fraction(self.program.objective.constant))

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
    _prove_upper(ends, checked, backend, deadline)
    _prove_lower(ends, checked, backend, deadline)
    return ends


def _left(deadline: float) -> float:
    return deadline - time.perf_counter()


def _prove_upper(
    ends: Ends, checked: klopt_check.ConeProgram, backend: str, deadline: float
) -> None:
    program = ends.program
    side, margin = multiplier_face(program, backend, deadline)
    best = side.best(backend, _left(deadline))
    if best is None:
        ends.notes.append("the solver found no multipliers")
        return
    if not margin > 0:
        ends.notes.append("no multipliers inside their cones were found")
    A, b, cones = side.cone_rows()

    def is_inside(y: FloatArray) -> bool:
        slack = b - A @ y
        return _is_inside(slack, cones.nonneg, cones.psd)

    def attempt(y: FloatArray) -> bool:
        exact = side.exact(y)
        if exact is None:
            ends.notes.append("the equations of the multipliers have no exact solution nearby")
            return False
        whole = side.whole(exact)
        factors = _factors(program, "multipliers", whole, side, dual=True)
        witness = {"y": encode_vector(whole), "factors": factors}
        try:
            value = checked.bound_by(witness, objective=True)
        except klopt_check.Rejected as reason:
            ends.notes.append(f"multipliers: {reason}")
            return False
        ends.upper = checked.scale * value + checked.shift
        ends.y = whole
        ends.y_factors = factors
        return True

    def inner(near: float) -> FloatArray | None:
        return side.inner(best.x, near, backend, _left(deadline))

    _mixed(best.x, inner, is_inside, attempt, deadline)


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
        exact = side.exact(x)
        if exact is None:
            ends.notes.append("the equations of the example have no exact solution nearby")
            return False
        slack = _slack(program, exact)
        factors = _factors(program, "slack", slack, None, dual=False)
        witness = {"x": encode_vector(exact), "factors": factors}
        try:
            value = checked.value_at(witness)
        except klopt_check.Rejected as reason:
            ends.notes.append(f"example: {reason}")
            return False
        ends.lower = checked.scale * value + checked.shift
        ends.x = exact
        ends.x_factors = factors
        return True

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
    """Try the best vector with a growing share of inner ones, until an attempt succeeds."""
    for near in NEAR:
        if _left(deadline) < 0:
            return
        other = inner(near)
        if other is None:
            continue
        for share in SHARES:
            mixed = (1 - share) * best + share * other
            if is_inside(mixed) and attempt(mixed):
                return


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


def _slack(program: PerformanceProgram, x: Vector) -> Vector:
    from klopt.certificates.exact_witness import exact_product

    A, b = program.rows
    return [
        Fraction(right) - value
        for right, value in zip(b.tolist(), exact_product(A, x), strict=True)
    ]


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
