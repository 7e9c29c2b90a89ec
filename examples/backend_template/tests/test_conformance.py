"""The backend passes klopt's conformance checks, and klopt finds it by its entry point."""

import pytest
from klopt_projected_gradient import BACKEND

import klopt

CHECKS = klopt.check_backend(BACKEND, show=False)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_conformance(check: klopt.Check) -> None:
    assert check.ok, check.detail


def test_klopt_finds_it() -> None:
    assert BACKEND.name in [backend.name for backend in klopt.backends()]
