"""Proofs of claims (Kundu et al., 2010)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from klopt.papers.theorems.kundu2010.tables import LOSSES, TABLE3
from klopt.papers.theorems.proofs.expression import symbols
from klopt.papers.theorems.proofs.inner_products import (
    pairwise_cauchy_schwarz,
)
from klopt.papers.theorems.proofs.proof import (
    Proof,
    Square,
    at_least,
    identity,
    tabulated,
)
from klopt.papers.theorems.proofs.tables import greater, named, of_table

__all__ = [
    "best_gamma",
    "larger_omega",
    "losses_matter",
    "mean_of_the_similarities",
    "most_families_improve",
    "repairs_are_kernels",
]


def mean_of_the_similarities() -> Proof:
    m, q, K, s = symbols("m q K s")
    return Proof(
        "all matrices of any order, any number m of them",
        "s is the sum of the S_i and q the sum of |S_i|^2, so that the left hand side is m times "
        "sum_i |K - S_i|^2 and the right one m times m |K - s/m|^2 + sum_i |S_i - s/m|^2. Matrices are vectors "
        "with the Frobenius inner product (Lemma V). rho multiplies both sides.",
        (
            identity(
                "m (m |K|^2 - 2 <K, s> + q) = |m K - s|^2 + (m q - |s|^2)",
                m * (m * K**2 - 2 * K * s + q),
                (m * K - s) ** 2 + (m * q - s**2),
            ),
        ),
    )


def best_gamma() -> Proof:
    return Proof(
        "every number m of kernels, all q_i > 0 and gamma_i > 0",
        "For gamma in the simplex sum_i q_i / gamma_i >= (sum_i q_i^1/2)^2, with equality where the gamma_i are "
        "proportional to q_i^1/2. With a_i = gamma_i, f_i = 1 and b_i = q_i^1/2 / gamma_i this is "
        "sum_i a_i b_i^2 sum_i a_i >= (sum_i a_i b_i)^2. The difference is the sum over pairs of "
        "a_i a_j (b_i - b_j)^2; every monomial has two indices at most (Lemma I).",
        (pairwise_cauchy_schwarz("Cauchy and Schwarz with weights a, two indices"),),
    )


def larger_omega() -> Proof:
    s, r = symbols("s r")
    return Proof(
        "every number of kernels",
        "s is the root of the largest q_i and r the sum of the other roots. So the objective of (5) is nowhere "
        "below that of (10), and its maximum is not either.",
        (
            at_least(
                "s^2 <= (s + r)^2 where s >= 0 and r >= 0",
                (s + r) ** 2 - s**2,
                given=(s, r),
                by=[Square(1, r), Square(2, 1, (s, r))],
            ),
        ),
    )


def repairs_are_kernels() -> Proof:
    S, K, k = symbols("S K k")
    near = (K - S) * (k - K)
    return Proof(
        "all symmetric S of any order",
        "max(l, 0), |l| and l - min(l_1, .., l_n, 0) are not negative. For Denoise, K with the eigenvalues "
        "max(l, 0), K - S is positive semidefinite and <K - S, K> = 0, so that <K - S, k - K> >= 0 for every "
        "kernel k; then |k - S|^2 - |K - S|^2 >= |k - K|^2.",
        (
            at_least(
                "|k - S|^2 >= |K - S|^2 where <K - S, k - K> >= 0",
                (k - S) ** 2 - (K - S) ** 2,
                given=(near,),
                by=[Square(2, 1, (near,)), Square(1, k - K)],
                vectors="S K k",
            ),
        ),
    )


def losses_matter() -> Proof:
    entries: dict[str, str] = {}
    for name, values in LOSSES.items():
        entries |= named(name, np.array(values))
    better = (
        ("liver", 1, 0), ("liver", 1, 2), ("diabetes", 0, 2), ("diabetes", 1, 2), ("heart", 0, 2),
        ("heart", 1, 2), ("sonar", 2, 0), ("sonar", 2, 1), ("yeast", 0, 1), ("yeast", 0, 2),
    )  # fmt: skip
    rows = [greater(f"{name}[{i}]", f"{name}[{j}]") for name, i, j in better]
    says = "which loss is more accurate: L2 on liver, L1 and L2 on diabetes and heart, L3 on sonar, L1 on yeast"
    return of_table(tabulated(says, entries, rows))


def most_families_improve() -> Proof:
    ours = TABLE3[:, 4:].argmax(axis=1) + 4
    improved = np.flatnonzero(TABLE3[:, 4:].max(axis=1) > TABLE3[:, :4].max(axis=1))
    rows = [
        greater(f"a[{i},{ours[i]}]", f"a[{i},{k}]", by=Fraction(1, 10))
        for i in improved[:5]
        for k in range(4)
    ]
    says = f"in rows {', '.join(map(str, improved[:5]))} an own method is more accurate than the four others"
    argument = "These are five of eight rows, more than half."
    return of_table(tabulated(says, named("a", TABLE3), rows), argument=argument)
