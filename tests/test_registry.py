"""Backends and problems are found by scanning; a plug-in that fails is listed, and klopt goes on."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path

import pytest
from bad_backends import Liar

import klopt
from klopt.engine import registry
from klopt.errors import InvalidSettings, NoRoute


@pytest.fixture
def plug_in(tmp_path: Path):
    """Install a distribution with the given modules and entry points; return how to run Python with it."""

    def install(modules: dict[str, str], points: dict[str, str], group: str = "klopt.solvers"):
        info = tmp_path / "third_party-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: third-party\nVersion: 1.0\n")
        lines = [f"[{group}]", *(f"{name} = {where}" for name, where in points.items()), ""]
        (info / "entry_points.txt").write_text("\n".join(lines))
        for name, text in modules.items():
            (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))

        def run(script: str) -> str:
            done = subprocess.run(
                [sys.executable, "-c", textwrap.dedent(script)],
                env={**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
                capture_output=True,
                text=True,
            )
            assert done.returncode == 0, done.stderr
            assert done.stderr == ""
            return done.stdout

        return run

    return install


HALF = """
    import numpy as np
    import klopt

    class Half(klopt.Backend):
        name, offers, rank = "{name}", frozenset({{klopt.Feature.CONE}}), 45
        def run(self, form, settings, start=None):
            return klopt.Answer(klopt.Stop.OPTIMAL, x=np.array([0.5]), y=np.array([1.0]))

    BACKEND = Half()
"""

ASK = """
    import klopt
    from klopt.conformance.instances import FormProblem
    form = klopt.ConeForm([1.0], [[-1.0]], [-0.5], klopt.Cones(nonneg=1))
    print([b.name for b in klopt.backends() if b.name in ("half", "highs")])
    for item in klopt.plan(FormProblem(form)).broken:
        print("broken", item.name, item.reason)
"""


@pytest.mark.parametrize(
    "where", ["half", "half:BACKEND", "half:Half"], ids=["module", "instance", "class"]
)
def test_a_backend_is_found_by_its_entry_point(plug_in, where) -> None:
    run = plug_in({"half": HALF.format(name="half")}, {"half": where})
    out = run(ASK + '\n    print(klopt.solve(FormProblem(form), backend="half").verdict.name)')
    assert out == "['highs', 'half']\nOPTIMAL\n"


BROKEN = {
    "import": (
        "import no_such_library",
        "",
        "ModuleNotFoundError: No module named 'no_such_library'",
    ),
    "raises": ("raise RuntimeError('licence expired')", "", "RuntimeError: licence expired"),
    "exits": ("import sys; sys.exit(3)", "", "SystemExit: 3"),
    "panics": ("class Panic(BaseException): pass\nraise Panic('rust')", "", "Panic: rust"),
    "empty": ("x = 1", ":BACKEND", "AttributeError"),
    "text": (
        "BACKEND = 'scs'",
        ":BACKEND",
        "'scs' is neither a backend, a problem nor a module of them",
    ),
    "abstract": (
        "import klopt\nclass Half(klopt.Backend):\n    name = 'half'",
        ":Half",
        "TypeError",
    ),
    "offers_nothing": (
        "import klopt\nclass Half(klopt.Backend):\n  name = 'half'\n  def run(self, *_): pass\nBACKEND = Half()",
        ":BACKEND",
        "half offers None; expected a set of klopt.Feature",
    ),
    "takes_a_name": (HALF.format(name="highs"), ":BACKEND", "there is another 'highs'"),
}
"""What a plug-in's module says, what of it is named, and why it is no backend."""


def test_broken_plug_ins_are_listed_and_klopt_still_works(plug_in) -> None:
    modules = {f"broken_{name}": text for name, (text, _, _) in BROKEN.items()}
    run = plug_in(modules, {name: f"broken_{name}{what}" for name, (_, what, _) in BROKEN.items()})
    found, *listed, verdict = run(
        ASK + "\n    print(klopt.solve(FormProblem(form)).verdict.name)"
    ).splitlines()
    assert found == "['highs']"
    reasons = dict(line.removeprefix("broken ").split(maxsplit=1) for line in listed)
    assert reasons.keys() == BROKEN.keys()
    for name, (_, _, reason) in BROKEN.items():
        assert reasons[name].startswith(reason)
    assert verdict == "OPTIMAL"


def test_a_broken_plug_in_asked_for_by_name_says_why(plug_in) -> None:
    run = plug_in({"half": "raise RuntimeError('licence expired')"}, {"half": "half"})
    out = run("""
        import klopt
        from klopt.engine.registry import backend_named
        try:
            backend_named("half")
        except klopt.NoRoute as error:
            print(error)
    """)
    assert out == "backend 'half' is broken: RuntimeError: licence expired\n"


def test_a_problem_is_found_by_its_entry_point(plug_in) -> None:
    text = """
        from dataclasses import dataclass
        from klopt.conformance.instances import FormProblem
        @dataclass(frozen=True, eq=False, repr=False)
        class Doubled(FormProblem):
            "Nothing new."
    """
    run = plug_in({"doubled": text}, {"Doubled": "doubled:Doubled"}, group="klopt.problems")
    out = run("""
        from klopt.engine.registry import problem_named
        print(problem_named("doubled").__module__)
    """)
    assert out == "doubled\n"


def test_a_missing_library_is_named_with_how_to_get_it() -> None:
    class Absent(Liar):
        name, library = "absent", "no_such_solver.core"

    with pytest.raises(
        NoRoute,
        match=r"'absent' cannot run here: no_such_solver.core is not installed; pip install",
    ):
        klopt.solve(an_lp(), backend=Absent())


def an_lp():
    return klopt.problems.LP(c=[1.0, 1.0], A_ub=[[-1.0, -2.0]], b_ub=[-1.0])


@pytest.fixture
def clean_registry(monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})


@pytest.mark.usefixtures("clean_registry")
def test_a_registered_backend_joins_the_plan_and_the_last_of_a_name_counts() -> None:
    first, second = Liar(), Liar()
    assert klopt.register(first) is first
    assert registry.backend_named("liar") is first
    klopt.register(second)
    assert registry.backend_named("liar") is second
    assert second in {route.backend for route in klopt.plan(an_lp()).routes}


@pytest.mark.usefixtures("clean_registry")
def test_only_a_backend_can_be_registered() -> None:
    for wrong in ("scs", Liar, None):
        with pytest.raises(
            InvalidSettings, match="derive a class from it and register an instance"
        ):
            klopt.register(wrong)

    class Nameless(klopt.Backend):
        offers = frozenset({klopt.Feature.CONE})

        def run(self, form, settings, start=None):
            raise AssertionError

    with pytest.raises(InvalidSettings, match="it has no name"):
        klopt.register(Nameless())


@pytest.mark.usefixtures("clean_registry")
@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("library", 5),
        ("library", ""),
        ("honours", None),
        ("honours", frozenset({"patience"})),
        ("proves", frozenset({"everything"})),
        ("accuracy", "high"),
        ("isolate", "no"),
        ("rank", 1.5),
        ("offers", "cones"),
    ],
)
def test_a_backend_with_odd_attributes_is_refused_wherever_it_comes_in(attribute, value) -> None:
    odd = type("Odd", (Liar,), {attribute: value})()
    for ask in (klopt.register, klopt.check_backend, partial(klopt.solve, an_lp())):
        with pytest.raises(InvalidSettings, match=f"Odd cannot be .*{attribute}"):
            ask(odd)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hihgs", r"no backend 'hihgs'; did you mean 'highs'\? Known: .*highs"),
        ("zzz", r"no backend 'zzz'\. Known: .*highs"),
        ("clarabel:ipm", r"backend 'clarabel' has no variants; use 'clarabel'"),
    ],
)
def test_a_wrong_name_of_a_backend_is_answered_with_the_right_ones(name, text) -> None:
    with pytest.raises(NoRoute, match=text):
        klopt.solve(an_lp(), backend=name)


def test_a_wrong_name_of_a_problem_is_answered_with_the_right_ones() -> None:
    with pytest.raises(NoRoute, match=r"no problem 'qqp'; did you mean 'QCQP'\?"):
        registry.problem_named("qqp")
    with pytest.raises(NoRoute, match=r"no problem 'xyzzy'\. Known: .*LP"):
        registry.problem_named("xyzzy")
    with pytest.raises(AttributeError, match=r"there are: .*LP"):
        klopt.problems.NoSuchProblem  # noqa: B018
    assert registry.problem_named("lp") is klopt.problems.LP


def test_every_problem_of_the_registry_is_an_attribute_of_klopt_problems() -> None:
    assert registry.broken() == ()
    for problem in registry.problems():
        assert getattr(klopt.problems, problem.__name__) is problem


def test_backends_are_listed_by_rank_and_name() -> None:
    keys = [(backend.rank, backend.name) for backend in klopt.backends()]
    assert keys == sorted(keys)
