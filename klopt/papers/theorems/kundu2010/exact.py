"""Counterexamples for two points in rational and ball arithmetic (Kundu et al., 2010).

A 2 x 2 matrix of trace tau is (tau/2) I + x sz + z sx, sz = diag(1, -1), sx = [[0, 1], [1, 0]]; it
is kept as (x, z). Its eigenvalues are tau/2 +- r, r = |(x, z)|. The support vector machine
depends on K only by k = (1, -1) K (1, -1)' = tau - 2z: a is `amount` times (1, -1).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from klopt.errors import InvalidSettings
from klopt.papers.theorems.cases import ball, precise
from klopt.papers.theorems.claim import Case

__all__ = [
    "block_l1",
    "block_linf",
    "gradient_norms",
    "printed_linearisation",
    "printed_prox",
    "printed_run",
    "rescaled",
    "spectral_run",
    "squared_distances",
    "subgradient_gap",
    "unbounded_gradient",
]

PRECISION_BITS = 256
"""Precision of the balls of a run."""


class TracelessPart(NamedTuple):
    """The traceless part of a symmetric 2 x 2 matrix."""

    x: Any
    z: Any

    def size(self) -> Any:
        """Return the radius r."""
        return (self.x * self.x + self.z * self.z).sqrt()

    def times(self, factor: Any) -> TracelessPart:
        """Return the pair multiplied."""
        return TracelessPart(factor * self.x, factor * self.z)


def squared_distances(kernels: Any) -> list[Any]:
    """Return k = (1, -1) K (1, -1)' of each kernel."""
    return [K[0, 0] + K[1, 1] - 2 * K[0, 1] for K in kernels]


def value_at(C: Any, square: Any) -> Any:
    """Return max over 0 <= a <= C of 2a - a^2 square / 2; of fractions, square > 0."""
    amount = min(C, 2 / square)
    return 2 * amount - amount * amount * square / 2


def block_l1(case: Case, kernels: Any) -> Any:
    """Return Omega (5): the support vector machine with the largest k_i, as a fraction."""
    return value_at(Fraction(case["C"]), max(squared_distances(kernels)))


def block_linf(case: Case, kernels: Any) -> Any:
    """Return Omega (10) as a ball: the square is (sum_i sqrt k_i)^2."""
    return exact_svm(ball(case["C"]), [ball(k) for k in squared_distances(kernels)])[0]


def exact_svm(C: Any, k: Sequence[Any]) -> tuple[Any, Any, list[Any]]:
    """Return Omega (10), the amount and gamma, as balls."""
    roots = [one.sqrt() for one in k]
    s = sum(roots[1:], roots[0])
    amount = C.min(2 / (s * s))
    return 2 * amount - amount * amount * s * s / 2, amount, [root / s for root in roots]


def unbounded_gradient(case: Case) -> tuple[Any, Any]:
    """Return |F(K) - F(K')| and L ||K - K'||.

    Only the second kernel moves, from k = (tau / L)^2 to k = 0.
    """
    C, tau, L = (ball(case[name]) for name in ("C", "tau", "L"))
    thin = (tau / L) * (tau / L)
    zero = ball(0)
    apart = exact_svm(C, [tau, zero])[0] - exact_svm(C, [tau, thin])[0]
    return abs(apart), L * thin / ball(2).sqrt()


def printed_linearisation(case: Case) -> tuple[Any, Any]:
    """Return F(K) + <F'(K) of (12), K' - K> and F(K'), for the squared loss."""
    C, rho, S, K, other = (case[name] for name in ("C", "rho", "S", "K", "other"))
    assert case["loss"] == "squared"
    (first, amount, gamma), (second, _, _) = (
        exact_svm(ball(C), [ball(k) for k in squared_distances(M)]) for M in (K, other)
    )
    for i in range(len(S)):
        move = other[i] - K[i]
        X = K[i] - S[i]
        first += ball(rho * (X * X).sum()) + ball(2 * (X * move).sum())
        first -= amount * amount * ball(squared_distances([move])[0]) / (2 * gamma[i])
        second += ball(rho * ((other[i] - S[i]) ** 2).sum())
    return first, second


def rescaled(case: Case) -> tuple[Any, Any]:
    """Return the cost of (3) rescaled to trace tau and of the projection on the simplex.

    S is diagonal.
    """
    S = case["S"]
    tau = Fraction(case["tau"])
    assert len(S) == 1
    assert not any(case["alpha"])
    assert not S[0][0, 1]
    lam = [max(S[0][i, i], Fraction(0)) for i in (0, 1)]
    scaled = [tau * value / sum(lam) for value in lam]
    nearest = min(max((S[0][0, 0] - S[0][1, 1] + tau) / 2, Fraction(0)), tau)
    cost = [
        sum((p - S[0][i, i]) ** 2 for i, p in enumerate(point))
        for point in (scaled, (nearest, tau - nearest))
    ]
    return case["rho"] * cost[0], case["rho"] * cost[1]


def gradient_norms(case: Case) -> tuple[Any, Any]:
    """Return the norm of aa'/2 at K = (tau/n) I for n points and for two: n amount^2 / 2."""

    def norm(n: int) -> Any:
        amount = min(case["C"], Fraction(n) / case["tau"])
        return n * amount * amount / 2

    return norm(int(case["n"])), norm(2)


def pair_of(M: Any) -> TracelessPart:
    """Return the traceless part of a matrix of fractions, as balls."""
    return TracelessPart(ball((M[0, 0] - M[1, 1]) / 2), ball(M[0, 1]))


def sign(number: Any) -> int:
    """Return the sign of a ball that does not contain zero."""
    if not (number > 0 or number < 0):
        raise InvalidSettings("a ball contains zero: more bits are needed")
    return 1 if number > 0 else -1


class TwoPointProblem(NamedTuple):
    """F with the entrywise loss, for blocks S_i of trace tau, as balls."""

    S: tuple[TracelessPart, ...]
    C: Any
    rho: Any
    tau: Any

    @classmethod
    def of(cls, case: Case) -> TwoPointProblem:
        """Return the problem of a case, whose S_i are kernels of trace tau."""
        assert case["loss"] == "l1"
        assert all(S[0, 0] + S[1, 1] == case["tau"] for S in case["S"])
        assert all(S[0, 0] * S[1, 1] >= S[0, 1] ** 2 for S in case["S"])
        return cls(
            tuple(map(pair_of, case["S"])),
            *(ball(Fraction(case[name])) for name in ("C", "rho", "tau")),
        )

    def value(self, kernels: Sequence[TracelessPart]) -> Any:
        """Return F."""
        apart = [
            2 * abs(K.x - S.x) + 2 * abs(K.z - S.z) for K, S in zip(kernels, self.S, strict=True)
        ]
        value, _, _ = exact_svm(self.C, self.squares(kernels))
        return value + self.rho * sum(apart, ball(0))

    def squares(self, kernels: Sequence[TracelessPart]) -> list[Any]:
        """Return k = (1, -1) K (1, -1)' of each kernel."""
        return [self.tau - 2 * K.z for K in kernels]

    def gradients(self, kernels: Sequence[TracelessPart], weight: Any) -> list[TracelessPart]:
        """Return the traceless parts of -aa' / (2 gamma_i) + weight L'(K_i - S_i)."""
        _, amount, gamma = exact_svm(self.C, self.squares(kernels))
        push = [amount * amount / (2 * one) for one in gamma]
        signs = [(sign(K.x - S.x), sign(K.z - S.z)) for K, S in zip(kernels, self.S, strict=True)]
        return [
            TracelessPart(weight * u, p + weight * v) for p, (u, v) in zip(push, signs, strict=True)
        ]

    def gradient_norms_at(self, kernels: Sequence[TracelessPart]) -> list[Any]:
        """Return the norms of the gradients.

        Their trace is that of -aa' / (2 gamma_i), since L' has none.
        """
        _, amount, gamma = exact_svm(self.C, self.squares(kernels))
        traces = [amount * amount / one for one in gamma]
        parts = self.gradients(kernels, self.rho)
        return [(t * t / 2 + 2 * p.size() ** 2).sqrt() for t, p in zip(traces, parts, strict=True)]


def printed_run(case: Case, L: Fraction, *, omits_rho: bool) -> tuple[Any, Any]:
    """Return the best value of Algorithm 1 (one S) or 2, and F(S_1..S_m) plus the printed bound.

    The eigenvalues of K_i are tau/2 +- (tau/2) tanh(w_i/2); w_i is the logarithm of their ratio.
    """
    with precise(PRECISION_BITS):
        problem = TwoPointProblem.of(case)
        lip = ball(L)
        m = len(case["S"])
        total = int(case["steps"])
        kernels = [TracelessPart(ball(0), ball(0))] * m
        w = [ball(0)] * m
        best = None
        for t in range(1, total + 1):
            value = problem.value(kernels)
            best = value if best is None else best.min(value)
            if not all(norm <= lip for norm in problem.gradient_norms_at(kernels)):
                raise InvalidSettings("the run meets a gradient above the Lipschitz constant")
            eta = (2 * ball(2).log() / (m * t)).sqrt() / lip
            weight = ball(1) if omits_rho else problem.rho
            for i, g in enumerate(problem.gradients(kernels, weight)):
                r = g.size()
                w[i] = w[i] - 2 * eta * r
                kernels[i] = g.times(problem.tau / 2 * (w[i] / 2).tanh() / r)
        bound = problem.tau * m * lip * (2 * ball(2).log() / total).sqrt()
        return best, problem.value(problem.S) + bound


def printed_prox(case: Case) -> tuple[Any, Any]:
    """Return the prox objective at the printed step and at the mirror-descent step.

    Of the two pairings of eigenvalues the printed step takes the better one.
    """
    with precise(PRECISION_BITS):
        problem = TwoPointProblem.of(case)
        K = pair_of(case["K"][0])
        eta = 1 / ball(Fraction(case["L"]))
        assert case["K"][0][0, 0] + case["K"][0][1, 1] == case["tau"]
        tau = problem.tau
        g = problem.gradients([K], problem.rho)[0]
        r = g.size()
        half = _half_log(K.size(), problem.tau)
        log_K = K.times(half / K.size())
        moved = TracelessPart(log_K.x - eta * g.x, log_K.z - eta * g.z)
        right = moved.times(tau / 2 * moved.size().tanh() / moved.size())
        # lam_+ / lam_- was exp(+-2 half) and becomes exp(2 (+-half - eta r)) along the gradient's
        # own axes.
        printed = [g.times(tau / 2 * (turn * half - eta * r).tanh() / r) for turn in (1, -1)]
        costs = [_prox(point, g, log_K, eta, tau) for point in printed]
        return costs[0].min(costs[1]), _prox(right, g, log_K, eta, tau)


def _half_log(r: Any, tau: Any) -> Any:
    return ((tau / 2 + r).log() - (tau / 2 - r).log()) / 2


def _prox(K: TracelessPart, g: TracelessPart, log_K: TracelessPart, eta: Any, tau: Any) -> Any:
    """eta <f', K> + tr K log K - tr K log K_t without the terms in tr K alone."""
    high = tau / 2 + K.size()
    low = tau / 2 - K.size()
    inner = 2 * (K.x * (eta * g.x - log_K.x) + K.z * (eta * g.z - log_K.z))
    return inner + high * high.log() + low * low.log()


def spectral_run(case: Case) -> tuple[Any, Any]:
    """Return the best value of Algorithm 3 as printed and g(tau, 0) plus the bound.

    There is one S = [[p, q], [q, p]].
    """
    with precise(PRECISION_BITS):
        (S,) = case["S"]
        total = int(case["steps"])
        assert S[0, 0] == S[1, 1]
        C, rho, tau, lip = (ball(Fraction(case[name])) for name in ("C", "rho", "tau", "L"))
        # The eigenvalues of (1, -1) and of (1, 1); k = 2 mu_1.
        lam = (ball(S[0, 0] - S[0, 1]), ball(S[0, 0] + S[0, 1]))

        def g(mu: Any) -> Any:
            value, _, _ = exact_svm(C, [2 * mu])
            return value + rho * ((mu - lam[0]) ** 2 + (tau - mu - lam[1]) ** 2)

        w = ball(0)
        best = None
        for t in range(1, total + 1):
            mu = tau / (1 + (-w).exp())
            value = g(mu)
            (_, amount, _) = exact_svm(C, [2 * mu])
            best = value if best is None else best.min(value)
            fit = -amount * amount
            losses = (2 * (mu - lam[0]), 2 * (tau - mu - lam[1]))
            if not (abs(fit + rho * losses[0]) <= lip and abs(rho * losses[1]) <= lip):
                raise InvalidSettings("the run meets a gradient above the Lipschitz constant")
            w = w - (2 * ball(2).log() / t).sqrt() / lip * (fit + losses[0] - losses[1])
        bound = tau * lip * (2 * ball(2).log() / total).sqrt()
        return best, g(ball(Fraction(case["near"]))) + bound


def subgradient_gap(case: Case) -> tuple[Any, Any]:
    """Return the gap of the subgradient method after T = 2 points, and L R / sqrt 2."""
    G = case["G"]
    c = case["c"]
    best = case["best"]
    assert case["T"] == 2
    assert c[0] > c[1]
    floor = max(
        sum(g * b for g, b in zip(row, best, strict=True)) + offset
        for row, offset in zip(G, c, strict=True)
    )
    R = ball(sum(b * b for b in best)).sqrt()
    norms = [ball(sum(g * g for g in row)).sqrt() for row in G]
    L = norms[0].max(norms[1])
    reach = [ball(sum(g * h for g, h in zip(row, G[0], strict=True))) * R / L for row in G]
    second = [ball(offset) - step for offset, step in zip(c, reach, strict=True)]
    after = second[0].max(second[1])
    return ball(c[0]).min(after) - ball(floor), L * R / ball(2).sqrt()
