"""`verify`: the claims of the five papers, or one's own, checked on many instances each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from klopt.backend import whole_number
from klopt.errors import InvalidSettings
from klopt.theorems.catalogue import select
from klopt.theorems.claim import Claim
from klopt.theorems.verification import Verification, verify_claims

__all__ = ["verify"]


def verify(
    claims: str | Claim | Sequence[str | Claim] | None = None, *, trials: int = 50, seed: int = 0, jobs: int = 1
) -> Verification:
    """Return what so many trials say of the claims: names, claims of one's own, Python files of them, or all there are.

    Each claim is tried on `trials` instances drawn by `seed`, in `jobs` processes. The result is indexed by name; what
    differs from what is registered for a claim is in `.unexpected`.

    >>> verify("004-3", trials=5)
    Verification of 1 claims: 1 HOLDS AS CORRECTED; 0 unexpected
    """
    for name, value, low in (("trials", trials, 1), ("seed", seed, 0), ("jobs", jobs, 1)):
        whole_number(name, value, low)
    if claims is None:
        return verify_claims(select(), trials=trials, seed=seed, jobs=jobs)
    given = list(claims) if isinstance(claims, Iterable) and not isinstance(claims, str) else [claims]
    chosen: list[Claim] = []
    for one in given:
        if not isinstance(one, str | Claim):
            raise InvalidSettings(f"{one!r} is no claim; expected its name or what @klopt.theorem made")
        chosen += [one] if isinstance(one, Claim) else select([one])
    return verify_claims(chosen, trials=trials, seed=seed, jobs=jobs)
