#!/usr/bin/env python3
"""Refutes mao2010-eq8-optimal: Mao and Tsang (2010), section 4.1.
Claim: The closed form (8) solves problem (7).
What holds: It is the best kernel that commutes with L; over all kernels the optimum has rank
one and is lower.
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
    __gt__ = lambda x, y: x.a > lift(y).b
    __float__ = lambda x: float(Fraction(x.a + x.b, 2 << BITS))
    sqrt = lambda x: Ball(isqrt(max(x.a, 0) << BITS), isqrt(max(x.b, 0) << BITS) + 1)
def each(f, x, y):  # f of the entries of two arrays, or of an array and a number
    if not isinstance(x, Array): return Array(each(f, x, b) for b in y) if isinstance(y, Array) else f(x, y)
    if isinstance(y, Array) and isinstance(x[0], Array) == isinstance(y[0], Array): return Array(map(each, [f] * len(y), list(x) * len(y) if len(x) == 1 else x, y))
    return Array(each(f, a, y) for a in x)
class Array(list):  # vectors and matrices
    def __getitem__(x, i):
        if not isinstance(i, tuple): return list.__getitem__(x, i)
        if None in i: return Array([x]) if i[0] is None else Array(Array([a]) for a in x)
        return Array(row[i[1]] for row in x) if isinstance(i[0], slice) else x[i[0]][i[1]]
    __sub__ = lambda x, y: each(operator.sub, x, y)
    __rmul__ = lambda x, y: each(operator.mul, y, x)
    def __matmul__(x, y):
        if isinstance(x[0], Array): return Array(row @ y for row in x)
        return Array(x @ z for z in y.T) if isinstance(y[0], Array) else sum(map(operator.mul, x, y))
    T = property(lambda x: Array(map(Array, zip(*x))) if isinstance(x[0], Array) else x)
    ravel = lambda x: Array(b for a in x for b in (a.ravel() if isinstance(a, Array) else [a]))
    any = lambda x: any(x.ravel())
array = lambda x, dtype=None: Array(map(array, x)) if isinstance(x, (list, tuple, map)) else x
ndim = lambda x: 1 + ndim(x[0]) if isinstance(x, Array) else 0
F = Fraction
CASE = {
    'S': array([[F(0), F(1), F(0), F(1)], [F(1), F(0), F(1), F(0)], [F(0), F(1), F(0), F(1)],
        [F(1), F(0), F(1), F(0)]]),
    'y': array([F(1), F(-1), F(0), F(0)]),
    'C': F(2),
    'mu': F(3602879701896397, 72057594037927936),
    'ridge': F(3602879701896397, 36028797018963968),
    'better_factor': array([F(1396330712093235, 1125899906842624), F(-5585322848372941,
        4503599627370496), F(-3993657350211165, 72057594037927936), F(7987314700422121,
        144115188075855872)]),
}
def exact_commuting(case):
    S = case['S']
    y = case['y']
    mu = case['mu']
    C = case['C']
    n = len(y)
    degree = sum(S[0])
    L = array([[Fraction(i == j) - S[i, j] / degree for j in range(n)] for i in range(n)], dtype=object)
    one = array([[Fraction(i == j) for j in range(n)] for i in range(n)], dtype=object)
    if any((sum(row) != degree for row in S)) or (L @ (L - one) @ (L - 2 * one)).any():
        raise ValueError('decided exactly for graphs like a ring of four points only')
    shares = (y @ (L - one) @ (L - 2 * one) @ y / 2, y @ L @ (2 * one - L) @ y, y @ L @ (L - one) @ y / 2)
    left = ball(0)
    for value, share in enumerate(shares):
        weight = mu * (value + case['ridge'])
        if share and share * C * C < 2 * weight:
            raise ValueError('decided exactly where no part of the spectrum is cut off only')
        left += ball(2 * weight * share).sqrt() - ball(weight / C) if share else ball(0)
    f = CASE['better_factor']
    fit = C * (y @ y) / 2 - C * C * (f @ y) ** 2 / (1 + C * (f @ f)) / 2
    return (left, ball(fit + mu * (f @ L @ f + case['ridge'] * (f @ f))))
left, right = exact_commuting(CASE)
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
print('the claim says that', show(left), 'is at most', show(right))
print('REFUTED' if left > right else 'not refuted')
sys.exit(0 if left > right else 1)
