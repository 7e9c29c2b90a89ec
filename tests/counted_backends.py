"""Backends that write down every run they make, for tests of who makes which run and how often.

The instances of warm-ups have more than two variables and are neither written down nor disturbed.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from klopt.engine.registry import backend_named
from klopt.model.backend import Answer, Backend, Settings, Start
from klopt.model.features import Feature
from klopt.model.forms import ConeForm, Form

__all__ = ["Counted", "Gated", "KilledWhile"]


class Counted(Backend):
    """HiGHS, with a line in a file for each run."""

    name = "counted"
    offers = frozenset({Feature.CONE})
    honours = frozenset({"tol", "time_limit", "log"})

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        assert isinstance(form, ConeForm)
        if form.c.size == 2:
            with open(self.folder / "made", "a") as file:
                file.write(f"{form.c[0]}\n")
            self.disturb()
        return backend_named("highs").run(form, settings, start)

    def disturb(self) -> None:
        """Do what the backend is for."""

    def made(self) -> list[str]:
        """The runs that were begun, in order."""
        file = self.folder / "made"
        return file.read_text().split() if file.exists() else []


class Gated(Counted):
    """Waits in each run as long as a file `shut` is there."""

    name = "gated"

    def disturb(self) -> None:
        while (self.folder / "shut").exists():
            time.sleep(0.02)


class KilledWhile(Counted):
    """Its process is killed in each run as long as a file `deadly` is there, or at the first one of `once`."""

    name = "killed_while"

    def disturb(self) -> None:
        once = self.folder / "once"
        if once.exists():
            once.unlink()
        elif not (self.folder / "deadly").exists():
            return
        os.kill(os.getpid(), signal.SIGKILL)
