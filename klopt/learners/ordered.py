"""OSK and SCG-OSK: ordered spectral kernels on a graph, and SVMs on the labelled points.

K = sum_i w_i v_i v_i' with w_1 >= w_2 >= .. on the smoothest eigenvectors of the graph's Laplacian.
OSK aligns K with the labels (`klopt.problems.OrderedAlignment`), SCG-OSK minimises the loss of the
supervised graph (`klopt.problems.ScgOrdered`). Both learn from all points, labelled or not.

With one or two labels a class alignment says little: for one label each every kernel with a larger
diagonal is a better one, and the best weights are equal. A share of the weight of OSK, `prior`,
therefore follows the graph alone, as in the kernel of a Gaussian field,

    w_i = (1 - prior) m_i + prior p_i,    p_i ~ 1 / (l_i + 1e-3),    sum_i p_i = 1,

m the certified weights of best alignment and l_i the eigenvalues of the normalised Laplacian. p is
ordered, too, so that w is: prior = 0 is OSK as printed.

The linear program of SCG-OSK has its optimum at a prefix of the eigenvectors, often at one or two,
which do not separate several classes. `floor` gives each of the r eigenvectors a part of the weight:
for sigma = 1

    minimise sum_i w_i c_i  over  sum_i w_i = 1,  w_1 >= w_2 >= ..,  w_i >= floor / r

has the optimum w_i = floor / r + (1 - floor) m_i, m the certified optimum without floor: subtract
the floor and divide by what is left. floor = 0 is the program as printed.

Pan, Chen, Chen, Xu, Efficient learning of supervised kernels with a graph-based loss function,
2016, (2) and (26).
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from klopt.arrays import FloatArray, SparseMatrix, positive
from klopt.errors import InvalidProblem
from klopt.kernels.eigenpairs import smoothest_eigenpairs
from klopt.kernels.graphs import Weights, laplacian
from klopt.kernels.side_information import side_graph
from klopt.learners._base import ClassWeight, Codes, Unlabelled
from klopt.learners._graph import Extension, GraphLearner
from klopt.learners._multiclass import MultiClass
from klopt.model.backend import Backend
from klopt.problems.ordered_alignment import OrderedAlignment, Target
from klopt.problems.scg_ordered import ScgOrdered

__all__ = ["OSK", "ScgOSK"]


PRIOR_RIDGE = 1e-3
"""What is added to the eigenvalues of the Gaussian field."""
MAX_ZERO_EIGENVALUE = 1e-9
"""Eigenvalues of a normalised Laplacian up to this are 0."""


class _Ordered(GraphLearner):
    rank: int | None
    weight_name: str
    _given_weights: FloatArray
    """Weights that do not depend on the labels; their sum and `_learned_share` make 1."""
    _learned_share: float

    def _eigenpairs(self, W: SparseMatrix) -> tuple[FloatArray, FloatArray]:
        n = W.shape[0]
        return smoothest_eigenpairs(laplacian(W), n if self.rank is None else min(self.rank, n))

    @property
    def spectrum_(self) -> FloatArray:
        """The weights of the eigenvectors, smoothest first; their sum is 1."""
        assert self.result_.point is not None
        learned = self.result_.point.primal[self.weight_name]
        return self._given_weights + self._learned_share * learned

    @property
    def kernel_(self) -> FloatArray:
        """The learned kernel matrix of the training points; formed on demand."""
        half = self._features()
        return half @ half.T

    def _features(self) -> FloatArray:
        used = np.flatnonzero(self.spectrum_ > 0)
        V: FloatArray = self.result_.problem.V  # type: ignore[attr-defined]
        return V[:, used] * np.sqrt(self.spectrum_[used])


class OSK(_Ordered):
    """The ordered spectral kernel that is best aligned with the labels.

    Labels of -1 mark points without label.

    Parameters
    ----------
    graph
        "knn" for the graph of nearest neighbours, "precomputed" where X holds its weights.
    n_neighbors
        The number of nearest neighbours of a point.
    weights
        The weights of the edges, "binary" or "gaussian".
    extension
        How values are carried to new points: "kernel" for kernel ridge regression, "neighbours"
        for the mean of the nearest training points.
    rank
        The number of smoothest eigenvectors; None for all.
    sigma
        The ratio of the order w_i >= sigma w_{i+1}.
    prior
        The share of the weight that follows the graph alone, from 0 to 1: 0 is the kernel of best
        alignment as printed, which needs several labels a class. None for 1 over the square root
        of the mean number of labels a class.
    ordered
        Whether the weights are ordered.
    target
        The matrix that the kernel is aligned with: 1 for points of one class, otherwise 0
        ("indicator") or -1 ("signed").
    C
        The penalty of the support vector machines, for a kernel whose diagonal has mean 1.
    multi_class
        "ovo" for a model per pair of classes, "ovr" for a model per class.
    class_weight
        The weights of the classes, which multiply C: None, "balanced", or {class: weight}.
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
        The certified result: the weights of best alignment, without prior.
    prior_
        The prior that was used.
    spectrum_
        The weights of the eigenvectors, prior included.
    kernel_
        The learned kernel matrix of the training points.

    Notes
    -----
    The kernel is K = sum_i w_i v_i v_i' on the smoothest eigenvectors v_i of the normalised graph
    Laplacian, with weights w_1 >= sigma w_2 >= .. of sum 1. The weights of largest alignment with
    the labels, a quadratic program, are proven to be optimal; a share `prior` of the weight follows
    the graph alone. Support vector machines on the labelled points decide. Points in a component of
    the graph without labels take the mean of their nearest points in the others.

    References
    ----------
    Pan, Chen, Chen, Xu, Efficient learning of supervised kernels with a graph-based loss function,
    Information Sciences, 2016, (2).

    Xie, Ding, Gong, Wu, Rank ordering constraints elimination with application for kernel learning,
    AAAI Conference on Artificial Intelligence, 2017.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> few = np.where(np.arange(len(y)) % 10 == 0, y, -1)
    >>> learner = OSK().fit((X - X.mean(axis=0)) / X.std(axis=0), few)
    >>> learner.result_.verdict.name, bool(np.mean(learner.transduction_ == y) > 0.9)
    ('OPTIMAL', True)
    """

    weight_name = "alpha"

    def __init__(
        self,
        *,
        graph: str = "knn",
        n_neighbors: int = 5,
        weights: Weights = "gaussian",
        extension: Extension = "kernel",
        rank: int | None = 200,
        sigma: float = 1.0,
        prior: float | None = None,
        ordered: bool = True,
        target: Target = "indicator",
        C: float = 10.0,
        multi_class: MultiClass = "ovo",
        class_weight: ClassWeight = None,
        unlabelled: Unlabelled = -1,
        backend: str | Backend | None = None,
        tol: float = 1e-6,
        time_limit: float | None = None,
    ) -> None:
        self.graph = graph
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.extension = extension
        self.rank = rank
        self.sigma = sigma
        self.prior = prior
        self.ordered = ordered
        self.target = target
        self.C = C
        self.multi_class = multi_class
        self.class_weight = class_weight
        self.unlabelled = unlabelled
        self.backend = backend
        self.tol = tol
        self.time_limit = time_limit

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the kernel from all points and the models from the labelled ones.

        Parameters
        ----------
        X, y
            Points and their labels.
        sample_weight
            What multiplies C of each labelled point; the kernel is learned without weights.
        """
        W, codes = self._graph_of(X, y)
        self.prior_ = self._given_prior(codes)
        weights = self._point_weights(sample_weight, W, codes)
        values, V = self._eigenpairs(W)
        field = 1 / (np.maximum(values, 0.0) + PRIOR_RIDGE)
        self._given_weights = self.prior_ * field / field.sum()
        self._learned_share = 1 - self.prior_
        self.result_ = self._certified(
            OrderedAlignment(V, codes, self.sigma, self.ordered, self.target)
        )
        return self._decide_by_svm(V, self.spectrum_, codes, self.C, weights)

    def _given_prior(self, codes: Codes) -> float:
        if self.prior is None:
            return float(np.sqrt(self.classes_.size / np.count_nonzero(codes >= 0)))
        return _share("prior", self.prior)


class ScgOSK(_Ordered):
    """The ordered spectral kernel of minimum graph-based loss.

    Labels of -1 mark points without label.

    Parameters
    ----------
    graph, n_neighbors, weights, extension, rank, sigma, C, multi_class, class_weight, unlabelled
        As in `OSK`.
    backend, tol, time_limit
        As in `OSK`.
    floor
        The share of the weight that all eigenvectors have alike, from 0 to 1. 0 is the linear
        program as printed, which gives weight to few of them, at times to one for three classes;
        None for 0.1 and 0.8 times the share of labelled points.
    skip_constant
        Leave out the constant eigenvector. With it, the program as printed, the kernel of a
        connected graph is constant and does not separate classes.

    Attributes
    ----------
    classes_, transduction_
        As in `OSK`.
    result_
        The certified result of the linear program without floor.
    floor_
        The floor that was used.
    spectrum_
        The weights of the eigenvectors, floor included.
    kernel_
        The learned kernel matrix of the training points.

    Notes
    -----
    The kernel is K = sum_i w_i v_i v_i' on the smoothest eigenvectors of the normalised graph
    Laplacian. The weights minimise tr(KS), S the Laplacian of the graph that joins labelled points
    by their classes: a linear program over ordered weights, whose optimum is the best prefix and is
    proven. With sigma = 1 the weights with `floor` are the optimum of the same program with w_i >=
    floor / r.

    References
    ----------
    Pan, Chen, Chen, Xu, Efficient learning of supervised kernels with a graph-based loss function,
    Information Sciences, 2016, (26).

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> few = np.where(np.arange(len(y)) % 10 == 0, y, -1)
    >>> learner = ScgOSK().fit((X - X.mean(axis=0)) / X.std(axis=0), few)
    >>> learner.result_.verdict.name, bool(np.mean(learner.transduction_ == y) > 0.9)
    ('OPTIMAL', True)
    """

    weight_name = "mu"

    def __init__(
        self,
        *,
        graph: str = "knn",
        n_neighbors: int = 10,
        weights: Weights = "binary",
        extension: Extension = "kernel",
        rank: int | None = 200,
        sigma: float = 1.0,
        floor: float | None = None,
        skip_constant: bool = True,
        C: float = 10.0,
        multi_class: MultiClass = "ovo",
        class_weight: ClassWeight = None,
        unlabelled: Unlabelled = -1,
        backend: str | Backend | None = None,
        tol: float = 1e-6,
        time_limit: float | None = None,
    ) -> None:
        self.graph = graph
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.extension = extension
        self.rank = rank
        self.sigma = sigma
        self.floor = floor
        self.skip_constant = skip_constant
        self.C = C
        self.multi_class = multi_class
        self.class_weight = class_weight
        self.unlabelled = unlabelled
        self.backend = backend
        self.tol = tol
        self.time_limit = time_limit

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the kernel from all points and the models from the labelled ones.

        Parameters
        ----------
        X, y
            Points and their labels.
        sample_weight
            What multiplies C of each labelled point; the kernel is learned without weights.
        """
        W, codes = self._graph_of(X, y)
        self.floor_ = self._given_floor(codes)
        self._learned_share = 1 - self.floor_
        weights = self._point_weights(sample_weight, W, codes)
        values, V = self._eigenpairs(W)
        # The eigenvalue 0 occurs once per connected component.
        flat = int(np.count_nonzero(values <= MAX_ZERO_EIGENVALUE))
        if flat > 1:
            V = np.hstack([_constant_first(V[:, :flat], W, codes), V[:, flat:]])
        alike = np.ones(V.shape[1])
        if self.skip_constant:
            alike[0] = 0.0
        self._given_weights = self.floor_ * alike / alike.sum()
        self.result_ = self._certified(ScgOrdered(V, codes, self.sigma, self.skip_constant))
        return self._decide_by_svm(V, self.spectrum_, codes, self.C, weights)

    def _given_floor(self, codes: Codes) -> float:
        if self.floor is None:
            # The more labels there are, the rougher the functions that they can tell apart.
            return 0.1 + 0.8 * float(np.mean(codes >= 0))
        return _share("floor", self.floor)


def _share(name: str, value: float) -> float:
    share = positive(name, value, zero=True)
    if share > 1:
        raise InvalidProblem(f"{name} is {share:g}; expected a share from 0 to 1")
    return share


def _constant_first(V: FloatArray, W: SparseMatrix, codes: Codes) -> FloatArray:
    """A basis of the null space: D^1/2 1, the constant, first, then by ascending loss.

    A disconnected graph has several eigenvectors of eigenvalue 0, in no order of their own; which
    one is skipped must not depend on the eigenvalue solver.
    """
    constant = V.T @ np.sqrt(np.asarray(W.sum(axis=0), dtype=float))
    basis = V @ np.linalg.qr(np.column_stack([constant, np.eye(V.shape[1])]))[0]
    rest = basis[:, 1:]
    turn = np.linalg.eigh(rest.T @ side_graph(codes, len(V)).apply(rest))[1]
    return np.column_stack([basis[:, 0], rest @ turn])
