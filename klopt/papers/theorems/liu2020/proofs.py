"""Proofs of claims (Liu et al., 2020); those of rates are in `first_order`."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np

from klopt.papers.theorems.liu2020.tables import TABLE5_ACCURACY, TABLE5_RANK, TABLE6
from klopt.papers.theorems.proofs.expression import grid, symbols
from klopt.papers.theorems.proofs.inner_products import (
    cauchy_schwarz,
    factorised_difference,
    projection_is_nonexpansive,
)
from klopt.papers.theorems.proofs.proof import Proof, Square, Step, at_least, identity, tabulated
from klopt.papers.theorems.proofs.tables import (
    Row,
    greater,
    named,
    of_table,
    ratio_between,
    rounds_to,
)

__all__ = [
    "approximation_beats_smo",
    "best_of_table6",
    "bilinear_form_is_a_trace",
    "cut_costs_the_terms_between",
    "loss_without_the_regulariser",
    "margin_on_cifar",
    "neighbours_have_near_values",
    "quadratic_form_is_half_a_trace",
    "rank_falls_with_tau",
    "rank_of_a_product",
    "share_of_screened_points",
    "speed_of_the_approximation",
    "squares_factorise",
    "two_layers",
    "weights_are_lipschitz",
]

HUNDREDTH = Fraction(1, 100)
EVERY_ORDER = "matrices of any order"
TWO = "Both sides are sums over two indices, so that matrices of order two decide (Lemma I)."


def bilinear_form_is_a_trace() -> Proof:
    A = grid("a", 2, 2)
    B = grid("b", 2, 2)
    x = grid("x", 2)
    z = grid("z", 2)
    left = x @ (A * B) @ z
    right = ((x[:, None] * A * z) @ B.T).trace()
    return Proof(EVERY_ORDER, TWO, (identity("x'(A o B)z = tr(D_x A D_z B')", left, right),))


def quadratic_form_is_half_a_trace() -> Proof:
    F = grid("F", 2, 2, symmetric=True)
    K = grid("K", 2, 2, symmetric=True)
    a = grid("a", 2)
    left = a @ (F * K) @ a / 2
    right = ((a[:, None] * K * a) @ F).trace() / 2
    return Proof(EVERY_ORDER, TWO, (identity("a'(F o K)a / 2 = tr(D_a K D_a F) / 2", left, right),))


def squares_factorise() -> Proof:
    return Proof(EVERY_ORDER, "It is an identity of each entry.", (factorised_difference(),))


def rank_of_a_product() -> Proof:
    u, w = grid("u", 2, 2), grid("w", 2, 2)
    v, z = grid("v", 2, 2), grid("z", 2, 2)
    F = u @ w.T
    K = v @ z.T
    terms = [np.outer(u[:, a] * v[:, b], w[:, a] * z[:, b]) for a in range(2) for b in range(2)]
    return Proof(
        "matrices of any order and rank",
        "F = sum_a u_a w_a' and K = sum_b v_b z_b' with as many terms as their ranks. Then F o K is the sum of rank F "
        "rank K matrices of rank one. An entry has two points, one a and one b: two of each decide (Lemma I).",
        (identity("F o K = sum_ab (u_a o v_b)(w_a o z_b)'", F * K, sum(terms)),),
    )


def neighbours_have_near_values() -> Proof:
    return Proof(
        "all kernels of any order",
        "This is Cauchy and Schwarz for phi(x) - phi(x') and phi(z), each divided by its norm; where a norm is 0 both "
        "sides are 0.",
        cauchy_schwarz(),
    )


def two_layers() -> Proof:
    k, s = symbols("k s")
    return Proof(
        "all points and sigma",
        "s = 1 / sigma^2. The second layer is exp(-|phi - phi'|^2 / (2 sigma^2)) with |phi - phi'|^2 = 2 - 2k, for "
        "k(x, x) = 1; the exponents of both sides are the same. F o K = k2 with F = k2 / k, for k > 0.",
        (identity("-(1 + 1 - 2k) s / 2 = -s + k s", -(2 - 2 * k) * s / 2, -s + k * s),),
    )


def weights_are_lipschitz() -> Proof:
    return Proof(
        "every n, every symmetric K with entries of size kappa at most, every tau >= 0 and eta > 0",
        "F is the projection of 11' + Gamma - (tau/2) I on the cone of positive semidefinite matrices (step "
        "1), Gamma = "
        "D_a K D_a / (4 eta), a = Y alpha (beta in regression). The difference of two Gammas is, by step 2, "
        "the symmetric "
        "part of D_(x+z) K D_(x-z) / (4 eta); its norm is not larger than that of the matrix (step 3), each of whose "
        "entries is at most kappa |(x+z)_i| |(x-z)_j| (step 4). So |F_1 - F_2| <= kappa |x + z| |x - z| / (4 eta), and "
        "|x + z| <= |x| + |z| by Cauchy and Schwarz (step 5). kappa is at most |K|_2 and |K|_F.",
        (
            projection_is_nonexpansive(),
            factorised_difference(),
            symmetric_part(),
            entries_of_size_kappa(),
            cauchy_schwarz()[0],
        ),
    )


def symmetric_part() -> Step:
    """Return that the symmetric part of a matrix has not a larger norm, by pairs of entries."""
    m, n = symbols("m n")
    return at_least(
        "2 ((m + n) / 2)^2 <= m^2 + n^2",
        m**2 + n**2 - 2 * ((m + n) / 2) ** 2,
        by=[Square(2, (m - n) / 2)],
    )


def entries_of_size_kappa() -> Step:
    """Return (a K b)^2 <= kappa^2 a^2 b^2 for |K| <= kappa."""
    a, b, K, kappa = symbols("a b K kappa")
    small = kappa**2 - K**2
    return at_least(
        "(a K b)^2 <= kappa^2 a^2 b^2 where K^2 <= kappa^2",
        kappa**2 * a**2 * b**2 - (a * K * b) ** 2,
        given=(small,),
        by=[Square(1, a * b, (small,))],
    )


def cut_costs_the_terms_between() -> Proof:
    n = 2
    a = grid("a", n)
    F = grid("F", n, n, symmetric=True)
    K = grid("K", n, n, symmetric=True)
    same = grid("same", n, n, symmetric=True)
    left = (a @ (F * K) @ a - a @ (F * same * K) @ a) / 2
    right = a @ (F * (1 - same) * K) @ a / 2
    return Proof(
        "every n and all clusters",
        "a = Y alpha; same_ij is 1 within a cluster and 0 between two, so that Kbar = same o K. The other "
        "terms of H and "
        f"Hbar do not contain K. {TWO}",
        (identity("Hbar - H = sum_ij a_i a_j F_ij (1 - same_ij) K_ij / 2", left, right),),
    )


def margin_on_cifar() -> Proof:
    entries = {"DANK": "92.68", "SVM-CV": "90.35"}
    rows = rounds_to({"DANK": 1, "SVM-CV": -1}, "2.33", 2)
    return of_table(tabulated("92.68 - 90.35 = 2.33", entries, rows))


def speed_of_the_approximation() -> Proof:
    steps = []
    for name, exact, scalable, told in (
        ("LogDet", "8472.3", "78.1", 100),
        ("BMKL", "109967", "1916.9", 50),
        ("DANK", "28548", "571.7", 50),
    ):
        rows = ratio_between("exact", "scalable", told * 4 // 5, told * 6 // 5)
        says = f"{name} on ijcnn1: {exact} s / {scalable} s is {told}, within 20 %"
        steps.append(tabulated(says, {"exact": exact, "scalable": scalable}, rows))
    return of_table(*steps)


def approximation_beats_smo() -> Proof:
    table = named("a", np.array([["95.9", "96.3"], ["96.5", "98.4"], ["96.1", "97.1"]]))
    rows = [greater(f"a[{i},1]", f"a[{i},0]", HUNDREDTH) for i in range(3)]
    return of_table(
        tabulated("scalable DANK is more accurate than SVM-SMO on three sets", table, rows)
    )


def loss_without_the_regulariser() -> Proof:
    entries = named("a", TABLE5_ACCURACY)
    lost = TABLE5_ACCURACY[:, 1] - TABLE5_ACCURACY[:, 0]
    order = np.argsort(lost, kind="stable")
    gaps: list[Row] = [{f"a[{i},1]": 1, f"a[{i},0]": -1} for i in range(len(lost))]

    def negative(row: Row) -> Row:
        return {name: -factor for name, factor in row.items()}

    rows = [{**gaps[b], **negative(gaps[a])} for a, b in pairwise(order)]
    told = [i for i in range(len(lost)) if 0.45 < lost[i] < 3.45]
    half, most = Fraction(1, 2), Fraction(7, 2)
    for i in told[:6]:
        rows.append({**gaps[i], "": -half})
        rows.append({**negative(gaps[i]), "": most - HUNDREDTH})
    middle = [order[len(lost) // 2 - 1], order[len(lost) // 2]]
    both = {name: factor for i in middle for name, factor in gaps[i].items()}
    rows.append({**both, "": -2})
    rows.append({**negative(both), "": 6})
    says = "the losses in order, six of them between 0.5 and 3.5, and the mean of the middle two between 1 and 3"
    return of_table(tabulated(says, entries, rows), argument="Six of ten are more than half.")


def rank_falls_with_tau() -> Proof:
    rows = [{f"r[{i},0]": 1, f"r[{i},1]": -2} for i in range(len(TABLE5_RANK))]
    return of_table(
        tabulated("twice the second rank is at most the first", named("r", TABLE5_RANK), rows)
    )


def share_of_screened_points() -> Proof:
    rows = [{"screened": 10, "all": -4, "": -1}]
    return of_table(tabulated("10 x 723 > 4 x 1786", {"screened": "723", "all": "1786"}, rows))


def best_of_table6() -> Proof:
    rows = [greater(f"e[{i},{k}]", f"e[{i},3]") for i in range(len(TABLE6)) for k in range(3)]
    return of_table(
        tabulated("the error of DANK is the smallest in each row", named("e", TABLE6), rows)
    )
