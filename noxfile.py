#!/usr/bin/env -S uv run --script
# /// script
# dependencies = ["nox>=2025.2.9"]
# ///
"""What a change goes through, one session each: `nox -l` lists them, `nox -s lint` runs one.

`.ci/run` is the short way to the same: it needs nothing but a Python.
"""

from __future__ import annotations

from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_existing_virtualenvs = True

PYTHONS = ["3.11", "3.12", "3.13"]
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Run the tests, on each Python; arguments go to pytest: nox -s tests -- -m "not slow"."""
    session.install("-e", ".[test]")
    session.run("pytest", "-n", "2", *session.posargs, env=ONE_THREAD)


@nox.session
def lint(session: nox.Session) -> None:
    """Lint and check the format; spelling; the workflow."""
    session.install("ruff>=0.9.3", "codespell>=2.4", "zizmor>=1.5")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("codespell", ".")
    session.run("zizmor", "--offline", "--quiet", ".github")


@nox.session
def types(session: nox.Session) -> None:
    """Check the types, strictly."""
    session.install("-e", ".[test]")
    session.run("mypy")


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """Build the documentation; a warning is an error."""
    session.install("-e", ".[docs]")
    session.run(
        "sphinx-build",
        "-W",
        "--keep-going",
        "-b",
        "html",
        "docs",
        "docs/_build/html",
        *session.posargs,
    )


@nox.session(default=False)
def coverage(session: nox.Session) -> None:
    """Say which lines the quick tests leave out; nox -s coverage -- -m "" counts all tests."""
    session.install("-e", ".[test]", "coverage>=7.10")
    session.run("coverage", "erase")
    session.run(
        "coverage",
        "run",
        "-m",
        "pytest",
        "-n",
        "2",
        "-m",
        "not slow",
        *session.posargs,
        env=ONE_THREAD,
    )
    session.run("coverage", "combine", "--quiet")
    session.run("coverage", "report")


@nox.session(python="3.11", venv_backend="uv", default=False)
def oldest(session: nox.Session) -> None:
    """Run the quick tests with the oldest versions of all that pyproject.toml names."""
    session.install("-e", ".[test]", "--resolution", "lowest-direct")
    session.run("pytest", "-n", "2", "-m", "not slow", *session.posargs, env=ONE_THREAD)


@nox.session(default=False)
def installed(session: nox.Session) -> None:
    """Build the source archive and the wheel, and run the quick tests against the installed wheel."""
    dist = Path(session.create_tmp())
    session.install("build>=1.2")
    session.run("python", "-m", "build", "--outdir", str(dist), ".", silent=True)
    wheel = max(dist.glob("*.whl"), key=lambda path: path.stat().st_mtime)
    session.install("--force-reinstall", f"{wheel}[test]")
    # `pytest`, not `python -m pytest`: the folder it is called from stays off the path, so that the wheel is tested.
    session.run("pytest", "-n", "2", "-m", "not slow", *session.posargs, env=ONE_THREAD)


if __name__ == "__main__":
    nox.main()
