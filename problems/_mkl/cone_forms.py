"""Multiple kernel learning as a cone program: one second-order cone a kernel and one for the square of their norm.

    minimise  t - y'a   over   |R_i a| <= r_i,   |(sum r, ridge^1/2 a)|^2 <= 2 t     K_i = R_i'R_i       (s = 1)

and for s = inf one r in place of all r_i. Rows come as: the plane, the box, the cones of the
kernels, the last cone. The multiplier of cone i is (lambda_i, -w_i) with w_i the normal vector of
the classifier in the features of kernel i.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.model.cones import Cones
from klopt.model.forms import ConeForm
from klopt.model.sets import BoxPlane

__all__ = ["NormCone"]


@dataclass(frozen=True, eq=False)
class NormCone:
    """The cone program of factors R_i, gradients y, a set of a and a ridge; `apart` says that each kernel has its r."""

    factors: tuple[FloatArray, ...]
    y: FloatArray
    domain: BoxPlane
    ridge: float
    apart: bool

    @property
    def norms(self) -> int:
        """The number of r."""
        return len(self.factors) if self.apart else 1

    @property
    def height(self) -> float:
        """What (t/h + h/2, t/h - h/2, ..) is balanced by: the size of the norm in the form's units."""
        return float(np.sqrt(self.y.size))

    def form(self) -> ConeForm:
        """Return the program in (a, r, t)."""
        n, k = self.y.size, self.norms
        wide = n + k + 1
        rows, right = self._linear_rows()
        linear = sparse.hstack([rows, sparse.csr_array((right.size, k + 1))])
        cones = [self._kernel_rows(i) for i in range(len(self.factors))]
        top, b_top = self._top_rows()
        A = sparse.vstack([linear, *cones, top], format="csc")
        b = np.concatenate([right, np.zeros(sum(c.shape[0] for c in cones)), b_top])
        zero = int(self.domain.normal is not None)
        sizes = (*(c.shape[0] for c in cones), b_top.size)
        c = np.zeros(wide)
        c[:n], c[-1] = -self.y, 1.0
        return ConeForm(c, A, b, Cones(zero, right.size - zero, sizes))

    def _linear_rows(self) -> tuple[sparse.csr_array, FloatArray]:
        n, domain = self.y.size, self.domain
        eye = sparse.eye_array(n, format="csr")
        plane = (
            sparse.csr_array((0, n))
            if domain.normal is None
            else sparse.csr_array(domain.normal[None, :])
        )
        right = [np.full(plane.shape[0], domain.offset), domain.upper, -domain.lower]
        stacked = sparse.vstack([plane, eye, -eye], format="csr")
        b = np.concatenate(right)
        kept = np.flatnonzero(np.isfinite(b))
        return stacked[kept], b[kept]

    def _kernel_rows(self, index: int) -> sparse.csr_array:
        """(r_i, R_i a) in the cone."""
        n, R = self.y.size, self.factors[index]
        head = sparse.csr_array(
            ([-1.0], ([0], [n + (index if self.apart else 0)])), shape=(1, n + self.norms + 1)
        )
        tail = sparse.hstack([sparse.csr_array(-R), sparse.csr_array((len(R), self.norms + 1))])
        return sparse.vstack([head, tail], format="csr")

    def _top_rows(self) -> tuple[sparse.csr_array, FloatArray]:
        """(t/h + h/2, t/h - h/2, sum r, ridge^1/2 a) in the cone."""
        n, k, h = self.y.size, self.norms, self.height
        head = np.zeros((3, n + k + 1))
        head[:2, -1] = -1 / h
        head[2, n:-1] = -1.0
        tail = (
            sparse.csr_array(-np.sqrt(self.ridge) * np.eye(n, n + k + 1))
            if self.ridge
            else head[:0]
        )
        b = np.zeros(3 + (n if self.ridge else 0))
        b[:2] = h / 2, -h / 2
        return sparse.vstack([sparse.csr_array(head), sparse.csr_array(tail)], format="csr"), b

    def lifted(self, a: FloatArray) -> FloatArray:
        """Return (a, r, t) with the least r and t."""
        r = np.array([np.linalg.norm(R @ a) for R in self.factors])
        r = r if self.apart else r.max(keepdims=True)
        return np.concatenate([a, r, [(float(r.sum()) ** 2 + self.ridge * float(a @ a)) / 2]])

    def multipliers(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the lambda_i and the beta_i with R_i beta_i = w_i, the coefficients of the classifier."""
        sizes = [1 + len(R) for R in self.factors]
        first = y.size - 3 - (self.y.size if self.ridge else 0) - sum(sizes)
        blocks = np.split(y[first : first + sum(sizes)], np.cumsum(sizes)[:-1])
        beta = [
            np.linalg.lstsq(R, -block[1:])[0] for R, block in zip(self.factors, blocks, strict=True)
        ]
        return np.array([block[0] for block in blocks]), np.array(beta)
