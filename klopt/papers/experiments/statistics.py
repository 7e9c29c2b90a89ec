"""Tests of whether methods differ: Friedman and Nemenyi over data sets, paired over splits.

On N sets k methods have ranks r, 1 the best and equals sharing their mean, R_j the mean rank of
method j. Then

    F = (N - 1) chi2 / (N (k - 1) - chi2),    chi2 = 12 N / (k (k + 1)) (sum_j R_j^2 - k (k + 1)^2 / 4),

is F-distributed with k - 1 and (k - 1)(N - 1) degrees of freedom if all are equal [1], and two
methods differ when their mean ranks do by q (k (k + 1) / (6 N))^1/2, q the quantile of the
studentised range over 2^1/2.

Two methods are compared over the sets by Wilcoxon's signed ranks of their differences, a set once
however often it was split: sets are independent of each other, splits of one set are not [1].
Where several comparisons are made, Holm's step-down procedure corrects their p-values.

Splits of one set into training and test parts overlap: paired tests over them see too little
variance, and more splits make any difference significant. The corrected t [2] has
1/J + asked/labelled in the place of 1/J, for J splits. It takes the share of the points asked about
for the correlation of two splits, which is right where most points are labelled, so that training
parts overlap. With 10 labels of 1500 points they hardly do, the factor is 149, and nothing could
ever be significant: there the corrected test is not made (NaN). What is left, Wilcoxon's test over
the splits, is about other draws of labels from the very same points, and no more.

[1] Demsar, Statistical comparisons of classifiers over multiple data sets, 2006.
[2] Nadeau, Bengio, Inference for the generalization error, 2003.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan, sqrt

import numpy as np

from klopt.arrays import FloatArray

__all__ = [
    "FriedmanTest",
    "PairedTests",
    "SetsTest",
    "friedman",
    "holm",
    "over_sets",
    "paired",
    "ranks",
]

MAX_ASKED_PER_LABEL = 2.0
"""Points asked about for each labelled one, above which the corrected t-test is not made."""


def ranks(means: FloatArray) -> FloatArray:
    """Return the rank of each method (columns) on each set (rows), 1 for the largest.

    >>> ranks(np.array([[0.9, 0.8, 0.9]]))
    array([[1.5, 3. , 1.5]])
    """
    from scipy.stats import rankdata

    return np.asarray(rankdata(-np.asarray(means), axis=1))


@dataclass(frozen=True)
class FriedmanTest:
    """Whether methods differ over several sets."""

    mean_ranks: FloatArray
    statistic: float
    """F, as above."""
    critical: float
    p: float
    difference: float
    """Mean ranks further apart than this differ (Nemenyi)."""


def friedman(means: FloatArray, level: float = 0.05) -> FriedmanTest | None:
    """Return the test of a table of sets x methods; None for fewer than two sets or three methods.

    >>> test = friedman(np.array([[0.9, 0.8, 0.7], [0.8, 0.7, 0.6], [0.7, 0.5, 0.6]]))
    >>> test.mean_ranks.round(2), round(test.difference, 2)
    (array([1.  , 2.33, 2.67]), 1.91)
    """
    from scipy.stats import f, studentized_range

    N, k = means.shape
    if N < 2 or k < 3:
        return None
    R = ranks(means).mean(axis=0)
    # As the papers have it; SciPy's own `friedmanchisquare` is corrected for ties, and a little
    # larger where there are.
    chi2 = 12 * N / (k * (k + 1)) * (float(R @ R) - k * (k + 1) ** 2 / 4)
    remainder = N * (k - 1) - chi2
    statistic = (N - 1) * chi2 / remainder if remainder > 0 else inf
    q = float(studentized_range.ppf(1 - level, k, inf)) / sqrt(2)
    degrees = (k - 1, (k - 1) * (N - 1))
    return FriedmanTest(
        mean_ranks=R,
        statistic=statistic,
        critical=float(f.ppf(1 - level, *degrees)),
        p=float(f.sf(statistic, *degrees)),
        difference=q * sqrt(k * (k + 1) / (6 * N)),
    )


@dataclass(frozen=True)
class PairedTests:
    """How a method differs from another on the splits of one set; p-values of two sides."""

    difference: float
    t: float
    corrected: float
    """NaN where so few points are labelled that the correction leaves no power."""
    wilcoxon: float


def paired(own: FloatArray, other: FloatArray, labelled: int, asked: int) -> PairedTests:
    """Return the paired tests of accuracies on the same splits.

    >>> own = np.array([0.9, 0.8, 0.95, 0.9])
    >>> other = np.array([0.8, 0.75, 0.9, 0.8])
    >>> test = paired(own, other, labelled=70, asked=30)
    >>> round(test.difference, 3), test.t < test.corrected
    (0.075, True)
    """
    from scipy.stats import t, ttest_rel

    gaps = np.asarray(own) - np.asarray(other)
    J = gaps.size
    mean = float(gaps.mean())
    # One split has no variance, and equal accuracies have none to test.
    if J < 2:
        return PairedTests(mean, nan, nan, nan)
    if not gaps.any():
        return PairedTests(mean, 1.0, 1.0 if asked <= MAX_ASKED_PER_LABEL * labelled else nan, 1.0)

    # Splits overlap, so the variance of the mean is corrected by asked / labelled [2].
    deviation = float(gaps.std(ddof=1)) * sqrt(1 / J + asked / labelled)
    value = abs(mean) / deviation if deviation > 0 else inf
    with np.errstate(divide="ignore", invalid="ignore"):
        plain = float(ttest_rel(own, other).pvalue) if deviation > 0 else 0.0
    corrected = 2 * float(t.sf(value, J - 1)) if asked <= MAX_ASKED_PER_LABEL * labelled else nan
    return PairedTests(mean, plain, corrected, _signed_ranks(gaps))


@dataclass(frozen=True)
class SetsTest:
    """How a method differs from another over data sets, each counted once."""

    difference: float
    """The mean over the sets."""
    wins: int
    ties: int
    losses: int
    p: float
    """Of Wilcoxon's signed ranks, two-sided; NaN for fewer than two sets."""


def over_sets(own: FloatArray, other: FloatArray) -> SetsTest:
    """Return the test of the means of two methods on the same sets.

    >>> test = over_sets(np.array([0.9, 0.8, 0.7, 0.9, 0.6]), np.array([0.8, 0.75, 0.68, 0.85, 0.6]))
    >>> test.wins, test.ties, test.losses, round(test.p, 3)
    (4, 1, 0, 0.125)
    """
    # Equal means of different accuracies differ by rounding.
    gaps = (np.asarray(own) - np.asarray(other)).round(12)
    if gaps.size < 2:
        p = nan
    elif not gaps.any():
        p = 1.0
    else:
        p = _signed_ranks(gaps)
    wins = int((gaps > 0).sum())
    losses = int((gaps < 0).sum())
    return SetsTest(float(gaps.mean()), wins, gaps.size - wins - losses, losses, p)


def holm(values: FloatArray) -> FloatArray:
    """Return p-values corrected by Holm's procedure for as many comparisons.

    >>> holm(np.array([0.01, 0.04, 0.03]))
    array([0.03, 0.06, 0.06])
    """
    p = np.asarray(values, dtype=np.float64)
    order = np.argsort(p)
    factors = np.arange(p.size, 0, -1)
    stepped = np.minimum(np.maximum.accumulate(p[order] * factors), 1.0)
    corrected = np.empty_like(p)
    corrected[order] = stepped
    return corrected


def _signed_ranks(gaps: FloatArray) -> float:
    """The p-value of Wilcoxon's test; `scipy.stats.wilcoxon` makes 2^n calls for few tied gaps."""
    from scipy.stats import permutation_test, rankdata, wilcoxon

    d = gaps[gaps != 0]
    if d.size > 13 or d.size < 2:
        return float(wilcoxon(gaps).pvalue)

    def positive_ranks(d: FloatArray, axis: int = -1) -> FloatArray:
        signed = rankdata(np.abs(d), axis=axis) * (d > 0)
        return np.asarray(np.sum(signed, axis=axis))

    # SciPy's stubs take no inf, which asks for all 2^n signs; these are fewer than its default of
    # resamples.
    test = permutation_test(
        (d,), positive_ranks, vectorized=True, n_resamples=9999, permutation_type="samples"
    )
    return float(test.pvalue)
