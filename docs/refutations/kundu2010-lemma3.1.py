#!/usr/bin/env python3
"""Refutes kundu2010-lemma3.1: Kundu et al. (2010), Lemma 3.1, (12), (13).
Claim: (12) is a subgradient of F.
What holds: rho L_i', here and in Algorithms 2 and 3.
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
    __rtruediv__ = lambda x, y: x.inverse() * y
    __gt__ = lambda x, y: x.a > lift(y).b
    __float__ = lambda x: float(Fraction(x.a + x.b, 2 << BITS))
    min = lambda x, y: Ball(min(x.a, lift(y).a), min(x.b, lift(y).b))
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
    __mul__ = lambda x, y: each(operator.mul, x, y)
    __pow__ = lambda x, k: each(operator.pow, x, k)
    ravel = lambda x: Array(b for a in x for b in (a.ravel() if isinstance(a, Array) else [a]))
    sum = lambda x, axis=None: sum(x[1:], x[0]) if axis == 0 else sum(x.ravel())
array = lambda x, dtype=None: Array(map(array, x)) if isinstance(x, (list, tuple, map)) else x
ndim = lambda x: 1 + ndim(x[0]) if isinstance(x, Array) else 0
F = Fraction
CASE = {
    'S': array([[[F(1), F(-1)], [F(-1), F(1)]], [[F(1), F(-1)], [F(-1), F(1)]]]),
    'C': F(2),
    'rho': F(1, 4),
    'loss': 'squared',
    'K': array([[[F(1), F(0)], [F(0), F(1)]], [[F(1), F(0)], [F(0), F(1)]]]),
    'other': array([[[F(1), F(1, 2)], [F(1, 2), F(1)]], [[F(1), F(1, 2)], [F(1, 2), F(1)]]]),
}
def exact_svm(C, k):
    roots = [one.sqrt() for one in k]
    s = sum(roots[1:], roots[0])
    amount = C.min(2 / (s * s))
    return (2 * amount - amount * amount * s * s / 2, amount, [root / s for root in roots])
def squared_distances(kernels):
    return [K[0, 0] + K[1, 1] - 2 * K[0, 1] for K in kernels]
def printed_linearisation(case):
    C, rho, S, K, other = (case[name] for name in ('C', 'rho', 'S', 'K', 'other'))
    assert case['loss'] == 'squared'
    (first, amount, gamma), (second, _, _) = (exact_svm(ball(C), [ball(k) for k in squared_distances(M)]) for M in (K, other))
    for i in range(len(S)):
        move = other[i] - K[i]
        X = K[i] - S[i]
        first += ball(rho * (X * X).sum()) + ball(2 * (X * move).sum())
        first -= amount * amount * ball(squared_distances([move])[0]) / (2 * gamma[i])
        second += ball(rho * ((other[i] - S[i]) ** 2).sum())
    return (first, second)
left, right = printed_linearisation(CASE)
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
print('the claim says that', show(left), 'is at most', show(right))
print('REFUTED' if left > right else 'not refuted')
sys.exit(0 if left > right else 1)
