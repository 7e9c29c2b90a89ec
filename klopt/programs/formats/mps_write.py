"""Writes linear and quadratic programs as MPS files in free format, numbers with every digit.

HiGHS writes 15 digits; reading them back would give another problem.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy import sparse

from klopt.arrays import SparseMatrix
from klopt.errors import InvalidProblem
from klopt.programs.formats.model import Model, Names

__all__ = ["checked_names", "write"]


def write(path: Path, model: Model) -> None:
    """Write a linear or quadratic program in free format, numbers with all their digits."""
    if model.kind not in ("LP", "QCQP") or model.soc or model.quadratics:
        raise InvalidProblem(
            f"{path}: MPS files hold linear rows and a quadratic objective only; write .cbf or .npz"
        )
    names = checked_names(path, model)
    rows = (*names.ub, *names.eq)
    sides = zip(*_sides(path, model), strict=True)
    kinds = [_row_kind(low, high) for low, high in sides]

    text = ["NAME"]
    if model.sense == "max":
        text += ["OBJSENSE", "    MAX"]
    text += ["ROWS", " N  OBJ"]
    text += [f" {kind}  {name}" for kind, name in zip(kinds, rows, strict=True)]
    text += ["COLUMNS", *_column_lines(model, names.columns, rows)]
    text += ["RHS", *_right_hand_sides(model, rows, kinds)]
    text.append("BOUNDS")
    bounds = zip(names.columns, model.lower.tolist(), model.upper.tolist(), strict=True)
    for column, low, high in bounds:
        text += _bound_lines(column, low, high)
    if model.P is not None:
        text += ["QUADOBJ", *_quadratic_lines(model.P, names.columns)]
    path.write_text("\n".join([*text, "ENDATA", ""]), encoding="utf-8")


def _row_kind(low: float, high: float) -> str:
    """The letter of a row; one without a finite side is N, a free row."""
    if low == high:
        return "E"
    return "L" if np.isfinite(high) else "N"


def _column_lines(model: Model, columns: tuple[str, ...], rows: tuple[str, ...]) -> Iterator[str]:
    """The cost of each column, even 0, so that no column is lost, and its nonzeros."""
    A = model.A.tocsc()
    for j, column in enumerate(columns):
        yield f"    {column}  OBJ  {float(model.c[j])!r}"
        entries = slice(A.indptr[j], A.indptr[j + 1])
        for i, value in zip(A.indices[entries], A.data[entries].tolist(), strict=True):
            yield f"    {column}  {rows[i]}  {value!r}"


def _right_hand_sides(model: Model, rows: tuple[str, ...], kinds: list[str]) -> Iterator[str]:
    """The nonzero right-hand sides; that of the objective is minus its constant."""
    if model.offset:
        yield f"    RHS  OBJ  {-float(model.offset)!r}"
    for name, kind, limit in zip(rows, kinds, model.row_upper.tolist(), strict=True):
        if kind != "N" and limit:
            yield f"    RHS  {name}  {limit!r}"


def _quadratic_lines(P: SparseMatrix, columns: tuple[str, ...]) -> Iterator[str]:
    """The lower triangle of P in x'Px/2."""
    lower = sparse.tril(P).tocoo()
    for i, j, value in zip(
        lower.row.tolist(), lower.col.tolist(), lower.data.tolist(), strict=True
    ):
        yield f"    {columns[j]}  {columns[i]}  {value!r}"


def checked_names(path: Path, model: Model) -> Names:
    """Return names for all columns and rows, refusing those that a file could not give back."""
    equal = int(np.sum((model.row_lower == model.row_upper) & np.isfinite(model.row_lower)))
    names = model.names or Names.default(model.c.size, model.row_lower.size - equal, equal)
    for what, labels in (("column", names.columns), ("row", (*names.ub, *names.eq, "OBJ"))):
        seen: set[str] = set()
        for label in labels:
            # A name that opens with * or $ would start a comment.
            readable = bool(label) and label[0] not in "*$"
            if label in seen or not readable or any(letter.isspace() for letter in label):
                raise InvalidProblem(
                    f"{path}: the {what} name {label!r} is empty, taken, or holds a space; rename it"
                )
            seen.add(label)
    return names


def _sides(path: Path, model: Model) -> tuple[list[float], list[float]]:
    low = model.row_lower
    high = model.row_upper
    # Models made by klopt's programs have one-sided rows and equalities only.
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
    lines = []
    if np.isinf(low):
        lines.append(f" MI BND  {column}")
    elif low or high < 0:
        # A lower bound of 0 is the default, except that a negative upper bound alone makes some
        # readers take the lower one for -inf.
        lines.append(f" LO BND  {column}  {low!r}")
    if np.isfinite(high):
        lines.append(f" UP BND  {column}  {high!r}")
    return lines
