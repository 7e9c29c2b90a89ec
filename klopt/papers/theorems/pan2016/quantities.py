"""Supervised complete graphs, LogDet divergences and their projections (Pan et al., 2016)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from klopt.arrays import FloatArray
from klopt.engine.pipeline import solve
from klopt.kernels.graphs import supervised_laplacian
from klopt.kernels.side_information import side_graph
from klopt.papers.theorems.cases import ball
from klopt.papers.theorems.claim import Case
from klopt.papers.theorems.evidence import (
    Evidence,
    Interval,
    at_most,
    equal,
    every,
    not_measured,
    overlap,
)
from klopt.problems import LP, ScgLogDet, ScgOrdered


def random_pairs(rng: np.random.Generator, n: int) -> Case:
    """Return side information T and features Phi, one column a point."""
    T = np.triu(rng.integers(-1, 2, (n, n)), 1).astype(float)
    return {"T": T + T.T, "Phi": rng.normal(size=(n, n))}


def random_kernels(rng: np.random.Generator, n: int) -> Case:
    """Return two symmetric matrices."""
    A, B = rng.normal(size=(2, n, n))
    return {"K": A + A.T, "L": B + B.T, "factor": float(np.exp(rng.normal()))}


def random_start(rng: np.random.Generator, n: int) -> Case:
    """Return K0 > 0, side information and gamma."""
    R = rng.normal(size=(n, n + 2))
    return {**random_pairs(rng, n), "K0": R @ R.T / n, "gamma": float(np.exp(rng.normal()))}


def random_costs(rng: np.random.Generator, r: int) -> Case:
    """Return orthonormal columns V, labels and sigma."""
    V = np.linalg.qr(rng.normal(size=(r + 2, r)))[0]
    return {
        "V": V,
        "labels": rng.integers(0, 2, r + 2),
        "sigma": float(rng.choice([1.0, 1.05, 1.2, 2.0])),
    }


def graph(case: Case) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return W = exp(T), its row sums D and S = I - D^-1/2 W D^-1/2."""
    W = np.exp(case["T"])
    return W, W.sum(axis=1), supervised_laplacian(case["T"])


def scg_loss(case: Case) -> float:
    """Return sum_ij W_ij |phi_i / sqrt(D_i) - phi_j / sqrt(D_j)|^2."""
    W, D, _ = graph(case)
    X = case["Phi"] / np.sqrt(D)
    squared_distances = np.sum((X[:, :, None] - X[:, None, :]) ** 2, axis=0)
    return float(np.sum(W * squared_distances))


def inner(case: Case) -> float:
    """Return <K, S> for K = Phi'Phi."""
    return float(np.sum((case["Phi"].T @ case["Phi"]) * graph(case)[2]))


def exact_scg(case: Case) -> tuple[Any, Any]:
    """Return the two sides of (10) as balls."""
    n = len(case["T"])
    points = [[ball(entry) for entry in column] for column in case["Phi"].T.tolist()]
    W = [[ball(entry).exp() for entry in row] for row in case["T"].tolist()]
    roots = [sum(row, ball(0)).sqrt() for row in W]
    scaled = [[entry / root for entry in x] for x, root in zip(points, roots, strict=True)]

    loss = ball(0)
    trace = ball(0)
    for i in range(n):
        for j in range(n):
            difference = [a - b for a, b in zip(scaled[i], scaled[j], strict=True)]
            loss += W[i][j] * _inner(difference, difference)
            S_ij = (i == j) - W[i][j] / (roots[i] * roots[j])
            trace += _inner(points[i], points[j]) * S_ij
    return loss, trace


def _inner(a: list[Any], b: list[Any]) -> Any:
    """a'b in balls."""
    return sum((x * y for x, y in zip(a, b, strict=True)), ball(0))


def alignment(K: FloatArray, L: FloatArray) -> float:
    """Return <K, L> / (||K|| ||L||)."""
    return float(np.sum(K * L) / (np.linalg.norm(K) * np.linalg.norm(L)))


def random_prefixes(rng: np.random.Generator, r: int) -> Case:
    """Return columns V and their inner products b with a target, which may all be negative."""
    V = rng.normal(size=(3, r))
    b = rng.normal(size=r) - float(rng.choice([0.0, 1.0]))
    return {"V": V, "b": b}


def best_prefix_is_optimal(case: Case) -> Evidence:
    """Return whether no ordered spectrum beats the best prefix.

    No prefix sum of b is positive.
    """
    V = case["V"]
    b = case["b"]
    F = (V.T @ V) ** 2
    B = np.cumsum(b)
    # Where a prefix sum is positive the QCQP is right, and nothing is to be corrected.
    if B.max() > 0:
        return not_measured("a prefix sum is positive")

    norms = [float(np.sqrt(F[: k + 1, : k + 1].sum())) for k in range(len(b))]
    best = max(float(B[k]) / norms[k] for k in range(len(b)))
    spectra = np.sort(np.random.default_rng(0).random((200, len(b))), axis=1)[:, ::-1]
    others = (spectra @ b) / np.sqrt(np.einsum("ti,ij,tj->t", spectra, F, spectra))
    return at_most(float(others.max()) + 10, best + 10)


def alignment_with_identity(t: float) -> float:
    """Return the alignment of diag(1, t) with the identity."""
    return float((1 + t) / np.sqrt(2 * (1 + t * t)))


def random_cone(rng: np.random.Generator, n: int) -> Case:
    """Return two psd kernels, whose cone is the set, labels, and t of the printed statement."""
    A, B = rng.normal(size=(2, n, n))
    y = rng.choice([-1.0, 1.0], n)
    return {"t": float(rng.random() * 0.9), "K": A @ A.T, "L": B @ B.T, "y": y}


def best_in_cone(case: Case) -> float:
    """Return the optimum of (23): the best alignment of a K + b L, a, b >= 0, with yy'.

    The alignment is free of scale and quasi-concave, so that a search along the segment from K to
    L finds it.
    """
    from scipy.optimize import minimize_scalar

    ideal = np.outer(case["y"], case["y"])

    def loss(t: float) -> float:
        return -alignment((1 - t) * case["K"] + t * case["L"], ideal)

    found = minimize_scalar(loss, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-10})
    return -min(float(found.fun), loss(0.0), loss(1.0))


def best_on_ball(case: Case) -> float:
    """Return the optimum of (24): the norm of the projection of yy' / |yy'| on the cone."""
    from scipy.optimize import nnls

    ideal = np.outer(case["y"], case["y"])
    columns = np.stack([case["K"].ravel(), case["L"].ravel()], axis=1)
    weights, _ = nnls(columns, ideal.ravel() / np.linalg.norm(ideal))
    return float(np.linalg.norm(columns @ weights))


def cone_is_equivalent(case: Case) -> Evidence:
    """Return whether (24) on the unit ball reaches the best alignment (23), over a cone."""
    return equal(best_in_cone(case), best_on_ball(case), tol=1e-8)


HULL_KERNELS = 4
"""How many kernels span the convex set on which Theorem 1 is tried."""


def hull(case: Case) -> tuple[FloatArray, FloatArray]:
    """Return <K_k, T'> and tr K_k of some psd kernels K_k of the points of a case."""
    n = len(case["T"])
    W, D, _ = graph(case)
    normalised = W / np.sqrt(np.outer(D, D))
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(HULL_KERNELS, n, 2))
    kernels = factors @ factors.transpose(0, 2, 1)
    return np.sum(kernels * normalised, axis=(1, 2)), np.trace(kernels, axis1=1, axis2=2)


def linear_optimum(cost: FloatArray, row: FloatArray, most: float) -> Interval:
    """Return klopt's interval for the least cost'w over the simplex with row'w <= most."""
    program = LP(
        c=cost,
        A_ub=row[None],
        b_ub=[most],
        A_eq=np.ones((1, len(cost))),
        b_eq=[1.0],
        bounds=[(0, None)] * len(cost),
    )
    result = solve(program, tol=1e-9)
    return Interval(result.lower, result.upper)


def ivanov_has_the_solutions_of_tikhonov(case: Case) -> Evidence:
    """Return whether K* of (15) solves (16) with tau = tr K*, whose solutions all have that trace.

    The set is the convex hull of some kernels, so that (15) is solved by the best of them.
    """
    gains, traces = hull(case)
    best = int(np.argmax(gains - traces))
    tau = float(traces[best])
    size = 1 + float(np.abs(gains).max()) + float(traces.max())
    # (16), the trace at most tau; then the least trace among what gains as much as K*.
    low, high = linear_optimum(-gains, traces, tau)
    least = linear_optimum(traces, -gains, -float(gains[best]))
    return every([
        overlap(Interval(-high, -low), _around(float(gains[best]), size), tol=1e-6),
        overlap(least, _around(tau, size), tol=1e-6),
    ])  # fmt: skip


def _around(value: float, size: float) -> Interval:
    """An interval for a number computed in floating point from terms of that size."""
    return Interval(value - 1e-12 * size, value + 1e-12 * size)


def exact_ones_loss(case: Case, a: int) -> Fraction:
    """Return <a 11', S> where nothing is known of any pair: S = I - 11'/n."""
    assert not any(case["T"].ravel())
    n = len(case["T"])
    S = [(i == j) - Fraction(1, n) for i in range(n) for j in range(n)]
    return sum((a * entry for entry in S), Fraction(0))


def inertia(classes: int) -> tuple[int, int]:
    """Return the numbers of negative and positive eigenvalues of the target.

    The target is +1 within a class and -1 between classes.
    """
    values = np.linalg.eigvalsh(2 * np.eye(classes) - np.ones((classes, classes)))
    return int((values < -1e-9).sum()), int((values > 1e-9).sum())


def squared_distance(K: FloatArray, i: int, j: int) -> float:
    """Return d_ij = K_ii + K_jj - 2 K_ij."""
    return float(K[i, i] + K[j, j] - 2 * K[i, j])


def target(labels: FloatArray) -> FloatArray:
    """Return T of class labels: 1 for points of one class, -1 for others."""
    return np.where(labels[:, None] == labels, 1.0, -1.0)


def divergence(K: FloatArray, K0: FloatArray) -> float:
    """Return tr(K K0^-1) - log det(K K0^-1) - n."""
    M = np.linalg.solve(K0, K)
    return float(np.trace(M) - np.linalg.slogdet(M)[1] - len(K))


def projected(K: FloatArray, i: int, j: int, bound: float) -> FloatArray:
    """Return (5): the nearest kernel with d_ij <= bound.

    It is K + beta Kzz'K, beta = (bound - p) / p^2.
    """
    z = np.zeros(len(K))
    z[[i, j]] = 1.0, -1.0
    p = float(z @ K @ z)
    return K + max(p - bound, 0.0) * (-1 / p**2) * np.outer(K @ z, K @ z)


def projection_is_nearest(case: Case) -> Evidence:
    """Return whether (5) meets its constraint and no other kernel tried that meets it is nearer."""
    K0 = case["K0"]
    rng = np.random.default_rng(0)
    p = float(K0[0, 0] + K0[1, 1] - 2 * K0[0, 1])
    K = projected(K0, 0, 1, p / 2)
    own = divergence(K, K0)
    others = []
    for size in (1e-3, 1e-2, 0.1):
        moved = np.eye(len(K)) + size * rng.normal(size=K.shape)
        others.append(divergence(projected(moved @ K @ moved.T, 0, 1, p / 2), K0))
    met = equal(float(K[0, 0] + K[1, 1] - 2 * K[0, 1]), p / 2, tol=1e-8)
    return every([met, *(at_most(own, other, tol=1e-9) for other in others)])


def two_constraints(rng: np.random.Generator, n: int) -> Case:
    """Return K0 and bounds on d_12 and d_13, the second much tighter than the first."""
    R = rng.normal(size=(3, 5))
    K0 = R @ R.T / 5 + 0.2 * np.eye(3)
    d = [K0[0, 0] + K0[k, k] - 2 * K0[0, k] for k in (1, 2)]
    return {"K0": K0, "u12": float(d[0] * 0.95), "u13": float(d[1] * 0.05)}


def cyclic(case: Case, *, corrected: bool, sweeps: int = 400) -> FloatArray:
    """Return the limit of cyclic projections on the constraints.

    `corrected` steps may undo earlier projections on the same constraint.
    """
    K = np.array(case["K0"], float)
    lam = np.zeros(2)
    z = np.array([[1.0, -1.0, 0.0], [1.0, 0.0, -1.0]])
    bounds = (case["u12"], case["u13"])
    for _ in range(sweeps):
        for c in range(2):
            p = float(z[c] @ K @ z[c])
            step = 1 / bounds[c] - 1 / p
            eta = max(-lam[c], step) if corrected else max(step, 0.0)
            lam[c] += eta
            K = K - eta / (1 + eta * p) * np.outer(K @ z[c], K @ z[c])
    return K


def optimal_divergence(case: Case) -> float:
    """Return the minimal divergence under the two constraints.

    Newton's method solves the dual to rounding.
    """
    from scipy.optimize import minimize

    z = np.array([[1.0, -1.0, 0.0], [1.0, 0.0, -1.0]])
    inverse = np.linalg.inv(case["K0"])
    bounds = np.array([case["u12"], case["u13"]])

    def negative_dual(lam: FloatArray) -> tuple[float, FloatArray]:
        M = inverse + (z.T * lam) @ z
        K = np.linalg.inv(M)
        value = np.linalg.slogdet(M @ case["K0"])[1] - lam @ bounds
        return -float(value), -(np.einsum("ci,ij,cj->c", z, K, z) - bounds)

    found = minimize(negative_dual, np.zeros(2), jac=True, bounds=[(0, None)] * 2, tol=1e-15)
    return -float(found.fun)


def ends_at_the_optimum(case: Case, *, corrected: bool) -> Evidence:
    """Return whether cyclic projections end at the minimal divergence."""
    K = cyclic(case, corrected=corrected)
    return at_most(divergence(K, case["K0"]), optimal_divergence(case), tol=1e-6)


def singular_start(rng: np.random.Generator, n: int) -> Case:
    """Return a K0 of condition 1e18."""
    U, _ = np.linalg.qr(rng.normal(size=(n, n)))
    return {**random_pairs(rng, n), "K0": (U * np.geomspace(1, 1e-18, n)) @ U.T, "gamma": 1.0}


def residual29(case: Case, K: FloatArray) -> float:
    """Return the residual of K + gamma K S K0 = K0, which has no inverse in it."""
    if not np.isfinite(K).all():
        return np.inf
    residual = K + case["gamma"] * K @ graph(case)[2] @ case["K0"] - case["K0"]
    return float(np.linalg.norm(residual) / np.linalg.norm(case["K0"]))


def closed_form(case: Case) -> FloatArray:
    """Return (K0^-1 + gamma S)^-1, as printed in (29).

    It is infinite where a matrix is singular: no accuracy is left.
    """
    try:
        return np.linalg.inv(np.linalg.inv(case["K0"]) + case["gamma"] * graph(case)[2])
    except np.linalg.LinAlgError:
        return np.full_like(case["K0"], np.inf)


def without_inverse(case: Case) -> FloatArray:
    """Return K0 (I + gamma S K0)^-1."""
    S = graph(case)[2]
    K0 = case["K0"]
    system = np.eye(len(K0)) + case["gamma"] * S @ K0
    return np.asarray(np.linalg.solve(system.T, K0.T).T)


def scg_ldk(case: Case) -> Interval:
    """Return klopt's interval for the optimum of (27), T as in (7)."""
    side = side_graph(case["T"], len(case["T"]), self_similar=False)
    result = solve(ScgLogDet(case["K0"], side, case["gamma"]))
    return Interval(result.lower, result.upper)


def objective27(case: Case, K: FloatArray) -> float:
    """Return D(K, K0) + gamma tr(KS)."""
    return divergence(K, case["K0"]) + float(case["gamma"] * np.sum(K * graph(case)[2]))


def smoothness(case: Case, gamma: float) -> float:
    """Return tr(K(gamma) S)."""
    return float(np.sum(without_inverse({**case, "gamma": gamma}) * graph(case)[2]))


def costs(case: Case) -> FloatArray:
    """Return c_i = v_i'S v_i of the columns of V, from the S of the labels."""
    S = graph({"T": target(case["labels"])})[2]
    return np.asarray(np.einsum("pi,pq,qi->i", case["V"], S, case["V"]))


def prefix_means(case: Case) -> float:
    """Return the smallest weighted mean of a prefix of c_i = v_i'S v_i, weights sigma^-(i-1)."""
    c = costs(case)
    weights = float(case["sigma"]) ** -np.arange(len(c))
    means = np.cumsum(weights * c) / np.cumsum(weights)
    return float(np.min(means))


def ordered_optimum(case: Case, formulation: str | None = None) -> Interval:
    """Return klopt's interval for the optimum of (26)."""
    problem = ScgOrdered(case["V"], case["labels"], case["sigma"])
    backend = "highs" if formulation == "LP" else None
    result = solve(problem, backend, formulation=formulation, tol=1e-9)
    return Interval(result.lower, result.upper)


def extension(case: Case) -> FloatArray:
    """Return Q = -gamma S (I + gamma K0 S)^-1 of (32), without an inverse of K0."""
    S = graph(case)[2]
    K0 = case["K0"]
    system = np.eye(len(K0)) + case["gamma"] * K0 @ S
    return np.asarray(-case["gamma"] * np.linalg.solve(system.T, S.T).T)


def features_of(case: Case) -> FloatArray:
    """Return features of the points, one column a point and two features more than points."""
    n = len(case["T"])
    return np.random.default_rng(0).normal(size=(n + 2, n))


def feature_form(case: Case) -> Evidence:
    """Return whether Phi'U Phi = K for U = I_d + Phi Q Phi'."""
    Phi = features_of(case)
    one = {**case, "K0": Phi.T @ Phi}
    U = np.eye(len(Phi)) + Phi @ extension(one) @ Phi.T
    return equal(Phi.T @ U @ Phi, without_inverse(one), tol=1e-7)


def extended(case: Case) -> Evidence:
    """Return whether (32) recovers K on the training points and stays positive with new ones."""
    n = len(case["T"])
    new = 3
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n + new, n + new + 2))
    k0 = X @ X.T / n
    one = {**case, "K0": k0[:n, :n]}
    k = k0 + k0[:, :n] @ extension(one) @ k0[:n]
    values = np.linalg.eigvalsh((k + k.T) / 2)
    return every([
        equal(k[:n, :n], without_inverse(one), tol=1e-8),
        at_most(-float(values[0]), 1e-9 * float(values[-1])),
    ])  # fmt: skip


def ignored_labels(case: Case) -> tuple[float, float]:
    """Return the losses of qq', q = D^1/2 1, and of the ideal kernel, trace 1.

    No label enters q.
    """
    labels = case["labels"]
    _, D, S = graph({"T": target(labels)})
    q = np.sqrt(D)
    ideal = (labels[:, None] == labels).astype(float)
    return float(q @ S @ q / (q @ q)), float(np.sum(ideal * S) / np.trace(ideal))
