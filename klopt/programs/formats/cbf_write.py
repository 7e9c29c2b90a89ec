"""Writes cone programs in the Conic Benchmark Format, numbers with every digit.

A_ub x <= b_ub    A_ub x - b_ub in L-          F rows where b_ub is infinite
b - A x in Q      -A x + b in Q
b - A x in K_exp  -A x + b in EXP, backwards
b - A x in K_a    -A x + b in @k:POW, the exponents of K_a as whole numbers in POWCONES
lower <= x        x in L+ where lower = 0, else one of the last rows of CON, as a comment says
"""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.errors import InvalidProblem
from klopt.model.cones import svec_entries
from klopt.programs.formats.cbf import BOUNDS_NOTE, NAMES_NOTE
from klopt.programs.formats.model import Model

__all__ = ["write"]

Table = tuple[tuple[npt.NDArray[np.signedinteger[Any]], ...], FloatArray]


def write(path: Path, model: Model) -> None:
    """Write a program without quadratic functions, which CBF, a format of cones, cannot hold."""
    if model.P is not None or model.quadratics:
        raise InvalidProblem(
            f"{path}: CBF files hold no quadratic functions; write .npz, or .mps for a quadratic objective"
        )
    if np.any(model.row_upper == -np.inf):
        raise InvalidProblem(f"{path}: a row a'x <= -inf cannot be written")
    version = "3" if model.power else "2"
    sense = ["VER", version, "", *_powers(model), "OBJSENSE", model.sense.upper(), ""]
    if model.names is not None:
        rows = (*model.names.ub, *model.names.eq)
        sense.insert(0, NAMES_NOTE + json.dumps([model.names.columns, rows]))
    body = _standard(model) if model.over == "X" else _general(model)
    offset = ["OBJBCOORD", repr(float(model.offset)), ""] if model.offset else []
    path.write_text("\n".join([*sense, *body, *offset]), encoding="ascii")


def _general(model: Model) -> list[str]:
    """VAR, CON and PSDCON with their tables."""
    n = model.c.size
    # The only bounds of variables in CBF are x >= 0 and x = 0.
    plain = (model.lower == 0) & np.isin(model.upper, (0.0, np.inf))
    low = np.flatnonzero(np.isfinite(model.lower) & ~plain)
    high = np.flatnonzero(np.isfinite(model.upper) & ~plain)
    var = np.where(plain, np.where(model.upper == 0, "L=", "L+"), "F")
    rows = [
        _sign(*sides)
        for sides in zip(model.row_lower.tolist(), model.row_upper.tolist(), strict=True)
    ]

    # A row a'x <= u is a'x - u in L-: the finite side becomes the constant.
    limit = np.where(np.isfinite(model.row_upper), model.row_upper, model.row_lower)
    parts = [model.A.tocsr()]
    b = [np.where(np.isfinite(limit), -limit, 0.0)]
    if model.soc and model.A_soc is not None and model.b_soc is not None:
        parts.append(-model.A_soc.tocsr())
        b.append(model.b_soc)
    if model.A_curved is not None and model.b_curved is not None:
        order = _curved_order(model)
        parts.append(-model.A_curved.tocsr()[order])
        b.append(model.b_curved[order])
    parts.append(sparse.eye_array(n, format="csr")[np.concatenate((low, high))])
    b += [-model.lower[low], -model.upper[high]]
    A = sparse.csr_array(sparse.vstack(parts)).tocoo()

    cones = [
        *_runs(rows),
        *(f"Q {size}" for size in model.soc),
        *["EXP 3"] * model.exp,
        *(f"@{index}:POW {len(weights) + 1}" for index, weights in enumerate(model.power)),
        *_runs(["L+"] * low.size + ["L-"] * high.size),
    ]
    text = [BOUNDS_NOTE.format(low.size + high.size), ""] if low.size + high.size else []
    text += _section("VAR", [f"{n} {len(_runs(var.tolist()))}", *_runs(var.tolist())])
    text += _section("CON", [f"{A.shape[0]} {len(cones)}", *cones]) if cones else []
    text += _section(
        "PSDCON", [str(len(model.blocks)), *(str(block.order) for block in model.blocks)]
    )
    text += _vector("OBJACOORD", model.c) + _table("ACOORD", ((A.row, A.col), A.data))
    return text + _vector("BCOORD", np.concatenate(b)) + _lmi(model)


def _powers(model: Model) -> list[str]:
    """The weights of each power cone."""
    lines = [f"{len(model.power)} {sum(map(len, model.power))}"]
    for weights in model.power:
        lines += [str(len(weights)), *map(str, weights)]
    return _section("POWCONES", lines) if model.power else []


def _curved_order(model: Model) -> npt.NDArray[np.intp]:
    """The rows of exponential cones backwards, those of power cones as they are."""
    rows = np.arange(0 if model.b_curved is None else model.b_curved.size)
    backwards = rows[: 3 * model.exp].reshape(-1, 3)[:, ::-1].ravel()
    return np.concatenate((backwards, rows[3 * model.exp :]))


def _lmi(model: Model) -> list[str]:
    """The semidefinite blocks: HCOORD for F_1, .., F_n and DCOORD for -F_0."""
    tables: dict[str, list[str]] = {"HCOORD": [], "DCOORD": []}
    for index, block in enumerate(model.blocks):
        down, across = svec_entries(block.order)
        entries = block.entries.tocoo()
        places = zip(
            entries.col.tolist(),
            down[entries.row].tolist(),
            across[entries.row].tolist(),
            strict=True,
        )
        for (j, row, column), value in zip(places, entries.data.tolist(), strict=True):
            # Column 0 is F_0, and the format adds D = -F_0.
            if j:
                tables["HCOORD"].append(f"{index} {j - 1} {row} {column} {value!r}")
            else:
                tables["DCOORD"].append(f"{index} {row} {column} {-value!r}")
    return [
        line
        for name, lines in tables.items()
        if lines
        for line in _section(name, [str(len(lines)), *lines])
    ]


def _standard(model: Model) -> list[str]:
    """PSDVAR and L= rows; nonnegative entries as VAR in L+."""
    constraints = model.c.size
    entries_in_orthant = model.row_upper.size
    orders = [str(block.order) for block in model.blocks]

    text = _section("PSDVAR", [str(len(orders)), *orders])
    if entries_in_orthant:
        text += _section("VAR", [f"{entries_in_orthant} 1", f"L+ {entries_in_orthant}"])
    text += _section("CON", [f"{constraints} 1", f"L= {constraints}"])

    costs: list[str] = []
    rows: list[str] = []
    for index, block in enumerate(model.blocks):
        down, across = svec_entries(block.order)
        entries = block.entries.tocoo()
        places = zip(
            entries.col.tolist(),
            down[entries.row].tolist(),
            across[entries.row].tolist(),
            strict=True,
        )
        for (j, row, column), value in zip(places, entries.data.tolist(), strict=True):
            place = f"{index} {row} {column} {value!r}"
            if j == 0:
                costs.append(place)
            else:
                rows.append(f"{j - 1} {place}")
    A = model.A.tocoo()
    text += _section("OBJFCOORD", [str(len(costs)), *costs])
    text += _section("FCOORD", [str(len(rows)), *rows])
    text += _vector("OBJACOORD", model.row_upper)
    text += _table("ACOORD", ((A.col, A.row), A.data))
    return text + _vector("BCOORD", -model.c)


def _sign(low: float, high: float) -> str:
    """The cone of a row low <= a'x <= high once its finite side has become the constant."""
    if np.isfinite(low) and np.isfinite(high) and low != high:
        raise InvalidProblem("a row with two sides cannot be written; state it as two inequalities")
    if low == high:
        return "L="
    if np.isfinite(high):
        return "L-"
    if np.isfinite(low):
        return "L+"
    return "F"


def _runs(cones: list[str]) -> list[str]:
    """Equal neighbours as one cone."""
    return [f"{cone} {sum(1 for _ in group)}" for cone, group in groupby(cones)]


def _section(name: str, lines: list[str]) -> list[str]:
    return [name, *lines, ""] if lines[0] != "0" else []


def _vector(name: str, values: FloatArray) -> list[str]:
    at = np.flatnonzero(values)
    return _table(name, ((at,), values[at]))


def _table(name: str, table: Table) -> list[str]:
    indices, values = table
    columns = zip(*(index.tolist() for index in indices), values.tolist(), strict=True)
    lines = [" ".join([*map(str, row[:-1]), repr(row[-1])]) for row in columns]
    return _section(name, [str(len(lines)), *lines])
