"""Steps that many proofs share: Cauchy and Schwarz, projections, norms of entrywise products."""

from __future__ import annotations

from fractions import Fraction

from klopt.papers.theorems.proofs.expression import Expression, symbols
from klopt.papers.theorems.proofs.proof import Square, Step, at_least, identity

__all__ = [
    "cauchy_schwarz",
    "factorised_difference",
    "pairwise_cauchy_schwarz",
    "projection_is_nonexpansive",
    "scale_invariance",
    "variational",
]

HALF = Fraction(1, 2)


def cauchy_schwarz() -> tuple[Step, Step]:
    """Return |<x, y>| <= 1 for vectors of norm at most 1, which is Cauchy and Schwarz by scaling."""
    x, y = symbols("x y")
    given = (1 - x**2, 1 - y**2)

    def bound(says: str, sign: int) -> Step:
        squares = [
            Square(HALF, 1, given[:1]),
            Square(HALF, 1, given[1:]),
            Square(HALF, x - sign * y),
        ]
        return at_least(says, 1 - sign * x * y, by=squares, given=given, vectors="x y")

    return (
        bound("<x, y> <= 1 where |x| <= 1 and |y| <= 1", 1),
        bound("<x, y> >= -1 where |x| <= 1 and |y| <= 1", -1),
    )


def scale_invariance() -> Step:
    """Return that the square of the cosine does not change with the length of one vector."""
    xx, xy, yy, a = symbols("xx xy yy a")
    return identity(
        "<ax, y>^2 |x|^2 |y|^2 = <x, y>^2 |ax|^2 |y|^2",
        (a * xy) ** 2 * (xx * yy),
        xy**2 * (a**2 * xx * yy),
    )


def pairwise_cauchy_schwarz(says: str) -> Step:
    """Return (b0^2 a0 f1 + b1^2 a1 f0)(a0 f0 + a1 f1) >= f0 f1 (a0 b0 + a1 b1)^2."""
    a0, a1, b0, b1, f0, f1 = symbols("a0 a1 b0 b1 f0 f1")
    left = (b0**2 * a0 * f1 + b1**2 * a1 * f0) * (a0 * f0 + a1 * f1)
    right = f0 * f1 * (a0 * b0 + a1 * b1) ** 2
    return at_least(says, left - right, given=(a0, a1), by=[Square(1, b0 * f1 - b1 * f0, (a0, a1))])


def variational(point: Expression, image: Expression, other: Expression) -> Expression:
    """Return -<point - image, other - image>, not negative where image projects on a convex set."""
    return -((point - image) * (other - image))


def projection_is_nonexpansive() -> Step:
    """Return that projections on a convex set are not farther apart than the points."""
    x, y, p, q = symbols("x y p q")
    given = (variational(x, p, q), variational(y, q, p))
    return at_least(
        "|p - q| <= |x - y| for the projections p, q of x, y on a closed convex set",
        (x - y) ** 2 - (p - q) ** 2,
        given=given,
        by=[Square(2, 1, given[:1]), Square(2, 1, given[1:]), Square(1, x - y - p + q)],
        vectors="x y p q",
    )


def factorised_difference() -> Step:
    """Return that D_x K D_x - D_z K D_z is the symmetric part of D_(x+z) K D_(x-z), by entries."""
    x0, x1, z0, z1, K = symbols("x0 x1 z0 z1 K")
    return identity(
        "x_i K_ij x_j - z_i K_ij z_j = ((x+z)_i K_ij (x-z)_j + (x+z)_j K_ij (x-z)_i) / 2",
        x0 * K * x1 - z0 * K * z1,
        ((x0 + z0) * K * (x1 - z1) + (x1 + z1) * K * (x0 - z0)) / 2,
    )
