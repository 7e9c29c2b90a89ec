"""Kernels learned from similarities as cone programs.

Free kernels, a semidefinite program (`KernelConeProgram`):

    minimise  t/2 + box 1'xi + weight sum L(K_i - S)

    over kernels K_i, i = 1..m, each with its similarities S, subject to
    [[K_i, g_i], [g_i', t]] positive semidefinite,  tr K_i = total,
    y o (root sum_i g_i + b) >= 1 - xi,  xi >= 0

The losses take more variables: l1 one u for each entry, -u <= K - S <= u; the norm r >= ||K - S||;
its square q with (q/h + h)/2 >= |((q/h - h)/2, K - S)|, one for all S of a kernel, since only their
mean matters there. Entries are counted as in svec. The multipliers of the margins are those of the
support vector machine; those of the losses their gradients Z.

Kernels K_i = V_i diag(mu_i) V_i' with given eigenvectors, a second-order cone program
(`SpectraConeProgram`):

    minimise  t/2 + box 1'xi + weight sum_i q_i     over eigenvalues mu_i >= 0

    u_ij^2 <= mu_ij r_ij,  sum_j r_ij <= t,  1'mu_i = total,  ||mu_i - lambda_i||^2 <= q_i
    y o (root sum_i V_i u_i + b) >= 1 - xi,  xi >= 0

The first is (mu + r, mu - r, 2u) in a second-order cone of three.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.model.cones import Cones, smat, svec, svec_entries, svec_places, svec_size
from klopt.model.forms import ConeForm

__all__ = ["KernelConeProgram", "SpectraConeProgram"]

MIN_HEIGHT = 1e-3
"""Smallest h, the unit of the cones of squared losses."""


@dataclass(frozen=True, eq=False)
class VariableBlocks:
    """The columns of a cone program, block by block, from the sizes of the blocks."""

    sizes: list[int]

    @cached_property
    def starts(self) -> list[int]:
        """Where each block begins, and where the last one ends."""
        return [0, *np.cumsum(self.sizes).tolist()]

    @property
    def count(self) -> int:
        """The number of all columns."""
        return self.starts[-1]

    def columns(self, block: int) -> slice:
        """Return the columns of a block."""
        return slice(self.starts[block], self.starts[block + 1])

    def rows(self, count: int, parts: dict[int, Any]) -> sparse.csr_array:
        """Return rows with the given matrices at the given blocks, zero elsewhere."""
        blocks = [
            parts.get(i, sparse.csr_array((count, size))) for i, size in enumerate(self.sizes)
        ]
        return sparse.csr_array(sparse.hstack(blocks, format="csr"))


class LossRows(NamedTuple):
    """What losses add to a cone program: rows, right sides, and sizes of second-order cones."""

    linear: list[sparse.csr_array]
    conic: list[sparse.csr_array]
    right: list[FloatArray]
    cone_sizes: list[int]


@dataclass(frozen=True, eq=False)
class KernelConeProgram:
    """The semidefinite program of groups of similarities, one group for each kernel.

    Parameters
    ----------
    groups : tuple of tuples of (n, n) arrays
        The similarities of each kernel.
    y : (n,) array
        Labels.
    box : float or (n,) array
        Penalty of the slacks xi.
    weight : float
        Penalty of the losses.
    total : float or None
        Trace of each kernel.
    root : float
        Scale of g in the margins.
    loss : str
        "l1", "frobenius" or "squared".
    """

    groups: tuple[tuple[FloatArray, ...], ...]
    y: FloatArray
    box: float | FloatArray
    weight: float
    total: float | None
    root: float
    loss: str

    @property
    def n(self) -> int:
        return self.y.size

    @property
    def entries(self) -> int:
        """The number of entries of svec."""
        return svec_size(self.n)

    @cached_property
    def entry_weights(self) -> FloatArray:
        """What an entry of svec counts in a sum over all entries of the matrix."""
        rows, columns = svec_entries(self.n)
        return np.where(rows == columns, 1.0, np.sqrt(2.0))

    @cached_property
    def targets(self) -> list[tuple[int, FloatArray]]:
        """The kernel and the similarity, as svec, of each loss."""
        if self.loss == "squared":
            means = [np.asarray(sum(group) / len(group)) for group in self.groups]
            return [(i, svec(mean)) for i, mean in enumerate(means)]
        return [(i, svec(S)) for i, group in enumerate(self.groups) for S in group]

    @cached_property
    def height(self) -> float:
        """h, about as large as ||K - S||."""
        return max(float(np.mean([np.linalg.norm(s) for _, s in self.targets])), MIN_HEIGHT)

    @cached_property
    def variables(self) -> VariableBlocks:
        """K_1, g_1, K_2, g_2, .., t, the losses' variables, xi and b."""
        kernels = [self.entries, self.n] * len(self.groups)
        losses = [self.entries if self.loss == "l1" else 1] * len(self.targets)
        return VariableBlocks([*kernels, 1, *losses, self.n, 1])

    @property
    def _t(self) -> int:
        """The block of t; the losses' variables follow."""
        return 2 * len(self.groups)

    def form(self) -> ConeForm:
        """Return the program."""
        n = self.n
        m = len(self.groups)
        xi = len(self.variables.sizes) - 2
        b = xi + 1
        c = np.zeros(self.variables.count)
        c[self.variables.columns(self._t)] = 0.5
        c[self.variables.columns(xi)] = self.box

        traces = []
        if self.total is not None:
            trace = sparse.csr_array(svec(np.eye(n))[None, :])
            traces = [self.variables.rows(1, {2 * i: trace}) for i in range(m)]

        eye = sparse.eye_array(n)
        labels = sparse.diags_array(-self.y)
        margins = {2 * i + 1: self.root * labels for i in range(m)}
        bias = sparse.csr_array(-self.y[:, None])
        linear = [
            self.variables.rows(n, {**margins, xi: -eye, b: bias}),
            self.variables.rows(n, {xi: -eye}),
        ]

        losses = self._add_losses(c)
        semidefinite = [self._semidefinite(i) for i in range(m)]
        A = sparse.vstack(
            [*traces, *linear, *losses.linear, *losses.conic, *semidefinite], format="csc"
        )
        right = [
            np.full(len(traces), self.total or 0.0),
            np.full(n, -1.0),
            np.zeros(n),
            *losses.right,
            np.zeros(m * svec_size(n + 1)),
        ]
        nonneg = 2 * n + sum(rows.shape[0] for rows in losses.linear)
        cones = Cones(len(traces), nonneg, tuple(losses.cone_sizes), (n + 1,) * m)
        return ConeForm(c, A, np.concatenate(right), cones)

    def _add_losses(self, c: FloatArray) -> LossRows:
        """The rows of the losses, whose costs are written into c."""
        found = LossRows([], [], [], [])
        for j, (i, s) in enumerate(self.targets):
            variable = self._t + 1 + j
            columns = self.variables.columns(variable)
            if self.loss == "l1":
                c[columns] = self.weight * self.entry_weights
                self._add_entrywise(found, 2 * i, variable, s)
            else:
                count = len(self.groups[i]) if self.loss == "squared" else 1
                c[columns] = self.weight * count
                self._add_norm(found, 2 * i, variable, s)
        return found

    def _add_entrywise(self, found: LossRows, kernel: int, variable: int, s: FloatArray) -> None:
        """-u <= K - S <= u."""
        eye = sparse.eye_array(self.entries)
        above = self.variables.rows(self.entries, {kernel: eye, variable: -eye})
        below = self.variables.rows(self.entries, {kernel: -eye, variable: -eye})
        found.linear.extend([above, below])
        found.right.extend([s, -s])

    def _add_norm(self, found: LossRows, kernel: int, variable: int, s: FloatArray) -> None:
        """(r, K - S) in the second-order cone.

        For the square it is ((q/h + h)/2, (q/h - h)/2, K - S).
        """
        h = self.height
        if self.loss == "frobenius":
            head = np.array([[-1.0]])
            head_right = np.zeros(1)
        else:
            head = np.array([[-0.5 / h], [-0.5 / h]])
            head_right = np.array([h / 2, -h / 2])
        eye = sparse.eye_array(self.entries)
        found.conic.append(self.variables.rows(len(head), {variable: sparse.csr_array(head)}))
        found.conic.append(self.variables.rows(self.entries, {kernel: -eye}))
        found.right.extend([head_right, -s])
        found.cone_sizes.append(len(head) + self.entries)

    def _semidefinite(self, i: int) -> sparse.csr_array:
        """svec of [[K, g], [g', t]]."""
        n = self.n
        size = svec_size(n + 1)
        places = svec_places(n + 1)
        K = _placed(places[svec_entries(n)], -np.ones(self.entries), size)
        g = _placed(places[n, :n], np.full(n, -np.sqrt(2.0)), size)
        t = _placed(places[n, n:], np.array([-1.0]), size)
        return self.variables.rows(size, {2 * i: K, 2 * i + 1: g, self._t: t})

    def kernels(self, x: FloatArray) -> list[FloatArray]:
        """Return the K_i."""
        return [smat(x[self.variables.columns(2 * i)]) for i in range(len(self.groups))]

    def multipliers(self, y: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
        """Return the multipliers of the margins and the gradients Z of the losses.

        Those of the squared loss are known, so none are returned for it.
        """
        first = len(self.groups) if self.total is not None else 0
        alpha = y[first : first + self.n]
        if self.loss == "squared":
            return alpha, []
        at = first + 2 * self.n
        size = 2 * self.entries if self.loss == "l1" else 1 + self.entries
        gradients = []
        for part in y[at : at + size * len(self.targets)].reshape(-1, size):
            v = -part[1:]
            if self.loss == "l1":
                v = part[: self.entries] - part[self.entries :]
            gradients.append(smat(v) / (self.weight or 1.0))
        return alpha, gradients


@dataclass(frozen=True, eq=False)
class SpectraConeProgram:
    """The second-order cone program of kernels with given eigenvectors.

    Parameters
    ----------
    spectra : (m, n) array
        Eigenvalues of the similarities.
    vectors : (m, n, n) array
        Eigenvectors, in columns.
    y : (n,) array
        Labels.
    box : float or (n,) array
        Penalty of the slacks xi.
    weight : float
        Penalty of the losses.
    total : float
        Trace of each kernel.
    root : float
        Scale of u in the margins.
    loss : str
        "squared" for |mu - lambda|^2, "frobenius" for |mu - lambda|, "l1" for the sum of |mu_j -
        lambda_j|.
    """

    spectra: FloatArray
    vectors: FloatArray
    y: FloatArray
    box: float | FloatArray
    weight: float
    total: float
    root: float
    loss: str = "squared"

    @cached_property
    def height(self) -> float:
        """h, about as large as ||mu - lambda||."""
        return max(float(np.mean(np.linalg.norm(self.spectra, axis=1))), MIN_HEIGHT)

    @cached_property
    def variables(self) -> VariableBlocks:
        """The mu_i, u_i, r_i (three for each i), t, q, xi and b; q bounds losses, or their terms."""
        m, n = self.spectra.shape
        return VariableBlocks([n] * 3 * m + [1, m * n if self.loss == "l1" else m, n, 1])

    def form(self) -> ConeForm:
        """Return the program."""
        m, n = self.spectra.shape
        t, q, xi, b = range(3 * m, 3 * m + 4)
        c = np.zeros(self.variables.count)
        c[self.variables.columns(t)] = 0.5
        c[self.variables.columns(q)] = self.weight
        c[self.variables.columns(xi)] = self.box

        eye = sparse.eye_array(n)
        ones = sparse.csr_array(np.ones((1, n)))
        traces = [self.variables.rows(1, {3 * i: ones}) for i in range(m)]

        labels = sparse.diags_array(-self.root * self.y)
        margins = {3 * i + 1: sparse.csr_array(labels @ self.vectors[i]) for i in range(m)}
        bias = sparse.csr_array(-self.y[:, None])
        minus_t = sparse.csr_array([[-1.0]])
        linear = [
            self.variables.rows(n, {**margins, xi: -eye, b: bias}),
            self.variables.rows(n, {xi: -eye}),
            *(self.variables.rows(1, {3 * i + 2: ones, t: minus_t}) for i in range(m)),
        ]

        triples = [self._triples(i) for i in range(m)]
        if self.loss == "l1":
            # mu - q <= lambda and -mu - q <= -lambda.
            both = [self._differences(i, sign) for sign in (1.0, -1.0) for i in range(m)]
            A = sparse.vstack([*traces, *linear, *both, *triples], format="csc")
            flat = self.spectra.reshape(-1)
            right = np.concatenate(
                [
                    np.full(m, self.total),
                    np.full(n, -1.0),
                    np.zeros(n + m),
                    flat,
                    -flat,
                    np.zeros(3 * m * n),
                ]
            )
            return ConeForm(c, A, right, Cones(m, 2 * n + m + 2 * m * n, (3,) * (m * n)))

        h = self.height
        losses = []
        loss_right = []
        for i in range(m):
            # (q/h + h, q/h - h) / 2 for the square, q itself for the norm.
            head = sparse.csr_array(([-0.5 / h, -0.5 / h], ([0, 1], [i, i])), shape=(2, m))
            constant = np.array([h / 2, -h / 2])
            if self.loss != "squared":
                head = sparse.csr_array(([-1.0], ([0], [i])), shape=(1, m))
                constant = np.zeros(1)
            losses.append(self.variables.rows(constant.size, {q: head}))
            losses.append(self.variables.rows(n, {3 * i: -eye}))
            loss_right.extend([constant, -self.spectra[i]])

        A = sparse.vstack([*traces, *linear, *triples, *losses], format="csc")
        zeros = np.zeros(n + m + 3 * m * n)
        right = np.concatenate([np.full(m, self.total), np.full(n, -1.0), zeros, *loss_right])
        return ConeForm(
            c,
            A,
            right,
            Cones(m, 2 * n + m, (3,) * (m * n) + (n + 2 if self.loss == "squared" else n + 1,) * m),
        )

    def _differences(self, i: int, sign: float) -> sparse.csr_array:
        """The rows of sign mu_i - q_i."""
        m, n = self.spectra.shape
        own = sparse.csr_array(
            (-np.ones(n), (np.arange(n), np.arange(i * n, i * n + n))), (n, m * n)
        )
        return self.variables.rows(n, {3 * i: sign * sparse.eye_array(n), 3 * m + 1: own})

    def _triples(self, i: int) -> sparse.csr_array:
        """(mu + r, mu - r, 2u) for each eigenvalue, three rows each."""
        eye = sparse.eye_array(self.y.size)
        coefficients = {
            3 * i: [-1.0, -1.0, 0.0],
            3 * i + 1: [0.0, 0.0, -2.0],
            3 * i + 2: [-1.0, 1.0, 0.0],
        }
        parts = {
            block: sparse.kron(eye, sparse.csr_array(np.array(column)[:, None]))
            for block, column in coefficients.items()
        }
        return self.variables.rows(3 * self.y.size, parts)

    def kernels(self, x: FloatArray) -> list[FloatArray]:
        """Return the K_i."""
        spectra = [x[self.variables.columns(3 * i)] for i in range(len(self.spectra))]
        return [V * mu @ V.T for V, mu in zip(self.vectors, spectra, strict=True)]

    def multipliers(self, y: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
        """Return the multipliers of the margins, and z of the norm; that of its square is known."""
        m, n = self.spectra.shape
        if self.loss == "squared" or not self.weight:
            return y[m : m + n], []
        if self.loss == "l1":
            first = 2 * m + 2 * n
            above, below = y[first : first + 2 * m * n].reshape(2, m, n)
            return y[m : m + n], list((above - below) / self.weight)
        last = y[y.size - m * (n + 1) :].reshape(m, n + 1)
        return y[m : m + n], [-row[1:] / self.weight for row in last]


def _placed(rows: Any, values: FloatArray, size: int) -> sparse.csr_array:
    """A matrix of `size` rows with one value in each column, at the given rows."""
    return sparse.csr_array((values, (rows, np.arange(values.size))), shape=(size, values.size))
