"""Which of the two programs of a dual pair a cone form is, so that its matrices are the unknowns.

A linear matrix inequality  minimise c'x subject to b - Ax in K  has its matrices among the multipliers.
In a program stated over matrices, such as its dual, they are the variables themselves: every row of a
semidefinite cone is minus one variable. That program

    minimise c'x   subject to  A_E x = b_E,  A_I x <= b_I,  X psd,      x = (free, X)

is the dual of the matrix inequality over multipliers l of its linear rows

    minimise -b'l   subject to  c - A'l = 0 on the free columns, psd on those of X, l <= 0 on A_I,

with which the method works; a solution of one gives one of the other.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.model.cones import Cones
from klopt.model.forms import ConeForm

__all__ = ["as_inequality"]

Vectors = tuple[FloatArray, FloatArray]


def as_inequality(form: ConeForm) -> tuple[ConeForm, Callable[[FloatArray, FloatArray], Vectors]]:
    """Return the matrix inequality whose multipliers are the matrices, and the way back.

    The way back takes (x, y) of the inequality to (x, y) of the form.

    >>> form = ConeForm([1.0, 0.0, 1.0], [[1.0, 0, 0], *(-np.eye(3)).tolist()], [1.0, 0, 0, 0],
    ...                 Cones(zero=1, psd=(2,)))
    >>> inequality, _ = as_inequality(form)
    >>> inequality.shape, inequality.cones.psd
    ((3, 1), (2,))
    """
    columns = _matrix_columns(form)
    if columns is None:
        return form, lambda x, y: (x, y)
    cones = form.cones
    linear = cones.zero + cones.nonneg
    # A vacuous row has no multiplier: it is left out.
    stated = np.flatnonzero(np.isfinite(form.b[:linear]))
    inequalities = int(np.count_nonzero(stated >= cones.zero))
    is_free = np.ones(form.c.size, dtype=bool)
    is_free[columns] = False
    free = np.flatnonzero(is_free)
    At = sparse.csr_array(form.A.tocsr()[stated].T)
    signs = sparse.eye_array(stated.size, format="csr")[stated.size - inequalities :]
    turned = ConeForm(
        -form.b[stated],
        sparse.vstack([At[free], signs, At[columns]], format="csc"),
        np.concatenate((form.c[free], np.zeros(inequalities), form.c[columns])),
        Cones(free.size, inequalities, psd=cones.psd),
    )

    def back(x: FloatArray, y: FloatArray) -> Vectors:
        point = np.zeros(form.c.size)
        point[free] = y[: free.size]
        point[columns] = y[free.size + inequalities :]
        multipliers = np.zeros(form.b.size)
        multipliers[stated] = -x
        slack = turned.b - turned.A @ x
        multipliers[linear:] = slack[free.size + inequalities :]
        return point, multipliers

    return turned, back


def _matrix_columns(form: ConeForm) -> npt.NDArray[np.intp] | None:
    """The variable of each semidefinite row where that is all the row has; else None."""
    linear = form.cones.zero + form.cones.nonneg
    rows = form.A.tocsr()[linear:]
    if not form.cones.psd or not (np.diff(rows.indptr) == 1).all():
        return None
    if form.b[linear:].any() or not (rows.data == -1.0).all():
        return None
    columns = rows.indices.astype(np.intp)
    once = bool((np.bincount(columns) <= 1).all())
    return columns if once else None
