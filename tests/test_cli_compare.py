"""`klopt compare` and the commands that read its store."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from processes import PATIENCE_S, soon
from strategies import TINY_LP

from klopt.bench.store import Store
from klopt.cli.main import main

NAPPER = """
import time
import klopt
class Napper(klopt.Backend):
    name, offers = "napper", frozenset({klopt.Feature.CONE})
    def run(self, form, settings, start=None):
        time.sleep(0 if form.c.size > 2 else 60)
        return klopt.Answer(klopt.Stop.STALLED)
BACKEND = Napper()
"""
TORN = """
from dataclasses import dataclass
import numpy as np
import klopt
from klopt.model.cones import Cones
@dataclass(frozen=True, eq=False)
class Gullible(klopt.Problem):
    c: np.ndarray
    def formulations(self):
        form = klopt.ConeForm(self.c, -np.eye(2), np.zeros(2), Cones(nonneg=2))
        return (klopt.Formulation("as given", frozenset({klopt.Feature.CONE}), lambda: form,
                                  lambda x, y: klopt.Point({"x": x})),)
    def bracket(self, point):
        return klopt.Bracket(float(self.c @ point.x), float(self.c @ point.x), point)
    @classmethod
    def sample(cls, rng, size):
        return cls(np.ones(2))
def torn():
    return Gullible(np.ones(2))
"""
TELLER = """
import numpy as np
import klopt
class Teller(klopt.Backend):
    name, offers = "NAME", frozenset({klopt.Feature.CONE})
    def run(self, form, settings, start=None):
        return klopt.Answer(klopt.Stop.OPTIMAL, np.full(form.c.size, ENTRY), np.zeros(form.b.size))
BACKEND = Teller()
"""
QUICK = ("--repeat", 1, "--time", "20s")


def klopt(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def process(*arguments: object, **options: Any) -> subprocess.Popen[str]:
    """Start the command in a process of its own, with its output piped."""
    words = [
        sys.executable,
        "-c",
        "from klopt.cli.main import main; main(prog_name='klopt')",
        *map(str, arguments),
    ]
    environment = {k: v for k, v in os.environ.items() if k not in {"COLUMNS", "FORCE_COLOR"}} | {
        "TERM": "xterm"
    }
    return subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, **options
    )


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "model.mps").write_text(TINY_LP)
    (tmp_path / "napper.py").write_text(NAPPER)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which one comparison was made, with its page; tests that write go into a copy."""
    folder = tmp_path_factory.mktemp("compared")
    (folder / "model.mps").write_text(TINY_LP)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = klopt("compare", "model.mps", "--backend", "highs", "-o", "page.html", *QUICK)
    assert done.exit_code == 0, done.output
    assert "page.html (" in done.stdout
    return folder


@pytest.fixture
def kept(compared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the folder with the comparison, to work in."""
    copy = tmp_path / "kept"
    shutil.copytree(compared, copy)
    monkeypatch.chdir(copy)
    return copy


def test_a_file_and_a_class_are_compared_and_the_runs_kept(place: Path) -> None:
    done = klopt(
        "compare",
        "model.mps",
        "SoftMargin",
        "--sizes",
        "6",
        "--backend",
        "highs",
        "--backend",
        "scs",
        *QUICK,
    )
    assert done.exit_code == 0, done.output
    for words in (
        "model.mps",
        "SoftMargin n=6",
        "highs",
        "scs",
        "OPTIMAL",
        "fastest",
        "4 in klopt-runs.db, 0 of them",
    ):
        assert words in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    with Store(place / "klopt-runs.db", read_only=True) as store:
        assert len(store.runs()) == 4


@pytest.mark.usefixtures("kept")
@pytest.mark.slow
def test_resume_does_what_is_missing_and_says_what_it_reuses() -> None:
    done = klopt(
        "compare", "model.mps", "--backend", "highs", "--backend", "scs", *QUICK, "--resume"
    )
    assert "2 in klopt-runs.db, 1 of them reused (highs 1)" in done.stdout
    done = klopt("compare", "model.mps", "--backend", "highs", *QUICK)
    assert "1 in klopt-runs.db, 0 of them reused" in done.stdout


def test_proofs_that_contradict_each_other_are_exit_code_1(place: Path) -> None:
    (place / "torn.py").write_text(TORN)
    for name, entry in (("one", "1.0"), ("two", "2.0")):
        (place / f"{name}.py").write_text(TELLER.replace("NAME", name).replace("ENTRY", entry))
    done = klopt("compare", "torn.py:torn", "--backend", "one.py", "--backend", "two.py", *QUICK)
    assert "do not overlap" in " ".join(done.stdout.split())
    assert done.exit_code == klopt("report").exit_code == 1


def test_json_is_one_document(place: Path) -> None:
    done = klopt("compare", "model.mps", "--backend", "highs", "--json", *QUICK)
    found = json.loads(done.stdout)
    assert (found["command"], len(found["runs"])) == ("compare", 1)
    assert found["runs"][0]["verdict"] == "OPTIMAL"
    assert found["best"] == {"model.mps": found["runs"][0]["key"]}
    assert found["agreement"]["model.mps"]["holds"] is True
    assert found["reused"] == []


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["modle.mps"], "did you mean 'model.mps'"),
        (["SoftMargn"], "did you mean 'SoftMargin'"),
        (["no_such_module:make"], "no module 'no_such_module'"),
        (["model.mps", "--backend", "hihgs"], "did you mean 'highs'"),
        (["model.mps", "--tol", "tight"], "is no list of tolerances"),
        (["model.mps", "--tol", "1e-6,7"], "tol is 7.0"),
        (["model.mps", "--time", "soon"], "is no duration"),
        (["model.mps", "--mem", "much"], "is no amount of memory"),
        (["SoftMargin", "--sizes", "2.5"], "is no list of sizes"),
        (["model.mps", "--store", "nowhere/runs.db"], "there is no folder 'nowhere'"),
        (["model.mps", "-o", "nowhere/page.html"], "there is no folder 'nowhere'"),
        (["model.mps", "--store", "model.mps"], "not a database"),
    ],
)
def test_a_bad_call_is_refused_before_anything_is_run(
    place: Path, arguments: list[str], text: str
) -> None:
    done = klopt("compare", *arguments)
    assert done.exit_code == 2
    assert text in " ".join(done.output.split())
    assert not (place / "klopt-runs.db.arrays").exists()


@pytest.mark.slow
def test_a_pipe_carries_results_only(place: Path) -> None:
    child = process("compare", "model.mps", "--backend", "highs", *QUICK)
    stdout, stderr = child.communicate(timeout=240)
    assert (child.returncode, stderr) == (0, "")
    assert "\x1b" not in stdout
    quiet = process("compare", "model.mps", "--backend", "highs", "--resume", "-q", *QUICK)
    assert quiet.communicate(timeout=240) == ("", "")


def test_the_page_is_written_and_named(kept: Path) -> None:
    assert klopt("report", "-o", "again.html").exit_code == 0
    for page in ("page.html", "again.html"):
        assert "model.mps" in (kept / page).read_text(encoding="utf-8")


def test_a_store_is_reported_exported_and_cited(kept: Path) -> None:
    assert "highs" in klopt("report").stdout
    told = json.loads(klopt("report", "--json").stdout)
    assert (told["command"], len(told["runs"])) == ("report", 1)
    (row,) = csv.DictReader(io.StringIO(klopt("export").stdout))
    assert (row["backend"], row["verdict"]) == ("highs", "OPTIMAL")
    assert json.loads(klopt("export", "--json").stdout)["runs"][0]["backend"] == "highs"
    assert klopt("export", "-o", "runs.csv").exit_code == 0
    assert (kept / "runs.csv").read_text() == klopt("export", "--csv").stdout
    assert "@" in klopt("cite").stdout
    assert klopt("export", "-o", "runs.xlsx").exit_code == 2
    assert klopt("export", "--parquet").exit_code == 2
    assert klopt("export", "--figure", "accuracy", "-o", "chart.svg").exit_code == 0
    assert (kept / "chart.svg").read_text().startswith("<svg")
    done = klopt("export", "--figure", "accurcy", "-o", "chart.svg")
    assert (done.exit_code, "this comparison has accuracy" in " ".join(done.output.split())) == (
        2,
        True,
    )
    assert "no store" in klopt("report", "other.db").output


def test_the_doctor_names_versions_and_threads() -> None:
    text = klopt("doctor").stdout
    assert all(word in text for word in ("klopt", "python", "blas", "threads"))
    assert json.loads(klopt("doctor", "--json").stdout)["findings"]


def test_a_full_disk_is_exit_code_1_and_says_how_to_go_on(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        done = klopt("compare", "model.mps", "--backend", "highs", *QUICK)
    assert done.exit_code == 1
    assert "the disk is full" in done.output
    assert "resume with: klopt" in done.output
    assert klopt("compare", "model.mps", "--backend", "highs", "--resume", *QUICK).exit_code == 0


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_ctrl_c_keeps_what_is_finished_and_says_how_to_go_on(place: Path) -> None:
    words = [
        "compare",
        "model.mps",
        "--backend",
        "highs",
        "--backend",
        "napper.py",
        "--repeat",
        3,
        "--seed",
        1,
    ]
    child = process(*words)
    store = place / "klopt-runs.db"
    assert soon(lambda: store.exists() and _count(store) >= 1)
    time.sleep(1.0)
    child.send_signal(signal.SIGINT)
    began = time.monotonic()
    stdout, stderr = child.communicate(timeout=60)
    # The backend would have slept for a minute.
    assert time.monotonic() - began < PATIENCE_S
    assert (child.returncode, stdout) == (130, "")
    assert "Traceback" not in stderr
    assert f"resume with: klopt {' '.join(map(str, words))} --resume" in stderr
    assert _count(store) >= 1


def _count(store: Path) -> int:
    try:
        with Store(store, read_only=True) as found:
            return len(found.keys())
    except Exception:  # it is being made
        return 0


# A page that is watched, and one that is opened


def test_a_page_that_is_watched_is_rewritten_as_runs_finish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page is there after the first run and asks to be loaded again; at the end it does not."""
    import webbrowser

    from klopt.cli import comparisons

    page = tmp_path / "page.html"
    seen: list[tuple[int, str]] = []

    def opened(address: str) -> bool:
        assert address == page.resolve().as_uri()
        return True

    class Watching(comparisons._LivePage):
        def __call__(self, so_far: Any) -> None:
            self.next = 0.0
            super().__call__(so_far)
            seen.append((len(so_far().runs), page.read_text(encoding="utf-8")))

    monkeypatch.setattr(webbrowser, "open", opened)
    monkeypatch.setattr(comparisons, "_LivePage", Watching)
    store = tmp_path / "r.db"
    asked = ("LP", "--backend", "highs", "--repeat", 3, "--time", "20s", "--store", store)
    done = klopt("compare", *asked, "-o", page, "--watch", "--open")
    assert done.exit_code == 0, done.output
    assert [count for count, _ in seen] == [1, 2, 3]
    assert all('http-equiv="refresh"' in text for _, text in seen)
    assert 'http-equiv="refresh"' not in page.read_text(encoding="utf-8")
    assert sorted(path.suffix for path in tmp_path.iterdir() if path.suffix == ".part") == []


def test_watching_needs_a_page() -> None:
    done = klopt("compare", "LP", "--watch")
    assert done.exit_code == 2
    assert "add -o FILE.html" in done.output


def test_problems_that_a_backend_takes_none_of_are_told_together(tmp_path: Path) -> None:
    asked = ("LP", "--sizes", "2,3,4,5", "--backend", "highs,libsvm", *QUICK)
    done = klopt("compare", *asked, "--store", tmp_path / "r.db")
    assert done.output.count("left out") == 1
    flat = " ".join(done.output.split())
    assert "no formulation of LP n=2, LP n=3, LP n=4 and 1 more is for libsvm" in flat
