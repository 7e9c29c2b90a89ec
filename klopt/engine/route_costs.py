"""What a backend is expected to take for a cone program: laws fitted to measured runs.

`benchmarks/route_costs.py` runs every backend on families of growing programs and fits, for each
kind of program, log t = constant + the sum of weight * log(1 + size) over the sizes of
`ProgramSize`, no weight negative. The laws are data, `route_costs.json`. They need not be right to
better than a factor of three: they only say which route is tried first and how long it may take
before the next one is.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any

import attrs
import numpy as np

from klopt.model.backend import Backend
from klopt.model.cones.svec import svec_diagonal, svec_size
from klopt.model.forms import ConeForm

__all__ = ["NEGLIGIBLE_S", "ProgramSize", "about", "expected_seconds", "groups_of_alike"]

NEGLIGIBLE_S = 0.01
"""Expected times below this count as equal: it is what klopt itself takes."""
CHILD_START_S = 0.3
"""What a backend that runs in a child process takes before it begins."""
DIAGONAL_SDP = "diagonal SDP"
"""The kind of a semidefinite program whose variables are entries of the diagonal."""
ALIKE = 2.0
"""Times within this factor are left to the ranks: the laws are right to a factor of three or so."""
ALIKE_QP = 1.5
"""The same for quadratic programs: ranks put exact methods first, whose answers are the costliest to
prove where a Hessian is singular."""


@attrs.frozen
class ProgramSize:
    """What decides how long a solver takes: the kind of a program and its sizes.

    >>> from klopt.model.cones import Cones
    >>> form = ConeForm([1.0, 1.0], [[-1.0, -2.0]], [-1.0], Cones(nonneg=1))
    >>> size = ProgramSize.of(form)
    >>> size.kind, size.entries, size.normal
    ('LP', 5.0, 2.0)
    """

    kind: str
    """LP, QP, SOCP, SDP, diagonal SDP, or curved where there are exponential or power cones.

    A diagonal SDP is one whose variables are entries of the diagonal, as the bound of a maximum cut:
    its dual fixes the diagonal of a matrix.
    """
    entries: float
    """Variables, rows and entries that are not 0."""
    normal: float
    """Entries of A'A or AA' at most, whichever has fewer: what a factorisation begins with."""
    matrices: float
    """The sum of k^3 over the semidefinite blocks of order k."""
    scalings: float
    """The sum of t^3 over these blocks, t = k (k + 1) / 2: the cost of a dense scaling."""

    @classmethod
    def of(cls, form: ConeForm) -> ProgramSize:
        """Return the size of a program."""
        A = form.A
        by_column = np.diff(A.indptr).astype(float)
        by_row = np.bincount(A.indices, minlength=A.shape[0]).astype(float)
        curvature = 0 if form.P is None else form.P.nnz
        orders = np.array(form.cones.psd, dtype=float)
        return cls(
            kind=_kind(form),
            entries=float(sum(A.shape) + A.nnz + curvature),
            normal=float(min(by_column @ by_column, by_row @ by_row)),
            matrices=float(np.sum(orders**3)),
            scalings=float(sum(float(svec_size(order)) ** 3 for order in form.cones.psd)),
        )

    @property
    def logarithms(self) -> tuple[float, float, float, float]:
        """log10(1 + s) of each size, in the order of the weights."""
        sizes = (self.entries, self.normal, self.matrices, self.scalings)
        entries, normal, matrices, scalings = (math.log10(1 + size) for size in sizes)
        return entries, normal, matrices, scalings


def _kind(form: ConeForm) -> str:
    cones = form.cones
    if cones.exp or cones.power:
        return "curved"
    if cones.psd:
        return DIAGONAL_SDP if _is_diagonal(form) else "SDP"
    if cones.soc:
        return "SOCP"
    return "LP" if form.P is None else "QP"


def _is_diagonal(form: ConeForm) -> bool:
    """Whether every variable is one entry of the diagonal of a semidefinite block."""
    A = form.A
    if A.nnz != A.shape[1] or not (np.diff(A.indptr) == 1).all():
        return False
    diagonal = np.zeros(A.shape[0], dtype=bool)
    start = form.cones.zero + form.cones.nonneg + sum(form.cones.soc)
    for order in form.cones.psd:
        diagonal[start + svec_diagonal(order)] = True
        start += svec_size(order)
    return bool(diagonal[A.indices].all())


def expected_seconds(backend: Backend, size: ProgramSize) -> float | None:
    """Return how long a backend is expected to take until its answer is proven; None if unknown.

    Parameters
    ----------
    backend
        Who would be asked; only those that were measured have a law.
    size
        The size of the program.
    """
    own = _laws().get(backend.name, {})
    law = own.get(size.kind)
    # Who was not measured on that kind is expected to take it like any other.
    if law is None and size.kind == DIAGONAL_SDP:
        law = own.get("SDP")
    if law is None:
        return None
    terms = (weight * value for weight, value in zip(law["weights"], size.logarithms, strict=True))
    exponent = law["constant"] + sum(terms)
    start = CHILD_START_S if backend.isolate else 0.0
    return start + float(10.0 ** min(exponent, 9.0))


def groups_of_alike(times: Iterable[float], kind: str) -> dict[float, int]:
    """Return for each time the number of its group: times within a factor of `ALIKE` are alike.

    >>> groups_of_alike([0.3, 0.001, 0.5, 0.009, 8.0], "LP")
    {0.001: 0, 0.009: 0, 0.3: 1, 0.5: 1, 8.0: 2}
    """
    alike = ALIKE_QP if kind == "QP" else ALIKE
    found: dict[float, int] = {}
    group = -1
    smallest = 0.0
    for seconds in sorted(set(times)):
        if group < 0 or seconds > alike * smallest:
            group += 1
            smallest = max(seconds, NEGLIGIBLE_S)
        found[seconds] = group
    return found


def about(seconds: float) -> str:
    """Return an expected time in words.

    >>> about(0.0312), about(8.4), about(4000.0)
    ('about 0.03 s', 'about 8 s', 'about 1 h')
    """
    if seconds < NEGLIGIBLE_S:
        return f"less than {NEGLIGIBLE_S:g} s"
    if seconds >= 3600:
        return f"about {seconds / 3600:.0f} h"
    return f"about {float(f'{seconds:.1g}'):g} s"


@cache
def _laws() -> dict[str, dict[str, Any]]:
    text = files("klopt.engine").joinpath("route_costs.json").read_text(encoding="utf-8")
    laws: dict[str, dict[str, Any]] = json.loads(text)["laws"]
    return laws
