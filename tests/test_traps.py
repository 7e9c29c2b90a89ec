"""Small traps on which native solvers were seen to be wrong; here each ends in a refusal or an honest verdict.

Every trap has a known truth and meets every installed backend that can take it. A backend may fail,
klopt may not believe it: OPTIMAL only within 1e-5 of the truth, INFEASIBLE and UNBOUNDED only where
that is the truth, FEASIBLE only where there is a point, and an interval that holds the optimum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import chain

import bad_backends as bad
import numpy as np
import pytest
from scipy import sparse
from vectors import falls_along, is_contradicted_by

import klopt
from klopt.conformance.instances import FormProblem, reference_instances
from klopt.engine.registry import problems
from klopt.errors import InvalidProblem, InvalidSettings
from klopt.model.backend import Answer, Stop
from klopt.model.cones import Cones, svec
from klopt.model.features import Feature
from klopt.model.forms import ConeForm
from klopt.model.functions import Linear, Quadratic
from klopt.model.problem import Problem
from klopt.model.sets import BoxPlane, Simplex
from klopt.problems import LP, QCQP, SDP, EpsilonMargin, SaddlePoint, SimplexProgram, SoftMargin
from klopt.proof.certificate import Verdict

INFEASIBLE, UNBOUNDED = np.inf, -np.inf


@dataclass(frozen=True)
class Trap:
    """How to build it, and its optimum: +inf where it is infeasible, -inf where it is unbounded."""

    build: Callable[[], Problem]
    optimum: float


def assert_honest(result: klopt.Result, optimum: float) -> None:
    text = result.explain()
    near = 1e-5 * (1 + abs(optimum)) if np.isfinite(optimum) else 0.0
    if result.verdict is Verdict.OPTIMAL:
        assert abs(result.value - optimum) <= near, text
    if result.verdict is Verdict.INFEASIBLE:
        assert optimum == INFEASIBLE, text
    if result.verdict is Verdict.UNBOUNDED:
        assert optimum == UNBOUNDED, text
    if result.verdict is Verdict.FEASIBLE:
        # A dual problem (sense "max") has a point although the margin it stands for does not exist.
        assert optimum != INFEASIBLE or result.problem.sense == "max", text
    assert result.lower - near <= optimum <= result.upper + near, text
    if result.verdict is Verdict.UNPROVEN:
        assert result.certificate.notes, "an outcome that is not proven says why"


def known_svm(n: int, C: float, spread: float) -> tuple[SoftMargin, float]:
    """An SVM whose solution has every point on the margin: with z = y o a, K z = y - b 1, hence the value 1'a / 2.

    K = t t' / t'z + (I - u u') M (I - u u') with t = y - b 1 and u = z / ||z||; M has eigenvalues
    from 1 to `spread`.
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
GAP = [
    -np.diag([0.0, 0.0, 1.0]),
    np.array([[0.0, 1, 0], [1, 0, 0], [0, 0, 1]]),
    np.diag([0.0, 1.0, 0.0]),
]
PAIR = [[1.0, 1.0], [-1.0, -1.0]]

TRAPS: dict[str, Trap] = {
    # matrices that some solvers misread
    "all-zero matrix": Trap(
        lambda: LP([1.0, 2.0], np.zeros((2, 2)), [1.0, 0.0], bounds=(-1, 1)), -3.0
    ),
    "all-zero matrix, false": Trap(
        lambda: LP([1.0, 2.0], np.zeros((2, 2)), [1.0, -1.0]), INFEASIBLE
    ),
    "zero equality row": Trap(
        lambda: LP([1.0, 2.0], None, None, [[0.0, 0.0], [1.0, 1.0]], [0.0, 1.0]), 1.0
    ),
    "duplicate entries": Trap(
        lambda: LP([-1.0, -2.0], zeros_in([[1, 1], [1, 3]]), [4.0, 6.0]), -5.0
    ),
    "CSR": Trap(lambda: LP([-1.0, -2.0], sparse.csr_matrix([[1.0, 1], [1, 3]]), [4.0, 6.0]), -5.0),
    "lower triangle": Trap(lambda: QCQP([[2.0, 1.0], [1.0, 2.0]], [-3.0, -3.0]), -3.0),
    "infinite right-hand side": Trap(lambda: LP([-1.0], [[1.0], [1.0]], [np.inf, 2.0]), -2.0),
    # degenerate geometry
    "weakly infeasible SDP": Trap(lambda: SDP([1.0], [-E12, E11]), INFEASIBLE),
    "SDP with a duality gap": Trap(lambda: SDP([1.0, 0.0], GAP), 0.0),
    "SDP optimum not attained": Trap(lambda: SDP([1.0, 0.0], [-E12, E11, E22]), 0.0),
    "SDP without interior": Trap(lambda: SDP([1.0, 1.0], [np.zeros((2, 2)), E11, E12]), 0.0),
    "weakly infeasible SOCP": Trap(
        lambda: form([1.0], [[-1], [-1], [0]], [0, 0, 1], soc=(3,)), INFEASIBLE
    ),
    "SOCP optimum not attained": Trap(
        lambda: form([1.0, 0.0], [[-1, -1], [-1, 1], [0, 0]], [0, 0, 2], soc=(3,)), 0.0
    ),
    "exponential optimum not attained": Trap(
        lambda: form([0.0, 1.0], [[1, 0], [0, 0], [0, -1]], [0, 1, 0], exp=1), 0.0
    ),
    "exponential optimum not attained, steep": Trap(
        lambda: form([0.0, 1e7], [[1, 0], [0, 0], [0, -1]], [0, 1, 0], exp=1), 0.0
    ),
    "infeasible and dual infeasible": Trap(
        lambda: LP([-1.0, -1.0], [[1, -1], [-1, 1]], [-1.0, -1.0]), INFEASIBLE
    ),
    "redundant equalities": Trap(
        lambda: LP([1.0, 2.0], None, None, [[1, 1], [2, 2], [1, 1]], [1.0, 2.0, 1.0]), 1.0
    ),
    "contradictory equalities": Trap(
        lambda: LP([1.0, 2.0], None, None, [[1, 1], [1, 1]], [1.0, 1.5]), INFEASIBLE
    ),
    "nearly contradictory equalities": Trap(
        lambda: LP(
            [1.0, 2.0], None, None, [[1, 1], [1, 1 + 1e-7]], [1.0, 1.0], bounds=(None, None)
        ),
        1.0,
    ),
    "unbounded LP": Trap(lambda: LP([-1.0, -1.0], [[1.0, -1.0]], [1.0]), UNBOUNDED),
    "unbounded QP": Trap(lambda: QCQP(np.diag([1.0, 0.0]), [0.0, -1.0]), UNBOUNDED),
    # numbers of very different size
    "costs of 1, rows of 1e9 and 1e-9": Trap(lambda: LP([-1.0, -1.0], [[1e-9, 1e9]], [2.0]), -2e9),
    "columns of 1e9 and 1e-9": Trap(
        lambda: LP([-1.0, -1.0], [[1e-9, 0.0], [0.0, 1e9]], [2.0, 1.0]), -2e9
    ),
    "a contradiction beside a bound of 1e9": Trap(
        lambda: LP([-1.0, 0.0], [[1, 0], [0, -1], [0, 1]], [1e9, -1.0, 0.5], bounds=(None, None)),
        INFEASIBLE,
    ),
    "a contradiction of two columns beside a bound of 1e9": Trap(
        lambda: LP(
            [-1.0, 0, 0], [[1, 0, 0], [0, -1, -1], [0, 1, 1]], [1e9, -1.0, 0.5], bounds=(None, None)
        ),
        INFEASIBLE,
    ),
    "a descent beside a cost of 1e9": Trap(
        lambda: LP(
            [1e9, -1.0, 0],
            [[0, -1, -1], [0, 1, -1]],
            [0.0, 0.0],
            bounds=[(1, None)] + 2 * [(None, None)],
        ),
        UNBOUNDED,
    ),
    "an interval that misses by 10 in 1e9": Trap(
        lambda: form([0.0, -1.0], [[-1, 0], [1, 0], [0, -1]], [-1e9, 1e9 - 10, 0], nonneg=3),
        INFEASIBLE,
    ),
    "SVM with C = 1e8": Trap(lambda: known_svm(30, 1e8, 1e-3)[0], known_svm(30, 1e8, 1e-3)[1]),
    "SVM with C = 1e8, ill-conditioned": Trap(
        lambda: known_svm(30, 1e8, 1e-13)[0], known_svm(30, 1e8, 1e-13)[1]
    ),
    "hard margin, inseparable": Trap(
        lambda: SoftMargin(np.ones((4, 4)), [1, -1, 1, -1], np.inf), INFEASIBLE
    ),
    "SVR of a constant": Trap(
        lambda: EpsilonMargin(np.ones((3, 3)), [1e6, 1e6, 1e6], 1.0, 0.1), 0.0
    ),
    "simplex, costs of 1e9 and 1e-9": Trap(
        lambda: SimplexProgram.of(Linear([1e9, 1e-9, 1.0]), Simplex(3)), 1e-9
    ),
    "simplex, curvatures of 1e9 and 1e-9": Trap(
        lambda: SimplexProgram.of(Quadratic(np.diag([1e9, 1e-9]), [0.0, 0.0]), Simplex(2)),
        0.5 / (1e-9 + 1e9),
    ),
    "box without end": Trap(
        lambda: SimplexProgram.of(Linear([-1.0, 0.0]), BoxPlane(np.zeros(2), np.full(2, np.inf))),
        UNBOUNDED,
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
        pairs += [
            (name, backend.name)
            for backend in ready
            if any(need <= backend.offers for need in needs)
        ]
    return pairs


@pytest.mark.parametrize(
    ("name", "backend"),  # what CVXPY reaches is there by itself
    [
        pytest.param(*pair, marks=[pytest.mark.slow] if pair[1] == "cvxpy" else [])
        for pair in capable()
    ],
)
def test_a_trap_ends_in_an_honest_verdict(name, backend, capfd) -> None:
    result = klopt.solve(problem_of(name), backend=backend, time_limit=2.0)
    assert_honest(result, TRAPS[name].optimum)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", TRAPS)
def test_klopt_by_itself_is_honest_too(name) -> None:
    assert_honest(klopt.solve(problem_of(name), time_limit=2.0), TRAPS[name].optimum)


class TestRefusals:
    """Data that cannot mean anything never reach a backend: the text names the array and the entry."""

    @pytest.mark.parametrize(
        ("build", "text"),
        [
            (lambda: LP([np.nan, 1.0]), r"c\[0\] is nan"),
            (lambda: LP([1.0, 1.0], [[1.0, np.nan]], [1.0]), r"A_ub\[0, 1\] is nan"),
            (lambda: LP([1.0, 1.0], [[1.0, 1.0]], [np.nan]), r"b_ub\[0\] is nan"),
            (lambda: QCQP([[1.0, 0.0], [0.0, np.nan]], [1.0, 1.0]), r"P\[1, 1\] is nan"),
            (lambda: SDP([1.0], [E12, [[1.0, 0.0], [0.0, np.nan]]]), r"nan"),
            (lambda: SoftMargin([[1.0, np.nan], [np.nan, 1.0]], [1, -1], 1.0), r"K\[0, 1\] is nan"),
            (lambda: SoftMargin(np.eye(2), [1, np.nan], 1.0), r"y\[1\] is nan"),
            (lambda: EpsilonMargin(np.eye(2), [1, np.nan], 1.0, 0.1), r"y\[1\] is nan"),
            (lambda: SaddlePoint.game([[np.nan]]), r"M\[0, 0\] is nan"),
            (lambda: SimplexProgram.of(Linear([np.nan]), Simplex(1)), r"c\[0\] is nan"),
            (
                lambda: QCQP([[1.0, 2.0], [2.0, 1.0]], [1.0, 1.0]),
                r"P is not positive semidefinite: .* -1",
            ),
            (
                lambda: QCQP(np.eye(2), [1.0, 1.0], sense="max"),
                r"P .* is not positive semidefinite",
            ),
            (
                lambda: form([0.0, 0.0], np.eye(2), [1, 1], nonneg=2, P=[[1.0, 2.0], [2.0, 1.0]]),
                "not positive semi",
            ),
            (
                lambda: SoftMargin([[1.0, 2.0], [2.0, 1.0]], [1, -1], 1.0),
                r"K is not positive semidefinite: .* from -1",
            ),
            (
                lambda: SimplexProgram.of(
                    Quadratic([[1.0, 2.0], [2.0, 1.0]], [0.0, 0.0]), Simplex(2)
                ),
                "semidefinite",
            ),
            (
                lambda: QCQP([[1.0, 0.0], [1.0, 1.0]], [1.0, 1.0]),
                r"P is not symmetric: P\[0, 1\] = 0.0 but",
            ),
            (lambda: LP([1.0, 1.0, 1.0], [[1.0, 1.0]], [1.0]), r"A_ub is 1 x 2; expected 1 x 3"),
            (
                lambda: form([1.0], [[1.0]], [1.0], nonneg=2),
                "the cones have 2 rows but A and b have 1",
            ),
            (lambda: LP([1.0], [[1.0]], [1e20]), r"b_ub\[0\] is 1e\+20; write inf"),
        ],
    )
    def test_bad_data_are_refused_by_name(self, build, text) -> None:
        with pytest.raises(InvalidProblem, match=text):
            build()

    @pytest.mark.parametrize("backend", [b.name for b in klopt.backends() if not b.missing])
    def test_an_unknown_option_is_refused_by_every_backend(self, backend) -> None:
        samples = (
            kind.sample(np.random.default_rng(seed), 6) for seed in range(6) for kind in problems()
        )
        own = (p for p in map(problem_of, TRAPS) if not isinstance(p, FormProblem))
        forms = (FormProblem(each.form) for each in reference_instances())
        problem = next(p for p in chain(own, samples, forms) if _takes(backend, p))
        with pytest.raises(
            InvalidSettings, match=r"no_such_option|raw options belong to one solver"
        ):
            klopt.solve(problem, backend=backend, raw={"no_such_option": 1})

    @pytest.mark.parametrize(
        ("backend", "option"),
        [
            ("highs", {"primal_feasibility_tolerance": -1.0}),
            ("scs", {"eps_abs": -1.0}),
            ("clarabel", {"tol_feas": -1.0}),
            ("ecos", {"abstol": -1.0}),
        ],
    )
    def test_a_negative_tolerance_cannot_be_smuggled_in(self, backend, option) -> None:
        with pytest.raises(InvalidSettings, match="is klopt's own 'tol'; set that instead"):
            klopt.solve(problem_of("CSR"), backend=backend, raw=option)
        with pytest.raises(
            InvalidSettings, match=r"tol is -1.0; expected a number in \[1e-13, 0.1\]"
        ):
            klopt.solve(problem_of("CSR"), backend=backend, tol=-1.0)


def _takes(backend: str, problem: Problem) -> bool:
    return any(route.backend.name == backend for route in klopt.plan(problem).routes)


LIMITED = (
    "CSR",
    "SVM with C = 1e8",
    "SDP without interior",
    "simplex, curvatures of 1e9 and 1e-9",
    "SVR of a constant",
)


@pytest.mark.parametrize(("name", "backend"), [pair for pair in capable() if pair[0] in LIMITED])
def test_one_iteration_is_never_an_optimum_that_is_none(name, backend) -> None:
    if "max_iter" not in klopt.engine.registry.backend_named(backend).honours:
        with pytest.raises(InvalidSettings, match="has no iteration limit"):
            klopt.solve(problem_of(name), backend=backend, max_iter=1)
        return
    result = klopt.solve(problem_of(name), backend=backend, max_iter=1)
    assert_honest(result, TRAPS[name].optimum)
    assert result.stop not in (Stop.CRASHED, Stop.REJECTED), result.explain()


class TestVectors:
    """Vectors that nearly prove something false: the terms of b'y or c'd cancel, and a small error is what is left."""

    def test_multipliers_that_nearly_cancel_prove_nothing(self) -> None:
        """x1 + x2 <= 1e7 and x1 + x2 >= 1e7 hold on a line, yet y = (1, 1 + 1e-7) has b'y = -1 and A'y = 1e-7."""
        feasible = ConeForm([0.0, 0.0], PAIR, [1e7, -1e7], Cones(nonneg=2))
        for error in (1e-5, 1e-7, 1e-9, 1e-11, 1e-13, 1e-14, 1e-15):
            assert not is_contradicted_by(feasible, np.array([1.0, 1.0 + error]))
        by_one = ConeForm([0.0, 0.0], PAIR, [1e7, -1e7 - 1], Cones(nonneg=2))
        assert is_contradicted_by(by_one, np.array([1.0, 1.0]))

    def test_a_ray_that_nearly_cancels_proves_nothing(self) -> None:
        """1e7 (x1 + x2) is at least 0 where x1 + x2 >= 0, yet d = (1, -1 - 1e-7) descends by 1 and is off by 1e-7."""
        bounded = ConeForm([1e7, 1e7], [[-1.0, -1.0]], [0.0], Cones(nonneg=1))
        for error in (1e-5, 1e-7, 1e-9, 1e-12, 1e-15):
            assert not falls_along(bounded, np.array([1.0, -1.0 - error]))
        assert not falls_along(bounded, np.array([1.0, -2.0]))
        free = ConeForm([1e7, 1e7], [[-1.0, 0.0]], [0.0], Cones(nonneg=1))
        assert falls_along(free, np.array([1.0, -2.0]))

    @pytest.mark.parametrize("kind", ["psd", "soc", "exp"])
    def test_a_steep_cost_does_not_hide_in_a_curved_cone(self, kind) -> None:
        """x1 >= 0 is part of each cone; d = (-1e-7, 1) leaves it by 1e-7 and descends by 1 at a cost of 1e7."""
        rows = {
            "psd": (-np.stack([svec(E11), svec(E22)], axis=1), svec(E12), Cones(psd=(2,))),
            "soc": ([[-1, -1], [-1, 1], [0, 0]], [0, 0, 2], Cones(soc=(3,))),
            "exp": ([[0, 1], [0, 0], [-1, 0]], [0, 1, 0], Cones(exp=1)),
        }
        steep = ConeForm([1e7, 0.0], *rows[kind])
        for small in (1e-6, 1e-7, 1e-9):
            assert not falls_along(steep, np.array([-small, 1.0]))
        downhill = ConeForm([0.0, -1.0], *rows[kind])
        assert falls_along(downhill, np.array([0.0, 1.0]))

    def test_an_error_beside_a_huge_number_is_not_small(self) -> None:
        """Residuals over 1 + max|b| and 1 + max|c| hide any error beside 1e9; row by row and column by column not."""

        class Claims(bad.Bad):
            name = "claims"

            def __init__(self, x, y):
                self.x, self.y = np.array(x), np.array(y)

            def misbehave(self, form):
                return Answer(Stop.OPTIMAL, x=self.x, y=self.y)

        infeasible = form(
            [-1.0, 0.0, 0.0], [[1, 0, 0], [0, -1, -1], [0, 1, 1]], [1e9, -1, 0.5], nonneg=3
        )
        result = klopt.solve(infeasible, backend=Claims([1e9, 0.75, 0.0], [1.0, 0.0, 0.0]))
        assert result.certificate.residuals.worst < 1e-6
        assert_honest(result, INFEASIBLE)
        assert result.verdict is Verdict.INFEASIBLE
        endless = form(
            [1e9, -1.0, 0.0], [[-1, 0, 0], [0, -1, -1], [0, 1, -1]], [-1, 0, 0], nonneg=3
        )
        result = klopt.solve(endless, backend=Claims([1.0, 0.0, 0.0], [1e9, 0.0, 0.0]))
        assert result.certificate.residuals.worst < 1e-6
        assert_honest(result, UNBOUNDED)

    def test_unbounded_needs_a_point_that_can_be_made_feasible(self) -> None:
        """x0 >= 1e9 and x0 <= 1e9 - 10 miss each other by 1e-8 of their size; a ray in x1 is then worth nothing."""

        class Endless(bad.Bad):
            name = "endless"

            def misbehave(self, form):
                return Answer(Stop.UNBOUNDED, x=np.array([1e9 - 5, 0.0]), ray=np.array([0.0, 1.0]))

        assert_honest(
            klopt.solve(problem_of("an interval that misses by 10 in 1e9"), backend=Endless()),
            INFEASIBLE,
        )


@pytest.mark.parametrize(
    "backend", [b.name for b in klopt.backends() if not b.missing and Feature.CONE in b.offers]
)
def test_every_layout_of_a_matrix_is_the_same_program(backend) -> None:
    """Dense, COO, CSR, CSC, old and new classes, unsorted, with explicit zeros, with duplicates."""
    A = np.array([[1.0, 1.0], [1.0, 3.0]])
    unsorted = sparse.csc_array(
        (np.array([1.0, 1.0, 3.0, 1.0]), np.array([1, 0, 1, 0]), np.array([0, 2, 4]))
    )
    unsorted.has_sorted_indices = False
    padded = sparse.csc_array(A)
    padded.data[1] = 0.0
    wide = sparse.csc_array(A)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    layouts = [
        A,
        A.tolist(),
        np.asfortranarray(A),
        sparse.coo_matrix(A),
        sparse.csr_matrix(A),
        sparse.csr_array(A),
    ]
    layouts += [
        sparse.csc_matrix(A),
        sparse.csc_array(A),
        unsorted,
        wide,
        zeros_in(A),
        sparse.lil_array(A),
    ]
    values = {
        klopt.solve(LP([-1.0, -2.0], layout, [4.0, 6.0]), backend=backend).require().value
        for layout in layouts
    }
    assert len(values) == 1, "bit by bit"
    assert values.pop() == pytest.approx(-5.0, abs=1e-5)
    holes = [
        klopt.solve(LP([-1.0, -2.0], A, [4.0, 6.0]), backend=backend)
        for A in (padded, padded.toarray())
    ]
    assert holes[0].require().value == holes[1].require().value
