"""Proofs of claims (Mao and Tsang, 2010)."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np

from klopt.papers.theorems.mao2010.tables import PRINTED_RANKS, TABLE2, TABLE3
from klopt.papers.theorems.proofs.expression import as_expression, grid, total
from klopt.papers.theorems.proofs.proof import Proof, identity, tabulated
from klopt.papers.theorems.proofs.tables import greater, named, of_table

__all__ = [
    "alignment_in_the_eigenbasis",
    "classes_enter_as_indicators",
    "faster_than_manifold_regularisation",
    "ranks_of_table2",
    "regulariser_is_twice_the_trace",
]


def regulariser_is_twice_the_trace() -> Proof:
    n = 3
    W = grid("W", n, n, symmetric=True)
    K = grid("K", n, n, symmetric=True)
    loss = total(W[i, j] * (K[i, i] + K[j, j] - 2 * K[i, j]) for i in range(n) for j in range(n))
    L = np.array(
        [[as_expression(int(i == j)) * W[i].sum() - W[i, j] for j in range(n)] for i in range(n)]
    )
    return Proof(
        "any number of points, all symmetric W and K",
        "L = D - W, D_ii = sum_j W_ij. Both sides are sums over two points (Lemma I).",
        (identity("sum_ij W_ij (K_ii + K_jj - 2 K_ij) = 2 tr(KL), three points", loss, 2 * (K @ L).trace()),),
    )  # fmt: skip


def classes_enter_as_indicators() -> Proof:
    U = grid("u", 2, 2)
    Y = grid("y", 2, 2)
    lam = grid("lambda", 2)
    left = (((U * lam) @ U.T) * (Y @ Y.T)).sum()
    right = lam @ ((U.T @ Y) ** 2).sum(axis=1)
    return Proof(
        "any number of points, eigenvectors and classes",
        "Both sides are sums over two points, one eigenvector and one class, so that two of each decide (Lemma I).",
        (identity("<U Sigma U', YY'> = sum_i lambda_i sum_c (u_i'Y_c)^2", left, right),),
    )


def alignment_in_the_eigenbasis() -> Proof:
    U = grid("u", 2, 2)
    y = grid("y", 2)
    lam = grid("lambda", 2)
    K = (U * lam) @ U.T
    gram = U.T @ U
    numerator = identity(
        "<U Sigma U', yy'> = sum_i lambda_i (u_i'y)^2",
        (K * np.outer(y, y)).sum(),
        lam @ (U.T @ y) ** 2,
    )
    norm = identity(
        "|U Sigma U'|^2 = sum_ij lambda_i lambda_j (u_i'u_j)^2",
        (K**2).sum(),
        lam @ (gram**2) @ lam,
    )
    target = identity("|yy'|^2 = (y'y)^2", (np.outer(y, y) ** 2).sum(), (y @ y) ** 2)
    return Proof(
        "any number of points",
        "The alignment is <K, yy'> / (|K| |yy'|). u_i'u_j is 1 for i = j and 0 else, so that |K|^2 = tr Sigma^2; y'y = "
        "n_l for entries +1 and -1 on the labelled points and 0 on the others. All are sums over two points and two "
        "eigenvectors at most (Lemma I).",
        (numerator, norm, target),
    )


def ranks_of_table2() -> Proof:
    rows = []
    for i, printed in enumerate(PRINTED_RANKS.split()):
        order = [printed.index(str(rank)) for rank in range(1, TABLE2.shape[1] + 1)]
        for better, worse in pairwise(order):
            rows.append(greater(f"a[{i},{better}]", f"a[{i},{worse}]", Fraction(1, 100)))
    says = "in each row the accuracies fall in the order of the printed ranks"
    return of_table(tabulated(says, named("a", TABLE2), rows))


def faster_than_manifold_regularisation() -> Proof:
    rows = [{f"t[{i},{k}]": 1, f"t[{i},2]": -10} for i in range(len(TABLE3)) for k in range(2)]
    return of_table(tabulated("LapRLS and LapSVM take ten times as long", named("t", TABLE3), rows))
