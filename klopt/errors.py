"""The exceptions that klopt raises and the warnings that it gives.

Bad *calls* raise; bad *outcomes* are returned. Every message says what is wrong, where
(array, index, value) and what to do next.
"""

from __future__ import annotations

__all__ = [
    "InvalidProblem",
    "InvalidSettings",
    "KloptError",
    "NoRoute",
    "NotCertified",
    "UncertifiedFit",
    "UnhelpfulKernel",
]


class KloptError(Exception):
    """The root of everything klopt raises on purpose."""


class InvalidProblem(KloptError, ValueError):
    """The data of a problem or a form cannot mean anything; raised before any backend runs."""


class InvalidSettings(KloptError, ValueError):
    """A setting is out of range, unknown, or cannot be honoured by the backend it is meant for."""


class NoRoute(KloptError, RuntimeError):
    """No installed backend takes any formulation of the problem; the text names what is missing."""


class NotCertified(KloptError, RuntimeError):
    """`Result.require()` met an outcome that is not proven; the text is `Result.explain()`."""


class UncertifiedFit(UserWarning):
    """A learner was fitted, but the optimum of its problem is not proven; the text says why."""


class UnhelpfulKernel(UserWarning):
    """A learned kernel does nothing, or only memorises; the text says which and what to change."""
