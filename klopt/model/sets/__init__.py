"""Simple sets, one a file: each answers the same questions in the same order.

    Simplex          x >= 0, 1'x = total
    OrderedSimplex   x_i >= sigma x_{i+1} >= 0, 1'x = total
    Spectrahedron    smat(x) positive semidefinite of trace total
    OrderedCone      x_i / d_i nonincreasing, x >= 0, price'x <= total
    BoxPlane         lower <= x <= upper, normal'x = offset
    Product          one set after the other

`klopt.model.sets.simple_set` says what the questions are. Every answer is exact up to rounding.
"""

from __future__ import annotations

from klopt.model.sets.box_plane import BoxPlane
from klopt.model.sets.ordered_cone import OrderedCone
from klopt.model.sets.ordered_simplex import OrderedSimplex
from klopt.model.sets.product import Product
from klopt.model.sets.projections import simplex_projection
from klopt.model.sets.simple_set import SimpleSet
from klopt.model.sets.simplex import Simplex
from klopt.model.sets.spectrahedron import Spectrahedron

__all__ = [
    "BoxPlane",
    "OrderedCone",
    "OrderedSimplex",
    "Product",
    "SimpleSet",
    "Simplex",
    "Spectrahedron",
    "simplex_projection",
]
