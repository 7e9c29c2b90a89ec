"""What multipliers, shares, kernels and slopes prove about several kernels learned from as many similarities.

    minimise over K_1, .., K_m   max over a and g of  y'a - sum_i a'K_i a / (2 g_i)   +   rho sum_i L(K_i - S_i)

g >= 0 of sum 1. The best g for given kernels is g_i = r_i / sum r, r_i = (a'K_i a)^1/2: the inner problem is block-linf
multiple kernel learning. Upper: any kernels K_i = H_i H_i' of the right trace, the classifier f = sum_i K_i a / g_i + b
with ||.||^2 = max_i |H_i'a|^2 / g_i^2, and the losses. Lower: for any a in the box and any g > 0 of sum 1

    y'a + sum_i psi_i(a, g_i)                                                               (squared loss)
    y'a - rho sum_i (<Z_i, S_i> + L*(Z_i)) + tau sum_i lambda_min(rho Z_i - aa'/(2 g_i))    (any Z_i in the domain)

with psi_i of `klopt.problems._similarity_block`. It goes to -inf as g_i -> 0: the best g are positive, unless a = 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from klopt.arrays import FloatArray
from klopt.problem import Bracket, Point
from klopt.problems._similarity import symmetric_part
from klopt.problems._similarity_block import Block, Nearest
from klopt.problems._similarity_bracket import Data, classifier_value, least_eigenvalue

__all__ = ["Several"]

EPS = float(np.finfo(float).eps)
SMALLEST = 1e-8


@dataclass(frozen=True, eq=False)
class Several:
    """One kernel for each similarity; `fixed` says that they keep the eigenvectors of their similarities."""

    data: Data
    fixed: bool = False

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        bases = [np.linalg.eigh(S) if self.fixed else None for S in self.data.S]
        return tuple(
            Block(S, self.data.trace, None if basis is None else (basis[0], basis[1]))
            for S, basis in zip(self.data.S, bases, strict=True)
        )

    @property
    def squared(self) -> bool:
        return self.data.loss.name == "squared"

    def shares(self, given: FloatArray | None) -> FloatArray:
        """Return g >= SMALLEST of sum 1 near the given one."""
        m = len(self.data.S)
        if given is None or given.shape != (m,) or not np.isfinite(given).all() or not (given > 0).any():
            return np.full(m, 1 / m)
        if given.min() >= SMALLEST and abs(float(given.sum()) - 1) <= 4 * EPS:
            return given
        g = np.maximum(given / given.max(), SMALLEST)
        return np.asarray(g / g.sum())

    def nearest(self, a: FloatArray, g: FloatArray) -> list[Nearest]:
        """Return the best kernels for (a, g) under the squared loss."""
        return [b.nearest(a, float(gi), self.data.weight) for b, gi in zip(self.blocks, g, strict=True)]

    def factors(self, point: Point, a: FloatArray, g: FloatArray) -> list[FloatArray]:
        """Return H_i with H_i H_i' the kernels that the point holds, made feasible, or those nearest to (a, g)."""
        given = point.primal.get("kernels")
        shape = (len(self.data.S), self.data.n, self.data.n)
        if given is None or given.shape != shape or not np.isfinite(given).all():
            return [near.factor for near in self.nearest(a, g)]
        factors = []
        for block, K in zip(self.blocks, given, strict=True):
            lam, V = np.linalg.eigh(symmetric_part(K))
            mu = block.projected(lam)
            factors.append(V[:, mu > 0] * np.sqrt(mu[mu > 0]))
        return factors

    def bracket(self, point: Point) -> Bracket:
        """Return what alpha, and gamma, kernels and slopes where the point has them, prove."""
        data = self.data
        a = data.multipliers(point.alpha)
        g = self.shares(point.primal.get("gamma"))
        near = self.nearest(a, g) if self.squared else []
        factors = [found.factor for found in near] or self.factors(point, a, g)
        kernels = np.empty((len(factors), data.n, data.n))
        for H, K in zip(factors, kernels, strict=True):
            np.matmul(H, H.T, out=K)
        inner = [H.T @ a for H in factors]
        radii = np.array([np.linalg.norm(v) for v in inner])
        share = self.shares(radii)
        image = np.asarray(sum((H @ v / s for H, v, s in zip(factors, inner, share, strict=True)), np.zeros(data.n)))
        machine, bias = classifier_value(image, float((radii / share).max()) ** 2, data.y, data.C)
        loss = data.rho * sum(data.loss.value(K - S) for K, S in zip(kernels, data.S, strict=True))
        terms = machine + loss + float(np.abs(a).sum()) + float(np.abs(a) @ np.abs(image))
        rounding = data.n * EPS * terms
        # For the squared loss the kernels are best against (a, g), so that g is not free to be changed.
        g = g if self.squared else share
        lower, Z = self._lower(point, a, g, kernels, near)
        solved = {"alpha": data.y * a, "gamma": g, "kernels": kernels, "bias": bias}
        if self.fixed:
            solved["spectra"] = np.array([found.mu for found in near])
        note = "" if lower > -np.inf else "the loss has no conjugate(Z): nothing bounds the optimum from below"
        return Bracket(lower - rounding, machine + loss + rounding, Point(solved, Z), note)

    def _lower(
        self, point: Point, a: FloatArray, g: FloatArray, kernels: FloatArray, nearest: list[Nearest]
    ) -> tuple[float, dict[str, FloatArray] | None]:
        data, n = self.data, self.data.n
        total = float(data.y @ a)
        if self.squared and data.rho:
            for near in nearest:
                size = float(np.linalg.norm(near.lam)) + float(np.linalg.norm(near.mu))
                total += near.value - n * EPS * 2 * data.rho * size * size
            return total, None
        if data.loss.conjugate is None and data.rho:
            return -np.inf, None
        Z = self._slopes(point, kernels)
        for Zi, S, gi in zip(Z, data.S, g, strict=True):
            if data.rho and data.loss.conjugate is not None:
                term = data.rho * (float(np.vdot(Zi, S)) + float(data.loss.conjugate(Zi)))
                total -= term + n * EPS * abs(term)
            assert data.trace is not None
            total += data.trace * least_eigenvalue(data.rho * Zi - np.outer(a / (2 * gi), a))
        return (total if total == total else -np.inf), {"slopes": Z}

    def _slopes(self, point: Point, kernels: FloatArray) -> FloatArray:
        given = point.dual.get("slopes")
        if given is None or given.shape != kernels.shape or not np.isfinite(given).all():
            given = np.array([self.data.loss.slope(K - S) for K, S in zip(kernels, self.data.S, strict=True)])
        return np.array([self.data.loss.inside(symmetric_part(Z)) for Z in given])
