"""The optional backend PIQP, where its package is installed: `pip install "klopt[piqp]"`."""

from __future__ import annotations

import numpy as np
import pytest

import klopt
from klopt.engine.registry import backend_named
from klopt.errors import InvalidSettings
from klopt.model.cones import Cones
from klopt.model.forms import ConeForm
from klopt.problems import LP, QCQP

pytest.importorskip("piqp", reason='pip install "klopt[piqp]"')


def test_dependent_equations_are_no_trouble() -> None:
    # The point of x_1 + x_2 + x_3 = 3 nearest to 0, stated three times, is (1, 1, 1).
    A = np.array([[1.0, 1.0, 1.0]] * 3)
    problem = QCQP(np.eye(3), np.zeros(3), A_eq=A, b_eq=[3.0] * 3)
    result = klopt.solve(problem, "piqp")
    assert result.verdict.name == "OPTIMAL"
    assert result.lower <= 1.5 <= result.upper


def test_vacuous_rows_have_no_multiplier() -> None:
    form = ConeForm([1.0], [[1.0], [-1.0]], [np.inf, 2.0], Cones(nonneg=2))
    answer = backend_named("piqp").run(form, klopt.Settings())
    assert answer.x == pytest.approx([-2.0])
    assert answer.y == pytest.approx([0.0, 1.0])
    assert answer.y[0] == 0


@pytest.mark.parametrize("option", [("tau", "abc"), ("tau", -5.0), ("kkt_solver", "nope")])
def test_options_that_it_does_not_take_are_refused(option) -> None:
    name, value = option
    problem = LP([1.0, 1.0], A_ub=[[-1.0, -2.0]], b_ub=[-2.0])
    with pytest.raises(InvalidSettings, match=f"piqp refused the option.*{name}.*{value}"):
        klopt.solve(problem, "piqp", raw={name: value})
