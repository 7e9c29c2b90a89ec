"""Kernel alignment by the spectrum of a graph Laplacian: KA0, KA1 (ordered) and OSK.

    maximise over alpha   rho = <K, T> / (||K|| ||T||),    K = sum_i alpha_i v_i v_i'
    subject to            alpha_i >= sigma alpha_(i+1),  alpha >= 0

where K and T are taken on the labelled points; without the order only alpha >= 0 is left. The
columns v_i of V are eigenvectors, smoothest first. T_pq is 1 where p and q have one class and 0
otherwise (target "indicator", (20) of Xie et al. (2017)) or -1 otherwise ("signed", (2) of Pan et
al. (2016)). rho does not change with the scale of alpha: here alpha sums to 1, which is tr K = 1
for orthonormal columns. With F_ij = (v_i'v_j)^2 and b_i = v_i'T v_i / ||T||,

    minimise over the cone   alpha'F alpha / 2 - b'alpha

has the optimum -rho*^2 / 2, where rho*^2 = b'alpha, as soon as some prefix sum of b (without the
order: some b_i) is positive: always for the indicator. For the signed target of three or more
classes it may fail; then rho* <= 0 is attained at a single prefix, found by enumeration.

The slack variables s_k = alpha_k - sigma alpha_(k+1) turn the ordered cone into s >= 0 (Theorem 1
of Xie et al. (2017)), the kernels into prefix kernels and the QP into nonnegative least squares
(NNLS). Where all points are labelled and V is orthonormal, F = I and the answer is pooling b. Why
the bounds hold: `klopt.problems._ordered.proof`.

Xie, Ding, Gong, Wu (2017), Rank ordering constraints elimination with application for kernel
learning, (20) to (26).

Pan, Chen, Chen, Xu (2016), Efficient learning of supervised kernels with a graph-based loss
function, (2).
"""

from __future__ import annotations

from functools import cached_property
from typing import Self, get_args

import attrs
import numpy as np

from klopt.arrays import FloatArray, require_memory, vector
from klopt.errors import InvalidProblem
from klopt.model.problem import Bracket, Example, Formulation, Point, Problem, Statement
from klopt.problems._ordered.data import (
    LabelArray,
    Target,
    eigenvector_columns,
    is_ordered,
    known_classes,
    order_ratio,
)
from klopt.problems._ordered.exact_claim import alignment_claim
from klopt.problems._ordered.forms import AlignmentForms
from klopt.problems._ordered.witness import Alignment
from klopt.witness.exact_claims import ExactClaim

__all__ = ["OrderedAlignment", "Target"]


@attrs.frozen(eq=False, slots=False)
class OrderedAlignment(Problem):
    """Learn nonincreasing weights alpha of eigenvectors that align their kernel with the labels.

    The value is the alignment rho in [-1, 1], which is maximised; solutions have `alpha`. V is the
    data, whatever it was computed from; a column of which at most 1e-12 of its length lies on the
    labelled points counts as zero there.

    Parameters
    ----------
    V : (n, r) array
        Eigenvectors as columns, smoothest first.
    labels : (n,) array
        The class 0, 1, 2, .. of each point, or -1 where it is unlabelled.
    sigma : float
        The ratio of the order alpha_i >= sigma alpha_(i+1), at least 1.
    ordered : bool
        False drops the order.
    target : "indicator" or "signed"
        The kernel to align with: "indicator" is 1 within a class and 0 otherwise, "signed" is 1
        within a class and -1 otherwise.

    References
    ----------
    Xie et al. (2017). Rank Ordering Constraints Elimination with Application for Kernel
    Learning.

    Pan et al. (2016). Efficient learning of supervised kernels with a graph-based loss
    function.

    Examples
    --------
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
        words=(
            "Unordered variants keep only the signs. V is given; columns of which at most 1e-12 of "
            "their length is on the labelled points count as zero there."
        ),
        weights="alpha",
        area="Kernel learning",
    )
    references = ("xie2017", "pan2016")
    has_optimum = True
    sense = "max"

    V: FloatArray = attrs.field(converter=eigenvector_columns)
    labels: LabelArray = attrs.field(converter=known_classes)
    sigma: float = attrs.field(default=1.0, converter=order_ratio)
    ordered: bool = attrs.field(default=True, converter=is_ordered)
    target: Target = "indicator"

    def __attrs_post_init__(self) -> None:
        n, r = self.V.shape
        vector("labels", self.labels, n)  # refuses another number of labels than of points
        if not r:
            raise InvalidProblem(f"V is {n} x 0; give at least one eigenvector as a column")
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
                f"labels are all -1: none of the {n} points is labelled; label some"
            )
        self.reduced  # noqa: B018 - refuses columns that say nothing about the labelled points

    @cached_property
    def reduced(self) -> Alignment:
        """The columns that reach the labelled points, scaled so that the order is a plain one."""
        return Alignment.of(self.V, self.labels, self.sigma, self.ordered, self.target == "signed")

    def describe(self) -> str:
        """Return the sizes and the kind of order."""
        order = "unordered"
        if self.ordered:
            order = f"sigma = {self.sigma:g}" if self.sigma > 1 else "ordered"
        n, r = self.V.shape
        known = int((self.labels >= 0).sum())
        return f"OrderedAlignment({known} of {n} points labelled, r = {r}, {order})"

    def formulations(self) -> tuple[Formulation, ...]:
        """Return the closed form where there is one, then the QP's forms, the fastest first."""
        return self._forms.formulations()

    @cached_property
    def _forms(self) -> AlignmentForms:
        return AlignmentForms(self.reduced)

    def bracket(self, point: Point) -> Bracket:
        """Return the alignment of the nearest ordered alpha and the best bound that is proven."""
        return self.proof(self.witness(point))

    def exact_claim(self, point: Point, verdict: str) -> ExactClaim:
        """Return the program of the exact F and b of V, with the weights of a point."""
        sigma = self.sigma if self.ordered else None
        signed = self.target == "signed"
        return alignment_claim(self.V, self.labels, sigma, signed, self.reduced.kept, point.alpha)

    def witness(self, point: Point) -> Point:
        """Return the nearest ordered alpha; a dual part suggests matrices M that bound rho."""
        return self.reduced.witness(point)

    def proof(self, witness: Point) -> Bracket:
        """Return what the weights of a witness prove in exact arithmetic.

        The proven point is ordered exactly: alpha / e, e_i = sigma^-(i-1), made nonincreasing by at
        most its rounding.
        """
        reduced = self.reduced
        beta = reduced.feasible_beta(witness.alpha)
        suggested = [reduced.from_all_columns(M) for M in witness.dual.values()]
        lower, upper = reduced.bounds(beta, *suggested)
        return Bracket(
            lower,
            upper,
            witness,
            lower_by="alignment at an exactly ordered point",
            upper_by="a matrix M with <P, M> >= <P, T> for all rays P of the cone",
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
        unlabelled = n // 4
        classes = 2 + size % 2
        labels = np.append(np.arange(n - unlabelled) % classes, np.full(unlabelled, -1))
        return cls(V, rng.permutation(labels))

    examples = (
        Example(
            "digits",
            lambda data: OrderedAlignment(data.smooth, data.classes),
            demo=(300,),
            full=(300, 600, 1200),
        ),
    )
