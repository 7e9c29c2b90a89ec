"""Rank ordering constraints elimination with application for kernel learning (Xie et al., 2017).

Notation of the paper: alpha = Cs is the slack transform; F_ij = (v_i'v_j)^2 and b_i = |Y'v_i|^2 on
the labelled points.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import islice

import numpy as np

from klopt.papers.theorems.claim import Case, Outcome, listed, theorem
from klopt.papers.theorems.evidence import (
    Evidence,
    Interval,
    at_most,
    equal,
    every,
    overlap,
    reached,
)
from klopt.papers.theorems.xie2017 import exact, quantities
from klopt.papers.theorems.xie2017.quantities import (
    random_labelled,
    random_quadratic,
    random_scores,
)

ONE_CLASS = {"V": np.array([[1.0], [0.0]]), "classes": np.array([0, 0]), "sigma": 1.0}


@theorem(
    "002-1", number="Theorem 1A, (9), (12)-(14)", draw=random_scores,
    says="The recurrence alpha_i = s_i + sigma alpha_(i+1) is alpha = Cs.",
    latex=r"\alpha_i=\sum_{k=i}^m\sigma^{k-i}s_k,\qquad \alpha=Cs",
)  # fmt: skip
def slack_transform(case: Case) -> Evidence:
    alpha = np.zeros(len(case["s"]))
    following = 0.0
    for i in reversed(range(len(alpha))):
        alpha[i] = following = case["s"][i] + case["sigma"] * following
    return equal(alpha, quantities.transform(case, len(alpha)) @ case["s"])


@theorem(
    "002-2", number="Theorem 1B, (10), (11)", draw=random_scores,
    says="The scores that satisfy the order are exactly Cs with s >= 0: slacks are what C^-1 makes of scores.",
    latex=r"\{\alpha\ge0,\ \alpha_i\ge\sigma\alpha_{i+1}\}=\{Cs:\ s\ge0\}",
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
    "002-3", number="(12), (27)", draw=lambda rng, m: {"m": m, "sigma": 1.2}, sizes=(200, 400, 2000), most=3,
    expected=Outcome.CORRECTED,
    says="C and C'FC can be used as they are for sigma > 1: their condition leaves digits to work with.",
    latex=r"\operatorname{cond}(C^\top FC)<1/\varepsilon",
    correction="Scale alpha_i = sigma^-(i-1) beta_i: the sigma-order becomes the plain one and nothing overflows.",
    corrected=lambda case: at_most(
        float(np.cumsum(float(case["sigma"]) ** (-2.0 * np.arange(case["m"]))).max()), case["m"]),
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
    "002-4", number="Lemma 1, (21)", draw=random_labelled, expected=Outcome.CORRECTED,
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
)  # fmt: skip
def alignment_is_a_ratio(case: Case) -> Evidence:
    return equal(quantities.alignment(case, np.ones(case["V"].shape[1])), _lemma1(case))


def _lemma1(case: Case) -> float:
    F, b = quantities.products(case)
    return float(b.sum() / np.sqrt(F.sum()))


def _norm(case: Case) -> float:
    return float(np.linalg.norm(np.bincount(case["classes"])))


@theorem(
    "002-5", number="(22)", draw=random_labelled, expected=Outcome.CORRECTED,
    says="b_i is the square of Y^L v_i, one number.", latex=r"b_i=(Y^Lv_i)^2",
    correction="b_i = |Y^L' v_i^L|^2, a sum of one square a class.",
    corrected=lambda case: equal(quantities.products(case)[1], _traces(case), scale=float(np.sum(case["V"] ** 2))),
    premise="two classes at least", meets=lambda case: np.unique(case["classes"]).size > 1,
    example={"V": np.array([[1.0], [1.0]]), "classes": np.array([0, 1]), "sigma": 1.0},
    exact=lambda case: (sum(case["V"][:, 0]) ** 2, sum(case["V"][:, 0] ** 2)),
)  # fmt: skip
def b_is_one_square(case: Case) -> Evidence:
    return equal(case["V"].sum(axis=0) ** 2, _traces(case))


def _traces(case: Case) -> np.ndarray:
    Y = quantities.indicators(case)
    return np.asarray(np.einsum("pi,pq,qi->i", case["V"], Y @ Y.T, case["V"]))


@theorem(
    "002-6", number="Lemma 2", draw=random_labelled, says="F is positive semidefinite.", latex=r"F\succeq0",
)  # fmt: skip
def f_is_positive(case: Case) -> Evidence:
    values = np.linalg.eigvalsh(quantities.products(case)[0])
    return at_most(-float(values[0]), 1e-12 * max(float(values[-1]), 1e-300))


@theorem(
    "002-7", number="(20), (24)", draw=random_labelled, most=15, sizes=(2, 3, 5),
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
    "002-8", number="after (24)", draw=random_labelled, expected=Outcome.REFUTED, most=5,
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
    "002-9", number="Theorem 2, (25), (26)", draw=random_labelled, most=15, sizes=(2, 3, 5),
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
    "002-10", number="(30)-(32)", draw=random_labelled, most=25,
    says="lam = alpha'F alpha is positive; indeed at least 1 / sum_k n_k^2, from b'alpha = 1.",
    latex=r"\lambda=\alpha^\top F\alpha\ \ge\ 1/\textstyle\sum_kn_k^2",
    premise="some b_i is positive beyond rounding", meets=lambda case: bool(quantities.products(case)[1].max() > 1e-3),
)  # fmt: skip
def multiplier_is_positive(case: Case) -> Evidence:
    F, b = quantities.products(case)
    alpha = np.ones(len(b)) / float(b.sum())
    return at_most(1 / _norm(case) ** 2, float(alpha @ F @ alpha))


STUCK = {"F": np.eye(2), "b": np.ones(2), "a": np.array([1.0, 0.0])}


@theorem(
    "002-11", number="Theorem 3", draw=random_quadratic, most=10, sizes=(2, 3), expected=Outcome.CORRECTED,
    says="A point that the update (33) leaves where it is satisfies the KKT conditions (30): no xi_i is negative.",
    latex=r"\alpha^*=\text{update}(\alpha^*)\ \Rightarrow\ \xi\ge0", example=STUCK,
    correction="Only limits from a positive start: zeros stay zero, whatever their multiplier.",
    corrected=lambda case: _limit_is_optimal(case) if (case["a"] > 0).all() else Evidence(0.0, 0.0),
    exact=lambda case: (
        2 * quantities.exact_objective(case["F"], case["a"]) * case["b"][1],
        2 * quantities.exact_dot(case["F"][1], case["a"])),
)  # fmt: skip
def fixed_points_are_optimal(case: Case) -> Evidence:
    a = case["a"] / float(case["b"] @ case["a"])
    moved = float(np.abs(quantities.update(case["F"], case["b"], a) - a)[a > 0].max())
    if moved > 1e-12:
        return Evidence(0.0, 0.0)  # no fixed point, nothing is claimed
    return at_most(-float(quantities.kkt_multipliers(case, a).min()), 0.0)


def _limit_is_optimal(case: Case) -> Evidence:
    for a in islice(quantities.iterates(case), 20_000):
        if quantities.certified_gap(case, a) < 1e-3:
            break
    return at_most(quantities.certified_gap(case, a), 1e-2)


@theorem(
    "002-12", number="(35)", draw=random_quadratic,
    says="A positive fixed point of (33) satisfies b'alpha = 1: lam b'alpha = alpha'F alpha.",
    latex=r"\lambda\sum_i\alpha_i^*b_i=\alpha^{*\top}F\alpha^*",
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
    "002-13", number="Theorem 4, (36)", draw=random_quadratic,
    says="The Lagrangian decreases under the update (33), all entries at once and lam fixed in the step.",
    latex=r"\mathcal L(\alpha^{t+1})\le\mathcal L(\alpha^t)",
)  # fmt: skip
def lagrangian_decreases(case: Case) -> Evidence:
    return quantities.lagrangian_falls(case, 100)


@theorem(
    "002-14", number="(33) without step (3)", draw=random_quadratic, expected=Outcome.CORRECTED,
    says="(33) alone, with lam = alpha'F alpha, stays bounded.", latex=r"\sup_t b^\top\alpha^t<\infty",
    correction="Step (3), b'alpha = 1, is essential: without it the iterates grow doubly exponentially.",
    corrected=lambda case: every(equal(float(case["b"] @ a), 1.0) for a in islice(quantities.iterates(case), 12)),
    example={"F": np.array([[2.0, 1.0], [1.0, 2.0]]), "b": np.array([1.0, 2.0]), "a": np.ones(2)},
    exact=lambda case: exact.exact_growth(case, 11, quantities.DIVERGENCE_THRESHOLD),
)  # fmt: skip
def update_alone_is_bounded(case: Case) -> Evidence:
    growth = [float(case["b"] @ a) for a in islice(quantities.iterates(case, rescale=False), 12)]
    return at_most(
        growth[-1] if np.isfinite(growth[-1]) else np.inf, quantities.DIVERGENCE_THRESHOLD
    )


@theorem(
    "002-15", number="step (2), for every i", draw=random_quadratic, most=10, expected=Outcome.CORRECTED,
    says="Updating the entries one by one, lam computed anew for each, lowers alpha'F alpha / (b'alpha)^2 in a sweep.",
    latex=r"J(\alpha^{t+1})\le J(\alpha^t),\quad J=\alpha^\top F\alpha/(b^\top\alpha)^2",
    correction="All entries at once with lam fixed.",
    corrected=lambda case: at_most(
        quantities.objective(case, quantities.update(case["F"], case["b"], case["a"] / float(case["b"] @ case["a"]))),
        quantities.objective(case, case["a"])),
    example={"F": np.eye(8), "b": np.ones(8), "a": np.array([0.5, 0.5, *[1e-6] * 6])}, exact=exact.exact_sweep,
)  # fmt: skip
def sequential_sweep_decreases(case: Case) -> Evidence:
    a = case["a"] / float(case["b"] @ case["a"])
    return at_most(
        quantities.objective(case, quantities.sweep(case, a, refresh=True)),
        quantities.objective(case, a),
    )


@theorem(
    "002-16", number="Convergence", draw=lambda rng, m: {}, most=1, expected=Outcome.CORRECTED,
    says="Monotone decrease implies convergence, as fast as a geometric series: after 1000 steps nothing is left.",
    latex=r"\alpha^t\to\alpha^*\ \text{linearly}", correction="The rate may be sublinear: here alpha_2 falls like 1/t.",
    corrected=lambda case: _slow_run(case),
    example={"F": np.array([[1.0, 1.0], [1.0, 2.0]]), "b": np.ones(2), "a": np.ones(2)},
    meets=lambda case: "F" in case, exact=lambda case: exact.exact_slow(case, 1000, Fraction(1, 10**9)),
)  # fmt: skip
def convergence_is_linear(case: Case) -> Evidence:
    last = next(islice(quantities.iterates(case), 1000, None))
    return at_most(float(last[1]), 1e-9)


def _slow_run(case: Case) -> Evidence:
    steps = np.unique(np.geomspace(1, 3000, 30).astype(int))
    found = [float(next(islice(quantities.iterates(case), int(t), None))[1]) for t in steps]
    return reached(steps.tolist(), found, [2.0 / t for t in steps], predicted=-1.0, label="alpha_2")


@theorem(
    "002-17", number="(28) with b_i < 0 or a zero column", draw=lambda rng, m: {}, most=1, expected=Outcome.REFUTED,
    says="The update keeps alpha >= 0.", latex=r"\alpha^t\ge0\Rightarrow\alpha^{t+1}\ge0",
    correction="It needs b >= 0 and no zero column: b_i < 0 makes alpha_i negative, a zero column makes it 0/0.",
    example={"F": np.eye(2), "b": np.array([1.0, -0.5]), "a": np.array([1.0, 1.0])}, meets=lambda case: "F" in case,
    exact=lambda case: (0, case["a"][1] * case["b"][1]),
)  # fmt: skip
def update_stays_nonnegative(case: Case) -> Evidence:
    return at_most(-float(quantities.update(case["F"], case["b"], case["a"]).min()), 0.0)


cost = listed(
    "002-18", number="after (28)", says="An iteration costs O(n^2) and uses Level-3 BLAS.",
    reason="A cost, measured in benchmarks/ordered.py; matrix times vector is Level 2 and bound by memory.",
)  # fmt: skip


@theorem(
    "002-19", number="after (28)", draw=random_labelled, expected=Outcome.CORRECTED,
    says="When F is too large to store, it must be approximated (Nystroem): F alpha needs F.",
    latex=r"(F\alpha)_i=v_i^\top\bigl(V\operatorname{diag}(\alpha)V^\top\bigr)v_i",
    correction="F alpha is exact without F, from an L x L matrix.",
    example={"V": np.array([[1.0, 2.0, 3.0]]), "classes": np.array([0]), "sigma": 1.0},
    corrected=lambda case: equal(
        np.einsum("pi,pq,qi->i", case["V"], case["V"] @ case["V"].T, case["V"]),
        quantities.products(case)[0].sum(axis=1)),
    exact=lambda case: (case["V"].shape[1] ** 2, len(case["V"]) * (len(case["V"]) + 2 * case["V"].shape[1])),
)  # fmt: skip
def products_need_the_matrix(case: Case) -> Evidence:
    rows, m = case["V"].shape
    return at_most(float(m * m), float(rows * rows + 2 * rows * m))


speed = listed(
    "002-20", number="Figure 1", says="QCQP takes 12.5 s where the update takes 0.125 s.",
    reason="A timing: it holds against an L^2 x m formulation only; benchmarks/ordered.py has the comparison.",
)  # fmt: skip


@theorem(
    "002-21", number="Experiments", draw=random_labelled, most=20, sizes=(2, 3, 5),
    says="The order costs alignment: KA1 is never better aligned than KA0 on the labelled points.",
    latex=r"\max(18)\le\max(17)",
    premise="some b_i is positive beyond rounding", meets=lambda case: bool(quantities.products(case)[1].max() > 1e-3),
)  # fmt: skip
def order_costs_alignment(case: Case) -> Evidence:
    ordered = quantities.best_alignment(case, ordered=True)
    free = quantities.best_alignment(case, ordered=False)
    return at_most(ordered, free, tol=1e-6)
