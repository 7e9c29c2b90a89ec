"""Lists of the reference: public names in groups, the learners, the help of each command."""

from __future__ import annotations

from collections.abc import Iterator
from types import FunctionType, ModuleType

import click

import klopt
from klopt import learners as _learners
from klopt.cli.main import main

GROUPS = {
    "Results and verdicts": ("Result", "Verdict", "Certificate", "Plan", "Route", "Refusal", "Comparison"),
    "What a problem is made of": ("Problem", "Formulation", "Bracket", "Point", "Gram"),
    "What a backend is made of": ("Backend", "Settings", "Answer", "Stop", "Step", "Start", "Check", "Status"),
    "Forms": ("ConeForm", "SimplexForm", "SaddleForm", "ExplicitForm", "Feature", "Cones"),
    "Functions and sets": (
        "Linear", "Quadratic", "KernelQuadratic", "Oracle",
        "Simplex", "OrderedSimplex", "BoxPlane", "Spectrahedron", "Product",
    ),
}  # fmt: skip
VERBS = "Verbs"
ERRORS = "Errors and warnings"
MORE = "More"


def groups() -> dict[str, list[tuple[str, str]]]:
    """Return directive and name of every public name by group; ungrouped names come last."""
    found: dict[str, list[tuple[str, str]]] = {
        title: [] for title in (VERBS, *GROUPS, ERRORS, MORE)
    }
    order = {
        name: (title, place) for title, names in GROUPS.items() for place, name in enumerate(names)
    }
    public = (name for name in dir(klopt) if not name.startswith("__"))
    for name in sorted(public, key=lambda name: order.get(name, ("", 0))[1]):
        thing = getattr(klopt, name)
        if isinstance(thing, ModuleType):
            continue
        if not isinstance(thing, type):
            found[VERBS].append(("autofunction", name))
        elif issubclass(thing, Exception):
            found[ERRORS].append(("autoexception", name))
        else:
            found[order.get(name, (MORE, 0))[0]].append(("autoclass", name))
    return {title: names for title, names in found.items() if names}


def learners() -> dict[str, list[tuple[str, str]]]:
    """Return the estimators with (directive, name) of what klopt gives each of them."""
    classes = {name: getattr(_learners, name) for name in _learners.__all__}
    return {name: _members(thing) for name, thing in classes.items() if isinstance(thing, type)}


def _members(thing: type) -> list[tuple[str, str]]:
    ours = [base for base in thing.__mro__ if base.__module__.startswith("klopt.")]
    named = {
        name: value
        for base in reversed(ours)
        for name, value in vars(base).items()
        if not name.startswith("_")
    }
    methods = [
        ("automethod", name) for name, value in named.items() if isinstance(value, FunctionType)
    ]
    return methods + [
        ("autoproperty", name) for name, value in named.items() if isinstance(value, property)
    ]


def commands() -> Iterator[tuple[str, str]]:
    """Return every command and its help."""
    with click.Context(main, info_name="klopt", max_content_width=100) as context:
        yield from _below(main, context)


def _below(group: click.Group, context: click.Context) -> Iterator[tuple[str, str]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None or command.hidden:
            continue
        with click.Context(command, parent=context, info_name=name) as inner:
            yield inner.command_path, command.get_help(inner)
            if isinstance(command, click.Group):
                yield from _below(command, inner)
