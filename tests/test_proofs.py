"""Proofs of claims: both independent checkers accept them, and no statement with other constants."""

from __future__ import annotations

import base64
import copy
import json
import math
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, strategies as st

from klopt.checker import klopt_check
from klopt.cli.main import main
from klopt.papers.theorems.catalogue import claims, select
from klopt.papers.theorems.claim import Case, Claim, Outcome, theorem
from klopt.papers.theorems.evidence import Evidence, at_most
from klopt.papers.theorems.proofs import worst_case
from klopt.papers.theorems.proofs.expression import as_expression, grid, symbols, total
from klopt.papers.theorems.proofs.proof import (
    NotProven,
    Proof,
    Square,
    Step,
    at_least,
    identity,
    tabulated,
)
from klopt.papers.theorems.verification import verify_claims

CHECKER = Path(klopt_check.__file__)
PROVEN = [claim for claim in claims() if claim.proof is not None]
PROOFS = {claim.proof: claim.proof() for claim in PROVEN if claim.proof is not None}
STEPS = {step.certificate: step for proof in PROOFS.values() for step in proof.steps}
BY_PROOF = [pytest.param(proof, id=made.__name__) for made, proof in PROOFS.items()]
NONSENSE = ("0x2a", "-0x2a", "0xf4240")


def test_enough_claims_of_the_papers_are_proven() -> None:
    own = [claim for claim in PROVEN if claim.expected is Outcome.PROVEN]
    papers = [claim for claim in own if not (claim.is_remark or claim.is_of_a_method)]
    assert len(papers) >= 40
    # Without those that are arithmetic of printed tables.
    assert sum("printed" not in PROOFS[claim.proof].scope for claim in papers) >= 25
    assert all(claim.expected in (Outcome.PROVEN, Outcome.PROVEN_CORRECTED) for claim in PROVEN)


def test_both_checkers_accept_every_step(tmp_path: Path) -> None:
    for number, text in enumerate(STEPS):
        (tmp_path / f"{number}.json").write_text(text)
    files = sorted(map(str, tmp_path.glob("*.json")))
    commands = [[sys.executable, "-I", "-S", str(CHECKER)]]
    if shutil.which("node"):
        commands.append(["node", str(CHECKER.with_suffix(".js"))])
    for command in commands:
        found = subprocess.run([*command, *files], capture_output=True, text=True, check=False)
        assert found.returncode == 0, found.stdout
        assert found.stdout.count("proven: ") == len(STEPS)


# Statements with other constants are not proven


def numbers_in(part: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where an expression has constants, but for the sign of a square."""
    if isinstance(part, str) and klopt_check.NUMBER.fullmatch(part):
        yield path
    elif isinstance(part, list):
        signed = part[:2] == ["*", "-0x1"] and isinstance(part[2], list)
        # -(left - right)^2 is the same statement with any other factor.
        skipped = 1 if signed and part[2][0] == "^" else -1
        for k, each in enumerate(part):
            if k != skipped:
                yield from numbers_in(each, (*path, k))


def replaced(part: Any, path: tuple[Any, ...], value: str) -> Any:
    if not path:
        return value
    other = list(part)
    other[path[0]] = replaced(part[path[0]], path[1:], value)
    return other


def accepts(data: dict[str, Any]) -> bool:
    data["digest"] = klopt_check.digest(data["problem"])
    try:
        klopt_check.check(json.dumps(data))
    except klopt_check.Rejected:
        return False
    return True


def mutants(data: dict[str, Any], value: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The certificate with each constant of its statement replaced by a value in turn."""
    for key in ("objective", "nonnegative", "zero"):
        for path in numbers_in(data["problem"].get(key, [])):
            other = copy.deepcopy(data)
            other["problem"][key] = replaced(data["problem"][key], path, value)
            if other["problem"][key] != data["problem"][key]:
                yield f"{key} {path}", other


def table_mutants(data: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """The certificate with each number of an inequality replaced, by several values."""
    problem = data["problem"]
    sizes = dict(map(tuple, problem["cones"]))
    rows = np.frombuffer(base64.b64decode(problem["A"]["row"]), dtype="<i4")
    A = klopt_check.Vector.read("A", problem["A"]["value"], len(rows))
    b = klopt_check.Vector.read("b", problem["b"], sum(sizes.values()))
    for values, place in [
        *(("A", k) for k, row in enumerate(rows) if row >= sizes["zero"]),
        *(("b", k) for k in range(sizes["zero"], len(b.of)) if b.of[k]),
    ]:
        vector = A if values == "A" else b
        found = []
        for value in (42, -42, 10**12, -(10**12)):
            of = list(vector.of)
            of[place] = value * vector.over
            changed = {"over": hex(vector.over), "of": [hex(part) for part in of]}
            other = copy.deepcopy(data)
            if values == "A":
                other["problem"]["A"]["value"] = changed
            else:
                other["problem"]["b"] = changed
            found.append(other)
        yield found


def few(mutants: Iterator[Any]) -> list[Any]:
    """Of many mutants twelve or so, spread over all."""
    found = list(mutants)
    return found[:: 1 + len(found) // 12]


@pytest.mark.parametrize("proof", BY_PROOF)
def test_a_statement_with_other_constants_is_not_proven(proof: Proof) -> None:
    tried = 0
    for step in proof.steps:
        data = json.loads(step.certificate)
        if data["problem"]["rule"] == "polynomial program":
            for value in NONSENSE:
                for where, other in few(mutants(data, value)):
                    tried += 1
                    assert not accepts(other), (step.says, where, value)
        else:
            for several in few(table_mutants(data)):
                tried += 1
                # An inequality may hold with a constant of one sign, not with all.
                assert not all(accepts(other) for other in several), step.says
    # An identity without constants has others in its place: see the next test.
    assert tried or all("=" in step.says for step in proof.steps)


@pytest.mark.parametrize("proof", BY_PROOF)
def test_a_statement_with_another_term_is_not_proven(proof: Proof) -> None:
    for step in proof.steps:
        data = json.loads(step.certificate)
        if data["problem"]["rule"] != "polynomial program":
            continue
        for k in range(len(data["problem"]["variables"])):
            other = copy.deepcopy(data)
            # x_k^2 is subtracted from what is said to be at least a number.
            term = ["*", "-0x1", ["^", k, 2]]
            other["problem"]["objective"] = ["+", data["problem"]["objective"], term]
            assert not accepts(other)


def test_a_rate_one_per_cent_smaller_is_not_proven() -> None:
    x, g, f = worst_case._run(2, proximal=False)
    known = [
        value
        for (i, j), value in worst_case._interpolated(x, g, f, smooth=True).items()
        if j >= 0 and (i < 0 or i == j - 1)
    ]
    given_ = [1 - x[0] ** 2, *known]
    vectors = "x0 g0 g1 g2"
    assert worst_case.worst_case_step("two steps", f[2], Fraction(1, 10), given_, vectors)
    with pytest.raises(NotProven, match="two steps"):
        worst_case.worst_case_step("two steps", f[2], Fraction(99, 1000), given_, vectors)


def test_the_sharp_rates_are_those_of_another_library() -> None:
    pepit = pytest.importorskip("PEPit")
    from PEPit.functions import ConvexFunction, SmoothConvexFunction
    from PEPit.primitive_steps import proximal_step

    import klopt

    def method(smooth: bool) -> Any:
        pep = pepit.PEP()
        made = (SmoothConvexFunction, {"L": 1.0}) if smooth else (ConvexFunction, {})
        f = pep.declare_function(made[0], **made[1])
        best = f.stationary_point()
        x = start = pep.set_initial_point()
        pep.set_initial_condition((start - best) ** 2 <= 1)
        for _ in range(2):
            x = x - f.gradient(x) if smooth else proximal_step(x, f, 1.0)[0]
        pep.set_performance_metric(f(x) - f(best))
        return pep

    for smooth, rate in ((True, 1 / 10), (False, 1 / 8)):
        found = klopt.worst_case(lambda smooth=smooth: method(smooth))
        assert found.lower <= rate <= found.upper
        assert found.relative_width <= 1e-6


# Lemma V: what is proven for numbers holds for vectors


def gram_value(polynomial: Any, names: list[str], at: dict[str, Any]) -> float:
    """The value of a polynomial in which products of two vectors are inner products."""
    value = 0.0
    for key, factor in polynomial.items():
        used = [name for name, power in zip(names, key, strict=True) for _ in range(power)]
        vectors = [at[name] for name in used if isinstance(at[name], np.ndarray)]
        scalars = math.prod(at[name] for name in used if not isinstance(at[name], np.ndarray))
        assert len(vectors) in (0, 2)
        value += float(factor) * scalars * (float(vectors[0] @ vectors[1]) if vectors else 1.0)
    return value


WITH_VECTORS = [step for text, step in STEPS.items() if json.loads(text)["problem"].get("vectors")]


@pytest.mark.parametrize("step", WITH_VECTORS, ids=lambda step: step.says)
def test_steps_hold_for_vectors_in_space(step: Step) -> None:
    data = json.loads(step.certificate)
    problem, witness = data["problem"], data["witness"]
    program = klopt_check.PolynomialProgram(problem)
    names = problem["variables"]
    rng = np.random.default_rng(0)
    at: dict[str, Any] = {
        name: rng.normal(size=3) if name in problem["vectors"] else rng.uniform(1, 3)
        for name in names
    }
    total_ = 0.0
    for square in witness["squares"]:
        weight = float(klopt_check.number(square["weight"]))
        root = program.expanded(square["of"])
        term = weight * gram_value(klopt_check.poly_times(root, root), names, at)
        for k in square["times"]:
            term *= gram_value(program.nonnegative[k], names, at)
        total_ += term
    for multiple in witness["zeros"]:
        factor = gram_value(program.expanded(multiple["of"]), names, at)
        total_ += factor * gram_value(program.zero[multiple["times"]], names, at)
    assert gram_value(program.objective, names, at) == pytest.approx(total_, rel=1e-9, abs=1e-9)


def test_vectors_occur_in_products_of_two_only() -> None:
    x, y = symbols("x y")
    with pytest.raises(NotProven, match="read as vectors"):
        # True for numbers; |x|^2 |y|^2 >= <x, y>^2 is another statement.
        at_least("(xy)^2 >= 0", (x * y) ** 2, by=[Square(1, x * y)], vectors="x y")
    with pytest.raises(NotProven, match="read as vectors"):
        at_least("x >= 0 where x >= 0", x, given=(x,), by=[Square(1, 1, (x,))], vectors="x")


# The rule itself: forgeries


def good() -> dict[str, Any]:
    """x y <= 1 on the unit square's disc: with given, squares and an equation."""
    x, y, z = symbols("x y z")
    given_ = (1 - x**2, 1 - y**2)
    equation = z - x
    step = at_least(
        "1 - z y >= 0",
        1 - z * y,
        given=given_,
        zero=(equation,),
        by=[
            Square(Fraction(1, 2), 1, given_[:1]),
            Square(Fraction(1, 2), 1, given_[1:]),
            Square(Fraction(1, 2), x - y),
        ],
        using=[(-y, equation)],
    )
    data: dict[str, Any] = json.loads(step.certificate)
    return data


def nested(depth: int) -> Any:
    part: Any = 0
    for _ in range(depth):
        part = ["+", part, "0x0"]
    return part


def bomb() -> Any:
    part: Any = ["+", 0, "0x1"]
    for _ in range(6):
        part = ["^", part, 32]
    return part


FORGERIES: dict[str, Any] = {
    "a bound that is larger by 2^-1000": lambda d: d["claim"].update(lower="0x1p-1000"),
    "an upper end that is smaller": lambda d: d["claim"].update(upper="0xf.ffp-4"),
    "a negative weight": lambda d: d["witness"]["squares"][2].update(weight="-0x1/0x2"),
    "another weight": lambda d: d["witness"]["squares"][0].update(weight="0x1"),
    "a weight that is no number": lambda d: d["witness"]["squares"][0].update(weight=1),
    "a missing square": lambda d: d["witness"]["squares"].pop(),
    "a missing equation": lambda d: d["witness"]["zeros"].pop(),
    "a constraint that is not there": lambda d: d["witness"]["squares"][0].update(times=[2]),
    "a constraint counted from the end": lambda d: d["witness"]["squares"][0].update(times=[-1]),
    "a constraint that is true": lambda d: d["witness"]["squares"][0].update(times=[True]),
    "an equation that is not there": lambda d: d["witness"]["zeros"][0].update(times=1),
    "an equation as a list": lambda d: d["witness"]["zeros"][0].update(times=[0]),
    "no point": lambda d: d["witness"].pop("x"),
    "a point that violates a constraint": lambda d: d["witness"].update(
        x={"of": ["0x2", "0x0", "0x2"]}
    ),
    "a point that violates the equation": lambda d: d["witness"].update(
        x={"of": ["0x1", "0x0", "0x0"]}
    ),
    "a point of another size": lambda d: d["witness"].update(x={"of": ["0x0", "0x0"]}),
    "another constraint": lambda d: d["problem"]["nonnegative"].__setitem__(0, "0x1"),
    "a constraint that is no expression": lambda d: d["problem"]["nonnegative"].append(None),
    "a variable that is not there": lambda d: d["problem"].update(objective=["+", 3, "0x1"]),
    "a negative variable": lambda d: d["problem"].update(objective=["+", -1, "0x1"]),
    "a variable that is true": lambda d: d["problem"].update(objective=["+", True, "0x1"]),
    "another operator": lambda d: d["problem"].update(objective=["-", "0x1", 0]),
    "no operator": lambda d: d["problem"].update(objective=[]),
    "an operator alone": lambda d: d["problem"].update(objective=["+"]),
    "a power without an exponent": lambda d: d["problem"].update(objective=["^", 0]),
    "a power of an expression": lambda d: d["problem"].update(objective=["^", 0, ["+", 0]]),
    "a negative exponent": lambda d: d["problem"].update(objective=["^", 0, -2]),
    "an exponent 0": lambda d: d["problem"].update(objective=["^", 0, 0]),
    "a huge exponent": lambda d: d["problem"].update(objective=["^", 0, 10**9]),
    "powers of powers": lambda d: d["problem"].update(objective=bomb()),
    "an expression without end": lambda d: d["problem"].update(objective=nested(100)),
    "variables that have no names": lambda d: d["problem"].update(variables=[1, 2, 3]),
    "a number of variables": lambda d: d["problem"].update(variables=3),
    "fewer variables": lambda d: d["problem"].update(variables=["x", "y"]),
    "squares that are no list": lambda d: d["witness"].update(squares={}),
    "a square that is no object": lambda d: d["witness"].update(squares=[[]]),
    "null for squares": lambda d: d["witness"].update(squares=None),
    "the verdict UNBOUNDED": lambda d: d["claim"].update(verdict="UNBOUNDED"),
    "the verdict INFEASIBLE": lambda d: d["claim"].update(verdict="INFEASIBLE"),
    "OPTIMAL, with a gap": lambda d: d["claim"].update(verdict="OPTIMAL", tol="0x1/0x4"),
    "a scale of 0": lambda d: d["problem"].update(scale="0x0"),
    "the other sense": lambda d: d["problem"].update(scale="-0x1"),
    "nothing claimed": lambda d: d.update(claim={"verdict": "FEASIBLE"}),
}


def forged(change: Any) -> str:
    data = good()
    change(data)
    data["digest"] = klopt_check.digest(data["problem"])
    return json.dumps(data)


@pytest.mark.parametrize("name", FORGERIES)
def test_forgeries_are_rejected(name: str) -> None:
    assert accepts(good())
    with pytest.raises(klopt_check.Rejected):
        klopt_check.check(forged(FORGERIES[name]))


def altered(rng: random.Random) -> dict[str, Any]:
    """The certificate with one number or list of the problem or the witness changed at random."""
    data = good()
    spot: Any = data[rng.choice(["problem", "witness", "claim"])]
    while True:
        keys = list(spot) if isinstance(spot, dict) else list(range(len(spot)))
        if not keys:
            return data
        key = rng.choice(keys)
        if isinstance(spot[key], dict | list) and rng.random() < 0.8:
            spot = spot[key]
            continue
        spot[key] = rng.choice(["0x1", "0x2", "-0x1", "0x1/0x2", 0, 1, 2, [], {}, None, "+", "^"])
        return data


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
def test_both_checkers_decide_alike(tmp_path: Path) -> None:
    rng = random.Random(0)
    texts = [forged(change) for change in FORGERIES.values()]
    for _ in range(200):
        data = altered(rng)
        data["digest"] = klopt_check.digest(data["problem"])
        texts.append(json.dumps(data))
    files = []
    for number, text in enumerate(texts):
        files.append(tmp_path / f"{number:04}.json")
        files[-1].write_text(text)
    command = ["node", str(CHECKER.with_suffix(".js")), *map(str, files)]
    lines = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
    assert len(lines) == len(texts)
    for text, line in zip(texts, lines, strict=True):
        assert ("proven: " in line) == accepts_text(text), (line, text)
        assert "cannot be checked" not in line


def accepts_text(text: str) -> bool:
    try:
        klopt_check.check(text)
    except klopt_check.Rejected:
        return False
    return True


@given(st.data())
def test_no_accepted_bound_is_above_a_value(data: st.DataObject) -> None:
    """Whatever the squares, a bound that is accepted holds at every point."""
    small = st.integers(-3, 3)
    x, y = symbols("x y")

    def linear() -> Any:
        a, b, c = (data.draw(small) for _ in range(3))
        return a * x + b * y + c

    given_ = (linear(),)
    squares = [
        Square(data.draw(st.integers(0, 3)), linear(), given_ if data.draw(st.booleans()) else ())
        for _ in range(data.draw(st.integers(0, 3)))
    ]
    objective = total(
        square.weight * as_expression(square.of) ** 2 * (given_[0] if square.times else 1)
        for square in squares
    ) + data.draw(small)
    bound = data.draw(st.integers(-4, 4))
    at = {"x": Fraction(data.draw(small)), "y": Fraction(data.draw(small))}
    if given_[0].value(at) < 0:
        return
    try:
        at_least("random", objective + 0 * x + 0 * y, bound, given=given_, by=squares, at=at)
    except NotProven:
        assert bound > objective.value({}) or bound > -100
        return
    for _ in range(5):
        point = {"x": Fraction(data.draw(small)), "y": Fraction(data.draw(small))}
        if given_[0].value(point) >= 0:
            assert objective.value(point) >= bound


def test_expressions_are_written_as_they_are() -> None:
    x, y = symbols("x y")
    made = (2 * x - y / 3) ** 3 * (1 - x) + x * y - 4
    program = klopt_check.PolynomialProgram(
        {"variables": ["x", "y"], "objective": made.written({"x": 0, "y": 1})}
    )
    for a, b in ((0, 0), (1, 2), (-3, 5)):
        point = klopt_check.Vector([a, b])
        found = program.value(program.objective, point)
        assert found == made.value({"x": Fraction(a), "y": Fraction(b)})
        assert found == (2 * a - Fraction(b, 3)) ** 3 * (1 - a) + a * b - 4


def test_a_false_identity_is_not_proven() -> None:
    A = grid("a", 2, 2)
    B = grid("b", 2, 2)
    assert identity("tr AB = tr BA", (A @ B).trace(), (B @ A).trace())
    with pytest.raises(NotProven, match="AB = BA"):
        identity("AB = BA", A @ B, B @ A)


def test_a_table_that_says_otherwise_is_not_proven() -> None:
    entries = {"a": "70.2", "b": "70.1"}
    assert tabulated("a > b", entries, [{"a": 1, "b": -1, "": -Fraction(1, 10)}])
    with pytest.raises(NotProven, match="b > a"):
        tabulated("b > a", entries, [{"a": -1, "b": 1}])


# Verdicts


def numbers(rng: np.random.Generator, n: int) -> Case:
    return {"a": float(rng.normal())}


def square_is_positive() -> Proof:
    (a,) = symbols("a")
    return Proof("all numbers", "", (at_least("a^2 >= 0", a**2, by=[Square(1, a)]),))


def broken() -> Proof:
    (a,) = symbols("a")
    return Proof("all numbers", "", (at_least("a >= 0", a),))


def claim_of(measure: Any, proof: Any) -> Claim:
    return theorem("mine-1", says="a^2 >= 0", draw=numbers, proof=proof)(measure)


def holds(case: Case) -> Evidence:
    return at_most(0.0, case["a"] ** 2)


def fails(case: Case) -> Evidence:
    return at_most(case["a"] ** 2 + 1, case["a"] ** 2)


def test_verdicts_of_proofs() -> None:
    (found,) = verify_claims([claim_of(holds, square_is_positive)], trials=3).findings
    assert (found.outcome, found.expected, found.measured) == (Outcome.PROVEN, True, 3)
    assert found.proof is not None

    # A proof that is none costs the verdict, and says why.
    (found,) = verify_claims([claim_of(holds, broken)], trials=3).findings
    assert (found.outcome, found.expected, found.proof) == (Outcome.HOLDS, False, None)
    assert "no proof: NotProven: a >= 0" in found.trouble

    # Where a trial fails a proof must be of something else.
    (found,) = verify_claims([claim_of(fails, square_is_positive)], trials=3).findings
    assert (found.outcome, found.expected, found.proof) == (Outcome.REFUTED, False, None)


def test_the_command_writes_proofs(tmp_path: Path) -> None:
    run = CliRunner().invoke
    target = tmp_path / "proof.json"
    done = run(main, ["verify", "liu2020-lemma3", "--trials", "1", "--export", str(target)])
    assert done.exit_code == 0, done.output
    files = sorted(tmp_path.glob("proof-*.json"))
    assert len(files) == 5
    assert run(main, ["check", *map(str, files)]).exit_code == 0
    done = run(main, ["verify", "mao2010-sdp", "--trials", "1", "--export", str(target)])
    assert done.exit_code == 2
    assert "name one that is PROVEN" in done.output


def test_claims_of_methods_are_counted_apart() -> None:
    found = verify_claims(select((), "rates"), trials=1)
    assert not found.claims
    assert "9 rates: 9 PROVEN" in repr(found)
