"""The documentation: generated pages are what their sources say, and the whole site is built without a warning.

The snippets of all pages are run by `test_readme.py`.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

import pytest
from source import MODULES, ROOT
from test_readme import DOCUMENTS, promised

import klopt

DOCS = ROOT / "docs"
NEEDED = (
    "sphinx",
    "myst_parser",
    "pydata_sphinx_theme",
    "sphinx_gallery",
    "sphinx_design",
    "matplotlib",
)


def loaded(path: Path) -> ModuleType:
    """A script beside the pages, or an extension of Sphinx, as a module."""
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def names_of_tests(path: Path) -> set[str]:
    """The names of the functions and classes of a file of tests."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }


TESTS_IN_PROSE = re.compile(
    r"(?:`(tests/\w+\.py)(?:`:\s+`|::)|`)((?:(?:test_|Test[A-Z])\w+`(?:,\s+`(?=[tT]est[_A-Z]))?)+)"
)
"""`tests/FILE.py`: `test_a`, `test_b`; or `tests/FILE.py::test_a`; or `test_a`, `test_b`."""


@pytest.mark.parametrize("name", ["SECURITY.md", "docs/hardening.md"])
def test_what_is_said_to_be_tested_is_tested_by_what_is_named(name: str) -> None:
    known = {
        f"tests/{path.name}": names_of_tests(path) for path in (ROOT / "tests").glob("test_*.py")
    }
    text = (ROOT / name).read_text(encoding="utf-8")
    files = set(re.findall(r"tests/test_\w+\.py", text))
    assert files <= known.keys()
    named = 0
    wrong = []
    for section in re.split(r"^##+ ", text, flags=re.MULTILINE):
        # A section says where its tests are; else a file stands before their names, or any will do.
        home = re.search(r"in\s+`(tests/\w+\.py)`(?:\.| where no other)", section)
        expected = known[home[1]] if home else set().union(*known.values())
        for file, tests in TESTS_IN_PROSE.findall(section):
            found = known[file] if file else expected
            names = re.findall(r"\w+", tests)
            named += len(names)
            wrong += [test for test in names if test not in found]
    assert wrong == []
    assert named or not files


@pytest.mark.parametrize(
    "use",
    [
        "certify-cvxpy",
        "certificates",
        "compare",
        "plug-in",
        "worst-cases",
        "verify",
        "few-labels",
        "learn",
    ],
)
def test_each_use_has_a_tutorial_that_runs(use: str) -> None:
    page = DOCS / "tutorials" / f"{use}.md"
    assert page in DOCUMENTS
    text = page.read_text(encoding="utf-8")
    assert text.count("```python") >= 4
    assert (
        len(promised(text)) >= text.count("```python") - 1
    )  # what is printed stands below the block


def test_the_performance_pages_are_what_the_benchmarks_printed() -> None:
    writer = loaded(DOCS / "write_performance.py")
    written = {
        "performance.md": writer.page(),
        "goals.md": writer.goals(),
        "performance/bars.svg": writer.bars(),
    }
    for name, text in written.items():
        assert text == (DOCS / name).read_text(encoding="utf-8"), "python docs/write_performance.py"


def test_the_page_of_what_solvers_say_is_written_from_what_was_measured() -> None:
    writer = loaded(DOCS / "write_honesty.py")
    text = (DOCS / "honesty.json").read_text(encoding="utf-8")
    content = json.loads(text, object_hook=writer.with_numbers)
    assert len(content["versions"]) >= 10
    assert writer.page(content) == (DOCS / "honesty.md").read_text(encoding="utf-8"), (
        "python docs/write_honesty.py"
    )


def test_rows_of_benchmarks_are_read() -> None:
    rows = loaded(DOCS / "write_performance.py").rows
    long = f"PASS  {'a long name of an instance':21} {'CVXPY to 1e-6':30} {1234.5:9.4g} {'>= 5':>9}   0.1 s"
    short = f"FAIL  {'n = 200':21} {'one SVC fit':30} {2.25:9.4g} {'>= 5':>9}   118 steps"
    first, second = rows(f"{long}\n{short}")
    assert (first.passed, first.instance, first.baseline) == (
        True,
        "a long name of an instance",
        "CVXPY to 1e-6",
    )
    assert (first.figure, first.goal, first.remarks) == (1234, 5, "0.1 s")
    assert (second.passed, second.instance, second.baseline) == (False, "n = 200", "one SVC fit")
    assert (second.figure, second.goal, second.remarks) == (2.25, 5, "118 steps")


def test_the_picture_of_the_architecture_shows_the_folders_and_nothing_else() -> None:
    picture = (DOCS / "architecture.svg").read_text(encoding="utf-8")
    drawn = set(re.findall(r'class="t">([^<]*)<', picture))
    folders = {name.split(".")[1] for name in MODULES if MODULES[name].is_package and "." in name}
    assert drawn == folders | {"arrays, errors"}, "python docs/write_architecture.py"


def test_no_folder_of_the_architecture_leads_back() -> None:
    drawn = loaded(DOCS / "write_architecture.py")
    rows = drawn.levels(drawn.imports())
    height = {folder: -level for level, row in enumerate(rows) for folder in row}
    imports = drawn.imports()
    assert all(
        height[folder] > height[target] for folder, targets in imports.items() for target in targets
    )


def test_plain_docstrings_keep_their_signs() -> None:
    pytest.importorskip("sphinx", reason="sphinx is not installed; pip install -e '.[docs]'")
    restructured = loaded(DOCS / "_ext" / "plain_docstrings.py").restructured
    text = ["With |y| in K* and `names`:", "", "    x'Px/2", "", "- one", "  two", "", ">>> 1", "1"]
    made = "\n".join(restructured(text))
    assert (
        made
        == "With \\|y\\| in K\\* and ``names``:\n\n::\n\n        x'Px/2\n\n- one\n  two\n\n>>> 1\n1\n"
    )


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    for name in NEEDED:
        pytest.importorskip(name, reason=f"{name} is not installed; pip install -e '.[docs]'")
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(
        DOCS, tmp_path / "docs", ignore=shutil.ignore_patterns("_build", "auto_gallery")
    )
    built = tmp_path / "html"
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", str(tmp_path / "docs"), str(built)],
        env={**os.environ, "KLOPT_DOCS_GALLERY": "0"},  # the examples are run by the real build
        capture_output=True, text=True, timeout=1800,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    reference = "".join(
        page.read_text(encoding="utf-8") for page in (built / "reference").rglob("*.html")
    )
    names = {name for name in dir(klopt) if not name.startswith("__")} - {"problems", "learners"}
    assert not [name for name in names if f'id="klopt.{name}"' not in reference]
    assert "<math" in (built / "concepts" / "verdicts.html").read_text(encoding="utf-8")
    pages = {page: page.read_text(encoding="utf-8") for page in built.rglob("*.html")}
    fetched = re.compile(r'<(?:script|link|img)\b[^>]*(?:src|href)="(?:https?:)?//')
    assert not [page.name for page, text in pages.items() if fetched.search(text)]
    # Listings of source code, which viewcode makes, name some types by the module they are shown in.
    written = {page: text for page, text in pages.items() if "_modules" not in page.parts}
    assert broken_links(written) == []


def broken_links(pages: dict[Path, str]) -> list[str]:
    """Links inside the site to a file or a place that is not there."""
    places = {page: set(re.findall(r'\bid="([^"]+)"', text)) for page, text in pages.items()}
    broken = []
    for page, text in pages.items():
        for target in re.findall(r'<a\b[^>]*\bhref="([^"]*)"', text):
            if re.match(r"[a-z]+:", target) or target in ("", "#"):
                continue
            name, _, place = unquote(target).partition("#")
            file = (page.parent / name).resolve() if name else page
            if not file.exists() or (place and file in places and place not in places[file]):
                broken.append(f"{page.name}: {target}")
    return broken


def test_a_link_to_a_place_that_is_not_there_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    text = '<p id="here"><a href="#here"></a><a href="#away"></a><a href="no.html"></a></p>'
    page.write_text(text, encoding="utf-8")
    assert broken_links({page: text}) == ["page.html: #away", "page.html: no.html"]
