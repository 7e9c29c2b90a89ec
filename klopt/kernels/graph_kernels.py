"""Kernels that are a fixed function of a graph's spectrum, and the alignment that sets their width.

With the eigenpairs (gamma_i, v_i) of a Laplacian, K = sum_i w(gamma_i) v_i v_i' for

    diffusion        w = exp(-sigma^2 gamma / 2)        Kondor, Lafferty (2002)
    Gaussian field   w = 1 / (gamma + epsilon)          Zhu et al. (2003)

Both fall with gamma: functions that are smooth on the graph are cheap. Mao and Tsang (2010) note
that the width that aligns such a kernel best with the labels has no closed form; here it is
searched for on a grid of powers and refined by golden sections (`aligned_kernel`). Nothing is
certified about it: the alignment may have several maxima.

Kondor, Lafferty, Diffusion kernels on graphs and other discrete structures, 2002. Zhu, Ghahramani,
Lafferty, Semi-supervised learning using Gaussian fields and harmonic functions, 2003.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from scipy.optimize import minimize_scalar

from klopt.arrays import FloatArray, positive, require_memory
from klopt.errors import InvalidProblem
from klopt.kernels.eigenpairs import checked_laplacian, smoothest_eigenpairs
from klopt.kernels.graphs import class_labels

__all__ = ["GraphKernel", "aligned_kernel", "diffusion_kernel", "gaussian_field_kernel"]

Family = Literal["diffusion", "gaussian field"]
LOG2_WIDTHS = np.arange(-10.0, 10.5, 0.5)
"""Binary logarithms of the widths that are tried first, in units of the largest eigenvalue."""


@dataclass(frozen=True, eq=False)
class GraphKernel:
    """K = V diag(w) V' on the points of a graph, smoothest eigenvectors first."""

    V: FloatArray
    w: FloatArray
    width: float
    """The parameter of the family: sigma or epsilon."""

    @property
    def factor(self) -> tuple[FloatArray, FloatArray]:
        """(V, w), which `klopt.kernels.transduction.least_squares` takes in place of a matrix."""
        return self.V, self.w

    @property
    def matrix(self) -> FloatArray:
        """K itself; formed on demand."""
        require_memory(8.0 * len(self.V) ** 2, f"the kernel of {len(self.V)} points")
        return np.asarray((self.V * self.w) @ self.V.T)


def diffusion_kernel(laplacian: object, sigma: float = 1.0, rank: int | None = None) -> GraphKernel:
    """Return exp(-sigma^2 L / 2), on the `rank` smoothest eigenvectors (None: on all).

    >>> diffusion_kernel([[1.0, -1.0], [-1.0, 1.0]], sigma=1.0).matrix.round(4)
    array([[0.6839, 0.3161],
           [0.3161, 0.6839]])
    """
    gamma, V = _eigenpairs(laplacian, rank)
    sigma = positive("sigma", sigma)
    return GraphKernel(V, _diffusion(gamma, sigma), sigma)


def gaussian_field_kernel(
    laplacian: object, epsilon: float = 0.1, rank: int | None = None
) -> GraphKernel:
    """Return (L + epsilon I)^-1, on the `rank` smoothest eigenvectors (None: on all).

    >>> gaussian_field_kernel([[1.0, -1.0], [-1.0, 1.0]], epsilon=1.0).matrix.round(4)
    array([[0.6667, 0.3333],
           [0.3333, 0.6667]])
    """
    gamma, V = _eigenpairs(laplacian, rank)
    epsilon = positive("epsilon", epsilon)
    return GraphKernel(V, _gaussian_field(gamma, epsilon), epsilon)


def aligned_kernel(
    family: Family, laplacian: object, labels: object, rank: int | None = None
) -> GraphKernel:
    """Return the kernel of a family whose width is best aligned with the labelled points.

    The alignment is that of K_ll, the kernel of the labelled points, with T = YY' of their targets,
    which are -1 and +1 for two classes and indicators for more.

    Parameters
    ----------
    family
        "diffusion" or "gaussian field".
    laplacian
        The Laplacian of the graph.
    labels
        Classes 0, 1, 2, .., -1 for unlabelled points.
    rank
        The number of smoothest eigenvectors that are kept, None for all.

    >>> path = [[1, -1, 0, 0], [-1, 2, -1, 0], [0, -1, 2, -1], [0, 0, -1, 1.0]]
    >>> kernel = aligned_kernel("diffusion", path, [0, -1, -1, 1])
    >>> bool(kernel.width > 0), bool(kernel.matrix[0, 1] > kernel.matrix[0, 3])
    (True, True)
    """
    weights = _FAMILIES.get(family)
    if weights is None:
        raise InvalidProblem(f"family is {family!r}; expected one of {', '.join(get_args(Family))}")
    gamma, V = _eigenpairs(laplacian, rank)
    given = class_labels(labels, len(V))
    known = np.flatnonzero(given >= 0)
    classes = np.unique(given[known])
    if classes.size < 2:
        raise InvalidProblem(
            f"labels name {classes.size} class; an alignment needs at least two classes"
        )
    Y = (given[known, None] == classes).astype(np.float64)
    if classes.size == 2:
        Y = Y[:, 1:] - Y[:, :1]
    # <K_ll, YY'> = sum_i w_i |v_i'Y|^2, and ||K_ll||^2 = w'(V_l'V_l)^2 w with entrywise squares.
    seen = V[known]
    along = ((seen.T @ Y) ** 2).sum(axis=1)
    products = (seen.T @ seen) ** 2

    def misalignment(log2_width: float) -> float:
        w = weights(gamma, float(np.exp2(log2_width)))
        size = float(w @ products @ w)
        return -float(along @ w) / np.sqrt(size) if size > 0 else 0.0

    # sigma^2 gamma and gamma / epsilon are of order 1 somewhere on this grid.
    unit = np.log2(float(gamma[-1]) or 1.0)
    grid = LOG2_WIDTHS + (unit if family == "gaussian field" else -unit / 2)
    best = int(np.argmin([misalignment(width) for width in grid]))
    around = grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)]
    found = minimize_scalar(misalignment, bounds=around, method="bounded")
    width = float(found.x) if found.fun < misalignment(grid[best]) else float(grid[best])
    sigma = float(np.exp2(width))
    return GraphKernel(V, weights(gamma, sigma), sigma)


def _eigenpairs(laplacian: object, rank: int | None) -> tuple[FloatArray, FloatArray]:
    L = checked_laplacian(laplacian)
    gamma, V = smoothest_eigenpairs(L, L.shape[0] if rank is None else rank)
    return np.maximum(gamma, 0.0), V


def _diffusion(gamma: FloatArray, sigma: float) -> FloatArray:
    return np.exp(-(sigma**2) / 2 * gamma)


def _gaussian_field(gamma: FloatArray, epsilon: float) -> FloatArray:
    return 1 / (gamma + epsilon)


_FAMILIES: dict[str, Callable[[FloatArray, float], FloatArray]] = {
    "diffusion": _diffusion,
    "gaussian field": _gaussian_field,
}
