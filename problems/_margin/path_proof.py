"""What the solutions of a few penalties prove of support vector machines for all penalties.

In the notation of `klopt.numerics.penalty_path` the problem of the penalty C is

    p(C)  =  max D(z)  over  |z| <= C, 1'z = 0,       D(z) = T(z) - z'Kz/2,

with T(z) = sum_i up_i max(z_i, 0) + down_i min(z_i, 0), which is concave. Let K' = K + phi I be
positive semidefinite. With g = K'z + b, q = z'K'z and the loss h = sum_i max(0, up_i - g_i) +
max(0, g_i - down_i), which is convex in g, weak duality is p(C) <= q/2 + C h + charge, where the
charge bounds phi/2 ||z*||^2.

**Lemma M2 (tangents).** The same (q, h) bounds p(C) for every C, and z scaled by min(1, C / C_1) is
feasible for every C.

**Lemma M3 (chords).** Let z_1 and z_2 be feasible for C_1 < C_2, and C = (1 - t) C_1 + t C_2. Then
z = (1 - t) z_1 + t z_2 is feasible for C. With g the same mean of g_1 and g_2, d = (z_2 - z_1)'K'(z_2
- z_1), D_i = T(z_i) - q_i/2 and P_i = q_i/2 + C_i h_i,

    D(z)           >=  (1 - t) D_1 + t D_2 + t (1 - t) d/2
    q/2 + C h      <=  (1 - t) P_1 + t P_2 + t (1 - t) ((C_2 - C_1) (h_1 - h_2) - d/2),

since T is concave, h is convex, q = (1 - t) q_1 + t q_2 - t (1 - t) d, and C h is at most the product
of the two means.

**Lemma M4 (values).** Let z* be optimal for C and K'. For every feasible z and any b with q/2 + C h -
D'(z) <= G, (z - z*)'K'(z - z*) <= 2 G =: rho^2: half of it is q/2 + C h - D'(z*) minus terms that
are not negative. Let the matrix of all points, of training and others, be positive semidefinite
after phi is added to its diagonal. Then Kz* differs from Kz at any of them by at most rho r_x, r_x^2 =
k(x, x) + phi. The bias b* minimises a loss whose derivative, -(number of
finite up_i) on the left, goes up by 1 at each of the breaks up_i - (K'z*)_i and down_i - (K'z*)_i. So
b* lies between the breaks of that number and the next one, each known up to rho max r_i.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from klopt.arrays import FloatArray
from klopt.problems._margin.proof import HingeBound, length_charge, narrow_dot, total_bound
from klopt.proof.directed import difference_down, product_up, sum_up, total_up
from klopt.proof.dyadic import exact_sign_of_sum
from klopt.proof.enclosure import (
    ETA,
    UNIT_ROUNDOFF,
    Enclosure,
    enclose_dot,
    gamma,
    round_down,
    round_up,
)

__all__ = ["PathEnds", "PathTerms", "Targets", "enclose_rows"]


def enclose_rows(Z: FloatArray, K: FloatArray, r: FloatArray, columns: FloatArray) -> Enclosure:
    """Return ZK by one product of matrices, where |K_ij| <= r_i columns_j (Lemma E2).

    >>> K = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> r = np.full(2, 1.5)
    >>> enclose_rows(np.array([[1.0, -1.0]]), K, r, r).contains(np.array([[1.0, -1.0]]))
    True
    """
    n = len(K)
    sizes = (np.abs(Z) @ r) * (1 + gamma(n + 4)) + n * ETA
    rad = (gamma(n + 1) * sizes)[:, None] * columns * (1 + 8 * UNIT_ROUNDOFF) + (n + 4) * ETA
    return Enclosure(Z @ K, rad)


@dataclass(frozen=True, eq=False)
class Targets:
    """What values are pulled up and down to, up <= down, infinite where they are not.

    Parameters
    ----------
    up, down
        The targets, rounded.
    error
        By how much they are rounded at most.
    is_hinge
        Whether T(z) = ||z||_1, so that Lemma M1 bounds the charge.
    """

    up: FloatArray
    down: FloatArray
    error: float
    is_hinge: bool

    @classmethod
    def of_labels(cls, y: FloatArray) -> Targets:
        """Return 1 from below for the class +1, and -1 from above for the class -1.

        >>> Targets.of_labels(np.array([1.0, -1.0])).up
        array([  1., -inf])
        """
        plus = y > 0
        up = np.where(plus, 1.0, -np.inf)
        down = np.where(plus, np.inf, -1.0)
        return cls(up, down, 0.0, is_hinge=True)

    @classmethod
    def of_tube(cls, y: FloatArray, epsilon: float) -> Targets:
        """Return y - epsilon from below and y + epsilon from above."""
        up = y - epsilon
        down = y + epsilon
        largest = float(np.abs([up, down]).max(initial=0.0))
        return cls(up, down, product_up(UNIT_ROUNDOFF, largest), is_hinge=False)


@dataclass(frozen=True, eq=False)
class PathTerms:
    """What the bounds of all penalties take from the coefficients z of one.

    Parameters
    ----------
    C, z, bias
        The penalty, the coefficients and any bias.
    values
        g = K'z + b.
    gain, square, loss
        A lower bound of T(z), q, and an upper bound of h.
    """

    C: float
    z: FloatArray
    bias: float
    values: Enclosure
    gain: float
    square: Enclosure
    loss: float

    @classmethod
    def of(
        cls,
        C: float,
        z: FloatArray,
        bias: float,
        product: Enclosure,
        targets: Targets,
        phi: float,
    ) -> PathTerms:
        """Return the terms from Kz; a z that is not feasible proves nothing from below.

        Parameters
        ----------
        C, z, bias
            As in the class.
        product
            Kz.
        targets
            What the values are pulled to.
        phi
            What K lacks at most of being positive semidefinite.
        """
        values = product + bias
        if phi:
            values = values + Enclosure.of(z) * phi
        pulls = np.where(z > 0, targets.up, 0.0) + np.where(z < 0, targets.down, 0.0)
        rounding = product_up(targets.error, total_up(np.abs(z)))
        balanced = not exact_sign_of_sum(z)
        feasible = balanced and bool((np.abs(z) <= C).all())
        gain = -math.inf
        if feasible:
            gain = difference_down(enclose_dot(pulls, z).lower, rounding)
        # 1'z = 0 exactly: then z'K'z = z'g, whose terms cancel less.
        square = narrow_dot(z, values if balanced else values - bias)
        short = _excess(targets.up, values.lower, targets.error)
        beyond = _excess(values.upper, targets.down, targets.error)
        loss = sum_up(total_up(short), total_up(beyond))
        return cls(C, z, bias, values, gain, square, loss)

    @property
    def lower(self) -> float:
        """A lower bound of D'(z)."""
        return difference_down(self.gain, max(self.square.upper, 0.0) / 2)

    @property
    def upper(self) -> float:
        """An upper bound of q/2 + C h."""
        return self.upper_at(self.C)

    def upper_at(self, C: float) -> float:
        """Return the same for any penalty (Lemma M2)."""
        return sum_up(max(self.square.upper, 0.0) / 2, product_up(C, self.loss))


@dataclass(frozen=True, eq=False)
class PathEnds:
    """Bounds of p(C) for all C from the terms of a few, which rise.

    Parameters
    ----------
    terms
        The terms of each penalty, all of feasible coefficients.
    targets
        What the values are pulled to.
    phi
        What K lacks at most of being positive semidefinite.
    """

    terms: tuple[PathTerms, ...]
    targets: Targets
    phi: float

    def charge(self, C: float, value: float) -> float:
        """Return an upper bound of phi/2 ||z*||^2 from an upper bound of p' (Lemma M1)."""
        if not self.phi:
            return 0.0
        n = self.terms[0].z.size
        if not self.targets.is_hinge:
            return product_up(self.phi, C, C, n) / 2
        total = total_bound(HingeBound(value, math.inf, 1.0), n, C, self.phi)
        return length_charge(total, n, C, self.phi)

    def bounds(self, C: float) -> tuple[float, float]:
        """Return numbers at or below and at or above p(C)."""
        # z = 0 is feasible and has the value 0.
        lowers = [0.0]
        uppers = []
        below = [term for term in self.terms if term.C <= C]
        above = [term for term in self.terms if term.C > C]
        if below:
            lowers.append(below[-1].lower)
            uppers.append(below[-1].upper_at(C))
        if above:
            lowers.append(_scaled_lower(above[0], C))
            uppers.append(above[0].upper_at(C))
        # A chord needs two feasible ends.
        if below and above and math.isfinite(below[-1].gain + above[0].gain):
            lower, upper = self._chord(below[-1], above[0], C)
            lowers.append(lower)
            uppers.append(upper)
        value = min(uppers)
        return max(lowers), sum_up(value, self.charge(C, value))

    def chord_gap(self, index: int) -> float:
        """Return an upper bound of q/2 + C h - D'(z) on the chord from this penalty to the next."""
        first = self.terms[index]
        second = self.terms[index + 1]
        ends = max(sum_up(first.upper, -first.lower), sum_up(second.upper, -second.lower))
        step = Enclosure.of(second.C) - first.C
        fall = Enclosure.of(first.loss) - second.loss
        # t (1 - t) is at most 1/4.
        bend = max((step * fall - self._squared_distance(first, second)).upper, 0.0)
        return sum_up(ends, bend / 4)

    def values_between(
        self, index: int, first: Enclosure, second: Enclosure, r: FloatArray, largest_r: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return bounds of Kz* + b*, z* optimal for K', at any points for all C up to the next.

        Parameters
        ----------
        index
            The number of the penalty.
        first, second
            Kz + b of this penalty and the next at these points.
        r
            Upper bounds of the roots of k(x, x) + phi at these points.
        largest_r
            The largest such bound of the training points.
        """
        rho = math.nextafter(math.sqrt(product_up(2.0, self.chord_gap(index))), math.inf)
        down_by, up_by = self._bias_shifts(index, product_up(rho, largest_r))
        reach = round_up(rho * r)
        low = round_down(np.minimum(first.lower, second.lower) - reach)
        high = round_up(np.maximum(first.upper, second.upper) + reach)
        return round_down(low + down_by), round_up(high + up_by)

    def _bias_shifts(self, index: int, reach: float) -> tuple[float, float]:
        """How far b* may be below and above the biases of the chord (Lemma M4)."""
        targets = self.targets
        count = int(np.count_nonzero(np.isfinite(targets.up)))
        one = self.terms[index].values
        two = self.terms[index + 1].values
        earliest = _break_number(count - 1, targets, np.maximum(one.upper, two.upper))
        latest = _break_number(count, targets, np.minimum(one.lower, two.lower))
        reach = sum_up(reach, targets.error)
        # One rounding for the break itself.
        low = difference_down(math.nextafter(earliest, -math.inf), reach)
        high = sum_up(math.nextafter(latest, math.inf), reach)
        return low, high

    def _squared_distance(self, first: PathTerms, second: PathTerms) -> Enclosure:
        """d = (z_2 - z_1)'K'(z_2 - z_1)."""
        # 1'z = 0 exactly for feasible z, so that the bias changes nothing.
        product = narrow_dot(first.z, second.values)
        return first.square + second.square - product * 2.0

    def _chord(self, first: PathTerms, second: PathTerms, C: float) -> tuple[float, float]:
        """Both bounds of Lemma M3, without the charge."""
        t = (Enclosure.of(C) - first.C) / (Enclosure.of(second.C) - first.C)
        rest = 1.0 - t
        d = self._squared_distance(first, second)
        bend = t * rest
        lower = rest * first.lower + t * second.lower + bend * d * 0.5
        fall = (Enclosure.of(second.C) - first.C) * (Enclosure.of(first.loss) - second.loss)
        upper = rest * first.upper + t * second.upper + bend * (fall - d * 0.5)
        return float(lower.lower), float(upper.upper)


def _excess(above: FloatArray, below: FloatArray, error: float) -> FloatArray:
    """Upper bounds of max(0, above - below + error)."""
    return np.asarray(np.maximum(round_up(round_up(above - below) + error), 0.0))


def _break_number(k: int, targets: Targets, values: FloatArray) -> float:
    """The break of this number, from 0 on."""
    breaks = np.concatenate([targets.up - values, targets.down - values])
    return float(np.partition(breaks[np.isfinite(breaks)], k)[k])


def _scaled_lower(term: PathTerms, C: float) -> float:
    """The value at z C / C_1, for C < C_1 (Lemma M2)."""
    share = Enclosure.of(C) / term.C
    scaled = share * term.gain - share * share * (max(term.square.upper, 0.0) / 2)
    return float(scaled.lower)
