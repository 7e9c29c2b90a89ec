"""The classes of problems on a page: what readers filter by, and what solvers are compared within.

A problem says which area it belongs to (`Statement.area`); one that says nothing, as that of a plug-in
which is not installed, stands under the name of its own class.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from klopt.bench.record import Run
from klopt.bench.report.statements import statement_of
from klopt.bench.trials import grouped

__all__ = ["ProblemClass", "area_of", "problem_classes", "slug"]


@dataclass(frozen=True)
class ProblemClass:
    """An area of problems and all runs on them."""

    name: str
    runs: tuple[Run, ...]

    @property
    def slug(self) -> str:
        """Its name in addresses."""
        return slug(self.name)

    @property
    def problems(self) -> int:
        """How many problems it has."""
        return len({run.problem for run in self.runs})


def area_of(family: str) -> str:
    """Return the area of a class of problems.

    >>> area_of("SoftMargin"), area_of("Unknown")
    ('Support vector machines', 'Unknown')
    """
    return statement_of(family).area or family


def problem_classes(runs: Sequence[Run]) -> tuple[ProblemClass, ...]:
    """Return the classes of a comparison, those of most problems first.

    The family of their runs is the area, so that scores by family are scores by class.
    """
    areas = {family: area_of(family) for family in {run.family for run in runs}}
    named = [replace(run, family=areas[run.family]) for run in runs]
    classes = [ProblemClass(name, tuple(own)) for name, own in grouped(named, _family).items()]
    return tuple(sorted(classes, key=lambda each: (-each.problems, each.name)))


def _family(run: Run) -> str:
    return run.family


def slug(name: str) -> str:
    """Return a name as it stands in an address.

    >>> slug("SoftMargin breast n=100"), slug("<b>")
    ('softmargin-breast-n-100', 'b')
    """
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "x"
