"""Tables 1, 2 and 6: data-adaptive kernels, classification and regression (Liu et al., 2020)."""

from __future__ import annotations

from dataclasses import replace

from klopt.papers.experiments import adaptive_methods, baselines, bayesian_mkl, methods
from klopt.papers.experiments.protocol import (
    Method,
    PaperFigure,
    Protocol,
    Reason,
    TableRow,
    choices,
)

__all__ = [
    "BEST",
    "FEATURES",
    "OWN",
    "PAIRS",
    "PROTOCOL",
    "REGRESSION",
    "REGRESSION_RANGE",
    "TAU",
    "TRAINING",
]

COLUMNS = ("MKL-uniform", "SVM-CV", "DANK", "LDK", "RF", "BMKL")
# Test accuracies of Table 1, then LogDet (which is LDK), RF and BMKL of Table 2.
TABLE = """
heart               82.1 2.9  81.9 2.4  87.9 2.9  80.6 3.5  79.1 2.4  85.6 0.8
sonar               80.8 3.7  85.3 3.1  87.0 2.7  84.1 2.2  80.5 3.1  84.8 0.6
spect               79.8 0.3  73.1 3.2  78.9 3.2  79.6 3.7  76.0 2.7  78.8 0.8
glass               53.0 7.0  69.8 2.0  74.5 1.3  71.2 1.0  68.2 2.2  68.2 4.6
fertility           85.6 3.0  85.2 1.7  87.6 2.3  86.2 1.1  84.4 4.3  84.4 1.6
wine                96.0 3.8  94.7 1.5  96.4 2.0  96.1 1.8  95.1 1.1  95.0 2.8
monks1              79.0 2.8  81.4 0.0  83.6 1.5  86.6 0.2  84.4 0.9  78.9 2.5
monks2              84.4 0.1  85.8 1.4  86.7 0.9  85.9 1.2  73.6 1.1  82.1 1.3
monks3              90.8 0.6  93.0 1.2  93.0 0.9  94.0 1.3  93.7 0.6  94.0 1.0
diabetic_messidor   61.9 8.5  73.0 1.7  81.2 1.4  78.7 1.8  72.3 0.8  74.9 0.4
"""
REGRESSION_COLUMNS = ("SVR-CV", "DANK")
CPUSMALL_LABELS = 500
"""Labelled points of cpusmall."""
# Relative mean square errors of Table 6, test.
REGRESSION_TABLE = """
pyrim    0.678 0.255  0.457 0.143
bodyfat  0.101 0.002  0.091 0.013
mpg      0.193 0.006  0.173 0.008
housing  0.267 0.023  0.218 0.013
space_ga 0.261 0.112  0.202 0.114
triazines 0.815 0.206  0.734 0.128
mg       0.407 0.118  0.303 0.058
cpusmall 0.104 0.002  0.114 0.003
"""
SIGMAS = adaptive_methods.SIGMAS
COSTS = SIGMAS
INNER_SIGMAS = SIGMAS[3:8]
INNER_COSTS = COSTS[4::2]

FIXED = ("spect", "monks1", "monks2", "monks3")
ONE_PART = (
    "the part for the test is always the same, "
    "so the paper's deviation is that of the folds of cross-validation alone"
)
NEIGHBOUR = "its decisions come near those of the nearest neighbour, as said below"
MANY_FEATURES = (
    "the paper does not state how many features there are, which matters (below, on monks1)"
)
UNSTATED = (
    "it is better than the paper's, which does not state epsilon, nor how the targets are "
    "scaled; with targets in the range from 0 to 1 (below) it is nearer"
)


def _row(line: str, columns: tuple[str, ...] = COLUMNS) -> TableRow:
    name, *numbers = line.split()
    values = [float(number) for number in numbers]
    return TableRow(name, 0.5, reported=tuple(map(PaperFigure, columns, values[::2], values[1::2])))


def _explained(line: str) -> TableRow:
    """A relative error e with deviation d is 100 (1 - e) of the variance explained, with 100 d."""
    name, *numbers = line.split()
    values = [100 * float(number) for number in numbers]
    labelled = CPUSMALL_LABELS if name == "cpusmall" else 0.5
    return TableRow(
        name,
        labelled,
        reported=tuple(
            map(PaperFigure, REGRESSION_COLUMNS, (100 - mean for mean in values[::2]), values[1::2])
        ),
    )


PROTOCOL = Protocol(
    name="003",
    title="Liu, Huang, Gong, Yang, Li 2020, Tables 1 and 2: test accuracy (%) with half of the points labelled",
    rows=tuple(_row(line) for line in TABLE.strip().splitlines()),
    methods=(
        Method("MKL-uniform", adaptive_methods.uniform, costs=COSTS),
        Method("SVM-CV", adaptive_methods.gaussian, choices(width=SIGMAS), COSTS),
        Method(
            "DANK",
            adaptive_methods.adaptive,
            choices(width=SIGMAS),
            COSTS,
            chosen_by=adaptive_methods.gaussian,
        ),
        Method(
            "LDK",
            adaptive_methods.logdet,
            choices(width=SIGMAS),
            COSTS,
            chosen_by=adaptive_methods.gaussian,
        ),
        Method(
            "RF", baselines.random_features, choices(width=SIGMAS[2:9], weight=(0.1, 1.0)), COSTS
        ),
        Method("SimpleMKL", methods.simple_mkl, costs=(0.125, 2.0, 32.0)),
        Method("BMKL", bayesian_mkl.bmkl),
        Method("1-NN", adaptive_methods.nearest),
    ),
    reference="SVM-CV",
    learned=("DANK", "LDK", "RF", "SimpleMKL", "BMKL"),
    splits=10,
    scale="range",
    reasons=(
        Reason(
            "RF", "SVM-CV, which learns no kernel, is above the paper's by nearly as much", "wine"
        ),
        Reason("RF", MANY_FEATURES),
        Reason(
            "MKL-uniform",
            "not found: of the costs up to 2^8, one against one or against the rest, features "
            "scaled or not, none with the paper's accuracy on the training points (93 %) has "
            "less than 65 % on the test points of five splits",
            "glass",
        ),
        *(Reason("MKL-uniform", ONE_PART, row) for row in FIXED),
        Reason(
            "LDK",
            f"{ONE_PART}; more pairs or another slack do not bring it there (below)",
            "monks1",
        ),
        Reason("DANK", NEIGHBOUR),
        Reason("BMKL", "the paper does not state its priors and how often it sweeps"),
    ),
    notes=(
        "Widths and costs are the paper's, 2^-5, 2^-4, .., 2^5; the widths of RF are 1/8 to 8 "
        "and the costs of SimpleMKL 1/8, 2 and 32. An earlier run with every second value, on "
        "seven of these sets, had LDK behind SVM-CV in mean rank: that it is before it here is "
        "not robust.",
        "Features get the range from 0 to 1 on the labelled points; the paper scales by all "
        "points.",
        "Cross-validation chooses the width and the cost of DANK and LDK for the machine without "
        "a learned kernel: DANK differs from SVM-CV by the learned kernel alone. tau = 0.01 and "
        "eta = |alpha|^2 of that machine are the paper's (of several classes the mean over pairs "
        "of classes); new points by its rule of reciprocal neighbours.",
        "To first order the learned kernel of DANK adds y_b alpha_b sum_i alpha_i^2 k(x_i, x) "
        "k(x_i, x_b) / (4 eta) to the decision at x, b being the point whose column of F is "
        "borrowed. With eta = |alpha|^2 this may be C / 4, while margins are 1: where "
        "cross-validation chooses a large cost and a large width the neighbour's label decides: "
        "at width 4 and cost 32 DANK and 1-NN agreed nearly always in a probe on two splits of "
        "four sets.",
        "LDK has the figures of the paper's LogDet.",
        "BMKL is `klopt.papers.experiments.bayesian_mkl`, 200 sweeps of variational inference with "
        "Gamma(1, 1) priors; the paper does not state its settings. SimpleMKL has the same kernels, "
        "ten Gaussian ones and three polynomials. KNPL, the authors' earlier method without bounds on F, is not run.",
        "Spect and monks have a part for the test of their own: all splits are the same and "
        "differ in the folds of cross-validation only, so their deviations and tests say nothing "
        "of other data. Monks need a folder.",
    ),
)
OWN = replace(
    PROTOCOL,
    name="003-own",
    title="The same with the width and the cost of DANK and of LDK by cross-validation of the method itself",
    methods=(
        PROTOCOL.methods[1],
        Method("DANK", adaptive_methods.adaptive, choices(width=INNER_SIGMAS), INNER_COSTS),
        Method("LDK", adaptive_methods.logdet, choices(width=INNER_SIGMAS), COSTS),
    ),
    notes=(
        "The widths of DANK and LDK are 1/4, 1/2, 1, 2 and 4, the costs of DANK 1/2, 2, 8 and 32.",
    ),
)
BEST = replace(
    PROTOCOL,
    name="003-best",
    title="The same at the width and the cost that are best on the test points: no result, a bound on what any choice "
    "reaches",
    chosen_on="asked",
    methods=(
        *(method for method in PROTOCOL.methods if method.name in ("MKL-uniform", "SVM-CV", "RF")),
        Method("DANK", adaptive_methods.adaptive, choices(width=INNER_SIGMAS), INNER_COSTS),
        Method("LDK", adaptive_methods.logdet, choices(width=SIGMAS), COSTS),
    ),
    notes=("The widths of DANK are 1/4, 1/2, 1, 2 and 4, its costs 1/2, 2, 8 and 32.",),
)
NUMBERS_OF_FEATURES = {
    f"RF, {number} features": number for number in (baselines.RANDOM_FEATURES, 1000, 3000)
}
FEATURES = replace(
    PROTOCOL,
    name="003-features",
    title="RF with more features",
    rows=PROTOCOL.rows_of("RF", NUMBERS_OF_FEATURES),
    methods=tuple(
        Method(
            name,
            baselines.random_features_of(number),
            choices(width=SIGMAS[2:9], weight=(0.1, 1.0)),
            COSTS,
        )
        for name, number in NUMBERS_OF_FEATURES.items()
    ),
    reference=next(iter(NUMBERS_OF_FEATURES)),
    notes=("In brackets: the paper, which does not state how many features there are.",),
)
NUMBERS_OF_PAIRS = {f"LDK, {number} pairs": number for number in (20, 100, 400)}
PAIRS = replace(
    PROTOCOL,
    name="003-pairs",
    title="LDK with more pairs at the width, the slack and the cost that are best on the test points: no result, a "
    "bound on what any choice reaches",
    rows=PROTOCOL.rows_of("LDK", NUMBERS_OF_PAIRS),
    chosen_on="asked",
    methods=tuple(
        Method(
            name,
            adaptive_methods.logdet_of_pairs(number),
            choices(width=INNER_SIGMAS, weight=(0.1, 1.0, 10.0, 100.0)),
            COSTS,
        )
        for name, number in NUMBERS_OF_PAIRS.items()
    ),
    reference=next(iter(NUMBERS_OF_PAIRS)),
    notes=("The widths are 1/4, 1/2, 1, 2 and 4, the slacks 0.1, 1, 10 and 100.",),
)
# Training accuracies of Table 1, then test accuracies of Table 5 for tau = 0, 0.001, 0.01, 0.1, 1.
TRAINING_COLUMNS = ("MKL-uniform, training", "SVM-CV, training", "DANK, training")
TRAINING_TABLE = """
heart               95.8 4.3   88.9 3.0  94.3 1.7
sonar              100.0 0.0   99.9 0.3 100.0 0.0
spect               93.8 0.0   87.0 3.7  93.4 4.1
glass               93.4 6.0   77.1 6.9  89.7 6.1
fertility           99.0 1.4   94.4 5.3  97.3 3.3
wine               100.0 0.0   99.5 1.0  99.5 1.0
monks1              99.3 1.3   90.3 0.0 100.0 0.0
monks2             100.0 0.0  100.0 0.0 100.0 0.0
monks3              99.6 1.3   96.2 1.5  97.2 1.8
diabetic_messidor   83.5 14.2  80.7 3.9  87.0 1.9
"""
TAUS = (0.0, 0.001, 0.01, 0.1, 1.0)
TAU_COLUMNS = tuple(f"tau {tau:g}" for tau in TAUS)
TAU_TABLE = """
heart               84.9 2.2  87.3 2.2  87.9 2.9  86.5 2.5  85.4 2.8
sonar               84.0 2.4  85.2 2.4  87.0 2.7  87.4 2.6  86.8 2.3
spect               78.2 2.6  78.4 2.8  78.9 3.2  78.4 2.8  76.4 2.5
glass               72.3 1.1  73.7 1.4  74.5 1.3  73.3 1.2  71.4 1.5
fertility           86.8 2.1  87.1 2.2  87.6 2.3  87.3 2.1  87.2 2.2
wine                96.1 2.0  96.2 1.9  96.4 2.0  96.3 2.0  96.3 2.0
monks1              82.1 1.3  82.5 1.4  83.6 1.5  83.2 1.4  81.7 1.3
monks2              85.5 0.8  86.2 0.7  86.7 0.9  86.4 0.8  86.0 0.9
monks3              90.2 1.3  92.8 1.0  93.0 0.9  93.3 1.1  92.8 1.1
diabetic_messidor   78.1 1.2  81.1 1.2  81.2 1.4  81.2 1.2  81.1 1.2
"""
TRAINING = replace(
    PROTOCOL,
    name="003-training",
    title="Table 1: accuracy (%) on the labelled points themselves",
    rows=tuple(_row(line, TRAINING_COLUMNS) for line in TRAINING_TABLE.strip().splitlines()),
    methods=tuple(
        replace(method, name=f"{method.name}, training", asks="labelled")
        for method in PROTOCOL.methods
        if method.name in ("MKL-uniform", "SVM-CV", "DANK")
    ),
    reference="SVM-CV, training",
    learned=(),
    comparisons=(("DANK, training", "SVM-CV, training"),),
    reasons=(),
    notes=(),
)
TAU = replace(
    PROTOCOL,
    name="003-tau",
    title="Table 5: accuracy (%) of DANK with other weights of the trace of F",
    rows=tuple(_row(line, TAU_COLUMNS) for line in TAU_TABLE.strip().splitlines()),
    methods=tuple(
        Method(
            name,
            adaptive_methods.adaptive_with_tau(tau),
            choices(width=SIGMAS),
            COSTS,
            chosen_by=adaptive_methods.gaussian,
        )
        for name, tau in zip(TAU_COLUMNS, TAUS, strict=True)
    ),
    reference="tau 0.01",
    learned=(),
    comparisons=(
        ("tau 0.01", "tau 0"),
        ("tau 0.01", "tau 0.001"),
        ("tau 0.01", "tau 0.1"),
        ("tau 0.01", "tau 1"),
    ),
    reasons=(),
    notes=(),
)
REGRESSION = Protocol(
    name="003-regression",
    title="Liu, Huang, Gong, Yang, Li 2020, Table 6: variance explained (%), 100 (1 - the paper's relative error)",
    rows=tuple(_explained(line) for line in REGRESSION_TABLE.strip().splitlines()),
    methods=(
        Method("SVR-CV", adaptive_methods.regression, choices(width=SIGMAS), COSTS),
        Method(
            "DANK",
            adaptive_methods.adaptive_regression,
            choices(width=SIGMAS),
            COSTS,
            chosen_by=adaptive_methods.regression,
        ),
        Method("NW", adaptive_methods.nadaraya_watson, choices(width=adaptive_methods.SIGMAS[:8])),
    ),
    reference="SVR-CV",
    learned=("DANK",),
    splits=10,
    scale="range",
    regression=True,
    reasons=tuple(
        Reason(name, why, row)
        for name in REGRESSION_COLUMNS
        for row, why in (
            (
                "bodyfat",
                f"{UNSTATED}. Here density, from which the percentage of fat is computed, is "
                "among the features",
            ),
            (
                f"cpusmall ({CPUSMALL_LABELS})",
                "fewer points are labelled here, and it is better than the paper's, which does "
                "not state epsilon, nor how the targets are scaled",
            ),
            ("", UNSTATED),
        )
    ),
    notes=(
        "epsilon is not stated; here it is 0.1 for targets of mean 0 and deviation 1. The rest "
        "is as for classes.",
        "An earlier run with every second width and cost, on four of these sets, had DANK behind "
        "SVR-CV in mean rank: that it is before it here is not robust.",
        "NW is the plain estimator of Nadaraya and Watson: the paper learns a metric for it, so "
        "there is no figure.",
        f"Of the 8192 points of cpusmall {CPUSMALL_LABELS} are labelled and not half of them, the "
        "others are asked about: with half a matrix of 4096 x 4096 would be learned.",
        "pyrim, bodyfat, space_ga, triazines and mg need a folder; the last three are in no "
        "package that was found.",
    ),
)
ONE_BY_RANGE, ADAPTIVE_BY_RANGE = adaptive_methods.regression_of_targets("range")
REGRESSION_RANGE = replace(
    REGRESSION,
    name="003-regression-range",
    title="The same with targets in the range from 0 to 1, so that epsilon is a tenth of it",
    methods=(
        Method("SVR-CV", ONE_BY_RANGE, choices(width=SIGMAS), COSTS),
        Method("DANK", ADAPTIVE_BY_RANGE, choices(width=SIGMAS), COSTS, chosen_by=ONE_BY_RANGE),
    ),
    notes=(),
)
