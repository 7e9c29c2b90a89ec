"""Ordered alignment as a quadratically constrained program in fractions, and what proves its optimum.

    maximise  sum_i alpha_i t_i   subject to   N alpha'F alpha <= 1,  alpha in the cone

t_i = v_i'Tv_i, F_ij = (v_i'v_j)^2 and N = ||T||^2: the alignment, as long as it is positive.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from klopt.arrays import FloatArray
from klopt.errors import NotCertified
from klopt.model.functions import IntArray
from klopt.problems._ordered.data import LabelArray
from klopt.witness.exact_claims import (
    ConeData,
    ConeVectors,
    ExactClaim,
    Vector,
    fractions,
    product,
    root_between,
)

__all__ = ["alignment_claim"]

MAX_COLUMNS = 130
"""More columns make F too long for a certificate."""
ROOM = 1e-10
"""The share by which multipliers are longer than the best ones, so that none is negative."""


def alignment_claim(
    V: FloatArray,
    labels: LabelArray,
    sigma: float | None,
    signed: bool,
    kept: IntArray,
    alpha: FloatArray,
) -> ExactClaim:
    """Return the program with the vectors of weights alpha.

    Parameters
    ----------
    V
        The eigenvectors as columns.
    labels
        The class of each point, or -1.
    sigma
        The ratio of the order; None where there is none.
    signed
        Whether the target is -1 between classes.
    kept
        The columns that do not count as zero on the labelled points.
    alpha
        The weights of all columns.
    """
    r = V.shape[1]
    if r > MAX_COLUMNS:
        raise NotCertified(
            f"alignments of more than {MAX_COLUMNS} columns are too long for a certificate"
        )
    known = np.flatnonzero(labels >= 0)
    T = [
        [Fraction(1 if labels[p] == labels[q] else -1 if signed else 0) for q in known]
        for p in known
    ]
    N = sum((value**2 for row in T for value in row), Fraction(0))
    columns = [[Fraction(0)] * known.size for _ in range(r)]
    for i in np.asarray(kept).tolist():
        columns[i] = fractions(V[known, i])
    turned = [list(row) for row in zip(*columns, strict=True)]
    F = [[value**2 for value in row] for row in product(columns, turned)]
    images = product(columns, T)
    t = [
        sum((a * b for a, b in zip(v, image, strict=True)), Fraction(0))
        for v, image in zip(columns, images, strict=True)
    ]
    data = ConeData(r)
    data.c = [-value for value in t]
    quadratic = [(i, j, 2 * N * F[i][j]) for j in range(r) for i in range(j, r) if F[i][j]]
    data.quadratics.append((quadratic, [Fraction(0)] * r, Fraction(1)))
    ratio = Fraction(0) if sigma is None else Fraction(sigma)
    rows: list[dict[int, Fraction]] = [{i: Fraction(-1)} for i in range(r)]
    if ratio:
        for i in range(r - 1):
            rows[i][i + 1] = ratio
    data.add("nonnegative", r, rows, [0] * r)

    point = [max(value, Fraction(0)) for value in fractions(alpha)]
    for i in range(r - 2, -1, -1):
        point[i] = max(point[i], ratio * point[i + 1])
    square = N * _form(F, point)
    value = sum((a * b for a, b in zip(t, point, strict=True)), Fraction(0))
    if not (square > 0 and value > 0):
        raise NotCertified("an alignment that is not positive has no certificate that travels yet")
    x = [entry / root_between(square, up=True) for entry in point]
    rho = root_between(value**2 / square, up=True)
    lam = rho / 2
    w = [entry * Fraction(1 + ROOM) for entry in x]
    gradient = [2 * lam * N * g - b for g, b in zip(_times(F, w), t, strict=True)]
    y: Vector = []
    for i, g in enumerate(gradient):
        y.append(g + (ratio * y[-1] if i else 0))
    return ExactClaim(data, ConeVectors(x, y, w, [lam]), scale=Fraction(-1))


def _times(F: list[Vector], x: Vector) -> Vector:
    return [sum((a * b for a, b in zip(row, x, strict=True) if b), Fraction(0)) for row in F]


def _form(F: list[Vector], x: Vector) -> Fraction:
    return sum((a * b for a, b in zip(_times(F, x), x, strict=True)), Fraction(0))
