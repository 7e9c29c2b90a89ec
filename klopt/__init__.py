"""Kernel learning as convex optimisation: a backend makes a claim, klopt issues the verdict.

>>> import klopt
>>> problem = klopt.problems.LP(c=[1, 1], A_ub=[[-1, -2]], b_ub=[-2])
>>> result = klopt.solve(problem)
>>> print(result.verdict.name, round(result.value, 6))
OPTIMAL 1.0

The public names stand in `__init__.pyi`. Each is imported when it is first used: `import klopt`
itself loads nothing, not even NumPy.
"""

from __future__ import annotations

import os

import lazy_loader

_lazy_attribute, _lazy_dir, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    if name == "__version__":
        return _version()
    try:
        return _lazy_attribute(name)
    except AttributeError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def __dir__() -> list[str]:
    """What is public: neither the helpers of this file nor modules that happen to be loaded."""
    return sorted({*__all__, "__version__", *(name for name in globals() if name.startswith("__"))})


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("klopt")
    except PackageNotFoundError:  # run from a checkout that was never installed
        return "0+unknown"


def _find_sibling_packages() -> None:
    """In a checkout `problems/`, `solvers/` and `checker/` lie beside this folder, not in it: look for them there.

    Without this, Python started in the repository finds `./klopt` before an installed wheel and
    misses `klopt.problems`.
    """
    here = os.path.dirname(os.path.abspath(__file__))
    beside = os.path.dirname(here)
    marks = (
        "pyproject.toml",
        os.path.join("problems", "__init__.py"),
        os.path.join("solvers", "__init__.py"),
    )
    inside = os.path.isdir(os.path.join(here, "problems"))
    if not inside and all(os.path.isfile(os.path.join(beside, mark)) for mark in marks):
        __path__.append(beside)


_find_sibling_packages()
