"""Ordered and spectral kernels: the ends of brackets against optima in exact or 60-digit arithmetic."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, reject, strategies as st
from mpmath import mp, mpf

import klopt
from klopt.errors import InvalidProblem
from klopt.kernels.graphs import supervised_targets
from klopt.kernels.side_information import energies, energy_error, side_graph
from klopt.model.problem import Point
from klopt.problems import (
    OrderedAlignment,
    ScgOrdered,
    SimilaritySpectra,
    SpectralAlignment,
    SpectralRls,
)
from klopt.problems._ordered.proof import _Sums
from klopt.problems._scg.ordered_proof import PrefixBounds
from klopt.problems._spectral.proof import CurveBounds, FreeBounds, SpectralBounds

seeds = st.integers(0, 2**32 - 1)
SIGMAS = (1.0, 1.0 + 2.0**-40, 1.1, 3.0, 1e8)


@pytest.fixture(autouse=True)
def digits():
    with mp.workdps(60):
        yield


# ---- alignment: the optimum by all sets of rays, in rationals


def solve_exactly(G, B):
    """The rational solution of G s = B; None where G is singular."""
    n = len(B)
    rows = [[*G[i], B[i]] for i in range(n)]
    for i in range(n):
        pivot = next((k for k in range(i, n) if rows[k][i]), None)
        if pivot is None:
            return None
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for k in range(n):
            if k != i and rows[k][i]:
                rows[k] = [x - rows[k][i] * y for x, y in zip(rows[k], rows[i], strict=True)]
    return [row[-1] for row in rows]


def signed_square_of_optimum(problem):
    """rho |rho| of the best alignment: a ray, or the best combination of independent rays."""
    known = np.flatnonzero(problem.labels >= 0)
    y = problem.labels[known].tolist()
    V = [[Fraction(float(x)) for x in problem.V[p]] for p in range(len(problem.V))]
    L = [V[p] for p in known]
    r = len(V[0])
    other = -1 if problem.target == "signed" else 0
    T = [[1 if a == b else other for b in y] for a in y]
    norm = sum(t * t for row in T for t in row)
    sigma = Fraction(problem.sigma)

    columns = []
    for i in range(r):
        here = sum(row[i] ** 2 for row in L)
        # The rule of the problem: such columns count as zero.
        if here > Fraction(1, 10**24) * sum(row[i] ** 2 for row in V):
            columns.append((i, [row[i] for row in L]))
    w = [(1 / sigma**i, v) for i, v in columns]
    F = [[sum(a * b for a, b in zip(v, x, strict=True)) ** 2 for _, x in w] for _, v in w]
    b = []
    for _, v in w:
        images = [sum(t * x for t, x in zip(row, v, strict=True)) for row in T]
        b.append(sum(a * x for a, x in zip(v, images, strict=True)))
    m = len(w)
    if problem.ordered:
        rays = [[w[i][0] if i <= k else Fraction(0) for i in range(m)] for k in range(m)]
    else:
        rays = [[Fraction(int(i == k)) for i in range(m)] for k in range(m)]
    images = [[sum(F[i][j] * ray[j] for j in range(m)) for i in range(m)] for ray in rays]
    G = [[sum(a * x for a, x in zip(ray, image, strict=True)) for image in images] for ray in rays]
    B = [sum(a * x for a, x in zip(ray, b, strict=True)) for ray in rays]

    best = max(B[k] * abs(B[k]) / G[k][k] for k in range(m))
    if best > 0:
        for size in range(2, m + 1):
            for S in combinations(range(m), size):
                s = solve_exactly([[G[i][j] for j in S] for i in S], [B[i] for i in S])
                if s is not None and min(s) >= 0:
                    best = max(best, sum(x * B[i] for x, i in zip(s, S, strict=True)))
    return best / norm


def signed_square(x):
    return Fraction(x) * abs(Fraction(x))


def alignment(rng):
    n, r = int(rng.integers(1, 6)), int(rng.integers(1, 5))
    V = rng.normal(size=(n, r))
    kind = rng.integers(8)
    if kind == 0:
        V = rng.integers(-2, 3, size=(n, r)).astype(float)
    if kind == 1:
        V = V[:, :1] * (1 + 1e-15 * rng.normal(size=(n, r)))
    if kind == 2:
        V = V * 10.0 ** rng.integers(-16, 17, r)
    if kind == 3:
        V = V * 10.0 ** rng.integers(-16, 17, (n, 1))
    if kind == 4:
        V = V * 10.0 ** rng.integers(-150, 150)
    if kind == 5:
        V[:, : r // 2] = 0.0
    if kind == 6:
        V = 1 + 1e-9 * V
    labels = rng.integers(-1, int(rng.integers(1, 5)), n)
    labels[rng.integers(n)] = 0
    V[labels >= 0, -1] += float(not V[labels >= 0].any())
    ordered = bool(rng.random() < 0.7)
    sigma = float(rng.choice(SIGMAS)) if ordered else 1.0
    try:
        return OrderedAlignment(V, labels, sigma, ordered, str(rng.choice(["indicator", "signed"])))
    except InvalidProblem:  # V is zero on the labelled points
        reject()


def arrays(rng, size):
    """Good and absurd proposals."""
    normal = rng.normal(size=size)
    return [
        np.zeros(size),
        normal,
        np.abs(normal),
        np.sort(np.abs(normal))[::-1],
        normal * 10.0 ** rng.integers(-300, 300),
        np.full(size, 1e308),
        np.full(size, 5e-324),
        np.full(size, np.nan),
        np.full(size, np.inf),
    ]


@given(seed=seeds)
def test_alignment_lies_between_the_ends(seed):
    rng = np.random.default_rng(seed)
    problem = alignment(rng)
    best = signed_square_of_optimum(problem)
    r = problem.V.shape[1]
    result = klopt.solve(problem)
    assert signed_square(result.lower) <= best <= signed_square(result.upper)
    for alpha in arrays(rng, r):
        for bracket in (problem.bracket, problem.proof):
            for dual in ({}, {"M": rng.normal(size=r)}, {"M": alpha}):
                found = bracket(Point({"alpha": alpha}, dual))
                assert -1 <= found.lower <= found.upper <= 1
                assert signed_square(found.lower) <= best <= signed_square(found.upper)


@given(seed=seeds)
def test_well_scaled_alignments_stay_certified(seed):
    rng = np.random.default_rng(seed)
    n, r = int(rng.integers(2, 20)), int(rng.integers(1, 12))
    labels = rng.integers(0, 3, n)
    ordered = bool(rng.random() < 0.7)
    sigma = float(rng.choice(SIGMAS)) if ordered else 1.0
    problem = OrderedAlignment(rng.normal(size=(n, r)), labels, sigma, ordered)
    result = klopt.solve(problem, tol=1e-9).require()
    assert result.upper - result.lower <= 1e-9 * (1 + abs(result.upper))


def test_alignment_charges_columns_behind_the_last_kept_one():
    """The columns left out have at most 1e-18 of the trace, and still belong to the problem."""
    V = np.array([[1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
    problem = OrderedAlignment(V, [0, 1, 0], sigma=1e20)
    assert problem.reduced.kept.tolist() == [0]
    assert problem.reduced.tail > 0
    best = signed_square_of_optimum(problem)
    result = klopt.solve(problem)
    assert signed_square(result.lower) <= best <= signed_square(result.upper)


# ---- prefix means


def exact_energies(side, V):
    """v'S v with S by its definition, to 60 digits."""
    n = len(V)
    if isinstance(side, tuple):
        T = np.zeros((n, n))
        for pairs, t in zip(side, (1.0, -1.0), strict=True):
            for i, j in pairs:
                T[i, j] = T[j, i] = t
                T[i, i] = T[j, j] = 1.0
    else:
        T = np.asarray(side, float)
        if T.ndim == 1:
            T = supervised_targets(np.asarray(side))
    W = [[mp.exp(mpf(float(t))) for t in row] for row in T]
    roots = [1 / mp.sqrt(mp.fsum(row)) for row in W]
    found = []
    for v in V.T:
        x = [mpf(float(a)) for a in v]
        energy = mp.fsum(a * a for a in x)
        for i in range(n):
            energy -= mp.fsum(x[i] * roots[i] * W[i][j] * roots[j] * x[j] for j in range(n))
        found.append(energy)
    return found


def smallest_mean(c, sigma):
    total = weight = mpf(0)
    best = mpf("inf")
    for i, cost in enumerate(c):
        e = mpf(sigma) ** -i
        total += e * cost
        weight += e
        best = min(best, total / weight)
    return best


def sides(rng, n):
    labels = rng.integers(-1, 3, n)
    labels[0] = 0
    i, j = np.triu_indices(n, 1)
    chosen = rng.integers(0, 3, i.size)
    chosen[0] = 1
    pairs = tuple(
        list(zip(i[chosen == k].tolist(), j[chosen == k].tolist(), strict=True)) for k in (1, 2)
    )
    T = rng.uniform(-1, 1, (n, n))
    return labels, pairs, (T + T.T) / 2


@given(seed=seeds)
def test_energies_are_within_their_errors(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    V = rng.normal(size=(n, 3)) * 10.0 ** rng.integers(-16, 17, (n, 1))
    # Nearly in the null space of S: all of the energy cancels.
    V[:, 0] = 1 + 1e-9 * rng.normal(size=n)
    for side in sides(rng, n):
        graph = side_graph(side, n)
        computed, error = energies(graph, V), energy_error(graph, V)
        for c, e, truth in zip(computed, error, exact_energies(side, V), strict=True):
            assert abs(mpf(float(c)) - truth) <= mpf(float(e))


def energies_by_structure(side, V):
    """x'x - sum_ij W_ij z_i z_j, z = D^-1/2 x, for labels by groups and for pairs by W = 11' + E."""
    n = len(V)
    e = mp.e
    X = [[mpf(float(x)) for x in V[:, k]] for k in range(V.shape[1])]
    if isinstance(side, tuple):
        change = dict.fromkeys(side[0], e - 1) | dict.fromkeys(side[1], 1 / e - 1)
        change |= {(i, i): e - 1 for pair in list(change) for i in pair}
        degrees = [mpf(n)] * n
        for (i, j), w in change.items():
            degrees[i] += w
            degrees[j] += w * (i != j)
        roots = [1 / mp.sqrt(d) for d in degrees]
        found = []
        for x in X:
            z = [a * r for a, r in zip(x, roots, strict=True)]
            pairs = mp.fsum(w * (1 + (i != j)) * z[i] * z[j] for (i, j), w in change.items())
            found.append(mp.fsum(a * a for a in x) - mp.fsum(z) ** 2 - pairs)
        return found
    groups = sorted(set(side.tolist()))
    size = {a: int(np.sum(side == a)) for a in groups}

    def weight(a, b):
        if -1 in (a, b):
            return mpf(1)
        return e if a == b else 1 / e

    degree = {a: mp.fsum(size[b] * weight(a, b) for b in groups) for a in groups}
    found = []
    for x in X:
        sums = {a: mp.fsum(x[i] for i in np.flatnonzero(side == a)) for a in groups}
        z = {a: sums[a] / mp.sqrt(degree[a]) for a in groups}
        linked = mp.fsum(weight(a, b) * z[a] * z[b] for a in groups for b in groups)
        found.append(mp.fsum(a * a for a in x) - linked)
    return found


@pytest.mark.parametrize("n", [30, 700])
def test_energies_of_long_columns_are_within_their_errors(n):
    """Entries of one sign, whose errors add up, and of all sizes; 60 digits by structure."""
    rng = np.random.default_rng(n)
    ends = rng.permutation(n)[: n - n % 2].reshape(-1, 2)
    pairs = [tuple(sorted(map(int, pair))) for pair in ends]
    cut = len(pairs) // 4
    labels = rng.integers(-1, 5, n)
    V = rng.normal(size=(n, 40)) * 10.0 ** rng.uniform(-8, 8, size=40)
    # 1.1, 2.1, .. added up are rounded again and again in the same way.
    V[:, :20] = 0.1 + np.arange(20)
    V[:, 20:25] *= 10.0 ** rng.uniform(-12, 0, size=(n, 1))
    for side in (labels, (pairs[:cut], pairs[cut:])):
        graph = side_graph(side, n)
        computed, error = energies(graph, V), energy_error(graph, V)
        for c, e, truth in zip(computed, error, energies_by_structure(side, V), strict=True):
            assert abs(mpf(float(c)) - truth) <= mpf(float(e))


def test_energies_by_structure_are_those_of_the_full_matrix():
    rng = np.random.default_rng(0)
    V = rng.normal(size=(7, 2))
    for side in sides(rng, 7)[:2]:
        for a, b in zip(energies_by_structure(side, V), exact_energies(side, V), strict=True):
            assert abs(a - b) <= mpf(10) ** -50


@given(seed=seeds, sigma=st.sampled_from(SIGMAS), skip=st.booleans())
def test_the_smallest_mean_lies_between_the_ends(seed, sigma, skip):
    rng = np.random.default_rng(seed)
    n, r = int(rng.integers(2, 8)), int(rng.integers(2, 9))
    V = rng.normal(size=(n, r)) * 10.0 ** rng.integers(-16, 17, r)
    side = sides(rng, n)[int(rng.integers(3))]
    problem = ScgOrdered(V, side, sigma, skip)
    best = smallest_mean(exact_energies(side, V)[int(skip) :], sigma)
    result = klopt.solve(problem)
    assert mpf(result.lower) <= best <= mpf(result.upper)
    for mu in arrays(rng, r):
        for bracket in (problem.bracket, problem.proof):
            found = bracket(Point({"mu": mu}))
            assert mpf(found.lower) <= best <= mpf(found.upper)


@given(seed=seeds, sigma=st.sampled_from(SIGMAS), size=st.sampled_from([1, 5, 40, 400]))
def test_means_of_given_costs_hold_at_every_scale(seed, sigma, size):
    rng = np.random.default_rng(seed)
    c = rng.normal(size=size) * 10.0 ** rng.integers(-16, 17, size if rng.random() < 0.5 else 1)
    c = c + 10.0 ** rng.integers(-16, 17)
    exact = [Fraction(float(x)) for x in c]
    program = PrefixBounds(c, sigma, np.zeros(size))
    best = smallest_mean([mpf(x.numerator) / x.denominator for x in exact], sigma)
    assert mpf(program.lower) <= best
    # A prefix as the floats have it.
    e = program.e[: int(rng.integers(1, size + 1))]
    mu = np.append(e / e.sum(), np.zeros(size - e.size))
    weights = [mpf(sigma) ** -i for i in range(e.size)]
    value = mp.fsum(w * mpf(float(x)) for w, x in zip(weights, c, strict=False)) / mp.fsum(weights)
    assert best <= mpf(program.upper(mu))
    largest = mpf(float(np.abs(c).max()))
    assert mpf(program.upper(mu)) - value <= largest * mpf(10) ** -11


def test_a_cheap_first_column_is_not_hidden_by_an_expensive_last_one():
    """The radius of a mean is that of its own terms."""
    program = PrefixBounds(np.array([1.0, 2.0, 1e16]), 1.0, np.array([0.0, 0.0, 1.0]))
    assert 1 - 1e-12 <= program.lower <= 1
    assert 1 <= program.upper(np.array([1.0, 0.0, 0.0])) <= 1 + 1e-12


# ---- spectral kernels


def exact_floats(x):
    return [mpf(float(a)) for a in x]


@given(seed=seeds)
def test_spectral_least_squares_lie_between_the_ends(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    A = rng.exponential(size=n) * 10.0 ** rng.integers(-16, 3, n)
    B = rng.exponential(size=n) * 10.0 ** rng.integers(-16, 17, n)
    A[rng.random(n) < 0.2] = 0.0
    Y = np.sign(rng.normal(size=(int(rng.integers(1, 9)), 1)))
    C, mu = (float(10.0 ** rng.uniform(-16, 16)) for _ in range(2))
    bounds = SpectralBounds(A, B, Y, C, mu)

    rest = max(mpf(Y.size) - mp.fsum(exact_floats(A)), mpf(0))
    best = mpf(C) * rest / 2
    for a, b in zip(exact_floats(A), exact_floats(B), strict=True):
        lam = max(mp.sqrt(a / (2 * mpf(mu) * b)) - 1 / mpf(C), mpf(0))
        best += a / (lam + 1 / mpf(C)) / 2 + mpf(mu) * b * lam
    assert mpf(bounds.lower) <= best
    closed = np.maximum(np.sqrt(A / (2 * mu * B)) - 1 / C, 0.0)
    for lam in (closed, *arrays(rng, n)):
        assert best <= mpf(bounds.upper(lam))
    assert bounds.upper(closed) - bounds.lower <= 1e-12 * (1 + bounds.lower)


def exact_best_alignment(r, A, norm):
    """The largest h over all pieces by their stationary points and ends, to 60 digits."""
    order = sorted(range(len(r)), key=lambda i: -r[i])
    r, A = [r[i] for i in order], [A[i] for i in order]
    best = mpf(0)
    for k in range(1, len(r) + 1):
        below = r[k] if k < len(r) else mpf(0)
        if not below < r[k - 1]:
            continue
        levels = [below]
        mean = mp.fsum(r[:k]) / k
        S = mp.fsum((x - mean) ** 2 for x in r[:k])
        X = mp.fsum(a * (x - mean) for a, x in zip(A, r[:k], strict=False))
        if X > 0:
            levels.append(mean - mp.fsum(A[:k]) * S / (k * X))
        for t in levels:
            if below <= t < r[k - 1]:
                lam = [x - t for x in r[:k]]
                aligned = mp.fsum(a * x for a, x in zip(A, lam, strict=False))
                best = max(best, aligned / mp.sqrt(mp.fsum(x * x for x in lam)))
    return best / norm


@given(seed=seeds)
def test_alignment_of_levels_lies_between_the_ends(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    A = rng.exponential(size=n) * 10.0 ** (rng.integers(-16, 3, n) * (rng.random() < 0.5))
    r = rng.exponential(size=n)
    kind = rng.integers(6)
    if kind == 0:
        r = 1 + 1e-15 * rng.integers(0, 9, n)
    if kind == 1:
        r = rng.integers(1, 4, n).astype(float)
    if kind == 2:
        r = r * 10.0 ** rng.integers(-16, 17, n)
    if kind == 3:
        r = r * 10.0 ** rng.integers(-300, 300)
    if kind == 4:
        A = A * 10.0 ** rng.integers(-280, 280)
    curve = CurveBounds(r, A, 7.0)
    best = exact_best_alignment(exact_floats(r), exact_floats(A), 7)
    assert best <= mpf(curve.upper)
    assert mpf(curve.upper) <= best * (1 + mpf(10) ** -11) + mpf(10) ** -200
    absurd = (-1.0, np.nan, np.inf, 5e-324)
    for level in (0.0, *(r * (1 - 1e-16)), *r, *(r.max() * rng.random(5)), *absurd):
        assert mpf(curve.lower(float(level))) <= best


def graph(rng):
    n = int(rng.integers(3, 7))
    W = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.6), 1) + np.eye(n, k=1)
    W += W.T
    L = np.diag(W.sum(axis=0)) - W
    labels = rng.integers(-1, 2, n)
    labels[:2] = 0, 1
    return L, labels


def exact_best_kernel(problem):
    """The optimum over all kernels for one column of targets, by its secular equation."""
    n = problem.labels.size
    known = np.flatnonzero(problem.labels >= 0)
    J = list(range(n)) if problem.basis == "padded" else known.tolist()
    L = mp.matrix(problem.laplacian.toarray().tolist()) + mpf(problem.ridge) * mp.eye(n)
    inverse = L**-1
    G = mp.matrix([[inverse[i, j] for j in J] for i in J])
    targets = {int(p): 2 * int(problem.labels[p]) - 1 for p in known}
    y = mp.matrix([mpf(targets.get(j, 0)) for j in J])
    C, mu = mpf(problem.C), mpf(problem.mu)

    def a_of(nu):
        return mp.lu_solve(mp.eye(len(J)) / C + nu * G, y)

    def excess(nu):
        a = a_of(nu)
        return (a.T * G * a)[0] - 2 * mu

    nu = mpf(0)
    if excess(nu) > 0:
        low, high = mpf(0), mpf(1)
        while excess(high) > 0:
            low, high = high, 4 * high
        for _ in range(160):
            nu = (low + high) / 2
            low, high = (nu, high) if excess(nu) > 0 else (low, nu)
    a = a_of(nu)
    return (a.T * y)[0] - (a.T * a)[0] / (2 * C)


@pytest.mark.parametrize("basis", ["labelled", "padded"])
@pytest.mark.parametrize("seed", range(12))
def test_least_squares_over_all_kernels_lie_between_the_ends(seed, basis):
    rng = np.random.default_rng(seed)
    L, labels = graph(rng)
    L = L * 10.0 ** rng.integers(-6, 7)
    C, mu = (float(10.0 ** rng.uniform(-4, 4)) for _ in range(2))
    ridge = float(10.0 ** rng.uniform(-4, 0)) * float(np.abs(L).max())
    problem = SpectralRls(L, labels, C, mu, basis, ridge)
    best = exact_best_kernel(problem)
    tiny = mpf(10) ** -35 * (1 + best)
    result = klopt.solve(problem).require()
    assert mpf(result.lower) <= best + tiny
    assert best <= mpf(result.upper) + tiny
    n = labels.size
    p = problem.least_squares.J.size
    for factor in (result.point.factor, *(x.reshape(n, 2) for x in arrays(rng, 2 * n))):
        for A in (result.point.A, *(x.reshape(p, 1) for x in arrays(rng, p))):
            forged = Point({"factor": factor}, {"A": A, "fit": A})
            with np.errstate(all="ignore"):
                brackets = problem.bracket(forged), problem.proof(forged)
            for found in brackets:
                assert mpf(found.lower) <= best + tiny
                assert best <= mpf(found.upper) + tiny


def exact_value(problem, F):
    """The value of K = FF', to 60 digits."""
    least_squares = problem.least_squares
    n = problem.labels.size
    J = least_squares.J.tolist()
    F = mp.matrix(F.tolist())
    K = F * F.T
    H = mp.matrix([[K[i, j] for j in J] for i in J]) + mp.eye(len(J)) / mpf(problem.C)
    Y = mp.matrix(least_squares.Y.tolist())
    L = mp.matrix(problem.laplacian.toarray().tolist()) + mpf(problem.ridge) * mp.eye(n)
    inner = Y.T * H**-1 * Y
    rough = K * L
    trace = mp.fsum(inner[i, i] for i in range(inner.rows)) / 2
    return trace + mpf(problem.mu) * mp.fsum(rough[i, i] for i in range(n))


@pytest.mark.parametrize("basis", ["labelled", "padded"])
@pytest.mark.parametrize("seed", range(8))
def test_values_of_kernels_for_several_classes_are_bounded(seed, basis):
    rng = np.random.default_rng(seed)
    L, labels = graph(rng)
    labels = np.arange(labels.size) % 3
    problem = SpectralRls(L, labels, 2.0, float(10.0 ** rng.uniform(-3, 1)), basis, 0.1)
    result = klopt.solve(problem).require()
    best = exact_value(problem, result.point.factor)
    assert mpf(result.lower) <= best <= mpf(result.upper)
    for _ in range(5):
        F = rng.normal(size=(labels.size, 2)) * 10.0 ** rng.integers(-3, 3)
        found = problem.bracket(Point({"factor": F}))
        assert mpf(found.lower) <= best
        assert exact_value(problem, found.point.factor) <= mpf(found.upper)


def test_the_floor_of_a_laplacian_that_is_no_more_than_its_ridge_holds():
    problem = SpectralRls(np.zeros((2, 2)), [0, 1], 1.0, 1.0, "labelled", 0.5)
    assert isinstance(problem.least_squares, FreeBounds)
    assert 0 < problem.least_squares.floor <= 0.5


def test_without_a_proven_floor_there_is_no_lower_end():
    """The ridge is smaller than what one Cholesky factorisation can tell from 0."""
    n = 60
    L = np.full((n, n), -1.0) + n * np.eye(n)
    problem = SpectralRls(L, np.arange(n) % 2, 1.0, 1.0, "labelled", 1e-13)
    found = problem.bracket(Point({"factor": np.zeros((n, 1))}))
    assert found.lower == -np.inf
    assert "larger ridge" in found.note


@pytest.mark.parametrize("cls", [SpectralAlignment, SpectralRls, SimilaritySpectra])
def test_spectra_say_what_their_data_are(cls):
    assert "as computed" in cls.statement.data
    problem = cls.sample(np.random.default_rng(0), 4)
    assert f"data: {cls.statement.data}" in klopt.solve(problem).explain()


# ---- the constant of all rounding in an alignment


@pytest.mark.parametrize("target", ["indicator", "signed"])
@pytest.mark.parametrize(
    ("rows", "m", "sigma", "sign"),
    [(3, 70, 1.0, 1), (3, 70, 1.01, -1), (12, 20, 1.01, 1), (30, 8, 1.0, -1)],
)
def test_sums_of_an_alignment_are_within_kappa_of_their_terms(target, rows, m, sigma, sign):
    """Lemma A3: prices, norm, trace and products with the target, with F formed and without."""
    rng = np.random.default_rng(rows * m)
    V = rng.normal(size=(rows, m)) * 10.0 ** rng.uniform(-3, 3, (rows, 1))
    y = rng.integers(0, 3, rows)
    problem = OrderedAlignment(V, y, sigma, target=target).reduced
    assert problem.columns.is_small == (m < 70)
    assert problem.kept.size == m
    g = np.abs(rng.normal(size=m))
    g[::3] *= sign
    sums = _Sums.of(problem, g)

    unit = [Fraction(float(x)) for x in g / np.abs(g).max()]
    e = [1 / Fraction(sigma) ** i for i in range(m)]
    v = [[Fraction(float(x)) for x in column] for column in V.T]
    norms = [e[i] * sum(x * x for x in v[i]) for i in range(m)]
    tau = sum(abs(x) * n for x, n in zip(unit, norms, strict=True))
    other = -1 if target == "signed" else 0
    T = [[1 if a == b else other for b in y] for a in y]
    length = mp.sqrt(sum(t * t for row in T for t in row))

    def rational(x):
        return mpf(x.numerator) / x.denominator

    def image(i):
        return [sum(t * x for t, x in zip(row, v[i], strict=True)) for row in T]

    b = [e[i] * sum(x * z for x, z in zip(v[i], image(i), strict=True)) for i in range(m)]
    kernel = [
        [sum(unit[j] * e[j] * v[j][p] * v[j][q] for j in range(m)) for q in range(rows)]
        for p in range(rows)
    ]
    products = [
        e[i] * sum(v[i][p] * kernel[p][q] * v[i][q] for p in range(rows) for q in range(rows))
        for i in range(m)
    ]
    kappa = mpf(problem.kappa)
    price = trace = B = Fraction(0)
    for k in range(m):
        price, trace, B = price + products[k], trace + norms[k], B + b[k]
        assert abs(mpf(float(sums.prices[k])) - rational(price)) <= kappa * rational(tau * trace)
        assert abs(mpf(float(problem.B[k])) - rational(B) / length) <= kappa * rational(trace)
        assert abs(mpf(float(problem.traces[k])) - rational(trace)) <= kappa * rational(trace)
    square = sum(x * z for x, z in zip(unit, products, strict=True))
    assert abs(mpf(sums.square) - rational(square)) <= kappa * rational(tau * tau)
    aligned = rational(sum(x * z for x, z in zip(unit, b, strict=True))) / length
    assert abs(mpf(sums.aligned) - aligned) <= kappa * rational(tau)
    signed_trace = sum(x * z for x, z in zip(unit, norms, strict=True))
    assert abs(mpf(sums.trace) - rational(signed_trace)) <= kappa * rational(tau)
    assert rational(tau) <= mpf(sums.tau)


# ---- where rounding alone decides


@pytest.mark.parametrize("target", ["indicator", "signed"])
@pytest.mark.parametrize("ordered", [True, False])
def test_one_column_has_one_alignment(target, ordered):
    """Both ends enclose the same number, which the floats mostly miss."""
    rng = np.random.default_rng(0)
    for classes in (1, 2, 3, 4) * 10:
        n = int(rng.integers(1, 40))
        problem = OrderedAlignment(
            rng.normal(size=(n, 1)) + 2, np.arange(n) % classes, ordered=ordered, target=target
        )
        truth = signed_square_of_optimum(problem)
        found = problem.bracket(Point({"alpha": [1.0]}))
        assert signed_square(found.lower) <= truth <= signed_square(found.upper)
        assert found.upper - found.lower <= 1e-11


def test_a_kernel_that_is_not_semidefinite_proves_nothing():
    """v_2 v_2' - v_1 v_1' / 4 is better aligned than any kernel of the cone."""
    V = np.array([[1.0, 1.0], [1.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    problem = OrderedAlignment(V, [0, 0, 1, 1], ordered=False, target="signed")
    best = signed_square_of_optimum(problem)
    found = problem.proof(Point({"alpha": [-0.25, 1.0]}))
    assert signed_square(found.lower) <= best <= signed_square(found.upper)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("sigma", [1.0, 1.0 + 2.0**-30])
def test_a_long_mean_of_large_terms_is_enclosed(seed, sigma):
    """The mean is far smaller than its terms; one more, huge term must not hide them."""
    rng = np.random.default_rng(seed)
    c = np.linspace(1.0, -1.001, 300) + 0.1 * rng.normal(size=300)
    for costs in (c, np.append(c, 1e16)):
        program = PrefixBounds(costs, sigma, np.zeros(costs.size))
        best = smallest_mean(exact_floats(costs), sigma)
        length = int(np.argmin(program.means)) + 1
        mu = np.append(program.e[:length], np.zeros(costs.size - length))
        assert mpf(program.lower) <= best <= mpf(program.upper(mu))
        assert program.upper(mu) - program.lower <= 1e-11


@pytest.mark.parametrize("seed", range(10))
def test_the_roughness_of_a_nearly_constant_factor_is_enclosed(seed):
    """F'LF cancels to 1e-8 of its terms."""
    rng = np.random.default_rng(seed)
    L, labels = graph(rng)
    problem = SpectralRls(L, labels, 1e-9, 1.0, "labelled", 1e-9)
    F = 1 + 1e-9 * rng.normal(size=(labels.size, 2))
    found = problem.bracket(Point({"factor": F}))
    truth = exact_value(problem, found.point.factor)
    assert truth <= mpf(found.upper) <= truth + mpf(10) ** -12


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("share", [0.5, 0.9, 1.1, 1.5])
def test_a_solution_that_is_far_off_does_not_loosen_the_dual_constraint(seed, share):
    """Lemma S3 holds for any X: what it misses is charged."""
    rng = np.random.default_rng(seed)
    L, labels = graph(rng)
    problem = SpectralRls(L, labels, 10.0, 0.01, "labelled", 0.1)
    best = exact_best_kernel(problem)
    A = klopt.solve(problem).require().point.A
    least_squares = problem.least_squares
    X = least_squares.R @ A
    assert mpf(least_squares.lower(A, share * X)) <= best
    noisy = X * (1 + 0.1 * rng.normal(size=X.shape))
    assert mpf(least_squares.lower(A, noisy)) <= best
    assert mpf(least_squares.lower(A, X)) >= best * (1 - mpf(10) ** -8)
