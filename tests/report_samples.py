"""Comparisons made by hand for tests of the page: known runs, traces and kernels, and nothing solved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from math import inf, nan

import numpy as np

from klopt.arrays import FloatArray
from klopt.bench.environment import Environment
from klopt.bench.record import Run, Trace
from klopt.bench.run_certificates import RunCertificate
from klopt.model.backend import Step, Stop
from klopt.proof.certificate import Verdict

HOSTILE = "<img src=x onerror=alert(1)>"
BACKENDS = (
    "clarabel",
    "ecos",
    "scs",
    "highs",
    "cvxpy",
    "libsvm",
    "nesterov",
    "mirror_prox",
    "multiplicative",
    "active_set",
)
HOME_MADE = ("nesterov", "mirror_prox", "multiplicative", "active_set")
HERE = Environment(
    klopt="0.1.0",
    python="CPython 3.11.7",
    numpy="2.3.0",
    scipy="1.16.0",
    blas="openblas 0.3.29 Haswell",
    cpu="A processor",
    cores=2,
    platform="Linux x86_64",
    commit="",
    backends=(("clarabel", "0.11.1"), ("scs", "3.2.8")),
)


@dataclass(frozen=True)
class Sample:
    """A comparison as the page sees it."""

    runs: Sequence[Run]
    traces: Mapping[str, Trace] = field(default_factory=dict)
    kernels: Mapping[str, Mapping[str, FloatArray]] = field(default_factory=dict)
    environment: Environment = HERE
    command: str = "klopt compare SoftMargin --tol 1e-6 --time 60s"

    proofs: Mapping[str, RunCertificate] = field(default_factory=dict)

    def arrays(self, key: str) -> Mapping[str, FloatArray]:
        return self.kernels.get(key, {})

    def certificates(self) -> Mapping[str, RunCertificate]:
        return self.proofs


def a_run(**changes: object) -> Run:
    """A certified run of clarabel, changed as told."""
    run = Run(
        key="0" * 16,
        problem="SoftMargin breast n=200",
        family="SoftMargin",
        size=200,
        data="4f1c9a0b7d2e8c35",
        sense="max",
        formulation="dual QP",
        backend="clarabel",
        version="0.11.1",
        tol=1e-6,
        time_limit=60.0,
        memory_limit=2**31,
        threads=1,
        seed=0,
        repeat=0,
        says=Stop.OPTIMAL,
        native="Solved",
        verdict=Verdict.OPTIMAL,
        lower=19.3981263,
        upper=19.3981264,
        proof="bracket",
        primal=4.5e-14,
        dual=1.2e-9,
        gap_residual=5.9e-8,
        build=0.012,
        solve=0.31,
        certify=0.004,
        native_seconds=0.29,
        wall=0.36,
        iterations=14,
        memory=180 * 2**20,
        began="2026-11-16T06:31:00Z",
        machine="abcdef0123456789",
    )
    return replace(run, **changes)  # type: ignore[arg-type]


def falling(iterations: int, seconds: float, optimum: float, start: float, end: float) -> Trace:
    """Bounds that close on the optimum like a power of the iteration."""
    steps = np.unique(np.geomspace(1, iterations, 600).astype(int))
    power = np.log(end / start) / np.log(iterations)
    halves = start * steps**power * (1 + abs(optimum)) / 2
    return tuple(
        Step(int(k), float(seconds * k / iterations), optimum - h, optimum + h)
        for k, h in zip(steps, halves, strict=True)
    )


def one_problem() -> Sample:
    """One problem, eight routes: four certified, one that lies, one out of time, one crash, one with no bound."""
    optimum = 19.39812635
    runs, traces = [], {}
    certified = (
        ("ecos", 0.061, 5.9e-9, 22),
        ("clarabel", 0.31, 8.1e-9, 31),
        ("libsvm", 0.018, 7.7e-7, None),
    )
    for number, (backend, seconds, width, iterations) in enumerate(certified):
        half = width * (1 + optimum) / 2
        for repeat in range(3):
            key = f"c{number}{repeat}".ljust(16, "0")
            solve = seconds * (1 + 0.1 * repeat)
            ends = {"lower": optimum - half, "upper": optimum + half, "iterations": iterations}
            runs.append(a_run(key=key, backend=backend, solve=solve, repeat=repeat, **ends))
    for number, (backend, form, seconds, end, count) in enumerate(
        (
            ("nesterov", "simplex", 2.81, 7.4e-7, 3140),
            ("mirror_prox", "saddle", 30.0, 3.6e-2, 41822),
        )
    ):
        key = f"h{number}".ljust(16, "0")
        trace = falling(count, seconds, optimum, 1.0, end)
        done = number == 0
        runs.append(
            a_run(
                key=key,
                backend=backend,
                formulation=form,
                solve=seconds,
                iterations=count,
                lower=trace[-1].lower,
                upper=trace[-1].upper,
                says=Stop.OPTIMAL if done else Stop.TIME_LIMIT,
                native="",
                verdict=Verdict.OPTIMAL if done else Verdict.FEASIBLE,
            )
        )
        traces[key] = trace
    lie = {
        "lower": optimum - 0.09,
        "upper": optimum + 0.002,
        "verdict": Verdict.FEASIBLE,
        "native": "solved",
    }
    runs.append(
        a_run(
            key="lie".ljust(16, "0"),
            backend="scs",
            solve=0.81,
            iterations=725,
            log="iter | pri res\n  725 | 3.5e-05",
            **lie,
        )
    )
    nothing = {"lower": -inf, "upper": inf, "verdict": Verdict.UNPROVEN, "proof": "none"}
    lost = {
        "build": nan,
        "solve": nan,
        "certify": nan,
        "native_seconds": nan,
        "iterations": None,
        "memory": None,
    }
    crash = {
        "says": Stop.CRASHED,
        "native": "signal 11",
        "notes": "the child ended with signal 11 (segmentation fault)",
    }
    runs.append(a_run(key="crash".ljust(16, "0"), backend="cvxpy:GLPK", **nothing, **lost, **crash))
    runs.append(
        a_run(key="half".ljust(16, "0"), backend="highs", solve=1.7, says=Stop.STALLED, **nothing)
    )
    return Sample(runs, traces)


def suite(problems: int = 20, backends: int = 10, repeats: int = 1) -> Sample:
    """As many problems and backends as asked for, with traces, notes, logs and learned kernels."""
    rng = np.random.default_rng(0)
    runs: list[Run] = []
    traces: dict[str, Trace] = {}
    kernels: dict[str, Mapping[str, FloatArray]] = {}
    for p in range(problems):
        family, name = (
            ("SoftMargin", ""),
            ("OrderedAlignment", "alpha"),
            ("LP", ""),
            ("SpectralRls", "spectrum"),
        )[p % 4]
        size = 100 * 2 ** (p // 4)
        problem = (
            f"{family} {('breast', 'wine', 'digits', 'iris', 'diabetes')[p // 4 % 5]} n={size}"
        )
        optimum = float(rng.uniform(-50, 50))
        for b, backend in enumerate(
            (*BACKENDS, *(f"more_{i}" for i in range(backends)))[:backends]
        ):
            base = {
                "problem": problem,
                "family": family,
                "size": size,
                "data": f"{p:064x}",
                "backend": backend,
            }
            seconds = (
                1e-4 * (b + 1) * (size / 50) ** (1.2 + 0.2 * (b % 4)) * float(rng.lognormal(0, 0.2))
            )
            failed = (p * 7 + b * 3) % 11 == 0
            width = 10.0 ** rng.uniform(-3, -1) if failed else 10.0 ** rng.uniform(-9, -6.5)
            half = width * (1 + abs(optimum)) / 2.2
            for repeat in range(repeats):
                key = f"{p:02}{b:02}{repeat:02}".ljust(32, "a")
                runs.append(
                    a_run(
                        key=key,
                        **base,
                        repeat=repeat,
                        formulation=("dual QP", "SOCP", "saddle")[b % 3],
                        lower=optimum - half * float(rng.uniform(0.5, 1)),
                        upper=optimum + half * float(rng.uniform(0.5, 1)),
                        verdict=Verdict.FEASIBLE if failed else Verdict.OPTIMAL,
                        solve=seconds * float(rng.lognormal(0, 0.1)),
                        build=seconds / 20,
                        certify=seconds / 30,
                        notes="the interval is that of the problem's own bracket" if b % 2 else "",
                        log="\n".join(
                            f"{i:5} {10.0**-i:.3e} {10.0 ** (-i / 2):.3e}" for i in range(30)
                        ),
                        began=f"2026-11-16T06:{p:02}:{b:02}Z",
                    )
                )
                if backend in HOME_MADE:
                    traces[key] = falling(5000, seconds, optimum, 1.0, width)
                if name:
                    K = rng.normal(size=(size, 6)) if size <= 200 else np.zeros((0, 0))
                    kernels[key] = {
                        name: np.sort(rng.exponential(size=24))[::-1],
                        "kernel": K @ K.T,
                    }
    return Sample(runs, traces, kernels)


def hostile() -> Sample:
    """Names and messages that try to be markup, script and the end of a script."""
    evil = f"{HOSTILE}</script><script>alert(2)</script>"
    # Every text of a record, whoever it comes from: a file's name, a data set's, a library's.
    texts = {
        field.name: evil
        for field in fields(Run)
        if field.type == "str" and field.name not in ("key", "backend", "formulation", "sense")
    }
    here = Environment(
        **{
            field.name: evil
            for field in fields(Environment)
            if field.name not in ("cores", "backends")
        },
        cores=2,
        backends=((evil, evil),),
    )
    runs = [
        a_run(backend=HOSTILE, formulation="</title>&amp;'\"", **texts),
        a_run(key="1" * 16, problem=evil),
    ]
    traces = {runs[0].key: falling(50, 0.3, 19.39812635, 1.0, 1e-7)}
    return Sample(runs, traces, environment=here, command=evil)
