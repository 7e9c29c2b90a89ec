"""Functions that are minimised over simple sets, and couplings of saddle points.

    protocols    what a function answers: value, gradient, products with its Hessian
    quadratics   c'x,  x'Hx/2 + c'x,  z'Kz/2 + c'x with z the signed sums of x
    oracle       a user's own function, by value and (sub)gradient
    smooth       functions with a second-order model at every point
    dual         dual functions of many constraints, by coordinates
    saddle       phi(x, y), convex in x and concave in y

A function says what it is by one `Feature`. What it hands out and keeps is read-only.
"""

from __future__ import annotations

from klopt.arrays import IntArray
from klopt.model.functions.dual import CoordinateState, DualFunction, Evaluation
from klopt.model.functions.oracle import Oracle
from klopt.model.functions.protocols import HessianOperator, Objective, QuadraticLike
from klopt.model.functions.quadratics import KernelQuadratic, Linear, Quadratic
from klopt.model.functions.saddle import Bilinear, ProximalStep, SaddleOracle, Splitting
from klopt.model.functions.smooth import (
    DenseHessian,
    LocalModel,
    MatrixFreeFunction,
    SmoothFunction,
    StartModel,
)

__all__ = [
    "Bilinear",
    "CoordinateState",
    "DenseHessian",
    "DualFunction",
    "Evaluation",
    "HessianOperator",
    "IntArray",
    "KernelQuadratic",
    "Linear",
    "LocalModel",
    "MatrixFreeFunction",
    "Objective",
    "Oracle",
    "ProximalStep",
    "Quadratic",
    "QuadraticLike",
    "SaddleOracle",
    "SmoothFunction",
    "Splitting",
    "StartModel",
]
