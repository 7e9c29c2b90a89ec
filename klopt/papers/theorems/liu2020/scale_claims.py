"""Learning data-adaptive non-parametric kernels (Liu et al., 2020): clusters and regression.

Sections 4 to 6. Kbar is K within clusters and 0 between them, Q the sum of |K_ij| between them;
(abar, Fbar) solves the subproblems. In regression up and down are the two multipliers of a point,
beta = up - down.
"""

from __future__ import annotations

import numpy as np

from klopt.arrays import FloatArray
from klopt.papers.theorems.cases import ball
from klopt.papers.theorems.claim import Basis, Case, Outcome, listed, theorem
from klopt.papers.theorems.evidence import Evidence, at_most, equal, every
from klopt.papers.theorems.liu2020 import clusters, proofs, regression
from klopt.papers.theorems.liu2020.clusters import random_clusters
from klopt.papers.theorems.liu2020.exact import exact_minus_regression
from klopt.papers.theorems.liu2020.quantities import gamma, random_regression, sharp, weights

APART = {
    "K": np.eye(2),
    "y": np.ones(2),
    "C": 1.0,
    "eta": 1.0,
    "tau": 0.0,
    "bias": False,
    "groups": np.arange(2.0),
}
TUBE = {"K": np.eye(2), "y": np.array([1.0, -1.0]), "C": 1.0, "eta": 1.0, "tau": 0.0, "epsilon": 0.125,
        "up": np.array([0.5, 0.0]), "down": np.array([0.0, 0.5])}  # fmt: skip


@theorem(
    "liu2020-lemma5", number="Lemma 5, (18)-(20)", draw=random_clusters, most=20, expected=Outcome.CORRECTED,
    formerly="003-B26",
    quote=r"the approximation solution $(\bar{\alpha}, \bar{\mathbf{F}})$ to the whole problem "
          "is the optimal solution of the following problem",
    says="The solutions of the clusters, put together with F block diagonal, solve the whole problem with Kbar.",
    latex=r"\bar F=\operatorname{diag}(\bar F^{(1,1)},\dots,\bar F^{(v,v)}),\quad"
          r"\bar H(\bar\alpha,\bar F)=\max_\alpha\min_F\bar H(\alpha,F)",
    correction="Between clusters F is 1, not 0: zeros cost eta for each pair. With ones it is exact, for tau = 0.",
    corrected=lambda case: clusters.concatenation(case, ones=True),
    meets=lambda case: bool(np.ptp(case["groups"])), example=APART, exact=clusters.exact_concatenation,
)  # fmt: skip
def clusters_solve_the_cut_problem(case: Case) -> Evidence:
    return clusters.concatenation(case, ones=False)


@theorem(
    "liu2020-theorem6", number="Theorem 6", draw=random_clusters, most=20, expected=Outcome.CORRECTED,
    formerly="003-B27",
    quote=r"$$|H(\alpha^*, \mathbf{F}^*) - H(\bar{\alpha}, \bar{\mathbf{F}})| \leq \frac{1}{2} "
          r"BC^2 Q(\pi)$$",
    says="The value of the clusters differs from the optimum by at most (B2 - B1) C^2 Q / 2, B1 and B2 bounding F.",
    latex=r"|H(\alpha^*,F^*)-H(\bar\alpha,\bar F)|\le\tfrac12(B_2-B_1)C^2Q(\pi)",
    premise="F is 1 between clusters (liu2020-lemma5), and (4) means (18)",
    meets=lambda case: bool(np.ptp(case["groups"])),
    correction="-(C^4 / 16 eta) sum K_ij^2 <= h* - H <= C^2 Q / 2, the sum between clusters: B2 would do, B2 - B1 not.",
    corrected=clusters.theorem6_corrected, exact=clusters.exact_theorem6,
    example={**APART, "K": np.array([[1.0, 0.5], [0.5, 1.0]]), "eta": 128.0, "alpha": np.full(2, 0.625)},
)  # fmt: skip
def clusters_are_nearly_optimal(case: Case) -> Evidence:
    return clusters.theorem6(case)


@theorem(
    "liu2020-eq30", number="(30)", draw=random_clusters,
    formerly="003-B27b",
    quote=r"$$\bar{H}(\alpha^*, F^*) - H(\alpha^*, F^*) = \frac{1}{2} "
          r"\sum_{i,j:\pi(\mathbf{x}_i) \neq \pi(\mathbf{x}_j)}^n \alpha_i^* \alpha_j^* y_i "
          "y_j F_{ij}^* K_{ij}$$",
    says="Hbar and H differ by half the sum of alpha_i alpha_j y_i y_j F_ij K_ij between clusters.",
    latex=r"\bar H(\alpha,F)-H(\alpha,F)=\tfrac12\sum_{\pi(i)\neq\pi(j)}\alpha_i\alpha_jy_iy_jF_{ij}K_{ij}",
    proof=proofs.cut_costs_the_terms_between,
)  # fmt: skip
def cut_costs_the_terms_between(case: Case) -> Evidence:
    return clusters.difference30(case)


@theorem(
    "liu2020-theorem6-step", number="proof of Theorem 6", draw=random_clusters, most=30, expected=Outcome.REFUTED,
    formerly="003-B27c",
    quote=r"The second inequality admits by $H(\bar{\alpha}, F^*) \leq H(\bar{\alpha}, "
          r"\bar{F})$.",
    whole=("K", "C", "eta"),
    says="H(abar, F*) <= H(abar, Fbar).", latex=r"H(\bar\alpha,F^*)\le H(\bar\alpha,\bar F)",
    correction="Fbar is the best for abar and Kbar, F* for alpha* and K; neither is best for abar and K.",
    meets=lambda case: bool(np.ptp(case["groups"])), exact=clusters.exact_proof_step,
    example={**APART, "K": np.array([[1.0, 0.5], [0.5, 1.0]])},
)  # fmt: skip
def optimal_weights_are_better_for_clusters(case: Case) -> Evidence:
    return clusters.proof_step(case)


@theorem(
    "liu2020-cut", number="Remark after Theorem 6", draw=random_clusters,
    formerly="003-B29",
    quote=r"If $v = 1$, i.e., only one cluster, we have $Q(\pi) = 0$; If $v = n$, i.e., each "
          r"data point is grouped into a cluster, then $Q(\pi)$ can be upper bounded by "
          r"$Q(\pi) \leq \sum_{i,j}^n |k(\mathbf{x}_i, \mathbf{x}_j)|$.",
    says="Q is 0 for one cluster, at most the sum of |K_ij| for n clusters, and grows as clusters are split.",
    latex=r"Q(\pi)=0\ (v=1),\qquad Q(\pi)\le\sum_{ij}|K_{ij}|\ (v=n)",
    premise="finer clusters lie within coarser ones; those of k-means need not",
)  # fmt: skip
def cut_grows_with_the_clusters(case: Case) -> Evidence:
    n = len(case["y"])
    K = np.abs(case["K"])
    one, some, all_ = (float(np.abs(clusters.off_block_kernel({**case, "groups": groups})).sum())
                       for groups in (np.zeros(n), case["groups"], np.arange(n)))  # fmt: skip
    return every(
        [at_most(one, 0.0), at_most(some, all_), at_most(all_, float(K.sum())),
         equal(all_, K.sum() - np.trace(K), scale=float(K.sum()))]
    )  # fmt: skip


@theorem(
    "liu2020-theorem7", number="Theorem 7, (21)", draw=random_clusters, most=12, expected=Outcome.UNMET,
    formerly="003-B28",
    quote=r"\mathbf{x}_i will also not be a support vector of the whole problem i.e., "
          r"$\alpha_i = 0$, under the following condition",
    says="A point without weight in its cluster that meets (21) has none in the whole problem.",
    latex=r"(\nabla_\alpha\bar H(\bar\alpha,\bar F))_i\le-(B+B_2)C(\|\bar K_i\|_1+\kappa)\Rightarrow\alpha_i^*=0",
    premise="some point meets (21); none can, since its row of Fbar is 1 and its gradient at least 1 - C |Kbar_i|_1",
    meets=lambda case: bool(clusters.dropped(case, -1.0).any()),
)  # fmt: skip
def screened_points_have_no_weight(case: Case) -> Evidence:
    return clusters.none_lost(case, clusters.dropped(case, -1.0))


@theorem(
    "liu2020-screening-share", number="Remark after Theorem 7", draw=random_clusters, most=10, expected=Outcome.REFUTED,
    formerly="003-B28b",
    quote="of the total non-support vectors can be directly recognized, where c is some "
          "constant",
    says="(21) recognises points without weight, a share of about 1 - c / sqrt(n) of them.",
    latex=r"\min_{i:\bar\alpha_i=0}(\nabla_\alpha\bar H)_i+(B+B_2)C(\|\bar K_i\|_1+\kappa)\le0",
    correction="It recognises none: B2 >= 1, so that (21) asks for less than the least gradient there can be.",
    premise="some point has no weight in its cluster", exact=clusters.exact_screening,
    meets=lambda case: bool((clusters.screening(case)[2] <= 1e-9 * case["C"]).any()),
    example={**APART, "K": np.array([[1.0, 2.0], [2.0, 4.0]]), "groups": np.zeros(2)},
)  # fmt: skip
def screening_recognises_points(case: Case) -> Evidence:
    g, threshold, alpha = clusters.screening(case)
    nearest = int(np.argmin(np.where(alpha <= 1e-9 * case["C"], g + threshold, np.inf)))
    return at_most(float(g[nearest]), -float(threshold[nearest]))


@theorem(
    "liu2020-eq21", number="(21), second inequality", draw=random_clusters, whole=("K",), expected=Outcome.REFUTED,
    formerly="003-B28c",
    quote=r"$$\leq -(B + B_2)C (\|\bar{\mathbf{K}}_i\|_1 + \kappa) \leq -(B + B_2)C "
          r"(\|\mathbf{K}\|_1 + \kappa)$$",
    says="The second inequality of (21) holds: |K|_1 <= |Kbar_i|_1 for a column i.",
    latex=r"-(B+B_2)C(\|\bar K_i\|_1+\kappa)\le-(B+B_2)C(\|K\|_1+\kappa)",
    correction="It is the other way round: a column of Kbar is part of one of K.",
    example={**APART, "K": np.array([[1.0, 0.5], [0.5, 1.0]])},
    exact=lambda case: (max(sum(abs(case["K"]))), min(np.abs(clusters.block_kernel(case)).sum(axis=0))),
)  # fmt: skip
def norm_of_a_part_exceeds_the_whole(case: Case) -> Evidence:
    part = np.abs(clusters.block_kernel(case)).sum(axis=0)
    return at_most(float(np.abs(case["K"]).sum(axis=0).max()), float(part.min()))


@theorem(
    "liu2020-figure5c", number="section 6.2.4", draw=random_clusters, most=20, expected=Outcome.CORRECTED,
    formerly="003-B28d",
    quote="can be directly recognized as non-support vectors (marked in red) without solving "
          "the optimization problem",
    says="Points with a gradient of at most (B + B2) C (|Kbar_i|_1 + kappa), without the minus sign, have no weight.",
    latex=r"(\nabla_\alpha\bar H)_i\le(B+B_2)C(\|\bar K_i\|_1+\kappa)\Rightarrow\alpha_i^*=0",
    correction="That drops support vectors. Gap-safe: grad_i < -max(sqrt(2 L_i gap), 2 gap / C) drops none.",
    corrected=clusters.gap_safe, example=APART, exact=clusters.exact_dropped,
)  # fmt: skip
def experiment_screens_safely(case: Case) -> Evidence:
    g, threshold, _ = clusters.screening(case)
    return clusters.none_lost(case, g <= threshold)


@theorem(
    "liu2020-eq22", number="(22)", draw=random_regression, most=20, expected=Outcome.CORRECTED,
    formerly="003-B30", quote=r"$$(\hat{\alpha} - \check{\alpha})^\top \mathbf{y} = 0$$",
    says="(22) under (up - down)'y = 0 is the dual of regression: its optimum is that of the primal.",
    latex=r"(\hat\alpha-\check\alpha)^\top y=0",
    correction="The constraint is 1'(up - down) = 0. As printed the linear term vanishes, alpha = 0 is optimal "
               "whatever the data, and the optimum is 0.",
    corrected=regression.optimum_is_attained,
    meets=lambda case: regression.optimum(case)[0].lower > 1e-6,
    # On the printed set beta'y = 0, so that h <= 0 = h(0); `up` and `down` of the case meet 1'beta
    # = 0.
    example=TUBE, exact=regression.exact_constraint,
)  # fmt: skip
def regression_constraint(case: Case) -> Evidence:
    n = len(case["y"])
    printed = regression.value(case, np.zeros(n), np.zeros(n))
    return at_most(regression.optimum(case)[0], printed)


@theorem(
    "liu2020-lemma8", number="(23), (24), Lemma 8", draw=random_regression,
    formerly="003-B32",
    quote=r"$\|\Gamma(\hat{\alpha}_1, \check{\alpha}_1) - \Gamma(\hat{\alpha}_2, "
          r"\check{\alpha}_2)\|_2$ can be bounded by the following lemma",
    says="F and Gamma of regression are Lipschitz in beta: |K| / (4 eta) |beta_1 + beta_2| |beta_1 - beta_2|, with any "
         "of |K|_F, |K|_2 and kappa.",
    latex=r"\|F_1-F_2\|_F\le\|\Gamma_1-\Gamma_2\|_F\le\tfrac{\|K\|}{4\eta}\|\beta_1+\beta_2\|\,\|\beta_1-\beta_2\|",
    proof=proofs.weights_are_lipschitz,
)  # fmt: skip
def regression_weights_are_lipschitz(case: Case) -> Evidence:
    one = case["up"] - case["down"]
    two = case["up2"] - case["down2"]
    moved = float(np.linalg.norm(gamma(case, one) - gamma(case, two)))
    bound = float(
        np.abs(case["K"]).max() * np.linalg.norm(one + two) * np.linalg.norm(one - two)
    ) / (4 * case["eta"])
    F = float(np.linalg.norm(weights(case, one) - weights(case, two)))
    return every(
        [at_most(F, moved, scale=float(len(one)), tol=1e-12), at_most(moved, bound, tol=1e-12)]
    )


def printed25(case: Case, side: str) -> FloatArray:
    """Return a line of (25): -epsilon 1 - (F o K) beta, plus y for `up` and less y for `down`."""
    beta = case["up"] - case["down"]
    y = case["y"] if side == "up" else -case["y"]
    return np.asarray(-case["epsilon"] - (weights(case, beta) * case["K"]) @ beta + y)


@theorem(
    "liu2020-prop9-down", number="Proposition 9, (25), second line", draw=random_regression, expected=Outcome.CORRECTED,
    formerly="003-B31",
    quote=r"$$-\varepsilon \mathbf{I} - (\hat{\alpha} - \check{\alpha}) \mathbf{F} \odot "
          r"\mathbf{K} - \mathbf{y}$$",
    says="The derivative of h by down is -epsilon 1 - (F o K)(up - down) - y.",
    latex=r"\frac{\partial h}{\partial\check\alpha}=-\varepsilon\mathbf1-(F\circ K)(\hat\alpha-\check\alpha)-y",
    correction="The kernel term has a plus sign; and epsilon I means epsilon 1.",
    corrected=lambda case: regression.same_gradient(case, "down", regression.halves(case)[1]),
    example=TUBE, exact=regression.exact_gradient,
)  # fmt: skip
def derivative_by_down(case: Case) -> Evidence:
    return regression.same_gradient(case, "down", printed25(case, "down"))


@theorem(
    "liu2020-prop9-up", number="Proposition 9, (25), first line", draw=random_regression,
    formerly="003-B31b",
    quote=r"$$-\varepsilon \mathbf{I} - (\hat{\alpha} - \check{\alpha}) \mathbf{F} \odot "
          r"\mathbf{K} + \mathbf{y}$$",
    says="The derivative of h by up is -epsilon 1 - (F o K)(up - down) + y.",
    latex=r"\frac{\partial h}{\partial\hat\alpha}=-\varepsilon\mathbf1-(F\circ K)(\hat\alpha-\check\alpha)+y",
)  # fmt: skip
def derivative_by_up(case: Case) -> Evidence:
    return regression.same_gradient(case, "up", printed25(case, "up"))


@theorem(
    "liu2020-theorem10", number="Theorem 10, (28), (29)", draw=random_regression,
    formerly="003-B33",
    quote=r"where the Lipschitz constant is $L = 2\kappa \left(n + \frac{9nC^2 "
          r"\|\mathbf{K}\|_{\mathbb{F}}}{4\eta} \right)$.",
    says="The gradient of h moves by at most 2 L (|d up| + |d down|), L = 2 kappa (n + 9 n C^2 |K|_F / (4 eta)); even "
         "by twice the constant of liu2020-sharp-constant in the joint norm.",
    latex=r"\|\nabla h_1-\nabla h_2\|\le2L(\|\hat\alpha_2-\hat\alpha_1\|+\|\check\alpha_2-\check\alpha_1\|)",
)  # fmt: skip
def regression_gradient_is_lipschitz(case: Case) -> Evidence:
    one = np.concatenate([case["up"], case["down"]])
    two = np.concatenate([case["up2"], case["down2"]])
    moved = float(np.linalg.norm(regression.gradient(case, one) - regression.gradient(case, two)))
    step = float(
        np.linalg.norm(case["up"] - case["up2"]) + np.linalg.norm(case["down"] - case["down2"])
    )
    return every([at_most(moved, regression.constant10(case) * step),
                  at_most(moved, 2 * sharp(case) * float(np.linalg.norm(one - two)))])  # fmt: skip


@theorem(
    "liu2020-algorithm2", number="Algorithm 2 line 7", expected=Outcome.CORRECTED, most=4, sizes=(3, 5),
    formerly="003-B34",
    quote=r"$$- \frac{1}{4L} \sum_{i=0}^t (i+1) \nabla h(\hat{\alpha}^{(i)}, "
          r"\check{\alpha}^{(i)})$$",
    whole=("K", "y", "C", "eta", "tau"),
    draw=lambda rng, n: {**random_regression(rng, n), "steps": 300.0},
    says="Algorithm 2 accelerates with the minus sign of its line 7: theta has a gap of at most 8 L |x*|^2 / "
         "((t+1)(t+2)).",
    latex=r"\beta^{(t)}=\mathcal P_{\mathcal A}\Bigl(x_0-\tfrac1{4L}\sum_{i=0}^t(i+1)\nabla h(x^{(i)})\Bigr)",
    premise="constraint and derivative as in liu2020-eq22 and liu2020-prop9-down, else it does not even ascend",
    correction="The sign is plus, as in Algorithm 1.", corrected=lambda case: regression.algorithm2(case, 1.0),
    example={**TUBE, "steps": 300.0}, exact=exact_minus_regression,
)  # fmt: skip
def minus_sign_accelerates_regression(case: Case) -> Evidence:
    return regression.algorithm2(case, -1.0)


@theorem(
    "liu2020-step-function", number="section 6.3.1", expected=Outcome.CORRECTED, most=1,
    formerly="003-B35",
    quote="In our experiment, s , w and a are set to 3, 2 and 0.05, respectively.", basis=Basis.IMPLIED,
    draw=lambda rng, n: {"s": 3.0, "w": 2.0, "a": 0.05},
    says="The test function with s = 3, w = 2, a = 0.05 has steps: a quarter along a step it has not risen by s / 10.",
    latex=r"g(s,w,a,\tfrac w4)\le\tfrac s{10}",
    correction="It is the straight line sx/w up to 2e-4; steps need a of 20 or more.",
    corrected=lambda case: at_most(regression.step_function({**case, "a": 20.0}), case["s"] / 10),
    exact=lambda case: (ball(case["s"]) * regression.exact_step(case), ball(case["s"] / 10)),
)  # fmt: skip
def test_function_has_steps(case: Case) -> Evidence:
    return at_most(regression.step_function(case), case["s"] / 10)


tables = listed(
    "liu2020-tables", number="Tables 1-6, Figures 1-6", says="Accuracies, errors and times on the data sets.",
    formerly="003-B36",
    quote="Experimental results on various classification and regression benchmark data sets "
          "demonstrate that our non-parametric kernel learning framework achieves good "
          "performance",
    reason="Splits, tuned widths and C, and some data sets are not given.",
)  # fmt: skip
