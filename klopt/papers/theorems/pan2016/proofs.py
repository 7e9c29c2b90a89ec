"""Proofs of claims (Pan et al., 2016)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from klopt.papers.theorems.pan2016.tables import TABLE3, TABLE4_TEST, TABLE4_UNLABELLED
from klopt.papers.theorems.proofs.expression import as_expression, grid, symbols, total
from klopt.papers.theorems.proofs.inner_products import cauchy_schwarz, scale_invariance
from klopt.papers.theorems.proofs.proof import Proof, Square, at_least, identity, tabulated
from klopt.papers.theorems.proofs.tables import average_ranks, named, ratio_is_about, rounds_to

__all__ = [
    "alignment_is_a_cosine",
    "averages_of_table4",
    "constraints_of_labels",
    "factor_on_balance",
    "factor_on_breast",
    "laplacian_is_positive",
    "loss_is_linear_in_the_weights",
    "loss_is_trace_minus_target",
    "loss_is_twice_the_inner_product",
    "ranks_of_table3",
    "scale_of_target",
    "target_is_indefinite",
    "triangle",
]

ALL_KERNELS = "all kernels of any order"


def alignment_is_a_cosine() -> Proof:
    return Proof(
        f"{ALL_KERNELS} that are not 0, all factors a > 0",
        "The alignment is the inner product of K / |K| and K' / |K'|, vectors of norm 1 in the space of "
        "matrices. Its square does not change if K is multiplied by a, and its sign does not for a > 0.",
        (*cauchy_schwarz(), scale_invariance()),
    )


def scale_of_target() -> Proof:
    return Proof(
        f"{ALL_KERNELS}, all targets that are not 0, all a > 0",
        "The alignment itself does not change if the target is multiplied by a > 0: its square by the "
        "identity, with the target as x, its sign because a > 0. So no maximiser changes.",
        (scale_invariance(),),
    )


def triangle() -> Proof:
    u, x, y = symbols("u x y")
    given = (u - x**2, u - y**2)
    step = at_least(
        "|x + y|^2 <= 4u where |x|^2 <= u and |y|^2 <= u",
        4 * u - (x + y) ** 2,
        given=given,
        by=[Square(2, 1, given[:1]), Square(2, 1, given[1:]), Square(1, x - y)],
        vectors="x y",
    )
    return Proof(
        ALL_KERNELS,
        "A kernel is the Gram matrix of some vectors; x and y are the differences of those of i and j, and "
        "of j and k.",
        (step,),
    )


def target_is_indefinite() -> Proof:
    p, e, k = symbols("p e k")
    above = k - 3
    return Proof(
        "any number of points in k >= 3 classes, none of them empty",
        "Y_ij = 2 [same class] - 1, so that x'Yx = 2 |s|^2 - (1's)^2 with the sums s of x over the classes, and "
        "every s occurs. By the first step (p = |s|^2, e = 1's) the form is not negative on the hyperplane "
        "1's = 0, so that at most one eigenvalue is negative. By the second it is at most -3 at s = 1, where "
        "p = e = k, so that one is.",
        (
            at_least(
                "2p - e^2 >= 0 where p >= 0 and e = 0",
                2 * p - e**2,
                given=(p,),
                zero=(e,),
                by=[Square(2, 1, (p,))],
                using=[(-e, e)],
            ),
            at_least(
                "k^2 - 2k >= 3 where k >= 3",
                k**2 - 2 * k,
                3,
                given=(above,),
                by=[Square(1, above), Square(4, 1, (above,))],
                at={"k": 3},
            ),
        ),
    )


def laplacian_is_positive() -> Proof:
    n = 3
    W = grid("W", n, n, symmetric=True)
    z = grid("z", n)
    form = total(W[i].sum() * z[i] ** 2 for i in range(n)) - z @ W @ z
    pairs = [(i, j) for i in range(n) for j in range(i)]
    step = at_least(
        "sum_i D_i z_i^2 - sum_ij W_ij z_i z_j >= 0 where W >= 0 and D_i = sum_j W_ij, three points",
        form,
        given=[W[pair] for pair in pairs],
        by=[Square(1, z[i] - z[j], (W[i, j],)) for i, j in pairs],
    )
    return Proof(
        "any number of points, all symmetric W >= 0 without zero rows",
        "x'Sx is that form at z_i = x_i / D_ii^1/2. It is the sum over pairs of W_ij (z_i - z_j)^2 for every n: "
        "each monomial has two indices at most, so that its factor is that of three points (Lemma I). W = exp T "
        "is positive.",
        (step,),
    )


def loss_is_twice_the_inner_product() -> Proof:
    n = 3
    W = grid("W", n, n, symmetric=True)
    f = grid("f", n)
    loss = total(W[i, j] * (f[i] - f[j]) ** 2 for i in range(n) for j in range(n))
    inner = total(W[i].sum() * f[i] ** 2 for i in range(n)) - f @ W @ f
    return Proof(
        "any number of points, all symmetric W",
        "With f_i = phi_i / D_ii^1/2, D_ii = sum_j W_ij and S = I - D^-1/2 W D^-1/2 the inner product <K, S> is "
        "sum_i D_ii |f_i|^2 - sum_ij W_ij <f_i, f_j>. Each monomial has two indices at most (Lemma I) and two "
        "vectors (Lemma V).",
        (identity("sum_ij W_ij (f_i - f_j)^2 = 2 <K, S>, three points", loss, 2 * inner),),
    )


def loss_is_trace_minus_target() -> Proof:
    n = 2
    K = grid("K", n, n, symmetric=True)
    T = grid("T", n, n, symmetric=True)
    S = np.array([[as_expression(int(i == j)) - T[i, j] for j in range(n)] for i in range(n)])
    return Proof(
        "all kernels and targets of any order",
        "S = I - T' by its definition, T' = D^-1/2 W D^-1/2. Both sides are sums over two indices, so that two "
        "points decide (Lemma I).",
        (identity("<K, I - T'> = tr K - <K, T'>", (K * S).sum(), K.trace() - (K * T).sum()),),
    )


def loss_is_linear_in_the_weights() -> Proof:
    n = 2
    V = grid("v", n, n)
    S = grid("S", n, n, symmetric=True)
    mu = grid("mu", n)
    K = (V * mu) @ V.T
    costs = [V[:, i] @ S @ V[:, i] for i in range(n)]
    norms = [V[:, i] @ V[:, i] for i in range(n)]
    return Proof(
        "all orthonormal v_i, in any dimension and number",
        "Both identities are sums over two points and one eigenvector, so that two of each decide (Lemma I). "
        "tr(K_i S) = v_i'S v_i, and |v_i| = 1 makes the trace sum_i mu_i.",
        (
            identity("<K, S> = sum_i mu_i v_i'S v_i", (K * S).sum(), total(mu * costs)),
            identity("tr K = sum_i mu_i |v_i|^2", K.trace(), total(mu * norms)),
        ),
    )


def constraints_of_labels() -> Proof:
    (n,) = symbols("n")
    return Proof(
        "every number of labelled points",
        "One more point makes n more pairs, and no point makes none: by induction n points have n (n - 1) / 2.",
        (
            identity("(n + 1) n / 2 = n (n - 1) / 2 + n", (n + 1) * n / 2, n * (n - 1) / 2 + n),
            tabulated("1000 x 999 / 2 = 499500", {"pairs": 499_500}, [
                {"pairs": 2, "": -1000 * 999}, {"pairs": -2, "": 1000 * 999}]),
        ),
    )  # fmt: skip


def factor_on_balance() -> Proof:
    return ratio_is_about("OSK and SCG-OSK on balance, seconds", "15.68", "0.54", 30, "0.05")


def factor_on_breast() -> Proof:
    return ratio_is_about("LDK and SCG-LDK on breast, seconds", "252.14", "0.31", 800, "0.05")


def averages_of_table4() -> Proof:
    steps = []
    for name, column, mean in (
        ("unlabelled", TABLE4_UNLABELLED, "83.3"),
        ("test", TABLE4_TEST, "83.7"),
    ):
        entries = named("a", column)
        mean_of = dict.fromkeys(entries, Fraction(1, len(entries)))
        steps.append(
            tabulated(
                f"the mean of the column '{name}' is {mean}, rounded to one digit",
                entries,
                rounds_to(mean_of, mean, 1),
            )
        )
    return Proof("the printed table", "Sums of printed numbers.", tuple(steps))


def ranks_of_table3() -> Proof:
    told = ("5.35", "4.25", "5.20", "3.50", "6.10", "3.45", "6.20", "1.95")
    return average_ranks("Table 3", TABLE3, told, unit="0.1")
