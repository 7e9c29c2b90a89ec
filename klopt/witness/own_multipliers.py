"""Multipliers beside which those of variables' own rows lie in their cones.

The multipliers of rows that a variable has for itself, such as x <= t and -x <= t, follow from all the
others (`klopt.proof.own_rows`). At an optimum they lie at the boundary of their cones, by rounding
outside. Two things move them inside:

- Pairs of inequalities: in a scale s of the other multipliers they are (1 - s) u(0) + s u(1), and u(0),
  the costs alone, is positive for the epigraph of a norm. A scale a little below 1 costs the bound that
  share of its value.
- Exponential cones: -u exp(v / u - 1) <= w. Rows without a variable, as in (t, x, 1) and (x, 1, t), have no
  gradient to keep, so that v or w is set to the least value that the other two allow.
"""

from __future__ import annotations

import numpy as np

from klopt.arrays import FloatArray
from klopt.proof.enclosure import UNIT_ROUNDOFF, Enclosure
from klopt.proof.own_rows import OwnRows, own_rows
from klopt.proof.statement import ConeStatement

__all__ = ["beside_own_rows"]

ROUNDINGS = 100
"""Multipliers of pairs are left so many times what their rounding may be ..."""
MARGIN = 1e-13
"""... and those of exponential cones this share of their size."""


def beside_own_rows(statement: ConeStatement, w: FloatArray, y: FloatArray) -> FloatArray:
    """Return y changed as little as own rows ask for; as it is where there are none.

    Parameters
    ----------
    statement
        The program.
    w
        The point at which the objective's gradient is taken.
    y
        Multipliers in K*.

    >>> from scipy import sparse
    >>> from klopt.model.cones import Cones
    >>> A = sparse.csc_array([[1.0, 0.0], [1.0, -1.0], [-1.0, -1.0]])
    >>> statement = ConeStatement(np.array([0.0, 1.0]), A, np.ones(3), Cones(zero=1, nonneg=2))
    >>> beside_own_rows(statement, np.zeros(2), np.array([1.25, 0.0, 0.0]))[0].round(12)
    np.float64(1.0)
    """
    own = own_rows(statement)
    if own is None:
        return y
    others = y.copy()
    others[own.rows] = 0.0
    with np.errstate(all="ignore"):
        scaled = _scale(statement, own, w, others) * others
        fixed, moved = _gradient(statement, w, scaled)
        # The proof chooses these anew, as real numbers; floats next to them serve certificates.
        scaled[own.rows] = own.multipliers(Enclosure.of(fixed + moved)).mid
        if own.single_rows.size:
            _put_on_exponential_cones(statement, own, scaled)
    return scaled if np.isfinite(scaled).all() else y


def _gradient(
    statement: ConeStatement, w: FloatArray, y: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The gradient of the objective, and that of the multipliers."""
    fixed = statement.c.copy()
    if statement.P is not None:
        fixed += statement.P @ w
    return fixed, statement.column_products.of(statement.weight * y)[0]


def _scale(statement: ConeStatement, own: OwnRows, w: FloatArray, y: FloatArray) -> float:
    """The largest scale, at most 1, in which no pair of inequalities gets a negative multiplier."""
    fixed, moved = _gradient(statement, w, y)
    terms = statement.column_products.of(np.abs(y))[1]
    rounding = UNIT_ROUNDOFF * (statement.column_products.count + 2) * (terms + np.abs(fixed))
    pairs = slice(own.pair_rows.size)
    at_zero = own.multipliers(Enclosure.of(fixed)).mid[pairs]
    at_one = own.multipliers(Enclosure(fixed + moved, rounding))[pairs]
    needed = ROUNDINGS * at_one.rad
    short = at_one.mid < needed
    if not short.any() or not (at_zero[short] > needed[short]).all():
        return 1.0
    share = (at_zero[short] - needed[short]) / (at_zero[short] - at_one.mid[short])
    return float(np.min(share)) * (1 - ROUNDINGS * UNIT_ROUNDOFF)


def _put_on_exponential_cones(statement: ConeStatement, own: OwnRows, y: FloatArray) -> None:
    """Set the multipliers of constant rows to the least that the dual of their cone allows."""
    rows = own.cone_rows[own.pair_rows.size :].reshape(-1, 3)
    u, v, z = (y[rows[:, part]] for part in range(3))
    is_constant = np.diff(statement.rows.indptr)[rows] == 0
    least_v = u * (1 + np.log(z / -u))
    least_v += MARGIN * (np.abs(least_v) + np.abs(u))
    least_z = -u * np.exp(v / u - 1) * (1 + MARGIN * (2 + np.abs(v / u)))
    by_v = is_constant[:, 1] & (u < 0) & (z > 0)
    by_z = is_constant[:, 2] & ~is_constant[:, 1] & (u < 0)
    y[rows[by_v, 1]] = least_v[by_v]
    y[rows[by_z, 2]] = least_z[by_z]
