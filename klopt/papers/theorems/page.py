"""The claims of a verification as one self-contained HTML page.

The counts come first, in a sentence. Each claim then has its statement in words and as a formula,
its verdict, measured over allowed as printed and as corrected, and where it fails the
counterexample in full with the file and the command that replay it. Claims about rates have charts:
measured against the bound, the fitted exponent beside the predicted.
"""

from __future__ import annotations

import re
import sys
from base64 import b64encode
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

import numpy as np
from markupsafe import Markup

from klopt.bench.report.axes import Axis
from klopt.bench.report.charts import STYLE_SHEET, Series, Style, plot
from klopt.bench.report.figures import Figure
from klopt.bench.report.templates import template
from klopt.bench.trials import grouped
from klopt.papers.theorems.cases import document
from klopt.papers.theorems.catalogue import PAPERS, cited
from klopt.papers.theorems.claim import Outcome
from klopt.papers.theorems.evidence import Curve
from klopt.papers.theorems.format import ratio, trials_text
from klopt.papers.theorems.verification import Finding, Verification

__all__ = ["formula", "quotation", "rate_figures", "verification_page", "write_verification"]

OUTCOME_SYMBOLS = {
    Outcome.PROVEN: "∎",
    Outcome.PROVEN_CORRECTED: "◨",
    Outcome.HOLDS: "✓",
    Outcome.CORRECTED: "◐",
    Outcome.REFUTED: "✗",
    Outcome.UNMET: "∅",
    Outcome.INCONCLUSIVE: "?",
    Outcome.UNCHECKED: "–",
}
OUTCOME_TONES = {
    Outcome.PROVEN: "good",
    Outcome.PROVEN_CORRECTED: "half",
    Outcome.HOLDS: "good",
    Outcome.CORRECTED: "half",
    Outcome.REFUTED: "bad",
    Outcome.UNMET: "soft",
    Outcome.INCONCLUSIVE: "soft",
    Outcome.UNCHECKED: "soft",
}
COUNT_PHRASES = {
    Outcome.PROVEN: ("is proven", "are proven"),
    Outcome.PROVEN_CORRECTED: ("is proven as corrected", "are proven as corrected"),
    Outcome.HOLDS: ("holds", "hold"),
    Outcome.CORRECTED: ("holds only as corrected", "hold only as corrected"),
    Outcome.REFUTED: ("is refuted", "are refuted"),
    Outcome.UNMET: (
        "has a premise that no instance meets",
        "have a premise that no instance meets",
    ),
    Outcome.INCONCLUSIVE: ("stays open", "stay open"),
    Outcome.UNCHECKED: ("cannot be checked by computation", "cannot be checked by computation"),
}
MATHML_NAMESPACE = "{http://www.w3.org/1998/Math/MathML}"
FORBIDDEN_ATTRIBUTES = {"href", "src", "action", "id", "class", "style"}
"""Attributes by which a formula could do more than show itself."""


@dataclass(frozen=True)
class ProofFile:
    """A certificate as a file to be saved from the page."""

    name: str
    says: str
    link: str


@dataclass(frozen=True)
class ClaimEntry:
    """One claim on the page, its anchor, and the content of the file of its counterexample."""

    finding: Finding
    anchor: str
    math: Markup
    symbol: str
    tone: str
    printed: str
    corrected: str
    trials: str
    quote: Markup
    case: str
    rates: tuple[Figure, ...]
    proof: tuple[ProofFile, ...] = ()

    @property
    def replay(self) -> str:
        """The command that replays the counterexample."""
        return f"klopt verify {self.finding.claim.name} --case {self.finding.claim.name}.json"


@dataclass(frozen=True)
class PaperSection:
    """The claims of one paper, with its title and how many have which verdict."""

    name: str
    anchor: str
    title: str
    entries: tuple[ClaimEntry, ...]
    remarks: tuple[ClaimEntry, ...]
    counts: tuple[int, ...]


def write_verification(found: Verification, path: str | PathLike[str]) -> int:
    """Write the page of a verification and return its size in bytes."""
    return Path(path).write_bytes(verification_page(found).encode())


def verification_page(found: Verification) -> str:
    """Return the page of a verification."""
    numbers = {id(finding): number for number, finding in enumerate(found.findings)}
    entries = {number: _entry(finding, number) for number, finding in enumerate(found.findings)}
    seen = tuple(
        outcome for outcome in Outcome if any(f.outcome is outcome for f in found.findings)
    )
    papers = tuple(
        PaperSection(
            cited(name),
            f"p{place}",
            PAPERS[name].title if name in PAPERS else _title(own),
            tuple(entries[numbers[id(f)]] for f in own if not f.claim.is_remark),
            tuple(entries[numbers[id(f)]] for f in own if f.claim.is_remark),
            _counts([f for f in own if not f.claim.is_remark], seen),
        )
        for place, (name, own) in enumerate(
            grouped(found.findings, lambda finding: finding.claim.paper).items()
        )
    )
    return template("theorems.html.jinja").render(
        sentence=_sentence(found.claims or found.findings),
        remarks=" ".join(
            _sentence(own, word)
            for own, word in ((found.remarks, "remark"), (found.methods, "rate of a method"))
            if found.claims and own
        ),
        found=found,
        papers=papers,
        outcomes=[
            (outcome.value, OUTCOME_SYMBOLS[outcome], OUTCOME_TONES[outcome]) for outcome in seen
        ],
        totals=_counts(found.claims, seen),
        claims=len(found.claims),
        rates=[entry for entry in entries.values() if entry.rates],
        unexpected=[entries[numbers[id(finding)]] for finding in found.unexpected],
        exact=sum(finding.proven for finding in found.findings),
        chart_style=Markup(STYLE_SHEET),
    )


def formula(latex: str, display: Literal["block", "inline"] = "block") -> Markup:
    """Return LaTeX as MathML.

    What cannot be converted, or would do more than show a formula, is shown as it is.

    >>> formula(r"a \\le b")[:5], formula("<b>")[:6], formula("")
    (Markup('<math'), Markup('<math '), Markup(''))
    """
    from latex2mathml.converter import convert

    if not latex:
        return Markup("")
    try:
        made = convert(latex, display=display)
        parts = list(ElementTree.fromstring(made).iter())
    except Exception:
        # A third party's LaTeX may fail in any way, and must not take the page with it.
        return Markup("<code>{}</code>").format(latex)
    safe = all(
        part.tag.startswith(MATHML_NAMESPACE) and not FORBIDDEN_ATTRIBUTES & set(part.attrib)
        for part in parts
    )
    return Markup(made) if safe else Markup("<code>{}</code>").format(latex)


def quotation(quote: str) -> Markup:
    """Return the words of a paper, its formulas typeset where they can be.

    >>> quotation("where $a \\\\le b$")[:12]
    Markup('where <math ')
    """
    parts = re.split(r"(\${1,2}[^$]+\${1,2})", quote)
    return Markup("").join(
        formula(part.strip("$"), display="inline") if part.startswith("$") else Markup.escape(part)
        for part in parts
    )


def rate_figures(finding: Finding) -> tuple[Figure, ...]:
    """Return charts of measured against bound, printed and corrected, on the same axes."""
    curves = [
        (word, evidence.curve)
        for word, evidence in (("as printed", finding.printed), ("as corrected", finding.corrected))
        if evidence is not None and evidence.curve is not None
    ]
    if not curves:
        return ()
    values = [value for _, curve in curves for value in (*curve.measured, *curve.bound)]
    x = Axis.around("iterations", [step for _, curve in curves for step in curve.steps], log=True)
    y = Axis.around("gap", values, log=True)
    alone = len(curves) == 1 and finding.corrected is None
    charts = []
    for word, curve in curves:
        labelled = replace(y, label=curve.label or "gap")
        charts.append(_rate(finding, "" if alone else word, curve, x, labelled))
    return tuple(charts)


def _rate(finding: Finding, word: str, curve: Curve, x: Axis, y: Axis) -> Figure:
    series = []
    for name, values, style in (
        ("measured", curve.measured, Style(-1, 0)),
        ("bound", curve.bound, Style(-1, 1, 1)),
    ):
        steps = np.array(curve.steps)
        heights = np.array(values)
        kept = np.isfinite(heights) & (heights > 0) & (steps > 0)
        series.append(Series(name, steps[kept], heights[kept], style))
    subject = f"{finding.claim.name} {word}" if word else finding.claim.name
    title = f"{subject}: measured and bound"
    fit = curve.fit()
    fitted = "too few steps to fit one"
    if fit is not None:
        fitted = f"fitted {fit.exponent:.2f} (95 %: {fit.lower:.2f} to {fit.upper:.2f})"
    worst = max(
        (m / b for m, b in zip(curve.measured, curve.bound, strict=True) if b > 0), default=0.0
    )
    caption = (
        f"Predicted exponent {curve.predicted:.3g}; {fitted}. "
        f"Measured is at most {worst:.2g} times the bound."
    )
    return Figure(
        f"rate-{finding.claim.name}",
        word,
        caption.replace(" -", " \N{MINUS SIGN}"),
        plot(series, title, x, y),
    )


def _entry(finding: Finding, number: int) -> ClaimEntry:
    claim = finding.claim
    return ClaimEntry(
        finding=finding,
        anchor=f"c{number}",
        math=formula(claim.latex),
        symbol=OUTCOME_SYMBOLS[finding.outcome],
        tone=OUTCOME_TONES[finding.outcome],
        printed=ratio(finding.printed).replace("inf", "∞"),
        corrected=ratio(finding.corrected).replace("inf", "∞"),
        trials=trials_text(finding),
        quote=quotation(claim.quote),
        case="" if finding.counterexample is None else document(claim.name, finding.counterexample),
        rates=rate_figures(finding),
        proof=_proof_files(finding),
    )


def _proof_files(finding: Finding) -> tuple[ProofFile, ...]:
    if finding.proof is None:
        return ()
    steps = finding.proof.steps
    files = []
    for path, step in zip(
        finding.proof.paths(Path(f"{finding.claim.name}.json")), steps, strict=True
    ):
        data = b64encode(step.certificate.encode()).decode()
        files.append(ProofFile(path.name, step.says, f"data:application/json;base64,{data}"))
    return tuple(files)


def _title(findings: Sequence[Finding]) -> str:
    """The title of a paper: what the first docstring lines of its claims have in common."""
    checks = (finding.claim.printed for finding in findings)
    modules = (sys.modules.get(check.__module__) for check in checks if check is not None)
    lines = dict.fromkeys(
        module.__doc__.splitlines()[0]
        for module in modules
        if module is not None and module.__doc__
    )
    heads = {line.rpartition(": ")[0] for line in lines}
    return f"{heads.pop()}." if len(lines) > 1 and len(heads) == 1 else next(iter(lines), "")


def _counts(findings: Sequence[Finding], outcomes: Sequence[Outcome]) -> tuple[int, ...]:
    counts = Counter(finding.outcome for finding in findings)
    return tuple(counts[outcome] for outcome in outcomes)


def _sentence(findings: Sequence[Finding], word: str = "claim") -> str:
    """The counts in one sentence."""
    if not findings:
        return "No claim was checked."
    counts = zip(Outcome, _counts(findings, tuple(Outcome)), strict=True)
    parts = [f"{count} {COUNT_PHRASES[outcome][count != 1]}" for outcome, count in counts if count]
    said = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    # "rates of a method" has its s in the middle.
    head, space, rest = word.partition(" ")
    words = f"{head}{'s' * (len(findings) != 1)}{space}{rest}"
    return f"Of {len(findings)} {words}, {said}."
