#!/usr/bin/env python3
"""Refutes liu2020-figure5c: Liu et al. (2020), section 6.2.4.
Claim: Points with a gradient of at most (B + B2) C (|Kbar_i|_1 + kappa), without the minus
sign, have no weight.
What holds: That drops support vectors. Gap-safe: grad_i < -max(sqrt(2 L_i gap), 2 gap / C)
drops none.
Exact numbers, or intervals that enclose them. Exit code 0: refuted.
"""
import sys
from fractions import Fraction
from math import ceil, floor
BITS = 300  # of intervals, behind the point
ball = lambda x: x if isinstance(x, Ball) else Ball(floor(Fraction(x) * 2**BITS), ceil(Fraction(x) * 2**BITS))
class Ball:  # a number between a / 2**BITS and b / 2**BITS; every step rounds outwards
    def __init__(self, a, b): self.a, self.b = a, b
    __gt__ = lambda x, y: x.a > ball(y).b
    __float__ = lambda x: float(Fraction(x.a + x.b, 2 << BITS))
    union = lambda x, y: Ball(min(x.a, y.a), max(x.b, y.b))
class Array(list):  # vectors and matrices
    __getitem__ = lambda x, i: x[i[0]][i[1]] if isinstance(i, tuple) else list.__getitem__(x, i)
F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)
CASE = {
    'K': F([[1, 0], [0, 1]]),
    'y': F([1, 1]),
    'C': F(1),
    'eta': F(1),
    'tau': F(0),
    'bias': False,
    'groups': F([0, 1]),
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
def exact_dropped(case):
    _require_two_points(case)
    k = case['K'][0, 0]
    C = case['C']
    if case['K'][0, 1] != 0 or max(1 - C * k, 0) > 2 * C * k:
        raise ValueError('decided exactly for a diagonal K and C K_11 >= 1/3 only')
    return (single_point_optimum(case, 0), ball(0))
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = exact_dropped(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
