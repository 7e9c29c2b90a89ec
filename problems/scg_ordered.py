"""SCG-OSK: the ordered spectral kernel of minimum graph-based loss, by means of prefixes.

    minimise over mu   sum_i mu_i c_i = <K, S>,    c_i = v_i'S v_i,  K = sum_i mu_i v_i v_i'
    subject to         sum_i mu_i = 1,  mu_i >= sigma mu_(i+1),  mu >= 0

((26) of Pan et al. (2016)). S is the Laplacian of the supervised complete graph
(`klopt.kernels.side_information`). The vertices are the prefixes, scaled, so that the optimum is
the smallest weighted mean of a prefix of c, in O(r), and the multipliers of the order are its proof
(`klopt.problems._scg.ordered_proof`).

As printed, the program is degenerate: S annihilates D^1/2 1, which the smoothest eigenvector of a
connected graph nearly is, so that c_1 is about 0, the others are not, and the optimum is K = v_1
v_1', which says nothing of classes. `skip_constant=True` leaves the first column out (mu_1 = 0, the
order begins at the second).

Pan, Chen, Chen, Xu (2016), Efficient learning of supervised kernels with a graph-based loss
function.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import Self, cast

import attrs
import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import FloatArray, flag, freeze, matrix, positive, require_memory
from klopt.errors import InvalidProblem, NotCertified
from klopt.kernels.side_information import SideGraph, SideLike, energies, energy_error, side_graph
from klopt.model.cones import Cones
from klopt.model.features import Feature
from klopt.model.forms import ConeForm, ExplicitForm, SimplexForm, Start
from klopt.model.functions import Linear
from klopt.model.problem import Bracket, Example, Formulation, Point, Problem, Statement
from klopt.model.sets import OrderedSimplex
from klopt.problems._ordered.function import falling, rising
from klopt.problems._scg.exact_claim import known_pairs
from klopt.problems._scg.ordered_witness import PrefixMeans
from klopt.witness.exact_claims import EnergyData, ExactClaim, fractions

__all__ = ["ScgOrdered"]

MAX_PRODUCTS = 10_000_000
"""Products that a checker has to take, at most."""
NEGLIGIBLE_WEIGHT = 1e-17
"""A weight that the order keeps below this share of the first one is rounding."""


@attrs.frozen(eq=False, slots=False, init=False)
class ScgOrdered(Problem):
    """Learn nonincreasing weights mu of eigenvectors by the loss of a supervised graph.

    Solutions have `mu`. V and the side information are the data; S and the c_i are computed, and
    their errors (`coefficient_errors`) are part of every bound.

    Parameters
    ----------
    V : (n, r) array
        Eigenvectors as columns, smoothest first.
    side : (n,) array, (n, n) matrix or pair of lists
        Class labels (-1: unlabelled), a matrix T, or a tuple of two lists of pairs (similar,
        dissimilar); kept as the graph they make. A point that they speak of is similar to itself,
        T_ii = 1, in all three; for T_ii = 0, which (7) of the paper has, give
        `side_graph(side, n, self_similar=False)` of `klopt.kernels.side_information`.
    sigma : float
        The ratio of the order mu_i >= sigma mu_(i+1), at least 1.
    skip_constant : bool
        True leaves out the first column, which says nothing of classes.

    References
    ----------
    Pan et al. (2016). Efficient learning of supervised kernels with a graph-based loss
    function.

    Examples
    --------
    >>> V = np.array([[0.5, 0.5], [0.5, 0.5], [0.5, -0.5], [0.5, -0.5]])
    >>> problem = ScgOrdered(V, side=[0, 0, 1, 1], skip_constant=True)
    >>> problem.coefficients.round(6)
    array([0.      , 0.238406])
    >>> problem.bracket(Point({"mu": [0.0, 1.0]})).gap < 1e-13
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
        area="Kernel learning",
    )
    references = ("pan2016",)
    has_optimum = True

    V: FloatArray
    side: SideGraph
    sigma: float
    skip_constant: bool

    def __init__(
        self,
        V: npt.ArrayLike,
        side: SideGraph | SideLike,
        sigma: float = 1.0,
        skip_constant: bool = False,
    ) -> None:
        columns = matrix("V", V)
        ratio = positive("sigma", sigma)
        skips = flag("skip_constant", skip_constant)
        n, r = columns.shape
        if ratio < 1:
            raise InvalidProblem(
                f"sigma is {ratio}; an order mu_i >= sigma mu_(i+1) needs sigma >= 1"
            )
        if not r:
            raise InvalidProblem(f"V is {n} x 0; give at least one eigenvector as a column")
        if r <= skips:
            raise InvalidProblem(f"V is {n} x {r}; nothing is left without the first column")
        self.__attrs_init__(columns, side_graph(side, n), ratio, skips)

    @cached_property
    def coefficients(self) -> FloatArray:
        """c_i = v_i'S v_i of every column of V."""
        return cast(FloatArray, freeze(energies(self.side, self.V)))

    @cached_property
    def coefficient_errors(self) -> FloatArray:
        """How far `coefficients` may be off: those of the exact V and S."""
        return cast(FloatArray, freeze(energy_error(self.side, self.V)))

    @property
    def _skipped(self) -> int:
        """How many columns are left out at the beginning."""
        return int(self.skip_constant)

    @cached_property
    def _program(self) -> PrefixMeans:
        skipped = self._skipped
        return PrefixMeans(
            self.coefficients[skipped:], self.sigma, self.coefficient_errors[skipped:]
        )

    def describe(self) -> str:
        """Return the sizes and the order."""
        n, r = self.V.shape
        return f"ScgOrdered({n} points, r = {r}, sigma = {self.sigma:g})"

    def formulations(self) -> tuple[Formulation, ...]:
        """Return the prefix means, the set itself, and the program as printed and by vertices."""
        explicit = ExplicitForm(self._best_length)
        vertices = "the ordered simplex is the hull of its prefixes"
        itself = "the program itself"
        over_set = frozenset({Feature.SIMPLEX, Feature.LINEAR, Feature.ORDERED})
        lp = frozenset({Feature.CONE})
        return (
            Formulation(
                "explicit", explicit.needs, lambda: explicit, self._from_length, because=vertices
            ),
            Formulation(
                "over the set", over_set, self._over_the_set, self._from_mu, self._to_mu, itself
            ),
            Formulation("LP", lp, self._printed_lp, self._from_mu, self._to_mu, itself),
            Formulation("slack LP", lp, self._slack_lp, self._from_slack, self._to_slack, vertices),
        )

    def _best_length(self) -> tuple[FloatArray, None]:
        return np.array([float(self._program.best)]), None

    def _over_the_set(self) -> SimplexForm:
        m = self._counted
        return SimplexForm(Linear(self._program.c[:m]), OrderedSimplex(m, self.sigma))

    def _printed_lp(self) -> ConeForm:
        return self._lp(self._program.c, self.sigma)

    def _slack_lp(self) -> ConeForm:
        return self._lp(self._program.means, 0.0)

    def _lp(self, c: FloatArray, sigma: float) -> ConeForm:
        """Minimise c'x over 1'x = 1, x_i >= sigma x_(i+1), x >= 0."""
        m = self._counted
        total = sparse.csc_array(np.ones((1, m)))
        order = sigma * sparse.eye_array(m, k=1) - sparse.eye_array(m)
        A = sparse.vstack([total, order], format="csc")
        b = np.append(1.0, np.zeros(m))
        return ConeForm(c[:m], A, b, Cones(zero=1, nonneg=m), radius=1.0)

    @property
    def _counted(self) -> int:
        """How many columns can matter: the weights of the others are rounding beside the first."""
        m = int(self.V.shape[1]) - self._skipped
        if self.sigma == 1:
            return m
        return min(m, 1 + int(-np.log(NEGLIGIBLE_WEIGHT) / np.log(self.sigma)))

    def _from_length(self, x: FloatArray, y: FloatArray | None) -> Point:
        # Not a number counts as 1.
        length = int(min(max(1.0, float(x[0])), self._program.c.size))
        return Point(self._full(self._program.prefix(length)))

    def _from_mu(self, x: FloatArray, y: FloatArray | None) -> Point:
        return Point(self._full(x))

    def _from_slack(self, x: FloatArray, y: FloatArray | None) -> Point:
        # x_k are the weights of the prefixes, each of sum 1.
        weights = rising(x / self._program.sums[: x.size])
        return Point(self._full(self._program.e[: x.size] * weights))

    def _to_mu(self, point: Point) -> Start:
        return Start(point.mu[self._skipped :][: self._counted])

    def _to_slack(self, point: Point) -> Start:
        mu = self._to_mu(point).x
        steps = falling(mu / self._program.e[: mu.size])
        return Start(steps * self._program.sums[: mu.size])

    def _full(self, mu: FloatArray) -> dict[str, FloatArray]:
        """mu with the weights of the columns that the form leaves out at either end."""
        before = self._skipped
        after = self._program.c.size - mu.size
        # Long vectors are not copied without need.
        if before or after:
            mu = np.concatenate([np.zeros(before), mu, np.zeros(after)])
        return {"mu": mu}

    def exact_claim(self, point: Point, verdict: str) -> ExactClaim:
        """Return the columns of V and what is known of pairs; the prefixes need no witness."""
        V = self.V[:, self._skipped :]
        if V.size * len(V) > MAX_PRODUCTS:
            raise NotCertified(
                f"{V.shape[1]} columns of {len(V)} points are too many for a checker"
            )
        T = known_pairs(self.side)
        columns = [fractions(column) for column in V.T]
        return ExactClaim(EnergyData(columns, T, Fraction(self.sigma)))

    def bracket(self, point: Point) -> Bracket:
        """Return the smallest prefix mean, by weak duality, and c'mu of the nearest feasible mu."""
        return self.proof(self.witness(point))

    def witness(self, point: Point) -> Point:
        """Return the nearest feasible mu and the multipliers of the best prefix."""
        mu = self._program.nearest_feasible(point.mu[self._skipped :])
        nu, z = self._program.multipliers()
        return Point(self._full(mu), {"nu": nu, "order": z})

    def proof(self, witness: Point) -> Bracket:
        """Return what mu proves in exact arithmetic; the lower end needs no witness.

        The proven point satisfies the constraints exactly: mu / e, e_i = sigma^-(i-1), made
        nonincreasing by at most its rounding, and the sum scaled to 1.
        """
        return Bracket(
            self._program.lower,
            self._program.upper(witness.mu[self._skipped :]),
            witness,
            lower_by="weak duality: the smallest mean of a prefix",
            upper_by="value at an exactly feasible point",
        )

    def kernel(self, point: Point) -> FloatArray:
        """Return V diag(mu) V'."""
        require_memory(8.0 * len(self.V) ** 2, f"the kernel of {len(self.V)} points")
        return (self.V * point.mu) @ self.V.T

    @classmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        """Return orthonormal columns, three classes and some points without label."""
        n = 2 * max(size, 2)
        V = np.linalg.qr(rng.normal(size=(n, max(size, 2))))[0]
        labels = rng.permutation(np.arange(n) % 4) - 1
        return cls(V, labels, sigma=1.0 + 0.1 * (size % 3), skip_constant=size % 2 == 0)

    examples = (
        Example(
            "digits",
            lambda data: ScgOrdered(data.smooth, data.classes),
            demo=(300,),
            full=(300, 600, 1200),
        ),
    )
