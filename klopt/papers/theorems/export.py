"""Writes the refutation of a claim as a program of its own, which needs nothing but Python.

The program holds the counterexample as exact numbers and the code that computes both sides of the
claim, copied from the check of the claim with all that it calls. What that takes from NumPy and from
ball arithmetic is replaced by a few lines of `refutation_parts.txt`, of which only those are copied
that are used. A referee reads one short file and runs it.
"""

from __future__ import annotations

import ast
import inspect
import io
import re
import sys
import textwrap
import types
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import redirect_stdout
from fractions import Fraction
from importlib.resources import files
from typing import Any

import numpy as np

from klopt.errors import InvalidSettings
from klopt.papers.theorems.cases import rational, recorded_givens
from klopt.papers.theorems.catalogue import cited
from klopt.papers.theorems.claim import Case, Claim

__all__ = ["program"]

PROGRAM = "<refutation>"
"""The name of a program that is tried before it is written."""
MAX_CALLS = 2_000_000
"""A program that calls more functions takes too long for a reader."""
WIDTH = 96
"""Where the text of a program is wrapped."""
BITS = (300, 1000, 3000, 8000)
"""The bits of intervals behind the point, of which the first are taken that suffice."""
OWN = {"array", "eye", "outer", "where", "vectorize", "ndim"}
"""What is taken from NumPy, and is among the parts."""
SAME = {"abs": "abs", "asarray": "array", "ndarray": "Array"}
"""What has another name there."""
OPERATORS: dict[type, tuple[str, ...]] = {
    ast.Add: ("__add__", "__radd__"),
    ast.Sub: ("__sub__", "__rsub__", "__neg__", "__add__", "__radd__"),
    ast.Mult: ("__mul__", "__rmul__"),
    ast.Div: ("__truediv__", "__rtruediv__"),
    ast.Pow: ("__pow__",),
    ast.MatMult: ("__matmul__",),
    ast.USub: ("__neg__",),
    ast.Gt: ("__gt__", "__lt__"),
    ast.Lt: ("__lt__", "__gt__"),
    ast.LtE: ("__le__", "__ge__"),
    ast.GtE: ("__ge__", "__le__"),
    ast.Eq: ("__eq__",),
    ast.NotEq: ("__ne__",),
}
"""Which methods an operator may call."""
CALLS = {
    "abs": ("__abs__",),
    "float": ("__float__",),
    "sum": ("__add__", "__radd__"),
    "max": ("__gt__", "__lt__"),
    "min": ("__lt__", "__gt__"),
}
ALWAYS = {"__init__", "__getitem__"}
_UNIT = re.compile(r"(?:    )?(?:def (\w+)\(|class (\w+)|(\w+) = )")
"""How a definition begins, in a class or outside."""


class _TooLong(BaseException):
    """A program that is tried makes too many calls."""


def program(claim: Claim, case: Case) -> str:
    """Return a program that refutes a claim by a case, for `python -I -S`.

    Its exit code is 0 if the claim fails there, and 1 if it does not.

    Parameters
    ----------
    claim
        One that has an exact check.
    case
        Where it fails.
    """
    if claim.exact is None:
        raise InvalidSettings(f"{claim.name} has no check in exact numbers, so no program")
    parts = _Closure()
    entry = parts.take(claim.exact)
    data = rational(case)
    with recorded_givens() as givens:
        claim.exact(data)
    nodes = parts.in_order()
    used = _names(nodes)
    nodes = [_kept(node, used) if isinstance(node, ast.ClassDef) else node for node in nodes]
    body = _compact("\n".join(map(ast.unparse, nodes)))
    # Entries that only other checks use would distract.
    named = _texts(nodes)
    data = {name: value for name, value in (data | givens).items() if name in named}
    used = _names(nodes)
    ending = [*_data(data), *body, *(line.format(sides=entry) for line in ENDING)]
    # Rational numbers do where the check takes no root, exponential or logarithm.
    choices = (None, *BITS) if "ball" in used else (None,)
    for bits in choices:
        text = _needed(used | {"array", "__gt__", "__lt__", "__float__"}, data, bits)
        units = _units(text if _slices(nodes) else _simpler(text))
        head = ["#!/usr/bin/env python3", *_heading(claim), *_imports(units, ending)]
        if bits is not None:
            head.append(f"BITS = {bits}  # of intervals, behind the point")
        called, refuted = _executed(head, units, ending)
        if refuted:
            return _assembled(head, _pruned(units, called, ending), ending)
    raise InvalidSettings(f"no program: intervals of {choices[-1]} bits do not decide {claim.name}")


def _assembled(head: Sequence[str], units: Sequence[tuple[str, str]], ending: Sequence[str]) -> str:
    """The text of a program, with the imports that its units need."""
    lines = [line for line in head if not line.startswith(("import ", "from "))]
    at = next(i for i, line in enumerate(lines[2:], 2) if line.endswith('"""')) + 1
    lines[at:at] = _imports(units, ending)
    lines += [line for _, unit in units for line in unit.splitlines()]
    return "\n".join([*lines, *ending]) + "\n"


def _compact(source: str) -> list[str]:
    """Code without empty lines; the one statement of a function, branch or loop in its line."""
    found: list[str] = []
    lines = [line for line in source.splitlines() if line.strip()]
    depths = [len(line) - len(line.lstrip()) for line in lines]
    for i, line in enumerate(lines):
        before = found[-1] if found else ""
        is_alone = (
            i > 0 and depths[i] > depths[i - 1] and (depths[i + 1 : i + 2] or [0])[0] < depths[i]
        )
        simple = not line.rstrip().endswith(":") and not line.lstrip().startswith(("@", "class "))
        opens = bool(_OPENING.match(before)) and before.endswith(":")
        if is_alone and simple and opens and len(before) + len(line.strip()) < WIDTH:
            found[-1] = f"{before} {line.strip()}"
        else:
            found.append(line)
    return found


_OPENING = re.compile(r"\s*(def|for|while|if|elif|else)\b")


def _slices(nodes: Iterable[ast.AST]) -> bool:
    """Whether the code takes columns of matrices, or makes matrices of vectors."""
    inner = (node for outer in nodes for node in ast.walk(outer))
    places = [node.slice for node in inner if isinstance(node, ast.Subscript)]
    parts = [part for place in places if isinstance(place, ast.Tuple) for part in place.elts]
    return any(
        isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and part.value is None)
        for part in parts
    )


def _simpler(parts: str) -> str:
    """The parts with entries of arrays by one index or two, and no slices or new axes."""
    start = parts.find("    def __getitem__(x, i):")
    if start < 0:
        return parts
    stop = parts.index("    __add__ = lambda x, y: each", start)
    one = "    __getitem__ = lambda x, i: x[i[0]][i[1]] if isinstance(i, tuple) else list.__getitem__(x, i)\n"
    return parts[:start] + one + parts[stop:]


ENDING = [
    "print(__doc__.strip(), *(f'{{name}} = {{value}}' for name, value in CASE.items()), sep='\\n')",
    "try: left, right = {sides}(CASE)",
    "except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {{why}}')",
    "show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{{float(x):.17g}}'",
    "print('the claim says that', show(left), 'is at most', show(right))",
    "sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')",
]
"""What every program ends with: exit code 0 if the claim is refuted, and 1 if it is not."""


def _heading(claim: Claim) -> list[str]:
    texts = [
        f"Refutes {claim.name}: {cited(claim.paper)}, {claim.number}.",
        f"Claim: {claim.says}",
        f"Premise: {claim.premise}." if claim.premise else "",
        f"What holds: {claim.correction}" if claim.correction else "",
        "Exact numbers, or intervals that enclose them. Exit code 0: refuted.",
    ]
    wrapped = [line for text in texts for line in textwrap.wrap(text, WIDTH)]
    text = "\n".join(wrapped).replace("\\", "\\\\").replace('"""', "'''")
    return f'"""{text}\n"""'.splitlines()


def _imports(units: Sequence[tuple[str, str]], ending: Sequence[str]) -> list[str]:
    source = "\n".join([*(unit for _, unit in units), *ending])
    lines = ["import sys"]
    lines += [f"import {name}" for name in ("math", "operator") if f"{name}." in source]
    lines.append("from fractions import Fraction")
    names = [name for name in ("ceil", "factorial", "floor", "isqrt") if f"{name}(" in source]
    if names:
        lines.append(f"from math import {', '.join(names)}")
    if "@dataclass" in source:
        lines.append("from dataclasses import dataclass")
    typing = [name for name in ("Any", "NamedTuple") if re.search(rf"[:(] ?{name}\b", source)]
    if typing:
        lines.append(f"from typing import {', '.join(typing)}")
    return lines


def _executed(
    head: Sequence[str], units: Sequence[tuple[str, str]], ending: Sequence[str]
) -> tuple[set[int], bool]:
    """Run a program; return which units were called, and whether it refutes the claim."""
    lines = list(head)
    starts = []
    for _, unit in units:
        starts.append(len(lines) + 1)
        lines += unit.splitlines()
    first_of_ending = len(lines) + 1
    lines += ending
    called: set[int] = set()
    count = 0

    def note(frame: types.FrameType, event: str, argument: Any) -> None:
        nonlocal count
        if event == "call" and frame.f_code.co_filename == PROGRAM:
            count += 1
            if count > MAX_CALLS:
                raise _TooLong
            if frame.f_code.co_firstlineno < first_of_ending:
                called.add(bisect_right(starts, frame.f_code.co_firstlineno) - 1)

    code = compile("\n".join(lines), PROGRAM, "exec")
    before = sys.getprofile()
    try:
        with redirect_stdout(io.StringIO()):
            sys.setprofile(note)
            exec(code, {"__name__": "__main__", "__doc__": ""})
    except SystemExit as end:
        return called, end.code is None
    except _TooLong:
        raise InvalidSettings("no program: the check makes too many steps for one") from None
    except (AttributeError, TypeError, ValueError):
        # Rational numbers have no roots and may have too many digits to be shown.
        return called, False
    finally:
        sys.setprofile(before)
    return called, False


def _pruned(
    units: Sequence[tuple[str, str]], called: set[int], ending: Sequence[str]
) -> list[tuple[str, str]]:
    """The units that were called; of a class its head, and names that stand for what is kept."""
    names = {units[i][0] for i in called if 0 <= i < len(units)}
    wanted = []
    for i, (_, unit) in enumerate(units):
        alias = re.fullmatch(r"    \w+ = (\w+)", unit)
        is_head = unit.startswith("class ")
        wanted.append(is_head or i in called or bool(alias and alias[1] in names))
    kept = [unit for unit, is_wanted in zip(units, wanted, strict=True) if is_wanted]
    rest = "\n".join([*(unit for _, unit in kept if not unit.startswith("class ")), *ending])
    out = []
    for i, (name, unit) in enumerate(kept):
        if unit.startswith("class "):
            if not re.search(rf"\b{name}\b", rest):
                continue
            # A class of which nothing is used but its name has a body all the same.
            if not (i + 1 < len(kept) and kept[i + 1][1].startswith("    ")):
                unit = unit.partition("  #")[0] + " pass"
        out.append((name, unit))
    return out


def _data(case: dict[str, Any]) -> Iterator[str]:
    """The counterexample; what is no whole number is a fraction."""
    exact = any(isinstance(value, np.ndarray) and value.dtype == object for value in case.values())
    if exact:
        yield "F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)"
    else:
        yield "F = Fraction"
    yield "CASE = {"
    for name, value in case.items():
        text = _number(value)
        if isinstance(value, np.ndarray):
            text = f"F({_bare(value)})" if value.dtype == object else f"array({text})"
        yield from textwrap.wrap(
            f"{name!r}: {text},",
            WIDTH,
            initial_indent="    ",
            subsequent_indent="        ",
            break_long_words=False,
        )
    yield "}"


def _bare(value: Any) -> str:
    """Fractions of an array without their type: whole numbers, or texts."""
    if isinstance(value, np.ndarray):
        return f"[{', '.join(map(_bare, value))}]"
    whole = isinstance(value, int) or value.denominator == 1
    return str(value) if whole else repr(str(value))


def _number(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"[{', '.join(map(_number, value))}]"
    if isinstance(value, np.bool_):
        return str(bool(value))
    if isinstance(value, np.integer):
        return str(int(value))
    if isinstance(value, Fraction):
        return f"F({value})" if value.denominator == 1 else f"F('{value}')"
    return repr(value)


class _Closure:
    """The functions and classes that a check calls, without annotations and docstrings."""

    def __init__(self) -> None:
        self.nodes: dict[str, ast.stmt] = {}
        self.names: dict[tuple[str, str], str] = {}

    def in_order(self) -> list[ast.stmt]:
        """What is called stands before what calls it."""
        return list(self.nodes.values())

    def take(self, thing: Any) -> str:
        """Add a function or class with all that it calls; return the name that it has here."""
        key = (thing.__module__, thing.__qualname__)
        is_lambda = thing.__name__ == "<lambda>"
        if key in self.names and not is_lambda:
            return self.names[key]
        name = "sides" if is_lambda else thing.__name__
        while name in self.names.values():
            name += "_"
        self.names[key] = name
        node = _lambda(thing) if is_lambda else ast.parse(_source(thing)).body[0]
        scope = vars(sys.modules[thing.__module__])
        changed = ast.fix_missing_locations(_Changed(self, scope).visit(node))
        assert isinstance(changed, ast.FunctionDef | ast.ClassDef)
        changed.name = name
        self.nodes[name] = changed
        return name


class _Changed(ast.NodeTransformer):
    """Takes out what only klopt needs, and puts in the names of what is copied."""

    def __init__(self, closure: _Closure, scope: dict[str, Any]) -> None:
        self.closure = closure
        self.scope = scope

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        for argument in (*node.args.args, *node.args.kwonlyargs):
            argument.annotation = None
        node.returns = None
        node.body = _without_docstring(node.body)
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        node.body = _without_docstring(node.body)
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        # A field of a class needs its annotation, a variable does not.
        if node.value is None:
            node.annotation = ast.Name("Any", ast.Load())
            return node
        return self.generic_visit(ast.Assign([node.target], node.value))

    def visit_With(self, node: ast.With) -> Any:
        body = [self.visit(each) for each in node.body]
        return body

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        if isinstance(node.value, ast.Name):
            module = self.scope.get(node.value.id)
            if isinstance(module, types.ModuleType):
                return self._of_module(node, module)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> Any:
        called = self.scope.get(node.func.id) if isinstance(node.func, ast.Name) else None
        if isinstance(node.func, ast.Name) and hasattr(called, "__wrapped__"):  # marked by `given`
            return ast.parse(f"CASE[{node.func.id!r}]", mode="eval").body
        # `cast` and keywords of NumPy say nothing here.
        if isinstance(node.func, ast.Name) and node.func.id == "cast":
            return self.visit(node.args[1])
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> Any:
        found = self.scope.get(node.id, self)
        if node.id == "InvalidSettings":
            return ast.Name("ValueError", node.ctx)
        if node.id in ("Fraction", "NamedTuple", "dataclass", "ball") or found is self:
            return node
        if isinstance(found, types.FunctionType | type) and _is_of_papers(found):
            return ast.Name(self.closure.take(found), node.ctx)
        if isinstance(found, int | float | str | tuple):
            return ast.parse(repr(found), mode="eval").body
        if isinstance(found, type) or callable(found):
            raise InvalidSettings(f"no program: the check calls {node.id}, which is not Python's")
        return node

    def _of_module(self, node: ast.Attribute, module: types.ModuleType) -> Any:
        if module.__name__ == "math":
            return node
        if module is np:
            if node.attr in SAME:
                return ast.Name(SAME[node.attr], node.ctx)
            if node.attr in OWN:
                return ast.Name(node.attr, node.ctx)
            raise InvalidSettings(f"no program: the check calls numpy.{node.attr}")
        found = getattr(module, node.attr)
        if isinstance(found, int | float | str | tuple):
            return ast.parse(repr(found), mode="eval").body
        if _is_of_papers(found):
            return ast.Name(self.closure.take(found), node.ctx)
        raise InvalidSettings(f"no program: the check calls {module.__name__}.{node.attr}")


def _is_of_papers(thing: Any) -> bool:
    home = str(getattr(thing, "__module__", ""))
    return home.startswith("klopt.papers.theorems.") or not home.startswith(("klopt", "numpy"))


def _source(thing: Any) -> str:
    return textwrap.dedent(inspect.getsource(thing))


def _lambda(thing: Any) -> ast.FunctionDef:
    """The function that a lambda is, found as the argument `exact` in its line."""
    tree = ast.parse(inspect.getsource(sys.modules[thing.__module__]))
    line = thing.__code__.co_firstlineno
    found = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword)
        and node.arg == "exact"
        and isinstance(node.value, ast.Lambda)
        and node.value.lineno == line
    ]
    if not found:
        raise InvalidSettings("no program: the source of the check was not found")
    node = found[0]
    returned = ast.Return(node.body)
    made = ast.FunctionDef("sides", node.args, [returned], [], None)
    return ast.fix_missing_locations(made)


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    kept = [
        node
        for node in body
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    ]
    return kept or [ast.Pass()]


def _texts(nodes: Iterable[ast.AST]) -> set[str]:
    """All texts in the code, of which some name entries of the case."""
    inner = (node for outer in nodes for node in ast.walk(outer))
    constants = [node.value for node in inner if isinstance(node, ast.Constant)]
    return {value for value in constants if isinstance(value, str)}


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    found: set[str] = set()
    for node in (inner for outer in nodes for inner in ast.walk(outer)):
        if isinstance(node, ast.Name):
            found |= {node.id, *CALLS.get(node.id, ())}
        elif isinstance(node, ast.Attribute):
            found |= {node.attr, *CALLS.get(node.attr, ())}
        elif isinstance(node, ast.BinOp | ast.UnaryOp | ast.AugAssign):
            found |= set(OPERATORS.get(type(node.op), ()))
        elif isinstance(node, ast.Compare):
            found |= {name for op in node.ops for name in OPERATORS.get(type(op), ())}
    return found


def _needed(used: set[str], case: dict[str, Any], bits: int | None) -> str:
    """What of `refutation_parts.txt` may be used: intervals (of so many bits), arrays or both."""
    text = files("klopt.papers.theorems").joinpath("refutation_parts.txt").read_text("utf-8")
    balls, arrays = text.removeprefix("# BALL\n").split("# ARRAY\n")
    has_arrays = any(isinstance(value, np.ndarray) for value in case.values()) or "Array" in used
    if bits is None:
        balls = "ball = Fraction\n"
    return (balls if "ball" in used else "") + (
        arrays if has_arrays or used & OWN - {"array"} else ""
    )


def _units(text: str) -> list[tuple[str, str]]:
    """Each definition of a text with its name; the head of a class is one of its own."""
    lines = text.splitlines()
    heads = [i for i, line in enumerate(lines) if _UNIT.match(line)]
    units = []
    for start, stop in zip(heads, [*heads[1:], len(lines)], strict=False):
        found = _UNIT.match(lines[start])
        assert found is not None
        units.append((next(filter(None, found.groups())), "\n".join(lines[start:stop])))
    return units


def _kept(node: ast.ClassDef, used: set[str]) -> ast.ClassDef:
    """A class with the methods that are used."""
    body = []
    for part in node.body:
        if isinstance(part, ast.FunctionDef):
            wanted = part.name in used | ALWAYS
        elif isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name):
            # `__radd__ = __add__` needs what it names.
            wanted = part.targets[0].id in used and isinstance(part.value, ast.Name)
            wanted = wanted and part.value.id in used  # type: ignore[attr-defined]
        else:
            wanted = isinstance(part, ast.AnnAssign)  # a field
        if wanted:
            body.append(part)
    kept = body or [ast.Pass()]
    return ast.ClassDef(node.name, node.bases, node.keywords, kept, node.decorator_list)
