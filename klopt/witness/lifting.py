"""Moves a point into its inequalities along variables that no row holds back.

Where all entries of a column of A are negative or 0, raising its variable increases the slack b - Ax
of every row it is in; where all are positive, lowering it does. Variables that measure a deviation
or a violation are of this kind. A point that misses some inequalities by rounding meets all of them
after a move of about that size.

So it is with the variables t that bound a norm, ||x|| <= t, or an exponential, exp(x) <= t: they may
grow, and the cone they head lets them.
"""

from __future__ import annotations

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.forms import ConeForm
from klopt.proof.enclosure import UNIT_ROUNDOFF
from klopt.proof.statement import ConeStatement

__all__ = ["lifted_point", "raised_point"]


def lifted_point(statement: ConeStatement, x: FloatArray) -> FloatArray:
    """Return x with such variables moved until no inequality they are in is missed by rounding.

    >>> from scipy import sparse
    >>> from klopt.model.cones import Cones
    >>> A = sparse.csc_array([[1.0, -1.0], [-1.0, -1.0]])
    >>> statement = ConeStatement(np.array([0.0, 1.0]), A, np.array([0.1, -0.1]), Cones(nonneg=2))
    >>> moved = lifted_point(statement, np.array([0.3, 0.2]))
    >>> bool(0.2 < moved[1] < 0.2 + 1e-12)
    True
    """
    row, column, entry = statement.linear_entries
    n = x.size
    rises = np.bincount(column[entry > 0], minlength=n) == 0
    falls = np.bincount(column[entry < 0], minlength=n) == 0
    useful = (rises ^ falls)[column] & (row >= statement.cones.zero)
    row, column, entry = row[useful], column[useful], entry[useful]
    if not row.size:
        return x

    # What the slack is short of, with room for the rounding of the sum that a proof will charge.
    products, terms = statement.row_products.of(x)
    terms = terms + np.abs(np.where(statement.vacuous, 0.0, statement.b))
    rounding = 4 * (statement.row_products.count + 8) * UNIT_ROUNDOFF * terms
    short = rounding - (statement.b - products)
    missed = short[row] > 0
    column = column[missed]
    step = np.zeros(n)
    np.maximum.at(step, column, short[row[missed]] / np.abs(entry[missed]))
    return np.asarray(x + np.where(rises, step, -step))


def raised_point(form: ConeForm, x: FloatArray, margin: float) -> FloatArray | None:
    """Return x with the variables that bound others moved until rows and cones have a margin.

    None where a cone that is missed has no such variable.

    Parameters
    ----------
    form
        The cone program.
    x
        A point that misses some of its inequalities or cones by little.
    margin
        The room that each of them gets, relative to the size of its terms.

    >>> from scipy import sparse
    >>> from klopt.model.cones import Cones
    >>> A = sparse.csc_array([[-1.0, 0.0], [0.0, -1.0], [0.0, 0.0]])
    >>> form = ConeForm([1.0, 0.0], A, np.array([0.0, 0.0, 4.0]), Cones(soc=(3,)))
    >>> moved = raised_point(form, np.array([5.0 - 1e-9, 3.0]), 1e-12)
    >>> bool(5.0 < moved[0] < 5.0 + 1e-10)
    True
    """
    s = form.b - form.A @ x
    terms = np.abs(np.where(np.isfinite(form.b), form.b, 0.0)) + abs(form.A) @ np.abs(x)
    found = _lacking(form, s, margin * (1.0 + terms))
    if found is None:
        return None
    inward, lacks = found
    if not (lacks > 0).any():
        return x

    # A variable helps where each of its entries moves its row inwards, all in one direction.
    A = form.A
    column = np.repeat(np.arange(x.size), np.diff(A.indptr))
    push = -inward[A.indices] * A.data
    hinders = inward[A.indices] == 0
    rises = np.bincount(column[(push < 0) | hinders], minlength=x.size) == 0
    falls = np.bincount(column[(push > 0) | hinders], minlength=x.size) == 0
    useful = (rises ^ falls)[column]
    row, column, size = A.indices[useful], column[useful], np.abs(push[useful])
    missed = lacks[row] > 0
    row, column, size = row[missed], column[missed], size[missed]
    reached = np.zeros(s.size, dtype=bool)
    reached[row] = True
    if not reached[lacks > 0].all():
        return None
    step = np.zeros(x.size)
    np.maximum.at(step, column, lacks[row] / size)
    return np.asarray(x + np.where(rises, step, -step))


def _lacking(
    form: ConeForm, s: FloatArray, room: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    """For each row the sign in which its slack may grow alone, and how much it should.

    0 stands for a row that must not move. None where a semidefinite or power cone has no room.
    """
    cones = form.cones
    inward = np.zeros(s.size)
    lacks = np.zeros(s.size)
    linear = slice(cones.zero, cones.zero + cones.nonneg)
    inward[linear] = 1.0
    lacks[linear] = room[linear] - s[linear]
    for kind, block in cones.blocks():
        part = s[block]
        if kind == "soc":
            inward[block.start] = 1.0
            lacks[block.start] = np.linalg.norm(part[1:]) + np.max(room[block]) - part[0]
        elif kind == "exp":
            heads = np.arange(block.start, block.stop, 3)
            a, b, c = s[heads], s[heads + 1], s[heads + 2]
            least = np.max(room[block].reshape(-1, 3), axis=1)
            # y exp(x / y) <= z: x may fall, z may grow.
            inward[heads] = -1.0
            inward[heads + 2] = 1.0
            with np.errstate(all="ignore"):
                by_bound = b * np.exp(a / b) + least - c
                by_exponent = a - b * np.log(c / b) + least
            if not (b > 0).all():
                return None
            lacks[heads + 2] = by_bound
            # Where z is a number and not a variable the exponent gives way.
            fixed = np.diff(form.A.tocsr().indptr)[heads + 2] == 0
            lacks[heads[fixed]] = by_exponent[fixed]
            lacks[heads[fixed] + 2] = 0.0
        elif kind in ("psd", "power"):
            return None
    return (inward, lacks) if np.isfinite(lacks[inward != 0]).all() else None
