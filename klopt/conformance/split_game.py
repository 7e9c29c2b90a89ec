"""A game solved on paper that splits into two proximal steps.

    minimise  h(x - 3) + |x| / 2   over -5 <= x <= 5,     h(t) = max over |z| <= 1 of  z t - z^2 / 2

h is Huber's function, and |x| / 2 = max over |w| <= 1/2 of w x. The optimum is 1.375, at x = 2.5.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.forms import SaddleForm
from klopt.model.sets import BoxPlane, Product
from klopt.model.smooth_functions import LocalModel, SmoothFunction
from klopt.model.splitting import Inner, Splitting

__all__ = ["huber_and_modulus"]


def huber_and_modulus() -> SaddleForm:
    """Return the game."""
    coupling = Splitting(
        _value, _gradient_x, _gradient_y, _huber_step, _modulus_step, np.zeros(1), 1.0
    )
    x, z, w = (BoxPlane(np.array([-reach]), np.array([reach])) for reach in (5.0, 1.0, 0.5))
    return SaddleForm(coupling, x, Product((z, w)))


def _value(x: FloatArray, y: FloatArray) -> float:
    z, w = y
    return float(z * (x[0] - 3) - z**2 / 2 + w * x[0])


def _gradient_x(x: FloatArray, y: FloatArray) -> FloatArray:
    return y[:1] + y[1:]


def _gradient_y(x: FloatArray, y: FloatArray) -> FloatArray:
    return np.array([x[0] - 3 - y[0], x[0]])


def _huber_step(v: FloatArray, sigma: float) -> Inner:
    return Inner(SmoothFunction(1, partial(_huber_dual, v, sigma)), lambda z: v - z / sigma)


def _huber_dual(v: FloatArray, sigma: float, z: FloatArray) -> LocalModel:
    bend = np.array([[1 + 1 / sigma]])
    return LocalModel(
        float(bend[0, 0] * z[0] ** 2 / 2 - z[0] * (v[0] - 3)), bend[0] * z - (v - 3), lambda: bend
    )


def _modulus_step(v: FloatArray, sigma: float) -> tuple[FloatArray, FloatArray]:
    w = np.clip(sigma * v, -0.5, 0.5)
    return v - w / sigma, w
