"""What a proof about kernels learned from similarities is given: kernels, classifier, multipliers.

From the multipliers of a point come the kernels that are best for them (squared loss), or its own
kernels are made feasible; the classifier f = sum_i K_i a / g_i at its best bias and multiple;
shares g_i = r_i / sum r, r_i = (a'K_i a)^1/2, the best ones for given kernels; and gradients Z_i of
the losses. Nothing here is trusted: `klopt.problems._similarity.proof` decides what it proves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from klopt.arrays import EPS, FloatArray
from klopt.model.problem import Bracket, Point
from klopt.problems._margin.proof import largest
from klopt.problems._similarity.classifier import ScaledClassifier, scaled_classifier
from klopt.problems._similarity.inner_svm import InnerSvm
from klopt.problems._similarity.instance import SimilarityData
from klopt.problems._similarity.nearest import (
    KernelProjection,
    KernelSpectra,
    NearestKernel,
    symmetric_part,
)
from klopt.problems._similarity.proof import (
    GivenSpectra,
    SimilarityProgram,
    prove_kernels,
    prove_spectra,
)

__all__ = ["SeveralKernels", "SingleKernel"]

TRACE_SEARCH_FACTOR = 1e3
"""Multiple of the usual trace up to which kernels are looked for where the loss bounds no trace."""
MIN_SHARE = 1e-8
"""Smallest share g_i of a kernel that a bound uses."""
MIN_RELATIVE_EIGENVALUE = 1e-40
"""Smallest positive eigenvalue of a kernel, relative to its trace."""
POLISHED_GAP = 1e-6
"""Relative gap above which given spectra are tried with multipliers of their own."""
INSIDE = 1 - 2.0**-38
"""Gradients of a norm are shortened by this: a proof takes none that may be longer than 1."""
POLISHED_TOLERANCE = 1e-10
"""Relative gap of these multipliers."""
CHARGED_OPERATIONS = 10
"""Roundings of a margin that a proof charges beyond those of its sums."""
NO_CONJUGATE = "the loss has no conjugate(Z): nothing bounds the optimum from below"
NO_TRACE_BOUND = "the loss does not bound the trace of the best kernel"
OUTSIDE = "the gradients lie outside the domain of conjugate(Z)"


# --- one kernel


@dataclass(frozen=True, eq=False)
class SingleKernel:
    """The best kernel for given multipliers, learned from one or several similarities."""

    data: SimilarityData

    @cached_property
    def program(self) -> SimilarityProgram:
        """The data as the proof reads them."""
        data = self.data
        return SimilarityProgram((data.S,), data.y, data.C, data.rho, data.trace, data.loss.name)

    @cached_property
    def projection(self) -> KernelProjection:
        return KernelProjection(self.data.mean, self.data.trace)

    @cached_property
    def spread(self) -> float:
        """sum ||S_i - mean||^2: what the squared loss has beyond m ||K - mean||^2."""
        mean = self.data.mean
        return sum(float(np.vdot(S - mean, S - mean)) for S in self.data.S)

    @property
    def squared(self) -> bool:
        return self.data.loss.name == "squared"

    @cached_property
    def max_trace(self) -> float:
        """A bound of the trace of the best kernel, up to rounding."""
        data = self.data
        if data.trace is not None:
            return data.trace
        # The value of any support vector machine is at most that of the classifier f = b.
        penalties = np.full(data.n, data.C)
        svm_value = 2 * min(float(penalties[data.y > 0].sum()), float(penalties[data.y < 0].sum()))
        lam, V = np.linalg.eigh(data.mean)
        upper = svm_value + data.losses(V * np.maximum(lam, 0.0) @ V.T, data.S)
        bound = self.trace_bound(upper)
        return bound if np.isfinite(bound) else TRACE_SEARCH_FACTOR * data.n * data.scale

    @cached_property
    def _supports(self) -> list[tuple[float, float]]:
        return self.data.loss.supports(self.data.n, self.data.scale)

    def trace_bound(self, upper: float) -> float:
        """Return a bound of the trace of kernels whose losses are at most `upper`.

        z tr X <= L(X) + L*(zI) for every z > 0. It is inf where no such z is known.
        """
        per_loss = upper / (self.data.rho * len(self.data.S))
        excess = min(((per_loss + price) / z for z, price in self._supports), default=np.inf)
        return max(float(np.trace(self.data.mean)) + excess, 0.0)

    def nearest(self, a: FloatArray) -> NearestKernel:
        """Return the best kernel for a under the squared loss."""
        return self.projection.nearest(a, 1.0, self.data.weight * len(self.data.S))

    def proof(self, witness: Point) -> Bracket:
        """Return what a witness proves."""
        found = prove_kernels(self.program, witness)
        if self.data.provable or found.estimate is None or found.estimate[0] > -np.inf:
            return found
        return replace(found, note=f"{self._missing()}; {found.note}")

    def _missing(self) -> str:
        """Why a loss of one's own gives no estimate from below."""
        reason = OUTSIDE
        if self.data.loss.conjugate is None:
            reason = NO_CONJUGATE
        elif self.data.trace is None and not self._supports:
            reason = NO_TRACE_BOUND
        if self.data.trace is not None:
            return reason
        return f"{reason}; kernels were looked for up to trace {self.max_trace:.3g}"

    def witness(self, point: Point) -> Point:
        """Return a kernel, a classifier, multipliers and gradients, as `prove_kernels` takes them."""
        data = self.data
        a = data.multipliers(point.alpha)
        given = _usable(point.primal.get("kernel"), data.mean.shape)
        near = None
        # Under the squared loss no given kernel is better for a than the nearest one.
        if self.squared or given is None:
            near = self.nearest(a)
            H = near.factor
        else:
            H = self.projection.factor_of(given)
        inner = H.T @ a
        image = H @ inner
        squared_norm = float(inner @ inner)
        sizes = _sizes([H], [inner])
        classifier = scaled_classifier(
            image, squared_norm, data.y, data.C, sizes, H.shape[1] + CHARGED_OPERATIONS
        )

        primal: dict[str, object] = {
            "alpha": data.y * a,
            "bias": classifier.bias,
            "factors": H,
            "ranks": [H.shape[1]],
            "classifier": classifier.multiple * inner,
            "offset": classifier.multiple * classifier.bias,
        }
        dual = {"multipliers": data.exact_multipliers(a), "shares": np.ones((1, 1))}
        if self.squared:
            # The eigenvalues of the matrix of the lower bound are 2 w (mu - lam).
            if near is not None:
                dual["levels"] = np.array([2 * near.w * float((near.mu - near.lam).min())])
            return Point(primal, dual)

        Z = self._given_gradients(point)
        if Z is not None:
            dual["gradients"] = Z
        if data.rho:
            dual["kink_gradient"] = self._gradient_at_kinks(a)
        if not data.provable:
            K = H @ H.T
            if Z is None:
                Z = np.array([data.loss.gradient(K - S) for S in data.S])
                dual["gradients"] = Z
            choices = [Z, np.array([dual["kink_gradient"]] * len(data.S))]
            estimated = Estimate(data, (data.S,), a, [K], classifier, self.trace_bound)
            primal["estimate"] = estimated.interval(choices, [np.ones(1)])
        return Point(primal, dual)

    def _given_gradients(self, point: Point) -> FloatArray | None:
        """The Z_i that the point holds, in the domain of the conjugate."""
        data = self.data
        given = _usable(point.dual.get("gradients"), (len(data.S), data.n, data.n))
        if given is None:
            return None
        return np.array([data.loss.inside(symmetric_part(Z)) for Z in given])

    def _gradient_at_kinks(self, a: FloatArray) -> FloatArray:
        """The Z with rho m Z = aa'/2 - c I, as far as the domain of L* allows.

        It balances the gradient of the support vector machine; at a kink, K = S_i, the loss has
        many gradients, and this is the one that closes the gap.
        """
        data = self.data
        pull = np.outer(a / 2, a)
        if data.trace is not None:
            pull.flat[:: data.n + 1] -= float(a @ a) / (2 * data.n)
        return data.loss.inside(pull / (data.rho * len(data.S)))


# --- several kernels


@dataclass(frozen=True, eq=False)
class SeveralKernels:
    """The best kernels for given multipliers and shares, one for each similarity.

    `keeps_eigenvectors` says that kernels have the eigenvectors of their similarities.
    """

    data: SimilarityData
    keeps_eigenvectors: bool = False

    @cached_property
    def program(self) -> SimilarityProgram:
        """The data as the proof reads them."""
        data = self.data
        groups = tuple((S,) for S in data.S)
        return SimilarityProgram(groups, data.y, data.C, data.rho, data.trace, data.loss.name)

    @cached_property
    def projections(self) -> tuple[KernelProjection, ...]:
        return tuple(KernelProjection(S, self.data.trace) for S in self.data.S)

    @cached_property
    def spectra(self) -> KernelSpectra:
        """The similarities by their eigenvectors, which kernels keep."""
        assert self.data.trace is not None
        return KernelSpectra.of(self.data.S, self.data.trace)

    @property
    def squared(self) -> bool:
        return self.data.loss.name == "squared"

    @cached_property
    def _given_spectra(self) -> GivenSpectra:
        """The eigenpairs as the proof reads them."""
        return GivenSpectra(self.spectra.values, self.spectra.vectors)

    @property
    def _has_best_kernels(self) -> bool:
        """Whether the best kernels for (a, g) are known."""
        return self.squared and self.data.rho > 0

    def shares(self, given: FloatArray | None) -> FloatArray:
        """Return shares g >= MIN_SHARE of sum 1 near the given ones."""
        m = len(self.data.S)
        given = _usable(given, (m,))
        if given is None or not (given > 0).any():
            return np.full(m, 1 / m)
        # Shares that are right already stay as they are: the kernels found for them are kept.
        if given.min() >= MIN_SHARE and abs(float(given.sum()) - 1) <= 4 * EPS:
            return given
        g = np.maximum(given / given.max(), MIN_SHARE)
        return np.asarray(g / g.sum())

    def proof(self, witness: Point) -> Bracket:
        """Return what a witness proves."""
        if self.keeps_eigenvectors:
            return prove_spectra(self.program, self._given_spectra, witness)
        found = prove_kernels(self.program, witness)
        if self.data.provable or found.estimate is None or found.estimate[0] > -np.inf:
            return found
        reason = OUTSIDE if self.data.loss.conjugate is not None else NO_CONJUGATE
        return replace(found, note=f"{reason}; {found.note}")

    def witness(self, point: Point) -> Point:
        """Return kernels, a classifier, multipliers, shares and gradients, as the proofs take them."""
        a = self.data.multipliers(point.alpha)
        g = self.shares(point.primal.get("gamma"))
        if self.keeps_eigenvectors:
            return self._spectra_witness(point, a, g)
        return self._kernels_witness(point, a, g)

    def _kernels_witness(self, point: Point, a: FloatArray, g: FloatArray) -> Point:
        data = self.data
        shape = (len(data.S), data.n, data.n)
        given = _usable(point.primal.get("kernels"), shape)
        near: list[NearestKernel] = []
        # Under the squared loss no given kernels are better for (a, g) than the nearest ones.
        if self._has_best_kernels or given is None:
            near = [
                projection.nearest(a, float(gi), data.weight)
                for projection, gi in zip(self.projections, g, strict=True)
            ]
            factors = [kernel.factor for kernel in near]
        else:
            pairs = zip(self.projections, given, strict=True)
            factors = [projection.factor_of(K) for projection, K in pairs]

        inner = [H.T @ a for H in factors]
        radii = np.sqrt([float(v @ v) for v in inner])
        share = self.shares(radii)
        weights = [v / s for v, s in zip(inner, share, strict=True)]
        parts = zip(factors, weights, strict=True)
        image = np.asarray(sum((H @ w for H, w in parts), np.zeros(data.n)))
        squared_norm = float((radii / share).max()) ** 2
        sizes = _sizes(factors, weights)
        operations = max(w.size for w in weights) + len(weights) + CHARGED_OPERATIONS
        classifier = scaled_classifier(image, squared_norm, data.y, data.C, sizes, operations)
        # Kernels that are best for (a, g) leave g no freedom to be changed.
        if not self._has_best_kernels:
            g = share

        primal: dict[str, object] = {
            "alpha": data.y * a,
            "gamma": g,
            "bias": classifier.bias,
            "factors": np.hstack(factors),
            "ranks": [H.shape[1] for H in factors],
            "classifier": classifier.multiple * np.concatenate(weights),
            "offset": classifier.multiple * classifier.bias,
        }
        dual = {"multipliers": data.exact_multipliers(a), "shares": _sum_at_most_one(g)[None]}
        if self._has_best_kernels:
            dual["levels"] = np.array(
                [2 * kernel.w * float((kernel.mu - kernel.lam).min()) for kernel in near]
            )
            return Point(primal, dual)

        # Shares of a mean of cuts go with its gradients; the best of both bounds counts.
        choices = [g]
        if point.dual.get("shares") is not None:
            choices.append(self.shares(point.dual["shares"]))
            dual["shares"] = np.array([_sum_at_most_one(choice) for choice in choices])
        Z = self._given_gradients(point)
        if Z is not None:
            dual["gradients"] = Z
        if not data.provable:
            kernels = [H @ H.T for H in factors]
            if Z is None:
                differences = [K - S for K, S in zip(kernels, data.S, strict=True)]
                Z = np.array([data.loss.gradient(X) for X in differences])
                dual["gradients"] = Z
            groups = tuple((S,) for S in data.S)
            estimated = Estimate(data, groups, a, kernels, classifier)
            primal["estimate"] = estimated.interval([Z], choices)
        return Point(primal, dual)

    def _given_gradients(self, point: Point) -> FloatArray | None:
        """The Z_i that the point holds, in the domain of the conjugate."""
        data = self.data
        given = _usable(point.dual.get("gradients"), (len(data.S), data.n, data.n))
        if given is None:
            return None
        return np.array([data.loss.inside(symmetric_part(Z)) for Z in given])

    def _spectra_witness(self, point: Point, a: FloatArray, g: FloatArray) -> Point:
        data = self.data
        spectra = self.spectra
        rows = [g]
        dual = {"multipliers": data.exact_multipliers(a)}
        if self._has_best_kernels:
            near = spectra.nearest(a, g, data.weight)
            proposal = self._spectra_proposal(near.mu, a)
            dual["differences"] = near.mu - spectra.values
            lower = float(data.y @ a) + near.value
            # Where C is large and the trace is small the nearest kernels jump with a: those of the
            # point, with multipliers of their own, are better.
            if proposal.value - lower > POLISHED_GAP * (1 + abs(lower)):
                proposal = self._polished(proposal, self._given_spectrum(point), a)
        else:
            given = self._given_spectrum(point)
            if given is None:
                given = spectra.nearest(a, g, data.weight).mu
            proposal = self._spectra_proposal(given, a)
            dual["differences"] = self._spectral_gradients(point, proposal.mu)
            rows.append(proposal.shares)
            # Absolute values have the best z for (a, g) in closed form.
            if data.loss.name == "l1" and data.rho:
                g, dual["differences"] = self.best_signs(a, (g, proposal.shares))
                rows = [g]
        # Without a loss the best kernels for a have one eigenvector each: max_j |V_i'a|_j decides.
        if not data.rho:
            g = proposal.shares
            rows = [self.shares(np.abs(spectra.along(a)).max(axis=1))]
        dual["shares"] = np.array([_sum_at_most_one(row) for row in rows])

        classifier = proposal.classifier
        primal: dict[str, object] = {
            "alpha": data.y * a,
            "gamma": g,
            "bias": classifier.bias,
            "spectra": proposal.mu,
            "classifier": classifier.multiple * proposal.weights,
            "offset": classifier.multiple * classifier.bias,
        }
        return Point(primal, dual)

    def _spectral_gradients(self, point: Point, mu: FloatArray) -> FloatArray:
        """The z of a loss: mu - lambda of the squared one, of norms a gradient there."""
        change = mu - self.spectra.values
        if self.squared:
            return change
        if self.data.loss.name == "l1":
            return np.sign(change)
        given = _usable(point.dual.get("differences"), change.shape)
        z = change if given is None else given
        lengths = np.linalg.norm(z, axis=1, keepdims=True)
        # At mu = lambda every z up to the length 1 is a gradient; those of a point are no longer.
        longest = np.maximum(lengths, 1.0) if given is not None else np.where(lengths, lengths, 1.0)
        return np.asarray(z / longest * INSIDE)

    def best_signs(
        self, a: FloatArray, choices: Sequence[FloatArray]
    ) -> tuple[FloatArray, FloatArray]:
        """Return the shares and z of the largest bound of Lemma S5 for the sum of |mu - lambda|.

        With p_j = (V_i'a)_j^2 / (2 g_i) and a level v = min_j (rho z_j - p_j), which is at most rho
        - max p, it is tau v - rho z'lambda: z_j is as small as the level allows, max(-1, (v + p_j)
        / rho), where lambda_j > 0, else 1. The bound is concave in v and has a kink where z_j leaves
        -1, at v = -rho - p_j; there its slope, at first tau, falls by lambda_j.
        """
        data = self.data
        rho = data.rho
        squares = np.square(self.spectra.along(a))
        best = (-math.inf, choices[0], np.zeros_like(squares))
        for g in choices:
            pulls = squares / (2 * g)[:, None]
            z = np.ones_like(pulls)
            value = 0.0
            for row, p, lam in zip(z, pulls, self.spectra.values, strict=True):
                level = rho - float(p.max())
                positive = np.flatnonzero(lam > 0)
                # Levels at which the slope falls, smallest first.
                order = positive[np.argsort(-p[positive])]
                enough = np.flatnonzero(np.cumsum(lam[order]) >= self.spectra.trace)
                if enough.size:
                    level = min(level, -rho - float(p[order[enough[0]]]))
                row[positive] = np.clip((level + p[positive]) / rho, -1.0, 1.0)
                value += self.spectra.trace * float((rho * row - p).min()) - rho * float(row @ lam)
            if value > best[0]:
                best = (value, g, z)
        return best[1:]

    def _given_spectrum(self, point: Point) -> FloatArray | None:
        """The eigenvalues of the point's kernels made feasible: the diagonals of the V_i'K_i V_i."""
        data = self.data
        given = _usable(point.primal.get("kernels"), (len(data.S), data.n, data.n))
        if given is None:
            return None
        rows = []
        for V, projection, K in zip(self.spectra.bases, self.projections, given, strict=True):
            diagonal = np.asarray(np.einsum("ij,ij->j", V, symmetric_part(K) @ V))
            rows.append(projection.eigenvalues(diagonal))
        return np.array(rows)

    def _spectra_proposal(self, spectrum: FloatArray, a: FloatArray) -> SpectraProposal:
        """The classifier of multipliers a, f = sum_i K_i a / g_i at the best shares."""
        data = self.data
        spectra = self.spectra
        # A proof takes no quotients of numbers that small.
        mu = np.where(spectrum > MIN_RELATIVE_EIGENVALUE * spectra.trace, spectrum, 0.0)
        u = spectra.along(a)
        radii = np.sqrt(np.vecdot(mu, u * u))
        share = self.shares(radii)
        weights = mu * u / share[:, None]
        image = weights.reshape(-1) @ spectra.vectors
        squared_norm = float((radii / share).max()) ** 2
        sizes = float(np.linalg.norm(weights)) * math.sqrt(len(mu))
        operations = mu.size + CHARGED_OPERATIONS
        classifier = scaled_classifier(image, squared_norm, data.y, data.C, sizes, operations)
        change = mu - spectra.values
        if data.loss.name == "l1":
            losses = np.abs(change).sum(axis=1)
        elif self.squared:
            losses = np.vecdot(change, change)
        else:
            losses = np.linalg.norm(change, axis=1)
        value = classifier.value + data.rho * float(losses.sum())
        return SpectraProposal(mu, weights, share, classifier, value)

    def _polished(
        self, proposal: SpectraProposal, given: FloatArray | None, a: FloatArray
    ) -> SpectraProposal:
        """The best of a proposal and of given eigenvalues with multipliers of their own."""
        if given is None:
            return proposal
        bases = self.spectra.bases
        kernels = np.array([V * mu @ V.T for V, mu in zip(bases, given, strict=True)])
        svm = InnerSvm(kernels, self.data, MIN_SHARE)
        own = svm.best(a, POLISHED_TOLERANCE).a
        choices = [proposal, self._spectra_proposal(given, a), self._spectra_proposal(given, own)]
        return min(choices, key=lambda choice: choice.value)


class SpectraProposal(NamedTuple):
    """Eigenvalues, the weights of a classifier's eigenvectors, shares, and the value of both."""

    mu: FloatArray
    weights: FloatArray
    shares: FloatArray
    classifier: ScaledClassifier
    value: float


# --- a loss of one's own


@dataclass(frozen=True, eq=False)
class Estimate:
    """The bounds of the optimum for a user's own loss, whose values have an unknown accuracy.

    Parameters
    ----------
    data : SimilarityData
        Labels, penalties and loss.
    groups : tuple of tuples of (n, n) arrays
        The similarities of each kernel.
    a : (n,) array
        Multipliers.
    kernels : list of (n, n) arrays
        Feasible kernels.
    classifier : ScaledClassifier
        Whose value bounds that of the support vector machine.
    trace_bound : callable or None
        The bound of the trace of kernels whose losses are at most a number.
    """

    data: SimilarityData
    groups: tuple[tuple[FloatArray, ...], ...]
    a: FloatArray
    kernels: list[FloatArray]
    classifier: ScaledClassifier
    trace_bound: Callable[[float], float] | None = None

    def interval(self, gradients: Sequence[FloatArray], shares: Sequence[FloatArray]) -> FloatArray:
        """Return the best lower bound of some gradients and shares, and the upper one."""
        data = self.data
        pairs = zip(self.kernels, self.groups, strict=True)
        upper = self.classifier.value + sum(data.losses(K, group) for K, group in pairs)
        # The sums are right up to n eps times their terms.
        entry = max(float(np.abs(K).max()) for K in self.kernels)
        sizes = abs(upper) + float(np.abs(self.a).sum()) * (1 + entry * largest(data.C))
        rounding = data.n * EPS * sizes
        lower = max(self._lower(Z, g, upper) for Z in gradients for g in shares)
        return np.array([lower - rounding, upper + rounding])

    def _lower(self, Z: FloatArray, g: FloatArray, upper: float) -> float:
        """The bound from below by gradients Z, -inf where they give none."""
        data = self.data
        if data.loss.conjugate is None:
            return -np.inf
        terms = [
            float(np.vdot(Zi, S)) + float(data.loss.conjugate(Zi))
            for Zi, S in zip(Z, data.S, strict=True)
        ]
        total = float(data.y @ self.a) - data.rho * sum(terms)
        first = 0
        for group, gi in zip(self.groups, g, strict=True):
            part = Z[first : first + len(group)].sum(axis=0)
            first += len(group)
            M = data.rho * part - np.outer(self.a / (2 * gi), self.a)
            smallest = float(np.linalg.eigvalsh(M)[0]) - data.n * EPS * float(np.linalg.norm(M))
            if data.trace is not None:
                total += data.trace * smallest
            elif smallest < 0 and self.trace_bound is not None:
                total += self.trace_bound(upper) * smallest
        return -np.inf if np.isnan(total) else total


# --- what both use


def _usable(given: FloatArray | None, shape: tuple[int, ...]) -> FloatArray | None:
    """The array if it is there, finite and of the right shape."""
    if given is None or given.shape != shape or not np.isfinite(given).all():
        return None
    return given


def _sum_at_most_one(g: FloatArray) -> FloatArray:
    """Shares of sum 1 up to rounding, made smaller until their exact sum is at most 1."""
    while math.fsum([*g, -1.0]) > 0:
        g = g * (1 - 2 * EPS)
    return g


def _sizes(factors: Sequence[FloatArray], weights: Sequence[FloatArray]) -> FloatArray:
    """About the sizes of the terms of sum_i H_i w_i that a proof charges for."""
    pairs = zip(factors, weights, strict=True)
    return np.asarray(sum(np.sqrt(np.vecdot(H, H)) * float(np.linalg.norm(w)) for H, w in pairs))
