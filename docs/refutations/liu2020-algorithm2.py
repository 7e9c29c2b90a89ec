#!/usr/bin/env python3
"""Refutes liu2020-algorithm2: Liu et al. (2020), Algorithm 2 line 7.
Claim: Algorithm 2 accelerates with the minus sign of its line 7: theta has a gap of at most 8 L
|x*|^2 / ((t+1)(t+2)).
Premise: constraint and derivative as in liu2020-eq22 and liu2020-prop9-down, else it does not
even ascend.
What holds: The sign is plus, as in Algorithm 1.
Exact numbers, or intervals that enclose them. Exit code 0: refuted.
"""
import sys
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
    __pow__ = lambda x, k: x ** (k - 1) * x if k else ball(1)
    __gt__ = lambda x, y: x.a > lift(y).b
    __float__ = lambda x: float(Fraction(x.a + x.b, 2 << BITS))
    max = lambda x, y: Ball(max(x.a, lift(y).a), max(x.b, lift(y).b))
    min = lambda x, y: Ball(min(x.a, lift(y).a), min(x.b, lift(y).b))
    sqrt = lambda x: Ball(isqrt(max(x.a, 0) << BITS), isqrt(max(x.b, 0) << BITS) + 1)
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
    'y': array([F(1), F(-1)]),
    'C': F(1),
    'eta': F(1),
    'tau': F(0),
    'epsilon': F(1, 8),
    'steps': F(300),
}
def exact_minus_regression(case):
    K = case['K']
    y = case['y']
    opposite = len(y) == 2 and y[0] == -y[1] and (y[0] > 0)
    if not opposite or K[0, 1] != 0 or K[0, 0] != K[1, 1] or case['tau']:
        raise ValueError('decided exactly for K = kI, two opposite targets and tau = 0 only')
    k, Y, C, eta, epsilon = (ball(x) for x in (K[0, 0], y[0], case['C'], case['eta'], case['epsilon']))
    L = 4 * k * (2 + 18 * C ** 2 * ball(2).sqrt() * k / (4 * eta))
    u = d = up = down = ball(0)
    total = int(case['steps'])

    def value(u, d):
        beta = u - d
        return 2 * (Y * beta - epsilon * (u + d) - k * beta ** 2 / 2 - k ** 2 * beta ** 4 / (16 * eta))
    for t in range(total):
        rest = Y - k * (u - d) - k ** 2 * (u - d) ** 3 / (4 * eta)
        gradients = (rest - epsilon, -rest - epsilon)
        theta = [(x + g / L).max(ball(0)).min(C) for x, g in zip((u, d), gradients, strict=True)]
        up = up + (t + 1) * gradients[0]
        down = down + (t + 1) * gradients[1]
        beta = [(-x / (2 * L)).max(ball(0)).min(C) for x in (up, down)]
        u, d = (((t + 1) * a + 2 * b) / (t + 3) for a, b in zip(theta, beta, strict=True))
    good = max((value(C * j / 64, ball(0)) for j in range(65)), key=float)
    return (good - value(*theta), 8 * L * 2 * (Y / k) ** 2 / (total * (total + 1)))
left, right = exact_minus_regression(CASE)
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
print('the claim says that', show(left), 'is at most', show(right))
print('REFUTED' if left > right else 'not refuted')
sys.exit(0 if left > right else 1)
