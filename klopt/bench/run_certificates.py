"""The certificate of a finished run, written when the clock of the run has stopped.

A run sends back what its verdict was proven from. The child that made it then writes the
certificate (`klopt.certificates`), under limits of time and size of its own: neither its seconds nor
its memory are the run's. A run without a certificate says why it has none.
"""

from __future__ import annotations

import signal
import threading
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

import numpy as np

from klopt.arrays import FloatArray
from klopt.bench.digest import digest
from klopt.engine.clean_answer import error_text
from klopt.engine.result import Result, proof_points
from klopt.errors import NotCertified
from klopt.model.problem import Point, Problem
from klopt.proof.certificate import Certificate

__all__ = [
    "MAX_SECONDS",
    "MAX_WAIT_S",
    "Evidence",
    "RunCertificate",
    "evidence_of",
    "packed",
    "unpacked",
    "write_certificate",
]

MAX_SECONDS = 5.0
"""What writing one certificate may take, of a processor; that of a linear program takes milliseconds."""
MAX_WAIT_S = 60.0
"""How long a child is waited for that has other work to do, or is in native code."""
MAX_CHARACTERS = 2**24
"""A longer certificate is not kept."""
MAX_PACKED_BYTES = 2**23
"""Nor one that takes more when it is compressed."""
MAX_REASON_CHARACTERS = 300


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a certificate is written from: the verdict, and the arrays of its point and ray."""

    certificate: Certificate
    point: tuple[Mapping[str, FloatArray], Mapping[str, FloatArray]] | None
    """The primal and the dual arrays."""
    ray: tuple[Mapping[str, FloatArray], Mapping[str, FloatArray]] | None

    def key(self, data: str) -> str:
        """Return a digest: runs that found the same point of the same problem share a certificate."""
        end = self.certificate
        return digest(data, end.verdict.name, end.tol, end.proof, self.point, self.ray)


@dataclass(frozen=True)
class RunCertificate:
    """The certificate of a run, compressed, or in words why there is none."""

    content: bytes = b""
    reason: str = ""


def evidence_of(result: Result) -> Evidence | None:
    """Return what the verdict of a result was proven from; None where it proves nothing."""
    certificate = result.certificate
    if not certificate.verdict.conclusive:
        return None
    point, ray = proof_points(result.problem, result.chosen, certificate)
    return Evidence(certificate, _arrays(point), _arrays(ray))


def write_certificate(problem: Problem, evidence: Evidence, seconds: float) -> RunCertificate:
    """Return the certificate that the evidence is enough for, or why there is none.

    Parameters
    ----------
    problem
        What the verdict is about.
    evidence
        What it was proven from.
    seconds
        What that may take.
    """
    from klopt.certificates.files import certificate_text

    try:
        with _interrupted_after(seconds):
            text = certificate_text(
                problem, evidence.certificate, _point(evidence.point), _point(evidence.ray)
            )
    except NotCertified as error:
        return RunCertificate(reason=str(error)[:MAX_REASON_CHARACTERS])
    except TimeoutError:
        return RunCertificate(reason=f"writing it takes more than {seconds:g} s")
    except Exception as error:  # a certificate is no reason to lose the run
        return RunCertificate(reason=error_text(error)[:MAX_REASON_CHARACTERS])
    content = packed(text)
    if len(text) > MAX_CHARACTERS or len(content) > MAX_PACKED_BYTES:
        return RunCertificate(reason=f"it takes {len(text) / 1e6:.0f} MB, too many to be kept")
    return RunCertificate(content)


def packed(text: str) -> bytes:
    """Return a text compressed, as the page of a comparison holds it too (RFC 1950).

    >>> unpacked(packed("proven"))
    'proven'
    """
    return zlib.compress(text.encode(), 9)


def unpacked(content: bytes) -> str:
    """Return a text from its compressed form; what follows it is ignored.

    >>> unpacked(b"no such thing")
    Traceback (most recent call last):
    ValueError: no compressed text: Error -3 while decompressing data: incorrect header check
    """
    reader = zlib.decompressobj()
    try:
        text = reader.decompress(content, 4 * MAX_CHARACTERS)
    except zlib.error as error:
        raise ValueError(f"no compressed text: {error}") from error
    if not reader.eof:
        raise ValueError("a compressed text that does not end")
    return text.decode()


def _arrays(
    point: Point | None,
) -> tuple[Mapping[str, FloatArray], Mapping[str, FloatArray]] | None:
    if point is None:
        return None
    primal = {name: np.asarray(array) for name, array in point.primal.items()}
    dual = {name: np.asarray(array) for name, array in point.dual.items()}
    return primal, dual


def _point(
    arrays: tuple[Mapping[str, FloatArray], Mapping[str, FloatArray]] | None,
) -> Point | None:
    return None if arrays is None else Point(*arrays)


@contextmanager
def _interrupted_after(seconds: float) -> Iterator[None]:
    """Raise `TimeoutError` after so many seconds of a processor, where the system has such alarms."""
    here = threading.current_thread() is threading.main_thread()
    if not (here and hasattr(signal, "ITIMER_PROF")):
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
