"""Spectra learned from those of similarities as a second-order cone program.

    minimise  t/2 + box 1'xi + weight sum_i q_i     over eigenvalues mu_i >= 0 of kernels K_i = V_i diag(mu_i) V_i'

    u_ij^2 <= mu_ij r_ij,  sum_j r_ij <= t,  1'mu_i = total,  ||mu_i - lambda_i||^2 <= q_i
    y o (root sum_i V_i u_i + b) >= 1 - xi,  xi >= 0

The first is (mu + r, mu - r, 2u) in a second-order cone of three. The multipliers of the margins
are the machine's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.model.cones import Cones
from klopt.model.forms import ConeForm

__all__ = ["SpectraCone"]


@dataclass(frozen=True, eq=False)
class SpectraCone:
    """The program of spectra (m x n) and eigenvectors (m x n x n), in the units of the form."""

    spectra: FloatArray
    vectors: FloatArray
    y: FloatArray
    box: float
    weight: float
    total: float
    root: float

    @cached_property
    def height(self) -> float:
        """h, about as large as ||mu - lambda||."""
        return max(float(np.mean(np.linalg.norm(self.spectra, axis=1))), 1e-3)

    @cached_property
    def starts(self) -> FloatArray:
        """Where the mu_i, u_i, r_i (three for each i), t, q, xi and b begin."""
        m, n = self.spectra.shape
        return np.concatenate([[0], np.cumsum([n] * 3 * m + [1, m, n, 1])])

    def _rows(self, count: int, parts: dict[int, Any]) -> sparse.csr_array:
        sizes = np.diff(self.starts)
        blocks = [
            parts.get(i, sparse.csr_array((count, int(size)))) for i, size in enumerate(sizes)
        ]
        return sparse.csr_array(sparse.hstack(blocks, format="csr"))

    def form(self) -> ConeForm:
        """Return the program."""
        (m, n), eye = self.spectra.shape, sparse.eye_array(self.y.size)
        t, q, xi, b = range(3 * m, 3 * m + 4)
        ones, label = sparse.csr_array(np.ones((1, n))), sparse.diags_array(-self.root * self.y)
        c = np.zeros(int(self.starts[-1]))
        c[int(self.starts[t])] = 0.5
        c[int(self.starts[q]) : int(self.starts[xi])] = self.weight
        c[int(self.starts[xi]) : int(self.starts[b])] = self.box
        zero = [self._rows(1, {3 * i: ones}) for i in range(m)]
        margins = {3 * i + 1: sparse.csr_array(label @ self.vectors[i]) for i in range(m)}
        linear = [
            self._rows(n, {**margins, xi: -eye, b: sparse.csr_array(-self.y[:, None])}),
            self._rows(n, {xi: -eye}),
            *(self._rows(1, {3 * i + 2: ones, t: sparse.csr_array([[-1.0]])}) for i in range(m)),
        ]
        triples = [self._triples(i) for i in range(m)]
        h, losses, right = self.height, [], []
        for i in range(m):
            pick = sparse.csr_array(([-0.5 / h, -0.5 / h], ([0, 1], [i, i])), shape=(2, m))
            losses += [self._rows(2, {q: pick}), self._rows(n, {3 * i: -eye})]
            right += [np.array([h / 2, -h / 2]), -self.spectra[i]]
        A = sparse.vstack([*zero, *linear, *triples, *losses], format="csc")
        sides = [np.full(m, self.total), np.full(n, -1.0), np.zeros(n + m + 3 * m * n), *right]
        return ConeForm(
            c, A, np.concatenate(sides), Cones(m, 2 * n + m, (3,) * (m * n) + (n + 2,) * m)
        )

    def _triples(self, i: int) -> sparse.csr_array:
        """(mu + r, mu - r, 2u) for each eigenvalue."""
        n = self.y.size
        at = np.arange(n)

        def column(tops: tuple[tuple[int, float], ...]) -> sparse.csr_array:
            rows = np.concatenate([3 * at + top for top, _ in tops])
            values = np.concatenate([np.full(n, value) for _, value in tops])
            return sparse.csr_array((values, (rows, np.tile(at, len(tops)))), shape=(3 * n, n))

        parts = {
            3 * i: ((0, -1.0), (1, -1.0)),
            3 * i + 1: ((2, -2.0),),
            3 * i + 2: ((0, -1.0), (1, 1.0)),
        }
        return self._rows(3 * n, {index: column(tops) for index, tops in parts.items()})

    def kernels(self, x: FloatArray) -> list[FloatArray]:
        """Return the K_i."""
        m, n = self.spectra.shape
        spectra = [x[3 * i * n : 3 * i * n + n] for i in range(m)]
        return [V * mu @ V.T for V, mu in zip(self.vectors, spectra, strict=True)]

    def multipliers(self, y: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
        """Return the multipliers of the margins; the gradients of the squared loss are known."""
        m, n = self.spectra.shape
        return y[m : m + n], []
