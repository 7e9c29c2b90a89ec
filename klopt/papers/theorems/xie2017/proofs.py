"""Proofs of claims (Xie et al., 2017)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from klopt.papers.theorems.proofs.expression import as_expression, grid, symbols, total
from klopt.papers.theorems.proofs.inner_products import pairwise_cauchy_schwarz
from klopt.papers.theorems.proofs.proof import Proof, Square, Step, at_least, identity

__all__ = [
    "alignment_is_a_ratio",
    "b_is_a_sum_of_squares",
    "f_is_positive",
    "fixed_points_are_feasible",
    "lagrangian_decreases",
    "multiplier_is_positive",
    "order_is_an_image",
    "products_need_no_matrix",
    "slack_transform",
    "values_fall",
]

EVERY_SIZE = "any number of labelled points, eigenvectors and classes"
TWO = (
    "Both sides are sums over two labelled points p, q and two eigenvectors i, j (and one class), so that "
    "two of each decide (Lemma I)."
)


def form_step() -> Step:
    """Return a'Fa = |V diag(a) V'|^2."""
    V = grid("v", 2, 2)
    a = grid("a", 2)
    F = (V.T @ V) ** 2
    K = (V * a) @ V.T
    return identity("sum_ij a_i a_j (v_i'v_j)^2 = |sum_i a_i v_i v_i'|^2", a @ F @ a, (K**2).sum())


def target_step() -> Step:
    """Return b'a = <V diag(a) V', YY'>."""
    V = grid("v", 2, 2)
    Y = grid("y", 2, 2)
    a = grid("a", 2)
    b = ((Y.T @ V) ** 2).sum(axis=0)
    K = (V * a) @ V.T
    says = "sum_i a_i sum_c (Y_c'v_i)^2 = <sum_i a_i v_i v_i', YY'>"
    return identity(says, b @ a, (K * (Y @ Y.T)).sum())


def order_step() -> Step:
    """Return that an entry of C is sigma times the one below it."""
    (sigma,) = symbols("sigma")
    powers = [as_expression(1), *(sigma**d for d in range(1, 5))]
    return identity(
        "sigma^d - sigma sigma^(d-1) = 0, d = 1 to 4",
        np.array([above - sigma * below for below, above in pairwise(powers)]),
        0,
    )


ORDER = (
    "An entry (i, k) of (I - sigma U) C, U the shift, depends on k - i only: it is 0 below the diagonal, 1 on it "
    "and sigma^d - sigma sigma^(d-1) = 0 at the distance d above it, as the step shows for d <= 4. "
)


def slack_transform() -> Proof:
    return Proof(
        "every m and sigma",
        ORDER
        + "So alpha = Cs is the one solution of alpha_i - sigma alpha_(i+1) = s_i, alpha_(m+1) = 0.",
        (order_step(),),
    )


def order_is_an_image() -> Proof:
    return Proof(
        "every m and sigma >= 0",
        ORDER
        + "So alpha = Cs is equivalent to s = (I - sigma U) alpha, whose entries are alpha_i - sigma alpha_(i+1) "
        "and alpha_m: s >= 0 is the order together with alpha_m >= 0. Where it holds alpha >= 0, for C >= 0.",
        (order_step(),),
    )


def f_is_positive() -> Proof:
    return Proof(EVERY_SIZE, f"a'Fa is the square of a norm. {TWO}", (form_step(),))


def b_is_a_sum_of_squares() -> Proof:
    V = grid("v", 2, 1)
    Y = grid("y", 2, 2)
    left = ((Y.T @ V) ** 2).sum()
    right = (V.T @ (Y @ Y.T) @ V)[0, 0]
    return Proof(EVERY_SIZE, TWO, (identity("sum_c (Y_c'v)^2 = v'YY'v", left, right),))


def alignment_is_a_ratio() -> Proof:
    return Proof(
        EVERY_SIZE,
        "The alignment is <K, YY'> / (|K| |YY'|); the steps are its numerator and the square of |K|. "
        f"|YY'|^2 = sum_k n_k^2, for YY' has a block of n_k^2 ones for each class. {TWO}",
        (target_step(), form_step()),
    )


def multiplier_is_positive() -> Proof:
    n, K, T = symbols("n K T")
    equations = (K * T - 1, T**2 - n)
    step = at_least(
        "n (n |K|^2 - 1) >= 0 where <K, T> = 1 and |T|^2 = n",
        n * (n * K**2 - 1),
        zero=equations,
        by=[Square(1, n * K - T)],
        using=[(2 * n, equations[0]), (as_expression(-1), equations[1])],
        at={"n": 1, "K": 1, "T": 1},
        vectors="K T",
    )
    return Proof(
        EVERY_SIZE,
        "K = V diag(alpha) V' and T = YY' have <K, T> = b'alpha = 1, |K|^2 = alpha'F alpha and |T|^2 = n = "
        "sum_k n_k^2 > 0.",
        (step, form_step(), target_step()),
    )


def fixed_points_are_feasible() -> Proof:
    F = grid("F", 2, 2, symmetric=True)
    a = grid("a", 2)
    b = grid("b", 2)
    (lam,) = symbols("lambda")
    fixed = [F[i] @ a - lam * b[i] for i in range(2)]
    gap = a @ F @ a - lam * (b @ a)

    def side(says: str, sign: int) -> Step:
        using = [(sign * a[i], fixed[i]) for i in range(2)]
        return at_least(says, sign * gap, zero=fixed, using=using)

    return Proof(
        "every dimension",
        "Where the update leaves a positive alpha as it is, (F alpha)_i = lambda b_i for every i. Then "
        "lambda b'alpha = "
        "alpha'F alpha: each index contributes alpha_i times its equation, so that two decide (Lemma I). With lambda = "
        "alpha'F alpha > 0 this is b'alpha = 1.",
        (
            side("alpha'F alpha >= lambda b'alpha where F alpha = lambda b", 1),
            side("alpha'F alpha <= lambda b'alpha where F alpha = lambda b", -1),
        ),
    )


def majorant_step() -> Step:
    """Return sum_ij F_ij a_i r_i a_j r_j <= sum_i (Fa)_i a_i r_i^2."""
    F = grid("F", 2, 2, symmetric=True)
    a = grid("a", 2)
    r = grid("r", 2)
    above = total((F @ a)[i] * a[i] * r[i] ** 2 for i in range(2))
    given = (F[0, 1], a[0], a[1])
    return at_least(
        "sum_i (Fa)_i a_i r_i^2 >= sum_ij F_ij a_i r_i a_j r_j where F >= 0 and a >= 0",
        above - (a * r) @ F @ (a * r),
        given=given,
        by=[Square(1, r[0] - r[1], given)],
    )


MAJORANT = (
    "a = alpha, r_i = lambda b_i / (Fa)_i, and the new point is a_i r_i. The first step bounds its quadratic form; "
    "the difference is the sum over pairs of F_ij a_i a_j (r_i - r_j)^2 (Lemma I). "
)


def lagrangian_decreases() -> Proof:
    f, a, r = symbols("f a r")
    return Proof(
        "every dimension, F with entries >= 0 (here squares), alpha > 0",
        MAJORANT
        + "The second compares, for each index, what is then left of a'Fa - 2 lambda b'a: lambda b_i = f r with "
        "f = (Fa)_i.",
        (
            majorant_step(),
            at_least(
                "f a r^2 - 2 (f r)(a r) <= f a - 2 (f r) a where f >= 0 and a >= 0",
                f * a - 2 * (f * r) * a - (f * a * r**2 - 2 * (f * r) * (a * r)),
                given=(f, a),
                by=[Square(1, 1 - r, (f, a))],
            ),
        ),
    )


def values_fall() -> Proof:
    return Proof(
        "every dimension, F with entries >= 0 (here squares), alpha > 0 with b'alpha = 1",
        MAJORANT
        + "With lambda = a'Fa the form of the new point a+ is at most sum_i (Fa)_i a_i r_i^2 = lambda b'a+. By the "
        "second step, with f = Fa, b'a+ = lambda sum_i b_i^2 a_i / f_i >= lambda (b'a)^2 / a'Fa = 1 (a sum over pairs "
        "again). Step (3) divides a+ by b'a+, so that the value becomes at most lambda / b'a+ <= lambda. It is that of "
        "a point with b'alpha = 1 and alpha >= 0, so not below the minimum.",
        (
            majorant_step(),
            pairwise_cauchy_schwarz("Cauchy and Schwarz with weights a, two indices"),
        ),
    )


def products_need_no_matrix() -> Proof:
    V = grid("v", 2, 2)
    a = grid("a", 2)
    K = (V * a) @ V.T
    left = ((V.T @ V) ** 2) @ a
    right = [V[:, i] @ K @ V[:, i] for i in range(2)]
    says = "sum_j (v_i'v_j)^2 a_j = v_i'(sum_j a_j v_j v_j')v_i"
    return Proof(EVERY_SIZE, TWO, (identity(says, left, np.array(right)),))
