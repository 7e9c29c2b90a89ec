"""Writes certificates to files, and checks them by the checker that needs nothing of klopt."""

from __future__ import annotations

import json
import uuid
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from klopt.certificates.cone_certificate import no_end, no_point, two_ends
from klopt.certificates.encoding import encode_number
from klopt.certificates.family_certificate import decimal_claim, parts_of_claim
from klopt.checker import klopt_check
from klopt.errors import InvalidProblem, NotCertified
from klopt.model.problem import Point, Problem
from klopt.proof.certificate import Certificate, Verdict
from klopt.proof.cone_witnesses import ConeClaim
from klopt.proof.rational import floats_around
from klopt.witness.certify_exact import StatedInRationals
from klopt.witness.exact_claims import ExactClaim

__all__ = ["certificate_text", "check", "write_text"]


NUDGES = (0.0, 1e-13, 1e-11, 1e-9)
"""Shares by which multipliers are moved into curved cones, in this order, until one suffices."""


@runtime_checkable
class StatedAsConeProgram(Protocol):
    """A problem that can be written down as a cone program, with no number rounded."""

    def cone_claim(self, point: Point) -> ConeClaim | None:
        """Return the cone program with the vectors of a point; None where it cannot be had."""


@runtime_checkable
class StatedInFractions(Protocol):
    """A problem that states itself and its proof in fractions."""

    def exact_claim(self, point: Point, verdict: str) -> ExactClaim:
        """Return the statement with the vectors of a point; raise `NotCertified` where it has none."""


def certificate_text(
    problem: Problem, certificate: Certificate, point: Point | None, ray: Point | None = None
) -> str:
    """Return the certificate of what was proven about a problem, as a file holds it.

    It is checked before it is returned.

    Parameters
    ----------
    problem
        What the verdict is about.
    certificate
        The verdict.
    point
        The point and multipliers that prove it; of an infeasible problem, the contradiction.
    ray
        Of an unbounded problem, the direction.
    """
    verdict = certificate.verdict
    if not verdict.conclusive:
        raise NotCertified(f"the verdict is {verdict.name}: only conclusive ones are written")
    # Decimals of a file are other numbers than the floats that a cone program is written in.
    if isinstance(problem, StatedInRationals) and problem.rational is not None:
        return _checked_family(decimal_claim(problem, point), verdict.name, certificate.tol)
    if point is not None and isinstance(problem, StatedInFractions):
        return _checked_family(
            problem.exact_claim(point, verdict.name), verdict.name, certificate.tol
        )
    claim = None
    if point is not None and isinstance(problem, StatedAsConeProgram):
        claim = problem.cone_claim(point)
    if claim is None:
        raise NotCertified(f"{type(problem).__name__} has no certificate that travels yet")
    reason = ""
    for nudge in NUDGES:
        try:
            return _checked_text(problem, verdict, claim, certificate.tol, ray, nudge)
        except (NotCertified, klopt_check.Rejected) as error:
            reason = reason or str(error)
    raise NotCertified(f"no exact witness was found: {reason}")


def _checked_text(
    problem: Problem,
    verdict: Verdict,
    claim: ConeClaim,
    tol: float,
    ray: Point | None,
    nudge: float,
) -> str:
    """The text of a certificate that has passed the checker.

    Parameters
    ----------
    problem, verdict, claim, tol, ray
        As above.
    nudge
        The share by which multipliers are moved into curved cones.
    """
    if verdict is Verdict.OPTIMAL:
        parts = two_ends(claim, tol, nudge)
        _state_ends(parts)
    elif verdict is Verdict.INFEASIBLE:
        parts = no_point(claim, nudge)
    else:
        assert isinstance(problem, StatedAsConeProgram)
        along = None if ray is None else problem.cone_claim(ray)
        parts = no_end(claim, claim.x if along is None else along.x)
    parts["format"] = klopt_check.FORMAT
    parts["digest"] = klopt_check.digest(parts["problem"])
    text = json.dumps(parts, indent=1)
    klopt_check.check(text)
    return text


def _checked_family(claim: ExactClaim, verdict: str, tol: float) -> str:
    """The text of a certificate in fractions that has passed the checker."""
    parts = parts_of_claim(claim, verdict, tol)
    try:
        if verdict == "OPTIMAL":
            _state_ends(parts)
        parts["format"] = klopt_check.FORMAT
        parts["digest"] = klopt_check.digest(parts["problem"])
        text = json.dumps(parts, indent=1)
        klopt_check.check(text)
    except klopt_check.Rejected as error:
        raise NotCertified(f"no exact witness was found: {error}") from None
    return text


def write_text(path: str | PathLike[str], text: str) -> None:
    """Write a certificate; a file that was there before stays until the new one is complete."""
    target = Path(path)
    unfinished = target.with_name(f"{target.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def check(path: str | PathLike[str]) -> str:
    """Return what a certificate proves, in a sentence; raise `InvalidProblem` where it does not.

    Nothing is solved: the vectors in the file are checked in exact arithmetic.

    Parameters
    ----------
    path : str or path
        A file that `result.certificate.save` or `klopt solve --certificate` has written.

    Returns
    -------
    str
        The claim, proven.

    Raises
    ------
    InvalidProblem
        Where the file is no certificate or does not prove its claim.

    Examples
    --------
    >>> import tempfile
    >>> from klopt.engine.pipeline import solve
    >>> from klopt.engine.registry import problem_named
    >>> result = solve(problem_named("LP")([1.0, 1.0], A_ub=[[-1.0, -2.0]], b_ub=[-2.0]))
    >>> path = Path(tempfile.mkdtemp()) / "proof.json"
    >>> result.certificate.save(path)
    >>> check(path)
    'OPTIMAL: 1 <= optimum <= 1'
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InvalidProblem(f"{path} is no text, so no certificate") from None
    try:
        return str(klopt_check.check(text))
    except klopt_check.Rejected as reason:
        raise InvalidProblem(f"{path}: {reason}") from None


def _state_ends(parts: dict[str, Any]) -> None:
    """Claim what the witness proves, rounded outwards to float64."""
    program = klopt_check.RULES[parts["problem"]["rule"]](parts["problem"])
    ends = sorted(program.scale * end + program.shift for end in program.ends(parts["witness"]))
    parts["claim"]["lower"] = encode_number(floats_around(ends[0])[0])
    parts["claim"]["upper"] = encode_number(floats_around(ends[1])[1])
