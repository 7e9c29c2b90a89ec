"""A point in the relative interior of a polyhedron, and the inequalities that hold with equality.

    maximise t  subject to  E x = e,  G x + t size <= h,  0 <= t <= 1

If t > 0 there is a point with slack t size in every inequality. If t = 0, the rows with a positive
multiplier hold with equality everywhere: they join the equations, and the program is solved again
without them (facial reduction of a polyhedron, which ends when t > 0).

Nothing here is part of a proof.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.proof.time_budget import remaining

__all__ = ["RelativeInterior", "relative_interior"]

Indices = npt.NDArray[np.intp]

MAX_ENTRIES = 200_000
"""Programs with more entries are not solved again for a proof."""
MIN_SLACK = 1e-7
"""A slack below this share of its row counts as none."""
MAX_ROUNDS = 5
"""How often rows may join the equations."""


@dataclass(frozen=True, eq=False)
class RelativeInterior:
    """A point with slack in all inequalities but the tight ones, which are equations."""

    x: FloatArray
    tight: Indices


def relative_interior(
    E: sparse.csr_array,
    e: FloatArray,
    G: sparse.csr_array,
    h: FloatArray,
    cost: FloatArray | None = None,
) -> RelativeInterior | None:
    """Return a relatively interior point of {x : Ex = e, Gx <= h}, None where none is found.

    Parameters
    ----------
    E, e, G, h
        The polyhedron.
    cost
        Of the points with at least half the largest slack, that of least cost'x is returned.

    >>> G = sparse.csr_array([[1.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    >>> h = np.array([1.0, 0.0, 0.0])
    >>> found = relative_interior(sparse.csr_array((0, 2)), np.zeros(0), G, h)
    >>> found.tight.size, bool((found.x > 0).all())
    (0, True)
    """
    rows, n = G.shape
    if E.nnz + G.nnz > MAX_ENTRIES:
        return None
    size = np.asarray(abs(G).max(axis=1).todense()).ravel() if rows else np.zeros(0)
    size = np.where(size > 0, size, 1.0)
    tight = np.zeros(rows, dtype=bool)
    deepest = np.append(np.zeros(n), -1.0)
    for _ in range(MAX_ROUNDS):
        program = _Rows(E, e, G, h, size, tight)
        found = program.minimise(deepest, (0.0, 1.0))
        if found is None:
            return None
        slack = float(found.x[-1])
        if slack > MIN_SLACK:
            point = found.x[:-1]
            if cost is not None:
                cheapest = program.minimise(np.append(cost, 0.0), (slack / 2, slack / 2))
                point = point if cheapest is None else cheapest.x[:-1]
            return RelativeInterior(point, np.asarray(np.flatnonzero(tight), np.intp))
        multipliers = np.abs(found.ineqlin.marginals)
        if not (multipliers > MIN_SLACK).any():
            return None
        tight[np.flatnonzero(~tight)[multipliers > MIN_SLACK]] = True
    return None


@dataclass(frozen=True, eq=False)
class _Rows:
    """Ex = e, Gx = h in the tight rows, Gx + t size <= h in the others."""

    E: sparse.csr_array
    e: FloatArray
    G: sparse.csr_array
    h: FloatArray
    size: FloatArray
    tight: npt.NDArray[np.bool_]

    def minimise(self, cost: FloatArray, slack: tuple[float, float]) -> Any:
        """The solution of the program in (x, t) with t between two numbers; None without one."""
        from scipy.optimize import linprog

        left = remaining()
        if left <= 0:
            return None
        loose = np.flatnonzero(~self.tight)
        column = sparse.csr_array(self.size[loose, None])
        inequalities = sparse.hstack([self.G[loose], column], format="csr")
        equations = sparse.vstack([self.E, self.G[np.flatnonzero(self.tight)]], format="csr")
        widened = sparse.hstack([equations, sparse.csr_array((equations.shape[0], 1))])
        right = np.concatenate((self.e, self.h[self.tight]))
        # The stubs of SciPy know dense arrays only.
        found: Any = linprog(
            cost,
            A_ub=cast(Any, inequalities) if loose.size else None,
            b_ub=self.h[loose] if loose.size else None,
            A_eq=cast(Any, sparse.csr_array(widened)) if right.size else None,
            b_eq=right if right.size else None,
            bounds=[(None, None)] * self.G.shape[1] + [slack],
            method="highs",
            options={"time_limit": min(left, 60.0)},
        )
        return found if found.status == 0 and found.x is not None else None
