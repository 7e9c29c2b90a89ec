"""Regularised least squares over the kernels that commute with a Laplacian: one number a direction, all independent.

With the directions U, A, B of `klopt.problems._spectral.eigenspaces`, K = U diag(lam) U' and rest =
||Y||^2 - sum A (what the directions that were left out see of the labels),

    minimise over lam >= 0   sum_i A_i / (lam_i + 1/C) / 2 + mu B_i lam_i  +  C rest / 2
    solution                 lam_i = [(A_i / (2 mu B_i))^1/2 - 1/C]_+
    dual bound               sum_i a_i A_i^1/2 - a_i^2 / (2C)  +  C rest / 2,    a_i = min(C A_i^1/2, (2 mu B_i)^1/2).

In an eigenspace the directions of Y_g are best: the loss falls with lam as A does, concave in A, so
that to share A among other directions costs more. [1] prints 1/C inside the root of (8), which is
not the minimiser.

[1] Mao, Tsang, Parameter-free spectral kernel learning, 2010, (7), (8) and Proposition 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import EPS, FloatArray
from klopt.model.cones import Cones, Feature
from klopt.model.forms import ConeForm, ExplicitForm, Start
from klopt.model.problem import Bracket, Formulation, Point
from klopt.problems._spectral.eigenspaces import Directions

__all__ = ["SpectralFamily"]

FAINT = 1e-4
"""Directions whose root is smaller have lam = 0 for sure and stay out of the cone program."""


@dataclass(frozen=True, eq=False)
class SpectralFamily:
    """The problem over spectral kernels; solutions have the array `spectrum`, lam of each direction."""

    directions: Directions
    C: float
    mu: float

    @property
    def rest(self) -> float:
        """What is lost of the labels whatever the kernel is: C ||Y||^2 / 2 beyond the directions."""
        d = self.directions
        return self.C * max(float(np.sum(d.Y**2)) - float(d.A.sum()), 0.0) / 2

    def formulations(self) -> tuple[Formulation, ...]:
        """Return the closed form and the cone program."""
        rule, socp = ExplicitForm(self._closed_form), frozenset({Feature.CONE, Feature.SOC})
        closed = "each term is convex with one stationary point, lam = (A / (2 mu B))^1/2 - 1/C"
        cones = "the hyperbola v w >= 1 is a second-order cone"
        way, units = (self._from_cones, self._to_cones, cones), self._cones
        return (
            Formulation("explicit", rule.needs, lambda: rule, _recover, because=closed),
            Formulation("SOCP", socp, self._socp, *way, scale=units.scale, shift=units.shift),
        )

    def bracket(self, point: Point) -> Bracket:
        """Return the value at the nearest spectrum and the dual value, both sums of one term a direction."""
        d, lam = self.directions, np.maximum(np.nan_to_num(point.spectrum), 0.0)
        upper = float(np.sum(d.A / (lam + 1 / self.C) / 2 + self.mu * d.B * lam)) + self.rest
        a = np.minimum(self.C * np.sqrt(d.A), np.sqrt(2 * self.mu * d.B))
        lower = float(np.sum(a * np.sqrt(d.A) - a * a / (2 * self.C))) + self.rest
        return Bracket(
            lower * (1 - 8 * EPS), upper * (1 + 8 * EPS), Point({"spectrum": lam}, {"a": a})
        )

    def kernel(self, point: Point) -> FloatArray:
        """Return U diag(lam) U'."""
        return (self.directions.U * point.spectrum) @ self.directions.U.T

    def decide(self, point: Point) -> FloatArray:
        """Return K_:l (K_ll + I/C)^-1 Y."""
        return self.directions.decide(point.spectrum, 1 / self.C)

    def _closed_form(self) -> tuple[FloatArray, None]:
        return np.maximum(self._roots - 1, 0.0) / self.C, None

    @cached_property
    def _roots(self) -> FloatArray:
        """C (A / (2 mu B))^1/2, which is 1 + C lam where that is more than 1."""
        return self.C * np.sqrt(self.directions.A / (2 * self.mu * self.directions.B))

    @cached_property
    def _cones(self) -> _Units:
        d, roots = self.directions, self._roots
        used = np.flatnonzero(roots > FAINT)
        heights = np.sqrt(self.mu * d.A[used] * d.B[used] / 2)
        scale = float(np.minimum(heights, heights * roots[used]).sum()) or 1.0
        unused = self.C * (float(d.A.sum()) - float(d.A[used].sum())) / 2
        return _Units(
            used,
            heights / scale,
            scale,
            self.rest + unused - self.mu * float(d.B[used].sum()) / self.C,
        )

    def _socp(self) -> ConeForm:
        """Minimise sum_i height_i (v_i + w_i) subject to v_i >= 1 / root_i, v_i w_i >= 1; v is (1 + C lam) / root."""
        used, heights = self._cones.used, self._cones.heights
        m = used.size
        identity, none = sparse.eye_array(m), sparse.csc_array((m, m))
        v, w = sparse.hstack([identity, none]), sparse.hstack([none, identity])
        # (v + w, v - w, 2) for each i, its three rows together
        rows = sparse.vstack([-(v + w), w - v, 0 * v], format="csr")[
            np.arange(3 * m).reshape(3, m).T.ravel()
        ]
        A = sparse.vstack([-v, rows], format="csc")
        b = np.concatenate([-1 / self._roots[used], np.tile([0.0, 0.0, 2.0], m)])
        return ConeForm(np.tile(heights, 2), A, b, Cones(nonneg=m, soc=(3,) * m))

    def _from_cones(self, x: FloatArray, y: FloatArray | None) -> Point:
        used, lam = self._cones.used, np.zeros(self._roots.size)
        lam[used] = (self._roots[used] * x[: used.size] - 1) / self.C
        return Point({"spectrum": lam})

    def _to_cones(self, point: Point) -> Start:
        used = self._cones.used
        v = (1 + self.C * point.spectrum[used]) / self._roots[used]
        return Start(np.concatenate([v, 1 / v]))


@dataclass(frozen=True, eq=False)
class _Units:
    """The directions in the cone program, their heights, and its value in the problem's units."""

    used: npt.NDArray[np.intp]
    heights: FloatArray
    scale: float
    shift: float


def _recover(x: FloatArray, y: FloatArray | None) -> Point:
    return Point({"spectrum": x})
