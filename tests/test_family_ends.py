"""Ends of problem families at both ends of the range of floats; truth from rationals.

Data and witnesses are numbers from 1e-320 to 1e300: squares underflow, products overflow. Each
problem is so small that its optimum is a formula, or lies between values of feasible points.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction as Q

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st
from scipy import sparse

from klopt.kernels.gram import Gram
from klopt.model.problem import Bracket, Point
from klopt.problems._adaptive.proof import AdaptiveProof, FeatureProducts, MatrixProducts
from klopt.problems._logdet.proof import EdgeCoordinates, PairData
from klopt.problems._margin.proof import (
    epsilon_margin_proof,
    nu_margin_proof,
    soft_margin_proof,
)
from klopt.problems._mkl.proof import MultipleKernelDual
from klopt.problems._ordered.proof import AlignmentBounds
from klopt.problems._scg.ordered_proof import PrefixBounds
from klopt.problems._scg.proof import LowRankLaplacian, laplacian_energy
from klopt.problems._similarity.proof import (
    GivenSpectra,
    SimilarityProgram,
    prove_kernels,
    prove_spectra,
)
from klopt.problems._spectral.proof import CurveBounds, FreeBounds, SpectralBounds
from klopt.proof.enclosure import Enclosure, enclose_kernel_product
from klopt.proof.function_bounds import _times
from klopt.proof.kernel_product import enclose_in_blocks, entry_bounds
from klopt.proof.log_det import enclose_congruence

Value = Callable[[Q], Q]

many = settings(max_examples=5 * settings().max_examples, deadline=None)
numbers = st.builds(
    lambda digits, power: float(f"{digits}e{power}"), st.floats(1.0, 9.99), st.integers(-320, 300)
)
"""Of all sizes, positive."""
kernel_sizes = st.builds(
    lambda digits, power: float(f"{digits}e{power}"), st.floats(1.0, 9.99), st.integers(-138, 138)
)
"""Kernel matrices of other sizes are refused."""
weights = st.one_of(st.just(0.0), numbers)
signed = st.one_of(weights, numbers.map(lambda x: -x))


def holds(found: Bracket, least: Q, most: Q) -> bool:
    """Whether no end excludes an optimum that lies between two numbers."""
    below = not math.isfinite(found.lower) or Q(found.lower) <= most
    return below and (not math.isfinite(found.upper) or Q(found.upper) >= least)


def maximum(value: Value, slope: Value, high: Q) -> tuple[Q, Q]:
    """Bounds of the maximum of a concave function over [0, high], of any size."""
    if slope(high) >= 0:
        return value(high), value(high)
    low = Q(0)
    # By the exponent, then by the digits.
    for step in (1024, 512, 256, 128, 64, 32, 16, 8, 4, 2, 1):
        while slope(high / 2**step) < 0 and high > Q(1, 2**4000):
            high /= 2**step
    for _ in range(40):
        middle = (low + high) / 2
        if slope(middle) > 0:
            low = middle
        else:
            high = middle
    return value(low), value(low) + max(slope(low), Q(0)) * (high - low)


def encloses(found: Enclosure, truth: Q, index: tuple[int, ...]) -> bool:
    mid = float(found.mid[index])
    rad = float(found.rad[index])
    # What has overflowed says nothing: no end is made of it.
    return not math.isfinite(mid + rad) or abs(Q(mid) - truth) <= Q(rad)


# ---- the core


@given(a=signed, b=numbers, spread=st.floats(0.0, 0.9))
@example(a=5e-324, b=1e-295, spread=1e-5)
@many
def test_quotients_of_enclosures(a: float, b: float, spread: float) -> None:
    rad = b * spread
    for found in (
        Enclosure.of(np.array([a])) / Enclosure(np.array([b]), np.array([rad])),
        Enclosure.of(a) / Enclosure(b, rad),
    ):
        reach = float(np.max(found.rad))
        for divisor in (Q(b) - Q(rad), Q(b) + Q(rad)):
            if math.isfinite(reach) and divisor:
                assert abs(Q(float(np.max(found.mid))) - Q(a) / divisor) <= Q(reach)


@given(large=numbers, small=numbers, v=st.tuples(signed, signed, signed))
@many
def test_kernel_products(large: float, small: float, v: tuple[float, ...]) -> None:
    """A small row beside a large one: shares of the small one underflow, entries do not."""
    across = math.sqrt(large) * math.sqrt(small) / 4
    K = np.diag([large, small, small])
    K[0, 1:] = K[1:, 0] = [across, across * 0.7]
    x = np.array(v)
    phi = np.zeros(3)
    with np.errstate(all="ignore"):
        found = (
            enclose_in_blocks(K, x, entry_bounds(K, 0.0)),
            enclose_kernel_product(K, x, 0.0),
            MatrixProducts(Gram(K, 1.0, 0.0, "")).times(x),
            _times(K, np.abs(K), Enclosure(x, phi)),
        )
        squares = MatrixProducts(Gram(K, 1.0, 0.0, "")).times_squares(x, x)
    for i in range(3):
        row = [Q(entry) for entry in K[i].tolist()]
        truth = sum((k * Q(z) for k, z in zip(row, v, strict=True)), Q(0))
        assert all(encloses(product, truth, (i,)) for product in found)
        squared = sum((k * k * Q(z) ** 2 for k, z in zip(row, v, strict=True)), Q(0))
        assert encloses(squares, squared, (i,))


@given(F=st.tuples(signed, signed), A=st.tuples(signed, signed, signed))
@example(F=(1e300, 7e299), A=(1e-320, -1.3e-320, 3e-320))
@many
def test_congruences(F: tuple[float, ...], A: tuple[float, ...]) -> None:
    middle = np.array([[A[0], A[1]], [A[1], A[2]]])
    with np.errstate(all="ignore"):
        found = enclose_congruence(np.array([F]), middle)
    a, b = map(Q, F)
    truth = a * a * Q(A[0]) + 2 * a * b * Q(A[1]) + b * b * Q(A[2])
    assert encloses(found, truth, (0, 0))


# ---- data-adaptive kernels


def adaptive_one(k: float, eta: float) -> tuple[Value, Value]:
    """a - g(a) of one point, and its derivative."""
    quartic = Q(k) ** 2 / (16 * Q(eta))
    return (
        lambda a: a - Q(k) * a * a / 2 - quartic * a**4,
        lambda a: 1 - Q(k) * a - 4 * quartic * a**3,
    )


@given(
    k=kernel_sizes, C=numbers, eta=numbers, alpha=weights, machine=signed, scale=signed,
    by_features=st.booleans(),
)  # fmt: skip
@many
def test_adaptive_kernels_of_one_point(
    k: float, C: float, eta: float, alpha: float, machine: float, scale: float, by_features: bool
) -> None:
    kernel: MatrixProducts | FeatureProducts = MatrixProducts(Gram.of([[k]]))
    if by_features:
        kernel = FeatureProducts(np.array([[k]]))
    proof = AdaptiveProof(kernel, np.ones(1), C, eta, 0.0, bias=False, epsilon=None)
    primal = {"alpha": np.array([alpha]), "scale": scale, "offset": 0.0}
    with np.errstate(all="ignore"):
        found = proof.bracket(Point(primal, {"machine": np.array([machine])}))
    if by_features:
        square = Q(k) ** 2
        quartic = square**2 / (16 * Q(eta))
        ends = maximum(
            lambda a: a - square * a * a / 2 - quartic * a**4,
            lambda a: 1 - square * a - 4 * quartic * a**3,
            Q(C),
        )
    else:
        ends = maximum(*adaptive_one(k, eta), Q(C))
    assert holds(found, *ends)


def test_the_square_of_a_small_multiple_is_charged() -> None:
    """1e-170 times a classifier of 1e170: the square of the first is 0 in floats."""
    proof = AdaptiveProof(
        MatrixProducts(Gram.of([[1e40]])), np.ones(1), 1e-39, 1e200, 0.0, bias=False, epsilon=None
    )
    primal = {"alpha": np.zeros(1), "scale": 1e-170, "offset": 0.0}
    found = proof.bracket(Point(primal, {"machine": np.array([1e130])}))
    least, most = maximum(*adaptive_one(1e40, 1e200), Q(1e-39))
    assert holds(found, least, most)
    assert found.upper < 5.1e-41


@given(
    k=kernel_sizes, C=numbers, eta=numbers, tau=weights, alpha=weights, scale=signed,
    V=signed, f=weights,
)  # fmt: skip
@many
def test_adaptive_kernels_with_tau_of_one_point(
    k: float, C: float, eta: float, tau: float, alpha: float, scale: float, V: float, f: float
) -> None:
    """g(a) = eta max(1 + a^2 k / (4 eta) - tau/2, 0)^2 - eta; any V and f make a witness."""
    half, rate, e = Q(tau) / 2, Q(k) / (4 * Q(eta)), Q(eta)

    def part(a: Q) -> Q:
        return max(1 + a * a * rate - half, Q(0))

    proof = AdaptiveProof(
        MatrixProducts(Gram.of([[k]])), np.ones(1), C, eta, tau, bias=False, epsilon=None
    )
    dual = {"V": np.array([[V]]), "f": np.array([f])}
    primal = {"alpha": np.array([alpha]), "scale": scale, "offset": 0.0}
    found = proof.bracket(Point(primal, dual))
    least, most = maximum(
        lambda a: a - e * (part(a) ** 2 - 1), lambda a: 1 - 4 * e * a * part(a) * rate, Q(C)
    )
    assert holds(found, least, most)


# ---- support vector machines of two points: their distance is all that counts


def two_points(k: float, share: float) -> tuple[Gram, Q]:
    """A kernel of two points and their squared distance."""
    K = Gram.of([[k, k * share], [k * share, k]])
    return K, Q(K.matrix[0, 0]) + Q(K.matrix[1, 1]) - 2 * Q(K.matrix[0, 1])


def quadratic(gain: Q, distance: Q, high: Q) -> Q:
    """The maximum of gain t - distance t^2 / 2 over 0 <= t <= high."""
    t = high if distance <= 0 else min(high, max(gain, Q(0)) / distance)
    return gain * t - distance * t * t / 2


kernels = st.builds(two_points, kernel_sizes, st.sampled_from([0.0, 0.5, -0.9]))


@given(kernel=kernels, C=st.one_of(numbers, st.just(math.inf)), a=weights, b=weights, w=signed)
@many
def test_soft_margins(kernel: tuple[Gram, Q], C: float, a: float, b: float, w: float) -> None:
    K, distance = kernel
    y = np.array([1.0, -1.0])
    optimum = 2 / distance if math.isinf(C) else quadratic(Q(2), distance, Q(C))
    for alpha in ([a, a], [a, b]):
        normal = {"normal": np.full(len(K.factor()), w)}
        with np.errstate(all="ignore"):
            found = soft_margin_proof(K, y, C, Point({"alpha": np.array(alpha)}, normal))
        assert holds(found, optimum, optimum)


@given(
    kernel=kernels, C=numbers, epsilon=weights, y=st.tuples(signed, signed), a=signed, b=signed,
    w=signed,
)  # fmt: skip
@many
def test_tubes(
    kernel: tuple[Gram, Q], C: float, epsilon: float, y: tuple[float, float], a: float, b: float,
    w: float,
) -> None:  # fmt: skip
    K, distance = kernel
    gain = max(abs(Q(y[0]) - Q(y[1])) - 2 * Q(epsilon), Q(0))
    optimum = quadratic(gain, distance, Q(C))
    for beta in ([a, -a], [a, b]):
        normal = {"normal": np.full(len(K.factor()), w)}
        with np.errstate(all="ignore"):
            found = epsilon_margin_proof(
                K, np.array(y), C, epsilon, Point({"beta": np.array(beta)}, normal)
            )
        assert holds(found, optimum, optimum)


@given(kernel=kernels, nu=st.floats(2.0**-1074, 1.0), a=st.one_of(weights, st.just(1.0)), w=signed)
@many
def test_shares_of_errors(kernel: tuple[Gram, Q], nu: float, a: float, w: float) -> None:
    K, distance = kernel
    y = np.array([1.0, -1.0])
    optimum = Q(nu) ** 2 * distance / 8
    for shares in ([a, a], [nu, nu], [1.0, a]):
        normal = {"normal": np.full(len(K.factor()), w)}
        with np.errstate(all="ignore"):
            found = nu_margin_proof(K, y, nu, Point({"shares": np.array(shares)}, normal))
        assert holds(found, optimum, optimum)


@given(
    one=kernels, other=kernels, C=numbers, p=st.sampled_from([1.0, 2.0]), a=weights,
    theta=st.tuples(signed, signed), beta=st.tuples(signed, signed),
)  # fmt: skip
@many
def test_several_kernels(
    one: tuple[Gram, Q], other: tuple[Gram, Q], C: float, p: float, a: float,
    theta: tuple[float, float], beta: tuple[float, float],
) -> None:  # fmt: skip
    """r_i^2 = t^2 d_i: the largest of them for p = 1, their sum for p = 2."""
    y = np.array([1.0, -1.0])
    dual = MultipleKernelDual((one[0], other[0]), y, C, hinge=True, p=p)
    distance = max(one[1], other[1]) if p == 1 else one[1] + other[1]
    optimum = quadratic(Q(2), distance, Q(C))
    classifier = np.array([[beta[0], -beta[0]], [beta[1], beta[0]]])
    primal = {"signed": np.array([a, -a]), "weights": np.array(theta)}
    with np.errstate(all="ignore"):
        found = dual.proof(Point(primal, {"classifier": classifier}))
    assert holds(found, optimum, optimum)


@given(k=kernel_sizes, C=numbers, y=signed, a=signed, theta=signed)
@many
def test_several_kernels_with_the_squared_loss(
    k: float, C: float, y: float, a: float, theta: float
) -> None:
    dual = MultipleKernelDual((Gram.of([[k]]),), np.array([y]), C, hinge=False, p=2.0)
    optimum = Q(y) ** 2 / (2 * (1 / Q(C) + Q(k)))
    with np.errstate(all="ignore"):
        found = dual.proof(Point({"signed": np.array([a]), "weights": np.array([theta])}))
    assert holds(found, optimum, optimum)


# ---- kernels from similarities: a single point has no multipliers


LOSSES: dict[str, Value] = {"l1": abs, "frobenius": abs, "squared": lambda x: x * x}


@given(
    loss=st.sampled_from(sorted(LOSSES)), S=signed, rho=numbers, C=numbers,
    trace=st.one_of(st.none(), numbers), H=signed, w=signed, offset=signed, Z=signed,
)  # fmt: skip
@many
def test_similarities_of_one_point(
    loss: str, S: float, rho: float, C: float, trace: float | None, H: float, w: float,
    offset: float, Z: float,
) -> None:  # fmt: skip
    program = SimilarityProgram(((np.array([[S]]),),), np.ones(1), C, rho, trace, loss)
    kernel = max(Q(S), Q(0)) if trace is None else Q(trace)
    optimum = Q(rho) * LOSSES[loss](kernel - Q(S))
    primal = {"factors": [[H]], "ranks": [1], "classifier": [w], "offset": offset}
    for gradients in ({"gradients": [[[Z]]]}, {}):
        dual = {"multipliers": [0.0], "shares": [[1.0]], **gradients}
        assert holds(prove_kernels(program, Point(primal, dual)), optimum, optimum)


@given(
    value=signed, rho=numbers, C=numbers, trace=numbers, mu=weights, p=signed, offset=signed,
    z=signed,
)  # fmt: skip
@many
def test_spectra_of_one_point(
    value: float, rho: float, C: float, trace: float, mu: float, p: float, offset: float, z: float
) -> None:
    program = SimilarityProgram(((),), np.ones(1), C, rho, trace, "squared")
    spectra = GivenSpectra(np.array([[value]]), np.ones((1, 1)))
    optimum = Q(rho) * (Q(trace) - Q(value)) ** 2
    primal = {"spectra": [[mu]], "classifier": [[p]], "offset": offset}
    dual = {"multipliers": [0.0], "shares": [[1.0]], "differences": [[z]]}
    assert holds(prove_spectra(program, spectra, Point(primal, dual)), optimum, optimum)


def test_the_factor_to_a_trace_keeps_its_digits() -> None:
    """1e-5 over 1e308 has two digits left: no spectrum of that size is one of trace 1e-5."""
    trace, size = 1e-5, 1e308
    near = (trace / size) * size
    program = SimilarityProgram(((),), np.ones(1), 1.0, 1e308, trace, "squared")
    primal = {"spectra": [[size]], "classifier": [[0.0]], "offset": 1.0}
    dual = {"multipliers": [0.0], "shares": [[1.0]]}
    found = prove_spectra(
        program, GivenSpectra(np.array([[near]]), np.ones((1, 1))), Point(primal, dual)
    )
    optimum = Q(1e308) * (Q(trace) - Q(near)) ** 2
    assert optimum > 0
    assert holds(found, optimum, optimum)


# ---- alignment


@given(
    V=st.tuples(numbers, numbers), ordered=st.booleans(), signed_target=st.booleans(),
    beta=st.tuples(weights, weights),
)  # fmt: skip
@many
def test_alignment_of_two_points_of_one_class(
    V: tuple[float, float], ordered: bool, signed_target: bool, beta: tuple[float, float]
) -> None:
    """T = 11', each point with a column of its own: (x + z) / (2 (x^2 + z^2)^1/2) is largest."""
    classes = np.array([0, 0])
    problem = AlignmentBounds.of(np.diag(V), classes, 1.0, ordered, signed_target)
    x, z = (Q(v) ** 2 for v in V)
    # An order does not let the second one be larger than its column is.
    square = Q(1, 2)
    if ordered and z < x:
        square = (x + z) ** 2 / (4 * (x * x + z * z))
    with np.errstate(all="ignore"):
        lower, upper = problem.bounds(problem.feasible_beta(np.array(beta)))
    assert lower <= 0 or Q(lower) ** 2 <= square
    assert upper > 0
    assert Q(upper) ** 2 >= square


def test_columns_whose_squares_underflow_are_rays_all_the_same() -> None:
    """(1, 1) is the target, however small the column is; (1, -1) has nothing of it."""
    V = np.array([[1.0, 1e-200], [-1.0, 1e-200]])
    for columns, ordered in ((V, False), (V[:, ::-1], True)):
        problem = AlignmentBounds.of(columns, np.array([0, 0]), 1.0, ordered, signed=False)
        assert problem.bounds(np.ones(len(problem.kept)))[1] == 1.0
    # What vanishes on the labelled points as a share of its length is left out by definition.
    far = np.vstack([V, [0.0, 1.0]])
    problem = AlignmentBounds.of(far, np.array([0, 0, -1]), 1.0, False, signed=False)
    assert problem.bounds(np.ones(1))[1] < 1e-9


# ---- spectral kernels


def least_squares(A: Q, B: Q, C: float, mu: float) -> Value:
    """A / (lam + 1/C) / 2 + mu B lam."""
    return lambda lam: A / (lam + 1 / Q(C)) / 2 + Q(mu) * B * lam


def least_squares_ends(root: float, B: float, C: float, mu: float) -> tuple[Q, Q]:
    """Bounds of its minimum for A = root^2, from multipliers a with a^2 <= 2 mu B and from lam."""
    A = Q(root) ** 2
    limit = 2 * Q(mu) * Q(B)
    # A root from below, to 60 bits.
    exponent = (limit.numerator.bit_length() - limit.denominator.bit_length()) // 2 - 60
    unit = Q(2) ** exponent
    steepest = math.isqrt(int(limit / unit**2)) * unit
    a = min(Q(C) * abs(Q(root)), steepest)
    least = a * abs(Q(root)) - a * a / (2 * Q(C))
    lam = max(abs(Q(root)) / steepest - 1 / Q(C), Q(0))
    return least, least_squares(A, Q(B), C, mu)(lam)


@given(root=numbers, B=numbers, C=numbers, mu=numbers, lam=weights)
@example(root=1e39, B=1.0, C=1e-309, mu=1.0, lam=0.0)
@example(root=1.0, B=1e7, C=1e155, mu=9e300, lam=0.0)
@many
def test_spectral_least_squares(root: float, B: float, C: float, mu: float, lam: float) -> None:
    # A power of two has an exact square.
    root = 2.0 ** (math.frexp(root)[1] // 2)
    A = root * root
    bounds = SpectralBounds(np.array([A]), np.array([B]), np.ones(1), C, mu, complete=True)
    least, most = least_squares_ends(root, B, C, mu)
    with np.errstate(all="ignore"):
        found = Bracket(bounds.lower, bounds.upper(np.array([lam])), Point({}))
    assert holds(found, least, most)


@given(L=numbers, C=numbers, mu=numbers, F=signed, A=signed, X=signed)
@many
def test_least_squares_over_all_kernels(
    L: float, C: float, mu: float, F: float, A: float, X: float
) -> None:
    matrix = sparse.csr_array([[L]])
    bounds = FreeBounds(matrix, np.array([0]), np.ones((1, 1)), C, mu, 0.0)
    least, most = least_squares_ends(1.0, L, C, mu)
    a = np.array([[A]])
    with np.errstate(all="ignore"):
        upper = bounds.upper(np.array([[F]]), a)
        for solution in (X, A / L):
            lower = bounds.lower(a, np.array([[solution]]))
            assert holds(Bracket(lower, upper, Point({})), least, most)


@pytest.mark.parametrize("C", [1e-320, 1e-200, 1e-160, 1e200, 1e308])
@pytest.mark.parametrize("mu", [1e-320, 1e-200, 1.0, 1e300])
def test_penalties_of_all_sizes_leave_the_ends_in_order(C: float, mu: float) -> None:
    bounds = SpectralBounds(np.ones(1), np.ones(1), np.ones(1), C, mu, complete=True)
    least, most = least_squares_ends(1.0, 1.0, C, mu)
    assert Q(bounds.lower) <= most
    for lam in (0.0, 1.0, 1e300):
        upper = bounds.upper(np.array([lam]))
        assert math.isinf(upper) or Q(upper) >= least


def test_the_square_of_a_small_length_is_charged() -> None:
    """With the penalty 1e-168 no kernel pays: the optimum is half of that."""
    bounds = FreeBounds(
        sparse.csr_array([[1e40]]), np.array([0]), np.ones((1, 1)), 1e-168, 1e-300, 0.0
    )
    assert Q(bounds.lower(np.ones((1, 1)), np.array([[1e-40]]))) <= Q(1e-168) / 2


@given(
    r=st.tuples(numbers, weights, weights), A=st.tuples(weights, weights, weights),
    share=st.floats(0.0, 1.0),
)  # fmt: skip
@example(r=(1.5e-57, 0.0, 1e253), A=(1e53, 0.0, 0.0), share=0.0)
@many
def test_alignment_of_levels(r: tuple[float, ...], A: tuple[float, ...], share: float) -> None:
    if not any(A):
        return
    bounds = CurveBounds(np.array(r), np.array(A), 1.0)
    with np.errstate(all="ignore"):
        upper = bounds.upper
    for level in (0.0, *r, share * max(r)):
        lam = [max(Q(x) - Q(level), Q(0)) for x in r]
        length = sum((x * x for x in lam), Q(0))
        if not length:
            continue
        value = sum((x * Q(a) for x, a in zip(lam, A, strict=True)), Q(0))
        square = value * value / length
        with np.errstate(all="ignore"):
            lower = bounds.lower(level)
        assert lower <= 0 or Q(lower) ** 2 <= square
        assert math.isinf(upper) or Q(upper) ** 2 >= square


def test_products_of_small_proposals_do_not_vanish() -> None:
    found = CurveBounds(np.array([1.0, 1e-170]), np.array([1e-170, 1.0]), 1.0)
    assert found.lower(0.0) <= found.upper < 2.1e-170


# ---- side information in graphs


@given(S=st.tuples(signed, signed, signed), Phi=st.tuples(signed, signed))
@example(S=(1e-320, 1.3e-320, 1.1e-320), Phi=(1234.5, -2345.6))
@many
def test_energies(S: tuple[float, ...], Phi: tuple[float, ...]) -> None:
    dense = np.array([[S[0], S[1]], [S[1], S[2]]])
    columns = np.array(Phi)[:, None]
    a, b = map(Q, Phi)
    with np.errstate(all="ignore"):
        found, error = laplacian_energy(columns, dense)
        low_rank = LowRankLaplacian(sparse.csc_array([[S[0]], [S[1]]]), np.array([[S[2]]]))
        other, other_error = laplacian_energy(columns, low_rank)
    truth = a * a * Q(S[0]) + 2 * a * b * Q(S[1]) + b * b * Q(S[2])
    if math.isfinite(error):
        assert abs(Q(found[0, 0]) - truth) <= Q(error)
    truth = a * a + b * b - Q(S[2]) * (a * Q(S[0]) + b * Q(S[1])) ** 2
    if math.isfinite(other_error):
        assert abs(Q(other[0, 0]) - truth) <= Q(other_error)


@pytest.mark.parametrize(("sigma", "count"), [(2.0, 1068), (3.0, 678), (3.0, 681), (1e30, 12)])
@given(c=numbers, first=signed, share=weights)
@settings(max_examples=5, deadline=None)
def test_means_whose_last_weights_underflow(
    sigma: float, count: int, c: float, first: float, share: float
) -> None:
    cost = np.zeros(count)
    cost[0] = first
    cost[-1] = -c
    program = PrefixBounds(cost, sigma, np.zeros(count))
    step = Q(sigma)
    weights_of_all = [1 / step**i for i in range(count)]
    total = sum(weights_of_all, Q(0))
    optimum = min(
        Q(first),
        (Q(first) - Q(c) * weights_of_all[-1]) / total,
        Q(first) / (total - weights_of_all[-1]),
    )
    # A prefix in between has the mean of the first entry alone, with more weight on zeros.
    if first < 0:
        optimum = min(optimum, Q(first))
    with np.errstate(all="ignore"):
        mu = share / sigma ** np.arange(count, dtype=float)
        found = Bracket(program.lower, program.upper(mu), Point({}))
    assert holds(found, optimum, optimum)


def test_a_large_cost_behind_underflow_is_charged() -> None:
    cost = np.zeros(680)
    cost[-1] = -1e300
    truth = Q(-1e300) / sum((Q(3) ** i for i in range(680)), Q(0))
    assert Q(PrefixBounds(cost, 3.0, np.zeros(680)).lower) <= truth


# ---- pairs


@given(
    k=st.tuples(numbers, numbers), share=st.sampled_from([0.0, 0.5, 0.999]),
    exponent=st.tuples(st.integers(-400, 400), st.integers(-400, 400)), q=signed,
    by_features=st.booleans(),
)  # fmt: skip
@many
def test_distances_of_two_points(
    k: tuple[float, float], share: float, exponent: tuple[int, int], q: float, by_features: bool
) -> None:
    """The distance of a pair in G + GQG, G by stored numbers, or in Phi W Phi'."""
    pair = {"first": np.array([1]), "second": np.array([0]), "sign": np.ones(1)}
    across = share * math.sqrt(k[0]) * math.sqrt(k[1])
    gram = np.array([[k[0], across], [across, k[1]]])
    features = np.array([[k[0]], [k[1]]]) if by_features else None
    data = PairData(
        None if by_features else gram, features, 0.0, **pair, target=np.ones(1), weight=math.inf
    )
    coordinates = EdgeCoordinates(data, np.array([-1, 0]), np.array(exponent), np.zeros((1, 2)))
    change = np.array([[q]]) if by_features else np.array([[q, 0.0], [0.0, 0.0]])
    vars(coordinates)["is_semidefinite"] = True
    with np.errstate(all="ignore"):
        found = coordinates.distances(change)
        by_paths = coordinates._distances_by_paths(np.array([0]), change)
    if by_features:
        truth = Q(q) * (Q(k[1]) - Q(k[0])) ** 2
    else:
        # Q is that of the first edge, over its unit.
        v = (Q(gram[0, 1]) - Q(gram[0, 0])) / Q(2) ** exponent[0]
        truth = Q(gram[0, 0]) + Q(gram[1, 1]) - 2 * Q(gram[0, 1]) + Q(q) * v * v
    for distances in (found, by_paths):
        assert encloses(distances, truth, (0,))
