"""The tables as printed (Liu et al., 2020)."""

from __future__ import annotations

import numpy as np

TABLE5_ACCURACY = np.array([
    [78.1, 81.2], [84.9, 87.9], [82.1, 83.6], [85.5, 86.7], [90.2, 93.0],
    [84.0, 87.0], [78.2, 78.9], [72.3, 74.5], [86.8, 87.6], [96.1, 96.4],
])  # fmt: skip
"""Test accuracy in per cent on the ten sets of Table 5, for tau = 0 and tau = 0.01."""
TABLE5_RANK = np.array([
    [340, 5], [109, 3], [68, 6], [68, 4], [61, 4], [81, 17], [15, 6], [34, 8], [29, 5], [5, 2],
])  # fmt: skip
"""Rank of F on the same sets, for tau = 0 and tau = 0.01."""
TABLE6 = np.array([
    [0.101, 0.097, 0.101, 0.091],  # bodyfat
    [0.512, 0.604, 0.678, 0.457],  # pyrim
    [0.248, 0.308, 0.261, 0.202],  # space
    [0.187, 0.182, 0.193, 0.173],  # mpg
])  # fmt: skip
"""Test error of BMKL, NW, SVR-CV and DANK on four of the eight sets of Table 6."""
