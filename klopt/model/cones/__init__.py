"""Cones of a cone program: their product, the one svec convention, the exponential cone.

`Cones` is the product K that the slack s = b - Ax lies in.
"""

from __future__ import annotations

from klopt.model.cones.product import Cones
from klopt.model.cones.svec import (
    order_of,
    smat,
    svec,
    svec_diagonal,
    svec_entries,
    svec_index,
    svec_places,
    svec_size,
    svec_weights,
)

__all__ = [
    "Cones",
    "order_of",
    "smat",
    "svec",
    "svec_diagonal",
    "svec_entries",
    "svec_index",
    "svec_places",
    "svec_size",
    "svec_weights",
]
