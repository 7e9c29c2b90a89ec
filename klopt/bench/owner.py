"""`Owner`: a comparison that is running, known to others by a lock that ends with its process.

The lock is on a file of its own in the folder of the store. The system takes it away however the
process ends, so a claim of a comparison that was killed is free at once: nobody has to wait for a
clock, and no process number is trusted, which another process may have got meanwhile. A comparison
that is only stopped goes on holding its claims.
"""

from __future__ import annotations

import os
import sys
import uuid
from contextlib import suppress
from pathlib import Path

# On Windows no lock is needed: there a file that somebody has open cannot be removed.
if sys.platform != "win32":
    import fcntl

__all__ = ["Owner", "clear_gone", "is_running"]


class Owner:
    """An owner of claims; `release` it, or end the process."""

    def __init__(self, folder: Path) -> None:
        while True:
            self.name = uuid.uuid4().hex
            self.path = _file(folder, self.name)
            self.lock = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            if sys.platform == "win32":
                return
            fcntl.flock(self.lock, fcntl.LOCK_EX)
            # Before it was locked, another process may have taken it for what a killed one left.
            if self.path.exists():
                return
            os.close(self.lock)

    def release(self) -> None:
        """Be known as running no more."""
        if self.lock < 0:
            return
        if sys.platform != "win32":
            self.path.unlink(missing_ok=True)
        os.close(self.lock)
        self.lock = -1
        with suppress(OSError):
            self.path.unlink(missing_ok=True)


def is_running(folder: Path, name: str) -> bool:
    """Return whether the owner of that name is running; what is left of one that is not is removed.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> owner = Owner(folder)
    >>> is_running(folder, owner.name)
    True
    >>> owner.release()
    >>> is_running(folder, owner.name)
    False
    """
    path = _file(folder, name)
    if sys.platform == "win32":
        try:
            path.unlink(missing_ok=True)
        except PermissionError:
            return True
        return False
    try:
        # Neither followed, if it is a link, nor waited for, if it is a pipe.
        file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        path.unlink(missing_ok=True)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def clear_gone(folder: Path) -> None:
    """Remove what owners that run no more have left in a folder."""
    for path in folder.glob("*.owner"):
        is_running(folder, path.stem)


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name}.owner"
