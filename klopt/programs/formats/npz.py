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

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import SparseMatrix, csc
from klopt.errors import InvalidProblem
from klopt.programs.formats.model import Model, Names, QuadraticRow, malformed

__all__ = ["read", "write"]

_PARTS = ("data", "indices", "indptr", "shape")


def read(path: Path) -> Model:
    """Return the model in an archive of either layout."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (ValueError, OSError, zipfile.BadZipFile, EOFError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise malformed(path, None, f"not an archive of plain arrays: {error}") from None
    try:
        return _sedumi(path, arrays) if "K_q" in arrays else _quadratic(arrays)
    except KeyError as error:
        raise malformed(path, None, f"the array {error} is missing") from None
    except InvalidProblem:
        raise
    except (ValueError, TypeError, IndexError) as error:
        raise malformed(path, None, str(error)) from None


def write(path: Path, model: Model) -> None:
    """Write a program without semidefinite blocks."""
    if model.blocks:
        raise InvalidProblem(
            f"{path}: .npz files hold no semidefinite blocks; write .dat-s or .cbf"
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


def _quadratic(arrays: Mapping[str, npt.NDArray[Any]]) -> Model:
    A = _matrix(arrays, "A")
    c = arrays["q"]
    m, n = A.shape
    # A last block that is the identity holds the bounds of the variables.
    bounded = m >= n and abs(A.tocsr()[m - n :] - sparse.eye_array(n)).nnz == 0
    rows = m - n if bounded else m
    low = arrays["l"]
    high = arrays["u"]
    P = _matrix(arrays, "P")
    quadratics: list[QuadraticRow] = []
    while f"Q{len(quadratics)}_q" in arrays:
        name = f"Q{len(quadratics)}"
        quadratics.append(
            QuadraticRow(_matrix(arrays, name), arrays[f"{name}_q"], float(arrays[f"{name}_r"]))
        )
    cones = "soc" in arrays
    names = None
    if "columns" in arrays:
        names = Names(tuple(arrays["columns"].tolist()), tuple(arrays["rows"].tolist()))
    return Model(
        c=c,
        A=csc("A", A.tocsr()[:rows]),
        row_lower=low[:rows],
        row_upper=high[:rows],
        lower=low[rows:] if bounded else np.full(n, -np.inf),
        upper=high[rows:] if bounded else np.full(n, np.inf),
        sense="max" if int(arrays.get("sense", np.array(1))) < 0 else "min",
        offset=float(arrays.get("r", np.array(0.0))),
        P=P if P.nnz else None,
        names=names,
        quadratics=tuple(quadratics),
        A_soc=_matrix(arrays, "S") if cones else None,
        b_soc=arrays["b_soc"] if cones else None,
        soc=tuple(arrays["soc"].tolist()) if cones else (),
    )


def _sedumi(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> Model:
    if np.size(arrays.get("K_s", ())):
        raise malformed(
            path,
            None,
            "semidefinite cones of a SeDuMi archive are not read; write it as .dat-s or .cbf",
        )
    A = _matrix(arrays, "A")
    b = arrays["b"]
    c = arrays["c"]
    free = int(arrays["K_f"])
    linear = int(arrays["K_l"])
    soc = tuple(np.atleast_1d(arrays["K_q"]).astype(int).tolist())
    if free + linear + sum(soc) != c.size:
        raise malformed(
            path, None, f"the cones have {free + linear + sum(soc)} entries, c has {c.size}"
        )
    # x in K itself: nonnegative entries are bounds, the rest is b_soc - A_soc x with A_soc = -I.
    lower = np.full(c.size, -np.inf)
    lower[free : free + linear] = 0.0
    cones = csc("A_soc", -sparse.eye_array(c.size, format="csr")[free + linear :])
    upper = np.full(c.size, np.inf)
    return Model(c, A, b, b, lower, upper, A_soc=cones, b_soc=np.zeros(sum(soc)), soc=soc)


def _parts(name: str, value: Any) -> dict[str, npt.NDArray[Any]]:
    matrix = sparse.csc_array(value)
    return {f"{name}_{part}": np.asarray(getattr(matrix, part)) for part in _PARTS}


def _matrix(arrays: Mapping[str, npt.NDArray[Any]], name: str) -> SparseMatrix:
    data, indices, indptr, shape = (arrays[f"{name}_{part}"] for part in _PARTS)
    return csc(name, sparse.csc_array((data, indices, indptr), shape=tuple(shape.tolist())))
