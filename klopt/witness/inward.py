"""Moves a point that misses its cones by little into them.

The slack s = b - Ax of an answer is at the boundary of K: its smallest entries, the smallest
s_0 - ||s_1|| and the smallest eigenvalues are near 0, and by rounding or by the tolerance of a
solver some are negative. To first order a step d raises each of them by

    nonneg   (-Ad)_i
    soc      u'(-Ad),     u = (1, -s_1 / ||s_1||)
    psd      N'(-Ad)N,    N the eigenvectors of the eigenvalues near 0,

and the shortest d that raises each by what it lacks, and no other, changes the objective by little
more than the gap of the answer.
"""

from __future__ import annotations

import numpy as np

from klopt.arrays import EPS, FloatArray
from klopt.model.cones import Cones, smat, svec_entries, svec_weights
from klopt.model.forms import ConeForm
from klopt.proof.statement import VariableRange

__all__ = ["inward_point", "weighted_step"]

MAX_VARIABLES = 300
"""Beyond so many variables the step takes longer than what it saves."""
MAX_BOUNDARY = 600
"""So many conditions at the boundary at most."""
NEAR_BOUNDARY = 1e-6
"""What counts as near 0, relative to the largest slack."""
ROUNDINGS = 16
"""Room for the proof that comes after, in roundings of the largest slack for each row and column."""
MAX_ROWS = 1200
"""Rows of a polyhedron that a weighted step is solved for, by a dense matrix."""
RIDGE = 1e-12
"""What is added to normal equations, relative to their largest diagonal entry."""


def inward_point(form: ConeForm, x: FloatArray) -> FloatArray | None:
    """Return x, or a point near it that lies inside the cones; None where no short step leads there.

    >>> from scipy import sparse
    >>> A = sparse.csc_array([[-1.0, 0.0], [0.0, 0.0], [0.0, -1.0]])
    >>> form = ConeForm(np.ones(2), A, np.array([0.0, np.sqrt(2), 0.0]), Cones(psd=(2,)))
    >>> moved = inward_point(form, np.array([1.0, 1.0 - 1e-9]))
    >>> moved is not None and bool(moved[0] * moved[1] > 1.0)
    True
    """
    cones = form.cones
    if cones.zero or not cones.is_symmetric or form.c.size > MAX_VARIABLES:
        return None
    slack = form.b - form.A @ x
    largest = float(np.max(np.abs(slack[np.isfinite(slack)]), initial=0.0))
    order = max((1, *cones.psd, *cones.soc))
    margin = ROUNDINGS * EPS * (1.0 + largest) * order**2
    found = _boundary(form, slack, NEAR_BOUNDARY * (1.0 + largest))
    if found is None:
        return None
    B, depth = found
    lacks = np.maximum(2 * margin - depth, 0.0)
    if not lacks.any():
        return x

    # The shortest step, by normal equations.
    BB = B @ B.T
    BB.flat[:: len(BB) + 1] += RIDGE * (float(np.max(BB.diagonal())) or 1.0)
    moved = np.asarray(x + B.T @ np.linalg.solve(BB, lacks))
    return moved if _depth(cones, form.b - form.A @ moved) >= margin else None


def _boundary(
    form: ConeForm, slack: FloatArray, near: float
) -> tuple[FloatArray, FloatArray] | None:
    """How a step changes what is near 0, row by row, and what that is; inf off the diagonal.

    None where there are too many conditions.
    """
    rows = [np.zeros((0, form.c.size))]
    depth = [np.zeros(0)]
    for kind, block in form.cones.blocks():
        A = form.A[block]
        s = slack[block]
        if kind == "nonneg":
            active = np.flatnonzero(s < near)
            rows.append(-A[active].toarray())
            depth.append(s[active])
        elif kind == "soc":
            length = float(np.linalg.norm(s[1:]))
            if s[0] - length < near and length:
                rows.append(-(np.append(1.0, -s[1:] / length) @ A)[None, :])
                depth.append(np.array([s[0] - length]))
        else:
            eigenvalues, V = np.linalg.eigh(smat(s))
            N = V[:, eigenvalues < near]
            i, j = np.tril_indices(N.shape[1])
            if i.size > MAX_BOUNDARY:
                return None
            first, second = svec_entries(len(N))
            products = N[first][:, i] * N[second][:, j] + N[second][:, i] * N[first][:, j]
            rows.append(-((products * (svec_weights(len(N)) / 2)[:, None]).T @ A))
            depth.append(np.where(i == j, eigenvalues[i], np.inf))
    return np.vstack(rows), np.concatenate(depth)


def _depth(cones: Cones, s: FloatArray) -> float:
    """The smallest entry, s_0 - ||s_1|| or eigenvalue over all cones, in floats."""
    least = np.inf
    for kind, rows in cones.blocks():
        part = s[rows]
        if kind == "nonneg":
            depth = float(part.min())
        elif kind == "soc":
            depth = float(part[0] - np.linalg.norm(part[1:]))
        else:
            depth = float(np.linalg.eigvalsh(smat(part))[0])
        least = min(least, depth)
    return least


def weighted_step(
    form: ConeForm, x: FloatArray, known: VariableRange, margin: float
) -> FloatArray | None:
    """Return a point of a polyhedron near x that meets its equations, and its rows with a margin.

    The step is the shortest one in the scale of what each variable is away from its bounds, so that
    those at a bound stay there. None where there are too many rows, or curved cones.

    Parameters
    ----------
    form
        The program.
    x
        A point between the bounds of its variables.
    known
        These bounds.
    margin
        The slack that near rows get, relative to the size of their terms.

    >>> from scipy import sparse
    >>> A = sparse.csc_array([[1.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    >>> form = ConeForm([1.0, 2.0], A, np.array([1.0, 0.0, 0.0]), Cones(zero=1, nonneg=2))
    >>> bounds = VariableRange(np.zeros(2), np.full(2, np.inf))
    >>> weighted_step(form, np.array([1.0 - 1e-9, 0.0]), bounds, 1e-12)
    array([1., 0.])
    """
    cones = form.cones
    if not cones.is_polyhedral:
        return None
    A = form.A.tocsr()
    slack = form.b - A @ x
    size = 1.0 + np.abs(np.where(np.isfinite(form.b), form.b, 0.0)) + abs(A) @ np.abs(x)
    # Rows with one entry are the bounds.
    is_near = (np.diff(A.indptr) > 1) & (slack < margin * size)
    is_near[: cones.zero] = True
    rows = np.flatnonzero(is_near)
    if not rows.size or rows.size > MAX_ROWS:
        return None
    with np.errstate(invalid="ignore"):
        room = np.minimum(x - known.lower, known.upper - x)
    room = np.minimum(room, 1.0 + np.abs(x))
    B = (A[rows] * room).tocsr()
    wanted = np.where(rows < cones.zero, slack[rows], slack[rows] - margin * size[rows])
    BB = (B @ B.T).toarray()
    BB.flat[:: len(BB) + 1] += EPS * (float(np.max(BB.diagonal())) or 1.0)
    try:
        step = room * (B.T @ np.linalg.solve(BB, wanted))
    except np.linalg.LinAlgError:
        return None
    moved = np.clip(x + step, known.lower, np.maximum(known.lower, known.upper))
    return moved if np.isfinite(moved).all() else None
