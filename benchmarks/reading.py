"""Reading MPS and LP files: klopt's readers against HiGHS's own.

    python benchmarks/reading.py [FOLDER]

Both read the same file, in turns, CPU seconds, smallest of several repeats. klopt's reader checks
every number and name, knows the line of a misprint and loses nothing; HiGHS's does not. FOLDER holds
public linear programs (`.mps`); the others are generated: sparse rows, decimals of four digits. The
remarks say what it takes to make the problem as well (`LP.from_file`), and to keep the decimals as
rationals (`exact=True`).
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import highspy
import numpy as np
from _rows import Table, cpu
from scipy import sparse

from klopt.problems import LP
from klopt.programs import formats

GATE = 2.0


def by_highs(path: Path) -> highspy.Highs:
    """Read a file by HiGHS."""
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    assert highs.readModel(str(path)) != highspy.HighsStatus.kError
    return highs


def in_turns(repeats: int, *runs: Callable[[], Any]) -> list[float]:
    """Return the smallest CPU seconds of each, taken in turns."""
    best = [np.inf] * len(runs)
    for _ in range(repeats):
        for index, run in enumerate(runs):
            best[index] = min(best[index], cpu(run)[0])
    return best


def measure(table: Table, what: str, paths: list[Path], repeats: int) -> None:
    """Compare the two readers on files, and say what the problem and its decimals take."""
    totals = np.zeros(3)
    exact = 0.0
    for path in paths:
        totals += in_turns(
            repeats,
            lambda path=path: by_highs(path),
            lambda path=path: formats.read(path),
            lambda path=path: LP.from_file(path),
        )
        exact += cpu(lambda path=path: formats.read(path, exact=True))[0]
    highs, klopt, problem = totals
    size = sum(path.stat().st_size for path in paths)
    note = f"{klopt * 1e3:.1f} ms, {size / klopt / 1e6:.0f} MB/s; the problem too: {problem / highs:.2f}; "
    note += f"with decimals: {exact / highs:.1f}"
    table.add(what, "HiGHS's reader, CPU time", GATE, klopt / highs, note, at_most=True)


def generated(rows: int, columns: int, per_column: int) -> LP:
    """Return a program with so many entries in a column."""
    rng = np.random.default_rng(0)
    A = sparse.random_array(
        (rows, columns),
        density=per_column / rows,
        rng=rng,
        format="csc",
        data_sampler=lambda size: rng.normal(size=size).round(4),
    )
    b = rng.uniform(1, 2, rows).round(3)
    return LP(rng.normal(size=columns).round(3), A, b, bounds=(0.0, 10.0))


def in_fields(path: Path) -> None:
    """Write a file anew with two entries in a line, in the columns of fixed format."""
    lines = path.read_text().splitlines()
    start = lines.index("COLUMNS") + 1
    end = lines.index("RHS")
    found: list[str] = []
    for line in lines[start:end]:
        column, row, value = line.split()
        last = found[-1].split() if found else []
        if len(last) == 3 and last[0] == column:
            found[-1] += f"   {row:8}  {value:>12}"
        else:
            found.append(f"    {column:8}  {row:8}  {value:>12}")
    path.write_text("\n".join([*lines[:start], *found, *lines[end:], ""]))


def main() -> None:
    table = Table()
    if sys.argv[1:]:
        files = sorted(Path(sys.argv[1]).glob("*.mps"))
        large = [path for path in files if path.stat().st_size > 50_000]
        measure(table, f"{len(files)} public LPs", files, 9)
        measure(table, f"{len(large)} above 50 kB", large, 9)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for rows, columns, repeats in ((2_000, 4_000, 7), (20_000, 40_000, 4)):
            problem = generated(rows, columns, 8)
            entries = f"{problem.A_ub.nnz // 1000}k entries"
            for suffix in ("mps", "lp"):
                path = folder / f"written.{suffix}"
                problem.to_file(path)
                measure(table, f"{suffix}, {entries}", [path], repeats)
            in_fields(folder / "written.mps")
            measure(table, f"mps fields, {entries}", [folder / "written.mps"], repeats)
            again = folder / "again.lp"
            by_highs(folder / "written.lp").writeModel(str(again))
            measure(table, f"lp by HiGHS, {entries}", [again], repeats)
    table.close()


if __name__ == "__main__":
    main()
