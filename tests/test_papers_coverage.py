"""The page of what is in klopt of the papers: every name on it exists, and it is up to date."""

from __future__ import annotations

import importlib
import inspect
import runpy
from pathlib import Path
from typing import Any

import pytest

import klopt
from klopt.papers.experiments import datasets
from klopt.papers.experiments.parts import PARTS
from klopt.papers.experiments.runner import protocol_named
from klopt.papers.theorems.catalogue import claims

ROOT = Path(__file__).parent.parent
SCRIPT = runpy.run_path(str(ROOT / "docs" / "write_coverage.py"))
THINGS = SCRIPT["things"]()
NAMES = sorted({name for thing in THINGS for name in thing.names})
CLAIMS = {claim.name for claim in claims()}
BACKENDS = {backend.name for backend in klopt.backends()}
DATA = {*datasets.BUNDLED, *datasets.PACKAGED, *datasets.TABLES, *PARTS, "g50c"}


def _object(path: str) -> Any:
    """The object of a dotted path: the longest part that is a module, then attributes."""
    parts = path.split(".")
    for split in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:split]))
        except ModuleNotFoundError:
            continue
        for part in parts[split:]:
            found = getattr(found, part)
        return found
    raise ModuleNotFoundError(path)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_on_the_page_exists(name: str) -> None:
    kind, _, rest = name.partition(" ")
    if kind == "claim":
        assert rest in CLAIMS
    elif kind == "experiment":
        experiment, _, column = rest.partition(": ")
        protocol = protocol_named(experiment)
        known = {method.name for method in protocol.methods} | {row.name for row in protocol.rows}
        assert not column or column in known
    elif kind == "backend":
        assert rest in BACKENDS
    elif kind == "data":
        assert rest in DATA
    elif kind == "file":
        assert (ROOT / rest).is_file()
    else:
        path, _, parameter = name.rstrip(")").partition("(")
        found = _object(path)
        assert not parameter or parameter in inspect.signature(found).parameters


def test_every_thing_is_done_by_something_or_has_a_reason() -> None:
    for thing in THINGS:
        assert thing.state in SCRIPT["STATES"]
        assert thing.paper in SCRIPT["PAPERS"]
        if thing.state in ("works", "partly"):
            assert thing.names, thing
        if thing.state != "works":
            assert thing.note, thing


def test_every_claim_of_a_paper_is_on_the_page() -> None:
    named = {name.removeprefix("claim ") for name in NAMES if name.startswith("claim ")}
    left = {claim for claim in CLAIMS if claim.split("-")[0] in SCRIPT["PAPERS"]} - named
    assert not left


def test_no_thing_is_listed_twice() -> None:
    every = [(thing.paper, thing.place, thing.what) for thing in THINGS]
    assert len(set(every)) == len(every)


def test_the_page_is_written_from_the_table() -> None:
    page = (ROOT / "docs" / "papers-coverage.md").read_text(encoding="utf-8")
    assert page == SCRIPT["page"](THINGS)
