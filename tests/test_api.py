"""The public names as a whole: what help and a type checker say of them, and what a bad call is told."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from source import ROOT

import klopt
from klopt.engine.registry import problems
from klopt.model.records import field_defaults

PUBLIC = [name for name in dir(klopt) if not name.startswith("__")]
NAMED = {name: getattr(klopt, name) for name in PUBLIC}
NAMED |= {problem.__name__: problem for problem in problems()}
NAMED |= {f"backend {backend.name}": type(backend) for backend in klopt.backends()}


@pytest.mark.parametrize("name", NAMED)
def test_help_begins_with_one_line_that_says_what_it_is(name: str) -> None:
    thing = NAMED[name]  # a class needs a text of its own: an inherited one says what its parent is
    text = (vars(thing).get("__doc__") if isinstance(thing, type) else thing.__doc__) or ""
    first, _, rest = text.partition("\n")
    assert first.endswith(".")
    assert not rest.partition("\n")[0].strip()
    assert not first.startswith("Raw option")


@pytest.mark.parametrize("module", [klopt, klopt.problems], ids=["klopt", "klopt.problems"])
def test_dir_lists_what_is_public_and_nothing_else(module: Any) -> None:
    found = [name for name in dir(module) if not name.startswith("__")]
    if module is klopt:
        assert set(klopt.__all__) == set(found)
        assert all(
            name in ("learners", "problems") or not inspect.ismodule(getattr(klopt, name))
            for name in found
        )
    else:
        assert found == sorted(problem.__name__ for problem in problems())


def test_a_setting_has_one_name_and_one_default() -> None:
    settings = field_defaults(klopt.Settings)
    del settings["raw"]
    solve, compare = (inspect.signature(verb).parameters for verb in (klopt.solve, klopt.compare))
    assert {name: solve[name].default for name in settings} == settings
    assert {
        name: compare[name].default for name in ("tol", "threads", "seed")
    }.items() <= settings.items()


@pytest.mark.parametrize(
    "verb", [klopt.solve, klopt.compare, klopt.verify, klopt.check_backend, klopt.check_problem]
)
def test_a_verb_takes_its_objects_first_and_all_else_by_name(verb: Callable[..., Any]) -> None:
    parameters = list(inspect.signature(verb).parameters.values())
    objects = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert 1 <= len(objects) <= 2
    assert all(
        p.kind is p.KEYWORD_ONLY and p.default is not p.empty for p in parameters[len(objects) :]
    )


LP = klopt.problems.LP([1, 1], A_ub=[[-1, -2]], b_ub=[-2])
EYE = np.eye(3)


class Idle(klopt.Backend):
    """A backend that is never run."""

    name = "idle"
    offers = frozenset({klopt.Feature.CONE})

    def run(self, form: Any, settings: Any, start: Any = None) -> klopt.Answer:
        raise NotImplementedError


BAD: list[tuple[Callable[[], object], type[Exception], str]] = [
    (
        lambda: klopt.solve("LP"),
        klopt.InvalidProblem,
        "a str is no klopt problem; klopt.problems lists them",
    ),  # type: ignore[arg-type]
    (
        lambda: klopt.plan(type(LP)),
        klopt.InvalidProblem,
        r"the class LP is no klopt problem.*make one: LP\(",
    ),  # type: ignore[arg-type]
    (
        lambda: klopt.solve(LP, seed=None),
        klopt.InvalidSettings,
        "seed is None; expected a whole number",
    ),  # type: ignore[arg-type]
    (
        lambda: klopt.solve(LP, threads=1.5),
        klopt.InvalidSettings,
        "threads is 1.5; expected a whole number",
    ),  # type: ignore[arg-type]
    (
        lambda: klopt.solve(LP, log="no"),
        klopt.InvalidSettings,
        "log is 'no'; expected True or False",
    ),  # type: ignore[arg-type]
    (
        lambda: klopt.solve(LP, isolate="no"),
        klopt.InvalidSettings,
        "isolate is 'no'; expected True, False, or",
    ),  # type: ignore[arg-type]
    (
        lambda: klopt.solve(LP, formulation=1),
        klopt.InvalidSettings,
        "formulation is 1; .* one of: primal, dual",
    ),  # type: ignore[arg-type]
    (
        lambda: klopt.solve(LP, "highs", raw=[1]),
        klopt.InvalidSettings,
        r"raw must map .*; it is \[1\]",
    ),  # type: ignore[arg-type]
    (lambda: klopt.compare(LP, tol=[]), klopt.InvalidSettings, "tol is an empty list; give one"),
    (
        lambda: klopt.verify("mao2010-eq5", trials=2.5),
        klopt.InvalidSettings,
        "trials is 2.5; expected a whole number",
    ),  # type: ignore[arg-type]
    (
        lambda: klopt.verify("mao2010-eq5", jobs=0),
        klopt.InvalidSettings,
        "jobs is 0; expected a whole number of at least 1",
    ),
    (lambda: klopt.verify(3), klopt.InvalidSettings, "3 is no claim; expected its name or"),  # type: ignore[arg-type]
    (
        lambda: klopt.check_backend(Idle),
        klopt.InvalidSettings,
        "expected an instance of a class derived",
    ),  # type: ignore[arg-type]
    (
        lambda: klopt.check_problem(LP),
        klopt.InvalidSettings,
        "problem is a LP; expected a class derived",
    ),  # type: ignore[arg-type]
    (
        lambda: klopt.Cones(nonneg=1.5),
        klopt.InvalidProblem,
        r"cones.nonneg is 1.5; expected a whole number",
    ),  # type: ignore[arg-type]
    (
        lambda: klopt.Cones(soc=3),
        klopt.InvalidProblem,
        r"cones.soc is 3; expected the sizes .* such as \(3,\)",
    ),  # type: ignore[arg-type]
    (
        lambda: klopt.ConeForm([1], [[1]], [1], {"zero": 1}),
        klopt.InvalidProblem,
        "expected klopt.Cones",
    ),  # type: ignore[arg-type]
    (
        lambda: klopt.SimplexForm(sum, klopt.Simplex(2)),
        klopt.InvalidProblem,
        "make a function one: klopt.Oracle",
    ),  # type: ignore[arg-type]
    (
        lambda: klopt.SaddleForm(EYE, klopt.Simplex(3), klopt.Simplex(3)),
        klopt.InvalidProblem,
        "expected a Bilinear",
    ),  # type: ignore[arg-type]
    (
        lambda: klopt.ExplicitForm(EYE),
        klopt.InvalidProblem,
        r"expected a function without arguments",
    ),  # type: ignore[arg-type]
    (
        lambda: klopt.Oracle(2, 1, 2),
        klopt.InvalidProblem,
        "function and gradient must be functions of x",
    ),  # type: ignore[arg-type]
    (
        lambda: klopt.Product(klopt.Simplex(2)),
        klopt.InvalidProblem,
        "sets is one Simplex; expected a tuple of sets",
    ),  # type: ignore[arg-type]
    (
        lambda: klopt.Point([1, 2]),
        klopt.InvalidProblem,
        "primal of a point is list; expected arrays by name",
    ),  # type: ignore[arg-type]
    (
        lambda: klopt.Point({"x": "one"}),
        klopt.InvalidProblem,
        "primal of a point has something that is no array",
    ),
    (
        lambda: klopt.theorem("t", says="", draw=lambda rng, n: {})(3),
        klopt.InvalidSettings,
        "expected a function",
    ),  # type: ignore[arg-type]
    (
        lambda: klopt.problems.SDP([1], 3),
        klopt.InvalidProblem,
        "F is 3; expected the list of matrices",
    ),  # type: ignore[arg-type]
    (
        lambda: klopt.problems.ScgOrdered(EYE, [0, 0, 1], skip_constant="no"),
        klopt.InvalidProblem,
        "expected True or",
    ),  # type: ignore[arg-type]
    (
        lambda: klopt.problems.OrderedAlignment(EYE, [0, 0, 1], ordered="no"),
        klopt.InvalidProblem,
        "expected True or",
    ),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("call", "error", "text"), BAD, ids=[text[:24] for _, _, text in BAD])
def test_a_bad_call_is_told_what_is_wrong_and_what_to_do(
    call: Callable[[], object], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        call()


RIGHT = '''"""What a user may write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

import klopt
from klopt import Answer, Backend, Bracket, Formulation, Point, Problem, Simplex, SimplexForm, Stop
from klopt import *  # noqa: F403
from klopt.model.forms import Form
from klopt.learners import DankSVC
from klopt.papers.theorems.evidence import Evidence, at_most

Floats = npt.NDArray[np.float64]

lp = klopt.problems.LP([1, 1], sparse.csc_array(np.array([[-1.0, -2.0]])), [-2], bounds=[(0, 1), (0, None)])
result = solve(lp, "highs", tol=1e-8, raw={"presolve": "on"}).require()
if result.verdict is klopt.Verdict.OPTIMAL and result.point is not None:
    x: Floats = result.point.x
    sizes: tuple[float, int, str] = (result.value, lp.A_ub.nnz, result.explain())
names: list[str] = [route.backend.name for route in klopt.plan(lp).routes]

K, y = np.eye(4), [1, -1, 1, -1]
for problem in (
    klopt.problems.SoftMargin(K, y, C=1),
    klopt.problems.MultipleKernel([K, klopt.Gram.of(K)], y, C=1, norm=2.0),
    klopt.problems.SimilarityKernel(K, y, 1, 1, trace=None),
    klopt.problems.AdaptiveKernel(K, y, 1, eta=None),
    klopt.problems.ScgLogDet(K, ([(0, 2)], [(0, 1)]), gamma=1),
    klopt.problems.ScgOrdered(K, side=[0, 1, 0, -1]),
    klopt.problems.LogDetPairs(K, [(0, 2)], [(0, 1)], upper=1, lower=2),
    klopt.problems.SpectralRls(sparse.csr_array(K), [0, 1, 0, -1], C=1, mu=0.1),
    klopt.problems.QCQP(K, [1, 0, 0, 0], quadratics=[(K, [0, 0, 0, 0], 1)]),
    klopt.problems.SDP([1], [0, K]),
    klopt.problems.SaddlePoint.game(K),
    klopt.problems.SimplexProgram(lambda x: float(x @ x), lambda x: 2 * x, klopt.BoxPlane([0, 0], [1, 1])),
):
    print(problem.describe())
comparison = klopt.compare([lp, ("mine", lp)], ["highs", "scs"], tol=[1e-4, 1e-6], repeat=1, progress=False)
seconds: list[float] = [run.seconds for run in comparison.best.values()]


class Mine(Backend):
    """A backend of one's own."""

    name = "mine"
    offers = frozenset({klopt.Feature.CONE})
    exempt = {"limit_one_iteration": "it has no iterations"}

    def run(self, form: Form, settings: klopt.Settings, start: klopt.Start | None = None) -> Answer:
        """Return what it claims."""
        assert isinstance(form, klopt.ConeForm)
        return Answer(Stop.STALLED, x=np.zeros(form.A.shape[1]), iterations=1)


failed: list[str] = [check.detail for check in klopt.check_backend(klopt.register(Mine())) if not check.ok]


@dataclass(frozen=True, eq=False)
class Nearest(Problem):
    """A problem of one's own: the point of the simplex nearest to v."""

    v: Floats

    def formulations(self) -> tuple[Formulation, ...]:
        form = SimplexForm(klopt.Quadratic(np.eye(self.v.size), -self.v), Simplex(self.v.size))
        return (Formulation("QP", form.needs, lambda: form, lambda x, y: Point({"x": x})),)

    def bracket(self, point: Point) -> Bracket:
        return Bracket(0.0, float(point.x @ point.x), point)

    @classmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        return cls(rng.normal(size=size))


checks: list[klopt.Check] = klopt.check_problem(Nearest, show=False)
guesses = DankSVC(C=1.0).fit(K, y).predict(K)


@klopt.theorem("positive", says="0 <= a^2", draw=lambda rng, n: {"a": rng.normal()})
def positive(case: Mapping[str, float]) -> Evidence:
    return at_most(0.0, case["a"] ** 2)
'''

WRONG = """import klopt

klopt.solv
klopt.solve(klopt.problems.SoftMargin([[1.0]], [1], C="1"))
klopt.solve(3, tol="tight")
klopt.problems.LP([1.0]).A_ub.no_such_attribute
klopt.check_problem(klopt.problems.LP([1.0]))
"""


@pytest.mark.slow  # a first run of mypy reads NumPy and SciPy too
def test_a_users_script_is_checked_strictly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mypy = pytest.importorskip("mypy.api")
    package = tmp_path / "site" / "klopt"  # the three folders as a wheel lays them out
    package.mkdir(parents=True)
    for item in [*(ROOT / "klopt").iterdir(), ROOT / "problems", ROOT / "solvers"]:
        os.symlink(item, package / item.name)
    (tmp_path / "right.py").write_text(RIGHT, encoding="utf-8")
    (tmp_path / "wrong.py").write_text(WRONG, encoding="utf-8")
    monkeypatch.setenv("MYPYPATH", str(package.parent))
    monkeypatch.chdir(tmp_path)
    output, errors, _ = mypy.run(
        ["--strict", "--follow-imports=silent", "--config-file=", "right.py", "wrong.py"]
    )
    found = [
        (line.partition(": ")[0], line.rpartition(" ")[2])
        for line in output.splitlines()
        if ": error: " in line
    ]
    assert not errors
    assert found == [
        ("wrong.py:3", "[attr-defined]"),
        ("wrong.py:4", "[arg-type]"),
        ("wrong.py:5", "[arg-type]"),
        ("wrong.py:5", "[arg-type]"),
        ("wrong.py:6", "[attr-defined]"),
        ("wrong.py:7", "[arg-type]"),
    ], output
