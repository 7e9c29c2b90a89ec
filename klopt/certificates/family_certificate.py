"""Certificates of problems that state themselves and their proofs in fractions (`ExactClaim`).

Linear programs that are read with their decimals (`exact=True`) are among them.
Matrices that must be positive semidefinite get their factors here; nothing else is computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np

from klopt.arrays import FloatArray
from klopt.certificates.cone_certificate import MAX_ELIMINATION, widened_factor
from klopt.certificates.encoding import (
    encode_integers,
    encode_lower_triangle,
    encode_number,
    encode_triples,
    encode_vector,
)
from klopt.errors import NotCertified
from klopt.model.problem import Point
from klopt.witness.certify_exact import StatedInRationals
from klopt.witness.exact_claims import (
    ConeData,
    ConeVectors,
    EnergyData,
    Entries,
    ExactClaim,
    GraphData,
    LevelData,
    Part,
    SaddleData,
    SaddleVectors,
    factor_below,
    long_factor,
    negativity,
    product,
    rows_of,
)
from klopt.witness.exact_simplex import ExactStatus, exact_vertex

__all__ = ["decimal_claim", "parts_of_claim"]

MAX_DETERMINANT = 40
"""The order up to which a log det is taken of the determinant itself, without a factor."""


def parts_of_claim(claim: ExactClaim, verdict: str, tol: float) -> dict[str, Any]:
    """Return the problem, the claim without its ends, and the witness."""
    units = {"scale": encode_number(claim.scale), "shift": encode_number(claim.shift)}
    said: dict[str, Any] = {"verdict": verdict}
    if verdict == "OPTIMAL":
        said["tol"] = encode_number(tol)
    data = claim.data
    vectors = claim.vectors
    if isinstance(data, SaddleData):
        assert isinstance(vectors, SaddleVectors)
        problem = {"rule": "saddle program"} | units | _saddle(data)
        return {"problem": problem, "claim": said, "witness": _saddle_witness(data, vectors)}
    if isinstance(data, LevelData):
        problem = {"rule": "alignment level"} | units | _levels(data)
        witness = {"level": encode_number(data.level)}
        return {"problem": problem, "claim": said, "witness": witness}
    if isinstance(data, GraphData):
        problem = {"rule": "graph log det"} | units | _graph(data)
        return {"problem": problem, "claim": said, "witness": _graph_witness(data)}
    if isinstance(data, EnergyData):
        problem = {"rule": "ordered energies"} | units | _energies(data)
        return {"problem": problem, "claim": said, "witness": {}}
    assert isinstance(vectors, ConeVectors)
    problem = {"rule": "cone program"} | units | _cone(data)
    P = data.P if verdict == "OPTIMAL" else []
    return {"problem": problem, "claim": said, "witness": _cone_witness(data, vectors, P)}


def decimal_claim(problem: StatedInRationals, point: Point | None) -> ExactClaim:
    """Return a linear program in the rational numbers of its file, with its exact optimum or none."""
    program = problem.rational
    assert program is not None
    kept = [i for i, side in enumerate(program.b) if side != inf]
    if any(side == -inf for side in program.b):
        raise NotCertified("a row asks for minus infinity, which is no number of a certificate")
    zero = sum(i < program.zero for i in kept)
    data = ConeData(len(program.c), list(program.c))
    for kind, rows in (("zero", kept[:zero]), ("nonnegative", kept[zero:])):
        if rows:
            entries = [dict(program.rows[i]) for i in rows]
            data.add(kind, len(rows), entries, [program.b[i] for i in rows])
    found = exact_vertex(program, *(problem.pair(point) if point is not None else ()))
    if found.status is ExactStatus.UNKNOWN:
        raise NotCertified(f"the exact optimum was not found again: {found.why}")
    multipliers = found.y or found.farkas
    vectors = ConeVectors(
        x=list(found.x) or None,
        y=[multipliers[i] for i in kept] if multipliers else None,
        ray=list(found.ray) or None,
    )
    sign = Fraction(1 if problem.sense == "min" else -1)
    return ExactClaim(data, vectors, sign, problem.rational_offset)


# The problem


def _cone(data: ConeData) -> dict[str, Any]:
    found: dict[str, Any] = {
        "variables": data.n,
        "c": encode_vector(data.c),
        "A": encode_triples(data.A),
        "b": encode_vector(data.b),
        "cones": [
            [kind, [encode_number(w) for w in size] if kind == "power" else size]
            for kind, size in data.cones
        ],
    }
    if data.P:
        found["P"] = encode_triples(data.P)
    if data.quadratics:
        found["quadratics"] = [
            {"P": encode_triples(P), "q": encode_vector(q), "r": encode_number(r)}
            for P, q, r in data.quadratics
        ]
    if data.log_dets:
        found["log det"] = [
            {"weight": encode_number(term.weight)}
            | (
                {"cone": term.cone}
                if term.matrix is None
                else {"order": term.order, "matrix": encode_triples(term.matrix)}
            )
            for term in data.log_dets
        ]
    return found


def _saddle(data: SaddleData) -> dict[str, Any]:
    found: dict[str, Any] = {"left": _cone(data.left), "right": _cone(data.right)}
    if data.M:
        found["M"] = encode_triples(data.M)
    if data.parts:
        found["parts"] = [_part(part) for part in data.parts]
    return found


def _levels(data: LevelData) -> dict[str, Any]:
    return {
        "directions": len(data.r),
        "r": encode_vector(data.r),
        "A": encode_vector(data.A),
        "norm": encode_number(data.norm),
    }


def _graph(data: GraphData) -> dict[str, Any]:
    n = len(data.S)
    S = [(i, j, data.S[i][j]) for j in range(n) for i in range(j, n)]
    return {
        "points": n,
        "G": encode_lower_triangle(data.G),
        "S": encode_triples(S),
        "gamma": encode_number(data.gamma),
    }


def _graph_witness(data: GraphData) -> dict[str, Any]:
    n = len(data.S)
    H = [[Fraction(float(value)) for value in row] for row in data.G]
    for i in range(n):
        H[i][i] += data.phi
    smooth = product(product(H, data.S), H)
    Y = [[H[i][j] + data.gamma * smooth[i][j] for j in range(n)] for i in range(n)]
    factors = {
        f"{name} {side}": encode_triples(
            [(i, j, v) for i, row in enumerate(long_factor(matrix, up)) for j, v in enumerate(row)]
        )
        for name, matrix in (("H", H), ("Y", Y))
        for up, side in ((False, "below"), (True, "above"))
    }
    found: dict[str, Any] = {"phi": encode_number(data.phi), "factors": factors}
    if not data.phi:
        return found
    S = np.array([[float(value) for value in row] for row in data.S])
    factor = factor_below(S + float(data.epsilon) * np.eye(len(S)))
    if factor is not None:
        factors["S"] = encode_lower_triangle(factor)
    return found | {"epsilon": encode_number(data.epsilon)}


def _energies(data: EnergyData) -> dict[str, Any]:
    return {
        "points": len(data.V[0]),
        "V": [encode_vector(column) for column in data.V],
        "T": encode_triples(data.T),
        "sigma": encode_number(data.sigma),
    }


def _part(part: Part) -> dict[str, Any]:
    found: dict[str, Any] = {
        "left": encode_integers([k for k, _, _, _ in part.entries]),
        "row": encode_integers([i for _, i, _, _ in part.entries]),
        "column": encode_integers([j for _, _, j, _ in part.entries]),
    }
    found["value"] = encode_vector([entry[3] for entry in part.entries])
    if part.over is not None:
        found["over"] = part.over
    if part.positive:
        found["positive part"] = True
    return found


# The witness


def _cone_witness(data: ConeData, vectors: ConeVectors, P: Entries) -> dict[str, Any]:
    found: dict[str, Any] = {}
    factors: dict[str, Any] = {}
    phi = vectors.phi
    if vectors.x is not None:
        found["x"] = encode_vector(vectors.x)
        factors |= _cone_factors(data, "slack", data.slack(vectors.x), dual=False)
    if vectors.y is not None:
        found["y"] = encode_vector(vectors.y)
        factors |= _cone_factors(data, "multipliers", vectors.y, dual=True)
        H = list(P)
        if vectors.lam is not None:
            found["lam"] = encode_vector(vectors.lam)
            for weight, (matrix, _, _) in zip(vectors.lam, data.quadratics, strict=True):
                H += [(i, j, weight * value) for i, j, value in matrix if weight]
        if H:
            phi, factor = _curvature(data, H)
            if factor is not None:
                factors["curvature"] = factor
    if vectors.w is not None:
        found["w"] = encode_vector(vectors.w)
    if vectors.ray is not None:
        found["ray"] = encode_vector(vectors.ray)
    if phi:
        found["phi"] = encode_number(phi)
    return found | {"factors": factors}


def _saddle_witness(data: SaddleData, vectors: SaddleVectors) -> dict[str, Any]:
    x = vectors.left.x
    assert x is not None
    P, _ = data.program_of_y(x, vectors.parts, vectors.phi)
    found: dict[str, Any] = {
        "left": _cone_witness(data.left, vectors.left, data.left.P),
        "right": _cone_witness(data.right, vectors.right, P),
    }
    factors: dict[str, Any] = {}
    n = data.right.n
    for p, part in enumerate(data.parts):
        if part.over is not None and not part.positive:
            _add(factors, f"part {p}", part.matrix(x), n)
        for k in part.variables:
            matrix = [(i, j, value) for at, i, j, value in part.entries if at == k]
            matrix += [(j, j, vectors.phi[p, k]) for j in part.support(k)]
            _add(factors, f"kernel {p} {k}", matrix, n)
    if vectors.parts:
        found["parts"] = [encode_vector(w) for w in vectors.parts]
    if vectors.phi:
        found["phi"] = encode_vector([vectors.phi[key] for key in sorted(vectors.phi)])
    return found | {"factors": factors}


def _cone_factors(data: ConeData, name: str, s: Sequence[Fraction], dual: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    start = 0
    for index, (kind, size) in enumerate(data.cones):
        stop = start + rows_of(kind, size)
        is_short = size <= MAX_DETERMINANT if kind == "semidefinite" else True
        exact = is_short and any(term.cone == index for term in data.log_dets)
        if kind == "semidefinite" and not exact:
            values = np.array([float(value) for value in s[start:stop]])
            matrix = np.zeros((size, size))
            column, row = np.triu_indices(size)
            matrix[row, column] = values * np.where(row == column, 1.0, 0.5 if dual else 1.0)
            matrix = matrix + np.tril(matrix, -1).T
            factor = factor_below(matrix)
            if factor is not None:
                found[f"{name} {index}"] = encode_lower_triangle(factor)
        start = stop
    return found


def _curvature(data: ConeData, H: Entries) -> tuple[Fraction, Any]:
    """phi and the factor of H + phi D; none for diagonal and for small matrices without bounds."""
    if all(i == j for i, j, _ in H):
        return Fraction(0), None
    places, inner = _inner(H)
    factor = factor_below(inner)
    if factor is not None:
        return Fraction(0), widened_factor(factor, places, data.n)
    up, down = data.bound_rows
    boxed = all(int(j) in up and int(j) in down for j in places)
    if not boxed:
        if len(inner) > MAX_ELIMINATION:
            raise NotCertified("a matrix has no room for a factor, and its variables no bounds")
        return Fraction(0), None
    phi = negativity(inner)
    factor = factor_below(inner + float(phi) * np.eye(len(inner)))
    assert factor is not None
    return phi, widened_factor(factor, places, data.n)


def _inner(H: Entries) -> tuple[Any, FloatArray]:
    """The rows and columns that have entries, and the matrix on them."""
    places = np.array(sorted({index for i, j, value in H if value for index in (i, j)}))
    at = {int(place): index for index, place in enumerate(places)}
    inner = np.zeros((places.size, places.size))
    for i, j, value in H:
        if value:
            inner[at[i], at[j]] += float(value)
            if i != j:
                inner[at[j], at[i]] += float(value)
    return places, inner


def _add(factors: dict[str, Any], name: str, matrix: Entries, n: int) -> None:
    """Take a factor of a matrix if there is one."""
    if any(i != j for i, j, _ in matrix):
        places, inner = _inner(matrix)
        factor = factor_below(inner)
        if factor is not None:
            factors[name] = widened_factor(factor, places, n)
