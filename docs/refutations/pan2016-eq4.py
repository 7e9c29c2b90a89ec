#!/usr/bin/env python3
"""Refutes pan2016-eq4: Pan et al. (2016), (4).
Claim: Projecting on one constraint after the other converges to the optimum of (4).
What holds: Each constraint keeps its multiplier, and a step may take back what it did
(Bregman's correction).
Exact numbers, or intervals that enclose them. Exit code 0: refuted.
"""
import sys
import operator
from fractions import Fraction
from math import ceil, floor
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
    size = lambda x: max(abs(x.a), abs(x.b))
    def log(x):  # log(x / 2**e) + e log 2, each by the series of artanh
        if x.a <= 0: raise ValueError("undecided: the logarithm of what may be 0")
        e, s = x.b.bit_length() - BITS, ball(0)
        m = x * Fraction(2) ** -e
        for z, c in (((m - 1) / (m + 1), 2), (ball(Fraction(1, 3)), 2 * e)):
            p, n = z, 1
            while p.size() > 2: s = s + p * Fraction(c, n); p, n = p * z * z, n + 2
            s = s + Ball(-9 * abs(c), 9 * abs(c))  # the rest
        return s
def each(f, x, y):  # f of the entries of two arrays, or of an array and a number
    if not isinstance(x, Array): return Array(each(f, x, b) for b in y) if isinstance(y, Array) else f(x, y)
    if isinstance(y, Array) and isinstance(x[0], Array) == isinstance(y[0], Array): return Array(map(each, [f] * len(y), list(x) * len(y) if len(x) == 1 else x, y))
    return Array(each(f, a, y) for a in x)
class Array(list):  # vectors and matrices
    def __getitem__(x, i):
        if not isinstance(i, tuple): return list.__getitem__(x, i)
        if None in i: return Array([x]) if i[0] is None else Array(Array([a]) for a in x)
        return Array(row[i[1]] for row in x) if isinstance(i[0], slice) else x[i[0]][i[1]]
    __add__ = lambda x, y: each(operator.add, x, y)
    __sub__ = lambda x, y: each(operator.sub, x, y)
    __rmul__ = lambda x, y: each(operator.mul, y, x)
    __ne__ = lambda x, y: each(operator.ne, x, y)
    ravel = lambda x: Array(b for a in x for b in (a.ravel() if isinstance(a, Array) else [a]))
    trace = lambda x: sum(row[i] for i, row in enumerate(x))
    any = lambda x: any(x.ravel())
array = lambda x, dtype=None: Array(map(array, x)) if isinstance(x, (list, tuple, map)) else x
eye = lambda n, dtype=int: array([[int(i == j) for j in range(n)] for i in range(n)])
outer = lambda x, y: array([[a * b for b in y] for a in x])
F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)
CASE = {
    'K0': F([[1, 0, 0], [0, 1, 0], [0, 0, 1]]),
    'u12': F('4278419646001971/2251799813685248'),
    'u13': F('3602879701896397/36028797018963968'),
}
def _distance(K, k): return Fraction(K[0, 0] + K[k, k] - 2 * K[0, k])
def _projected(K, k, bound):
    p = _distance(K, k)
    if p <= bound: return (K, Fraction(1))
    Kz = K[:, 0] - K[:, k]
    return (K + (bound - p) / p ** 2 * outer(Kz, Kz), bound / p)
def exact_plain_projections(case):
    K0 = case['K0']
    bounds = (case['u12'], case['u13'])
    first, one = _projected(K0, 1, bounds[0])
    K, two = _projected(first, 2, bounds[1])
    other, only = _projected(K0, 2, bounds[1])
    feasible = all((_distance(M, k) <= u for M in (K, other) for k, u in zip((1, 2), bounds, strict=True)))
    if not feasible or (eye(len(K0), dtype=int) != K0).any():
        raise ValueError('decided exactly for K0 = I and projections that stop after one sweep only')
    n = len(K0)
    of_limit = ball(K.trace() - n) - ball(one * two).log()
    of_other = ball(other.trace() - n) - ball(only).log()
    return (of_limit, of_other)
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = exact_plain_projections(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
