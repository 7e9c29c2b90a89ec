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


def read(path: str | PathLike[str]) -> Model:
    """Return the model in a file; errors name the file and the line."""
    place = Path(path)
    module = _module(place, writes=False)
    if not place.is_file():
        raise FileNotFoundError(f"there is no file {place}")
    model: Model = module.read(place)
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
