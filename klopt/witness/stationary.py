"""Dual witnesses of programs with quadratic constraints, made stationary where variables are free.

At a solution the gradient g = Hw + c + sum_i l_i q_i + A'y of Lemma C1 vanishes for every variable
strictly between its bounds; what a solver leaves of it costs g_j times the range of x_j. One step of
Newton's method for these equations and the equality rows,

    H_FF dw + A_EF' dy = -g_F,     A_EF dw = 0,

takes nearly all of it away. Variables without curvature, such as the bound t in x'P_i x/2 <= t, are
made stationary first by the least change of the multipliers l. Multipliers of bounds play no part:
the minimum of g'x over the box chooses the best ones.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray
from klopt.proof.cone_witnesses import DualWitness
from klopt.proof.statement import ConeStatement

__all__ = ["stationary_witness"]

Mask = npt.NDArray[np.bool_]

MAX_VARIABLES = 1000
"""The system is dense."""
NOISE = 1e-8
"""A share of the largest multiplier that counts as 0."""
INSIDE = 1e-5
"""A variable farther from its bounds than this share of its size counts as free."""


def stationary_witness(statement: ConeStatement, witness: DualWitness) -> DualWitness | None:
    """Return a witness near the given one with a smaller gradient; None where it is not for this.

    >>> from scipy import sparse
    >>> from klopt.model.cones import Cones
    >>> from klopt.proof.statement import QuadraticConstraint
    >>> ball = QuadraticConstraint(sparse.csc_array([[2.0, 0], [0, 0]]), np.array([0.0, -1.0]), 0.0)
    >>> A = sparse.csc_array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> statement = ConeStatement(
    ...     np.array([-1.0, 1.0]), A, np.full(4, 9.0), Cones(nonneg=4), quadratics=(ball,)
    ... )
    >>> near = DualWitness(np.array([0.499, 0.25]), np.zeros(4), np.array([1.001]))
    >>> found = stationary_witness(statement, near)
    >>> found.w.round(9), found.quadratic.round(9)
    (array([0.5 , 0.25]), array([1.]))
    """
    n = witness.w.size
    if not statement.quadratics or n > MAX_VARIABLES or not witness.quadratic.any():
        return None
    cones = statement.cones
    w = witness.w.copy()
    y = witness.y.copy()
    bound = statement.row_products.count == 1
    bound[: cones.zero] = False
    y[bound] = 0.0
    known = statement.stated_range
    margin = INSIDE * (1 + np.abs(w))
    inside = (w - known.lower > margin) & (known.upper - w > margin)

    normals = np.array([row.q for row in statement.quadratics])
    fixed = statement.c + statement.column_products.of(y)[0]
    curved = _curved(statement, n)
    multipliers = _balanced(witness.quadratic, normals, fixed, inside & ~curved)
    if multipliers is None:
        return None

    H = _curvature(statement, multipliers, n)
    free = np.flatnonzero(inside & curved)
    equations = np.arange(cones.zero)
    gradient = H @ w + fixed + multipliers @ normals
    side = statement.few_rows(equations)[:, free]
    system = np.zeros((free.size + equations.size,) * 2)
    system[: free.size, : free.size] = H[np.ix_(free, free)]
    system[free.size :, : free.size] = side
    system[: free.size, free.size :] = side.T
    right = np.append(-gradient[free], np.zeros(equations.size))
    try:
        step = np.linalg.solve(system, right)
    except np.linalg.LinAlgError:
        return None
    if not np.isfinite(step).all():
        return None
    w[free] += step[: free.size]
    y[equations] += step[free.size :]
    return DualWitness(w, y, multipliers)


def _balanced(
    multipliers: FloatArray, normals: FloatArray, fixed: FloatArray, flat: Mask
) -> FloatArray | None:
    """The multipliers with the least change that makes g vanish in variables without curvature.

    What is next to nothing belongs to a constraint that is not active, and is 0.
    """
    used = multipliers > NOISE * multipliers.max()
    moved = np.where(used, multipliers, 0.0)
    columns = np.flatnonzero(flat)
    if not columns.size:
        return moved
    B = normals[:, columns].T
    missing = fixed[columns] + B @ moved
    moved[used] += np.linalg.lstsq(B[:, used], -missing, rcond=None)[0]
    return moved if (moved >= 0).all() else None


def _curved(statement: ConeStatement, n: int) -> Mask:
    """Which variables some matrix knows."""
    known = np.zeros(n, dtype=bool)
    for matrix in statement.curvatures:
        known |= np.diff(matrix.indptr) > 0
    return known


def _curvature(statement: ConeStatement, multipliers: FloatArray, n: int) -> FloatArray:
    """H = P + sum_i l_i P_i, dense."""
    H = np.zeros((n, n)) if statement.P is None else statement.P.toarray()
    for row, factor in zip(statement.quadratics, multipliers, strict=True):
        if factor:
            H += factor * row.P.toarray()
    return np.asarray(H)
