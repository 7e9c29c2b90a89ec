"""Which support vector machine a kernel quadratic over a box cut by a plane is the dual of, if any.

classifier   one variable a point, one negative linear term for all, normal = the signs (the labels)
regression   two variables a point, of opposite signs, with linear terms epsilon - y and epsilon + y
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.forms import SimplexForm
from klopt.model.functions import KernelQuadratic
from klopt.model.sets import BoxPlane
from klopt.numerics.box_qp.program import Box, BoxQP, Indices, SignedGram

__all__ = ["SvmDual", "as_svm"]

TUBE_TOLERANCE = 1e-12
"""What the epsilons of a regression may differ by, relative to the largest linear term."""


@dataclass(frozen=True, eq=False)
class SvmDual:
    """What LIBSVM is given.

    `up` are the variables of the points' coefficients, for a regression of their positive parts,
    and `down` those of the negative parts.
    """

    qp: BoxQP
    """The form as it was stated."""
    K: FloatArray
    target: FloatArray
    """Labels or targets."""
    C: FloatArray
    """The box of each point."""
    unit: float
    """The size of the linear terms, which LIBSVM takes to be 1."""
    up: Indices
    down: Indices | None = None
    epsilon: float = 0.0

    @property
    def is_regression(self) -> bool:
        """Whether it is a regression."""
        return self.down is not None

    def without_fixed_points(self) -> SvmDual:
        """Drop the points whose box is {0}.

        scikit-learn drops them too, and then counts the support vectors among the rest.
        """
        movable = np.flatnonzero(self.C)
        if movable.size == self.C.size:
            return self
        return replace(
            self,
            K=self.K[np.ix_(movable, movable)],
            target=self.target[movable],
            C=self.C[movable],
            up=self.up[movable],
            down=None if self.down is None else self.down[movable],
        )

    def spread(self, coefficient: FloatArray) -> FloatArray:
        """Return the form's variables for the coefficients of the points.

        The sign of a coefficient is that of the label, or says which variable of the pair it is.
        """
        x = np.zeros(self.qp.c.size)
        if self.down is None:
            x[self.up] = np.abs(coefficient)
        else:
            x[self.up] = np.maximum(coefficient, 0.0)
            x[self.down] = np.maximum(-coefficient, 0.0)
        return x


def as_svm(form: SimplexForm) -> SvmDual | str:
    """Return the support vector machine that the form is the dual of, or why there is none."""
    f = form.objective
    domain = form.domain
    if not (isinstance(f, KernelQuadratic) and isinstance(domain, BoxPlane)):
        return "LIBSVM takes a kernel quadratic over a box cut by a plane"
    flaw = _flaw_of_set(f, domain)
    if flaw:
        return flaw

    # Each point once is a classifier, each point twice a regression.
    points = len(f.K)
    by_point = np.argsort(f.point, kind="stable")
    variables = f.point.size
    if variables == points and np.array_equal(f.point[by_point], np.arange(points)):
        return _as_classifier(f, domain, by_point)
    if variables == 2 * points:
        pairs = by_point.reshape(-1, 2)
        if (f.point[pairs] == np.arange(points)[:, None]).all():
            return _as_regression(f, domain, pairs)
    return "LIBSVM needs one variable a point, or two of opposite signs"


def _flaw_of_set(f: KernelQuadratic, domain: BoxPlane) -> str:
    """Why the set is not that of a support vector machine, "" if it is."""
    finite_box = not domain.lower.any() and np.isfinite(domain.upper).all()
    if not finite_box or domain.offset or domain.normal is None:
        return "LIBSVM needs 0 <= x <= C with a finite C and a plane through the origin"
    # Then a multiple of y'x = 0 is the plane, as LIBSVM has it.
    signed_normal = domain.normal * f.sign
    if not (np.abs(f.sign) == 1).all() or not (signed_normal == signed_normal[0]).all():
        return "LIBSVM needs signs of -1 and +1, with the plane's normal a multiple of them"
    return ""


def _as_classifier(f: KernelQuadratic, domain: BoxPlane, variables: Indices) -> SvmDual | str:
    """The classifier, its variables in the order of the points."""
    unit = -float(f.linear[0])
    if not (unit > 0 and (f.linear == -unit).all()):
        return "LIBSVM's classifier needs one and the same negative gradient"
    svm = SvmDual(
        qp=_program(f, domain),
        K=np.ascontiguousarray(f.K),
        target=f.sign[variables],
        C=domain.upper[variables],
        unit=unit,
        up=variables,
    ).without_fixed_points()
    # scikit-learn refuses a single class.
    if abs(svm.target.sum()) == svm.target.size:
        return "LIBSVM's classifier needs points of both signs whose box is not {0}"
    return svm


def _as_regression(f: KernelQuadratic, domain: BoxPlane, pairs: Indices) -> SvmDual | str:
    """The regression; row i of `pairs` holds the two variables of point i."""
    first_is_up = f.sign[pairs[:, :1]] > 0
    up, down = np.where(first_is_up, pairs, pairs[:, ::-1]).T
    epsilons = (f.linear[up] + f.linear[down]) / 2
    largest = float(np.abs(f.linear).max(initial=0.0))
    rounding = TUBE_TOLERANCE * largest
    one_box = np.array_equal(domain.upper[up], domain.upper[down])
    if (f.sign[down] > 0).any() or not one_box or np.ptp(epsilons) > rounding:
        return (
            "LIBSVM's regression needs pairs of opposite signs with one box, "
            "and one epsilon for all"
        )
    epsilon = float(epsilons.mean())
    if epsilon < -rounding or not domain.upper.any():
        return "LIBSVM's regression needs epsilon >= 0 and a box that is not {0}"
    return SvmDual(
        qp=_program(f, domain),
        K=np.ascontiguousarray(f.K),
        target=(f.linear[down] - f.linear[up]) / 2,
        C=domain.upper[up],
        unit=largest or 1.0,
        up=up,
        down=down,
        epsilon=max(epsilon, 0.0),
    ).without_fixed_points()


def _program(f: KernelQuadratic, domain: BoxPlane) -> BoxQP:
    return BoxQP(SignedGram.of(f), f.linear, Box.of(domain))
