"""HiGHS on programs with bounds, on margins of every rank and scale, and under Ctrl-C."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import attrs
import numpy as np
import pytest
from hypothesis import given, strategies as st
from processes import work_after_interrupt
from strategies import (
    bounded_pair,
    bounded_pairs,
    gram,
    margin_form,
    planted_cone_program,
    radial_gram,
    signs,
)

from klopt.model.backend import Settings, Stop
from klopt.solvers import highs
from klopt.solvers._native import highs_model
from klopt.solvers._native.bounds import bounded


def optimum(form):
    answer = highs.BACKEND.run(form, Settings())
    assert answer.stop is Stop.OPTIMAL, answer.native
    return answer


@given(st.booleans().flatmap(lambda quadratic: bounded_pairs(quadratic)))
def test_bounds_take_back_their_multipliers(instance):
    program = bounded(instance.form)
    assert program.rows.size < instance.form.b.size
    y = program.multipliers(
        instance.y[program.rows], instance.form.curve(instance.x) + instance.form.c
    )
    assert instance.form.measure(instance.x, y).worst <= 1e-12


@given(bounded_pairs(quadratic=False))
def test_linear_programs_with_many_bounds_are_solved_exactly(instance):
    answer = optimum(instance.form)
    assert instance.form.measure(answer.x, answer.y).worst <= 1e-10
    assert instance.form.value(answer.x) == pytest.approx(instance.value, rel=1e-9, abs=1e-9)


@pytest.mark.slow
def test_most_quadratic_programs_with_many_bounds_are_solved_and_none_is_called_unbounded():
    """HiGHS fails on about 1 in 130 of them; it must then say so or be found out, and 49 of 50 must be right."""
    solved = 0
    for seed in range(300):
        form = bounded_pair(np.random.default_rng(seed), 2 + seed % 11, quadratic=True).form
        answer = highs.BACKEND.run(form, Settings())
        assert answer.stop is not Stop.UNBOUNDED
        solved += answer.stop is Stop.OPTIMAL and form.measure(answer.x, answer.y).worst <= 1e-8
    assert solved >= 294


@pytest.mark.slow
def test_margins_of_low_rank_and_any_scale_are_solved():
    """A singular matrix stops HiGHS in a third of these; the proximal point method must save almost all of them."""
    solved = 0
    for seed in range(120):
        rng, scale = np.random.default_rng(seed), 10.0 ** (seed % 17 - 8)
        C = (0.1, 1.0, 100.0)[seed % 3] / scale
        form = margin_form(gram(rng, 40, 1 + seed % 4) * scale, signs(rng, 40), C)
        answer = highs.BACKEND.run(form, Settings())
        solved += answer.stop is Stop.OPTIMAL and form.measure(answer.x, answer.y).worst <= 1e-7
    assert solved >= 117


def test_highs_solves_margins_in_several_slices():
    rng = np.random.default_rng(0)
    form = margin_form(radial_gram(rng, 400), signs(rng, 400), 1.0)
    answer = optimum(form)
    assert answer.iterations > highs_model.SLICE_ITERATIONS
    assert form.measure(answer.x, answer.y).worst <= 1e-9
    short = highs.BACKEND.run(form, Settings(time_limit=1e-3))
    assert short.stop is Stop.TIME_LIMIT
    assert short.iterations < answer.iterations


def test_highs_says_why_it_refuses_a_model():
    form = planted_cone_program(np.random.default_rng(0), "lp").form
    answer = highs.BACKEND.run(attrs.evolve(form, A=form.A * 1e16), Settings())
    assert answer.stop is Stop.REJECTED
    assert "e+16" in answer.native


INTERRUPTED = """
    import numpy as np, threading, time
    from strategies import planted_cone_program, margin_form, radial_gram, signs
    from klopt.model.backend import Settings
    from klopt.solvers.{backend} import BACKEND

    rng = np.random.default_rng(0)
    forms = {{
        "lp": lambda: planted_cone_program(rng, "lp", 1500, 4500).form,
        "qp": lambda: margin_form(radial_gram(rng, 1000), signs(rng, 1000), 1e3),
        "socp": lambda: planted_cone_program(rng, "socp", 300, 900).form,
    }}
    form = forms["{kind}"]()
    print("ready", flush=True)
    try:
        while True:
            BACKEND.run(form, Settings(tol=1e-9))
    except KeyboardInterrupt:
        end = time.process_time()
        print("interrupted with", threading.active_count(), "thread", end)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise there")
@pytest.mark.parametrize(("backend", "kind"), [("highs", "lp"), ("highs", "qp"), ("scs", "socp")])
@pytest.mark.slow
def test_an_interrupt_reaches_the_caller_and_leaves_no_thread(backend, kind):
    code = textwrap.dedent(INTERRUPTED).format(backend=backend, kind=kind)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert child.stdout.readline() == "ready\n"
        seconds, said = work_after_interrupt(child, 0.7)
        assert said == "interrupted with 1 thread"
        assert seconds < 3.0
    finally:
        child.kill()
        child.communicate()


@pytest.mark.parametrize("seed", [152, 421, 562, 1304, 1622, 1645])
def test_what_the_active_set_code_fails_at_it_solves_by_another_path(seed) -> None:
    """On these it gives up, returns infinities or calls a wrong point optimal; turned round it does not."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 8))
    instance = planted_cone_program(rng, "qp", n, n + int(rng.integers(6, 19)))
    form = instance.form
    answer = highs.BACKEND.run(form, Settings(tol=1e-8))
    assert answer.stop is Stop.OPTIMAL
    assert form.measure(answer.x, answer.y).worst <= 1e-8
    assert form.value(answer.x) == pytest.approx(instance.value, rel=1e-8)
