"""What the claims of Mao and Tsang (2010) measure: kernels and alignments from a spectrum."""

from __future__ import annotations

from fractions import Fraction
from math import inf
from typing import Any, Literal

import numpy as np

from klopt.arrays import FloatArray
from klopt.engine.pipeline import solve
from klopt.papers.theorems.cases import ball, given
from klopt.papers.theorems.claim import Case
from klopt.papers.theorems.evidence import Evidence, Interval, at_most, equal, every
from klopt.papers.theorems.mao2010.graphs import aligned, curve, labels_of, laplacian, spectrum_of
from klopt.problems import SpectralAlignment, SpectralRls

MU_GRID = np.geomspace(1e-10, 1e10, 2001)
"""Values of mu among which the best alignment is searched."""


def pairwise(case: Case) -> float:
    """Return sum_ij S_ij |v_i / sqrt(d_i) - v_j / sqrt(d_j)|^2."""
    V = case["V"] / np.sqrt(case["S"].sum(axis=1))[:, None]
    squared_distances = np.sum((V[:, None, :] - V[None, :, :]) ** 2, axis=2)
    return float(np.sum(case["S"] * squared_distances))


def smoothness(case: Case) -> float:
    """Return tr(KL) for K = VV'."""
    return float(np.sum((case["V"] @ case["V"].T) * laplacian(case)))


def exact_regulariser(case: Case) -> tuple[Any, Any]:
    """Return both sides of (5) on a graph whose degrees are all 1, where no root is left."""
    S = case["S"]
    V = case["V"]
    assert all(sum(row) == 1 for row in S)
    points = range(len(S))
    pairs = [(i, j) for i in points for j in points]
    left = sum(S[i, j] * sum((V[i] - V[j]) ** 2) for i, j in pairs)
    right = sum(((i == j) - S[i, j]) * (V[i] @ V[j]) for i, j in pairs)
    return left, right


def optimum(case: Case, basis: Literal["spectral", "padded", "labelled"]) -> Interval:
    """Return klopt's interval for the optimum of (6) ("labelled") or of (7).

    (7) is taken over all kernels ("padded") or over the spectral family.
    """
    problem = SpectralRls(
        laplacian(case), labels_of(case), case["C"], case["mu"], basis, ridge=case["ridge"]
    )
    result = solve(problem, tol=1e-7)
    return Interval(result.lower, result.upper)


def schur_optimum(case: Case, weight: float) -> Interval:
    """Return the optimum of weight tau + mu tr(KL) under the Schur complement.

    It is that of (6) with mu / (2 weight), scaled.
    """
    low, high = optimum({**case, "mu": case["mu"] / (2 * weight)}, "labelled")
    return Interval(2 * weight * low, 2 * weight * high)


def value7(case: Case, K: FloatArray) -> float:
    """Return the objective of (7)."""
    y = case["y"]
    return float(
        y @ np.linalg.solve(K + np.eye(len(K)) / case["C"], y) / 2
        + case["mu"] * np.sum(K * laplacian(case))
    )


def spectrum8(case: Case) -> FloatArray:
    """Return [sqrt(A / (2 mu B)) - 1/C]_+, with 1/C outside the root."""
    return np.maximum(curve(case, case["mu"]), 0.0)


def exact_spectrum8(case: Case) -> list[Any]:
    """Return sqrt(A / (2 mu B)) - 1/C as balls, not clipped."""
    ratios = [a / (2 * case["mu"] * b) for a, b in zip(case["A"], case["B"], strict=True)]
    return [ball(ratio).sqrt() - ball(1 / Fraction(case["C"])) for ratio in ratios]


def least(case: Case, lam: FloatArray) -> Evidence:
    """Return the evidence that no spectrum is better.

    The objective is separable, so each entry has a grid of its own.
    """
    trial = np.concatenate([[0.0], np.geomspace(1e-3, 1e3, 400)])
    A = np.asarray(case["A"])[:, None]
    B = np.asarray(case["B"])[:, None]
    best = (A / (trial + 1 / case["C"]) / 2 + case["mu"] * B * trial).min(axis=1)
    own = case["A"] / (lam + 1 / case["C"]) / 2 + case["mu"] * case["B"] * lam
    total = float(own.sum())
    return at_most(total, float(np.minimum(best, own).sum()), scale=total)


def exact_value8(case: Case, lam: Any) -> Any:
    """Return the objective of a one-dimensional spectrum as a ball."""
    A = ball(Fraction(case["A"][0]))
    B = ball(Fraction(case["B"][0]))
    mu = ball(Fraction(case["mu"]))
    C = ball(Fraction(case["C"]))
    return A / (lam + 1 / C) / 2 + mu * B * lam


def rotated_kernel(case: Case, angle: float) -> FloatArray:
    """Return K of (8), the plane of the two largest eigenvalues rotated by `angle`."""
    U, _, B = spectrum_of(case)
    c = np.cos(angle)
    s = np.sin(angle)
    rotation = np.array([[c, -s], [s, c]])
    U = np.hstack([U[:, :-2], U[:, -2:] @ rotation])
    A = (U.T @ case["y"]) ** 2
    return (U * spectrum8({**case, "A": A, "B": B})) @ U.T


def basis_free(case: Case) -> Evidence:
    """Return whether klopt's kernel stays the same when the points come in another order."""
    order = np.random.default_rng(0).permutation(len(case["y"]))
    kernels = []
    for one in (case, {**case, "S": case["S"][np.ix_(order, order)], "y": case["y"][order]}):
        problem = SpectralRls(
            laplacian(one), labels_of(one), one["C"], one["mu"], ridge=one["ridge"]
        )
        kernels.append(solve(problem).kernel)
    assert kernels[0] is not None
    assert kernels[1] is not None
    return equal(kernels[0][np.ix_(order, order)], kernels[1], tol=1e-7, scale=1e-6)


def signs(case: Case) -> tuple[Any, Any]:
    """Return p = n X - Z U and q = Y U - Z X, whose signs classify the stationary point."""
    A = np.asarray(case["A"])
    r = np.sqrt(case["A"] / (2 * case["B"]))
    X = A @ r
    Y = r @ r
    Z = r.sum()
    total = A.sum()
    return len(A) * X - Z * total, Y * total - Z * X


def printed_mu(case: Case) -> float:
    """Return mu* of (10)."""
    p, q = signs(case)
    return float((q / p * case["C"]) ** 2) if p else inf


def best_on_grid(case: Case, *, clip: bool) -> float:
    """Return the best alignment over a fine grid of mu, of the curve or of its positive part."""
    spectra = (curve(case, mu) for mu in MU_GRID)
    return max(aligned(case, np.maximum(lam, 0.0) if clip else lam) for lam in spectra)


def printed_mu_beats_the_grid(case: Case) -> Evidence:
    """Return whether the unclipped alignment at mu* is maximal on the grid."""
    mu = printed_mu(case)
    value = aligned(case, curve(case, mu)) if 0 < mu < inf else -float(np.linalg.norm(case["A"]))
    # No alignment is below -|A|: shifted by 2 |A| both sides are positive.
    shift = 2 * float(np.linalg.norm(case["A"]))
    return at_most(best_on_grid(case, clip=False) + shift, value + shift, tol=1e-8)


def clipped_maximum(case: Case) -> float:
    """Return the maximal alignment of the positive part.

    Every piece between breakpoints has its own candidates.
    """
    A = np.asarray(case["A"], float)
    r = np.sqrt(np.asarray(case["A"], float) / (2 * np.asarray(case["B"], float)))
    order = np.argsort(-r)
    levels = [0.0, *r]
    for k in range(1, len(r) + 1):
        top = order[:k]
        after = r[order[k]] if k < len(r) else 0.0
        m = float(r[top].mean())
        S = float(np.sum((r[top] - m) ** 2))
        X = float(A[top] @ (r[top] - m))
        Z = float(A[top].sum())
        if X > 0 and after < m - Z * S / (k * X) < r[order[k - 1]]:
            levels.append(m - Z * S / (k * X))
    spectra = [np.maximum(r - level, 0.0) for level in levels] + [(r == r.max()).astype(float)]
    return max(aligned(case, lam) for lam in spectra)


@given
def better_weight(case: Case, clip: bool) -> Fraction:
    """Return the mu of a grid at which the alignment is best in floats."""
    plain = {
        name: np.asarray(value, float) if np.ndim(value) else float(value)
        for name, value in case.items()
    }
    spectra = [curve(plain, mu) for mu in MU_GRID]
    best = max(
        range(len(MU_GRID)),
        key=lambda i: aligned(plain, np.maximum(spectra[i], 0.0) if clip else spectra[i]),
    )
    return Fraction(float(MU_GRID[best]))


def exact_alignments(case: Case, *, clip: bool) -> tuple[Any, Any]:
    """Return, as balls, the alignment at a better mu than mu* of (10), and that at mu*."""
    better = ball(better_weight(case, clip))
    p, q = exact_signs(case)
    printed = (q / p * ball(Fraction(case["C"]))) * (q / p * ball(Fraction(case["C"])))
    return _exact_alignment(case, better, clip), _exact_alignment(case, printed, clip)


def _exact_alignment(case: Case, mu: Any, clip: bool) -> Any:
    A = [ball(a) for a in case["A"]]
    rate = 1 / ball(Fraction(case["C"]))
    lam = [
        (ball(a / (2 * b)) / mu).sqrt() - rate for a, b in zip(case["A"], case["B"], strict=True)
    ]
    lam = [ball(0).max(x) for x in lam] if clip else lam
    norm = sum((x * x for x in lam), ball(0)).sqrt()
    total = sum((x * a for x, a in zip(lam, A, strict=True)), ball(0))
    return total / norm if norm > 0 else ball(0)


def exact_signs(case: Case) -> tuple[Any, Any]:
    """Return p and q of `signs` as balls."""
    A = [ball(a) for a in case["A"]]
    r = [ball(a / (2 * b)).sqrt() for a, b in zip(case["A"], case["B"], strict=True)]
    X = sum(a * b for a, b in zip(A, r, strict=True))
    Y = sum(b * b for b in r)
    Z = sum(r)
    total = sum(A)
    return len(A) * X - Z * total, Y * total - Z * X


def kbar(case: Case) -> FloatArray:
    """Return the spectrum |p / q| r of Proposition 4."""
    p, q = signs(case)
    return np.asarray(abs(p / q) * np.sqrt(case["A"] / (2 * case["B"])))


def exact_kbar(case: Case) -> list[Any]:
    """Return the same as balls."""
    p, q = exact_signs(case)
    return [
        abs(p / q) * ball(a / (2 * b)).sqrt() for a, b in zip(case["A"], case["B"], strict=True)
    ]


def decisions(case: Case, C: float, mu: float) -> FloatArray:
    """Return K_:l (K_ll + I/C)^-1 y_l for K = U diag(sqrt(A / 2 mu B) - 1/C) U'."""
    U, A, B = spectrum_of(case)
    known = np.flatnonzero(case["y"])
    K = (U * (np.sqrt(A / (2 * mu * B)) - 1 / C)) @ U.T
    return np.asarray(
        K[:, known]
        @ np.linalg.solve(K[np.ix_(known, known)] + np.eye(known.size) / C, case["y"][known])
    )


def labelled_block(case: Case) -> FloatArray:
    """Return R_ll for R = U diag(sqrt(A / B)) U', which is Kbar_ll up to its scale."""
    U, A, B = spectrum_of(case)
    known = np.flatnonzero(case["y"])
    return np.asarray(((U * np.sqrt(A / B)) @ U.T)[np.ix_(known, known)])


def decisions_agree_for_every_c(case: Case) -> Evidence:
    """Return whether SKL at mu = (level C)^2 decides the same for every C.

    The level is that of SKL_KTA.
    """
    L = laplacian(case)
    labels = labels_of(case)
    ridge = case["ridge"]
    chosen = solve(SpectralAlignment(L, labels, ridge=ridge)).point
    assert chosen is not None
    level = max(float(chosen.level), 1e-3)
    found = []
    for C in (0.1, 1.0, 10.0):
        problem = SpectralRls(L, labels, C, (level * C) ** 2, ridge=ridge)
        point = solve(problem).point
        assert point is not None
        found.append(problem.decide(point))
    return every(equal(found[0], f, tol=1e-7, scale=1e-3) for f in found[1:])
