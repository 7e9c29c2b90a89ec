"""Mehrotra's interior-point method for a quadratic program over a box cut by a plane.

    minimise  x'Hx/2 + c'x   over   x - s = lower,  x + t = upper,  a'x = offset,   s, t >= 0

with multipliers z of s, v of t and nu of the plane. A Newton step towards s z = t v = mu solves

    [H + D  a] [dx ]   [rhs         ]
    [a'     0] [dnu] = [offset - a'x],      D = z / s + v / t  (diagonal)

twice with one factorisation: the predictor aims at mu = 0 and shows how far mu can be lowered, the
corrector aims there and allows for the products ds dz, dt dv that the predictor left out (Mehrotra,
1992).

H = S K S' is known by points: with E = S'D^-1 S (diagonal), the solution of (H + D) x = r has the
point coefficients

    p = S'x = (K + E^-1)^-1 E^-1 S'D^-1 r,      x = D^-1 (r - S K p)

so a pair of variables of one point costs nothing, and where K = L L' has low rank, (K + E^-1)^-1
comes from I + L'E L. s and t are iterates of their own: as differences from x they would lose the
digits that matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray
from klopt.numerics.box_qp.program import BoxQP, SignedGram

__all__ = ["InteriorIterate", "interior_iterates", "interior_point"]

RIDGE = 1e-14
"""What is added to D, relative to the largest diagonal entry of H."""
BOUNDARY_FRACTION = 0.995
"""The share of the way to the boundary that a step may go."""
MAX_IDLE_ITERATIONS = 6
"""After so many iterations without progress rounding is all that is left."""
SMALLEST_NORMAL = float(np.finfo(float).tiny)
"""The smallest positive float with all its digits: slacks stay positive."""
MIN_POINTS_FOR_LOW_RANK = 128
"""Below so many points a factorisation of K itself is cheap."""

Mask = npt.NDArray[np.bool_]
Solve = Callable[[FloatArray, bool], FloatArray]
"""The map r -> (H + D)^-1 r; the second argument says whether a few digits are enough."""
PointSolve = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""The map r -> (p, Kp) with p = (K + E^-1)^-1 r."""


@dataclass(frozen=True, eq=False)
class InteriorIterate:
    """A point strictly inside the box with its gradient, slacks and multipliers.

    A bound that is infinite has the multiplier 0.
    """

    x: FloatArray
    g: FloatArray
    nu: float
    s: FloatArray
    t: FloatArray
    z: FloatArray
    v: FloatArray
    error: float = np.inf
    """The largest of the relative errors: complementarity, stationarity, plane."""


class _Direction(NamedTuple):
    """A Newton direction; that of s is dx, that of t is -dx."""

    dx: FloatArray
    dnu: float
    dz: FloatArray
    dv: FloatArray


def _unlimited() -> bool:
    return True


def interior_point(qp: BoxQP, tol: float, spend: Callable[[], bool]) -> InteriorIterate:
    """Return the best point met, the first whose error is at most `tol`.

    Every variable must be able to move; `spend()` is asked before each iteration.
    """
    iterates = interior_iterates(qp, spend)
    best = next(iterates)
    while best.error > tol:
        here = next(iterates, None)
        if here is None:
            break
        best = min(best, here, key=lambda iterate: iterate.error)
    return best


def interior_iterates(
    qp: BoxQP, spend: Callable[[], bool] = _unlimited, start: FloatArray | None = None
) -> Iterator[InteriorIterate]:
    """Yield the iterates until rounding is all that is left or `spend()` says no.

    `start` lies strictly between the bounds, on the plane or not; by default it is chosen near the
    corner of the box, at a distance natural to the data.
    """
    method = _PredictorCorrector(qp)
    factorise = _factoriser(qp.H)
    here = method.with_multipliers(method.near_corner() if start is None else start)
    yield here

    least_error = here.error
    idle = 0
    while idle <= MAX_IDLE_ITERATIONS and spend():
        D = here.z / here.s + here.v / here.t + RIDGE * qp.H.scale
        solve = factorise(D)
        if solve is None:  # D spans so many orders of magnitude that H + D is indefinite in floats
            return
        here = method.step(here, solve)
        if not np.isfinite(here.error):
            return
        idle = 0 if here.error < 0.9 * least_error else idle + 1
        least_error = min(least_error, here.error)
        yield here


@dataclass(frozen=True, eq=False)
class _PredictorCorrector:
    """The steps of the method for one program."""

    qp: BoxQP

    @cached_property
    def a(self) -> FloatArray:
        """The plane's normal, zeros without a plane."""
        normal = self.qp.box.normal
        return np.zeros_like(self.qp.c) if normal is None else normal

    @cached_property
    def below(self) -> Mask:
        """Which variables have a lower bound."""
        return np.isfinite(self.qp.box.lower)

    @cached_property
    def above(self) -> Mask:
        """Which variables have an upper bound."""
        return np.isfinite(self.qp.box.upper)

    @cached_property
    def bounds(self) -> int:
        """The number of bounds, 1 where there are none."""
        return int(self.below.sum()) + int(self.above.sum()) or 1

    def near_corner(self) -> FloatArray:
        """A point near the corner of the box at a distance natural to the data."""
        qp = self.qp
        box = qp.box
        natural = float(np.abs(qp.c).max(initial=0.0)) / qp.H.scale
        if box.normal is not None:
            of_plane = abs(box.offset) / (float(np.abs(box.normal).sum()) or 1.0)
            natural = max(natural, of_plane)
        natural = natural or 1.0
        inset = np.minimum(natural, (box.upper - box.lower) / 2)
        from_above = np.where(self.above, box.upper - inset, 0.0)
        return np.where(self.below, box.lower + inset, from_above)

    def with_multipliers(self, x: FloatArray) -> InteriorIterate:
        """The iterate at x whose multipliers are all as large as the gradient."""
        box = self.qp.box
        g = self.qp.gradient(x)
        s = np.where(self.below, x - box.lower, 1.0)
        t = np.where(self.above, box.upper - x, 1.0)
        multiplier = float(np.abs(g).max(initial=0.0)) or 1.0
        z = np.where(self.below, multiplier, 0.0)
        v = np.where(self.above, multiplier, 0.0)
        # Nobody measures a start; without variables it is the answer.
        error = np.inf if x.size else 0.0
        return InteriorIterate(x, g, 0.0, s, t, z, v, error)

    def step(self, here: InteriorIterate, solve: Solve) -> InteriorIterate:
        """One predictor-corrector step; `solve` knows (H + D)^-1."""
        below = self.below
        above = self.above
        s = here.s
        t = here.t
        z = here.z
        v = here.v
        mu = float(s @ z + t @ v) / self.bounds
        newton = _NewtonSystem(self, here, solve)

        # Predictor: aims at mu = 0; a few digits are enough to see how far that goes.
        dx, _, dz, dv = newton.direction(-s * z, -t * v, rough=True)
        reach = min(1.0, newton.longest(dx, dz, dv))
        s_ahead = s + reach * dx * below
        t_ahead = t - reach * dx * above
        mu_ahead = float(s_ahead @ (z + reach * dz) + t_ahead @ (v + reach * dv)) / self.bounds
        # Mehrotra's rule: the better the predictor, the nearer to 0 the corrector aims.
        target = mu * (mu_ahead / mu) ** 3 if mu else 0.0

        # Corrector: the target, less the products that the predictor left out.
        of_lower = np.where(below, target - s * z - dx * dz, 0.0)
        of_upper = np.where(above, target - t * v + dx * dv, 0.0)
        dx, dnu, dz, dv = newton.direction(of_lower, of_upper, rough=False)
        length = min(1.0, BOUNDARY_FRACTION * newton.longest(dx, dz, dv))

        x = here.x + length * dx
        s = np.maximum(s + length * dx * below, SMALLEST_NORMAL)
        t = np.maximum(t - length * dx * above, SMALLEST_NORMAL)
        z = z + length * dz
        v = v + length * dv
        nu = here.nu + length * dnu
        g = self.qp.gradient(x)
        error = self._error(x, g, nu, float(s @ z + t @ v), v - z)
        return InteriorIterate(x, g, nu, s, t, z, v, error)

    def _error(
        self, x: FloatArray, g: FloatArray, nu: float, products: float, multipliers: FloatArray
    ) -> float:
        """The largest of the relative errors.

        Parameters
        ----------
        x, g, nu
            The point, its gradient and the multiplier of the plane.
        products
            s'z + t'v, what complementarity leaves.
        multipliers
            v - z, the part of the bounds in the stationarity.
        """
        c = self.qp.c
        a = self.a
        offset = self.qp.box.offset
        curved = g - c
        value_terms = float(np.abs(x) @ (np.abs(curved) / 2 + np.abs(c)))
        gradient_terms = float(np.abs(c).max() + np.abs(curved).max())
        plane_terms = float(np.abs(a) @ np.abs(x)) + abs(offset)

        complementarity = products / (value_terms or 1.0)
        stationarity = float(np.abs(g + nu * a + multipliers).max()) / (gradient_terms or 1.0)
        plane = abs(float(a @ x) - offset) / (plane_terms or 1.0)
        return max(complementarity, stationarity, plane)


class _NewtonSystem:
    """The linear system of one iterate, solved for several right hand sides."""

    def __init__(self, method: _PredictorCorrector, here: InteriorIterate, solve: Solve) -> None:
        a = method.a
        box = method.qp.box
        self.method = method
        self.here = here
        self.solve = solve
        self.positive = np.concatenate([here.s, here.t, here.z, here.v])
        self.stationarity = here.g + here.nu * a - here.z + here.v
        # A step of length 1 puts x on the plane, and later steps stay there.
        self.shortfall = 0.0
        if box.normal is not None:
            self.shortfall = box.offset - float(a @ here.x)
        self.along_normal = solve(a, False) if a.any() else a
        self.normal_curvature = float(a @ self.along_normal) or 1.0

    def direction(self, of_lower: FloatArray, of_upper: FloatArray, rough: bool) -> _Direction:
        """The direction in which s z and t v change by what is given, to first order."""
        method = self.method
        here = self.here
        p = self.solve(of_lower / here.s - of_upper / here.t - self.stationarity, rough)
        dnu = (float(method.a @ p) - self.shortfall) / self.normal_curvature
        dx = p - dnu * self.along_normal
        dz = np.where(method.below, (of_lower - here.z * dx) / here.s, 0.0)
        dv = np.where(method.above, (of_upper + here.v * dx) / here.t, 0.0)
        return _Direction(dx, dnu, dz, dv)

    def longest(self, dx: FloatArray, dz: FloatArray, dv: FloatArray) -> float:
        """The longest step that keeps slacks and multipliers nonnegative."""
        ds = dx * self.method.below
        dt = -dx * self.method.above
        change = np.concatenate([ds, dt, dz, dv])
        falling = change < 0
        ratios = -self.positive[falling] / change[falling]
        return float(ratios.min(initial=np.inf))


def _factoriser(H: SignedGram) -> Callable[[FloatArray], Solve | None]:
    """Return the map from D to the solver of (H + D) x = r, or to None where Cholesky fails."""
    L = _low_rank_factor(H.K)

    def factorise(D: FloatArray) -> Solve | None:
        E = np.maximum(H.gathered_diagonal(1 / D), 1e-200)  # 0 for a point without variables
        points = _point_solver(H.K, L, E)
        if points is None:
            return None

        def once(r: FloatArray) -> FloatArray:
            p, Kp = points(H.gather(r / D) / E)
            x = (r - H.spread(Kp)) / D
            # Where D is small this difference has no digits left; the coefficients p have.
            return x + H.spread((p - H.gather(x)) / E) / D

        def solve(r: FloatArray, rough: bool) -> FloatArray:
            x = once(r)
            if rough:
                return x
            # One step of iterative refinement, with H itself where L stood for it.
            return x + once(r - H.matvec(x) - D * x)

        return solve

    return factorise


def _point_solver(K: FloatArray, L: FloatArray | None, E: FloatArray) -> PointSolve | None:
    """Return the map r -> (p, Kp) with p = (K + E^-1)^-1 r, by way of L where K = L L'."""
    dsyrk, dpotrf, dpotrs = _lapack()
    if L is None:
        A = K.copy().T
        A.T.flat[:: len(A) + 1] += 1 / E
    else:
        A = dsyrk(1.0, (L * np.sqrt(E)[:, None]).T)
        A.T.flat[:: len(A) + 1] += 1.0
    factor, failed = dpotrf(A, lower=0, overwrite_a=1, clean=0)
    if failed:
        return None

    def dense(r: FloatArray) -> tuple[FloatArray, FloatArray]:
        p = dpotrs(factor, r, lower=0)[0]
        return p, K @ p

    def thin(r: FloatArray) -> tuple[FloatArray, FloatArray]:
        # The inverse of K + E^-1 by the formula of Sherman, Morrison and Woodbury.
        assert L is not None
        p = E * (r - L @ dpotrs(factor, L.T @ (E * r), lower=0)[0])
        return p, L @ (L.T @ p)

    return dense if L is None else thin


@cache
def _lapack() -> tuple[Any, Any, Any]:
    """L'L, Cholesky's factorisation and solution; for few points an import costs more."""
    from scipy.linalg.blas import dsyrk
    from scipy.linalg.lapack import dpotrf, dpotrs

    return dsyrk, dpotrf, dpotrs


def _low_rank_factor(K: FloatArray) -> FloatArray | None:
    """L with K = L L' up to rounding where L has few columns, else None.

    Every fourth point tells whether the factorisation of all is worth trying.
    """
    from scipy.linalg.lapack import dpstrf

    if len(K) < MIN_POINTS_FOR_LOW_RANK:
        return None
    for part, max_rank in ((K[::4, ::4], len(K) // 6), (K, len(K) // 3)):
        smallest_pivot = 1e-10 * (float(part.diagonal().max()) or 1.0)
        lower, pivots, rank, _ = dpstrf(part.copy().T, tol=smallest_pivot, lower=1, overwrite_a=1)
        if rank > max_rank:
            return None
    # dpstrf permutes the points: row i of its factor belongs to point pivots[i] - 1.
    # Of a kernel that is 0 one column of zeros is kept: BLAS takes no matrix without columns.
    L = np.zeros((len(K), max(int(rank), 1)))
    L[pivots - 1, : int(rank)] = np.tril(lower[:, : int(rank)])
    return L
