"""Bytes that a library is foreseen to need for a cone program, from the entries of its matrices.

A sparse factorisation keeps at least the entries of what it factors, several times over: as given,
scaled, permuted, and in the factor. The bytes per entry in the backends are measured as peaks of
resident memory, after two iterations, of dense matrices of 1000 to 2000 rows and of the semidefinite
programs theta1, mcp100 and gpp100 of SDPLIB. The factor of a sparse matrix fills up, by how much is
not known before: an estimate is what is needed at least.
"""

from __future__ import annotations

import numpy as np

from klopt.model.cones import svec_size
from klopt.model.forms import ConeForm, Form

__all__ = ["dense_blocks", "matrix_bytes"]

DENSE_FROM = 0.5
"""A matrix with this share of its entries is not taken apart into smaller ones."""


def matrix_bytes(form: Form, per_entry_of_A: float, per_entry_of_P: float) -> float:
    """Return the bytes for A, and for one triangle of P; 0 for what is no cone program."""
    if not isinstance(form, ConeForm):
        return 0.0
    hessian = 0 if form.P is None else form.P.nnz / 2
    return per_entry_of_A * form.A.nnz + per_entry_of_P * hessian


def dense_blocks(form: Form) -> float:
    """Return the entries of the dense blocks that interior points make of semidefinite cones.

    A matrix of order k has k (k + 1) / 2 = t entries, and the scaling of its cone is a symmetric
    matrix of order t. Cones of sparse matrices are taken apart by chordal decomposition; they do
    not count.
    """
    if not isinstance(form, ConeForm) or not form.cones.psd:
        return 0.0
    used = form.b != 0
    used[form.A.indices] = True
    start = form.cones.zero + form.cones.nonneg + sum(form.cones.soc)
    entries = 0.0
    for order in form.cones.psd:
        t = svec_size(order)
        if np.mean(used[start : start + t]) > DENSE_FROM:
            entries += t * (t + 1) / 2
        start += t
    return entries
