"""Whether vectors and all their neighbours lie in a cone, and how much room there is in its dual."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.model.cones import Cones, order_of, svec_entries
from klopt.proof.cone_slack import is_zero, slack_summed_exactly
from klopt.proof.directed import difference_down, product_up, sum_up
from klopt.proof.enclosure import INFLATION, UNIT_ROUNDOFF, Enclosure, enlarged, round_down
from klopt.proof.power_cones import dual_power_room, in_dual_power_cones, in_power_cones
from klopt.proof.rational_psd import rational_psd
from klopt.proof.semidefinite import eigenvalue_floor, is_positive_semidefinite, radius_norm
from klopt.proof.statement import ConeStatement

__all__ = [
    "block_matrix",
    "dual_room",
    "in_cone",
    "in_cone_exactly",
    "in_dual_cone",
    "in_dual_exponential",
    "in_second_order_cones",
    "norms_of_blocks",
    "second_order_depths",
]

Mask = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.intp]

MAX_EXACT_ROWS = 120
"""Rows of a second-order cone that are decided in rationals at its boundary."""
MAX_EXACT_ENTRIES = 2000
"""Entries of the triangle of a matrix that is decided in rationals ..."""
MAX_EXACT_WORK = 3e7
"""... and what that may take, as `rational_psd` counts it: a tenth of a second."""
ROOM_TRIALS = 20
"""How often the room around multipliers of an exponential cone is tried, each time an eighth."""


def block_matrix(statement: ConeStatement, v: Enclosure) -> Enclosure:
    """Return the symmetric matrix of the rows of one semidefinite block."""
    order = order_of(v.size)
    rows, columns = svec_entries(order)
    if not statement.plain:
        half = np.where(rows == columns, 1.0, np.sqrt(0.5))
        # sqrt(1/2) and the product are rounded once each; the diagonal and 0 are exact.
        scaled = v.mid * half
        rad = enlarged(v.rad * half + 2 * UNIT_ROUNDOFF * np.abs(scaled))
        v = Enclosure(scaled, np.where((rows == columns) | is_zero(v), v.rad, rad))
    mid = np.zeros((order, order))
    rad = np.zeros((order, order))
    for full, part in ((mid, v.mid), (rad, v.rad)):
        full[rows, columns] = part
        full[columns, rows] = part
    return Enclosure(mid, rad)


def second_order_depths(cones: Cones, s: Enclosure) -> FloatArray:
    """Return for each second-order cone a lower bound of s_0 - ||s_1|| over every s enclosed."""
    start = cones.zero + cones.nonneg
    sizes = np.array([size for size in cones.soc if size], dtype=np.intp)
    if not sizes.size:
        return np.zeros(0)
    rows = slice(start, start + int(sizes.sum()))
    heads = np.cumsum(sizes) - sizes
    tails = s.magnitude[rows].copy()
    tails[heads] = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        difference = s.lower[rows][heads] - norms_of_blocks(tails, heads, sizes)
    # A rounded difference is 0 only where it is exactly 0.
    depth = np.where(difference == 0, 0.0, round_down(difference))
    return np.where(np.isfinite(difference), depth, -np.inf)


def norms_of_blocks(v: FloatArray, heads: Indices, sizes: Indices) -> FloatArray:
    """Return upper bounds of the norms of consecutive blocks of a vector."""
    largest = np.maximum.reduceat(np.abs(v), heads)
    # Powers of two, so that squares do not overflow and scaling is exact.
    unit = np.ldexp(1.0, np.minimum(np.frexp(largest)[1], 1023))
    squares = np.add.reduceat((v / np.repeat(unit, sizes)) ** 2, heads)
    # A single entry is its own norm.
    alone = np.add.reduceat((v != 0).astype(np.intp), heads) <= 1
    return np.where(alone, largest, enlarged(np.sqrt(squares) * unit, int(sizes.max())))


def in_second_order_cones(statement: ConeStatement, y: FloatArray) -> bool:
    """Return whether y lies in the second-order cones, at their boundary by exact numbers."""
    short = ~(second_order_depths(statement.cones, Enclosure.of(y)) >= 0)
    if not short.any():
        return True
    blocks = [block for kind, block in statement.cones.blocks() if kind == "soc"]
    failed = [blocks[index] for index in np.flatnonzero(short)]
    return all(_is_in_cone_exactly(statement, "soc", y[block]) for block in failed)


def in_dual_cone(statement: ConeStatement, kind: str, y: FloatArray) -> bool:
    """Return whether y lies in the dual of a semidefinite, an exponential or a power cone."""
    if not y.any():
        return True
    if kind == "power":
        return in_dual_power_cones(statement.cones.power, Enclosure.of(y))
    if kind == "exp":
        return bool(in_dual_exponential(Enclosure.of(y.reshape(-1, 3))).all())
    if in_cone(statement, kind, Enclosure.of(y), 0.0):
        return True
    return _is_in_cone_exactly(statement, kind, y)


def in_cone(statement: ConeStatement, kind: str, s: Enclosure, margin: float) -> bool:
    """Return whether every s enclosed, moved by at most `margin` in norm, lies in a curved cone."""
    if not (np.isfinite(s.mid).all() and np.isfinite(s.rad).all() and np.isfinite(margin)):
        return False
    if kind == "psd":
        M = block_matrix(statement, s)
        if is_positive_semidefinite(M.mid, sum_up(radius_norm(M.rad), margin)):
            return True
        return _is_scaled_semidefinite(M, margin)
    if kind == "power":
        return in_power_cones(statement.cones.power, _widened(s, margin))
    return all(_in_exponential(s[3 * i : 3 * i + 3], margin) for i in range(s.size // 3))


def in_cone_exactly(
    statement: ConeStatement, kind: str, block: slice, x: FloatArray, slack: Enclosure
) -> bool:
    """Return whether the slack of a curved cone at x is a vector of floats and lies in it."""
    exact = slack_summed_exactly(statement, x, slack, np.arange(block.start, block.stop))[block]
    if exact.rad.any():
        return False
    if kind != "soc" and in_cone(statement, kind, exact, 0.0):
        return True
    return _is_in_cone_exactly(statement, kind, exact.mid)


def _is_in_cone_exactly(statement: ConeStatement, kind: str, v: FloatArray) -> bool:
    """Whether exact numbers lie in a cone of a few rows, its boundary included, in rationals."""
    largest = MAX_EXACT_ENTRIES if kind == "psd" else MAX_EXACT_ROWS
    if v.size > largest or not np.isfinite(v).all():
        return False
    if kind == "soc":
        head, *tail = (Fraction(entry) for entry in v.tolist())
        return head >= 0 and head * head >= sum((entry * entry for entry in tail), Fraction(0))
    if kind == "psd":
        M = block_matrix(statement, Enclosure.of(v))
        return not M.rad.any() and bool(rational_psd(sparse.csc_array(M.mid), MAX_EXACT_WORK))
    return False


def _is_scaled_semidefinite(M: Enclosure, margin: float) -> bool:
    """The same by DMD, for powers of two D that make its diagonal about 1."""
    diagonal = M.mid.diagonal()
    if not (diagonal > 0).all():
        return False
    exponent = -(np.frexp(diagonal)[1] // 2)
    # Scaling by both powers of two at once is exact away from underflow, which `enlarged` covers.
    exponents = exponent[:, None] + exponent
    with np.errstate(over="ignore"):
        mid = np.ldexp(M.mid, exponents)
        lost = radius_norm(enlarged(np.ldexp(M.rad, exponents)))
        moved = product_up(margin, float(np.ldexp(1.0, np.max(exponents))))
    return is_positive_semidefinite(mid, sum_up(lost, moved))


def _widened(s: Enclosure, margin: float) -> Enclosure:
    """All numbers that are at most `margin` from one that is enclosed."""
    return Enclosure(s.mid, (s.rad + margin) * INFLATION)


def _in_exponential(s: Enclosure, margin: float) -> bool:
    """Whether y exp(x / y) <= z, y > 0, or x <= 0, y = 0, z >= 0 for all (x, y, z) enclosed."""
    wide = _widened(s, margin)
    x, y, z = wide[0], wide[1], wide[2]
    if y.mid == 0 and y.rad == 0:
        return bool(x.upper <= 0 and z.lower >= 0)
    if not y.lower > 0:
        return False
    return bool((y * (x / y).exp()).upper <= z.lower)


def in_dual_exponential(y: Enclosure) -> Mask:
    """Return whether -u exp(v / u - 1) <= w, u < 0, or u = 0, v >= 0, w >= 0, row by row of (u, v, w)."""
    u, v, w = y[:, 0], y[:, 1], y[:, 2]
    negative = u.upper < 0
    # Another divisor where it may be 0, so that nothing is divided by it.
    divisor = Enclosure(np.where(negative, u.mid, -1.0), np.where(negative, u.rad, 0.0))
    with np.errstate(over="ignore", invalid="ignore"):
        least = -divisor * (v / divisor - 1.0).exp()
        inside = negative & (least.upper <= np.where(w.rad == 0, w.mid, w.lower))
    # At u = 0 exactly; where radii are 0 the numbers are compared as they are.
    flat = is_zero(u) & (v.mid >= v.rad) & (w.mid >= w.rad)
    return np.asarray(inside | flat)


def dual_room(statement: ConeStatement, y: FloatArray) -> FloatArray:
    """Return how far y may move in norm, cone by cone, without leaving K*: inf for zero rows."""
    cones = statement.cones
    room = np.where(statement.vacuous, 0.0, np.inf)
    inequality = slice(cones.zero, cones.zero + cones.nonneg)
    room[inequality] = np.where(statement.vacuous, 0.0, y)[inequality]
    start = inequality.stop
    sizes = np.array([size for size in cones.soc if size], dtype=np.intp)
    depth = np.maximum(second_order_depths(cones, Enclosure.of(y)), 0.0)
    room[start : start + int(sizes.sum())] = np.repeat(depth / 1.415, sizes)
    for kind, block in cones.blocks():
        if kind == "psd":
            M = block_matrix(statement, Enclosure.of(y[block]))
            floor = difference_down(eigenvalue_floor(M.mid), radius_norm(M.rad))
            room[block] = max(floor, 0.0)
        elif kind == "exp":
            room[block] = np.repeat(_dual_exponential_room(y[block].reshape(-1, 3)), 3)
        elif kind == "power":
            room[block] = dual_power_room(cones.power, y[block])
    return room


def _dual_exponential_room(y: FloatArray) -> FloatArray:
    """How far each row (u, v, w) may move without leaving the dual exponential cone: a trial proves it."""
    trials = np.max(np.abs(y), axis=1) * 8.0 ** -np.arange(1, ROOM_TRIALS + 1)[:, None]
    around = Enclosure(
        np.broadcast_to(y, (ROOM_TRIALS, *y.shape)).reshape(-1, 3),
        np.repeat(trials.reshape(-1, 1), 3, axis=1),
    )
    proven = in_dual_exponential(around).reshape(trials.shape)
    return np.asarray(np.max(proven * trials, axis=0))
