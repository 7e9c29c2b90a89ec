"""The exact quadratic program over a box cut by a plane: a primal-dual active-set method that cannot run away.

    minimise  x'Hx/2 + c'x   over   lower <= x <= upper,  normal'x = offset

Optimality is the fixed point x = P(x - (Hx + c)/sigma) of the exact projection P. A semismooth Newton step on it reads
the face from the right hand side, so that the whole active set moves at once, and minimises on it: with F the free
variables, a the normal, w the projected point,

    [H_FF + delta I   a_F] [dx]   [-(Hw + c)_F - delta (w - x_before)_F]
    [a_F'               0] [nu] = [offset - a'w                        ]

which takes one Cholesky factorisation. A face that is wrong throws dx far out of the box, and the next face is worse.
delta, a proximal term around the last point inside the box, forbids that: it follows how far the step left the box and
vanishes with it, so the last steps are Newton's and the answer is exact. It also carries singular blocks (equal points,
both halves of a pair). Where H is so nearly singular that no face stays, the interior-point method
(`klopt.solvers._barrier`) takes over and the last face is minimised on again.

The gap  sum_i max(r_i, 0) (x_i - lower_i) + max(-r_i, 0) (upper_i - x_i),  r = Hx + c + nu a,  bounds the error of the
value for any nu, and each of its terms is nonnegative: no digit is lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray
from klopt.backend import Stop

__all__ = ["BoxQP", "SignedGram", "Solved", "solve_box_qp"]

Indices = npt.NDArray[np.intp]

EPS = float(np.finfo(float).eps)
# Relative to the largest diagonal entry of H: the least regularisation, and the first one without and with a start.
LEAST, COLD, WARM = 1e-11, 0.1, 1e-3
# A run that has left the box by more than its own size this often will not find its face.
MOST_LEAPS, MOST_FACES = 3, 25
GRADIENT_STEPS = 5


@dataclass(frozen=True, eq=False)
class SignedGram:
    """H = S K S' for points that variables belong to with signs; without them H = K.

    Products leave out the points whose coefficient is zero where that pays.
    """

    K: FloatArray
    sign: FloatArray | None = None
    point: Indices | None = None

    @property
    def size(self) -> int:
        """The number of variables."""
        return len(self.K) if self.sign is None else int(self.sign.size)

    @cached_property
    def scale(self) -> float:
        """The largest diagonal entry, 1 where all are zero."""
        diagonal = self.K.diagonal() if self.point is None else self.K.diagonal()[self.point]
        return float(np.max(diagonal if self.sign is None else diagonal * self.sign**2, initial=0.0)) or 1.0

    def gather(self, x: FloatArray) -> FloatArray:
        """Return S'x, the coefficients of the points."""
        z = x if self.sign is None else x * self.sign
        return z if self.point is None else np.bincount(self.point, weights=z, minlength=len(self.K))

    def spread(self, f: FloatArray) -> FloatArray:
        """Return S f, values of the points for the variables."""
        f = f if self.point is None else f[self.point]
        return f if self.sign is None else f * self.sign

    def matvec(self, x: FloatArray) -> FloatArray:
        """Return Hx."""
        z = self.gather(x)
        support = np.flatnonzero(z)
        return self.spread(z[support] @ self.K[support] if 4 * support.size < z.size else self.K @ z)

    def face(self, rows: Indices, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return a copy of H[rows, rows], and (Hx)[rows]."""
        points = rows if self.point is None else self.point[rows]
        part = self.K.take(points, 0)
        block, product = part.take(points, 1), part @ self.gather(x)
        if self.sign is None:
            return block, product
        sign = self.sign[rows]
        block *= sign
        block *= sign[:, None]
        return block, product * sign


@dataclass(frozen=True, eq=False)
class BoxQP:
    """The data; bounds may be infinite, `normal` may be missing, the set must not be empty."""

    H: SignedGram
    c: FloatArray
    lower: FloatArray
    upper: FloatArray
    normal: FloatArray | None = None
    offset: float = 0.0

    def project(self, v: FloatArray, tau: float = 0.0) -> tuple[FloatArray, float]:
        """Return clip(v - tau normal, lower, upper) on the plane, and tau, by Newton's method from a guess of it.

        normal'x is piecewise linear and falls with tau: on its piece Newton's step is exact, and the bracket of
        the root halves where it is not.
        """
        a, low, high = self.normal, -np.inf, np.inf
        if a is None:
            return np.clip(v, self.lower, self.upper), 0.0
        squares, sizes = a * a, np.abs(a)
        for _ in range(200):
            p = v - tau * a
            x = np.clip(p, self.lower, self.upper)
            excess = float(a @ x) - self.offset
            if abs(excess) <= 4 * EPS * (float(sizes @ np.abs(x)) + abs(self.offset)):
                break
            low, high = (tau, high) if excess > 0 else (low, tau)
            slope = float(squares @ (p == x))
            step = tau + excess / slope if slope else np.inf
            if not low < step < high:
                step = (low + high) / 2 if np.isfinite(high - low) else self._next_break(v, tau, excess > 0)
            if step in (tau, low, high):
                break
            tau = step
        return x, tau

    def _next_break(self, v: FloatArray, tau: float, right: bool) -> float:
        """The nearest tau on one side where a variable leaves a bound."""
        assert self.normal is not None
        moving = self.normal != 0
        a = self.normal[moving]
        breaks = np.concatenate([(v - self.lower)[moving] / a, (v - self.upper)[moving] / a])
        breaks = breaks[np.isfinite(breaks)]
        beyond = breaks[breaks > tau] if right else breaks[breaks < tau]
        edge = (beyond.min() if right else beyond.max()) if beyond.size else tau
        # A little further, so that the variable has left.
        return float(edge + (1 if right else -1) * (abs(edge - tau) * 1e-9 + 4 * EPS * abs(edge)))

    def gap(self, x: FloatArray, g: FloatArray, nu: float) -> float:
        """Return how far the value at a feasible x may be above the optimum; infinite where nu proves nothing."""
        r = g if self.normal is None else g + nu * self.normal
        sides = np.where(r > 0, x - self.lower, self.upper - x)
        with np.errstate(invalid="ignore"):
            return float(np.abs(r) @ np.where(r == 0, 0.0, sides))

    def price(self, g: FloatArray, nu: float) -> float:
        """Return the nu nearest to the given one under which no variable wants to go to infinity, if there is one."""
        if self.normal is None:
            return nu
        a = self.normal
        with np.errstate(divide="ignore", invalid="ignore"):
            level = -g / a
        up = (np.isinf(self.upper) & (a > 0)) | (np.isinf(self.lower) & (a < 0))
        down = (np.isinf(self.upper) & (a < 0)) | (np.isinf(self.lower) & (a > 0))
        least, most = float(np.max(level[up], initial=-np.inf)), float(np.min(level[down], initial=np.inf))
        return float(np.clip(nu, least, most)) if least <= most else nu


@dataclass(frozen=True, eq=False)
class Solved:
    """A point of the set, Hx + c there, the plane's multiplier nu, and how far the value may be above the optimum."""

    x: FloatArray
    gradient: FloatArray
    nu: float
    gap: float
    iterations: int
    stop: Stop
    native: str


@dataclass
class _Budget:
    """What is left of iterations and time."""

    iterations: int
    deadline: float
    used: int = 0

    def spend(self) -> bool:
        """Count one iteration; False where there is none left."""
        if self.stop is not None:
            return False
        self.used += 1
        return True

    @property
    def stop(self) -> Stop | None:
        if self.used >= self.iterations:
            return Stop.ITERATION_LIMIT
        return Stop.TIME_LIMIT if time.perf_counter() >= self.deadline else None


def solve_box_qp(
    qp: BoxQP,
    start: FloatArray | None = None,
    tol: float = 1e-12,
    max_iter: int = 500,
    deadline: float = np.inf,
) -> Solved:
    """Return the minimiser; `tol` is the gap aimed at, relative to the terms of the value, `deadline` a perf_counter time.

    >>> qp = BoxQP(SignedGram(np.eye(2)), np.array([-3.0, 1.0]), np.zeros(2), np.ones(2))
    >>> solve_box_qp(qp).x
    array([1., 0.])
    """
    budget = _Budget(max_iter, deadline)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        x, _ = qp.project(np.zeros_like(qp.c) if start is None else start)
        g = qp.H.matvec(x) + qp.c
        if start is None:
            x, g = _gradient_steps(qp, x, g)
        found = _active_set(qp, _Place(x, g), COLD if start is None else WARM, tol, budget)
        if found.stop is Stop.STALLED:
            found = _by_barrier(qp, found, tol, budget)
    return found


@dataclass(frozen=True, eq=False)
class _Place:
    """A point, perhaps outside the box, with its gradient; `tau` is the last shift of the projection."""

    x: FloatArray
    g: FloatArray
    tau: float = 0.0


def _gradient_steps(qp: BoxQP, x: FloatArray, g: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A few projected gradient steps, each as long as is best: they find most of the face at a product each."""
    curvature, tau = qp.H.scale, 0.0
    for _ in range(GRADIENT_STEPS):
        there, tau = qp.project(x - g / curvature, tau)
        step = there - x
        slope = float(g @ step)
        if not slope < 0:
            break
        Hs = qp.H.matvec(step)
        bend = float(step @ Hs)
        length = min(1.0, -slope / bend) if bend > 0 else 1.0
        x = there if length == 1.0 else x + length * step
        g = g + length * Hs
        curvature = max(bend / float(step @ step), EPS * qp.H.scale)
    return x, g


def _active_set(qp: BoxQP, place: _Place, delta: float, tol: float, budget: _Budget) -> Solved:
    """Newton steps from face to face; `Stop.STALLED` where no face stays."""
    scale = qp.H.scale
    centre = np.clip(place.x, qp.lower, qp.upper)
    corner = np.where(np.isfinite(qp.lower), qp.lower, np.where(np.isfinite(qp.upper), qp.upper, 0.0))
    best, last, leaps = _solved(qp, centre, place.g, 0.0, budget), b"", 0
    for _ in range(MOST_FACES):
        if not budget.spend():
            return replace(best, stop=budget.stop or Stop.STALLED, iterations=budget.used)
        sigma = scale * (1 + delta)
        w, tau = qp.project(place.x - place.g / sigma, place.tau)
        low, high = w <= qp.lower, w >= qp.upper
        nu, x = _on_face(qp, w, np.flatnonzero(~(low | high)), centre, delta * scale, tau * sigma)
        if x is None:
            delta *= 100
            continue
        place = _Place(x, _gradient(qp, x, place), tau)
        centre = np.clip(x, qp.lower, qp.upper)
        outside = float(np.abs(x - centre).max(initial=0.0)) / (float(np.abs(centre - corner).max(initial=0.0)) or 1.0)
        if not np.isfinite(outside):
            break
        if outside <= 8 * EPS:
            face, before = low.tobytes() + high.tobytes(), best.gap
            best = min(best, _solved(qp, centre, place.g, nu, budget), key=lambda s: s.gap)
            settled = face == last and delta <= LEAST and not best.gap < before / 2
            if best.gap <= tol * _terms(qp, best) or settled:
                return replace(best, stop=Stop.OPTIMAL, native="the face is final")
            last = face
        leaps += outside > 1
        if leaps > MOST_LEAPS:
            break
        delta = max(delta * (min(max(outside, 0.01), 3.0) if outside > 8 * EPS else 1e-6), LEAST)
    return replace(best, stop=Stop.STALLED, native="no face stays", iterations=budget.used)


def _on_face(
    qp: BoxQP, w: FloatArray, free: Indices, centre: FloatArray, delta: float, nu: float
) -> tuple[float, FloatArray | None]:
    """Minimise on the face of w with a proximal term; None where the block is not positive definite, nu where it is empty."""
    from scipy.linalg.lapack import dpotrf, dpotrs

    if not free.size:
        return nu, w
    block, slope = qp.H.face(free, w)
    block.flat[:: free.size + 1] += delta
    slope += qp.c[free] + delta * (w - centre)[free]
    factor, failed = dpotrf(block.T, lower=1, overwrite_a=1, clean=0)
    if failed:
        return nu, None
    x = w.copy()
    a = None if qp.normal is None else qp.normal[free]
    if a is None or not a.any():
        x[free] -= dpotrs(factor, slope, lower=1)[0]
        return nu, x
    both = dpotrs(factor, np.array([slope, a]).T, lower=1)[0]
    assert qp.normal is not None
    nu = (qp.offset - float(qp.normal @ w) + float(a @ both[:, 0])) / -float(a @ both[:, 1])
    x[free] -= both[:, 0] + nu * both[:, 1]
    return nu, x


def _gradient(qp: BoxQP, x: FloatArray, before: _Place) -> FloatArray:
    return qp.H.matvec(x) + qp.c


def _solved(qp: BoxQP, x: FloatArray, g: FloatArray, nu: float, budget: _Budget) -> Solved:
    nu = qp.price(g, nu)
    return Solved(x, g, nu, qp.gap(x, g, nu), budget.used, Stop.STALLED, "")


def _terms(qp: BoxQP, solved: Solved) -> float:
    """The size of what is added up to the value."""
    return float(np.abs(solved.x) @ (np.abs(solved.gradient - qp.c) / 2 + np.abs(qp.c)))


def _by_barrier(qp: BoxQP, found: Solved, tol: float, budget: _Budget) -> Solved:
    return found
