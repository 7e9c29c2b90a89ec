"""Learners of a kernel function near a given one, and support vector machines with it.

The learned kernel is k(x, y) = k0(x, y) + k0(x, X) Q k0(X, y). A model with coefficients a on the
training points X decides by k(x, X) a = k0(x, X) b with

    b = a + Q K0 a,

computed once, when the first new point comes; a new point then costs one row of k0 and no more than
with k0 itself. The learned features are those of kernel PCA (not centred): K = U diag(l) U' on the
training points gives diag(l)^-1/2 U'k(X, x).

For many points k0 is replaced by `rank` Nystroem features, k0(x, y) = phi(x)'phi(y)
(`klopt.kernels.nystroem`), and no n x n matrix is formed: the learned kernel is psi(x)'psi(y), psi
= C'phi, and a model decides by phi(x)'C psi(X)'a.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from klopt.arrays import FloatArray
from klopt.engine.result import Result
from klopt.errors import InvalidProblem
from klopt.kernels.gram import Gram
from klopt.kernels.nystroem import Nystrom, nystrom
from klopt.kernels.out_of_sample import ExtendedFeatures, ExtendedKernel
from klopt.learners._base import PRECOMPUTED, Classifier, Codes, part
from klopt.learners._multiclass import MultiClass, MulticlassScheme, support_vector_machines
from klopt.learners.kernels import as_kernel, blocks
from klopt.problems._logdet.extension import FactoredKernel

__all__ = ["NearKernelLearner", "pulled_back"]

MAX_MATRIX_POINTS = 8000
"""With more labelled points a kernel of low rank stays in its features: the matrix is not formed."""
MIN_CHANGE = 1e-3
"""A kernel nearer to a multiple of the given one, relative to its own norm, is the given one."""
MIN_EIGENVALUE_SHARE = 1e-10
"""Features whose eigenvalue is below this share of the largest are rounding."""


Function = ExtendedKernel | FactoredKernel | ExtendedFeatures


def pulled_back(function: ExtendedKernel | FactoredKernel, a: FloatArray) -> FloatArray:
    """Return b with k(x, X) a = k0(x, X) b for every x.

    >>> pulled_back(ExtendedKernel(np.eye(2), Q=np.eye(2)), np.array([[1.0], [0.0]])).ravel()
    array([2., 0.])
    """
    J = slice(None) if function.points is None else function.points
    b = np.array(a, dtype=float)
    seen = function.K0[J] @ a
    # b = a + Q K0 a, with Q on the points J only.
    if isinstance(function, ExtendedKernel):
        b[J] += function.Q @ seen
        return b
    from scipy.linalg import solve_triangular

    Q, T = np.linalg.qr(function.R.T)  # psi solves R'psi = k0(J, x) by least squares
    psi = solve_triangular(T, Q.T @ seen)
    b[J] += Q @ solve_triangular(T, function.W @ psi - psi, trans="T")
    return b


@dataclass(frozen=True, eq=False)
class _Extension:
    """What new points need of the learned kernel: computed when it is first used."""

    result: Result
    a: FloatArray
    """Coefficients of the training points (points x models)."""
    n_components: int | None

    @cached_property
    def function(self) -> Function:
        """The learned kernel at any points."""
        return cast(Function, cast(Any, self.result.problem).extend(self.result.point))

    @cached_property
    def coefficients(self) -> FloatArray:
        """b with k0(x, X) b, or phi(x)'b for features, the models' values at x without bias."""
        if isinstance(self.function, ExtendedFeatures):
            return np.asarray(self.function.C @ (self.function.C.T @ (self._Phi.T @ self.a)))
        return pulled_back(self.function, self.a)

    @cached_property
    def axes(self) -> FloatArray:
        """B with k0(x, X) B, or phi(x)'B for features, the kernel PCA features of x."""
        if isinstance(self.function, ExtendedFeatures):
            psi = self.function.features(self._Phi)
            return np.asarray(self.function.C @ self._leading(psi.T @ psi)[1])
        values, U = self._leading(cast(FloatArray, self.result.kernel))
        return pulled_back(self.function, U / np.sqrt(values))

    @property
    def _Phi(self) -> FloatArray:
        return cast(FloatArray, cast(Any, self.result.problem).K0.Phi)

    def _leading(self, K: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The largest eigenvalues, descending, and their eigenvectors with fixed signs."""
        from scipy.linalg import eigh

        n = len(K)
        first = 0 if self.n_components is None else max(n - self.n_components, 0)
        values, U = eigh(K, subset_by_index=(first, n - 1))
        kept = np.flatnonzero(values > MIN_EIGENVALUE_SHARE * values[-1])[::-1]
        U = U[:, kept]
        # The largest entry of each is positive.
        largest = np.argmax(np.abs(U), axis=0)
        return values[kept], U * np.sign(U[largest, np.arange(kept.size)])


def _change(K: FloatArray, K0: FloatArray) -> float:
    """The distance of K and K0 after each is divided by its norm."""
    own = float(np.linalg.norm(K))
    given = float(np.linalg.norm(K0))
    return float(np.linalg.norm(K / (own or 1.0) - K0 / (given or 1.0)))


def _change_of_features(psi: FloatArray, phi: FloatArray) -> float:
    """The same for K = psi psi' and K0 = phi phi', by matrices of the order of the features.

    <K, K0> = ||psi'phi||^2 and ||K|| = ||psi'psi||. Changes below 1e-7 are lost to rounding.
    """
    own = float(np.linalg.norm(psi.T @ psi))
    given = float(np.linalg.norm(phi.T @ phi))
    both = float(np.linalg.norm(psi.T @ phi)) ** 2
    if not own or not given:
        return float(own != given)
    return float(np.sqrt(max(2 - 2 * both / (own * given), 0.0)))


class NearKernelLearner(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Classifier):  # type: ignore[misc]
    """A learner of a kernel function near `kernel`; -1 marks points without label."""

    kernel: Any
    C: float
    rank: int | None
    n_components: int | None
    multi_class: MultiClass
    result_: Result

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == PRECOMPUTED

    def _given(self, X: Any, y: Any) -> tuple[Gram | Nystrom, Codes]:
        """The given kernel on the training points, and their classes."""
        X, codes = self._labelled(X, y, unlabelled=True)
        if self._is_precomputed:
            if X.shape[0] != X.shape[1]:
                raise ValueError(f"a precomputed kernel is square; X has shape {X.shape}")
            if self.rank is not None:
                raise InvalidProblem(
                    f"rank is {self.rank}; features of low rank are made from points, not from a kernel"
                )
            self._X = self._low = None
            return Gram.of(X, "X"), codes

        self._kernel = as_kernel(self.kernel).fix(X, getattr(self, "feature_names_in_", None))
        self._X = X
        self._low = None
        # New points are then compared with the landmarks, not with the training points.
        if self.rank is not None:
            if sparse.issparse(X):
                raise InvalidProblem(
                    f"rank is {self.rank}, but X is sparse; features of low rank need dense points: "
                    "leave rank out, or pass X.toarray()"
                )
            self._X = None
            self._low = nystrom(X, self._kernel, min(self.rank, len(X)))
            return self._low, codes
        return self._kernel.gram(X, "K0"), codes

    def _finish(self, codes: Codes, weights: FloatArray) -> Self:
        """Train models with the learned kernel on the labelled points; weights multiply C."""
        known = np.flatnonzero((codes >= 0) & (weights > 0))
        self._scheme = MulticlassScheme(self.classes_.size, self.multi_class)
        a = np.zeros((codes.size, len(self._scheme.pairs)))
        # The features of many points are far smaller than their kernel matrix.
        by_features = self._low is not None and known.size > MAX_MATRIX_POINTS
        K = self._psi(known) if by_features else self._learned(known, codes.size)
        change = self._change_among(known, K)
        if change < MIN_CHANGE:
            self._warn_of_kernel(
                f"the learned kernel does nothing: on the labelled points it differs from the given "
                f"one by {change:.1e} of its norm; {self._more}"
            )
        a[known], self._bias = support_vector_machines(
            K, codes[known], self._scheme, self.C, weights[known], by_features=by_features
        )
        self._extension = _Extension(self.result_, a, self.n_components)
        return self

    @property
    def _more(self) -> str:
        """What makes the learned kernel differ more."""
        raise NotImplementedError

    def _change_among(self, known: npt.NDArray[np.intp], K: FloatArray) -> float:
        """How far the learned kernel K on some of the training points is from the given one."""
        problem = cast(Any, self.result_.problem)
        if self._low is not None:
            return _change_of_features(self._psi(known), self._low.Phi[known])
        return _change(K, part(cast(Gram, problem.K0), known).matrix)

    def _psi(self, known: npt.NDArray[np.intp]) -> FloatArray:
        """The features of the learned kernel, where it has low rank, of some training points."""
        learned = cast(ExtendedFeatures, cast(Any, self.result_.problem).extend(self.result_.point))
        return learned.features(cast(Nystrom, self._low).Phi[known])

    def _learned(self, known: npt.NDArray[np.intp], count: int) -> FloatArray:
        """The learned kernel on some of `count` training points."""
        if self._low is not None:
            problem = cast(Any, self.result_.problem)
            point = self.result_.point
            return cast(FloatArray, problem.extend(point).among(self._low.Phi[known]))
        return self.kernel_ if known.size == count else part(self.kernel_, known)

    def _seen(self, X: Any, B: FloatArray) -> FloatArray:
        """k0(x, X) B, or phi(x)'B, for the rows x."""
        points = self._points(X)
        if self._low is not None:
            return np.asarray(self._low.features(points) @ B)
        # A precomputed kernel: the rows of X are k0(x, X).
        if self._X is None:
            return points @ B
        found = np.empty((points.shape[0], B.shape[1]))
        for rows in blocks(points.shape[0], 8 * self._X.shape[0]):
            found[rows] = self._kernel(points[rows], self._X) @ B
        return found

    @property
    def kernel_(self) -> FloatArray:
        """The learned kernel matrix of the training points; formed on demand."""
        return cast(FloatArray, self.result_.kernel)

    @property
    def _n_features_out(self) -> int:
        return int(self._extension.axes.shape[1])

    def decision_function(self, X: Any) -> FloatArray:
        """Return one score a class; for two classes one number, positive for the second."""
        check_is_fitted(self)
        return self._scheme.scores(self._seen(X, self._extension.coefficients) + self._bias)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the classes of points."""
        return self._named(self.decision_function(X))

    def transform(self, X: Any) -> FloatArray:
        """Return the leading `n_components` features (None: all) of the learned kernel."""
        check_is_fitted(self)
        return self._seen(X, self._extension.axes)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._is_precomputed and self.rank is None
        tags.input_tags.pairwise = self._is_precomputed
        return tags
