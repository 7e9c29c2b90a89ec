"""The statements of problem classes on a page: their LaTeX as MathML.

A class says what it states (`Problem.statement`); runs know the class by its name. A name that no
class here has, as that of a plug-in which is not installed, has no statement.
"""

from __future__ import annotations

from klopt.engine.registry import problems
from klopt.model.html import formula
from klopt.model.problem import Statement

__all__ = ["mathml", "statement_of"]


def statement_of(family: str) -> Statement:
    """Return what the problem class of that name states.

    >>> statement_of("MultipleKernel").weights, statement_of("Unknown").latex
    ('weights', '')
    """
    known = {problem.__name__: problem.statement for problem in problems()}
    return known.get(family, Statement())


def mathml(family: str, sense: str) -> str:
    """Return the statement of a class of problems as MathML, "" where there is none.

    >>> mathml("SoftMargin", "max")[:5], mathml("Unknown", "min")
    ('<math', '')
    """
    return formula(statement_of(family).latex, sense)
