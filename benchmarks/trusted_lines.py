"""Counts what a verdict rests on: the files that a proof imports, directly or not, and their lines.

    python benchmarks/trusted_lines.py

One row for the proof of a cone program (the ends of an LP, QCQP or SDP, its Farkas vectors and rays), one for
each family, one for all of them. Lines of code are those that are left without comments, docstrings
and blank lines.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from source import MODULES, Module

CONE = [f"klopt.proof.cone_{part}" for part in ("lower_bound", "upper_bound", "infeasibility")]
PARTS = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)


def closure(roots: Iterable[str]) -> list[Module]:
    """Return the modules of klopt that the roots import, those inside functions included."""
    found: dict[str, Module] = {}
    left = list(roots)
    while left:
        name = left.pop()
        if name in found or name not in MODULES:
            continue
        found[name] = MODULES[name]
        typing = _for_type_checkers(MODULES[name])
        left += [each.target for each in MODULES[name].imports if each.line not in typing]
    return list(found.values())


def _for_type_checkers(module: Module) -> set[int]:
    """The lines of `if TYPE_CHECKING`, which never run."""
    return {
        line
        for node in ast.walk(module.tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for line in range(node.lineno, (node.end_lineno or 0) + 1)
    }


def code_lines(module: Module) -> int:
    """Return the lines that hold code."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    words: set[int] = set()
    for node in ast.walk(module.tree):
        body = node.body if isinstance(node, documented) else []
        for statement in body:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                words.update(range(statement.lineno, (statement.end_lineno or 0) + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
        if token.type not in PARTS and token.string:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - words)


def main() -> None:
    families = sorted(
        name
        for name in MODULES
        if name.startswith("klopt.problems._") and name.rpartition(".")[2].endswith("proof")
    )
    core = [name for name in MODULES if name.startswith("klopt.proof")]
    certificate = "klopt.proof.certificate"
    rows = {
        "a cone program": [certificate, *CONE],
        **{name.removeprefix("klopt.problems."): [certificate, name] for name in families},
        "all": [*core, *families],
    }
    print(f"{'proof of':28}{'files':>8}{'of klopt.proof':>16}{'lines':>8}{'of code':>9}")
    for what, roots in rows.items():
        modules = [module for module in closure(roots) if module.text.strip()]
        own = sum(module.name.startswith("klopt.proof") for module in modules)
        total = sum(len(module.text.splitlines()) for module in modules)
        code = sum(map(code_lines, modules))
        print(f"{what:28}{len(modules):8}{own:16}{total:8}{code:9}")


if __name__ == "__main__":
    main()
