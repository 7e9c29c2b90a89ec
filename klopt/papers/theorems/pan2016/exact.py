"""Counterexamples in exact fractions and in balls (Pan et al., 2016)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from klopt.errors import InvalidSettings
from klopt.papers.theorems.cases import ball, given
from klopt.papers.theorems.claim import Case
from klopt.papers.theorems.pan2016.quantities import closed_form

__all__ = ["exact_definite", "exact_plain_projections", "exact_residual", "exact_separation"]


def _graph(T: Any) -> tuple[list[list[Any]], list[Any]]:
    """W = exp(T) and its row sums."""
    W = [[ball(entry).exp() for entry in row] for row in T]
    return W, [sum(row, ball(0)) for row in W]


def _flat(W: list[list[Any]], D: list[Any]) -> Any:
    """q'Sq / q'q for q = D^1/2 1: (sum of D - sum of W) / sum of D, which is 0."""
    degrees = sum(D, ball(0))
    weights = sum((sum(row, ball(0)) for row in W), ball(0))
    return (degrees - weights) / degrees


def exact_definite(case: Case) -> tuple[Any, Any]:
    """Return 1e-12, and the Rayleigh quotient of S that is said to exceed it."""
    return ball(Fraction(1, 10**12)), _flat(*_graph(case["T"]))


def exact_separation(case: Case) -> tuple[Any, Any]:
    """Return the loss of the ideal kernel and that of qq', both of trace 1."""
    same = case["labels"][:, None] == case["labels"]
    W, D = _graph(np.where(same, 1.0, -1.0))
    n = len(W)
    pairs = [(i, j) for i in range(n) for j in range(n) if same[i, j]]
    inside = [W[i][j] / (D[i] * D[j]).sqrt() for i, j in pairs]
    return 1 - sum(inside, ball(0)) / n, _flat(W, D)


@given
def computed_kernel(case: Case) -> Any:
    """Return K of (29) as floats compute it, each of which is a fraction."""
    K = closed_form({name: np.asarray(value, float) for name, value in case.items()})
    if not np.isfinite(K).all():
        raise InvalidSettings("there is no K to measure: an inverse failed")
    return np.array([[Fraction(float(entry)) for entry in row] for row in K], dtype=object)


def exact_residual(case: Case) -> tuple[Any, Any]:
    """Return the squared residual of K + gamma K S K0 = K0 at K of (29), and 1e-16 |K0|^2."""
    K = computed_kernel(case)
    K0 = case["K0"]
    points = range(len(K0))
    W, D = _graph(case["T"])
    S = [[(i == j) - W[i][j] / (D[i] * D[j]).sqrt() for j in points] for i in points]
    exact = [[ball(entry) for entry in row] for row in K]
    start = [[ball(entry) for entry in row] for row in K0]
    KSK0 = _product(_product(exact, S), start)

    gamma = ball(case["gamma"])
    residual = [exact[i][j] + gamma * KSK0[i][j] - start[i][j] for i in points for j in points]
    allowed = Fraction(1, 10**16) * sum(K0.ravel() ** 2)
    return sum((x * x for x in residual), ball(0)), ball(allowed)


def _product(A: list[list[Any]], B: list[list[Any]]) -> list[list[Any]]:
    """AB, in balls."""
    columns = list(zip(*B, strict=True))
    return [
        [sum((a * b for a, b in zip(row, column, strict=True)), ball(0)) for column in columns]
        for row in A
    ]


def _distance(K: Any, k: int) -> Fraction:
    return Fraction(K[0, 0] + K[k, k] - 2 * K[0, k])


def _projected(K: Any, k: int, bound: Any) -> tuple[Any, Fraction]:
    """(5) on d_1k <= bound, and what it multiplies the determinant with."""
    p = _distance(K, k)
    if p <= bound:
        return K, Fraction(1)
    Kz = K[:, 0] - K[:, k]
    return K + (bound - p) / p**2 * np.outer(Kz, Kz), bound / p


def exact_plain_projections(case: Case) -> tuple[Any, Any]:
    """Return the divergence from I where plain projections stop and that of a feasible kernel.

    They stop once both constraints hold; the other kernel is the projection on the second one
    alone.
    """
    K0 = case["K0"]
    bounds = (case["u12"], case["u13"])
    first, one = _projected(K0, 1, bounds[0])
    K, two = _projected(first, 2, bounds[1])
    other, only = _projected(K0, 2, bounds[1])
    feasible = all(
        _distance(M, k) <= u for M in (K, other) for k, u in zip((1, 2), bounds, strict=True)
    )
    if not feasible or (np.eye(len(K0), dtype=int) != K0).any():
        raise InvalidSettings(
            "decided exactly for K0 = I and projections that stop after one sweep only"
        )

    n = len(K0)
    of_limit = ball(K.trace() - n) - ball(one * two).log()
    of_other = ball(other.trace() - n) - ball(only).log()
    return of_limit, of_other
