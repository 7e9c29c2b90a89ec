"""Mehrotra's interior-point method for a quadratic program over a box cut by a plane, cheap where H has low rank.

    minimise  x'Hx/2 + c'x   over   x - s = lower,  x + t = upper,  a'x = offset,   s, t >= 0

with multipliers z of s, v of t and nu of the plane. A Newton step towards s z = t v = mu solves

    [H + D  a] [dx ]   [rhs         ]
    [a'     0] [dnu] = [offset - a'x],      D = z / s + v / t  (diagonal)

H = S K S' is known by points: with E = S'D^-1 S (diagonal), the solution of (H + D) x = r has the
point coefficients

    p = S'x = (K + E^-1)^-1 E^-1 S'D^-1 r,      x = D^-1 (r - S K p)

so a pair of variables of one point costs nothing, and where K = L L' has low rank, (K + E^-1)^-1
comes from I + L'E L. s and t are iterates of their own: as differences from x they would lose the
digits that matter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from klopt.arrays import FloatArray
from klopt.numerics.box_qp.quadratic import BoxQP, SignedGram

__all__ = ["Interior", "interior_point"]

# What is added to D, relative to the largest diagonal entry of H.
RIDGE = 1e-14
# After so many iterations without progress the numbers have run out.
PATIENCE = 6

# The second argument says whether a few digits are enough.
Solve = Callable[[FloatArray, bool], FloatArray]


@dataclass(frozen=True, eq=False)
class Interior:
    """A point strictly inside the box with its gradient, slacks and multipliers; a missing bound has multiplier 0."""

    x: FloatArray
    g: FloatArray
    nu: float
    s: FloatArray
    t: FloatArray
    z: FloatArray
    v: FloatArray
    error: float = np.inf
    """The largest of the relative errors: complementarity, stationarity, plane."""


def interior_point(qp: BoxQP, tol: float, spend: Callable[[], bool]) -> Interior:
    """Return the best point met; every variable must have room to move. `spend()` is asked before each iteration."""
    H, a = qp.H, np.zeros_like(qp.c) if qp.box.normal is None else qp.box.normal
    below, above = np.isfinite(qp.box.lower), np.isfinite(qp.box.upper)
    factorise = _factoriser(H)
    here = best = _start(qp, below, above)
    waiting = 0
    while best.error > tol and waiting <= PATIENCE and spend():
        D = here.z / here.s + here.v / here.t + RIDGE * H.scale
        solve = factorise(D)
        if solve is None:
            break
        here = _step(qp, here, solve, a, below, above)
        if not np.isfinite(here.error):
            break
        waiting = 0 if here.error < 0.9 * best.error else waiting + 1
        best = min(best, here, key=lambda point: point.error)
    return best


def _start(qp: BoxQP, below: FloatArray, above: FloatArray) -> Interior:
    """Near the corner of the box at a distance natural to the data, with equal products."""
    n = qp.c.size
    natural = float(np.abs(qp.c).max(initial=0.0)) / qp.H.scale
    if qp.box.normal is not None:
        natural = max(natural, abs(qp.box.offset) / (float(np.abs(qp.box.normal).sum()) or 1.0))
    natural = natural or 1.0
    room = np.minimum(natural, (qp.box.upper - qp.box.lower) / 2)
    x = np.where(below, qp.box.lower + room, np.where(above, qp.box.upper - room, 0.0))
    g = qp.gradient(x)
    s, t = np.where(below, x - qp.box.lower, 1.0), np.where(above, qp.box.upper - x, 1.0)
    gradient = float(np.abs(g).max(initial=0.0)) or 1.0
    z, v = np.where(below, gradient, 0.0), np.where(above, gradient, 0.0)
    return Interior(x, g, 0.0, s, t, z, v) if n else Interior(x, g, 0.0, s, t, z, v, 0.0)


def _step(
    qp: BoxQP, here: Interior, solve: Solve, a: FloatArray, below: FloatArray, above: FloatArray
) -> Interior:
    """One predictor-corrector step."""
    s, t, z, v = here.s, here.t, here.z, here.v
    count = int(below.sum()) + int(above.sum()) or 1
    mu = float(s @ z + t @ v) / count
    stationarity = here.g + here.nu * a - z + v
    miss = qp.box.offset - float(a @ here.x) if qp.box.normal is not None else 0.0
    plane = solve(a, False) if a.any() else a
    bend = float(a @ plane) or 1.0

    def direction(
        low: FloatArray, high: FloatArray, rough: bool
    ) -> tuple[FloatArray, float, FloatArray, FloatArray]:
        p = solve(low / s - high / t - stationarity, rough)
        dnu = (float(a @ p) - miss) / bend
        dx = p - dnu * plane
        return (
            dx,
            dnu,
            np.where(below, (low - z * dx) / s, 0.0),
            np.where(above, (high + v * dx) / t, 0.0),
        )

    def longest(dx: FloatArray, dz: FloatArray, dv: FloatArray) -> float:
        moves = (s, dx * below), (t, -dx * above), (z, dz), (v, dv)
        return min(float(np.min(-var[d < 0] / d[d < 0], initial=np.inf)) for var, d in moves)

    dx, _, dz, dv = direction(-s * z, -t * v, rough=True)
    reach = min(1.0, longest(dx, dz, dv))
    then = (s + reach * dx * below) @ (z + reach * dz) + (t - reach * dx * above) @ (v + reach * dv)
    aim = mu * (float(then) / count / mu) ** 3 if mu else 0.0
    low, high = (
        np.where(below, aim - s * z - dx * dz, 0.0),
        np.where(above, aim - t * v + dx * dv, 0.0),
    )
    dx, dnu, dz, dv = direction(low, high, rough=False)
    length = min(1.0, 0.995 * longest(dx, dz, dv))
    tiny = np.finfo(float).tiny
    x = here.x + length * dx
    s, t = np.maximum(s + length * dx * below, tiny), np.maximum(t - length * dx * above, tiny)
    z, v, nu = z + length * dz, v + length * dv, here.nu + length * dnu
    g = qp.gradient(x)
    return Interior(x, g, nu, s, t, z, v, _error(qp, x, g, nu, s, t, z, v, a))


def _error(
    qp: BoxQP,
    x: FloatArray,
    g: FloatArray,
    nu: float,
    s: FloatArray,
    t: FloatArray,
    z: FloatArray,
    v: FloatArray,
    a: FloatArray,
) -> float:
    curve = g - qp.c
    terms = float(np.abs(x) @ (np.abs(curve) / 2 + np.abs(qp.c)))
    gradient = float(np.abs(g + nu * a - z + v).max()) / (
        float(np.abs(qp.c).max() + np.abs(curve).max()) or 1.0
    )
    miss = abs(float(a @ x) - qp.box.offset) / (
        float(np.abs(a) @ np.abs(x)) + abs(qp.box.offset) or 1.0
    )
    return max(float(s @ z + t @ v) / (terms or 1.0), gradient, miss)


def _factoriser(H: SignedGram) -> Callable[[FloatArray], Solve | None]:
    """Return the function that takes D to the solver of (H + D) x = r, or to None where Cholesky fails."""
    L = _low_rank_factor(H.K)

    def factorise(D: FloatArray) -> Solve | None:
        E = np.maximum(H.diagonal(1 / D), 1e-200)  # 0 for a point without variables
        points = _point_solver(H.K, L, E)

        def once(r: FloatArray) -> FloatArray:
            assert points is not None
            p, Kp = points(H.gather(r / D) / E)
            x = (r - H.spread(Kp)) / D
            # Where D is small this difference has no digits left; the coefficients p have.
            return x + H.spread((p - H.gather(x)) / E) / D

        def solve(r: FloatArray, rough: bool) -> FloatArray:
            x = once(r)
            return x if rough else x + once(r - H.matvec(x) - D * x)

        return None if points is None else solve

    return factorise


def _point_solver(
    K: FloatArray, L: FloatArray | None, E: FloatArray
) -> Callable[[FloatArray], tuple[FloatArray, FloatArray]] | None:
    """Return the function r -> (p, Kp) with p = (K + E^-1)^-1 r, by way of L where K = L L'."""
    from scipy.linalg.blas import dsyrk
    from scipy.linalg.lapack import dpotrf, dpotrs

    A = K.copy().T if L is None else dsyrk(1.0, (L * np.sqrt(E)[:, None]).T)
    A.T.flat[:: len(A) + 1] += 1 / E if L is None else 1.0
    factor, failed = dpotrf(A, lower=0, overwrite_a=1, clean=0)
    if failed:
        return None

    def dense(r: FloatArray) -> tuple[FloatArray, FloatArray]:
        p = dpotrs(factor, r, lower=0)[0]
        return p, K @ p

    def thin(r: FloatArray) -> tuple[FloatArray, FloatArray]:
        assert L is not None
        p = E * (r - L @ dpotrs(factor, L.T @ (E * r), lower=0)[0])
        return p, L @ (L.T @ p)

    return dense if L is None else thin


def _low_rank_factor(K: FloatArray) -> FloatArray | None:
    """L with K = L L' up to rounding where L has few columns, else None; every fourth point tells whether to try."""
    from scipy.linalg.lapack import dpstrf

    if len(K) < 128:
        return None
    for part, most in ((K[::4, ::4], len(K) // 6), (K, len(K) // 3)):
        smallest = 1e-10 * (float(part.diagonal().max()) or 1.0)
        lower, pivots, rank, _ = dpstrf(part.copy().T, tol=smallest, lower=1, overwrite_a=1)
        if rank > most:
            return None
    L = np.zeros((len(K), int(rank)))
    L[pivots - 1] = np.tril(lower[:, : int(rank)])
    return L
