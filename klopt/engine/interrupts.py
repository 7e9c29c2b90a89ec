"""Changes of the process that are undone whatever signal comes at whatever moment.

Python runs the handler of a signal between any two steps of the main thread, and that of Ctrl-C
raises: between two lines of a `finally`, or before the first line of an `__exit__`. So while a
change is made or undone, signals are held; while the call in between runs they come through, until
the first of them raises. Only the main thread runs handlers: elsewhere nothing need be held.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from contextlib import ExitStack
from types import FrameType
from typing import Any, TypeVar

try:
    # The functions of `signal` make enumerations of numbers, which takes ten times as long.
    from _signal import getsignal, signal as set_handler  # type: ignore[import-not-found]
except ImportError:  # another Python than CPython
    from signal import getsignal, signal as set_handler

__all__ = ["call_within"]

Value = TypeVar("Value")
Handler = Callable[[int, FrameType | None], Any]

NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM", "SIGUSR1", "SIGUSR2")
"""The signals that are held where a program handles them; not every system has all of them."""
SIGNALS = tuple(int(getattr(signal, name)) for name in NAMES if hasattr(signal, name))


def call_within(enter: Callable[[ExitStack], None], call: Callable[[], Value]) -> Value:
    """Return what `call` returns, made after `enter` and before all that it changed is undone.

    Parameters
    ----------
    enter
        Makes the changes, each registered on the stack that it is given. Should it fail halfway,
        what it has registered is undone.
    call
        What is done in between; a signal may end it.

    >>> seen = []
    >>> call_within(lambda undo: undo.callback(seen.append, "undone"), lambda: len(seen))
    0
    >>> seen
    ['undone']
    """
    if threading.current_thread() is not threading.main_thread():
        with ExitStack() as undo:
            enter(undo)
            return call()

    gate = _Gate()
    gate.install()
    try:
        undo = ExitStack()
        # Two blocks: a signal that comes through as the inner one ends meets the outer one.
        try:
            try:
                enter(undo)
                gate.let_through()
                return call()
            finally:
                gate.open = False
        finally:
            undo.close()
    finally:
        gate.remove()


class _Gate:
    """Stands in for the handlers of signals, and holds what comes while it is closed."""

    def __init__(self) -> None:
        self.open = False
        self.removed = False
        self.held: list[int] = []
        self.handlers: dict[int, Handler] = {}

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.removed:
            self.handlers[number](number, frame)
        elif self.open:
            # What the handler raises ends the call; no second signal may end what undoes it.
            self.open = False
            self.handlers[number](number, frame)
            self.open = True
        else:
            self.held.append(number)

    def install(self) -> None:
        """Take the place of every handler that is a Python function, closed."""
        try:
            for number in SIGNALS:
                handler = getsignal(number)
                # The system's own action runs no Python; None is a handler of native code.
                if callable(handler):
                    self.handlers[number] = handler
                    set_handler(number, self)
        except BaseException:  # a signal that came before its handler was replaced
            self.remove()
            raise

    def let_through(self) -> None:
        """Open: what was held comes now."""
        self.open = True
        while self.held:
            self(self.held.pop(0), None)

    def remove(self) -> None:
        """Put the handlers back, then let them have what was held."""
        try:
            self._put_back(list(self.handlers.items()))
        finally:
            # Left in place by one of two signals at once, the gate is nothing but its handlers.
            self.removed = True
            while self.held:
                signal.raise_signal(self.held.pop(0))

    def _put_back(self, handlers: list[tuple[int, Handler]]) -> None:
        """Put back the last one first: Ctrl-C is held until all others are in place."""
        if not handlers:
            return
        try:
            self._put_back(handlers[1:])
        finally:
            set_handler(*handlers[0])
