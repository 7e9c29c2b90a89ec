"""Learning kernels from multiple similarity matrices (Kundu et al., 2010): the algorithms.

ESKL minimises f of (4), EMKL F of (6), REKL g of (7). psi is the entropy of the eigenvalues, B its
Bregman distance. Runs of two points need no solver; the others solve a support vector
machine in each step.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import log, sqrt

import numpy as np

from klopt.papers.theorems.cases import ball
from klopt.papers.theorems.claim import Basis, Case, Outcome, listed, theorem
from klopt.papers.theorems.evidence import Evidence, at_most, equal, every
from klopt.papers.theorems.kundu2010 import algorithms, entropy, exact, quantities
from klopt.papers.theorems.kundu2010.algorithms import random_cuts, random_run
from klopt.papers.theorems.kundu2010.entropy import random_spectra
from klopt.papers.theorems.kundu2010.quantities import random_pair
from klopt.papers.theorems.proofs import first_order

LIKE = np.array([[0.75, 0.375], [0.375, 0.25]])
PAIR = {
    "S": LIKE[None], "y": np.array([1.0, -1.0]), "C": 1.0, "rho": 3.0, "tau": 1.0, "loss": "l1", "L": 7.0, "steps": 400,
}  # fmt: skip
TWO = {**PAIR, "S": np.array([[[0.625, 0.25], [0.25, 0.375]]] * 2), "L": 8.0}
SPECTRAL = {
    **PAIR,
    "S": np.full((1, 2, 2), 0.5),
    "C": 8.0,
    "rho": 16.0,
    "loss": "squared",
    "L": 32.0,
    "near": 0.25,
}


@theorem(
    "kundu2010-eq8", number="(8)", draw=random_pair, most=25, sizes=(2, 3, 5), says="(8) is a subgradient of f.",
    formerly="001-A9", quote="Then we can compute a sub-gradient of f as",
    latex=r"f'(K)=-\tfrac12Y\alpha^*\alpha^{*\top}Y+\rho\sum_iL_i'(K-S_i)",
)  # fmt: skip
def gradient_of_one_kernel(case: Case) -> Evidence:
    first, second = (quantities.eskl(case, case[name][0]) for name in ("K", "other"))
    one = {**case, "K": case["K"][:1], "other": case["other"][:1]}
    return quantities.chained(one, first, second, first.svm + first.losses)


@theorem(
    "kundu2010-entropy", number="(9), proof of Proposition 3.1", draw=random_spectra,
    formerly="001-A11",
    quote="The strong convexity constant of ψ w.r.t. ‖ · ‖F norm is σ = 1 τ .",
    says="psi is strongly convex with constant 1/tau in the Frobenius norm; indeed in the trace norm, and 2/tau in it.",
    latex=r"B_\psi(K,K')\ge\tfrac1{2\tau}\|K-K'\|_F^2",
)  # fmt: skip
def entropy_is_strongly_convex(case: Case) -> Evidence:
    return entropy.strongly_convex({**case, "K": case["K"][:1], "other": case["other"][:1]})


@theorem(
    "kundu2010-bregman", number="proof of Proposition 3.1", draw=random_spectra,
    formerly="001-A12", quote="Then we have Bψ(K,K(1)) ≤ τ logn , ∀K ∈ K (assuming n ≥ 3).",
    says="No kernel is farther than tau log n from (tau/n) I; the paper asks for n >= 3, which is not needed.",
    latex=r"B_\psi(K,\tfrac\tau nI)\le\tau\log n",
)  # fmt: skip
def middle_is_near(case: Case) -> Evidence:
    return entropy.far(case)


@theorem(
    "kundu2010-algorithm1", number="Algorithm 1", draw=random_pair, most=25, sizes=(2, 3, 4),
    expected=Outcome.CORRECTED,
    formerly="001-A13",
    quote="With the above setup we derive an MD algorithm, named entropic single kernel "
          "learning (ESKL) algorithm",
    says="A step of ESKL is a step of mirror descent: it minimises eta <f', K> + B(K, K_t).",
    latex=r"V\operatorname{diag}\Bigl(\tfrac{\tau\lambda_je^{-\eta d_j}}{\sum_l\lambda_le^{-\eta d_l}}\Bigr)V^\top"
          r"=\operatorname{arg}\min_{K}\eta\langle f',K\rangle+B_\psi(K,K^{(t)})",
    correction="K_(t+1) = tau exp(log K_t - eta f') / tr: eigenvalues of K_t do not belong to eigenvectors of f'.",
    corrected=lambda case: entropy.printed_step(case, printed=False),
    example={**PAIR, "K": np.array([[[0.625, -0.125], [-0.125, 0.375]]])}, exact=exact.printed_prox,
)  # fmt: skip
def step_is_mirror_descent(case: Case) -> Evidence:
    return entropy.printed_step(case, printed=True)


@theorem(
    "kundu2010-prop3.1", number="Proposition 3.1", draw=random_run, most=4, sizes=(2, 4), example=PAIR,
    formerly="001-A14", quote="then min 1≤t≤T f (t) − f∗ ≤ τ Lip(f) √ 2 logn T",
    expected=Outcome.CORRECTED,
    says="ESKL as printed reaches f* within tau Lip sqrt(2 log n / T) after T steps.",
    latex=r"\min_{t\le T}f^{(t)}-f^*\le\tau\operatorname{Lip}(f)\sqrt{2\log n/T}",
    correction="It stalls. Mirror descent with these steps keeps to the bound in all runs; prop3.1-fixed is proved.",
    corrected=lambda case: algorithms.eskl_run(case, printed=False),
    exact=lambda case: exact.printed_run(case, Fraction(case["L"]), omits_rho=False),
)  # fmt: skip
def printed_single_kernel_rate(case: Case) -> Evidence:
    return algorithms.eskl_run(case, printed=True)


SHORT = sqrt(3) - 1
LEAN = np.array([SHORT - 1, sqrt(1 - SHORT**2)]) / SHORT
CUTS = {
    "G": np.array([[1.0, 0.0], LEAN]), "c": np.array([0.0, LEAN[0]]),
    "best": np.array([-SHORT, -sqrt(1 - SHORT**2)]), "T": 2,
}  # fmt: skip


@theorem(
    "kundu2010-eq15", number="(15), from [2]", draw=random_cuts, expected=Outcome.CORRECTED, example=CUTS,
    formerly="001-A15",
    quote="We apply the convergence result presented as Theorem 4.2 in [2]. This leads to the "
          "following",
    says="Mirror descent with steps sqrt(2 sigma B / t) / L has a gap <= L sqrt(2 B / (sigma T)); here psi = |x|^2/2.",
    latex=r"\eta_t=\tfrac1L\sqrt{2\sigma B/t}\ \Rightarrow\ \min_{t\le T}F^{(t)}-F^*\le L\sqrt{2B/(\sigma T)}",
    correction="The steps must be sqrt(2 sigma B / T) / L, T fixed in advance; those with t cost a factor of log T.",
    corrected=lambda case: algorithms.subgradient(case, fixed=True), exact=exact.subgradient_gap,
    proof=first_order.subgradient,
)  # fmt: skip
def decreasing_steps_lose_nothing(case: Case) -> Evidence:
    return algorithms.subgradient(case, fixed=False)


@theorem(
    "kundu2010-prop3.1-fixed", number="Proposition 3.1, corrected", draw=random_run, most=4, sizes=(2, 4), example=PAIR,
    formerly="001-A16",
    quote="We complete the proof by applying Theorem 4.2 of [2] to the ESKL algorithm.", basis=Basis.REMARK,
    says="Mirror descent with the step (2 / Lip) sqrt(log n / T) reaches f* within tau Lip sqrt(log n / T).",
    latex=r"\eta=\tfrac2{\operatorname{Lip}(f)}\sqrt{\log n/T}\ \Rightarrow\ "
          r"\min_{t\le T}f^{(t)}-f^*\le\tau\operatorname{Lip}(f)\sqrt{\log n/T}",
)  # fmt: skip
def fixed_horizon_rate(case: Case) -> Evidence:
    return algorithms.fixed_horizon(case)


@theorem(
    "kundu2010-prop3.1-anytime", number="Proposition 3.1 for every T at once", draw=random_run, most=4, sizes=(2, 4),
    example=PAIR,
    formerly="001-A16b",
    quote="We complete the proof by applying Theorem 4.2 of [2] to the ESKL algorithm.", basis=Basis.REMARK,
    says="Dual averaging, K_t = tau exp(-eta_t sum_(s<t) f'_s) / tr, reaches f* within 2 tau Lip sqrt(log n / T).",
    latex=r"\eta_t=\tfrac1{\operatorname{Lip}(f)}\sqrt{\log n/t}\ \Rightarrow\ "
          r"\min_{t\le T}f^{(t)}-f^*\le2\tau\operatorname{Lip}(f)\sqrt{\log n/T}",
)  # fmt: skip
def anytime_rate(case: Case) -> Evidence:
    return algorithms.averaged(case)


@theorem(
    "kundu2010-lemma3.1", number="Lemma 3.1, (12), (13)", draw=random_pair, most=25, sizes=(2, 3, 5),
    expected=Outcome.CORRECTED,
    formerly="001-A10", quote="Then a sub-gradient of F is given by",
    says="(12) is a subgradient of F.",
    latex=r"\partial_{K_i}F_i=-\tfrac1{2\gamma_i^*}Y\alpha^*\alpha^{*\top}Y+L_i'(K_i-S_i)",
    correction="rho L_i', here and in Algorithms 2 and 3.",
    corrected=lambda case: _line(case, 1.0),
    example={
        **PAIR, "S": np.array([[[1.0, -1.0], [-1.0, 1.0]]] * 2), "K": np.array([np.eye(2)] * 2), "loss": "squared",
        "other": np.array([[[1.0, 0.5], [0.5, 1.0]]] * 2), "C": 2.0, "rho": 0.25, "tau": 2.0},
    exact=exact.printed_linearisation,
)  # fmt: skip
def gradients_of_several_kernels(case: Case) -> Evidence:
    return _line(case, 1 / case["rho"])


def _line(case: Case, weight: float) -> Evidence:
    first, second = (quantities.joint(case, case[name]) for name in ("K", "other"))
    return quantities.chained(case, first, second, first.svm + weight * first.losses)


@theorem(
    "kundu2010-eq14", number="(14), (16), proof of Theorem 3.2", draw=random_spectra,
    formerly="001-A17",
    quote="For the Ψ function defined in Eqn. (14), we have σ = 1 mτ . Assuming n ≥ 3, we "
          "also have BΨ(K,K (1)) ≤ mτ logn , ∀K ∈ Km.",
    says="Psi has the constant 1/(m tau) in sum_i ||K_i||, and B <= m tau log n; so has (16), on diagonal kernels.",
    latex=r"B_\Psi(\mathbf K,\mathbf K')\ge\tfrac1{2m\tau}\bigl(\textstyle\sum_i\|K_i-K_i'\|_F\bigr)^2,\quad "
          r"B_\Psi(\mathbf K,\tfrac\tau nI)\le m\tau\log n",
)  # fmt: skip
def entropy_of_several_kernels(case: Case) -> Evidence:
    diagonal = {
        **case,
        **{name: np.array([np.diag(np.diag(K)) for K in case[name]]) for name in ("K", "other")},
    }
    return every(
        [check(one) for one in (case, diagonal) for check in (entropy.strongly_convex, entropy.far)]
    )


@theorem(
    "kundu2010-theorem3.2-step", number="Theorem 3.2, Proposition 3.2", draw=random_run, most=3, sizes=(2, 3),
    expected=Outcome.CORRECTED,
    formerly="001-A18",
    quote="Substituting values for BΨ and σ in (15) we obtain the desired result.",
    says="Put sigma = 1/(m tau) and B = m tau log n in (15): the step is sqrt(2 log n / (m t)) / Lip.",
    latex=r"\eta_t=\frac1{\operatorname{Lip}(F)}\sqrt{\frac{2\sigma B}t}=\frac1{\operatorname{Lip}(F)}"
          r"\sqrt{\frac{2\log n}{m\,t}}",
    correction="sigma B = log n: the step has no m. Then (15), with T for t, gives tau m Lip sqrt(2 log n / T).",
    corrected=lambda case: every([_step(case, 1), algorithms.emkl_run(case, printed=False, divided=False)]),
    example=TWO, premise="two similarities or more", meets=lambda case: len(case["S"]) > 1,
    exact=lambda case: ((2 * ball(len(case["y"])).log()).sqrt(),
                        (2 * ball(len(case["y"])).log() / len(case["S"])).sqrt()),
)  # fmt: skip
def step_depends_on_the_number_of_kernels(case: Case) -> Evidence:
    run = algorithms.emkl_run(case, printed=False, divided=True)
    return replace(_step(case, len(case["S"])), curve=run.curve)


def _step(case: Case, divisor: int) -> Evidence:
    m = len(case["S"])
    n = len(case["y"])
    tau = case["tau"]
    sigma = 1 / (m * tau)
    B = m * tau * log(n)
    return equal(algorithms.decreasing(n, 1.0, divisor)(1), sqrt(2 * sigma * B))


@theorem(
    "kundu2010-theorem3.2", number="Algorithm 2, Theorem 3.2", draw=random_run, most=3, sizes=(2, 3),
    expected=Outcome.CORRECTED,
    formerly="001-A19", quote="then min 1≤t≤T F (t) − F ∗ ≤ τ m Lip(F ) √ 2 logn T",
    says="EMKL as printed reaches F* within tau m Lip sqrt(2 log n / T) after T steps.",
    latex=r"\min_{t\le T}F^{(t)}-F^*\le\tau m\operatorname{Lip}(F)\sqrt{2\log n/T}",
    correction="It stalls, as in algorithm1 and for want of rho. "
    "Mirror descent with rho keeps to the bound in all algorithms.",
    corrected=lambda case: algorithms.emkl_run(case, printed=False, divided=False), example=TWO,
    exact=lambda case: exact.printed_run(case, Fraction(case["L"]), omits_rho=True),
)  # fmt: skip
def printed_several_kernels_rate(case: Case) -> Evidence:
    return algorithms.emkl_run(case, printed=True, divided=True)


@theorem(
    "kundu2010-prop3.2", number="Algorithm 3, Proposition 3.2", draw=random_run, most=3, sizes=(2, 3),
    expected=Outcome.CORRECTED,
    formerly="001-A20", quote="then min 1≤t≤T g(t) − g∗ ≤ τ m Lip(g) √ 2 log n T",
    says="REKL as printed reaches g* within tau m Lip sqrt(2 log n / T) after T steps; the loss is |mu - lambda|^2.",
    latex=r"\min_{t\le T}g^{(t)}-g^*\le\tau m\operatorname{Lip}(g)\sqrt{2\log n/T}",
    correction="With rho before the gradient of the loss; the step is right, for all matrices commute.",
    corrected=lambda case: algorithms.rekl_run(case, printed=False), example=SPECTRAL, exact=exact.spectral_run,
)  # fmt: skip
def printed_spectra_rate(case: Case) -> Evidence:
    return algorithms.rekl_run(case, printed=True)


@theorem(
    "kundu2010-steps", number="section 3.4", expected=Outcome.CORRECTED,
    formerly="001-A21",
    quote="The ESKL formulation requires O ( logn ǫ2 ) iterations (see Proposition 3.1)",
    draw=lambda rng, n: {
        "n": 2 * n, "C": 1.0, "tau": 1.0, "m": int(rng.integers(1, 4)), "eps": float(rng.uniform(0.1, 1))},
    says="The number of steps grows like log n / eps^2: Lip(f) does not grow with n. Here at K = (tau/n) I, n even.",
    latex=r"T=O\bigl(\tfrac{\log n}{\epsilon^2}\bigr),\quad T=O\bigl(\tfrac{m^2\log n}{\epsilon^2}\bigr)",
    correction="Lip grows like n: at this K the gradient has the norm n C^2 / 2, for C <= n / tau, and T is of the "
    "order n^2 log n / eps^2.",
    corrected=lambda case: _grows(case),
    example={"n": 4, "C": 1.0, "tau": 1.0, "m": 1, "eps": 0.5}, exact=exact.gradient_norms,
)  # fmt: skip
def constant_does_not_grow(case: Case) -> Evidence:
    return at_most(_norm(case, int(case["n"])), _norm(case, 2))


def _norm(case: Case, n: int) -> float:
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    found = quantities.svm_optimum({**case, "y": y}, case["tau"] / n * np.eye(n)[None])
    return float(found.a @ found.a) / 2


def _grows(case: Case) -> Evidence:
    # The multipliers of the solver against those found by hand: all are C, or n / tau if that is
    # less.
    n = int(case["n"])
    by_hand = n * min(case["C"], n / case["tau"]) ** 2 / 2
    return equal(_norm(case, n), by_hand, tol=1e-6)


decompositions = listed(
    "kundu2010-cost-rekl", number="section 3.3", says="REKL avoids the eigen-decomposition of EMKL.",
    formerly="001-A22",
    quote="a faster version of EMKL is proposed, called REKL, which avoids the "
          "eigen-decomposition",
    reason="A cost: m decompositions are made once; each step still forms V diag(mu) V', of the same order, m n^3.",
)  # fmt: skip
