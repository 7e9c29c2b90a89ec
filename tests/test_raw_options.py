"""Native options and limits: a wrong name, kind or size is a bad call that says which, whoever has the option."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import klopt
from klopt.cli.main import main
from klopt.engine.registry import backend_named
from klopt.errors import InvalidSettings
from klopt.model.backend import Settings

SAMPLES = {
    "libsvm": klopt.problems.SoftMargin,
    "mirror_descent": klopt.problems.SimplexProgram,
    "mirror_prox": klopt.problems.SaddlePoint,
    "nesterov": klopt.problems.SimplexProgram,
    "bregman": klopt.problems.LogDetPairs,
}
LIBRARIES = [
    "highs",
    "clarabel",
    "scs",
    "ecos",
    "cvxpy:HIGHS",
    "cvxpy:CLARABEL",
    "cvxpy:OSQP",
    "cvxpy:SCS",
]


def sample(backend: str) -> klopt.Problem:
    return SAMPLES.get(backend, klopt.problems.LP).sample(np.random.default_rng(0), 10)


REFUSED: dict[str, list[tuple[str, Any]]] = {
    "highs": [
        ("presolve", [1]),
        ("presolve", None),
        ("presolve", "nope"),
        ("simplex_strategy", 99),
    ],
    "clarabel": [
        ("pardiso_iparm", [1]),
        ("equilibrate_max_iter", -1),
        ("direct_solve_method", "nope"),
    ],
    "scs": [
        ("alpha", "abc"),
        ("alpha", 2),
        ("normalize", "maybe"),
        ("linear_solver", "nope"),
        ("rho_x", np.inf),
    ],
    "ecos": [("nitref", "abc"), ("nitref", -1), ("feastol_inacc", 0)],
    "libsvm": [("cache_size", -1), ("cache_size", "x"), ("shrinking", 2)],
    "cvxpy:HIGHS": [("presolve", "nope")],
    "cvxpy:CLARABEL": [("max_step_fraction", "abc")],
    "cvxpy:OSQP": [("rho", "abc")],
    "cvxpy:SCS": [("alpha", "abc")],
    "mirror_descent": [("step", "abc"), ("steps", 3)],
    "mirror_prox": [("geometry", ["entropy"])],
    "nesterov": [("lipschitz", "abc"), ("lipschitz", 10**400), ("lipschitz", True)],
    "bregman": [("order", 3), ("corrected", "no")],
}


@pytest.mark.parametrize(
    ("backend", "name", "value"),
    [(backend, *option) for backend in REFUSED for option in REFUSED[backend]],
)
def test_a_value_that_an_option_does_not_take_is_a_bad_call(
    backend: str, name: str, value: Any
) -> None:
    with pytest.raises(InvalidSettings) as refusal:
        klopt.solve(sample(backend), backend, raw={name: value})
    text = str(refusal.value)
    assert text.startswith(backend)
    assert name in text
    assert repr(value) in text


@pytest.mark.parametrize("backend", LIBRARIES)
def test_an_unknown_option_lists_options_and_nothing_else(backend: str) -> None:
    with pytest.raises(InvalidSettings, match="has no option 'qqqq'; it has ") as refusal:
        klopt.solve(sample(backend), backend, raw={"qqqq": 1})
    names = str(refusal.value).partition("it has ")[2].split(", ")
    assert len(names) > 3
    assert not [name for name in names if name.startswith("_") or name == "default"]


@pytest.mark.parametrize("backend", ["highs", "clarabel", "scs", "ecos", "libsvm", None])
@pytest.mark.parametrize("limit", [2**31, 2**32, 10**10, 10**30])
def test_a_limit_beyond_what_a_library_counts_to_is_no_limit(
    backend: str | None, limit: int
) -> None:
    problem = sample(backend or "highs")
    assert klopt.solve(problem, backend, max_iter=limit).verdict.name == "OPTIMAL"


@pytest.mark.parametrize("solver", ["CLARABEL", "ECOS", "OSQP", "SCS"])
def test_a_limit_beyond_what_a_library_counts_to_is_no_limit_behind_cvxpy(solver: str) -> None:
    form = sample("cvxpy").formulations()[0].build()
    assert (
        backend_named(f"cvxpy:{solver}").run(form, Settings(max_iter=10**10)).stop.name == "OPTIMAL"
    )


def test_an_option_given_twice_on_the_command_line_is_a_bad_call() -> None:
    call = ["solve", "LP", "--backend", "highs", "--raw", "presolve=off", "--raw", "presolve=on"]
    done = CliRunner().invoke(main, call)
    assert done.exit_code == 2
    assert "raw option 'presolve' is given twice" in " ".join(done.stderr.split())


def test_a_solver_that_cvxpy_does_not_find_is_named_in_a_sentence() -> None:
    with pytest.raises(InvalidSettings, match=r"finds no solver 'QQQQ'\. It has: "):
        backend_named("cvxpy:QQQQ")


def test_entries_near_the_largest_float_warn_nobody() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = klopt.solve(klopt.problems.LP([1.0], A_ub=[[1e308]], b_ub=[1.0]), "highs")
    assert result.verdict.name == "UNPROVEN"  # HiGHS takes no such entry
