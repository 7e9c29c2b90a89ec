"""`Claim`, `Basis`, `Outcome`, `theorem`: a statement of a paper, its instances and its measurement.

A claim is a function of a *case* (named numbers and arrays) that returns `Evidence`. The decorated
function states what is printed; `corrected` states what should have been. The file of a
paper lists its claims in the order of the paper.

    @theorem("mao2010-eq5", says="The manifold regulariser (5) is tr(KL).", draw=graph_and_points,
             quote="A manifold regularizer ... can be written as", ...)
    def regulariser(case): ...

`quote` is what the paper prints, and `basis` whether that says the claim or only implies it. What
the paper does not say at all, but its reader should know, is a remark of klopt's: it is checked like
a claim and counted apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

import numpy as np

from klopt.errors import InvalidSettings
from klopt.papers.theorems.evidence import Evidence
from klopt.papers.theorems.proofs.proof import Proof

__all__ = ["Basis", "Case", "Claim", "Outcome", "listed", "method_theorem", "theorem"]

Case: TypeAlias = Mapping[str, Any]
"""Named numbers and arrays: all that determines an instance."""
Check: TypeAlias = Callable[[Case], Evidence]
Draw: TypeAlias = Callable[[np.random.Generator, int], Case]
Exact: TypeAlias = Callable[[Case], tuple[Any, Any]]
"""The two sides of "left <= right" as exact rationals or balls, from the same case."""


class Basis(StrEnum):
    """How a claim rests on the words of its paper."""

    STATED = "stated"
    IMPLIED = "implied"
    REMARK = "remark"
    """klopt's own: the paper says nothing of the kind."""
    METHOD = "of a method"
    """The theorem of a method that klopt runs, known from other papers."""


class Outcome(StrEnum):
    """What proofs and trials say of a claim."""

    PROVEN = "PROVEN"
    """Decided once and for all, by certificates that the independent checker accepts."""
    PROVEN_CORRECTED = "PROVEN AS CORRECTED"
    """What is printed fails, and what should have been is proven."""
    HOLDS = "HOLDS"
    CORRECTED = "HOLDS AS CORRECTED"
    REFUTED = "REFUTED"
    UNMET = "PREMISE NOT MET"
    INCONCLUSIVE = "INCONCLUSIVE"
    UNCHECKED = "NOT CHECKABLE"


@dataclass(frozen=True)
class Claim:
    """One statement of one paper.

    `number` is the place in the paper, `quote` what is printed there, `basis` how the claim rests on
    it, and `formerly` a name that the claim had before. `example` is a case found by hand, tried
    before the drawn ones; `exact` re-checks a failure of the printed statement without rounding.
    `sizes` are what `draw` is asked for; `whole` names the entries that a counterexample may round
    to simple numbers; `most` caps the trials of a costly check. `reason` says why a claim that has
    no check cannot have one.
    """

    name: str
    paper: str
    number: str
    says: str
    latex: str
    expected: Outcome
    printed: Check | None = None
    corrected: Check | None = None
    draw: Draw | None = None
    premise: str = ""
    meets: Callable[[Case], bool] | None = None
    correction: str = ""
    example: Case | None = None
    exact: Exact | None = None
    sizes: tuple[int, ...] = (2, 3, 5, 8)
    whole: tuple[str, ...] = ()
    most: int | None = None
    reason: str = ""
    quote: str = ""
    basis: Basis = Basis.STATED
    formerly: str = ""
    source: str = field(default="", compare=False)
    """Where the check is written: module and line."""
    proof: Callable[[], Proof] | None = None
    """Proves the claim, or its correction where it has one; `expected` then says so."""

    @property
    def is_of_a_method(self) -> bool:
        """Whether it is the theorem of a method, and of none of the five papers."""
        return self.basis is Basis.METHOD

    @property
    def is_remark(self) -> bool:
        """Whether it is klopt's own and counted apart from the claims of the paper."""
        return self.basis is Basis.REMARK

    def answers_to(self, name: str) -> bool:
        """Return whether that is its name, or one that it had before."""
        return name in (self.name, self.formerly) and bool(name)


PROVEN_FOR = {
    Outcome.HOLDS: Outcome.PROVEN,
    Outcome.CORRECTED: Outcome.PROVEN_CORRECTED,
}
"""What a proof makes of a claim that holds, or that holds as corrected."""


def theorem(
    name: str,
    *,
    says: str,
    draw: Draw,
    paper: str = "",
    number: str = "",
    latex: str = "",
    expected: Outcome = Outcome.HOLDS,
    premise: str = "",
    meets: Callable[[Case], bool] | None = None,
    correction: str = "",
    corrected: Check | None = None,
    example: Case | None = None,
    exact: Exact | None = None,
    sizes: tuple[int, ...] = (2, 3, 5, 8),
    whole: tuple[str, ...] = (),
    most: int | None = None,
    quote: str = "",
    basis: Basis = Basis.STATED,
    formerly: str = "",
    proof: Callable[[], Proof] | None = None,
) -> Callable[[Check], Claim]:
    """Return a decorator that makes a claim of the function that measures it.

    Parameters
    ----------
    name : str
        The name of the claim; what precedes its first hyphen names the paper.
    says : str
        The statement in words.
    draw : callable
        Returns a case for a random generator and a size.
    paper, number, latex : str
        The paper, the place of the statement there, and its formula.
    expected : Outcome
        The registered outcome; another one is reported as unexpected.
    premise : str
        What the statement assumes, in words.
    meets : callable, optional
        Whether a case meets the premise; cases that do not are left out.
    correction : str
        What holds in place of the printed statement, in words.
    corrected : callable, optional
        The evidence for the corrected statement.
    example : Case, optional
        A case found by hand, tried before the drawn ones.
    exact : callable, optional
        Both sides of the printed statement without rounding, to confirm a counterexample.
    sizes : tuple of int
        The sizes that `draw` is asked for.
    whole : tuple of str
        Entries that a counterexample may round to simple numbers.
    most : int, optional
        The largest number of trials, where a check is costly.
    quote : str
        What the paper prints, word by word.
    basis : Basis
        Whether the quotation states the claim, implies it, or the claim is a remark of one's own.
    formerly : str
        A name that the claim had before, by which it is still found.
    proof : callable, optional
        Returns a `Proof` of the claim, or of its correction where it has one. The outcome that is
        registered is then PROVEN for HOLDS, and PROVEN AS CORRECTED for HOLDS AS CORRECTED.

    Examples
    --------
    >>> from klopt.papers.theorems.evidence import at_most
    >>> def numbers(rng, n):
    ...     return {"a": rng.normal(), "b": rng.normal()}
    >>> @theorem("triangle", says="|a + b| <= |a| + |b|", draw=numbers)
    ... def triangle(case):
    ...     return at_most(abs(case["a"] + case["b"]), abs(case["a"]) + abs(case["b"]))
    >>> triangle.expected.value
    'HOLDS'
    """

    def claim(printed: Check) -> Claim:
        code = getattr(printed, "__code__", None)
        if code is None:
            raise InvalidSettings(
                f"theorem {name!r} is put on {printed!r}; expected a function that measures a case"
            )
        return Claim(
            name=name,
            paper=paper or name.partition("-")[0],
            number=number,
            says=says,
            latex=latex,
            expected=PROVEN_FOR[expected] if proof is not None else expected,
            printed=printed,
            corrected=corrected,
            draw=draw,
            premise=premise,
            meets=meets,
            correction=correction,
            example=example,
            exact=exact,
            sizes=sizes,
            whole=whole,
            most=most,
            quote=quote,
            basis=basis,
            formerly=formerly,
            source=f"{printed.__module__}:{code.co_firstlineno}",
            proof=proof,
        )

    return claim


def listed(
    name: str,
    *,
    says: str,
    reason: str,
    number: str = "",
    latex: str = "",
    paper: str = "",
    quote: str = "",
    basis: Basis = Basis.STATED,
    formerly: str = "",
) -> Claim:
    """Return a claim that no computation can check, with the reason."""
    return Claim(
        name=name,
        paper=paper or name.partition("-")[0],
        number=number,
        says=says,
        latex=latex,
        expected=Outcome.UNCHECKED,
        reason=reason,
        quote=quote,
        basis=basis,
        formerly=formerly,
    )


def method_theorem(
    name: str,
    *,
    says: str,
    latex: str,
    reference: str,
    proof: Callable[[], Proof],
    correction: str = "",
) -> Claim:
    """Return the theorem of a method, which its proof alone decides.

    Parameters
    ----------
    name
        The name of the claim; what precedes its first hyphen names the group.
    says, latex
        The statement in words, and its formula.
    reference
        Where the theorem is known from.
    proof
        Returns its proof.
    correction
        A remark on the constant.
    """
    return Claim(
        name=name,
        paper=name.partition("-")[0],
        number=reference,
        says=says,
        latex=latex,
        expected=Outcome.PROVEN,
        basis=Basis.METHOD,
        correction=correction,
        source=f"{proof.__module__}:{proof.__code__.co_firstlineno}",
        proof=proof,
    )
