"""Counterexamples on Algorithms 1 and 2 in exact fractions and in balls (Liu et al., 2020).

Runs are followed for a diagonal K whose points come in pairs (2i, 2i+1) of equal K_ii = k_i and
opposite labels, and tau = 0. The points of a pair then have one multiplier s_i, A is the box 0 <= s
<= C, and the problem separates:

    h = 2 sum_i (s_i - k_i s_i^2 / 2 - k_i^2 s_i^4 / (16 eta)),   largest at an s_i <= min(C, 1 / k_i).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from klopt.errors import InvalidSettings
from klopt.papers.theorems.cases import ball, precise
from klopt.papers.theorems.claim import Case
from klopt.papers.theorems.liu2020.quantities import exact_gradient

__all__ = [
    "exact_alternating",
    "exact_beta",
    "exact_constant17",
    "exact_minus",
    "exact_minus_regression",
    "exact_stop",
]


@dataclass(frozen=True)
class SeparableProblem:
    """Problem (4) for pairs of points with a diagonal K, which separates; the data are balls."""

    k: tuple[Any, ...]
    C: Any
    eta: Any

    @classmethod
    def of(cls, case: Case) -> SeparableProblem:
        """Return the problem of a case; raise where the case is of another kind."""
        K = case["K"]
        y = case["y"]
        n = len(case["y"])
        diagonal = all(K[i, j] == 0 for i in range(n) for j in range(n) if i != j)
        firsts = range(0, n, 2)
        paired = n % 2 == 0 and all(
            K[i, i] == K[i + 1, i + 1] > 0 and y[i] == -y[i + 1] for i in firsts
        )
        if case["tau"] or not diagonal or not paired:
            raise InvalidSettings(
                "decided exactly for tau = 0 and a diagonal K of pairs with opposite labels only"
            )
        k = tuple(ball(K[i, i]) for i in firsts)
        return cls(k, ball(case["C"]), ball(case["eta"]))

    @property
    def L(self) -> Any:
        """The constant of Theorem 4."""
        n = 2 * len(self.k)
        top = max(self.k, key=float)
        norm = (2 * sum(k * k for k in self.k)).sqrt()
        return top * (n + 3 * n * self.C**2 * norm / (4 * self.eta))

    @property
    def reach(self) -> Any:
        """A bound of |alpha*|^2."""
        return 2 * sum(self.C.min(1 / k) ** 2 for k in self.k)

    def printed_bound(self, total: int) -> Any:
        """Return 8 L |alpha*|^2 / (T (T + 1)), the bound of the gap after T steps."""
        return 8 * self.L * self.reach / (total * (total + 1))

    def value(self, s: list[Any]) -> Any:
        """Return h."""
        pairs = zip(self.k, s, strict=True)
        return 2 * sum(x - k * x * x / 2 - k * k * x**4 / (16 * self.eta) for k, x in pairs)

    def gradient(self, s: list[Any]) -> list[Any]:
        """Return the gradient, one entry for each pair."""
        return [1 - k * x - k * k * x**3 / (4 * self.eta) for k, x in zip(self.k, s, strict=True)]

    def within(self, s: list[Any]) -> list[Any]:
        """Return the projection on A."""
        return [x.max(ball(0)).min(self.C) for x in s]

    def best(self) -> Any:
        """Return h near the optimum, which is not above it."""
        s = [ball(0) + 1 / k for k in self.k]
        for _ in range(30):
            down = [k + 3 * k * k * x * x / (4 * self.eta) for k, x in zip(self.k, s, strict=True)]
            s = [(x + g / d).mid() for x, g, d in zip(s, self.gradient(s), down, strict=True)]
        return self.value(self.within(s))

    def run(self, total: int, sign: int) -> tuple[list[Any], list[Any]]:
        """Return theta and beta after so many steps."""
        L = self.L
        s = [ball(0)] * len(self.k)
        gathered = s
        theta = s
        beta = s
        for t in range(total):
            g = self.gradient(s)
            theta = self.within([x + d / L for x, d in zip(s, g, strict=True)])
            gathered = [x + (t + 1) * d for x, d in zip(gathered, g, strict=True)]
            beta = self.within([sign * x / (2 * L) for x in gathered])
            s = [((t + 1) * a + 2 * b) / (t + 3) for a, b in zip(theta, beta, strict=True)]
        return theta, beta


def exact_minus(case: Case) -> tuple[Any, Any]:
    """Return the gap of theta after `steps` steps, minus sign in line 7, and the printed bound."""
    with precise():
        problem = SeparableProblem.of(case)
        total = int(case["steps"])
        theta, _ = problem.run(total, -1)
        return problem.best() - problem.value(theta), problem.printed_bound(total)


def exact_beta(case: Case) -> tuple[Any, Any]:
    """Return the gap of beta after `steps` steps, plus sign in line 7, and the printed bound."""
    with precise():
        problem = SeparableProblem.of(case)
        total = int(case["steps"])
        _, beta = problem.run(total, 1)
        return problem.best() - problem.value(beta), problem.printed_bound(total)


def exact_stop(case: Case) -> tuple[Any, Any]:
    """Return 9/10 of h near the optimum, and h after the first step.

    That step must be short enough for the stopping rule to end the run.
    """
    problem = SeparableProblem.of(case)
    first = problem.within([2 / (3 * problem.L)] * len(problem.k))
    if not 2 * sum(x * x for x in first) <= ball(1) / 10**8:
        raise InvalidSettings("the first step does not stop the run")
    return problem.best() * 9 / 10, problem.value(first)


def exact_constant17(case: Case) -> tuple[Any, Any]:
    """Return both sides of |grad - grad'|^2 <= L^2 |alpha - alpha'|^2.

    tau is 0 and K a multiple of I.
    """
    one = case["alpha"]
    two = case["other"]
    n = len(case["y"])
    K = case["K"]
    pairs = [(i, j) for i in range(n) for j in range(n)]
    if case["tau"] or any(K[i, j] != K[0, 0] * (i == j) for i, j in pairs):
        raise InvalidSettings("decided exactly for a multiple of I and tau = 0 only")

    gradients = zip(exact_gradient(case, one), exact_gradient(case, two), strict=True)
    left = sum((p - q) ** 2 for p, q in gradients)
    L = n + n * case["C"] ** 2 / (4 * case["eta"]) * K[0, 0]
    right = L * L * sum((one[i] - two[i]) ** 2 for i in range(n))
    return left, right


def exact_alternating(case: Case) -> tuple[Any, Any]:
    """Return the squared distances from v of the limit of alternating projections and of P_A(v).

    With two points of different classes A is a segment of the diagonal, so that P_A(v) is the
    clipped mean.
    """
    v = case["v"]
    y = case["y"]
    C = case["C"]
    n = len(case["y"])
    if n != 2 or y[0] + y[1] != 0:
        raise InvalidSettings("decided exactly for two points of different classes only")
    point = list(v)
    for _ in range(100):
        point = [min(max(x, 0), C) for x in point]
        inside = sum(y[i] * point[i] for i in range(n))
        if inside == 0:
            break
        point = [point[i] - inside / n * y[i] for i in range(n)]
    if inside != 0:
        raise InvalidSettings("the sweeps have no exact limit after 100")

    middle = min(max((v[0] + v[1]) / 2, 0), C)
    of_limit = sum((v[i] - point[i]) ** 2 for i in range(n))
    of_projection = sum((v[i] - middle) ** 2 for i in range(n))
    return of_limit, of_projection


def exact_minus_regression(case: Case) -> tuple[Any, Any]:
    """Return the gap of theta of Algorithm 2, minus sign, after `steps` steps and its bound.

    For K = kI and targets Y, -Y every iterate has up = (u, d) and down = (d, u), which keeps to
    1'(up - down) = 0 by itself, and a projection is a clipping. With beta = u - d, h = 2 (Y beta -
    epsilon (u + d) - k beta^2 / 2 - k^2 beta^4 / (16 eta)); any point bounds the optimum from
    below, and |beta*| is at most Y / k.
    """
    K = case["K"]
    y = case["y"]
    opposite = len(y) == 2 and y[0] == -y[1] and y[0] > 0
    if not opposite or K[0, 1] != 0 or K[0, 0] != K[1, 1] or case["tau"]:
        raise InvalidSettings("decided exactly for K = kI, two opposite targets and tau = 0 only")
    with precise():
        k, Y, C, eta, epsilon = (
            ball(x) for x in (K[0, 0], y[0], case["C"], case["eta"], case["epsilon"])
        )
        L = 4 * k * (2 + 18 * C**2 * ball(2).sqrt() * k / (4 * eta))
        u = d = up = down = ball(0)
        total = int(case["steps"])

        def value(u: Any, d: Any) -> Any:
            beta = u - d
            return 2 * (
                Y * beta - epsilon * (u + d) - k * beta**2 / 2 - k**2 * beta**4 / (16 * eta)
            )

        for t in range(total):
            rest = Y - k * (u - d) - k**2 * (u - d) ** 3 / (4 * eta)
            gradients = rest - epsilon, -rest - epsilon
            theta = [
                (x + g / L).max(ball(0)).min(C) for x, g in zip((u, d), gradients, strict=True)
            ]
            up = up + (t + 1) * gradients[0]
            down = down + (t + 1) * gradients[1]
            beta = [(-x / (2 * L)).max(ball(0)).min(C) for x in (up, down)]
            u, d = (((t + 1) * a + 2 * b) / (t + 3) for a, b in zip(theta, beta, strict=True))
        good = max((value(C * j / 64, ball(0)) for j in range(65)), key=float)
        return good - value(*theta), 8 * L * 2 * (Y / k) ** 2 / (total * (total + 1))
