"""The dual of LogDet kernel learning with pairs: value, gradient, curvature by blocks, and exact steps of single rows.

    minimise over W > 0   tr W - logdet W - r   subject to   s_c (q_c - 1) <= 0,   q_c = z_c'R'W R z_c / t_c

(`klopt.problems._logdet.data` has the notation). The Lagrangian is least at W = M^-1, which leaves

    f(x) = -logdet M + sum_c s_c x_c  over  x >= 0,     M = I + R A R',   A = sum_c s_c x_c z_c z_c' / t_c

to be minimised, the multipliers being x_c / t_c. With K = R'WR,

    f'_c = -s_c (q_c - 1),      f''_cd = s_c s_d (z_c'K z_d)^2 / (t_c t_d).

One row alone has its least f at the distance eta = s (1 - 1/q), but not below x_c = 0; K changes by
rank one. That is Bregman's projection with its correction.

Slack: the targets t_c may move to u_c t_c at the price weight (u - log u - 1). Then s_c x_c becomes
-weight log(1 - s_c x_c / weight), and eta = s weight / (1 + weight) (1 - s x / weight - 1/q).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.cones import Feature
from klopt.problems._logdet.data import PairEvaluation, Pairs
from klopt.problems._logdet.proof import Feasible, feasible, ray_at, ray_flaw, violated_cycle

__all__ = ["LogDetDual", "PairRows"]


@dataclass(frozen=True, eq=False)
class LogDetDual(Pairs):
    """f, for pairs (first[c], second[c]) of the columns of R; an infinite weight makes the constraints hard.

    >>> dual = LogDetDual(np.eye(2), [0], [1], [1.0], [1.0])
    >>> round(dual.value(np.array([0.5])), 6)
    -0.193147
    """

    _last: list[PairEvaluation] = field(default_factory=list, init=False, repr=False)

    @property
    def feature(self) -> Feature:
        """What a backend must offer."""
        return Feature.ROWS

    def near(self, x: FloatArray) -> PairEvaluation:
        """Return the function near x; the last answer is kept."""
        if not (self._last and np.array_equal(self._last[0].x, x)):
            self._last[:] = [PairEvaluation.at(self, x)]
        return self._last[0]

    def value(self, x: FloatArray) -> float:
        return self.near(x).value

    def gradient(self, x: FloatArray) -> FloatArray:
        return self.near(x).gradient

    def rows(self, x: FloatArray) -> PairRows:
        """Return x with its kernel, ready to move one row after the other."""
        return PairRows(self, x)

    def feasible(self, x: FloatArray) -> Feasible | None:
        """Return a W that keeps every constraint, made from W(x), with its objective; None where none was found."""
        return feasible(self.near(x))

    def bound(self, x: FloatArray) -> float:
        """Return a lower bound of the least f: minus the objective of a feasible W."""
        found = self.feasible(x)
        return -np.inf if found is None else -found.value

    def ray(self, x: FloatArray | None = None) -> tuple[FloatArray, str] | None:
        """Return a direction along which f falls for ever and why: a short cut between points, or one found at x."""
        return violated_cycle(self) if x is None else ray_at(self, x)

    def ray_flaw(self, ray: FloatArray) -> str:
        """Return "" if f falls for ever along the ray, which proves that no W is feasible, else what is wrong."""
        return ray_flaw(self, ray)

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_last": []}


class PairRows:
    """Multipliers x and the kernel that belongs to them; `project` moves one multiplier to its best place."""

    def __init__(self, dual: LogDetDual, x: FloatArray) -> None:
        from scipy.linalg.blas import dger

        self.dual, self.x, self._update = dual, x.copy(), dger
        self._ends: list[tuple[int, int, float, float]] = list(
            zip(
                dual.first.tolist(),
                dual.second.tolist(),
                dual.sign.tolist(),
                dual.target.tolist(),
                strict=True,
            )
        )
        self._share = 1.0 if dual.is_hard else dual.weight / (1 + dual.weight)
        self.refresh()

    def refresh(self) -> None:
        """Compute the kernel from x afresh: rank-one changes add up their rounding."""
        self._K: Any = np.asfortranarray(self.dual.near(self.x).kernel)

    def project(self, row: int, corrected: bool = True) -> float:
        """Move x[row] to where f is least along it and return by how much.

        Uncorrected, x[row] may only grow: the kernel is projected onto a constraint that it breaks,
        and what an earlier projection did too much is never taken back.
        """
        i, j, s, t = self._ends[row]
        K = self._K
        q, x = (K[i, i] + K[j, j] - 2 * K[i, j]) / t, self.x[row]
        if q <= 0:
            return 0.0
        eta = max(
            s * self._share * (1 - s * x / self.dual.weight - 1 / q), -x if corrected else 0.0
        )
        if eta == 0:
            return 0.0
        v = K[:, i] - K[:, j]
        self._update(-(s * eta / t) / (1 + s * eta * q), v, v, a=K, overwrite_a=1)
        self.x[row] = x + eta
        return float(eta)
