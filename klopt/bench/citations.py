"""BibTeX of what a comparison used: the papers behind the problems, the solvers, klopt itself.

Problem classes and backends name what to cite (`references`), by a key of
`klopt/papers/references.bib` or by a BibTeX entry.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from types import MappingProxyType

from klopt.bench.record import Run
from klopt.engine.registry import backends, problems

__all__ = ["bibliography", "bibtex", "entry_of"]

ALWAYS = ("harris2020", "virtanen2020", "dolan2002")
"""NumPy, SciPy and performance profiles: every comparison rests on them."""
TITLE = "klopt: kernel learning as convex optimisation, certified"
_ENTRY = re.compile(r"^@\w+\{([^,\s]+),.*?^\}$", re.MULTILINE | re.DOTALL)


@cache
def bibliography() -> Mapping[str, str]:
    """Return the entries of klopt's `references.bib` by their keys.

    >>> bibliography()["cortes1995"].splitlines()[0]
    '@article{cortes1995,'
    """
    text = (files("klopt.papers") / "references.bib").read_text(encoding="utf-8")
    return MappingProxyType({found[1]: found[0] for found in _ENTRY.finditer(text)})


def entry_of(reference: str) -> str:
    """Return the BibTeX entry that a class refers to, by key or in full; "" where there is none."""
    if reference.lstrip().startswith("@"):
        return reference.strip()
    return bibliography().get(reference, "")


def bibtex(runs: Iterable[Run]) -> str:
    """Return the BibTeX entries of klopt, what it rests on, and the families and backends.

    >>> bibtex([]).count("@")
    4
    """
    by_family = {problem.__name__: problem.references for problem in problems()}
    by_backend = {backend.name: backend.references for backend in backends()}
    wanted = set(ALWAYS)
    for run in runs:
        wanted.update(by_family.get(run.family, ()))
        name, _, _ = run.backend.partition(" (")  # where there are several, with its version
        for part in name.lower().split(":"):  # cvxpy:SCS rests on both
            wanted.update(by_backend.get(part, ()))
    entries = {entry_of(reference) for reference in wanted}
    return "\n\n".join([_klopt(), *sorted(filter(None, entries), key=_key)]) + "\n"


def _key(entry: str) -> str:
    return entry.partition("{")[2].partition(",")[0]


def _klopt() -> str:
    try:
        release = version("klopt")
    except PackageNotFoundError:
        release = "unknown"
    return f"""@software{{klopt,
  author  = {{{{klopt developers}}}},
  title   = {{{TITLE}}},
  version = {{{release}}},
  license = {{BSD-3-Clause}},
}}"""
