"""The folder tree is the architecture: who may import whom, read from the syntax trees.

    cli, judging, learners, papers, bench, conformance -> engine -> certificates -> proof -> model
    problems -> model, proof, numerics, kernels, programs         solvers -> model, numerics

Problems know nothing of solvers, solvers know nothing of problems, the core names neither.
"""

from __future__ import annotations

import ast
import tomllib
from functools import cache
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
    "PEPit",
    "pandas",
    "qpsolvers",
    "scs",
    "sklearn",
}
VERBS = {"solve", "plan", "compare", "verify", "judge", "check", "register"}

BORDER = {"arrays", "errors"}
CORE = BORDER | {"model", "proof", "witness", "numerics", "kernels", "programs", "engine"}
MAY_IMPORT = {
    "errors": set(),
    "arrays": {"errors"},
    "model": BORDER,
    "proof": BORDER | {"model"},
    "witness": BORDER | {"model", "proof"},
    "checker": set(),
    "certificates": BORDER | {"model", "proof", "witness", "checker"},
    "numerics": BORDER | {"model"},
    "kernels": BORDER | {"model", "proof", "numerics"},
    "programs": BORDER | {"model", "proof", "witness", "numerics", "kernels"},
    "problems": BORDER | {"model", "proof", "witness", "numerics", "kernels", "programs"},
    "solvers": BORDER | {"model", "numerics"},
    # `programs` for one thing: the engine reads the problem that a file states.
    "engine": BORDER | {"model", "proof", "witness", "programs", "certificates"},
    "conformance": CORE,
    # `certificates`: a comparison keeps those of its runs.
    "bench": CORE | {"certificates", "papers"},
    # Proofs of claims are certificates, which the checker itself decides about.
    "papers": CORE | {"problems", "learners", "bench", "certificates", "checker", "worst_cases"},
    "learners": CORE | {"problems", "bench"},
    # Worst cases are decided by the checker itself.
    "worst_cases": CORE | {"certificates", "checker"},
    # The problems that other people's answers belong to.
    "judging": CORE | {"problems", "worst_cases"},
    "cli": CORE | {"certificates", "bench", "conformance", "judging", "learners", "papers"},
    "__main__": {"cli"},
}
"""What a folder or root module of klopt may import, beside itself."""

PROOF_FILES = [
    name for name in MODULES if name.startswith("klopt.problems._") and name.endswith("proof")
]
PROOF_MAY_IMPORT = (
    "klopt.arrays",
    "klopt.errors",
    "klopt.model",
    "klopt.proof",
    "klopt.kernels.gram",
)


@cache
def imports_of_klopt() -> dict[str, set[str]]:
    """What each module imports; all files are parsed when a test asks, not when tests are collected."""
    return arrows(MODULES)


def folder(name: str) -> str:
    """Return the folder or root module of klopt that a module lies in; of klopt itself, nothing."""
    return name.split(".")[1] if "." in name else ""


def test_every_folder_has_its_rule() -> None:
    assert {folder(name) for name in MODULES} - {""} == MAY_IMPORT.keys()


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_a_folder_imports_only_what_lies_below_it(package: str) -> None:
    allowed = MAY_IMPORT[package] | {package, ""}
    wrong = [
        (name, target)
        for name in MODULES
        if folder(name) == package
        for target in imports_of_klopt()[name]
        if folder(target) not in allowed
    ]
    assert not wrong


def test_plug_in_folders_never_import_the_public_package() -> None:
    """`from klopt import solve` would reach every folder: inside, names come from the modules that define them."""
    inside = [
        name
        for name in MODULES
        if folder(name) in MAY_IMPORT.keys() - {"cli", "conformance", "papers"}
    ]
    assert not [name for name in inside for i in MODULES[name].imports if i.target == "klopt"]


@pytest.mark.parametrize("name", PROOF_FILES)
def test_a_proof_rests_on_the_trusted_core_alone(name: str) -> None:
    """What a bracket runs imports the model, the core of proofs, and proof files of other families."""
    wrong = [
        target
        for target in imports_of_klopt()[name] - {"klopt"}
        if not target.startswith(PROOF_MAY_IMPORT)
        and target not in PROOF_FILES
        and not MODULES[target].is_package
    ]
    assert not wrong


def test_core_names_neither_problems_nor_solvers() -> None:
    core = [
        module
        for name, module in MODULES.items()
        if folder(name) in CORE | {"conformance", "bench"}
    ]
    sides = ("klopt.problems", "klopt.solvers")
    assert not [
        (module.name, i) for module in core for i in module.imports if i.target.startswith(sides)
    ]


def test_folders_are_never_imported_as_top_level_names() -> None:
    folders = {"problems", "solvers", "tests"}
    assert not [
        (m.name, i)
        for m in MODULES.values()
        for i in m.imports
        if i.target.split(".")[0] in folders
    ]


def test_no_module_or_folder_is_called_as_a_public_verb() -> None:
    assert not {name for name in MODULES if VERBS & set(name.split("."))}


def test_native_libraries_wait_until_they_are_used() -> None:
    others = [
        module for name, module in MODULES.items() if folder(name) not in ("learners", "papers")
    ]
    assert not [
        (m.name, i)
        for m in others
        for i in m.imports
        if i.eager and i.target.split(".")[0] in NATIVE
    ]


def test_no_module_reaches_itself() -> None:
    def reachable(start: str) -> set[str]:
        found = [start]
        for name in found:
            found += sorted(imports_of_klopt()[name] - set(found))
        return set(found)

    assert not [
        (name, target)
        for name in MODULES
        for target in imports_of_klopt()[name]
        if name in reachable(target)
    ]


def test_every_module_opens_with_one_sentence() -> None:
    first = {
        name: (ast.get_docstring(module.tree) or "").partition("\n")[0]
        for name, module in MODULES.items()
    }
    assert not {
        name: line for name, line in first.items() if not line.endswith(".") or ". " in line
    }


SOLVERS = [
    module
    for name, module in MODULES.items()
    if name.startswith("klopt.solvers.") and not name.split(".")[2].startswith("_")
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
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "setuptools"
    ]
    assert set(config["packages"]) == {
        name for name, module in MODULES.items() if module.is_package
    }
    assert config["package-dir"] == {package: folder for folder, package in PACKAGES.items()}
