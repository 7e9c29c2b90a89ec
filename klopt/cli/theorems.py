"""The command about theorems: verify.

Exit codes: 0 if every verdict is the registered one, 1 if one differs, 2 for a bad call.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from klopt.cli.common import as_json as _json

if TYPE_CHECKING:
    from klopt.papers.theorems.claim import Claim
    from klopt.papers.theorems.evidence import Evidence
    from klopt.papers.theorems.proofs.proof import Proof
    from klopt.papers.theorems.verification import Finding, Verification

__all__ = ["verify"]

LEGEND = (
    "'printed' and 'corrected' are the worst ratio of what is measured to what is claimed, for the "
    "statement as printed and as corrected: at most 1 means no violation. 'trials' counts random "
    "instances and those that the claim names."
)
MAX_RATIO_COLUMNS = 12
NO_PROOF = (
    "Optima are intervals, and every verdict uses their pessimistic ends. "
    "A check on many instances supports a theorem; it does not prove it. What is PROVEN has "
    "certificates that klopt check accepts, written by --export. "
    "A refutation marked 'exact' is proven without rounding."
)


@click.command(short_help="Check the claims of the papers, or your own.")
@click.argument("claims", nargs=-1, metavar="[CLAIM|FILE.py]...")
@click.option(
    "--paper",
    metavar="PAPER",
    help="Only the claims of this paper: pan2016, kundu2010, xie2017, liu2020 or mao2010.",
)
@click.option(
    "--trials",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    help="Instances of each claim.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of the instances.",
)
@click.option(
    "-j", "--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Processes."
)
@click.option(
    "--case", "case_file", metavar="FILE", help="Replay the one claim on the case in this file."
)
@click.option(
    "--save", metavar="FOLDER", help="Write each counterexample to a file in this folder."
)
@click.option(
    "--export",
    "program_file",
    metavar="FILE",
    help="Write the refutation of the one claim as a program, or its proof as certificates (FILE.json).",
)
@click.option("-o", "--output", metavar="FILE.html", help="Write a report as an HTML page.")
@click.option("--list", "only_list", is_flag=True, help="List the claims and check nothing.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@_json
def verify(
    claims: tuple[str, ...],
    paper: str | None,
    trials: int,
    seed: int,
    jobs: int,
    case_file: str | None,
    save: str | None,
    program_file: str | None,
    output: str | None,
    only_list: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Check every claim of the five papers, those named, or those in a Python file of your own.

    \b
    klopt verify pan2016-eq10    one claim; its former name (000-9) is found too
    klopt verify --paper mao2010   the claims of one paper
    klopt verify klopt_mine.py   your own, as `klopt new theorem mine` writes one
    klopt verify mao2010-eq5 --export program.py   its refutation, in Python
    klopt verify xie2017-lemma2 --export proof.json   its proof, for klopt check

    Each claim is measured on many random instances with certified intervals. Exit code 1 where a
    verdict differs from the registered one.
    """
    from klopt.bench.store import check_writable
    from klopt.engine.progress import counting
    from klopt.papers.theorems.catalogue import select
    from klopt.papers.theorems.verification import verify_claims

    for file in filter(None, (output, program_file)):
        check_writable(Path(file))
    chosen = select(claims, paper)
    if only_list:
        _print_list(chosen)
        return
    if case_file:
        found = _replayed(chosen, Path(case_file))
    else:
        with counting(len(chosen), wanted=not quiet) as done:

            def tell(finding: Finding) -> None:
                done.advance(f"{finding.claim.name}  {finding.outcome.value}")

            found = verify_claims(chosen, trials=trials, seed=seed, jobs=jobs, tell=tell)
    if save:
        _save(found, Path(save))
    if program_file:
        _export(found, Path(program_file))
    if output:
        from klopt.papers.theorems.page import write_verification

        size = write_verification(found, Path(output))
        click.echo(f"page        {output} ({size / 1000:.0f} kB)", err=True)
    if as_json:
        from klopt.engine.format import document

        click.echo(document("verify", {"findings": [_data(finding) for finding in found.findings]}))
    else:
        _print(found)
    sys.exit(1 if found.unexpected else 0)


def _replayed(chosen: tuple[Claim, ...], path: Path) -> Verification:
    from klopt.errors import InvalidSettings
    from klopt.papers.theorems.cases import read_case
    from klopt.papers.theorems.verification import Verification, replay

    name, case = read_case(path)
    match = [claim for claim in chosen if claim.answers_to(name)]
    if not match:
        raise InvalidSettings(
            f"{path} is a case of {name!r}, which is not among the claims asked for"
        )
    return Verification((replay(match[0], case),), 1, 0)


def _export(found: Verification, path: Path) -> None:
    from klopt.errors import InvalidSettings
    from klopt.papers.theorems.export import program

    if path.suffix == ".json":
        proofs = [each.proof for each in found.findings if each.proof is not None]
        if len(found.findings) != 1 or not proofs:
            raise InvalidSettings(
                "--export FILE.json writes the proof of one claim; name one that is PROVEN"
            )
        for written in proofs[0].save(path):
            click.echo(f"certificate {written}", err=True)
        return
    failed = [each for each in found.findings if each.counterexample is not None]
    if len(found.findings) != 1 or not failed:
        raise InvalidSettings("--export writes the refutation of one claim; name one that fails")
    finding = failed[0]
    assert finding.counterexample is not None
    path.write_text(program(finding.claim, finding.counterexample), encoding="utf-8")
    click.echo(f"program     {path}", err=True)


def _save(found: Verification, folder: Path) -> None:
    from klopt.papers.theorems.cases import write_case

    folder.mkdir(parents=True, exist_ok=True)
    for finding in found.findings:
        if finding.counterexample is not None:
            name = finding.claim.name
            write_case(folder / f"{name}.json", name, finding.counterexample)


def _print_list(chosen: tuple[Claim, ...]) -> None:
    from klopt.engine.format import console, table

    rows = table(["claim", "before", "in the paper", "says"])
    for claim in chosen:
        place = f"{claim.number} ({claim.basis.value})" if claim.quote else claim.number
        rows.add_row(claim.name, claim.formerly, place, claim.says)
    console().print(rows)


def _print(found: Verification) -> None:
    from klopt.engine.format import console, lines, table, wrapped
    from klopt.papers.theorems.format import STYLES, trials_text

    out = console()
    rows = table(
        ["claim", "verdict", "printed", "corrected", "trials"],
        right=("printed", "corrected", "trials"),
    )
    rows.columns[0].no_wrap = True
    for finding in found.findings:
        verdict = finding.outcome.value
        if finding.claim.is_remark:
            verdict += " (remark)"
        if finding.proven:
            verdict += ", exact"
        if not finding.expected:
            verdict += "  (!)"
        rows.add_row(
            finding.claim.name,
            verdict,
            _ratio(finding.printed),
            _ratio(finding.corrected),
            trials_text(finding),
            style=STYLES[finding.outcome],
        )
    out.print(rows)
    out.print(
        wrapped(f"\n{found!r}. {LEGEND}"),
    )
    for finding in found.findings:
        if finding.trouble:
            out.print(lines([("undecided", f"{finding.claim.name}: {finding.trouble}")]))
    for finding in found.unexpected:
        text = f"{finding.claim.name}: registered as {finding.claim.expected.value}"
        out.print(lines([("unexpected", text)]))
    out.print(wrapped(NO_PROOF))


def _proof_data(proof: Proof) -> dict[str, Any]:
    steps = [step.says for step in proof.steps]
    return {"scope": proof.scope, "argument": proof.argument, "steps": steps}


def _ratio(evidence: Evidence | None) -> str:
    """A ratio that fits into its column: one next to 1 by its distance."""
    from klopt.papers.theorems.format import ratio

    text = ratio(evidence)
    if evidence is None or len(text) <= MAX_RATIO_COLUMNS:
        return text
    if 0 < 1 - evidence.worst < 1e-3:
        return f"1 - {1 - evidence.worst:.0e}"
    return f"{evidence.worst:.2g}"


def _data(finding: Finding) -> dict[str, Any]:
    claim = finding.claim
    return {
        "claim": claim.name,
        "paper": claim.paper,
        "number": claim.number,
        "formerly": claim.formerly,
        "quote": claim.quote,
        "basis": claim.basis.value,
        "says": claim.says,
        "latex": claim.latex,
        "verdict": finding.outcome.value,
        "expected": claim.expected.value,
        "correction": claim.correction,
        "trials": finding.trials,
        "measured": finding.measured,
        "printed": None if finding.printed is None else finding.printed.worst,
        "corrected": None if finding.corrected is None else finding.corrected.worst,
        "counterexample": finding.counterexample,
        "exact": finding.proven,
        "proof": None if finding.proof is None else _proof_data(finding.proof),
        "trouble": finding.trouble,
        "reason": claim.reason,
        "source": claim.source,
    }
