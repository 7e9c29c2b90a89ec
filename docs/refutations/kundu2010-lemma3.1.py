#!/usr/bin/env python3
"""Refutes kundu2010-lemma3.1: Kundu et al. (2010), Lemma 3.1, (12), (13).
Claim: (12) is a subgradient of F.
What holds: rho L_i', here and in Algorithms 2 and 3.
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
    __mul__ = __rmul__ = lambda x, y: Ball(min(e := [p * q for p in (x.a, x.b) for q in (ball(y).a, ball(y).b)]) >> BITS, -(-max(e) >> BITS))
    def inverse(x):
        if x.a <= 0 <= x.b: raise ValueError("undecided: a division by what may be 0")
        return Ball(floor(Fraction(4**BITS, x.b)), ceil(Fraction(4**BITS, x.a)))
    __truediv__ = lambda x, y: x * ball(y).inverse()
    __rtruediv__ = lambda x, y: x.inverse() * y
    __gt__ = lambda x, y: x.a > ball(y).b
    __float__ = lambda x: float(Fraction(x.a + x.b, 2 << BITS))
    min = lambda x, y: Ball(min(x.a, ball(y).a), min(x.b, ball(y).b))
    sqrt = lambda x: Ball(isqrt(max(x.a, 0) << BITS), isqrt(max(x.b, 0) << BITS) + 1)
def each(f, x, y):  # f of the entries of two arrays, or of an array and a number
    if not isinstance(x, Array): return Array(each(f, x, b) for b in y) if isinstance(y, Array) else f(x, y)
    if isinstance(y, Array) and isinstance(x[0], Array) == isinstance(y[0], Array): return Array(map(each, [f] * len(y), list(x) * len(y) if len(x) == 1 else x, y))
    return Array(each(f, a, y) for a in x)
class Array(list):  # vectors and matrices
    __getitem__ = lambda x, i: x[i[0]][i[1]] if isinstance(i, tuple) else list.__getitem__(x, i)
    __sub__ = lambda x, y: each(operator.sub, x, y)
    __mul__ = lambda x, y: each(operator.mul, x, y)
    __pow__ = lambda x, k: each(operator.pow, x, k)
    ravel = lambda x: Array(b for a in x for b in (a.ravel() if isinstance(a, Array) else [a]))
    sum = lambda x, axis=None: sum(x[1:], x[0]) if axis == 0 else sum(x.ravel())
F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)
CASE = {
    'S': F([[[1, -1], [-1, 1]], [[1, -1], [-1, 1]]]),
    'C': F(2),
    'rho': F('1/4'),
    'loss': 'squared',
    'K': F([[[1, 0], [0, 1]], [[1, 0], [0, 1]]]),
    'other': F([[[1, '1/2'], ['1/2', 1]], [[1, '1/2'], ['1/2', 1]]]),
}
def exact_svm(C, k):
    roots = [one.sqrt() for one in k]
    s = sum(roots[1:], roots[0])
    amount = C.min(2 / (s * s))
    return (2 * amount - amount * amount * s * s / 2, amount, [root / s for root in roots])
def squared_distances(kernels): return [K[0, 0] + K[1, 1] - 2 * K[0, 1] for K in kernels]
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
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = printed_linearisation(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
