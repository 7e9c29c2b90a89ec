"""The files of the three packages as text and syntax trees, under the names they are imported by."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {
    "klopt": "klopt",
    "problems": "klopt.problems",
    "solvers": "klopt.solvers",
    "checker": "klopt.checker",
}


@dataclass(frozen=True)
class Import:
    target: str  # `from a.b import c` is both `a.b` and `a.b.c`
    line: int
    eager: (
        bool  # runs when the module is imported, not when a function is called or a type is checked
    )


@dataclass(frozen=True)
class Module:
    name: str
    text: str
    is_package: bool

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def imports(self) -> tuple[Import, ...]:
        return tuple(self._imports(self.tree, eager=True))

    def _imports(self, node: ast.AST, eager: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from (Import(alias.name, child.lineno, eager) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                base = self._absolute(child)
                yield Import(base, child.lineno, eager)
                yield from (
                    Import(f"{base}.{alias.name}", child.lineno, eager) for alias in child.names
                )
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) or _is_for_type_checkers(
                child
            ):
                yield from self._imports(child, eager=False)
            elif isinstance(
                child, ast.stmt | ast.excepthandler | ast.match_case
            ):  # no expression imports anything
                yield from self._imports(child, eager)

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        package = self.name.split(".") if self.is_package else self.name.split(".")[:-1]
        above = package[: len(package) - node.level + 1]
        return ".".join([*above, node.module] if node.module else above)


def _is_for_type_checkers(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def _read() -> dict[str, Module]:
    found = {}
    for folder, package in PACKAGES.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            is_package = parts[-1] == "__init__"
            name = ".".join((package, *(parts[:-1] if is_package else parts)))
            found[name] = Module(name, path.read_text(encoding="utf-8"), is_package)
    return found


MODULES = _read()


def arrows(names: dict[str, Module]) -> dict[str, set[str]]:
    """Return for each module the modules among `names` that it imports, anywhere in its text."""
    return {
        name: {i.target for i in module.imports} & names.keys() - {name}
        for name, module in names.items()
    }
