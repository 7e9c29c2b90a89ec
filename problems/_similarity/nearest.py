"""The kernel nearest to a similarity that is best for given multipliers.

For multipliers a, a share g and a weight w

    psi(a, g, w) = min over K of  w ||K - S||^2 - a'Ka / (2g)

over positive semidefinite K, of trace tau if that is given, is attained at K = V diag(mu) V', where
V and lam are the eigenvectors and eigenvalues of S + c aa', c = 1 / (4 w g), and mu is the
projection of lam: on the simplex of sum tau, or max(lam, 0) without a trace. Clipping first and
rescaling then would be wrong. Where K has to keep the eigenvectors V of S = V diag(lambda) V', mu
is the projection of lambda + c u^2, u = V'a.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, freeze
from klopt.model.memo import remember_last
from klopt.model.sets.projections import simplex_projection

__all__ = [
    "KernelProjection",
    "KernelSpectra",
    "NearestKernel",
    "NearestSpectra",
    "factor_of_spectrum",
    "symmetric_part",
]


@dataclass(frozen=True, eq=False)
class NearestKernel:
    """The kernel that attains psi(a, g, w), by its eigenvalues mu and eigenvectors V.

    Parameters
    ----------
    V : (n, n) array
        Eigenvectors of S + c aa', in columns.
    lam, mu : (n,) arrays
        Eigenvalues before and after the projection, smallest first.
    u : (n,) array
        V'a.
    g, w : float
        Share and weight.
    has_trace : bool
        Whether the trace of the kernel is given.
    """

    V: FloatArray
    lam: FloatArray
    mu: FloatArray
    u: FloatArray
    g: float
    w: float
    has_trace: bool

    @cached_property
    def c(self) -> float:
        return 1 / (4 * self.w * self.g)

    @cached_property
    def first(self) -> int:
        """Where P begins: the eigenvalues with mu > 0 are the last ones."""
        return int(np.count_nonzero(self.mu <= 0))

    @cached_property
    def factor(self) -> FloatArray:
        """H with K = HH'."""
        return self.V[:, self.first :] * np.sqrt(self.mu[self.first :])

    @cached_property
    def squares(self) -> FloatArray:
        """u^2."""
        return self.u * self.u

    @cached_property
    def squared_norm(self) -> float:
        """a'Ka, the squared norm of the classifier Ka."""
        return float(self.mu @ self.squares)

    @cached_property
    def distance(self) -> float:
        """||K - S||^2."""
        # S = V diag(lam) V' - c aa', so that nothing of the order n^2 has to be formed.
        change = self.mu - self.lam
        pull = self.c * self.squares
        return max(float(change @ (change + 2 * pull)) + float(pull.sum()) ** 2, 0.0)

    @property
    def value(self) -> float:
        """psi."""
        return self.w * self.distance - self.squared_norm / (2 * self.g)


@dataclass(frozen=True, eq=False)
class KernelProjection:
    """One similarity S and the trace that its kernel has to have, None for any."""

    S: FloatArray
    trace: float | None

    def eigenvalues(self, lam: FloatArray) -> FloatArray:
        """Return the nearest eigenvalues that a kernel may have."""
        if self.trace is None:
            return np.maximum(lam, 0.0)
        return simplex_projection(lam, self.trace)

    def nearest(self, a: FloatArray, g: float, w: float) -> NearestKernel:
        """Return the kernel that attains psi(a, g, w)."""
        return self._nearest(np.concatenate([a, [g, w]]))

    # A proof at the point where a solver stopped needs no second eigendecomposition.
    @remember_last
    def _nearest(self, point: FloatArray) -> NearestKernel:
        a = point[:-2]
        g, w = point[-2:].tolist()
        lam, V = np.linalg.eigh(self.S + np.outer(a / (4 * w * g), a))
        mu = self.eigenvalues(lam)
        return NearestKernel(V, lam, mu, V.T @ a, g, w, self.trace is not None)

    def factor_of(self, K: FloatArray) -> FloatArray:
        """Return H with HH' the kernel nearest to K."""
        lam, V = np.linalg.eigh(symmetric_part(K))
        return factor_of_spectrum(V, self.eigenvalues(lam))


@dataclass(frozen=True, eq=False)
class KernelSpectra:
    """Similarities by their eigenvalues and eigenvectors, which their kernels keep.

    Parameters
    ----------
    values : (m, n) array
        Eigenvalues lambda_i, one row each.
    vectors : (m n, n) array
        Eigenvectors, one row each, those of all similarities below each other.
    trace : float
        Trace of each kernel.
    """

    values: FloatArray
    vectors: FloatArray
    trace: float

    @classmethod
    def of(cls, similarities: Sequence[FloatArray], trace: float) -> KernelSpectra:
        """Return the spectra of symmetric matrices."""
        pairs = [np.linalg.eigh(S) for S in similarities]
        values = np.array([values for values, _ in pairs])
        vectors = np.vstack([V.T for _, V in pairs])
        # They are data of the problem: nothing may write into them.
        return cls(freeze(values), freeze(vectors), trace)

    @property
    def bases(self) -> list[FloatArray]:
        """The V_i."""
        return [rows.T for rows in np.vsplit(self.vectors, len(self.values))]

    @cached_property
    def _counts(self) -> FloatArray:
        return np.arange(1.0, self.values.shape[1] + 1)

    @cached_property
    def ones(self) -> FloatArray:
        return np.ones(self.values.shape[1])

    @cached_property
    def rows(self) -> npt.NDArray[np.intp]:
        """The numbers of the similarities."""
        return np.arange(len(self.values))

    @remember_last
    def along(self, a: FloatArray) -> FloatArray:
        """Return the u_i = V_i'a, one row each."""
        return (self.vectors @ a).reshape(self.values.shape)

    def projected(self, squares: FloatArray, c: FloatArray) -> FloatArray:
        """Return the projections of lambda_i + c_i u_i^2 on the simplex; `squares` are the u^2."""
        lam = self.values + c[:, None] * squares
        # Only differences to the largest eigenvalue matter: the others keep their digits.
        lam -= lam.max(axis=1)[:, None]
        rising = -lam
        rising.sort(axis=1)

        short = rising.cumsum(axis=1) + self.trace
        count = (rising * self._counts < short).sum(axis=1)
        level = short[self.rows, count - 1] / count
        mu: FloatArray = np.maximum(lam + level[:, None], 0.0)
        mu *= (self.trace / (mu @ self.ones))[:, None]
        return mu

    def nearest(self, a: FloatArray, g: FloatArray, w: float) -> NearestSpectra:
        """Return the best eigenvalues for given shares."""
        u = self.along(a)
        return self.at(u, u * u, g, w)

    def at(self, u: FloatArray, squares: FloatArray, g: FloatArray, w: float) -> NearestSpectra:
        """Return the best eigenvalues for given u and u^2."""
        return NearestSpectra(self, u, squares, self.projected(squares, 1 / (4 * w * g)), g, w)


@dataclass(frozen=True, eq=False)
class NearestSpectra:
    """The best eigenvalues of kernels that keep their eigenvectors, for one (a, g).

    Parameters
    ----------
    spectra : KernelSpectra
        The similarities.
    u, squares : (m, n) arrays
        u_i = V_i'a, one row each, and u^2.
    mu : (m, n) array
        The eigenvalues, one row each.
    g : (m,) array
        Shares.
    w : float
        Weight of the squared loss.
    """

    spectra: KernelSpectra
    u: FloatArray
    squares: FloatArray
    mu: FloatArray
    g: FloatArray
    w: float

    @cached_property
    def inside(self) -> npt.NDArray[np.bool_]:
        """Where P is: mu > 0."""
        return self.mu > 0

    @cached_property
    def c(self) -> FloatArray:
        return 1 / (4 * self.w * self.g)

    @cached_property
    def squared_norms(self) -> FloatArray:
        """The q_i = a'K_i a."""
        return np.asarray(np.vecdot(self.mu, self.squares))

    @property
    def value(self) -> float:
        """psi."""
        change = self.mu - self.spectra.values
        squared_norm = float((self.squared_norms / self.g).sum())
        return self.w * float(np.vdot(change, change)) - squared_norm / 2

    @property
    def factors(self) -> list[FloatArray]:
        """The H_i with K_i = H_i H_i'."""
        ends = self.inside.sum(axis=1).cumsum()[:-1]
        return np.split(self.scaled_vectors(self.mu).T, ends, axis=1)

    def scaled_vectors(self, weights: FloatArray) -> FloatArray:
        """Return the eigenvectors that belong to P, one row each, times the roots of weights."""
        P = self.inside.reshape(-1)
        scaled = self.spectra.vectors[P]
        scaled *= np.sqrt(weights.reshape(-1)[P])[:, None]
        return scaled


def symmetric_part(M: FloatArray) -> FloatArray:
    """Return (M + M') / 2."""
    return (M + M.T) / 2


def factor_of_spectrum(V: FloatArray, mu: FloatArray) -> FloatArray:
    """Return H with HH' = V diag(mu) V', without the columns where mu is 0."""
    return V[:, mu > 0] * np.sqrt(mu[mu > 0])
