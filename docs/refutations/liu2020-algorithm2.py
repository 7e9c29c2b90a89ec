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
    __pow__ = lambda x, k: x ** (k - 1) * x if k else ball(1)
    __gt__ = lambda x, y: x.a > ball(y).b
    __float__ = lambda x: float(Fraction(x.a + x.b, 2 << BITS))
    max = lambda x, y: Ball(max(x.a, ball(y).a), max(x.b, ball(y).b))
    min = lambda x, y: Ball(min(x.a, ball(y).a), min(x.b, ball(y).b))
    sqrt = lambda x: Ball(isqrt(max(x.a, 0) << BITS), isqrt(max(x.b, 0) << BITS) + 1)
class Array(list):  # vectors and matrices
    __getitem__ = lambda x, i: x[i[0]][i[1]] if isinstance(i, tuple) else list.__getitem__(x, i)
F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)
CASE = {
    'K': F([[1, 0], [0, 1]]),
    'y': F([1, -1]),
    'C': F(1),
    'eta': F(1),
    'tau': F(0),
    'epsilon': F('1/8'),
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
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = exact_minus_regression(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
