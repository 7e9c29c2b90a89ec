"""Learning a data-adaptive kernel as cone programs: semidefinite or, without tau, of second order.

In the units of the forms, with Z = F - 11', J = 11', and x between 0 and C that belongs to points
with signs, a = Sx: for classification x = alpha, S = diag(y), c = 1; for regression x = (u, v), a =
u - v.

    primal    min  t/2 + C 1'xi + eta ||Z||^2 + tau eta tr Z
              Z + J psd,   [(Z + J) o K, f; f', t] psd,   xi >= 0,   xi >= c - S'(f + b)

    dual      max  c'x - eta ||Z||^2 - 2 eta 1'Z1
              Z + J psd,   [Z + (tau/2) I, D_a U; U'D_a, 4 eta I] psd

    quartic   max  c'x - a'Ka/2 - u'(K o K)u / (16 eta)
              u_i >= a_i^2,   tight because K o K has no negative entry

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
"""svec multiplies entries off the diagonal by it."""


@dataclass(frozen=True, eq=False)
class AdaptiveCone:
    """The data in the units of the form.

    Parameters
    ----------
    K, factor
        The kernel matrix, and R with R'R = K.
    eta, tau
        The penalties of F.
    gain, sign
        c, and the sign of the point each x belongs to.
    domain
        The set of x.
    """

    K: FloatArray
    factor: FloatArray
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
        entries = (np.arange(m) % self.n, np.arange(m))
        return sparse.csr_array((self.sign, entries), shape=(self.n, m))

    def coefficients(self, x: FloatArray) -> FloatArray:
        """Return a."""
        return np.asarray(self.signs() @ x[: self.gain.size])

    def _linear_rows(self) -> tuple[sparse.csr_array, FloatArray, int]:
        """The rows of the plane and the box of x, their right hand sides, the number of planes."""
        m = self.gain.size
        eye = sparse.eye_array(m, format="csr")
        plane = sparse.csr_array((0, m))
        if self.domain.normal is not None:
            plane = sparse.csr_array(self.domain.normal[None, :])
        planes = plane.shape[0]
        b = np.concatenate([np.zeros(planes), self.domain.upper, -self.domain.lower])
        return sparse.vstack([plane, eye, -eye], format="csr"), b, planes

    def quartic(self) -> ConeForm:
        """Return the program in (x, a, u)."""
        n = self.n
        m = self.gain.size
        rows, right, planes = self._linear_rows()
        linear = sparse.hstack([rows, sparse.csr_array((right.size, 2 * n))], format="csr")
        # Sx - a = 0.
        tie = sparse.hstack([self.signs(), -sparse.eye_array(n), sparse.csr_array((n, n))])
        # (u_i + 1/4, u_i - 1/4, a_i) in the second-order cone: a_i^2 <= u_i.
        i = np.arange(n)
        cone_rows = np.concatenate([3 * i, 3 * i + 1, 3 * i + 2])
        cone_columns = np.concatenate([m + n + i, m + n + i, m + i])
        entries = (cone_rows, cone_columns)
        curved = sparse.csr_array((np.full(3 * n, -1.0), entries), shape=(3 * n, m + 2 * n))

        A = sparse.vstack([linear[:planes], tie, linear[planes:], curved], format="csc")
        of_cones = np.tile([0.25, -0.25, 0.0], n)
        b = np.concatenate([right[:planes], np.zeros(n), right[planes:], of_cones])
        cones = Cones(planes + n, right.size - planes, (3,) * n)

        c = np.concatenate([-self.gain, np.zeros(2 * n)])
        of_u = self.K * self.K / (8 * self.eta)
        P = sparse.block_diag([sparse.csc_array((m, m)), self.K, of_u], format="csc")
        return ConeForm(c, A, b, cones, P)

    def lift_quartic(self, x: FloatArray) -> FloatArray:
        """Return x as a point of the quartic program."""
        a = self.coefficients(x)
        return np.concatenate([x, a, a * a])

    def dual(self) -> ConeForm:
        """Return the program in (x, svec Z)."""
        n = self.n
        m = self.gain.size
        r = len(self.factor)
        N = svec_size(n)
        order = n + r
        rows, right, planes = self._linear_rows()
        J = svec(np.ones((n, n)))
        linear = sparse.hstack([rows, sparse.csr_array((right.size, N))])
        # Z + J psd.
        first = sparse.hstack([sparse.csr_array((N, m)), -sparse.eye_array(N)])

        # [Z + (tau/2) I, D_a U; U'D_a, 4 eta I] psd: entries of D_a U, of Z, the constant.
        i = np.repeat(np.arange(n), r)
        k = np.tile(np.arange(r), n)
        at_a = (svec_index(n + k, i, order), i)
        values = -ROOT2 * self.factor.T.ravel()
        of_a = sparse.csr_array((values, at_a), shape=(svec_size(order), n))
        below, columns = svec_entries(n)
        at_z = (svec_index(below, columns, order), np.arange(N))
        of_z = sparse.csr_array((-np.ones(N), at_z), shape=(svec_size(order), N))
        second = sparse.hstack([of_a @ self.signs(), of_z])
        constant = svec(np.diag(np.repeat([self.tau / 2, 4 * self.eta], [n, r])))

        A = sparse.vstack([linear, first, second], format="csc")
        b = np.concatenate([right, J, constant])
        cones = Cones(planes, right.size - planes, psd=(n, order))
        c = np.concatenate([-self.gain, 2 * self.eta * J])
        P = sparse.diags_array(np.repeat([0.0, 2 * self.eta], [m, N]), format="csc")
        return ConeForm(c, A, b, cones, P)

    def lift_dual(self, x: FloatArray, F: FloatArray) -> FloatArray:
        """Return x and its F as a point of the dual program."""
        return np.concatenate([x, svec(F - 1.0)])

    def primal(self) -> ConeForm:
        """Return the program in (svec Z, f, t, b, xi); there is no b where there is no plane."""
        n = self.n
        m = self.gain.size
        N = svec_size(n)
        order = n + 1
        biases = int(self.domain.normal is not None)
        size = N + n + 1 + biases + m

        # xi >= c - S'(f + b) and xi >= 0.
        no_z = sparse.csr_array((m, N))
        no_t = sparse.csr_array((m, 1))
        bias = sparse.csr_array(self.sign[:, None]) if biases else sparse.csr_array((m, 0))
        slack = sparse.hstack([no_z, -self.signs().T, no_t, -bias, -sparse.eye_array(m)])
        positive = sparse.hstack([sparse.csr_array((m, size - m)), -sparse.eye_array(m)])
        # Z + J psd.
        first = sparse.hstack([-sparse.eye_array(N), sparse.csr_array((N, size - N))])

        # [(Z + J) o K, f; f', t] psd: the entries of Z o K, of f and of t, the constant J o K = K.
        below, columns = svec_entries(n)
        at_z = svec_index(below, columns, order)
        at_f = svec_index(np.full(n, n), np.arange(n), order)
        places = np.concatenate([at_z, at_f, [svec_size(order) - 1]])
        values = np.concatenate([-self.K[below, columns], np.full(n, -ROOT2), [-1.0]])
        entries = (places, np.arange(N + n + 1))
        second = sparse.csr_array((values, entries), shape=(svec_size(order), size))
        constant = np.zeros((order, order))
        constant[:n, :n] = self.K

        A = sparse.vstack([slack, positive, first, second], format="csc")
        b = np.concatenate([-self.gain, np.zeros(m), svec(np.ones((n, n))), svec(constant)])
        c = np.zeros(size)
        c[:N] = self.tau * self.eta * svec(np.eye(n))
        c[N + n] = 0.5
        c[size - m :] = float(self.domain.upper.max())
        P = sparse.diags_array(np.repeat([2 * self.eta, 0.0], [N, size - N]), format="csc")
        return ConeForm(c, A, b, Cones(0, 2 * m, psd=(n, order)), P)
