"""Findings as text: ratios, colours, and the table of claims of the documentation."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from klopt.papers.theorems.catalogue import PAPERS, cited
from klopt.papers.theorems.claim import Case, Outcome
from klopt.papers.theorems.evidence import Evidence
from klopt.papers.theorems.verification import Finding, Verification

__all__ = ["STYLES", "case_text", "markdown", "ratio", "trials_text"]

STYLES = {
    Outcome.PROVEN: "bold green",
    Outcome.PROVEN_CORRECTED: "bold yellow",
    Outcome.HOLDS: "green",
    Outcome.CORRECTED: "yellow",
    Outcome.REFUTED: "red",
    Outcome.UNMET: "dim",
    Outcome.INCONCLUSIVE: "magenta",
    Outcome.UNCHECKED: "dim",
}


def ratio(evidence: Evidence | None) -> str:
    """Return measured / allowed to few digits; where the interval is wide, its two ends.

    >>> ratio(Evidence(0.5, 0.5)), ratio(Evidence(0.5, 2.0))
    ('0.5', '0.5..2')
    >>> ratio(Evidence(1.0004, 1.0004)), ratio(None)
    ('1.0004', '')
    """
    if evidence is None:
        return ""
    best = _few(evidence.best)
    worst = _few(evidence.worst)
    return worst if best == worst else f"{best}..{worst}"


def _few(number: float) -> str:
    """Two digits, and as many more as tell a number near 1 from 1."""
    distance = abs(number - 1)
    digits = 2
    if 0 < distance < 0.05:
        digits -= int(np.log10(distance))
    return f"{number:.{digits}g}"


def trials_text(finding: Finding) -> str:
    """Return how many trials there were and, where it is not all, how many measured something."""
    if not finding.trials or finding.measured in (0, finding.trials):
        return str(finding.trials or "")
    return f"{finding.measured} of {finding.trials}"


def case_text(case: Case) -> str:
    """Return a case as one line of names and numbers.

    >>> case_text({"F": np.eye(2), "C": 2.0})
    'F = [[1, 0], [0, 1]], C = 2'
    """
    return ", ".join(f"{name} = {_numbers(value)}" for name, value in case.items())


def _numbers(value: object) -> str:
    if isinstance(value, np.ndarray):
        if value.ndim == 0:
            return _numbers(value.item())
        entries = ", ".join(_numbers(entry) for entry in value)
        return f"[{entries}]"
    return f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)


def markdown(
    found: Verification,
    links: Mapping[str, str] | None = None,
    charts: Mapping[str, str] | None = None,
) -> str:
    """Return the claims, verdicts, corrections and counterexamples as a page of Markdown.

    Each paper has its claims; klopt's own remarks on it follow in a table of their own.

    Parameters
    ----------
    found
        What was found.
    links
        What stands at the end of the row of a claim, by its name: files to download.
    charts
        What stands before the table of a paper, by its name.
    """
    more = links or {}
    lines = []
    for paper in dict.fromkeys(finding.claim.paper for finding in found.findings):
        lines += [f"\n## {cited(paper)}\n"]
        if paper in PAPERS:
            lines += [f"*{PAPERS[paper].title}.*\n"]
        if charts and paper in charts:
            lines += [charts[paper]]
        own = [finding for finding in found.findings if finding.claim.paper == paper]
        lines += _table([finding for finding in own if not finding.claim.is_remark], more)
        remarks = [finding for finding in own if finding.claim.is_remark]
        if remarks:
            lines += [f"\n### Remarks of klopt's on {cited(paper)}\n", *_table(remarks, more)]
    return "\n".join(lines) + "\n"


def _table(findings: Sequence[Finding], links: Mapping[str, str]) -> list[str]:
    head = "| claim | the paper says | statement | verdict | what holds, counterexample, proof |"
    rows = [_row(finding, links.get(finding.claim.name, "")) for finding in findings]
    return [head, "|---|---|---|---|---|", *rows]


def _row(finding: Finding, link: str) -> str:
    claim = finding.claim
    parts = [_plain(claim.correction or claim.reason)]
    if finding.counterexample is not None:
        text = case_text(finding.counterexample)
        shown = text if len(text) <= 160 else f"{text[:160]} .."
        parts.append(f"Fails at {shown}{' (exact)' if finding.proven else ''}." if shown else "")
    if finding.proof is not None:
        parts.append(f"Proven for {_plain(finding.proof.scope)}.")
    parts.append(link)
    worst = [f"printed {ratio(finding.printed)}"] if finding.printed else []
    worst += [f"corrected {ratio(finding.corrected)}"] if finding.corrected else []
    counted = trials_text(finding)
    verdict = f"**{finding.outcome.value}**" + (
        f" ({', '.join(worst)}; {counted} trial{'s' * (counted != '1')})" if worst else ""
    )
    says = _plain(claim.says) + (f" *Premise: {_plain(claim.premise)}.*" if claim.premise else "")
    if claim.latex:
        says += f"<br>${_bars(claim.latex)}$"
    before = f" ({claim.formerly})" if claim.formerly else ""
    name = f"`{claim.name}`{before}"
    said = f"{claim.number}, {claim.basis.value}"
    if claim.quote:
        said += f": “{_typeset(claim.quote)}”"
    cells = (name, said, says, verdict, " ".join(filter(None, parts)))
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _typeset(quote: str) -> str:
    """A quotation in Markdown, its formulas as such.

    >>> _typeset("where $$|a| * 2$$ is *large*")
    'where $\\\\vert a\\\\vert  * 2$ is \\\\*large\\\\*'
    """
    parts = re.split(r"\${1,2}(.+?)\${1,2}", quote)
    shown = [f"${_bars(part)}$" if i % 2 else _plain(part) for i, part in enumerate(parts)]
    return "".join(shown)


def _plain(text: str) -> str:
    """Text without signs that Markdown reads as markup."""
    return re.sub(r"([*_$<\\])", r"\\\1", text)


def _bars(latex: str) -> str:
    """A formula without the bars that part the cells of a table."""
    named = latex.replace(r"\|", r"\Vert ").replace("|", r"\vert ")
    return named.strip()
