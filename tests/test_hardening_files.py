"""Files and arrays that nobody vouches for are read, or refused by klopt's own error.

What was once a crash, a raw exception or a request for gigabytes stands here case by case; the
fuzzer of `tests/fuzz` looks for others, here in a short run that is the same every time.
"""

from __future__ import annotations

import io
import os
import sys
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from fuzz.fuzz_files import KINDS, archive, fuzz, quadratic_parts, sedumi_parts
from scipy import sparse

import klopt
from klopt.arrays import csc, matrix, memory_budget, require_memory
from klopt.cli.main import main
from klopt.engine.lookup import read_problem
from klopt.kernels.graphs import class_labels, laplacian
from klopt.kernels.side_information import side_graph
from klopt.learners import SKL
from klopt.papers.experiments.datasets import load, read_csv, read_npz
from klopt.problems import LP, QCQP, SDP
from klopt.programs import formats
from klopt.programs.formats.source import SourceFile, reading

ONES = np.ones(3)
CBF = "VER\n1\nOBJSENSE\nMIN\nVAR\n{} 1\nF 3\n"


def corrupt(kind: str, part: str, place: int, value: int) -> object:
    """A 3 x 3 sparse array whose index or pointer was overwritten after it was made."""
    made = sparse.csc_array(np.diag([1.0, 2.0, 3.0])).asformat(kind)
    getattr(made, part)[place] = value
    return made


COMPRESSED = [
    (kind, part, place, value)
    for kind in ("csc", "csr", "bsr")
    for part, place, value in (
        ("indices", 2, 40),
        ("indices", 2, -1),
        ("indices", 0, -5000),
        ("indices", 2, 5_000_000),
        ("indptr", 1, 100_000_000),
        ("indptr", 0, 1),
        ("indptr", 3, 9),
        ("indptr", 2, 0),
    )
]
DOORS = {
    "LP, A_ub": lambda A: LP(ONES, A_ub=A, b_ub=ONES),
    "LP, A_eq": lambda A: LP(ONES, A_eq=A, b_eq=ONES),
    "QCQP, P": lambda A: QCQP(A, ONES),
    "QCQP, quadratics": lambda A: QCQP(None, ONES, [(A, ONES, 1.0)]),
    "QCQP, A_soc": lambda A: QCQP(None, ONES, A_soc=A, b_soc=ONES, soc=[3]),
    "SDP, F": lambda A: SDP([1.0], [A, np.eye(3)]),
    "SDP.standard": lambda A: SDP.standard(A, [np.eye(3)], [1.0]),
    "ConeForm": lambda A: klopt.ConeForm(ONES, A, ONES, klopt.Cones(nonneg=3)),
    "Gram": klopt.Gram.of,
    "laplacian": laplacian,
    "side": lambda A: side_graph(A, 3),
    "learner": lambda A: SKL(graph="precomputed").fit(A, [0, 1, -1]),
    "matrix": lambda A: matrix("A", A),
}


class TestSparseArrays:
    @pytest.mark.parametrize(("kind", "part", "place", "value"), COMPRESSED)
    def test_with_wrong_indices_or_pointers_are_refused(self, kind, part, place, value) -> None:
        with pytest.raises(klopt.InvalidProblem, match=rf"A\.{part}.*the sparse array is corrupt"):
            csc("A", corrupt(kind, part, place, value))

    @pytest.mark.parametrize("door", DOORS)
    @pytest.mark.parametrize("value", [40, -1])
    def test_are_refused_at_every_door(self, door, value) -> None:
        for kind in ("csc", "csr"):
            with pytest.raises(klopt.InvalidProblem, match="the sparse array is corrupt"):
                DOORS[door](corrupt(kind, "indices", 2, value))

    @pytest.mark.parametrize("part", ["row", "col"])
    def test_of_coordinates_are_checked(self, part) -> None:
        made = sparse.coo_array(np.eye(3))
        getattr(made, part)[1] = -7
        with pytest.raises(klopt.InvalidProblem, match=rf"A\.{part}\[1\] is -7; expected 0 to 2"):
            csc("A", made)

    def test_of_lists_are_checked(self) -> None:
        longer = sparse.lil_array(np.eye(3))
        longer.data[1] = [1.0, 2.0, 3.0]
        outside = sparse.lil_array(np.eye(3))
        outside.rows[2] = [7]
        for made in (longer, outside):
            with pytest.raises(klopt.InvalidProblem, match="the sparse array is corrupt"):
                csc("A", made)

    def test_of_diagonals_are_checked(self) -> None:
        fewer = sparse.dia_array(np.eye(3) + np.eye(3, k=1))
        fewer.offsets = fewer.offsets[:1]
        outside = sparse.dia_array(np.eye(3))
        outside.offsets = np.array([2**30])
        for made in (fewer, outside):
            with pytest.raises(klopt.InvalidProblem, match="the sparse array is corrupt"):
                csc("A", made)

    def test_of_dictionaries_are_checked(self) -> None:
        made = sparse.dok_array(np.eye(3))
        made._dict[2**40, -5] = 1.0
        with pytest.raises(klopt.InvalidProblem, match="the sparse array is corrupt"):
            csc("A", made)

    def test_with_room_to_spare_are_read_without_it(self) -> None:
        made = sparse.csc_array(np.diag([1.0, 2.0, 3.0]))
        made.indptr[3] = 2  # the last column loses its entry
        made.data[2] = np.nan
        assert np.array_equal(csc("A", made).toarray(), np.diag([1.0, 2.0, 0.0]))

    def test_with_false_flags_are_made_canonical(self) -> None:
        made = sparse.csc_array(([1.0, 2.0, 4.0], [2, 0, 2], [0, 3, 3, 3]), shape=(3, 3))
        made.has_canonical_format = True
        found = csc("A", made)
        assert found.data.tolist() == [2.0, 5.0]
        assert found.indices.tolist() == [0, 2]

    def test_whose_shape_does_not_fit_32_bits_are_refused(self) -> None:
        with pytest.raises(klopt.InvalidProblem, match="indices go up to 2147483647"):
            csc("A", sparse.coo_array(([1.0], ([0], [0])), shape=(2**40, 2)))

    @pytest.mark.parametrize("kind", ["csc", "csr", "bsr", "coo", "dia", "lil", "dok"])
    def test_that_are_sound_keep_their_numbers(self, kind) -> None:
        dense = np.array([[1.0, 0, 2], [0, 3, 0], [4, 0, 5]])
        for make in (sparse.csc_array, sparse.csc_matrix):
            given = make(dense).asformat(kind)
            assert np.array_equal(csc("A", given).toarray(), dense)
            assert np.array_equal(matrix("A", given), dense)


def test_labels_too_large_to_be_whole_numbers_are_refused() -> None:
    with pytest.raises(klopt.InvalidProblem, match=r"labels\[1\] is 1e\+300"):
        class_labels([0, 1e300])


def npz(**parts: object) -> bytes:
    A = {"A_data": ONES, "A_indices": [0, 1, 2], "A_indptr": [0, 1, 3], "A_shape": [3, 2]}
    P = {"P_data": [], "P_indices": [], "P_indptr": [0, 0, 0], "P_shape": [2, 2]}
    given = P | A | {"q": np.ones(2), "r": 0.0, "l": np.zeros(3), "u": np.ones(3)} | parts
    whole = {
        name: np.array(given[name], np.int32)
        for name in given
        if name.endswith(("indices", "indptr"))
    }
    return archive(given | whole, packed=True)


def plain_npy() -> bytes:
    content = io.BytesIO()
    np.save(content, ONES)
    return content.getvalue()


WRONG = {
    "index 5000000.npz": (npz(A_indices=[0, 1, 5000000]), r"A.indices\[2\] is 5000000"),
    "index -5000.npz": (npz(A_indices=[0, 1, -5000]), r"A.indices\[2\] is -5000"),
    "index -1.npz": (npz(A_indices=[0, 1, -1]), r"A.indices\[2\] is -1"),
    "index 40.npz": (npz(A_indices=[0, 1, 40]), r"A.indices\[2\] is 40"),
    "pointer 100000000.npz": (npz(A_indptr=[0, 100000000, 3]), r"A.indptr\[2\] is 3"),
    "kind GE.mps": (
        b"NAME t\nROWS\n N obj\n GE r1\nCOLUMNS\n x obj 1 r1 1\nRHS\n RHS r1 4\nENDATA\n",
        r"line 4: expected a type \(N, L, G or E\)",
    ),
    "size inf.cbf": (CBF.format("inf").encode(), "line 6: 'inf' is not a count"),
    "size 1e400.cbf": (CBF.format("1e400").encode(), "line 6: '1e400' is not a count"),
    "deep names.cbf": (
        b"# klopt: names of columns and rows " + b"[" * 200000 + b"\n" + CBF.format(3).encode(),
        "line 1: not two lists of names",
    ),
    "empty bound row.cbf": (
        b"VER\n2\nOBJSENSE\nMIN\n# klopt: the last 6 rows of CON are bounds of variables\n"
        b"VAR\n3 1\nF 3\nCON\n7 1\nL- 7\n",
        "not one entry each; remove the comment",
    ),
    "count 1e15.cbf": (
        b"VER\n1\nOBJSENSE\nMIN\nVAR\n3 1\nF 3\nOBJACOORD\n1e15\n0 1\n",
        "line 9: '1e15' is not a count",
    ),
    "n inf.dat-s": (b"inf\n1\n2\n1 1\n", "line 1: 'inf' is not a count"),
    "blocks inf.dat-s": (b"1\ninf\n2\n1 1\n", "line 2: 'inf' is not a count"),
    "plain npy.npz": (plain_npy(), "not an archive of plain arrays"),
    "method.npz": (npz().replace(b"\x08\x00", b"\x63\x00"), "not an archive of plain arrays"),
    "sense inf.npz": (npz(sense=np.array(np.inf)), r"sense\[0\] is inf"),
    "K_f inf.npz": (
        npz(K_q=[3], K_f=np.inf, K_l=0, b=np.zeros(3), c=np.zeros(2)),
        r"K_f\[0\] is inf",
    ),
    "l 2-d.npz": (npz(l=np.zeros((1, 3))), r"l has shape \(1, 3\)"),
    "l short.npz": (npz(l=np.zeros(1)), "l has 1 entries; expected 3"),
    "u text.npz": (npz(u=np.array(["a", "b", "c"])), "u has dtype <U1"),
    "shape 2^40.npz": (npz(A_shape=[2**40, 2]), "indices go up to 2147483647"),
    "names short.npz": (
        npz(rows=np.array(["r"]), columns=np.array(["a", "b"])),
        "names.ub holds 1 names; expected",
    ),
    "q missing.npz": (archive({k: v for k, v in quadratic_parts().items() if k != "q"}, True), "'q' is missing"),
    "index float.npz": (
        archive(quadratic_parts() | {"A_indices": np.array([0.5, 1, 2])}, False),
        "expected whole numbers",
    ),
    "two of one.npz": (None, "is there twice"),
    "deep.lp": (b"min\n obj: " + b"[ " * 5000 + b"\n", "expected the name of a variable"),
    "underscore.mps": (b"NAME\nROWS\n N c\n L r\nCOLUMNS\n x c 1_0\nENDATA\n", "line 6: '1_0' is not a number"),
    "infinite.mps": (b"NAME\nROWS\n N c\n L r\nCOLUMNS\n x r 1e400\nENDATA\n", "line 6: '1e400' is not a finite"),
}  # fmt: skip


class TestFiles:
    @pytest.mark.parametrize("name", WRONG)
    def test_are_refused_with_their_name_and_what_is_wrong(self, tmp_path, name) -> None:
        content, message = WRONG[name]
        path = tmp_path / name
        if content is None:
            with zipfile.ZipFile(path, "w") as made:
                made.writestr("q.npy", plain_npy())
                with pytest.warns(UserWarning, match="Duplicate"):
                    made.writestr("q.npy", plain_npy())
        else:
            path.write_bytes(content)
        with pytest.raises(klopt.InvalidProblem, match=message) as refusal:
            read_problem(str(path), None, 0)
        assert str(path) in str(refusal.value)

    def test_may_hold_names_that_are_not_utf_8(self, tmp_path) -> None:
        path = tmp_path / "latin.lp"
        path.write_bytes(b"Minimize\n obj: x\nSubject To\n \xff: x >= 1\nEnd\n")
        assert read_problem(str(path), None, 0).names.ub == ("\xff",)

    def test_whatever_nobody_thought_of_is_said_of_the_file(self, tmp_path) -> None:
        place = tmp_path / "a.mps"
        for error in (KeyError("x"), RecursionError("deep"), AssertionError(), MemoryError()):
            with (
                pytest.raises(klopt.InvalidProblem, match=r"a\.mps, line 7: "),
                reading(place) as source,
            ):
                self.fail_in(source, error)

    def fail_in(self, source: SourceFile, error: Exception) -> None:
        source.line = 7
        raise error

    def test_ctrl_c_is_no_error_of_a_file(self, tmp_path) -> None:
        with pytest.raises(KeyboardInterrupt), reading(tmp_path / "a.mps"):
            raise KeyboardInterrupt

    def test_the_terminal_shows_a_sentence(self, tmp_path) -> None:
        path = tmp_path / "a.mps"
        path.write_bytes(b"\x00\xff" * 50)
        found = CliRunner().invoke(main, ["solve", str(path)])
        assert found.exit_code == 2
        assert "Traceback" not in found.output

    @pytest.mark.parametrize("suffix", [".mps", ".lp", ".dat-s", ".cbf", ".npz"])
    def test_folders_are_none(self, tmp_path, suffix) -> None:
        path = tmp_path / f"folder{suffix}"
        path.mkdir()
        with pytest.raises(klopt.InvalidProblem, match="is a folder; give the path of a regular"):
            formats.read(path)

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
    @pytest.mark.parametrize("suffix", [".mps", ".lp", ".npz"])
    def test_pipes_are_none_and_nobody_waits_for_them(self, tmp_path, suffix) -> None:
        path = tmp_path / f"pipe{suffix}"
        os.mkfifo(path)
        with pytest.raises(klopt.InvalidProblem, match="is a pipe"):
            formats.read(path)

    @pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there are no devices")
    def test_devices_are_none(self, tmp_path) -> None:
        path = tmp_path / "endless.mps"
        path.symlink_to("/dev/zero")
        with pytest.raises(klopt.InvalidProblem, match="is a device"):
            formats.read(path)
        found = CliRunner().invoke(main, ["solve", "/dev/zero"])
        assert found.exit_code == 2

    @pytest.mark.skipif(
        not hasattr(os, "geteuid") or os.geteuid() == 0, reason="everything may be read by root"
    )
    def test_that_may_not_be_read_say_so(self, tmp_path) -> None:
        path = tmp_path / "secret.mps"
        path.write_text("NAME\n")
        path.chmod(0)
        with pytest.raises(klopt.InvalidProblem, match="cannot be read: Permission denied"):
            formats.read(path)

    def test_of_data_are_checked_too(self, tmp_path) -> None:
        points = tmp_path / "points.npz"
        np.savez(
            points, X_data=ONES, X_indices=[0, 1, 5000], X_indptr=[0, 2, 3], X_shape=[2, 2], y=[0, 1]
        )  # fmt: skip
        with pytest.raises(klopt.InvalidProblem, match=r"points\.npz: X\.indices\[2\] is 5000"):
            read_npz(points)
        table = tmp_path / "table.csv"
        table.write_bytes(b"1,2,a\n3,4,b\n" + b"5," + b"x" * 200_000 + b",c\n")
        with pytest.raises(klopt.InvalidProblem, match=r"table\.csv, line 2: .*field larger"):
            read_csv(table)


def header_of(shape: str) -> bytes:
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117)
    return b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + text + b"\n" + bytes(100)


class TestSizes:
    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("block.dat-s", "1\n1\n100000\n1\n0 1 1 1 1\n1 1 2 2 1\n"),
            ("many.dat-s", f"20000\n20000\n{'2 ' * 20000}\n{'1 ' * 20000}\n"),
            ("order.cbf", "VER\n1\nOBJSENSE\nMIN\nVAR\n1 1\nF 1\nPSDCON\n1\n200000\n"),
            ("variables.cbf", "VER\n1\nOBJSENSE\nMIN\nVAR\n2000000000 1\nF 2000000000\n"),
            ("entries.cbf", "VER\n1\nOBJSENSE\nMIN\nPSDVAR\n1\n60000\nVAR\n1 1\nF 1\n"),
        ],
    )
    def test_are_compared_with_the_limit_before_memory_is_taken(self, tmp_path, name, text) -> None:
        path = tmp_path / name
        path.write_text(text)
        tracemalloc.start()
        with pytest.raises(klopt.InvalidProblem, match=r"of memory; .* are allowed"):
            formats.read(path, memory_limit=1e9)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 1e8

    def test_in_the_header_of_an_array_must_be_those_that_are_stored(self, tmp_path) -> None:
        path = tmp_path / "header.npz"
        with zipfile.ZipFile(path, "w") as made:
            made.writestr("q.npy", header_of("(1000000000000,)"))
        with pytest.raises(klopt.InvalidProblem, match="takes 8000000000000 bytes, but 100 are"):
            formats.read(path)

    def test_of_a_bomb_are_read_from_its_directory(self, tmp_path) -> None:
        path = tmp_path / "bomb.npz"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
            made.writestr("q.npy", header_of("(40000000,)")[:-100] + bytes(320_000_000))
        assert path.stat().st_size < 1e6
        tracemalloc.start()
        with pytest.raises(
            klopt.InvalidProblem, match=r"1 arrays take 320000128 bytes, needs 1\.0 GB"
        ):
            formats.read(path, memory_limit=5e8)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 1e7

    def test_may_be_allowed_by_the_environment(self, tmp_path, monkeypatch) -> None:
        path = tmp_path / "small.mps"
        LP([1.0], [[1.0]], [1.0]).to_file(path)
        monkeypatch.setenv("KLOPT_MEMORY_LIMIT", "200M")
        LP.from_file(path)
        with pytest.raises(klopt.InvalidProblem, match=r"0\.3 GB of memory; 0\.2 GB are allowed"):
            require_memory(3e8, "a matrix")
        # A limit below what is always free binds as well.
        monkeypatch.setenv("KLOPT_MEMORY_LIMIT", "20M")
        require_memory(1.9e7, "a matrix")
        with pytest.raises(klopt.InvalidProblem, match=r"30\.0 MB of memory; 20\.0 MB are allowed"):
            require_memory(3e7, "a matrix")
        with pytest.raises(klopt.InvalidProblem, match=r"20\.0 MB are allowed"):
            matrix("K", sparse.csr_array((2000, 2000)))
        monkeypatch.setenv("KLOPT_MEMORY_LIMIT", "much")
        with pytest.raises(klopt.InvalidSettings, match="KLOPT_MEMORY_LIMIT: 'much' is no amount"):
            require_memory(3e8, "a matrix")

    def test_of_data_sets_are_compared_as_well(self, tmp_path, monkeypatch) -> None:
        (tmp_path / "text.csv").write_text("1,2,a\n3,4,b\n" + "\n" * 9_000_000)
        np.savez_compressed(tmp_path / "bomb.npz", X=np.zeros((5000, 2000)), y=np.arange(5000) % 2)
        monkeypatch.setenv("KLOPT_MEMORY_LIMIT", "100k")
        for name in ("text", "bomb"):
            with pytest.raises(klopt.InvalidProblem, match=rf"{name}.* 0\.1 MB are allowed"):
                load(name, tmp_path)
        monkeypatch.setenv("KLOPT_MEMORY_LIMIT", "1G")
        assert load("bomb", tmp_path).X.shape == (5000, 2000)

    def test_of_a_dense_copy_are_compared_as_well(self) -> None:
        wide = sparse.csr_array(([1.0], ([0], [0])), shape=(100_000, 100_000))
        with memory_budget(1e9), pytest.raises(klopt.InvalidProblem, match="with its zeros needs"):
            matrix("K", wide)

    @pytest.mark.skipif(sys.platform != "linux", reason="the limit of a process is read from /proc")
    def test_limits_of_the_process_count_as_memory_that_is_not_free(self) -> None:
        import resource

        old = resource.getrlimit(resource.RLIMIT_AS)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 500_000_000, old[1]))
        try:
            with pytest.raises(
                klopt.InvalidProblem, match=r"needs 0\.6 GB of memory; 0\.[45] GB are"
            ):
                require_memory(6e8, "a matrix")
        finally:
            resource.setrlimit(resource.RLIMIT_AS, old)


def large(path: Path) -> None:
    """Write a program that takes a while to read."""
    n = 60_000
    if path.suffix == ".cbf":
        rows = "".join(f"{i} 1.5\n" for i in range(n))
        path.write_text(f"VER\n1\nOBJSENSE\nMIN\nVAR\n{n} 1\nL+ {n}\nOBJACOORD\n{n}\n{rows}")
    elif path.name.endswith(".dat-s"):
        rows = "".join(f"1 1 {i} {i} 1\n" for i in range(1, n))
        path.write_text(f"1\n1\n-{n}\n1\n{rows}")
    else:
        LP(ONES.repeat(n // 3), sparse.eye_array(n), np.ones(n)).to_file(path)


class TestTime:
    @pytest.mark.parametrize("suffix", [".mps", ".lp", ".dat-s", ".cbf", ".npz"])
    def test_reading_ends_at_its_limit(self, tmp_path, suffix) -> None:
        path = tmp_path / f"large{suffix}"
        large(path)
        with pytest.raises(klopt.InvalidProblem, match=r"reading was stopped after 1e-05 s"):
            formats.read(path, time_limit=1e-5)
        assert formats.read(path, time_limit=600.0).c.size

    @pytest.mark.parametrize("suffix", [".csv", ".npz"])
    def test_reading_a_data_set_ends_at_its_limit(self, tmp_path, suffix) -> None:
        path = tmp_path / f"points{suffix}"
        X = np.random.default_rng(0).normal(size=(5000, 4))
        if suffix == ".csv":
            np.savetxt(path, np.column_stack((X, np.arange(5000) % 2)), delimiter=",")
        else:
            np.savez(path, X=X, y=np.arange(5000) % 2)
        with pytest.raises(
            klopt.InvalidProblem, match=r"points.*reading was stopped after 1e-05 s"
        ):
            load("points", tmp_path, time_limit=1e-5)
        assert np.array_equal(load("points", tmp_path, time_limit=600.0).X, X)

    def test_reading_counts_against_the_limit_of_the_command(self, tmp_path) -> None:
        path = tmp_path / "large.mps"
        large(path)
        found = CliRunner().invoke(main, ["solve", str(path), "--time", "0.001"])
        assert found.exit_code == 2
        assert "reading was stopped after 0.001 s" in " ".join(found.output.split())


class TestTwoWaysOfReading:
    """Many lines at a time and line by line, at spaces and token by token: the same model."""

    def same(self, one: formats.Model, other: formats.Model) -> None:
        for name in ("c", "row_lower", "row_upper", "lower", "upper"):
            assert np.array_equal(getattr(one, name), getattr(other, name))
        assert abs(one.A - other.A).nnz == 0
        assert (one.sense, one.offset, one.names) == (other.sense, other.offset, other.names)
        assert one.numbers == other.numbers

    @pytest.mark.parametrize("exact", [False, True])
    def test_of_mps(self, tmp_path, monkeypatch, exact) -> None:
        from klopt.programs.formats import mps

        path = tmp_path / "a.mps"
        problem = LP.sample(np.random.default_rng(1), 40)
        problem.to_file(path)
        text = path.read_text()
        # A range, a free bound, lines with two pairs, and a set without a name.
        text = text.replace(
            "BOUNDS\n",
            "RANGES\n"
            + "".join(f"    R  ub{i}  0.{i}\n" for i in range(10))
            + "BOUNDS\n FR BND x3\n UP x4 2.5\n",
        )
        path.write_text(text)
        many = formats.read(path, exact)
        monkeypatch.setattr(mps, "FEW_LINES", 10**9)
        self.same(many, formats.read(path, exact))

    @pytest.mark.parametrize("exact", [False, True])
    def test_of_lp(self, tmp_path, exact) -> None:
        path = tmp_path / "a.lp"
        problem = LP.sample(np.random.default_rng(2), 40)
        problem.to_file(path)
        spaced = formats.read(path, exact)
        tight = path.read_text().replace(" <= ", "<=").replace(" + ", "+")
        path.write_text(tight)
        self.same(spaced, formats.read(path, exact))


@pytest.mark.parametrize("kind", KINDS)
def test_a_short_run_of_the_fuzzer_finds_nothing(kind) -> None:
    tally = fuzz(kind, 150, seed=2026)
    assert not tally.bad
    assert tally.counts.total() == 150
    # A fuzzer whose files are all refused, or all read, tries nothing.
    assert min(tally.counts["read"], tally.counts["refused"]) >= 5


def test_seeds_of_the_fuzzer_are_good_files(tmp_path) -> None:
    for parts in (quadratic_parts(), sedumi_parts()):
        path = tmp_path / "seed.npz"
        path.write_bytes(archive(parts, packed=True))
        assert klopt.solve(read_problem(str(path), None, 0)).verdict.conclusive
