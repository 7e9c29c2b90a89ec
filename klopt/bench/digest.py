"""`digest`: a hash of problems, backends and settings, the same today, tomorrow and elsewhere.

Frozen objects are walked field by field, arrays by their bytes, functions by their code and
what they close over; what is cached on an object does not count. A class counts by its name, the
version of its library and its source text (`klopt.bench.source_digest`), so that an edited method
is another method.
"""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Callable, Iterable, Mapping
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
from scipy import sparse

from klopt.bench.source_digest import named_in, source_digest
from klopt.engine.run_here import pristine
from klopt.model.records import field_names

__all__ = ["digest", "pristine"]


def digest(*things: object) -> str:
    """Return 32 hexadecimal digits that name the things.

    >>> digest(np.arange(3.0)) == digest(np.arange(3.0)) != digest(np.arange(3))
    True
    """
    walk = _Walk()
    for thing in things:
        walk.visit(thing)
    return walk.hash.hexdigest()[:32]


class _Walk:
    """A depth-first walk; every part is hashed with its kind and length, so that no two can mix."""

    def __init__(self) -> None:
        self.hash = hashlib.sha256()
        self.open: list[object] = []  # the objects around the current one: one may hold itself

    def write(self, kind: str, data: bytes = b"") -> None:
        self.hash.update(f"{kind}:{len(data)};".encode())
        self.hash.update(data)

    def visit(self, thing: object) -> None:
        # A NumPy number counts like Python's, but for those that are subclasses of Python's types.
        if isinstance(thing, np.generic) and not isinstance(thing, str | bytes | float | complex):
            thing = thing.item()
        if thing is None or isinstance(thing, str | bytes | bool | int | float | complex):
            text = thing.hex() if isinstance(thing, float) else repr(thing)
            self.write(type(thing).__name__, text.encode())
        elif isinstance(thing, np.ndarray) and thing.dtype != object:
            kind = f"array {thing.dtype.str} {thing.shape}"
            self.write(kind, np.ascontiguousarray(thing).tobytes())
        # An object that holds itself is named by how far up it is.
        elif any(thing is outer for outer in self.open):
            depth = [thing is outer for outer in self.open].index(True)
            self.write("above", str(depth).encode())
        else:
            self.open.append(thing)
            self.inside(thing)
            self.open.pop()

    def inside(self, thing: Any) -> None:
        if isinstance(thing, sparse.sparray | sparse.spmatrix):
            matrix = sparse.csc_array(thing)
            self.parts("sparse", (matrix.shape, matrix.data, matrix.indices, matrix.indptr))
        elif isinstance(thing, type):
            self.parts("class", (thing.__module__, thing.__qualname__, _version(thing)))
        elif isinstance(thing, list | tuple | np.ndarray):
            self.parts("list", list(thing))
        elif isinstance(thing, Mapping):
            pairs = sorted((digest(key), digest(value)) for key, value in thing.items())
            self.parts("mapping", pairs)
        elif isinstance(thing, set | frozenset):
            self.parts("set", sorted(map(digest, thing)))
        elif isinstance(thing, ModuleType):
            self.write("module", thing.__name__.encode())
        elif names := field_names(type(thing)):
            self.parts("record", (type(thing), [getattr(thing, name) for name in names]))
        elif callable(thing):
            self.function(thing)
        else:
            self.other(thing)

    def function(self, thing: Callable[..., Any]) -> None:
        if isinstance(thing, functools.partial):
            self.parts("partial", (thing.func, thing.args, thing.keywords))
        elif isinstance(thing, MethodType):
            self.parts("method", (thing.__func__, thing.__self__))
        elif isinstance(thing, FunctionType):
            known = thing.__globals__
            used = {name: known[name] for name in named_in(thing.__code__) if name in known}
            cells = [cell.cell_contents for cell in thing.__closure__ or ()]
            self.code(thing.__code__)
            self.parts("closure", (cells, thing.__defaults__, thing.__kwdefaults__, list(used)))
            self.parts("globals", used.values())
        elif isinstance(thing, BuiltinFunctionType | np.ufunc):
            self.parts("builtin", (getattr(thing, "__module__", ""), thing.__name__))
        else:
            self.other(thing)

    def code(self, code: CodeType) -> None:
        self.parts("code", (code.co_code, code.co_names, code.co_varnames))
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self.code(constant)
            else:
                self.visit(constant)

    def other(self, thing: object) -> None:
        """Any other object by its class and its state, which is what a pickle would hold."""
        try:
            reduced = thing.__reduce_ex__(4)
        except TypeError:  # a lock or an open file cannot be pickled
            reduced = ""
        state = reduced if isinstance(reduced, str) else list(reduced[1:3])
        self.parts("object", (type(thing), state))

    def parts(self, kind: str, things: Iterable[object]) -> None:
        self.write(kind)
        for thing in things:
            self.visit(thing)
        self.write(f"end of {kind}")


def _version(kind: type) -> str:
    """The version of a class: that of its library, and the digest of its source text."""
    root = kind.__module__.partition(".")[0]
    if root in sys.stdlib_module_names - {"__main__"}:
        return ""
    return f"{_library_version(root)} {source_digest(kind)}"


@functools.cache
def _library_version(root: str) -> str:
    known = getattr(sys.modules.get(root), "__version__", "")
    return known if isinstance(known, str) else ""
