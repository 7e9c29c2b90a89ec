"""SCG-LDK for many gammas, which share what does not depend on gamma.

One band form K0 = Q b Q' serves all (`klopt.proof.band_form`), after which a gamma costs O(n^2 k),
proven. Products with kernels,

    K C = Q b (I + gamma b)^-1 Q'C + gamma B H B'C,   B = K0 (I + gamma K0)^-1 U,

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
from klopt.problems._scg.function import MIN_DIFFERENCE
from klopt.problems._scg.proof import FeatureObjective, GroupObjective
from klopt.proof.band_form import BandFactor

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
    bands
        The factor of I + gamma K0 for each gamma, in the form of K0 that they share; none by
        features.
    """

    problems: tuple[P, ...]
    objectives: tuple[GroupObjective | FeatureObjective, ...]
    bands: tuple[BandFactor, ...]

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
        if self.bands:
            products = self._by_groups(points, columns)
        else:
            products = self._by_features(points, columns)
        by_gamma = products.reshape(len(products), len(points), -1)
        return np.moveaxis(by_gamma, 0, 1)

    def _by_features(self, points: Sequence[Point], columns: FloatArray) -> FloatArray:
        """The products side by side; Phi is multiplied by twice, not twice for each gamma."""
        first = self.objectives[0]
        assert isinstance(first, FeatureObjective)
        seen = first.Phi.T @ columns
        cores = [point.core @ (point.core.T @ seen) for point in points]
        return first.Phi @ np.concatenate(cores, axis=1)

    def _by_groups(self, points: Sequence[Point], columns: FloatArray) -> FloatArray:
        """The products side by side."""
        form = self.bands[0].form
        rotated = form.rotate(columns)
        M_columns = [_shrunken(band, rotated) for band in self.bands]
        products = form.rotate_back(np.concatenate(M_columns, axis=1))

        changes = []
        for objective, point in zip(self.objectives, points, strict=True):
            assert isinstance(objective, GroupObjective)
            B = objective.B
            changes.append(B @ (objective.gamma * point.change @ (B.T @ columns)))
        return products + np.concatenate(changes, axis=1)


def _shrunken(band: BandFactor, C: FloatArray) -> FloatArray:
    """B (I + gamma B)^-1 C."""
    solved = band.solve(C)
    if band.gamma * float(band.form.band[0].max()) < MIN_DIFFERENCE:
        return band.form.multiply(solved)
    return np.asarray((C - solved) / band.gamma)
