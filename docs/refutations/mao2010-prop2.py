#!/usr/bin/env python3
"""Refutes mao2010-prop2: Mao and Tsang (2010), Proposition 2, (8).
Claim: The best spectrum is the positive part of sqrt(A / (2 mu B) - 1/C).
What holds: 1/C stands outside the root.
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
    __rtruediv__ = lambda x, y: x.inverse() * y
    __gt__ = lambda x, y: x.a > ball(y).b
    __float__ = lambda x: float(Fraction(x.a + x.b, 2 << BITS))
    sqrt = lambda x: Ball(isqrt(max(x.a, 0) << BITS), isqrt(max(x.b, 0) << BITS) + 1)
class Array(list):  # vectors and matrices
    __getitem__ = lambda x, i: x[i[0]][i[1]] if isinstance(i, tuple) else list.__getitem__(x, i)
F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)
CASE = {
    'A': F([2]),
    'B': F([1]),
    'mu': F(1),
    'C': F(2),
}
def exact_value8(case, lam):
    A = ball(Fraction(case['A'][0]))
    B = ball(Fraction(case['B'][0]))
    mu = ball(Fraction(case['mu']))
    C = ball(Fraction(case['C']))
    return A / (lam + 1 / C) / 2 + mu * B * lam
def exact_spectrum8(case):
    ratios = [a / (2 * case['mu'] * b) for a, b in zip(case['A'], case['B'], strict=True)]
    return [ball(ratio).sqrt() - ball(1 / Fraction(case['C'])) for ratio in ratios]
def sides(case):
    return (exact_value8(case, ball(case['A'][0] / (2 * case['mu'] * case['B'][0]) - 1 / case['C']).sqrt()), exact_value8(case, exact_spectrum8(case)[0]))
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = sides(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
