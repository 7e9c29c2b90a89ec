"""Proposes points and multipliers of many digits by an interior-point method in high precision.

    minimise  c'x   subject to  s = b - Ax in K,  Ex = e          maximise  -b'y - e'z,  A'y + E'z = -c

Programs whose optimum is at a distance of 1e-16 from the edge of its cones, or approached only where
x is huge, are beyond floats; a few hundred bits take them like any other. This is the infeasible
primal-dual method with the direction of Helmberg, Kojima and Monteiro (HKM) and Mehrotra's corrector:
from S, Y positive definite, with R = b - Ax - S and r = -c - A'Y - E'z,

    sum_k <A_j, Y A_k S^-1> dx_k + (E'dz)_j = r_j - <A_j, mu S^-1 - Y - Y R S^-1>,     E dx = e - Ex,
    dS = R - sum_k dx_k A_k,      dY = sym(mu S^-1 - Y - Y dS S^-1).

A second-order cone is the matrix [[s_0, s_1'], [s_1, s_0 I]], an inequality a matrix of order 1; rows
of a scaled triangle (`svec`) are sqrt(2) times the entries beside the diagonal. Only midpoints of balls
are kept: nothing here is a proof, `klopt.proof.precise_bounds` decides.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.model.cones import order_of, svec_entries
from klopt.proof.balls import working_bits
from klopt.proof.precise_bounds import PreciseWitness, open_columns
from klopt.proof.statement import ConeStatement
from klopt.proof.time_budget import remaining

__all__ = ["PrecisePair", "is_affordable", "precise_pairs"]

Matrix = Any
"""A matrix of python-flint's type `arb_mat`."""
Number = Any
"""A number of python-flint's type `arb`."""
Indices = npt.NDArray[np.intp]

BITS = 320
"""Bits of the method: a hundred digits."""
MAX_STEPS = 260
"""Newton steps at most."""
STEP_SHARE = 0.95
"""The share of the way to the edge of the cones that a step takes."""
MAX_CENTRING_STEPS = 8
"""Steps at one mu that are to make the equations exact ..."""
MU_FACTOR = 1e-4
"""... and by how much mu falls before they are tried again."""
MAX_GROWTH = 1e8
"""A growth of the errors in the equations that tells a loss of digits."""
MAX_MU = 1e40
"""A mu that tells a program without an optimum."""
MAX_SECONDS = 12.0
"""Seconds that it may be expected to take."""
TYPICAL_STEPS = 60
"""Newton steps that a program usually takes."""
SECONDS_PER_PRODUCT = 2.5e-7
"""Seconds for a product and sum of numbers in Python."""
FACTOR_SECONDS = 2e-8
"""Seconds for a product inside a factorisation of python-flint."""


class PrecisePair(NamedTuple):
    """A point and multipliers of many digits, and the same in floats."""

    x: PreciseWitness
    y: PreciseWitness
    rounded_x: FloatArray
    rounded_y: FloatArray


def is_affordable(statement: ConeStatement) -> bool:
    """Return whether the program is linear over cones, and small enough for the time that is left."""
    cones = statement.cones
    curved = bool(cones.soc or cones.psd)
    if not curved or not cones.is_symmetric or statement.P is not None or statement.quadratics:
        return False
    seconds = TYPICAL_STEPS * _seconds_per_step(statement)
    return seconds <= min(MAX_SECONDS, remaining())


def _seconds_per_step(statement: ConeStatement) -> float:
    """What one Newton step is expected to take."""
    rows = statement.rows
    n = statement.c.size + statement.cones.zero
    products = 0.0
    factor = 4.0 * n**3
    for kind, block in statement.cones.blocks():
        if kind not in ("soc", "psd"):
            continue
        order = order_of(block.stop - block.start) if kind == "psd" else block.stop - block.start
        part = rows[block]
        columns = np.unique(part.indices).size
        entries = part.nnz * (2 if kind == "psd" else 1)
        products += columns * entries / 2 + 1.5 * order**3
        factor += columns * order**3
    linear = rows[statement.cones.zero : statement.cones.zero + statement.cones.nonneg]
    products += float(np.sum(np.diff(linear.indptr) ** 2))
    return products * SECONDS_PER_PRODUCT + factor * FACTOR_SECONDS


def precise_pairs(statement: ConeStatement, gap: float) -> Iterator[PrecisePair]:
    """Yield pairs with about this gap or less, relative to 1 + |value|; the last one with any gap.

    The first one is inside its cones and meets all equations, where there are such pairs.

    >>> from klopt.model.cones import Cones
    >>> A = sparse.csc_array([[-1.0], [0.0], [-1.0]])
    >>> statement = ConeStatement(np.ones(1), A, np.array([0.0, 1.0, 0.0]), Cones(psd=(2,)), plain=True)
    >>> pair = next(precise_pairs(statement, 1e-9))
    >>> pair.rounded_x.round(6), pair.rounded_y.round(6)
    (array([1.]), array([ 0.5, -0.5,  0.5]))
    """
    with working_bits(BITS):
        method = _Method(statement)
    while True:
        # The number of bits is a setting of the library, which must not stay behind a `yield`.
        with working_bits(BITS):
            more = method.run(gap)
            pair = method.pair()
        if pair is not None:
            yield pair
        if not more:
            return


@dataclass(frozen=True, eq=False)
class _Block:
    """One cone as matrices b - sum_k x_k A_k, and how rows of the statement make it."""

    order: int
    b: Matrix
    A: dict[int, list[tuple[int, int, Number]]]
    """The entries of each A_k, both triangles."""
    rows: list[list[tuple[int, int]]]
    """The entries that each row of the cone fills."""
    first: int
    share: Number = 1
    """What a row of two entries has of the sum of their multipliers."""

    def combined(self, x: list[Number]) -> Matrix:
        """sum_k x_k A_k."""
        from flint import arb, arb_mat

        total = [[arb(0)] * self.order for _ in range(self.order)]
        for k, entries in self.A.items():
            for i, j, value in entries:
                total[i][j] += value * x[k]
        return arb_mat(total).mid()

    def products(self, M: Matrix) -> dict[int, Number]:
        """<A_k, M> for each k."""
        found = {}
        for k, entries in self.A.items():
            found[k] = sum((value * M[i, j] for i, j, value in entries), 0).mid()
        return found

    def dense(self, k: int) -> Matrix:
        """A_k."""
        from flint import arb, arb_mat

        full = [[arb(0)] * self.order for _ in range(self.order)]
        for i, j, value in self.A[k]:
            full[i][j] = value
        return arb_mat(full)


def _blocks(statement: ConeStatement) -> list[_Block]:
    """The cones as matrices."""
    from flint import arb

    cones = statement.cones
    found = []
    for i in range(cones.zero, cones.zero + cones.nonneg):
        if not statement.vacuous[i]:
            found.append(_block(statement, i, [[(0, 0)]], 1))
    for kind, block in cones.blocks():
        size = block.stop - block.start
        if kind == "soc" and size:
            head = [(i, i) for i in range(size)]
            tail = [[(0, i), (i, 0)] for i in range(1, size)]
            found.append(_block(statement, block.start, [head, *tail], size))
        elif kind == "psd" and size:
            order = order_of(size)
            pairs = zip(*(part.tolist() for part in svec_entries(order)), strict=True)
            places = [[(i, j), (j, i)] if i != j else [(i, i)] for i, j in pairs]
            # A plain row is an entry beside the diagonal, whose multipliers count twice.
            unit = arb(1) if statement.plain else arb(0.5).sqrt().mid()
            share = arb(0.5) if statement.plain else unit
            found.append(_block(statement, block.start, places, order, unit, share))
    if np.isfinite(statement.within):
        found.append(_ball_of_points(statement.c.size, statement.within))
    return found


def _ball_of_points(n: int, within: float) -> _Block:
    """norm(x) <= within as a cone that has no rows in the statement: its multipliers are gradients."""
    from flint import arb

    one = arb(-1)
    A = {k: [(0, k + 1, one), (k + 1, 0, one)] for k in range(n)}
    return _Block(n + 1, _identity(n + 1) * arb(within), A, [], 0)


def _block(
    statement: ConeStatement,
    first: int,
    places: list[list[tuple[int, int]]],
    order: int,
    unit: Number = 1,
    share: Number = 1,
) -> _Block:
    """One cone from its rows; an entry beside the diagonal is `unit` times its row."""
    from flint import arb, arb_mat

    rows = statement.rows
    b = [[arb(0)] * order for _ in range(order)]
    A: dict[int, list[tuple[int, int, Number]]] = {}
    for offset, entries in enumerate(places):
        row = first + offset
        factor = unit if len(entries) == 2 else 1
        right = (arb(float(statement.b[row])) * factor).mid()
        for i, j in entries:
            b[i][j] = right
        for place in range(rows.indptr[row], rows.indptr[row + 1]):
            value = (arb(float(rows.data[place])) * factor).mid()
            listed = A.setdefault(int(rows.indices[place]), [])
            listed.extend((i, j, value) for i, j in entries)
    return _Block(order, arb_mat(b), A, places, first, share)


class _Direction(NamedTuple):
    """The changes dx, dz, dS and dY."""

    x: list[Number]
    z: list[Number]
    S: list[Matrix]
    Y: list[Matrix]


class _Method:
    """The state of the method: x, z, S and Y."""

    def __init__(self, statement: ConeStatement) -> None:
        from flint import arb

        self.statement = statement
        self.blocks = _blocks(statement)
        self.degree = sum(block.order for block in self.blocks)
        self.c = [arb(float(v)) for v in statement.c]
        zero = statement.cones.zero
        self.E = statement.rows[:zero]
        self.e = [arb(float(v)) for v in statement.b[:zero]]
        stated = statement.b[np.isfinite(statement.b)]
        size = max(1.0, float(np.max(np.abs(stated), initial=0.0)))
        slope = max(1.0, float(np.max(np.abs(statement.c), initial=0.0)))
        self.x = [arb(0)] * statement.c.size
        self.z = [arb(0)] * zero
        self.S = [
            _identity(block.order) * arb(max(1e3 * size, float(block.b[0, 0])))
            for block in self.blocks
        ]
        self.Y = [_identity(block.order) * arb(1e3 * slope) for block in self.blocks]
        self.steps = 0
        self.seconds = 0.0
        self.next_centring = np.inf
        self.errors = (np.inf, np.inf)

    def run(self, gap: float) -> bool:
        """Go on to the next pair worth a proof; return whether there may be more."""
        tiny = 2.0 ** (-0.55 * BITS)
        centring = 0
        while self.steps < MAX_STEPS:
            if remaining() < self.seconds / max(self.steps, 1):
                return False
            began = time.perf_counter()
            try:
                state = _State(self)
            except _LostError:
                return False
            mu = float(state.mu)
            close = mu * self.degree <= gap * (1 + abs(float(state.value)))
            if close and max(state.primal_error, state.dual_error) <= tiny:
                return False
            if self._is_lost(state):
                return False
            # Near the end steps at the present mu make the equations exact; where they do not, there
            # is no interior, and only smaller mu are left to try.
            if close and mu < self.next_centring:
                if centring == MAX_CENTRING_STEPS:
                    self.next_centring = MU_FACTOR * mu
                    return True
                centring += 1
                direction = state.centring()
            else:
                direction = state.predictor_corrector()
            if direction is None:
                return False
            self._step(state, direction)
            self.steps += 1
            self.seconds += time.perf_counter() - began
        return False

    def _is_lost(self, state: _State) -> bool:
        """Whether the digits do not suffice, or the program has no optimum."""
        errors = (state.primal_error, state.dual_error)
        self.errors = (min(errors[0], self.errors[0]), min(errors[1], self.errors[1]))
        floor = 2.0 ** (-0.5 * BITS)
        grown = any(
            not now <= MAX_GROWTH * max(least, floor)
            for now, least in zip(errors, self.errors, strict=True)
        )
        return grown or not float(state.mu) <= MAX_MU

    def _step(self, state: _State, direction: _Direction) -> None:
        from flint import arb

        along = arb(min(1.0, STEP_SHARE * _longest(state.S_roots, direction.S)))
        across = arb(min(1.0, STEP_SHARE * _longest(state.Y_roots, direction.Y)))
        self.x = [(v + along * d).mid() for v, d in zip(self.x, direction.x, strict=True)]
        self.z = [(v + across * d).mid() for v, d in zip(self.z, direction.z, strict=True)]
        self.S = [_symmetric(S + d * along) for S, d in zip(self.S, direction.S, strict=True)]
        self.Y = [_symmetric(Y + d * across) for Y, d in zip(self.Y, direction.Y, strict=True)]

    def pair(self) -> PrecisePair | None:
        """The point and the multipliers as sums of floats; None where these overflow."""
        from flint import arb

        statement = self.statement
        y = [arb(0)] * statement.b.size
        y[: len(self.z)] = self.z
        for block, Y in zip(self.blocks, self.Y, strict=True):
            for offset, entries in enumerate(block.rows):
                total = sum((Y[i, j] for i, j in entries), arb(0))
                share = block.share if len(entries) == 2 else 1
                y[block.first + offset] = (total * share).mid()
        x_parts = _parts(self.x)
        y_parts = _parts(y)
        if not (np.isfinite(x_parts).all() and np.isfinite(y_parts).all()):
            return None
        return PrecisePair(
            PreciseWitness(x_parts, _basis(self.E, np.abs(x_parts[0]))),
            PreciseWitness(y_parts, self._moved_rows(np.abs(y_parts[0]))),
            x_parts[0],
            y_parts[0],
        )

    def _moved_rows(self, size: FloatArray) -> Indices:
        """Rows in which stationarity of the columns without bounds is solved."""
        statement = self.statement
        free = open_columns(statement)
        size = np.where(statement.vacuous, 0.0, size)
        return _basis(sparse.csr_array(statement.A[:, free].T), size)


class _LostError(Exception):
    """S or Y is no longer positive definite."""


class _State:
    """What one Newton step is made of."""

    def __init__(self, method: _Method) -> None:
        from flint import arb

        self.method = method
        blocks = method.blocks
        self.S_roots = [_inverse_root(S) for S in method.S]
        self.Y_roots = [_inverse_root(Y) for Y in method.Y]
        self.S_inverses = [(R.transpose() * R).mid() for R in self.S_roots]
        self.primal = [
            (block.b - block.combined(method.x) - S).mid()
            for block, S in zip(blocks, method.S, strict=True)
        ]
        self.equations = [
            (right - image).mid()
            for right, image in zip(method.e, _product(method.E, method.x), strict=True)
        ]
        dual = [-c for c in method.c]
        for block, Y in zip(blocks, method.Y, strict=True):
            for k, value in block.products(Y).items():
                dual[k] -= value
        pulled = _product(sparse.csr_array(method.E.T), method.z)
        self.dual = [(d - v).mid() for d, v in zip(dual, pulled, strict=True)]
        inner = sum(
            ((S * Y).trace() for S, Y in zip(method.S, method.Y, strict=True)), arb(0)
        ).mid()
        self.mu = (inner / method.degree).mid()
        self.value = sum((c * v for c, v in zip(method.c, method.x, strict=True)), arb(0)).mid()
        self._matrix: Matrix | None = None

    @property
    def primal_error(self) -> float:
        """The largest entry of b - Ax - s and of e - Ex."""
        entries = [v for R in self.primal for v in R.entries()]
        return max((abs(float(v)) for v in [*entries, *self.equations]), default=0.0)

    @property
    def dual_error(self) -> float:
        """The largest entry of c + A'y."""
        return max((abs(float(v)) for v in self.dual), default=0.0)

    def centring(self) -> _Direction | None:
        """The step to the central pair at the present mu."""
        return self._direction(self.mu, None)

    def predictor_corrector(self) -> _Direction | None:
        """Mehrotra's step: as far as the straight one reaches, with its second-order term."""
        from flint import arb

        method = self.method
        straight = self._direction(arb(0), None)
        if straight is None:
            return None
        along = arb(min(1.0, _longest(self.S_roots, straight.S)))
        across = arb(min(1.0, _longest(self.Y_roots, straight.Y)))
        inner = arb(0)
        for S, dS, Y, dY in zip(method.S, straight.S, method.Y, straight.Y, strict=True):
            inner += ((S + dS * along) * (Y + dY * across)).trace()
        share = float((inner / method.degree / self.mu).mid())
        centre = float(np.clip(share, 1e-2, 1.0)) ** 3
        second = [
            (dY * dS * inverse).mid()
            for dS, dY, inverse in zip(straight.S, straight.Y, self.S_inverses, strict=True)
        ]
        return self._direction((self.mu * arb(centre)).mid(), second)

    def _direction(self, mu: Number, second: list[Matrix] | None) -> _Direction | None:
        """The solution of Newton's equations; None where their matrix is singular."""
        from flint import arb, arb_mat

        method = self.method
        n = len(method.c)
        right = list(self.dual)
        parts = []
        for index, block in enumerate(method.blocks):
            Y = method.Y[index]
            inverse = self.S_inverses[index]
            part = inverse * mu - Y - Y * self.primal[index] * inverse
            if second is not None:
                part = part - second[index]
            part = part.mid()
            parts.append(part)
            for k, value in block.products(part).items():
                right[k] -= value
        column = [v.mid() for v in right] + self.equations
        try:
            solution = self.matrix.solve(arb_mat(len(column), 1, column), algorithm="approx")
        except ZeroDivisionError:
            return None
        steps = [v.mid() for v in solution.entries()]
        if not all(v.is_finite() for v in steps):
            return None
        dx = steps[:n]
        dS = []
        dY = []
        for index, block in enumerate(method.blocks):
            moved = block.combined(dx)
            dS.append((self.primal[index] - moved).mid())
            turned = parts[index] + method.Y[index] * moved * self.S_inverses[index]
            dY.append(((turned + turned.transpose()) * arb(0.5)).mid())
        return _Direction(dx, steps[n:], dS, dY)

    @property
    def matrix(self) -> Matrix:
        """[[M, E'], [E, 0]] with M_jk = <A_j, Y A_k S^-1>."""
        from flint import arb, arb_mat

        if self._matrix is not None:
            return self._matrix
        method = self.method
        n = len(method.c)
        size = n + len(method.e)
        M = [[arb(0)] * size for _ in range(size)]
        for index, block in enumerate(method.blocks):
            columns = sorted(block.A)
            for k in columns:
                image = (method.Y[index] * block.dense(k) * self.S_inverses[index]).mid()
                for j in columns:
                    if j > k:
                        break
                    M[j][k] += sum((v * image[p, q] for p, q, v in block.A[j]), arb(0))
        for k in range(n):
            for j in range(k):
                M[k][j] = M[j][k]
        E = method.E.tocoo()
        for i, j, value in zip(E.row.tolist(), E.col.tolist(), E.data.tolist(), strict=True):
            M[n + i][j] = M[j][n + i] = arb(float(value))
        self._matrix = arb_mat(M).mid()
        return self._matrix


def _identity(order: int) -> Matrix:
    from flint import arb_mat

    return arb_mat([[int(i == j) for j in range(order)] for i in range(order)])


def _symmetric(M: Matrix) -> Matrix:
    from flint import arb

    return ((M + M.transpose()) * arb(0.5)).mid()


def _product(rows: sparse.csr_array, x: list[Number]) -> list[Number]:
    """The product of a matrix of floats and a vector."""
    from flint import arb

    found = []
    for i in range(rows.shape[0]):
        total = arb(0)
        for place in range(rows.indptr[i], rows.indptr[i + 1]):
            total += arb(float(rows.data[place])) * x[rows.indices[place]]
        found.append(total.mid())
    return found


def _inverse_root(M: Matrix) -> Matrix:
    """R, lower triangular, with R M R' = I: the inverse of the Cholesky factor."""
    from flint import arb, arb_mat

    rows = M.tolist()
    n = len(rows)
    # Gaussian elimination of [M, I] leaves R but for the scale of its rows.
    inverse = [[arb(int(i == j)) for j in range(n)] for i in range(n)]
    for k in range(n):
        pivot = rows[k][k].mid()
        if not pivot > 0:
            raise _LostError
        for i in range(k + 1, n):
            share = (rows[i][k] / pivot).mid()
            if share == 0:
                continue
            row = rows[i]
            for j in range(k + 1, i + 1):
                row[j] = (row[j] - share * rows[j][k]).mid()
            beside = inverse[i]
            for j in range(k + 1):
                beside[j] = (beside[j] - share * inverse[k][j]).mid()
    for k in range(n):
        unit = rows[k][k].rsqrt().mid()
        inverse[k] = [(v * unit).mid() for v in inverse[k]]
    return arb_mat(inverse)


def _longest(roots: list[Matrix], steps: list[Matrix]) -> float:
    """How far a step may be taken before a matrix is singular."""
    longest = np.inf
    for R, step in zip(roots, steps, strict=True):
        scaled = (R * step * R.transpose()).mid()
        M = np.array([[float(v) for v in row] for row in scaled.tolist()])
        if not np.isfinite(M).all():
            return 0.0
        lowest = float(np.linalg.eigvalsh(M)[0])
        if lowest < 0:
            longest = min(longest, -1 / lowest)
    return longest


def _parts(v: list[Number]) -> FloatArray:
    """The numbers as sums of floats, the largest part first."""
    count = BITS // 53 + 1
    parts = np.zeros((count, len(v)))
    for index, number in enumerate(v):
        left = number
        for row in range(count):
            parts[row, index] = float(left)
            left = (left - parts[row, index]).mid()
    return parts


def _basis(rows: sparse.csr_array, size: FloatArray) -> Indices:
    """As many columns as there are rows, well conditioned, of those with large entries."""
    from scipy.linalg import qr

    count = rows.shape[0]
    if not count:
        return np.zeros(0, np.intp)
    largest = float(np.max(size, initial=0.0))
    if not largest:
        return np.zeros(0, np.intp)
    scale = np.where(size > 0, np.maximum(size / largest, 1e-8), 0.0)
    B = rows.toarray() * scale
    if not np.isfinite(B).all():
        return np.zeros(0, np.intp)
    _, _, order = qr(B, mode="economic", pivoting=True, check_finite=False)
    return np.asarray(np.sort(order[:count]), np.intp)
