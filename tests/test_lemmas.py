"""The page of lemmas: it has every lemma of the code, and every name on it exists."""

from __future__ import annotations

import re
from importlib import import_module

import pytest
from source import MODULES, ROOT, Module

PAGE = (ROOT / "docs" / "lemmas.md").read_text(encoding="utf-8")
STATED = re.findall(r"^\*\*Lemma ([a-z_]+\.[A-Z]\d+[a-z]?)\*\*", PAGE, re.MULTILINE)
NAMES = sorted(set(re.findall(r"`(klopt(?:\.\w+)+)`", PAGE)))
FILES = sorted(set(re.findall(r"`((?:klopt|problems)/\w+(?:/\w+\.py)?)`", PAGE)))
RULES = [
    module
    for name, module in MODULES.items()
    if name.startswith("klopt.proof.")
    or (name.startswith("klopt.problems._") and name.endswith("proof"))
]
LABEL = re.compile(r"\*\*Lemma ([A-Z]\d+[a-z]?)\b")


def prefix(module: Module) -> str:
    """What the page calls a file: its own name, or in a family that of the family."""
    *_, folder, file = module.name.split(".")
    return folder.removeprefix("_") if folder.startswith("_") else file


def found(name: str) -> object:
    """The module, function, class or method of this name."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            thing: object = import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            thing = getattr(thing, part)
        return thing
    raise AssertionError(f"no module for {name}")


def test_the_page_has_every_lemma_of_the_code_once() -> None:
    proven = [
        f"{prefix(module)}.{label}" for module in RULES for label in LABEL.findall(module.text)
    ]
    assert len(set(proven)) == len(proven)
    assert sorted(STATED) == sorted(proven)


@pytest.mark.parametrize("module", RULES, ids=lambda module: module.name)
def test_lemmas_that_the_code_cites_are_on_the_page(module: Module) -> None:
    """A label is that of the file itself, or one that a file of the core gives to one lemma."""
    cited = {
        label
        for listed in re.findall(
            r"Lemmas?\s+((?:[A-Z]\d+[a-z]?(?:,\s*|\s+and\s+|\s+to\s+)?)+)", module.text
        )
        for label in re.findall(r"[A-Z]\d+[a-z]?", listed)
    }
    assert not [label for label in cited if not any(name.endswith(f".{label}") for name in STATED)]


@pytest.mark.parametrize("module", RULES, ids=lambda module: module.name)
def test_each_file_that_a_proof_rests_on_has_a_place_on_the_page(module: Module) -> None:
    path = module.name.removeprefix("klopt.problems").removeprefix("klopt.").replace(".", "/")
    if module.is_package or path in ("proof/certificate", "proof/time_budget"):
        return
    # A family's second file stands below the heading of the family.
    assert f"{path.lstrip('/')}.py" in PAGE or f"`{path.rpartition('/')[2]}.py`" in PAGE


@pytest.mark.parametrize("name", NAMES)
def test_what_the_page_names_exists(name: str) -> None:
    assert found(name) is not None


@pytest.mark.parametrize("file", FILES)
def test_what_the_page_calls_a_file_is_one(file: str) -> None:
    assert (ROOT / file).exists()


def test_what_a_lemma_refers_to_is_stated() -> None:
    referred = set(re.findall(r"`([a-z_]+\.[A-Z]\d+[a-z]?)`", PAGE))
    assert referred
    assert referred <= set(STATED)
