"""Random labelled graphs and their spectra, the instances of the claims of Mao and Tsang (2010).

A case has the similarities S, the targets y (+1, -1, and 0 where unlabelled), C, mu and the ridge.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from klopt.arrays import FloatArray
from klopt.papers.theorems.claim import Case

__all__ = [
    "Spectrum",
    "aligned",
    "complete_graph",
    "curve",
    "embedded_graph",
    "graph_with_classes",
    "graph_with_spectrum",
    "labels_of",
    "labels_see_null_space",
    "laplacian",
    "random_graph",
    "random_kernel",
    "random_spectrum",
    "spectrum_of",
]


class Spectrum(NamedTuple):
    """Eigenvectors U of the Laplacian, B its eigenvalues with the ridge, A_i = (u_i'y)^2."""

    U: FloatArray
    A: FloatArray
    B: FloatArray


def random_graph(rng: np.random.Generator, n: int) -> Case:
    """Return a connected graph of n + 1 points, two or more labelled, and the parameters."""
    n = n + 1
    weights = rng.random((n, n)) * (rng.random((n, n)) < 0.7)
    # A path through all points keeps the graph connected.
    S = np.triu(weights, 1) + np.eye(n, k=1)
    y = np.zeros(n)
    known = rng.permutation(n)[: rng.integers(2, n + 1)]
    y[known] = rng.choice([-1.0, 1.0], known.size)
    y[known[:2]] = [1.0, -1.0]
    C, mu = np.exp(rng.normal(size=2))
    return {"S": S + S.T, "y": y, "C": float(C), "mu": float(mu), "ridge": 0.1}


def random_spectrum(rng: np.random.Generator, n: int) -> Case:
    """Return A and B, all that the propositions on the spectrum depend on, C and mu."""
    C, mu = np.exp(rng.normal(size=2))
    return {
        "A": rng.random(n) ** 2 * n,
        "B": rng.random(n) ** 2 + 1e-3,
        "C": float(C),
        "mu": float(mu),
    }


def random_kernel(rng: np.random.Generator, n: int) -> Case:
    """Return a kernel matrix, targets and C."""
    Phi = rng.normal(size=(n, n))
    return {"K": Phi @ Phi.T, "y": rng.normal(size=n), "C": float(np.exp(rng.normal()))}


def embedded_graph(rng: np.random.Generator, n: int) -> Case:
    """Return a graph whose points have places V in the plane."""
    return {**random_graph(rng, n), "V": rng.normal(size=(n + 1, 2))}


def complete_graph(rng: np.random.Generator, n: int) -> Case:
    """Return a graph with all edges, whose largest eigenvalue is repeated n - 1 times."""
    case = random_graph(rng, n)
    return {**case, "S": np.ones_like(case["S"]) - np.eye(len(case["S"])), "mu": 0.05}


def graph_with_spectrum(rng: np.random.Generator, n: int) -> Case:
    """Return a graph and eigenvalues lam for a kernel on it."""
    return {**random_graph(rng, n), "lam": rng.random(n + 1)}


def graph_with_classes(rng: np.random.Generator, n: int) -> Case:
    """Return a graph whose points fall into three groups, and eigenvalues for a kernel on it."""
    case = graph_with_spectrum(rng, n + 2)
    rest = rng.integers(0, 3, len(case["y"]) - 3)
    return {**case, "groups": np.append([0, 1, 2], rest)}


def labels_see_null_space(case: Case) -> bool:
    """Return whether y is not orthogonal to D^1/2 1, the null vector of the Laplacian."""
    return bool(abs(np.sqrt(case["S"].sum(axis=1)) @ case["y"]) > 0.1)


def laplacian(case: Case) -> FloatArray:
    """Return I - D^-1/2 S D^-1/2."""
    S = np.asarray(case["S"], float)
    roots = 1 / np.sqrt(S.sum(axis=1))
    return np.asarray(np.eye(len(S)) - S * np.outer(roots, roots))


def labels_of(case: Case) -> np.ndarray:
    """Return the labels as klopt's problems take them: 0, 1, and -1 where unlabelled."""
    y = np.asarray(case["y"])
    return np.where(y == 0, -1, (y > 0).astype(int))


def spectrum_of(case: Case) -> Spectrum:
    """Return the eigenvectors and what the labels see of them."""
    values, U = np.linalg.eigh(laplacian(case))
    return Spectrum(U, (U.T @ case["y"]) ** 2, np.maximum(values, 0.0) + case["ridge"])


def curve(case: Case, mu: float) -> FloatArray:
    """Return the unclipped spectrum sqrt(A / 2 mu B) - 1/C at mu."""
    return np.asarray(np.sqrt(case["A"] / (2 * mu * case["B"])) - 1 / case["C"])


def aligned(case: Case, lam: FloatArray) -> float:
    """Return the alignment of the spectrum with the labels, up to the norm of the target.

    It is 0 for K = 0.
    """
    norm = float(np.linalg.norm(lam))
    return float(lam @ case["A"]) / norm if norm else 0.0
