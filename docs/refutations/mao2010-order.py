#!/usr/bin/env python3
"""Refutes mao2010-order: Mao and Tsang (2010), section 4.2.
Claim: (8) decreases with the eigenvalue, as graph theory asks for.
What holds: It need not: the labels may see a rough eigenvector better than a smooth one.
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
    __gt__ = lambda x, y: x.a > ball(y).b
    __float__ = lambda x: float(Fraction(x.a + x.b, 2 << BITS))
    max = lambda x, y: Ball(max(x.a, ball(y).a), max(x.b, ball(y).b))
    sqrt = lambda x: Ball(isqrt(max(x.a, 0) << BITS), isqrt(max(x.b, 0) << BITS) + 1)
class Array(list): pass
F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)
CASE = {
    'A': F([0, 2]),
    'B': F([1, 2]),
    'mu': F('1/8'),
    'C': F(1),
}
def exact_spectrum8(case):
    ratios = [a / (2 * case['mu'] * b) for a, b in zip(case['A'], case['B'], strict=True)]
    return [ball(ratio).sqrt() - ball(1 / Fraction(case['C'])) for ratio in ratios]
def sides(case): return (exact_spectrum8(case)[1], ball(0).max(exact_spectrum8(case)[0]))
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = sides(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
