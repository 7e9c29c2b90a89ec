"""What the page shows, as texts for the template: rows of results, details of runs, statements.

Texts are not escaped here, since the template does that; only charts and formulas are markup.
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
from klopt.bench.report.styles import StyleMap
from klopt.bench.scores import Agreement, Trial, fastest, route
from klopt.bench.trials import grouped

__all__ = [
    "FamilyView",
    "ResultGroup",
    "ResultRow",
    "RunDetail",
    "details",
    "families",
    "groups",
    "settings",
]

MAX_LOG_CHARACTERS = 12_000
"""Those of all logs on a page."""
MIN_LOG_CHARACTERS = 400
"""Where each log would get fewer, only runs that are not certified keep theirs."""
SHORTEST_LOG = 120
LONGEST_LOG = 4000
"""The bounds of what one log gets."""
MAX_NOTES_CHARACTERS = 1200
MAX_NATIVE_CHARACTERS = 40
"""Of a solver's own status in the table; its details have all of it."""


@dataclass(frozen=True)
class ResultRow:
    """One line of the results: all repeats of a route at a tolerance."""

    anchor: str
    plain: bool
    """Whether the line itself is all that the page has about the run."""
    style: Style
    route: str
    says: str
    native: str
    """The solver's own words, where they are others."""
    verdict: str
    symbol: str
    tone: str
    rank: int
    confirmed: bool
    """Whether klopt confirms all that the backend claimed."""
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
class ResultGroup:
    """The results on one problem."""

    problem: str
    family: str
    known: str
    agree: bool
    rows: tuple[ResultRow, ...]


@dataclass(frozen=True)
class FamilyView:
    """A class of problems: its statement and its instances."""

    family: str
    statement: Markup
    words: str
    instances: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class RunDetail:
    """Everything about one line of the results."""

    anchor: str
    problem: str
    route: str
    solver: int
    verdict: str
    symbol: str
    tone: str
    pairs: tuple[tuple[str, str], ...]
    log: str


def groups(
    found: Sequence[Trial],
    known: Mapping[str, Agreement],
    styles: StyleMap,
    anchors: Mapping[str, str],
) -> tuple[ResultGroup, ...]:
    """Return the results by problem, certified ones first, then fast ones.

    Parameters
    ----------
    found
        All trials.
    known
        What all proofs together say of each problem.
    styles
        The colour and dash of each route.
    anchors
        Where the details of a run stand on the page, by the run's key.
    """
    winners = {run.key for run in fastest([run for trial in found for run in trial.runs]).values()}
    out = []
    for problem, own in grouped(found, lambda trial: trial.first.problem).items():
        agreed = known[problem]
        write = _writer(agreed, own)
        rows = [_row(trial, write, styles, anchors, winners) for trial in sorted(own, key=_order)]
        interval = f"{write(agreed.lower)} ≤ optimum ≤ {write(agreed.upper)}"
        text = interval if agreed.holds else str(agreed)
        out.append(ResultGroup(problem, own[0].first.family, text, agreed.holds, tuple(rows)))
    return tuple(out)


def _order(trial: Trial) -> tuple[float, int, bool, bool, float, str]:
    return trial.first.tol, _rank(shown(trial)), *trial.order


def _row(
    trial: Trial,
    write: _Writer,
    styles: StyleMap,
    anchors: Mapping[str, str],
    winners: set[str],
) -> ResultRow:
    run = shown(trial)
    total = run.seconds if math.isfinite(run.seconds) else run.wall
    return ResultRow(
        anchor=anchors[run.key],
        plain=is_plain(trial),
        style=styles.of(run),
        route=route(run),
        says=run.says.words,
        native="" if run.native.lower() == run.says.words else run.native[:MAX_NATIVE_CHARACTERS],
        verdict=run.verdict.name,
        symbol=SYMBOLS[run.verdict],
        tone=TONE[run.verdict],
        rank=_rank(run),
        confirmed=run.status_confirmed is not False,
        best=any(repeat.key in winners for repeat in trial.runs),
        lower=write(run.lower),
        upper=write(run.upper),
        width=_short(run.relative_gap),
        times=tuple(map(_seconds, (run.solve, run.certify, total))),
        iterations="–" if run.iterations is None else str(run.iterations),
        memory="–" if run.memory is None else f"{run.memory / 2**20:.0f}",
        tol=f"{run.tol:.0e}",
        repeats=len(trial.runs),
        certified=sum(repeat.verdict.conclusive for repeat in trial.runs),
    )


def _rank(run: Run) -> int:
    """Conclusive verdicts first, then a feasible point, then an estimate, then nothing."""
    return list(SYMBOLS).index(run.verdict)


@dataclass(frozen=True)
class _Writer:
    """Writes the values of one problem with as many decimals each, so that they line up."""

    decimals: int
    fixed: bool

    def __call__(self, value: float) -> str:
        if math.isnan(value):
            return "–"
        if math.isinf(value):
            return "∞" if value > 0 else "-∞"
        return f"{value:.{self.decimals}f}" if self.fixed else f"{value:.8e}"


def _writer(known: Agreement, own: Sequence[Trial]) -> _Writer:
    runs = [shown(trial) for trial in own]
    ends = [known.lower, known.upper, *(end for run in runs for end in (run.lower, run.upper))]
    largest = max([abs(end) for end in ends if math.isfinite(end)][:2], default=0.0)
    magnitude = math.floor(math.log10(max(largest, 1e-300))) if largest > 0 else 0
    decimals = min(max(8 - magnitude, 0), 12)
    return _Writer(decimals, fixed=-5 < magnitude < 9)


def _short(value: float) -> str:
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞"
    return f"{value:.1e}" if value else "0"


def _seconds(value: float) -> str:
    """Tenths of milliseconds below a second, fewer decimals above."""
    if not math.isfinite(value):
        return "–"
    if 0 < value < 1e-3:
        return f"{value:.1e}"
    decimals = 4 - sum(value >= limit for limit in (1, 10, 100))
    return f"{value:.{decimals}f}"


def families(found: Sequence[Trial]) -> tuple[FamilyView, ...]:
    """Return the classes of problems in the comparison with their statements."""
    out = []
    for family, own in grouped(found, lambda trial: trial.first.family).items():
        firsts = {trial.first.problem: trial.first for trial in own}
        instances = tuple((run.problem, str(run.size), run.data[:12]) for run in firsts.values())
        formula = Markup(mathml(family, own[0].first.sense))
        stated = statement_of(family)
        words = " ".join(filter(None, (stated.words, stated.data)))
        out.append(FamilyView(family, formula, words, instances))
    return tuple(out)


def details(
    found: Sequence[Trial], anchors: Mapping[str, str], styles: StyleMap
) -> tuple[RunDetail, ...]:
    """Return all about each line of the results that is not plain.

    Logs are cut so that the page stays small.
    """
    logged = [trial for trial in found if shown(trial).log]
    # Where logs are many, those of certified runs are of least interest.
    if MIN_LOG_CHARACTERS * len(logged) > MAX_LOG_CHARACTERS:
        logged = [trial for trial in logged if not trial.certified]
    share = MAX_LOG_CHARACTERS // max(len(logged), 1)
    share = min(max(share, SHORTEST_LOG), LONGEST_LOG)
    alike = len({settings(trial.first) for trial in found}) == 1
    return tuple(
        _detail(trial, anchors, styles, share if trial in logged else 0, alike)
        for trial in found
        if trial in logged or not is_plain(trial)
    )


def is_plain(trial: Trial) -> bool:
    """Return whether the table says all that there is to say: once run, and certified at once."""
    run = trial.first
    asked_once = len(trial.runs) == 1 and math.isnan(run.first_gap)
    return trial.certified and asked_once and not run.notes and not run.log


def _detail(
    trial: Trial, anchors: Mapping[str, str], styles: StyleMap, max_log: int, alike: bool
) -> RunDetail:
    run = shown(trial)
    said = f"{run.says.words} ({run.native})" if run.native else run.says.words
    residuals = (
        f"primal {_short(run.primal)}, dual {_short(run.dual)}, gap {_short(run.gap_residual)}"
    )
    pairs = [
        ("solver status", said),
        ("at first", _first_claim(run)),
        ("proven interval", f"[{run.lower:.17g}, {run.upper:.17g}] by {run.proof}"),
        ("estimate", _estimate(run)),
        ("its residuals", residuals),
        ("seconds", _times(run)),
        ("repeats", _repeats(trial)),
        ("settings", "" if alike else settings(run)),
        ("not enforced", run.unenforced),
        ("notes", run.notes[:MAX_NOTES_CHARACTERS]),
    ]
    return RunDetail(
        anchor=anchors[run.key],
        problem=run.problem,
        route=route(run),
        solver=styles.backends[run.backend].solver,
        verdict=run.verdict.name,
        symbol=SYMBOLS[run.verdict],
        tone=TONE[run.verdict],
        pairs=tuple((name, value) for name, value in pairs if value),
        log=_tail(run.log, max_log),
    )


def _estimate(run: Run) -> str:
    if math.isnan(run.estimate_lower) or math.isnan(run.estimate_upper):
        return ""
    return f"[{run.estimate_lower:.17g}, {run.estimate_upper:.17g}], not proven"


def _tail(log: str, length: int) -> str:
    if len(log) <= length:
        return log
    return f"… {log[-length:]}" if length else ""


def _first_claim(run: Run) -> str:
    if math.isnan(run.first_gap):
        return ""
    proven = f"a gap of {_short(run.first_gap)} was proven"
    return f"optimal, where {proven}; klopt asked again by a finer tolerance"


def _times(run: Run) -> str:
    pairs = (("by its own clock", run.native_seconds), ("waited for the child", run.wall))
    parts = [f"{name} {value:.4g}" for name, value in pairs if math.isfinite(value)]
    return ", ".join(parts)


def _repeats(trial: Trial) -> str:
    if len(trial.runs) == 1:
        return ""
    # Verdicts are told only where the repeats differ.
    if len({run.verdict for run in trial.runs}) == 1:
        return ", ".join(f"{run.seconds:.4g}" for run in trial.runs) + " s"
    return ", ".join(f"{run.seconds:.4g} s {run.verdict.name}" for run in trial.runs)


def settings(run: Run) -> str:
    """Return what was asked of a run, in words."""
    memory = f"{run.memory_limit / 2**30:.3g} GiB" if run.memory_limit else "no memory limit"
    threads = f"{run.threads} thread" + "s" * (run.threads != 1)
    return f"tol {run.tol:.0e}, {run.time_limit:g} s, {memory}, {threads}, seed {run.seed}"
