"""Steps that repair a rough solution of a cone program.

    dual     (w, y) with  P w + c + A'y = 0  on some columns and y in K*
    primal   x with  b - Ax in K

Where all cones are linear, a step is the shortest one into the polyhedron, in equilibrated units.
Otherwise it is the shortest one, measured by the scaling of the cones
(`klopt.proof.cone_interior`), that cancels the error of the equations: whatever lies near the
boundary of its cone hardly moves. Where it would still leave the cone, it is pulled inwards: by a
multiple of the shift that would make the error harmless, made orthogonal to the equations in the
same metric.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import EPS, FloatArray
from klopt.model.cones import Cones, svec_size
from klopt.model.forms import ConeForm
from klopt.proof.cone_interior import block_norms, centre, equilibrate, is_sparse, scaling
from klopt.proof.least_norm import (
    MOST_DENSE_WORK,
    TooLarge,
    is_bearable,
    least_distance,
    least_norm,
    nearest,
)
from klopt.proof.time_budget import exhausted

__all__ = ["DualRepair", "PrimalRepair"]

T = TypeVar("T")
Mask = npt.NDArray[np.bool_]

# By so much, relative to its size, a polyhedron is widened: a single point would be empty by
# rounding.
HAIR = EPS
PULLS = (0.0, 1.0, 4.0, 16.0, 64.0)
# An inequality with more room than this times the error plays no part in its repair.
NEAR = 1e3
# Steps through PSD rows are dense arrays of so many numbers at most.
MOST_ENTRIES = 4e7
# Multipliers that are off by more than this share of their terms come from a run that failed: they
# are repaired where that is cheap.
ROUGH = 1e-2
LITTLE_WORK = 1e8


class _Repair:
    """The form, and the units in which its rows and columns can be compared."""

    def __init__(self, form: ConeForm) -> None:
        self.form = form
        self.linear = not (form.cones.soc or form.cones.psd or form.cones.exp)

    @cached_property
    def units(self) -> tuple[FloatArray, FloatArray]:
        """The units of rows and columns."""
        return equilibrate(self.form.cones, self.form.A)

    @cached_property
    def scaled(self) -> sparse.csr_array:
        """A in these units."""
        r, c = self.units
        return sparse.csr_array(sparse.diags_array(r) @ self.form.A @ sparse.diags_array(c))

    def refuse_costly(self, columns: npt.NDArray[np.intp], most: float = MOST_DENSE_WORK) -> None:
        """Raise `TooLarge` where these columns of A, once scaled, could not be factored: before they are scaled.

        Scaling fills the rows of a PSD block in every column that has an entry there.
        """
        cones, A = self.form.cones, self.form.A[:, columns].tocsr()
        start = cones.size - 3 * cones.exp - sum(map(svec_size, cones.psd))
        entries = int(A[:start].nnz + A[cones.size - 3 * cones.exp :].nnz)
        for size in map(svec_size, cones.psd):
            entries += size * np.unique(A[start : start + size].indices).size
            start += size
        too_dense = cones.psd and float(A.shape[0]) * A.shape[1] > MOST_ENTRIES
        if too_dense or not is_bearable(A.shape, entries, most):
            raise TooLarge


class DualRepair(_Repair):
    """Repairs stationarity on the given columns."""

    def __init__(self, form: ConeForm, columns: npt.NDArray[np.intp]) -> None:
        super().__init__(form)
        self.columns = columns

    def size(self, left: FloatArray) -> float:
        """Return the largest error in the units of the columns."""
        return float(np.max(np.abs(left) * self.units[1], initial=0.0))

    def _budget(self, y: FloatArray, left: FloatArray) -> float:
        """How many operations a step may take."""
        r, c = self.units
        terms = float(np.max(np.abs(self.form.c) * c, initial=0.0)) + float(
            np.max(np.abs(y) / r, initial=0.0)
        )
        return LITTLE_WORK if self.size(left) > ROUGH * terms else MOST_DENSE_WORK

    def charge(self, dust: FloatArray, norms: FloatArray, tight: Mask) -> float:
        """Return what errors `dust` of the equations may be worth to blocks of y on the boundary of their cones."""
        if not tight.any():
            return 0.0
        r, c = self.units
        size = float(np.max((norms / r)[tight]))
        error = max(float(np.max(dust * c, initial=0.0)), EPS * size)
        return 4 * float(np.max(np.abs(self.form.b) * r)) * float(np.sqrt(error * size))

    def step(
        self, w: FloatArray, y: FloatArray, left: FloatArray, stuck: Mask
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return (w, y) moved so that Pw + c + A'y loses `left`, or None; rows that are `stuck` at 0 stay there."""
        straight = (lambda: self._polyhedral(w, y, left),) if self.linear else ()
        moved = _first(*straight, lambda: self._conic(w, y, left, stuck))
        if moved is None or not all(np.isfinite(part).all() for part in moved):
            return None
        return w + moved[0], y + moved[1]

    def _polyhedral(
        self, w: FloatArray, y: FloatArray, left: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        form, J, m, (r, c) = self.form, self.columns, self.form.b.size, self.units
        rows = np.arange(form.cones.zero, m)
        near = rows[y[rows] / r[rows] <= NEAR * self.size(left)]
        E = self.scaled[:, J].T
        if form.P is not None:
            E = sparse.hstack(
                [E, sparse.diags_array(c[J]) @ form.P.tocsr()[J] @ sparse.diags_array(c)]
            )
        G = sparse.csr_array(
            (np.ones(near.size), (np.arange(near.size), near)), shape=(near.size, E.shape[1])
        )
        limits = -(y / r)[near] - HAIR * float(np.max(np.abs(y / r), initial=0.0))
        z = least_distance(E, -(left * c)[J], G, limits, self._budget(y, left))
        return c * z[m:] if form.P is not None else np.zeros_like(w), r * z[:m]

    def _conic(
        self, w: FloatArray, y: FloatArray, left: FloatArray, stuck: Mask
    ) -> tuple[FloatArray, FloatArray]:
        self.refuse_costly(self.columns, self._budget(y, left))
        form, J, m, (r, c) = self.form, self.columns, self.form.b.size, self.units
        lacking = form.cones.project(-y)
        error = self.size(left) + 2 * float(
            np.max(block_norms(form.cones, lacking) / r, initial=0.0)
        )
        shift = np.where(stuck, 0.0, error * r * centre(form.cones))
        free = r[: form.cones.zero] * (1 + np.abs(y / r).max(initial=0.0))
        inside = y + lacking + shift
        W = scaling(form.cones, inside, free, dual=True)
        B = W.apply(form.A[:, J].tocsr()).T
        weight = np.zeros(0)
        if form.P is not None:
            weight = c * (1 + np.abs(w / c).max())
            curve = form.P.tocsr()[J] @ sparse.diags_array(weight)
            B = (
                sparse.hstack([B, curve], format="csr")
                if is_sparse(B)
                else np.hstack([B, curve.toarray()])
            )
        solve = least_norm(B, self._budget(y, left))
        pull = scaling(form.cones, inside, free, dual=True, inverse=True).apply(shift)
        pull = np.concatenate((pull, np.zeros(weight.size)))
        fix, inward = solve(-left[J]), pull - solve(B @ pull)

        def outside(u: FloatArray) -> float:
            away = form.cones.project(-y - W.apply(u[:m]))
            return float(np.max(block_norms(form.cones, away) / r, initial=0.0))

        u = _most_inside([fix + theta * inward for theta in PULLS], outside, 1e-3 * self.size(left))
        return weight * u[m:] if weight.size else np.zeros_like(w), W.apply(u[:m])


class PrimalRepair(_Repair):
    """Repairs feasibility."""

    def charge(self, distance: FloatArray, terms: FloatArray, tight: Mask) -> float:
        """Return what a slack at that distance from the boundary of curved cones may be worth."""
        r, c = self.units
        size = float(np.max((r * terms)[tight], initial=0.0))
        error = max(float(np.max((r * distance)[tight], initial=0.0)), EPS * size)
        return 4 * float(np.max(np.abs(self.form.c) * c)) * float(np.sqrt(error * size))

    def step(self, x: FloatArray, s: FloatArray, off: FloatArray) -> FloatArray | None:
        """Return x moved so that s = b - Ax loses `off`, its error; None if that costs too much."""
        straight = (lambda: self._polyhedral(x, s, off),) if self.linear else ()
        moved = _first(*straight, lambda: self._conic(x, s, off))
        return x + moved if moved is not None and np.isfinite(moved).all() else None

    def _polyhedral(self, x: FloatArray, s: FloatArray, off: FloatArray) -> FloatArray:
        p, (r, c) = self.form.cones.zero, self.units
        rows = np.arange(p, s.size)
        near = rows[(r * s)[rows] <= NEAR * np.max(r * np.abs(off))]
        limits = -(r * s)[near] - HAIR * float(np.max(np.abs(x / c), initial=0.0))
        return c * least_distance(self.scaled[:p], (r * off)[:p], -self.scaled[near], limits)

    def _conic(self, x: FloatArray, s: FloatArray, off: FloatArray) -> FloatArray:
        self.refuse_costly(np.arange(x.size))
        cones, p, (r, c) = self.form.cones, self.form.cones.zero, self.units
        inner = Cones(0, cones.nonneg, cones.soc, cones.psd, cones.exp)
        shift = (2 * float(np.max(r * block_norms(cones, off))) / r * centre(cones))[p:]
        W = scaling(inner, (s - off)[p:] + shift, np.zeros(0), inverse=True)
        A = self.form.A.tocsr()
        solve = nearest(-1.0 * W.apply(A[p:]), A[:p], 1e-4 / (np.abs(x) + c))
        fix, inward = solve(np.zeros(shift.size), off[:p]), solve(W.apply(shift), np.zeros(p))

        def outside(step: FloatArray) -> float:
            rest = s[p:] - A[p:] @ step
            return float(
                np.max(r[p:] * block_norms(inner, rest - inner.project(rest)), initial=0.0)
            )

        return _most_inside([fix + theta * inward for theta in PULLS], outside, 0.0)


def _first(*ways: Callable[[], T]) -> T | None:
    """What the first way gives that comes to an end at a bearable cost; None where there is none, or no time."""
    for way in ways:
        if exhausted():
            break
        with suppress(TooLarge, np.linalg.LinAlgError):
            return way()
    return None


def _most_inside(
    steps: list[FloatArray], outside: Callable[[FloatArray], float], enough: float
) -> FloatArray:
    """The first step that ends inside the cone, or the one that ends nearest to it."""
    best, least = steps[0], np.inf
    for step in steps:
        distance = outside(step)
        if distance < least:
            best, least = step, distance
        if least <= enough:
            break
    return best
