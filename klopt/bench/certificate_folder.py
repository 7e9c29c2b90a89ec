"""Writes the certificates of a store to a folder, one file for each certified run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from klopt.bench.comparison import Comparison
from klopt.bench.run_certificates import unpacked
from klopt.bench.trials import route
from klopt.certificates.files import write_text
from klopt.errors import InvalidProblem, InvalidSettings, NotCertified

__all__ = ["WrittenCertificate", "WrittenCertificates", "write_certificates"]


@dataclass(frozen=True)
class WrittenCertificate:
    """A certificate that was written, and the run that it is of."""

    run: str
    problem: str
    route: str
    verdict: str
    file: str
    bytes: int


@dataclass(frozen=True)
class WrittenCertificates:
    """What was written, and which certified runs have no certificate, with the reasons."""

    written: tuple[WrittenCertificate, ...]
    unwritten: tuple[tuple[str, str], ...]

    @property
    def by_reason(self) -> Mapping[str, list[str]]:
        """The runs without a certificate, by reason."""
        found: dict[str, list[str]] = {}
        for run, reason in self.unwritten:
            found.setdefault(reason, []).append(run)
        return found


def write_certificates(
    store: str | Path, folder: str | Path, *, vipr: bool = False
) -> WrittenCertificates:
    """Write the certificate of each certified run of a store; files of that name are replaced.

    Parameters
    ----------
    store
        The store of a comparison.
    folder
        Where they go; it is made if it does not exist.
    vipr
        Whether those of linear programs are written in the format VIPR, and no others.
    """
    from klopt.certificates.vipr import vipr_text

    comparison = Comparison.load(store)
    place = Path(folder)
    if place.exists() and not place.is_dir():
        raise InvalidSettings(f"{place} is a file; name a folder")
    place.mkdir(parents=True, exist_ok=True)
    known = comparison.certificates()
    written = []
    unwritten = []
    for run in comparison.runs:
        if run.key not in known:
            continue
        name = f"{run.problem}, {route(run)}"
        kept = known[run.key]
        if not kept.content:
            unwritten.append((name, kept.reason or "the run was made without one"))
            continue
        try:
            text = unpacked(kept.content)
            content = vipr_text(text) if vipr else text
        except (ValueError, InvalidProblem, NotCertified) as error:
            unwritten.append((name, str(error)))
            continue
        file = place / f"{run.key}.{'vipr' if vipr else 'json'}"
        write_text(file, content)
        made = (run.key, run.problem, route(run), run.verdict.name, str(file))
        written.append(WrittenCertificate(*made, bytes=len(content.encode())))
    return WrittenCertificates(tuple(written), tuple(unwritten))
