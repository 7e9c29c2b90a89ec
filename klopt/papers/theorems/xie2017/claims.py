"""Rank ordering constraints elimination with application for kernel learning (Xie et al., 2017).

Notation of the paper: alpha = Cs is the slack transform; F_ij = (v_i'v_j)^2 and b_i = |Y'v_i|^2 on
the labelled points.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import islice

import numpy as np

from klopt.papers.theorems.claim import Basis, Case, Outcome, listed, theorem
from klopt.papers.theorems.evidence import (
    Evidence,
    Interval,
    at_most,
    equal,
    every,
    not_measured,
    overlap,
    reached,
)
from klopt.papers.theorems.xie2017 import exact, proofs, quantities
from klopt.papers.theorems.xie2017.quantities import (
    random_labelled,
    random_quadratic,
    random_scores,
)

ONE_CLASS = {"V": np.array([[1.0], [0.0]]), "classes": np.array([0, 0]), "sigma": 1.0}


@theorem(
    "xie2017-theorem1a", number="Theorem 1A, (9), (12)-(14)", draw=random_scores,
    formerly="002-1",
    quote=r"Score variables $\alpha = (\alpha_1, \dots, \alpha_m)^T$ can be transformed in to "
          r"slack variables $s = (s_1, \dots, s_m)^T$ through the relation $$\alpha = Cs.$$",
    says="The recurrence alpha_i = s_i + sigma alpha_(i+1) is alpha = Cs.",
    latex=r"\alpha_i=\sum_{k=i}^m\sigma^{k-i}s_k,\qquad \alpha=Cs",
    proof=proofs.slack_transform,
)  # fmt: skip
def slack_transform(case: Case) -> Evidence:
    alpha = np.zeros(len(case["s"]))
    following = 0.0
    for i in reversed(range(len(alpha))):
        alpha[i] = following = case["s"][i] + case["sigma"] * following
    return equal(alpha, quantities.transform(case, len(alpha)) @ case["s"])


@theorem(
    "xie2017-theorem1b", number="Theorem 1B, (10), (11)", draw=random_scores,
    formerly="002-2",
    quote="Thus the rank ordering constraints Eq.(8) are completely eliminated.",
    says="The scores that satisfy the order are exactly Cs with s >= 0: slacks are what C^-1 makes of scores.",
    latex=r"\{\alpha\ge0,\ \alpha_i\ge\sigma\alpha_{i+1}\}=\{Cs:\ s\ge0\}",
    proof=proofs.order_is_an_image,
)  # fmt: skip
def ordered_scores_are_the_image_of_slacks(case: Case) -> Evidence:
    m = len(case["s"])
    rows = quantities.order_rows(case, m)
    C = quantities.transform(case, m)
    alpha = C @ case["s"]
    return every(
        [equal(rows @ C, np.eye(m)), equal(rows @ alpha, case["s"], scale=float(alpha.max()))]
    )


@theorem(
    "xie2017-scaling", number="(12), (27)", draw=lambda rng, m: {"m": m, "sigma": 1.2}, sizes=(100, 200, 300), most=3,
    formerly="002-3",
    quote="This technique reduces the computational efforts by order of magnitudes, and is "
          "appropriate for big data analysis.", basis=Basis.IMPLIED,
    expected=Outcome.CORRECTED,
    says="C and C'FC can be used as they are for sigma > 1: their condition leaves digits to work with.",
    latex=r"\operatorname{cond}(C^\top FC)<1/\varepsilon",
    correction="Scale alpha_i = sigma^-(i-1) beta_i: the sigma-order becomes the plain one, of condition 4m / pi.",
    corrected=quantities.scaled_transform,
    exact=lambda case: (case["sigma"] ** (2 * (case["m"] - 1)), 2**52),
)  # fmt: skip
def transform_is_well_scaled(case: Case) -> Evidence:
    # cond(C) is at least its largest entry, for C^-1 has entries of size 1; with F = I, cond(C'C)
    # is its square.
    with np.errstate(over="ignore"):
        return at_most(
            float(np.float64(case["sigma"]) ** (2 * (case["m"] - 1))),
            1 / float(np.finfo(float).eps),
        )


@theorem(
    "xie2017-lemma1", number="Lemma 1, (21)", draw=random_labelled, expected=Outcome.CORRECTED,
    formerly="002-4",
    quote=r"$$A(K^{LL}, Y^L Y^{LT}) = \frac{b^T \alpha}{\sqrt{\alpha^T F \alpha}}$$",
    says="The alignment is b'alpha / sqrt(alpha'F alpha).",
    latex=r"A(K^{LL},Y^LY^{L\top})=\frac{b^\top\alpha}{\sqrt{\alpha^\top F\alpha}}",
    correction="Divided by ||YY'|| = sqrt(sum_k n_k^2); the maximiser is the same, the reported alignment is not.",
    corrected=lambda case: equal(quantities.alignment(case, np.ones(case["V"].shape[1])), _lemma1(case) / _norm(case)),
    example=ONE_CLASS,
    # b = 1 and F = 1 exactly, so the printed ratio is 1; the alignment of vv' with 11' on two
    # points is 1/2.
    exact=lambda case: (
        sum(case["V"][:, 0]) ** 2 / sum(case["V"][:, 0] ** 2),
        sum(case["V"][:, 0]) ** 2 / (sum(case["V"][:, 0] ** 2) * len(case["classes"]))),
    proof=proofs.alignment_is_a_ratio,
)  # fmt: skip
def alignment_is_a_ratio(case: Case) -> Evidence:
    return equal(quantities.alignment(case, np.ones(case["V"].shape[1])), _lemma1(case))


def _lemma1(case: Case) -> float:
    F, b = quantities.products(case)
    return float(b.sum() / np.sqrt(F.sum()))


def _norm(case: Case) -> float:
    return float(np.linalg.norm(np.bincount(case["classes"])))


@theorem(
    "xie2017-eq22", number="(22)", draw=random_labelled, expected=Outcome.CORRECTED,
    formerly="002-5", quote="$$b_i = (Y^L v_i)^2$$",
    says="b_i is the square of Y^L v_i, one number.", latex=r"b_i=(Y^Lv_i)^2",
    correction="b_i = |Y^L' v_i^L|^2, a sum of one square a class.",
    corrected=lambda case: equal(quantities.products(case)[1], _traces(case), scale=float(np.sum(case["V"] ** 2))),
    premise="two classes at least", meets=lambda case: np.unique(case["classes"]).size > 1,
    example={"V": np.array([[1.0], [1.0]]), "classes": np.array([0, 1]), "sigma": 1.0},
    exact=lambda case: (sum(case["V"][:, 0]) ** 2, sum(case["V"][:, 0] ** 2)),
    proof=proofs.b_is_a_sum_of_squares,
)  # fmt: skip
def b_is_one_square(case: Case) -> Evidence:
    return equal(case["V"].sum(axis=0) ** 2, _traces(case))


def _traces(case: Case) -> np.ndarray:
    Y = quantities.indicators(case)
    return np.asarray(np.einsum("pi,pq,qi->i", case["V"], Y @ Y.T, case["V"]))


@theorem(
    "xie2017-lemma2", number="Lemma 2", draw=random_labelled, says="F is positive semidefinite.", latex=r"F\succeq0",
    formerly="002-6", quote="In Lemma 1, F is a semi-positive definite.",
    proof=proofs.f_is_positive,
)  # fmt: skip
def f_is_positive(case: Case) -> Evidence:
    values = np.linalg.eigvalsh(quantities.products(case)[0])
    return at_most(-float(values[0]), 1e-12 * max(float(values[-1]), 1e-300))


@theorem(
    "xie2017-eq24", number="(20), (24)", draw=random_labelled, most=15, sizes=(2, 3, 5),
    formerly="002-7", quote="Thus optimization problem of Eq.(20) is equivalent to",
    says="Best alignment is least alpha'F alpha with b'alpha = 1.", latex=r"(20)\Leftrightarrow(24)",
    premise="some b_i is positive beyond rounding", meets=lambda case: bool(quantities.products(case)[1].max() > 1e-3),
)  # fmt: skip
def alignment_is_a_quadratic_program(case: Case) -> Evidence:
    F, b = quantities.products(case)
    low, high = quantities.minimal_quadratic(F, b, np.eye(len(b)))
    from_qp = Interval(
        1 / (np.sqrt(high) * _norm(case)), 1 / (np.sqrt(max(low, 1e-300)) * _norm(case))
    )
    return overlap(quantities.best_alignment(case, ordered=False), from_qp, tol=1e-4)


@theorem(
    "xie2017-unique", number="after (24)", draw=random_labelled, expected=Outcome.REFUTED, most=5,
    formerly="002-8",
    quote="Since the objective function is convex, and the constraints are convex, the "
          "optimization is convex and has a unique solution.",
    says="(24) has a unique solution: two solutions of equal value are equal.", latex=r"|\operatorname{arg}\min(24)|=1",
    correction="Only the labelled block of K is unique: F is singular whenever m > L (L + 1) / 2.",
    example={"V": np.array([[1.0, 2.0]]), "classes": np.array([0]), "sigma": 1.0},
    # Both (1, 0) and (0, 1/4) have b'alpha = 1 and alpha'F alpha = 1: the lead of one over the
    # other, 0, is below 1.
    exact=lambda case: (1, abs(
        quantities.exact_objective(_exact_f(case), [Fraction(1), Fraction(0)])
        - quantities.exact_objective(_exact_f(case), [Fraction(0), Fraction(1, 4)]))),
    premise="one labelled point, so that F has rank one", meets=lambda case: len(case["V"]) == 1,
)  # fmt: skip
def solution_is_unique(case: Case) -> Evidence:
    F, b = quantities.products(case)
    ends = [np.eye(len(b))[i] / b[i] for i in (0, 1)]
    values = [float(end @ F @ end) for end in ends]
    return at_most(1e-6 * max(values), abs(values[0] - values[1]))


def _exact_f(case: Case) -> list[list[Fraction]]:
    V = case["V"]
    columns = range(V.shape[1])
    return [[quantities.exact_dot(V[:, i], V[:, j]) ** 2 for j in columns] for i in columns]


@theorem(
    "xie2017-theorem2", number="Theorem 2, (25), (26)", draw=random_labelled, most=15, sizes=(2, 3, 5),
    formerly="002-9",
    quote="The optimization problem of Eq.(25) is equivalent to solving the following",
    says="The ordered program (25) and its slack form (26) have the same optimum.", latex=r"(25)\Leftrightarrow(26)",
    premise="some b_i is positive beyond rounding", meets=lambda case: bool(quantities.products(case)[1].max() > 1e-3),
)  # fmt: skip
def slack_form_is_equivalent(case: Case) -> Evidence:
    names = ("order QP", "slack QP")
    return overlap(
        *(quantities.best_alignment(case, ordered=True, formulation=name) for name in names),
        tol=1e-5,
    )


@theorem(
    "xie2017-eq32", number="(30)-(32)", draw=random_labelled, most=25,
    formerly="002-10", quote=r"$$\lambda = \alpha^T F \alpha > 0$$",
    says="lam = alpha'F alpha is positive; indeed at least 1 / sum_k n_k^2, from b'alpha = 1.",
    latex=r"\lambda=\alpha^\top F\alpha\ \ge\ 1/\textstyle\sum_kn_k^2",
    premise="some b_i is positive beyond rounding", meets=lambda case: bool(quantities.products(case)[1].max() > 1e-3),
    proof=proofs.multiplier_is_positive,
)  # fmt: skip
def multiplier_is_positive(case: Case) -> Evidence:
    F, b = quantities.products(case)
    alpha = np.ones(len(b)) / float(b.sum())
    return at_most(1 / _norm(case) ** 2, float(alpha @ F @ alpha))


STUCK = {"F": np.eye(2), "b": np.ones(2), "a": np.array([1.0, 0.0])}


@theorem(
    "xie2017-theorem3", number="Theorem 3", draw=random_quadratic, most=10, sizes=(2, 3), expected=Outcome.CORRECTED,
    formerly="002-11",
    quote="Using updating algorithm of Eq.(33), the converged solution satisfies the KKT "
          "condition of Eq.(30).",
    says="A point that the update (33) leaves where it is satisfies the KKT conditions (30): no xi_i is negative.",
    latex=r"\alpha^*=\text{update}(\alpha^*)\ \Rightarrow\ \xi\ge0", example=STUCK,
    correction="Only limits from a positive start: zeros stay zero, whatever their multiplier.",
    corrected=lambda case: _limit_is_optimal(case) if (case["a"] > 0).all() else not_measured("no positive start"),
    exact=lambda case: (
        2 * quantities.exact_objective(case["F"], case["a"]) * case["b"][1],
        2 * quantities.exact_dot(case["F"][1], case["a"])),
)  # fmt: skip
def fixed_points_are_optimal(case: Case) -> Evidence:
    a = case["a"] / float(case["b"] @ case["a"])
    moved = float(np.abs(quantities.update(case["F"], case["b"], a) - a)[a > 0].max())
    if moved > 1e-12:
        return not_measured("not a fixed point")
    return at_most(-float(quantities.kkt_multipliers(case, a).min()), 0.0)


def _limit_is_optimal(case: Case) -> Evidence:
    near = 0
    for a in islice(quantities.iterates(case), 20_000):
        near = near + 1 if quantities.certified_gap(case, a) < 1e-3 else 0
        # One iterate may be near by chance; a limit keeps the others near too.
        if near == 20:
            break
    return every([at_most(quantities.certified_gap(case, a), 1e-2), at_most(1, near)])


@theorem(
    "xie2017-eq35", number="(35)", draw=random_quadratic,
    formerly="002-12",
    quote=r"We show that at convergence, the solution satisfies the $\sum_i \alpha_i b_i = 1$ "
          "constraint.",
    says="A positive fixed point of (33) satisfies b'alpha = 1: lam b'alpha = alpha'F alpha.",
    latex=r"\lambda\sum_i\alpha_i^*b_i=\alpha^{*\top}F\alpha^*",
    proof=proofs.fixed_points_are_feasible,
)  # fmt: skip
def fixed_points_are_feasible(case: Case) -> Evidence:
    # b := Fa / a'Fa makes the given a a fixed point.
    Fa = case["F"] @ case["a"]
    b = Fa / float(case["a"] @ Fa)
    return every(
        [
            equal(quantities.update(case["F"], b, case["a"]), case["a"]),
            equal(float(b @ case["a"]), 1.0),
        ]
    )


@theorem(
    "xie2017-theorem4", number="Theorem 4, (36)", draw=random_quadratic,
    formerly="002-13", quote="monotonically decreases under the updating rule Eq.(33)",
    says="The Lagrangian decreases under the update (33), all entries at once and lam fixed in the step.",
    latex=r"\mathcal L(\alpha^{t+1})\le\mathcal L(\alpha^t)",
    proof=proofs.lagrangian_decreases,
)  # fmt: skip
def lagrangian_decreases(case: Case) -> Evidence:
    return quantities.lagrangian_falls(case, 100)


@theorem(
    "xie2017-eq33", number="(33) without step (3)", draw=random_quadratic, expected=Outcome.CORRECTED,
    formerly="002-14",
    quote="the computational algorithm of Eq.(28) is in fact the updating rule", basis=Basis.IMPLIED,
    says="(33) alone, with lam = alpha'F alpha, stays bounded.", latex=r"\sup_t b^\top\alpha^t<\infty",
    correction="Step (3), b'alpha = 1, is essential: with it alpha'F alpha falls, without it the iterates grow doubly "
    "exponentially.",
    corrected=lambda case: quantities.values_fall(quantities.values_along(case, 12)),
    example={"F": np.array([[2.0, 1.0], [1.0, 2.0]]), "b": np.array([1.0, 2.0]), "a": np.ones(2)},
    exact=lambda case: exact.exact_growth(case, 11, quantities.DIVERGENCE_THRESHOLD),
)  # fmt: skip
def update_alone_is_bounded(case: Case) -> Evidence:
    growth = [float(case["b"] @ a) for a in islice(quantities.iterates(case, rescale=False), 12)]
    return at_most(
        growth[-1] if np.isfinite(growth[-1]) else np.inf, quantities.DIVERGENCE_THRESHOLD
    )


@theorem(
    "xie2017-eq28-sweep", number="step (2), for every i", draw=random_quadratic, most=10, expected=Outcome.CORRECTED,
    formerly="002-15", quote="For every i , update α_i using", basis=Basis.IMPLIED,
    says="Updating the entries one by one, lam computed anew for each, lowers alpha'F alpha / (b'alpha)^2 in a sweep.",
    latex=r"J(\alpha^{t+1})\le J(\alpha^t),\quad J=\alpha^\top F\alpha/(b^\top\alpha)^2",
    correction="All entries at once with lam fixed.",
    corrected=lambda case: at_most(
        quantities.objective(case, quantities.update(case["F"], case["b"], case["a"] / float(case["b"] @ case["a"]))),
        quantities.objective(case, case["a"])),
    example={"F": np.eye(8), "b": np.ones(8), "a": np.array([0.5, 0.5, *[1e-6] * 6])}, exact=exact.exact_sweep,
    proof=proofs.values_fall,
)  # fmt: skip
def sequential_sweep_decreases(case: Case) -> Evidence:
    a = case["a"] / float(case["b"] @ case["a"])
    return at_most(
        quantities.objective(case, quantities.sweep(case, a, refresh=True)),
        quantities.objective(case, a),
    )


@theorem(
    "xie2017-convergence", number="Convergence", draw=random_quadratic, most=20,
    quote="Since $\\mathcal{L}(\\alpha)$ is bonded below due to $F \\succeq 0$, this monotonicity implies convergence.",
    says="With step (3) alpha'F alpha falls in every step and never below its minimum.",
    latex=r"J(\alpha^{t+1})\le J(\alpha^t),\quad J(\alpha^t)\ge J^*",
    proof=proofs.values_fall,
)  # fmt: skip
def values_fall_to_the_minimum(case: Case) -> Evidence:
    values = quantities.values_along(case, 60)
    least = quantities.minimal_quadratic(case["F"], case["b"], np.eye(len(case["b"])))
    return every([quantities.values_fall(values), at_most(least.lower, values[-1], tol=1e-9)])


SLOW = {"F": np.array([[1.0, 1.0], [1.0, 2.0]]), "b": np.ones(2), "a": np.ones(2)}


@theorem(
    "xie2017-rate", number="Convergence", draw=lambda rng, m: SLOW, most=1,
    formerly="002-16", quote="this monotonicity implies convergence", basis=Basis.REMARK,
    says="Convergence may be as slow as 1/t: with F = [[1, 1], [1, 2]], b = 1, alpha_2 is between 1/(2t) and 2/t.",
    latex=r"\tfrac1{2t}\le\alpha_2^t\le\tfrac2t",
)  # fmt: skip
def convergence_may_be_slow(case: Case) -> Evidence:
    steps = np.unique(np.geomspace(4, 3000, 30).astype(int))
    found = quantities.entries_along(case, steps)
    above = [at_most(0.5 / t, value) for t, value in zip(steps, found, strict=True)]
    fall = reached(steps.tolist(), found, [2.0 / t for t in steps], predicted=-1.0, label="alpha_2")
    return replace(every([fall, *above]), curve=fall.curve)


ZERO_COLUMN = {"V": np.array([[1.0, 0.0]]), "classes": np.array([0]), "sigma": 1.0}


@theorem(
    "xie2017-eq28", number="(28)", draw=random_labelled, expected=Outcome.REFUTED, example=ZERO_COLUMN,
    formerly="002-17", quote=r"$$\alpha_i \leftarrow \alpha_i b_i (\alpha^T F \alpha) / (F \alpha)_i$$",
    basis=Basis.IMPLIED,
    says="The update is defined: no (F alpha)_i is 0 for a positive alpha.", latex=r"\alpha>0\Rightarrow(F\alpha)_i>0",
    correction="An eigenvector that is 0 on the labelled points has a zero row in F and b_i = 0: its update is 0 / 0. "
    "Leave such columns out.",
    exact=lambda case: (Fraction(1, 10**12), quantities.exact_dot(_exact_f(case)[1], [Fraction(1)] * 2)),
)  # fmt: skip
def update_is_defined(case: Case) -> Evidence:
    F, _ = quantities.products(case)
    rows = F.sum(axis=1)
    return at_most(1e-12, max(float(rows.min() / rows.max()), 0.0))


cost = listed(
    "xie2017-cost", number="after (28)", says="An iteration costs O(n^2) and uses Level-3 BLAS.",
    formerly="002-18",
    quote="This algorithm scales as $O(n^2)$ (assuming F is a dense matrix).",
    reason="A cost, measured in benchmarks/ordered.py; matrix times vector is Level 2 and bound by memory.",
)  # fmt: skip


@theorem(
    "xie2017-nystroem", number="after (28)", draw=random_labelled,
    formerly="002-19",
    quote="Nyström type of approximation scheme can be implemented to save significantly amount of memory",
    basis=Basis.REMARK,
    says="F need not be stored: F alpha is exact from an L x L matrix.",
    latex=r"(F\alpha)_i=v_i^\top\bigl(V\operatorname{diag}(\alpha)V^\top\bigr)v_i",
    proof=proofs.products_need_no_matrix,
)  # fmt: skip
def products_need_no_matrix(case: Case) -> Evidence:
    alpha = np.linspace(1.0, 2.0, case["V"].shape[1])
    F, _ = quantities.products(case)
    kernel = (case["V"] * alpha) @ case["V"].T
    return equal(np.einsum("pi,pq,qi->i", case["V"], kernel, case["V"]), F @ alpha)


speed = listed(
    "xie2017-figure1", number="Figure 1", says="QCQP takes 12.5 s where the update takes 0.125 s.",
    formerly="002-20",
    quote="For example on pc-mac dataset, QCQP used 12.5 seconds but our ordered alignment "
          "model(KA1) used only 0.125 seconds.",
    reason="A timing: it holds against an L^2 x m formulation only; benchmarks/ordered.py has the comparison.",
)  # fmt: skip


accuracy = listed(
    "xie2017-figure2", number="Figure 2", says="Ordered kernels classify better than unordered ones.",
    quote="We see that ordered constrained kernels consistently outperform kernels without ordering.",
    reason="A question of data; the figure prints no numbers.",
)  # fmt: skip


@theorem(
    "xie2017-order-costs", number="Experiments", draw=random_labelled, most=20, sizes=(2, 3, 5),
    formerly="002-21",
    quote="We see that ordered constrained kernels consistently outperform kernels without "
          "ordering.", basis=Basis.REMARK,
    says="The order costs alignment: KA1 is never better aligned than KA0 on the labelled points.",
    latex=r"\max(18)\le\max(17)",
    premise="some b_i is positive beyond rounding", meets=lambda case: bool(quantities.products(case)[1].max() > 1e-3),
)  # fmt: skip
def order_costs_alignment(case: Case) -> Evidence:
    ordered = quantities.best_alignment(case, ordered=True)
    free = quantities.best_alignment(case, ordered=False)
    return at_most(ordered, free, tol=1e-6)
