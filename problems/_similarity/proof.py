"""What multipliers, a kernel and gradients of the loss prove about a kernel learned from similarities: both bounds.

Upper: any kernel K = HH' of the right trace, with the value of its machine bounded by a classifier,
f = Ka + b at the best b and the best multiple, which holds for every a; plus the losses of K.
Lower: for any a in the box and any Z_i in the domain of the conjugate L*,

    y'a - rho sum (<Z_i, S_i> + L*(Z_i)) + tau lambda_min(rho sum Z_i - aa'/2)

is at most  max over a of  y'a - a'Ka/2 + rho sum L(K - S_i)  for every K of trace tau. Without a
trace tau is a bound of the trace of the best kernel, which the upper bound gives: its losses are
not above it, and with the (z, L*(zI)) of `klopt.problems._similarity.data`

    tr K <= tr(mean of the S_i) + (upper / (rho m) + L*(zI)) / z          for every z > 0;

the eigenvalue counts only where it is negative. Where no z tells, kernels are looked for up to a
trace that is `FAR` times the usual one, and nothing is proven but where the eigenvalue is not
negative. For the squared loss the best Z_i for a is known, 2(K - S_i) with the K nearest to a
(`klopt.problems._similarity.block`), and so is the eigenvalue.

An eigenvalue is known up to n eps ||.||, which is taken off; sums are right up to n eps times their
terms.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from klopt.arrays import EPS, FloatArray
from klopt.model.problem import Bracket, Point
from klopt.model.sets import BoxPlane
from klopt.problems._margin.proof import best_shift, finite, hinge_primal
from klopt.problems._similarity.block import Block
from klopt.problems._similarity.data import Loss, symmetric_part

__all__ = ["NO_CONJUGATE", "OUTSIDE", "Data", "Single", "classifier_value", "least_eigenvalue"]

CLOSED = 1e-9
# What rho = 0 is replaced by, relative to values over losses, where a kernel nearest to a is looked
# for.
LEAST_WEIGHT = 1e-10
# Of the trace that similarities suggest: how large a kernel may be where its loss does not say.
FAR = 1e3
NO_CONJUGATE = "the loss has no conjugate(Z): nothing bounds the optimum from below"
OUTSIDE = "the gradients lie outside the domain of conjugate(Z)"


@dataclass(frozen=True, eq=False)
class Data:
    """Checked similarities, labels and penalties."""

    S: tuple[FloatArray, ...]
    y: FloatArray
    C: float
    rho: float
    trace: float | None
    loss: Loss
    _domains: dict[float, BoxPlane] = field(default_factory=dict, init=False, repr=False)

    @property
    def n(self) -> int:
        return self.y.size

    @cached_property
    def mean(self) -> FloatArray:
        """The mean of the similarities."""
        return (
            np.asarray(sum(self.S[1:], self.S[0]) / len(self.S)) if len(self.S) > 1 else self.S[0]
        )

    @cached_property
    def scale(self) -> float:
        """The size of the diagonal of a kernel."""
        if self.trace is not None:
            return self.trace / self.n
        return float(np.mean([np.linalg.norm(S) for S in self.S])) / float(np.sqrt(self.n)) or 1.0

    @property
    def weight(self) -> float:
        """rho, or next to nothing where it is 0."""
        if self.rho:
            return self.rho
        typical = self.C * self.n + 1 / self.scale
        losses = 1 + self.n * self.scale**2 + sum(float(np.vdot(S, S)) for S in self.S)
        return LEAST_WEIGHT * typical / losses

    @property
    def provable(self) -> bool:
        """Whether the optimum can be bounded from below."""
        return self.loss.conjugate is not None or not self.rho

    def domain(self, length: float = 1.0) -> BoxPlane:
        """Return the set of a / length:  0 <= y_i a_i <= C, 1'a = 0."""
        if length not in self._domains:
            corner = self.y * (self.C / length)
            self._domains[length] = BoxPlane(
                np.minimum(corner, 0.0), np.maximum(corner, 0.0), np.ones(self.n)
            )
        return self._domains[length]

    def multipliers(self, alpha: FloatArray) -> FloatArray:
        """Return y o alpha moved into the box and onto the plane."""
        return self.domain().repair(finite(alpha) * self.y)

    def losses(self, K: FloatArray, S: tuple[FloatArray, ...]) -> float:
        """Return rho sum L(K - S_i)."""
        return self.rho * sum(self.loss.value(K - Si) for Si in S) if self.rho else 0.0


def classifier_value(f: FloatArray, curve: float, y: FloatArray, C: float) -> tuple[float, float]:
    """Return the hinge value of the best multiple of f, of squared norm `curve`, and its bias."""
    bias = best_shift(y - f, int(np.count_nonzero(y > 0)))
    return hinge_primal(y * (f + bias), curve, C)[0], bias


def least_eigenvalue(M: FloatArray) -> float:
    """Return a lower bound of the eigenvalues of a symmetric matrix."""
    return float(np.linalg.eigvalsh(M)[0]) - len(M) * EPS * float(np.linalg.norm(M))


@dataclass(frozen=True, eq=False)
class Single:
    """One kernel from one or several similarities."""

    data: Data

    @cached_property
    def block(self) -> Block:
        return Block(self.data.mean, self.data.trace)

    @cached_property
    def spread(self) -> float:
        """sum ||S_i - mean||^2: what the squared loss has beyond m ||K - mean||^2."""
        return sum(float(np.vdot(S - self.data.mean, S - self.data.mean)) for S in self.data.S)

    @property
    def squared(self) -> bool:
        return self.data.loss.name == "squared"

    @cached_property
    def most(self) -> float:
        """A bound of the trace of the best kernel."""
        if self.data.trace is not None:
            return self.data.trace
        machine = (
            self.data.C
            * 2
            * min(np.count_nonzero(self.data.y > 0), np.count_nonzero(self.data.y < 0))
        )
        lam, V = np.linalg.eigh(self.data.mean)
        upper = machine + self.data.losses(V * np.maximum(lam, 0.0) @ V.T, self.data.S)
        found = self._reach(upper)
        return found if np.isfinite(found) else FAR * self.data.n * self.data.scale

    @cached_property
    def _supports(self) -> list[tuple[float, float]]:
        return self.data.loss.supports(self.data.n, self.data.scale)

    def _reach(self, upper: float) -> float:
        """A bound of the trace of kernels whose losses are at most `upper`; inf where none is known."""
        share = upper / (self.data.rho * len(self.data.S))
        reach = min(((share + price) / z for z, price in self._supports), default=np.inf)
        return max(float(np.trace(self.data.mean)) + reach, 0.0)

    def factor(self, point: Point, a: FloatArray) -> FloatArray:
        """Return H with HH' the kernel that the point holds, made feasible; without one the nearest to a."""
        given = point.primal.get("kernel")
        if (
            self.squared
            or given is None
            or given.shape != self.data.mean.shape
            or not np.isfinite(given).all()
        ):
            return self.block.nearest(a, 1.0, self.data.weight * len(self.data.S)).factor
        lam, V = np.linalg.eigh(symmetric_part(given))
        mu = self.block.projected(lam)
        return V[:, mu > 0] * np.sqrt(mu[mu > 0])

    def gradients(self, point: Point, K: FloatArray) -> FloatArray:
        """Return the Z_i that the point holds, or gradients of the losses at K."""
        given = point.dual.get("gradients")
        shape = (len(self.data.S), *K.shape)
        if given is None or given.shape != shape or not np.isfinite(given).all():
            given = np.array([self.data.loss.gradient(K - S) for S in self.data.S])
        return np.array([self.data.loss.inside(symmetric_part(Z)) for Z in given])

    def bracket(self, point: Point) -> Bracket:
        """Return what alpha, and kernel and gradients where the point has them, prove."""
        data, y = self.data, self.data.y
        a = data.multipliers(point.alpha)
        if self.squared:
            near = self.block.nearest(a, 1.0, data.weight * len(data.S))
            H = near.factor
        else:
            H = self.factor(point, a)
        K, inner = H @ H.T, H.T @ a
        machine, bias = classifier_value(H @ inner, float(inner @ inner), y, data.C)
        loss = data.losses(K, data.S)
        rounding = (
            data.n
            * EPS
            * (machine + loss + float(np.abs(a).sum()) * (1 + float(np.abs(K).max()) * data.C))
        )
        upper = machine + loss + rounding
        solved: dict[str, object] = {"alpha": y * a, "kernel": K, "bias": bias}
        if self.squared and data.rho:
            lower = float(y @ a) + near.value + data.rho * self.spread
            size = float(np.linalg.norm(near.lam)) + float(np.linalg.norm(near.mu))
            lower -= rounding + data.n * EPS * 2 * data.rho * len(data.S) * size * size
            return Bracket(lower, upper, Point(solved))
        Z = self.gradients(point, K)
        lower, note = self._lower(a, Z, upper)
        if data.rho and upper - lower > CLOSED * (1 + abs(upper)):
            other = self._subgradients_at_kinks(a)
            lower, note, Z = max(
                (lower, note, Z), (*self._lower(a, other, upper), other), key=lambda found: found[0]
            )
        return Bracket(lower - rounding, upper, Point(solved, {"gradients": Z}), note)

    def _subgradients_at_kinks(self, a: FloatArray) -> FloatArray:
        """Gradients that hold the machine's off, rho sum Z_i = aa'/2 - c I, as far as they may: those at K = S_i do."""
        data = self.data
        pull = np.outer(a / 2, a)
        if data.trace is not None:
            pull.flat[:: data.n + 1] -= float(a @ a) / (2 * data.n)
        share = data.loss.inside(pull / (data.rho * len(data.S)))
        return np.array([share] * len(data.S))

    def _lower(self, a: FloatArray, Z: FloatArray, upper: float) -> tuple[float, str]:
        data = self.data
        if not data.provable:
            return -np.inf, NO_CONJUGATE + ("" if data.trace is not None else f"; {self._looked}")
        total = float(data.y @ a)
        if data.rho and data.loss.conjugate is not None:
            terms = [
                float(np.vdot(Zi, S)) + float(data.loss.conjugate(Zi))
                for Zi, S in zip(Z, data.S, strict=True)
            ]
            total -= data.rho * sum(terms) + data.n * EPS * data.rho * sum(map(abs, terms))
        if np.isnan(total) or total == -np.inf:
            return -np.inf, OUTSIDE
        least = least_eigenvalue(data.rho * Z.sum(axis=0) - np.outer(a / 2, a))
        if data.trace is not None:
            return total + data.trace * least, ""
        if least >= 0:
            return total, ""
        note = (
            ""
            if self._supports
            else f"the loss does not bound the trace of the best kernel; {self._looked}"
        )
        return total + self._reach(upper) * least, note

    @property
    def _looked(self) -> str:
        return f"kernels were looked for up to trace {self.most:.3g}"
