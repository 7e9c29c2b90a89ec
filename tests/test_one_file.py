"""A new problem is one file in `problems/`, a new backend one in `solvers/`: nothing else is edited.

What `klopt new` writes is moved into a copy of the repository. There everything that works by
discovery must pass: the tests that go through all problems, all backends or all modules.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from source import ROOT

DISCOVERY = {
    "test_api": "",
    "test_architecture": "",
    "test_backends": "toysolver or broken",
    "test_certify": "ToyProblem",
    "test_citations": "",
    "test_cli": "listed or list_",
    "test_docs": "",
    "test_doctests": "toy",
    "test_faults": "toysolver",
    "test_listing": "",
    "test_plan": "",
    "test_problems": "ToyProblem",
    "test_readme": "not snippets",
    "test_registry": "registry or rank",
    "test_report": "statement",
    "test_suite": "ToyProblem or every or labels",
    "test_traps": "toysolver",
}
"""The tests that find problems, backends or modules by themselves, and which of them to run.

All where that is quick; else those about the two new files, and those about all files at once.
"""


def python(copy: Path, *words: str) -> str:
    """Run Python where the `klopt` of the copy comes before the installed one."""
    done = subprocess.run(
        [sys.executable, *words],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def tracked_files() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if listed.returncode:
        pytest.skip("not a git repository: which files belong to it is not known")
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository with a new problem and a new backend in it."""
    copy = tmp_path_factory.mktemp("one_file") / "klopt"
    for name in tracked_files():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy / name, follow_symlinks=False)
    python(copy, "-m", "klopt", "new", "problem", "ToyProblem")
    python(copy, "-m", "klopt", "new", "backend", "toysolver")
    (copy / "klopt_toy_problem.py").rename(copy / "problems" / "toy_problem.py")
    (copy / "klopt_toysolver.py").rename(copy / "solvers" / "toysolver.py")
    return copy


@pytest.mark.slow
def test_the_copy_is_what_is_tested(copy: Path) -> None:
    where = "import klopt, klopt.problems.toy_problem as p; print(klopt.__file__, p.__file__)"
    assert python(copy, "-c", where).split() == [
        str(copy / "klopt" / "__init__.py"),
        str(copy / "problems" / "toy_problem.py"),
    ]


@pytest.mark.slow
def test_what_works_by_discovery_passes_with_the_two_new_files(copy: Path) -> None:
    files = [f"tests/{name}.py" for name in DISCOVERY]
    chosen = [f"({name} and ({which}))" if which else name for name, which in DISCOVERY.items()]
    options = ["-q", "-p", "no:cacheprovider", "-m", "not slow"]
    python(copy, "-m", "pytest", *options, "-k", " or ".join(chosen), *files)
    assert "toysolver" in python(copy, "-m", "klopt", "backends")
    assert "ToyProblem" in python(copy, "-m", "klopt", "problems")


@pytest.mark.slow
def test_no_other_file_was_touched(copy: Path) -> None:
    before = tracked_files()
    sources = (
        path
        for folder in ("klopt", "problems", "solvers")
        for path in copy.glob(f"{folder}/**/*.py")
    )
    added = {path.relative_to(copy).as_posix() for path in sources} - set(before)
    assert added == {"problems/toy_problem.py", "solvers/toysolver.py"}
    for name in before:
        assert (copy / name).read_bytes() == (ROOT / name).read_bytes()
