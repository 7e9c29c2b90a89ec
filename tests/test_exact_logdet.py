"""LogDet problems: both ends of every interval hold in exact arithmetic about the stored data.

Truth comes from python-flint: determinants in rational numbers, logarithms and Newton's method in
balls of 600 bits.
"""

from __future__ import annotations

from fractions import Fraction

import flint
import numpy as np
from hypothesis import given, settings, strategies as st
from strategies import at_most, generators

import klopt
from klopt.kernels.nystroem import LowRank
from klopt.kernels.side_information import side_graph
from klopt.model.problem import Point
from klopt.problems import LogDetPairs, ScgLogDet
from klopt.problems._scg.data import laplacian_of
from klopt.problems._scg.proof import FeatureObjective, laplacian_energy, laplacian_range
from klopt.proof.balls import ball_matrix, definite_log_det, enclosure_of_ball, working_bits
from klopt.proof.certificate import Verdict
from klopt.proof.enclosure import Enclosure
from klopt.proof.log_det import enclose_congruence, enclose_log_det, enclose_relative_log_det


def exact(A: np.ndarray) -> flint.fmpq_mat:
    rows = np.atleast_2d(A).tolist()
    return flint.fmpq_mat([[flint.fmpq(*x.as_integer_ratio()) for x in row] for row in rows])


def log(x: flint.fmpq) -> flint.arb:
    with flint.ctx.workprec(600):
        return flint.arb(x).log()


def holds(lower: float, value: flint.arb, upper: float) -> bool:
    """Whether lower <= value <= upper for the whole ball."""
    with flint.ctx.workprec(600):
        below = lower == -np.inf or flint.arb(lower) <= value
        above = upper == np.inf or value <= flint.arb(upper)
        return bool(below and above)


def identity(n: int) -> flint.fmpq_mat:
    return exact(np.eye(n))


class TestCore:
    @given(generators, st.integers(1, 8), st.integers(-12, 12))
    def test_log_det_against_rationals(self, rng: np.random.Generator, n: int, power: int) -> None:
        F = rng.normal(size=(n, n)) * 10.0 ** rng.uniform(-3, 3, size=n)
        A = (F @ F.T) * 2.0**power
        A = (A + A.T) / 2
        found = enclose_log_det(A).value
        if np.isfinite(found.rad):
            assert holds(found.lower, log(exact(A).det()), found.upper)
        with working_bits(200):
            ball = definite_log_det(ball_matrix(A))
            wide = Enclosure(0.0, np.inf) if ball is None else enclosure_of_ball(ball)
        if ball is not None:
            assert holds(wide.lower, log(exact(A).det()), wide.upper)

    def test_indefinite_matrices_have_no_log_det(self) -> None:
        A = np.array([[1.0, 2.0], [2.0, 1.0]])
        assert enclose_log_det(A).value.rad == np.inf
        with working_bits(100):
            assert definite_log_det(ball_matrix(A)) is None

    @given(generators, st.integers(1, 6), st.integers(1, 6))
    def test_relative_log_det_against_rationals(
        self, rng: np.random.Generator, r: int, n: int
    ) -> None:
        F = rng.normal(size=(r, n))
        A = rng.normal(size=(n, n))
        A = (A + A.T) / 2
        G = exact(F).transpose() * exact(F)
        # G changed by a positive semidefinite matrix of rank one that is not in the factor.
        w = rng.normal(size=(n, 1)) * 10.0 ** rng.uniform(-9, -2)
        changed = G + exact(w) * exact(w).transpose()
        size = float((w**2).sum()) * (1 + 1e-12)
        found = enclose_relative_log_det(A, F, size)
        if np.isfinite(found.rad):
            for matrix in (G, changed):
                det = (identity(n) + exact(A) * matrix).det()
                assert holds(found.lower, log(det), found.upper)

    @given(generators, st.integers(1, 6), st.integers(1, 6))
    def test_congruences_against_rationals(self, rng: np.random.Generator, m: int, n: int) -> None:
        F = rng.normal(size=(m, n)) * 10.0 ** rng.integers(-8, 8, size=n)
        A = rng.normal(size=(n, n)) * 10.0 ** rng.integers(-8, 8)
        A = (A + A.T) / 2
        found = enclose_congruence(F, A)
        truth = exact(F) * exact(A) * exact(F).transpose()
        for i in range(m):
            for j in range(m):
                value = Fraction(int(truth[i, j].p), int(truth[i, j].q))
                off = abs(value - Fraction(float(found.mid[i, j])))
                assert off <= Fraction(float(found.rad[i, j]))


# ---- LogDetPairs


def random_pairs(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    i, j = np.triu_indices(n, 1)
    chosen = rng.permutation(i.size)
    pairs = np.column_stack((i, j))[chosen]
    half = int(rng.integers(1, i.size))
    return pairs[:half], pairs[half : half + int(rng.integers(1, 4))]


def tempting_kernel(rng: np.random.Generator, n: int, width: float, twins: float) -> np.ndarray:
    """A Gaussian kernel of near points, the first two nearer still."""
    X = rng.normal(size=(n, 3))
    X[1] = X[0] + twins * rng.normal(size=3)
    return np.exp(-width * np.sum((X[:, None] - X) ** 2, axis=2))


def exact_dual(
    problem: LogDetPairs, similar: np.ndarray, dissimilar: np.ndarray
) -> flint.arb | None:
    """log det(I + A K0) - sum s lambda t, None where G^-1 + A is not positive definite."""
    with flint.ctx.workprec(600):
        G = exact(problem.K0.matrix)
        n = len(problem.K0.matrix)
        A = flint.fmpq_mat(n, n)
        linear = flint.fmpq(0)
        groups = (
            (problem.similar, similar, problem.upper, 1),
            (problem.dissimilar, dissimilar, problem.lower, -1),
        )
        for pairs, weights, bounds, sign in groups:
            for (i, j), w, t in zip(pairs.tolist(), weights, bounds, strict=True):
                x = sign * flint.fmpq(*float(w).as_integer_ratio())
                linear += x * flint.fmpq(*float(t).as_integer_ratio())
                for a, b, s in ((i, i, 1), (j, j, 1), (i, j, -1), (j, i, -1)):
                    A[a, b] += s * x
        changed = G + G * A * G
        for k in range(1, n + 1):
            for M in (G, changed):
                leading = flint.fmpq_mat([[M[a, b] for b in range(k)] for a in range(k)])
                if not leading.det() > 0:
                    return None
        return flint.arb(changed.det() / G.det()).log() - flint.arb(linear)


@at_most(30)
@given(
    generators,
    st.integers(3, 6),
    st.sampled_from([1.0, 1e-2, 1e-4]),
    st.sampled_from([1.0, 1e-3, 1e-5]),
)
def test_lower_ends_are_below_the_exact_dual_value(
    rng: np.random.Generator, n: int, width: float, twins: float
) -> None:
    K0 = tempting_kernel(rng, n, width, twins)
    similar, dissimilar = random_pairs(rng, n)
    problem = LogDetPairs(K0, similar, dissimilar, upper=width, lower=width)
    size = 10.0 ** rng.uniform(-3, 3) / width
    weights = {
        "similar": rng.uniform(0, size, len(similar)),
        "dissimilar": rng.uniform(0, size / 100, len(dissimilar)),
    }
    witness = problem.witness(Point({}, weights))
    bracket = problem.proof(witness)
    truth = exact_dual(problem, witness.similar, witness.dissimilar)
    if truth is None:
        # No multipliers outside the domain prove anything, unless K0 is indefinite by rounding.
        assert bracket.lower == -np.inf or problem._coordinates.is_semidefinite is False
    else:
        assert holds(bracket.lower, truth, np.inf)


@at_most(30)
@given(
    generators,
    st.integers(3, 7),
    st.sampled_from([1.0, 1e-2, 1e-4]),
    st.sampled_from([1.0, 1e-3, 1e-5]),
    st.sampled_from([None, 0.1, 10.0]),
)
def test_intervals_of_all_points_meet(
    rng: np.random.Generator, n: int, width: float, twins: float, slack: float | None
) -> None:
    """Whatever the multipliers, no lower end is above an upper end: both hold for one optimum."""
    K0 = tempting_kernel(rng, n, width, twins)
    similar, dissimilar = random_pairs(rng, n)
    problem = LogDetPairs(K0, similar, dissimilar, upper=2 * width, lower=width, slack=slack)
    sizes = len(similar), len(dissimilar)
    points = [
        Point(
            {},
            {
                "similar": a * rng.uniform(size=sizes[0]),
                "dissimilar": b * rng.uniform(size=sizes[1]),
            },
        )
        for a in (0.0, 1 / width, 1e8)
        for b in (0.0, 1 / width, 1e12)
    ]
    points.append(klopt.solve(problem, "sparse_newton", time_limit=2).point)
    found = [problem.bracket(point) for point in points]
    assert max(b.lower for b in found) <= min(b.upper for b in found)


def test_ill_conditioned_kernel_of_the_audit() -> None:
    """cond(K0) = 4e15; 60-digit Newton on the active pairs gives 13500.694365350794369."""
    tri = [0.9998936829714148, 0.9996971053947626, 0.9997275490445234, 0.9998435562464022,
           0.9999487055452579, 0.9996564561609355, 0.9999518685132065, 0.999828438904931,
           0.9999533320091565, 0.9996892991319698, 0.9999148924483394, 0.9997249419300707,
           0.9999741269484742, 0.9997014850501057, 0.9998075829645453, 0.9998895763098368,
           0.9999788621790171, 0.9998720238626768, 0.9994073610639175, 0.9997443448394393,
           0.999537794166885, 0.9998582088728882, 0.9999292667385273, 0.999865697012004,
           0.9998412042830238, 0.9998704380224225, 0.9999823850291606, 0.9998143073295747]  # fmt: skip
    K0 = np.eye(8)
    K0[np.triu_indices(8, 1)] = tri
    K0 = np.triu(K0) + np.triu(K0, 1).T
    similar = [(0, 4), (3, 6), (0, 5), (0, 1), (5, 6), (0, 7), (0, 3), (6, 7), (2, 6), (4, 6),
               (2, 5), (1, 7), (5, 7), (1, 3), (2, 3), (3, 5), (1, 2), (4, 7)]  # fmt: skip
    dissimilar = [(0, 2), (1, 5), (1, 4), (1, 6), (2, 7), (3, 7), (2, 4), (3, 4)]
    problem = LogDetPairs(
        K0, similar, dissimilar, upper=0.00029823488070956916, lower=0.00014911744035478458
    )
    result = klopt.solve(problem)
    assert result.verdict is Verdict.OPTIMAL
    assert result.lower <= 13500.694365350794 <= result.upper


def test_distances_on_the_verge_of_a_line_are_infeasible() -> None:
    """Points that must lie on a line have a singular kernel, at no finite divergence."""
    result = klopt.solve(LogDetPairs(np.eye(3), [(0, 1), (1, 2)], [(0, 2)], 0.5, 2.0))
    assert result.verdict is Verdict.INFEASIBLE


@given(st.integers(1, 40))
def test_one_unit_in_the_last_place_decides(power: int) -> None:
    """A pair both near and far: infeasible where upper < lower, by however little."""
    t = 1.0 + 1.0 / power
    flaw = LogDetPairs(np.eye(2), [(0, 1)], [(0, 1)], t, np.nextafter(t, 9)).dual.ray_flaw
    assert flaw(np.array([t, np.nextafter(t, 9)])) == ""
    flaw = LogDetPairs(np.eye(2), [(0, 1)], [(0, 1)], np.nextafter(t, 9), t).dual.ray_flaw
    assert flaw(np.array([np.nextafter(t, 9), t])) != ""


def test_forged_witnesses_prove_nothing_false() -> None:
    problem = LogDetPairs(np.eye(3), [(0, 1)], [(0, 2)], upper=1.0, lower=2.0)
    good = problem.witness(Point({}, {"similar": [0.5], "dissimilar": [0.0]}))
    optimum = np.log(2) - 0.5
    for change in (-0.9 * np.eye(3), np.full((3, 3), np.nan), 1e200 * np.eye(3), -np.eye(3)):
        arrays = {**good.primal, "change": change, "correction": [0.0, 0.0]}
        for weights in ([0.5], [-3.0], [np.nan], [1e300]):
            forged = Point(arrays, {"similar": weights, "dissimilar": [0.0]})
            bracket = problem.proof(forged)
            assert bracket.lower <= optimum + 1e-12
            assert bracket.upper >= optimum - 1e-12


def test_features_are_exact_data() -> None:
    """One pair on paper: an eigenvalue of t / gap, D = t / gap - log(t / gap) - 1."""
    for gap in (2.0**-8, 2.0**-40, 2.0**-60):
        Phi = LowRank([[1.0, 0.0], [1.0, gap]])
        problem = LogDetPairs(Phi, [(0, 1)], [], upper=gap**2 / 4, lower=1.0)
        result = klopt.solve(problem, tol=1e-8).require()
        assert holds(result.lower, log(flint.fmpq(4)) - flint.arb(3) / 4, result.upper)


# ---- ScgLogDet


def stored_laplacian(problem: ScgLogDet) -> flint.fmpq_mat:
    parts = laplacian_of(problem.side)
    if isinstance(parts, np.ndarray):
        return exact(parts)
    U = exact(parts.U.toarray())
    return identity(problem.K0.size) - U * exact(parts.R) * U.transpose()


@at_most(40)
@given(generators, st.integers(2, 9), st.floats(-6, 6), st.sampled_from(["labels", "pairs", "T"]))
def test_scg_intervals_hold_against_rational_determinants(
    rng: np.random.Generator, n: int, power: float, kind: str
) -> None:
    F = rng.normal(size=(n, n)) * 10.0 ** rng.uniform(-4, 1, size=(n, 1))
    T = rng.uniform(-1, 1, size=(n, n))
    side = {
        "labels": np.append(rng.integers(0, 3, n - 1), -1),
        "pairs": ([(0, 1)], []),
        "T": (T + T.T) / 2,
    }[kind]
    gamma = 10.0**power
    for K0, G in ((F @ F.T, exact(F @ F.T)), (LowRank(F), exact(F) * exact(F).transpose())):
        problem = ScgLogDet(K0, side, gamma)
        if not isinstance(K0, LowRank) and problem.K0.floor < 0:
            continue
        weight = flint.fmpq(*gamma.as_integer_ratio())
        det = (identity(n) + stored_laplacian(problem) * G * weight).det()
        for tried in (problem, problem.path([gamma])[0]):
            for formulation in tried.formulations():
                if not formulation.name.startswith("by"):
                    continue
                point = formulation.recover(*formulation.build().rule())
                name = next(iter(point))
                best = getattr(point, name)
                for noise in (0.0, 1e-6, 1.0, 1e6):
                    rough = Point({name: best + noise * rng.normal(size=best.shape)})
                    bracket = tried.bracket(rough)
                    assert holds(bracket.lower, log(det), bracket.upper)


# ---- SCG-LDK: what its bounds rest on


def test_many_points_on_a_path_hold_against_rationals() -> None:
    """256 copies of 5 points, a group each: det(I + gamma S K0) is a product of two of order 5."""
    rng = np.random.default_rng(3)
    F = rng.normal(size=(5, 5))
    k = np.round(F @ F.T * 2**20) / 2**20
    K0 = np.kron(np.eye(256), k)
    problem = ScgLogDet(K0, np.tile([0, 1, 2, 3, -1], 256), 1.0)
    parts = laplacian_of(problem.side)
    # The unlabelled points are the first group; the columns of U are orthonormal without rounding.
    order = [4, 0, 1, 2, 3]
    assert set(parts.U.data.tolist()) == {1 / 16}
    small = exact(k[np.ix_(order, order)])
    for tried in problem.path([0.03, 1.0, 250.0]):
        gamma = flint.fmpq(*tried.gamma.as_integer_ratio())
        alone = (identity(5) + small * gamma).det()
        linked = (identity(5) + (identity(5) - exact(parts.R)) * small * gamma).det()
        with flint.ctx.workprec(600):
            optimum = flint.arb(alone).log() * 255 + flint.arb(linked).log()
        result = klopt.solve(tried).require()
        assert holds(result.lower, optimum, result.upper)


@settings(max_examples=60, deadline=None)
@given(generators, st.sampled_from(["labels", "pairs", "T"]), st.sampled_from(["any", "one sign"]))
def test_energies_of_features_are_within_their_errors(
    rng: np.random.Generator, kind: str, signs: str
) -> None:
    """Phi'S Phi in rationals; features of one sign let all errors of a sum add up."""
    n = int(rng.integers(2, 40)) if kind == "T" else int(rng.choice([5, 40, 300]))
    r = int(rng.integers(1, 4))
    Phi = rng.normal(size=(n, r)) * 10.0 ** rng.uniform(-4, 4, size=r)
    if signs == "one sign":
        Phi = np.full((n, r), 0.1) * rng.integers(1, 4, size=r)
    T = np.tril(rng.uniform(-1, 1, size=(n, n)))
    labels = np.append(rng.integers(0, 3, n - 1), -1)
    side = {"labels": labels, "pairs": ([(0, 1)], []), "T": np.tril(T, -1) + T.T}[kind]
    laplacian = laplacian_of(side_graph(side, n))
    found, error = laplacian_energy(Phi, laplacian)
    columns = exact(Phi)
    if isinstance(laplacian, np.ndarray):
        truth = columns.transpose() * (exact(laplacian) * columns)
    else:
        P = exact(laplacian.U.toarray()).transpose() * columns
        truth = columns.transpose() * columns - P.transpose() * (exact(laplacian.R) * P)
    off = sum(
        Fraction(int(x.p), int(x.q)) ** 2 for row in (truth - exact(found)).tolist() for x in row
    )
    assert off <= Fraction(error) ** 2
    # No looser than a sum of n terms, a few times, asks for.
    size = float(np.sum(Phi * Phi))
    assert error <= 60 * (n + 16) * 2.0**-53 * size


@at_most(30)
@given(generators, st.sampled_from(["labels", "pairs", "T"]))
def test_the_spectrum_of_a_stored_laplacian_is_in_its_range(
    rng: np.random.Generator, kind: str
) -> None:
    n = int(rng.integers(3, 9))
    T = np.tril(rng.uniform(-1, 1, size=(n, n)))
    labels = np.append(rng.integers(0, 3, n - 1), -1)
    side = {"labels": labels, "pairs": ([(0, 1)], [(1, 2)]), "T": np.tril(T, -1) + T.T}[kind]
    problem = ScgLogDet(np.eye(n), side, 1.0)
    d, s = laplacian_range(laplacian_of(problem.side))
    S = stored_laplacian(problem)
    assert 0 <= d < 1e-12
    assert s < 3
    # A determinant that is positive at d and beyond, up to a bound of the norm, has no root there.
    for shift, sign in ((d, 1), (s, -1)):
        M = S * sign + identity(n) * flint.fmpq(*shift.as_integer_ratio())
        characteristic = (M + identity(n) * flint.fmpq(1, 10**30)).charpoly()
        # All eigenvalues of M + 1e-30 I are positive: the coefficients alternate (Descartes).
        signs = [c * (-1) ** (n - i) > 0 for i, c in enumerate(characteristic.coeffs())]
        assert all(signs)


def test_features_that_miss_something_are_charged() -> None:
    """K0 is known up to E; for every sign of it the optimum lies between the ends (Lemma L4)."""
    rng = np.random.default_rng(5)
    n = 8
    Phi = rng.normal(size=(n, 2))
    labels = [0, 0, 1, 1, 2, -1, -1, 0]
    laplacian = laplacian_of(side_graph(labels, n))
    U = exact(laplacian.U.toarray())
    S = identity(n) - U * exact(laplacian.R) * U.transpose()
    for gamma in (0.1, 1.0, 50.0):
        energy = laplacian_energy(Phi, laplacian)
        for size in (1e-9, 1e-6, 1e-3):
            objective = FeatureObjective(Phi, *energy, size, laplacian_range(laplacian), gamma)
            found = objective.proof(objective.minimiser())
            v = rng.normal(size=(n, 1))
            v /= np.linalg.norm(v) * (1 + 1e-12)
            for sign in (1, -1):
                E = exact(v) * exact(v).transpose() * flint.fmpq(*(sign * size).as_integer_ratio())
                G = exact(Phi) * exact(Phi).transpose() + E
                det = (identity(n) + S * G * flint.fmpq(*gamma.as_integer_ratio())).det()
                assert holds(found.lower, log(det), found.upper)
            assert found.upper - found.lower <= 8 * gamma * size + 1e-12
