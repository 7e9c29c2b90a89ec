"""Counterexamples to Mao and Tsang (2010) in exact fractions and in balls."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, cast

import numpy as np

from klopt.engine.pipeline import solve
from klopt.errors import InvalidSettings
from klopt.papers.theorems.cases import ball, given
from klopt.papers.theorems.claim import Case
from klopt.papers.theorems.mao2010.graphs import labels_of, laplacian
from klopt.problems import SpectralRls

__all__ = ["exact_commuting", "exact_falling", "exact_rotated", "exact_schur"]


def exact_schur(case: Case) -> tuple[Any, Any]:
    """Return the optimum of the SDP as printed and the value of (6) at K = 0.

    mu is so large that K = 0 is optimal.

    L + ridge I >= ridge I bounds what the dual asks for, C^2 y'(L + ridge I)^-1 y <= mu, without an
    inverse.
    """
    square = sum(case["y"] ** 2)
    C = case["C"]
    if C * C * square > case["mu"] * case["ridge"]:
        raise InvalidSettings("decided exactly where mu is at least C^2 y'y / ridge only")
    return C * square, C * square / 2


def exact_falling(case: Case) -> tuple[Any, Any]:
    """Return (7) at K = 10 qq' and at K = 10^4 qq' as balls; q = D^1/2 1 has Lq = 0."""
    y = case["y"]
    C = ball(case["C"])
    q = [ball(sum(row)).sqrt() for row in case["S"]]
    seen = sum((root * ball(target) for root, target in zip(q, y, strict=True)), ball(0))
    size = ball(sum(case["S"].ravel()))

    def value(t: int) -> Any:
        return C * ball(sum(y**2)) / 2 - C * C * t * seen * seen / (1 + C * t * size) / 2

    return value(10), value(10**4)


def exact_rotated(case: Case) -> tuple[Any, Any]:
    """Return the change of K_11 of (8) when an eigenbasis is rotated, and 0.

    The graph is a triangle; the rotation has cosine 3/5 and sine 4/5.
    """
    pairs = [(i, j) for i in range(3) for j in range(3)]
    if len(case["y"]) != 3 or any(case["S"][i, j] != (i != j) for i, j in pairs):
        raise InvalidSettings("decided exactly for a triangle only")
    B = Fraction(3, 2) + case["ridge"]
    C = ball(case["C"])
    mu = case["mu"]
    y = [ball(target) for target in case["y"]]
    first = ball(2).sqrt()
    second = ball(6).sqrt()
    u = [1 / first, -1 / first, ball(0)]
    v = [1 / second, 1 / second, -2 / second]

    def corner(c: Fraction, s: Fraction) -> Any:
        total = ball(0)
        for a, b in ((c, s), (-s, c)):
            w = [ball(a) * p + ball(b) * q for p, q in zip(u, v, strict=True)]
            seen = sum((p * q for p, q in zip(w, y, strict=True)), ball(0))
            eigenvalue = (abs(seen) / ball(2 * mu * B).sqrt() - 1 / C).max(ball(0))
            total += eigenvalue * w[0] * w[0]
        return total

    plain = corner(Fraction(1), Fraction(0))
    rotated = corner(Fraction(3, 5), Fraction(4, 5))
    return abs(plain - rotated), ball(0)


@given
def better_factor(case: Case) -> Any:
    """Return f for which ff' is klopt's kernel, its entries as fractions."""
    plain = {name: np.asarray(entry, float) for name, entry in case.items()}
    numbers = (float(case["C"]), float(case["mu"]))
    ridge = float(case["ridge"])
    problem = SpectralRls(laplacian(plain), labels_of(plain), *numbers, "padded", ridge=ridge)
    factor = cast(Any, solve(problem).point).factor[:, 0]
    return np.array([Fraction(float(entry)) for entry in factor], dtype=object)


def exact_commuting(case: Case) -> tuple[Any, Any]:
    """Return the minimum of (7) over kernels that commute with L and its value at a better one.

    For a graph whose degrees are equal and whose Laplacian has the eigenvalues 0, 1 and 2, such as
    a ring of four points, what the labels see of them is a polynomial of L. The better kernel is
    klopt's, its entries as fractions.
    """
    S = case["S"]
    y = case["y"]
    mu = case["mu"]
    C = case["C"]
    n = len(y)
    degree = sum(S[0])
    L = np.array(
        [[Fraction(i == j) - S[i, j] / degree for j in range(n)] for i in range(n)], dtype=object
    )
    one = np.array([[Fraction(i == j) for j in range(n)] for i in range(n)], dtype=object)
    if any(sum(row) != degree for row in S) or (L @ (L - one) @ (L - 2 * one)).any():
        raise InvalidSettings("decided exactly for graphs like a ring of four points only")
    shares = (
        y @ (L - one) @ (L - 2 * one) @ y / 2,
        y @ L @ (2 * one - L) @ y,
        y @ L @ (L - one) @ y / 2,
    )
    left = ball(0)
    for value, share in enumerate(shares):
        weight = mu * (value + case["ridge"])
        if share and share * C * C < 2 * weight:
            raise InvalidSettings("decided exactly where no part of the spectrum is cut off only")
        left += ball(2 * weight * share).sqrt() - ball(weight / C) if share else ball(0)
    f = better_factor(case)
    fit = C * (y @ y) / 2 - C * C * (f @ y) ** 2 / (1 + C * (f @ f)) / 2
    return left, ball(fit + mu * (f @ L @ f + case["ridge"] * (f @ f)))
