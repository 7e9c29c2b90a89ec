"""SKL and SKL_KTA: the spectral kernel on a graph that is optimal for regularised least squares.

    kta=True    the level is chosen by kernel alignment    `klopt.problems.SpectralAlignment`
    kta=False   C and mu are given                         `klopt.problems.SpectralRls`

The decision at all points, labelled or not, is K_:l (K_ll + I/C)^-1 Y_l; several classes are one
problem.

Mao, Tsang, Parameter-free spectral kernel learning, 2010.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from klopt.arrays import FloatArray
from klopt.errors import InvalidProblem
from klopt.kernels.graphs import Weights, laplacian
from klopt.learners._graph import GraphLearner
from klopt.learners._multiclass import MulticlassScheme
from klopt.model.backend import Backend
from klopt.problems.spectral_alignment import SpectralAlignment
from klopt.problems.spectral_rls import Basis, SpectralRls

__all__ = ["SKL"]


class SKL(GraphLearner):
    """The spectral kernel of regularised least squares on a graph.

    Labels of -1 mark points without label.

    Parameters
    ----------
    kta
        Choose the level by kernel alignment; `C` and `mu` are then not used.
    graph
        "knn" for the graph of nearest neighbours, "precomputed" where X holds its weights.
    n_neighbors
        The number of nearest neighbours of a point.
    weights
        The weights of the edges, "binary" or "gaussian".
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
        What is added to it: the smaller, the more the kernel depends on the graph.
    rank
        The number of smoothest eigenvectors; None for all.
    backend
        The solver, or None for the planned ones.
    tol
        The relative gap up to which the optimum is certified.

    Attributes
    ----------
    classes_
        The class labels.
    transduction_
        The predicted classes of the training points.
    result_
        The certified result.
    kernel_
        The learned kernel matrix of the training points.

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
        graph: str = "knn",
        n_neighbors: int = 10,
        weights: Weights = "binary",
        C: float = 10.0,
        mu: float = 1e-2,
        basis: Basis = "spectral",
        power: int = 1,
        ridge: float = 1e-3,
        rank: int | None = None,
        backend: str | Backend | None = None,
        tol: float = 1e-6,
    ) -> None:
        self.kta = kta
        self.graph = graph
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.C = C
        self.mu = mu
        self.basis = basis
        self.power = power
        self.ridge = ridge
        self.rank = rank
        self.backend = backend
        self.tol = tol

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the kernel and the decision at all points."""
        W, codes = self._graph_of(X, y)
        L = laplacian(W, power=self.power)
        rank = None if self.rank is None or self.rank >= L.shape[0] else self.rank
        problem: SpectralAlignment | SpectralRls
        if self.kta:
            if self.basis != "spectral":
                raise InvalidProblem(
                    f"basis is {self.basis!r}; kernel alignment (kta=True) needs 'spectral'"
                )
            problem = SpectralAlignment(L, codes, self.ridge, rank)
        else:
            problem = SpectralRls(L, codes, self.C, self.mu, self.basis, self.ridge, rank)
        self.result_ = self._certified(problem)
        assert self.result_.point is not None
        values = problem.decide(self.result_.point)
        scheme = MulticlassScheme(self.classes_.size, "ovr")
        return self._decide(values.reshape(len(codes), -1), scheme)

    def _features(self) -> FloatArray:
        problem = self.result_.problem
        point = self.result_.point
        assert point is not None
        # The kernels of the other bases have no spectrum, only a factor.
        if isinstance(problem, SpectralRls) and problem.basis != "spectral":
            return point.factor
        assert isinstance(problem, SpectralAlignment | SpectralRls)
        w = problem.spectrum(point) if isinstance(problem, SpectralAlignment) else point.spectrum
        used = np.flatnonzero(w > 0)
        return problem.directions.U[:, used] * np.sqrt(w[used])
