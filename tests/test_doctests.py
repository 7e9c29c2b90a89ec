"""Every example in a docstring of klopt runs and prints what it says.

`pytest --doctest-modules` would import the files of `problems/` and `solvers/` under a second name,
so the modules are imported here by their real one.
"""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest
from source import MODULES

EXAMPLES = [name for name, module in MODULES.items() if ">>> " in module.text]


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_print_what_they_say(name: str) -> None:
    outcome = doctest.testmod(
        import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    )
    assert outcome.attempted > 0
    assert outcome.failed == 0
