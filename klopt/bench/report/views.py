"""What the page shows, as text and numbers ready for the template: rows of results, run details, statements.

Texts stay as they are, since the template escapes them; only charts and formulas are ready-made
markup.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from klopt.bench.record import Run
from klopt.bench.report.charts import Style
from klopt.bench.report.figures import SYMBOLS, TONE, shown
from klopt.bench.report.statements import mathml, statement_of
from klopt.bench.report.styles import Looks
from klopt.bench.scores import Agreement, Trial, fastest, route
from klopt.bench.trials import grouped

__all__ = ["Detail", "Group", "Program", "Row", "details", "groups", "programs", "settings"]

LOGS = 24_000
"""Characters of logs on a page, shared by its runs; where that leaves too few, by those that are not certified."""
TOO_FEW = 400


@dataclass(frozen=True)
class Row:
    """One line of the results: all repeats of a route at a tolerance."""

    anchor: str
    style: Style
    route: str
    says: str
    verdict: str
    symbol: str
    tone: str
    rank: int
    honest: bool
    best: bool
    lower: str
    upper: str
    width: str
    times: tuple[str, ...]
    iterations: str
    memory: str
    tol: str
    repeats: int
    certified: int


@dataclass(frozen=True)
class Group:
    """The results on one problem."""

    problem: str
    known: str
    agree: bool
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Program:
    """A class of problems: its statement and its instances."""

    family: str
    statement: Markup
    words: str
    instances: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class Detail:
    """Everything about one line of the results."""

    anchor: str
    problem: str
    route: str
    verdict: str
    symbol: str
    tone: str
    pairs: tuple[tuple[str, str], ...]
    log: str


def groups(
    found: Sequence[Trial], known: Mapping[str, Agreement], looks: Looks, anchors: Mapping[str, str]
) -> tuple[Group, ...]:
    """Return the results by problem, certified first, then fast."""
    winners = {run.key for run in fastest([run for trial in found for run in trial.runs]).values()}
    out = []
    for problem, own in grouped(found, lambda trial: trial.first.problem).items():
        write = _writer(known[problem], own)
        ordered = sorted(
            own, key=lambda trial: (trial.first.tol, _rank(shown(trial)), *trial.order)
        )
        rows = tuple(_row(trial, write, looks, anchors, winners) for trial in ordered)
        agreed = known[problem]
        text = (
            f"{write(agreed.lower)} ≤ optimum ≤ {write(agreed.upper)}"
            if agreed.holds
            else str(agreed)
        )
        out.append(Group(problem, text, agreed.holds, rows))
    return tuple(out)


def _row(
    trial: Trial, write: _Writer, looks: Looks, anchors: Mapping[str, str], winners: set[str]
) -> Row:
    run = shown(trial)
    seconds = [
        run.build,
        run.solve,
        run.certify,
        run.seconds if math.isfinite(run.seconds) else run.wall,
    ]
    return Row(
        anchor=anchors[run.key],
        style=looks.of(run),
        route=route(run),
        says=run.says.words,
        verdict=run.verdict.name,
        symbol=SYMBOLS[run.verdict],
        tone=TONE[run.verdict],
        rank=_rank(run),
        honest=run.honest is not False,
        best=any(repeat.key in winners for repeat in trial.runs),
        lower=write(run.lower),
        upper=write(run.upper),
        width=_short(run.relative_width),
        times=tuple(_seconds(value) for value in seconds),
        iterations="–" if run.iterations is None else str(run.iterations),
        memory="–" if run.memory is None else f"{run.memory / 2**20:.0f}",
        tol=f"{run.tol:.0e}",
        repeats=len(trial.runs),
        certified=sum(repeat.verdict.conclusive for repeat in trial.runs),
    )


def _rank(run: Run) -> int:
    """Conclusive verdicts first, then a feasible point, then nothing."""
    return list(SYMBOLS).index(run.verdict)


@dataclass(frozen=True)
class _Writer:
    """Writes the values of one problem with as many decimals each, so that they line up."""

    decimals: int
    fixed: bool

    def __call__(self, value: float) -> str:
        if not math.isfinite(value):
            return "–" if math.isnan(value) else "∞" if value > 0 else "-∞"
        return f"{value:.{self.decimals}f}" if self.fixed else f"{value:.8e}"


def _writer(known: Agreement, own: Sequence[Trial]) -> _Writer:
    ends = [
        known.lower,
        known.upper,
        *(end for t in own for end in (shown(t).lower, shown(t).upper)),
    ]
    finite = [abs(end) for end in ends if math.isfinite(end)]
    size = (
        math.floor(math.log10(max([*finite[:2], 1e-300]))) if finite and max(finite[:2]) > 0 else 0
    )
    return _Writer(min(max(8 - size, 0), 12), -5 < size < 9)


def _short(value: float) -> str:
    return (
        "–" if math.isnan(value) else "∞" if math.isinf(value) else f"{value:.1e}" if value else "0"
    )


def _seconds(value: float) -> str:
    if not math.isfinite(value):
        return "–"
    decimals = 4 if value < 1 else 3 if value < 10 else 2 if value < 100 else 1
    return f"{value:.1e}" if 0 < value < 1e-3 else f"{value:.{decimals}f}"


def programs(found: Sequence[Trial], known: Mapping[str, Agreement]) -> tuple[Program, ...]:
    """Return the classes of problems in the comparison with their statements."""
    out = []
    for family, own in grouped(found, lambda trial: trial.first.family).items():
        firsts = {trial.first.problem: trial.first for trial in own}
        instances = tuple((run.problem, str(run.size), run.data[:12]) for run in firsts.values())
        words = statement_of(family).words
        out.append(Program(family, Markup(mathml(family, own[0].first.sense)), words, instances))
    return tuple(out)


def details(found: Sequence[Trial], anchors: Mapping[str, str]) -> tuple[Detail, ...]:
    """Return everything about each line of the results; logs are cut so that the page stays small."""
    logged = [trial for trial in found if shown(trial).log]
    failed = [trial for trial in logged if not trial.certified]
    kept = logged if TOO_FEW * len(logged) <= LOGS else failed
    share = min(max(LOGS // max(len(kept), 1), 120), 4000)
    alike = len({settings(trial.first) for trial in found}) == 1
    return tuple(_detail(trial, anchors, share if trial in kept else 0, alike) for trial in found)


def _detail(trial: Trial, anchors: Mapping[str, str], share: int, alike: bool) -> Detail:
    run = shown(trial)
    said = run.says.words + (f" ({run.native})" if run.native else "")
    pairs = [
        ("it says", said),
        ("at first", _first_claim(run)),
        ("interval", f"[{run.lower:.17g}, {run.upper:.17g}] by {run.proof}"),
        (
            "residuals",
            f"primal {_short(run.primal)}, dual {_short(run.dual)}, gap {_short(run.gap)}",
        ),
        ("seconds", _times(run)),
        ("repeats", _repeats(trial)),
        ("settings", "" if alike else settings(run)),
        ("not enforced", run.unenforced),
        ("notes", run.notes[:1200]),
        ("began", run.began),
    ]
    log = run.log if len(run.log) <= share else f"… {run.log[-share:]}" if share else ""
    kept = tuple((name, value) for name, value in pairs if value)
    verdict, symbol, tone = run.verdict.name, SYMBOLS[run.verdict], TONE[run.verdict]
    return Detail(anchors[run.key], run.problem, route(run), verdict, symbol, tone, kept, log)


def _first_claim(run: Run) -> str:
    if math.isnan(run.first_width):
        return ""
    return f"optimal, where width {_short(run.first_width)} was proven; klopt asked again by a finer tolerance"


def _times(run: Run) -> str:
    pairs = ("by its own clock", run.native_seconds), ("waited for the child", run.wall)
    parts = [f"{name} {value:.4g}" for name, value in pairs if math.isfinite(value)]
    return ", ".join(parts)


def _repeats(trial: Trial) -> str:
    if len(trial.runs) == 1:
        return ""
    if len({run.verdict for run in trial.runs}) == 1:
        return ", ".join(f"{run.seconds:.4g}" for run in trial.runs) + " s"
    return ", ".join(f"{run.seconds:.4g} s {run.verdict.name}" for run in trial.runs)


def settings(run: Run) -> str:
    """Return what was asked of a run, in words."""
    memory = f"{run.memory_limit / 2**30:.3g} GiB" if run.memory_limit else "no memory limit"
    threads = f"{run.threads} thread" + "s" * (run.threads != 1)
    return f"tol {run.tol:.0e}, {run.time_limit:g} s, {memory}, {threads}, seed {run.seed}"
