"""Certificates in files: what klopt writes is accepted by a checker that shares no code, forgeries are not.

A forgery is a certificate of something false. Its truth comes from exact rationals or closed forms,
so that whatever is in the witness, the checker must reject it.
"""

from __future__ import annotations

import copy
import json
import math
import pickle
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, strategies as st

import klopt
from klopt.certificates.encoding import encode_number, encode_vector
from klopt.checker import klopt_check
from klopt.cli.main import main
from klopt.proof.rational_psd import rational_psd

P = klopt.problems
CHECKER = Path(klopt_check.__file__)
CLASSES = (P.LP, P.QCQP, P.SDP, P.ConeProgram, P.SoftMargin, P.EpsilonMargin)


def certified(problem: klopt.Problem, tmp_path: Path) -> tuple[klopt.Result, dict[str, Any]]:
    result = klopt.solve(problem).require()
    file = tmp_path / "proof.json"
    result.certificate.save(file)
    return result, json.loads(file.read_text())


def text_of(data: dict[str, Any]) -> str:
    """A certificate with the digest of its own problem: forgers can compute it, too."""
    data["digest"] = klopt_check.digest(data["problem"])
    return json.dumps(data)


def interval(data: dict[str, Any]) -> tuple[Fraction, Fraction]:
    claim = data["claim"]
    return klopt_check.number(claim["lower"]), klopt_check.number(claim["upper"])


# What klopt writes is accepted


@pytest.mark.parametrize("size", [2, 5, 14])
@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_what_klopt_writes_is_accepted_and_agrees(
    kind: type[klopt.Problem], size: int, tmp_path: Path
) -> None:
    result, data = certified(kind.sample(np.random.default_rng(size), size), tmp_path)
    lower, upper = interval(data)
    assert klopt_check.check(json.dumps(data)).startswith("OPTIMAL")
    # Two proofs about one optimum: the intervals share a point.
    assert lower <= result.upper
    assert result.lower <= upper


def test_the_checker_runs_without_klopt_and_without_numpy(tmp_path: Path) -> None:
    certified(P.SoftMargin.sample(np.random.default_rng(0), 30), tmp_path)
    # -I -S: neither the environment nor site-packages are seen.
    command = [sys.executable, "-I", "-S", str(CHECKER), str(tmp_path / "proof.json")]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "proven: OPTIMAL" in found.stdout
    imported = {
        line.split()[1].partition(".")[0]
        for line in CHECKER.read_text().splitlines()
        if line.startswith(("import ", "from "))
    }
    assert imported <= sys.stdlib_module_names


def test_the_optimum_of_a_linear_program_is_exact(tmp_path: Path) -> None:
    _, data = certified(P.LP([1, 1], A_ub=[[-3, -1], [-1, -3]], b_ub=[-1, -1]), tmp_path)
    assert interval(data) == (Fraction(1, 2), Fraction(1, 2))


def test_a_contradiction_and_a_ray_travel(tmp_path: Path) -> None:
    for problem, word in (
        (P.LP([1, 1], A_ub=[[0, 0], [-1, -1]], b_ub=[-1e-7, -1e8]), "INFEASIBLE"),
        (P.LP([-1, 0], A_ub=[[1, -1]], b_ub=[3]), "UNBOUNDED"),
        (P.SDP([1.0], [np.diag([0.0, 1.0]), np.diag([1.0, 0.0])], [[1.0]], [5.0]), "INFEASIBLE"),
    ):
        result = klopt.solve(problem)
        assert result.verdict.name == word
        result.certificate.save(tmp_path / "proof.json")
        assert klopt.check(tmp_path / "proof.json").startswith(word)


def test_an_answer_that_is_not_proven_has_no_certificate(tmp_path: Path) -> None:
    result = klopt.solve(P.LP.sample(np.random.default_rng(0), 30), "scs", max_iter=1)
    assert not result.verdict.conclusive
    with pytest.raises(klopt.NotCertified, match="conclusive"):
        result.certificate.save(tmp_path / "proof.json")
    assert not list(tmp_path.iterdir())


def test_decimals_are_written_as_decimals(tmp_path: Path) -> None:
    """0.1 x with 3 x >= 0.3 has the optimum 1/100, which is not that of the nearest float64 numbers."""
    model = tmp_path / "model.mps"
    for problem, word in (
        (P.LP([0.1, 1], A_ub=[[-3, -30]], b_ub=[-0.3]), "OPTIMAL"),
        (P.LP([0.1, 1], A_ub=[[-1, -3], [1, 3]], b_ub=[-0.3, 0.1]), "INFEASIBLE"),
        (P.LP([-0.1, 0], A_ub=[[1, -1]], b_ub=[0.3]), "UNBOUNDED"),
    ):
        problem.to_file(model)
        result = klopt.solve(P.LP.from_file(model, exact=True))
        assert result.verdict.name == word
        result.certificate.save(tmp_path / f"{word}.json")
        assert klopt.check(tmp_path / f"{word}.json").startswith(word)
    data = json.loads((tmp_path / "OPTIMAL.json").read_text())
    exact = {end: encode_number(Fraction(1, 100)) for end in ("lower", "upper")}
    assert klopt_check.check(text_of(data | {"claim": data["claim"] | exact}))
    higher = exact | {"lower": encode_number(Fraction(1, 100) + Fraction(1, 2**300))}
    with pytest.raises(klopt_check.Rejected):
        klopt_check.check(text_of(data | {"claim": data["claim"] | higher}))


def test_a_contradiction_of_quadratic_constraints_beside_a_curved_objective(tmp_path: Path) -> None:
    """||x||^2 <= 1 and x1 + x2 >= 3; the objective's P is no part of the proof."""
    ball = (2 * np.eye(2), [0.0, 0.0], 1.0)
    problem = P.QCQP(np.diag([1.0, 4.0]), [1.0, 0.0], [ball], [[-1.0, -1.0]], [-3.0])
    result = klopt.solve(problem)
    assert result.verdict.name == "INFEASIBLE"
    result.certificate.save(tmp_path / "proof.json")
    assert klopt.check(tmp_path / "proof.json").startswith("INFEASIBLE")


def test_a_result_that_was_pickled_still_has_its_certificate(tmp_path: Path) -> None:
    result = pickle.loads(pickle.dumps(klopt.solve(P.LP([1], bounds=(2, None)))))
    result.certificate.save(tmp_path / "proof.json")
    assert klopt.check(tmp_path / "proof.json") == "OPTIMAL: 2 <= optimum <= 2"


def test_the_command_writes_and_checks(tmp_path: Path) -> None:
    model = tmp_path / "model.mps"
    P.LP([1, 1], A_ub=[[-1, -2]], b_ub=[-2]).to_file(model)
    proof = str(tmp_path / "proof.json")
    run = CliRunner().invoke
    assert run(main, ["solve", str(model), "--certificate", proof]).exit_code == 0
    assert run(main, ["check", proof]).exit_code == 0
    forged = json.loads(Path(proof).read_text())
    forged["claim"]["lower"] = encode_number(1.5)
    forged["claim"]["upper"] = encode_number(1.5)
    Path(proof).write_text(json.dumps(forged))
    found = run(main, ["check", proof, "--json"])
    assert found.exit_code == 1
    assert not json.loads(found.stdout)["certificates"][0]["proven"]
    assert run(main, ["check", str(tmp_path / "nothing.json")]).exit_code == 2


# Forgeries: the claim is false, so no witness may pass


def known_optima() -> Iterator[tuple[str, klopt.Problem, Fraction]]:
    """Problems of all kinds of rows whose optimum is known in closed form."""
    yield "linear", P.LP([1, 1], A_ub=[[-3, -1], [-1, -3]], b_ub=[-1, -1]), Fraction(1, 2)
    # x1 + x2 over ||x||^2 <= 2: -2 at (-1, -1).
    ball = P.QCQP(None, [1.0, 1.0], quadratics=[(np.eye(2) * 2.0, [0.0, 0.0], 2.0)])
    yield "quadratic constraint", ball, Fraction(-2)
    # The largest eigenvalue of [[2, 1], [1, 2]] is 3.
    eigenvalue = P.SDP([1.0], [[[2.0, 1.0], [1.0, 2.0]], np.eye(2)])
    yield "semidefinite", eigenvalue, Fraction(3)
    standard = P.SDP.standard([[-2.0, -1.0], [-1.0, -2.0]], [np.eye(2)], [1.0])
    yield "over X", standard, Fraction(-3)
    # The largest sqrt(x1 x2) on x1 + x2 = 2 is 1.
    mean = klopt.Cones(zero=1, power=(0.5,))
    rows = [[1.0, 1.0, 0.0], *(-np.eye(3)).tolist()]
    yield "power", P.ConeProgram(None, [0.0, 0.0, -1.0], rows, [2.0, 0, 0, 0], mean), Fraction(-1)
    # Two points with kernel [[2, 1], [1, 2]] and C = 10: alpha = (1, 1), value 1.
    yield "margin", P.SoftMargin([[2, 1], [1, 2]], [1, -1], C=10), Fraction(1)
    yield "tube", P.EpsilonMargin([[2, 1], [1, 2]], [1, -1], C=10, epsilon=0.5), Fraction(1, 4)


def altered_vector(rng: random.Random, data: dict[str, Any]) -> dict[str, Any]:
    """A vector with an entry moved by an ulp or by much, swapped, negated or scaled."""
    size = len(data["of"]) if "of" in data else len(klopt_check.doubles("", data))
    read = klopt_check.Vector.read("vector", data, size)
    values = [read[index] for index in range(size)]
    if not values:
        return data
    i, j = rng.randrange(size), rng.randrange(size)
    way = rng.randrange(6)
    if way == 0:
        values[i] += rng.choice([-1, 1]) * Fraction(math.ulp(float(values[i]) or 1e-300))
    elif way == 1:
        values[i] += Fraction(rng.uniform(-1, 1)) * Fraction(10) ** rng.randrange(-9, 3)
    elif way == 2:
        values[i], values[j] = values[j], values[i]
    elif way == 3:
        values[i] = -values[i]
    elif way == 4:
        factor = Fraction(rng.uniform(0, 3))
        values = [factor * value for value in values]
    else:
        values[i] *= Fraction(2) ** rng.choice([-1000, 1000])
    return encode_vector(values)


@pytest.mark.parametrize(
    ("name", "problem", "optimum"), tuple(known_optima()), ids=lambda x: str(x)[:12]
)
def test_no_witness_proves_a_false_interval(
    name: str, problem: klopt.Problem, optimum: Fraction, tmp_path: Path
) -> None:
    _, honest = certified(problem, tmp_path)
    lower, upper = interval(honest)
    assert lower <= optimum <= upper
    rng = random.Random(name)
    amounts = [Fraction(1, 2**k) for k in (100, 60, 30, 10, 1)]
    for _ in range(250):
        forged = copy.deepcopy(honest)
        amount = rng.choice(amounts)
        end = rng.choice(["lower", "upper"])
        false = optimum + amount if end == "lower" else optimum - amount
        forged["claim"][end] = encode_number(false)
        other = "upper" if end == "lower" else "lower"
        forged["claim"][other] = encode_number(false + (1 if other == "upper" else -1))
        forged["claim"]["tol"] = encode_number(10**6)
        witness = forged["witness"]
        for _ in range(rng.randrange(4)):
            part = rng.choice([key for key in witness if key not in ("factors", "phi")])
            witness[part] = altered_vector(rng, witness[part])
        if rng.random() < 0.2:
            witness["phi"] = encode_number(Fraction(rng.uniform(-1, 1)))
        if rng.random() < 0.2:
            witness["factors"] = {}
        with pytest.raises(klopt_check.Rejected):
            klopt_check.check(text_of(forged))


def test_a_feasible_program_is_never_proven_infeasible(tmp_path: Path) -> None:
    _, honest = certified(P.LP([1, 1], A_ub=[[-3, -1], [-1, -3]], b_ub=[-1, -1]), tmp_path)
    rng = random.Random(1)
    for _ in range(200):
        forged = copy.deepcopy(honest)
        forged["claim"] = {"verdict": rng.choice(["INFEASIBLE", "UNBOUNDED"])}
        forged["witness"]["ray"] = forged["witness"]["x"]
        for key in ("x", "y", "ray"):
            for _ in range(rng.randrange(3)):
                forged["witness"][key] = altered_vector(rng, forged["witness"][key])
        with pytest.raises(klopt_check.Rejected):
            klopt_check.check(text_of(forged))


def test_feasible_needs_a_point(tmp_path: Path) -> None:
    """Multipliers bound the optimum of an infeasible program, too: without a point there is no word."""
    _, honest = certified(P.LP([1, 1], A_ub=[[-3, -1], [-1, -3]], b_ub=[-1, -1]), tmp_path)
    honest["claim"] = {"verdict": "FEASIBLE", "lower": honest["claim"]["lower"]}
    assert klopt_check.check(text_of(honest)).startswith("FEASIBLE")
    del honest["witness"]["x"]
    with pytest.raises(klopt_check.Rejected, match="no point"):
        klopt_check.check(text_of(honest))


def test_the_problem_of_a_certificate_cannot_be_exchanged(tmp_path: Path) -> None:
    _, one = certified(P.LP([1, 1], A_ub=[[-3, -1], [-1, -3]], b_ub=[-1, -1]), tmp_path)
    _, two = certified(P.LP([1, 1], A_ub=[[-3, -1], [-1, -3]], b_ub=[-2, -2]), tmp_path)
    with pytest.raises(klopt_check.Rejected, match="digest"):
        klopt_check.check(json.dumps(one | {"problem": two["problem"]}))
    with pytest.raises(klopt_check.Rejected):
        klopt_check.check(text_of(one | {"problem": two["problem"]}))


def leaves(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(data, dict):
        for key, value in data.items():
            yield (*path, key)
            yield from leaves(value, (*path, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from leaves(value, (*path, index))
    else:
        yield path


NONSENSE: tuple[Any, ...] = (
    None, True, -1, 0, 10**12, "", "0x", "nan", "0x1p99999", "-0x1/0x0", "\ud800", [], {}, [[]], [None],
    {"float64": "AAAA"}, {"float64": "????????"}, {"of": ["0x1/0x3"]}, {"of": [1]}, [["zero", 10**15]],
    [["power", 1]], {"lower": 10**9, "value": {"of": []}},
)  # fmt: skip


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_nonsense_in_any_place_is_rejected_or_harmless(
    kind: type[klopt.Problem], tmp_path: Path
) -> None:
    """Whatever a file holds, the checker ends with `Rejected` or with a true claim, never otherwise."""
    _, honest = certified(kind.sample(np.random.default_rng(1), 3), tmp_path)
    rng = random.Random(0)
    for path in dict.fromkeys(leaves(honest)):
        for nonsense in rng.sample(NONSENSE, 6):
            forged = copy.deepcopy(honest)
            place = forged
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = nonsense
            try:
                klopt_check.check(
                    text_of(forged) if isinstance(forged["problem"], dict) else json.dumps(forged)
                )
            except klopt_check.Rejected:
                continue
            # Another problem has another optimum; about this one only the truth is accepted.
            if path[0] != "problem":
                claim = forged["claim"]
                lower, upper = interval(honest)
                assert claim["lower"] is None or klopt_check.number(claim["lower"]) <= upper
                assert claim["upper"] is None or klopt_check.number(claim["upper"]) >= lower


def test_files_that_are_cut_off_or_say_things_twice_are_rejected(tmp_path: Path) -> None:
    certified(P.SoftMargin.sample(np.random.default_rng(0), 4), tmp_path)
    text = (tmp_path / "proof.json").read_text()
    for length in range(0, len(text) - 2, 41):
        with pytest.raises(klopt_check.Rejected):
            klopt_check.check(text[:length])
    twice = text.replace('"claim": {', '"claim": {}, "claim": {', 1)
    decimal = text.replace('"verdict"', '"more": 1.5, "verdict"', 1)
    deep = "[" * 100_000
    long = '{"a": ' + "1" * 10_000 + "}"
    for bad in (twice, decimal, deep, long, "NaN", '{"format": NaN}', "\ud800", "null"):
        with pytest.raises(klopt_check.Rejected):
            klopt_check.check(bad)


# The checker in JavaScript


def texts_of_all_kinds(tmp_path: Path) -> list[str]:
    """Certificates of all kinds of problems, honest, forged, damaged and cut off."""
    rng = random.Random(2)
    texts = []
    problems = [kind.sample(np.random.default_rng(3), 4) for kind in CLASSES]
    problems += [problem for _, problem, _ in known_optima()]
    problems += [P.LP([1], A_ub=[[1], [-1]], b_ub=[0, -1]), P.LP([-1, 0], A_ub=[[1, -1]], b_ub=[3])]
    for problem in problems:
        klopt.solve(problem).certificate.save(tmp_path / "proof.json")
        honest = json.loads((tmp_path / "proof.json").read_text())
        texts.append(json.dumps(honest))
        for path in rng.sample(list(dict.fromkeys(leaves(honest))), 12):
            forged = copy.deepcopy(honest)
            place = forged
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = rng.choice(NONSENSE)
            texts.append(json.dumps(forged) if path[0] == "digest" else text_of_any(forged))
        for _ in range(12):
            forged = copy.deepcopy(honest)
            witness = forged["witness"]
            part = rng.choice([key for key in witness if key not in ("factors", "phi")])
            witness[part] = altered_vector(rng, witness[part])
            texts.append(text_of(forged))
    pointless = json.loads(texts[0])
    pointless["claim"] = {"verdict": "FEASIBLE", "lower": pointless["claim"]["lower"]}
    texts.append(text_of(pointless))
    del pointless["witness"]["x"]
    texts.append(text_of(pointless))
    text = texts[0]
    texts += [text[:length] for length in range(0, len(text) - 2, 97)]
    texts.append(text.replace('"claim": {', '"claim": {}, "claim": {', 1))
    texts.append(text.replace('"claim": {', '"cl\\u0061im": {}, "claim": {', 1))
    texts.append(text.replace('"verdict"', '"more": 1.5, "verdict"', 1))
    texts.append(text.replace('"verdict"', '"more\\"": "\\\\", "\u00e9": 7, "verdict"', 1))
    return texts


def text_of_any(data: dict[str, Any]) -> str:
    return text_of(data) if isinstance(data.get("problem"), dict) else json.dumps(data)


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_checker_in_javascript_decides_like_the_one_in_python(tmp_path: Path) -> None:
    files = []
    expected = []
    for index, text in enumerate(texts_of_all_kinds(tmp_path)):
        file = tmp_path / f"{index}.json"
        # A lone surrogate, which no encoding has, is a question mark in both.
        file.write_bytes(text.encode("utf-8", "replace"))
        files.append(str(file))
        expected.append(_passes(lambda file=file: klopt_check.check(file.read_text("utf-8"))))  # type: ignore[misc]
    script = str(CHECKER.with_name("klopt_check.js"))
    found = subprocess.run(["node", script, *files], capture_output=True, text=True, check=False)
    lines = found.stdout.splitlines()
    assert len(lines) == len(files), found.stderr
    assert "cannot be checked" not in found.stdout
    decided = [": proven: " in line for line in lines]
    assert decided == expected
    assert 15 <= sum(expected) < len(expected) - 100


# The pieces of the checker, against other means


@given(st.fractions(-40, 40, max_denominator=10**6))
def test_the_bound_of_exp_is_above_and_close(t: Fraction) -> None:
    bound = klopt_check.exp_above(t)
    with mpmath.workprec(400):
        exact = mpmath.exp(mpmath.mpf(t.numerator) / t.denominator)
        found = mpmath.mpf(bound.numerator) / bound.denominator
        assert exact <= found <= exact * (1 + mpmath.mpf(2) ** -180)


@given(st.fractions(Fraction(1, 10**9), 10**9))
def test_the_bounds_of_log_enclose_it_closely(q: Fraction) -> None:
    below, above = (klopt_check.log_of(q, up) for up in (0, 1))
    with mpmath.workprec(400):
        exact = mpmath.log(mpmath.mpf(q.numerator) / q.denominator)
        low, high = (mpmath.mpf(end.numerator) / end.denominator for end in (below, above))
        assert low <= exact <= high
        assert high - low <= mpmath.mpf(2) ** -200


@given(st.fractions(0, 9), st.fractions(0, 9), st.fractions(-9, 9), st.integers(1, 40))
def test_power_cones_are_decided_as_powers_say(
    x: Fraction, y: Fraction, z: Fraction, weight: int
) -> None:
    """The weights 40 and less are compared by logarithms or by powers; the truth by powers."""
    vector = klopt_check.Vector.read("s", encode_vector([x, y, z]), 3)
    accepted = _passes(lambda: klopt_check.need_in_power("s", [weight, 3], vector, False))
    inside = x**weight * y**3 >= abs(z) ** (weight + 3)
    # Logarithms cannot decide on the boundary itself.
    assert accepted <= inside
    if x**weight * y**3 > abs(z) ** (weight + 3) * Fraction(1001, 1000):
        assert accepted


@given(st.integers(0, 2**32))
def test_only_semidefinite_matrices_pass(seed: int) -> None:
    """With any factor, good or bad; the truth by elimination in rationals."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 5))
    B = rng.integers(-2, 3, (n, n))
    S = (B @ B.T - rng.integers(0, 2) * np.diag(rng.integers(0, 3, n))).astype(float)
    entries = [(i, j, int(S[i, j])) for i in range(n) for j in range(i + 1)]
    matrix = klopt_check.Symmetric(n, n, entries, 1)
    truth = rational_psd(S)
    assert klopt_check.eliminates(matrix) == truth
    factor = np.tril(rng.integers(-2, 3, (n, n))).astype(float)
    if truth and rng.random() < 0.5 and np.linalg.eigvalsh(S)[0] > 0.1:
        factor = np.linalg.cholesky(S - 1e-9 * np.eye(n))
    places = np.triu_indices(n)
    data = {"lower": n, "value": encode_vector(factor.T[places])}
    try:
        klopt_check.need_semidefinite("S", matrix, data)
    except klopt_check.Rejected:
        return
    assert truth


def test_packed_products_are_those_of_single_entries() -> None:
    rng = np.random.default_rng(0)
    n = 60
    values = rng.integers(-(2**40), 2**40, (n, n))
    entries = [(i, j, int(values[i, j])) for i in range(n) for j in range(i + 1)]
    found = klopt_check.product_with_transpose(klopt_check.Matrix(n, n, entries, 1))
    L = np.tril(values).astype(object)
    expected = L @ L.T
    assert all(found.get((i, j), 0) == expected[i, j] for i in range(n) for j in range(i + 1))


@given(st.fractions(0, 9), st.fractions(-9, 9), st.fractions(-9, 9))
def test_membership_of_second_order_cones_is_exact(a: Fraction, b: Fraction, c: Fraction) -> None:
    vector = klopt_check.Vector.read("s", encode_vector([a, b, c]), 3)
    accepted = _passes(
        lambda: klopt_check.need_in_cone("s", "second order", 3, vector, False, None)
    )
    assert accepted == (a * a >= b * b + c * c)


def _passes(check: Callable[[], None]) -> bool:
    try:
        check()
    except klopt_check.Rejected:
        return False
    return True
