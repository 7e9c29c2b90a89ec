"""`source_digest`: a hash of the source text that a class rests on, so that an edit is seen.

The text is that of the files of the class and its bases, and of the modules that these files name
and that belong to the same author: those of the same package, or files that belong to no installed
package at all. Of klopt's own files those of its solvers count. A class of a script or a notebook
counts by itself, with the functions, classes and constants that its methods name: a script is edited
for many reasons, and most of them change no method.

What is imported inside a function of another file, and what a native library does, is not seen; the
version of the library is part of a run's key as well.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

import numpy as np

__all__ = ["named_in", "source_digest"]

SOLVERS = "klopt.solvers"
_INSTALLED = {"site-packages", "dist-packages"}


def source_digest(kind: type) -> str:
    """Return 16 hexadecimal digits for the source text of a class, "" where it is not known.

    >>> from klopt.engine.registry import backend_named
    >>> len(source_digest(type(backend_named("highs"))))
    16
    >>> source_digest(int)
    ''
    """
    texts = sorted({*_file_texts(kind), *_script_texts(kind)})
    if not texts:
        return ""
    total = hashlib.sha256()
    for text in texts:
        total.update(f"{len(text)};{text}".encode(errors="replace"))
    return total.hexdigest()[:16]


def named_in(code: CodeType) -> Iterator[str]:
    """Yield every name that the code or a function inside it looks up."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from named_in(constant)


def _file_texts(kind: type) -> Iterator[str]:
    """The hashes of all files that count, as they are now."""
    for path in _files(kind):
        with suppress(FileNotFoundError):  # removed since it was imported
            status = path.stat()
            yield _hash_of(path, status.st_mtime_ns, status.st_size)


@cache
def _files(kind: type) -> tuple[Path, ...]:
    found = [
        module
        for base in kind.__mro__
        if (module := sys.modules.get(base.__module__)) is not None
        and _counts(module, base.__module__)
    ]
    seen = {id(module) for module in found}
    for module in found:
        for other in _used_by(module):
            if id(other) not in seen and _counts(other, module.__name__):
                seen.add(id(other))
                found.append(other)
    return tuple(Path(str(module.__file__)) for module in found)


def _used_by(module: ModuleType) -> Iterator[ModuleType]:
    """The modules that the names of a module come from."""
    for value in list(vars(module).values()):
        if isinstance(value, ModuleType):
            yield value
        elif isinstance(value, type | FunctionType) and isinstance(value.__module__, str):
            home = sys.modules.get(value.__module__)
            if home is not None:
                yield home


def _counts(module: ModuleType, user: str) -> bool:
    """Whether the file of a module is part of what the author of the module `user` has written."""
    name = module.__name__
    file = getattr(module, "__file__", None)
    if name == "__main__" or not file or not Path(file).is_file() or not file.endswith(".py"):
        return False
    root = name.partition(".")[0]
    if root == "klopt":
        return name.startswith(f"{SOLVERS}.")
    if root in sys.stdlib_module_names:
        return False
    return root == user.partition(".")[0] or not _INSTALLED & set(Path(file).parts)


@lru_cache(maxsize=1024)
def _hash_of(path: Path, changed: int, size: int) -> str:
    """The hash of a file as it was at that time; children import it as it is now."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _script_texts(kind: type) -> Iterator[str]:
    """The texts of the classes of a script among the bases, and of what their methods name."""
    open_things: list[object] = [base for base in kind.__mro__ if base.__module__ == "__main__"]
    seen: set[int] = set()
    for thing in open_things:
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        yield _text(thing)
        for function in _functions(thing):
            known = function.__globals__
            names = sorted(set(named_in(function.__code__)) & known.keys())
            for name in names:
                value = known[name]
                if isinstance(value, type | FunctionType) and value.__module__ == "__main__":
                    open_things.append(value)
                elif isinstance(value, str | int | float | tuple):
                    yield f"{name} = {value!r}"
                elif isinstance(value, np.ndarray):
                    yield f"{name} = {value.dtype} {value.shape} {value.tobytes().hex()}"


def _functions(thing: object) -> Iterable[FunctionType]:
    """The functions of a class, unwrapped, or the function itself."""
    parts = vars(thing).values() if isinstance(thing, type) else [thing]
    for part in parts:
        plain = getattr(part, "fget", None) or getattr(part, "__func__", part)
        if isinstance(plain, FunctionType):
            yield plain


@cache
def _text(thing: object) -> str:
    """The source text of a class or function; of one typed at a prompt, its code."""
    try:
        return inspect.getsource(thing)  # type: ignore[arg-type]
    except (OSError, TypeError):
        return "".join(map(_code_text, (f.__code__ for f in _functions(thing))))


def _code_text(code: CodeType) -> str:
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    plain = [repr(c) for c in code.co_consts if not isinstance(c, CodeType)]
    own = f"{code.co_code.hex()} {code.co_names} {plain}"
    return own + "".join(map(_code_text, inner))
