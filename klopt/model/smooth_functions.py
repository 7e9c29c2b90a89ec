"""The names of `klopt.model.functions.smooth`, where other folders import them from."""

from __future__ import annotations

from klopt.model.functions.protocols import HessianOperator
from klopt.model.functions.smooth import (
    DenseHessian,
    LocalModel,
    MatrixFreeFunction,
    SmoothFunction,
    StartModel,
)

__all__ = [
    "DenseHessian",
    "HessianOperator",
    "LocalModel",
    "MatrixFreeFunction",
    "SmoothFunction",
    "StartModel",
]
