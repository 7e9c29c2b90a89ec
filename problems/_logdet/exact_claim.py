"""LogDet programs in fractions, and what proves their optimum.

    minimise  <Y0, W> - log det W - log det G - k    over W positive definite

K = G W G of a positive definite G, and D(K, G) = <G, W> - log det W - log det G - k; of features K =
Phi W Phi', and D = tr W - log det W - k. Distances are linear in W. Multipliers leave the matrix Y =
Y0 + sum of multiples of pairs, whose inverse is the best W: it is computed in as many bits as it
takes, and moved until every distance is within its bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from klopt.arrays import FloatArray
from klopt.errors import NotCertified
from klopt.problems._logdet.proof import PairData
from klopt.proof.balls import working_bits
from klopt.witness.exact_claims import (
    ConeData,
    ConeVectors,
    ExactClaim,
    LogDet,
    Rows,
    Vector,
    fractions,
    lower_entries,
    product,
)

__all__ = ["MAX_ORDER", "log_det_claim", "pair_claim"]

MAX_ORDER = 100
"""Of a matrix whose determinant a checker computes."""
BITS = 700
"""With which an inverse is computed."""
KEPT_BITS = 220
"""Bits of an entry of W below the largest one."""
ROUNDS = 40
"""How often W is moved towards the bounds of its distances."""


def _inverse(Y: Rows) -> Rows:
    """About the inverse, symmetric, with KEPT_BITS below its largest entry."""
    from flint import arb, arb_mat, fmpq

    n = len(Y)
    with working_bits(BITS):
        balls = arb_mat([[arb(fmpq(v.numerator, v.denominator)) for v in row] for row in Y])
        try:
            found = balls.inv()
        except ZeroDivisionError:
            raise NotCertified("a matrix is too near to a singular one") from None
        entries = [[_midpoint(found[i, j]) for j in range(n)] for i in range(n)]
    largest = max(abs(value) for row in entries for value in row)
    unit = Fraction(2) ** (_exponent(largest) - KEPT_BITS)
    short = [[round(value / unit) * unit for value in row] for row in entries]
    return [[short[max(i, j)][min(i, j)] for j in range(n)] for i in range(n)]


def _midpoint(ball: Any) -> Fraction:
    mantissa, exponent = ball.mid().man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def _exponent(value: Fraction) -> int:
    return value.numerator.bit_length() - value.denominator.bit_length()


def _data(Y0: Rows, G: FloatArray | None) -> tuple[ConeData, list[tuple[int, int]]]:
    k = len(Y0)
    if k > MAX_ORDER:
        raise NotCertified(f"log det certificates are of at most {MAX_ORDER} points or features")
    places = [(i, j) for j in range(k) for i in range(j, k)]
    data = ConeData(len(places))
    data.c = [Y0[i][j] * (1 if i == j else 2) for i, j in places]
    data.add("semidefinite", k, [{at: -1} for at in range(len(places))], [0] * len(places))
    data.log_dets.append(LogDet(Fraction(1), cone=0))
    if G is not None:
        if np.linalg.eigvalsh(G)[0] < 0:
            raise NotCertified(
                "K0 is indefinite by rounding, and its positive part has no exact numbers; "
                "give features, or K0 with a larger diagonal"
            )
        data.log_dets.append(LogDet(Fraction(1), matrix=lower_entries(G), order=k))
    return data, places


def log_det_claim(Y0: Rows, G: FloatArray | None) -> ExactClaim:
    """Return the program without pairs: its best W is the inverse of Y0.

    Parameters
    ----------
    Y0
        The matrix of the linear term, exactly.
    G
        The given kernel, or None for features.
    """
    data, places = _data(Y0, G)
    W = _inverse(Y0)
    x = [W[i][j] for i, j in places]
    return ExactClaim(data, ConeVectors(x, list(data.c)), shift=Fraction(-len(Y0)))


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Pairs as vectors a with the squared distance a'Wa."""

    a: list[Vector]
    sign: list[int]
    target: Vector

    @classmethod
    def of(cls, given: PairData) -> _Pairs:
        rows = given.gram if given.features is None else given.features
        assert rows is not None
        exact = [fractions(row) for row in rows]
        ends = list(zip(given.first.tolist(), given.second.tolist(), strict=True))
        a = [[p - q for p, q in zip(exact[i], exact[j], strict=True)] for i, j in ends]
        return cls(a, [int(s) for s in given.sign], fractions(given.target))

    def distances(self, W: Rows) -> Vector:
        """Return a'Wa of every pair."""
        if not self.a:
            return []
        images = product(self.a, W)
        return [
            sum((p * q for p, q in zip(a, image, strict=True)), Fraction(0))
            for a, image in zip(self.a, images, strict=True)
        ]


def pair_claim(given: PairData, multipliers: FloatArray, verdict: str) -> ExactClaim:
    """Return the program with its pairs and the vectors of multipliers.

    Parameters
    ----------
    given
        The kernel or features, and the pairs.
    multipliers
        One for each pair, of the distance.
    verdict
        OPTIMAL or INFEASIBLE.
    """
    G = given.gram
    pairs = _Pairs.of(given)
    if G is not None:
        Y0 = [fractions(row) for row in G]
    else:
        assert given.features is not None
        order = given.features.shape[1]
        Y0 = [[Fraction(int(i == j)) for j in range(order)] for i in range(order)]
    data, places = _data(Y0, G)
    count = len(pairs.a)
    first = len(places)
    shift = Fraction(-len(Y0))
    if not given.is_hard:
        price = Fraction(given.weight)
        data.n += count
        data.c += [price] * count
        for c in range(count):
            data.add("semidefinite", 1, [{first + c: -1}], [0])
            data.log_dets.append(LogDet(price, cone=1 + c))
        shift -= price * count
    rows = []
    right = []
    for c, (a, sign, target) in enumerate(zip(pairs.a, pairs.sign, pairs.target, strict=True)):
        row: dict[int, Any] = {
            at: sign * a[i] * a[j] * (1 if i == j else 2) for at, (i, j) in enumerate(places)
        }
        if not given.is_hard:
            row[first + c] = -sign * target
        rows.append(row)
        right.append(sign * target if given.is_hard else Fraction(0))
    start = data.add("nonnegative", count, rows, right) if count else 0

    largest = float(multipliers.max(initial=0.0)) or 1.0
    unit = 2.0 ** np.floor(np.log2(largest) - 50)
    lam = [Fraction(max(float(np.floor(value / unit)) * unit, 0.0)) for value in multipliers]
    given_rows = {start + c: value for c, value in enumerate(lam)}
    if verdict == "INFEASIBLE":
        nothing = [Fraction(0)] * data.n
        return ExactClaim(data, ConeVectors(y=_closed(data, given_rows, nothing)))
    y = _closed(data, given_rows, data.c)
    k = len(Y0)
    Y = [[Fraction(0)] * k for _ in range(k)]
    for at, (i, j) in enumerate(places):
        Y[i][j] = Y[j][i] = y[at] / (1 if i == j else 2)
    W = _inverse(Y)
    if given.is_hard:
        W = _moved_inside(pairs, W, lam)
        x = [W[i][j] for i, j in places]
    else:
        x = [W[i][j] for i, j in places]
        for d, sign, target in zip(pairs.distances(W), pairs.sign, pairs.target, strict=True):
            u = _short(d / target, up=sign > 0)
            x.append(max(u, Fraction(1)) if sign > 0 else min(u, Fraction(1)))
    return ExactClaim(data, ConeVectors(x, y), shift=shift)


def _closed(data: ConeData, given: dict[int, Fraction], c: Sequence[Fraction]) -> Vector:
    """Multipliers: those of semidefinite cones, whose rows are -x, are what is left."""
    y = [given.get(row, Fraction(0)) for row in range(len(data.b))]
    gradient = data.gradient(given, c=c)
    starts = {j: i for i, j, value in data.A if i not in given and value == -1}
    for j, value in enumerate(gradient):
        y[starts[j]] = value
    return y


def _short(value: Fraction, up: bool) -> Fraction:
    """A number of 100 bits above or below."""
    unit = Fraction(2) ** (_exponent(value) - 100) if value else Fraction(1)
    steps = value / unit
    return (
        -(-steps.numerator // steps.denominator) if up else steps.numerator // steps.denominator
    ) * unit


def _moved_inside(pairs: _Pairs, W: Rows, lam: Vector) -> Rows:
    """W moved along the pairs that matter until all distances are within their bounds."""
    for _ in range(ROUNDS):
        d = pairs.distances(W)
        over = [s * (value - t) for s, value, t in zip(pairs.sign, d, pairs.target, strict=True)]
        if all(value <= 0 for value in over):
            return W
        near = [
            c
            for c, value in enumerate(over)
            if lam[c] > 0 or value > -Fraction(1, 10**7) * pairs.target[c]
        ]
        a = [pairs.a[c] for c in near]
        images = product(a, W)
        inner = product(images, [list(column) for column in zip(*a, strict=True)])
        M = np.array([[float(value) ** 2 for value in row] for row in inner])
        margin = 1e-11
        wish = np.array(
            [-pairs.sign[c] * (float(over[c]) + margin * float(pairs.target[c])) for c in near]
        )
        mu = np.linalg.lstsq(M, wish, rcond=1e-14)[0]
        k = len(W)
        scaled = [[Fraction(float(m)) * v for v in row] for m, row in zip(mu, images, strict=True)]
        step = product([list(column) for column in zip(*images, strict=True)], scaled)
        largest = max(abs(value) for row in W for value in row)
        unit = Fraction(2) ** (_exponent(largest) - KEPT_BITS)
        W = [[round((W[i][j] + step[i][j]) / unit) * unit for j in range(k)] for i in range(k)]
    raise NotCertified("no kernel whose distances are exactly within their bounds was found")
