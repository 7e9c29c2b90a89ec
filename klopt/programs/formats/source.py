"""`SourceFile`: a file that nobody vouches for, read within limits of time and memory.

Every reader gets one. It gives the content of a regular file and nothing else (no directory, pipe
or device), asks for memory before it is taken, and knows the moment at which reading must end.
`reading` is the one place where whatever goes wrong inside becomes `InvalidProblem` with the name
of the file and the line; Ctrl-C and a missing file pass.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from klopt.arrays import memory_budget, positive, require_memory
from klopt.errors import InvalidProblem, KloptError

__all__ = ["SourceFile", "reading"]

FREE_SHARE = 0.5
"""The share of the free memory that one file may ask for where no limit is given."""
BYTES_PER_CHARACTER = 12
"""The memory that a text file takes at most while it is read, for each of its bytes."""
EXACT_BYTES_PER_CHARACTER = 60
"""The same where its decimals become rational numbers."""
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


@dataclass
class SourceFile:
    """A file that is being read.

    Parameters
    ----------
    path
        Where it is.
    exact
        Whether its decimals are kept as rationals.
    deadline
        The moment of `time.perf_counter` at which reading must have ended.
    limit
        The seconds that reading may take, for messages.
    """

    path: Path
    exact: bool = False
    deadline: float = float("inf")
    limit: float = float("inf")
    line: int | None = None
    """The line that is being read, where a reader goes line by line."""

    def content(self) -> bytes:
        """Return the bytes of the file."""
        with open(self.descriptor(), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            factor = EXACT_BYTES_PER_CHARACTER if self.exact else BYTES_PER_CHARACTER
            require_memory(float(factor) * size, f"{self.path} of {size} bytes")
            return file.read(size)

    def descriptor(self) -> int:
        """Return an open descriptor of the file, which is proven to be a regular one."""
        # To open a pipe without a writer would wait for ever.
        descriptor = os.open(self.path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            os.close(descriptor)
            kind = _KINDS.get(stat.S_IFMT(mode), "no regular file")
            raise InvalidProblem(f"{self.path} is {kind}; give the path of a regular file")
        return descriptor

    def text(self) -> str:
        """Return the file as text: UTF-8 or, if it is none, Latin-1, which reads any bytes."""
        raw = self.content()
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            text = raw.decode("latin-1")
        return text.removeprefix("\ufeff")

    def lines(self) -> list[str]:
        """Return the lines of the file, which end by a line feed, a carriage return or both."""
        text = self.text()
        if "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        return text.split("\n")

    def check_time(self) -> None:
        """Refuse to go on after the deadline."""
        if time.perf_counter() > self.deadline:
            raise InvalidProblem(
                f"{self.path}{self._place(self.line)}: reading was stopped after {self.limit:g} s, "
                "the time limit; raise it (--time, time_limit) or state a smaller problem"
            )

    def malformed(self, line: int | None, text: str) -> InvalidProblem:
        """Return the error for a file that cannot be read, with the line where it goes wrong."""
        return InvalidProblem(f"{self.path}{self._place(line)}: {text}")

    def _place(self, line: int | None) -> str:
        return "" if line is None else f", line {line}"


@contextmanager
def reading(
    path: Path,
    exact: bool = False,
    time_limit: float | None = None,
    memory_limit: float | None = None,
) -> Iterator[SourceFile]:
    """Open a file for a reader; whatever goes wrong in the block is a malformed file.

    Parameters
    ----------
    path
        Where it is.
    exact
        Whether its decimals are kept as rationals.
    time_limit
        The seconds that reading may take; no limit by default.
    memory_limit
        The bytes that it may ask for; by default KLOPT_MEMORY_LIMIT or half of what is free.

    >>> with reading(Path("a.mps")) as source:
    ...     [][source.exact]
    Traceback (most recent call last):
    klopt.errors.InvalidProblem: a.mps: list index out of range (IndexError); the file is damaged or ...
    """
    source = SourceFile(path, exact)
    if time_limit is not None:
        source.limit = positive("time_limit", time_limit, infinite=True)
        source.deadline = time.perf_counter() + source.limit
    allowed = None
    if memory_limit is not None:
        allowed = positive("memory_limit", memory_limit, infinite=True)
    try:
        with memory_budget(allowed, FREE_SHARE):
            yield source
    except KloptError as error:
        # Checks of arrays do not know which file the arrays came from.
        if not isinstance(error, InvalidProblem) or str(path) in str(error):
            raise
        raise source.malformed(None, str(error)) from error
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InvalidProblem(f"{path} cannot be read: {error.strerror or error}") from error
    except MemoryError as error:
        raise source.malformed(
            source.line, "there is not enough memory to read it; state a smaller problem"
        ) from error
    except Exception as error:
        # Readers name what is wrong; this is for what nobody thought of.
        raise source.malformed(
            source.line,
            f"{str(error) or 'it cannot be read'} ({type(error).__name__}); the file is damaged or "
            "of another format: check it, or write it anew",
        ) from error
