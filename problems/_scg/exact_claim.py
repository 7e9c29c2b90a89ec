"""SCG-LDK as a log det program in fractions: <K0 + gamma K0 S K0, W> - log det W, K = K0 W K0."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from klopt.arrays import FloatArray
from klopt.errors import NotCertified
from klopt.kernels.gram import Gram
from klopt.kernels.nystroem import LowRank
from klopt.problems._logdet.exact_claim import Rows, log_det_claim, product
from klopt.problems._scg.proof import LowRankLaplacian
from klopt.witness.exact_claims import ExactClaim, fractions

__all__ = ["scg_claim"]


def scg_claim(
    K0: Gram | LowRank, laplacian: LowRankLaplacian | FloatArray, gamma: float
) -> ExactClaim:
    """Return the program of the stored numbers: K0, or features, and the Laplacian."""
    features = K0.matrix if isinstance(K0, Gram) else K0.Phi
    Phi = [fractions(row) for row in np.asarray(features)]
    smooth = _energy(Phi, laplacian)
    weight = Fraction(gamma)
    k = len(smooth)
    if isinstance(K0, Gram):
        Y0 = [[Phi[i][j] + weight * smooth[i][j] for j in range(k)] for i in range(k)]
        return log_det_claim(Y0, K0.matrix)
    Y0 = [[Fraction(int(i == j)) + weight * smooth[i][j] for j in range(k)] for i in range(k)]
    return log_det_claim(Y0, None)


def _energy(Phi: Rows, laplacian: LowRankLaplacian | FloatArray) -> Rows:
    """Phi'S Phi, exactly."""
    turned = _transposed(Phi)
    if isinstance(laplacian, LowRankLaplacian):
        U = [fractions(row) for row in laplacian.U.toarray()]
        small = product(turned, U)
        plain = product(turned, Phi)
        inner = product(product(small, [fractions(row) for row in laplacian.R]), _transposed(small))
        found = [[p - q for p, q in zip(a, b, strict=True)] for a, b in zip(plain, inner, strict=True)]
    else:
        found = product(product(turned, [fractions(row) for row in laplacian]), Phi)
    if found != _transposed(found):
        raise NotCertified("the stored Laplacian is not exactly symmetric")
    return found


def _transposed(A: Rows) -> Rows:
    return [list(column) for column in zip(*A, strict=True)]
