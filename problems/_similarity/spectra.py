"""The objective in the multipliers alone, for kernels with given eigenvectors.

    minimise  f(a) = -y'a - max over g of psi(a, g)

    psi(a, g) = sum_i  min over mu_i of  w |mu_i - lambda_i|^2 - mu_i'u_i^2 / (2 g_i),   u_i = V_i'a

over mu_i >= 0 of a given sum and shares g >= 0 of sum 1. The minimum over mu_i is attained at the
projection of lambda_i + c_i u_i^2 on that simplex, c_i = 1/(4 w g_i)
(`klopt.problems._similarity.nearest`). The variables are x = a / length, values in units of length.

Derivatives. With P the k_i eigenvalues with mu > 0, q_i = mu_i'u_i^2, r_i = u_P^3 - (sum of u_P^2 /
k_i) u_P, b_i = u_i'r_i >= 0 and p_i = V_i u_P,

    psi_a = -sum_i V_i (mu_i u_i) / g_i
    psi_g = q_i / (2 g_i^2)
    -psi_aa = sum_i {V_i diag(mu_i + 2 c_i u_i^2)_P V_i' - 2 c_i p_i p_i' / k_i} / g_i
    -psi_ag = -V_i (mu_i u_i + c_i r_i) / g_i^2
    -psi_gg = (q_i + c_i b_i / 2) / g_i^3 =: h_i

The best shares. They are where all psi_g are the same: the price of a share. While the P stay, q_i
= A_i + c_i b_i with constants A and b, so that the shares are roots of cubic equations: these are
solved for the P of the last shares until the new ones have the same P, mostly at once. With H and B
the second derivatives in a and mixed, the curvature that is left without the shares is

    H - B (diag(1/h) - (1/h)(1/h)' / sum(1/h)) B'.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import exp, inf, log
from operator import mul

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.functions import LocalModel, SmoothFunction, StartModel
from klopt.numerics.roots import cubic_root, falling_root
from klopt.problems._similarity.function import LastEvaluation
from klopt.problems._similarity.nearest import KernelSpectra, NearestSpectra

__all__ = ["SpectraDerivatives", "SpectraObjective", "best_shares"]

MAX_FACE_CHANGES = 6
"""Rounds in which the P of all kernels may change before the slower method takes over."""
MAX_SHARE_ITERATIONS = 60
"""Newton steps for the shares of given P."""
MIN_RELATIVE_NORM = 1e-20
"""Smallest q_i relative to the largest one, where logarithms are taken."""
EVEN_PRICES = 1e-6
"""Relative difference of prices whose step is the last, since Newton's method squares it."""
MIN_RELATIVE_RIDGE = 1e-8
"""Smallest response of the start, relative to |d|^4."""
START_DAMPING = 0.02
"""Share of the curvature that first steps add: half the time of no damping on 70 instances."""
TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True, eq=False)
class SpectraDerivatives:
    """The derivatives of psi at the eigenvalues that attain it."""

    near: NearestSpectra

    @cached_property
    def _positive_part(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """u_P^2, its sums, and 1/k."""
        ones = self.near.spectra.ones
        squares = self.near.squares * self.near.inside
        return squares, squares @ ones, 1 / (self.near.inside @ ones)

    @cached_property
    def responses(self) -> FloatArray:
        """The b_i: how the kernels follow a."""
        squares, total, inverse_count = self._positive_part
        return np.asarray(
            np.maximum(np.vecdot(squares, squares) - inverse_count * total * total, 0.0)
        )

    @cached_property
    def image(self) -> FloatArray:
        """-psi_a."""
        rows = self.near.mu * self.near.u / self.near.g[:, None]
        return rows.reshape(-1) @ self.near.spectra.vectors

    @property
    def kernel_sum(self) -> FloatArray:
        """The sum of the K_i."""
        half = self.near.scaled_vectors(self.near.mu)
        return np.asarray(half.T @ half)

    def curvature(self) -> FloatArray:
        """Return what is left of the curvature of -psi in a without the shares."""
        near = self.near
        squares, total, inverse_count = self._positive_part
        c = near.c[:, None]
        g = near.g[:, None]
        half = near.scaled_vectors((near.mu + 2 * c * squares) / g)
        r = (squares - (inverse_count * total)[:, None]) * near.u * near.inside
        h = (near.squared_norms + near.c * self.responses / 2) / near.g**3
        # h = 0 where a kernel does not see a; its column of B is 0 as well.
        inverse = 1 / np.maximum(h, TINY)

        # The p_i and the columns of B, one row each.
        sides = self._separate_images(
            np.array([near.u * near.inside, (near.mu * near.u + c * r) / (g * g)])
        )
        mixed = inverse @ sides[len(h) :]
        weights = np.concatenate([2 * inverse_count * near.c / near.g, inverse])
        sides *= np.sqrt(weights)[:, None]
        H: FloatArray = half.T @ half
        H -= sides.T @ sides
        H += np.multiply.outer(mixed / float(inverse.sum()), mixed)
        return H

    def _separate_images(self, sets: FloatArray) -> FloatArray:
        """V_i times row i of each set of rows, one row each."""
        spectra = self.near.spectra
        m, n = spectra.values.shape
        spread = np.zeros((len(sets), m, m, n))
        spread[:, spectra.rows, spectra.rows] = sets
        return spread.reshape(len(sets) * m, m * n) @ spectra.vectors


# --- the best shares


def best_shares(
    spectra: KernelSpectra, a: FloatArray, w: float, g: FloatArray
) -> SpectraDerivatives:
    """Return the best eigenvalues and shares for given multipliers.

    Parameters
    ----------
    spectra : KernelSpectra
        The similarities.
    a : (n,) array
        Multipliers.
    w : float
        Weight of the squared loss.
    g : (m,) array
        Shares from which the search starts.
    """
    u = spectra.along(a)
    squares = u * u
    known_faces = b""
    for _ in range(MAX_FACE_CHANGES):
        here = SpectraDerivatives(spectra.at(u, squares, g, w))
        faces = here.near.inside.tobytes()
        # The cubic equations of these P are solved already, or a = 0 and all shares are best.
        if faces == known_faces or not here.near.squared_norms.any():
            return here
        b = here.responses / (4 * w)
        A = here.near.squared_norms - b / g
        g = _shares_of_faces(A.tolist(), b.tolist(), g.tolist())
        known_faces = faces
    return _shares_by_price(here)


def _shares_of_faces(A: list[float], b: list[float], g: list[float]) -> FloatArray:
    """The g > 0 of sum 1 at which all prices (A_i + b_i / g_i) / g_i^2 are the same, from g on.

    Newton's method for the logarithms, by which one step is enough where all b or all A are 0. The
    lists are short: Python's numbers are faster than arrays.
    """
    min_norm = MIN_RELATIVE_NORM * max(Ai + bi / gi for Ai, bi, gi in zip(A, b, g, strict=True))
    # Beyond -b_i / A_i no price is positive.
    bounds = [inf if Ai >= 0 else -bi / Ai for Ai, bi in zip(A, b, strict=True)]
    for _ in range(MAX_SHARE_ITERATIONS):
        log_prices = []
        rates = []
        for Ai, bi, gi in zip(A, b, g, strict=True):
            q = max(Ai + bi / gi, min_norm)
            log_prices.append(log(q / (gi * gi)))
            rates.append(1 / (2 + bi / (gi * q)))

        # The price at which the shares sum to 1, to first order.
        weights = list(map(mul, g, rates))
        log_price = sum(map(mul, weights, log_prices)) / sum(weights)
        excess = [own - log_price for own in log_prices]
        steps = map(mul, excess, rates)
        g = [
            min(gi * exp(step), (gi + bound) / 2)
            for gi, step, bound in zip(g, steps, bounds, strict=True)
        ]
        total = sum(g)
        g = [gi / total for gi in g]
        if max(map(abs, excess)) <= EVEN_PRICES:
            break
    return np.array(g)


def _shares_by_price(start: SpectraDerivatives) -> SpectraDerivatives:
    """The best shares by the price psi_g that all of them pay; slower, for P that cycle.

    A share falls as the price rises, its logarithm 1 / (2 + c_i b_i / q_i) times as fast as that of
    the price.
    """
    near = start.near
    spectra = near.spectra
    log_shares = np.log(near.g)
    min_norm = MIN_RELATIVE_NORM * spectra.trace * float(near.squares.max())

    def at(g: FloatArray) -> SpectraDerivatives:
        return SpectraDerivatives(spectra.at(near.u, near.squares, g, near.w))

    def price_excess(log_g: FloatArray, log_price: FloatArray) -> tuple[FloatArray, FloatArray]:
        here = at(np.exp(log_g))
        q = np.maximum(here.near.squared_norms, min_norm)
        return np.log(q) - 2 * log_g - log_price, 2 + here.near.c * here.responses / q

    def share_excess(log_price: FloatArray) -> tuple[FloatArray, FloatArray]:
        nonlocal log_shares
        log_shares = falling_root(partial(price_excess, log_price=log_price), log_shares)
        g = np.exp(log_shares)
        total = g.sum(keepdims=True)
        rates = 1 / price_excess(log_shares, log_price)[1]
        return np.log(total), g @ rates / total

    log_prices = price_excess(log_shares, np.zeros(1))[0]
    low = float(log_prices.min())
    high = float(log_prices.max())
    falling_root(share_excess, log_prices.mean(keepdims=True), low, high)
    g = np.exp(log_shares)
    return at(g / g.sum())


# --- the objective


@dataclass(frozen=True, eq=False)
class SpectraObjective:
    """-y'a - max over g of psi(a, g) as a function of x = a / length.

    Parameters
    ----------
    spectra : KernelSpectra
        The similarities.
    y : (n,) array
        Labels.
    weight : float
        Weight of the squared loss.
    length : float
        Unit of the multipliers and of values.
    """

    spectra: KernelSpectra
    y: FloatArray
    weight: float
    length: float
    _last: LastEvaluation[SpectraDerivatives] = field(
        default_factory=LastEvaluation, init=False, repr=False
    )

    def nearest(self, x: FloatArray) -> SpectraDerivatives:
        """Return the best eigenvalues and shares; the search starts at the last shares."""
        found = self._last.at(x)
        if found is None:
            last = self._last.found
            m = len(self.spectra.values)
            g = np.full(m, 1 / m) if last is None else last.near.g
            found = best_shares(self.spectra, self.length * x, self.weight, g)
            self._last.keep(x, found)
        return found

    def near(self, x: FloatArray) -> LocalModel:
        """Return the function near x."""
        here = self.nearest(x)
        value = -float(self.y @ x) - here.near.value / self.length
        return LocalModel(value, here.image - self.y, lambda: self.length * here.curvature())

    def start_model(self) -> StartModel:
        """Return the quadratic program of the kernels nearest to the similarities, with a ridge.

        The ridge stands for how kernels will follow a: that adds the sum of c_i b_i / (4 g_i) to
        the function, a fourth power of a, which near a is as good as a ridge of four times that
        over a'a; a is a multiple of the labels, by a cubic equation. An eigenvalue at zero has no
        curvature until a long step makes it positive: first steps are damped.
        """
        m = len(self.spectra.values)
        n = self.y.size
        d = self.y - self.y.mean()
        start = self.spectra.nearest(np.zeros(n), np.full(m, 1 / m), self.weight)
        H = m * SpectraDerivatives(start).kernel_sum
        length = float(d @ d)

        moved = replace(start, squares=np.square(self.spectra.along(d)))
        responses = SpectraDerivatives(moved).responses
        bounded = np.maximum(responses, MIN_RELATIVE_RIDGE * length * length)
        response = float(np.sum(start.c / start.g * bounded))
        s = cubic_root(response, float(d @ (H @ d)), length)
        H.flat[:: n + 1] += s * s * response / length
        H *= self.length
        return StartModel(H, -self.y, damping=START_DAMPING)

    def objective(self) -> SmoothFunction:
        """Return the function with its start."""
        return SmoothFunction(self.y.size, self.near, self.start_model)
