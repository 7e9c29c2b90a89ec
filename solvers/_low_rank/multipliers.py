"""Multipliers of a factored program that lie inside their cones, so that a proof has room.

**The point x.** At a minimum over V, S V = 0 on the rows of every sphere, which gives its multiplier
in closed form; the general equations have theirs from the augmented Lagrangian. The slack S = b - Ax
then lies in its cone but for a smallest eigenvalue, which Lanczos' method finds. If some d has
-Ad = I (a sum of equations fixes the trace of Y), x + t d raises every eigenvalue by t.

**The matrix Y.** VV' has low rank and lies at the boundary. With any Y_0 inside the cone that solves
the equations, (1 - e) VV' + e Y_0 lies inside, and costs e times the difference of the objectives.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from klopt.arrays import EPS, FloatArray
from klopt.model.cones.svec import svec, svec_size
from klopt.solvers._low_rank.minimiser import AugmentedLagrangian
from klopt.solvers._low_rank.program import FactorProgram

__all__ = ["Interior", "lowest_eigenvalue", "point_of", "raised", "settled", "whole_multipliers"]

SMALL_ORDER = 60
"""Matrices up to this order are decomposed whole."""
MAX_RESTARTS = 300
"""Restarts of Lanczos' method, after which small matrices are decomposed whole."""
MAX_DENSE_ORDER = 3000
"""The order of a small matrix in this sense."""
SOLVED = 1e-9
"""The relative residual of a least-squares problem that counts as solved."""
MAX_LSQR_STEPS = 5000
"""Steps of a least-squares problem."""
ROOM = 4
"""The distance of a slack from the boundary, in roundings of the size of the slack per entry."""
SETTLING_STEPS = 5
"""Steps inwards, each twice as long as the last, until the slack is definite."""
DEPTHS = (1.0, 10.0, 100.0, 1e3, 1e4)
"""Multiples of the mean diagonal of Y at which an interior point of the equations is looked for."""


def point_of(program: FactorProgram, f: AugmentedLagrangian) -> FloatArray:
    """Return x of the form: multipliers of the spheres in closed form, the others of f."""
    x = np.zeros(program.c.size)
    x[program.general] = f.z - f.sigma * f.r
    by_column = sparse.csc_array(program.A)
    for column in program.fixed.tolist():
        x[column] = 1.0 / by_column.data[by_column.indptr[column]]
    # S v_i = 0 along v_i: what the slack has there is taken by the multiplier of the sphere.
    along = np.zeros(program.used.size)
    for block, S, V, length in zip(
        program.blocks, f.S, f.at.matrices, program.lengths, strict=True
    ):
        share = np.einsum("ab,ab->a", V, S @ V) / length**2
        diagonal = block.i == block.j
        at = block.used.start + np.flatnonzero(diagonal)
        along[at] = np.where(np.isnan(length), 0.0, share)[block.i[diagonal]]
    x[program.fixed] *= along[program.sphere_of[program.fixed]]
    return x / program.unit


def lowest_eigenvalue(S: Any, accuracy: float, seed: int) -> float:
    """Return a lower estimate of the smallest eigenvalue of a sparse symmetric matrix.

    Parameters
    ----------
    S
        The matrix.
    accuracy
        How far below the smallest eigenvalue the estimate may lie.
    seed
        That of the first vector of Lanczos' method.

    Examples
    --------
    >>> S = sparse.diags_array(np.arange(-1.0, 99.0))
    >>> bool(-1 - 1e-6 <= lowest_eigenvalue(S, 1e-6, 0) <= -1 + 1e-12)
    True
    """
    from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

    order = S.shape[0]
    norm = float(np.max(abs(S).sum(axis=1), initial=0.0))
    diagonal = S.diagonal()
    # A diagonal matrix, such as 0 or I, has no space for Lanczos' method to grow.
    if not (S - sparse.diags_array(diagonal)).count_nonzero():
        return float(np.min(diagonal, initial=np.inf))
    if order > SMALL_ORDER:
        # The largest eigenvalue of norm I - S: its accuracy is relative to the norm, not to itself.
        turned = LinearOperator(S.shape, matvec=lambda v: norm * v - S @ v, dtype=np.float64)
        start = np.random.default_rng(seed).normal(size=order)
        tol = max(accuracy / norm, 10 * EPS)
        try:
            value, vector = eigsh(turned, 1, which="LA", tol=tol, v0=start, maxiter=MAX_RESTARTS)
        except ArpackError:
            if order > MAX_DENSE_ORDER:
                return -norm
        else:
            v = vector[:, 0]
            lowest = norm - float(value[0])
            # There is an eigenvalue within the residual of it.
            return lowest - float(np.linalg.norm(S @ v - lowest * v))
    return float(np.linalg.eigvalsh(S.toarray())[0])


class Interior:
    """Directions into the cones, found once for a program.

    Attributes
    ----------
    direction
        d with -Ad = 1 on nonnegative rows and I on blocks; None where there is none.
    """

    def __init__(self, program: FactorProgram) -> None:
        self.program = program
        e = np.zeros(program.used.size)
        e[program.squares] = 1.0
        for block in program.blocks:
            e[block.used] = block.i == block.j
        self._identity = e
        d = _least_squares(program.A, -e)
        residual = float(np.linalg.norm(program.A @ d + e))
        solved = residual <= SOLVED * float(np.linalg.norm(e))
        self.direction = d / program.unit if solved else None

    def matrix(self, y: FloatArray) -> FloatArray | None:
        """Return used entries of a y inside the cones with A'y = -c; None where none was found.

        Parameters
        ----------
        y
            The used entries of a solution, whose size tells where to look.
        """
        program = self.program
        e = self._identity
        mean = max(float(e @ np.abs(y)) / max(float(e.sum()), 1.0), EPS)
        At = sparse.csr_array(program.A.T)
        for depth in DEPTHS:
            start = depth * mean * e
            moved = start - _least_squares(At, At @ start + program.c)
            if np.linalg.norm(At @ moved + program.c) > SOLVED * (1 + np.linalg.norm(program.c)):
                return None
            if self._depth(moved) > 0:
                return moved
        return None

    def _depth(self, y: FloatArray) -> float:
        """The smallest eigenvalue over all blocks, and the smallest nonnegative entry."""
        program = self.program
        least = float(np.min(y[program.squares], initial=np.inf))
        for block in program.blocks:
            Y = block.matrix(y[block.used])
            size = float(np.max(np.abs(y[block.used]), initial=0.0))
            least = min(least, lowest_eigenvalue(Y, 1e-3 * size, 0))
        return least


def _least_squares(M: Any, right: FloatArray) -> FloatArray:
    from scipy.sparse.linalg import lsqr

    found: FloatArray = lsqr(M, right, atol=EPS, btol=EPS, iter_lim=MAX_LSQR_STEPS)[0]
    return found


def raised(
    program: FactorProgram, x: FloatArray, interior: Interior, allowed: float, seed: int
) -> tuple[FloatArray, float]:
    """Return x with its slack inside the cones, and what it still lacks, relative to its size.

    Parameters
    ----------
    program
        The program.
    x
        Multipliers of its equations.
    interior
        Knows a direction into the cones, or none: then x stays where it is.
    allowed
        What the objective may lose to inaccurate eigenvalues.
    seed
        That of Lanczos' method.
    """
    direction = interior.direction
    price = 1.0 if direction is None else abs(float(program.form.c @ direction))
    accuracy = allowed / (4.0 * max(price, EPS))
    s = program.b - program.A @ (x * program.unit)
    lowest = float(np.min(s[program.squares], initial=np.inf))
    for block in program.blocks:
        S = block.matrix(s[block.used])
        lowest = min(lowest, lowest_eigenvalue(S, accuracy, seed))
    size = 1.0 + float(np.max(np.abs(s), initial=0.0))
    order = max((block.order for block in program.blocks), default=1)
    room = ROOM * EPS * order * order * size
    if direction is None or not np.isfinite(lowest):
        short = max(-lowest, 0.0, float(np.max(np.abs(s[program.free]), initial=0.0)))
        return x, short / size
    return x + max(room - lowest, 0.0) * direction, 0.0


def settled(
    program: FactorProgram, x: FloatArray, interior: Interior, allowed: float
) -> FloatArray:
    """Return x with a slack that has a Cholesky factor, where some steps inwards lead to one.

    Lanczos' method may miss an eigenvalue; a factor misses none.

    Parameters
    ----------
    program
        The program.
    x
        Multipliers whose slack is thought to lie inside its cones.
    interior
        Knows the direction inwards.
    allowed
        What the objective may lose to all steps together.
    """
    direction = interior.direction
    orders = [block.order for block in program.blocks]
    if direction is None or max(orders, default=0) > MAX_DENSE_ORDER:
        return x
    price = max(abs(float(program.form.c @ direction)), EPS)
    for step in 0.5 ** np.arange(SETTLING_STEPS, 0, -1):
        s = program.b - program.A @ (x * program.unit)
        if all(_is_definite(block.matrix(s[block.used])) for block in program.blocks):
            return x
        x = x + step * allowed / price * direction
    return x


def _is_definite(S: Any) -> bool:
    try:
        np.linalg.cholesky(S.toarray())
    except np.linalg.LinAlgError:
        return False
    return True


def whole_multipliers(
    program: FactorProgram, f: AugmentedLagrangian, inside: FloatArray, share: float
) -> FloatArray:
    """Return y of the form: VV' in full, mixed with a share of an interior point.

    Parameters
    ----------
    program, f
        The program and the factors.
    inside
        Used entries of an interior point.
    share
        How much of it is taken.
    """
    cones = program.form.cones
    y = np.zeros(program.form.b.size)
    start = cones.zero + cones.nonneg
    for V in f.at.matrices:
        stop = start + svec_size(len(V))
        y[start:stop] = (1.0 - share) * svec(V @ V.T)
        start = stop
    linear = slice(0, program.squares.stop)
    y[program.used[linear]] = (1.0 - share) * f.y[linear]
    y[program.used] += share * inside

    # The shortest change that closes the equations; the interior point has room for it.
    if program.general.size:
        At = sparse.csr_array(program.A.T)
        y[program.used] -= _least_squares(At, At @ y[program.used] + program.c)
    # Equations of a single diagonal entry hold up to one rounding, and exactly for -1 and 1.
    by_column = sparse.csc_array(program.A)
    entry = by_column.data[by_column.indptr[program.fixed]]
    place = program.used[program.sphere_of[program.fixed]]
    y[place] = -program.c[program.fixed] / entry
    return y
