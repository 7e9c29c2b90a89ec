"""Bayesian multiple kernel learning by variational inference, a baseline without certificates.

For P kernels K_p between N labelled points and signs y, the model of [1] is

    a_i ~ N(0, 1/lambda_i),          g_pi ~ N(a'k_p(x_i), s^2),
    b ~ N(0, 1/gamma),  e_p ~ N(0, 1/omega_p),   f_i ~ N(e'g_i + b, 1),   y_i f_i > 1,

with gamma priors of the precisions. The approximation is a product of independent factors for the
precisions, a, the columns of G, (b, e) and f; each sweep updates one after the other in closed
form. The weights e may be negative. It is an approximation of a posterior, not an optimum.

[1] Gonen, Bayesian efficient multiple kernel learning, 2012.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from klopt.arrays import FloatArray
from klopt.papers.experiments.methods import BANDWIDTHS
from klopt.papers.experiments.protocol import Choice, IntArray, LearningTask

__all__ = ["BayesianMixture", "bmkl", "cut_mean", "fit_mixture"]

Costs = tuple[float, ...]
SWEEPS = 200
INTERMEDIATE_DEVIATION = 0.1
"""s, of the intermediate outputs g."""
MARGIN = 1.0
DEGREES = (1, 2, 3)


@dataclass(frozen=True, eq=False)
class BayesianMixture:
    """The means of the factors."""

    a: FloatArray
    """The weights of the points."""
    b: float
    e: FloatArray
    """The weights of the kernels."""

    def decide(self, kernels: FloatArray) -> FloatArray:
        """Return the mean of f at new points; kernels are P x new x labelled."""
        return np.asarray(self.b + self.e @ (kernels @ self.a))


def fit_mixture(kernels: FloatArray, y: FloatArray, sweeps: int = SWEEPS) -> BayesianMixture:
    """Return the approximation after so many sweeps.

    Parameters
    ----------
    kernels
        P x N x N, with diagonals near 1.
    y
        -1 or 1 for each point.
    sweeps
        How often all factors are updated.
    """
    P, N, _ = kernels.shape
    variance = INTERMEDIATE_DEVIATION**2
    squares = np.einsum("pij,pik->jk", kernels, kernels) / variance
    lam = np.ones(N)
    gamma = 1.0
    omega = np.ones(P)
    G = np.sign(y) * np.ones((P, 1))
    f = 2.0 * y
    be = np.append(0.0, np.full(P, 1.0 / P))
    be_covariance = np.zeros((P + 1, P + 1))
    a = np.zeros(N)
    for _ in range(sweeps):
        a_covariance = np.linalg.inv(np.diag(lam) + squares)
        a = a_covariance @ np.einsum("pij,pi->j", kernels, G) / variance
        # Gamma(1, 1) priors: the mean is (1 + 1/2) / (1 + second moment / 2).
        lam = 1.5 / (1.0 + (a**2 + a_covariance.diagonal()) / 2)

        b, e = be[0], be[1:]
        second = np.outer(e, e) + be_covariance[1:, 1:]
        G_covariance = np.linalg.inv(np.eye(P) / variance + second)
        shift = e * b + be_covariance[1:, 0]
        G = G_covariance @ (kernels @ a / variance + np.outer(e, f) - shift[:, None])

        Z = np.vstack([np.ones(N), G])
        precision = Z @ Z.T
        precision[1:, 1:] += N * G_covariance
        be_covariance = np.linalg.inv(precision + np.diag(np.append(gamma, omega)))
        be = be_covariance @ (Z @ f)
        gamma = 1.5 / (1.0 + (be[0] ** 2 + be_covariance[0, 0]) / 2)
        omega = 1.5 / (1.0 + (be[1:] ** 2 + be_covariance.diagonal()[1:]) / 2)

        f = cut_mean(be @ Z, y)
    return BayesianMixture(a, float(be[0]), be[1:])


def cut_mean(mean: FloatArray, y: FloatArray) -> FloatArray:
    """Return the means of normal variables of variance 1, given that y f exceeds the margin."""
    from scipy.special import log_ndtr

    z = MARGIN - y * mean
    tail = np.exp(-(z**2) / 2 - log_ndtr(-z)) / np.sqrt(2 * np.pi)
    return np.asarray(mean + y * tail)


def bmkl(given: LearningTask, choice: Choice, costs: Costs) -> IntArray:
    """Decide by Bayesian mixtures of ten Gaussian kernels and three polynomials, one for each class."""
    known = given.known
    labels = given.labels[known]
    classes = np.unique(labels)
    among = _kernels(given.X[known], given.X[known])
    seen = _kernels(given.X[given.asked], given.X[known])
    if classes.size == 2:
        values = fit_mixture(among, np.where(labels == classes[1], 1.0, -1.0)).decide(seen)
        best = (values > 0).astype(np.int64)
    else:
        scores = [
            fit_mixture(among, np.where(labels == k, 1.0, -1.0)).decide(seen) for k in classes
        ]
        best = np.argmax(scores, axis=0)
    return np.tile(classes[best], (len(costs), 1))


def _kernels(X: FloatArray, Y: FloatArray) -> FloatArray:
    """All kernels between two sets of points, with unit diagonals."""
    from sklearn.metrics.pairwise import rbf_kernel

    found = [rbf_kernel(X, Y, gamma=1 / (2 * width**2)) for width in BANDWIDTHS]
    norms = np.outer(1 + (X**2).sum(axis=1), 1 + (Y**2).sum(axis=1))
    cosine = (1 + X @ Y.T) / np.sqrt(norms)
    return np.stack([*found, *(cosine**degree for degree in DEGREES)])
