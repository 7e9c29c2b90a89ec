"""Small traps on which native solvers were seen to be wrong; here each ends in a refusal or an honest verdict.

Every trap has a known truth and meets every installed backend that can take it. A backend may fail, klopt may not
believe it: OPTIMAL only within 1e-5 of the truth, INFEASIBLE and UNBOUNDED only where that is the truth, FEASIBLE only
where there is a point, and an interval that holds the optimum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import bad_backends as bad
import numpy as np
import pytest
from scipy import sparse

import klopt
from klopt.backend import Answer, Stop
from klopt.certify import Verdict, check_farkas, check_ray
from klopt.cones import Cones, Feature, svec
from klopt.errors import InvalidProblem, InvalidSettings
from klopt.forms import ConeForm
from klopt.instances import FormProblem
from klopt.objectives import Linear, Quadratic
from klopt.problem import Problem
from klopt.problems import LP, QCQP, SDP, EpsilonMargin, SaddlePoint, SimplexProgram, SoftMargin
from klopt.sets import BoxPlane, Simplex

INFEASIBLE, UNBOUNDED = np.inf, -np.inf


@dataclass(frozen=True)
class Trap:
    """How to build it, and its optimum: +inf where it is infeasible, -inf where it is unbounded."""

    build: Callable[[], Problem]
    optimum: float


def assert_honest(result: klopt.Result, optimum: float) -> None:
    text = result.explain()
    near = 1e-5 * (1 + abs(optimum))
    if result.verdict is Verdict.OPTIMAL:
        assert abs(result.value - optimum) <= near, text
    if result.verdict is Verdict.INFEASIBLE:
        assert optimum == INFEASIBLE, text
    if result.verdict is Verdict.UNBOUNDED:
        assert optimum == UNBOUNDED, text
    if result.verdict is Verdict.FEASIBLE:
        assert optimum != INFEASIBLE, text
    if np.isfinite(optimum):
        assert result.lower - near <= optimum <= result.upper + near, text
    if result.verdict is Verdict.UNPROVEN:
        assert result.certificate.notes, "an outcome that is not proven says why"


def known_svm(n: int, C: float, spread: float) -> tuple[SoftMargin, float]:
    """An SVM whose solution has every point on the margin: with z = y o a, K z = y - b 1, hence the value 1'a / 2.

    K = t t' / t'z + (I - u u') M (I - u u') with t = y - b 1 and u = z / ||z||; M has eigenvalues from 1 to `spread`.
    """
    rng = np.random.default_rng(n)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    a = rng.uniform(0.5, 2.0, n)
    a[y < 0] *= a[y > 0].sum() / a[y < 0].sum()
    z, t = y * a, y - 0.3
    basis = np.linalg.qr(rng.normal(size=(n, n)))[0]
    M = (basis * np.geomspace(1.0, spread, n)) @ basis.T
    keep = np.eye(n) - np.outer(z, z) / (z @ z)
    K = np.outer(t, t) / (t @ z) + keep @ M @ keep
    return SoftMargin((K + K.T) / 2, y, C), float(a.sum()) / 2


def zeros_in(A) -> sparse.coo_array:
    """The same matrix, each entry split into two that add up to it."""
    A = sparse.coo_array(np.asarray(A, dtype=float))
    twice = np.concatenate([A.row, A.row]), np.concatenate([A.col, A.col])
    return sparse.coo_array((np.concatenate([3 * A.data, -2 * A.data]), twice), shape=A.shape)


def form(*args, **cones) -> FormProblem:
    P = cones.pop("P", None)
    return FormProblem(ConeForm(*args, Cones(**cones), P))


E11, E22, E12 = np.diag([1.0, 0.0]), np.diag([0.0, 1.0]), np.array([[0.0, 1.0], [1.0, 0.0]])
GAP = [-np.diag([0.0, 0.0, 1.0]), np.array([[0.0, 1, 0], [1, 0, 0], [0, 0, 1]]), np.diag([0.0, 1.0, 0.0])]
PAIR = [[1.0, 1.0], [-1.0, -1.0]]

TRAPS: dict[str, Trap] = {
    # matrices that some solvers misread
    "all-zero matrix": Trap(lambda: LP([1.0, 2.0], np.zeros((2, 2)), [1.0, 0.0], bounds=(-1, 1)), -3.0),
    "all-zero matrix, false": Trap(lambda: LP([1.0, 2.0], np.zeros((2, 2)), [1.0, -1.0]), INFEASIBLE),
    "zero equality row": Trap(lambda: LP([1.0, 2.0], None, None, [[0.0, 0.0], [1.0, 1.0]], [0.0, 1.0]), 1.0),
    "duplicate entries": Trap(lambda: LP([-1.0, -2.0], zeros_in([[1, 1], [1, 3]]), [4.0, 6.0]), -5.0),
    "CSR": Trap(lambda: LP([-1.0, -2.0], sparse.csr_matrix([[1.0, 1], [1, 3]]), [4.0, 6.0]), -5.0),
    "lower triangle": Trap(lambda: QCQP([[2.0, 1.0], [1.0, 2.0]], [-3.0, -3.0]), -3.0),
    "infinite right-hand side": Trap(lambda: LP([-1.0], [[1.0], [1.0]], [np.inf, 2.0]), -2.0),
    # degenerate geometry
    "weakly infeasible SDP": Trap(lambda: SDP([1.0], [-E12, E11]), INFEASIBLE),
    "SDP with a duality gap": Trap(lambda: SDP([1.0, 0.0], GAP), 0.0),
    "SDP optimum not attained": Trap(lambda: SDP([1.0, 0.0], [-E12, E11, E22]), 0.0),
    "SDP without interior": Trap(lambda: SDP([1.0, 1.0], [np.zeros((2, 2)), E11, E12]), 0.0),
    "weakly infeasible SOCP": Trap(lambda: form([1.0], [[-1], [-1], [0]], [0, 0, 1], soc=(3,)), INFEASIBLE),
    "SOCP optimum not attained": Trap(
        lambda: form([1.0, 0.0], [[-1, -1], [-1, 1], [0, 0]], [0, 0, 2], soc=(3,)), 0.0
    ),
    "exponential optimum not attained": Trap(
        lambda: form([0.0, 1.0], [[1, 0], [0, 0], [0, -1]], [0, 1, 0], exp=1), 0.0
    ),
    "exponential optimum not attained, steep": Trap(
        lambda: form([0.0, 1e7], [[1, 0], [0, 0], [0, -1]], [0, 1, 0], exp=1), 0.0
    ),
    "infeasible and dual infeasible": Trap(lambda: LP([-1.0, -1.0], [[1, -1], [-1, 1]], [-1.0, -1.0]), INFEASIBLE),
    "redundant equalities": Trap(lambda: LP([1.0, 2.0], None, None, [[1, 1], [2, 2], [1, 1]], [1.0, 2.0, 1.0]), 1.0),
    "contradictory equalities": Trap(lambda: LP([1.0, 2.0], None, None, [[1, 1], [1, 1]], [1.0, 1.5]), INFEASIBLE),
    "nearly contradictory equalities": Trap(
        lambda: LP([1.0, 2.0], None, None, [[1, 1], [1, 1 + 1e-7]], [1.0, 1.0], bounds=(None, None)), 1.0
    ),
    "unbounded LP": Trap(lambda: LP([-1.0, 1.0], [[1.0, -1.0]], [1.0], bounds=(None, 5)), UNBOUNDED),
    "unbounded QP": Trap(lambda: QCQP(np.diag([1.0, 0.0]), [0.0, -1.0]), UNBOUNDED),
    # numbers of very different size
    "costs of 1, rows of 1e9 and 1e-9": Trap(lambda: LP([-1.0, -1.0], [[1e-9, 1e9]], [2.0]), -2e9),
    "columns of 1e9 and 1e-9": Trap(lambda: LP([-1.0, -1.0], [[1e-9, 0.0], [0.0, 1e9]], [2.0, 1.0]), -2e9),
    "a contradiction beside a bound of 1e9": Trap(
        lambda: LP([-1.0, 0.0], [[1, 0], [0, -1], [0, 1]], [1e9, -1.0, 0.5], bounds=(None, None)), INFEASIBLE
    ),
    "a contradiction of two columns beside a bound of 1e9": Trap(
        lambda: LP([-1.0, 0, 0], [[1, 0, 0], [0, -1, -1], [0, 1, 1]], [1e9, -1.0, 0.5], bounds=(None, None)), INFEASIBLE
    ),
    "a descent beside a cost of 1e9": Trap(
        lambda: LP([1e9, -1.0, 0], [[0, -1, -1], [0, 1, -1]], [0.0, 0.0], bounds=[(1, None)] + 2 * [(None, None)]),
        UNBOUNDED,
    ),
    "an interval that misses by 10 in 1e9": Trap(
        lambda: form([0.0, -1.0], [[-1, 0], [1, 0], [0, -1]], [-1e9, 1e9 - 10, 0], nonneg=3), INFEASIBLE
    ),
    "SVM with C = 1e8": Trap(lambda: known_svm(30, 1e8, 1e-3)[0], known_svm(30, 1e8, 1e-3)[1]),
    "SVM with C = 1e8, ill-conditioned": Trap(lambda: known_svm(30, 1e8, 1e-13)[0], known_svm(30, 1e8, 1e-13)[1]),
    "hard margin, inseparable": Trap(lambda: SoftMargin(np.ones((4, 4)), [1, -1, 1, -1], np.inf), INFEASIBLE),
    "SVR of a constant": Trap(lambda: EpsilonMargin(np.ones((3, 3)), [1e6, 1e6, 1e6], 1.0, 0.1), 0.0),
    "simplex, costs of 1e9 and 1e-9": Trap(
        lambda: SimplexProgram.of(Linear([1e9, 1e-9, 1.0]), Simplex(3)), 1e-9
    ),
    "simplex, curvatures of 1e9 and 1e-9": Trap(
        lambda: SimplexProgram.of(Quadratic(np.diag([1e9, 1e-9]), [0.0, 0.0]), Simplex(2)), 0.5 / (1e-9 + 1e9)
    ),
    "box without end": Trap(
        lambda: SimplexProgram.of(Linear([-1.0, 0.0]), BoxPlane(np.zeros(2), np.full(2, np.inf))), UNBOUNDED
    ),
    "game with stakes of 1e8 and 1e-8": Trap(
        lambda: SaddlePoint.game([[1e8, 0.0], [0.0, 1e-8]]), 1 / (1e-8 + 1e8)
    ),
}


@cache
def problem_of(name: str) -> Problem:
    return TRAPS[name].build()


def capable() -> list[tuple[str, str]]:
    """Every pair of a trap and an installed backend that can take one of its formulations."""
    pairs = []
    for name in TRAPS:
        needs = [f.needs for f in problem_of(name).formulations()]
        ready = [backend for backend in klopt.backends() if not backend.missing]
        pairs += [(name, backend.name) for backend in ready if any(need <= backend.offers for need in needs)]
    return pairs


@pytest.mark.parametrize(("name", "backend"), capable())
def test_a_trap_ends_in_an_honest_verdict(name, backend, capfd) -> None:
    result = klopt.solve(problem_of(name), backend=backend, time_limit=5.0)
    assert_honest(result, TRAPS[name].optimum)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", TRAPS)
def test_klopt_by_itself_is_honest_too(name) -> None:
    assert_honest(klopt.solve(problem_of(name), time_limit=5.0), TRAPS[name].optimum)
