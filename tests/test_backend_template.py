"""The package that a third party copies is found by its entry point and passes the conformance suite as it stands."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from source import ROOT

TEMPLATE = ROOT / "examples" / "backend_template"


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder that looks as if the template had been installed into it."""
    project = tomllib.loads((TEMPLATE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    info = tmp_path / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    points = [
        f"[{group}]\n" + "".join(f"{name} = {where}\n" for name, where in names.items())
        for group, names in project["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join(points))
    for file in (TEMPLATE / "src").glob("*.py"):
        shutil.copy(file, tmp_path)
    return tmp_path


def test_template_passes_its_own_tests(installed: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(TEMPLATE)]
    done = subprocess.run(
        [*command, "-c", str(TEMPLATE / "pyproject.toml"), str(TEMPLATE / "tests")],
        cwd=installed,
        env={**os.environ, "PYTHONPATH": str(installed), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
