"""A declared bound of x is part of what a program states."""

from __future__ import annotations

import numpy as np
import pytest

import klopt
from klopt.errors import InvalidProblem
from klopt.problems import LP, QCQP, SDP
from klopt.proof.certificate import Verdict


def test_an_unbounded_program_has_an_optimum_within_a_bound() -> None:
    free = LP([-1.0, 0.0], bounds=(None, None))
    assert klopt.solve(free).verdict is Verdict.UNBOUNDED
    within = LP([-1.0, 0.0], bounds=(None, None), within=10.0)
    result = klopt.solve(within)
    # min -x over ||(x, y)|| <= 10 is -10.
    assert result.verdict is not Verdict.UNBOUNDED
    assert result.lower <= -10.0 <= result.upper


def test_the_point_must_lie_within_the_bound() -> None:
    far = LP([1.0], A_ub=[[-1.0]], b_ub=[-5.0], within=2.0)
    result = klopt.solve(far)
    # No x >= 5 has |x| <= 2: nothing finite is proven from above.
    assert result.verdict not in (Verdict.OPTIMAL, Verdict.FEASIBLE, Verdict.UNBOUNDED)


def test_an_optimum_that_is_not_attained_gets_a_lower_bound() -> None:
    # min x subject to [[x, 1], [1, t]] psd is 0, not attained; within 100 it is 0.01 or more.
    F = [[[0, -1], [-1, 0]], np.diag([1.0, 0.0]), np.diag([0.0, 1.0])]
    result = klopt.solve(SDP([1.0, 0.0], F, within=100.0), time_limit=10)
    assert np.isfinite(result.lower)
    best = 0.01  # x t >= 1 with t <= 100; t < 100 where x > 0
    assert result.lower <= best * (1 + 1e-3)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan])
def test_a_bound_is_positive(bad: float) -> None:
    for make in (
        lambda: LP([1.0], within=bad),
        lambda: QCQP(None, [1.0], within=bad),
        lambda: SDP([1.0], [np.zeros((2, 2)), np.eye(2)], within=bad),
    ):
        with pytest.raises(InvalidProblem, match="within"):
            make()
