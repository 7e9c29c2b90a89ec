"""One page for each public class and function, written into `reference/api/` when the site is built."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from reference_lists import groups, learners
from sphinx.application import Sphinx

from klopt import learners as learner_package
from klopt.engine.registry import problems
from klopt.model.problem import Problem

PAGE = """# {name}
{formula}
```{{eval-rst}}
.. {directive}:: {target}
{options}```
"""
MEMBERS = "   :members:\n   :undoc-members:\n"
OF_PROBLEMS = "   :members:\n   :exclude-members: formulations, bracket, sample, describe, kernel\n"


def own_problems() -> list[type[Problem]]:
    """Return the problems that klopt ships."""
    return [problem for problem in problems() if problem.__module__.startswith("klopt.problems.")]


def summary(thing: object) -> str:
    """Return the first sentence of a docstring, for a cell of a table."""
    first = (inspect.getdoc(thing) or "").partition("\n\n")[0].replace("\n", " ")
    return first.replace("|", "∣").replace("*", r"\*").replace("_", r"\_")


def formula(problem: type[Problem]) -> str:
    """Return the statement of a problem as a formula, minimised or maximised as by default."""
    latex = problem.statement.latex.replace("GOAL", r"\min")
    return f"\n$$\n{latex}\n$$\n" if latex else ""


def pages() -> dict[str, str]:
    """Return the pages by the names of their files."""
    made = {}
    for members in groups().values():
        for directive, name in members:
            options = MEMBERS if directive == "autoclass" else ""
            target = f"klopt.{name}"
            made[target] = page(target, directive, options)
    for problem in own_problems():
        target = f"klopt.problems.{problem.__name__}"
        made[target] = page(target, "autoclass", OF_PROBLEMS, formula(problem))
    for name, members in learners().items():
        target = f"klopt.learners.{name}"
        inside = "".join(f"\n   .. {directive}:: {member}\n" for directive, member in members)
        options = f"   :show-inheritance:\n{inside}"
        made[target] = page(target, "autoclass", options)
    return made


def page(target: str, directive: str, options: str, formula: str = "") -> str:
    """Return the page of one name."""
    name = target.rpartition(".")[2]
    return PAGE.format(
        name=name, directive=directive, target=target, options=options, formula=formula
    )


def rows(prefix: str, names: list[str], things: dict[str, Any]) -> str:
    """Return the rows of a table that lead to the pages."""
    return "".join(
        f"| [`{name}`](api/{prefix}{name}.md) | {summary(things[name])} |\n" for name in names
    )


def learner_rows() -> str:
    """Return the table of the learners."""
    names = list(learners())
    return rows("klopt.learners.", names, {name: getattr(learner_package, name) for name in names})


def problem_rows() -> str:
    """Return the table of the problems."""
    things: dict[str, Any] = {problem.__name__: problem for problem in own_problems()}
    return rows("klopt.problems.", list(things), things)


def _write(app: Sphinx) -> None:
    """Write what has changed, so that a second build reads only that again."""
    folder = Path(app.srcdir) / "reference" / "api"
    folder.mkdir(exist_ok=True)
    made = {f"{name}.md": text for name, text in pages().items()}
    for old in folder.glob("*.md"):
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages before Sphinx looks for documents."""
    app.connect("builder-inited", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
