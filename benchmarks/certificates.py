"""Certificates as files: what they weigh, what writing and checking them takes.

    python benchmarks/certificates.py [FOLDER of public programs] [--size N]

The checker runs in a process of its own, without klopt and without NumPy. Support vector machines on
digits with n = 100 .. N points (gate: n = 1000 in at most 60 s), then each program in the folder.
"""

from __future__ import annotations

import argparse
import os
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
        began = time.perf_counter()
        command = [sys.executable, "-I", "-S", klopt_check.__file__, str(file)]
        found = subprocess.run(command, capture_output=True, text=True, check=False)
        checked = time.perf_counter() - began
    word = "accepted" if found.returncode == 0 else f"NOT ACCEPTED: {found.stdout}"
    row = f"{solved:.2f} | {written:.2f} | {size / 1e3:.0f} | {checked:.2f} | {word}"
    print(f"| {name} | {result.verdict.name} | {row} |", flush=True)
    return checked if found.returncode == 0 else float("inf")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--size", type=int, default=1000)
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
    worst = seconds.get(1000, 0.0)
    print(
        f"n = 1000: {worst:.1f} s, gate {GATE_S:.0f} s: {'holds' if worst <= GATE_S else 'MISSED'}"
    )
    return 0 if worst <= GATE_S else 1


if __name__ == "__main__":
    sys.exit(main())
