"""A matrix as a band: what is proven of it holds in rational numbers, for good and forged reflections."""

from __future__ import annotations

from collections.abc import Callable

import flint
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from strategies import generators

import klopt
from klopt.kernels.gram import Gram
from klopt.model.problem import Bracket
from klopt.numerics.householder import householder
from klopt.problems import ScgLogDet
from klopt.problems._scg.data import laplacian_of
from klopt.problems._scg.proof import BandKernel
from klopt.proof.band_form import BandForm, cholesky_log_det_error, norm_below
from klopt.proof.directed import norm_up
from klopt.proof.enclosure import Enclosure

GAMMAS = (1e-8, 0.3, 1.0, 1e3)


def exact(A: np.ndarray) -> flint.fmpq_mat:
    rows = np.atleast_2d(A).tolist()
    return flint.fmpq_mat([[flint.fmpq(*x.as_integer_ratio()) for x in row] for row in rows])


def identity(n: int) -> flint.fmpq_mat:
    return exact(np.eye(n))


def log(x: flint.fmpq) -> flint.arb:
    with flint.ctx.workprec(600):
        return flint.arb(x).log()


def shifted_log_det(A: flint.fmpq_mat, gamma: float) -> flint.arb:
    """log det(I + gamma A)."""
    return log((identity(A.nrows()) + A * flint.fmpq(*gamma.as_integer_ratio())).det())


def holds(found: Enclosure | Bracket, value: flint.arb) -> bool:
    with flint.ctx.workprec(600):
        below = found.lower == -np.inf or flint.arb(float(found.lower)) <= value
        above = found.upper == np.inf or value <= flint.arb(float(found.upper))
        return bool(below and above)


def squares(A: flint.fmpq_mat) -> flint.fmpq:
    return sum((x * x for row in A.tolist() for x in row), flint.fmpq(0))


def gram(rng: np.random.Generator, n: int, rank: int, scale: float = 1.0) -> np.ndarray:
    """A matrix of small integers over a power of two: positive semidefinite without rounding."""
    F = rng.integers(-9, 10, size=(n, rank)).astype(float)
    return scale * (F @ F.T)


def dense(form: BandForm) -> np.ndarray:
    n = form.size
    B = np.zeros((n, n))
    for below, row in enumerate(form.band):
        for j in range(n - below):
            B[j + below, j] = B[j, j + below] = row[j]
    return B


def exact_rotation(form: BandForm) -> flint.fmpq_mat:
    Q = identity(form.size)
    for part in form.reflections:
        V = np.zeros((form.size, part.V.shape[1]))
        F = V.copy()
        V[part.start :] = part.V
        F[part.start :] = part.F
        Q = Q * (identity(form.size) - exact(F) * exact(V).transpose())
    return Q


def noisy(rng: np.random.Generator) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Reflections that are off by little or by much."""

    def propose(P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        V, T = householder(P)
        noise = 10.0 ** rng.uniform(-12, 0)
        return V + noise * rng.normal(size=V.shape), T + noise * rng.normal(size=T.shape)

    return propose


# ---- log det


@settings(deadline=None)
@given(
    generators,
    st.integers(1, 12),
    st.integers(1, 12),
    st.integers(1, 5),
    st.sampled_from([2.0**-1074, 2.0**-1060, 2.0**-900, 2.0**-300, 1.0, 2.0**40, 2.0**800]),
)
def test_log_det_of_many_gammas_against_rationals(
    rng: np.random.Generator, n: int, rank: int, width: int, scale: float
) -> None:
    A = gram(rng, n, min(rank, n), scale)
    form = BandForm.of(A, householder, width)
    size = max(float(np.trace(A)), 1e-300)
    for relative in GAMMAS:
        gamma = min(relative / size, 1e300)
        found = form.factor(gamma).log_det(0.0)
        assert holds(found, shifted_log_det(exact(A), gamma))
        # The cube of a large norm overflows where underflow is charged.
        assert found.rad <= 1e-12 * (1 + relative) or not 1e-290 < scale < 1e90


@pytest.mark.parametrize(("n", "rank"), [(129, 20), (300, 100)])
def test_log_det_of_many_points_against_rationals(n: int, rank: int) -> None:
    """det(I + g (I + FF')) = (1 + g)^(n - r) det((1 + g) I + g F'F), of order r."""
    rng = np.random.default_rng(n)
    F = rng.integers(-3, 4, size=(n, rank)).astype(float)
    A = np.eye(n) + F @ F.T
    form = BandForm.of(A, householder)
    assert len(form.reflections) == -(-(n - 1) // 64) - 1
    small = exact(F.T @ F)
    for gamma in (2.0**-20, 2.0**-3, 2.0**5):
        g = flint.fmpq(*gamma.as_integer_ratio())
        with flint.ctx.workprec(600):
            truth = log(1 + g) * (n - rank)
            truth += log((identity(rank) * (1 + g) + small * g).det())
        found = form.factor(gamma).log_det(1.0)
        assert holds(found, truth)
        assert found.rad <= 1e-9 + 3e-11 * gamma * np.sqrt(n) * np.linalg.norm(A)


def test_a_matrix_that_is_indefinite_by_its_floor() -> None:
    rng = np.random.default_rng(0)
    A = gram(rng, 9, 4) - 2.0**-12 * np.eye(9)
    form = BandForm.of(A, householder, 2)
    assert holds(form.factor(1.0).log_det(-(2.0**-12)), shifted_log_det(exact(A), 1.0))
    # One half is the least that is known of I + gamma A.
    assert form.factor(2.0**12).log_det(-(2.0**-12)).rad == np.inf


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_matrices_without_anything_to_reflect(n: int) -> None:
    for A in (np.zeros((n, n)), np.eye(n), np.diag(np.arange(1.0, n + 1))):
        form = BandForm.of(A, householder, 1)
        assert form.defect <= 1e-300
        assert np.array_equal(dense(form), A)
        assert holds(form.factor(0.5).log_det(0.0), shifted_log_det(exact(A), 0.5))


# ---- what the bounds rest on


@settings(deadline=None)
@given(generators, st.integers(2, 9), st.integers(1, 4), st.booleans())
def test_a_reflection_is_as_nearly_orthogonal_as_is_said(
    rng: np.random.Generator, n: int, width: int, forged: bool
) -> None:
    """The sum of the absolute eigenvalues of QQ' - I with 60 digits."""
    # One reflection alone.
    width = max(width, n // 2)
    form = BandForm.of(gram(rng, n, n), noisy(rng) if forged else householder, width)
    assert len(form.reflections) <= 1
    Q = exact_rotation(form)
    with mpmath.workdps(60):
        defect = (Q * Q.transpose() - identity(n)).tolist()
        entries = [[mpmath.mpf(int(x.p)) / int(x.q) for x in row] for row in defect]
        values = mpmath.eigsy(mpmath.matrix(entries), eigvals_only=True)
        assert sum(abs(value) for value in values) <= form.defect + mpmath.mpf(10) ** -50
    if not forged:
        assert form.defect <= 1e-12


@settings(deadline=None)
@given(generators, st.integers(2, 10), st.integers(1, 4), st.booleans())
def test_a_band_differs_from_the_rotated_matrix_by_its_error(
    rng: np.random.Generator, n: int, width: int, forged: bool
) -> None:
    """Q'AQ in rationals; one E_i is stretched by the reflections after it."""
    A = gram(rng, n, n)
    form = BandForm.of(A, noisy(rng) if forged else householder, width)
    Q = exact_rotation(form)
    off = squares(Q.transpose() * exact(A) * Q - exact(dense(form)))
    stretched = form.error * (1 + form.defect) ** len(form.reflections) * (1 + 1e-12)
    assert off <= flint.fmpq(*stretched.as_integer_ratio()) ** 2
    if not forged:
        assert form.error <= 1e-11 * np.linalg.norm(A)


@given(generators, st.integers(1, 4), st.integers(1, 4), st.integers(-1070, 500))
def test_the_norm_of_what_is_left_is_bounded(
    rng: np.random.Generator, k: int, m: int, power: int
) -> None:
    """Also where squares underflow or overflow."""
    A = rng.normal(size=(k + m, k + m)) * 10.0 ** rng.uniform(-9, 0)
    A[:k] *= 10.0 ** rng.uniform(0, 9)
    A = np.ldexp(np.tril(A) + np.tril(A, -1).T, power)
    found = norm_below(norm_up(A), A[:k, :k], A[k:, :k])
    assert squares(exact(A[k:, k:])) <= flint.fmpq(*found.as_integer_ratio()) ** 2
    assert found <= norm_up(A) * (1 + 1e-9)


Forgery = Callable[[np.random.Generator, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
FORGERIES: dict[str, Forgery] = {
    "no reflection": lambda rng, V, T: (0 * V, 0 * T),
    "twice": lambda rng, V, T: (2 * V, T),
    "another scale": lambda rng, V, T: (V, T * (1 + 1e-9)),
    "another vector": lambda rng, V, T: (V + 1e-9 * rng.normal(size=V.shape), T),
    "random": lambda rng, V, T: (rng.normal(size=V.shape), rng.normal(size=T.shape)),
    "not finite": lambda rng, V, T: (np.full_like(V, np.nan), T),
    "huge": lambda rng, V, T: (1e200 * V, T),
    "a projection": lambda rng, V, T: (V, T / 2),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_reflections_prove_nothing_false(name: str) -> None:
    rng = np.random.default_rng(5)
    A = gram(rng, 11, 11) / 64
    forge = FORGERIES[name]
    with np.errstate(all="ignore"):
        form = BandForm.of(A, lambda P: forge(rng, *householder(P)), 3)
        for gamma in GAMMAS:
            assert holds(form.factor(gamma).log_det(0.0), shifted_log_det(exact(A), gamma))


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_reflections_prove_nothing_false_of_a_kernel(name: str) -> None:
    rng = np.random.default_rng(6)
    K0 = gram(rng, 12, 12) / 64
    problem = ScgLogDet(K0, [0, 1] * 6, 1.0)
    parts = laplacian_of(problem.side)
    S = identity(12) - exact(parts.U.toarray()) * exact(parts.R) * exact(parts.U.toarray().T)
    forge = FORGERIES[name]
    with np.errstate(all="ignore"):
        form = BandForm.of(K0, lambda P: forge(rng, *householder(P)), 3)
        bands = [form.factor(gamma) for gamma in (0.1, 1.0, 30.0)]
        usable = [band for band in bands if band.complete and np.isfinite(band.factor).all()]
        for objective in BandKernel(Gram.of(K0), parts, form).objectives(usable):
            if not np.isfinite(objective.V).all():
                continue
            g = flint.fmpq(*objective.gamma.as_integer_ratio())
            truth = log((identity(12) + S * exact(K0) * g).det())
            best = ScgLogDet(K0, [0, 1] * 6, objective.gamma)
            H = best.formulations()[0].build().rule()[0].reshape(2, 2)
            assert holds(objective.bracket(H), truth)


def test_a_factorisation_that_breaks_down_proves_nothing() -> None:
    form = BandForm.of(-np.eye(3), householder, 1)
    band = form.factor(2.0)
    assert not band.complete
    assert band.log_det(0.0).rad == np.inf
    assert cholesky_log_det_error(np.ones(3), 0.2, 8) == np.inf
    assert cholesky_log_det_error(np.full(3, 1e16), 1.0, 8) == np.inf


def test_products_with_the_band_and_its_rotation() -> None:
    rng = np.random.default_rng(2)
    A = gram(rng, 200, 150)
    form = BandForm.of(A, householder)
    C = rng.normal(size=(200, 3))
    assert np.allclose(form.rotate_back(form.rotate(C)), C, rtol=0, atol=1e-12)
    there = form.rotate_back(form.multiply(form.rotate(C)))
    assert np.allclose(there, A @ C, rtol=0, atol=1e-12 * np.linalg.norm(A))
    solved = form.rotate_back(form.factor(0.1).solve(form.rotate(C)))
    assert np.allclose(solved, np.linalg.solve(np.eye(200) + 0.1 * A, C), rtol=0, atol=1e-9)
    assert form.rotate(C[:, :0]).shape == form.multiply(C[:, :0]).shape == (200, 0)


# ---- a path


def test_a_gamma_of_a_path_that_is_asked_for_more_digits_gets_a_factor_of_its_own() -> None:
    rng = np.random.default_rng(7)
    X = rng.normal(size=(300, 4))
    K0 = np.exp(-np.square(X[:, None] - X).sum(axis=2)) + 1e-3 * np.eye(300)
    (problem,) = ScgLogDet(K0, np.arange(300) % 3, 1.0).path([20.0])
    first = klopt.solve(problem).require()
    shared = problem.bracket(first.point)
    alone = problem.sharper_bracket(shared)
    assert alone.gap <= shared.gap
    assert max(alone.lower, shared.lower) <= min(alone.upper, shared.upper)
