"""The dual of a cone program as a cone program, and the map between their solutions.

    primal   minimise c'x  subject to  b - Ax in K          multipliers y in K*
    dual     minimise b'y  subject to  A'y = -c, y in K*    multipliers (z, s): x = -z, s = b - Ax

The optimal values are opposite where there is strong duality. All cones but the exponential and the
power cones are their own dual.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray, csc
from klopt.errors import InvalidProblem
from klopt.model.cones import Cones
from klopt.model.forms import ConeForm, Start
from klopt.proof.cone_witnesses import ConeClaim
from klopt.proof.statement import ConeStatement

__all__ = ["dual_claim", "dual_of", "from_dual", "to_dual"]


def dual_of(form: ConeForm) -> ConeForm:
    """Return the dual of a form, as a minimisation over y.

    The form has a linear objective and neither exponential nor power cones.

    >>> form = ConeForm([1.0, 2.0], [[-1.0, -1.0]], [-1.0], Cones(nonneg=1))
    >>> dual_of(form).A.toarray()
    array([[-1.],
           [-1.],
           [-1.]])
    """
    if form.P is not None or not form.cones.is_symmetric:
        raise InvalidProblem(
            "the dual is formed for linear objectives and self-dual cones only; solve the form itself"
        )
    cones = form.cones
    # The dual cone of {0} is the whole space: only the other rows constrain y.
    signs = -sparse.eye_array(form.b.size, format="csr")[cones.zero :]
    A = sparse.vstack([form.A.T, signs], format="csc")
    b = np.concatenate((-form.c, np.zeros(form.b.size - cones.zero)))
    return ConeForm(form.b, csc("A", A), b, Cones(form.c.size, cones.nonneg, cones.soc, cones.psd))


def from_dual(
    form: ConeForm, y: FloatArray, multipliers: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """Return (x, y) of the form from a solution of its dual; x = 0 without multipliers."""
    x = np.zeros_like(form.c) if multipliers is None else -multipliers[: form.c.size]
    return x, y


def to_dual(form: ConeForm, x: FloatArray, y: FloatArray) -> Start:
    """Return (x, y) of the form as a start for its dual."""
    slack = form.b - form.A @ x
    return Start(y, np.concatenate((-x, slack[form.cones.zero :])))


def dual_claim(
    statement: ConeStatement, x: FloatArray, y: FloatArray, scale: float, shift: float
) -> ConeClaim:
    """Return the dual of a statement as a cone program over y, with the vectors of a solution.

    Parameters
    ----------
    statement
        A cone program with a linear objective and cones that are their own dual.
    x, y
        Its point and multipliers.
    scale, shift
        The value of what is stated is `scale` times that of the dual, a minimisation, plus `shift`.
    """
    zero = statement.cones.zero
    # A trace product counts each entry off the diagonal twice.
    weighted = sparse.diags_array(statement.weight) @ statement.rows
    signs = -sparse.eye_array(y.size, format="csr")[zero:]
    A = csc("A", sparse.vstack([weighted.T, signs], format="csc"))
    b = np.concatenate((-statement.c, np.zeros(y.size - zero)))
    cones = Cones(x.size, statement.cones.nonneg, statement.cones.soc, statement.cones.psd)
    dual = ConeStatement(statement.weight * statement.b, A, b, cones, plain=statement.plain)
    slack = statement.b - statement.rows @ x
    multipliers = np.concatenate((-x, slack[zero:]))
    return ConeClaim(dual, y, multipliers, np.zeros(0), scale, shift)
