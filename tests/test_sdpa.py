"""The optional backend SDPA, where its package is installed: `pip install "klopt[sdpa]"`."""

from __future__ import annotations

import numpy as np
import pytest

import klopt

pytest.importorskip("sdpap", reason='pip install "klopt[sdpa]"')


def largest_eigenvalue(order: int) -> tuple[klopt.problems.SDP, float]:
    """Minimise t with tI - M psd, and what it is."""
    M = np.random.default_rng(order).normal(size=(order, order))
    M = (M + M.T) / 2
    return klopt.problems.SDP([1.0], [M, np.eye(order)]), float(np.linalg.eigvalsh(M)[-1])


@pytest.mark.parametrize("order", [2, 5, 20])
def test_it_finds_what_is_known_and_klopt_proves_it(order) -> None:
    problem, value = largest_eigenvalue(order)
    result = klopt.solve(problem, "sdpa", isolate=False)
    assert result.verdict.name == "OPTIMAL"
    assert result.lower - 1e-12 <= value <= result.upper + 1e-12


def test_an_infeasible_inequality_has_a_proof() -> None:
    problem = klopt.problems.SDP([1.0], [np.diag([1.0, 1.0]), np.diag([1.0, -1.0])])
    assert klopt.solve(problem, "sdpa", isolate=False).verdict.name == "INFEASIBLE"


def test_it_keeps_the_contract_but_for_its_exemptions() -> None:
    from klopt.engine.registry import backend_named

    checks = klopt.check_backend(backend_named("sdpa"), show=False)
    failed = [check.name for check in checks if not check.ok]
    assert not failed


def test_many_digits_are_a_variant_of_another_package() -> None:
    from importlib.metadata import PackageNotFoundError, version

    from klopt.engine.registry import backend_named

    precise = backend_named("sdpa:gmp")
    assert precise.name == "sdpa:gmp"
    try:
        version("sdpa-multiprecision")
    except PackageNotFoundError:
        assert precise.missing.startswith("sdpa-multiprecision is not installed; pip install")
        return
    problem, value = largest_eigenvalue(5)
    result = klopt.solve(problem, precise, isolate=False)
    assert result.verdict.name == "OPTIMAL"
    assert result.lower - 1e-12 <= value <= result.upper + 1e-12


def test_no_other_variant_exists() -> None:
    from klopt.engine.registry import backend_named
    from klopt.errors import InvalidSettings

    with pytest.raises(InvalidSettings, match="sdpa has no variant 'dd'; it has: gmp"):
        backend_named("sdpa:dd")
