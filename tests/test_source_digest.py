"""An edited backend or problem is another version: its runs are neither reused nor pooled with the old ones."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import klopt
from klopt.bench.comparison import Comparison, compare
from klopt.bench.digest import digest
from klopt.bench.source_digest import source_digest
from klopt.bench.trials import trials
from klopt.engine.lookup import read_backend, read_problem_class
from klopt.engine.registry import backend_named

LP = klopt.problems.LP([1.0, 2], A_ub=[[-1, -1]], b_ub=[-5])
BACKEND = '''
"""HiGHS by another name."""
from dataclasses import replace
from klopt import Backend, Feature
from klopt.engine.registry import backend_named
{helper}

class Own(Backend):
    name, offers, honours = "own", frozenset({{Feature.CONE}}), frozenset({{"tol", "time_limit"}})

    def run(self, form, settings, start=None):
        answer = backend_named("highs").run(form, settings, start)
        return replace(answer, native="{native}")

BACKEND = Own()
'''


def source_of(path: Path) -> str:
    backend = read_backend(str(path))
    assert backend is not None
    return source_digest(type(backend))


def written(path: Path, native: str = "as it was", helper: str = "") -> Path:
    path.write_text(BACKEND.format(native=native, helper=helper))
    return path


def test_an_edited_backend_file_is_another_version_and_two_routes(tmp_path: Path) -> None:
    """Two versions used to be pooled as repeats of one route."""
    file = tmp_path / "own.py"
    store = tmp_path / "runs.db"
    options = {"store": store, "repeat": 1, "time_limit": 20, "progress": False}
    first = compare(LP, str(written(file, "as it was")), **options)  # type: ignore[arg-type]
    again = compare(LP, str(written(file, "as it was")), **options)  # type: ignore[arg-type]
    assert again.reused == {first.runs[0].key}
    edited = compare(LP, str(written(file, "edited since")), **options)  # type: ignore[arg-type]
    assert not edited.reused

    old, new = (each.runs[0] for each in (first, edited))
    assert old.version == new.version
    assert old.source != new.source
    both = Comparison.load(store)
    assert {run.backend for run in both.runs} == {
        f"own ({old.source[:8]})",
        f"own ({new.source[:8]})",
    }
    assert [len(trial.runs) for trial in trials(both.runs)] == [1, 1]
    assert len(both.scores) == 2
    assert f"own ({new.source[:8]})" in both.table()


def test_another_version_of_a_library_is_another_route_with_its_references(tmp_path: Path) -> None:
    from dataclasses import replace

    from klopt.bench.citations import bibtex
    from klopt.bench.store import Store
    from klopt.bench.worker import FinishedRun

    (run,) = compare(LP, "highs", repeat=1, time_limit=20, store=tmp_path / "runs.db").runs
    with Store(tmp_path / "runs.db") as store:
        store.add(FinishedRun(replace(run, key="older", version="0.1")))
    both = Comparison.load(tmp_path / "runs.db").runs
    assert {each.backend for each in both} == {f"highs ({run.version})", "highs (0.1)"}
    assert bibtex(both) == bibtex([run])


def test_a_comment_in_the_file_counts_and_the_time_of_a_copy_does_not(tmp_path: Path) -> None:
    plain = source_of(written(tmp_path / "own.py"))
    assert source_of(written(tmp_path / "own.py")) == plain
    assert source_of(written(tmp_path / "own.py", helper="# why")) != plain


def test_a_file_that_the_backends_file_imports_counts_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    helper = tmp_path / "helper_of_own.py"
    found = []
    for text in ("STEP = 1\ndef step(): return STEP\n", "STEP = 2\ndef step(): return STEP\n"):
        helper.write_text(text)
        sys.modules.pop("helper_of_own", None)
        importlib.invalidate_caches()
        found.append(
            source_of(written(tmp_path / "own.py", helper="from helper_of_own import step"))
        )
    assert found[0] != found[1]


SCRIPT = """
{helper}
from klopt import Backend, Feature
from klopt.bench.source_digest import source_digest
class Own(Backend):
    name, offers = "own", frozenset({{Feature.CONE}})
    def run(self, form, settings, start=None):
        return helped(form, {constant})
print(source_digest(Own))
{rest}
"""


def of_script(folder: Path, *, prompt: bool = False, **parts: str) -> str:
    """The digest of a class in a script, or in a text without a file."""
    helper = "STEP = 1\ndef helped(form, x): return x + STEP"
    code = SCRIPT.format(**{"helper": helper, "constant": "1.0", "rest": "", **parts})
    (folder / "script.py").write_text(code)
    call = ["-c", code] if prompt else [str(folder / "script.py")]
    done = subprocess.run([sys.executable, *call], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize("prompt", [False, True])
def test_a_class_of_a_script_counts_with_what_its_methods_name(
    prompt: bool, tmp_path: Path
) -> None:
    plain = of_script(tmp_path, prompt=prompt)
    assert len(plain) == 16
    assert of_script(tmp_path, prompt=prompt, rest="print(3)").split()[0] == plain
    assert of_script(tmp_path, prompt=prompt, constant="2.0") != plain
    for helper in (
        "STEP = 1\ndef helped(form, x): return x - STEP",
        "STEP = 2\ndef helped(form, x): return x + STEP",
    ):
        assert of_script(tmp_path, prompt=prompt, helper=helper) != plain


def test_a_shipped_backend_counts_by_its_library_and_its_file() -> None:
    highs, clarabel = backend_named("highs"), backend_named("clarabel")
    assert len(source_digest(type(highs))) == 16
    assert source_digest(type(highs)) != source_digest(type(clarabel))
    # Problems of klopt count by its version: proofs do not depend on who found the point.
    assert source_digest(type(LP)) == ""


PROBLEM = '''
"""A linear program by another name."""
from klopt.problems import LP

class OwnProgram(LP):
    """{words}"""
'''


def test_an_edited_problem_of_ones_own_is_another_problem(tmp_path: Path) -> None:
    found = []
    for words in ("One.", "Another."):
        (tmp_path / "own_problem.py").write_text(PROBLEM.format(words=words))
        kind = read_problem_class(f"{tmp_path / 'own_problem.py'}:OwnProgram")
        found.append(digest(kind([1.0, 2], A_ub=[[-1, -1]], b_ub=[-5])))  # type: ignore[call-arg]
    assert found[0] != found[1]
