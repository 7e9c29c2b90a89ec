"""Damaged and hostile files and sparse arrays: each is read or refused by klopt's own error.

    python tests/fuzz/fuzz_files.py 10000                    so many of each kind, and a table
    python tests/fuzz/fuzz_files.py 10000 --kind mps         of one kind only
    python tests/fuzz/fuzz_files.py 10000 --write docs/hardening.md

A good file is changed in one to four ways (bytes, words, numbers, lines, the arrays and the
structure of an archive), read as `klopt solve` reads it, and brought into the form that solvers get.
Batches run in child processes with little memory: a death is seen, and whose it was.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import klopt
from klopt.engine.lookup import read_problem
from klopt.errors import KloptError
from klopt.kernels.graphs import laplacian
from klopt.kernels.side_information import side_graph
from klopt.papers.experiments.datasets import read_csv, read_npz

BATCH = 250
CASE_LIMIT_S = 5.0
"""The CPU time that reading a file of some kilobytes may take; it takes some milliseconds."""
CHILD_BYTES = 3 << 30
"""The address space that a child may take beyond what it has at the start."""
START, END = "<!-- files: written by tests/fuzz/fuzz_files.py -->", "<!-- end of files -->"

MPS = """NAME t
ROWS
 N cost
 L cap
 G need
 E flow
 N spare
COLUMNS
 x cost 1 cap 2
 x need 1.5
 y cost -2.5e-1 flow 1
 z cap 1 flow -1
 z spare 3
RHS
 RHS cap 4 need 1
 RHS flow 0.1 cost -7
RANGES
 RNG cap 2.5 flow 1
BOUNDS
 UP BND x 3
 LO BND y -1
 FX BND z 2
 FR BND y
 MI BND x
QUADOBJ
 x x 2
 x y 0.5
 y y 1
ENDATA
"""
LINEAR_MPS = MPS[: MPS.index("QUADOBJ")] + "ENDATA\n"
LP = r"""\ a comment
Minimize
 obj: 2 x + 3.5 y - z + [ 2 x^2 + 1.5 x * y + 4 y^2 ] / 2 + 10
Subject To
 c1: x + y + z <= 10
 c2: 2 x - 1e-3 y >= -4
 c3: 1 <= x + 3 z <= 8
 -3 y + z = 2.25
Bounds
 -5 <= x <= 5
 y free
 z >= -inf
 z <= 7
End
"""
LINEAR_LP = LP.replace(" + [ 2 x^2 + 1.5 x * y + 4 y^2 ] / 2", "")
SDPA = """"a comment
3 = mDIM
4 = nBLOCK
(2, 3, -2, 1)
{1.0, -2, 3}
0 1 1 1 1
0 1 1 2 0.5
1 1 1 1 1.0
1 1 2 2 1
2 2 1 1 1
2 2 3 3 2e0
3 2 1 3 -1
1 3 1 1 1
2 3 2 2 1
3 4 1 1 1
"""
CBF = """VER
2
OBJSENSE
MIN
# klopt: names of columns and rows [["a", "b", "c"], ["r"]]
VAR
3 2
L+ 2
F 1
CON
8 4
L= 1
Q 3
QR 3
L- 1
OBJACOORD
2
0 1.5
2 -1
OBJBCOORD
3
ACOORD
6
0 0 1
0 1 1
1 2 1
2 0 -1
4 1 2
7 1 1
BCOORD
2
0 -1
3 0.5
"""
PSD_CBF = """VER
2
OBJSENSE
MAX
PSDVAR
2
2
3
CON
2 1
L= 2
OBJFCOORD
3
0 0 0 1
0 1 0 0.5
1 2 1 -1
FCOORD
3
0 0 0 0 1
1 1 1 1 2
1 0 1 1 1
BCOORD
1
0 -1
"""
LMI_CBF = """VER
2
OBJSENSE
MIN
VAR
2 1
F 2
PSDCON
1
2
OBJACOORD
1
0 1
HCOORD
2
0 0 0 0 1
0 1 1 1 1
DCOORD
2
0 0 0 -1
0 1 0 0.5
"""
CSV = "a,b,c,class\n1,2,3,yes\n0.5,-1e3,2,no\n7,8,9,yes\n1,1,1,no\n"


def archive(parts: dict[str, Any], packed: bool) -> bytes:
    content = io.BytesIO()
    save: Any = np.savez_compressed if packed else np.savez
    save(content, **parts)
    return content.getvalue()


def quadratic_parts() -> dict[str, Any]:
    """P, A and a cone, with names: what klopt writes."""
    P = sparse.csc_array([[2.0, 0.5, 0], [0.5, 1, 0], [0, 0, 0]])
    A = sparse.csc_array([[1.0, 2, 0], [0, 1, -1], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    S = sparse.csc_array([[-1.0, 0, 0], [0, -1, 0], [0, 0, -1]])
    parts: dict[str, Any] = {}
    for name, matrix in (("P", P), ("A", A), ("S", S), ("Q0", P)):
        for part in ("data", "indices", "indptr", "shape"):
            parts[f"{name}_{part}"] = np.array(getattr(matrix, part))
    return parts | {
        "q": np.ones(3), "r": np.array(1.5), "l": np.array([-np.inf, 0, -1, -1, -1]), "u": np.ones(5),
        "b_soc": np.ones(3), "soc": np.array([3]), "Q0_q": np.zeros(3), "Q0_r": np.array(2.0),
        "sense": np.array(1), "columns": np.array(["x", "y", "z"]), "rows": np.array(["r1", "r2"]),
    }  # fmt: skip


def sedumi_parts() -> dict[str, Any]:
    A = sparse.csc_array([[1.0, 1.0, 0.0, 0.0]])
    parts = {
        f"A_{part}": np.array(getattr(A, part)) for part in ("data", "indices", "indptr", "shape")
    }
    return parts | {
        "b": np.ones(1), "c": np.arange(4.0), "K_f": np.array(0), "K_l": np.array(1),
        "K_q": np.array([3]), "K_s": np.zeros(0),
    }  # fmt: skip


def data_set_parts() -> dict[str, Any]:
    X = sparse.csr_array(np.arange(12.0).reshape(4, 3))
    parts = {
        f"X_{part}": np.array(getattr(X, part)) for part in ("data", "indices", "indptr", "shape")
    }
    return parts | {"y": np.array([0, 1, 0, 1]), "idxLabs2": np.array([[0, 1], [2, 3]])}


NUMBERS = (
    "inf", "-inf", "nan", "-1", "0", "1e400", "-1e308", "1e-400", "5e-324", "999999999999", "2147483648",
    "4294967297", "1e15", "1e20", "-1e30", "0x10", "1_0", "1D5", "1e", "--1", "+", ".", "1.5.2", "9" * 5000,
    "1e99999999", "-0", "\u0663", "1/3", "100000", "65535", "50000",
)  # fmt: skip
JUNK = (
    b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\t", b"\x1c", "\u2028".encode(), b"[" * 3000, b"x" * 9000, b"\\",
    b"*", b":", b"<=", b"- -", b"#", b"ENDATA\n", b"End\n", b"RANGES\n", b"'MARKER' 'INTORG'", b"free", b"PSDVAR\n",
    b"# klopt: the last 3 rows of CON are bounds of variables\n", b"# klopt: names of columns and rows " + b"[" * 3000,
)  # fmt: skip


def change_bytes(rng: random.Random, text: bytes) -> bytes:
    at = rng.randrange(len(text) + 1)
    end = min(len(text), at + rng.choice((1, 1, 2, 8, 40)))
    way = rng.randrange(6)
    if way == 0:
        return text[:at] + rng.randbytes(end - at) + text[end:]
    if way == 1:
        return text[:at] + text[end:]
    if way == 2:
        return text[:at] + rng.choice(JUNK) + text[at:]
    if way == 3:
        return text[:at]
    if way == 4:
        return text[:end] + text[at:end] * rng.choice((1, 3, 200)) + text[end:]
    other = rng.randrange(len(text) + 1)
    return text[:at] + text[other : other + 60] + text[at:]


def change_words(rng: random.Random, text: bytes) -> bytes:
    lines = text.split(b"\n")
    at = rng.randrange(len(lines))
    words = lines[at].split(b" ")
    place = rng.randrange(len(words))
    others = text.split() or [b"x"]
    way = rng.randrange(4)
    if way == 0:
        words[place] = rng.choice(others)
    elif way == 1:
        del words[place]
    elif way == 2:
        words.insert(place, rng.choice(others))
    else:
        words[place] = rng.choice(NUMBERS).encode()
    lines[at] = b" ".join(words)
    return b"\n".join(lines)


def change_numbers(rng: random.Random, text: bytes) -> bytes:
    parts = text.split(b" ")
    numbers = [i for i, part in enumerate(parts) if any(letter in b"0123456789" for letter in part)]
    for _ in range(rng.choice((1, 1, 3))):
        if numbers:
            place = rng.choice(numbers)
            ending = b"\n" + parts[place].partition(b"\n")[2] if b"\n" in parts[place] else b""
            parts[place] = rng.choice(NUMBERS).encode() + ending
    return b" ".join(parts)


def change_lines(rng: random.Random, text: bytes) -> bytes:
    lines = text.split(b"\n")
    at = rng.randrange(len(lines))
    other = rng.randrange(len(lines))
    way = rng.randrange(5)
    if way == 0:
        lines[at], lines[other] = lines[other], lines[at]
    elif way == 1:
        lines[at : at + 1] = [lines[at]] * rng.choice((2, 3, 300))
    elif way == 2:
        del lines[at]
    elif way == 3:
        lines[at : at + 2] = [b"".join(lines[at : at + 2])]
    else:
        lines.insert(at, rng.choice(JUNK))
    return b"\n".join(lines)


TEXT_CHANGES = (change_bytes, change_words, change_numbers, change_numbers, change_lines)


def changed_text(rng: random.Random, seeds: tuple[str, ...]) -> bytes:
    text = rng.choice(seeds).encode()
    for _ in range(rng.choice((1, 1, 2, 4))):
        text = rng.choice(TEXT_CHANGES)(rng, text)
    return text


INDICES = (-1, 40, 2**31 - 1, 2**31, -(2**31), 5_000_000, -5000, 3, 2**62)
VALUES = (np.inf, -np.inf, np.nan, 1e308, -1.0, 1e20, 5e-324, 2.0**53, 0.0)


def change_array(rng: random.Random, array: Any) -> Any:
    """One array of an archive: an entry, its length, its kind or its shape."""
    array = np.array(array)
    way = rng.randrange(8)
    if way <= 2 and array.size and array.dtype.kind in "iuf":
        flat = array.reshape(-1).copy()
        if flat.dtype.kind == "f":
            flat[rng.randrange(flat.size)] = rng.choice(VALUES)
        else:
            flat = flat.astype(np.int64)
            flat[rng.randrange(flat.size)] = rng.choice(INDICES)
        return flat.reshape(array.shape)
    if way == 3:
        return array[: rng.randrange(array.size + 1)] if array.ndim else np.array([])
    if way == 4:
        return np.concatenate([array.ravel(), array.ravel()])
    if way == 5:
        return array.reshape((1, *array.shape))
    kind = rng.choice(
        ("<f4", ">f8", "<i8", "<u8", "<i1", "<U5", "<c16", "?", "<f2", "S3", "<M8[s]")
    )
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            return array.astype(kind)
    # NumPy has no room for some dates in five letters, and says so by RuntimeError.
    except (RuntimeError, TypeError, ValueError):
        return np.array("text")


def change_archive(rng: random.Random, content: bytes) -> bytes:
    """The bytes of an archive, or the members that it is made of."""
    way = rng.randrange(5)
    if way == 0:
        return change_bytes(rng, content)
    if way == 1:
        # Another method of compression, or other flags.
        at = content.find(b"PK", rng.randrange(len(content)))
        return content[: at + 6] + rng.randbytes(4) + content[at + 10 :] if at >= 0 else content
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(made, "w") as new:
        names = old.namelist()
        chosen = rng.choice(names)
        for name in names:
            member = old.read(name)
            if name == chosen and way == 2:
                member = change_bytes(rng, member)
            elif name == chosen and way == 3:
                shape = rng.choice(
                    (
                        b"(1000000000000,)",
                        b"(-1,)",
                        b"(3, 3, 3, 3)",
                        b"(2, True)",
                        b"((((((",
                        b"(99,)",
                    )
                )
                start = member.find(b"(")
                member = member[:start] + shape + member[start + len(shape) :]
            new.writestr(name, member, zipfile.ZIP_DEFLATED)
            if name == chosen and way == 4:
                new.writestr(
                    rng.choice(("extra.npy", "README", "../q.npy", "Q1_q.npy")), rng.randbytes(90)
                )
    return made.getvalue()


def changed_archive(rng: random.Random, seeds: tuple[Callable[[], dict[str, Any]], ...]) -> bytes:
    parts = rng.choice(seeds)()
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        name = rng.choice(list(parts))
        if rng.random() < 0.1:
            del parts[name]
        elif rng.random() < 0.1:
            parts[name] = parts[rng.choice(list(parts))]
        else:
            parts[name] = change_array(rng, parts[name])
    content = archive(parts, rng.random() < 0.5)
    return change_archive(rng, content) if rng.random() < 0.4 else content


def corrupt_sparse(rng: random.Random) -> Any:
    """A sparse array of any format, mostly with one part overwritten after it was made."""
    good = sparse.random_array((4, 4), density=0.5, rng=np.random.default_rng(rng.randrange(10**6)))
    symmetric = sparse.csc_array(good + good.T + 4 * sparse.eye_array(4))
    kind = rng.choice(("csc", "csr", "bsr", "coo", "dia", "lil", "dok"))
    made: Any = symmetric.asformat(kind)
    if rng.random() < 0.5:
        made = getattr(sparse, f"{kind}_matrix")(made)
    way = rng.randrange(5)
    if way == 0:
        return made
    if kind in ("csc", "csr", "bsr"):
        part = rng.choice(("indices", "indptr", "data"))
        setattr(made, part, change_array(rng, getattr(made, part)))
    elif kind == "coo":
        made.coords = tuple(change_array(rng, each) for each in made.coords)
    elif kind == "dia":
        part = rng.choice(("offsets", "data"))
        setattr(made, part, change_array(rng, getattr(made, part)))
    elif kind == "lil":
        row = rng.randrange(4)
        target = made.rows if rng.random() < 0.5 else made.data
        target[row] = [*target[row], rng.choice(INDICES)]
    else:
        made._dict[rng.choice(INDICES), rng.choice(INDICES)] = 1.0
    return made


def use_sparse(rng: random.Random, A: Any) -> None:
    """Give a sparse array to one of the doors that it may come in by."""
    P = klopt.problems
    ones = np.ones(4)
    doors: tuple[Callable[[], Any], ...] = (
        lambda: P.LP(ones, A_ub=A, b_ub=ones).form,
        lambda: P.LP(ones, A_eq=A, b_eq=ones).form,
        lambda: P.QCQP(A, ones).form,
        lambda: P.QCQP(None, ones, [(A, ones, 1.0)]).form,
        lambda: P.QCQP(None, ones, A_soc=A, b_soc=ones, soc=[4]).form,
        lambda: P.SDP([1.0], [A, np.eye(4)]).form,
        lambda: klopt.Gram.of(A, repair="clip"),
        lambda: laplacian(A),
        lambda: side_graph(A, 4),
        lambda: klopt.ConeForm(ones, A, ones, klopt.Cones(nonneg=4)),
    )
    rng.choice(doors)()


def read_as_problem(path: Path, exact: bool) -> None:
    problem: Any = read_problem(str(path), None, 0, exact)
    problem.form  # noqa: B018


@dataclass(frozen=True)
class Kind:
    """What is changed, and how it is read."""

    make: Callable[[random.Random], bytes]
    suffix: str
    read: Callable[[random.Random, Path], None]


def written(suffix: str) -> str:
    """A program of 30 rows as klopt writes it: sections that are read many lines at a time."""
    rng = np.random.default_rng(3)
    A = sparse.random_array((30, 20), density=0.2, rng=rng, format="csc")
    problem: Any = klopt.problems.LP(np.ones(20), A, np.ones(30), bounds=(-1.5, 4.0))
    if suffix == ".dat-s":
        F = [
            np.diag(rng.normal(size=12).round(2)) + np.eye(12, k=1) + np.eye(12, k=-1)
            for _ in range(4)
        ]
        problem = klopt.problems.SDP([1.0, 2.0, 3.0], F)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"seed{suffix}"
        problem.to_file(path)
        return path.read_text()


def _text(suffix: str, *given: str) -> Kind:
    seeds = (*given, written(suffix))
    decimals = suffix in (".mps", ".lp")
    return Kind(
        lambda rng: changed_text(rng, seeds),
        suffix,
        lambda rng, path: read_as_problem(path, decimals and rng.random() < 0.3),
    )


KINDS = {
    "mps": _text(".mps", MPS, LINEAR_MPS),
    "lp": _text(".lp", LP, LINEAR_LP),
    "dat-s": _text(".dat-s", SDPA),
    "cbf": _text(
        ".cbf", CBF, PSD_CBF, LMI_CBF, CBF + PSD_CBF[PSD_CBF.index("PSDVAR") : PSD_CBF.index("CON")]
    ),
    "npz": Kind(
        lambda rng: changed_archive(rng, (quadratic_parts, sedumi_parts)),
        ".npz",
        lambda rng, path: read_as_problem(path, exact=False),
    ),
    "csv data": Kind(
        lambda rng: changed_text(rng, (CSV,)),
        ".csv",
        lambda rng, path: void(read_csv(path, regression=rng.random() < 0.3)),
    ),
    "npz data": Kind(
        lambda rng: changed_archive(rng, (data_set_parts,)),
        ".npz",
        lambda rng, path: void(read_npz(path, regression=rng.random() < 0.3)),
    ),
    "arrays": Kind(
        lambda rng: b"",
        ".none",
        lambda rng, path: use_sparse(rng, corrupt_sparse(rng)),
    ),
}


def void(value: object) -> None:
    """Do nothing with what was read."""


def one_case(kind: str, seed: int, index: int, folder: Path) -> str:
    """What came of a case: read, refused, slow, or an exception that is not klopt's, with its place."""
    rng = random.Random(f"{seed} {kind} {index}")
    case = KINDS[kind]
    path = folder / f"case{case.suffix}"
    path.write_bytes(case.make(rng))
    began = time.process_time()
    try:
        case.read(rng, path)
        outcome = "read"
    except KloptError as error:
        # What no reader thought of is refused by the one place for all of them: a reader should.
        is_foreseen = "the file is damaged or of another format" not in str(error)
        outcome = "refused" if is_foreseen else f"unforeseen: {str(error)[-160:]}"
    except Exception as error:
        inside = [at for at in traceback.extract_tb(error.__traceback__) if "klopt" in at.filename]
        place = f"{Path(inside[-1].filename).name}:{inside[-1].lineno}" if inside else "the fuzzer"
        outcome = f"raw exception: {type(error).__name__} at {place}: {str(error)[:80]}"
    return outcome if time.process_time() - began < CASE_LIMIT_S else f"slow: {outcome}"


def run_batch(kind: str, seed: int, indices: range) -> Iterator[tuple[int, str]]:
    """The outcomes of some cases in a child process; the case in which it died or hung is one, too."""
    done = indices.start
    while done < indices.stop:
        receive, send = os.pipe()
        child = os.fork()
        if not child:
            os.close(receive)
            _child(kind, seed, range(done, indices.stop), send)
        os.close(send)
        with open(receive, "rb") as lines:
            while True:
                ready, _, _ = select.select([lines], [], [], 4 * CASE_LIMIT_S)
                line = lines.readline() if ready else b""
                if not line:
                    break
                index, outcome = json.loads(line)
                yield index, outcome
                done = index + 1
            hung = not ready
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if done < indices.stop:
            ended = "hang" if hung else f"death: status {status}"
            yield done, ended
            done += 1


def _child(kind: str, seed: int, indices: range, send: int) -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + CHILD_BYTES, used + CHILD_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    np.seterr(all="ignore")
    with tempfile.TemporaryDirectory() as folder:
        for index in indices:
            outcome = one_case(kind, seed, index, Path(folder))
            os.write(send, json.dumps([index, outcome]).encode() + b"\n")
    os.close(send)
    signal.pause()  # the parent kills it: nothing that was loaded is torn down


@dataclass
class Tally:
    """What came of the cases of one kind."""

    kind: str
    counts: Counter[str] = field(default_factory=Counter)
    bad: list[tuple[int, str]] = field(default_factory=list)
    unforeseen: list[tuple[int, str]] = field(default_factory=list)

    def add(self, index: int, outcome: str) -> None:
        self.counts[outcome.partition(":")[0]] += 1
        if outcome.startswith("unforeseen"):
            self.unforeseen.append((index, outcome))
        elif outcome not in ("read", "refused"):
            self.bad.append((index, outcome))

    def row(self) -> str:
        counts = self.counts
        wrong = [counts["raw exception"], counts["death"], counts["hang"] + counts["slow"]]
        refused = [counts["refused"], counts["unforeseen"]]
        cells = [self.kind, counts.total(), counts["read"], *refused, *wrong]
        return (
            "| "
            + " | ".join(f"{cell:,}" if isinstance(cell, int) else cell for cell in cells)
            + " |"
        )


def fuzz(kind: str, count: int, seed: int = 0) -> Tally:
    """Return what came of so many cases of a kind."""
    tally = Tally(kind)
    for start in range(0, count, BATCH):
        for index, outcome in run_batch(kind, seed, range(start, min(start + BATCH, count))):
            tally.add(index, outcome)
    return tally


HEADER = """| kind | cases | read | refused | by the last resort | raw exceptions | deaths | beyond {:g} s |
|---|---|---|---|---|---|---|---|"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", action="append", choices=list(KINDS))
    parser.add_argument("--write", type=Path, help="put the table into this page")
    options = parser.parse_args()
    rows = [HEADER.format(CASE_LIMIT_S)]
    print(rows[0], flush=True)
    failures = 0
    for kind in options.kind or KINDS:
        tally = fuzz(kind, options.count, options.seed)
        rows.append(tally.row())
        print(rows[-1], flush=True)
        for index, outcome in tally.bad[:20] + tally.unforeseen[:20]:
            print(f"  case {index}: {outcome}", flush=True)
        failures += len(tally.bad)
    if options.write:
        page = options.write.read_text(encoding="utf-8")
        before, _, rest = page.partition(START)
        _, _, after = rest.partition(END)
        command = f"`python tests/fuzz/fuzz_files.py {options.count}`, seed {options.seed}:"
        table = "\n".join(rows)
        options.write.write_text(
            f"{before}{START}\n{command}\n\n{table}\n{END}{after}", encoding="utf-8"
        )
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
