"""Proposes points and multipliers next to the central path of a cone program, with room on both sides.

    minimise  x'Px/2 + c'x   subject to  s = b - Ax in K,        r = Px + c + A'y,  y in K*

On the central path s o y = mu e: both lie inside their cones, s by at least mu / ||y||, y by at least
mu / ||s||, and the gap is mu times the degree of K. So rounding has room on both sides where a least
repair of an optimum would leave none.

**Smoothing.** For any v and t > 0 there is exactly one pair with v = s - t y and s o y = mu e,

    s = (v + (v^2 + 4 t mu e)^(1/2)) / 2,        y = mu s^-1,

in the Jordan algebra of K (numbers, second-order cones, symmetric matrices). So v = s - t y of an
approximate solution gives a central pair, and only the linear equations are left to be solved. With
ds = b - Ax - s - A dx and dy = -mu Q ds, Q = Q(s^-1) the quadratic representation, Newton's step is

    (P + mu A'QA) dx + E'dz = -r + mu A'Q(b - Ax - s),        E dx = e - Ex,

E x = e being the rows of the zero cone; these are the equations of Nesterov and Todd at a central pair.
The step moves v, not s and y: the next pair is central again, however long the step.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import attrs
import numpy as np
from scipy import sparse

from klopt.arrays import EPS, FloatArray
from klopt.model.cones import Cones, smat, svec, svec_entries, svec_weights
from klopt.model.fill import can_be_factored
from klopt.model.forms import ConeForm
from klopt.proof.time_budget import exhausted, remaining
from klopt.witness.cone_interior import is_sparse, scaling_at

Map = Callable[[FloatArray], FloatArray]

__all__ = ["GAPS", "CentralPair", "central_pairs"]

GAPS = (1e-8, 1e-7, 6e-7)
"""The gaps that are aimed at, relative to 1 + |value|."""
FINE_GAP = 5e-10
"""The first gap of small programs: there the path can be followed further."""
SMALL = 300
"""Rows of a small program."""
FACTORS = (1.0, 1e2, 1e4, 1e6)
"""Multiples of the target at which the path may be entered: up to a gap of about one percent."""
MAX_STEPS = 60
"""Newton steps towards one gap ..."""
MAX_IDLE_STEPS = 12
"""... and for one mu on the way, of which"""
SLOW = 0.4
"""... counts one that brings b - Ax - s below ..."""
PROGRESS = 0.7
"""... this multiple of what it was."""
CONVERGED = 1e-4
"""A Newton decrement that is small enough, once it no longer falls ..."""
ROUNDING_DECREMENT = 1e-7
"""... or at once."""
MAX_KERNEL_ROWS = 400
"""Rows of a semidefinite block up to which Q is formed on them."""
MAX_SECONDS_OF_FAILURES = 0.3
"""Seconds after which no other gap is tried, if all so far have failed."""
MAX_ENTRIES = 4e7
"""Entries of a dense array on the way."""
MAX_FLOPS = 2e10
"""Operations that one step may take."""
MAX_ORTHOGONAL_FLOPS = 4.5e7
"""Operations up to which Newton's equations are solved by an orthogonal factor."""
FREE = 1e-30
"""A scaled diagonal entry below which a variable counts as free."""
DENSE_SHARE = 0.1
"""Share of entries beyond which equations count as dense."""
REGULARISATION = 1e-13
"""What is added to the diagonal of Newton's matrix, scaled to 1."""
SPARSE_REGULARISATION = 1e-9
"""The same for zeros on the diagonal of a sparse matrix that is factored without pivoting."""
REFINEMENTS = 12
"""Steps of iterative refinement."""


class Pace(NamedTuple):
    """How boldly the path is followed, by Newton decrements, lengths in the local norm."""

    start: float
    """The decrement at which the path is entered."""
    longest: float
    """The length beyond which a step is damped."""
    near: float
    """The decrement below which mu falls ..."""
    decrease: float
    """... by this factor."""


FAST = Pace(30.0, 2.0, 0.9, 0.1)
CAREFUL = Pace(2.0, 0.9, 0.3, 0.3)


@dataclass(frozen=True, eq=False)
class CentralPair:
    """A point and multipliers inside their cones whose equations hold up to rounding."""

    x: FloatArray
    y: FloatArray
    gap: float = 0.0
    """The gap aimed at, relative to 1 + |value|."""


def central_pairs(form: ConeForm, x: FloatArray, y: FloatArray) -> Iterator[CentralPair]:
    """Yield pairs near the central path with different gaps, from an approximate solution.

    >>> form = ConeForm(c=[1.0], A=[[-1.0], [0.0], [-1.0]], b=[0.0, 2**0.5, 0.0], cones=Cones(psd=(2,)))
    >>> pair = next(central_pairs(form, np.ones(1), np.array([0.5, -(2**-0.5), 0.5])))
    >>> pair.x.round(6), pair.y.round(6)
    (array([1.]), array([ 0.5     , -0.707107,  0.5     ]))
    """
    if not form.cones.is_symmetric or not (np.isfinite(x).all() and np.isfinite(y).all()):
        return
    if not is_affordable(form):
        return
    value = abs(float(form.c @ x))
    degree = _degree(form.cones)
    if not degree:
        return
    # Rows with b = inf say nothing.
    stated = np.isfinite(form.b)
    if not stated.all():
        cones = attrs.evolve(form.cones, nonneg=form.cones.nonneg - int(np.sum(~stated)))
        form = attrs.evolve(form, A=form.A.tocsr()[stated].tocsc(), b=form.b[stated], cones=cones)
    path = _Path(form, x, y[stated])
    began = time.perf_counter()
    for gap in GAPS if form.b.size > SMALL else (FINE_GAP, *GAPS):
        mu = gap * (1 + value) / degree
        # Where there is no central path, a larger gap seldom helps.
        lost = time.perf_counter() - began > MAX_SECONDS_OF_FAILURES
        if lost and path.failed and path.reached > 2 * mu:
            continue
        found = path.towards(mu)
        if found is None:
            continue
        multipliers = np.zeros(stated.size)
        multipliers[stated] = found.y
        yield CentralPair(found.x, multipliers, gap)
        if exhausted():
            return


def is_affordable(form: ConeForm) -> bool:
    """Return whether one Newton step takes few enough operations and little enough memory."""
    m, n = form.A.shape
    if not form.cones.psd:
        return True
    flops = float(n) ** 3 / 3
    for order in form.cones.psd:
        flops += 4 * float(n) * order**3 / len(form.cones.psd) + float(n) ** 2 * order**2 / 2
    return flops <= MAX_FLOPS and float(n) * n <= MAX_ENTRIES and float(m) * n <= 4 * MAX_ENTRIES


def _degree(cones: Cones) -> int:
    return cones.nonneg + sum(1 for size in cones.soc if size) + sum(cones.psd)


class _Path:
    """The central path of a form near a pair (x, y)."""

    def __init__(self, form: ConeForm, x: FloatArray, y: FloatArray) -> None:
        self.form = form
        cones = form.cones
        p = cones.zero
        rows = form.A.tocsr()
        self.E = sparse.csr_array(rows[:p])
        self.A = sparse.csc_array(rows[p:])
        self.e = form.b[:p]
        self.b = form.b[p:]
        self.cone = _Algebra(_without_zero(cones))
        s = self.b - self.A @ x
        self.t = self.cone.balance(s, y[p:])
        self.newton = _Newton(self.cone, self.A, self.E, form.P)
        self.place = (x, y[:p], s - self.t * y[p:])
        # The smallest mu so far, and whether Newton's method has failed below it.
        self.reached = np.inf
        self.failed = False

    def towards(self, target: float) -> CentralPair | None:
        """Newton's method for the pair with s o y = mu e, mu = target; None where it fails."""
        began = time.perf_counter()
        for pace in (FAST, CAREFUL):
            state, step = self._first(target, pace.start)
            # Answers that are far from optimal are not solved here.
            if step is None or not step.decrement < FAST.start:
                return None
            best = self._follow(state, step, target, pace)
            if best is not None:
                self.place = (best.x, best.z, best.v)
                self.reached = min(self.reached, target)
                return CentralPair(best.x, np.concatenate((best.z, best.y)))
            self.failed = True
            if exhausted() or time.perf_counter() - began > MAX_SECONDS_OF_FAILURES:
                return None
        return None

    def _first(self, target: float, decrement: float) -> tuple[_State, _Step | None]:
        """The smallest mu at which the decrement is small enough, or smallest."""
        best: tuple[_State, _Step | None] | None = None
        smallest = np.inf
        for factor in FACTORS:
            state = self._measure(*self.place, factor * target)
            step = self._step(state)
            if best is None:
                best = (state, step)
            if step is not None and step.decrement < smallest:
                smallest = step.decrement
                best = (state, step)
            if smallest < decrement:
                break
        assert best is not None
        return best

    def _follow(self, state: _State, step: _Step, target: float, pace: Pace) -> _State | None:
        """The pair at the target, from one at a larger mu."""
        mu = state.mu
        best = None
        smallest = np.inf
        idle = 0.0
        last = np.inf
        for _ in range(MAX_STEPS):
            if mu <= target:
                if smallest < CONVERGED and step.error >= smallest:
                    break
                if step.error < smallest:
                    smallest = step.error
                    best = state
                if smallest < ROUNDING_DECREMENT:
                    break
            if exhausted():
                break
            # A step that leaves the region of quadratic convergence is damped.
            length = min(1.0, pace.longest / max(step.decrement, 1e-300))
            place = (
                state.x + length * step.dx,
                state.z + length * step.dz,
                state.v + length * step.dv,
            )
            size = float(np.linalg.norm(state.primal))
            idle += 1 if size > PROGRESS * last else SLOW
            last = size
            if step.decrement < pace.near and mu > target:
                self.place = (state.x, state.z, state.v)
                self.reached = mu
                mu = max(target, pace.decrease * mu)
                idle = 0.0
            # No central path, or none that floats can follow.
            if idle > MAX_IDLE_STEPS:
                break
            state = self._measure(*place, mu)
            found = self._step(state)
            if found is None:
                break
            step = found
        return best if smallest < CONVERGED else None

    def _measure(self, x: FloatArray, z: FloatArray, v: FloatArray, mu: float) -> _State:
        form = self.form
        spectrum = self.cone.decompose(v, self.t, mu)
        primal = self.b - self.A @ x - spectrum.s
        equations = self.e - self.E @ x
        dual = form.curve(x) + form.c + self.A.T @ spectrum.y + self.E.T @ z
        return _State(x, z, v, mu, spectrum.y, spectrum, primal, equations, dual)

    def _step(self, state: _State) -> _Step | None:
        solved = self.newton.solve(state)
        if solved is None:
            return None
        dx, dz, ds = solved
        decrement = state.spectrum.local_norm(ds)
        error = max(decrement, state.spectrum.local_norm(state.primal))
        dv = ds + self.t * state.mu * state.spectrum.quadratic(ds)
        if not (np.isfinite(dx).all() and np.isfinite(dv).all() and np.isfinite(decrement)):
            return None
        return _Step(dx, dz, dv, decrement, error)


@dataclass(frozen=True, eq=False)
class _Step:
    dx: FloatArray
    dz: FloatArray
    dv: FloatArray
    decrement: float
    """The length of ds in the local norm."""
    error: float
    """The larger one of it and of b - Ax - s."""


@dataclass(frozen=True, eq=False)
class _State:
    x: FloatArray
    z: FloatArray
    v: FloatArray
    mu: float
    y: FloatArray
    spectrum: _Spectrum
    primal: FloatArray
    equations: FloatArray
    dual: FloatArray


def _without_zero(cones: Cones) -> Cones:
    """The cones without the zero rows."""
    return Cones(0, cones.nonneg, tuple(size for size in cones.soc if size), cones.psd, 0)


class _Algebra:
    """Splits vectors of a product of symmetric cones into s and y."""

    def __init__(self, cones: Cones) -> None:
        self.cones = cones
        n = cones.nonneg
        self.nonneg = slice(0, n)
        sizes = np.array(cones.soc, dtype=int)
        self.soc = slice(n, n + int(sizes.sum()))
        self.heads = np.cumsum(sizes) - sizes
        self.block = np.repeat(np.arange(sizes.size), sizes)
        self.psd = [block for kind, block in cones.blocks() if kind == "psd"]

    def balance(self, s: FloatArray, y: FloatArray) -> FloatArray:
        """t for each row, so that s and t y are of one size cone by cone."""
        largest_s = float(np.max(np.abs(s), initial=0.0)) or 1.0
        largest_y = float(np.max(np.abs(y), initial=0.0)) or 1.0
        t = np.empty(s.size)
        for kind, block in self.cones.blocks():
            if kind == "psd":
                size_s = np.linalg.norm(s[block]) + 1e-3 * largest_s
                size_y = np.linalg.norm(y[block]) + 1e-3 * largest_y
                t[block] = size_s / size_y
        rest = slice(0, self.soc.stop)
        t[rest] = largest_s / largest_y
        return t

    def decompose(self, v: FloatArray, t: FloatArray, mu: float) -> _Spectrum:
        """The central pair of v, with what Q needs."""
        s = np.empty_like(v)
        y = np.empty_like(v)
        part = self.nonneg
        s[part], y[part] = _split(v[part], t[part], mu)
        rows = self.soc
        if rows.stop > rows.start:
            tail = v[rows].copy()
            tail[self.heads] = 0.0
            norm = np.sqrt(np.bincount(self.block, weights=tail**2))
            head = v[rows][self.heads]
            unit = tail / np.maximum(norm, 1e-300)[self.block]
            tt = t[rows][self.heads]
            s_high, y_low = _split(head + norm, tt, mu)
            s_low, y_high = _split(head - norm, tt, mu)
            for out, high, low in ((s, s_high, s_low), (y, y_low, y_high)):
                entries = ((high - low) / 2)[self.block] * unit
                entries[self.heads] = (high + low) / 2
                out[rows] = entries
        inverses = []
        roots = []
        for block in self.psd:
            values, Q = np.linalg.eigh(smat(v[block]))
            s_values, y_values = _split(values, t[block.start], mu)
            s[block] = svec((Q * s_values) @ Q.T)
            Y = (Q * y_values) @ Q.T
            y[block] = svec(Y)
            inverses.append(Y / mu)
            roots.append(Q / np.sqrt(s_values))
        return _Spectrum(self, s, y, y / mu, inverses, roots)


def _split(v: FloatArray, t: Any, mu: float) -> tuple[FloatArray, FloatArray]:
    """(s, y) with s - t y = v and s y = mu, without cancellation."""
    root = np.sqrt(v * v + 4 * t * mu)
    large = (np.abs(v) + root) / 2
    small = t * mu / large
    s = np.where(v >= 0, large, small)
    y = np.where(v >= 0, small, large) / t
    return s, y


@dataclass(frozen=True, eq=False)
class _Spectrum:
    """A central pair and the inverse of s, by which Q acts."""

    algebra: _Algebra
    s: FloatArray
    y: FloatArray
    inverse: FloatArray
    psd_inverses: list[FloatArray]
    psd_roots: list[FloatArray]

    def quadratic(self, u: FloatArray) -> FloatArray:
        """Q u with Q = Q(s^-1)."""
        algebra = self.algebra
        out = np.empty_like(u)
        part = algebra.nonneg
        out[part] = self.inverse[part] ** 2 * u[part]
        if algebra.heads.size:
            rows = algebra.soc
            w = self.inverse[rows]
            out[rows] = 2 * w * np.bincount(algebra.block, weights=w * u[rows])[algebra.block]
            turned = -u[rows]
            turned[algebra.heads] *= -1
            out[rows] -= self.determinants[algebra.block] * turned
        for block, M in zip(algebra.psd, self.psd_inverses, strict=True):
            out[block] = svec(M @ smat(u[block]) @ M)
        return out

    def local_norm(self, u: FloatArray) -> float:
        """The largest norm of W^-1 u over all cones: s + u lies inside where it is below 1."""
        algebra = self.algebra
        part = algebra.nonneg
        largest = float(np.max(np.abs(self.inverse[part] * u[part]), initial=0.0))
        if algebra.heads.size:
            rows = algebra.soc
            products = u[rows] * self.quadratic(u)[rows]
            squares = np.maximum(np.bincount(algebra.block, weights=products), 0.0)
            largest = max(largest, float(np.sqrt(np.max(squares))))
        for block, root in zip(algebra.psd, self.psd_roots, strict=True):
            largest = max(largest, float(np.linalg.norm(root.T @ smat(u[block]) @ root)))
        return largest

    @property
    def determinants(self) -> FloatArray:
        """det(w) = 1 / det(s) of each second-order cone."""
        algebra = self.algebra
        s = self.s[algebra.soc]
        tail = s.copy()
        tail[algebra.heads] = 0.0
        norm = np.sqrt(np.bincount(algebra.block, weights=tail**2))
        head = s[algebra.heads]
        # det(w) is the product of its spectral values, 1 / (s_0 -+ ||s_1||), without cancellation.
        w = self.inverse[algebra.soc]
        tail_w = w.copy()
        tail_w[algebra.heads] = 0.0
        norm_w = np.sqrt(np.bincount(algebra.block, weights=tail_w**2))
        high = w[algebra.heads] + norm_w
        return np.asarray(high / (head + norm))


class _Schur:
    """A'QA for changing s."""

    def __init__(self, algebra: _Algebra, A: sparse.csc_array) -> None:
        self.algebra = algebra
        self.n = A.shape[1]
        self.flat = sparse.csr_array(A.tocsr()[: self.algebra.soc.stop])
        self.blocks = []
        rows = A.tocsr()
        for block in self.algebra.psd:
            part = sparse.csc_array(rows[block])
            columns = np.flatnonzero(np.diff(part.indptr))
            part = sparse.csc_array(part[:, columns])
            used = np.unique(part.indices)
            self.blocks.append((columns, sparse.csr_array(part.tocsr()[used]), used, part))

    def matrix(self, spectrum: _Spectrum, mu: float) -> Any:
        """mu A'QA: sparse without semidefinite blocks."""
        H: Any = self._flat(spectrum, mu)
        if not self.blocks:
            return H
        H = H.toarray()
        for (columns, part, used, whole), M, root in zip(
            self.blocks, spectrum.psd_inverses, spectrum.psd_roots, strict=True
        ):
            order = len(M)
            n = columns.size
            if used.size <= MAX_KERNEL_ROWS:
                small = part.T @ (part.T @ _kernel(M, used)).T
            elif whole.nnz * order < n * order**2 / 2 and used.size < order**2 / 4:
                small = part.T @ _products(M, whole, used)
            else:
                moved = _congruences(root, whole)
                small = moved.T @ moved
            H[np.ix_(columns, columns)] += mu * small
        return H

    def _flat(self, spectrum: _Spectrum, mu: float) -> sparse.csc_array:
        algebra = self.algebra
        size = algebra.soc.stop
        if not size:
            return sparse.csc_array((self.n, self.n))
        diagonal = np.empty(size)
        diagonal[algebra.nonneg] = spectrum.inverse[algebra.nonneg] ** 2
        rows = algebra.soc
        weighted = self.flat
        if algebra.heads.size:
            determinant = spectrum.determinants[algebra.block]
            diagonal[rows] = determinant
            diagonal[rows][algebra.heads] *= -1
        G = weighted.T @ (sparse.diags_array(diagonal) @ weighted)
        if algebra.heads.size:
            w = spectrum.inverse[rows]
            places = (np.arange(rows.start, rows.stop), algebra.block)
            by_block = sparse.csr_array((w, places), shape=(size, algebra.heads.size))
            R = sparse.csr_array(weighted.T @ by_block)
            G = G + 2 * (R @ R.T)
        return sparse.csc_array(mu * G)


def _kernel(M: FloatArray, used: Any) -> FloatArray:
    """<E_p, M E_q M> for the basis matrices E of the rows used of a block."""
    down, across = svec_entries(len(M))
    r, c = down[used], across[used]
    K = M[np.ix_(r, r)] * M[np.ix_(c, c)] + M[np.ix_(r, c)] * M[np.ix_(c, r)]
    unit = np.where(r == c, np.sqrt(0.5), 1.0)
    return np.asarray(K * unit[:, None] * unit)


def _products(M: FloatArray, part: sparse.csc_array, used: Any) -> FloatArray:
    """svec(M F M) in the rows used, for all columns svec(F) of a block with few entries each."""
    order = len(M)
    down, across = svec_entries(order)
    weight = svec_weights(order)
    # F = sum over entries of its lower triangle, both ways off the diagonal, the diagonal halved.
    half = np.where(down == across, 0.5, 1.0) / weight
    flat = down[used] * order + across[used]
    out = np.empty((used.size, part.shape[1]))
    for j in range(part.shape[1]):
        entries = slice(part.indptr[j], part.indptr[j + 1])
        place = part.indices[entries]
        data = part.data[entries] * half[place]
        U = (M[:, down[place]] * data) @ M[across[place]]
        U = U + U.T
        out[:, j] = U.ravel()[flat]
    return out * weight[used, None]


def _congruences(root: FloatArray, part: sparse.csc_array) -> FloatArray:
    """svec(R'FR) for all columns svec(F) of a block, as columns."""
    order = len(root)
    down, across = svec_entries(order)
    weight = svec_weights(order)
    n = part.shape[1]
    moved = np.empty((n, part.shape[0]))
    step = max(1, int(1e6 / order**2))
    for first in range(0, n, step):
        entries = part[:, first : first + step].toarray().T / weight
        U = np.empty((entries.shape[0], order, order))
        U[:, down, across] = entries
        U[:, across, down] = entries
        half = (U.reshape(-1, order) @ root).reshape(U.shape)
        full = np.matmul(root.T, half)
        moved[first : first + step] = full[:, down, across] * weight
    return moved.T


class _Newton:
    """Solves Newton's equations at changing pairs."""

    def __init__(self, algebra: _Algebra, A: sparse.csc_array, E: sparse.csr_array, P: Any) -> None:
        self.algebra = algebra
        self.A = A
        self.E = E
        self.P = P
        self.schur = _Schur(algebra, A)
        m, n = A.shape
        flops = 4.0 * m * n * n
        # Where it is cheap, an orthogonal factor is worth its twice as many digits.
        self.orthogonal = bool(algebra.psd) and not E.shape[0] and P is None
        self.orthogonal = self.orthogonal and flops <= MAX_ORTHOGONAL_FLOPS and m >= n

    def solve(self, state: _State) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """Return (dx, dz, ds); None where it fails."""
        if self.orthogonal:
            return self._by_orthogonal_factor(state)
        mu = state.mu
        H = self.schur.matrix(state.spectrum, mu)
        if self.P is not None:
            H = H + (self.P if is_sparse(H) else self.P.toarray())
        right = -state.dual + mu * (self.A.T @ state.spectrum.quadratic(state.primal))
        solved = _solve(H, self.E, right, state.equations)
        if solved is None:
            return None
        dx, dz = solved
        return dx, dz, state.primal - self.A @ dx

    def _by_orthogonal_factor(
        self, state: _State
    ) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """With B = W^-1 A = QR: dx = R^-1 (Q'W^-1 rp - R'^-1 r / mu)."""
        from scipy.linalg import qr, solve_triangular

        algebra = self.algebra
        spectrum = state.spectrum
        B = np.zeros(self.A.shape)
        size = algebra.soc.stop
        primal = np.zeros(len(B))
        if size:
            flat = Cones(0, algebra.cones.nonneg, algebra.cones.soc)
            W_inverse = scaling_at(flat, spectrum.s[:size], np.zeros(0), inverse=True)
            B[:size] = W_inverse.apply(self.schur.flat).toarray()
            primal[:size] = W_inverse.apply(state.primal[:size])
        for block, root, (columns, _, _, part) in zip(
            algebra.psd, spectrum.psd_roots, self.schur.blocks, strict=True
        ):
            B[block, columns] = _congruences(root, part)
            primal[block] = svec(root.T @ smat(state.primal[block]) @ root)
        if not np.isfinite(B).all():
            return None
        unit = np.linalg.norm(B, axis=0)
        if not unit.all():
            return None
        Q, R = qr(B / unit, mode="economic", check_finite=False)
        if not R.diagonal().all():
            return None
        along = solve_triangular(R, state.dual / unit, trans="T", check_finite=False) / state.mu
        inside = Q.T @ primal
        dx = solve_triangular(R, inside - along, check_finite=False) / unit
        # The part of the primal residual that no dx takes, and what the dual one asks for.
        moved = primal - Q @ inside + Q @ along
        ds = np.empty_like(moved)
        if size:
            W = scaling_at(flat, spectrum.s[:size], np.zeros(0))
            ds[:size] = W.apply(moved[:size])
        for block, root in zip(algebra.psd, spectrum.psd_roots, strict=True):
            # root = Q s^(-1/2): its inverse is s^(1/2) Q'.
            back = root / np.sum(root * root, axis=0)
            ds[block] = svec(back @ smat(moved[block]) @ back.T)
        return dx, np.zeros(0), ds


def _solve(
    H: Any, E: sparse.csr_array, right: FloatArray, equations: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    """(dx, dz) with H dx + E'dz = right, E dx = equations; None where it fails."""
    n = right.size
    diagonal = H.diagonal()
    largest = float(np.max(np.abs(diagonal), initial=0.0))
    if not 0 < largest < np.inf:
        return None
    # Entries of H differ by many orders: scaled to a unit diagonal.
    unit = 1 / np.sqrt(np.maximum(diagonal, REGULARISATION * largest))
    D = sparse.diags_array(unit)
    F = sparse.csr_array(E @ D)
    both = np.concatenate((right * unit, equations))
    try:
        if is_sparse(H):
            K, solve = _sparse_factor(sparse.csc_array(D @ H @ D), F)
        else:
            K, solve = _dense_factor(H * unit[:, None] * unit, F)
    except (np.linalg.LinAlgError, ValueError, RuntimeError):
        return None
    found = solve(both)
    left = both - K(found)
    # Equations that depend on each other leave a singular factor.
    if not np.isfinite(left).all():
        return None
    for _ in range(REFINEMENTS):
        moved = found + solve(left)
        smaller = both - K(moved)
        if not np.linalg.norm(smaller) < np.linalg.norm(left):
            break
        found, left = moved, smaller
    return unit * found[:n], found[n:]


def _sparse_factor(H: sparse.csc_array, F: sparse.csr_array) -> tuple[Map, Map]:
    """The map of [[H, F'], [F, 0]] and one close to its inverse."""
    n = H.shape[0]
    p = F.shape[0]
    if p and F.nnz > DENSE_SHARE * n * p:
        # Dense equations fill a sparse factor: they are eliminated by their own.
        free = H.diagonal() < FREE
        ridge = np.where(free, 1.0, REGULARISATION)
        factor = _splu(H + sparse.diags_array(ridge), pivoting=0.0)
        return _bordered(lambda v: np.asarray(H @ v), factor.solve, F.toarray(), free)
    blocks: Any = [[H, F.T], [F, None]]
    K = sparse.csc_array(sparse.block_array(blocks)) if p else H
    if not can_be_factored(K, remaining()):
        raise ValueError("the factor takes too long")
    # Without pivoting the zeros on the diagonal need more; refinement takes it back.
    more = SPARSE_REGULARISATION
    ridge = np.concatenate((np.where(H.diagonal() < FREE, more, REGULARISATION), np.full(p, -more)))
    lu = _splu(K + sparse.diags_array(ridge), pivoting=0.0)
    return (lambda v: np.asarray(K @ v)), lu.solve


def _splu(K: Any, pivoting: float) -> Any:
    from scipy.sparse.linalg import splu

    return splu(
        sparse.csc_array(K),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=pivoting,
        options={"SymmetricMode": True},
    )


def _dense_factor(H: FloatArray, F: sparse.csr_array) -> tuple[Map, Map]:
    """The same for a dense H."""
    from scipy.linalg import cho_factor, cho_solve

    n = len(H)
    plus = H.copy()
    plus.flat[:: n + 1] += 10 * n * EPS
    factor = cho_factor(plus)
    free = np.zeros(n, dtype=bool)
    return _bordered(lambda v: H @ v, lambda v: cho_solve(factor, v), F.toarray(), free)


def _bordered(product: Map, solve: Map, F: FloatArray, free: Any) -> tuple[Map, Map]:
    """[[H, F'], [F, 0]] and its inverse from those of H, which knows nothing of free columns."""
    from scipy.linalg import lu_factor, lu_solve

    n = free.size
    p = len(F)
    if not p:
        return product, solve
    tied = np.where(free, 0.0, F)
    half = solve(np.ascontiguousarray(tied.T))
    loose = F[:, free]
    f = loose.shape[1]
    # With dx = H^-1 (value - F'z) in the columns that H knows, z and the free dx are left.
    S = tied @ half
    with warnings.catch_warnings():
        # A singular factor shows in what it solves.
        warnings.simplefilter("ignore")
        inner = lu_factor(np.block([[-S, loose], [loose.T, np.zeros((f, f))]]))

    def inverse(value: FloatArray) -> FloatArray:
        first = solve(np.where(free, 0.0, value[:n]))
        both = lu_solve(inner, np.concatenate((value[n:] - tied @ first, value[:n][free])))
        z = both[:p]
        dx = first - half @ z
        dx[free] = both[p:]
        return np.concatenate((dx, z))

    def forward(v: FloatArray) -> FloatArray:
        return np.concatenate((product(v[:n]) + F.T @ v[n:], F @ v[:n]))

    return forward, inverse
