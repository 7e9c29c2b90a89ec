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
BITS = 300  # of intervals, behind the point
def ball(x):  # a rational number as an interval
    n, d = Fraction(x).numerator << BITS, Fraction(x).denominator
    return Ball(n // d, -(-n // d))
lift = lambda y: y if isinstance(y, Ball) else ball(y)
class Ball:  # a number between a / 2**BITS and b / 2**BITS; every step rounds outwards
    def __init__(self, a, b): self.a, self.b = a, b
    __add__ = __radd__ = lambda x, y: Ball(x.a + lift(y).a, x.b + lift(y).b)
    __neg__ = lambda x: Ball(-x.b, -x.a)
    __rsub__ = lambda x, y: -x + y
    def __mul__(x, y):
        ends = [p * q for p in (x.a, x.b) for q in (lift(y).a, lift(y).b)]
        return Ball(min(ends) >> BITS, -(-max(ends) >> BITS))
    __rmul__ = __mul__
    __gt__ = lambda x, y: x.a > lift(y).b
    __lt__ = lambda x, y: x.b < lift(y).a
    __float__ = lambda x: float(Fraction(x.a + x.b, 2 << BITS))
    union = lambda x, y: Ball(min(x.a, y.a), max(x.b, y.b))
class Array(list):  # vectors and matrices
    def __getitem__(x, i):
        if not isinstance(i, tuple): return list.__getitem__(x, i)
        if None in i: return Array([x]) if i[0] is None else Array(Array([a]) for a in x)
        return Array(row[i[1]] for row in x) if isinstance(i[0], slice) else x[i[0]][i[1]]
    ravel = lambda x: Array(b for a in x for b in (a.ravel() if isinstance(a, Array) else [a]))
array = lambda x, dtype=None: Array(map(array, x)) if isinstance(x, (list, tuple, map)) else x
ndim = lambda x: 1 + ndim(x[0]) if isinstance(x, Array) else 0
F = Fraction
CASE = {
    'K': array([[F(1), F(2)], [F(2), F(4)]]),
    'y': array([F(1), F(1)]),
    'C': F(1),
    'eta': F(1),
    'tau': F(0),
    'bias': False,
    'groups': array([F(0), F(0)]),
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
def exact_screening(case):
    _require_two_points(case, together=True)
    K = case['K']
    y = case['y']
    derivative = 1 - ball(y[0] * y[1] * K[0, 1]) * single_point_optimum(case, 0)
    if not derivative < 0:
        raise ValueError('the second point has weight')
    column_norm = abs(K[0, 1]) + abs(K[1, 1])
    kappa = max((abs(entry) for entry in K.ravel()))
    return (derivative, ball(-case['C'] * (column_norm + kappa)))
left, right = exact_screening(CASE)
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
print('the claim says that', show(left), 'is at most', show(right))
print('REFUTED' if left > right else 'not refuted')
sys.exit(0 if left > right else 1)
