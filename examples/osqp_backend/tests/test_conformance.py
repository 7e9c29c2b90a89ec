"""The backend passes klopt's conformance checks, and klopt finds it by its entry point."""

import pytest
from klopt_osqp import BACKEND

import klopt

pytest.importorskip("osqp", reason="OSQP is not installed: pip install osqp")

CHECKS = klopt.check_backend(BACKEND, show=False)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_conformance(check: klopt.Check) -> None:
    assert check.ok, check.detail


def test_klopt_finds_it() -> None:
    assert BACKEND.name in [backend.name for backend in klopt.backends()]
