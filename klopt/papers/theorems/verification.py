"""Runs the claims: many drawn instances, one verdict, and the smallest counterexample of each.

Every claim has its own stream of random numbers, so that its verdict depends on the seed and on
nothing else that runs. A check on many instances is no proof; a counterexample that is confirmed in
exact arithmetic is one, and so are certificates that the independent checker accepts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from time import perf_counter
from traceback import extract_tb
from typing import Any
from zlib import crc32

import numpy as np

from klopt.engine.words import counted
from klopt.errors import InvalidSettings
from klopt.model.backend import whole_number
from klopt.model.html import BAD, GOOD, badge, html_table
from klopt.papers.theorems.cases import rational, rounded, surely_above
from klopt.papers.theorems.catalogue import select
from klopt.papers.theorems.claim import PROVEN_FOR, Case, Check, Claim, Outcome
from klopt.papers.theorems.evidence import Evidence
from klopt.papers.theorems.proofs.proof import Proof

__all__ = ["Finding", "Verification", "examine", "proven", "replay", "verify", "verify_claims"]

MAX_ROWS = 60
"""Findings up to which a notebook shows all of them."""
MAX_DRAWS_PER_TRIAL = 5
"""Draws per trial asked for, of which those that meet the premise are used."""
SHRINK_DRAWS_PER_SIZE = 25
"""Draws of each smaller size among which a smaller counterexample is searched."""
ROUNDING_DENOMINATORS = (1, 2, 4, 10, 100)
"""A counterexample's entries are tried as multiples of 1, 1/2, 1/4, 1/10 and 1/100."""


@dataclass(frozen=True)
class Finding:
    """What the trials of one claim say.

    `printed` and `corrected` are the evidence of the trial where each holds least. `measured` counts
    the trials on which the statement that decides the verdict claims something; the others say
    nothing of it. `proven` says that the failure of the printed statement on the counterexample was
    confirmed without rounding. `trouble` says why a verdict is INCONCLUSIVE, and of which trial.
    `proof` is that of a claim that is PROVEN, or of its correction.
    """

    claim: Claim
    outcome: Outcome
    trials: int
    printed: Evidence | None = None
    corrected: Evidence | None = None
    counterexample: Case | None = None
    proven: bool = False
    trouble: str = ""
    measured: int = 0
    seconds: float = 0.0
    proof: Proof | None = None

    @property
    def expected(self) -> bool:
        """Whether the outcome is the registered one."""
        return self.outcome is self.claim.expected


@dataclass(frozen=True)
class Verification:
    """The findings of one call, in the order of the papers."""

    findings: tuple[Finding, ...]
    trials: int
    seed: int

    @property
    def unexpected(self) -> tuple[Finding, ...]:
        """The findings that differ from what is registered."""
        return tuple(finding for finding in self.findings if not finding.expected)

    @property
    def claims(self) -> tuple[Finding, ...]:
        """The findings on what papers say: all but remarks and theorems of methods."""
        return tuple(
            finding
            for finding in self.findings
            if not (finding.claim.is_remark or finding.claim.is_of_a_method)
        )

    @property
    def remarks(self) -> tuple[Finding, ...]:
        """The findings on klopt's own remarks, which are counted apart."""
        return tuple(finding for finding in self.findings if finding.claim.is_remark)

    @property
    def methods(self) -> tuple[Finding, ...]:
        """The findings on theorems of methods, which are counted apart."""
        return tuple(finding for finding in self.findings if finding.claim.is_of_a_method)

    def __getitem__(self, name: str) -> Finding:
        for finding in self.findings:
            if finding.claim.answers_to(name):
                return finding
        raise KeyError(name)

    def __repr__(self) -> str:
        parts = [_counted("claim", self.claims)] if self.claims else []
        parts += [_counted("remark", self.remarks)] if self.remarks else []
        parts += [_counted("rate", self.methods)] if self.methods else []
        return f"Verification of {'; '.join(parts)}; {len(self.unexpected)} unexpected"

    def _repr_html_(self) -> str:
        word, symbol, colour = ("as expected", "✓", GOOD)
        if self.unexpected:
            word, symbol, colour = (f"{len(self.unexpected)} unexpected", "✗", BAD)
        rows = [
            (f.claim.name, f.outcome.value, f.claim.expected.value, f.trials, f.claim.says)
            for f in sorted(self.findings, key=lambda finding: finding.expected)
        ]
        heads = ["claim", "found", "expected", "trials", "statement"]
        title = f"<p>{badge(word, symbol, colour)} {escape(repr(self))}</p>"
        left = len(rows) - MAX_ROWS
        more = f"<p>{counted(left, 'more finding')}</p>" if left > 0 else ""
        return title + html_table("", heads, rows[:MAX_ROWS]) + more


def _counted(word: str, findings: Sequence[Finding]) -> str:
    """How many there are, and how many of each outcome."""
    counts = {outcome: sum(f.outcome is outcome for f in findings) for outcome in Outcome}
    said = ", ".join(f"{count} {outcome.value}" for outcome, count in counts.items() if count)
    return f"{len(findings)} {word}{'s' * (len(findings) != 1)}: {said}"


def verify(
    claims: str | Claim | Sequence[str | Claim] | None = None,
    *,
    trials: int = 50,
    seed: int = 0,
    jobs: int = 1,
) -> Verification:
    """Return what so many trials say of claims: names, `Claim` objects, Python files, or all.

    Parameters
    ----------
    claims : str, Claim, sequence of these, or None
        Names of claims, `Claim` objects or Python files that define some; None for all of klopt.
    trials : int
        Instances of each claim.
    seed : int
        The seed that they are drawn by.
    jobs : int
        The number of processes.

    Returns
    -------
    Verification
        The findings, indexed by name; `.unexpected` has those that differ from what is registered.

    Examples
    --------
    >>> verify("mao2010-eq5", trials=5)
    Verification of 1 claim: 1 PROVEN AS CORRECTED; 0 unexpected
    """
    for name, value, low in (("trials", trials, 1), ("seed", seed, 0), ("jobs", jobs, 1)):
        whole_number(name, value, low)
    if claims is None:
        return verify_claims(select(), trials=trials, seed=seed, jobs=jobs)
    given = (
        list(claims) if isinstance(claims, Iterable) and not isinstance(claims, str) else [claims]
    )
    chosen: list[Claim] = []
    for one in given:
        if not isinstance(one, str | Claim):
            raise InvalidSettings(
                f"{one!r} is no claim; expected its name or what @klopt.theorem made"
            )
        chosen += [one] if isinstance(one, Claim) else select([one])
    return verify_claims(chosen, trials=trials, seed=seed, jobs=jobs)


def verify_claims(
    claims: Sequence[Claim],
    *,
    trials: int = 50,
    seed: int = 0,
    jobs: int = 1,
    tell: Callable[[Finding], None] | None = None,
) -> Verification:
    """Return the findings of the claims, by `jobs` processes; `tell` is called with each in turn."""
    if trials < 1 or seed < 0:
        raise InvalidSettings(
            f"trials is {trials} and seed {seed}; expected at least 1 and at least 0"
        )
    findings = []
    for finding in _findings(claims, trials, seed, jobs):
        findings.append(finding)
        if tell is not None:
            tell(finding)
    return Verification(tuple(findings), trials, seed)


def _findings(claims: Sequence[Claim], trials: int, seed: int, jobs: int) -> Iterator[Finding]:
    """The findings in the order of the claims, each as soon as it is there."""
    if jobs == 1:
        yield from (examine(claim, trials, seed) for claim in claims)
        return
    from joblib import Parallel, delayed

    run = Parallel(n_jobs=jobs, return_as="generator")
    yield from run(delayed(examine)(claim, trials, seed) for claim in claims)


def examine(claim: Claim, trials: int, seed: int) -> Finding:
    """Return what proof and trials say of one claim; a check that breaks is INCONCLUSIVE."""
    began = perf_counter()
    found = Finding(claim, Outcome.UNCHECKED, 0)
    if claim.printed is not None:
        try:
            found = _examined(claim, min(trials, claim.most or trials), seed)
        except BrokenCheckError as broken:
            found = Finding(claim, Outcome.INCONCLUSIVE, broken.trial, trouble=str(broken))
    if claim.proof is not None:
        found = _with_proof(found)
    return replace(found, seconds=perf_counter() - began)


def _with_proof(found: Finding) -> Finding:
    """The finding with the proof of its claim; trials that fail are stronger than any proof."""
    claim = found.claim
    if claim.printed is not None and found.outcome not in PROVEN_FOR:
        return found
    assert claim.proof is not None
    try:
        proof = claim.proof()
    except Exception as error:
        # A proof may be a user's: whatever it raises is said, and costs no other claim.
        why = f"no proof: {type(error).__name__}: {error}"
        if claim.printed is None:
            return replace(found, outcome=Outcome.INCONCLUSIVE, trouble=why)
        return replace(found, trouble=why)
    return replace(found, outcome=PROVEN_FOR.get(found.outcome, Outcome.PROVEN), proof=proof)


def replay(claim: Claim, case: Case) -> Finding:
    """Return what one given case says of a claim."""
    if claim.printed is None:
        why = claim.reason or "its proof decides it"
        raise InvalidSettings(f"{claim.name} has no check of instances: {why}")
    try:
        if claim.meets is not None and not _run(claim.meets, case, 1):
            return Finding(claim, Outcome.UNMET, 1)
        found = _judged(claim, [case])
        return found if claim.proof is None else _with_proof(found)
    except BrokenCheckError as broken:
        return Finding(claim, Outcome.INCONCLUSIVE, broken.trial, trouble=str(broken))


class BrokenCheckError(Exception):
    """What a draw, a premise or a check of one claim raised, and in which trial."""

    def __init__(self, trial: int, error: Exception) -> None:
        frames = extract_tb(error.__traceback__)
        where = f" ({frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno})" if frames else ""
        super().__init__(f"trial {trial}: {type(error).__name__}: {error}{where}")
        self.trial = trial


def _run(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function of a claim returns for all but the last argument, the number of the trial."""
    *given, trial = arguments
    try:
        return function(*given)
    except Exception as error:
        # A check may be a user's: whatever it raises is said, and costs no other claim.
        raise BrokenCheckError(trial, error) from error


def _measure(check: Check, case: Case, trial: int) -> Evidence:
    found = _run(check, case, trial)
    if isinstance(found, Evidence):
        return found
    wrong = TypeError(
        f"the check returned {found!r}, {_article(type(found).__name__)}; expected evidence, such "
        "as at_most(left, right), equal(left, right) or overlap(one, other)"
    )
    raise BrokenCheckError(trial, wrong)


def _article(name: str) -> str:
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _examined(claim: Claim, trials: int, seed: int) -> Finding:
    cases = list(_cases(claim, trials, seed))
    if not cases:
        return Finding(claim, Outcome.UNMET, 0)
    return _judged(claim, cases, partial(_shrunk, claim, seed))


def _judged(claim: Claim, cases: Sequence[Case], shrink: partial[Case] | None = None) -> Finding:
    assert claim.printed is not None
    printed = [_measure(claim.printed, case, n) for n, case in enumerate(cases, 1)]
    corrected = None
    if claim.corrected is not None:
        corrected = [_measure(claim.corrected, case, n) for n, case in enumerate(cases, 1)]
    failing = next(
        (case for case, evidence in zip(cases, printed, strict=True) if evidence.fails), None
    )
    if failing is not None and shrink is not None:
        failing = shrink(failing)

    outcome = _outcome(printed, corrected)
    # A statement that fails is decided by its correction, if it has one.
    deciding = printed if corrected is None or failing is None else corrected
    return Finding(
        claim=claim,
        outcome=outcome,
        trials=len(cases),
        printed=_weakest(printed),
        corrected=None if corrected is None else _weakest(corrected),
        counterexample=failing,
        proven=failing is not None and proven(claim, failing),
        trouble=_undecided(deciding) if outcome is Outcome.INCONCLUSIVE else "",
        measured=sum(evidence.measured for evidence in deciding),
    )


def _outcome(printed: Sequence[Evidence], corrected: Sequence[Evidence] | None) -> Outcome:
    if any(evidence.fails for evidence in printed):
        if corrected is None or any(evidence.fails for evidence in corrected):
            return Outcome.REFUTED
        return Outcome.CORRECTED if _all_hold(corrected) else Outcome.INCONCLUSIVE
    return Outcome.HOLDS if _all_hold(printed) else Outcome.INCONCLUSIVE


def _all_hold(found: Sequence[Evidence]) -> bool:
    """Whether it holds on every trial that measured something, and there is one."""
    measured = [evidence for evidence in found if evidence.measured]
    return bool(measured) and all(evidence.holds for evidence in measured)


def _undecided(found: Sequence[Evidence]) -> str:
    """The first trial that decides nothing, and why."""
    for trial, evidence in enumerate(found, 1):
        if evidence.undefined:
            return f"trial {trial}: measured / allowed is not a number (NaN)"
        if evidence.measured and not evidence.holds:
            ends = f"{evidence.best:.17g} to {evidence.worst:.17g}"
            return (
                f"trial {trial}: measured / allowed lies in {ends}, on both sides of 1; narrower "
                "intervals of the optima decide it, or a larger `tol` of the comparison"
            )
    reasons = "; ".join(dict.fromkeys(e.detail for e in found if e.detail))
    return f"none of {len(found)} trials measured anything{f': {reasons}' if reasons else ''}"


def _weakest(found: Sequence[Evidence]) -> Evidence | None:
    """The evidence that holds least: what fails, then what is undecided, then what holds."""

    def weakness(evidence: Evidence) -> tuple[int, float, float]:
        if evidence.undefined:
            return 2, 0.0, 0.0
        rank = 3 if evidence.fails else 1 - evidence.holds
        return rank, evidence.best, evidence.worst

    return max((e for e in found if e.measured), key=weakness, default=None)


def _cases(claim: Claim, trials: int, seed: int) -> Iterator[Case]:
    """The example, then up to so many drawn cases that meet the premise."""
    if claim.example is not None:
        yield claim.example
    if claim.draw is None:
        return
    made = 0
    for number in range(MAX_DRAWS_PER_TRIAL * trials):
        rng = np.random.default_rng([seed, crc32(claim.name.encode()), number])
        case = _run(claim.draw, rng, claim.sizes[number % len(claim.sizes)], made + 1)
        if claim.meets is None or _run(claim.meets, case, made + 1):
            yield case
            made += 1
        if made == trials:
            return


def _shrunk(claim: Claim, seed: int, found: Case) -> Case:
    """A failing case of the smallest size, in the roundest numbers, that the draws give."""
    if claim.example is not None and _fails(claim, claim.example):
        return claim.example
    if claim.draw is None:
        return found
    for size in sorted(claim.sizes):
        streams = (
            np.random.default_rng([seed, crc32(claim.name.encode()), size, n])
            for n in range(SHRINK_DRAWS_PER_SIZE)
        )
        cases = [claim.draw(rng, size) for rng in streams]
        for parts in (*ROUNDING_DENOMINATORS, None):
            for case in cases:
                simpler = case if parts is None else rounded(case, claim.whole, parts)
                if _fails(claim, simpler):
                    return simpler
    return found


def _fails(claim: Claim, case: Case) -> bool:
    assert claim.printed is not None
    try:
        return (claim.meets is None or claim.meets(case)) and claim.printed(case).fails
    except Exception:
        # A case that is rounded or smaller may be outside what the check can take.
        return False


def proven(claim: Claim, case: Case) -> bool:
    """Return whether exact arithmetic confirms that the claim fails here.

    It is False where the library for exact numbers is not installed.
    """
    if claim.exact is None:
        return False
    try:
        return surely_above(*claim.exact(rational(case)))
    except InvalidSettings:  # the library for exact numbers is not installed
        return False
