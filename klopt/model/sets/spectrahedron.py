"""The spectrahedron: what the simplex answers, said of eigenvalues.

    X = {x = svec(M), M positive semidefinite, trace M = total}

The eigenvalues of M lie in a simplex. With M = V diag(lam) V', the nearest point and the mirror map
change lam as the simplex would and leave V alone; the entropy is sum_i lam_i log(lam_i / total),
the dual norm the spectral norm. A linear function <G, M> has its minimum at
total v v', v an eigenvector of the smallest eigenvalue of G.
"""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np

from klopt.arrays import FloatArray, as_positive, as_positive_integer
from klopt.model.cones.svec import smat, svec, svec_size
from klopt.model.features import Feature
from klopt.model.sets.projections import simplex_projection
from klopt.model.sets.simple_set import SimpleSet
from klopt.model.sets.simplex import entropy_gradient, entropy_point

__all__ = ["Spectrahedron"]


@attrs.frozen(slots=False)
class Spectrahedron(SimpleSet):
    """The points x = svec(M) of positive semidefinite matrices M with trace total.

    Parameters
    ----------
    order : int
        The number of rows of M.
    total : float
        Its trace.

    Examples
    --------
    >>> smat(Spectrahedron(2).linear_minimiser(svec(np.diag([3.0, 1.0]))))
    array([[0., 0.],
           [0., 1.]])
    """

    order: int = attrs.field(converter=as_positive_integer)
    total: float = attrs.field(default=1.0, converter=as_positive)

    features: ClassVar[frozenset[Feature]] = frozenset({Feature.SPECTRAL})
    has_mirror: ClassVar[bool] = True

    @property
    def size(self) -> int:
        return svec_size(self.order)

    @property
    def radius(self) -> float:
        # Attained by the rank-one matrix whose entries are all equal: its diagonal sums to total,
        # its strict triangle, times sqrt(2), to total (order - 1) / sqrt(2).
        return float(self.total * (1.0 + (self.order - 1) / np.sqrt(2.0)))

    def project(self, x: FloatArray) -> FloatArray:
        lam, V = np.linalg.eigh(smat(x))
        return _from_eigenvalues(simplex_projection(lam, self.total), V)

    def linear_minimiser(self, g: FloatArray) -> FloatArray:
        _, V = np.linalg.eigh(smat(g))
        return _from_eigenvalues(np.array([self.total]), V[:, :1])

    def linear_minimum(self, g: FloatArray) -> float:
        lam = np.linalg.eigvalsh(smat(g))
        return float(self.total * lam[0])

    def centre(self) -> FloatArray:
        return svec(np.eye(self.order) * (self.total / self.order))

    def violation(self, x: FloatArray) -> float:
        # LAPACK raises on NaN instead of returning it.
        if np.isnan(x).any():
            return np.nan
        M = smat(x)
        lam = np.linalg.eigvalsh(M)
        trace_error = abs(float(np.trace(M)) - self.total)
        return max(-float(lam[0]), trace_error)

    def mirror(self, theta: FloatArray) -> FloatArray:
        lam, V = np.linalg.eigh(smat(theta))
        return _from_eigenvalues(entropy_point(lam, self.total), V)

    def mirror_dual(self, x: FloatArray) -> FloatArray:
        lam, V = np.linalg.eigh(smat(x))
        return svec((V * entropy_gradient(lam, self.total)) @ V.T)

    @property
    def mirror_depth(self) -> float:
        return float(self.total * np.log(self.order))

    def dual_norm(self, g: FloatArray) -> float:
        lam = np.linalg.eigvalsh(smat(g))
        return float(np.abs(lam[[0, -1]]).max())


def _from_eigenvalues(lam: FloatArray, V: FloatArray) -> FloatArray:
    """Return svec(V diag(lam) V') for lam >= 0, as a product of a matrix with its own transpose."""
    half = V * np.sqrt(lam)
    return svec(half @ half.T)
