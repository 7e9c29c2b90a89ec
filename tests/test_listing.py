"""The lists of backends and problems name what is missing or broken, and why, and go on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import pytest
from bad_backends import Liar

import klopt
from klopt.cli.listings import (
    print_backend,
    print_backends,
    print_problem,
    print_problems,
    problem_data,
)
from klopt.conformance.instances import FormProblem
from klopt.engine.format import backend_data
from klopt.engine.registry import Broken, backends
from klopt.model.backend import Backend


class Absent(Liar):
    """Its library is nowhere."""

    name, library = "absent", "no_such_solver"


class Shattered(Liar):
    """Its library is there and cannot be loaded."""

    name, library = "shattered", "shattered_library"


@dataclass(frozen=True, eq=False, repr=False)
class Sampleless(FormProblem):
    """A problem that cannot make an instance of itself."""

    @classmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        raise ValueError("no sample today")


def said(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().out.split())


def test_a_missing_and_a_broken_backend_are_listed_with_the_reason(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_backends([Liar(), Absent()], [Broken("torn", "RuntimeError: licence expired")])
    text = said(capsys)
    assert "absent" in text
    assert "not installed" in text
    assert "absent: no_such_solver is not installed; pip install" in text
    assert "torn: RuntimeError: licence expired" in text


def test_a_backend_says_of_itself_that_its_library_is_missing_or_fails_to_load(
    capsys: pytest.CaptureFixture[str], tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    print_backend(Absent())
    assert "status not installed: no_such_solver is not installed" in said(capsys)
    (tmp_path / "shattered_library.py").write_text("raise ImportError('libfoo.so.3: cannot open')")
    monkeypatch.syspath_prepend(tmp_path)
    print_backend(Shattered())
    assert "status broken: ImportError: libfoo.so.3: cannot open" in said(capsys)


def test_a_problem_whose_sample_fails_is_listed_with_the_reason(
    capsys: pytest.CaptureFixture[str],
) -> None:
    reason = "its sample fails: ValueError: no sample today"
    assert problem_data(Sampleless)["broken"] == reason
    print_problem(Sampleless)
    assert f"broken {reason}" in said(capsys)
    print_problems([Sampleless, klopt.problems.LP], [Broken("torn", "SystemExit: 3")])
    text = said(capsys)
    assert "its sample fails: ValueError" in text
    assert "broken: torn: SystemExit: 3" in text


@pytest.mark.parametrize("backend", backends(), ids=lambda backend: backend.name)
def test_every_backend_takes_something(
    backend: Backend, capsys: pytest.CaptureFixture[str]
) -> None:
    assert any(backend_data(backend)["takes"].values())
    print_backend(backend)
    assert "takes -" not in said(capsys)


def test_the_list_of_backends_fits_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    print_backends([*backends(), Absent()], [])
    rows = capsys.readouterr().out.partition("\n\n")[0].splitlines()
    assert len(rows) == len(backends()) + 2
