"""Mutation testing of the trusted core: change one place of `klopt/proof` at a time; tests must notice.

    python benchmarks/mutation.py --sample 60                  60 mutants of each file
    python benchmarks/mutation.py --files semidefinite dyadic  every mutant of two files
    python benchmarks/mutation.py --sample 60 --survivors      only what survived the last run

The tests are collected once. Each mutant is a fork of that process, in which the code objects of the
functions of one file are replaced by those of the changed source (numbers outside of functions are
replaced wherever they were imported), and in which the tests that reach the changed lines run until
one fails. Which tests reach which lines is measured once, with `sys.settrace`. Every verdict is a line of
the file of runs; a run that was interrupted goes on where it stopped, `--fresh` begins anew, and
`--reach` measures again, for instance after tests were added.

    numbers      n + 1, n - 1; truth values
    comparisons  each by every other one; `is`, `in` and their negations; and/or; not
    arithmetic   + and -, * and /; signs; a term of a sum or a change by += dropped
    rounding     round_up(x), round_down(x), nextafter(x, ..), enlarged(x, ..) by x; x (1 + k u) by x
    loops        break and continue

A mutant is noticed if a test fails, or if the tests take much longer than they did. The table goes
to standard output, news of the run to standard error.

Some mutants are the same program in other words, and no test can tell them apart:

    by rule      a constant expression of the same value (1 + 3u is the float 1 + 4u), `strict=True` of
                 `zip`, which only raises, `if TYPE_CHECKING`, the midpoint of an enclosure of all
                 numbers
    by proof     those of `mutation_equivalent.toml`, each with its reason

They are run and counted like all others, and the table has a column for those of them that survive:
no figure leaves them out without saying so. An entry of that file that a test has noticed, or that is
no mutant any more, ends the run with an error.
"""

from __future__ import annotations

import os

for pool in ("OMP", "OPENBLAS", "MKL"):
    os.environ[f"{pool}_NUM_THREADS"] = "1"

import argparse
import ast
import contextlib
import copy
import gc
import json
import math
import random
import resource
import signal
import sys
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import EnumType
from functools import cache
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
CORE = ROOT / "klopt" / "proof"
EQUIVALENT = Path(__file__).with_name("mutation_equivalent.toml")
SEED = 0
TESTS = (
    *(
        "core",
        "core_ends",
        "core_sharp",
        "enclosure",
        "semidefinite",
        "linear_systems",
        "cone_bounds",
        "rational",
    ),
    *("certificates", "exact_sets", "exact_margin", "exact_logdet", "exact_adaptive"),
    *("quick_proofs", "estimates", "within", "bounds", "centring", "oracle_problems"),
    *("precise_bounds", "power_cones"),
    *("core_family_sharp", "core_cones_sharp", "band_form"),
)
"""The tests of the core and of the proofs that use it: `tests/test_*.py`."""
UNMEASURED = ("klopt/proof/__init__.py",)
ALLOWED_S = 8.0
"""Tests of about so many seconds are tried on a mutant, the quickest first."""
PATIENCE = 3.0
"""How much longer than that a mutant may take before it counts as noticed."""
MEMORY = 6 * 2**30

COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
NEGATIONS = {
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
SWAPPED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
ROUNDINGS = ("round_up", "round_down", "nextafter", "enlarged")


# ---- what can be changed


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    file: str
    place: str
    """The function, or "" outside of functions."""
    lines: tuple[int, int]
    operator: str
    was: str
    now: str
    index: int
    """Tells apart what is otherwise equal."""
    same_by_rule: str = ""
    """Why no test can notice it, where a rule says so."""

    @property
    def key(self) -> str:
        return f"{self.file}|{self.place}|{self.operator}|{self.was} -> {self.now}|{self.index}"


def replacements(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield (operator, what the node becomes)."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield "truth value", ast.Constant(not node.value)
        elif isinstance(node.value, int | float):
            # A large float plus 1 is itself.
            changed = {node.value + 1, node.value - 1} - {node.value}
            yield from (("number", ast.Constant(value)) for value in sorted(changed, reverse=True))
    elif isinstance(node, ast.Compare):
        for i, op in enumerate(node.ops):
            if type(op) in NEGATIONS:
                yield "comparison", _with_op(node, i, NEGATIONS[type(op)]())
            for other in COMPARISONS:
                if type(op) in COMPARISONS and other is not type(op):
                    yield "comparison", _with_op(node, i, other())
    elif isinstance(node, ast.BoolOp):
        other_op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield "and/or", ast.BoolOp(other_op, node.values)
    elif isinstance(node, ast.UnaryOp):
        if isinstance(node.op, ast.Not | ast.USub) and not isinstance(node.operand, ast.Constant):
            yield "not" if isinstance(node.op, ast.Not) else "sign", node.operand
    elif isinstance(node, ast.BinOp):
        yield from _arithmetic(node)
    elif isinstance(node, ast.AugAssign):
        if type(node.op) in SWAPPED:
            yield "arithmetic", ast.AugAssign(node.target, SWAPPED[type(node.op)](), node.value)
        yield "term", ast.Pass()
    elif isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        name = node.func.id if isinstance(node.func, ast.Name) else name
        if name in ROUNDINGS and node.args:
            yield "rounding", node.args[0]
    elif isinstance(node, ast.If | ast.While | ast.IfExp):
        # Comparisons are changed themselves.
        if isinstance(node.test, ast.Name | ast.Attribute | ast.Call):
            changed = copy.copy(node)
            changed.test = ast.UnaryOp(ast.Not(), node.test)
            yield "not", changed
    elif isinstance(node, ast.Break):
        yield "loop", ast.Continue()
    elif isinstance(node, ast.Continue):
        yield "loop", ast.Break()


def _with_op(node: ast.Compare, i: int, op: ast.cmpop) -> ast.Compare:
    return ast.Compare(node.left, [*node.ops[:i], op, *node.ops[i + 1 :]], node.comparators)


def _arithmetic(node: ast.BinOp) -> Iterator[tuple[str, ast.AST]]:
    if type(node.op) in SWAPPED:
        yield "arithmetic", ast.BinOp(node.left, SWAPPED[type(node.op)](), node.right)
    if isinstance(node.op, ast.Add | ast.Sub):
        yield "term", node.left
    if isinstance(node.op, ast.Add):
        yield "term", node.right
    if isinstance(node.op, ast.Mult):
        for factor, other in ((node.left, node.right), (node.right, node.left)):
            if isinstance(factor, ast.BinOp) and isinstance(factor.op, ast.Add | ast.Sub):
                one = factor.left
                if isinstance(one, ast.Constant) and one.value == 1:
                    yield "rounding", other


def mutants(path: Path) -> list[Mutant]:
    """Return all mutants of a file, in order."""
    return [mutant for mutant, _ in changes(path)]


def changed_source(mutant: Mutant) -> ast.Module:
    """Return the source of a mutant."""
    for other, tree in changes(ROOT / mutant.file):
        if other == mutant:
            return copy.deepcopy(tree)
    raise KeyError(mutant.key)


@cache
def source(path: Path) -> str:
    """Return the text of a file as it was when the run began: it may be edited meanwhile."""
    return path.read_text(encoding="utf-8")


def changes(path: Path) -> Iterator[tuple[Mutant, ast.Module]]:
    """Yield each mutant with its source, which is put back when the next one is asked for."""
    tree = ast.parse(source(path))
    file = path.relative_to(ROOT).as_posix()
    seen: Counter[str] = Counter()
    around = _owners(tree)
    for owner, field, i, child, place, lines in _parts(tree, "", (1, 1)):
        for operator, changed in replacements(child):
            was, now = _shown(child), _shown(changed)
            name = f"{place}|{operator}|{was}|{now}"
            seen[name] += 1
            rule = _same_by_rule(owner, child, changed) or _same_value(
                around, owner, field, i, changed
            )
            _put(owner, field, i, ast.copy_location(changed, child))
            yield Mutant(file, place, lines, operator, was, now, seen[name], rule), tree
            _put(owner, field, i, child)


# ---- mutants that are the same program

KNOWN_NUMBERS = {"UNIT_ROUNDOFF": 2.0**-53, "ETA": 2.0**-1074}


def _owners(tree: ast.Module) -> dict[ast.AST, ast.AST]:
    """The expression or statement around each part of a tree."""
    return {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}


def _same_by_rule(owner: ast.AST, child: ast.AST, changed: ast.AST) -> str:
    if isinstance(owner, ast.keyword) and owner.arg == "strict":
        return "`strict=True` only raises"
    if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
        return "imports for the type checker"
    if isinstance(owner, ast.Call) and ast.unparse(owner.func) == "Enclosure":
        middle, *radius = owner.args
        if child is middle and [ast.unparse(r) for r in radius] in (["math.inf"], ["np.inf"]):
            return "the midpoint of an enclosure of all numbers"
    return ""


def _same_value(
    around: dict[ast.AST, ast.AST], owner: ast.AST, field: str, i: int | None, changed: ast.AST
) -> str:
    """Whether the largest constant expression around a change keeps its value, bit by bit."""
    part = owner
    before = _number(part)
    if before is None:
        return ""
    child = getattr(owner, field) if i is None else getattr(owner, field)[i]
    while _number(around[part]) is not None:
        part = around[part]
    before = _number(part)
    _put(owner, field, i, changed)
    after = _number(part)
    _put(owner, field, i, child)
    return "the same number" if after == before else ""


def _number(node: ast.AST) -> float | None:
    """The value of an expression of numbers, u and eta; None of any other."""
    if not isinstance(node, ast.BinOp | ast.UnaryOp):
        return None
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    allowed = (ast.BinOp, ast.UnaryOp, ast.Constant, ast.Name, ast.operator, ast.unaryop, ast.Load)
    if names - KNOWN_NUMBERS.keys() or not all(isinstance(p, allowed) for p in ast.walk(node)):
        return None
    expression = ast.fix_missing_locations(ast.Expression(copy.deepcopy(node)))
    try:
        return float(eval(compile(expression, "", "eval"), dict(KNOWN_NUMBERS)))
    except (ArithmeticError, TypeError):
        return None


def _parts(
    node: ast.AST, place: str, lines: tuple[int, int]
) -> Iterator[tuple[ast.AST, str, int | None, ast.AST, str, tuple[int, int]]]:
    """Yield each part of a tree: (owner, field, index, part, function, lines of its statement)."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        place = f"{place}.{node.name}".lstrip(".")
    for field, value in list(ast.iter_fields(node)):
        if field in ("annotation", "returns", "decorator_list", "ctx"):
            continue
        children = value if isinstance(value, list) else [value]
        for i, child in enumerate(children):
            if not isinstance(child, ast.AST) or _is_words(child):
                continue
            at = lines
            if isinstance(child, ast.stmt):
                body = getattr(child, "body", None)
                last = body[0].lineno - 1 if body else child.end_lineno
                at = (child.lineno, max(last or 0, child.lineno))
            yield node, field, i if isinstance(value, list) else None, child, place, at
            yield from _parts(child, place, at)


def _put(node: ast.AST, field: str, i: int | None, child: ast.AST) -> None:
    if i is None:
        setattr(node, field, child)
    else:
        getattr(node, field)[i] = child


def _is_words(node: ast.AST) -> bool:
    """Docstrings, imports and messages have nothing to mutate."""
    if isinstance(node, ast.Import | ast.ImportFrom | ast.JoinedStr | ast.Raise):
        return True
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _shown(node: ast.AST) -> str:
    if isinstance(node, ast.If | ast.While):
        node = node.test
    return ast.unparse(ast.fix_missing_locations(copy.deepcopy(node)))[:120]


# ---- a mutant in place of the original


def functions_of(code: CodeType) -> Iterator[CodeType]:
    """Yield the code objects inside one."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from functions_of(constant)


def install(mutant: Mutant) -> None:
    """Replace what the changed source changes, in this process."""
    path = str(ROOT / mutant.file)
    module = _module_of(path)
    tree = ast.fix_missing_locations(changed_source(mutant))
    compiled = compile(tree, path, "exec")
    codes = {(c.co_qualname, c.co_firstlineno): c for c in functions_of(compiled)}
    for thing in gc.get_objects():
        if isinstance(thing, FunctionType) and thing.__code__.co_filename == path:
            code = codes.get((thing.__code__.co_qualname, thing.__code__.co_firstlineno))
            if code is not None and code.co_freevars == thing.__code__.co_freevars:
                thing.__code__ = code
    if mutant.place and mutant.lines[0] != _first_line(mutant, tree):
        return
    # Constants, defaults of arguments and of classes: what the changed module has in their place.
    changed = ModuleType(module.__name__)
    changed.__file__ = path
    sys.modules[module.__name__], original = changed, module
    try:
        exec(compiled, changed.__dict__)
    finally:
        sys.modules[module.__name__] = original
    _replace_plain(original, changed)


def _first_line(mutant: Mutant, tree: ast.Module) -> int:
    """The line of the def of the mutated function: its defaults are evaluated there."""
    for node in ast.walk(tree):
        named = isinstance(node, ast.FunctionDef) and mutant.place.endswith(node.name)
        if named and node.lineno <= mutant.lines[0] <= (node.end_lineno or 0):
            return node.lineno
    return mutant.lines[0]


def _module_of(path: str) -> ModuleType:
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) == path:
            return module
    raise KeyError(path)


def _replace_plain(original: ModuleType, changed: ModuleType) -> None:
    for name, new in vars(changed).items():
        old = vars(original).get(name)
        if isinstance(new, FunctionType) and isinstance(old, FunctionType):
            _replace_defaults(old, new)
        elif isinstance(new, EnumType) and isinstance(old, EnumType):
            for member in new:
                vars(old[member.name]).update(vars(member))
        elif isinstance(new, type) and isinstance(old, type):
            for attribute, value in vars(new).items():
                there = vars(old).get(attribute)
                if isinstance(value, FunctionType) and isinstance(there, FunctionType):
                    _replace_defaults(there, value)
                elif _is_plain(value) and value != there:
                    setattr(old, attribute, value)
        elif _is_plain(new) and new != old:
            for module in list(sys.modules.values()):
                there = getattr(module, "__dict__", {}).get(name)
                if _is_plain(there) and there == old:
                    setattr(module, name, new)


def _replace_defaults(old: FunctionType, new: FunctionType) -> None:
    if all(map(_is_plain, new.__defaults__ or ())):
        old.__defaults__ = new.__defaults__
    if all(map(_is_plain, (new.__kwdefaults__ or {}).values())):
        old.__kwdefaults__ = new.__kwdefaults__


def _is_plain(x: object) -> bool:
    if isinstance(x, tuple):
        return all(map(_is_plain, x))
    return x is None or isinstance(x, bool | int | float | str)


# ---- tests in forks


@dataclass(frozen=True)
class Reach:
    """Which lines a test reaches, and how long it takes."""

    seconds: float
    lines: frozenset[tuple[str, int]]


class Campaign:
    """Takes the place of pytest's loop over tests."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.failed = False
        self.stale = False
        self.killers: Counter[str] = Counter()
        self.proven = equivalent_by_proof()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed = self.failed or report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        for path in CORE.glob("*.py"):
            source(path)
        self.items = {item.nodeid: item for item in session.items}
        reach_file = Path(self.args.runs).with_suffix(".reach.json")
        stored = {}
        if reach_file.exists() and not self.args.reach:
            stored = json.loads(reach_file.read_text())
        if self.items.keys() - stored.keys():
            self._in_fork(lambda: self._measure(reach_file, stored), 7200.0)
            stored = json.loads(reach_file.read_text())
        self.reach = {
            name: Reach(seconds, frozenset((f, n) for f, numbers in lines.items() for n in numbers))
            for name, (seconds, lines) in stored.items()
            if name in self.items
        }
        self._campaign()
        return True

    def _measure(self, file: Path, known: dict[str, Any]) -> int:
        found = dict(known)
        for name, item in self.items.items():
            if name in known:
                continue
            lines: dict[str, set[int]] = defaultdict(set)

            def trace(
                frame: FrameType, event: str, _: object, lines: dict[str, set[int]] = lines
            ) -> Any:
                path = frame.f_code.co_filename
                if not path.startswith(str(CORE)):
                    return None
                lines[path].add(frame.f_lineno)
                return trace

            self.failed = False
            began = time.process_time()
            sys.settrace(trace)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            sys.settrace(None)
            seconds = time.process_time() - began
            if self.failed:
                print(f"fails by itself, not used: {name}", file=sys.stderr)
            else:
                relative = {
                    Path(p).relative_to(ROOT).as_posix(): sorted(n) for p, n in lines.items()
                }
                found[name] = (seconds, relative)
        file.write_text(json.dumps(found))
        return 0

    def _campaign(self) -> None:
        runs = Path(self.args.runs)
        if self.args.fresh:
            runs.unlink(missing_ok=True)
        known: dict[str, dict[str, Any]] = {}
        if runs.exists():
            for line in runs.read_text().splitlines():
                run = json.loads(line)
                known[run["key"]] = run
        paths = [CORE / f"{name}.py" for name in self.args.files] or sorted(CORE.glob("*.py"))
        with runs.open("a") as out:
            for path in paths:
                chosen = self._chosen(path)
                for mutant in chosen:
                    before = known.get(mutant.key)
                    if before and not (self.args.survivors and not before["killed"]):
                        continue
                    run = self._try(mutant)
                    known[mutant.key] = run
                    out.write(json.dumps(run) + "\n")
                    out.flush()
                print(self._row(path, chosen, known), file=sys.stderr, flush=True)
        print(HEADER)
        totals = Counter[str]()
        for path in paths:
            chosen = self._chosen(path)
            print(self._row(path, chosen, known))
            totals.update(self._counts(chosen, known))
        print(_shares(totals))
        for key in self._stale(paths, known):
            self.stale = True
            print(f"not equivalent, or no mutant any more: {key}", file=sys.stderr)

    def _chosen(self, path: Path) -> list[Mutant]:
        everything = mutants(path)
        if not self.args.sample or self.args.sample >= len(everything):
            return everything
        # A smaller sample is the beginning of a larger one.
        random.Random(f"{SEED} {path.name}").shuffle(everything)
        return everything[: self.args.sample]

    def _row(self, path: Path, chosen: list[Mutant], known: dict[str, dict[str, Any]]) -> str:
        counts = self._counts(chosen, known)
        figures = [len(mutants(path)), *(counts[name] for name in COUNTS)]
        return f"| `{path.name}` | {' | '.join(map(str, figures))} |"

    def _counts(self, chosen: list[Mutant], known: dict[str, dict[str, Any]]) -> Counter[str]:
        counts = Counter[str]()
        for mutant in chosen:
            if mutant.key in known:
                counts["run"] += 1
                counts[self._outcome(mutant, known[mutant.key])] += 1
        return counts

    def _outcome(self, mutant: Mutant, run: dict[str, Any]) -> str:
        if run["killed"]:
            return "noticed"
        return "equivalent" if mutant.same_by_rule or mutant.key in self.proven else "survived"

    def _stale(self, paths: list[Path], known: dict[str, dict[str, Any]]) -> list[str]:
        """Entries of the file of equivalent mutants that are no mutants, or that tests noticed."""
        there = {mutant.key for path in paths for mutant in mutants(path)}
        files = {path.relative_to(ROOT).as_posix() for path in paths}
        return [
            key
            for key in self.proven
            if key.partition("|")[0] in files
            and (key not in there or (key in known and known[key]["killed"]))
        ]

    def _try(self, mutant: Mutant) -> dict[str, Any]:
        tests = self._tests(mutant)
        limit = 2.0 + PATIENCE * sum(self.reach[name].seconds for name in tests)
        began = time.perf_counter()
        killer, how = self._in_fork(lambda: self._run(mutant, tests), limit)
        if how == "test":
            killer = tests[killer - 1]
            self.killers[killer] += 1
        return {
            "key": mutant.key,
            "lines": mutant.lines,
            "killed": how != "survived",
            "by": killer if how == "test" else how,
            "tests": len(tests),
            "seconds": round(time.perf_counter() - began, 2),
        }

    def _tests(self, mutant: Mutant) -> list[str]:
        """The tests that reach the mutant: what has killed others first, then the quickest."""
        wanted = {(mutant.file, line) for line in range(mutant.lines[0], mutant.lines[1] + 1)}
        names = [name for name, reach in self.reach.items() if reach.lines & wanted]
        if not mutant.place or not names:
            names = [n for n, r in self.reach.items() if any(f == mutant.file for f, _ in r.lines)]
        own = Path(mutant.file).stem
        names.sort(
            key=lambda n: self.reach[n].seconds / (1 + self.killers[n] + 5 * (f"test_{own}" in n))
        )
        chosen: list[str] = []
        total = 0.0
        for name in names:
            total += self.reach[name].seconds
            if total > self.args.allowed and chosen:
                break
            chosen.append(name)
        return chosen

    def _run(self, mutant: Mutant, tests: list[str]) -> int:
        """0 if all tests pass, else the number of the first that fails."""
        install(mutant)
        for number, name in enumerate(tests, 1):
            item = self.items[name]
            self.failed = False
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            if self.failed:
                return number
        return 0

    def _in_fork(self, do: Any, limit: float) -> tuple[int, str]:
        """(what `do` returns, "test" or "survived"), or (0, how the fork ended)."""
        read, write = os.pipe()
        child = os.fork()
        if not child:
            try:
                os.setpgid(0, 0)
                # Processor time: a machine that is busy with other things is no sign of a mutant.
                signal.signal(signal.SIGPROF, signal.SIG_DFL)
                signal.setitimer(signal.ITIMER_PROF, limit)
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.setitimer(signal.ITIMER_REAL, 20 * limit)
                resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                if limit < 3600:
                    os.dup2(1, 2)
                number = do()
                os.write(write, str(number).encode())
            except BaseException as error:  # a mutant may end in any way
                os.write(write, f"error {type(error).__name__}".encode())
            os._exit(0)
        os.close(write)
        _, status = os.waitpid(child, 0)
        said = os.read(read, 100).decode()
        os.close(read)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        if os.WIFSIGNALED(status):
            late = os.WTERMSIG(status) in (signal.SIGALRM, signal.SIGPROF)
            return 0, "time" if late else "signal"
        if said.startswith("error"):
            return 0, said
        return int(said), "test" if int(said) else "survived"


HEADER = "| file | mutants | run | noticed | equivalent | survived |\n|---|---|---|---|---|---|"
COUNTS = ("run", "noticed", "equivalent", "survived")
"""Equivalent are those that survived and that no test can notice."""


def equivalent_by_proof() -> dict[str, str]:
    """Return the reasons of `mutation_equivalent.toml` by the keys of the mutants."""
    files = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))
    return {
        f"klopt/proof/{file}|{key}": reason
        for file, entries in files.items()
        for key, reason in entries.items()
    }


def _shares(totals: Counter[str]) -> str:
    """Both shares: of all mutants, and of those that are another program."""
    lines = []
    for of, words in (
        (totals["run"], "all"),
        (totals["run"] - totals["equivalent"], "all but the equivalent ones"),
    ):
        if of:
            low, high = interval(totals["noticed"], of)
            share = totals["noticed"] / of
            lines.append(
                f"{totals['noticed']} of {of} noticed, {share:.1%} of {words} "
                f"(95 % interval {low:.1%} to {high:.1%})"
            )
    return "\n".join(lines)


def interval(killed: int, runs: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share."""
    z = 1.96
    p = killed / runs
    centre = (p + z * z / (2 * runs)) / (1 + z * z / runs)
    half = z * math.sqrt(p * (1 - p) / runs + z * z / (4 * runs * runs)) / (1 + z * z / runs)
    return centre - half, centre + half


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--files", nargs="*", default=[], help="names in klopt/proof; all")
    parser.add_argument("--tests", nargs="*", default=[], help="names of tests/test_*.py; TESTS")
    parser.add_argument("--sample", type=int, default=0, help="mutants of each file; 0: all")
    parser.add_argument("--survivors", action="store_true", help="try again what survived")
    parser.add_argument(
        "--reach", action="store_true", help="measure again which test reaches what"
    )
    parser.add_argument("--fresh", action="store_true", help="forget former runs")
    parser.add_argument(
        "--allowed", type=float, default=ALLOWED_S, help="seconds of tests a mutant"
    )
    parser.add_argument("--runs", default="mutation.jsonl", help="file of runs")
    args = parser.parse_args()
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT / "tests"))
    names = args.tests or TESTS
    tests = [f"tests/test_{name}.py" for name in names if (ROOT / f"tests/test_{name}.py").exists()]
    os.environ.setdefault("KLOPT_HYPOTHESIS", "dev")
    options = ["-q", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header"]
    campaign = Campaign(args)
    status = int(pytest.main([*options, *tests], plugins=[campaign]))
    return status or int(campaign.stale)


if __name__ == "__main__":
    raise SystemExit(main())
