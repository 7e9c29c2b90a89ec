"""A solver's status is quoted as it is: what it calls inaccurate is no claim."""

from __future__ import annotations

import numpy as np
import pytest
from report_samples import a_run

import klopt
from klopt.bench.record import Run
from klopt.engine.cvxpy_results import cvxpy_status
from klopt.engine.registry import backend_named
from klopt.judging.solution_files import _stop
from klopt.model.backend import Answer, Settings, Stop
from klopt.model.forms import Form

CLARABEL_LOOSE = dict.fromkeys(
    (
        "reduced_tol_gap_abs",
        "reduced_tol_gap_rel",
        "reduced_tol_feas",
        "reduced_tol_infeas_abs",
        "reduced_tol_infeas_rel",
    ),
    0.5,
)
ECOS_LOOSE = dict.fromkeys(("feastol_inacc", "abstol_inacc", "reltol_inacc"), 0.5)


def feasible_form() -> Form:
    return klopt.problems.LP.sample(np.random.default_rng(0), 30).formulations()[0].build()


def infeasible() -> klopt.problems.LP:
    return klopt.problems.LP(c=[1.0, 0.0], A_ub=[[1.0, 1.0], [-1.0, -1.0]], b_ub=[0.0, -1.0])


def answered(name: str, form: Form, iterations: int, raw: dict[str, float]) -> Answer:
    return backend_named(name).run(form, Settings(max_iter=iterations, raw=raw))


@pytest.mark.parametrize(
    ("name", "iterations", "raw", "native", "stop"),
    [
        ("clarabel", 4, CLARABEL_LOOSE, "AlmostSolved", Stop.ALMOST_OPTIMAL),
        ("ecos", 4, ECOS_LOOSE, "Close to optimal solution found", Stop.ALMOST_OPTIMAL),
        ("cvxpy:CLARABEL", 4, CLARABEL_LOOSE, "CLARABEL: optimal_inaccurate", Stop.ALMOST_OPTIMAL),
        # SCS looks at no looser tolerance: its word is for any point at a limit.
        ("scs", 50, {}, "solved (inaccurate - reached max_iters)", Stop.ITERATION_LIMIT),
    ],
)
def test_a_looser_tolerance_is_no_claim_of_optimality(name, iterations, raw, native, stop) -> None:
    answer = answered(name, feasible_form(), iterations, raw)
    assert (answer.native, answer.stop) == (native, stop)
    assert answer.x is not None


@pytest.mark.parametrize(
    ("name", "iterations", "raw", "native", "stop"),
    [
        ("clarabel", 5, CLARABEL_LOOSE, "AlmostPrimalInfeasible", Stop.STALLED),
        ("ecos", 3, ECOS_LOOSE, "Close to primal infeasible", Stop.STALLED),
        ("scs", 50, {}, "infeasible (inaccurate - reached max_iters)", Stop.ITERATION_LIMIT),
    ],
)
def test_almost_infeasible_is_no_claim_but_its_vector_is_judged(
    name, iterations, raw, native, stop
) -> None:
    form = infeasible().formulations()[0].build()
    answer = answered(name, form, iterations, raw)
    assert (answer.native, answer.stop) == (native, stop)
    assert answer.x is None
    assert answer.farkas is not None

    result = klopt.solve(infeasible(), name, max_iter=iterations, raw=raw)
    if not result.verdict.conclusive:
        assert cvxpy_status(result) == "infeasible_inaccurate"


@pytest.mark.parametrize(
    ("words", "stop"),
    [
        ("Optimal", Stop.OPTIMAL),
        ("optimal with unscaled infeasibilities", Stop.ALMOST_OPTIMAL),
        ("SUBOPTIMAL", Stop.ALMOST_OPTIMAL),
        ("optimal_inaccurate", Stop.ALMOST_OPTIMAL),
        ("Almost infeasible", Stop.STALLED),
        ("Infeasible", Stop.INFEASIBLE),
    ],
)
def test_words_of_a_solution_file(words, stop) -> None:
    assert _stop(words) is stop


def test_almost_optimal_counts_as_no_claim() -> None:
    run: Run = a_run(says=Stop.ALMOST_OPTIMAL, verdict=klopt.Verdict.FEASIBLE)
    assert run.claims == ()
    assert run.status_confirmed is None
