"""Every Python snippet of the README and of `docs/` runs, in order, and prints what the text below it says.

A document is one script: its ```python blocks share their names, and each runs in a process of its
own, so that a backend registered in one document does not leak. A ```text block right below a
```python block is what that block prints; numbers differ from machine to machine, so only the words
and the layout of the numbers are compared.
"""

from __future__ import annotations

import multiprocessing
import re
from pathlib import Path

import pytest
from elsewhere import run_script
from source import ROOT

BUILT = (
    ROOT / "docs" / "_build",
    ROOT / "docs" / "auto_gallery",
    ROOT / "docs" / "reference" / "api",
)
DOCUMENTS = [
    ROOT / "README.md",
    *(
        path
        for path in sorted((ROOT / "docs").rglob("*.md"))
        if not any(path.is_relative_to(folder) for folder in BUILT)
    ),
]
NUMBER = re.compile(r"-?\b\d+(\.\d+)?(e[-+]?\d+)?\b|-?\binf\b")
MARK = "@@ line"
IMPORTED = [
    "klopt.bench.comparison",
    "klopt.learners.kernels",
    "klopt.engine.pipeline",
    "sklearn.datasets",
    "sklearn.model_selection",
]


def script(text: str) -> str:
    """Return the snippets as one script in which each line keeps its number; each block ends with a mark on stdout."""
    lines, inside = [], False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            lines.append(f"print('{MARK}', {number})" if inside else "")
            inside = line.strip() == "```python"
        else:
            lines.append(line if inside else "")
    return "\n".join(lines)


def promised(text: str) -> dict[int, str]:
    """Return what a block must print, by the line it ends on: the ```text block that follows it."""
    found: dict[int, str] = {}
    fence, end = "", 0  # the block that is open, the line where the last ```python block ended
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            if fence == "```python":
                end = number
            elif fence:
                end = 0
            fence = "" if fence else line.strip()
            if fence == "```text" and end:
                found[end] = ""
        elif fence == "```text" and end:
            found[end] += f"{line}\n"
        elif not fence and line.strip():
            end = 0
    return found


def by_line(stdout: str) -> dict[int, str]:
    """Return what each block printed, by the line it ends on."""
    pieces = re.split(rf"^{MARK} (\d+)\n", stdout, flags=re.MULTILINE)
    return {
        int(number): printed for printed, number in zip(pieces[::2], pieces[1::2], strict=False)
    }


def run_alone(copy: Path) -> tuple[int | None, str, str]:
    """Run a script in a process that has imported klopt and nothing more; return its exit code and what it printed."""
    # A fork of such a process starts at once; where there are no forks, each script imports klopt
    # anew.
    forks = "forkserver" in multiprocessing.get_all_start_methods()
    context = (
        multiprocessing.get_context("forkserver") if forks else multiprocessing.get_context("spawn")
    )
    context.set_forkserver_preload(IMPORTED)
    output, errors = copy.with_suffix(".out"), copy.with_suffix(".err")
    process = context.Process(target=run_script, args=(copy, output, errors))
    process.start()
    process.join(timeout=1800)
    process.kill()
    process.join()
    return process.exitcode, output.read_text(encoding="utf-8"), errors.read_text(encoding="utf-8")


def in_words(printed: str) -> list[str]:
    return NUMBER.sub("#", printed).split()


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=[] if path.parent == ROOT else [pytest.mark.slow], id=path.name)
        for path in DOCUMENTS
    ],
)
def test_snippets_run_and_print_what_they_promise(path: Path, tmp_path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if "```python" not in text:
        pytest.skip("no Python in it")
    copy = tmp_path / path.with_suffix(".py").name
    copy.write_text(script(text), encoding="utf-8")
    code, stdout, stderr = run_alone(copy)
    assert code == 0, stderr
    prints = by_line(stdout)
    for line, promise in promised(text).items():
        assert in_words(prints[line]) == in_words(promise), f"{path.name}:{line}"


def test_links_between_documents_lead_somewhere() -> None:
    broken = [
        f"{path.name}: {target}"
        for path in DOCUMENTS
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text(encoding="utf-8"))
        if "://" not in target and not (path.parent / target).exists()
    ]
    assert not broken


def test_nothing_is_promised_that_is_not_there() -> None:
    from klopt.engine.registry import backends, problems

    there = {backend.name for backend in backends()} | {problem.__name__ for problem in problems()}
    section = (
        (ROOT / "README.md")
        .read_text(encoding="utf-8")
        .partition("## What is there")[2]
        .partition("\n## ")[0]
    )
    rows = "\n".join(line for line in section.splitlines() if line.startswith("|"))
    named = set(re.findall(r"`(\w+)`", rows))
    assert len(named) > 30
    assert named <= there
