"""`Environment`: versions, linear algebra and processor of a run, and what `klopt doctor` says.

Nothing here identifies a person or a computer beyond the model of its processor: no host name, no
user name, no path.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import math
import os
import platform
import re
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from klopt.engine.registry import backends, broken
from klopt.engine.words import counted

__all__ = ["Environment", "doctor", "environment", "relative_load"]

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
BUSY_LOAD = 0.5
"""From this relative load on, times are longer than on an idle computer."""
TIMEOUT_S = 5
"""What `git` and `sysctl` may take."""


@dataclass(frozen=True)
class Environment:
    """Everything but problem and settings that can change what a run takes.

    `commit` is that of klopt's own repository, "" for an installed release; it ends in `-dirty`
    where files differ from it. `backends` holds the name and version of every backend that can run
    here.
    """

    klopt: str
    python: str
    numpy: str
    scipy: str
    blas: str
    cpu: str
    cores: int
    platform: str
    commit: str
    backends: tuple[tuple[str, str], ...]

    @property
    def key(self) -> str:
        """A short hash of all fields."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:16]

    def to_json(self) -> str:
        """Return the fields as JSON, always in the same order.

        >>> here = environment()
        >>> Environment.from_json(here.to_json()) == here
        True
        """
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Environment:
        """Return the environment that `to_json` wrote; a ValueError where it did not."""
        found = json.loads(text)
        try:
            found["backends"] = tuple((name, version) for name, version in found["backends"])
            made = cls(**found)
        except (TypeError, KeyError) as error:
            raise ValueError(f"no environment: {error}") from error
        texts = [value for name, value in asdict(made).items() if name not in ("cores", "backends")]
        texts += [part for pair in made.backends for part in pair]
        if not (all(isinstance(text, str) for text in texts) and isinstance(made.cores, int)):
            raise ValueError("no environment: its fields are texts, and a number of cores")
        return made

    def pairs(self) -> list[tuple[str, str]]:
        """Return labels and texts, for a table or a page."""
        commit = f" (commit {self.commit})" if self.commit else ""
        return [
            ("klopt", self.klopt + commit),
            ("python", self.python),
            ("numpy", self.numpy),
            ("scipy", self.scipy),
            ("blas", self.blas),
            ("processor", f"{self.cpu}, {counted(self.cores, 'core')} usable"),
            ("platform", self.platform),
            ("backends", ", ".join(f"{name} {version}" for name, version in self.backends)),
        ]


def environment() -> Environment:
    """Return the environment of this process.

    >>> environment().key == environment().key
    True
    """
    return Environment(
        klopt=_version("klopt"),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        numpy=_version("numpy"),
        scipy=_version("scipy"),
        blas=_blas(),
        cpu=_cpu(),
        cores=_cores(),
        platform=f"{platform.system()} {platform.machine()}".strip(),
        commit=_commit(),
        backends=tuple((each.name, each.version) for each in backends() if not each.missing),
    )


def doctor() -> list[tuple[str, str]]:
    """Return labels and texts: what is installed, what is missing, what may disturb timings."""
    found = environment().pairs()
    found += [("threads", text) for text in _threads()]
    found.append(("limits", _limits()))
    found += [("missing", f"{each.name}: {each.missing}") for each in backends() if each.missing]
    found += [("extra", text) for text in _extras()]
    found += [("broken", f"{item.name}: {_without_folders(item.reason)}") for item in broken()]
    return found


def relative_load() -> float:
    """Return how many processes wanted to run in the last minute for each core; NaN if unknown."""
    with suppress(AttributeError, OSError):
        return os.getloadavg()[0] / _cores()
    return math.nan


def _without_folders(text: str) -> str:
    """The text with every path cut down to its last part, since import errors name users' folders.

    >>> _without_folders("cannot import name 'x' from 'y' (/home/ada/y/__init__.py)")
    "cannot import name 'x' from 'y' (__init__.py)"
    """
    return re.sub(r"(?:[A-Za-z]:)?[\\/](?:[^\\/\n'\"()]+[\\/])+", "", text)


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


@cache
def _blas() -> str:
    """The libraries behind NumPy and SciPy, with the kernels that they chose for this processor."""
    pools = (pool for pool in _pools() if pool["user_api"] == "blas")
    names = (
        f"{pool['internal_api']} {pool['version']} {pool.get('architecture') or ''}".strip()
        for pool in pools
    )
    return ", ".join(sorted(set(names))) or "unknown"


def _pools() -> list[dict[str, object]]:
    import scipy.linalg  # noqa: F401  # loads SciPy's BLAS, which may differ from NumPy's
    from threadpoolctl import threadpool_info

    pools: list[dict[str, object]] = threadpool_info()
    return pools


@cache
def _cpu() -> str:
    """The model of the processor, as the system calls it."""
    with suppress(OSError):
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        if found := re.search(r"^(?:model name|Model|Hardware)\s*:\s*(.+)$", text, re.MULTILINE):
            return " ".join(found[1].split())
    with suppress(OSError, subprocess.SubprocessError):
        if name := _output("sysctl", "-n", "machdep.cpu.brand_string"):
            return name
    return platform.processor() or platform.machine() or "unknown"


def _cores() -> int:
    """The cores that this process may use, which can be fewer than there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def _commit() -> str:
    """The commit of the checkout that klopt runs from, "" where there is none."""
    root = Path(__file__).resolve().parents[2]
    # An installed klopt may lie inside a repository of somebody else's.
    if not ((root / ".git").exists() and (root / "pyproject.toml").is_file()):
        return ""
    with suppress(OSError, subprocess.SubprocessError):
        options = ("--always", "--dirty", "--abbrev=12", "--exclude=*")
        return _output("git", "-C", str(root), "describe", *options)
    return ""


def _output(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    return done.stdout.strip()


def _threads() -> Iterator[str]:
    """How many threads the libraries would use by themselves, and what the environment says."""
    for pool in _pools():
        library = f"{pool['internal_api']} {pool['version'] or ''}".rstrip()
        yield f"{library} would use {pool['num_threads']}; klopt sets 1"
    said = [f"{name}={os.environ[name]}" for name in THREAD_VARIABLES if name in os.environ]
    yield ", ".join(said) if said else "no variable such as OMP_NUM_THREADS is set"
    load = relative_load()
    if not math.isnan(load):
        cores = _cores()
        busy = "; times will be too long" if load > BUSY_LOAD else ""
        running = f"{load * cores:.1f} processes were running on {counted(cores, 'core')}"
        yield f"{running} in the last minute{busy}"


def _limits() -> str:
    """Which hard limits this system can keep."""
    with suppress(ImportError):
        import resource

        if hasattr(resource, "RLIMIT_AS"):
            return "time by killing the child, memory by RLIMIT_AS"
    return "time by killing the child; memory is not enforced on this system"


def _extras() -> Iterator[str]:
    """The extras of which something is not installed, with the command that installs it."""
    absent: dict[str, list[str]] = {}
    with suppress(importlib.metadata.PackageNotFoundError):
        for line in importlib.metadata.requires("klopt") or []:
            package = re.match(r"[\w.-]+", line)
            extra = re.search(r"extra == ['\"]([\w-]+)['\"]", line)
            if package and extra and package[0] != "klopt" and _version(package[0]) == "unknown":
                absent.setdefault(extra[1], []).append(package[0])
    for name, packages in sorted(absent.items()):
        yield f"{name}: without {', '.join(packages)}; pip install 'klopt[{name}]'"
