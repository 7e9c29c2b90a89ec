"""The way from any weights to a point of the cone of an alignment, and back to all columns.

Columns of V that vanish on the labelled points are no part of any ray of `proof`. They, and with an
order those that e_i = sigma^-(i-1) has made rounding beside the others, are left out of the forms
and come back in `Alignment.alpha`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from klopt.arrays import EPS, FloatArray
from klopt.model.functions import IntArray
from klopt.model.problem import Point
from klopt.model.sets.ordered_cone import pooled
from klopt.problems._ordered.proof import AlignmentBounds

__all__ = ["Alignment"]

POSITIVE_ROUNDING = 64 * EPS
"""An alignment <P_k, T> / tr P_k up to this size is rounding."""


@dataclass(frozen=True, eq=False)
class Alignment(AlignmentBounds):
    """An alignment problem in the columns that matter, with the way from beta to alpha."""

    @cached_property
    def is_positive(self) -> bool:
        """Whether the optimum is positive beyond rounding: whether a quadratic program finds it."""
        return self.best_trace_ratio > POSITIVE_ROUNDING

    def ray(self, k: int) -> FloatArray:
        """Return the beta of P_k."""
        beta = np.zeros(self.kept.size)
        first = 0 if self.ordered else k
        beta[first : k + 1] = 1.0
        return beta

    def best_ray(self) -> int:
        """Return the k of the largest B_k / ||P_k||."""
        return int(np.argmax(self.B / self.ray_norms()))

    def witness(self, point: Point) -> Point:
        """Return the weights of the nearest point of the cone; the dual part is kept."""
        return Point({"alpha": self.alpha(self.beta(point.alpha))}, point.dual)

    def beta(self, alpha: FloatArray) -> FloatArray:
        """Return the beta of the cone that is nearest to alpha; a ray where that is zero."""
        kept = alpha[self.kept]
        largest = float(np.abs(kept).max())
        if not np.isfinite(largest):
            kept = np.nan_to_num(kept)
            largest = float(np.abs(kept).max())
        given = kept / (largest or 1.0)
        if self.ordered:
            beta = pooled(given, self.steps[self.kept])
        else:
            beta = np.maximum(given, 0.0)
        if beta.any():
            return beta

        # Every beta of the cone has an alignment but 0 itself.
        if self.is_positive:
            return self.ray(int(np.argmax(self.B / self.traces)))
        return self.ray(self.best_ray())

    def alpha(self, beta: FloatArray) -> FloatArray:
        """Return the weights of all columns of V, of sum 1."""
        if self.ordered:
            # Columns that were left out keep the order, too, by the beta of the next kept one.
            full: FloatArray = self.steps * np.append(beta, 0.0)[self._following]
        else:
            full = self.to_all_columns(beta)
        return full / (float(full.sum()) or 1.0)

    @cached_property
    def _following(self) -> IntArray:
        """The place in `kept` of the first kept column that does not lie before each column."""
        return np.searchsorted(self.kept, np.arange(self.steps.size))

    def to_all_columns(self, g: FloatArray) -> FloatArray:
        """Return the coefficients of sum_i g_i w_i w_i' in the columns of V."""
        full = np.zeros(self.steps.size)
        full[self.kept] = self.steps[self.kept] * g
        return full

    def from_all_columns(self, full: FloatArray) -> FloatArray:
        """Return the g of which `full` holds the coefficients."""
        with np.errstate(over="ignore"):
            return np.asarray(full[self.kept] / self.steps[self.kept])
