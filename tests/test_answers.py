"""Answers are data: whatever a backend returns or raises, the caller gets numbers, text or a crashed attempt."""

from __future__ import annotations

import datetime
import sys
from typing import Any

import numpy as np
import pytest
from bad_backends import Bad, Exchanger, Panic, Speaker
from fuzz.fuzz_answers import outcomes

import klopt
from klopt.conformance.instances import FormProblem
from klopt.engine.clean_answer import MAX_TEXT_CHARACTERS, clean_text, error_text
from klopt.engine.run_here import run_here
from klopt.engine.run_in_child import run_isolated
from klopt.engine.standard_streams import MAX_LOG_BYTES
from klopt.errors import InvalidSettings
from klopt.model.backend import Answer, Backend, Settings, Step, Stop
from klopt.model.features import Feature
from klopt.proof.certificate import Verdict

X = np.array([0.0, 1.0])
Y = np.array([0.5, 0.5, 0.0])
LP = klopt.problems.LP([1, 1], A_ub=[[-1, -2]], b_ub=[-2])
"""Minimise x + y over x + 2 y >= 2, x, y >= 0: the optimum is 1, at (0, 1)."""
FORM = LP.form


def raising(method: str, error: type[BaseException] = RuntimeError, base: type = object) -> Any:
    """An object whose method raises."""

    def fails(self: object, *_: object, **__: object) -> None:
        raise error("boo")

    return type("R", (base,), {method: fails})()


UNREADABLE = [
    ({"x": raising("__array__")}, "x is no vector of numbers"),
    ({"x": raising("__array__", OSError)}, "x is no vector of numbers"),
    ({"x": raising("__array__", Panic)}, "x is no vector of numbers"),
    ({"x": [0, 10**400]}, "x is no vector of numbers"),
    ({"x": np.ma.array(X, mask=[1, 0])}, "x is a masked array with entries missing"),
    ({"x": np.array(["2020-01-01", "2020-01-02"], "M8[D]")}, "x is no vector of numbers"),
    ({"x": [datetime.date(2020, 1, 1)] * 2}, "x is no vector of numbers"),
    ({"x": np.rec.array([(0.0,), (1.0,)], dtype=[("a", float)])}, "x is no vector of numbers"),
    ({"x": ["0", "1"]}, "x is no vector of numbers"),
    ({"x": X.astype(complex)}, "x is no vector of numbers"),
    ({"x": (entry for entry in X)}, "x is no vector of numbers"),
    ({"x": np.matrix(X)}, r"x has shape (1, 2), not (2,)"),
    ({"x": np.broadcast_to(1.0, 10**12)}, "x has shape (1000000000000,), not (2,)"),
    ({"x": X.astype(np.longdouble) * np.longdouble("1e4000")}, "1 entries that are NaN"),
    ({"stop": raising("__eq__")}, "which is no member of Stop"),
    ({"stop": "optimal"}, "which is no member of Stop"),
    ({"stop": raising("__str__")}, "(a R that cannot be printed)"),
    ({"error": raising("__str__", base=ValueError)}, "R: (a R that cannot be printed)"),
    ({"error": raising("__str__", Panic, MemoryError)}, "R: (a R that cannot be printed)"),
    ({"error": raising("__repr__", base=KeyError)}, "R: "),
]
"""Parts of an answer that are none, with what the native status says of them."""


@pytest.mark.parametrize(("parts", "words"), UNREADABLE)
def test_what_is_no_vector_status_or_message_proves_nothing_and_is_named(
    parts: dict[str, object], words: str
) -> None:
    result = klopt.solve(LP, Speaker(**{"x": X, **parts}), formulation="primal")
    assert words in result.chosen.answer.native
    assert result.lower <= 1.0 <= result.upper
    assert not (result.verdict is Verdict.OPTIMAL and result.chosen.answer.x is None)
    result.explain().encode()


READABLE = [
    {"native": raising("__str__")},
    {"native": "\ud800"},
    {"notes": (raising("__str__"),)},
    {"notes": raising("__iter__", base=list)},
    {"log": raising("__str__")},
    {"iterations": raising("__int__", base=int)},
    {"iterations": raising("__index__")},
    {"iterations": 2**70},
    {"seconds": raising("__float__", base=float)},
    {"seconds": 10**400},
    {"history": [Step(raising("__int__"), 0.0, 0.0, 0.0), raising("__eq__")]},  # type: ignore[arg-type]
    {"x": X.astype(">f8")},
    {"x": list(X)},
    {"x": X.view(type("Odd", (np.ndarray,), {"astype": None, "shape": (7,)}))},
]
"""Odd parts beside a right x and y."""


@pytest.mark.parametrize("parts", READABLE)
def test_odd_parts_do_not_spoil_a_right_answer(parts: dict[str, object]) -> None:
    result = klopt.solve(LP, Speaker(**{"x": X, "y": Y, **parts}), formulation="primal")
    assert result.verdict is Verdict.OPTIMAL
    answer = result.chosen.answer
    for value in (answer.native, answer.log, *answer.notes):
        assert type(value) is str
        value.encode()
    assert answer.iterations is None or type(answer.iterations) is int
    assert type(answer.seconds) is float
    assert type(answer.x) is np.ndarray
    assert answer.x.dtype == np.dtype(float)


def test_every_part_is_a_plain_copy() -> None:
    """A subclass of a text or number keeps nothing of its class."""

    class Word(str):
        def __str__(self) -> str:
            raise RuntimeError

    class Number(int):
        def __add__(self, other: object) -> int:  # type: ignore[override]
            raise RuntimeError

    step = Step(Number(3), np.float32(0.5), 1, 2)  # type: ignore[arg-type]
    given = Speaker(native=Word("w"), iterations=Number(7), notes=[Word("n")], history=[step])
    answer = run_here(given, FORM, Settings())
    assert (answer.native, answer.iterations, answer.notes) == ("w", 7, ("n",))
    assert (type(answer.native), type(answer.iterations), type(answer.notes[0])) == (str, int, str)
    assert answer.history == (Step(3, 0.5, 1.0, 2.0),)
    assert {type(value) for value in vars(answer.history[0]).values()} == {int, float}


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("a\x1b[2Jb", "a\ufffd[2Jb"),
        ("\ud800", "\ufffd"),
        ("nul\0", "nul\ufffd"),
        ("two\nlines\tand a tab\r", "two\nlines\tand a tab\r"),
        ("Grüße, 数学", "Grüße, 数学"),
    ],
)
def test_text_is_printable_everywhere(text: str, clean: str) -> None:
    assert clean_text(text) == clean
    clean.encode()


def test_long_texts_are_cut() -> None:
    answer = run_here(Speaker(native="x" * 10**6, notes=["y"] * 1000), FORM, Settings())
    assert len(answer.native) == MAX_TEXT_CHARACTERS
    assert len(answer.notes) == 100


class Talker(Bad):
    """Prints more than anyone reads."""

    name = "talker"
    honours = frozenset({"tol"})

    def misbehave(self, form: object) -> Answer:
        sys.stdout.write("word " * 1_000_000)
        return Answer(Stop.STALLED)


def test_what_is_kept_of_the_output_is_limited() -> None:
    assert len(run_here(Talker(), FORM, Settings()).log) == MAX_LOG_BYTES


def test_an_error_is_named_even_if_its_class_has_no_name() -> None:
    class Nameless(type):
        @property
        def __name__(cls) -> str:  # type: ignore[override]
            raise RuntimeError

    class Odd(ValueError, metaclass=Nameless):
        pass

    assert error_text(Odd("boo")) == "Odd: boo"


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_control_c_passes_wherever_it_comes(error: type[BaseException]) -> None:
    with pytest.raises(error):
        klopt.solve(LP, Speaker(x=raising("__array__", error)))


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)])
def test_in_a_child_they_are_the_backends_own(error: BaseException) -> None:
    answer = run_isolated(Speaker(error=error), FORM, Settings())
    assert answer.stop is Stop.CRASHED
    assert type(error).__name__ in answer.native


def test_bad_settings_are_raised_with_a_message_that_can_be_printed() -> None:
    odd = type("Odd", (InvalidSettings,), {"__str__": lambda self: 1 / 0})
    for run in (run_here, run_isolated):
        with pytest.raises(InvalidSettings, match="cannot be printed"):
            run(Speaker(error=odd()), FORM, Settings())


def test_hostile_answers_are_contained_in_process_and_in_children() -> None:
    """The short run of the fuzzer; `python tests/fuzz/fuzz_answers.py 2000` is the long one."""
    for isolate, number in ((False, 150), (True, 10)):
        for seed, said, _ in outcomes(range(number), isolate=isolate):
            assert said in Stop.__members__, f"seed {seed}, isolate={isolate}: {said}"


def test_odd_answers_do_not_end_a_comparison(tmp_path: Any) -> None:
    class One(Speaker):
        name = "one"

    class Two(Speaker):
        name = "two"

    class Three(Speaker):
        name = "three"

    odd = [One(native="\ud800\0"), Two(iterations=2**70), Three(x=[0, 10**400], native="\x1b")]
    file = tmp_path / "runs.db"
    runs = klopt.compare(LP, [*odd, "highs"], repeat=1, time_limit=20, store=file).runs
    assert [run.backend for run in runs] == ["one", "two", "three", "highs"]
    assert runs[-1].verdict is Verdict.OPTIMAL
    assert not any(run.verdict is Verdict.OPTIMAL for run in runs[:-1])
    again = klopt.compare(LP, [*odd, "highs"], repeat=1, time_limit=20, store=file)
    assert len(again.reused) == 4


# What a backend is given it cannot change for others.


@pytest.mark.parametrize("field", ["c", "b", "A.data", "P.data"])
@pytest.mark.parametrize("size", [5, 40_000])
def test_a_native_write_is_noticed_however_large_the_array_is(field: str, size: int) -> None:
    """Two entries change places: the sum of all bits stays the same."""
    entries = np.arange(1.0, size + 1)
    eye = klopt.problems.QCQP(np.eye(1), [0.0]).form.P
    assert eye is not None
    diagonal = type(eye)((entries, np.arange(size), np.arange(size + 1)), shape=(size, size))
    form = klopt.ConeForm(entries, -diagonal, -entries, klopt.Cones(nonneg=size), diagonal)
    problem = FormProblem(form)
    result = klopt.solve(problem, Exchanger(field))
    assert result.stop is Stop.CRASHED
    assert "changed its input" in result.explain()
    with pytest.raises(klopt.InvalidProblem, match="build the problem anew"):
        klopt.solve(problem)


def test_a_native_write_in_a_child_leaves_the_problem_as_it_is() -> None:
    entries = np.arange(1.0, 6.0)
    form = klopt.ConeForm(entries, -np.eye(5), -entries, klopt.Cones(nonneg=5))
    problem = FormProblem(form)
    result = klopt.solve(problem, Exchanger("c"), isolate=True)
    assert "changed its copy of the input" in result.explain()
    np.testing.assert_array_equal(problem.form.c, np.arange(1.0, 6.0))
    assert klopt.solve(problem).verdict is Verdict.OPTIMAL


class RuleWriter(Backend):
    """Calls the rule of an explicit form, and lets two entries of its problem change places."""

    name = "rule_writer"
    offers = frozenset({Feature.EXPLICIT})

    def run(self, form: Any, settings: Settings, start: object = None) -> Answer:
        import ctypes

        x, y = form.rule()
        target = form.rule.__self__.V
        words = (ctypes.c_double * target.size).from_address(target.ctypes.data)
        words[0], words[1] = words[1], words[0]
        return Answer(Stop.OPTIMAL, x, y)


def test_a_native_write_to_the_problem_behind_a_rule_is_noticed() -> None:
    problem = klopt.problems.ScgOrdered.sample(np.random.default_rng(0), 8)
    result = klopt.solve(problem, RuleWriter(), formulation="explicit")
    assert "changed its input" in result.explain()


class OptionWriter(Bad):
    """Writes into the options and settings that it was given."""

    name = "option_writer"

    def run(self, form: Any, settings: Settings, start: object = None) -> Answer:
        settings.raw["list"].append(1)
        vars(settings)["tol"] = 0.1
        return Answer(Stop.STALLED, native=str(settings.raw["list"]))


def test_native_options_are_a_backends_own() -> None:
    options = {"list": [0]}
    for _ in range(2):
        result = klopt.solve(LP, OptionWriter(), raw=options)
        assert {attempt.answer.native for attempt in result.attempts} == {"[0, 1]"}
        assert result.settings.tol == 1e-6
    assert options == {"list": [0]}
