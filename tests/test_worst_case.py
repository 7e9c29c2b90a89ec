"""Worst cases of first-order methods: rates from the literature, altered proofs, wrong constants."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import klopt
from klopt.checker import klopt_check
from klopt.worst_cases.reading import short_fraction

pytest.importorskip("PEPit")

from PEPit import PEP
from PEPit.functions import (
    ConvexFunction,
    ConvexLipschitzFunction,
    SmoothConvexFunction,
    SmoothStronglyConvexFunction,
)
from PEPit.operators import LipschitzOperator, MonotoneOperator
from PEPit.primitive_steps import proximal_step


def gradient_descent(steps: int = 1) -> Any:
    pep = PEP()
    f = pep.declare_function(SmoothConvexFunction, L=1.0)
    minimiser = f.stationary_point()
    x = pep.set_initial_point()
    pep.set_initial_condition((x - minimiser) ** 2 <= 1)
    for _ in range(steps):
        x = x - f.gradient(x)
    pep.set_performance_metric(f(x) - f(minimiser))
    return pep


def contraction() -> Any:
    pep = PEP()
    f = pep.declare_function(SmoothStronglyConvexFunction, mu=0.1, L=1.0)
    x = pep.set_initial_point()
    z = pep.set_initial_point()
    pep.set_initial_condition((x - z) ** 2 <= 1)
    pep.set_performance_metric((x - f.gradient(x) - z + f.gradient(z)) ** 2)
    return pep


def proximal_point(steps: int = 2) -> Any:
    pep = PEP()
    f = pep.declare_function(ConvexFunction)
    minimiser = f.stationary_point()
    x = pep.set_initial_point()
    pep.set_initial_condition((x - minimiser) ** 2 <= 1)
    value = None
    for _ in range(steps):
        x, _, value = proximal_step(x, f, 1)
    pep.set_performance_metric(value - f(minimiser))
    return pep


def subgradient(steps: int = 3) -> Any:
    pep = PEP()
    f = pep.declare_function(ConvexLipschitzFunction, M=1.0)
    minimiser = f.stationary_point()
    x = pep.set_initial_point()
    pep.set_initial_condition((x - minimiser) ** 2 <= 1)
    for _ in range(steps):
        g, value = f.oracle(x)
        pep.set_performance_metric(value - f(minimiser))
        x = x - 0.5 * g
    pep.set_performance_metric(f(x) - f(minimiser))
    return pep


def monotone_proximal_point(steps: int = 2) -> Any:
    pep = PEP()
    operator = pep.declare_function(MonotoneOperator)
    zero = operator.stationary_point()
    x = pep.set_initial_point()
    pep.set_initial_condition((x - zero) ** 2 <= 1)
    last = x
    for _ in range(steps):
        last = x
        x, _, _ = proximal_step(x, operator, 1)
    pep.set_performance_metric((x - last) ** 2)
    return pep


def halpern(steps: int = 2) -> Any:
    pep = PEP()
    operator = pep.declare_function(LipschitzOperator, L=1.0)
    fixed, _, _ = operator.fixed_point()
    start = pep.set_initial_point()
    pep.set_initial_condition((start - fixed) ** 2 <= 1)
    x = start
    for k in range(steps):
        x = 1 / (k + 2) * start + (1 - 1 / (k + 2)) * operator.gradient(x)
    pep.set_performance_metric((x - operator.gradient(x)) ** 2)
    return pep


def nesterov(steps: int = 2) -> Any:
    pep = PEP()
    f = pep.declare_function(SmoothConvexFunction, L=1.0)
    minimiser = f.stationary_point()
    x = pep.set_initial_point()
    pep.set_initial_condition((x - minimiser) ** 2 <= 1)
    y = x
    for k in range(steps):
        last = x
        x = y - f.gradient(y)
        y = x + k / (k + 3) * (x - last)
    pep.set_performance_metric(f(x) - f(minimiser))
    return pep


def proximal_gradient() -> Any:
    pep = PEP()
    f = pep.declare_function(SmoothStronglyConvexFunction, mu=0.1, L=1.0)
    g = pep.declare_function(ConvexFunction)
    minimiser = (f + g).stationary_point()
    x = pep.set_initial_point()
    pep.set_initial_condition((x - minimiser) ** 2 <= 1)
    y, _, _ = proximal_step(x - f.gradient(x), g, 1)
    pep.set_performance_metric((y - minimiser) ** 2)
    return pep


def gradient_norm(steps: int = 1) -> Any:
    pep = PEP()
    f = pep.declare_function(SmoothConvexFunction, L=1.0)
    minimiser = f.stationary_point()
    x = pep.set_initial_point()
    pep.set_initial_condition((x - minimiser) ** 2 <= 1)
    for _ in range(steps):
        x = x - f.gradient(x)
    pep.set_performance_metric(f.gradient(x) ** 2)
    return pep


RATES = {
    # Drori and Teboulle (2014): L R^2 / (4 N + 2)
    "gradient descent": (gradient_descent, Fraction(1, 6)),
    "two steps": (lambda: gradient_descent(2), Fraction(1, 10)),
    # Taylor, Hendrickx and Glineur (2018): max((1 - mu gamma)^2, (1 - L gamma)^2)
    "contraction": (contraction, Fraction(81, 100)),
    # Taylor, Hendrickx and Glineur (2017): R^2 / (4 gamma N)
    "proximal point": (proximal_point, Fraction(1, 8)),
    # Drori and Teboulle (2016): M R / sqrt(N + 1)
    "subgradient method": (subgradient, Fraction(1, 2)),
    # Gu and Yang (2020): R^2 (1 - 1/N)^(N - 1) / N
    "halpern": (halpern, Fraction(4, 9)),  # Lieder (2021): 4 R^2 / (N + 1)^2
    # Taylor, Hendrickx and Glineur (2017), table 1, empirically: 2 L R^2 / (N^2 + 5 N + 6)
    "nesterov": (nesterov, Fraction(1, 10)),
    # Taylor, Hendrickx and Glineur (2018): max((1 - mu gamma)^2, (1 - L gamma)^2)
    "proximal gradient": (proximal_gradient, Fraction(81, 100)),
    # Taylor, Hendrickx and Glineur (2017): L^2 R^2 / (N + 1)^2
    "gradient norm": (gradient_norm, Fraction(1, 4)),
    "proximal point of an operator": (monotone_proximal_point, Fraction(1, 4)),
}


@pytest.mark.parametrize("name", RATES)
def test_the_rate_of_the_literature_is_in_the_interval_and_a_smaller_one_is_refuted(
    name: str,
) -> None:
    method, rate = RATES[name]
    found = klopt.worst_case(method, time_limit=100.0).require()
    assert found.lower <= rate <= found.upper
    assert found.relative_width <= 1e-9
    assert found.exceeds(rate * Fraction(99, 100))
    assert not found.at_most(rate * Fraction(99, 100))
    assert found.at_most(rate * Fraction(101, 100))


def test_the_certificate_is_accepted_and_an_altered_one_is_not(tmp_path: Path) -> None:
    found = klopt.worst_case(gradient_descent, time_limit=100.0)
    target = tmp_path / "proof.json"
    found.save(target)
    assert klopt.check(target).startswith("OPTIMAL")
    parts = json.loads(target.read_text(encoding="utf-8"))
    # A constant 1 % smaller than 1/6.
    parts["claim"]["upper"] = "0xa5/0x3e8"
    parts["claim"]["lower"] = "0xa4/0x3e8"
    with pytest.raises(klopt_check.Rejected):
        klopt_check.check(json.dumps(parts))


def test_the_proof_names_its_inequalities_and_adds_up() -> None:
    found = klopt.worst_case(gradient_descent, time_limit=100.0)
    text = found.proof()
    assert all(name in text for name in found.multipliers)
    program = found.program
    rows, b = program.exact_rows
    y = found.ends.y
    # A'y is the objective, in every variable, without rounding.
    total = [Fraction(0)] * program.size
    for row, weight in zip(rows, y, strict=True):
        for place, factor in row.items():
            total[place] += weight * factor
    assert total == program.exact_cost
    bound = sum((weight * right for weight, right in zip(y, b, strict=True)), Fraction(0))
    assert bound + program.objective.constant == found.ends.upper
    assert all(weight >= 0 for weight in y[program.equations : len(program.conditions)])


def test_the_example_satisfies_every_condition() -> None:
    found = klopt.worst_case(gradient_descent, time_limit=100.0)
    slack = found.program.slack(found.ends.x)
    assert all(value >= 0 for value in slack[: len(found.program.conditions)])
    value = sum(
        (c * x for c, x in zip(found.program.exact_cost, found.ends.x, strict=True)), Fraction(0)
    )
    assert value + found.program.objective.constant == found.ends.lower


def test_a_pep_is_judged_with_the_value_that_pepit_found() -> None:
    pep = gradient_descent()
    pep.solve(verbose=0)
    result = klopt.judge(pep, time_limit=100.0)
    assert result.verdict is klopt.Verdict.OPTIMAL
    assert "PEPit's value" in result.explain()
    # Another value than the one it found is not proven.
    pep.objective._value = 0.2
    assert klopt.judge(pep, time_limit=100.0).verdict is klopt.Verdict.UNPROVEN


def test_floats_are_read_as_the_short_fractions_that_they_round() -> None:
    assert short_fraction(1 / 3 + 1 / 3 + 1 / 3) == 1
    assert short_fraction(0.9**4) == Fraction(6561, 10000)
    assert short_fraction(0.5**0.5) == Fraction(0.5**0.5)


def test_what_is_no_pep_is_refused() -> None:
    with pytest.raises(klopt.InvalidProblem, match="needs a PEP of PEPit"):
        klopt.worst_case(3)
    with pytest.raises(klopt.InvalidProblem, match="no performance metric"):
        klopt.worst_case(PEP())


def test_only_the_last_pep_can_be_read() -> None:
    first = gradient_descent()
    gradient_descent()
    with pytest.raises(klopt.InvalidProblem, match="only the last PEP"):
        klopt.worst_case(first)
