"""Certificates as files: what they weigh, what writing and checking them takes.

    python benchmarks/certificates.py [FOLDER of public programs] [--size N] [--runs RUNS.db]

The checkers run in processes of their own, without klopt: (a) in Python without NumPy, (b) in Node
where that is installed. Support vector machines on digits with n = 100 .. N points (gate: n = 1000 in
at most 60 s), then each program in the folder, then the certified runs of a store, such as that of
`klopt demo --store RUNS.db`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

for pool in ("OMP", "OPENBLAS", "MKL"):
    os.environ[f"{pool}_NUM_THREADS"] = "1"

import numpy as np
from sklearn.datasets import load_digits

import klopt
from klopt.bench.certificate_folder import write_certificates
from klopt.bench.comparison import Comparison
from klopt.checker import klopt_check

GATE_S = 60.0
"""What the checker may take for a support vector machine with 1000 points."""
SIZES = (100, 300, 1000)
TIME_LIMIT_S = 20.0


def digits(n: int) -> klopt.Problem:
    """Small digits against large ones, Gaussian kernel, C = 1."""
    X, labels = load_digits(return_X_y=True)
    X = X[:n] / 16
    squares = np.square(X[:, None] - X).sum(axis=2)
    y = np.where(labels[:n] < 5, 1.0, -1.0)
    return klopt.problems.SoftMargin(np.exp(-squares / 8), y, C=1.0)


def programs(folder: Path) -> list[tuple[str, klopt.Problem]]:
    """The linear and semidefinite programs of a folder, smallest file first."""
    kinds = {".mps": klopt.problems.LP, ".dat-s": klopt.problems.SDP}
    files = sorted((f for f in folder.rglob("*") if f.suffix in kinds), key=os.path.getsize)
    return [(f.stem, kinds[f.suffix].from_file(f)) for f in files]


def accepted_by(file: Path) -> tuple[str, bool, float]:
    """Return which checkers accept a file in words, whether all do, and the seconds of (a)."""
    began = time.perf_counter()
    command = [sys.executable, "-I", "-S", klopt_check.__file__, str(file)]
    found = {"(a)": subprocess.run(command, capture_output=True, check=False).returncode == 0}
    seconds = time.perf_counter() - began
    node = shutil.which("node")
    if node is not None:
        script = str(Path(klopt_check.__file__).with_suffix(".js"))
        done = subprocess.run([node, script, str(file)], capture_output=True, check=False)
        found["(b)"] = done.returncode == 0
    words = ", ".join(f"{name} {'accepts' if good else 'REFUSES'}" for name, good in found.items())
    return words, all(found.values()), seconds


def runs(store: Path) -> bool:
    """Print for each problem of a store how many of its certified runs have a certificate."""
    comparison = Comparison.load(store)
    certified = [run for run in comparison.runs if run.verdict.conclusive]
    with tempfile.TemporaryDirectory() as folder:
        found = write_certificates(store, folder)
        print("\n| problem | certified runs | certificates | kB each | accepted by all checkers |")
        print("|---|---|---|---|---|")
        total = 0
        for problem in dict.fromkeys(run.problem for run in certified):
            own = [each for each in found.written if each.problem == problem]
            good = sum(accepted_by(Path(each.file))[1] for each in own)
            size = np.mean([each.bytes for each in own]) / 1e3 if own else 0.0
            count = sum(run.problem == problem for run in certified)
            print(f"| {problem} | {count} | {len(own)} | {size:.0f} | {good} |", flush=True)
            total += good
    written = len(found.written)
    print(f"\n{len(certified)} certified runs, {written} certificates, {total} accepted")
    for reason, names in found.by_reason.items():
        print(f"- {len(names)} without: {reason}")
    return total == written


def measure(name: str, problem: klopt.Problem) -> float:
    """Print a row; return the seconds of the checker, infinite where there is no certificate."""
    result = klopt.solve(problem, time_limit=TIME_LIMIT_S)
    solved = result.timings.total
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "proof.json"
        began = time.perf_counter()
        try:
            result.certificate.save(file)
        except klopt.NotCertified as error:
            print(f"| {name} | {result.verdict.name} | {solved:.2f} | | | | {str(error)[:90]} |")
            return float("inf")
        written = time.perf_counter() - began
        size = file.stat().st_size
        word, is_accepted, checked = accepted_by(file)
    row = f"{solved:.2f} | {written:.2f} | {size / 1e3:.0f} | {checked:.2f} | {word}"
    print(f"| {name} | {result.verdict.name} | {row} |", flush=True)
    return checked if is_accepted else float("inf")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--runs", type=Path)
    given = parser.parse_args()
    print("| problem | verdict | solve s | write s | file kB | check s | |")
    print("|---|---|---|---|---|---|---|")
    klopt.solve(digits(20))  # loads what is needed
    seconds = {n: measure(f"SoftMargin, n = {n}", digits(n)) for n in SIZES if n <= given.size}
    accepted = 0
    found = [] if given.folder is None else programs(given.folder)
    for name, problem in found:
        accepted += np.isfinite(measure(name, problem))
    if found:
        print(f"\n{accepted} of {len(found)} public programs have a certificate that is accepted")
    all_accepted = given.runs is None or runs(given.runs)
    worst = seconds.get(1000, 0.0)
    print(
        f"n = 1000: {worst:.1f} s, gate {GATE_S:.0f} s: {'holds' if worst <= GATE_S else 'MISSED'}"
    )
    return 0 if worst <= GATE_S and all_accepted else 1


if __name__ == "__main__":
    sys.exit(main())
