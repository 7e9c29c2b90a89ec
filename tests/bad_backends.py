"""Backends that lie, crash, hang, print, change their input, return NaN or the wrong shape.

They are a module of their own, not part of the tests that use them, because a child process must be
able to import them: the name of a test module, `tests.test_x`, means another package where one
called `tests` is installed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from typing import ClassVar

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.backend import Answer, Backend, Settings, Start, Stop
from klopt.model.features import Feature
from klopt.model.forms import ConeForm, Form, SimplexForm


class Bad(Backend):
    """Takes every cone program and says it is solved."""

    name: ClassVar[str] = "bad"
    offers = frozenset({Feature.CONE, Feature.QUADRATIC, Feature.SOC, Feature.PSD, Feature.EXP})
    honours = frozenset({"tol", "time_limit", "max_iter", "threads", "seed", "log"})

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        assert isinstance(form, ConeForm)
        return self.misbehave(form)

    def misbehave(self, form: ConeForm) -> Answer:
        raise NotImplementedError


class Liar(Bad):
    """Claims that zero is optimal, with zero multipliers."""

    name = "liar"

    def misbehave(self, form: ConeForm) -> Answer:
        return Answer(
            Stop.OPTIMAL,
            x=np.zeros(form.c.size),
            y=np.zeros(form.b.size),
            native="solved, trust me",
        )


class FalseWitness(Bad):
    """Claims infeasibility and unboundedness with vectors that prove neither."""

    name = "false_witness"

    def __init__(self, stop: Stop) -> None:
        self.stop = stop

    def misbehave(self, form: ConeForm) -> Answer:
        return Answer(self.stop, farkas=np.ones(form.b.size), ray=np.ones(form.c.size))


class ClaimsWithoutVectors(Bad):
    """Makes a claim and gives nothing to check it by."""

    name = "claims_without_vectors"

    def __init__(self, stop: Stop) -> None:
        self.stop = stop

    def misbehave(self, form: ConeForm) -> Answer:
        return Answer(self.stop)


class Segfaulter(Bad):
    """Dies of a segmentation fault."""

    name = "segfaulter"
    isolate = True

    def misbehave(self, form: ConeForm) -> Answer:
        os.kill(os.getpid(), signal.SIGSEGV)
        raise AssertionError("still alive")


class Aborter(Bad):
    """Prints a last word and aborts."""

    name = "aborter"
    isolate = True

    def misbehave(self, form: ConeForm) -> Answer:
        sys.stderr.write("assertion failed in a native library\n")
        sys.stderr.flush()
        os.abort()


class Sleeper(Bad):
    """Hangs, and keeps no time limit."""

    name = "sleeper"
    honours = frozenset({"tol", "log"})

    def misbehave(self, form: ConeForm) -> Answer:
        time.sleep(60)
        raise AssertionError("woke up")


class LimitTeller(Bad):
    """Says what time limit it was given."""

    name = "limit teller"

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        return Answer(Stop.TIME_LIMIT, native=repr(settings.time_limit))


class Deaf(Bad):
    """Hangs in native code that never lets go of the interpreter."""

    name = "deaf"

    def misbehave(self, form: ConeForm) -> Answer:
        ctypes.PyDLL(None).sleep(60)
        raise AssertionError("woke up")


class Eater(Bad):
    """Takes all the memory there is, and would take 20 GB."""

    name = "eater"

    def misbehave(self, form: ConeForm) -> Answer:
        self.eaten = [np.ones(12_500_000) for _ in range(200)]
        raise AssertionError("is full")


class Quitter(Bad):
    """Ends the process as if all were well."""

    name = "quitter"

    def misbehave(self, form: ConeForm) -> Answer:
        os._exit(0)


class Printer(Bad):
    """Prints although asked to be silent, from Python and past it."""

    name = "printer"
    honours = frozenset({"tol", "time_limit", "max_iter"})

    def misbehave(self, form: ConeForm) -> Answer:
        print("hello from python")
        os.write(1, b"hello from C\n")
        os.write(2, b"error from C\n")
        return Answer(Stop.NUMERICAL)


class Mutator(Bad):
    """Tries to change the form it was given."""

    name = "mutator"

    def misbehave(self, form: ConeForm) -> Answer:
        form.b[0] = 12345.0
        return Answer(Stop.OPTIMAL, x=np.zeros(form.c.size))


class Unmutator(Bad):
    """Unlocks the arrays first, then changes them."""

    name = "unmutator"

    def misbehave(self, form: ConeForm) -> Answer:
        form.c.flags.writeable = True
        form.c[:] = 0.0
        return Answer(Stop.OPTIMAL, x=np.zeros(form.c.size), y=np.zeros(form.b.size))


class BadOverSets(Backend):
    """Takes every function over a simple set, and works in place on what it was given."""

    name: ClassVar[str] = "bad_over_sets"
    offers = frozenset(Feature) - {Feature.CONE, Feature.EXPLICIT}
    honours = frozenset({"tol", "time_limit", "max_iter", "threads", "seed", "log", "start"})

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        assert isinstance(form, SimplexForm)
        x = form.domain.centre() if start is None else start.x
        self.write(form, x)
        return Answer(Stop.OPTIMAL, x)

    def write(self, form: SimplexForm, x: FloatArray) -> None:
        raise NotImplementedError


class Scribbler(BadOverSets):
    """Sets its gradient to zero in place: whoever reads that again finds every point stationary."""

    name = "scribbler"

    def write(self, form: SimplexForm, x: FloatArray) -> None:
        gradient = form.objective.gradient(x)
        gradient *= 0.0


class GradientScaler(BadOverSets):
    """Divides its gradient by a large Lipschitz constant in place."""

    name = "gradient_scaler"

    def write(self, form: SimplexForm, x: FloatArray) -> None:
        gradient = form.objective.gradient(x)
        gradient /= 1e12


class Unlocker(BadOverSets):
    """Makes the gradient of what the function remembers writable, then sets it to zero."""

    name = "unlocker"

    def write(self, form: SimplexForm, x: FloatArray) -> None:
        gradient = form.objective.near(x).gradient  # type: ignore[attr-defined]
        gradient.flags.writeable = True
        gradient *= 0.0


class StartWriter(BadOverSets):
    """Moves away from its start in place."""

    name = "start_writer"

    def write(self, form: SimplexForm, x: FloatArray) -> None:
        x[:] = form.domain.centre()


class NanReturner(Bad):
    """Returns NaN for everything."""

    name = "nan_returner"

    def misbehave(self, form: ConeForm) -> Answer:
        return Answer(Stop.OPTIMAL, x=np.full(form.c.size, np.nan), y=np.full(form.b.size, np.nan))


class WrongShaper(Bad):
    """Returns vectors of the wrong shape."""

    name = "wrong_shaper"

    def misbehave(self, form: ConeForm) -> Answer:
        return Answer(Stop.OPTIMAL, x=np.zeros((form.c.size, 2)), y=np.zeros(form.b.size + 1))


class Pointless(Bad):
    """Claims an optimum without a point."""

    name = "pointless"

    def misbehave(self, form: ConeForm) -> Answer:
        return Answer(Stop.OPTIMAL)


class NoAnswer(Bad):
    """Returns something that is no answer."""

    name = "no_answer"

    def misbehave(self, form: ConeForm) -> Answer:
        return "optimal"  # type: ignore[return-value]


class Raiser(Bad):
    """Raises whatever it was made with."""

    name = "raiser"

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def misbehave(self, form: ConeForm) -> Answer:
        raise self.error


class Panic(BaseException):
    """What a Rust panic looks like from Python: no Exception."""


class Counter(Bad):
    """Says how often it was run in its process before."""

    name: ClassVar[str] = "counter"
    seen: ClassVar[list[int]] = []

    def misbehave(self, form: ConeForm) -> Answer:
        self.seen.append(form.c.size)
        return Answer(Stop.STALLED, native=f"{self.seen}")


class Threads(Bad):
    """Says what the environment says of threads."""

    name = "threads"

    def misbehave(self, form: ConeForm) -> Answer:
        from threadpoolctl import threadpool_info

        pools = {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}
        return Answer(Stop.STALLED, native=f"{os.environ['OPENBLAS_NUM_THREADS']} {pools}")


class Speaker(Bad):
    """Returns an answer with parts of its own making, or raises what it was given as `error`."""

    name: ClassVar[str] = "speaker"

    def __init__(self, **parts: object) -> None:
        self.parts = parts

    def misbehave(self, form: ConeForm) -> Answer:
        parts = dict(self.parts)
        error = parts.pop("error", None)
        if isinstance(error, BaseException):
            raise error
        stop = parts.pop("stop", Stop.OPTIMAL)
        return Answer(stop, **parts)  # type: ignore[arg-type]


class FileCloser(Bad):
    """Closes every file of its process and goes to sleep."""

    name = "file_closer"
    honours = frozenset({"tol", "log"})

    def misbehave(self, form: ConeForm) -> Answer:
        os.closerange(0, 4096)
        time.sleep(60)
        raise AssertionError("woke up")


class Forker(Liar):
    """Forks, and both processes return; the first answers."""

    name = "forker"

    def misbehave(self, form: ConeForm) -> Answer:
        os.fork()
        return super().misbehave(form)


class Dawdler(Liar):
    """Leaves a fork behind that works on."""

    name = "dawdler"

    def __init__(self, file: str) -> None:
        self.file = file

    def misbehave(self, form: ConeForm) -> Answer:
        child = os.fork()
        if child == 0:
            while True:
                time.sleep(0.05)
        with open(self.file, "w") as note:
            note.write(str(child))
        return super().misbehave(form)


class PipeWriter(Liar):
    """Writes to every file that it finds open, then answers."""

    name = "pipe_writer"

    def __init__(self, data: bytes) -> None:
        self.data = data

    def misbehave(self, form: ConeForm) -> Answer:
        for number in map(int, os.listdir("/proc/self/fd")):
            if number > 2:
                with contextlib.suppress(OSError):
                    os.write(number, self.data)
        return super().misbehave(form)


class Leaver(Bad):
    """Starts a process that leaves its session, its parent and its environment behind; hangs."""

    name = "leaver"
    honours = frozenset({"tol", "log"})

    def __init__(self, file: str) -> None:
        self.file = file

    def misbehave(self, form: ConeForm) -> Answer:
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                with open(self.file, "w") as note:
                    note.write(str(os.getpid()))
                os.execve("/bin/sleep", ["sleep", "60"], {})
            os._exit(0)
        os.wait()
        time.sleep(60)
        raise AssertionError("woke up")


class Spinner(Bad):
    """Notes its process and never rests."""

    name = "spinner"
    honours = frozenset({"tol", "log"})

    def __init__(self, file: str) -> None:
        self.file = file

    def misbehave(self, form: ConeForm) -> Answer:
        with open(self.file, "w") as note:
            note.write(str(os.getpid()))
        while True:
            pass


class GroupKiller(Bad):
    """Kills all processes of its group."""

    name = "group_killer"

    def misbehave(self, form: ConeForm) -> Answer:
        os.killpg(0, signal.SIGKILL)
        raise AssertionError("still alive")


class GuardStopper(Bad):
    """Sends a signal to the process that guards its own, and hangs."""

    name = "guard_stopper"
    honours = frozenset({"tol", "log"})

    def __init__(self, number: int) -> None:
        self.number = number

    def misbehave(self, form: ConeForm) -> Answer:
        os.kill(os.getppid(), self.number)
        time.sleep(60)
        raise AssertionError("woke up")


class Stopper(Bad):
    """Stops its own process."""

    name = "stopper"
    honours = frozenset({"tol", "log"})

    def misbehave(self, form: ConeForm) -> Answer:
        os.kill(os.getpid(), signal.SIGSTOP)
        raise AssertionError("went on")


class Exchanger(Bad):
    """Native code that lets two entries of an array change places."""

    name = "exchanger"

    def __init__(self, field: str) -> None:
        self.field = field

    def misbehave(self, form: ConeForm) -> Answer:
        part: object = form
        for name in self.field.split("."):
            part = getattr(part, name)
        assert isinstance(part, np.ndarray)
        words = (ctypes.c_double * part.size).from_address(part.ctypes.data)
        words[1], words[2] = words[2], words[1]
        return Answer(Stop.OPTIMAL, x=np.zeros(form.c.size), y=np.zeros(form.b.size))
