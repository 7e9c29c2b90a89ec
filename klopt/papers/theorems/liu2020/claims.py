"""Learning data-adaptive non-parametric kernels (Liu et al., 2020): the model (DANK).

Notation of the paper: a = Y alpha, Gamma = D_a K D_a / (4 eta), A the box 0 <= alpha <= C with
y'alpha = 0, F o K by entries. Sections 1 and 2; the algorithm is in `algorithm_claims`, clusters
and regression in `scale_claims`.
"""

from __future__ import annotations

import numpy as np

from klopt.model.problem import Point
from klopt.papers.theorems.cases import ball
from klopt.papers.theorems.claim import Basis, Case, Outcome, listed, theorem
from klopt.papers.theorems.evidence import Evidence, at_most, equal, every, overlap
from klopt.papers.theorems.liu2020 import proofs, quantities, saddle
from klopt.papers.theorems.liu2020.quantities import random_matrices, random_problem

TWO = {"K": np.eye(2), "y": np.array([1.0, -1.0]), "C": 1.0, "eta": 1.0, "tau": 0.0}


@theorem(
    "liu2020-eq2", number="(1), (2)", draw=random_problem, most=25,
    formerly="003-B0", quote="the dual form of problem (1) is given by",
    says="The soft margin machine (1) and its dual (2) have one value.",
    latex=r"\min_{w,b,\xi}\tfrac12\|w\|^2+C\mathbf1^\top\xi"
          r"=\max_{\alpha\in\mathcal A}\mathbf1^\top\alpha-\tfrac12\alpha^\top YKY\alpha",
)  # fmt: skip
def svm_duality(case: Case) -> Evidence:
    # Two programs and two proofs: the dual by `SoftMargin`, the primal as a quadratic program in
    # w, b and xi.
    dual, _ = quantities.svm(case, case["K"])
    return overlap(dual, quantities.primal_svm(case), tol=1e-6)


relaxation = listed(
    "liu2020-eq4-relaxation", number="(3), (4)", says="Problem (3) can be reformulated as (4).",
    formerly="003-B18", quote="problem (3) can be reformulated as",
    latex=r"\|F-\mathbf1\mathbf1^\top\|_F^2\le R^2,\ \operatorname{rank}F<r\ \leadsto\ "
          r"\eta\|F-\mathbf1\mathbf1^\top\|_F^2+\tau\eta\|F\|_*",
    reason="(4) is a penalised relaxation: a bound on the rank is not convex, and which R and r belong to eta and tau "
           "is not said. The two are not the same problem.",
)  # fmt: skip


@theorem(
    "liu2020-saddle", number="after (4), after (5)", draw=random_problem, most=20, sizes=(2, 3, 5),
    formerly="003-B17",
    quote="As a consequence, problem (4) is convex, and strong duality holds by Slater's "
          "condition",
    says="Strong duality holds, and the optimum is a saddle point of H.",
    latex=r"\max_\alpha\min_FH=\min_F\max_\alpha H,\quad H(\alpha,F^*)\le H(\alpha^*,F^*)\le H(\alpha^*,F)",
)  # fmt: skip
def saddle_point(case: Case) -> Evidence:
    return saddle.saddle(case)


@theorem(
    "liu2020-margin", number="after (4)", draw=random_problem, most=25, expected=Outcome.CORRECTED,
    formerly="003-B19",
    quote="the objective function value of its primal problem would decrease, which in turn "
          "enlarges the margin γ",
    says="Learning F lowers the objective of the primal, which in turn enlarges the margin 1 / |w|.",
    latex=r"\|w_{F^*\circ K}\|\le\|w_K\|",
    correction="The value of the machine falls if tau = 0, omega(F* o K) <= omega(K); the norm of w may grow.",
    corrected=lambda case: saddle.machine_improves({**case, "tau": 0.0}),
    example={**TWO, "C": 0.5}, exact=saddle.exact_margin,
)  # fmt: skip
def margin_grows(case: Case) -> Evidence:
    learned = quantities.solved(case).F * case["K"]
    return at_most(quantities.svm(case, learned)[1], quantities.svm(case, case["K"])[1], tol=1e-6)


@theorem(
    "liu2020-value-falls", number="after (4)", most=25,
    formerly="003-B19b",
    quote="when we learn the kernel matrix in problem (4), the objective function value of "
          "its primal problem would decrease",
    draw=lambda rng, n: {**random_problem(rng, n), "tau": float(rng.choice([2.0, 5.0]))},
    says="The value of the machine falls whatever tau is.", expected=Outcome.REFUTED,
    latex=r"\omega(F^*\circ K)\le\omega(K),\quad\tau>0",
    correction="A large tau makes F* = 0, the kernel vanish and every point violate its margin.",
    example={**TWO, "tau": 10.0}, exact=saddle.exact_vanishing,
)  # fmt: skip
def machine_improves_for_every_tau(case: Case) -> Evidence:
    return saddle.machine_improves(case)


@theorem(
    "liu2020-eq26", number="(5), (26)", draw=random_problem,
    formerly="003-B3",
    quote=r"The gradient of $h(\alpha)$ in Eq. (5) is computed as $$\nabla h(\alpha) = "
          r"\mathbf{1} - Y(F(\alpha) \odot K)Y\alpha.$$",
    says="h is concave and differentiable with gradient 1 - Y(F(alpha) o K)Y alpha.",
    latex=r"\nabla h(\alpha)=\mathbf1-Y(F(\alpha)\circ K)Y\alpha",
)  # fmt: skip
def gradient_of_h(case: Case) -> Evidence:
    return quantities.gradients_agree(case)


@theorem(
    "liu2020-trace", number="proof of Lemma 1", draw=random_matrices, whole=("F", "K", "x"), expected=Outcome.CORRECTED,
    formerly="003-B1",
    quote=r"$$\frac{1}{2} \alpha^\top \mathbf{Y} (\mathbf{F} \odot \mathbf{K}) \mathbf{Y} "
          r"\alpha = \operatorname{tr} \left[\operatorname{diag}(\alpha^\top \mathbf{Y}) "
          r"\mathbf{K} \operatorname{diag}(\alpha^\top \mathbf{Y}) \mathbf{F} \right]$$",
    says="Half the quadratic form of F o K is the trace of D_a K D_a F.",
    latex=r"\tfrac12a^\top(F\circ K)a=\operatorname{tr}(D_aKD_aF)",
    correction="Half the trace. (7) to (9) agree with that, so Gamma keeps its factor 1 / (4 eta).",
    corrected=lambda case: equal(saddle.form(case, case["x"], case["x"]) / 2, saddle.trace(case, case["x"]) / 2),
    example={"F": np.eye(1), "K": np.eye(1), "x": np.ones(1)},
    exact=lambda case: (abs(saddle.form(case, case["x"], case["x"]) / 2 - saddle.trace(case, case["x"])), 0),
    proof=proofs.quadratic_form_is_half_a_trace,
)  # fmt: skip
def quadratic_form_is_a_trace(case: Case) -> Evidence:
    return equal(saddle.form(case, case["x"], case["x"]) / 2, saddle.trace(case, case["x"]))


@theorem(
    "liu2020-footnote2", number="footnote 2", draw=random_matrices,
    formerly="003-B1b",
    quote=r"We use the formula $\mathbf{x}^\top \mathbf{A} \odot \mathbf{B} \mathbf{y} = "
          r"\operatorname{tr}(\mathbf{D}_x \mathbf{A} \mathbf{D}_y \mathbf{B}^\top)$",
    says="x'(A o B)z = tr(D_x A D_z B').",
    latex=r"x^\top(A\circ B)z=\operatorname{tr}(D_xAD_zB^\top)",
    proof=proofs.bilinear_form_is_a_trace,
)  # fmt: skip
def bilinear_form_is_a_trace(case: Case) -> Evidence:
    A, B, x, z = (case[name] for name in ("A", "B", "x", "z"))
    by_entries = saddle.form({"F": A, "K": B}, x, z)
    return equal(by_entries, np.trace(np.diag(x) @ A @ np.diag(z) @ B.T))


@theorem(
    "liu2020-eq9", number="(7)-(9), after (9)", draw=random_problem,
    formerly="003-B2",
    quote=r"we can directly obtain the optimal solution of problem (9) with $$\mathbf{F}^* "
          r"\equiv \mathbf{F}(\alpha) = \mathcal{J}_{\frac{\tau}{2}}(\mathbf{1}\mathbf{1}^\top "
          r"+ \mathbf{\Gamma}(\alpha))$$",
    says="The best F is 11' + Gamma with its singular values lowered by tau / 2.",
    latex=r"F(\alpha)=\mathcal J_{\tau/2}(\mathbf1\mathbf1^\top+\Gamma(\alpha))",
    premise="K is psd; for any other K it is the positive part of 11' + Gamma - (tau/2) I",
)  # fmt: skip
def best_weights_in_closed_form(case: Case) -> Evidence:
    return quantities.best_weights(case)


@theorem(
    "liu2020-eq5-closed", number="beyond (5)", draw=random_problem,
    formerly="003-B3b",
    quote=r"which is concave since $h(\cdot)$ is the minimum of a sequence of concave "
          "functions", basis=Basis.REMARK,
    says="h = 1'alpha + eta n^2 - eta |(11' + Gamma - (tau/2) I)_+|^2; without tau a quartic, no eigenvalues needed.",
    latex=r"h(\alpha)=\mathbf1^\top\alpha-\tfrac12a^\top Ka-\tfrac1{16\eta}u^\top(K\circ K)u,\quad u=\alpha\circ\alpha",
)  # fmt: skip
def value_in_closed_form(case: Case) -> Evidence:
    return quantities.closed_forms(case)


@theorem(
    "liu2020-lemma1-bound", number="Lemma 1, (6), (10)", draw=random_problem,
    formerly="003-B4",
    quote=r"Based on its closed-form, $\lambda_{\max}(\mathbf{F}^*)$ can be upper bounded by",
    says="The largest eigenvalue of the best F is at most n - tau/2 + n C^2 lambda_max(K) / (4 eta); even without that "
         "factor n of C^2.",
    latex=r"\lambda_{\max}(F^*)\le n-\tfrac\tau2+\tfrac{nC^2}{4\eta}\lambda_{\max}(K)",
    premise="the right hand side is not negative",
)  # fmt: skip
def weights_are_bounded(case: Case) -> Evidence:
    top, bound = saddle.top_and_bound(case, case["alpha"])
    sharper = saddle.top_and_bound({**case, "K": case["K"] / len(case["y"])}, case["alpha"])[1]
    return every([at_most(top, bound), at_most(top, sharper, tol=1e-12)])


@theorem(
    "liu2020-lemma1-set", number="Lemma 1", draw=random_problem, expected=Outcome.CORRECTED,
    formerly="003-B4b", quote=r"as a nonempty subset of \mathcal{S}_+^n .",
    says="The set of F with that bound is not empty and holds the best F, whatever tau is.",
    latex=r"F^*\in\mathcal F\neq\emptyset",
    correction="The bound must be max(0, .): for a large tau the best F is 0 and the bound printed is negative.",
    corrected=lambda case: at_most(saddle.top_and_bound(case, case["alpha"])[0],
                                   max(saddle.top_and_bound(case, case["alpha"])[1], 0.0)),
    example={**TWO, "tau": 10.0, "alpha": np.ones(2)},
    exact=lambda case: (0, saddle.exact_bound(case)),
)  # fmt: skip
def bounded_set_is_not_empty(case: Case) -> Evidence:
    return at_most(*saddle.top_and_bound(case, case["alpha"]))


@theorem(
    "liu2020-eta", number="Remark after Lemma 1, 6.1.1", draw=random_problem, expected=Outcome.REFUTED,
    formerly="003-B5",
    quote=r"the regularizer parameter η is chosen as $\eta \in \mathcal{O}(n)$ to ensure "
          r"$\text{tr}[\mathbf{\Gamma}(\alpha)]$ to be in the same order with "
          r"$\text{tr}(\mathbf{1}\mathbf{1}^\top) \in \mathcal{O}(n)$",
    says="eta = |alpha|^2, of the order n, makes tr Gamma grow like tr 11' = n: it is n times what it is for n = 1.",
    latex=r"\eta=\|\alpha\|_2^2\ \Rightarrow\ \operatorname{tr}\Gamma\in\Theta(n)",
    correction="tr Gamma = sum alpha_i^2 K_ii / (4 |alpha|^2) lies between min K_ii / 4 and max K_ii / 4 for every n: "
               "F stays 11' up to rounding. eta = kappa C^2 / (4 delta) lets entries move by delta.",
    meets=lambda case: bool(case["alpha"].any() and np.diag(case["K"]).min() > 0),
    example={**TWO, "alpha": np.ones(2)}, exact=saddle.exact_trace,
)  # fmt: skip
def trace_grows_with_n(case: Case) -> Evidence:
    trace = float(
        np.trace(
            quantities.gamma({**case, "eta": float(case["alpha"] @ case["alpha"])}, case["alpha"])
        )
    )
    return at_most(len(case["y"]) * float(np.diag(case["K"]).min()) / 4, trace)


@theorem(
    "liu2020-figure2-range", number="Figure 2", draw=random_problem,
    formerly="003-B20",
    quote=r"We find that \mathbf{F}^* is of low-rank and its entries range from 0.9 to 1.1 in "
          "a small region.", basis=Basis.IMPLIED,
    says="Entries of F stay near 1, in the figure between 0.9 and 1.1: they differ from it by at most alpha_i alpha_j "
         "kappa / (4 eta) + tau / 2.",
    latex=r"|F_{ij}-1|\le\tfrac{\kappa}{4\eta}\alpha_i\alpha_j+\tfrac\tau2",
)  # fmt: skip
def entries_stay_near_one(case: Case) -> Evidence:
    alpha = case["alpha"]
    F = quantities.problem(case).weights(Point({"alpha": alpha}))
    allowed = np.outer(alpha, alpha) * np.abs(case["K"]).max() / (4 * case["eta"]) + case["tau"] / 2
    return at_most(float((np.abs(F - 1.0) / (allowed + 1e-10 * (1 + allowed.max()))).max()), 1.0)


@theorem(
    "liu2020-figure2-rank", number="Figure 2, Table 5", draw=random_problem, most=25, sizes=(5, 8, 12),
    formerly="003-B7", quote=r"We find that \mathbf{F}^* is of low-rank", basis=Basis.IMPLIED,
    says="F* has low rank: without tau at most one more than there are support vectors, less with a larger tau, and 0 "
         "once tau / 2 is above the largest eigenvalue of 11' + Gamma.",
    latex=r"\operatorname{rank}F^*|_{\tau=0}\le1+\#\{i:\alpha_i^*>0\}",
)  # fmt: skip
def weights_have_low_rank(case: Case) -> Evidence:
    return saddle.ranks(case)


@theorem(
    "liu2020-rank", number="section 2.2.2 i)", draw=random_matrices,
    formerly="003-B6",
    quote=r"According to $\text{rank}(\widetilde{\mathbf{K}}) \leq "
          r"\text{rank}(\mathbf{F})\text{rank}(\mathbf{K})$",
    says="rank(F o K) <= rank F rank K.",
    latex=r"\operatorname{rank}(F\circ K)\le\operatorname{rank}F\operatorname{rank}K",
    proof=proofs.rank_of_a_product,
)  # fmt: skip
def rank_of_a_product(case: Case) -> Evidence:
    ranks = [int(np.linalg.matrix_rank(M)) for M in (case["F"] * case["K"], case["F"], case["K"])]
    return at_most(ranks[0], ranks[1] * ranks[2])


@theorem(
    "liu2020-hoffman", number="section 2.2.2 ii)", draw=random_problem,
    formerly="003-B6b",
    quote=r"we have $[\lambda_1(\mathbf{F}) - n]^2 + \sum_{i=2}^n [\lambda_i(\mathbf{F})]^2 "
          r"\leq \|\mathbf{E}\|_{\text{F}}^2$",
    says="Hoffman and Wielandt: (lambda_1(F) - n)^2 + the other lambda_i(F)^2 <= |F - 11'|^2.",
    latex=r"(\lambda_1(F)-n)^2+\sum_{i\ge2}\lambda_i(F)^2\le\|F-\mathbf1\mathbf1^\top\|_F^2",
)  # fmt: skip
def eigenvalues_move_little(case: Case) -> Evidence:
    F = quantities.weights(case, case["y"] * case["alpha"])
    values = np.linalg.eigvalsh(F)
    left = (values[-1] - len(F)) ** 2 + np.sum(values[:-1] ** 2)
    return at_most(float(left), float(np.sum((F - 1.0) ** 2)), tol=1e-12, scale=float(len(F) ** 2))


@theorem(
    "liu2020-eq11", number="(11)", draw=saddle.random_neighbours,
    formerly="003-B21",
    quote=r"the j^* -th column of \mathbf{F}^* is assigned to the j -th column of \mathbf{F}' "
          ".", basis=Basis.IMPLIED,
    says="Reciprocal neighbours give every test point a column of F: M_ij = 1 / (r s) is never 0, the largest entry of "
         "a column is at least 1 / m, and training points get their own column back.",
    latex=r"M_{ij}=\tfrac1{rs}\ge\tfrac1{mn},\quad\max_iM_{ij}\ge\tfrac1m",
)  # fmt: skip
def neighbours_cover_every_test_point(case: Case) -> Evidence:
    return saddle.neighbours(case)


@theorem(
    "liu2020-prop2", number="Proposition 2", draw=saddle.random_projection, expected=Outcome.CORRECTED,
    formerly="003-B23",
    quote=r"let d' be a positive integer such that $d' \geq d_0 = "
          r"\mathcal{O}(\frac{1}{\gamma^2} \log \frac{1}{\epsilon\delta})$",
    says="A random projection to c log(1 / (epsilon delta)) dimensions keeps a distance within 1 +- epsilon with "
         "probability 1 - delta, for margin 1 and one constant c for all epsilon.",
    latex=r"d'=\mathcal O\bigl(\tfrac1{\gamma^2}\log\tfrac1{\epsilon\delta}\bigr)",
    correction="The dimension needs a factor epsilon^-2: 8 epsilon^-2 log(2 / delta) do.",
    corrected=lambda case: saddle.kept(case, 8 * np.log(2 / case["delta"]) / case["epsilon"] ** 2),
    exact=saddle.exact_lost,
)  # fmt: skip
def few_dimensions_suffice(case: Case) -> Evidence:
    return saddle.kept(case, case["constant"] * np.log(1 / (case["epsilon"] * case["delta"])))


@theorem(
    "liu2020-eq12", number="(12)", draw=random_problem,
    formerly="003-B22",
    quote=r"we can obtain a small $\|\varphi^\top(\mathbf{x})\varphi(\mathbf{x}'_j) - "
          r"\varphi^\top(\mathbf{x}')\varphi(\mathbf{x}'_j)\|_2^2$ if $\|\mathbf{x} - "
          r"\mathbf{x}'\|_2^2$ is small",
    says="Neighbours have near kernel values: (k(x, z) - k(x', z))^2 <= |phi(x) - phi(x')|^2 k(z, z).",
    latex=r"|\varphi(x)^\top\varphi(z)-\varphi(x')^\top\varphi(z)|^2\le\|\varphi(x)-\varphi(x')\|^2\,\|\varphi(z)\|^2",
    proof=proofs.neighbours_have_near_values,
)  # fmt: skip
def neighbours_have_near_values(case: Case) -> Evidence:
    K = quantities.weights(case, case["y"] * case["alpha"]) * case["K"]
    d = np.diag(K)
    left = (K[:, None, :] - K[None, :, :]) ** 2
    right = (d[:, None] + d - 2 * K)[:, :, None] * d
    return at_most(float((left / (right + 1e-10 * (1 + d.max()) ** 2)).max()), 1.0)


@theorem(
    "liu2020-eq13", number="(13)", draw=saddle.random_points,
    formerly="003-B24",
    quote="For example, the two layer composition of Gaussian kernel can be formulated as",
    says="Two layers of the Gaussian kernel give exp(-1/sigma^2) exp(k / sigma^2), which is F o K for F = k2 / k.",
    latex=r"k^{(2)}(x_i,x_j)=e^{-1/\sigma^2}\exp(k(x_i,x_j)/\sigma^2)",
    proof=proofs.two_layers,
)  # fmt: skip
def two_layers(case: Case) -> Evidence:
    K = case["K"]
    s = case["sigma"]
    d = np.diag(K)
    return equal(
        np.exp(-(d[:, None] + d - 2 * K) / (2 * s * s)),
        np.exp(-1 / s**2) * np.exp(K / s**2),
        tol=1e-12,
    )


@theorem(
    "liu2020-two-layers", number="after (13)", draw=saddle.random_points, expected=Outcome.REFUTED,
    formerly="003-B24b",
    quote=r"which is actually associated with the data-adaptive matrix $\mathbf{F} = "
          r"[g(\mathbf{x}_i, \mathbf{x}_j)]_{n \times n}$",
    says="That F is a data-adaptive matrix of the model, so psd: no entry exceeds the diagonal, which is 1.",
    latex=r"F=[k^{(2)}_{ij}/k_{ij}]\in\mathcal S_+^n",
    correction="It is not: where k is small, F_ij = k2 / k is far above 1.",
    example={"K": np.array([[1.0, 0.125], [0.125, 1.0]]), "sigma": 1.0},
    exact=lambda case: ((ball((case["K"][0, 1] - 1) / case["sigma"] ** 2).exp() / ball(case["K"][0, 1])) ** 2, ball(1)),
)  # fmt: skip
def two_layers_are_in_the_model(case: Case) -> Evidence:
    K = case["K"]
    s = case["sigma"]
    return at_most(float((np.exp((K - 1) / s**2) / K).max()), 1.0)


@theorem(
    "liu2020-eq14", number="(14)", draw=random_problem, most=25, expected=Outcome.REFUTED,
    formerly="003-B25", quote="we consider our DANK model in a distribution view",
    says="The learned kernel is a mixture of Gaussians exp(-xi |x - x'|^2), so its diagonal is constant.",
    latex=r"\tilde k(x_i,x_j)=\int_0^\infty e^{-\xi\|x_i-x_j\|^2}\mu(d\xi)",
    correction="The diagonal of F* o K is (1 + alpha_i^2 K_ii / (4 eta)) K_ii without tau, larger where alpha_i is.",
    meets=lambda case: bool(np.ptp(np.diag(case["K"])) < 1e-12),
    example={**TWO, "K": np.eye(3), "y": np.array([1.0, -1.0, -1.0])}, exact=saddle.exact_diagonal,
)  # fmt: skip
def learned_kernel_is_radial(case: Case) -> Evidence:
    diagonal = np.diag(quantities.solved(case).F * case["K"])
    return equal(diagonal, np.full(len(diagonal), diagonal.mean()), tol=1e-6)
