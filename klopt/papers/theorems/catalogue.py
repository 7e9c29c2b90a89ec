"""Finds the claims of the five papers, of plug-ins (`klopt.theorems`) and of a user's file."""

from __future__ import annotations

import difflib
import importlib
import runpy
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from traceback import extract_tb
from typing import NamedTuple

from klopt.errors import InvalidSettings
from klopt.papers.theorems.claim import Claim

__all__ = ["CLAIM_MODULES", "PAPERS", "Paper", "cited", "claims", "claims_in", "select"]


class Paper(NamedTuple):
    """A paper: how it is cited, its title, and the number by which it was known before."""

    cited: str
    title: str
    formerly: str


PAPERS = {
    "pan2016": Paper(
        "Pan et al. (2016)",
        "Efficient learning of supervised kernels with a graph-based loss function",
        "000",
    ),
    "kundu2010": Paper(
        "Kundu et al. (2010)",
        "Efficient algorithms for learning kernels from multiple similarity matrices with general "
        "convex loss functions",
        "001",
    ),
    "xie2017": Paper(
        "Xie et al. (2017)",
        "Rank Ordering Constraints Elimination with Application for Kernel Learning",
        "002",
    ),
    "liu2020": Paper("Liu et al. (2020)", "Learning Data-adaptive Non-parametric Kernels", "003"),
    "mao2010": Paper("Mao and Tsang (2010)", "Parameter-Free Spectral Kernel Learning", "004"),
    "rates": Paper(
        "Rates of first-order methods",
        "Theorems of the methods themselves, known from other papers",
        "rates",
    ),
}
CLAIM_MODULES = (
    "pan2016.claims",
    "pan2016.table_claims",
    "kundu2010.claims",
    "kundu2010.descent_claims",
    "xie2017.claims",
    "liu2020.claims",
    "liu2020.algorithm_claims",
    "liu2020.scale_claims",
    "liu2020.table_claims",
    "mao2010.claims",
    "mao2010.table_claims",
    "methods.claims",
)


def cited(paper: str) -> str:
    """Return how a paper is cited; of one that is not known its own name.

    >>> cited("mao2010"), cited("mine")
    ('Mao and Tsang (2010)', 'mine')
    """
    return PAPERS[paper].cited if paper in PAPERS else paper


def claims() -> tuple[Claim, ...]:
    """Return every known claim in the order of the papers; of two with one name the first counts.

    >>> {claim.paper for claim in claims()} >= {"mao2010"}
    True
    """
    found: dict[str, Claim] = {}
    for paper in CLAIM_MODULES:
        for claim in claims_in(
            vars(importlib.import_module(f"klopt.papers.theorems.{paper}")).values()
        ):
            found.setdefault(claim.name, claim)
    for point in entry_points(group="klopt.theorems"):
        loaded = point.load()
        items = [loaded] if isinstance(loaded, Claim) else vars(loaded).values()
        for claim in claims_in(items):
            found.setdefault(claim.name, claim)
    return tuple(found.values())


def claims_in(items: Iterable[object]) -> tuple[Claim, ...]:
    """Return the claims among the objects of a module, in their order."""
    return tuple(item for item in items if isinstance(item, Claim))


def select(names: Sequence[str] = (), paper: str | None = None) -> tuple[Claim, ...]:
    """Return the claims of those names and that paper.

    A name may be one that the claim or the paper had before, or a Python file with claims of the
    user's.

    >>> [claim.name for claim in select(["004-3"])]
    ['mao2010-eq5']
    """
    known = claims()
    chosen: list[Claim] = []
    for name in names:
        if name.endswith(".py"):
            chosen += _from_file(Path(name))
            continue
        match = [claim for claim in known if claim.answers_to(name)]
        if not match:
            raise InvalidSettings(f"no claim {name!r}{_hint(name, known)}")
        chosen += match
    found = chosen if names else list(known)
    asked = {former.formerly: key for key, former in PAPERS.items()}.get(paper or "", paper)
    found = [claim for claim in found if asked in (None, claim.paper)]
    if not found:
        papers = ", ".join(dict.fromkeys(claim.paper for claim in known))
        raise InvalidSettings(f"no claim of paper {paper!r}; there are {papers}")
    return tuple(found)


def _hint(name: str, known: Sequence[Claim]) -> str:
    """What to try instead of a name that no claim has."""
    names = [claim.name for claim in known]
    former = {claim.formerly: claim.name for claim in known if claim.formerly}
    near = difflib.get_close_matches(name, [*names, *former], n=1)
    if not near:
        return "; klopt verify --list shows them all"
    return f"; did you mean {former.get(near[0], near[0])!r}?"


def _from_file(path: Path) -> tuple[Claim, ...]:
    if not path.is_file():
        raise InvalidSettings(f"no file {path}")
    try:
        found = claims_in(runpy.run_path(str(path)).values())
    except Exception as error:
        # Whatever a user's file raises is a fault of the file, and is said with its line.
        raise InvalidSettings(f"{path} cannot be run: {_raised(error, path)}") from error
    if not found:
        raise InvalidSettings(
            f"{path} holds no claim; decorate a function with @klopt.theorem(...)"
        )
    twice = [name for name, count in Counter(claim.name for claim in found).items() if count > 1]
    if twice:
        raise InvalidSettings(f"{path} has two claims called {twice[0]!r}; give each its own name")
    return found


def _raised(error: Exception, path: Path) -> str:
    """The error, and the last line of the file that was running."""
    lines = [
        frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == str(path)
    ]
    if isinstance(error, SyntaxError):
        lines = [error.lineno]
    where = f", line {lines[-1]}" if lines else ""
    return f"{type(error).__name__}: {error}{where}"
