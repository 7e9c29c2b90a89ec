"""Certificates of the kernel families: both checkers accept what klopt writes, and no forgery.

The truth about an optimum comes from closed forms and from mpmath; a certificate whose claim excludes
it is a forgery, whatever its witness holds. Both checkers must decide alike about every file.
"""

from __future__ import annotations

import copy
import json
import math
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

import klopt
from klopt.certificates.encoding import encode_number, encode_vector
from klopt.certificates.family_certificate import parts_of_claim
from klopt.checker import klopt_check
from klopt.kernels.nystroem import LowRank
from klopt.proof.rational import floats_around
from klopt.witness.exact_claims import EnergyData, ExactClaim, GraphData, LevelData, long_factor

P = klopt.problems
SCRIPT = Path(klopt_check.__file__).with_name("klopt_check.js")
FAMILIES = (
    P.AdaptiveKernel, P.AdaptiveKernelRegression, P.LogDetPairs, P.MultipleKernel, P.OrderedAlignment,
    P.SaddlePoint, P.ScgLogDet, P.ScgOrdered, P.SimilarityKernel, P.SimilarityKernels,
    P.SimilaritySpectra, P.SimplexProgram, P.SpectralAlignment, P.SpectralRls,
)  # fmt: skip


def certified(problem: klopt.Problem, tmp_path: Path) -> tuple[klopt.Result, dict[str, Any]]:
    result = klopt.solve(problem).require()
    result.certificate.save(tmp_path / "proof.json")
    return result, json.loads((tmp_path / "proof.json").read_text())


def written(claim: ExactClaim, tol: float = 1e-6) -> dict[str, Any]:
    """A certificate of a claim that was built by hand."""
    parts = parts_of_claim(claim, "OPTIMAL", tol)
    lower, upper = proven_ends(parts)
    parts["claim"] |= {
        "lower": encode_number(floats_around(lower)[0]),
        "upper": encode_number(floats_around(upper)[1]),
    }
    return json.loads(text_of(parts | {"format": klopt_check.FORMAT}))  # type: ignore[no-any-return]


def text_of(data: dict[str, Any]) -> str:
    """The text with the digest of its own problem, which forgers can compute, too."""
    if isinstance(data.get("problem"), dict):
        data = data | {"digest": klopt_check.digest(data["problem"])}
    return json.dumps(data)


def proven_ends(data: dict[str, Any]) -> list[Fraction]:
    program = klopt_check.RULES[data["problem"]["rule"]](data["problem"])
    return sorted(program.scale * end + program.shift for end in program.ends(data["witness"]))


def interval(data: dict[str, Any]) -> tuple[Fraction, Fraction]:
    return tuple(klopt_check.number(data["claim"][end]) for end in ("lower", "upper"))  # type: ignore[return-value]


def accepted(text: str) -> bool:
    try:
        klopt_check.check(text)
    except klopt_check.Rejected:
        return False
    return True


def accepted_by_javascript(texts: list[str], tmp_path: Path) -> list[bool]:
    files = []
    for index, text in enumerate(texts):
        file = tmp_path / f"{index}.json"
        file.write_bytes(text.encode("utf-8", "replace"))
        files.append(str(file))
    found = subprocess.run(
        ["node", str(SCRIPT), *files], capture_output=True, text=True, check=False
    )
    assert "cannot be checked" not in found.stdout, found.stdout
    lines = found.stdout.splitlines()
    assert len(lines) == len(texts), found.stderr
    return [": proven: " in line for line in lines]


# What klopt writes is accepted


@pytest.mark.parametrize("size", [2, 3, 9])
@pytest.mark.parametrize("kind", FAMILIES, ids=lambda kind: kind.__name__)
def test_what_klopt_writes_is_accepted_and_agrees(
    kind: type[klopt.Problem], size: int, tmp_path: Path
) -> None:
    result, data = certified(kind.sample(np.random.default_rng(size), size), tmp_path)
    lower, upper = interval(data)
    assert klopt_check.check(json.dumps(data)).startswith("OPTIMAL")
    # Two proofs about one optimum: the intervals share a point.
    assert lower <= result.upper
    assert result.lower <= upper


def test_every_problem_class_is_stated() -> None:
    """The classes that are no family are those of the other tests of certificates."""
    stated = {"LP", "QCQP", "SDP", "ConeProgram", "SoftMargin", "EpsilonMargin", "NuMargin"}
    stated |= {kind.__name__ for kind in FAMILIES}
    every = {name for name in dir(P) if isinstance(getattr(P, name), type)}
    assert {name for name in every if issubclass(getattr(P, name), klopt.Problem)} == stated


def losses_and_norms() -> Iterator[klopt.Problem]:
    """Forms that the samples do not have."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(8) % 2 == 0, 1.0, -1.0)
    X = rng.normal(size=(8, 3)) + y[:, None] / 2
    squares = np.square(X[:, None] - X).sum(axis=2)
    kernels = [np.exp(-squares / width) for width in (0.3, 30.0)]
    for norm in ("block-l1", "block-linf", 2, 1.25, 3):
        yield P.MultipleKernel(kernels, X[:, 0], C=2.0, loss="squared", norm=norm)
        yield P.MultipleKernel(kernels, X[:, 0], C=2.0, loss="epsilon", norm=norm, epsilon=0.2)
    yield P.MultipleKernel(kernels, y, C=np.linspace(0.5, 2, 8), norm=2)
    path = np.diag([1.0, 2, 2, 1]) - np.eye(4, k=1) - np.eye(4, k=-1)
    for basis in ("spectral", "padded", "labelled"):
        yield P.SpectralRls(path, [0, -1, 1, 1], C=1.0, mu=0.1, basis=basis, ridge=0.1)
    yield P.SpectralRls(path, [0, -1, 1, 1], C=1.0, mu=0.1, rank=2)
    V = np.linalg.qr(rng.normal(size=(9, 4)))[0]
    yield P.OrderedAlignment(V, [0, 0, 0, 1, 1, 1, -1, 2, 2], sigma=1.5)
    yield P.OrderedAlignment(V, [0, 0, 0, 1, 1, 1, -1, 1, 1], ordered=False, target="signed")
    yield P.ScgOrdered(V, side=([(0, 1), (2, 3)], [(0, 8)]), sigma=1.25, skip_constant=True)
    yield P.ScgLogDet(
        LowRank(rng.normal(size=(9, 3))), side=[0, 0, 0, 1, 1, 1, -1, 2, 2], gamma=0.5
    )
    yield P.LogDetPairs(LowRank(X), [(0, 2), (2, 4)], [(0, 1), (4, 5)], upper=0.7, lower=1.5)
    yield P.AdaptiveKernel(LowRank(X), y, C=1.0, eta=0.5)
    box = klopt.BoxPlane(np.zeros(3), np.ones(3), normal=[1.0, 2.0, -1.0], offset=0.3)
    yield P.SimplexProgram.of(klopt.Linear([1.0, -1.0, 0.5]), box)
    ordered = klopt.OrderedSimplex(3, 1.5)
    yield P.SimplexProgram.of(klopt.Quadratic(np.ones((3, 3)), [1.0, -1.0, 0.5]), ordered)
    yield P.SaddlePoint.game([[1.0, -1.0, 0.3], [0.2, 0.5, -0.7], [0.0, 0.1, 2.0]], box, ordered)


@pytest.mark.parametrize("index", range(24))
def test_other_losses_norms_and_sets_are_accepted(index: int, tmp_path: Path) -> None:
    problems = list(losses_and_norms())
    assert len(problems) == 24
    result, data = certified(problems[index], tmp_path)
    lower, upper = interval(data)
    assert accepted(json.dumps(data))
    assert lower <= result.upper
    assert result.lower <= upper


def test_pairs_that_contradict_each_other_have_a_certificate(tmp_path: Path) -> None:
    """d(0, 2) <= 2 (d(0, 1) + d(1, 2)) <= 0.4 in any kernel, and it should be 3 at least."""
    result = klopt.solve(P.LogDetPairs(np.eye(3), [(0, 1), (1, 2)], [(0, 2)], upper=0.1, lower=3.0))
    assert result.verdict.name == "INFEASIBLE"
    result.certificate.save(tmp_path / "proof.json")
    assert klopt.check(tmp_path / "proof.json").startswith("INFEASIBLE")


def test_functions_without_a_formula_are_refused_with_the_reason(tmp_path: Path) -> None:
    far = np.array([2.0, 0.0])
    program = P.SimplexProgram(
        lambda x: float((x - far) @ (x - far)),
        lambda x: 2 * (x - far),
        klopt.Simplex(2),
        accuracy=1e-13,
    )
    with pytest.raises(klopt.NotCertified, match="only klopt can evaluate"):
        klopt.solve(program).require().certificate.save(tmp_path / "proof.json")


# Closed forms


def logarithm(value: Fraction) -> Fraction:
    """log to 90 digits."""
    with mpmath.workdps(120):
        found = mpmath.log(mpmath.mpf(value.numerator) / value.denominator)
        return Fraction(int(mpmath.floor(found * mpmath.mpf(10) ** 90)), 10**90)


def known_optima(tmp_path: Path) -> Iterator[tuple[str, dict[str, Any], Fraction, Fraction]]:
    """Certificates of every rule, their optimum in closed form, and how well that is known."""
    exact = Fraction(0)
    digits = Fraction(1, 10**89)
    kernels = [[[2, 1], [1, 2]], [[1, 0], [0, 1]]]
    # a = (s, -s): both kernels have a'Ka = 2 s^2.
    for norm, optimum in (("block-l1", Fraction(1)), ("block-linf", Fraction(1, 4))):
        problem = P.MultipleKernel(kernels, [1, -1], C=10, norm=norm)
        yield norm, certified(problem, tmp_path)[1], optimum, exact
    # Rock, paper, scissors.
    game = P.SaddlePoint.game([[0, 1, -1], [-1, 0, 1], [1, -1, 0]])
    yield "game", certified(game, tmp_path)[1], Fraction(0), exact
    # The kernel of trace 2 next to [[1, 2], [2, 1]] is 11', at the distance 2^1/2.
    problem = P.SimilarityKernel([[1, 2], [2, 1]], [1, -1], C=1, rho=1, trace=2)
    yield "similarity", certified(problem, tmp_path)[1], Fraction(4), exact
    # F = 11' costs nothing, and is best for alpha = 0 only: without a bias and y = 1, n = 1, C = 1/8,
    # a = C: C - F C^2/2 + (F - 1)^2 is smallest at F = 1 + C^2/4.
    problem = P.AdaptiveKernel([[1.0]], [1], C=0.125, eta=1.0, bias=False)
    C = Fraction(1, 8)
    best = 1 + C**2 / 4
    yield "adaptive", certified(problem, tmp_path)[1], C - best * C**2 / 2 + (best - 1) ** 2, exact
    # W = diag(1, 1/2) along (1, 1) and (1, -1): 1/2 + log 2 - 1.
    problem = P.LogDetPairs(np.eye(3), [(0, 1)], [(0, 2)], upper=1.0, lower=1.0)
    yield (
        "log det",
        certified(problem, tmp_path)[1],
        logarithm(Fraction(2)) - Fraction(1, 2),
        digits,
    )
    # log det(I + SG), G = 2I, S = diag(1, 3): log 21.
    S = [[Fraction(1), Fraction(0)], [Fraction(0), Fraction(3)]]
    graph = GraphData(2 * np.eye(2), S, Fraction(1), Fraction(0), Fraction(0))
    yield "graph", written(ExactClaim(graph)), logarithm(Fraction(21)), digits
    # G = -1/4 stands for 0: whatever phi adds is taken off again.
    graph = GraphData(
        np.array([[-(2.0**-40)]]), [[Fraction(1)]], Fraction(1), Fraction(1, 2**39), exact
    )
    yield "positive part of a graph", written(ExactClaim(graph)), exact, exact
    # One direction has the alignment A / norm at every level; two equal ones 2^1/2 of it.
    level = LevelData([Fraction(1)], [Fraction(3)], Fraction(4), Fraction(1, 2))
    yield "level", written(ExactClaim(level)), Fraction(3, 4), exact
    # (2 - t) 4 + (1 - t) 3 over its norm: 5 at t = -2, and falling: 11 / 5^1/2 at t = 0 squared is 24.2.
    level = LevelData(
        [Fraction(2), Fraction(1)], [Fraction(4), Fraction(3)], Fraction(11), Fraction(0)
    )
    root = Fraction(math.isqrt(10**180 // 5), 10**90)
    yield "two levels", written(ExactClaim(level)), root, digits
    # One class: W = e 11', so that S = I - 11'/2.
    same = [(0, 0, Fraction(1)), (1, 0, Fraction(1)), (1, 1, Fraction(1))]
    V = [[Fraction(1), Fraction(-1)], [Fraction(1), Fraction(1)]]
    yield "energies", written(ExactClaim(EnergyData(V, same, Fraction(3)))), Fraction(3, 2), exact


def test_certificates_enclose_the_closed_forms(tmp_path: Path) -> None:
    for name, data, optimum, error in known_optima(tmp_path):
        lower, upper = interval(data)
        assert lower <= optimum + error, name
        assert optimum <= upper, name


# Forgeries


def vectors(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of vectors and of single numbers."""
    if isinstance(data, dict):
        if "float64" in data or "of" in data:
            yield path
            return
        for key, value in data.items():
            yield from vectors(value, (*path, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from vectors(value, (*path, index))
    elif isinstance(data, str) and klopt_check.NUMBER.fullmatch(data):
        yield path


def place(data: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        data = data[key]
    return data


def altered(rng: random.Random, found: Any) -> Any:
    """A number, or a vector in one entry, moved by the smallest or by a large amount."""
    amount = rng.choice([-1, 1]) * Fraction(2) ** rng.choice([-2000, -1000, -60, -30, -10, 0, 4])
    if isinstance(found, str):
        value = klopt_check.number(found)
        return encode_number(rng.choice([value + amount, -value, 2 * value]))
    size = len(found["of"]) if "of" in found else len(klopt_check.doubles("", found))
    read = klopt_check.Vector.read("vector", found, size)
    values = [read[index] for index in range(size)]
    if not values:
        return found
    i, j = rng.randrange(size), rng.randrange(size)
    way = rng.randrange(4)
    if way == 0:
        values[i], values[j] = values[j], values[i]
    elif way == 1:
        values = [value * (1 + amount) for value in values]
    else:
        values[i] += amount
    return encode_vector(values)


def forgeries(tmp_path: Path) -> list[tuple[str, str]]:
    """Certificates that claim what is false, with honest and with altered witnesses."""
    found = []
    for name, honest, optimum, error in known_optima(tmp_path):
        rng = random.Random(name)
        for _ in range(60):
            forged = copy.deepcopy(honest)
            amount = error + Fraction(1, 2 ** rng.choice([280, 100, 60, 30, 10, 1]))
            is_low = rng.random() < 0.5
            false = optimum + amount if is_low else optimum - amount
            ends = (false, false + 1) if is_low else (false - 1, false)
            forged["claim"] |= {
                "lower": encode_number(ends[0]),
                "upper": encode_number(ends[1]),
                "tol": encode_number(10**6),
            }
            places = list(vectors(forged["witness"]))
            for _ in range(rng.randrange(3) if places else 0):
                *path, last = rng.choice(places)
                at = place(forged["witness"], tuple(path))
                at[last] = altered(rng, at[last])
            if rng.random() < 0.1:
                forged["witness"]["factors"] = {}
            found.append((name, text_of(forged)))
    return found


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_no_forgery_is_accepted_by_either_checker(tmp_path: Path) -> None:
    forged = forgeries(tmp_path)
    assert len(forged) == 660
    assert not [name for name, text in forged if accepted(text)]
    assert not any(accepted_by_javascript([text for _, text in forged], tmp_path))


def family_certificates(tmp_path: Path) -> Iterator[dict[str, Any]]:
    for kind in FAMILIES:
        yield certified(kind.sample(np.random.default_rng(3), 3), tmp_path)[1]


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_claim_cannot_be_moved_by_the_smallest_number(tmp_path: Path) -> None:
    """What is proven is accepted to the last digit, and 2^-5000 more is not.

    Logarithms, exponentials and roots are rounded outwards, by each checker in its own way: there
    2^-180 less is accepted, and 2^-100 more is not.
    """
    texts = []
    for data in family_certificates(tmp_path):
        lower, upper = proven_ends(data)
        problem = data["problem"]
        rounds = "log det" in problem or problem["rule"] not in ("cone program", "saddle program")
        step, room = (
            (Fraction(1, 2**100), Fraction(1, 2**180)) if rounds else (Fraction(1, 2**5000), 0)
        )
        lower, upper = lower - room, upper + room
        data["claim"]["tol"] = encode_number(1)
        for ends in ((lower, upper), (lower + step, upper), (lower, upper - step)):
            data["claim"] |= {"lower": encode_number(ends[0]), "upper": encode_number(ends[1])}
            texts.append(text_of(data))
    expected = [index % 3 == 0 for index in range(len(texts))]
    assert [accepted(text) for text in texts] == expected
    assert accepted_by_javascript(texts, tmp_path) == expected


NONSENSE: tuple[Any, ...] = (
    None, True, -1, 0, 10**12, "", "0x", "nan", "0x1p99999", "-0x1/0x0", "\ud800", [], {}, [[]], [None],
    "0x0", "-0x1", {"float64": "AAAA"}, {"of": ["0x1/0x3"]}, {"of": [1]}, {"of": []}, [{}], [["zero", 1]],
    [{"weight": "0x1", "cone": 0}], [{"weight": "0x1", "order": 1, "matrix": {"lower": 1, "value": {"of": ["0x0"]}}}],
    {"row": "", "column": "", "value": {"of": []}},
)  # fmt: skip


def leaves(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = (
        data.items()
        if isinstance(data, dict)
        else enumerate(data)
        if isinstance(data, list)
        else ()
    )
    for key, value in items:
        yield (*path, key)
        yield from leaves(value, (*path, key))


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_both_checkers_decide_alike_about_altered_files(tmp_path: Path) -> None:
    """Nonsense and altered numbers in any place; about the same problem only the truth passes."""
    rng = random.Random(7)
    texts = []
    truths: list[Callable[[], None]] = []

    def truth(honest: dict[str, Any], forged: dict[str, Any]) -> None:
        lower, upper = interval(honest)
        claim = forged["claim"]
        assert claim.get("lower") is None or klopt_check.number(claim["lower"]) <= upper
        assert claim.get("upper") is None or klopt_check.number(claim["upper"]) >= lower

    certificates = list(family_certificates(tmp_path))
    certificates += [data for _, data, _, _ in known_optima(tmp_path)]
    for honest in certificates:
        places = list(dict.fromkeys(leaves(honest)))
        for kind in range(20):
            path = rng.choice(places if kind < 13 else list(vectors(honest)))
            forged = copy.deepcopy(honest)
            at = place(forged, path[:-1])
            at[path[-1]] = rng.choice(NONSENSE) if kind < 13 else altered(rng, at[path[-1]])
            texts.append(text_of(forged))
            if path[0] != "problem":
                truths.append(
                    lambda a=honest, b=forged, text=texts[-1]: accepted(text) and truth(a, b)
                )  # type: ignore[misc]
    decided = [accepted(text) for text in texts]
    assert accepted_by_javascript(texts, tmp_path) == decided
    assert 20 <= sum(decided) <= len(texts) / 2
    for test in truths:
        test()


# Positive parts


@pytest.mark.parametrize("norm", ["block-l1", 2])
def test_a_kernel_that_is_indefinite_by_rounding_is_its_positive_part(
    norm: str, tmp_path: Path
) -> None:
    """a = (s, -s): the positive part of [[1, 1], [1, 1 - e]] has a'Ka below e s^2; that of I is 2 s^2."""
    e = 2.0**-50
    kernels = [[[1.0, 1.0], [1.0, 1.0 - e]], np.eye(2)]
    _, data = certified(P.MultipleKernel(kernels, [1, -1], C=0.25, norm=norm), tmp_path)
    assert data["problem"]["parts"][0]["positive part"] is True
    phi = data["witness"]["phi"]
    assert any(klopt_check.Vector.read("phi", phi, 2).of)
    lower, upper = interval(data)
    # s = C = 1/4: the second kernel alone costs s^2; the first adds at most (2 r_1 r_2 + r_1^2) / 2.
    most = Fraction(1, 2) - Fraction(1, 16)
    assert lower <= most
    assert upper >= most - Fraction(e) ** 2 - Fraction(2) ** -20
    # Without the shift the matrix is no kernel, and nothing is proven.
    size = len(klopt_check.Vector.read("phi", phi, 2).of)
    data["witness"]["phi"] = encode_vector([Fraction(0)] * size)
    assert not accepted(text_of(data))


def test_a_part_over_a_variable_needs_a_semidefinite_matrix(tmp_path: Path) -> None:
    """max of y'Qy / (2 gamma) for an indefinite Q is infinite: no multiplier may bound it."""
    _, data = certified(P.SimilarityKernels.sample(np.random.default_rng(3), 3), tmp_path)
    assert accepted(text_of(data))
    part = data["problem"]["parts"][0]
    read = klopt_check.Vector.read(
        "value", part["value"], len(klopt_check.doubles("", part["value"]))
    )
    part["value"] = encode_vector([-read[index] for index in range(len(read.of))])
    assert not accepted(text_of(data))


def test_a_positive_part_needs_a_weight_that_is_not_negative(tmp_path: Path) -> None:
    _, data = certified(P.MultipleKernel.sample(np.random.default_rng(1), 3), tmp_path)
    left = data["problem"]["left"]
    assert accepted(text_of(data))
    size = len(klopt_check.doubles("b", left["b"]))
    b = klopt_check.Vector.read("b", left["b"], size)
    values = [b[index] for index in range(size)]
    values[-1] += Fraction(1, 2**1000)
    left["b"] = encode_vector(values)
    with pytest.raises(klopt_check.Rejected, match="may be negative"):
        klopt_check.check(text_of(data))


# The pieces of the checker, against other means


def test_determinants_are_those_of_other_means() -> None:
    rng = np.random.default_rng(0)
    for n in (1, 2, 5, 12):
        B = rng.integers(-4, 5, (n, n))
        S = B @ B.T + np.eye(n, dtype=int)
        entries = [(i, j, int(S[i, j])) for i in range(n) for j in range(i + 1)]
        found = klopt_check.determinant("S", klopt_check.Symmetric(n, n, entries, 3))
        with mpmath.workdps(60):
            expected = int(mpmath.nint(mpmath.det(mpmath.matrix(S.tolist()))))
        assert found == Fraction(expected, 3**n)


def test_long_factors_lie_on_their_side() -> None:
    rng = np.random.default_rng(1)
    B = rng.normal(size=(6, 6))
    S = [[Fraction(float(v)) for v in row] for row in (B @ B.T + B @ B.T) / 2]
    S = [[S[max(i, j)][min(i, j)] for j in range(6)] for i in range(6)]
    entries = [(i, j, S[i][j]) for i in range(6) for j in range(i + 1)]
    over = math.lcm(*(value.denominator for _, _, value in entries))
    matrix = klopt_check.Symmetric(6, 6, [(i, j, int(v * over)) for i, j, v in entries], over)
    for up in (False, True):
        L = long_factor(S, up)
        below = math.lcm(*(value.denominator for row in L for value in row))
        rows = [(i, j, int(v * below)) for i, row in enumerate(L) for j, v in enumerate(row)]
        factor = klopt_check.Matrix(6, 6, rows, below)
        assert klopt_check.dominates(matrix, factor, -1 if up else 1)
        assert not klopt_check.dominates(matrix, factor, 1 if up else -1)


def test_levels_have_the_largest_value_of_the_curve() -> None:
    """Against the curve itself at 2000 levels."""
    rng = np.random.default_rng(2)
    for _ in range(24):
        r, A = np.sort(rng.uniform(0, 1, 5))[::-1], rng.uniform(0, 1, 5)
        data = LevelData(
            [Fraction(v) for v in r], [Fraction(v) for v in A], Fraction(1), Fraction(0)
        )
        found = float(proven_ends(written(ExactClaim(data), tol=1.0))[1])
        t = np.linspace(0, r[0], 2000, endpoint=False)
        lam = np.maximum(r - t[:, None], 0.0)
        h = lam @ A / np.linalg.norm(lam, axis=1)
        assert h.max() <= found * (1 + 1e-12)
        assert found <= h.max() * (1 + 1e-4)
