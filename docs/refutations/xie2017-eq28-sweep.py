#!/usr/bin/env python3
"""Refutes xie2017-eq28-sweep: Xie et al. (2017), step (2), for every i.
Claim: Updating the entries one by one, lam computed anew for each, lowers alpha'F alpha /
(b'alpha)^2 in a sweep.
What holds: All entries at once with lam fixed.
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
    __mul__ = __rmul__ = lambda x, y: Ball(min(e := [p * q for p in (x.a, x.b) for q in (ball(y).a, ball(y).b)]) >> BITS, -(-max(e) >> BITS))
    def inverse(x):
        if x.a <= 0 <= x.b: raise ValueError("undecided: a division by what may be 0")
        return Ball(floor(Fraction(4**BITS, x.b)), ceil(Fraction(4**BITS, x.a)))
    __truediv__ = lambda x, y: x * ball(y).inverse()
    __pow__ = lambda x, k: x ** (k - 1) * x if k else ball(1)
    __gt__ = lambda x, y: x.a > ball(y).b
    __float__ = lambda x: float(Fraction(x.a + x.b, 2 << BITS))
def each(f, x, y):  # f of the entries of two arrays, or of an array and a number
    if not isinstance(x, Array): return Array(each(f, x, b) for b in y) if isinstance(y, Array) else f(x, y)
    if isinstance(y, Array) and isinstance(x[0], Array) == isinstance(y[0], Array): return Array(map(each, [f] * len(y), list(x) * len(y) if len(x) == 1 else x, y))
    return Array(each(f, a, y) for a in x)
class Array(list):  # vectors and matrices
    __getitem__ = lambda x, i: x[i[0]][i[1]] if isinstance(i, tuple) else list.__getitem__(x, i)
    __truediv__ = lambda x, y: each(operator.truediv, x, y)
    copy = lambda x: array(x)
array = lambda x, dtype=None: Array(map(array, x)) if isinstance(x, (list, tuple, map)) else x
vectorize = lambda f, otypes=None: lambda x: Array(map(vectorize(f), x)) if isinstance(x, Array) else f(x)
F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)
CASE = {
    'F': F([[1, 0, 0, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0, 0, 0], [0, 0,
        0, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 0,
        0, 1, 0], [0, 0, 0, 0, 0, 0, 0, 1]]),
    'b': F([1, 1, 1, 1, 1, 1, 1, 1]),
    'a': F(['1/2', '1/2', '4722366482869645/4722366482869645213696',
        '4722366482869645/4722366482869645213696', '4722366482869645/4722366482869645213696',
        '4722366482869645/4722366482869645213696', '4722366482869645/4722366482869645213696',
        '4722366482869645/4722366482869645213696']),
}
def exact_dot(a, b): return sum((x * y for x, y in zip(a, b, strict=True)))
def _balls(case):
    F, b, a = (vectorize(ball, otypes=[object])(case[name]) for name in ('F', 'b', 'a'))
    return (F, b, a / exact_dot(b, a))
def exact_objective(F, a): return exact_dot(a, [exact_dot(row, a) for row in F])
def exact_sweep(case):
    F, b, a = _balls(case)
    value = lambda x: exact_objective(F, x) / exact_dot(b, x) ** 2
    before = value(a)
    a = a.copy()
    for i in range(len(a)): a[i] = a[i] * exact_objective(F, a) * b[i] / exact_dot(F[i], a)
    return (value(a), before)
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = exact_sweep(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
