"""Learning kernels from multiple similarity matrices (Kundu et al., 2010): the problems.

In full: Efficient algorithms for learning kernels from multiple similarity matrices with general
convex loss functions. Notation of the paper: omega is the value of the support vector machine,
Omega that of several kernels, f, F and g the objectives of (4), (6) and (7), a = Y alpha. The algorithms and
their rates are in `descent_claims`.
"""

from __future__ import annotations

import numpy as np

from klopt.kernels.similarities import Similarity
from klopt.papers.theorems.cases import ball
from klopt.papers.theorems.claim import Basis, Case, Outcome, listed, theorem
from klopt.papers.theorems.evidence import Evidence, at_most, equal, every, overlap
from klopt.papers.theorems.kundu2010 import algorithms, exact, proofs, quantities
from klopt.papers.theorems.kundu2010.quantities import random_pair, random_problem
from klopt.papers.theorems.kundu2010.tables import LOSSES, TABLE3
from klopt.papers.theorems.tables import no_case

PAIR = np.array([1.0, -1.0])
DIAGONAL = {
    "S": np.diag([3.0, 1.0])[None],
    "y": PAIR,
    "C": 1.0,
    "rho": 1.0,
    "tau": 2.0,
    "alpha": np.zeros(2),
}


def _wide(*widths: float) -> np.ndarray:
    """Return kernels of two points, of trace 2, with these k = (1, -1) K (1, -1)'."""
    return np.array([[[1.0, 1 - k / 2], [1 - k / 2, 1.0]] for k in widths])


SWAPPED = {"K": _wide(2.0, 0.5), "other": _wide(0.5, 2.0), "y": PAIR, "C": 2.0, "tau": 2.0}


@theorem(
    "kundu2010-eq1", number="(1)", draw=random_pair, most=25, sizes=(3, 5, 8),
    formerly="001-A1", quote="From Eqn. (1) we note that ω(K) is a convex function of K.",
    says="omega is convex in K and falls as K grows.",
    latex=r"\omega(\tfrac{K+K'}2)\le\tfrac{\omega(K)+\omega(K')}2,\quad \omega(K+K')\le\omega(K)",
)  # fmt: skip
def machine_is_convex(case: Case) -> Evidence:
    one = case["K"][0]
    two = case["other"][0]
    middle, first, second, more = (
        quantities.svm_optimum(case, K[None]).value for K in ((one + two) / 2, one, two, one + two)
    )
    return every([quantities.convex_between(middle, first, second), at_most(more, first, tol=1e-7)])


@theorem(
    "kundu2010-eq3", number="(2), (3)", draw=random_pair, most=25,
    formerly="001-A2", quote="the inner minimization admits a closed form solution",
    says="For given alpha the best K of (2) is (S + aa' / 4 rho)_+, and min and max may change places.",
    latex=r"K^*=\bigl(S+\tfrac1{4\rho}(Y\alpha)(Y\alpha)^\top\bigr)_+",
)  # fmt: skip
def inner_minimum_is_clipped(case: Case) -> Evidence:
    one = {**case, "S": case["S"][:1], "loss": "squared", "tau": None}
    K = quantities.clipped(quantities.divided(one))
    optimum, _, alpha = quantities.kernel_optimum(one)
    inner = {**one, "alpha": alpha}
    value = float(alpha.sum()) + quantities.inner_value(
        inner, quantities.clipped(quantities.divided(inner))
    )
    dual = float(one["alpha"].sum()) + quantities.inner_value(one, K)
    size = 1 + abs(optimum.upper) + abs(dual)
    return every([
        quantities.inner_duality(one, K, fixed=False), at_most(dual + size, quantities.plus(optimum, size), tol=1e-7),
        equal(value, optimum.upper, tol=1e-6, scale=1.0),
    ])  # fmt: skip


@theorem(
    "kundu2010-eq3-trace", number="(3) with the trace of (4)", draw=random_pair, most=25,
    formerly="001-A2b", quote="We impose the trace constraint on K to ensure good generalization as in [7].",
    basis=Basis.REMARK,
    says="With tr K = tau the eigenvalues of M, of which (3) takes the positive part, are projected on the simplex: "
         "shifted by one number, then clipped. Rescaling (3) to that trace is not optimal.",
    latex=r"K^*=V\operatorname{diag}\bigl(\Pi_{\triangle_\tau}(\lambda(M))\bigr)V^\top,\quad "
          r"M=S+\tfrac1{4\rho}(Y\alpha)(Y\alpha)^\top",
    premise="M has a positive eigenvalue",
    meets=lambda case: bool(np.linalg.eigvalsh(quantities.divided(_first(case)))[-1] > 1e-3),
    example=DIAGONAL,
)  # fmt: skip
def eigenvalues_are_projected(case: Case) -> Evidence:
    one = _first(case)
    K = quantities.on_simplex(quantities.divided(one), case["tau"])
    return quantities.inner_duality(one, K, fixed=True)


def _first(case: Case) -> Case:
    return {**case, "S": case["S"][:1]}


@theorem(
    "kundu2010-eq4-squared", number="(4), squared loss", draw=random_pair, most=25,
    formerly="001-A2c",
    quote="One can extend IndSVM [8] … originally proposed to handle single similarity "
          "matrix, to multiple similarity matrices by averaging over the similarity matrices.", basis=Basis.IMPLIED,
    says="With the squared loss (4) is (2) for the mean of the S_i and rho m, up to a constant.",
    latex=r"\rho\sum_i\|K-S_i\|_F^2=\rho m\|K-\bar S\|_F^2+\rho\sum_i\|S_i-\bar S\|_F^2",
    proof=proofs.mean_of_the_similarities,
)  # fmt: skip
def squared_losses_are_one(case: Case) -> Evidence:
    S = case["S"]
    K = case["K"][0]
    rho = case["rho"]
    mean = S.mean(axis=0)
    spread = rho * float(np.sum((S - mean) ** 2))
    same = equal(rho * np.sum((K - S) ** 2), rho * len(S) * np.sum((K - mean) ** 2) + spread)
    several, _, _ = quantities.kernel_optimum(case, loss="squared")
    single, _, _ = quantities.kernel_optimum(case, loss="squared", S=mean[None], rho=rho * len(S))
    return every([same, overlap(several, quantities.plus(single, spread), tol=1e-6)])


@theorem(
    "kundu2010-eq4-lipschitz", number="(4), before (8)", draw=random_pair, most=25, sizes=(2, 3, 5),
    formerly="001-A3",
    quote="Therefore the objective function f in (4) is convex and Lipschitz continuous on K.",
    says="f is convex and Lipschitz on the kernels of trace tau; C^2 min(n_+, n_-) + rho sum_i Lip(L_i) is a constant.",
    latex=r"\|f'\|_F\le C^2\min(n_+,n_-)+\rho\sum_i\operatorname{Lip}(L_i)",
)  # fmt: skip
def objective_is_lipschitz(case: Case) -> Evidence:
    one = case["K"][0]
    two = case["other"][0]
    middle, first, second = (quantities.eskl(case, K) for K in ((one + two) / 2, one, two))
    largest = max(
        float(np.linalg.norm(found.svm + found.losses)) for found in (first, second, middle)
    )
    reach = quantities.lipschitz(case) * float(np.linalg.norm(one - two))
    rise = first.value.upper - second.value.lower, second.value.upper - first.value.lower
    return every([
        quantities.convex_between(middle.value, first.value, second.value),
        at_most(largest, quantities.lipschitz(case)),
        at_most(max(rise), reach, scale=abs(first.value.upper)),
    ])  # fmt: skip


@theorem(
    "kundu2010-generalises", number="after (7)", draw=random_problem, most=20,
    formerly="001-A4",
    quote="we recover the formulations in [8] and [6] respectively (albeit with a trace "
          "constraint)",
    says="For one S, (4) with the squared or the Frobenius loss recovers (2) and its variant, with a trace constraint.",
    latex=r"\min_{K\succeq0}\omega(K)+\rho L(K-S)=\min_{K\succeq0,\,\operatorname{tr}K=\tau^*}\omega(K)+\rho L(K-S)",
    premise="tau* is the trace of a solution without the constraint, and not 0",
    meets=lambda case: case["loss"] != "l1" and np.linalg.eigvalsh(case["S"][0])[-1] > 0.1,
)  # fmt: skip
def trace_constraint_is_the_only_difference(case: Case) -> Evidence:
    free, K, _ = quantities.kernel_optimum(case, S=case["S"][:1], tau=None)
    fixed, _, _ = quantities.kernel_optimum(case, S=case["S"][:1], tau=float(np.trace(K)))
    return overlap(free, fixed, tol=1e-6)


@theorem(
    "kundu2010-eq5", number="(5) in (6)", draw=random_pair, most=20, sizes=(2, 3), expected=Outcome.REFUTED,
    example=SWAPPED,
    formerly="001-A5",
    quote="Based on MKL we consider the following kernel learning formulation", basis=Basis.IMPLIED,
    says="Omega of (5) can be used in (6), whose objective is convex.",
    latex=r"\Omega_{(5)}(\tfrac{K+K'}2)\le\tfrac{\Omega_{(5)}(K)+\Omega_{(5)}(K')}2",
    correction="(5) is the machine with max_i a'K_i a and is not convex in the kernels: only (10) may stand in (6).",
    premise="two kernels or more", meets=lambda case: len(case["K"]) > 1,
    exact=lambda case: (exact.block_l1(case, (case["K"] + case["other"]) / 2),
                        (exact.block_l1(case, case["K"]) + exact.block_l1(case, case["other"])) / 2),
)  # fmt: skip
def mixture_is_convex(case: Case) -> Evidence:
    K = case["K"]
    other = case["other"]
    middle, one, two = (
        quantities.mixture(case, kernels) for kernels in ((K + other) / 2, K, other)
    )
    return quantities.convex_between(middle, one, two)


@theorem(
    "kundu2010-omega", number="after (6)", draw=random_pair, most=20, sizes=(2, 3, 5), expected=Outcome.CORRECTED,
    formerly="001-A5b",
    quote="Note that Ω(K1, . . . , Km) can be obtained by solving any standard MKL "
          "formulation.",
    says="Omega can be obtained by any standard formulation of MKL: (5) and (10) are the same.",
    latex=r"\Omega_{(5)}(K_1,\dots,K_m)=\Omega_{(10)}(K_1,\dots,K_m)",
    correction="(5) is the larger: max_i q_i <= (sum_i sqrt q_i)^2, q_i = a'K_i a.",
    corrected=lambda case: at_most(
        quantities.svm_optimum(case, case["K"]).value, quantities.mixture(case, case["K"]), tol=1e-7),
    premise="two kernels or more", meets=lambda case: len(case["K"]) > 1,
    example={**SWAPPED, "K": _wide(2.0, 2.0)},
    exact=lambda case: (ball(exact.block_l1(case, case["K"])), exact.block_linf(case, case["K"])),
    proof=proofs.larger_omega,
)  # fmt: skip
def both_meanings_agree(case: Case) -> Evidence:
    return overlap(
        quantities.mixture(case, case["K"]), quantities.svm_optimum(case, case["K"]).value, tol=1e-6
    )


@theorem(
    "kundu2010-eq10", number="(10), (11)", draw=random_pair, most=20, sizes=(2, 3, 5),
    formerly="001-A6",
    quote="From (10) we note that Ω(K1, . . . ,Km) is a convex function of (K1, . . . ,Km) "
          "over the compact space Km.",
    says="Omega of (10) is convex in the kernels, and F is the largest sum of the F_i over alpha and gamma.",
    latex=r"F=\max_{\gamma\in\triangle_m}\max_{\alpha\in\mathcal A}\sum_iF_i(K_i;\alpha,\gamma)",
)  # fmt: skip
def largest_machine_is_convex(case: Case) -> Evidence:
    K = case["K"]
    other = case["other"]
    m = len(case["K"])
    middle, one, two = (
        quantities.svm_optimum(case, kernels) for kernels in ((K + other) / 2, K, other)
    )
    a = case["y"] * case["alpha"]
    alpha = case["alpha"]
    tried = float(alpha.sum()) - m * float(np.einsum("i,mij,j->", a, K, a)) / 2  # gamma_i = 1 / m
    size = 1 + abs(tried) + one.value.upper
    bound = at_most(tried + size, quantities.plus(one.value, size), tol=1e-7)
    return every(
        [
            quantities.convex_between(middle.value, one.value, two.value),
            bound,
            quantities.attained(case, one),
        ]
    )


@theorem(
    "kundu2010-eq10-gamma", number="(10), gamma", draw=random_pair, most=25, sizes=(2, 3, 5),
    formerly="001-A7", quote="Let (α∗,γ∗) be a solution of (10)", basis=Basis.REMARK,
    says="For given alpha the best gamma_i are proportional to sqrt(a'K_i a).",
    latex=r"\gamma_i^*=\sqrt{q_i}\big/\textstyle\sum_j\sqrt{q_j},\quad q_i=\alpha^\top YK_iY\alpha",
    premise="no q_i is 0; else gamma_i = 0 and (12) is not defined",
    proof=proofs.best_gamma,
)  # fmt: skip
def gamma_has_a_closed_form(case: Case) -> Evidence:
    return quantities.gamma_is_best(case)


@theorem(
    "kundu2010-eq6-lipschitz", number="before Lemma 3.1, section 3.3", expected=Outcome.REFUTED, sizes=(2,), most=25,
    formerly="001-A8",
    quote="Thus the objective function F in (6) is convex and Lipschitz continuous on Km.",
    draw=lambda rng, n: {"L": float(10 ** rng.uniform(1, 4)), "C": float(2 + rng.random()), "tau": 1.0, "y": PAIR},
    says="F is Lipschitz on the kernels of trace tau: some number L is a constant.",
    latex=r"|F(\mathbf K)-F(\mathbf K')|\le L\|\mathbf K-\mathbf K'\|",
    correction="No L is if m >= 2: gradients grow without bound as gamma_i falls to 0. "
    "True for m = 1, or gamma_i >= c.",
    example={"L": 1000.0, "C": 2.0, "tau": 1.0, "y": PAIR}, exact=exact.unbounded_gradient,
)  # fmt: skip
def several_kernels_are_lipschitz(case: Case) -> Evidence:
    # With rho = 0: the second kernel moves from k = (tau / L)^2 to k = 0, the first stays at k =
    # tau.
    tau = case["tau"]
    thin = (case["tau"] / case["L"]) ** 2
    K, thinner = (np.array([[[tau / 2, (tau - k) / 2], [(tau - k) / 2, tau / 2]] for k in ks])
                  for ks in ((tau, thin), (tau, 0.0)))  # fmt: skip
    rise = (
        quantities.svm_optimum(case, thinner).value.lower
        - quantities.svm_optimum(case, K).value.upper
    )
    return at_most(rise, case["L"] * float(np.linalg.norm(K - thinner)))


@theorem(
    "kundu2010-restriction", number="(7), (6)", draw=random_problem, most=15, sizes=(2, 3, 5),
    formerly="001-A23",
    quote="Based on this restriction we formulate the restricted kernel learning problem as", basis=Basis.IMPLIED,
    says="(7) restricts (6) to the eigenvectors of the S_i: its optimum is not below.", latex=r"g^*\ge F^*",
    premise="the loss of the eigenvalues is that of the matrices, as with the Frobenius norm; here its square",
)  # fmt: skip
def restriction_costs(case: Case) -> Evidence:
    return at_most(
        algorithms.joint_optimum({**case, "loss": "squared"}),
        algorithms.spectral_optimum(case),
        tol=1e-6,
    )


@theorem(
    "kundu2010-eq7", number="(7)", draw=random_problem, expected=Outcome.CORRECTED, sizes=(4, 5, 8),
    formerly="001-E7", quote="∑m j=1 µij = τ , i = 1, . . . , m",
    says="The constraint of (7), a sum of the first m eigenvalues, makes tr K_i = tau.",
    latex=r"\sum_{j=1}^m\mu_{ij}=\tau\ \Rightarrow\ \operatorname{tr}K_i=\tau",
    correction="The sum is over all n eigenvalues, as in section 3.3.",
    corrected=lambda case: _trace_is_tau(case, len(case["y"])),
    exact=lambda case: (len(case["y"]) * case["tau"] / len(case["S"]), case["tau"]),
)  # fmt: skip
def first_eigenvalues_make_the_trace(case: Case) -> Evidence:
    return _trace_is_tau(case, len(case["S"]))


def _trace_is_tau(case: Case, count: int) -> Evidence:
    mu = np.ones(len(case["y"]))
    mu *= case["tau"] / mu[:count].sum()
    return equal(np.trace(quantities.composed(mu, np.linalg.eigh(case["S"][0])[1])), case["tau"])


@theorem(
    "kundu2010-repairs", number="section 4", draw=random_problem, sizes=(2, 3, 5, 8),
    formerly="001-A24", quote="eigen transformation methods generate kernel matrix as",
    says="Denoise, Flip and Shift give kernels; Denoise gives the nearest one.",
    latex=r"\mu_j=\max(\lambda_j,0),\ |\lambda_j|,\ \lambda_j-\min(\lambda_1,\dots,\lambda_n,0)",
    proof=proofs.repairs_are_kernels,
)  # fmt: skip
def repairs_are_kernels(case: Case) -> Evidence:
    S = case["S"][0]
    made = [Similarity.of(S).repaired(by).matrix for by in ("denoise", "flip", "shift")]
    size = float(np.linalg.norm(S))
    positive = [at_most(-float(np.linalg.eigvalsh(K)[0]), 1e-12 * size) for K in made]
    # The nearest kernel K has K - S psd and orthogonal to K, which proves that none is nearer.
    rest = made[0] - S
    return every([
        *positive, at_most(-float(np.linalg.eigvalsh(rest)[0]), 1e-12 * size),
        equal(np.sum(rest * made[0]), 0.0, scale=size**2),
    ])  # fmt: skip


tables = listed(
    "kundu2010-tables", number="after (7), Tables 1-3",
    formerly="001-A25",
    quote="Also the SOCP based spectrum modification learning formulation [6] proposed in the "
          "context of single similarity matrix (m = 1) is a special case of (7).",
    says="The spectrum modification of [6] is a case of (7); accuracies on UCI and protein data.",
    reason="[6] is not restated in the paper, and neither the splits nor the tuned parameters are given.",
)  # fmt: skip


@theorem(
    "kundu2010-losses", number="section 4.2", draw=lambda rng, n: {}, most=1,
    formerly="001-A26",
    quote="Therefore we can say that the choice of loss function has an effect on "
          "classification accuracy.",
    says="The tables show what is read from them: the loss matters, and which is best depends on the data.",
    latex=r"\operatorname{acc}(L_2)>\operatorname{acc}(L_1),\operatorname{acc}(L_3)\ \text{(Liver)},\ \dots",
    proof=proofs.losses_matter,
)  # fmt: skip
def tables_say_so(case: Case) -> Evidence:
    liver, diabetes, heart, sonar, yeast = LOSSES.values()
    return every([
        at_most(max(liver[0], liver[2]), liver[1]), at_most(diabetes[2], min(diabetes[:2])),
        at_most(heart[2], min(heart[:2])), at_most(max(sonar[:2]), sonar[2]), at_most(max(yeast[1:]), yeast[0]),
    ])  # fmt: skip


@theorem(
    "kundu2010-table3", number="section 4.3, Table 3", draw=no_case, most=1,
    quote="We observe significant performance improvement in most cases.",
    says="In Table 3 the best of ESKL, EMKL and REKL is more accurate than the best of the other methods on more than "
         "half of the families. Whether that is significant cannot be told from means.",
    latex=r"\#\{\text{families improved}\}>4",
    proof=proofs.most_families_improve,
)  # fmt: skip
def most_families_improve(case: Case) -> Evidence:
    improved = TABLE3[:, 4:].max(axis=1) > TABLE3[:, :4].max(axis=1)
    return at_most(len(TABLE3) / 2 + 1, int(improved.sum()))
