"""The equivalent forms of learning a data-adaptive kernel, and the way back from each.

In the units of `klopt.problems._margin.forms`: a = length * (the form's a), value = length *
gradient * (value of the form). The form has K length / gradient and eta / (length * gradient) for K
and eta; F and tau stay as they are.

Forms with x >= 0 write a = Sx: for classification x = alpha and S = diag(y), for regression x = (u,
v) and a = u - v.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property, partial

import numpy as np

from klopt.arrays import FloatArray
from klopt.kernels.gram import Gram
from klopt.kernels.nystroem import LowRank
from klopt.model.cones import smat, svec
from klopt.model.features import Feature
from klopt.model.forms import ConeForm, SaddleForm, SimplexForm, Start
from klopt.model.functions import (
    HessianOperator,
    LocalModel,
    MatrixFreeFunction,
    SaddleOracle,
    SmoothFunction,
    StartModel,
)
from klopt.model.problem import Bracket, Formulation, Point, Problem
from klopt.model.sets import BoxPlane, Spectrahedron
from klopt.problems._adaptive.cone_forms import AdaptiveCone
from klopt.problems._adaptive.data import eta_for, eta_of_paper, mean_diagonal
from klopt.problems._adaptive.exact_claim import adaptive_kernel_claim
from klopt.problems._adaptive.features import (
    AdaptiveFeatureFunction,
    LinearlyShifted,
    SplitVariables,
)
from klopt.problems._adaptive.function import AdaptiveFunction
from klopt.problems._adaptive.witness import AdaptiveDual
from klopt.problems._margin.forms import Units
from klopt.witness.exact_claims import ExactClaim

__all__ = ["AdaptiveForms", "AdaptiveProblem"]

MAX_SEMIDEFINITE_POINTS = 100
"""Semidefinite programs of more points than this are not offered: they have n^2 variables."""

POSITIVE_PART = "the best F for given coefficients is the positive part of 11' + Gamma - (tau/2) I"
QUARTIC = "11' + Gamma is positive semidefinite, so that F = 11' + Gamma: no eigenvalues"
RELAXED_SQUARES = (
    "K o K is positive semidefinite and has no negative entry, so that u = a o a may be relaxed"
)
SCHUR = (
    "W >= M and W psd have M_+ as the smallest W in the Frobenius norm; Gamma is a Schur complement"
)
CONJUGATE = "a'(F o K)a / 2 and its conjugate: a Schur complement"
MINIMAX = "the game is convex in F, concave in a, and the coefficients lie in a compact set (Sion)"


class AdaptiveProblem(Problem):
    """What classification and regression with a data-adaptive kernel share."""

    K: Gram | LowRank
    y: FloatArray
    C: float
    eta: float
    tau: float
    bias: bool

    @property
    def _tube(self) -> float | None:
        """The half-width of the tube; None for classification."""
        return None

    @cached_property
    def _function(self) -> AdaptiveFunction | AdaptiveFeatureFunction:
        """g, in the units of the problem."""
        if isinstance(self.K, LowRank):
            return AdaptiveFeatureFunction(self.K.Phi, 1.0, self.eta, self.tau)
        return AdaptiveFunction(self.K.matrix, self.eta, self.tau)

    @cached_property
    def machine(self) -> AdaptiveDual:
        """The dual in signed coefficients."""
        return AdaptiveDual(
            self.K,
            self.y,
            self.C,
            self.eta,
            self.tau,
            self.bias,
            self._tube,
            self._function,
        )

    def formulations(self) -> tuple[Formulation, ...]:
        return AdaptiveForms(self.K, self.machine, self._function).formulations()

    def witness(self, point: Point) -> Point:
        """Return what a point proposes to the proof: arrays by name, made by any means."""
        return self.machine.witness(point)

    def proof(self, witness: Point) -> Bracket:
        """Return the bounds that a witness proves, in exact arithmetic."""
        return self.machine.proof.bracket(witness)

    def bracket(self, point: Point) -> Bracket:
        return self.proof(self.witness(point))

    def exact_claim(self, point: Point, verdict: str) -> ExactClaim:
        """Return the saddle program of F and the coefficients."""
        return adaptive_kernel_claim(self.machine, self.weights(point), point)

    def kernel(self, point: Point) -> FloatArray:
        """Return F o K."""
        return self._function.kernel(self.machine.coefficients(point))

    def weights(self, point: Point) -> FloatArray:
        """Return F."""
        return self._function.weights(self.machine.coefficients(point))

    eta_for = staticmethod(eta_for)
    eta_of_paper = staticmethod(eta_of_paper)


@dataclass(frozen=True, eq=False)
class AdaptiveForms:
    """The forms of one dual; g comes from `function`, in the units of the problem."""

    K: Gram | LowRank
    dual: AdaptiveDual
    function: AdaptiveFunction | AdaptiveFeatureFunction

    def formulations(self) -> tuple[Formulation, ...]:
        dual = self.dual
        make = partial(Formulation, dual=True, scale=-self._units.value)
        name = "smooth" if dual.tau else "quartic"
        because = POSITIVE_PART if dual.tau else QUARTIC
        if isinstance(self.K, LowRank):
            applied = frozenset({Feature.SIMPLEX, Feature.APPLIED, Feature.BOX})
            form = make(name, applied, self._matrix_free, self._recover, self._lift, because)
            return (form,)

        curved = frozenset({Feature.SIMPLEX, Feature.CURVED, Feature.BOX})
        smooth = make(name, curved, self._smooth, self._recover, self._lift, because)
        if dual.y.size > MAX_SEMIDEFINITE_POINTS:
            return (smooth,)
        if dual.tau:
            return (smooth, *self._semidefinite_formulations())
        second_order = frozenset({Feature.CONE, Feature.QUADRATIC, Feature.SOC})
        socp = make(
            "SOCP",
            second_order,
            self._socp,
            self._recover_split,
            self._lift_socp,
            RELAXED_SQUARES,
        )
        return (smooth, socp, *self._semidefinite_formulations())

    def _semidefinite_formulations(self) -> tuple[Formulation, ...]:
        value = self._units.value
        psd = frozenset({Feature.CONE, Feature.QUADRATIC, Feature.PSD})
        sdp_dual = Formulation(
            "SDP dual",
            psd,
            self._sdp_dual,
            self._recover_split,
            self._lift_sdp,
            SCHUR,
            dual=True,
            scale=-value,
        )
        sdp_primal = Formulation(
            "SDP primal",
            psd,
            self._sdp_primal,
            self._recover_multipliers,
            None,
            CONJUGATE,
            scale=value,
            # The form has tr Z = tr F - n.
            shift=self.dual.tau * self.dual.eta * self.dual.y.size,
        )
        saddle = Formulation(
            "saddle",
            frozenset({Feature.SADDLE, Feature.BOX, Feature.SPECTRAL}),
            self._saddle,
            self._recover_multipliers,
            self._lift_saddle,
            MINIMAX,
            scale=value,
        )
        return sdp_dual, sdp_primal, saddle

    # The data in the form's units

    @cached_property
    def _units(self) -> Units:
        gradient = 1.0
        if self.dual.epsilon is not None:
            gradient = max(float(np.abs(self.dual.targets).max()), self.dual.epsilon)
        return Units.of(self.dual.C, mean_diagonal(self.K), gradient)

    @property
    def _are_units_one(self) -> bool:
        """Whether the problem's own g serves: then a proof finds what a method has computed."""
        return self._units.length == self._units.gradient == 1.0

    @cached_property
    def _function(self) -> AdaptiveFunction:
        assert isinstance(self.K, Gram)
        if self._are_units_one and isinstance(self.function, AdaptiveFunction):
            return self.function
        K = self._units.curvature(self.K.matrix)
        return AdaptiveFunction(K, self.dual.eta / self._units.value, self.dual.tau)

    @cached_property
    def _feature_function(self) -> AdaptiveFeatureFunction:
        assert isinstance(self.K, LowRank)
        if self._are_units_one and isinstance(self.function, AdaptiveFeatureFunction):
            return self.function
        scale = self._units.length / self._units.gradient
        eta = self.dual.eta / self._units.value
        return AdaptiveFeatureFunction(self.K.Phi, scale, eta, self.dual.tau)

    @property
    def _is_classification(self) -> bool:
        return self.dual.epsilon is None

    @property
    def _box(self) -> float:
        """C in the form's units."""
        return self.dual.C / self._units.length

    @cached_property
    def _sign(self) -> FloatArray:
        if self._is_classification:
            return self.dual.y
        return np.repeat([1.0, -1.0], self.dual.y.size)

    @cached_property
    def _gain(self) -> FloatArray:
        """What each x >= 0 gains."""
        targets = self.dual.targets
        epsilon = self.dual.epsilon
        if epsilon is None:
            return np.ones(targets.size)
        return np.concatenate([targets - epsilon, -targets - epsilon]) / self._units.gradient

    @cached_property
    def _split_domain(self) -> BoxPlane:
        """The set of x >= 0."""
        upper = np.full(self._sign.size, self._box)
        normal = self._sign if self.dual.bias else None
        return BoxPlane(np.zeros(upper.size), upper, normal)

    def _signed(self, x: FloatArray) -> FloatArray:
        """The a = Sx of an x >= 0."""
        n = self.dual.y.size
        signed = self._sign * x
        return signed if signed.size == n else signed[:n] + signed[n:]

    def _split(self, a: FloatArray) -> FloatArray:
        """The x >= 0 of an a."""
        if self._is_classification:
            return self.dual.y * a
        return np.concatenate([np.maximum(a, 0), np.maximum(-a, 0)])

    # g over a simple set, by its Hessian or by products with it

    def _smooth(self) -> SimplexForm:
        size = self._sign.size
        if self._is_classification:
            f = SmoothFunction(size, self._near_signed, self._start_signed, self._lipschitz)
            return SimplexForm(f, self.dual.domain(self._units.length))
        f = SmoothFunction(size, self._near_split, self._start_split, self._lipschitz)
        return SimplexForm(f, self._split_domain)

    def _matrix_free(self) -> SimplexForm:
        """The form of a kernel given by features."""
        if self._is_classification:
            domain = self.dual.domain(self._units.length)
            return SimplexForm(MatrixFreeFunction(domain.size, self._operator_signed), domain)
        domain = self._split_domain
        return SimplexForm(MatrixFreeFunction(domain.size, self._operator_split), domain)

    def _operator_signed(self, a: FloatArray) -> HessianOperator:
        return LinearlyShifted(self._feature_function.near(a), self.dual.y, a)

    def _operator_split(self, x: FloatArray) -> HessianOperator:
        return SplitVariables(self._feature_function.near(self._signed(x)), self._gain, x)

    def _near_signed(self, a: FloatArray) -> LocalModel:
        here = self._function.near(a)
        y = self.dual.y
        value = here.value - float(y @ a)
        return LocalModel(value, here.gradient - y, here.curvature, below=here.below)

    def _near_split(self, x: FloatArray) -> LocalModel:
        here = self._function.near(self._signed(x))
        value = here.value - float(self._gain @ x)
        gradient = np.concatenate([here.gradient, -here.gradient]) - self._gain
        below = here.below
        doubled = None if below is None else cache(lambda: _doubled(below()))
        return LocalModel(value, gradient, lambda: _doubled(here.curvature()), below=doubled)

    def _start_signed(self) -> StartModel:
        return StartModel(self._start_curvature, -self.dual.y)

    def _start_split(self) -> StartModel:
        return StartModel(_doubled(self._start_curvature), -self._gain)

    @property
    def _start_curvature(self) -> FloatArray:
        gradient = float(np.abs(self.dual.targets).mean()) / self._units.gradient
        return self._function.start_curvature(gradient, self._box)

    def _lipschitz(self) -> float:
        """A bound of how fast the gradient changes, twice as fast in (u, v).

        lambda_max(K) + C^2 / (4 eta) lambda_max(K o K) + C^2 / (2 eta) max_i sum_j K_ij^2
        """
        f = self._function
        squares = f.K * f.K
        weight = self._box * self._box / (4 * f.eta)
        of_kernel = float(np.linalg.eigvalsh(f.K)[-1])
        of_squares = float(np.linalg.eigvalsh(squares)[-1])
        L = of_kernel + weight * of_squares + 2 * weight * float(squares.sum(axis=1).max())
        return L if self._is_classification else 2 * L

    # Cone programs

    @cached_property
    def _cone(self) -> AdaptiveCone:
        assert isinstance(self.K, Gram)
        f = self._function
        factor = self._units.factor(self.K)
        return AdaptiveCone(f.K, factor, f.eta, f.tau, self._gain, self._sign, self._split_domain)

    def _socp(self) -> ConeForm:
        return self._cone.quartic()

    def _sdp_dual(self) -> ConeForm:
        return self._cone.dual()

    def _sdp_primal(self) -> ConeForm:
        return self._cone.primal()

    # The saddle point in (F, x): F with one diagonal entry more, so that its trace is constant

    @property
    def _largest_trace(self) -> float:
        """A bound of tr F: that of 11' + Gamma."""
        f = self._function
        return len(f.K) + self._box * self._box * float(f.K.trace()) / (4 * f.eta)

    def _saddle(self) -> SaddleForm:
        coupling = SaddleOracle(self._game, self._gradient_weights, self._gradient_split)
        weights = Spectrahedron(self.dual.y.size + 1, self._largest_trace)
        return SaddleForm(coupling, weights, self._split_domain)

    def _game(self, x: FloatArray, y: FloatArray) -> float:
        F = smat(x)[:-1, :-1]
        f = self._function
        a = self._signed(y)
        off = F - 1.0
        penalty = f.eta * (float(np.vdot(off, off)) + f.tau * float(F.trace()))
        return float(self._gain @ y) - float(a @ ((F * f.K) @ a)) / 2 + penalty

    def _gradient_weights(self, x: FloatArray, y: FloatArray) -> FloatArray:
        M = smat(x)
        f = self._function
        a = self._signed(y)
        gradient = np.zeros_like(M)
        gradient[:-1, :-1] = 2 * f.eta * (M[:-1, :-1] - 1.0) - np.multiply.outer(a, a) * f.K / 2
        gradient[:-1, :-1].flat[:: len(M)] += f.tau * f.eta
        return svec(gradient)

    def _gradient_split(self, x: FloatArray, y: FloatArray) -> FloatArray:
        product = (smat(x)[:-1, :-1] * self._function.K) @ self._signed(y)
        if product.size != y.size:
            product = np.tile(product, 2)
        return self._gain - self._sign * product

    # The way back

    def _point(self, a: FloatArray, svm: FloatArray | None = None) -> Point:
        """The point of coefficients a, and of those that prove its upper bound."""
        a = self._units.length * a
        primal = {"alpha": self.dual.y * a} if self._is_classification else {"beta": a}
        if svm is None:
            return Point(primal)
        return Point(primal, {"machine": self._units.length * svm})

    def _recover(self, x: FloatArray, y: FloatArray | None) -> Point:
        """y is where the quadratic below g is smallest: it solves the SVM with the kernel F o K."""
        if self._is_classification:
            return self._point(x, y)
        return self._point(self._signed(x), None if y is None else self._signed(y))

    def _recover_split(self, x: FloatArray, y: FloatArray | None) -> Point:
        return self._point(self._signed(x[: self._sign.size]))

    def _recover_multipliers(self, x: FloatArray, y: FloatArray | None) -> Point:
        """The coefficients are the first multipliers of the primal, and y of the saddle point."""
        m = self._sign.size
        return self._point(self._signed(np.zeros(m) if y is None else y[:m]))

    # Points lifted to the forms

    def _coefficients(self, point: Point) -> FloatArray:
        return self.dual.coefficients(point) / self._units.length

    def _lift(self, point: Point) -> Start:
        a = self._coefficients(point)
        return Start(a if self._is_classification else self._split(a))

    def _lift_socp(self, point: Point) -> Start:
        return Start(self._cone.lift_quartic(self._split(self._coefficients(point))))

    def _lift_sdp(self, point: Point) -> Start:
        a = self._coefficients(point)
        return Start(self._cone.lift_dual(self._split(a), self._function.weights(a)))

    def _lift_saddle(self, point: Point) -> Start:
        a = self._coefficients(point)
        F = np.zeros((a.size + 1, a.size + 1))
        F[:-1, :-1] = self._function.weights(a)
        F[-1, -1] = max(self._largest_trace - float(F.trace()), 0.0)
        return Start(svec(F), self._split(a))


def _doubled(H: FloatArray) -> FloatArray:
    """The curvature of u - v in (u, v)."""
    return np.block([[H, -H], [-H, H]])
