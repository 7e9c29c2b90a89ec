"""Repeats the commands of an archive and says what differs: versions, problems, verdicts, intervals.

An archive comes from somebody else. Its names are checked before anything is written, its commands
may only compare, and Python files in it are run only where the user says so.
"""

from __future__ import annotations

import hashlib
import json
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any

from klopt.bench.archive import MANIFEST, SCHEMA
from klopt.bench.comparison import Comparison
from klopt.bench.environment import environment
from klopt.bench.record import Run
from klopt.errors import InvalidSettings

__all__ = ["Difference", "Replay", "replay"]

COMMANDS = ("compare", "demo")
"""The only ones that an archive may hold."""
DROPPED = ("--watch", "--open", "--resume", "--json", "-q", "--quiet")
"""Flags that concern neither problems nor runs."""
DROPPED_WITH_VALUE = ("-o", "--output", "--store", "--cluster")
MAX_BYTES = 2**31
"""What an archive may take when it is unpacked."""
UNREADABLE = "is no archive of klopt"


@dataclass(frozen=True)
class Difference:
    """A run that does not come out as it did."""

    problem: str
    route: str
    what: str


@dataclass(frozen=True)
class Replay:
    """The runs of an archive beside those made again.

    Attributes
    ----------
    runs
        Runs that both have.
    missing
        Runs that could not be made again, such as those of solvers that are not installed.
    differences
        Where a verdict differs, a problem has other data, or two proven intervals do not meet.
    versions
        Backends with another version, as `name: then, now`.
    """

    runs: int
    missing: tuple[str, ...]
    differences: tuple[Difference, ...]
    versions: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether all runs were made again and none differs."""
        return bool(self.runs) and not self.missing and not self.differences


def replay(path: str | Path, folder: str | Path, *, trust: bool = False) -> Replay:
    """Repeat an archive in a folder and compare.

    Parameters
    ----------
    path
        The archive.
    folder
        Where data and runs go; an empty or a new one.
    trust
        Whether Python files of the archive may be run.
    """
    place = Path(folder)
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise InvalidSettings(f"{place} is not empty; name a new folder with --folder")
    manifest, before = _read(Path(path), place)
    commands = [_command(text, manifest["data"], place, trust) for text in manifest["commands"]]
    if not commands:
        raise InvalidSettings(
            "the archive holds no command: its runs were made in Python, by a script of their author"
        )
    for words in commands:
        subprocess.run([sys.executable, "-m", "klopt", *words], cwd=place, check=False)
    store = place / "runs.db"
    if not store.exists():
        raise InvalidSettings("nothing could be run again; the messages above say why")
    return _compared(before, Comparison.load(store).runs)


def _read(path: Path, place: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The manifest and the runs; data are unpacked, and every file is compared with its digest."""
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(each.file_size for each in archive.infolist()) > MAX_BYTES:
                raise InvalidSettings(f"{path} unpacks to more than {MAX_BYTES / 1e9:.1f} GB")
            manifest = json.loads(archive.read(MANIFEST))
            if manifest["schema"] != SCHEMA:
                raise InvalidSettings(
                    f"{path} has schema {manifest['schema']!r}; this klopt reads {SCHEMA}"
                )
            for name, expected in manifest["sha256"].items():
                if hashlib.sha256(archive.read(name)).hexdigest() != expected:
                    raise InvalidSettings(
                        f"{name} in {path} is not what its digest says: the archive is damaged"
                    )
            before = json.loads(archive.read("runs.json"))["runs"]
            place.mkdir(parents=True, exist_ok=True)
            for name in manifest["sha256"]:
                if name.startswith("data/"):
                    _unpack(archive, name, place)
    except FileNotFoundError as error:
        raise InvalidSettings(f"no file {str(path)!r}") from error
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, AttributeError, OSError) as error:
        raise InvalidSettings(f"{path} {UNREADABLE}: {error}") from error
    return manifest, before


def _unpack(archive: zipfile.ZipFile, name: str, place: Path) -> None:
    """Write one file of data, under `place` and nowhere else."""
    parts = PurePosixPath(name).parts
    if len(parts) != 3 or ".." in parts or "\\" in name or ":" in name:
        raise ValueError(f"{name!r} is no name of data")
    target = place.joinpath(*parts)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(archive.read(name))


def _command(text: str, data: Mapping[str, str], place: Path, trust: bool) -> list[str]:
    """The words of a command, its files those of the archive, its store a new one."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InvalidSettings(f"{text!r} is no command: {error}") from error
    if words[:1] != ["klopt"] or words[1:2] not in [[name] for name in COMMANDS]:
        raise InvalidSettings(
            f"{text!r} is no command that is repeated; {' and '.join(COMMANDS)} are"
        )
    code = [word for before, word in pairwise(words) if _runs_code(before, word)]
    if code and not trust:
        raise InvalidSettings(
            f"the archive runs {', '.join(code)}: Python that its author wrote; look at it, then add --trust"
        )
    kept: list[str] = []
    for before, word in pairwise(words):
        dropped = word in DROPPED + DROPPED_WITH_VALUE or before in DROPPED_WITH_VALUE
        if not dropped and word.partition("=")[0] not in DROPPED_WITH_VALUE:
            kept.append(",".join(_here(part, data, place) for part in word.split(",")))
    # The demo is made of its own problems; several comparisons go into one store.
    resume = ["--resume"] if kept[0] == "compare" else []
    return [*kept, "--store", "runs.db", "-q", *resume]


def _runs_code(before: str, word: str) -> bool:
    """Whether a word names Python to be run: a file, or `module:name`; `--backend cvxpy:SCS` does not."""
    return ".py" in word.lower() or (":" in word and before != "--backend")


def _here(word: str, data: Mapping[str, str], place: Path) -> str:
    """A word of a command; a file, or a name in a file, is that of the archive."""
    for given, kept in data.items():
        if word == given or word.startswith(f"{given}:"):
            return str(place.resolve() / kept) + word[len(given) :]
    return word


def _compared(before: Sequence[Mapping[str, Any]], after: Sequence[Run]) -> Replay:
    """What became of each run."""
    now = {
        _identity(run.problem, run.formulation, run.backend, run.tol, run.repeat): run
        for run in after
    }
    missing = []
    differences = []
    versions = {}
    same = 0
    for row in before:
        key = _identity(
            row["problem"], row["formulation"], row["backend"], row["tol"], row["repeat"]
        )
        route = f"{row['backend']} on {row['formulation']}"
        run = now.get(key)
        if run is None:
            missing.append(f"{row['problem']}, {route}")
            continue
        same += 1
        if run.version != row["version"]:
            versions[run.backend] = f"{run.backend}: {row['version']}, now {run.version}"
        differences += [Difference(run.problem, route, what) for what in _differences(row, run)]
    here = environment().klopt
    return Replay(
        same,
        tuple(dict.fromkeys(missing)),
        tuple(differences),
        (f"klopt {here}", *versions.values()),
    )


def _identity(
    problem: str, formulation: str, backend: str, tol: Any, repeat: Any
) -> tuple[Any, ...]:
    """What a run is known by: its problem without the folder of its file, its route, tolerance and number."""
    return problem, formulation, backend, float(tol), int(repeat)


def _differences(row: Mapping[str, Any], run: Run) -> list[str]:
    found = []
    if row["data"] != run.data:
        found.append("the problem has other data")
    if row["verdict"] != run.verdict.value:
        found.append(f"verdict {row['verdict']}, now {run.verdict.value}")
    lower, upper = float(row["lower"]), float(row["upper"])
    if run.lower > upper or run.upper < lower:
        found.append(
            f"proven [{lower:.10g}, {upper:.10g}], now [{run.lower:.10g}, {run.upper:.10g}]"
        )
    return found
