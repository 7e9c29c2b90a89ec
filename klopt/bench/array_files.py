"""The folder beside a store: one `.npz` file of float arrays for each run, and nothing followed.

A file is written whole (to another name, then renamed). The folder and its files are never links:
whatever stands in their place is refused, so nothing outside the folder is written or removed. A
file is read only if its digest is the one in its row, and parsed without trust even then: the sizes
that it tells are compared with its length before memory is asked for, and pickles are refused.
"""

from __future__ import annotations

import hashlib
import io
import math
import os
import stat
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np

from klopt.arrays import FloatArray
from klopt.bench.database import InvalidStore, damaged

__all__ = ["CERTIFICATE", "NO_CERTIFICATE", "TRACE", "ArrayFolder", "as_array", "as_bytes"]

TRACE = "trace"
"""The array that every run has."""
CERTIFICATE = "certificate"
"""The bytes of a run's certificate, as an array of floats that mean nothing."""
NO_CERTIFICATE = "no_certificate"
"""Those of the text that says why there is none."""

MAX_BYTES = 2**28
"""What the arrays of one run may take; those that would take more are not kept."""
UNFINISHED = "unfinished"
"""The name of a file that is being written."""
SIGNATURE = "store"
"""The name of the file that says whose folder it is."""
MAX_SIGNATURE_BYTES = 100


class ArrayFolder:
    """The folder of a store's arrays; it is made with the first file."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self.path = store.with_name(f"{store.name}.arrays")

    def check(self) -> None:
        """Refuse anything but a folder; none at all is fine."""
        with suppress(FileNotFoundError):
            if not stat.S_ISDIR(self.path.lstat().st_mode):
                raise InvalidStore(
                    f"{self.path} is no folder, or a link to one; the arrays of {self.store.name} "
                    "go there: remove what stands in its place, or name another store"
                )

    def make(self) -> None:
        """See that the folder is there."""
        self.check()
        self.path.mkdir(exist_ok=True)

    def sign(self, name: str) -> None:
        """Write down which store the folder belongs to."""
        self.make()
        self._replace(SIGNATURE, name.encode())

    def check_signature(self, name: object) -> None:
        """Refuse the folder of another store; one that does not say whose it is may be any."""
        self.check()
        file = self.path / SIGNATURE
        with suppress(FileNotFoundError):
            status = file.lstat()
            is_small = stat.S_ISREG(status.st_mode) and status.st_size <= MAX_SIGNATURE_BYTES
            if not is_small or file.read_bytes() != str(name).encode(errors="replace"):
                raise InvalidStore(
                    f"{self.path} belongs to another store than {self.store.name}, or the files "
                    f"{self.store.name}-wal and -shm do; put together what belongs together, or "
                    "name another file"
                )

    def write(self, key: str, arrays: Mapping[str, FloatArray]) -> str:
        """Keep the arrays of a run and return the digest of their file."""
        content = _archive(arrays)
        self.make()
        self._replace(f"{key}.npz", content)
        return _digest(content)

    def read(
        self, key: str, digest: str, wanted: Callable[[str], bool] = bool
    ) -> dict[str, FloatArray]:
        """Return the arrays of a run whose names are wanted, none where its file is gone."""
        file = self.path / f"{key}.npz"
        self.check()
        try:
            status = file.lstat()
        except FileNotFoundError:
            return {}
        if not stat.S_ISREG(status.st_mode):
            raise InvalidStore(damaged(self.store, f"{file} is no ordinary file"))
        if status.st_size > MAX_BYTES:
            raise InvalidStore(damaged(self.store, f"{file} has {status.st_size} bytes"))
        content = file.read_bytes()
        if _digest(content) != digest:
            raise InvalidStore(damaged(self.store, f"{file} is not the file that was written"))
        try:
            return _arrays(content, wanted)
        # A file that was made to match its digest may break the reader in any way.
        except Exception as error:
            where = f"{file} cannot be read: {type(error).__name__}: {error}"
            raise InvalidStore(damaged(self.store, where)) from error

    def _replace(self, name: str, content: bytes) -> None:
        """Write a file whole, or not at all."""
        unfinished = self.path / UNFINISHED
        # Left by a comparison that was killed; of a link, the link itself is removed.
        unfinished.unlink(missing_ok=True)
        try:
            with open(unfinished, "xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(unfinished, self.path / name)
        finally:
            unfinished.unlink(missing_ok=True)


def as_array(content: bytes) -> FloatArray:
    """Return bytes, with zeros after them, as an array that such a file can hold.

    >>> as_bytes(as_array(b"abc"))
    b'abc\\x00\\x00\\x00\\x00\\x00'
    """
    return np.frombuffer(content + bytes(-len(content) % 8), dtype=float)


def as_bytes(array: FloatArray) -> bytes:
    """Return the bytes of such an array."""
    return np.ascontiguousarray(array).tobytes()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def _archive(arrays: Mapping[str, FloatArray]) -> bytes:
    """The bytes of an `.npz` file with as many of the arrays as may be kept."""
    kept = {}
    left = MAX_BYTES
    for name, array in arrays.items():
        left -= array.nbytes
        if left >= 0:
            kept[name] = np.asarray(array, dtype=float, order="C")
    sink = io.BytesIO()
    np.savez_compressed(sink, **kept)  # type: ignore[arg-type]
    return sink.getvalue()


def _arrays(content: bytes, wanted: Callable[[str], bool]) -> dict[str, FloatArray]:
    """The arrays of an `.npz` file as `_archive` writes it."""
    arrays = {}
    left = MAX_BYTES
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for member in archive.infolist():
            left -= member.file_size
            if left < 0:
                raise ValueError(f"its arrays take more than {MAX_BYTES} bytes")
            name = member.filename.removesuffix(".npy")
            if name == TRACE or wanted(name):
                with archive.open(member) as file:
                    arrays[name] = _array(file.read(member.file_size))
    if TRACE not in arrays:
        raise ValueError(f"it holds no {TRACE!r}")
    return arrays


def _array(content: bytes) -> FloatArray:
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    if version != (1, 0):
        raise ValueError(f"version {version} of the .npy format; expected (1, 0)")
    shape, in_columns, kind = np.lib.format.read_array_header_1_0(stream)
    data = stream.read()
    if kind != np.dtype(float) or in_columns or 8 * math.prod(shape) != len(data):
        raise ValueError(f"an array {kind} of shape {shape} in {len(data)} bytes")
    return np.frombuffer(data, dtype=float).reshape(shape)
