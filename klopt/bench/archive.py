"""A comparison as one zip file that another computer repeats: what a paper hands to its readers.

manifest.json       versions, commands, the digest of every problem and of every file below
README.txt          what this is and how to repeat it
checklist.md        a reproducibility checklist, filled in from the runs
requirements.txt    all installed packages, as pip reads them
runs.json, runs.csv all runs
table.tex, table.md who proves the gap on which class of problems
report.html         the page
certificates/       a proof of each certified run that has one
data/               the files that the commands name
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import shlex
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

from klopt.bench.certificate_folder import write_certificates
from klopt.bench.comparison import Comparison
from klopt.bench.environment import Environment, environment
from klopt.bench.export import to_csv, to_json
from klopt.bench.paper_tables import to_latex, to_markdown
from klopt.bench.record import Run
from klopt.bench.store import Store, check_writable
from klopt.bench.test_sets import TEST_SETS
from klopt.errors import InvalidSettings

__all__ = ["MANIFEST", "SCHEMA", "WrittenArchive", "named_files", "write_archive"]

SCHEMA = 1
MANIFEST = "manifest.json"
MAX_FILE_BYTES = 2**28
"""Larger files of data are named and left out."""


@dataclass(frozen=True)
class WrittenArchive:
    """What was put into an archive."""

    path: str
    bytes: int
    runs: int
    certificates: int
    data: tuple[str, ...]
    left_out: tuple[str, ...]
    """Files that the commands name and that are not in it, with the reasons."""


def write_archive(store: str | Path, path: str | Path) -> WrittenArchive:
    """Write a store of runs with everything that repeating it needs; an old file is replaced.

    Parameters
    ----------
    store
        The store of a comparison.
    path
        The zip file to be written.
    """
    target = Path(path)
    if target.suffix != ".zip":
        raise InvalidSettings(f"{target} is to be a zip file; let its name end in .zip")
    check_writable(target)
    comparison = Comparison.load(store)
    with Store(store, read_only=True) as opened:
        commands = opened.commands()
        environments = tuple(opened.environments().values())
    kept, left_out = _data(commands)

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        proofs = write_certificates(store, folder / "certificates").written
        comparison.report(folder / "report.html")
        contents = {
            "runs.json": to_json(comparison.runs).encode(),
            "runs.csv": to_csv(comparison.runs).encode(),
            "table.tex": to_latex(comparison.runs).encode(),
            "table.md": to_markdown(comparison.runs).encode(),
            "requirements.txt": _requirements().encode(),
            "report.html": (folder / "report.html").read_bytes(),
            "checklist.md": _checklist(comparison.runs, commands, environments, proofs).encode(),
            "README.txt": _readme(target.name).encode(),
            "klopt_check.py": files("klopt.checker").joinpath("klopt_check.py").read_bytes(),
        }
        contents |= {
            f"certificates/{Path(each.file).name}": Path(each.file).read_bytes() for each in proofs
        }
        contents |= {name: file.read_bytes() for each in kept for name, file in each.files}
        manifest = {
            "schema": SCHEMA,
            "klopt": environment().klopt,
            "commands": list(commands),
            "environments": [asdict(each) for each in environments],
            "problems": {run.problem: run.data for run in comparison.runs},
            "data": {each.given: each.kept for each in kept},
            "left_out": list(left_out),
            "sha256": {
                name: hashlib.sha256(content).hexdigest() for name, content in contents.items()
            },
        }
        whole = folder / "archive.zip"
        with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(MANIFEST, json.dumps(manifest, indent=1))
            for name, content in contents.items():
                archive.writestr(name, content)
        # Written whole before it takes its place: nobody finds half of an archive.
        target.write_bytes(whole.read_bytes())
    return WrittenArchive(
        path=str(target),
        bytes=target.stat().st_size,
        runs=len(comparison.runs),
        certificates=len(proofs),
        data=tuple(each.given for each in kept),
        left_out=tuple(left_out),
    )


@dataclass(frozen=True)
class _Data:
    """A file or a folder that a command names, and the names that it has in the archive."""

    given: str
    kept: str
    files: tuple[tuple[str, Path], ...]


def named_files(command: str) -> Iterator[str]:
    """Yield the words of a command that name files here, and the folder of a test set.

    >>> list(named_files("klopt compare no-such-file.mps --tol 1e-6"))
    []
    """
    try:
        words = shlex.split(command)
    except ValueError:
        return
    for before, word in pairwise(words):
        # What a command writes is no part of what it reads.
        if before in ("-o", "--output", "--store"):
            continue
        if before == "--data" and Path(word).is_dir():
            yield word
            continue
        for part in word.split(","):
            file = part if Path(part).is_file() else part.rpartition(":")[0]
            if file and Path(file).is_file() and Path(file).suffix:
                yield file


def _data(commands: Sequence[str]) -> tuple[list[_Data], list[str]]:
    """The files and folders that the commands name, and those that are too large, with the reason."""
    kept: list[_Data] = []
    left_out: list[str] = []
    suffixes = tuple(suffix for each in TEST_SETS.values() for suffix in each.suffixes)
    for given in dict.fromkeys(name for command in commands for name in named_files(command)):
        place = f"data/{len(kept)}"
        path = Path(given)
        files = [path]
        if path.is_dir():
            files = sorted(file for file in path.iterdir() if file.name.endswith(suffixes))
        size = sum(file.stat().st_size for file in files)
        if size > MAX_FILE_BYTES:
            left_out.append(
                f"{given}: {size / 1e6:.0f} MB, more than {MAX_FILE_BYTES / 1e6:.0f} MB"
            )
            continue
        name = place if path.is_dir() else f"{place}/{path.name}"
        kept.append(_Data(given, name, tuple((f"{place}/{file.name}", file) for file in files)))
    return kept, left_out


def _requirements() -> str:
    """All installed packages with their versions, as pip reads them."""
    found = {
        each.metadata["Name"]: each.version
        for each in importlib.metadata.distributions()
        if each.metadata["Name"]
    }
    return "".join(f"{name}=={found[name]}\n" for name in sorted(found, key=str.lower))


def _readme(name: str) -> str:
    return (
        f"A comparison of solvers by klopt, with all that repeating it needs.\n\n"
        f"    klopt replay {name}            repeat it here and say what differs\n"
        f"    klopt replay {name} --trust    the same, where it runs Python of its author\n"
        "    python klopt_check.py certificates/*    check the proofs again, without klopt\n\n"
        "manifest.json has the commands, the versions, and the digest of every problem and file.\n"
    )


def _checklist(
    runs: Sequence[Run],
    commands: Sequence[str],
    environments: Sequence[Environment],
    proofs: Sequence[object],
) -> str:
    """The questions that reviewers ask of a computational study, answered from the runs."""
    certified = sum(run.verdict.conclusive for run in runs)
    seeds = sorted({run.seed for run in runs})
    repeats = max((run.repeat for run in runs), default=-1) + 1
    limits = sorted({run.time_limit for run in runs})
    threads = sorted({run.threads for run in runs})
    tolerances = sorted({run.tol for run in runs})
    computers = "; ".join(
        f"{each.cpu}, {each.cores} cores, {each.platform}, Python {each.python}"
        for each in environments
    )
    versions = sorted({f"{run.backend} {run.version}" for run in runs})
    answers = [
        (
            "Commands",
            "; ".join(f"`{command}`" for command in commands) or "made in Python; see runs.json",
        ),
        ("Problems", f"{len({run.problem for run in runs})}, their digests in manifest.json"),
        ("Solvers and versions", ", ".join(versions)),
        ("Tolerances (relative gap)", ", ".join(f"{value:g}" for value in tolerances)),
        ("Time limits", ", ".join(f"{value:g} s" for value in limits)),
        ("Threads", ", ".join(str(value) for value in threads)),
        ("Random seeds", ", ".join(str(value) for value in seeds)),
        ("Repeats", str(repeats)),
        ("Computer", computers),
        ("Answers proven in exact arithmetic", f"{certified} of {len(runs)} runs"),
        ("Certificates that others can check", str(len(proofs))),
        ("All packages", "requirements.txt"),
    ]
    return "# Reproducibility checklist\n\n" + "".join(
        f"- **{title}**: {text}\n" for title, text in answers
    )
