"""The commands that carry a comparison elsewhere: archive, replay."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import click

from klopt.cli.common import as_json as _json
from klopt.cli.comparisons import STORE

__all__ = ["archive", "replay"]


@click.command(short_help="Put a store of runs into one zip file that others repeat.")
@click.argument("store", metavar="RUNS.db", default=STORE)
@click.option("-o", "--output", required=True, metavar="FILE.zip", help="The file to be written.")
@_json
def archive(store: str, output: str, as_json: bool) -> None:
    """Write runs, certificates, tables, page, data, versions and a checklist to one zip file.

    Call it in the folder in which the comparison was made: files that its commands name go along.
    """
    from klopt.bench.archive import write_archive
    from klopt.engine.format import document, lines

    made = write_archive(store, output)
    if as_json:
        click.echo(document("archive", asdict(made)))
        return
    found = [
        ("archive", f"{made.path} ({made.bytes / 1000:.0f} kB)"),
        ("runs", str(made.runs)),
        ("proofs", str(made.certificates)),
        ("data", ", ".join(made.data) or "none: the commands name no files"),
    ]
    found += [("left out", text) for text in made.left_out]
    click.echo(lines([*found, ("repeat", f"klopt replay {made.path}")]))


@click.command(short_help="Repeat an archive here and say what differs.")
@click.argument("file", metavar="FILE.zip")
@click.option("--folder", metavar="FOLDER", help="Keep data and runs there.  [default: nowhere]")
@click.option("--trust", is_flag=True, help="Run Python files of the archive.")
@_json
def replay(file: str, folder: str | None, trust: bool, as_json: bool) -> None:
    """Repeat the commands of an archive, and compare versions, problems, verdicts and intervals.

    Exit code 0 if every run was made again with the same verdict and intervals that meet.
    """
    from klopt.bench.replay import replay as repeat
    from klopt.engine.format import document, lines
    from klopt.engine.words import counted

    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch) / "replay" if folder is None else Path(folder)
        found = repeat(file, place, trust=trust)
    if as_json:
        click.echo(document("replay", {**asdict(found), "holds": found.holds}))
    else:
        same = found.runs - len({(each.problem, each.route) for each in found.differences})
        rows = [("repeated", f"{counted(found.runs, 'run')}, {same} with the same verdict")]
        rows += [
            ("differs", f"{each.problem}, {each.route}: {each.what}") for each in found.differences
        ]
        rows += [("missing", text) for text in found.missing]
        rows += [("versions", text) for text in found.versions]
        click.echo(lines(rows))
    sys.exit(0 if found.holds else 1)
