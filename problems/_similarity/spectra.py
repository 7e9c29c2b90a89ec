"""Kernels that keep the eigenvectors of their similarities: the best eigenvalues for given multipliers and shares.

    psi(a, g) = sum_i  min over mu_i of  w |mu_i - lambda_i|^2 - mu_i'u_i^2 / (2 g_i),          u_i = V_i'a

over mu_i >= 0 of a given sum is attained at the projection of lambda_i + c_i u_i^2 on that simplex,
c_i = 1/(4 w g_i). With P the k_i eigenvalues with mu > 0, q_i = mu_i'u_i^2, r_i = u_P^3 - (sum of
u_P^2 / k_i) u_P and b_i = u_i'r_i >= 0,

    psi_a = -sum_i V_i (mu_i u_i) / g_i              psi_g = q_i / (2 g_i^2)

    -psi_aa = sum_i {V_i diag(mu_i + 2 c_i u_i^2)_P V_i' - 2 c_i p_i p_i' / k_i} / g_i,          p_i = V_i u_P
    -psi_ag = -V_i (mu_i u_i + c_i r_i) / g_i^2      -psi_gg = (q_i + c_i b_i / 2) / g_i^3 =: h_i

The shares g >= 0 of sum 1 are best where all psi_g are the same. While the P stay, q_i = A_i + c_i
b_i with constants A and b, so that they are roots of cubic equations: these are solved for the P of
the last shares until the new ones have the same, mostly at once. With H and B the second
derivatives in a and mixed, the curvature that is left without the shares is

    H - B (diag(1/h) - (1/h)(1/h)' / sum(1/h)) B'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from math import exp, inf, log
from operator import mul

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray
from klopt.numerics.roots import falling_root

__all__ = ["Kept", "Spectra"]

ROUNDS, STEPS = 6, 60
SMALLEST = 1e-20  # of the largest q
EVEN = 1e-6  # relative: a difference of prices whose step is the last, since Newton's method squares it
TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True, eq=False)
class Spectra:
    """Similarities by their eigenvalues, a row each, and eigenvectors, a row each too, all below each other.

    Kernels have to have the given trace.
    """

    values: FloatArray
    vectors: FloatArray
    trace: float
    _last: list[Kept] = field(default_factory=list, init=False, repr=False)

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_last": []}

    @classmethod
    def of(cls, similarities: Sequence[FloatArray], trace: float) -> Spectra:
        """Return the spectra of symmetric matrices."""
        pairs = [np.linalg.eigh(S) for S in similarities]
        return cls(
            np.array([values for values, _ in pairs]), np.vstack([V.T for _, V in pairs]), trace
        )

    @property
    def bases(self) -> list[FloatArray]:
        """The V_i."""
        return [rows.T for rows in np.vsplit(self.vectors, len(self.values))]

    @cached_property
    def _counts(self) -> FloatArray:
        return np.arange(1.0, self.values.shape[1] + 1)

    @cached_property
    def _ones(self) -> FloatArray:
        return np.ones(self.values.shape[1])

    @cached_property
    def _rows(self) -> npt.NDArray[np.intp]:
        return np.arange(len(self.values))

    def along(self, a: FloatArray) -> FloatArray:
        """Return the u, a row each."""
        return (self.vectors @ a).reshape(self.values.shape)

    def summed(self, rows: FloatArray) -> FloatArray:
        """Return the sum of all V_i times a row each."""
        return rows.reshape(-1) @ self.vectors

    def apart(self, rows: FloatArray) -> FloatArray:
        """Return the V_i times a row each, in rows; `rows` may have several sets of them."""
        sets, (m, n) = len(rows), self.values.shape
        spread = np.zeros((sets, m, m, n))
        spread[:, self._rows, self._rows] = rows
        return spread.reshape(sets * m, m * n) @ self.vectors

    def projected(self, squares: FloatArray, c: FloatArray) -> FloatArray:
        """Return the best eigenvalues; `squares` are the u^2."""
        lam = self.values + c[:, None] * squares
        lam -= lam.max(axis=1)[:, None]
        rising = -lam
        rising.sort(axis=1)
        short = rising.cumsum(axis=1) + self.trace
        count = (rising * self._counts < short).sum(axis=1)
        mu: FloatArray = np.maximum(lam + (short[self._rows, count - 1] / count)[:, None], 0.0)
        mu *= (self.trace / (mu @ self._ones))[:, None]
        return mu

    def nearest(self, a: FloatArray, g: FloatArray, w: float) -> Kept:
        """Return the best eigenvalues for given shares; the last that were balanced are kept, for a proof of them."""
        for last in self._last:
            if last.w == w and np.array_equal(last.g, g) and np.array_equal(last.a, a):
                return last
        u = self.along(a)
        return self._at(a, u, u * u, w, g)

    def _at(
        self, a: FloatArray, u: FloatArray, squares: FloatArray, w: float, g: FloatArray
    ) -> Kept:
        return Kept(self, a, u, squares, self.projected(squares, 1 / (4 * w * g)), g, w)

    def balanced(self, a: FloatArray, w: float, g: FloatArray) -> Kept:
        """Return the best eigenvalues and shares, which are looked for from g on."""
        u = self.along(a)
        squares = u * u
        known = b""
        for _ in range(ROUNDS):
            here = self._at(a, u, squares, w, g)
            faces = here.inside.tobytes()
            if faces == known or not here.curves.any():
                break
            b = here.bends / (4 * w)
            g, known = _shares((here.curves - b / g).tolist(), b.tolist(), g.tolist()), faces
        else:
            here = self._priced(here)
        self._last[:] = [here]
        return here

    def _priced(self, start: Kept) -> Kept:
        """The best shares by the price psi_g that all of them pay; slower, for P that go round in circles.

        A share falls as the price rises, its logarithm 1 / (2 + c_i b_i / q_i) times as fast as
        that of the price.
        """
        logs = np.log(start.g)
        least = SMALLEST * self.trace * float(start.squares.max())

        def at(g: FloatArray) -> Kept:
            return self._at(start.a, start.u, start.squares, start.w, g)

        def above(logs: FloatArray, price: FloatArray) -> tuple[FloatArray, FloatArray]:
            here = at(np.exp(logs))
            q = np.maximum(here.curves, least)
            return np.log(q) - 2 * logs - price, 2 + here.c * here.bends / q

        def excess(price: FloatArray) -> tuple[FloatArray, FloatArray]:
            nonlocal logs
            logs = falling_root(partial(above, price=price), logs)
            g = np.exp(logs)
            return np.log(g.sum(keepdims=True)), g @ (1 / above(logs, price)[1]) / g.sum(
                keepdims=True
            )

        prices = above(logs, np.zeros(1))[0]
        falling_root(excess, prices.mean(keepdims=True), float(prices.min()), float(prices.max()))
        g = np.exp(logs)
        return at(g / g.sum())


@dataclass(frozen=True, eq=False)
class Kept:
    """The best eigenvalues mu, a row each, for one (a, g)."""

    spectra: Spectra
    a: FloatArray
    u: FloatArray
    squares: FloatArray
    mu: FloatArray
    g: FloatArray
    w: float

    @cached_property
    def inside(self) -> npt.NDArray[np.bool_]:
        """Where P is."""
        return self.mu > 0

    @cached_property
    def c(self) -> FloatArray:
        return 1 / (4 * self.w * self.g)

    @cached_property
    def curves(self) -> FloatArray:
        """The q_i."""
        return np.asarray(np.vecdot(self.mu, self.squares))

    @cached_property
    def _kept(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """u_P^2, its sums, and 1/k."""
        kept, ones = self.squares * self.inside, self.spectra._ones
        return kept, kept @ ones, 1 / (self.inside @ ones)

    @cached_property
    def bends(self) -> FloatArray:
        """The b_i."""
        kept, total, share = self._kept
        return np.asarray(np.maximum(np.vecdot(kept, kept) - share * total * total, 0.0))

    @property
    def value(self) -> float:
        """psi."""
        away = self.mu - self.spectra.values
        return self.w * float(np.vdot(away, away)) - float((self.curves / self.g).sum()) / 2

    @cached_property
    def image(self) -> FloatArray:
        """-psi_a."""
        return self.spectra.summed(self.mu * self.u / self.g[:, None])

    @property
    def factors(self) -> list[FloatArray]:
        """The H_i with K_i = H_i H_i'."""
        return np.split(self._half(self.mu).T, self.inside.sum(axis=1).cumsum()[:-1], axis=1)

    @property
    def kernel(self) -> FloatArray:
        """The sum of the K_i."""
        half = self._half(self.mu)
        return np.asarray(half.T @ half)

    def _half(self, weights: FloatArray) -> FloatArray:
        """The eigenvectors that belong to P times the roots of weights."""
        P = self.inside.reshape(-1)
        half = self.spectra.vectors[P]
        half *= np.sqrt(weights.reshape(-1)[P])[:, None]
        return half

    def curvature(self) -> FloatArray:
        """Return what is left of the curvature of -psi in a without the shares."""
        kept, total, share = self._kept
        c, g = self.c[:, None], self.g[:, None]
        half = self._half((self.mu + 2 * c * kept) / g)
        r = (kept - (share * total)[:, None]) * self.u * self.inside
        h = (self.curves + self.c * self.bends / 2) / self.g**3
        inverse = 1 / np.maximum(h, TINY)
        sides = self.spectra.apart(
            np.array([self.u * self.inside, (self.mu * self.u + c * r) / (g * g)])
        )
        mixed = inverse @ sides[len(h) :]
        sides *= np.sqrt(np.concatenate([2 * share * self.c / self.g, inverse]))[:, None]
        H: FloatArray = half.T @ half
        H -= sides.T @ sides
        H += np.multiply.outer(mixed / float(inverse.sum()), mixed)
        return H


def _shares(A: list[float], b: list[float], g: list[float]) -> FloatArray:
    """Return the g > 0 of sum 1 at which all prices (A_i + b_i / g_i) / g_i^2 are the same, from g on.

    Newton's method for the logarithms, by which one step is enough where all b or all A are 0.
    """
    least = SMALLEST * max(Ai + bi / gi for Ai, bi, gi in zip(A, b, g, strict=True))
    reach = [
        inf if Ai >= 0 else -bi / Ai for Ai, bi in zip(A, b, strict=True)
    ]  # beyond it no price is positive
    for _ in range(STEPS):
        prices, rooms = [], []
        for Ai, bi, gi in zip(A, b, g, strict=True):
            q = max(Ai + bi / gi, least)
            prices.append(log(q / (gi * gi)))
            rooms.append(1 / (2 + bi / (gi * q)))
        weights = list(map(mul, g, rooms))
        price = sum(map(mul, weights, prices)) / sum(weights)
        high = [own - price for own in prices]
        steps = map(mul, high, rooms)
        g = [
            min(gi * exp(step), (gi + most) / 2)
            for gi, step, most in zip(g, steps, reach, strict=True)
        ]
        total = sum(g)
        g = [gi / total for gi in g]
        if max(map(abs, high)) <= EVEN:
            break
    return np.array(g)
