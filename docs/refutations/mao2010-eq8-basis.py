#!/usr/bin/env python3
"""Refutes mao2010-eq8-basis: Mao and Tsang (2010), (8).
Claim: The kernel of (8) is well defined: it does not depend on the eigenvectors chosen.
What holds: Only if each repeated eigenvalue has one direction, the projection of y on its
space.
Exact numbers, or intervals that enclose them. Exit code 0: refuted.
"""
import sys
from fractions import Fraction
from math import isqrt
BITS = 300  # of intervals, behind the point
def ball(x):  # a rational number as an interval
    n, d = Fraction(x).numerator << BITS, Fraction(x).denominator
    return Ball(n // d, -(-n // d))
lift = lambda y: y if isinstance(y, Ball) else ball(y)
class Ball:  # a number between a / 2**BITS and b / 2**BITS; every step rounds outwards
    def __init__(self, a, b): self.a, self.b = a, b
    __add__ = __radd__ = lambda x, y: Ball(x.a + lift(y).a, x.b + lift(y).b)
    __neg__ = lambda x: Ball(-x.b, -x.a)
    __sub__ = lambda x, y: x + -lift(y)
    def __mul__(x, y):
        ends = [p * q for p in (x.a, x.b) for q in (lift(y).a, lift(y).b)]
        return Ball(min(ends) >> BITS, -(-max(ends) >> BITS))
    __rmul__ = __mul__
    def inverse(x):
        if x.a <= 0 <= x.b: raise ValueError("undecided: a division by what may be 0")
        return Ball((1 << 2 * BITS) // x.b, -(-(1 << 2 * BITS) // x.a))
    __truediv__ = lambda x, y: x * lift(y).inverse()
    __rtruediv__ = lambda x, y: x.inverse() * y
    __abs__ = lambda x: x.max(-x)
    __gt__ = lambda x, y: x.a > lift(y).b
    __float__ = lambda x: float(Fraction(x.a + x.b, 2 << BITS))
    max = lambda x, y: Ball(max(x.a, lift(y).a), max(x.b, lift(y).b))
    sqrt = lambda x: Ball(isqrt(max(x.a, 0) << BITS), isqrt(max(x.b, 0) << BITS) + 1)
class Array(list):  # vectors and matrices
    def __getitem__(x, i):
        if not isinstance(i, tuple): return list.__getitem__(x, i)
        if None in i: return Array([x]) if i[0] is None else Array(Array([a]) for a in x)
        return Array(row[i[1]] for row in x) if isinstance(i[0], slice) else x[i[0]][i[1]]
array = lambda x, dtype=None: Array(map(array, x)) if isinstance(x, (list, tuple, map)) else x
ndim = lambda x: 1 + ndim(x[0]) if isinstance(x, Array) else 0
F = Fraction
CASE = {
    'S': array([[F(0), F(1), F(1)], [F(1), F(0), F(1)], [F(1), F(1), F(0)]]),
    'y': array([F(1), F(-1), F(0)]),
    'C': F(2),
    'mu': F(3602879701896397, 72057594037927936),
    'ridge': F(3602879701896397, 36028797018963968),
}
def exact_rotated(case):
    pairs = [(i, j) for i in range(3) for j in range(3)]
    if len(case['y']) != 3 or any((case['S'][i, j] != (i != j) for i, j in pairs)):
        raise ValueError('decided exactly for a triangle only')
    B = Fraction(3, 2) + case['ridge']
    C = ball(case['C'])
    mu = case['mu']
    y = [ball(target) for target in case['y']]
    first = ball(2).sqrt()
    second = ball(6).sqrt()
    u = [1 / first, -1 / first, ball(0)]
    v = [1 / second, 1 / second, -2 / second]

    def corner(c, s):
        total = ball(0)
        for a, b in ((c, s), (-s, c)):
            w = [ball(a) * p + ball(b) * q for p, q in zip(u, v, strict=True)]
            seen = sum((p * q for p, q in zip(w, y, strict=True)), ball(0))
            eigenvalue = (abs(seen) / ball(2 * mu * B).sqrt() - 1 / C).max(ball(0))
            total += eigenvalue * w[0] * w[0]
        return total
    plain = corner(Fraction(1), Fraction(0))
    rotated = corner(Fraction(3, 5), Fraction(4, 5))
    return (abs(plain - rotated), ball(0))
left, right = exact_rotated(CASE)
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
print('the claim says that', show(left), 'is at most', show(right))
print('REFUTED' if left > right else 'not refuted')
sys.exit(0 if left > right else 1)
