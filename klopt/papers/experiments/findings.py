"""What the papers found in their experiments, and whether it holds in these.

A finding compares two methods over the data sets of an experiment, each set counted once:

    better   holds if the mean difference is positive and Wilcoxon's p is below the level, in part
             if it is positive, in the mean and on most sets, but not significant, and does not hold
             otherwise;
    alike    holds if the mean difference is at most a point and not significant, in part if one of
             the two is so, and does not hold otherwise;
    no worse is the same with a difference that is at most a point, or not significant, to the worse.

That two methods do not differ significantly is no proof that they are alike: hence the point.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import Literal

from klopt.papers.experiments.comparisons import set_means
from klopt.papers.experiments.runner import Experiment
from klopt.papers.experiments.statistics import SetsTest, over_sets

__all__ = ["FINDINGS", "FindingVerdict", "PublishedFinding", "judged"]

MAX_DIFFERENCE = 0.01
"""Mean difference of accuracies up to which two methods are alike."""
Word = Literal["holds", "holds in part", "does not hold"]


@dataclass(frozen=True)
class PublishedFinding:
    """A sentence of a paper about two methods."""

    experiment: str
    place: str
    quote: str
    own: str
    other: str
    claim: Literal["better", "alike", "no worse"] = "better"
    why: str = ""
    """What is known of the reason where it does not hold, or not fully."""


@dataclass(frozen=True)
class FindingVerdict:
    """What an experiment says of a finding."""

    word: Word
    sets: int
    test: SetsTest


def judged(finding: PublishedFinding, experiment: Experiment) -> FindingVerdict | None:
    """Return whether a finding holds; None where its methods were not run."""
    protocol = experiment.protocol
    names = {method.name for method in protocol.methods}
    if not {finding.own, finding.other} <= names:
        return None
    sets = dict.fromkeys(row.data for row in protocol.rows)
    test = over_sets(
        set_means(experiment, finding.own, sets), set_means(experiment, finding.other, sets)
    )
    significant = not isnan(test.p) and test.p < protocol.level
    if finding.claim == "better":
        first = test.difference > 0 and 2 * test.wins > len(sets)
        second = significant
    elif finding.claim == "alike":
        first = abs(test.difference) <= MAX_DIFFERENCE
        second = not significant
    else:
        first = test.difference >= -MAX_DIFFERENCE
        second = not significant or test.difference > 0
    word: Word = "does not hold"
    if first and second:
        word = "holds"
    elif first or (finding.claim != "better" and second):
        word = "holds in part"
    return FindingVerdict(word, len(sets), test)


SCG_LDK = "SCG-LDK performs significantly more accurately than Gaussian, OSK, and SCG-OSK."
ORDERED = (
    "We see that ordered constrained kernels consistently outperform kernels without ordering."
)
UNIFORM = "In general, it is inferior to SVM-CV and our DANK model in terms of the test accuracy."
COMPETITIVE = (
    "SKL_KTA achieves competitive performance with other state-of-the-art SSL methods in term of "
    "average rank and testing accuracies."
)
SUPERVISED = "it is better than SimpleMKL and SVM methods which only use labeled data."
ROBUST = "our DANK model is robust to the variations of tau ranging from 0.01 to 0.1"

FINDINGS = (
    PublishedFinding(
        "000",
        "section 6.2",
        SCG_LDK,
        "SCG-LDK",
        "Gaussian",
        why="a Gaussian kernel whose width is chosen from three is as good; the paper does not "
        "state its widths, and its Gaussian kernel is below ours on most sets",
    ),
    PublishedFinding("000", "section 6.2", SCG_LDK, "SCG-LDK", "OSK"),
    PublishedFinding("000", "section 6.2", SCG_LDK, "SCG-LDK", "SCG-OSK"),
    PublishedFinding(
        "000",
        "section 6.2",
        "the performance of SCG-OSK and OSK is almost indistinguishable",
        "SCG-OSK",
        "OSK",
        "alike",
        "the optimum of the linear program of SCG-OSK weighs a few eigenvectors only",
    ),
    PublishedFinding(
        "000-unseen",
        "section 6.3",
        "the out-of-sample performance is comparable to its in-sample performance",
        "unseen",
        "unlabelled",
        "alike",
    ),
    PublishedFinding(
        "001",
        "Tables 1 and 2",
        "implied by the tables: ESKL with the loss L1 is more accurate than eigenvalue repair",
        "ESKL L1",
        "Denoise",
        why="the similarities of five of seven rows are other matrices than the paper's",
    ),
    PublishedFinding(
        "001",
        "Tables 1 and 2",
        "implied by the tables: ESKL with the loss L2 is more accurate than eigenvalue repair",
        "ESKL L2",
        "Denoise",
        why="the similarities of five of seven rows are other matrices than the paper's",
    ),
    PublishedFinding("002", "Figure 2", ORDERED, "KA1 SVM", "KA0 SVM"),
    PublishedFinding("002", "Figure 2", ORDERED, "KA1 LP", "KA0 LP"),
    PublishedFinding(
        "003",
        "section 6.1.1",
        "this strategy is helpful for our model to achieve noticeable improvements on the test data.",
        "DANK",
        "SVM-CV",
        why="with the paper's eta and its rule for new points the decisions come near those of "
        "the nearest neighbour",
    ),
    PublishedFinding(
        "003",
        "section 6.1.1",
        UNIFORM,
        "SVM-CV",
        "MKL-uniform",
        why="the uniform mixture is better here than in the paper's table",
    ),
    PublishedFinding(
        "003",
        "section 6.1.1",
        UNIFORM,
        "DANK",
        "MKL-uniform",
        why="the uniform mixture is better here than in the paper's table, on glass by 15 points",
    ),
    PublishedFinding(
        "003-training",
        "Table 1",
        "implied by the table: DANK has a higher training accuracy than SVM-CV",
        "DANK, training",
        "SVM-CV, training",
    ),
    PublishedFinding(
        "003-tau",
        "section 6.2.2",
        "the setting without the low-rank regularizer (i.e., tau = 0) loses about 1%~3% accuracy "
        "on most data sets",
        "tau 0.01",
        "tau 0",
        why="new points borrow columns of F from their neighbours, which matters more here than "
        "its rank",
    ),
    PublishedFinding("003-tau", "section 6.2.3", ROBUST, "tau 0.1", "tau 0.01", "alike"),
    PublishedFinding(
        "003-regression",
        "section 6.3.2",
        "the proposed DANK model exhibits more encouraging performance than SVR-CV in terms of the "
        "RMSE on the training and test data",
        "DANK",
        "SVR-CV",
        why="five sets are too few for significance",
    ),
    PublishedFinding("004", "section 5.4", COMPETITIVE, "SKL_KTA", "LapRLS", "no worse"),
    PublishedFinding("004", "section 5.4", COMPETITIVE, "SKL_KTA", "LapSVM", "no worse"),
    PublishedFinding("004", "section 5.4", SUPERVISED, "SKL_KTA", "SVM"),
    PublishedFinding("004", "section 5.4", SUPERVISED, "SKL_KTA", "SimpleMKL"),
    PublishedFinding(
        "004-cv",
        "section 5.4, Figure 1",
        "SKL_KTA is much faster than SKL while the performance does not degrade.",
        "SKL_KTA",
        "SKL",
        "no worse",
    ),
)
