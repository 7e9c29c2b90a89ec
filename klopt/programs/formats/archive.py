"""Reads the arrays of a NumPy archive (`.npz`) that nobody vouches for.

What an array takes is read from the archive's directory and from the array's own header, and
compared with what is allowed, before anything is decompressed. Only numbers and texts are read,
never pickles.
"""

from __future__ import annotations

import math
import tokenize
import warnings
import zipfile
import zlib
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from klopt.arrays import require_memory
from klopt.programs.formats.source import SourceFile

__all__ = ["Arrays", "load_arrays"]

CHUNK_BYTES = 1 << 22
"""How much is decompressed between two looks at the clock."""
COPIES = 3.0
"""How often the arrays are in memory at once while a problem is made of them."""
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    tokenize.TokenError,
    EOFError,
    KeyError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)
Arrays = dict[str, npt.NDArray[Any]]


def load_arrays(source: SourceFile) -> Arrays:
    """Return the arrays of an archive by their names."""
    with open(source.descriptor(), "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                return _load(source, archive)
        except _DAMAGE as error:
            # InvalidProblem is a ValueError, too.
            if str(source.path) in str(error):
                raise
            raise source.malformed(None, f"not an archive of plain arrays: {error}") from None


def _load(source: SourceFile, archive: zipfile.ZipFile) -> Arrays:
    members = [item for item in archive.infolist() if item.filename.endswith(".npy")]
    total = sum(item.file_size for item in members)
    require_memory(
        COPIES * total, f"{source.path}, whose {len(members)} arrays take {total} bytes,"
    )
    found: Arrays = {}
    for item in members:
        name = item.filename.removesuffix(".npy")
        if name in found:
            raise source.malformed(None, f"the array {name[:60]!r} is there twice")
        with archive.open(item) as member:
            found[name] = _array(source, name[:60], member, item.file_size)
    return found


def _array(source: SourceFile, name: str, member: Any, stored: int) -> npt.NDArray[Any]:
    shape, by_columns, dtype = _header(source, name, member)
    if dtype.kind not in "biufU":
        raise source.malformed(
            None, f"the array {name!r} has dtype {dtype}; expected numbers or texts, no pickles"
        )
    needed = math.prod(shape) * dtype.itemsize
    held = stored - member.tell()
    if needed != held or min(shape, default=0) < 0:
        raise source.malformed(
            None,
            f"the array {name!r} of shape {shape} and dtype {dtype} takes {needed} bytes, but "
            f"{held} are stored",
        )
    content = bytearray(needed)
    view = memoryview(content)
    done = 0
    while done < needed:
        source.check_time()
        chunk = member.read(min(CHUNK_BYTES, needed - done))
        if not chunk:
            raise source.malformed(None, f"the array {name!r} ends before its last entry")
        view[done : done + len(chunk)] = chunk
        done += len(chunk)
    # The end of a member is where its checksum is compared.
    member.read(1)
    array = np.frombuffer(content, dtype=dtype)
    return array.reshape(shape, order="F" if by_columns else "C")


def _header(
    source: SourceFile, name: str, member: BinaryIO
) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(member)
    if version not in ((1, 0), (2, 0)):
        raise source.malformed(None, f"the array {name!r} has a header of version {version}")
    read = np.lib.format.read_array_header_1_0
    if version == (2, 0):
        read = np.lib.format.read_array_header_2_0
    # NumPy warns of headers that Python 2 wrote, or that look so.
    with warnings.catch_warnings(action="ignore"):
        return read(member)
