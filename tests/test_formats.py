"""Files: what is written is read back to the last bit, and what is malformed is refused with its line.

Public instances are read where the environment variable KLOPT_DATA names a folder that holds them.
"""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

import highspy
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from scipy import sparse
from strategies import generators

import klopt
from klopt.model.cones import Cones
from klopt.model.records import field_names
from klopt.problems import LP, QCQP, SDP, ConeProgram
from klopt.programs import formats
from klopt.programs.formats.model import Block, Names

into_files = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
awkward = st.sampled_from(
    [0.1, 1 / 3, -2 / 7, 1e-9, 123456789.123456789, -1.0, 5e-324, 1.7976931348623157e308, np.pi]
)


def numbers(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Numbers with all their digits, some zero, over many powers of ten."""
    values = rng.normal(size=shape) * 10.0 ** rng.integers(-5, 9, shape)
    return np.where(rng.random(shape) < 0.3, 0.0, values)


def some_lp(rng: np.random.Generator, vacuous: bool = True) -> LP:
    n, m, p = int(rng.integers(1, 6)), int(rng.integers(0, 4)), int(rng.integers(0, 3))
    b_ub = numbers(rng, m)
    if vacuous and m:
        b_ub[0] = np.inf
    low, high = np.sort(numbers(rng, 2, n), axis=0)
    low[rng.random(n) < 0.3], high[rng.random(n) < 0.3] = -np.inf, np.inf
    low[rng.random(n) < 0.3] = 0.0
    bounds = np.column_stack((low, np.maximum(low, high)))
    offset, sense = float(numbers(rng, 1)[0]), "max" if rng.random() < 0.5 else "min"
    return LP(
        numbers(rng, n),
        numbers(rng, m, n),
        b_ub,
        numbers(rng, p, n),
        numbers(rng, p),
        bounds,
        offset,
        sense,
    )


def some_qp(rng: np.random.Generator, **more: object) -> QCQP:
    lp = some_lp(rng, vacuous=False)
    F = rng.normal(size=(2, lp.c.size))
    P = (F.T @ F) * (1 if lp.sense == "min" else -1)
    rows = (lp.A_ub, lp.b_ub, lp.A_eq, lp.b_eq, lp.bounds)
    return QCQP((P + P.T) / 2, lp.c, (), *rows, offset=lp.offset, sense=lp.sense, **more)


def some_socp(rng: np.random.Generator) -> QCQP:
    lp = some_lp(rng)
    rows = (
        lp.A_ub,
        lp.b_ub,
        lp.A_eq,
        lp.b_eq,
        lp.bounds,
        numbers(rng, 5, lp.c.size),
        numbers(rng, 5),
        (2, 3),
    )
    return QCQP(None, lp.c, (), *rows, lp.offset, lp.sense)


def some_sdp(rng: np.random.Generator, plain: bool) -> SDP:
    n = int(rng.integers(1, 4))
    F = [tuple(M + M.T for M in (numbers(rng, k, k) for k in (2, 3))) for _ in range(n + 1)]
    F[0][0][0, 1] = F[0][0][1, 0] = F[1][1][0, 2] = F[1][1][2, 0] = 0.7
    c, A_ub, b_ub = numbers(rng, n), numbers(rng, 2, n), numbers(rng, 2)
    if plain:
        return SDP(c, F, A_ub, b_ub)
    b_ub[0] = np.inf
    return SDP(c, F, A_ub, b_ub, numbers(rng, 1, n), numbers(rng, 1), offset=0.1, sense="max")


def same(one: object, other: object) -> bool:
    if isinstance(one, Block):
        return (
            isinstance(other, Block)
            and one.order == other.order
            and same(one.entries, other.entries)
        )
    if sparse.issparse(one):
        return one.shape == other.shape and (one != other).nnz == 0
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return np.array_equal(one, other) if isinstance(one, np.ndarray) else one == other


def assert_lossless(problem: klopt.Problem, path: Path) -> None:
    problem.to_file(path)
    again = type(problem).from_file(path)
    for name in field_names(type(problem)):
        assert same(getattr(again, name), getattr(problem, name)), name


class TestARoundTripLosesNothing:
    @pytest.mark.parametrize("suffix", [".mps", ".cbf", ".npz"])
    @into_files
    @given(rng=generators)
    def test_of_linear_programs(self, tmp_path, suffix, rng) -> None:
        assert_lossless(some_lp(rng), tmp_path / f"file{suffix}")

    @into_files
    @given(rng=generators)
    def test_of_linear_programs_as_lp_files(self, tmp_path, rng) -> None:
        assert_lossless(some_lp(rng, vacuous=False), tmp_path / "file.lp")

    @pytest.mark.parametrize("suffix", [".mps", ".npz", ".lp"])
    @into_files
    @given(rng=generators)
    def test_of_quadratic_programs(self, tmp_path, suffix, rng) -> None:
        assert_lossless(some_qp(rng), tmp_path / f"file{suffix}")

    @pytest.mark.parametrize("suffix", [".cbf", ".npz"])
    @into_files
    @given(rng=generators)
    def test_of_second_order_programs(self, tmp_path, suffix, rng) -> None:
        assert_lossless(some_socp(rng), tmp_path / f"file{suffix}")

    @into_files
    @given(rng=generators)
    def test_of_quadratic_constraints(self, tmp_path, rng) -> None:
        problem = some_qp(rng)
        n = problem.q.size
        rows = [(np.eye(n), numbers(rng, n), 0.1), (np.zeros((n, n)), numbers(rng, n), -3.0)]
        assert_lossless(
            QCQP(problem.P, problem.q, rows, sense=problem.sense), tmp_path / "file.npz"
        )

    @pytest.mark.parametrize("suffix", [".dat-s", ".cbf"])
    @into_files
    @given(rng=generators)
    def test_of_semidefinite_programs(self, tmp_path, suffix, rng) -> None:
        assert_lossless(some_sdp(rng, plain=suffix == ".dat-s"), tmp_path / f"file{suffix}")

    @into_files
    @given(rng=generators)
    def test_of_standard_forms(self, tmp_path, rng) -> None:
        lmi = some_sdp(rng, plain=True)
        matrices = [
            (*(block.matrix(i) for block in lmi.F), np.diag(numbers(rng, 2)))
            for i in range(lmi.c.size + 1)
        ]
        problem = SDP.standard(matrices[0], matrices[1:], lmi.c, offset=0.3, sense="max")
        assert_lossless(problem, tmp_path / "file.cbf")

    @into_files
    @given(rng=generators)
    def test_of_cone_programs(self, tmp_path, rng) -> None:
        cones = Cones(1, 2, (3, 2), (2, 3), 2, (0.3, (1, 2, 3), float(rng.uniform(0.01, 0.99))))
        n = int(rng.integers(1, 4))
        A = numbers(rng, cones.size, n)
        problem = ConeProgram(
            None, numbers(rng, n), A, numbers(rng, cones.size), cones, 0.1, "max", svec=False
        )
        assert_lossless(problem, tmp_path / "file.cbf")

    @pytest.mark.parametrize("suffix", [".mps", ".lp", ".cbf", ".npz"])
    def test_of_names(self, tmp_path, suffix) -> None:
        names = Names(("flow", "stock_1"), ("cap", "row.2"), ("balance",))
        lp = LP([1, 2], [[1, 1], [1, 0]], [3, 4], [[1, -1]], [0], [(0, 1), (-1, None)], names=names)
        assert_lossless(lp, tmp_path / f"file{suffix}")

    @pytest.mark.parametrize("suffix", [".mps", ".cbf", ".npz"])
    def test_of_names_in_other_alphabets(self, tmp_path, suffix) -> None:
        assert_lossless(
            LP([1, 2], [[1, 1]], [3], names=Names(("é", "β"), ("строка",))),
            tmp_path / f"file{suffix}",
        )

    @into_files
    @given(number=awkward)
    def test_of_single_numbers(self, tmp_path, number) -> None:
        assert_lossless(LP([number]), tmp_path / "file.mps")

    def test_of_pickled_nothing(self, tmp_path) -> None:
        """A file that would run code when loaded is refused."""
        path = tmp_path / "file.npz"
        np.savez(path, q=np.array([{}], dtype=object))
        with pytest.raises(klopt.InvalidProblem, match="expected numbers or texts, no pickles"):
            LP.from_file(path)


POWER = ConeProgram(None, [1], [[0], [0], [-1]], [1, 1, 0], Cones(power=(0.5,)))


class TestWhatAFormatCannotHoldIsRefused:
    @pytest.mark.parametrize(("problem", "name", "message"), [
        (QCQP(None, [1], [([[1.0]], [0], 1)]), "a.mps", "MPS files hold linear rows and a quadratic objective only"),
        (QCQP([[1.0]], [1]), "a.cbf", "CBF files hold no quadratic functions"),
        (SDP([1], [0, [[0, 1], [1, 0]]], sense="max"), "a.dat-s", "SDPA files cannot hold a program that maximises"),
        (SDP([1], [0, [[0, 1], [1, 0]]], offset=1), "a.dat-s", "a constant in the objective"),
        (SDP([1], [0, [[0, 1], [1, 0]]], None, None, [[1]], [1]), "a.dat-s", "equalities"),
        (QCQP([[1.0]], [1]), "a.dat-s", "cannot hold quadratic functions; write a .npz file"),
        (QCQP(None, [1], [([[1.0]], [0], 1)]), "a.dat-s", "cannot hold quadratic functions"),
        (QCQP(None, [1], soc=(1,), A_soc=[[1]], b_soc=[1]), "a.dat-s", "cannot hold second-order cones"),
        (LP([1], [[1]], [1], bounds=(None, None), names=Names(("a",), ("b",))), "a.dat-s", "cannot hold names"),
        (LP([1], bounds=(None, None)), "a.dat-s", "cannot hold a program without constraints"),
        (LP([1], [[1e-13]], [1]), "a.lp", "HiGHS cannot read 1e-13 in an LP file"),
        (LP([1], [[1e16]], [1]), "a.lp", "HiGHS cannot read 1e.16 in an LP file"),
        (LP([1e21], [[1]], [1]), "a.lp", "HiGHS cannot read 1e.21 in an LP file"),
        (QCQP([[1e-13]], [1]), "a.lp", "HiGHS cannot read 1e-13 in an LP file"),
        (SDP([1], [0, [[0, 1], [1, 0]]]), "a.npz", "hold no semidefinite blocks"),
        (LP([1], [[1]], [-np.inf]), "a.mps", "-inf"),
        (POWER, "a.npz", "hold no semidefinite blocks, exponential and power cones"),
        (POWER, "a.dat-s", "cannot hold exponential and power cones; write a .cbf file"),
        (POWER, "a.mps", "MPS files hold linear rows and a quadratic objective only"),
        (ConeProgram(None, [1], [[0]] * 3, [1, 0, 1], Cones(psd=(2,))), "a.cbf", r"times sqrt\(2\) .*svec=False"),
        (LP([1], names=Names(("a b",))), "a.mps", "'a b'"),
        (LP([1], names=Names(("free",))), "a.lp", "'free' means something else"),
        (LP([1]), "a.txt", "unknown kind of file; klopt knows .mps, .lp, .dat-s, .cbf, .npz"),
    ])  # fmt: skip
    def test_when_writing(self, tmp_path, problem, name, message) -> None:
        with pytest.raises(klopt.InvalidProblem, match=message):
            problem.to_file(tmp_path / name)

    @pytest.mark.parametrize(("problem", "name", "reader", "message"), [
        (QCQP([[1.0]], [1]), "a.mps", LP, "a quadratic objective, which LP does not hold; use QCQP.from_file"),
        (SDP([1], [0, [[0, 1], [1, 0]]]), "a.cbf", QCQP, "semidefinite blocks, which QCQP does not hold; use SDP"),
        (QCQP(None, [1], soc=(1,), A_soc=[[1]], b_soc=[1]), "a.cbf", SDP, "second-order cones, .*; use QCQP"),
        (POWER, "a.cbf", SDP, "power cones, which SDP does not hold; use ConeProgram.from_file"),
        (QCQP(None, [1], [([[1.0]], [0], 1)]), "a.npz", ConeProgram, "has quadratic constraints, .* use QCQP"),
        (SDP.standard([[1, 0], [0, 1]], [[[0, 1], [1, 0]]], [1]), "a.cbf", ConeProgram, "a program over X, .* use SDP"),
    ])  # fmt: skip
    def test_when_reading(self, tmp_path, problem, name, reader, message) -> None:
        problem.to_file(tmp_path / name)
        with pytest.raises(klopt.InvalidProblem, match=message):
            reader.from_file(tmp_path / name)


MPS = "NAME t\nROWS\n N cost\n L cap\nCOLUMNS\n x cost 1 cap 2\nRHS\n RHS cap 4\nBOUNDS\n UP BND x 3\nENDATA\n"
SDPA = '"a comment\n1 = mDIM\n1 = nBLOCK\n(2)\n{1.0}\n0 1 1 2 1\n1 1 1 1 1.0\n1 1 2 2 1\n'
CBF = "VER\n2\nOBJSENSE\nMIN\nVAR\n2 1\nL+ 2\nCON\n1 1\nL= 1\nOBJACOORD\n1\n0 1.5\n"
CBF += "ACOORD\n2\n0 0 1\n0 1 1\nBCOORD\n1\n0 -1\n"
BROKEN = [
    ("a.mps", MPS, "cap 2", "cap abc", "line 6: 'abc' is not a number"),
    ("a.mps", MPS, " x cost 1 cap 2", " x gap 2", "line 6: the row 'gap' is not in ROWS"),
    (
        "a.mps",
        MPS,
        " x cost 1 cap 2",
        " x cap 1 cap 2",
        "line 6: column 'x' has two entries in row 'cap'",
    ),
    (
        "a.mps",
        MPS,
        " x cost 1 cap 2",
        " M1 'MARKER' 'INTORG'\n x cost 1",
        "line 6: integer variables",
    ),
    ("a.mps", MPS, "UP BND x 3", "UP BND y 3", "line 10: the column 'y' is not in COLUMNS"),
    (
        "a.mps",
        MPS,
        "UP BND x 3",
        "BV BND x",
        "line 10: bound type BV: klopt solves continuous problems only",
    ),
    ("a.mps", MPS, " L cap", " Q cap", "line 4: expected a type"),
    ("a.mps", MPS, "RHS\n", "RSH\n", "line 7: unknown section 'RSH'"),
    ("a.mps", MPS, "ENDATA\n", "", "the file ends before ENDATA"),
    ("a.mps", MPS, " N cost\n", " G cost\n", "the objective is missing"),
    ("a.dat-s", SDPA, "1 1 1 1 1.0", "1 1 1 1 x", "line 7: 'x' is not a number"),
    ("a.dat-s", SDPA, "1 1 1 1 1.0", "1 1 1 1", "line 7: expected 5 numbers, found 4"),
    ("a.dat-s", SDPA, "1 1 2 2 1", "1 1 1 1 1", "line 8: this entry was given before"),
    ("a.dat-s", SDPA, "1 1 2 2 1", "1 1 2 3 1", "line 8: the entry lies outside its block"),
    ("a.dat-s", SDPA, "1 1 2 2 1", "2 1 2 2 1", "line 8: the matrix must be one of 0..1"),
    ("a.dat-s", SDPA, "(2)", "(2.5)", "line 4: '2.5' is not a count or an index"),
    ("a.dat-s", "1\n1\n", "1\n1\n", "1\n1\n", "the file ends before the sizes of the blocks"),
    ("a.cbf", CBF, "0 1.5", "5 1.5", "line 13: '5 1.5' lies outside the problem"),
    ("a.cbf", CBF, "0 1.5", "0 one", "line 13: 'one' is not a number"),
    ("a.cbf", CBF, "L+ 2", "EXP* 2", "line 7: klopt reads no EXP* cones"),
    ("a.cbf", CBF, "L+ 2", "EXP 2", "line 7: an exponential cone has three entries"),
    ("a.cbf", CBF, "L+ 2", "@0:POW 2", "line 7: POWCONES declares no cone @0:POW"),
    (
        "a.cbf",
        CBF,
        "OBJSENSE",
        "POWCONES\n1 2\n2\n1\n0\nOBJSENSE",
        "line 7: the weight '0' is not positive",
    ),
    (
        "a.cbf",
        CBF,
        "OBJSENSE",
        "POWCONES\n1 3\n2\n1\n1\nOBJSENSE",
        "line 4: the power cones have 2 weights, not 3",
    ),
    (
        "a.cbf",
        CBF,
        "OBJSENSE",
        "POWCONES\n1 2\n2\n1\n1e-900000000\nOBJSENSE",
        "line 7: '1e-900000000' has an exponent beyond",
    ),
    ("a.cbf", CBF, "2 1\nL+ 2", "3 1\nL+ 2", "line 6: the cones of VAR have 2 rows, not 3"),
    (
        "a.cbf",
        CBF,
        "BCOORD\n1\n0 -1\n",
        "INT\n1\n0\n",
        "section 'INT': klopt solves continuous problems only",
    ),
    (
        "a.cbf",
        CBF,
        "BCOORD\n1\n0 -1\n",
        "BCOORD\n2\n0 -1\n",
        "the file ends before an entry of BCOORD",
    ),
    ("a.lp", "min\n obj: x\nst\n c1: x + y <=\nend\n", "x", "x", "line 5: expected a number"),
    ("a.lp", "min\n obj: x\nst\n c1: x + y <= 1\n", "x", "x", "line 4: the file ends before End"),
    (
        "a.cbf",
        "# klopt: names of columns and rows [1]\n" + CBF,
        "1]",
        "1]",
        "line 1: not two lists of names",
    ),
    ("a.npz", "PK no", "P", "P", "not an archive of plain arrays"),
]


class TestMalformedFiles:
    @pytest.mark.parametrize(
        ("name", "text", "old", "new", "message"), BROKEN, ids=[entry[-1][:40] for entry in BROKEN]
    )
    def test_are_refused_with_their_line(self, tmp_path, name, text, old, new, message) -> None:
        assert old in text
        path = tmp_path / name
        path.write_text(text.replace(old, new))
        with pytest.raises(klopt.InvalidProblem) as refusal:
            formats.read(path)
        assert str(path) in str(refusal.value)
        assert message in str(refusal.value)

    @pytest.mark.parametrize("name", ["none.mps", "none.lp", "none.dat-s", "none.cbf", "none.npz"])
    def test_a_missing_file_is_missing(self, tmp_path, name) -> None:
        with pytest.raises(FileNotFoundError, match=name.replace(".", r"\.")):
            formats.read(tmp_path / name)


class TestWhatFilesMean:
    def test_mps_says_ranges_bounds_and_constants(self, tmp_path) -> None:
        path = tmp_path / "a.mps"
        path.write_text(
            "* a comment\nNAME\nOBJSENSE\n    MAX\nROWS\n N obj\n G low\n L cap\n E bal\n N idle\n"
            "COLUMNS\n x obj 1 low 1\n x cap 1 bal 1\n y cap 2 idle 1\n z bal 1\n"
            "RHS\n RHS obj -5 low 1\n RHS cap 8 bal 2\nRANGES\n RNG cap 3 low 2\n RNG bal -1\n"
            "BOUNDS\n UP BND x -1\n FR BND y\n MI BND z\n UP BND z 1e30\nENDATA\n"
        )
        lp = LP.from_file(path)
        assert (lp.sense, lp.offset) == ("max", 5.0)
        assert lp.bounds.tolist() == [[-np.inf, -1], [-np.inf, np.inf], [-np.inf, np.inf]]
        assert lp.names.ub == ("low", "low:lower", "cap", "cap:lower", "bal", "bal:lower", "idle")
        assert lp.b_ub.tolist() == [3, -1, 8, -5, 2, -1, np.inf]
        assert lp.A_ub.toarray()[:2].tolist() == [[1, 0, 0], [-1, 0, 0]]

    def test_fixed_format_names_may_hold_spaces(self, tmp_path) -> None:
        path = tmp_path / "a.mps"
        rows = "ROWS\n N  COST\n L  MY ROW\nCOLUMNS\n"
        entry = "    MY COL    COST      1.0            MY ROW    2.0\n"
        path.write_text(f"NAME\n{rows}{entry}RHS\n    RHS       MY ROW    4.0\nENDATA\n")
        assert LP.from_file(path).names == Names(("MY COL",), ("MY ROW",))

    def test_quadratic_mps_is_half_of_a_triangle_or_all_of_a_matrix(self, tmp_path) -> None:
        path = tmp_path / "a.mps"
        head = "NAME\nROWS\n N obj\nCOLUMNS\n x obj 1\n y obj 1\nRHS\n"
        path.write_text(f"{head}QUADOBJ\n x x 2\n x y 1\n y y 3\nENDATA\n")
        assert QCQP.from_file(path).P.toarray().tolist() == [[2, 1], [1, 3]]
        path.write_text(f"{head}QMATRIX\n x x 2\n x y 1\n y x 1\n y y 3\nENDATA\n")
        assert QCQP.from_file(path).P.toarray().tolist() == [[2, 1], [1, 3]]

    def test_sdpa_numbers_may_stand_in_brackets(self, tmp_path) -> None:
        path = tmp_path / "a.dat-s"
        path.write_text(
            '* one\n"two\n 2 =mDIM\n2\n{2, -2}\n{1.5,\n +2D0}\n0,1,1,2,3\n1 1 2 1 4\n2 2 1 1 5\n0 2 2 2 -1\n'
        )
        sdp = SDP.from_file(path)
        assert sdp.c.tolist() == [1.5, 2.0]
        assert sdp.F[0].matrix(0).tolist() == [[0, 3], [3, 0]]
        assert sdp.F[0].matrix(1).tolist() == [[0, 4], [4, 0]]
        assert sdp.A_ub.toarray().tolist() == [[0, -5], [0, 0]]
        assert sdp.b_ub.tolist() == [0, 1]

    def test_cbf_rotated_cones_are_turned(self, tmp_path) -> None:
        """Minimise x_0 + x_1 subject to 2 x_0 x_1 >= x_2^2 and x_2 = 1: the optimum is sqrt(2)."""
        path = tmp_path / "a.cbf"
        path.write_text(
            "VER\n1\nOBJSENSE\nMIN\nVAR\n3 1\nQR 3\nCON\n1 1\nL= 1\nOBJACOORD\n2\n0 1\n1 1\n"
            "ACOORD\n1\n0 2 1\nBCOORD\n1\n0 -1\n"
        )
        assert klopt.solve(QCQP.from_file(path)).require().value == pytest.approx(np.sqrt(2))

    def test_cbf_exponential_cones_begin_with_their_bound(self, tmp_path) -> None:
        """Minimise x_0 over x_0 >= x_1 exp(x_2 / x_1), x_1 = 2, x_2 = 1: 2 sqrt(e)."""
        path = tmp_path / "a.cbf"
        path.write_text(
            "VER\n2\nOBJSENSE\nMIN\nVAR\n3 1\nEXP 3\nCON\n2 1\nL= 2\nOBJACOORD\n1\n0 1\n"
            "ACOORD\n2\n0 1 1\n1 2 1\nBCOORD\n2\n0 -2\n1 -1\n"
        )
        result = klopt.solve(ConeProgram.from_file(path)).require()
        assert result.lower <= 2 * np.exp(0.5) <= result.upper

    def test_cbf_power_cones_divide_weights_by_their_sum(self, tmp_path) -> None:
        """Maximise x_2 over x_0^(1/3) x_1^(2/3) >= |x_2|, x_0 = 8, x_1 = 1: 2."""
        path = tmp_path / "a.cbf"
        path.write_text(
            "VER\n3\nPOWCONES\n1 2\n2\n0.1\n0.2\nOBJSENSE\nMAX\nVAR\n3 1\n@0:POW 3\nCON\n2 1\nL= 2\n"
            "OBJACOORD\n1\n2 1\nACOORD\n2\n0 0 1\n1 1 1\nBCOORD\n2\n0 -8\n1 -1\n"
        )
        program = ConeProgram.from_file(path)
        # The decimals are what they say: 0.1 : 0.2 is 1 : 2, which floats are not.
        assert program.cones.power == ((1, 2),)
        result = klopt.solve(program).require()
        assert result.lower <= 2 <= result.upper

    def test_cbf_matrix_variables_beside_scalars_become_entries(self, tmp_path) -> None:
        """Minimise t subject to t >= <I, X>, X_01 = 1, X psd: the optimum is 2."""
        path = tmp_path / "a.cbf"
        path.write_text(
            "VER\n2\nOBJSENSE\nMIN\nPSDVAR\n1\n2\nVAR\n1 1\nF 1\nCON\n2 2\nL+ 1\nL= 1\nOBJACOORD\n1\n0 1\n"
            "FCOORD\n3\n0 0 0 0 -1\n0 0 1 1 -1\n1 0 1 0 0.5\nACOORD\n1\n0 0 1\nBCOORD\n1\n1 -1\n"
        )
        assert klopt.solve(SDP.from_file(path)).require().value == pytest.approx(2, abs=1e-5)

    def test_cbf_bounds_that_others_write_are_rows(self, tmp_path) -> None:
        path = tmp_path / "a.cbf"
        path.write_text(CBF)
        lp = LP.from_file(path)
        assert lp.bounds.tolist() == [[0, np.inf], [0, np.inf]]
        assert lp.b_eq.tolist() == [1]

    def test_sedumi_archives_are_read(self, tmp_path) -> None:
        """Minimise -x_1 subject to x_0 = 1, (x_0, x_1) in a second-order cone: -1."""
        A = sparse.csc_array([[1.0, 0.0]])
        parts = {
            f"A_{part}": np.asarray(getattr(A, part))
            for part in ("data", "indices", "indptr", "shape")
        }
        path = tmp_path / "a.npz"
        np.savez(path, b=[1.0], c=[0.0, -1.0], K_f=0, K_l=0, K_q=[2], K_s=np.zeros(0), **parts)
        assert klopt.solve(QCQP.from_file(path)).require().value == pytest.approx(-1, abs=1e-6)

    @into_files
    @given(rng=generators)
    def test_highs_reads_the_same_linear_program(self, tmp_path, rng) -> None:
        problem = some_lp(rng, vacuous=False)
        path = tmp_path / "file.mps"
        problem.to_file(path)
        highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        highs.setOptionValue("small_matrix_value", 1e-12)
        highs.readModel(str(path))
        lp = highs.getLp()
        assert np.array_equal(lp.col_cost_, problem.c)
        assert np.array_equal(np.column_stack((lp.col_lower_, lp.col_upper_)), problem.bounds)
        assert np.array_equal(lp.row_upper_, np.concatenate((problem.b_ub, problem.b_eq)))
        assert lp.offset_ == problem.offset


class TestWhatLpFilesMean:
    """HiGHS reads the same of files that it reads without losing anything; the rest is by hand."""

    def as_highs_reads_it(self, path: Path) -> tuple[object, ...]:
        highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        assert highs.readModel(str(path)) != highspy.HighsStatus.kError
        lp = highs.getLp()
        parts = (lp.a_matrix_.value_, lp.a_matrix_.index_, lp.a_matrix_.start_)
        A = sparse.csc_array(tuple(map(np.array, parts)), shape=(lp.num_row_, lp.num_col_))
        vectors = (lp.col_cost_, lp.row_lower_, lp.row_upper_, lp.col_lower_, lp.col_upper_)
        sense = "max" if lp.sense_ == highspy.ObjSense.kMaximize else "min"
        names = (tuple(lp.col_names_), tuple(lp.row_names_))
        return A.toarray().tolist(), [list(each) for each in vectors], lp.offset_, sense, names

    def as_klopt_reads_it(self, path: Path) -> tuple[object, ...]:
        model = formats.read(path)
        vectors = (model.c, model.row_lower, model.row_upper, model.lower, model.upper)
        lists = [each.tolist() for each in vectors]
        names = (model.names.columns, model.names.ub)
        return model.A.toarray().tolist(), lists, model.offset, model.sense, names

    @into_files
    @given(rng=generators)
    def test_is_what_highs_reads_of_what_klopt_writes(self, tmp_path, rng) -> None:
        path = tmp_path / "file.lp"
        some_lp(rng, vacuous=False).to_file(path)
        assert self.as_klopt_reads_it(path) == self.as_highs_reads_it(path)

    @into_files
    @given(rng=generators)
    def test_is_what_highs_reads_of_what_highs_writes(self, tmp_path, rng) -> None:
        path = tmp_path / "file.lp"
        some_lp(rng, vacuous=False).to_file(path)
        highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        highs.readModel(str(path))
        again = tmp_path / "again.lp"
        highs.writeModel(str(again))
        found = self.as_klopt_reads_it(again)
        assert found == self.as_highs_reads_it(again)

    @pytest.mark.parametrize(
        "text",
        [
            "min\n x\nst\n c1: x + y >= 1\nbounds\n x <= -5\nend\n",
            "min\n x\nst\n c1: x + x + y >= 1\nend",
            "MAXIMIZE\n 3 x + 4\nSubject To\n c1: x >= + 2\n c2: x >= - 2\nEND\n",
            "min\nobj: 0 x\nst\n c1: x + y >= -1e30\n c2: x<= 1e20\n c3: x >= -inf\nbounds\n x >= 2\n"
            " x<= 1\nw<=3\nend",
            "min\n -x1 + x.2 + (a)\nst\n c1: x1 >= 2 \\ a comment\nbounds\n x1 free\n x.2 = 3\nend",
            "min\n 3x + 2.5e1y\nst\n c1: x + y <= 4\nbounds\n -inf <= y <= 3\n x >= 1 x <= 3\nend",
        ],
    )
    def test_by_examples_is_what_highs_reads(self, tmp_path, text) -> None:
        path = tmp_path / "file.lp"
        path.write_text(text)
        assert self.as_klopt_reads_it(path) == self.as_highs_reads_it(path)

    def test_where_highs_drops_numbers_they_are_kept(self, tmp_path) -> None:
        path = tmp_path / "file.lp"
        path.write_text(
            "min\n x + [ 3 x^2 - 2 x * y + 4 y ^2 ] / 2 - 0.5\nst\n c1: x + 3 + 1e-15 y >= 1\n"
            " 1 =< x + 2 y =< 3\n c3: 5 => y\nbounds\n 3 >= x >= -1\nend\n"
        )
        model = formats.read(path)
        assert model.A.toarray().tolist() == [[1, 1e-15], [1, 2], [0, 1]]
        assert model.row_lower.tolist() == [-2, 1, -np.inf]
        assert model.row_upper.tolist() == [np.inf, 3, 5]
        assert model.P.toarray().tolist() == [[3, -1], [-1, 4]]
        assert (model.lower.tolist(), model.upper.tolist()) == ([-1, 0], [3, np.inf])
        assert model.offset == -0.5
        assert model.names.ub == ("c1", "R1", "c3")

    def test_decimals_are_kept_and_added_before_they_are_rounded(self, tmp_path) -> None:
        path = tmp_path / "file.lp"
        path.write_text(
            "min\n 0.1 x + 0.2 x\nst\n c1: x + 0.1 y + 0.2 y >= 0.3\nbounds\n x <= 0.7\nend\n"
        )
        lp = LP.from_file(path, exact=True)
        tenth = Fraction(1, 10)
        assert lp.decimals.c == (3 * tenth, 0)
        assert lp.decimals.ub == (((0, Fraction(-1)), (1, -3 * tenth)),)
        assert lp.decimals.b_ub == (-3 * tenth,)
        assert lp.decimals.bounds[0] == (0, 7 * tenth)
        assert LP.from_file(path).c.tolist() == [0.3, 0.0]  # not 0.1 + 0.2

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("max\n x\nst\n c: x >= 1\n c: x <= 2\nend", "line 5: the row 'c' was named before"),
            ("min\n x\nst\n c: x >= y\nend", "line 4: expected a number, found 'y'"),
            ("min\n x\nst\n c: 2 x 3 y >= 1\nend", "line 4: expected a sign before '3'"),
            ("min\n x\nst\n c: 2 3 y >= 1\nend", "line 4: '3' follows a number"),
            ("min\n x\nst\n c: x^2 >= 1\nend", "line 4: expected <=, >= or =, found '^'"),
            ("min\n x\nst\n c: [ x^2 ] >= 1\nend", "line 4: quadratic constraints"),
            ("min\n [ x^2 ]\nst\n c: x >= 1\nend", "line 3: expected '/', found 'st'"),
            (
                "min\n x\nst\n c: x >= 1\ngeneral\n x\nend",
                "line 5: section 'general': klopt solves",
            ),
            ("min\n x\nst\n c: 1e400 x >= 1\nend", "line 4: the coefficient 1e400 is not a finite"),
            ("min\n x\nst\n c: x >= 1\nend\n more", "line 6: 'more' stands after End"),
            ("mni\n x\nend", "line 1: expected Minimize or Maximize, found 'mni'"),
            ("min\n x y\nst\n c: x >= 1\nend", "line 2: expected a sign, a term or Subject To"),
        ],
    )
    def test_misprints_are_refused_with_their_line(self, tmp_path, text, message) -> None:
        path = tmp_path / "file.lp"
        path.write_text(text)
        with pytest.raises(klopt.InvalidProblem) as refusal:
            formats.read(path)
        assert message in str(refusal.value)


DATA = Path(os.environ["KLOPT_DATA"]) if "KLOPT_DATA" in os.environ else None
PUBLIC = (
    []
    if DATA is None
    else sorted(p for f in ("lp", "qp", "sdp", "socp") for p in (DATA / f).glob("*.*"))
)
READERS = {"lp": LP, "qp": QCQP, "sdp": SDP, "socp": QCQP}


@pytest.mark.skipif(not PUBLIC, reason="KLOPT_DATA does not name a folder with public instances")
@pytest.mark.parametrize(
    "path", PUBLIC or [Path("none")], ids=lambda path: f"{path.parent.name}/{path.name}"
)
def test_public_instances_are_read(path: Path, tmp_path: Path) -> None:
    reader = READERS[path.parent.name]
    if path.name == "VALUES.npz":
        with pytest.raises(
            klopt.InvalidProblem,
            match=r"not positive semidefinite: its smallest eigenvalue is -1\.27",
        ):
            reader.from_file(path)
        return
    problem = reader.from_file(path)
    assert problem.form.shape[1] > 0
    if "".join(path.suffixes) != ".npz" or path.parent.name == "qp":
        assert_lossless(problem, tmp_path / path.name)
    if path.suffix == ".mps":
        highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        highs.readModel(str(path))
        lp = highs.getLp()
        assert np.array_equal(lp.col_cost_, problem.c)
        assert np.array_equal(np.column_stack((lp.col_lower_, lp.col_upper_)), problem.bounds)
        assert lp.offset_ == problem.offset
        assert len(lp.a_matrix_.value_) <= problem.A_ub.nnz + problem.A_eq.nnz
