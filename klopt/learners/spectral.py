"""SKL and SKL_KTA: the spectral kernel on a graph that is optimal for regularised least squares.

    kta=True    C and mu are chosen by kernel alignment    `klopt.problems.SpectralAlignment`
    kta=False   C and mu are given                         `klopt.problems.SpectralRls`

The decision at all points, labelled or not, is K_:l (K_ll + I/C)^-1 Y_l; several classes are one
problem. The kernel has the eigenvalues lam_i = (A_i / (2 mu B_i))^1/2 - 1/C where that is positive
and 0 elsewhere. Mao and Tsang choose C and mu by alignment before the negative ones are set to 0.
Then K_ll + I/C = R_ll with R ~ U diag((A_i / B_i)^1/2) U', and the decision

    R_:l R_ll^-1 Y_l                        rule="unclipped", Algorithm 1 of the paper

depends neither on C nor on mu. The best alignment of the kernels that are clipped (rule="clipped")
is another rule: its kernel may keep fewer eigenvectors than there are labels, and then it decides
worse.

The A_i of a repeated eigenvalue depend on the basis that an eigenvalue solver happens to return; a
graph of several components has the eigenvalue 0 that often. Algorithm 1 does not say which basis
it means. Here each of these eigenvectors has the mean of their A_i, which does not depend on the
basis. (The direction of largest A alone would be the better aligned kernel; with it a component
without labels gets no decision.)

Mao, Tsang, Parameter-free spectral kernel learning, 2010, (8), Propositions 2 to 4, Algorithm 1.
"""

from __future__ import annotations

from typing import Any, Literal, Self, cast, get_args

import numpy as np

from klopt.arrays import FloatArray, SparseMatrix
from klopt.errors import InvalidProblem
from klopt.kernels.graphs import Weights, laplacian
from klopt.learners._base import Codes, Unlabelled
from klopt.learners._graph import Extension, GraphLearner
from klopt.learners._multiclass import MulticlassScheme
from klopt.model.backend import Backend
from klopt.model.problem import Point
from klopt.problems._spectral.data import Directions
from klopt.problems.spectral_alignment import SpectralAlignment
from klopt.problems.spectral_rls import Basis, SpectralRls

__all__ = ["SKL", "AlignmentRule"]

AlignmentRule = Literal["unclipped", "clipped"]

ALIGNED_RIDGE = 1e-6
"""The ridge of kernel alignment where none is given, chosen on sets of few labels."""
LEAST_SQUARES_RIDGE = 1e-3
"""That of regularised least squares: with less the numbers spread too far for a proof."""


class SKL(GraphLearner):
    """The spectral kernel of regularised least squares on a graph.

    Labels of -1 mark points without label.

    Parameters
    ----------
    kta
        Choose the kernel by its alignment with the labels; `C` and `mu` are then not used.
    rule
        With kta=True, how the aligned kernel decides: "unclipped" is Algorithm 1 of Mao and Tsang
        (2010), "clipped" takes the kernel of largest alignment among those that are positive
        semidefinite.
    graph
        "knn" for the graph of nearest neighbours, "precomputed" where X holds its weights.
    n_neighbors
        The number of nearest neighbours of a point.
    weights
        The weights of the edges, "binary" or "gaussian".
    extension
        How values are carried to new points: "kernel" for kernel ridge regression, "neighbours"
        for the mean of the nearest training points.
    C
        The penalty of the residuals.
    mu
        The penalty of tr(K (L + ridge I)).
    basis
        "spectral" for the eigenvectors of the graph; "padded" and "labelled", with kta=False only,
        allow kernels outside the spectral family.
    power
        The power of the Laplacian that measures smoothness.
    ridge
        What is added to it: the smaller, the more the kernel depends on the graph. None for 1e-6
        with kta=True and 1e-3 without, where a smaller one leaves optima that cannot be proven.
    rank
        The number of smoothest eigenvectors; None for all.
    unlabelled
        The label of points without label; None where every point has one.
    backend
        The solver, or None for the planned ones.
    tol
        The relative gap up to which the optimum is certified.
    time_limit
        Seconds that a solver may take for one model; None for no limit.

    Attributes
    ----------
    classes_
        The class labels.
    transduction_
        The predicted classes of the training points.
    result_
        The certified result. With kta=True it is about the largest alignment of a clipped kernel,
        whichever rule decides: the other rule is a closed form and needs no proof.
    kernel_
        The kernel matrix of the training points that the rule decides with; of trace 1 with
        kta=True.

    Notes
    -----
    With kta=True the decision at all points is R_:l R_ll^-1 Y_l with R = U diag((A_i / B_i)^1/2) U'
    on the eigenvectors of the Laplacian, A_i = |u_i'Y|^2, B_i = eigenvalue^power + ridge: no
    parameter is left to be tuned. Eigenvectors of a repeated eigenvalue have the mean of their A_i.
    It interpolates the labels, so that it takes no weights of points. With kta=False the kernel of
    regularised least squares for given C and mu is proven to be optimal.

    References
    ----------
    Mao, Tsang, Parameter-free spectral kernel learning, Uncertainty in Artificial Intelligence,
    2010.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> few = np.where(np.arange(150) % 10 == 0, y, -1)
    >>> learner = SKL().fit(X, few)
    >>> learner.result_.verdict.name, bool(np.mean(learner.transduction_ == y) > 0.9)
    ('OPTIMAL', True)
    >>> bool(np.array_equal(learner.predict(X), learner.transduction_))
    True
    """

    multi_class = "ovr"

    def __init__(
        self,
        *,
        kta: bool = True,
        rule: AlignmentRule = "unclipped",
        graph: str = "knn",
        n_neighbors: int = 5,
        weights: Weights = "gaussian",
        extension: Extension = "kernel",
        C: float = 10.0,
        mu: float = 1e-2,
        basis: Basis = "spectral",
        power: int = 2,
        ridge: float | None = None,
        rank: int | None = None,
        unlabelled: Unlabelled = -1,
        backend: str | Backend | None = None,
        tol: float = 1e-6,
        time_limit: float | None = None,
    ) -> None:
        self.kta = kta
        self.rule = rule
        self.graph = graph
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.extension = extension
        self.C = C
        self.mu = mu
        self.basis = basis
        self.power = power
        self.ridge = ridge
        self.rank = rank
        self.unlabelled = unlabelled
        self.backend = backend
        self.tol = tol
        self.time_limit = time_limit

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the kernel and the decision at all points."""
        if self.rule not in get_args(AlignmentRule):
            raise InvalidProblem(
                f"rule is {self.rule!r}; expected one of {', '.join(get_args(AlignmentRule))}"
            )
        W, codes = self._graph_of(X, y)
        problem = self._problem(laplacian(W, power=self.power), codes)
        self.result_ = self._certified(problem)
        if self._is_unclipped:
            directions, spectrum = self._unclipped
            values = directions.decide(spectrum, 0.0)
        else:
            values = problem.decide(cast(Point, self.result_.point))
        scheme = MulticlassScheme(self.classes_.size, "ovr")
        return self._decide(values.reshape(len(codes), -1), scheme)

    def _problem(self, L: SparseMatrix, codes: Codes) -> SpectralAlignment | SpectralRls:
        rank = None if self.rank is None or self.rank >= L.shape[0] else self.rank
        ridge = self.ridge
        if ridge is None:
            ridge = ALIGNED_RIDGE if self.kta else LEAST_SQUARES_RIDGE
        if not self.kta:
            return SpectralRls(L, codes, self.C, self.mu, self.basis, ridge, rank)
        if self.basis != "spectral":
            raise InvalidProblem(
                f"basis is {self.basis!r}; kernel alignment (kta=True) needs 'spectral'"
            )
        return SpectralAlignment(L, codes, ridge, rank)

    @property
    def _is_unclipped(self) -> bool:
        return self.kta and self.rule == "unclipped"

    @property
    def _unclipped(self) -> tuple[Directions, FloatArray]:
        """The eigenvectors and their weights (A/B)^1/2 of sum 1, as in Algorithm 1."""
        own = cast(SpectralAlignment, self.result_.problem).directions
        directions = own.undivided or own
        weights = np.sqrt(directions.A / directions.B)
        return directions, weights / float(weights.sum())

    @property
    def kernel_(self) -> FloatArray:
        """The kernel matrix of the training points that decides; formed on demand."""
        if self._is_unclipped:
            half = self._features()
            return half @ half.T
        return cast(FloatArray, self.result_.kernel)

    def _features(self) -> FloatArray:
        problem = self.result_.problem
        if self._is_unclipped:
            directions, w = self._unclipped
            return _scaled(directions.U, w)
        point = cast(Point, self.result_.point)
        # The kernels of the other bases have no spectrum, only a factor.
        if isinstance(problem, SpectralRls) and problem.basis != "spectral":
            return point.factor
        assert isinstance(problem, SpectralAlignment | SpectralRls)
        w = problem.spectrum(point) if isinstance(problem, SpectralAlignment) else point.spectrum
        return _scaled(problem.directions.U, w)


def _scaled(U: FloatArray, w: FloatArray) -> FloatArray:
    """U diag(w)^1/2 without columns of zeros."""
    used = np.flatnonzero(w > 0)
    return U[:, used] * np.sqrt(w[used])
