"""Rows that need no solver, taken out before a backend runs and put back after it.

A row is vacuous (b = inf), empty (a' = 0), contradictory, or that of a degenerate cone: of size
zero, or of size one, which is a plain inequality. Native solvers disagree on such rows and some
crash on them, so no backend ever sees one. Rows that are left out come back with multiplier 0, and
the certificate is always measured on the form as it was stated. A form of which no row is left, or
of which one cannot hold, is answered by klopt itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
import numpy.typing as npt

from klopt.arrays import EPS, FloatArray
from klopt.model.backend import Answer, Start, Stop
from klopt.model.cones import Cones, order_of
from klopt.model.cones.power import Weights
from klopt.model.forms import ConeForm
from klopt.witness.cone_interior import centre

__all__ = ["Reduced", "reduce_rows"]

Rows = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]

RANGE_TOL = 1e-10
"""c lies in the range of P if max|Px + c| <= this (1 + max|c|) at the least-squares point x."""


@dataclass(frozen=True, eq=False)
class Reduced:
    """A form without trivial rows, and the way back to the form as it was stated."""

    form: ConeForm
    """What a backend is given."""
    rows: Rows
    """The rows of the original that it kept, in its own order."""
    original: ConeForm
    answer: Answer | None = None
    """klopt's own answer where no backend is needed."""
    notes: tuple[str, ...] = ()
    """What the user should know."""

    def restore(self, answer: Answer) -> Answer:
        """Return the answer with its multipliers spread over the rows of the original."""
        size = self.original.b.size
        if self.rows.size == size and np.array_equal(self.rows, np.arange(size)):
            return answer
        return replace(
            answer,
            y=self._spread(answer.y),
            farkas=self._spread(answer.farkas),
            notes=answer.notes + self.notes,
        )

    def shrink(self, start: Start | None) -> Start | None:
        """Return a start of the original as a start of the reduced form."""
        if start is None or start.y is None:
            return start
        return Start(start.x, start.y[self.rows])

    def _spread(self, y: FloatArray | None) -> FloatArray | None:
        if y is None or y.shape != self.rows.shape:
            return y
        full = np.zeros(self.original.b.size)
        full[self.rows] = y
        return full


def reduce_rows(form: ConeForm) -> Reduced:
    """Return the form without rows that need no solver, or with klopt's own answer.

    >>> form = ConeForm(c=[1.0], A=[[0.0], [-1.0]], b=[-1.0, 0.0], cones=Cones(nonneg=2))
    >>> reduce_rows(form).answer.stop
    <Stop.INFEASIBLE: 'INFEASIBLE'>
    """
    empty = np.bincount(form.A.indices, minlength=form.b.size) == 0
    contradiction = _contradiction(form, empty)
    if contradiction is not None:
        return _infeasible(form, contradiction)

    kept = _kept(form, empty)
    rows = kept.rows
    cones = kept.cones
    if rows.size and rows.size == form.b.size and cones == form.cones:
        return Reduced(form, rows, form)

    reduced = ConeForm(form.c, form.A[rows], form.b[rows], cones, form.P, form.radius)
    notes: tuple[str, ...] = ()
    if rows.size < form.b.size:
        gone = form.b.size - rows.size
        notes = (f"{gone} trivial rows were left out; their multipliers are 0",)
    if rows.size:
        return Reduced(reduced, rows, form, None, notes)
    return Reduced(reduced, rows, form, replace(_unconstrained(form), notes=notes))


def _infeasible(form: ConeForm, farkas: FloatArray) -> Reduced:
    """The form with klopt's answer that one of its rows, or one block of them, cannot hold."""
    text = f"row {int(np.argmax(np.abs(farkas)))} cannot hold for any x"
    answer = Answer(Stop.INFEASIBLE, farkas=farkas, native=text)
    return Reduced(form, np.arange(form.b.size), form, answer)


@dataclass(frozen=True)
class _Kept:
    """The rows to keep, cone by cone in the order of `Cones`: each entry is one block."""

    zero: list[Rows] = field(default_factory=list)
    nonneg: list[Rows] = field(default_factory=list)
    soc: list[Rows] = field(default_factory=list)
    psd: list[Rows] = field(default_factory=list)
    exp: list[Rows] = field(default_factory=list)
    power: list[Rows] = field(default_factory=list)
    exponents: tuple[Weights, ...] = ()

    @property
    def rows(self) -> Rows:
        """All of them; the first, empty block says what no blocks make."""
        blocks = [np.empty(0, np.intp)]
        blocks += self.zero + self.nonneg + self.soc + self.psd + self.exp + self.power
        return cast(Rows, np.concatenate(blocks))

    @property
    def cones(self) -> Cones:
        return Cones(
            zero=sum(block.size for block in self.zero),
            nonneg=sum(block.size for block in self.nonneg),
            soc=tuple(block.size for block in self.soc),
            psd=tuple(order_of(block.size) for block in self.psd),
            exp=sum(block.size for block in self.exp) // 3,
            power=self.exponents,
        )


def _kept(form: ConeForm, empty: Flags) -> _Kept:
    """The rows that a solver is needed for; `empty` flags the rows of A without an entry."""
    # Power cones are kept, all of them.
    kept = _Kept(exponents=form.cones.power)
    dropped = empty | (form.b == np.inf)
    for kind, block in form.cones.blocks():
        rows = np.arange(block.start, block.stop)
        if kind in ("zero", "nonneg"):
            getattr(kept, kind).append(rows[~dropped[block]])
        elif kind in ("soc", "psd") and empty[block].all() and _is_inside(form, block):
            # A constant block that holds; one that does not is a contradiction, and one at the
            # boundary is left to the proof.
            continue
        elif rows.size == 1:
            # A second-order cone of size one and a 1 x 1 semidefinite matrix are the half-line.
            kept.nonneg.append(rows)
        else:
            getattr(kept, kind).append(rows)
    return kept


def _is_inside(form: ConeForm, block: slice) -> bool:
    """Whether a constant block lies in its cone: by more than rounding, or as a diagonal."""
    b = form.b[block]
    e = centre(form.cones)[block]
    # Other entries than those of e are 0: a half-line, or a diagonal matrix.
    if not b[e == 0].any():
        return bool((b >= 0).all())
    constant = np.zeros(form.b.size)
    constant[block] = b - 64 * EPS * float(np.linalg.norm(b)) * e
    return not form.cones.project(-constant)[block].any()


def _contradiction(form: ConeForm, empty: Flags) -> FloatArray | None:
    """A Farkas vector (y in K*, A'y = 0, b'y < 0) on one row or block alone, or None."""
    for kind, block in form.cones.blocks():
        found = None
        if kind in ("zero", "nonneg"):
            found = _contradictory_row(form, kind, block, empty)
        elif kind in ("soc", "psd") and empty[block].all():
            found = _contradictory_block(form, block)
        if found is not None:
            return found
    return None


def _contradictory_row(form: ConeForm, kind: str, block: slice, empty: Flags) -> FloatArray | None:
    """The Farkas vector of the first row 0 = b or 0 <= b that is wrong: it has no rounding.

    Parameters
    ----------
    form
        What is searched.
    kind, block
        "zero" or "nonneg", and the rows of that cone.
    empty
        Flags the rows of A without an entry; a row a'x <= -inf need not be empty.
    """
    b = form.b[block]
    error = np.abs(b) if kind == "zero" else -b
    wrong = np.flatnonzero((empty[block] & (error > 0)) | (b == -np.inf))
    if not wrong.size:
        return None
    row = block.start + wrong[0]
    y = np.zeros(form.b.size)
    # b'y < 0: of 0 <= b < 0 by y = 1, of 0 = b by the sign that makes it negative.
    y[row] = 1.0 if kind == "nonneg" else -np.sign(form.b[row])
    return y


def _contradictory_block(form: ConeForm, block: slice) -> FloatArray | None:
    """The Farkas vector of a constant block b outside its cone: by Moreau, -b projected onto K*.

    A block that is outside by no more than the rounding of the projection is left to the proof.
    """
    constant = np.zeros(form.b.size)
    constant[block] = form.b[block]
    y = np.zeros(form.b.size)
    y[block] = form.cones.project_dual(-constant)[block]
    rounding = 64 * EPS * float(np.linalg.norm(form.b[block]))
    return y if np.linalg.norm(y) > rounding else None


def _unconstrained(form: ConeForm) -> Answer:
    """Minimise x'Px/2 + c'x without constraints.

    The minimum is at x = -P^+ c. Where c leaves the range of P the gradient there lies in the null
    space of P, and minus the gradient is a ray along which the objective falls without end.
    """
    n = form.c.size
    x = np.zeros(n)
    gradient = form.c
    if form.P is not None and n:
        x = np.linalg.lstsq(form.P.toarray(), -form.c, rcond=None)[0]
        gradient = form.P @ x + form.c
    native = "no constraints: solved by klopt"
    # Without P the gradient is c, whatever its size.
    allowed = 0.0 if form.P is None else RANGE_TOL * (1 + float(np.abs(form.c).max(initial=0.0)))
    if not n or np.abs(gradient).max() <= allowed:
        return Answer(Stop.OPTIMAL, x=x, y=np.zeros(form.b.size), native=native)
    return Answer(Stop.UNBOUNDED, x=x, ray=-gradient, native=native)
