"""Kernels learned from similarities as a saddle program in fractions, and what proves its value.

x holds the lower triangles of the kernels, or their spectra, and what the losses need; y the
coefficients a of the machine and, for several kernels, gamma. If a is played, gradients of the losses
and the multiplier of the trace leave a matrix that is positive semidefinite: the multiplier of the
kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from klopt.arrays import FloatArray
from klopt.errors import NotCertified
from klopt.model.problem import Point
from klopt.problems._margin.exact_claim import MAX_POINTS, Machine, rounded, simplex_multiplier
from klopt.problems._similarity.instance import SimilarityData
from klopt.witness.exact_claims import (
    ConeData,
    ConeVectors,
    ExactClaim,
    Part,
    SaddleData,
    SaddleVectors,
    Vector,
    fractions,
    root_between,
)

__all__ = ["similarity_claim", "spectra_claim"]

ROOM = 1e-9
"""What matrices get on the diagonal, as a share of their size, to have factors."""
MIN_SHARE = 1e-9
"""The least gamma that is played."""


def similarity_claim(
    data: SimilarityData, groups: Sequence[Sequence[FloatArray]], point: Point
) -> ExactClaim:
    """Return the saddle program of free kernels with the vectors of a point.

    Parameters
    ----------
    data
        Labels, penalties and the loss.
    groups
        The similarities of each kernel.
    point
        It has `alpha`, `bias`, `kernel` or `kernels`, and `gradients` but for the squared loss.
    """
    _refuse(data)
    several = "kernels" in point.primal
    kernels = list(point.kernels) if several else [point.kernel]
    machine = Machine(data.y, np.full(data.n, data.C), "hinge", plane=True)
    program = _Kernels(data, groups)
    game = _Game.of(machine, program.left, program.parts(machine, several))
    signed = data.y * point.alpha
    y = machine.point(signed)
    shares = [Fraction(1)]
    if several:
        shares = _shares(point.dual.get("shares", point.gamma))
        y = y + shares
    given = point.dual.get("gradients")
    gradients = None if given is None else np.asarray(given)
    x = program.point(kernels)
    below, w, scale = program.multipliers(kernels, gradients, signed, shares)
    if scale != 1:
        y = machine.point(scale * signed) + (shares if several else [])
    cost = game.data.cost_of_x(y)
    left = program.closed(cost, below, w, x)
    right = game.reply(x, y, kernels, float(point.bias))
    return ExactClaim(game.data, SaddleVectors(left, *right), shift=program.shift)


def spectra_claim(
    data: SimilarityData,
    values: FloatArray,
    vectors: FloatArray,
    point: Point,
    signs: FloatArray | None = None,
) -> ExactClaim:
    """Return the saddle program of spectra with the vectors of a point.

    Parameters
    ----------
    data
        Labels, penalties and the loss.
    values, vectors
        The eigenvalues, one row for each similarity, and the eigenvectors as columns.
    point
        It has `alpha`, `bias`, `gamma`, `spectra` and `kernels`.
    signs
        The z of Lemma S5 for the loss "l1".
    """
    _refuse(data)
    m, n = values.shape
    machine = Machine(data.y, np.full(data.n, data.C), "hinge", plane=True)
    rho = Fraction(data.rho)
    loss = data.loss.name if data.rho else "none"
    # One length for each similarity, or for each of its eigenvalues.
    lengths = {"frobenius": m, "l1": m * n}.get(loss, 0)
    left = ConeData(m * n + lengths)
    tau = Fraction(float(data.trace or 0.0))
    sums = [
        left.add("zero", 1, [dict.fromkeys(range(g * n, g * n + n), 1)], [tau]) for g in range(m)
    ]
    left.bound(range(m * n), 0, None)
    shift = Fraction(0)
    cones = []
    targets = [fractions(row) for row in values]
    for g, row in enumerate(targets):
        if loss == "frobenius":
            rows = [{m * n + g: -1}, *({g * n + k: -1} for k in range(n))]
            cones.append(left.add("second order", n + 1, rows, [0, *(-value for value in row)]))
            left.c[m * n + g] = rho
        elif loss == "l1":
            own = (m + g) * n
            both = [{g * n + k: s, own + k: -1} for s in (1, -1) for k in range(n)]
            sides = [s * value for s in (1, -1) for value in row]
            cones.append(left.add("nonnegative", 2 * n, both, sides))
            for k in range(n):
                left.c[own + k] = rho
        elif data.rho:
            for k, value in enumerate(row):
                left.P.append((g * n + k, g * n + k, 2 * rho))
                left.c[g * n + k] = -2 * rho * value
                shift += rho * value * value
    parts = []
    for g in range(m):
        columns = [fractions(column) for column in vectors[g].T]
        entries = [
            (g * n + k, i, j, v[i] * v[j])
            for k, v in enumerate(columns)
            for j in range(n)
            for i in range(j, n)
            if v[i] * v[j]
        ]
        parts.append(Part(entries, over=machine.variables + g))
    game = _Game.of(machine, left, parts)
    spectra = np.maximum(point.spectra, 0.0) + ROOM * float(tau) / n
    x: Vector = []
    for row in spectra:
        short = fractions(rounded(row * (float(tau) / row.sum()), bits=48))
        short[int(np.argmax(row))] += tau - sum(short)
        x += short
    if loss == "l1":
        x += [abs(a - b) for a, b in zip(list(x), [v for row in targets for v in row], strict=True)]
    if loss == "frobenius":
        x += [
            root_between(
                sum(
                    ((a - b) ** 2 for a, b in zip(x[g * n : g * n + n], row, strict=True)),
                    Fraction(0),
                ),
                up=True,
            )
            for g, row in enumerate(targets)
        ]
    shares = _shares(point.gamma)
    y = machine.point(data.y * point.alpha) + shares
    cost = game.data.cost_of_x(y)
    given: dict[int, Fraction] = {}
    for g in range(m):
        if loss == "l1":
            assert signs is not None
            for k, value in enumerate(rounded(data.rho * signs[g]).tolist()):
                # Of mu - lambda <= e and of lambda - mu <= e: their sum is rho, their difference u.
                u = min(max(Fraction(value), -rho), rho)
                given[cones[g] + k] = (rho + u) / 2
                given[cones[g] + n + k] = (rho - u) / 2
        if loss == "frobenius":
            given[cones[g]] = rho
            gap = spectra[g] * (float(tau) / spectra[g].sum()) - values[g]
            unit = gap / (np.linalg.norm(gap) or 1.0)
            known = point.dual.get("differences")
            if known is not None and known.shape == values.shape:
                unit = known[g]
            unit = unit * ((1 - ROOM) / max(float(np.linalg.norm(unit)), 1.0))
            for k, value in enumerate(rounded(-data.rho * unit, data.rho).tolist()):
                given[cones[g] + 1 + k] = Fraction(value)
    gradient = left.gradient(given, x if left.P else None, None, cost)
    for g in range(m):
        given[sums[g]] = simplex_multiplier(gradient, range(g * n, g * n + n))
    below = left.multipliers(given, x if left.P else None, None, cost)
    vectors_of_x = ConeVectors(x, below, x if left.P else None)
    right = game.reply(x, y, list(point.kernels), float(point.bias))
    return ExactClaim(game.data, SaddleVectors(vectors_of_x, *right), shift=shift)


def _refuse(data: SimilarityData) -> None:
    if data.rho and data.loss.name not in ("l1", "frobenius", "squared"):
        raise NotCertified("a loss of one's own is no part of a certificate: it has no formula")
    if data.n > MAX_POINTS:
        raise NotCertified(f"certificates of kernels of more than {MAX_POINTS} points are too long")


def _shares(gamma: FloatArray) -> Vector:
    """gamma > 0 of sum 1 with few digits."""
    shares = fractions(rounded(np.maximum(gamma, MIN_SHARE), bits=50))
    shares[int(np.argmax(gamma))] += 1 - sum(shares)
    return shares


@dataclass(frozen=True, eq=False)
class _Game:
    """The saddle program, and what the machine replies to kernels."""

    machine: Machine
    data: SaddleData
    gammas: range
    total: int
    """The row of the sum of gamma."""

    @classmethod
    def of(cls, machine: Machine, left: ConeData, parts: list[Part]) -> _Game:
        m = len(parts) if parts[0].over is not None else 0
        right = machine.side(m)
        gammas = range(machine.variables, machine.variables + m)
        total = 0
        if m:
            total = right.add("zero", 1, [dict.fromkeys(gammas, 1)], [1])
            right.bound(gammas, 0, None)
        return cls(machine, SaddleData(left, right, parts), gammas, total)

    def reply(
        self, x: Vector, y: Vector, kernels: Sequence[FloatArray], bias: float
    ) -> tuple[ConeVectors, list[Vector]]:
        """Return the point y with multipliers that bound what can be reached against x."""
        n = self.machine.n
        right = self.data.right
        w: list[Vector] = []
        if self.gammas:
            a = np.array([float(value) for value in y[:n]])
            r = np.sqrt(np.maximum([a @ K @ a for K in kernels], 1e-30))
            theta = fractions(rounded(r.sum() / r))
            rest = [Fraction(0)] * (right.n - n)
            w = [[weight * value for value in y[:n]] + rest for weight in theta]
        P, c = self.data.program_of_y(x, w)
        answer = y
        if not self.gammas:
            answer, bias = self.machine.reply(P, c, bias, np.array([float(value) for value in y]))
        given, at = self.machine.given(right, bias, answer, P, c)
        if self.gammas:
            given[self.total] = simplex_multiplier(c, self.gammas)
        return ConeVectors(y, right.multipliers(given, at, P, c), at), w


class _Kernels:
    """The player of free kernels: rows, a point and multipliers."""

    def __init__(self, data: SimilarityData, groups: Sequence[Sequence[FloatArray]]) -> None:
        self.data = data
        self.groups = groups
        n = self.n = data.n
        self.places = [(i, j) for j in range(n) for i in range(j, n)]
        self.size = len(self.places)
        self.times = [1 if i == j else 2 for i, j in self.places]
        self.loss = data.loss.name if data.rho else "none"
        self.count = sum(len(group) for group in groups)
        more = {"l1": self.size * self.count, "frobenius": self.count}.get(self.loss, 0)
        self.left = ConeData(len(groups) * self.size + more)
        self.shift = Fraction(0)
        self.traces: list[int] = []
        self.cones: list[int] = []
        self.losses: list[tuple[int, int]] = []
        for g, group in enumerate(groups):
            self._add_kernel(g)
            for S in group:
                self._add_loss(g, [Fraction(float(S[i, j])) for i, j in self.places])

    def _add_kernel(self, g: int) -> None:
        first = g * self.size
        left = self.left
        rows = [{first + k: -1} for k in range(self.size)]
        self.cones.append(left.add("semidefinite", self.n, rows, [0] * self.size))
        if self.data.trace is not None:
            diagonal = {first + k: 1 for k, (i, j) in enumerate(self.places) if i == j}
            self.traces.append(left.add("zero", 1, [diagonal], [Fraction(self.data.trace)]))

    def _add_loss(self, g: int, S: Vector) -> None:
        left = self.left
        first = g * self.size
        rho = Fraction(self.data.rho)
        more = len(self.groups) * self.size
        at = len(self.losses)
        if self.loss == "squared":
            for k, times in enumerate(self.times):
                left.P.append((first + k, first + k, 2 * times * rho))
                left.c[first + k] -= 2 * times * rho * S[k]
                self.shift += times * rho * S[k] ** 2
            self.losses.append((g, 0))
        elif self.loss == "frobenius":
            double = [k for k, times in enumerate(self.times) for _ in range(times)]
            rows = [{more + at: -1}, *({first + k: -1} for k in double)]
            start = left.add("second order", len(rows), rows, [0, *(-S[k] for k in double)])
            left.c[more + at] = rho
            self.losses.append((g, start))
        elif self.loss == "l1":
            own = more + at * self.size
            every = range(self.size)
            start = left.add(
                "nonnegative",
                2 * self.size,
                [{first + k: s, own + k: -1} for s in (1, -1) for k in every],
                [s * S[k] for s in (1, -1) for k in every],
            )
            for k, times in enumerate(self.times):
                left.c[own + k] = times * rho
            self.losses.append((g, start))

    def parts(self, machine: Machine, several: bool) -> list[Part]:
        one = Fraction(1)
        return [
            Part(
                [(g * self.size + k, i, j, one) for k, (i, j) in enumerate(self.places)],
                over=machine.variables + g if several else None,
            )
            for g in range(len(self.groups))
        ]

    def point(self, kernels: Sequence[FloatArray]) -> Vector:
        """Kernels near the given ones, positive definite and of the trace, and their losses."""
        x: Vector = []
        trace = self.data.trace
        for K in kernels:
            values, vectors = np.linalg.eigh((K + K.T) / 2)
            lifted = np.maximum(values, 0.0) + ROOM * max(float(values.max()), self.data.scale)
            if trace is not None:
                lifted *= trace / lifted.sum()
            short = rounded((vectors * lifted) @ vectors.T, bits=48)
            entries = [Fraction(float(short[i, j])) for i, j in self.places]
            if trace is not None:
                diagonal = [k for k, (i, j) in enumerate(self.places) if i == j]
                largest = max(diagonal, key=lambda k: entries[k])
                entries[largest] += Fraction(trace) - sum(entries[k] for k in diagonal)
            x += entries
        lengths: Vector = []
        for g, group in enumerate(self.groups):
            mine = x[g * self.size : (g + 1) * self.size]
            for S in group:
                gaps = [
                    a - Fraction(float(S[i, j]))
                    for a, (i, j) in zip(mine, self.places, strict=True)
                ]
                if self.loss == "frobenius":
                    square = sum(
                        (t * gap**2 for t, gap in zip(self.times, gaps, strict=True)), Fraction(0)
                    )
                    lengths.append(root_between(square, up=True))
                elif self.loss == "l1":
                    lengths += [abs(gap) for gap in gaps]
        return x + lengths

    def multipliers(
        self,
        kernels: Sequence[FloatArray],
        gradients: FloatArray | None,
        signed: FloatArray,
        shares: Vector,
    ) -> tuple[dict[int, Fraction], dict[int, FloatArray], float]:
        """Multipliers of the losses and the traces; the matrices of the squared loss; a scale of a."""
        data = self.data
        given: dict[int, Fraction] = {}
        matrices: dict[int, FloatArray] = {}
        scale = 1.0
        outer = np.outer(signed, signed)
        used = 0
        for g, (K, group) in enumerate(zip(kernels, self.groups, strict=True)):
            pull = outer / (2 * float(shares[g]))
            if self.loss in ("squared", "none"):
                slope = 2 * data.rho * sum(K - S for S in group) if data.rho else np.zeros_like(K)
                rest = slope - pull
                nu = 0.0 if data.trace is None else -float(np.vdot(K, rest)) / data.trace
                if self.loss == "none":
                    nu = -float(np.linalg.eigvalsh(rest)[0])
                    nu += ROOM * float(np.abs(rest).max())
                values, vectors = np.linalg.eigh(rest + nu * np.eye(self.n))
                size = max(float(np.abs(values).max()), float(np.abs(rest).max()), 1e-300)
                lifted = np.maximum(values, 0.0) + ROOM * size
                if data.trace is not None:
                    given[self.traces[g]] = Fraction(float(rounded(np.array([nu]), size)[0]))
                matrices[g] = rounded((vectors * lifted) @ vectors.T, bits=48)
                continue
            Z = [self._gradient(gradients, used + s, K, S) for s, S in enumerate(group)]
            rest = data.rho * sum(Z) - pull
            lowest = float(np.linalg.eigvalsh(rest)[0])
            size = max(float(np.abs(rest).max()), data.rho)
            if data.trace is None:
                # More of the identity in the gradients, all scaled back into the domain.
                more = (max(-lowest, 0.0) + ROOM * size) / (data.rho * len(group))
                Z = [part + more * np.eye(self.n) for part in Z]
            else:
                nu = -lowest + ROOM * size
                given[self.traces[g]] = Fraction(float(rounded(np.array([nu]), size)[0]))
            over = max(self._size(part) for part in Z)
            shrink = (1 - ROOM / 8) / max(over, 1.0)
            if data.trace is None:
                scale = min(scale, float(np.sqrt(shrink)) * (1 - ROOM))
            for part in Z:
                self._give(given, used, rounded(-data.rho * shrink * part, data.rho, bits=46))
                used += 1
        return given, matrices, scale

    def _gradient(
        self, gradients: FloatArray | None, at: int, K: FloatArray, S: FloatArray
    ) -> FloatArray:
        if gradients is not None:
            return np.asarray((gradients[at] + gradients[at].T) / 2)
        if self.loss == "l1":
            return np.sign(K - S)
        return np.asarray((K - S) / (np.linalg.norm(K - S) or 1.0))

    def _size(self, Z: FloatArray) -> float:
        return float(np.abs(Z).max() if self.loss == "l1" else np.linalg.norm(Z))

    def _give(self, given: dict[int, Fraction], at: int, U: FloatArray) -> None:
        """Multipliers U of a loss, whose slack is K - S."""
        rho = Fraction(self.data.rho)
        _, start = self.losses[at]
        if self.loss == "frobenius":
            given[start] = rho
            row = start + 1
            for (i, j), times in zip(self.places, self.times, strict=True):
                for _ in range(times):
                    given[row] = Fraction(float(U[i, j]))
                    row += 1
            return
        for k, ((i, j), times) in enumerate(zip(self.places, self.times, strict=True)):
            u = Fraction(float(U[i, j]))
            # Of K - S <= e and of S - K <= e.
            given[start + k] = times * (rho - u) / 2
            given[start + self.size + k] = times * (rho + u) / 2

    def closed(
        self, cost: Vector, given: dict[int, Fraction], matrices: dict[int, FloatArray], x: Vector
    ) -> ConeVectors:
        """All multipliers: those of the kernels are what is left of the gradient, or given."""
        for g in matrices:
            for k, (i, j) in enumerate(self.places):
                given[self.cones[g] + k] = self.times[k] * Fraction(float(matrices[g][i, j]))
        gradient = self.left.gradient(given, None, None, cost)
        w = None
        if self.loss == "squared":
            curvature: dict[int, Fraction] = {}
            for k, _, value in self.left.P:
                curvature[k] = curvature.get(k, Fraction(0)) + value
            w = [-gradient[k] / curvature[k] for k in range(self.left.n)]
        else:
            for g in range(len(self.groups)):
                for k in range(self.size):
                    row = self.cones[g] + k
                    given[row] = given.get(row, Fraction(0)) + gradient[g * self.size + k]
        y = [given.get(row, Fraction(0)) for row in range(len(self.left.b))]
        return ConeVectors(x, y, w)
