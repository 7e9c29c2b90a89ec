"""A Riemannian trust-region method for the augmented Lagrangian over factors.

    f(V) = b'y - z'r + sigma ||r||^2 / 2,     r = A'y + c over the general equations,

y made of free numbers, squares u o u and matrices VV'. With the slack s = b - A(z - sigma r),

    gradient    (s, 2 s o u, 2 S V)
    Hessian     along U:  (ds, 2 (s o U + ds o u), 2 (S U + dS V)),   ds = sigma A A' dy.

Rows of V on spheres move in their tangent planes, and are scaled back to their lengths after each
step (Absil, Mahony and Sepulchre, 2008). Steps come from conjugate gradients that stop at the radius
or where the curvature is negative (Steihaug, 1983).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from klopt.arrays import FloatArray
from klopt.solvers._low_rank.program import FactorProgram

__all__ = ["AugmentedLagrangian", "Factors", "Minimum", "minimise"]

ACCEPTED_RATIO = 0.1
"""A step is taken if the function falls by this share of what its model promises."""
MAX_CG_STEPS = 200
"""Conjugate gradients of one step."""
CG_SHARE = 0.1
"""They stop at this share of the first residual, or sooner near the minimum."""
NOISE = 1e-13
"""Falls of the function by less, relative to its terms, are rounding."""


@dataclass(frozen=True, eq=False)
class Factors:
    """y as free numbers, roots u of squares, and factors V of semidefinite blocks."""

    free: FloatArray
    roots: FloatArray
    matrices: tuple[FloatArray, ...]

    def plus(self, step: Factors, share: float = 1.0) -> Factors:
        """Return this plus a share of a step."""
        pairs = zip(self.matrices, step.matrices, strict=True)
        return Factors(
            self.free + share * step.free,
            self.roots + share * step.roots,
            tuple(V + share * U for V, U in pairs),
        )

    def times(self, share: float) -> Factors:
        """Return a multiple."""
        return Factors(
            share * self.free, share * self.roots, tuple(share * V for V in self.matrices)
        )

    def dot(self, other: Factors) -> float:
        """Return the inner product."""
        total = float(self.free @ other.free) + float(self.roots @ other.roots)
        pairs = zip(self.matrices, other.matrices, strict=True)
        return total + sum(float(np.vdot(V, U)) for V, U in pairs)

    def norm(self) -> float:
        """Return the Euclidean norm."""
        return float(np.sqrt(self.dot(self)))


class AugmentedLagrangian:
    """f at one point: its value, gradient and Hessian."""

    def __init__(self, program: FactorProgram, at: Factors, z: FloatArray, sigma: float) -> None:
        self.program = program
        self.at = at
        self.z = z
        self.sigma = sigma
        self.y = self._values()
        self.r = program.At_general @ self.y + program.c_general
        self.s = program.b - program.A_general @ (z - sigma * self.r)
        self.objective = float(program.b @ self.y)
        self.value = self.objective - float(z @ self.r) + sigma / 2 * float(self.r @ self.r)
        self.size = 1.0 + abs(self.objective) + abs(float(z @ self.r))
        self.S = tuple(block.matrix(self.s[block.used]) for block in program.blocks)
        self._steep = tuple(2 * (S @ V) for S, V in zip(self.S, at.matrices, strict=True))
        self.gradient = self.tangent(
            Factors(self.s[program.free], 2 * self.s[program.squares] * at.roots, self._steep)
        )

    def _values(self) -> FloatArray:
        program = self.program
        y = np.empty(program.used.size)
        y[program.free] = self.at.free
        y[program.squares] = self.at.roots**2
        for block, V in zip(program.blocks, self.at.matrices, strict=True):
            y[block.used] = block.products(V, V)
        return y

    def tangent(self, step: Factors) -> Factors:
        """Return the part of a step that is tangent to the spheres."""
        matrices = []
        for V, U, length in zip(self.at.matrices, step.matrices, self.program.lengths, strict=True):
            along = np.einsum("ab,ab->a", V, U) / length**2
            matrices.append(U - np.where(np.isnan(length), 0.0, along)[:, None] * V)
        return Factors(step.free, step.roots, tuple(matrices))

    def hessian(self, step: Factors) -> Factors:
        """Return the Riemannian Hessian times a tangent step."""
        program, at = self.program, self.at
        free = np.zeros_like(step.free)
        roots = 2 * self.s[program.squares] * step.roots
        matrices = []
        for S, G, V, U, length in zip(
            self.S, self._steep, at.matrices, step.matrices, program.lengths, strict=True
        ):
            # The curvature of the spheres.
            bend = np.einsum("ab,ab->a", V, G) / length**2
            matrices.append(2 * (S @ U) - np.where(np.isnan(length), 0.0, bend)[:, None] * U)
        if program.general.size:
            dy = np.empty(program.used.size)
            dy[program.free] = step.free
            dy[program.squares] = 2 * at.roots * step.roots
            for block, V, U in zip(program.blocks, at.matrices, step.matrices, strict=True):
                dy[block.used] = 2 * block.products(V, U)
            ds = self.sigma * (program.A_general @ (program.At_general @ dy))
            free = ds[program.free]
            roots = roots + 2 * ds[program.squares] * at.roots
            for index, block in enumerate(program.blocks):
                matrices[index] += 2 * (block.matrix(ds[block.used]) @ at.matrices[index])
        return self.tangent(Factors(free, roots, tuple(matrices)))

    def moved(self, step: Factors) -> AugmentedLagrangian:
        """Return f at the point that a step leads to."""
        there = self.at.plus(step)
        matrices = tuple(
            on_spheres(V, length)
            for V, length in zip(there.matrices, self.program.lengths, strict=True)
        )
        there = Factors(there.free, there.roots, matrices)
        return AugmentedLagrangian(self.program, there, self.z, self.sigma)


def on_spheres(V: FloatArray, length: FloatArray) -> FloatArray:
    """Return V with the rows that have a length scaled to it."""
    norms = np.linalg.norm(V, axis=1)
    scale = np.where(np.isnan(length), 1.0, length / np.where(norms > 0, norms, 1.0))
    return V * scale[:, None]


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where the minimiser stopped."""

    f: AugmentedLagrangian
    steps: int
    converged: bool


def minimise(
    f: AugmentedLagrangian, tol: float, max_steps: int, stopped: Callable[[], bool]
) -> Minimum:
    """Return a point where the norm of the gradient is at most `tol`, or where it stopped falling.

    Parameters
    ----------
    f
        The function at the start.
    tol
        The norm of the gradient that is asked for.
    max_steps
        Steps of the trust region at most.
    stopped
        Says when the time is over.
    """
    size = max(f.at.norm(), 1.0)
    radius = size / 8
    for count in range(max_steps):
        norm = f.gradient.norm()
        if norm <= tol:
            return Minimum(f, count, True)
        if stopped():
            return Minimum(f, count, False)
        step, promised = _steihaug(f, radius, norm, tol, stopped)
        new = f.moved(step)
        fall = f.value - new.value
        noise = NOISE * (f.size + new.size)
        # Falls that rounding hides are judged by the gradient.
        if promised <= noise:
            if new.gradient.norm() >= norm:
                return Minimum(f, count, False)
            ratio = 1.0
        else:
            ratio = fall / promised
        length = step.norm()
        if ratio < 0.25:
            radius = length / 4
        elif ratio > 0.75 and length > 0.9 * radius:
            radius = min(2 * radius, size)
        if ratio > ACCEPTED_RATIO:
            f = new
        elif radius <= 1e-14 * size:
            return Minimum(f, count, False)
    return Minimum(f, max_steps, False)


def _steihaug(
    f: AugmentedLagrangian, radius: float, norm: float, tol: float, stopped: Callable[[], bool]
) -> tuple[Factors, float]:
    """A step within the radius, and by how much the quadratic model of f falls along it."""
    zero = f.gradient.times(0.0)
    step = zero
    H_step = zero
    residual = f.gradient
    direction = residual.times(-1.0)
    rr = norm * norm
    target = norm * min(CG_SHARE, norm / (1.0 + f.size))
    target = max(target, 0.1 * tol)
    for _ in range(MAX_CG_STEPS):
        H_direction = f.hessian(direction)
        curvature = direction.dot(H_direction)
        share = rr / curvature if curvature > 0 else np.inf
        ahead = step.plus(direction, share) if np.isfinite(share) else step
        if curvature <= 0 or ahead.norm() >= radius:
            share = _to_radius(step, direction, radius)
            step = step.plus(direction, share)
            H_step = H_step.plus(H_direction, share)
            break
        step = ahead
        H_step = H_step.plus(H_direction, share)
        residual = residual.plus(H_direction, share)
        new = residual.dot(residual)
        if np.sqrt(new) <= target or stopped():
            break
        direction = direction.times(new / rr).plus(residual, -1.0)
        rr = new
    return step, -(f.gradient.dot(step) + step.dot(H_step) / 2)


def _to_radius(step: Factors, direction: Factors, radius: float) -> float:
    """The t >= 0 with ||step + t direction|| = radius."""
    a = direction.dot(direction)
    b = step.dot(direction)
    c = step.dot(step) - radius * radius
    return (-b + float(np.sqrt(max(b * b - a * c, 0.0)))) / a
