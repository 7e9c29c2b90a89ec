#!/usr/bin/env python3
"""Refutes kundu2010-eq15: Kundu et al. (2010), (15), from [2].
Claim: Mirror descent with steps sqrt(2 sigma B / t) / L has a gap <= L sqrt(2 B / (sigma T));
here psi = |x|^2/2.
What holds: The steps must be sqrt(2 sigma B / T) / L, T fixed in advance; those with t cost a
factor of log T.
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
    __gt__ = lambda x, y: x.a > ball(y).b
    __float__ = lambda x: float(Fraction(x.a + x.b, 2 << BITS))
    max = lambda x, y: Ball(max(x.a, ball(y).a), max(x.b, ball(y).b))
    min = lambda x, y: Ball(min(x.a, ball(y).a), min(x.b, ball(y).b))
    sqrt = lambda x: Ball(isqrt(max(x.a, 0) << BITS), isqrt(max(x.b, 0) << BITS) + 1)
class Array(list):  # vectors and matrices
    __getitem__ = lambda x, i: x[i[0]][i[1]] if isinstance(i, tuple) else list.__getitem__(x, i)
F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)
CASE = {
    'G': F([[1, 0], ['-824215936045867/2251799813685248',
        '2095535848340695/2251799813685248']]),
    'c': F([0, '-824215936045867/2251799813685248']),
    'best': F(['-1648431872091733/2251799813685248', '-767019355033669/1125899906842624']),
    'T': 2,
}
def subgradient_gap(case):
    G = case['G']
    c = case['c']
    best = case['best']
    assert case['T'] == 2
    assert c[0] > c[1]
    floor = max((sum((g * b for g, b in zip(row, best, strict=True))) + offset for row, offset in zip(G, c, strict=True)))
    R = ball(sum((b * b for b in best))).sqrt()
    norms = [ball(sum((g * g for g in row))).sqrt() for row in G]
    L = norms[0].max(norms[1])
    reach = [ball(sum((g * h for g, h in zip(row, G[0], strict=True)))) * R / L for row in G]
    second = [ball(offset) - step for offset, step in zip(c, reach, strict=True)]
    after = second[0].max(second[1])
    return (ball(c[0]).min(after) - ball(floor), L * R / ball(2).sqrt())
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = subgradient_gap(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
