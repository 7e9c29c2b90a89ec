"""Kernel alignment by the spectrum of a graph Laplacian: KA0, KA1 (ordered) and OSK.

    maximise over alpha   rho = <K, T> / (||K|| ||T||),    K = sum_i alpha_i v_i v_i' on the labelled points
    subject to            alpha_i >= sigma alpha_(i+1),  alpha >= 0           (without the order: alpha >= 0)

The columns v_i of V are eigenvectors, smoothest first. T_pq is 1 where p and q have one class and 0
otherwise (target "indicator", (20) of [1]) or -1 otherwise ("signed", (2) of [2]). rho does not
change with the scale of alpha: here alpha sums to 1, which is tr K = 1 for orthonormal columns.
With F_ij = (v_i'v_j)^2 and b_i = v_i'T v_i / ||T||,

    rho*^2 = b'alpha at the minimum of  alpha'F alpha / 2 - b'alpha  over the cone, of value -rho*^2 / 2

as soon as some prefix sum of b (without the order: some b_i) is positive: always for the indicator.
For the signed target of three or more classes it may fail; then rho* <= 0 is attained at a single
prefix, found by enumeration.

The slack variables s_k = alpha_k - sigma alpha_(k+1) turn the ordered cone into s >= 0 (Theorem 1
of [1]), the kernels into prefix kernels and the QP into NNLS. Where all points are labelled and V
is orthonormal, F = I and the answer is pooling b. Why the bounds hold:
`klopt.problems._ordered.alignment`.

[1] Xie, Ding, Gong, Wu, Rank ordering constraints elimination with application for kernel learning,
(20) to (26). [2] Pan, Chen, Chen, Xu, Efficient learning of supervised kernels with a graph-based
loss function, 2016, (2).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Self, get_args

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, flag, freeze, matrix, positive, require_memory
from klopt.errors import InvalidProblem
from klopt.kernels.graphs import class_labels
from klopt.model.cones import Feature
from klopt.model.forms import ExplicitForm
from klopt.model.problem import Bracket, Example, Formulation, Point, Problem, Statement
from klopt.problems._ordered.alignment import Alignment
from klopt.problems._ordered.forms import OrderedForms
from klopt.problems._ordered.function import Rooted

__all__ = ["OrderedAlignment"]

Target = Literal["indicator", "signed"]


@dataclass(frozen=True, eq=False)
class OrderedAlignment(Problem):
    """Learn the weights alpha of eigenvectors, the smoother the heavier, that align their kernel best with the labels.

    V has the eigenvectors as columns, smoothest first; `labels` are 0, 1, 2, .. or -1 for
    unlabelled. The order is alpha_i >= `sigma` alpha_(i+1), sigma >= 1; `ordered=False` drops it.
    `target` is the kernel to align with: "indicator" (1 within a class, else 0) or "signed" (else
    -1). The value is the alignment rho in [-1, 1], which is maximised; solutions have `alpha`.

    >>> V = np.array([[0.5, 0.5], [0.5, 0.5], [0.5, -0.5], [0.5, -0.5]])
    >>> problem = OrderedAlignment(V, labels=[0, 0, 1, 1])
    >>> bracket = problem.bracket(Point({"alpha": [1.0, 1.0]}))
    >>> round(bracket.lower, 9), round(bracket.upper, 9), bracket.point.alpha
    (1.0, 1.0, array([0.5, 0.5]))
    """

    statement = Statement(
        r"\max_{\alpha}\; \frac{\langle K,T\rangle}{\lVert K\rVert\,\lVert T\rVert},"
        r"\quad K=\sum_i\alpha_iv_iv_i^\top\quad\text{subject to}\quad "
        r"\alpha_i\ge\sigma\alpha_{i+1},\quad\alpha\ge 0",
        words="Unordered variants keep only the signs.",
        weights="alpha",
    )
    references = ("xie2017", "pan2016")
    examples = (
        Example(
            "digits",
            lambda d: OrderedAlignment(d.smooth, d.classes),
            demo=(300,),
            full=(300, 600, 1200),
        ),
    )

    V: FloatArray
    labels: npt.NDArray[np.int64]
    sigma: float = 1.0
    ordered: bool = True
    target: Target = "indicator"

    sense = "max"

    if TYPE_CHECKING:

        def __init__(
            self,
            V: npt.ArrayLike,
            labels: npt.ArrayLike,
            sigma: float = 1.0,
            ordered: bool = True,
            target: Target = "indicator",
        ) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "V", matrix("V", self.V))
        object.__setattr__(self, "labels", freeze(class_labels(self.labels, len(self.V))))
        object.__setattr__(self, "sigma", positive("sigma", self.sigma))
        object.__setattr__(self, "ordered", flag("ordered", self.ordered))
        if not self.V.shape[1]:
            raise InvalidProblem(
                f"V is {len(self.V)} x 0; give at least one eigenvector as a column"
            )
        if self.sigma < 1:
            raise InvalidProblem(
                f"sigma is {self.sigma}; an order alpha_i >= sigma alpha_(i+1) needs sigma >= 1"
            )
        if self.sigma > 1 and not self.ordered:
            raise InvalidProblem(
                f"sigma is {self.sigma} but ordered=False asks for no order; leave sigma at 1"
            )
        if self.target not in get_args(Target):
            raise InvalidProblem(
                f"target is {self.target!r}; expected one of {', '.join(get_args(Target))}"
            )
        if (self.labels < 0).all():
            raise InvalidProblem(
                f"labels are all -1: none of the {len(self.V)} points is labelled; label some"
            )
        self.reduced  # noqa: B018 - refuses columns that say nothing about the labelled points

    @cached_property
    def reduced(self) -> Alignment:
        """What matters of the data: the columns that reach the labelled points, scaled to a plain order."""
        return Alignment.of(self.V, self.labels, self.sigma, self.ordered, self.target == "signed")

    def describe(self) -> str:
        """Return the sizes and the kind of order."""
        order = (
            (f"sigma = {self.sigma:g}" if self.sigma > 1 else "ordered")
            if self.ordered
            else "unordered"
        )
        known = int((self.labels >= 0).sum())
        return f"OrderedAlignment({known} of {len(self.V)} points labelled, r = {self.V.shape[1]}, {order})"

    def formulations(self) -> tuple[Formulation, ...]:
        """Return the closed form where there is one, then the forms of the QP, the fastest first."""
        if not self.reduced.is_positive:
            return (
                self._explicit(
                    "all <P_k, T> <= 0: the convex ||K|| is largest at an extreme ray of the cone"
                ),
            )
        over, cone = {Feature.SIMPLEX, Feature.QUADRATIC}, {Feature.CONE}
        make, itself = self._forms, "the QP itself"
        prefixes = (
            "Theorem 1 of [1]: the ordered cone is the cone of its prefixes"
            if self.ordered
            else itself
        )
        back, unit = 1 / self.reduced.unit, "rho is the largest <K, T> / ||T|| with ||K|| = 1"
        rays, columns = (
            (make.from_rays, make.to_rays, prefixes),
            (make.from_columns, make.to_columns, itself),
        )
        metric = (
            make.from_metric,
            make.to_metric,
            "the QP itself, in the metric diag(F1), which bounds F",
        )
        root = (make.from_unit, make.to_unit, unit)
        nnls = Rooted("NNLS", frozenset(over | {Feature.BOX}), make.nnls, *rays, scale=back)
        pooling = Rooted(
            "ordered cone",
            frozenset(over | {Feature.ORDERED}),
            make.ordered_cone,
            *metric,
            scale=back,
        )
        slack = Rooted(
            "slack QP", frozenset(cone | {Feature.QUADRATIC}), make.slack_qp, *rays, scale=back
        )
        name = "order QP" if self.ordered else "QP"
        order = Rooted(
            name, frozenset(cone | {Feature.QUADRATIC}), make.order_qp, *columns, scale=back
        )
        socp = Formulation("SOCP", frozenset(cone | {Feature.SOC}), make.socp, *root, scale=-back)
        closed = (
            self._explicit("V^L is orthogonal: F is diagonal, and pooling b (PAVA) solves the QP"),
        )
        return (
            *(closed if self.reduced.is_diagonal else ()),
            *((nnls, pooling, slack, order, socp) if self.ordered else (nnls, order, socp)),
        )

    def bracket(self, point: Point) -> Bracket:
        """Return the alignment of the nearest ordered alpha and the best bound its kernel proves."""
        reduced, beta = self.reduced, self.reduced.beta(point.alpha)
        given = [reduced.gathered(M) for M in point.dual.values()]
        return Bracket(
            *reduced.bounds(beta, *given), Point({"alpha": reduced.alpha(beta)}, point.dual)
        )

    def kernel(self, point: Point) -> FloatArray:
        """Return V diag(alpha) V' on all points."""
        require_memory(8.0 * len(self.V) ** 2, f"the kernel of {len(self.V)} points")
        return (self.V * point.alpha) @ self.V.T

    @classmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        """Return orthonormal columns, two or three classes and some points without label."""
        n = 2 * max(size, 2)
        V = np.linalg.qr(rng.normal(size=(n, max(size, 1))))[0]
        labels = np.concatenate([np.arange(n - n // 4) % (2 + size % 2), np.full(n // 4, -1)])
        return cls(V, rng.permutation(labels))

    @cached_property
    def _forms(self) -> OrderedForms:
        return OrderedForms(self.reduced)

    def _explicit(self, because: str) -> Formulation:
        rule = ExplicitForm(self._closed_form)
        return Formulation("explicit", rule.needs, lambda: rule, _recover, because=because)

    def _closed_form(self) -> tuple[FloatArray, None]:
        reduced = self.reduced
        beta = reduced.orthogonal() if reduced.is_positive else reduced.ray(reduced.best_ray()[0])
        return reduced.alpha(beta), None


def _recover(x: FloatArray, y: FloatArray | None) -> Point:
    return Point({"alpha": x})
