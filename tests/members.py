"""Points of simple sets made from the sets' definitions, without any of the sets' own methods."""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.optimize import linprog

from klopt.model.cones import svec
from klopt.model.sets import OrderedSimplex, Product, Simplex, Spectrahedron


def members(domain, rng, count):
    """Return some points of the set, one a row."""
    return np.array([member(domain, rng) for _ in range(count)])


def member(domain, rng):
    """Return a point of the set, often on its boundary."""
    match domain:
        case Simplex():
            return domain.total * rng.dirichlet(np.full(domain.n, 0.4))
        case OrderedSimplex():
            prefixes = np.tril(np.ones((domain.n, domain.n))) * domain.sigma ** -np.arange(
                float(domain.n)
            )
            prefixes /= prefixes.sum(axis=1, keepdims=True)
            return domain.total * rng.dirichlet(np.full(domain.n, 0.4)) @ prefixes
        case Spectrahedron():
            factor = rng.normal(size=(domain.order, int(rng.integers(1, 4))))
            return svec(domain.total * (factor @ factor.T) / np.sum(factor**2))
        case Product():
            return np.concatenate([member(part, rng) for part in domain.sets])
    vertices = box_vertices(domain)
    return rng.dirichlet(np.full(len(vertices), 0.2)) @ vertices


@cache
def box_vertices(domain):
    """Some vertices of the set within |x_i| <= 50, by an LP solver."""
    rng = np.random.default_rng(0)
    bounds = np.clip(domain.lower, -50, 50), np.clip(domain.upper, -50, 50)
    return np.array(
        [
            lp(rng.normal(size=domain.size), *bounds, domain.normal, domain.offset).x
            for _ in range(12)
        ]
    )


def lp(g, lower, upper, normal, offset):
    """Return SciPy's answer to: minimise g'x over the box and, where there is a normal, the plane."""
    plane = {} if normal is None else {"A_eq": normal[None], "b_eq": [offset]}
    return linprog(g, bounds=np.column_stack((lower, upper)), **plane)
