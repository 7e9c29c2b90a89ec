"""The dual of a data-adaptive kernel in signed coefficients, and what a point proposes to its proof.

A witness is made by any means: `klopt.problems._adaptive.proof` proves what it is worth. Here it is
a feasible a near the given one; of two classifiers, that of a and that of the support vector
machine with the kernel F o K where a method left its coefficients, the better one with its bias and
its best multiple; and with tau the eigenvectors of F. With the b of that support vector machine
instead of a the upper bound is off by the square of the error of F only.

With a bias 1'a = 0 must hold exactly: all a_i are cut to multiples of a power of two so large that
their sums are exact, and one of them takes up what is left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from klopt.arrays import EPS, FloatArray
from klopt.kernels.gram import Gram
from klopt.model.problem import Bracket, Point
from klopt.model.sets import BoxPlane
from klopt.problems._adaptive.proof import (
    AdaptiveProof,
    FeatureProducts,
    MatrixProducts,
    middle_of,
)
from klopt.problems._adaptive.weights import (
    BestWeights,
    WeightedFeatures,
    WeightedKernel,
    is_rounding,
)
from klopt.problems._margin.proof import (
    best_tube,
    hinge_bias,
    hinge_primal,
    zeros_unless_finite,
)
from klopt.proof.enclosure import gamma

__all__ = ["AdaptiveDual"]

NEGLIGIBLE_SHARE = 1e-7
"""Coefficients that are smaller than this share of their mean count as zero where tau is."""
MARGIN_ROUNDING = 16 * EPS
"""More than what the proof charges each margin, as a share of 1 + its size."""


class FeatureKernel(Protocol):
    """A kernel given by features, K = Phi Phi', positive semidefinite by construction."""

    @property
    def Phi(self) -> FloatArray: ...

    @property
    def size(self) -> int: ...


class Proposal(NamedTuple):
    """A classifier for the upper bound: about its primal value, its bias and its multiple."""

    value: float
    offset: float
    scale: float


@dataclass(frozen=True, eq=False)
class AdaptiveDual:
    """The dual in signed coefficients a, of classification or regression.

    Parameters
    ----------
    K
        The kernel, by its matrix or by features.
    y, C, eta, tau
        Labels or targets, the penalty of errors, that of F - 11', and the share of tr F in it.
    bias
        Whether there is one; it asks for 1'a = 0.
    epsilon
        The half-width of the tube; None for classification.
    function
        g: the best F for given coefficients.
    """

    K: Gram | FeatureKernel
    y: FloatArray
    C: float
    eta: float
    tau: float
    bias: bool
    epsilon: float | None
    function: WeightedKernel | WeightedFeatures

    @cached_property
    def proof(self) -> AdaptiveProof:
        """What proves the bounds, from the data alone."""
        kernel: MatrixProducts | FeatureProducts
        kernel = MatrixProducts(self.K) if isinstance(self.K, Gram) else FeatureProducts(self.K.Phi)
        return AdaptiveProof(kernel, self.y, self.C, self.eta, self.tau, self.bias, self.epsilon)

    @cached_property
    def targets(self) -> FloatArray:
        """y less the middle of its range where a bias takes that up: sums keep their digits."""
        return self.y - self.middle

    @property
    def middle(self) -> float:
        """What is taken off the targets."""
        has_offset = self.epsilon is not None and self.bias
        return middle_of(self.y) if has_offset else 0.0

    @cached_property
    def _domain(self) -> BoxPlane:
        return self._scaled_domain(1.0)

    def domain(self, length: float = 1.0) -> BoxPlane:
        """Return the set of a / length."""
        return self._domain if length == 1.0 else self._scaled_domain(length)

    def _scaled_domain(self, length: float) -> BoxPlane:
        n = self.y.size
        box = self.C / length
        if self.epsilon is None:
            low = np.minimum(self.y * box, 0.0)
            high = np.maximum(self.y * box, 0.0)
        else:
            low = np.full(n, -box)
            high = np.full(n, box)
        return BoxPlane(low, high, np.ones(n) if self.bias else None)

    def coefficients(self, point: Point) -> FloatArray:
        """Return the a of a point."""
        return self.proof.coefficients(point)

    def bracket(self, point: Point) -> Bracket:
        """Return the bounds that a point proves."""
        return self.proof.bracket(self.witness(point))

    # The witness

    def witness(self, point: Point) -> Point:
        """Return the arrays from which the proof of a point starts.

        A point may hold `machine`, coefficients of the support vector machine with the kernel F o
        K: the upper bound may be sharper by them.
        """
        near = self._nearest(self.coefficients(point))
        if not self.bias:
            # Without a plane no sum has to be met, so what is zero up to the rounding of C may go.
            near[np.abs(near) <= EPS * self.C] = 0.0
        if not self.tau:
            _drop_negligible(near)
        a = self._balanced(near)
        duals: dict[str, FloatArray] = {}
        b = self._usable(point.dual.get("machine"))
        with np.errstate(over="ignore", invalid="ignore"):
            if self.tau:
                # Eigenvectors are needed up to rounding only, and a method has left those of `near`.
                same_support = np.array_equal(near != 0, a != 0)
                best = self.function.at(near if same_support else a)
                found = self._with_tau(a, b, best, duals)
            else:
                found = self._without_tau(a, b, duals)
        duals["offset"] = np.asarray(found.offset)
        duals["scale"] = np.asarray(found.scale)
        return Point({"alpha": self.y * a} if self.epsilon is None else {"beta": a}, duals)

    def _without_tau(
        self, a: FloatArray, b: FloatArray | None, duals: dict[str, FloatArray]
    ) -> Proposal:
        """The better classifier, from the enclosures of the proof itself."""
        own = self.proof.quartic(a).classifier
        found = self._proposal(a, own.values.mid, own.values.rad, own.curvature.mid)
        if b is None:
            return found
        other = self.proof.classifier(a, b)
        sharper = self._proposal(b, other.values.mid, other.values.rad, other.curvature.mid)
        if not sharper.value < found.value:
            return found
        duals["machine"] = b
        return sharper

    def _with_tau(
        self,
        a: FloatArray,
        b: FloatArray | None,
        best: BestWeights,
        duals: dict[str, FloatArray],
    ) -> Proposal:
        """The better classifier, and the eigenvectors of F."""
        assert best.V is not None
        assert best.f is not None
        duals["V"] = best.V
        duals["f"] = best.f
        if best.Z is not None:
            duals["Z"] = best.Z
        found = self._proposal(a, best.product, self._rounding(a), best.curvature)
        if b is None or not isinstance(self.function, WeightedKernel):
            return found
        # The proof keeps what it has computed for this question.
        weighted = self.proof.weighted(a, b, duals)
        if weighted is None:
            return found
        other = weighted[1]
        sharper = self._proposal(b, other.values.mid, other.values.rad, other.curvature.mid)
        if not sharper.value < found.value:
            return found
        duals["machine"] = b
        return sharper

    def _rounding(self, b: FloatArray) -> FloatArray:
        """About the rounding of (F o K)b."""
        kernel = self.proof.kernel
        size = float(kernel.roots @ np.abs(b))
        return np.asarray(gamma(kernel.steps) * size * kernel.roots)

    def _proposal(
        self, b: FloatArray, f: FloatArray, rounding: FloatArray, curvature: float
    ) -> Proposal:
        """The best bias and multiple of a classifier with values f, known up to rounding."""
        offset, excess = self.residuals(f)
        if self.epsilon is not None:
            loss = float(np.maximum(excess, 0.0).sum())
            return Proposal(curvature / 2 + self.C * loss, offset, 1.0)
        margins = self.y * (f + offset)
        # Margins as the proof will see them: where C is large, one below 1 by rounding costs all.
        seen = margins - 1.001 * rounding - MARGIN_ROUNDING * (1 + np.abs(margins))
        value, scale = hinge_primal(seen, curvature, self.C)
        return Proposal(value, offset, scale)

    def _usable(self, svm: FloatArray | None) -> FloatArray | None:
        """Coefficients made feasible; None where they have a wrong shape or are not finite."""
        if svm is None or svm.shape != self.y.shape or not np.isfinite(svm).all():
            return None
        return self._nearest(svm)

    def residuals(self, f: FloatArray) -> tuple[float, FloatArray]:
        """Return the best bias for values f, and what each point loses under it.

        Inside the margin or the tube a loss is negative.
        """
        if self.epsilon is None:
            bias = hinge_bias(self.y, f) if self.bias else 0.0
            return bias, 1 - self.y * (f + bias)
        left = self.targets - f
        if not self.bias:
            return 0.0, np.abs(left) - self.epsilon
        return best_tube(left, self.epsilon)

    # Exactly feasible coefficients

    def _nearest(self, given: FloatArray) -> FloatArray:
        """The nearest feasible point, without the rounding of the projection."""
        a = self._domain.project(zeros_unless_finite(given))
        a[is_rounding(a)] = 0.0
        return a

    def _balanced(self, a: FloatArray) -> FloatArray:
        """The same with the sum 0, exactly, where there is a bias."""
        # A sum that is not even 0 in floats need not be computed exactly.
        if not self.bias or (not a.sum() and math.fsum(a.tolist()) == 0.0):
            return a
        return _balanced(a, self._domain.lower, self._domain.upper)


def _drop_negligible(a: FloatArray) -> None:
    """Set coefficients to zero that an interior-point method leaves of points that do not count.

    All of them together have `NEGLIGIBLE_SHARE` of ||a||_1 at most. Near the optimum the derivative
    is zero or falls towards zero wherever a_i is not zero, so that this costs no more than the
    square of the share. The proof works on the rest alone.
    """
    size = np.abs(a)
    a[size <= NEGLIGIBLE_SHARE * float(size.mean())] = 0.0


def _balanced(a: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Numbers near a with the sum 0, exactly, between bounds around 0.

    >>> a = _balanced(np.array([0.3, -0.1, -0.2]), np.full(3, -1.0), np.ones(3))
    >>> math.fsum(a), bool(np.allclose(a, [0.3, -0.1, -0.2]))
    (0.0, True)
    """
    # Sums of multiples of the grid stay below 2^52 of it: they are exact in any order.
    grid = max(math.ldexp(1.0, math.frexp(float(np.abs(a).sum()))[1] - 51), 2.0**-1074)
    a = np.trunc(a / grid) * grid
    left = float(a.sum())

    # The point farthest from its bounds takes up what the sum is off zero.
    i = int(np.argmax(np.minimum(a - lower, upper - a)))
    moved = a[i] - left
    if lower[i] <= moved <= upper[i]:
        a[i] = moved
        return a
    # Where it cannot, the largest ones of that sign go towards zero.
    for i in np.argsort(-a * np.sign(left)):
        share = math.copysign(min(abs(a[i]), abs(left)), left)
        a[i] -= share
        left -= share
        if not left:
            break
    return a
