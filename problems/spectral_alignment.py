"""SKL_KTA: the spectral kernel of regularised least squares whose regularisation is chosen by kernel alignment.

The kernels of `SpectralRls`, K = U diag(lam) U' with lam_i = [(A_i / (2 mu B_i))^1/2 - 1/C]_+, form
one curve but for their scale: with r_i = (A_i / (2 B_i))^1/2 and the level t = mu^1/2 / C it is
lam_i ~ [r_i - t]_+, and

    maximise over 0 <= t < max r   h(t) = <K, T> / (||K|| ||T||) = sum_i lam_i A_i / (||lam|| ||T||)

where T = YY' is the target of the labelled points; the directions U, A, B are those of
`klopt.problems._spectral.eigenspaces`. [1] takes the stationary point of the unclipped curve for
its maximum; often it is not, and there are local maxima.

The exact maximum, O(n log n). On the piece where the k largest r_i exceed t, with their mean m, S =
sum (r_i - m)^2, X = sum A_i (r_i - m), Z = sum A_i and u = m - t,

    h = (X + Z u) / (S + k u^2)^1/2 / ||T||,    h' has the sign of  Z S - k X u,

so that it has one stationary point, u = Z S / (k X), a maximum, if X > 0, and rises with u
otherwise. The best of these points that lie on their piece and of the ends of the pieces is the
maximum: that enumeration is the proof of `upper`.

The decision f = K_ul (K_ll + I/C)^-1 Y_l depends on the level alone, not on C. At t = 0 it is R_ul
R_ll^-1 Y_l with R = U diag(r) U', the rule that [1] arrives at for every mu.

[1] Mao, Tsang, Parameter-free spectral kernel learning, 2010, Propositions 2 to 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt

from klopt.arrays import EPS, FloatArray, MatrixLike, SparseMatrix, freeze, require_memory
from klopt.errors import InvalidProblem
from klopt.model.forms import ExplicitForm
from klopt.model.problem import Bracket, Example, Formulation, Point, Problem, Statement
from klopt.problems._spectral.eigenspaces import Directions, check_graph

__all__ = ["SpectralAlignment"]

TIED = 1e-12


@dataclass(frozen=True, eq=False)
class SpectralAlignment(Problem):
    """Choose the level of a spectral kernel by its alignment with the labels (0, 1, 2, .. or -1 for unlabelled).

    `ridge` is added to the Laplacian, whose smallest eigenvalue is 0; `rank` keeps the smoothest
    eigenvectors only. The value is the alignment, which is maximised; the solution is the number
    `level`.

    >>> path = [[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]]
    >>> problem = SpectralAlignment(path, labels=[0, -1, 1])
    >>> bracket = problem.bracket(Point({"level": 0.0}))
    >>> round(bracket.lower, 9), round(bracket.upper, 9)
    (1.0, 1.0)
    >>> problem.decide().round(9) + 0.0
    array([-1.,  0.,  1.])
    """

    statement = Statement(
        r"\max_{0\le t<\max r}\; \frac{\langle K,T\rangle}{\lVert K\rVert\,\lVert "
        r"T\rVert},\quad K=\sum_i[r_i-t]_+\,u_iu_i^\top,\quad r_i=\sqrt{A_i/(2B_i)}",
        words=(
            "The level t chooses among the spectral kernels of regularised least squares,"
            " which form one curve."
        ),
    )
    references = ("mao2010",)
    examples = (
        Example(
            "iris",
            lambda d: SpectralAlignment(d.laplacian, d.classes),
            demo=(150,),
            full=(90, 120, 150),
        ),
    )

    laplacian: SparseMatrix
    labels: npt.NDArray[np.int64]
    ridge: float = 1e-2
    rank: int | None = None

    sense = "max"

    if TYPE_CHECKING:

        def __init__(
            self,
            laplacian: MatrixLike,
            labels: npt.ArrayLike,
            ridge: float = 1e-2,
            rank: int | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        L, labels, ridge = check_graph(self.laplacian, self.labels, self.ridge)
        for name, value in (("laplacian", L), ("labels", freeze(labels)), ("ridge", ridge)):
            object.__setattr__(self, name, value)
        if not self.directions.A.max() > 0:
            raise InvalidProblem(
                "every eigenvector that was kept is orthogonal to the labels; raise the rank"
            )

    @cached_property
    def directions(self) -> Directions:
        """What the labelled points see of the eigenspaces."""
        return Directions.of(self.laplacian, self.labels, self.ridge, self.rank)

    def describe(self) -> str:
        """Return the sizes."""
        known, n = self.directions.known.size, self.labels.size
        return f"SpectralAlignment({known} of {n} points labelled, {self._r.size} directions)"

    def formulations(self) -> tuple[Formulation, ...]:
        """Return the enumeration of the pieces: the alignment is not concave, so there is nothing else."""
        rule = ExplicitForm(self._best_level)
        because = "on each piece of the curve the alignment has at most one stationary point, known in closed form"
        return (Formulation("explicit", rule.needs, lambda: rule, _recover, because=because),)

    def bracket(self, point: Point) -> Bracket:
        """Return the alignment at the level and the largest over all pieces."""
        level = float(np.clip(point.level, 0.0, self._r.max())) if np.isfinite(point.level) else 0.0
        lower = self._alignment(level) * (1 - 8 * EPS)
        upper = float(self._candidates[1].max()) * (1 + EPS * (8 + float(np.sqrt(self._r.size))))
        return Bracket(
            lower,
            upper,
            Point({"level": level}),
            "upper: the largest alignment over all pieces of the curve",
        )

    def spectrum(self, point: Point) -> FloatArray:
        """Return lam_i ~ [r_i - level]_+ of the directions, with sum 1."""
        weights = self._weights(float(point.level))
        return weights / float(weights.sum())

    def kernel(self, point: Point) -> FloatArray:
        """Return U diag(lam) U'."""
        require_memory(8.0 * self.labels.size**2, f"the kernel of {self.labels.size} points")
        return (self.directions.U * self.spectrum(point)) @ self.directions.U.T

    def decide(self, point: Point | None = None) -> FloatArray:
        """Return the scores of all points, one column a class, for two classes one number; by default at level 0."""
        level = 0.0 if point is None else float(point.level)
        return self.directions.decide(self._weights(level), level)

    @classmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        """Return a random connected graph, two or three classes and some points without label."""
        n = max(size, 4)
        W = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.5), 1) + np.eye(n, k=1)
        W += W.T
        return cls(
            np.diag(W.sum(axis=0)) - W, np.concatenate([np.arange(n - 1) % (2 + size % 2), [-1]])
        )

    @cached_property
    def _r(self) -> FloatArray:
        """r_i; those that differ by rounding only are made equal, since the top of the curve would tell them apart."""
        r = np.sqrt(self.directions.A / (2 * self.directions.B))
        order = np.argsort(-r, kind="stable")
        first = np.append(True, -np.diff(r[order]) > TIED * r[order][:-1])
        r[order] = r[order][np.maximum.accumulate(np.where(first, np.arange(r.size), 0))]
        return r

    @cached_property
    def _norm(self) -> float:
        return float(np.linalg.norm(self.directions.Y.T @ self.directions.Y))

    def _weights(self, level: float) -> FloatArray:
        """[r - level]_+, and at the top of the curve its limit: the largest r alone."""
        weights = np.maximum(self._r - level, 0.0)
        return weights if weights.any() else (self._r == self._r.max()).astype(float)

    def _alignment(self, level: float) -> float:
        weights = self._weights(level)
        return float(weights @ self.directions.A) / (float(np.linalg.norm(weights)) * self._norm)

    @cached_property
    def _candidates(self) -> tuple[FloatArray, FloatArray]:
        """Levels that can be best, and their alignments."""
        order = np.argsort(-self._r, kind="stable")
        r, A = self._r[order], self.directions.A[order]
        k, after = np.arange(1.0, r.size + 1), np.append(r[1:], 0.0)
        Z, mean = np.cumsum(A), np.cumsum(r) / k
        # Sums about the mean by their updates: as differences of plain sums they would lose their
        # digits.
        step = r - np.append(r[0], mean[:-1])
        S = np.cumsum((1 - 1 / k) * step**2)
        X = np.cumsum((A - np.append(A[0], (Z / k)[:-1])) * (1 - 1 / k) * step)
        with np.errstate(divide="ignore", invalid="ignore"):
            u = np.where(X > 0, Z * S / (k * X), np.inf)
            inside = (mean - u > after) & (mean - u < r)
            value = np.sqrt(X**2 / S + Z**2 / k)
        ends = after < r  # a tie makes a piece of no length
        at_end = (X + Z * (mean - after))[ends] / np.sqrt(S + k * (mean - after) ** 2)[ends]
        levels = np.concatenate([after[ends], (mean - u)[inside]])
        return levels, np.concatenate([at_end, value[inside]]) / self._norm

    def _best_level(self) -> tuple[FloatArray, None]:
        levels, values = self._candidates
        return np.array([levels[int(np.argmax(values))]]), None


def _recover(x: FloatArray, y: FloatArray | None) -> Point:
    return Point({"level": x[0]})
