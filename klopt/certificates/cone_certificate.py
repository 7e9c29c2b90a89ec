"""The certificate of a cone program: the statement, what is claimed, and exact vectors that prove it.

The vectors come from the floats that klopt proves its own ends from. Equations are made to hold
exactly (`exact_witness`), signs follow from bounds of variables, and matrices get factors that show
them positive semidefinite. Nothing here is trusted: the checker decides about what is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from klopt.arrays import EPS, FloatArray, SparseMatrix
from klopt.certificates.encoding import (
    encode_entries,
    encode_lower_triangle,
    encode_number,
    encode_vector,
)
from klopt.certificates.exact_witness import (
    Column,
    exact_columns,
    exact_product,
    fractions_of,
    solved_exactly,
    transposed_product,
)
from klopt.errors import NotCertified
from klopt.model.cones import order_of, svec_entries
from klopt.proof.cone_witnesses import ConeClaim
from klopt.proof.rational import RationalProgram, rational_rows
from klopt.proof.statement import ConeStatement
from klopt.witness.exact_claims import SHIFTS, factor_below
from klopt.witness.exact_simplex import ExactOutcome, ExactStatus, exact_vertex

__all__ = ["ExactProgram", "no_end", "no_point", "two_ends", "widened_factor"]

MAX_ELIMINATION = 60
"""The order up to which a matrix may be left without a factor."""
ROUNDS = 6
"""How often columns whose gradient has the wrong sign join the equations."""

Vector = list[Fraction]


@dataclass(frozen=True, eq=False)
class ExactProgram:
    """A cone program without vacuous rows, as its certificate states it."""

    statement: ConeStatement
    rows: SparseMatrix
    b: FloatArray
    blocks: tuple[tuple[str, Any, slice], ...]
    """The kind of each cone, its size (or weights) as the format has it, and its rows."""
    kept: Any
    """Which rows of the statement are kept."""

    @classmethod
    def of(cls, statement: ConeStatement) -> ExactProgram:
        """Return the program of a statement; rows with b = inf say nothing and are left out."""
        if np.isfinite(statement.within):
            raise NotCertified("a declared bound of x is not written to certificates yet")
        kept = ~statement.vacuous
        cones = statement.cones
        blocks: list[tuple[str, Any, slice]] = []
        linear = int(np.count_nonzero(kept[cones.zero : cones.zero + cones.nonneg]))
        start = 0
        for kind, size in (("zero", cones.zero), ("nonnegative", linear)):
            if size:
                blocks.append((kind, size, slice(start, start + size)))
                start += size
        for kind, block in cones.blocks():
            if kind in ("zero", "nonneg"):
                continue
            if kind == "power":
                for weights in cones.power:
                    length = len(weights) + 1
                    blocks.append(("power", weights, slice(start, start + length)))
                    start += length
                continue
            length = block.stop - block.start
            if kind == "exp":
                blocks += [
                    ("exponential", 3, slice(at, at + 3)) for at in range(start, start + length, 3)
                ]
            elif kind == "psd":
                name = "semidefinite" if statement.plain else "svec"
                blocks.append((name, order_of(length), slice(start, start + length)))
            elif kind == "soc":
                blocks.append(("second order", length, slice(start, start + length)))
            else:
                raise NotCertified(f"cones of kind {kind!r} are not written to certificates yet")
            start += length
        rows = sparse.csc_array(statement.rows[np.flatnonzero(kept)])
        return cls(statement, rows, statement.b[kept], tuple(blocks), kept)

    def encoded(self, scale: Fraction, shift: Fraction) -> dict[str, Any]:
        """Return the problem of a certificate."""
        statement = self.statement
        data: dict[str, Any] = {
            "rule": "cone program",
            "variables": int(statement.c.size),
            "scale": encode_number(scale),
            "shift": encode_number(shift),
            "c": encode_vector(statement.c),
            "A": encode_entries(self.rows),
            "b": encode_vector(self.b),
            "cones": [[kind, _encoded_size(kind, size)] for kind, size, _ in self.blocks],
        }
        if statement.P is not None:
            data["P"] = _encoded_symmetric(statement.P)
        if statement.quadratics:
            data["quadratics"] = [
                {
                    "P": _encoded_symmetric(row.P),
                    "q": encode_vector(row.q),
                    "r": encode_number(row.r),
                }
                for row in statement.quadratics
            ]
        return data

    def inequalities(self) -> slice:
        """The nonnegative rows."""
        return next((rows for kind, _, rows in self.blocks if kind == "nonnegative"), slice(0, 0))

    def equations(self) -> slice:
        """The zero rows."""
        return next((rows for kind, _, rows in self.blocks if kind == "zero"), slice(0, 0))


@dataclass
class Factors:
    """Factors of the matrices that must be positive semidefinite, by name."""

    by_name: dict[str, Any] = field(default_factory=dict)

    def add(self, name: str, matrix: FloatArray) -> None:
        """Take a factor of a matrix, if there is one that leaves a remainder as is asked for."""
        factor = factor_below(matrix)
        if factor is not None:
            self.by_name[name] = encode_lower_triangle(factor)


# A point


def exact_point(program: ExactProgram, x: FloatArray) -> Vector:
    """Return a point near x that satisfies the equations exactly, and nearly tight rows too."""
    point, room = _between_bounds(program, x)
    rows = program.rows.tocsr()
    equations = np.arange(program.equations().start, program.equations().stop)
    inequalities = np.arange(program.inequalities().start, program.inequalities().stop)
    tight = equations
    for _ in range(ROUNDS):
        left = _residual(rows[tight], program.b[tight], point)
        if any(left):
            columns = exact_columns(sparse.csc_array(rows[tight]))
            moved = solved_exactly(columns, dict(enumerate(left)), room)
            if moved is None:
                raise NotCertified("the equations could not be solved exactly near the point")
            point = [a + b for a, b in zip(point, moved, strict=True)]
        slack = _residual(rows[inequalities], program.b[inequalities], point)
        violated = inequalities[[value < 0 for value in slack]]
        if not violated.size:
            return point
        tight = np.union1d(tight, violated)
    raise NotCertified("inequalities stay violated near the point")


def _between_bounds(program: ExactProgram, x: FloatArray) -> tuple[Vector, FloatArray]:
    """The point between the bounds that rows with one entry state, and how far it may move.

    A variable next to a bound is put on it, exactly: a bound such as 1/3 is no float.
    """
    point = fractions_of(x)
    room = 1.0 + np.abs(x)
    for rows, is_upper in zip(_bound_rows(program), (True, False), strict=True):
        for j, (i, entry) in rows.items():
            bound = Fraction(float(program.b[i])) / entry
            distance = bound - point[j] if is_upper else point[j] - bound
            if distance <= 4 * EPS * abs(bound):
                point[j] = bound
                room[j] = 0.0
            room[j] = min(room[j], float(max(distance, Fraction(0))))
    return point, room


def _residual(rows: Any, b: FloatArray, point: Sequence[Fraction]) -> Vector:
    product = exact_product(rows, point)
    return [Fraction(float(side)) - value for side, value in zip(b, product, strict=True)]


# Multipliers


def exact_multipliers(
    program: ExactProgram, claim: ConeClaim, nudge: float = 0.0, with_objective: bool = True
) -> tuple[Vector, Vector, Vector]:
    """Return w, y and lam with Hw + c + A'y + sum lam_i q_i = 0 exactly.

    Parameters
    ----------
    program
        The program.
    claim
        The point and the multipliers in floats.
    nudge
        The share of their size by which multipliers are first moved into curved cones.
    with_objective
        Whether P and c count; a contradiction has neither.
    """
    statement = program.statement
    y = (statement.weight * claim.y)[program.kept]
    inequality = program.inequalities()
    y[inequality] = np.maximum(y[inequality], 0.0)
    _move_inside(program, y, nudge)
    lam = fractions_of(np.maximum(claim.quadratic, 0.0))
    H = _curvature(statement, lam, with_objective)
    w = fractions_of(claim.x)
    multipliers = fractions_of(y)
    q = [fractions_of(row.q) for row in statement.quadratics]
    cost = fractions_of(statement.c if with_objective else np.zeros_like(statement.c))
    for factor, row in zip(lam, q, strict=True):
        cost = [a + factor * b for a, b in zip(cost, row, strict=True)]

    up, down = _bound_rows(program)
    free = np.array([j for j in range(len(cost)) if not (j in up and j in down)], dtype=np.intp)
    # A variable with one bound needs a gradient of one sign only.
    equations = np.array([j for j in free if not (j in up or j in down)], dtype=np.intp)
    system: list[Column] = []
    room = np.zeros(0)
    for _ in range(ROUNDS):
        gradient = _gradient(program, H, cost, w, multipliers)
        if any(gradient[j] for j in equations):
            if not system:
                system, room = _stationarity(program, H, y)
            moved = solved_exactly(system, {j: -gradient[j] for j in equations.tolist()}, room)
            if moved is None:
                raise NotCertified("stationarity could not be solved exactly near the multipliers")
            size = len(multipliers)
            multipliers = [a + b for a, b in zip(multipliers, moved[:size], strict=True)]
            if len(moved) > size:
                w = [a + b for a, b in zip(w, moved[size:], strict=True)]
            gradient = _gradient(program, H, cost, w, multipliers)
        wrong = [
            j
            for j in free.tolist()
            if (gradient[j] > 0 and j not in down and j not in equations)
            or (gradient[j] < 0 and j not in up and j not in equations)
        ]
        if not wrong:
            break
        equations = np.union1d(equations, wrong)
    # What is left goes to the multipliers of bounds: a x <= b with a > 0 takes a negative gradient.
    for j, value in enumerate(gradient):
        if value:
            rows = up if value < 0 else down
            if j not in rows:
                raise NotCertified(f"the gradient of variable {j} has the wrong sign")
            i, entry = rows[j]
            multipliers[i] -= value / entry
    return w, multipliers, lam


def _move_inside(program: ExactProgram, y: FloatArray, share: float) -> None:
    """Move multipliers into curved cones by a share of their size."""
    for kind, size, rows in program.blocks:
        if kind == "second order":
            y[rows.start] = max(y[rows.start], np.linalg.norm(y[rows][1:])) * (1 + share)
        elif kind in ("semidefinite", "svec"):
            i, j = svec_entries(size)
            diagonal = rows.start + np.flatnonzero(i == j)
            y[diagonal] += share * np.abs(y[diagonal]).max(initial=0.0)
        elif kind == "power":
            y[rows.start : rows.stop - 1] *= 1 + share
        elif kind == "exponential":
            y[rows.stop - 1] *= 1 + share


def _curvature(statement: ConeStatement, lam: Vector, with_objective: bool) -> Any:
    """The terms of H, each a factor and a matrix of floats; None where there are none."""
    terms = []
    if with_objective and statement.P is not None:
        terms.append((Fraction(1), statement.P))
    terms += [
        (factor, row.P) for factor, row in zip(lam, statement.quadratics, strict=True) if factor
    ]
    return terms or None


def _gradient(program: ExactProgram, H: Any, cost: Vector, w: Vector, y: Vector) -> Vector:
    total = [a + b for a, b in zip(cost, transposed_product(program.rows, y), strict=True)]
    for factor, matrix in H or ():
        product = exact_product(matrix, w)
        total = [a + factor * b for a, b in zip(total, product, strict=True)]
    return total


def _bound_rows(
    program: ExactProgram,
) -> tuple[dict[int, tuple[int, Fraction]], dict[int, tuple[int, Fraction]]]:
    """The rows a x_j <= b with a > 0 and with a < 0, by variable; the tightest of each."""
    rows = program.rows.tocsr()
    up: dict[int, tuple[int, Fraction]] = {}
    down: dict[int, tuple[int, Fraction]] = {}
    best: dict[tuple[int, bool], Fraction] = {}
    for i in range(program.inequalities().start, program.inequalities().stop):
        at = rows.indptr[i]
        if rows.indptr[i + 1] - at != 1 or not rows.data[at]:
            continue
        j = int(rows.indices[at])
        entry = Fraction(float(rows.data[at]))
        bound = Fraction(float(program.b[i])) / entry
        key = (j, entry > 0)
        if key in best and (bound >= best[key] if entry > 0 else bound <= best[key]):
            continue
        best[key] = bound
        (up if entry > 0 else down)[j] = (i, entry)
    return up, down


def _stationarity(program: ExactProgram, H: Any, y: FloatArray) -> tuple[list[Column], FloatArray]:
    """The entries of (y, w) in the gradient, and how far each unknown may move."""
    room = np.zeros(y.size)
    for kind, size, rows in program.blocks:
        part = y[rows]
        if kind == "zero":
            room[rows] = 1.0 + np.abs(part)
        elif kind == "nonnegative":
            room[rows] = part
        elif kind in ("semidefinite", "svec"):
            room[rows] = _room_of_matrix(size, part)
        else:
            room[rows] = 0.1 * np.abs(part[0])
    columns = exact_columns(sparse.csc_array(program.rows.T))
    if H is None:
        return columns, room
    curvature: list[dict[int, Fraction]] = [{} for _ in range(program.statement.c.size)]
    for factor, matrix in H:
        for j, column in enumerate(exact_columns(matrix)):
            for i, value in column:
                curvature[j][i] = curvature[j].get(i, Fraction(0)) + factor * value
    columns += [list(column.items()) for column in curvature]
    # A variable with curvature of its own may move as far as it takes.
    curved = np.array([1.0 if column.get(j) else 0.0 for j, column in enumerate(curvature)])
    return columns, np.concatenate((room, curved))


def _room_of_matrix(order: int, part: FloatArray) -> FloatArray:
    """The smaller one of the two diagonal entries of each entry."""
    rows, columns = svec_entries(order)
    diagonal = np.zeros(order)
    diagonal[rows[rows == columns]] = part[rows == columns]
    return np.maximum(np.minimum(diagonal[rows], diagonal[columns]), 0.0)


# Certificates


def two_ends(claim: ConeClaim, tol: float, nudge: float = 0.0) -> dict[str, Any]:
    """Return the parts of a certificate of both ends of the optimum."""
    program = ExactProgram.of(claim.statement)
    exact = _vertex(program, claim)
    w: Vector
    lam: Vector = []
    if exact is not None and exact.status is ExactStatus.OPTIMAL:
        point, w, y = list(exact.x), list(exact.x), list(exact.y)
    else:
        point = exact_point(program, claim.x)
        w, y, lam = exact_multipliers(program, claim, nudge)
    factors = Factors()
    _cone_factors(program, "slack", _residual(program.rows, program.b, point), False, factors)
    _cone_factors(program, "multipliers", y, True, factors)
    witness: dict[str, Any] = {"x": encode_vector(point), "y": encode_vector(y)}
    phi = _curvature_factor(program, lam, factors)
    if program.statement.curvatures:
        witness["w"] = encode_vector(w)
    if lam:
        witness["lam"] = encode_vector(lam)
    if phi:
        witness["phi"] = encode_number(phi)
    witness["factors"] = factors.by_name
    return {
        "problem": program.encoded(Fraction(claim.scale), Fraction(claim.shift)),
        "claim": {"verdict": "OPTIMAL", "tol": encode_number(tol)},
        "witness": witness,
    }


def no_point(claim: ConeClaim, nudge: float = 0.0) -> dict[str, Any]:
    """Return the parts of a certificate that no point satisfies the constraints."""
    program = ExactProgram.of(claim.statement)
    exact = _vertex(program, claim)
    w: Vector = []
    lam: Vector = []
    if exact is not None and exact.status is ExactStatus.INFEASIBLE:
        y = list(exact.farkas)
    else:
        w, y, lam = exact_multipliers(program, claim, nudge, with_objective=False)
    factors = Factors()
    _cone_factors(program, "multipliers", y, True, factors)
    witness: dict[str, Any] = {"y": encode_vector(y), "factors": factors.by_name}
    if lam:
        witness |= {"lam": encode_vector(lam), "w": encode_vector(w)}
        phi = _curvature_factor(program, lam, factors, with_objective=False)
        witness["phi"] = encode_number(phi)
    return {
        "problem": program.encoded(Fraction(claim.scale), Fraction(claim.shift)),
        "claim": {"verdict": "INFEASIBLE"},
        "witness": witness,
    }


def no_end(claim: ConeClaim, ray: FloatArray) -> dict[str, Any]:
    """Return the parts of a certificate that the objective improves without end."""
    program = ExactProgram.of(claim.statement)
    exact = _vertex(program, claim)
    if exact is not None and exact.status is ExactStatus.UNBOUNDED:
        point, direction = list(exact.x), list(exact.ray)
    else:
        point, direction = exact_point(program, claim.x), fractions_of(ray)
    factors = Factors()
    _cone_factors(program, "slack", _residual(program.rows, program.b, point), False, factors)
    down = [-value for value in exact_product(program.rows, direction)]
    _cone_factors(program, "ray", down, False, factors)
    return {
        "problem": program.encoded(Fraction(claim.scale), Fraction(claim.shift)),
        "claim": {"verdict": "UNBOUNDED"},
        "witness": {
            "x": encode_vector(point),
            "ray": encode_vector(direction),
            "factors": factors.by_name,
        },
    }


def _vertex(program: ExactProgram, claim: ConeClaim) -> ExactOutcome | None:
    """The exact optimum of a linear program, or the exact proof that it has none."""
    statement = program.statement
    if statement.curvatures or any(
        kind not in ("zero", "nonnegative") for kind, *_ in program.blocks
    ):
        return None
    exact = RationalProgram(
        tuple(fractions_of(statement.c)),
        rational_rows(program.rows),
        tuple(fractions_of(program.b)),
        program.equations().stop,
    )
    return exact_vertex(exact, claim.x, claim.y[program.kept])


def _cone_factors(
    program: ExactProgram, name: str, s: Vector, dual: bool, factors: Factors
) -> None:
    """Take factors of the semidefinite blocks of a slack or of multipliers."""
    for index, (kind, order, rows) in enumerate(program.blocks):
        if kind not in ("semidefinite", "svec"):
            continue
        part = np.array([float(value) for value in s[rows]])
        i, j = svec_entries(order)
        matrix = np.zeros((order, order))
        off = 1.0
        if kind == "semidefinite" and dual:
            off = 0.5
        # The format takes svec times the square root of 2.
        on = np.sqrt(2.0) if kind == "svec" else 1.0
        matrix[i, j] = matrix[j, i] = part * np.where(i == j, on, off)
        factors.add(f"{name} {index}", matrix)


def _curvature_factor(
    program: ExactProgram, lam: Vector, factors: Factors, with_objective: bool = True
) -> Fraction:
    """Take a factor of H, or of H + phi D; return phi."""
    H = _curvature(program.statement, lam, with_objective)
    if H is None:
        return Fraction(0)
    matrix: FloatArray = sum(float(factor) * term.toarray() for factor, term in H)
    if not (matrix - np.diag(np.diag(matrix))).any():
        return Fraction(0)
    curved = np.flatnonzero(matrix.any(axis=0))
    inner = matrix[np.ix_(curved, curved)]
    factor = factor_below(inner)
    if factor is not None:
        factors.by_name["curvature"] = widened_factor(factor, curved, len(matrix))
        return Fraction(0)
    if len(inner) <= MAX_ELIMINATION and not _boxed(program, curved):
        return Fraction(0)
    n = len(inner)
    for multiple in reversed(SHIFTS):
        phi = multiple * 64 * np.sqrt(n) * n * EPS * float(np.diag(matrix).max())
        phi = 2.0 ** np.ceil(np.log2(phi))
        factor = factor_below(inner + phi * np.eye(n))
        if factor is not None:
            factors.by_name["curvature"] = widened_factor(factor, curved, len(matrix))
            return Fraction(phi)
    return Fraction(0)


def widened_factor(factor: FloatArray, places: Any, size: int) -> dict[str, Any]:
    """A factor of some rows and columns as one of the whole matrix."""
    if len(factor) == size:
        return encode_lower_triangle(factor)
    i, j = np.nonzero(factor)
    entries = sparse.coo_array((factor[i, j], (places[i], places[j])), shape=(size, size))
    return encode_entries(entries)


def _boxed(program: ExactProgram, variables: Any) -> bool:
    """Whether rows with one entry state both bounds of the variables."""
    up, down = _bound_rows(program)
    return all(int(j) in up and int(j) in down for j in variables)


def _encoded_size(kind: str, size: Any) -> Any:
    return [encode_number(weight) for weight in size] if kind == "power" else size


def _encoded_symmetric(matrix: SparseMatrix) -> dict[str, Any]:
    """The lower triangle of a symmetric matrix, dense where it is mostly filled."""
    n = matrix.shape[0]
    if matrix.nnz > 0.4 * n * n:
        return encode_lower_triangle(matrix.toarray())
    return encode_entries(sparse.tril(matrix))
