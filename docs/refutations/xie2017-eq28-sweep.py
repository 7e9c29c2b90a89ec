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
BITS = 300  # of intervals, behind the point
def ball(x):  # a rational number as an interval
    n, d = Fraction(x).numerator << BITS, Fraction(x).denominator
    return Ball(n // d, -(-n // d))
lift = lambda y: y if isinstance(y, Ball) else ball(y)
class Ball:  # a number between a / 2**BITS and b / 2**BITS; every step rounds outwards
    def __init__(self, a, b): self.a, self.b = a, b
    __add__ = __radd__ = lambda x, y: Ball(x.a + lift(y).a, x.b + lift(y).b)
    def __mul__(x, y):
        ends = [p * q for p in (x.a, x.b) for q in (lift(y).a, lift(y).b)]
        return Ball(min(ends) >> BITS, -(-max(ends) >> BITS))
    __rmul__ = __mul__
    def inverse(x):
        if x.a <= 0 <= x.b: raise ValueError("undecided: a division by what may be 0")
        return Ball((1 << 2 * BITS) // x.b, -(-(1 << 2 * BITS) // x.a))
    __truediv__ = lambda x, y: x * lift(y).inverse()
    __pow__ = lambda x, k: x ** (k - 1) * x if k else ball(1)
    __gt__ = lambda x, y: x.a > lift(y).b
    __float__ = lambda x: float(Fraction(x.a + x.b, 2 << BITS))
def each(f, x, y):  # f of the entries of two arrays, or of an array and a number
    if not isinstance(x, Array): return Array(each(f, x, b) for b in y) if isinstance(y, Array) else f(x, y)
    if isinstance(y, Array) and isinstance(x[0], Array) == isinstance(y[0], Array): return Array(map(each, [f] * len(y), list(x) * len(y) if len(x) == 1 else x, y))
    return Array(each(f, a, y) for a in x)
class Array(list):  # vectors and matrices
    def __getitem__(x, i):
        if not isinstance(i, tuple): return list.__getitem__(x, i)
        if None in i: return Array([x]) if i[0] is None else Array(Array([a]) for a in x)
        return Array(row[i[1]] for row in x) if isinstance(i[0], slice) else x[i[0]][i[1]]
    __truediv__ = lambda x, y: each(operator.truediv, x, y)
    copy = lambda x: array(x)
array = lambda x, dtype=None: Array(map(array, x)) if isinstance(x, (list, tuple, map)) else x
vectorize = lambda f, otypes=None: lambda x: Array(map(vectorize(f), x)) if isinstance(x, Array) else f(x)
ndim = lambda x: 1 + ndim(x[0]) if isinstance(x, Array) else 0
F = Fraction
CASE = {
    'F': array([[F(1), F(0), F(0), F(0), F(0), F(0), F(0), F(0)], [F(0), F(1), F(0), F(0), F(0),
        F(0), F(0), F(0)], [F(0), F(0), F(1), F(0), F(0), F(0), F(0), F(0)], [F(0), F(0), F(0),
        F(1), F(0), F(0), F(0), F(0)], [F(0), F(0), F(0), F(0), F(1), F(0), F(0), F(0)], [F(0),
        F(0), F(0), F(0), F(0), F(1), F(0), F(0)], [F(0), F(0), F(0), F(0), F(0), F(0), F(1),
        F(0)], [F(0), F(0), F(0), F(0), F(0), F(0), F(0), F(1)]]),
    'b': array([F(1), F(1), F(1), F(1), F(1), F(1), F(1), F(1)]),
    'a': array([F(1, 2), F(1, 2), F(4722366482869645, 4722366482869645213696),
        F(4722366482869645, 4722366482869645213696), F(4722366482869645,
        4722366482869645213696), F(4722366482869645, 4722366482869645213696),
        F(4722366482869645, 4722366482869645213696), F(4722366482869645,
        4722366482869645213696)]),
}
def exact_dot(a, b):
    return sum((x * y for x, y in zip(a, b, strict=True)))
def _balls(case):
    F, b, a = (vectorize(ball, otypes=[object])(case[name]) for name in ('F', 'b', 'a'))
    return (F, b, a / exact_dot(b, a))
def exact_objective(F, a):
    return exact_dot(a, [exact_dot(row, a) for row in F])
def exact_sweep(case):
    F, b, a = _balls(case)
    value = lambda x: exact_objective(F, x) / exact_dot(b, x) ** 2
    before = value(a)
    a = a.copy()
    for i in range(len(a)):
        a[i] = a[i] * exact_objective(F, a) * b[i] / exact_dot(F[i], a)
    return (value(a), before)
left, right = exact_sweep(CASE)
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
print('the claim says that', show(left), 'is at most', show(right))
print('REFUTED' if left > right else 'not refuted')
sys.exit(0 if left > right else 1)
