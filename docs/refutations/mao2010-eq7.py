#!/usr/bin/env python3
"""Refutes mao2010-eq7: Mao and Tsang (2010), (6), (7).
Claim: (7) has a minimiser as it stands, without a ridge: along the null vector of L the value
stops falling.
Premise: the labels see the null space: q'y is not 0.
What holds: L is singular: along its null vector q the value keeps falling. A ridge or a free
bias mends it.
Exact numbers, or intervals that enclose them. Exit code 0: refuted.
"""
import sys
import operator
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
    sqrt = lambda x: Ball(isqrt(max(x.a, 0) << BITS), isqrt(max(x.b, 0) << BITS) + 1)
def each(f, x, y):  # f of the entries of two arrays, or of an array and a number
    if not isinstance(x, Array): return Array(each(f, x, b) for b in y) if isinstance(y, Array) else f(x, y)
    if isinstance(y, Array) and isinstance(x[0], Array) == isinstance(y[0], Array): return Array(map(each, [f] * len(y), list(x) * len(y) if len(x) == 1 else x, y))
    return Array(each(f, a, y) for a in x)
class Array(list):  # vectors and matrices
    __pow__ = lambda x, k: each(operator.pow, x, k)
    ravel = lambda x: Array(b for a in x for b in (a.ravel() if isinstance(a, Array) else [a]))
F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)
CASE = {
    'S': F([[0, '3379649746634475/2251799813685248', 0], ['3379649746634475/2251799813685248',
        0, '8953078349563887/4503599627370496'], [0, '8953078349563887/4503599627370496', 0]]),
    'y': F([1, -1, 1]),
    'C': F('1505077910418979/4503599627370496'),
}
def exact_falling(case):
    y = case['y']
    C = ball(case['C'])
    q = [ball(sum(row)).sqrt() for row in case['S']]
    seen = sum((root * ball(target) for root, target in zip(q, y, strict=True)), ball(0))
    size = ball(sum(case['S'].ravel()))
    def value(t):
        return C * ball(sum(y ** 2)) / 2 - C * C * t * seen * seen / (1 + C * t * size) / 2
    return (value(10), value(10 ** 4))
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = exact_falling(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
