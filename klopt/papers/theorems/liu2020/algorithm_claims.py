"""Learning data-adaptive non-parametric kernels (Liu et al., 2020): Algorithm 1.

Section 3 and appendix A. kappa is the largest |K_ij|; runs start at alpha_0 = 0 and use L of
Theorem 4.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from klopt.papers.theorems.claim import Basis, Case, Outcome, theorem
from klopt.papers.theorems.evidence import Evidence, at_most, equal, every
from klopt.papers.theorems.liu2020 import algorithms, exact, proofs, quantities
from klopt.papers.theorems.liu2020.quantities import random_matrices, random_problem
from klopt.papers.theorems.proofs import first_order

PLAIN = {"y": np.array([1.0, -1.0]), "C": 1.0, "eta": 1.0, "tau": 0.0}
SMALL_DIAGONAL = 4e-4
"""Diagonal entries of K along which beta overshoots the optimum for thousands of steps."""


def random_run(rng: np.random.Generator, n: int) -> Case:
    """Return a problem and how many steps to run."""
    return {**random_problem(rng, n), "steps": 300.0}


def factors(case: Case) -> tuple[Any, Any]:
    """Return both sides of the factorisation in the proof of Lemma 3."""
    K = case["K"]
    x = case["x"]
    z = case["z"]
    left = x[:, None] * K * x[None, :] - z[:, None] * K * z[None, :]
    return left, (x + z)[:, None] * K * (x - z)[None, :]


@theorem(
    "liu2020-lemma3-factors", number="proof of Lemma 3", draw=random_matrices, whole=("K", "x", "z"),
    expected=Outcome.CORRECTED,
    formerly="003-B8",
    quote=r"$$\frac{1}{4\eta} \left\| \text{diag}(\alpha_1^\top Y + \alpha_2^\top Y) K "
          r"\text{diag}(\alpha_1^\top Y - \alpha_2^\top Y) \right\|_F$$",
    says="A difference of squares factorises: D_x K D_x - D_z K D_z = D_{x+z} K D_{x-z}.",
    latex=r"D_xKD_x-D_zKD_z=D_{x+z}KD_{x-z}",
    correction="It is the symmetric part of the right hand side. The bound of the lemma survives.",
    corrected=lambda case: equal(factors(case)[0], (factors(case)[1] + factors(case)[1].T) / 2),
    example={"K": np.ones((2, 2)), "x": np.array([1.0, 0.0]), "z": np.array([0.0, 1.0])},
    exact=lambda case: (abs(factors(case)[0] - factors(case)[1]).max(), 0),
    proof=proofs.squares_factorise,
)  # fmt: skip
def squares_factorise(case: Case) -> Evidence:
    return equal(*factors(case))


@theorem(
    "liu2020-lemma3", number="Lemma 3", draw=random_problem,
    formerly="003-B8b",
    quote=r"$$\|\mathbf{F}(\alpha_1) - \mathbf{F}(\alpha_2)\|_{\text{F}} \leq "
          r"\frac{\|\mathbf{K}\|_{\text{F}}(\|\alpha_1\|_2 + \|\alpha_2\|_2)}{4\eta} "
          r"\|\alpha_1 - \alpha_2\|_2$$",
    says="F changes with alpha by at most |K|_F (|alpha_1| + |alpha_2|) / (4 eta) |alpha_1 - alpha_2|; even with kappa "
         "for |K|_F.",
    latex=r"\|F(\alpha_1)-F(\alpha_2)\|_F\le\tfrac{\|K\|_F(\|\alpha_1\|+\|\alpha_2\|)}{4\eta}\|\alpha_1-\alpha_2\|",
    proof=proofs.weights_are_lipschitz,
)  # fmt: skip
def weights_are_lipschitz(case: Case) -> Evidence:
    one = case["alpha"]
    two = case["other"]
    kappa = float(np.abs(case["K"]).max())
    away = float(
        np.linalg.norm(
            quantities.weights(case, case["y"] * one) - quantities.weights(case, case["y"] * two)
        )
    )
    step = float((np.linalg.norm(one) + np.linalg.norm(two)) * np.linalg.norm(one - two)) / (
        4 * case["eta"]
    )
    rounding = 1e-12 * (len(one) + float(np.abs(quantities.gamma(case, one)).max()))
    return at_most(max(away - rounding, 0.0), kappa * step)


@theorem(
    "liu2020-hadamard", number="proof of Theorem 4", draw=random_matrices,
    formerly="003-B6c",
    quote=r"the third inequality holds by $\|A \odot B\|_2 \leq \|A\|_2 \max_{ij} |B_{ij}|$ "
          "when B is PSD",
    says="The spectral norm of A o B is at most that of A times the largest entry of B.",
    latex=r"\|A\circ B\|_2\le\|A\|_2\max_{ij}|B_{ij}|", premise="B is psd: A = B = [[1, 1], [1, -1]] breaks it",
)  # fmt: skip
def norm_of_an_entrywise_product(case: Case) -> Evidence:
    A = case["A"]
    K = case["K"]
    return at_most(
        float(np.linalg.norm(A * K, 2)), float(np.linalg.norm(A, 2) * np.abs(K).max()), tol=1e-12
    )


def lipschitz(case: Case, L: float) -> Evidence:
    """Return whether |grad - grad'| <= L |alpha - alpha'| at the two points of the case."""
    step = float(np.linalg.norm(case["alpha"] - case["other"]))
    moved = float(
        np.linalg.norm(
            quantities.gradient(case, case["alpha"]) - quantities.gradient(case, case["other"])
        )
    )
    scale = float(np.abs(quantities.gradient(case, case["alpha"])).max()) + L * case["C"]
    return at_most(max(moved - 1e-12 * scale, 0.0), L * step)


@theorem(
    "liu2020-theorem4", number="Theorem 4, (27)", draw=random_problem,
    formerly="003-B9",
    quote=r"the Lipschitz constant is $L = \kappa(n + 3nC^2\|\mathbf{K}\|_{\text{F}}/4\eta)$",
    says="The gradient of h is Lipschitz with L = kappa (n + 3 n C^2 |K|_F / (4 eta)).",
    latex=r"L=\kappa\bigl(n+\tfrac{3nC^2\|K\|_F}{4\eta}\bigr)",
)  # fmt: skip
def gradient_is_lipschitz(case: Case) -> Evidence:
    return lipschitz(case, algorithms.paper_constant(case))


@theorem(
    "liu2020-sharp-constant", number="beyond Theorem 4", draw=random_problem,
    formerly="003-B9b",
    quote="gradient-Lipschitz continuous with the Lipschitz constant L in Theorem 4", basis=Basis.REMARK,
    says="A constant that is nearly attained: lambda_max(K) + C^2 lambda_max(K o K) / (4 eta) + C^2 max_i sum_j K_ij^2 "
         "/ (2 eta).",
    latex=r"L=\lambda_{\max}(K)+\tfrac{C^2}{4\eta}\lambda_{\max}(K\circ K)+\tfrac{C^2}{2\eta}\max_i\sum_jK_{ij}^2",
)  # fmt: skip
def sharp_constant(case: Case) -> Evidence:
    return lipschitz(case, quantities.sharp(case))


def constant17(case: Case) -> float:
    """Return the constant said to serve (17)."""
    n = len(case["y"])
    top = float(np.linalg.eigvalsh(case["K"])[-1])
    return float(n - case["tau"] / 2 + n * case["C"] ** 2 / (4 * case["eta"]) * top)


@theorem(
    "liu2020-eq17", number="(17)", draw=random_problem, expected=Outcome.CORRECTED,
    formerly="003-B10",
    quote=r"with the Lipschitz constant $L = n - \frac{\tau}{2} + \frac{nC^2}{4\eta} "
          r"\lambda_{\max}(\mathbf{K})$ derived from Lemma 1",
    says="The bound of Lemma 1, n - tau/2 + n C^2 lambda_max(K) / (4 eta), is a Lipschitz constant of the gradient.",
    latex=r"L=n-\tfrac\tau2+\tfrac{nC^2}{4\eta}\lambda_{\max}(K)",
    correction="It bounds F, not the gradient, and does not grow with kappa. That of liu2020-sharp-constant serves.",
    corrected=lambda case: lipschitz(case, quantities.sharp(case)),
    example={**PLAIN, "K": 8 * np.eye(2), "alpha": np.ones(2), "other": np.full(2, 0.5)},
    exact=exact.exact_constant17,
)  # fmt: skip
def bound_of_the_weights_is_a_constant(case: Case) -> Evidence:
    return lipschitz(case, constant17(case))


@theorem(
    "liu2020-algorithm1", number="(16), Algorithm 1 line 7", draw=random_run, most=6, sizes=(3, 5, 8),
    expected=Outcome.CORRECTED,
    formerly="003-B11",
    quote=r"of which the optimal solution is $\beta^{(t)} = "
          r"\mathcal{P}_{\mathcal{A}}\left(\alpha_0 - \frac{1}{2L}\sum_{i=0}^t(i+1)\nabla "
          r"h(\alpha^{(i)})\right)$ as outlined in Line 7 in Algorithm 1",
    says="beta = P(alpha_0 - (1/2L) sum (i+1) grad h) accelerates: theta has a gap of at most 8 L |alpha*|^2 / "
         "((t+1)(t+2)).",
    latex=r"\beta^{(t)}=\mathcal P_{\mathcal A}\Bigl(\alpha_0-\tfrac1{2L}\sum_{i=0}^t(i+1)\nabla h(\alpha^{(i)})\Bigr)",
    correction="h is maximised, so the sign is plus and the argmin of (16) an argmax. With minus beta stays behind, "
               "alpha is pulled to alpha_0 at every step, and the acceleration is lost.",
    corrected=lambda case: theta_reaches(case, 1.0, 8.0),
    example={**PLAIN, "K": np.eye(16), "y": np.tile([1.0, -1.0], 8), "C": 2.0, "eta": 1e6, "steps": 200.0},
    exact=exact.exact_minus,
    proof=first_order.two_sequences,
)  # fmt: skip
def minus_sign_accelerates(case: Case) -> Evidence:
    return theta_reaches(case, -1.0, 8.0)


def theta_reaches(case: Case, sign: float, factor: float) -> Evidence:
    """Return whether theta keeps to the rate."""
    run = algorithms.nesterov(case, sign)
    return algorithms.against(case, run.steps, run.theta, factor, "gap of theta")


def beta_reaches(case: Case) -> Evidence:
    """Return whether beta keeps to the printed rate, with the sign mended."""
    run = algorithms.nesterov(case, 1.0)
    return algorithms.against(case, run.steps, run.beta, 8.0, "gap of beta")


@theorem(
    "liu2020-nesterov-beta", number="after (17)", draw=random_run, most=3, sizes=(3, 5, 8), expected=Outcome.CORRECTED,
    formerly="003-B12",
    quote=r"$$h(\alpha^*) - h(\beta^{(t)}) \leq \frac{8L\|\alpha_0 - "
          r"\alpha^*\|^2}{(t+1)(t+2)}$$",
    says="h* - h(beta_t) <= 8 L |alpha_0 - alpha*|^2 / ((t+1)(t+2)).",
    latex=r"h(\alpha^*)-h(\beta^{(t)})\le\frac{8L\|\alpha_0-\alpha^*\|^2}{(t+1)(t+2)}",
    premise="line 7 with a plus sign",
    correction="The rate is that of theta, and with 2 for 8. beta swings about the optimum and is slower.",
    corrected=lambda case: theta_reaches(case, 1.0, 2.0),
    example={**PLAIN, "K": np.diag([SMALL_DIAGONAL, SMALL_DIAGONAL, 1.0, 1.0]),
             "y": np.array([1.0, -1.0, 1.0, -1.0]), "C": 2 / SMALL_DIAGONAL, "eta": 1e12, "steps": 5111.0},
    exact=exact.exact_beta,
    proof=first_order.two_sequences,
)  # fmt: skip
def beta_has_the_rate(case: Case) -> Evidence:
    return beta_reaches(case)


@theorem(
    "liu2020-monotone", number="after (17)", draw=random_run, most=6, sizes=(3, 5, 8),
    formerly="003-B13", quote="such algorithm can be modified to obtain a monotone sequence",
    says="With the best of three points for theta the values rise, and the rate stays.",
    latex=r"h(\theta^{(t)})\ge h(\theta^{(t-1)})", premise="line 7 with a plus sign",
    proof=first_order.monotone_two_sequences,
)  # fmt: skip
def monotone_variant(case: Case) -> Evidence:
    run = algorithms.nesterov(case, 1.0, monotone=True)
    values = [quantities.value(case, theta) for theta in run.theta]
    rises = every(at_most(max(before - after, 0.0), 0.0) for before, after in pairwise(values))
    rate = algorithms.against(case, run.steps, run.theta, 8.0, "gap of theta")
    return rate if rises.holds else rises


@theorem(
    "liu2020-projected-gradient", number="end of section 3.2", draw=random_run, most=6, sizes=(3, 5, 8),
    formerly="003-B14",
    quote="the standard projected gradient method with the complexity "
          r"$\mathcal{O}(L/\epsilon)$",
    says="Projected gradient needs O(L / epsilon) steps: its gap is at most L |alpha*|^2 / (2t).",
    latex=r"h(\alpha^*)-h(\alpha^{(t)})\le\frac{L\|\alpha_0-\alpha^*\|^2}{2t}",
    premise="L is a Lipschitz constant, as in liu2020-sharp-constant; that of (17) is none",
    proof=first_order.projected_gradient,
)  # fmt: skip
def projected_gradient_rate(case: Case) -> Evidence:
    return algorithms.projected(case)


@theorem(
    "liu2020-nesterov-rate", number="end of section 3.2", draw=random_run, most=6, sizes=(3, 5, 8),
    formerly="003-B14b",
    quote=r"The Nesterov's smooth optimization method takes $\mathcal{O}(\sqrt{L/\epsilon})$ "
          "to find an ϵ -optimal solution",
    says="Nesterov's method needs O(sqrt(L / epsilon)) steps.",
    latex=r"h(\alpha^*)-h(\theta^{(t)})\le\frac{2L\|\alpha_0-\alpha^*\|^2}{(t+1)(t+2)}",
    premise="line 7 with a plus sign",
    proof=first_order.two_sequences,
)  # fmt: skip
def nesterov_rate(case: Case) -> Evidence:
    return theta_reaches(case, 1.0, 2.0)


@theorem(
    "liu2020-extragradient", number="start of section 3", draw=random_run, most=4, sizes=(3, 5),
    formerly="003-B14c",
    quote="Extra-gradient based methods can be directly applied to solve the max-min problem "
          r"(4), and have been shown to exhibit an $\mathcal{O}(1/t)$ convergence rate",
    says="Extra-gradient methods solve the saddle problem (4) at a rate of O(1/t).",
    latex=r"h(\alpha^*)-h(\bar\alpha^{(t)})\le\frac{\|z_0-u\|^2}{2\sum_{i\le t}\gamma_i}",
    proof=first_order.extragradient,
)  # fmt: skip
def extragradient_rate(case: Case) -> Evidence:
    return algorithms.extragradient(case)


@theorem(
    "liu2020-projection", number="after (16)", expected=Outcome.CORRECTED,
    formerly="003-B15",
    quote="it typically suffices in practice to use the alternating projection algorithm",
    draw=lambda rng, n: {**random_problem(rng, n), "v": 3 * rng.normal(size=n)}, whole=("v", "C"),
    says="Alternating projections on box and plane compute the projection on A.",
    latex=r"\mathcal P_{\mathcal A}=\lim\,(\mathcal P_{\text{plane}}\mathcal P_{\text{box}})^k",
    correction="They find some point of A. The nearest is clip(v - l y), l the root of a piecewise linear function.",
    corrected=lambda case: algorithms.nearest(case, quantities.feasible(case, case["v"])),
    example={**PLAIN, "v": np.array([3.0, -1.0])}, exact=exact.exact_alternating,
)  # fmt: skip
def alternating_projections_project(case: Case) -> Evidence:
    return algorithms.nearest(case, algorithms.alternating(case))


@theorem(
    "liu2020-stopping", number="Algorithm 1 line 10", draw=random_problem, expected=Outcome.REFUTED,
    formerly="003-B16",
    quote=r"**Until** $t \geq t_{\max}$ or $\|\alpha^{(t)} - \alpha^{(t-1)}\|_2 \leq \epsilon$", basis=Basis.IMPLIED,
    says="A step shorter than 1e-4 means that the optimum is near: at least 9/10 of it is reached.",
    latex=r"\|\alpha^{(t)}-\alpha^{(t-1)}\|_2\le10^{-4}\ \Rightarrow\ h(\alpha^{(t)})\ge\tfrac9{10}h(\alpha^*)",
    correction="Steps are as short as 1/L: with L of Theorem 4 the first may stop the run. The duality gap decides.",
    premise="the first step is that short", meets=lambda case: algorithms.stopped(case)[0] <= 1e-4,
    example={**PLAIN, "K": np.eye(2), "C": 128.0}, exact=exact.exact_stop,
)  # fmt: skip
def short_steps_mean_the_end(case: Case) -> Evidence:
    return at_most(
        0.9 * quantities.solved(case).interval.lower,
        quantities.value(case, algorithms.stopped(case)[1]),
    )
