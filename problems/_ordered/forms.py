"""The equivalent forms of an alignment's quadratic program, in variables near 1, and the ways back.

    minimise ||K||^2 / 2 - <K, T>  over the cone,  K = sum_i beta_i w_i w_i' = sum_k s_k P_k

The target is u T with a power of two u, `unit`, so that the optimal K has a norm from 1 to 2 l^1/2.

    rays      x_k = tr(P_k) s_k          a box: s >= 0, and s_k tr P_k <= rank^1/2 at the optimum
    columns   x_i = ||w_i||^2 beta_i     rows of two entries; F becomes the squares of cosines
    metric    x_i = (F1)_i^1/2 beta_i    F >= 0 has F <= diag(F1): curvature 1

In the metric, pooling (weighted isotonic regression) projects on the ordered cone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray, SparseMatrix, csc, require_memory
from klopt.kernels.gram import Gram
from klopt.model.cones import Cones
from klopt.model.features import Feature
from klopt.model.forms import ConeForm, ExplicitForm, SimplexForm, Start
from klopt.model.problem import Formulation, Point
from klopt.model.sets import BoxPlane, OrderedCone
from klopt.model.sets.ordered_cone import pooled
from klopt.problems._ordered.function import (
    ColumnQuadratic,
    PrefixKernels,
    PrefixQuadratic,
    falling,
    rising,
)
from klopt.problems._ordered.witness import Alignment

__all__ = ["AlignmentForms", "SquaredAlignment"]

ORTHOGONAL_TOLERANCE = 1e-9
"""The largest inner product, relative to the shortest column, of orthogonal columns."""


@dataclass(frozen=True, eq=False)
class SquaredAlignment(Formulation):
    """A formulation whose value is -(rho / scale)^2 / 2, where the problem's is rho >= 0."""

    def to_user(self, lower: float, upper: float) -> tuple[float, float]:
        """Return an interval of the form's values as one of rho."""
        squares = -2 * np.array([upper, lower])
        ends = self.scale * np.sqrt(np.maximum(squares, 0.0))
        return float(ends[0]), float(ends[1])


@dataclass(frozen=True, eq=False)
class AlignmentForms:
    """Builds the forms of one alignment and carries points between them and the problem."""

    alignment: Alignment

    def formulations(self) -> tuple[Formulation, ...]:
        """Return the closed form where there is one, then the QP's forms, the fastest first."""
        if not self.alignment.is_positive:
            ray = "all <P_k, T> <= 0: the convex ||K|| is largest at an extreme ray of the cone"
            return (self._explicit(ray),)

        found = []
        if self.is_diagonal:
            pooling = "V^L is orthogonal: F is diagonal, and pooling b (PAVA) solves the QP"
            found.append(self._explicit(pooling))
        found.append(self._nnls())
        if self.alignment.ordered:
            found += [self._ordered_cone(), self._slack_qp()]
        found += [self._order_qp(), self._socp()]
        return tuple(found)

    def _explicit(self, because: str) -> Formulation:
        form = ExplicitForm(self._closed_form)
        return Formulation("explicit", form.needs, lambda: form, _as_alpha, because=because)

    def _nnls(self) -> Formulation:
        return SquaredAlignment(
            "NNLS",
            frozenset({Feature.SIMPLEX, Feature.QUADRATIC, Feature.BOX}),
            self.nnls,
            self.from_rays,
            self.to_rays,
            self._why_rays,
            scale=1 / self.unit,
        )

    def _ordered_cone(self) -> Formulation:
        return SquaredAlignment(
            "ordered cone",
            frozenset({Feature.SIMPLEX, Feature.QUADRATIC, Feature.ORDERED}),
            self.ordered_cone,
            self.from_metric,
            self.to_metric,
            "the QP itself, in the metric diag(F1), which bounds F",
            scale=1 / self.unit,
        )

    def _slack_qp(self) -> Formulation:
        return SquaredAlignment(
            "slack QP",
            frozenset({Feature.CONE, Feature.QUADRATIC}),
            self.slack_qp,
            self.from_rays,
            self.to_rays,
            self._why_rays,
            scale=1 / self.unit,
        )

    def _order_qp(self) -> Formulation:
        return SquaredAlignment(
            "order QP" if self.alignment.ordered else "QP",
            frozenset({Feature.CONE, Feature.QUADRATIC}),
            self.order_qp,
            self.from_columns,
            self.to_columns,
            "the QP itself",
            scale=1 / self.unit,
        )

    def _socp(self) -> Formulation:
        return Formulation(
            "SOCP",
            frozenset({Feature.CONE, Feature.SOC}),
            self.socp,
            self.from_unit,
            self.to_unit,
            "rho is the largest <K, T> / ||T|| with ||K|| = 1",
            scale=-1 / self.unit,
        )

    @property
    def _why_rays(self) -> str:
        if self.alignment.ordered:
            return "Theorem 1 of Xie et al. (2017): the ordered cone is the cone of its prefixes"
        return "the QP itself"

    # ---- what the forms are scaled by, and whether there is a closed form

    @cached_property
    def unit(self) -> float:
        """u, a power of two near min tr P_k / B_k."""
        if not self.alignment.is_positive:
            return 1.0
        return float(np.exp2(np.ceil(-np.log2(self.alignment.best_trace_ratio))))

    @cached_property
    def is_diagonal(self) -> bool:
        """Whether the columns of W are orthogonal, up to rounding, as one random vector sees it."""
        W = self.alignment.columns.W
        norms = self.alignment.columns.norms
        if W.shape[1] > W.shape[0]:
            return False
        z = np.random.default_rng(0).uniform(1, 2, norms.size)
        defect = np.max(np.abs(W.T @ (W @ z) - norms * z))
        return bool(defect <= ORTHOGONAL_TOLERANCE * float(norms.min()))

    def _closed_form(self) -> tuple[FloatArray, None]:
        alignment = self.alignment
        if alignment.is_positive:
            beta = self._orthogonal_optimum()
        else:
            beta = alignment.ray(alignment.best_ray())
        return alignment.alpha(beta), None

    def _orthogonal_optimum(self) -> FloatArray:
        """The optimal beta where the columns are orthogonal: F is diagonal."""
        b = self.alignment.b
        norms = self.alignment.columns.norms
        if self.alignment.ordered:
            return pooled(b / norms, norms)
        return np.maximum(b, 0.0) / norms**2

    # ---- the forms

    def nnls(self) -> SimplexForm:
        """Return the QP in the weights of the rays, over a box; C'FC is never formed."""
        tops = self.unit * self._largest_weights()
        return SimplexForm(self._by_rays(), BoxPlane(np.zeros_like(tops), tops))

    def ordered_cone(self) -> SimplexForm:
        """Return the QP over the ordered cone, cut off where tr K exceeds that of the optimum."""
        columns = self.alignment.columns
        d = self._metric
        total = self.unit * float(np.sqrt(min(columns.W.shape)))
        domain = OrderedCone(d, columns.norms / d, total)
        quadratic = ColumnQuadratic(columns, 1 / d, -self.unit * self.alignment.b / d)
        return SimplexForm(quadratic, domain)

    def slack_qp(self) -> ConeForm:
        """Return the QP in the weights of the rays as a cone program."""
        self._require_memory()
        quadratic = self._by_rays()
        m = self.alignment.kept.size
        every = np.arange(m)
        P = quadratic.block(every, every)
        return ConeForm(quadratic.linear, -sparse.eye_array(m), np.zeros(m), Cones(nonneg=m), P)

    def order_qp(self) -> ConeForm:
        """Return the QP in the weights of the columns as a cone program."""
        c = self._column_costs()
        return ConeForm(
            c, self._order_rows(), np.zeros(c.size), Cones(nonneg=c.size), self._cosines()
        )

    def socp(self) -> ConeForm:
        """Return the program: maximise <K, T> subject to ||K|| <= 1.

        A factor R'R of F gives as many rows as F has rank, never l^2.
        """
        c = self._column_costs()
        R = self._factor
        nothing = sparse.csc_array((1, c.size))
        A = sparse.vstack([self._order_rows(), nothing, sparse.csc_array(-R)], format="csc")
        b = np.zeros(A.shape[0])
        b[c.size] = 1.0
        cones = Cones(nonneg=c.size, soc=(len(R) + 1,))
        # x >= 0, and the cosines are nonnegative with diagonal 1: ||x||_2 <= ||K|| <= 1.
        return ConeForm(c, A, b, cones, radius=float(np.sqrt(c.size)))

    # ---- from a form to the problem

    def from_rays(self, x: FloatArray, y: FloatArray | None) -> Point:
        s = x / self.alignment.traces
        return self._point(rising(s) if self.alignment.ordered else s)

    def from_columns(self, x: FloatArray, y: FloatArray | None) -> Point:
        return self._point(x / self.alignment.columns.norms)

    def from_metric(self, x: FloatArray, y: FloatArray | None) -> Point:
        return self._point(x / self._metric)

    def from_unit(self, x: FloatArray, y: FloatArray | None) -> Point:
        """Return the point of the SOCP; its multipliers give a matrix M that bounds the optimum."""
        point = self.from_columns(x, None)
        if y is None:
            return point
        norms = self.alignment.columns.norms
        g = np.linalg.lstsq(self._factor, -y[norms.size + 1 :])[0]
        return Point(point.primal, {"M": self.alignment.to_all_columns(g / norms)})

    def _point(self, beta: FloatArray) -> Point:
        return Point({"alpha": self.alignment.alpha(beta)})

    # ---- from the problem to a form

    def to_rays(self, point: Point) -> Start:
        beta = self._best_multiple(point)
        s = falling(beta) if self.alignment.ordered else beta
        return Start(s * self.alignment.traces)

    def to_columns(self, point: Point) -> Start:
        return Start(self._best_multiple(point) * self.alignment.columns.norms)

    def to_metric(self, point: Point) -> Start:
        return Start(self._best_multiple(point) * self._metric)

    def to_unit(self, point: Point) -> Start:
        """Return the start of the SOCP, where ||K|| = 1."""
        return Start(self._scaled(point, 0) * self.alignment.columns.norms)

    def _best_multiple(self, point: Point) -> FloatArray:
        """The beta with ||K|| = u rho, the best length for the QP."""
        return self._scaled(point, 1)

    def _scaled(self, point: Point, power: int) -> FloatArray:
        """The beta with ||K|| = (u rho)^power."""
        beta = self.alignment.beta(point.alpha)
        norm = float(np.sqrt(beta @ self.alignment.columns.products(beta)))
        rho = max(float(self.alignment.b @ beta) / norm, 0.0)
        return beta * ((self.unit * rho) ** power / norm)

    # ---- parts of the forms

    @cached_property
    def _prefixes(self) -> PrefixKernels:
        return PrefixKernels(self.alignment.columns)

    def _by_rays(self) -> ColumnQuadratic | PrefixQuadratic:
        alignment = self.alignment
        d = 1 / alignment.traces
        linear = -self.unit * alignment.B / alignment.traces
        if alignment.ordered:
            return PrefixQuadratic(self._prefixes, d, linear)
        return ColumnQuadratic(alignment.columns, d, linear)

    def _largest_weights(self) -> FloatArray:
        """Bounds of s_k tr P_k at the optimum: ||K|| <= ||T|| = 1, ||P_k|| >= tr P_k / rank^1/2."""
        m = self.alignment.kept.size
        if not self.alignment.ordered:
            return np.ones(m)
        rank = min(self.alignment.columns.W.shape)
        return np.asarray(np.sqrt(np.minimum(np.arange(1.0, m + 1), rank)))

    @cached_property
    def _metric(self) -> FloatArray:
        ones = np.ones(self.alignment.kept.size)
        return np.sqrt(self.alignment.columns.products(ones))

    def _column_costs(self) -> FloatArray:
        return -self.unit * self.alignment.b / self.alignment.columns.norms

    @cached_property
    def _factor(self) -> FloatArray:
        return Gram.of(self._cosines(), "F").factor()

    def _cosines(self) -> FloatArray:
        """F with diagonal 1."""
        self._require_memory()
        norms = self.alignment.columns.norms
        return self.alignment.columns.F / np.outer(norms, norms)

    def _order_rows(self) -> SparseMatrix:
        """Rows A x <= 0 of x_i / d_i >= x_(i+1) / d_(i+1) >= 0, their larger entries being 1."""
        d = self.alignment.columns.norms
        if not self.alignment.ordered:
            return csc("A", -sparse.eye_array(d.size))
        smaller = np.append(np.minimum(d[1:], d[:-1]), d[-1])
        every = np.arange(d.size)
        last = d.size - 1
        values = np.concatenate([-smaller / d, smaller[:last] / d[1:]])
        rows = np.concatenate([every, every[:last]])
        columns = np.concatenate([every, every[1:]])
        return csc("A", sparse.csc_array((values, (rows, columns)), shape=(d.size, d.size)))

    def _require_memory(self) -> None:
        m = self.alignment.kept.size
        require_memory(64.0 * m * m, f"a dense quadratic program in {m} variables")


def _as_alpha(x: FloatArray, y: FloatArray | None) -> Point:
    return Point({"alpha": x})
