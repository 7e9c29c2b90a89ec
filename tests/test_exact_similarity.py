"""Brackets of kernels from similarities hold in exact arithmetic.

Truth: closed forms and primal values as fractions, eigenvalues and roots with 60 digits (mpmath).
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, strategies as st
from strategies import at_most

import klopt
from klopt.model.problem import Point
from klopt.problems import SimilarityKernel, SimilarityKernels, SimilaritySpectra
from klopt.problems._similarity.proof import (
    GivenSpectra,
    SimilarityProgram,
    prove_kernels,
    prove_spectra,
)

LOSSES = ["squared", "frobenius", "l1"]
SPECTRAL_LOSSES = ["squared", "euclidean", "l1"]
FREE = [SimilarityKernel, SimilarityKernels]
seeds = st.integers(0, 2**32 - 1)
Y = np.array([1.0, -1.0, 1.0, -1.0])


def fractions(array: Any) -> Any:
    """An array of floats as an array of fractions."""
    return np.vectorize(Fraction, otypes=[object])(np.asarray(array, float))


def real(x: Fraction) -> mp.mpf:
    return mp.mpf(x.numerator) / x.denominator


@pytest.fixture(autouse=True)
def digits() -> Any:
    with mp.workdps(60):
        yield


# --- primal and dual values, from the formulas of the problem


def loss_value(loss: str, X: Any) -> mp.mpf:
    if loss == "l1":
        return real(sum(abs(x) for x in X.flat))
    square = real(sum(x * x for x in X.flat))
    return square if loss == "squared" else mp.sqrt(square)


def groups_of(problem: Any) -> list[list[np.ndarray]]:
    matrices = [S.matrix for S in problem.S]
    return [matrices] if isinstance(problem, SimilarityKernel) else [[S] for S in matrices]


def hinge(problem: Any, f: Any, squared_norm: Fraction) -> mp.mpf:
    y = fractions(problem.y)
    C = fractions(np.broadcast_to(problem.C, y.size))
    short = sum(
        (Ci * max(Fraction(0), 1 - yi * fi) for Ci, yi, fi in zip(C, y, f, strict=True)),
        Fraction(0),
    )
    return real(squared_norm / 2 + short)


def primal_value(problem: Any, witness: Point) -> mp.mpf:
    """The value of the classifier and the losses of the kernels of a witness, scaled to the trace."""
    H = fractions(witness.factors)
    w = fractions(witness.classifier)
    f = fractions(np.full(problem.y.size, float(witness.offset)))
    losses = mp.mpf(0)
    norms = []
    first = 0
    for rank, group in zip(witness.ranks.astype(int), groups_of(problem), strict=True):
        part = H[:, first : first + rank]
        v = w[first : first + rank]
        first += rank
        square = sum((x * x for x in part.flat), Fraction(0))
        s = Fraction(1) if problem.trace is None else Fraction(problem.trace) / square
        f = f + part @ v
        norms.append(sum((x * x for x in v), Fraction(0)) / s)
        for S in group:
            losses += loss_value(problem.loss, s * (part @ part.T) - fractions(S))
    return hinge(problem, f, max(norms)) + real(Fraction(problem.rho)) * losses


def dual_value(problem: Any, a: np.ndarray, g: np.ndarray, Z: np.ndarray) -> mp.mpf:
    """The bound of multipliers, shares and gradients for kernels of the given trace."""
    a, g, Z = fractions(a), fractions(g), fractions(Z)
    assert sum(a) == 0
    assert sum(g) <= 1
    rho, trace = Fraction(problem.rho), Fraction(problem.trace)
    total = real(sum(a * fractions(problem.y)))
    matrices = iter(Z)
    for group, share in zip(groups_of(problem), g, strict=True):
        M = -np.multiply.outer(a, a) / (2 * share)
        for S in group:
            Zi = next(matrices)
            M = M + rho * Zi
            total -= real(rho * (Zi * fractions(S)).sum())
            if problem.loss == "squared":
                total -= real(rho * (Zi * Zi).sum() / 4)
        eigenvalues = mp.eigsy(mp.matrix([[real(x) for x in row] for row in M]), eigvals_only=True)
        total += real(trace) * min(eigenvalues)
    return total


def spectra_primal(problem: Any, witness: Point) -> mp.mpf:
    mu, p = fractions(witness.spectra), fractions(witness.classifier)
    V, lam = fractions(problem.eigenvectors), fractions(problem.eigenvalues)
    f = fractions(np.full(problem.y.size, float(witness.offset)))
    norms, losses = [], mp.mpf(0)
    for mui, pi, Vi, lami in zip(mu, p, V, lam, strict=True):
        s = Fraction(problem.trace) / sum(mui)
        f = f + Vi @ pi
        norms.append(sum(x * x / (s * m) for x, m in zip(pi, mui, strict=True) if m) + Fraction(0))
        gaps = [s * m - x for m, x in zip(mui, lami, strict=True)]
        square = real(sum(gap**2 for gap in gaps))
        if problem.loss == "l1":
            losses += real(sum(abs(gap) for gap in gaps))
        else:
            losses += square if problem.loss == "squared" else mp.sqrt(square)
    return hinge(problem, f, max(norms)) + real(Fraction(problem.rho)) * losses


def spectra_dual(problem: Any, a: np.ndarray, g: np.ndarray, z: np.ndarray) -> mp.mpf:
    a, g, z = fractions(a), fractions(g), fractions(z)
    V, lam = fractions(problem.eigenvectors), fractions(problem.eigenvalues)
    rho, trace = Fraction(problem.rho), Fraction(problem.trace)
    total = sum(a * fractions(problem.y))
    for share, zi, Vi, lami in zip(g, z, V, lam, strict=True):
        u = Vi.T @ a
        slope = 2 * zi if problem.loss == "squared" else zi
        prices = [rho * x - v * v / (2 * share) for x, v in zip(slope, u, strict=True)]
        total += trace * min(prices) - rho * sum(slope * lami)
        if problem.loss == "squared":
            total -= rho * sum(zi * zi)
        elif problem.loss == "l1":
            assert max(abs(zi)) <= 1
        else:
            assert sum(zi * zi) <= 1
    return real(total)


# --- data


def instance(seed: int, n: int, m: int, tempting: bool) -> tuple[list[np.ndarray], np.ndarray]:
    """Noisy kernels; a tempting one has near-coincident points or scales far apart."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    S = []
    for _ in range(m):
        X = rng.normal(size=(n, 2))
        if tempting:
            X[1] = X[0] + 1e-9
        E = rng.normal(size=(n, n))
        K = np.exp(-np.square(X[:, None] - X).sum(axis=2)) + 0.2 * (E + E.T)
        if tempting:
            d = 10.0 ** rng.integers(-4, 5, size=n)
            K = K * d[:, None] * d
            K = (K + K.T) / 2
        S.append(K)
    return S, y


def problem_of(
    seed: int, kind: Any, loss: str, tempting: bool, trace: float | None = 5.0
) -> SimilarityKernel | SimilarityKernels:
    S, y = instance(seed, 5, 2, tempting)
    rng = np.random.default_rng(seed)
    C: Any = float(rng.choice([0.1, 1.0, 300.0]))
    # One penalty for all points, or one for each.
    if seed % 2:
        C = C * rng.uniform(0.1, 1.0, size=5)
    return kind(S, y, C, 0.3, trace, loss)


def absurd_points(seed: int, n: int, m: int, single: bool) -> list[Point]:
    rng = np.random.default_rng(seed)
    found = []
    for size in (0.0, 1e-12, 1.0, 1e9):
        alpha = size * rng.normal(size=n)
        kernels = size * rng.normal(size=(m, n, n))
        shares = np.abs(rng.normal(size=m))
        primal = {"alpha": alpha, "gamma": shares, "kernels": kernels, "kernel": kernels[0]}
        found.append(Point({"alpha": alpha, "gamma": shares}))
        found.append(Point(primal, {"gradients": kernels, "shares": shares}))
        if single:
            found.append(Point({"alpha": alpha}))
    return found


# --- each end at its own witness


@given(seeds, st.sampled_from(FREE), st.sampled_from(LOSSES), st.booleans(), st.booleans())
@at_most(40)
def test_the_upper_end_is_above_the_value_at_the_witness_and_near_it(
    seed: int, kind: Any, loss: str, tempting: bool, free: bool
) -> None:
    trace = None if free and kind is SimilarityKernel else 5.0
    problem = problem_of(seed, kind, loss, tempting, trace)
    alpha = np.random.default_rng(seed + 1).uniform(0, problem.C, size=5)
    witness = problem.witness(Point({"alpha": alpha, "gamma": [0.3, 0.7]}))
    exact = primal_value(problem, witness)
    bracket = problem.proof(witness)
    assert exact <= bracket.upper <= exact * (1 + mp.mpf(10) ** -9) + 1e-9


@given(seeds, st.sampled_from(FREE), st.sampled_from(LOSSES), st.booleans())
@at_most(40)
def test_the_lower_end_is_below_the_value_at_the_witness_and_near_it(
    seed: int, kind: Any, loss: str, tempting: bool
) -> None:
    problem = problem_of(seed, kind, loss, tempting)
    rng = np.random.default_rng(seed + 1)
    Z = rng.normal(size=(2, 5, 5))
    Z = Z + Z.transpose(0, 2, 1)
    if loss != "squared":
        Z /= 1.000001 * np.array([np.linalg.norm(Zi) for Zi in Z])[:, None, None]
    witness = problem.witness(Point({"alpha": rng.uniform(0, problem.C, size=5)}))
    kept = {name: witness.dual[name] for name in ("multipliers", "shares")}
    bracket = problem.proof(Point(witness.primal, {**kept, "gradients": Z}))
    exact = dual_value(problem, kept["multipliers"], kept["shares"][0], Z)
    size = 1 + abs(exact) + max(np.abs(S.matrix).sum() for S in problem.S) + np.max(problem.C) ** 2
    assert exact - 1e-10 * size <= bracket.lower <= exact


@given(seeds, st.booleans(), st.sampled_from(SPECTRAL_LOSSES))
@at_most(40)
def test_both_ends_of_given_spectra_enclose_the_values_at_the_witness(
    seed: int, tempting: bool, loss: Any
) -> None:
    S, y = instance(seed, 5, 2, tempting)
    rng = np.random.default_rng(seed)
    C = float(rng.choice([0.1, 1.0, 300.0])) * rng.uniform(0.1, 1.0, size=5)
    problem = SimilaritySpectra(S, y, C, 0.3, 5.0, loss)
    witness = problem.witness(Point({"alpha": rng.uniform(0, C), "gamma": [0.3, 0.7]}))
    bracket = problem.proof(witness)
    z = witness.dual["differences"]
    lower = max(spectra_dual(problem, witness.multipliers, shares, z) for shares in witness.shares)
    upper = spectra_primal(problem, witness)
    size = 1 + abs(lower) + float(np.square(problem.eigenvalues).sum()) + C.max() ** 2
    assert lower - 1e-10 * size <= bracket.lower <= lower
    assert upper <= bracket.upper <= upper * (1 + mp.mpf(10) ** -9) + 1e-9


# --- sums that cancel


@given(seeds)
def test_a_factor_of_another_trace_is_scaled_exactly(seed: int) -> None:
    rng = np.random.default_rng(seed)
    S, y = instance(seed, 5, 1, tempting=False)
    problem = SimilarityKernel(S, y, 1.0, 0.0, 5.0, "l1")
    witness = problem.witness(Point({"alpha": rng.uniform(0, 1, size=5)}))
    primal = {**witness.primal, "factors": witness.factors * rng.uniform(1.5, 3)}
    exact = primal_value(problem, Point(primal))
    upper = problem.proof(Point(primal, witness.dual)).upper
    assert exact <= upper <= exact * (1 + mp.mpf(10) ** -9)


@given(seeds)
def test_margins_that_are_differences_of_large_numbers_are_charged_for(seed: int) -> None:
    """The trace is so large that the norm of the classifier is nothing."""
    rng = np.random.default_rng(seed)
    H = 1 + 1e-8 * rng.normal(size=(4, 2))
    w = 1e8 * np.array([1.0, -1.0]) * rng.uniform(1, 1.00000001, size=2)
    program = SimilarityProgram(((np.eye(4),),), Y, 1.0, 0.0, 1e40, "squared")
    primal = {"factors": H, "ranks": [2], "classifier": w, "offset": 0.0}
    upper = prove_kernels(program, Point(primal)).upper
    margins = fractions(Y) * (fractions(H) @ fractions(w))
    exact = sum((max(Fraction(0), 1 - m) for m in margins), Fraction(0))
    assert exact <= Fraction(upper) <= exact + Fraction(1, 10**5)


@given(seeds, st.sampled_from([0.0, 0.3]))
def test_prices_that_cancel_are_charged_for(seed: int, rho: float) -> None:
    """Entries of V'a that nearly vanish, and gradients that balance them, times a large trace."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(0.5, 1)
    a = t * np.array([1.0, -1.0, 0.0, 0.0])
    trace = 1e10 if rho else 1e18
    vectors = rng.uniform(0.5, 1, size=(4, 1)) + (1.0 if rho else 1e-9) * rng.normal(size=(4, 4))
    g = np.array([rng.uniform(0.5, 1)])
    z = np.square(vectors @ a) / (4 * rho * g) if rho else np.zeros(4)
    program = SimilarityProgram(((np.eye(4),),), Y, 1.0, rho, trace, "squared")
    dual = {"multipliers": a, "shares": [g], "differences": [z]}
    primal = {"spectra": np.ones((1, 4))}
    given_spectra = GivenSpectra(np.ones((1, 4)), vectors)
    lower = prove_spectra(program, given_spectra, Point(primal, dual)).lower
    u = fractions(vectors) @ fractions(a)
    exact_z, share, r = fractions(z), Fraction(g[0]), Fraction(rho)
    prices = [2 * r * x - v * v / (2 * share) for x, v in zip(exact_z, u, strict=True)]
    exact = sum(fractions(Y) * fractions(a)) + Fraction(trace) * min(prices)
    exact -= r * sum(2 * exact_z + exact_z * exact_z)
    assert exact - Fraction(1, 10**3) * (1 + abs(exact)) <= Fraction(lower) <= exact


# --- the optimum between exact bounds, from any point


@pytest.mark.parametrize("kind", FREE)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(3))
def test_any_point_brackets_an_optimum_that_is_known_to_many_digits(
    kind: Any, loss: str, seed: int
) -> None:
    S, y = instance(seed, 5, 2, tempting=False)
    problem = kind(S, y, 1.0, 0.3, 5.0, loss)
    best = klopt.solve(problem, tol=1e-6).require()
    witness = problem.witness(best.point)
    upper = primal_value(problem, witness)
    Z = witness.dual.get("gradients")
    if Z is None:
        kernels = best.point.primal.get("kernels", best.kernel[None].repeat(2, axis=0))
        Z = np.array([2 * (K - T) for K, T in zip(kernels, S, strict=True)])
    lower = dual_value(problem, witness.multipliers, witness.shares[0], Z)
    assert 0 <= upper - lower <= 1e-5 * (1 + upper)
    for point in [best.point, *absurd_points(seed, 5, 2, kind is SimilarityKernel)]:
        bracket = problem.bracket(point)
        assert bracket.lower <= upper
        assert bracket.upper >= lower
        assert np.isfinite([bracket.lower, bracket.upper]).all()


# --- closed forms


def of_identity(
    kind: Any, scale: float, C: float, rho: float, trace: float | None, m: int
) -> tuple[Any, Fraction | None]:
    """S_i = scale I and balanced labels: K keeps their symmetry, so that K = p yy'/4 + q (I - yy'/4).

    The optimum where it is that of alpha = C, else None.
    """
    n = len(Y)
    S = [scale * np.eye(n)] * m
    problem = kind(S, Y, C, rho, trace)
    s, c, r = Fraction(scale), Fraction(C), Fraction(rho)
    # One kernel has m losses, several have one each and a'K a / (2/m) m times.
    losses = m * r
    pull = 1 if kind is SimilarityKernel else m * m
    if trace is None:
        p = s + pull * n * c * c / (4 * losses)
        q = s
    else:
        tau = Fraction(trace)
        p = (n - 1) * pull * c * c / (4 * losses) + tau / n
        q = (tau - p) / (n - 1)
    if q < 0 or pull * p * c > 1:
        return problem, None
    value = n * c - pull * p * n * c * c / 2 + losses * ((p - s) ** 2 + (n - 1) * (q - s) ** 2)
    return problem, value


@pytest.mark.parametrize("power", [-16, -7, 0, 3, 16])
@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize(
    ("kind", "free"),
    [(SimilarityKernel, False), (SimilarityKernel, True), (SimilarityKernels, False)],
)
def test_the_closed_form_lies_between_the_ends_at_every_scale(
    power: int, m: int, kind: Any, free: bool
) -> None:
    """Data c S, tau c, C / c, rho / c^3 have 1/c times the value, up to rounding."""
    c = 10.0**power
    trace = None if free else 4.1 * c
    problem, exact = of_identity(kind, 0.7 * c, 0.05 / c, 0.3 / c**3, trace, m)
    assert exact is not None
    points = [Point({"alpha": np.full(4, 0.05 / c)}), *absurd_points(m, 4, m, single=True)]
    for point in points:
        bracket = problem.bracket(point)
        assert Fraction(bracket.lower) <= exact <= Fraction(bracket.upper)
    best = problem.bracket(points[0])
    assert best.upper - best.lower <= 1e-11 * float(exact)


@given(
    st.sampled_from(FREE),
    st.floats(1e-3, 1e3),
    st.floats(1e-4, 1.0),
    st.floats(1e-3, 1e3),
    st.floats(1e-2, 1e2),
    st.booleans(),
    seeds,
)
@at_most(60)
def test_no_forged_witness_gives_a_false_end(
    kind: Any, scale: float, C: float, rho: float, trace: float, free: bool, seed: int
) -> None:
    own_trace = None if free and kind is SimilarityKernel else trace
    problem, exact = of_identity(kind, scale, C, rho, own_trace, 2)
    if exact is None:
        return
    rng = np.random.default_rng(seed)
    good = problem.witness(Point({"alpha": np.full(4, C)}))

    def forged(array: np.ndarray) -> np.ndarray:
        choice = rng.integers(6)
        if choice == 0:
            return array * 10.0 ** rng.uniform(-16, 16)
        if choice == 1:
            return array + 10.0 ** rng.uniform(-16, 16) * rng.normal(size=array.shape)
        if choice == 2:
            return np.full_like(array, rng.choice([0.0, np.nan, np.inf, 1e300, -1e-300]))
        if choice == 3:
            return array * (1 + 1e-15 * rng.normal(size=array.shape))
        return array

    for _ in range(10):
        primal = {
            name: value if name == "ranks" else forged(value) for name, value in good.primal.items()
        }
        dual = {name: forged(value) for name, value in good.dual.items()}
        if rng.random() < 0.3:
            dual["gradients"] = forged(rng.normal(size=(2, 4, 4)))
        bracket = problem.proof(Point(primal, dual))
        assert bracket.lower == -np.inf or Fraction(bracket.lower) <= exact
        assert bracket.upper == np.inf or Fraction(bracket.upper) >= exact


def false_ends(
    problem: Any, good: Point, more: dict[str, np.ndarray], exact: Fraction
) -> list[Any]:
    """The false ends that two forged arrays of a witness give; `more` are arrays that it lacks."""
    rng = np.random.default_rng(0)
    forgeries = [
        (name, forged)
        for name, array in {**good.primal, **good.dual, **more}.items()
        for forged in (
            np.full_like(array, np.nan),
            np.full_like(array, np.inf),
            np.zeros_like(array),
            1.5 * array,
            -array,
            array + 1e-3 * rng.normal(size=array.shape),
        )
    ]
    false = []
    for (one, first), (other, second) in combinations(forgeries, 2):
        changed = {**good.primal, **good.dual, one: first, other: second}
        primal = {name: changed[name] for name in good.primal}
        dual = {name: array for name, array in changed.items() if name not in primal}
        bracket = problem.proof(Point(primal, dual))
        if bracket.lower > exact or bracket.upper < exact:
            false.append((one, other, bracket.lower, bracket.upper))
    return false


@pytest.mark.parametrize(
    ("kind", "trace"), [(SimilarityKernel, None), (SimilarityKernel, 4.1), (SimilarityKernels, 4.1)]
)
def test_no_two_forged_arrays_give_a_false_end(kind: Any, trace: float | None) -> None:
    problem, exact = of_identity(kind, 0.7, 0.05, 0.3, trace, 2)
    assert exact is not None
    good = problem.witness(Point({"alpha": np.full(4, 0.05)}))
    gradients = 0.1 * np.array([np.eye(4), -np.eye(4)])
    assert not false_ends(problem, good, {"gradients": gradients}, exact)


@pytest.mark.parametrize("loss", SPECTRAL_LOSSES)
def test_no_two_forged_arrays_give_a_false_end_of_spectra(loss: Any) -> None:
    problem = SimilaritySpectra([0.3 * np.eye(4)] * 3, Y, 0.1, 0.3, 0.7, loss)
    good = problem.witness(Point({"alpha": np.full(4, 0.1)}))
    assert not false_ends(problem, good, {}, spectra_of_identity(0.1, 0.3, loss))


def spectra_of_identity(C: float, rho: float, loss: str) -> Fraction:
    """The optimum of three S_i = 0.3 I with trace 0.7: equal eigenvalues are best."""
    tau, s, r = Fraction(0.7), Fraction(0.3), Fraction(rho)
    t = min(Fraction(C), 4 / (9 * tau))
    gap = abs(tau / 4 - s)
    distance = {"squared": 4 * gap**2, "euclidean": 2 * gap, "l1": 4 * gap}[loss]
    return 4 * t - 9 * tau * t * t / 2 + 3 * r * distance


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [1e-8, 0.1, 0.3, 1e4])
@pytest.mark.parametrize("kind", FREE)
def test_without_losses_the_optimum_is_that_of_a_ridge(loss: str, C: float, kind: Any) -> None:
    """max over a of y'a - tau |a|^2 / 2 for one kernel; m^2 tau in place of tau for m of them."""
    S, _ = instance(0, 4, 2, tempting=True)
    problem = kind(S, Y, C, 0.0, 0.7, loss)
    tau = Fraction(0.7) * (1 if kind is SimilarityKernel else 4)
    t = min(Fraction(C), 1 / tau)
    exact = 4 * t - tau * 4 * t * t / 2
    for alpha in (np.full(4, float(t)), np.zeros(4), np.array([1.0, 0.0, 2.0, -5.0])):
        kernel = 0.7 * np.outer(Y, Y) / 4
        primal = {"alpha": alpha, "kernel": kernel, "kernels": np.array([kernel, kernel])}
        bracket = problem.bracket(Point(primal))
        assert Fraction(bracket.lower) <= exact <= Fraction(bracket.upper)
    best = problem.bracket(Point({**primal, "alpha": np.full(4, float(t))}))
    assert best.upper - best.lower <= 1e-10 * (1 + float(exact))


@pytest.mark.parametrize("rho", [0.0, 0.3, 1e6])
@pytest.mark.parametrize("C", [1e-8, 0.1, 1e4])
@pytest.mark.parametrize("loss", SPECTRAL_LOSSES)
def test_spectra_of_the_identity_in_closed_form(rho: float, C: float, loss: Any) -> None:
    """The eigenvectors are the unit vectors: equal eigenvalues are best."""
    problem = SimilaritySpectra([0.3 * np.eye(4)] * 3, Y, C, rho, 0.7, loss)
    np.testing.assert_array_equal(np.abs(problem.eigenvectors), [np.eye(4)] * 3)
    exact = spectra_of_identity(C, rho, loss)
    t = min(Fraction(C), 4 / (9 * Fraction(0.7)))
    flat = np.array([np.eye(4) * 0.175] * 3)
    for alpha in (np.full(4, float(t)), np.zeros(4), np.array([1.0, 0.0, 2.0, -5.0])):
        bracket = problem.bracket(Point({"alpha": alpha, "kernels": flat}))
        assert Fraction(bracket.lower) <= exact <= Fraction(bracket.upper)
    best = problem.bracket(Point({"alpha": np.full(4, float(t)), "kernels": flat}))
    assert best.upper - best.lower <= 1e-11 * (1 + float(exact))


# --- exactly feasible multipliers


@given(seeds, st.integers(2, 12), st.floats(1e-12, 1e12))
def test_multipliers_are_moved_into_the_box_and_onto_the_plane_exactly(
    seed: int, n: int, C: float
) -> None:
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) < rng.integers(1, n), 1.0, -1.0)
    data = SimilarityKernel(np.eye(n), y, C, 1.0, 1e-6).single.data
    given_alpha = rng.uniform(-0.2, 1.2, size=n) * C
    near = data.multipliers(given_alpha)
    a = data.exact_multipliers(near)
    assert sum(fractions(a)) == 0
    assert all(0 <= x <= Fraction(C) for x in fractions(y) * fractions(a))
    np.testing.assert_allclose(a, near, atol=1e-13 * n * C)


# --- what must be refused


def test_gradients_outside_of_the_domain_prove_nothing() -> None:
    for loss, Z in (("l1", np.eye(4)), ("frobenius", np.eye(4) / 2)):
        problem = SimilarityKernel(np.eye(4), Y, 0.1, 0.3, 4.0, loss)
        witness = problem.witness(Point({"alpha": np.full(4, 0.1)}))
        dual = {name: witness.dual[name] for name in ("multipliers", "shares")}
        inside = problem.proof(Point(witness.primal, {**dual, "gradients": Z[None] * 0.999}))
        outside = problem.proof(Point(witness.primal, {**dual, "gradients": Z[None] * 1.001}))
        skew = problem.proof(Point(witness.primal, {**dual, "gradients": np.tril(Z[None] - 0.1)}))
        assert np.isfinite(inside.lower)
        assert outside.lower == skew.lower == -np.inf


def test_multipliers_off_the_plane_and_shares_above_one_prove_nothing() -> None:
    problem = SimilarityKernels([np.eye(4)] * 2, Y, 0.1, 0.3, 4.0)
    good = problem.witness(Point({"alpha": np.full(4, 0.1)}))
    wrong = [
        ("multipliers", good.multipliers + np.array([-1e-16, 0, 0, 0])),
        ("multipliers", np.nextafter(0.1, 1) * Y),
        ("multipliers", -good.multipliers),
        ("shares", np.array([[0.5, np.nextafter(0.5, 1)]])),
        ("shares", np.array([[1.0, 0.0]])),
    ]
    assert np.isfinite(problem.proof(good).lower)
    for name, array in wrong:
        bracket = problem.proof(Point(good.primal, {**good.dual, name: array}))
        assert bracket.lower == -np.inf, name


def test_a_witness_without_kernels_proves_nothing() -> None:
    program = SimilarityProgram(((np.eye(2),),), np.array([1.0, -1.0]), 1.0, 1.0, 2.0, "squared")
    bracket = prove_kernels(program, Point({}))
    assert (bracket.lower, bracket.upper) == (-np.inf, np.inf)
    assert "no kernels" in bracket.note


def test_norms_of_given_eigenvectors_are_bounded_from_above() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(6, 3))
    spectra = GivenSpectra(np.zeros((2, 3)), vectors)
    squares = fractions(vectors) ** 2
    assert max(squares.sum(axis=1)) <= Fraction(spectra.longest) ** 2
    assert (squares.sum(axis=0) <= fractions(spectra.row_norms) ** 2).all()
