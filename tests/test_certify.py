"""True optimal pairs are certified, and every mutation of them is refused."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from hypothesis import assume, given, strategies as st
from strategies import at_most
from test_problems import LONG
from vectors import falls_along, is_contradicted_by

from klopt.conformance.instances import FormProblem, Instance
from klopt.conformance.planted import planted_cone_program
from klopt.engine.certify import certify
from klopt.engine.registry import problems
from klopt.model.backend import Answer, Stop
from klopt.model.cones import Cones, svec
from klopt.model.forms import ConeForm
from klopt.model.problem import Bracket, Problem
from klopt.proof.certificate import Certificate, Verdict

KINDS = ("lp", "qp", "socp", "sdp", "exp", "power")
seeds = st.integers(0, 10**6)
TOL = 1e-6


def judged(
    form: ConeForm, x: np.ndarray, y: np.ndarray | None, stop: Stop = Stop.OPTIMAL
) -> Certificate:
    problem = FormProblem(form)
    return certify(problem, problem.formulations()[0], form, Answer(stop, x=x, y=y), TOL)[0]


def pair(seed: int, kind: str) -> Instance:
    instance = planted_cone_program(np.random.default_rng(seed), kind)
    assume(abs(instance.value) > 0.1 and np.abs(instance.y).max() > 0.1)
    return instance


@pytest.mark.parametrize("kind", KINDS)
@at_most(10)
@given(seed=seeds)
def test_a_true_pair_is_certified_whatever_the_backend_says(kind: str, seed: int) -> None:
    """Where the dual of an exponential program has no interior, rounding is worth its root: then to five digits."""
    i = pair(seed, kind)
    for stop in (Stop.OPTIMAL, Stop.STALLED, Stop.INFEASIBLE):
        certificate = judged(i.form, i.x, i.y, stop)
        assert certificate.verdict is Verdict.OPTIMAL or (
            kind == "exp" and certificate.relative_gap < 1e-5
        )
        assert certificate.lower <= i.value + 1e-12 * (1 + abs(i.value))
        assert certificate.upper >= i.value - 1e-12 * (1 + abs(i.value))


MUTATIONS = {
    "flipped sign of x": lambda i, k: (-i.x, i.y),
    "flipped sign of y": lambda i, k: (i.x, -i.y),
    "one entry of x off by 10 tol": lambda i, k: (
        i.x + 10 * TOL * _unit(i.x.size, k) * (1 + abs(i.value)),
        i.y,
    ),
    "one entry of y off by 10 tol": lambda i, k: (
        i.x,
        i.y + 10 * TOL * _unit(i.y.size, k) * (1 + np.abs(i.form.c).max()),
    ),
    "scaled x": lambda i, k: (1.5 * i.x, i.y),
    "scaled y": lambda i, k: (i.x, 1.5 * i.y),
    "zero y": lambda i, k: (i.x, 0 * i.y),
    "no y": lambda i, k: (i.x, None),
    "two multipliers swapped": lambda i, k: (i.x, _swapped(i.y, k)),
}


def _unit(size: int, k: int) -> np.ndarray:
    return np.eye(size)[k % size]


def _swapped(y: np.ndarray, k: int) -> np.ndarray:
    out = y.copy()
    out[[k % y.size, (k + 1) % y.size]] = out[[(k + 1) % y.size, k % y.size]]
    return out


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mutation", MUTATIONS)
@at_most(6)  # nine mutations of six kinds
@given(seed=seeds, k=st.integers(0, 100))
def test_a_mutant_is_never_certified_at_a_wrong_value(
    kind: str, mutation: str, seed: int, k: int
) -> None:
    """A mutant may be repaired back into the optimum; then the interval must still hold the true value."""
    i = pair(seed, kind)
    certificate = judged(i.form, *MUTATIONS[mutation](i, k))
    slack = 2 * TOL * (1 + abs(i.value))
    assert certificate.lower - slack <= i.value <= certificate.upper + slack


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_mutant_of_a_free_program_is_refused_outright(mutation: str) -> None:
    """Where no repair can be had (free variables, no bounds), residuals alone must refuse each mutant."""
    form = ConeForm(
        [1.0, 2.0, 0.5], [[1.0, 1.0, 1.0]], [3.0], Cones(zero=1), np.diag([1.0, 2.0, 4.0])
    )
    kkt = np.block(
        [[np.diag([1.0, 2.0, 4.0]), np.ones((3, 1))], [np.ones((1, 3)), np.zeros((1, 1))]]
    )
    solution = np.linalg.solve(kkt, [-1.0, -2.0, -0.5, 3.0])
    i = Instance("free", form, value=form.value(solution[:3]), x=solution[:3], y=solution[3:])
    assert form.measure(i.x, i.y).worst < 1e-12
    x, y = MUTATIONS[mutation](i, 1)
    if mutation == "two multipliers swapped":  # there is only one
        y = y + 1.0
    assert not form.measure(x, y).worst <= TOL


def test_the_residual_rule_has_a_magnitude_guard() -> None:
    """An SDP with a duality gap (optimum 0) has nearly perfect residuals at -1 with multipliers of 1e11."""
    # minimise x1 s.t. [[0, x1, 0], [x1, x2, 0], [0, 0, x1 + 1]] PSD: x1 must be 0, yet x1 -> -1 as
    # x2 -> inf.
    basis = [np.zeros((3, 3)) for _ in range(3)]
    basis[0][0, 1] = basis[0][1, 0] = basis[0][2, 2] = 1.0
    basis[1][1, 1] = 1.0
    basis[2][2, 2] = 1.0
    form = ConeForm(
        [1.0, 0.0],
        -np.stack([svec(basis[0]), svec(basis[1])], axis=1),
        svec(basis[2]),
        Cones(psd=(3,)),
    )
    x = np.array([-0.98, 1e12])
    y_matrix = np.array([[1e12, 0.49, 0], [0.49, 2.4e-13, 0], [0, 0, 0.02]])
    assert judged(form, x, svec(y_matrix)).verdict is not Verdict.OPTIMAL


def test_small_residuals_that_may_be_worth_more_than_the_tolerance_prove_nothing() -> None:
    """At x = (1e5, -1e5) with value 0, gradients of 5e-9 are nothing next to c and yet may move the value by 1e-3."""

    class Unbracketed(FormProblem):
        trusts_residuals = True

        def bracket(self, point):
            return Bracket(-np.inf, np.inf, point)

    form = ConeForm([1.0, 1.0], np.eye(2), [1e5, -1e5], Cones(zero=2))
    problem, x = Unbracketed(form), np.array([1e5, -1e5])
    verdicts = []
    for error in (5e-9, 5e-13):
        y = np.full(2, error - 1.0)
        assert form.measure(x, y).worst < TOL
        certificate, _ = certify(
            problem, problem.formulations()[0], form, Answer(Stop.OPTIMAL, x=x, y=y), TOL
        )
        verdicts.append(certificate.verdict)
    assert verdicts == [Verdict.UNPROVEN, Verdict.ESTIMATED]


def test_a_farkas_vector_is_checked_as_a_vector() -> None:
    form = ConeForm([1.0, 1.0], [[1.0, 1.0], [-1.0, -1.0]], [1.0, -2.0], Cones(nonneg=2))
    assert is_contradicted_by(form, np.array([1.0, 1.0]))
    feasible = ConeForm([1.0, 1.0], [[1.0, 1.0], [-1.0, -1.0]], [2.0, -1.0], Cones(nonneg=2))
    for y in ([1.0, 1.0], [1.0, 2.0], [1.0, 2.0 + 1e-5], [-1.0, -1.0], [0.0, 1.0], [1.0, 0.0]):
        assert not is_contradicted_by(feasible, np.array(y))


def test_a_tiny_coefficient_is_not_taken_for_zero() -> None:
    """1e-9 x >= 2 with x free is feasible although A'y = 1e-9 is small next to b'y = -2."""
    form = ConeForm([0.0], [[-1e-9]], [-2.0], Cones(nonneg=1))
    assert not is_contradicted_by(form, np.array([1.0]))
    bounded = ConeForm([-1.0], [[1e-9]], [2.0], Cones(nonneg=1))
    assert not falls_along(bounded, np.array([1.0]))


def test_a_ray_is_checked_as_a_vector() -> None:
    form = ConeForm([-1.0, 0.0], [[-1.0, 0.0], [0.0, 1.0]], [0.0, 1.0], Cones(nonneg=2))
    assert falls_along(form, np.array([1.0, 0.0]))
    curved = attrs.evolve(form, P=np.diag([1.0, 0.0]))
    assert not falls_along(curved, np.array([1.0, 0.0]))
    assert not falls_along(attrs.evolve(form, radius=5.0), np.array([1.0, 0.0]))


@given(seed=seeds)
def test_no_random_vector_proves_a_feasible_program_infeasible(seed: int) -> None:
    i = pair(seed, "lp")
    rng = np.random.default_rng(seed)
    for _ in range(5):
        assert not is_contradicted_by(i.form, rng.normal(size=i.y.size))


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(
            kind, id=kind.__name__, marks=[pytest.mark.slow] if kind.__name__ in LONG else []
        )
        for kind in problems()
    ],
)
def test_no_vector_proves_one_of_our_problems_infeasible(kind: type[Problem]) -> None:
    """Repairs once took such a vector away but for 1e-32 of it, where everything is rounding."""
    rng = np.random.default_rng(0)
    for size in (3, 4):
        for formulation in kind.sample(rng, size).formulations():
            form = formulation.build()
            if not isinstance(form, ConeForm):
                continue
            one, equalities, any_row = np.zeros((3, form.b.size))
            one[0] = -1.0
            equalities[: max(form.cones.zero, 1)] = rng.normal(size=max(form.cones.zero, 1))
            any_row[rng.integers(any_row.size)] = rng.normal()
            for y in (one, equalities, any_row, rng.normal(size=any_row.size)):
                for scale in (0.567, 1e-20):
                    assert not is_contradicted_by(form, scale * y)


@given(seed=seeds)
def test_no_random_vector_proves_a_bounded_program_unbounded(seed: int) -> None:
    i = pair(seed, "lp")
    rng = np.random.default_rng(seed)
    for _ in range(5):
        assert not falls_along(i.form, rng.normal(size=i.x.size))


def test_unbounded_needs_a_feasible_point_as_well() -> None:
    """Minimise -x over x >= 0 and y <= 1; with y >= 2 as well the ray is the same and no point exists."""
    rows, sides = [[-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], [0.0, 1.0, -2.0]
    unbounded = ConeForm([-1.0, 0.0], rows[:2], sides[:2], Cones(nonneg=2))
    infeasible = ConeForm([-1.0, 0.0], rows, sides, Cones(nonneg=3))
    ray = np.array([1.0, 0.0])
    for form, x, proven in (
        (unbounded, np.zeros(2), True),
        (unbounded, None, False),
        (infeasible, np.zeros(2), False),
        (infeasible, np.array([0.0, 1.5]), False),
    ):
        problem = FormProblem(form)
        answer = Answer(Stop.UNBOUNDED, x=x, ray=ray)
        certificate, _ = certify(problem, problem.formulations()[0], form, answer, TOL)
        assert (certificate.verdict is Verdict.UNBOUNDED) == proven


def test_the_explanation_says_what_is_missing() -> None:
    class OneSided(FormProblem):
        def bracket(self, point):
            return Bracket(-np.inf, 0.0, point)

    form = ConeForm([-1.0], [[1.0]], [1.0], Cones(nonneg=1))
    problem = OneSided(form)
    certificate, _ = certify(
        problem, problem.formulations()[0], form, Answer(Stop.OPTIMAL, x=np.array([0.0])), TOL
    )
    assert certificate.verdict is Verdict.FEASIBLE
    assert "there is a feasible point" in certificate.explain()
    assert "one side is proven" in certificate.explain()
