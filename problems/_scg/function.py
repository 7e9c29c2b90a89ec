"""The kernel of SCG-LDK as a function of the small array, H or C, that a solution holds.

    by groups     K = M + gamma B H B',  M = (I - X) / gamma = K0 X,  Q = -gamma (X - V H V')
    by features   K = Phi C C'Phi'

where K = K0 + K0 Q K0 carries the kernel over to new points (`klopt.kernels.out_of_sample`), and
`proof` has the notation.
"""

from __future__ import annotations

import numpy as np

from klopt.arrays import FloatArray, require_memory
from klopt.kernels.side_information import SideGraph
from klopt.problems._scg.proof import GroupObjective, ShiftedInverse, mirror_upper

__all__ = [
    "MIN_DIFFERENCE",
    "feature_kernel",
    "feature_products",
    "group_change",
    "group_kernel",
    "group_products",
    "solution_change",
]

MIN_DIFFERENCE = 0.1
"""Below this gamma K0 the difference I - X has lost digits that the product K0 X keeps."""


def group_kernel(inverse: ShiftedInverse, objective: GroupObjective, H: FloatArray) -> FloatArray:
    """Return M + gamma B H B', exactly symmetric."""
    from scipy.linalg.blas import dsyrk

    gamma = inverse.gamma
    if gamma * float(inverse.K0.diagonal().max()) < MIN_DIFFERENCE:
        K = inverse.K0 @ inverse.X
        K = (K + K.T) / 2
    else:
        K = inverse.X / -gamma
        K.flat[:: len(K) + 1] += 1 / gamma

    # Symmetric updates take half the time of general ones, one for each sign of an eigenvalue.
    values, vectors = np.linalg.eigh(H)
    half = (objective.B @ vectors) * np.sqrt(gamma * np.abs(values))
    for sign in (1.0, -1.0):
        part = half[:, np.sign(values) == sign]
        if part.shape[1]:
            dsyrk(sign, part, beta=1.0, c=K.T, lower=1, overwrite_c=1)
    mirror_upper(K)
    return K


def group_products(
    inverse: ShiftedInverse, objective: GroupObjective, H: FloatArray, columns: FloatArray
) -> FloatArray:
    """Return K times the columns; K is not formed.

    Parameters
    ----------
    inverse, objective
        X, and B with its gamma.
    H
        The solution.
    columns
        What K is multiplied by.
    """
    M_columns = inverse.K0 @ (inverse.X @ columns)
    B = objective.B
    return np.asarray(M_columns + B @ ((inverse.gamma * H) @ (B.T @ columns)))


def group_change(inverse: ShiftedInverse, objective: GroupObjective, H: FloatArray) -> FloatArray:
    """Return Q = -gamma (X - V H V')."""
    Q = objective.V @ H @ objective.V.T
    return np.asarray(inverse.gamma * ((Q + Q.T) / 2 - inverse.X))


def feature_kernel(Phi: FloatArray, C: FloatArray) -> FloatArray:
    """Return Phi CC'Phi'."""
    Psi = Phi @ C
    return np.asarray(Psi @ Psi.T)


def feature_products(Phi: FloatArray, C: FloatArray, columns: FloatArray) -> FloatArray:
    """Return Phi CC'Phi' times the columns."""
    return np.asarray(Phi @ (C @ (C.T @ (Phi.T @ columns))))


def solution_change(K0: FloatArray, graph: SideGraph, gamma: float) -> FloatArray:
    """Return Q = -gamma (I + gamma S K0)^-1 S, that of the solution."""
    n = len(K0)
    require_memory(32.0 * n * n, f"the change of a kernel of {n} points")
    one = np.eye(n)
    Q = np.linalg.solve(one + gamma * graph.apply(K0), -gamma * graph.apply(one))
    return (Q + Q.T) / 2
