"""The certificates that a page holds, and the checker that proves them again in the browser.

A page holds the checker of `checker/klopt_check.js` and as many certificates as its size allows, the
smallest first, all compressed. Certificates of one problem share its statement. The checker runs in
a worker of the browser, which needs no network; a certificate that is not in the page may be chosen
from the folder that `klopt certificates` writes.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from klopt.bench.record import Run
from klopt.bench.report.figures import shown
from klopt.bench.run_certificates import RunCertificate, unpacked
from klopt.bench.trials import Trial

__all__ = ["PageProofs", "checker_source", "page_proofs"]

MAX_BYTES = 200_000
"""What the certificates of a page may take."""
MAX_KEY_CHARACTERS = 16
"""As many digits of a run's key name its certificate."""
_DIGEST = re.compile('"digest": "([0-9a-f]{64})"')


@dataclass(frozen=True)
class PageProofs:
    """The checker and the certificates of a page, and how many rows have which."""

    checker: str
    content: str
    rows: int
    inside: int
    outside: int
    """Rows whose certificates are kept in the store only."""


def checker_source() -> str:
    """Return the checker in JavaScript, as it lies beside the one in Python."""
    return files("klopt.checker").joinpath("klopt_check.js").read_text(encoding="utf-8")


def page_proofs(
    found: Sequence[Trial],
    anchors: Mapping[str, str],
    certificates: Mapping[str, RunCertificate],
    max_bytes: int = MAX_BYTES,
) -> PageProofs | None:
    """Return what a page needs to prove its rows again; None where no run has a certificate.

    Parameters
    ----------
    found
        The rows of the page.
    anchors
        Where the details of a run stand, by the run's key.
    certificates
        Those of the runs, by key.
    max_bytes
        What they may take on the page; with 0, what is left is the checker and names.
    """
    rows = [shown(trial) for trial in found]
    known = {run.key: certificates.get(run.key, RunCertificate()) for run in rows}
    if not any(each.content for each in known.values()):
        return None
    checker = _embedded(checker_source())
    left = min(max_bytes, MAX_BYTES)

    texts: list[str] = []
    place: dict[str, int] = {}
    """Where the statement of a problem stands among them, by the digest of its data."""
    inside: list[tuple[str, int, str]] = []
    outside: list[tuple[str, str, str, int]] = []
    for run in sorted(rows, key=lambda run: len(known[run.key].content)):
        content = known[run.key].content
        if not content:
            continue
        anchor = anchors[run.key]
        text = unpacked(content)
        # What is compressed in two parts takes about as much as it does in one.
        if run.data not in place and len(content) > left:
            name = run.key[:MAX_KEY_CHARACTERS]
            outside.append((anchor, name, _digest(text), len(content)))
            continue
        statement, rest = _parts(text)
        # Of a problem whose statement is there already, what is new counts alone.
        cost = len(_embedded(rest))
        if run.data not in place:
            cost += len(_embedded(statement))
        if cost > left:
            name = run.key[:MAX_KEY_CHARACTERS]
            outside.append((anchor, name, _digest(text), len(content)))
            continue
        left -= cost
        if run.data not in place:
            place[run.data] = len(texts)
            texts.append(statement)
        inside.append((anchor, place[run.data], rest))
    reasons = {anchors[run.key]: _reason(run, known[run.key]) for run in rows}
    data = {
        "problems": texts,
        "inside": inside,
        "outside": outside,
        "reasons": {name: text for name, text in reasons.items() if text},
    }
    packed = _embedded(json.dumps(data, separators=(",", ":")))
    return PageProofs(checker, packed, len(rows), len(inside), len(outside))


def _reason(run: Run, certificate: RunCertificate) -> str:
    """Why a row has no certificate, "" where it has one."""
    if certificate.content:
        return ""
    if not run.verdict.conclusive:
        return f"the verdict is {run.verdict.name}: there is nothing to prove again"
    return certificate.reason or "none was written"


def _parts(text: str) -> tuple[str, str]:
    """The statement of a certificate, and all else as an object without its end."""
    parts = json.loads(text)
    statement = json.dumps(parts.pop("problem"), separators=(",", ":"))
    return statement, json.dumps(parts, separators=(",", ":")).removesuffix("}")


def _digest(text: str) -> str:
    """The digest that a certificate states, which klopt writes near its end."""
    found = _DIGEST.findall(text[-200:])
    return found[-1] if found else str(json.loads(text)["digest"])


def _embedded(text: str) -> str:
    """Compressed (RFC 1950) and in base 64, which may stand in an element as it is."""
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()
