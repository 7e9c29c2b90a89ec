"""Mao, Tsang, Parameter-free spectral kernel learning, 2010: SKL and SKL_KTA.

Notation of the paper: L = I - D^-1/2 S D^-1/2 = U diag(gamma) U', y = (y_l, 0), A_ii = (u_i'y)^2, B
= gamma + ridge.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np

from klopt.papers.theorems.cases import ball
from klopt.papers.theorems.claim import Basis, Case, Outcome, listed, theorem
from klopt.papers.theorems.evidence import Evidence, at_most, equal, every, not_measured, overlap
from klopt.papers.theorems.mao2010 import exact, proofs, quantities
from klopt.papers.theorems.mao2010.graphs import (
    aligned,
    complete_graph,
    curve,
    embedded_graph,
    graph_with_classes,
    graph_with_spectrum,
    labels_see_null_space,
    random_graph,
    random_kernel,
    random_spectrum,
    spectrum_of,
)

EDGE = {
    "S": np.array([[0.0, 1.0], [1.0, 0.0]]),
    "y": np.array([1.0, -1.0]),
    "C": 2.0,
    "mu": 1.0,
    "ridge": 0.1,
}
RING = {
    **EDGE,
    "S": np.roll(np.eye(4), 1, axis=0) + np.roll(np.eye(4), -1, axis=0),
    "y": np.array([1.0, -1.0, 0.0, 0.0]),
    "mu": 0.05,
}
TRIANGLE = {**EDGE, "S": np.ones((3, 3)) - np.eye(3), "y": np.array([1.0, -1.0, 0.0]), "mu": 0.05}


@theorem(
    "mao2010-eq2", number="(1)-(3)", draw=random_kernel,
    formerly="004-1",
    quote="the minimization problem (1) can be derived into its dual form as follows",
    says="RLS has the dual (2), the solution alpha = (K + I/C)^-1 y and the value y'(K + I/C)^-1 y / 2.",
    latex=r"\min_w \tfrac12\|w\|^2+\tfrac C2\sum_i(y_i-w^\top\phi_i)^2=\tfrac12 y^\top(K+\tfrac1C I)^{-1}y",
)  # fmt: skip
def rls_duality(case: Case) -> Evidence:
    K = case["K"]
    y = case["y"]
    C = case["C"]
    alpha = np.linalg.solve(K + np.eye(len(K)) / C, y)
    primal = alpha @ K @ alpha / 2 + C / 2 * np.sum((y - K @ alpha) ** 2)
    return every(
        [
            equal(primal, y @ alpha / 2),
            equal(alpha @ y - alpha @ (K @ alpha + alpha / C) / 2, y @ alpha / 2),
        ]
    )


@theorem(
    "mao2010-eq4", number="(4)", draw=random_kernel, expected=Outcome.REFUTED,
    formerly="004-2", quote="then the MKL problem for RLS can be written as", basis=Basis.IMPLIED,
    says="Multiple kernel learning for RLS over mu >= 0 alone has a solution: from some weight on nothing is gained.",
    latex=r"\min_{\mu_d\ge0}\max_\alpha\ \alpha^\top y-\tfrac12\alpha^\top(\textstyle\sum_d\mu_dK^d+\tfrac1CI)\alpha",
    correction="The weights need a bound, sum_d mu_d tr K_d = c: ever larger weights give ever smaller values.",
    example={"K": np.eye(1), "y": np.ones(1), "C": 1.0},
    exact=lambda case: (case["y"][0] ** 2 / (10**4 * case["K"][0, 0] + 1 / case["C"]),
                        case["y"][0] ** 2 / (10**8 * case["K"][0, 0] + 1 / case["C"])),
)  # fmt: skip
def rls_weights_attain_their_minimum(case: Case) -> Evidence:
    K = case["K"]
    y = case["y"]
    heavy, heavier = (
        float(y @ np.linalg.solve(t * K + np.eye(len(K)) / case["C"], y)) for t in (1e4, 1e8)
    )
    return at_most(heavy, heavier)


@theorem(
    "mao2010-eq5", number="(5)", draw=embedded_graph, expected=Outcome.CORRECTED,
    formerly="004-3",
    quote="A manifold regularizer which captures the local dependency between the embedding "
          "of $v_i$ and $v_j$ , can be written as",
    says="The manifold regulariser, summed over ordered pairs, is tr(KL).",
    latex=r"\sum_{i,j}S_{ij}\|\tfrac{v_i}{\sqrt{d_i}}-\tfrac{v_j}{\sqrt{d_j}}\|^2=\operatorname{tr}(KL)",
    correction="It is 2 tr(KL): every edge is counted twice. This rescales mu.",
    corrected=lambda case: equal(quantities.pairwise(case), 2 * quantities.smoothness(case), tol=1e-9),
    example={**EDGE, "V": np.array([[1.0], [0.0]])}, exact=quantities.exact_regulariser,
    proof=proofs.regulariser_is_twice_the_trace,
)  # fmt: skip
def regulariser_is_the_trace(case: Case) -> Evidence:
    return equal(quantities.pairwise(case), quantities.smoothness(case), tol=1e-9)


@theorem(
    "mao2010-sdp", number="SDP after (6)", draw=random_graph, most=10, sizes=(3, 5), expected=Outcome.CORRECTED,
    formerly="004-4", quote="one can transform (6) into the following optimization problem",
    says="(6) is the SDP min tau + mu tr(KL) with the Schur complement of tau.",
    latex=r"\min\ \tau+\mu\operatorname{tr}(KL)\ \text{s.t.}\ "
          r"\begin{pmatrix}K_{ll}+\frac1CI&y_l\\y_l^\top&\tau\end{pmatrix}\succeq0",
    correction="The objective is tau/2 + mu tr(KL).", example={**EDGE, "mu": 100.0}, exact=exact.exact_schur,
    corrected=lambda case: overlap(quantities.schur_optimum(case, 0.5), quantities.optimum(case, "labelled"), tol=1e-6),
)  # fmt: skip
def schur_complement_form(case: Case) -> Evidence:
    return overlap(
        quantities.schur_optimum(case, 1.0), quantities.optimum(case, "labelled"), tol=1e-6
    )


@theorem(
    "mao2010-prop1", number="Proposition 1", draw=random_graph, most=25,
    formerly="004-5",
    quote="is an upper bound of Problem (6), and which is the same as using 0 as the label "
          "for unlabeled data in Problem (6).",
    says="Problem (7), with 0 as the label of unlabelled points, bounds problem (6) from above.",
    latex=r"\min_{K\succeq0}(7)\ \ge\ \min_{K\succeq0}(6)",
    premise="some point is unlabelled; else the two are the same", meets=lambda case: bool((case["y"] == 0).any()),
)  # fmt: skip
def padding_bounds_from_above(case: Case) -> Evidence:
    # The two may be equal, and no interval around equal numbers decides which one is larger: the
    # allowance is about the gap of proven ends, which are rounded outwards.
    labelled = quantities.optimum(case, "labelled")
    return at_most(labelled, quantities.optimum(case, "padded"), tol=1e-12)


@theorem(
    "mao2010-eq7", number="(6), (7)", draw=random_graph, expected=Outcome.REFUTED,
    formerly="004-6", quote="Problem (7) has the closed-form solution", basis=Basis.IMPLIED,
    says="(7) has a minimiser as it stands, without a ridge: along the null vector of L the value stops falling.",
    latex=r"\operatorname{arg}\min_{K\succeq0}\tfrac12y^\top(K+\tfrac1CI)^{-1}y+\mu\operatorname{tr}(KL)\neq\emptyset",
    correction="L is singular: along its null vector q the value keeps falling. A ridge or a free bias mends it.",
    premise="the labels see the null space: q'y is not 0", meets=labels_see_null_space, exact=exact.exact_falling,
)  # fmt: skip
def unregularised_minimum_is_attained(case: Case) -> Evidence:
    q = np.sqrt(case["S"].sum(axis=1))
    return at_most(
        quantities.value7(case, 10 * np.outer(q, q)), quantities.value7(case, 1e4 * np.outer(q, q))
    )


@theorem(
    "mao2010-prop2", number="Proposition 2, (8)", draw=random_spectrum, expected=Outcome.CORRECTED,
    formerly="004-7",
    quote=r"$$\lambda_i^* = \left[ \sqrt{\frac{A_{i,i}}{2\mu B_{i,i}} - \frac{1}{C}} "
          r"\right]_+$$",
    says="The best spectrum is the positive part of sqrt(A / (2 mu B) - 1/C).",
    latex=r"\lambda_i^*=\Bigl[\sqrt{\tfrac{A_{ii}}{2\mu B_{ii}}-\tfrac1C}\Bigr]_+",
    correction="1/C stands outside the root.",
    corrected=lambda case: quantities.least(case, quantities.spectrum8(case)),
    example={"A": np.array([2.0]), "B": np.array([1.0]), "mu": 1.0, "C": 2.0},
    exact=lambda case: (
        quantities.exact_value8(case, ball(case["A"][0] / (2 * case["mu"] * case["B"][0]) - 1 / case["C"]).sqrt()),
        quantities.exact_value8(case, quantities.exact_spectrum8(case)[0])),
)  # fmt: skip
def spectral_closed_form(case: Case) -> Evidence:
    inside = np.maximum(case["A"] / (2 * case["mu"] * case["B"]) - 1 / case["C"], 0.0)
    return quantities.least(case, np.sqrt(inside))


@theorem(
    "mao2010-eq8-optimal", number="section 4.1", draw=random_graph, most=25, expected=Outcome.REFUTED,
    formerly="004-8",
    quote="The following proposition shows that Problem (7) could be solved in the closed "
          "form solution via spectral kernel.",
    says="The closed form (8) solves problem (7).",
    latex=r"\min_{K\succeq0}(7)=\min_{\lambda\ge0}(7)|_{K=U\Sigma U^\top}",
    correction="It is the best kernel that commutes with L; over all kernels the optimum has rank one and is lower.",
    example=RING, exact=exact.exact_commuting,
)  # fmt: skip
def closed_form_solves_the_whole_problem(case: Case) -> Evidence:
    return at_most(quantities.optimum(case, "spectral"), quantities.optimum(case, "padded"))


@theorem(
    "mao2010-eq8-basis", number="(8)", draw=complete_graph, expected=Outcome.CORRECTED, example=TRIANGLE,
    formerly="004-9", quote="where $U$ is a matrix of column eigenvectors of $L$", basis=Basis.IMPLIED,
    says="The kernel of (8) is well defined: it does not depend on the eigenvectors chosen.",
    latex=r"K=U\Sigma U^\top\ \text{for every eigenbasis}\ U\ \text{of}\ L",
    correction="Only if each repeated eigenvalue has one direction, the projection of y on its space.",
    corrected=quantities.basis_free, exact=exact.exact_rotated,
)  # fmt: skip
def kernel_is_independent_of_the_basis(case: Case) -> Evidence:
    return equal(
        quantities.rotated_kernel(case, 0.0),
        quantities.rotated_kernel(case, np.pi / 5),
        tol=1e-8,
        scale=1e-6,
    )


@theorem(
    "mao2010-order", number="section 4.2", draw=random_spectrum, expected=Outcome.REFUTED,
    formerly="004-10",
    quote="Apparently, solution (8) exactly satisfies the need of above graph theory.",
    says="(8) decreases with the eigenvalue, as graph theory asks for.",
    latex=r"\gamma_i\le\gamma_j\Rightarrow\lambda_i^*\ge\lambda_j^*",
    correction="It need not: the labels may see a rough eigenvector better than a smooth one.",
    example={"A": np.array([0.0, 2.0]), "B": np.array([1.0, 2.0]), "mu": 0.125, "C": 1.0},
    exact=lambda case: (quantities.exact_spectrum8(case)[1], ball(0).max(quantities.exact_spectrum8(case)[0])),
)  # fmt: skip
def spectrum_decreases(case: Case) -> Evidence:
    lam = quantities.spectrum8(case)[np.argsort(case["B"])]
    return every(at_most(float(after), float(before)) for before, after in pairwise(lam))


@theorem(
    "mao2010-kta", number="section 4.2", draw=graph_with_spectrum,
    formerly="004-11",
    quote=r"the last equality holds due to $K = U \Sigma U^T$ and $A = U_l^T \mathbf{y}_l "
          r"\mathbf{y}_l^T U_l$ in Section 4.1",
    says="For targets +1 and -1 the alignment is tr(Sigma A) / sqrt(tr Sigma^2 n_l^2).",
    latex=r"\mathrm{KTA}(K,yy^\top)=\frac{\operatorname{tr}(\Sigma A)}{\sqrt{\operatorname{tr}(\Sigma^2)\,n_l^2}}",
    premise="two classes; with indicators of more, n_l must be sqrt(sum_c n_c^2)",
    proof=proofs.alignment_in_the_eigenbasis,
)  # fmt: skip
def alignment_in_the_eigenbasis(case: Case) -> Evidence:
    (U, A, _) = spectrum_of(case)
    lam = case["lam"]
    y = case["y"]
    K = (U * lam) @ U.T
    T = np.outer(y, y)
    direct = float(np.sum(K * T) / (np.linalg.norm(K) * np.linalg.norm(T)))
    return equal(
        direct, float(lam @ A) / (float(np.linalg.norm(lam)) * np.count_nonzero(y)), tol=1e-9
    )


@theorem(
    "mao2010-kta-positive", number="proof of Proposition 3", draw=random_spectrum, expected=Outcome.REFUTED,
    formerly="004-12",
    quote=r"It also cannot be zero because neither $K$ nor $\mathbf{y}$ is zero matrix or zero "
          "vector in the semi-supervised setting.",
    says="The alignment cannot be zero since K is not: some sqrt(A / 2 mu B) exceeds 1/C.", latex=r"K\neq0",
    correction="K = 0 exactly where mu >= C^2 max(A / B) / 2.",
    example={"A": np.array([1.0]), "B": np.array([1.0]), "C": 1.0, "mu": 2.0},
    exact=lambda case: (ball(0), max(quantities.exact_spectrum8(case))),
)  # fmt: skip
def kernel_is_never_zero(case: Case) -> Evidence:
    return at_most(1 / case["C"], float(np.sqrt(case["A"] / (2 * case["mu"] * case["B"])).max()))


@theorem(
    "mao2010-prop3", number="Proposition 3, (10)", draw=random_spectrum, expected=Outcome.CORRECTED,
    formerly="004-13",
    quote="*By maximizing the KTA for $K$ in Proposition 2, Problem (9) has the closed form "
          r"solution $\mu^*$",
    says="The alignment along the curve of Proposition 2 is largest at mu* of (10).",
    latex=r"\mu^*=\Bigl(\frac{\bar y\bar u-\bar z\bar x}{\bar z\bar u-\frac n{C^2}\bar x}\Bigr)^2",
    correction="Only where p = n X - Z U > 0 > q = Y U - Z X; elsewhere mu* is the minimum or not stationary.",
    corrected=lambda case: quantities.printed_mu_beats_the_grid(case)
    if quantities.signs(case)[0] > 1e-9 and quantities.signs(case)[1] < -1e-9
    else not_measured("p or q has another sign"),
    example={"A": np.array([1.0, 2.0]), "B": np.array([1e-3, 1.0]), "C": 1.0},
    exact=lambda case: quantities.exact_alignments(case, clip=False),
)  # fmt: skip
def printed_mu_maximises(case: Case) -> Evidence:
    return quantities.printed_mu_beats_the_grid(case)


@theorem(
    "mao2010-prop3-clipped", number="Proposition 3 with Proposition 2", draw=random_spectrum,
    expected=Outcome.CORRECTED,
    formerly="004-14",
    quote="The following Proposition shows that Problem (9) could be solved analytically.", basis=Basis.IMPLIED,
    says="mu* of (10) maximises the alignment of the kernel, whose spectrum is the positive part (8).",
    latex=r"\mathrm{KTA}\bigl(K(\mu^*)\bigr)=\max_{\mu>0}\mathrm{KTA}\bigl(K(\mu)\bigr),\quad \lambda=[\,\cdot\,]_+",
    correction="The pieces between the breakpoints must be compared: each has one candidate in closed form.",
    corrected=lambda case: at_most(
        quantities.best_on_grid(case, clip=True), quantities.clipped_maximum(case), scale=10.0),
    example={"A": np.array([2.0, 1.0]), "B": np.array([1e-3, 1.0]), "C": 1.0},
    exact=lambda case: quantities.exact_alignments(case, clip=True),
)  # fmt: skip
def printed_mu_maximises_the_clipped_alignment(case: Case) -> Evidence:
    lam = np.maximum(curve(case, min(max(quantities.printed_mu(case), 1e-300), 1e300)), 0.0)
    return at_most(quantities.best_on_grid(case, clip=True), aligned(case, lam) * (1 + 1e-5))


@theorem(
    "mao2010-prop4-kernel", number="Proposition 4", draw=random_spectrum, expected=Outcome.REFUTED,
    formerly="004-15",
    quote=r"The new kernel can be written as $K = U\Sigma U^T = \frac{1}{C}U(\bar{\Sigma} - "
          r"I)U^T = \frac{1}{C}(\bar{K} - I)$", basis=Basis.IMPLIED,
    says="K = (Kbar - I) / C is a kernel.", latex=r"\bar K-I\succeq0",
    correction="Its eigenvalues are negative wherever Kbar's are below 1; they must be clipped.",
    example={"A": np.array([4.0, 1.0]), "B": np.array([2.0, 50.0]), "C": 1.0, "mu": 1.0},
    exact=lambda case: (ball(1), quantities.exact_kbar(case)[1]),
    premise="q is not 0", meets=lambda case: bool(abs(quantities.signs(case)[1]) > 1e-9),
)  # fmt: skip
def shifted_kernel_is_positive(case: Case) -> Evidence:
    return at_most(1.0, float(quantities.kbar(case).min()))


@theorem(
    "mao2010-prop4", number="Proposition 4", draw=random_graph, most=25,
    formerly="004-16",
    quote=r"the proposed model in (7) is independent of parameters $\mu$ and $C$",
    says="On unlabelled points the decision depends neither on mu nor on C.",
    latex=r"f(x_u)=(\bar K-I)_{ul}\bar K_{ll}^{-1}y_l", premise="an unlabelled point, and Kbar_ll well conditioned",
    meets=lambda case: bool((case["y"] == 0).any() and np.linalg.cond(quantities.labelled_block(case)) < 1e6),
)  # fmt: skip
def decision_is_parameter_free(case: Case) -> Evidence:
    free = case["y"] == 0
    first = quantities.decisions(case, 1.0, 1.0)[free]
    others = (
        quantities.decisions(case, C, mu)[free] for C, mu in ((0.1, 1.0), (10.0, 0.3), (1.0, 25.0))
    )
    return every(equal(first, other, tol=1e-7, scale=1e-3) for other in others)


@theorem(
    "mao2010-prop4-clipped", number="Proposition 4 with clipping", draw=random_graph, most=25,
    formerly="004-17",
    quote=r"the proposed model in (7) is independent of parameters $\mu$ and $C$", basis=Basis.REMARK,
    says="With the positive part in (8) the decision still does not depend on C, if mu = (C / tau*)^2.",
    latex=r"\mu=(C/\tau^*)^2\ \Rightarrow\ f\ \text{independent of}\ C",
)  # fmt: skip
def clipped_decision_is_independent_of_c(case: Case) -> Evidence:
    return quantities.decisions_agree_for_every_c(case)


@theorem(
    "mao2010-ridge", number="section 4.4", draw=random_graph, most=10, expected=Outcome.REFUTED,
    formerly="004-18", quote=r"This also guarantees $\bar{K}_{l,l}$ is well-defined as well.",
    says="The ridge guarantees that Kbar_ll is well defined (invertible).",
    latex=r"\operatorname{rank}\bar K_{ll}=n_l",
    correction="It needs as many eigenvectors that the labels see as there are labels.",
    example={**EDGE, "y": np.array([1.0, 1.0])},
    # On one edge with both points labelled, det Kbar_ll is a multiple of A_1 A_2 = ((y_1^2 - y_2^2)
    # / 2)^2.
    exact=lambda case: (Fraction(1, 10**12), ((case["y"][0] ** 2 - case["y"][1] ** 2) / 2) ** 2),
)  # fmt: skip
def ridge_makes_kbar_invertible(case: Case) -> Evidence:
    values = np.linalg.eigvalsh(quantities.labelled_block(case))
    return at_most(1e-12, max(float(values[0] / values[-1]), 0.0))


ridge_choice = listed(
    "mao2010-ridge-value", number="section 4.4", says="A small ridge epsilon is added to the eigenvalues.",
    formerly="004-19",
    quote=r"In order to avoid this, we add a small ridge $\epsilon$ to $V$ in our "
          "implementation.",
    reason="No value is given; which one predicts best is a question of data, answered in the experiments.",
)  # fmt: skip


@theorem(
    "mao2010-classes", number="section 4.4", draw=graph_with_classes,
    formerly="004-20",
    quote="both algorithms can be naturally extended into multi-class problem by replacing "
          "$y_i$ with a vector $Y_i$ with only one 1 at the position indicating label $y_i$ "
          "and 0 for the rest",
    says="For several classes y is replaced by indicators, A_ii = sum_c (u_i'Y_c)^2.",
    latex=r"\langle U\Sigma U^\top,YY^\top\rangle=\sum_i\lambda_i\sum_c(u_i^\top Y_c)^2",
    proof=proofs.classes_enter_as_indicators,
)  # fmt: skip
def classes_enter_as_indicators(case: Case) -> Evidence:
    U = spectrum_of(case).U
    lam = case["lam"]
    Y = (case["groups"][:, None] == np.arange(3)).astype(float)
    return equal(
        np.sum(((U * lam) @ U.T) * (Y @ Y.T)), lam @ np.sum((U.T @ Y) ** 2, axis=1), tol=1e-9
    )


complexity = listed(
    "mao2010-complexity", number="section 4.4", says="Both algorithms have the same complexity.",
    formerly="004-21", quote="The complexities of the both proposed algorithms are the same",
    reason="Asymptotic; the eigendecomposition, O(n^3), dominates in both. benchmarks/ordered.py has the timings.",
)  # fmt: skip
