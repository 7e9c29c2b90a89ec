#!/usr/bin/env python3
"""Refutes mao2010-eq8-basis: Mao and Tsang (2010), (8).
Claim: The kernel of (8) is well defined: it does not depend on the eigenvectors chosen.
What holds: Only if each repeated eigenvalue has one direction, the projection of y on its
space.
Exact numbers, or intervals that enclose them. Exit code 0: refuted.
"""
import sys
from fractions import Fraction
from math import ceil, floor, isqrt
BITS = 300  # of intervals, behind the point
ball = lambda x: x if isinstance(x, Ball) else Ball(floor(Fraction(x) * 2**BITS), ceil(Fraction(x) * 2**BITS))
class Ball:  # a number between a / 2**BITS and b / 2**BITS; every step rounds outwards
    def __init__(self, a, b): self.a, self.b = a, b
    __add__ = __radd__ = lambda x, y: Ball(x.a + ball(y).a, x.b + ball(y).b)
    __neg__ = lambda x: Ball(-x.b, -x.a)
    __sub__ = lambda x, y: x + -ball(y)
    __mul__ = __rmul__ = lambda x, y: Ball(min(e := [p * q for p in (x.a, x.b) for q in (ball(y).a, ball(y).b)]) >> BITS, -(-max(e) >> BITS))
    def inverse(x):
        if x.a <= 0 <= x.b: raise ValueError("undecided: a division by what may be 0")
        return Ball(floor(Fraction(4**BITS, x.b)), ceil(Fraction(4**BITS, x.a)))
    __truediv__ = lambda x, y: x * ball(y).inverse()
    __rtruediv__ = lambda x, y: x.inverse() * y
    __abs__ = lambda x: x.max(-x)
    __gt__ = lambda x, y: x.a > ball(y).b
    __float__ = lambda x: float(Fraction(x.a + x.b, 2 << BITS))
    max = lambda x, y: Ball(max(x.a, ball(y).a), max(x.b, ball(y).b))
    sqrt = lambda x: Ball(isqrt(max(x.a, 0) << BITS), isqrt(max(x.b, 0) << BITS) + 1)
class Array(list):  # vectors and matrices
    __getitem__ = lambda x, i: x[i[0]][i[1]] if isinstance(i, tuple) else list.__getitem__(x, i)
F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)
CASE = {
    'S': F([[0, 1, 1], [1, 0, 1], [1, 1, 0]]),
    'y': F([1, -1, 0]),
    'C': F(2),
    'mu': F('3602879701896397/72057594037927936'),
    'ridge': F('3602879701896397/36028797018963968'),
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
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = exact_rotated(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
