"""What a release is made of agrees: versions, dependencies, citations, and what its owner fills in."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest
from source import ROOT

PLACEHOLDERS = ("pyproject.toml", "CITATION.cff", "conda/meta.yaml")
"""Where OWNER stands for the owner of the repository."""


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    loaded: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return loaded["project"]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def names_and_bounds(requirements: list[str]) -> set[tuple[str, str]]:
    """Names in lower case and the oldest versions."""
    found = [re.match(r"([\w.-]+?) *>=([\d.]+)", requirement) for requirement in requirements]
    return {(match[1].lower(), match[2]) for match in found if match}


def test_one_version(project: dict[str, Any]) -> None:
    version = project["version"]
    assert f"version: {version}\n" in read("CITATION.cff")
    assert f'set version = "{version}"' in read("conda/meta.yaml")


def test_the_conda_recipe_has_the_dependencies_of_the_project(project: dict[str, Any]) -> None:
    run = read("conda/meta.yaml").partition("  run:\n")[2].partition("\ntest:")[0]
    recipe = names_and_bounds(re.findall(r"- (.+)", run)) - {("python", "3.11")}
    # CVXPY without its solvers is a package of its own there; ECOS is optional.
    expected = {
        ("cvxpy-base" if name == "cvxpy" else name, bound)
        for name, bound in names_and_bounds(project["dependencies"])
        if name != "ecos"
    }
    assert recipe == expected


def test_what_the_paper_cites_is_in_its_bibliography_and_nothing_else() -> None:
    cited = set(re.findall(r"@(\w+)", read("paper.md").partition("\n# Summary")[2]))
    assert cited == set(re.findall(r"^@\w+\{(\w+),", read("paper.bib"), re.MULTILINE))


def test_the_owner_is_to_be_filled_in_where_the_list_says_and_nowhere_else() -> None:
    files = [*ROOT.glob("*.*"), *(ROOT / "conda").iterdir(), *(ROOT / "docs").glob("*.md")]
    # A store of runs in the same folder is no text.
    files = [path for path in files if not path.name.startswith("klopt-runs.db")]
    found = {
        str(path.relative_to(ROOT))
        for path in files
        if path.is_file() and "OWNER" in path.read_text(encoding="utf-8")
    }
    assert found == set(PLACEHOLDERS)
