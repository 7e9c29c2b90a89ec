"""The commands about certificates: check and certificates."""

from __future__ import annotations

import sys

import click

from klopt.cli.common import BadCall, as_json as _json

__all__ = ["certificates", "check"]


@click.command(short_help="Check certificates in exact arithmetic.")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option(
    "--problem",
    metavar="MODEL",
    help="The file they must be about: .mps .qps .lp .dat-s .cbf .npz.",
)
@_json
def check(files: tuple[str, ...], problem: str | None, as_json: bool) -> None:
    """Check certificates that `klopt solve --certificate FILE` has written, in exact arithmetic.

    Nothing is solved and no solver is trusted. With --problem the statement is derived from that
    file again and compared entry by entry with what the certificate states. Exit code 0 if each one
    proves its claim, 1 if one does not, 2 if a file cannot be read. `checker/klopt_check.py` does the
    same without klopt, and `checker/same_problem.py` for an MPS file.
    """
    from klopt.certificates.files import check as proven
    from klopt.engine.format import document, wrapped
    from klopt.engine.lookup import read_problem
    from klopt.errors import InvalidProblem

    given = None if problem is None else read_problem(problem, None, 0)
    found = []
    for file in files:
        try:
            if given is None or problem is None:
                says = proven(file)
            else:
                from klopt.certificates.restated import check_about

                says = check_about(file, given, problem)
            found.append({"file": file, "proven": True, "says": says})
        except InvalidProblem as error:
            found.append({"file": file, "proven": False, "says": str(error)})
        except OSError as error:
            raise BadCall(f"{file}: {error.strerror or error}") from error
    if as_json:
        click.echo(document("check", {"certificates": found}))
    else:
        for each in found:
            word = "proven" if each["proven"] else "REJECTED"
            click.echo(wrapped(f"{word}: {each['file']}: {each['says']}"))
    sys.exit(0 if all(each["proven"] for each in found) else 1)


@click.command(short_help="Write the certificates of a store of runs to a folder.")
@click.argument("store", metavar="RUNS.db")
@click.argument("folder", metavar="FOLDER")
@click.option("--vipr", is_flag=True, help="Those of linear programs, as VIPR 1.0 files.")
@_json
def certificates(store: str, folder: str, vipr: bool, as_json: bool) -> None:
    """Write one certificate for each certified run of a store, which anybody can check.

    The name of a file is the key of its run, with which `klopt export` lists it. Runs that have no
    certificate are named with the reason. Exit code 0 if at least one was written.
    """
    from klopt.bench.certificate_folder import write_certificates
    from klopt.engine.format import document, wrapped

    found = write_certificates(store, folder, vipr=vipr)
    if as_json:
        listed = [vars(each) for each in found.written]
        unwritten = [{"run": run, "reason": reason} for run, reason in found.unwritten]
        click.echo(document("certificates", {"written": listed, "unwritten": unwritten}))
    else:
        size = sum(each.bytes for each in found.written) / 1e6
        click.echo(wrapped(f"{len(found.written)} certificates ({size:.2g} MB) in {folder}"))
        for reason, runs in found.by_reason.items():
            names = ", ".join(runs[:3]) + (f" and {len(runs) - 3} more" if len(runs) > 3 else "")
            click.echo(wrapped(f"without: {names}: {reason}"))
    sys.exit(0 if found.written else 1)
