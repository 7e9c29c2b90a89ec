"""scikit-learn estimators over klopt's problems, each with the certified result of what it learned.

    Harmonic, LapRLS, LapSVM    smooth functions on a graph of the points; nothing is certified
    OSK, ScgOSK, SKL            kernels on a graph of the points, labels -1 unlabelled; transductive
    LDK, ScgLDK                 kernel functions near a given one, labels -1 unlabelled
    MklSVC, MklSVR, MklRidge    models with a mixture of kernels (`klopt.learners.kernels`)
    ESKL, EMKL, REKL            models with kernels learned from (indefinite) similarities
    SimilarityFeatures          similarities to the training points as features, for any model
    DankSVC, DankSVR            models with a kernel learned entry by entry

>>> from klopt import learners
>>> learners.ScgLDK(gamma=10.0)
ScgLDK(gamma=10.0)

Every name is looked up when it is first used: scikit-learn is loaded then, not by `import klopt`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from klopt.learners import (
        kernels as kernels,
        large as large,
        paths as paths,
        selection as selection,
    )
    from klopt.learners.adaptive import DankSVC as DankSVC, DankSVR as DankSVR
    from klopt.learners.logdet import LDK as LDK, ScgLDK as ScgLDK
    from klopt.learners.manifold import Harmonic as Harmonic, LapRLS as LapRLS, LapSVM as LapSVM
    from klopt.learners.mixtures import (
        SimilarityFeatures as SimilarityFeatures,
        aligned_weights as aligned_weights,
        alternating_weights as alternating_weights,
    )
    from klopt.learners.multiple import MklRidge as MklRidge, MklSVC as MklSVC, MklSVR as MklSVR
    from klopt.learners.ordered import OSK as OSK, ScgOSK as ScgOSK
    from klopt.learners.similarity import EMKL as EMKL, ESKL as ESKL, REKL as REKL
    from klopt.learners.spectral import SKL as SKL

_NAMES = {
    "adaptive": ("DankSVC", "DankSVR"),
    "logdet": ("LDK", "ScgLDK"),
    "manifold": ("Harmonic", "LapRLS", "LapSVM"),
    "mixtures": ("SimilarityFeatures", "aligned_weights", "alternating_weights"),
    "multiple": ("MklRidge", "MklSVC", "MklSVR"),
    "ordered": ("OSK", "ScgOSK"),
    "similarity": ("EMKL", "ESKL", "REKL"),
    "spectral": ("SKL",),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}

_MODULES = ("kernels", "large", "paths", "selection")

__all__ = sorted([*_HOMES, *_MODULES])


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(
            f"module {__name__!r} has no learner {name!r}; there are: {', '.join(sorted(_HOMES))}"
        )
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
