"""An environment is told in full, the same way each time, and without naming anybody."""

from __future__ import annotations

import getpass
import os
import platform
import re
from dataclasses import fields, replace
from pathlib import Path

import pytest

import klopt
from klopt.bench import environment as module
from klopt.bench.environment import Environment, doctor, environment
from klopt.model.backend import Answer, Backend, Settings
from klopt.model.forms import Form, Start


def test_the_key_changes_with_every_field_and_with_nothing_else() -> None:
    here = environment()
    assert here.key == environment().key
    changed = {"cores": here.cores + 1, "backends": (*here.backends, ("new", "1"))}
    keys = {
        replace(here, **{field.name: changed.get(field.name, "other")}).key
        for field in fields(Environment)
    }
    assert len(keys | {here.key}) == len(fields(Environment)) + 1


def test_it_reads_back_what_it_wrote() -> None:
    here = environment()
    assert Environment.from_json(here.to_json()) == here


def test_versions_are_those_that_run() -> None:
    import numpy
    import scipy

    here = environment()
    assert (here.numpy, here.scipy) == (numpy.__version__, scipy.__version__)
    assert here.python.endswith(platform.python_version())
    assert ("clarabel", klopt.engine.registry.backend_named("clarabel").version) in here.backends
    assert 1 <= here.cores <= (os.cpu_count() or 1)


def test_nothing_names_the_user_the_machine_or_a_folder() -> None:
    text = "\n".join(f"{label} {value}" for label, value in doctor()) + environment().to_json()
    names = {platform.node(), str(Path.home()), str(Path(module.__file__).parents[2]), os.getcwd()}
    for name in names - {"", "/"}:
        assert not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)
    assert f"/{getpass.getuser()}" not in text


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (
            "cannot import name 'a' from 'b' (/home/ada/b.py)",
            "cannot import name 'a' from 'b' (b.py)",
        ),
        (r"DLL load failed: C:\Users\Ada\x\y.pyd", "DLL load failed: y.pyd"),
        ("No module named 'jaxlib'", "No module named 'jaxlib'"),
    ],
)
def test_folders_in_the_reason_of_a_broken_plug_in_are_left_out(said: str, shown: str) -> None:
    assert module._without_folders(said) == shown


class Absent(Backend):
    name = "absent_here"
    library = "no_such_library_at_all"
    offers = frozenset()

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        raise AssertionError


def test_the_doctor_names_what_is_missing_and_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "backends", lambda: (Absent(),))
    monkeypatch.setattr(
        module, "broken", lambda: (klopt.engine.registry.Broken("plug", "ImportError: /a/b/c.py"),)
    )
    said = doctor()
    assert (
        "missing",
        "absent_here: no_such_library_at_all is not installed; pip install no_such_library_at_all",
    ) in said
    assert ("broken", "plug: ImportError: c.py") in said


def test_the_doctor_tells_threads_load_limits_and_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    required = ["numpy>=2", 'no-such-package-at-all>=1; extra == "wish"', 'pytest; extra == "test"']
    monkeypatch.setattr(module.importlib.metadata, "requires", lambda name: required)
    said = doctor()
    labels = {label for label, _ in said}
    assert {"klopt", "python", "blas", "processor", "threads", "limits", "backends"} <= labels
    assert any("OMP_NUM_THREADS=7" in text for label, text in said if label == "threads")
    assert [text for label, text in said if label == "extra"] == [
        "wish: without no-such-package-at-all; pip install 'klopt[wish]'"
    ]
