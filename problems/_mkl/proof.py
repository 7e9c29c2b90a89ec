"""What coefficients and weights prove about multiple kernel learning: both ends, in enclosures.

    maximise  y'a - ||r||_s^2 / 2 - loss(a)        r_i = (a'K_i a)^1/2

Lower: the value at an exactly feasible a. Upper, weak duality: for any beta_i, with c_i = (beta_i'
K_i beta_i)^1/2 and f = sum_i K_i beta_i, Young's and Cauchy's inequalities give for the best a*

    ||r*||_s^2 / 2 >= sum_i c_i r*_i - ||c||_p^2 / 2 >= f'a* - ||c||_p^2 / 2         1/p + 1/s = 1

so the optimum is at most  ||c||_p^2 / 2 + max over a of (y - f)'a - loss(a), which is the loss of f
in the primal: for a in a box with 1'a = 0 and epsilon ||a||_1 it is sum_i C_i max(0, |y_i - f_i -
b| - epsilon) for any b. With weights theta, beta_i = theta_i a. C may differ from point to point.

K_i is proven positive semidefinite only down to its floor -phi_i; it stands for its positive part
K_i + E with 0 <= E <= phi_i I. That adds phi_i |beta_i|^2 to c_i^2 at most, and at most  sum_i phi_i
|beta_i| |a*|  to the bound. From K_i = R'R + E' with ||E'|| <= e follows a'(K_i + E)a <= |Ra|^2 +
(e + min(phi_i, e)) |a|^2, as no eigenvalue of K_i is below -e.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from klopt.arrays import EPS, FloatArray
from klopt.kernels.gram import Gram
from klopt.model.problem import Bracket, Point
from klopt.model.sets import BoxPlane
from klopt.problems._margin.proof import (
    AT_A_POINT,
    BY_COEFFICIENTS,
    Penalty,
    balanced_multiple,
    best_stretch,
    hinge_bias,
    hinge_bound,
    is_narrow,
    is_within,
    largest,
    middle_of,
    tube_bias,
    tube_bound,
    tube_misses,
    tube_stretch,
    value_below,
)
from klopt.proof.directed import difference_down, product_up, sum_up, total_up
from klopt.proof.dyadic import exact_sign_of_sum
from klopt.proof.enclosure import (
    Enclosure,
    enclose_dot,
    enclose_norm,
    enclose_product,
    enclose_sum,
    round_down,
    round_up,
)
from klopt.proof.kernel_product import enclose_in_blocks, enclose_in_slices

__all__ = [
    "MultipleKernelDual",
    "diagonal_shifts",
    "dual_norm",
    "squared_norm_above",
    "weights_of",
]

MAX_CHARGE_SHARE = 1e-10
"""A charge for the floors that costs no more than this share is not worth a second bound."""
MAX_FLOOR_SHARE = 1e-9
"""Up to this share of a'Ka the floor of K is not worth a factorisation."""
NEGLIGIBLE = 2.0**-900
"""A share of the largest r_i^2 below this counts as this."""
MAX_SQUARE_ERROR = 1e-9
"""A relative error of r_i^2 beyond this is worth slices where ||r||_s has a kink at r_i = 0."""

# The norm of the r_i


def dual_norm(r: FloatArray, s: float) -> float:
    """Return ||r||_s without overflow."""
    largest = float(r.max(initial=0.0))
    if not largest or np.isinf(s):
        return largest
    total = float(((r / largest) ** s).sum())
    return float(largest * total ** (1 / s))


def weights_of(r: FloatArray, s: float) -> FloatArray:
    """Return theta with sum_i theta_i r_i^2 = ||r||_s^2, for s < inf and r > 0.

    They are the gradients of ||r||_s^2 / 2 in r_i^2 / 2.

    >>> weights_of(np.array([1.0, 3.0]), 1.0)
    array([4.        , 1.33333333])
    """
    theta: FloatArray = (r / dual_norm(r, s)) ** (s - 2)
    return theta


def diagonal_shifts(scales: FloatArray, n: int) -> FloatArray:
    """Return delta_i, the rounding of a'K_i a for a'a = 1, n points and mean diagonals `scales`.

    K_i + delta_i I in place of K_i keeps r_i away from 0 (`klopt.problems._mkl.function`).
    """
    return 4 * n * EPS * scales


# Both ends


@dataclass(frozen=True, eq=False)
class MultipleKernelDual:
    """The dual in signed coefficients a.

    Parameters
    ----------
    kernels, y, C
        The kernels, labels or targets, and the penalty of errors: one number, or one for each
        point.
    hinge
        Whether the loss is the hinge, else it is the squared one or that of a tube.
    p
        The exponent of the norm in the primal.
    epsilon
        The half-width of the tube of the epsilon-insensitive loss; None for the other losses.
    """

    kernels: tuple[Gram, ...]
    y: FloatArray
    C: Penalty
    hinge: bool
    p: float
    epsilon: float | None = None

    @property
    def has_plane(self) -> bool:
        """Whether a model has a bias: then 1'a = 0, and a lies in a box."""
        return self.hinge or self.epsilon is not None

    @property
    def s(self) -> float:
        """The exponent of the norm in the dual, rounded."""
        if self.p == 1:
            return math.inf
        return 1.0 if math.isinf(self.p) else self.p / (self.p - 1)

    @property
    def _exact_s(self) -> Enclosure:
        """The same, enclosed; for 1 < p < inf."""
        return Enclosure.of(self.p) / (Enclosure.of(self.p) - 1.0)

    @cached_property
    def is_present(self) -> npt.NDArray[np.bool_]:
        """Which kernels count: all but those that are zero, and one at least."""
        is_present = np.array([bool(K.matrix.any()) for K in self.kernels])
        is_present[0] |= not is_present.any()
        return is_present

    @property
    def present(self) -> tuple[Gram, ...]:
        """The kernels that count."""
        pairs = zip(self.kernels, self.is_present, strict=True)
        return tuple(K for K, is_present in pairs if is_present)

    def of_all(self, part: FloatArray) -> FloatArray:
        """Return an array over the kernels that count as one over all, zero elsewhere."""
        whole = np.zeros((len(self.kernels), *part.shape[1:]))
        whole[self.is_present] = part
        return whole

    def domain(self, length: float = 1.0) -> BoxPlane:
        """Return the set of a / length; the squared loss knows a* in a box of its own."""
        n = self.y.size
        if not self.has_plane:
            box = self.max_norm / length
            return BoxPlane(np.full(n, -box), np.full(n, box))
        if not self.hinge:
            bounds = np.full(n, self.C / length)
            return BoxPlane(-bounds, bounds, np.ones(n))
        corner = self.y * (self.C / length)
        return BoxPlane(np.minimum(corner, 0.0), np.maximum(corner, 0.0), np.ones(n))

    @cached_property
    def max_norm(self) -> float:
        """A bound of |a*|: by the box, or as a* = C (y - f*) and f* fits better than 0.

        The latter is sum_i C_i (y_i - f*_i)^2 <= sum_i C_i y_i^2.
        """
        corner = np.ones(self.y.size) if self.has_plane else self.y
        if not isinstance(self.C, np.ndarray):
            return float((enclose_norm(corner) * self.C).upper)
        if self.has_plane:
            return float(enclose_norm(self.C).upper)
        fit = product_up(largest(self.C), self._weighted_square(self.y))
        return math.nextafter(math.sqrt(fit), math.inf)

    def _weighted_square(self, x: FloatArray | Enclosure) -> float:
        """An upper bound of sum_i C_i x_i^2."""
        if not isinstance(self.C, np.ndarray):
            return product_up(self.C, max(enclose_dot(x, x).upper, 0.0))
        return max(float(enclose_dot(Enclosure.of(x) * self.C, x).upper), 0.0)

    def proof(self, witness: Point) -> Bracket:
        """Return the ends that a witness proves.

        It holds the `signed` coefficients, and maybe `weights` and the coefficients `classifier`.
        """
        a = witness.signed
        is_feasible = self._is_feasible(a)
        u = [self._product(K, a) for K in self.kernels]
        squares = self._squares(u, a)
        if not self._is_narrow(u, squares, a):
            u = [enclose_in_slices(K.matrix, a) for K in self.kernels]
            squares = self._squares(u, a)

        lower, stretch = self._lower(a, squares) if is_feasible else (0.0, 0.0)

        theta = witness.primal.get("weights")
        if theta is None:
            theta = self._weights(np.array([float(a @ product.mid) for product in u]), a)
        length = enclose_norm(a).upper
        upper, bias = self._upper(
            _weighted_sum(theta, u),
            round_up(round_up(theta * theta) * squares),
            product_up(enclose_dot(np.abs(theta), self._floors).upper, length),
        )
        beta = witness.dual.get("classifier")
        if beta is not None:
            upper, bias = min((upper, bias), self._upper_by_coefficients(beta))

        signed = balanced_multiple(a, stretch) if self.has_plane else stretch * a
        solved = {"alpha": np.abs(signed) if self.hinge else signed, "weights": theta}
        if self.has_plane:
            solved["bias"] = np.asarray(bias)
        return Bracket(lower, upper, Point(solved), "", AT_A_POINT, BY_COEFFICIENTS)

    # The products

    @staticmethod
    def _product(K: Gram, a: FloatArray) -> Enclosure:
        return enclose_in_blocks(K.matrix, a, K.entry_bounds)

    def _is_narrow(self, u: list[Enclosure], squares: FloatArray, a: FloatArray) -> bool:
        """Whether the errors of the products move the ends by little."""
        size = float(np.abs(a).sum())
        value = float(self.y @ a)
        if not all(is_narrow(product, size, value) for product in u):
            return False
        if self.s >= 2:
            return True
        # r_i has the root of the error of r_i^2.
        errors = np.array([float(product.rad @ np.abs(a)) for product in u])
        return bool((errors <= MAX_SQUARE_ERROR * squares).all())

    def _squares(self, u: list[Enclosure], a: FloatArray) -> FloatArray:
        """Upper bounds of a'(K_i + E)a from u_i = K_i a."""
        squared_length = enclose_dot(a, a).upper
        pairs = zip(self.kernels, u, strict=True)
        return np.array([_square_above(K, product, a, squared_length) for K, product in pairs])

    # The lower end

    def _is_feasible(self, a: FloatArray) -> bool:
        """Whether a satisfies the constraints of the loss exactly; the squared one has none."""
        if not self.has_plane:
            return bool(np.isfinite(a).all())
        alpha = self.y * a if self.hinge else np.abs(a)
        in_box = bool((alpha >= 0).all() and (alpha <= self.C).all())
        return in_box and not exact_sign_of_sum(a)

    def _lower(self, a: FloatArray, squares: FloatArray) -> tuple[float, float]:
        """The value at the best multiple of a feasible a, 0 at least, and the multiple."""
        gain = self._gain(a)
        exponent = self.s if self.s in (1.0, 2.0, math.inf) else self._exact_s
        curvature = squared_norm_above(squares, exponent)
        if self.has_plane:
            if self.hinge:
                stretch = best_stretch(self.y * a, curvature, self.C)
            else:
                stretch = tube_stretch(a, gain.lower, curvature, self.C)
            if not is_within(stretch, np.abs(a), self.C):
                stretch = 1.0
        else:
            curvature = sum_up(curvature, float(enclose_dot(Enclosure.of(a) / self.C, a).upper))
            stretch = float(gain.mid / curvature) if curvature > 0 else 1.0
        if not math.isfinite(stretch):
            stretch = 1.0
        if stretch < 0:
            # The same with -a, whose gain is -gain.
            value = value_below(-gain.upper, curvature, -stretch)
        else:
            value = value_below(gain.lower, curvature, stretch)
        return max(0.0, value), stretch

    def _gain(self, a: FloatArray) -> Enclosure:
        """y'a - epsilon ||a||_1."""
        if self.epsilon is None:
            return enclose_dot(self.y, a)
        # 1'a = 0 exactly: y may be moved, so that its terms cancel less.
        along = enclose_dot(Enclosure.of(self.y) - middle_of(self.y), a)
        return along - enclose_dot(np.full(a.size, self.epsilon), np.abs(a))

    def _weights(self, q: FloatArray, a: FloatArray) -> FloatArray:
        """Weights that alpha asks for, from q_i = a'K_i a; 0 for a zero kernel. Any are valid."""
        if np.isinf(self.s):
            return np.asarray(np.arange(q.size) == int(np.argmax(q)), dtype=float)
        scales = np.array([K.scale for K in self.present])
        shifted = q[self.is_present] + diagonal_shifts(scales, a.size) * float(a @ a)
        r = np.sqrt(np.maximum(shifted, np.finfo(float).tiny))
        return self.of_all(weights_of(r, self.s))

    # The upper end

    @property
    def _floors(self) -> FloatArray:
        """phi_i."""
        return np.array([-K.floor for K in self.kernels])

    def _upper_by_coefficients(self, beta: FloatArray) -> tuple[float, float]:
        """The primal value of f = sum_i K_i beta_i, and its bias."""
        pairs = list(zip(self.kernels, beta, strict=True))
        u = [self._product(K, b) for K, b in pairs]
        size = float(np.abs(beta).sum())
        if not all(is_narrow(product, size, 0.0) for product in u):
            u = [enclose_in_slices(K.matrix, b) for K, b in pairs]
        squares = [
            _square_above(K, product, b, enclose_dot(b, b).upper)
            for (K, b), product in zip(pairs, u, strict=True)
        ]
        lengths = np.array([enclose_norm(b).upper for b in beta])
        charge = enclose_dot(lengths, self._floors).upper
        return self._upper(_weighted_sum(np.ones(len(u)), u), np.array(squares), charge)

    def _upper(self, f: Enclosure, squares: FloatArray, charge: float) -> tuple[float, float]:
        """The primal value of the best multiple of f, and its bias.

        Parameters
        ----------
        f
            sum_i K_i beta_i.
        squares
            Upper bounds of c_i^2.
        charge
            What each unit of |a*| costs for the floors.
        """
        squared_norm = squared_norm_above(squares, self.p)
        if self.epsilon is not None:
            return self._tube_upper(f, squared_norm, charge, self.epsilon)
        if not self.hinge:
            return self._squared_loss_upper(f, squared_norm, charge), 0.0
        bias = hinge_bias(self.y, f.mid, self.C)
        shifted = f + bias
        margins = round_down(self.y * shifted.mid - shifted.rad)
        # |a*| <= 1'alpha*: the charge may be taken from each margin.
        far = hinge_bound(round_down(margins - charge), squared_norm, self.C).value
        # All that the charge can cost is C n times it.
        C = largest(self.C)
        if product_up(C, self.y.size, charge) <= MAX_CHARGE_SHARE * (1 + far):
            return far, bias
        near = hinge_bound(margins, squared_norm, self.C)
        # ||r*||_s^2 <= 1'alpha*, else a smaller multiple were better: so 1'alpha* is at most twice
        # the optimum, and |a*|^2 <= C 1'alpha*.
        by_value = math.nextafter(math.sqrt(product_up(2.0, C, far)), math.inf)
        reach = min(self.max_norm, by_value)
        return min(far, sum_up(near.value, product_up(near.scale, charge, reach))), bias

    def _tube_upper(
        self, f: Enclosure, squared_norm: float, charge: float, epsilon: float
    ) -> tuple[float, float]:
        """The primal value of f + b in the tube, charged for the floors, and b."""
        bias = tube_bias(self.y, f.mid, epsilon, self.C)
        misses = tube_misses(self.y, bias, f)
        # What |a*| <= ||a*||_1 costs may be taken from the tube, or paid at the largest |a*|.
        narrower = difference_down(epsilon, charge) if charge else epsilon
        far = tube_bound(misses, squared_norm, self.C, narrower, 0.0)
        near = tube_bound(misses, squared_norm, self.C, epsilon, 0.0)
        return min(far, sum_up(near, product_up(charge, self.max_norm))), bias

    def _squared_loss_upper(self, f: Enclosure, squared_norm: float, charge: float) -> float:
        """s^2 ||c||_p^2 / 2 + C/2 |y - s f|^2 at a good s >= 0, charged for the floors."""
        curvature = squared_norm + float((self.C * f.mid) @ f.mid)
        scale = max(float((self.C * self.y) @ f.mid) / curvature, 0.0) if curvature > 0 else 0.0
        if not math.isfinite(scale):
            scale = 0.0
        miss = self.y - f * scale
        norm = product_up(scale, scale, squared_norm)
        loss = self._weighted_square(miss)
        return sum_up(norm / 2, loss / 2, product_up(scale, charge, self.max_norm))


def squared_norm_above(squares: FloatArray, exponent: float | Enclosure) -> float:
    """Return an upper bound of ||r||^2 in the norm with an exponent, from r_i^2 >= 0.

    >>> bool(16 <= squared_norm_above(np.array([1.0, 9.0]), 1.0) < 16.000001)
    True
    """
    if not np.isfinite(squares).all():
        return math.inf
    v = squares[squares > 0]
    if not v.size:
        return 0.0
    largest = float(v.max())
    if exponent == math.inf:
        return largest
    if exponent == 2.0:
        return total_up(v)
    if exponent == 1.0:
        total = total_up(round_up(np.sqrt(v)))
        return product_up(total, total)
    e = Enclosure.of(exponent)
    # Raising what is next to nothing leaves an upper bound, and a ratio with a logarithm.
    v = np.maximum(v, NEGLIGIBLE * largest)
    powers = ((Enclosure.of(v) / largest).log() * (e * 0.5)).exp()
    root = (powers.sum().log() * (2.0 / e)).exp()
    return _above(root * largest)


def _square_above(K: Gram, u: Enclosure, a: FloatArray, squared_length: float) -> float:
    """An upper bound of a'(K + E)a from u = Ka and |a|^2; see the module's docstring."""
    square = enclose_dot(a, u)
    charge = product_up(-K.floor, squared_length) if K.floor else 0.0
    by_floor = max(sum_up(square.upper, charge), 0.0)
    if charge <= MAX_FLOOR_SHARE * square.mid:
        return by_floor
    # Near 0 the factor of K knows a'Ka better than its floor does.
    Ra = enclose_product(K.factor(), a)
    error = K.factor_error()
    both = enclose_sum([error, min(-K.floor, error)]) * squared_length
    return min(by_floor, float((enclose_dot(Ra, Ra) + both).upper))


def _weighted_sum(theta: FloatArray, u: list[Enclosure]) -> Enclosure:
    """sum_i theta_i u_i."""
    mids = np.array([product.mid for product in u])
    rads = np.array([product.rad for product in u])
    return Enclosure.of(theta) @ Enclosure(mids, rads)


def _above(x: Enclosure) -> float:
    """Its upper end; infinite where that is not known."""
    upper = float(x.upper)
    return upper if upper < math.inf else math.inf
