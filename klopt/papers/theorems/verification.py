"""Runs the claims: many drawn instances, one verdict, and the smallest counterexample of each.

Every claim has its own stream of random numbers, so that its verdict depends on the seed and on
nothing else that runs. A check on many instances is no proof; a counterexample that is confirmed in
exact arithmetic is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from zlib import crc32

import numpy as np

from klopt.errors import InvalidProblem, InvalidSettings, KloptError
from klopt.model.backend import whole_number
from klopt.papers.theorems.cases import rational, rounded, surely_above
from klopt.papers.theorems.catalogue import select
from klopt.papers.theorems.claim import Case, Claim, Outcome
from klopt.papers.theorems.evidence import Evidence

__all__ = ["Finding", "Verification", "examine", "proven", "replay", "verify", "verify_claims"]

MAX_DRAWS_PER_TRIAL = 5
"""Draws per trial asked for, of which those that meet the premise are used."""
SHRINK_DRAWS_PER_SIZE = 25
"""Draws of each smaller size among which a smaller counterexample is searched."""
ROUNDING_DENOMINATORS = (1, 2, 4, 10, 100)
"""A counterexample's entries are tried as multiples of 1, 1/2, 1/4, 1/10 and 1/100."""


@dataclass(frozen=True)
class Finding:
    """What the trials of one claim say.

    `printed` and `corrected` are the evidence of the trial where each holds least. `proven` says
    that the failure of the printed statement on the counterexample was confirmed without rounding.
    `trouble` is what a broken check said.
    """

    claim: Claim
    outcome: Outcome
    trials: int
    printed: Evidence | None = None
    corrected: Evidence | None = None
    counterexample: Case | None = None
    proven: bool = False
    trouble: str = ""
    seconds: float = 0.0

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

    def __getitem__(self, name: str) -> Finding:
        for finding in self.findings:
            if finding.claim.name == name:
                return finding
        raise KeyError(name)

    def __repr__(self) -> str:
        counts = {outcome: sum(f.outcome is outcome for f in self.findings) for outcome in Outcome}
        said = ", ".join(f"{count} {outcome.value}" for outcome, count in counts.items() if count)
        return (
            f"Verification of {len(self.findings)} claims: {said}; "
            f"{len(self.unexpected)} unexpected"
        )


def verify(
    claims: str | Claim | Sequence[str | Claim] | None = None,
    *,
    trials: int = 50,
    seed: int = 0,
    jobs: int = 1,
) -> Verification:
    """Return what so many trials say of claims: names, `Claim` objects, Python files, or all.

    Each claim is tried on `trials` instances drawn by `seed`, in `jobs` processes. The result is
    indexed by name; what differs from what is registered for a claim is in `.unexpected`.

    >>> verify("004-3", trials=5)
    Verification of 1 claims: 1 HOLDS AS CORRECTED; 0 unexpected
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
    claims: Sequence[Claim], *, trials: int = 50, seed: int = 0, jobs: int = 1
) -> Verification:
    """Return the findings of the claims, by `jobs` processes."""
    if trials < 1 or seed < 0:
        raise InvalidSettings(
            f"trials is {trials} and seed {seed}; expected at least 1 and at least 0"
        )
    if jobs == 1:
        findings = [examine(claim, trials, seed) for claim in claims]
    else:
        from joblib import Parallel, delayed

        findings = Parallel(n_jobs=jobs)(delayed(examine)(claim, trials, seed) for claim in claims)
    return Verification(tuple(findings), trials, seed)


def examine(claim: Claim, trials: int, seed: int) -> Finding:
    """Return what so many trials say of one claim."""
    if claim.printed is None:
        return Finding(claim, Outcome.UNCHECKED, 0)
    began = perf_counter()
    try:
        found = _examined(claim, min(trials, claim.most or trials), seed)
    except (KloptError, ArithmeticError, ValueError, np.linalg.LinAlgError) as error:
        found = Finding(claim, Outcome.INCONCLUSIVE, 0, trouble=f"{type(error).__name__}: {error}")
    return Finding(**(vars(found) | {"seconds": perf_counter() - began}))


def replay(claim: Claim, case: Case) -> Finding:
    """Return what one given case says of a claim."""
    if claim.printed is None:
        raise InvalidSettings(f"{claim.name} has no check: {claim.reason}")
    if claim.meets is not None and not claim.meets(case):
        return Finding(claim, Outcome.UNMET, 1)
    return _judged(claim, [case])


def _examined(claim: Claim, trials: int, seed: int) -> Finding:
    cases = list(_cases(claim, trials, seed))
    if not cases:
        return Finding(claim, Outcome.UNMET, 0)
    return _judged(claim, cases, partial(_shrunk, claim, seed))


def _judged(claim: Claim, cases: Sequence[Case], shrink: partial[Case] | None = None) -> Finding:
    assert claim.printed is not None
    printed = [claim.printed(case) for case in cases]
    corrected = [claim.corrected(case) for case in cases] if claim.corrected is not None else None
    failing = next(
        (case for case, evidence in zip(cases, printed, strict=True) if evidence.fails), None
    )
    if failing is not None and shrink is not None:
        failing = shrink(failing)
    return Finding(
        claim=claim,
        outcome=_outcome(printed, corrected),
        trials=len(cases),
        printed=_weakest(printed),
        corrected=None if corrected is None else _weakest(corrected),
        counterexample=failing,
        proven=failing is not None and proven(claim, failing),
    )


def _outcome(printed: Sequence[Evidence], corrected: Sequence[Evidence] | None) -> Outcome:
    if any(evidence.fails for evidence in printed):
        if corrected is None or any(evidence.fails for evidence in corrected):
            return Outcome.REFUTED
        if all(evidence.holds for evidence in corrected):
            return Outcome.CORRECTED
        return Outcome.INCONCLUSIVE
    if all(evidence.holds for evidence in printed):
        return Outcome.HOLDS
    return Outcome.INCONCLUSIVE


def _weakest(found: Sequence[Evidence]) -> Evidence:
    return max(
        found, key=lambda evidence: (np.nan_to_num(evidence.best, nan=np.inf), evidence.worst)
    )


def _cases(claim: Claim, trials: int, seed: int) -> Iterator[Case]:
    """The example, then up to so many drawn cases that meet the premise."""
    if claim.example is not None:
        yield claim.example
    if claim.draw is None:
        return
    made = 0
    for number in range(MAX_DRAWS_PER_TRIAL * trials):
        rng = np.random.default_rng([seed, crc32(claim.name.encode()), number])
        case = claim.draw(rng, claim.sizes[number % len(claim.sizes)])
        if claim.meets is None or claim.meets(case):
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
    except (InvalidProblem, ArithmeticError, ValueError, np.linalg.LinAlgError):
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
