"""Rows that need no solver (vacuous, empty, contradictory, of a degenerate cone) and forms that klopt solves by itself.

Native solvers disagree on such rows and some crash on them, so no backend ever sees one. What is
removed comes back with multiplier 0, and the certificate is always measured on the form as it was
stated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray
from klopt.model.backend import Answer, Start, Stop
from klopt.model.cones import Cones
from klopt.model.forms import ConeForm

__all__ = ["Reduced", "reduce_rows"]

Rows = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Reduced:
    """A form without trivial rows, the rows of the original it kept, and klopt's own answer where none are left."""

    form: ConeForm
    rows: Rows
    original: ConeForm
    answer: Answer | None = None
    notes: tuple[str, ...] = ()

    def restore(self, answer: Answer) -> Answer:
        """Return the answer with its multipliers spread over the rows of the original."""
        if self.rows.size == self.original.b.size and np.array_equal(
            self.rows, np.arange(self.rows.size)
        ):
            return answer
        y, farkas = self._spread(answer.y), self._spread(answer.farkas)
        return replace(answer, y=y, farkas=farkas, notes=answer.notes + self.notes)

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
    dropped = empty | (form.b == np.inf)
    kept: dict[str, list[Rows]] = {kind: [] for kind in ("zero", "nonneg", "soc", "psd", "exp")}
    for kind, block in form.cones.blocks():
        rows = np.arange(block.start, block.stop)
        if kind in ("zero", "nonneg"):
            kept[kind].append(rows[~dropped[block]])
        elif not (kind in ("soc", "psd") and empty[block].all()):
            kept["nonneg" if rows.size == 1 else kind].append(rows)
    contradiction = _contradiction(form, empty)
    rows = cast(
        Rows,
        np.concatenate(
            [np.empty(0, np.intp), *(part for parts in kept.values() for part in parts)]
        ),
    )
    notes = _notes(form, rows)
    if contradiction is not None:
        text = f"row {int(np.argmax(np.abs(contradiction)))} cannot hold for any x"
        return Reduced(
            form,
            np.arange(form.b.size),
            form,
            Answer(Stop.INFEASIBLE, farkas=contradiction, native=text),
        )
    if not rows.size:
        free = ConeForm(form.c, form.A[rows], form.b[rows], Cones(), form.P, form.radius)
        return Reduced(free, rows, form, replace(_unconstrained(form), notes=notes))
    cones = Cones(
        zero=sum(part.size for part in kept["zero"]),
        nonneg=sum(part.size for part in kept["nonneg"]),
        soc=tuple(part.size for part in kept["soc"]),
        psd=tuple(k for k in form.cones.psd if k > 1)
        if not empty.any()
        else _kept_orders(kept["psd"]),
        exp=sum(part.size for part in kept["exp"]) // 3,
    )
    if cones == form.cones and rows.size == form.b.size:
        return Reduced(form, rows, form)
    small = ConeForm(form.c, form.A[rows], form.b[rows], cones, form.P, form.radius)
    return Reduced(small, rows, form, None, notes)


def _kept_orders(blocks: list[Rows]) -> tuple[int, ...]:
    return tuple(int((np.sqrt(8 * rows.size + 1) - 1) / 2 + 0.5) for rows in blocks)


def _contradiction(form: ConeForm, empty: npt.NDArray[np.bool_]) -> FloatArray | None:
    """A Farkas vector on one row or block that no x can satisfy, or None."""
    finite = form.b[np.isfinite(form.b)]
    rounding = 64 * np.finfo(float).eps * (1 + (np.abs(finite).max() if finite.size else 0.0))
    for kind, block in form.cones.blocks():
        rows = np.arange(block.start, block.stop)
        b = form.b[block]
        if kind in ("zero", "nonneg"):
            wrong = (np.abs(b) if kind == "zero" else -b) > rounding
            bad = rows[(empty[block] & wrong) | (b == -np.inf)]
            if bad.size:
                y = np.zeros(form.b.size)
                y[bad[0]] = 1.0 if kind == "nonneg" else -np.sign(form.b[bad[0]])
                return y
        elif kind in ("soc", "psd") and empty[block].all():
            whole = np.zeros(form.b.size)
            whole[block] = b
            y = form.cones.project_dual(-whole)
            y[: block.start], y[block.stop :] = 0.0, 0.0
            if np.linalg.norm(y) > rounding:
                return cast(FloatArray, y)
    return None


def _unconstrained(form: ConeForm) -> Answer:
    """Minimise x'Px/2 + c'x without constraints: x = -P^+ c, or a ray of the null space of P if c leaves its range."""
    n, x, gradient = form.c.size, np.zeros(form.c.size), form.c
    if form.P is not None and n:
        x = np.linalg.lstsq(form.P.toarray(), -form.c, rcond=None)[0]
        gradient = form.P @ x + form.c
    y = np.zeros(form.b.size)
    if not n or np.abs(gradient).max() <= 1e-10 * (1 + np.abs(form.c).max()):
        return Answer(Stop.OPTIMAL, x=x, y=y, native="no constraints: solved by klopt")
    return Answer(Stop.UNBOUNDED, x=x, ray=-gradient, native="no constraints: solved by klopt")


def _notes(form: ConeForm, rows: Rows) -> tuple[str, ...]:
    gone = form.b.size - rows.size
    return (f"{gone} trivial rows were left out; their multipliers are 0",) if gone else ()
