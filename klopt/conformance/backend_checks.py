"""The checks of the conformance suite that every backend must pass, as named functions."""

from __future__ import annotations

import contextlib
import copy
import pickle
import sys
import time
import traceback
from collections.abc import Iterator
from functools import partial
from pathlib import PurePath

import attrs
import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.conformance.checks import Body, Skip, claimed, expect, tried_to_write, why_not
from klopt.conformance.instances import FormProblem, Instance, reference_instances
from klopt.conformance.planted import Kind, planted_cone_program
from klopt.engine.pipeline import answer_form, solve
from klopt.engine.registry import backends
from klopt.engine.result import Result
from klopt.engine.run_here import run_here
from klopt.errors import InvalidSettings
from klopt.model.backend import Answer, Backend, Settings, Start, Stop, contract_flaw
from klopt.model.cones import Cones
from klopt.model.features import Feature
from klopt.model.forms import ConeForm, ExplicitForm, Form, SaddleForm, SimplexForm
from klopt.model.records import field_names
from klopt.model.sets import Product
from klopt.proof.certificate import Verdict

__all__ = ["backend_checks"]

KINDS: tuple[Kind, ...] = ("lp", "qp", "socp", "sdp", "exp", "power")
"""The kinds of planted cone programs."""
SEEDS = range(5)
"""Those of the planted cone programs of each kind."""
MAX_OVERRUN_S = 30.0
"""A run with a time limit of a millisecond must end within this time."""
MAX_RELOAD_S = 0.1
"""What loading a library that is loaded may take."""
VALUE_ROUNDING = 1e-9
"""The error of an optimum that was computed on paper, or planted with rounded data."""
OWN_ERROR = 1e3
"""By how many tolerances the value of a backend's own point, and its feasibility, may be off."""
DIFFERENCE_STEP = 1e-3
"""The step of the central differences that multipliers are compared with."""


def backend_checks(backend: Backend) -> Iterator[tuple[str, Body]]:
    """Yield (name, body) of every check that applies; a body asserts, or raises `Skip`."""
    instances = [each for each in reference_instances() if each.form.needs <= backend.offers]
    solvable = [each for each in instances if each.verdict is Verdict.OPTIMAL]

    yield "contract_declarations", partial(_declarations, backend)
    yield "contract_pickles", partial(_pickles, backend)
    yield "contract_load", partial(_loads, backend)
    yield "contract_takes_something_known", partial(_takes_something, backend, instances)
    if solvable:
        # Before the truths, because it names the line where `run` raises.
        yield "contract_shapes", partial(_shapes, backend, solvable[0])

    if Feature.EXPLICIT in backend.offers:
        yield "truth_closed_form", partial(_closed_form, backend)
    for instance in instances:
        yield f"truth_{instance.name}", partial(_truth, backend, instance)

    if solvable:
        example = solvable[0]
        yield "contract_form_untouched", partial(_form_untouched, backend, solvable)
        yield "contract_start_untouched", partial(_start_untouched, backend, solvable)
        yield "contract_deterministic", partial(_deterministic, backend, example)
        yield "contract_silent", partial(_silent, backend, example)
        yield "contract_unknown_option_refused", partial(_unknown_option, backend, example)
        yield "limit_one_iteration", partial(_one_iteration, backend, example)
        yield "limit_next_to_no_time", partial(_no_time, backend, example)
        yield "start_at_the_optimum", partial(_start_at_optimum, backend, example)
        yield "start_with_rubbish", partial(_start_nan, backend, example)
        yield "agree_with_all_others", partial(_agrees, backend, solvable)

    for kind in _kinds(backend):
        yield f"proof_{kind}_known_pair", partial(_planted, backend, kind)
    if Feature.CONE in backend.offers:
        yield "proof_multipliers_are_gradients", partial(_multipliers, backend)
        yield from _metamorphic(backend)


def _kinds(backend: Backend) -> list[Kind]:
    """The kinds of planted cone programs that the backend takes."""
    rng = np.random.default_rng(0)
    return [k for k in KINDS if planted_cone_program(rng, k).form.needs <= backend.offers]


def _tol(backend: Backend) -> float:
    return max(1e-6, backend.accuracy)


def _solve(backend: Backend, form: Form, name: str = "form") -> Result:
    return solve(FormProblem(form, name), backend=backend, tol=_tol(backend))


def _certified(backend: Backend, form: Form, value: float, what: str) -> None:
    """The form is proven optimal, the known value lies in the interval, and the answer is near it."""
    result = _solve(backend, form, what)
    expect(result.verdict is Verdict.OPTIMAL, why_not(result, Verdict.OPTIMAL))
    slack = VALUE_ROUNDING * (1 + abs(value))
    expect(
        result.lower - slack <= value <= result.upper + slack,
        f"{what}: the optimum {value:.17g} is outside [{result.lower:.17g}, {result.upper:.17g}]",
    )
    # A repair may find the optimum from any point: what the backend itself found counts here.
    residuals = result.certificate.residuals
    if residuals is not None:
        allowed = OWN_ERROR * _tol(backend) * (1 + abs(value))
        error = max(abs(residuals.value - value), residuals.primal)
        expect(
            error <= allowed,
            f"{claimed(result)}\nklopt proves the optimum {value:.9g}, but the backend's own point "
            f"has the value {residuals.value:.9g} and violates the constraints by "
            f"{residuals.primal:.1e}",
        )


def _x(answer: Answer) -> FloatArray:
    if answer.x is None:
        raise AssertionError(f"no point: {answer.stop.words} ({answer.native})")
    return answer.x


def _declarations(backend: Backend) -> None:
    expect(backend.name and backend.name == backend.name.strip(), "name is empty")
    expect(backend.offers, "offers nothing")
    flaw = contract_flaw(backend)
    expect(not flaw, flaw)
    reasons = backend.exempt.values()
    expect(all(isinstance(each, str) and each for each in reasons), "an exemption lacks a reason")


def _loads(backend: Backend) -> None:
    """`load` imports the library, and costs nothing the second time."""
    backend.load()
    began = time.perf_counter()
    backend.load()
    again = time.perf_counter() - began
    expect(
        again <= MAX_RELOAD_S,
        f"a second load took {again:.2g} s: it is called before every run and only imports",
    )
    if backend.library is not None:
        name = backend.library
        expect(name in sys.modules, f"load does not import {name}, which run then has to do")


def _pickles(backend: Backend) -> None:
    again = pickle.loads(pickle.dumps(backend))
    expect(again.name == backend.name, "the name changes on the way through pickle")


def _takes_something(backend: Backend, instances: list[Instance]) -> None:
    takes_one = instances or Feature.EXPLICIT in backend.offers
    expect(takes_one, "no instance of the suite fits what it offers")


def _closed_form(backend: Backend) -> None:
    x = run_here(backend, ExplicitForm(_rule), Settings()).x
    is_same = x is not None and np.array_equal(x, _rule()[0])
    expect(is_same, f"the rule's x came back as {x}")


def _rule() -> tuple[FloatArray, FloatArray | None]:
    return np.array([1.0, 2.0]), None


def _truth(backend: Backend, instance: Instance) -> None:
    if instance.verdict is Verdict.OPTIMAL:
        _certified(backend, instance.form, instance.value, instance.name)
        return
    result = _solve(backend, instance.form, instance.name)
    if instance.verdict is Verdict.INFEASIBLE:
        promised = "farkas" in backend.proves
        also_true = {Verdict.UNPROVEN}
    else:
        promised = "ray" in backend.proves
        also_true = {Verdict.UNPROVEN, Verdict.FEASIBLE}
    # A backend that promises no such proof may leave the question open, but say nothing false.
    if promised or result.verdict not in also_true:
        expect(result.verdict is instance.verdict, why_not(result, instance.verdict))


def _form_untouched(backend: Backend, solvable: list[Instance]) -> None:
    """Nothing that the form holds or hands out is written, not even where an error hides it."""
    for instance in solvable:
        before = copy.deepcopy(_arrays(instance.form))
        result = _solve(backend, instance.form, instance.name)
        after = _arrays(instance.form)
        unchanged = all(map(_same, before, after))
        expect(unchanged, f"{instance.name}: the form's arrays were changed")
        native = result.chosen.answer.native
        expect(not tried_to_write(native), f"{claimed(result)}\nit writes into its input")


def _start_untouched(backend: Backend, solvable: list[Instance]) -> None:
    """A start is the caller's: a method that moves works on a copy."""
    if "start" not in backend.honours:
        raise Skip("it takes no start")
    for instance in solvable[:4]:
        x = _inner_point(instance.form)
        start = Start(x.copy())
        with contextlib.suppress(Exception):  # what it raises is judged elsewhere
            backend.run(instance.form, Settings(tol=_tol(backend)), start)
        expect(_same(start.x, x), f"{instance.name}: the start was changed")


def _inner_point(form: Form) -> FloatArray:
    """Some point to start at; not the centre of a set, to which a method may move."""
    if isinstance(form, SimplexForm):
        corner = form.domain.linear_minimiser(np.arange(1.0, form.domain.size + 1))
        return (form.domain.centre() + corner) / 2
    if isinstance(form, SaddleForm):
        return form.left.centre()
    return np.zeros(form.shape[1] or 1)


def _arrays(form: Form) -> list[FloatArray]:
    if isinstance(form, ConeForm):
        quadratic = [] if form.P is None else [form.P.data]
        return [form.c, form.b, form.A.data, *quadratic]
    if isinstance(form, SimplexForm):
        objective = form.objective
        gradient = objective.gradient(form.domain.centre())
        return [*_fields(objective), *_fields(form.domain), gradient]
    if isinstance(form, SaddleForm):
        gradients = form.coupling.gradients(form.left.centre(), form.right.centre())
        return [*_fields(form.coupling), *_fields(form.left), *_fields(form.right), *gradients]
    return []


def _fields(thing: object) -> list[FloatArray]:
    """The arrays that an object holds, and those of the members of a product."""
    if isinstance(thing, Product):
        return [array for member in thing.sets for array in _fields(member)]
    values = [getattr(thing, name) for name in field_names(type(thing))]
    return [value for value in values if isinstance(value, np.ndarray)]


def _same(a: FloatArray, b: FloatArray) -> bool:
    return np.array_equal(a, b, equal_nan=True)  # a gradient outside the domain is NaN


def _deterministic(backend: Backend, example: Instance) -> None:
    settings = Settings(tol=_tol(backend))
    first = _x(answer_form(backend, example.form, settings))
    second = _x(answer_form(backend, example.form, settings))
    expect(np.array_equal(first, second), f"two runs differ by {np.abs(first - second).max():.1e}")


def _silent(backend: Backend, example: Instance) -> None:
    answer = run_here(backend, example.form, Settings(tol=_tol(backend)), capture=True)
    # Where a backend does not honour `log`, klopt catches what it prints.
    if "log" in backend.honours:
        expect(not answer.log, f"printed although log is False: {answer.log[:80]!r}")


def _unknown_option(backend: Backend, example: Instance) -> None:
    try:
        answer = answer_form(backend, example.form, Settings(raw={"no_such_option": 1}))
    except InvalidSettings:
        return
    accepted = f"the unknown raw option 'no_such_option' was accepted ({answer.stop.words}); "
    accepted += "call klopt.model.backend.check_raw at the beginning of run"
    raise AssertionError(accepted)


def _shapes(backend: Backend, example: Instance) -> None:
    try:
        answer = backend.run(example.form, Settings(tol=_tol(backend)))
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{PurePath(last.filename).name}, line {last.lineno}"
        raise AssertionError(f"{type(error).__name__}: {error} ({where}: {last.line})") from error
    returned = f"run returned {type(answer).__name__}; return a klopt.Answer"
    expect(isinstance(answer, Answer), returned)
    rows, columns = example.form.shape
    _expect_shape("x", answer.x, columns)
    # Multipliers are owed only where they are promised, and where the form has rows.
    if "dual" in backend.proves and rows:
        _expect_shape("y", answer.y, rows)


def _expect_shape(name: str, array: FloatArray | None, size: int | None) -> None:
    found = array.shape if isinstance(array, np.ndarray) else type(array).__name__
    expect(found == (size,), f"{name} is {found}; return an array of the shape {(size,)}")


def _one_iteration(backend: Backend, example: Instance) -> None:
    if "max_iter" not in backend.honours:
        raise Skip("it has no iteration limit")
    result = solve(FormProblem(example.form), backend=backend, max_iter=1)
    expect(result.stop not in (Stop.CRASHED, Stop.REJECTED), claimed(result))
    # One iteration may happen to be enough; then the value must be right.
    if result.verdict is Verdict.OPTIMAL:
        error = abs(result.value - example.value)
        expect(error <= 1e-5 * (1 + abs(example.value)), "a wrong value was certified")


def _no_time(backend: Backend, example: Instance) -> None:
    result = solve(FormProblem(example.form), backend=backend, time_limit=1e-3)
    expect(result.stop not in (Stop.CRASHED, Stop.REJECTED), claimed(result))
    expect(result.seconds < MAX_OVERRUN_S, f"took {result.seconds:.1f} s for a limit of 1 ms")


def _start_at_optimum(backend: Backend, example: Instance) -> None:
    if "start" not in backend.honours:
        raise Skip("it takes no start")
    settings = Settings(tol=_tol(backend))
    cold = answer_form(backend, example.form, settings)
    warm = answer_form(backend, example.form, settings, Start(_x(cold), cold.y))
    is_optimal = warm.x is not None and warm.stop is Stop.OPTIMAL
    expect(is_optimal, f"from its own optimum it stops with {warm.stop.words}")
    # A method that counts no iterations cannot be compared.
    if cold.iterations and warm.iterations:
        counted = f"{warm.iterations} iterations warm, {cold.iterations} cold"
        expect(warm.iterations <= cold.iterations, counted)


def _start_nan(backend: Backend, example: Instance) -> None:
    if "start" not in backend.honours:
        raise Skip("it takes no start")
    start = Start(np.full(example.form.shape[1] or 1, np.nan))
    try:
        answer = answer_form(backend, example.form, Settings(tol=_tol(backend)), start)
    except InvalidSettings:
        return
    expect(answer.x is None or np.isfinite(answer.x).all(), "a start of NaN gave a point of NaN")


def _agrees(backend: Backend, solvable: list[Instance]) -> None:
    others = [other for other in backends() if other.name != backend.name and not other.missing]
    for instance in solvable[:4]:
        mine = _solve(backend, instance.form, instance.name)
        for other in others:
            if not instance.form.needs <= other.offers:
                continue
            theirs = _solve(other, instance.form, instance.name)
            overlap = mine.lower <= theirs.upper and theirs.lower <= mine.upper
            intervals = f"{_interval(mine)} and {_interval(theirs)}"
            expect(overlap, f"{instance.name}: disjoint from {other.name}: {intervals}")


def _interval(result: Result) -> str:
    return f"[{result.lower:.17g}, {result.upper:.17g}]"


def _planted(backend: Backend, kind: Kind) -> None:
    for seed in SEEDS:
        instance = planted_cone_program(np.random.default_rng(seed), kind)
        _certified(backend, instance.form, instance.value, f"{instance.name} with seed {seed}")


def _multipliers(backend: Backend) -> None:
    """dp*/db = -y, by central differences on a program with a unique, nondegenerate solution."""
    form = _example()
    settings = Settings(tol=1e-8)
    y = answer_form(backend, form, settings).y
    if y is None:
        raise AssertionError("no multipliers")

    def optimum(row: int, change: float) -> float:
        b = form.b.copy()
        b[row] += change
        return form.value(_x(answer_form(backend, attrs.evolve(form, b=b), settings)))

    for row in range(form.b.size):
        rise = optimum(row, DIFFERENCE_STEP) - optimum(row, -DIFFERENCE_STEP)
        gradient = rise / (2 * DIFFERENCE_STEP)
        is_close = abs(gradient + y[row]) <= 1e-2 * (1 + abs(gradient))
        expect(is_close, f"row {row}: {gradient:.4f} but y = {y[row]:.4f}")


def _example() -> ConeForm:
    """Maximise x_1 + 2 x_2 subject to x_1 + x_2 <= 4, x_1 + 3 x_2 <= 6 and x >= 0."""
    A = [[1, 1], [1, 3], [-1, 0], [0, -1]]
    return ConeForm([-1.0, -2.0], A, [4.0, 6.0, 0.0, 0.0], Cones(nonneg=4))


EXAMPLE_OPTIMUM = -5.0


def _metamorphic(backend: Backend) -> Iterator[tuple[str, Body]]:
    """The example written otherwise keeps its optimum."""
    for name, form in _variants().items():
        optimum = 8 * EXAMPLE_OPTIMUM if name == "scaled_objective" else EXAMPLE_OPTIMUM
        yield f"meta_{name}", partial(_certified, backend, form, optimum, name)


def _variants() -> dict[str, ConeForm]:
    form = _example()
    A = form.A.toarray()
    b = form.b
    c = form.c
    cones = form.cones

    order = [2, 0, 3, 1]
    columns = [1, 0]
    row_scale = np.array([1024.0, 1.0, 1.0, 1.0])
    units = np.array([4.0, 0.5])
    # x_1 + 2 x_2 <= 5.5 is implied: its maximum is 5. There x_1 + x_2 = 4.
    with_redundant = np.vstack([A, [2.0, 4.0]])
    with_equality = np.vstack([A, [1.0, 1.0], [-1.0, -1.0]])

    return {
        "permuted_rows": ConeForm(c, A[order], b[order], cones),
        "permuted_columns": ConeForm(c[columns], A[:, columns], b, cones),
        "scaled_row": ConeForm(c, A * row_scale[:, None], b * row_scale, cones),
        "scaled_objective": ConeForm(8 * c, A, b, cones),
        "redundant_row": ConeForm(c, with_redundant, [*b, 11.0], Cones(nonneg=5)),
        "split_equality": ConeForm(c, with_equality, [*b, 4.0, -4.0], Cones(nonneg=6)),
        "substituted": ConeForm(c * units, A * units, b, cones),
        "sparse_formats": ConeForm(c, sparse.coo_array(A), b, cones),
    }
