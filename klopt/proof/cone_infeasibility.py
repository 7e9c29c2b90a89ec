"""Proofs that a cone program has no optimum: it is infeasible, or its objective is unbounded.

    minimise  x'Px/2 + c'x   subject to  s = b - Ax in K,  x'P_i x/2 + q_i'x <= r_i

**Lemma C4 (Farkas).** If C1 and C2 prove a bound > 0 for the objective 0, no x is feasible.

**Lemma C5 (ray).** If -Ad in K, Pd = 0, P_i d = 0, q_i'd <= 0 and c'd < 0 hold exactly, the objective
falls without bound along d from any feasible point.
"""

from __future__ import annotations

from dataclasses import replace

import attrs
import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.proof.cone_lower_bound import lower_bound
from klopt.proof.cone_upper_bound import upper_bound
from klopt.proof.cone_witnesses import DualWitness, PrimalWitness
from klopt.proof.statement import ConeStatement

__all__ = [
    "is_infeasible",
    "is_ray",
    "recession_program",
]


def is_infeasible(statement: ConeStatement, witness: DualWitness) -> bool:
    """Return whether the multipliers prove that no x is feasible (Lemma C4).

    >>> from klopt.model.cones import Cones
    >>> A = sparse.csc_array([[1.0], [-1.0]])
    >>> statement = ConeStatement(np.array([0.0]), A, np.array([-1.0, 0.0]), Cones(nonneg=2))
    >>> is_infeasible(statement, DualWitness(np.zeros(1), np.array([2.0, 2.0])))
    True
    """
    if _has_false_row(statement):
        return True
    known = statement.stated_range
    if (known.lower > known.upper).any():
        return True
    homogeneous = replace(statement, c=np.zeros_like(statement.c), P=None)
    zero = replace(witness, w=np.zeros_like(witness.w))
    if statement.quadratics:
        zero = witness
    return lower_bound(homogeneous, zero).value > 0


def _has_false_row(statement: ConeStatement) -> bool:
    """Whether a row without entries is wrong by itself, or one asks for something below -inf."""
    zero = statement.cones.zero
    b = statement.b[: zero + statement.cones.nonneg]
    has_entries = np.diff(statement.rows.indptr)[: b.size].astype(bool)
    wrong = b < 0
    wrong[:zero] = b[:zero] != 0
    return bool((wrong & ~has_entries).any() or (statement.b == -np.inf).any())


def is_ray(statement: ConeStatement, d: FloatArray, tight: npt.ArrayLike = ()) -> bool:
    """Return whether the objective falls without bound along d (Lemma C5), all of it exactly.

    Parameters
    ----------
    statement, d
        A cone program, and a direction.
    tight
        Inequalities of `recession_program` that a direction next to d is to meet with equality.

    >>> from klopt.model.cones import Cones
    >>> A = sparse.csc_array([[1.0, -1.0]])
    >>> statement = ConeStatement(np.array([-1.0, 0.0]), A, np.zeros(1), Cones(nonneg=1))
    >>> is_ray(statement, np.array([1.0, 1.0])), is_ray(statement, np.array([1.0, 0.999]))
    (True, False)
    """
    if not np.isfinite(d).all() or np.isfinite(min(statement.within, statement.radius)):
        return False
    # A ray is a feasible point of the recession program at which its objective is negative.
    ray = PrimalWitness(d, np.asarray(tight, np.intp))
    return upper_bound(recession_program(statement), ray).value < 0


def recession_program(statement: ConeStatement) -> ConeStatement:
    """Return: minimise c'd over -Ad in K, Pd = 0, P_i d = 0, q_i'd <= 0.

    >>> from klopt.model.cones import Cones
    >>> A = sparse.csc_array([[1.0, -1.0]])
    >>> statement = ConeStatement(np.array([-1.0, 0.0]), A, np.ones(1), Cones(nonneg=1))
    >>> recession_program(statement).b
    array([0.])
    """
    cache = statement.derived
    if "recession" not in cache:
        cache["recession"] = _recession_program(statement)
    found: ConeStatement = cache["recession"]
    return found


def _recession_program(statement: ConeStatement) -> ConeStatement:
    """The same, built: what `recession_program` keeps."""
    cones = statement.cones
    linear = cones.zero + cones.nonneg
    A = statement.rows
    flat = [sparse.csr_array(matrix) for matrix in statement.curvatures]
    flat = [matrix[np.flatnonzero(np.diff(matrix.indptr))] for matrix in flat]
    normals = [sparse.csr_array(row.q[None, :]) for row in statement.quadratics]
    stacked = [*flat, A[:linear], *normals, A[linear:]]
    flat_rows = sum(matrix.shape[0] for matrix in flat)
    b = np.where(statement.vacuous, np.inf, 0.0)
    right = (np.zeros(flat_rows), b[:linear], np.zeros(len(normals)), b[linear:])
    return ConeStatement(
        statement.c,
        sparse.csc_array(sparse.vstack(stacked, format="csc")),
        np.concatenate(right),
        attrs.evolve(cones, zero=cones.zero + flat_rows, nonneg=cones.nonneg + len(normals)),
        plain=statement.plain,
    )
