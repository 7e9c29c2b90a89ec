"""Kernels learned from similarities as a semidefinite program.

    minimise  t/2 + box 1'xi + weight sum L(K_i - S)        over kernels K_i, i = 1..m, each with its similarities S

    [[K_i, g_i], [g_i', t]] in the cone,  tr K_i = total,  y o (root sum_i g_i + b) >= 1 - xi,  xi >= 0

The losses take more variables: l1 one u for each entry, -u <= K - S <= u; the norm r >= ||K - S||;
its square q with (q/h + h)/2 >= |((q/h - h)/2, K - S)|, one for all S of a kernel, since only their
mean matters there. Entries are counted as in svec. The multipliers of the margins are the
machine's; those of the losses their gradients Z.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.model.cones import Cones, smat, svec, svec_entries, svec_size
from klopt.model.forms import ConeForm

__all__ = ["SimilarityCone"]


@dataclass(frozen=True, eq=False)
class SimilarityCone:
    """The program of groups of similarities, one group a kernel, in the units of the form."""

    groups: tuple[tuple[FloatArray, ...], ...]
    y: FloatArray
    box: float
    weight: float
    total: float | None
    root: float
    loss: str

    @property
    def n(self) -> int:
        return self.y.size

    @property
    def entries(self) -> int:
        return svec_size(self.n)

    @cached_property
    def weights(self) -> FloatArray:
        """What an entry of svec counts in a sum over all entries of the matrix."""
        rows, columns = svec_entries(self.n)
        return np.where(rows == columns, 1.0, np.sqrt(2.0))

    @cached_property
    def targets(self) -> list[tuple[int, FloatArray]]:
        """The kernel and the similarity, as svec, of each loss."""
        if self.loss == "squared":
            return [
                (i, svec(np.asarray(sum(group) / len(group))))
                for i, group in enumerate(self.groups)
            ]
        return [(i, svec(S)) for i, group in enumerate(self.groups) for S in group]

    @cached_property
    def height(self) -> float:
        """h, about as large as ||K - S||."""
        return max(float(np.mean([np.linalg.norm(s) for _, s in self.targets])), 1e-3)

    @cached_property
    def starts(self) -> FloatArray:
        """Where K_1, g_1, K_2, g_2, .., t, the losses' variables, xi and b begin."""
        extra = self.entries if self.loss == "l1" else 1
        sizes = (
            [self.entries, self.n] * len(self.groups)
            + [1]
            + [extra] * len(self.targets)
            + [self.n, 1]
        )
        return np.concatenate([[0], np.cumsum(sizes)])

    def columns(self, index: int) -> slice:
        """Return the columns of the variable number `index`."""
        return slice(int(self.starts[index]), int(self.starts[index + 1]))

    @property
    def t(self) -> int:
        """The number of the variable t."""
        return 2 * len(self.groups)

    def _rows(self, count: int, parts: dict[int, Any]) -> sparse.csr_array:
        """Rows with the given matrices at the given variables."""
        sizes = np.diff(self.starts)
        blocks = [
            parts.get(i, sparse.csr_array((count, int(size)))) for i, size in enumerate(sizes)
        ]
        return sparse.csr_array(sparse.hstack(blocks, format="csr"))

    def form(self) -> ConeForm:
        """Return the program."""
        n, m, last = self.n, len(self.groups), len(self.starts) - 3
        c = np.zeros(int(self.starts[-1]))
        c[self.columns(self.t)], c[self.columns(last)] = 0.5, self.box
        trace = sparse.csr_array(svec(np.eye(n))[None, :])
        zero = [] if self.total is None else [self._rows(1, {2 * i: trace}) for i in range(m)]
        label = sparse.diags_array(-self.y)
        margins = {2 * i + 1: self.root * label for i in range(m)}
        eye = sparse.eye_array(n)
        linear = [
            self._rows(n, {**margins, last: -eye, last + 1: sparse.csr_array(-self.y[:, None])}),
            self._rows(n, {last: -eye}),
        ]
        b = [np.full(len(zero), self.total or 0.0), np.full(n, -1.0), np.zeros(n)]
        more, cones, right, soc = self._losses(c)
        psd = [self._semidefinite(i) for i in range(m)]
        flat = [r for r in right if self.loss == "l1"]
        A = sparse.vstack([*zero, *linear, *more, *cones, *psd], format="csc")
        rest = [] if flat else right
        b_all = np.concatenate([*b, *flat, *rest, np.zeros(sum(p.shape[0] for p in psd))])
        nonneg = 2 * n + sum(r.shape[0] for r in more)
        return ConeForm(c, A, b_all, Cones(len(zero), nonneg, tuple(soc), (n + 1,) * m))

    def _losses(self, c: FloatArray) -> tuple[list[Any], list[Any], list[FloatArray], list[int]]:
        """The linear rows, the cone rows, both right sides in one list, and the cones' sizes; costs go into c."""
        N, eye = self.entries, sparse.eye_array(self.entries)
        linear, cones, right, soc = [], [], [], []
        for j, (i, s) in enumerate(self.targets):
            extra = self.t + 1 + j
            if self.loss == "l1":
                c[self.columns(extra)] = self.weight * self.weights
                linear += [
                    self._rows(N, {2 * i: eye, extra: -eye}),
                    self._rows(N, {2 * i: -eye, extra: -eye}),
                ]
                right += [s, -s]
                continue
            count = len(self.groups[i]) if self.loss == "squared" else 1
            c[self.columns(extra)] = self.weight * count
            h = self.height
            tops = [[-1.0]] if self.loss == "frobenius" else [[-0.5 / h], [-0.5 / h]]
            cones += [
                self._rows(len(tops), {extra: sparse.csr_array(np.array(tops))}),
                self._rows(N, {2 * i: -eye}),
            ]
            right += [np.zeros(1) if self.loss == "frobenius" else np.array([h / 2, -h / 2]), -s]
            soc.append(len(tops) + N)
        return linear, cones, right, soc

    def _semidefinite(self, i: int) -> sparse.csr_array:
        """svec of [[K, g], [g', t]]."""
        n = self.n
        where = np.zeros((n + 1, n + 1), dtype=int)
        rows, columns = svec_entries(n + 1)
        where[rows, columns] = np.arange(rows.size)
        inner_rows, inner_columns = svec_entries(n)
        size = svec_size(n + 1)
        K = _placed(where[inner_rows, inner_columns], -np.ones(self.entries), size)
        g = _placed(where[n, :n], np.full(n, -np.sqrt(2.0)), size)
        t = _placed(where[n, n:], np.array([-1.0]), size)
        return self._rows(size, {2 * i: K, 2 * i + 1: g, self.t: t})

    def kernels(self, x: FloatArray) -> list[FloatArray]:
        """Return the K_i."""
        return [smat(x[self.columns(2 * i)]) for i in range(len(self.groups))]

    def multipliers(self, y: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
        """Return the multipliers of the margins and, but for the squared loss, the gradients Z of the losses."""
        first = len(self.groups) if self.total is not None else 0
        alpha, at, Z = y[first : first + self.n], first + 2 * self.n, []
        for _ in self.targets:
            if self.loss == "squared":
                break
            size = 2 * self.entries if self.loss == "l1" else 1 + self.entries
            part = y[at : at + size]
            v = part[: self.entries] - part[self.entries :] if self.loss == "l1" else -part[1:]
            Z.append(smat(v) / (self.weight or 1.0))
            at += size
        return alpha, Z


def _placed(rows: Any, values: FloatArray, size: int) -> sparse.csr_array:
    return sparse.csr_array((values, (rows, np.arange(values.size))), shape=(size, values.size))
