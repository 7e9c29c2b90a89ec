"""The import rule, the size of the rooms, and one sentence per room, read from the syntax trees.

    problems know nothing of solvers; solvers know nothing of problems; the core names neither.

The rules speak of what a module can *reach* through its imports, so that a new helper module needs no new entry.
"""

from __future__ import annotations

import ast
import tomllib
from importlib import import_module

import pytest
from source import MODULES, PACKAGES, ROOT, Module, arrows

NATIVE = {
    "clarabel",
    "cvxpy",
    "dask",
    "distributed",
    "ecos",
    "highspy",
    "matplotlib",
    "osqp",
    "pandas",
    "scs",
    "sklearn",
}

# What sits on top, uses both sides through the public verbs, and is loaded only on request.
TOP = {
    "klopt",
    "klopt.cli",
    "klopt.cli_compare",
    "klopt.cli_experiments",
    "klopt.cli_shared",
    "klopt.cli_verify",
    "klopt.experiments",
    "klopt.learners",
    "klopt.report",
    "klopt.theorems",
    "klopt.verify",
}
MACHINERY = {
    "klopt.certify",
    "klopt.compare",
    "klopt.conformance",
    "klopt.decompose",
    "klopt.execute",
    "klopt.isolate",
    "klopt.plan",
    "klopt.registry",
    "klopt.result",
    "klopt.runs",
    "klopt.solve",
} | TOP
MEANING = {"klopt.problem", "klopt.gram", "klopt.graphs"}
RUNNING = {"klopt.backend"}

NEVER_REACHES = {
    "klopt.problems": MACHINERY | RUNNING | {"klopt.solvers"},
    "klopt.solvers": MACHINERY | MEANING | {"klopt.problems"},
    "klopt.problem": MACHINERY | RUNNING,
    "klopt.backend": MACHINERY | MEANING,
    "klopt.forms": MACHINERY | MEANING | RUNNING,
    "klopt.sets": MACHINERY | MEANING | RUNNING | {"klopt.forms"},
    "klopt.objectives": MACHINERY | MEANING | RUNNING | {"klopt.forms"},
    "klopt.curved": MACHINERY | MEANING | RUNNING | {"klopt.forms"},
    "klopt.cones": MACHINERY | MEANING | RUNNING | {"klopt.forms"},
    "klopt.certify": {"klopt.isolate", "klopt.plan", "klopt.registry", "klopt.solve"} | TOP,
    "klopt.plan": {"klopt.solve", "klopt.isolate"} | TOP,
    "klopt.solve": {"klopt.compare", "klopt.conformance", "klopt.runs"} | TOP,
}

ARROWS = arrows(MODULES)


def lies_in(name: str, packages: set[str]) -> bool:
    """Whether the module is one of `packages` or below one; everything is below `klopt`, so that means itself only."""
    return any(name == package or (package != "klopt" and name.startswith(f"{package}.")) for package in packages)


def reachable(start: str) -> dict[str, tuple[str, ...]]:
    """Return every module that `start` imports directly or not, with the way there."""
    ways = {start: (start,)}
    queue = [start]
    for name in queue:
        for target in sorted(ARROWS[name] - ways.keys()):
            ways[target] = (*ways[name], target)
            queue.append(target)
    return ways


def test_what_a_module_never_reaches() -> None:
    wrong = [
        " -> ".join(way)
        for name in MODULES
        for package, forbidden in NEVER_REACHES.items()
        if lies_in(name, {package})
        for target, way in reachable(name).items()
        if target != name and lies_in(target, forbidden)
    ]
    assert not wrong


def test_core_names_neither_problems_nor_solvers() -> None:
    sides = {"klopt.problems", "klopt.solvers"}
    core = [module for name, module in MODULES.items() if not lies_in(name, TOP | sides)]
    assert not [(module.name, i) for module in core for i in module.imports if lies_in(i.target, sides)]


def test_folders_are_never_imported_as_top_level_names() -> None:
    folders = {"problems", "solvers", "tests"}
    assert not [(m.name, i) for m in MODULES.values() for i in m.imports if i.target.split(".")[0] in folders]


def test_native_libraries_wait_until_they_are_used() -> None:
    others = [module for name, module in MODULES.items() if not lies_in(name, {"klopt.learners", "klopt.report"})]
    assert not [(m.name, i) for m in others for i in m.imports if i.eager and i.target.split(".")[0] in NATIVE]


def test_no_module_reaches_itself() -> None:
    loops = [
        (name, target)
        for name in MODULES
        for target in ARROWS[name]
        if name in reachable(target)  # target leads back to name
    ]
    assert not loops


def test_every_module_opens_with_one_sentence() -> None:
    first = {name: (ast.get_docstring(module.tree) or "").partition("\n")[0] for name, module in MODULES.items()}
    assert not {name: line for name, line in first.items() if not line.endswith(".") or ". " in line}


def test_modules_are_small() -> None:
    """Where one is not: ask which second sentence its docstring needs, and cut there."""
    lines = {name: module.code_lines for name, module in MODULES.items()}
    assert not {name: count for name, count in lines.items() if count > 300}


SOLVERS = [
    module
    for name, module in MODULES.items()
    if name.startswith("klopt.solvers.") and not name.rpartition(".")[2].startswith("_")
]


@pytest.mark.parametrize("module", SOLVERS, ids=[module.name for module in SOLVERS])
def test_solver_file_holds_one_backend_of_its_name(module: Module) -> None:
    targets = [
        target
        for node in module.tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    ]
    assert [target.id for target in targets if isinstance(target, ast.Name)].count("BACKEND") == 1
    assert import_module(module.name).BACKEND.name == module.name.rpartition(".")[2]


def test_the_build_knows_every_package() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    assert set(config["packages"]) == {name for name, module in MODULES.items() if module.is_package}
    assert config["package-dir"] == {package: folder for folder, package in PACKAGES.items()}


def test_a_name_is_listed_once_for_python_and_once_for_type_checkers() -> None:
    klopt = import_module("klopt")
    typed = {i.target for i in MODULES["klopt"].imports if i.target.startswith("klopt.") and i.target not in MODULES}
    assert typed == {f"klopt.{home}.{name}" for name, home in klopt._HOMES.items()}
