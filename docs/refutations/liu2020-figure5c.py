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
BITS = 300  # of intervals, behind the point
def ball(x):  # a rational number as an interval
    n, d = Fraction(x).numerator << BITS, Fraction(x).denominator
    return Ball(n // d, -(-n // d))
lift = lambda y: y if isinstance(y, Ball) else ball(y)
class Ball:  # a number between a / 2**BITS and b / 2**BITS; every step rounds outwards
    def __init__(self, a, b): self.a, self.b = a, b
    __gt__ = lambda x, y: x.a > lift(y).b
    __float__ = lambda x: float(Fraction(x.a + x.b, 2 << BITS))
    union = lambda x, y: Ball(min(x.a, y.a), max(x.b, y.b))
class Array(list):  # vectors and matrices
    def __getitem__(x, i):
        if not isinstance(i, tuple): return list.__getitem__(x, i)
        if None in i: return Array([x]) if i[0] is None else Array(Array([a]) for a in x)
        return Array(row[i[1]] for row in x) if isinstance(i[0], slice) else x[i[0]][i[1]]
array = lambda x, dtype=None: Array(map(array, x)) if isinstance(x, (list, tuple, map)) else x
ndim = lambda x: 1 + ndim(x[0]) if isinstance(x, Array) else 0
F = Fraction
CASE = {
    'K': array([[F(1), F(0)], [F(0), F(1)]]),
    'y': array([F(1), F(1)]),
    'C': F(1),
    'eta': F(1),
    'tau': F(0),
    'bias': False,
    'groups': array([F(0), F(1)]),
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

    def rises(s):
        return bool(1 - linear * s - cubic * s ** 3 / (4 * eta) >= 0)
    if rises(high):
        return ball(high)
    for _ in range(60):
        middle = (low + high) / 2
        if rises(middle):
            low = middle
        else:
            high = middle
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
left, right = exact_dropped(CASE)
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
print('the claim says that', show(left), 'is at most', show(right))
print('REFUTED' if left > right else 'not refuted')
sys.exit(0 if left > right else 1)
