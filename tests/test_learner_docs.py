"""Every learner says what it takes, what it leaves, what it computes, and where that comes from."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest
from sklearn.base import BaseEstimator

from klopt import learners

SECTIONS = ["Parameters", "Attributes", "Notes", "References", "Examples"]
ESTIMATORS = [
    getattr(learners, name)
    for name in learners.__all__
    if inspect.isclass(getattr(learners, name))
    and issubclass(getattr(learners, name), BaseEstimator)
]


def sections(kind: Any) -> dict[str, str]:
    """Return the sections of a docstring by their names, in their order."""
    text = inspect.cleandoc(kind.__doc__)
    found = re.split(r"^(\w+)\n-+\n", text, flags=re.MULTILINE)
    return dict(zip(found[1::2], found[2::2], strict=True))


def test_there_are_learners() -> None:
    assert len(ESTIMATORS) >= 17


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_a_learner_has_the_sections_of_numpydoc(kind: Any) -> None:
    assert list(sections(kind)) == SECTIONS


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_each_parameter_is_described_once_and_none_that_is_not_there(kind: Any) -> None:
    heads = re.findall(r"^(\S.*)$", sections(kind)["Parameters"], flags=re.MULTILINE)
    described = [name.strip() for head in heads for name in head.split(" : ")[0].split(",")]
    assert sorted(described) == sorted(kind._get_param_names())


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_attributes_are_those_that_a_fit_leaves(kind: Any) -> None:
    heads = re.findall(r"^(\S.*)$", sections(kind)["Attributes"], flags=re.MULTILINE)
    described = {name.strip() for head in heads for name in head.split(",")}
    assert all(name.endswith("_") for name in described)
    source = inspect.getsource(inspect.getmodule(kind))  # type: ignore[arg-type]
    bases = "".join(inspect.getsource(base) for base in kind.__mro__ if "klopt" in base.__module__)
    for name in described:
        assert re.search(rf"self\.{name}\b|def {name}\b", source + bases), name
