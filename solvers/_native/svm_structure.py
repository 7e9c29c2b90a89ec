"""Which support vector machine a kernel quadratic over a box cut by a plane is, if any.

classifier   one variable a point, all gradients equal and negative, normal = the signs (the labels)
regression   two variables a point, of opposite signs, with gradients epsilon - y and epsilon + y
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.forms import SimplexForm
from klopt.model.functions import KernelQuadratic
from klopt.model.sets import BoxPlane
from klopt.numerics.box_qp.quadratic import Box, BoxQP, Indices, SignedGram

__all__ = ["Machine", "as_svm"]


@dataclass(frozen=True, eq=False)
class Machine:
    """What LIBSVM is given: labels or targets, a box for each point, the gradient that its own 1 stands for."""

    qp: BoxQP
    K: FloatArray
    target: FloatArray
    box: FloatArray
    gradient: float
    up: Indices
    down: Indices | None = None
    epsilon: float = 0.0

    def with_room(self) -> Machine:
        """Drop the points whose box is {0}: scikit-learn drops them too, and then counts the support among the rest."""
        live = np.flatnonzero(self.box)
        if live.size == self.box.size:
            return self
        K, down = self.K[np.ix_(live, live)], None if self.down is None else self.down[live]
        return replace(
            self, K=K, target=self.target[live], box=self.box[live], up=self.up[live], down=down
        )

    def spread(self, coefficient: FloatArray) -> FloatArray:
        """Return the form's variables for the coefficients of the points, whose signs are the labels' or the pair's."""
        x = np.zeros(self.qp.c.size)
        if self.down is None:
            x[self.up] = np.abs(coefficient)
        else:
            x[self.up], x[self.down] = np.maximum(coefficient, 0.0), np.maximum(-coefficient, 0.0)
        return x


def as_svm(form: SimplexForm) -> Machine | str:
    """The machine behind the form, or why there is none."""
    f, domain = form.objective, form.domain
    if not (isinstance(f, KernelQuadratic) and isinstance(domain, BoxPlane)):
        return "LIBSVM takes a kernel quadratic over a box cut by a plane"
    m, n = len(f.K), f.size
    qp = BoxQP(SignedGram.of(f), f.linear, Box.of(domain))
    if (
        domain.lower.any()
        or not np.isfinite(domain.upper).all()
        or domain.offset
        or domain.normal is None
    ):
        return "LIBSVM needs 0 <= x <= C with a finite C and a plane through the origin"
    if (
        not (np.abs(f.sign) == 1).all()
        or not (domain.normal * f.sign == (domain.normal * f.sign)[0]).all()
    ):
        return "LIBSVM needs signs of -1 and +1, with the plane's normal a multiple of them"
    K = np.ascontiguousarray(f.K)
    order = np.argsort(f.point, kind="stable")
    if n == m and np.array_equal(f.point[order], np.arange(m)):
        gradient = -float(f.linear[0])
        if not (gradient > 0 and (f.linear == -gradient).all()):
            return "LIBSVM's classifier needs one and the same negative gradient"
        machine = Machine(qp, K, f.sign[order], domain.upper[order], gradient, order).with_room()
        if abs(machine.target.sum()) == machine.target.size:
            return "LIBSVM's classifier needs points of both signs with room in their boxes"
        return machine
    pairs = order.reshape(-1, 2) if n == 2 * m else order[:0].reshape(0, 2)
    if len(pairs) != m or not np.array_equal(
        f.point[pairs], np.arange(m)[:, None] + np.zeros((1, 2), int)
    ):
        return "LIBSVM needs one variable a point, or two of opposite signs"
    up, down = np.where(f.sign[pairs[:, :1]] > 0, pairs, pairs[:, ::-1]).T
    tube = (f.linear[up] + f.linear[down]) / 2
    slack = 1e-12 * float(np.abs(f.linear).max(initial=0.0))
    if (
        (f.sign[down] > 0).any()
        or not np.array_equal(domain.upper[up], domain.upper[down])
        or np.ptp(tube) > slack
    ):
        return "LIBSVM's regression needs pairs of opposite signs with one box, and one epsilon for all"
    epsilon, gradient = float(tube.mean()), float(np.abs(f.linear).max(initial=0.0)) or 1.0
    if epsilon < -slack or not domain.upper.any():
        return "LIBSVM's regression needs epsilon >= 0 and a box with room"
    target = (f.linear[down] - f.linear[up]) / 2
    return Machine(
        qp, K, target, domain.upper[up], gradient, up, down, max(epsilon, 0.0)
    ).with_room()
