"""The names of `klopt.model.functions.saddle`, where other folders import them from."""

from __future__ import annotations

from klopt.model.functions.saddle import ProximalStep as Inner, Splitting

__all__ = ["Inner", "Splitting"]
