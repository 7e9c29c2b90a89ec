"""Single steps that correct an approximate solution of a cone program.

    dual     (w, y) with  P w + c + A'y = 0  on some columns and y in K*
    primal   x with  b - Ax in K

Where all cones are linear, a step is the shortest one into the polyhedron, in equilibrated units.
Otherwise it is the shortest one, measured by the local norm of the barrier
(`klopt.witness.cone_interior`), that cancels the error of the equations: whatever lies near the
boundary of its cone hardly moves. Where it would still leave the cone, it is pulled inwards: by a
multiple of the shift that would make the error harmless, made orthogonal to the equations in the
same metric.

A step is a proposal: `klopt.proof` measures where it leads.

The cost of a perturbation. At a point of K = {X psd} without margin an error e of the equations can
move the optimum by sqrt(e), times the size of the point and of the cost: [[1, t], [t, e]] is psd up
to |t| = sqrt(e). `perturbation_cost` charges that root, with a factor of safety.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, ParamSpec, TypeVar

import attrs
import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import EPS, FloatArray
from klopt.model.cones import svec_size
from klopt.model.cones.norms import block_norms, equilibrate, largest_entry
from klopt.model.forms import ConeForm
from klopt.proof.time_budget import exhausted
from klopt.witness.cone_interior import centre, is_sparse, scaling_at
from klopt.witness.least_norm import (
    MAX_DENSE_FLOPS,
    TooLarge,
    is_affordable,
    least_distance,
    least_norm,
    nearest,
)

__all__ = ["DualCorrection", "PrimalCorrection"]

Arguments = ParamSpec("Arguments")
StepT = TypeVar("StepT")
Mask = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.intp]

POLYHEDRON_MARGIN = EPS
"""Polyhedra are widened by this share of their size: a single point is empty by rounding."""
INWARD_MULTIPLES = (0.0, 1.0, 4.0, 16.0, 64.0)
"""The multiples of the inward shift that are tried, in this order."""
NEARBY_FACTOR = 1e3
"""Inequalities with more slack than this multiple of the error are left out of its correction."""
MAX_DENSE_ENTRIES = 4e7
"""Entries of the dense array that a step through PSD rows may take."""
FAILED_RUN_ERROR = 1e-2
"""Multipliers that are off by more than this share of their terms come from a run that failed."""
MAX_FLOPS_AFTER_FAILURE = 1e8
"""Operations that the correction of such multipliers may take."""
INSIDE_SHARE = 1e-3
"""The share of the error by which a corrected y may lie outside K*: projecting it costs no more."""
RIDGE = 1e-4
"""Weight of the relative change of x next to its distance from the boundary, in a primal step."""
PERTURBATION_FACTOR = 4
"""Factor of safety of `perturbation_cost`."""


class _Correction:
    """A form, and the units in which its rows and columns can be compared."""

    def __init__(self, form: ConeForm) -> None:
        self.form = form
        self.linear = form.cones.is_polyhedral

    @cached_property
    def units(self) -> tuple[FloatArray, FloatArray]:
        """The units (r, c) of rows and columns."""
        return equilibrate(self.form.cones, self.form.A)

    @cached_property
    def scaled(self) -> sparse.csr_array:
        """A in these units, diag(r) A diag(c)."""
        r, c = self.units
        left = sparse.diags_array(r)
        right = sparse.diags_array(c)
        return sparse.csr_array(left @ self.form.A @ right)

    def refuse_costly(self, columns: Indices, max_flops: float = MAX_DENSE_FLOPS) -> None:
        """Raise `TooLarge` where these columns of A, once scaled, could not be factored.

        It is asked before they are scaled. Scaling fills the rows of a PSD block in every column
        that has an entry there.
        """
        cones = self.form.cones
        A = self.form.A[:, columns].tocsr()
        psd_start = cones.zero + cones.nonneg + sum(cones.soc)
        psd_stop = psd_start + sum(map(svec_size, cones.psd))

        # Entries after scaling. The fill of other curved cones is not counted.
        entries = int(A[:psd_start].nnz + A[psd_stop:].nnz)
        start = psd_start
        for size in map(svec_size, cones.psd):
            filled_columns = np.unique(A[start : start + size].indices).size
            entries += size * filled_columns
            start += size

        too_dense = cones.psd and float(A.shape[0]) * A.shape[1] > MAX_DENSE_ENTRIES
        if too_dense or not is_affordable(A.shape, entries, max_flops):
            raise TooLarge


class DualCorrection(_Correction):
    """Corrects stationarity, Pw + c + A'y = 0, on the given columns."""

    def __init__(self, form: ConeForm, columns: Indices) -> None:
        super().__init__(form)
        self.columns = columns

    def largest_error(self, residual: FloatArray) -> float:
        """Return the largest entry of the residual in the units of the columns."""
        _, c = self.units
        return largest_entry(residual * c)

    def perturbation_cost(self, error: FloatArray, norms: FloatArray, tight: Mask) -> float:
        """Return what errors of the equations may be worth to blocks of y without margin.

        Parameters
        ----------
        error
            The absolute errors of the equations.
        norms
            `block_norms` of y.
        tight
            The rows of curved cones in which y has no margin.
        """
        if not tight.any():
            return 0.0
        r, c = self.units
        size = largest_entry((norms / r)[tight])
        change = max(largest_entry(error * c), EPS * size)
        price = largest_entry(self.form.b * r)
        return _root_cost(price, change, size)

    def step(
        self,
        w: FloatArray,
        y: FloatArray,
        residual: FloatArray,
        fixed: Mask,
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return (w, y) moved so that Pw + c + A'y loses `residual`; None where no step is found.

        Parameters
        ----------
        w, y
            The dual pair.
        residual
            The part of Pw + c + A'y to cancel.
        fixed
            Rows of y that stay where they are, at 0.
        """
        # A polyhedron is entered in one step, but only small systems can afford it; the conic step
        # takes the others by their sparse factors.
        move = None
        if self.linear:
            move = _attempt(self._polyhedral_step, w, y, residual)
        if move is None:
            move = _attempt(self._conic_step, w, y, residual, fixed)
        if move is None:
            return None

        # Ill-conditioned factors may overflow.
        dw, dy = move
        if not (np.isfinite(dw).all() and np.isfinite(dy).all()):
            return None
        return w + dw, y + dy

    def _max_flops(self, y: FloatArray, residual: FloatArray) -> float:
        """How many operations a step may take: few where the multipliers come from a failed run."""
        r, c = self.units
        terms = largest_entry(self.form.c * c) + largest_entry(y / r)
        if self.largest_error(residual) > FAILED_RUN_ERROR * terms:
            return MAX_FLOPS_AFTER_FAILURE
        return MAX_DENSE_FLOPS

    def _polyhedral_step(
        self,
        w: FloatArray,
        y: FloatArray,
        residual: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """The shortest (dw, dy), in equilibrated units, to a stationary pair with y >= 0."""
        form = self.form
        columns = self.columns
        m = form.b.size
        r, c = self.units

        # Unknowns z = (dy / r, dw / c): the equations of the columns ...
        E = self.scaled[:, columns].T
        if form.P is not None:
            P = form.P.tocsr()[columns]
            E = sparse.hstack([E, sparse.diags_array(c[columns]) @ P @ sparse.diags_array(c)])
        e = -(residual * c)[columns]

        # ... and y + dy >= 0 where y is so small that the step can reach 0.
        inequalities = np.arange(form.cones.zero, m)
        reach = NEARBY_FACTOR * self.largest_error(residual)
        scaled_y = y / r
        near = inequalities[scaled_y[inequalities] <= reach]
        places = (np.arange(near.size), near)
        G = sparse.csr_array((np.ones(near.size), places), shape=(near.size, E.shape[1]))
        h = -scaled_y[near] - POLYHEDRON_MARGIN * largest_entry(scaled_y)

        z = least_distance(E, e, G, h, self._max_flops(y, residual))
        dy = r * z[:m]
        dw = np.zeros_like(w) if form.P is None else c * z[m:]
        return dw, dy

    def _conic_step(
        self,
        w: FloatArray,
        y: FloatArray,
        residual: FloatArray,
        fixed: Mask,
    ) -> tuple[FloatArray, FloatArray]:
        """The shortest (dw, dy) in the local norm at a point inside K* near y, pulled inwards.

        With dy = W u and dw = D v, D = diag(weight), the equations A'W u + P D v = -residual are
        solved for the shortest (u, v).
        """
        max_flops = self._max_flops(y, residual)
        self.refuse_costly(self.columns, max_flops)
        form = self.form
        cones = form.cones
        columns = self.columns
        m = form.b.size
        r, c = self.units

        # A point inside K*: y, projected, then moved along the centre by as much as it is off.
        lacking = cones.project(-y)
        error = self.largest_error(residual)
        error += 2 * largest_entry(block_norms(cones, lacking) / r)
        shift = np.where(fixed, 0.0, error * r * centre(cones))
        inside = y + lacking + shift
        free = r[: cones.zero] * (1 + largest_entry(y / r))
        W = scaling_at(cones, inside, free, dual=True)

        # The equations in local units; w is free, so any weight of its size will do.
        B = W.apply(form.A[:, columns].tocsr()).T
        weight = np.zeros(0)
        if form.P is not None:
            weight = c * (1 + largest_entry(w / c))
            B = _beside(B, form.P.tocsr()[columns] @ sparse.diags_array(weight))

        # The shift in local units, without the part that would change the equations.
        solve = least_norm(B, max_flops)
        W_inverse = scaling_at(cones, inside, free, dual=True, inverse=True)
        pull = np.concatenate((W_inverse.apply(shift), np.zeros(weight.size)))
        inward = pull - solve(B @ pull)
        correction = solve(-residual[columns])

        def outside(u: FloatArray) -> float:
            away = cones.project(-y - W.apply(u[:m]))
            return largest_entry(block_norms(cones, away) / r)

        steps = [correction + multiple * inward for multiple in INWARD_MULTIPLES]
        u = _first_inside(steps, outside, INSIDE_SHARE * self.largest_error(residual))
        dy = W.apply(u[:m])
        dw = weight * u[m:] if weight.size else np.zeros_like(w)
        return dw, dy


class PrimalCorrection(_Correction):
    """Corrects feasibility, b - Ax in K."""

    def perturbation_cost(self, distance: FloatArray, terms: FloatArray, tight: Mask) -> float:
        """Return what a slack at some distance from curved cones may be worth.

        Parameters
        ----------
        distance
            The distance from K, by `block_norms`.
        terms
            The size of the terms of b - Ax, by `block_norms`.
        tight
            The rows of curved cones in which the slack has no margin.
        """
        r, c = self.units
        size = largest_entry((r * terms)[tight])
        change = max(largest_entry((r * distance)[tight]), EPS * size)
        price = largest_entry(self.form.c * c)
        return _root_cost(price, change, size)

    def step(self, x: FloatArray, s: FloatArray, off: FloatArray) -> FloatArray | None:
        """Return x moved so that s = b - Ax loses `off`, its error; None where no step is found."""
        # As for the dual: in one step where the system is small, else by the conic step.
        move = None
        if self.linear:
            move = _attempt(self._polyhedral_step, x, s, off)
        if move is None:
            move = _attempt(self._conic_step, x, s, off)
        if move is None or not np.isfinite(move).all():
            return None
        return x + move

    def _polyhedral_step(self, x: FloatArray, s: FloatArray, off: FloatArray) -> FloatArray:
        """The shortest step, in equilibrated units, into the polyhedron."""
        p = self.form.cones.zero
        r, c = self.units

        # Inequalities with so much slack that the step cannot use it up are left out.
        inequalities = np.arange(p, s.size)
        reach = NEARBY_FACTOR * largest_entry(r * off)
        scaled_s = r * s
        near = inequalities[scaled_s[inequalities] <= reach]
        h = -scaled_s[near] - POLYHEDRON_MARGIN * largest_entry(x / c)

        E = self.scaled[:p]
        e = (r * off)[:p]
        G = -self.scaled[near]
        return c * least_distance(E, e, G, h)

    def _conic_step(self, x: FloatArray, s: FloatArray, off: FloatArray) -> FloatArray:
        """The step that moves the slack least in the local norm inside K, pulled inwards."""
        self.refuse_costly(np.arange(x.size))
        cones = self.form.cones
        p = cones.zero
        r, c = self.units
        A = self.form.A.tocsr()

        # Zero rows have no interior: they are the equations, the others are measured.
        inner = attrs.evolve(cones, zero=0)
        error = largest_entry(r * block_norms(cones, off))
        shift = (2 * error / r * centre(cones))[p:]
        inside = (s - off)[p:] + shift
        W_inverse = scaling_at(inner, inside, np.zeros(0), inverse=True)

        # W^-1 measures the change -A d of the slack; the equations of the zero rows hold exactly.
        ridge = RIDGE / (np.abs(x) + c)
        solve = nearest(-1.0 * W_inverse.apply(A[p:]), A[:p], ridge)
        correction = solve(np.zeros(shift.size), off[:p])
        inward = solve(W_inverse.apply(shift), np.zeros(p))

        def outside(step: FloatArray) -> float:
            slack = s[p:] - A[p:] @ step
            away = slack - inner.project(slack)
            return largest_entry(r[p:] * block_norms(inner, away))

        steps = [correction + multiple * inward for multiple in INWARD_MULTIPLES]
        return _first_inside(steps, outside, 0.0)


def _attempt(
    step: Callable[Arguments, StepT],
    *args: Arguments.args,
    **kwargs: Arguments.kwargs,
) -> StepT | None:
    """The step, or None where it costs too much, its factorisation fails or the time is up."""
    if exhausted():
        return None
    try:
        return step(*args, **kwargs)
    except (TooLarge, np.linalg.LinAlgError):
        return None


def _root_cost(price: float, change: float, size: float) -> float:
    """What a change of the equations may be worth to a point of that size without margin."""
    return PERTURBATION_FACTOR * price * float(np.sqrt(change * size))


def _beside(left: Any, right: sparse.csr_array) -> Any:
    """The two matrices beside each other; dense where the first one is."""
    if is_sparse(left):
        return sparse.hstack([left, right], format="csr")
    return np.hstack([left, right.toarray()])


def _first_inside(
    steps: list[FloatArray],
    outside: Callable[[FloatArray], float],
    allowed: float,
) -> FloatArray:
    """The first step that ends at most `allowed` outside the cone, else the nearest one."""
    best = steps[0]
    smallest = np.inf
    for step in steps:
        distance = outside(step)
        if distance < smallest:
            best = step
            smallest = distance
        if smallest <= allowed:
            break
    return best
