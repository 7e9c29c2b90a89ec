"""Processes of the tests: whether they live, how long they have worked, and patience on a busy computer.

A limit is tested by what happens first (a backend that would sleep for a minute is ended before) or by the
processor's clock, which does not run while others do.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

PATIENCE_S = 50.0
"""How long a busy computer may take for what is done at once; who hangs in these tests does so for a minute."""


def alive(process: int) -> bool:
    """Whether it runs; one that nobody has waited for yet does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def soon(condition: Callable[[], bool]) -> bool:
    """Whether something comes true before the patience is over."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False


def worked(process: int) -> float:
    """The seconds that all threads of a process have worked, as the system counts them."""
    if sys.platform != "linux":
        return time.monotonic()
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def work_after_interrupt(process: subprocess.Popen[str], at_work: float) -> tuple[float, str]:
    """Send Ctrl-C once a process has worked for so many seconds more, and read the line that it says then.

    Returned are the seconds that it still worked, and the line, which begins with "interrupted" and ends with the
    process's own `time.process_time()` by then.
    """
    assert process.stdout is not None
    began = worked(process.pid)
    assert soon(lambda: process.poll() is not None or worked(process.pid) > began + at_work)
    sent = worked(process.pid)
    process.send_signal(signal.SIGINT)
    # What the library itself says of it comes first.
    said = next((line for line in process.stdout if line.startswith("interrupted")), "nothing 0")
    line, _, end = said.strip().rpartition(" ")
    if sys.platform != "linux":
        return worked(process.pid) - sent, line
    return float(end) - sent, line
