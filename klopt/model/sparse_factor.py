"""Sparse factors L D L' of a symmetric matrix with a smaller diagonal, proposed to whoever checks them.

Nothing that klopt states rests on them: `klopt.proof.linear_systems` multiplies them out.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.model.fill import sparse_factor_fits, sparse_square_fits

__all__ = ["ShiftedFactor", "shifted_factors"]

SHIFTS = (1e-6, 1e-11)
"""What is taken from the diagonal, of matrices whose diagonal is about 1."""


class ShiftedFactor(NamedTuple):
    """G - shift I, its rows and columns in an order, is about L D L'."""

    shift: float
    order: npt.NDArray[np.intp]
    L: sparse.csr_array
    D: FloatArray


def shifted_factors(G: Any, seconds: float) -> Iterator[ShiftedFactor]:
    """Yield factors of G - t I with a positive D, the largest t first, as long as there is time.

    Parameters
    ----------
    G
        A symmetric matrix, by columns; none is factored that is not sparse or fills too much.
    seconds
        No factorisation is begun later.

    >>> G = sparse.diags_array([np.ones(29), np.full(30, 4.0), np.ones(29)], offsets=[-1, 0, 1])
    >>> t, order, L, D = next(shifted_factors(G.tocsc(), 1.0))
    >>> LDL = (L @ sparse.diags_array(D) @ L.T).toarray()
    >>> bool(np.allclose(LDL, (G.toarray() - t * np.eye(30))[order][:, order]))
    True
    """
    from scipy.sparse.linalg import splu

    end = time.perf_counter() + seconds
    if not sparse_factor_fits(G, seconds):
        return
    for t in SHIFTS:
        if time.perf_counter() > end:
            return
        try:
            # Symmetric, without pivoting: L D L'.
            factor = splu(
                sparse.csc_array(G - t * sparse.eye_array(G.shape[0])),
                permc_spec="MMD_AT_PLUS_A",
                diag_pivot_thresh=0.0,
                options={"SymmetricMode": True},
            )
        except RuntimeError:
            continue
        D = factor.U.diagonal()
        if not (np.array_equal(factor.perm_r, factor.perm_c) and (D > 0).all()):
            continue
        if not sparse_square_fits(factor.L, end - time.perf_counter()):
            return
        yield ShiftedFactor(t, np.argsort(factor.perm_r), sparse.csr_array(factor.L), D)
