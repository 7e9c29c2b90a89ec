"""Writes linear and quadratic programs as MPS files in free format, numbers with every digit.

HiGHS writes 15 digits; reading them back would give another problem.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy import sparse

from klopt.errors import InvalidProblem
from klopt.programs.formats.model import Model, Names

__all__ = ["checked_names", "write"]


def write(path: Path, model: Model) -> None:
    """Write a linear or quadratic program in free format, numbers with all their digits."""
    if model.kind not in ("LP", "QCQP") or model.soc or model.quadratics:
        raise InvalidProblem(
            f"{path}: MPS files hold linear rows and a quadratic objective only; write .cbf or .npz"
        )
    names, A = checked_names(path, model), model.A.tocsc()
    rows = (*names.ub, *names.eq)
    sides = zip(*_sides(path, model), strict=True)
    kinds = ["E" if low == high else "L" if np.isfinite(high) else "N" for low, high in sides]
    text = ["NAME", *(("OBJSENSE", "    MAX") if model.sense == "max" else ()), "ROWS", " N  OBJ"]
    text += [f" {kind}  {name}" for kind, name in zip(kinds, rows, strict=True)]
    text.append("COLUMNS")
    for j, column in enumerate(names.columns):
        text.append(f"    {column}  OBJ  {float(model.c[j])!r}")
        part = slice(A.indptr[j], A.indptr[j + 1])
        text += [
            f"    {column}  {rows[i]}  {v!r}"
            for i, v in zip(A.indices[part], A.data[part].tolist(), strict=True)
        ]
    text += ["RHS", *([f"    RHS  OBJ  {-float(model.offset)!r}"] if model.offset else ())]
    limits = zip(rows, kinds, model.row_upper.tolist(), strict=True)
    text += [f"    RHS  {name}  {limit!r}" for name, kind, limit in limits if kind != "N" and limit]
    text.append("BOUNDS")
    for column, low, high in zip(
        names.columns, model.lower.tolist(), model.upper.tolist(), strict=True
    ):
        text += _bound_lines(column, low, high)
    if model.P is not None:
        lower = sparse.tril(model.P).tocoo()
        text.append("QUADOBJ")
        triples = zip(lower.row.tolist(), lower.col.tolist(), lower.data.tolist(), strict=True)
        text += [f"    {names.columns[j]}  {names.columns[i]}  {v!r}" for i, j, v in triples]
    path.write_text("\n".join([*text, "ENDATA", ""]), encoding="utf-8")


def checked_names(path: Path, model: Model) -> Names:
    """Return names for all columns and rows, refusing those that a file could not give back."""
    equal = int(np.sum((model.row_lower == model.row_upper) & np.isfinite(model.row_lower)))
    names = model.names or Names.default(model.c.size, model.row_lower.size - equal, equal)
    for what, labels in (("column", names.columns), ("row", (*names.ub, *names.eq, "OBJ"))):
        seen: set[str] = set()
        for label in labels:
            if (
                label in seen
                or not label
                or any(letter.isspace() for letter in label)
                or label[0] in "*$"
            ):
                raise InvalidProblem(
                    f"{path}: the {what} name {label!r} is empty, taken, or holds a space; rename it"
                )
            seen.add(label)
    return names


def _sides(path: Path, model: Model) -> tuple[list[float], list[float]]:
    low, high = model.row_lower, model.row_upper
    if np.any(high == -np.inf) or np.any(np.isfinite(low) & (low != high)):
        raise InvalidProblem(
            f"{path}: a row a'x <= -inf or with two sides cannot be written; state it as inequalities"
        )
    return low.tolist(), high.tolist()


def _bound_lines(column: str, low: float, high: float) -> list[str]:
    if low == high:
        return [f" FX BND  {column}  {low!r}"]
    if np.isinf(low) and np.isinf(high):
        return [f" FR BND  {column}"]
    below = (
        [f" MI BND  {column}"]
        if np.isinf(low)
        else [f" LO BND  {column}  {low!r}"]
        if low or high < 0
        else []
    )
    return below + ([f" UP BND  {column}  {high!r}"] if np.isfinite(high) else [])
