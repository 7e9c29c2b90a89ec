"""The commands for authors of backends, problems and theorems: `new` and the checks.

Exit codes: 0 if the file was written or no check fails, 1 if a check fails, 2 for a bad call.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from klopt.cli.common import Commands, as_json as _json

if TYPE_CHECKING:
    from klopt.conformance.scaffold import PluginKind, Takes
    from klopt.conformance.suite import Check

__all__ = ["check_backend", "check_problem", "new"]

_package = click.option(
    "--package", is_flag=True, help="An installable package instead of one file."
)


@click.group(cls=Commands, short_help="Write a new backend, problem or theorem to start from.")
def new() -> None:
    """Write a file, or a package, that passes the conformance checks as it is.

    \b
    klopt new backend osqp        a backend that calls a library, in klopt_osqp.py
    klopt new problem my_problem  a problem, in klopt_my_problem.py
    klopt new theorem my_claim    a claim to be verified, in klopt_my_claim.py

    No existing file is overwritten. Backends and problems take --package, all --json.
    """


@new.command(short_help="Write a backend to start from.")
@click.argument("name")
@click.option(
    "--takes",
    type=click.Choice(["cone", "sets"]),
    default="cone",
    show_default=True,
    help="Cone programs, by a library, or functions over simple sets, by your own method.",
)
@_package
@_json
def backend(name: str, takes: Takes, package: bool, as_json: bool) -> None:
    """Write a backend called NAME to start from, here: klopt_NAME.py."""
    _new("backend", name, package, as_json, takes)


@new.command(short_help="Write a problem to start from.")
@click.argument("name")
@_package
@_json
def problem(name: str, package: bool, as_json: bool) -> None:
    """Write a problem called NAME to start from, here: klopt_NAME.py, with a class Name."""
    _new("problem", name, package, as_json)


@new.command(short_help="Write a theorem to start from.")
@click.argument("name")
@_json
def theorem(name: str, as_json: bool) -> None:
    """Write a claim called NAME to start from, here: klopt_NAME.py, for `klopt verify`."""
    _new("theorem", name, False, as_json)


def _new(kind: PluginKind, name: str, package: bool, as_json: bool, takes: Takes = "cone") -> None:
    from klopt.conformance.scaffold import scaffold
    from klopt.engine.format import document

    made = scaffold(kind, name, takes=takes, package=package)
    if as_json:
        paths = [path.as_posix() for path in made.files]
        click.echo(document("new", {"kind": kind, "files": paths, "commands": list(made.commands)}))
        return
    for path in made.files:
        click.echo(f"wrote {path.as_posix()}")
    commands = "\n".join(f"  {command}" for command in made.commands)
    click.echo(f"\nIt passes all checks as it is. Next:\n\n{commands}")


@click.command("check-backend", short_help="Run the conformance checks on a backend.")
@click.argument("name", metavar="NAME|FILE.py")
@_json
def check_backend(name: str, as_json: bool) -> None:
    """Run the conformance checks on a backend, by name or in a Python file.

    Each failure is explained. Exit code 1 if a check fails.
    """
    from klopt.conformance.suite import check_backend as run
    from klopt.engine.lookup import read_backend

    chosen = read_backend(name)
    assert chosen is not None
    _show("backend", chosen.name, run(chosen, show=False), as_json)


@click.command("check-problem", short_help="Run the conformance checks on a problem.")
@click.argument("name", metavar="NAME|FILE.py[:CLASS]")
@_json
def check_problem(name: str, as_json: bool) -> None:
    """Run the conformance checks on a problem class, by name or in a Python file.

    Each failure is explained. Exit code 1 if a check fails.
    """
    from klopt.conformance.suite import check_problem as run
    from klopt.engine.lookup import read_problem_class

    chosen = read_problem_class(name)
    _show("problem", chosen.__name__, run(chosen, show=False), as_json)


def _show(kind: PluginKind, who: str, checks: list[Check], as_json: bool) -> None:
    from klopt.conformance.suite import explain_checks
    from klopt.engine.format import document

    failed = [check for check in checks if not check.ok]
    if as_json:
        rows = [
            {"name": check.name, "status": check.status.value, "detail": check.detail}
            for check in checks
        ]
        click.echo(document(f"check-{kind}", {kind: who, "passed": not failed, "checks": rows}))
    else:
        click.echo(explain_checks(who, checks))
    sys.exit(1 if failed else 0)
