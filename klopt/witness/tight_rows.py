"""Inequalities that a point may be meant to meet with equality.

Nothing here is part of a proof: a witness may name any rows, and what they lead to is decided by
`klopt.proof.cone_upper_bound`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray
from klopt.proof.cone_infeasibility import is_ray, recession_program
from klopt.proof.cone_slack import enclose_slack
from klopt.proof.statement import ConeStatement

__all__ = ["doubtful_rows", "is_ray_nearby"]


def doubtful_rows(statement: ConeStatement, x: FloatArray) -> npt.NDArray[np.intp]:
    """Return the inequalities of which rounding leaves open whether x meets them.

    >>> from scipy import sparse
    >>> from klopt.model.cones import Cones
    >>> A = sparse.csc_array([[1.0], [0.1]])
    >>> statement = ConeStatement(np.zeros(1), A, np.array([1.0, 0.3]), Cones(nonneg=2))
    >>> doubtful_rows(statement, np.array([3.0]))
    array([1])
    """
    cones = statement.cones
    with np.errstate(over="ignore", invalid="ignore"):
        slack = enclose_slack(statement, x)
        lower, upper = slack.lower, slack.upper
    row = np.arange(statement.b.size)
    inequality = (row >= cones.zero) & (row < cones.zero + cones.nonneg)
    open_rows = inequality & ~statement.vacuous & (lower <= 0) & (upper >= 0)
    return np.asarray(np.flatnonzero(open_rows & (np.diff(statement.rows.indptr) > 0)), np.intp)


def is_ray_nearby(statement: ConeStatement, d: FloatArray) -> bool:
    """Return whether d, or a direction next to it that meets rows with equality, is a ray."""
    if is_ray(statement, d):
        return True
    tight = doubtful_rows(recession_program(statement), d)
    return bool(tight.size) and is_ray(statement, d, tight)
