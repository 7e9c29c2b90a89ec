#!/usr/bin/env python3
"""Refutes mao2010-kta-positive: Mao and Tsang (2010), proof of Proposition 3.
Claim: The alignment cannot be zero since K is not: some sqrt(A / 2 mu B) exceeds 1/C.
What holds: K = 0 exactly where mu >= C^2 max(A / B) / 2.
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
    __gt__ = lambda x, y: x.a > lift(y).b
    __float__ = lambda x: float(Fraction(x.a + x.b, 2 << BITS))
    sqrt = lambda x: Ball(isqrt(max(x.a, 0) << BITS), isqrt(max(x.b, 0) << BITS) + 1)
class Array(list): pass
array = lambda x, dtype=None: Array(map(array, x)) if isinstance(x, (list, tuple, map)) else x
ndim = lambda x: 1 + ndim(x[0]) if isinstance(x, Array) else 0
F = Fraction
CASE = {
    'A': array([F(1)]),
    'B': array([F(1)]),
    'C': F(1),
    'mu': F(2),
}
def exact_spectrum8(case):
    ratios = [a / (2 * case['mu'] * b) for a, b in zip(case['A'], case['B'], strict=True)]
    return [ball(ratio).sqrt() - ball(1 / Fraction(case['C'])) for ratio in ratios]
def sides(case):
    return (ball(0), max(exact_spectrum8(case)))
left, right = sides(CASE)
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
print('the claim says that', show(left), 'is at most', show(right))
print('REFUTED' if left > right else 'not refuted')
sys.exit(0 if left > right else 1)
