"""SCG-OSK: the ordered spectral kernel of least graph-based loss, a linear program that prefix means solve.

    minimise over mu   sum_i mu_i c_i = <K, S>,    c_i = v_i'S v_i,  K = sum_i mu_i v_i v_i'
    subject to         sum_i mu_i = 1,  mu_i >= sigma mu_(i+1),  mu >= 0                                 ((26) of [1])

S is the Laplacian of the supervised complete graph (`klopt.side`). With e_i = sigma^-(i-1), E_k = e_1 + .. + e_k, the
vertices are the prefixes (e_1, .., e_k, 0, .., 0) / E_k, so the optimum is the least weighted mean of a prefix of c,

    nu = min_k R_k,    R_k = sum_(i <= k) e_i c_i / E_k,

in O(r). nu is also the multiplier of sum mu = 1, and weak duality is its proof: for every feasible mu,
c'mu - nu = sum_k z_k (mu_k - sigma mu_(k+1)) / e_k with z_k = (R_k - nu) E_k >= 0. These are the multipliers of the
order times e_k, which unlike those do not overflow.

As printed, the program is degenerate: S annihilates D^1/2 1, which the smoothest eigenvector of a connected graph
nearly is, so that c_1 is about 0, the others are not, and the optimum is K = v_1 v_1', which says nothing of classes.
`skip_constant=True` leaves the first column out (mu_1 = 0, the order begins at the second).

[1] Pan, Chen, Chen, Xu, Efficient learning of supervised kernels with a graph-based loss function, 2016.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import FloatArray, freeze, matrix, positive, require_memory
from klopt.cones import Cones, Feature
from klopt.errors import InvalidProblem
from klopt.forms import ConeForm, ExplicitForm, SimplexForm, Start
from klopt.objectives import Linear
from klopt.problem import Bracket, Formulation, Point, Problem
from klopt.problems._ordered import falling, rising
from klopt.projections import prefix_weights
from klopt.sets import OrderedSimplex
from klopt.side import SideGraph, energies, side_graph

__all__ = ["ScgOrdered"]

EPS = float(np.finfo(float).eps)
NEGLIGIBLE = 1e-17


@dataclass(frozen=True, eq=False)
class ScgOrdered(Problem):
    """Learn the weights mu of eigenvectors, the smoother the heavier, by the loss of a supervised graph.

    `side` holds class labels (-1: unlabelled), a matrix T, or a tuple of two lists of pairs (similar, dissimilar).

    >>> V = np.array([[0.5, 0.5], [0.5, 0.5], [0.5, -0.5], [0.5, -0.5]])
    >>> problem = ScgOrdered(V, side=[0, 0, 1, 1], skip_constant=True)
    >>> problem.coefficients.round(6)
    array([0.      , 0.238406])
    >>> problem.bracket(Point({"mu": [0.0, 1.0]})).width < 1e-14
    True
    """

    V: FloatArray
    side: SideGraph
    """The graph of what was given."""
    sigma: float = 1.0
    skip_constant: bool = False

    if TYPE_CHECKING:

        def __init__(self, V: npt.ArrayLike, side: Any, sigma: float = 1.0, skip_constant: bool = False) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "V", matrix("V", self.V))
        n, r = self.V.shape
        object.__setattr__(self, "sigma", positive("sigma", self.sigma))
        if self.sigma < 1:
            raise InvalidProblem(f"sigma is {self.sigma}; an order mu_i >= sigma mu_(i+1) needs sigma >= 1")
        if r <= self.skip_constant:
            what = "nothing is left without the first column" if r else "give at least one eigenvector as a column"
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
        m, domain = self._kept, OrderedSimplex(self._kept, self.sigma)
        over = frozenset({Feature.SIMPLEX, Feature.LINEAR, Feature.ORDERED})
        mu = (self._from_mu, self._to_mu, "the program itself")
        slack, closed = (self._from_slack, self._to_slack, vertices), ExplicitForm(self._best_prefix)
        return (
            Formulation("explicit", closed.needs, lambda: closed, *mu[:2], vertices),
            Formulation("over the set", over, lambda: SimplexForm(Linear(self._c[:m]), domain), *mu),
            Formulation("LP", lp, lambda: self._program(self._c, self.sigma), *mu),
            Formulation("slack LP", lp, lambda: self._program(self._means, 0.0), *slack),
        )

    def bracket(self, point: Point) -> Bracket:
        """Return c'mu of the nearest ordered mu and the least prefix mean, which weak duality proves."""
        c, mu = self._c, point.mu[int(self.skip_constant) :]
        mu = mu[: int(np.flatnonzero(mu)[-1]) + 1] if mu.any() else mu  # a prefix is short, r may be long
        total, later = float(mu.sum()), mu[1:] if self.sigma == 1 else self.sigma * mu[1:]
        if abs(total - 1) < 1e-9 and mu[-1] >= 0 and (later <= (1 + 4 * EPS) * mu[:-1]).all():
            mu = mu / total
        else:
            mu = OrderedSimplex(mu.size, self.sigma).repair(mu)
        nu = float(self._means.min())
        upper = float(c[: mu.size] @ mu) + 8 * EPS * float(np.abs(c[: mu.size]) @ mu)
        lower = nu - EPS * (8 + float(np.sqrt(c.size))) * float(np.abs(c).max())
        return Bracket(lower, upper, Point(self._full(mu), {"nu": nu, "order": (self._means - nu) * self._sums}))

    def kernel(self, point: Point) -> FloatArray:
        """Return V diag(mu) V'."""
        require_memory(8.0 * len(self.V) ** 2, f"the kernel of {len(self.V)} points")
        return (self.V * point.mu) @ self.V.T

    @classmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        """Return orthonormal columns, two or three classes and some points without label."""
        n = 2 * max(size, 2)
        V = np.linalg.qr(rng.normal(size=(n, max(size, 2))))[0]
        return cls(V, rng.permutation(np.arange(n) % 4) - 1, sigma=1.0 + 0.1 * (size % 3), skip_constant=size % 2 == 0)

    @cached_property
    def _c(self) -> FloatArray:
        return self.coefficients[int(self.skip_constant) :]

    @cached_property
    def _e(self) -> FloatArray:
        return np.ones(self._c.size) if self.sigma == 1 else prefix_weights(self._c.size, self.sigma)

    @cached_property
    def _sums(self) -> FloatArray:
        return np.arange(1.0, self._c.size + 1) if self.sigma == 1 else np.cumsum(self._e)

    @cached_property
    def _means(self) -> FloatArray:
        """R_k, as means of c - c_1 for the sake of the digits that a common level would cost."""
        means: FloatArray = self._c[0] + np.cumsum(self._e * (self._c - self._c[0])) / self._sums
        return means

    @property
    def _kept(self) -> int:
        """How many columns can matter: the weights of the others are rounding beside the first."""
        m = int(self.V.shape[1]) - int(self.skip_constant)
        return m if self.sigma == 1 else min(m, 1 + int(-np.log(NEGLIGIBLE) / np.log(self.sigma)))

    def _best_prefix(self) -> tuple[FloatArray, None]:
        last = int(np.argmin(self._means)) + 1
        return self._e[:last] / float(self._e[:last].sum()), None

    def _program(self, c: FloatArray, sigma: float) -> ConeForm:
        """Minimise c'x over 1'x = 1, x_i >= sigma x_(i+1), x >= 0."""
        m = self._kept
        rows = [sparse.csc_array(np.ones((1, m))), sigma * sparse.eye_array(m, k=1) - sparse.eye_array(m)]
        A = sparse.vstack(rows, format="csc")
        return ConeForm(c[:m], A, np.append(1.0, np.zeros(m)), Cones(zero=1, nonneg=m), radius=1.0)

    def _full(self, mu: FloatArray) -> dict[str, FloatArray]:
        return {"mu": np.concatenate([np.zeros(int(self.skip_constant)), mu, np.zeros(self._c.size - mu.size)])}

    def _from_mu(self, x: FloatArray, y: FloatArray | None) -> Point:
        return Point(self._full(x))

    def _to_mu(self, point: Point) -> Start:
        return Start(point.mu[int(self.skip_constant) :][: self._kept])

    def _from_slack(self, x: FloatArray, y: FloatArray | None) -> Point:
        return Point(self._full(self._e[: x.size] * rising(x / self._sums[: x.size])))

    def _to_slack(self, point: Point) -> Start:
        mu = self._to_mu(point).x
        return Start(falling(mu / self._e[: mu.size]) * self._sums[: mu.size])
