"""Learners at thousands of points, against scikit-learn's SVC and LabelSpreading.

    python benchmarks/learners_scale.py            5,000 points
    python benchmarks/learners_scale.py 20000      so many

    ScgLDK(rank=500), DankSVC, MklSVC    at most 2 times the CPU time of SVC().fit
    OSK, 5 % of the labels               at most 3 times that of LabelSpreading() with its Gaussian kernel

Each fit runs in a process of its own, which also says how much memory it took at most; what the
imports take by themselves is about 150 MB. CPU seconds of one BLAS thread.
"""

from __future__ import annotations

import os

for pool in ("OMP", "OPENBLAS", "MKL"):
    os.environ[f"{pool}_NUM_THREADS"] = "1"

import multiprocessing
import resource
import sys
import warnings
from typing import Any

import numpy as np
from _rows import Table, cpu
from sklearn.datasets import make_classification

LIMIT_S = 300.0
"""CPU seconds after which a fit is given up."""


def fit(name: str, n: int) -> tuple[float, float]:
    """Return CPU seconds and the peak of memory in MB."""
    from sklearn.semi_supervised import LabelSpreading
    from sklearn.svm import SVC

    from klopt import learners

    warnings.simplefilter("ignore")
    X, y = make_classification(n, 20, n_informative=8, random_state=0)
    few = np.where(np.random.default_rng(0).random(n) < 0.05, y, -1)
    made: dict[str, tuple[Any, np.ndarray]] = {
        "SVC": (SVC(), y),
        "LabelSpreading": (LabelSpreading(), few),
        "ScgLDK(rank=500)": (learners.ScgLDK(rank=500), y),
        "DankSVC": (learners.DankSVC(), y),
        "MklSVC": (learners.MklSVC(), y),
        "OSK": (learners.OSK(), few),
    }
    learner, labels = made[name]
    resource.setrlimit(resource.RLIMIT_CPU, (int(LIMIT_S) + 10, int(LIMIT_S) + 10))
    seconds, _ = cpu(lambda: learner.fit(X, labels))
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured(name: str, n: int) -> tuple[float, float]:
    """Return what `fit` returns, from a new process; infinite times where it was given up."""
    context = multiprocessing.get_context("spawn")
    receive, send = context.Pipe(duplex=False)
    child = context.Process(target=_send, args=(send, name, n))
    child.start()
    send.close()
    try:
        found: tuple[float, float] = receive.recv()
    except EOFError:
        found = (np.inf, np.nan)
    child.join()
    return found


def _send(send: Any, name: str, n: int) -> None:
    send.send(fit(name, n))


def main(sizes: list[int]) -> None:
    table = Table()
    for n in sizes:
        for peer, gate, names in (
            ("SVC", 2.0, ("ScgLDK(rank=500)", "DankSVC", "MklSVC")),
            ("LabelSpreading", 3.0, ("OSK",)),
        ):
            theirs, their_memory = measured(peer, n)
            print(f"      {peer}, n = {n}: {theirs:.2f} s, {their_memory:.0f} MB", flush=True)
            for name in names:
                ours, memory = measured(name, n)
                note = f"{ours:.2f} s, {memory:.0f} MB"
                table.add(f"{name}, n = {n}", peer, gate, ours / theirs, note, at_most=True)
    table.close()


if __name__ == "__main__":
    main([int(float(text)) for text in sys.argv[1:]] or [5000])
