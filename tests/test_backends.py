"""Every discovered backend through the conformance suite, one test a check."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from klopt.conformance.backend_checks import backend_checks
from klopt.conformance.checks import Status, run_check
from klopt.engine.registry import backends, broken
from klopt.model.backend import Backend

CASES = [
    pytest.param(backend, name, body, id=f"{backend.name}-{name}")
    for backend in backends()
    if not backend.missing
    for name, body in backend_checks(backend)
]


def test_nothing_is_broken() -> None:
    assert broken() == ()


@pytest.mark.parametrize(("backend", "name", "body"), CASES)
def test_backend(backend: Backend, name: str, body: Callable[[], None]) -> None:
    check = run_check(name, body, backend.exempt.get(name, ""))
    if check.status is Status.SKIPPED:
        pytest.skip(check.detail)
    assert check.ok, check.detail


@pytest.mark.parametrize("backend", backends(), ids=lambda backend: backend.name)
def test_exemptions_name_checks_that_exist(backend: Backend) -> None:
    assert set(backend.exempt) <= {name for name, _ in backend_checks(backend)}
