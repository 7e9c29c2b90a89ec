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
    sqrt = lambda x: Ball(isqrt(max(x.a, 0) << BITS), isqrt(max(x.b, 0) << BITS) + 1)
def each(f, x, y):  # f of the entries of two arrays, or of an array and a number
    if not isinstance(x, Array): return Array(each(f, x, b) for b in y) if isinstance(y, Array) else f(x, y)
    if isinstance(y, Array) and isinstance(x[0], Array) == isinstance(y[0], Array): return Array(map(each, [f] * len(y), list(x) * len(y) if len(x) == 1 else x, y))
    return Array(each(f, a, y) for a in x)
class Array(list):  # vectors and matrices
    __pow__ = lambda x, k: each(operator.pow, x, k)
    ravel = lambda x: Array(b for a in x for b in (a.ravel() if isinstance(a, Array) else [a]))
array = lambda x, dtype=None: Array(map(array, x)) if isinstance(x, (list, tuple, map)) else x
ndim = lambda x: 1 + ndim(x[0]) if isinstance(x, Array) else 0
F = Fraction
CASE = {
    'S': array([[F(0), F(3379649746634475, 2251799813685248), F(0)], [F(3379649746634475,
        2251799813685248), F(0), F(8953078349563887, 4503599627370496)], [F(0),
        F(8953078349563887, 4503599627370496), F(0)]]),
    'y': array([F(1), F(-1), F(1)]),
    'C': F(1505077910418979, 4503599627370496),
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
left, right = exact_falling(CASE)
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
print('the claim says that', show(left), 'is at most', show(right))
print('REFUTED' if left > right else 'not refuted')
sys.exit(0 if left > right else 1)
