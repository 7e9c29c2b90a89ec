"""SCG-LDK in fractions: by the determinants of its closed form, or by a log det program of features.

A matrix K0 stands for its positive part, which K0 + phi I is next to: log det(I + gamma S K0) moves by
little. Of features, <I + gamma Phi'S Phi, W> - log det W is minimised.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from klopt.arrays import FloatArray
from klopt.errors import NotCertified
from klopt.kernels.gram import Gram
from klopt.kernels.nystroem import LowRank
from klopt.kernels.side_information import DenseGraph, PairGraph, SideGraph
from klopt.problems._logdet.exact_claim import log_det_claim
from klopt.problems._scg.proof import LowRankLaplacian
from klopt.witness.exact_claims import (
    Entries,
    ExactClaim,
    GraphData,
    Rows,
    fractions,
    negativity,
    product,
)

__all__ = ["known_pairs", "scg_claim"]


def scg_claim(
    K0: Gram | LowRank, laplacian: LowRankLaplacian | FloatArray, gamma: float
) -> ExactClaim:
    """Return the program of the stored numbers: K0, or features, and the Laplacian."""
    if isinstance(K0, Gram):
        return _graph_claim(K0.matrix, laplacian, gamma)
    Phi = [fractions(row) for row in K0.Phi]
    smooth = _energy(Phi, laplacian)
    weight = Fraction(gamma)
    k = len(smooth)
    Y0 = [[Fraction(int(i == j)) + weight * smooth[i][j] for j in range(k)] for i in range(k)]
    return log_det_claim(Y0, None)


def _graph_claim(
    G: FloatArray, laplacian: LowRankLaplacian | FloatArray, gamma: float
) -> ExactClaim:
    n = len(G)
    unit = [[Fraction(int(i == j)) for j in range(n)] for i in range(n)]
    S = _energy(unit, laplacian)
    phi = Fraction(0) if np.linalg.eigvalsh(G)[0] > 1e-12 * np.abs(G).max() else negativity(G)
    floats = np.array([[float(value) for value in row] for row in S])
    epsilon = negativity(floats) if phi else Fraction(0)
    return ExactClaim(GraphData(G, S, Fraction(gamma), phi, epsilon))


def _energy(Phi: Rows, laplacian: LowRankLaplacian | FloatArray) -> Rows:
    """Phi'S Phi, exactly."""
    turned = _transposed(Phi)
    if isinstance(laplacian, LowRankLaplacian):
        U = [fractions(row) for row in laplacian.U.toarray()]
        small = product(turned, U)
        plain = product(turned, Phi)
        inner = product(product(small, [fractions(row) for row in laplacian.R]), _transposed(small))
        found = [
            [p - q for p, q in zip(a, b, strict=True)] for a, b in zip(plain, inner, strict=True)
        ]
    else:
        found = product(product(turned, [fractions(row) for row in laplacian]), Phi)
    # Of a symmetric K, tr(KS) has the symmetric part of S.
    turned = _transposed(found)
    return [
        [(p + q) / 2 for p, q in zip(a, b, strict=True)] for a, b in zip(found, turned, strict=True)
    ]


def known_pairs(graph: SideGraph) -> Entries:
    """Return the lower triangle of T, 1 for similar points and -1 for dissimilar ones."""
    if isinstance(graph, DenseGraph):
        raise NotCertified(
            "the Laplacian of a matrix T is stored without T; give labels or lists of pairs"
        )
    if isinstance(graph, PairGraph):
        E = graph.E.tocoo()
        places = zip(E.row.tolist(), E.col.tolist(), E.data.tolist(), strict=True)
        return [
            (i, j, Fraction(1 if value > 0 else -1)) for i, j, value in places if i >= j and value
        ]
    groups = graph.groups.tolist()
    n = len(groups)
    # Weights of a point without label are 1, so that its degree is n; no other one is whole.
    unknown = {
        group
        for group, d in zip(groups, graph.degrees.tolist(), strict=True)
        if group == 0 and abs(d - n) < 1e-9 * n
    }
    return [
        (i, j, Fraction(1 if groups[i] == groups[j] else -1))
        for j in range(n)
        for i in range(j, n)
        if groups[i] not in unknown and groups[j] not in unknown
    ]


def _transposed(A: Rows) -> Rows:
    return [list(column) for column in zip(*A, strict=True)]
