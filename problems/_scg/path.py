"""SCG-LDK for many gammas: one tridiagonal form of K0, after which a gamma costs O(n k).

K0 = Q t Q' with t tridiagonal and Q orthogonal turns I + gamma K0 into Q (I + gamma t) Q', which is
solved in O(n) a column; all of `klopt.problems._scg.group` but K itself is the same with t and Q'U
for K0 and U. An eigendecomposition would serve as well, at two to three times the price. Products
with kernels,

    K C = Q (m C~ + gamma B~ H B~'C~),   m = (I - (I + gamma t)^-1) / gamma,   C~ = Q'C,   B~ = m Q'U,

go through Q once for all gammas. Where K0 = Phi Phi' is thin, the gammas share Phi'S Phi instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

import numpy as np
import numpy.typing as npt

from klopt.arrays import UNIT_ROUNDOFF, FloatArray, matrix, require_memory
from klopt.errors import InvalidProblem
from klopt.kernels.gram import Gram
from klopt.model.problem import Point, Problem
from klopt.problems._scg.features import FactorModel
from klopt.problems._scg.group import GroupModel
from klopt.problems._scg.split import Split

__all__ = ["GammaPath", "Tridiagonal"]

P = TypeVar("P", bound=Problem)


@dataclass(frozen=True, eq=False)
class Tridiagonal:
    """K0 = Q t Q' as LAPACK has it: the two diagonals of t, and Q as reflectors."""

    diagonal: FloatArray
    beside: FloatArray
    reflectors: FloatArray
    scales: FloatArray
    parts: Split
    QU: FloatArray
    """Q'U."""
    norm: float
    """||K0||_F."""
    floor: float

    @classmethod
    def of(cls, K0: Gram, parts: Split) -> Tridiagonal:
        """Return the tridiagonal form: 4/3 n^3 flops, one matrix."""
        from scipy.linalg.lapack import dsytrd

        n = K0.size
        require_memory(8.0 * n * n, f"the tridiagonal form of a kernel of {n} points")
        work = np.array(K0.matrix, order="F")
        reflectors, diagonal, beside, scales, _ = dsytrd(work, lower=1, overwrite_a=1, lwork=64 * n)
        norm = float(np.linalg.norm(K0.matrix))
        bare = cls(diagonal, beside, reflectors, scales, parts, np.zeros((n, 0)), norm, K0.floor)
        QU = bare.rotate(parts.U.toarray(), back=False)
        return cls(diagonal, beside, reflectors, scales, parts, QU, norm, K0.floor)

    def rotate(self, C: FloatArray, back: bool) -> FloatArray:
        """Return Q C (back) or Q'C."""
        from scipy.linalg.lapack import dormqr

        out = np.array(C, order="F")
        if len(out) > 1:  # Q leaves the first coordinate alone
            side = self.reflectors[1:, :-1], self.scales
            out[1:] = dormqr("L", "N" if back else "T", *side, out[1:], 64 * max(out.shape[1], 1))[
                0
            ]
        return out

    def solve(self, gamma: float, C: FloatArray) -> tuple[FloatArray, float]:
        """Return (I + gamma t)^-1 C and the logarithm of the determinant of I + gamma t."""
        from scipy.linalg.lapack import dpttrf, dpttrs

        pivots, lower, failed = dpttrf(1 + gamma * self.diagonal, gamma * self.beside)
        assert not failed, "I + gamma K0 has eigenvalues of at least 1 up to rounding"
        return dpttrs(pivots, lower, C)[0], float(np.log(pivots).sum())

    def multiply(self, C: FloatArray) -> FloatArray:
        """Return t C."""
        out = self.diagonal[:, None] * C
        out[:-1] += self.beside[:, None] * C[1:]
        out[1:] += self.beside[:, None] * C[:-1]
        return out

    def model(self, gamma: float) -> GroupModel:
        """Return the objective as a function of H."""
        n = self.diagonal.size
        V, logdet = self.solve(gamma, self.QU)
        norm = np.sqrt(n) + gamma * self.norm
        # The reflections are those of a matrix within about n u of K0.
        slack = 8 * np.sqrt(n) * (n + 5) * UNIT_ROUNDOFF * norm + 2 * gamma * n * -self.floor
        return GroupModel(
            self.parts.R, self.QU, V, self.multiply(V), gamma, logdet, float(slack), norm
        )


@dataclass(frozen=True, eq=False)
class GammaPath(Generic[P]):
    """One problem for each gamma; they share what does not depend on it."""

    problems: tuple[P, ...]
    models: tuple[GroupModel | FactorModel, ...]
    reduced: Tridiagonal | None

    def __iter__(self) -> Iterator[P]:
        return iter(self.problems)

    def __len__(self) -> int:
        return len(self.problems)

    def __getitem__(self, index: int) -> P:
        return self.problems[index]

    def apply(self, points: Sequence[Point], C: npt.ArrayLike) -> FloatArray:
        """Return K C of every gamma, gammas x n x columns, from the points that solve the problems."""
        if len(points) != len(self.problems):
            raise InvalidProblem(
                f"{len(points)} points for {len(self.problems)} gammas; give one each"
            )
        columns = np.asarray(C, dtype=float)
        columns = matrix("C", columns[:, None] if columns.ndim == 1 else columns)
        pairs = list(zip(self.models, points, strict=True))
        if self.reduced is None:
            thin = [(model, point.core) for model, point in pairs if isinstance(model, FactorModel)]
            Phi = thin[0][0].Phi
            seen = Phi.T @ columns
            out = Phi @ np.concatenate([core @ (core.T @ seen) for _, core in thin], axis=1)
        else:
            rotated = self.rotate(columns)
            groups = [
                (model, point.change) for model, point in pairs if isinstance(model, GroupModel)
            ]
            out = self.reduced.rotate(
                np.concatenate([self._product(*g, rotated) for g in groups], axis=1), back=True
            )
        return cast(FloatArray, np.moveaxis(out.reshape(len(out), len(pairs), -1), 0, 1))

    def rotate(self, C: FloatArray) -> FloatArray:
        """Return Q'C."""
        assert self.reduced is not None
        return self.reduced.rotate(C, back=False)

    def _product(self, model: GroupModel, H: FloatArray, rotated: FloatArray) -> FloatArray:
        assert self.reduced is not None
        M = self.reduced.multiply(self.reduced.solve(model.gamma, rotated)[0])
        return M + model.B @ (model.gamma * H @ (model.B.T @ rotated))
