"""The forms of an alignment's quadratic program, each in variables that keep its numbers near 1, and the ways back.

minimise ||K||^2 / 2 - <K, T>  over the cone,  K = sum_i beta_i w_i w_i' = sum_k s_k P_k

rays      x_k = tr(P_k) s_k          a box: s >= 0, and s_k tr P_k <= rank^1/2 since ||K|| <= ||T|| = 1 at the optimum
columns   x_i = ||w_i||^2 beta_i     rows of two entries; F becomes the squares of cosines, with diagonal 1
metric    x_i = (F1)_i^1/2 beta_i    F >= 0 has F <= diag(F1): curvature 1, and pooling projects in that metric
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray, SparseMatrix, csc, require_memory
from klopt.kernels.gram import Gram
from klopt.model.cones import Cones
from klopt.model.forms import ConeForm, SimplexForm, Start
from klopt.model.problem import Point
from klopt.model.sets import BoxPlane, OrderedCone
from klopt.problems._ordered.alignment import Alignment
from klopt.problems._ordered.function import ColumnQuadratic, PrefixQuadratic, falling, rising

__all__ = ["OrderedForms"]


@dataclass(frozen=True, eq=False)
class OrderedForms:
    """Builds the forms of one alignment and carries points to and fro."""

    reduced: Alignment

    def nnls(self) -> SimplexForm:
        """The QP in the weights of the rays, over a box; C'FC is looked into where it is needed and never formed."""
        tops = self.reduced.unit * self.reduced.tops()
        return SimplexForm(self._by_rays(), BoxPlane(np.zeros_like(tops), tops))

    def ordered_cone(self) -> SimplexForm:
        """The QP over the ordered cone, cut off where tr K is larger than the optimum can have it."""
        columns, d, unit = self.reduced.columns, self._metric, self.reduced.unit
        domain = OrderedCone(d, columns.norms / d, unit * float(np.sqrt(min(columns.W.shape))))
        return SimplexForm(ColumnQuadratic(columns, 1 / d, -unit * self.reduced.b / d), domain)

    def slack_qp(self) -> ConeForm:
        """The QP in the weights of the rays as a cone program."""
        quadratic, every = self._by_rays(), np.arange(self.reduced.kept.size)
        self._require_memory()
        rows, b = -sparse.eye_array(every.size), np.zeros(every.size)
        return ConeForm(
            quadratic.linear, rows, b, Cones(nonneg=every.size), quadratic.block(every, every)
        )

    def order_qp(self) -> ConeForm:
        """The QP in the weights of the columns as a cone program."""
        c, rows = (
            -self.reduced.unit * self.reduced.b / self.reduced.columns.norms,
            self._order_rows(),
        )
        return ConeForm(c, rows, np.zeros(c.size), Cones(nonneg=c.size), self._cosines())

    def socp(self) -> ConeForm:
        """Maximise <K, T> subject to ||K|| <= 1, by a factor R'R of F: as many rows as F has rank, never l^2."""
        c, R = -self.reduced.unit * self.reduced.b / self.reduced.columns.norms, self._factor
        A = sparse.vstack(
            [self._order_rows(), sparse.csc_array((1, c.size)), sparse.csc_array(-R)], format="csc"
        )
        b = np.zeros(A.shape[0])
        b[c.size] = 1.0
        # x >= 0, and the cosines are nonnegative with diagonal 1: ||x||_2 <= ||K|| <= 1.
        return ConeForm(
            c, A, b, Cones(nonneg=c.size, soc=(len(R) + 1,)), radius=float(np.sqrt(c.size))
        )

    def from_rays(self, x: FloatArray, y: FloatArray | None) -> Point:
        s = x / self.reduced.traces
        return self._point(rising(s) if self.reduced.ordered else s)

    def from_columns(self, x: FloatArray, y: FloatArray | None) -> Point:
        return self._point(x / self.reduced.columns.norms)

    def from_unit(self, x: FloatArray, y: FloatArray | None) -> Point:
        """With the multiplier of ||K|| <= 1 comes a matrix M that bounds the optimum better than K does."""
        point, norms = self.from_columns(x, None), self.reduced.columns.norms
        if y is None:
            return point
        g = np.linalg.lstsq(self._factor, -y[norms.size + 1 :])[0]
        return Point(point.primal, {"M": self.reduced.spread(g / norms)})

    def from_metric(self, x: FloatArray, y: FloatArray | None) -> Point:
        return self._point(x / self._metric)

    def to_rays(self, point: Point) -> Start:
        beta = self._scaled(point, 1)
        return Start((falling(beta) if self.reduced.ordered else beta) * self.reduced.traces)

    def to_columns(self, point: Point) -> Start:
        return Start(self._scaled(point, 1) * self.reduced.columns.norms)

    def to_unit(self, point: Point) -> Start:
        """For the SOCP, where ||K|| = 1."""
        return Start(self._scaled(point, 0) * self.reduced.columns.norms)

    def to_metric(self, point: Point) -> Start:
        return Start(self._scaled(point, 1) * self._metric)

    def _point(self, beta: FloatArray) -> Point:
        return Point({"alpha": self.reduced.alpha(beta)})

    def _scaled(self, point: Point, power: int) -> FloatArray:
        """beta with ||K|| = u rho, the best length for the QP, or with power 0 of length 1."""
        beta = self.reduced.beta(point.alpha)
        size = float(np.sqrt(beta @ self.reduced.columns.products(beta)))
        rho = max(float(self.reduced.b @ beta) / size, 0.0)
        return beta * ((self.reduced.unit * rho) ** power / size)

    def _by_rays(self) -> ColumnQuadratic:
        reduced = self.reduced
        quadratic = PrefixQuadratic if reduced.ordered else ColumnQuadratic
        return quadratic(
            reduced.columns, 1 / reduced.traces, -reduced.unit * reduced.B / reduced.traces
        )

    @cached_property
    def _metric(self) -> FloatArray:
        return np.sqrt(self.reduced.columns.products(np.ones(self.reduced.kept.size)))

    @cached_property
    def _factor(self) -> FloatArray:
        return Gram.of(self._cosines(), "F").factor()

    def _cosines(self) -> FloatArray:
        self._require_memory()
        norms = self.reduced.columns.norms
        return self.reduced.columns.F / np.outer(norms, norms)

    def _order_rows(self) -> SparseMatrix:
        """Rows A x <= 0 of x_i / d_i >= x_(i+1) / d_(i+1) >= 0, the larger entry of each row being 1."""
        d = self.reduced.columns.norms
        if not self.reduced.ordered:
            return csc("A", -sparse.eye_array(d.size))
        smaller = np.append(np.minimum(d[1:], d[:-1]), d[-1])
        at, last = np.arange(d.size), d.size - 1
        values = np.concatenate([-smaller / d, smaller[:last] / d[1:]])
        places = np.concatenate([at, at[:last]]), np.concatenate([at, at[1:]])
        return csc("A", sparse.csc_array((values, places), shape=(d.size, d.size)))

    def _require_memory(self) -> None:
        m = self.reduced.kept.size
        require_memory(64.0 * m * m, f"a dense quadratic program in {m} variables")
