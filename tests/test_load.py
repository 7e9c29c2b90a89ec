"""Loading a library is no solve time: what a backend needs is imported before the clock starts."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

import klopt
from klopt.engine.registry import backends
from klopt.engine.run_here import run_here
from klopt.model.backend import Answer, Backend, Settings, Stop
from klopt.model.features import Feature

LOADING_S = 0.2

FIRST_RUN = """
import sys
import numpy as np
from klopt.engine.registry import backend_named
from klopt.engine.run_here import run_here
from klopt.problems import LP, SoftMargin
from klopt.model.backend import Settings

backend = backend_named(sys.argv[1])
for problem in (LP, SoftMargin):
    for formulation in problem.sample(np.random.default_rng(0), 8).formulations():
        if formulation.needs <= backend.offers:
            form = formulation.build()
            backend.load()
            before = set(sys.modules)
            answer = backend.run(form, Settings())
            known = {"klopt", "numpy", "scipy", *sys.stdlib_module_names}
            new = set(sys.modules) - before
            print(*sorted(name for name in new if name.partition(".")[0] not in known))
            sys.exit()
"""


class Slow(Backend):
    """A library that takes a while to import."""

    name = "slow"
    offers = frozenset({Feature.CONE})

    def load(self) -> None:
        time.sleep(LOADING_S)

    def run(self, form, settings, start=None) -> Answer:
        return Answer(Stop.STALLED)


class Unloadable(Slow):
    """One whose library cannot be imported."""

    def load(self) -> None:
        raise ImportError("no such library")


def lp() -> klopt.problems.LP:
    return klopt.problems.LP(c=[1.0, 1.0], A_ub=[[-1.0, -2.0]], b_ub=[-1.0])


@pytest.mark.parametrize("isolate", [False, True])
def test_loading_is_timed_apart_here_and_in_a_child(isolate: bool) -> None:
    timings = klopt.solve(lp(), Slow(), isolate=isolate).timings
    assert timings.load >= LOADING_S
    assert timings.solve < timings.load
    assert timings.total == timings.build + timings.solve + timings.certify
    assert "s loading libraries" in timings.words()


def test_a_library_that_cannot_be_loaded_is_told_by_the_run() -> None:
    form = lp().formulations()[0].build()
    assert run_here(Unloadable(), form, Settings()).stop is Stop.STALLED


@pytest.mark.slow
@pytest.mark.parametrize(
    "backend", [each for each in backends() if each.library and not each.missing], ids=str
)
def test_a_run_imports_next_to_nothing_that_load_did_not(backend: Backend) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FIRST_RUN, backend.name], capture_output=True, text=True, check=True
    )
    # SCS and CVXPY import the interface of one solver when they are told which.
    imported = done.stdout.split()
    assert {name.partition(".")[0] for name in imported} <= {backend.library}
    assert len(imported) <= 3, f"{backend.name}: import these in load"
