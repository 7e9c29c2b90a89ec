"""Multiple kernel learning as a second-order cone program.

    minimise  t - y'a   over   |R_i a| <= r_i,   |(sum r, ridge^1/2 a)|^2 <= 2 t       (s = 1)

with K_i = R_i'R_i, and for s = inf one r in place of all r_i. Rows come as: the plane, the box, the
cones of the kernels, the last cone. The multiplier of cone i is (lambda_i, -w_i) with w_i the
normal vector of the classifier in the features of kernel i.
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
    """The program in (a, r, t).

    Parameters
    ----------
    factors
        R_i.
    y, domain, ridge
        The gradients, the set of a, and the ridge: one number, or one for each entry of a.
    is_sum
        Whether each kernel has its r_i (s = 1), else one r bounds them all (s = inf).
    """

    factors: tuple[FloatArray, ...]
    y: FloatArray
    domain: BoxPlane
    ridge: float | FloatArray
    is_sum: bool

    @property
    def norms(self) -> int:
        """The number of r."""
        return len(self.factors) if self.is_sum else 1

    @property
    def height(self) -> float:
        """The h that balances (t/h + h/2, t/h - h/2, ..): the size of the norm."""
        return float(np.sqrt(self.y.size))

    def form(self) -> ConeForm:
        """Return the cone program."""
        n = self.y.size
        rows, right = self._linear_rows()
        linear = sparse.hstack([rows, sparse.csr_array((right.size, self.norms + 1))])
        cones = [self._kernel_rows(i) for i in range(len(self.factors))]
        top, b_top = self._top_rows()
        sizes = [cone.shape[0] for cone in cones]

        A = sparse.vstack([linear, *cones, top], format="csc")
        b = np.concatenate([right, np.zeros(sum(sizes)), b_top])
        c = np.zeros(n + self.norms + 1)
        c[:n] = -self.y
        c[-1] = 1.0
        zero = int(self.domain.normal is not None)
        return ConeForm(c, A, b, Cones(zero, right.size - zero, (*sizes, b_top.size)))

    def _linear_rows(self) -> tuple[sparse.csr_array, FloatArray]:
        """The rows of the plane and of the finite bounds of a."""
        n = self.y.size
        domain = self.domain
        eye = sparse.eye_array(n, format="csr")
        plane = sparse.csr_array((0, n))
        if domain.normal is not None:
            plane = sparse.csr_array(domain.normal[None, :])
        offset = np.full(plane.shape[0], domain.offset)
        stacked = sparse.vstack([plane, eye, -eye], format="csr")
        b = np.concatenate([offset, domain.upper, -domain.lower])
        kept = np.flatnonzero(np.isfinite(b))
        return stacked[kept], b[kept]

    def _kernel_rows(self, index: int) -> sparse.csr_array:
        """(r_i, R_i a) in the cone."""
        n = self.y.size
        R = self.factors[index]
        column = n + index if self.is_sum else n
        head = sparse.csr_array(([-1.0], ([0], [column])), shape=(1, n + self.norms + 1))
        tail = sparse.hstack([sparse.csr_array(-R), sparse.csr_array((len(R), self.norms + 1))])
        return sparse.vstack([head, tail], format="csr")

    def _top_rows(self) -> tuple[sparse.csr_array, FloatArray]:
        """(t/h + h/2, t/h - h/2, sum r, ridge^1/2 a) in the cone."""
        n = self.y.size
        h = self.height
        size = n + self.norms + 1
        head = np.zeros((3, size))
        head[:2, -1] = -1 / h
        head[2, n:-1] = -1.0
        rows = sparse.csr_array(head)
        b = np.array([h / 2, -h / 2, 0.0])
        if np.any(self.ridge):
            roots = np.sqrt(np.full(n, self.ridge))
            tail = sparse.csr_array(-roots[:, None] * np.eye(n, size))
            rows = sparse.vstack([rows, tail], format="csr")
            b = np.concatenate([b, np.zeros(n)])
        return rows, b

    def lifted(self, a: FloatArray) -> FloatArray:
        """Return (a, r, t) with the smallest r and t."""
        r = np.array([np.linalg.norm(R @ a) for R in self.factors])
        if not self.is_sum:
            r = r.max(keepdims=True)
        t = (float(r.sum()) ** 2 + float((self.ridge * a) @ a)) / 2
        return np.concatenate([a, r, [t]])

    def multipliers(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the lambda_i and coefficients beta_i of the classifier, R_i beta_i = w_i."""
        sizes = [1 + len(R) for R in self.factors]
        top = 3 + (self.y.size if np.any(self.ridge) else 0)
        first = y.size - top - sum(sizes)
        blocks = np.split(y[first : first + sum(sizes)], np.cumsum(sizes)[:-1])
        weights = np.array([block[0] for block in blocks])
        pairs = zip(self.factors, blocks, strict=True)
        beta = np.array([np.linalg.lstsq(R, -block[1:])[0] for R, block in pairs])
        return weights, beta
