"""SCG-LDK for many gammas, which share what does not depend on gamma.

One tridiagonal form K0 = Q t Q' serves all, after which a gamma costs O(n k), and n^3 / 3 where it is
to be proven. Products with kernels,

    K C = Q (m C~ + gamma B~ H B~'C~),   m = (I - (I + gamma t)^-1) / gamma,
    C~ = Q'C,   B~ = m Q'U,

go through Q once for all gammas. Where K0 = Phi Phi' is thin, the gammas share Phi'S Phi instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, matrix
from klopt.errors import InvalidProblem
from klopt.model.problem import Point, Problem
from klopt.problems._scg.proof import FeatureObjective, GroupObjective, TridiagonalKernel

__all__ = ["GammaPath"]

P = TypeVar("P", bound=Problem)


@dataclass(frozen=True, eq=False)
class GammaPath(Generic[P]):
    """One problem for each gamma; they share what does not depend on it.

    Parameters
    ----------
    problems
        The problems, in the order of the gammas.
    objectives
        Their objectives: all by groups or all by features.
    tridiagonal
        The form of K0 that they share; None by features.
    """

    problems: tuple[P, ...]
    objectives: tuple[GroupObjective | FeatureObjective, ...]
    tridiagonal: TridiagonalKernel | None

    def __iter__(self) -> Iterator[P]:
        return iter(self.problems)

    def __len__(self) -> int:
        return len(self.problems)

    def __getitem__(self, index: int) -> P:
        return self.problems[index]

    def apply(self, points: Sequence[Point], C: npt.ArrayLike) -> FloatArray:
        """Return K C of every gamma, gammas x n x columns, from the solutions of the problems."""
        if len(points) != len(self.problems):
            raise InvalidProblem(
                f"{len(points)} points for {len(self.problems)} gammas; give one each"
            )
        given = np.asarray(C, dtype=float)
        columns = matrix("C", given[:, None] if given.ndim == 1 else given)
        if self.tridiagonal is None:
            products = self._by_features(points, columns)
        else:
            products = self._by_groups(self.tridiagonal, points, columns)
        by_gamma = products.reshape(len(products), len(points), -1)
        return np.moveaxis(by_gamma, 0, 1)

    def _by_features(self, points: Sequence[Point], columns: FloatArray) -> FloatArray:
        """The products side by side; Phi is multiplied by twice, not twice for each gamma."""
        first = self.objectives[0]
        assert isinstance(first, FeatureObjective)
        seen = first.Phi.T @ columns
        cores = [point.core @ (point.core.T @ seen) for point in points]
        return first.Phi @ np.concatenate(cores, axis=1)

    def _by_groups(
        self, tridiagonal: TridiagonalKernel, points: Sequence[Point], columns: FloatArray
    ) -> FloatArray:
        """The products side by side."""
        rotated = tridiagonal.rotate(columns)
        products = []
        for objective, point in zip(self.objectives, points, strict=True):
            assert isinstance(objective, GroupObjective)
            gamma = objective.gamma
            B = objective.B
            M_columns = tridiagonal.multiply(tridiagonal.solve(gamma, rotated))
            products.append(M_columns + B @ (gamma * point.change @ (B.T @ rotated)))
        return tridiagonal.rotate_back(np.concatenate(products, axis=1))
