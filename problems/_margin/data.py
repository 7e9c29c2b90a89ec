"""What the SVM and the SVR dual share: units, cone programs from a dense kernel, the best bias, proven bounds.

Both maximise over a bounded set a concave quadratic with a kernel matrix K of mean diagonal kappa,
box C and gradients of size lam. In the units

    x = length * v,    value = length * lam * (value of the form),    length = min(C, lam / kappa)

the form has the curvature (length / lam) K, of size at most 1, gradients of size 1 and the box C /
length >= 1, whatever the units of K and C are. Both factors are rounded to powers of two: no digit
changes on the way.

K is known to be positive semidefinite only up to its floor -phi. Let z be the coefficients of a
feasible point, z* the best ones, f = Kz. Weak duality uses (z* - z)'K(z* - z) >= 0, so its upper
bound errs by at most either of

    phi/2 ||z* - z||^2                                     small where C is
    phi/2 ||z||^2  and phi ||z|| in each entry of f        does not know C

An epigraph only ties z to the value, to the square of which f is right: a gap of 1e-10 leaves 1e-5
in f. Its multipliers hold the normal vector w = Rz itself (K = R'R + E), with f = R'w and ||w||^2
right to the first order. As an upper bound that is as good as any other f, up to ||E||/2 ||z*||^2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray, SparseMatrix
from klopt.errors import InvalidProblem
from klopt.kernels.gram import Gram
from klopt.model.cones import Cones
from klopt.model.forms import ConeForm
from klopt.model.problem import Point

__all__ = ["Polyhedron", "Units", "best_shift", "finite", "normal_of", "refuse_large", "tied"]


@dataclass(frozen=True)
class Units:
    """Powers of two between the problem's units and the form's."""

    length: float
    gradient: float

    @classmethod
    def of(cls, C: float, kappa: float, gradient: float = 1.0) -> Units:
        """Return the units of a box C, a kernel of mean diagonal kappa and gradients of the given size.

        >>> Units.of(C=10.0, kappa=1e10)
        Units(length=5.820766091346741e-11, gradient=1.0)
        """
        gradient = _power_of_two(gradient or 1.0)
        return cls(_power_of_two(min(C, gradient / kappa)), gradient)

    @property
    def value(self) -> float:
        """The problem's value of one unit of the form's."""
        return self.length * self.gradient

    def curvature(self, K: FloatArray) -> FloatArray:
        """Return K in the form's units: K itself where that changes nothing."""
        factor = self.length / self.gradient
        return K if factor == 1.0 else K * factor

    def factor(self, K: Gram) -> FloatArray:
        """Return R with R'R = K in the form's units."""
        return K.factor() * float(np.sqrt(self.length / self.gradient))

    def normal(self, y: FloatArray, K: Gram) -> FloatArray:
        """Return w = Rz from the multipliers of an epigraph, the last of which belong to its cone: (.., .., -Fx)."""
        return -float(np.sqrt(self.value)) * y[y.size - len(K.factor()) :]


@dataclass(frozen=True, eq=False)
class Polyhedron:
    """A linear objective c'x over rows b - Ax, equalities first: a cone program that only lacks its curvature."""

    c: FloatArray
    A: SparseMatrix
    b: FloatArray
    zero: int
    radius: float

    def with_kernel(self, K: Gram, units: Units, sign: FloatArray | float = 1.0) -> ConeForm:
        """Minimise x'Hx/2 + c'x with H = sign K sign in the form's units: through its factor where K is thin."""
        if K.thin:
            return self.with_factor(units.factor(K) * sign)
        H = units.curvature(K.matrix) * sign
        return self.with_quadratic((H.T * sign).T)

    def with_quadratic(self, H: FloatArray) -> ConeForm:
        """Minimise x'Hx/2 + c'x, where H belongs to the first variables."""
        m, n = len(H), self.c.size
        # A dense symmetric matrix already lies in memory as CSC wants it: nothing to search,
        # nothing to sort.
        pointers = np.minimum(np.arange(n + 1), m) * m
        P = sparse.csc_array((H.ravel(), np.tile(np.arange(m), m), pointers), shape=(n, n))
        return ConeForm(
            self.c, self.A, self.b, Cones(self.zero, self.b.size - self.zero), P, self.radius
        )

    def with_factor(self, F: FloatArray) -> ConeForm:
        """Minimise v'v/2 + c'x with v = Fx, where F has few rows: the same program without a dense matrix."""
        rank, n = len(F), self.c.size
        tie = sparse.hstack(
            [sparse.csc_array(F), sparse.csc_array((rank, n - F.shape[1])), -sparse.eye_array(rank)]
        )
        wide = sparse.hstack([self.A, sparse.csc_array((self.b.size, rank))], format="csr")
        A = sparse.vstack([wide[: self.zero], tie, wide[self.zero :]], format="csc")
        b = np.concatenate([self.b[: self.zero], np.zeros(rank), self.b[self.zero :]])
        P = sparse.diags_array(np.repeat([0.0, 1.0], [n, rank]), format="csc")
        cones = Cones(self.zero + rank, self.b.size - self.zero)
        radius = self.radius * (1 + float(np.abs(F).sum(axis=0).max(initial=0.0)))
        return ConeForm(np.concatenate([self.c, np.zeros(rank)]), A, b, cones, P, radius)

    def with_epigraph(self, F: FloatArray) -> ConeForm:
        """Minimise t + c'x subject to ||Fx||^2 <= 2t, as (t/rho + rho/2, t/rho - rho/2, Fx) in the second-order cone.

        rho would best be ||Fx||, which is unknown; the root of the number of variables is its size
        in the form's units.
        """
        rho = np.sqrt(F.shape[1])
        rank, n = len(F), self.c.size
        top = sparse.csc_array(([-1 / rho, -1 / rho], ([0, 1], [n, n])), shape=(2, n + 1))
        curved = sparse.csc_array(-np.hstack([F, np.zeros((rank, n + 1 - F.shape[1]))]))
        linear = sparse.hstack([self.A, sparse.csc_array((self.b.size, 1))])
        A = sparse.vstack([linear, top, curved], format="csc")
        b = np.concatenate([self.b, [rho / 2, -rho / 2], np.zeros(rank)])
        cones = Cones(self.zero, self.b.size - self.zero, soc=(rank + 2,))
        return ConeForm(np.append(self.c, 1.0), A, b, cones)


def tied(x: FloatArray, K: Gram, units: Units, sign: FloatArray | float = 1.0) -> FloatArray:
    """Return a point x of `Polyhedron` as one of its `with_kernel`."""
    return np.concatenate([x, units.factor(K) @ (sign * x[: K.size])]) if K.thin else x


def best_shift(breaks: FloatArray, count: int) -> float:
    """Return a minimiser of a convex piecewise linear function whose gradient goes up by 1 at each break, from -count.

    It lies between the break number `count` and the next one: the middle is taken.

    >>> best_shift(np.array([3.0, 0.0, 2.0]), 2)
    2.5
    """
    ordered = np.partition(breaks, [count - 1, count])
    return float(ordered[count - 1] + (ordered[count] - ordered[count - 1]) / 2)


def normal_of(point: Point, K: Gram) -> FloatArray | None:
    """Return the normal vector that the point holds, where it is one."""
    normal = point.dual.get("normal")
    usable = (
        normal is not None
        and normal.shape == (len(K.factor()),)
        and bool(np.isfinite(normal).all())
    )
    return normal if usable else None


def refuse_large(C: float, kappa: float) -> None:
    """Refuse a finite box that no solver can tell from an infinite one."""
    if np.isfinite(C) and C * kappa > 1e18:
        raise InvalidProblem(
            f"C is {C:g}, which times K is {C * kappa:.0e}; write inf for the hard margin"
        )


def finite(x: FloatArray) -> FloatArray:
    """Return x, or the origin where x is not a point at all: a bracket holds from there too."""
    return x if np.isfinite(x).all() else np.zeros_like(x)


def _power_of_two(number: float) -> float:
    return float(np.exp2(np.floor(np.log2(number))))
