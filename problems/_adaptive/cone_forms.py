"""Learning a data-adaptive kernel as cone programs: semidefinite, primal and dual, and without tau of second order.

In the units of the forms, with Z = F - 11', J = 11', and x between 0 and C that belongs to points
with signs, a = Sx: for classification x = alpha, S = diag(y), c = 1; for regression x = (u, v), a =
u - v.

    primal   min  t/2 + C 1'xi + eta ||Z||^2 + tau eta tr Z      Z + J psd,  [(Z + J) o K, f; f', t] psd,
                                                                 xi >= 0,  xi >= c - S'(f + b)
    dual     max  c'x - eta ||Z||^2 - 2 eta 1'Z1                 Z + J psd,  [Z + (tau/2) I, D_a U; U'D_a, 4 eta I] psd
    quartic  max  c'x - a'Ka/2 - u'(K o K)u / (16 eta)           u_i >= a_i^2, tight because K o K has no negative entry

K = UU'. In the last two x lies in its box and on its plane. The multipliers of the rows of the
primal are x.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.model.cones import Cones, svec, svec_entries, svec_index, svec_size
from klopt.model.forms import ConeForm
from klopt.model.sets import BoxPlane

__all__ = ["AdaptiveCone"]

ROOT2 = float(np.sqrt(2.0))


@dataclass(frozen=True, eq=False)
class AdaptiveCone:
    """The data in the units of the form: x lies in `domain`, belongs to points with signs, gains `gain`'x."""

    K: FloatArray
    factor: FloatArray
    """R with R'R = K."""
    eta: float
    tau: float
    gain: FloatArray
    sign: FloatArray
    domain: BoxPlane

    @property
    def n(self) -> int:
        """The number of points."""
        return len(self.K)

    def signs(self) -> sparse.csr_array:
        """Return S with a = Sx."""
        m = self.gain.size
        return sparse.csr_array(
            (self.sign, (np.arange(m) % self.n, np.arange(m))), shape=(self.n, m)
        )

    def coefficients(self, x: FloatArray) -> FloatArray:
        """Return a."""
        return np.asarray(self.signs() @ x[: self.gain.size])

    def _box(self) -> tuple[sparse.csr_array, FloatArray, int]:
        """Rows of the plane and the box."""
        eye = sparse.eye_array(self.gain.size, format="csr")
        plane = sparse.csr_array((0, self.gain.size))
        if self.domain.normal is not None:
            plane = sparse.csr_array(self.domain.normal[None, :])
        b = np.concatenate([np.zeros(plane.shape[0]), self.domain.upper, -self.domain.lower])
        return sparse.vstack([plane, eye, -eye], format="csr"), b, plane.shape[0]

    def quartic(self) -> ConeForm:
        """Return the program in (x, a, u)."""
        n, m = self.n, self.gain.size
        rows, b, planes = self._box()
        wide = sparse.hstack([rows, sparse.csr_array((b.size, 2 * n))], format="csr")
        tie = sparse.hstack([self.signs(), -sparse.eye_array(n), sparse.csr_array((n, n))])
        i = np.arange(n)
        at = (
            np.concatenate([3 * i, 3 * i + 1, 3 * i + 2]),
            np.concatenate([m + n + i, m + n + i, m + i]),
        )
        cones = sparse.csr_array((np.full(3 * n, -1.0), at), shape=(3 * n, m + 2 * n))
        A = sparse.vstack([wide[:planes], tie, wide[planes:], cones], format="csc")
        right = np.tile([0.25, -0.25, 0.0], n)
        b = np.concatenate([b[:planes], np.zeros(n), b[planes:], right])
        P = sparse.block_diag(
            [sparse.csc_array((m, m)), self.K, self.K * self.K / (8 * self.eta)], format="csc"
        )
        K = Cones(planes + n, rows.shape[0] - planes, (3,) * n)
        return ConeForm(np.concatenate([-self.gain, np.zeros(2 * n)]), A, b, K, P)

    def lift_quartic(self, x: FloatArray) -> FloatArray:
        """Return x as a point of the quartic program."""
        a = self.coefficients(x)
        return np.concatenate([x, a, a * a])

    def dual(self) -> ConeForm:
        """Return the program in (x, svec Z)."""
        n, m, r = self.n, self.gain.size, len(self.factor)
        N, order = svec_size(n), n + r
        rows, b, planes = self._box()
        J = svec(np.ones((n, n)))
        linear = sparse.hstack([rows, sparse.csr_array((b.size, N))])
        first = sparse.hstack([sparse.csr_array((N, m)), -sparse.eye_array(N)])
        below, columns = svec_entries(n)
        i, k = np.repeat(np.arange(n), r), np.tile(np.arange(r), n)
        at_a = (svec_index(n + k, i, order), i)
        S = (
            sparse.csr_array((-ROOT2 * self.factor.T.ravel(), at_a), shape=(svec_size(order), n))
            @ self.signs()
        )
        at_z = (svec_index(below, columns, order), np.arange(N))
        second = sparse.hstack(
            [S, sparse.csr_array((-np.ones(N), at_z), shape=(svec_size(order), N))]
        )
        corner = svec(np.diag(np.repeat([self.tau / 2, 4 * self.eta], [n, r])))
        A = sparse.vstack([linear, first, second], format="csc")
        P = sparse.diags_array(np.repeat([0.0, 2 * self.eta], [m, N]), format="csc")
        cones = Cones(planes, b.size - planes, psd=(n, order))
        c = np.concatenate([-self.gain, 2 * self.eta * J])
        return ConeForm(c, A, np.concatenate([b, J, corner]), cones, P)

    def lift_dual(self, x: FloatArray, F: FloatArray) -> FloatArray:
        """Return x and its F as a point of the dual program."""
        return np.concatenate([x, svec(F - 1.0)])

    def primal(self) -> ConeForm:
        """Return the program in (svec Z, f, t, b, xi); there is no b where there is no plane."""
        n, m, free = self.n, self.gain.size, int(self.domain.normal is not None)
        N, order = svec_size(n), n + 1
        spread = self.signs().T
        bias = sparse.csr_array(self.sign[:, None]) if free else sparse.csr_array((m, 0))
        slack = sparse.hstack(
            [
                sparse.csr_array((m, N)),
                -spread,
                sparse.csr_array((m, 1)),
                -bias,
                -sparse.eye_array(m),
            ]
        )
        size = N + n + 1 + free + m
        positive = sparse.hstack([sparse.csr_array((m, size - m)), -sparse.eye_array(m)])
        first = sparse.hstack([-sparse.eye_array(N), sparse.csr_array((N, size - N))])
        below, columns = svec_entries(n)
        i = np.arange(n)
        places = np.concatenate(
            [
                svec_index(below, columns, order),
                svec_index(np.full(n, n), i, order),
                [svec_size(order) - 1],
            ]
        )
        values = np.concatenate([-self.K[below, columns], np.full(n, -ROOT2), [-1.0]])
        second = sparse.csr_array(
            (values, (places, np.arange(N + n + 1))), shape=(svec_size(order), size)
        )
        corner = np.zeros((order, order))
        corner[:n, :n] = self.K
        A = sparse.vstack([slack, positive, first, second], format="csc")
        b = np.concatenate([-self.gain, np.zeros(m), svec(np.ones((n, n))), svec(corner)])
        c = np.zeros(size)
        c[:N], c[N + n], c[size - m :] = (
            self.tau * self.eta * svec(np.eye(n)),
            0.5,
            float(self.domain.upper.max()),
        )
        P = sparse.diags_array(np.repeat([2 * self.eta, 0.0], [N, size - N]), format="csc")
        return ConeForm(c, A, b, Cones(0, 2 * m, psd=(n, order)), P)
