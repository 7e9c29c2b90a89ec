"""Comparisons that are handed on: tables, archives that are repeated, and archives that lie."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import klopt
from klopt.bench.archive import named_files, write_archive
from klopt.bench.comparison import Comparison
from klopt.bench.paper_tables import to_latex, to_markdown
from klopt.bench.replay import replay
from klopt.bench.test_sets import TEST_SETS, members
from klopt.errors import InvalidSettings

MODEL = """NAME          SMALL
ROWS
 N  COST
 G  NEED
COLUMNS
    X         COST            1.0   NEED            1.0
    Y         COST            2.0   NEED            1.0
RHS
    RHS       NEED            3.0
ENDATA
"""
COMMAND = "klopt compare data/small.mps --backend highs,clarabel --repeat 1 --time 20s"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a model, a store of two runs, and their archive `a.zip`."""
    folder = tmp_path_factory.mktemp("archive")
    (folder / "data").mkdir()
    (folder / "data" / "small.mps").write_text(MODEL, encoding="utf-8")
    with pytest.MonkeyPatch.context() as here:
        here.chdir(folder)
        klopt.compare(
            "data/small.mps",
            ["highs", "clarabel"],
            repeat=1,
            time_limit=20,
            store="runs.db",
            progress=False,
            command=COMMAND,
        )
        write_archive("runs.db", "a.zip")
        yield folder


def test_an_archive_holds_what_repeating_needs(made: Path) -> None:
    with zipfile.ZipFile(made / "a.zip") as archive:
        names = set(archive.namelist())
        manifest = json.loads(archive.read("manifest.json"))
        assert archive.read("data/0/small.mps").decode() == MODEL
        assert "numpy==" in archive.read("requirements.txt").decode()
        assert COMMAND in archive.read("checklist.md").decode()
    assert manifest["commands"] == [COMMAND]
    assert manifest["data"] == {"data/small.mps": "data/0/small.mps"}
    assert len([name for name in names if name.startswith("certificates/")]) == 2
    assert {"report.html", "table.tex", "table.md", "runs.csv", "runs.json"} <= names


def test_tables_for_papers(made: Path) -> None:
    runs = Comparison.load(made / "runs.db").runs
    latex = to_latex(runs)
    assert latex.count(r"\toprule") == latex.count(r"\bottomrule") == 1
    rows = [line for line in latex.splitlines() if "1 of 1" in line]
    assert len(rows) == 2
    assert all(line.count("&") == 4 and line.endswith(r"\\") for line in rows)
    assert sum(r"\textbf" in line for line in rows) >= 1
    markdown = to_markdown(runs).splitlines()
    assert all(line.count("|") == 6 for line in markdown[:4])


@pytest.mark.slow
def test_an_archive_is_repeated_with_the_same_verdicts(made: Path, tmp_path: Path) -> None:
    found = replay(made / "a.zip", tmp_path / "again")
    assert found.runs == 2
    assert found.holds

    # Of another computer: one verdict was UNPROVEN there, one run is of a solver that is not here.
    def altered(content: dict[str, Any]) -> None:
        content["runs"][0]["verdict"] = "UNPROVEN"
        content["runs"].append(content["runs"][1] | {"backend": "elsewhere"})

    other = _altered(made / "a.zip", tmp_path / "other.zip", "runs.json", altered)
    found = replay(other, tmp_path / "other")
    assert not found.holds
    assert [each.what.split(",")[0] for each in found.differences] == ["verdict UNPROVEN"]
    assert found.missing == ("small.mps, elsewhere on primal",)


def _altered(path: Path, target: Path, name: str, change: Callable[[dict[str, Any]], None]) -> Path:
    """A copy of an archive with one JSON file changed, and the digests made to fit."""
    with zipfile.ZipFile(path) as archive:
        contents = {each: archive.read(each) for each in archive.namelist()}
    content = json.loads(contents[name])
    change(content)
    contents[name] = json.dumps(content).encode()
    if name != "manifest.json":
        manifest = json.loads(contents["manifest.json"])
        manifest["sha256"][name] = hashlib.sha256(contents[name]).hexdigest()
        contents["manifest.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(target, "w") as archive:
        for each, text in contents.items():
            archive.writestr(each, text)
    return target


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("klopt solve data/small.mps", "is no command that is repeated"),
        ("rm -rf x", "is no command that is repeated"),
        ("", "is no command that is repeated"),
        ("klopt compare evil.py:problem", "look at it, then add --trust"),
        ("klopt compare LP --backend evil.py", "look at it, then add --trust"),
        ("klopt compare EVIL.PY:problem", "look at it, then add --trust"),
        ("klopt compare os:getcwd", "look at it, then add --trust"),
        ("klopt compare 'unclosed", "is no command: No closing quotation"),
    ],
)
def test_commands_of_strangers_are_not_run(
    made: Path, tmp_path: Path, command: str, text: str
) -> None:
    def change(content: dict[str, Any]) -> None:
        content["commands"] = [command]

    forged = _altered(made / "a.zip", tmp_path / "forged.zip", "manifest.json", change)
    with pytest.raises(InvalidSettings, match=text):
        replay(forged, tmp_path / "again")
    assert not (tmp_path / "again" / "runs.db").exists()


@pytest.mark.parametrize("name", ["data/../../x.mps", "data/0/../x", "data/a:b/x", "data/0/a\\b"])
def test_names_outside_the_folder_are_refused(made: Path, tmp_path: Path, name: str) -> None:
    def change(content: dict[str, Any]) -> None:
        content["sha256"][name] = hashlib.sha256(b"x").hexdigest()

    forged = _altered(made / "a.zip", tmp_path / "forged.zip", "manifest.json", change)
    with zipfile.ZipFile(forged, "a") as archive:
        archive.writestr(name, b"x")
    with pytest.raises(InvalidSettings, match="is no name of data"):
        replay(forged, tmp_path / "deep" / "again")
    assert not list(tmp_path.rglob("x*"))


def test_a_damaged_archive_is_an_error(made: Path, tmp_path: Path) -> None:
    whole = (made / "a.zip").read_bytes()
    for number, content in enumerate((b"", b"PK", whole[: len(whole) // 2], b"x" * 1000)):
        path = tmp_path / f"{number}.zip"
        path.write_bytes(content)
        with pytest.raises(InvalidSettings, match="is no archive of klopt"):
            replay(path, tmp_path / "again")
    with pytest.raises(InvalidSettings, match="no file"):
        replay(tmp_path / "none.zip", tmp_path / "again")

    def change(content: dict[str, Any]) -> None:
        content["sha256"]["runs.csv"] = "0" * 64

    forged = _altered(made / "a.zip", tmp_path / "forged.zip", "manifest.json", change)
    with pytest.raises(InvalidSettings, match=r"runs\.csv .* is not what its digest says"):
        replay(forged, tmp_path / "again")


def test_a_folder_with_files_is_not_written_to(made: Path) -> None:
    with pytest.raises(InvalidSettings, match="is not empty"):
        replay(made / "a.zip", made)


def test_files_that_a_command_writes_do_not_go_along(made: Path) -> None:
    assert list(named_files(f"{COMMAND} -o a.zip --store runs.db")) == ["data/small.mps"]
    assert list(named_files("klopt compare --suite netlib --data data")) == ["data"]


def test_members_of_test_sets(made: Path) -> None:
    assert members("netlib", made / "data") == [made / "data" / "small.mps"]
    assert len(members("cvxpy")) >= 20
    with pytest.raises(InvalidSettings, match="does not ship"):
        members("netlib")
    with pytest.raises(InvalidSettings, match="has no files that end in"):
        members("sdplib", made / "data")
    with pytest.raises(InvalidSettings, match="is no folder"):
        members("sdplib", made / "nowhere")
    with pytest.raises(InvalidSettings, match=f"there are: {', '.join(TEST_SETS)}"):
        members("other")
