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
from math import ceil, floor, isqrt
BITS = 300  # of intervals, behind the point
ball = lambda x: x if isinstance(x, Ball) else Ball(floor(Fraction(x) * 2**BITS), ceil(Fraction(x) * 2**BITS))
class Ball:  # a number between a / 2**BITS and b / 2**BITS; every step rounds outwards
    def __init__(self, a, b): self.a, self.b = a, b
    __add__ = __radd__ = lambda x, y: Ball(x.a + ball(y).a, x.b + ball(y).b)
    __neg__ = lambda x: Ball(-x.b, -x.a)
    __sub__ = lambda x, y: x + -ball(y)
    __gt__ = lambda x, y: x.a > ball(y).b
    __float__ = lambda x: float(Fraction(x.a + x.b, 2 << BITS))
    sqrt = lambda x: Ball(isqrt(max(x.a, 0) << BITS), isqrt(max(x.b, 0) << BITS) + 1)
def each(f, x, y):  # f of the entries of two arrays, or of an array and a number
    if not isinstance(x, Array): return Array(each(f, x, b) for b in y) if isinstance(y, Array) else f(x, y)
    if isinstance(y, Array) and isinstance(x[0], Array) == isinstance(y[0], Array): return Array(map(each, [f] * len(y), list(x) * len(y) if len(x) == 1 else x, y))
    return Array(each(f, a, y) for a in x)
class Array(list):  # vectors and matrices
    __getitem__ = lambda x, i: x[i[0]][i[1]] if isinstance(i, tuple) else list.__getitem__(x, i)
    __sub__ = lambda x, y: each(operator.sub, x, y)
    __rmul__ = lambda x, y: each(operator.mul, y, x)
    def __matmul__(x, y):
        if isinstance(x[0], Array): return Array(row @ y for row in x)
        return Array(x @ z for z in y.T) if isinstance(y[0], Array) else sum(map(operator.mul, x, y))
    T = property(lambda x: Array(map(Array, zip(*x))) if isinstance(x[0], Array) else x)
    ravel = lambda x: Array(b for a in x for b in (a.ravel() if isinstance(a, Array) else [a]))
    any = lambda x: any(x.ravel())
array = lambda x, dtype=None: Array(map(array, x)) if isinstance(x, (list, tuple, map)) else x
F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)
CASE = {
    'S': F([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]]),
    'y': F([1, -1, 0, 0]),
    'C': F(2),
    'mu': F('3602879701896397/72057594037927936'),
    'ridge': F('3602879701896397/36028797018963968'),
    'better_factor': F(['1396330712093235/1125899906842624',
        '-5585322848372941/4503599627370496', '-3993657350211165/72057594037927936',
        '7987314700422121/144115188075855872']),
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
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = exact_commuting(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
