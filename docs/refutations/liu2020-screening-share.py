#!/usr/bin/env python3
"""Refutes liu2020-screening-share: Liu et al. (2020), Remark after Theorem 7.
Claim: (21) recognises points without weight, a share of about 1 - c / sqrt(n) of them.
Premise: some point has no weight in its cluster.
What holds: It recognises none: B2 >= 1, so that (21) asks for less than the least gradient
there can be.
Exact numbers, or intervals that enclose them. Exit code 0: refuted.
"""
import sys
from fractions import Fraction
from math import ceil, floor
BITS = 300  # of intervals, behind the point
ball = lambda x: x if isinstance(x, Ball) else Ball(floor(Fraction(x) * 2**BITS), ceil(Fraction(x) * 2**BITS))
class Ball:  # a number between a / 2**BITS and b / 2**BITS; every step rounds outwards
    def __init__(self, a, b): self.a, self.b = a, b
    __add__ = __radd__ = lambda x, y: Ball(x.a + ball(y).a, x.b + ball(y).b)
    __neg__ = lambda x: Ball(-x.b, -x.a)
    __rsub__ = lambda x, y: -x + y
    __mul__ = __rmul__ = lambda x, y: Ball(min(e := [p * q for p in (x.a, x.b) for q in (ball(y).a, ball(y).b)]) >> BITS, -(-max(e) >> BITS))
    __gt__ = lambda x, y: x.a > ball(y).b
    __lt__ = lambda x, y: x.b < ball(y).a
    __float__ = lambda x: float(Fraction(x.a + x.b, 2 << BITS))
    union = lambda x, y: Ball(min(x.a, y.a), max(x.b, y.b))
class Array(list):  # vectors and matrices
    __getitem__ = lambda x, i: x[i[0]][i[1]] if isinstance(i, tuple) else list.__getitem__(x, i)
    ravel = lambda x: Array(b for a in x for b in (a.ravel() if isinstance(a, Array) else [a]))
F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)
CASE = {
    'K': F([[1, 2], [2, 4]]),
    'y': F([1, 1]),
    'C': F(1),
    'eta': F(1),
    'tau': F(0),
    'bias': False,
    'groups': F([0, 0]),
}
def _require_two_points(case, *, together=False):
    two_points = len(case['y']) == 2
    if not two_points or case['tau'] or case.get('bias', True) or (min(case['K'][0, 0], case['K'][1, 1]) <= 0):
        raise ValueError('decided exactly for two points without tau and bias only')
    if (case['groups'][0] == case['groups'][1]) is not together:
        where = 'one cluster' if together else 'two clusters'
        raise ValueError(f'decided exactly for two points in {where} only')
def _stationary_point(case, linear, cubic):
    eta = case['eta']
    low = 0 * case['C']
    high = case['C']
    def rises(s): return bool(1 - linear * s - cubic * s ** 3 / (4 * eta) >= 0)
    if rises(high): return ball(high)
    for _ in range(60):
        middle = (low + high) / 2
        if rises(middle): low = middle
        else: high = middle
    return ball(low).union(ball(high))
def single_point_optimum(case, i):
    k = case['K'][i, i]
    return _stationary_point(case, k, k * k)
def exact_screening(case):
    _require_two_points(case, together=True)
    K = case['K']
    y = case['y']
    derivative = 1 - ball(y[0] * y[1] * K[0, 1]) * single_point_optimum(case, 0)
    if not derivative < 0: raise ValueError('the second point has weight')
    column_norm = abs(K[0, 1]) + abs(K[1, 1])
    kappa = max((abs(entry) for entry in K.ravel()))
    return (derivative, ball(-case['C'] * (column_norm + kappa)))
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = exact_screening(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
