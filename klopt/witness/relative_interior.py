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
    E: sparse.csr_array, e: FloatArray, G: sparse.csr_array, h: FloatArray
) -> RelativeInterior | None:
    """Return a relatively interior point of {x : Ex = e, Gx <= h}, None where none is found.

    >>> G = sparse.csr_array([[1.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    >>> found = relative_interior(sparse.csr_array((0, 2)), np.zeros(0), G, np.array([1.0, 0.0, 0.0]))
    >>> found.tight.size, bool((found.x > 0).all())
    (0, True)
    """
    from scipy.optimize import linprog

    rows, n = G.shape
    if E.nnz + G.nnz > MAX_ENTRIES:
        return None
    size = np.asarray(abs(G).max(axis=1).todense()).ravel() if rows else np.zeros(0)
    size = np.where(size > 0, size, 1.0)
    tight = np.zeros(rows, dtype=bool)
    cost = np.append(np.zeros(n), -1.0)
    for _ in range(MAX_ROUNDS):
        left = remaining()
        if left <= 0:
            return None
        loose = np.flatnonzero(~tight)
        column = sparse.csr_array(size[loose, None])
        inequalities = sparse.hstack([G[loose], column], format="csr")
        equations = sparse.vstack([E, G[np.flatnonzero(tight)]], format="csr")
        widened = sparse.hstack([equations, sparse.csr_array((equations.shape[0], 1))])
        # The stubs of SciPy know dense arrays only.
        found: Any = linprog(
            cost,
            A_ub=cast(Any, inequalities) if loose.size else None,
            b_ub=h[loose] if loose.size else None,
            A_eq=cast(Any, sparse.csr_array(widened)) if equations.shape[0] else None,
            b_eq=np.concatenate((e, h[tight])) if equations.shape[0] else None,
            bounds=[(None, None)] * n + [(0.0, 1.0)],
            method="highs",
            options={"time_limit": min(left, 60.0)},
        )
        if found.status != 0 or found.x is None:
            return None
        if found.x[-1] > MIN_SLACK:
            return RelativeInterior(found.x[:-1], np.asarray(np.flatnonzero(tight), np.intp))
        multipliers = np.abs(found.ineqlin.marginals)
        if not (multipliers > MIN_SLACK).any():
            return None
        tight[loose[multipliers > MIN_SLACK]] = True
    return None
