"""Random cone programs built from their solutions, on which every backend is tested.

Choose x, and strictly complementary s in K and y in K*; then b = Ax + s and c = -Px - A'y make
(x, y) satisfy the conditions of optimality.

Where cones are not polyhedral, a value is proven to full accuracy only if primal and dual have
Slater points. A random A with few columns often leaves the solution as the only feasible point,
where a perturbation eps changes the value by sqrt(eps). So A satisfies

    A d = s - s',    A'(y' - y) = 0,    s' and y' in the interiors of their cones:

x + d is feasible with the slack s', and y' is feasible for the cost c. Both hold at once where
(y' - y)'(s - s') = 0, which the lengths of s' and y' can be chosen for.

Where all cones are polyhedral, the numbers chosen have few bits: b and c are then computed without
rounding, and the pair is optimal in exact arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from klopt.arrays import FloatArray
from klopt.errors import InvalidProblem
from klopt.model.cones import Cones, svec, svec_size
from klopt.model.cones.power import Weights, exponents
from klopt.model.forms import ConeForm, Form
from klopt.proof.certificate import Verdict
from klopt.witness.cone_interior import centre

__all__ = ["Instance", "Kind", "planted_cone_program"]

Kind = Literal["lp", "qp", "socp", "sdp", "exp", "power"]


@dataclass(frozen=True, eq=False)
class Instance:
    """A form, what must be proven of it, its optimal value and, where known, an optimal pair."""

    name: str
    form: Form
    verdict: Verdict = Verdict.OPTIMAL
    value: float = np.nan
    x: FloatArray | None = None
    y: FloatArray | None = None


def planted_cone_program(
    rng: np.random.Generator, kind: Kind, n: int = 6, m: int = 12, *, slater: bool = True
) -> Instance:
    """Return a random cone program whose optimal pair (x, y) is known.

    Parameters
    ----------
    rng
        The source of all randomness.
    kind
        The cones, and whether the objective is quadratic.
    n
        The number of variables.
    m
        The number of rows, roughly: cones come in whole blocks.
    slater
        Whether programs whose cones are not polyhedral get Slater points, primal and dual; the
        others need none.

    >>> instance = planted_cone_program(np.random.default_rng(0), "socp")
    >>> instance.form.measure(instance.x, instance.y).worst < 1e-12
    True
    """
    cones = _cones_of(kind, m)
    s = np.zeros(cones.size)
    y = np.zeros(cones.size)
    for block_kind, rows in cones.blocks():
        if block_kind == "power":
            s[rows], y[rows] = _pair_power(rng, cones.power)
        else:
            s[rows], y[rows] = _COMPLEMENTARY[block_kind](rng, rows.stop - rows.start)
    A = rng.normal(size=(cones.size, n))
    x = rng.normal(size=n)
    factor = rng.normal(size=(max(n - 1, 1), n))
    if not cones.features:
        A, x, s, y, factor = (_with_few_bits(part) for part in (A, x, s, y, factor))
    P = factor.T @ factor / 8 if kind == "qp" else None
    if slater and cones.features:
        A = _with_slater_points(cones, A, s, y, rng.normal(size=n))
    c = -A.T @ y
    if P is not None:
        c -= P @ x
    form = ConeForm(c, A, A @ x + s, cones, P)
    return Instance(f"{kind}_known_pair", form, value=form.value(x), x=x, y=y)


def _with_few_bits(values: FloatArray) -> FloatArray:
    """Multiples of 2^-10: sums of products of three of them fit into a float."""
    return np.round(values * 2**10) / 2**10


def _with_slater_points(
    cones: Cones, A: FloatArray, s: FloatArray, y: FloatArray, d: FloatArray
) -> FloatArray:
    """Change A by rank two: s - Ad = s' and A'y' = A'y with multiples s', y' of the centre e."""
    e = centre(cones)
    square = float(e @ e)
    p = float(e @ s)
    q = float(e @ y)
    # With s' = beta e and y' = alpha e, (y' - y)'(s - s') = 0 reads p / beta + q / alpha = e'e:
    # each term is half of it, or one is all of it where the other vanishes.
    parts = 2 if p > 0 and q > 0 else 1
    beta = parts * p / square if p > 0 else 1.0
    alpha = parts * q / square if q > 0 else 1.0
    g = s - beta * e
    h = alpha * e - y
    h[: cones.zero] = 0.0
    A = A - np.outer(h, h @ A) / (h @ h)
    return A + np.outer(g - A @ d, d) / (d @ d)


def _cones_of(kind: Kind, m: int) -> Cones:
    by_kind: Mapping[str, Cones] = {
        "lp": Cones(zero=m // 6, nonneg=m - m // 6),
        "qp": Cones(zero=m // 6, nonneg=m - m // 6),
        "socp": Cones(zero=1, nonneg=m // 3, soc=(3, max(m // 3, 2))),
        "sdp": Cones(zero=1, nonneg=2, psd=(3, 2)),
        "exp": Cones(nonneg=m // 2, exp=max(m // 6, 1)),
        "power": Cones(nonneg=m // 2, power=(0.25, 0.6, 0.5)[: max(m // 6, 1)]),
    }
    if kind not in by_kind:
        raise InvalidProblem(f"kind is {kind!r}; expected one of {', '.join(by_kind)}")
    return by_kind[kind]


Pair = tuple[FloatArray, FloatArray]


def _pair_zero(rng: np.random.Generator, size: int) -> Pair:
    return np.zeros(size), rng.normal(size=size)


def _pair_nonneg(rng: np.random.Generator, size: int) -> Pair:
    active = rng.random(size) < 0.5
    amount = rng.uniform(0.5, 2.0, size)
    return np.where(active, 0.0, amount), np.where(active, amount, 0.0)


def _pair_soc(rng: np.random.Generator, size: int) -> Pair:
    u = rng.normal(size=size - 1)
    norm = float(np.linalg.norm(u))
    s = np.concatenate(([norm], u))
    y = rng.uniform(0.5, 2.0) * np.concatenate(([norm], -u))
    return s, y


def _pair_psd(rng: np.random.Generator, size: int) -> Pair:
    order = next(k for k in range(size + 1) if svec_size(k) == size)
    Q, _ = np.linalg.qr(rng.normal(size=(order, order)))
    values = rng.uniform(0.5, 2.0, order)
    split = (
        order // 2
    )  # s and y share the eigenvectors Q, each with its own part of the eigenvalues
    s = (Q[:, split:] * values[split:]) @ Q[:, split:].T
    y = (Q[:, :split] * values[:split]) @ Q[:, :split].T
    return svec(s), svec(y)


def _pair_exp(rng: np.random.Generator, size: int) -> Pair:
    """Boundary points (r, 1, e^r) and the normals of the cone there."""
    r = rng.normal(size=size // 3)
    one = np.ones_like(r)
    s = np.stack([r, one, np.exp(r)], axis=1)
    y = np.stack([-np.exp(r), -(1 - r) * np.exp(r), one], axis=1)
    s *= rng.uniform(0.5, 2.0, r.size)[:, None]
    y *= rng.uniform(0.5, 2.0, r.size)[:, None]
    return s.ravel(), y.ravel()


def _pair_power(rng: np.random.Generator, cones: tuple[Weights, ...]) -> Pair:
    """Boundary points (x, x^a) and the normals (a_i x^a / x_i, -1) of the cones there."""
    pairs = []
    for weights in cones:
        a = exponents(weights)
        x = rng.uniform(0.5, 2.0, a.size)
        mean = float(np.exp(a @ np.log(x)))
        sign = rng.choice([-1.0, 1.0])
        s = np.append(x, sign * mean)
        y = rng.uniform(0.5, 2.0) * np.append(a * mean / x, -sign)
        pairs.append((s, y))
    return np.concatenate([s for s, _ in pairs]), np.concatenate([y for _, y in pairs])


_COMPLEMENTARY = {
    "zero": _pair_zero,
    "nonneg": _pair_nonneg,
    "soc": _pair_soc,
    "psd": _pair_psd,
    "exp": _pair_exp,
}
