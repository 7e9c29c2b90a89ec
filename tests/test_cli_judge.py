"""`klopt judge`, and `klopt solve PROBLEM --data FILE`: exit codes, JSON, data of one's own, bad calls."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC
from strategies import TINY_LP

import klopt as package
from klopt.cli.main import main
from klopt.engine.registry import problems

SCRIPT = """
import numpy as np
from scipy.optimize import linprog
from sklearn.svm import SVC

X = np.arange(12.0)[:, None]
y = np.arange(12) // 4
program = {"c": [1, 2], "A_ub": [[-1, -1]], "b_ub": [-1]}
result = (linprog(**program), program)

def machines():
    return SVC(tol=1e-10).fit(X, y), X, y

def poor():
    svc = SVC(tol=1e-10).fit(X, y)
    svc.dual_coef_ = 2 * svc.dual_coef_
    return svc, X, y
"""


def klopt(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    model = tmp_path / "tiny.mps"
    model.write_text(TINY_LP)
    (tmp_path / "good.sol").write_text("x 0\ny 1\n")
    (tmp_path / "poor.sol").write_text("x 1\ny 1\n")
    (tmp_path / "script.py").write_text(SCRIPT)
    return model


# klopt judge


def test_exit_codes_say_whether_the_answer_is_proven(tiny: Path) -> None:
    good = klopt("judge", tiny, tiny.with_name("good.sol"))
    assert good.exit_code == 0, good.output
    assert good.output.startswith("OPTIMAL")
    assert "without solving again" in good.output
    poor = klopt("judge", tiny, tiny.with_name("poor.sol"), "-v")
    assert poor.exit_code == 1
    assert "the answer itself" in poor.output
    assert max(map(len, good.output.splitlines())) <= 80


def test_the_document_has_the_result_and_its_parts(tiny: Path) -> None:
    script = tiny.with_name("script.py")
    found = json.loads(klopt("judge", f"{script}:result", "--json").stdout)
    assert (found["command"], found["verdict"], found["certified"]) == ("judge", "OPTIMAL", True)
    many = klopt("judge", f"{script}:machines", "--json")
    assert many.exit_code == 0, many.output
    parts = json.loads(many.stdout)["parts"]
    assert [part["verdict"] for part in parts.values()] == ["OPTIMAL"] * 3
    assert klopt("judge", f"{script}:poor").exit_code == 1
    assert "0 against 1: " in klopt("judge", f"{script}:poor").output


def test_an_answer_to_an_infeasible_program_is_not_confirmed(tmp_path: Path) -> None:
    model = tmp_path / "none.mps"
    model.write_text(TINY_LP.replace("ENDATA", "BOUNDS\n UP BND x 0.5\n UP BND y 0.5\nENDATA"))
    solution = tmp_path / "none.sol"
    solution.write_text("x 0.5\ny 0.5\n")
    assert klopt("judge", model, solution).exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["tiny.mps"], "give its solution too"),
        (["absent.mps", "good.sol"], "no file"),
        (["tiny.mps", "absent.sol"], "no file"),
        (["script.py:machine"], "did you mean 'machines'"),
        (["script.py:y"], "klopt cannot judge a ndarray"),
        (["nothing"], "names nothing"),
        (["tiny.mps", "good.sol", "--tol", "5"], "tol is 5"),
        (["tiny.mps", "good.sol", "--time", "soon"], "no duration"),
    ],
)
def test_a_bad_call_has_exit_code_2(tiny: Path, monkeypatch, arguments, text: str) -> None:
    monkeypatch.chdir(tiny.parent)
    found = klopt("judge", *arguments)
    assert found.exit_code == 2
    assert text in " ".join(found.stderr.split())


# Problems of CVXPY in a Python file

CVXPY_SCRIPT = """
import cvxpy as cp

x = cp.Variable(2, name="x")
problem = cp.Problem(cp.Maximize(3 + x[0] + 2 * x[1]), [cp.norm(x) <= 1])
integer = cp.Problem(cp.Minimize(cp.Variable(integer=True, name="k")))
several = [problem, cp.Problem(cp.Minimize(cp.norm(x - 2)), [x <= 1])]
number = 3


def solved():
    problem.solve(solver="CLARABEL")
    return problem


def infeasible():
    found = cp.Problem(cp.Minimize(x[0]), [x >= 1, x <= 0])
    found.solve(solver="CLARABEL")
    return found
"""


@pytest.fixture
def cvxpy_script(tmp_path: Path) -> Path:
    script = tmp_path / "cvxpy_models.py"
    script.write_text(CVXPY_SCRIPT, encoding="utf-8")
    return script


def test_a_problem_of_cvxpy_is_solved_planned_judged_and_compared(cvxpy_script: Path) -> None:
    best = 3 + 5**0.5
    for command, name in (("solve", "problem"), ("solve", "solved"), ("judge", "solved")):
        done = klopt(command, f"{cvxpy_script}:{name}", "--json")
        assert done.exit_code == 0, done.output
        found = json.loads(done.stdout)
        assert found["verdict"] == "OPTIMAL"
        assert found["lower"] <= best <= found["upper"]
    assert "clarabel" in klopt("plan", f"{cvxpy_script}:problem").output
    refuted = json.loads(klopt("judge", f"{cvxpy_script}:infeasible", "--json").stdout)
    assert refuted["verdict"] == "INFEASIBLE"


def test_problems_of_cvxpy_are_compared(
    cvxpy_script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the store goes to the folder that the command is called in
    store = cvxpy_script.with_name("page.html")
    target = f"{cvxpy_script}:several"
    options = ("--backend", "clarabel", "--repeat", "1", "--time", "20s", "-o", store)
    found = klopt("compare", target, *options)
    assert found.exit_code == 0, found.output
    assert "several 1" in found.output
    assert "several 2" in found.output


@pytest.mark.parametrize(
    ("command", "name", "text"),
    [
        ("solve", "integer", "has integer variables (k)"),
        ("solve", "several", "has 2 problems"),
        ("solve", "number", "is no klopt problem and none of CVXPY"),
        ("compare", "number", "is no klopt problem and none of CVXPY"),
        ("solve", "problm", "did you mean 'problem'"),
        ("judge", "problem", "has the status None"),
    ],
)
def test_what_a_python_file_lacks_is_said(cvxpy_script: Path, command, name, text: str) -> None:
    found = klopt(command, f"{cvxpy_script}:{name}")
    assert found.exit_code == 2
    assert text in " ".join(found.stderr.split())


# klopt solve --data


@pytest.fixture
def points(tmp_path: Path) -> Path:
    """Two classes of points as CSV with names and as .npz; three classes as text."""
    rng = np.random.default_rng(0)
    y = np.arange(24) % 2
    X = rng.normal(size=(24, 2)) + y[:, None]
    np.savez(tmp_path / "train.npz", X=X, y=y)
    rows = [f"{a!r},{b!r},{label}" for (a, b), label in zip(X.tolist(), y, strict=True)]
    (tmp_path / "train.csv").write_text("\n".join(["first,second,class", *rows, ""]))
    names = ["iris", "rose", "lily"]
    many = [f"{a!r},{b!r},{names[i % 3]}" for i, (a, b) in enumerate(X.tolist())]
    (tmp_path / "many.csv").write_text("\n".join(many))
    return tmp_path


@pytest.mark.parametrize("file", ["train.csv", "train.npz"])
def test_own_data_state_the_problem_that_scikit_learn_solves(points: Path, file: str) -> None:
    found = klopt(
        "solve", "SoftMargin", "--data", points / file, "--C", "2", "--kernel", "rbf:0.5", "--json"
    )
    assert found.exit_code == 0, found.output
    document = json.loads(found.stdout)
    data = np.load(points / "train.npz")
    svc = SVC(C=2.0, gamma=0.5, tol=1e-10).fit(data["X"], data["y"])
    z = np.zeros(24)
    z[svc.support_] = svc.dual_coef_[0]
    K = pairwise_kernels(data["X"], metric="rbf", gamma=0.5)
    value = np.abs(z).sum() - z @ K @ z / 2
    assert document["value"] == pytest.approx(value, rel=1e-6)


OPTIONS = {
    "AdaptiveKernel": ["--C", "1"],
    "AdaptiveKernelRegression": ["--C", "1", "--epsilon", "0.1"],
    "EpsilonMargin": ["--C=1", "--epsilon=0.1"],
    "LogDetPairs": ["--upper", "1.0", "--lower", "0.1", "--slack", "1.0"],
    "MultipleKernel": ["--C", "1", "--kernel", "rbf", "--kernel", "linear"],
    "NuMargin": ["--nu", "0.3"],
    "OrderedAlignment": [],
    "ScgLogDet": ["--gamma", "1"],
    "ScgOrdered": [],
    "SimilarityKernel": ["--C", "1", "--rho", "0.1", "--trace", "None"],
    "SimilarityKernels": ["--C", "1", "--rho", "1", "--trace", "24"],
    "SimilaritySpectra": ["--C", "1", "--rho", "1", "--trace", "24"],
    "SoftMargin": ["--C", "inf", "--kernel", "rbf:9"],
    "SpectralAlignment": [],
    "SpectralRls": ["--C", "1", "--mu", "0.1"],
}
GENERAL = {"LP", "QCQP", "SDP", "SaddlePoint", "SimplexProgram", "ConeProgram"}
"""Problems that are about no points."""


def test_every_kernel_problem_has_its_options_here() -> None:
    assert OPTIONS.keys() == {cls.__name__ for cls in problems()} - GENERAL


@pytest.mark.parametrize("name", OPTIONS)
def test_every_kernel_problem_can_be_stated_by_own_data(points: Path, name: str) -> None:
    found = klopt("solve", name, "--data", points / "train.csv", *OPTIONS[name], "--json")
    assert found.exit_code in (0, 1), found.output
    assert json.loads(found.stdout)["problem"]["class"] == name


def test_arrays_of_a_file_are_taken_by_their_names(points: Path) -> None:
    K = np.array([[2.0, 1.0], [1.0, 2.0]])
    np.savez(points / "kernel.npz", K=K, y=np.array([-1, 1]))
    found = klopt("solve", "SoftMargin", "--data", points / "kernel.npz", "--C", "10", "--json")
    assert json.loads(found.stdout)["value"] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["SoftMargin", "--data", "train.csv"], "SoftMargin needs C; give --C VALUE"),
        (["SoftMargin", "--data", "train.csv", "--C"], "--C has no value"),
        (["SoftMargin", "--data", "train.csv", "--D", "1"], "SoftMargin has no --D; it has --C"),
        (["SoftMargin", "--data", "many.csv", "--C", "1"], "3 classes (iris, lily, rose)"),
        (["SoftMargin", "--data", "many.csv", "--C", "1", "--positive", "oak"], "has iris"),
        (
            ["SoftMargin", "--data", "train.csv", "--C", "1", "--kernel", "rfb"],
            "did you mean 'rbf'",
        ),
        (["SoftMargin", "--data", "train.csv", "--C", "1", "--kernel", "rbf:x"], "not a number"),
        (["SoftMargin", "--data", "train.csv", "--C", "-1"], "C is -1"),
        (["SoftMargin", "--data", "absent.csv", "--C", "1"], "no file"),
        (["SoftMargin", "--data", "train.csv", "--size", "5"], "--size is for random instances"),
        (
            ["EpsilonMargin", "--data", "many.csv", "--C", "1", "--epsilon", "0"],
            "no list of numbers",
        ),
        (["LP", "--data", "train.csv"], "is no problem about points"),
        (["SoftMargin", "--kernel", "rbf"], "go with --data"),
        (["SoftMargin", "--tlo", "1"], "--tol"),
        (["SoftMargin", "--C", "1"], "No such option"),
        (["SoftMargin", "extra"], "unexpected extra argument"),
        (["SoftMargin", "--data", "broken.csv", "--C", "1"], "line 2: 'b' in column 1"),
        (["SoftMargin", "--data", "short.csv", "--C", "1"], "line 2: expected 3 cells, found 2"),
    ],
)
def test_bad_data_and_options_are_refused(points: Path, monkeypatch, arguments, text: str) -> None:
    monkeypatch.chdir(points)
    Path("broken.csv").write_text("1,2,0\nb,3,1\n")
    Path("short.csv").write_text("1,2,0\n1,3\n")
    found = klopt("solve", *arguments)
    assert found.exit_code == 2
    assert text in " ".join(found.stderr.split())


def test_a_missing_label_is_no_label(points: Path) -> None:
    rows = (points / "many.csv").read_text().splitlines()
    rows[0] = rows[0].rsplit(",", 1)[0] + ",?"
    (points / "some.csv").write_text("\n".join(rows))
    found = klopt("solve", "ScgOrdered", "--data", points / "some.csv")
    assert found.exit_code == 0, found.output


def test_what_solve_writes_can_be_judged(tiny: Path) -> None:
    written = tiny.with_name("point.json")
    written.write_text(klopt("solve", tiny, "--json").stdout)
    assert klopt("judge", tiny, written).exit_code == 0
    assert package.judge(tiny, written).verdict.name == "OPTIMAL"
