"""Programs as NumPy archives (`.npz`), without pickles.

quadratic   minimise x'Px/2 + q'x + r subject to l <= Ax <= u: q, r, l, u, and P and A as CSC parts
            (`P_data, P_indices, P_indptr, P_shape`); if the last n rows of A are the identity,
            they are bounds of the variables
further     of programs that klopt writes: `sense` (-1 for max), `S` with `b_soc` and `soc`
            (second-order cones), `Q0, Q0_q, Q0_r, Q1, ..` (quadratic constraints), `columns` and
            `rows` (names)
SeDuMi      minimise c'x, Ax = b, x in K: `K_f` free, then `K_l` nonnegative entries, then cones of
            sizes `K_q`
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import (
    MAX_INDEX,
    SparseMatrix,
    csc,
    require_shape,
    sparse_of_parts,
    vector,
)
from klopt.errors import InvalidProblem
from klopt.programs.formats.archive import Arrays, load_arrays
from klopt.programs.formats.model import Model, Names, QuadraticRow
from klopt.programs.formats.source import SourceFile
from klopt.programs.user_input import cone_sizes

__all__ = ["KEEPS_DECIMALS", "read", "write"]

KEEPS_DECIMALS = False

_PARTS = ("data", "indices", "indptr", "shape")


def read(source: SourceFile) -> Model:
    """Return the model in an archive of either layout."""
    arrays = load_arrays(source)
    try:
        return _sedumi(source, arrays) if "K_q" in arrays else _quadratic(arrays)
    except KeyError as error:
        raise source.malformed(None, f"the array {error} is missing") from None


def write(path: Path, model: Model) -> None:
    """Write a program without semidefinite blocks."""
    if model.blocks or model.exp or model.power:
        raise InvalidProblem(
            f"{path}: .npz files hold no semidefinite blocks, exponential and power cones; write .dat-s or .cbf"
        )
    n = model.c.size
    P = model.P if model.P is not None else sparse.csc_array((n, n))
    arrays: dict[str, npt.NDArray[Any]] = {
        **_parts("P", P),
        **_parts("A", sparse.vstack([model.A, sparse.eye_array(n)], format="csc")),
        "q": model.c,
        "r": np.array(model.offset),
        "l": np.concatenate((model.row_lower, model.lower)),
        "u": np.concatenate((model.row_upper, model.upper)),
    }
    if model.sense == "max":
        arrays["sense"] = np.array(-1)
    if model.names is not None:
        arrays |= {
            "columns": np.array(model.names.columns),
            "rows": np.array((*model.names.ub, *model.names.eq)),
        }
    if model.soc and model.A_soc is not None and model.b_soc is not None:
        arrays |= {**_parts("S", model.A_soc), "b_soc": model.b_soc, "soc": np.array(model.soc)}
    for index, row in enumerate(model.quadratics):
        arrays |= {
            **_parts(f"Q{index}", row.P),
            f"Q{index}_q": row.q,
            f"Q{index}_r": np.array(row.r),
        }
    with path.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def _quadratic(arrays: Arrays) -> Model:
    A = _matrix(arrays, "A")
    m, n = A.shape
    c = vector("q", arrays["q"], n)
    # A last block that is the identity holds the bounds of the variables.
    bounded = m >= n and abs(A.tocsr()[m - n :] - sparse.eye_array(n)).nnz == 0
    rows = m - n if bounded else m
    low = vector("l", arrays["l"], m, infinite=True)
    high = vector("u", arrays["u"], m, infinite=True)
    P = _matrix(arrays, "P", (n, n))
    quadratics: list[QuadraticRow] = []
    while f"Q{len(quadratics)}_q" in arrays:
        name = f"Q{len(quadratics)}"
        row = QuadraticRow(
            _matrix(arrays, name, (n, n)),
            vector(f"{name}_q", arrays[f"{name}_q"], n),
            _number(arrays, f"{name}_r"),
        )
        quadratics.append(row)
    A_soc = b_soc = None
    soc: tuple[int, ...] = ()
    if "soc" in arrays:
        A_soc = _matrix(arrays, "S")
        b_soc = vector("b_soc", arrays["b_soc"], A_soc.shape[0])
        soc = cone_sizes("soc", _whole(arrays, "soc"), b_soc.size)
    return Model(
        c=c,
        A=csc("A", A.tocsr()[:rows]),
        row_lower=low[:rows],
        row_upper=high[:rows],
        lower=low[rows:] if bounded else np.full(n, -np.inf),
        upper=high[rows:] if bounded else np.full(n, np.inf),
        sense="max" if _number(arrays, "sense", 1.0) < 0 else "min",
        offset=_number(arrays, "r", 0.0),
        P=P if P.nnz else None,
        names=_names(arrays, n, rows),
        quadratics=tuple(quadratics),
        A_soc=A_soc,
        b_soc=b_soc,
        soc=soc,
    )


def _names(arrays: Arrays, columns: int, rows: int) -> Names | None:
    if "columns" not in arrays:
        return None
    names = Names(tuple(arrays["columns"].ravel().tolist()), tuple(arrays["rows"].ravel().tolist()))
    Names.check(names, columns, rows, 0)
    return names


def _sedumi(source: SourceFile, arrays: Arrays) -> Model:
    if np.size(arrays.get("K_s", ())):
        raise source.malformed(
            None,
            "semidefinite cones of a SeDuMi archive are not read; write it as .dat-s or .cbf",
        )
    A = _matrix(arrays, "A")
    m, n = A.shape
    b = vector("b", arrays["b"], m)
    c = vector("c", arrays["c"], n)
    (free,) = _whole(arrays, "K_f", 1)
    (linear,) = _whole(arrays, "K_l", 1)
    soc = tuple(_whole(arrays, "K_q"))
    if free + linear + sum(soc) != c.size:
        raise source.malformed(
            None, f"the cones have {free + linear + sum(soc)} entries, c has {c.size}"
        )
    # x in K itself: nonnegative entries are bounds, the rest is b_soc - A_soc x with A_soc = -I.
    lower = np.full(c.size, -np.inf)
    lower[free : free + linear] = 0.0
    cones = csc("A_soc", -sparse.eye_array(c.size, format="csr")[free + linear :])
    upper = np.full(c.size, np.inf)
    return Model(c, A, b, b, lower, upper, A_soc=cones, b_soc=np.zeros(sum(soc)), soc=soc)


def _number(arrays: Arrays, name: str, default: float | None = None) -> float:
    """A finite number; KeyError where it is missing and there is no default."""
    if default is not None and name not in arrays:
        return default
    return float(vector(name, arrays[name].ravel(), 1)[0])


def _whole(arrays: Arrays, name: str, size: int | None = None) -> list[int]:
    """Whole numbers that are not negative."""
    values = vector(name, arrays[name].ravel(), size)
    odd = np.flatnonzero((values != np.floor(values)) | (values < 0) | (values > MAX_INDEX))
    if odd.size:
        raise InvalidProblem(
            f"{name}[{odd[0]}] is {values[odd[0]]:g}; expected a whole number from 0 to {MAX_INDEX}"
        )
    return [int(value) for value in values.tolist()]


def _parts(name: str, value: Any) -> dict[str, npt.NDArray[Any]]:
    matrix = sparse.csc_array(value)
    return {f"{name}_{part}": np.asarray(getattr(matrix, part)) for part in _PARTS}


def _matrix(
    arrays: Arrays, name: str, shape: tuple[int | None, int | None] = (None, None)
) -> SparseMatrix:
    data, indices, indptr, sides = (arrays[f"{name}_{part}"] for part in _PARTS)
    found = sparse_of_parts(name, "csc", data, indices, indptr, sides)
    require_shape(name, found.shape, shape)
    return found
