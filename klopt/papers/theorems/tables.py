"""Figures that a paper prints of its own tables, compared with the same figures computed again."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from klopt.arrays import FloatArray
from klopt.papers.theorems.claim import Case
from klopt.papers.theorems.evidence import Evidence, at_most

__all__ = ["is_about", "no_case", "printed_as", "signed_rank_p"]


def no_case(rng: np.random.Generator, n: int) -> Case:
    """Return an empty case: a printed table is one instance."""
    return {}


def printed_as(
    computed: float | FloatArray, printed: float | Sequence[float], digits: int
) -> Evidence:
    """Return the evidence that figures, rounded to so many digits, are those printed.

    >>> printed_as(5.1732, 5.17, 2).holds, printed_as(5.1732, 5.18, 2).holds
    (True, False)
    """
    off = np.abs(np.asarray(computed, float) - np.asarray(printed, float)).max()
    # Half a unit of the last digit; a relative allowance would favour large figures.
    return at_most(float(off), 0.5 * 10.0**-digits, tol=1e-9)


def is_about(computed: float, printed: float, *, within: float) -> Evidence:
    """Return the evidence that a figure is the printed one but for a share of it.

    >>> is_about(29.0, 30.0, within=0.05).holds, is_about(28.0, 30.0, within=0.05).holds
    (True, False)
    """
    return at_most(abs(computed - printed), within * printed)


def signed_rank_p(gaps: FloatArray) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test, over all 2^n signs.

    Gaps that are equal share their rank; they are compared as printed, to one digit.

    >>> signed_rank_p(np.array([1.0, 2.0, 3.0]))
    0.25
    """
    from scipy.stats import rankdata

    printed = np.round(gaps, 1)
    ranks = rankdata(np.abs(printed))
    signs = np.array(list(product((0.0, 1.0), repeat=ranks.size)))
    sums = signs @ ranks
    centre = ranks.sum() / 2
    own = abs(float(ranks[printed > 0].sum()) - centre)
    return float(np.mean(np.abs(sums - centre) >= own - 1e-9))
