"""Cone programs that minimise a linear function over a polyhedron plus a quadratic form x'Hx/2.

The polyhedron is b - Ax in a product of zero and nonnegative cones. The quadratic form comes in one
of three shapes, by H itself or by a factor F of few rows with H = F'F:

    quadratic   minimise  c'x + x'Hx/2
    factor      minimise  c'x + v'v/2            subject to   v = Fx
    epigraph    minimise  c'x + t                subject to   ||Fx||^2 <= 2t
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray, SparseMatrix
from klopt.model.cones import Cones
from klopt.model.forms import ConeForm

__all__ = ["Polyhedron"]


@dataclass(frozen=True, eq=False)
class Polyhedron:
    """A linear objective c'x over rows b - Ax, equalities first: it lacks only its curvature.

    Parameters
    ----------
    c, A, b
        The objective and the rows.
    zero
        The number of equalities.
    radius
        A bound of ||x||_1 over the polyhedron.
    """

    c: FloatArray
    A: SparseMatrix
    b: FloatArray
    zero: int
    radius: float

    def with_quadratic(self, H: FloatArray) -> ConeForm:
        """Minimise x'Hx/2 + c'x, where H belongs to the first variables."""
        m = len(H)
        n = self.c.size
        # A dense symmetric matrix already lies in memory as CSC wants it: nothing to sort.
        pointers = np.minimum(np.arange(n + 1), m) * m
        rows = np.tile(np.arange(m), m)
        P = sparse.csc_array((H.ravel(), rows, pointers), shape=(n, n))
        cones = Cones(self.zero, self.b.size - self.zero)
        return ConeForm(self.c, self.A, self.b, cones, P, self.radius)

    def with_factor(self, F: FloatArray) -> ConeForm:
        """Minimise v'v/2 + c'x with v = Fx: the same program without a dense matrix."""
        rank = len(F)
        n = self.c.size

        # Rows Fx - v = 0 between the equalities and the inequalities of the polyhedron.
        unused = sparse.csc_array((rank, n - F.shape[1]))
        tie = sparse.hstack([sparse.csc_array(F), unused, -sparse.eye_array(rank)])
        wide = sparse.hstack([self.A, sparse.csc_array((self.b.size, rank))], format="csr")
        A = sparse.vstack([wide[: self.zero], tie, wide[self.zero :]], format="csc")
        b = np.concatenate([self.b[: self.zero], np.zeros(rank), self.b[self.zero :]])
        cones = Cones(self.zero + rank, self.b.size - self.zero)

        c = np.concatenate([self.c, np.zeros(rank)])
        P = sparse.diags_array(np.repeat([0.0, 1.0], [n, rank]), format="csc")
        # ||v||_1 <= (largest absolute column sum of F) ||x||_1.
        column_sum = float(np.abs(F).sum(axis=0).max(initial=0.0))
        return ConeForm(c, A, b, cones, P, self.radius * (1 + column_sum))

    def with_epigraph(self, F: FloatArray) -> ConeForm:
        """Minimise t + c'x subject to ||Fx||^2 <= 2t.

        As (t/rho + rho/2, t/rho - rho/2, Fx) in the second-order cone. rho would best be ||Fx||,
        which is unknown; the root of the number of variables is its size in the form's units.
        """
        rho = np.sqrt(F.shape[1])
        rank = len(F)
        n = self.c.size

        linear = sparse.hstack([self.A, sparse.csc_array((self.b.size, 1))])
        top = sparse.csc_array(([-1 / rho, -1 / rho], ([0, 1], [n, n])), shape=(2, n + 1))
        unused = np.zeros((rank, n + 1 - F.shape[1]))
        curved = sparse.csc_array(-np.hstack([F, unused]))
        A = sparse.vstack([linear, top, curved], format="csc")
        b = np.concatenate([self.b, [rho / 2, -rho / 2], np.zeros(rank)])
        cones = Cones(self.zero, self.b.size - self.zero, soc=(rank + 2,))
        return ConeForm(np.append(self.c, 1.0), A, b, cones)
