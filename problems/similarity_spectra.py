"""REKL: several kernels that keep the eigenvectors of their similarities and learn new eigenvalues.

    minimise  max over alpha, gamma of
        1'alpha - sum_i a'K_i a / (2 gamma_i)  +  rho sum_i l(mu_i - lambda_i)

    over K_i = V_i diag(mu_i) V_i', mu_i >= 0 of the given sum, where S_i = V_i diag(lambda_i) V_i';
    a = y o alpha, 0 <= alpha <= C, y'alpha = 0;   gamma >= 0 of sum 1

Kundu, Tankasali, Bhattacharyya, Ben-Tal (2010), Efficient algorithms for learning kernels from
multiple similarity matrices with general convex loss functions, (7) with (10), with the sum in (7)
over all n eigenvalues. l may be any convex loss in (7). Here it is the Euclidean norm of section 4
of the paper ("euclidean"), its square ("squared"), which has a form in the multipliers alone and is
faster, or the sum of absolute values ("l1"). As the sums of mu and lambda are given, a one-sided
loss is no other problem:

    sum_j max(0, lambda_j - mu_j) = (|mu - lambda|_1 + 1'lambda - tau) / 2,

and with max(0, mu_j - lambda_j) in the same way. The hinge loss of the margins is that of the
support vector machine and not l.

The V_i and lambda_i are floats that LAPACK computes from S_i once: they are the data of the problem
that brackets speak of. With the Euclidean norm or its square it restricts `SimilarityKernels` with
the Frobenius or the squared loss, so its optimum is not below, up to rounding, and needs each
eigendecomposition only once.
"""

from __future__ import annotations

from typing import Literal, Self, cast, get_args

import attrs
import numpy as np

from klopt.arrays import FloatArray
from klopt.errors import InvalidProblem
from klopt.model.problem import Example, Statement
from klopt.problems._similarity.base import SeveralKernelsProblem
from klopt.problems._similarity.data import Losses, noisy_similarities

__all__ = ["SimilaritySpectra", "SpectralLoss"]

SpectralLoss = Literal["squared", "euclidean", "l1"]

MATRIX_LOSSES: dict[SpectralLoss, Losses] = {
    "squared": "squared",
    "euclidean": "frobenius",
    "l1": "l1",
}
"""The names by which proofs and programs know the losses of eigenvalues."""


def _as_spectral_loss(loss: SpectralLoss) -> SpectralLoss:
    if loss not in get_args(SpectralLoss):
        raise InvalidProblem(
            f"loss is {loss!r}; expected one of {', '.join(get_args(SpectralLoss))}"
        )
    return loss


@attrs.frozen(eq=False, slots=False)
class SimilaritySpectra(SeveralKernelsProblem):
    """Learn the spectrum of each similarity matrix, for one support vector machine.

    Its data are the eigenpairs of the S_i as computed, `eigenvalues` and `eigenvectors`; S_i alone
    does not determine those of a repeated eigenvalue. It has the kernel sum K_i / gamma_i.
    Solutions have `alpha`, `bias`, `gamma`, `spectra`, of shape (m, n), eigenvalues in the order of
    those of S_i, smallest first, and `kernels`, of shape (m, n, n).

    Parameters
    ----------
    S : list of (n, n) matrices or array of shape (n, n, m)
        The similarities.
    y : (n,) array
        Labels -1 and +1.
    C : float
        Penalty of the support vector machine.
    rho : float
        Weight of the losses.
    trace : float
        Trace of each kernel.
    loss : "squared", "euclidean" or "l1"
        The distance of the eigenvalues from those of the similarity: the Euclidean one squared, as
        it is, or the sum of the absolute differences.

    References
    ----------
    Kundu et al. (2010). Efficient algorithms for learning kernels from multiple similarity
    matrices with general convex loss functions.

    Examples
    --------
    >>> from klopt.model.problem import Point
    >>> problem = SimilaritySpectra([[[1, 2], [2, 1]]], [1, -1], C=1, rho=1, trace=2)
    >>> bracket = problem.bracket(Point({"alpha": [1.0, 1.0], "gamma": [1.0]}))
    >>> round(bracket.lower, 6), round(bracket.upper, 6), bracket.point.spectra.round(3)
    (4.0, 4.0, array([[0., 2.]]))
    """

    statement = Statement(
        r"\min_{\mu_i\ge 0}\;\max_{\alpha,\gamma}\; "
        r"\mathbf{1}^\top\alpha-\sum_i\frac{a^\top "
        r"K_ia}{2\gamma_i}+\rho\sum_i\ell(\mu_i-\lambda_i),\quad K_i=V_i\,"
        r"\mathrm{diag}(\mu_i)V_i^\top\quad\text{subject to}\quad "
        r"\mathbf{1}^\top\mu_i=\tau,\quad 0\le\alpha\le C,\quad y^\top\alpha=0,\quad "
        r"a_i=y_i\alpha_i,\quad\gamma\ge 0,\quad\mathbf{1}^\top\gamma=1",
        words=(
            "S_i = V_i diag(lambda_i) V_i' are similarities that need not be positive "
            "semidefinite; the support vector machine has the kernel sum K_i / gamma_i. l is the "
            "Euclidean norm, its square, or the sum of absolute values."
        ),
        data="The eigenpairs of the S_i, as computed, are the data.",
        weights="gamma",
        area="Kernel learning",
    )
    references = ("kundu2010",)
    has_optimum = True

    keeps_eigenvectors = True
    loss: SpectralLoss = attrs.field(default="squared", converter=_as_spectral_loss)

    def _given_loss(self) -> Losses:
        # ||K_i - S_i|| of kernels with the same eigenvectors is the distance of the eigenvalues.
        return MATRIX_LOSSES[self.loss]

    def describe(self) -> str:
        return f"{super().describe()[:-1]}, {self.loss})"

    @property
    def eigenvalues(self) -> FloatArray:
        """The lambda_i as computed, one row each, smallest first."""
        return self.several.spectra.values

    @property
    def eigenvectors(self) -> FloatArray:
        """The V_i as computed, of shape (m, n, n), eigenvectors in columns."""
        m, n = self.eigenvalues.shape
        return self.several.spectra.vectors.reshape(m, n, n).transpose(0, 2, 1)

    @classmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        S, y = noisy_similarities(rng, max(size, 2), 2)
        C = float(rng.choice([0.1, 1.0, 10.0]))
        rho = float(rng.choice([0.05, 0.5]))
        loss = cast(SpectralLoss, rng.choice(get_args(SpectralLoss), p=[0.6, 0.2, 0.2]).item())
        return cls(S, y, C, rho, float(y.size), loss)

    examples = (
        Example(
            "wine",
            lambda d: SimilaritySpectra(d.similarities, d.signs, 1.0, 0.1, d.size),
            demo=(60,),
            full=(60, 120, 178),
        ),
    )
