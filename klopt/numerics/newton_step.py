"""A convex quadratic over boxes, planes, simplices and their products: the step of Newton's method.

    minimise  x'Hx/2 + c'x   over   x in the set

One box and one plane go to the exact active-set method (`klopt.numerics.box_qp.active_set`). Of a
product the largest member, u, does; the others, v, are few. Where F of them are free and the rest
is at bounds, v is an affine function of u,

    [H_FF  B'] [v_F]   [-c_F - H_FN v_N - H_Fu u]
    [B     0 ] [nu ] = [beta - B_N v_N          ]           B v = beta the planes of v

and what is left is a program in u with the Schur complement H_uu - H_uF P H_Fu, P the upper left
block of the inverse. Free variables that leave their box are put on its bound, and a bound with a
reduced cost of the wrong sign is let go, until all is right.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray
from klopt.model.sets import BoxPlane, Product, SimpleSet, Simplex
from klopt.numerics.box_qp.active_set import solve_box_qp
from klopt.numerics.box_qp.program import Box, BoxQP, Indices, SignedGram

__all__ = ["BoxProduct", "as_box_plane", "minimise_quadratic", "supported"]

RIDGE = 1e-13
"""What makes a block of few variables invertible, relative to the largest diagonal entry of H."""
COST_TOLERANCE = 1e-12
"""A reduced cost of the wrong sign smaller than this, relative to the gradient, is rounding."""

Mask = npt.NDArray[np.bool_]


def supported(domain: SimpleSet) -> bool:
    """Return whether the set is made of boxes, planes and simplices."""
    members = domain.sets if isinstance(domain, Product) else (domain,)
    return all(isinstance(member, BoxPlane | Simplex) for member in members)


def as_box_plane(member: SimpleSet) -> BoxPlane:
    """Return a box cut by a plane as it is, a simplex as one."""
    if isinstance(member, Simplex):
        n = member.size
        return BoxPlane(np.zeros(n), np.full(n, np.inf), np.ones(n), member.total)
    assert isinstance(member, BoxPlane)
    return member


@dataclass(frozen=True, eq=False)
class BoxProduct:
    """A product of boxes cut by planes: its largest member, and the few variables of the others."""

    domain: SimpleSet

    @cached_property
    def members(self) -> tuple[BoxPlane, ...]:
        sets = self.domain.sets if isinstance(self.domain, Product) else (self.domain,)
        return tuple(as_box_plane(member) for member in sets)

    @property
    def single(self) -> bool:
        """Whether there is no other member."""
        return len(self.members) == 1

    @cached_property
    def largest(self) -> int:
        """Which member is the largest."""
        return int(np.argmax([member.size for member in self.members]))

    @cached_property
    def main(self) -> Indices:
        """Which entries belong to the largest member."""
        first = sum(member.size for member in self.members[: self.largest])
        return np.arange(first, first + self.members[self.largest].size)

    @cached_property
    def few(self) -> Indices:
        """Which entries belong to the other members."""
        return np.setdiff1d(np.arange(self.domain.size), self.main)

    @cached_property
    def _others(self) -> tuple[BoxPlane, ...]:
        return self.members[: self.largest] + self.members[self.largest + 1 :]

    @cached_property
    def planes(self) -> tuple[FloatArray, FloatArray]:
        """B and beta, the planes of the other members."""
        rows = []
        offsets = []
        column = 0
        for member in self._others:
            # A normal of zeros is no condition.
            if member.normal is not None and member.normal.any():
                row = np.zeros(self.few.size)
                row[column : column + member.size] = member.normal
                rows.append(row)
                offsets.append(member.offset)
            column += member.size
        return np.array(rows).reshape(-1, self.few.size), np.array(offsets)

    @cached_property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """The box of the other members."""
        lower = np.concatenate([member.lower for member in self._others])
        upper = np.concatenate([member.upper for member in self._others])
        return lower, upper

    @cached_property
    def _main_box(self) -> Box:
        return Box.of(self.members[self.largest])

    def main_program(self, H: FloatArray, c: FloatArray) -> BoxQP:
        """Return a quadratic over the largest member."""
        return BoxQP(SignedGram(H), c, self._main_box)


def minimise_quadratic(
    boxes: BoxProduct,
    H: FloatArray,
    c: FloatArray,
    start: FloatArray | None,
    tol: float,
    deadline: float,
) -> FloatArray:
    """Return the minimiser of x'Hx/2 + c'x over the set.

    Parameters
    ----------
    boxes
        The set.
    H, c
        The quadratic.
    start
        A point to start from, the centre of the set by default.
    tol, deadline
        Those of `solve_box_qp`.
    """
    # Without other members nothing has to be eliminated.
    if boxes.single:
        return solve_box_qp(boxes.main_program(H, c), start, tol, deadline=deadline).x

    x = boxes.domain.centre() if start is None else start.copy()
    reduced = _ReducedProgram(boxes, H, c, tol, deadline)
    lower, upper = boxes.bounds
    v = np.clip(x[boxes.few], lower, upper)
    inside = (v > lower) & (v < upper)
    free: Mask = inside if inside.any() else lower < upper
    seen: set[bytes] = set()
    for _ in range(4 * v.size + 4):
        x[boxes.main], v, gradient = reduced.minimise(free, v, x[boxes.main])
        outside = free & ((v < lower) | (v > upper))
        v = np.clip(v, lower, upper)
        if outside.any():  # they stay where they were clipped to
            free = free & ~outside
            continue

        # How much each variable at a bound would gain by leaving it.
        gain = np.where(v <= lower, -gradient, np.where(v >= upper, gradient, 0.0))
        gain[free | (lower == upper)] = 0.0
        rounding = COST_TOLERANCE * (float(np.abs(c).max()) + reduced.scale)
        # A face that comes back would come back again and again.
        if gain.max() <= rounding or free.tobytes() in seen:
            break
        seen.add(free.tobytes())
        free = free | (np.arange(v.size) == int(np.argmax(gain)))

    x[boxes.few] = v
    return boxes.domain.repair(x)


@dataclass(frozen=True, eq=False)
class _ReducedProgram:
    """The program in u, with the few variables v eliminated."""

    boxes: BoxProduct
    H: FloatArray
    c: FloatArray
    tol: float
    deadline: float

    @cached_property
    def scale(self) -> float:
        return float(np.abs(self.H.diagonal()).max()) or 1.0

    def minimise(
        self, free: Mask, v_start: FloatArray, u_start: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the best u, the v that go with it, and the reduced costs of v under the planes.

        Entries of v that are not free stay as given.
        """
        H = self.H
        c = self.c
        u = self.boxes.main
        v = self.boxes.few
        free_v = v[free]
        fixed_v = v[~free]
        fixed_values = v_start[~free]
        # Planes as large as H, so that no digit of either is lost.
        B, beta = self.boxes.planes
        B = self.scale * B
        beta = self.scale * beta

        coupling = H[np.ix_(free_v, u)]
        corner = H[np.ix_(free_v, free_v)] + RIDGE * self.scale * np.eye(free_v.size)
        no_block = np.zeros((len(B), len(B)))
        bordered = np.block([[corner, B[:, free].T], [B[:, free], no_block]])
        # A plane all of whose variables are fixed is a zero row: the pseudoinverse passes over it.
        inverse = np.linalg.pinv(bordered, hermitian=True)
        right_v = -c[free_v] - H[np.ix_(free_v, fixed_v)] @ fixed_values
        right_planes = beta - B[:, ~free] @ fixed_values
        without_u = inverse @ np.concatenate([right_v, right_planes])

        P = inverse[: free_v.size, : free_v.size]
        schur = H[np.ix_(u, u)] - coupling.T @ (P @ coupling)
        linear = c[u] + H[np.ix_(u, fixed_v)] @ fixed_values
        linear = linear + coupling.T @ without_u[: free_v.size]
        program = self.boxes.main_program(schur, linear)
        best = solve_box_qp(program, u_start, self.tol, deadline=self.deadline).x

        answer = without_u - inverse[:, : free_v.size] @ (coupling @ best)
        value = v_start.copy()
        value[free] = answer[: free_v.size]
        gradient = H[np.ix_(v, u)] @ best + H[np.ix_(v, v)] @ value + c[v]
        gradient = gradient + B.T @ answer[free_v.size :]
        return best, value, gradient
