"""What a theorem promises of a backend on an instance: the width of the interval after k iterations.

There is one so far. Mirror-prox with constant steps 1 / ||M|| from the centres of two simplices has
after k iterations, at the mean of the points it looked ahead to, a best-reply gap of at most

    ||M|| total_x total_y / k           ||M|| the largest singular value

(Nemirovski 2004, with |x - x_0| <= total_x and the sides weighted by their totals). The backend
finds its steps by a line search and starts anew now and then, which the theorem does not cover: the
bound is what it has to beat.

The other methods promise nothing that could be drawn. The accelerated gradient restarts by a rule
without a proven rate, smooth mirror descent takes the longest step along which the function falls,
dual averaging learns its step from the gradients it meets, and the rest is exact after finitely
many steps or converges at a rate that nobody can compute.
"""

from __future__ import annotations

from math import nan

import numpy as np

from klopt.model.forms import Form, SaddleForm
from klopt.model.functions import Bilinear
from klopt.model.sets import Simplex

__all__ = ["LABELS", "promised"]

LABELS = {"mirror_prox": "1/k theorem"}
"""What a chart calls the bound of each backend that has one."""
LARGEST = 4_000_000
"""Entries of a matrix whose singular value is worth its time."""


def promised(backend: str, form: Form) -> float:
    """Return c where the interval is no wider than c / k after k iterations, NaN where nothing is promised.

    >>> promised("mirror_prox", SaddleForm(Bilinear(np.diag([3.0, 4.0])), Simplex(2), Simplex(2)))
    4.0
    """
    if (
        backend not in LABELS
        or not isinstance(form, SaddleForm)
        or not isinstance(form.coupling, Bilinear)
    ):
        return nan
    left, right, M = form.left, form.right, form.coupling.M
    if not isinstance(left, Simplex) or not isinstance(right, Simplex) or M.size > LARGEST:
        return nan
    return float(np.linalg.norm(M, 2)) * left.total * right.total
