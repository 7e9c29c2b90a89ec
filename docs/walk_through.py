"""Runs every command of the README and the tutorials, in order, from a fresh clone.

    python docs/walk_through.py            writes docs/first-minutes.md with what was printed and how long it took

The clone is of the last commit, the environment is new, pip is told to be quiet. The tests, which
the README has as its second command, are left to continuous integration, which runs them in a fresh
clone of every change.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
TUTORIALS = (
    "certify-cvxpy",
    "certificates",
    "compare",
    "plug-in",
    "worst-cases",
    "verify",
    "few-labels",
    "learn",
)
SHOWN = 14
"""Lines of an output that are kept, half of them its first and half its last."""
TAKEN_FOR_GRANTED = {
    "model.mps": "import klopt; klopt.problems.LP(c=[1, 1], A_ub=[[-1, -2]], b_ub=[-2]).to_file('model.mps')",
    "my_theorems.py": "from pathlib import Path; Path('my_theorems.py').write_text(Path('verify.py').read_text())",
}
"""Files of one's own that the text speaks of, and a way to have one."""
HEAD = """# The first minutes

Written by `docs/walk_through.py`: every command of the README and the tutorials in order, in a fresh clone with a fresh
environment; never edited by hand. {summary} Long outputs are shortened.
"""


def blocks(text: str, language: str) -> list[str]:
    """Return the fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def commands(clone: Path) -> Iterator[tuple[str, str]]:
    """Return (document, command) in order; the Python of a document is one script of its name."""
    for path in (
        clone / "README.md",
        *(clone / "docs" / "tutorials" / f"{name}.md" for name in TUTORIALS),
    ):
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(clone).as_posix()
        shell = [
            line.partition(" #")[0].strip()
            for block in blocks(text, "sh")
            for line in block.splitlines()
        ]
        shell = [line for line in shell if line and "pytest" not in line]
        script = f"{path.stem.lower()}.py"
        (clone / script).write_text("\n".join(blocks(text, "python")), encoding="utf-8")
        first = shell if path.name == "README.md" else [line for line in shell if "pip " in line]
        then = [line for line in shell if line not in first]
        for line in (*first, f"python {script}", *then):
            for needed, code in TAKEN_FOR_GRANTED.items():
                if needed in line:
                    yield name, f'python -c "{code}"'
            yield name, line


def run(command: str, clone: Path, environment: Path) -> tuple[int, float, str]:
    """Return the exit code, the seconds and what was printed."""
    bin_folder = environment / ("Scripts" if os.name == "nt" else "bin")
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
    variables |= {
        "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
        "PIP_QUIET": "3",
        "COLUMNS": "80",
    }
    began = time.perf_counter()
    done = subprocess.run(
        command,
        shell=True,
        cwd=clone,
        env=variables,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return (
        done.returncode,
        time.perf_counter() - began,
        done.stdout.replace(str(clone), "klopt").replace(str(environment), "environment"),
    )


def shortened(text: str) -> list[str]:
    """Return the first and the last lines."""
    lines = text.rstrip().splitlines()
    half = SHOWN // 2
    return (
        lines
        if len(lines) <= SHOWN
        else [*lines[:half], f"... ({len(lines) - 2 * half} more)", *lines[-half:]]
    )


def main() -> int:
    """Walk through and write the page; return how many commands failed."""
    sections: dict[str, list[str]] = {}
    failed = 0
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder, "klopt")
        environment = Path(folder, "environment")
        subprocess.run(["git", "clone", "-q", str(HERE.parent), str(clone)], check=True)
        venv.create(environment, with_pip=True)
        for document, command in commands(clone):
            code, seconds, printed = run(command, clone, environment)
            print(f"{seconds:7.1f} s  exit {code}  {command}", flush=True)
            failed += code != 0
            outcome = f"{seconds:.1f} s" + (f", exit code {code}" if code else "")
            body = [
                f"*{outcome}*",
                "",
                "```console",
                f"$ {command}",
                *shortened(printed),
                "```",
                "",
            ]
            sections.setdefault(document, []).extend(body)
    count = sum(line.startswith("$ ") for lines in sections.values() for line in lines)
    summary = f"{count} commands, {count - failed} with exit code 0, {(time.perf_counter() - began) / 60:.1f} minutes."
    page = [HEAD.format(summary=summary)]
    for document, lines in sections.items():
        page += [f"## {document}", "", *lines]
    (HERE / "first-minutes.md").write_text("\n".join(page).rstrip() + "\n", encoding="utf-8")
    return failed


if __name__ == "__main__":
    sys.exit(main())
