"""What `klopt new` writes passes the conformance checks as it is, and nothing is overwritten."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from source import ROOT

from klopt.cli.main import main
from klopt.conformance.scaffold import PluginKind, scaffold
from klopt.errors import InvalidSettings


def klopt(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [("backend", "mine"), ("backend", "mine", "--takes", "sets"), ("problem", "mine")],
    ids=" ".join,
)
def test_a_new_file_passes_its_checks_as_it_is(words: tuple[str, ...]) -> None:
    made = klopt("new", *words, "--json")
    assert made.exit_code == 0, made.output
    told = json.loads(made.stdout)
    assert told["files"] == ["klopt_mine.py"]
    check, use = (command.split()[1:] for command in told["commands"])
    done = klopt(*check)
    assert done.exit_code == 0, done.output
    assert f"{words[1] if words[0] == 'backend' else 'Mine'}: " in done.output
    if words[0] == "backend":
        assert klopt(*use).exit_code == 0
    else:
        assert klopt(*use, "--backend", "highs", "--repeat", 1, "--quiet").exit_code == 0


def test_a_new_theorem_holds_as_it_is(here: Path) -> None:
    made = klopt("new", "theorem", "my_claim", "--json")
    assert made.exit_code == 0, made.output
    told = json.loads(made.stdout)
    assert told["files"] == ["klopt_my_claim.py"]
    for command in told["commands"]:
        done = klopt(*command.split()[1:])
        assert done.exit_code == 0, done.output
    assert "my_claim  HOLDS" in done.output
    assert "Of 1 claim, 1 holds." in (here / "page.html").read_text(encoding="utf-8")


def test_the_claim_of_a_new_theorem_can_fail(here: Path) -> None:
    (file,) = scaffold("theorem", "mine").files
    text = file.read_text().replace("np.linalg.norm(b))", "np.linalg.norm(b) / 2)")
    file.write_text(text)
    done = klopt("verify", file, "--save", here)
    assert done.exit_code == 1
    assert "REFUTED" in done.output
    assert klopt("verify", file, "--case", here / "mine.json").exit_code == 1


def test_the_two_next_commands_are_printed(here: Path) -> None:
    done = klopt("new", "backend", "mine")
    assert done.output.splitlines()[0] == "wrote klopt_mine.py"
    assert done.output.splitlines()[-2:] == [
        "  klopt check-backend klopt_mine.py",
        "  klopt solve LP --backend klopt_mine.py",
    ]


def test_new_files_are_linted_and_formatted_as_klopt_is(here: Path) -> None:
    for kind, name, takes in (
        ("backend", "one", "cone"),
        ("backend", "two", "sets"),
        ("problem", "three", "cone"),
    ):
        scaffold(kind, name, takes=takes, package=True)  # type: ignore[arg-type]
    scaffold("theorem", "four")
    config = ["--config", str(ROOT / "pyproject.toml"), "--no-cache", str(here)]
    for command in (["check", "--ignore", "D103"], ["format", "--check"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, *config], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("package", [False, True], ids=["file", "package"])
def test_nothing_is_overwritten(here: Path, package: bool) -> None:
    made = scaffold("backend", "mine", package=package)
    made.files[0].write_text("my work")
    before = sorted(here.rglob("*"))
    with pytest.raises(InvalidSettings, match="exists; nothing was written"):
        scaffold("backend", "mine", package=package)
    assert made.files[0].read_text() == "my work"
    assert sorted(here.rglob("*")) == before


@pytest.mark.parametrize(
    ("kind", "name", "text"),
    [
        ("backend", "my-solver", r"'my-solver' is not a Python identifier.*try 'my_solver'"),
        ("backend", "3d", r"try 'my_3d'"),
        ("backend", "", r"try 'my_backend'"),
        ("backend", "../up", r"'../up' is not a Python identifier.*try 'up'"),
        ("backend", "_hidden", r"must start with a letter"),
        ("problem", "Größe", r"be ASCII"),
        ("backend", "class", r"'class' is a keyword of Python; try 'my_class'"),
        ("problem", "None", r"'None' is a keyword of Python"),
        ("backend", "MySolver", r"has capitals.*try 'my_solver'"),
        ("backend", "highs", r"there is a backend 'highs' already"),
        ("problem", "SoftMargin", r"there is a problem 'SoftMargin' already"),
        ("problem", "soft_margin", r"there is a problem 'SoftMargin' already"),
        ("problem", "lp", r"there is a problem 'Lp' already"),
        ("problem", "Point", r"'Point' is a name of klopt;"),
        ("backend", "answer", r"'Answer' is a name of klopt;"),
        ("theorem", "my-claim", r"try 'my_claim'"),
        ("theorem", "draw", r"there is a theorem 'draw' already"),
    ],
)
def test_a_bad_name_is_refused_with_a_better_one(
    here: Path, kind: PluginKind, name: str, text: str
) -> None:
    with pytest.raises(InvalidSettings, match=text):
        scaffold(kind, name)
    done = klopt("new", kind, "--", name)
    assert done.exit_code == 2
    assert "Traceback" not in done.output
    assert not list(here.iterdir())


def test_a_folder_that_cannot_be_written_is_a_bad_call(here: Path) -> None:
    (here / "file").touch()
    with pytest.raises(InvalidSettings, match="cannot be written"):
        scaffold("backend", "mine", folder=here / "file")


BROKEN_PROBLEM = "from klopt.problems import SoftMargin\nclass {}(SoftMargin):\n    {}\n"


def test_check_problem_says_what_fails_and_why(here: Path) -> None:
    wrong = "def bracket(self, point):\n        from klopt import Bracket\n        v = float(point.alpha.sum())\n"
    wrong += "        return Bracket(v, v, point)"
    (here / "mine.py").write_text(BROKEN_PROBLEM.format("Mine", wrong))
    done = klopt("check-problem", "mine.py")
    assert done.exit_code == 1
    assert "bracket_: lower <= optimum <= upper for any point" in done.output
    assert max(map(len, done.output.splitlines())) <= 80


@pytest.mark.parametrize(
    ("text", "word", "answer"),
    [
        (
            "x = 1",
            "mine.py",
            "mine.py holds no problem; write a class that inherits from klopt.Problem",
        ),
        ("1 / 0", "mine.py", "mine.py cannot be loaded: ZeroDivisionError"),
        ("", "yours.py", "no file 'yours.py'"),
        ("", "SoftMargn", "did you mean 'SoftMargin'?"),
        (
            BROKEN_PROBLEM.format("A", "pass") + BROKEN_PROBLEM.format("B", "pass"),
            "mine.py",
            "say which one: mine.py:A",
        ),
        (BROKEN_PROBLEM.format("A", "pass"), "mine.py:B", "mine.py holds A"),
    ],
    ids=["none", "raises", "no file", "typo", "two", "not that one"],
)
def test_a_file_without_the_problem_is_a_bad_call(
    here: Path, text: str, word: str, answer: str
) -> None:
    (here / "mine.py").write_text(text)
    done = klopt("check-problem", word)
    assert done.exit_code == 2
    assert answer in " ".join(done.output.split())


CRASHING = """
import klopt
class Mine(klopt.Backend):
    name, offers = "mine", frozenset({klopt.Feature.CONE})
    def run(self, form, settings, start=None):
        BODY
BACKEND = Mine()
"""


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        (
            "return form.colour",
            "AttributeError: 'ConeForm' object has no attribute 'colour' (mine.py, line 6: return",
        ),
        ("return 3", "run returned int; return a klopt.Answer"),
        (
            "return klopt.Answer(klopt.Stop.OPTIMAL, [1, 2])",
            "x is list; return an array of the shape (2,)",
        ),
        (
            "form.b[0] = 1",
            "the arrays of a form are read-only; give the library a copy: np.array(form.b)",
        ),
    ],
    ids=["raises", "no answer", "no array", "writes"],
)
def test_check_backend_says_where_a_backend_fails(here: Path, body: str, answer: str) -> None:
    (here / "mine.py").write_text(CRASHING.replace("BODY", body))
    done = klopt("check-backend", "mine.py")
    assert done.exit_code == 1
    assert answer in " ".join(done.output.split())
    assert max(map(len, done.output.splitlines())) <= 80


def test_a_backend_without_its_library_fails_once_with_what_to_install(here: Path) -> None:
    text = (
        CRASHING.replace('"mine", ', '"mine", ')
        .replace("BODY", "pass")
        .replace("    def", '    library = "nowhere"\n    def')
    )
    (here / "mine.py").write_text(text)
    done = klopt("check-backend", "mine.py")
    assert done.exit_code == 1
    assert "nowhere is not installed; pip install nowhere" in done.output
    assert "mine: 1 failed" in done.output


def installed(project: Path, folder: Path) -> Path:
    """A folder that looks as if the project had been installed into it."""
    about = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    info = folder / f"{about['name'].replace('-', '_')}-{about['version']}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {about['name']}\nVersion: {about['version']}\n"
    )
    points = [
        f"[{group}]\n" + "".join(f"{name} = {where}\n" for name, where in names.items())
        for group, names in about["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join(points))
    for file in (project / "src").glob("*.py"):
        shutil.copy(file, folder)
    return folder


def passes_its_tests(project: Path, folder: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(project),
    ]
    done = subprocess.run(
        [*command, "-c", str(project / "pyproject.toml"), str(project / "tests")],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(installed(project, folder)),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["backend", "problem"])
def test_a_new_package_is_found_by_its_entry_point_and_passes_its_tests(
    here: Path, kind: PluginKind
) -> None:
    made = scaffold(kind, "mine", package=True)
    assert made.commands == ('pip install -e "./klopt-mine[test]"', "pytest klopt-mine")
    passes_its_tests(here / "klopt-mine", here / "installed")


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("osqp") is None, reason="OSQP is not installed: pip install osqp"
)
def test_the_example_package_is_found_by_its_entry_point_and_passes_its_tests(here: Path) -> None:
    passes_its_tests(ROOT / "examples" / "osqp_backend", here / "installed")


def test_the_example_is_what_the_command_writes(tmp_path: Path) -> None:
    made = scaffold("backend", "projected_gradient", takes="sets", package=True, folder=tmp_path)
    home = tmp_path / "klopt-projected-gradient"
    written = {path.relative_to(home): path.read_text(encoding="utf-8") for path in made.files}
    example = ROOT / "examples" / "backend_template"
    assert written == {path: (example / path).read_text(encoding="utf-8") for path in written}
