"""Named sets of test programs: public collections that a user has as files, and CVXPY's own library.

klopt ships none of the files: a set says which files of a folder belong to it, where to get them, and
which settings the public benchmarks use that solvers are compared by.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from klopt.bench.task_list import Target
from klopt.errors import InvalidSettings

__all__ = ["TEST_SETS", "TestSet", "members"]

_CVXPY_PROGRAM = re.compile(
    r"(expcone|expcone_socp|lp|pcp|qp|sdp|sdp_pcp|socp)_(\d|bounds?_attr|batched)"
)


@dataclass(frozen=True)
class TestSet:
    """A collection of programs.

    Attributes
    ----------
    title
        What it is, and where it comes from.
    suffixes
        How the names of its files end; none for a set that needs no files.
    tolerances
        The relative gaps that public benchmarks of the set ask for, the loosest first.
    """

    __test__ = False  # the name is no test of pytest

    title: str
    suffixes: tuple[str, ...]
    tolerances: tuple[float, ...]


TEST_SETS: Mapping[str, TestSet] = MappingProxyType(
    {
        "netlib": TestSet(
            "linear programs of Netlib (Gay, 1985), as MPS files", (".mps",), (1e-4, 1e-6)
        ),
        "maros-meszaros": TestSet(
            "convex quadratic programs of Maros and Meszaros (1999), as klopt's .npz",
            (".npz",),
            (1e-3, 1e-6, 1e-9),
        ),
        "sdplib": TestSet(
            "semidefinite programs of SDPLIB (Borchers, 1999), in SDPA's format",
            (".dat-s",),
            (1e-4, 1e-6),
        ),
        "cvxpy": TestSet(
            "the continuous programs of CVXPY's test library; needs no files",
            (),
            (1e-6,),
        ),
    }
)


def members(name: str, folder: str | Path | None = None) -> list[Target]:
    """Return the programs of a test set, for `klopt.compare`.

    Parameters
    ----------
    name
        One of `TEST_SETS`.
    folder
        Where its files are; folders in it are not looked into.

    >>> label, problem = members("cvxpy")[0]
    >>> label
    'expcone_1'
    """
    if name not in TEST_SETS:
        raise InvalidSettings(f"there is no test set {name!r}; there are: {', '.join(TEST_SETS)}")
    suffixes = TEST_SETS[name].suffixes
    if not suffixes:
        return _cvxpy_library()
    if folder is None:
        raise InvalidSettings(
            f"the test set {name} is files ({', '.join(suffixes)}) that klopt does not ship; "
            "name their folder with --data"
        )
    place = Path(folder)
    if not place.is_dir():
        raise InvalidSettings(f"{place} is no folder; name the one with the files of {name}")
    found = sorted(path for path in place.iterdir() if path.name.endswith(suffixes))
    if not found:
        raise InvalidSettings(f"{place} has no files that end in {' or '.join(suffixes)}")
    return list(found)


def _cvxpy_library() -> list[Target]:
    """The continuous programs of `cvxpy.tests.solver_test_helpers`, with their names."""
    from cvxpy.tests import solver_test_helpers

    def is_program(name: str, make: Callable[..., Any]) -> bool:
        return bool(_CVXPY_PROGRAM.fullmatch(name)) and not inspect.signature(make).parameters

    functions = inspect.getmembers(solver_test_helpers, inspect.isfunction)
    return [(name, make().prob) for name, make in functions if is_program(name, make)]
