"""Writes linear and quadratic programs as CPLEX LP files, numbers with every digit.

HiGHS ignores coefficients below 1e-12 and takes others for infinite: a file that it would read as
something else is not written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from scipy import sparse

from klopt.arrays import SparseMatrix
from klopt.errors import InvalidProblem
from klopt.programs.formats.model import Model, Names
from klopt.programs.formats.mps_write import checked_names

__all__ = ["write"]

# What HiGHS drops or refuses in matrices, and what it takes for infinite elsewhere.
MIN_COEFFICIENT = 1e-12
MAX_COEFFICIENT = 1e15
MIN_INFINITY = 1e20
_NAME = re.compile(r"(?![eE][\d.])[A-Za-z_!#$%&(),;?@`'{}~\"][\w!#$%&(),.;?@`'{}~\"]*")
_WORDS = {
    "st",
    "subject",
    "bounds",
    "bound",
    "free",
    "inf",
    "infinity",
    "end",
    "min",
    "max",
    "general",
    "binary",
}


def write(path: Path, model: Model) -> None:
    """Write a linear or quadratic program, numbers with all their digits."""
    if model.kind not in ("LP", "QCQP") or model.soc or model.quadratics:
        raise InvalidProblem(
            f"{path}: LP files hold linear rows and a quadratic objective only; write .cbf or .npz"
        )
    names = checked_names(path, model)
    _refuse_unwritable(path, model, names)
    _check_sizes(path, model)
    text = _objective_lines(model, names.columns)
    text += ["Subject To", *_row_lines(model, names)]
    text += ["Bounds", *_bound_lines(model, names.columns)]
    path.write_text("\n".join([*text, "End", ""]), encoding="ascii")


def _refuse_unwritable(path: Path, model: Model, names: Names) -> None:
    """Refuse names and rows that an LP file cannot hold."""
    for name in (*names.columns, *names.ub, *names.eq):
        if not _NAME.fullmatch(name) or name.lower() in _WORDS:
            raise InvalidProblem(
                f"{path}: the name {name!r} means something else in LP files; rename it or write .mps"
            )
    two_sided = np.isfinite(model.row_lower) & (model.row_lower != model.row_upper)
    if np.any(np.isinf(model.row_upper)) or np.any(two_sided):
        raise InvalidProblem(
            f"{path}: a row without a finite right-hand side cannot stand in an LP file; write .mps"
        )


def _objective_lines(model: Model, columns: tuple[str, ...]) -> list[str]:
    """Every column stands in the objective, so that a reader meets them in their order."""
    text = ["Maximize" if model.sense == "max" else "Minimize", " obj:"]
    text += _terms(columns, model.c.tolist())
    if model.P is not None:
        text += ["  + [", *_squares(columns, model.P), "  ] / 2"]
    if model.offset:
        text.append(f"  + {model.offset!r}")
    return text


def _row_lines(model: Model, names: Names) -> Iterator[str]:
    A = model.A.tocsr()
    for i, name in enumerate((*names.ub, *names.eq)):
        entries = slice(A.indptr[i], A.indptr[i + 1])
        columns = [names.columns[j] for j in A.indices[entries]]
        row = _terms(columns, A.data[entries].tolist())
        sign = "=" if model.row_lower[i] == model.row_upper[i] else "<="
        yield f" {name}:"
        yield from row or [f"  0 {names.columns[0]}"]  # a row needs a term
        yield f"  {sign} {float(model.row_upper[i])!r}"


def _bound_lines(model: Model, columns: tuple[str, ...]) -> Iterator[str]:
    for name, low, high in zip(columns, model.lower.tolist(), model.upper.tolist(), strict=True):
        if np.isinf(low) and np.isinf(high):
            yield f" {name} free"
        else:
            yield f" {low!r} <= {name} <= {high!r}"


def _check_sizes(path: Path, model: Model) -> None:
    """Refuse numbers that HiGHS would drop or take for infinite."""
    sides = np.concatenate([model.row_upper, model.lower, model.upper])
    plain = np.concatenate([model.c, sides[np.isfinite(sides)]])
    matrices = np.concatenate([model.A.data, [] if model.P is None else model.P.data])
    sizes = np.abs(matrices[matrices != 0])
    lost = [
        *sizes[(sizes <= MIN_COEFFICIENT) | (sizes >= MAX_COEFFICIENT)],
        *np.abs(plain[np.abs(plain) >= MIN_INFINITY]),
    ]
    if lost:
        raise InvalidProblem(
            f"{path}: HiGHS cannot read {lost[0]:g} in an LP file; rescale the problem or write .mps"
        )


def _terms(names: Iterable[str], values: Iterable[float]) -> list[str]:
    return [
        f"  {'-' if value < 0 else '+'} {abs(value)!r} {name}"
        for name, value in zip(names, values, strict=True)
    ]


def _squares(names: tuple[str, ...], P: SparseMatrix) -> list[str]:
    """x'Px as squares and products, each product once."""
    lower = sparse.tril(P).tocoo()
    places = zip(lower.row.tolist(), lower.col.tolist(), lower.data.tolist(), strict=True)
    terms = []
    coefficients = []
    for i, j, value in places:
        # The lower triangle only: a product stands for both entries.
        if i == j:
            terms.append(f"{names[j]}^2")
            coefficients.append(value)
        else:
            terms.append(f"{names[j]} * {names[i]}")
            coefficients.append(2 * value)
    return _terms(terms, coefficients)
