"""Nesterov's scheme of two sequences with a known constant: the corrected Algorithms 1 and 2 of paper 003."""

from __future__ import annotations

import numpy as np
import pytest
from strategies import radial_gram

import klopt
from klopt.conformance.instances import FormProblem
from klopt.errors import InvalidSettings
from klopt.problems import AdaptiveKernel, AdaptiveKernelRegression, SoftMargin
from klopt.proof.certificate import Verdict

RAW = {"scheme": "two sequences"}


def problems() -> list[klopt.Problem]:
    rng = np.random.default_rng(0)
    K, y, targets = (
        radial_gram(rng, 16),
        np.where(np.arange(16) % 2 == 0, 1.0, -1.0),
        rng.normal(size=16),
    )
    return [
        AdaptiveKernel(K, y, 2.0, 0.5, 0.0),
        AdaptiveKernel(K, y, 2.0, 0.5, 0.2, bias=False),
        AdaptiveKernelRegression(K, targets, 2.0, 0.1, 0.5, 0.0),
        AdaptiveKernelRegression(K, targets, 2.0, 0.1, 0.5, 0.2),
    ]


each = pytest.mark.parametrize("problem", problems(), ids=lambda problem: problem.describe())


@each
def test_it_proves_the_same_optimum(problem: klopt.Problem) -> None:
    slow, best = klopt.solve(problem, "nesterov", raw=RAW), klopt.solve(problem, tol=1e-9)
    assert slow.verdict is Verdict.OPTIMAL
    assert max(slow.lower, best.lower) <= min(slow.upper, best.upper) + 1e-12


@each
def test_the_gap_stays_below_its_bound_and_the_constant_holds(problem: klopt.Problem) -> None:
    """f(theta_t) - f* <= 2 L |x_0 - x*|^2 / ((t + 1)(t + 2)), with an L that no pair of gradients exceeds."""
    form = next(f for f in problem.formulations() if f.name in ("smooth", "quartic")).build()
    L, rng, start = form.objective.lipschitz(), np.random.default_rng(1), form.domain.centre()
    away = start - klopt.solve(problem, "newton", tol=1e-11).chosen.answer.x
    run = klopt.solve(FormProblem(form), "nesterov", raw=RAW, max_iter=400, tol=1e-9)
    best = max(step.lower for step in run.history)
    assert len(run.history) > 20
    for step in run.history[1:]:
        t = step.iteration - 1
        assert step.upper - best <= 2 * L * float(away @ away) / ((t + 1) * (t + 2))
    for _ in range(50):
        one, other = (form.domain.project(start + rng.normal(size=start.size)) for _ in range(2))
        change = form.objective.gradient(one) - form.objective.gradient(other)
        assert np.linalg.norm(change) <= L * np.linalg.norm(one - other) * (1 + 1e-12)


def test_it_needs_a_constant_and_has_no_other_name() -> None:
    problem = SoftMargin.sample(np.random.default_rng(0), 8)
    with pytest.raises(InvalidSettings, match="needs the raw option 'lipschitz'"):
        klopt.solve(problem, "nesterov", raw=RAW)
    for raw in (
        {"scheme": "fast"},
        {"scheme": 2},
        {**RAW, "lipschitz": -1.0},
        {**RAW, "lipschitz": "abc"},
    ):
        with pytest.raises(InvalidSettings, match=r"scheme|lipschitz"):
            klopt.solve(problem, "nesterov", raw=raw)
