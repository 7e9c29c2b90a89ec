"""Finds the claims of the five papers, of plug-ins (`klopt.theorems`) and of a user's file."""

from __future__ import annotations

import difflib
import importlib
import runpy
from collections.abc import Iterable, Sequence
from importlib.metadata import entry_points
from pathlib import Path

from klopt.errors import InvalidSettings
from klopt.papers.theorems.claim import Claim

__all__ = ["CLAIM_MODULES", "claims", "claims_in", "select"]

CLAIM_MODULES = (
    "pan2016.claims",
    "kundu2010.claims",
    "kundu2010.descent_claims",
    "xie2017.claims",
    "liu2020.claims",
    "liu2020.algorithm_claims",
    "liu2020.scale_claims",
    "mao2010.claims",
)


def claims() -> tuple[Claim, ...]:
    """Return every known claim in the order of the papers; of two with one name the first counts.

    >>> {claim.paper for claim in claims()} >= {"004"}
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

    A name may be a Python file with claims of the user's.
    """
    known = claims()
    chosen: list[Claim] = []
    for name in names:
        if name.endswith(".py"):
            chosen += _from_file(Path(name))
            continue
        match = [claim for claim in known if claim.name == name]
        if not match:
            near = difflib.get_close_matches(name, [claim.name for claim in known], n=1)
            hint = (
                f"; did you mean {near[0]!r}?" if near else "; klopt verify --list shows them all"
            )
            raise InvalidSettings(f"no claim {name!r}{hint}")
        chosen += match
    found = chosen if names else list(known)
    found = [claim for claim in found if paper in (None, claim.paper)]
    if not found:
        papers = sorted({claim.paper for claim in known})
        raise InvalidSettings(f"no claim of paper {paper!r}; there are {', '.join(papers)}")
    return tuple(found)


def _from_file(path: Path) -> tuple[Claim, ...]:
    if not path.is_file():
        raise InvalidSettings(f"no file {path}")
    found = claims_in(runpy.run_path(str(path)).values())
    if not found:
        raise InvalidSettings(
            f"{path} holds no claim; decorate a function with @klopt.theorem(...)"
        )
    return found
