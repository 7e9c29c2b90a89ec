"""Support vector machines for a rising penalty C, each from the face of the one before.

    minimise  z'Kz/2 - sum_i (up_i max(z_i, 0) + down_i min(z_i, 0))   over  |z_i| <= C,  1'z = 0

With g = Kz + b, a coefficient z_i > 0 pulls g_i up to up_i and one below 0 pulls it down to down_i:
a class +1 has up = 1 and down = inf, a class -1 has up = -inf and down = -1, a target t with a tube
of half-width e has up = t - e and down = t + e. At the optimum every point is

    at zero     up_i <= g_i <= down_i
    free        g_i = up_i or g_i = down_i, by the sign of z_i
    at bound    |z_i| = C and g_i on the wrong side of its target

Between two changes of this partition z is linear in C. So the partition of one C is the first guess
for the next: minimise on it (one Cholesky factorisation of the free block), move every point that
is on the wrong side, and repeat until none is. The rows of the free points are kept side by side,
and the product with the points at bound, which all have the size C, is kept as one vector.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray

__all__ = ["follow_penalties"]

Indices = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]

MAX_FACES = 80
"""Partitions that are tried for one C before the other method takes over."""
PATIENCE = 12
"""After so many partitions fewer and fewer points move at a time."""
MIN_SHARE = 0.1
"""The smallest part of the points on the wrong side that move at a time."""
MAX_FACES_AFTER_FAILURE = 40
"""Partitions that are tried where those of the penalty before did not settle: K is nearly singular."""
SIDE_TOLERANCE = 1e-9
"""A target missed by less than this, relative to the largest target, is met."""
BOUND_TOLERANCE = 1e-10
"""A coefficient beyond its bound by less than this, relative to C, is at it."""
MAX_CHANGED_SHARE = 0.12
"""With more changes, relative to the free points, their block is factored afresh."""
REGULARISATION = 1e-7
"""What is added to the diagonal of the free block, times C: the largest relative error of the optimum.

A ridge adds ridge/2 ||z||^2 <= ridge C ||z||_1 / 2, where the optimum is about ||z||_1 / 2 or more.
"""
MAX_RIDGE = 1e-5
"""The largest ridge, relative to the largest entry of the diagonal."""

Restart = Callable[[int, FloatArray | None], FloatArray]
"""The optimal z of the C of this number, by another method, from a z nearby if there is one."""


class _FreeRows:
    """The rows of K of the free points, side by side in memory, and a factor of nearly their block.

    While few points come and go, the factor of an earlier block serves: with the points `base` of
    it, c that came and E the columns of the identity of those that went,

        K_bb z_b + K_bc z_c + E mu = r_b,     K_cb z_b + K_cc z_c = r_c,     E'z_b = 0.
    """

    def __init__(self, K: FloatArray) -> None:
        self.K = K
        self.points: Indices = np.empty(0, dtype=np.intp)
        self.ridge = 0.0
        self._memory = np.empty((0, len(K)))
        self._base: Indices = np.empty(0, dtype=np.intp)
        self._factor: FloatArray | None = None

    @property
    def rows(self) -> FloatArray:
        return self._memory[: self.points.size]

    def replace(self, is_free: Mask) -> None:
        """Take these points; only rows that were not there before are copied."""
        before = self.points.size
        stays = is_free[self.points]
        missing = is_free.copy()
        missing[self.points] = False
        come = np.flatnonzero(missing)
        size = int(np.count_nonzero(stays)) + come.size
        if size > len(self._memory):
            memory = np.empty((2 * size, len(self.K)))
            memory[:before] = self.rows
            self._memory = memory

        points = np.empty(max(size, before), dtype=np.intp)
        points[:before] = self.points
        # New rows first take the places of those that go, then places behind them.
        places = np.append(np.flatnonzero(~stays), np.arange(before, size))
        taken = places[: come.size]
        self._memory[taken] = self.K[come]
        points[taken] = come
        # Places that are still empty are filled from the end.
        holes = places[come.size :]
        holes = holes[holes < size]
        behind = size + np.flatnonzero(stays[size:before])
        self._memory[holes] = self._memory[behind]
        points[holes] = points[behind]
        self.points = points[:size].copy()

    def regularise(self, C: float, scale: float) -> None:
        """Choose the ridge for a penalty; it changes in large steps, as a factor belongs to each."""
        exponent = np.floor(np.log2(min(REGULARISATION / C, MAX_RIDGE * scale)) / 3)
        ridge = float(8.0**exponent)
        if ridge != self.ridge:
            self.ridge = ridge
            self._factor = None

    def solve(self, right: FloatArray) -> FloatArray | None:
        """Return K_FF^-1 times columns; None where the block is not positive definite in floats."""
        place = np.full(len(self.K), -1)
        place[self._base] = np.arange(self._base.size)
        in_base = place[self.points]
        come = np.flatnonzero(in_base < 0)
        gone = np.ones(self._base.size, dtype=bool)
        gone[in_base[in_base >= 0]] = False
        went = np.flatnonzero(gone)
        if self._factor is None or come.size + went.size > MAX_CHANGED_SHARE * self.points.size:
            return self._solve_afresh(right)
        return self._solve_changed(right, in_base, come, went)

    def _solve_afresh(self, right: FloatArray) -> FloatArray | None:
        from scipy.linalg.lapack import dpotrf, dpotrs

        block = self.rows[:, self.points]
        block.flat[:: self.points.size + 1] += self.ridge
        factor, failed = dpotrf(block.T, lower=1, overwrite_a=1, clean=0)
        if failed:
            self._factor = None
            return None
        self._base = self.points
        self._factor = factor
        return np.asarray(dpotrs(factor, right, lower=1)[0])

    def _solve_changed(
        self, right: FloatArray, in_base: Indices, come: Indices, went: Indices
    ) -> FloatArray | None:
        """The same by the factor of the base and a system of the points that came and went."""
        from scipy.linalg.blas import dtrsm

        count = come.size
        known = np.flatnonzero(in_base >= 0)
        r = np.zeros((self._base.size, right.shape[1]), order="F")
        r[in_base[known]] = right[known]
        u = dtrsm(1.0, self._factor, r, lower=1, overwrite_b=1)
        border = np.zeros((self._base.size, count + went.size), order="F")
        rows = self.rows[come]
        border[:, :count] = rows[:, self._base].T
        border[went, count + np.arange(went.size)] = 1.0
        W = dtrsm(1.0, self._factor, border, lower=1, overwrite_b=1)
        S = -(W.T @ W)
        S[:count, :count] += rows[:, self.points[come]] + self.ridge * np.eye(count)
        small = -(W.T @ u)
        small[:count] += right[come]
        try:
            ends = np.linalg.solve(S, small)
        except np.linalg.LinAlgError:
            return self._solve_afresh(right)
        z = dtrsm(1.0, self._factor, u - W @ ends, lower=1, trans_a=1, overwrite_b=1)
        solved = np.empty_like(right)
        solved[known] = z[in_base[known]]
        solved[come] = ends[:count]
        return solved


class _Face:
    """A partition of the points, and what is kept of the last one."""

    def __init__(self, K: FloatArray, up: FloatArray, down: FloatArray) -> None:
        n = len(K)
        self.K = K
        self.up = up
        self.down = down
        targets = np.abs(np.concatenate([up, down]))
        largest = float(np.max(targets, where=np.isfinite(targets), initial=0.0)) or 1.0
        self.side_tolerance = SIDE_TOLERANCE * largest
        self.scale = float(K.diagonal().max(initial=0.0)) or 1.0
        self.sign = np.zeros(n)
        """-1, 0 or +1: 0 for the points at zero."""
        self.at_bound = np.zeros(n, dtype=bool)
        self.free = _FreeRows(K)
        self._bound_sign = np.zeros(n)
        self._bound_product = np.zeros(n)

    def read(self, z: FloatArray, C: float) -> None:
        """Take the partition of a point."""
        self.sign = np.sign(z)
        self.at_bound = np.abs(z) >= C * (1 - BOUND_TOLERANCE)
        self._bound_sign = np.where(self.at_bound, self.sign, 0.0)
        self._bound_product = self._bound_sign @ self.K

    def bound_product(self) -> FloatArray:
        """Return K times the signs of the points at bound."""
        signs = np.where(self.at_bound, self.sign, 0.0)
        changed = np.flatnonzero(signs != self._bound_sign)
        if changed.size:
            step = signs[changed] - self._bound_sign[changed]
            self._bound_product = self._bound_product + step @ self.K[changed]
            self._bound_sign = signs
        return self._bound_product

    def minimise(self, C: float) -> tuple[FloatArray, FloatArray] | None:
        """Return the coefficients of the free points and g; None where the face has no minimiser."""
        pull = C * self.bound_product()
        self.free.regularise(C, self.scale)
        self.free.replace((self.sign != 0) & ~self.at_bound)
        free = self.free.points
        excess = C * float(self._bound_sign.sum())
        if not free.size:
            return None if excess else (np.zeros(0), pull + self._middle_bias(pull))
        right = np.empty((free.size, 2), order="F")
        right[:, 0] = np.where(self.sign[free] > 0, self.up[free], self.down[free]) - pull[free]
        right[:, 1] = 1.0
        solved = self.free.solve(right)
        if solved is None:
            return None
        bias = (float(solved[:, 0].sum()) + excess) / float(solved[:, 1].sum())
        coefficients = solved[:, 0] - bias * solved[:, 1]
        return coefficients, pull + coefficients @ self.free.rows + bias

    def _bias_limits(self, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        """From where and up to where each point, none of them free, lets b go."""
        zero = self.sign == 0
        least = np.where(zero, self.up, np.where(self.sign < 0, self.down, -np.inf)) - f
        most = np.where(zero, self.down, np.where(self.sign > 0, self.up, np.inf)) - f
        return least, most

    def _middle_bias(self, f: FloatArray) -> float:
        least, most = self._bias_limits(f)
        return float(least.max() + most.min()) / 2

    def move(self, coefficients: FloatArray, g: FloatArray, C: float, share: float = 1.0) -> bool:
        """Move points that are on the wrong side; return whether there are any.

        Parameters
        ----------
        coefficients, g
            What `minimise` found.
        C
            The penalty.
        share
            Which part of them is moved, the worst ones.
        """
        free = self.free.points
        beyond = np.zeros(self.sign.size)
        sizes = coefficients * self.sign[free]
        outside = np.maximum(-sizes, sizes - C) - BOUND_TOLERANCE * C
        beyond[free] = self.scale * outside

        zero = np.flatnonzero(self.sign == 0)
        raised = self.up[zero] - g[zero]
        lowered = g[zero] - self.down[zero]
        beyond[zero] = np.maximum(raised, lowered) - self.side_tolerance
        held = np.flatnonzero(self.at_bound)
        signs = self.sign[held]
        targets = np.where(signs > 0, self.up[held], self.down[held])
        beyond[held] = signs * (g[held] - targets) - self.side_tolerance

        wrong = beyond > 0
        count = int(np.count_nonzero(wrong))
        if not count:
            return False
        if share < 1:
            few = max(1, int(share * count))
            wrong &= beyond >= np.partition(beyond, -few)[-few]
        # Without a free point nothing could balance the sum: the least wrong one stays.
        if wrong[free].all() and free.size and not wrong.sum() > free.size:
            wrong[free[np.argmin(beyond[free])]] = False
        moved = free[wrong[free]]
        at_top = (sizes > C)[wrong[free]]
        rises = zero[wrong[zero] & (raised > lowered)]
        falls = zero[wrong[zero] & (raised <= lowered)]
        self.at_bound[held[wrong[held]]] = False
        self.at_bound[moved[at_top]] = True
        self.sign[moved[~at_top]] = 0.0
        self.sign[rises] = 1.0
        self.sign[falls] = -1.0
        return True

    def point(self, coefficients: FloatArray, C: float) -> FloatArray:
        """Return z, inside the box."""
        z = np.where(self.at_bound, C * self.sign, 0.0)
        free = self.free.points
        z[free] = self.sign[free] * np.clip(coefficients * self.sign[free], 0.0, C)
        return z


def follow_penalties(
    K: FloatArray,
    up: FloatArray,
    down: FloatArray,
    penalties: Sequence[float],
    restart: Restart,
) -> list[FloatArray]:
    """Return the optimal z of each penalty, up to rounding.

    Parameters
    ----------
    K
        The kernel matrix, symmetric.
    up, down
        What the values are pulled up and down to, up <= down; infinite where they are not.
    penalties
        The penalties C, rising.
    restart
        Another method, for the first penalty and where no face is kept.

    Examples
    --------
    >>> up, down = np.array([1.0, -np.inf]), np.array([np.inf, -1.0])
    >>> found = follow_penalties(np.eye(2), up, down, [0.5, 2.0], lambda *_: np.array([0.5, -0.5]))
    >>> found[1].round(6)
    array([ 1., -1.])
    """
    face = _Face(K, up, down)
    found: list[FloatArray] = []
    max_faces = MAX_FACES
    for index, C in enumerate(penalties):
        z = _on_face(face, C, max_faces) if found else None
        max_faces = MAX_FACES
        if z is None:
            # Where no face settles, the next one hardly does.
            max_faces = MAX_FACES_AFTER_FAILURE if found else MAX_FACES
            z = restart(index, found[-1] if found else None)
            face.read(z, C)
        found.append(z)
    return found


def _on_face(face: _Face, C: float, max_faces: int) -> FloatArray | None:
    """z by the faces that follow each other from the present one; None where none is kept."""
    for step in range(max_faces):
        # Faces that do not settle alternate between two errors: then the worst points move alone.
        share = float(np.clip(0.85 ** (step - PATIENCE), MIN_SHARE, 1.0))
        minimiser = face.minimise(C)
        if minimiser is None:
            return None
        coefficients, g = minimiser
        if not np.isfinite(g).all():
            return None
        if not face.move(coefficients, g, C, share):
            return face.point(coefficients, C)
    return None
