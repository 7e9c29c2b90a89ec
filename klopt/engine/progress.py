"""Progress on a terminal: one line on standard error with what is done and the time that is left.

The line appears after two seconds, is never wider than the terminal, and is gone at the end. Where
standard error is no terminal nothing is written.

    counting      so many of so many are done:  ━━━━━━━━╌╌╌╌  12/48  about 0:31 left  what is done
    waiting       one long step:                0:12, at most 0:48 left  what is being done

`solve` says which route it tries by `tell`; who waits for it listens.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TextIO

__all__ = ["Counter", "Progress", "counting", "tell", "waiting"]

SHOWN_AFTER_S = 2.0
"""What takes less shows nothing."""
REFRESH_S = 0.25
BAR_CELLS = 16
MIN_DONE = 2
"""So many must be done before the time that is left is estimated."""


class Progress:
    """A line that is rewritten by a thread of its own until it is closed.

    Parameters
    ----------
    compose
        Returns the text of the line now, of any length.
    """

    def __init__(self, compose: Callable[[], str]) -> None:
        self.compose = compose
        # A way of its own to the terminal: while a backend runs, what it prints goes elsewhere.
        own = os.dup(sys.stderr.fileno())
        encoding = sys.stderr.encoding
        self.stream: TextIO = open(own, "w", encoding=encoding, errors="replace")  # noqa: SIM115
        self.shown = 0
        """How many columns are written on now."""
        self.lock = threading.Lock()
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.thread.start()

    def write(self, text: str) -> None:
        """Print a line on standard output, above the progress."""
        with self.lock:
            self._erase()
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()

    def close(self) -> None:
        """Take the line away."""
        self.ended.set()
        self.thread.join(timeout=2 * REFRESH_S)
        with self.lock, self.stream:
            self._erase()

    def _work(self) -> None:
        pause = SHOWN_AFTER_S
        while not self.ended.wait(pause):
            pause = REFRESH_S
            with self.lock:
                self._draw()

    def _draw(self) -> None:
        if self.ended.is_set():
            return
        # The last column stays free: some terminals begin a new line there.
        columns = shutil.get_terminal_size().columns - 1
        text = cut(self.compose(), columns)
        self.stream.write(f"\r{text:{self.shown}}")
        self.stream.flush()
        self.shown = len(text)

    def _erase(self) -> None:
        if self.shown:
            # A terminal shows Ctrl-C as two letters behind the line.
            width = min(self.shown + 2, shutil.get_terminal_size().columns - 1)
            self.stream.write(f"\r{'':{width}}\r")
            self.stream.flush()
            self.shown = 0


class _Silent:
    """The same where nobody watches."""

    def write(self, text: str) -> None:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


class Counter:
    """How many are done, and what the last was."""

    def __init__(self, total: int, done: int, line: Progress | _Silent) -> None:
        self.total = total
        self.done = done
        self.before = done
        self.began = time.perf_counter()
        self.text = ""
        self.line = line

    def advance(self, text: str = "") -> None:
        """Say that one more is done."""
        self.done += 1
        self.text = text

    def write(self, text: str) -> None:
        """Print a line on standard output."""
        self.line.write(text)

    def compose(self) -> str:
        """Return the line: bar, counts, time left, what was done last."""
        if not self.total:  # nobody has said how many yet
            return f"{clock(time.perf_counter() - self.began)}  {self.text}".rstrip()
        cells = round(BAR_CELLS * self.done / self.total)
        full, empty = ("━", "╌") if _has_lines(sys.stderr) else ("#", "-")
        bar = full * cells + empty * (BAR_CELLS - cells)
        return f"{bar} {self.done}/{self.total}  {self._left()}  {self.text}".rstrip()

    def _left(self) -> str:
        elapsed = time.perf_counter() - self.began
        made = self.done - self.before
        if made < MIN_DONE:
            return clock(elapsed)
        return f"about {clock(elapsed / made * (self.total - self.done))} left"


@contextmanager
def counting(total: int, *, wanted: bool = True, done: int = 0) -> Iterator[Counter]:
    """Show how many of so many are done, and about how long the rest will take.

    Parameters
    ----------
    total
        How many there are.
    wanted
        Whether anything is shown, on a terminal.
    done
        How many were done before.
    """
    counter = Counter(total, done, _Silent())
    if not _is_watched(wanted):
        yield counter
        return
    line = Progress(counter.compose)
    counter.line = line
    try:
        yield counter
    finally:
        line.close()


_listener: ContextVar[Callable[[str], None] | None] = ContextVar("listener", default=None)


def tell(text: str) -> None:
    """Say what is being done, to whoever waits for it."""
    listener = _listener.get()
    if listener is not None:
        listener(text)


@contextmanager
def waiting(text: str, *, limit: float | None = None, wanted: bool = True) -> Iterator[None]:
    """Show how long one step has taken, how much of its limit is left, and what it tells.

    Parameters
    ----------
    text
        What is being done until something is told.
    limit
        Seconds after which it ends at the latest.
    wanted
        Whether anything is shown, on a terminal.
    """
    if not _is_watched(wanted):
        yield
        return
    began = time.perf_counter()
    said = [text]

    def compose() -> str:
        elapsed = time.perf_counter() - began
        left = "" if limit is None else f", at most {clock(max(0.0, limit - elapsed))} left"
        return f"{clock(elapsed)}{left}  {said[-1]}"

    line = Progress(compose)
    token = _listener.set(said.append)
    try:
        yield
    finally:
        _listener.reset(token)
        line.close()


def _is_watched(wanted: bool) -> bool:
    """Whether somebody sees it: standard error is a terminal that can be written to."""
    try:
        return wanted and sys.stderr.isatty() and sys.stderr.fileno() >= 0
    except (AttributeError, OSError, ValueError):  # a stream that a program has put in its place
        return False


def _has_lines(stream: TextIO) -> bool:
    """Whether the stream can write the signs of the bar."""
    try:
        "━╌".encode(stream.encoding or "ascii")
    except (UnicodeError, LookupError):
        return False
    return True


def clock(seconds: float) -> str:
    """Return a time as a clock shows it.

    >>> clock(75.2), clock(3.9), clock(7322)
    ('1:15', '0:04', '2:02:02')
    """
    whole = round(seconds)
    minutes, seconds_left = divmod(whole, 60)
    hours, minutes_left = divmod(minutes, 60)
    if hours:
        return f"{hours}:{minutes_left:02}:{seconds_left:02}"
    return f"{minutes}:{seconds_left:02}"


def cut(text: str, columns: int) -> str:
    """Return a text that fits, with a mark where it was cut; control characters are left out.

    >>> cut("SoftMargin breast", 10), cut("LP", 10)
    ('SoftMargi…', 'LP')
    """
    plain = "".join(each if each.isprintable() else "?" for each in text)
    return plain if len(plain) <= columns else f"{plain[: max(0, columns - 1)]}…"
