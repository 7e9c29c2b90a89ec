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
    __gt__ = lambda x, y: x.a > lift(y).b
    __float__ = lambda x: float(Fraction(x.a + x.b, 2 << BITS))
    max = lambda x, y: Ball(max(x.a, lift(y).a), max(x.b, lift(y).b))
    min = lambda x, y: Ball(min(x.a, lift(y).a), min(x.b, lift(y).b))
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
    'G': array([[F(1), F(0)], [F(-824215936045867, 2251799813685248), F(2095535848340695,
        2251799813685248)]]),
    'c': array([F(0), F(-824215936045867, 2251799813685248)]),
    'best': array([F(-1648431872091733, 2251799813685248), F(-767019355033669,
        1125899906842624)]),
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
left, right = subgradient_gap(CASE)
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
print('the claim says that', show(left), 'is at most', show(right))
print('REFUTED' if left > right else 'not refuted')
sys.exit(0 if left > right else 1)
