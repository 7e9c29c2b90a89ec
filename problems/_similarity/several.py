"""What multipliers, shares, kernels and gradients prove about several kernels learned from as many similarities.

    minimise over K_1, .., K_m   max over a and g of  y'a - sum_i a'K_i a / (2 g_i)   +   rho sum_i L(K_i - S_i)

g >= 0 of sum 1. The best g for given kernels is g_i = r_i / sum r, r_i = (a'K_i a)^1/2: the inner
problem is block-linf multiple kernel learning. Upper: any kernels K_i = H_i H_i' of the right
trace, the classifier f = sum_i K_i a / g_i + b with ||.||^2 = max_i |H_i'a|^2 / g_i^2, and the
losses. Lower: for any a in the box and any g > 0 of sum 1

    y'a + sum_i psi_i(a, g_i)                                                               (squared loss)
    y'a - rho sum_i (<Z_i, S_i> + L*(Z_i)) + tau sum_i lambda_min(rho Z_i - aa'/(2 g_i))    (any Z_i in the domain)
    y'a - tau/2 (sum_i max_j |V_i'a|_j)^2                                        (rho = 0, eigenvectors V_i are kept)

with psi_i of `klopt.problems._similarity.block`, or of `klopt.problems._similarity.spectra` where
kernels keep their eigenvectors. It goes to -inf as g_i -> 0: the best g are positive, unless a = 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from klopt.arrays import EPS, FloatArray
from klopt.model.problem import Bracket, Point
from klopt.problems._similarity.block import Block
from klopt.problems._similarity.data import symmetric_part
from klopt.problems._similarity.proof import (
    NO_CONJUGATE,
    OUTSIDE,
    Data,
    classifier_value,
    least_eigenvalue,
)
from klopt.problems._similarity.spectra import Spectra

__all__ = ["Several"]

SMALLEST = 1e-8


@dataclass(frozen=True, eq=False)
class Best:
    """Kernels by their factors; sum psi_i and the size of what that was made of, if they are best for that loss."""

    factors: list[FloatArray]
    spectra: FloatArray | None
    """The eigenvalues, a row each, where eigenvectors are kept."""
    value: float = np.nan
    size: float = np.nan


@dataclass(frozen=True, eq=False)
class Several:
    """One kernel for each similarity; `fixed` says that they keep the eigenvectors of their similarities."""

    data: Data
    fixed: bool = False

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        return tuple(Block(S, self.data.trace) for S in self.data.S)

    @cached_property
    def spectra(self) -> Spectra:
        """The similarities by their eigenvectors, which kernels keep."""
        assert self.data.trace is not None
        return Spectra.of(self.data.S, self.data.trace)

    @property
    def squared(self) -> bool:
        return self.data.loss.name == "squared"

    def shares(self, given: FloatArray | None) -> FloatArray:
        """Return g >= SMALLEST of sum 1 near the given one."""
        m = len(self.data.S)
        if (
            given is None
            or given.shape != (m,)
            or not np.isfinite(given).all()
            or not (given > 0).any()
        ):
            return np.full(m, 1 / m)
        if given.min() >= SMALLEST and abs(float(given.sum()) - 1) <= 4 * EPS:
            return given
        g = np.maximum(given / given.max(), SMALLEST)
        return np.asarray(g / g.sum())

    def nearest(self, a: FloatArray, g: FloatArray) -> Best:
        """Return the best kernels for (a, g) under the squared loss."""
        if self.fixed:
            kept = self.spectra.nearest(a, g, self.data.weight)
            lam = self.spectra.values + kept.c[:, None] * kept.squares
            return Best(kept.factors, kept.mu, kept.value, _squared_sizes(lam, kept.mu))
        near = [
            b.nearest(a, float(gi), self.data.weight) for b, gi in zip(self.blocks, g, strict=True)
        ]
        sizes = sum(_squared_sizes(found.lam[None], found.mu[None]) for found in near)
        return Best(
            [found.factor for found in near], None, sum(found.value for found in near), sizes
        )

    def kernels(self, point: Point, a: FloatArray, g: FloatArray) -> Best:
        """Return the kernels that the point holds, made feasible; the best ones for (a, g) where these are known."""
        given = point.primal.get("kernels")
        shape = (len(self.data.S), self.data.n, self.data.n)
        if self._solved or given is None or given.shape != shape or not np.isfinite(given).all():
            return self.nearest(a, g)
        pairs = [self._spectrum(i, symmetric_part(K)) for i, K in enumerate(given)]
        spectra = np.array([self.blocks[i].projected(lam) for i, (lam, _) in enumerate(pairs)])
        factors = [
            V[:, mu > 0] * np.sqrt(mu[mu > 0]) for mu, (_, V) in zip(spectra, pairs, strict=True)
        ]
        return Best(factors, spectra if self.fixed else None)

    @property
    def _solved(self) -> bool:
        """Whether the best kernels against (a, g) and what they are worth are known."""
        return self.squared and self.data.rho > 0

    def _spectrum(self, i: int, K: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Eigenvalues and eigenvectors of K, or what is left of it on the eigenvectors that it has to have."""
        if not self.fixed:
            return np.linalg.eigh(K)
        V = self.spectra.bases[i]
        return np.asarray(np.einsum("ij,ij->j", V, K @ V)), V

    def bracket(self, point: Point) -> Bracket:
        """Return what alpha, and gamma, kernels and gradients where the point has them, prove."""
        data = self.data
        a = data.multipliers(point.alpha)
        g = self.shares(point.primal.get("gamma"))
        best = self.kernels(point, a, g)
        kernels = np.empty((len(best.factors), data.n, data.n))
        for H, K in zip(best.factors, kernels, strict=True):
            np.matmul(H, H.T, out=K)
        inner = [H.T @ a for H in best.factors]
        radii = np.sqrt([float(v @ v) for v in inner])
        share = self.shares(radii)
        parts = zip(best.factors, inner, share, strict=True)
        image = np.asarray(sum((H @ v / s for H, v, s in parts), np.zeros(data.n)))
        machine, bias = classifier_value(image, float((radii / share).max()) ** 2, data.y, data.C)
        loss = data.rho * sum(data.loss.value(K - S) for K, S in zip(kernels, data.S, strict=True))
        terms = machine + loss + float(np.abs(a).sum()) + float(np.abs(a) @ np.abs(image))
        rounding = data.n * EPS * terms
        # Kernels that are best against (a, g) leave g no freedom to be changed.
        g = g if self._solved else share
        lower, Z, note = self._lower(point, a, g, kernels, best)
        given = point.dual.get("shares")
        if given is not None and Z is not None:
            mean = self.shares(given)
            lower, note = max((lower, note), self._lower(point, a, mean, kernels, best)[::2])
            Z = {**Z, "shares": mean}
        solved = {"alpha": data.y * a, "gamma": g, "kernels": kernels, "bias": bias}
        if best.spectra is not None:
            solved["spectra"] = best.spectra
        return Bracket(lower - rounding, machine + loss + rounding, Point(solved, Z), note)

    def _lower(
        self, point: Point, a: FloatArray, g: FloatArray, kernels: FloatArray, best: Best
    ) -> tuple[float, dict[str, FloatArray] | None, str]:
        """A bound, the gradients that prove it, and why there is none."""
        data, n = self.data, self.data.n
        total = float(data.y @ a)
        if self._solved:
            return total + best.value - n * EPS * 2 * data.rho * best.size, None, ""
        assert data.trace is not None
        if self.fixed:
            most = np.abs(self.spectra.along(a)).max(axis=1) + n * EPS * float(np.linalg.norm(a))
            return total - data.trace / 2 * float(most.sum()) ** 2, None, ""
        if not data.provable:
            return -np.inf, None, NO_CONJUGATE
        Z = self._gradients(point, kernels)
        for Zi, S, gi in zip(Z, data.S, g, strict=True):
            if data.rho and data.loss.conjugate is not None:
                term = data.rho * (float(np.vdot(Zi, S)) + float(data.loss.conjugate(Zi)))
                total -= term + n * EPS * abs(term)
            total += data.trace * least_eigenvalue(data.rho * Zi - np.outer(a / (2 * gi), a))
        return (
            (total, {"gradients": Z}, "")
            if total > -np.inf
            else (-np.inf, {"gradients": Z}, OUTSIDE)
        )

    def _gradients(self, point: Point, kernels: FloatArray) -> FloatArray:
        given = point.dual.get("gradients")
        if given is None or given.shape != kernels.shape or not np.isfinite(given).all():
            given = np.array(
                [self.data.loss.gradient(K - S) for K, S in zip(kernels, self.data.S, strict=True)]
            )
        return np.array([self.data.loss.inside(symmetric_part(Z)) for Z in given])


def _squared_sizes(lam: FloatArray, mu: FloatArray) -> float:
    """sum (|lam_i| + |mu_i|)^2 over the rows."""
    return float(np.square(np.linalg.norm(lam, axis=1) + np.linalg.norm(mu, axis=1)).sum())
