"""A convex quadratic over a box cut by a plane, a simplex, or a product of these: the step of Newton's method.

    minimise  x'Hx/2 + c'x   over   x in the set

One box and one plane go to the exact active-set method (`klopt.numerics.box_qp.active_set`). Of a
product the largest member, u, does; the others, v, are few. Where F of them are free and the rest
sits at bounds, v is an affine function of u,

    [H_FF  B'] [v_F]   [-c_F - H_FN v_N - H_Fu u]
    [B     0 ] [nu ] = [beta - B_N v_N          ]           B v = beta the planes of v

and what is left is a program in u with the Schur complement H_uu - H_uF P H_Fu, P the upper left
block of the inverse. Free variables that leave their box go to its bound, and a bound that pushes
the wrong way lets go, until all is right.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.sets import BoxPlane, Product, SimpleSet, Simplex
from klopt.numerics.box_qp.active_set import Box, BoxQP, SignedGram, solve_box_qp
from klopt.numerics.box_qp.quadratic import Indices

__all__ = ["Boxes", "minimise_quadratic", "supported"]

# Relative to the largest diagonal entry of H: what makes a block of few variables invertible.
RIDGE = 1e-13
Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]


def supported(domain: SimpleSet) -> bool:
    """Return whether the set is made of boxes, planes and simplices."""
    members = domain.sets if isinstance(domain, Product) else (domain,)
    return all(isinstance(member, BoxPlane | Simplex) for member in members)


@dataclass(frozen=True, eq=False)
class Boxes:
    """The set as a long box with its plane, and the few variables of the other members with theirs."""

    domain: SimpleSet

    @cached_property
    def members(self) -> tuple[BoxPlane, ...]:
        sets = self.domain.sets if isinstance(self.domain, Product) else (self.domain,)
        return tuple(_as_box(member) for member in sets)

    @property
    def alone(self) -> bool:
        """Whether there is no other member."""
        return len(self.members) == 1

    @cached_property
    def longest(self) -> int:
        return int(np.argmax([member.size for member in self.members]))

    @cached_property
    def main(self) -> Indices:
        """Which entries belong to the long member."""
        first = sum(member.size for member in self.members[: self.longest])
        return np.arange(first, first + self.members[self.longest].size)

    @cached_property
    def few(self) -> Indices:
        """Which entries belong to the other members."""
        return np.setdiff1d(np.arange(self.domain.size), self.main)

    @cached_property
    def planes(self) -> tuple[FloatArray, FloatArray]:
        """B and beta, the planes of the other members."""
        others = [member for i, member in enumerate(self.members) if i != self.longest]
        rows, right, column = [], [], 0
        for member in others:
            if member.normal is not None and member.normal.any():
                row = np.zeros(self.few.size)
                row[column : column + member.size] = member.normal
                rows.append(row)
                right.append(member.offset)
            column += member.size
        return np.array(rows).reshape(-1, self.few.size), np.array(right)

    @cached_property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """The box of the other members."""
        others = [member for i, member in enumerate(self.members) if i != self.longest]
        return np.concatenate([o.lower for o in others]), np.concatenate([o.upper for o in others])

    @cached_property
    def _long(self) -> Box:
        return Box.of(self.members[0 if self.alone else self.longest])

    def program(self, H: FloatArray, c: FloatArray) -> BoxQP:
        """Return a quadratic over the long member."""
        return BoxQP(SignedGram(H), c, self._long)


def minimise_quadratic(
    boxes: Boxes,
    H: FloatArray,
    c: FloatArray,
    start: FloatArray | None,
    tol: float,
    deadline: float,
) -> FloatArray:
    """Return the minimiser of x'Hx/2 + c'x over the set; `tol` and `deadline` are those of `solve_box_qp`."""
    if boxes.alone:
        return solve_box_qp(boxes.program(H, c), start, tol, deadline=deadline).x
    x = boxes.domain.centre() if start is None else start.copy()
    split, (lower, upper) = _Split(boxes, H, c, tol, deadline), boxes.bounds
    value = np.clip(x[boxes.few], lower, upper)
    inside = (value > lower) & (value < upper)
    free: Mask = inside if inside.any() else lower < upper
    seen: set[bytes] = set()
    for _ in range(4 * value.size + 4):
        x[boxes.main], value, gradient = split.minimise(free, value, x[boxes.main])
        outside = free & ((value < lower) | (value > upper))
        value = np.clip(value, lower, upper)
        if outside.any():
            free = free & ~outside
            continue
        wrong = np.where(value <= lower, -gradient, np.where(value >= upper, gradient, 0.0))
        wrong[free | (lower == upper)] = 0.0
        if wrong.max() <= 1e-12 * (float(np.abs(c).max()) + split.scale) or free.tobytes() in seen:
            break
        seen.add(free.tobytes())
        free = free | (np.arange(value.size) == int(np.argmax(wrong)))
    x[boxes.few] = value
    return boxes.domain.repair(x)


@dataclass(frozen=True, eq=False)
class _Split:
    """The program with the few variables eliminated."""

    boxes: Boxes
    H: FloatArray
    c: FloatArray
    tol: float
    deadline: float

    @cached_property
    def scale(self) -> float:
        return float(np.abs(self.H.diagonal()).max()) or 1.0

    def minimise(
        self, free: Mask, value: FloatArray, start: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the best u, the v that go with it, those not free as given, and the gradients of v under the planes."""
        u, v, (B, beta) = self.boxes.main, self.boxes.few, self.boxes.planes
        f, fixed, held = v[free], v[~free], value[~free]
        H, c, cross = self.H, self.c, self.H[np.ix_(v[free], u)]
        B, beta = (
            self.scale * B,
            self.scale * beta,
        )  # as large as H, so that no digit of either is lost
        corner = H[np.ix_(f, f)] + RIDGE * self.scale * np.eye(f.size)
        bordered = np.block([[corner, B[:, free].T], [B[:, free], np.zeros((len(B), len(B)))]])
        # A plane all of whose variables are fixed is a zero row: the pseudoinverse passes over it.
        inverse = np.linalg.pinv(bordered, hermitian=True)
        rest = inverse @ np.concatenate(
            [-c[f] - H[np.ix_(f, fixed)] @ held, beta - B[:, ~free] @ held]
        )
        schur = H[np.ix_(u, u)] - cross.T @ (inverse[: f.size, : f.size] @ cross)
        linear = c[u] + H[np.ix_(u, fixed)] @ held + cross.T @ rest[: f.size]
        best = solve_box_qp(
            self.boxes.program(schur, linear), start, self.tol, deadline=self.deadline
        ).x
        answer = rest - inverse[:, : f.size] @ (cross @ best)
        value = value.copy()
        value[free] = answer[: f.size]
        gradient = H[np.ix_(v, u)] @ best + H[np.ix_(v, v)] @ value + c[v] + B.T @ answer[f.size :]
        return best, value, gradient


def _as_box(member: SimpleSet) -> BoxPlane:
    if isinstance(member, Simplex):
        n = member.size
        return BoxPlane(np.zeros(n), np.full(n, np.inf), np.ones(n), member.total)
    assert isinstance(member, BoxPlane)
    return member
