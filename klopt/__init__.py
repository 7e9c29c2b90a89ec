"""Kernel learning as convex optimisation: a backend makes a claim, klopt issues the verdict.

>>> import klopt
>>> problem = klopt.problems.LP(c=[1, 1], A_ub=[[-1, -2]], b_ub=[-2])
>>> result = klopt.solve(problem)
>>> print(result.verdict.name, round(result.value, 6))
OPTIMAL 1.0

Every public name is looked up when it is first used: `import klopt` itself loads nothing, not even NumPy.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from klopt import learners as learners, problems as problems
    from klopt.backend import Answer as Answer, Backend as Backend, Settings as Settings, Step as Step, Stop as Stop
    from klopt.certify import Certificate as Certificate, Verdict as Verdict
    from klopt.compare import Comparison as Comparison, compare as compare
    from klopt.cones import Cones as Cones, Feature as Feature
    from klopt.conformance import (
        Check as Check,
        Status as Status,
        check_backend as check_backend,
        check_problem as check_problem,
    )
    from klopt.errors import (
        InvalidProblem as InvalidProblem,
        InvalidSettings as InvalidSettings,
        KloptError as KloptError,
        NoRoute as NoRoute,
        NotCertified as NotCertified,
        UncertifiedFit as UncertifiedFit,
    )
    from klopt.forms import (
        ConeForm as ConeForm,
        ExplicitForm as ExplicitForm,
        SaddleForm as SaddleForm,
        SimplexForm as SimplexForm,
        Start as Start,
    )
    from klopt.gram import Gram as Gram
    from klopt.objectives import (
        KernelQuadratic as KernelQuadratic,
        Linear as Linear,
        Oracle as Oracle,
        Quadratic as Quadratic,
    )
    from klopt.plan import Plan as Plan, Refusal as Refusal, Route as Route, plan as plan
    from klopt.problem import Bracket as Bracket, Formulation as Formulation, Point as Point, Problem as Problem
    from klopt.registry import backends as backends, register as register
    from klopt.result import Result as Result
    from klopt.sets import (
        BoxPlane as BoxPlane,
        OrderedSimplex as OrderedSimplex,
        Product as Product,
        Simplex as Simplex,
        Spectrahedron as Spectrahedron,
    )
    from klopt.solve import solve as solve
    from klopt.theorems.claim import theorem as theorem
    from klopt.verify import verify as verify

    __version__: str

_FOR_USERS = {
    "backend": ("Backend",),
    "certify": ("Certificate", "Verdict"),
    "compare": ("Comparison", "compare"),
    "conformance": ("check_backend", "check_problem"),
    "errors": ("InvalidProblem", "InvalidSettings", "KloptError", "NoRoute", "NotCertified", "UncertifiedFit"),
    "gram": ("Gram",),
    "plan": ("Plan", "plan"),
    "problem": ("Point", "Problem"),
    "registry": ("backends", "register"),
    "result": ("Result",),
    "solve": ("solve",),
    "theorems.claim": ("theorem",),
    "verify": ("verify",),
}
_FOR_WRITERS = {  # what a new backend or problem is made of
    "backend": ("Answer", "Settings", "Step", "Stop"),
    "cones": ("Cones", "Feature"),
    "conformance": ("Check", "Status"),
    "forms": ("ConeForm", "ExplicitForm", "SaddleForm", "SimplexForm", "Start"),
    "objectives": ("KernelQuadratic", "Linear", "Oracle", "Quadratic"),
    "plan": ("Refusal", "Route"),
    "problem": ("Bracket", "Formulation"),
    "sets": ("BoxPlane", "OrderedSimplex", "Product", "Simplex", "Spectrahedron"),
}
_HOMES = {name: module for group in (_FOR_USERS, _FOR_WRITERS) for module, names in group.items() for name in names}

if not TYPE_CHECKING:  # a type checker reads the imports above: it knows each name, and a wrong one is an error
    __all__ = sorted([name for names in _FOR_USERS.values() for name in names] + ["learners", "problems"])

    def __getattr__(name: str) -> Any:
        if name in _HOMES:
            value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        elif name in ("learners", "problems"):
            value = import_module(f"{__name__}.{name}")
        elif name == "__version__":
            value = _version()
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        """What is public: neither the helpers of this file nor modules that happen to be loaded."""
        return sorted({*__all__, *_HOMES, *(name for name in globals() if name.startswith("__")), "__version__"})


class _Package(ModuleType):
    """This package, where `klopt.solve` stays the function although a module of that name exists.

    The import system binds a freshly loaded submodule to its parent under its own name; for the verbs
    (`solve`, `plan`, `compare`) that would put the module where the user expects the function.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(value, ModuleType) and _HOMES.get(name) == name:
            value = getattr(value, name)
        super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        """A function of the user's that says `klopt.Answer` goes to a child process with this package as a global."""
        return import_module, (__name__,)


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("klopt")
    except PackageNotFoundError:  # run from a checkout that was never installed
        return "0+unknown"


def _see_the_neighbours() -> None:
    """In a checkout `problems/` and `solvers/` lie beside this folder, not in it: look for them there.

    Without this, Python started in the repository finds `./klopt` before an installed wheel and
    misses `klopt.problems`.
    """
    here = os.path.dirname(os.path.abspath(__file__))
    beside = os.path.dirname(here)
    marks = ("pyproject.toml", os.path.join("problems", "__init__.py"), os.path.join("solvers", "__init__.py"))
    inside = os.path.isdir(os.path.join(here, "problems"))
    if not inside and all(os.path.isfile(os.path.join(beside, mark)) for mark in marks):
        __path__.append(beside)


_see_the_neighbours()
sys.modules[__name__].__class__ = _Package
