"""Files of optimisation problems: MPS, LP, SDPA, CBF and NPZ, read and written by suffix."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

from klopt.errors import InvalidProblem
from klopt.programs.formats.model import Model
from klopt.programs.formats.source import reading

__all__ = ["opened", "read", "write"]

# suffix -> (module that reads, module that writes), imported when first used
_SUFFIXES = {
    ".mps": ("mps", "mps_write"),
    ".lp": ("lp", "lp_write"),
    ".dat-s": ("sdpa", "sdpa"),
    ".cbf": ("cbf", "cbf_write"),
    ".npz": ("npz", "npz"),
}


def read(
    path: str | PathLike[str],
    exact: bool = False,
    *,
    time_limit: float | None = None,
    memory_limit: float | None = None,
) -> Model:
    """Return the model in a file; errors name the file and the line.

    Parameters
    ----------
    path
        Where the file is; its suffix says how it is read.
    exact
        Whether the decimals of the file are kept as rational numbers.
    time_limit, memory_limit
        The seconds that reading may take and the bytes that it may ask for. By default there is no
        limit of time, and that of memory is KLOPT_MEMORY_LIMIT or half of what is free.
    """
    with opened(path, exact, time_limit=time_limit, memory_limit=memory_limit) as model:
        return model


@contextmanager
def opened(
    path: str | PathLike[str],
    exact: bool = False,
    *,
    time_limit: float | None = None,
    memory_limit: float | None = None,
) -> Iterator[Model]:
    """Read a file, as `read` does, for a block that makes a problem of the model.

    What goes wrong in the block is said of the file, too.
    """
    place = Path(path)
    module = _module(place, writes=False)
    # The numbers of an .npz file are float64: they are exact as they are.
    decimal = exact and not place.name.lower().endswith(".npz")
    if decimal and not module.KEEPS_DECIMALS:
        raise InvalidProblem(
            f"{place}: decimals are kept exactly from .mps and .lp files only; "
            "convert the file, or read it without exact=True"
        )
    if not place.exists():
        raise FileNotFoundError(f"there is no file {place}")
    with reading(place, decimal, time_limit, memory_limit) as source:
        model = module.read(source)
        source.check_time()
        yield model


def write(path: str | PathLike[str], model: Model) -> None:
    """Write a model without loss; what the format cannot hold is refused."""
    place = Path(path)
    _module(place, writes=True).write(place, model)


def _module(path: Path, writes: bool) -> Any:
    for suffix, names in _SUFFIXES.items():
        if path.name.lower().endswith(suffix):
            return import_module(f"klopt.programs.formats.{names[writes]}")
    raise InvalidProblem(f"{path}: unknown kind of file; klopt knows {', '.join(_SUFFIXES)}")
