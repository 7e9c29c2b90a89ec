"""One problem per file, importable by name and found by the registry.

A problem file holds, in this order:

1. its one sentence, then the mathematics in the notation of the code;
2. one public frozen class that inherits from `klopt.model.problem.Problem` and checks its data when
   it is built;
3. `formulations()`: the equivalent forms, each with the theorem that makes it so (`because`);
4. `bracket(point)`: an exactly feasible point and a dual bound, `lower <= optimum <= upper`;
5. `sample(rng, size)`: a random instance, from which the automatic tests are made.

It imports from the core and other problem files, never from solvers. Nothing else has to be edited:
the class is `klopt.problems.<Name>` as soon as the file exists, and `klopt.check_problem` tests it.
Files that start with an underscore are shared helpers.

>>> from klopt import problems
>>> problems.SoftMargin.__module__
'klopt.problems.soft_margin'
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

# Optional: gives type checkers and editors the signatures of the classes that klopt ships.
if TYPE_CHECKING:
    from klopt.problems.adaptive_kernel import AdaptiveKernel as AdaptiveKernel
    from klopt.problems.adaptive_kernel_regression import (
        AdaptiveKernelRegression as AdaptiveKernelRegression,
    )
    from klopt.problems.epsilon_margin import EpsilonMargin as EpsilonMargin
    from klopt.problems.logdet_pairs import LogDetPairs as LogDetPairs
    from klopt.problems.lp import LP as LP
    from klopt.problems.multiple_kernel import MultipleKernel as MultipleKernel
    from klopt.problems.nu_margin import NuMargin as NuMargin
    from klopt.problems.ordered_alignment import OrderedAlignment as OrderedAlignment
    from klopt.problems.qcqp import QCQP as QCQP
    from klopt.problems.saddle_point import SaddlePoint as SaddlePoint
    from klopt.problems.scg_logdet import ScgLogDet as ScgLogDet
    from klopt.problems.scg_ordered import ScgOrdered as ScgOrdered
    from klopt.problems.sdp import SDP as SDP
    from klopt.problems.similarity_kernel import SimilarityKernel as SimilarityKernel
    from klopt.problems.similarity_kernels import SimilarityKernels as SimilarityKernels
    from klopt.problems.similarity_spectra import SimilaritySpectra as SimilaritySpectra
    from klopt.problems.simplex_program import SimplexProgram as SimplexProgram
    from klopt.problems.soft_margin import SoftMargin as SoftMargin
    from klopt.problems.spectral_alignment import SpectralAlignment as SpectralAlignment
    from klopt.problems.spectral_rls import SpectralRls as SpectralRls

_CLASS = re.compile(r"^class ([A-Z]\w*)", re.MULTILINE)


@cache
def _homes() -> dict[str, str]:
    """The module of each public class; files are read, so that a lookup imports only its own."""
    homes = {}
    for folder in __path__:
        for file in sorted(Path(folder).glob("[!_]*.py")):
            for name in _CLASS.findall(file.read_text(encoding="utf-8")):
                homes[name] = file.stem
    return homes


def __getattr__(name: str) -> Any:
    """Find a problem class when it is first asked for; from then on it is a plain attribute."""
    if name.startswith("_") or name not in _homes():
        raise AttributeError(
            f"module {__name__!r} has no problem {name!r}; there are: {', '.join(sorted(_homes()))}"
        )
    module = import_module(f"{__name__}.{_homes()[name]}")
    found = getattr(module, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """The problems and nothing else: neither helpers of this file nor modules that are loaded."""
    return sorted([*_homes(), *(name for name in globals() if name.startswith("__"))])
