"""Efficient learning of supervised kernels with a graph-based loss function (Pan et al., 2016): the tables.

What sections 2 and 6 read from Tables 3 to 5 is computed again from the printed entries. Accuracies
are in per cent, times in seconds.
"""

from __future__ import annotations

import numpy as np

from klopt.papers.experiments.statistics import friedman
from klopt.papers.theorems.claim import Case, Outcome, theorem
from klopt.papers.theorems.evidence import Evidence, at_most, equal, every
from klopt.papers.theorems.pan2016 import proofs
from klopt.papers.theorems.pan2016.tables import (
    TABLE3,
    TABLE3_METHODS,
    TABLE4_TEST,
    TABLE4_UNLABELLED,
    TABLE5,
    TABLE5_METHODS,
)
from klopt.papers.theorems.tables import is_about, no_case, printed_as, signed_rank_p


def significant_pairs(table: np.ndarray, methods: list[str]) -> set[tuple[str, str]]:
    """Return the pairs (better, worse) whose average ranks differ by the critical difference."""
    found = friedman(table)
    assert found is not None
    ranked = list(zip(methods, found.mean_ranks, strict=True))
    return {
        (one, other)
        for one, low in ranked
        for other, high in ranked
        if high - low >= found.difference
    }


def test_statistic(table: np.ndarray) -> tuple[float, float, float]:
    """Return Friedman's F, its critical value and the critical difference of average ranks."""
    found = friedman(table)
    assert found is not None
    return found.statistic, found.critical, found.difference


def average_ranks(table: np.ndarray) -> np.ndarray:
    """Return the average rank of each method."""
    found = friedman(table)
    assert found is not None
    return found.mean_ranks


@theorem(
    "pan2016-table3-ranks", number="Table 3", draw=no_case, most=1,
    quote="In terms of the average rank, the best algorithm is SCG-LDK with rank 1.95, followed by LDK and "
          "IR-Gaussian, with rank 3.45 and 3.50, respectively. SCG-OSK and OSK perform the worst, with a rank of "
          "6.20 and 6.10, respectively.",
    says="The average ranks of the accuracies in Table 3 are those of its last row.",
    latex=r"\bar r=(5.35,4.25,5.20,3.50,6.10,3.45,6.20,1.95)",
    proof=proofs.ranks_of_table3,
)  # fmt: skip
def ranks_of_table3(case: Case) -> Evidence:
    return printed_as(average_ranks(TABLE3), [5.35, 4.25, 5.20, 3.50, 6.10, 3.45, 6.20, 1.95], 2)


@theorem(
    "pan2016-table3-friedman", number="section 6.2, Table 3", draw=no_case, most=1, formerly="000-27",
    quote="The value of the Friedman statistic is 5.17, and the critical value of $F(7, 63)$ is 2.16 at the 0.05 "
          "significance level. Thus, the null hypothesis is rejected.",
    says="Friedman's F of the accuracies in Table 3 is 5.17, the critical value 2.16.",
    latex=r"F_F=\frac{(N-1)\chi_F^2}{N(k-1)-\chi_F^2}=5.17>2.16",
)  # fmt: skip
def friedman_of_table3(case: Case) -> Evidence:
    statistic, critical, _ = test_statistic(TABLE3)
    return every(
        [
            printed_as(statistic, 5.17, 2),
            printed_as(critical, 2.16, 2),
            at_most(critical, statistic),
        ]
    )


@theorem(
    "pan2016-table3-nemenyi", number="section 6.2, Table 3", draw=no_case, most=1,
    quote="The critical difference is 3.32. Since $5.35 - 1.95 = 3.40 > 3.32$, we find that SCG-LDK performs "
          "significantly more accurately than Gaussian, OSK, and SCG-OSK. We did not detect any significant "
          "differences between the other algorithms.",
    says="The critical difference of Table 3 is 3.32, and SCG-LDK differs from Gaussian, OSK, SCG-OSK, no others.",
    latex=r"q_{0.05}\sqrt{k(k+1)/6N}=3.32",
)  # fmt: skip
def nemenyi_of_table3(case: Case) -> Evidence:
    told = {("SCG-LDK", other) for other in ("Gaussian", "OSK", "SCG-OSK")}
    wrong = significant_pairs(TABLE3, TABLE3_METHODS) ^ told
    return every([printed_as(test_statistic(TABLE3)[2], 3.32, 2), at_most(len(wrong), 0)])


@theorem(
    "pan2016-balance", number="section 6.2, Table 3", draw=no_case, most=1,
    quote="On balance, SCG-OSK roughly gains a factor of 30 in computational complexity over OSK.",
    says="On balance OSK takes roughly 30 times as long as SCG-OSK: 15.68 s and 0.54 s, within 5 %.",
    latex=r"15.68/0.54\approx30",
    proof=proofs.factor_on_balance,
)  # fmt: skip
def factor_on_balance(case: Case) -> Evidence:
    return is_about(15.68 / 0.54, 30.0, within=0.05)


@theorem(
    "pan2016-breast", number="section 6.2, Table 3", draw=no_case, most=1,
    quote="SCG-LDK is about 800 times faster than LDK on breast.",
    says="On breast LDK takes about 800 times as long as SCG-LDK: 252.14 s and 0.31 s, within 5 %.",
    latex=r"252.14/0.31\approx800",
    proof=proofs.factor_on_breast,
)  # fmt: skip
def factor_on_breast(case: Case) -> Evidence:
    return is_about(252.14 / 0.31, 800.0, within=0.05)


@theorem(
    "pan2016-table4-wilcoxon", number="section 6.3, Table 4", draw=no_case, most=1,
    quote="$h = 0$ indicates the average difference between the accuracy of the unlabeled and test data is not "
          "significantly different from zero at the 0.05 significance level",
    says="Wilcoxon's signed-rank test of Table 4 gives p = 0.6785, not below 0.05; from rounded entries, within 0.02.",
    latex=r"[p,h]=[0.6785,0]",
)  # fmt: skip
def wilcoxon_of_table4(case: Case) -> Evidence:
    # Rounding makes two differences equal; which of the two is larger changes p by about 0.02.
    p = signed_rank_p(TABLE4_TEST - TABLE4_UNLABELLED)
    return every([at_most(abs(p - 0.6785), 0.02), at_most(0.05, p)])


@theorem(
    "pan2016-table4-average", number="section 6.3, Table 4", draw=no_case, most=1,
    quote="The average accuracy of the unlabeled data closely approximates that of the test data.",
    says="The averages of Table 4 are 83.3 and 83.7.",
    latex=r"\bar a_{\text{unlabel}}=83.3,\quad\bar a_{\text{test}}=83.7",
    proof=proofs.averages_of_table4,
)  # fmt: skip
def averages_of_table4(case: Case) -> Evidence:
    return every(
        [printed_as(TABLE4_UNLABELLED.mean(), 83.3, 1), printed_as(TABLE4_TEST.mean(), 83.7, 1)]
    )


@theorem(
    "pan2016-table5-friedman", number="section 6.4, Table 5", draw=no_case, most=1,
    quote="The Friedman statistic is 87.65, which is larger than the critical value $F(5, 25) = 2.60$.",
    says="Friedman's F of the accuracies in Table 5 is 87.65, the critical value 2.60.",
    latex=r"F_F=87.65>2.60",
)  # fmt: skip
def friedman_of_table5(case: Case) -> Evidence:
    statistic, critical, _ = test_statistic(TABLE5)
    return every(
        [
            printed_as(statistic, 87.65, 2),
            printed_as(critical, 2.60, 2),
            at_most(critical, statistic),
        ]
    )


@theorem(
    "pan2016-table5-nemenyi", number="section 6.4, Table 5", draw=no_case, most=1,
    quote="The critical difference is 3.08. It is found that SCG-LDK performs significantly more accurately than "
          "Gaussian, SimpleNPK, and SCG-OSK, whereas IR-Gaussian is significantly more accurate than Gaussian and "
          "SCG-OSK.",
    says="The critical difference of Table 5 is 3.08, and these five pairs of methods differ, no others.",
    latex=r"q_{0.05}\sqrt{k(k+1)/6N}=3.08",
)  # fmt: skip
def nemenyi_of_table5(case: Case) -> Evidence:
    told = {("SCG-LDK", other) for other in ("Gaussian", "SimpleNPK", "SCG-OSK")}
    told |= {("IR-Gaussian", other) for other in ("Gaussian", "SCG-OSK")}
    wrong = significant_pairs(TABLE5, TABLE5_METHODS) ^ told
    return every([printed_as(test_statistic(TABLE5)[2], 3.08, 2), at_most(len(wrong), 0)])


@theorem(
    "pan2016-table5-speed", number="section 6.4, Table 5", draw=no_case, most=1, expected=Outcome.REFUTED,
    formerly="000-28",
    quote="It has low computational costs and is about 2–12 times faster than other algorithms, except for Gaussian.",
    says="SCG-LDK is 2 to 12 times faster than the other algorithms of Table 5.", latex=r"2\le t_{\text{other}}/t\le12",
    correction="The ratios of Table 5 run from 1.34 to 12.2.", example={"other": 502.19, "own": 375.67},
    exact=lambda case: (2, case["other"] / case["own"]), meets=lambda case: "own" in case,
)  # fmt: skip
def at_least_twice_as_fast(case: Case) -> Evidence:
    return at_most(2.0, case["other"] / case["own"])


@theorem(
    "pan2016-constraints", number="section 2.1", draw=lambda rng, n: {"labels": 100 * n}, sizes=(1, 2, 5, 10),
    quote="For instance, 1000 labeled data generate 499,500 constraints",
    says="Labelled points have n (n - 1) / 2 pairs: 1000 make 499,500 constraints.", latex=r"\tbinom{1000}2=499500",
    example={"labels": 1000},
    proof=proofs.constraints_of_labels,
)  # fmt: skip
def constraints_of_labels(case: Case) -> Evidence:
    n = case["labels"]
    pairs = len(np.triu_indices(n, 1)[0])
    thousand = equal(pairs, 499_500) if n == 1000 else equal(pairs, n * (n - 1) / 2)
    return every([thousand, equal(pairs, n * (n - 1) / 2)])
