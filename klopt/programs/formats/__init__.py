"""Files of optimisation problems: MPS, LP, SDPA, CBF and NPZ, read and written by suffix."""

from __future__ import annotations

from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

from klopt.errors import InvalidProblem
from klopt.programs.formats.model import Model

__all__ = ["read", "write"]

# suffix -> (module that reads, module that writes), imported when first used
_SUFFIXES = {
    ".mps": ("mps", "mps_write"),
    ".lp": ("lp", "lp"),
    ".dat-s": ("sdpa", "sdpa"),
    ".cbf": ("cbf", "cbf_write"),
    ".npz": ("npz", "npz"),
}


def read(path: str | PathLike[str], exact: bool = False) -> Model:
    """Return the model in a file; errors name the file and the line.

    With `exact`, the decimals of the file are kept as rational numbers.
    """
    place = Path(path)
    module = _module(place, writes=False)
    # The numbers of an .npz file are float64: they are exact as they are.
    is_binary = place.name.lower().endswith(".npz")
    if exact and not is_binary and not hasattr(module, "read_exact"):
        raise InvalidProblem(
            f"{place}: decimals are kept exactly from .mps files only; "
            "convert the file, or read it without exact=True"
        )
    if not place.is_file():
        raise FileNotFoundError(f"there is no file {place}")
    model: Model = module.read_exact(place) if exact and not is_binary else module.read(place)
    return model


def write(path: str | PathLike[str], model: Model) -> None:
    """Write a model without loss; what the format cannot hold is refused."""
    place = Path(path)
    _module(place, writes=True).write(place, model)


def _module(path: Path, writes: bool) -> Any:
    for suffix, names in _SUFFIXES.items():
        if path.name.lower().endswith(suffix):
            return import_module(f"klopt.programs.formats.{names[writes]}")
    raise InvalidProblem(f"{path}: unknown kind of file; klopt knows {', '.join(_SUFFIXES)}")
