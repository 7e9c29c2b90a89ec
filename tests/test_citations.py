"""Every problem and every backend says what to cite, and every entry is well-formed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from recorded import made_run

import klopt
from klopt.bench.citations import bibliography, bibtex, entry_of
from klopt.engine.registry import backends, problems

ROOT = Path(__file__).parents[1]
NAMED = {reference for kind in (*problems(), *backends()) for reference in kind.references}


def keys(text: str) -> list[str]:
    return re.findall(r"^@\w+\{(\w+),$", text, re.MULTILINE)


def test_what_a_problem_or_a_backend_cites_has_an_entry() -> None:
    for reference in NAMED:
        assert entry_of(reference), f"references.bib has no {reference!r}"


def test_every_entry_is_cited() -> None:
    assert NAMED | {"harris2020", "virtanen2020", "dolan2002"} >= bibliography().keys()


def test_papers_and_solvers_of_the_runs_are_cited_once_and_no_others() -> None:
    runs = [
        made_run(family="ScgOrdered", backend="highs"),
        made_run(family="ScgOrdered", backend="cvxpy:SCS"),
    ]
    found = keys(bibtex(runs))
    assert len(found) == len(set(found))
    expected = {
        "klopt",
        "pan2016",
        "huangfu2018",
        "diamond2016",
        "agrawal2018",
        "odonoghue2016",
        "odonoghue2021",
    }
    assert set(found) == expected | {"harris2020", "virtanen2020", "dolan2002"}


def test_a_stranger_among_families_and_backends_is_no_error() -> None:
    assert keys(bibtex([made_run(family="<img>", backend="x} @evil{y,")])) == keys(bibtex([]))


def test_klopt_is_cited_as_its_citation_file_says() -> None:
    said = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    entry = bibtex([]).split("\n\n")[0]
    for name in ("title", "name", "version", "license"):
        value = re.search(rf"^[ -]*{name}: \"?([^\"\n]+)", said, re.MULTILINE)
        assert value is not None
        assert value[1] in entry
    assert klopt.__version__ in entry


@pytest.mark.parametrize("key", bibliography())
def test_an_entry_is_well_formed(key: str) -> None:
    entry = bibliography()[key]
    kind = entry[1 : entry.index("{")]
    fields = dict(re.findall(r"^  (\w+) += \{(.*)\},$", entry, re.MULTILINE))
    needed = {"article": {"journal"}, "inproceedings": {"booktitle"}, "misc": {"eprint"}}[kind]
    assert needed | {"author", "title", "year"} <= fields.keys()
    assert key.endswith(fields["year"])
    assert all(text.count("{") == text.count("}") for text in fields.values())
    first = fields["author"].split(",")[0].lower()
    assert key.startswith(re.sub(r"[^a-z]", "", first))
