"""The checks of the conformance suite that every backend must pass, as named functions that assert."""

from __future__ import annotations

import copy
import pickle
import traceback
from collections.abc import Iterator
from functools import partial
from pathlib import PurePath

import attrs
import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.conformance.checks import Body, Skip, expect
from klopt.conformance.format import claimed, why_not
from klopt.conformance.instances import FormProblem, Instance, reference_instances
from klopt.conformance.planted import Kind, planted_cone_program
from klopt.engine.pipeline import answer_form, solve
from klopt.engine.registry import backends
from klopt.engine.result import Result
from klopt.engine.run_here import run_here
from klopt.errors import InvalidSettings
from klopt.model.backend import Answer, Backend, Settings, Start, Stop
from klopt.model.cones import Cones, Feature
from klopt.model.forms import ConeForm, ExplicitForm, Form, SaddleForm, SimplexForm
from klopt.model.functions import Quadratic
from klopt.proof.certificate import Verdict

__all__ = ["backend_checks"]

HONOURS = {"tol", "time_limit", "max_iter", "threads", "seed", "log", "start"}
PROVES = {"dual", "farkas", "ray"}


def backend_checks(backend: Backend) -> Iterator[tuple[str, Body]]:
    """Yield (name, body) of every check that applies to the backend; a body asserts, or raises `Skip`."""
    taken = [
        instance for instance in reference_instances() if instance.form.needs <= backend.offers
    ]
    yield "contract_declarations", partial(_declarations, backend)
    yield "contract_pickles", partial(_pickles, backend)
    yield "contract_takes_something_known", partial(_takes_something, backend, taken)
    usual = [instance for instance in taken if instance.verdict is Verdict.OPTIMAL]
    if usual:  # before the truths: it names the line where run raises
        yield "contract_shapes", partial(_shapes, backend, usual[0])
    if Feature.EXPLICIT in backend.offers:
        yield "truth_closed_form", partial(_closed_form, backend)
    for instance in taken:
        yield f"truth_{instance.name}", partial(_truth, backend, instance)
    if usual:
        example = usual[0]
        yield "contract_form_untouched", partial(_form_untouched, backend, example)
        yield "contract_deterministic", partial(_deterministic, backend, example)
        yield "contract_silent", partial(_silent, backend, example)
        yield "contract_unknown_option_refused", partial(_unknown_option, backend, example)
        yield "limit_one_iteration", partial(_one_iteration, backend, example)
        yield "limit_next_to_no_time", partial(_no_time, backend, example)
        yield "start_at_the_optimum", partial(_start_at_optimum, backend, example)
        yield "start_with_rubbish", partial(_start_rubbish, backend, example)
        yield "agree_with_all_others", partial(_agrees, backend, usual)
    for kind in _kinds(backend):
        yield f"proof_{kind}_known_pair", partial(_known_pairs, backend, kind)
    if {Feature.CONE} <= backend.offers:
        yield "proof_multipliers_are_gradients", partial(_multipliers, backend)
        yield from _metamorphic(backend)


def _kinds(backend: Backend) -> list[Kind]:
    kinds: list[Kind] = ["lp", "qp", "socp", "sdp", "exp"]
    needs = {
        kind: planted_cone_program(np.random.default_rng(0), kind).form.needs for kind in kinds
    }
    return [kind for kind in kinds if needs[kind] <= backend.offers]


def _tol(backend: Backend) -> float:
    return max(1e-6, backend.accuracy)


def _solve(backend: Backend, form: Form, name: str = "form") -> Result:
    return solve(FormProblem(form, name), backend=backend, tol=_tol(backend))


def _certified(backend: Backend, form: Form, value: float, what: str) -> None:
    """The form is proven optimal and the known value lies in the interval, up to the width asked for."""
    result = _solve(backend, form, what)
    expect(result.verdict is Verdict.OPTIMAL, why_not(result, Verdict.OPTIMAL))
    slack = _tol(backend) * (1 + abs(value))
    expect(
        result.lower - slack <= value <= result.upper + slack,
        f"{what}: the optimum {value:.9g} is outside [{result.lower:.9g}, {result.upper:.9g}]",
    )


def _x(answer: Answer) -> FloatArray:
    if answer.x is None:
        raise AssertionError(f"no point: {answer.stop.words} ({answer.native})")
    return answer.x


def _declarations(backend: Backend) -> None:
    expect(backend.name and backend.name == backend.name.strip(), "name is empty")
    expect(backend.offers, "offers nothing")
    expect(
        backend.offers <= set(Feature), f"offers unknown features: {backend.offers - set(Feature)}"
    )
    expect(backend.honours <= HONOURS, f"honours unknown settings: {backend.honours - HONOURS}")
    expect(backend.proves <= PROVES, f"proves unknown things: {backend.proves - PROVES}")
    expect(
        all(isinstance(reason, str) and reason for reason in backend.exempt.values()),
        "an exemption lacks a reason",
    )


def _pickles(backend: Backend) -> None:
    again = pickle.loads(pickle.dumps(backend))
    expect(again.name == backend.name, "the name changes on the way through pickle")


def _takes_something(backend: Backend, taken: list[Instance]) -> None:
    expect(
        taken or Feature.EXPLICIT in backend.offers, "no instance of the suite fits what it offers"
    )


def _closed_form(backend: Backend) -> None:
    answer = run_here(backend, ExplicitForm(_rule), Settings())
    expect(
        answer.x is not None and np.array_equal(answer.x, _rule()[0]),
        f"the rule's x came back as {answer.x}",
    )


def _rule() -> tuple[FloatArray, FloatArray | None]:
    return np.array([1.0, 2.0]), None


def _truth(backend: Backend, instance: Instance) -> None:
    if instance.verdict is Verdict.OPTIMAL:
        return _certified(backend, instance.form, instance.value, instance.name)
    result = _solve(backend, instance.form, instance.name)
    proof, also_true = {
        Verdict.INFEASIBLE: ("farkas", {Verdict.UNPROVEN}),
        Verdict.UNBOUNDED: ("ray", {Verdict.UNPROVEN, Verdict.FEASIBLE}),
    }[instance.verdict]
    if proof in backend.proves or result.verdict not in also_true:
        expect(result.verdict is instance.verdict, why_not(result, instance.verdict))
    return None


def _form_untouched(backend: Backend, example: Instance) -> None:
    before = copy.deepcopy(_arrays(example.form))
    _solve(backend, example.form)
    after = _arrays(example.form)
    expect(
        all(np.array_equal(a, b) for a, b in zip(before, after, strict=True)),
        "the form's arrays were changed",
    )


def _arrays(form: Form) -> list[FloatArray]:
    if isinstance(form, ConeForm):
        return [form.c, form.b, form.A.data, *([] if form.P is None else [form.P.data])]
    if isinstance(form, SimplexForm):
        objective = form.objective
        return (
            [objective.H, objective.linear]
            if isinstance(objective, Quadratic)
            else [objective.gradient(form.domain.centre())]
        )
    return [form.left.centre(), form.right.centre()] if isinstance(form, SaddleForm) else []


def _deterministic(backend: Backend, example: Instance) -> None:
    first, second = (
        _x(answer_form(backend, example.form, Settings(tol=_tol(backend)))) for _ in range(2)
    )
    expect(np.array_equal(first, second), f"two runs differ by {np.abs(first - second).max():.1e}")


def _silent(backend: Backend, example: Instance) -> None:
    answer = run_here(backend, example.form, Settings(tol=_tol(backend)), capture=True)
    if "log" in backend.honours:
        expect(not answer.log, f"printed although log is False: {answer.log[:80]!r}")


def _unknown_option(backend: Backend, example: Instance) -> None:
    try:
        answer = answer_form(backend, example.form, Settings(raw={"no_such_option": 1}))
    except InvalidSettings:
        return
    raise AssertionError(
        f"the unknown raw option 'no_such_option' was accepted ({answer.stop.words})"
    )


def _shapes(backend: Backend, example: Instance) -> None:
    try:
        answer = backend.run(example.form, Settings(tol=_tol(backend)))
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{PurePath(last.filename).name}, line {last.lineno}"
        raise AssertionError(f"{type(error).__name__}: {error} ({where}: {last.line})") from error
    expect(
        isinstance(answer, Answer), f"run returned {type(answer).__name__}; return a klopt.Answer"
    )
    rows, columns = example.form.shape
    _expect_shape("x", answer.x, columns)
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
    if result.verdict is Verdict.OPTIMAL:
        expect(
            abs(result.value - example.value) <= 1e-5 * (1 + abs(example.value)),
            "a wrong value was certified",
        )


def _no_time(backend: Backend, example: Instance) -> None:
    result = solve(FormProblem(example.form), backend=backend, time_limit=1e-3)
    expect(result.stop not in (Stop.CRASHED, Stop.REJECTED), claimed(result))
    expect(result.seconds < 30, f"took {result.seconds:.1f} s for a limit of 1 ms")


def _start_at_optimum(backend: Backend, example: Instance) -> None:
    if "start" not in backend.honours:
        raise Skip("it takes no start")
    settings = Settings(tol=_tol(backend))
    cold = answer_form(backend, example.form, settings)
    warm = answer_form(backend, example.form, settings, Start(_x(cold), cold.y))
    expect(
        warm.x is not None and warm.stop is Stop.OPTIMAL,
        f"from its own optimum it stops with {warm.stop.words}",
    )
    if cold.iterations and warm.iterations:
        expect(
            warm.iterations <= cold.iterations,
            f"{warm.iterations} iterations warm, {cold.iterations} cold",
        )


def _start_rubbish(backend: Backend, example: Instance) -> None:
    if "start" not in backend.honours:
        raise Skip("it takes no start")
    start = Start(np.full(example.form.shape[1] or 1, np.nan))
    try:
        answer = answer_form(backend, example.form, Settings(tol=_tol(backend)), start)
    except InvalidSettings:
        return
    expect(answer.x is None or np.isfinite(answer.x).all(), "a start of NaN gave a point of NaN")


def _agrees(backend: Backend, usual: list[Instance]) -> None:
    for instance in usual[:4]:
        mine = _solve(backend, instance.form, instance.name)
        for other in backends():
            if (
                other.name != backend.name
                and not other.missing
                and instance.form.needs <= other.offers
            ):
                theirs = _solve(other, instance.form, instance.name)
                slack = 2 * max(_tol(backend), _tol(other)) * (1 + abs(instance.value))
                expect(
                    mine.lower - slack <= theirs.upper and theirs.lower - slack <= mine.upper,
                    f"{instance.name}: disjoint from {other.name}: [{mine.lower:.9g}, {mine.upper:.9g}] "
                    f"and [{theirs.lower:.9g}, {theirs.upper:.9g}]",
                )


def _known_pairs(backend: Backend, kind: Kind) -> None:
    for seed in range(5):
        instance = planted_cone_program(np.random.default_rng(seed), kind)
        _certified(backend, instance.form, instance.value, f"{instance.name} with seed {seed}")


def _multipliers(backend: Backend) -> None:
    """dp*/db = -y, by central differences on a program with a unique, nondegenerate solution."""
    form = _example()
    y = answer_form(backend, form, Settings(tol=1e-8)).y
    if y is None:
        raise AssertionError("no multipliers")
    step = 1e-3
    for row in range(form.b.size):
        ends = []
        for sign in (1, -1):
            b = form.b.copy()
            b[row] += sign * step
            ends.append(
                form.value(_x(answer_form(backend, attrs.evolve(form, b=b), Settings(tol=1e-8))))
            )
        gradient = (ends[0] - ends[1]) / (2 * step)
        expect(
            abs(gradient + y[row]) <= 1e-2 * (1 + abs(gradient)),
            f"row {row}: {gradient:.4f} but y = {y[row]:.4f}",
        )


def _example() -> ConeForm:
    return ConeForm(
        [-1.0, -2.0], [[1, 1], [1, 3], [-1, 0], [0, -1]], [4.0, 6.0, 0.0, 0.0], Cones(nonneg=4)
    )


def _metamorphic(backend: Backend) -> Iterator[tuple[str, Body]]:
    form, value = _example(), -5.0
    A, b, c = form.A.toarray(), form.b, form.c
    order, columns, scales = [2, 0, 3, 1], [1, 0], np.array([4.0, 0.5])
    rows = Cones(nonneg=4)
    variants = {
        "permuted_rows": (ConeForm(c, A[order], b[order], rows), value),
        "permuted_columns": (ConeForm(c[columns], A[:, columns], b, rows), value),
        "scaled_row": (
            ConeForm(c, A * [[1024.0], [1], [1], [1]], b * [1024, 1, 1, 1], rows),
            value,
        ),
        "scaled_objective": (ConeForm(8 * c, A, b, rows), 8 * value),
        "redundant_row": (
            ConeForm(c, np.vstack([A, [[2.0, 4.0]]]), [*b, 11.0], Cones(nonneg=5)),
            value,
        ),
        "split_equality": (
            ConeForm(
                c, np.vstack([A, [[1.0, 1.0], [-1.0, -1.0]]]), [*b, 4.0, -4.0], Cones(nonneg=6)
            ),
            value,
        ),
        "substituted": (ConeForm(c * scales, A * scales, b, rows), value),
        "sparse_formats": (ConeForm(c, sparse.coo_array(A), b, rows), value),
    }
    for name, (variant, optimum) in variants.items():
        yield f"meta_{name}", partial(_certified, backend, variant, optimum, name)
