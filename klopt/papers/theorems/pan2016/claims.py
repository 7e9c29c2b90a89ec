"""Efficient learning of supervised kernels with a graph-based loss function (Pan et al., 2016).

Notation of the paper: T holds the side information, W = exp(T), S = I - D^-1/2 W D^-1/2 is the
Laplacian of the supervised complete graph, D_ld the LogDet divergence; OSK, LDK and their scg
versions are the systems.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from klopt.papers.theorems.claim import Basis, Case, Outcome, listed, theorem
from klopt.papers.theorems.evidence import Evidence, Interval, at_most, equal, every, overlap
from klopt.papers.theorems.pan2016 import exact, proofs, quantities
from klopt.papers.theorems.pan2016.quantities import (
    alignment,
    random_costs,
    random_kernels,
    random_pairs,
    random_start,
    two_constraints,
)

TWO = {"T": np.zeros((2, 2)), "Phi": np.array([[1.0, 0.0]])}


@theorem(
    "pan2016-eq1", number="(1)", draw=random_kernels,
    formerly="000-1",
    quote=r"By the Cauchy-Schwarz inequality … we have $\rho(K, K') \in [-1, 1]$. … The kernel "
          "alignment is invariant to scales.",
    says="The alignment lies in [-1, 1] and does not change with the scale of a kernel.",
    latex=r"\rho(K,K')\in[-1,1],\quad \rho(aK,K')=\rho(K,K')",
    proof=proofs.alignment_is_a_cosine,
)  # fmt: skip
def alignment_is_a_cosine(case: Case) -> Evidence:
    one = alignment(case["K"], case["L"])
    scaled = alignment(case["factor"] * case["K"], case["L"])
    return every([at_most(abs(one), 1.0), equal(one, scaled, scale=1.0)])


@theorem(
    "pan2016-target", number="after (2)", draw=lambda rng, n: {"classes": int(rng.integers(3, 12))},
    formerly="000-2", quote="Note that Y has one negative eigenvalue for multiple classes",
    says="The target +1, -1 of several classes has exactly one negative eigenvalue.",
    latex=r"\#\{\lambda_i(Y)<0\}=1", premise="three classes or more; of two it is positive semidefinite",
    proof=proofs.target_is_indefinite,
)  # fmt: skip
def signed_target_is_indefinite(case: Case) -> Evidence:
    return equal(quantities.inertia(case["classes"]), (1, case["classes"] - 1))


@theorem(
    "pan2016-eq2", number="(2)", draw=quantities.random_prefixes, expected=Outcome.CORRECTED, whole=("b",),
    formerly="000-3", quote="Problem (2) can be solved by formulating it as a QCQP.", basis=Basis.IMPLIED,
    says="(2) can be solved as a QCQP: some ordered spectrum has a positive inner product with the target.",
    latex=r"\max_k\sum_{i\le k}b_i>0",
    correction="Only if some prefix sum of b is positive; else the alignment is best, and negative, at one prefix.",
    corrected=quantities.best_prefix_is_optimal, example={"b": np.array([-1.0]), "V": np.array([[1.0], [1.0], [1.0]])},
    exact=lambda case: (Fraction(1, 10**12), max(sum(case["b"][: k + 1]) for k in range(len(case["b"])))),
)  # fmt: skip
def qcqp_solves_the_alignment(case: Case) -> Evidence:
    return at_most(1e-12, max(float(np.cumsum(case["b"]).max()), 0.0))


@theorem(
    "pan2016-eq3", number="(3)", draw=random_start, sizes=(3, 4, 6),
    formerly="000-4", quote="The side information forms a convex set", basis=Basis.REMARK,
    says="(3) may be empty: a kernel with d_ij <= u and d_jk <= u has d_ik <= 4u, so that no l > 4u is met.",
    latex=r"\sqrt{d_{ik}}\le\sqrt{d_{ij}}+\sqrt{d_{jk}}\le2\sqrt u",
    proof=proofs.triangle,
)  # fmt: skip
def distances_obey_the_triangle_inequality(case: Case) -> Evidence:
    K = case["K0"]
    distance = quantities.squared_distance(K, 0, 2)
    longer = max(quantities.squared_distance(K, 0, 1), quantities.squared_distance(K, 1, 2))
    return at_most(distance, 4 * longer)


@theorem(
    "pan2016-eq5", number="(5)", draw=random_start, sizes=(3, 4, 6),
    formerly="000-5",
    quote="At each step, we choose one constraint and project the current solution onto this "
          "constraint.", basis=Basis.IMPLIED,
    says="Projection on one constraint has the closed form K + beta Kzz'K with beta = (u - p) / p^2.",
    latex=r"K^+=K+\frac{u-p}{p^2}\,Kzz^\top K",
)  # fmt: skip
def single_projection(case: Case) -> Evidence:
    return quantities.projection_is_nearest(case)


TIGHT = {"K0": np.eye(3), "u12": 1.9, "u13": 0.1}


@theorem(
    "pan2016-eq4", number="(4)", draw=two_constraints, most=20, expected=Outcome.CORRECTED,
    formerly="000-6",
    quote="The above problem is solved by using the Bregman projection algorithm.",
    says="Projecting on one constraint after the other converges to the optimum of (4).",
    latex=r"D_{ld}(K_\infty,K_0)=\min_{K\in\mathcal K}D_{ld}(K,K_0)",
    correction="Each constraint keeps its multiplier, and a step may take back what it did (Bregman's correction).",
    corrected=lambda case: quantities.ends_at_the_optimum(case, corrected=True), example=TIGHT,
    exact=exact.exact_plain_projections,
)  # fmt: skip
def plain_projections_converge_to_the_optimum(case: Case) -> Evidence:
    return quantities.ends_at_the_optimum(case, corrected=False)


projection_cost = listed(
    "pan2016-cost-projection", number="after (5)", says="A projection costs O(n^2), a sweep O(c n^2).",
    formerly="000-7",
    quote=r"Each constraint projection costs $\mathcal{O}(n^2)$; hence, a single iteration of "
          r"looping through all constraints costs $\mathcal{O}(cn^2)$",
    reason="A cost: benchmarks/logdet.py measures it.",
)  # fmt: skip
own_pairs = listed(
    "pan2016-eq7", number="(7)", says="T_ii = 0: no point is a pair with itself.",
    formerly="000-8",
    quote="When the class labels are given, they are firstly converted to a set of pairwise "
          "constraints, then T is computed accordingly.", basis=Basis.IMPLIED,
    reason="A definition. By default klopt takes T_ii = 1 for every point that the side information speaks of, which "
           "makes S of labels the identity minus a low rank; side_graph(..., self_similar=False) is (7) as printed.",
)  # fmt: skip


@theorem(
    "pan2016-eq10", number="(10)", draw=random_pairs, expected=Outcome.CORRECTED, whole=("Phi",),
    formerly="000-9",
    quote=r"$$\text{scg-loss}(K, T) = \sum_{i,j=1}^n W_{ij} \left\| "
          r"\frac{\phi(\mathbf{x}_i)}{\sqrt{D_{ii}}} - "
          r"\frac{\phi(\mathbf{x}_j)}{\sqrt{D_{jj}}} \right\|^2 = \langle K, S \rangle_F$$",
    says="The scg-loss, summed over ordered pairs, is <K, S>.",
    latex=r"\sum_{ij}W_{ij}\|\frac{\phi_i}{\sqrt{D_{ii}}}-\frac{\phi_j}{\sqrt{D_{jj}}}\|^2=\langle K,S\rangle",
    correction="It is 2 <K, S>; harmless in the LP, it rescales gamma in (27).",
    corrected=lambda case: equal(quantities.scg_loss(case), 2 * quantities.inner(case), tol=1e-9, scale=1.0),
    example=TWO, exact=quantities.exact_scg,
    proof=proofs.loss_is_twice_the_inner_product,
)  # fmt: skip
def scg_loss_is_the_inner_product(case: Case) -> Evidence:
    return equal(quantities.scg_loss(case), quantities.inner(case), tol=1e-9, scale=1.0)


@theorem(
    "pan2016-laplacian", number="after (10)", draw=random_pairs, says="S is positive semidefinite.", latex=r"S\succeq0",
    formerly="000-10",
    quote="Note that S is the normalized Laplacian matrix of SCG; thus, it is a symmetric and "
          "positive semi-definite matrix.",
    proof=proofs.laplacian_is_positive,
)  # fmt: skip
def laplacian_is_positive(case: Case) -> Evidence:
    values = np.linalg.eigvalsh(quantities.graph(case)[2])
    return every([at_most(-float(values[0]), 1e-12), at_most(float(values[-1]), 2.0)])


@theorem(
    "pan2016-eq11", number="(11), (12)", draw=random_pairs, says="<K, S> = tr K - <K, T'>.",
    formerly="000-11",
    quote=r"$$\langle K, S \rangle_F = \text{tr}(K) - \langle K, T' \rangle_F$$",
    latex=r"\langle K,S\rangle=\operatorname{tr}K-\langle K,T'\rangle,\quad T'_{ij}=e^{T_{ij}}/\sqrt{D_{ii}D_{jj}}",
    proof=proofs.loss_is_trace_minus_target,
)  # fmt: skip
def loss_is_trace_minus_target(case: Case) -> Evidence:
    W, D, _ = quantities.graph(case)
    K = case["Phi"].T @ case["Phi"]
    return equal(
        quantities.inner(case),
        np.trace(K) - np.sum(K * W / np.sqrt(np.outer(D, D))),
        scale=float(np.trace(K)),
    )


@theorem(
    "pan2016-separation", number="after (10)", expected=Outcome.REFUTED,
    formerly="000-12",
    quote=r"if \mathbf{x}_i and \mathbf{x}_j are from different classes, the distance between "
          r"$\phi(\mathbf{x}_i)$ and $\phi(\mathbf{x}_j)$ should not be small", basis=Basis.IMPLIED,
    draw=lambda rng, n: {"labels": np.append([0, 1], rng.integers(0, 2, n))},
    says="Minimal loss separates the classes: no kernel that ignores the labels has a smaller loss than the ideal one.",
    latex=r"\langle K_{\text{ideal}},S\rangle\le\langle qq^\top,S\rangle",
    correction="All weights are positive, so all pairs attract: the loss alone is least, 0, at qq', q = D^1/2 1.",
    exact=exact.exact_separation,
)  # fmt: skip
def loss_separates_classes(case: Case) -> Evidence:
    blind, ideal = quantities.ignored_labels(case)
    return at_most(ideal, max(blind, 0.0))


@theorem(
    "pan2016-theorem1", number="Theorem 1", draw=random_pairs, expected=Outcome.CORRECTED, example=TWO, most=15,
    formerly="000-13",
    quote="By equivalent we mean that if K^ is a solution of one of the problems, then it is "
          "also a solution of the other problem.",
    says="For some tau, (15) and (16) have the same solutions: those of (15), over all kernels, have one trace.",
    latex=r"\exists\tau:\ \operatorname{arg}\max(15)=\operatorname{arg}\max(16)",
    correction="Sol(16) = {K in Sol(15): tr K = tau} if K* solves (15) and tau = tr K*; (15) may have more solutions. "
               "Here over the convex hull of some kernels, by enumeration and by linear programs.",
    corrected=quantities.ivanov_has_the_solutions_of_tikhonov,
    # K = 11' and 2 11' are both optimal, of value 0; their traces differ by n.
    exact=lambda case: (len(case["T"]), abs(quantities.exact_ones_loss(case, 2) - quantities.exact_ones_loss(case, 1))),
)  # fmt: skip
def tikhonov_is_ivanov(case: Case) -> Evidence:
    # qq' and 2qq', q = D^1/2 1, have traces that differ by q'q; were their losses not both optimal,
    # they would differ.
    _, D, S = quantities.graph(case)
    q = np.sqrt(D)
    return at_most(1e-9 * float(D.sum()), abs(float(q @ S @ q)))


@theorem(
    "pan2016-eq24", number="(23), (24)", draw=quantities.random_cone, expected=Outcome.CORRECTED,
    formerly="000-14",
    quote="Thus, we can constrain the denominator and maximize the numerator, leading to an "
          "equivalent optimization problem of (23)",
    says="Best alignment (23) is best inner product on the unit ball (24), for every convex set of kernels.",
    latex=r"(23)\Leftrightarrow(24)", correction="The set must be a cone, and the best alignment not negative.",
    corrected=quantities.cone_is_equivalent,
    example={"t": 0.0, "K": np.eye(2), "L": np.ones((2, 2)), "y": np.array([1.0, -1.0])},
    exact=lambda case: (Fraction(1), (1 + case["t"]) ** 2 / (2 * (1 + case["t"] ** 2))),
)  # fmt: skip
def alignment_is_a_ball_constraint(case: Case) -> Evidence:
    # Kernels diag(1, t), 0 <= t <= 1, target I: rho is best, 1, at t = 1; the unit ball admits t =
    # 0 only.
    return at_most(1.0, quantities.alignment_with_identity(case["t"]))


@theorem(
    "pan2016-eq25", number="(25)", draw=random_kernels,
    says="A factor of the target changes no maximiser of the alignment.",
    formerly="000-15",
    quote="We note that the denominator in (25) can be removed when we optimize (24).",
    latex=r"\operatorname{arg}\max_K\rho(K,aT)=\operatorname{arg}\max_K\rho(K,T),\ a>0",
    proof=proofs.scale_of_target,
)  # fmt: skip
def scale_of_target_is_irrelevant(case: Case) -> Evidence:
    K = case["K"]
    T = case["L"]
    a = case["factor"]
    return equal(alignment(K, T), alignment(K, a * T), scale=1.0)


@theorem(
    "pan2016-prefix-means", number="(26)", draw=random_costs, most=20,
    formerly="000-16", quote="The above problem is an LP", basis=Basis.REMARK,
    says="The linear program (26) has the optimum min_k of the means of the first k costs.",
    latex=r"\min(26)=\min_k\frac{\sum_{i\le k}\sigma^{1-i}c_i}{\sum_{i\le k}\sigma^{1-i}}",
)  # fmt: skip
def prefix_means_solve_the_program(case: Case) -> Evidence:
    nu = quantities.prefix_means(case)
    routes = [quantities.ordered_optimum(case), quantities.ordered_optimum(case, "LP")]
    return every(overlap(route, Interval(nu - 1e-12, nu + 1e-12), tol=1e-7) for route in routes)


@theorem(
    "pan2016-appendix", number="Appendix A", draw=random_costs,
    quote="We show how to transform the problem (2) into (26).",
    says="For K = sum_i mu_i v_i v_i' with orthonormal v_i the loss is sum_i tr(K_i S) mu_i, the trace sum_i mu_i.",
    latex=r"\langle K,S\rangle_F=\sum_i\operatorname{tr}(K_iS)\mu_i,\quad\operatorname{tr}K=\sum_i\mu_i",
    proof=proofs.loss_is_linear_in_the_weights,
)  # fmt: skip
def loss_is_linear_in_the_weights(case: Case) -> Evidence:
    mu = np.linspace(1.0, 0.1, case["V"].shape[1])
    K = (case["V"] * mu) @ case["V"].T
    S = quantities.graph({"T": quantities.target(case["labels"])})[2]
    return every([
        equal(float(np.sum(K * S)), float(mu @ quantities.costs(case)), tol=1e-9, scale=float(mu.sum())),
        equal(float(np.trace(K)), float(mu.sum()), tol=1e-9),
    ])  # fmt: skip


lp_cost = listed(
    "pan2016-cost-lp", number="section 5.1", says="The linear program costs O(r^3.5).",
    formerly="000-17",
    quote=r"requires a total of $\mathcal{O}(r^{3.5})$ complexity according to Karmarkar's "
          "algorithm",
    reason="A cost, and superseded: prefix means take O(r); benchmarks/ordered.py measures both.",
)  # fmt: skip
equal_accuracy = listed(
    "pan2016-indistinguishable", number="Table 3", says="SCG-OSK and OSK are almost indistinguishable in accuracy.",
    formerly="000-18",
    quote="We note that the performance of SCG-OSK and OSK is almost indistinguishable.",
    reason="A question of data, answered in the experiments; as printed, the LP picks the constant eigenvector.",
)  # fmt: skip


@theorem(
    "pan2016-eq29", number="(28), (29)", draw=random_start, most=20,
    formerly="000-19",
    quote=r"Then we obtain a closed-form solution $$K = (K_0^{-1} + \gamma S)^{-1}.$$",
    says="K = (K0^-1 + gamma S)^-1 solves (27).", latex=r"K=(K_0^{-1}+\gamma S)^{-1}",
)  # fmt: skip
def closed_form_is_optimal(case: Case) -> Evidence:
    K = quantities.closed_form(case)
    stationary = (
        np.linalg.inv(case["K0"]) - np.linalg.inv(K) + case["gamma"] * quantities.graph(case)[2]
    )
    size = float(np.abs(np.linalg.inv(K)).max())
    value = quantities.objective27(case, K)
    return every([
        equal(stationary, np.zeros_like(K), tol=1e-8, scale=size),
        overlap(quantities.scg_ldk(case), Interval(value - 1e-9, value + 1e-9), tol=1e-5),
    ])  # fmt: skip


@theorem(
    "pan2016-eq29-floats", number="(29) in floats", draw=quantities.singular_start, sizes=(6, 12, 20),
    expected=Outcome.CORRECTED,
    formerly="000-20", quote=r"$$K = (K_0^{-1} + \gamma S)^{-1}.$$", basis=Basis.IMPLIED,
    says="(29) can be evaluated as printed: K + gamma K S K0 = K0 to eight digits, for cond(K0) = 1e18.",
    latex=r"\|K+\gamma KSK_0-K_0\|\le10^{-8}\|K_0\|",
    correction="As K0 (I + gamma S K0)^-1, which needs no inverse of K0.",
    corrected=lambda case: at_most(quantities.residual29(case, quantities.without_inverse(case)), 1e-8),
    exact=exact.exact_residual,
)  # fmt: skip
def printed_inverse_is_accurate(case: Case) -> Evidence:
    return at_most(quantities.residual29(case, quantities.closed_form(case)), 1e-8)


@theorem(
    "pan2016-definite", number="after (29)", draw=random_start, expected=Outcome.CORRECTED,
    formerly="000-21",
    quote="We see that the solution K in (29) is positive definite because of the positive "
          "definiteness of K_0 and S .",
    says="K is positive definite because K0 and S are.", latex=r"S\succ0",
    correction="S never is: S D^1/2 1 = 0. K0 > 0 suffices.",
    corrected=lambda case: at_most(0.0, float(np.linalg.eigvalsh(quantities.without_inverse(case))[0])),
    exact=exact.exact_definite,
)  # fmt: skip
def laplacian_is_definite(case: Case) -> Evidence:
    _, D, S = quantities.graph(case)
    q = np.sqrt(D)
    return at_most(1e-12, max(float(q @ S @ q / (q @ q)), 0.0))


amount = listed(
    "pan2016-cost-side", number="section 5.2", says="The cost is O(n^3) whatever the amount of side information.",
    formerly="000-22",
    quote="its computational complexity is independent of the amount of side information",
    reason="A cost: benchmarks/logdet.py measures it.",
)  # fmt: skip


@theorem(
    "pan2016-theorem2", number="Theorem 2", draw=random_start, most=25,
    formerly="000-23",
    quote=r"Then for each $\gamma > 0$, there exists a unique $\tau \geq 0$, such that the "
          "optimization problem … is equivalent to (27).",
    says="Each gamma has one tau for which (27) and (30) agree: tr(K(gamma) S) falls strictly with gamma.",
    latex=r"\gamma_1<\gamma_2\Rightarrow\operatorname{tr}(K(\gamma_1)S)>\operatorname{tr}(K(\gamma_2)S)",
    premise="n >= 2",
)  # fmt: skip
def smoothness_falls_with_gamma(case: Case) -> Evidence:
    g = case["gamma"]
    return at_most(quantities.smoothness(case, 2 * g), quantities.smoothness(case, g) * (1 - 1e-9))


@theorem(
    "pan2016-eq31", number="(31)", draw=random_start, expected=Outcome.CORRECTED, meets=lambda case: len(case["T"]) > 1,
    formerly="000-24", quote=r"where $U = I_n + \Phi^\top Q \Phi$",
    says="U = I_n + Phi'Q Phi: the identity has the order of the number of points.", latex=r"U=I_n+\Phi^\top Q\Phi",
    correction="U = I_d + Phi Q Phi', of the order of the features.",
    corrected=quantities.feature_form, premise="features and points differ in number",
    exact=lambda case: (len(case["T"]) + 2, len(case["T"])),
)  # fmt: skip
def feature_matrix_has_the_order_of_the_points(case: Case) -> Evidence:
    features, points = quantities.features_of(case).shape
    return equal(features, points)  # Phi U Phi' needs a U of the order of the features


@theorem(
    "pan2016-eq32", number="(6), (32)", draw=random_start, most=25,
    formerly="000-25",
    quote="It recovers the kernel matrix (29) exactly using the training data",
    says="The kernel function (32) gives back K on the training points and is positive with new ones.",
    latex=r"k(x,x')=k_0(x,x')+\sum_{ij}Q_{ij}k_0(x_i,x)k_0(x_j,x')",
)  # fmt: skip
def extension_is_a_kernel(case: Case) -> Evidence:
    return quantities.extended(case)


@theorem(
    "pan2016-large-gamma", number="(29), large gamma", draw=random_start, most=20,
    formerly="000-26", quote=r"where $\gamma > 0$", basis=Basis.REMARK,
    says="For large gamma K becomes the rank-one kernel qq', q = D^1/2 1, whatever the labels.",
    latex=r"\cos(K(\gamma),qq^\top)\to1",
)  # fmt: skip
def large_gamma_forgets(case: Case) -> Evidence:
    q = np.sqrt(quantities.graph(case)[1])
    K = quantities.without_inverse({**case, "gamma": 1e8})
    return at_most(1 - float(q @ K @ q / (q @ q * np.linalg.norm(K))), 1e-4)


bounds_of_others = listed(
    "pan2016-bounds-of-others", number="Table 1, (8), (9)",
    says="Motivation, and worst-case bounds of interior-point methods.",
    formerly="000-29",
    quote="The worst-case complexity of the QCQP using interior-point methods is "
          r"$\mathcal{O}(r^3)$ per iteration",
    reason="Qualitative or asymptotic; no instance could contradict it.",
)  # fmt: skip
