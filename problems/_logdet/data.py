"""Pairs of points whose distances are bounded, and the kernel that multipliers of these bounds make of a given one.

R'R is the given kernel on m points and z_c = e_i - e_j the c-th pair: s_c = +1 asks for a squared
distance of at most t_c, s_c = -1 for at least t_c. Multipliers x_c / t_c make of it

    K = R'M^-1 R,     M = I + R A R',   A = sum_c s_c x_c z_c z_c' / t_c,     q_c = z_c'K z_c / t_c

(K^-1 is the given inverse plus A, which is said here without inverses). All of it needs A and m x m
matrices only, however many pairs there are. Only differences of points count, so the columns of R
are centred: distances are then no small differences of large numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from klopt.arrays import EPS, FloatArray, freeze, matrix, positive, vector
from klopt.errors import InvalidProblem
from klopt.model.cones import svec_entries, svec_weights
from klopt.model.functions import IntArray

__all__ = ["PairEvaluation", "Pairs", "distances", "equal_points"]

CLOSE = 1e-4
"""Squared distances below this share of the points' size are computed from differences, which lose no digits."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs (first[c], second[c]) of the columns of R; an infinite weight makes their bounds hard.

    >>> pairs = Pairs(np.eye(2), [0], [1], [1.0], [1.0])
    >>> PairEvaluation.at(pairs, np.array([0.5])).ratios
    array([1.])
    """

    R: FloatArray
    first: IntArray
    second: IntArray
    sign: FloatArray
    target: FloatArray
    weight: float = np.inf
    names: IntArray = None  # type: ignore[assignment]
    """What the points are called in words, their own numbers if nothing else."""
    rounding: float = 0.0
    """Points of this squared distance or less are equal: R is known no better."""

    if TYPE_CHECKING:

        def __init__(
            self,
            R: npt.ArrayLike,
            first: npt.ArrayLike,
            second: npt.ArrayLike,
            sign: npt.ArrayLike,
            target: npt.ArrayLike,
            weight: float = np.inf,
            names: npt.ArrayLike | None = None,
            rounding: float = 0.0,
        ) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "R", matrix("R", self.R))
        object.__setattr__(self, "target", vector("target", self.target))
        object.__setattr__(
            self, "names", np.arange(self.R.shape[1]) if self.names is None else self.names
        )
        for name in ("first", "second", "names"):
            object.__setattr__(self, name, freeze(np.array(getattr(self, name), dtype=np.intp)))
        object.__setattr__(self, "sign", vector("sign", self.sign, self.size))
        if not self.first.shape == self.second.shape == (self.size,):
            raise InvalidProblem(
                f"first and second must name the {self.size} pairs that target has"
            )
        if not ((np.abs(self.sign) == 1).all() and (self.target > 0).all()):
            raise InvalidProblem("sign must hold +1 and -1, target positive numbers")
        object.__setattr__(self, "weight", positive("weight", self.weight, infinite=True))

    @property
    def size(self) -> int:
        """The number of pairs."""
        return int(self.target.size)

    @cached_property
    def centred(self) -> FloatArray:
        """R with columns of mean zero."""
        centred: FloatArray = self.R - self.R.mean(axis=1, keepdims=True)
        return centred

    @cached_property
    def inseparable(self) -> IntArray:
        """The dissimilar pairs of equal points: no W parts them, and with slack the price of that is infinite."""
        apart = np.flatnonzero(self.sign < 0)
        return apart[equal_points(self.R, self.first[apart], self.second[apart], self.rounding)]

    @cached_property
    def close(self) -> tuple[IntArray, FloatArray]:
        """The dissimilar pairs that are hardly apart, and their R z: huge multipliers meet tiny distances there."""
        R, apart = self.centred, np.flatnonzero(self.sign < 0)
        i, j, size = self.first[apart], self.second[apart], np.einsum("ij,ij->j", R, R)
        scale = size[i] + size[j]
        close = scale - 2 * (R.T @ R)[i, j] <= CLOSE * scale
        return apart[close], self.R[:, i[close]] - self.R[:, j[close]]

    @property
    def is_hard(self) -> bool:
        """Whether no constraint may be broken at a price."""
        return not np.isfinite(self.weight)

    def inner(self, x: FloatArray) -> FloatArray:
        """Return R A R'."""
        R, (close, Rz) = self.centred, self.close
        if not close.size:
            return np.asarray(R @ self.laplacian(x) @ R.T)
        far = x.copy()
        far[close] = 0.0
        weights = self.sign[close] * x[close] / self.target[close]
        return np.asarray(R @ self.laplacian(far) @ R.T + (Rz * weights) @ Rz.T)

    def laplacian(self, x: FloatArray) -> FloatArray:
        """Return sum_c s_c x_c z_c z_c' / t_c."""
        m, used = self.R.shape[1], np.flatnonzero(x)
        i, j, w = self.first[used], self.second[used], (self.sign * x / self.target)[used]
        flat = np.bincount(np.concatenate((i * m + j, j * m + i)), np.concatenate((w, w)), m * m)
        A = -flat.astype(float, copy=False).reshape(m, m)
        A.flat[:: m + 1] = -A.sum(axis=1)
        return A


@dataclass(frozen=True, eq=False)
class PairEvaluation:
    """The function f of `klopt.problems._logdet.function` near one x: M = LL', Y = L^-1 R; None, and f infinite, outside its domain."""

    pairs: Pairs
    x: FloatArray
    value: float
    L: FloatArray | None = None
    Y: FloatArray | None = None

    @classmethod
    def at(cls, pairs: Pairs, x: FloatArray) -> PairEvaluation:
        """Factor M at x."""
        from scipy.linalg import solve_triangular
        from scipy.linalg.lapack import dpotrf

        R = pairs.centred
        room = 1 - pairs.sign * x / pairs.weight
        if not (np.isfinite(x).all() and (room > 0).all()):
            return cls(pairs, x.copy(), np.inf)
        M = pairs.inner(x)
        M.flat[:: len(R) + 1] += 1.0
        L, failed = dpotrf(M.T, lower=1, clean=1)
        if failed:
            return cls(pairs, x.copy(), np.inf)
        linear = (
            float(pairs.sign @ x) if pairs.is_hard else -pairs.weight * float(np.log(room).sum())
        )
        value = linear - 2 * float(np.log(L.diagonal()).sum())
        return cls(pairs, x.copy(), value, L, solve_triangular(L, R, lower=True))

    @cached_property
    def kernel(self) -> FloatArray:
        """K = R'WR of the centred points."""
        if self.Y is None:
            return np.full((self.pairs.R.shape[1],) * 2, np.nan)
        K: FloatArray = self.Y.T @ self.Y
        return K

    @cached_property
    def ratios(self) -> FloatArray:
        """q, the squared distances over their targets."""
        pairs, (close, _) = self.pairs, self.pairs.close
        ratios = distances(self.kernel, pairs.first, pairs.second) / pairs.target
        if close.size and self._close is not None:
            ratios[close] = np.einsum("ij,ij->j", self._close, self._close) / pairs.target[close]
        return ratios

    @cached_property
    def _close(self) -> FloatArray | None:
        """L^-1 R z of the close pairs."""
        from scipy.linalg import solve_triangular

        return (
            None
            if self.L is None
            else np.asarray(solve_triangular(self.L, self.pairs.close[1], lower=True))
        )

    def _differences(self, chosen: IntArray) -> FloatArray:
        """L^-1 R z of some pairs."""
        assert self.Y is not None
        y: FloatArray = self.Y[:, self.pairs.first[chosen]] - self.Y[:, self.pairs.second[chosen]]
        _, here, there = np.intersect1d(chosen, self.pairs.close[0], return_indices=True)
        if here.size:
            assert self._close is not None
            y[:, here] = self._close[:, there]
        return y

    @cached_property
    def gradient(self) -> FloatArray:
        """The gradient of f, s (u - q) with u = 1, or what slack has made of it."""
        sign = self.pairs.sign
        return sign * (1 / (1 - sign * self.x / self.pairs.weight) - self.ratios)

    @property
    def rounding(self) -> float:
        """What rounding may do to the value: terms of the linear part, and of M by their share of log det M."""
        pairs, diagonal = self.pairs, self.kernel.diagonal()
        size = (diagonal[pairs.first] + diagonal[pairs.second]) / pairs.target
        size[pairs.close[0]] = self.ratios[pairs.close[0]]
        linear = (
            self.x
            if pairs.is_hard
            else pairs.weight * np.log(1 - pairs.sign * self.x / pairs.weight)
        )
        return 16 * EPS * float(1 + len(pairs.R) + np.abs(linear).sum() + self.x @ size)

    def block(self, chosen: IntArray) -> FloatArray:
        """Return the second derivatives among some of the pairs."""
        return self._curvature(chosen, np.ones(chosen.size))

    def model(self, chosen: IntArray) -> FloatArray:
        """Return the curvature after which Newton's step of each pair alone is its best one.

        Far from its bound a logarithm bends as q^2 but asks for steps as if it bent as q: rows and
        columns are scaled by (u / q)^1/2, u = 1 or what slack has made of it, which at the bound is
        1.
        """
        return self._curvature(chosen, self._share(chosen))

    def thin_model(self, chosen: IntArray) -> tuple[FloatArray, FloatArray] | None:
        """Return (a, V) with diag(a) + VV' the model where slack makes a positive and V has fewer columns than rows."""
        pairs, r = self.pairs, len(self.pairs.R)
        if pairs.is_hard or self.Y is None or r * (r + 1) > chosen.size:
            return None
        s, share = pairs.sign[chosen], self._share(chosen)
        y = self._differences(chosen)
        rows, columns = svec_entries(r)
        V = (y[rows] * y[columns] * svec_weights(r)[:, None]).T
        V *= (s * np.sqrt(share) / pairs.target[chosen])[:, None]
        room = 1 - s * self.x[chosen] / pairs.weight
        return 1 / (share * pairs.weight * room**2), V

    def _share(self, chosen: IntArray) -> FloatArray:
        """Return u / q."""
        share: FloatArray = (
            self.gradient[chosen] * self.pairs.sign[chosen] / self.ratios[chosen] + 1
        )
        return share

    def _curvature(self, chosen: IntArray, share: FloatArray) -> FloatArray:
        pairs = self.pairs
        i, j, s = pairs.first[chosen], pairs.second[chosen], pairs.sign[chosen]
        scale = s * np.sqrt(share) / pairs.target[chosen]
        B = self.kernel[i] - self.kernel[j]
        H = np.take(B, i, axis=1)
        H -= np.take(B, j, axis=1)
        if (close := np.flatnonzero(np.isin(chosen, pairs.close[0]))).size:
            y = self._differences(chosen)
            H[close] = y[:, close].T @ y
            H[:, close] = H[close].T
        H *= H
        H *= scale[:, None]
        H *= scale
        if not pairs.is_hard:
            room = 1 - s * self.x[chosen] / pairs.weight
            H.flat[:: chosen.size + 1] += 1 / (share * pairs.weight * room**2)
        return H


def distances(K: FloatArray, first: IntArray, second: IntArray) -> FloatArray:
    """Return K_ii + K_jj - 2 K_ij of each pair."""
    diagonal = K.diagonal()
    found: FloatArray = diagonal[first] + diagonal[second] - 2 * K[first, second]
    return found


def equal_points(
    R: FloatArray, first: IntArray, second: IntArray, rounding: float = 0.0
) -> npt.NDArray[np.bool_]:
    """Return which pairs are of columns that are equal up to rounding, their own or a given one of squared distances.

    >>> equal_points(np.array([[1.0, 1.0, 2.0]]), np.array([0, 0]), np.array([1, 2]))
    array([ True, False])
    """
    size = np.einsum("ij,ij->j", R, R)
    scale = size[first] + size[second]
    found: npt.NDArray[np.bool_] = (
        np.abs(scale - 2 * (R.T @ R)[first, second]) <= 1e-10 * scale + rounding
    )
    near = np.flatnonzero(found)  # few: their differences lose no digits
    z = R[:, first[near]] - R[:, second[near]]
    found[near] = np.einsum("ij,ij->j", z, z) <= np.maximum(rounding, (32 * EPS) ** 2 * scale[near])
    return found
