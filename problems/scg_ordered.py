"""SCG-OSK: the ordered spectral kernel of least graph-based loss, a linear program that prefix means solve.

    minimise over mu   sum_i mu_i c_i = <K, S>,    c_i = v_i'S v_i,  K = sum_i mu_i v_i v_i'
    subject to         sum_i mu_i = 1,  mu_i >= sigma mu_(i+1),  mu >= 0                                 ((26) of [1])

S is the Laplacian of the supervised complete graph (`klopt.kernels.side_information`). The vertices
are the prefixes, scaled, so that the optimum is the least weighted mean of a prefix of c, in O(r),
and the multipliers of the order are its proof (`klopt.problems._ordered.prefix_means`).

As printed, the program is degenerate: S annihilates D^1/2 1, which the smoothest eigenvector of a
connected graph nearly is, so that c_1 is about 0, the others are not, and the optimum is K = v_1
v_1', which says nothing of classes. `skip_constant=True` leaves the first column out (mu_1 = 0, the
order begins at the second).

[1] Pan, Chen, Chen, Xu, Efficient learning of supervised kernels with a graph-based loss function,
2016.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import FloatArray, flag, freeze, matrix, positive, require_memory
from klopt.errors import InvalidProblem
from klopt.kernels.side_information import SideGraph, SideLike, energies, side_graph
from klopt.model.cones import Cones, Feature
from klopt.model.forms import ConeForm, ExplicitForm, SimplexForm, Start
from klopt.model.functions import Linear
from klopt.model.problem import Bracket, Example, Formulation, Point, Problem, Statement
from klopt.model.sets import OrderedSimplex
from klopt.problems._ordered.function import falling, rising
from klopt.problems._ordered.prefix_means import PrefixMeans

__all__ = ["ScgOrdered"]

NEGLIGIBLE = 1e-17


@dataclass(frozen=True, eq=False)
class ScgOrdered(Problem):
    """Learn the weights mu of eigenvectors, the smoother the heavier, by the loss of a supervised graph.

    `side` holds class labels (-1: unlabelled), a matrix T, or a tuple of two lists of pairs
    (similar, dissimilar). V has the eigenvectors as columns, smoothest first. The order is mu_i >=
    `sigma` mu_(i+1), sigma >= 1; `skip_constant=True` leaves out the first column, which says
    nothing of classes. Solutions have `mu`.

    >>> V = np.array([[0.5, 0.5], [0.5, 0.5], [0.5, -0.5], [0.5, -0.5]])
    >>> problem = ScgOrdered(V, side=[0, 0, 1, 1], skip_constant=True)
    >>> problem.coefficients.round(6)
    array([0.      , 0.238406])
    >>> problem.bracket(Point({"mu": [0.0, 1.0]})).width < 1e-14
    True
    """

    statement = Statement(
        r"\min_{\mu}\; \sum_i\mu_i\,v_i^\top Sv_i\quad\text{subject to}\quad "
        r"\sum_i\mu_i=1,\quad\mu_i\ge\sigma\mu_{i+1},\quad\mu\ge 0",
        words=(
            "S is the Laplacian of the supervised graph; the learned kernel is the sum "
            "of mu_i v_i v_i'."
        ),
        weights="mu",
    )
    references = ("pan2016",)
    examples = (
        Example(
            "digits", lambda d: ScgOrdered(d.smooth, d.classes), demo=(300,), full=(300, 600, 1200)
        ),
    )

    V: FloatArray
    side: SideGraph
    """The graph of what was given."""
    sigma: float = 1.0
    skip_constant: bool = False

    if TYPE_CHECKING:

        def __init__(
            self, V: npt.ArrayLike, side: SideLike, sigma: float = 1.0, skip_constant: bool = False
        ) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "V", matrix("V", self.V))
        n, r = self.V.shape
        object.__setattr__(self, "sigma", positive("sigma", self.sigma))
        if self.sigma < 1:
            raise InvalidProblem(
                f"sigma is {self.sigma}; an order mu_i >= sigma mu_(i+1) needs sigma >= 1"
            )
        object.__setattr__(self, "skip_constant", flag("skip_constant", self.skip_constant))
        if r <= self.skip_constant:
            what = (
                "nothing is left without the first column"
                if r
                else "give at least one eigenvector as a column"
            )
            raise InvalidProblem(f"V is {n} x {r}; {what}")
        object.__setattr__(self, "side", side_graph(self.side, n))

    @cached_property
    def coefficients(self) -> FloatArray:
        """c_i = v_i'S v_i of every column of V."""
        return cast(FloatArray, freeze(energies(self.side, self.V)))

    def describe(self) -> str:
        """Return the sizes and the order."""
        return f"ScgOrdered({len(self.V)} points, r = {self.V.shape[1]}, sigma = {self.sigma:g})"

    def formulations(self) -> tuple[Formulation, ...]:
        """Return the prefix means, the set itself, and the program as printed and by its vertices."""
        lp, vertices = frozenset({Feature.CONE}), "the ordered simplex is the hull of its prefixes"
        over, closed = (
            frozenset({Feature.SIMPLEX, Feature.LINEAR, Feature.ORDERED}),
            ExplicitForm(self._best_length),
        )
        mu, slack = (
            (self._from_mu, self._to_mu, "the program itself"),
            (self._from_slack, self._to_slack, vertices),
        )
        return (
            Formulation(
                "explicit", closed.needs, lambda: closed, self._from_length, because=vertices
            ),
            Formulation("over the set", over, self._over_the_set, *mu),
            Formulation("LP", lp, lambda: self._lp(self._program.c, self.sigma), *mu),
            Formulation("slack LP", lp, lambda: self._lp(self._program.means, 0.0), *slack),
        )

    def bracket(self, point: Point) -> Bracket:
        """Return c'mu of the nearest ordered mu and the least prefix mean, which weak duality proves."""
        mu = self._program.repaired(point.mu[int(self.skip_constant) :])
        nu, z = self._program.multipliers()
        return Bracket(*self._program.bounds(mu), Point(self._full(mu), {"nu": nu, "order": z}))

    def kernel(self, point: Point) -> FloatArray:
        """Return V diag(mu) V'."""
        require_memory(8.0 * len(self.V) ** 2, f"the kernel of {len(self.V)} points")
        return (self.V * point.mu) @ self.V.T

    @classmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        """Return orthonormal columns, two or three classes and some points without label."""
        n = 2 * max(size, 2)
        V = np.linalg.qr(rng.normal(size=(n, max(size, 2))))[0]
        return cls(
            V,
            rng.permutation(np.arange(n) % 4) - 1,
            sigma=1.0 + 0.1 * (size % 3),
            skip_constant=size % 2 == 0,
        )

    @cached_property
    def _program(self) -> PrefixMeans:
        return PrefixMeans(self.coefficients[int(self.skip_constant) :], self.sigma)

    @property
    def _kept(self) -> int:
        """How many columns can matter: the weights of the others are rounding beside the first."""
        m = int(self.V.shape[1]) - int(self.skip_constant)
        return m if self.sigma == 1 else min(m, 1 + int(-np.log(NEGLIGIBLE) / np.log(self.sigma)))

    def _best_length(self) -> tuple[FloatArray, None]:
        return np.array([float(self._program.best)]), None

    def _over_the_set(self) -> SimplexForm:
        m = self._kept
        return SimplexForm(Linear(self._program.c[:m]), OrderedSimplex(m, self.sigma))

    def _lp(self, c: FloatArray, sigma: float) -> ConeForm:
        """Minimise c'x over 1'x = 1, x_i >= sigma x_(i+1), x >= 0."""
        m = self._kept
        rows = [
            sparse.csc_array(np.ones((1, m))),
            sigma * sparse.eye_array(m, k=1) - sparse.eye_array(m),
        ]
        A = sparse.vstack(rows, format="csc")
        return ConeForm(c[:m], A, np.append(1.0, np.zeros(m)), Cones(zero=1, nonneg=m), radius=1.0)

    def _full(self, mu: FloatArray) -> dict[str, FloatArray]:
        first, missing = np.zeros(int(self.skip_constant)), np.zeros(self._program.c.size - mu.size)
        return {"mu": np.concatenate([first, mu, missing]) if first.size or missing.size else mu}

    def _from_length(self, x: FloatArray, y: FloatArray | None) -> Point:
        return Point(self._full(self._program.prefix(int(np.clip(x[0], 1, self._program.c.size)))))

    def _from_mu(self, x: FloatArray, y: FloatArray | None) -> Point:
        return Point(self._full(x))

    def _to_mu(self, point: Point) -> Start:
        return Start(point.mu[int(self.skip_constant) :][: self._kept])

    def _from_slack(self, x: FloatArray, y: FloatArray | None) -> Point:
        return Point(
            self._full(self._program.e[: x.size] * rising(x / self._program.sums[: x.size]))
        )

    def _to_slack(self, point: Point) -> Start:
        mu = self._to_mu(point).x
        return Start(falling(mu / self._program.e[: mu.size]) * self._program.sums[: mu.size])
